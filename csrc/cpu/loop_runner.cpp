#include "cpu/loop_runner.h"

#include <cstring>
#include <mutex>

#include "cpu/region_run.h"

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

/// The output whose memory one has.
size_t source(const Plan& body, size_t output) {
  const int alias = body.outputs[output].alias_output;
  return alias < 0 ? output : static_cast<size_t>(alias);
}

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
    : plan_(plan), body_(plan.body, step_inputs(plan)), pool_(std::make_unique<Pool>()) {
  const Plan& body = body_.plan();
  places_.resize(body.outputs.size());
  for (const LoopPlan::Kept& k : plan.kept)
    if (Place& to = places_[source(body, k.output)]; to.kept < 0)
      to.kept = static_cast<int>(k.result);
  for (size_t k = 0; k < plan.carried.size(); ++k) {
    const size_t from = source(body, plan.carried[k].output);
    if (places_[from].carried < 0) places_[from].carried = static_cast<int>(k);
    offsets_.push_back(bytes_);
    bytes_ += 2 * rounded(body.outputs[plan.carried[k].output].desc.bytes());
  }
}

LoopRunner::~LoopRunner() = default;

double LoopRunner::work() const { return body_.work() * static_cast<double>(plan_.steps); }

/// One run: where everything lies in each step.
struct LoopRunner::Steps {
  const LoopRunner& loop;
  const void* const* inputs;
  void* const* results;
  std::byte* memory;

  const Plan& body() const { return loop.body_.plan(); }
  int64_t time(int64_t step) const {
    return loop.plan_.reverse ? loop.plan_.steps - 1 - step : step;
  }
  size_t bytes(size_t output) const { return body().outputs[output].desc.bytes(); }
  std::byte* slot(size_t result, size_t output, int64_t step) const {
    return static_cast<std::byte*>(results[result]) +
           static_cast<size_t>(time(step)) * bytes(output);
  }
  std::byte* own(size_t carried, int64_t step) const {
    const size_t half = rounded(bytes(loop.plan_.carried[carried].output));
    return memory + loop.offsets_[carried] + static_cast<size_t>(step & 1) * half;
  }

  /// Where an output of its own is written in a step.
  std::byte* written(size_t output, int64_t step) const {
    const Place& p = loop.places_[output];
    return p.kept >= 0 ? slot(static_cast<size_t>(p.kept), output, step)
                       : own(static_cast<size_t>(p.carried), step);
  }
  /// What a step reads as an input.
  const std::byte* read(size_t input, int64_t step) const {
    const LoopPlan::Input& in = loop.plan_.inputs[input];
    if (in.kind == Kind::Carried) return state(in.index, step);
    const auto* x = static_cast<const std::byte*>(inputs[in.index]);
    if (in.kind == Kind::Same) return x;
    return x + static_cast<size_t>(time(step)) * body().inputs[input].bytes();
  }
  /// What is carried, before a step.
  const std::byte* state(size_t carried, int64_t step) const {
    const LoopPlan::Carried& c = loop.plan_.carried[carried];
    if (step == 0) return static_cast<const std::byte*>(inputs[c.first]);
    const PlanOutput& o = body().outputs[c.output];
    if (o.alias_input < 0) return written(source(body(), c.output), step - 1);
    // What another one was: that is in its own memory, which is written again meanwhile.
    const auto input = static_cast<size_t>(o.alias_input);
    return loop.plan_.inputs[input].kind == Kind::Carried ? own(carried, step - 1)
                                                          : read(input, step - 1);
  }

  void bind(int64_t step, const void** in, void** out) const {
    for (size_t i = 0; i < loop.plan_.inputs.size(); ++i) in[i] = read(i, step);
    for (size_t o = 0; o < body().outputs.size(); ++o)
      if (body().outputs[o].alias_input < 0 && body().outputs[o].alias_output < 0)
        out[o] = written(o, step);
  }

  /// Rows `first` to `last` of `rows`: what is kept, or carried, and lies elsewhere.
  void copy(int64_t step, int64_t first, int64_t last, int64_t rows) const {
    auto part = [&](size_t output, const std::byte* from, std::byte* to) {
      if (from == to) return;
      const size_t row = bytes(output) / static_cast<size_t>(rows);
      const size_t at = static_cast<size_t>(first) * row;
      std::memcpy(to + at, from + at, static_cast<size_t>(last - first) * row);
    };
    auto made = [&](size_t output) -> const std::byte* {
      const int input = body().outputs[output].alias_input;
      return input >= 0 ? read(static_cast<size_t>(input), step)
                        : written(source(body(), output), step);
    };
    for (const LoopPlan::Kept& k : loop.plan_.kept)
      part(k.output, made(k.output), slot(k.result, k.output, step));
    for (size_t k = 0; k < loop.plan_.carried.size(); ++k) {
      const LoopPlan::Carried& c = loop.plan_.carried[k];
      const int input = body().outputs[c.output].alias_input;
      if (input >= 0 && loop.plan_.inputs[static_cast<size_t>(input)].kind == Kind::Carried)
        part(c.output, read(static_cast<size_t>(input), step), own(k, step));
    }
  }
};

void LoopRunner::run(const void* const* inputs, void* const* results) const {
  struct Lease {
    Pool& pool;
    std::unique_ptr<Scratch> scratch = pool.take();
    ~Lease() { pool.give(std::move(scratch)); }
  } lease{*pool_};
  const Steps steps{*this, inputs, results, lease.scratch->get(std::max<size_t>(bytes_, 64))};
  body_.run_steps(
      plan_.steps, [&](int64_t step, const void** in, void** out) { steps.bind(step, in, out); },
      [&](int64_t step, int64_t first, int64_t last, int64_t rows) {
        steps.copy(step, first, last, rows);
      });
  for (size_t k = 0; k < plan_.carried.size(); ++k)
    if (const LoopPlan::Carried& c = plan_.carried[k]; c.result >= 0)
      std::memcpy(results[c.result], steps.state(k, plan_.steps), steps.bytes(c.output));
}

}  // namespace gradcell::cpu
