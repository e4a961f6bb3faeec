#include "cuda/join/segments.h"

#include <algorithm>
#include <set>

#include "base/union_find.h"
#include "ops/ops.h"

namespace gradcell::cuda {

namespace {

/// Outputs that share what they compute or read, element by element.
struct Part {
  int32_t stage;
  int64_t count;
  std::vector<NodeId> outputs;
  std::string text = {};  ///< as a segment
  size_t most = 0;        ///< segments like this one in a launch
  bool joined = false;
};

constexpr size_t kFewOutputs = 8;

using Group = std::pair<int32_t, int64_t>;  // stage and element count: one kernel, unless joined
using Groups = std::map<Group, std::vector<NodeId>>;

class SegmentJoiner {
 public:
  SegmentJoiner(const WriterInputs& in, Fusion& fusion) : in_(in), g_(in.graph), f_(fusion) {
    users_.resize(g_.size());
    for (NodeId id = 0; id < g_.size(); ++id)
      if (f_.node[id].role != Role::View)
        for (NodeId input : g_.inputs(id)) users_[f_.storage[input]].push_back(id);
  }

  Segments run() {
    Segments none{{}, std::vector<uint8_t>(g_.size(), 0)};
    Groups groups = flat_outputs();
    size_t launches = 0, before = 0, most = 0;
    for (auto& [group, outputs] : groups) {
      before += kernels_of(outputs.size());
      most = std::max(most, outputs.size());
    }
    if (before < 2) return none;
    std::vector<Fused> as_fused = f_.node;
    follow_readers(groups);
    parts_ = split(flat_outputs());
    for (Part& p : parts_) write(p);
    wait_for_the_latest();
    Segments found = none;
    launches += join(found);
    std::map<Group, size_t> left;
    for (const Part& p : parts_)
      if (!p.joined) left[{p.stage, p.count}] += p.outputs.size();
    for (auto& [group, outputs] : left) launches += kernels_of(outputs);
    if (launches < before || (launches == before && most > kFewOutputs)) return found;
    f_.node = std::move(as_fused);
    return none;
  }

 private:
  static size_t kernels_of(size_t outputs) { return (outputs + kMaxOutputs - 1) / kMaxOutputs; }

  bool flat(NodeId id) const {
    return is_constant(g_, id) || (f_.node[id].role == Role::Map && !f_.node[id].by_rows);
  }

  Groups flat_outputs() const {
    Groups groups;
    for (NodeId id = 0; id < g_.size(); ++id)
      if (flat(id) && f_.node[id].stored && f_.storage[id] == id && g_.count(id) > 0)
        groups[{f_.node[id].stage, g_.count(id)}].push_back(id);
    return groups;
  }

  // Parts -----------------------------------------------------------------------------------------

  bool in_memory(NodeId id, int32_t stage) const {
    const Fused& node = f_.node[id];
    return node.role == Role::Source || (node.stored && node.stage < stage);
  }

  /// Whether a node is more than a number, such as a learning rate, that all kernels use.
  bool varies(NodeId id, const Part& p, std::map<NodeId, bool>& known) const {
    if (is_constant(g_, id) || g_.count(id) != p.count) return false;
    if (p.count == 1 && g_.dims(id) != g_.dims(p.outputs[0])) return false;
    if (in_memory(id, p.stage)) return p.count > 1;
    if (auto it = known.find(id); it != known.end()) return it->second;
    auto inputs = g_.inputs(id);
    bool any = inputs.empty() || !is_elementwise(g_[id].op);
    if (is_broadcast(g_, id)) any = g_.count(inputs[0]) > 1;
    for (NodeId i : inputs) any = any || varies(f_.storage[i], p, known);
    return known[id] = any || p.count == 1;
  }

  std::vector<Part> split(const Groups& groups) const {
    std::vector<Part> parts;
    for (auto& [group, outputs] : groups) split(group, outputs, parts);
    return parts;
  }

  void split(const Group& group, const std::vector<NodeId>& outputs, std::vector<Part>& to) const {
    UnionFind sets(outputs.size());
    std::map<NodeId, size_t> owner;
    std::map<NodeId, bool> known;
    for (size_t i = 0; i < outputs.size(); ++i) {
      Part alone{group.first, group.second, {outputs[i]}};
      if (group.second == 1 && i > 0 && g_.dims(outputs[i]) != g_.dims(outputs[i - 1]))
        known.clear();
      std::vector<NodeId> open{outputs[i]};
      while (!open.empty()) {
        NodeId id = open.back();
        open.pop_back();
        if (!varies(id, alone, known)) continue;
        auto [it, fresh] = owner.emplace(id, i);
        if (!fresh) {
          sets.join(i, it->second);
          continue;
        }
        if (in_memory(id, group.first)) continue;
        for (NodeId input : g_.inputs(id)) open.push_back(f_.storage[input]);
      }
    }
    std::map<size_t, std::vector<NodeId>> parts;
    for (size_t i = 0; i < outputs.size(); ++i) parts[sets.find(i)].push_back(outputs[i]);
    for (auto& [first, nodes] : parts) to.push_back({group.first, group.second, nodes});
  }

