// The common part of the kernels of regions: phases, the loops of a thread over its elements, and
// operands. How threads share the features of values is for each kind of kernel to say.
#pragma once

#include <map>
#include <set>

#include "cuda/tiles/feature_maps.h"
#include "cuda/tiles/phases.h"
#include "cuda/write/writer.h"

namespace gradcell::cuda {

/// In C: what sums are taken in, and how two are combined.
const char* sum_type(bool floating);
std::string reduction(Combine how, const std::string& type);
/// What a map has for feature f, as an expression.
std::string mapped(const Map& map, const std::string& f);

class RegionWriter : protected Writer {
 protected:
  RegionWriter(const WriterInputs& in, int32_t stage, const Region& r, const Phases& p)
      : Writer(in, stage), r_(r), p_(p) {}

  // How threads share values ---------------------------------------------------------------------

  /// What a phase begins with: y is who a thread is, `mine` whether it is nobody else.
  virtual std::string turns() const = 0;
  /// How many elements a thread has of a value, and which the j-th is: f and x, its feature and its
  /// row of those in the tile; `own` says whether there is such a one.
  virtual int32_t chunk(int32_t features) const = 0;
  virtual std::string place_of_thread(int32_t features) const = 0;
  /// An element of a value that is in shared memory.
  virtual std::string in_tile(uint32_t v, const std::string& feature,
                              const std::string& row) const = 0;
  /// The pointer to what uniforms, loads and weights are read from, or to what is stored.
  virtual std::string source(BufferId b) { return reads(b); }
  virtual std::string target(BufferId b) { return writes(b); }

  // Phases ---------------------------------------------------------------------------------------

  /// All phases, with barriers between them.
  std::string write_phases();
  /// A statement for each element of a thread; such for equally many features are one loop.
  void each(int32_t features, const std::string& statement);
  /// A statement of the thread's.
  void plain(const std::string& statement);
  void close();
  /// What a thread does on its own, in turns, with the values that it has in registers.
  std::string in_turns(const std::string& before);

  /// A value in registers: it is there, or about to be written.
  std::string in_registers(uint32_t v);
  /// A value of this thread, in registers.
  std::string own(uint32_t v);
  /// Feature `f`, an expression, of what an instruction for so many features reads.
  std::string element(const Operand& o, int32_t features, const std::string& f);
  /// The thread's j-th.
  std::string element(const Operand& o, int32_t features);

  // Items ----------------------------------------------------------------------------------------

  virtual void load(const RowLoad& l);
  virtual void store(const RowStore& s);
  virtual void compute(uint32_t at);
  virtual void collect(uint32_t) { fail_without(); }
  virtual void carry(uint32_t) { fail_without(); }
  virtual void multiply(const Instruction&) { fail_without(); }
  virtual void reduce_rows(const Instruction&) { fail_without(); }
  virtual void add_outer(const Instruction&) { fail_without(); }
  /// Whether other threads make parts of an instruction's result, which is collected later.
  virtual bool has_parts(uint32_t) const { return false; }
  /// Whether a value may be written with no barrier after a phase that reads it.
  virtual bool changes_elsewhere(uint32_t) const { return false; }
  /// What a phase begins with, and what comes behind what threads do on their own.
  virtual std::string before_phase() { return {}; }
  virtual std::string after_phase() { return {}; }

  void assign(const Instruction& i, const std::string& value) {
    each(i.features, in_registers(i.dst) + "[j] = " + value + ";");
  }
  void reduce_features(const Instruction& i);
  /// A feature of what a FeatureReduce takes, for the k-th of its terms.
  std::string term(const Instruction& i);
  const Map& map(int32_t index) const { return r_.maps[static_cast<size_t>(index)]; }
  static const char* name_of(Compute c) { return type_name(c); }

  const Region& r_;
  const Phases& p_;

 private:
  [[noreturn]] static void fail_without() {
    fail(ErrorKind::Runtime, "planning: no such instruction in this kernel");
  }
  std::string write_phase(int32_t phase, size_t& at);
  int64_t written_by(const TileItem& item) const;
  void write(const TileItem& item);
  void scatter(const Instruction& i);
  static std::string along(const Operand& o, const std::string& f);
  std::string uniform(const Operand& o, int32_t features, const std::string& f);

  std::string phase_text_, loop_;
  int32_t loop_features_ = 0;
  std::vector<uint32_t> declared_;
  std::set<uint32_t> known_values_;  ///< that are in registers
  std::set<uint32_t> written_;       ///< so far
  std::set<uint32_t> changed_;       ///< in this phase
};

}  // namespace gradcell::cuda
