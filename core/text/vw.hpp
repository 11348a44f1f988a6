// Parses lines of `label weight base 'tag|namespace:scale feature:value ... |other ...`, Vowpal Wabbit's format.
//
// Everything before the first '|' may be missing: a label, which is any token; a weight, 0 or more; a base, which is a
// number and not used; a tag, which touches the '|' or begins with an apostrophe and is not used either. A namespace
// begins right after a '|' and may have no name. A feature is any text without blanks, ':' and '|'; its value, 1 by
// default, is multiplied by the scale of its namespace. Blank lines are not rows.
//
// Names are "namespace^feature", or "feature" if the namespace has no name. The column of a hashed feature comes from
// the hash of the feature's token (see read_token), whose seed is the hash of the namespace's token.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "bytes.hpp"
#include "numbers.hpp"
#include "parsed_block.hpp"
#include "token_boundaries.hpp"

namespace maxcosine {

// The column of a feature in a namespace, as VwReader finds it. Eight bytes after each text must be readable.
[[nodiscard]] inline std::uint64_t column_of_name(std::string_view space, std::string_view name, unsigned bits) {
  const std::uint64_t seed = hash_token(space.data(), space.data() + space.size(), 0).hash;
  return column_of(hash_token(name.data(), name.data() + name.size(), seed).hash, bits);
}

// The tokens before the first '|'.
struct Header {
  static constexpr std::size_t MAX_TOKENS = 3;  // label, weight, base

  Token tokens[MAX_TOKENS + 1];  // one more than there may be
  std::size_t count = 0;         // without the tag
  const char* stop = nullptr;    // the '|', or where the header ends without one
};

[[nodiscard]] inline Header read_header(const char* line) {
  Header header;
  Token last;
  const char* p = skip_blanks(line);
  for (; *p != '|' && *p != '\0' && !ends_line(p); p = skip_blanks(last.stop)) {
    last = read_token(p, '|', '|', 0);
    if (header.count <= Header::MAX_TOKENS) header.tokens[header.count] = last;
    ++header.count;
  }
  const bool has_tag = header.count > 0 && (*last.start == '\'' || last.stop == p);
  header.count -= has_tag;
  header.stop = p;
  return header;
}

template <class Value>
class VwReader {
 public:
  static constexpr char MARK = '|';

  VwReader(const Lines& lines, const ReadOptions& options, ParsedBlock<std::uint32_t, Value>& block)
      : lines_(lines), options_(options), block_(block), boundaries_(lines.text, lines.stop) {}

  [[nodiscard]] Reached read_line(const char* start) {
    const Header header = read_header(start);
    if (*header.stop != '|') {
      const bool blank = ends_line(header.stop) && header.stop == skip_blanks(start);
      return blank ? Reached{header.stop} : Reached{start, NO_BAR};
    }
    const std::size_t n_names = block_.name_starts.size();
    double weight = 1;
    Reached reached = check_header(header, weight);
    if (reached.fine()) reached = read_features(header.stop);
    if (reached.fine()) {
      end_row(block_, lines_, start, header.count > 0 ? header.tokens[0] : Token{}, finish_names());
      block_.weights.push_back(weight);
    } else {
      block_.name_starts.resize(n_names);
      block_.letters.resize(block_.name_starts.back());
    }
    block_.values.resize(block_.indptr.back());
    if (!options_.exact) block_.keys.resize(block_.indptr.back());
    return reached;
  }

 private:
  [[nodiscard]] static Reached check_header(const Header& header, double& weight) {
    const auto& tokens = header.tokens;
    if (header.count > Header::MAX_TOKENS) return {tokens[Header::MAX_TOKENS].start, TOO_MANY};
    const Reached label = header.count > 0 ? check_utf8(tokens[0]) : Reached{header.stop};
    if (!label.fine()) return label;
    for (std::size_t k = 1; k < header.count; ++k) {
      const CheckedNumber number = read_value(tokens[k].start, MARK);
      if (!number.reached.fine()) return number.reached;
      if (k == 1) weight = number.value;
      if (weight < 0) return {tokens[1].start, NEGATIVE_WEIGHT};
    }
    return {header.stop};
  }

  // Reads namespaces and their features, from the first '|' to the end of the line.
  [[nodiscard]] Reached read_features(const char* p) {
    for (;;) {
      p = boundaries_.read_from(p, [this](Boundaries at) { return read_plain_features(at); });
      p = skip_blanks(p);
      if (ends_line(p)) return {p};
      const Reached reached = *p == '|' ? read_namespace(p + 1) : read_feature(p);
      if (!reached.fine()) return reached;
      p = reached.at;
    }
  }

