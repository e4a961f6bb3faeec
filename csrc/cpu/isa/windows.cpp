// The largest elements of windows (contract: cpu/kernels/tile_kernels.h), for every type that a
// tile has.
//
// Some windows next to each other are a vector: all of a window's elements go through a register
// before anything is written. Where a row of windows is no multiple of the vector the last one
// overlaps the one before; what it computes again is the same.
#include <algorithm>
#include <cstring>

#include "cpu/isa/tile_vector.h"
#include "cpu/kernels/tile_kernels.h"

namespace gradcell::cpu::GRADCELL_ISA {
namespace {

template <class T, int L>
struct Lanes {
  typedef T Values __attribute__((vector_size(L * sizeof(T))));
  typedef int32_t Places __attribute__((vector_size(L * sizeof(int32_t))));

  static Values load(const T* x) {
    Values v;
    std::memcpy(&v, x, sizeof v);
    return v;
  }

  /// x[0], x[step], ..., x[(L - 1) * step]; nothing behind that is read.
  template <int Step>
  static Values load(const T* x, ptrdiff_t step) {
    if constexpr (Step == 1) {
      return load(x);
    } else if constexpr (Step == 2) {
      const Values a = load(x), b = load(x + L - 1);
      return pairs(a, b, std::make_integer_sequence<int, L>());
    } else {
      Values v;
      for (int i = 0; i < L; ++i) v[i] = x[i * step];
      return v;
    }
  }

 private:
  /// The even elements of a[0 .. L - 1], b[0 .. L - 1] = x[0 .. 2 L - 2].
  template <int... I>
  static Values pairs(Values a, Values b, std::integer_sequence<int, I...>) {
    return __builtin_shufflevector(a, b, (2 * I < L ? 2 * I : 2 * I + 1)...);
  }
};

/// The windows [first, first + L) of row r, with all elements of the kernel that are in the sheet:
/// for several windows those are the same columns.
template <class T, int Step, int L>
inline void block(const SheetWindows& w, const T* x, int r, int first, T* best, int32_t* place,
                  int32_t at) {
  using V = Lanes<T, L>;
  const ptrdiff_t to = static_cast<ptrdiff_t>(r) * w.columns.output + first;
  typename V::Values most = V::load(best + to);
  typename V::Places where{}, step;
  if (place) std::memcpy(&where, place + to, sizeof where);
  for (int i = 0; i < L; ++i) step[i] = i * w.columns.stride;
  for (int u = 0; u < w.rows.kernel; ++u) {
    const SheetWindows::Span rows = w.rows.spans[u];
    if (r < rows.begin || r >= rows.end) continue;
    const int32_t row = (rows.by + (r - rows.begin) * w.rows.stride) * w.columns.input;
    for (int v = 0; v < w.columns.kernel; ++v) {
      const SheetWindows::Span columns = w.columns.spans[v];
      if (first < columns.begin || first >= columns.end) continue;
      const int32_t from = row + columns.by + (first - columns.begin) * w.columns.stride;
      const auto value = V::template load<Step>(x + from, w.columns.stride);
      const auto wins = (value > most) | (value != value);
      if (place) {
        const auto takes = __builtin_convertvector(wins, typename V::Places) | (where < 0);
        most = __builtin_convertvector(takes, decltype(wins)) ? value : most;
        where = takes ? step + (at + from) : where;
      } else {
        most = wins ? value : most;
      }
    }
  }
  std::memcpy(best + to, &most, sizeof most);
  if (place) std::memcpy(place + to, &where, sizeof where);
}

/// Windows [begin, end) of row r, all of whose columns are in the sheet.
template <class T, int Step, int L>
inline void in_blocks(const SheetWindows& w, const T* x, int r, int begin, int end, T* best,
                      int32_t* place, int32_t at) {
  if constexpr (L > 1)
    if (end - begin < L) return in_blocks<T, Step, L / 2>(w, x, r, begin, end, best, place, at);
  for (int first = begin; first < end; first += L)
    block<T, Step, L>(w, x, r, std::min(first, end - L), best, place, at);
}

template <class T, int Step>
void largest(const SheetWindows& w, const T* x, T* best, int32_t* place, int32_t at) {
  int begin = 0, end = w.columns.output;
  for (int v = 0; v < w.columns.kernel; ++v) {
    begin = std::max(begin, w.columns.spans[v].begin);
    end = std::min(end, w.columns.spans[v].end);
  }
  end = std::max(end, begin);
  for (int r = 0; r < w.rows.output; ++r) {
    auto edge = [&](int c) { block<T, Step, 1>(w, x, r, c, best, place, at); };
    for (int c = 0; c < std::min(begin, w.columns.output); ++c) edge(c);
    in_blocks<T, Step, kVectorBytes / int{sizeof(T)}>(w, x, r, begin, end, best, place, at);
    for (int c = end; c < w.columns.output; ++c) edge(c);
  }
}

template <class T>
void largest_of_sheet(const SheetWindows& w, const void* x, void* best, int32_t* place,
                      int32_t at) {
  auto* const from = static_cast<const T*>(x);
  auto* const to = static_cast<T*>(best);
  if constexpr (std::is_floating_point_v<T>) {  // windows of integers are rare
    if (w.columns.stride == 1) return largest<T, 1>(w, from, to, place, at);
    if (w.columns.stride == 2) return largest<T, 2>(w, from, to, place, at);
  }
  largest<T, 0>(w, from, to, place, at);
}

}  // namespace

extern const TileWindows kTileWindows = {largest_of_sheet<float>, largest_of_sheet<double>,
                                         largest_of_sheet<int32_t>, largest_of_sheet<int64_t>};

}  // namespace gradcell::cpu::GRADCELL_ISA
