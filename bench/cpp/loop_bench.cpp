// The elementwise loops, one for each row of the op table, floating type and set of uniform
// operands, on a tile that stays in the first-level cache; "ns" is for one element. For instance:
//   GRADCELL_ISA=v3 gradcell_bench --benchmark_filter='loop/(Pow|Mod)'
// A letter an operand: v has a value for each row, u one for all.
#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "cpu/kernels/kernels.h"

namespace gradcell::cpu {
namespace {

constexpr int32_t kRows = 1024;

template <class T>
void bench_loop(benchmark::State& state, Loop loop, unsigned operands, unsigned uniform) {
  std::vector<T> in[3], out(2 * kRows);  // bools and integers are no larger
  LoopArgs args{};
  args.d = out.data(), args.features = 1, args.rows = kRows, args.pitch = kRows;
  for (unsigned k = 0; k < operands; ++k) {
    for (int32_t i = 0; i < kRows; ++i) in[k].push_back(T(0.1) + T(0.8) * T(i) / T(kRows) + T(k));
    args.p[k] = in[k].data(), args.s[k] = uniform >> k & 1 ? 0 : kRows;
  }
  for (auto _ : state) {
    loop(args);
    benchmark::ClobberMemory();
  }
  using benchmark::Counter;
  state.counters["ns"] = Counter(1e-9 * kRows * static_cast<double>(state.iterations()),
                                 Counter::kIsRate | Counter::kInvert);
}

void register_row(const char* name, Op op, unsigned operands) {
  for (unsigned uniform = 0; uniform < (1u << operands) - 1; ++uniform) {
    std::string kinds;
    for (unsigned k = 0; k < operands; ++k) kinds += uniform >> k & 1 ? 'u' : 'v';
    const auto loop_of = [&](Compute type) { return kernels().elementwise(op, type, uniform); };
    const auto add = [&](const char* type, Loop loop, auto bench) {
      const auto id = std::string("loop/") + name + "/" + type + "/" + kinds;
      benchmark::RegisterBenchmark(id.c_str(), bench, loop, operands, uniform);
    };
    if (!loop_of(Compute::F32)) {  // of truth values, which are integers
      add("int", loop_of(Compute::I32), bench_loop<int32_t>);
      continue;
    }
    add("float", loop_of(Compute::F32), bench_loop<float>);
    add("double", loop_of(Compute::F64), bench_loop<double>);
  }
}

const bool registered = [] {
#define UNARY(Name, ...) register_row(#Name, Op::Name, 1);
#define BINARY(Name, ...) register_row(#Name, Op::Name, 2);
#define TERNARY(Name, ...) register_row(#Name, Op::Name, 3);
#include "ir/rows.h"
  return true;
}();

}  // namespace
}  // namespace gradcell::cpu
