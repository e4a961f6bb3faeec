#include "plan/schedule.h"

#include <algorithm>

namespace gradcell {

namespace {

using Dependencies = std::vector<std::vector<int32_t>>;

/// What must come before each instruction: makers of its operands; where it writes a value again,
/// the earlier writers and readers of it; for accumulators, their earlier terms (sums keep order).
Dependencies dependencies(const Region& r) {
  Dependencies before(r.program.size());
  std::vector<int32_t> writer(r.values.size(), -1), term(r.accumulators.size(), -1);
  std::vector<std::vector<int32_t>> readers(r.values.size());
  for (int32_t at = 0; at < static_cast<int32_t>(r.program.size()); ++at) {
    const Instruction& i = r.program[at];
    auto& need = before[at];
    for (int k = 0; k < i.operand_count; ++k) {
      if (i.operand[k].uniform) continue;
      uint32_t v = i.operand[k].value;
      if (writer[v] >= 0) need.push_back(writer[v]);
      readers[v].push_back(at);
    }
    if (accumulates(i)) {
      if (term[i.dst] >= 0) need.push_back(term[i.dst]);
      term[i.dst] = at;
      continue;
    }
    if (writer[i.dst] >= 0) need.push_back(writer[i.dst]);
    for (int32_t reader : readers[i.dst])
      if (reader != at) need.push_back(reader);
    readers[i.dst].clear();
    writer[i.dst] = at;
  }
  return before;
}

}  // namespace

std::vector<Instruction> depth_first(const Region& r, bool newest_first) {
  Dependencies before = dependencies(r);
  auto n = static_cast<int32_t>(r.program.size());
  std::vector<uint8_t> needed(n, 0), done(n, 0);
  for (auto& list : before) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
    if (newest_first) std::reverse(list.begin(), list.end());
    for (int32_t b : list) needed[b] = 1;
  }
  std::vector<Instruction> out;
  out.reserve(n);
  std::vector<std::pair<int32_t, size_t>> stack;
  for (int32_t root = 0; root < n; ++root) {
    if (needed[root] || done[root]) continue;
    stack.emplace_back(root, 0);
    while (!stack.empty()) {
      auto& [at, next] = stack.back();
      if (next < before[at].size()) {
        int32_t child = before[at][next++];
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

}  // namespace gradcell
