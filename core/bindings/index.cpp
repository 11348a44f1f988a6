// The Python class FeatureIndex.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string_view.h>

#include <string>

#include "arrays.hpp"
#include "bindings.hpp"
#include "dicts.hpp"

namespace maxcosine {

using namespace nb::literals;

namespace {

using Kind = FeatureIndex::Kind;
using Array = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class T>
[[nodiscard]] bool holds(const Array& array) {
  return array.dtype() == nb::dtype<T>();
}

template <class T>
[[nodiscard]] std::span<const T> view(const Array& array, const char* name, const char* type) {
  if (!holds<T>(array)) throw nb::type_error((std::string(name) + " must be an array of " + type).c_str());
  return {static_cast<const T*>(array.data()), array.size()};
}

// Calls `use` with the values as a span of float or double.
template <class Use>
auto with_values(const Array& values, Use use) {
  if (holds<float>(values)) return use(view<float>(values, "values", "float32"));
  return use(view<double>(values, "values", "float32 or float64"));
}

// Whether the offsets rise and stay within n items, so that each pair of neighbours bounds a part of them.
[[nodiscard]] bool are_offsets(std::span<const std::int64_t> offsets, std::size_t n) {
  bool rising = !offsets.empty() && offsets.front() >= 0;
  for (std::size_t k = 1; k < offsets.size(); ++k) rising &= offsets[k - 1] <= offsets[k];
  return rising && std::size_t(offsets.back()) <= n;
}

Kind kind_of(std::string_view kind) {
  if (kind == "ids") return Kind::ids;
  if (kind == "names") return Kind::names;
  throw nb::value_error(("kind must be 'ids' or 'names', not '" + std::string(kind) + "'").c_str());
}

const char* kind_name(const FeatureIndex& index) { return index.kind() == Kind::ids ? "ids" : "names"; }

void require_kind(const FeatureIndex& index, Kind kind) {
  if (index.kind() != kind) throw nb::type_error((std::string("this index maps ") + kind_name(index)).c_str());
}

// Finds the slots of CSR rows by find(values, slots), without the GIL, and leaves out the values without a slot.
template <class Find>
nb::tuple map_rows(const Array& indptr, const Array& values, Find find) {
  const auto rows = view<std::int64_t>(indptr, "indptr", "int64");
  if (!are_offsets(rows, values.size()) || rows.front() != 0 || std::size_t(rows.back()) != values.size())
    throw nb::value_error("indptr must rise from 0 to the number of values");
  return with_values(values, [&]<class T>(std::span<const T> x) {
    std::vector<std::uint32_t> slots(x.size());
    std::vector<std::int64_t> kept_rows;
    std::vector<T> kept;
    {
      const nb::gil_scoped_release release;
      find(x, std::span(slots));
      if (std::find(slots.begin(), slots.end(), NO_SLOT) != slots.end()) {
        kept_rows.assign(rows.begin(), rows.end());
        kept.resize(x.size());
        std::size_t end = 0;
        for (std::size_t row = 0; row + 1 < rows.size(); ++row) {
          for (std::int64_t k = rows[row]; k < rows[row + 1]; ++k) {
            slots[end] = slots[k];
            kept[end] = x[k];
            end += slots[end] != NO_SLOT;
          }
          kept_rows[row + 1] = std::int64_t(end);
        }
        slots.resize(end);
        kept.resize(end);
      }
    }
    if (kept_rows.empty()) return nb::make_tuple(indptr, to_numpy(std::move(slots)), values);
    return nb::make_tuple(to_numpy(std::move(kept_rows)), to_numpy(std::move(slots)), to_numpy(std::move(kept)));
  });
}

nb::tuple map_ids(FeatureIndex& index, const Array& indptr, const Array& ids, const Array& values, bool grow) {
  require_kind(index, Kind::ids);
  if (ids.size() != values.size()) throw nb::value_error("ids and values must have the same length");
  const auto map = [&]<class Id>(std::span<const Id> given) {
    return map_rows(indptr, values, [&]<class T>(std::span<const T> x, std::span<std::uint32_t> slots) {
      index.map_ids(given, x, grow, slots);
    });
  };
  if (holds<std::uint32_t>(ids)) return map(view<std::uint32_t>(ids, "ids", "uint32"));
  return map(view<std::uint64_t>(ids, "ids", "uint32 or uint64"));
}

nb::tuple map_names(FeatureIndex& index, const Array& indptr, const Array& letters, const Array& starts,
                    const Array& values, bool grow) {
  require_kind(index, Kind::names);
  const auto bytes = view<std::uint8_t>(letters, "letters", "uint8");
  const auto bounds = view<std::int64_t>(starts, "starts", "int64");
  if (!are_offsets(bounds, bytes.size()) || bounds.size() != values.size() + 1)
    throw nb::value_error("starts must rise within the letters and have one entry more than values");
  const char* text = reinterpret_cast<const char*>(bytes.data());
  return map_rows(indptr, values, [&]<class T>(std::span<const T> x, std::span<std::uint32_t> slots) {
    index.map_names(text, bounds, x, grow, slots);
  });
}

template <class T>
nb::tuple read_dicts(FeatureIndex& index, nb::list examples, bool grow) {
  std::vector<std::int64_t> indptr{0};
  std::vector<std::uint32_t> slots;
  std::vector<T> values;
  const std::size_t before = index.count();
  for (nb::handle example : examples) {
    if (!read_dict(example.ptr(), index, grow, slots, values)) {
      index.truncate(before);
      throw nb::python_error();
    }
    indptr.push_back(std::int64_t(slots.size()));
  }
  return nb::make_tuple(to_numpy(std::move(indptr)), to_numpy(std::move(slots)), to_numpy(std::move(values)));
}

nb::tuple map_dicts(FeatureIndex& index, nb::list examples, nb::handle dtype, bool grow) {
  const auto kind = nb::cast<std::string_view>(nb::module_::import_("numpy").attr("dtype")(dtype).attr("name"));
  if (kind == "float32") return read_dicts<float>(index, examples, grow);
  if (kind == "float64") return read_dicts<double>(index, examples, grow);
  throw nb::type_error("dtype must be float32 or float64");
}

// Slots of ids; new ids get one.
nb::object slots_of_ids(FeatureIndex& index, nb::handle keys) {
  const nb::object numpy = nb::module_::import_("numpy");
  const auto array = nb::cast<Array>(numpy.attr("ascontiguousarray")(keys, "uint64"));
  const auto ids = view<std::uint64_t>(array, "keys", "whole numbers");
  std::vector<std::int64_t> slots(ids.size());
  for (std::size_t k = 0; k < ids.size(); ++k) slots[k] = index.slot_of_id(ids[k], true);
  return to_numpy(std::move(slots));
}

// Slots of names; new names get one.
nb::object slots_of_names(FeatureIndex& index, nb::handle keys) {
  const nb::list names(keys);
  std::vector<std::string_view> texts;
  for (nb::handle name : names) {
    Py_ssize_t size = 0;
    const char* text = PyUnicode_Check(name.ptr()) ? PyUnicode_AsUTF8AndSize(name.ptr(), &size) : nullptr;
    if (!text) {
      PyErr_Clear();
      raise_bad_key(name.ptr(), true);
    }
    texts.emplace_back(text, std::size_t(size));
  }
  std::vector<std::int64_t> slots(texts.size());
  for (std::size_t k = 0; k < texts.size(); ++k) slots[k] = index.slot_of_name(texts[k], true);
  return to_numpy(std::move(slots));
}

nb::object slots_of(FeatureIndex& index, nb::handle keys) {
  return index.kind() == Kind::ids ? slots_of_ids(index, keys) : slots_of_names(index, keys);
}

// The letters of all names, one after another, and where each name starts; the last entry is where the last ends.
nb::tuple letters(const FeatureIndex& index) {
  require_kind(index, Kind::names);
  std::vector<std::uint8_t> joined;
  std::vector<std::int64_t> starts{0};
  index.each_name([&](std::string_view name) {
    joined.insert(joined.end(), name.begin(), name.end());
    starts.push_back(std::int64_t(joined.size()));
  });
  return nb::make_tuple(to_numpy(std::move(joined)), to_numpy(std::move(starts)));
}

nb::object keys(const FeatureIndex& index) {
  if (index.kind() == Kind::ids) return to_numpy(std::vector<std::uint64_t>(index.ids().begin(), index.ids().end()));
  nb::list names;
  index.each_name([&](std::string_view name) { names.append(nb::str(name.data(), name.size())); });
  const nb::object array = nb::module_::import_("numpy").attr("empty")(nb::len(names), "object");
  array[nb::slice(nb::none(), nb::none(), nb::none())] = names;
  return array;
}

constexpr const char* DOCUMENTATION = R"(Slots 0, 1, 2, ... for ids or names in the order of their first appearance.

It grows with the features seen, never with the largest id.

Parameters
----------
kind : {"ids", "names"}
    Whole numbers from 0 to 2^64 - 1, or str.
keys : sequence
    The first keys, which get the slots 0, 1, 2, ...

Attributes
----------
kind : str
    The kind of keys.
named : bool
    Whether keys are names.
nbytes : int
    Memory in bytes: at most 21 for each id; at most 30 for each name, and 1.25 times its letters in UTF-8.

References
----------
.. [1] D. E. Knuth, The Art of Computer Programming, volume 3, section 6.4: open addressing.

Examples
--------
>>> from maxcosine import FeatureIndex
>>> index = FeatureIndex("names")
>>> index.slots_of(["pear", "apple", "pear"]).tolist()
[0, 1, 0]
>>> index.keys().tolist()
['pear', 'apple']
)";

}  // namespace

