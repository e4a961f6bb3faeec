// graph -> CudaPlan: fusion, buffers, kernels' text in launch order, liveness.
#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <unordered_map>

#include "cuda/fuse/attention_tiles.h"
#include "cuda/fuse/epilogues.h"
#include "cuda/fuse/narrow_products.h"
#include "cuda/fuse/product_joins.h"
#include "cuda/join/late_stores.h"
#include "cuda/join/product_groups.h"
#include "cuda/join/reduction_joins.h"
#include "cuda/join/row_joins.h"
#include "cuda/join/segments.h"
#include "cuda/plan_time.h"
#include "cuda/write/kernel_writers.h"
#include "cuda/write/regions/loop_kernel_writer.h"
#include "cuda/write/regions/tile_writer.h"
#include "ops/ops.h"
#include "plan/arena.h"
#include "plan/costs.h"
#include "plan/planner.h"

namespace gradcell::cuda {

namespace {

/// The text of math/scalar.h, prelude.cuh, tiles.cuh, tensor_cores.cuh, attention.cuh,
/// convolution.cuh and products.cuh, embedded by the build.
constexpr const char* kScalarText =
#include "cuda_scalar.inc"
    ;
constexpr const char* kPreludeText =
#include "cuda_prelude.inc"
    ;
constexpr const char* kTilesText =
#include "cuda_tiles.inc"
    ;
constexpr const char* kLoopKernelText =
#include "cuda_loop_kernel.inc"
    ;
constexpr const char* kTensorCoresText =
#include "cuda_tensor_cores.inc"
    ;
constexpr const char* kAttentionText =
#include "cuda_attention.inc"
    ;
constexpr const char* kConvolutionText =
#include "cuda_convolution.inc"
    ;
constexpr const char* kProductsText =
#include "cuda_products.inc"
    ;

std::string prelude_text(bool wide) {
  std::string text = wide ? "typedef long long gc_index;\n" : "typedef int gc_index;\n";
  return text + "typedef long long gc_long;\n" + kScalarText + kPreludeText + kTilesText +
         kLoopKernelText + kTensorCoresText + kAttentionText + kConvolutionText + kProductsText;
}

/// Element numbers from here on, with what a grid may add to them, need 64 bits.
constexpr int64_t kWide = (int64_t(1) << 31) - (int64_t(1) << 24);

/// Whether a loop's body, or one of a loop inside it, has as many elements.
bool is_wide(std::span<const int64_t> body) {
  return std::ranges::any_of(view_body(body).nodes, [](const BodyNode& n) {
    if (element_count(n.dims) >= kWide) return true;
    return spec(n.op).form == Form::Loop && is_wide(decode<LoopAttributes>(n.attributes).body);
  });
}

bool is_wide(const Graph& g) {
  for (NodeId id = 0; id < g.size(); ++id) {
    if (g.count(id) >= kWide) return true;
    if (is_loop(g, id) && is_wide(attributes<LoopAttributes>(g, id).body)) return true;
  }
  return false;
}

/// The kernels of a plan and of its loops' bodies. Equal texts are one kernel.
class Module {
 public:
  /// A kernel's number.
  int add(std::string text, const std::string& title) {
    auto [it, fresh] = number_.try_emplace(text, narrow<int>(kernels.size()));
    if (fresh) {
      std::string name = "gc_" + title + "_" + std::to_string(kernels.size());
      text.replace(text.find(kNameMark), std::string(kNameMark).size(), name);
      kernels.push_back({std::move(name), std::move(text)});
    }
    return it->second;
  }

  std::vector<Kernel> kernels;
  bool uses_status = false;

