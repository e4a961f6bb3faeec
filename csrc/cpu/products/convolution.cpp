#include "cpu/products/convolution.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <type_traits>
#include <vector>

#include "base/scratch.h"
#include "base/thread_pool.h"
#include "cpu/kernels/pair_kernels.h"
#include "cpu/kernels/tile_kernels.h"
#include "cpu/products/shifts.h"

namespace gradcell::cpu {

namespace {

using Part = ConvolutionPart;
constexpr int64_t ceil_div(int64_t n, int64_t by) { return (n + by - 1) / by; }

/// Work that is cut for the threads: below, waking them would take as long.
constexpr int64_t kParallelWork = 1'000'000;
/// Of a band's copy and results, which stay in the second-level cache.
constexpr int64_t kBandBytes = 512 << 10;
/// How many parts the work is cut into at least, whatever the number of threads.
constexpr int64_t kTasks = 8;
/// Of the partial gradients of weights.
constexpr int64_t kPartialElements = 1 << 21;

/// What copies are made of: T itself, or where the processor multiplies pairs of bfloat16 (see
/// pair_kernels.h) pairs of channels, and numbers as they are.
using Number = uint16_t;
template <class T>
constexpr bool kPairs = std::is_same_v<T, Pair>;
template <class T>
constexpr bool kNumbers = std::is_same_v<T, Number>;
/// What products of them are added up in.
template <class T>
using Sum = std::conditional_t<kPairs<T> || kNumbers<T>, float, T>;
/// Places are a multiple of what a vector has.
template <class T>
constexpr int64_t kPlaces = kNumbers<T> ? 32 : 16;

template <class T>
constexpr DType kType = std::is_same_v<T, double> ? DType::Float64 : DType::Float32;

// Scratch: what all threads read, what one makes for itself, and half types widened.
struct Shared;
struct Own;
struct Widened;
struct Dots;

template <class F>
void for_each(int64_t tasks, int64_t work, F body) {
  parallel_if(work >= kParallelWork, tasks, body);
}

/// Rows of a tensor's last dimension that lie `row` elements apart: every step-th element of each,
/// of a type that T computes for.
template <class T>
struct Sheet {
  std::byte* data;
  DType stored;
  int64_t first, row, step;
  int64_t partner = 0;  ///< of pairs: how far behind the other channel is; 0: it is zero

  std::byte* at(int64_t element) const {
    return data + static_cast<size_t>(element) * item_size(stored);
  }
  /// n elements of each of `rows` rows, spread out to `pitch` with zeros between.
  void read(int64_t rows, int64_t n, T* to, int64_t pitch) const {
    if (rows == 0 || n == 0) {
      std::memset(to, 0, static_cast<size_t>(rows * pitch) * sizeof(T));
      return;
    }
    const auto height = narrow<int>(rows), width = narrow<int>(n);
    const T* from = reinterpret_cast<const T*>(at(first));
    if constexpr (kNumbers<T>) {
      return pair_kernels()->spread_numbers(from, row, step, height, width, to, pitch);
    } else if constexpr (kPairs<T>) {
      auto number = [&](int64_t i) { return reinterpret_cast<const Number*>(at(i)); };
      return pair_kernels()->spread(number(first), partner ? number(first + partner) : nullptr, row,
                                    step, height, width, to, pitch);
    } else {
      read_widened(from, rows, n, to, pitch);
    }
  }
  void read_widened(const T* from, int64_t rows, int64_t n, T* to, int64_t pitch) const {
    int64_t apart = row;
    if (stored != kType<T>) {
      const int64_t reach = (n - 1) * step + 1;
      T* const wide = kept<T, Widened>(rows * reach);
      for (int64_t r = 0; r < rows; ++r)
        tile_kernels().transpose.load(at(first + r * row), stored, wide + r * reach,
                                      static_cast<size_t>(reach));
      from = wide, apart = reach;
    }
    tile_kernels().shifted<T>().spread(from, apart, step, narrow<int>(rows), narrow<int>(n), to,
                                       pitch);
  }
  void write(int64_t rows, int64_t n, const T* from, int64_t pitch) const {
    if (stored == kType<T>)
      return tile_kernels().shifted<T>().collect(from, pitch, narrow<int>(rows), narrow<int>(n),
                                                 reinterpret_cast<T*>(at(first)), row, step);
    if (stored == DType::BFloat16 && pair_kernels())
      return pair_kernels()->collect(reinterpret_cast<const float*>(from), pitch, narrow<int>(rows),
                                     narrow<int>(n), reinterpret_cast<Number*>(at(first)), row,
                                     step);
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t i = 0; i < (step == 1 ? 1 : n); ++i)
        tile_kernels().transpose.store(from + r * pitch + i, stored, at(first + r * row + i * step),
                                       static_cast<size_t>(step == 1 ? n : 1));
  }
};

/// A tensor [images, channels, ...].
template <class T>
struct Images {
  std::byte* data;
  DType stored;
  Dims dims;  ///< of an image's channel
  int64_t partner = 0;

