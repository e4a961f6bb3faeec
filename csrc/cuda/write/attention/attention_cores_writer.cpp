// Attention's sums by tensor cores (attention.cuh): a block takes 64 or 128 rows of the results
// through the other rows, 64 at a time; scores are computed once for all the sums of the kernel,
// with a running maximum where the normalisers are to be found.
#include <algorithm>
#include <map>

#include "cuda/float_types.h"
#include "cuda/fuse/attention_tiles.h"
#include "cuda/tiles/tile_products.h"
#include "cuda/write/attention/attention_text.h"

namespace gradcell::cuda {

namespace {

constexpr int64_t kOthers = 64;
/// Registers for sums and what is fetched, where two blocks share a multiprocessor, so that one
/// computes while the other waits for memory: each thread has half of all then, 128. Splitting
/// floats takes more besides than halves do.
constexpr int64_t kShared = 80, kSharedFloats = 64;
/// The same, where all of it is fetched together.
constexpr int64_t kFetched = 96;

class AttentionCoresWriter : AttentionText {
 public:
  AttentionCoresWriter(const WriterInputs& in, std::span<const NodeId> sums)
      : AttentionCoresWriter(in, sums,
                             attention_tiles(in.graph, in.fusion.storage, sums, in.target)) {}

  Written run() {
    for (NodeId id : sums_) count_node(id);
    const int64_t tiles_of_head = divide_up(rows(), side_);
    const std::string tiles = size(tiles_of_head), d = divisor(tiles_of_head);
    line("const gc_index top = t % " + d + str(" * ", side_, ", head = t / ") + d + ";");
    operands();
    bounds();
    if (halves_)
      begin();
    else
      stage(by_keys_, "top", rows());
    for (size_t k = 0; k < sums_.size(); ++k)
      if (at_of(k).c >= 0) line(str("float sum", k, "[Way::pieces][", parts(k), "][4] = {};"));
    if (finds_) {
      line("float most[Way::pieces][2], total[Way::pieces][2] = {};");
      each_row("", [&] { line("most[m][u] = gc_limits<float>::low();"); });
    } else if (!by_keys_) {
      numbers_of_rows();
    }
    const Scope inside = nested([&] { tile(); });
    const bool two = tiles_.stages == 2;
    if (two) line("int place = 0;");
    block(str("for (gc_index next = first; next < end; next += 64",
              two ? str(", place ^= ", tiles_.stage) : "", ")"),
          inside);
    if (way_.parts < 8) put_together();
    if (finds_) total_up();
    for (size_t k = 0; k < sums_.size(); ++k) store(k);
    step_.grid = grid_for(heads_ * divide_up(rows(), side_), 1);
    step_.block_x = 32, step_.block_y = narrow<uint32_t>(way_.threads() / 32);
    step_.shared_bytes = tiles_.bytes;
    return written("  GC_NEEDS_WARPS();\n" +
                       str("  using Way = gc_way<", way_.pieces, ", ", way_.parts, ">;\n") +
                       "  for (gc_index t = blockIdx.x; t < " + size(heads_) + " * " + tiles +
                       "; t += gridDim.x) {\n" + body_.text + "  }\n",
                   "attention", narrow<uint32_t>(way_.threads()), blocks());
  }

 private:
  AttentionCoresWriter(const WriterInputs& in, std::span<const NodeId> sums,
                       const AttentionTiles& tiles)
      : AttentionText(in, leader(in.graph, sums), tiles.way.rows(), kOthers),
        sums_(sums.begin(), sums.end()),
        tiles_(tiles),
        way_(tiles.way),
        operands_(g_.dtype(node(0))),
        halves_(item_size(operands_) == 2),
        finds_(at_.log_sum < 0),
        ahead_(!halves_ && held() <= kFetched) {
    scores_by_ = unit_name(unit_for(operands_, in.target.tf32), operands_);
  }

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
    return way_.parts < 8 && held() <= (halves_ ? kShared : kSharedFloats) ? "gc_two_blocks" : "1";
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
    for (size_t k = 0; k < tiles_.all.size(); ++k) {
      const std::string stride = head_pointer(str("x", k), tiles_.all[k].node);
      // Rows behind each other are apart by what the kernel knows anyway.
      strides_.push_back(a_.inside ? stride : std::to_string(tiles_.all[k].width));
    }
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
  std::string tile_of(const AttentionTile& t, const std::string& place) {
    const bool own = t.by_keys == by_keys_ || tiles_.stages == 1;
    return str("gc_in_tile<", stored_type(g_.dtype(t.node)), ">(", t.offset,
               own ? "" : " + " + place, ")");
  }
  std::string tile_of(NodeId x, bool by_keys) {
    return tile_of(tiles_.of(f_.storage[x], by_keys), "place");
  }

