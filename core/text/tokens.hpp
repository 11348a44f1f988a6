// Features of texts: words, n-grams of words, and n-grams of characters, as hashed columns or as names.
//
// Words are runs of letters, marks, numbers and connectors (Unicode's L, M, N and Pc); Han and kana characters are
// words of one character. ASCII letters become lower case here. Whoever calls normalizes other texts before.
//
// A name is a prefix and a text. The column of a feature comes from the hash of the text, whose seed is the hash of the
// prefix, so it is `column_of_name(prefix, text)`. An n-gram of words has single blanks between them. Characters are
// counted in the words with single blanks between them, before the first and behind the last.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "bytes.hpp"
#include "letter_ranges.hpp"
#include "parsed_block.hpp"

namespace maxcosine {

struct TokenOptions {
  unsigned bits = 0;          // columns are 0 to 2^bits - 1; 0: features are names
  std::size_t ngrams = 1;     // up to so many words in a row; 0: no words
  std::size_t min_chars = 0;  // from so many characters in a row
  std::size_t max_chars = 0;  // up to so many; 0: no characters
  bool keep_names = false;    // of hashed features: of each column at least the first name
};

struct TokenizedTexts {
  Buffer<std::int64_t> indptr = Buffer<std::int64_t>(1, 0);
  Buffer<std::uint32_t> columns;     // empty if features are names
  Buffer<char> letters;              // names, one after another
  Buffer<std::int64_t> name_starts = Buffer<std::int64_t>(1, 0);
  Buffer<std::uint32_t> name_columns;  // the column of each kept name
};

// The lower-case letter for each ASCII character of a word; 0 for the others.
[[nodiscard]] constexpr std::array<char, 128> make_ascii_letters() {
  std::array<char, 128> letters{};
  for (char c = 'a'; c <= 'z'; ++c) letters[std::size_t(c)] = letters[std::size_t(c - 'a' + 'A')] = c;
  for (char c = '0'; c <= '9'; ++c) letters[std::size_t(c)] = c;
  letters['_'] = '_';
  return letters;
}
inline constexpr std::array<char, 128> ASCII_LETTERS = make_ascii_letters();

enum class LetterKind { none, of_word, alone };

[[nodiscard]] inline LetterKind kind_of(std::uint32_t point) {
  const LetterRange* range = std::upper_bound(std::begin(LETTER_RANGES), std::end(LETTER_RANGES), point,
                                              [](std::uint32_t p, const LetterRange& r) { return p < r.first; });
  if (range == std::begin(LETTER_RANGES) || point > (--range)->last) return LetterKind::none;
  return range->alone ? LetterKind::alone : LetterKind::of_word;
}

struct CodePoint {
  std::uint32_t point;
  std::size_t length;  // in bytes
};

// The character beyond ASCII at p. A byte that is not UTF-8 is a character that is no letter.
[[nodiscard]] inline CodePoint read_code_point(const char* p, const char* stop) {
  const auto lead = static_cast<unsigned char>(*p);
  const std::size_t length = lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 0;
  if (length == 0 || std::size_t(stop - p) < length) return {0, 1};
  std::uint32_t point = lead & (0x7Fu >> length);
  for (std::size_t k = 1; k < length; ++k) {
    const auto byte = static_cast<unsigned char>(p[k]);
    if ((byte & 0xC0) != 0x80) return {0, 1};
    point = (point << 6) | (byte & 0x3F);
  }
  return {point, length};
}

class Tokenizer {
 public:
  Tokenizer(std::string_view word_prefix, std::string_view char_prefix, const TokenOptions& options)
      : options_(options), word_prefix_(word_prefix), char_prefix_(char_prefix) {}

  // Adds a text as the next row.
  void add(std::string_view text) {
    split(text);
    if (options_.ngrams > 0) add_words();
    if (options_.max_chars > 0) add_characters();
    found_.indptr.push_back(static_cast<std::int64_t>(
        options_.bits > 0 ? found_.columns.size() : found_.name_starts.size() - 1));
  }

  [[nodiscard]] TokenizedTexts take() && { return std::move(found_); }

 private:
  // What names begin with.
  struct Prefix {
    std::string text;
    std::uint64_t seed;

