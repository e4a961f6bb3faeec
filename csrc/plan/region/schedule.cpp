#include "plan/region/schedule.h"

#include <algorithm>

#include "plan/lists.h"

namespace gradcell {

namespace {

/// What must come before each instruction: makers of its operands; where it writes a value again,
/// the earlier writers and readers of it.
Lists dependencies(const Region& r) {
  struct Reading {
    int32_t reader, earlier;  ///< index of the reading before it, -1: none since the value was made
  };
  Lists before;
  before.reserve(r.program.size(), 3 * r.program.size());
  std::vector<int32_t> writer(r.values.size(), -1), latest(r.values.size(), -1);
  std::vector<Reading> readings;
  readings.reserve(3 * r.program.size());
  for (int32_t at = 0; at < narrow<int32_t>(r.program.size()); ++at) {
    const Instruction& i = r.program[at];
    for (int k = 0; k < i.operand_count; ++k) {
      if (i.operand[k].uniform) continue;
      const uint32_t v = i.operand[k].value;
      if (writer[v] >= 0) before.add(writer[v]);
      readings.push_back({at, latest[v]});
      latest[v] = narrow<int32_t>(readings.size()) - 1;
    }
    if (!accumulates(i)) {
      if (writer[i.dst] >= 0) before.add(writer[i.dst]);
      for (int32_t k = latest[i.dst]; k >= 0; k = readings[k].earlier)
        if (readings[k].reader != at) before.add(readings[k].reader);
      latest[i.dst] = -1;
      writer[i.dst] = at;
    }
    const auto list = before.open();
    std::ranges::sort(list);
    before.close(static_cast<size_t>(std::ranges::unique(list).begin() - list.begin()));
  }
  return before;
}

}  // namespace

std::vector<Instruction> depth_first(const Region& r, bool newest_first) {
  const Lists before = dependencies(r);
  const auto n = narrow<int32_t>(r.program.size());
  std::vector<uint8_t> needed(n, 0), done(n, 0);
  for (int32_t at = 0; at < n; ++at)
    for (int32_t b : before[at]) needed[b] = 1;
  std::vector<Instruction> out;
  out.reserve(n);
  std::vector<std::pair<int32_t, size_t>> stack;
  for (int32_t root = 0; root < n; ++root) {
    if (needed[root] || done[root]) continue;
    stack.emplace_back(root, 0);
    while (!stack.empty()) {
      auto& [at, next] = stack.back();
      if (const auto list = before[at]; next < list.size()) {
        const int32_t child = newest_first ? list[list.size() - ++next] : list[next++];
        if (!done[child]) stack.emplace_back(child, 0);
        continue;
      }
      if (!done[at]) {
        done[at] = 1;
        out.push_back(r.program[at]);
      }
      stack.pop_back();
    }
  }
  return out;
}

namespace {

class EarlyReleaser {
 public:
  explicit EarlyReleaser(const Region& r)
      : r_(r),
        missing_(r.program.size(), 0),
        done_(r.program.size(), 0),
        made_(r.values.size(), 0),
        readers_(r.values.size(),
                 [&](auto add) {
                   for (int32_t at = 0; at < size(); ++at)
                     for_each_operand(at, [&](uint32_t v) { add(v, at); });
                 }),
        unread_(r.values.size(), 0) {
    const Lists before = dependencies(r);
    after_ = Lists(before.size(), [&](auto add) {
      for (int32_t at = 0; at < size(); ++at)
        for (int32_t b : before[at]) add(b, at);
    });
    for (int32_t at = 0; at < size(); ++at) missing_[at] = narrow<int32_t>(before[at].size());
    for (size_t v = 0; v < readers_.size(); ++v) unread_[v] = narrow<int32_t>(readers_[v].size());
    out_.reserve(r.program.size());
    for (const RowStore& s : r.stores)
      if (!s.from.uniform) ++unread_[s.from.value];  // is kept to the end
  }

  std::vector<Instruction> run() {
    for (int32_t at = 0; at < size(); ++at) {
      if (!done_[at]) take(at);
      while (!candidates_.empty()) {
        const int32_t next = candidates_.back();
        candidates_.pop_back();
        if (!done_[next] && missing_[next] == 0 && releases(next)) take(next);
      }
    }
    return std::move(out_);
  }

 private:
  int32_t size() const { return narrow<int32_t>(r_.program.size()); }

  /// f(value) once for each value that the instruction reads.
  template <class F>
  void for_each_operand(int32_t at, F f) const {
    const Instruction& i = r_.program[at];
    for (int k = 0; k < i.operand_count; ++k) {
      const Operand& o = i.operand[k];
      const bool again = std::any_of(i.operand, i.operand + k, [&](const Operand& other) {
        return !other.uniform && other.value == o.value;
      });
      if (!o.uniform && !again) f(o.value);
    }
  }

  int64_t bytes(uint32_t v) const {
    return static_cast<int64_t>(r_.values[v].features) *
           static_cast<int64_t>(compute_size(r_.values[v].type));
  }

  /// Whether no more must be kept afterwards (and what the cache still holds is best used at once).
  bool releases(int32_t at) const {
    const Instruction& i = r_.program[at];
    if (accumulates(i)) return true;
    int64_t kept = made_[i.dst] ? 0 : bytes(i.dst);
    for_each_operand(at, [&](uint32_t v) {
      if (unread_[v] == 1) kept -= bytes(v);
    });
    return kept <= 0;
  }

  void take(int32_t at) {
    const Instruction& i = r_.program[at];
    done_[at] = 1;
    out_.push_back(i);
    if (!accumulates(i)) made_[i.dst] = 1;
    for_each_operand(at, [&](uint32_t v) {
      if (--unread_[v] != 1) return;
      const auto readers = readers_[v];
      candidates_.insert(candidates_.end(), readers.begin(), readers.end());
    });
    for (int32_t a : after_[at])
      if (--missing_[a] == 0) candidates_.push_back(a);
  }

  const Region& r_;
  Lists after_;                   ///< what each instruction must come before
  std::vector<int32_t> missing_;  ///< of what must come before each instruction
  std::vector<uint8_t> done_, made_;
  const Lists readers_;          ///< by value
  std::vector<int32_t> unread_;  ///< readers of each value that are still to come
  std::vector<int32_t> candidates_;
  std::vector<Instruction> out_;
};

}  // namespace

std::vector<Instruction> release_early(const Region& region) { return EarlyReleaser(region).run(); }

}  // namespace gradcell
