#include "bindings.hpp"

NB_MODULE(MAXCOSINE_MODULE, m) {
  maxcosine::bind_rules(m);
  maxcosine::bind_index(m);
  maxcosine::bind_text(m);
  maxcosine::bind_learning(m);
}
