// The largest elements of windows, and elements read and written at places of rows.
#include "ops/moving/window.h"

#include <limits>
#include <vector>

#include "cpu/calls/elements.h"
#include "cpu/kernels/tile_kernels.h"
#include "cpu/kernels/whole_kernels.h"

namespace gradcell::cpu {

namespace {

template <class T>
LargestOfSheet largest_of_sheet() {
  const TileWindows& w = tile_kernels().windows;
  if constexpr (std::is_same_v<T, float>) return w.f32;
  if constexpr (std::is_same_v<T, double>) return w.f64;
  if constexpr (std::is_same_v<T, int64_t>) return w.i64;
  return w.i32;
}

/// The windows of an image: its last two dimensions are a sheet, those before are walked over.
class ImageWindows {
 public:
  explicit ImageWindows(std::vector<WindowAxis> all) : outer(std::move(all)) {
    while (outer.size() < 2) outer.insert(outer.begin(), {1, 1, 1, 1, 1, 0});
    sheet = {along(outer[outer.size() - 2], rows), along(outer.back(), columns)};
    outer.resize(outer.size() - 2);
    for (const WindowAxis& a : outer) places.push_back(a.output), kernel.push_back(a.kernel);
  }

  /// `best` of every window of the image x, and where it is if `found`.
  template <class T>
  void largest(const T* x, int64_t results, T* best, int32_t* found) const {
    constexpr T kLeast = std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                                              : std::numeric_limits<T>::lowest();
    std::fill_n(best, results, kLeast);
    if (found) std::fill_n(found, results, -1);
    const LargestOfSheet larger = largest_of_sheet<T>();
    if (outer.empty()) return larger(sheet, x, best, found, 0);
    const int64_t in = int64_t{sheet.rows.input} * sheet.columns.input;
    const int64_t out = int64_t{sheet.rows.output} * sheet.columns.output;
    for_each_index(places, [&](int64_t r, const Dims& at) {
      for_each_index(kernel, [&](int64_t, const Dims& u) {
        const int64_t from = element_read(outer, at, u);
        if (from < 0) return;
        larger(sheet, x + from * in, best + r * out, found ? found + r * out : nullptr,
               narrow<int32_t>(from * in));
      });
    });
  }

  ImageWindows(const ImageWindows&) = delete;
  ImageWindows& operator=(const ImageWindows&) = delete;

 private:
  static SheetWindows::Axis along(const WindowAxis& a, std::vector<SheetWindows::Span>& spans) {
    auto n = [](int64_t v) { return narrow<int32_t>(v); };
    for (int64_t u = 0; u < a.kernel; ++u) {
      const int64_t by = u * a.dilation - a.before;
      const int64_t first = by >= 0 ? 0 : (-by + a.stride - 1) / a.stride;
      const int64_t behind = a.input > by ? (a.input - by + a.stride - 1) / a.stride : 0;
      const int64_t begin = std::min(first, a.output), end = std::min(behind, a.output);
      spans.push_back({n(begin), n(end), n(begin < end ? begin * a.stride + by : 0)});
    }
    return {n(a.input), n(a.kernel), n(a.output), n(a.stride), spans.data()};
  }

