// Pieces of tensors, copied from place to place.
#include <cstring>

#include "cpu/calls/elements.h"
#include "cpu/kernels/tile_kernels.h"
#include "cpu/kernels/whole_kernels.h"

namespace gradcell::cpu {

namespace {

/// Moves a box of elements between two strided places, in parts that do not depend on each other.
/// The last two dimensions are a sheet of rows; a part is some rows of a sheet, or a piece of its
/// one row.
class StridedCopy {
 public:
  StridedCopy(View from, View to, const void* src, void* dst, size_t item) : item_(item) {
    for (size_t k = 0; k < to.dims.size(); ++k)  // places in ascending order
      if (to.strides[k] < 0)
        for (View* v : {&from, &to}) {
          v->offset += (v->dims[k] - 1) * v->strides[k];
          v->strides[k] = -v->strides[k];
        }
    merge(from, to);
    src_ = static_cast<const std::byte*>(src) + from.offset * static_cast<ptrdiff_t>(item);
    dst_ = static_cast<std::byte*>(dst) + to.offset * static_cast<ptrdiff_t>(item);
    const int64_t rows = sheet_[0].size, length = sheet_[1].size;
    // A transpose goes in bands of rows, each of a few cache lines of the source.
    transposes_ = rows > 1 && std::abs(sheet_[0].from) == 1 && std::abs(sheet_[1].from) > 1 &&
                  sheet_[1].to == 1;
    if (transposes_)
      step_ = kBand;
    else
      step_ = rows > 1 ? std::max<int64_t>(1, kPart / length) : kPart;
    parts_ = ((rows > 1 ? rows : length) + step_ - 1) / step_;
  }

  /// Whether the elements are where they shall be: what is copied from was made there.
  bool in_place() const {
    return src_ == dst_ && outer_.dims.empty() && sheet_[0].size == 1 &&
           sheet_[1].from == sheet_[1].to;
  }

  int64_t parts() const { return product(outer_.dims, 0, outer_.dims.size()) * parts_; }

  /// Cuts rows into smaller parts until there are about as many as that.
  void cut(int64_t parts) {
    const int64_t rows = sheet_[0].size;
    if (transposes_ || rows <= 1 || this->parts() >= parts) return;
    step_ = std::max<int64_t>(1, step_ * this->parts() / parts);
    parts_ = (rows + step_ - 1) / step_;
  }

  void run(int64_t begin, int64_t end) const {
    by_size(item_, [&]<class S>() {
      for (int64_t part = begin; part < end; ++part) {
        const S* s = reinterpret_cast<const S*>(src_);
        S* d = reinterpret_cast<S*>(dst_);
        int64_t rest = part / parts_;
        for (size_t k = outer_.dims.size(); k-- > 0; rest /= outer_.dims[k]) {
          s += rest % outer_.dims[k] * outer_.from[k];
          d += rest % outer_.dims[k] * outer_.to[k];
        }
        const int64_t first = part % parts_ * step_;
        Axis rows = sheet_[0], inner = sheet_[1];
        Axis& along = rows.size > 1 ? rows : inner;
        s += first * along.from, d += first * along.to;
        along.size = std::min(step_, along.size - first);
        if (transposes_)
          transpose(s, d, rows, inner);
        else
          copy(s, d, rows, inner);
      }
    });
  }

 private:
  static constexpr int64_t kPart = 8192, kBand = 64;

  struct Axis {
    int64_t size = 1, from = 0, to = 0;
  };
  struct Axes {
    Dims dims, from, to;
  };

  /// Joins neighbouring dimensions that advance together.
  void merge(const View& from, const View& to) {
    Axes& a = outer_;
    for (size_t k = 0; k < from.dims.size(); ++k) {
      const int64_t n = from.dims[k], f = from.strides[k], t = to.strides[k];
      if (n == 1) continue;
      if (!a.dims.empty() && a.from.back() == f * n && a.to.back() == t * n) {
        a.dims.back() *= n, a.from.back() = f, a.to.back() = t;
      } else {
        a.dims.push_back(n), a.from.push_back(f), a.to.push_back(t);
      }
    }
    for (Axis* axis : {&sheet_[1], &sheet_[0]}) {
      if (a.dims.empty()) break;
      *axis = {a.dims.back(), a.from.back(), a.to.back()};
      a.dims.pop_back(), a.from.pop_back(), a.to.pop_back();
    }
  }

