// Bytes of text: words of eight bytes, blanks and line ends, tokens and their hashes, UTF-8.
//
// Every text that the parsers read ends with a newline, and PADDING bytes are readable before and after it. A scan
// therefore ends at a newline at the latest, and eight bytes can be read from any position. Lines end in LF or
// CR LF; a CR elsewhere is a letter like any other.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace maxcosine {

// Bytes that must be readable before and after a block of text.
inline constexpr std::size_t PADDING = 128;

[[nodiscard]] constexpr std::uint64_t repeat(unsigned char byte) { return byte * 0x0101010101010101u; }

inline constexpr std::uint64_t HIGH_BITS = repeat(0x80);
inline constexpr std::uint64_t LOW_BITS = repeat(0x7F);

// Eight bytes, the first one lowest.
[[nodiscard]] inline std::uint64_t load_word(const char* p) {
  std::uint64_t word;
  std::memcpy(&word, p, sizeof word);
  if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap64(word);
  return word;
}

[[nodiscard]] constexpr bool is_blank(char c) { return c == ' ' || c == '\t'; }

[[nodiscard]] inline bool ends_line(const char* p) { return *p == '\n' || (*p == '\r' && p[1] == '\n'); }

// Whether a number ends here: at a blank, at the end of the line, or at `mark`.
[[nodiscard]] inline bool is_separator(const char* p, char mark) { return is_blank(*p) || *p == mark || ends_line(p); }

[[nodiscard]] inline const char* skip_blanks(const char* p) {
  while (is_blank(*p)) ++p;
  return p;
}

// Multiplicative hashing: 2^64 divided by the golden ratio, as in Knuth, volume 3, section 6.4.
inline constexpr std::uint64_t GOLDEN = 0x9E3779B97F4A7C15;

[[nodiscard]] constexpr std::uint64_t mix(std::uint64_t key) { return (key ^ (key >> 32)) * GOLDEN; }

// The column of a hash, 0 to 2^bits - 1; `bits` is at least 1.
[[nodiscard]] constexpr std::uint64_t column_of(std::uint64_t hash, unsigned bits) {
  return ((hash ^ (hash >> 29)) * GOLDEN) >> (64 - bits);
}

// The column of an id: the id itself if it is a column, else the column of its hash.
[[nodiscard]] constexpr std::uint64_t column_of_id(std::uint64_t id, unsigned bits) {
  return id >> bits != 0 ? column_of(mix(id), bits) : id;
}

// The high bit of each byte that is at most a space, or equal to `a` or `b`.
[[nodiscard]] constexpr std::uint64_t boundary_bits(std::uint64_t word, char a, char b) {
  const std::uint64_t not_a = word ^ repeat(a), not_b = word ^ repeat(b);
  const std::uint64_t above_space = ((word & LOW_BITS) + repeat(0x7F - ' ')) | word;
  const std::uint64_t other_than_a = ((not_a & LOW_BITS) + LOW_BITS) | not_a;
  const std::uint64_t other_than_b = ((not_b & LOW_BITS) + LOW_BITS) | not_b;
  return ~(above_space & other_than_a & other_than_b) & HIGH_BITS;
}

// Whether a byte below a space is part of a token all the same: any control character except tab, newline, NUL and
// the CR of a line end.
[[nodiscard]] inline bool is_control_letter(const char* p) {
  const auto byte = static_cast<unsigned char>(*p);
  return byte < ' ' && byte != '\t' && byte != '\0' && !ends_line(p);
}

struct Token {
  const char* start = nullptr;
  const char* stop = nullptr;
  std::uint64_t hash = 0;
  bool ascii = true;

  [[nodiscard]] bool empty() const { return start == stop; }
  [[nodiscard]] std::string_view text() const { return {start, static_cast<std::size_t>(stop - start)}; }
};

// The token [start, stop) with its hash: cut the bytes into words of eight, the first byte lowest; the last word has
// 0 to 7 bytes, with zeros above them. Starting from `seed`, xor each word to the hash and mix. No token contains a
// NUL, so the words determine the length.
[[nodiscard]] inline Token hash_token(const char* start, const char* stop, std::uint64_t seed) {
  std::uint64_t hash = seed, all = 0;
  const char* p = start;
  for (; stop - p >= 8; p += 8) {
    const std::uint64_t word = load_word(p);
    hash = mix(hash ^ word);
    all |= word;
  }
  const std::uint64_t last = load_word(p) & ((std::uint64_t{1} << 8 * (stop - p)) - 1);
  return {start, stop, mix(hash ^ last), ((all | last) & HIGH_BITS) == 0};
}

// Reads a token up to a blank, the end of the line, a NUL, or one of the bytes `a` and `b`.
[[nodiscard]] inline Token read_token(const char* start, char a, char b, std::uint64_t seed) {
  for (const char* p = start;; p += 8) {
    std::uint64_t found = boundary_bits(load_word(p), a, b);
    while (found != 0 && is_control_letter(p + std::countr_zero(found) / 8)) found &= found - 1;
    if (found != 0) return hash_token(start, p + std::countr_zero(found) / 8, seed);
  }
}

// The first position in a token where the text is not UTF-8 (RFC 3629), or its end.
[[nodiscard]] inline const char* first_not_utf8(const char* p, const char* stop) {
  static constexpr std::array<std::uint32_t, 4> LEAST{0, 0x80, 0x800, 0x10000};  // by number of continuation bytes
  while (p < stop) {
    const auto lead = static_cast<unsigned char>(*p);
    if ((lead >= 0x80 && lead < 0xC0) || lead >= 0xF8) return p;
    const int n = (lead >= 0xC0) + (lead >= 0xE0) + (lead >= 0xF0);
    std::uint32_t point = lead & (n == 0 ? 0x7F : 0x3F >> n);
    for (int k = 1; k <= n; ++k) {  // a byte that ends the token is no continuation byte
      const auto byte = static_cast<unsigned char>(p[k]);
      if ((byte & 0xC0) != 0x80) return p;
      point = (point << 6) | (byte & 0x3F);
    }
    if (point < LEAST[n] || point > 0x10FFFF || (point >= 0xD800 && point < 0xE000)) return p;
    p += n + 1;
  }
  return stop;
}

}  // namespace maxcosine
