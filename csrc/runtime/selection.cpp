#include "runtime/selection.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <type_traits>
#include <vector>

#include "base/element.h"
#include "base/scratch.h"
#include "base/thread_pool.h"
#include "cpu/whole_kernels.h"

namespace gradcell {

namespace {

template <class T>
bool is_nan(T v) {
  return v != v;
}

/// body(begin, end) for parts of n things of `each` elements, on all threads.
template <class F>
void by_parts(int64_t n, int64_t each, F body) {
  const int64_t parts = std::clamp<int64_t>(n * each / 16384, 1, std::min<int64_t>(n, 64));
  if (n == 0) return;
  parallel_for(static_cast<int>(parts),
               [&](int p, int) { body(n * p / parts, n * (p + 1) / parts); });
}

// Keys
// ----------------------------------------------------------------------------------------------

/// An unsigned integer in the order of the numbers: all NaN one, and last; zeros one.
template <class T>
auto key_of(T v) {
  if constexpr (std::is_floating_point_v<T>) {
    using U = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
    constexpr U kSign = U(1) << (8 * sizeof(T) - 1);
    if (is_nan(v)) return ~U(0);
    const U bits = std::bit_cast<U>(v + T(0));  // -0 + 0 is 0
    return bits & kSign ? static_cast<U>(~bits) : static_cast<U>(bits | kSign);
  } else if constexpr (std::is_unsigned_v<T>) {
    return static_cast<uint32_t>(v);
  } else {
    using U = std::conditional_t<sizeof(T) <= 4, uint32_t, uint64_t>;
    using Wide = std::conditional_t<sizeof(T) <= 4, int32_t, int64_t>;
    return static_cast<U>(static_cast<U>(static_cast<Wide>(v)) ^ (U(1) << (8 * sizeof(U) - 1)));
  }
}

/// f(elements, a function that gives an element's number).
template <class F>
Array with_numbers(const Array& x, F f) {
  if (is_complex(x.dtype) || x.dtype == DType::UInt64)
    fail(ErrorKind::Type, "elements of ", name(x.dtype), " are not put in order: cast them first");
  Array out;
  by_dtype(x.dtype, [&]<class S>() {
    using Number = typename ComputeOf<S>::type;
    out = f(static_cast<const S*>(x.data()), [](S v) { return static_cast<Number>(v); });
  });
  return out;
}

/// f(elements) of a tensor of int32 or int64.
template <class F>
void with_positions(const Array& x, F f) {
  if (x.dtype == DType::Int32)
    f(static_cast<int32_t*>(x.data()));
  else
    f(static_cast<int64_t*>(x.data()));
}

// The first k
// ---------------------------------------------------------------------------------------

/// A key with its position: of equal keys the first comes first.
template <class K>
struct Placed {
  K key;
  int64_t at;
  bool operator<(const Placed& o) const { return key < o.key || (key == o.key && at < o.at); }
};
/// The same of 32-bit keys and rows that are not longer: one number.
template <>
struct Placed<uint32_t> {
  uint64_t both;
  Placed() = default;
  Placed(uint32_t key, int64_t at) : both(uint64_t(key) << 32 | static_cast<uint32_t>(at)) {}
  bool operator<(const Placed& o) const { return both < o.both; }
};
int64_t position(const Placed<uint64_t>& p) { return p.at; }
int64_t position(const Placed<uint32_t>& p) { return static_cast<uint32_t>(p.both); }

/// The first k > 0 of n keys, in order. What is no better than the k-th of those seen is passed
/// over.
template <class K, class Key>
void first_in_order(int64_t n, int64_t k, std::vector<Placed<K>>& kept, Key key, int64_t* to) {
  const auto room = static_cast<size_t>(std::min(n, 2 * k + 64));
  kept.clear();
  Placed<K> bound{};
  bool bounded = false;
  for (int64_t i = 0; i < n; ++i) {
    const Placed<K> p{key(i), i};
    if (bounded && !(p < bound)) continue;
    kept.push_back(p);
    if (kept.size() < room || i + 1 == n) continue;
    std::nth_element(kept.begin(), kept.begin() + (k - 1), kept.end());
    bound = kept[static_cast<size_t>(k - 1)], bounded = true;
    kept.resize(static_cast<size_t>(k));
  }
  std::nth_element(kept.begin(), kept.begin() + (k - 1), kept.end());
  std::sort(kept.begin(), kept.begin() + k);
  for (int64_t i = 0; i < k; ++i) to[i] = position(kept[static_cast<size_t>(i)]);
}

template <class T, class Number>
void first_as_selected(const T* x, int64_t n, int64_t k, bool largest, Number number, int64_t* to) {
  using Value = decltype(number(*x));
  std::vector<Value> row(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) row[i] = number(x[i]);
  std::vector<int64_t> at(static_cast<size_t>(n));
  std::iota(at.begin(), at.end(), 0);
  auto before = [&](int64_t i, int64_t j) {
    const Value a = row[i], b = row[j];
    if (largest) return a > b || (is_nan(a) && !is_nan(b));
    return a < b || (!is_nan(a) && is_nan(b));
  };
  std::nth_element(at.begin(), at.begin() + k, at.end(), before);
  std::copy_n(at.begin(), k, to);
}

// All of them
// ---------------------------------------------------------------------------------------

template <class K>
struct Entry {
  K key;
  uint32_t at;
};

/// Sorts by one digit after the other, from the lowest (Knuth, TAOCP 3, 5.2.5); digits that all
/// keys share are passed over. b: room for as many; the result is in the one that is given back.
template <class K>
Entry<K>* sort_by_digits(Entry<K>* a, Entry<K>* b, size_t n) {
  const int bits = n < 8192 ? 8 : 11;
  const size_t values = size_t(1) << bits;
  K differing = 0;
  for (size_t i = 0; i < n; ++i) differing |= static_cast<K>(a[i].key ^ a[0].key);
  // Parts of the entries, which threads count and place side by side.
  const size_t parts = n < (1 << 17) ? 1 : static_cast<size_t>(std::min(max_threads(), 8));
  std::vector<size_t> counts(parts * values);
  auto each_part = [&](auto body) {
    parallel_for(static_cast<int>(parts), [&](int p, int) {
      const auto part = static_cast<size_t>(p);
      body(n * part / parts, n * (part + 1) / parts, counts.data() + part * values);
    });
  };
  for (int low = 0; low < static_cast<int>(8 * sizeof(K)); low += bits) {
    if (((differing >> low) & (values - 1)) == 0) continue;
    auto digit = [&](const Entry<K>& e) {
      return static_cast<size_t>((e.key >> low) & (values - 1));
    };
    each_part([&](size_t begin, size_t end, size_t* count) {
      std::fill(count, count + values, 0);
      for (size_t i = begin; i < end; ++i) ++count[digit(a[i])];
    });
    size_t total = 0;
    for (size_t v = 0; v < values; ++v)
      for (size_t p = 0; p < parts; ++p) {
        const size_t count = counts[p * values + v];
        counts[p * values + v] = total;
        total += count;
      }
    each_part([&](size_t begin, size_t end, size_t* place) {
      for (size_t i = begin; i < end; ++i) b[place[digit(a[i])]++] = a[i];
    });
    std::swap(a, b);
  }
  return a;
}

template <class P, class T, class Number>
void order_rows(const T* x, int64_t rows, int64_t n, bool descending, Number number, P* to) {
  using K = decltype(key_of(number(*x)));
  require(n <= int64_t{UINT32_MAX}, ErrorKind::Value, "sort: ", n, " elements in a row");
  by_parts(rows, n, [&](int64_t begin, int64_t end) {
    constexpr size_t kKept = 64 << 20;  // bytes that a thread keeps for the next time
    thread_local Scratch kept;
    Scratch own;
    const size_t bytes = static_cast<size_t>(n) * sizeof(Entry<K>);
    std::byte* room = (2 * bytes <= kKept ? kept : own).get(2 * bytes);
    for (int64_t r = begin; r < end; ++r) {
      auto* a = reinterpret_cast<Entry<K>*>(room);
      auto* b = reinterpret_cast<Entry<K>*>(room + bytes);
      by_parts(n, 1, [&](int64_t i, int64_t last) {
        for (; i < last; ++i) {
          const K key = key_of(number(x[r * n + i]));
          a[i] = {descending ? static_cast<K>(~key) : key, static_cast<uint32_t>(i)};
        }
      });
      a = sort_by_digits(a, b, static_cast<size_t>(n));
      by_parts(n, 1, [&](int64_t i, int64_t last) {
        for (; i < last; ++i) to[r * n + i] = static_cast<P>(a[i].at);
      });
    }
  });
}

int64_t row_length(const Array& x) { return x.dims.back(); }
int64_t row_count(const Array& x) { return row_length(x) ? x.count() / row_length(x) : 0; }

}  // namespace

Array first_of_rows(const Array& x, int64_t k, bool largest, bool sorted) {
  const int64_t n = row_length(x), rows = row_count(x);
  Dims dims = x.dims;
  dims.back() = k;
  Array out = empty_array(DType::Int64, dims);
  auto* to = static_cast<int64_t*>(out.data());
  if (k == 0) return out;
  return with_numbers(x, [&](const auto* from, auto number) {
    using K = decltype(key_of(number(*from)));
    by_parts(rows, n, [&](int64_t begin, int64_t end) {
      std::vector<Placed<K>> kept;
      for (int64_t r = begin; r < end; ++r) {
        const auto* row = from + r * n;
        auto key = [&](int64_t i) {
          const K in_order = key_of(number(row[i]));
          return largest ? static_cast<K>(~in_order) : in_order;
        };
        if (sorted)
          first_in_order<K>(n, k, kept, key, to + r * k);
        else
          first_as_selected(row, n, k, largest, number, to + r * k);
      }
    });
    return out;
  });
}

Array order_of_rows(const Array& x, bool descending, DType position) {
  Array out = empty_array(position, x.dims);
  return with_numbers(x, [&](const auto* from, auto number) {
    with_positions(out, [&](auto* to) {
      order_rows(from, row_count(x), row_length(x), descending, number, to);
    });
    return out;
  });
}

Array taken_from_rows(const Array& x, const Array& positions) {
  Array out = empty_array(x.dtype, positions.dims);
  const int64_t n = row_length(x), k = row_length(positions);
  with_positions(positions, [&](const auto* position) {
    by_size(item_size(x.dtype), [&]<class S>() {
      by_parts(row_count(positions), k, [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) {
          const S* from = static_cast<const S*>(x.data()) + r * n;
          const auto* at = position + r * k;
          S* to = static_cast<S*>(out.data()) + r * k;
          for (int64_t i = 0; i < k; ++i) to[i] = from[at[i]];
        }
      });
    });
  });
  return out;
}

