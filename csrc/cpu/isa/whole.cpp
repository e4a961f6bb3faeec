// Reductions of whole tensors: elements side by side, and columns.
#include "cpu/isa/whole.h"

#include <cstring>
#include <utility>

#if defined(__F16C__)
#include <immintrin.h>
#endif

#include "cpu/isa/line.h"
#include "cpu/kernels/combine.h"

namespace gradcell::cpu::GRADCELL_ISA {
namespace {

// What becomes of elements before they are combined, of one or a register of them.
struct Itself {
  template <class V>
  V operator()(const V& x) const {
    return x;
  }
};
struct SquareOf {
  template <class V>
  V operator()(const V& x) const {
    return x * x;
  }
};
struct SizeOf {
  template <class V>
  V operator()(const V& x) const {
    return x < V{} ? -x : x;
  }
};
template <class T>
struct NumberOf {
  T otherwise;
  template <class V>
  V operator()(const V& x) const {
    return x == x ? x : V{} + otherwise;
  }
};

/// How elements of T come to be 64 bytes of A.
template <class A, class T>
struct Wide {
  using Acc = Line<A>;
  static constexpr size_t kLanes = Acc::kCount, kStep = kLanes / kRegisters;
  typedef T Lanes __attribute__((vector_size(kStep * sizeof(T))));
  template <class Map = Itself>
  static Acc read(const T* p, const Map& map = {}) {
    Acc line;
    for (size_t k = 0; k < kRegisters; ++k)
      line.part[k] = lanes_as<typename Acc::Part>(map(load_as<Lanes>(p + k * kStep)));
    return line;
  }
  static void write(const Acc& line, T* p) {
    for (size_t k = 0; k < kRegisters; ++k) store(p + k * kStep, lanes_as<Lanes>(line.part[k]));
  }
};

/// The last elements of a line of n, from i on, that fill no 64 bytes, among what changes nothing:
/// the ends of the line's last 64 bytes, unless all of it is shorter.
template <Combine how, class W, class T, class Map = Itself>
typename W::Acc rest_of(const T* x, size_t i, size_t n, const Map& map = {}) {
  constexpr size_t kLanes = W::kLanes;
  if (n < kLanes) {
    T at[kLanes];
    for (T& v : at) v = identity<how, T>();
    std::memcpy(at, x + i, (n - i) * sizeof(T));
    return W::read(at, map);
  }
  using Part = typename W::Acc::Part;
  using A = std::remove_cvref_t<decltype(Part{}[0])>;
  using Place = std::remove_cvref_t<decltype((Part{} < Part{})[0])>;
  decltype(Part{} < Part{}) place;
  for (size_t k = 0; k < W::kStep; ++k) place[k] = static_cast<Place>(k);
  auto line = W::read(x + n - kLanes, map);
  for (size_t k = 0; k < kRegisters; ++k, place += static_cast<Place>(W::kStep))
    line.part[k] =
        place < static_cast<Place>(kLanes - (n - i)) ? Part{} + identity<how, A>() : line.part[k];
  return line;
}

/// The lower or the upper half of a line's floats, as doubles.
template <bool upper>
Line<double> half_of(const Line<float>& line) {
  constexpr std::make_index_sequence<kVectorBytes / sizeof(double)> half;
  Line<double> doubles;
  for (size_t k = 0; k < kRegisters; ++k) {
    const size_t from = k + (upper ? kRegisters : 0);
    const auto& part = line.part[from / 2];
    doubles.part[k] = lanes_as<Line<double>::Part>(from % 2 ? half_of<true>(part, half)
                                                            : half_of<false>(part, half));
  }
  return doubles;
}

/// Floats are added four and four before a sum in double takes them. at(i): a line of them from i
/// on; rest(i): those that fill none.
template <class At, class Rest>
void sum_by_fours(size_t n, double* acc, At at, Rest rest) {
  constexpr size_t kLanes = Line<float>::kCount;
  Line<double> part[4] = {};
  auto add = [&](size_t k, const Line<float>& v) {
    part[2 * k] = part[2 * k] + half_of<false>(v);
    part[2 * k + 1] = part[2 * k + 1] + half_of<true>(v);
  };
  auto four = [&](size_t i) {
    return (at(i) + at(i + kLanes)) + (at(i + 2 * kLanes) + at(i + 3 * kLanes));
  };
  size_t i = 0;
  for (; i + 8 * kLanes <= n; i += 8 * kLanes) add(0, four(i)), add(1, four(i + 4 * kLanes));
  if (i + 4 * kLanes <= n) add(0, four(i)), i += 4 * kLanes;
  // (No index that only a run knows: sums would stand in memory, each waiting for the last to be
  // stored.)
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) add(1, at(i)), add(0, at(i + kLanes));
  if (i + kLanes <= n) add(1, at(i)), i += kLanes;
  if (i < n) add(0, rest(i));
  *acc += across<Combine::Sum>((part[0] + part[1]) + (part[2] + part[3]));
}

template <class Map = Itself>
void fold_line(const float* x, size_t n, double* acc, std::integral_constant<Combine, Combine::Sum>,
               const Map& map = {}) {
  using W = Wide<float, float>;
  sum_by_fours(
      n, acc, [&](size_t i) { return W::read(x + i, map); },
      [&](size_t i) { return rest_of<Combine::Sum, W>(x, i, n, map); });
}

/// The larger (smaller) one, b if they are equal or there is a NaN.
template <Combine how, class V>
GRADCELL_INLINE V better(V v, V b) {
  return how == Combine::Max ? (v > b ? v : b) : (v < b ? v : b);
}

/// The largest (smallest) in vectors, and beside it whether there was a NaN: shorter chains than
/// one that a NaN goes through.
template <class T, Combine how>
  requires(std::is_floating_point_v<T> && (how == Combine::Max || how == Combine::Min))
void fold_line(const T* x, size_t n, T* acc, std::integral_constant<Combine, how>) {
  using W = Wide<T, T>;
  using V = typename W::Acc::Part;
  constexpr size_t kLanes = W::kLanes, kParts = 4;
  V best[kParts][kRegisters];
  for (auto& line : best)
    for (V& b : line) b = V{} + identity<how, T>();
  auto nan = best[0][0] != best[0][0];
  auto take = [&](V* line, const Line<T>& from) {
    for (size_t k = 0; k < kRegisters; ++k) {
      const V v = from.part[k];
      line[k] = better<how>(v, line[k]);
      nan |= v != v;
    }
  };
  size_t i = 0;
  for (; i + kParts * kLanes <= n; i += kParts * kLanes)
    for (size_t k = 0; k < kParts; ++k) take(best[k], W::read(x + i + k * kLanes));
  for (; i + kLanes <= n; i += kLanes) take(best[0], W::read(x + i));
  if (i < n) take(best[1], rest_of<how, W>(x, i, n));
  V most = best[0][0];
  for (const auto& line : best)
    for (const V& b : line) most = combined<how>(most, b);
  most = nan ? V{} + std::numeric_limits<T>::quiet_NaN() : most;
  *acc = combined<how>(*acc, across_lanes<how>(most));
}

template <class T, Combine how, class Map = Itself>
void fold_line(const T* x, size_t n, AccumulatorOf<how, T>* acc,
               std::integral_constant<Combine, how>, const Map& map = {}) {
  using A = AccumulatorOf<how, T>;
  using W = Wide<A, T>;
  constexpr size_t kLanes = W::kLanes, kParts = 4;
  Line<A> part[kParts];
  for (Line<A>& p : part) p = Line<A>::of(identity<how, A>());
  size_t i = 0;
  for (; i + kParts * kLanes <= n; i += kParts * kLanes)
    for (size_t k = 0; k < kParts; ++k)
      part[k] = combined_lines<how>(part[k], W::read(x + i + k * kLanes, map));
  for (; i + kLanes <= n; i += kLanes) part[0] = combined_lines<how>(part[0], W::read(x + i, map));
  if (i < n) part[1] = combined_lines<how>(part[1], rest_of<how, W>(x, i, n, map));
  part[0] = combined_lines<how>(combined_lines<how>(part[0], part[1]),
                                combined_lines<how>(part[2], part[3]));
  *acc = combined<how>(*acc, across<how>(part[0]));
}

template <Combine how, class T>
void fold_all(const T* x, size_t n, AccumulatorOf<how, T>* acc) {
  fold_line(x, n, acc, std::integral_constant<Combine, how>());
}

#if defined(__F16C__)
/// Sixteen numbers of a half type as floats.
template <bool bf16>
Line<float> read_halves(const uint16_t* x) {
  Line<float> line;
  for (size_t k = 0; k < kRegisters; ++k) {
#if defined(__AVX512F__)
    const __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x));
    if constexpr (bf16)
      line.part[k] = (Line<float>::Part)_mm512_castsi512_ps(
          _mm512_maskz_slli_epi32(0xffff, _mm512_maskz_cvtepu16_epi32(0xffff, v), 16));
    else
      line.part[k] = (Line<float>::Part)_mm512_maskz_cvtph_ps(0xffff, v);
#else
    const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(x + 8 * k));
    if constexpr (bf16)
      line.part[k] =
          (Line<float>::Part)_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(v), 16));
    else
      line.part[k] = (Line<float>::Part)_mm256_cvtph_ps(v);
