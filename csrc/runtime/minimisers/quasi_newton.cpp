#include "runtime/minimisers/quasi_newton.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace gradcell {

namespace {

/// The share of a point's largest element that the first of all steps changes an element by.
constexpr double kFirstShare = 0.01;

template <class T>
double largest(const std::vector<T>& v) {
  T most = 0;
  for (T x : v) most = std::max(most, std::abs(x));
  return most;
}

}  // namespace

template <class T>
QuasiNewton<T>::QuasiNewton(std::span<const T> start, std::unique_ptr<Curvature<T>> curvature,
                            Options options)
    : options_(options),
      n_(start.size()),
      curvature_(std::move(curvature)),
      point_(start.begin(), start.end()),
      gradient_(n_),
      direction_(n_),
      wanted_(point_),
      low_gradient_(n_),
      moved_(n_),
      change_(n_) {}

template <class T>
void QuasiNewton<T>::renew() {
  known_ = false;
  wanted_ = point_;
}

template <class T>
void QuasiNewton<T>::restart(std::span<const T> point) {
  std::ranges::copy(point, point_.begin());
  curvature_->forget();
  length_ = 0;
  renew();
}

template <class T>
bool QuasiNewton<T>::load(std::span<const T> point, std::span<const T> curvature, int64_t steps,
                          double length) {
  if (!curvature_->load(curvature)) return false;
  std::ranges::copy(point, point_.begin());
  taken_ = steps, length_ = length;
  renew();
  return true;
}

template <class T>
auto QuasiNewton<T>::advance(double value, std::span<const T> gradient, double rounding) -> State {
  ++evaluations_;
  const State state = taken(value, gradient, rounding);
  if (state != State::Search && state != State::Stepped) renew();
  return state;
}

template <class T>
auto QuasiNewton<T>::taken(double value, std::span<const T> gradient, double rounding) -> State {
  if (!known_) return arrive(value, gradient);
  const double at = search_.trial();
  const double slope = dot(gradient.data(), direction_.data(), n_);
  const auto next = search_.advance(value, slope, rounding);
  if (search_.keeps()) {
    low_step_ = at, low_value_ = value;
    std::ranges::copy(gradient, low_gradient_.begin());
  }
  switch (next) {
    case WolfeSearch::Next::Evaluate:
      return look_at(search_.trial()) ? State::Search : failed(State::NoLowerPoint);
    case WolfeSearch::Next::Accept:
      return stepped(at, value, gradient);
    case WolfeSearch::Next::TakeLow:
      return stepped(low_step_, low_value_, low_gradient_);
    case WolfeSearch::Next::Hidden:
      return failed(State::NoLowerPoint);
    case WolfeSearch::Next::Fail:
      break;
  }
  return failed(State::Stalled);
}

/// The function at `point_`, for the first time.
template <class T>
auto QuasiNewton<T>::arrive(double value, std::span<const T> gradient) -> State {
  value_ = value, known_ = true;
  std::ranges::copy(gradient, gradient_.begin());
  const bool finite = std::ranges::all_of(gradient, [](T g) { return std::isfinite(g); });
  if (!std::isfinite(value) || !finite) return State::NotFinite;
  return search();
}

/// `point_` moves by a step along the direction.
template <class T>
auto QuasiNewton<T>::stepped(double step, double value, std::span<const T> gradient) -> State {
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

/// No step along the direction lowers the value, and why: what is known of the curvature may be
/// wrong.
template <class T>
auto QuasiNewton<T>::failed(State why) -> State {
  if (!curvature_->known()) return why;
  curvature_->forget();
  return search();
}

/// Keeps the step and the change of the gradient, if they show that the function is convex there,
/// by more than roundings would.
template <class T>
void QuasiNewton<T>::remember(double step, std::span<const T> gradient) {
  for (size_t i = 0; i < n_; ++i) {
    moved_[i] = static_cast<T>(step * direction_[i]);
    change_[i] = gradient[i] - gradient_[i];
  }
  const double sy = dot(moved_.data(), change_.data(), n_);
  const double yy = dot(change_.data(), change_.data(), n_);
  length_ = std::sqrt(dot(moved_.data(), moved_.data(), n_));
  // The cosine of their angle: s'y by itself, or beside y'y, would depend on the function's units.
  if (!(sy > std::numeric_limits<T>::epsilon() * length_ * std::sqrt(yy))) {
    ++skipped_;
    return;
  }
  curvature_->learn(moved_, change_, sy, -step * dot(moved_.data(), gradient_.data(), n_));
}

/// Begins the search along a new direction.
template <class T>
auto QuasiNewton<T>::search() -> State {
  if (largest(gradient_) <= options_.gradient_tolerance) return State::SmallGradient;
  curvature_->direct(gradient_, direction_);
  double slope = dot(gradient_.data(), direction_.data(), n_);
  if (!(slope < 0) && curvature_->known()) {
    curvature_->forget();
    curvature_->direct(gradient_, direction_);
    slope = dot(gradient_.data(), direction_.data(), n_);
  }
  if (!(slope < 0)) return State::Stalled;
  search_.begin(value_, slope, first_step(slope), options_.search);
  return look_at(search_.trial()) ? State::Search : failed(State::NoLowerPoint);
}

/// The first step to be tried. Without curvature the direction is the gradient, whose size says
/// nothing of a step's, so a step is as long as the last one. The first of all begins with a share
/// of the point (W. Hager, H. Zhang, ACM Trans. Math. Softw. 32, 2006, section 5), or at zero where
/// the slope would bring the value to zero.
template <class T>
double QuasiNewton<T>::first_step(double slope) const {
  if (curvature_->known()) return 1;
  const double size = std::sqrt(-slope), reach = kFirstShare * largest(point_);
  if (length_ > 0) return length_ / size;
  if (reach > 0) return reach / largest(gradient_);
  return value_ != 0 ? std::abs(value_) / -slope : 1 / size;
}

/// Wants the point at a step along the direction; whether it is another one.
template <class T>
bool QuasiNewton<T>::look_at(double step) {
  for (size_t i = 0; i < n_; ++i) wanted_[i] = point_[i] + static_cast<T>(step * direction_[i]);
  return wanted_ != point_;
}

template class QuasiNewton<float>;
template class QuasiNewton<double>;

}  // namespace gradcell
