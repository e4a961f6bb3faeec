// Whole tensors, reduced along axes. In which order elements are combined follows from the shape
// alone: results do not depend on the number of threads.
#include <bit>

#include "base/scratch.h"
#include "cpu/calls/elements.h"
#include "cpu/kernels/tile_kernels.h"
#include "cpu/kernels/whole_kernels.h"

namespace gradcell::cpu {

namespace {

/// A tensor's dimensions with neighbours joined that are kept, or reduced, together.
struct Joined {
  struct Dim {
    int64_t size, stride;
    bool gone;
  };
  std::vector<Dim> dims;

  Joined(const Dims& sizes, const Dims& axes) {
    const Dims strides = row_major(sizes);
    for (size_t k = 0; k < sizes.size(); ++k) {
      const bool gone = contains(axes, k);
      if (sizes[k] == 1) continue;
      if (!dims.empty() && dims.back().gone == gone)
        dims.back() = {dims.back().size * sizes[k], strides[k], gone};
      else
        dims.push_back({sizes[k], strides[k], gone});
    }
    if (dims.empty()) dims.push_back({1, 1, true});
  }

  /// Where the elements of those dimensions that are gone (or kept) stand, in order.
  std::vector<int64_t> offsets(bool gone) const {
    std::vector<int64_t> all{0};
    for (const Dim& d : dims) {
      if (d.gone != gone) continue;
      std::vector<int64_t> next;
      next.reserve(all.size() * static_cast<size_t>(d.size));
      for (int64_t at : all)
        for (int64_t i = 0; i < d.size; ++i) next.push_back(at + i * d.stride);
      all = std::move(next);
    }
    return all;
  }
};

/// So many elements are combined by one task before its result meets the others'.
constexpr int64_t kPart = 1 << 15;
/// Columns that a task combines at a time: its accumulators stay in the first-level cache.
constexpr int64_t kColumns = 1024;
/// Shorter lines cost more to begin with than to combine.
constexpr int64_t kShort = 512;

struct Partial;  ///< scratch: results of parts

/// What a number of T is in memory, as an integer.
template <class T>
using BitsOf =
    std::conditional_t<sizeof(T) == 1, uint8_t,
                       std::conditional_t<sizeof(T) == 2, uint16_t,
                                          std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>>;

/// Results of A that are rounded to how a tensor stores them.
template <class A, class S>
void store_as(const BitsOf<A>* from, void* to, int64_t n) {
  using C = typename ComputeOf<S>::type;
  for (int64_t i = 0; i < n; ++i)
    static_cast<S*>(to)[i] = S(static_cast<C>(std::bit_cast<A>(from[i])));
}

/// The kernels' folds of a tensor's elements from a place on. Half types are widened on the way,
/// some at a time, which stay in the first-level cache.
struct Folds {
  Combine how;
  DType stored;
  const char* elements;
  const WholeKernels& k = whole_kernels();
  const size_t item = item_size(stored);
  const bool half = is_floating(stored) && item < sizeof(float);
  const DType type = half ? DType::Float32 : stored;

  void line(int64_t at, int64_t n, void* acc) const {
    const char* const x = elements + static_cast<size_t>(at) * item;
    if (!half) return k.fold(how, type, x, static_cast<size_t>(n), acc);
    constexpr int64_t kBlock = 4096;
    alignas(64) float wide[kBlock];
    if (how == Combine::Sum && k.sum_halves(stored, reinterpret_cast<const uint16_t*>(x),
                                            static_cast<size_t>(n), static_cast<double*>(acc)))
      return;
    for (int64_t i = 0; i < n; i += kBlock) {
      const auto part = static_cast<size_t>(std::min(kBlock, n - i));
      tile_kernels().transpose.load(x + static_cast<size_t>(i) * item, stored, wide, part);
      k.fold(how, type, wide, part, acc);
    }
  }
  /// At most kColumns of each row.
  void rows(int64_t at, int64_t stride, int64_t rows, void* acc, int64_t n) const {
    const auto width = static_cast<size_t>(n);
    const char* const x = elements + at * static_cast<int64_t>(item);
    if (!half) return k.fold_rows(how, type, x, stride, static_cast<size_t>(rows), acc, width);
    constexpr int64_t kRows = 4;
    alignas(64) float wide[kRows * kColumns];
    for (int64_t r = 0; r < rows; r += kRows) {
      const int64_t group = std::min(kRows, rows - r);
      for (int64_t j = 0; j < group; ++j)
        tile_kernels().transpose.load(x + (r + j) * stride * static_cast<int64_t>(item), stored,
                                      wide + j * kColumns, width);
      k.fold_rows(how, type, wide, kColumns, static_cast<size_t>(group), acc, width);
    }
  }
};

/// A tensor reduced in the way that its shape asks for. A: the bits of what elements are combined
/// in, which only kernels read. `none` changes nothing; `stored` rounds so many of them.
template <class A>
class Reducing {
 public:
  Reducing(const Call& c, const Folds& folds, A none, void (*stored)(const A*, void*, int64_t),
           void* out)
      : folds_(folds),
        none_(none),
        stored_(stored),
        out_(static_cast<char*>(out)),
        item_(item_size(c.out.dtype)),
        work_(c.in[0].count) {
    Joined joined(c.in[0].dims, c.attributes);
    inner_ = joined.dims.back();
    joined.dims.pop_back();
    outer_dims_ = joined.dims.size();
    kept_ = joined.offsets(false), gone_ = joined.offsets(true);
    rows_ = static_cast<int64_t>(gone_.size()), places_ = static_cast<int64_t>(kept_.size());
  }