  /// The operands whose rows are keys, or queries, into shared memory: all fetched before the first
  /// is put, and before threads wait for those that still read what was there, if there is room.
  void stage(bool by_keys, const char* first, int64_t n) {
    std::vector<std::string> puts;
    for (size_t k = 0; k < tiles_.all.size(); ++k) {
      const AttentionTile& t = tiles_.all[k];
      if (t.by_keys != by_keys) continue;
      const std::string tile = tile_of(t, "");
      const std::string shape = str("<Way::threads, 64, ", t.width, ">("),
                        from = str("x", k, ", ", strides_[k], ", ", first, ", ", size(n), ", ",
                                   fours());
      if (ahead_) line(str("const auto f", k, " = gc_fetch_rows", shape, from, ");"));
      puts.push_back(ahead_ ? str("gc_put_rows", shape, tile, ", f", k, ");")
                            : str("gc_stage_rows", shape, tile, ", ", from, ");"));
    }
    // (Nobody reads what is there of own rows any more, but perhaps what was given there.)
    if (by_keys != by_keys_ || tiles_.given > tiles_.stage) line("__syncthreads();");
    for (const std::string& put : puts) line(put);
  }
  /// Of halves: rows on their way to shared memory, others to a tile's place.
  void send(bool own, const char* first, const std::string& place) {
    const std::string n = size(own ? rows() : inner());
    for (size_t k = 0; k < tiles_.all.size(); ++k) {
      const AttentionTile& t = tiles_.all[k];
      if ((t.by_keys == by_keys_) == own)
        line(str("gc_send_rows<Way::threads, ", own ? "Way::rows" : "64", ", ", t.width, ">(",
                 tile_of(t, place), ", x", k, ", ", strides_[k], ", ", first, ", ", n, ", ",
                 fours(), ");"));
    }
    if (own) return;
    const std::string more = tiles_.stages == 1 ? "" : " + " + place;
    if (tiles_.masked > 0) {
      const std::string from = by_keys_ ? "top" : first, query = by_keys_ ? first : "top";
      const bool same = tiles_.masked == 1;
      line(str("gc_send_mask<Way::threads, ", tiles_.masked, ", ", way_.keys(by_keys_),
               ">(gc_in_tile<unsigned char>(", tiles_.mask, more, "), mask, ", mask_stride(), ", ",
               same ? "0" : query, ", ", from, ", ", same ? "1" : size(queries_), ", ", size(keys_),
               ", ", fours(), ");"));
    }
    for (const AttentionTile& t : tiles_.numbers) {
      const auto& [name, stride] = columns_.at(t.storage);
      line("gc_send_numbers(" + tile_of(t, place) + ", " + name + ", " + stride + ", " + first +
           ", " + n + ");");
    }
  }
  /// The block's own rows, and the first of the others, which are sent for while those are waited
  /// for.
  void begin() {
    line("__syncthreads();");
    send(true, "top", "");
    if (tiles_.stages == 2) block("if (first < end)", nested([&] { send(false, "first", "0"); }));
    line("gc_arrived();");
    if (!way_.keeps) return;
    line("__syncthreads();");
    for (size_t k = 0; k < tiles_.all.size(); ++k) {
      const AttentionTile& t = tiles_.all[k];
      if (t.by_keys == by_keys_)
        line(str("const auto kept", k, " = gc_keep_rows<", scores_by_, ", Way, ", t.width, ">(",
                 tile_of(t, ""), ");"));
    }
  }
  /// The tile is there; with two stages the next one is sent for.
  void others() {
    if (!halves_) {
      stage(!by_keys_, "next", inner());
      read_ahead();
      return line("__syncthreads();");
    }
    read_ahead();
    if (tiles_.stages == 1) {
      line("__syncthreads();");
      send(false, "next", "");
    }
    line("gc_arrived();");
    line("__syncthreads();");
    if (tiles_.stages == 2)
      block("if (next + 64 < end)",
            nested([&] { send(false, "next + 64", str("(place ^ ", tiles_.stage, ")")); }));
  }
  std::string fours() {
    if (packs_.empty()) packs_ = packs(1) + " > 0";
    return packs_;
  }