  std::vector<WindowAxis> outer;
  std::vector<SheetWindows::Span> rows, columns;
  SheetWindows sheet;
  Dims places, kernel;
};

}  // namespace

void window(const Call& c, const void* const* inputs, void* out) {
  const void* in = inputs[0];
  const std::vector<WindowAxis> axes =
      window_axes(c.in[0].dims, decode<WindowAttributes>(c.attributes));
  int64_t from = 1, to = 1, taps = 1;
  for (const WindowAxis& a : axes) from *= a.input, to *= a.output, taps *= a.kernel;
  if (c.out.count == 0) return;
  const ImageWindows windows(axes);
  const bool wanted = finds_places(c.op);
  const TileTranspose& t = tile_kernels().transpose;
  const DType type = c.in[0].dtype;
  by_compute(compute_type(type), [&]<class Tile>(Tile) {
    const bool as_is = is_compute_type(type);
    split(c.out.count / to, c.out.count * taps, [&](int64_t begin, int64_t end) {
      std::vector<Tile> image(as_is ? 0 : static_cast<size_t>(from));
      std::vector<Tile> best(as_is && !wanted ? 0 : static_cast<size_t>(to));
      for (int64_t i = begin; i < end; ++i) {
        const auto* x = static_cast<const Tile*>(in) + i * from;
        if (!as_is) {
          t.load(
              static_cast<const std::byte*>(in) + static_cast<size_t>(i * from) * item_size(type),
              type, image.data(), static_cast<size_t>(from));
          x = image.data();
        }
        if (wanted) {
          windows.largest<Tile>(x, to, best.data(), static_cast<int32_t*>(out) + i * to);
        } else if (as_is) {
          windows.largest<Tile>(x, to, static_cast<Tile*>(out) + i * to, nullptr);
        } else {
          windows.largest<Tile>(x, to, best.data(), nullptr);
          t.store(best.data(), type,
                  static_cast<std::byte*>(out) + static_cast<size_t>(i * to) * item_size(type),
                  static_cast<size_t>(to));
        }
      }
    });
  });
}

namespace {

/// The places of a row, checked; whether all are at elements of it.
bool checked(const Call& c, const int32_t* at, int64_t n, int64_t size) {
  constexpr int64_t kFew = 32;
  int32_t low = 0, high = -1;
  if (n < kFew) {
    for (int64_t i = 0; i < n; ++i) low = std::min(low, at[i]), high = std::max(high, at[i]);
  } else {
    whole_kernels().fold(Combine::Min, DType::Int32, at, static_cast<size_t>(n), &low);
    whole_kernels().fold(Combine::Max, DType::Int32, at, static_cast<size_t>(n), &high);
  }
  if (low < -1 || high >= size) [[unlikely]]
    fail(ErrorKind::Index, info(c.op).name, ": place ", low < -1 ? low : high,
         " is out of range for rows of ", size);
  return low >= 0;
}

}  // namespace

void take_along(const Call& c, const void* const* in, void* out) {
  const int64_t rows = c.out.dims[0], n = c.out.dims[1], size = c.in[0].dims[1];
  const auto* at = static_cast<const int32_t*>(in[1]);
  by_size(item_size(c.out.dtype), [&]<class S>() {
    constexpr int64_t kPicked = 3;  // as much work as so many that come one after the other
    split(rows, c.out.count * kPicked, [&](int64_t begin, int64_t end) {
      const bool all = checked(c, at + begin * n, (end - begin) * n, size);
      for (int64_t r = begin; r < end; ++r) {
        const S* from = static_cast<const S*>(in[0]) + r * size;
        const int32_t* places = at + r * n;
        S* to = static_cast<S*>(out) + r * n;
        if (all)
          for (int64_t i = 0; i < n; ++i) to[i] = from[places[i]];
        else
          for (int64_t i = 0; i < n; ++i) to[i] = places[i] < 0 ? S{} : from[places[i]];
      }
    });
  });
}

void put_along(const Call& c, const void* const* in, void* out) {
  const int64_t rows = c.out.dims[0], size = c.out.dims[1], n = c.in[0].dims[1];
  const auto* at = static_cast<const int32_t*>(in[0]);
  by_dtype(c.out.dtype, [&]<class S>() {
    using C = typename ComputeOf<S>::type;
    split(rows, c.out.count + c.in[0].count, [&](int64_t begin, int64_t end) {
      const int32_t* places = at + begin * n;
      const S* from = static_cast<const S*>(in[1]) + begin * n;
      S* to = static_cast<S*>(out) + begin * size;
      const bool all = checked(c, places, (end - begin) * n, size);
      auto add = [&](C* sum) {
        for (int64_t i = 0; i < n; ++i)
          if (all || places[i] >= 0)
            sum[places[i]] = static_cast<C>(sum[places[i]] + static_cast<C>(from[i]));
      };
      std::vector<C> sums(std::is_same_v<S, C> ? 0 : static_cast<size_t>(size));
      if constexpr (std::is_same_v<S, C>) std::fill_n(to, (end - begin) * size, C(0));
      for (int64_t r = begin; r < end; ++r, places += n, from += n, to += size) {
        if constexpr (std::is_same_v<S, C>) {
          add(to);
        } else {
          std::fill(sums.begin(), sums.end(), C(0));
          add(sums.data());
          for (int64_t j = 0; j < size; ++j) to[j] = S(sums[static_cast<size_t>(j)]);
        }
      }
    });
  });
}

}  // namespace gradcell::cpu
