// Calibrates a model of a rule by the scores that its hypotheses give to each row before it is learnt.
//
// The scores are those by which the model would predict: of the averaged hypotheses or the last. Where the length of w
// means nothing to the rule, they are those of w / Lambda; so its arbitrary length, and the units of 2^sum_exponent,
// do not matter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "arithmetic.hpp"
#include "calibration.hpp"
#include "head.hpp"
#include "hypothesis.hpp"

namespace maxcosine {

template <class T>
class HeadCalibrator {
 public:
  explicit HeadCalibrator(const Heads<T>& heads) : heads_(heads) {}

  // `by_v` are the row's dot products with the columns of v. A row whose class has not come is left out, and so is one
  // before a second class: there is no other class that it could be. Not inlined: it would slow sweeps without it.
  [[gnu::noinline]] void learn(const std::uint32_t* slots, const T* values, std::size_t n, const double* by_v, std::int64_t code) {
    if (!heads_.class_seen[code]) return;
    by_total_.resize(heads_.width);
    if (heads_.total) score_columns(slots, values, n, heads_.total, heads_.width, by_total_.data());
    const std::size_t position = collect_scores(by_v, code);
    if (scores_.size() >= 2) calibrate_scores(*heads_.calibration, scores_, position);
  }

 private:
  // The scores of the classes that have come, in the order of their codes; returns where that of `code` is. One head
  // for two classes is the second against the first. With a head for each, these two have the same scores.
  [[nodiscard]] std::size_t collect_scores(const double* by_v, std::int64_t code) {
    const Head& first = heads_.table[0];
    const bool joint = first.joint != 0, opposed = !joint && heads_.n_heads == 1;
    const std::int64_t n_classes = joint ? first.stop : opposed ? first.positive + 1 : std::int64_t(heads_.n_heads);
    std::size_t position = 0;
    scores_.clear();
    for (std::int64_t c = 0; c < n_classes; ++c) {
      if (!heads_.class_seen[c]) continue;
      if (c == code) position = scores_.size();
      const Head& head = joint || opposed ? first : heads_.table[c];
      const std::size_t column = opposed ? 0 : std::size_t(c);
      const ScoreFactors factors = score_factors(heads_, head, head.scale_free != 0);
      const double score = column_score(heads_, factors, column, by_v[column], by_total_[column]);
      scores_.push_back(opposed && c != first.positive ? -score : score);
    }
    return position;
  }

  const Heads<T>& heads_;
  std::vector<double> by_total_, scores_;
};

}  // namespace maxcosine