  template <class F>
  void each_row(const std::string& declared, F write) {
    if (!declared.empty()) line(declared);
    line("#pragma unroll");
    block("for (int r = 0; r < 2 * Way::pieces; ++r)", nested([&] {
            line("const int m = r / 2, u = r % 2;");
            write();
          }));
  }
  /// Of the rows of a thread, which are queries.
  void numbers_of_rows() {
    const std::string i = "gc_sooner(top + Way::row(m, 2 * u), " + size(rows()) + " - 1)";
    each_row("float above[Way::pieces][2];",
             [&] { line("above[m][u] = gc_above(" + number(node(at_.log_sum), i) + ");"); });
    for (size_t k = 0; k < sums_.size(); ++k)
      if (at_of(k).shift >= 0) {
        const std::string name = str("shift", k);
        each_row("float " + name + "[Way::pieces][2];",
                 [&] { line(name + "[m][u] = " + number(input_of(k, at_of(k).shift), i) + ";"); });
      }
  }

  // Tiles -----------------------------------------------------------------------------------------

  std::string dots(NodeId query, NodeId key) {
    const int64_t features = outside(query).back();
    step_.flops += 2 * pairs() * features;
    const NodeId own = by_keys_ ? key : query, other = by_keys_ ? query : key;
    const AttentionTile& t = tiles_.of(f_.storage[own], by_keys_);
    const std::string rows = way_.keeps
                                 ? str("kept", &t - tiles_.all.data())
                                 : str("gc_rows_there<", scores_by_, ", Way, ", features, ", ",
                                       stored_type(operands_), ">{", tile_of(t, ""), "}");
    return str("gc_dots_warp<", scores_by_, ", Way, ", features, ">(", rows, ", ",
               tile_of(other, !by_keys_), ")");
  }

  int64_t scores() const { return 4 * way_.pieces * way_.parts; }
  /// A bit for each score.
  std::string bits() const { return scores() > 32 ? "unsigned long long" : "unsigned"; }
  std::string bit(const std::string& condition) const {
    return "(" + bits() + ")(" + condition + ") << c";
  }

  template <class F>
  void each_score(F write) {
    line("#pragma unroll");
    const Scope inside = nested([&] {
      line("const int m = c / (4 * Way::parts), p = c / 4 % Way::parts, e = c % 4;");
      line("const gc_index i = top + Way::row(m, e), j = next + Way::other(p, e);");
      write();
    });
    block(str("for (int c = 0; c < ", scores(), "; ++c)"), inside);
  }

  /// What scores are changed by and lies in memory, for all of a thread's at once: loads that do
  /// not wait for each other, nor for the products.
  void read_ahead() {
    if (marks()) {
      line(bits() + " hides = 0;");
      if (!hides()) line("gc_scores<Way> added;");
      each_score([&] {
        line("const gc_index row = gc_sooner(i, " + size(rows()) + " - 1), other = gc_sooner(j, " +
             size(inner()) + " - 1);");
        const std::string x =
            decoded(g_.dtype(node(at_.mask)),
                    by_keys_ ? mask_place("other", "row") : mask_place("row", "other"));
        line(hides() ? "hides |= " + bit(x) + ";" : "added.at[m][p][e] = " + x + ";");
      });
    }
    if (!by_keys_ || finds_ || !ahead_) return;
    of_others("above", node(at_.log_sum));
    for (size_t k = 0; k < sums_.size(); ++k)
      if (at_of(k).shift >= 0) of_others(str("shift", k), input_of(k, at_of(k).shift));
  }
  /// Numbers of the queries that are a thread's other rows.
  void of_others(const std::string& name, NodeId x) {
    line("float " + name + "[2 * Way::parts];");
    line("#pragma unroll");
    line("for (int c = 0; c < 2 * Way::parts; ++c) " + name + "[c] = " +
         number(x, "gc_sooner(next + Way::other(c / 2, c % 2), " + size(inner()) + " - 1)") + ";");
  }
  std::string of_query(const std::string& name, NodeId x) {
    if (!by_keys_) return name + "[m][e / 2]";
    if (ahead_) return name + "[2 * p + e % 2]";
    for (const AttentionTile& t : tiles_.numbers)
      if (t.storage == f_.storage[x]) return tile_of(t, "place") + "[Way::other(p, e)]";
    return number(x, "gc_sooner(j, " + size(inner()) + " - 1)");
  }

