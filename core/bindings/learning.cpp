#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <variant>
#include <vector>

#include "../claims.hpp"
#include "../score.hpp"
#include "../sweep.hpp"
#include "arrays.hpp"
#include "bindings.hpp"
#include "dicts.hpp"
#include "examples.hpp"
#include "rules.hpp"

namespace maxcosine {

using namespace nb::literals;

namespace {

// Rows done, what ended the sweep, in which head, and how many steps were traced.
using Ended = std::tuple<std::size_t, int, std::size_t, std::size_t>;

// The core's view of the arrays of one model. It refers to them, and keeps them alive.
class Engine {
 public:
  Engine(AnyMatrix v, AnyVector bias, Matrix<double> total, Vector<double> total_bias, Matrix<std::int64_t> table,
         Matrix<double> state, Matrix<double> params, Matrix<std::uint64_t> log, Vector<std::int64_t> class_seen,
         Matrix<std::int64_t> scalars, Matrix<std::int64_t> calibration, nb::list rules, bool fit_intercept,
         bool average)
      : arrays_(nb::make_tuple(v, bias, total, total_bias, table, state, params, log, class_seen, scalars, calibration)),
        rule_objects_(rules),
        n_classes_(class_seen.size()) {
    const std::size_t n_heads = table.shape(0), width = v.shape(1);
    require(table.shape(1) * 8 == sizeof(Head), "the table of heads has the wrong number of fields");
    require(scalars.shape(0) == 1 && scalars.shape(1) * 8 == sizeof(ModelScalars), "the scalars of the model have the wrong number of fields");
    require(calibration.shape(0) <= 1 && calibration.shape(1) * 8 == sizeof(Calibration),
            "the calibration has the wrong number of fields");
    require(bias.size() == width && total_bias.size() == width, "bias must have as many columns as the weights");
    require(!average || (total.shape(0) == v.shape(0) && total.shape(1) == width), "total must have the shape of v");
    require(state.shape(0) == n_heads && params.shape(0) == n_heads && nb::len(rules) == n_heads,
            "state, params and rules must have one row for each head");
    require(log.shape(0) == 0 || log.shape(0) == n_heads, "the log must have one row for each head, or none");
    for (nb::handle rule : rules) {
      functions_.push_back(nb::cast<RuleFunction*>(rule));
      calls_.push_back(functions_.back()->call());
    }
    const auto view = [&]<class T>(T*) {
      return Heads<T>{data_of<T>(v, "v"),
                      data_of<T>(bias, "bias must have the type of the weights"),
                      average ? total.data() : nullptr,
                      total_bias.data(),
                      reinterpret_cast<Head*>(table.data()),
                      n_heads,
                      v.shape(0),
                      width,
                      state.data(),
                      state.shape(1),
                      params.data(),
                      params.shape(1),
                      calls_.data(),
                      log.shape(0) > 0,
                      log.data(),
                      log.shape(1),
                      class_seen.data(),
                      reinterpret_cast<ModelScalars*>(scalars.data()),
                      calibration.shape(0) > 0 ? reinterpret_cast<Calibration*>(calibration.data()) : nullptr,
                      fit_intercept ? 1.0 : 0.0};
    };
    if (v.dtype() == nb::dtype<float>())
      heads_ = view(static_cast<float*>(nullptr));
    else
      heads_ = view(static_cast<double*>(nullptr));
    check_columns();
  }

  Engine(const Engine&) = delete;

  Ended learn_rows(Vector<const std::int64_t> indptr, Vector<const std::uint32_t> slots, ReadOnlyVector values,
                   std::optional<Vector<const double>> squares, bool mapped, Vector<const std::int64_t> codes,
                   std::optional<Vector<const double>> weights, std::optional<Vector<const std::int64_t>> order,
                   std::optional<Vector<std::int64_t>> predicted, std::optional<Matrix<std::int64_t>> steps) {
    const std::size_t n = indptr.size() - 1;
    require(slots.size() == values.size(), "there must be one value for each slot");
    Examples examples = examples_of(n, n_classes_, codes, weights, order, predicted);
    return learn(examples, steps, [&]<class T>(const Heads<T>& heads) {
      const T* data = data_of<const T>(values, "values must have the type of the weights");
      const double* known = optional_data(squares, n, "there must be one square norm for each row");
      nb::gil_scoped_release release;
      return sweep(heads, Rows<T>{indptr.data(), slots.data(), data, known, mapped}, examples);
    });
  }

