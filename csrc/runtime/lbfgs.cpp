#include "runtime/lbfgs.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace gradcell {

namespace {

constexpr double kDecrease = 1e-4, kSlope = 0.9;  // the strong Wolfe conditions' constants
constexpr double kMargin = 0.1, kGrowth = 10;
constexpr size_t kLanes = 16, kBlock = 1024;

/// Lanes of T over blocks, and the blocks in double.
template <class T>
double dot(const T* a, const T* b, size_t n) {
  double total = 0;
  for (size_t begin = 0; begin < n; begin += kBlock) {
    const size_t end = std::min(begin + kBlock, n);
    T lanes[kLanes] = {};
    size_t i = begin;
    for (; i + kLanes <= end; i += kLanes)
      for (size_t k = 0; k < kLanes; ++k) lanes[k] += a[i + k] * b[i + k];
    for (; i < end; ++i) lanes[i % kLanes] += a[i] * b[i];
    for (T lane : lanes) total += lane;
  }
  return total;
}

/// y += a x
template <class T>
void add(double a, const T* x, T* y, size_t n) {
  const T factor = static_cast<T>(a);
  for (size_t i = 0; i < n; ++i) y[i] += factor * x[i];
}

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

template <class T>
Lbfgs<T>::Lbfgs(std::span<const T> start, Options options)
    : options_(options),
      n_(start.size()),
      point_(start.begin(), start.end()),
      gradient_(n_),
      direction_(n_),
      wanted_(point_),
      low_gradient_(n_),
      steps_(n_ * options.history),
      changes_(n_ * options.history),
      curvature_(options.history) {}

template <class T>
void Lbfgs<T>::renew() {
  known_ = false;
  wanted_ = point_;
}

template <class T>
void Lbfgs<T>::restart(std::span<const T> point) {
  std::ranges::copy(point, point_.begin());
  held_ = 0;
  renew();
}

template <class T>
auto Lbfgs<T>::advance(double value, std::span<const T> gradient) -> State {
  const State state = taken(value, gradient);
  if (state != State::Search && state != State::Stepped) renew();
  return state;
}

template <class T>
auto Lbfgs<T>::taken(double value, std::span<const T> gradient) -> State {
  if (!known_) return arrive(value, gradient);
  const double at = search_.trial();
  const auto next = search_.advance(value, dot(gradient.data(), direction_.data(), n_));
  if (search_.keeps()) {
    low_step_ = at, low_value_ = value;
    std::ranges::copy(gradient, low_gradient_.begin());
  }
  switch (next) {
    case WolfeSearch::Next::Evaluate:
      look_at(search_.trial());
      return State::Search;
    case WolfeSearch::Next::Accept:
      return stepped(at, value, gradient);
    case WolfeSearch::Next::TakeLow:
      return stepped(low_step_, low_value_, low_gradient_);
    case WolfeSearch::Next::Fail:
      return failed();
  }
  return State::NoLowerPoint;
}

/// The function at `point_`, for the first time.
template <class T>
auto Lbfgs<T>::arrive(double value, std::span<const T> gradient) -> State {
  value_ = value, known_ = true;
  std::ranges::copy(gradient, gradient_.begin());
  const bool finite = std::ranges::all_of(gradient, [](T g) { return std::isfinite(g); });
  if (!std::isfinite(value) || !finite) return State::NotFinite;
  return search();
}

/// `point_` moves by a step along the direction.
template <class T>
auto Lbfgs<T>::stepped(double step, double value, std::span<const T> gradient) -> State {
  const double before = value_;
  look_at(step);
  remember(step, gradient);
  std::swap(point_, wanted_);
  std::copy_n(gradient.data(), n_, gradient_.begin());
  value_ = value, ++taken_;
  const double size = std::max(std::abs(before), std::abs(value));
  if (options_.value_tolerance > 0 && before - value <= options_.value_tolerance * size)
    return State::SmallDecrease;
  const State state = search();
  return state == State::Search ? State::Stepped : state;
}

/// No step along the direction lowers the value: what is known of the curvature may be wrong.
template <class T>
auto Lbfgs<T>::failed() -> State {
  if (held_ == 0) return State::NoLowerPoint;
  held_ = 0;
  return search();
}

/// Keeps the step and the change of the gradient, if they show that the function is convex there.
template <class T>
void Lbfgs<T>::remember(double step, std::span<const T> gradient) {
  if (options_.history == 0) return;
  const auto at = static_cast<size_t>((newest_ + 1) % options_.history);
  T *s = &steps_[at * n_], *y = &changes_[at * n_];
  for (size_t i = 0; i < n_; ++i) {
    s[i] = static_cast<T>(step) * direction_[i];
    y[i] = gradient[i] - gradient_[i];
  }
  const double sy = dot(s, y, n_), yy = dot(y, y, n_);
  if (!(sy > std::numeric_limits<T>::epsilon() * yy)) {
    held_ = std::min(held_, options_.history - 1);  // the oldest pair's place has been written to
    return;
  }
  curvature_[at] = 1 / sy, scale_ = sy / yy;
  newest_ = static_cast<int>(at);
  held_ = std::min(held_ + 1, options_.history);
}

/// Begins the search along a new direction.
template <class T>
auto Lbfgs<T>::search() -> State {
  double largest = 0, sum = 0;
  for (T g : gradient_) {
    largest = std::max(largest, static_cast<double>(std::abs(g)));
    sum += std::abs(g);
  }
  if (largest <= options_.gradient_tolerance) return State::SmallGradient;
  direct();
  double slope = dot(gradient_.data(), direction_.data(), n_);
  if (!(slope < 0) && held_ > 0) {
    held_ = 0;
    direct();
    slope = dot(gradient_.data(), direction_.data(), n_);
  }
  if (!(slope < 0)) return State::NoLowerPoint;
  search_.begin(value_, slope, held_ ? 1.0 : std::min(1.0, 1.0 / sum), options_.search);
  look_at(search_.trial());
  return State::Search;
}

template <class T>
size_t Lbfgs<T>::slot(int age) const {
  return static_cast<size_t>((newest_ - age + options_.history) % options_.history);
}

/// The direction: minus the inverse Hessian, as the pairs show it, times the gradient; two loops.
template <class T>
void Lbfgs<T>::direct() {
  T* d = direction_.data();
  for (size_t i = 0; i < n_; ++i) d[i] = -gradient_[i];
  if (held_ == 0) return;
  std::vector<double> along(held_);
  for (int age = 0; age < held_; ++age) {
    const size_t k = slot(age);
    along[age] = curvature_[k] * dot(&steps_[k * n_], d, n_);
    add(-along[age], &changes_[k * n_], d, n_);
  }
  for (size_t i = 0; i < n_; ++i) d[i] *= static_cast<T>(scale_);
  for (int age = held_; age-- > 0;) {
    const size_t k = slot(age);
    add(along[age] - curvature_[k] * dot(&changes_[k * n_], d, n_), &steps_[k * n_], d, n_);
  }
}

template <class T>
void Lbfgs<T>::look_at(double step) {
  for (size_t i = 0; i < n_; ++i) wanted_[i] = point_[i] + static_cast<T>(step) * direction_[i];
}

template class Lbfgs<float>;
template class Lbfgs<double>;

}  // namespace gradcell
