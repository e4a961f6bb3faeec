#include "cpu/calls.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "base/half.h"
#include "base/philox.h"
#include "base/thread_pool.h"
#include "cpu/half_product.h"
#include "cpu/product.h"
#include "cpu/tile_kernels.h"

namespace gradcell::cpu {

namespace {

struct F16 {
  uint16_t bits;
  explicit F16(float f) : bits(float_to_half(f)) {}
  operator float() const { return half_to_float(bits); }
};
struct BF16 {
  uint16_t bits;
  explicit BF16(float f) : bits(float_to_bfloat(f)) {}
  operator float() const { return bfloat_to_float(bits); }
};

template <class S>
struct ComputeOf {
  using type = S;
};
template <>
struct ComputeOf<F16> {
  using type = float;
};
template <>
struct ComputeOf<BF16> {
  using type = float;
};

/// f.operator()<storage type>().
template <class F>
void by_dtype(DType t, F f) {
  switch (t) {
    case DType::Bool:
    case DType::UInt8:
      return f.template operator()<uint8_t>();
    case DType::Int8:
      return f.template operator()<int8_t>();
    case DType::Int16:
      return f.template operator()<int16_t>();
    case DType::Int32:
      return f.template operator()<int32_t>();
    case DType::Int64:
      return f.template operator()<int64_t>();
    case DType::Float16:
      return f.template operator()<F16>();
    case DType::BFloat16:
      return f.template operator()<BF16>();
    case DType::Float32:
      return f.template operator()<float>();
    case DType::Float64:
      return f.template operator()<double>();
  }
}

/// f.operator()<unsigned type of that many bytes>(): for what only moves elements.
template <class F>
void by_size(size_t bytes, F f) {
  switch (bytes) {
    case 1:
      return f.template operator()<uint8_t>();
    case 2:
      return f.template operator()<uint16_t>();
    case 4:
      return f.template operator()<uint32_t>();
    default:
      return f.template operator()<uint64_t>();
  }
}

/// Splits [0, n) into pieces worth a thread, if `work` elements in all are.
template <class F>
void split(int64_t n, int64_t work, F body) {
  int64_t pieces = std::min<int64_t>({n, work / 65536, 4 * max_threads()});
  if (pieces <= 1) return body(int64_t(0), n);
  parallel_for(static_cast<int>(pieces),
               [&](int p, int) { body(n * p / pieces, n * (p + 1) / pieces); });
}

Dims row_major(const Dims& dims) {
  Dims s(dims.size(), 1);
  for (size_t k = dims.size(); k-- > 1;) s[k - 1] = s[k] * dims[k];
  return s;
}

int64_t product(const Dims& dims, size_t first, size_t last) {
  int64_t n = 1;
  for (size_t k = first; k < last; ++k) n *= dims[k];
  return n;
}

/// Moves a box of elements between two strided places.
struct StridedCopy {
  Dims dims, from, to;  // strides in elements
  int64_t from_offset = 0, to_offset = 0;

  void run(const void* src, void* dst, size_t item) {
    merge();
    by_size(item, [&]<class S>() {
      copy(static_cast<const S*>(src) + from_offset, static_cast<S*>(dst) + to_offset);
    });
  }

 private:
  /// Joins neighbouring dimensions that advance together.
  void merge() {
    Dims d, f, t;
    for (size_t k = 0; k < dims.size(); ++k) {
      if (dims[k] == 1) continue;
      if (!d.empty() && f.back() == from[k] * dims[k] && t.back() == to[k] * dims[k]) {
        d.back() *= dims[k], f.back() = from[k], t.back() = to[k];
      } else {
        d.push_back(dims[k]), f.push_back(from[k]), t.push_back(to[k]);
      }
    }
    if (d.empty()) d = {1}, f = {1}, t = {1};
    dims = d, from = f, to = t;
  }

  template <class S>
  void copy(const S* src, S* dst) const {
    size_t rank = dims.size();
    int64_t inner = dims.back(), fi = from.back(), ti = to.back();
    // A transpose: walk the last two dimensions in square blocks, so that both sides stay in cache.
    bool blocked = rank >= 2 && fi != 1 && from[rank - 2] == 1;
    size_t loops = blocked ? rank - 2 : rank - 1;
    int64_t outer = product(dims, 0, loops);
    split(outer, outer > 1 ? element_count(dims) : 0, [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; ++o) {
        int64_t rest = o;
        const S* s = src;
        S* d = dst;
        for (size_t k = loops; k-- > 0;) {
          int64_t i = rest % dims[k];
          rest /= dims[k];
          s += i * from[k];
          d += i * to[k];
        }
        if (blocked)
          transpose(s, d, dims[rank - 2], inner, fi, to[rank - 2], ti);
        else if (fi == 1 && ti == 1)
          std::memcpy(d, s, static_cast<size_t>(inner) * sizeof(S));
        else
          for (int64_t i = 0; i < inner; ++i) d[i * ti] = s[i * fi];
      }
    });
  }

