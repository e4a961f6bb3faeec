// Tiles whose rows lie as they do in memory, [rows][features]: a region of wide rows that
// multiplies no matrices. Nothing is transposed, and what is stored as it is computed with is read
// and written in place. Lanes are neighbours within a row, so rows are reduced by whole_kernels.h.
#pragma once

#include <array>
#include <vector>

#include "cpu/program/region_run.h"

namespace gradcell::cpu {

/// The steps of a region of one row, bound once: a run of it, of which a loop has thousands, only
/// moves those pointers whose buffers lie elsewhere. There are two, which take turns, as the places
/// of what a loop carries do.
struct BoundRow {
  struct Step {
    Loop loop;  ///< null: the runner executes instruction `at`
    LoopArgs args;
    size_t at;
  };
  struct Value {
    uint32_t value;
    BufferId buffer;
    std::byte* at;
    size_t first = 0, end = 0;  ///< of the pointers, those to it
  };
  struct Pointer {
    size_t step;
    int operand;  ///< -1: the result
    uint32_t value;
    ptrdiff_t offset;
  };
  bool bound = false;  ///< since the region's run began
  std::vector<Step> steps;
  std::vector<Value> values;            ///< that lie in buffers
  std::vector<Pointer> pointers;        ///< to these, by value
  std::vector<const RowLoad*> loads;    ///< into scratch
  std::vector<const RowStore*> stores;  ///< from scratch

  /// All that the region can need.
  void reserve(const Region& r) {
    const size_t most = r.program.size() * (kMaxOperands + 1);
    steps.reserve(most), pointers.reserve(most);
    values.reserve(r.loads.size() + r.stores.size());
    loads.reserve(r.loads.size()), stores.reserve(r.stores.size());
  }
};

/// Runs chunks of a region, one after the other, on one thread.
class LineRunner {
 public:
  /// scratch: scratch_bytes for it alone; null: the thread's own.
  LineRunner(const RegionRun& run, const RunState& s, std::array<BoundRow, 2>& rows, Dims& line,
             std::byte* scratch = nullptr);
  static size_t scratch_bytes(const Region& r, const TileProgram& p);
  void chunk(int32_t c);
  /// By buffer, from now on.
  void give_room(const Room* room, bool last) {
    room_ = room, last_ = last;
    for (BoundRow& row : rows_) row.bound = false;
  }
  /// Adds the time of each instruction up there, from now on; null: nobody measures.
  void measure(double* seconds) { seconds_ = seconds; }

 private:
  using Lines = std::array<const std::byte*, kMaxOperands>;
  void tile(int64_t t);
  void find_places();
  bool reads_inside(const RowLoad& l) const;
  void bind_row();
  void bind_zeros(size_t at);
  bool bind(size_t at);
  void move_row();
  void run_row();
  template <class F>
  void measured(size_t at, F f);
  void spread_lines();
  void load(const RowLoad& l);
  void load_view(const RowLoad& l, int32_t features);
  void store(const RowStore& s);
  void execute(size_t at);
  void loop(size_t at);
  void loop_by_rows(size_t at);
  void scatter(const Instruction& i);
  void reduce_features(size_t at);
  void add_rows(size_t at);
  const Operand& source(size_t at) const;
  const std::byte* replacement(size_t at) const;
  /// The operand's elements for n features, densely: where they are, or put into `slot`.
  const std::byte* dense(const Operand& o, Compute type, int32_t n, std::byte* slot) const;
  /// The same a row at a time, rows s[k] elements apart.
  void bind_rows(LoopArgs& a, size_t at, int k) const;
  bool lies_dense(const Operand& o, int32_t n) const;
  std::byte* number(const Operand& o) const;
  std::byte* slot(int k) const;
  std::byte* rows_of(BufferId buffer, int32_t features, DType dtype) const;
  bool is_overwritten(BufferId buffer) const;

  const Region& r_;
  const TileProgram& p_;
  const RegionRun& run_;
  const RunState& s_;
  std::byte *sums_, *values_, *fixed_, *slots_;
  std::byte** at_;  ///< where each value is
  /// Of each instruction the operands that are the same lines for all tiles.
  Lines* lines_;
  std::array<BoundRow, 2>& rows_;
  BoundRow* row_;  ///< whose turn it is
  Dims& line_;     ///< room for a place in a view
  const Room* room_ = nullptr;
  bool last_ = false;  ///< step
  double* seconds_ = nullptr;
  int64_t first_ = 0;
  int32_t valid_ = 0;
};

}  // namespace gradcell::cpu
