// Traces: variables are functional while one records and written once at the end; what outlives a
// trace has a value; compiled traces run again on other arguments.
#include "runtime/trace.h"

#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "ad/transform.h"
#include "evaluate.h"
#include "ops/ops.h"
#include "runtime/frontend.h"
#include "runtime/plan_cache.h"

namespace gradcell {
namespace {

using namespace testing;  // NOLINT

Array scalar(double v) { return make_array(DType::Float32, {}, {v}); }
double number(const Array& a) { return numbers(a).at(0); }

TensorPtr tensor(double v) { return std::make_shared<Tensor>(scalar(v)); }
VariablePtr variable(double v) { return std::make_shared<Variable>(scalar(v)); }
TensorPtr of(const VariablePtr& v) { return std::make_shared<Tensor>(v); }
Number real(double v) { return {Number::Kind::Float, v, 0}; }

/// A current trace that ends with the scope.
struct Recording {
  explicit Recording(const Settings& s = settings()) : trace(begin_trace(s)) {}
  TracePtr trace;
  ~Recording() { end_trace(); }
  TensorPtr argument(double v) {
    return std::make_shared<Tensor>(trace, trace->argument(scalar(v)));
  }
};

TEST(Trace, OutsideOneOpsRunAtOnce) {
  TensorPtr y = binary(Op::Add, tensor(2), real(3));
  EXPECT_FALSE(y->traced());
  EXPECT_EQ(number(y->value()), 5);
}

TEST(Trace, InsideOneOpsRecordAndFinishGivesValues) {
  Recording r;
  TensorPtr x = r.argument(2), y = unary(Op::Square, x);
  EXPECT_TRUE(y->traced());
  NodeId out[] = {y->node()};
  EXPECT_EQ(number(r.trace->finish(out)[0]), 4);
  EXPECT_FALSE(y->traced());
  EXPECT_FALSE(r.trace->active());
  EXPECT_EQ(number(y->value()), 4);
}

TEST(Trace, OneIsActiveAtATime) {
  Recording r;
  EXPECT_THROW(begin_trace(), Error);
}

TEST(Trace, VariablesAreWrittenAtTheEndAllAtOnce) {
  VariablePtr a = variable(1), b = variable(10);
  TensorPtr ta = of(a), tb = of(b);
  {
    Recording r;
    Trace& t = *r.trace;
    NodeId old_a = t.lift(a);
    TensorPtr sum = binary(Op::Add, ta, tb);
    t.assign(a, sum->node());
    TensorPtr second = binary(Op::Add, ta, tb);  // reads what was assigned
    t.assign(b, second->node());
    EXPECT_EQ(number(a->value()), 1) << "nothing is written while recording";
    EXPECT_NE(t.lift(a), old_a);
    NodeId out[] = {old_a};
    EXPECT_EQ(number(t.finish(out)[0]), 1) << "the old value is still there for its readers";
  }
  EXPECT_EQ(number(a->value()), 11);
  EXPECT_EQ(number(b->value()), 21);
}

TEST(Trace, AFailureBeforeTheEndChangesNothing) {
  VariablePtr a = variable(1);
  TensorPtr left;
  {
    Recording r;
    left = binary(Op::Add, of(a), real(1));
    r.trace->assign(a, left->node());
    r.trace->abandon();
  }
  EXPECT_EQ(number(a->value()), 1);
}

TEST(Trace, ATensorThatLeavesHasItsValue) {
  std::vector<TensorPtr> kept;
  {
    Recording r;
    TensorPtr x = r.argument(3), y = unary(Op::Square, x);
    kept.push_back(binary(Op::Add, x, real(1)));  // no output, but kept
    NodeId out[] = {y->node()};
    r.trace->finish(out);
  }
  EXPECT_FALSE(kept[0]->traced());
  EXPECT_EQ(number(kept[0]->value()), 4);
}

TEST(Trace, ValuesOnDemandAreComputedOnceAndRecordingGoesOn) {
  Recording r;
  TensorPtr x = r.argument(3), y = unary(Op::Square, x);
  EXPECT_FALSE(r.trace->asked());
  EXPECT_EQ(number(y->value()), 9);
  EXPECT_TRUE(r.trace->asked());
  size_t runs = plan_cache_info().runs;
  EXPECT_EQ(number(y->value()), 9);
  EXPECT_EQ(plan_cache_info().runs, runs);
  TensorPtr z = unary(Op::Square, y);
  EXPECT_EQ(number(z->value()), 81);
  NodeId out[] = {z->node(), x->node()};
  auto values = r.trace->finish(out);
  EXPECT_EQ(number(values[0]), 81);
  EXPECT_EQ(number(values[1]), 3);
}

/// How many nodes a read has to compute: those that are neither known nor constants.
size_t unknown(const Trace& t, const TensorPtr& x) {
  const NodeId root[] = {x->node()};
  size_t count = 0;
  for (NodeId id : live_until(t.graph, root, t.cuts()))
    count += !t.known(id) && !is_constant(t.graph, id);
  return count;
}

TEST(Trace, WhatReadsPassThroughIsNotComputedAgainAndAgain) {
  Recording r;
  TensorPtr x = r.argument(0.5);
  double expected = 0.5;
  size_t computed = 0;
  for (int k = 0; k < 200; ++k) {
    x = unary(Op::Sin, x);
    expected = std::sin(expected);
    const TensorPtr read = binary(Op::Mul, x, real(2));
    computed += unknown(*r.trace, read);
    EXPECT_NEAR(number(read->value()), 2 * expected, 1e-5);
  }
  EXPECT_LE(computed, 2u * 400) << "no node more than twice";
}

TEST(Trace, WhatIsReadAfterAllIsRecordedIsNotComputedAgainAndAgain) {
  Recording r;
  TensorPtr x = r.argument(0.5);
  std::vector<TensorPtr> read;  // the values between are held by nobody
  for (int k = 0; k < 200; ++k) {
    x = unary(Op::Sin, x);
    read.push_back(binary(Op::Mul, x, real(2)));
  }
  x.reset();
  for (bool backwards : {false, true}) {
    size_t computed = 0;
    if (backwards) std::ranges::reverse(read);
    for (const TensorPtr& y : read) {
      const TensorPtr more = binary(Op::Add, y, real(backwards ? 1 : 2));
      computed += unknown(*r.trace, more);
      more->value();
    }
    EXPECT_LE(computed, 4u * read.size());
  }
}

TEST(Trace, ValuesThatNobodyAskedForAreForgottenWhenNothingNeedsThem) {
  Recording r;
  const Array start = make_array(DType::Float32, {1 << 20}, std::vector<double>(1 << 20, 0.5));
  TensorPtr x = std::make_shared<Tensor>(r.trace, r.trace->argument(start)), held;
  double expected = 0.5, held_value = 0;
  for (int k = 0; k < 100; ++k) {
    x = unary(Op::Sin, x);
    expected = std::sin(expected);
    if (k == 3) held = x, held_value = expected;
    EXPECT_NEAR(number(mean(x, std::nullopt, false)->value()), expected, 1e-5);
  }
  size_t large = 0;
  for (NodeId id : r.trace->cuts()) large += r.trace->graph.count(id) == 1 << 20;
  EXPECT_GT(large, 0u);
  EXPECT_LT(large, 40u) << "of 4 MB each";
  EXPECT_NEAR(number(mean(held, std::nullopt, false)->value()), held_value, 1e-5);
}

TEST(Trace, DifferentiatingByAVariable) {
  VariablePtr w = variable(3);
  TensorPtr tw = of(w);
  Recording r;
  Trace& t = *r.trace;
  NodeId before = t.lift(w), a = t.push_alias(w);
  TensorPtr y = unary(Op::Square, tw);
  NodeId out[] = {y->node()}, seed[] = {constant(t.graph, DType::Float32, Dims{}, 1)}, wrt[] = {a};
  NodeId d = ad::adjoint(t.graph, out, seed, wrt)[0];
  t.dissolve(wrt);
  EXPECT_EQ(t.lift(w), before);
  NodeId results[] = {d};
  EXPECT_EQ(number(t.finish(results)[0]), 6);
  EXPECT_EQ(number(w->value()), 3) << "it was not assigned";
}

TEST(Trace, DissolvedAliasesLeaveTheOuterComputation) {
  Recording r;
  Trace& t = *r.trace;
  NodeId x = t.argument(scalar(2)), outer = t.alias(x), inner = t.alias(outer);
  TensorPtr outside = std::make_shared<Tensor>(r.trace, unary(t.graph, Op::Sin, outer));
  TensorPtr inside = std::make_shared<Tensor>(r.trace, unary(t.graph, Op::Sin, inner));
  NodeId product = binary(t.graph, Op::Mul, inside->node(), outer);
  TensorPtr kept = std::make_shared<Tensor>(r.trace, product);
  EXPECT_NE(inside->node(), outside->node());
  EXPECT_NE(number(kept->value()), 0);  // a known value stays known
  size_t runs = plan_cache_info().runs;
  NodeId aliases[] = {inner};
  t.dissolve(aliases);
  EXPECT_EQ(inside->node(), outside->node());
  EXPECT_NE(kept->node(), product);
  EXPECT_NEAR(number(kept->value()), 2 * std::sin(2.0), 1e-6);
  EXPECT_EQ(plan_cache_info().runs, runs);
  NodeId all[] = {kept->node()};
  t.finish(all);
}

TEST(Trace, ACapturedArrayIsOneLeaf) {
  TensorPtr c = tensor(5);
  Recording r;
  NodeId a = c->in(*r.trace), b = c->in(*r.trace);
  EXPECT_EQ(a, b);
  EXPECT_NE(r.trace->argument(c->value()), r.trace->argument(c->value()))
      << "arguments are never one";
}

TEST(Trace, ATensorOfAnotherTraceIsAnError) {
  TensorPtr stray;
  {
    Recording r;
    stray = unary(Op::Sin, r.argument(1));
    r.trace->abandon();
  }
  Recording r;
  EXPECT_THROW(unary(Op::Cos, stray), Error);
}

/// counter += x; returns x * counter.
struct Step {
  VariablePtr counter = variable(0);
  std::shared_ptr<Compiled> compiled;
  double first;

