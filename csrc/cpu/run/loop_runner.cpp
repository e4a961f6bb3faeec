#include "cpu/run/loop_runner.h"

#include <cstring>
#include <mutex>

#include "cpu/program/region_run.h"

namespace gradcell::cpu {

namespace {

using Kind = LoopPlan::Input::Kind;

/// Which of a body's inputs lie elsewhere in each step, and which are carried.
std::vector<StepInput> step_inputs(const LoopPlan& plan) {
  std::vector<StepInput> inputs;
  for (const LoopPlan::Input& in : plan.inputs)
    inputs.push_back(in.kind == Kind::Carried  ? StepInput::Carried
                     : in.kind == Kind::Sliced ? StepInput::Sliced
                                               : StepInput::Same);
  return inputs;
}

/// Which of a body's buffers have room behind them after the first step.
std::vector<uint8_t> with_room(const LoopPlan& plan, const LoopPlaces& places) {
  std::vector<uint8_t> room;
  for (const Buffer& b : plan.body.buffers) {
    const bool carried = b.place == Place::Input && plan.inputs[b.index].kind == Kind::Carried;
    room.push_back(carried
                       ? places.is_own(plan.body, plan.carried[plan.inputs[b.index].index].output)
                       : b.place == Place::Output && places.is_own(plan.body, b.index));
  }
  return room;
}

/// The arrays of one run.
struct Arrays {
  const void* const* inputs;
  void* const* results;
  std::byte* memory;

  std::byte* input(size_t i) const {  // that nobody writes to
    return static_cast<std::byte*>(const_cast<void*>(inputs[i]));
  }
  std::byte* result(size_t i) const { return static_cast<std::byte*>(results[i]); }
  std::byte* own() const { return memory; }
};

}  // namespace

/// The memory of what is carried, of one run.
struct LoopRunner::Pool {
  std::mutex mutex;
  std::vector<std::unique_ptr<Scratch>> idle;

  std::unique_ptr<Scratch> take() {
    std::lock_guard lock(mutex);
    if (idle.empty()) return std::make_unique<Scratch>();
    auto scratch = std::move(idle.back());
    idle.pop_back();
    return scratch;
  }
  void give(std::unique_ptr<Scratch> scratch) {
    std::lock_guard lock(mutex);
    idle.push_back(std::move(scratch));
  }
};

LoopRunner::LoopRunner(const LoopPlan& plan)
    : plan_(plan),
      places_(plan, plan.body, false),
      body_(plan.body, step_inputs(plan), with_room(plan, places_)),
      pool_(std::make_unique<Pool>()) {}

LoopRunner::~LoopRunner() = default;

double LoopRunner::work() const { return body_.work() * static_cast<double>(plan_.steps); }

void LoopRunner::run(const void* const* inputs, void* const* results) const {
  struct Lease {
    Pool& pool;
    std::unique_ptr<Scratch> scratch = pool.take();
    ~Lease() { pool.give(std::move(scratch)); }
  } lease{*pool_};
  std::byte* memory = lease.scratch->get(std::max<size_t>(places_.bytes, 64));
  const LoopSteps steps(plan_, plan_.body, places_, Arrays{inputs, results, memory});
  body_.run_steps(
      plan_.steps, [&](int64_t step, const void** in, void** out) { steps.bind(step, in, out); },
      [&](int64_t step, int64_t first, int64_t last, int64_t rows) {
        steps.copies(step, [&](size_t bytes, const std::byte* from, std::byte* to) {
          const size_t row = bytes / static_cast<size_t>(rows);
          const size_t at = static_cast<size_t>(first) * row;
          std::memcpy(to + at, from + at, static_cast<size_t>(last - first) * row);
        });
      });
  steps.finish(
      [](size_t bytes, const std::byte* from, std::byte* to) { std::memcpy(to, from, bytes); });
}

}  // namespace gradcell::cpu
