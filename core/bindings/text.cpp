// The Python functions that parse text and make rows canonical.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../canonicalize.hpp"
#include "../text/svmlight.hpp"
#include "../text/vw.hpp"
#include "arrays.hpp"
#include "bindings.hpp"

namespace maxcosine {

using namespace nb::literals;

namespace {

constexpr std::size_t MAX_BLOCK = std::size_t{1} << 31;  // positions within a block fit into 32 bits
constexpr unsigned MAX_BITS = 31;

// The bytes of an object that supports the buffer protocol.
class BufferView {
 public:
  explicit BufferView(nb::handle object) {
    if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_SIMPLE) != 0) throw nb::python_error();
  }
  ~BufferView() { PyBuffer_Release(&view_); }
  BufferView(const BufferView&) = delete;
  BufferView& operator=(const BufferView&) = delete;

  // The block buffer[start:stop].
  [[nodiscard]] std::string_view block(std::size_t start, std::size_t stop) const {
    const auto size = static_cast<std::size_t>(view_.len);
    require(PADDING <= start && start <= stop && stop <= size && size - stop >= PADDING,
            "a block needs PADDING bytes of the buffer before its start and after its stop");
    require(stop - start <= MAX_BLOCK, "a block has at most 2 GB");
    return {static_cast<const char*>(view_.buf) + start, stop - start};
  }

 private:
  Py_buffer view_;
};

struct PyParsedBlock {
  nb::object indptr, columns = nb::none(), ids = nb::none(), letters = nb::none(), name_starts = nb::none(),
                     name_columns = nb::none(), values, codes, weights = nb::none(), row_starts, row_lines,
                     squares = nb::none();
  nb::list labels, faults;
  std::int64_t n_lines = 0;
  std::uint64_t n_columns = 0;
};

template <class Key, class Value>
[[nodiscard]] PyParsedBlock to_python(ParsedBlock<Key, Value>&& block, bool named, bool keyed) {
  PyParsedBlock result;
  constexpr bool ARE_IDS = sizeof(Key) == sizeof(std::uint64_t);
  result.indptr = to_numpy(std::move(block.indptr));
  if (keyed) {
    (ARE_IDS ? result.ids : result.columns) = to_numpy(std::move(block.keys));
    result.squares = to_numpy(std::move(block.squares));
    result.n_columns = ARE_IDS ? 0 : block.n_columns;
  }
  if (named) {
    result.letters = to_numpy(std::move(block.letters));
    result.name_starts = to_numpy(std::move(block.name_starts));
    if (keyed) result.name_columns = to_numpy(std::move(block.name_columns));
  }
  result.values = to_numpy(std::move(block.values));
  result.codes = to_numpy(std::move(block.codes));
  for (const std::string& label : block.labels.labels()) result.labels.append(label);
  if (std::any_of(block.weights.begin(), block.weights.end(), [](double weight) { return weight != 1; }))
    result.weights = to_numpy(std::move(block.weights));
  result.row_starts = to_numpy(std::move(block.row_starts));
  result.row_lines = to_numpy(std::move(block.row_lines));
  for (const Fault& fault : block.faults)
    result.faults.append(
        nb::make_tuple(fault.line, fault.start, fault.stop, fault.position, static_cast<int>(fault.code)));
  result.n_lines = block.n_lines;
  return result;
}

[[nodiscard]] ReadOptions read_options(unsigned bits, bool exact, bool log1p, bool l2, bool stop_at_fault,
                                       bool keep_names) {
  require(bits <= MAX_BITS, "bits is the number of bits of a column, 1 to 31, or 0 for no hashing");
  require(bits == 0 || !exact, "features are hashed (bits > 0) or exact, not both");
  return {bits, exact, {log1p, l2}, stop_at_fault, keep_names};
}

// Calls use(0.0f) or use(0.0), by the name of a NumPy type.
template <class Use>
PyParsedBlock with_type(nb::handle dtype, Use use) {
  const auto name = nb::cast<std::string>(nb::module_::import_("numpy").attr("dtype")(dtype).attr("name"));
  if (name == "float32") return use(0.0f);
  if (name == "float64") return use(0.0);
  throw nb::type_error("dtype must be float32 or float64");
}