  explicit Step(double x0) {
    Recording r;
    TensorPtr x = r.argument(x0);
    TensorPtr next = binary(Op::Add, of(counter), x);
    r.trace->assign(counter, next->node());
    TensorPtr y = binary(Op::Mul, x, next);
    NodeId out[] = {y->node()};
    x.reset(), next.reset();  // as when the function has returned
    first = number(r.trace->finish(out, &compiled)[0]);
  }
  double operator()(double x) const {
    Array in[] = {scalar(x)};
    return number(compiled->run(in)[0]);
  }
};

TEST(Compiled, RunsAgainAndUpdatesVariables) {
  Step step(2);
  ASSERT_TRUE(step.compiled);
  EXPECT_EQ(step.first, 4);
  EXPECT_EQ(number(step.counter->value()), 2);
  EXPECT_EQ(step(3), 15);
  EXPECT_EQ(step(1), 6);
  EXPECT_EQ(number(step.counter->value()), 6);
}

TEST(Compiled, ResultsOfEarlierCallsStay) {
  Step step(1);
  Array in[] = {scalar(1)};
  Array first = step.compiled->run(in)[0];
  Array kept = step.counter->value();
  step.compiled->run(in);
  EXPECT_EQ(number(first), 2);
  EXPECT_EQ(number(kept), 2);
}

TEST(Compiled, NoneWhereAValueWasAskedForOrATensorKept) {
  for (bool ask : {false, true}) {
    TensorPtr kept;
    std::shared_ptr<Compiled> compiled;
    Recording r;
    TensorPtr x = r.argument(2), y = unary(Op::Square, x);
    if (ask)
      y->value();
    else
      kept = unary(Op::Sin, x);
    NodeId out[] = {y->node()};
    x.reset();
    r.trace->finish(out, &compiled);
    EXPECT_FALSE(compiled);
    EXPECT_TRUE(r.trace->asked());
  }
}

TEST(PlanCache, TheSameStructureIsPlannedOnce) {
  // Each setting has a plan of its own, which is there when it comes back.
  const Settings& own =
      settings_with(settings(), [](Settings& s) { s.target.multiprocessors = 7; });
  const Settings& other = settings_with(own, [](Settings& s) { s.target.tf32 = true; });
  const PlanCacheInfo before = plan_cache_info();
  auto use = [](const Settings& s, double c) {
    Recording r(s);
    TensorPtr y = binary(Op::Mul, unary(Op::Sin, r.argument(c)), real(c));
    NodeId out[] = {y->node()};
    EXPECT_NEAR(number(r.trace->finish(out)[0]), c * std::sin(c), 1e-6);
  };
  for (double c : {2.0, 3.0, 4.0}) use(own, c);
  for (double c : {2.0, 3.0}) use(other, c);
  use(own, 5);
  const PlanCacheInfo after = plan_cache_info();
  EXPECT_EQ(after.size - before.size, 2u);
  EXPECT_EQ(after.misses - before.misses, 2u);
  EXPECT_EQ(after.hits - before.hits, 4u);
}

TEST(Settings, EqualOnesAreOne) {
  const Settings& first = settings();
  auto change = [](Settings& s) {
    s.target.weights.launch = 123, s.default_float = DType::Float64;
  };
  const Settings& other = settings_with(first, change);
  EXPECT_NE(&other, &first);
  EXPECT_EQ(&settings_with(first, change), &other);
  EXPECT_EQ(&settings_of(other.number), &other);
  EXPECT_EQ(&settings_of(first.number), &first);
  EXPECT_EQ(&settings_with(other, [&](Settings& s) { s = first; }), &first);
  EXPECT_EQ(&settings(), &first);
}

TEST(Settings, ATraceHasThoseItBeganWith) {
  const Settings& before = settings();
  Recording r;
  TensorPtr x = r.argument(2), y;
  change_settings([](Settings& s) { s.target.tf32 = true; });
  EXPECT_NE(&settings(), &before);
  EXPECT_EQ(&r.trace->graph.settings(), &before);
  y = binary(Op::Mul, unary(Op::Cos, x), real(3));
  const NodeId root[] = {y->node()};
  EXPECT_EQ(structural_hash(r.trace->graph, live_nodes(r.trace->graph, root), root, {}).settings,
            &before);
  change_settings([&](Settings& s) { s = before; });
  EXPECT_EQ(&settings(), &before);
}

TEST(Settings, PassesKeepThem) {
  Recording r(settings_with(settings(), [](Settings& s) { s.target.capability = 75; }));
  TensorPtr x = r.argument(2);
  const NodeId root[] = {unary(Op::Exp, binary(Op::Add, x, x))->node()};
  const Graph& g = r.trace->graph;
  for (bool apart : {false, true})
    EXPECT_EQ(&plan_graph(g, live_nodes(g, root), root, {}, apart).graph.settings(), &g.settings());
}

TEST(Trace, ThreadsHaveTracesOfTheirOwn) {
  auto work = [](double x0) {
    for (int i = 0; i < 50; ++i) {
      Recording r;
      TensorPtr y = unary(Op::Square, r.argument(x0));
      NodeId out[] = {y->node()};
      ASSERT_EQ(number(r.trace->finish(out)[0]), x0 * x0);
    }
  };
  std::vector<std::thread> threads;
  for (int t = 1; t <= 4; ++t) threads.emplace_back(work, t);
  for (auto& t : threads) t.join();
}

TEST(Compiled, SeveralThreadsRunOne) {
  std::shared_ptr<Compiled> compiled;
  {
    Recording r;
    TensorPtr y = unary(Op::Square, r.argument(2));
    NodeId out[] = {y->node()};
    r.trace->finish(out, &compiled);
  }
  ASSERT_TRUE(compiled);
  std::vector<std::thread> threads;
  for (int t = 1; t <= 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 100; ++i) {
        Array in[] = {scalar(t)};
        ASSERT_EQ(number(compiled->run(in)[0]), t * t);
      }
    });
  for (auto& t : threads) t.join();
}

}  // namespace
}  // namespace gradcell
