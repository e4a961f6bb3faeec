// Attention's sums by tensor cores (attention.cuh): a block takes 64 rows of the results through
// the other rows, 64 at a time; scores are computed once for all the sums of the kernel, with a
// running maximum where the normalisers are to be found.
#include <algorithm>
#include <map>

#include "cuda/float_types.h"
#include "cuda/fuse/attention_tiles.h"
#include "cuda/tiles/tile_products.h"
#include "cuda/write/attention/attention_text.h"

namespace gradcell::cuda {

namespace {

constexpr int64_t kTileSide = 64;
/// Registers for sums and what is fetched, where two blocks share a multiprocessor, so that one
/// computes while the other waits for memory: each thread has half of all then, 128. Splitting
/// floats takes more besides than halves do.
constexpr int64_t kShared = 80, kSharedFloats = 64;
/// The same, where all of it is fetched together.
constexpr int64_t kFetched = 96;

class AttentionCoresWriter : AttentionText {
 public:
  AttentionCoresWriter(const WriterInputs& in, std::span<const NodeId> sums)
      : AttentionText(in, leader(in.graph, sums), kTileSide),
        sums_(sums.begin(), sums.end()),
        tiles_(attention_tiles(g_, f_.storage, sums)),
        operands_(g_.dtype(node(0))),
        finds_(at_.log_sum < 0),
        ahead_(held() <= kFetched) {
    const ProductUnit unit = unit_for(operands_, in.target.tf32);
    scores_by_ = unit_name(unit, operands_);
    // Weights keep a float's exponent: they may be as small as no float16 is.
    sums_by_ = float_type(operands_).wide ? scores_by_ : "gc_tf32";
    stored_as_ = unit_name(ProductUnit::Fma, operands_);
  }

  Written run() {
    for (NodeId id : sums_) count_node(id);
    const int64_t tiles_of_head = divide_up(rows(), kTileSide);
    const std::string tiles = size(tiles_of_head), d = divisor(tiles_of_head);
    line("const gc_index top = t % " + d + " * 64, head = t / " + d + ";");
    operands();
    bounds();
    stage(by_keys_, "top", rows());
    for (size_t k = 0; k < sums_.size(); ++k)
      if (at_of(k).c >= 0) line(str("float sum", k, "[", parts(k), "][4] = {};"));
    if (finds_)
      line("float most[2] = {gc_limits<float>::low(), gc_limits<float>::low()}, total[2] = {};");
    else if (!by_keys_)
      numbers_of_rows();
    const Scope inside = nested([&] { tile(); });
    block("for (gc_index next = first; next < end; next += 64)", inside);
    put_together();
    for (size_t k = 0; k < sums_.size(); ++k) store(k);
    step_.grid = grid_for(heads_ * divide_up(rows(), kTileSide), 1);
    step_.block_x = 32, step_.block_y = 8;
    step_.shared_bytes = tiles_.bytes;
    return written("  GC_NEEDS_WARPS();\n  for (gc_index t = blockIdx.x; t < " + size(heads_) +
                       " * " + tiles + "; t += gridDim.x) {\n" + body_.text + "  }\n",
                   "attention", 256, blocks());
  }

 private:
  /// The sum that has all that scores need: dropout's state, too.
  static NodeId leader(const Graph& g, std::span<const NodeId> sums) {
    for (NodeId id : sums)
      if (attributes<AttentionAttributes>(g, id).dropped) return id;
    return sums[0];
  }

  AttentionAttributes of(size_t k) const { return attributes<AttentionAttributes>(g_, sums_[k]); }
  AttentionInputs at_of(size_t k) const { return attention_inputs(g_[sums_[k]].op, of(k)); }
  NodeId input_of(size_t k, int i) const { return g_.input(sums_[k], i); }
  int64_t width(size_t k) const { return outside(sums_[k]).back(); }
  int64_t parts(size_t k) const { return (width(k) + 7) / 8; }

