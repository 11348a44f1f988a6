// Parses lines of `label id:value id:value ... # comment`, the format of SVMlight and LIBSVM.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "bytes.hpp"
#include "numbers.hpp"
#include "parsed_block.hpp"
#include "avx2.hpp"
#include "token_boundaries.hpp"

namespace maxcosine {

inline constexpr std::uint64_t MAX_COLUMNS = std::uint64_t{1} << 28;  // ids that are columns are below this

// Features of a line, written one after another.
template <class Key, class Value>
struct FeatureOutput {
  Key* keys;
  Value* values;
  std::size_t count;
  unsigned bits;

  [[nodiscard]] Key key_of(std::uint64_t id) const {
    return static_cast<Key>(bits != 0 && id >> bits != 0 ? column_of(mix(id), bits) : id);
  }

  // Appends a feature, unless its value is too large for its type.
  [[nodiscard]] bool add(std::uint64_t id, double value) {
    keys[count] = key_of(id);
    values[count] = static_cast<Value>(value);
    const bool fits = std::isfinite(values[count]);
    count += fits;
    return fits;
  }
};

// Reads a feature in the notation that most have: a blank at at[0], one to eight digits, a colon at at[1], a number,
// a blank or newline at at[2]. False if it is anything else.
template <class Key, class Value>
[[nodiscard]] inline bool read_plain_feature(const char* text, const std::uint32_t* at, FeatureOutput<Key, Value>& output) {
  const char *colon = text + at[1], *stop = text + at[2];
  std::uint64_t id;
  double value;
  if (!read_last_digits(colon, at[1] - at[0] - 1, id) || *colon != ':' || !(is_blank(*stop) || *stop == '\n')) return false;
  return read_number_between(colon + 1, stop, value) && output.add(id, value);
}

#ifdef __AVX2__
// Reads up to four plain features up to the end of the line; returns how many, or 0 if some are not plain.
template <class Key, class Value>
[[nodiscard]] inline std::size_t read_up_to_four(const char* text, const std::uint32_t* at,
                                                 FeatureOutput<Key, Value>& output) {
  const FourFeatures four = read_four_features(text, at);
  Key* keys = output.keys + output.count;
  store_four(keys, four.ids);
  store_four(output.values + output.count, four.values);
  if (output.bits != 0)
    for (std::size_t k = 0; k < four.count; ++k) keys[k] = output.key_of(keys[k]);
  output.count += four.count;
  return four.count;
}
#endif

// When to try four features at once: after each failure in a row, more features are read one by one.
struct Pace {
  static constexpr std::size_t SHORTEST = 4, LONGEST = 256;

  std::size_t alone = 0;  // features to read one by one
  std::size_t next = SHORTEST;

