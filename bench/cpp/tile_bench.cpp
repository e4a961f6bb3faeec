// The tile kernels, each with its share of this core's multiply-add peak ("of_peak", in %),
// measured at the start by a loop that only multiplies and adds in registers. For instance:
//   gradcell_bench --benchmark_filter='matmul/v4/float'
#include <benchmark/benchmark.h>

#include <random>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "cpu/kernels/tile_kernels.h"
#include "machine.h"

namespace gradcell::cpu {
namespace {

template <class T>
std::vector<T> uniform(size_t n) {
  static std::mt19937 random{1};
  std::uniform_real_distribution<T> d(-1, 1);
  std::vector<T> v(n);
  for (T& x : v) x = d(random);
  return v;
}

template <class T>
T* aligned(std::vector<T>& v) {  // vectors below carry 64 spare bytes
  return reinterpret_cast<T*>((reinterpret_cast<uintptr_t>(v.data()) + 63) / 64 * 64);
}

void report(benchmark::State& state, double flops_each, IsaLevel level, int item) {
  using benchmark::Counter;
  const double total = flops_each * static_cast<double>(state.iterations());
  state.counters["GFLOPS"] = Counter(total * 1e-9, Counter::kIsRate);
  if (const double p = multiply_add_peak(level) * 4 / item; p > 0) {
    state.counters["of_peak"] = Counter(100 * total / p, Counter::kIsRate);
  }
}

struct Shape {
  int K, M, R;
  std::string text() const {
    return std::to_string(K) + "x" + std::to_string(M) + "/rows:" + std::to_string(R);
  }
};

template <class T>
void bench_matmul(benchmark::State& state, IsaLevel level, Shape s) {
  const auto& mm = tile_kernels(level).matmul<T>();
  auto w = uniform<T>(s.K * s.M), x = uniform<T>(s.K * s.R + 64), bias = uniform<T>(s.M);
  std::vector<T> packed(mm.packed_size(s.K, s.M) + 64), y(s.M * s.R + 64);
  mm.pack_weights(w.data(), s.M, 1, s.K, s.M, aligned(packed));
  for (auto _ : state) {
    mm.matmul(aligned(packed), aligned(x), s.R, aligned(y), s.R, s.K, s.M, s.R, bias.data(), false);
    benchmark::ClobberMemory();
  }
  report(state, 2.0 * s.K * s.M * s.R, level, sizeof(T));
}

template <class T>
void bench_weight_grad(benchmark::State& state, IsaLevel level, Shape s) {
  const auto& mm = tile_kernels(level).matmul<T>();
  auto x = uniform<T>(s.K * s.R + 64), dy = uniform<T>(s.M * s.R + 64);
  std::vector<T> acc(mm.grad_accumulator_size(s.K, s.M) + 64);
  mm.grad_zero(aligned(acc), s.K, s.M);
  for (auto _ : state) {
    mm.weight_grad(aligned(x), s.R, aligned(dy), s.R, s.K, s.M, s.R, s.R, aligned(acc));
    benchmark::ClobberMemory();
  }
  report(state, 2.0 * s.K * s.M * s.R, level, sizeof(T));
}

void bench_rows(benchmark::State& state, IsaLevel level, DType dtype, int F, bool in) {
  const auto& t = tile_kernels(level).transpose;
  const int R = 64;
  std::vector<double> rows(R * F + 8), tile(R * F + 8);
  for (auto _ : state) {
    if (in) {
      t.load_rows(rows.data(), dtype, F, R, F, aligned(tile), R, R);
    } else {
      t.store_rows(aligned(tile), R, dtype, R, F, rows.data(), F);
    }
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * R * F * item_size(dtype));
}

void bench_parallel_for(benchmark::State& state) {
  for (auto _ : state) parallel_for(static_cast<int>(state.range(0)), [](int, int) {});
}
BENCHMARK(bench_parallel_for)->Arg(2)->Arg(64)->Name("parallel_for");

template <class Bench, class... Args>
void add(std::string name, Bench bench, Args... args) {
  benchmark::RegisterBenchmark(name.c_str(), bench, args...)->MinTime(0.1);
}

template <class T>
void add_products(IsaLevel level, const std::string& at) {
  for (Shape s : {Shape{20, 20, 64},
                  {64, 64, 64},
                  {128, 128, 64},
                  {512, 512, 64},
                  {784, 512, 64},
                  {20, 20, 16},
                  {20, 20, 32},
                  {20, 20, 48},
                  {20, 20, 256},
                  {128, 128, 256},
                  {512, 512, 256},
                  {2, 20, 64},
                  {20, 1, 64},
                  {50, 50, 64},
                  {784, 10, 64}}) {
    add("matmul" + at + s.text(), bench_matmul<T>, level, s);
  }
  for (Shape s : {Shape{20, 20, 64},
                  {20, 20, 256},
                  {32, 32, 64},
                  {50, 50, 64},
                  {64, 64, 64},
                  {64, 64, 256},
                  {128, 128, 64},
                  {128, 128, 256},
                  {512, 512, 64},
                  {512, 512, 256},
                  {2, 20, 64},
                  {20, 1, 64},
                  {784, 10, 64},
                  {784, 512, 64}}) {
    add("weight_grad" + at + s.text(), bench_weight_grad<T>, level, s);
  }
}

const bool registered = [] {
  for (IsaLevel level : runnable_isa_levels()) {
    const std::string at = std::string("/").append(name(level)).append("/");
    add_products<float>(level, at + "float/");
    add_products<double>(level, at + "double/");
    for (DType t : {DType::Float32, DType::Float64, DType::Float16, DType::BFloat16, DType::Int8}) {
      for (int F : {1, 2, 20, 64, 784}) {
        const std::string what = at + std::string(name(t)) + "/" + std::to_string(F);
        add("load_rows" + what, bench_rows, level, t, F, true);
        add("store_rows" + what, bench_rows, level, t, F, false);
      }
    }
  }
  return true;
}();

}  // namespace
}  // namespace gradcell::cpu
