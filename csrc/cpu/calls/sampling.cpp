// Weighted sums of elements at places that the channels share.
#include "ops/moving/sampling.h"

#include <algorithm>
#include <vector>

#include "cpu/calls/elements.h"
#include "cpu/kernels/whole_kernels.h"

namespace gradcell::cpu {

namespace {

/// Channels that go along a line of places together: they lie side by side in a copy, so that a
/// place is one access to memory, and its weight one multiplication.
constexpr int64_t kTogether = 4;
template <class T>
struct TogetherOf {
  typedef T type __attribute__((vector_size(kTogether * sizeof(T))));
};
template <class T>
using Together = typename TogetherOf<T>::type;

/// Results whose weights' gradients are summed up at a time.
constexpr int64_t kBlock = 256;

/// Lines of n elements, `count` of them (at most kTogether), side by side; zeros for those missing.
template <class T>
void join(const T* lines, int64_t n, int64_t count, Together<T>* to) {
  const T* line[kTogether];
  for (int64_t c = 0; c < kTogether; ++c) line[c] = lines + std::min(c, count - 1) * n;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t c = 0; c < kTogether; ++c) to[i][c] = line[c][i];
}
/// Elements side by side; or in their lines, where few of them are read.
template <class T>
struct SideBySide {
  const Together<T>* x;
  Together<T> operator()(int32_t at) const { return x[at]; }
};
template <class T>
struct Apart {
  const T* line[kTogether];
  Apart(const T* lines, int64_t n, int64_t count) {
    for (int64_t c = 0; c < kTogether; ++c) line[c] = lines + std::min(c, count - 1) * n;
  }
  Together<T> operator()(int32_t at) const {
    return Together<T>{line[0][at], line[1][at], line[2][at], line[3][at]};
  }
};
template <class T>
void part(const Together<T>* from, int64_t n, int64_t count, T* lines) {
  for (int64_t c = 0; c < count; ++c)
    for (int64_t i = 0; i < n; ++i) lines[c * n + i] = from[i][c];
}

/// An image's places, checked, and which results have one at a zero.
class Places {
 public:
  Places() = default;
  Places(const Call& c, const SampleSizes& s, const int32_t* at) : at_(at), n_(s.results) {
    const auto all = static_cast<size_t>(s.places * s.results);
    int32_t least = 0, most = -1;
    whole_kernels().fold(Combine::Min, DType::Int32, at, all, &least);
    whole_kernels().fold(Combine::Max, DType::Int32, at, all, &most);
    if (least < -1 || most >= s.size)
      fail(ErrorKind::Index, info(c.op).name, ": place ", least < -1 ? least : most,
           " is out of range for ", s.size, " elements");
    if (least == 0) return;
    std::vector<int32_t> any(at, at + n_);  // negative where one is
    for (int64_t k = 1; k < s.places; ++k)
      for (int64_t i = 0; i < n_; ++i) any[static_cast<size_t>(i)] |= at[k * n_ + i];
    for (int64_t i = 0; i < n_; ++i)
      if (any[static_cast<size_t>(i)] < 0) outside_.push_back(i);
  }
  const int32_t* line(int64_t k) const { return at_ + k * n_; }

  /// inside(i) for the results from first to behind with all places at elements, and outside(i)
  /// for the others.
  template <class In, class Out>
  void each(int64_t first, int64_t behind, In inside, Out outside) const {
    auto next = std::ranges::lower_bound(outside_, first);
    for (int64_t i = first; i < behind; ++i) {
      const int64_t end = next != outside_.end() ? std::min(*next, behind) : behind;
      for (; i < end; ++i) inside(i);
      if (i < behind) outside(i), ++next;
    }
  }