#endif
  }
  return line;
}

template <bool bf16>
void sum_of_halves(const uint16_t* x, size_t n, double* acc) {
  sum_by_fours(
      n, acc, [=](size_t i) { return read_halves<bf16>(x + i); },
      [=](size_t i) {
        uint16_t rest[16] = {};
        std::memcpy(rest, x + i, (n - i) * sizeof *x);
        return read_halves<bf16>(rest);
      });
}
#endif

bool sum_halves(DType type, const uint16_t* x, size_t n, double* acc) {
#if defined(__F16C__)
  if (type == DType::BFloat16) return sum_of_halves<true>(x, n, acc), true;
  if (type == DType::Float16) return sum_of_halves<false>(x, n, acc), true;
  return false;
#else
  (void)type, (void)x, (void)n, (void)acc;
  return false;
#endif
}

void fold(Combine how, DType type, const void* x, size_t n, void* acc) {
  by_type(type, [&]<class T>() {
    by_combine(how, [&]<Combine c>() {
      fold_all<c>(static_cast<const T*>(x), n, static_cast<AccumulatorOf<c, T>*>(acc));
    });
  });
}

/// Floats of four rows are added before a sum in double takes them, as in a line. Returns how many
/// rows that were.
template <class Map = Itself>
size_t add_rows(const float* x, ptrdiff_t stride, size_t rows, double* acc, size_t n,
                const Map& map = {}) {
  using F = Wide<float, float>;
  using D = Wide<double, double>;
  size_t r = 0;
  for (; r + 8 <= rows; r += 8) {
    const float* p = x + static_cast<ptrdiff_t>(r) * stride;
    auto four = [&](size_t j, ptrdiff_t k) {
      auto at = [&](ptrdiff_t row) { return F::read(p + row * stride + j, map); };
      return (at(k) + at(k + 1)) + (at(k + 2) + at(k + 3));
    };
    auto add = [&](size_t j, const Line<double>& a, const Line<double>& b) {
      D::write(D::read(acc + j) + (a + b), acc + j);
    };
    size_t j = 0;
    for (; j + F::kLanes <= n; j += F::kLanes) {
      const Line<float> a = four(j, 0), b = four(j, 4);
      add(j, half_of<false>(a), half_of<false>(b));
      add(j + D::kLanes, half_of<true>(a), half_of<true>(b));
    }
    for (; j < n; ++j) {
      auto at = [&](ptrdiff_t row) { return map(p[row * stride + static_cast<ptrdiff_t>(j)]); };
      acc[j] += static_cast<double>((at(0) + at(1)) + (at(2) + at(3))) +
                static_cast<double>((at(4) + at(5)) + (at(6) + at(7)));
    }
  }
  return r;
}