  void note(bool success) {
    alone = success ? 0 : next;
    next = success ? SHORTEST : std::min(2 * next, LONGEST);
  }
};

// Reads plain features up to the end of the line, or up to anything else; returns the rest of the boundaries.
template <class Key, class Value>
[[nodiscard]] inline Boundaries read_plain_features(const char* text, Boundaries at, [[maybe_unused]] Pace& pace,
                                                    FeatureOutput<Key, Value>& output) {
  while (at.size() >= BOUNDARIES_OF_FEATURE && is_blank(text[at[0]])) {
#ifdef __AVX2__
    if (pace.alone > 0) {
      --pace.alone;
    } else if (at.size() > 2 * FEATURES_AT_ONCE) {
      const std::size_t count = read_up_to_four(text, at.data(), output);
      at = at.subspan(2 * count);
      pace.note(count > 0);
      continue;
    }
#endif
    if (!read_plain_feature(text, at.data(), output)) break;
    at = at.subspan(2);
  }
  return at;
}

[[nodiscard]] inline Reached skip_comment(const char* p, const Lines& lines) {
  const auto* newline = static_cast<const char*>(std::memchr(p, '\n', lines.stop - p));
  const void* nul = std::memchr(p, '\0', newline - p);
  return {newline, nul != nullptr ? FaultCode::NUL_BYTE : FaultCode::FINE};
}

[[nodiscard]] inline const char* skip_query(const char* p) {
  while (!is_separator(p, '#') && *p != '\0') ++p;
  return p;
}

// Reads a feature in any notation.
template <class Key, class Value>
[[nodiscard]] Reached read_feature(const char* p, FeatureOutput<Key, Value>& output) {
  if (!is_digit(*p)) return {p, FaultCode::BAD_ID};
  const Id id = read_id(p);
  if (*id.stop != ':') return {p, is_separator(id.stop, '#') ? FaultCode::NO_COLON : FaultCode::BAD_ID};
  if (!id.fits) return {p, FaultCode::LARGE_ID};
  if (sizeof(Key) == sizeof(std::uint32_t) && output.bits == 0 && id.number >= MAX_COLUMNS) return {p, FaultCode::NO_COLUMN};
  const CheckedNumber number = read_value(id.stop + 1, '#');
  if (number.reached.code != FaultCode::FINE) return number.reached;
  if (!output.add(id.number, number.value)) return {id.stop + 1, FaultCode::TOO_LARGE};
  return number.reached;
}

// Reads features from p to the end of the line; `qid:...` is skipped.
template <class Key, class Value>
[[nodiscard]] Reached read_features(const char* p, const Lines& lines, TokenBoundaries& boundaries, Pace& pace,
                                    FeatureOutput<Key, Value>& output) {
  for (;;) {
    p = boundaries.read_from(p, [&](Boundaries at) { return read_plain_features(lines.text, at, pace, output); });
    p = skip_blanks(p);
    if (ends_line(p)) return {p};
    if (*p == '#') return skip_comment(p, lines);
    const Reached reached = std::memcmp(p, "qid:", 4) == 0 ? Reached{skip_query(p)} : read_feature(p, output);
    if (reached.code != FaultCode::FINE) return reached;
    p = reached.at;
  }
}

// The label at the start of a line: empty if there is none, or if the first token is a feature.
[[nodiscard]] inline Token read_label(const char* line) {
  Token label = read_token(skip_blanks(line), ':', '#', 0);
  if (*label.stop == ':') label.stop = label.start;
  return label;
}

// Parses lines that all end with a newline. Lines that are blank or hold only a comment are not rows.
template <class Key, class Value>
void parse_svmlight_lines(const Lines& lines, const ReadOptions& options, ParsedBlock<Key, Value>& block) {
  TokenBoundaries boundaries(lines.text, lines.stop);
  Pace pace;
  const char* p = lines.text;
  while (p < lines.stop) {
    const char* start = p;
    const auto first = static_cast<std::size_t>(block.indptr.back());
    const Token label = read_label(start);
    const char* bad = label.ascii ? label.stop : first_not_utf8(label.start, label.stop);
    FeatureOutput<Key, Value> output{block.keys.data(), block.values.data(), first, options.bits};
    Reached reached{bad, FaultCode::NOT_TEXT};
    if (bad == label.stop) reached = read_features(label.stop, lines, boundaries, pace, output);
    if (reached.code != FaultCode::FINE) {
      reached.at = add_fault(block, lines, start, reached, '#');
    } else if (!ends_line(label.start) && *label.start != '#') {
      end_row(block, lines, start, label, finish_features(block, first, output.count, options.transform));
    }
    p = reached.at + 1 + (*reached.at == '\r');
    ++block.n_lines;
    if (reached.code != FaultCode::FINE && options.stop_at_fault) return;
  }
}

// Parses a block: PADDING bytes are readable before and after it.
template <class Key, class Value>
[[nodiscard]] ParsedBlock<Key, Value> parse_svmlight(std::string_view text, const ReadOptions& options) {
  constexpr std::size_t SHORTEST_FEATURE = 4;  // "1:1 "
  constexpr std::size_t WRITTEN_AT_ONCE = 4;   // of which some may not be features
  ParsedBlock<Key, Value> block;
  block.keys.resize(text.size() / SHORTEST_FEATURE + WRITTEN_AT_ONCE);
  block.values.resize(text.size() / SHORTEST_FEATURE + WRITTEN_AT_ONCE);
  parse_block(text, options, block, [&](const Lines& lines) { parse_svmlight_lines(lines, options, block); });
  block.keys.resize(block.indptr.back());
  block.values.resize(block.indptr.back());
  return block;
}

}  // namespace maxcosine
