// Products of matrices with vectors, and of small matrices.
#include "cpu/kernels/vector_kernels.h"

#include <cstring>

#include "cpu/isa/line.h"

namespace gradcell::cpu::GRADCELL_ISA {
namespace {

/// Products of T, each one and their sums in A.
template <class A, class T>
void dots_of(const T* a, ptrdiff_t stride, size_t rows, const T* x, ptrdiff_t x_stride, size_t n,
             A* y) {
  constexpr size_t kCount = Line<A>::kCount, kStep = kCount / kRegisters, kParts = 4;
  typedef T Lanes __attribute__((vector_size(kStep * sizeof(T))));
  const auto read = [](const T* p) { return lanes_as<typename Line<A>::Part>(load_as<Lanes>(p)); };
  for (size_t r = 0; r < rows; ++r, a += stride, x += x_stride) {
    Line<A> sum[kParts] = {};
    const auto add = [&](Line<A>& to, size_t j) {
      for (size_t k = 0; k < kRegisters; ++k, j += kStep) to.part[k] += read(a + j) * read(x + j);
    };
    size_t j = 0;
    for (; j + kParts * kCount <= n; j += kParts * kCount)
      for (size_t k = 0; k < kParts; ++k) add(sum[k], j + k * kCount);
    for (; j + kCount <= n; j += kCount) add(sum[0], j);
    A rest = 0;
    for (; j < n; ++j) rest += static_cast<A>(a[j]) * x[j];
    y[r] = across<Combine::Sum>((sum[0] + sum[1]) + (sum[2] + sum[3])) + rest;
  }
}

/// y[j] += sum over rows of x[row] * a[row, j], in W registers, from column j on while they fit.
template <size_t W, class T>
void add_columns(const T* a, ptrdiff_t stride, size_t rows, const T* x, size_t n, T* y, size_t& j) {
  constexpr size_t kStep = kLanes<T>;
  for (; j + W * kStep <= n; j += W * kStep) {
    Vec<T> sum[W] = {};
    const T* row = a + j;
    for (size_t r = 0; r < rows; ++r, row += stride)
      for (size_t k = 0; k < W; ++k) sum[k] += load(row + k * kStep) * x[r];
    for (size_t k = 0; k < W; ++k) {
      T* const to = y + j + k * kStep;
      store(to, load(to) + sum[k]);
    }
  }
}

/// So many rows are summed up apart from others, so that errors do not grow with their number.
constexpr size_t kRowsOfSum = 32;

/// sum[j] += sum over B rows of x[row] * a[row, j], one row after the other.
template <size_t B, class T>
void add_side_by_side(const T* a, ptrdiff_t stride, const T* x, size_t n, T* sum) {
  constexpr size_t kStep = kLanes<T>;
  size_t j = 0;
  for (; j + kStep <= n; j += kStep) {
    Vec<T> of_step = load(sum + j);
    const T* row = a + j;
#pragma GCC unroll 8
    for (size_t r = 0; r < B; ++r, row += stride) of_step += load(row) * x[r];
    store(sum + j, of_step);
  }
  for (; j < n; ++j)
    for (size_t r = 0; r < B; ++r)
      sum[j] += a[static_cast<ptrdiff_t>(r) * stride + static_cast<ptrdiff_t>(j)] * x[r];
}

/// As below, the same numbers, where rows are long: a few are read side by side from one end to the
/// other, as the processor foresees it, and a group's sums wait in the first-level cache.
template <class T>
void add_long_rows(const T* a, ptrdiff_t stride, size_t rows, const T* x, size_t n, T* y) {
  constexpr size_t kTogether = 8, kMost = 8192 / sizeof(T);
  T sum[kMost];
  for (size_t first = 0; first < rows; first += kRowsOfSum) {
    const size_t end = rows - first < kRowsOfSum ? rows : first + kRowsOfSum;
    for (size_t j = 0; j < n; j += kMost) {
      const size_t count = n - j < kMost ? n - j : kMost;
      std::memset(sum, 0, count * sizeof(T));
      size_t r = first;
      const T* row = a + static_cast<ptrdiff_t>(first) * stride + j;
      for (; r + kTogether <= end;
           r += kTogether, row += static_cast<ptrdiff_t>(kTogether) * stride)
        add_side_by_side<kTogether>(row, stride, x + r, count, sum);
      for (; r < end; ++r, row += stride) add_side_by_side<1>(row, stride, x + r, count, sum);
      for (size_t i = 0; i < count; ++i) y[j + i] += sum[i];
    }
  }
}

template <class T>
void add_rows_of(const T* a, ptrdiff_t stride, size_t rows, const T* x, size_t n, T* y) {
  constexpr size_t kLong = 256;
  if (n >= kLong) return add_long_rows(a, stride, rows, x, n, y);
  for (size_t first = 0; first < rows; first += kRowsOfSum) {
    const size_t group = rows - first < kRowsOfSum ? rows - first : kRowsOfSum;
    const T* const block = a + static_cast<ptrdiff_t>(first) * stride;
    size_t j = 0;
    add_columns<8>(block, stride, group, x + first, n, y, j);
    add_columns<1>(block, stride, group, x + first, n, y, j);
    for (; j < n; ++j) {
      T sum = 0;
      for (size_t r = 0; r < group; ++r)
        sum += block[static_cast<ptrdiff_t>(r) * stride + static_cast<ptrdiff_t>(j)] * x[first + r];
      y[j] += sum;
    }
  }
}

/// Vectors that are multiplied in one rounding, where they are the level's registers.
template <class T>
GRADCELL_INLINE Vec<T> multiplied(Vec<T> row, T by, Vec<T> sum) {
  return fma(row, broadcast(by), sum);
}

/// R rows of c, each P vectors. b's rows are `ld` elements apart.
template <class Row, int P, int R, class T>
void rows_of_product(const SmallProduct& p, const T* a, const T* b, ptrdiff_t ld, T* c) {
  constexpr int kWidth = sizeof(Row) / sizeof(T);
  const int along = p.transpose_a ? p.m : 1, from_row = p.transpose_a ? 1 : p.k;
  Row sum[R][P] = {};
  for (int q = 0; q < p.k; ++q, a += along, b += ld) {
    Row row[P];
#pragma GCC unroll 8
    for (int v = 0; v < P; ++v) row[v] = load_as<Row>(b + v * kWidth);
#pragma GCC unroll 8
    for (int i = 0; i < R; ++i) {
#pragma GCC unroll 8
      for (int v = 0; v < P; ++v)
        if constexpr (P > 1 || kWidth > 8)
          sum[i][v] = multiplied(row[v], a[i * from_row], sum[i][v]);
        else
          sum[i][v] += row[v] * a[i * from_row];
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < R; ++i, c += p.n) {
#pragma GCC unroll 8
    for (int v = 0; v < P; ++v) store(c + v * kWidth, sum[i][v]);
  }
}

/// Rows are whole vectors: what is read and written behind a matrix's last row is the next matrix's
/// first one, and the last matrix is multiplied in a copy.
template <class Row, int P, class T>
void small_products_of(const SmallProduct& p, size_t batch, const T* a, const T* b, T* c) {
  constexpr int W = P * sizeof(Row) / sizeof(T), R = min(8, kVectorRegisters / (2 * P));
  T rows[SmallProduct::kTerms * W], last[(SmallProduct::kRows + 1) * W];
  for (; batch > 0; --batch, a += p.m * p.k, b += p.k * p.n) {
    const T* from = b;
    ptrdiff_t ld = p.n;
    if (p.transpose_b || batch == 1) {
      for (int q = 0; q < p.k; ++q)
        for (int j = 0; j < W; ++j)
          rows[q * W + j] = j >= p.n ? T(0) : p.transpose_b ? b[j * p.k + q] : b[q * p.n + j];
      from = rows, ld = W;
    }
    T* const whole = batch == 1 ? last : c;
    T* to = whole;
    const T* left = a;
    const int step = p.transpose_a ? 1 : p.k;
    int i = 0;
    for (; i + R <= p.m; i += R, left += R * step, to += R * p.n)
      rows_of_product<Row, P, R>(p, left, from, ld, to);
    for (; i < p.m; ++i, left += step, to += p.n) rows_of_product<Row, P, 1>(p, left, from, ld, to);
    if (batch == 1) std::memcpy(c, last, static_cast<size_t>(p.m * p.n) * sizeof(T));
    c += p.m * p.n;
  }
}

void small_products(DType type, const SmallProduct& p, size_t batch, const void* a, const void* b,
                    void* c) {
  const auto of = [&]<class T>(T* to) {
    typedef T Four __attribute__((vector_size(4 * sizeof(T))));
    typedef T Eight __attribute__((vector_size(8 * sizeof(T))));
    const auto run = p.n <= 4   ? small_products_of<Four, 1, T>
                     : p.n <= 8 ? small_products_of<Eight, 1, T>
                                : small_products_of<Vec<T>, 16 / kLanes<T>, T>;
    run(p, batch, static_cast<const T*>(a), static_cast<const T*>(b), to);
  };
  type == DType::Float64 ? of(static_cast<double*>(c)) : of(static_cast<float*>(c));
}

void dots(DType type, const void* a, ptrdiff_t stride, size_t rows, const void* x,
          ptrdiff_t x_stride, size_t n, void* y) {
  if (type == DType::Float64)
    dots_of(static_cast<const double*>(a), stride, rows, static_cast<const double*>(x), x_stride, n,
            static_cast<double*>(y));
  else
    dots_of(static_cast<const float*>(a), stride, rows, static_cast<const float*>(x), x_stride, n,
            static_cast<float*>(y));
}

void wide_dots(const float* a, ptrdiff_t stride, size_t rows, const float* x, ptrdiff_t x_stride,
               size_t n, double* y) {
  dots_of(a, stride, rows, x, x_stride, n, y);
}

void add_rows(DType type, const void* a, ptrdiff_t stride, size_t rows, const void* x, size_t n,
              void* y) {
  if (type == DType::Float64)
    add_rows_of(static_cast<const double*>(a), stride, rows, static_cast<const double*>(x), n,
                static_cast<double*>(y));
  else
    add_rows_of(static_cast<const float*>(a), stride, rows, static_cast<const float*>(x), n,
                static_cast<float*>(y));
}

}  // namespace

extern const VectorKernels kVectorKernels;
const VectorKernels kVectorKernels = {dots, wide_dots, add_rows, small_products};

}  // namespace gradcell::cpu::GRADCELL_ISA
