// Products of whole matrices, by the engine's own kernels, the matrix unit or OpenBLAS.
#include "ops/combining/product.h"

#include <numeric>
#include <vector>

#include "cpu/calls/elements.h"
#include "cpu/kernels/tile_kernels.h"
#include "cpu/kernels/vector_kernels.h"
#include "cpu/products/half_product.h"
#include "cpu/products/product.h"

namespace gradcell::cpu {

namespace {

/// body(first, count) for parts of n elements, on all threads.
template <class F>
void in_pieces(int64_t n, F body) {
  constexpr int64_t kPart = 1 << 14;
  parallel_for((n + kPart - 1) / kPart, [&](int task, int) {
    body(task * kPart, static_cast<size_t>(std::min(kPart, n - task * kPart)));
  });
}

template <class S>
void plain_product(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const S* a, const S* b,
                   S* c) {
  using Sum = std::conditional_t<kNarrowFloat<S>, float, int64_t>;
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      Sum sum = 0;
      for (int64_t l = 0; l < k; ++l)
        sum += static_cast<Sum>(a[ta ? l * m + i : i * k + l]) *
               static_cast<Sum>(b[tb ? j * k + l : l * n + j]);
      c[i * n + j] = static_cast<S>(sum);
    }
}

/// By the matrix unit; false where there is none, or for what it cannot or need not do.
template <class S>
bool half_products(bool ta, bool tb, int64_t batch, int64_t m, int64_t n, int64_t k,
                   const void* const* in, DType made, void* out) {
  // Small products are not worth packing; of float16 there are four.
  constexpr int64_t kSide = std::is_same_v<S, Bfloat> ? 48 : 448;
  if (m * n * k < kSide * kSide * kSide || !has_half_products()) return false;
  for (int64_t i = 0; i < batch; ++i) {
    const auto *a = static_cast<const uint16_t*>(in[0]) + i * m * k,
               *b = static_cast<const uint16_t*>(in[1]) + i * k * n;
    auto* y = static_cast<std::byte*>(out) + static_cast<size_t>(i * m * n) * item_size(made);
    if constexpr (std::is_same_v<S, Bfloat>)
      bf16_product(ta, tb, m, n, k, a, b, made, y);
    else if (!f16_product(ta, tb, m, n, k, a, b, made, y))
      return false;
  }
  return true;
}

/// Matrices times vectors: elements that lie beside each other are read once, in order.
template <class S>
void vector_products(bool ta, bool tb, int64_t batch, int64_t m, int64_t n, int64_t k, const S* a,
                     const S* b, S* y) {
  const DType type = sizeof(S) == 8 ? DType::Float64 : DType::Float32;
  const VectorKernels& kernels = vector_kernels();
  const int64_t lines = m * n;  // of the matrix, or as many as it has columns
  if (k == 1) {                 // each element of one by all of the other
    if (n == 1) std::swap(a, b), std::swap(m, n);
    return split(batch * m, batch * lines, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const S by = a[i];
        const S* const row = b + i / m * n;
        for (int64_t j = 0; j < n; ++j) y[i * n + j] = by * row[j];
      }
    });
  }
  const bool by_a = n == 1;  // a is the matrix
  const S *matrix = by_a ? a : b, *vector = by_a ? b : a;
  if (by_a ? !ta || m == 1 : tb || n == 1) {
    if (lines == 1) {  // long ones in parts
      constexpr int64_t kPart = 1 << 14;
      const int64_t parts = std::max<int64_t>(1, k / kPart);
      std::vector<S> sums(static_cast<size_t>(batch * parts));
      split(batch * parts, batch * k, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t first = k * (i % parts) / parts, last = k * (i % parts + 1) / parts;
          const int64_t at = i / parts * k + first;
          kernels.dots(type, a + at, 0, 1, b + at, 0, static_cast<size_t>(last - first),
                       &sums[static_cast<size_t>(i)]);
        }
      });
      for (int64_t i = 0; i < batch; ++i)
        y[i] = static_cast<S>(
            std::accumulate(sums.begin() + i * parts, sums.begin() + (i + 1) * parts, 0.0));
      return;
    }
    return split(batch * lines, batch * lines * k, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end;) {
        const int64_t at = i / lines, until = std::min(end, (at + 1) * lines);
        kernels.dots(type, matrix + i * k, k, static_cast<size_t>(until - i), vector + at * k, 0,
                     static_cast<size_t>(k), y + i);
        i = until;
      }
    });
  }
  constexpr int64_t kStrip = 256;  // columns: narrow ones are read in jumps
  const int64_t strips = (lines + kStrip - 1) / kStrip;
  split(batch * strips, batch * lines * k, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end;) {
      const int64_t at = i / strips, s = i % strips, until = std::min(strips, s + end - i);
      const int64_t first = s * kStrip, last = std::min(lines, until * kStrip);
      std::fill_n(y + at * lines + first, last - first, 0);
      kernels.add_rows(type, matrix + at * k * lines + first, lines, static_cast<size_t>(k),
                       vector + at * k, static_cast<size_t>(last - first), y + at * lines + first);
      i += until - s;
    }
  });
}

