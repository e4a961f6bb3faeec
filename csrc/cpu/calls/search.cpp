// Where elements belong: places in lines, membership, counts in intervals, draws by weights, the
// best of segments.
#include <cmath>
#include <vector>

#include "cpu/calls/order_keys.h"
#include "cpu/calls/routines.h"
#include "cpu/kernels/whole_kernels.h"
#include "ir/attributes.h"
#include "ops/order.h"

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
  const K* at = line;  // halves the rest, with no branch to be foretold
  for (int64_t rest = n; rest > 0;) {
    const int64_t half = rest / 2;
    const bool on = right ? at[half] <= k : at[half] < k;
    at = on ? at + half + 1 : at;
    rest = on ? rest - half - 1 : half;
  }
  return at - line;
}

void place_in_line(const Call& c, const void* const* in, void* out) {
  const bool right = decode<LineAttributes>(c.attributes).right;
  const int64_t n = c.in[0].dims.back(), m = c.in[1].dims.back();
  with_numbers(c.in[0].dtype, in[0], [&](const auto* line, auto number) {
    using K = decltype(key_of(number(*line)));
    const auto* x = static_cast<decltype(line)>(in[1]);
    each_of(c.in[0], 1, 8.0 * static_cast<double>(m), [&](int64_t r) {
      std::vector<K> keys(static_cast<size_t>(n));
      for (int64_t i = 0; i < n; ++i)
        keys[static_cast<size_t>(i)] = key_of(number(line[r * n + i]));
      auto* to = static_cast<int32_t*>(out) + r * m;
      by_parts(m, 8, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          to[i] =
              static_cast<int32_t>(place_of(keys.data(), n, key_of(number(x[r * m + i])), right));
      });
    });
  });
}

/// Whether each of n elements is among m others, none of which is NaN's.
template <class S, class Number>
void find_among(const S* x, int64_t n, const S* tests, int64_t m, Number number, uint8_t* to) {
  using K = decltype(key_of(number(*x)));
  std::vector<K> keys;
  for (int64_t i = 0; i < m; ++i)
    if (!is_nan(number(tests[i]))) keys.push_back(key_of(number(tests[i])));
  std::sort(keys.begin(), keys.end());
  constexpr bool whole = !std::is_floating_point_v<decltype(number(*x))>;
  const K low = keys.empty() ? K(0) : keys.front();
  const K width = keys.empty() ? K(0) : static_cast<K>(keys.back() - low);
  if (whole && !keys.empty() && width < static_cast<K>(std::min<int64_t>(4 * m + 1024, 1 << 24))) {
    std::vector<uint8_t> table(static_cast<size_t>(width) + 1, 0);
    for (K k : keys) table[static_cast<size_t>(k - low)] = 1;
    return by_parts(n, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const K at = static_cast<K>(key_of(number(x[i])) - low);
        to[i] = at <= width ? table[static_cast<size_t>(at)] : uint8_t(0);
      }
    });
  }
  const auto count = static_cast<int64_t>(keys.size());
  by_parts(n, 8, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const K k = key_of(number(x[i]));
      const int64_t at = place_of(keys.data(), count, k, false);
      to[i] = at != count && keys[static_cast<size_t>(at)] == k;
    }
  });
}

void among(const Call& c, const void* const* in, void* out) {
  const int64_t n = c.in[0].dims.back(), m = c.in[1].dims.back();
  with_numbers(c.in[0].dtype, in[0], [&](const auto* x, auto number) {
    const auto* tests = static_cast<decltype(x)>(in[1]);
    each_of(c.in[0], 1, 8.0 * static_cast<double>(n + m), [&](int64_t r) {
      find_among(x + r * n, n, tests + r * m, m, number, static_cast<uint8_t*>(out) + r * n);
    });
  });
}

/// Counts of [0, length) in tables of a thread each, added up. count(begin, end, table).
template <class F>
void counted(int64_t n, int64_t length, F count, int64_t* to) {
  const int64_t parts =
      length > (1 << 16) ? 1 : std::clamp<int64_t>(n / 32768, 1, 4 * max_threads());
  std::vector<std::vector<int64_t>> tables(static_cast<size_t>(parts));
  parallel_for(static_cast<int>(parts), [&](int part, int) {
    auto& table = tables[static_cast<size_t>(part)];
    table.assign(static_cast<size_t>(length), 0);
    count(n * part / parts, n * (part + 1) / parts, table.data());
  });
  std::copy(tables[0].begin(), tables[0].end(), to);
  for (size_t part = 1; part < tables.size(); ++part)
    for (size_t k = 0; k < tables[0].size(); ++k) to[k] += tables[part][k];
}

