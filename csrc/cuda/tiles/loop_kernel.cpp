#include "cuda/tiles/loop_kernel.h"

#include <algorithm>
#include <set>

#include "cuda/tiles/feature_maps.h"
#include "ops/ops.h"
#include "plan/costs.h"
#include "plan/region/region_builder.h"

namespace gradcell::cuda {

namespace {

using From = LoopFrame::Input::Kind;

constexpr size_t kMostInSteps = 1024;      // compiling takes long beyond this
constexpr size_t kDriverShared = 1 << 10;  // of a block, for the driver
constexpr int32_t kMostElements = 16;      // of a value that a thread has
constexpr int32_t kMostThreads = 512, kMostRows = 512;
constexpr int32_t kSharedTerms = 32;  // sums of fewer are one thread's

int64_t shares(int64_t n, int64_t part) { return (n + part - 1) / part; }

// The region of a body ----------------------------------------------------------------------------

class Builder {
 public:
  Builder(const PlanGraph& body, const LoopFrame& loop, Labels labels)
      : c_(body), g_(body.graph), loop_(loop), labels_(std::move(labels)) {}

  std::optional<LoopKernel> run() {
    if (!c_.constants.empty() || !g_.effects().empty()) return {};
    PlanFrame plan;
    const std::vector<BufferId> buffer_of = frame(c_, labels_.storage, plan);
    std::vector<NodeId> nodes;
    for (NodeId id = 0; id < g_.size(); ++id) {
      if (labels_.storage[id] != id || is_leaf(g_, id)) continue;
      const NodeLabel& l = labels_.node[id];
      if (!l.in_region || l.stage != 0 || l.block != 1 || is_complex(g_.dtype(id))) return {};
      if (!nodes.empty() && l.rows != labels_.node[nodes[0]].rows) return {};
      if (l.materialised && buffer_of[id] == UINT32_MAX) return {};
      nodes.push_back(id);
    }
    if (nodes.empty()) return {};
    NodeSet fixed;
    for (size_t i = 0; i < loop_.inputs.size(); ++i)
      if (loop_.inputs[i].kind == From::Same) fixed.add(c_.inputs[i]);
    const std::vector<int> constants(g_.size(), -1);
    found_.region = build_region({g_, labels_, buffer_of, constants, fixed}, nodes, false);
    if (!r_.accumulators.empty() || r_.program.size() > kMostInSteps) return {};
    if (!name_inputs(plan) || !carry(plan) || !can_write_tile(r_)) return {};
    found_.inputs = std::move(plan.inputs);
    return std::move(found_);
  }

 private:
  From kind(size_t input) const { return loop_.inputs[input].kind; }

  /// Buffers of the frame become the body's inputs. Of what is uniform only what stays the same is
  /// read from memory; of a body by rows what is sliced, too.
  bool name_inputs(const PlanFrame& plan) {
    auto name = [&](BufferId& b) { return b = plan.buffers[b].index; };
    for (PackedWeights& w : r_.weights)
      if (kind(name(w.buffer)) != From::Same) return false;
    for (RowLoad& l : r_.loads)
      if (kind(name(l.buffer)) == From::Carried && l.viewed()) return false;
    std::vector<std::optional<Operand>> instead(r_.uniforms.size());
    std::vector<Instruction> first;
    for (size_t u = 0; u < r_.uniforms.size(); ++u) {
      Uniform& uniform = r_.uniforms[u];
      if (kind(name(uniform.buffer)) == From::Same) continue;
      if (labels_.whole)
        instead[u] = in_tile(uniform, first);
      else if (kind(uniform.buffer) == From::Carried)
        return false;
    }
    for (Instruction& i : r_.program)
      for (int k = 0; k < i.operand_count; ++k) {
        Operand& o = i.operand[k];
        if (o.uniform && instead[o.value]) o.uniform = false, o.value = instead[o.value]->value;
      }
    r_.program.insert(r_.program.begin(), first.begin(), first.end());
    for (RowStore& s : r_.stores) s.buffer = plan.buffers[s.buffer].index;
    return true;
  }

  /// A uniform as a value of the only row.
  Operand in_tile(const Uniform& u, std::vector<Instruction>& first) {
    const Operand all = loaded(u.buffer);
    if (u.map.empty()) return all;
    Instruction copy;
    copy.kind = TileOp::Copy, copy.dtype = u.dtype, copy.type = u.type, copy.operand_count = 1,
    copy.operand[0] = all;
    copy.dst = new_value(narrow<int32_t>(u.map.size()), u.type);
    copy.features = narrow<int32_t>(u.map.size());
    copy.map = narrow<int32_t>(r_.maps.size());
    r_.maps.push_back(u.map);
    first.push_back(copy);
    return {false, copy.dst, 0, 1};
  }

