// The two text formats read by the plainest code: split, strtod, loops over bytes. The parsers must agree with it.
#pragma once

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../text/svmlight.hpp"
#include "../text/vw.hpp"

namespace maxcosine::plain {

using std::size_t;
using std::string;
using std::string_view;

// A value that is compared by its bits; infinite values of colliding columns may make any NaN of it.
struct Bits {
  double value;

  bool operator==(const Bits& other) const {
    return std::bit_cast<std::uint64_t>(value) == std::bit_cast<std::uint64_t>(other.value) ||
           (std::isnan(value) && std::isnan(other.value));
  }
};

struct Row {
  std::int64_t line = 0, start = 0;
  string label;  // empty: none
  double weight = 1;
  std::vector<string> keys;  // ids and columns as decimal numbers, or names
  std::vector<Bits> values;

  bool operator==(const Row&) const = default;
};

struct Result {
  std::vector<Row> rows;
  std::vector<std::vector<std::int64_t>> faults;  // line, start, stop, position, code
  std::int64_t n_lines = 0;

  bool operator==(const Result&) const = default;
};

// Thrown where a line is at fault.
struct Bad {
  size_t position;
  FaultCode code;
};

struct Piece {
  size_t position;
  string_view text;
};

inline std::vector<Piece> split(string_view text, size_t position) {
  std::vector<Piece> pieces;
  for (size_t k = text.find_first_not_of(" \t"); k != text.npos; k = text.find_first_not_of(" \t", k)) {
    const size_t stop = std::min(text.find_first_of(" \t", k), text.size());
    pieces.push_back({position + k, text.substr(k, stop - k)});
    k = stop;
  }
  return pieces;
}

inline double number(string_view text, size_t position) {
  if (text.empty()) throw Bad{position, FaultCode::NO_VALUE};
  string lower(text.substr(text[0] == '+' || text[0] == '-'));
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c += 'a' - 'A';
  if (lower == "nan" || lower == "inf" || lower == "infinity") throw Bad{position, FaultCode::NOT_FINITE};
  const string copy(text);
  char* stop = nullptr;
  const double value = std::strtod(copy.c_str(), &stop);
  if (text.find_first_not_of("0123456789+-.eE") != text.npos || *stop != '\0' || stop == copy.c_str())
    throw Bad{position, FaultCode::NOT_A_NUMBER};
  if (std::isinf(value)) throw Bad{position, FaultCode::TOO_LARGE};
  return value;
}

inline void check_utf8(string_view text, size_t position) {
  const char* bad = first_not_utf8(text.data(), text.data() + text.size());
  if (bad < text.data() + text.size()) throw Bad{position + (bad - text.data()), FaultCode::NOT_TEXT};
}

inline std::uint64_t hash(std::uint64_t seed, string_view text) {
  for (size_t k = 0; k <= text.size(); k += 8) {
    std::uint64_t word = 0;
    for (size_t i = k; i < std::min(k + 8, text.size()); ++i)
      word |= std::uint64_t(static_cast<unsigned char>(text[i])) << 8 * (i - k);
    seed = (seed ^ word ^ ((seed ^ word) >> 32)) * GOLDEN;
  }
  return seed;
}

template <class Value>
void add(Row& row, const string& key, double value, size_t position) {
  if (std::isinf(static_cast<Value>(value))) throw Bad{position, FaultCode::TOO_LARGE};
  row.keys.push_back(key);
  row.values.push_back({static_cast<Value>(value)});
}

// A line without a comment and without a NUL; false if it is not a row.
template <class Value>
bool read_svmlight(string_view line, size_t start, const ReadOptions& options, Row& row) {
  auto pieces = split(line.substr(0, line.find('#')), start);
  if (pieces.empty()) return false;
  if (pieces[0].text.find(':') == string_view::npos) {
    check_utf8(pieces[0].text, pieces[0].position);
    row.label = canonical_label(pieces[0].text);
    pieces.erase(pieces.begin());
  }
  for (const auto& [position, text] : pieces) {
    if (text.starts_with("qid:")) continue;
    const size_t n = std::min(text.find_first_not_of("0123456789"), text.size());
    if (n == 0 || (n < text.size() && text[n] != ':')) throw Bad{position, FaultCode::BAD_ID};
    if (n == text.size()) throw Bad{position, FaultCode::NO_COLON};
    errno = 0;
    std::uint64_t key = std::strtoull(string(text.substr(0, n)).c_str(), nullptr, 10);
    if (errno == ERANGE) throw Bad{position, FaultCode::LARGE_ID};
    if (!options.exact && options.bits == 0 && key >= MAX_COLUMNS) throw Bad{position, FaultCode::NO_COLUMN};
    if (options.bits != 0 && key >> options.bits != 0) key = column_of(mix(key), options.bits);
    add<Value>(row, std::to_string(key), number(text.substr(n + 1), position + n + 1), position + n + 1);
  }
  return true;
}

template <class Value>
void read_section(string_view section, size_t position, const ReadOptions& options, Row& row) {
  const string_view first = section.substr(0, section.find_first_of(" \t"));
  const size_t colon = first.find(':');
  const string_view space = first.substr(0, colon);
  if (options.exact) check_utf8(space, position);
  const double scale = colon == first.npos ? 1 : number(first.substr(colon + 1), position + colon + 1);
  for (const auto& [at, text] : split(section.substr(first.size()), position + first.size())) {
    const size_t stop = std::min(text.find(':'), text.size());
    const string_view name = text.substr(0, stop);
    if (name.empty()) throw Bad{at, FaultCode::NO_NAME};
    if (options.exact) check_utf8(name, at);
    const double value = stop == text.size() ? 1 : number(text.substr(stop + 1), at + stop + 1);
    const string key = !options.exact  ? std::to_string(column_of(hash(hash(0, space), name), options.bits))
                       : space.empty() ? string(name)
                                       : string(space) + "^" + string(name);
    add<Value>(row, key, value * scale, at);
  }
}

template <class Value>
bool read_vw(string_view line, size_t start, const ReadOptions& options, Row& row) {
  if (split(line, start).empty()) return false;
  size_t bar = line.find('|');
  if (bar == line.npos) throw Bad{start, FaultCode::NO_BAR};
  auto pieces = split(line.substr(0, bar), start);
  if (!pieces.empty() && (!is_blank(line[bar - 1]) || pieces.back().text[0] == '\'')) pieces.pop_back();
  if (pieces.size() > 3) throw Bad{pieces[3].position, FaultCode::TOO_MANY};
  if (!pieces.empty()) check_utf8(pieces[0].text, pieces[0].position);
  if (!pieces.empty()) row.label = canonical_label(pieces[0].text);
  if (pieces.size() > 1) row.weight = number(pieces[1].text, pieces[1].position);
  if (row.weight < 0) throw Bad{pieces[1].position, FaultCode::NEGATIVE_WEIGHT};
  if (pieces.size() > 2) (void)number(pieces[2].text, pieces[2].position);
  while (bar < line.size()) {
    const size_t next = std::min(line.find('|', bar + 1), line.size());
    read_section<Value>(line.substr(bar + 1, next - bar - 1), start + bar + 1, options, row);
    bar = next;
  }
  return true;
}

// Adds up equal keys, drops zeros, transforms.
template <class Value>
void canonicalize(Row& row, const Transform& transform) {
  const Row given = std::exchange(row, {row.line, row.start, row.label, row.weight, {}, {}});
  for (size_t k = 0; k < given.keys.size(); ++k) {
    const size_t at = std::find(row.keys.begin(), row.keys.end(), given.keys[k]) - row.keys.begin();
    if (at == row.keys.size()) {
      row.keys.push_back(given.keys[k]);
      row.values.push_back(given.values[k]);
    } else {
      double& sum = row.values[at].value;
      sum = static_cast<Value>(static_cast<Value>(sum) + static_cast<Value>(given.values[k].value));
    }
  }
  for (size_t k = row.keys.size(); k-- > 0;) {
    if (row.values[k].value != 0) continue;
    row.keys.erase(row.keys.begin() + k);
    row.values.erase(row.values.begin() + k);
  }
  double square = 0;
  for (auto& [value] : row.values) {
    if (transform.log1p) value = static_cast<Value>(value < 0 ? -std::log1p(-value) : std::log1p(value));
    square += value * value;
  }
  if (!transform.l2 || !(square > 0)) return;
  for (auto& [value] : row.values) value = static_cast<Value>(value / std::sqrt(square));
}

// Reads a block line by line with read_row(line, start, options, row).
template <class Value, class ReadRow>
Result read(string_view text, const ReadOptions& options, bool named, ReadRow read_row) {
  Result result;
  for (size_t start = 0, next; start < text.size(); start = next + 1, ++result.n_lines) {
    next = std::min(text.find('\n', start), text.size());
    string_view line = text.substr(start, next - start);
    line.remove_suffix(line.ends_with('\r'));
    Row row;
    row.line = result.n_lines;
    row.start = static_cast<std::int64_t>(start);
    try {
      const size_t nul = line.find('\0');
      if (nul != line.npos) throw Bad{start + nul, FaultCode::NUL_BYTE};
      if (!read_row(line, start, options, row)) continue;
      if (!named) canonicalize<Value>(row, options.transform);
      result.rows.push_back(row);
    } catch (const Bad& bad) {
      const std::int64_t first = start, stop = start + line.size(), position = bad.position;
      result.faults.push_back({result.n_lines, first, stop, position, static_cast<std::int64_t>(bad.code)});
      if (!options.stop_at_fault) continue;
      ++result.n_lines;
      break;
    }
  }
  return result;
}

// The same form of what a parser returned.
template <class Key, class Value>
Result as_result(const ParsedBlock<Key, Value>& block, bool named) {
  Result result;
  result.n_lines = block.n_lines;
  for (size_t k = 0; k < block.codes.size(); ++k) {
    Row row;
    row.line = block.row_lines[k];
    row.start = block.row_starts[k];
    if (block.codes[k] >= 0) row.label = block.labels.labels().at(block.codes[k]);
    if (!block.weights.empty()) row.weight = block.weights[k];
    for (std::int64_t i = block.indptr[k]; i < block.indptr[k + 1]; ++i) {
      const auto letters = block.letters.begin();
      row.keys.push_back(named ? string(letters + block.name_starts[i], letters + block.name_starts[i + 1])
                               : std::to_string(block.keys[i]));
      row.values.push_back({block.values[i]});
    }
    result.rows.push_back(row);
  }
  for (const Fault& fault : block.faults)
    result.faults.push_back({fault.line, fault.start, fault.stop, fault.position, static_cast<std::int64_t>(fault.code)});
  return result;
}

}  // namespace maxcosine::plain
