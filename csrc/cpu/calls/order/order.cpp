// The order of rows' elements: all of them, the first so many, the best up to each.
#include "cpu/calls/order/order.h"

#include <numeric>
#include <vector>

#include "base/scratch.h"
#include "cpu/calls/order/order_keys.h"
#include "cpu/calls/routines.h"
#include "cpu/calls/wide.h"
#include "ir/attributes.h"
#include "ops/moving/order.h"

namespace gradcell::cpu {

namespace {

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
  Placed(uint32_t key, int64_t at) : both(uint64_t(key) << 32 | known<uint32_t>(at)) {}
  bool operator<(const Placed& o) const { return both < o.both; }
};
int64_t position(const Placed<uint64_t>& p) { return p.at; }
int64_t position(const Placed<uint32_t>& p) { return low_bits<uint32_t>(p.both); }

/// Puts p among the k first of those seen, which are in order; `size` of them are there.
template <class K>
void insert_in_order(Placed<K>* first, int64_t& size, int64_t k, const Placed<K>& p) {
  int64_t at = size < k ? size++ : k - 1;
  for (; at > 0 && p < first[at - 1]; --at) first[at] = first[at - 1];
  first[at] = p;
}

/// The first k > 0 of n keys, in order. What is no better than the k-th of those seen is passed
/// over, blocks of elements at a time: better(begin, end, i) says whether there may be one that is
/// better than element i.
template <class K, class Key, class Better>
void first_in_order(int64_t n, int64_t k, std::vector<Placed<K>>& kept, Key key, Better better,
                    int32_t* to) {
  constexpr int64_t kBlock = 32, kFew = 24;
  const auto room = static_cast<size_t>(k <= kFew ? k : std::min(n, 2 * k + 64));
  kept.resize(room);
  Placed<K> bound{};
  bool bounded = false;
  int64_t size = 0, seen = 0;  // up to `seen` blocks have been looked at
  for (int64_t i = 0; i < n; ++i) {
    if (bounded && i >= seen) {
      while (i + kBlock <= n && !better(i, i + kBlock, position(bound))) i += kBlock;
      if (i == n) break;
      seen = i + kBlock;
    }
    const Placed<K> p{key(i), i};
    if (bounded && !(p < bound)) continue;
    if (k <= kFew) {
      insert_in_order(kept.data(), size, k, p);
      if (size == k) bound = kept[static_cast<size_t>(k - 1)], bounded = true;
      continue;
    }
    kept[static_cast<size_t>(size++)] = p;
    if (size < static_cast<int64_t>(room) || i + 1 == n) continue;
    std::nth_element(kept.begin(), kept.begin() + (k - 1), kept.end());
    bound = kept[static_cast<size_t>(k - 1)], bounded = true;
    size = k;
  }
  if (k > kFew) {
    std::nth_element(kept.begin(), kept.begin() + (k - 1), kept.begin() + size);
    std::sort(kept.begin(), kept.begin() + k);
  }
  for (int64_t i = 0; i < k; ++i) to[i] = known<int32_t>(position(kept[static_cast<size_t>(i)]));
}

template <class T>
void first_as_selected(const T* row, int64_t n, int64_t k, bool largest, int32_t* to) {
  std::vector<int32_t> at(static_cast<size_t>(n));
  std::iota(at.begin(), at.end(), 0);
  auto before = [&](int32_t i, int32_t j) {
    const T a = row[i], b = row[j];
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
    parallel_for(parts, [&](int p, int) {
      const auto part = static_cast<size_t>(p);
      body(n * part / parts, n * (part + 1) / parts, counts.data() + part * values);
    });
  };
  for (int low = 0; low < narrow<int>(8 * sizeof(K)); low += bits) {
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

/// The places of a short row's elements in order, of equal keys the first first.
template <class K, class Key>
void order_few(int64_t n, Key key, std::vector<Placed<K>>& room, int32_t* to) {
  room.resize(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) room[static_cast<size_t>(i)] = Placed<K>{key(i), i};
  std::sort(room.begin(), room.end());
  for (int64_t i = 0; i < n; ++i) to[i] = known<int32_t>(position(room[static_cast<size_t>(i)]));
}

template <class T>
void order(const T* x, int64_t rows, int64_t n, bool descending, int32_t* to) {
  using K = decltype(key_of(*x));
  constexpr int64_t kFew = 256;
  if (n <= kFew)
    return by_parts(rows, 8 * n, [&](int64_t begin, int64_t end) {
      std::vector<Placed<K>> room;
      for (int64_t r = begin; r < end; ++r) {
        auto key = [&](int64_t i) {
          const K k = key_of(x[r * n + i]);
          return descending ? static_cast<K>(~k) : k;
        };
        order_few<K>(n, key, room, to + r * n);
      }
    });
  by_parts(rows, n, [&](int64_t begin, int64_t end) {
    constexpr size_t kKept = 64 << 20;  // bytes that a thread keeps for the next time
    thread_local Scratch kept;
    Scratch own;
    const size_t bytes = static_cast<size_t>(n) * sizeof(Entry<K>);
    std::byte* room = (2 * bytes <= kKept ? kept : own).get(2 * bytes);
    for (int64_t r = begin; r < end; ++r) {
      auto* a = reinterpret_cast<Entry<K>*>(room);
      auto* b = reinterpret_cast<Entry<K>*>(room + bytes);
      const T* const row = x + r * n;
      const K turned = descending ? static_cast<K>(~K()) : K();
      by_parts(n, 1, [a, row, turned](int64_t i, int64_t last) {
        for (; i < last; ++i) a[i] = {static_cast<K>(key_of(row[i]) ^ turned), known<uint32_t>(i)};
      });
      a = sort_by_digits(a, b, static_cast<size_t>(n));
      int32_t* const places = to + r * n;
      by_parts(n, 1, [a, places](int64_t i, int64_t last) {
        for (; i < last; ++i) places[i] = known<int32_t>(a[i].at);
      });
    }
  });
}

struct Rows {
  int64_t length, count;
  explicit Rows(const TensorDesc& x)
      : length(x.dims.back()), count(length ? product(x.dims, 0, x.dims.size()) / length : 0) {}
};

void in_order(const Call& c, const void* const* in, void* out) {
  const Rows rows(c.in[0]);
  order_of_rows(c.in[0].dtype, in[0], rows.count, rows.length,
                decode<OrderAttributes>(c.attributes).descending, static_cast<int32_t*>(out));
}

void first_in_rows(const Call& c, const void* const* in, void* out) {
  const auto [k, largest, sorted] = decode<FirstAttributes>(c.attributes);
  const Rows rows(c.in[0]);
  const int64_t n = rows.length;
  auto* to = static_cast<int32_t*>(out);
  if (k == 0) return;
  by_wide_dtype(c.in[0].dtype, [&, k = k, largest = largest, sorted = sorted]<class T>() {
    using K = decltype(key_of(T()));
    const Wide<T> x(c.in[0].dtype, in[0], c.in[0].count);
    by_parts(rows.count, n, [&](int64_t begin, int64_t end) {
      std::vector<Placed<K>> kept;
      for (int64_t r = begin; r < end; ++r) {
        const T* const row = x.data() + r * n;
        auto key = [row, largest](int64_t i) {
          const K in_order = key_of(row[i]);
          return largest ? static_cast<K>(~in_order) : in_order;
        };
        auto better = [row, largest](int64_t first, int64_t last, int64_t bound) {
          const T top = row[bound];
          int any = 0;  // a NaN may be one
          for (int64_t i = first; i < last; ++i)
            any |= largest ? !(row[i] <= top) : !(row[i] >= top);
          return any != 0;
        };
        if (sorted)
          first_in_order<K>(n, k, kept, key, better, to + r * k);
        else
          first_as_selected(row, n, k, largest, to + r * k);
      }
    });
  });
}

/// The best of lines of T so far: the elements themselves (kValues), or their places.
template <class T, bool kLargest, bool kValues>
struct BestSoFar {
  using To = std::conditional_t<kValues, T, int32_t>;
  static constexpr int64_t kBlock = 32;   // elements, of which as a rule none wins
  static constexpr int64_t kStrip = 256;  // columns at a time

  /// The later of equal ones wins, and NaN wins always.
  static bool wins(T v, T best) { return (kLargest ? v >= best : v <= best) | is_nan(v); }

  /// Whether one of so many may win; of NaN each may.
  static bool any_wins(const T* x, int64_t n, auto best) {
    int any = 0;
    for (int64_t i = 0; i < n; ++i) any |= !(kLargest ? x[i] < best(i) : x[i] > best(i));
    return any != 0;
  }

  static void along_line(const T* x, int64_t n, To* to) {
    T best = x[0];
    int32_t at = 0;
    auto kept = [&]() -> To {
      if constexpr (kValues)
        return best;
      else
        return at;
    };
    for (int64_t i = 0; i < n; i += kBlock) {
      const int64_t last = std::min(n, i + kBlock);
      if (last - i == kBlock && !any_wins(x + i, kBlock, [=](int64_t) { return best; })) {
        std::fill_n(to + i, kBlock, kept());
        continue;
      }
      // A branch: what wins seldom, or always, is foretold, and nothing waits for it.
      for (int64_t k = i; k < last; ++k) {
        if (wins(x[k], best)) best = x[k], at = known<int32_t>(k);
        to[k] = kept();
      }
    }
  }

  /// `width` lines side by side, whose elements stand `inner` apart: each row of them is compared
  /// with the row of the best so far.
  static void along_columns(const T* x, int64_t n, int64_t inner, int64_t width, To* to) {
    T best[kStrip];
    int32_t at[kStrip] = {};
    std::copy_n(x, width, best);
    for (int64_t i = 0; i < n; ++i, x += inner, to += inner) {
      for (int64_t first = 0; first < width; first += kBlock) {
        const int64_t last = std::min(width, first + kBlock);
        const T* const top = best + first;
        if (last - first == kBlock &&
            !any_wins(x + first, kBlock, [=](int64_t j) { return top[j]; }))
          continue;
        for (int64_t j = first; j < last; ++j) {
          const bool won = wins(x[j], best[j]);
          best[j] = won ? x[j] : best[j];
          if constexpr (!kValues) at[j] = won ? known<int32_t>(i) : at[j];
        }
      }
      if constexpr (kValues)
        std::copy_n(best, width, to);
      else
        std::copy_n(at, width, to);
    }
  }

  /// outer blocks of n rows of `inner` elements, the lines of which stand side by side.
  static void run(const T* x, int64_t outer, int64_t n, int64_t inner, To* to) {
    if (inner == 1)
      return by_parts(outer, n, [&](int64_t begin, int64_t end) {
        for (int64_t o = begin; o < end; ++o) along_line(x + o * n, n, to + o * n);
      });
    const int64_t strips = (inner + kStrip - 1) / kStrip;
    by_parts(outer * strips, n * std::min(inner, kStrip), [&](int64_t begin, int64_t end) {
      for (int64_t s = begin; s < end; ++s) {
        const int64_t first = s % strips * kStrip, at = s / strips * n * inner + first;
        along_columns(x + at, n, inner, std::min(kStrip, inner - first), to + at);
      }
    });
  }
};

void running_best(const Call& c, const void* const* in, void* out) {
  const auto a = decode<RunningAttributes>(c.attributes);
  const Dims& dims = c.in[0].dims;
  const size_t rank = dims.size(), axis = rank - 1 - static_cast<size_t>(a.inner);
  const int64_t n = dims[axis], inner = product(dims, axis + 1, rank);
  const int64_t outer = product(dims, 0, axis);
  if (n * inner * outer == 0) return;
  auto run = [&]<bool kLargest> {
    if (a.values)
      return in_wide_type(c.in[0].dtype, in[0], out, outer, n * inner,
                          [&]<class T>(const T* x, T* to, int64_t parts) {
                            BestSoFar<T, kLargest, true>::run(x, parts, n, inner, to);
                          });
    by_wide_parts(c.in[0].dtype, in[0], outer, n * inner,
                  [&]<class T>(const T* x, int64_t first, int64_t parts) {
                    BestSoFar<T, kLargest, false>::run(
                        x, parts, n, inner, static_cast<int32_t*>(out) + first * n * inner);
                  });
  };
  a.largest ? run.template operator()<true>() : run.template operator()<false>();
}

constexpr RoutineRow kOrders[] = {
    {Op::Order, in_order}, {Op::FirstInOrder, first_in_rows}, {Op::RunningBest, running_best}};

}  // namespace

std::span<const RoutineRow> orders() { return kOrders; }

void order_of_rows(DType dtype, const void* x, int64_t rows, int64_t length, bool descending,
                   int32_t* out) {
  require(length <= INT32_MAX, ErrorKind::Value, "an order of ", length, " elements: at most ",
          INT32_MAX, " have one");
  by_wide_dtype(dtype, [&]<class T>() {
    order(Wide<T>(dtype, x, rows * length).data(), rows, length, descending, out);
  });
}

}  // namespace gradcell::cpu
