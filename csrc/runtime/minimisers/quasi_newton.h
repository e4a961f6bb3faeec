// Quasi-Newton methods by reverse communication: a minimiser that says where it wants to know the
// function's value and gradient, and is told.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/minimisers/curvature.h"
#include "runtime/minimisers/line_search.h"

namespace gradcell {

/// Minimises over vectors of T. Products are summed in double. The points do not depend on the
/// function's unit, nor on that of the point: nothing is compared with a number that has a unit,
/// but for the gradient's tolerance.
template <class T>
class QuasiNewton {
 public:
  enum class State {
    Search,
    Stepped,
    SmallGradient,
    SmallDecrease,
    NoLowerPoint,  ///< no step lowers the value, as far as its digits show
    Stalled,       ///< none was found: in too few tries, or the slopes are not the value's
    NotFinite
  };
  struct Options {
    int search = 50;  ///< points tried for one step
    double gradient_tolerance = 0, value_tolerance = 0;
  };

  QuasiNewton(std::span<const T> start, std::unique_ptr<Curvature<T>> curvature, Options options);

  /// Where value and gradient are wanted.
  std::span<const T> wanted() const { return wanted_; }
  /// The best point so far, where the last step has led.
  std::span<const T> point() const { return point_; }
  double value() const { return value_; }
  /// The gradient there.
  std::span<const T> gradient() const { return gradient_; }
  /// How often `point` has moved.
  int64_t steps() const { return taken_; }
  /// After how many of these steps nothing was learnt: the gradient had not changed along them, or
  /// as if the function were concave.
  int64_t skipped() const { return skipped_; }
  /// How long the last step was; 0: there was none.
  double length() const { return length_; }
  /// How often it has been told value and gradient.
  int64_t evaluations() const { return evaluations_; }

  /// Takes value and gradient at `wanted`. rounding: the relative size of the value's last digit.
  /// Stepped: `point` has moved, and `wanted` begins the next search. SmallGradient and later ones:
  /// it has ended at `point`, where it would begin again.
  State advance(double value, std::span<const T> gradient, double rounding);
  /// The function has changed: it is wanted at `point` again, and what is known of its curvature
  /// stays.
  void renew();
  /// The point is another one; nothing is known of the function there.
  void restart(std::span<const T> point);
  /// What is known of the curvature, as numbers; and to go on from there. False: the numbers are of
  /// another method or size.
  std::vector<T> saved() const { return curvature_->saved(); }
  bool load(std::span<const T> point, std::span<const T> curvature, int64_t steps, double length);

 private:
  State taken(double value, std::span<const T> gradient, double rounding);
  State arrive(double value, std::span<const T> gradient);
  State stepped(double step, double value, std::span<const T> gradient);
  State failed(State why);
  void remember(double step, std::span<const T> gradient);
  State search();
  double first_step(double slope) const;
  bool look_at(double step);

  Options options_;
  size_t n_;
  std::unique_ptr<Curvature<T>> curvature_;
  std::vector<T> point_, gradient_, direction_, wanted_, low_gradient_, moved_, change_;
  double value_ = 0, low_step_ = 0, low_value_ = 0, length_ = 0;
  int64_t taken_ = 0, skipped_ = 0, evaluations_ = 0;
  bool known_ = false;  ///< value and gradient at `point_`
  WolfeSearch search_;
};

/// Limited memory: the latest pairs stand for the curvature.
template <class T>
struct Lbfgs : QuasiNewton<T> {
  Lbfgs(std::span<const T> start, int history, QuasiNewton<T>::Options options)
      : QuasiNewton<T>(start, std::make_unique<LatestPairs<T>>(start.size(), history), options) {}
};

/// The whole inverse Hessian.
struct DenseQuasiNewton : QuasiNewton<double> {
  DenseQuasiNewton(std::span<const double> start, BroydenUpdate update, Options options)
      : QuasiNewton(start, std::make_unique<InverseHessian>(start.size(), update), options) {}
};

}  // namespace gradcell
