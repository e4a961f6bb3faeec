// L-BFGS by reverse communication: a minimiser that says where it wants to know the function's
// value and gradient, and is told. (D. C. Liu, J. Nocedal, Math. Programming 45, 1989; the search
// for a step is that of J. Nocedal, S. Wright, Numerical Optimization, 2nd edition, algorithms 3.5
// and 3.6.)
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace gradcell {

/// The function along a direction: its value and slope at a multiple of it.
struct LinePoint {
  double at = 0, value = 0, slope = 0;
};

/// A step that meets the strong Wolfe conditions, looked for along a line that goes down at 0.
class WolfeSearch {
 public:
  enum class Next { Evaluate, Accept, TakeLow, Fail };

  /// value, slope: at 0; first: the first step to be tried; most: how many may be.
  void begin(double value, double slope, double first, int most);
  /// The step whose value and slope are wanted next.
  double trial() const { return trial_; }
  /// Takes what was found at `trial`. Accept: it is the step; TakeLow: the one that was last kept
  /// is; Fail: no step was found that lowers the value.
  Next advance(double value, double slope);
  /// Whether the step that was told of last is the best one so far, to be kept.
  bool keeps() const { return keeps_; }

 private:
  bool low_enough(const LinePoint& p) const;
  bool flat_enough(const LinePoint& p) const;
  Next bracket(const LinePoint& p);
  Next zoom(const LinePoint& p);
  Next between();

  LinePoint start_, low_, high_;
  double trial_ = 0;
  int tries_ = 0, most_ = 0;
  bool zooming_ = false, keeps_ = false;
};

/// Minimises over vectors of T. Products are summed in double.
template <class T>
class Lbfgs {
 public:
  enum class State { Search, Stepped, SmallGradient, SmallDecrease, NoLowerPoint, NotFinite };
  struct Options {
    int history = 50, search = 50;  ///< pairs kept, points tried for one step
    double gradient_tolerance = 0, value_tolerance = 0;
  };

  Lbfgs(std::span<const T> start, Options options);

  /// Where value and gradient are wanted.
  std::span<const T> wanted() const { return wanted_; }
  /// The best point so far, where the last step has led.
  std::span<const T> point() const { return point_; }
  double value() const { return value_; }
  /// How often `point` has moved.
  int64_t steps() const { return taken_; }

  /// Takes value and gradient at `wanted`. Stepped: `point` has moved, and `wanted` begins the next
  /// search. SmallGradient and later ones: it has ended at `point`, where it would begin again.
  State advance(double value, std::span<const T> gradient);
  /// The function has changed: it is wanted at `point` again, and what is known of its curvature
  /// stays.
  void renew();
  /// The point is another one; nothing is known of the function there.
  void restart(std::span<const T> point);

 private:
  State taken(double value, std::span<const T> gradient);
  State arrive(double value, std::span<const T> gradient);
  State stepped(double step, double value, std::span<const T> gradient);
  State failed();
  void remember(double step, std::span<const T> gradient);
  State search();
  void direct();
  void look_at(double step);
  size_t slot(int age) const;

  Options options_;
  size_t n_;
  std::vector<T> point_, gradient_, direction_, wanted_, low_gradient_;
  std::vector<T> steps_, changes_;  ///< [history, n]: of points, of gradients
  std::vector<double> curvature_;   ///< 1 / (step . change)
  double value_ = 0, scale_ = 1, low_step_ = 0, low_value_ = 0;
  int held_ = 0, newest_ = -1;
  int64_t taken_ = 0;
  bool known_ = false;  ///< value and gradient at `point_`
  WolfeSearch search_;
};

}  // namespace gradcell
