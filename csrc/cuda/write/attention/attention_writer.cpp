// Kernels of attention's sums, see ops/combining/attention.h: a block takes 32 rows of the result,
// which are queries or keys, and a few columns, and goes through the others in tiles of 32. The
// scores of a tile are in shared memory, and nothing of the scores' size is anywhere.
#include <algorithm>

#include "cuda/write/attention/attention_text.h"

namespace gradcell::cuda {

namespace {

constexpr int64_t kSide = 32;
constexpr uint32_t kThreads = 256;

class AttentionWriter : AttentionText {
 public:
  AttentionWriter(const WriterInputs& in, NodeId id) : AttentionText(in, id, kSide, kSide) {}

  Written run() {
    count_node(id_);
    const bool sums = at_.c >= 0, finds = at_.log_sum < 0;
    const int64_t width = sums ? outside(node(at_.c)).back() : 1;
    // Of a double's the shared memory holds half as many.
    const int64_t most = compute_type(dtype_) == Compute::F64 ? 32 : 64;
    const int64_t chunks = divide_up(width, most);
    const int64_t tiles_of_head = divide_up(rows(), kSide);
    const std::string tiles = size(tiles_of_head), parts = size(chunks);
    const std::string by_tiles = divisor(tiles_of_head), by_parts = divisor(chunks);
    line(str("const gc_index f0 = t % ", by_parts, " * ", most, ", tile = t / ", by_parts, ";"));
    line("const gc_index top = tile % " + by_tiles + " * 32, head = tile / " + by_tiles + ";");
    operands();
    bounds();
    hidden();
    if (finds) {
      line("gc_no_sums(most, total);");
      over_tiles([&] {
        scores();
        each_score([&] { line("if (hidden(i, j, s)) s = -gc_limits<" + type_ + ">::high();"); });
        line("__syncthreads();");
        line("gc_sum_up(score, most, total);");
      });
    }
    if (sums) {
      line(str("gc_clear(sum);"));
      over_tiles([&] {
        factors();
        scores();
        each_score([&] { weigh(finds); });
        step_.flops += 2 * pairs() * width;
        line(str("gc_add_rows<", most,
                 ">(sum, score, a, b, [&](gc_index j, gc_index f) { return j < ", size(inner()),
                 " && f < ", size(width), " ? ", element(at_.c, "j", "f"), " : 0; }, next, f0);"));
      });
    }
    store(sums, width, most);
    std::string shared = "  __shared__ gc_square<" + type_ + "> a, b, score;\n";
    if (at_.factors < g_[id_].input_count)
      shared += "  __shared__ gc_square<" + type_ + "> weight;\n";
    if (sums) shared += str("  __shared__ ", type_, " sum[32][", most, "];\n");
    if (finds) shared += "  __shared__ " + type_ + " most[32], total[32];\n";
    const int64_t items = heads_ * divide_up(rows(), kSide) * chunks;
    step_.grid = grid_for(items, 1), step_.block_x = kThreads;
    return written(shared + "  for (gc_index t = blockIdx.x; t < " + size(heads_) + " * " + tiles +
                       " * " + parts + "; t += gridDim.x) {\n" + body_.text + "  }\n",
                   "attention", kThreads);
  }

 private:
  // Operands --------------------------------------------------------------------------------------

  /// Pointers to the head's elements of all operands.
  void operands() {
    auto pointer = [&](int k) {
      if (k >= 0) stride_[k] = head_pointer(str("x", k), node(k));
    };
    for (int k : {0, 1, at_.c, at_.log_sum, at_.shift}) pointer(k);
    for (int k = at_.factors; k < g_[id_].input_count; ++k) pointer(k);
    mask_pointer();
  }

  std::string element(int k, const std::string& row, const std::string& feature) {
    const std::string place = row + " * " + stride_[k] + (feature == "0" ? "" : " + " + feature);
    return decoded(g_.dtype(node(k)), str("x", k, "[", place, "]"));
  }

  /// A function of a row of a tile and a feature.
  std::string rows_of(int k, bool result) {
    const Dims dims = outside(node(k));
    const std::string n = size(dims[rank_ - 2]), first = result ? "top" : "next";
    return "[&](gc_index r, gc_index f) { r = " + first + " + r < " + n + " ? " + first +
           " + r : " + n + " - 1; return " + element(k, "r", "f") + "; }";
  }

