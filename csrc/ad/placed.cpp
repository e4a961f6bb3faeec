#include "ad/placed.h"

#include <algorithm>
#include <map>

#include "ops/ops.h"

namespace gradcell::ad {

namespace {

/// What is placed in a box of a larger tensor.
struct Part {
  NodeId x;
  std::span<const int64_t> start, step;
};

struct Interval {
  int64_t begin, end;
  bool operator<(const Interval& o) const {
    return begin != o.begin ? begin < o.begin : end < o.end;
  }
};

class Joiner {
 public:
  explicit Joiner(Graph& g) : g_(g) {}

  /// The parts placed in `dims`, of which the axes before `axis` are theirs already.
  NodeId joined(const std::vector<Part>& parts, const Dims& dims, size_t axis) {
    if (axis == dims.size()) {
      NodeId sum = kNoNode;
      for (const Part& p : parts) sum = accumulate(g_, sum, p.x);
      return sum;
    }
    std::map<Interval, std::map<int64_t, std::vector<Part>>> groups;  // by place, by step
    for (const Part& p : parts) {
      const int64_t n = g_.dims(p.x)[axis], far = p.start[axis] + (n - 1) * p.step[axis];
      groups[{std::min(p.start[axis], far), std::max(p.start[axis], far) + 1}]
            [n == 1 ? 1 : p.step[axis]]
                .push_back(p);
    }
    std::vector<std::vector<Placed>> layers;
    for (auto& [interval, steps] : groups) {
      NodeId sum = kNoNode;
      for (auto& [step, same] : steps)
        sum = accumulate(g_, sum, spread(joined(same, dims, axis + 1), axis, step, interval));
      auto layer = std::ranges::find_if(
          layers, [&](const auto& l) { return l.back().at.end <= interval.begin; });
      if (layer == layers.end()) layer = layers.insert(layers.end(), std::vector<Placed>());
      layer->push_back({interval, sum});
    }
    NodeId total = kNoNode;
    for (const auto& layer : layers)
      total = accumulate(g_, total, in_a_row(layer, dims[axis], axis));
    return total;
  }

 private:
  struct Placed {
    Interval at;
    NodeId x;
  };

  /// x with its elements along the axis `step` apart.
  NodeId spread(NodeId x, size_t axis, int64_t step, const Interval& interval) {
    if (step == 1) return x;
    return placed(x, axis, interval.end - interval.begin,
                  step > 0 ? 0 : interval.end - interval.begin - 1, step);
  }

  NodeId placed(NodeId x, size_t axis, int64_t size, int64_t start, int64_t step) {
    Dims dims = g_.dims(x), starts(dims.size(), 0), steps(dims.size(), 1);
    dims[axis] = size, starts[axis] = start, steps[axis] = step;
    return slice_scatter(g_, x, dims, starts, steps);
  }

  /// Disjoint parts, in order, along the axis; zeros elsewhere.
  NodeId in_a_row(const std::vector<Placed>& parts, int64_t size, size_t axis) {
    std::vector<NodeId> xs;
    int64_t at = parts[0].at.begin;
    for (const Placed& p : parts) {
      if (at < p.at.begin) {
        Dims gap = g_.dims(p.x);
        gap[axis] = p.at.begin - at;
        xs.push_back(constant(g_, g_.dtype(p.x), gap, 0));
      }
      xs.push_back(p.x);
      at = p.at.end;
    }
    while (xs.size() > 1) {  // (a node has no more inputs than this)
      constexpr size_t kMost = 4096;
      std::vector<NodeId> fewer;
      for (size_t i = 0; i < xs.size(); i += kMost)
        fewer.push_back(concat(g_, std::span(xs).subspan(i, std::min(kMost, xs.size() - i)),
                               narrow<int>(axis)));
      xs = std::move(fewer);
    }
    return placed(xs[0], axis, size, parts[0].at.begin, 1);
  }

  Graph& g_;
};

/// What is placed, and where.
Placement box_of(Graph& g, NodeId id) {
  if (const auto box = placement(g, id)) return *box;
  const Dims& to = g.dims(id);
  Placement box = *placement(g, g.input(id, 0));
  Dims whole = g.dims(box.from);
  for (size_t k = 0; k < to.size(); ++k)
    if (g.dims(g.input(id, 0))[k] != to[k]) whole[k] = to[k];
  box.from = broadcast_to(g, box.from, whole);
  return box;
}

}  // namespace

bool is_placed(const Graph& g, NodeId id) {
  if (placement(g, id)) return true;
  if (!is_broadcast(g, id)) return false;
  const NodeId below = g.input(id, 0);
  return placement(g, below) && g.dims(below).size() == g.dims(id).size();
}

NodeId sum_of_placed(Graph& g, std::span<const NodeId> placed) {
  if (placed.size() == 1) return placed[0];
  std::vector<Placement> boxes;
  for (NodeId id : placed) boxes.push_back(box_of(g, id));
  std::vector<Part> parts;
  for (const Placement& b : boxes)
    if (g.count(b.from) > 0) parts.push_back({b.from, b.start, b.step});
  if (parts.empty()) return placed[0];
  return Joiner(g).joined(parts, g.dims(placed[0]), 0);
}

}  // namespace gradcell::ad
