#include "cuda/join/row_joins.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "ops/ops.h"

namespace gradcell::cuda {

namespace {

/// A row that a block's threads take at once; fewer rows would leave most of a GPU idle.
constexpr int64_t kMostFeatures = 2048, kFewestRows = 8;
/// Of a text that is longer than its parts', values would be computed again and again.
constexpr double kMostText = 1.5;
/// A longer one takes long to compile.
constexpr double kLongest = 16 << 10;

class RowJoiner {
 public:
  RowJoiner(const WriterInputs& in, const Segments& segments, Fusion& f)
      : in_(in), g_(in.graph), f_(f), users_(g_.size()) {
    for (NodeId id = 0; id < g_.size(); ++id) {
      if (f_.node[id].role != Role::View)
        for (NodeId input : g_.inputs(id)) users_[f_.storage[input]].push_back(id);
      if (is_output(id) && !segments.joined[id]) add(id);
    }
    for (auto& [key, group] : by_key_)
      if (bytes(group) <= in_.target.weights.launch) groups_.push_back(std::move(group));
  }

  void run() {
    for (size_t b = 0; b < groups_.size(); ++b)
      for (size_t a = b; a-- > 0;)
        if (!groups_[a].outputs.empty()) join(groups_[a], groups_[b]);
  }

 private:
  struct Group {
    int32_t stage;
    bool by_rows;
    int64_t rows;
    std::vector<NodeId> outputs;
  };

  bool is_output(NodeId id) const {
    const Fused& n = f_.node[id];
    const bool fused = n.role == Role::Map || n.role == Role::RowReduce;
    return fused && n.stored && f_.storage[id] == id && !is_constant(g_, id) && g_.count(id) > 0;
  }

  void add(NodeId id) {
    const Fused& n = f_.node[id];
    Group& group = by_key_[{n.stage, n.by_rows, n.rows}];
    group.stage = n.stage, group.by_rows = n.by_rows, group.rows = n.rows;
    group.outputs.push_back(id);
  }

  double bytes(const Group& group) const {
    double sum = 0;
    for (NodeId id : group.outputs)
      sum += static_cast<double>(g_.count(id)) * static_cast<double>(item_size(g_.dtype(id)));
    return sum;
  }

  bool has_rows(NodeId id, int64_t rows) const {
    int64_t before = 1;
    for (int64_t n : g_.dims(id))
      if (before < rows) before *= n;
    return before == rows && g_.count(id) <= rows * kMostFeatures;
  }
  bool has_rows(const Group& group, int64_t rows) const {
    if (group.by_rows) return group.rows == rows;
    return std::ranges::all_of(group.outputs, [&](NodeId id) { return has_rows(id, rows); });
  }

  /// The most rows that two kernels have in common; 0: none.
  int64_t rows_of_both(const Group& a, const Group& b) const {
    int64_t found = 0, rows = 1;
    for (int64_t n : g_.dims(a.outputs[0])) {
      rows *= n;
      if (rows >= kFewestRows && has_rows(a, rows) && has_rows(b, rows)) found = rows;
    }
    return found;
  }

  /// Whether in its stage or before only `by` needs what a kernel stores.
  bool only_for(const Group& group, const Group& by) const {
    std::vector<NodeId> open = group.outputs;
    std::vector<uint8_t> seen(g_.size(), 0);
    while (!open.empty()) {
      const NodeId at = open.back();
      open.pop_back();
      if (f_.node[at].cut) return false;
      for (NodeId user : users_[at]) {
        if (seen[user]) continue;
        seen[user] = 1;
        const Fused& n = f_.node[user];
        const bool inside = std::ranges::find(by.outputs, user) != by.outputs.end() ||
                            std::ranges::find(group.outputs, user) != group.outputs.end();
        if ((n.stored || n.role != Role::Map) && n.stage <= by.stage && !inside) return false;
        // What is stored may be computed in other kernels too.
        if (n.role == Role::Map) open.push_back(user);
      }
    }
    return true;
  }

  size_t text(const Group& g) const {
    return (g.by_rows ? write_rows(in_, g.stage, g.rows, g.outputs)
                      : write_flat(in_, g.stage, g.outputs))
        .text.size();
  }

  void put(const Group& group) {
    for (NodeId id : group.outputs) {
      Fused& n = f_.node[id];
      n.stage = group.stage, n.by_rows = group.by_rows;
      n.rows = group.by_rows ? group.rows : g_.count(id);
    }
  }

  void join(Group& a, Group& b) {
    if (a.stage != b.stage && (a.by_rows || !only_for(a, b))) return;
    if (a.outputs.size() + b.outputs.size() > kMostRowPacks) return;
    const bool alike = !a.by_rows && !b.by_rows && a.rows == b.rows;  // elements
    const int64_t rows = alike ? a.rows : rows_of_both(a, b);
    if (rows == 0) return;
    const double before = static_cast<double>(text(a) + text(b));
    Group both{b.stage, !alike, rows, b.outputs};
    both.outputs.insert(both.outputs.end(), a.outputs.begin(), a.outputs.end());
    std::ranges::sort(both.outputs);
    put(both);
    const double after = static_cast<double>(text(both));
    if (after > std::min(kLongest, kMostText * before) || bytes(both) > in_.target.weights.launch) {
      put(a), put(b);
      return;
    }
    b = std::move(both);
    a.outputs.clear();
  }

  const WriterInputs& in_;
  const Graph& g_;
  Fusion& f_;
  std::vector<std::vector<NodeId>> users_;
  std::map<std::tuple<int32_t, bool, int64_t>, Group> by_key_;
  std::vector<Group> groups_;  ///< by stage; those that became part of others are empty
};

}  // namespace

void join_rows(const WriterInputs& in, const Segments& segments, Fusion& fusion) {
  RowJoiner(in, segments, fusion).run();
}

}  // namespace gradcell::cuda
