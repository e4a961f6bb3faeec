#include "ir/graph.h"

#include <algorithm>

#include "base/interrupt.h"
#include "ir/op_info.h"

namespace gradcell {

namespace {

inline uint64_t mix(uint64_t h, uint64_t v) {
  h ^= v;
  h *= 0x9E3779B97F4A7C15ull;
  return h ^ (h >> 29);
}

template <class A, class B>
bool equal(std::span<const A> a, std::span<const B> b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin());
}

/// Doubles a table of things, each by its hash.
template <class T, class Hash>
void grow(std::vector<T>& table, T none, Hash hash) {
  std::vector<T> bigger(table.size() * 2, none);
  const size_t mask = bigger.size() - 1;
  for (const T& entry : table) {
    if (entry == none) continue;
    size_t at = hash(entry) & mask;
    while (bigger[at] != none) at = (at + 1) & mask;
    bigger[at] = entry;
  }
  table = std::move(bigger);
}

uint64_t hash_of(std::span<const int64_t> dims) {
  uint64_t h = dims.size();
  for (int64_t n : dims) h = mix(h, static_cast<uint64_t>(n));
  return h;
}

}  // namespace

Graph::Graph(const Settings& settings)
    : shape_table_(16, nullptr), table_(256, kNoNode), settings_(&settings) {
  nodes_.reserve(16);
  hashes_.reserve(16);
}

size_t Graph::shape_slot(std::span<const int64_t> dims) const {
  const size_t mask = shape_table_.size() - 1;
  size_t at = hash_of(dims) & mask;
  for (; const Shape* shape = shape_table_[at]; at = (at + 1) & mask)
    if (equal(std::span<const int64_t>(shape->dims), dims)) break;
  return at;
}

const Shape* Graph::shape(Op op, std::span<const int64_t> dims) {
  const size_t at = shape_slot(dims);
  if (const Shape* known = shape_table_[at]) return known;
  const int64_t count = element_count(dims, info(op).function);
  const auto number = narrow<uint32_t>(shapes_.size());
  shapes_.push_back({number, count, Dims(dims.begin(), dims.end())});
  const Shape* added = shape_table_[at] = &shapes_.back();
  if (shapes_.size() * 2 > shape_table_.size())
    grow<const Shape*>(shape_table_, nullptr, [](const Shape* s) { return hash_of(s->dims); });
  return added;
}

NodeId Graph::append(Op op, DType dtype, const Shape* shape, std::span<const NodeId> inputs,
                     std::span<const int64_t> attrs, uint64_t bits) {
  if (nodes_.size() % 1024 == 1023) check_interrupt();
  Node n;
  n.op = op;
  n.dtype = dtype;
  n.order = order_;
  n.shape = shape;
  n.input_count = narrow<int32_t>(inputs.size());
  n.attr_count = narrow<uint32_t>(attrs.size());
  n.bits = bits;
  n.location = location_;
  n.inputs = inputs_.add(inputs);
  n.attrs = attrs_.add(attrs);
  nodes_.push_back(n);
  return narrow<NodeId>(nodes_.size() - 1);
}

NodeId Graph::unique(Op op, DType dtype, std::span<const int64_t> dims,
                     std::span<const NodeId> inputs) {
  NodeId id = append(op, dtype, shape(op, dims), inputs, {}, next_serial_++);
  hashes_.push_back(0);
  return id;
}

NodeId Graph::unknown(DType dtype, std::span<const int64_t> dims) {
  unknowns_.push_back(unique(Op::Leaf, dtype, dims, {}));
  return unknowns_.back();
}

int64_t Graph::add_rule(std::shared_ptr<const Rule> rule) {
  rules_.push_back(std::move(rule));
  return static_cast<int64_t>(rules_.size()) - 1;
}

NodeId Graph::effect(Op op, DType dtype, std::span<const int64_t> dims,
                     std::span<const NodeId> inputs, std::span<const int64_t> attrs,
                     uint64_t place) {
  if (place == 0) place = next_place_;
  next_place_ = std::max(next_place_, place + 1);
  const NodeId id = intern(op, dtype, dims, inputs, attrs, place);
  auto at = std::ranges::lower_bound(effects_, place, {}, &Effect::place);
  if (at != effects_.end() && at->place == place)
    at->id = id;
  else
    effects_.insert(at, {place, id});
  return id;
}

uint32_t Graph::Contents::hash() const {
  uint64_t h = mix(static_cast<uint64_t>(op) << 8 | static_cast<uint64_t>(dtype), shape->number);
  h = mix(h, bits);
  for (NodeId i : inputs) h = mix(h, i + 1);
  for (int64_t a : attrs) h = mix(h, static_cast<uint64_t>(a) + 0x51ull);
  return low_bits<uint32_t>(h ^ (h >> 32));
}

size_t Graph::slot(const Contents& c, uint32_t hash) const {
  const size_t mask = table_.size() - 1;
  size_t at = hash & mask;
  for (; table_[at] != kNoNode; at = (at + 1) & mask) {
    const NodeId id = table_[at];
    if (hashes_[id] != hash) continue;
    const Node& n = nodes_[id];
    if (n.op == c.op && n.dtype == c.dtype && n.shape == c.shape && n.bits == c.bits &&
        equal(inputs(id), c.inputs) && equal(attrs(id), c.attrs))
      break;
  }
  return at;
}

NodeId Graph::find(Op op, DType dtype, std::span<const int64_t> dims,
                   std::span<const NodeId> inputs, std::span<const int64_t> attrs,
                   uint64_t bits) const {
  const Shape* shape = shape_table_[shape_slot(dims)];
  if (!shape) return kNoNode;
  const Contents contents{op, dtype, shape, inputs, attrs, bits};
  return table_[slot(contents, contents.hash())];
}

NodeId Graph::intern(Op op, DType dtype, std::span<const int64_t> dims,
                     std::span<const NodeId> inputs, std::span<const int64_t> attrs,
                     uint64_t bits) {
  const Contents contents{op, dtype, shape(op, dims), inputs, attrs, bits};
  const uint32_t hash = contents.hash();
  const size_t at = slot(contents, hash);
  if (table_[at] != kNoNode) return table_[at];
  const NodeId id = append(op, dtype, contents.shape, inputs, attrs, bits);
  hashes_.push_back(hash);
  table_[at] = id;
  if (nodes_.size() * 2 > table_.size())
    grow(table_, kNoNode, [&](NodeId of) { return hashes_[of]; });
  return id;
}

std::vector<NodeId> live_nodes(const Graph& g, std::span<const NodeId> roots) {
  std::vector<uint8_t> live(g.size(), 0);
  NodeId top = 0;
  for (NodeId r : roots) {
    live[r] = 1;
    top = std::max(top, r);
  }
  size_t n = 0;
  if (!roots.empty())
    for (NodeId id = top + 1; id-- > 0;) {
      if (!live[id]) continue;
      ++n;
      for (NodeId i : g.inputs(id)) live[i] = 1;
    }
  std::vector<NodeId> result;
  result.reserve(n);
  for (NodeId id = 0; id < g.size() && result.size() < n; ++id)
    if (live[id]) result.push_back(id);
  return result;
}

}  // namespace gradcell