template <class Parse>
[[nodiscard]] auto without_gil(Parse parse) {
  const nb::gil_scoped_release release;
  return parse();
}

PyParsedBlock py_parse_svmlight(nb::handle buffer, std::size_t start, std::size_t stop, unsigned bits, bool exact,
                                nb::handle dtype, bool log1p, bool l2, bool stop_at_fault) {
  const BufferView view(buffer);
  const std::string_view text = view.block(start, stop);
  const ReadOptions options = read_options(bits, exact, log1p, l2, stop_at_fault, false);
  return with_type(dtype, [&]<class Value>(Value) {
    const auto parse = [&]<class Key>(Key) {
      return to_python(without_gil([&] { return parse_svmlight<Key, Value>(text, options); }), false, true);
    };
    return exact ? parse(std::uint64_t{}) : parse(std::uint32_t{});
  });
}

PyParsedBlock py_parse_vw(nb::handle buffer, std::size_t start, std::size_t stop, unsigned bits, bool exact,
                          nb::handle dtype, bool log1p, bool l2, bool stop_at_fault, bool keep_names) {
  const BufferView view(buffer);
  const std::string_view text = view.block(start, stop);
  const ReadOptions options = read_options(bits, exact, log1p, l2, stop_at_fault, keep_names);
  require(bits != 0 || exact, "features of this format have names: hash them (bits > 0) or set exact");
  return with_type(dtype, [&]<class Value>(Value) {
    return to_python(without_gil([&] { return parse_vw<Value>(text, options); }), exact || keep_names, !exact);
  });
}

std::uint64_t py_column_of_name(nb::bytes space, nb::bytes name, unsigned bits) {
  require(bits >= 1 && bits <= MAX_BITS, "bits is the number of bits of a column, 1 to 31");
  const auto padded = [](const nb::bytes& text) {
    return std::string(static_cast<const char*>(text.data()), text.size()).append(sizeof(std::uint64_t), '\0');
  };
  const std::string letters = padded(space), more = padded(name);
  return column_of_name({letters.data(), space.size()}, {more.data(), name.size()}, bits);
}

std::uint64_t py_column_of_id(std::uint64_t id, unsigned bits) {
  require(bits >= 1 && bits <= MAX_BITS, "bits is the number of bits of a column, 1 to 31");
  return column_of_id(id, bits);
}

template <class T>
using Array = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// The offsets of rows, which must rise and stay within n values.
[[nodiscard]] std::span<const std::int64_t> checked_rows(const Array<std::int64_t>& indptr, std::size_t n) {
  const std::span<const std::int64_t> rows(indptr.data(), indptr.size());
  require(!rows.empty() && rows.front() >= 0 && std::is_sorted(rows.begin(), rows.end()) &&
              static_cast<std::size_t>(rows.back()) <= n,
          "indptr must rise and stay within the values");
  return rows;
}

template <class Key, class Value>
nb::tuple py_canonicalize(const Array<std::int64_t>& indptr, const Array<Key>& slots, const Array<Value>& values,
                          bool log1p, bool l2, const std::optional<Array<double>>& extra_squares) {
  const std::span<const std::int64_t> rows = checked_rows(indptr, values.size());
  require(slots.size() == values.size(), "slots and values must have the same length");
  require(!extra_squares || extra_squares->size() + 1 == rows.size(), "extra_squares needs one entry for each row");
  const double* extra = extra_squares ? extra_squares->data() : nullptr;
  Buffer<std::int64_t> new_rows(rows.size());
  Buffer<Key> new_slots(values.size());
  Buffer<Value> new_values(values.size());
  {
    const nb::gil_scoped_release release;
    std::vector<std::uint32_t> table;
    std::size_t end = 0;
    new_rows[0] = 0;
    for (std::size_t row = 0; row + 1 < rows.size(); ++row) {
      const std::int64_t start = rows[row], stop = rows[row + 1];
      Key* row_slots = new_slots.data() + end;
      Value* row_values = new_values.data() + end;
      std::copy(slots.data() + start, slots.data() + stop, row_slots);
      std::copy(values.data() + start, values.data() + stop, row_values);
      end += canonicalize_row(row_slots, row_values, static_cast<std::size_t>(stop - start), {log1p, l2}, table,
                              extra != nullptr ? extra[row] : 0.0);
      new_rows[row + 1] = static_cast<std::int64_t>(end);
    }
    new_slots.resize(end);
    new_values.resize(end);
  }
  return nb::make_tuple(to_numpy(std::move(new_rows)), to_numpy(std::move(new_slots)), to_numpy(std::move(new_values)));
}