  uint32_t new_value(int32_t features, Compute type) {
    r_.values.push_back({features, type});
    return narrow<uint32_t>(r_.values.size() - 1);
  }

  /// The rows of an input.
  Operand loaded(size_t input) {
    for (const RowLoad& l : r_.loads)
      if (l.buffer == input && !l.viewed()) return {false, l.value, 0, 1};
    const NodeId id = c_.inputs[input];
    const uint32_t v =
        new_value(narrow<int32_t>(g_.count(id) / r_.rows), compute_type(g_.dtype(id)));
    r_.loads.push_back({narrow<BufferId>(input), g_.dtype(id), v});
    return {false, v, 0, 1};
  }

  bool has_rows(int64_t count) const { return count % r_.rows == 0 && count > 0; }

  /// Stores what is kept and hands on what is carried.
  bool carry(const PlanFrame& plan) {
    std::vector<RowStore> outputs;  // by buffer of theirs
    std::swap(outputs, r_.stores);
    auto value_of = [&](size_t output) -> std::optional<Operand> {
      const PlanOutput& o = plan.outputs[output];
      if (!has_rows(o.desc.count)) return {};
      if (o.alias_input >= 0) return loaded(static_cast<size_t>(o.alias_input));
      const size_t source = o.alias_output < 0 ? output : static_cast<size_t>(o.alias_output);
      for (const RowStore& s : outputs)
        if (s.buffer == source) return s.from;
      return {};
    };
    auto features_of = [&](size_t output) {
      return narrow<int32_t>(plan.outputs[output].desc.count / r_.rows);
    };
    for (size_t k = 0; k < loop_.kept.size(); ++k) {
      const size_t output = loop_.kept[k].output;
      const std::optional<Operand> from = value_of(output);
      const DType t = plan.outputs[output].desc.dtype;
      if (!from || from->uniform) return false;
      r_.stores.push_back({narrow<BufferId>(k), t, *from, features_of(output), compute_type(t)});
    }
    for (const LoopFrame::Carried& c : loop_.carried) {
      const std::optional<Operand> next = value_of(c.output);
      if (!next || next->uniform) return false;
      size_t input = 0;  // of the body: that the state before a step is, if it is one
      while (input < loop_.inputs.size() &&
             !(kind(input) == From::Carried && &loop_.carried[loop_.inputs[input].index] == &c))
        ++input;
      const DType t = plan.outputs[c.output].desc.dtype;
      const uint32_t value = input < loop_.inputs.size()
                                 ? loaded(input).value
                                 : new_value(features_of(c.output), compute_type(t));
      found_.steps.carried.push_back({value, *next});
      found_.carried_types.push_back(t);
    }
    return true;
  }

  const PlanGraph& c_;
  const Graph& g_;
  const LoopFrame& loop_;
  const Labels labels_;
  LoopKernel found_;
  Region& r_ = found_.region;
};

// Threads and memory ------------------------------------------------------------------------------

/// A cycle issues so many instructions of warps.
constexpr double kIssued = 4;
/// Cycles: a barrier and what waits for it; of results that others made; of an instruction until
/// the next one has it; of an element that comes from memory, or from a cache beside the threads;
/// of one thread's next element.
constexpr double kBarrier = 60, kCollect = 60, kLatency = 12, kMemory = 600, kNear = 40,
                 kElement = 4;
/// Registers of a multiprocessor, and of a thread: at most, and beside sums and the weights that it
/// keeps. Fewer fours of weights than these are left in shared memory.
constexpr int32_t kRegisters = 65536, kMostRegisters = 255, kOwnRegisters = 72, kFewFours = 16;

/// Finds places for a number of threads and rows, and what that takes.
class Placer {
 public:
  Placer(LoopKernel& r, const LoopFrame& loop, const Target& target)
      : x_(r), r_(r.region), loop_(loop), target_(target) {}

  /// Whether it fits.
  bool place(int32_t threads, int32_t rows) {
    x_.threads = threads, x_.rows = rows;
    for (const TileValue& v : r_.values)
      if (int64_t{v.features} * rows > int64_t{kMostElements} * threads) return false;
    share_terms();
    x_.phases = find_phases(r_, x_.steps);
    size_t end = 0;
    auto take = [&](size_t bytes) {
      const size_t at = end;
      end += (bytes + 15) / 16 * 16;
      return at;
    };
    auto twice = [&](int64_t elements, size_t item) {
      return take(2 * ((static_cast<size_t>(elements) * item + 15) / 16 * 16));
    };
    x_.carried.clear();
    for (const auto& c : x_.steps.carried) {
      const TileValue& v = r_.values[c.value];
      x_.carried.push_back(twice(int64_t{v.features} * rows, compute_size(v.type)));
    }
    x_.fetched.assign(r_.loads.size(), -1);
    for (size_t l = 0; l < r_.loads.size(); ++l) {
      const size_t item = item_size(r_.loads[l].dtype);
      if (loop_.inputs[r_.loads[l].buffer].kind == From::Sliced && item >= 4)
        x_.fetched[l] = static_cast<int64_t>(
            twice(int64_t{r_.values[r_.loads[l].value].features} * rows, item));
    }
    x_.values_at = take(x_.phases.row_bytes * static_cast<size_t>(rows));
    const size_t room = target_.shared_bytes - kDriverShared;
    if (end > room || !hold(room, end)) return false;
    x_.shared_bytes = end;
    x_.cycles = cycles();
    return true;
  }

