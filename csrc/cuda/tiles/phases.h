// In which order and phases a block of threads takes some rows through a region, and which values
// are in shared memory meanwhile.
//
// Threads share the features of each value. Holds: what an instruction reads of another thread's
// features has been written to shared memory in an earlier phase, and between phases all threads of
// the block wait for each other. A value that no other thread reads, and no later phase, is in
// registers alone.
#pragma once

#include <span>

#include "plan/plan.h"

namespace gradcell::cuda {

struct TileItem {
  enum class Kind : uint8_t {
    Load,
    Compute,
    Collect,  ///< of an instruction whose parts other threads made: its result
    Store,
    Carry,  ///< what the next step finds
  } kind;
  uint32_t index;  ///< of the region's loads, instructions or stores, or of what is carried
  int32_t phase = 0;
};

/// What comes to a region in the steps of a loop, and what it leaves there.
struct StepsOfRegion {
  struct Carried {
    uint32_t value;  ///< as a step finds it
    Operand next;
  };
  std::vector<Carried> carried;
  std::vector<size_t> parts;  ///< by instruction: bytes a row of parts that it makes; 0: none
};

struct Phases {
  std::vector<TileItem> items;
  std::vector<uint8_t> shared;  ///< by value: is in shared memory
  std::vector<size_t> place;    ///< of shared ones, in bytes of a row
  std::vector<size_t> parts;    ///< the same of parts, by instruction
  size_t row_bytes = 0;         ///< shared memory for a row
  bool meets = false;           ///< whether threads read of each other
  bool meets_last = false;      ///< whether what is carried is read so in the last phase
};

/// Whether an instruction for so many features reads those of its own thread through an operand.
bool reads_own(const Region& r, const Operand& o, int32_t features);

/// Of a region that runs once; or again and again, where what is carried has a place of its own.
Phases find_phases(const Region& r, const StepsOfRegion& steps = {});

}  // namespace gradcell::cuda
