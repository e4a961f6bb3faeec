// A search along a line for a step that meets the strong Wolfe conditions, told of values and
// slopes where it wants them. (J. Nocedal, S. Wright, Numerical Optimization, 2nd edition,
// algorithms 3.5 and 3.6.)
#pragma once

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

}  // namespace gradcell
