// What runs of plans measure of themselves while somebody asks: how long each step and each
// instruction took, how much it computed and moved, on which thread and when.
//
// Off, a run looks at one flag.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cpu/program/program.h"

namespace gradcell::cpu {

/// What an op did in all runs of a plan.
struct ProfiledOp {
  std::string name;
  Location location;
  double operations = 0;  ///< multiplications and additions of products, in a run
  double elements = 0;    ///< of its result, in a run
  double bytes = 0;       ///< read from and written to tensors, in a run
  double seconds = 0;     ///< of the step's time, in all runs
};

/// A region, a call, or what a stage does before and after its regions.
struct ProfiledStep {
  std::string name;
  int stage = 0;
  int64_t rows = 0;    ///< of a region
  double seconds = 0;  ///< between its beginning and its end, in all runs
  std::vector<ProfiledOp> ops;
};

struct ProfiledSpan {
  int step, worker;
  double begin, end;  ///< seconds since the profile was begun
};

/// A plan, and what its runs measured.
class ProfiledPlan {
 public:
  using Clock = std::chrono::steady_clock;

  ProfiledPlan(const Plan& plan, Clock::time_point since);

  /// One chunk of a region: the time of each instruction, then of loads and stores together.
  void add_chunk(int stage, int region, int worker, Clock::time_point begin, Clock::time_point end,
                 std::span<const double> seconds);
  /// The stage's regions took so long together.
  void end_regions(int stage, double seconds);
  void add_call(int stage, int call, Clock::time_point begin, Clock::time_point end);
  /// What is around a stage's regions.
  void add_around(int stage, Clock::time_point begin, Clock::time_point end);
  void end_run(double seconds);

  int64_t runs() const { return runs_; }
  double seconds() const { return seconds_; }
  std::vector<ProfiledStep> steps() const;
  const std::vector<ProfiledSpan>& spans() const { return spans_; }

 private:
  double since(Clock::time_point t) const {
    return std::chrono::duration<double>(t - since_).count();
  }
  void add_span(size_t step, int worker, Clock::time_point begin, Clock::time_point end);

  Clock::time_point since_;
  mutable std::mutex mutex_;
  std::vector<ProfiledStep> steps_;
  std::vector<std::vector<double>> thread_seconds_;  ///< of a region's ops, since its last end
  std::vector<size_t> first_;                        ///< of a stage's steps: around, regions, calls
  std::vector<size_t> regions_;                      ///< how many a stage has
  std::vector<ProfiledSpan> spans_;
  int64_t runs_ = 0;
  double seconds_ = 0;
};

/// Begins measuring; what was measured before is forgotten.
void start_profile();
/// Ends it: the plans that ran meanwhile, in the order of their first runs.
std::vector<std::shared_ptr<ProfiledPlan>> stop_profile();
/// The plan's record while somebody measures; null otherwise.
std::shared_ptr<ProfiledPlan> profiled(uint64_t serial, const Plan& plan);

/// What the machine can do on all threads that may be used, measured: multiplications and additions
/// of float32 a second in products within tiles, bytes copied a second, read and written.
struct MachinePeaks {
  double operations, bytes;
};
MachinePeaks machine_peaks();

}  // namespace gradcell::cpu
