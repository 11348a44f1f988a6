// Numbers in text, read eight digits at a time and rounded as Python's float() rounds them.
//
// Most numbers have few digits and a small exponent: one exact multiplication or division gives the nearest double
// (Clinger, "How to read floating point numbers accurately", PLDI 1990). The standard library reads all others.
#pragma once

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>
#include <system_error>
#ifndef __cpp_lib_to_chars
#include <locale.h>
#ifdef __APPLE__
#include <xlocale.h>
#endif
#endif

#include "bytes.hpp"

namespace maxcosine {

inline constexpr double EXACT_POWERS[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                          1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
inline constexpr std::int64_t LARGEST_EXACT_POWER = 22;
inline constexpr std::uint64_t WHOLE_POWERS[] = {1, 10, 100, 1000, 10'000, 100'000, 1'000'000, 10'000'000, 100'000'000};
inline constexpr std::int64_t DIGITS_IN_WORD = 19;  // that many digits always fit into 64 bits
inline constexpr std::int64_t HUGE_EXPONENT = 100'000'000'000'000'000;

[[nodiscard]] constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Each byte that is a digit becomes its value.
[[nodiscard]] constexpr std::uint64_t digit_values(std::uint64_t word) { return word ^ repeat('0'); }

// The high bit of each byte that is not a digit. Bytes after the first of them are not reliable.
[[nodiscard]] constexpr std::uint64_t non_digits(std::uint64_t values) {
  return ((values + repeat(0x80 - 10)) | values) & HIGH_BITS;
}

// Eight digits, the first one in the lowest byte, as one number: pairs, then fours, then all eight.
[[nodiscard]] constexpr std::uint64_t whole_number(std::uint64_t values) {
  constexpr std::uint64_t PAIRS = 0x000000FF000000FF;
  const std::uint64_t pairs = values * 10 + (values >> 8);
  return ((pairs & PAIRS) * (100 + (1'000'000ull << 32)) + ((pairs >> 16) & PAIRS) * (1 + (10'000ull << 32))) >> 32;
}

struct Digits {
  std::uint64_t number;  // modulo 2^64
  const char* stop;
};

// Appends the digits from p on to `number`.
[[nodiscard]] inline Digits read_digits(const char* p, std::uint64_t number) {
  std::uint64_t values = digit_values(load_word(p));
  std::uint64_t others = non_digits(values);
  while (others == 0) {
    number = number * WHOLE_POWERS[8] + whole_number(values);
    p += 8;
    values = digit_values(load_word(p));
    others = non_digits(values);
  }
  const int n = std::countr_zero(others) / 8;
  // Shifting moves the bytes after the digits out, and zeros in before them; in two steps, because n may be 0.
  const std::uint64_t last = whole_number((values << 1) << (63 - 8 * n));
  return {number * WHOLE_POWERS[n] + last, p + n};
}

// The n bytes before `stop` as a number. False if they are not one to eight digits.
[[nodiscard]] inline bool read_last_digits(const char* stop, std::uint64_t n, std::uint64_t& number) {
  const std::uint64_t shift = (8 * (8 - n)) & 63;
  const std::uint64_t values = (digit_values(load_word(stop - 8)) >> shift) << shift;
  number = whole_number(values);
  return (n - 1 < 8) & (non_digits(values) == 0);
}

struct Id {
  std::uint64_t number;
  const char* stop;
  bool fits;  // below 2^64
};

// A whole number of any length.
[[nodiscard]] inline Id read_id(const char* p) {
  while (*p == '0') ++p;
  const auto [number, stop] = read_digits(p, 0);
  const std::int64_t n = stop - p;
  // Numbers of 20 digits that fit begin with 1 and did not wrap around.
  const bool fits = n <= DIGITS_IN_WORD || (n == 20 && *p == '1' && number >= 10'000'000'000'000'000'000u);
  return {number, stop, fits};
}

struct Exponent {
  std::int64_t value;
  const char* stop;  // where it began if there is no exponent
};

// The exponent at p, behind an e.
[[nodiscard]] inline Exponent read_exponent(const char* p) {
  const char* digits = p + (*p == '-' || *p == '+');
  if (!is_digit(*digits)) return {0, p};
  std::int64_t exponent = 0;
  const char* stop = digits;
  for (; is_digit(*stop); ++stop) exponent = std::min(10 * exponent + (*stop - '0'), HUGE_EXPONENT);
  return {*p == '-' ? -exponent : exponent, stop};
}

#ifdef __cpp_lib_to_chars
// The double nearest to the decimal number in [first, last), which has no sign. Its exponent of ten is written from
// `mantissa_stop` on.
[[nodiscard]] inline double nearest_double(const char* first, const char* mantissa_stop, const char* last,
                                           std::int64_t exponent) {
  double value = 0;
  if (std::from_chars(first, last, value).ec != std::errc::result_out_of_range) return value;
  // The place of the first digit that is not zero tells whether the number is too large or too small.
  const char* point = std::find(first, mantissa_stop, '.');
  const char* leading = std::find_if(first, mantissa_stop, [](char c) { return c != '0' && c != '.'; });
  return point - leading + exponent > 0 ? std::numeric_limits<double>::infinity() : 0.0;
}
#else
[[nodiscard]] inline double nearest_double(const char* first, const char*, const char* last, std::int64_t) {
  const std::string number(first, last);
#ifdef _WIN32
  return std::strtod(number.c_str(), nullptr);
#else
  static const locale_t c_locale = newlocale(LC_ALL_MASK, "C", nullptr);
  return strtod_l(number.c_str(), nullptr, c_locale);
#endif
}
#endif

struct Number {
  double value;      // may be infinite
  const char* stop;  // where it began if there is no number
};

// A decimal number, as 12, -0.5, .5, 5. or +1.5e-3.
[[nodiscard]] inline Number read_number(const char* start) {
  const char* first = start + (*start == '-' || *start == '+');
  auto [mantissa, p] = read_digits(first, 0);
  std::int64_t n_digits = p - first, exponent = 0;
  if (*p == '.') {
    const char* decimals = p + 1;
    const Digits all = read_digits(decimals, mantissa);
    mantissa = all.number;
    p = all.stop;
    exponent = decimals - p;
    n_digits -= exponent;
  }
  if (n_digits == 0) return {0.0, start};
  const char* mantissa_stop = p;
  std::int64_t written = 0;
  if ((*p | 0x20) == 'e') {
    const Exponent power = read_exponent(p + 1);
    written = power.value;
    if (power.stop > p + 1) p = power.stop;
  }
  exponent += written;
  double value;
  if (n_digits <= DIGITS_IN_WORD && mantissa <= (std::uint64_t{1} << 53) && exponent <= LARGEST_EXACT_POWER &&
      exponent >= -LARGEST_EXACT_POWER) {
    value = static_cast<double>(static_cast<std::int64_t>(mantissa));
    value = exponent < 0 ? value / EXACT_POWERS[-exponent] : value * EXACT_POWERS[exponent];
  } else {
    value = nearest_double(first, mantissa_stop, p, written);
  }
  return {*start == '-' ? -value : value, p};
}

// The number that fills [first, stop), first tried in the notation that most numbers have: d.ddd or whole, with or
// without a minus. False if [first, stop) is not a number. The number may be infinite.
[[nodiscard]] inline bool read_number_between(const char* first, const char* stop, double& value) {
  const bool negative = *first == '-';
  const char* digits = first + negative;
  const auto n_decimals = static_cast<std::uint64_t>(stop - digits - 2);
  std::uint64_t number;
  if (digits[1] == '.' && is_digit(*digits) && read_last_digits(stop, n_decimals, number)) {
    // Both operands are whole and small, so the quotient is the double nearest to d.ddd.
    number += static_cast<std::uint64_t>(*digits - '0') * WHOLE_POWERS[n_decimals];
    value = static_cast<double>(static_cast<std::int64_t>(number)) / EXACT_POWERS[n_decimals];
  } else if (read_last_digits(stop, static_cast<std::uint64_t>(stop - digits), number)) {
    value = static_cast<double>(static_cast<std::int64_t>(number));
  } else {
    const Number any = read_number(first);
    value = any.value;
    return any.stop == stop && stop != first;
  }
  if (negative) value = -value;
  return true;
}

}  // namespace maxcosine