/// Four rows at a time, so that accumulators are read and written once for them.
template <Combine how, class T, class Map = Itself>
  requires(!(std::is_floating_point_v<T> && (how == Combine::Max || how == Combine::Min)))
void fold_columns(const T* x, ptrdiff_t stride, size_t rows, AccumulatorOf<how, T>* acc, size_t n,
                  const Map& map = {}) {
  using A = AccumulatorOf<how, T>;
  using W = Wide<A, T>;
  using Sums = Wide<A, A>;
  size_t r = 0;
  if constexpr (how == Combine::Sum && std::is_same_v<T, float>)
    r = add_rows(x, stride, rows, acc, n, map);
  for (; r < rows; r += 4) {
    const T* p = x + static_cast<ptrdiff_t>(r) * stride;
    const size_t group = rows - r < 4 ? rows - r : 4;
    size_t j = 0;
    if (group == 4)
      for (; j + W::kLanes <= n; j += W::kLanes) {
        Line<A> a = Sums::read(acc + j);
        for (ptrdiff_t k = 0; k < 4; ++k)
          a = combined_lines<how>(a, W::read(p + k * stride + j, map));
        Sums::write(a, acc + j);
      }
    for (; j < n; ++j)
      for (size_t k = 0; k < group; ++k)
        acc[j] =
            combined<how>(acc[j], static_cast<A>(map(p[static_cast<ptrdiff_t>(k) * stride + j])));
  }
}

