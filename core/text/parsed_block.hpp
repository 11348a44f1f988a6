// What the parsers return: rows, labels and faults of a block of whole lines.
#pragma once

#include <cctype>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../arithmetic.hpp"
#include "../canonicalize.hpp"
#include "bytes.hpp"
#include "labels.hpp"
#include "numbers.hpp"

namespace maxcosine {

// An allocator that leaves new elements uninitialized.
template <class T>
struct UninitializedAllocator : std::allocator<T> {
  template <class U>
  struct rebind {
    using other = UninitializedAllocator<U>;
  };
  template <class U, class... Args>
  void construct(U* p, Args&&... args) {
    if constexpr (sizeof...(Args) == 0)
      ::new (static_cast<void*>(p)) U;
    else
      ::new (static_cast<void*>(p)) U(std::forward<Args>(args)...);
  }
};

// A vector whose resize() does not touch the memory that it adds.
template <class T>
using Buffer = std::vector<T, UninitializedAllocator<T>>;

enum class FaultCode {
  FINE, NUL_BYTE, NOT_TEXT, BAD_ID, LARGE_ID, NO_COLON, NO_VALUE, NOT_A_NUMBER, NOT_FINITE, TOO_LARGE, NO_BAR, TOO_MANY,
  NEGATIVE_WEIGHT, NO_NAME, NO_LABEL, NO_COLUMN,
};
using enum FaultCode;

struct FaultText {
  FaultCode code;
  const char* name;
  const char* message;
};

inline constexpr FaultText FAULT_TEXTS[] = {
    {NUL_BYTE, "NUL_BYTE", "there is a NUL byte in the line; is the file compressed, or not in UTF-8?"},
    {NOT_TEXT, "NOT_TEXT", "the text is not UTF-8; convert the file to UTF-8"},
    {BAD_ID, "BAD_ID", "the feature's id is not a whole number; ids are 0, 1, 2, ..., written in decimal digits"},
    {LARGE_ID, "LARGE_ID", "the feature's id is too large; the largest is 18446744073709551615 (2^64 - 1)"},
    {NO_COLON, "NO_COLON", "the feature has no value; write id:value"},
    {NO_VALUE, "NO_VALUE", "nothing follows the colon; write a number there"},
    {NOT_A_NUMBER, "NOT_A_NUMBER", "this is not a decimal number; write it as 12, 0.5 or -1.5e-3"},
    {NOT_FINITE, "NOT_FINITE", "the number is not finite; drop the feature, or put a number in its place"},
    {TOO_LARGE, "TOO_LARGE", "the number is too large for its type; scale the feature down"},
    {NO_BAR, "NO_BAR", "there is no '|' in the line; features come after one"},
    {TOO_MANY, "TOO_MANY", "too much stands before the '|'; at most a label, a weight, a base and a tag"},
    {NEGATIVE_WEIGHT, "NEGATIVE_WEIGHT", "the weight is negative; weights are 0 or more"},
    {NO_NAME, "NO_NAME", "the feature has no name; write name:value"},
    {NO_LABEL, "NO_LABEL", "the line has no label; there is nothing to learn from it"},
    {NO_COLUMN, "NO_COLUMN",
     "the id is too large for a column; hash features (--bits 22), or keep them exactly (--exact)"},
};

// A line that could not be read. Positions are bytes from the start of the block.
struct Fault {
  std::int64_t line;  // number of the line within the block, from 0
  std::int64_t start;
  std::int64_t stop;      // where the line ends, without its newline
  std::int64_t position;  // where the token begins that is at fault
  FaultCode code;
};

// Where reading stopped, and what is wrong there, if anything is.
struct Reached {
  const char* at;
  FaultCode code = FINE;