  const char* blocks() const {
    return held() <= (operands_ == DType::Float32 ? kSharedFloats : kShared) ? "gc_two_blocks"
                                                                             : "1";
  }
  /// Registers of a thread for its sums and for all that it fetches.
  int64_t held() const {
    int64_t n = 0;
    for (const AttentionTile& t : tiles_.all)
      if (t.by_keys != by_keys_)
        n += divide_up(t.width, 16) * (item_size(g_.dtype(t.node)) == 4 ? 4 : 2);
    for (size_t k = 0; k < sums_.size(); ++k) n += at_of(k).c >= 0 ? 4 * parts(k) : 0;
    return n;
  }

  // Operands --------------------------------------------------------------------------------------

  void operands() {
    for (size_t k = 0; k < tiles_.all.size(); ++k)
      strides_.push_back(head_pointer(str("x", k), tiles_.all[k].node));
    auto column = [&](NodeId x) {
      const NodeId from = f_.storage[x];
      if (columns_.contains(from)) return;
      const std::string name = str("column", columns_.size());
      const std::string stride = head_pointer(name, x);
      columns_[from] = {name, stride};
    };
    for (size_t k = 0; k < sums_.size(); ++k)
      for (int i : {at_of(k).log_sum, at_of(k).shift})
        if (i >= 0) column(input_of(k, i));
    mask_pointer();
  }
  /// A number of query m.
  std::string number(NodeId x, const std::string& m) {
    const auto& [name, stride] = columns_.at(f_.storage[x]);
    return decoded(g_.dtype(x), name + "[" + m + " * " + stride + "]");
  }
  std::string tile_of(NodeId x, bool by_keys) {
    const AttentionTile& t = tiles_.of(f_.storage[x], by_keys);
    return str("gc_in_tile<", stored_type(g_.dtype(x)), ">(", t.offset, ")");
  }

  /// The operands whose rows are keys, or queries, into shared memory: all fetched before the first
  /// is put, and before threads wait for those that still read what was there, if there is room.
  void stage(bool by_keys, const char* first, int64_t n) {
    std::vector<std::string> puts;
    for (size_t k = 0; k < tiles_.all.size(); ++k) {
      const AttentionTile& t = tiles_.all[k];
      if (t.by_keys != by_keys) continue;
      const std::string tile = tile_of(t.node, by_keys),
                        from = str("x", k, ", ", strides_[k], ", ", first, ", ", size(n), ", ",
                                   fours());
      if (ahead_) line(str("const auto f", k, " = gc_fetch_rows<", t.width, ">(", from, ");"));
      puts.push_back(ahead_ ? str("gc_put_rows<", t.width, ">(", tile, ", f", k, ");")
                            : str("gc_stage_rows<", t.width, ">(", tile, ", ", from, ");"));
    }
    line("__syncthreads();");
    for (const std::string& put : puts) line(put);
  }
  std::string fours() {
    if (packs_.empty()) packs_ = packs(1) + " > 0";
    return packs_;
  }

  /// Of the rows of a thread, which are queries.
  void numbers_of_rows() {
    const std::string n = size(rows());
    auto two = [&](const std::string& name, NodeId x) {
      line("float " + name + "[2];");
      line("for (int u = 0; u < 2; ++u) " + name +
           "[u] = " + number(x, "gc_sooner(top + gc_warp_row(2 * u), " + n + " - 1)") + ";");
    };
    two("above", node(at_.log_sum));
    for (size_t k = 0; k < sums_.size(); ++k)
      if (at_of(k).shift >= 0) two(str("shift", k), input_of(k, at_of(k).shift));
  }

  // Tiles -----------------------------------------------------------------------------------------

  std::string dots(NodeId query, NodeId key) {
    const int64_t features = outside(query).back();
    step_.flops += 2 * pairs() * features;
    const NodeId left = by_keys_ ? key : query, right = by_keys_ ? query : key;
    return str("gc_dots_warp<", scores_by_, ", ", features, ">(", tile_of(left, by_keys_), ", ",
               tile_of(right, !by_keys_), ")");
  }

  template <class F>
  void each_score(F write) {
    line("#pragma unroll");
    const Scope inside = nested([&] {
      line("const int p = c / 4, e = c % 4;");
      line("const gc_index i = top + gc_warp_row(e), j = next + gc_warp_other(p, e);");
      write();
    });
    block("for (int c = 0; c < 16; ++c)", inside);
  }

