#include "cuda/write/regions/tile_writer.h"

#include <map>

#include "cuda/write/regions/region_writer.h"

namespace gradcell::cuda {

namespace {

class TileWriter : RegionWriter {
 public:
  TileWriter(const WriterInputs& in, int32_t stage, const TileRegion& tile)
      : RegionWriter(in, stage, tile.region, tile.layout), tile_(tile), l_(tile.layout) {
    rows_ = r_.rows;
    body_.indent = "      ";
  }

  Written run(std::span<const TileSums> sums) {
    for (NodeId id : tile_.nodes) count_node(id);
    const std::string rows = size(rows_), chunks = argument(tile_.cost.chunks, "chunks");
    std::string start = stage_weights(), clear;
    for (size_t g = 0; g < sums.size(); ++g) clear += place_sums(sums[g], g);
    const std::string phases = write_phases();
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

  // Threads --------------------------------------------------------------------------------------

  std::string turns() const override {
    return str("      GC_TURNS(", l_.groups, ") {\n        const int y = GC_GROUP(", l_.groups,
               ");\n        const bool mine = GC_MINE(", l_.groups, ");\n");
  }

  int32_t chunk(int32_t features) const override { return l_.chunk(features); }

  std::string place_of_thread(int32_t features) const override {
    // Where all threads have as many, nothing is compared, and places differ by constants.
    const bool whole = chunk(features) * l_.groups == features;
    const std::string f = str("y * ", chunk(features), " + j"), n = std::to_string(features);
    return str("          const int f = ", whole ? f : str("gc_feature(", f, ", ", n, ")"),
               ";\n          const bool own = mine", whole ? "" : str(" && ", f, " < ", n), ";\n");
  }

  std::string pointer(uint32_t v) const {
    return str("gc_in_tile<", name_of(r_.values[v].type), ">(", l_.weight_bytes, " + ", l_.place[v],
               " * stride)");
  }
  std::string in_tile(uint32_t v, const std::string& feature,
                      const std::string& row) const override {
    return pointer(v) + "[(" + feature + ") * stride + " + row + "]";
  }

  std::string before_phase() override { return std::exchange(phase_sums_, {}); }
  std::string after_phase() override {
    close_outer();
    return std::exchange(across_, {});
  }

  // Products and sums ----------------------------------------------------------------------------

  void multiply(const Instruction& i) override {
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

  void reduce_rows(const Instruction& i) override {
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
  void add_outer(const Instruction& i) override {
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
  const TileLayout& l_;
  std::map<uint32_t, Sums> sums_;                   ///< by accumulator
  std::map<uint32_t, std::vector<Factors>> outer_;  ///< of a phase, by accumulator
  std::string phase_sums_, across_;
};

}  // namespace

Written write_tile(const WriterInputs& in, int32_t stage, const TileRegion& tile,
                   std::span<const TileSums> sums) {
  return TileWriter(in, stage, tile).run(sums);
}

}  // namespace gradcell::cuda