 private:
  std::unordered_map<std::string, int> number_;
};

/// Which nodes are computed together, and what that costs as the weights have it.
struct Scheme {
  PlanGraph graph;
  TileRegions tiles;
  Fusion fusion;
  std::map<NodeId, ProductSum> sums;      ///< that products write
  std::map<NodeId, ConvolutionEnd> ends;  ///< that convolutions do
  double cost = 0;
};

/// `others`: of find_tile_regions().
Scheme scheme_of(PlanGraph graph, const Target& target, const std::set<int64_t>& others) {
  Scheme s;
  s.graph = std::move(graph);
  const Graph& g = s.graph.graph;
  s.tiles = find_tile_regions(s.graph, target, others);
  s.fusion = fuse(g, s.graph.roots, s.tiles, target);
  s.sums = sums_of_products(g, s.graph.roots, s.fusion);
  s.ends = ends_of_convolutions(g, s.graph.roots, target, s.fusion);
  std::vector<NodeId> fixed;
  for (const auto& [end, of] : s.ends) fixed.insert(fixed.end(), of.reads.begin(), of.reads.end());
  for (const auto& [sum, of] : s.sums) fixed.push_back(of.bias != kNoNode ? of.bias : of.matrix);
  s.cost = store_late(g, fixed, target.weights, s.fusion);
  auto moves = [&](NodeId id) { s.cost += static_cast<double>(describe(g, id).bytes()); };
  for (NodeId id = 0; id < g.size(); ++id) {
    if (s.fusion.node[id].role == Role::Alone && form(g, id) == Form::Reduce) {
      const Reduction r = plan_reduction(g, id);
      if (r.chunks > 1)
        s.cost += target.weights.launch + 2.0 * static_cast<double>(r.partial_bytes);
    }
    if (!is_product(g, id) || s.fusion.node[id].role != Role::Alone) continue;
    s.cost += target.weights.launch * g[id].input_count / 2;
    for (NodeId input : g.inputs(id)) moves(input);
    moves(id);
  }
  for (const TileRegion& t : s.tiles.all) {
    s.cost += target.weights.launch;
    for (NodeId id : t.reads) moves(id);
    for (NodeId id : t.writes) moves(id);
  }
  return s;
}

/// The cheapest scheme of all ways in which products by a column or two can be computed.
Scheme cheapest_scheme(PlanGraph graph, const Target& target, const std::set<int64_t>& others) {
  Scheme first = scheme_of(std::move(graph), target, others), best;
  best.cost = first.cost;
  const NarrowWays all = narrow_ways(first.graph.graph, first.tiles);
  for (const NarrowWays ways : {NarrowWays{true, false}, {false, true}, {true, true}}) {
    if (ways.along > all.along || ways.over > all.over) continue;
    auto rewritten = without_narrow_products(first.graph, first.tiles, ways);
    if (!rewritten) continue;
    Scheme other = scheme_of(*std::move(rewritten), target, others);
    if (other.cost < best.cost) best = std::move(other);
  }
  return best.cost < first.cost ? std::move(best) : std::move(first);
}

/// The quickest of the plans that have narrow networks as kernels or as products. Those with the
/// same number of rows are the one or the other together. `again`: makes the same graph.
CudaPlan quickest(PlanGraph graph, const std::function<PlanGraph()>& again, Module& module,
                  bool wide, const Target& target);

class CudaPlanner {
 public:
  CudaPlanner(PlanGraph c, Module& module, bool wide, const Target& target,
              const std::set<int64_t>& others)
      : target_(target),
        scheme_(cheapest_scheme(with_channels_last(std::move(c), target), target, others)),
        c_(scheme_.graph),
        module_(module),
        g_(c_.graph),
        tiles_(scheme_.tiles),
        tile_made_(tiles_.all.size(), 0),
        f_(scheme_.fusion),
        sums_(scheme_.sums),
        in_{g_, f_, buffer_of_, plan_.buffers, constant_of_, wide, target_} {}

