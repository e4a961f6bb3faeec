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
  enum class Next { Evaluate, Accept, TakeLow, Hidden, Fail };

  /// value, slope: at 0; first: the first step to be tried; most: how many may be.
  void begin(double value, double slope, double first, int most);
  /// The step whose value and slope are wanted next.
  double trial() const { return trial_; }
  /// Takes what was found at `trial`. Accept: it is the step; TakeLow: the one that was last kept
  /// is; Hidden: no step lowers the value, as far as its digits show; Fail: none was found, in too
  /// few tries, or the value rises along the line where its slopes fall. rounding: the relative
  /// size of the value's last digit.
  Next advance(double value, double slope, double rounding);
  /// Whether the step that was told of last is the best one so far, to be kept.
  bool keeps() const { return keeps_; }

 private:
  bool low_enough(const LinePoint& p) const;
  bool flat_enough(const LinePoint& p) const;
  void compare(const LinePoint& p);
  Next bracket(const LinePoint& p);
  Next zoom(const LinePoint& p);
  Next between();

  LinePoint start_, low_, high_;
  double trial_ = 0, first_ = 0, rounding_ = 0;
  double rise_ = 0;  ///< how steeply the last value lay above the start's, if its slope led down
  int tries_ = 0, most_ = 0, in_line_ = 0;
  bool zooming_ = false, keeps_ = false, contradicted_ = false;
};

}  // namespace gradcell
