// Slices read and written at indices.
#include <cstring>
#include <vector>

#include "cpu/calls/elements.h"
#include "cpu/calls/wide.h"
#include "cpu/kernels/whole_kernels.h"
#include "ops/moving/index.h"

namespace gradcell::cpu {

namespace {

/// The indices of a call, checked and counted from the front as they are read.
template <class I>
class Indices {
 public:
  Indices(const Call& c, const void* p, int64_t size)
      : p_(static_cast<const I*>(p)),
        size_(size),
        least_(are_labels(c.op) ? 0 : -size),
        op_(c.op) {}
  int64_t operator[](int64_t i) const {
    const auto at = static_cast<int64_t>(p_[i]);
    if (at < least_ || at >= size_) [[unlikely]]
      wrong(at);
    return at < 0 ? at + size_ : at;
  }

  /// f(i, how far from low) of the indices i < n of places from low on, `count` of them.
  template <class F>
  void each_of(int64_t n, int64_t low, int64_t count, F f) const {
    if (size_ > INT32_MAX) {  // the kernel's places have 32 bits
      for (int64_t i = 0; i < n; ++i)
        if (const int64_t at = (*this)[i] - low; at >= 0 && at < count) f(i, at);
      return;
    }
    constexpr int64_t kBlock = 512;
    constexpr DType kType = sizeof(I) == 4 ? DType::Int32 : DType::Int64;
    int32_t found[kBlock + 16], place[kBlock + 16];
    for (int64_t first = 0; first < n; first += kBlock) {
      const int64_t here = std::min(kBlock, n - first);
      const int64_t hits = whole_kernels().select(kType, p_ + first, static_cast<size_t>(here),
                                                  size_, low, count, found, place);
      if (hits < 0) [[unlikely]]
        for (int64_t i = first; i < first + here; ++i) (void)(*this)[i];
      for (int64_t k = 0; k < hits; ++k) f(first + found[k], place[k]);
    }
  }

 private:
  [[noreturn, gnu::cold, gnu::noinline]] void wrong(int64_t at) const {
    if (are_labels(op_))
      fail(ErrorKind::Index, "the label ", at, " is none of the ", size_, " classes, 0 to ",
           size_ - 1);
    // Only writes at indices record a LastWriter, whose name tells their users nothing.
    fail(ErrorKind::Index, op_ == Op::LastWriter ? "write" : info(op_).name, ": index ", at,
         " is out of range for an axis of size ", size_);
  }
  const I* p_;
  int64_t size_, least_;
  Op op_;
};

/// f(indices) of the type that they have.
template <class F>
void with_indices(const Call& c, const TensorDesc& desc, const void* p, int64_t size, F f) {
  if (desc.dtype == DType::Int32)
    f(Indices<int32_t>(c, p, size));
  else
    f(Indices<int64_t>(c, p, size));
}

/// So many bytes, as a rule few: a call of memcpy would take longer.
inline void copy_slice(const char* from, char* to, size_t bytes) {
  constexpr size_t kStep = 16, kLong = 256;
  if (bytes < kStep || bytes > kLong) return std::memcpy(to, from, bytes), void();
  for (size_t at = 0; at + kStep < bytes; at += kStep) std::memcpy(to + at, from + at, kStep);
  std::memcpy(to + bytes - kStep, from + bytes - kStep, kStep);
}

/// Elements that are picked are as much work as so many that come one after the other.
constexpr int64_t kPicked = 3;

/// dst[i] = src[at[i]], elements of S.
template <class S, class At>
void pick(const S* src, S* dst, const At& at, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) dst[i] = src[at[i]];
}

}  // namespace

void take(const Call& c, const void* const* in, void* out) {
  const auto axis = static_cast<size_t>(c.attributes[0]);
  const Dims& dims = c.in[0].dims;
  const int64_t outer = product(dims, 0, axis), n = dims[axis], m = c.in[1].count;
  const int64_t inner = product(dims, axis + 1, dims.size());
  const size_t item = item_size(c.out.dtype), bytes = static_cast<size_t>(inner) * item;
  with_indices(c, c.in[1], in[1], n, [&](const auto& at) {
    if (inner == 1) {
      return by_size(item, [&]<class S>() {
        const auto* src = static_cast<const S*>(in[0]);
        auto* dst = static_cast<S*>(out);
        if (outer == 1)
          return split(m, m * kPicked,
                       [&](int64_t begin, int64_t end) { pick(src, dst, at, begin, end); });
        std::vector<int32_t> near(static_cast<size_t>(n <= INT32_MAX ? m : 0));
        for (size_t i = 0; i < near.size(); ++i) near[i] = known<int32_t>(at[int64_t(i)]);
        split(outer, c.out.count * kPicked, [&](int64_t begin, int64_t end) {
          for (int64_t o = begin; o < end; ++o) {
            if (near.empty())
              pick(src + o * n, dst + o * m, at, 0, m);
            else
              pick(src + o * n, dst + o * m, near.data(), 0, m);
          }
        });
      });
    }
    auto* src = static_cast<const char*>(in[0]);
    auto* dst = static_cast<char*>(out);
    split(outer * m, c.out.count, [&](int64_t begin, int64_t end) {
      int64_t o = begin / m, k = begin % m;
      for (int64_t i = begin; i < end; ++i) {
        copy_slice(src + static_cast<size_t>(o * n + at[k]) * bytes,
                   dst + static_cast<size_t>(i) * bytes, bytes);
        if (++k == m) ++o, k = 0;
      }
    });
  });
}