  void run() const {
    if (!inner_.gone) return columns();
    const bool short_ones =
        rows_ >= 8 && inner_.size < kShort && outer_dims_ == 2 && places_ * inner_.size < kPart * 8;
    short_ones ? short_lines() : lines();
  }

 private:
  void store(const A* from, int64_t at, int64_t n) const {
    stored_(from, out_ + static_cast<size_t>(at) * item_, n);
  }
  /// So many partial results side by side, combined: result o.
  void store_sum(const A* parts, int64_t count, int64_t o) const {
    A acc = none_;
    folds_.k.fold(folds_.how, wide_, parts, static_cast<size_t>(count), &acc);
    store(&acc, o, 1);
  }

  /// Short lines [rows][places][inner]: first the rows, as columns side by side.
  void short_lines() const {
    const int64_t n = places_ * inner_.size, strips = (n + kColumns - 1) / kColumns;
    A* const sums = gradcell::kept<A, Partial>(n);
    std::fill_n(sums, n, none_);
    split(strips, work_, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t first = n * i / strips, width = n * (i + 1) / strips - first;
        folds_.rows(first, n, rows_, &sums[static_cast<size_t>(first)], width);
      }
    });
    for (int64_t o = 0; o < places_; ++o) store_sum(&sums[o * inner_.size], inner_.size, o);
  }

  /// Lines of elements side by side. Long sums are cut: [places][rows][cuts] partial results.
  void lines() const {
    const int64_t cuts = places_ * rows_ >= 64 ? 1 : (inner_.size + kPart - 1) / kPart;
    const int64_t parts = rows_ * cuts;
    const bool many = places_ >= 64 || work_ < 2 * kPart;
    auto line = [&](int64_t place, int64_t part, A* acc) {
      const int64_t cut = part % cuts, first = inner_.size * cut / cuts;
      folds_.line(kept_[place] + gone_[part / cuts] + first, inner_.size * (cut + 1) / cuts - first,
                  acc);
    };
    if (many)
      return split(places_, work_, [&](int64_t begin, int64_t end) {
        for (int64_t o = begin; o < end; ++o) {
          A acc = none_;
          for (int64_t p = 0; p < parts; ++p) line(o, p, &acc);
          store(&acc, o, 1);
        }
      });
    A* const partial = gradcell::kept<A, Partial>(places_ * parts);
    std::fill_n(partial, places_ * parts, none_);
    split(places_ * parts, work_, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) line(i / parts, i % parts, &partial[i]);
    });
    for (int64_t o = 0; o < places_; ++o) store_sum(&partial[o * parts], parts, o);
  }

  /// [places][groups of rows][n].
  void columns() const {
    const int64_t n = inner_.size, blocks = (n + kColumns - 1) / kColumns;
    const int64_t groups =
        std::clamp<int64_t>(std::min(rows_ / 16, rows_ * n / kPart) / (places_ * blocks), 1, 16);
    A* const partial = gradcell::kept<A, Partial>(places_ * groups * n);
    const int64_t stride = rows_ > 1 ? gone_[1] - gone_[0] : n;
    bool even = true;  // reduced rows stand at equal distances
    for (int64_t r = 2; r < rows_ && even; ++r) even = gone_[r] - gone_[r - 1] == stride;
    split(places_ * groups * blocks, work_, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t block = i % blocks, group = i / blocks % groups, place = i / blocks / groups;
        const int64_t first = n * block / blocks, width = n * (block + 1) / blocks - first;
        const int64_t r0 = rows_ * group / groups, r1 = rows_ * (group + 1) / groups;
        A* acc = &partial[(place * groups + group) * n + first];
        std::fill_n(acc, width, none_);
        const int64_t from = kept_[place] + first;
        if (even)
          folds_.rows(from + gone_[r0], stride, r1 - r0, acc, width);
        else
          for (int64_t r = r0; r < r1; ++r) folds_.rows(from + gone_[r], 0, 1, acc, width);
        if (groups == 1) store(acc, place * n + first, width);
      }
    });
    for (int64_t o = 0; o < places_ && groups > 1; ++o) {
      A* const acc = &partial[o * groups * n];
      folds_.k.fold_rows(folds_.how, wide_, acc + n, n, static_cast<size_t>(groups - 1), acc,
                         static_cast<size_t>(n));
      store(acc, o * n, n);
    }
  }

  const Folds& folds_;
  const A none_;
  void (*const stored_)(const A*, void*, int64_t);
  char* const out_;
  const size_t item_;
  const int64_t work_;
  const DType wide_ = sizeof(A) == item_size(folds_.type) ? folds_.type
                      : is_floating(folds_.type)          ? DType::Float64
                                                          : DType::Int64;
  Joined::Dim inner_;
  size_t outer_dims_;
  std::vector<int64_t> kept_, gone_;  ///< where reduced lines begin, and their parts
  int64_t rows_, places_;
};