  /// What scores are changed by and lies in memory, for all of a thread's at once: loads that do
  /// not wait for each other, nor for the products.
  void read_ahead() {
    line("unsigned hides = 0;");
    if (at_.mask >= 0) {
      if (!hides()) line("gc_scores added;");
      each_score([&] {
        line("const gc_index row = gc_sooner(i, " + size(rows()) + " - 1), other = gc_sooner(j, " +
             size(inner()) + " - 1);");
        const std::string x =
            decoded(g_.dtype(node(at_.mask)),
                    by_keys_ ? mask_place("other", "row") : mask_place("row", "other"));
        line(hides() ? "hides |= unsigned(" + x + ") << c;" : "added.at[p][e] = " + x + ";");
      });
    }
    if (!by_keys_ || finds_ || !ahead_) return;
    of_others("above", node(at_.log_sum));
    for (size_t k = 0; k < sums_.size(); ++k)
      if (at_of(k).shift >= 0) of_others(str("shift", k), input_of(k, at_of(k).shift));
  }
  /// Numbers of the queries that are a thread's other rows.
  void of_others(const std::string& name, NodeId x) {
    line("float " + name + "[8];");
    line("#pragma unroll");
    line("for (int c = 0; c < 8; ++c) " + name + "[c] = " +
         number(x, "gc_sooner(next + gc_warp_other(c / 2, c % 2), " + size(inner()) + " - 1)") +
         ";");
  }
  std::string of_query(const std::string& name, NodeId x) {
    return !by_keys_ ? name + "[e / 2]" : ahead_ ? name + "[2 * p + e % 2]" : number(x, "j");
  }

  void tile() {
    stage(!by_keys_, "next", inner());
    read_ahead();
    line("__syncthreads();");
    block("if (!inside(next))",
          nested([&] { each_score([&] { line("hides |= unsigned(outside(i, j)) << c;"); }); }));
    line("gc_scores s = " + dots(node(0), node(1)) + ";");
    if (at_.state >= 0) line("unsigned kept = 0;");
    if (!finds_) line("unsigned seen = 0;");
    const std::string keeps = at_.state >= 0 ? kept().condition : "";
    each_score([&] {
      line("float& x = s.at[p][e];");
      if (at_.mask >= 0 && !hides()) line("x += added.at[p][e];");
      line("const bool none = hides >> c & 1 || x == -gc_limits<float>::high();");
      if (finds_) {
        line("if (none) x = gc_limits<float>::low();");
      } else {
        line("if (!none) seen |= 1u << c;");
        line("x = exp(none ? -gc_limits<float>::high() : x - " +
             of_query("above", node(at_.log_sum)) + ");");
      }
      if (!keeps.empty()) line("if (!none && " + keeps + ") kept |= 1u << c;");
    });
    if (finds_) {
      line("float scale[2];");
      line("gc_raise(s, most, total, scale);");
    }
    for (size_t k = 0; k < sums_.size(); ++k)
      if (at_of(k).c >= 0) add(k);
  }

  /// The factors' products, each once.
  std::vector<std::string> factors(size_t k) {
    std::vector<std::string> found;
    for (int i = at_of(k).factors; i < g_[sums_[k]].input_count; i += 2) {
      const NodeId a = input_of(k, i), b = input_of(k, i + 1);
      std::string& name = factors_[{f_.storage[a], f_.storage[b]}];
      if (name.empty()) {
        name = str("factor", factors_.size());
        line("const gc_scores " + name + " = " + dots(a, b) + ";");
      }
      found.push_back(name + ".at[p][e]");
    }
    return found;
  }

