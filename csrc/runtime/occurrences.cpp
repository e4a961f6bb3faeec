#include "runtime/occurrences.h"

#include <numeric>
#include <vector>

#include "cpu/kernels/whole_kernels.h"
#include "runtime/order_keys.h"
#include "runtime/selection.h"

namespace gradcell {

namespace {

/// A table over the keys of some elements is worth it if it is not much longer than they are many.
template <class K>
struct Span {
  K low = 0, width = 0;  ///< keys from low to low + width
  bool small = false;
};

template <class S, class Number>
auto span_of(const S* x, int64_t n, Number number) {
  using K = decltype(key_of(number(*x)));
  Span<K> span;
  if constexpr (std::is_floating_point_v<decltype(number(*x))>) return span;
  if (n == 0) return span;
  const int64_t parts = std::clamp<int64_t>(n / 65536, 1, 64);
  std::vector<K> low(static_cast<size_t>(parts)), high(static_cast<size_t>(parts));
  parallel_for(static_cast<int>(parts), [&](int p, int) {
    const int64_t first = n * p / parts, last = n * (p + 1) / parts;
    K least = key_of(number(x[first])), most = least;
    for (int64_t i = first; i < last; ++i) {
      const K k = key_of(number(x[i]));
      least = std::min(least, k), most = std::max(most, k);
    }
    low[static_cast<size_t>(p)] = least, high[static_cast<size_t>(p)] = most;
  });
  span.low = *std::min_element(low.begin(), low.end());
  span.width = static_cast<K>(*std::max_element(high.begin(), high.end()) - span.low);
  span.small = span.width < static_cast<K>(std::min<int64_t>(4 * n + 1024, 1 << 24));
  return span;
}

Array positions(const std::vector<int64_t>& at) {
  Array out = empty_array(DType::Int64, {static_cast<int64_t>(at.size())});
  std::copy(at.begin(), at.end(), static_cast<int64_t*>(out.data()));
  return out;
}

Array flattened(const Array& x) { return {x.dtype, {x.count()}, x.storage}; }

}  // namespace

std::pair<Array, Array> first_occurrences(const Array& x, DType place) {
  const int64_t n = x.count();
  Array index = empty_array(place, x.dims);
  std::vector<int64_t> firsts;
  with_ordered(x, [&](const auto* from, auto number) {
    using K = decltype(key_of(number(*from)));
    const Span<K> span = span_of(from, n, number);
    with_positions(index, [&](auto* to) {
      using P = std::remove_reference_t<decltype(*to)>;
      if (span.small) {
        std::vector<P> table(static_cast<size_t>(span.width) + 1, P(-1));
        for (int64_t i = 0; i < n; ++i) {
          P& seen = table[static_cast<size_t>(key_of(number(from[i])) - span.low)];
          if (seen < 0) {
            seen = static_cast<P>(firsts.size());
            firsts.push_back(i);
          }
          to[i] = seen;
        }
        return;
      }
      // In order, equal elements are neighbours, the first occurrence in front.
      const Array ordered = order_of_rows(flattened(x), false, DType::Int64);
      const auto* order = static_cast<const int64_t*>(ordered.data());
      std::vector<int64_t> run(static_cast<size_t>(n), -1);  // at a first occurrence: its place
      std::vector<int64_t> first_of(static_cast<size_t>(n));
      for (int64_t i = 0, head = 0; i < n; ++i) {
        if (i == 0 || key_of(number(from[order[i]])) != key_of(number(from[order[head]])))
          head = i, run[static_cast<size_t>(order[i])] = 0;
        first_of[static_cast<size_t>(order[i])] = order[head];
      }
      for (int64_t i = 0; i < n; ++i) {
        if (run[static_cast<size_t>(i)] < 0) continue;
        run[static_cast<size_t>(i)] = static_cast<int64_t>(firsts.size());
        firsts.push_back(i);
      }
      by_parts(n, 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          to[i] = static_cast<P>(run[static_cast<size_t>(first_of[static_cast<size_t>(i)])]);
      });
    });
  });
  return {positions(firsts), index};
}

