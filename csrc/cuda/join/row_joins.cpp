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
/// Among so many kernels before it one looks for those that it can take in, and among so many nodes
/// for what else reads them.
constexpr size_t kMostOpen = 64, kMostReaders = 1024;
constexpr size_t kNone = SIZE_MAX;

class RowJoiner {
 public:
  RowJoiner(const WriterInputs& in, const Segments& segments, Fusion& f)
      : in_(in),
        g_(in.graph),
        f_(f),
        users_(g_.size()),
        seen_(g_.size(), 0),
        group_(g_.size(), kNone) {
    for (NodeId id = 0; id < g_.size(); ++id) {
      if (f_.node[id].role != Role::View)
        for (NodeId input : g_.inputs(id)) users_[f_.storage[input]].push_back(id);
      if (is_output(id) && !segments.joined[id]) add(id);
    }
    for (auto& [key, group] : by_key_)
      if (bytes(group) <= in_.target.weights.launch) groups_.push_back(std::move(group));
    for (size_t k = 0; k < groups_.size(); ++k)
      for (NodeId id : groups_[k].outputs) group_[id] = k;
  }

  void run() {
    std::vector<size_t> open;  // that later ones may take in, ascending
    for (size_t b = 0; b < groups_.size(); ++b) {
      if (groups_[b].outputs.size() >= kMostRowPacks) continue;
      for (size_t k = open.size(); k-- > 0;)
        if (!too_late(groups_[open[k]], groups_[b])) join(open[k], b);
      std::erase_if(open, [&](size_t a) {
        return groups_[a].outputs.empty() || too_late(groups_[a], groups_[b]);
      });
      if (open.size() == kMostOpen) open.erase(open.begin());
      open.push_back(b);
    }
  }

 private:
  struct Group {
    int32_t stage;
    bool by_rows;
    int64_t rows;
    std::vector<NodeId> outputs;
    int32_t needed = INT32_MAX;  ///< none that comes after this stage can take it in
    size_t text = 0;             ///< how long it is; 0: not known yet
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

  /// Whether no group of b's stage or a later one can take a in.
  static bool too_late(const Group& a, const Group& b) {
    return a.stage < b.stage && (a.by_rows || a.needed < b.stage);
  }

  /// Whether in its stage or before only b needs what a stores.
  bool only_for(size_t a, size_t b) {
    Group& group = groups_[a];
    const int32_t stage = groups_[b].stage;
    std::vector<NodeId> open = group.outputs;
    ++mark_;
    for (size_t looked = 0; !open.empty();) {
      const NodeId at = open.back();
      open.pop_back();
      if (f_.node[at].cut) return false;
      for (NodeId user : users_[at]) {
        const Fused& n = f_.node[user];
        if (seen_[user] == mark_ || n.stage > stage) continue;
        if (++looked > kMostReaders) return false;
        seen_[user] = mark_;
        const bool inside = group_[user] == a || group_[user] == b;
        if ((n.stored || n.role != Role::Map) && !inside) {
          group.needed = stage;
          return false;
        }
        // What is stored may be computed in other kernels too.
        if (n.role == Role::Map) open.push_back(user);
      }
    }
    return true;
  }

  /// SIZE_MAX: longer than `most`. (What is computed again for each element that reads it can take
  /// text without end.)
  size_t text(Group& g, size_t most = SIZE_MAX) const {
    if (g.text != 0) return g.text;
    WriterInputs in = in_;
    in.longest = most;
    try {
      const Written w = g.by_rows ? write_rows(in, g.stage, g.rows, g.outputs)
                                  : write_flat(in, g.stage, g.outputs);
      g.text = w.text.size();
    } catch (const TooLong&) {
      g.text = SIZE_MAX;
    }
    return g.text;
  }

  void put(const Group& group) {
    for (NodeId id : group.outputs) {
      Fused& n = f_.node[id];
      n.stage = group.stage, n.by_rows = group.by_rows;
      n.rows = group.by_rows ? group.rows : g_.count(id);
    }
  }

  void join(size_t first, size_t second) {
    Group &a = groups_[first], &b = groups_[second];
    if (a.outputs.size() + b.outputs.size() > kMostRowPacks) return;
    if (a.stage != b.stage && !only_for(first, second)) return;
    const bool alike = !a.by_rows && !b.by_rows && a.rows == b.rows;  // elements
    const int64_t rows = alike ? a.rows : rows_of_both(a, b);
    if (rows == 0) return;
    const double before = static_cast<double>(text(a) + text(b));
    Group both{b.stage, !alike, rows, b.outputs};
    both.outputs.insert(both.outputs.end(), a.outputs.begin(), a.outputs.end());
    std::ranges::sort(both.outputs);
    put(both);
    const double most = std::min(kLongest, kMostText * before);
    const auto after = static_cast<double>(text(both, narrow<size_t>(2 * most)));
    if (after > most || bytes(both) > in_.target.weights.launch) {
      put(a), put(b);
      return;
    }
    for (NodeId id : a.outputs) group_[id] = second;
    b = std::move(both);
    a.outputs.clear();
  }

  const WriterInputs& in_;
  const Graph& g_;
  Fusion& f_;
  std::vector<std::vector<NodeId>> users_;
  std::map<std::tuple<int32_t, bool, int64_t>, Group> by_key_;
  std::vector<Group> groups_;  ///< by stage; those that became part of others are empty
  std::vector<uint32_t> seen_;
  std::vector<size_t> group_;  ///< by output
  uint32_t mark_ = 0;
};

}  // namespace

void join_rows(const WriterInputs& in, const Segments& segments, Fusion& fusion) {
  RowJoiner(in, segments, fusion).run();
}

}  // namespace gradcell::cuda
