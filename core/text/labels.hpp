// Labels: texts that are compared in canonical form, where numbers are as short as possible.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bytes.hpp"

namespace maxcosine {

// A decimal number: the digits of a whole number, without zeros at either end, times a power of ten.
struct Decimal {
  bool negative;
  std::string digits;
  std::int64_t exponent;
};

inline constexpr std::int64_t MAX_FILL_ZEROS = 20;  // a number with more zeros is written with an exponent
inline constexpr std::size_t MAX_EXPONENT_DIGITS = 18;

[[nodiscard]] inline std::optional<Decimal> read_decimal(std::string_view text) {
  constexpr std::string_view DIGITS = "0123456789";
  const auto take = [&text](std::string_view letters, std::size_t most) {
    const std::size_t n = std::min({text.find_first_not_of(letters), text.size(), most});
    const std::string_view taken = text.substr(0, n);
    text.remove_prefix(n);
    return taken;
  };
  const bool negative = take("+-", 1) == "-";
  std::string digits(take(DIGITS, text.npos));
  const std::string_view decimals = take(".", 1).empty() ? "" : take(DIGITS, text.npos);
  digits += decimals;
  std::int64_t exponent = -static_cast<std::int64_t>(decimals.size());
  if (!take("eE", 1).empty()) {
    const bool small = take("+-", 1) == "-";
    const std::string power(take(DIGITS, MAX_EXPONENT_DIGITS));
    if (power.empty()) return {};
    exponent += small ? -std::stoll(power) : std::stoll(power);
  }
  if (digits.empty() || !text.empty()) return {};
  const std::size_t last = digits.find_last_not_of('0') + 1;
  exponent += static_cast<std::int64_t>(digits.size() - last);
  return Decimal{negative, digits.substr(0, last).erase(0, digits.find_first_not_of('0')), exponent};
}

// A decimal number in its shortest form, with all its digits; any other text unchanged.
//
// "+1", "1.0" and "1e0" become "1", "-1.50" becomes "-1.5", "-0" becomes "0"; "1e100" and "spam" stay.
[[nodiscard]] inline std::string canonical_label(std::string_view text) {
  std::optional<Decimal> decimal = read_decimal(text);
  if (!decimal) return std::string(text);
  auto& [negative, digits, exponent] = *decimal;
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

// Gives labels their codes, in order of their first row. Different tokens may be the same label, as "+1" and "1" are.
class LabelTable {
 public:
  [[nodiscard]] std::int32_t code_of(const Token& token) {
    const auto found = codes_.find(token.text());
    return found != codes_.end() ? found->second : add(token.text());
  }

  [[nodiscard]] const std::vector<std::string>& labels() const { return labels_; }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };

  std::int32_t add(std::string_view token) {
    std::string label = canonical_label(token);
    const auto [found, is_new] = codes_.try_emplace(label, static_cast<std::int32_t>(labels_.size()));
    const std::int32_t code = found->second;
    if (is_new) labels_.push_back(std::move(label));
    codes_.try_emplace(std::string(token), code);
    return code;
  }

  std::unordered_map<std::string, std::int32_t, Hash, std::equal_to<>> codes_;  // of tokens and of labels
  std::vector<std::string> labels_;
};

}  // namespace maxcosine