  template <class S>
  static void transpose(const S* s, S* d, int64_t rows, int64_t columns, int64_t from_column,
                        int64_t to_row, int64_t to_column) {
    constexpr int64_t kBlock = 16;
    int64_t blocks = (rows + kBlock - 1) / kBlock;
    split(blocks, rows * columns, [&](int64_t b0, int64_t b1) {
      for (int64_t b = b0; b < b1; ++b)
        for (int64_t j0 = 0; j0 < columns; j0 += kBlock)
          for (int64_t i = b * kBlock; i < std::min(rows, (b + 1) * kBlock); ++i)
            for (int64_t j = j0; j < std::min(columns, j0 + kBlock); ++j)
              d[i * to_row + j * to_column] = s[i + j * from_column];
    });
  }
};

void fill(const Call& c, void* out, uint64_t bits) {
  by_dtype(c.out.dtype, [&]<class S>() {
    S v = is_floating(c.out.dtype)
              ? S(static_cast<typename ComputeOf<S>::type>(std::bit_cast<double>(bits)))
              : S(static_cast<typename ComputeOf<S>::type>(std::bit_cast<int64_t>(bits)));
    std::fill_n(static_cast<S*>(out), c.out.count, v);
  });
}

void iota(const Call& c, void* out) {
  auto axis = static_cast<size_t>(c.attrs[0]);
  int64_t inner = product(c.out.dims, axis + 1, c.out.dims.size()), n = c.out.dims[axis];
  by_dtype(c.out.dtype, [&]<class S>() {
    for (int64_t i = 0; i < c.out.count; ++i)
      static_cast<S*>(out)[i] = S(static_cast<typename ComputeOf<S>::type>(i / inner % n));
  });
}

// Reductions --------------------------------------------------------------------------------------

template <class T>
T nan_max(T a, T b) {
  return a > b || a != a ? a : b;
}
template <class T>
T nan_min(T a, T b) {
  return a < b || a != a ? a : b;
}

void reduce(const Call& c, const void* in, void* out) {
  const Dims& dims = c.in[0].dims;
  Dims strides = row_major(dims), kept, kept_strides, gone, gone_strides;
  for (size_t k = 0; k < dims.size(); ++k) {
    bool r = std::find(c.attrs.begin(), c.attrs.end(), static_cast<int64_t>(k)) != c.attrs.end();
    (r ? gone : kept).push_back(dims[k]);
    (r ? gone_strides : kept_strides).push_back(strides[k]);
  }
  int64_t n = element_count(gone);
  std::vector<int64_t> step(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) {
    int64_t rest = i, at = 0;
    for (size_t k = gone.size(); k-- > 0;) at += rest % gone[k] * gone_strides[k], rest /= gone[k];
    step[i] = at;
  }
  by_dtype(c.out.dtype, [&]<class S>() {
    using C = typename ComputeOf<S>::type;
    // Sums of float are taken in double: one rounding at the end.
    using A = std::conditional_t<std::is_floating_point_v<C>, double, int64_t>;
    const S* x = static_cast<const S*>(in);
    split(c.out.count, c.in[0].count, [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; ++o) {
        int64_t rest = o, at = 0;
        for (size_t k = kept.size(); k-- > 0;)
          at += rest % kept[k] * kept_strides[k], rest /= kept[k];
        A acc = 0;
        if (c.op == Op::ReduceSum) {
          for (int64_t s : step) acc += static_cast<A>(static_cast<C>(x[at + s]));
        } else {
          acc = static_cast<A>(static_cast<C>(x[at]));
          for (int64_t s : step) {
            A v = static_cast<A>(static_cast<C>(x[at + s]));
            acc = c.op == Op::ReduceMax ? nan_max(acc, v) : nan_min(acc, v);
          }
        }
        static_cast<S*>(out)[o] = S(static_cast<C>(acc));
      }
    });
  });
}

