#include "runtime/occurrences.h"

#include <numeric>
#include <vector>

#include "base/counted.h"
#include "cpu/calls/order/order.h"
#include "cpu/calls/order/order_keys.h"
#include "cpu/calls/wide.h"
#include "cpu/kernels/whole_kernels.h"

namespace gradcell {

namespace {

/// A table over the keys of some elements is worth it if it is not much longer than they are many.
template <class K>
struct Span {
  K low = 0, width = 0;  ///< keys from low to low + width
  bool small = false;
};

template <class T>
auto span_of(const T* x, int64_t n) {
  using K = decltype(key_of(*x));
  Span<K> span;
  if constexpr (std::is_floating_point_v<T>) return span;
  if (n == 0) return span;
  const int64_t parts = std::clamp<int64_t>(n / 65536, 1, 64);
  std::vector<K> low(static_cast<size_t>(parts)), high(static_cast<size_t>(parts));
  parallel_for(parts, [&](int p, int) {
    const int64_t first = n * p / parts, last = n * (p + 1) / parts;
    K least = key_of(x[first]), most = least;
    for (int64_t i = first; i < last; ++i) {
      const K k = key_of(x[i]);
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

}  // namespace

std::pair<Array, Array> first_occurrences(const Array& x, DType place) {
  const int64_t n = x.count();
  Array index = empty_array(place, x.dims);
  std::vector<int64_t> firsts;
  require(!is_complex(x.dtype) && x.count() < INT32_MAX, ErrorKind::Type, "unique: ", x.count(),
          " elements of ", name(x.dtype), " are not put in order");
  cpu::by_wide_dtype(x.dtype, [&]<class T>() {
    const cpu::Wide<T> elements(x.dtype, x.data(), n);
    const T* const from = elements.data();
    const auto span = span_of(from, n);
    with_positions(index.dtype, index.data(), [&](auto* at) {
      using P = std::remove_const_t<std::remove_reference_t<decltype(*at)>>;
      auto* const to = const_cast<P*>(at);
      if (span.small) {
        std::vector<P> table(static_cast<size_t>(span.width) + 1, P(-1));
        for (int64_t i = 0; i < n; ++i) {
          P& seen = table[static_cast<size_t>(key_of(from[i]) - span.low)];
          if (seen < 0) {
            seen = narrow<P>(firsts.size());
            firsts.push_back(i);
          }
          to[i] = seen;
        }
        return;
      }
      // In order, equal elements are neighbours, the first occurrence in front.
      std::vector<int32_t> order(static_cast<size_t>(n));
      cpu::order_of_rows(x.dtype, x.data(), 1, n, false, order.data());
      std::vector<int64_t> run(static_cast<size_t>(n), -1);  // at a first occurrence: its place
      std::vector<int64_t> first_of(static_cast<size_t>(n));
      for (int64_t i = 0, head = 0; i < n; ++i) {
        if (i == 0 || key_of(from[order[i]]) != key_of(from[order[head]]))
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
          to[i] = narrow<P>(run[static_cast<size_t>(first_of[static_cast<size_t>(i)])]);
      });
    });
  });
  return {positions(firsts), index};
}

std::pair<Array, Array> runs(const Array& x) {
  const int64_t n = x.count(), parts = std::clamp<int64_t>(n / 32768, 1, 64);
  std::vector<int64_t> begins(static_cast<size_t>(parts) + 1, 0);
  Array starts, values;
  cpu::by_wide_dtype(x.dtype, [&]<class T>() {
    const cpu::Wide<T> elements(x.dtype, x.data(), n);
    const T* const from = elements.data();
    auto begins_run = [&](int64_t i) { return from[i] != from[i - 1]; };
    parallel_for(parts, [&](int part, int) {
      const int64_t first = n * part / parts, last = n * (part + 1) / parts;
      int64_t found = first == 0 && n > 0;
      for (int64_t i = std::max<int64_t>(first, 1); i < last; ++i) found += begins_run(i);
      begins[static_cast<size_t>(part) + 1] = found;
    });
    std::partial_sum(begins.begin(), begins.end(), begins.begin());
    starts = empty_array(DType::Int64, {begins.back()});
    values = empty_array(x.dtype, {begins.back()});
    const cpu::WideResults<T> firsts(x.dtype, values.data(), begins.back());
    parallel_for(parts, [&](int part, int) {
      int64_t k = begins[static_cast<size_t>(part)], i = n * part / parts;
      const int64_t end = begins[static_cast<size_t>(part) + 1];
      auto* at = static_cast<int64_t*>(starts.data());
      T* const value = firsts.data();
      auto write = [&](bool moves) {  // always, and moves on where it counts
        at[k] = i;
        value[k] = from[i];
        k += moves;
        ++i;
      };
      if (i == 0 && k < end) write(true);
      while (k < end) write(begins_run(i));
    });
    firsts.finish();
  });
  return {starts, values};
}

Array counts_of(const Array& x, int64_t length) {
  Array out = empty_array(DType::Float32, {length});
  cpu::by_wide_dtype(x.dtype, [&]<class T>() {
    const cpu::Wide<T> elements(x.dtype, x.data(), x.count());
    const T* const from = elements.data();
    const auto found = counted(x.count(), length, [&](int64_t begin, int64_t end, int64_t* table) {
      for (int64_t i = begin; i < end; ++i) {
        const auto at = narrow<int64_t>(from[i]);
        require(at >= 0 && at < length, ErrorKind::Value, "bincount: ", at, " is not from 0 to ",
                length - 1);
        ++table[at];
      }
    });
    std::copy(found.begin(), found.end(), static_cast<float*>(out.data()));
  });
  return out;
}

std::pair<int64_t, int64_t> bounds(const Array& x) {
  const int64_t n = x.count(), parts = std::clamp<int64_t>(n / 65536, 1, 64);
  if (n == 0) return {0, -1};
  std::vector<int64_t> low(static_cast<size_t>(parts)), high(static_cast<size_t>(parts));
  require(x.dtype == DType::Int32 || x.dtype == DType::Int64, ErrorKind::Type,
          "bounds: int32 or int64 is needed, got ", name(x.dtype));
  with_positions(x.dtype, x.data(), [&](const auto* p) {
    parallel_for(parts, [&](int part, int) {
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

}  // namespace gradcell
