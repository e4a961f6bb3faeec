#include "cuda/fuse/convolutions.h"

#include <algorithm>
#include <set>

#include "cuda/cuda_plan.h"
#include "cuda/float_types.h"
#include "ops/ops.h"
#include "plan/rewrite/taken_over.h"

namespace gradcell::cuda {

namespace {

using Part = ConvolutionPart;

constexpr int64_t kRowsOfTile = 64, kTermsOfStep = 32;
/// Of a block's shared memory, what a kernel may have by itself.
constexpr size_t kOwnOfKernel = 1024;
/// Blocks that keep any GPU busy, and the fewest steps that are worth a block.
constexpr int64_t kBusy = 256, kFewestSteps = 8, kMostParts = 512;
/// Of a tile's products, those that are wanted: with fewer a thread an element takes less time,
/// which needs about 8 instructions a product where a tile's needs a half.
constexpr double kFewestWanted = 0.06;
/// Multiply-adds from which on cuDNN is faster: at 10 and 40 10^12 float32 operations a second,
/// ours and cuDNN's, such a one takes 2.5 us less, what a launch more costs for what comes after
/// it.
constexpr int64_t kFewestOfLibrary = 1 << 24;
/// Its sizes are int.
constexpr int64_t kMostOfLibrary = (int64_t(1) << 31) - 1;
/// Bits of ConvolutionAttributes: the channels of all three tensors come last.
constexpr int64_t kAllLast = 7;
/// Bits for elements of the kernel along all axes.
constexpr int64_t kMostBits = 62, kFewBits = 30;
/// Nodes after a convolution that its kernel computes, and nodes between those and memory.
constexpr size_t kMostAfter = 12;
constexpr int kMostSteps = 8;

int64_t divided(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// As gc_convolve lays it out, or a little more.
size_t shared_bytes_of(DType t, int64_t tall) {
  const auto item = static_cast<int64_t>(item_size(t));
  const int64_t pitch = kTermsOfStep + 16 / item, lines = kRowsOfTile * (tall + 1);
  return static_cast<size_t>(2 * lines * pitch * item + (lines + 2 * kTermsOfStep) * 32);
}

// Channels last ---------------------------------------------------------------------------------

/// The node that this one is a transpose of, if that has the channels of its images last (or, to
/// such, `to_last`).
NodeId transposed(const Graph& g, NodeId id, bool to_last) {
  if (form(g, id) != Form::Move || g.dims(id).size() < 3) return kNoNode;
  const Movement m = spec(g, id).movement(g, id);
  if (!is_view(m)) return kNoNode;
  const View& v = m.pieces[0].from;
  const NodeId from = g.input(id, m.pieces[0].input);
  const Dims &dims = g.dims(id), &before = g.dims(from);
  if (v.offset != 0 || v.dims != dims || before.size() != dims.size()) return kNoNode;
  const size_t rank = dims.size();
  const Dims strides = row_major(before);
  for (size_t k = 0; k < rank; ++k) {
    // Which axis of `from` this one is.
    const size_t axis = k == 0    ? 0
                        : to_last ? (k == rank - 1 ? 1 : k + 1)
                        : k == 1  ? rank - 1
                                  : k - 1;
    if (dims[k] != before[axis] || (dims[k] > 1 && v.strides[k] != strides[axis])) return kNoNode;
  }
  return from;
}

class LayoutRewriter {
 public:
  LayoutRewriter(PlanGraph from, const Target& target)
      : from_(std::move(from)), g_(from_.graph), uses_(g_.size(), 0), source_(g_.size(), kNoNode) {
    for (NodeId id = 0; id < g_.size(); ++id)
      for (NodeId input : g_.inputs(id)) ++uses_[input];
    for (NodeId root : from_.roots) ++uses_[root];
    for (NodeId id = 0; id < g_.size(); ++id) {
      if (form(g_, id) == Form::Convolve && plan_convolution(g_, id, target).tall > 0)
        read_through(id);
      const NodeId before = transposed(g_, id, true);
      if (before == kNoNode || form(g_, before) != Form::Convolve || uses_[before] != 1) continue;
      if (plan_convolution(g_, before, target).tall == 0) continue;
      source_[id] = before, uses_[before] = 0, changes_ = true;
    }
  }

  PlanGraph run() {
    if (!changes_) return std::move(from_);
    Graph out(g_.settings());
    std::vector<NodeId> to(g_.size(), kNoNode), in;
    for (NodeId id = 0; id < g_.size(); ++id) {
      const bool effect =
          std::ranges::any_of(g_.effects(), [&](const Graph::Effect& e) { return e.id == id; });
      if (uses_[id] == 0 && !effect && !is_leaf(g_, id) && !is_constant(g_, id)) continue;
      in.clear();
      const NodeId computes = source_[id] != kNoNode ? source_[id] : id;
      if (form(g_, computes) != Form::Convolve) {
        for (NodeId i : g_.inputs(id)) in.push_back(to[i]);
        to[id] = rebuild(out, g_, id, in);
        continue;
      }
      auto a = attributes<ConvolutionAttributes>(g_, computes);
      for (int k = 0; k < 2; ++k) {
        const NodeId i = g_.input(computes, k), before = through(computes, k);
        in.push_back(to[before == kNoNode ? i : before]);
        if (before != kNoNode) a.last |= 1 << k;
      }
      if (computes != id) a.last |= 4;
      Stamp stamp(out);
      stamp.like(g_[id]);
      to[id] = out.intern(g_[computes].op, g_.dtype(id), Dims(g_.dims(id)), in, encode(a));
    }
    PlanGraph all;
    take_over(all, from_, to);
    all.graph = std::move(out);
    return all;
  }

 private:
  NodeId through(NodeId convolution, int k) const {
    const auto found = reads_.find({convolution, k});
    return found == reads_.end() ? kNoNode : found->second;
  }
  void read_through(NodeId id) {
    for (int k = 0; k < 2; ++k) {
      const NodeId i = g_.input(id, k), before = transposed(g_, i, false);
      if (before == kNoNode) continue;
      reads_[{id, k}] = before;
      ++uses_[before], changes_ = true;
      if (--uses_[i] == 0) --uses_[before];
    }
  }

  PlanGraph from_;
  const Graph& g_;
  std::vector<int> uses_;
  std::vector<NodeId> source_;  ///< of a transpose: the convolution that writes its elements
  std::map<std::pair<NodeId, int>, NodeId> reads_;
  bool changes_ = false;
};

// Ends ------------------------------------------------------------------------------------------

class Ends {
 public:
  Ends(const Graph& g, std::span<const NodeId> roots, const Target& target, Fusion& f)
      : g_(g), target_(target), f_(f), uses_(g.size(), 0) {
    for (NodeId id = 0; id < g.size(); ++id)
      if (f.node[id].role != Role::View)
        for (NodeId input : g.inputs(id)) ++uses_[f.storage[input]];
    for (NodeId root : roots) ++uses_[f.storage[root]];
  }

  std::map<NodeId, ConvolutionEnd> run() {
    for (NodeId id = 0; id < g_.size(); ++id)
      if (form(g_, id) == Form::Convolve && g_.count(id) > 0 && f_.node[id].role == Role::Alone &&
          plan_convolution(g_, id, target_).tall > 0 && !is_of_library(g_, id, target_))
        find(id);
    return std::move(found_);
  }

 private:
  /// Whether an element can be computed from what is in memory before the convolution's stage.
  bool ready(NodeId id, int32_t stage, int depth) {
    id = f_.storage[id];
    const Fused& n = f_.node[id];
    if (is_constant(g_, id)) return true;
    if (is_leaf(g_, id) || (n.stored && n.stage < stage)) {
      reads_.insert(id);
      return true;
    }
    if (n.role != Role::Map || n.stored || depth == 0) return false;
    return std::ranges::all_of(g_.inputs(id), [&](NodeId i) { return ready(i, stage, depth - 1); });
  }

  void find(NodeId convolution) {
    const int32_t stage = f_.node[convolution].stage;
    std::map<NodeId, int> left{
        {convolution, uses_[convolution]}};  // uses by others, of those inside
    std::set<NodeId> needs;
    NodeId end = kNoNode;
    std::set<NodeId> needs_of_end;
    for (NodeId id = convolution + 1; id < g_.size() && left.size() <= kMostAfter; ++id) {
      if (f_.node[id].role == Role::View) continue;
      std::vector<NodeId> others;
      bool inside = false;
      for (NodeId i : g_.inputs(id))
        if (left.contains(f_.storage[i]))
          inside = true;
        else
          others.push_back(i);
      if (!inside) continue;
      reads_.clear();
      if (f_.node[id].role != Role::Map || info(form(g_, id)).kernel != KernelForm::Element ||
          g_.count(id) != g_.count(convolution) ||
          !std::ranges::all_of(others, [&](NodeId i) { return ready(i, stage, kMostSteps); }))
        break;
      needs.insert(reads_.begin(), reads_.end());
      for (NodeId i : g_.inputs(id))
        if (auto it = left.find(f_.storage[i]); it != left.end()) --it->second;
      const bool alone =
          std::ranges::all_of(left, [](const auto& node) { return node.second == 0; });
      left[id] = uses_[id];
      const bool no_longer = item_size(g_.dtype(id)) <= item_size(g_.dtype(convolution));
      if (alone && (f_.node[id].stored || no_longer)) end = id, needs_of_end = needs;
    }
    if (end == kNoNode) return;
    for (const auto& [id, uses] : left)
      if (id < end) f_.node[id].stored = id == convolution;
    f_.node[end] = f_.node[convolution];
    f_.node[convolution].stored = false;
    found_[end] = {convolution, {needs_of_end.begin(), needs_of_end.end()}};
  }

  const Graph& g_;
  const Target& target_;
  Fusion& f_;
  std::vector<int> uses_;
  std::set<NodeId> reads_;  ///< of the last question whether a node is ready
  std::map<NodeId, ConvolutionEnd> found_;
};

}  // namespace

ConvolutionProduct product_of(Part part, const ConvolutionSizes& s) {
  const int64_t taps = s.inner(&WindowAxis::kernel);
  const int64_t places = s.images * s.inner(&WindowAxis::output);
  if (part == Part::Output) return {places, s.outputs, s.inputs * taps};
  if (part == Part::Weight) return {s.outputs, s.inputs * taps, places};
  ConvolutionProduct p{s.images, s.inputs, s.outputs};
  for (const WindowAxis& a : s.axes) {
    p.rows *= divided(a.input, a.stride);
    p.terms *= divided(a.kernel, a.stride);
    p.phases *= a.stride;
  }
  return p;
}

ConvolutionSizes sizes_of_convolution(const Graph& g, NodeId id) {
  return convolution_sizes(g[id].op, g.dims(g.input(id, 0)), g.dims(g.input(id, 1)), g.dims(id),
                           attributes<ConvolutionAttributes>(g, id));
}

ConvolutionTiles plan_convolution(const Graph& g, NodeId id, const Target& target) {
  const DType t = g.dtype(id);
  const ConvolutionSizes s = sizes_of_convolution(g, id);
  int64_t bits = 0;
  for (const WindowAxis& a : s.axes) bits += a.kernel;
  if (!is_floating(t) || bits > kMostBits || s.axes.size() > 3) return {};
  const Part part = convolution_part(g[id].op);
  const ConvolutionProduct p = product_of(part, s);
  auto fits = [&](int64_t tall) {
    return shared_bytes_of(t, tall) + kOwnOfKernel <= target.shared_bytes;
  };
  if (!fits(1)) return {};
  auto blocks = [&](int64_t tall) {
    return s.groups * p.phases * divided(p.rows, kRowsOfTile * tall) *
           divided(p.columns, kRowsOfTile);
  };
  const int64_t steps = divided(p.terms, kTermsOfStep);
  const double made = static_cast<double>(blocks(1) * kRowsOfTile * kRowsOfTile) *
                      static_cast<double>(steps * kTermsOfStep);
  // An element of the weights' gradient has so many terms that a thread would take too long.
  if (part != Part::Weight && static_cast<double>(s.work()) < kFewestWanted * made) return {};
  ConvolutionTiles tiles;
  const bool many = part == Part::Weight ? p.rows > kRowsOfTile : blocks(2) >= kBusy;
  tiles.tall = many && item_size(t) <= 4 && fits(2) ? 2 : 1;
  tiles.shared_bytes = shared_bytes_of(t, tiles.tall);
  tiles.wide_bits = bits > kFewBits;
  const int64_t most = std::min(kMostParts, std::max<int64_t>(1, steps / kFewestSteps));
  tiles.parts = std::clamp<int64_t>(kBusy / std::max<int64_t>(1, blocks(tiles.tall)), 1, most);
  if (tiles.parts > 1)
    tiles.partial_bytes =
        static_cast<size_t>(tiles.parts * g.count(id)) * (compute_type(t) == Compute::F64 ? 8 : 4);
  return tiles;
}

bool is_of_library(const Graph& g, NodeId id, const Target& target) {
  const DType t = g.dtype(id);
  if (!target.cudnn || !is_floating(t) || t == DType::Float64) return false;
  if (target.capability < float_type(t).first_with_library) return false;
  const ConvolutionSizes s = sizes_of_convolution(g, id);
  const int64_t last = attributes<ConvolutionAttributes>(g, id).last;
  // Tensors that lie in different ways have no algorithms, nor have all volumes.
  if (last != 0 && (last != kAllLast || s.axes.size() > 2)) return false;
  for (NodeId tensor : {g.input(id, 0), g.input(id, 1), id})
    if (g.count(tensor) > kMostOfLibrary) return false;
  // It has one padding for both sides of an axis, and all the windows that fit.
  auto has_words = [](const WindowAxis& a) {
    const int64_t room = a.input + 2 * a.before - (a.kernel - 1) * a.dilation - 1;
    return a.before >= 0 && room >= 0 && room / a.stride + 1 == a.output;
  };
  return s.work() >= kFewestOfLibrary && std::ranges::all_of(s.axes, has_words) &&
         plan_convolution(g, id, target).tall > 0;
}

PlanGraph with_channels_last(PlanGraph from, const Target& target) {
  return LayoutRewriter(std::move(from), target).run();
}

std::map<NodeId, ConvolutionEnd> ends_of_convolutions(const Graph& g, std::span<const NodeId> roots,
                                                      const Target& target, Fusion& f) {
  return Ends(g, roots, target, f).run();
}

}  // namespace gradcell::cuda