Array places_in_line(const Array& line, const Array& x, bool right, DType place) {
  require(line.dtype == DType::Float64 && x.dtype != DType::Int64, ErrorKind::Type,
          "places_in_line: a line of float64 and elements that it holds are needed, got ",
          name(line.dtype), " and ", name(x.dtype));
  Array out = empty_array(place, x.dims);
  const auto* first = static_cast<const double*>(line.data());
  const int64_t n = line.count();
  return with_numbers(x, [&](const auto* from, auto number) {
    with_positions(out, [&](auto* to) {
      by_parts(x.count(), 8, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const auto v = static_cast<double>(number(from[i]));
          const double* at = first;  // halves the rest, with no branch to be foretold
          for (int64_t rest = n; rest > 0;) {
            const int64_t half = rest / 2;
            const double m = at[half];
            const bool on = right ? m <= v || v != v : m < v || (v != v && m == m);
            at = on ? at + half + 1 : at;
            rest = on ? rest - half - 1 : half;
          }
          to[i] = static_cast<std::remove_reference_t<decltype(*to)>>(at - first);
        }
      });
    });
    return out;
  });
}

std::pair<int64_t, int64_t> bounds(const Array& x) {
  const int64_t n = x.count(), parts = std::clamp<int64_t>(n / 65536, 1, 64);
  if (n == 0) return {0, -1};
  std::vector<int64_t> low(static_cast<size_t>(parts)), high(static_cast<size_t>(parts));
  require(x.dtype == DType::Int32 || x.dtype == DType::Int64, ErrorKind::Type,
          "bounds: int32 or int64 is needed, got ", name(x.dtype));
  with_positions(x, [&](const auto* p) {
    parallel_for(static_cast<int>(parts), [&](int part, int) {
      const auto* begin = p + n * part / parts;
      const auto length = static_cast<size_t>(n * (part + 1) / parts - n * part / parts);
      auto least = *begin, most = *begin;
      cpu::whole_kernels().fold(Combine::Min, x.dtype, begin, length, &least);
      cpu::whole_kernels().fold(Combine::Max, x.dtype, begin, length, &most);
      low[part] = least, high[part] = most;
    });
  });
  return {*std::min_element(low.begin(), low.end()), *std::max_element(high.begin(), high.end())};
}

