// Reading one example that is a Python dict of feature to value.
#pragma once

#include <nanobind/nanobind.h>

#include <new>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "../feature_index.hpp"

namespace maxcosine {

namespace nb = nanobind;

[[noreturn]] inline void raise_bad_key(PyObject* key, bool named) {
  if (named && PyUnicode_Check(key))
    PyErr_Format(PyExc_TypeError,
                 "the feature %R is not a valid name: it has a surrogate, which UTF-8 cannot encode; rename it", key);
  else
    PyErr_Format(PyExc_TypeError,
                 "the feature %R is not %s, as the other features are; "
                 "use one type of key for all features, for example str(key)",
                 key, named ? "a str" : "a whole number from 0 to 2^64 - 1");
  throw nb::python_error();
}

[[noreturn]] inline void raise_bad_value(PyObject* key, PyObject* value) {
  PyErr_Format(PyExc_TypeError,
               "the value of feature %R is %R, which is not a number; use a number, for example {'%S=%S': 1.0}", key,
               value, key, value);
  throw nb::python_error();
}

// The key as an int if it has __index__, or as it is; only ids are converted.
inline nb::object plain_key(nb::handle key, bool named) {
  if (named ? PyUnicode_Check(key.ptr()) : PyLong_Check(key.ptr())) return nb::borrow(key);
  if (named || !PyIndex_Check(key.ptr())) raise_bad_key(key.ptr(), named);
  PyObject* number = PyNumber_Index(key.ptr());
  if (!number) throw nb::python_error();
  return nb::steal(number);
}

// The value as a float. A str is refused, though float(...) would parse it.
inline nb::object plain_value(nb::handle key, nb::handle value) {
  if (!nb::hasattr(value, "__float__") && !nb::hasattr(value, "__index__")) raise_bad_value(key.ptr(), value.ptr());
  PyObject* number = PyNumber_Float(value.ptr());
  if (!number) {
    const bool expected = PyErr_ExceptionMatches(PyExc_TypeError) || PyErr_ExceptionMatches(PyExc_ValueError) ||
                          PyErr_ExceptionMatches(PyExc_OverflowError);
    if (!expected) throw nb::python_error();
    PyErr_Clear();
    raise_bad_value(key.ptr(), value.ptr());
  }
  return nb::steal(number);
}

// The same items in a dict with keys and values that read_items accepts; raises the error that explains a bad one.
inline nb::dict plain_items(PyObject* example, bool named) {
  const nb::object mapping = nb::module_::import_("collections.abc").attr("Mapping");
  if (!nb::isinstance(example, mapping)) {
    PyErr_Format(PyExc_TypeError,
                 "an example is a dict of feature to value, and this one is a %s; "
                 "pass arrays and sparse matrices to partial_fit and predict",
                 nb::inst_name(example).c_str());
    throw nb::python_error();
  }
  nb::dict plain;
  // A list, because a conversion may run Python code that changes the example.
  const nb::list items(nb::handle(example).attr("items")());
  for (nb::handle item : items) {
    const nb::object key = plain_key(item[0], named);
    plain[key] = plain_value(key, item[1]);
  }
  return plain;
}

// Some items of a dict. Memory is prefetched for all of them before the first is looked up.
struct ItemGroup {
  static constexpr std::size_t CAPACITY = 32;
  std::size_t size;
  PyObject* keys[CAPACITY];
  PyObject* values[CAPACITY];
  std::string_view names[CAPACITY];
  std::uint64_t ids[CAPACITY];  // ids, or hashes of names

  void read_next(PyObject* dict, Py_ssize_t& position) {
    for (size = 0; size < CAPACITY && PyDict_Next(dict, &position, &keys[size], &values[size]); ++size) {
      __builtin_prefetch(keys[size]);
      __builtin_prefetch(values[size]);
    }
  }