  Ended learn_dense(ReadOnlyMatrix x, Vector<const std::int64_t> codes, std::optional<Vector<const double>> weights,
                    std::optional<Vector<const std::int64_t>> order, std::optional<Vector<std::int64_t>> predicted,
                    std::optional<Matrix<std::int64_t>> steps) {
    Examples examples = examples_of(x.shape(0), n_classes_, codes, weights, order, predicted);
    return learn(examples, steps, [&]<class T>(const Heads<T>& heads) {
      require(x.shape(1) <= heads.n_features, "there are more columns than weights");
      const T* data = data_of<const T>(x, "values must have the type of the weights");
      nb::gil_scoped_release release;
      return sweep_dense(heads, data, x.shape(1), examples);
    });
  }

  // Learns from one dict, whose features get slots of the index. Whatever is refused leaves the index as it was.
  // Returns what ended it, and the head at fault or, for NO_ROOM, how many features need weights.
  std::tuple<int, std::size_t> learn_dict(FeatureIndex& index, nb::dict x, std::int64_t code, double weight) {
    require(code >= 0 && std::size_t(code) < n_classes_, "a class code is out of range");
    return std::visit(
        [&]<class T>(const Heads<T>& heads) -> std::tuple<int, std::size_t> {
          const std::size_t before = index.count();
          std::vector<T>& values = empty_buffers<T>();
          if (!read_dict(x.ptr(), index, true, slots_, values)) throw nb::python_error();
          const std::int64_t indptr[2] = {0, std::int64_t(slots_.size())};
          Examples examples{&code, weight == 1 ? nullptr : &weight, nullptr, 1, nullptr};
          const double square = square_norm(values.data(), values.size());
          const bool good = (LIMITS<T>.low_sq_x <= square && square <= LIMITS<T>.high_sq_x) ||
                            (square == 0 && is_zero(values.data(), values.size()));
          if (good && index.count() > heads.n_features) {
            const std::size_t needed = index.count();
            index.truncate(before);
            return {NO_ROOM, needed};
          }
          const Outcome outcome =
              good ? sweep(heads, Rows<T>{indptr, slots_.data(), values.data(), &square, true}, examples)
                   : Outcome{0, Refusal::bad_row};
          if (outcome.refusal != Refusal::none) index.truncate(before);
          raise_pending_errors();
          return {int(outcome.refusal), outcome.head};
        },
        heads_);
  }

  void score_rows(Vector<const std::int64_t> indptr, Vector<const std::uint32_t> slots, ReadOnlyVector values,
                  bool as_points, Matrix<double> scores) const {
    require(scores.shape(0) == indptr.size() - 1, "there must be one row of scores for each row");
    std::visit(
        [&]<class T>(const Heads<T>& heads) {
          require(scores.shape(1) <= heads.width, "there are more scores than columns");
          const T* data = data_of<const T>(values, "values must have the type of the weights");
          nb::gil_scoped_release release;
          maxcosine::score_rows(heads, column_factors(heads, as_points), Rows<T>{indptr.data(), slots.data(), data},
                                scores.shape(0), scores.shape(1), scores.data());
        },
        heads_);
  }

  void score_dense(ReadOnlyMatrix x, bool as_points, Matrix<double> scores) const {
    require(scores.shape(0) == x.shape(0), "there must be one row of scores for each row");
    std::visit(
        [&]<class T>(const Heads<T>& heads) {
          require(scores.shape(1) <= heads.width, "there are more scores than columns");
          require(x.shape(1) <= heads.n_features, "there are more columns than weights");
          const T* data = data_of<const T>(x, "values must have the type of the weights");
          nb::gil_scoped_release release;
          score_dense_rows(heads, column_factors(heads, as_points), data, x.shape(1), x.shape(0), scores.shape(1),
                           scores.data());
        },
        heads_);
  }

