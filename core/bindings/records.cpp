// The Python functions that make rows of the columns of a table.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "../join_rows.hpp"
#include "../text/json_objects.hpp"
#include "../text/record_starts.hpp"
#include "../text/tokens.hpp"
#include "../text/vw.hpp"
#include "arrays.hpp"
#include "bindings.hpp"

namespace maxcosine {

using namespace nb::literals;

namespace {

constexpr unsigned MAX_BITS = 31;

template <class T>
using Array = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Texts one after another: text k is letters[starts[k] : starts[k + 1]].
class Texts {
 public:
  Texts(const Array<std::int64_t>& starts, const Array<std::uint8_t>& letters)
      : starts_(starts.data()), n_(starts.size() - 1), letters_(reinterpret_cast<const char*>(letters.data())) {
    require(starts.size() > 0 && starts_[0] >= 0 && std::is_sorted(starts_, starts_ + starts.size()) &&
                static_cast<std::size_t>(starts_[n_]) <= letters.size(),
            "the starts of texts must rise and stay within the letters");
  }

  [[nodiscard]] std::size_t size() const { return n_; }
  [[nodiscard]] std::string_view operator[](std::size_t k) const {
    return {letters_ + starts_[k], static_cast<std::size_t>(starts_[k + 1] - starts_[k])};
  }