  /// `x` of what is hidden becomes `none`: by a mask, and in a tile at an edge, where it is asked
  /// each time, which keeps other tiles free of it.
  void hide(const std::string& x, const std::string& none) {
    auto where = [&](const std::string& hidden) {
      each_score([&] { line("if (" + hidden + ") " + x + " = " + none + ";"); });
    };
    if (marks()) where("hides >> c & 1");
    if (tiles_.masked > 0) {
      const std::string query = by_keys_ ? "Way::other(p, e)" : "Way::row(m, e)",
                        key = by_keys_ ? "Way::row(m, e)" : "Way::other(p, e)";
      block("if (hidden > 0)", nested([&] {
              where("mask_here[" + query + str(" * ", mask_pitch(), " + ") + key + "]");
            }));
    }
    block("if (edge)", nested([&] { where("outside(i, j)"); }));
  }
  /// A warp for which a mask hides all of a tile leaves it out, and asks no further where it hides
  /// none.
  void look_at_mask() {
    line(str("const unsigned char* const mask_here = gc_in_tile<unsigned char>(", tiles_.mask,
             tiles_.stages == 1 ? "" : " + place", ");"));
    line(str("const int hidden = gc_hidden<Way, ", by_keys_ ? "true" : "false", ", ", mask_pitch(),
             ">(mask_here);"));
    line("if (hidden == 2) continue;");
  }
  int64_t mask_pitch() const { return tiles_.masked == 1 ? 0 : way_.keys(by_keys_) + 16; }
  /// Whether there is a bit for what a mask hides.
  bool marks() const { return at_.mask >= 0 && tiles_.masked == 0; }

  void tile() {
    others();
    if (tiles_.masked > 0) look_at_mask();
    line("const bool edge = !inside(next);");
    line("gc_scores<Way> s = " + dots(node(0), node(1)) + ";");
    if (at_.mask >= 0 && !hides())
      each_score([&] {
        line("float& x = s.at[m][p][e];");
        line("x += added.at[m][p][e];");
        line("hides |= " + bit("x == gc_limits<float>::low()") + ";");
      });
    hide("s.at[m][p][e]", "gc_limits<float>::low()");
    if (at_.state >= 0) {
      const std::string keeps = kept().condition;
      line(bits() + " kept = 0;");
      each_score([&] { line("kept |= " + bit(keeps) + ";"); });
    }
    if (finds_) {
      line("float scale[Way::pieces][2];");
      each_piece("gc_raise<" + scores_by_ + ">(s.at[m], most[m], total[m], scale[m]);");
    } else {
      const std::string above = of_query("above", node(at_.log_sum));
      each_score([&] {
        line("float& x = s.at[m][p][e];");
        line("x = gc_powers<" + scores_by_ + ">::weight(x, " +
             (by_keys_ ? "gc_above(" + above + ")" : above) + ");");
      });
    }
    for (size_t k = 0; k < sums_.size(); ++k)
      if (at_of(k).c >= 0) add(k);
  }
  void each_piece(const std::string& statement) {
    line("#pragma unroll");
    line("for (int m = 0; m < Way::pieces; ++m) " + statement);
  }

  /// The factors' products, each once.
  std::vector<std::string> factors(size_t k) {
    std::vector<std::string> found;
    for (int i = at_of(k).factors; i < g_[sums_[k]].input_count; i += 2) {
      const NodeId a = input_of(k, i), b = input_of(k, i + 1);
      std::string& name = factors_[{f_.storage[a], f_.storage[b]}];
      if (name.empty()) {
        name = str("factor", factors_.size());
        line("const gc_scores<Way> " + name + " = " + dots(a, b) + ";");
      }
      found.push_back(name + ".at[m][p][e]");
    }
    return found;
  }

  /// Where the normalisers are found what dropout multiplies with comes to the sum at the end.
  void add(size_t k) {
    const AttentionInputs at = at_of(k);
    const std::vector<std::string> by = factors(k);
    const bool drops = of(k).dropped;
    // Weights may be as small as no float16 is; exponentials are at most 1, and lifted as they are.
    bool lifts = false;
    std::string weights = "s";
    if (!by.empty() || drops || at.shift >= 0) {
      weights = str("weights", k);
      line("gc_scores<Way> " + weights + ";");
      lifts = operands_ == DType::Float16 && !finds_;
      each_score([&] {
        std::string w =
            !drops ? "" : "(kept >> c & 1 ? " + (finds_ ? "1.0f" : kept().factor) + " : 0.0f)";
        for (const std::string& f : by) w += (w.empty() ? "" : " * ") + f;
        if (at.shift >= 0)
          w = "(" + (w.empty() ? "1.0f" : w) + " - " +
              of_query(str("shift", k), input_of(k, at.shift)) + ")";
        line(weights + ".at[m][p][e] = s.at[m][p][e] * " + w + ";");
      });
      if (!finds_) hide(weights + ".at[m][p][e]", "0");
    }
    if (finds_) each_piece(str("gc_scale(sum", k, "[m], scale[m]);"));
    const NodeId c = input_of(k, at.c);
    step_.flops += 2 * pairs() * width(k);
    line(str("gc_add_warp<", scores_by_, ", Way, ", width(k), lifts ? ", true" : ", false", ">(sum",
             k, ", ", weights, ", ", tile_of(c, !by_keys_), ");"));
  }

