// The rule of a call over a batch of examples. The rule that there is speaks of one example: it is
// asked with nodes that stand for one, and what it records is batched as the function was.
#include "ad/batching.h"
#include "ad/calls.h"
#include "ops/ops.h"

namespace gradcell::ad {

namespace {

/// x for each of `size` examples.
NodeId repeated(Graph& g, NodeId x, int64_t size) {
  Dims dims{size};
  dims.insert(dims.end(), g.dims(x).begin(), g.dims(x).end());
  return broadcast_to(g, x, dims);
}

class BatchedRule : public Rule {
 public:
  BatchedRule(const ad::Call& one, int64_t size, std::span<const uint8_t> batched,
              std::span<const NodeId> examples, std::span<const NodeId> batches)
      : one_(one),
        size_(size),
        batched_(batched.begin(), batched.end()),
        examples_(examples.begin(), examples.end()),
        batches_(batches.begin(), batches.end()) {}

  std::string name() const override { return one_.rule->name(); }
  bool has_adjoint() const override { return one_.rule->has_adjoint(); }
  bool has_tangent() const override { return one_.rule->has_tangent(); }
  std::vector<NodeId> reads() const override {
    std::vector<NodeId> all = one_.rule->reads();
    all.insert(all.end(), one_.inputs.begin(), one_.inputs.end());
    std::ranges::copy_if(one_.outputs, std::back_inserter(all),
                         [](NodeId id) { return id != kNoNode; });
    return all;
  }

  std::vector<NodeId> adjoint(Graph& g, const Rule::Call& call, std::span<const NodeId> dy,
                              const std::vector<bool>& wanted) const override {
    Pairs pairs = known(call);
    const auto one_dy = stand_in(g, one_.outputs, dy, nullptr, pairs);
    std::vector<NodeId> dx = one_.rule->adjoint(g, {one_.inputs, one_.outputs}, one_dy, wanted);
    for (size_t k = 0; k < dx.size(); ++k) {
      if (dx[k] == kNoNode || !wanted[k]) continue;
      const NodeId one[] = {dx[k]};
      const NodeId all = batch(g, one, pairs.examples, pairs.batches)[0];
      if (batched_[k])
        dx[k] = all == kNoNode ? repeated(g, dx[k], size_) : all;
      else  // the same for every example: what each of them gives adds up
        dx[k] = sum(g, all == kNoNode ? repeated(g, dx[k], size_) : all, Dims{0});
    }
    return dx;
  }

  std::vector<NodeId> tangent(Graph& g, const Rule::Call& call,
                              std::span<const NodeId> dx) const override {
    Pairs pairs = known(call);
    const auto one_dx = stand_in(g, one_.inputs, dx, &batched_, pairs);
    std::vector<NodeId> dy = one_.rule->tangent(g, {one_.inputs, one_.outputs}, one_dx);
    for (NodeId& y : dy) {
      if (y == kNoNode) continue;
      const NodeId one[] = {y};
      const NodeId all = batch(g, one, pairs.examples, pairs.batches)[0];
      y = all == kNoNode ? repeated(g, y, size_) : all;
    }
    dy.resize(call.outputs.size(), kNoNode);
    return dy;
  }

 private:
  struct Pairs {
    std::vector<NodeId> examples, batches;
    void add(NodeId one, NodeId all) { examples.push_back(one), batches.push_back(all); }
  };

  /// What stands for one example by now. The first of them is batched, for it says how many there
  /// are.
  Pairs known(const Rule::Call& call) const {
    Pairs pairs{examples_, batches_};
    for (size_t k = 0; k < one_.inputs.size(); ++k)
      if (batched_[k]) pairs.add(one_.inputs[k], call.inputs[k]);
    for (size_t k = 0; k < std::min(one_.outputs.size(), call.outputs.size()); ++k)
      if (one_.outputs[k] != kNoNode && call.outputs[k] != kNoNode)
        pairs.add(one_.outputs[k], call.outputs[k]);
    return pairs;
  }

  /// Unknowns like `one` for what is given for all examples; what is the same for all stays.
  std::vector<NodeId> stand_in(Graph& g, std::span<const NodeId> one, std::span<const NodeId> given,
                               const std::vector<uint8_t>* batched, Pairs& pairs) const {
    std::vector<NodeId> made(one.size(), kNoNode);
    for (size_t k = 0; k < std::min(one.size(), given.size()); ++k) {
      if (given[k] == kNoNode || one[k] == kNoNode) continue;
      made[k] = given[k];
      if (batched && !(*batched)[k]) continue;
      made[k] = g.unknown(g.dtype(one[k]), Dims(g.dims(one[k])));
      pairs.add(made[k], given[k]);
    }
    return made;
  }

  ad::Call one_;
  int64_t size_;
  std::vector<uint8_t> batched_;
  std::vector<NodeId> examples_, batches_;
};

}  // namespace

std::shared_ptr<const Rule> batched_rule(const Call& call, int64_t size,
                                         std::span<const uint8_t> batched,
                                         std::span<const NodeId> examples,
                                         std::span<const NodeId> batches) {
  return std::make_shared<BatchedRule>(call, size, batched, examples, batches);
}

}  // namespace gradcell::ad
