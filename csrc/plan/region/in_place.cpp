#include "plan/region/in_place.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace gradcell {

namespace {

/// By value of a region, the last instruction that reads it and the first that writes it.
struct Instructions {
  std::vector<int32_t> reads, writes;

  explicit Instructions(const Region& r) : reads(r.values.size(), -1), writes(r.values.size(), -1) {
    for (size_t at = 0; at < r.program.size(); ++at) {
      const Instruction& i = r.program[at];
      for (int k = 0; k < i.operand_count; ++k)
        if (!i.operand[k].uniform) reads[i.operand[k].value] = narrow<int32_t>(at);
      if (!accumulates(i) && writes[i.dst] < 0) writes[i.dst] = narrow<int32_t>(at);
    }
    for (const RowStore& s : r.stores)
      if (!s.from.uniform) reads[s.from.value] = INT32_MAX;
  }
  /// What is not written by an instruction goes to its place when all of them are done.
  int32_t written(const Region& r, const RowStore& s) const {
    const bool last = s.from.uniform || r.values[s.from.value].direct_out < 0;
    return last ? INT32_MAX : writes[s.from.value];
  }
};

}  // namespace

UpdatesInPlace::UpdatesInPlace(const Plan& plan)
    : written_(plan.outputs.size()), read_(plan.inputs.size()) {
  struct Reads {
    size_t until = 0;  // the last stage
    int there = 0;     // of them
    Time by_rows;      // if rows of it are what is read there
  };
  std::vector<Reads> reads(plan.inputs.size());
  auto read = [&](BufferId b, size_t until, Time by_rows = {}) {
    const Buffer& from = plan.buffers[b];
    if (from.place != Place::Input) return;
    Reads& r = reads[from.index];
    if (r.there > 0 && until < r.until) return;
    r.there = r.there > 0 && until == r.until ? r.there + 1 : 1;
    r.until = until, r.by_rows = by_rows;
  };
  const size_t stages = plan.stages.size();
  std::vector<size_t> end_of(static_cast<size_t>(plan.collectives), stages);
  for (size_t s = 0; s < stages; ++s)
    for (int32_t c : plan.stages[s].waits) end_of[static_cast<size_t>(c)] = s - 1;
  // The stage from which on nothing fails any more. Calls may: for an index, or for want of memory.
  size_t safe = 0;
  for (size_t s = 0; s < stages; ++s)
    for (const Call& c : plan.stages[s].calls) {
      // A collective reads, and may fail, until it has been waited for.
      const size_t end = c.sequence < 0 ? s : end_of[static_cast<size_t>(c.sequence)];
      for (BufferId b : c.inputs) read(b, end);
      safe = std::max(safe, end + 1);
    }
  std::map<std::tuple<size_t, size_t, int32_t, DType>, int32_t> numbers;
  for (size_t s = 0; s < stages; ++s)
    for (size_t k = 0; k < plan.stages[s].regions.size(); ++k) {
      const Region& r = plan.stages[s].regions[k];
      const Instructions at(r);
      auto rows = [&](int32_t features, DType dtype) {
        if (s < safe) return -1;
        const auto next = narrow<int32_t>(numbers.size());
        return numbers.try_emplace({s, k, features, dtype}, next).first->second;
      };
      for (const Uniform& u : r.uniforms)
        if (u.constant < 0) read(u.buffer, s);
      for (const PackedWeights& w : r.weights) read(w.buffer, s);
      for (const RowLoad& l : r.loads)
        if (l.viewed())
          read(l.buffer, s);
        else
          read(l.buffer, s, {rows(r.values[l.value].features, l.dtype), at.reads[l.value]});
      for (const RowStore& store : r.stores)
        if (const Buffer& to = plan.buffers[store.buffer]; to.place == Place::Output)
          written_[to.index] = {rows(store.features, store.dtype), at.written(r, store)};
    }
  for (size_t i = 0; i < reads.size(); ++i)
    if (reads[i].there == 1) read_[i] = reads[i].by_rows;
  for (const PlanOutput& o : plan.outputs)
    if (o.alias_input >= 0) read_[static_cast<size_t>(o.alias_input)] = {};
}

}  // namespace gradcell
