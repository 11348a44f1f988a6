// NumPy arrays of the core's vectors, and checks of arguments.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <type_traits>
#include <utility>

namespace maxcosine {

namespace nb = nanobind;

inline void require(bool holds, const char* what) {
  if (!holds) throw nb::value_error(what);
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