  int64_t plane() const { return element_count(dims); }
  Sheet<T> sheet(int64_t first, int64_t row, int64_t step) const {
    return {data, stored, first, row, step, partner};
  }
  T element(int64_t i) const {
    T value;
    sheet(i, 1, 1).read(1, 1, &value, 1);
    return value;
  }
};

/// A band of results: [begin, end) along the outermost dimension.
struct Band {
  int64_t image, begin, end;
};

template <class T>
class Walk {
 public:
  using Result = std::conditional_t<kNumbers<T>, T, Sum<T>>;
  Walk(const ConvolutionSizes& sizes, bool forwards, int64_t channels, int64_t results)
      : sizes_(sizes),
        shifts_(sizes, forwards),
        channels_(channels),
        copies_(kPairs<T> ? ceil_div(channels, 2) : channels) {
    const int64_t n = shifts_.axes[0].count;
    auto bytes = [&](int64_t rows) {
      return copies_ * shifts_.planes * shifts_.plane_size(0, rows) * int64_t(sizeof(T)) +
             results * shifts_.places(0, rows) * int64_t(sizeof(Result));
    };
    bands_ = 1;
    if (sizes.work() >= kParallelWork && sizes.images > 0)
      bands_ = std::min(ceil_div(kTasks, sizes.images), ceil_div(n, 4));
    while (bands_ < n && bytes(ceil_div(n, bands_)) > kBandBytes) bands_ = std::min(n, 2 * bands_);
    bands_ = std::max<int64_t>(1, bands_);
    rows_ = ceil_div(n, bands_);
    plane_ = shifts_.plane_size(0, rows_);
    places_ = shifts_.places(0, rows_) + (shifts_.stride.size() > 1 ? row_pitch() : 0);
    places_ = ceil_div(places_, kPlaces<T>) * kPlaces<T>;
    require(copy_size() < INT32_MAX, ErrorKind::Memory, "convolution: one row of ", channels,
            " channels has more elements than can be addressed");
  }

  const Shifts& shifts() const { return shifts_; }
  int64_t units() const { return sizes_.images * bands_; }
  Band band(int64_t unit) const {
    const int64_t begin = unit % bands_ * rows_;
    return {unit / bands_, std::min(begin, shifts_.axes[0].count),
            std::min(begin + rows_, shifts_.axes[0].count)};
  }
  /// Elements of a channel's (or a pair's) copy, of all copies (with what reading in whole vectors
  /// needs behind it), and places of a band's results (and of what its last row takes more than
  /// that).
  int64_t channel() const { return plane_ * shifts_.planes; }
  int64_t copy_size() const { return copies_ * channel() + kBehind; }
  int64_t places() const { return places_; }
  std::vector<ShiftTap> taps(const std::vector<const ShiftAxis::Class*>& of) const {
    return taps_of(shifts_, sizes_, of, plane_);
  }