  CudaPlan run() {
    buffer_of_ = frame(c_, f_.storage, plan_);
    constant_of_ = constant_numbers(c_);
    for (NodeId id = 0; id < g_.size(); ++id)
      if (f_.node[id].stored && f_.storage[id] == id && buffer_of_[id] == UINT32_MAX)
        buffer_of_[id] = temporary(bytes(id));
    segments_ = join_segments(in_, f_);
    join_rows(in_, segments_, f_);
    for (std::vector<NodeId>& group : join_reductions(g_, f_)) {
      const NodeId first = group[0];
      for (NodeId id : group) reduced_with_[id] = first;
      reductions_[first] = std::move(group);
    }
    for (const std::vector<NodeId>& group : sums_to_join(g_, f_.storage, target_)) {
      std::map<int32_t, std::vector<NodeId>> parts;  // by stage
      for (NodeId id : group) parts[f_.node[id].stage].push_back(id);
      for (const auto& [stage, ids] : parts)
        for (NodeId id : ids) attended_with_[id] = ids;
    }
    make_stages();
    const std::vector<Neighbours> neighbours = join_products(plan_);
    if (target_.weights.groups) group_products();
    make_biases();
    place_temporaries(neighbours);
    plan_.wide = in_.wide;
    return std::move(plan_);
  }

  /// The numbers of rows of its narrow networks, and how long the kernels of each take.
  std::map<int64_t, double> tile_cycles() const {
    std::map<int64_t, double> found;
    for (const TileRegion& t : tiles_.all) found[t.region.rows] += t.cost.cycles;
    return found;
  }

 private:
  size_t bytes(NodeId id) const { return describe(g_, id).bytes(); }

  BufferId temporary(size_t bytes) { return add_buffer(plan_, {Place::Temp, 0, 0, bytes}); }

  void make_stages() {
    std::vector<std::vector<NodeId>> made(static_cast<size_t>(f_.stage_count));
    std::vector<std::vector<const Segments::Launch*>> launches(made.size());
    for (NodeId id = 0; id < g_.size(); ++id) {
      const Fused& node = f_.node[id];
      if (node.stored && f_.storage[id] == id && g_.count(id) > 0 && !segments_.joined[id])
        made[static_cast<size_t>(node.stage)].push_back(id);
    }
    for (const Segments::Launch& l : segments_.launches)
      launches[static_cast<size_t>(l.stage)].push_back(&l);
    for (size_t stage = 0; stage < made.size(); ++stage)
      make_stage(narrow<int32_t>(stage), made[stage], launches[stage]);
  }

  void make_stage(int32_t stage, std::span<const NodeId> made,
                  std::span<const Segments::Launch* const> launches) {
    std::map<std::pair<int64_t, bool>, std::vector<NodeId>> groups;
    std::map<std::pair<Dims, std::vector<NodeId>>, std::vector<NodeId>> loops;  // their results
    for (NodeId id : made) {
      const Fused& node = f_.node[id];
      if (is_constant(g_, id))
        groups[{g_.count(id), false}].push_back(id);
      else if (node.role == Role::Map || node.role == Role::RowReduce)
        groups[{node.rows, node.by_rows}].push_back(id);
      else if (is_loop(g_, id))
        loops[{loop_identity(g_, id), in_storage(id)}].push_back(id);
      else if (node.role == Role::Alone)
        make_alone(id);
      else if (node.role == Role::Tile)
        make_tile(id);
    }
    for (const auto& [loop, results] : loops) make_loop(results);
    for (auto& [key, nodes] : groups)
      for (size_t at = 0; at < nodes.size(); at += kMaxOutputs) {
        std::span<const NodeId> part(nodes.data() + at, std::min(kMaxOutputs, nodes.size() - at));
        add(key.second ? write_rows(in_, stage, key.first, part) : write_flat(in_, stage, part));
      }
    for (const Segments::Launch* l : launches)
      for (Written& w : write_segments(in_, stage, l->segments)) add(std::move(w));
  }