 private:
  const int32_t* at_ = nullptr;
  int64_t n_ = 0;
  std::vector<int64_t> outside_;
};

/// Four places, as of pixels around a point, are a loop that is written out.
template <class F>
void by_count(int64_t places, F f) {
  if (places == 4)
    f(std::integral_constant<int64_t, 4>());
  else
    f(std::integral_constant<int64_t, 0>());
}

/// The channels of an image that go together: of a tensor [batch, channels, n] the lines from
/// first() on.
struct Group {
  int64_t image, channel, count;
  int64_t row(const SampleSizes& s) const { return image * s.channels + channel; }
};
int64_t group_count(const SampleSizes& s) { return (s.channels + kTogether - 1) / kTogether; }
Group group_at(const SampleSizes& s, int64_t number) {
  const int64_t groups = group_count(s), channel = number % groups * kTogether;
  return {number / groups, channel, std::min(kTogether, s.channels - channel)};
}

/// y = sum over k of w[k] x[at[k]], for results from first to behind. K: how many places; 0: as
/// many as there are.
template <int64_t K, class X, class T>
void take_sums(const SampleSizes& s, const Places& p, const T* w, const X& x, int64_t count, T* y,
               int64_t first, int64_t behind) {
  const int64_t n = s.results, places = K > 0 ? K : s.places;
  auto take = [&](int64_t i, bool all) {
    Together<T> sum{};
    for (int64_t k = 0; k < places; ++k) {
      const int32_t at = p.line(k)[i];
      sum += w[k * n + i] * (all || at >= 0 ? x(at) : Together<T>{});
    }
    for (int64_t c = 0; c < count; ++c) y[c * n + i] = sum[c];
  };
  auto whole = [&](int64_t i) {  // without a loop over the channels
    Together<T> sum{};
    for (int64_t k = 0; k < places; ++k) sum += w[k * n + i] * x(p.line(k)[i]);
    y[i] = sum[0], y[n + i] = sum[1], y[2 * n + i] = sum[2], y[3 * n + i] = sum[3];
  };
  static_assert(kTogether == 4);
  auto some = [&](int64_t i) { take(i, false); };
  if (count == kTogether)
    p.each(first, behind, whole, some);
  else
    p.each(first, behind, [&](int64_t i) { take(i, true); }, some);
}

/// x[at[k]] += w[k] y.
template <int64_t K, class T>
void add_up(const SampleSizes& s, const Places& p, const T* w, const Together<T>* y,
            Together<T>* x) {
  const int64_t n = s.results, places = K > 0 ? K : s.places;
  auto add = [&](int64_t i, bool all) {
    for (int64_t k = 0; k < places; ++k)
      if (const int32_t at = p.line(k)[i]; all || at >= 0) x[at] += w[k * n + i] * y[i];
  };
  p.each(0, n, [&](int64_t i) { add(i, true); }, [&](int64_t i) { add(i, false); });
}

/// sums[k][i - first] += x[at[k]] y for results from first to behind.
template <int64_t K, class X, class T>
void add_dots(const SampleSizes& s, const Places& p, const X& x, const T* y, int64_t count,
              Together<T>* sums, int64_t first, int64_t behind) {
  const int64_t n = s.results, places = K > 0 ? K : s.places;
  auto add = [&](int64_t i, bool all) {
    Together<T> own{};
    for (int64_t c = 0; c < count; ++c) own[c] = y[c * n + i];
    for (int64_t k = 0; k < places; ++k) {
      const int32_t at = p.line(k)[i];
      sums[k * kBlock + i - first] += (all || at >= 0 ? x(at) : Together<T>{}) * own;
    }
  };
  p.each(first, behind, [&](int64_t i) { add(i, true); }, [&](int64_t i) { add(i, false); });
}

/// All of it, in the type that is computed in.
template <class T>
class Run {
 public:
  using V = Together<T>;
  Run(const Call& c, const SampleSizes& s, const T* first, const int32_t* at, const T* last, T* out)
      : s_(s),
        lines_(s.places * s.results),
        work_(s.batch * s.channels * lines_),
        pieces_(pieces_of(s.batch * group_count(s))),
        places_(static_cast<size_t>(s.batch)),
        first_(first),
        last_(last),
        out_(out) {
    split(s.batch, work_, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) places(b) = Places(c, s, at + b * lines_);
    });
  }

  void results() {
    split(units(), work_, [&](int64_t begin, int64_t end) {
      std::vector<V> joined;
      for (int64_t i = begin; i < end; ++i) {
        const Group g = group_at(s_, i / pieces_);
        with_elements(g, joined, i == begin || i % pieces_ == 0, [&](const auto& x) {
          by_count(s_.places, [&](auto k) {
            take_sums<k.value>(s_, places(g.image), last_ + g.image * lines_, x, g.count,
                               out_ + g.row(s_) * s_.results, s_.results * (i % pieces_) / pieces_,
                               s_.results * (i % pieces_ + 1) / pieces_);
          });
        });
      }
    });
  }

  void sources() {
    split(s_.batch * group_count(s_), work_, [&](int64_t begin, int64_t end) {
      std::vector<V> x(static_cast<size_t>(s_.size)), y(static_cast<size_t>(s_.results));
      for (int64_t i = begin; i < end; ++i) {
        const Group g = group_at(s_, i);
        join(first_ + g.row(s_) * s_.results, s_.results, g.count, y.data());
        std::ranges::fill(x, V{});
        by_count(s_.places, [&](auto k) {
          add_up<k.value>(s_, places(g.image), last_ + g.image * lines_, y.data(), x.data());
        });
        part(x.data(), s_.size, g.count, out_ + g.row(s_) * s_.size);
      }
    });
  }

  void weights() {
    const int64_t pieces = pieces_of(s_.batch);
    split(s_.batch * pieces, work_, [&](int64_t begin, int64_t end) {
      std::vector<V> joined, sums(static_cast<size_t>(s_.places * kBlock));
      std::vector<double> total;
      for (int64_t i = begin; i < end; ++i) {
        const int64_t b = i / pieces, first = s_.results * (i % pieces) / pieces;
        const int64_t behind = s_.results * (i % pieces + 1) / pieces;
        total.assign(static_cast<size_t>(s_.places * (behind - first)), 0.0);
        for (int64_t g = 0; g < group_count(s_); ++g)
          with_elements(group_at(s_, b * group_count(s_) + g), joined, true, [&](const auto& x) {
            add_weights(b * group_count(s_) + g, x, first, behind, sums.data(), total.data());
          });
        for (int64_t k = 0; k < s_.places; ++k)
          for (int64_t r = first; r < behind; ++r)
            out_[b * lines_ + k * s_.results + r] =
                static_cast<T>(total[static_cast<size_t>(k * (behind - first) + r - first)]);
      }
    });
  }

 private:
  Places& places(int64_t image) { return places_[static_cast<size_t>(image)]; }

  /// So few pieces of work are cut into parts of the results.
  int64_t pieces_of(int64_t n) const {
    return std::clamp<int64_t>(8 / std::max<int64_t>(n, 1), 1,
                               std::max<int64_t>(s_.results / kBlock, 1));
  }
  int64_t units() const { return s_.batch * group_count(s_) * pieces_; }

  /// f(what reads x's elements for a group of channels), which are joined anew if `next`.
  template <class F>
  void with_elements(const Group& g, std::vector<V>& joined, bool next, F f) const {
    const T* lines = first_ + g.row(s_) * s_.size;
    if (2 * lines_ < s_.size) return f(Apart<T>(lines, s_.size, g.count));
    joined.resize(static_cast<size_t>(s_.size));
    if (next) join(lines, s_.size, g.count, joined.data());
    f(SideBySide<T>{joined.data()});
  }

  /// What a group of channels adds to the gradients of its image's weights, block by block.
  template <class X>
  void add_weights(int64_t number, const X& x, int64_t first, int64_t behind, V* sums,
                   double* total) {
    const Group g = group_at(s_, number);
    for (int64_t from = first; from < behind; from += kBlock) {
      const int64_t end = std::min(from + kBlock, behind);
      std::fill_n(sums, s_.places * kBlock, V{});
      by_count(s_.places, [&](auto k) {
        add_dots<k.value>(s_, places(g.image), x, last_ + g.row(s_) * s_.results, g.count, sums,
                          from, end);
      });
      for (int64_t k = 0; k < s_.places; ++k)
        for (int64_t i = from; i < end; ++i) {
          const V& sum = sums[k * kBlock + i - from];
          total[k * (behind - first) + i - first] +=
              static_cast<double>((sum[0] + sum[1]) + (sum[2] + sum[3]));
        }
    }
  }

  const SampleSizes& s_;
  const int64_t lines_, work_, pieces_;
  std::vector<Places> places_;
  const T *first_, *last_;
  T* const out_;
};

