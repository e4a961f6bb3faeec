// One run of a region: what its runners, by features and by lines, share.
#pragma once

#include "base/scratch.h"
#include "cpu/program/program.h"

namespace gradcell::cpu {

constexpr size_t rounded(size_t bytes) { return (bytes + 63) / 64 * 64; }

/// A thread's own memory, which the next caller on it gets again.
inline std::byte* worker_scratch(size_t bytes) {
  thread_local Scratch block;
  return block.get(bytes);
}

struct RegionRun {
  const Region* region;
  const TileProgram* program;
  std::byte* uniforms;
  std::byte* packed;
  std::byte* results;  // [chunks][result_bytes]
};

/// Whether there is memory for a vector behind what a step of a loop reads or writes, after the
/// first step.
enum class Room : uint8_t { None, Always, ButInTheLastStep };

struct RunState {
  const Plan& plan;
  void** buffers;
  const uint64_t* constants;
};

/// The dense results of a chunk's reductions.
inline std::byte* result(const RegionRun& run, int32_t chunk, size_t accumulator) {
  return run.results + static_cast<size_t>(chunk) * run.program->result_bytes +
         run.program->accumulators[accumulator].result;
}

}  // namespace gradcell::cpu