std::pair<Array, Array> runs(const Array& x) {
  const int64_t n = x.count(), parts = std::clamp<int64_t>(n / 32768, 1, 64);
  std::vector<int64_t> begins(static_cast<size_t>(parts) + 1, 0);
  Array starts, values;
  with_numbers(x, [&](const auto* from, auto number) {
    auto begins_run = [&](int64_t i) { return number(from[i]) != number(from[i - 1]); };
    parallel_for(static_cast<int>(parts), [&](int part, int) {
      const int64_t first = n * part / parts, last = n * (part + 1) / parts;
      int64_t found = first == 0 && n > 0;
      for (int64_t i = std::max<int64_t>(first, 1); i < last; ++i) found += begins_run(i);
      begins[static_cast<size_t>(part) + 1] = found;
    });
    std::partial_sum(begins.begin(), begins.end(), begins.begin());
    starts = empty_array(DType::Int64, {begins.back()});
    values = empty_array(x.dtype, {begins.back()});
    using S = std::remove_cvref_t<decltype(*from)>;
    parallel_for(static_cast<int>(parts), [&](int part, int) {
      int64_t k = begins[static_cast<size_t>(part)], i = n * part / parts;
      const int64_t end = begins[static_cast<size_t>(part) + 1];
      auto* at = static_cast<int64_t*>(starts.data());
      auto* value = static_cast<S*>(values.data());
      auto write = [&](bool moves) {  // always, and moves on where it counts
        at[k] = i;
        value[k] = from[i];
        k += moves;
        ++i;
      };
      if (i == 0 && k < end) write(true);
      while (k < end) write(begins_run(i));
    });
  });
  return {starts, values};
}

namespace {

/// Counts of [0, length) in tables of a thread each, added up. count(begin, end, table).
template <class F>
std::vector<int64_t> counted(int64_t n, int64_t length, F count) {
  const int64_t parts =
      length > (1 << 16) ? 1 : std::clamp<int64_t>(n / 32768, 1, 4 * max_threads());
  std::vector<std::vector<int64_t>> tables(static_cast<size_t>(parts));
  parallel_for(static_cast<int>(parts), [&](int part, int) {
    auto& table = tables[static_cast<size_t>(part)];
    table.assign(static_cast<size_t>(length), 0);
    count(n * part / parts, n * (part + 1) / parts, table.data());
  });
  for (size_t part = 1; part < tables.size(); ++part)
    for (size_t k = 0; k < tables[0].size(); ++k) tables[0][k] += tables[part][k];
  return std::move(tables[0]);
}

}  // namespace

Array counts_of(const Array& x, int64_t length) {
  Array out = empty_array(DType::Float32, {length});
  with_numbers(x, [&](const auto* from, auto number) {
    const auto found = counted(x.count(), length, [&](int64_t begin, int64_t end, int64_t* table) {
      for (int64_t i = begin; i < end; ++i) {
        const auto at = static_cast<int64_t>(number(from[i]));
        require(at >= 0 && at < length, ErrorKind::Value, "bincount: ", at, " is not from 0 to ",
                length - 1);
        ++table[at];
      }
    });
    std::copy(found.begin(), found.end(), static_cast<float*>(out.data()));
  });
  return out;
}

Array counts_between(const Array& x, const Array& edges) {
  require(edges.dtype == DType::Float64 && edges.count() > 1 && x.dtype != DType::Int64,
          ErrorKind::Type,
          "counts_between: edges of float64 and elements that it holds are needed");
  const auto* edge = static_cast<const double*>(edges.data());
  const int64_t bins = edges.count() - 1;
  const double low = edge[0], high = edge[bins];
  const double scale = static_cast<double>(bins) / (high - low);
  Array out = empty_array(DType::Int64, {bins});
  with_numbers(x, [&](const auto* from, auto number) {
    const auto found = counted(x.count(), bins, [&](int64_t begin, int64_t end, int64_t* table) {
      for (int64_t i = begin; i < end; ++i) {
        const auto v = static_cast<double>(number(from[i]));
        if (!(v >= low && v <= high)) continue;
        auto at = std::min(static_cast<int64_t>((v - low) * scale), bins - 1);
        while (at > 0 && v < edge[at]) --at;  // the guess rounds, the edges decide
        while (at + 1 < bins && v >= edge[at + 1]) ++at;
        ++table[at];
      }
    });
    std::copy(found.begin(), found.end(), static_cast<int64_t*>(out.data()));
  });
  return out;
}

