#include "runtime/minimisers/quasi_newton.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace gradcell {

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
  renew();
}

template <class T>
bool QuasiNewton<T>::load(std::span<const T> point, std::span<const T> curvature, int64_t steps) {
  if (!curvature_->load(curvature)) return false;
  std::ranges::copy(point, point_.begin());
  taken_ = steps;
  renew();
  return true;
}

template <class T>
auto QuasiNewton<T>::advance(double value, std::span<const T> gradient) -> State {
  ++evaluations_;
  const State state = taken(value, gradient);
  if (state != State::Search && state != State::Stepped) renew();
  return state;
}

template <class T>
auto QuasiNewton<T>::taken(double value, std::span<const T> gradient) -> State {
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

/// No step along the direction lowers the value: what is known of the curvature may be wrong.
template <class T>
auto QuasiNewton<T>::failed() -> State {
  if (!curvature_->known()) return State::NoLowerPoint;
  curvature_->forget();
  return search();
}

/// Keeps the step and the change of the gradient, if they show that the function is convex there.
template <class T>
void QuasiNewton<T>::remember(double step, std::span<const T> gradient) {
  for (size_t i = 0; i < n_; ++i) {
    moved_[i] = static_cast<T>(step) * direction_[i];
    change_[i] = gradient[i] - gradient_[i];
  }
  const double sy = dot(moved_.data(), change_.data(), n_);
  const double yy = dot(change_.data(), change_.data(), n_);
  if (!(sy > std::numeric_limits<T>::epsilon() * yy)) return;
  curvature_->learn(moved_, change_, sy, -step * dot(moved_.data(), gradient_.data(), n_));
}

/// Begins the search along a new direction.
template <class T>
auto QuasiNewton<T>::search() -> State {
  double largest = 0, sum = 0;
  for (T g : gradient_) {
    largest = std::max(largest, static_cast<double>(std::abs(g)));
    sum += std::abs(g);
  }
  if (largest <= options_.gradient_tolerance) return State::SmallGradient;
  curvature_->direct(gradient_, direction_);
  double slope = dot(gradient_.data(), direction_.data(), n_);
  if (!(slope < 0) && curvature_->known()) {
    curvature_->forget();
    curvature_->direct(gradient_, direction_);
    slope = dot(gradient_.data(), direction_.data(), n_);
  }
  if (!(slope < 0)) return State::NoLowerPoint;
  search_.begin(value_, slope, curvature_->known() ? 1.0 : std::min(1.0, 1.0 / sum),
                options_.search);
  look_at(search_.trial());
  return State::Search;
}

template <class T>
void QuasiNewton<T>::look_at(double step) {
  for (size_t i = 0; i < n_; ++i) wanted_[i] = point_[i] + static_cast<T>(step) * direction_[i];
}

template class QuasiNewton<float>;
template class QuasiNewton<double>;

}  // namespace gradcell