  void add(size_t k) {
    const AttentionInputs at = at_of(k);
    const std::vector<std::string> by = factors(k);
    const bool drops = of(k).dropped;
    std::string weights = "s";
    if (!by.empty() || drops || at.shift >= 0) {
      weights = str("weights", k);
      line("gc_scores " + weights + ";");
      each_score([&] {
        std::string w = drops ? "(kept >> c & 1 ? " + kept().factor + " : 0.0f)" : "";
        for (const std::string& f : by) w += (w.empty() ? "" : " * ") + f;
        if (at.shift >= 0) {
          const std::string shift = of_query(str("shift", k), input_of(k, at.shift));
          w = "(" + (w.empty() ? "1.0f" : w) + " - " + shift + ")";
        }
        const std::string x = "s.at[p][e] * " + w;
        line(weights + ".at[p][e] = " + (finds_ ? x : "seen >> c & 1 ? " + x + " : 0.0f") + ";");
      });
    }
    if (finds_) line(str("gc_scale(sum", k, ", scale);"));
    const NodeId c = input_of(k, at.c);
    step_.flops += 2 * pairs() * width(k);
    line(str("gc_add_warp<", sums_by_, ", ", stored_as_, ", ", width(k), ">(sum", k, ", ", weights,
             ", ", tile_of(c, !by_keys_), ");"));
  }

  // Results ---------------------------------------------------------------------------------------

  /// The second half of the warps gives the first what it has.
  void put_together() {
    line("__syncthreads();");
    line("float* half = gc_in_tile<float>(0) + gc_member() % 128;");
    if (finds_) line("gc_over_quad(total);");
    block("if (gc_member() >= 128)", nested([&] {
            if (finds_) line("gc_give_totals(half, most, total);");
            for (size_t k = 0; k < sums_.size(); ++k)
              if (at_of(k).c >= 0) line(str("gc_give(half, sum", k, ");"));
          }));
    line("__syncthreads();");
    line("if (gc_member() >= 128) continue;");
    line("float own[2] = {1, 1}, other[2] = {1, 1};");
    if (finds_) line("gc_take_totals(half, most, total, own, other);");
    for (size_t k = 0; k < sums_.size(); ++k)
      if (at_of(k).c >= 0) line(str("gc_take(half, sum", k, ", own, other);"));
  }

  void store(size_t k) {
    const NodeId id = sums_[k];
    const auto [first, stride] = head_of(rows(), width(k));
    const std::string q = writes(id), n = size(rows()), to = str("to", k);
    line(std::string(stored_type(g_.dtype(id))) + "* const " + to + " = " + q + " + " + first +
         ";");
    line("#pragma unroll");
    if (at_of(k).c < 0) {
      const Scope inside = nested([&] {
        line("const gc_index i = top + gc_warp_row(2 * u);");
        line("if (i < " + n + " && gc_member() % 4 == 0) " + to + "[i * " + stride +
             "] = " + encoded(g_.dtype(id), "most[u] + log(total[u])") + ";");
      });
      block("for (int u = 0; u < 2; ++u)", inside);
      return;
    }
    const std::string sum = str("sum", k, "[c / 4][c % 4]");
    const std::string mean = "total[c % 4 / 2] == 0 ? 0.0f : " + sum + " / total[c % 4 / 2]";
    const Scope inside = nested([&] {
      line("const gc_index i = top + gc_warp_row(c % 4);");
      line("const int f = c / 4 * 8 + gc_member() % 4 * 2 + c % 2;");
      line(str("if (i < ", n, " && f < ", width(k), ") ", to, "[i * ", stride,
               " + f] = ", encoded(g_.dtype(id), finds_ ? mean : sum), ";"));
    });
    block(str("for (int c = 0; c < ", 4 * parts(k), "; ++c)"), inside);
  }

  const std::vector<NodeId> sums_;
  const AttentionTiles tiles_;
  const DType operands_;  ///< the queries': that of normalisers is another one
  const bool finds_;      ///< the normalisers
  const bool ahead_;      ///< loads go out together, before what comes to them is needed
  std::string scores_by_, sums_by_, stored_as_, packs_;
  std::vector<std::string> strides_;                               ///< by tile
  std::map<NodeId, std::pair<std::string, std::string>> columns_;  ///< names and strides
  std::map<std::pair<NodeId, NodeId>, std::string> factors_;
};

}  // namespace

Written write_attention_cores(const WriterInputs& in, std::span<const NodeId> sums) {
  return AttentionCoresWriter(in, sums).run();
}

}  // namespace gradcell::cuda