  /// The kernel of the region that computes a node, once.
  void make_tile(NodeId id) {
    const auto number = static_cast<size_t>(tiles_.of[id]);
    const TileRegion& tile = tiles_.all[number];
    require(std::ranges::binary_search(tile.writes, id), ErrorKind::Runtime,
            "planning: a region does not store ", info(g_[id].op).name);
    if (tile_made_[number]) return;
    tile_made_[number] = 1;
    const int32_t stage = f_.node[id].stage;
    std::vector<TileSums> sums = tile_sums(tile.region);
    for (TileSums& s : sums) s.partial = temporary(partial_bytes(tile, s));
    add(write_tile(in_, stage, tile, sums));
    for (const TileSums& s : sums) add(write_tile_sums(in_, stage, tile, s));
  }

  void make_alone(NodeId id) {
    if (auto end = scheme_.ends.find(id); end != scheme_.ends.end())
      return make_convolution(end->second.convolution, id);
    switch (form(g_, id)) {
#define KERNEL(write) return add(write(in_, id));
#define STEPS(make) return make(id);
#define NONE break;
#define FORM(Name, parts, rows, tile, call, kernel, cost, value, writer) \
  case Form::Name:                                                       \
    writer
#include "ir/forms.def"
#undef KERNEL
#undef STEPS
#undef NONE
    }
    fail(ErrorKind::Runtime, info(g_[id].op).name, " has no kernel of its own");
  }

  void make_scan(NodeId id) {
    const Scan s = plan_scan(g_, id);
    const BufferId partial = s.chunks > 1 ? temporary(s.partial_bytes) : 0;
    for (Written& w : write_scan(in_, id, partial)) add(std::move(w));
  }

  void make_fourier(NodeId id) {
    std::optional<BufferId> between;
    if (transforms_in_steps(g_, id)) between = temporary(describe(g_, id).bytes());
    for (Written& w : write_fourier(in_, id, between)) add(std::move(w));
  }

  void make_updates(NodeId id) {
    std::vector<BufferId> buffers;
    for (size_t n : updates_memory(in_, id)) buffers.push_back(temporary(n));
    for (Written& w : write_updates(in_, id, buffers)) add(std::move(w));
  }

  void make_order(NodeId id) {
    std::vector<BufferId> buffers;
    for (size_t n : order_memory(in_, id)) buffers.push_back(temporary(n));
    for (Written& w : write_order(in_, id, buffers)) add(std::move(w));
  }

  /// Of elements of rows.
  void make_row_updates(NodeId id) {
    if (!sorts_updates(g_, id)) return add(write_along(in_, id));
    make_updates(id);
  }

  /// A reduction, and those that share its launch.
  void make_reductions(NodeId id) {
    const auto with = reduced_with_.find(id);
    if (with != reduced_with_.end() && with->second != id) return;
    const std::vector<NodeId> all =
        with == reduced_with_.end() ? std::vector{id} : reductions_.at(id);
    const Reduction r = plan_reduction(g_, id);
    std::vector<BufferId> partials(all.size());
    if (r.chunks > 1)
      for (BufferId& partial : partials) partial = temporary(r.partial_bytes);
    for (Written& w : write_reductions(in_, all, partials)) add(std::move(w));
  }

  std::vector<NodeId> in_storage(NodeId id) const {
    std::vector<NodeId> in;
    for (NodeId i : g_.inputs(id)) in.push_back(f_.storage[i]);
    return in;
  }

