#include "runtime/placement.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/element.h"
#include "base/parts.h"
#include "cpu/kernels/whole_kernels.h"
#include "runtime/views.h"

namespace gradcell {

namespace {

/// Strides of dims that broadcast to others, aligned at the end.
Dims spread_strides(const Dims& dims, const Dims& to) {
  const Dims own = row_major(dims);
  Dims strides(to.size(), 0);
  for (size_t k = 0; k < dims.size(); ++k)
    if (dims[k] != 1) strides[to.size() - dims.size() + k] = own[k];
  return strides;
}

[[noreturn, gnu::cold, gnu::noinline]] void out_of_bounds(int64_t index, int64_t size) {
  fail(ErrorKind::Index, "index ", index, " is out of bounds for dimension with size ", size);
}

/// f(a pointer to elements of an index, from one on): numbers of another dtype are none.
template <class F>
void with_index(const Array& index, int64_t from, F f) {
  if (index.dtype == DType::Int32) return f(static_cast<const int32_t*>(index.data()) + from);
  require(index.dtype == DType::Int64, ErrorKind::Type, "an index is of int32 or int64, not of ",
          name(index.dtype));
  f(static_cast<const int64_t*>(index.data()) + from);
}

std::vector<int64_t> checked(const Array& places, int64_t size) {
  std::vector<int64_t> at(static_cast<size_t>(places.count()));
  with_index(places, 0, [&](const auto* from) {
    for (size_t i = 0; i < at.size(); ++i) {
      const auto p = static_cast<int64_t>(from[i]);
      if (p < -size || p >= size) [[unlikely]]
        out_of_bounds(p, size);
      at[i] = p < 0 ? p + size : p;
    }
  });
  return at;
}

void check_values(const Array& x, const Array& values) {
  require(values.dtype == x.dtype, ErrorKind::Type, "values of ", name(values.dtype),
          " are not written to elements of ", name(x.dtype));
}

}  // namespace

std::optional<Array> joined_index(std::span<const Array> indices, std::span<const int64_t> sizes) {
  for (const Array& a : indices)
    if ((a.dtype != DType::Int32 && a.dtype != DType::Int64) || a.dims != indices[0].dims ||
        !on_host(a))
      return {};
  Array joined = empty_array(DType::Int64, indices[0].dims);
  auto* const to = static_cast<int64_t*>(joined.data());
  const int64_t count = joined.count();
  std::fill_n(to, count, 0);
  for (size_t k = 0; k < indices.size(); ++k) {
    const int64_t size = sizes[k];
    auto add = [&](const auto* index) {
      for (int64_t i = 0; i < count; ++i) {
        const auto at = static_cast<int64_t>(index[i]);
        if (at < -size || at >= size) [[unlikely]]
          out_of_bounds(at, size);
        to[i] = to[i] * size + (at < 0 ? at + size : at);
      }
    };
    with_index(indices[k], 0, add);
  }
  return joined;
}

namespace {

/// Values that broadcast to [outer..., m, inner...], the slices that they are written to.
struct SliceValues {
  Dims to, strides;
  size_t axis;                        ///< that of m
  bool side_by_side = true;           ///< the elements of a slice
  bool same = true, all_same = true;  ///< one number, for a slice and for all of them

  SliceValues(const Array& values, Dims dims, size_t axis)
      : to(std::move(dims)), strides(spread_strides(values.dims, to)), axis(axis) {
    const Dims after(to.begin() + static_cast<ptrdiff_t>(axis) + 1, to.end());
    const Dims rows = row_major(after);
    for (size_t k = 0; k < after.size(); ++k) {
      if (after[k] == 1) continue;
      side_by_side &= strides[axis + 1 + k] == rows[k];
      same &= strides[axis + 1 + k] == 0;
    }
    all_same = std::all_of(strides.begin(), strides.end(), [](int64_t s) { return s == 0; });
  }

