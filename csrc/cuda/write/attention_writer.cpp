// Kernels of attention's sums, see ops/combining/attention.h: a block takes 32 rows of the result,
// which are queries or keys, and a few columns, and goes through the others in tiles of 32. The
// scores of a tile are in shared memory, and nothing of the scores' size is anywhere.
#include <algorithm>
#include <bit>
#include <cstdio>

#include "cuda/write/single_node_writer.h"
#include "ops/combining/attention.h"

namespace gradcell::cuda {

namespace {

constexpr int64_t kSide = 32;
constexpr uint32_t kThreads = 256;

class AttentionWriter : AloneWriter {
 public:
  AttentionWriter(const WriterInputs& in, NodeId id)
      : AloneWriter(in, id),
        op_(g_[id].op),
        a_(attributes<AttentionAttributes>(g_, id)),
        at_(attention_inputs(op_, a_)),
        by_keys_(attention_by_keys(op_)) {
    const Dims q = outside(0), k = outside(1);
    rank_ = q.size();
    lead_ = Dims(q.begin(), q.end() - 2);
    heads_ = product(q, 0, rank_ - 2);
    queries_ = q[rank_ - 2], keys_ = k[rank_ - 2];
    type_ = type_name(compute_type(dtype_));
  }

  Written run() {
    require(!a_.written, ErrorKind::NotImplemented, info(op_).name,
            " as it was written of a softmax has no kernel for a GPU");
    count_node(id_);
    const bool sums = at_.c >= 0, finds = at_.log_sum < 0;
    const int64_t width = sums ? outside(at_.c).back() : 1;
    // Of a double's the shared memory holds half as many.
    const int64_t most = compute_type(dtype_) == Compute::F64 ? 32 : 64;
    const int64_t chunks = divide_up(width, most), rows = by_keys_ ? keys_ : queries_;
    const std::string tiles = size(divide_up(rows, kSide)), parts = size(chunks);
    line("const gc_index f0 = t % " + parts + str(" * ", most, ", top = t / ") + parts + " % " +
         tiles + " * 32, head = t / (" + parts + " * " + tiles + ");");
    operands();
    bounds();
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
    const int64_t items = heads_ * divide_up(rows, kSide) * chunks;
    step_.grid = grid_for(items, 1), step_.block_x = kThreads;
    return written(shared + "  for (gc_index t = blockIdx.x; t < " + size(heads_) + " * " + tiles +
                       " * " + parts + "; t += gridDim.x) {\n" + body_.text + "  }\n",
                   "attention", kThreads);
  }

 private:
  NodeId node(int k) const { return g_.input(id_, k); }
  /// [..., heads, rows, features]
  Dims outside(int k) const { return heads_outside(g_.dims(node(k)), a_.inside); }
  int64_t inner() const { return by_keys_ ? queries_ : keys_; }

  /// How many queries see how many keys, but for what a mask hides.
  int64_t pairs() const {
    int64_t n = 0;
    for (int64_t m = 0; m < queries_; ++m)
      n += std::max<int64_t>(0, std::min(keys_, m + std::min(a_.ahead, keys_) + 1) -
                                    std::max<int64_t>(0, m - std::min(a_.behind, queries_)));
    return n * heads_;
  }

  // Operands --------------------------------------------------------------------------------------

  /// Where a head's elements of so many rows of `features` begin, and how far its rows are apart.
  std::pair<std::string, std::string> head_of(int64_t rows, int64_t features) {
    const std::string row = size(features);
    if (!a_.inside) return {"head * " + size(rows) + " * " + row, row};
    const std::string heads = size(lead_.back());
    return {"(head / " + heads + " * " + size(rows) + " * " + heads + " + head % " + heads +
                ") * " + row,
            heads + " * " + row};
  }

  /// Pointers to the head's elements of all operands.
  void operands() {
    auto pointer = [&](int k) {
      if (k < 0) return;
      const Dims dims = outside(k);
      const auto [first, stride] = head_of(dims[rank_ - 2], dims.back());
      line(str("const ", stored_type(g_.dtype(node(k))), "* const x", k, " = ",
               reads(f_.storage[node(k)]), " + ", first, ";"));
      stride_[k] = stride;
    };
    for (int k : {0, 1, at_.c, at_.log_sum, at_.shift}) pointer(k);
    for (int k = at_.factors; k < g_[id_].input_count; ++k) pointer(k);
    if (at_.mask >= 0) {
      const Dims& dims = g_.dims(node(at_.mask));
      View heads{lead_, row_major(dims), 0};
      heads.strides.resize(rank_ - 2);
      for (size_t k = 0; k + 2 < rank_; ++k)
        if (dims[k] == 1) heads.strides[k] = 0;
      const std::string first = Writer::place_in(heads, 0, rank_ - 2, "head", 0);
      line(str("const ", stored_type(g_.dtype(node(at_.mask))),
               "* const mask = ", reads(f_.storage[node(at_.mask)]), " + ", first, ";"));
    }
  }

  std::string element(int k, const std::string& row, const std::string& feature) {
    const std::string place = row + " * " + stride_[k] + (feature == "0" ? "" : " + " + feature);
    return decoded(g_.dtype(node(k)), str("x", k, "[", place, "]"));
  }

