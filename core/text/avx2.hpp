// What the parsers do in AVX2 registers: they find token boundaries, and read four svmlight features at once.
//
// This is the only file with intrinsics. Without AVX2, other functions give the same results.
#pragma once

#ifdef __AVX2__

#include <immintrin.h>

#include <bit>
#include <cstdint>
#include <cstring>

#include "bytes.hpp"
#include "numbers.hpp"

namespace maxcosine {

inline constexpr std::size_t FEATURES_AT_ONCE = 4;

// One bit for each of 32 bytes, the first byte lowest: whether it is a colon, a bar, or at most a space.
[[nodiscard]] inline std::uint32_t boundaries_of_32(const char* p) {
  const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  const __m256i at_most_space = _mm256_cmpeq_epi8(_mm256_min_epu8(bytes, _mm256_set1_epi8(' ')), bytes);
  const __m256i colon = _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(':'));
  const __m256i bar = _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8('|'));
  return static_cast<std::uint32_t>(_mm256_movemask_epi8(_mm256_or_si256(at_most_space, _mm256_or_si256(colon, bar))));
}

[[nodiscard]] inline std::uint64_t boundaries_of_64(const char* p) {
  return boundaries_of_32(p) | std::uint64_t{boundaries_of_32(p + 32)} << 32;
}

// One lane for each feature.
using WordLanes = std::uint64_t __attribute__((vector_size(32)));
using FlagLanes = std::int64_t __attribute__((vector_size(32)));  // all bits set, or none
using ValueLanes = double __attribute__((vector_size(32)));

struct FourFeatures {
  WordLanes ids;
  ValueLanes values;
  std::size_t count;  // lanes that are features; 0 if not all features up to the end of the line are plain
};

template <class T>
struct LanesOf {
  typedef T type __attribute__((vector_size(4 * sizeof(T))));
};

template <class T, class Lanes>
inline void store_four(T* to, Lanes lanes) {
  const auto converted = __builtin_convertvector(lanes, typename LanesOf<T>::type);
  std::memcpy(to, &converted, sizeof converted);
}

[[nodiscard]] inline unsigned lane_bits(FlagLanes flags) {
  return static_cast<unsigned>(_mm256_movemask_pd(std::bit_cast<__m256d>(flags)));
}

// The words at the boundaries at[0], at[2], at[4] and at[6].
[[nodiscard]] inline WordLanes load_words(const char* text, const std::uint32_t* at) {
  return WordLanes{load_word(text + at[0]), load_word(text + at[2]), load_word(text + at[4]), load_word(text + at[6])};
}

// Sets all but the last `counts` bytes, 1 to 8, of each word to zero.
[[nodiscard]] inline WordLanes last_bytes(WordLanes words, WordLanes counts) {
  const WordLanes shift = ((8 - counts) << 3) & 63;
  return (words >> shift) << shift;
}

// As whole_number, in each lane.
[[nodiscard]] inline WordLanes whole_numbers(WordLanes values) {
  const __m256i pairs = _mm256_maddubs_epi16(std::bit_cast<__m256i>(values), _mm256_set1_epi16(10 | 1 << 8));
  const __m256i fours = _mm256_madd_epi16(pairs, _mm256_set1_epi32(100 | 1 << 16));
  const WordLanes high = std::bit_cast<WordLanes>(_mm256_mul_epu32(fours, _mm256_set1_epi64x(10'000)));
  return high + (std::bit_cast<WordLanes>(fours) >> 32);
}

// The number of bytes that are 0xFF, where all others are 0.
[[nodiscard]] inline WordLanes count_bytes(WordLanes bytes) {
  const WordLanes ones = bytes & repeat(1);
  return std::bit_cast<WordLanes>(_mm256_sad_epu8(std::bit_cast<__m256i>(ones), _mm256_setzero_si256()));
}

// Ten to the powers 0 to 7.
[[nodiscard]] inline ValueLanes powers_of_ten(WordLanes exponents) {
  const ValueLanes one = ValueLanes{1, 1, 1, 1};
  return ((exponents & 1) != 0 ? one * 1e1 : one) * ((exponents & 2) != 0 ? one * 1e2 : one) *
         ((exponents & 4) != 0 ? one * 1e4 : one);
}

// Whole numbers below 2^52 as doubles.
[[nodiscard]] inline ValueLanes to_doubles(WordLanes numbers) {
  return std::bit_cast<ValueLanes>(numbers | std::bit_cast<std::uint64_t>(0x1p52)) - 0x1p52;
}

// Reads four features that begin with the blank at at[0], or those up to the end of the line: one to eight digits, a
// colon, and a number of at most eight digits and a point, with or without a minus; a space or a newline behind each.
[[nodiscard]] inline FourFeatures read_four_features(const char* text, const std::uint32_t* at) {
  const auto end = [&](int k) { return static_cast<std::uint64_t>(text[at[k]]); };
  const WordLanes ends = {end(2), end(4), end(6), end(8)};
  const FlagLanes newline = ends == '\n';
  const unsigned newlines = lane_bits(newline);
  const unsigned wanted = (newlines ^ (newlines - 1)) & 0xF;  // lanes up to the first newline

  WordLanes pairs, next_pairs;  // boundaries: the blank in the lower half, the colon in the upper half
  std::memcpy(&pairs, at, sizeof pairs);
  std::memcpy(&next_pairs, at + 2, sizeof next_pairs);
  const WordLanes colons = pairs >> 32;
  const WordLanes n_id_digits = colons - (pairs & 0xFFFFFFFF) - 1;
  const WordLanes id_digits = last_bytes(load_words(text - 8, at + 1) ^ repeat('0'), n_id_digits);

  const WordLanes heads = load_words(text, at + 1);
  const FlagLanes negative = ((heads >> 8) & 0xFF) == '-';
  const WordLanes size = (next_pairs & 0xFFFFFFFF) - colons - 1 + std::bit_cast<WordLanes>(negative);
  WordLanes digits = last_bytes(load_words(text - 8, at + 2) ^ repeat('0'), size);

  // Close the gap at the point: the digits before it move up by one byte.
  const WordLanes not_point = digits ^ repeat('.' ^ '0');
  const WordLanes points = (not_point - repeat(1)) & ~not_point & HIGH_BITS;
  const FlagLanes has_point = points != 0;
  const WordLanes first_point = (points & -points) >> 7;  // the lowest bit of its byte
  const WordLanes decimals = ~((first_point << 8) - 1);   // the bytes behind it
  digits = has_point ? (digits & decimals) | ((digits & (first_point - 1)) << 8) : digits;

  const WordLanes non_digit =
      ((digits + repeat(0x80 - 10)) | digits | (id_digits + repeat(0x80 - 10)) | id_digits) & HIGH_BITS;
  const FlagLanes plain = (newline | (ends == ' ')) & ((heads & 0xFF) == ':') & (n_id_digits - 1 < 8) & (size - 1 < 8) &
                          (non_digit == 0) & ~(has_point & (size == 1));
  const ValueLanes values = to_doubles(whole_numbers(digits)) / powers_of_ten(count_bytes(decimals));
  const WordLanes signs = std::bit_cast<WordLanes>(negative) & std::bit_cast<std::uint64_t>(-0.0);
  const std::size_t count = (lane_bits(plain) & wanted) == wanted ? std::popcount(wanted) : 0;
  return {whole_numbers(id_digits), std::bit_cast<ValueLanes>(std::bit_cast<WordLanes>(values) | signs), count};
}

}  // namespace maxcosine

#endif