  [[nodiscard]] bool fine() const { return code == FINE; }
};

struct ReadOptions {
  unsigned bits = 0;  // hash features to 2^bits columns; 0: do not hash
  bool exact = false;
  Transform transform;
  bool stop_at_fault = false;
  bool keep_names = false;  // of hashed features
};

template <class Key, class Value>
struct ParsedBlock {
  Buffer<std::int64_t> indptr = Buffer<std::int64_t>(1, 0);
  Buffer<Key> keys;  // columns or ids; empty if features are names
  Buffer<Value> values;
  Buffer<std::int32_t> codes;  // -1: the row has no label
  LabelTable labels;
  Buffer<double> weights;            // empty if the format has no weights
  Buffer<std::int64_t> row_starts;   // the byte where each row's line starts
  Buffer<std::int32_t> row_lines;    // the number of that line
  Buffer<double> squares;            // empty if features are names
  Buffer<char> letters;              // names, one after another
  Buffer<std::int64_t> name_starts;  // where each name begins, and where the last ends
  Buffer<Key> name_columns;          // the hashed column of each name
  std::vector<Fault> faults;
  std::int64_t n_lines = 0;
  std::uint64_t n_columns = 0;  // 1 + highest column
  std::vector<std::uint32_t> table;  // working memory of sum_duplicates
};

// Whether the text from p to a blank, `mark` or `stop` is nan, inf or infinity, with or without a sign.
[[nodiscard]] inline bool is_not_finite(const char* p, const char* stop, char mark) {
  p += p < stop && (*p == '-' || *p == '+');
  std::string token;
  for (; p < stop && !is_blank(*p) && *p != mark && token.size() <= 8; ++p)
    token += static_cast<char>(std::tolower(static_cast<unsigned char>(*p)));
  return token == "nan" || token == "inf" || token == "infinity";
}

[[nodiscard]] inline Reached check_utf8(const Token& token) {
  const char* bad = token.ascii ? token.stop : first_not_utf8(token.start, token.stop);
  return {bad, bad < token.stop ? NOT_TEXT : FINE};
}

struct CheckedNumber {
  double value;
  Reached reached;  // where the number ends, or where it begins if it is at fault
};

// A number up to the next separator.
[[nodiscard]] inline CheckedNumber read_value(const char* p, char mark) {
  const Number number = read_number(p);
  if (!is_separator(number.stop, mark)) return {0, {p, NOT_A_NUMBER}};
  if (number.stop == p) return {0, {p, NO_VALUE}};
  if (std::isinf(number.value)) return {0, {p, TOO_LARGE}};
  return {number.value, {number.stop}};
}

// Lines of a block that all end with a newline, and where they begin in the block.
struct Lines {
  const char* text;
  const char* stop;
  std::int64_t offset;

  [[nodiscard]] std::int64_t position(const char* p) const { return offset + (p - text); }
};

// Records a fault and returns the newline at the end of its line. A NUL byte anywhere in the line is the fault.
template <class Block>
[[nodiscard]] const char* add_fault(Block& block, const Lines& lines, const char* start, Reached fault, char mark) {
  const auto* newline = static_cast<const char*>(std::memchr(start, '\n', lines.stop - start));
  const char* stop = newline - (newline > start && newline[-1] == '\r');
  const auto* nul = static_cast<const char*>(std::memchr(start, '\0', newline - start));
  if (nul != nullptr) fault = {nul, NUL_BYTE};
  if (fault.code == NOT_A_NUMBER && is_not_finite(fault.at, stop, mark)) fault.code = NOT_FINITE;
  block.faults.push_back(
      {block.n_lines, lines.position(start), lines.position(stop), lines.position(fault.at), fault.code});
  return newline;
}

// Makes the features of the last row, which begin at `first`, canonical, and measures the row. Returns their new end.
template <class Key, class Value>
[[nodiscard]] std::size_t finish_features(ParsedBlock<Key, Value>& block, std::size_t first, std::size_t stop,
                                          const Transform& transform) {
  Key* keys = block.keys.data() + first;
  Value* values = block.values.data() + first;
  const std::size_t n = canonicalize_row(keys, values, stop - first, transform, block.table);
  block.squares.push_back(square_norm(values, n));
  Key highest = 0;
  for (std::size_t k = 0; k < n; ++k) highest = std::max(highest, keys[k]);
  if (n > 0) block.n_columns = std::max(block.n_columns, std::uint64_t{highest} + 1);
  return first + n;
}

// Adds a row for the line at `start`; `n_features` are in the block so far.
template <class Block>
void end_row(Block& block, const Lines& lines, const char* start, const Token& label, std::size_t n_features) {
  block.indptr.push_back(static_cast<std::int64_t>(n_features));
  block.codes.push_back(label.empty() ? -1 : block.labels.code_of(label));
  block.row_starts.push_back(lines.position(start));
  block.row_lines.push_back(static_cast<std::int32_t>(block.n_lines));
}

// Parses lines that all end with a newline. The reader of a format, Reader(lines, options, block), has
// read_line(start), which adds a row or says what is wrong; Reader::MARK is a byte that ends numbers.
template <class Reader, class Block>
void parse_lines(const Lines& lines, const ReadOptions& options, Block& block) {
  Reader reader(lines, options, block);
  for (const char* p = lines.text; p < lines.stop;) {
    Reached reached = reader.read_line(p);
    const bool stop = !reached.fine() && options.stop_at_fault;
    if (!reached.fine()) reached.at = add_fault(block, lines, p, reached, Reader::MARK);
    p = reached.at + 1 + (*reached.at == '\r');
    ++block.n_lines;
    if (stop) return;
  }
}

// Parses a block. Its last line is copied and given a newline if it lacks one.
template <class Reader, class Block>
void parse_block(std::string_view text, const ReadOptions& options, Block& block) {
  const std::size_t whole = text.rfind('\n') + 1;  // npos + 1 is 0
  parse_lines<Reader>({text.data(), text.data() + whole, 0}, options, block);
  if (whole == text.size() || (options.stop_at_fault && !block.faults.empty())) return;
  std::string last(PADDING, '\0');
  last.append(text.substr(whole)).append(1, '\n').append(PADDING, '\0');
  const char *start = last.data() + PADDING, *stop = last.data() + last.size() - PADDING;
  parse_lines<Reader>({start, stop, static_cast<std::int64_t>(whole)}, options, block);
}

}  // namespace maxcosine