  /// A function of a row of a tile and a feature.
  std::string rows_of(int k, bool result) {
    const Dims dims = outside(k);
    const std::string n = size(dims[rank_ - 2]), first = result ? "top" : "next";
    return "[&](gc_index r, gc_index f) { r = " + first + " + r < " + n + " ? " + first +
           " + r : " + n + " - 1; return " + element(k, "r", "f") + "; }";
  }

  void dots(const char* to, int of_queries, int of_keys) {
    const int i = by_keys_ ? of_keys : of_queries, j = by_keys_ ? of_queries : of_keys;
    step_.flops += 2 * pairs() * outside(i).back();
    line(str("gc_dots(", to, ", a, b, ", size(outside(i).back()), ", ", rows_of(i, true), ", ",
             rows_of(j, false), ");"));
  }

  // Tiles -----------------------------------------------------------------------------------------

  /// Which rows see which, and `hidden`: whether a score is none, after its mask.
  void bounds() {
    const int64_t far = std::max(queries_, keys_);
    auto least = [&](int64_t n) { return std::clamp(n, -far, far); };
    const int64_t behind = least(a_.behind), ahead = least(a_.ahead);
    auto shifted = [&](const char* from, int64_t by) {
      return by == 0 ? from : by > 0 ? str(from, " + ", size(by)) : str(from, " - ", size(-by));
    };
    const std::string n = size(inner()), none = "-gc_limits<" + type_ + ">::high()";
    line("const gc_index first = gc_later(0, " + shifted("top", by_keys_ ? -ahead : -behind) +
         ");");
    line("const gc_index end = gc_sooner(" + n + ", " +
         shifted("top + 32", by_keys_ ? behind : ahead) + ");");
    const std::string m = by_keys_ ? "j" : "i", key = by_keys_ ? "i" : "j";
    line("auto hidden = [&](gc_index i, gc_index j, " + type_ + "& s) {");
    line("  if (i >= " + size(by_keys_ ? keys_ : queries_) + " || j >= " + n + ") return true;");
    if (behind < far || ahead < far)
      line("  if (" + shifted(key.c_str(), 0) + " - " + m + " > " + signed_size(ahead) + " || " +
           m + " - " + key + " > " + signed_size(behind) + ") return true;");
    if (at_.mask >= 0) {
      const Dims& dims = g_.dims(node(at_.mask));
      const std::string place =
          "mask[" + (dims[rank_ - 2] == 1 ? "" : m + " * " + size(keys_) + " + ") + key + "]";
      const DType t = g_.dtype(node(at_.mask));
      line(t == DType::Bool ? "  if (" + place + ") return true;"
                            : "  s += " + decoded(t, place) + ";");
    }
    line("  return s == " + none + ";");
    line("};");
  }
  std::string signed_size(int64_t n) { return n < 0 ? "-" + size(-n) : size(n); }

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
    const std::string m = by_keys_ ? "j" : "i", n = by_keys_ ? "i" : "j";
    line("if (hidden(i, j, s)) { s = 0; continue; }");
    const std::string l =
        finds ? "(most[e / 32] + log(total[e / 32]))" : element(at_.log_sum, m, "0");
    std::string w = at_.factors < g_[id_].input_count ? "weight.at[e / 32][e % 32]" : "";
    if (at_.state >= 0) {
      const NodeId state = f_.storage[node(at_.state)];
      const double keep = std::bit_cast<double>(a_.keep);
      char literals[2][40];
      std::snprintf(literals[0], 40, "%.9g", static_cast<double>(static_cast<float>(keep)));
      std::snprintf(literals[1], 40, "%.17g", 1 / keep);
      const std::string key = value(state, flat("0")), offset = value(state, flat("1"));
      line("const " + type_ + " z = gc_uniform(" + key + ", " + offset + ", ((gc_long)(head % " +
           size(a_.period) + ") * " + size(queries_) + " + " + m + ") * " + size(keys_) + " + " +
           n + ") < float(" + literals[0] + ") ? " + type_ + "(" + literals[1] + ") : " + type_ +
           "(0);");
      w = w.empty() ? "z" : "z * " + w;
    }
    if (at_.shift >= 0)
      w = "(" + (w.empty() ? type_ + "(1)" : w) + " - " + element(at_.shift, m, "0") + ")";
    line("s = exp(s - " + l + ")" + (w.empty() ? "" : " * " + w) + ";");
  }

  void store(bool sums, int64_t width, int64_t most) {
    const int64_t rows = by_keys_ ? keys_ : queries_;
    const auto [first, stride] = head_of(rows, width);
    const std::string q = writes(id_), n = size(rows);
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

  const Op op_;
  const AttentionAttributes a_;
  const AttentionInputs at_;
  const bool by_keys_;  ///< the result's rows are keys
  size_t rank_ = 0;
  Dims lead_;
  int64_t heads_ = 0, queries_ = 0, keys_ = 0;
  std::string type_;
  std::map<int, std::string> stride_;  ///< between an operand's rows
};

}  // namespace

Written write_attention(const WriterInputs& in, NodeId id) { return AttentionWriter(in, id).run(); }

}  // namespace gradcell::cuda