void arg_reduce(const Call& c, const void* in, void* out) {
  auto axis = static_cast<size_t>(c.attrs[0]);
  const Dims& dims = c.in[0].dims;
  int64_t inner = product(dims, axis + 1, dims.size()), n = dims[axis];
  by_dtype(c.in[0].dtype, [&]<class S>() {
    using C = typename ComputeOf<S>::type;
    for (int64_t o = 0; o < c.out.count; ++o) {
      const S* x = static_cast<const S*>(in) + o / inner * inner * n + o % inner;
      int64_t best = 0;
      C top = static_cast<C>(x[0]);
      for (int64_t i = 1; i < n && top == top; ++i) {  // the first NaN wins
        C v = static_cast<C>(x[i * inner]);
        bool better = c.op == Op::ArgMax ? v > top : v < top;
        if (better || v != v) best = i, top = v;
      }
      static_cast<int32_t*>(out)[o] = static_cast<int32_t>(best);
    }
  });
}

void cumsum(const Call& c, const void* in, void* out) {
  auto axis = static_cast<size_t>(c.attrs[0]);
  bool exclusive = c.attrs[1], reverse = c.attrs[2];
  const Dims& dims = c.out.dims;
  int64_t inner = product(dims, axis + 1, dims.size()), n = dims[axis];
  by_dtype(c.out.dtype, [&]<class S>() {
    using C = typename ComputeOf<S>::type;
    using A = std::conditional_t<std::is_floating_point_v<C>, double, int64_t>;
    int64_t lines = n ? c.out.count / n : 0;
    split(lines, c.out.count, [&](int64_t begin, int64_t end) {
      for (int64_t l = begin; l < end; ++l) {
        int64_t base = l / inner * inner * n + l % inner;
        A sum = 0;
        for (int64_t i = 0; i < n; ++i) {
          int64_t at = base + (reverse ? n - 1 - i : i) * inner;
          A v = static_cast<A>(static_cast<C>(static_cast<const S*>(in)[at]));
          if (!exclusive) sum += v;
          static_cast<S*>(out)[at] = S(static_cast<C>(sum));
          if (exclusive) sum += v;
        }
      }
    });
  });
}

// Indexing ----------------------------------------------------------------------------------------

int64_t read_index(const Call& c, const TensorDesc& desc, const void* p, int64_t i, int64_t size) {
  int64_t at = desc.dtype == DType::Int32 ? static_cast<const int32_t*>(p)[i]
                                          : static_cast<const int64_t*>(p)[i];
  require(at >= -size && at < size, ErrorKind::Index, info(c.op).name, ": index ", at,
          " is out of range for an axis of size ", size);
  return at < 0 ? at + size : at;
}

void gather(const Call& c, const void* const* in, void* out) {
  auto axis = static_cast<size_t>(c.attrs[0]);
  const Dims& dims = c.in[0].dims;
  int64_t outer = product(dims, 0, axis), n = dims[axis];
  int64_t bytes =
      product(dims, axis + 1, dims.size()) * static_cast<int64_t>(item_size(c.out.dtype));
  int64_t m = c.in[1].count;
  std::vector<int64_t> at(static_cast<size_t>(m));
  for (int64_t i = 0; i < m; ++i) at[i] = read_index(c, c.in[1], in[1], i, n);
  auto* src = static_cast<const char*>(in[0]);
  auto* dst = static_cast<char*>(out);
  split(outer * m, c.out.count, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      std::memcpy(dst + i * bytes, src + (i / m * n + at[i % m]) * bytes,
                  static_cast<size_t>(bytes));
  });
}

void scatter_add(const Call& c, const void* const* in, void* out) {
  auto axis = static_cast<size_t>(c.attrs[0]);
  const Dims& dims = c.out.dims;
  int64_t outer = product(dims, 0, axis), n = dims[axis];
  int64_t inner = product(dims, axis + 1, dims.size()), m = c.in[0].count;
  std::vector<int64_t> at(static_cast<size_t>(m));
  for (int64_t i = 0; i < m; ++i) at[i] = read_index(c, c.in[0], in[0], i, n);
  by_dtype(c.out.dtype, [&]<class S>() {
    using C = typename ComputeOf<S>::type;
    std::vector<C> sums(static_cast<size_t>(n * inner));
    const S* x = static_cast<const S*>(in[1]);
    for (int64_t o = 0; o < outer; ++o) {
      std::fill(sums.begin(), sums.end(), C(0));
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < inner; ++j)
          sums[at[i] * inner + j] =
              static_cast<C>(sums[at[i] * inner + j] + static_cast<C>(x[(o * m + i) * inner + j]));
      for (int64_t i = 0; i < n * inner; ++i) static_cast<S*>(out)[o * n * inner + i] = S(sums[i]);
    }
  });
}

