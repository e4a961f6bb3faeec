// What results and plans depend on besides the program: the device, how it computes, the dtype of
// what is made without one. A value that never changes: a trace takes the process's when it begins,
// its graph carries it to whoever makes plans, and plans are kept by it. So what is set meanwhile,
// by the function itself or in another thread, is for later traces; and who sets back what there
// was finds the plans of then.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/thread_pool.h"
#include "base/types.h"

namespace gradcell {

/// Whether narrow networks are kernels of their own.
enum class Tiles : uint8_t { WhereQuicker, Never, Always };

/// What the planner for GPUs weighs against each other, in bytes that a GPU moves in the same time.
///
/// A bad choice costs more than a coarse one, so the numbers stand between those of the GPUs there
/// are. Their memory moves 4.8 TB/s (H200), 2.0 (A100, 80 GB) or 0.32 (T4); their float32 units
/// take 33, 9.7 or 4.1 instructions a picosecond (67, 19.5 and 8.1 TFLOP/s of two each): 7, 5 and
/// 13 instructions a byte. A launch inside a graph costs 0.5 to 1.5 us from the end of one kernel
/// to the first bytes of the next, in which 2.4 to 7, 1 to 3 or 0.16 to 0.5 MB could have moved.
/// The plans change little at half or twice as much: docs/cuda-kernels.md.
struct Weights {
  double launch = 2 << 20;  ///< bytes
  double instructions = 8;  ///< a byte
  Tiles tiles = Tiles::WhereQuicker;
  bool groups = true;  ///< small products of equal sizes share a launch, where that is quicker
  bool loop_kernels = true;  ///< loops are kernels, where there is one and that is quicker
  bool operator==(const Weights&) const = default;
};

/// What plans for a GPU are made for.
struct Target {
  int capability = 90;              ///< sm_90
  size_t shared_bytes = 227 << 10;  ///< that a block can have
  bool cudnn = false;               ///< large convolutions are cuDNN's
  int multiprocessors = 132;
  /// Whether float32 products are computed in TF32: 10 bits of mantissa, several times as fast.
  bool tf32 = false;
  Weights weights{};
  bool operator==(const Target&) const = default;
};

struct Settings {
  int device = -1;                       ///< -1: the CPU; else that GPU
  DType default_float = DType::Float32;  ///< of what is made without a dtype
  /// Whether softmax(q k') v becomes attention's op: not for a GPU, which has no kernels for that.
  bool written_attention = true;
  /// Of the GPU in use its own properties stand in the place of these, which inspection plans for.
  Target target{};
  uint32_t number = 0;  ///< among those that there have been
  bool operator==(const Settings&) const = default;
};

/// Those that a process begins with.
inline constexpr Settings kFirstSettings{};

/// The process's now. Settings stay for good, and equal ones are one object.
const Settings& settings();
/// Those of that number.
const Settings& settings_of(size_t number);
/// What change() makes of others.
const Settings& settings_with(const Settings& before, FunctionRef<void(Settings&)> change);
/// From now on, for traces that begin, the process's are what change() makes of those before.
void change_settings(FunctionRef<void(Settings&)> change);

}  // namespace gradcell
