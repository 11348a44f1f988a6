// Where tokens end, found for thousands of bytes at once.
//
// A parser that looks for the end of each token has to finish one token before it can begin the next. With the ends
// known in advance, the processor reads several numbers at the same time (Langdale and Lemire, "Parsing gigabytes of
// JSON per second", The VLDB Journal 28, 2019).
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "avx2.hpp"
#include "bytes.hpp"

namespace maxcosine {

#ifndef __AVX2__
// One bit for each of 64 bytes, the first byte lowest: whether it is a colon, a bar, or at most a space.
[[nodiscard]] inline std::uint64_t boundaries_of_64(const char* p) {
  std::uint64_t bits = 0;
  for (int k = 0; k < 8; ++k) {
    const std::uint64_t found = boundary_bits(load_word(p + 8 * k), ':', '|') >> 7;
    bits |= ((found * 0x0102040810204080) >> 56) << (8 * k);  // moves the lowest bit of each byte to the highest byte
  }
  return bits;
}
#endif

// Positions in a text, ascending.
using Boundaries = std::span<const std::uint32_t>;

inline constexpr std::size_t BOUNDARIES_OF_FEATURE = 3;  // before it, between name and value, behind it

class TokenBoundaries {
 public:
  TokenBoundaries(const char* text, const char* stop) : text_(text), stop_(stop) {}

  // Reads features between boundaries. While p is at a blank, calls read(at) with the boundaries from p on. read()
  // returns the rest of them: the first of the rest is where it stopped. Ends when read() makes no progress, or behind
  // a feature without a blank after it, and returns that position.
  template <class Read>
  [[nodiscard]] const char* read_from(const char* p, Read read) {
    while (is_blank(*p)) {
      const Boundaries at = from(p);
      const Boundaries rest = read(at);
      if (rest.size() == at.size()) break;
      next_ = count_ - rest.size();
      p = text_ + rest[0];
    }
    return p;
  }

 private:
  static constexpr std::size_t SEGMENT = 8192;  // fits into the first-level cache together with its boundaries
  static constexpr std::size_t AT_ONCE = 16;

  // The boundary at p, and those known behind it: at least three in all, unless they are far away.
  [[nodiscard]] Boundaries from(const char* p) {
    const auto wanted = static_cast<std::uint32_t>(p - text_);
    while (next_ < count_ && at_[next_] < wanted) ++next_;
    if (count_ - next_ < BOUNDARIES_OF_FEATURE) find(p);
    return {at_.data() + next_, count_ - next_};
  }

  void find(const char* p) {
    const char* stop = p + std::min<std::size_t>(SEGMENT, stop_ - p);
    next_ = count_ = 0;
    for (; p < stop; p += 64) {
      std::uint64_t bits = boundaries_of_64(p);
      const std::size_t found = std::popcount(bits);
      const auto first = static_cast<std::uint32_t>(p - text_);
      // Always sixteen, of which some may be meaningless: a loop that stops at the right number is mispredicted.
      for (std::size_t k = 0; k < AT_ONCE; ++k, bits &= bits - 1) at_[count_ + k] = first + std::countr_zero(bits);
      for (std::size_t k = AT_ONCE; k < found; ++k, bits &= bits - 1) at_[count_ + k] = first + std::countr_zero(bits);
      count_ += found;
    }
  }

  const char* text_;
  const char* stop_;
  std::size_t next_ = 0, count_ = 0;
  std::array<std::uint32_t, SEGMENT + 64> at_;
};

}  // namespace maxcosine