void last_writer(const Call& c, const void* const* in, void* out) {
  auto* writer = static_cast<int64_t*>(out);
  std::fill_n(writer, c.out.count, -1);
  for (int64_t i = 0; i < c.in[0].count; ++i)
    writer[read_index(c, c.in[0], in[0], i, c.out.count)] = i;
}

// Contraction -------------------------------------------------------------------------------------

/// body(first, count) for parts of n elements, on all threads.
template <class F>
void by_parts(int64_t n, F body) {
  constexpr int64_t kPart = 1 << 14;
  parallel_for(static_cast<int>((n + kPart - 1) / kPart), [&](int task, int) {
    body(task * kPart, static_cast<size_t>(std::min(kPart, n - task * kPart)));
  });
}

std::vector<float> widened(const TensorDesc& t, const void* p) {
  std::vector<float> wide(static_cast<size_t>(t.count));
  by_parts(t.count, [&](int64_t first, size_t n) {
    tile_kernels().transpose.load(static_cast<const uint16_t*>(p) + first, t.dtype,
                                  wide.data() + first, n);
  });
  return wide;
}

template <class S>
void plain_product(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const S* a, const S* b,
                   S* c) {
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      int64_t sum = 0;
      for (int64_t l = 0; l < k; ++l)
        sum += static_cast<int64_t>(a[ta ? l * m + i : i * k + l]) * b[tb ? j * k + l : l * n + j];
      c[i * n + j] = static_cast<S>(sum);
    }
}

/// By the matrix unit; false where there is none, or for what it cannot or need not do.
template <class S>
bool half_products(bool ta, bool tb, int64_t batch, int64_t m, int64_t n, int64_t k,
                   const void* const* in, void* out) {
  // Small products are not worth packing; of float16 there are four.
  constexpr int64_t kSide = std::is_same_v<S, BF16> ? 48 : 448;
  if (m * n * k < kSide * kSide * kSide || !has_half_products()) return false;
  for (int64_t i = 0; i < batch; ++i) {
    const auto *a = static_cast<const uint16_t*>(in[0]) + i * m * k,
               *b = static_cast<const uint16_t*>(in[1]) + i * k * n;
    auto* y = static_cast<uint16_t*>(out) + i * m * n;
    if constexpr (std::is_same_v<S, BF16>)
      bf16_product(ta, tb, m, n, k, a, b, y);
    else if (!f16_product(ta, tb, m, n, k, a, b, y))
      return false;
  }
  return true;
}

void matmul(const Call& c, size_t pair, const void* const* all, void* out) {
  const void* const* in = all + pair;
  size_t r = c.out.dims.size();
  bool ta = c.attrs[0], tb = c.attrs[1];
  int64_t batch = product(c.out.dims, 0, r - 2), m = c.out.dims[r - 2], n = c.out.dims[r - 1];
  int64_t k = c.in[pair].dims[ta ? r - 2 : r - 1];
  auto batched = [&](auto* a, auto* b, auto* y) {
    auto one = [&](int i, int) {
      if constexpr (std::is_floating_point_v<std::remove_pointer_t<decltype(y)>>)
        matrix_product(ta, tb, m, n, k, a + i * m * k, b + i * k * n, y + i * m * n);
      else
        plain_product(ta, tb, m, n, k, a + i * m * k, b + i * k * n, y + i * m * n);
    };
    if (batch > 1 && m * n * k < 64 * 64 * 64 * 4 && batch * m * n * k > 65536)
      return parallel_for(static_cast<int>(batch), one);
    for (int64_t i = 0; i < batch; ++i) one(static_cast<int>(i), 0);
  };
  by_dtype(c.out.dtype, [&]<class S>() {
    if constexpr (std::is_same_v<S, F16> || std::is_same_v<S, BF16>) {
      if (half_products<S>(ta, tb, batch, m, n, k, in, out)) return;
      auto a = widened(c.in[pair], in[0]), b = widened(c.in[pair + 1], in[1]);
      std::vector<float> y(static_cast<size_t>(c.out.count));
      batched(a.data(), b.data(), y.data());
      by_parts(c.out.count, [&](int64_t first, size_t count) {
        tile_kernels().transpose.store(y.data() + first, c.out.dtype,
                                       static_cast<uint16_t*>(out) + first, count);
      });
    } else {
      batched(static_cast<const S*>(in[0]), static_cast<const S*>(in[1]), static_cast<S*>(out));
    }
  });
}