  void write(Part& p) const {
    Written w = write_segment(in_, p.stage, p.outputs);
    p.text = std::move(w.text);
    p.most = segments_a_launch(in_, w.step);
  }

  // Stages ----------------------------------------------------------------------------------------

  void move(Part& p, int32_t stage) {
    p.stage = stage;
    for (NodeId id : p.outputs) f_.node[id].stage = stage;
  }

  static constexpr int32_t kUnread = -1, kFixed = -2;

  /// The stage of the elementwise kernel that is the only one to read a part's outputs; kUnread;
  /// kFixed where others do.
  int32_t stage_of_readers(const Part& p) const {
    int32_t stage = kUnread;
    std::set<NodeId> own(p.outputs.begin(), p.outputs.end()), seen = own;
    std::vector<NodeId> open = p.outputs;
    while (!open.empty()) {
      NodeId id = open.back();
      open.pop_back();
      if (f_.node[id].cut) return kFixed;
      for (NodeId user : users_[id]) {
        if (!seen.insert(user).second) continue;
        bool by_element = is_elementwise(g_[user].op) || form(g_, user) == Form::Convert;
        if (!by_element || !flat(user)) return kFixed;
        if (!f_.node[user].stored) {
          open.push_back(user);
          continue;
        }
        if (stage != kUnread && stage != f_.node[user].stage) return kFixed;
        stage = f_.node[user].stage;
      }
    }
    return stage;
  }

  /// Computes what only a later kernel of the same size reads in that kernel: an optimiser's
  /// moments where the parameters are.
  void follow_readers(const Groups& groups) {
    std::vector<Part> parts = split(groups);
    for (auto p = parts.rbegin(); p != parts.rend(); ++p)
      if (int32_t stage = stage_of_readers(*p); stage > p->stage) move(*p, stage);
  }

  /// Lets what nobody reads wait for the latest of its kind.
  void wait_for_the_latest() {
    std::vector<std::string> later;  // the text in any later stage, which finds more in memory
    std::map<std::string, int32_t> latest;
    for (Part& p : parts_) {
      later.emplace_back();
      if (stage_of_readers(p) == kUnread) {
        Part moved = p;
        move(moved, p.stage + 1);
        write(moved);
        move(p, p.stage);
        later.back() = moved.text;
      }
      auto [it, fresh] = latest.emplace(later.back().empty() ? p.text : later.back(), p.stage);
      it->second = std::max(it->second, p.stage);
    }
    for (size_t i = 0; i < parts_.size(); ++i) {
      Part& p = parts_[i];
      if (later[i].empty() || latest[later[i]] == p.stage) continue;
      move(p, latest[later[i]]);
      write(p);
    }
  }

  // Launches --------------------------------------------------------------------------------------

  /// Returns how many launches there are of joined parts.
  size_t join(Segments& found) {
    std::map<std::pair<int32_t, std::string>, std::vector<Part*>> kinds;
    for (Part& p : parts_) kinds[{p.stage, p.text}].push_back(&p);
    size_t launches = 0;
    for (auto& [kind, parts] : kinds) {
      const Part& first = *parts[0];
      bool one_size = std::all_of(parts.begin(), parts.end(),
                                  [&](const Part* p) { return p->count == first.count; });
      // One kernel with a few outputs does as well, if they are of one size.
      bool suffices = one_size && parts.size() * first.outputs.size() <= kFewOutputs;
      if (suffices || parts.size() < 2 || first.most < 2) continue;
      launches += (parts.size() + first.most - 1) / first.most;
      found.launches.push_back({kind.first, {}});
      for (Part* p : parts) {
        p->joined = true;
        for (NodeId id : p->outputs) found.joined[id] = 1;
        found.launches.back().segments.push_back(p->outputs);
      }
    }
    return launches;
  }

  const WriterInputs& in_;
  const Graph& g_;
  Fusion& f_;
  std::vector<std::vector<NodeId>> users_;
  std::vector<Part> parts_;
};

}  // namespace

Segments join_segments(const WriterInputs& in, Fusion& fusion) {
  return SegmentJoiner(in, fusion).run();
}

}  // namespace gradcell::cuda
