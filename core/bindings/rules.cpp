#include "rules.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <tuple>
#include <vector>

#include "../framework.hpp"
#include "../rules/builtin.hpp"
#include "bindings.hpp"

namespace maxcosine {

using namespace nb::literals;

namespace {

nb::tuple tuple_of(const double* values, std::size_t n) {
  nb::list list;
  for (std::size_t k = 0; k < n; ++k) list.append(values[k]);
  return nb::tuple(list);
}

void call_python_rule(double margin, double sq_w, double sq_x, double coef_sum, double* state, const double* params,
                      double* move, void* context) {
  auto& rule = *static_cast<PythonRule*>(context);
  nb::gil_scoped_acquire lock;
  try {
    const nb::object result = rule.function(margin, sq_w, sq_x, coef_sum, tuple_of(state, rule.n_state),
                                            tuple_of(params, rule.n_params));
    const auto [keep, add, after] = nb::cast<std::tuple<double, double, std::vector<double>>>(result);
    if (after.size() != rule.n_state) throw std::bad_cast();
    for (const double value : after)
      if (!std::isfinite(value)) return;  // refused as a bad step: no NaN may enter a model by way of the state
    std::copy(after.begin(), after.end(), state);
    move[0] = keep;
    move[1] = add;
  } catch (nb::python_error& error) {
    rule.error = std::make_unique<nb::python_error>(error);
  } catch (const std::exception&) {
    PyErr_SetString(PyExc_TypeError, "a rule must return (keep, add, state): two numbers, and a tuple of as many numbers as its state has");
    rule.error = std::make_unique<nb::python_error>();
  }
}

RuleFunction builtin_rule(std::string_view name) {
  for (const auto& [known, function] : BUILTIN_RULES)
    if (known == name) return {function, nb::none()};
  throw nb::key_error(std::string(name).c_str());
}

RuleFunction rule_at_address(std::uintptr_t address, nb::object owner) {
  return {reinterpret_cast<StepFunction>(address), std::move(owner)};
}

std::vector<std::string> builtin_rule_names() {
  std::vector<std::string> names;
  for (const auto& [name, function] : BUILTIN_RULES) names.emplace_back(name);
  return names;
}

// One step, as a plain function of scalars.
std::tuple<double, double, nb::tuple> step(const RuleFunction& rule, double margin, double sq_w, double sq_x,
                                           double coef_sum, std::vector<double> state, std::vector<double> params) {
  double move[2] = {std::nan(""), std::nan("")};
  const std::size_t n_state = state.size();
  state.push_back(0);  // so that both have an address
  params.push_back(0);
  rule.call().function(margin, sq_w, sq_x, coef_sum, state.data(), params.data(), move, rule.call().context);
  rule.raise_pending_error();
  return {move[0], move[1], tuple_of(state.data(), n_state)};
}

}  // namespace

RuleFunction::RuleFunction(std::unique_ptr<PythonRule> rule)
    : call_{call_python_rule, rule.get()}, python_(std::move(rule)) {}

void RuleFunction::raise_pending_error() const {
  if (!python_ || !python_->error) return;
  nb::python_error error = *python_->error;
  python_->error.reset();
  throw error;
}

void bind_rules(nb::module_& m) {
  nb::class_<RuleFunction>(m, "RuleFunction")
      .def("step", &step, "margin"_a, "sq_w"_a, "sq_x"_a, "coef_sum"_a, "state"_a, "params"_a);
  m.def("builtin_rule", &builtin_rule, "name"_a);
  m.def("builtin_rule_names", &builtin_rule_names);
  m.def("rule_at_address", &rule_at_address, "address"_a, "owner"_a);
  m.def(
      "python_rule",
      [](nb::object function, std::size_t n_state, std::size_t n_params) {
        return RuleFunction(std::make_unique<PythonRule>(PythonRule{std::move(function), n_state, n_params, nullptr}));
      },
      "function"_a, "n_state"_a, "n_params"_a);
  m.def(
      "maximise",
      [](double r, double p, double s, double q, double t) {
        const Maximum best = maximise(r, p, s, q, t);
        return std::tuple(best.argmax, best.maximum, best.lemma_case);
      },
      "r"_a, "p"_a, "s"_a, "q"_a, "t"_a);
}

}  // namespace maxcosine
