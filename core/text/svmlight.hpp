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

  void put(std::size_t k, std::uint64_t id, double value) {
    keys[k] = static_cast<Key>(bits != 0 && id >> bits != 0 ? column_of(mix(id), bits) : id);
    values[k] = static_cast<Value>(value);
  }

  // False if the value is too large for its type.
  [[nodiscard]] bool add(std::uint64_t id, double value) {
    put(count, id, value);
    return std::isfinite(values[count++]);
  }
};

// Reads a feature in the notation that most have: a blank at at[0], one to eight digits, a colon at at[1], a number,
// a blank or newline at at[2]. False if it is anything else.
template <class Key, class Value>
[[nodiscard]] inline bool read_plain_feature(const char* text, const std::uint32_t* at, FeatureOutput<Key, Value>& output) {
  const char *colon = text + at[1], *stop = text + at[2];
  std::uint64_t id;
  double value;
  if (!read_last_digits(colon, at[1] - at[0] - 1, id) || *colon != ':' || !(is_blank(*stop) || *stop == '\n') ||
      !read_number_between(colon + 1, stop, value))
    return false;
  output.put(output.count, id, value);
  const bool fits = std::isfinite(output.values[output.count]);
  output.count += fits;
  return fits;
}

#ifdef __AVX2__
// Reads several plain features at once; returns how many, or 0 if they have to be read one by one.
template <class Key, class Value>
[[nodiscard]] inline std::size_t read_several(const char* text, std::span<const std::uint32_t> at,
                                              FeatureOutput<Key, Value>& output) {
  if (at.size() <= 2 * FEATURES_AT_ONCE) return 0;
  const FourFeatures features = read_four_features(text, at.data());
  for (std::size_t k = 0; k < FEATURES_AT_ONCE; ++k) output.put(output.count + k, features.ids[k], features.values[k]);
  output.count += features.count;
  return features.count;
}
#endif

// Reads plain features from p on. Returns the end of the line, or where anything else stands.
template <class Key, class Value>
[[nodiscard]] inline const char* read_plain_features(const char* p, const Lines& lines, TokenBoundaries& boundaries,
                                                     FeatureOutput<Key, Value>& output) {
  constexpr std::size_t OF_FEATURE = 3;  // boundaries: before it, within it, after it
  while (is_blank(*p)) {
    std::span<const std::uint32_t> at = boundaries.from(p, OF_FEATURE);
#ifdef __AVX2__
    std::size_t alone = 0;
    while (at.size() >= OF_FEATURE && is_blank(lines.text[at[0]])) {
      std::size_t n = 0;
      if (alone == 0) { n = read_several(lines.text, at, output); if (n == 0) alone = 4; }
      if (n == 0) { if (!read_plain_feature(lines.text, at.data(), output)) break; n = 1; --alone; }
      at = at.subspan(2 * n);
    }
#else
    while (at.size() >= OF_FEATURE && is_blank(lines.text[at[0]]) && read_plain_feature(lines.text, at.data(), output))
      at = at.subspan(OF_FEATURE - 1);
#endif
    boundaries.skip_to(at);
    if (lines.text + at[0] == p) return p;
    p = lines.text + at[0];
  }
  return p;
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
[[nodiscard]] Reached read_features(const char* p, const Lines& lines, TokenBoundaries& boundaries,
                                    FeatureOutput<Key, Value>& output) {
  for (;;) {
    p = read_plain_features(p, lines, boundaries, output);
    if (ends_line(p)) return {p};
    if (*p == '#') return skip_comment(p, lines);
    if (is_blank(*p)) {
      p = skip_blanks(p);
    } else if (std::memcmp(p, "qid:", 4) == 0) {
      p = skip_query(p);
    } else {
      const Reached reached = read_feature(p, output);
      if (reached.code != FaultCode::FINE) return reached;
      p = reached.at;
    }
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
  const char* p = lines.text;
  while (p < lines.stop) {
    const char* start = p;
    const auto first = static_cast<std::size_t>(block.indptr.back());
    const Token label = read_label(start);
    const char* bad = label.ascii ? label.stop : first_not_utf8(label.start, label.stop);
    FeatureOutput<Key, Value> output{block.keys.data(), block.values.data(), first, options.bits};
    Reached reached{bad, FaultCode::NOT_TEXT};
    if (bad == label.stop) reached = read_features(label.stop, lines, boundaries, output);
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
  ParsedBlock<Key, Value> block;
  block.keys.resize(text.size() / SHORTEST_FEATURE + 8);
  block.values.resize(text.size() / SHORTEST_FEATURE + 8);
  parse_block(text, options, block, [&](const Lines& lines) { parse_svmlight_lines(lines, options, block); });
  block.keys.resize(block.indptr.back());
  block.values.resize(block.indptr.back());
  return block;
}

}  // namespace maxcosine
