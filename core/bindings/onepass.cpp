#include "../onepass.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <limits>
#include <optional>
#include <tuple>
#include <variant>
#include <vector>

#include "../onepass_claim.hpp"
#include "arrays.hpp"
#include "bindings.hpp"
#include "dicts.hpp"
#include "examples.hpp"

namespace maxcosine {

using namespace nb::literals;

namespace {

using Ended = std::tuple<std::size_t, int>;  // rows done, and what ended the sweep

// What learning from dicts needs, kept between calls.
template <class T>
struct DictLearner {
  explicit DictLearner(const OnePass<T>& model) : learner(model) {}

  OnePassLearner<T> learner;
  std::vector<std::uint32_t> slots;
  std::vector<T> values;
};

// The core's view of the arrays of one one-pass learner. It refers to them, and keeps them alive.
class OnePassEngine {
 public:
  OnePassEngine(AnyMatrix weights, Matrix<std::int64_t> features, Vector<std::uint32_t> visited,
                Matrix<std::int64_t> blocks, Matrix<std::int64_t> scalars)
      : arrays_(nb::make_tuple(weights, features, visited, blocks, scalars)) {
    const std::size_t n_features = weights.shape(0), width = weights.shape(1);
    require(features.shape(1) * 8 == sizeof(Feature), "a feature has the wrong number of fields");
    require(blocks.shape(1) * 8 == sizeof(Block), "a block has the wrong number of fields");
    require(scalars.shape(0) == 1 && scalars.shape(1) * 8 == sizeof(OnePassScalars),
            "the scalars have the wrong number of fields");
    require(features.shape(0) == n_features && visited.size() == n_features,
            "features and visited must have one row for each row of the weights");
    require(width > 0 && width == blocks.shape(0) * LANES, "the weights must have four columns for each block");
    const auto view = [&]<class T>(T*) {
      return OnePass<T>{data_of<T>(weights, "weights must be float32 or float64"),
                        reinterpret_cast<Feature*>(features.data()),
                        visited.data(),
                        reinterpret_cast<Block*>(blocks.data()),
                        reinterpret_cast<OnePassScalars*>(scalars.data()),
                        n_features,
                        width};
    };
    if (weights.dtype() == nb::dtype<float>())
      model_ = view(static_cast<float*>(nullptr));
    else
      model_ = view(static_cast<double*>(nullptr));
    std::visit(
        [&](const auto& model) {
          const OnePassScalars& own = *model.scalars;
          require(own.n_classes >= 0 && model.n_blocks() <= blocks.shape(0), "there must be one block for each class");
          require(own.slots_used >= 0 && std::size_t(own.slots_used) <= n_features && own.n_visited >= 0 &&
                      std::size_t(own.n_visited) <= n_features,
                  "a feature lies outside the weights");
          for (std::int64_t k = 0; k < own.n_visited; ++k)
            require(visited.data()[k] < n_features, "a feature lies outside the weights");
        },
        model_);
  }

  OnePassEngine(const OnePassEngine&) = delete;

  Ended learn_rows(Vector<const std::int64_t> indptr, Vector<const std::uint32_t> slots, ReadOnlyVector values,
                   bool mapped, Vector<const std::int64_t> codes, std::optional<Vector<const double>> weights,
                   std::optional<Vector<const std::int64_t>> order, std::optional<Vector<std::int64_t>> predicted,
                   std::optional<Matrix<double>> margins) {
    require(slots.size() == values.size(), "there must be one value for each slot");
    const Examples examples = examples_of(indptr.size() - 1, ANY_CLASS, codes, weights, order, predicted);
    return std::visit(
        [&]<class T>(const OnePass<T>& model) -> Ended {
          const T* data = data_of<const T>(values, "values must have the type of the weights");
          const Margins room = room_for(margins, indptr.size() - 1, model);
          nb::gil_scoped_release release;
          const Outcome outcome =
              sweep(model, Rows<T>{indptr.data(), slots.data(), data, nullptr, mapped}, examples, room);
          return {outcome.rows_done, int(outcome.refusal)};
        },
        model_);
  }

  Ended learn_dense(ReadOnlyMatrix x, Vector<const std::int64_t> codes, std::optional<Vector<const double>> weights,
                    std::optional<Vector<const std::int64_t>> order, std::optional<Vector<std::int64_t>> predicted,
                    std::optional<Matrix<double>> margins) {
    const Examples examples = examples_of(x.shape(0), ANY_CLASS, codes, weights, order, predicted);
    return std::visit(
        [&]<class T>(const OnePass<T>& model) -> Ended {
          require(x.shape(1) <= model.n_features, "there are more columns than weights");
          const T* data = data_of<const T>(x, "values must have the type of the weights");
          const Margins room = room_for(margins, x.shape(0), model);
          nb::gil_scoped_release release;
          const Outcome outcome = sweep_dense(model, data, x.shape(1), examples, room);
          return {outcome.rows_done, int(outcome.refusal)};
        },
        model_);
  }

