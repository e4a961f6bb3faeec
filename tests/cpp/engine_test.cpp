// The engine as a whole: random graphs against the interpreter, results that do not depend on the
// number of threads, one Runner used by several threads.
#include "cpu/run/engine.h"
#include "ops/ops.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "ad/transform.h"
#include "base/philox.h"
#include "base/thread_pool.h"
#include "evaluate.h"
#include "ir/print.h"
#include "plan/planner.h"

namespace gradcell {
namespace {

using namespace testing;  // NOLINT

/// Random graphs over one family of shapes: [n, f], [n, 1], [f], [] and their transposes.
class RandomGraph {
 public:
  RandomGraph(uint64_t seed, int64_t n, int64_t f) : seed_(seed), n_(n), f_(f) {
    for (const Dims& d : {Dims{n, f}, Dims{n, 1}, Dims{f}, Dims{f, f}, Dims{n, f}}) {
      NodeId id = leaf(g, DType::Float64, d);
      leaves[id] =
          make_array(DType::Float64, d, random_numbers(element_count(d), -1, 1, seed * 31 + id));
      nodes_.push_back(id);
      inputs.push_back(id);
    }
  }

  void grow(int steps) {
    for (int i = 0; i < steps; ++i) nodes_.push_back(step());
  }
  NodeId last() const { return nodes_.back(); }

  Graph g;
  Leaves leaves;
  std::vector<NodeId> inputs;

 private:
  uint32_t draw(uint32_t below) { return philox(seed_, counter_++)[0] % below; }
  NodeId pick() {
    auto n = static_cast<uint32_t>(nodes_.size());
    return nodes_[draw(2) ? n - 1 - draw(std::min(n, 4u)) : draw(n)];
  }

  /// b in the shape of a; a itself where b does not broadcast.
  NodeId like(NodeId a, NodeId b) {
    const Dims &to = g.dims(a), &from = g.dims(b);
    if (from.size() > to.size()) return a;
    for (size_t k = 0; k < from.size(); ++k) {
      int64_t d = from[k], e = to[to.size() - from.size() + k];
      if (d != e && d != 1) return a;
    }
    return broadcast_to(g, b, Dims(to));
  }

  NodeId smooth(NodeId x) {
    static constexpr Op kOps[] = {Op::Sin,  Op::Tanh, Op::Sigmoid, Op::Cos, Op::Square,
                                  Op::Atan, Op::Erf,  Op::Neg,     Op::Abs};
    NodeId y = unary(g, kOps[draw(std::size(kOps))], x);
    return y;
  }

  NodeId step() {
    NodeId x = pick();
    const Dims d = g.dims(x);
    size_t rank = d.size();
    switch (draw(14)) {
      case 0:
      case 1:
        return smooth(x);
      case 2:
        return binary(g, Op::Add, x, like(x, pick()));
      case 3:
        return unary(g, Op::Tanh, binary(g, Op::Mul, x, like(x, pick())));
      case 4:
        return binary(g, Op::Sub, x, like(x, pick()));
      case 5:
        return binary(g, draw(2) ? Op::Maximum : Op::Minimum, x, like(x, pick()));
      case 6: {
        NodeId y = like(x, pick());
        return select(g, binary(g, Op::Less, x, y), unary(g, Op::Sin, y), x);
      }
      case 7:
        if (rank != 2) return smooth(x);
        return unary(g, Op::Tanh, reduce(g, Combine::Sum, x, draw(2) ? Dims{0} : Dims{1}));
      case 8:
        if (rank != 2) return smooth(x);
        return reshape(g, reduce(g, draw(2) ? Combine::Max : Combine::Sum, smooth(x), Dims{1}),
                       Dims{d[0], 1});
      case 9:
        for (NodeId w : nodes_)
          if (rank == 2 && g.dims(w).size() == 2 && g.dims(w)[0] == d[1] && draw(2))
            return unary(g, Op::Tanh, matmul(g, x, w, false, false));
        return smooth(x);
      case 10:
        for (NodeId w : nodes_)
          if (rank == 2 && g.dims(w).size() == 2 && g.dims(w)[0] == d[0] && draw(2))
            return unary(g, Op::Tanh, matmul(g, x, w, true, false));
        return smooth(x);
      case 11: {
        if (rank != 2 || d[1] < 2) return smooth(x);
        int64_t half = d[1] / 2;
        NodeId a = slice(g, x, {{0, half}, {d[0], d[1] - half}, {1, 1}}),
               b = slice(g, x, {{0, half - 1}, {d[0], half}, {1, -1}});
        NodeId both[] = {a, smooth(b)};
        return concat(g, both, 1);
      }
      case 12: {
        if (rank != 2 || d[0] < 2) return smooth(x);
        NodeId a = slice(g, x, {{d[0] - 1, 0}, {d[0] - 1, d[1]}, {-1, 1}});
        return slice_scatter(g, smooth(a), d, Dims{1, 0}, Dims{1, 1});
      }
      default:
        return rank == 2 ? transpose(g, smooth(x), Dims{1, 0}) : smooth(x);
    }
  }