/// The largest (smallest), the first of equal ones, and beside it whether there was a NaN, as in a
/// line.
template <Combine how, class T>
  requires(std::is_floating_point_v<T> && (how == Combine::Max || how == Combine::Min))
void fold_columns(const T* x, ptrdiff_t stride, size_t rows, T* acc, size_t n) {
  using W = Wide<T, T>;
  using V = typename W::Acc::Part;
  constexpr size_t kRows = 16;
  for (size_t r = 0; r < rows; r += kRows) {
    const T* const first = x + static_cast<ptrdiff_t>(r) * stride;
    const auto group = static_cast<ptrdiff_t>(std::min(rows - r, kRows));
    size_t j = 0;
    for (; j + W::kLanes <= n; j += W::kLanes) {
      Line<T> best = W::read(acc + j);
      decltype(V{} < V{}) nan[kRegisters] = {};
      for (ptrdiff_t i = 0; i < group; ++i) {
        const Line<T> line = W::read(first + i * stride + j);
        for (size_t k = 0; k < kRegisters; ++k) {
          const V v = line.part[k];
          best.part[k] = better<how>(v, best.part[k]);
          nan[k] |= v != v;
        }
      }
      for (size_t k = 0; k < kRegisters; ++k)
        best.part[k] = nan[k] ? V{} + std::numeric_limits<T>::quiet_NaN() : best.part[k];
      W::write(best, acc + j);
    }
    for (; j < n; ++j)
      for (ptrdiff_t i = 0; i < group; ++i) {
        const T v = first[i * stride + static_cast<ptrdiff_t>(j)];
        acc[j] = v != v ? v : better<how>(v, acc[j]);
      }
  }
}

void fold_rows(Combine how, DType type, const void* x, ptrdiff_t stride, size_t rows, void* acc,
               size_t n) {
  by_type(type, [&]<class T>() {
    by_combine(how, [&]<Combine c>() {
      fold_columns<c>(static_cast<const T*>(x), stride, rows,
                      static_cast<AccumulatorOf<c, T>*>(acc), n);
    });
  });
}

/// A register of results from accumulators.
template <class A, class T>
typename Line<T>::Part rounded(const A* acc) {
  using Part = typename Line<T>::Part;
  constexpr size_t kCount = sizeof(Part) / sizeof(T);
  if constexpr (sizeof(A) == sizeof(T)) {
    return lanes_as<Part>(load_as<typename Line<A>::Part>(acc));
  } else {
    using Wide = typename Line<A>::Part;
    typedef T Half __attribute__((vector_size(sizeof(Part) / 2)));
    static_assert(sizeof(A) == 2 * sizeof(T));
    return joined(lanes_as<Half>(load_as<Wide>(acc)),
                  lanes_as<Half>(load_as<Wide>(acc + kCount / 2)),
                  std::make_index_sequence<kCount>());
  }
}

