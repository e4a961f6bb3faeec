// The largest elements of windows (contract: cpu/tile_kernels.h), for every type that a tile has.
#include "cpu/isa/tile_vector.h"
#include "cpu/tile_kernels.h"

namespace gradcell::cpu::GRADCELL_ISA {
namespace {

template <class T, int Step>
void largest_row(const T* x, ptrdiff_t step, T* best, int32_t* place, int32_t at, int n) {
  const ptrdiff_t s = Step ? Step : step;
  if (place) {
    for (int i = 0; i < n; ++i) {
      const T v = x[i * s];
      const bool wins = (v > best[i]) | (v != v) | (place[i] < 0);
      best[i] = wins ? v : best[i];
      place[i] = wins ? at + static_cast<int32_t>(i * s) : place[i];
    }
    return;
  }
  for (int i = 0; i < n; ++i) {
    const T v = x[i * s];
    best[i] = (v > best[i]) | (v != v) ? v : best[i];
  }
}

template <class T, int Step>
void largest(const SheetWindows& w, const T* x, T* best, int32_t* place, int32_t at) {
  for (int u = 0; u < w.rows.kernel; ++u) {
    const SheetWindows::Span rows = w.rows.spans[u];
    for (int v = 0; v < w.columns.kernel; ++v) {
      const SheetWindows::Span columns = w.columns.spans[v];
      const int n = columns.end - columns.begin;
      if (n <= 0) continue;
      int32_t from = rows.by * w.columns.input + columns.by;
      for (int r = rows.begin; r < rows.end; ++r, from += w.rows.stride * w.columns.input) {
        const ptrdiff_t to = static_cast<ptrdiff_t>(r) * w.columns.output + columns.begin;
        largest_row<T, Step>(x + from, w.columns.stride, best + to, place ? place + to : nullptr,
                             at + from, n);
      }
    }
  }
}

template <class T>
void largest_of_sheet(const SheetWindows& w, const void* x, void* best, int32_t* place,
                      int32_t at) {
  auto* const from = static_cast<const T*>(x);
  auto* const to = static_cast<T*>(best);
  if (w.columns.stride == 1) return largest<T, 1>(w, from, to, place, at);
  if (w.columns.stride == 2) return largest<T, 2>(w, from, to, place, at);
  largest<T, 0>(w, from, to, place, at);
}

}  // namespace

extern const TileWindows kTileWindows = {largest_of_sheet<float>, largest_of_sheet<double>,
                                         largest_of_sheet<int32_t>, largest_of_sheet<int64_t>};

}  // namespace gradcell::cpu::GRADCELL_ISA
