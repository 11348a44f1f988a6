// Where the records of a block of text begin: lines, or rows of CSV, whose quoted fields may have line ends.
//
// As in RFC 4180, a quote opens a field only at the start of the field, and two quotes in a quoted field are one. Where
// fields are not quoted, a row is a line.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "parsed_block.hpp"

namespace maxcosine {

struct RecordStarts {
  Buffer<std::int64_t> starts;  // bytes from the start of the block, of the records that are not blank
  Buffer<std::int32_t> lines;   // the number of the line on which each of them starts
  std::int64_t whole = 0;       // where the last record that has its line end stops
  std::int64_t n_lines = 0;     // lines up to there, and one more if text follows
  bool is_open = false;         // whether the block ends within quotes
};

// The line end of the row that starts at p; `stop` if it has none. `is_open` says whether it ends within quotes, and
// `n_lines` counts the line ends within the row.
[[nodiscard]] inline const char* end_of_csv_row(const char* p, const char* stop, char delimiter, std::int64_t& n_lines,
                                                bool& is_open) {
  bool at_field_start = true, quoted = false;
  for (; p < stop; ++p) {
    if (quoted) {
      if (*p == '\n') ++n_lines;
      if (*p != '"') continue;
      if (p + 1 < stop && p[1] == '"')
        ++p;
      else
        quoted = false;
    } else if (*p == '\n') {
      return p;
    } else if (*p == '"' && at_field_start) {
      quoted = true;
      at_field_start = false;
    } else {
      at_field_start = *p == delimiter;
    }
  }
  is_open = quoted;
  return stop;
}

// Whether a record is no more than its line end; without CSV's fields, blanks are nothing, either.
[[nodiscard]] inline bool is_blank_record(const char* p, const char* stop, char delimiter) {
  if (delimiter == 0) p = std::find_if_not(p, stop, is_blank);
  return p == stop || (p + 1 == stop && *p == '\r');
}

// The records from `text` to `stop`; `delimiter` is that of CSV, or 0 for lines, and `quotes` says if fields are quoted.
[[nodiscard]] inline RecordStarts find_records(const char* text, const char* stop, char delimiter, bool quotes) {
  RecordStarts found;
  for (const char* p = text; p < stop;) {
    std::int64_t lines_within = 0;
    const char* end;
    if (!quotes) {
      const void* newline = std::memchr(p, '\n', static_cast<std::size_t>(stop - p));
      end = newline == nullptr ? stop : static_cast<const char*>(newline);
    } else {
      end = end_of_csv_row(p, stop, delimiter, lines_within, found.is_open);
    }
    if (!is_blank_record(p, end, delimiter)) {
      found.starts.push_back(p - text);
      found.lines.push_back(static_cast<std::int32_t>(found.n_lines));
    }
    found.n_lines += lines_within + 1;
    p = end + (end < stop);
    if (end < stop) found.whole = p - text;
  }
  return found;
}

}  // namespace maxcosine
