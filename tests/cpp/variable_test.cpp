// Variables own their memory, change together, and are shared by threads.
#include "runtime/variable.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <new>
#include <thread>

#include "base/interrupt.h"
#include "evaluate.h"
#include "ops/ops.h"
#include "runtime/frontend.h"
#include "runtime/plan_cache.h"

namespace {

/// The allocation of this thread that fails next, counted down; 0: none does.
thread_local int64_t t_failing = 0;
bool fails() { return t_failing > 0 && --t_failing == 0; }

}  // namespace

[[gnu::noinline]] void* operator new(size_t bytes) {
  if (fails()) throw std::bad_alloc();
  if (void* p = std::malloc(bytes)) return p;
  throw std::bad_alloc();
}
/// The library's own sorts ask so, and give back by the operators below.
[[gnu::noinline]] void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return operator new(bytes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, size_t) noexcept { std::free(p); }

#ifdef __linux__
/// What memory for elements comes from (base/system/posix.cpp). Elsewhere it does not fail.
extern "C" void* aligned_alloc(size_t alignment, size_t bytes) noexcept {
  void* p = nullptr;
  return fails() || ::posix_memalign(&p, alignment, bytes) != 0 ? nullptr : p;
}
#endif

namespace gradcell {
namespace {

using namespace testing;  // NOLINT

Array filled(DType dtype, const Dims& dims, double value) {
  return make_array(dtype, dims,
                    std::vector<double>(static_cast<size_t>(element_count(dims)), value));
}
VariablePtr variable(const Array& a) { return std::make_shared<Variable>(a); }

/// A traced function: what it returns, and the variables' new values.
std::shared_ptr<Compiled> compiled(
    const std::vector<Array>& arguments,
    const std::function<std::vector<NodeId>(Trace&, const std::vector<NodeId>&)>& record) {
  const TracePtr trace = begin_trace();
  struct End {
    ~End() { end_trace(); }
  } end;
  std::vector<NodeId> in;
  for (const Array& a : arguments) in.push_back(trace->argument(a));
  std::shared_ptr<Compiled> made;
  trace->finish(record(*trace, in), &made);
  return made;
}

/// Settings that no plan has been made by.
const Settings& never_before() {
  static int capability = 1000;
  return settings_with(settings(), [](Settings& s) { s.target.capability = ++capability; });
}

/// Whether all elements are this number.
bool all_are(const Array& a, double value) {
  const std::vector<double> got = numbers(a);
  return std::ranges::all_of(got, [&](double x) { return x == value; });
}

TEST(Variable, BorrowedMemoryIsCopied) {
  const std::vector<float> mine(100, 1);
  int released = 0;
  const Array lent{DType::Float32,
                   {100},
                   Storage::wrap(const_cast<float*>(mine.data()), 400, false, [&] { ++released; })};
  const VariablePtr made = variable(lent), set = variable(filled(DType::Float32, {100}, 0));
  set->set(lent);
  for (const VariablePtr& v : {made, set}) {
    EXPECT_NE(v->value().data(), mine.data());
    EXPECT_TRUE(all_are(v->value(), 1));
    v->overwrite([](const Array& a) { static_cast<float*>(a.data())[0] = 2; });
    EXPECT_EQ(numbers(v->value())[0], 2);
  }
  EXPECT_EQ(mine[0], 1);
  EXPECT_EQ(released, 0);
}

TEST(Variable, ASnapshotStaysWhatItWas) {
  const VariablePtr v = variable(filled(DType::Float32, {100}, 1));
  const Array before = v->value();
  v->overwrite([](const Array& a) { static_cast<float*>(a.data())[0] = 2; });
  EXPECT_TRUE(all_are(before, 1));
  const Array shown = v->expose(), kept = v->value();
  static_cast<float*>(shown.data())[1] = 3;
  EXPECT_EQ(numbers(v->value())[1], 3) << "NumPy's array is the variable's memory";
  v->set(shown);
  static_cast<float*>(shown.data())[1] = 4;
  EXPECT_EQ(numbers(v->value())[1], 3) << "what is set is copied, if others can write to it";
}

TEST(Variable, ARunWritesInPlaceOnlyWhereNobodyElseHoldsTheMemory) {
  const VariablePtr v = variable(filled(DType::Float32, {100}, 0));
  const auto step = compiled({}, [&](Trace& t, const std::vector<NodeId>&) {
    t.assign(v,
             binary(t.graph, Op::Add, t.lift(v), constant(t.graph, DType::Float32, Dims{100}, 1)));
    return std::vector<NodeId>();
  });
  const void* const memory = v->value().data();
  step->run({});
  EXPECT_EQ(v->value().data(), memory);
  {
    const Array held = v->value();
    step->run({});
    EXPECT_TRUE(all_are(held, 2));
    EXPECT_NE(v->value().data(), memory);
  }
  EXPECT_TRUE(all_are(v->value(), 3));
}

TEST(Variable, AnotherShapeInTheMiddleIsAnError) {
  const VariablePtr v = variable(filled(DType::Float32, {100}, 0));
  const auto read = compiled({}, [&](Trace& t, const std::vector<NodeId>&) {
    return std::vector<NodeId>{unary(t.graph, Op::Exp, t.lift(v))};
  });
  const Dims& dims = v->dims();
  v->set(filled(DType::Float32, {3}, 0));
  EXPECT_EQ(dims, Dims{100}) << "who has read it goes on";
  EXPECT_THROW(read->run({}), Error);
  v->set(filled(DType::Float32, {100}, 0));
  EXPECT_TRUE(all_are(read->run({})[0], 1));
}

/// Two variables whose elements have the sum 0 at any time, and what is done with them.
struct Shared {
  explicit Shared(int64_t n)
      : a(variable(filled(DType::Float64, {n}, 0))), b(variable(a->value())) {
    const Array x = filled(DType::Float64, {n}, 1);
    train = compiled({x}, [&](Trace& t, const std::vector<NodeId>& in) {
      Graph& g = t.graph;
      t.assign(a, binary(g, Op::Add, t.lift(a), in[0]));
      t.assign(b, binary(g, Op::Sub, t.lift(b), in[0]));
      return std::vector<NodeId>();
    });
    infer = compiled({}, [&](Trace& t, const std::vector<NodeId>&) {
      return std::vector<NodeId>{binary(t.graph, Op::Add, t.lift(a), t.lift(b)), t.lift(a)};
    });
    one = x;
  }
  VariablePtr a, b;
  Array one;
  std::shared_ptr<Compiled> train, infer;
};

void require_whole(const Array& a, const Array& b) {
  const std::vector<double> x = numbers(a), y = numbers(b);
  for (size_t i = 0; i < x.size(); ++i)
    ASSERT_TRUE(x[i] == x[0] && y[i] == -x[0]) << x[0] << " " << x[i] << " " << y[i];
}

TEST(Variable, EightThreadsTrainReadSaveAndInfer) {
  for (const int64_t n : {7, 3000}) {
    constexpr int kSteps = 300;
    const Shared s(n);
    std::atomic<int> training{3};
    std::vector<std::thread> threads;
    auto thread = [&](auto body) { threads.emplace_back(body); };
    auto until_trained = [&](auto body) {
      thread([&training, body] {
        do body();
        while (training > 0);
      });
    };
    for (int i = 0; i < 2; ++i)
      thread([&] {
        for (int step = 0; step < kSteps; ++step) s.train->run({&s.one, 1});
        --training;
      });
    thread([&] {  // traces anew at each step
      for (int step = 0; step < kSteps / 10; ++step)
        compiled({s.one}, [&](Trace& t, const std::vector<NodeId>& in) {
          t.assign(s.a, binary(t.graph, Op::Add, t.lift(s.a), in[0]));
          t.assign(s.b, binary(t.graph, Op::Sub, t.lift(s.b), in[0]));
          return std::vector<NodeId>();
        });
      --training;
    });
    until_trained([&] {  // saves
      const VariablePtr both[] = {s.a, s.b};
      const std::vector<Array> values = values_of(both);
      require_whole(values[0], values[1]);
    });
    until_trained([&] {  // infers
      const std::vector<Array> found = s.infer->run({});
      ASSERT_TRUE(all_are(found[0], 0));
    });
    until_trained([&] {  // reads one
      const std::vector<double> x = numbers(s.a->value());
      ASSERT_TRUE(std::ranges::all_of(x, [&](double v) { return v == x[0]; }));
    });
    until_trained([&] {  // shows it to NumPy
      const std::vector<double> x = numbers(s.b->expose());
      ASSERT_TRUE(std::ranges::all_of(x, [&](double v) { return v == x[0]; }));
    });
    until_trained([&] {  // writes what is there
      s.a->overwrite([](const Array& a) {
        auto* x = static_cast<double*>(a.data());
        for (int64_t i = 0; i < a.count(); ++i) x[i] += 1;
        for (int64_t i = 0; i < a.count(); ++i) x[i] -= 1;
      });
      ASSERT_EQ(s.a->dims(), s.b->dims());
    });
    for (std::thread& t : threads) t.join();
    const double steps = 2 + kSteps * 2 + kSteps / 10;  // the trace's own, too
    EXPECT_TRUE(all_are(s.a->value(), steps - 1)) << "no update is lost";
    require_whole(s.a->value(), s.b->value());
  }
}

/// A training step with all that a run allocates for: packed weights in two dtypes, sums over rows,
/// more inputs than fit on the stack, a call on a whole tensor after all else.
struct Step {
  explicit Step(int64_t rows, int layers = 70) : x(filled(DType::Float32, {rows, 3}, 0.5)) {
    for (int i = 0; i < layers; ++i)
      weights.push_back(variable(filled(DType::Float32, {3, 3}, 0.25)));
    weights.push_back(variable(filled(DType::BFloat16, {3, 3}, 0.25)));
  }
  std::vector<NodeId> record(Trace& t, NodeId x) const {
    Graph& g = t.graph;
    NodeId h = x, sum = kNoNode;
    std::vector<NodeId> now;
    for (const VariablePtr& v : weights) {
      const NodeId w = cast(g, t.lift(v), DType::Float32);
      h = unary(g, Op::Tanh, matmul(g, h, w, false, false));
      const NodeId gradient = matmul(g, x, h, true, false);
      sum = sum == kNoNode ? gradient : binary(g, Op::Add, sum, gradient);
      const Dims dims{3, 3};  // each element changes at each step
      const NodeId far = binary(g, Op::Sub, constant(g, DType::Float32, dims, 1.5), w);
      const NodeId little = binary(g, Op::Mul, gradient, constant(g, DType::Float32, dims, 1e-6));
      now.push_back(cast(g, binary(g, Op::Sub, far, little), v->dtype()));
    }
    for (size_t i = 0; i < now.size(); ++i) t.assign(weights[i], now[i]);
    const int64_t descending[] = {0};
    return {make(g, Op::Order, {{&sum, 1}, descending})};
  }
  std::shared_ptr<Compiled> trace() const {
    return compiled({x}, [&](Trace& t, const std::vector<NodeId>& in) { return record(t, in[0]); });
  }
  std::vector<std::vector<uint64_t>> values() const {
    std::vector<std::vector<uint64_t>> all;
    for (const VariablePtr& v : weights) all.push_back(element_bits(v->value()));
    return all;
  }
  /// How many variables have changed since.
  size_t changed(const std::vector<std::vector<uint64_t>>& before) const {
    const auto now = values();
    size_t n = 0;
    for (size_t i = 0; i < now.size(); ++i) n += now[i] != before[i];
    return n;
  }
  Array x;
  std::vector<VariablePtr> weights;
};

/// f, each of whose allocations fails in turn, changes all of a step's variables or none. Returns
/// how many failures there were.
template <class F>
int fail_everywhere(const Step& step, F f) {
  for (int64_t at = 1;; ++at) {
    const auto before = step.values();
    bool failed = false;
    t_failing = at;
    try {
      f();
    } catch (const std::exception&) {
      failed = true;
    }
    const bool all = t_failing > 0;
    t_failing = 0;
    const size_t changed = step.changed(before);
    if (changed != 0 && changed != step.weights.size()) {
      ADD_FAILURE() << "allocation " << at << ": " << changed << " have changed";
      return -1;
    }
    EXPECT_TRUE(failed || changed > 0);
    if (all) return static_cast<int>(at - 1);
  }
}

TEST(Update, AllOrNoneWhereverMemoryEnds) {
  set_max_threads(1);
  for (const int64_t rows : {40, 5000}) {
    const Step step(rows);
    const auto compiled = step.trace();
    ASSERT_TRUE(compiled);
    // A run of a plan that is new has more to allocate than the next one.
    const int again = fail_everywhere(step, [&] { compiled->run({&step.x, 1}); });
    EXPECT_GT(again, 1);
  }
  set_max_threads(0);
}

TEST(Update, AllOrNoneWhereverMemoryEndsInATrace) {
  set_max_threads(1);
  const Step step(40, 3);
  int tried = 0;
  bool all = false;
  for (int64_t at = 1; !all; at += 1 + at / 8) {  // there are thousands
    const auto before = step.values();
    const TracePtr trace = begin_trace(never_before());
    const std::vector<NodeId> out = step.record(*trace, trace->argument(step.x));
    std::shared_ptr<Compiled> made;
    t_failing = at;
    try {
      trace->finish(out, &made);
    } catch (const std::exception&) {
    }
    all = t_failing > 0;
    t_failing = 0;
    end_trace();
    const size_t changed = step.changed(before);
    EXPECT_TRUE(changed == 0 || changed == step.weights.size()) << at << ": " << changed;
    ++tried;
  }
  EXPECT_GT(tried, 30);
  set_max_threads(0);
}

std::atomic<int> g_asks{0}, g_interrupt{0};

TEST(Update, AllOrNoneWhereverAnInterruptComes) {
  const Step step(40, 12);
  struct Ends {
    void (*before)() = interrupt_check.load();
    ~Ends() { interrupt_check = before; }
  } ends;
  interrupt_check = [] {
    if (++g_asks == g_interrupt) throw std::runtime_error("interrupted");
  };
  int tried = 0;
  for (bool ended = false; !ended; ++tried) {
    const auto before = step.values();
    const TracePtr trace = begin_trace(never_before());
    g_interrupt = 0;
    const std::vector<NodeId> out = step.record(*trace, trace->argument(step.x));
    // A value that is the same at every call is known by now: it is planned a second time without.
    static_cast<void>(trace->value(unary(trace->graph, Op::Sin, trace->lift(step.x))));
    std::shared_ptr<Compiled> made;
    g_asks = 0;
    g_interrupt = tried + 1;
    bool interrupted = false;
    try {
      trace->finish(out, &made);
    } catch (const std::runtime_error&) {
      interrupted = true;
    }
    end_trace();
    EXPECT_EQ(step.changed(before), interrupted ? 0 : step.weights.size());
    ended = !interrupted;
  }
  EXPECT_GT(tried, 3);
}

}  // namespace
}  // namespace gradcell
