// The Python class ModelLock: two context managers over one lock.
#include <nanobind/nanobind.h>

#include <memory>
#include <stdexcept>

#include "../model_lock.hpp"
#include "bindings.hpp"

namespace maxcosine {

namespace nb = nanobind;

namespace {

// `with lock.reading:` and `with lock.learning:`. A thread that has to wait releases the GIL first.
struct Reading {
  std::shared_ptr<ModelLock> lock;

  [[nodiscard]] bool try_enter() const { return lock->try_read(); }
  void enter() const { lock->read(); }
  void exit() const { lock->end_reading(); }
};

struct Learning {
  std::shared_ptr<ModelLock> lock;

  [[nodiscard]] bool try_enter() const { return lock->try_learn(); }
  void enter() const { lock->learn(); }
  void exit() const { lock->end_learning(); }
};

struct PyModelLock {
  nb::object reading, learning;
};

template <class Section>
void bind_section(nb::module_& m, const char* name) {
  nb::class_<Section>(m, name)
      .def("__enter__",
           [](const Section& section) {
             if (section.try_enter()) return;
             if (section.lock->is_learner())
               throw std::runtime_error("this thread is learning, and a model cannot be used while it learns a row");
             const nb::gil_scoped_release release;
             section.enter();
           })
      .def(
          "__exit__", [](const Section& section, nb::handle, nb::handle, nb::handle) { section.exit(); },
          nb::arg().none(), nb::arg().none(), nb::arg().none());
}

}  // namespace

void bind_lock(nb::module_& m) {
  bind_section<Reading>(m, "Reading");
  bind_section<Learning>(m, "Learning");
  nb::class_<PyModelLock>(m, "ModelLock")
      .def("__init__",
           [](PyModelLock* self) {
             const auto lock = std::make_shared<ModelLock>();
             new (self) PyModelLock{nb::cast(Reading{lock}), nb::cast(Learning{lock})};
           })
      .def_ro("reading", &PyModelLock::reading)
      .def_ro("learning", &PyModelLock::learning);
}

}  // namespace maxcosine