namespace {

/// How many parts of the places a scatter's threads take each for themselves: a part goes through
/// all indices, which pays where there are many places to be written.
int64_t parts_of(int64_t updates) {
  return updates < (1 << 16) ? 1 : std::min<int64_t>(max_threads(), 4);
}

/// Adds updates [m] to sums at places from place0 to place1.
template <class T, class At>
void add_some(const T* x, T* sums, int64_t m, const At& at, int64_t place0, int64_t place1) {
  at.each_of(m, place0, place1 - place0,
             [&](int64_t i, int64_t place) { sums[place0 + place] += x[i]; });
}

/// Adds updates [outer][m][inner] to sums [outer][n][inner], each place's in order.
template <class T, class At>
void add_up(const T* x, T* sums, int64_t outer, int64_t n, int64_t m, int64_t inner, const At& at) {
  auto add = [&](int64_t o, int64_t j0, int64_t j1, int64_t place0, int64_t place1) {
    for (int64_t i = 0; i < m; ++i) {
      const int64_t place = at[i];
      if (place < place0 || place >= place1) continue;
      const T* from = x + (o * m + i) * inner;
      T* to = sums + (o * n + place) * inner;
      for (int64_t j = j0; j < j1; ++j) to[j] += from[j];
    }
  };
  const int64_t work = outer * m * inner;
  if (inner == 1 && outer >= 2 * max_threads() && n <= INT32_MAX) {
    std::vector<int32_t> near(static_cast<size_t>(m));
    for (int64_t i = 0; i < m; ++i) near[static_cast<size_t>(i)] = known<int32_t>(at[i]);
    return split(outer, work, [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; ++o) {
        const T* from = x + o * m;
        T* to = sums + o * n;
        for (const int32_t place : near) to[place] += *from++;
      }
    });
  }
  if (outer >= 2 * max_threads())
    return split(outer, work, [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; ++o) add(o, 0, inner, 0, n);
    });
  if (inner >= 32)  // columns
    return split(outer * (inner / 16), work, [&](int64_t begin, int64_t end) {
      const int64_t strips = inner / 16;
      for (int64_t i = begin; i < end;) {
        const int64_t o = i / strips, first = i % strips;
        const int64_t last = std::min(strips, first + end - i);
        add(o, first * 16, last == strips ? inner : last * 16, 0, n);
        i += last - first;
      }
    });
  const int64_t parts = parts_of(m);
  if (inner == 1 && outer == 1 && parts == 1) {
    for (int64_t i = 0; i < m; ++i) sums[at[i]] += x[i];
    return;
  }
  if (inner == 1 && outer == 1 && parts > 1 && n <= INT32_MAX)
    return split(parts, work, [&](int64_t begin, int64_t end) {
      add_some(x, sums, m, at, n * begin / parts, n * end / parts);
    });
  split(outer * parts, work, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      add(i / parts, 0, inner, n * (i % parts) / parts, n * (i % parts + 1) / parts);
  });
}

}  // namespace

void scatter(const Call& c, const void* const* in, void* out) {
  const auto axis = static_cast<size_t>(c.attributes[0]);
  const Dims& dims = c.out.dims;
  const int64_t outer = product(dims, 0, axis), n = dims[axis];
  const int64_t inner = product(dims, axis + 1, dims.size()), m = c.in[0].count;
  const DType t = as_signed(c.out.dtype);  // (sums wrap alike with signs and without)
  by_wide_dtype(t, [&]<class T>() {
    if constexpr (!std::is_same_v<T, uint64_t>) {
      const Wide<T> x(t, in[1], c.in[1].count);
      const WideResults<T> sums(t, out, c.out.count);
      split(c.out.count, c.out.count, [&](int64_t begin, int64_t end) {
        std::fill(sums.data() + begin, sums.data() + end, T(0));
      });
      with_indices(c, c.in[0], in[0], n,
                   [&](const auto& at) { add_up(x.data(), sums.data(), outer, n, m, inner, at); });
      sums.finish();
    }
  });
}

void last_index(const Call& c, const void* const* in, void* out) {
  const int64_t n = c.out.count, m = c.in[0].count, parts = parts_of(m);
  auto run = [&]<class W>(W* writer) {
    with_indices(c, c.in[0], in[0], n, [&](const auto& at) {
      split(parts, n + m, [&](int64_t begin, int64_t end) {
        const int64_t first = n * begin / parts, last = n * end / parts;
        std::fill(writer + first, writer + last, W(-1));
        if (parts > 1 && n <= INT32_MAX)
          return at.each_of(m, first, last - first, [&](int64_t i, int64_t place) {
            writer[first + place] = static_cast<W>(i);
          });
        for (int64_t i = 0; i < m; ++i) {
          const int64_t place = at[i];
          if (place >= first && place < last) writer[place] = static_cast<W>(i);
        }
      });
    });
  };
  if (c.out.dtype == DType::Int32)
    run(static_cast<int32_t*>(out));
  else
    run(static_cast<int64_t*>(out));
}

}  // namespace gradcell::cpu
