// The engine with no Python: graphs built here, differentiated, planned and run. Each figure stands
// beside the machine's limits, measured in the same run:
//   GFLOPS, of_peak     arithmetic of the matrix products (2mnk each); % of the threads' peak
//   GBps, of_bandwidth  the plan's inputs and outputs, each once; % of the triad's rate
//   peak_GFLOPS, triad_GBps  those limits
// A step with little of either is bound by neither: elementwise functions cost instructions that
// are not counted. For instance:
//   gradcell_bench --benchmark_filter=engine
#include <benchmark/benchmark.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "ad/transform.h"
#include "base/thread_pool.h"
#include "cpu/products/blas.h"
#include "cpu/run/engine.h"
#include "machine.h"
#include "ops/ops.h"
#include "plan/planner.h"
#include "runtime/storage.h"

namespace gradcell::cpu {
namespace {

/// A graph and what is wanted of it.
struct Problem {
  Graph g;
  std::vector<NodeId> roots;

  std::vector<NodeId> live() const { return live_nodes(g, roots); }
  Plan plan() const { return make_plan(g, live(), roots, {}); }
};

NodeId ones(Graph& g, NodeId like) { return constant(g, g.dtype(like), Dims(g.dims(like)), 1); }

NodeId scaled(Graph& g, NodeId x, double factor) {
  return binary(g, Op::Mul, x, constant(g, g.dtype(x), Dims(g.dims(x)), factor));
}

NodeId gradient(Graph& g, NodeId y, NodeId x) {
  const NodeId outputs[] = {y}, cotangents[] = {ones(g, y)}, wrt[] = {x};
  return ad::adjoint(g, outputs, cotangents, wrt)[0];
}

/// The order-th derivative of sin(x) exp(-x^2) + x tanh(x).
Problem elementwise(int order, int64_t n) {
  Problem p;
  Graph& g = p.g;
  const NodeId x = leaf(g, DType::Float32, Dims{n});
  const NodeId bell = unary(g, Op::Exp, unary(g, Op::Neg, binary(g, Op::Mul, x, x)));
  NodeId y = binary(g, Op::Add, binary(g, Op::Mul, unary(g, Op::Sin, x), bell),
                    binary(g, Op::Mul, x, unary(g, Op::Tanh, x)));
  for (int i = 0; i < order; ++i) y = gradient(g, y, x);
  p.roots = {y};
  return p;
}

struct Layer {
  NodeId weight, bias;  ///< [out, in], [out]
};

std::vector<Layer> layers(Graph& g, DType dtype, const std::vector<int64_t>& sizes) {
  std::vector<Layer> made;
  for (size_t i = 0; i + 1 < sizes.size(); ++i) {
    const NodeId weight = leaf(g, dtype, Dims{sizes[i + 1], sizes[i]});
    made.push_back({weight, leaf(g, dtype, Dims{sizes[i + 1]})});
  }
  return made;
}

std::vector<NodeId> parameters(const std::vector<Layer>& net) {
  std::vector<NodeId> all;
  for (const Layer& l : net) all.insert(all.end(), {l.weight, l.bias});
  return all;
}

NodeId forward(Graph& g, const std::vector<Layer>& net, NodeId h, Op activation) {
  for (size_t i = 0; i < net.size(); ++i) {
    h = matmul(g, h, net[i].weight, false, true);
    h = binary(g, Op::Add, h, broadcast_to(g, net[i].bias, Dims(g.dims(h))));
    if (i + 1 < net.size()) h = unary(g, activation, h);
  }
  return h;
}

NodeId mean_square(Graph& g, NodeId r) {  // r: [n, 1]
  const int64_t axes[] = {0, 1};
  const NodeId sum = reduce(g, Combine::Sum, binary(g, Op::Mul, r, r), axes);
  return scaled(g, sum, 1.0 / static_cast<double>(g.count(r)));
}

struct Pinn {
  int depth, width, points;
  DType dtype;
  std::string text() const {
    return std::to_string(depth) + "x" + std::to_string(width) + "/" + std::to_string(points) +
           "/" + std::string(name(dtype));
  }
};

/// Burgers' equation: the mean squared residual u_t + u u_x - (0.01 / pi) u_xx of a tanh net, and
/// its gradients by the weights.
Problem pinn(const Pinn& of) {
  Problem p;
  Graph& g = p.g;
  std::vector<int64_t> sizes(static_cast<size_t>(of.depth) + 2, of.width);
  sizes.front() = 2;
  sizes.back() = 1;
  const NodeId x = leaf(g, of.dtype, Dims{of.points, 1}), t = leaf(g, of.dtype, Dims{of.points, 1});
  const std::vector<Layer> net = layers(g, of.dtype, sizes);
  const NodeId both[] = {x, t};
  const NodeId u = forward(g, net, concat(g, both, 1), Op::Tanh);
  const NodeId u_out[] = {u}, u_seed[] = {ones(g, u)};
  const std::vector<NodeId> slopes = ad::adjoint(g, u_out, u_seed, both);
  const NodeId u_xx = gradient(g, slopes[0], x);
  const NodeId moved = binary(g, Op::Add, slopes[1], binary(g, Op::Mul, u, slopes[0]));
  const NodeId residual = binary(g, Op::Sub, moved, scaled(g, u_xx, 0.01 / M_PI));
  const NodeId loss[] = {mean_square(g, residual)}, seed[] = {ones(g, loss[0])};
  p.roots = ad::adjoint(g, loss, seed, parameters(net));
  p.roots.push_back(loss[0]);
  return p;
}

/// Mean cross-entropy of logits [b, classes] and labels int32 [b].
NodeId cross_entropy(Graph& g, NodeId logits, NodeId labels) {
  const Dims dims = g.dims(logits);
  const int64_t features[] = {1}, rows[] = {0};
  auto spread = [&](NodeId column) {
    return broadcast_to(g, reshape(g, column, Dims{dims[0], 1}), dims);
  };
  const NodeId top = stop_gradient(g, reduce(g, Combine::Max, logits, features));
  const NodeId shifted = binary(g, Op::Sub, logits, spread(top));
  const NodeId sum = reduce(g, Combine::Sum, unary(g, Op::Exp, shifted), features);
  const NodeId log_p = binary(g, Op::Sub, shifted, spread(unary(g, Op::Log, sum)));
  const NodeId classes = broadcast_to(g, iota(g, DType::Int32, Dims{1, dims[1]}, 1), dims);
  const NodeId is_label = binary(g, Op::Equal, classes, spread(labels));
  const NodeId zero = constant(g, g.dtype(logits), dims, 0);
  const NodeId picked = reduce(g, Combine::Sum, select(g, is_label, log_p, zero), features);
  return scaled(g, reduce(g, Combine::Sum, picked, rows), -1.0 / static_cast<double>(dims[0]));
}

/// One step of Adam (Kingma and Ba 2015, algorithm 1): appends the new parameter, m and v.
void adam(Graph& g, NodeId parameter, NodeId gradient, NodeId rate, std::vector<NodeId>& roots) {
  const Dims dims = g.dims(parameter);
  auto blend = [&](double keep, NodeId value) {
    const NodeId old = leaf(g, g.dtype(parameter), dims);
    return binary(g, Op::Add, scaled(g, old, keep), scaled(g, value, 1 - keep));
  };
  const NodeId m = blend(0.9, gradient), v = blend(0.999, binary(g, Op::Mul, gradient, gradient));
  const NodeId scale =
      binary(g, Op::Add, unary(g, Op::Sqrt, v), constant(g, g.dtype(v), dims, 1e-8));
  const NodeId move = binary(g, Op::Div, binary(g, Op::Mul, m, broadcast_to(g, rate, dims)), scale);
  roots.insert(roots.end(), {binary(g, Op::Sub, parameter, move), m, v});
}

/// A training step of a 784-512-512-10 net: cross-entropy and Adam.
Problem mlp(int64_t batch) {
  Problem p;
  Graph& g = p.g;
  const NodeId images = leaf(g, DType::Float32, Dims{batch, 784});
  const NodeId labels = leaf(g, DType::Int32, Dims{batch});
  const NodeId rate = leaf(g, DType::Float32, Dims{});
  const std::vector<Layer> net = layers(g, DType::Float32, {784, 512, 512, 10});
  const NodeId loss[] = {cross_entropy(g, forward(g, net, images, Op::ReLU), labels)};
  const NodeId seed[] = {ones(g, loss[0])};
  const std::vector<NodeId> all = parameters(net), grads = ad::adjoint(g, loss, seed, all);
  p.roots = {loss[0]};
  for (size_t i = 0; i < all.size(); ++i) adam(g, all[i], grads[i], rate, p.roots);
  return p;
}

/// One product of square matrices.
Problem product(DType dtype, int64_t n) {
  Problem p;
  const NodeId a = leaf(p.g, dtype, Dims{n, n}), b = leaf(p.g, dtype, Dims{n, n});
  p.roots = {matmul(p.g, a, b, false, false)};
  return p;
}

/// 2mnk for each matrix product that is planned.
double product_flops(const Problem& p) {
  double flops = 0;
  for (NodeId id : p.live()) {
    if (p.g[id].op != Op::MatMul) continue;
    const Dims& a = p.g.dims(p.g.input(id, 0));
    flops += 2.0 * static_cast<double>(p.g.count(id) * a[a.size() - (p.g.attrs(id)[0] ? 2 : 1)]);
  }
  return flops;
}

/// Inputs between -0.5 and 0.5 (integers: 0), and space for the outputs.
class Memory {
 public:
  Memory(const Problem& p, const Plan& plan) {
    std::mt19937 random{1};
    for (const TensorDesc& d : plan.inputs) inputs_.push_back(filled(d, random));
    for (const PlanOutput& o : plan.outputs) {
      outputs_.push_back(empty_array(o.desc.dtype, o.desc.dims));
      const bool own = o.alias_input < 0 && o.alias_output < 0;
      out.push_back(own ? outputs_.back().data() : nullptr);
    }
    for (const Array& a : inputs_) in.push_back(a.data());
    for (NodeId id : p.live())
      if (p.g[id].op == Op::Const) constants.push_back(p.g[id].bits);
  }