  /// One step for all results of a loop.
  void make_loop(const std::vector<NodeId>& results) {
    FramedLoop framed = frame_loop(g_, results);
    auto make = [&] { return plan_graph(framed.body, framed.live, framed.roots, {}, true); };
    const std::optional<LoopKernel> kernel = find_loop_kernel(make(), framed.frame, target_);
    Module bodies = module_;
    CudaPlan body = quickest(make(), make, bodies, in_.wide, target_);
    if (kernel &&
        kernel->cycles < static_cast<double>(framed.frame.steps) * cycles_of(body, target_))
      return make_loop_kernel(*kernel, framed.frame, results);
    module_ = std::move(bodies);
    require(body.constants.empty(), ErrorKind::Runtime, "planning: constants in a loop's body");
    Step step;
    step.loop = narrow<int>(plan_.loops.size());
    step.nodes = results.size();
    for (const Step& s : body.steps) {
      const auto times = static_cast<size_t>(framed.frame.steps);
      step.bytes_read += times * s.bytes_read, step.bytes_written += times * s.bytes_written;
      step.flops += framed.frame.steps * s.flops;
    }
    step.stage = f_.node[results[0]].stage;
    step.location = g_[results[0]].location;
    LoopPlaces places(framed.frame, body, true);
    const size_t own = places.bytes, arena = body.arena_bytes;
    Loop& loop = plan_.loops.emplace_back(
        Loop{std::move(framed.frame), std::move(body), std::move(places), {}, {}});
    for (NodeId id : in_storage(results[0])) loop.reads.push_back(buffer_of_[id]);
    for (NodeId id : results) loop.writes.push_back(buffer_of_[id]);
    loop.state = temporary(own), loop.arena = temporary(arena);
    plan_.steps.push_back(std::move(step));
  }

  /// The loop as one kernel.
  void make_loop_kernel(const LoopKernel& kernel, const LoopFrame& loop,
                        const std::vector<NodeId>& results) {
    std::vector<BufferId> reads, writes;
    for (NodeId id : in_storage(results[0])) reads.push_back(buffer_of_[id]);
    for (NodeId id : results) writes.push_back(buffer_of_[id]);
    Written w = write_loop_kernel(in_, f_.node[results[0]].stage, kernel, loop, reads, writes);
    w.step.nodes = results.size();
    w.step.location = g_[results[0]].location;
    add(std::move(w));
  }

  /// A sum of attention's family, and those that its kernel computes too.
  void make_attention(NodeId id) {
    const auto with = attended_with_.find(id);
    if (with == attended_with_.end()) return add(write_attention(in_, id));
    if (id == with->second[0]) add(write_attention_cores(in_, with->second));
  }

  /// A partial derivative of a convolution's form, and what its kernel computes after it.
  void make_convolution(NodeId id, NodeId end) {
    if (is_of_library(g_, id, target_)) return call_library(id);
    const ConvolutionTiles t = plan_convolution(g_, id, target_);
    if (t.tall == 0) return add(write_convolution(in_, id));
    const BufferId partial = t.parts > 1 ? temporary(t.partial_bytes) : 0;
    for (Written& w : write_convolution_tiles(in_, id, end, t, partial)) add(std::move(w));
  }
  void make_convolution(NodeId id) { make_convolution(id, id); }

  void call_library(NodeId id) {
    const std::vector<NodeId> in = in_storage(id);
    const DType t = g_.dtype(id);
    Step step;
    step.convolution = {convolution_part(g_[id].op),
                        sizes_of_convolution(g_, id),
                        t,
                        t == DType::Float32 && target_.tf32,
                        attributes<ConvolutionAttributes>(g_, id).last != 0,
                        buffer_of_[in[0]],
                        buffer_of_[in[1]],
                        buffer_of_[id]};
    step.nodes = 1;
    step.flops = 2 * step.convolution->sizes.work();
    step.bytes_read = bytes(in[0]) + (in[0] == in[1] ? 0 : bytes(in[1]));
    step.bytes_written = bytes(id);
    step.stage = f_.node[id].stage;
    step.location = g_[id].location;
    plan_.steps.push_back(std::move(step));
  }

  /// A product, or a sum that its product writes.
  void make_product(NodeId out) {
    auto sum = sums_.find(out);
    NodeId id = sum == sums_.end() ? out : sum->second.product;
    if (!is_floating(g_.dtype(id))) return add(write_integer_product(in_, id));
    const size_t first = plan_.steps.size();
    for (int pair = 0; pair < g_[id].input_count; pair += 2) make_gemm(id, pair, out);
    if (sum == sums_.end()) return;
    if (sum->second.bias != kNoNode) return make_bias(out, sum->second.bias);
    Step& step = plan_.steps[first];
    step.product.adds = true;
    step.product.addend = buffer_of_[sum->second.matrix];
    step.nodes += 1;
    step.bytes_read += bytes(sum->second.matrix);
    step.location = g_[out].location;
  }

