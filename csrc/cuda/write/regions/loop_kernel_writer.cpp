#include "cuda/write/regions/loop_kernel_writer.h"

#include <algorithm>

#include "cuda/tiles/tile_products.h"
#include "cuda/write/regions/region_writer.h"
#include "plan/costs.h"

namespace gradcell::cuda {

namespace {

using From = LoopFrame::Input::Kind;

class LoopKernelWriter : RegionWriter {
 public:
  LoopKernelWriter(const WriterInputs& in, int32_t stage, const LoopKernel& x,
                   const LoopFrame& loop, std::span<const BufferId> reads,
                   std::span<const BufferId> writes)
      : RegionWriter(in, stage, x.region, x.phases),
        x_(x),
        loop_(loop),
        loop_reads_(reads),
        loop_writes_(writes) {
    rows_ = r_.rows;
    body_.indent = "          ";
  }

  Written run() {
    const std::string& rows = row_count_ = size(rows_);
    const std::string steps = size(loop_.steps);
    const std::string weights = hold_weights(), first = begin(), fetch = fetch_next(),
                      phases = write_phases(), last = finish();
    const std::string meet = x_.phases.meets ? "      __syncthreads();\n" : "";
    const std::string time = loop_.reverse ? str(steps, " - 1 - s") : "s";
    std::string text = x_.keeps() ? "  GC_NEEDS_WARPS();\n" : "";
    text +=
        weights + str("  for (gc_index r0 = blockIdx.x * ", x_.rows, "; r0 < ", rows,
                      "; r0 += gridDim.x * ", x_.rows, ") {\n", x_.phases.meets_last ? meet : "");
    text += "    {\n      const gc_long time = " +
            (loop_.reverse ? str(steps, " - 1") : std::string("0")) +
            ";\n      const int now = 0, next = 0;\n" + pointers_ + first +
            "    }\n    for (gc_index s = 0; s < " + steps +
            "; ++s) {\n      const gc_long time = " + time +
            ";\n      const int now = (int)(s & 1), next = 1 - now;\n" + pointers_ + meet + fetch +
            phases + "    }\n";
    if (!last.empty())
      text += "    {\n      const int now = (int)(" + steps + " & 1);\n" + last + "    }\n";
    text += "  }\n";
    step_.block_x = narrow<uint32_t>(x_.threads);
    step_.grid = narrow<uint32_t>((rows_ + x_.rows - 1) / x_.rows);
    step_.shared_bytes = x_.shared_bytes;
    step_.tile_cycles = x_.cycles - kLaunchCycles, step_.tile_rounds = loop_.steps;
    count_bytes();
    step_.flops *= loop_.steps, step_.instructions *= loop_.steps;
    return written(text, "loop", step_.block_x);
  }

 private:
  // Threads --------------------------------------------------------------------------------------

  int32_t all(int32_t features) const { return features * x_.rows; }

  std::string turns() const override {
    return str("      GC_ALL_TURNS(", x_.threads, ") {\n        const int y = GC_THREAD(",
               x_.threads, ");\n        const bool mine = GC_THREAD_MINE(", x_.threads, ");\n");
  }

  int32_t chunk(int32_t features) const override {
    return (all(features) + x_.threads - 1) / x_.threads;
  }

  std::string place_of_thread(int32_t features) const override {
    const int32_t n = all(features);
    const bool whole = n % x_.threads == 0;
    const std::string e = chunk(features) == 1 ? "y" : str("y + j * ", x_.threads);
    std::string text =
        str("          const int e = ", whole ? e : str("gc_feature(", e, ", ", n, ")"),
            ";\n          const bool own = mine", whole ? "" : str(" && ", e, " < ", n), ";\n");
    text += str("          const int f = ",
                features == 1  ? "0"
                : x_.rows == 1 ? "e"
                               : str("e % ", features),
                ", x = ",
                x_.rows == 1    ? "0"
                : features == 1 ? "e"
                                : str("e / ", features),
                ";\n");
    const bool even = r_.rows % x_.rows == 0;
    return text + str("          const bool live = ", even ? "true" : "r0 + x < " + row_count_,
                      ";\n          const gc_index r = ",
                      even ? "r0 + x" : str("live ? r0 + x : ", row_count_, " - 1"), ";\n");
  }

  const TileValue& value(uint32_t v) const { return r_.values[v]; }