void bind_index(nb::module_& m) {
  m.attr("MAX_FEATURES") = MAX_FEATURES;
  nb::class_<FeatureIndex> index(m, "FeatureIndex", DOCUMENTATION);
  index.attr("__module__") = "maxcosine.core";  // so that a pickle loads on any processor
  index
      .def(
          "__init__",
          [](FeatureIndex* self, std::string_view kind, nb::handle keys) {
            new (self) FeatureIndex(kind_of(kind));
            slots_of(*self, keys);
          },
          "kind"_a, "keys"_a = nb::make_tuple())
      .def_prop_ro("kind", &kind_name)
      .def_prop_ro("named", [](const FeatureIndex& self) { return self.kind() == Kind::names; })
      .def_prop_ro("nbytes", &FeatureIndex::nbytes)
      .def("__len__", &FeatureIndex::count)
      .def("keys", &keys, "Return the keys in the order of their slots: uint64, or str objects.")
      .def("letters", &letters, "Return the UTF-8 letters of all names, and where each name begins.")
      .def(
          "copy", [](const FeatureIndex& self) { return FeatureIndex(self); }, "Return a copy that can grow on its own.")
      .def("truncate", &FeatureIndex::truncate, "count"_a, "Forget all features but the first ones.")
      .def("slots_of", &slots_of, "keys"_a, "Return the slots of these keys; new keys get one.")
      .def("map_ids", &map_ids, "indptr"_a, "ids"_a, "values"_a, nb::kw_only(), "grow"_a,
           "Return CSR arrays with slots for ids, without zeros and, unless it may grow, without unknown ids.")
      .def("map_names", &map_names, "indptr"_a, "letters"_a, "starts"_a, "values"_a, nb::kw_only(), "grow"_a,
           "Return CSR arrays with slots for names, as map_ids does; a slot may occur twice in a row.")
      .def("map_dicts", &map_dicts, "examples"_a, "dtype"_a, nb::kw_only(), "grow"_a,
           "Return CSR arrays with slots for dicts of feature to value; a refused one leaves the index unchanged.")
      .def("__reduce__",
           [](nb::handle self) {
             return nb::make_tuple(self.type(), nb::make_tuple(self.attr("kind"), self.attr("keys")()));
           });
}

}  // namespace maxcosine