  double bytes() const {
    double total = 0;
    for (const Array& a : inputs_) total += static_cast<double>(a.bytes());
    for (size_t i = 0; i < out.size(); ++i)
      if (out[i]) total += static_cast<double>(outputs_[i].bytes());
    return total;
  }

  std::vector<const void*> in;
  std::vector<void*> out;
  std::vector<uint64_t> constants;

 private:
  static Array filled(const TensorDesc& d, std::mt19937& random) {
    Array a = empty_array(d.dtype, d.dims);
    std::memset(a.data(), 0, a.bytes());
    std::uniform_real_distribution<double> number(-0.5, 0.5);
    for (int64_t i = 0; i < d.count; ++i) {
      if (d.dtype == DType::Float32)
        static_cast<float*>(a.data())[i] = static_cast<float>(number(random));
      if (d.dtype == DType::Float64) static_cast<double*>(a.data())[i] = number(random);
    }
    return a;
  }

  std::vector<Array> inputs_, outputs_;
};

using Make = std::function<Problem()>;

void report(benchmark::State& state, double seconds, double flops, double bytes, bool is_double) {
  const double peak = multiply_add_peak(isa_level()) * max_threads() / (is_double ? 2 : 1);
  const double bandwidth = memory_bandwidth();
  state.counters["GBps"] = bytes / seconds * 1e-9;
  state.counters["of_bandwidth"] = 100 * bytes / seconds / bandwidth;
  state.counters["triad_GBps"] = bandwidth * 1e-9;
  if (flops == 0 || peak == 0) return;
  state.counters["GFLOPS"] = flops / seconds * 1e-9;
  state.counters["of_peak"] = 100 * flops / seconds / peak;
  state.counters["peak_GFLOPS"] = peak * 1e-9;
}

/// Runs once; what this machine lacks for it is the word with which a benchmark is skipped.
template <class Run>
bool can(benchmark::State& state, Run run) {
  try {
    run();
    return true;
  } catch (const Error& e) {
    state.SkipWithError(std::string(e.what()).c_str());
    set_max_threads(0);
    return false;
  }
}

void bench_run(benchmark::State& state, const Make& make) {
  set_max_threads(static_cast<int>(state.range(0)));
  const Problem p = make();
  const Runner runner(p.plan());
  const Memory memory(p, runner.plan());
  auto run = [&] { runner.run(memory.in.data(), memory.out.data(), memory.constants.data()); };
  if (!can(state, run)) return;
  const auto start = std::chrono::steady_clock::now();
  for (auto _ : state) run();
  const std::chrono::duration<double> all = std::chrono::steady_clock::now() - start;
  report(state, all.count() / static_cast<double>(state.iterations()), product_flops(p),
         memory.bytes(), p.g.dtype(p.roots[0]) == DType::Float64);
  set_max_threads(0);
}

/// The same product by the BLAS that the engine would use.
template <class T>
void bench_blas(benchmark::State& state) {
  set_max_threads(static_cast<int>(state.range(0)));
  const int64_t n = state.range(1);
  std::vector<T> a(n * n, T(0.5)), b(n * n, T(0.25)), c(n * n);
  auto run = [&] { gemm(false, false, n, n, n, a.data(), b.data(), c.data()); };
  if (!can(state, run)) return;
  const auto start = std::chrono::steady_clock::now();
  for (auto _ : state) run();
  const std::chrono::duration<double> all = std::chrono::steady_clock::now() - start;
  const double cube = static_cast<double>(n * n) * static_cast<double>(n);
  report(state, all.count() / static_cast<double>(state.iterations()), 2 * cube,
         3.0 * sizeof(T) * static_cast<double>(n * n), sizeof(T) == 8);
  set_max_threads(0);
}

/// From nothing to something that can run: graph, differentiation, plan.
void bench_plan(benchmark::State& state, const Make& make) {
  size_t nodes = 0;
  for (auto _ : state) {
    const Problem p = make();
    const Runner runner(p.plan());
    nodes = runner.plan().node_count;
  }
  state.counters["nodes"] = static_cast<double>(nodes);
}

/// The part of that which is graph building and differentiation.
void bench_graph(benchmark::State& state, const Make& make) {
  for (auto _ : state) benchmark::DoNotOptimize(make().g.size());
}

void add(const std::string& name, const Make& make) {
  benchmark::RegisterBenchmark(("engine/" + name).c_str(), bench_run, make)
      ->ArgName("threads")
      ->Arg(1)
      ->Arg(2)
      ->UseRealTime()
      ->Unit(benchmark::kMicrosecond);
  benchmark::RegisterBenchmark(("plan/" + name).c_str(), bench_plan, make)
      ->Unit(benchmark::kMicrosecond);
  benchmark::RegisterBenchmark(("graph/" + name).c_str(), bench_graph, make)
      ->Unit(benchmark::kMicrosecond);
}

template <class T>
void add_blas(const char* name) {
  benchmark::RegisterBenchmark(name, bench_blas<T>)
      ->ArgNames({"threads", "n"})
      ->ArgsProduct({{1, 2}, {512, 1'024, 2'048}})
      ->UseRealTime()
      ->Unit(benchmark::kMicrosecond);
}

const bool registered = [] {
  for (int order : {1, 2}) {
    for (int64_t n : {1'000, 100'000, 10'000'000}) {
      add("derivative:" + std::to_string(order) + "/" + std::to_string(n),
          [=] { return elementwise(order, n); });
    }
  }
  for (DType dtype : {DType::Float32, DType::Float64}) {
    for (const Pinn& of :
         {Pinn{8, 20, 10'000, dtype}, Pinn{4, 64, 1'024, dtype}, Pinn{4, 128, 4'096, dtype}}) {
      add("pinn/" + of.text(), [=] { return pinn(of); });
    }
  }
  for (int64_t n : {512, 1'024, 2'048}) {
    add("product/float32/" + std::to_string(n), [=] { return product(DType::Float32, n); });
    add("product/float64/" + std::to_string(n), [=] { return product(DType::Float64, n); });
  }
  add_blas<float>("blas/float32");
  add_blas<double>("blas/float64");
  for (int64_t batch : {32, 128, 1'024}) {
    add("mlp/" + std::to_string(batch), [=] { return mlp(batch); });
  }
  return true;
}();

}  // namespace
}  // namespace gradcell::cpu