/// Accumulators are filled, and rounded, by whole registers: what is stored in smaller parts is not
/// at hand when all of it is loaded next.
template <Combine how, class T>
void reduce_columns(const T* x, ptrdiff_t stride, size_t rows, T* y, size_t n) {
  using A = AccumulatorOf<how, T>;
  constexpr size_t kPiece = 256, kResults = kVectorBytes / sizeof(T);
  A acc[kPiece];
  for (size_t at = 0; at < n; at += kPiece) {
    const size_t piece = std::min(kPiece, n - at);
    for (size_t j = 0; j < piece; j += Line<A>::kCount)
      Wide<A, A>::write(Line<A>::of(identity<how, A>()), acc + j);
    fold_columns<how>(x + at, stride, rows, acc, piece);
    size_t j = 0;
    for (; j + kResults <= piece; j += kResults) store(y + at + j, rounded<A, T>(acc + j));
    for (; j < piece; ++j) y[at + j] = static_cast<T>(acc[j]);
  }
}

void reduce_rows(Combine how, Compute type, const void* x, ptrdiff_t stride, size_t rows, void* y,
                 size_t n) {
  by_compute(type, [&]<class T>(T) {
    by_combine(how, [&]<Combine c>() {
      reduce_columns<c>(static_cast<const T*>(x), stride, rows, static_cast<T*>(y), n);
    });
  });
}

/// f(map) of float or double.
template <class T, class F>
void by_map(Mapped map, const void* number, F f) {
  switch (map) {
    case Mapped::Itself:
      return f(Itself());
    case Mapped::Square:
      return f(SquareOf());
    case Mapped::Size:
      return f(SizeOf());
    case Mapped::Number:
      return f(NumberOf<T>{*static_cast<const T*>(number)});
  }
}

template <class F>
void by_floating(DType type, F f) {
  type == DType::Float64 ? f.template operator()<double>() : f.template operator()<float>();
}

void sum_mapped(Mapped map, DType type, const void* x, size_t n, const void* number, void* acc) {
  by_floating(type, [&]<class T>() {
    by_map<T>(map, number, [&](const auto& m) {
      constexpr std::integral_constant<Combine, Combine::Sum> sum;
      fold_line(static_cast<const T*>(x), n, static_cast<double*>(acc), sum, m);
    });
  });
}

void sum_rows_mapped(Mapped map, DType type, const void* x, ptrdiff_t stride, size_t rows,
                     const void* number, void* acc, size_t n) {
  by_floating(type, [&]<class T>() {
    by_map<T>(map, number, [&](const auto& m) {
      fold_columns<Combine::Sum>(static_cast<const T*>(x), stride, rows, static_cast<double*>(acc),
                                 n, m);
    });
  });
}

template <Combine how, class T>
void scan_columns(const T* x, T* y, ptrdiff_t stride, size_t rows, AccumulatorOf<how, T>* acc,
                  size_t n) {
  using A = AccumulatorOf<how, T>;
  using W = Wide<A, T>;
  using Sums = Wide<A, A>;
  for (size_t r = 0; r < rows; ++r, x += stride, y += stride) {
    size_t j = 0;
    for (; j + W::kLanes <= n; j += W::kLanes) {
      const Line<A> with = combined_lines<how>(Sums::read(acc + j), W::read(x + j));
      W::write(with, y + j);
      Sums::write(with, acc + j);
    }
    for (; j < n; ++j) {
      acc[j] = combined<how>(acc[j], static_cast<A>(x[j]));
      y[j] = static_cast<T>(acc[j]);
    }
  }
}

