#include "ad/rows.h"

#include <functional>
#include <optional>

#include "ad/calls.h"
#include "ad/transform.h"
#include "ops/ops.h"

namespace gradcell::ad {

namespace {

/// Where rows lie in a dense tensor: element i belongs to row i / inner % rows.
using Inner = int64_t;

/// The axis along which the row changes, in steps of `run` places of that axis.
struct RowAxis {
  size_t axis;
  int64_t run;
};

std::optional<RowAxis> row_axis(const Dims& dims, Inner inner, int64_t rows) {
  int64_t below = 1;
  for (size_t k = dims.size(); k-- > 0; below *= dims[k]) {
    if (inner % below != 0) return {};
    const int64_t run = inner / below;
    if (dims[k] % (run * rows) == 0) return RowAxis{k, run};
  }
  return {};
}

/// The same for the axis of a result that takes the place of a row axis.
Inner inner_of(const Dims& dims, RowAxis at) {
  return at.run * product(dims, at.axis + 1, dims.size());
}

class Rows {
 public:
  Rows(const Graph& g, int64_t rows) : g_(g), rows_(rows) {}

  /// Where the rows of an active node lie, given its inputs'; nothing if it mixes rows.
  std::optional<Inner> lie(NodeId id, std::span<const std::optional<Inner>> of) const {
    switch (form(g_, id)) {
#define FORM(Name, parts, rows, ...) \
  case Form::Name:                   \
    return rows(id, of);
#include "ir/forms.def"
    }
    return {};
  }

 private:
  /// Of each input.
  using Of = std::span<const std::optional<Inner>>;

  // By form: the column `rows` of forms.def. -----------------------------------------------------

  std::optional<Inner> mixed(NodeId, Of) const { return {}; }

  std::optional<Inner> kept(NodeId id, Of of) const {
    return common(id, of, [](int, Inner inner) { return std::optional(inner); });
  }

  std::optional<Inner> marked(NodeId id, Of of) const {
    if (g_.count(id) != g_.count(g_.input(id, 0))) return {};  // pairs as complex numbers
    return kept(id, of);
  }

  std::optional<Inner> reduced(NodeId id, Of of) const {
    return along(
        id, of, [&](size_t axis) { return contains(g_.attrs(id), axis); },
        [&](RowAxis at) {
          size_t left = 0;
          for (size_t k = 0; k < at.axis; ++k) left += !contains(g_.attrs(id), k);
          return left;
        });
  }

  std::optional<Inner> scanned(NodeId id, Of of) const {
    const auto axis = static_cast<size_t>(attributes<ScanAttributes>(g_, id).axis);
    return along(id, of, [&](size_t k) { return k == axis; });
  }

  std::optional<Inner> transformed(NodeId id, Of of) const {
    const auto changed = static_cast<size_t>(attributes<FourierAttributes>(g_, id).axis);
    return along(
        id, of, [&](size_t axis) { return axis == changed || axis + 1 == g_.dims(id).size(); },
        [](RowAxis at) { return at.axis; });
  }

  std::optional<Inner> taken(NodeId id, Of of) const {
    const auto from = static_cast<size_t>(attributes<AxisAttributes>(g_, id).axis);
    const size_t indices = g_.dims(g_.input(id, 1)).size();
    return along(
        id, of, [&](size_t axis) { return axis == from; },
        [&](RowAxis at) { return at.axis < from ? at.axis : at.axis + indices - 1; });
  }

  std::optional<Inner> scattered(NodeId id, Of of) const {
    const auto to = static_cast<size_t>(attributes<ScatterAttributes>(g_, id).axis);
    const size_t indices = g_.dims(g_.input(id, 0)).size();
    return along(
        id, of, [&](size_t axis) { return axis >= to && axis < to + indices; },
        [&](RowAxis at) { return at.axis < to ? at.axis : at.axis + 1 - indices; });
  }

  /// Of images; weights, and their gradient, mix them.
  std::optional<Inner> convolved(NodeId id, Of of) const {
    return common(id, of, [&](int k, Inner inner) -> std::optional<Inner> {
      const auto at = row_axis(g_.dims(g_.input(id, k)), inner, rows_);
      const bool images = k == 0 && convolution_part(g_[id].op) != ConvolutionPart::Weight;
      if (!images || !at || at->axis != 0) return {};
      return inner_of(g_.dims(id), *at);
    });
  }

