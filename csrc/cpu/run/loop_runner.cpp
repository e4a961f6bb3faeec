#include "cpu/run/loop_runner.h"

#include <algorithm>
#include <cstring>

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

/// Which of a body's buffers have room behind them after the first step: what is carried in the
/// loop's own memory, and rows of what is read or kept in all steps, behind which there is the next
/// row. (Behind the last one there is none, and what is written runs over into the next one, which
/// has to come later.)
std::vector<Room> with_room(const LoopPlan& plan, const LoopPlaces& places) {
  std::vector<Room> room;
  const Room inside = plan.reverse ? Room::None : Room::ButInTheLastStep;
  auto written = [&](size_t output) {
    const PlanOutput& made = plan.body.outputs[output];
    if (made.alias_input >= 0) return Room::None;
    if (places.is_own(plan.body, output)) return Room::Always;
    if (made.desc.count < kLanes) return Room::None;
    return places.outputs[source_output(plan.body, output)].kept >= 0 ? inside : Room::None;
  };
  for (const Buffer& b : plan.body.buffers) {
    Room& r = room.emplace_back(Room::None);
    if (b.place == Place::Output) r = written(b.index);
    if (b.place == Place::Input && plan.inputs[b.index].kind == Kind::Sliced &&
        plan.body.inputs[b.index].count >= kLanes)
      r = plan.reverse ? Room::Always : inside;
    if (b.place == Place::Input && plan.inputs[b.index].kind == Kind::Carried)
      r = written(plan.carried[plan.inputs[b.index].index].output);
  }
  return room;
}

/// What is carried in the loop's own memory, and not copied.
std::vector<Carry> carried(const LoopPlan& plan, const LoopPlaces& places) {
  std::vector<Carry> all;
  if (places.copies) return all;
  auto buffer = [&](Place place, size_t index) {
    return std::ranges::find_if(
               plan.body.buffers,
               [&](const Buffer& b) { return b.place == place && b.index == index; }) -
           plan.body.buffers.begin();
  };
  for (size_t i = 0; i < plan.inputs.size(); ++i) {
    if (plan.inputs[i].kind != Kind::Carried) continue;
    const size_t output = plan.carried[plan.inputs[i].index].output;
    if (places.is_own(plan.body, output))
      all.push_back({narrow<BufferId>(buffer(Place::Input, i)),
                     narrow<BufferId>(buffer(Place::Output, source_output(plan.body, output)))});
  }
  return all;
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

LoopRunner::LoopRunner(const LoopPlan& plan)
    : plan_(plan),
      places_(plan, plan.body, false),
      body_(plan.body, step_inputs(plan), with_room(plan, places_), carried(plan, places_),
            places_.copies) {}

double LoopRunner::work() const { return body_.work() * static_cast<double>(plan_.steps); }

void LoopRunner::run(const void* const* inputs, void* const* results) const {
  const auto in = [&](std::byte* memory) {
    return LoopSteps(plan_, plan_.body, places_, Arrays{inputs, results, memory});
  };
  body_.run_steps(
      plan_.steps, places_.bytes,
      [&](std::byte* memory, int64_t step, const void** read, void** written) {
        in(memory).bind(step, read, written);
      },
      [&](std::byte* memory, int64_t step, int64_t first, int64_t last, int64_t rows) {
        in(memory).copies(step, [&](size_t bytes, const std::byte* from, std::byte* to) {
          const size_t row = bytes / static_cast<size_t>(rows);
          const size_t at = static_cast<size_t>(first) * row;
          std::memcpy(to + at, from + at, static_cast<size_t>(last - first) * row);
        });
      },
      [&](std::byte* memory) {
        in(memory).finish([](size_t bytes, const std::byte* from, std::byte* to) {
          std::memcpy(to, from, bytes);
        });
      });
}

}  // namespace gradcell::cpu
