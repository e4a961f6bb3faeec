#include "runtime/minimisers/line_search.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace gradcell {

namespace {

constexpr double kDecrease = 1e-4, kSlope = 0.9;  // the strong Wolfe conditions' constants
constexpr double kMargin = 0.1, kGrowth = 10;
constexpr int kContradictions = 5;  // values in a row that noise would not place on a line

/// Where the cubic with these values and slopes has its minimum; NaN if it has none.
double cubic_minimum(const LinePoint& a, const LinePoint& b) {
  const double d1 = a.slope + b.slope - 3 * (a.value - b.value) / (a.at - b.at);
  // (squares of slopes may overflow where slopes do not)
  const double unit = std::max({std::abs(d1), std::abs(a.slope), std::abs(b.slope)});
  const double c = d1 / unit, root = std::sqrt(c * c - a.slope / unit * (b.slope / unit));
  const double d2 = std::copysign(unit * root, b.at - a.at);
  return b.at - (b.at - a.at) * (b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2);
}

/// What is nearest to x from low to high; their middle for NaN.
double inside(double x, double low, double high) {
  return std::isnan(x) ? (low + high) / 2 : std::clamp(x, low, high);
}

}  // namespace

void WolfeSearch::begin(double value, double slope, double first, int most) {
  start_ = low_ = {0, value, slope};
  trial_ = first_ = first, most_ = most, tries_ = in_line_ = 0, rise_ = 0;
  zooming_ = keeps_ = contradicted_ = false;
}

/// (Where the foretold decrease is less than the value's last digit, a value as high as the start's
/// would pass for a lower one.)
bool WolfeSearch::low_enough(const LinePoint& p) const {
  return p.value < start_.value && p.value <= start_.value + kDecrease * p.at * start_.slope;
}

bool WolfeSearch::flat_enough(const LinePoint& p) const {
  return std::abs(p.slope) <= -kSlope * start_.slope;
}

WolfeSearch::Next WolfeSearch::advance(double value, double slope, double rounding) {
  keeps_ = false, rounding_ = rounding;
  ++tries_;
  const bool finite = std::isfinite(value) && std::isfinite(slope);
  LinePoint p{trial_, finite ? value : std::numeric_limits<double>::infinity(), slope};
  compare(p);
  return zooming_ ? zoom(p) : bracket(p);
}

/// Whether values rise in proportion to the step although all slopes lead down.
void WolfeSearch::compare(const LinePoint& p) {
  const double rise = (p.value - start_.value) / p.at;
  const bool wrong = rise > 0 && p.slope <= 0;
  in_line_ = wrong && rise > rise_ / 2 && rise < rise_ * 2 ? in_line_ + 1 : 0;
  rise_ = wrong ? rise : 0;
  contradicted_ |= in_line_ >= kContradictions;
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
  // What the slope foretells between them is less than the value's last digit.
  const bool rounded = std::abs(low_.slope * width) <= rounding_ * std::abs(low_.value);
  if (tries_ >= most_ || rounded || std::abs(width) <= least) {
    if (low_.at > 0) return Next::TakeLow;
    const bool short_enough = std::abs(width) <= std::sqrt(rounding_) * first_;
    return (rounded || short_enough) && !contradicted_ ? Next::Hidden : Next::Fail;
  }
  if (std::isinf(high_.value)) {
    trial_ = low_.at + kMargin * width;
    return Next::Evaluate;
  }
  const double a = low_.at + kMargin * width, b = high_.at - kMargin * width;
  trial_ = inside(cubic_minimum(low_, high_), std::min(a, b), std::max(a, b));
  return Next::Evaluate;
}

}  // namespace gradcell