  // The item that has a key of another kind, or `size` if there is none.
  [[nodiscard]] std::size_t read_keys(const FeatureIndex& index, bool named) {
    for (std::size_t k = 0; k < size; ++k) {
      if (!(named ? read_name(k) : read_id(k))) return k;
      index.prefetch_place(named ? ids[k] : FeatureIndex::hash_id(ids[k]));
    }
    for (std::size_t k = 0; k < size; ++k) index.prefetch_key(named ? ids[k] : FeatureIndex::hash_id(ids[k]));
    return size;
  }

 private:
  bool read_name(std::size_t k) {
    Py_ssize_t length;
    const char* text = PyUnicode_Check(keys[k]) ? PyUnicode_AsUTF8AndSize(keys[k], &length) : nullptr;
    if (!text) return false;
    names[k] = {text, std::size_t(length)};
    ids[k] = hash_name(names[k]);
    return true;
  }

  bool read_id(std::size_t k) {
    if (!PyLong_Check(keys[k])) return false;
    ids[k] = PyLong_AsUnsignedLongLong(keys[k]);
    return ids[k] != ~std::uint64_t{0} || !PyErr_Occurred();
  }
};

// Appends slots and values of a dict whose keys are str or int, and whose values are float or int. Runs no Python
// code. Returns false, perhaps with an error set, if an item is of another type or out of range; `bad_key` is then
// its key, if that is what is wrong.
template <class T>
bool read_items(PyObject* dict, FeatureIndex& index, bool grow, std::vector<std::uint32_t>& slots,
                std::vector<T>& values, PyObject*& bad_key) {
  const bool named = index.kind() == FeatureIndex::Kind::names;
  std::size_t end = slots.size();
  slots.resize(end + std::size_t(PyDict_Size(dict)));
  values.resize(slots.size());
  ItemGroup items;
  Py_ssize_t position = 0;
  do {
    items.read_next(dict, position);
    if (const std::size_t bad = items.read_keys(index, named); bad < items.size) {
      bad_key = items.keys[bad];
      return false;
    }
    for (std::size_t k = 0; k < items.size; ++k) {
      PyObject* number = items.values[k];
      if (!PyFloat_Check(number) && !PyLong_Check(number)) return false;
      const double value = PyFloat_Check(number) ? PyFloat_AsDouble(number) : PyLong_AsDouble(number);
      if (value == -1.0 && PyErr_Occurred()) return false;
      if (value == 0) continue;
      slots[end] = named ? index.slot_of_name(items.names[k], items.ids[k], grow)
                         : index.slot_of_id(items.ids[k], grow);
      values[end] = T(value);
      end += slots[end] != NO_SLOT;
    }
  } while (items.size == ItemGroup::CAPACITY);
  slots.resize(end);
  values.resize(end);
  return true;
}

// Appends slots and values of an example, without zeros and, unless the index may grow, without unknown features.
// Returns false with a Python error set; the index and the vectors are then as they were.
template <class T>
bool read_dict(PyObject* example, FeatureIndex& index, bool grow, std::vector<std::uint32_t>& slots,
               std::vector<T>& values) {
  const bool named = index.kind() == FeatureIndex::Kind::names;
  const std::size_t before = slots.size(), known = index.count();
  PyObject* bad_key = nullptr;
  const auto read = [&](PyObject* dict) {
    if (read_items(dict, index, grow, slots, values, bad_key)) return true;
    index.truncate(known);
    return false;
  };
  try {
    if (PyDict_CheckExact(example) && read(example)) return true;
    PyErr_Clear();
    slots.resize(before);
    values.resize(before);
    const nb::dict plain = plain_items(example, named);
    if (read(plain.ptr())) return true;
    PyErr_Clear();
    raise_bad_key(bad_key, named);
  } catch (nb::python_error& error) {
    error.restore();
  } catch (const std::overflow_error& error) {
    PyErr_SetString(PyExc_OverflowError, error.what());
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  }
  index.truncate(known);
  slots.resize(before);
  values.resize(before);
  return false;
}

}  // namespace maxcosine
