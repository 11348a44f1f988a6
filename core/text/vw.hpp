// Parses lines of `label weight base 'tag|namespace:scale feature:value ... |other ...`, Vowpal Wabbit's format.
//
// Everything before the first '|' may be missing: a label, which is any token; a weight, 0 or more; a base, which is a
// number and not used; a tag, which touches the '|' or begins with an apostrophe and is not used either. A namespace
// begins right after a '|' and may have no name. A feature is any text without blanks, ':' and '|'; its value, 1 if
// there is none, is multiplied by the scale of its namespace. Blank lines are not rows.
//
// Names are "namespace^feature", or "feature" if the namespace has no name. The column of a hashed feature comes from
// the hash of the feature's token (see read_token), whose seed is the hash of the namespace's token.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "bytes.hpp"
#include "numbers.hpp"
#include "parsed_block.hpp"
#include "token_boundaries.hpp"

namespace maxcosine {

// The tokens before the first '|'.
struct Header {
  static constexpr std::size_t MAX_TOKENS = 3;  // label, weight, base

  Token tokens[MAX_TOKENS + 1];  // one more than there may be
  std::size_t count = 0;              // without the tag
  const char* bar = nullptr;          // the '|', or where the header ends without one
};

[[nodiscard]] inline Header read_header(const char* line) {
  Header header;
  Token last;
  const char* p = skip_blanks(line);
  while (*p != '|' && *p != '\0' && !ends_line(p)) {
    last = read_token(p, '|', '|', 0);
    if (header.count <= Header::MAX_TOKENS) header.tokens[header.count] = last;
    ++header.count;
    p = skip_blanks(last.stop);
  }
  const bool has_tag = header.count > 0 && (*last.start == '\'' || last.stop == p);
  header.count -= has_tag;
  header.bar = p;
  return header;
}

// Checks the header and reads the weight.
[[nodiscard]] inline Reached check_header(const Header& header, double& weight) {
  const auto& tokens = header.tokens;
  if (header.count > Header::MAX_TOKENS) return {tokens[Header::MAX_TOKENS].start, FaultCode::TOO_MANY};
  if (header.count > 0 && !tokens[0].ascii) {
    const char* bad = first_not_utf8(tokens[0].start, tokens[0].stop);
    if (bad < tokens[0].stop) return {bad, FaultCode::NOT_TEXT};
  }
  weight = 1;
  for (std::size_t k = 1; k < header.count; ++k) {
    const CheckedNumber number = read_value(tokens[k].start, '|');
    if (number.reached.code != FaultCode::FINE) return number.reached;
    if (k > 1) continue;
    weight = number.value;
    if (weight < 0) return {tokens[k].start, FaultCode::NEGATIVE_WEIGHT};
  }
  return {header.bar};
}

struct Namespace {
  Token name;
  double scale = 1;
};

// Reads a namespace and its scale from behind a '|'.
[[nodiscard]] inline Reached read_namespace(const char* p, bool check_utf8, Namespace& space) {
  space = {read_token(p, ':', '|', 0)};
  const Token& name = space.name;
  if (check_utf8 && !name.ascii) {
    const char* bad = first_not_utf8(name.start, name.stop);
    if (bad < name.stop) return {bad, FaultCode::NOT_TEXT};
  }
  if (*name.stop != ':') return {name.stop};
  const CheckedNumber scale = read_value(name.stop + 1, '|');
  space.scale = scale.value;
  return scale.reached;
}

// Appends a name to the letters of all names.
template <class Block>
void add_name(Block& block, std::string_view space, std::string_view name) {
  Buffer<char>& letters = block.letters;
  std::size_t end = letters.size();
  letters.resize(end + space.size() + !space.empty() + name.size());
  if (!space.empty()) {
    std::memcpy(letters.data() + end, space.data(), space.size());
    end += space.size();
    letters[end++] = '^';
  }
  std::memcpy(letters.data() + end, name.data(), name.size());
  block.name_starts.push_back(static_cast<std::int64_t>(letters.size()));
}

// Appends a feature; false if its value is too large for its type.
template <class Value>
[[nodiscard]] inline bool add_feature(const Token& name, double value, const Namespace& space, const ReadOptions& options,
                                      ParsedBlock<std::uint32_t, Value>& block) {
  if (!std::isfinite(static_cast<Value>(value))) return false;
  block.values.push_back(static_cast<Value>(value));
  if (!options.exact) block.keys.push_back(static_cast<std::uint32_t>(column_of(name.hash, options.bits)));
  if (options.exact || options.keep_names) add_name(block, space.name.text(), name.text());
  return true;
}

// Reads a feature in the notation that most have: a blank at at[0], a name, a blank or newline at at[1]; or a colon
// there, a number, and a blank or newline at at[2]. Returns the number of boundaries passed, 0 if it is anything else.
template <class Value>
[[nodiscard]] inline std::size_t read_plain_vw_feature(const char* text, const std::uint32_t* at, const Namespace& space,
                                                       const ReadOptions& options,
                                                       ParsedBlock<std::uint32_t, Value>& block) {
  const char* stop = text + at[1];
  const bool has_value = *stop == ':';
  const char last = text[at[1 + has_value]];
  if (at[1] == at[0] + 1 || !(is_blank(last) || last == '\n')) return 0;
  double value = 1;
  if (has_value && !read_number_between(stop + 1, text + at[2], value)) return 0;
  const Token name = hash_token(text + at[0] + 1, stop, space.name.hash);
  if (options.exact && !name.ascii && first_not_utf8(name.start, name.stop) < name.stop) return 0;
  return add_feature(name, value * space.scale, space, options, block) ? 1 + has_value : 0;
}

// Reads plain features up to the end of the line, or up to anything else; returns the rest of the boundaries.
template <class Value>
[[nodiscard]] inline Boundaries read_plain_vw_features(const char* text, Boundaries at, const Namespace& space,
                                                       const ReadOptions& options,
                                                       ParsedBlock<std::uint32_t, Value>& block) {
  while (at.size() >= BOUNDARIES_OF_FEATURE && is_blank(text[at[0]])) {
    const std::size_t passed = read_plain_vw_feature(text, at.data(), space, options, block);
    if (passed == 0) break;
    at = at.subspan(passed);
  }
  return at;
}

// Reads a feature in any notation, whose name is at p.
template <class Value>
[[nodiscard]] Reached read_vw_feature(const char* p, const Namespace& space, const ReadOptions& options,
                                      ParsedBlock<std::uint32_t, Value>& block) {
  const Token name = read_token(p, ':', '|', space.name.hash);
  if (name.empty()) return {p, *p == ':' ? FaultCode::NO_NAME : FaultCode::NUL_BYTE};
  if (options.exact && !name.ascii) {
    const char* bad = first_not_utf8(name.start, name.stop);
    if (bad < name.stop) return {bad, FaultCode::NOT_TEXT};
  }
  CheckedNumber number{1, {name.stop}};
  if (*name.stop == ':') number = read_value(name.stop + 1, '|');
  if (number.reached.code != FaultCode::FINE) return number.reached;
  if (!add_feature(name, number.value * space.scale, space, options, block)) return {p, FaultCode::TOO_LARGE};
  return number.reached;
}

// Reads namespaces and their features, from the first '|' to the end of the line.
template <class Value>
[[nodiscard]] Reached read_namespaces(const char* p, const Lines& lines, TokenBoundaries& boundaries,
                                      const ReadOptions& options, ParsedBlock<std::uint32_t, Value>& block) {
  Namespace space;
  for (;;) {
    p = boundaries.read_from(
        p, [&](Boundaries at) { return read_plain_vw_features(lines.text, at, space, options, block); });
    p = skip_blanks(p);
    if (ends_line(p)) return {p};
    const Reached reached =
        *p == '|' ? read_namespace(p + 1, options.exact, space) : read_vw_feature(p, space, options, block);
    if (reached.code != FaultCode::FINE) return reached;
    p = reached.at;
  }
}

// Adds a row: its features, which begin at `first`, are in the block.
template <class Value>
void end_vw_row(ParsedBlock<std::uint32_t, Value>& block, const Lines& lines, const char* start, const Header& header,
                double weight, const ReadOptions& options) {
  const auto first = static_cast<std::size_t>(block.indptr.back());
  std::size_t stop = block.values.size();
  if (options.keep_names && !options.exact)
    block.name_columns.insert(block.name_columns.end(), block.keys.begin() + first, block.keys.end());
  if (!options.exact) stop = finish_features(block, first, stop, options.transform);
  end_row(block, lines, start, header.count > 0 ? header.tokens[0] : Token{}, stop);
  block.weights.push_back(weight);
}

// Removes the features of a line at fault, or those that canonicalization has left behind the last row.
template <class Value>
void cut_features(ParsedBlock<std::uint32_t, Value>& block, std::size_t n_names) {
  const auto n_features = static_cast<std::size_t>(block.indptr.back());
  block.values.resize(n_features);
  if (block.keys.size() > n_features) block.keys.resize(n_features);
  block.name_starts.resize(n_names + 1);
  block.letters.resize(block.name_starts.back());
}

// Parses lines that all end with a newline.
template <class Value>
void parse_vw_lines(const Lines& lines, const ReadOptions& options, ParsedBlock<std::uint32_t, Value>& block) {
  TokenBoundaries boundaries(lines.text, lines.stop);
  const char* p = lines.text;
  while (p < lines.stop) {
    const char* start = p;
    std::size_t n_names = block.name_starts.size() - 1;
    const Header header = read_header(start);
    double weight = 1;
    Reached reached{start, FaultCode::NO_BAR};
    if (*header.bar == '|') {
      reached = check_header(header, weight);
      if (reached.code == FaultCode::FINE) reached = read_namespaces(header.bar, lines, boundaries, options, block);
    } else if (ends_line(header.bar) && header.bar == skip_blanks(start)) {
      reached = {header.bar};
    }
    if (reached.code != FaultCode::FINE) {
      reached.at = add_fault(block, lines, start, reached, '|');
    } else if (*header.bar == '|') {
      end_vw_row(block, lines, start, header, weight, options);
      n_names = block.name_starts.size() - 1;
    }
    cut_features(block, n_names);
    p = reached.at + 1 + (*reached.at == '\r');
    ++block.n_lines;
    if (reached.code != FaultCode::FINE && options.stop_at_fault) return;
  }
}

// Parses a block: PADDING bytes are readable before and after it. Features are columns, or names if `exact`.
template <class Value>
[[nodiscard]] ParsedBlock<std::uint32_t, Value> parse_vw(std::string_view text, const ReadOptions& options) {
  ParsedBlock<std::uint32_t, Value> block;
  block.name_starts.push_back(0);
  parse_block(text, options, block, [&](const Lines& lines) { parse_vw_lines(lines, options, block); });
  return block;
}

}  // namespace maxcosine