  /// Channels [first, first + channels) of the band's image, with their margins.
  void copy(Images<T> from, int64_t first, const Band& band, T* to) const {
    const int64_t plane = from.plane(), step = kPairs<T> ? 2 : 1;
    Dims phase(shifts_.axes.size(), 0);
    for (int64_t c = 0; c < copies_; ++c) {
      if (kPairs<T>) from.partner = 2 * c + 1 < channels_ ? plane : 0;
      for (int64_t p = 0; p < shifts_.planes; ++p) {
        T* const origin = to + c * channel() + p * plane_;
        std::memset(origin, 0, static_cast<size_t>(shifts_.lead) * sizeof(T));
        T* end = origin + shifts_.lead;
        copy_rows(from, (first + c * step) * plane, 0, band.begin + shifts_.axes[0].low,
                  shifts_.rows(band.begin, band.end), phase, end);
        std::memset(end, 0, static_cast<size_t>(origin + plane_ - end) * sizeof(T));
        for (size_t k = phase.size(); k-- > 0;) {
          if (++phase[k] < static_cast<int64_t>(shifts_.axes[k].phases.size())) break;
          phase[k] = 0;
        }
      }
    }
    std::memset(to + copies_ * channel(), 0, static_cast<size_t>(kBehind) * sizeof(T));
  }

  /// f(first element, elements between rows, place, rows, how many in each) for the sheets of a
  /// channel's results in the band, of one class. Rows lie stride() places apart.
  template <class F>
  void for_sheets(const std::vector<const ShiftAxis::Class*>& of, const Dims& dims,
                  const Band& band, F f) const {
    const int64_t begin = band.begin, end = std::min(band.end, of[0]->count);
    if (begin >= end) return;
    const size_t last = of.size() - 1;
    const Dims strides = row_major(dims);
    int64_t element = 0;
    for (size_t k = 0; k <= last; ++k)
      element += (of[k]->first + (k == 0 ? begin : 0) * shifts_.axes[k].step) * strides[k];
    auto count = [&](size_t k) { return k == 0 ? end - begin : of[k]->count; };
    if (last == 0) return f(element, 0, 0, 1, count(0));
    const int64_t row = shifts_.axes[last - 1].step * strides[last - 1];
    if (last == 1) return f(element, row, 0, count(0), count(1));
    Dims box(last - 1);
    for (size_t k = 0; k + 1 < last; ++k) box[k] = count(k);
    for_each_index(box, [&](int64_t, const Dims& at) {
      int64_t there = element, place = 0;
      for (size_t k = 0; k < at.size(); ++k) {
        there += at[k] * shifts_.axes[k].step * strides[k];
        place += at[k] * shifts_.stride[k];
      }
      f(there, row, place, count(last - 1), count(last));
    });
  }
  /// Places between the rows of a sheet.
  int64_t row_pitch() const {
    return shifts_.stride.size() > 1 ? shifts_.stride[shifts_.stride.size() - 2] : places_;
  }

 private:
  static constexpr int64_t kBehind = 64;

  /// Rows [j, j + count) of dimension k, zeros beyond the image; moves `to` behind them.
  void copy_rows(const Images<T>& from, int64_t element, size_t k, int64_t j, int64_t count,
                 const Dims& phase, T*& to) const {
    const ShiftAxis& a = shifts_.axes[k];
    const int64_t first = a.phases[static_cast<size_t>(phase[k])], there = a.elements(first);
    const int64_t begin = std::clamp<int64_t>(j, 0, there);
    const int64_t end = std::clamp<int64_t>(j + count, begin, there);
    auto zeros = [&](int64_t n) {
      std::memset(to, 0, static_cast<size_t>(n) * sizeof(T));
      to += n;
    };
    const int64_t before = std::min(count, std::max<int64_t>(0, begin - j)), rows = end - begin;
    zeros(before * shifts_.stride[k]);
    const size_t last = shifts_.axes.size() - 1;
    if (k == last) {
      from.sheet(element + first + begin * a.stride, 0, a.stride).read(1, rows, to, rows);
      to += rows;
    } else if (k + 1 == last) {
      const ShiftAxis& inner = shifts_.axes[last];
      const int64_t start = inner.phases[static_cast<size_t>(phase[last])], size = from.dims[last];
      from.sheet(element + (first + begin * a.stride) * size + start, a.stride * size, inner.stride)
          .read(rows, inner.elements(start), to, inner.pitch);
      to += rows * inner.pitch;
    } else {
      const int64_t inner = product(from.dims, k + 1, from.dims.size());
      for (int64_t i = begin; i < end; ++i)
        copy_rows(from, element + (first + i * a.stride) * inner, k + 1, 0,
                  shifts_.axes[k + 1].pitch, phase, to);
    }
    zeros((count - before - rows) * shifts_.stride[k]);
  }