  /// The last product adds the bias.
  void make_bias(NodeId sum, NodeId bias) {
    Step& step = plan_.steps.back();
    step.product.has_bias = true;
    step.product.bias = buffer_of_[bias];
    step.product.add_bias = narrow<uint32_t>(biases_.size());
    step.nodes += 2;  // the broadcast and the sum
    step.bytes_read += bytes(bias);
    step.location = g_[sum].location;
    biases_.emplace_back(sum, bias);
  }

  /// What adds biases where the library cannot, for the products that are left to it.
  void make_biases() {
    for (Step& s : plan_.steps) {
      if (!s.is_product() || !s.product.has_bias) continue;
      const auto [sum, bias] = biases_[s.product.add_bias];
      s.product.add_bias = narrow<uint32_t>(plan_.bias_steps.size());
      plan_.bias_steps.push_back(with_kernel(write_bias(in_, sum, bias)));
    }
  }

  /// Small products of equal sizes as kernels of their own.
  void group_products() {
    std::vector<std::vector<Step>> instead(plan_.steps.size());
    std::vector<uint8_t> dropped(plan_.steps.size(), 0);
    for (const ProductGroup& group : product_groups(plan_, target_)) {
      const BufferId partial = group.parts > 1 ? temporary(group.partial_bytes) : 0;
      for (size_t at : group.steps) dropped[at] = 1;
      for (Written& w : write_product_group(in_, plan_, group, partial))
        instead[group.steps.back()].push_back(with_kernel(std::move(w)));
    }
    std::vector<Step> steps;
    for (size_t at = 0; at < plan_.steps.size(); ++at) {
      if (!dropped[at]) steps.push_back(std::move(plan_.steps[at]));
      std::ranges::move(instead[at], std::back_inserter(steps));
    }
    plan_.steps = std::move(steps);
  }

  /// One of the products that a node adds up, into the buffer of `out`.
  void make_gemm(NodeId id, int pair, NodeId out) {
    NodeId a = f_.storage[g_.input(id, pair)], b = f_.storage[g_.input(id, pair + 1)];
    Step step;
    Gemm& p = step.product;
    const auto flags = attributes<ProductAttributes>(g_, id);
    const auto [m, n, k] = sizes_of(g_.dims(g_.input(id, pair)), g_.dims(id), flags);
    p.accumulate = pair > 0;
    p.a = buffer_of_[a], p.b = buffer_of_[b], p.out = buffer_of_[out];
    p.dtype = g_.dtype(id);
    p.tf32 = p.dtype == DType::Float32 && target_.tf32;
    p.transpose_a = flags.transpose_a, p.transpose_b = flags.transpose_b;
    p.m = m, p.n = n, p.k = k;
    p.batch = p.m * p.n == 0 ? 0 : g_.count(id) / (p.m * p.n);
    step.nodes = pair == 0;
    step.flops = 2 * p.batch * p.m * p.n * p.k;
    step.bytes_read = bytes(a) + (a == b ? 0 : bytes(b));
    step.bytes_written = bytes(id);
    if (p.accumulate) step.bytes_read += step.bytes_written;
    step.stage = f_.node[id].stage;
    step.location = g_[id].location;
    plan_.steps.push_back(std::move(step));
  }

  void make_passage(NodeId id) {
    const auto a = attributes<CollectiveAttributes>(g_, id);
    Passage p{g_[id].op, a.combine(), g_.dtype(id), a.group, a.size, a.rank, a.root};
    p.out = buffer_of_[id], p.had = g_.count(id);
    p.reads = g_[id].input_count > 0;
    Step step;
    if (p.reads) {
      const NodeId x = f_.storage[g_.input(id, 0)];
      p.in = buffer_of_[x], p.given = g_.count(x);
      step.bytes_read = describe(g_, x).bytes();
    }
    step.bytes_written = describe(g_, id).bytes();
    step.passage = p;
    step.nodes = 1;
    step.stage = f_.node[id].stage;
    step.location = g_[id].location;
    plan_.steps.push_back(std::move(step));
  }