 private:
  /// Sums of many terms are shared among threads that would have nothing to do.
  void share_terms() {
    x_.parts.assign(r_.program.size(), 0);
    x_.steps.parts.assign(r_.program.size(), 0);
    for (size_t at = 0; at < r_.program.size(); ++at) {
      const Instruction& i = r_.program[at];
      const bool product = i.kind == TileOp::Product;
      if (!product && (i.kind != TileOp::FeatureReduce || i.inner < kSharedTerms)) continue;
      const int64_t elements = int64_t{i.features} * (product ? 1 : x_.rows);
      int64_t parts = std::min(x_.threads / std::max<int64_t>(elements, 1),
                               product ? shares(i.inner, 8) : most_parts(i.inner));
      if (!product && parts < 2) continue;
      parts = std::max<int64_t>(parts, 1);
      x_.parts[at] = narrow<int32_t>(parts);
      x_.steps.parts[at] =
          static_cast<size_t>(parts * i.features) * compute_size(r_.values[i.dst].type);
    }
  }
  /// About the root: as many parts as each has terms.
  static int64_t most_parts(int64_t count) {
    int64_t parts = 1;
    while (parts * parts < count) parts *= 2;
    return parts;
  }

  /// Places for the weights, from `end` on: as much as there is room for in registers, if what is
  /// left is worth it, and the rest in shared memory.
  bool hold(size_t room, size_t& end) {
    x_.held.assign(r_.weights.size(), {});
    for (size_t at = 0; at < r_.program.size(); ++at) {
      const Instruction& i = r_.program[at];
      if (i.kind != TileOp::Product) continue;
      LoopKernel::Held& h = x_.held[i.weights];
      h.columns = narrow<int32_t>(shares(i.features, x_.threads));
      h.fours = narrow<int32_t>(shares(shares(i.inner, x_.parts[at]), 4));
    }
    int32_t most = 0, all = 0;  // registers for sums; fours
    for (size_t w = 0; w < r_.weights.size(); ++w) {
      const LoopKernel::Held& h = x_.held[w];
      most = std::max(most, h.columns * (x_.rows + 1) * 4 * words(w));
      all += h.columns * h.fours * words(w);
    }
    int32_t left = std::min(kRegisters / x_.threads, kMostRegisters) - kOwnRegisters - most;
    int64_t widest = 0;
    for (const TileValue& v : r_.values)
      widest = std::max(widest, shares(int64_t{v.features} * x_.rows, x_.threads));
    left -= narrow<int32_t>(8 * widest);
    registers_ = kOwnRegisters + most;
    if (left < 0 && !r_.weights.empty()) return false;
    if (all < kFewFours) left = 0;
    for (size_t w = 0; w < r_.weights.size(); ++w) {
      LoopKernel::Held& h = x_.held[w];
      const int32_t registers = 4 * h.columns * words(w);
      h.kept = std::clamp(left / registers, 0, h.fours);
      left -= h.kept * registers, registers_ += h.kept * registers;
      h.place = end;
      end += static_cast<size_t>(h.fours - h.kept) * static_cast<size_t>(registers) * 4 *
             static_cast<size_t>(x_.threads);
    }
    return end <= room;
  }
  int32_t words(size_t weights) const {
    return narrow<int32_t>(compute_size(r_.weights[weights].type) / 4);
  }

  double cycles() const {
    double issue = 0, chain = x_.phases.meets ? kBarrier : 0;
    int32_t phase = 0;
    for (const TileItem& item : x_.phases.items) {
      if (item.phase != phase) chain += kBarrier;
      phase = item.phase;
      const Cost c = of(item);
      issue += c.issue, chain += std::max(c.issue, c.wait);
    }
    const int64_t blocks = shares(r_.rows, x_.rows);
    const int64_t each = std::max<int64_t>(
        1, std::min({static_cast<int64_t>(target_.shared_bytes / (x_.shared_bytes + kDriverShared)),
                     int64_t{kRegisters / (x_.threads * std::min(registers_, kMostRegisters))},
                     shares(blocks, target_.multiprocessors)}));
    const auto rounds = static_cast<double>(shares(blocks, each * target_.multiprocessors));
    double begin = kMemory;
    for (const LoopKernel::Held& h : x_.held) begin += 4 * kLatency * h.fours * h.columns;
    const double step = std::max(chain, static_cast<double>(each) * issue);
    return kLaunchCycles + rounds * (begin + static_cast<double>(loop_.steps) * step);
  }