  // What is proven of each head: norm, bound and slack, of the averaged hypotheses or the last; see claims.hpp.
  std::vector<std::tuple<double, double, double>> claims(bool averaged) const {
    return std::visit(
        [&]<class T>(const Heads<T>& heads) {
          require(!averaged || heads.total, "the hypotheses are not averaged");
          nb::gil_scoped_release release;
          std::vector<std::tuple<double, double, double>> claims;
          for (std::size_t h = 0; h < heads.n_heads; ++h) {
            const Head& head = heads.table[h];
            const Claim claim = averaged ? claim_of_average(heads, head) : claim_of_last(heads, head);
            claims.emplace_back(claim.norm, claim.bound, claim.slack);
          }
          return claims;
        },
        heads_);
  }

  // Scores of one dict, one a column; features that the index does not know count nothing.
  std::vector<double> score_dict(FeatureIndex& index, nb::dict x, bool as_points, std::size_t n_columns) const {
    return std::visit(
        [&]<class T>(const Heads<T>& heads) {
          require(n_columns <= heads.width, "there are more scores than columns");
          // Its own buffers: many threads may score at once, and a value may run Python code.
          std::vector<std::uint32_t> slots;
          std::vector<T> values;
          if (!read_dict(x.ptr(), index, false, slots, values)) throw nb::python_error();
          const std::int64_t indptr[2] = {0, std::int64_t(slots.size())};
          std::vector<double> scores(n_columns);
          maxcosine::score_rows(heads, column_factors(heads, as_points), Rows<T>{indptr, slots.data(), values.data()},
                                1, n_columns, scores.data());
          return scores;
        },
        heads_);
  }

 private:
  // Empties the buffers for one dict, and returns the one for values.
  template <class T>
  std::vector<T>& empty_buffers() {
    slots_.clear();
    auto& values = std::get<std::vector<T>>(values_);
    values.clear();
    return values;
  }

  // Learns examples; `steps`, if given, receives what each head does with each row.
  template <class Learn>
  Ended learn(Examples& examples, const std::optional<Matrix<std::int64_t>>& steps, const Learn& learn) {
    Trace trace{nullptr};
    if (steps) {
      require(steps->shape(1) * 8 == sizeof(TracedStep), "a traced step has the wrong number of fields");
      require(steps->shape(0) >= examples.n * calls_.size(), "there must be room for one step for each row and head");
      trace.steps = reinterpret_cast<TracedStep*>(steps->data());
      examples.trace = &trace;
    }
    const Outcome outcome = std::visit(learn, heads_);
    raise_pending_errors();
    return {outcome.rows_done, int(outcome.refusal), outcome.head, trace.n};
  }

  void raise_pending_errors() const {
    for (const RuleFunction* rule : functions_) rule->raise_pending_error();
  }

  // The columns of every head lie within the weights, and the classes within class_seen.
  void check_columns() const {
    std::visit(
        [&](const auto& heads) {
          require(heads.n_heads > 0, "there must be at least one head");
          require(heads.width == 1 || heads.width % LANES == 0, "the weights must have 1 or 4, 8, 12, ... columns");
          for (std::size_t h = 0; h < heads.n_heads; ++h) {
            const Head& head = heads.table[h];
            const bool within = 0 <= head.first && head.first < head.stop && std::size_t(head.stop) <= heads.width;
            require(within && head.highest < std::int64_t(heads.n_features), "a head lies outside the weights");
            require(!head.joint || heads.n_heads == 1, "a joint model has one head");
            require(std::size_t(head.joint ? head.stop : std::int64_t(heads.n_heads)) <= n_classes_,
                    "class_seen must have one entry for each class");
          }
        },
        heads_);
  }

