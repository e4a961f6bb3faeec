#include "runtime/minimisers/curvature.h"

#include <algorithm>
#include <cmath>
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

/// y += a x
template <class T>
void add(double a, const T* x, T* y, size_t n) {
  const T factor = static_cast<T>(a);
  cpu::vector_kernels().add_rows(kType<T>, x, 0, 1, &factor, n, y);
}

/// body(first row, behind the last one) for all rows of a square matrix.
template <class F>
void over_rows(size_t n, F body) {
  parallel_if(n * n >= kParallel, static_cast<int>((n + kRows - 1) / kRows), [&](int task, int) {
    const size_t first = static_cast<size_t>(task) * kRows;
    body(first, std::min(n, first + kRows));
  });
}

}  // namespace

template <class T>
double dot(const T* a, const T* b, size_t n) {
  constexpr size_t kBlocks = 16;
  T parts[kBlocks];
  double total = 0;
  const auto add_up = [&](size_t begin, size_t blocks, size_t size) {
    cpu::vector_kernels().dots(kType<T>, a + begin, kBlock, blocks, b + begin, kBlock, size, parts);
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
      history_(history),
      steps_(n * static_cast<size_t>(history)),
      changes_(n * static_cast<size_t>(history)),
      curvature_(static_cast<size_t>(history)) {}

template <class T>
size_t LatestPairs<T>::slot(int age) const {
  return static_cast<size_t>((newest_ - age + history_) % history_);
}

template <class T>
void LatestPairs<T>::learn(std::span<const T> step, std::span<const T> change, double sy, double) {
  if (history_ == 0) return;
  newest_ = (newest_ + 1) % history_;
  const size_t at = slot(0);
  std::ranges::copy(step, &steps_[at * n_]);
  std::ranges::copy(change, &changes_[at * n_]);
  curvature_[at] = 1 / sy, scale_ = sy / dot(change.data(), change.data(), n_);
  held_ = std::min(held_ + 1, history_);
}

/// Two loops over the pairs.
template <class T>
void LatestPairs<T>::direct(std::span<const T> gradient, std::span<T> direction) const {
  T* d = direction.data();
  for (size_t i = 0; i < n_; ++i) d[i] = -gradient[i];
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
std::vector<T> LatestPairs<T>::saved() const {
  std::vector<T> numbers;
  for (int age = held_; age-- > 0;) {
    const size_t at = slot(age) * n_;
    numbers.insert(numbers.end(), &steps_[at], &steps_[at] + n_);
    numbers.insert(numbers.end(), &changes_[at], &changes_[at] + n_);
  }
  return numbers;
}

template <class T>
bool LatestPairs<T>::load(std::span<const T> numbers) {
  if (n_ == 0 || numbers.size() % (2 * n_) != 0) return false;
  held_ = 0, newest_ = -1;
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

void InverseHessian::direct(std::span<const double> gradient, std::span<double> direction) const {
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
