#include "cuda/tiles/tile_costs.h"

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "cuda/cuda_plan.h"
#include "plan/costs.h"

namespace gradcell::cuda {

namespace {

constexpr const TileCosts& kCosts = kTileCosts;

int64_t parts_of(int64_t n, int64_t part) { return (n + part - 1) / part; }

class Weigher {
 public:
  Weigher(const Region& r, const TileLayout& l, const Target& target)
      : r_(r), l_(l), target_(target), rows_(l.rows), threads_(l.rows * l.groups) {}

  TileCost run() {
    const int64_t tiles = parts_of(r_.rows, rows_);
    TileCost cost;
    cost.chunks = std::min(tiles, target_.multiprocessors * blocks_at_once());
    cost.rounds = parts_of(tiles, cost.chunks);
    const double rounds = static_cast<double>(cost.rounds);
    cost.cycles =
        (beginning() + rounds * chain()) * slowed(parts_of(cost.chunks, target_.multiprocessors));
    return cost;
  }

 private:
  // The device -----------------------------------------------------------------------------------

  /// Blocks that a multiprocessor has room for.
  int64_t blocks_at_once() const {
    const auto dynamic =
        static_cast<int64_t>(l_.weight_bytes + l_.row_bytes * (static_cast<size_t>(rows_) | 1));
    const int64_t shared = static_cast<int64_t>(target_.shared_bytes) + kCosts.block_shared;
    const int64_t registers = std::min(kCosts.thread_registers, kCosts.registers / threads_);
    return std::max<int64_t>(
        1, std::min({shared / (dynamic + kCosts.block_shared), threads_at_once() / threads_,
                     kCosts.registers / (registers * threads_)}));
  }

  /// Of a multiprocessor, by CUDA's table of compute capabilities.
  int64_t threads_at_once() const {
    const int c = target_.capability;
    return c < 80 ? 1024 : c == 80 || c == 87 || c / 10 == 9 || c / 10 == 10 ? 2048 : 1536;
  }

  /// How much longer a tile takes beside those of other blocks: the instructions of all are issued
  /// by four schedulers.
  double slowed(int64_t blocks) const {
    const double warps = static_cast<double>(blocks * parts_of(threads_, 32));
    return std::max(1.0, kCosts.issuing * warps / 4);
  }

  // A tile ---------------------------------------------------------------------------------------

  /// Once a block: weights that are copied, and sums that are cleared.
  double beginning() const {
    double cycles = static_cast<double>(l_.weight_bytes) / 4 * kCosts.copied;
    for (const Accumulator& a : r_.accumulators)
      cycles += static_cast<double>(a.count()) * kCosts.cleared;
    return cycles / static_cast<double>(threads_);
  }

  double chain() const {
    double sum = 0;
    int32_t phase = -1;
    for (const TileItem& item : l_.items) {
      if (item.phase != phase) sum += kCosts.phase;
      phase = item.phase;
      switch (item.kind) {
        case TileItem::Kind::Load:
          sum += elements(r_.values[r_.loads[item.index].value].features, 1);
          break;
        case TileItem::Kind::Store:
          sum += elements(r_.stores[item.index].features, 1);
          break;
        case TileItem::Kind::Compute:
          sum += of(r_.program[item.index]);
          break;
        case TileItem::Kind::Collect:  // of loops
        case TileItem::Kind::Carry:
          break;
      }
    }
    return sum;
  }

  /// A thread's share of so many features.
  double elements(int32_t features, double instructions) const {
    return l_.chunk(features) * instructions * kCosts.instruction;
  }

  double of(const Instruction& i) const {
    const double words = static_cast<double>(compute_size(i.type)) / 4;
    switch (i.kind) {
      case TileOp::Product:
        return product(i) * words;
      case TileOp::WeightGrad:
        return gradient(i);
      case TileOp::RowReduce:
        return kCosts.row_sum + l_.chunk(i.features) * kCosts.row_sum_feature;
      case TileOp::FeatureReduce:
        return elements(i.features, i.inner) * words;
      case TileOp::Elementwise:
        return elements(i.features, element_cost(i.op).gpu_instructions) * words;
      case TileOp::Convert:
      case TileOp::Narrow:
      case TileOp::Copy:
      case TileOp::Scatter:
        return elements(i.features, 1) * words;
      case TileOp::Surround:
      case TileOp::Chain:
      case TileOp::Formula:
      case TileOp::Choose:
        break;
    }
    fail(ErrorKind::Runtime, "no tile kernel has joined instructions");
  }

  /// What is compiled to multiply-adds where tensor cores have no instruction for it. One product
  /// in TF32 for three takes 0.86 to 0.92 of the kernel's time on an H200: their loads are what
  /// counts.
  ProductUnit on_device(ProductUnit unit) const {
    if (unit == ProductUnit::Tf32) unit = ProductUnit::Tf32x3;
    return target_.capability >= 80 || unit == ProductUnit::Half ? unit : ProductUnit::Fma;
  }

  double product(const Instruction& i) const {
    const ProductUnit unit = on_device(l_.by[i.weights]);
    const bool here = l_.weights[i.weights] >= 0, copied = here && !l_.as_stored;
    const double slots = product_cost(unit, i.inner, l_.chunk(i.features), copied);
    if (unit == ProductUnit::Fma) return kCosts.call + i.inner * kCosts.term + slots * kCosts.slot;
    const double far = here ? 0 : kCosts.far_step * product_steps(unit, i.inner);
    return kCosts.warp_call + slots * kCosts.warp_slot + far;
  }

  /// The threads of a block share the elements; each takes some through the rows, and adds them to
  /// sums in the L2 cache. Where there are more than the threads, again.
  double gradient(const Instruction& i) const {
    const ProductUnit unit = on_device(l_.outer_by[i.dst]);
    if (unit != ProductUnit::Fma) {
      const auto warps = narrow<int32_t>(parts_of(threads_, 32));
      const OuterJobs jobs = outer_jobs(unit, i.features, i.inner, warps);
      const double slots = jobs.slots * static_cast<double>(rows_) / kTileRows;
      return static_cast<double>(jobs.turns) * (kCosts.warp_sum + slots * kCosts.warp_sum_slot);
    }
    const int64_t parts = parts_of(i.features, 4) * parts_of(i.inner, 4);
    const int64_t lanes = std::clamp<int64_t>(
        static_cast<int64_t>(
            std::bit_floor(static_cast<uint64_t>(std::max<int64_t>(1, threads_ / parts)))),
        1, 32);
    const auto turns = static_cast<double>(parts_of(parts * lanes, threads_));
    return turns * (kCosts.sum + static_cast<double>(parts_of(rows_, lanes)) * kCosts.sum_row);
  }

  const Region& r_;
  const TileLayout& l_;
  const Target& target_;
  const int64_t rows_, threads_;
};

}  // namespace

TileCost tile_cost(const Region& r, const TileLayout& l, const Target& target) {
  return Weigher(r, l, target).run();
}

}  // namespace gradcell::cuda
