// Labels: texts that are compared in canonical form, where numbers are as short as possible.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bytes.hpp"
#include "numbers.hpp"

namespace maxcosine {

// A decimal number as the digits of a whole number, without zeros at either end, and a power of ten.
struct Decimal {
  std::string digits;
  std::int64_t exponent = 0;
  bool negative = false;
};

inline constexpr std::int64_t MAX_FILL_ZEROS = 20;  // a number with more zeros is written with an exponent
inline constexpr std::size_t MAX_EXPONENT_DIGITS = 18;

// Whether the text is a decimal number, and which.
[[nodiscard]] inline bool read_decimal(std::string_view text, Decimal& decimal) {
  const auto skip_sign = [&] {
    const bool signed_number = !text.empty() && (text[0] == '-' || text[0] == '+');
    const bool negative = signed_number && text[0] == '-';
    text.remove_prefix(signed_number);
    return negative;
  };
  const auto take_digits = [&] {
    const std::size_t n = std::find_if_not(text.begin(), text.end(), is_digit) - text.begin();
    const std::string_view digits = text.substr(0, n);
    text.remove_prefix(n);
    return digits;
  };
  decimal.negative = skip_sign();
  decimal.digits = take_digits();
  if (!text.empty() && text[0] == '.') {
    text.remove_prefix(1);
    const std::string_view decimals = take_digits();
    decimal.digits += decimals;
    decimal.exponent = -static_cast<std::int64_t>(decimals.size());
  }
  if (decimal.digits.empty()) return false;
  if (!text.empty() && (text[0] | 0x20) == 'e') {
    text.remove_prefix(1);
    const bool negative = skip_sign();
    const std::string_view exponent = take_digits();
    if (exponent.empty() || exponent.size() > MAX_EXPONENT_DIGITS) return false;
    const std::int64_t power = std::stoll(std::string(exponent));
    decimal.exponent += negative ? -power : power;
  }
  const std::size_t last = decimal.digits.find_last_not_of('0') + 1;
  decimal.exponent += static_cast<std::int64_t>(decimal.digits.size() - last);
  decimal.digits.resize(last);
  decimal.digits.erase(0, decimal.digits.find_first_not_of('0'));
  return text.empty();
}

// A decimal number in its shortest form, with all its digits; any other text unchanged.
//
// "+1", "1.0" and "1e0" become "1", "-1.50" becomes "-1.5", "-0" becomes "0"; "1e100" and "spam" stay.
[[nodiscard]] inline std::string canonical_label(std::string_view text) {
  Decimal decimal;
  if (!read_decimal(text, decimal)) return std::string(text);
  auto& [digits, exponent, negative] = decimal;
  if (digits.empty()) return "0";
  const auto n_digits = static_cast<std::int64_t>(digits.size());
  const std::string sign = negative ? "-" : "";
  if (0 <= exponent && exponent <= MAX_FILL_ZEROS) return sign + digits + std::string(exponent, '0');
  if (-MAX_FILL_ZEROS - n_digits <= exponent && exponent < 0) {
    if (n_digits <= -exponent) digits.insert(0, 1 - exponent - n_digits, '0');
    digits.insert(digits.size() + exponent, 1, '.');
    return sign + digits;
  }
  const std::int64_t power = exponent + n_digits - 1;
  if (n_digits > 1) digits.insert(1, 1, '.');
  return sign + digits + "e" + std::to_string(power);
}

// Gives labels their codes, in order of their first row: a hash table of tokens with open addressing, half full at
// most. Different tokens may be the same label, as "+1" and "1" are.
class LabelTable {
 public:
  [[nodiscard]] std::int32_t code_of(const Token& token) {
    std::size_t place = place_of(token.hash);
    for (; places_[place] >= 0; place = (place + 1) & (places_.size() - 1)) {
      const Known& known = tokens_[places_[place]];
      if (known.hash == token.hash && known.text == token.text()) return known.code;
    }
    return add(token, place);
  }

  [[nodiscard]] const std::vector<std::string>& labels() const { return labels_; }

 private:
  struct Known {
    std::string text;
    std::uint64_t hash;
    std::int32_t code;
  };

  [[nodiscard]] std::size_t place_of(std::uint64_t hash) const {
    return column_of(hash, std::countr_zero(places_.size()));
  }

  std::int32_t add(const Token& token, std::size_t place) {
    std::string label = canonical_label(token.text());
    const auto [found, is_new] = codes_.try_emplace(label, static_cast<std::int32_t>(labels_.size()));
    if (is_new) labels_.push_back(std::move(label));
    places_[place] = static_cast<std::int32_t>(tokens_.size());
    tokens_.push_back({std::string(token.text()), token.hash, found->second});
    if (2 * tokens_.size() > places_.size()) grow();
    return found->second;
  }

  void grow() {
    places_.assign(2 * places_.size(), -1);
    for (std::size_t k = 0; k < tokens_.size(); ++k) {
      std::size_t place = place_of(tokens_[k].hash);
      while (places_[place] >= 0) place = (place + 1) & (places_.size() - 1);
      places_[place] = static_cast<std::int32_t>(k);
    }
  }

  std::vector<std::int32_t> places_ = std::vector<std::int32_t>(64, -1);  // positions in tokens_, or -1
  std::vector<Known> tokens_;
  std::unordered_map<std::string, std::int32_t> codes_;
  std::vector<std::string> labels_;
};

}  // namespace maxcosine