 private:
  const std::int64_t* starts_;
  std::size_t n_;
  const char* letters_;
};

[[nodiscard]] std::string_view view_of(const nb::bytes& text) {
  return {static_cast<const char*>(text.data()), text.size()};
}

nb::tuple py_tokenize(const Array<std::int64_t>& starts, const Array<std::uint8_t>& letters, nb::bytes word_prefix,
                      nb::bytes char_prefix, unsigned bits, std::size_t ngrams, std::size_t min_chars,
                      std::size_t max_chars, bool keep_names) {
  const Texts texts(starts, letters);
  require(bits <= MAX_BITS, "bits is the number of bits of a column, 1 to 31, or 0 for names");
  require(max_chars == 0 || (1 <= min_chars && min_chars <= max_chars), "character n-grams need 1 <= min <= max");
  Tokenizer tokenizer(view_of(word_prefix), view_of(char_prefix), {bits, ngrams, min_chars, max_chars, keep_names});
  {
    const nb::gil_scoped_release release;
    for (std::size_t k = 0; k < texts.size(); ++k) tokenizer.add(texts[k]);
  }
  TokenizedTexts found = std::move(tokenizer).take();
  return nb::make_tuple(to_numpy(std::move(found.indptr)), to_numpy(std::move(found.columns)),
                        to_numpy(std::move(found.letters)), to_numpy(std::move(found.name_starts)),
                        to_numpy(std::move(found.name_columns)));
}

nb::tuple py_find_records(const Array<std::uint8_t>& buffer, std::size_t start, std::size_t stop, char delimiter,
                          bool quotes) {
  require(start <= stop && stop <= buffer.size(), "start and stop must lie within the buffer");
  const auto* text = reinterpret_cast<const char*>(buffer.data());
  RecordStarts found = [&] {
    const nb::gil_scoped_release release;
    return find_records(text + start, text + stop, delimiter, quotes);
  }();
  return nb::make_tuple(to_numpy(std::move(found.starts)), to_numpy(std::move(found.lines)), found.whole, found.n_lines,
                        found.is_open);
}

nb::object py_check_json_lines(const Array<std::uint8_t>& buffer, const Array<std::int64_t>& starts, std::size_t stop) {
  require(stop <= buffer.size(), "stop must lie within the buffer");
  const std::int64_t* begin = starts.data();
  require(std::all_of(begin, begin + starts.size(),
                      [&](std::int64_t start) { return start >= 0 && static_cast<std::size_t>(start) < stop; }),
          "lines must start before stop");
  const auto* text = reinterpret_cast<const char*>(buffer.data());
  Buffer<std::uint8_t> kinds(starts.size());
  {
    const nb::gil_scoped_release release;
    for (std::size_t k = 0; k < starts.size(); ++k) {
      const char* const start = text + begin[k];
      kinds[k] = static_cast<std::uint8_t>(check_json_line(start, end_of_line(start, text + stop)));
    }
  }
  return to_numpy(std::move(kinds));
}

nb::object py_columns_of_names(nb::bytes prefix, const Array<std::int64_t>& starts, const Array<std::uint8_t>& letters,
                               unsigned bits) {
  const Texts texts(starts, letters);
  require(bits >= 1 && bits <= MAX_BITS, "bits is the number of bits of a column, 1 to 31");
  std::string space(view_of(prefix)), name;
  space.append(PADDING, '\0');
  Buffer<std::uint32_t> columns(texts.size());
  for (std::size_t k = 0; k < texts.size(); ++k) {
    name.assign(texts[k]).append(PADDING, '\0');
    columns[k] = static_cast<std::uint32_t>(
        column_of_name({space.data(), prefix.size()}, {name.data(), texts[k].size()}, bits));
  }
  return to_numpy(std::move(columns));
}

using OptionalRows = std::optional<Array<std::int64_t>>;
using OptionalValues = std::optional<Array<double>>;
using ColumnPiece = std::tuple<OptionalRows, Array<std::uint32_t>, OptionalValues>;
using NamePiece = std::tuple<OptionalRows, Array<std::uint32_t>, OptionalValues, Array<std::uint8_t>, Array<std::int64_t>>;

// Checks a piece, so that no row of it reaches beyond its arrays.
[[nodiscard]] Piece piece_of(std::size_t n_rows, const OptionalRows& indptr, const Array<std::uint32_t>& keys,
                             const OptionalValues& values) {
  if (indptr) {
    const std::int64_t* rows = indptr->data();
    require(indptr->size() == n_rows + 1 && rows[0] >= 0 && std::is_sorted(rows, rows + n_rows + 1) &&
                static_cast<std::size_t>(rows[n_rows]) <= keys.size(),
            "indptr must have one entry for each row and one more, rise and stay within the keys");
  } else {
    require(keys.size() == n_rows, "a piece without indptr must have one key for each row");
  }
  require(!values || values->size() == keys.size(), "a piece must have one value for each key");
  return {indptr ? indptr->data() : nullptr, keys.data(), values ? values->data() : nullptr, nullptr, nullptr};
}

template <class Value>
nb::tuple py_join_columns(std::size_t n_rows, const std::vector<ColumnPiece>& given, bool log1p, bool l2) {
  std::vector<Piece> pieces;
  for (const auto& [indptr, keys, values] : given) pieces.push_back(piece_of(n_rows, indptr, keys, values));
  auto block = [&] {
    const nb::gil_scoped_release release;
    return join_columns<Value>(n_rows, pieces, {log1p, l2});
  }();
  return nb::make_tuple(to_numpy(std::move(block.indptr)), to_numpy(std::move(block.keys)),
                        to_numpy(std::move(block.values)), to_numpy(std::move(block.squares)));
}

template <class Value>
nb::tuple py_join_names(std::size_t n_rows, const std::vector<NamePiece>& given) {
  std::vector<Piece> pieces;
  for (const auto& [indptr, keys, values, letters, starts] : given) {
    const std::size_t n_names = Texts(starts, letters).size();
    require(std::all_of(keys.data(), keys.data() + keys.size(),
                        [&](std::uint32_t key) { return key < n_names || key == NO_FEATURE; }),
            "a key of a piece is the number of one of its names");
    Piece piece = piece_of(n_rows, indptr, keys, values);
    piece.letters = reinterpret_cast<const char*>(letters.data());
    piece.name_starts = starts.data();
    pieces.push_back(piece);
  }
  auto block = [&] {
    const nb::gil_scoped_release release;
    return join_names<Value>(n_rows, pieces);
  }();
  return nb::make_tuple(to_numpy(std::move(block.indptr)), to_numpy(std::move(block.letters)),
                        to_numpy(std::move(block.name_starts)), to_numpy(std::move(block.values)));
}

nb::tuple join_columns_as(std::size_t n_rows, const std::vector<ColumnPiece>& pieces, bool float32, bool log1p,
                          bool l2) {
  return float32 ? py_join_columns<float>(n_rows, pieces, log1p, l2)
                 : py_join_columns<double>(n_rows, pieces, log1p, l2);
}

nb::tuple join_names_as(std::size_t n_rows, const std::vector<NamePiece>& pieces, bool float32) {
  return float32 ? py_join_names<float>(n_rows, pieces) : py_join_names<double>(n_rows, pieces);
}

}  // namespace

void bind_records(nb::module_& m) {
  m.attr("NO_FEATURE") = NO_FEATURE;
  m.def("find_records", &py_find_records, "buffer"_a, "start"_a, "stop"_a, "delimiter"_a, "quotes"_a);
  m.def("check_json_lines", &py_check_json_lines, "buffer"_a, "starts"_a, "stop"_a);
  m.attr("MAX_JSON_DEPTH") = MAX_JSON_DEPTH;
  m.def("tokenize", &py_tokenize, "starts"_a, "letters"_a, "word_prefix"_a, "char_prefix"_a, nb::kw_only(), "bits"_a,
        "ngrams"_a, "min_chars"_a, "max_chars"_a, "keep_names"_a);
  m.def("columns_of_names", &py_columns_of_names, "prefix"_a, "starts"_a, "letters"_a, "bits"_a);
  m.def("join_columns", &join_columns_as, "n_rows"_a, "pieces"_a, nb::kw_only(), "float32"_a, "log1p"_a, "l2"_a);
  m.def("join_names", &join_names_as, "n_rows"_a, "pieces"_a, nb::kw_only(), "float32"_a);
}

}  // namespace maxcosine