/// The places of the first extremes of [n][width], of rows `inner` apart, and the extremes: of more
/// rows than a kernel counts, one part after the other.
template <class T, class Place>
void extremes_of_columns(bool largest, DType type, const T* x, int64_t inner, int64_t n, T* top,
                         Place* out, int64_t width) {
  const WholeKernels& k = whole_kernels();
  constexpr int64_t kMost = int64_t(1) << 30;
  const auto columns = static_cast<size_t>(width);
  if constexpr (sizeof(Place) == sizeof(int32_t)) {
    k.first_extremes(largest, type, x, inner, static_cast<size_t>(n), top, out, columns);
  } else {
    T here[kColumns];
    int32_t at[kColumns];
    for (int64_t first = 0; first < n; first += kMost) {
      const auto rows = static_cast<size_t>(std::min(kMost, n - first));
      k.first_extremes(largest, type, x + first * inner, inner, rows, here, at, columns);
      for (int64_t j = 0; j < width; ++j) {
        const T v = here[j], t = top[j];
        if (first > 0 && !(largest ? v > t : v < t) && !(v != v && t == t)) continue;
        top[j] = v, out[j] = first + at[j];
      }
    }
  }
}

/// The places of the first extremes of [outer][n][inner].
template <class T, class Place>
void extremes(const Call& c, DType type, const T* x, Place* out) {
  const auto axis = static_cast<size_t>(c.attributes[0]);
  const Dims& dims = c.in[0].dims;
  const int64_t inner = product(dims, axis + 1, dims.size()), n = dims[axis];
  const WholeKernels& k = whole_kernels();
  const bool largest = c.combine == Combine::Max;
  const int64_t outer = c.out.count / inner;
  if (inner == 1) {
    const int64_t cuts = outer >= 16 ? 1 : (n + kPart - 1) / kPart;
    std::vector<int64_t> at(static_cast<size_t>(outer * cuts));
    split(outer * cuts, c.in[0].count, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t first = n * (i % cuts) / cuts, last = n * (i % cuts + 1) / cuts;
        at[i] = first + k.first_extreme(largest, type, x + i / cuts * n + first,
                                        static_cast<size_t>(last - first));
      }
    });
    for (int64_t o = 0; o < outer; ++o) {
      int64_t best = at[o * cuts];
      for (int64_t cut = 1; cut < cuts; ++cut) {
        const T v = x[o * n + at[o * cuts + cut]], top = x[o * n + best];
        if ((largest ? v > top : v < top) || (v != v && top == top)) best = at[o * cuts + cut];
      }
      out[o] = narrow<Place>(best);
    }
    return;
  }
  const int64_t blocks = (inner + kColumns - 1) / kColumns;
  split(outer * blocks, c.in[0].count, [&](int64_t begin, int64_t end) {
    T top[kColumns];
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = inner * (i % blocks) / blocks;
      const int64_t width = inner * (i % blocks + 1) / blocks - first;
      extremes_of_columns(largest, type, x + i / blocks * n * inner + first, inner, n, top,
                          out + i / blocks * inner + first, width);
    }
  });
}

}  // namespace

void reduce(const Call& c, const void* const* inputs, void* out) {
  const void* in = inputs[0];
  const Folds folds{c.combine, c.in[0].dtype, static_cast<const char*>(in)};
  by_dtype(c.out.dtype, [&]<class S>() {
    by_combine(c.combine, [&]<Combine how>() {
      using A = AccumulatorOf<how, typename ComputeOf<S>::type>;
      using Bits = BitsOf<A>;
      Reducing<Bits>(c, folds, std::bit_cast<Bits>(identity<how, A>()), store_as<A, S>, out).run();
    });
  });
}

void extremum(const Call& c, const void* const* inputs, void* out) {
  const void* in = inputs[0];
  auto find = [&](auto* to) {
    by_dtype(c.in[0].dtype, [&]<class S>() {
      if constexpr (kNarrowFloat<S>)
        extremes(c, DType::Float32, widened(c.in[0], in).data(), to);
      else
        extremes(c, c.in[0].dtype, static_cast<const S*>(in), to);
    });
  };
  c.out.dtype == DType::Int32 ? find(static_cast<int32_t*>(out)) : find(static_cast<int64_t*>(out));
}

}  // namespace gradcell::cpu