  const ConvolutionSizes& sizes_;
  Shifts shifts_;
  int64_t channels_, copies_;
  int64_t bands_ = 1, rows_ = 1, plane_ = 0, places_ = 0;
};

Dims dims_of(const ConvolutionSizes& s, int64_t WindowAxis::* size) {
  Dims dims;
  for (const WindowAxis& a : s.axes) dims.push_back(a.*size);
  return dims;
}

template <class T>
using WeightOf = std::conditional_t<kPairs<T>, Number, T>;

/// The result, or the gradient by the input: places' values are sums over channels and taps.
template <class T>
void by_places(Part part, const ConvolutionSizes& s, DType stored, const void* image,
               const WeightOf<T>* w, void* out) {
  const bool forwards = part == Part::Output;
  const int64_t M = forwards ? s.outputs : s.inputs, C = forwards ? s.inputs : s.outputs;
  const int64_t kernel = s.inner(&WindowAxis::kernel), together = kPairs<T> ? 2 : 1;
  const Walk<T> walk(s, forwards, C, M);
  const Images<T> from{static_cast<std::byte*>(const_cast<void*>(image)), stored,
                       dims_of(s, forwards ? &WindowAxis::input : &WindowAxis::output)};
  const Images<Sum<T>> to{static_cast<std::byte*>(out), stored,
                          dims_of(s, forwards ? &WindowAxis::output : &WindowAxis::input)};

  struct Class {
    std::vector<const ShiftAxis::Class*> of;
    std::vector<int32_t> at;  ///< in the copy, for each channel and tap
    int64_t packed;           ///< of a group's weights
    int k_block;
  };
  std::vector<Class> classes;
  int64_t packed_size = 0;
  struct Weights {  // where they lie, for each copy and tap; of pairs those of both channels
    std::vector<int64_t> first, second;
  };
  std::vector<Weights> weights;
  for (size_t number = 0; number < walk.shifts().class_count(); ++number) {
    Class c{walk.shifts().class_of(number), {}, packed_size, 0};
    const std::vector<ShiftTap> taps = walk.taps(c.of);
    Weights in_w;
    auto place = [&](int64_t channel, const ShiftTap& t) {
      return channel < C ? (forwards ? channel : channel * s.inputs) * kernel + t.kernel : -1;
    };
    for (int64_t copy = 0; copy < ceil_div(C, together); ++copy)
      for (const ShiftTap& t : taps) {
        c.at.push_back(narrow<int32_t>(copy * walk.channel() + t.at));
        in_w.first.push_back(place(copy * together, t));
        if (kPairs<T>) in_w.second.push_back(place(copy * together + 1, t));
      }
    // Neighbouring taps read the same lines: more of them stay in the first-level cache.
    c.k_block = taps.size() >= 9 ? 384 : taps.size() >= 3 ? 256 : 128;
    packed_size += static_cast<int64_t>(in_w.first.size()) * M;
    weights.push_back(std::move(in_w));
    classes.push_back(std::move(c));
  }

  T* const packed = kept<T, Shared>(packed_size * s.groups);
  const int64_t group_size = s.outputs * s.inputs * kernel;
  for (int64_t g = 0; g < s.groups; ++g)
    for (size_t i = 0; i < classes.size(); ++i) {
      const int64_t *first = weights[i].first.data(), apart = forwards ? s.inputs * kernel : kernel;
      const auto K = narrow<int>(weights[i].first.size());
      T* const pack_to = packed + g * packed_size + classes[i].packed;
      if constexpr (kPairs<T>)
        pair_kernels()->pack(w + g * group_size, first, weights[i].second.data(), apart, K,
                             narrow<int>(M), classes[i].k_block, pack_to);
      else
        tile_kernels().shifted<T>().pack(w + g * group_size, first, apart, K, narrow<int>(M),
                                         classes[i].k_block, pack_to);
    }

  for_each(walk.units(), s.work(), [&](int unit, int) {
    const Band band = walk.band(unit);
    if (band.begin >= band.end) return;
    static_assert(sizeof(T) == sizeof(Sum<T>));
    T* const copy = kept<T, Own>(walk.copy_size() + M * walk.places());
    auto* const y = reinterpret_cast<Sum<T>*>(copy + walk.copy_size());
    const auto R = narrow<int>(walk.shifts().places(band.begin, band.end));
    for (int64_t g = 0; g < s.groups; ++g) {
      walk.copy(from, (band.image * s.groups + g) * C, band, copy);
      for (const Class& c : classes) {
        const T* const of_class = packed + g * packed_size + c.packed;
        const auto K = narrow<int>(c.at.size());
        if constexpr (kPairs<T>)
          pair_kernels()->product(of_class, copy, c.at.data(), y, walk.places(), K, narrow<int>(M),
                                  R, c.k_block);
        else
          tile_kernels().shifted<T>().product(of_class, copy, c.at.data(), y, walk.places(), K,
                                              narrow<int>(M), R, c.k_block);
        const int64_t first = (band.image * s.groups + g) * M * to.plane();
        const int64_t step = walk.shifts().axes.back().step, plane = to.plane();
        walk.for_sheets(c.of, to.dims, band,
                        [&](int64_t element, int64_t row, int64_t place, int64_t rows, int64_t n) {
                          for (int64_t m = 0; m < M; ++m)
                            to.sheet(first + m * plane + element, row, step)
                                .write(rows, n, y + m * walk.places() + place, walk.row_pitch());
                        });
      }
    }
  });
}

/// The gradient by one element of the weights, term by term: for images that are not finite, where
/// the tiles' zeros would make NaN of what a window does not see.
template <class T>
void weight_plain(const ConvolutionSizes& s, const Images<T>& x, const Images<T>& dy, int64_t at,
                  T* out) {
  const int64_t kernel = s.inner(&WindowAxis::kernel);
  const int64_t c = at / kernel % s.inputs, o = at / kernel / s.inputs, g = o / s.outputs;
  Dims u(s.axes.size());
  for (size_t k = u.size(), rest = static_cast<size_t>(at % kernel); k-- > 0;) {
    u[k] = static_cast<int64_t>(rest) % s.axes[k].kernel;
    rest /= static_cast<size_t>(s.axes[k].kernel);
  }
  T sum = 0;
  for (int64_t n = 0; n < s.images; ++n) {
    for_each_index(dy.dims, [&](int64_t i, const Dims& p) {
      const int64_t from = element_read(s.axes, p, u);
      if (from < 0) return;
      sum += dy.element((n * s.groups * s.outputs + o) * dy.plane() + i) *
             x.element(((n * s.groups + g) * s.inputs + c) * x.plane() + from);
    });
  }
  out[at] = sum;
}

/// The gradient by the weights: dot products over places, added up over bands in a fixed order.
template <class T>
class WeightGradient {
 public:
  WeightGradient(const ConvolutionSizes& s, DType stored, const void* x, const void* dy)
      : s_(s),
        stored_(stored),
        walk_(s, true, s.inputs, s.outputs),
        x_{static_cast<std::byte*>(const_cast<void*>(x)), stored, dims_of(s, &WindowAxis::input)},
        dy_{static_cast<std::byte*>(const_cast<void*>(dy)), stored,
            dims_of(s, &WindowAxis::output)},
        all_(s.groups * s.outputs * s.inputs * s.inner(&WindowAxis::kernel)) {
    if (walk_.shifts().class_count() == 0 || walk_.units() == 0) return;
    of_ = walk_.shifts().class_of(0);
    taps_ = walk_.taps(of_);
    for (int64_t c = 0; c < s.inputs; ++c)
      for (const ShiftTap& t : taps_) at_.push_back(narrow<int32_t>(c * walk_.channel() + t.at));
    count_ = static_cast<int64_t>(at_.size());
    cut();
  }