  /// Where a value begins, and that of a step: `when` says which.
  std::string pointer(uint32_t v, const char* when = "now") const {
    const char* type = name_of(value(v).type);
    for (size_t k = 0; k < x_.steps.carried.size(); ++k)
      if (x_.steps.carried[k].value == v)
        return twice(type, narrow<int64_t>(x_.carried[k]), all(value(v).features),
                     compute_size(value(v).type), when);
    return str("gc_in_tile<", type, ">(",
               x_.values_at + x_.phases.place[v] * static_cast<size_t>(x_.rows) +
                   static_cast<size_t>(value(v).head) * compute_size(value(v).type),
               ")");
  }

  static std::string twice(const char* type, int64_t place, int32_t elements, size_t item,
                           const char* when) {
    const size_t half = (static_cast<size_t>(elements) * item + 15) / 16 * 16;
    return str("gc_in_tile<", type, ">(", place, " + ", when, " * ", half, ")");
  }

  std::string in_tile(uint32_t v, const std::string& feature,
                      const std::string& row) const override {
    return pointer(v) + "[" + place(v, feature, row) + "]";
  }
  std::string place(uint32_t v, const std::string& feature, const std::string& row) const {
    if (x_.rows == 1) return feature;
    return value(v).features == 1 ? row : str(row, " * ", value(v).features, " + ", feature);
  }

  // Memory ---------------------------------------------------------------------------------------

  /// The pointer to an input of the body: of what is sliced, to that of the step.
  std::string source(BufferId input) override {
    const LoopFrame::Input& from = loop_.inputs[input];
    const size_t of = from.kind == From::Carried ? loop_.carried[from.index].first : from.index;
    const char* type = stored_type(x_.inputs[input].dtype);
    const std::string name = buffer(loop_reads_[of], type, false, str("x", of));
    if (from.kind != From::Sliced) return name;
    const std::string here = str("p", input);
    if (known_pointers_.insert(here).second) {
      const std::string count = size(x_.inputs[input].count);
      pointers_ +=
          str("      const ", type, "* const ", here, " = ", name, " + time * ", count, ";\n");
    }
    return here;
  }

  std::string target(BufferId kept) override {
    const RowStore& s = r_.stores[kept];
    const char* type = stored_type(s.dtype);
    const size_t result = loop_.kept[kept].result;
    const std::string name = buffer(loop_writes_[result], type, true, str("q", result));
    const std::string here = str("o", kept);
    if (known_pointers_.insert(here).second)
      pointers_ += str("      ", type, "* const ", here, " = ", name, " + time * ",
                       size(rows_ * s.features), ";\n");
    return here;
  }

  /// What the steps read once and write.
  void count_bytes() {
    for (size_t i = 0; i < x_.inputs.size(); ++i) {
      const bool sliced = loop_.inputs[i].kind == From::Sliced;
      step_.bytes_read += x_.inputs[i].bytes() * (sliced ? static_cast<size_t>(loop_.steps) : 1);
    }
    for (const RowStore& s : r_.stores)
      step_.bytes_written +=
          static_cast<size_t>(loop_.steps * rows_ * s.features) * item_size(s.dtype);
    for (size_t k = 0; k < loop_.carried.size(); ++k)
      if (loop_.carried[k].result >= 0)
        step_.bytes_written +=
            static_cast<size_t>(rows_ * features_of(k)) * item_size(x_.carried_types[k]);
  }

  // Before and after the steps -------------------------------------------------------------------

  int32_t features_of(size_t carried) const {
    return value(x_.steps.carried[carried].value).features;
  }

  std::string in_shared_of(size_t w) const {
    return str("gc_in_tile<", name_of(r_.weights[w].type), ">(", x_.held[w].place, ")");
  }
  /// How a product's matrix lies among threads, for the prelude's functions.
  std::string columns_of(const Instruction& i, size_t at) const {
    return str(i.inner, ", ", i.features, ", ", x_.parts[at], ", ", x_.threads, ", ");
  }

