#include "runtime/minimisers/line_search.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace gradcell {

namespace {

constexpr double kDecrease = 1e-4, kSlope = 0.9;  // the strong Wolfe conditions' constants
constexpr double kMargin = 0.1, kGrowth = 10;

/// Where the cubic with these values and slopes has its minimum; NaN if it has none.
double cubic_minimum(const LinePoint& a, const LinePoint& b) {
  const double d1 = a.slope + b.slope - 3 * (a.value - b.value) / (a.at - b.at);
  const double d2 = std::copysign(std::sqrt(d1 * d1 - a.slope * b.slope), b.at - a.at);
  return b.at - (b.at - a.at) * (b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2);
}

/// What is nearest to x from low to high; their middle for NaN.
double inside(double x, double low, double high) {
  return std::isnan(x) ? (low + high) / 2 : std::clamp(x, low, high);
}

}  // namespace

void WolfeSearch::begin(double value, double slope, double first, int most) {
  start_ = low_ = {0, value, slope};
  trial_ = first, most_ = most, tries_ = 0, zooming_ = keeps_ = false;
}

bool WolfeSearch::low_enough(const LinePoint& p) const {
  return p.value <= start_.value + kDecrease * p.at * start_.slope;
}

bool WolfeSearch::flat_enough(const LinePoint& p) const {
  return std::abs(p.slope) <= -kSlope * start_.slope;
}

WolfeSearch::Next WolfeSearch::advance(double value, double slope) {
  keeps_ = false;
  ++tries_;
  const bool finite = std::isfinite(value) && std::isfinite(slope);
  LinePoint p{trial_, finite ? value : std::numeric_limits<double>::infinity(), slope};
  return zooming_ ? zoom(p) : bracket(p);
}

WolfeSearch::Next WolfeSearch::bracket(const LinePoint& p) {
  if (!low_enough(p) || (low_.at > 0 && p.value >= low_.value)) {
    zooming_ = true, high_ = p;
    return between();
  }
  if (flat_enough(p)) return Next::Accept;
  const LinePoint before = low_;
  low_ = p, keeps_ = true;
  if (p.slope >= 0) {
    zooming_ = true, high_ = before;
    return between();
  }
  if (tries_ >= most_) return Next::TakeLow;
  const double far = cubic_minimum(before, p);
  trial_ = inside(far > p.at ? far : kGrowth * p.at, (1 + kMargin) * p.at, kGrowth * p.at);
  return Next::Evaluate;
}

WolfeSearch::Next WolfeSearch::zoom(const LinePoint& p) {
  if (!low_enough(p) || p.value >= low_.value) {
    high_ = p;
    return between();
  }
  if (flat_enough(p)) return Next::Accept;
  if (p.slope * (high_.at - low_.at) >= 0) high_ = low_;
  low_ = p, keeps_ = true;
  return between();
}

WolfeSearch::Next WolfeSearch::between() {
  const double width = high_.at - low_.at;
  const double least = 1e-9 * std::max(std::abs(high_.at), std::abs(low_.at));
  if (tries_ >= most_ || std::abs(width) <= least) return low_.at > 0 ? Next::TakeLow : Next::Fail;
  if (std::isinf(high_.value)) {
    trial_ = low_.at + kMargin * width;
    return Next::Evaluate;
  }
  const double a = low_.at + kMargin * width, b = high_.at - kMargin * width;
  trial_ = inside(cubic_minimum(low_, high_), std::min(a, b), std::max(a, b));
  return Next::Evaluate;
}

}  // namespace gradcell