  template <class S>
  static void copy(const S* s, S* d, const Axis& rows, const Axis& inner) {
    if (inner.to == 1 && inner.size <= 4) {
      switch (inner.size) {
        case 2:
          return copy_short<2>(s, d, rows, inner.from);
        case 3:
          return copy_short<3>(s, d, rows, inner.from);
        case 4:
          return copy_short<4>(s, d, rows, inner.from);
        default:
          break;
      }
    }
    for (int64_t i = 0; i < rows.size; ++i, s += rows.from, d += rows.to) {
      if (inner.to == 1)
        copy_run(s, inner.from, d, inner.size);
      else
        for (int64_t k = 0; k < inner.size; ++k) d[k * inner.to] = s[k * inner.from];
    }
  }

  template <int n, class S>
  static void copy_short(const S* s, S* d, const Axis& rows, int64_t step) {
    for (int64_t i = 0; i < rows.size; ++i, s += rows.from, d += rows.to)
      for (int k = 0; k < n; ++k) d[k] = s[k * step];
  }

  /// n elements side by side, from neighbours, from neighbours backwards, or from one.
  template <class S>
  static void copy_run(const S* s, int64_t step, S* d, int64_t n) {
    if (step == 1)
      std::memcpy(d, s, static_cast<size_t>(n) * sizeof(S));
    else if (step == 0)
      std::fill_n(d, n, *s);
    else
      whole_kernels().copy_apart(sizeof(S), s, step, d, static_cast<size_t>(n));
  }

  /// Rows of the result are columns of the source.
  template <class S>
  static void transpose(const S* s, S* d, Axis rows, const Axis& columns) {
    if (rows.from < 0) {  // from below upwards
      s += (rows.size - 1) * rows.from, d += (rows.size - 1) * rows.to;
      rows.from = 1, rows.to = -rows.to;
    }
    int64_t done = 0;
    if constexpr (sizeof(S) >= 4) {
      done = columns.size / 16 * 16;
      const DType type = sizeof(S) == 4 ? DType::Int32 : DType::Int64;
      const auto n = narrow<int>(done);
      if (n > 0)
        tile_kernels().transpose.load_rows(s, type, columns.from, n, narrow<int>(rows.size), d,
                                           rows.to, n);
    }
    constexpr int64_t kBlock = 16;
    for (int64_t j0 = done; j0 < columns.size; j0 += kBlock)
      for (int64_t i = 0; i < rows.size; ++i)
        for (int64_t j = j0; j < std::min(columns.size, j0 + kBlock); ++j)
          d[i * rows.to + j] = s[i + j * columns.from];
  }

  Axes outer_;
  Axis sheet_[2];
  const std::byte* src_;
  std::byte* dst_;
  size_t item_;
  bool transposes_;
  int64_t step_, parts_;
};

}  // namespace

void move(const Call& c, const void* const* in, void* out) {
  if (c.movement.zeros) {
    const auto bytes = static_cast<int64_t>(c.out.bytes());
    split(bytes, bytes / 4, [&](int64_t begin, int64_t end) {
      std::memset(static_cast<char*>(out) + begin, 0, static_cast<size_t>(end - begin));
    });
  }
  std::vector<StridedCopy> copies;
  int64_t elements = 0, most = 0;
  for (const Piece& p : c.movement.pieces) {
    const int64_t n = element_count(p.from.dims);
    if (n == 0) continue;
    StridedCopy copy(p.from, placed(p, c.out.dims), in[p.input], out, item_size(c.out.dtype));
    if (copy.in_place()) continue;
    copies.push_back(copy);
    elements += n;
    most = std::max(most, copies.back().parts());
  }
  if (copies.empty()) return;
  for (StridedCopy& copy : copies) copy.cut(most);
  // A thread takes the same shares of every piece, one after the other: neighbours are often
  // interleaved, and lines are shared.
  constexpr int64_t kShares = 1 << 20;
  const int64_t all = std::min(most, kShares);
  split(all, elements, [&](int64_t begin, int64_t end) {
    const int64_t at_once = copies.size() > 1 ? 1 : end - begin;
    for (int64_t first = begin; first < end; first += at_once)
      for (const StridedCopy& copy : copies)
        copy.run(copy.parts() * first / all, copy.parts() * (first + at_once) / all);
  });
}

}  // namespace gradcell::cpu
