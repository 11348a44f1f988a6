// NumPy arrays as arguments and of the core's vectors, and checks of them.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <optional>
#include <type_traits>
#include <utility>

namespace maxcosine {

namespace nb = nanobind;

inline void require(bool holds, const char* what) {
  if (!holds) throw nb::value_error(what);
}

template <class T>
using Vector = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Matrix = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using AnyVector = nb::ndarray<nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using AnyMatrix = nb::ndarray<nb::ndim<2>, nb::c_contig, nb::device::cpu>;
// Values of examples are only read, and may be in memory that cannot be written, such as a mapped file.
using ReadOnlyVector = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using ReadOnlyMatrix = nb::ndarray<nb::ro, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

template <class T, class Array>
[[nodiscard]] T* data_of(const Array& array, const char* what) {
  require(array.dtype() == nb::dtype<std::remove_const_t<T>>(), what);
  return static_cast<T*>(array.data());
}

template <class T>
[[nodiscard]] T* optional_data(const std::optional<Vector<T>>& array, std::size_t n, const char* what) {
  if (!array) return nullptr;
  require(array->size() >= n, what);
  return array->data();
}

// A vector as a NumPy array that owns it, without a copy; characters become uint8.
template <class Container>
[[nodiscard]] nb::object to_numpy(Container&& values) {
  using Item = typename Container::value_type;
  using Element = std::conditional_t<std::is_same_v<Item, char>, std::uint8_t, Item>;
  auto* owned = new Container(std::move(values));
  nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<Container*>(p); });
  auto* data = reinterpret_cast<Element*>(owned->data());
  return nb::cast(nb::ndarray<nb::numpy, Element, nb::ndim<1>>(data, {owned->size()}, owner));
}

}  // namespace maxcosine