  std::optional<Inner> windowed(NodeId id, Of of) const {
    const size_t first = g_.dims(id).size() - attributes<WindowAttributes>(g_, id).size.size();
    return along(id, of, [&](size_t axis) { return axis >= first; });
  }

  std::optional<Inner> sampled(NodeId id, Of of) const {
    return along(id, of, [](size_t axis) { return axis != 0; });
  }

  std::optional<Inner> at_places(NodeId id, Of of) const {
    return along(id, of, [](size_t axis) { return axis == 1; });
  }

  std::optional<Inner> by_problem(NodeId id, Of of) const {
    const size_t problems =
        g_.dims(g_.input(id, 0)).size() - spec(g_, id).problem_rank(g_.attrs(id), 0);
    return along(id, of, [&](size_t axis) { return axis >= problems; });
  }

  std::optional<Inner> multiplied(NodeId id, Of of) const {
    return common(id, of, [&](int k, Inner inner) { return multiplied(id, k, inner); });
  }

  std::optional<Inner> moved(NodeId id, Of of) const {
    const Movement m = spec(g_, id).movement(g_, id);
    std::optional<Inner> all;
    for (const Piece& p : m.pieces) {
      if (!of[p.input]) continue;
      const std::optional<Inner> mine = placed(g_.dims(id), p, *of[p.input]);
      if (!mine || (all && *all != *mine)) return {};
      all = mine;
    }
    return all;
  }

  /// What all active inputs agree on.
  template <class F>
  std::optional<Inner> common(NodeId id, Of of, F one) const {
    std::optional<Inner> all;
    for (int k = 0; k < g_[id].input_count; ++k) {
      if (!of[k]) continue;
      const std::optional<Inner> mine = one(k, *of[k]);
      if (!mine || (all && *all != *mine)) return {};
      all = mine;
    }
    return all;
  }

  /// Ops that combine what lies along some axes, and the place of the others in the result: by
  /// default the same.
  template <class Combines, class Place = decltype(&RowAxis::axis)>
  std::optional<Inner> along(NodeId id, Of of, Combines combines,
                             Place place = &RowAxis::axis) const {
    return common(id, of, [&](int k, Inner inner) -> std::optional<Inner> {
      const auto at = row_axis(g_.dims(g_.input(id, k)), inner, rows_);
      if (!at || combines(at->axis)) return {};
      return inner_of(g_.dims(id), {std::invoke(place, *at), at->run});
    });
  }

  std::optional<Inner> multiplied(NodeId id, int k, Inner inner) const {
    const size_t rank = g_.dims(id).size();
    const auto at = row_axis(g_.dims(g_.input(id, k)), inner, rows_);
    if (!at) return {};
    if (at->axis + 2 < rank) return inner_of(g_.dims(id), *at);
    const auto p = attributes<ProductAttributes>(g_, id);
    const bool first = k % 2 == 0, transposed = first ? p.transpose_a : p.transpose_b;
    const size_t kept = (first != transposed) ? rank - 2 : rank - 1;
    if (at->axis != kept) return {};
    return inner_of(g_.dims(id), {first ? rank - 2 : rank - 1, at->run});
  }

  /// One axis of a piece goes through all rows in order and stands whole in the result; along the
  /// others elements stay within a row.
  std::optional<Inner> placed(const Dims& result, const Piece& p, Inner inner) const {
    const View& v = p.from;
    std::optional<RowAxis> at;
    int64_t low = v.offset % (inner * rows_), high = low;
    if (v.offset < 0 || low >= inner) return {};
    for (size_t k = 0; k < v.dims.size(); ++k) {
      const int64_t n = v.dims[k], s = v.strides[k];
      if (n <= 1 || s % (inner * rows_) == 0) continue;
      const bool whole = p.start[k] == 0 && p.step[k] == 1 && n == result[k];
      if (!at && s > 0 && inner % s == 0 && n % (inner / s * rows_) == 0) {
        if (!whole) return {};
        at = RowAxis{k, inner / s};
        high += inner - s;
      } else {
        (s > 0 ? high : low) += (n - 1) * s;
      }
    }
    if (!at || low < 0 || high >= inner) return {};
    return inner_of(result, *at);
  }

