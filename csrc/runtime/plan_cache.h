// Plans of recent structures, shared by all threads: the same graph again is not planned again.
#pragma once

#include "runtime/executable.h"

namespace gradcell {

/// The plan of `roots` for the device in use, made where none is kept.
std::shared_ptr<const Executable> executable_for(const Graph& g, std::span<const NodeId> live,
                                                 std::span<const NodeId> roots,
                                                 std::span<const NodeId> cuts);
/// Runs a plan, and counts that.
std::vector<Array> run_plan(const Executable& executable, std::span<const Array> inputs,
                            std::span<const uint64_t> constants,
                            std::span<const Update> updates = {});

struct PlanCacheInfo {
  size_t size, hits, misses, runs;
};
PlanCacheInfo plan_cache_info();
void clear_plan_cache();

}  // namespace gradcell
