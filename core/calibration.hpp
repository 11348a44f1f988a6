// Probabilities of scores, fitted online: Platt scaling of the scores that rows have before they are learnt, so nothing
// is held out.
//
// J. C. Platt, "Probabilistic outputs for support vector machines", 1999, fitted here by online Newton steps.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace maxcosine {

inline constexpr double MOST_MARGIN = 1e100;  // squares stay within double
inline constexpr double LARGEST_EXPONENT = 30;
inline constexpr double SMALLEST_CURVATURE = 1e-4, SMALLEST_SLOPE = 0.05;
inline constexpr double LARGEST_SIZE = 1e290;  // of a sum of scores

// Probabilities are sigmoid(slope m + offset) of one margin or softmax(slope m) of one margin for each class.
struct PlattScaling {
  double slope;
  double offset;
  double curvature[3];  // of the slope, of both, and of the offset

  void forget_curvature() {
    curvature[0] = curvature[2] = 1;
    curvature[1] = 0;
  }
};

// Newton's step on the logarithmic loss of sigmoid(slope m + offset).
inline void calibrate_margin(PlattScaling& scaling, double margin, std::size_t code) {
  double* const h = scaling.curvature;
  const double m = std::clamp(margin, -MOST_MARGIN, MOST_MARGIN);
  const double exponent = std::clamp(scaling.slope * m + scaling.offset, -LARGEST_EXPONENT, LARGEST_EXPONENT);
  const double p = 1 / (1 + std::exp(-exponent));
  const double curvature = std::max(p * (1 - p), SMALLEST_CURVATURE), gradient = p - double(code);
  h[0] += curvature * m * m;
  h[1] += curvature * m;
  h[2] += curvature;
  const double determinant = h[0] * h[2] - h[1] * h[1];
  scaling.slope -= gradient * (h[2] * m - h[1]) / determinant;
  scaling.offset -= gradient * (h[0] - h[1] * m) / determinant;
}

// Newton's step for the slope of softmax(slope m).
inline void calibrate_blocks(PlattScaling& scaling, const std::vector<double>& margins, std::size_t code) {
  const auto clamped = [&](double margin) { return std::clamp(margin, -MOST_MARGIN, MOST_MARGIN); };
  const double highest = clamped(*std::max_element(margins.begin(), margins.end()));
  double sum = 0, mean = 0, square = 0;
  for (const double margin : margins) {
    const double m = clamped(margin), p = std::exp(scaling.slope * (m - highest));
    sum += p;
    mean += p * m;
    square += p * m * m;
  }
  mean /= sum;
  scaling.curvature[0] += std::max(square / sum - mean * mean, SMALLEST_CURVATURE);
  scaling.slope -= (mean - clamped(margins[code])) / scaling.curvature[0];
}

// One row, the one of this number, with one margin for two classes or one for each. The curvature is forgotten at row
// 2^k.
inline void calibrate(PlattScaling& scaling, const std::vector<double>& margins, std::size_t code, std::int64_t row) {
  if (std::has_single_bit(std::uint64_t(row))) scaling.forget_curvature();
  if (margins.size() == 1)
    calibrate_margin(scaling, margins[0], code);
  else
    calibrate_blocks(scaling, margins, code);
  scaling.slope = std::max(scaling.slope, SMALLEST_SLOPE);
}

// The calibration of a model of a rule, laid out as CALIBRATION of src/maxcosine/calibration.py. The scores of a rule
// may have any length, so margins are scores in units of their mean size.
struct Calibration {
  PlattScaling scaling;
  double size;        // sum of the sizes of the rows' scores, each the mean over the classes
  std::int64_t rows;  // rows that were calibrated
};
static_assert(sizeof(Calibration) == 7 * 8 && std::is_trivially_copyable_v<Calibration>);

// One row, given its scores by class. They become its margins: two classes have one, the difference of their scores.
// Its own scores count in the mean size, so a margin is at most the number of rows times that of classes.
inline void calibrate_scores(Calibration& calibration, std::vector<double>& scores, std::size_t code) {
  double size = 0;
  for (const double score : scores) size += std::abs(score);
  size = calibration.size + size / double(scores.size());
  if (!(size <= LARGEST_SIZE)) return;  // of scores that are not finite, too
  calibration.size = size;
  calibration.rows += 1;
  const double usual = size / double(calibration.rows);
  for (double& score : scores) score = usual > 0 ? score / usual : 0;
  PlattScaling& scaling = calibration.scaling;
  if (scores.size() == 2) {
    scores = {scores[1] - scores[0]};
  } else if (scaling.curvature[2] > 1) {  // the third class has come after rows of two
    scaling.offset = 0;
    scaling.forget_curvature();
  }
  calibrate(scaling, scores, code, calibration.rows);
}

}  // namespace maxcosine