  const Graph& g_;
  int64_t rows_;
};

/// Finds the rows of node after node.
class Walk {
 public:
  Walk(Graph& g, int64_t rows) : g_(g), rows_(rows), in_(g, rows) {}

  /// The rows of `id` are its slices along the first axis.
  void begin(NodeId id) { inner(id) = g_.count(id) / rows_; }

  const std::optional<Inner>& of(NodeId id) { return inner(id); }

  /// Goes on to the outputs; the first node that mixes rows, if there is one. `order`: up to which
  /// derivatives are taken, those of calls with a rule of their own being what the rule makes.
  NodeId walk(std::span<const NodeId> outputs, int order) {
    for (NodeId id : live_nodes(g_, outputs)) {
      if (inner(id)) continue;
      if (is_call_output(g_, id)) {
        if (const NodeId mixing = call(id, order); mixing != kNoNode) return mixing;
        continue;
      }
      bool active = false;
      of_.clear();
      for (int k = 0; k < g_[id].input_count; ++k) {
        of_.push_back(passes(g_, id, k) ? inner(g_.input(id, k)) : std::nullopt);
        active |= of_.back().has_value();
      }
      if (!active) continue;
      const std::optional<Inner> found = in_.lie(id, of_);
      if (!found) return id;
      inner(id) = found;
    }
    return kNoNode;
  }

 private:
  std::optional<Inner>& inner(NodeId id) {
    if (inner_.size() <= id) inner_.resize(std::max<size_t>(g_.size(), id + 1));
    return inner_[id];
  }

  /// The value's rows, and those of the tangent that the call's rule makes of tangents with rows
  /// where the inputs have theirs. A node that mixes them, or has them elsewhere; else kNoNode.
  NodeId call(NodeId id, int order) {
    const Call c = call_of(g_, id);
    std::vector<NodeId> dx;
    std::vector<bool> wanted;
    for (NodeId x : c.inputs) {
      wanted.push_back(is_floating(g_.dtype(x)) && inner(x));
      dx.push_back(wanted.back() ? g_.unknown(g_.dtype(x), Dims(g_.dims(x))) : kNoNode);
      if (wanted.back()) inner(dx.back()) = Inner(*inner(x));
    }
    inner(id) = std::optional(inner(g_.input(id, 0)));
    const bool active = std::ranges::find(wanted, true) != wanted.end();
    if (!active || (order == 0 && inner(id))) return kNoNode;
    if (order == 0) return id;
    const std::vector<NodeId> dy = call_tangent(g_, c, dx, wanted);
    const NodeId moved = dy.empty() ? kNoNode : dy.back();
    if (moved == kNoNode) return kNoNode;
    if (const NodeId mixing = walk({&moved, 1}, order - 1); mixing != kNoNode) return mixing;
    const std::optional<Inner> found = inner(moved);
    if (found && inner(id) && *found != *inner(id)) return id;
    if (found) inner(id) = found;
    return kNoNode;
  }

  Graph& g_;
  int64_t rows_;
  Rows in_;
  std::vector<std::optional<Inner>> inner_, of_;
};

}  // namespace

NodeId first_mixing_rows(Graph& g, std::span<const NodeId> outputs, std::span<const NodeId> wrt,
                         int order, bool in_place) {
  const int64_t rows = g.dims(wrt[0])[0];
  for (NodeId id : wrt)
    if (rows == 1 || g.count(id) == 0) return kNoNode;
  Walk w(g, rows);
  for (NodeId id : wrt) w.begin(id);
  if (const NodeId mixing = w.walk(outputs, order); mixing != kNoNode) return mixing;
  if (in_place)
    for (NodeId id : outputs)
      if (w.of(id) && *w.of(id) * rows != g.count(id)) return id;
  return kNoNode;
}

}  // namespace gradcell::ad
