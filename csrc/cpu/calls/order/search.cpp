// Where elements belong: places in lines, membership, counts in intervals, draws by weights, the
// best of segments.
#include <cmath>
#include <limits>
#include <vector>

#include "base/counted.h"
#include "cpu/calls/calls.h"
#include "cpu/calls/order/order_keys.h"
#include "cpu/calls/routines.h"
#include "cpu/calls/wide.h"
#include "ir/attributes.h"
#include "ops/moving/order.h"

namespace gradcell::cpu {

namespace {

/// f(problem) for all leading dimensions, which the last `rank` of x's do not count among.
template <class F>
void each_of(const TensorDesc& x, size_t rank, double operations, F f) {
  each_problem(product(x.dims, 0, x.dims.size() - rank), operations, f);
}

/// How many of n keys in ascending order come before k; right: or are equal to it.
template <class K>
int64_t place_of(const K* line, int64_t n, K k, bool right) {
  if (n == 0) return 0;
  auto before = [=](K key) { return static_cast<int64_t>(right ? key <= k : key < k); };
  const K* at = line;  // as many steps for each k, and no branch to be foretold
  for (int64_t rest = n, half; rest > 1; rest -= half) {
    half = rest / 2;
    at += half & -before(at[half - 1]);
  }
  return at - line + before(*at);
}

}  // namespace

void search(const Call& c, const void* const* in, void* out) {
  const bool right = decode<LineAttributes>(c.attributes).right;
  const int64_t n = c.in[0].dims.back(), m = c.in[1].dims.back();
  by_wide_dtype(c.in[0].dtype, [&]<class T>() {
    using K = decltype(key_of(T()));
    const Wide<T> lines(c.in[0].dtype, in[0], c.in[0].count);
    const Wide<T> wanted(c.in[0].dtype, in[1], c.in[1].count);
    const T *const line = lines.data(), *const x = wanted.data();
    each_of(c.in[0], 1, 8.0 * static_cast<double>(m), [&](int64_t r) {
      std::vector<K> keys(static_cast<size_t>(n));
      for (int64_t i = 0; i < n; ++i) keys[static_cast<size_t>(i)] = key_of(line[r * n + i]);
      auto* to = static_cast<int32_t*>(out) + r * m;
      by_parts(m, 8, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          to[i] = known<int32_t>(place_of(keys.data(), n, key_of(x[r * m + i]), right));
      });
    });
  });
}

namespace {

/// Whether each of n elements is among m others, none of which is NaN's.
template <class T>
void find_among(const T* x, int64_t n, const T* tests, int64_t m, uint8_t* to) {
  using K = decltype(key_of(*x));
  std::vector<K> keys;
  for (int64_t i = 0; i < m; ++i)
    if (!is_nan(tests[i])) keys.push_back(key_of(tests[i]));
  std::sort(keys.begin(), keys.end());
  constexpr bool whole = !std::is_floating_point_v<T>;
  const K low = keys.empty() ? K(0) : keys.front();
  const K width = keys.empty() ? K(0) : static_cast<K>(keys.back() - low);
  if (whole && !keys.empty() && width < static_cast<K>(std::min<int64_t>(4 * m + 1024, 1 << 24))) {
    std::vector<uint8_t> table(static_cast<size_t>(width) + 1, 0);
    for (K k : keys) table[static_cast<size_t>(k - low)] = 1;
    return by_parts(n, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const K at = static_cast<K>(key_of(x[i]) - low);
        to[i] = at <= width ? table[static_cast<size_t>(at)] : uint8_t{0};
      }
    });
  }
  const auto count = static_cast<int64_t>(keys.size());
  by_parts(n, 8, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const K k = key_of(x[i]);
      const int64_t at = place_of(keys.data(), count, k, false);
      to[i] = at != count && keys[static_cast<size_t>(at)] == k;
    }
  });
}

void among(const Call& c, const void* const* in, void* out) {
  const int64_t n = c.in[0].dims.back(), m = c.in[1].dims.back();
  by_wide_dtype(c.in[0].dtype, [&]<class T>() {
    const Wide<T> elements(c.in[0].dtype, in[0], c.in[0].count);
    const Wide<T> others(c.in[0].dtype, in[1], c.in[1].count);
    const T *const x = elements.data(), *const tests = others.data();
    each_of(c.in[0], 1, 8.0 * static_cast<double>(n + m), [&](int64_t r) {
      find_among(x + r * n, n, tests + r * m, m, static_cast<uint8_t*>(out) + r * n);
    });
  });
}

void count_between(const Call& c, const void* const* in, void* out) {
  const int64_t n = c.in[0].dims.back(), bins = c.in[1].dims.back() - 1;
  by_wide_dtype(c.in[0].dtype, [&]<class T>() {
    const Wide<T> elements(c.in[0].dtype, in[0], c.in[0].count);
    const T* const x = elements.data();
    each_of(c.in[0], 1, 4.0 * static_cast<double>(n), [&](int64_t r) {
      const double* edge = static_cast<const double*>(in[1]) + r * (bins + 1);
      const auto* from = x + r * n;
      const double low = edge[0], high = edge[bins];
      require(std::isfinite(low) && std::isfinite(high) && low <= high, ErrorKind::Value,
              broken(IntegerLimit::Edges), ", got ", low, " to ", high);
      const double scale = static_cast<double>(bins) / (high - low);
      auto count = [&](int64_t begin, int64_t end, int64_t* table) {
        for (int64_t i = begin; i < end; ++i) {
          const auto v = static_cast<double>(from[i]);
          if (!(v >= low && v <= high)) continue;
          // Edges may coincide, or be as far apart as no number is: then this is none, or infinite.
          int64_t at = v < high ? place_among((v - low) * scale, bins) : bins - 1;
          while (at > 0 && v < edge[at]) --at;  // the guess rounds, the edges decide
          while (at + 1 < bins && v >= edge[at + 1]) ++at;
          ++table[at];
        }
      };
      std::ranges::copy(counted(n, bins, count), static_cast<int64_t*>(out) + r * bins);
    });
  });
}