  void run(Sum<T>* out) {
    std::fill_n(out, all_, Sum<T>(0));
    if (taps_.empty()) return;
    partial_ = kept<Sum<T>, Shared>(chunks_ * size());
    for_each(chunks_ * parts_, s_.work(), [&](int task, int) { sum_up(task); });
    if (finite_) return add_chunks(out);
    const Images<Sum<T>> x{x_.data, stored_, x_.dims}, dy{dy_.data, stored_, dy_.dims};
    parallel_for(all_, [&](int i, int) { weight_plain(s_, x, dy, i, out); });
  }

 private:
  /// Elements of one chunk's sums: less than all weights if some taps read only zeros.
  int64_t size() const { return s_.groups * s_.outputs * count_; }

  /// What is summed apart: chunks of the bands, parts of the features.
  void cut() {
    const int64_t most = std::max<int64_t>(1, kPartialElements / std::max<int64_t>(1, all_));
    // A sum is worth ending if it has many terms.
    constexpr int64_t kTerms = 256;
    const int64_t worth = std::max<int64_t>(
        1, s_.images * walk_.shifts().places(0, walk_.shifts().axes[0].count) / kTerms);
    chunks_ = std::min({walk_.units(), kTasks, most, worth});
    parts_ = std::min(ceil_div(kTasks, chunks_), ceil_div(s_.outputs, 16));
    features_ = ceil_div(s_.outputs, parts_);
    // Their copies stay in the second-level cache.
    together_ = std::clamp<int64_t>(kBandBytes / (static_cast<int64_t>(sizeof(T)) *
                                                  (walk_.copy_size() + features_ * walk_.places())),
                                    1, 16);
  }

