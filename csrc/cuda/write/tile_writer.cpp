#include "cuda/write/tile_writer.h"

#include "cuda/tiles/feature_maps.h"

#include <algorithm>
#include <map>
#include <set>

#include "cuda/write/writer.h"

namespace gradcell::cuda {

namespace {

/// What a map has for feature f, as an expression.
std::string mapped(const Map& map, const std::string& f) {
  std::string text;
  size_t open = 0;
  const std::vector<Run> runs = runs_of(map);
  for (size_t k = 0; k < runs.size(); ++k) {
    const Run& r = runs[k];
    const int32_t base = r.first - r.step * r.begin;
    std::string value = r.step == 0 ? str(r.first) : r.step == 1 ? f : str(r.step, " * ", f);
    if (r.step != 0 && base != 0) value += str(base < 0 ? " - " : " + ", base < 0 ? -base : base);
    if (k + 1 < runs.size())
      text += str("(", f, " < ", r.end, " ? ", value, " : "), ++open;
    else
      text += value;
  }
  return text + std::string(open, ')');
}

class TileWriter : Writer {
 public:
  TileWriter(const WriterInputs& in, int32_t stage, const TileRegion& tile)
      : Writer(in, stage), tile_(tile), r_(tile.region), l_(tile.layout) {
    rows_ = r_.rows;
    body_.indent = "      ";
  }

  Written run(std::span<const TileSums> sums) {
    for (NodeId id : tile_.nodes) count_node(id);
    const std::string rows = size(rows_), chunks = argument(tile_.cost.chunks, "chunks");
    std::string start = stage_weights(), clear;
    for (size_t g = 0; g < sums.size(); ++g) clear += place_sums(sums[g], g);
    std::string phases;
    size_t at = 0;
    for (int32_t phase = 0; at < l_.items.size(); ++phase) {
      if (phase > 0) phases += "      __syncthreads();\n";
      phases += write_phase(phase, at);
    }
    std::string text = str("  constexpr int height = gc_rows(", l_.weight_bytes, ", ", l_.row_bytes,
                           "), stride = height | 1;\n  const int x = gc_row();\n") +
                       start + "  for (gc_index chunk = blockIdx.x; chunk < " + chunks +
                       "; chunk += gridDim.x) {\n" + clear +
                       "    for (gc_index r0 = chunk * blockDim.x; r0 < " + rows +
                       "; r0 += " + chunks +
                       " * blockDim.x) {\n"
                       "      __syncthreads();\n"
                       "      const bool live = r0 + x < " +
                       rows +
                       ";\n"
                       "      const gc_index r = live ? r0 + x : " +
                       rows +
                       " - 1;\n"
                       "      const int rows = " +
                       rows + " - r0 < blockDim.x ? (int)(" + rows + " - r0) : (int)blockDim.x;\n" +
                       body_.text + phases + "    }\n  }\n";
    step_.block_x = kTileRows;
    step_.block_y = narrow<uint32_t>(l_.groups);
    step_.grid = narrow<uint32_t>(tile_.cost.chunks);
    step_.shared_bytes = l_.weight_bytes;
    step_.shared_row_bytes = l_.row_bytes;
    step_.tile_cycles = tile_.cost.cycles, step_.tile_rounds = tile_.cost.rounds;
    return written(text, "tile", step_.block_x * step_.block_y);
  }

 private:
  static const char* name_of(Compute c) { return type_name(c); }
  std::string argument(int64_t value, const std::string& name) {
    parameter("const gc_index", name, {Argument::Kind::Size, 0, value, Compute::I64});
    return name;
  }

  // Before the rows ------------------------------------------------------------------------------

  std::string stage_weights() {
    std::string text;
    std::set<int64_t> places;
    for (size_t k = 0; k < r_.weights.size(); ++k) {
      if (l_.weights[k] < 0 || !places.insert(l_.weights[k]).second) continue;
      const PackedWeights& w = r_.weights[k];
      if (l_.as_stored) {
        const int32_t n = w.k * w.m;
        text += str("  gc_stage<", unit_name(ProductUnit::Fma, w.dtype), ", 1, ", n, ", ", n, ", ",
                    n, ", ", n, ">(", weights(k), ", ", reads(w.buffer), ", 0, 1);\n");
        continue;
      }
      const int32_t chunk = l_.chunk(w.m);
      text += str("  gc_stage<", unit_name(ProductUnit::Fma, w.dtype), ", ", w.k, ", ", w.m, ", ",
                  chunk, ", ", packed(chunk), ", ", step(k), ">(", weights(k), ", ",
                  reads(w.buffer), ", ", w.k_stride, ", ", w.m_stride, ");\n");
    }
    return text;
  }