  // Results ---------------------------------------------------------------------------------------

  /// The second warp of a group gives the first what it has.
  void put_together() {
    line("__syncthreads();");
    line("float* half = gc_in_tile<float>(0) + gc_member() % 128;");
    if (finds_) line("gc_over_quad(total[0]);");
    block("if (gc_member() >= 128)", nested([&] {
            if (finds_) line("gc_give_totals(half, most[0], total[0]);");
            for (size_t k = 0; k < sums_.size(); ++k)
              if (at_of(k).c >= 0) line(str("gc_give(half, sum", k, "[0]);"));
          }));
    line("__syncthreads();");
    line("if (gc_member() >= 128) continue;");
    line("float own[2] = {1, 1}, other[2] = {1, 1};");
    if (finds_) line("gc_take_totals<" + scores_by_ + ">(half, most[0], total[0], own, other);");
    for (size_t k = 0; k < sums_.size(); ++k)
      if (at_of(k).c >= 0) line(str("gc_take(half, sum", k, "[0], own, other);"));
  }

  /// What a row's sum counts.
  void total_up() {
    if (way_.parts == 8) each_piece("gc_over_quad(total[m]);");
    if (tiles_.sums == 0) return;
    const std::string by = at_.state >= 0 ? kept().factor : "1.0f";
    each_row("float counted[Way::pieces][2];",
             [&] { line("counted[m][u] = total[m][u] == 0 ? 0.0f : " + by + " / total[m][u];"); });
  }

  void store(size_t k) {
    const NodeId id = sums_[k];
    const auto [first, stride] = head_of(rows(), width(k));
    const std::string q = writes(id), n = size(rows()), to = str("to", k);
    const std::string powers = "gc_powers<" + scores_by_ + ">::";
    line(std::string(stored_type(g_.dtype(id))) + "* const " + to + " = " + q + " + " + first +
         ";");
    if (at_of(k).c < 0) {
      each_row("", [&] {
        line("const gc_index i = top + Way::row(m, 2 * u);");
        line(
            "if (i < " + n + " && gc_member() % 4 == 0) " + to + "[i * " + stride + "] = " +
            encoded(g_.dtype(id), powers + "log_sum(" + powers + "base(most[m][u]), total[m][u])") +
            ";");
      });
      return;
    }
    const std::string by = finds_ ? "counted[m][c % 4 / 2]" : "(1 / " + powers + "counted)";
    line("#pragma unroll");
    const Scope inside = nested([&] {
      line(str("const int m = a / ", 4 * parts(k), ", c = a % ", 4 * parts(k), ";"));
      line("const gc_index i = top + Way::row(m, c % 4);");
      line("const int f = c / 4 * 8 + gc_member() % 4 * 2 + c % 2;");
      line(str("if (i < ", n, " && f < ", width(k), ") ", to, "[i * ", stride,
               " + f] = ", encoded(g_.dtype(id), str("sum", k, "[m][c / 4][c % 4] * ", by)), ";"));
    });
    block(str("for (int a = 0; a < ", 4 * way_.pieces * parts(k), "; ++a)"), inside);
  }

  const std::vector<NodeId> sums_;
  const AttentionTiles tiles_;
  const AttentionWay way_;
  const DType operands_;  ///< the queries': that of normalisers is another one
  const bool halves_;
  const bool finds_;  ///< the normalisers
  const bool ahead_;  ///< loads go out together, before what comes to them is needed
  std::string scores_by_, packs_;
  std::vector<std::string> strides_;                               ///< by tile
  std::map<NodeId, std::pair<std::string, std::string>> columns_;  ///< names and strides
  std::map<std::pair<NodeId, NodeId>, std::string> factors_;
};

}  // namespace

Written write_attention_cores(const WriterInputs& in, std::span<const NodeId> sums) {
  return AttentionCoresWriter(in, sums).run();
}

}  // namespace gradcell::cuda
