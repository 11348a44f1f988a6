// Parses lines of `label id:value id:value ... # comment`, the format of SVMlight and LIBSVM.
//
// Ids are 0 to 2^64 - 1, in any order; `qid:...` is skipped. The label is any text without blanks, ':' and '#', and may
// be missing. Lines that are blank or hold only a comment are not rows. Ids from 2^bits on are hashed if bits > 0.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "avx2.hpp"
#include "bytes.hpp"
#include "numbers.hpp"
#include "parsed_block.hpp"
#include "token_boundaries.hpp"

namespace maxcosine {

inline constexpr std::uint64_t MAX_COLUMNS = std::uint64_t{1} << 28;  // ids that are columns are below this

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

template <class Key, class Value>
class SvmlightReader {
 public:
  static constexpr char MARK = '#';

  SvmlightReader(const Lines& lines, const ReadOptions& options, ParsedBlock<Key, Value>& block)
      : lines_(lines), options_(options), block_(block), boundaries_(lines.text, lines.stop) {}

  [[nodiscard]] Reached read_line(const char* start) {
    const auto first = static_cast<std::size_t>(block_.indptr.back());
    count_ = first;
    Token label = read_token(skip_blanks(start), ':', '#', 0);
    if (*label.stop == ':') label.stop = label.start;  // the first token is a feature
    Reached reached = check_utf8(label);
    if (reached.fine()) reached = read_features(label.stop);
    if (reached.fine() && !ends_line(label.start) && *label.start != '#')
      end_row(block_, lines_, start, label, finish_features(block_, first, count_, options_.transform));
    return reached;
  }

 private:
  [[nodiscard]] Reached read_features(const char* p) {
    for (;;) {
      p = boundaries_.read_from(p, [this](Boundaries at) { return read_plain_features(at); });
      p = skip_blanks(p);
      if (ends_line(p)) return {p};
      if (*p == '#') return skip_comment(p);
      const Reached reached = std::memcmp(p, "qid:", 4) == 0 ? Reached{skip_query(p)} : read_feature(p);
      if (!reached.fine()) return reached;
      p = reached.at;
    }
  }

  // Reads plain features up to the end of the line, or up to anything else; returns the rest of the boundaries.
  [[nodiscard]] Boundaries read_plain_features(Boundaries at) {
    while (at.size() >= BOUNDARIES_OF_FEATURE && is_blank(lines_.text[at[0]])) {
#ifdef __AVX2__
      if (pace_.alone > 0) {
        --pace_.alone;
      } else if (at.size() > 2 * FEATURES_AT_ONCE) {
        const std::size_t n = read_up_to_four(at);
        pace_.note(n > 0);
        at = at.subspan(2 * n);
        continue;
      }
#endif
      if (!read_plain_feature(at)) break;
      at = at.subspan(2);
    }
    return at;
  }

#ifdef __AVX2__
  // Reads four plain features, or those up to the end of the line; returns how many, or 0 if some are not plain.
  [[nodiscard]] std::size_t read_up_to_four(Boundaries at) {
    const FourFeatures four = read_four_features(lines_.text, at.data());
    Key* keys = block_.keys.data() + count_;
    store_four(keys, four.ids);
    store_four(block_.values.data() + count_, four.values);
    if (options_.bits != 0)
      for (std::size_t k = 0; k < four.count; ++k) keys[k] = key_of(keys[k]);
    count_ += four.count;
    return four.count;
  }
#endif

  // Reads a feature in the notation that most have: a blank at at[0], one to eight digits, a colon at at[1], a number,
  // a blank or newline at at[2]. False if it is anything else.
  [[nodiscard]] bool read_plain_feature(Boundaries at) {
    const char *colon = lines_.text + at[1], *stop = lines_.text + at[2];
    std::uint64_t id;
    double value;
    return read_last_digits(colon, at[1] - at[0] - 1, id) && *colon == ':' && (is_blank(*stop) || *stop == '\n') &&
           read_number_between(colon + 1, stop, value) && add(id, value);
  }

  // Reads a feature in any notation.
  [[nodiscard]] Reached read_feature(const char* p) {
    if (!is_digit(*p)) return {p, BAD_ID};
    const Id id = read_id(p);
    if (*id.stop != ':') return {p, is_separator(id.stop, MARK) ? NO_COLON : BAD_ID};
    if (!id.fits) return {p, LARGE_ID};
    if (!options_.exact && options_.bits == 0 && id.number >= MAX_COLUMNS) return {p, NO_COLUMN};
    const CheckedNumber number = read_value(id.stop + 1, MARK);
    if (number.reached.fine() && !add(id.number, number.value)) return {id.stop + 1, TOO_LARGE};
    return number.reached;
  }

  [[nodiscard]] Reached skip_comment(const char* p) const {
    const auto* newline = static_cast<const char*>(std::memchr(p, '\n', lines_.stop - p));
    return {newline, std::memchr(p, '\0', newline - p) != nullptr ? NUL_BYTE : FINE};
  }

  [[nodiscard]] static const char* skip_query(const char* p) {
    while (!is_separator(p, MARK) && *p != '\0') ++p;
    return p;
  }

  [[nodiscard]] Key key_of(std::uint64_t id) const {
    return static_cast<Key>(options_.bits != 0 ? column_of_id(id, options_.bits) : id);
  }

  // Appends a feature, unless its value is too large for its type.
  [[nodiscard]] bool add(std::uint64_t id, double value) {
    block_.keys[count_] = key_of(id);
    block_.values[count_] = static_cast<Value>(value);
    const bool fits = std::isfinite(block_.values[count_]);
    count_ += fits;
    return fits;
  }

  const Lines lines_;
  const ReadOptions options_;
  ParsedBlock<Key, Value>& block_;
  TokenBoundaries boundaries_;
  Pace pace_;
  std::size_t count_ = 0;  // features in the block, those of the present line included
};

// Parses a block: PADDING bytes are readable before and after it.
template <class Key, class Value>
[[nodiscard]] ParsedBlock<Key, Value> parse_svmlight(std::string_view text, const ReadOptions& options) {
  constexpr std::size_t SHORTEST_FEATURE = 4;  // "1:1 "
  constexpr std::size_t WRITTEN_AT_ONCE = 4;   // of which some may not be features
  ParsedBlock<Key, Value> block;
  block.keys.resize(text.size() / SHORTEST_FEATURE + WRITTEN_AT_ONCE);
  block.values.resize(text.size() / SHORTEST_FEATURE + WRITTEN_AT_ONCE);
  parse_block<SvmlightReader<Key, Value>>(text, options, block);
  block.keys.resize(block.indptr.back());
  block.values.resize(block.indptr.back());
  return block;
}

}  // namespace maxcosine
