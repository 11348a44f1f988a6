#include "bindings.hpp"

NB_MODULE(MAXCOSINE_MODULE, m) {
  // Rules live in module globals until the interpreter ends, which nanobind would report as leaks.
  nanobind::set_leak_warnings(false);
  maxcosine::bind_rules(m);
  maxcosine::bind_index(m);
  maxcosine::bind_text(m);
  maxcosine::bind_records(m);
  maxcosine::bind_learning(m);
  maxcosine::bind_lock(m);
  maxcosine::bind_onepass(m);
}