  int32_t step(size_t k) const {
    return weights_step(l_.by[k], l_.groups, packed(l_.chunk(r_.weights[k].m)));
  }

  std::string weights(size_t k) const {
    return str("gc_in_tile<", name_of(r_.weights[k].type), ">(", l_.weights[k], ")");
  }

  /// Where a chunk has its sums: nothing yet.
  std::string place_sums(const TileSums& s, size_t group) {
    const std::string type = sum_type(s.floating), q = "w" + std::to_string(group);
    const std::string to = buffer(s.partial, type.c_str(), true, "q" + std::to_string(group) + "_");
    const std::string count = size(s.count);
    int64_t at = 0;
    for (uint32_t a : s.accumulators) {
      sums_[a] = {q, at, type, s.combine};
      at += static_cast<int64_t>(r_.accumulators[a].count());
    }
    step_.bytes_written += partial_bytes(tile_, s);
    return str("    ", type, "* const ", q, " = ", to, " + chunk * ", count,
               ";\n    for (gc_index e = gc_thread(); e < ", count, "; e += gc_threads()) ", q,
               "[e] = ", reduction(s.combine, type), "::none();\n");
  }

  // Phases ---------------------------------------------------------------------------------------

  /// Writes the items of a phase, from `at` on.
  std::string write_phase(int32_t phase, size_t& at) {
    phase_text_.clear(), phase_sums_.clear(), across_.clear(), declared_.clear(),
        known_values_.clear();
    std::map<uint32_t, size_t> last;  // the item that writes a value last in this phase
    size_t end = at;
    for (; end < l_.items.size() && l_.items[end].phase == phase; ++end)
      if (const int64_t v = written_by(l_.items[end]); v >= 0) last[narrow<uint32_t>(v)] = end;
    changed_.clear();
    for (const auto& [v, item] : last) changed_.insert(v);
    for (; at < end; ++at) {
      write(l_.items[at]);
      const int64_t v = written_by(l_.items[at]);
      if (v < 0) continue;
      written_.insert(narrow<uint32_t>(v));
      if (l_.shared[v] && last[narrow<uint32_t>(v)] == at) keep(narrow<uint32_t>(v));
    }
    close();
    close_outer();
    std::string text;
    if (!phase_text_.empty()) {
      text = str("      GC_TURNS(", l_.groups, ") {\n        const int y = GC_GROUP(", l_.groups,
                 ");\n        const bool mine = GC_MINE(", l_.groups, ");\n");
      for (uint32_t v : declared_)
        text += str("        ", name_of(r_.values[v].type), " v", v, "[",
                    l_.chunk(r_.values[v].features), "];\n");
      text += phase_sums_ + phase_text_ + "      }\n";
    }
    return text + across_;
  }

  int64_t written_by(const TileItem& item) const {
    if (item.kind == TileItem::Kind::Load) return r_.loads[item.index].value;
    if (item.kind == TileItem::Kind::Store || accumulates(r_.program[item.index])) return -1;
    return r_.program[item.index].dst;
  }

  /// A statement for each feature of a thread; such for equally many are one loop.
  void each(int32_t features, const std::string& statement) {
    if (loop_features_ != features) close();
    loop_features_ = features;
    loop_ += "          " + statement + "\n";
  }

  void close() {
    if (!loop_.empty()) {
      // Where all threads have as many, nothing is compared, and places differ by constants.
      const int32_t chunk = l_.chunk(loop_features_);
      const bool whole = chunk * l_.groups == loop_features_;
      const std::string f = str("y * ", chunk, " + j"), n = std::to_string(loop_features_);
      phase_text_ +=
          str("#pragma unroll\n        for (int j = 0; j < ", chunk,
              "; ++j) {\n          const int f = ", whole ? f : str("gc_feature(", f, ", ", n, ")"),
              ";\n          const bool own = mine", whole ? "" : str(" && ", f, " < ", n), ";\n",
              loop_, "        }\n");
    }
    loop_.clear();
    loop_features_ = 0;
  }

