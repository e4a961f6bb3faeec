#include "runtime/minimisers/curvature.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "base/thread_pool.h"
#include "cpu/kernels/vector_kernels.h"

namespace gradcell {

namespace {

constexpr size_t kBlock = 1024;
/// Rows of a matrix that a task takes.
constexpr size_t kRows = 32;
/// Elements below which waking another thread would take as long.
constexpr size_t kParallel = 100'000;

template <class T>
constexpr DType kType = sizeof(T) == 8 ? DType::Float64 : DType::Float32;

/// Rows whose products with two vectors are taken while they are near.
constexpr size_t kNear = 4;
/// Columns that a task takes.
constexpr size_t kColumns = 256;
/// Bytes of pairs below which waking another thread would take as long as to read them.
constexpr size_t kManyBytes = 1'000'000;

/// The products of rows of a matrix [.., n] with x, in lanes of T over blocks, and of the blocks in
/// double.
template <class T>
void times(const T* rows, size_t count, size_t n, const T* x, double* products) {
  T parts[kNear];
  std::fill_n(products, count, 0.0);
  for (size_t at = 0; at < n; at += kBlock) {
    cpu::vector_kernels().dots(kType<T>, rows + at, static_cast<ptrdiff_t>(n), count, x + at, 0,
                               std::min(kBlock, n - at), parts);
    for (size_t r = 0; r < count; ++r) products[r] += parts[r];
  }
}

/// y[r] = sum over j < n of a[r * stride + j] * x[r * stride + j], in lanes of double.
void wide_products(const float* a, const float* x, ptrdiff_t stride, size_t rows, size_t n,
                   double* y) {
  cpu::vector_kernels().wide_dots(a, stride, rows, x, stride, n, y);
}
void wide_products(const double* a, const double* x, ptrdiff_t stride, size_t rows, size_t n,
                   double* y) {
  cpu::vector_kernels().dots(DType::Float64, a, stride, rows, x, stride, n, y);
}

/// A power of two near a vector's length, which leaves its digits as they are: products of vectors
/// in such units are far from the ends of a float's range.
template <class T>
T unit_of(std::span<const T> v) {
  const double length = std::sqrt(gradcell::dot(v.data(), v.data(), v.size()));
  constexpr int kMost = std::numeric_limits<T>::max_exponent - 2;
  return length > 0 ? std::ldexp(T(1), std::clamp(std::ilogb(length), -kMost, kMost)) : T(1);
}

/// The sum of x[k] y[k] in lanes.
double dot(const std::vector<double>& x, const double* y) {
  double sum = 0;
  wide_products(x.data(), y, 0, 1, x.size(), &sum);
  return sum;
}

/// y += a x
void add(double a, const double* x, std::vector<double>& y) {
  cpu::vector_kernels().add_rows(DType::Float64, x, 0, 1, &a, y.size(), y.data());
}

/// body(first row, behind the last one) for all rows of a square matrix.
template <class F>
void over_rows(size_t n, F body) {
  parallel_if(n * n >= kParallel, (n + kRows - 1) / kRows, [&](int task, int) {
    const size_t first = static_cast<size_t>(task) * kRows;
    body(first, std::min(n, first + kRows));
  });
}

}  // namespace

template <class T>
double dot(const T* a, const T* b, size_t n) {
  constexpr size_t kBlocks = 16;
  double parts[kBlocks], total = 0;
  const auto add_up = [&](size_t begin, size_t blocks, size_t size) {
    wide_products(a + begin, b + begin, kBlock, blocks, size, parts);
    for (size_t k = 0; k < blocks; ++k) total += parts[k];
  };
  const size_t whole = n / kBlock;
  for (size_t k = 0; k < whole; k += kBlocks)
    add_up(k * kBlock, std::min(kBlocks, whole - k), kBlock);
  if (n % kBlock != 0) add_up(whole * kBlock, 1, n % kBlock);
  return total;
}

template double dot(const float*, const float*, size_t);
template double dot(const double*, const double*, size_t);

// The latest pairs --------------------------------------------------------------------------------

template <class T>
LatestPairs<T>::LatestPairs(size_t n, int history)
    : n_(n),
      history_(static_cast<size_t>(history)),
      steps_(n * history_),
      changes_(n * history_),
      gradient_(n),
      step_unit_(history_),
      change_unit_(history_),
      step_change_(history_ * history_),
      change_change_(history_ * history_),
      step_gradient_(history_),
      change_gradient_(history_),
      newest_products_(history_),
      step_weight_(history_),
      change_weight_(history_) {}

template <class T>
size_t LatestPairs<T>::slot(int age) const {
  const int history = narrow<int>(history_);
  return static_cast<size_t>((newest_ - age + history) % history);
}

template <class T>
void LatestPairs<T>::learn(std::span<const T> step, std::span<const T> change, double sy, double) {
  if (history_ == 0) return;
  if (new_) multiply(nullptr);
  newest_ = (newest_ + 1) % narrow<int>(history_);
  const size_t at = slot(0);
  step_unit_[at] = unit_of(step), change_unit_[at] = unit_of(change);
  for (size_t i = 0; i < n_; ++i) {
    steps_[at * n_ + i] = step[i] / step_unit_[at];
    changes_[at * n_ + i] = change[i] / change_unit_[at];
  }
  scale_ = sy / dot(change.data(), change.data(), n_);
  held_ = std::min(held_ + 1, narrow<int>(history_));
  new_ = true;
}

/// The products of all steps and changes with the newest change, if it has none yet, and with the
/// gradient, if there is one.
template <class T>
void LatestPairs<T>::multiply(const T* gradient) {
  const size_t held = static_cast<size_t>(held_), newest = slot(0);
  const size_t groups = (held + kNear - 1) / kNear;
  const T* const change = new_ ? &changes_[newest * n_] : nullptr;
  std::vector<double> steps_change(new_ ? held : 0);
  parallel_if(2 * held * n_ * sizeof(T) >= kManyBytes, 2 * groups, [&](int task, int) {
    const bool of_steps = static_cast<size_t>(task) < groups;
    const size_t first = (static_cast<size_t>(task) % groups) * kNear;
    const size_t count = std::min(kNear, held - first);
    const T* const rows = &(of_steps ? steps_ : changes_)[first * n_];
    auto& with_gradient = of_steps ? step_gradient_ : change_gradient_;
    auto& with_change = of_steps ? steps_change : newest_products_;
    if (change) times(rows, count, n_, change, &with_change[first]);
    if (gradient) times(rows, count, n_, gradient, &with_gradient[first]);
  });
  if (!new_) return;
  for (size_t k = 0; k < held; ++k) {
    step_change_[k * history_ + newest] = steps_change[k];
    change_change_[k * history_ + newest] = newest_products_[k];
    change_change_[newest * history_ + k] = newest_products_[k];
  }
  new_ = false;
}

/// The two loops: from the newest pair to the oldest, which takes changes off the gradient, and
/// back, which adds steps to what is left. Only products are touched.
template <class T>
void LatestPairs<T>::weigh() {
  std::ranges::fill(change_weight_, 0.0);
  for (int age = 0; age < held_; ++age) {
    const size_t k = slot(age);
    const double* const row = &step_change_[k * history_];
    change_weight_[k] = (step_gradient_[k] - dot(change_weight_, row)) / row[k];
  }
  std::vector<double> left = change_gradient_;  // the products of changes with what is left
  for (size_t k = 0; k < static_cast<size_t>(held_); ++k)
    left[k] = scale_ * (left[k] - dot(change_weight_, &change_change_[k * history_]));
  for (int age = held_; age-- > 0;) {
    const size_t k = slot(age);
    const double* const row = &step_change_[k * history_];
    step_weight_[k] = change_weight_[k] * (static_cast<double>(step_unit_[k]) / change_unit_[k]) -
                      left[k] / row[k];
    add(step_weight_[k], row, left);
  }
}

template <class T>
void LatestPairs<T>::direct(std::span<const T> gradient, std::span<T> direction) {
  if (held_ == 0) {
    std::ranges::transform(gradient, direction.begin(), std::negate<>());
    return;
  }
  const T unit = unit_of(gradient);
  for (size_t i = 0; i < n_; ++i) gradient_[i] = gradient[i] / unit;
  multiply(gradient_.data());
  weigh();
  const size_t held = static_cast<size_t>(held_);
  std::vector<T> of_steps(held), of_changes(held);
  for (size_t k = 0; k < held; ++k) {
    of_steps[k] = static_cast<T>(-step_weight_[k] * unit);
    of_changes[k] = static_cast<T>(change_weight_[k]);
  }
  const int tasks = narrow<int>((n_ + kColumns - 1) / kColumns);
  parallel_if(2 * held * n_ * sizeof(T) >= kManyBytes, tasks, [&](int task, int) {
    const size_t at = static_cast<size_t>(task) * kColumns, size = std::min(kColumns, n_ - at);
    T* const d = &direction[at];
    const auto& kernels = cpu::vector_kernels();
    const auto stride = static_cast<ptrdiff_t>(n_);
    for (size_t i = 0; i < size; ++i) d[i] = -gradient_[at + i];
    kernels.add_rows(kType<T>, &changes_[at], stride, held, of_changes.data(), size, d);
    for (size_t i = 0; i < size; ++i) d[i] = static_cast<T>(scale_ * unit * d[i]);
    kernels.add_rows(kType<T>, &steps_[at], stride, held, of_steps.data(), size, d);
  });
}

template <class T>
std::vector<T> LatestPairs<T>::saved() const {
  std::vector<T> numbers;
  for (int age = held_; age-- > 0;) {
    const size_t k = slot(age), at = k * n_;
    for (size_t i = 0; i < n_; ++i) numbers.push_back(steps_[at + i] * step_unit_[k]);
    for (size_t i = 0; i < n_; ++i) numbers.push_back(changes_[at + i] * change_unit_[k]);
  }
  return numbers;
}

template <class T>
bool LatestPairs<T>::load(std::span<const T> numbers) {
  if (n_ == 0 || numbers.size() % (2 * n_) != 0) return false;
  forget();
  for (size_t at = 0; at < numbers.size(); at += 2 * n_) {
    const auto step = numbers.subspan(at, n_), change = numbers.subspan(at + n_, n_);
    learn(step, change, dot(step.data(), change.data(), n_), 0);
  }
  return true;
}

template class LatestPairs<float>;
template class LatestPairs<double>;

// The whole matrix --------------------------------------------------------------------------------

InverseHessian::InverseHessian(size_t n, BroydenUpdate update)
    : n_(n), update_(update), moved_(n) {}

void InverseHessian::multiply(std::span<const double> x, std::span<double> y) const {
  over_rows(n_, [&](size_t first, size_t end) {
    cpu::vector_kernels().dots(DType::Float64, &matrix_[first * n_], static_cast<ptrdiff_t>(n_),
                               end - first, x.data(), 0, n_, &y[first]);
  });
}

void InverseHessian::direct(std::span<const double> gradient, std::span<double> direction) {
  if (!known_)
    std::ranges::copy(gradient, direction.begin());
  else
    multiply(gradient, direction);
  for (double& d : direction) d = -d;
}

InverseHessian::Factors InverseHessian::factors(double sy, double sBs, double yHy) const {
  if (update_ == BroydenUpdate::Bfgs) return {};
  const double b = sBs / sy, h = yHy / sy, a = h * b - 1;
  const double tau = std::min(1.0, 1 / b);
  if (update_ == BroydenUpdate::ScaledBfgs || !(a > 1e-12) || n_ < 2) return {tau, 1};
  const double rho = std::min(1.0, h * (1 - std::sqrt(a / (a + 1))));
  const double theta = std::max((rho - 1) / a, std::min(1 / rho, (1 - b) / b));
  const double sigma = 1 + theta * a;
  const double root = std::pow(std::abs(sigma), 1 / (1 - static_cast<double>(n_)));
  const double scaled = theta > 0 ? tau * std::min(root, 1 / theta) : std::min(tau * root, sigma);
  return {scaled, (1 - theta) / sigma};
}

void InverseHessian::learn(std::span<const double> s, std::span<const double> y, double sy,
                           double sBs) {
  if (!known_) {  // a multiple of the identity that has the size of the inverse along the step
    const double scale = sy / dot(y.data(), y.data(), n_);
    matrix_.assign(n_ * n_, 0);
    for (size_t i = 0; i < n_; ++i) matrix_[i * (n_ + 1)] = scale;
    known_ = true;
    sBs = dot(s.data(), s.data(), n_) / scale;
  }
  multiply(y, moved_);
  const double yHy = dot(y.data(), moved_.data(), n_);
  const auto [tau, phi] = factors(sy, sBs, yHy);
  if (!(yHy > 0) || !std::isfinite(tau) || !(tau > 0) || !std::isfinite(phi)) return forget();
  // All terms by s and Hy: each row is scaled and gets a multiple of both.
  const double ss = phi * yHy / (sy * sy * tau) + 1 / sy, sm = -phi / (sy * tau);
  const double mm = (phi - 1) / (yHy * tau), keep = 1 / tau;
  over_rows(n_, [&](size_t first, size_t end) {
    for (size_t row = first; row < end; ++row) {
      double* const to = &matrix_[row * n_];
      const double of_s = ss * s[row] + sm * moved_[row], of_m = sm * s[row] + mm * moved_[row];
      for (size_t j = 0; j < n_; ++j) to[j] = keep * to[j] + of_s * s[j] + of_m * moved_[j];
    }
  });
}

std::vector<double> InverseHessian::saved() const {
  return known_ ? matrix_ : std::vector<double>();
}

bool InverseHessian::load(std::span<const double> numbers) {
  if (!numbers.empty() && numbers.size() != n_ * n_) return false;
  matrix_.assign(numbers.begin(), numbers.end());
  known_ = !numbers.empty();
  return true;
}

}  // namespace gradcell