void count_between(const Call& c, const void* const* in, void* out) {
  const int64_t n = c.in[0].dims.back(), bins = c.in[1].dims.back() - 1;
  with_numbers(c.in[0].dtype, in[0], [&](const auto* x, auto number) {
    each_of(c.in[0], 1, 4.0 * static_cast<double>(n), [&](int64_t r) {
      const double* edge = static_cast<const double*>(in[1]) + r * (bins + 1);
      const auto* from = x + r * n;
      const double low = edge[0], high = edge[bins];
      require(std::isfinite(low) && std::isfinite(high) && low <= high, ErrorKind::Value,
              "histogram: the edges must be finite and in ascending order, got ", low, " to ",
              high);
      const double scale = static_cast<double>(bins) / (high - low);
      auto count = [&](int64_t begin, int64_t end, int64_t* table) {
        for (int64_t i = begin; i < end; ++i) {
          const auto v = static_cast<double>(number(from[i]));
          if (!(v >= low && v <= high)) continue;
          auto at = std::min(static_cast<int64_t>((v - low) * scale), bins - 1);
          while (at > 0 && v < edge[at]) --at;  // the guess rounds, the edges decide
          while (at + 1 < bins && v >= edge[at + 1]) ++at;
          ++table[at];
        }
      };
      counted(n, bins, count, static_cast<int64_t*>(out) + r * bins);
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
            "multinomial: weights must be finite, not negative and not all zero");
    for (int64_t j = 0; j < k; ++j) {
      // What rounding leaves at the end goes to the last weight that is not zero.
      const double wanted = std::min(double(u[j]) * sum, std::nextafter(sum, 0.0));
      const auto it = std::upper_bound(sums.begin(), sums.end(), wanted);
      to[j] = static_cast<int32_t>(it - sums.begin());
    }
  });
}

/// The best rows of segments, for columns `first` to `last` of m.
template <bool kLargest, class S, class Number>
void best_of_segments(const S* from, DType dtype, const std::vector<int64_t>& segment, int64_t m,
                      int64_t count, int64_t first, int64_t last, Number number, int32_t* to) {
  const int64_t width = last - first;
  std::vector<uint8_t> seen(static_cast<size_t>(count), 0);
  std::vector<S> best(static_cast<size_t>(count * width), S(0));
  std::vector<int64_t> at(static_cast<size_t>(count * width), -1);
  for (int64_t i = 0; i < static_cast<int64_t>(segment.size()); ++i) {
    const int64_t s = segment[static_cast<size_t>(i)];
    if (s < 0) continue;
    S* const top = best.data() + s * width;
    int64_t* const row = at.data() + s * width;
    const S* const x = from + i * m + first;
    if (!std::exchange(seen[static_cast<size_t>(s)], uint8_t(1))) {
      std::copy_n(x, width, top);
      std::fill_n(row, width, i);
      continue;
    }
    if constexpr (!std::is_class_v<S>) {
      whole_kernels().exceed(kLargest, dtype, x, i, top, row, static_cast<size_t>(width));
      continue;
    }
    for (int64_t j = 0; j < width; ++j) {
      const bool won = kLargest ? number(x[j]) > number(top[j]) : number(x[j]) < number(top[j]);
      top[j] = won ? x[j] : top[j];
      row[j] = won ? i : row[j];
    }
  }
  for (int64_t s = 0; s < count; ++s)
    for (int64_t j = 0; j < width; ++j)
      to[s * m + first + j] = static_cast<int32_t>(at[static_cast<size_t>(s * width + j)]);
}

void segment_best(const Call& c, const void* const* in, void* out) {
  const auto [count, largest] = decode<SegmentAttributes>(c.attributes);
  const int64_t n = c.in[1].dims.back(), m = c.in[0].dims.back();
  constexpr int64_t kStrip = 128;
  const int64_t strips = (m + kStrip - 1) / kStrip;
  with_numbers(
      c.in[0].dtype, in[0], [&, count = count, largest = largest](const auto* rows, auto number) {
        each_of(c.in[1], 1, static_cast<double>(n * m), [&](int64_t r) {
          std::vector<int64_t> segment(static_cast<size_t>(n));
          with_positions(c.in[1].dtype, in[1], [&](const auto* id) {
            for (int64_t i = 0; i < n; ++i) {
              const int64_t s = segment[static_cast<size_t>(i)] = id[r * n + i];
              require(s < count, ErrorKind::Index, "segment id ", s, " is out of range for ", count,
                      " segments");
            }
          });
          const auto* from = rows + r * n * m;
          auto* to = static_cast<int32_t*>(out) + r * count * m;
          by_parts(strips, (n + count) * std::min(m, kStrip), [&](int64_t begin, int64_t end) {
            for (int64_t s = begin; s < end; ++s) {
              const int64_t first = s * kStrip, last = std::min(m, first + kStrip);
              auto run = [&]<bool kLargest> {
                best_of_segments<kLargest>(from, c.in[0].dtype, segment, m, count, first, last,
                                           number, to);
              };
              largest ? run.template operator()<true>() : run.template operator()<false>();
            }
          });
        });
      });
}

constexpr RoutineRow kRows[] = {
    {Op::PlaceInLine, place_in_line},  {Op::Among, among},
    {Op::CountBetween, count_between}, {Op::DrawByWeights, draw_by_weights},
    {Op::SegmentBest, segment_best},
};

}  // namespace

std::span<const RoutineRow> searches() { return kRows; }

}  // namespace gradcell::cpu