  /// A routine of the host's.
  void make_routine(NodeId id) {
    Call call;
    const Spec& s = spec(g_, id);
    call.op = s.op, call.form = s.form, call.combine = s.combine;
    Step step;
    for (NodeId i : in_storage(id)) {
      call.inputs.push_back(buffer_of_[i]);
      step.bytes_read += describe(g_, i).bytes();
    }
    for (NodeId i : g_.inputs(id)) call.in.push_back(describe(g_, i));
    call.output = buffer_of_[id];
    call.out = describe(g_, id);
    call.attributes.assign(g_.attrs(id).begin(), g_.attrs(id).end());
    step.bytes_written = call.out.bytes();
    step.nodes = 1;
    step.stage = f_.node[id].stage;
    step.location = call.location = g_[id].location;
    step.routine = std::move(call);
    plan_.steps.push_back(std::move(step));
  }

  void add(Written w) { plan_.steps.push_back(with_kernel(std::move(w))); }

  /// The step, with the kernel's number.
  Step with_kernel(Written w) {
    w.step.kernel = module_.add(std::move(w.text), w.title);
    for (const Argument& a : w.step.arguments)
      module_.uses_status |= a.kind == Argument::Kind::Status;
    return std::move(w.step);
  }

  /// Offsets in the arena: buffers whose steps do not overlap share places. Neighbours are placed
  /// as one.
  void place_temporaries(const std::vector<Neighbours>& neighbours) {
    std::vector<int> first(plan_.buffers.size(), -1), last(plan_.buffers.size(), -1);
    auto use = [&](BufferId b, int at) {
      if (first[b] < 0) first[b] = at;
      last[b] = at;
    };
    for (size_t i = 0; i < plan_.steps.size(); ++i)
      for (BufferId b : plan_.used_by(plan_.steps[i])) use(b, narrow<int>(i));
    std::vector<Neighbours> order = neighbours;
    std::vector<uint8_t> grouped(plan_.buffers.size(), 0);
    for (const Neighbours& group : neighbours)
      for (BufferId b : group) {
        grouped[b] = 1;
        first[group[0]] = std::min(first[group[0]], first[b]);
        last[group[0]] = std::max(last[group[0]], last[b]);
      }
    for (BufferId b = 0; b < plan_.buffers.size(); ++b)
      if (plan_.buffers[b].place == Place::Temp && first[b] >= 0 && !grouped[b])
        order.push_back({b});
    // By when they are first needed.
    std::ranges::stable_sort(order, {}, [&](const Neighbours& g) { return first[g[0]]; });
    Arena arena(256);
    for (const Neighbours& group : order) {
      size_t bytes = 0;
      for (BufferId b : group) bytes += plan_.buffers[b].bytes;
      size_t at = arena.place(bytes, first[group[0]], last[group[0]]);
      for (BufferId b : group) plan_.buffers[b].offset = at, at += plan_.buffers[b].bytes;
    }
    plan_.arena_bytes = arena.size();
  }