  void dots(const char* to, int of_queries, int of_keys) {
    const int i = by_keys_ ? of_keys : of_queries, j = by_keys_ ? of_queries : of_keys;
    step_.flops += 2 * pairs() * outside(node(i)).back();
    line(str("gc_dots(", to, ", a, b, ", size(outside(node(i)).back()), ", ", rows_of(i, true),
             ", ", rows_of(j, false), ");"));
  }

  // Tiles -----------------------------------------------------------------------------------------

  /// Whether a score is none, after its mask.
  void hidden() {
    line("auto hidden = [&](gc_index i, gc_index j, " + type_ + "& s) {");
    line("  if (outside(i, j)) return true;");
    if (at_.mask >= 0) {
      const std::string place = by_keys_ ? mask_place("j", "i") : mask_place("i", "j");
      line(hides() ? "  if (" + place + ") return true;"
                   : "  s += " + decoded(g_.dtype(node(at_.mask)), place) + ";");
    }
    line("  return s == -gc_limits<" + type_ + ">::high();");
    line("};");
  }

  template <class F>
  void over_tiles(F write) {
    const Scope inside = nested(write);
    block("for (gc_index next = first; next < end; next += 32)", inside);
  }

  void scores() { dots("score", 0, 1); }

  /// The product of the factors' products.
  void factors() {
    for (int k = at_.factors; k < g_[id_].input_count; k += 2) {
      const bool alone = k == at_.factors;
      dots(alone ? "weight" : "score", k, k + 1);
      if (!alone) line("gc_times(weight, score);");
    }
  }

  /// `write` changes s, which score i, j of the tile is.
  template <class F>
  void each_score(F write) {
    const Scope inside = nested([&] {
      line("const gc_index i = top + e / 32, j = next + e % 32;");
      line(type_ + "& s = score.at[e / 32][e % 32];");
      write();
    });
    block("for (int e = gc_thread(); e < 1024; e += gc_threads())", inside);
  }

  void weigh(bool finds) {
    const std::string m = by_keys_ ? "j" : "i";
    line("if (hidden(i, j, s)) { s = 0; continue; }");
    // (Beside large scores a logarithm of their total is lost.)
    const std::string l = finds ? "most[e / 32]" : element(at_.log_sum, m, "0");
    const std::string over = finds ? " / total[e / 32]" : "";
    std::string w = at_.factors < g_[id_].input_count ? "weight.at[e / 32][e % 32]" : "";
    if (at_.state >= 0) {
      const Kept z = kept();
      line("const " + type_ + " z = " + z.condition + " ? " + z.factor + " : " + type_ + "(0);");
      w = w.empty() ? "z" : "z * " + w;
    }
    if (at_.shift >= 0)
      w = "(" + (w.empty() ? type_ + "(1)" : w) + " - " + element(at_.shift, m, "0") + ")";
    line("s = exp(s - " + l + ")" + over + (w.empty() ? "" : " * " + w) + ";");
  }

  void store(bool sums, int64_t width, int64_t most) {
    const auto [first, stride] = head_of(rows(), width);
    const std::string q = writes(id_), n = size(rows());
    const std::string columns = std::to_string(sums ? most : 1);
    const Scope inside = nested([&] {
      line("const gc_index i = e / " + columns + ", f = e % " + columns + ";");
      line("if (top + i >= " + n + " || f0 + f >= " + size(width) + ") continue;");
      line(q + "[" + first + " + (top + i) * " + stride +
           " + f0 + f] = " + encoded(dtype_, sums ? "sum[i][f]" : "most[i] + log(total[i])") + ";");
    });
    if (sums) line("__syncthreads();");  // a row's logarithm is of the thread that has summed it up
    block("for (int e = gc_thread(); e < 32 * " + columns + "; e += gc_threads())", inside);
  }

  std::map<int, std::string> stride_;  ///< between an operand's rows
};

}  // namespace

Written write_attention(const WriterInputs& in, NodeId id) { return AttentionWriter(in, id).run(); }

}  // namespace gradcell::cuda
