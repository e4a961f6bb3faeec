// Where a loop's body finds its inputs and leaves its outputs in each step, whatever memory it is.
//
// What is carried lies where it is kept for all steps; where what it was before each step is kept,
// there, a step on; else in two places of the loop's own that take turns. Only what none of these
// says is copied.
#pragma once

#include "plan/loop_plan.h"

namespace gradcell {

struct LoopPlaces {
  /// Where an output of the body that has memory of its own is written.
  struct Place {
    int kept = -1;     ///< the result that has it in all steps
    int before = -1;   ///< or else the one that has, in each step, what it was in the step before
    int carried = -1;  ///< or else in the loop's own memory, of what is carried
  };
  std::vector<Place> outputs;    ///< by output of the body
  std::vector<size_t> offsets;   ///< of what is carried: into the loop's own memory
  std::vector<uint8_t> follows;  ///< by what is kept: it is copied from another result, in the end
  size_t bytes = 0;              ///< of that memory
  bool copies = false;           ///< after steps, of what lies elsewhere

  /// Arrays in that memory begin at multiples of 64 bytes, with room for a vector behind each.
  /// (Near each other: a load waits for a store before it, if they are whole pages apart.)
  static constexpr size_t aligned(size_t bytes) { return (bytes + 128 + 63) / 64 * 64; }
  /// `together`: what one result has of another is copied after the last step, at once.
  LoopPlaces(const LoopFrame& loop, const PlanFrame& body, bool together);
  /// Whether an output of the body lies in that memory in all steps.
  bool is_own(const PlanFrame& body, size_t output) const;
};

/// The output whose memory one has.
inline size_t source_output(const PlanFrame& body, size_t output) {
  const int alias = body.outputs[output].alias_output;
  return alias < 0 ? output : static_cast<size_t>(alias);
}

/// One run. Arrays gives addresses, which bytes can be added to: input(i) and result(i) of the
/// loop, own() of its memory.
template <class Arrays>
class LoopSteps {
 public:
  using Address = decltype(std::declval<const Arrays&>().own());
  using Kind = LoopFrame::Input::Kind;

  LoopSteps(const LoopFrame& loop, const PlanFrame& body, const LoopPlaces& places, Arrays arrays)
      : loop_(loop), body_(body), places_(places), arrays_(arrays) {}

  /// Where a step reads and writes: the body's inputs and those outputs that have memory.
  template <class In, class Out>
  void bind(int64_t step, In* in, Out* out) const {
    for (size_t i = 0; i < loop_.inputs.size(); ++i) in[i] = read(i, step);
    for (size_t o = 0; o < body_.outputs.size(); ++o)
      if (body_.outputs[o].alias_input < 0 && body_.outputs[o].alias_output < 0)
        out[o] = written(o, step);
  }

  /// copy(bytes, from, to) for what a step keeps or carries and what lies elsewhere.
  template <class Copy>
  void copies(int64_t step, Copy copy) const {
    if (!places_.copies) return;
    for (size_t k = 0; k < loop_.kept.size(); ++k) {
      const LoopFrame::Kept& kept = loop_.kept[k];
      if (places_.follows[k]) continue;
      const Address from = made(kept.output, step), to = slot(kept.result, kept.output, step);
      if (from != to && bytes(kept.output) > 0) copy(bytes(kept.output), from, to);
    }
    for (size_t k = 0; k < loop_.carried.size(); ++k) {
      const size_t output = loop_.carried[k].output;
      if (is_carried(body_.outputs[output].alias_input) && bytes(output) > 0)
        copy(bytes(output), made(output, step), own(k, step));
    }
  }

  /// The same after the last step.
  template <class Copy>
  void finish(Copy copy) const {
    for (size_t k = 0; k < loop_.kept.size(); ++k)
      if (places_.follows[k]) follow(loop_.kept[k], copy);
    for (size_t k = 0; k < loop_.carried.size(); ++k) {
      const LoopFrame::Carried& c = loop_.carried[k];
      if (c.result >= 0 && bytes(c.output) > 0)
        copy(bytes(c.output), state(k, loop_.steps), arrays_.result(static_cast<size_t>(c.result)));
    }
  }

 private:
  int64_t time(int64_t step) const { return loop_.reverse ? loop_.steps - 1 - step : step; }
  size_t bytes(size_t output) const { return body_.outputs[output].desc.bytes(); }
  bool is_carried(int input) const {
    return input >= 0 && loop_.inputs[static_cast<size_t>(input)].kind == Kind::Carried;
  }
  const LoopFrame::Carried& carried_by(int input) const {
    return loop_.carried[loop_.inputs[static_cast<size_t>(input)].index];
  }
  Address slot(size_t result, size_t output, int64_t step) const {
    return arrays_.result(result) + static_cast<size_t>(time(step)) * bytes(output);
  }
  Address own(size_t carried, int64_t step) const {
    const size_t half = LoopPlaces::aligned(bytes(loop_.carried[carried].output));
    return arrays_.own() + places_.offsets[carried] + static_cast<size_t>(step & 1) * half;
  }

  Address written(size_t output, int64_t step) const {
    const LoopPlaces::Place& p = places_.outputs[output];
    if (p.kept >= 0) return slot(static_cast<size_t>(p.kept), output, step);
    if (p.before >= 0 && step + 1 < loop_.steps)
      return slot(static_cast<size_t>(p.before), output, step + 1);
    return own(static_cast<size_t>(p.carried), step);
  }

  Address read(size_t input, int64_t step) const {
    const LoopFrame::Input& in = loop_.inputs[input];
    if (in.kind == Kind::Carried) return state(in.index, step);
    const Address x = arrays_.input(in.index);
    return in.kind == Kind::Same
               ? x
               : x + static_cast<size_t>(time(step)) * body_.inputs[input].bytes();
  }

  /// Where a step's output is, whatever it shares its memory with.
  Address made(size_t output, int64_t step) const {
    const int input = body_.outputs[output].alias_input;
    return input >= 0 ? read(static_cast<size_t>(input), step)
                      : written(source_output(body_, output), step);
  }

  /// What is carried, before a step.
  Address state(size_t carried, int64_t step) const {
    const LoopFrame::Carried& c = loop_.carried[carried];
    if (step == 0) return arrays_.input(c.first);
    // What another one was: that is in its own memory, which is written again meanwhile.
    if (is_carried(body_.outputs[c.output].alias_input)) return own(carried, step - 1);
    return made(c.output, step - 1);
  }

  /// All that a result has of another one: the same, or what is carried before each step, which
  /// but for the first step is what it was after the one before.
  template <class Copy>
  void follow(const LoopFrame::Kept& kept, Copy copy) const {
    const size_t n = bytes(kept.output);
    if (n == 0 || loop_.steps == 0) return;
    const int input = body_.outputs[kept.output].alias_input;
    const size_t from = input < 0 ? kept.output : carried_by(input).output;
    const int other = places_.outputs[source_output(body_, from)].kept;
    const Address of = arrays_.result(static_cast<size_t>(other)), to = arrays_.result(kept.result);
    const auto steps = static_cast<size_t>(loop_.steps);
    if (input < 0) return copy(n * steps, of, to);
    copy(n, arrays_.input(carried_by(input).first), slot(kept.result, kept.output, 0));
    if (steps > 1)
      copy(n * (steps - 1), of + (loop_.reverse ? n : 0), to + (loop_.reverse ? 0 : n));
  }

  const LoopFrame& loop_;
  const PlanFrame& body_;
  const LoopPlaces& places_;
  const Arrays arrays_;
};

}  // namespace gradcell