template <class Value>
nb::object py_square_norms(const Array<std::int64_t>& indptr, const Array<Value>& values) {
  const std::span<const std::int64_t> rows = checked_rows(indptr, values.size());
  Buffer<double> squares(rows.size() - 1);
  for (std::size_t row = 0; row + 1 < rows.size(); ++row)
    squares[row] = square_norm(values.data() + rows[row], static_cast<std::size_t>(rows[row + 1] - rows[row]));
  return to_numpy(std::move(squares));
}

void bind_parsed_block(nb::module_& m) {
  nb::class_<PyParsedBlock>(m, "ParsedBlock")
      .def_ro("indptr", &PyParsedBlock::indptr)
      .def_ro("columns", &PyParsedBlock::columns)
      .def_ro("ids", &PyParsedBlock::ids)
      .def_ro("letters", &PyParsedBlock::letters)
      .def_ro("name_starts", &PyParsedBlock::name_starts)
      .def_ro("name_columns", &PyParsedBlock::name_columns)
      .def_ro("values", &PyParsedBlock::values)
      .def_ro("codes", &PyParsedBlock::codes)
      .def_ro("labels", &PyParsedBlock::labels)
      .def_ro("weights", &PyParsedBlock::weights)
      .def_ro("row_starts", &PyParsedBlock::row_starts)
      .def_ro("row_lines", &PyParsedBlock::row_lines)
      .def_ro("n_lines", &PyParsedBlock::n_lines)
      .def_ro("squares", &PyParsedBlock::squares)
      .def_ro("n_columns", &PyParsedBlock::n_columns)
      .def_ro("faults", &PyParsedBlock::faults);
}

template <class Key, class Value>
void bind_canonicalize(nb::module_& m) {
  m.def("canonicalize", &py_canonicalize<Key, Value>, nb::arg("indptr").noconvert(), nb::arg("slots").noconvert(),
        nb::arg("values").noconvert(), nb::kw_only(), "log1p"_a, "l2"_a, nb::arg("extra_squares").none() = nb::none());
}

}  // namespace

void bind_text(nb::module_& m) {
  m.attr("PADDING") = PADDING;
  nb::dict messages, codes;
  for (const FaultText& fault : FAULT_TEXTS) {
    messages[nb::int_(static_cast<int>(fault.code))] = fault.message;
    codes[fault.name] = static_cast<int>(fault.code);
  }
  m.attr("FAULT_MESSAGES") = messages;
  m.attr("FAULT_CODES") = codes;
  bind_parsed_block(m);
  m.def("parse_svmlight", &py_parse_svmlight, "buffer"_a, "start"_a, "stop"_a, nb::kw_only(), "bits"_a, "exact"_a,
        "dtype"_a, "log1p"_a, "l2"_a, "stop_at_fault"_a);
  m.def("parse_vw", &py_parse_vw, "buffer"_a, "start"_a, "stop"_a, nb::kw_only(), "bits"_a, "exact"_a, "dtype"_a,
        "log1p"_a, "l2"_a, "stop_at_fault"_a, "keep_names"_a);
  m.def("column_of_name", &py_column_of_name, "space"_a, "name"_a, "bits"_a);
  m.def("column_of_id", &py_column_of_id, "id"_a, "bits"_a);
  m.def("canonical_label", &canonical_label, "text"_a);
  bind_canonicalize<std::uint32_t, float>(m);
  bind_canonicalize<std::uint32_t, double>(m);
  bind_canonicalize<std::uint64_t, float>(m);
  bind_canonicalize<std::uint64_t, double>(m);
  m.def("square_norms", &py_square_norms<float>, nb::arg("indptr").noconvert(), nb::arg("values").noconvert());
  m.def("square_norms", &py_square_norms<double>, nb::arg("indptr").noconvert(), nb::arg("values").noconvert());
}

}  // namespace maxcosine