Array running_extremes(const Array& x, int64_t axis, bool largest) {
  Array out = empty_array(DType::Int64, x.dims);
  const auto a = static_cast<size_t>(axis);
  const int64_t n = x.dims[a], inner = product(x.dims, a + 1, x.dims.size());
  const int64_t outer = x.count() ? x.count() / (n * inner) : 0;
  auto* to = static_cast<int64_t*>(out.data());
  return with_numbers(x, [&](const auto* from, auto number) {
    using Value = decltype(number(*from));
    auto wins = [&](Value v, Value best) { return (largest ? v >= best : v <= best) || is_nan(v); };
    if (inner == 1) {
      by_parts(outer, n, [&](int64_t begin, int64_t end) {
        for (int64_t o = begin; o < end; ++o) {
          const auto* line = from + o * n;
          Value best = number(line[0]);
          int64_t at = 0;
          for (int64_t i = 0; i < n; ++i) {
            const Value v = number(line[i]);
            const bool won = wins(v, best);
            best = won ? v : best, at = won ? i : at;
            to[o * n + i] = at;
          }
        }
      });
      return out;
    }
    // Columns: whole rows of them are compared with the best so far.
    constexpr int64_t kStrip = 512;
    const int64_t strips = (inner + kStrip - 1) / kStrip;
    by_parts(outer * strips, n * std::min(inner, kStrip), [&](int64_t begin, int64_t end) {
      Value best[kStrip];
      int64_t at[kStrip];
      for (int64_t s = begin; s < end; ++s) {
        const int64_t first = s % strips * kStrip, width = std::min(kStrip, inner - first);
        const int64_t base = s / strips * n * inner + first;
        for (int64_t j = 0; j < width; ++j) best[j] = number(from[base + j]), at[j] = 0;
        for (int64_t i = 0; i < n; ++i) {
          const auto* row = from + base + i * inner;
          for (int64_t j = 0; j < width; ++j) {
            const Value v = number(row[j]);
            const bool won = wins(v, best[j]);
            best[j] = won ? v : best[j], at[j] = won ? i : at[j];
          }
          std::copy_n(at, width, to + base + i * inner);
        }
      }
    });
    return out;
  });
}

}  // namespace gradcell
