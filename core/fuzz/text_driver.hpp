// What the drivers of both text formats share: options from the first byte of the input, memory of exactly the
// promised size, and the comparison with the plain reader.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "plain_text.hpp"

namespace maxcosine {

// The text of an input in memory that ends right behind the padding, so that a sanitizer sees reads beyond it.
class PaddedText {
 public:
  PaddedText(const std::uint8_t* data, std::size_t size, char padding) : memory_(size + 2 * PADDING, padding) {
    std::copy(data, data + size, memory_.begin() + PADDING);
  }
  [[nodiscard]] std::string_view text() const { return {memory_.data() + PADDING, memory_.size() - 2 * PADDING}; }

 private:
  std::vector<char> memory_;
};

[[nodiscard]] inline ReadOptions options_of(std::uint8_t byte) {
  static constexpr unsigned BITS[] = {0, 0, 3, 20};
  const unsigned bits = BITS[byte & 3];
  return {bits, bits == 0 && (byte & 1) != 0, {(byte & 4) != 0, (byte & 8) != 0}, (byte & 16) != 0, (byte & 32) != 0};
}

// Stops the program if the two readers disagree.
inline void expect_equal(const plain::Result& found, const plain::Result& expected, std::string_view text) {
  if (found == expected) return;
  std::fprintf(stderr, "the parser and the plain reader disagree about:\n%.*s\n", static_cast<int>(text.size()), text.data());
  std::abort();
}

}  // namespace maxcosine
