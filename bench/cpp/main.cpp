// The benchmark program: Google Benchmark's options, and at the end a table with a row for each
// kind of benchmark. --summary=FILE writes that table as JSON; --benchmark_out=FILE has every run.
// What a benchmark lacks on this machine is the word with which it is skipped; the others run.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "cpu/kernels/isa_level.h"
#include "cpu/products/blas.h"

namespace gradcell::cpu {
namespace {

/// What the runs of a kind have shown.
struct Kind {
  int skipped = 0;
  std::vector<double> seconds, of_peak, of_bandwidth;
};

double median(std::vector<double> x) {
  const auto middle = x.begin() + static_cast<std::ptrdiff_t>(x.size() / 2);
  std::nth_element(x.begin(), middle, x.end());
  return *middle;
}

/// The word of a run that was skipped, or null: under the library's names before and since 1.8.
template <class Run>
const std::string* skipped(const Run& run) {
  if constexpr (requires { run.skip_message; })
    return run.skip_message.empty() ? nullptr : &run.skip_message;
  else
    return run.error_occurred ? &run.error_message : nullptr;
}

/// Prints runs as they come, and adds them up.
class Reporter : public benchmark::ConsoleReporter {
 public:
  void ReportRuns(const std::vector<Run>& runs) override {
    std::vector<Run> done;
    for (const Run& run : runs) {
      const std::string name = run.benchmark_name();
      Kind& kind = kinds_[name.substr(0, name.find('/'))];
      if (const std::string* word = skipped(run)) {
        ++kind.skipped;
        GetOutputStream() << name << " is skipped: " << *word << std::endl;
        continue;
      }
      done.push_back(run);
      if (run.run_type != Run::RT_Iteration) continue;
      kind.seconds.push_back(run.real_accumulated_time / static_cast<double>(run.iterations));
      auto keep = [&](const char* counter, std::vector<double>& to) {
        if (auto it = run.counters.find(counter); it != run.counters.end())
          to.push_back(it->second);
      };
      keep("of_peak", kind.of_peak), keep("of_bandwidth", kind.of_bandwidth);
    }
    if (!done.empty()) ConsoleReporter::ReportRuns(done);
  }

  /// The table, and with a file its name the same as JSON. Returns whether that could be written.
  bool summarise(const char* file) const {
    std::printf(
        "\n| kind | run | skipped | microseconds, median | %% of peak | %% of bandwidth |\n");
    std::printf("|---|---|---|---|---|---|\n");
    std::string json;
    for (const auto& [name, k] : kinds_) {
      std::printf("| %s | %zu | %d |", name.c_str(), k.seconds.size(), k.skipped);
      json += std::string(json.empty() ? "" : ",\n") + "  {\"kind\": \"" + name +
              "\", \"run\": " + std::to_string(k.seconds.size()) +
              ", \"skipped\": " + std::to_string(k.skipped);
      auto cell = [&](const char* key, const std::vector<double>& all, double unit) {
        char number[32] = "";
        if (!all.empty()) std::snprintf(number, sizeof number, "%.4g", median(all) * unit);
        std::printf(" %s |", number);
        if (*number) json += std::string(", \"") + key + "\": " + number;
      };
      cell("microseconds", k.seconds, 1e6);
      cell("of_peak", k.of_peak, 1);
      cell("of_bandwidth", k.of_bandwidth, 1);
      std::printf("\n");
      json += "}";
    }
    if (!file) return true;
    std::ofstream out(file);
    out << "{\"level\": \"" << name(isa_level()) << "\", \"threads\": " << max_threads()
        << ", \"kinds\": [\n"
        << json << "\n]}\n";
    return bool(out.flush());
  }

 private:
  std::map<std::string, Kind> kinds_;
};

int run(int argc, char** argv) {
#ifdef GRADCELL_BENCH_BLAS
  set_blas_path(GRADCELL_BENCH_BLAS);
#endif
  const char* file = nullptr;
  constexpr const char* kSummary = "--summary=";
  auto is_summary = [&](char* option) {
    if (std::strncmp(option, kSummary, std::strlen(kSummary)) != 0) return false;
    file = option + std::strlen(kSummary);
    return true;
  };
  argc = static_cast<int>(std::remove_if(argv + 1, argv + argc, is_summary) - argv);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  Reporter reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);
  benchmark::Shutdown();
  if (reporter.summarise(file)) return 0;
  std::fprintf(stderr, "gradcell_bench: %s cannot be written\n", file);
  return 1;
}

}  // namespace
}  // namespace gradcell::cpu

int main(int argc, char** argv) { return gradcell::cpu::run(argc, argv); }