  // Reads a namespace and its scale.
  [[nodiscard]] Reached read_namespace(const char* p) {
    space_ = read_token(p, ':', '|', 0);
    scale_ = 1;
    const Reached reached = options_.exact ? check_utf8(space_) : Reached{space_.stop};
    if (!reached.fine() || *space_.stop != ':') return reached;
    const CheckedNumber scale = read_value(space_.stop + 1, MARK);
    scale_ = scale.value;
    return scale.reached;
  }

  // Reads plain features up to the end of the line, or up to anything else; returns the rest of the boundaries.
  [[nodiscard]] Boundaries read_plain_features(Boundaries at) {
    while (at.size() >= BOUNDARIES_OF_FEATURE && is_blank(lines_.text[at[0]])) {
      const std::size_t passed = read_plain_feature(at);
      if (passed == 0) break;
      at = at.subspan(passed);
    }
    return at;
  }

  // Reads a feature in the notation that most have: a blank at at[0], a name, a blank or newline at at[1]; or a colon
  // there, a number, and a blank or newline at at[2]. Returns the number of boundaries passed, 0 for anything else.
  [[nodiscard]] std::size_t read_plain_feature(Boundaries at) {
    const char* stop = lines_.text + at[1];
    const bool has_value = *stop == ':';
    const char last = lines_.text[at[1 + has_value]];
    if (at[1] == at[0] + 1 || !(is_blank(last) || last == '\n')) return 0;
    double value = 1;
    if (has_value && !read_number_between(stop + 1, lines_.text + at[2], value)) return 0;
    const Token name = hash_token(lines_.text + at[0] + 1, stop, space_.hash);
    if (options_.exact && !check_utf8(name).fine()) return 0;
    return add(name, value) ? 1 + has_value : 0;
  }

  // Reads a feature in any notation.
  [[nodiscard]] Reached read_feature(const char* p) {
    const Token name = read_token(p, ':', '|', space_.hash);
    if (name.empty()) return {p, *p == ':' ? NO_NAME : NUL_BYTE};
    CheckedNumber number{1, options_.exact ? check_utf8(name) : Reached{name.stop}};
    if (number.reached.fine() && *name.stop == ':') number = read_value(name.stop + 1, MARK);
    if (number.reached.fine() && !add(name, number.value)) return {p, TOO_LARGE};
    return number.reached;
  }

  // Appends a feature; false if its value is too large for its type.
  [[nodiscard]] bool add(const Token& name, double unscaled) {
    const auto value = static_cast<Value>(unscaled * scale_);
    if (!std::isfinite(value)) return false;
    block_.values.push_back(value);
    if (!options_.exact) block_.keys.push_back(static_cast<std::uint32_t>(column_of(name.hash, options_.bits)));
    if (options_.exact || options_.keep_names) add_name(space_.text(), name.text());
    return true;
  }

  // Appends namespace^name to the letters of all names.
  void add_name(std::string_view space, std::string_view name) {
    const std::size_t end = block_.letters.size();
    block_.letters.resize(end + space.size() + !space.empty() + name.size());
    char* letters = block_.letters.data() + end;
    if (!space.empty()) {
      std::memcpy(letters, space.data(), space.size());
      letters[space.size()] = '^';
      letters += space.size() + 1;
    }
    std::memcpy(letters, name.data(), name.size());
    block_.name_starts.push_back(static_cast<std::int64_t>(block_.letters.size()));
  }

  // Ends the features of a row. Names are not made canonical: only an index knows which of them are equal.
  [[nodiscard]] std::size_t finish_names() {
    const auto first = static_cast<std::size_t>(block_.indptr.back());
    if (options_.exact) return block_.values.size();
    if (options_.keep_names)
      block_.name_columns.insert(block_.name_columns.end(), block_.keys.begin() + first, block_.keys.end());
    return finish_features(block_, first, block_.keys.size(), options_.transform);
  }

  const Lines lines_;
  const ReadOptions options_;
  ParsedBlock<std::uint32_t, Value>& block_;
  TokenBoundaries boundaries_;
  Token space_;  // the present namespace
  double scale_ = 1;
};

// Parses a block: PADDING bytes are readable before and after it. Features are columns, or names if `exact`.
template <class Value>
[[nodiscard]] ParsedBlock<std::uint32_t, Value> parse_vw(std::string_view text, const ReadOptions& options) {
  ParsedBlock<std::uint32_t, Value> block;
  block.name_starts.push_back(0);
  parse_block<VwReader<Value>>(text, options, block);
  return block;
}

}  // namespace maxcosine