  void plain(const std::string& statement) {
    close();
    phase_text_ += "        " + statement + "\n";
  }

  /// A value in registers: it is there, or about to be written.
  std::string in_registers(uint32_t v) {
    if (std::find(declared_.begin(), declared_.end(), v) == declared_.end()) declared_.push_back(v);
    known_values_.insert(v);
    return "v" + std::to_string(v);
  }

  /// A value of this thread, in registers.
  std::string own(uint32_t v) {
    if (known_values_.contains(v)) return "v" + std::to_string(v);
    const std::string name = in_registers(v), there = in_tile(v, "f", "x");
    // A thread without features of its own reads the last one, unless that is about to change.
    const std::string read = changed_.contains(v) ? "own ? " + there + " : 0" : there;
    each(r_.values[v].features, name + "[j] = " + read + ";");
    return name;
  }

  std::string pointer(uint32_t v) const {
    return str("gc_in_tile<", name_of(r_.values[v].type), ">(", l_.weight_bytes, " + ", l_.place[v],
               " * stride)");
  }
  std::string in_tile(uint32_t v, const std::string& feature, const std::string& row) const {
    return pointer(v) + "[(" + feature + ") * stride + " + row + "]";
  }
  void keep(uint32_t v) {
    each(r_.values[v].features,
         "if (own) " + in_tile(v, "f", "x") + " = v" + std::to_string(v) + "[j];");
  }

  // Operands -------------------------------------------------------------------------------------

  /// Feature `f`, an expression, of what an instruction for so many features reads.
  std::string element(const Operand& o, int32_t features, const std::string& f) {
    if (o.uniform) return uniform(o, features, f);
    return in_tile(o.value, along(o, f), "x");
  }
  /// The thread's j-th.
  std::string element(const Operand& o, int32_t features) {
    if (!o.uniform && reads_own(r_, o, features)) return own(o.value) + "[j]";
    return element(o, features, "f");
  }

  static std::string along(const Operand& o, const std::string& f) {
    if (o.stride == 0) return std::to_string(o.base);
    const std::string scaled = o.stride == 1 ? f : str(o.stride, " * ", "(", f, ")");
    return o.base == 0 ? scaled : str(scaled, o.base < 0 ? " - " : " + ", std::abs(o.base));
  }

  std::string uniform(const Operand& o, int32_t features, const std::string& f) {
    const Uniform& u = r_.uniforms[o.value];
    if (u.constant >= 0) return constant(narrow<uint32_t>(u.constant), u.dtype);
    std::string at = along(o, f);
    if (!u.map.empty()) {
      Map map;
      for (int32_t k = 0; k < (o.stride == 0 ? 1 : features); ++k)
        map.push_back(u.map[static_cast<size_t>(o.base + o.stride * k)]);
      at = gradcell::cuda::mapped(map, f);
    }
    return "(" + decoded(u.dtype, reads(u.buffer) + "[" + at + "]") + ")";
  }

  // Items ----------------------------------------------------------------------------------------

  void write(const TileItem& item) {
    switch (item.kind) {
      case TileItem::Kind::Load:
        return load(r_.loads[item.index]);
      case TileItem::Kind::Store:
        return store(r_.stores[item.index]);
      case TileItem::Kind::Compute:
        return compute(r_.program[item.index]);
    }
  }

  void load(const RowLoad& l) {
    const int32_t features = r_.values[l.value].features;
    std::string place = features == 1 ? "r" : str("r * ", features);
    if (l.viewed()) place = place_in(l.view, 0, l.view.dims.size(), "r", l.view.offset);
    if (features > 1) place += " + f";
    const std::string p = reads(l.buffer);
    each(features,
         in_registers(l.value) + "[j] = " + decoded(l.dtype, p + "[" + place + "]") + ";");
  }