  static const auto& tile() {
    if constexpr (kNumbers<T>)
      return *pair_kernels();
    else
      return tile_kernels().shifted<T>();
  }

  int64_t rows_of(int64_t unit) const { return walk_.band(unit).end - walk_.band(unit).begin; }

  /// The sums of a chunk's bands, for a part of the features.
  void sum_up(int64_t task) {
    const int64_t chunk = task / parts_, m0 = task % parts_ * features_, M = s_.outputs;
    const int64_t m1 = std::min(M, m0 + features_), n_m = m1 - m0;
    if (n_m <= 0) return;
    Sum<T>* const sums = partial_ + chunk * size();
    for (int64_t g = 0; g < s_.groups; ++g)
      std::fill_n(sums + (g * M + m0) * count_, n_m * count_, Sum<T>(0));
    const int64_t last = walk_.units() * (chunk + 1) / chunks_;
    const int64_t x_size = walk_.copy_size(), y_size = features_ * walk_.places();
    T* const xs = kept<T, Own>(together_ * (x_size + y_size));
    T* const ys = xs + together_ * x_size;
    std::byte* const room = kept<std::byte, Dots>(kDotsRoom);
    for (int64_t unit = walk_.units() * chunk / chunks_; unit < last;) {
      const int64_t rows = rows_of(unit);
      int64_t n = 1;  // bands of as many rows, whose sums are taken together
      while (n < together_ && unit + n < last && rows_of(unit + n) == rows) ++n;
      const int64_t R = rows > 0 ? walk_.shifts().places(0, rows) : 0;
      for (int64_t g = 0; g < s_.groups && rows > 0; ++g) {
        for (int64_t i = 0; i < n; ++i)
          copy_band(walk_.band(unit + i), g, m0, n_m, xs + i * x_size, ys + i * y_size);
        tile().dots(xs, x_size, at_.data(), ys, y_size, walk_.places(), narrow<int>(n),
                    narrow<int>(count_), narrow<int>(n_m), narrow<int>(R),
                    sums + (g * M + m0) * count_, count_, room);
      }
      unit += n;
    }
  }

  /// A band of a group's channels, and of n features of its result from m0 on.
  void copy_band(const Band& band, int64_t g, int64_t m0, int64_t n, T* x, T* y) {
    walk_.copy(x_, (band.image * s_.groups + g) * s_.inputs, band, x);
    if (!tile().all_finite(x, static_cast<size_t>(walk_.copy_size()))) finite_ = false;
    const int64_t plane = dy_.plane();
    const int64_t from = ((band.image * s_.groups + g) * s_.outputs + m0) * plane;
    std::fill_n(y, n * walk_.places(), T(0));
    walk_.for_sheets(
        of_, dy_.dims, band,
        [&](int64_t element, int64_t row, int64_t place, int64_t rows, int64_t in_a_row) {
          const int64_t pitch = rows == 1 ? in_a_row : walk_.row_pitch();
          for (int64_t m = 0; m < n; ++m)
            dy_.sheet(from + m * plane + element, row, 1)
                .read(rows, in_a_row, y + m * walk_.places() + place, pitch);
        });
  }