  std::string hold_weights() {
    std::string declared;
    std::set<uint32_t> done;
    for (size_t at = 0; at < r_.program.size(); ++at) {
      const Instruction& i = r_.program[at];
      if (i.kind != TileOp::Product || !done.insert(i.weights).second) continue;
      const PackedWeights& w = r_.weights[i.weights];
      const int32_t kept = x_.held[i.weights].kept;
      const std::string type = name_of(w.type);
      declared +=
          str("  gc_sums<", type, ", ", kept > 0 ? 4 * kept * x_.held[i.weights].columns : 1, "> k",
              i.weights, ";\n");
      plain(str("if (mine) gc_hold<", columns_of(i, at), kept, ", ",
                unit_name(ProductUnit::Fma, w.dtype), ">(k", i.weights, ", ",
                in_shared_of(i.weights), ", ", source(w.buffer), ", ", w.k_stride, ", ", w.m_stride,
                ", y);"));
    }
    return declared + in_turns({});
  }

  /// What is carried to the first step, and what is fetched for it.
  std::string begin() {
    for (size_t k = 0; k < loop_.carried.size(); ++k) {
      const uint32_t v = x_.steps.carried[k].value;
      const DType t = x_.carried_types[k];
      const size_t first = loop_.carried[k].first;
      const std::string from = buffer(loop_reads_[first], stored_type(t), false, str("x", first));
      const int32_t features = features_of(k);
      each(features, str("if (own) ", in_tile(v, "f", "x"), " = ",
                         decoded(t, str(from, "[", row_place(features), "]")), ";"));
    }
    for (size_t l = 0; l < r_.loads.size(); ++l) fetch(l, "now", "");
    return in_turns({});
  }

  /// What the next step reads.
  std::string fetch_next() {
    for (size_t l = 0; l < r_.loads.size(); ++l) {
      if (x_.fetched[l] < 0) continue;  // and what it counts is no parameter
      const std::string count = size(x_.inputs[r_.loads[l].buffer].count);
      fetch(l, "next", (loop_.reverse ? " - " : " + ") + count);
    }
    const std::string text = in_turns({});
    if (text.empty()) return text;
    return str("      gc_arrived();\n      if (s + 1 < ", size(loop_.steps), ")\n", text);
  }

  void fetch(size_t l, const char* when, const std::string& beyond) {
    if (x_.fetched[l] < 0) return;
    const RowLoad& load = r_.loads[l];
    const int32_t features = value(load.value).features;
    std::string text;
    const std::string place = place_of_load(load, text);
    each(features, str("if (own) { ", text, "gc_fetch_ahead(", slot(l, when), " + e, ",
                       source(load.buffer), beyond, " + ", place, "); }"));
  }

  std::string slot(size_t l, const char* when) const {
    const RowLoad& load = r_.loads[l];
    return twice(stored_type(load.dtype), x_.fetched[l], all(value(load.value).features),
                 item_size(load.dtype), when);
  }

  std::string finish() {
    for (size_t k = 0; k < loop_.carried.size(); ++k) {
      const int result = loop_.carried[k].result;
      if (result < 0) continue;
      const uint32_t v = x_.steps.carried[k].value;
      const DType t = x_.carried_types[k];
      const std::string to =
          buffer(loop_writes_[static_cast<size_t>(result)], stored_type(t), true, str("q", result));
      each(features_of(k), str("if (own && live) ", to, "[", row_place(features_of(k)),
                               "] = ", encoded(t, in_tile(v, "f", "x")), ";"));
    }
    return in_turns({});
  }

  // Items ----------------------------------------------------------------------------------------

  static std::string row_place(int32_t features) {
    return features == 1 ? "r" : str("r * ", features, " + f");
  }
  /// Where an element of a load is. text: what has to come before.
  std::string place_of_load(const RowLoad& l, std::string& text) {
    const int32_t features = value(l.value).features;
    if (!l.viewed()) return row_place(features);
    std::string place;
    text =
        nested([&] { place = place_in(l.view, 0, l.view.dims.size(), "r", l.view.offset); }).text;
    return "(" + place + (features > 1 ? " + f)" : ")");
  }

  void load(const RowLoad& l) override {
    const auto at = static_cast<size_t>(&l - r_.loads.data());
    const int32_t features = value(l.value).features;
    const std::string to = in_registers(l.value) + "[j] = ";
    if (x_.fetched[at] >= 0)
      return each(features, to + "own ? " + decoded(l.dtype, slot(at, "now") + "[e]") + " : 0;");
    std::string text;
    const std::string place = place_of_load(l, text);
    each(features,
         "{ " + text + to + decoded(l.dtype, str(source(l.buffer), "[", place, "]")) + "; }");
  }