  nb::object arrays_;
  nb::object rule_objects_;
  std::vector<RuleFunction*> functions_;
  std::vector<RuleCall> calls_;
  std::size_t n_classes_;
  std::variant<Heads<float>, Heads<double>> heads_;
  // Buffers for the features of one dict to learn from, kept between calls.
  std::vector<std::uint32_t> slots_;
  std::tuple<std::vector<float>, std::vector<double>> values_;
};

// The first row that cannot be learnt from, or -1: not finite, or of a norm outside the limits of the type.
template <class T>
std::int64_t first_bad_row(Vector<const std::int64_t> indptr, Vector<const T> values) {
  for (std::size_t row = 0; row + 1 < indptr.size(); ++row) {
    const T* x = values.data() + indptr.data()[row];
    const auto n = std::size_t(indptr.data()[row + 1] - indptr.data()[row]);
    const double square = square_norm(x, n);
    const bool within = LIMITS<T>.low_sq_x <= square && square <= LIMITS<T>.high_sq_x;
    if (!within && !(square == 0 && is_zero(x, n))) return std::int64_t(row);
  }
  return -1;
}

bool rows_are_canonical(Vector<const std::int64_t> indptr, Vector<const std::uint32_t> slots, std::size_t n_columns) {
  for (std::size_t row = 0; row + 1 < indptr.size(); ++row) {
    const std::int64_t start = indptr.data()[row];
    if (!is_canonical(slots.data() + start, std::size_t(indptr.data()[row + 1] - start), n_columns)) return false;
  }
  return true;
}

template <class T>
nb::tuple limits_tuple() {
  const Limits& limits = LIMITS<T>;
  return nb::make_tuple(limits.eps, limits.low_sq_x, limits.high_sq_x, limits.low_sq_v, limits.high_sq_v,
                        limits.high_sq_w, limits.underflow);
}

}  // namespace

void bind_learning(nb::module_& m) {
  nb::class_<Engine>(m, "Engine")
      .def(nb::init<AnyMatrix, AnyVector, Matrix<double>, Vector<double>, Matrix<std::int64_t>, Matrix<double>,
                    Matrix<double>, Matrix<std::uint64_t>, Vector<std::int64_t>, Matrix<std::int64_t>,
                    Matrix<std::int64_t>, nb::list, bool, bool>(),
           "v"_a, "bias"_a, "total"_a, "total_bias"_a, "table"_a, "state"_a, "params"_a, "log"_a, "class_seen"_a,
           "scalars"_a, "calibration"_a, "rules"_a, nb::kw_only(), "fit_intercept"_a, "average"_a)
      .def("learn_rows", &Engine::learn_rows, "indptr"_a, "slots"_a, "values"_a, "squares"_a.none(), "mapped"_a,
           "codes"_a, "weights"_a.none(), "order"_a.none(), "predicted"_a.none(), "steps"_a.none())
      .def("learn_dense", &Engine::learn_dense, "x"_a, "codes"_a, "weights"_a.none(), "order"_a.none(),
           "predicted"_a.none(), "steps"_a.none())
      .def("learn_dict", &Engine::learn_dict, "index"_a, "x"_a, "code"_a, "weight"_a)
      .def("claims", &Engine::claims, "averaged"_a)
      .def("score_rows", &Engine::score_rows, "indptr"_a, "slots"_a, "values"_a, "as_points"_a, "scores"_a)
      .def("score_dense", &Engine::score_dense, "x"_a, "as_points"_a, "scores"_a)
      .def("score_dict", &Engine::score_dict, "index"_a, "x"_a, "as_points"_a, "n_columns"_a);
  m.def("first_bad_row", &first_bad_row<float>, "indptr"_a, "values"_a, nb::call_guard<nb::gil_scoped_release>());
  m.def("first_bad_row", &first_bad_row<double>, "indptr"_a, "values"_a, nb::call_guard<nb::gil_scoped_release>());
  m.def("rows_are_canonical", &rows_are_canonical, "indptr"_a, "slots"_a, "n_columns"_a,
        nb::call_guard<nb::gil_scoped_release>());
  m.attr("NO_ROOM") = NO_ROOM;
  m.attr("LIMITS") = nb::dict();
  m.attr("LIMITS")["float32"] = limits_tuple<float>();
  m.attr("LIMITS")["float64"] = limits_tuple<double>();
}

}  // namespace maxcosine