    explicit Prefix(std::string_view name) : text(name) {
      std::string padded = text;
      padded.append(PADDING, '\0');
      seed = hash_token(padded.data(), padded.data() + text.size(), 0).hash;
    }
  };

  struct Word {
    std::size_t start, stop;  // in letters_
  };

  // Writes " word word ... " to letters_, in lower case, and where the words are.
  void split(std::string_view text) {
    letters_.resize(2 * text.size() + 1 + PADDING);  // each byte, a blank after each word, and the first blank
    words_.clear();
    const char *p = text.data(), *const stop = p + text.size();
    char* const first = letters_.data();
    char* out = first;
    char* start = nullptr;  // of the present word
    *out++ = ' ';
    const auto end_word = [&] {
      if (start == nullptr) return;
      words_.push_back({std::size_t(start - first), std::size_t(out - first)});
      *out++ = ' ';
      start = nullptr;
    };
    while (p < stop) {
      if (static_cast<signed char>(*p) >= 0) {
        const char letter = ASCII_LETTERS[static_cast<unsigned char>(*p++)];
        if (letter == 0) {
          end_word();
        } else {
          if (start == nullptr) start = out;
          *out++ = letter;
        }
        continue;
      }
      const CodePoint character = read_code_point(p, stop);
      const LetterKind kind = kind_of(character.point);
      if (kind != LetterKind::of_word) end_word();
      if (kind != LetterKind::none) {
        if (start == nullptr) start = out;
        std::memcpy(out, p, character.length);
        out += character.length;
      }
      if (kind == LetterKind::alone) end_word();
      p += character.length;
    }
    end_word();
    n_letters_ = std::size_t(out - first);
  }

  void add_words() {
    for (std::size_t k = 0; k < words_.size(); ++k)
      for (std::size_t n = 1; n <= options_.ngrams && k + n <= words_.size(); ++n)
        add_feature(word_prefix_, words_[k].start, words_[k + n - 1].stop);
  }

  void add_characters() {
    if (words_.empty()) return;
    points_.clear();
    for (std::size_t k = 0; k < n_letters_; ++k)
      if ((static_cast<unsigned char>(letters_[k]) & 0xC0) != 0x80) points_.push_back(k);
    const std::size_t n_points = points_.size();
    points_.push_back(n_letters_);
    for (std::size_t k = 0; k < n_points; ++k)
      for (std::size_t n = options_.min_chars; n <= options_.max_chars && k + n <= n_points; ++n)
        if (n > 1 || letters_[points_[k]] != ' ') add_feature(char_prefix_, points_[k], points_[k + n]);
  }

  void add_feature(const Prefix& prefix, std::size_t start, std::size_t stop) {
    const char* const text = letters_.data();
    if (options_.bits == 0) {
      add_name(prefix, text + start, text + stop);
      return;
    }
    const Token token = hash_token(text + start, text + stop, prefix.seed);
    const auto column = static_cast<std::uint32_t>(column_of(token.hash, options_.bits));
    found_.columns.push_back(column);
    if (!options_.keep_names || recent_[column % recent_.size()] == column + 1) return;
    recent_[column % recent_.size()] = column + 1;
    add_name(prefix, text + start, text + stop);
    found_.name_columns.push_back(column);
  }

  void add_name(const Prefix& prefix, const char* start, const char* stop) {
    found_.letters.insert(found_.letters.end(), prefix.text.begin(), prefix.text.end());
    found_.letters.insert(found_.letters.end(), start, stop);
    found_.name_starts.push_back(static_cast<std::int64_t>(found_.letters.size()));
  }

  TokenOptions options_;
  Prefix word_prefix_, char_prefix_;
  TokenizedTexts found_;
  Buffer<char> letters_;
  std::size_t n_letters_ = 0;
  std::vector<Word> words_;
  std::vector<std::size_t> points_;  // where the characters begin, and where the last one ends
  // Columns whose names were kept a short while ago, plus 1: most names would be kept many times.
  std::vector<std::uint32_t> recent_ = std::vector<std::uint32_t>(1 << 14);
};

}  // namespace maxcosine