  const Target target_;
  Scheme scheme_;
  const PlanGraph& c_;
  Module& module_;
  const Graph& g_;
  const TileRegions& tiles_;
  std::vector<uint8_t> tile_made_;
  Fusion& f_;
  const std::map<NodeId, ProductSum>& sums_;
  CudaPlan plan_;
  WriterInputs in_;
  std::vector<BufferId> buffer_of_;
  std::vector<int> constant_of_;
  Segments segments_;
  std::vector<std::pair<NodeId, NodeId>> biases_;     ///< sums and what products add, by add_bias
  std::map<NodeId, NodeId> reduced_with_;             ///< the first of those of one launch
  std::map<NodeId, std::vector<NodeId>> reductions_;  ///< by the first
  std::map<NodeId, std::vector<NodeId>> attended_with_;  ///< sums of one kernel, by each
};

/// As products a network takes a launch for each of two at least, and one between them.
constexpr double kWorthTrying = 3 * kLaunchCycles;
/// Each is a whole plan more: of more networks those that take longest are tried.
constexpr size_t kMostNetworks = 16;

CudaPlan quickest(PlanGraph graph, const std::function<PlanGraph()>& again, Module& module,
                  bool wide, const Target& target) {
  std::set<int64_t> others;
  CudaPlanner planner(std::move(graph), module, wide, target, others);
  std::map<int64_t, double> networks = planner.tile_cycles();
  std::erase_if(networks, [&](const auto& n) {
    return n.second <= kWorthTrying || target.weights.tiles == Tiles::Always;
  });
  while (networks.size() > kMostNetworks)
    networks.erase(std::ranges::min_element(networks, {}, [](const auto& n) { return n.second; }));
  const Module before = networks.empty() ? Module() : module;
  CudaPlan best = planner.run();
  for (const auto& [rows, cycles] : networks) {
    others.insert(rows);
    Module its = before;
    CudaPlan other = CudaPlanner(again(), its, wide, target, others).run();
    if (cycles_of(other, target) < cycles_of(best, target))
      best = std::move(other), module = std::move(its);
    else
      others.erase(rows);
  }
  return best;
}

}  // namespace

std::vector<BufferId> CudaPlan::used_by(const Step& s) const {
  std::vector<BufferId> all;
  auto use = [&](const std::vector<BufferId>& some) {
    all.insert(all.end(), some.begin(), some.end());
  };
  for (const Argument& a : s.arguments)
    if (a.kind == Argument::Kind::Buffer) all.push_back(a.index);
  if (s.passage) {
    if (s.passage->reads) all.push_back(s.passage->in);
    all.push_back(s.passage->out);
  } else if (s.routine) {
    use(s.routine->inputs), all.push_back(s.routine->output);
  } else if (s.convolution) {
    use({s.convolution->a, s.convolution->b, s.convolution->out});
  } else if (s.loop >= 0) {
    const Loop& loop = loops[static_cast<size_t>(s.loop)];
    use(loop.reads), use(loop.writes), use({loop.state, loop.arena});
  } else if (s.is_product()) {
    const Gemm& p = s.product;
    use({p.a, p.b, p.out}), use(p.a_parts), use(p.b_parts), use(p.out_parts);
    if (p.has_bias) all.push_back(p.bias);
    if (p.adds) all.push_back(p.addend);
  }
  return all;
}

std::string CudaPlan::source() const {
  std::string text = prelude + "\nnamespace gradcell {\nnamespace scalar {\n";
  for (const Kernel& k : kernels) text += "\n" + k.text;
  return text + "\n}  // namespace scalar\n}  // namespace gradcell\n";
}

size_t CudaPlan::launches() const {
  size_t sum = steps.size() - loops.size();
  for (const Loop& l : loops) sum += static_cast<size_t>(l.steps) * l.body.launches();
  return sum;
}

bool CudaPlan::has_routines() const {
  return std::ranges::any_of(steps, [](const Step& s) { return s.routine.has_value(); }) ||
         std::ranges::any_of(loops, [](const Loop& l) { return l.body.has_routines(); });
}

CudaPlan make_cuda_plan(const Graph& g, std::span<const NodeId> live, std::span<const NodeId> roots,
                        std::span<const NodeId> cuts, const Target& target) {
  auto make = [&] { return plan_graph(g, live, roots, cuts, true); };
  PlanGraph graph = make();
  const bool wide = is_wide(graph.graph);
  Module module;
  CudaPlan plan = quickest(std::move(graph), make, module, wide, target);
  plan.kernels = std::move(module.kernels);
  plan.uses_status = module.uses_status;
  plan.prelude = prelude_text(wide);
  return plan;
}

}  // namespace gradcell::cuda