  /// Where those of outer place o begin.
  int64_t begin(int64_t o) const {
    int64_t lies = 0;
    for (size_t k = axis, rest = static_cast<size_t>(o); k-- > 0;) {
      lies += static_cast<int64_t>(rest % static_cast<size_t>(to[k])) * strides[k];
      rest /= static_cast<size_t>(to[k]);
    }
    return lies;
  }
};

/// x as [outer][n][inner], of which slices at places of n are written.
struct SliceTarget {
  std::byte* base;
  size_t item;
  int64_t outer, n, inner;
};

/// One number to single elements of many lines: nothing to find out in between.
void write_number(const SliceTarget& x, const std::vector<int64_t>& at, const std::byte* from) {
  by_size(x.item, [&]<class S>() {
    const S value = *reinterpret_cast<const S*>(from);
    by_parts(x.outer, static_cast<int64_t>(at.size()), [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; ++o) {
        S* line = reinterpret_cast<S*>(x.base) + o * x.n;
        for (const int64_t p : at) line[p] = value;
      }
    });
  });
}

/// Elements begin to end of each slice of outer place o.
void write_parts(const SliceTarget& x, const std::vector<int64_t>& at, const std::byte* from,
                 const SliceValues& v, int64_t o, int64_t begin, int64_t end) {
  const int64_t lies = v.begin(o);
  const size_t item = x.item, bytes = static_cast<size_t>(x.inner) * item;
  const auto skip = static_cast<size_t>(begin) * item;
  const auto length = static_cast<size_t>(end - begin) * item;
  for (size_t i = 0; i < at.size(); ++i) {
    const int64_t place = lies + static_cast<int64_t>(i) * v.strides[v.axis];
    const std::byte* value = from + static_cast<size_t>(place) * item;
    std::byte* slice = x.base + static_cast<size_t>(o * x.n + at[i]) * bytes;
    if (length == item) {
      by_size(item, [&]<class S>() { std::memcpy(slice + skip, value, sizeof(S)); });
    } else if (v.side_by_side) {
      std::memcpy(slice + skip, value + skip, length);
    } else {
      by_size(item, [&]<class S>() {
        auto* to = reinterpret_cast<S*>(slice + skip);
        std::fill_n(to, end - begin, *reinterpret_cast<const S*>(value));
      });
    }
  }
}

}  // namespace

bool write_slices(const TensorPtr& x, int64_t axis, int64_t count, const Array& places,
                  const Array& values) {
  const Window* w = x->window();
  Tensor& root = x->root();
  if (w && !(is_whole(w->layout, element_count(root.dims())))) return false;
  if (!on_host(root.value()) || !on_host(places) || !on_host(values)) return false;
  check_values(root.value(), values);
  const Dims& dims = x->dims();
  const auto first = static_cast<size_t>(axis), last = first + static_cast<size_t>(count);
  const int64_t m = places.count(), n = product(dims, first, last);
  const int64_t outer = product(dims, 0, first), inner = product(dims, last, dims.size());
  Dims to(dims.begin(), dims.begin() + axis);
  to.push_back(m);
  to.insert(to.end(), dims.begin() + axis + count, dims.end());
  const SliceValues v(values, std::move(to), first);
  if (!v.side_by_side && !v.same) return false;
  const std::vector<int64_t> at = checked(places, n);
  auto* const from = static_cast<const std::byte*>(values.data());
  root.overwrite([&](const Array& own) {
    const SliceTarget target{static_cast<std::byte*>(own.data()), item_size(own.dtype), outer, n,
                             inner};
    if (inner == 1 && v.all_same && m > 0) return write_number(target, at, from);
    constexpr int64_t kStrip = 256;
    const int64_t strips = (inner + kStrip - 1) / kStrip;
    by_parts(outer * strips, m * std::min(inner, kStrip), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end;) {
        const int64_t o = i / strips, s = i % strips, until = std::min(strips, s + end - i);
        write_parts(target, at, from, v, o, s * kStrip, std::min(inner, until * kStrip));
        i += until - s;
      }
    });
  });
  return true;
}

