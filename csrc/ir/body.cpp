#include "ir/body.h"

#include "ir/spec.h"

namespace gradcell {

namespace {

/// Takes numbers off the front.
class Reader {
 public:
  explicit Reader(std::span<const int64_t> numbers) : rest_(numbers) {}
  bool done() const { return rest_.empty(); }
  int64_t one() { return run(1)[0]; }
  /// A run that says first how long it is.
  std::span<const int64_t> list() { return run(static_cast<size_t>(one())); }

 private:
  std::span<const int64_t> run(size_t n) {
    require(n <= rest_.size(), ErrorKind::Runtime, "a loop's body ends too early");
    const auto front = rest_.first(n);
    rest_ = rest_.subspan(n);
    return front;
  }
  std::span<const int64_t> rest_;
};

void add_list(Dims& to, std::span<const int64_t> list) {
  to.push_back(static_cast<int64_t>(list.size()));
  to.insert(to.end(), list.begin(), list.end());
}

}  // namespace

BodyView view_body(std::span<const int64_t> numbers) {
  Reader r(numbers);
  BodyView body;
  body.inputs = static_cast<size_t>(r.one());
  body.next = r.list();
  while (!r.done()) {
    const int64_t op = r.one(), dtype = r.one();
    require(op >= 0 && op < static_cast<int64_t>(Op::Count) && dtype >= 0 && dtype < kDTypeCount,
            ErrorKind::Runtime, "a loop's body has a node of no op");
    const auto dims = r.list(), inputs = r.list();
    for (int64_t i : inputs)
      require(i >= 0 && i < static_cast<int64_t>(body.nodes.size()), ErrorKind::Runtime,
              "a loop's body has a node before its inputs");
    body.nodes.push_back({static_cast<Op>(op), static_cast<DType>(dtype), dims, inputs, r.list()});
  }
  require(body.inputs <= body.nodes.size() && body.next.size() <= body.inputs, ErrorKind::Runtime,
          "a loop's body lacks inputs");
  for (int64_t i : body.next)
    require(i >= 0 && i < static_cast<int64_t>(body.nodes.size()), ErrorKind::Runtime,
            "a loop's body has no node for the next step");
  return body;
}

Body read_body(std::span<const int64_t> numbers, const Settings& settings) {
  const BodyView view = view_body(numbers);
  Body body{Graph(settings), {}, {}};
  std::vector<NodeId> in;
  for (size_t k = 0; k < view.nodes.size(); ++k) {
    const BodyNode& n = view.nodes[k];
    NodeId id;
    if (k < view.inputs) {
      id = body.graph.unique(n.op, n.dtype, n.dims, {});
      body.inputs.push_back(id);
    } else {
      in.assign(n.inputs.begin(), n.inputs.end());
      id = body.graph.intern(n.op, n.dtype, n.dims, in, n.attributes);
    }
    require(id == k, ErrorKind::Runtime, "a loop's body has the same node twice");
  }
  body.next.assign(view.next.begin(), view.next.end());
  return body;
}

Dims write_body(const Graph& g, std::span<const NodeId> inputs, std::span<const NodeId> next,
                std::span<const NodeId> kept, std::vector<NodeId>& number) {
  std::vector<NodeId> roots(next.begin(), next.end()), order(inputs.begin(), inputs.end());
  roots.insert(roots.end(), kept.begin(), kept.end());
  number.assign(g.size(), kNoNode);
  for (size_t k = 0; k < inputs.size(); ++k) number[inputs[k]] = narrow<NodeId>(k);
  for (NodeId id : live_nodes(g, roots)) {
    if (number[id] != kNoNode) continue;
    number[id] = narrow<NodeId>(order.size());
    order.push_back(id);
  }
  Dims numbers{static_cast<int64_t>(inputs.size()), static_cast<int64_t>(next.size())};
  for (NodeId id : next) numbers.push_back(number[id]);
  for (NodeId id : order) {
    numbers.push_back(static_cast<int64_t>(g[id].op));
    numbers.push_back(static_cast<int64_t>(g[id].dtype));
    add_list(numbers, g.dims(id));
    numbers.push_back(g[id].input_count);
    for (NodeId i : g.inputs(id)) numbers.push_back(number[i]);
    add_list(numbers, g.attrs(id));
  }
  return numbers;
}

}  // namespace gradcell