  bool changes_elsewhere(uint32_t v) const override {
    return !x_.phases.meets ||
           std::ranges::any_of(x_.steps.carried, [&](const auto& c) { return c.value == v; });
  }

  bool has_parts(uint32_t at) const override { return x_.parts[at] > 0; }

  std::string parts(uint32_t at) const {
    return str("gc_in_tile<", name_of(value(r_.program[at].dst).type), ">(",
               x_.values_at + x_.phases.parts[at] * static_cast<size_t>(x_.rows), ")");
  }

  void compute(uint32_t at) override {
    const Instruction& i = r_.program[at];
    if (i.kind == TileOp::Elementwise)
      step_.instructions += rows_ * i.features * element_cost(i.op).gpu_instructions;
    if (i.kind == TileOp::Product) return make_products(i, at);
    if (i.kind == TileOp::Surround) return surround(i);
    if (!has_parts(at)) return RegionWriter::compute(at);
    // A reduction whose terms are shared: every so many of them are one thread's.
    const std::string type = name_of(value(i.dst).type), op = reduction(i.combine, type);
    const int32_t n = all(i.features), p = x_.parts[at];
    plain(str("if (mine && y < ", n * p, ") {\n          const int e = y % ", n,
              ", f = ", x_.rows == 1 ? "e" : str("e % ", i.features),
              ", x = ", x_.rows == 1 ? "0" : str("e / ", i.features), ";\n          ", type,
              " all = ", op, "::none();\n          for (int k = y / ", n, "; k < ", i.inner,
              "; k += ", p, ") all = ", op, "::of(all, ", term(i), ");\n          ", parts(at),
              "[y] = all;\n        }"));
  }

  void make_products(const Instruction& i, uint32_t at) {
    const PackedWeights& w = r_.weights[i.weights];
    const Operand& from = i.operand[0];
    step_.flops += 2 * rows_ * w.k * w.m;
    const TileValue& v = value(from.value);
    const int32_t pitch = v.features;
    const bool packs = (v.head + from.base) % 4 == 0 && (x_.rows == 1 || pitch % 4 == 0);
    const int32_t kept = x_.held[i.weights].kept;
    plain(str("if (mine) gc_multiply_rows<", columns_of(i, at), x_.rows, ", ", pitch, ", ", kept,
              ", ", packs ? "true" : "false", ">(", parts(at), ", ", pointer(from.value), " + ",
              from.base, ", k", i.weights, ", ", in_shared_of(i.weights), ", y);"));
  }

  void collect(uint32_t at) override {
    const Instruction& i = r_.program[at];
    const std::string type = name_of(value(i.dst).type), to = in_registers_or_own(i) + "[j]";
    const std::string all_parts =
        str("gc_collected<", reduction(i.combine, type), ", ", x_.parts[at], ", ", all(i.features),
            ">(", parts(at), " + e)");
    each(i.features, to + (i.accumulate ? " += " : " = ") + all_parts + ";");
  }
  std::string in_registers_or_own(const Instruction& i) {
    return i.accumulate ? own(i.dst) : in_registers(i.dst);
  }

  void carry(uint32_t k) override {
    const auto& c = x_.steps.carried[k];
    const int32_t features = value(c.value).features;
    each(features, str("if (own) ", pointer(c.value, "next"), "[", place(c.value, "f", "x"),
                       "] = ", element(c.next, features), ";"));
  }

  /// The zeros before and behind the only row of a value.
  void surround(const Instruction& i) {
    const TileValue& v = value(i.dst);
    plain(str("if (mine)\n          for (int k = y; k < ", v.head + v.tail, "; k += ", x_.threads,
              ") ", pointer(i.dst), "[k < ", v.head, " ? k - ", v.head, " : k - ", v.head, " + ",
              v.features, "] = 0;"));
  }

  const LoopKernel& x_;
  const LoopFrame& loop_;
  const std::span<const BufferId> loop_reads_, loop_writes_;
  std::string row_count_;
  std::set<std::string> known_pointers_;
  std::string pointers_;  ///< of a step
};

}  // namespace

Written write_loop_kernel(const WriterInputs& in, int32_t stage, const LoopKernel& kernel,
                          const LoopFrame& loop, std::span<const BufferId> reads,
                          std::span<const BufferId> writes) {
  return LoopKernelWriter(in, stage, kernel, loop, reads, writes).run();
}

}  // namespace gradcell::cuda