namespace {

size_t axis_of(const Array& x, int64_t axis) {
  require(axis >= 0 && static_cast<size_t>(axis) < x.dims.size(), ErrorKind::Value, "axis ", axis,
          " is out of range for shape ", listed(x.dims));
  return static_cast<size_t>(axis);
}

/// What an index along an axis of x means: index [outer, m, inner] into x [outer, n, inner].
struct Along {
  int64_t outer, n, m, inner;
};

Along along(const Array& x, int64_t axis, const Array& index) {
  const size_t a = axis_of(x, axis);
  require(index.dims.size() == x.dims.size(), ErrorKind::Value, "shapes ", listed(x.dims), " and ",
          listed(index.dims), " do not fit");
  const Along s{product(x.dims, 0, a), x.dims[a], index.dims[a],
                product(x.dims, a + 1, x.dims.size())};
  require(index.count() == s.outer * s.m * s.inner, ErrorKind::Value, "shapes ", listed(x.dims),
          " and ", listed(index.dims), " do not fit");
  return s;
}

/// pair(place in x, place in index) for each index, checked, in the index's order along the axis.
template <class F>
void each_along(const Along& s, const Array& index, F pair) {
  constexpr int64_t kStrip = 256;
  // Places along the axis of the indices from `first` on.
  auto find = [&](int64_t first, int64_t count, int64_t* places) {
    with_index(index, first, [&](const auto* from) {
      if (cpu::whole_kernels().places(index.dtype, from, static_cast<size_t>(count), s.n, places))
          [[likely]]
        return;
      for (int64_t i = 0; i < count; ++i)
        if (from[i] < -s.n || from[i] >= s.n) out_of_bounds(from[i], s.n);
    });
  };
  if (s.inner == 1 && s.m == 1)  // an element of each row
    return by_parts(s.outer, 4, [&](int64_t begin, int64_t end) {
      int64_t places[kStrip];
      for (int64_t first = begin; first < end; first += kStrip) {
        const int64_t count = std::min(kStrip, end - first);
        find(first, count, places);
        for (int64_t i = 0; i < count; ++i) pair((first + i) * s.n + places[i], first + i);
      }
    });
  if (s.inner == 1)  // rows
    return by_parts(s.outer, 4 * s.m, [&](int64_t begin, int64_t end) {
      int64_t places[kStrip];
      for (int64_t o = begin; o < end; ++o)
        for (int64_t first = 0; first < s.m; first += kStrip) {
          const int64_t count = std::min(kStrip, s.m - first), own = o * s.m + first;
          find(own, count, places);
          for (int64_t i = 0; i < count; ++i) pair(o * s.n + places[i], own + i);
        }
    });
  const int64_t strips = (s.inner + kStrip - 1) / kStrip;
  by_parts(s.outer * strips, 4 * s.m * std::min(s.inner, kStrip), [&](int64_t begin, int64_t end) {
    int64_t places[kStrip];
    for (int64_t strip = begin; strip < end; ++strip) {
      const int64_t o = strip / strips, first = strip % strips * kStrip;
      const int64_t count = std::min(s.inner - first, kStrip);
      for (int64_t i = 0; i < s.m; ++i) {
        const int64_t line = o * s.n * s.inner + first, own = (o * s.m + i) * s.inner + first;
        find(own, count, places);
        for (int64_t k = 0; k < count; ++k) pair(line + places[k] * s.inner + k, own + k);
      }
    }
  });
}

}  // namespace

Array elements_along(const Array& x, int64_t axis, const Array& index) {
  Array out = empty_array(x.dtype, index.dims);
  by_size(item_size(x.dtype), [&]<class S>() {
    const S* const from = static_cast<const S*>(x.data());
    S* const to = static_cast<S*>(out.data());
    each_along(along(x, axis, index), index,
               [=](int64_t there, int64_t i) { to[i] = from[there]; });
  });
  return out;
}