Array among(const Array& x, const Array& tests) {
  require(x.dtype == tests.dtype, ErrorKind::Type, "among: ", name(x.dtype), " and ",
          name(tests.dtype), " are two dtypes");
  Array out = empty_array(DType::Bool, x.dims);
  auto* to = static_cast<uint8_t*>(out.data());
  const int64_t n = x.count(), m = tests.count();
  with_ordered(x, [&](const auto* from, auto number) {
    using K = decltype(key_of(number(*from)));
    const auto* wanted = static_cast<decltype(from)>(tests.data());
    const Span<K> span = span_of(wanted, m, number);
    if (span.small) {
      std::vector<uint8_t> table(static_cast<size_t>(span.width) + 1, 0);
      for (int64_t i = 0; i < m; ++i)
        table[static_cast<size_t>(key_of(number(wanted[i])) - span.low)] = 1;
      return by_parts(n, 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const K at = static_cast<K>(key_of(number(from[i])) - span.low);
          to[i] = at <= span.width ? table[static_cast<size_t>(at)] : uint8_t(0);
        }
      });
    }
    std::vector<K> keys;
    for (int64_t i = 0; i < m; ++i)
      if (!is_nan(number(wanted[i]))) keys.push_back(key_of(number(wanted[i])));
    std::sort(keys.begin(), keys.end());
    by_parts(n, 8, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const K k = key_of(number(from[i]));
        const K* at = keys.data();  // halves the rest, with no branch to be foretold
        for (size_t rest = keys.size(); rest > 0;) {
          const size_t half = rest / 2;
          const bool on = at[half] < k;
          at = on ? at + half + 1 : at;
          rest = on ? rest - half - 1 : half;
        }
        to[i] = at != keys.data() + keys.size() && *at == k;
      }
    });
  });
  return out;
}

std::pair<Array, Array> segment_extremes(const Array& rows, const Array& ids, const Array& none,
                                         int64_t count, bool largest) {
  const int64_t n = rows.dims[0], m = rows.dims[1];
  Array values = empty_array(rows.dtype, {count, m}), out = empty_array(DType::Int64, {count, m});
  auto* const to = static_cast<int64_t*>(out.data());
  std::vector<int64_t> segment(static_cast<size_t>(n));
  with_positions(ids, [&](const auto* id) {
    for (int64_t i = 0; i < n; ++i) {
      require(id[i] < count, ErrorKind::Index, "segment id ", static_cast<int64_t>(id[i]),
              " is out of range for ", count, " segments");
      segment[static_cast<size_t>(i)] = id[i];
    }
  });
  constexpr int64_t kStrip = 128;
  const int64_t strips = (m + kStrip - 1) / kStrip;
  auto run = [&]<bool kLargest>(const auto* from, auto number) {
    using S = std::remove_cvref_t<decltype(*from)>;
    auto* const best = static_cast<S*>(values.data());
    const S worst = *static_cast<const S*>(none.data());
    by_parts(strips, (n + count) * std::min(m, kStrip), [&](int64_t begin, int64_t end) {
      const int64_t first = begin * kStrip, last = std::min(m, end * kStrip);
      std::vector<uint8_t> seen(static_cast<size_t>(count), 0);
      for (int64_t i = 0; i < n; ++i) {
        const int64_t s = segment[static_cast<size_t>(i)];
        if (s < 0) continue;
        S* top = best + s * m;
        int64_t* at = to + s * m;
        const S* x = from + i * m;
        if (!std::exchange(seen[static_cast<size_t>(s)], uint8_t(1))) {
          std::copy(x + first, x + last, top + first);
          std::fill(at + first, at + last, i);
          continue;
        }
        if constexpr (!std::is_class_v<S>) {
          cpu::whole_kernels().exceed(largest, rows.dtype, x + first, i, top + first, at + first,
                                      static_cast<size_t>(last - first));
          continue;
        }
        for (int64_t j = first; j < last; ++j) {
          const bool won = kLargest ? number(x[j]) > number(top[j]) : number(x[j]) < number(top[j]);
          top[j] = won ? x[j] : top[j];
          at[j] = won ? i : at[j];
        }
      }
      for (int64_t s = 0; s < count; ++s) {
        if (seen[static_cast<size_t>(s)]) continue;
        std::fill(best + s * m + first, best + s * m + last, worst);
        std::fill(to + s * m + first, to + s * m + last, -1);
      }
    });
  };
  with_numbers(rows, [&](const auto* from, auto number) {
    largest ? run.template operator()<true>(from, number)
            : run.template operator()<false>(from, number);
  });
  return {values, out};
}

}  // namespace gradcell
