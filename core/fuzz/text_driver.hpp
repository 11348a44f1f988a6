// What the drivers of both text formats share: options from the first byte of the input, memory of exactly the promised
// size, and a comparison of the fast code with the plain code.
//
// The parsers read plain features between token boundaries, and any others with code that reads one byte after another.
// Where every blank is doubled, no feature is plain. So both kinds of code read the same features, and must agree.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "../text/svmlight.hpp"
#include "../text/vw.hpp"

namespace maxcosine {

[[nodiscard]] inline ReadOptions options_of(std::uint8_t byte) {
  static constexpr unsigned BITS[] = {0, 0, 3, 20};
  const unsigned bits = BITS[byte & 3];
  return {bits, bits == 0 && (byte & 1) != 0, {(byte & 4) != 0, (byte & 8) != 0}, (byte & 16) != 0, (byte & 32) != 0};
}

// Parses a text in memory that ends right behind the padding, so that a sanitizer sees reads beyond it.
template <class Parse>
[[nodiscard]] auto parse_padded(const std::string& text, Parse parse) {
  std::vector<char> memory(text.size() + 2 * PADDING, '7');
  std::copy(text.begin(), text.end(), memory.begin() + PADDING);
  return parse(std::string_view(memory.data() + PADDING, text.size()));
}

template <class T>
[[nodiscard]] bool same_bytes(const Buffer<T>& a, const Buffer<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

// Compares what the parser returns for a text and for the text with doubled blanks.
template <class Parse>
void check_doubled(const std::string& text, Parse parse) {
  std::string doubled;
  std::vector<std::int64_t> moved_to;  // for each position in `text`
  for (const char c : text) {
    moved_to.push_back(static_cast<std::int64_t>(doubled.size()));
    doubled.append(is_blank(c) ? 2 : 1, c);
  }
  moved_to.push_back(static_cast<std::int64_t>(doubled.size()));
  const auto a = parse_padded(text, parse), b = parse_padded(doubled, parse);
  bool same = same_bytes(a.indptr, b.indptr) && same_bytes(a.keys, b.keys) && same_bytes(a.values, b.values) &&
              same_bytes(a.codes, b.codes) && same_bytes(a.weights, b.weights) && same_bytes(a.squares, b.squares) &&
              same_bytes(a.letters, b.letters) && same_bytes(a.name_starts, b.name_starts) &&
              same_bytes(a.name_columns, b.name_columns) && same_bytes(a.row_lines, b.row_lines) &&
              a.labels.labels() == b.labels.labels() && a.n_lines == b.n_lines && a.faults.size() == b.faults.size();
  for (std::size_t k = 0; same && k < a.row_starts.size(); ++k) same = moved_to[a.row_starts[k]] == b.row_starts[k];
  for (std::size_t k = 0; same && k < a.faults.size(); ++k)
    same = a.faults[k].code == b.faults[k].code && moved_to[a.faults[k].position] == b.faults[k].position;
  if (same) return;
  std::fprintf(stderr, "the result depends on the number of blanks:\n%s\n", text.c_str());
  std::abort();
}

}  // namespace maxcosine