/// a1 b1 + a2 b2 + ...
void sum_of_products(const Call& c, const void* const* in, void* out) {
  matmul(c, 0, in, out);
  if (c.in.size() == 2) return;
  std::vector<std::byte> term(c.out.bytes());
  for (size_t pair = 2; pair < c.in.size(); pair += 2) {
    matmul(c, pair, in, term.data());
    by_dtype(c.out.dtype, [&]<class S>() {
      using C = typename ComputeOf<S>::type;
      auto* y = static_cast<S*>(out);
      auto* x = reinterpret_cast<const S*>(term.data());
      for (int64_t i = 0; i < c.out.count; ++i)
        y[i] = S(static_cast<C>(static_cast<C>(y[i]) + static_cast<C>(x[i])));
    });
  }
}

// Movement ----------------------------------------------------------------------------------------

void move(const Call& c, const void* const* in, void* out) {
  size_t item = item_size(c.out.dtype), rank = c.out.dims.size();
  Dims from = row_major(c.in[0].dims), to = row_major(c.out.dims);
  StridedCopy copy;
  switch (c.op) {
    case Op::Transpose:
      copy.dims = c.out.dims, copy.to = to;
      for (int64_t axis : c.attrs) copy.from.push_back(from[axis]);
      break;
    case Op::BroadcastTo: {
      copy.dims = c.out.dims, copy.to = to;
      size_t missing = rank - from.size();
      for (size_t k = 0; k < rank; ++k) {
        bool spread = k < missing || (c.in[0].dims[k - missing] == 1);
        copy.from.push_back(spread ? 0 : from[k - missing]);
      }
      break;
    }
    case Op::Slice:
      copy.dims = c.out.dims, copy.to = to;
      for (size_t k = 0; k < rank; ++k) {
        copy.from.push_back(from[k] * c.attrs[rank + k]);
        copy.from_offset += from[k] * c.attrs[k];
      }
      break;
    default:  // SliceScatter
      std::memset(out, 0, c.out.bytes());
      copy.dims = c.in[0].dims, copy.from = from;
      for (size_t k = 0; k < rank; ++k) {
        copy.to.push_back(to[k] * c.attrs[rank + k]);
        copy.to_offset += to[k] * c.attrs[k];
      }
  }
  if (element_count(copy.dims) > 0) copy.run(in[0], out, item);
}

void concat(const Call& c, const void* const* in, void* out) {
  auto axis = static_cast<size_t>(c.attrs[0]);
  Dims to = row_major(c.out.dims);
  int64_t at = 0;
  for (size_t i = 0; i < c.in.size(); ++i) {
    StridedCopy copy;
    copy.dims = c.in[i].dims, copy.from = row_major(copy.dims), copy.to = to;
    copy.to_offset = at * to[axis];
    at += copy.dims[axis];
    if (c.in[i].count > 0) copy.run(in[i], out, item_size(c.out.dtype));
  }
}

void random_uniform(const Call& c, const void* state, void* out) {
  auto* s = static_cast<const int64_t*>(state);
  auto seed = static_cast<uint64_t>(s[0]), offset = static_cast<uint64_t>(s[1]);
  auto* y = static_cast<float*>(out);
  split((c.out.count + 3) / 4, c.out.count, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      auto block = philox(seed, offset + static_cast<uint64_t>(i));
      for (int64_t k = 0; k < std::min<int64_t>(4, c.out.count - 4 * i); ++k)
        y[4 * i + k] = uniform_from_bits(block[k]);
    }
  });
}

}  // namespace

void run_call(const Call& c, const void* const* in, void* out, const uint64_t* constants) {
  if (c.out.count == 0) return;
  switch (c.op) {
    case Op::Const:
      return fill(c, out, constants[c.constant]);
    case Op::Iota:
      return iota(c, out);
    case Op::ReduceSum:
    case Op::ReduceMax:
    case Op::ReduceMin:
      return reduce(c, in[0], out);
    case Op::ArgMax:
    case Op::ArgMin:
      return arg_reduce(c, in[0], out);
    case Op::CumSum:
      return cumsum(c, in[0], out);
    case Op::Gather:
      return gather(c, in, out);
    case Op::ScatterAdd:
      return scatter_add(c, in, out);
    case Op::LastWriter:
      return last_writer(c, in, out);
    case Op::MatMul:
      return sum_of_products(c, in, out);
    case Op::Transpose:
    case Op::BroadcastTo:
    case Op::Slice:
    case Op::SliceScatter:
      return move(c, in, out);
    case Op::Concat:
      return concat(c, in, out);
    case Op::RandomUniform:
      return random_uniform(c, in[0], out);
    default:
      fail(ErrorKind::NotImplemented, info(c.op).name, " has no CPU kernel");
  }
}

}  // namespace gradcell::cpu
