// What a quasi-Newton method knows of a function's curvature: steps and the changes of the gradient
// come in, directions go out.
#pragma once

#include <span>
#include <vector>

namespace gradcell {

/// The sum of products, in double.
template <class T>
double dot(const T* a, const T* b, size_t n);

template <class T>
class Curvature {
 public:
  virtual ~Curvature() = default;
  /// Whether there has been a step to learn from.
  virtual bool known() const = 0;
  virtual void forget() = 0;
  /// A step, the gradient's change over it, their product, which is positive, and step' B step,
  /// where B is the matrix that the step's direction came from.
  virtual void learn(std::span<const T> step, std::span<const T> change, double sy, double sBs) = 0;
  /// direction = - H gradient, where H stands for the inverse of the second derivatives.
  virtual void direct(std::span<const T> gradient, std::span<T> direction) = 0;
  /// All that is known, as numbers, and back.
  virtual std::vector<T> saved() const = 0;
  virtual bool load(std::span<const T> numbers) = 0;
};

/// The latest pairs of steps and changes (D. C. Liu, J. Nocedal, Math. Programming 45, 1989). The
/// two loops over the pairs are taken over their products with each other and with the gradient (R.
/// H. Byrd, J. Nocedal, R. B. Schnabel, Math. Programming 63, 1994), so that a direction reads the
/// pairs twice, as two matrices.
template <class T>
class LatestPairs : public Curvature<T> {
 public:
  LatestPairs(size_t n, int history);
  bool known() const override { return held_ > 0; }
  void forget() override { held_ = 0, newest_ = -1, new_ = false; }
  void learn(std::span<const T> step, std::span<const T> change, double sy, double sBs) override;
  void direct(std::span<const T> gradient, std::span<T> direction) override;
  std::vector<T> saved() const override;
  bool load(std::span<const T> numbers) override;

 private:
  size_t slot(int age) const;
  void multiply(const T* gradient);
  void weigh();

  size_t n_, history_;
  int held_ = 0, newest_ = -1;
  bool new_ = false;  ///< the newest pair has no products yet
  /// [history, n]: of points, of gradients; the first held_ slots. They and the gradient are kept
  /// in units of their own, powers of two.
  std::vector<T> steps_, changes_, gradient_, step_unit_, change_unit_;
  /// [history, history]: steps by changes that are newer or of the same pair, changes by changes.
  std::vector<double> step_change_, change_change_;
  std::vector<double> step_gradient_, change_gradient_, newest_products_;  ///< with vectors
  std::vector<double> step_weight_, change_weight_;  ///< a direction is such a sum of the pairs
  double scale_ = 1;
};

/// Updates of Broyden's family, scaled by themselves or not.
enum class BroydenUpdate { Bfgs, ScaledBfgs, ScaledBroyden };

/// The whole matrix. An update is
///   H = (H - Hy (Hy)' / y'Hy + phi v v') / tau + s s' / y's,  v = sqrt(y'Hy) (s / y's - Hy /
///   y'Hy),
/// where phi = tau = 1 is BFGS; tau and phi of the scaled ones: M. Al-Baali, H. Khalfan,
/// Optimization 54, 2005; J. F. Urban, P. Stefanou, J. A. Pons, J. Comput. Phys. 523, 2025,
/// section 3.
class InverseHessian : public Curvature<double> {
 public:
  InverseHessian(size_t n, BroydenUpdate update);
  bool known() const override { return known_; }
  void forget() override { known_ = false; }
  void learn(std::span<const double> step, std::span<const double> change, double sy,
             double sBs) override;
  void direct(std::span<const double> gradient, std::span<double> direction) override;
  std::vector<double> saved() const override;
  bool load(std::span<const double> numbers) override;

 private:
  struct Factors {
    double tau = 1, phi = 1;
  };
  Factors factors(double sy, double sBs, double yHy) const;
  void multiply(std::span<const double> x, std::span<double> y) const;

  size_t n_;
  BroydenUpdate update_;
  bool known_ = false;
  std::vector<double> matrix_, moved_;  ///< [n, n]; H y
};

}  // namespace gradcell