  struct Cost {
    double issue = 0, wait = 0;
  };

  double warps() const { return x_.threads / 32.0; }
  /// What all threads do for the elements of a value.
  Cost elements(int32_t features, double instructions, double waits = kLatency) const {
    const auto mine = static_cast<double>(shares(int64_t{features} * x_.rows, x_.threads));
    const double active =
        std::min(warps(), static_cast<double>(shares(int64_t{features} * x_.rows, 32)));
    return {mine * active * (instructions + kElement) / kIssued,
            waits + mine * (instructions + kElement)};
  }

  double waits_for(uint32_t load) const {
    const bool same = loop_.inputs[r_.loads[load].buffer].kind == From::Same;
    return same || x_.fetched[load] >= 0 ? kNear : kMemory;
  }

  Cost of(const TileItem& item) const {
    switch (item.kind) {
      case TileItem::Kind::Load:
        return elements(r_.values[r_.loads[item.index].value].features, 2, waits_for(item.index));
      case TileItem::Kind::Store:
        return elements(r_.stores[item.index].features, 1);
      case TileItem::Kind::Carry:
        return elements(r_.values[x_.steps.carried[item.index].value].features, 1);
      case TileItem::Kind::Collect:
        return elements(r_.program[item.index].features, 2.0 * x_.parts[item.index], kCollect);
      case TileItem::Kind::Compute:
        return of(item.index);
    }
    return {};
  }

  Cost of(size_t at) const {
    const Instruction& i = r_.program[at];
    const double words = static_cast<double>(compute_size(r_.values[i.dst].type)) / 4;
    if (i.kind == TileOp::Product) {
      const LoopKernel::Held& h = x_.held[i.weights];
      const double fours = h.fours, columns = h.columns, rows = x_.rows;
      const double read = 4 * (fours - h.kept) * columns + fours * rows;  // accesses of a warp
      const double issued = warps() * fours * (columns * (4 * rows + 1) + rows) * words / kIssued;
      const double moved = warps() * read * words;
      return {std::max(issued, moved), 10 * kLatency};
    }
    if (i.kind == TileOp::FeatureReduce) {
      const int32_t parts = std::max(x_.parts[at], 1);
      const auto terms = static_cast<double>(shares(i.inner, parts));
      return elements(i.features * parts, terms * words * 2, terms * kLatency);
    }
    if (i.kind == TileOp::Elementwise)
      return elements(i.features, element_cost(i.op).gpu_instructions * words);
    return elements(i.features, words);
  }

  LoopKernel& x_;
  const Region& r_;
  const LoopFrame& loop_;
  const Target& target_;
  int32_t registers_ = 0;  ///< of a thread
};

/// The best number of threads and rows a block; false: there is none.
bool place_best(LoopKernel& r, const LoopFrame& loop, const Target& target) {
  Placer placer(r, loop, target);
  std::optional<std::pair<int32_t, int32_t>> best;
  double least = 0;
  for (int32_t threads = 32; threads <= kMostThreads; threads *= 2)
    for (int32_t rows = 1; rows <= kMostRows; rows *= 2) {
      if (!placer.place(threads, rows)) break;
      if (!best || r.cycles < least) best = {threads, rows}, least = r.cycles;
      if (rows >= r.region.rows) break;
    }
  return best && placer.place(best->first, best->second);
}

}  // namespace

bool LoopKernel::keeps() const {
  return std::ranges::any_of(held, [](const Held& h) { return h.kept > 0; });
}

std::optional<LoopKernel> find_loop_kernel(const PlanGraph& body, const LoopFrame& loop,
                                           const Target& target) {
  std::optional<LoopKernel> best;
  if (!target.weights.loop_kernels) return best;
  const Graph& g = body.graph;
  auto consider = [&](Labels labels) {
    std::optional<LoopKernel> found = Builder(body, loop, std::move(labels)).run();
    if (found && place_best(*found, loop, target) && (!best || found->cycles < best->cycles))
      best = std::move(found);
  };
  std::set<int64_t> rows;
  for (const NodeLabel& l : label(g, body.roots).node)
    if (l.in_region) rows.insert(l.rows);
  for (int64_t r : rows) consider(label(g, body.roots, false, r));
  consider(label(g, body.roots, true, 1));
  return best;
}

}  // namespace gradcell::cuda