Array with_elements(const Array& x, int64_t axis, const Array& index, const Array& values,
                    bool added) {
  check_values(x, values);
  require(index.dims == values.dims, ErrorKind::Value, "with_elements: values ",
          listed(values.dims), " for indices ", listed(index.dims));
  const Along s = along(x, axis, index);
  require(!added || (!is_complex(x.dtype) && x.dtype != DType::Bool), ErrorKind::Type,
          "elements of ", name(x.dtype), " are not added in place");
  const Array out = duplicate(x);
  if (added) {
    by_dtype_and_size(x.dtype, [&]<class S>() {
      using C = typename ComputeOf<S>::type;
      S* const to = static_cast<S*>(out.data());
      const S* const from = static_cast<const S*>(values.data());
      each_along(s, index, [=](int64_t there, int64_t i) {
        to[there] = S(static_cast<C>(static_cast<C>(to[there]) + static_cast<C>(from[i])));
      });
    });
    return out;
  }
  by_size(item_size(x.dtype), [&]<class S>() {
    S* const to = static_cast<S*>(out.data());
    const S* const from = static_cast<const S*>(values.data());
    each_along(s, index, [=](int64_t there, int64_t i) { to[there] = from[i]; });
  });
  return out;
}

Array with_slices_added(const Array& x, int64_t axis, const Array& places, const Array& values) {
  const size_t a = axis_of(x, axis);
  const int64_t n = x.dims[a], m = places.count();
  const int64_t outer = product(x.dims, 0, a), inner = product(x.dims, a + 1, x.dims.size());
  check_values(x, values);
  require(values.count() == outer * m * inner, ErrorKind::Value,
          "with_slices_added: ", listed(values.dims), " added to ", listed(x.dims));
  const std::vector<int64_t> at = checked(places, n);
  const Array out = inner == 1 ? duplicate(x) : empty_array(x.dtype, x.dims);
  by_dtype_and_size(x.dtype, [&]<class S>() {
    using C = typename ComputeOf<S>::type;
    S* const to = static_cast<S*>(out.data());
    const S* const from = static_cast<const S*>(values.data());
    if (inner == 1)  // lines
      return by_parts(outer, 2 * m, [&](int64_t begin, int64_t end) {
        for (int64_t o = begin; o < end; ++o) {
          S* line = to + o * n;
          const S* y = from + o * m;
          for (int64_t i = 0; i < m; ++i) {
            S& z = line[at[static_cast<size_t>(i)]];
            z = S(static_cast<C>(static_cast<C>(z) + static_cast<C>(y[i])));
          }
        }
      });
    // Rows: some are copied, and what is added to them meets them in the cache.
    const int64_t several = std::max<int64_t>(1, 1024 / std::max<int64_t>(1, inner));
    std::vector<int64_t> after(static_cast<size_t>(m)), first(static_cast<size_t>(n), -1);
    for (int64_t i = m - 1; i >= 0; --i) {
      int64_t& head = first[static_cast<size_t>(at[static_cast<size_t>(i)])];
      after[static_cast<size_t>(i)] = std::exchange(head, i);
    }
    const S* const old = static_cast<const S*>(x.data());
    by_parts(outer * n, 2 * inner, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        S* const z = to + row * inner;
        if ((row - begin) % several == 0)
          std::copy_n(old + row * inner, std::min(several, end - row) * inner, z);
        for (int64_t i = first[static_cast<size_t>(row % n)]; i >= 0;
             i = after[static_cast<size_t>(i)]) {
          const S* const y = from + (row / n * m + i) * inner;
          for (int64_t k = 0; k < inner; ++k)
            z[k] = S(static_cast<C>(static_cast<C>(z[k]) + static_cast<C>(y[k])));
        }
      }
    });
  });
  return out;
}

