// Lines of JSON before they are parsed: is a line one object, and how deep is it nested?
//
// Parsers of JSON read a block as one text, where an object may go on in the next line; and they call themselves for
// each level of nesting. A line that passes this check has its brackets paired, and nothing but blanks around them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "bytes.hpp"

namespace maxcosine {

inline constexpr int MAX_JSON_DEPTH = 100;

enum class JsonLine : std::uint8_t { object, no_object, cut_short, several, too_deep };

// The quote that ends the string whose first quote is at p; `stop` if there is none.
[[nodiscard]] inline const char* end_of_json_string(const char* p, const char* stop) {
  for (const char* start = p + 1;;) {
    const void* found = std::memchr(start, '"', static_cast<std::size_t>(stop - start));
    if (found == nullptr) return stop;
    const char* const quote = static_cast<const char*>(found);
    const char* first = quote;  // of the backslashes before it: pairs of them stand for themselves
    while (first - 1 > p && first[-1] == '\\') --first;
    if ((quote - first) % 2 == 0) return quote;
    start = quote + 1;
  }
}

// What the line from p to stop is; values and keys may still be wrong.
[[nodiscard]] inline JsonLine check_json_line(const char* p, const char* stop) {
  const auto is_space = [](char c) { return is_blank(c) || c == '\r'; };
  p = std::find_if_not(p, stop, is_space);
  if (p == stop || *p != '{') return JsonLine::no_object;
  int depth = 0;
  for (; p < stop; ++p) {
    if (*p == '"') {
      p = end_of_json_string(p, stop);
      if (p == stop) return JsonLine::cut_short;
    } else if (*p == '{' || *p == '[') {
      if (++depth > MAX_JSON_DEPTH) return JsonLine::too_deep;
    } else if ((*p == '}' || *p == ']') && --depth == 0) {
      return std::find_if_not(p + 1, stop, is_space) == stop ? JsonLine::object : JsonLine::several;
    }
  }
  return JsonLine::cut_short;
}

// The line end at p or behind it; `stop` if there is none.
[[nodiscard]] inline const char* end_of_line(const char* p, const char* stop) {
  const void* newline = std::memchr(p, '\n', static_cast<std::size_t>(stop - p));
  return newline == nullptr ? stop : static_cast<const char*>(newline);
}

}  // namespace maxcosine