template <class T>
void run(const Call& c, const SampleSizes& s, const void* first, const int32_t* at,
         const void* last, void* out) {
  Run<T> r(c, s, static_cast<const T*>(first), at, static_cast<const T*>(last),
           static_cast<T*>(out));
  switch (sample_part(c.op)) {
    case SamplePart::Result:
      return r.results();
    case SamplePart::Source:
      return r.sources();
    case SamplePart::Weight:
      return r.weights();
  }
}

}  // namespace

void sample(const Call& c, const void* const* in, void* out) {
  const SampleSizes s = sample_sizes(c.op, c.in[0].dims, c.in[1].dims, c.out.dims);
  const auto* at = static_cast<const int32_t*>(in[1]);
  if (c.out.dtype == DType::Float64) return run<double>(c, s, in[0], at, in[2], out);
  if (c.out.dtype == DType::Float32) return run<float>(c, s, in[0], at, in[2], out);
  const std::vector<float> first = widened(c.in[0], in[0]), last = widened(c.in[2], in[2]);
  std::vector<float> wide(static_cast<size_t>(c.out.count));
  run<float>(c, s, first.data(), at, last.data(), wide.data());
  by_dtype(c.out.dtype, [&]<class S>() {
    for (size_t i = 0; i < wide.size(); ++i) static_cast<S*>(out)[i] = S(wide[i]);
  });
}

}  // namespace gradcell::cpu