void scan_rows(Combine how, DType type, const void* x, void* y, ptrdiff_t stride, size_t rows,
               void* acc, size_t n) {
  auto as = [&]<class T>() {
    auto run = [&]<Combine c>() {
      auto* from = static_cast<const T*>(x);
      auto* to = static_cast<T*>(y);
      auto* sums = static_cast<AccumulatorOf<c, T>*>(acc);
      scan_columns<c>(from, to, stride, rows, sums, n);
    };
    how == Combine::Product ? run.template operator()<Combine::Product>()
                            : run.template operator()<Combine::Sum>();
  };
  switch (type) {
    case DType::Float32:
      return as.template operator()<float>();
    case DType::Float64:
      return as.template operator()<double>();
    case DType::Int32:
      return as.template operator()<int32_t>();
    default:
      return as.template operator()<int64_t>();
  }
}

template <class T>
int64_t first_of(const T* x, size_t n, T wanted) {
  constexpr size_t kBlock = 64;
  const bool nan = wanted != wanted;
  size_t i = 0;
  for (; i + kBlock <= n; i += kBlock) {
    int any = 0;
    if (nan)
      for (size_t k = 0; k < kBlock; ++k) any |= x[i + k] != x[i + k];
    else
      for (size_t k = 0; k < kBlock; ++k) any |= x[i + k] == wanted;
    if (any) break;
  }
  while (i < n && !(nan ? x[i] != x[i] : x[i] == wanted)) ++i;
  return static_cast<int64_t>(i);
}

int64_t first_extreme(bool largest, DType type, const void* x, size_t n) {
  return by_type(type, [&]<class T>() {
    const T* p = static_cast<const T*>(x);
    T top = p[0];
    largest ? fold_all<Combine::Max>(p, n, &top) : fold_all<Combine::Min>(p, n, &top);
    return first_of(p, n, top);
  });
}

template <bool largest, class T>
void extreme_columns(const T* x, ptrdiff_t stride, size_t rows, T* __restrict top,
                     int32_t* __restrict at, size_t n) {
  std::memcpy(top, x, n * sizeof(T));
  std::memset(at, 0, n * sizeof(int32_t));
  for (size_t r = 1; r < rows; ++r) {
    const T* __restrict p = x + static_cast<ptrdiff_t>(r) * stride;
    const auto here = known<int32_t>(r);
    for (size_t j = 0; j < n; ++j) {
      const T v = p[j], t = top[j];
      const bool better = (largest ? v > t : v < t) | ((v != v) & (t == t));
      top[j] = better ? v : t;
      at[j] = better ? here : at[j];
    }
  }
}

void first_extremes(bool largest, DType type, const void* x, ptrdiff_t stride, size_t rows,
                    void* top, int32_t* at, size_t n) {
  by_type(type, [&]<class T>() {
    const T* p = static_cast<const T*>(x);
    largest ? extreme_columns<true>(p, stride, rows, static_cast<T*>(top), at, n)
            : extreme_columns<false>(p, stride, rows, static_cast<T*>(top), at, n);
  });
}

template <bool largest, class T>
void exceed_row(const T* __restrict x, int64_t here, T* __restrict top, int64_t* __restrict at,
                size_t n) {
  for (size_t j = 0; j < n; ++j) {
    const bool better = largest ? x[j] > top[j] : x[j] < top[j];
    top[j] = better ? x[j] : top[j];
    at[j] = better ? here : at[j];
  }
}

void exceed(bool largest, DType type, const void* x, int64_t here, void* top, int64_t* at,
            size_t n) {
  by_type(type, [&]<class T>() {
    const T* p = static_cast<const T*>(x);
    largest ? exceed_row<true>(p, here, static_cast<T*>(top), at, n)
            : exceed_row<false>(p, here, static_cast<T*>(top), at, n);
  });
}

}  // namespace

extern const WholeKernels kWholeKernels;
const WholeKernels kWholeKernels = {fold,           sum_halves,      fold_rows, reduce_rows,
                                    sum_mapped,     sum_rows_mapped, scan_rows, first_extreme,
                                    first_extremes, exceed,          convert,   logical,
                                    bits,           select,          places,    copy_apart};

}  // namespace gradcell::cpu::GRADCELL_ISA