  uint64_t seed_, counter_ = 0;
  int64_t n_, f_;
  std::vector<NodeId> nodes_;
};

TEST(Engine, RandomGraphsAndTheirGradients) {
  for (uint64_t seed = 0; seed < 150; ++seed) {
    static constexpr int64_t kRows[] = {1, 5, 16, 33, 70, 130};
    RandomGraph r(seed, kRows[seed % 6], 1 + static_cast<int64_t>(seed % 5));
    r.grow(3 + static_cast<int>(seed % 20));
    std::vector<NodeId> roots{r.last()};
    NodeId out[] = {r.last()},
           seeds[] = {constant(r.g, DType::Float64, Dims(r.g.dims(r.last())), 1)};
    for (NodeId d : ad::adjoint(r.g, out, seeds, r.inputs))
      if (d != kNoNode) roots.push_back(d);
    auto got = run(r.g, roots, r.leaves);
    for (size_t i = 0; i < roots.size(); ++i) {
      expect_close(got[i], interpret(r.g, roots[i], r.leaves), 1e-9);
      ASSERT_FALSE(::testing::Test::HasFailure()) << "seed " << seed << ", root " << i << "\n"
                                                  << to_text(r.g, roots);
    }
  }
}

TEST(Engine, EveryTailOfRowsAndElements) {
  for (int64_t n = 1; n <= 70; ++n)
    for (DType t : {DType::Float32, DType::Float64, DType::Float16, DType::Int32, DType::UInt8}) {
      Graph g;
      NodeId x = leaf(g, t, Dims{n}), m = leaf(g, t, Dims{n, 3});
      Leaves leaves{{x, make_array(t, {n}, random_numbers(n, 0, 9, 1))},
                    {m, make_array(t, {n, 3}, random_numbers(3 * n, 0, 9, 2))}};
      NodeId s = binary(g, Op::Add, unary(g, Op::Square, x), constant(g, t, Dims{n}, 1));
      std::vector<NodeId> roots{s, reduce(g, Combine::Sum, unary(g, Op::Neg, m), Dims{0}),
                                reduce(g, Combine::Max, unary(g, Op::Neg, m), Dims{1})};
      auto got = run(g, roots, leaves);
      for (size_t i = 0; i < roots.size(); ++i)
        expect_close(got[i], interpret(g, roots[i], leaves),
                     t == DType::Float16 ? 2e-3
                     : is_floating(t)    ? 1e-6
                                         : 0);
    }
}

/// Every elementwise op in every compute type, next to the folder's own functions.
TEST(Engine, EveryElementwiseOpAgreesWithTheFolder) {
  const Dims d{37};
  for (uint16_t i = 0; i < static_cast<uint16_t>(Op::Count); ++i) {
    Op op = static_cast<Op>(i);
    const OpInfo& row = info(op);
    if (row.kind == OpKind::Structured || row.kind == OpKind::Ternary) continue;
    for (DType t : {DType::Float64, DType::Float32, DType::BFloat16, DType::Int32, DType::Int64,
                    DType::Int8, DType::Bool}) {
      bool fits = row.cls == OpClass::Bool    ? t == DType::Bool
                  : row.cls == OpClass::Float ? is_floating(t)
                                              : t != DType::Bool;
      if (!fits) continue;
      SCOPED_TRACE(std::string(row.name) + " of " + std::string(name(t)));
      Graph g;
      NodeId a = leaf(g, t, d), b = leaf(g, t, d);
      bool domain = op == Op::Atanh || op == Op::Asin || op == Op::Acos;
      double low = op == Op::Acosh ? 1.1
                   : domain        ? -0.9
                                   : 0.1,
             high = domain           ? 0.9
                    : is_floating(t) ? 3
                                     : 9;
      Leaves leaves{{a, make_array(t, d, random_numbers(37, low, high, 5))},
                    {b, make_array(t, d, random_numbers(37, is_floating(t) ? 0.5 : 1, high, 6))}};
      bool two = row.kind == OpKind::Binary || row.kind == OpKind::Compare;
      NodeId y = two ? binary(g, op, a, b) : unary(g, op, a);
      double tolerance = g.dtype(y) == DType::Float64   ? 1e-14
                         : g.dtype(y) == DType::Float32 ? 1e-6
                         : is_floating(t)               ? 1e-2
                                                        : 0;
      expect_close(run(g, y, leaves), interpret(g, y, leaves), tolerance);
    }
  }
}

// Threads ---------------------------------------------------------------------------------------

/// A training step of a small net, sums, large products, and what calls split over threads.
struct Work {
  Graph g;
  Leaves leaves;
  std::vector<NodeId> roots;

