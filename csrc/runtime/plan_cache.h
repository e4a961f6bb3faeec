// Plans of recent structures, shared by all threads: the same graph again is not planned again.
#pragma once

#include "runtime/executable.h"

namespace gradcell {

/// The plan of `roots` by the graph's settings, made where none is kept.
std::shared_ptr<const Executable> executable_for(const Graph& g, std::span<const NodeId> live,
                                                 std::span<const NodeId> roots,
                                                 std::span<const NodeId> cuts);
/// Whether others get the interpreter's lock while a plan runs: for a shorter one, to give it up
/// and get it back is not worth it.
inline bool takes_long(const Executable& executable) { return executable.work() > 20000; }
/// Runs a plan, and counts that. Others run meanwhile, if it takes long.
std::vector<Array> run_plan(const Executable& executable,
                            std::span<const std::shared_ptr<Storage>> inputs,
                            std::span<const uint64_t> constants, std::span<const int> over);

struct PlanCacheInfo {
  size_t size, hits, misses, runs;
};
PlanCacheInfo plan_cache_info();

}  // namespace gradcell