namespace {

/// f(a pointer to elements, whose bits say whether they are zero, and a mask of those that do).
template <class F>
void with_bits(const Array& x, F f) {
  // A zero of either sign has no other bit than the sign.
  auto floating = [&]<class U>(U) {
    f(static_cast<const U*>(x.data()), static_cast<U>(static_cast<U>(~U(0)) >> 1));
  };
  auto whole = [&]<class U>(U) { f(static_cast<const U*>(x.data()), static_cast<U>(~U(0))); };
  switch (item_size(x.dtype)) {
    case 1:
      return whole(uint8_t());
    case 2:
      return is_floating(x.dtype) ? floating(uint16_t()) : whole(uint16_t());
    case 4:
      return is_floating(x.dtype) ? floating(uint32_t()) : whole(uint32_t());
    default:
      return is_floating(x.dtype) ? floating(uint64_t()) : whole(uint64_t());
  }
}

}  // namespace

Array places_not_zero(const Array& x) {
  require(!is_complex(x.dtype), ErrorKind::Type, "places_not_zero: got ", name(x.dtype));
  const int64_t n = x.count(), rank = static_cast<int64_t>(x.dims.size());
  const int64_t parts = std::clamp<int64_t>(n / 16384, 1, 64);
  std::vector<int64_t> starts(static_cast<size_t>(parts) + 1, 0);
  Array out;
  with_bits(x, [&](const auto* p, auto mask) {
    auto part = [&](int64_t i) { return n * i / parts; };
    parallel_for(parts, [&](int i, int) {
      int64_t found = 0;
      for (int64_t k = part(i); k < part(i + 1); ++k) found += (p[k] & mask) != 0;
      starts[static_cast<size_t>(i) + 1] = found;
    });
    std::partial_sum(starts.begin(), starts.end(), starts.begin());
    out = empty_array(DType::Int64, {starts.back(), rank});
    auto* const to = static_cast<int64_t*>(out.data());
    const int64_t last = rank > 0 ? x.dims.back() : 1;
    parallel_for(parts, [&](int i, int) {
      int64_t* row = to + starts[static_cast<size_t>(i)] * rank;
      Dims at(x.dims.size(), 0);  // of the line that k is in
      int64_t line = -1;
      for (int64_t k = part(i); k < part(i + 1);) {
        if (rank > 0 && line != k / last) {
          line = k / last;
          for (int64_t d = rank - 2, rest = line; d >= 0; rest /= x.dims[static_cast<size_t>(d--)])
            at[static_cast<size_t>(d)] = rest % x.dims[static_cast<size_t>(d)];
        }
        const int64_t end = std::min(part(i + 1), (k / last + 1) * last);
        for (; k < end; ++k) {
          if ((p[k] & mask) == 0) continue;
          for (int64_t d = 0; d + 1 < rank; ++d) row[d] = at[static_cast<size_t>(d)];
          if (rank > 0) row[rank - 1] = k % last;
          row += rank;
        }
      }
    });
  });
  return out;
}

Array places_in_triangle(int64_t rows, int64_t columns, int64_t offset, bool below) {
  require(rows >= 0 && columns >= 0, ErrorKind::Value, "a matrix of ", rows, " by ", columns);
  element_count(Dims{2, rows, columns});
  auto first = [&](int64_t i) { return below ? 0 : std::clamp<int64_t>(i + offset, 0, columns); };
  auto last = [&](int64_t i) {
    return below ? std::clamp<int64_t>(i + offset + 1, 0, columns) : columns;
  };
  std::vector<int64_t> starts(static_cast<size_t>(rows) + 1, 0);
  for (int64_t i = 0; i < rows; ++i)
    starts[static_cast<size_t>(i) + 1] = starts[static_cast<size_t>(i)] + last(i) - first(i);
  const int64_t count = starts.back();
  Array out = empty_array(DType::Int64, {2, count});
  auto* const to = static_cast<int64_t*>(out.data());
  by_parts(rows, columns, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t* row = to + starts[static_cast<size_t>(i)];
      std::fill_n(row, last(i) - first(i), i);
      std::iota(row + count, row + count + (last(i) - first(i)), first(i));
    }
  });
  return out;
}

}  // namespace gradcell