  NodeId input(const Dims& d, double scale = 1) {
    NodeId id = leaf(g, DType::Float32, d);
    leaves[id] =
        make_array(DType::Float32, d, random_numbers(element_count(d), -scale, scale, id + 1));
    return id;
  }

  Work() {
    constexpr int64_t kRows = 5003;
    NodeId x = input({kRows, 3}), w1 = input({3, 20}), b = input({20}), w2 = input({20, 2}, 0.3);
    NodeId h = unary(
        g, Op::Tanh,
        binary(g, Op::Add, matmul(g, x, w1, false, false), broadcast_to(g, b, Dims{kRows, 20})));
    NodeId y = matmul(g, h, w2, false, false);
    NodeId loss = reduce(g, Combine::Sum, unary(g, Op::Square, y), Dims{0, 1});
    NodeId out[] = {loss}, seed[] = {constant(g, DType::Float32, Dims{}, 1)},
           wrt[] = {w1, b, w2, x};
    roots = ad::adjoint(g, out, seed, wrt);
    roots.push_back(loss);
    roots.push_back(reduce(g, Combine::Max, y, Dims{0}));
    NodeId flat = input({200003});
    roots.push_back(unary(g, Op::Exp, unary(g, Op::Sin, flat)));
    roots.push_back(reduce(g, Combine::Sum, flat, Dims{0}));
    roots.push_back(transpose(g, reshape(g, h, Dims{20, kRows}), Dims{1, 0}));
    roots.push_back(cumsum(g, reshape(g, h, Dims{20, kRows}), {1, false, false}));
    if (std::getenv("GRADCELL_BLAS"))
      roots.push_back(matmul(g, input({777, 301}), input({301, 513}), false, false));
  }
};

TEST(Engine, ResultsDoNotDependOnTheNumberOfThreads) {
  Work work;
  set_max_threads(1);
  auto one = run(work.g, work.roots, work.leaves);
  for (int threads : {2, 7}) {
    set_max_threads(threads);
    for (int repeat = 0; repeat < 3; ++repeat) {
      auto many = run(work.g, work.roots, work.leaves);
      for (size_t i = 0; i < one.size(); ++i)
        EXPECT_EQ(std::memcmp(one[i].data(), many[i].data(), one[i].bytes()), 0)
            << threads << " threads, root " << i;
    }
  }
  set_max_threads(0);
}

TEST(Engine, OneRunnerRunsInSeveralThreads) {
  Graph g;
  constexpr int64_t kRows = 3001;
  NodeId x = leaf(g, DType::Float32, Dims{kRows, 4}), w = leaf(g, DType::Float32, Dims{4, 6});
  NodeId h = unary(g, Op::Tanh, matmul(g, x, w, false, false));
  std::vector<NodeId> roots{reduce(g, Combine::Sum, h, Dims{0}), cumsum(g, h, {0, false, false})};
  Array weights = make_array(DType::Float32, {4, 6}, random_numbers(24, -1, 1, 1));
  const cpu::Runner runner(make_plan(g, live_nodes(g, roots), roots, {}));

  set_max_threads(3);
  auto work = [&](uint64_t seed, std::vector<Array>& results) {
    Array in = make_array(DType::Float32, {kRows, 4}, random_numbers(4 * kRows, -1, 1, seed));
    for (int i = 0; i < 20; ++i) {
      Array sum = empty_array(DType::Float32, {6}), all = empty_array(DType::Float32, {kRows, 6});
      const void* inputs[] = {in.data(), weights.data()};
      void* outputs[] = {sum.data(), all.data()};
      runner.run(inputs, outputs, nullptr);
      if (i > 0) {
        EXPECT_EQ(std::memcmp(results[0].data(), sum.data(), sum.bytes()), 0);
        EXPECT_EQ(std::memcmp(results[1].data(), all.data(), all.bytes()), 0);
      }
      results = {sum, all};
    }
    Leaves leaves{{x, in}, {w, weights}};
    expect_close(results[0], interpret(g, roots[0], leaves), 1e-3);
  };
  std::vector<std::vector<Array>> results(4);
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < results.size(); ++t)
    threads.emplace_back([&, t] { work(t + 10, results[t]); });
  for (auto& t : threads) t.join();
  set_max_threads(0);
}

TEST(Engine, AFailedRunLeavesTheRunnerUsable) {
  Graph g;
  NodeId x = leaf(g, DType::Float32, Dims{100}), at = leaf(g, DType::Int32, Dims{1});
  NodeId roots[] = {unary(g, Op::Sin, gather(g, x, at, 0))};
  cpu::Runner runner(make_plan(g, live_nodes(g, roots), roots, {}));
  Array in = make_array(DType::Float32, {100}, std::vector<double>(100, 0)),
        out = empty_array(DType::Float32, {1});
  for (int index : {100, 3, -101, -100}) {
    Array where = make_array(DType::Int32, {1}, {double(index)});
    const void* inputs[] = {in.data(), where.data()};
    void* outputs[] = {out.data()};
    if (index >= -100 && index < 100) {
      runner.run(inputs, outputs, nullptr);
      EXPECT_EQ(numbers(out)[0], 0);
    } else {
      EXPECT_THROW(runner.run(inputs, outputs, nullptr), Error);
    }
  }
}

/// Widths just beyond a multiple of the blocks that large products are split into.
TEST(Engine, WholeProductsDoNotDependOnTheNumberOfThreads) {
  for (DType t : {DType::Float32, DType::Float64})
    for (int64_t n : {193, 213, 289, 385}) {
      Graph g;
      NodeId a = leaf(g, t, Dims{n, n}), b = leaf(g, t, Dims{n, n});
      NodeId product = matmul(g, a, b, true, false);  // too large for a region's accumulators
      NodeId wide = matmul(g, a, concat(g, std::vector<NodeId>{b, b, b, b}, 1), false, false);
      std::vector<NodeId> roots{product, wide};
      Leaves leaves{{a, make_array(t, {n, n}, random_numbers(n * n, -1, 1, 1))},
                    {b, make_array(t, {n, n}, random_numbers(n * n, -1, 1, 2))}};
      set_max_threads(1);
      auto one = run(g, roots, leaves);
      for (int threads : {2, 3, 4, 5, 7}) {
        set_max_threads(threads);
        auto many = run(g, roots, leaves);
        for (size_t i = 0; i < roots.size(); ++i) expect_close(many[i], one[i], 0);
      }
      set_max_threads(0);
    }
}

/// The hidden layers are whole products, between regions that hold their results by features.
TEST(Engine, WideLayersAndTheirGradients) {
  for (int64_t rows : {17, 70}) {
    Graph g;
    const Dims hidden{rows, 256};
    NodeId x = leaf(g, DType::Float64, Dims{rows, 270}),
           w1 = leaf(g, DType::Float64, Dims{256, 270}),
           w2 = leaf(g, DType::Float64, Dims{256, 256}), bias = leaf(g, DType::Float64, Dims{256});
    auto layer = [&](NodeId h, NodeId w) {
      NodeId sum = binary(g, Op::Add, matmul(g, h, w, false, true), broadcast_to(g, bias, hidden));
      return unary(g, Op::Tanh, sum);
    };
    NodeId y = layer(layer(x, w1), w2);
    NodeId out[] = {y}, seed[] = {constant(g, DType::Float64, hidden, 1)},
           wrt[] = {w1, w2, bias, x};
    std::vector<NodeId> roots = ad::adjoint(g, out, seed, wrt);
    roots.push_back(y);
    Leaves leaves;
    for (NodeId id : {x, w1, w2, bias})
      leaves[id] = make_array(DType::Float64, Dims(g.dims(id)),
                              random_numbers(g.count(id), -0.1, 0.1, 3 + id));
    std::string text = to_text(make_plan(g, live_nodes(g, roots), roots, {}));
    EXPECT_NE(text.find("^T"), text.npos) << text;
    set_max_threads(1);
    auto one = run(g, roots, leaves);
    set_max_threads(3);
    auto three = run(g, roots, leaves);
    set_max_threads(0);
    for (size_t i = 0; i < roots.size(); ++i) {
      expect_close(one[i], interpret(g, roots[i], leaves), 1e-12);
      expect_close(three[i], one[i], 0);
    }
  }
}

}  // namespace
}  // namespace gradcell