  void store(const RowStore& s) {
    const std::string value = element(s.from, s.features), q = writes(s.buffer);
    const std::string place = s.features == 1 ? "r" : str("r * ", s.features, " + f");
    each(s.features,
         "if (own && live) " + q + "[" + place + "] = " + encoded(s.dtype, value) + ";");
  }

  void compute(const Instruction& i) {
    switch (i.kind) {
      case TileOp::Elementwise: {
        std::array<std::string, 3> in;
        for (int k = 0; k < i.operand_count; ++k) in[k] = element(i.operand[k], i.features);
        return assign(i, applied(i.op, type_name(compute_type(i.dtype)), in));
      }
      case TileOp::Convert:
        return assign(i, converted(held(i.type), i.dtype, element(i.operand[0], i.features)));
      case TileOp::Narrow:
        return assign(i, narrowed(i.dtype, element(i.operand[0], i.features)));
      case TileOp::Copy: {
        const std::string from = i.map < 0 ? "f" : gradcell::cuda::mapped(map(i.map), "f");
        return assign(i, i.map < 0 ? element(i.operand[0], i.features)
                                   : element({false, i.operand[0].value, 0, 1}, i.features, from));
      }
      case TileOp::Scatter:
        return scatter(i);
      case TileOp::FeatureReduce:
        return reduce_features(i);
      case TileOp::Product:
        return multiply(i);
      case TileOp::RowReduce:
        return reduce_rows(i);
      case TileOp::WeightGrad:
        return add_outer(i);
      case TileOp::Surround:  // of loops' bodies on a CPU
      case TileOp::Chain:
      case TileOp::Formula:
      case TileOp::Choose:
        break;
    }
    fail(ErrorKind::Runtime, "no tile kernel has joined instructions");
  }

  /// A dtype whose elements are what registers of a type hold.
  static DType held(Compute c) {
    return c == Compute::F32   ? DType::Float32
           : c == Compute::F64 ? DType::Float64
           : c == Compute::I32 ? DType::Int32
                               : DType::Int64;
  }

  const Map& map(int32_t index) const { return r_.maps[static_cast<size_t>(index)]; }

  void assign(const Instruction& i, const std::string& value) {
    each(i.features, in_registers(i.dst) + "[j] = " + value + ";");
  }

  void scatter(const Instruction& i) {
    const std::string before = i.zero || !written_.contains(i.dst) ? "0" : own(i.dst) + "[j]";
    const std::string from = gradcell::cuda::mapped(inverse(map(i.map), i.features), "f");
    const std::string value = element(i.operand[0], i.inner, "k");
    const std::string to = in_registers(i.dst);
    each(i.features,
         "{ const int k = " + from + "; " + to + "[j] = k < 0 ? " + before + " : " + value + "; }");
  }

  void reduce_features(const Instruction& i) {
    const std::string type = name_of(r_.values[i.dst].type), op = reduction(i.combine, type);
    const std::string to = in_registers(i.dst) + "[j]";
    Operand from = i.operand[0];
    from.stride = 1;
    const std::string place =
        gradcell::cuda::mapped(map(i.map), "f") + " + " + gradcell::cuda::mapped(map(i.map2), "k");
    each(i.features, to + " = " + op + "::none();");
    each(i.features, str("for (int k = 0; k < ", i.inner, "; ++k) ", to, " = ", op, "::of(", to,
                         ", ", element(from, i.features, place), ");"));
  }