  // Learns from one dict, whose features get slots of the index. Whatever is refused leaves the index as it was.
  // Returns what ended it and, for NO_ROOM, how many features need weights, else the class that was predicted, and
  // the margins.
  std::tuple<int, std::int64_t, std::vector<double>> learn_dict(FeatureIndex& index, nb::dict x, std::int64_t code,
                                                                double weight) {
    require(code >= 0, "a class code is out of range");
    return std::visit(
        [&]<class T>(const OnePass<T>& model) -> std::tuple<int, std::int64_t, std::vector<double>> {
          const std::size_t before = index.count();
          if (!std::holds_alternative<DictLearner<T>>(dict_learner_)) dict_learner_.emplace<DictLearner<T>>(model);
          auto& [learner, slots, values] = std::get<DictLearner<T>>(dict_learner_);
          slots.clear();
          values.clear();
          if (!read_dict(x.ptr(), index, true, slots, values)) throw nb::python_error();
          bool good = true;
          for (const T value : values) good = good && std::isfinite(value);
          if (good && index.count() > model.n_features) {
            const std::size_t needed = index.count();
            index.truncate(before);
            return {NO_ROOM, std::int64_t(needed), {}};
          }
          std::int64_t predicted = -1;
          std::vector<double> margins(model.n_blocks());
          const Refusal refusal = good ? learner.learn(slots.data(), values.data(), slots.size(), code, weight,
                                                       &predicted, margins.data())
                                       : Refusal::bad_row;
          if (refusal != Refusal::none) index.truncate(before);
          return {int(refusal), predicted, margins};
        },
        model_);
  }

  void score_rows(Vector<const std::int64_t> indptr, Vector<const std::uint32_t> slots, ReadOnlyVector values,
                  Matrix<double> margins) const {
    std::visit(
        [&]<class T>(const OnePass<T>& model) {
          require(margins.shape(0) == indptr.size() - 1 && margins.shape(1) == model.n_blocks(),
                  "there must be one margin for each row and block");
          const T* data = data_of<const T>(values, "values must have the type of the weights");
          nb::gil_scoped_release release;
          maxcosine::score_rows(model, Rows<T>{indptr.data(), slots.data(), data}, margins.shape(0), margins.data());
        },
        model_);
  }

  void score_dense(ReadOnlyMatrix x, Matrix<double> margins) const {
    std::visit(
        [&]<class T>(const OnePass<T>& model) {
          require(margins.shape(0) == x.shape(0) && margins.shape(1) == model.n_blocks(),
                  "there must be one margin for each row and block");
          const T* data = data_of<const T>(x, "values must have the type of the weights");
          nb::gil_scoped_release release;
          score_dense_rows(model, data, x.shape(1), x.shape(0), margins.data());
        },
        model_);
  }

  // Margins of one dict, one for each block; features that the index does not know count nothing.
  std::vector<double> score_dict(FeatureIndex& index, nb::dict x) const {
    return std::visit(
        [&]<class T>(const OnePass<T>& model) {
          std::vector<std::uint32_t> slots;
          std::vector<T> values;
          if (!read_dict(x.ptr(), index, false, slots, values)) throw nb::python_error();
          std::vector<double> margins(model.n_blocks());
          OnePassLearner<T>(model).score_only(slots.data(), values.data(), slots.size(), margins.data());
          return margins;
        },
        model_);
  }

  // Computes the sums over all features anew, after the caller has changed features or weights.
  void refresh() {
    std::visit(
        [](const auto& model) {
          nb::gil_scoped_release release;
          refresh_sums(model);
        },
        model_);
  }

  // Norm, Lambda and the proven ceiling of the mixture; see onepass_claim.hpp.
  std::tuple<double, double, double> claim() const {
    return std::visit(
        [](const auto& model) -> std::tuple<double, double, double> {
          nb::gil_scoped_release release;
          const OnePassClaim claim = claim_of_mixture(model);
          return {claim.norm, claim.coef_sum, claim.ceiling};
        },
        model_);
  }

 private:
  // A sweep ends at a class that has no block yet; any code is allowed.
  static constexpr std::size_t ANY_CLASS = std::numeric_limits<std::int64_t>::max();

  template <class T>
  [[nodiscard]] static Margins room_for(const std::optional<Matrix<double>>& margins, std::size_t n,
                                        const OnePass<T>& model) {
    if (!margins) return {};
    require(margins->shape(0) >= n && margins->shape(1) >= model.n_blocks(),
            "there must be room for one margin for each row and block");
    return {margins->data(), margins->shape(1)};
  }

  nb::object arrays_;
  std::variant<OnePass<float>, OnePass<double>> model_;
  std::variant<std::monostate, DictLearner<float>, DictLearner<double>> dict_learner_;
};

}  // namespace

void bind_onepass(nb::module_& m) {
  nb::class_<OnePassEngine>(m, "OnePassEngine")
      .def(nb::init<AnyMatrix, Matrix<std::int64_t>, Vector<std::uint32_t>, Matrix<std::int64_t>,
                    Matrix<std::int64_t>>(),
           "weights"_a, "features"_a, "visited"_a, "blocks"_a, "scalars"_a)
      .def("learn_rows", &OnePassEngine::learn_rows, "indptr"_a, "slots"_a, "values"_a, "mapped"_a, "codes"_a,
           "weights"_a.none(), "order"_a.none(), "predicted"_a.none(), "margins"_a.none())
      .def("learn_dense", &OnePassEngine::learn_dense, "x"_a, "codes"_a, "weights"_a.none(), "order"_a.none(),
           "predicted"_a.none(), "margins"_a.none())
      .def("learn_dict", &OnePassEngine::learn_dict, "index"_a, "x"_a, "code"_a, "weight"_a)
      .def("score_rows", &OnePassEngine::score_rows, "indptr"_a, "slots"_a, "values"_a, "margins"_a)
      .def("score_dense", &OnePassEngine::score_dense, "x"_a, "margins"_a)
      .def("score_dict", &OnePassEngine::score_dict, "index"_a, "x"_a)
      .def("refresh", &OnePassEngine::refresh)
      .def("claim", &OnePassEngine::claim);
}

}  // namespace maxcosine
