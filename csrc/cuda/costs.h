// What the planner weighs against each other, in bytes that a GPU moves in the same time.
//
// A plan is made without knowing the device, and a bad choice costs more than a coarse one: the
// numbers stand between those of the GPUs there are. Their memory moves 4.8 TB/s (H200), 2.0 (A100,
// 80 GB) or 0.32 (T4); their float32 units take 33, 9.7 or 4.1 instructions a picosecond (67, 19.5
// and 8.1 TFLOP/s of two each): 7, 5 and 13 instructions a byte. A launch inside a graph costs 0.5
// to 1.5 us from the end of one kernel to the first bytes of the next, in which 2.4 to 7, 1 to 3 or
// 0.16 to 0.5 MB could have moved. The plans change little at half or twice as much:
// docs/cuda-kernels.md.
#pragma once

#include <atomic>
#include <cstdint>

namespace gradcell::cuda {

/// Whether narrow networks are kernels of their own.
enum class Tiles : uint8_t { WhereQuicker, Never, Always };

struct Weights {
  double launch = 2 << 20;  ///< bytes
  double instructions = 8;  ///< a byte
  Tiles tiles = Tiles::WhereQuicker;
  bool groups = true;  ///< small products of equal sizes share a launch, where that is quicker
};

namespace costs {
inline std::atomic<double> launch{Weights{}.launch}, instructions{Weights{}.instructions};
inline std::atomic<Tiles> tiles{Weights{}.tiles};
inline std::atomic<bool> groups{Weights{}.groups};
}  // namespace costs

/// Of the plans that are made from now on.
inline Weights weights() {
  return {costs::launch, costs::instructions, costs::tiles, costs::groups};
}
inline void weigh(const Weights& w) {
  costs::launch = w.launch, costs::instructions = w.instructions, costs::tiles = w.tiles;
  costs::groups = w.groups;
}

}  // namespace gradcell::cuda