  void multiply(const Instruction& i) {
    const PackedWeights& w = r_.weights[i.weights];
    step_.flops += 2 * rows_ * w.k * w.m;
    const int32_t chunk = l_.chunk(i.features);
    const std::string to = i.accumulate ? own(i.dst) : in_registers(i.dst);
    const std::string sums = "s" + std::to_string(next_++);
    const ProductUnit by = l_.by[i.weights];
    const bool copied = l_.weights[i.weights] >= 0, staged = copied && !l_.as_stored;
    const bool warps = by != ProductUnit::Fma;
    const int32_t pack = staged ? packed(chunk) : 0, width = staged ? step(i.weights) : 0;
    const std::string kind = copied && l_.as_stored ? "gc_as_stored" : unit_name(by, w.dtype),
                      matrix = copied ? weights(i.weights) : reads(w.buffer);
    const std::string from =
        "&" + in_tile(i.operand[0].value, std::to_string(i.operand[0].base), warps ? "0" : "x");
    const std::string shape = str(w.k, ", ", w.m, ", ", chunk, ", "),
                      strides = str(staged ? width : w.k_stride, ", ", staged ? 1 : w.m_stride);
    std::string call;
    if (warps)
      call = str("gc_multiply_warp<", kind, ", ", shape, pack, ", ", strides, ", stride>(", from,
                 ", ", matrix, ", y)");
    else if (staged)
      call = str("gc_multiply<", w.k, ", ", chunk, ", ", pack, ", ", width, ", stride>(", from,
                 ", ", matrix, " + y * ", pack, ")");
    else
      call = str("gc_multiply_stored<", kind, ", ", shape, strides, ", stride, ",
                 copied ? "true" : "false", ">(", from, ", ", matrix, ", y * ", chunk, ")");
    plain(str("const gc_sums<", name_of(w.type), ", ", chunk, "> ", sums, " = ", call, ";"));
    each(i.features, str(to, i.accumulate ? "[j] += " : "[j] = ", sums, ".at[j];"));
  }

  void reduce_rows(const Instruction& i) {
    const Sums& s = sums_.at(i.dst);
    const int32_t chunk = l_.chunk(i.features);
    const std::string value = element(i.operand[0], i.features),
                      all = "s" + std::to_string(next_++);
    phase_sums_ += str("        gc_sums<", name_of(i.type), ", ", chunk, "> ", all, ";\n");
    each(i.features, all + ".at[j] = " + value + ";");
    plain(str("gc_add_rows_up<", reduction(s.combine, s.type), ", height>(", s.name, " + ", s.at,
              ", ", all, ", live, mine ? y * ", chunk, " : ", i.features, ", ", i.features, ");"));
  }

  /// All threads of the block share the elements of the gradient; products of a phase that are
  /// added up are one.
  void add_outer(const Instruction& i) {
    step_.flops += 2 * rows_ * i.features * i.inner;
    auto from = [&](const Operand& o) {
      return "&" + in_tile(o.value, std::to_string(o.base), "0");
    };
    outer_[i.dst].push_back(
        {from(i.operand[0]), from(i.operand[1]), name_of(r_.values[i.operand[0].value].type)});
  }

  void close_outer() {
    for (const auto& [sum, factors] : outer_) {
      const Sums& s = sums_.at(sum);
      const Accumulator& of = r_.accumulators[sum];
      const ProductUnit by = l_.outer_by[sum];
      std::string left, right;
      for (const Factors& f : factors) {
        left += str(left.empty() ? "" : ", ", f.a);
        right += str(right.empty() ? "" : ", ", f.b);
      }
      const std::string function = by == ProductUnit::Fma
                                       ? "gc_add_outer<"
                                       : "gc_add_outer_warps<" + unit_name(by, of.dtype) + ", ";
      across_ += str("      ", function, of.features, ", ", of.inner, ", stride, ", l_.groups,
                     " * height>(", s.name, " + ", s.at, ", gc_factors<", factors[0].type, ", ",
                     factors.size(), ">{{", left, "}, {", right, "}}, rows);\n");
    }
    outer_.clear();
  }

  struct Factors {
    std::string a, b, type;
  };
  struct Sums {
    std::string name;
    int64_t at;
    std::string type;
    Combine combine;
  };

  const TileRegion& tile_;
  const Region& r_;
  const TileLayout& l_;
  std::map<uint32_t, Sums> sums_;                   ///< by accumulator
  std::map<uint32_t, std::vector<Factors>> outer_;  ///< of a phase, by accumulator
  std::string phase_text_, phase_sums_, across_, loop_;
  int32_t loop_features_ = 0;
  std::vector<uint32_t> declared_;
  std::set<uint32_t> known_values_;  ///< that are in registers
  std::set<uint32_t> written_;       ///< so far
  std::set<uint32_t> changed_;       ///< in this phase
};

}  // namespace

Written write_tile(const WriterInputs& in, int32_t stage, const TileRegion& tile,
                   std::span<const TileSums> sums) {
  return TileWriter(in, stage, tile).run(sums);
}

}  // namespace gradcell::cuda
