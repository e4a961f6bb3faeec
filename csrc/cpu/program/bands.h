// Regions of one feature a row that read views of what is stored. A view goes on in lines, along
// which it advances by one element or stays at one. A band is some lines: what loops take for
// features, so that they read views where they lie.
#pragma once

#include <optional>

#include "cpu/kernels/kernels.h"

namespace gradcell::cpu {

struct TileProgram;

struct Bands {
  int64_t length;  ///< of a line; its rows are a multiple of it
  int64_t piece;   ///< columns of a band: all of a line, or one of the parts that it has
  int64_t height;  ///< lines of a band, at most
  std::vector<Loop> loops;
  /// Where a value's elements are.
  enum class Kind : uint8_t {
    Made,     ///< in scratch
    Copied,   ///< of a load, in scratch
    Loaded,   ///< in the buffer that is loaded, which lies as rows do
    Stored,   ///< in the buffer that it is stored to
    Viewed,   ///< where a view reads them
    Repeated  ///< one for a line, where a view reads it
  };
  std::vector<Kind> kinds;

  int64_t pieces() const { return (length + piece - 1) / piece; }
  /// The columns that a band of whole vectors leaves are taken with some before them, a second
  /// time.
  bool overlaps() const { return length % kLanes != 0; }
};

/// What a region needs to run by bands; none: it does not, or has no view.
std::optional<Bands> find_bands(const Region& r, const TileProgram& p);

}  // namespace gradcell::cpu
