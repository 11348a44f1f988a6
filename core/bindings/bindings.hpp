// One function for each area of the core that Python sees.
#pragma once

#include <nanobind/nanobind.h>

namespace maxcosine {

void bind_rules(nanobind::module_& m);
void bind_learning(nanobind::module_& m);
void bind_index(nanobind::module_& m);
void bind_text(nanobind::module_& m);
void bind_records(nanobind::module_& m);
void bind_lock(nanobind::module_& m);
void bind_onepass(nanobind::module_& m);

}  // namespace maxcosine