  /// The chunks' sums one after the other, to the weights that their taps belong to.
  void add_chunks(Sum<T>* out) {
    const auto taps = static_cast<int64_t>(taps_.size());
    const int64_t kernel = s_.inner(&WindowAxis::kernel);
    constexpr int64_t kPart = 4096;
    const int64_t rows = s_.groups * s_.outputs * s_.inputs;
    const int64_t step = std::max<int64_t>(1, kPart / taps);
    for_each(ceil_div(rows, step), chunks_ * size() * 16, [&](int task, int) {
      const int64_t begin = task * step, end = std::min(rows, begin + step);
      const int64_t n = (end - begin) * taps;
      Sum<T>* const sum = partial_ + begin * taps;
      for (int64_t c = 1; c < chunks_; ++c) {
        const Sum<T>* const more = sum + c * size();
        for (int64_t i = 0; i < n; ++i) sum[i] += more[i];
      }
      for (int64_t r = begin; r < end; ++r)
        for (int64_t t = 0; t < taps; ++t)
          out[r * kernel + taps_[static_cast<size_t>(t)].kernel] = partial_[r * taps + t];
    });
  }

  const ConvolutionSizes& s_;
  DType stored_;
  Walk<T> walk_;
  Images<T> x_, dy_;
  int64_t all_;  ///< weights
  std::vector<const ShiftAxis::Class*> of_;
  std::vector<ShiftTap> taps_;
  std::vector<int32_t> at_;  ///< in the copy, for each channel and tap
  int64_t count_ = 0;
  int64_t chunks_ = 1, parts_ = 1, features_ = 0;  ///< features: of a part
  int64_t together_ = 1;                           ///< bands whose sums are taken at once
  Sum<T>* partial_ = nullptr;
  std::atomic<bool> finite_{true};
};

}  // namespace

template <class T>
void convolution(Part part, const ConvolutionSizes& s, DType stored, const void* a, const void* b,
                 void* out) {
  const int64_t weights = s.groups * s.outputs * s.inputs * s.inner(&WindowAxis::kernel);
  const bool half = stored != kType<T>;
  if (s.work() == 0) {  // nothing to add up
    const int64_t of[] = {s.images * s.groups * s.outputs * s.inner(&WindowAxis::output),
                          s.images * s.groups * s.inputs * s.inner(&WindowAxis::input), weights};
    std::memset(out, 0, static_cast<size_t>(of[static_cast<size_t>(part)]) * item_size(stored));
    return;
  }
  const TileTranspose& t = tile_kernels().transpose;
  const bool pairs = stored == DType::BFloat16 && pair_kernels() != nullptr;
  if (part == Part::Weight) {
    std::vector<T> wide(half ? static_cast<size_t>(weights) : 0);
    if constexpr (std::is_same_v<T, float>)
      if (pairs) WeightGradient<Number>(s, stored, a, b).run(wide.data());
    if (!pairs) WeightGradient<T>(s, stored, a, b).run(half ? wide.data() : static_cast<T*>(out));
    if (half) t.store(wide.data(), stored, out, wide.size());
    return;
  }
  if (pairs) return by_places<Pair>(part, s, stored, a, static_cast<const Number*>(b), out);
  std::vector<T> wide(half ? static_cast<size_t>(weights) : 0);
  if (half) t.load(b, stored, wide.data(), wide.size());
  by_places<T>(part, s, stored, a, half ? wide.data() : static_cast<const T*>(b), out);
}

template void convolution<float>(Part, const ConvolutionSizes&, DType, const void*, const void*,
                                 void*);
template void convolution<double>(Part, const ConvolutionSizes&, DType, const void*, const void*,
                                  void*);

}  // namespace gradcell::cpu
