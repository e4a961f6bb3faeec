// Pieces of tensors, copied from place to place.
#include <cstring>

#include "cpu/calls/elements.h"

namespace gradcell::cpu {

namespace {

/// Moves a box of elements between two strided places.
struct StridedCopy {
  Dims dims, from, to;  // strides in elements
  int64_t from_offset = 0, to_offset = 0;

  void run(const void* src, void* dst, size_t item) {
    merge();
    by_size(item, [&]<class S>() {
      copy(static_cast<const S*>(src) + from_offset, static_cast<S*>(dst) + to_offset);
    });
  }

 private:
  /// Joins neighbouring dimensions that advance together.
  void merge() {
    Dims d, f, t;
    for (size_t k = 0; k < dims.size(); ++k) {
      if (dims[k] == 1) continue;
      if (!d.empty() && f.back() == from[k] * dims[k] && t.back() == to[k] * dims[k]) {
        d.back() *= dims[k], f.back() = from[k], t.back() = to[k];
      } else {
        d.push_back(dims[k]), f.push_back(from[k]), t.push_back(to[k]);
      }
    }
    if (d.empty()) d = {1}, f = {1}, t = {1};
    dims = d, from = f, to = t;
  }

  template <class S>
  void copy(const S* src, S* dst) const {
    size_t rank = dims.size();
    int64_t inner = dims.back(), fi = from.back(), ti = to.back();
    // A transpose: walk the last two dimensions in square blocks, so that both sides stay in cache.
    bool blocked = rank >= 2 && fi != 1 && from[rank - 2] == 1;
    size_t loops = blocked ? rank - 2 : rank - 1;
    int64_t outer = product(dims, 0, loops);
    if (!blocked && ti == 1 && outer < 4) return copy_long_runs(src, dst, outer);
    split(outer, outer > 1 ? element_count(dims) : 0, [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; ++o) {
        int64_t rest = o;
        const S* s = src;
        S* d = dst;
        for (size_t k = loops; k-- > 0;) {
          int64_t i = rest % dims[k];
          rest /= dims[k];
          s += i * from[k];
          d += i * to[k];
        }
        if (blocked)
          transpose(s, d, dims[rank - 2], inner, fi, to[rank - 2], ti);
        else if (ti == 1)
          copy_run(s, fi, d, inner);
        else
          for (int64_t i = 0; i < inner; ++i) d[i * ti] = s[i * fi];
      }
    });
  }

  /// n elements side by side, from neighbours or from one.
  template <class S>
  static void copy_run(const S* s, int64_t step, S* d, int64_t n) {
    if (step == 1)
      std::memcpy(d, s, static_cast<size_t>(n) * sizeof(S));
    else if (step == 0)
      std::fill_n(d, n, *s);
    else
      for (int64_t i = 0; i < n; ++i) d[i] = s[i * step];
  }

  /// Few runs: each is shared by all threads.
  template <class S>
  void copy_long_runs(const S* src, S* dst, int64_t outer) const {
    const int64_t inner = dims.back(), step = from.back();
    for (int64_t o = 0; o < outer; ++o) {
      const S* s = src;
      S* d = dst;
      int64_t rest = o;
      for (size_t k = dims.size() - 1; k-- > 0; rest /= dims[k])
        s += rest % dims[k] * from[k], d += rest % dims[k] * to[k];
      split(inner, inner, [&](int64_t begin, int64_t end) {
        copy_run(s + begin * step, step, d + begin, end - begin);
      });
    }
  }

  template <class S>
  static void transpose(const S* s, S* d, int64_t rows, int64_t columns, int64_t from_column,
                        int64_t to_row, int64_t to_column) {
    constexpr int64_t kBlock = 16;
    int64_t blocks = (rows + kBlock - 1) / kBlock;
    split(blocks, rows * columns, [&](int64_t b0, int64_t b1) {
      for (int64_t b = b0; b < b1; ++b)
        for (int64_t j0 = 0; j0 < columns; j0 += kBlock)
          for (int64_t i = b * kBlock; i < std::min(rows, (b + 1) * kBlock); ++i)
            for (int64_t j = j0; j < std::min(columns, j0 + kBlock); ++j)
              d[i * to_row + j * to_column] = s[i + j * from_column];
    });
  }
};

}  // namespace

void move(const Call& c, const void* const* in, void* out) {
  if (c.movement.zeros) {
    const auto bytes = static_cast<int64_t>(c.out.bytes());
    split(bytes, bytes / 4, [&](int64_t begin, int64_t end) {
      std::memset(static_cast<char*>(out) + begin, 0, static_cast<size_t>(end - begin));
    });
  }
  for (const Piece& p : c.movement.pieces) {
    const View to = placed(p, c.out.dims);
    if (element_count(p.from.dims) > 0)
      StridedCopy{p.from.dims, p.from.strides, to.strides, p.from.offset, to.offset}.run(
          in[p.input], out, item_size(c.out.dtype));
  }
}

}  // namespace gradcell::cpu
