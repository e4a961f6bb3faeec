// Runs a region by bands (bands.h).
#pragma once

#include "cpu/program/bands.h"
#include "cpu/program/region_run.h"

namespace gradcell::cpu {

/// Runs chunks of a region, one after the other, on one thread.
class BandRunner {
 public:
  BandRunner(const RegionRun& run, const RunState& s);
  /// Whether it can: what is read a second time must not have been written.
  static bool suits(const RegionRun& run, const RunState& s);

  /// Adds the time of each instruction up there, from now on; null: nobody measures.
  void measure(double* seconds) { seconds_ = seconds; }
  void chunk(int32_t c);

 private:
  /// Where a value's columns are: those of a line `pitch` elements behind those of the one before.
  struct Place {
    std::byte* at;
    int64_t pitch;
  };

  /// Lines from `line` on, columns of a part of them; returns how many lines there were.
  int64_t band(int64_t line, int64_t most, int64_t column, int64_t columns);
  /// Some columns of the band.
  void columns(int64_t from, int32_t count, int64_t column);
  void load(const RowLoad& l, int64_t from, int32_t count);
  void store(const RowStore& s, int64_t from, int32_t count, int64_t column);
  Place find(const RowLoad& l, int64_t element, int64_t& lines) const;
  std::byte* element(uint32_t value, int64_t line, int64_t column) const;

  const Region& r_;
  const TileProgram& p_;
  const Bands& b_;
  const RegionRun& run_;
  const RunState& s_;
  std::byte* scratch_;
  Place* places_;   ///< of each value in the band
  Place* sources_;  ///< of each load
  int64_t capacity_;
  double* seconds_ = nullptr;
  int64_t line_ = 0, lines_ = 0;  ///< the band's
};

}  // namespace gradcell::cpu
