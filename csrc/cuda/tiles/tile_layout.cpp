#include "cuda/tiles/tile_layout.h"

#include <algorithm>
#include <map>

#include "plan/region/uses.h"

namespace gradcell::cuda {

namespace {

/// Weights up to this size together are copied to shared memory by each block, for each group side
/// by side.
constexpr size_t kMaxWeightBytes = 32 << 10;
/// Shared memory that a block may have beside what a tile's values and weights take.
constexpr size_t kOwnShared = 1 << 10;
constexpr int32_t kMostGroups = 16;
/// Fewer warps than this leave a multiprocessor waiting.
constexpr double kGoodGroups = 8;

class Layouter {
 public:
  Layouter(const Region& r, bool tf32, size_t shared)
      : r_(r), tf32_(tf32), room_(shared - kOwnShared) {}

  TileLayout run() {
    static_cast<Phases&>(l_) = find_phases(r_);
    choose_groups();
    choose_units();
    place_weights();
    l_.rows = rows_beside(l_.weight_bytes);
    return std::move(l_);
  }

 private:
  /// Whether weights are copied to shared memory.
  bool staged(int32_t groups) const {
    size_t bytes = 0;
    for (const PackedWeights& w : r_.weights)
      bytes += static_cast<size_t>(w.k * groups * packed((w.m + groups - 1) / groups)) *
               compute_size(w.type);
    return bytes <= kMaxWeightBytes;
  }

  /// The cheaper way of a product with some weights.
  ProductUnit unit_of(const PackedWeights& w, int32_t groups, bool staged) const {
    const ProductUnit unit = unit_for(w.dtype, tf32_);
    const int32_t chunk = (w.m + groups - 1) / groups;
    return product_cost(unit, w.k, chunk, staged) <
                   product_cost(ProductUnit::Fma, w.k, chunk, staged)
               ? unit
               : ProductUnit::Fma;
  }

  /// What a tile takes with so many groups.
  double cost(int32_t groups) const {
    const bool is_staged = staged(groups);
    double sum = 0;
    for (const Instruction& i : r_.program) {
      if (accumulates(i)) continue;
      const int32_t chunk = (i.features + groups - 1) / groups;
      sum += i.kind != TileOp::Product
                 ? 4.0 * chunk
                 : product_cost(unit_of(r_.weights[i.weights], groups, is_staged), i.inner, chunk,
                                is_staged);
    }
    return sum * groups * std::max(1.0, kGoodGroups / groups);
  }

  void choose_groups() {
    l_.groups = 8;  // whole warps, however few rows a block has
    if (cost(kMostGroups) < cost(l_.groups)) l_.groups = kMostGroups;
  }

  void choose_units() {
    const bool is_staged = staged(l_.groups);
    for (const PackedWeights& w : r_.weights) l_.by.push_back(unit_of(w, l_.groups, is_staged));
    for (const Accumulator& a : r_.accumulators) {
      const ProductUnit unit =
          a.kind == TileOp::WeightGrad ? unit_for(a.dtype, tf32_) : ProductUnit::Fma;
      const bool cheaper = outer_cost(unit, a.features, a.inner, l_.groups) <
                           outer_cost(ProductUnit::Fma, a.features, a.inner, l_.groups);
      l_.outer_by.push_back(cheaper ? unit : ProductUnit::Fma);
    }
  }

  void place_weights() {
    const bool is_staged = staged(l_.groups);
    for (size_t k = 0; k < r_.weights.size(); ++k) {
      const PackedWeights& w = r_.weights[k];
      l_.weights.push_back(is_staged ? static_cast<int64_t>(l_.weight_bytes) : -1);
      if (!is_staged) continue;
      const int32_t step = weights_step(l_.by[k], l_.groups, packed(l_.chunk(w.m)));
      l_.weight_bytes += static_cast<size_t>(w.k * step) * compute_size(w.type);
      l_.weight_bytes = (l_.weight_bytes + 15) / 16 * 16;
    }
    if (!is_staged) keep_weights();
  }

  /// Rows of a tile beside so many bytes.
  int32_t rows_beside(size_t bytes) const {
    int32_t rows = kTileRows;
    while (rows > 1 && bytes + l_.row_bytes * static_cast<size_t>(rows | 1) > room_) rows /= 2;
    return rows;
  }

  /// What multiply-adds read is copied as it is stored, a matrix and its transpose once, where that
  /// takes no rows from a tile.
  void keep_weights() {
    std::map<BufferId, int64_t> places;
    size_t end = 0;
    for (size_t k = 0; k < r_.weights.size(); ++k) {
      const PackedWeights& w = r_.weights[k];
      if (!kept(k)) continue;
      if (places.try_emplace(w.buffer, end).second)
        end += (static_cast<size_t>(w.k * w.m) * compute_size(w.type) + 15) / 16 * 16;
    }
    if (rows_beside(end) < rows_beside(0)) return;
    l_.weight_bytes = end, l_.as_stored = true;
    for (size_t k = 0; k < r_.weights.size(); ++k)
      if (kept(k)) l_.weights[k] = places.at(r_.weights[k].buffer);
  }
  bool kept(size_t k) const {
    const PackedWeights& w = r_.weights[k];
    const bool dense = (w.k - 1) * w.k_stride + (w.m - 1) * w.m_stride == int64_t(w.k) * w.m - 1;
    return dense && l_.by[k] == ProductUnit::Fma;
  }

  const Region& r_;
  const bool tf32_;
  const size_t room_;
  TileLayout l_;
};

}  // namespace

int32_t packed(int32_t chunk) { return chunk <= 2 ? chunk : (chunk + 3) / 4 * 4; }

TileLayout lay_out(const Region& r, bool tf32, size_t shared) {
  return Layouter(r, tf32, shared).run();
}

}  // namespace gradcell::cuda