template <class S>
void small_products(bool ta, bool tb, int64_t batch, int64_t m, int64_t n, int64_t k, const S* a,
                    const S* b, S* y) {
  if (m * n == 0) return;
  const SmallProduct p{ta, tb, narrow<int>(m), narrow<int>(n), narrow<int>(k)};
  const DType type = sizeof(S) == 8 ? DType::Float64 : DType::Float32;
  split(batch, batch * m * n * k, [&](int64_t begin, int64_t end) {
    vector_kernels().small_products(type, p, static_cast<size_t>(end - begin), a + begin * m * k,
                                    b + begin * k * n, y + begin * m * n);
  });
}

/// One pair's product, of `made`: the result's dtype, or float32 for half types.
void matmul(const Call& c, size_t pair, const void* const* all, DType made, void* out) {
  const void* const* in = all + pair;
  const auto p = decode<ProductAttributes>(c.attributes);
  const bool ta = p.transpose_a, tb = p.transpose_b;
  const auto [m, n, k] = sizes_of(c.in[pair].dims, c.out.dims, p);
  const int64_t batch = product(c.out.dims, 0, c.out.dims.size() - 2);
  auto batched = [&]<bool half>(std::bool_constant<half>, auto* a, auto* b, auto* y) {
    auto one = [&](int64_t i) {
      if constexpr (half)
        half_matrix_product(c.out.dtype, ta, tb, m, n, k, a + i * m * k, b + i * k * n, made,
                            y + static_cast<size_t>(i * m * n) * item_size(made));
      else if constexpr (std::is_floating_point_v<std::remove_pointer_t<decltype(y)>>)
        matrix_product(ta, tb, m, n, k, a + i * m * k, b + i * k * n, y + i * m * n);
      else
        plain_product(ta, tb, m, n, k, a + i * m * k, b + i * k * n, y + i * m * n);
    };
    // Some at a time: a task takes longer than it takes to begin it.
    const int64_t together = std::max<int64_t>(1, 8192 / std::max<int64_t>(1, m * n * k));
    parallel_if(batch > 1 && m * n * k < 64 * 64 * 64 * 4 && batch * m * n * k > 65536,
                (batch + together - 1) / together, [&](int task, int) {
                  const int64_t end = std::min(batch, (task + 1) * together);
                  for (int64_t i = task * together; i < end; ++i) one(i);
                });
  };
  by_dtype(c.out.dtype, [&]<class S>() {
    constexpr bool half = std::is_same_v<S, Half> || std::is_same_v<S, Bfloat>;
    if constexpr (half)
      if (half_products<S>(ta, tb, batch, m, n, k, in, made, out)) return;
    if constexpr (std::is_floating_point_v<S>) {
      const bool vectors = m == 1 || n == 1;
      if (vectors || SmallProduct::fits(m, n, k))
        return (vectors ? vector_products<S>
                        : small_products<S>)(ta, tb, batch, m, n, k, static_cast<const S*>(in[0]),
                                             static_cast<const S*>(in[1]), static_cast<S*>(out));
    }
    using Stored = std::conditional_t<half, uint16_t, S>;
    using Made = std::conditional_t<half, std::byte, S>;
    batched(std::bool_constant<half>(), static_cast<const Stored*>(in[0]),
            static_cast<const Stored*>(in[1]), static_cast<Made*>(out));
  });
}

}  // namespace