void draw_by_weights(const Call& c, const void* const* in, void* out) {
  const int64_t n = c.in[0].dims.back(), k = c.in[1].dims.back();
  each_of(c.in[0], 1, static_cast<double>(n + 16 * k), [&](int64_t r) {
    const float* const w = static_cast<const float*>(in[0]) + r * n;
    const float* const u = static_cast<const float*>(in[1]) + r * k;
    auto* const to = static_cast<int32_t*>(out) + r * k;
    std::vector<double> sums(static_cast<size_t>(n));
    double sum = 0;
    bool negative = false;
    for (int64_t i = 0; i < n; ++i) {
      negative |= w[i] < 0;
      sums[static_cast<size_t>(i)] = sum += double(w[i]);
    }
    require(!negative && std::isfinite(sum) && sum > 0, ErrorKind::Value,
            broken(IntegerLimit::Weights));
    for (int64_t j = 0; j < k; ++j) {
      // What rounding leaves at the end goes to the last weight that is not zero.
      const double wanted = std::min(double(u[j]) * sum, std::nextafter(sum, 0.0));
      const auto it = std::upper_bound(sums.begin(), sums.end(), wanted);
      to[j] = known<int32_t>(it - sums.begin());
    }
  });
}

/// The best rows of segments, for columns `first` to `last` of m: their places, or the elements
/// there and `none` for segments without rows; one of `to` and `values` is null.
template <class T>
void best_of_segments(const T* from, bool largest, const std::vector<int64_t>& segment, int64_t m,
                      int64_t count, int64_t first, int64_t last, int32_t* to, T* values, T none) {
  const int64_t width = last - first;
  std::vector<uint8_t> seen(static_cast<size_t>(count), 0);
  std::vector<T> best(static_cast<size_t>(count * width), none);
  std::vector<int64_t> at(static_cast<size_t>(count * width), -1);
  for (int64_t i = 0; i < static_cast<int64_t>(segment.size()); ++i) {
    const int64_t s = segment[static_cast<size_t>(i)];
    if (s < 0) continue;
    T* const top = best.data() + s * width;
    int64_t* const row = at.data() + s * width;
    const T* const x = from + i * m + first;
    if (!std::exchange(seen[static_cast<size_t>(s)], uint8_t{1})) {
      std::copy_n(x, width, top);
      std::fill_n(row, width, i);
      continue;
    }
    whole_kernels().exceed(largest, kWideType<T>, x, i, top, row, static_cast<size_t>(width));
  }
  for (int64_t s = 0; s < count; ++s)
    if (values)
      std::copy_n(best.data() + s * width, width, values + s * m + first);
    else
      std::transform(at.data() + s * width, at.data() + (s + 1) * width, to + s * m + first,
                     [](int64_t i) { return known<int32_t>(i); });
}

void segment_best(const Call& c, const void* const* in, void* out) {
  const auto a = decode<SegmentAttributes>(c.attributes);
  const int64_t n = c.in[1].dims.back(), m = c.in[0].dims.back(), count = a.count;
  constexpr int64_t kStrip = 128;
  const int64_t strips = (m + kStrip - 1) / kStrip;
  const DType dtype = c.in[0].dtype;
  by_wide_dtype(dtype, [&]<class T>() {
    const Wide<T> elements(dtype, in[0], c.in[0].count);
    const T none = a.values ? end_of<T>(dtype, a.largest) : T(0);
    // Of places, which are int32, nothing is narrowed.
    const WideResults<T> best(a.values ? dtype : kWideType<T>, out, c.out.count);
    T* const values = a.values ? best.data() : nullptr;
    each_of(c.in[1], 1, static_cast<double>(n * m), [&](int64_t r) {
      std::vector<int64_t> segment(static_cast<size_t>(n));
      with_positions(c.in[1].dtype, in[1], [&](const auto* id) {
        for (int64_t i = 0; i < n; ++i) {
          const int64_t s = segment[static_cast<size_t>(i)] = id[r * n + i];
          require(s < count, ErrorKind::Index, "segment id ", s, " is out of range for ", count,
                  " segments");
        }
      });
      auto* const to = values ? nullptr : static_cast<int32_t*>(out) + r * count * m;
      by_parts(strips, (n + count) * std::min(m, kStrip), [&](int64_t begin, int64_t end) {
        for (int64_t s = begin; s < end; ++s)
          best_of_segments(elements.data() + r * n * m, a.largest, segment, m, count, s * kStrip,
                           std::min(m, (s + 1) * kStrip), to,
                           values ? values + r * count * m : nullptr, none);
      });
    });
    best.finish();
  });
}

constexpr RoutineRow kSearches[] = {
    {Op::Among, among},
    {Op::CountBetween, count_between},
    {Op::DrawByWeights, draw_by_weights},
    {Op::SegmentBest, segment_best},
};

}  // namespace

std::span<const RoutineRow> searches() { return kSearches; }

}  // namespace gradcell::cpu