std::vector<float> widened(const TensorDesc& t, const void* p) {
  std::vector<float> wide(static_cast<size_t>(t.count));
  in_pieces(t.count, [&](int64_t first, size_t n) {
    tile_kernels().transpose.load(
        static_cast<const std::byte*>(p) + static_cast<size_t>(first) * item_size(t.dtype), t.dtype,
        wide.data() + first, n);
  });
  return wide;
}

namespace {

/// Sums of outer products, as gradients of single examples are: each element is written once. A
/// pair's columns [batch, m] and rows [batch, n] lie as vectors do.
template <class S>
void outer_products(int64_t batch, int64_t m, int64_t n, size_t pairs, const void* const* in,
                    S* y) {
  split(batch, batch * m * n * static_cast<int64_t>(pairs), [&](int64_t begin, int64_t end) {
    for (int64_t e = begin; e < end; ++e)
      for (int64_t i = 0; i < m; ++i) {
        S* const to = y + (e * m + i) * n;
        for (size_t p = 0; p < pairs; ++p) {
          const S by = static_cast<const S*>(in[2 * p])[e * m + i];
          const S* const row = static_cast<const S*>(in[2 * p + 1]) + e * n;
          if (p == 0)
            for (int64_t j = 0; j < n; ++j) to[j] = by * row[j];
          else
            for (int64_t j = 0; j < n; ++j) to[j] += by * row[j];
        }
      }
  });
}

}  // namespace

/// a1 b1 + a2 b2 + ..., of half types in float32, as everywhere else, and rounded once.
void sum_of_products(const Call& c, const void* const* in, void* out) {
  const auto attributes = decode<ProductAttributes>(c.attributes);
  const auto [m, n, k] = sizes_of(c.in[0].dims, c.out.dims, attributes);
  const bool whole = c.out.dtype == DType::Float32 || c.out.dtype == DType::Float64;
  bool outer = whole && c.in.size() > 2;  // every pair: each sums over an axis of its own
  for (size_t pair = 0; pair < c.in.size(); pair += 2)
    outer = outer && sizes_of(c.in[pair].dims, c.out.dims, attributes).k == 1;
  if (outer) {
    const int64_t batch = product(c.out.dims, 0, c.out.dims.size() - 2);
    if (c.out.dtype == DType::Float64)
      return outer_products(batch, m, n, c.in.size() / 2, in, static_cast<double*>(out));
    return outer_products(batch, m, n, c.in.size() / 2, in, static_cast<float*>(out));
  }
  if (c.in.size() == 2) return matmul(c, 0, in, c.out.dtype, out);
  const DType made = is_narrow_float(c.out.dtype) ? DType::Float32 : c.out.dtype;
  const size_t bytes = static_cast<size_t>(c.out.count) * item_size(made);
  std::vector<std::byte> term(bytes), wide(made == c.out.dtype ? 0 : bytes);
  void* const sums = wide.empty() ? out : wide.data();
  matmul(c, 0, in, made, sums);
  for (size_t pair = 2; pair < c.in.size(); pair += 2) {
    matmul(c, pair, in, made, term.data());
    by_dtype(made, [&]<class S>() {
      if constexpr (!kNarrowFloat<S>)
        in_pieces(c.out.count, [&](int64_t first, size_t n) {
          auto* const y = static_cast<S*>(sums) + first;
          const auto* const x = reinterpret_cast<const S*>(term.data()) + first;
          for (size_t i = 0; i < n; ++i) y[i] = static_cast<S>(y[i] + x[i]);
        });
    });
  }
  if (wide.empty()) return;
  in_pieces(c.out.count, [&](int64_t first, size_t n) {
    tile_kernels().transpose.store(
        static_cast<const float*>(sums) + first, c.out.dtype,
        static_cast<std::byte*>(out) + static_cast<size_t>(first) * item_size(c.out.dtype), n);
  });
}

}  // namespace gradcell::cpu
