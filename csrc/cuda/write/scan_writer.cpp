// Kernels of scans: sums, products, the best so far. Lines that lie side by side are scanned by a
// block's threads together, four neighbouring elements a thread; lines across memory by a thread
// each, whose neighbours have the neighbouring lines. Long lines are cut into chunks, of which a
// first pass finds what each comes to, and a second begins with those before its own.
#include <algorithm>

#include "cuda/write/single_node_writer.h"
#include "ops/moving/order.h"

namespace gradcell::cuda {

namespace {

/// Elements that a thread of a block has of a line.
constexpr int64_t kEach = 4;
constexpr uint32_t kScanBlock = 256;

/// How a node scans its lines: those of the best element so far as others do.
ScanAttributes scan_of(const Graph& g, NodeId id) {
  if (form(g, id) != Form::Running) return attributes<ScanAttributes>(g, id);
  const auto rank = narrow<int64_t>(g.dims(id).size());
  return {rank - 1 - attributes<RunningAttributes>(g, id).inner, false, false};
}

/// Whether a line's elements lie side by side.
bool side_by_side(const Split& s) {
  return s.gone.strides.empty() || s.gone.strides[0] == 1 || s.length == 1;
}

class ScanWriter : AloneWriter {
 public:
  ScanWriter(const WriterInputs& in, NodeId id)
      : AloneWriter(in, id),
        a_(scan_of(g_, id)),
        split_(split(g_.dims(id), Dims{a_.axis})),
        plan_(plan_scan(g_, id)),
        each_(divide_up(split_.length, plan_.chunks)) {}

  /// What each chunk comes to.
  Written chunks(BufferId partial) {
    const std::string type = this->type(), op = this->op();
    const std::string p = buffer(partial, type.c_str(), true, "q0");
    step_.bytes_written += plan_.partial_bytes;
    const bool lines = side_by_side(split_);
    bounds(lines);
    const std::string base = place_in(split_.kept, line_);
    const Scope inside =
        nested([&] { combine(op, "s", element(place(base, split_.gone, from_begin("k")), "k")); });
    line(type + " s = " + op + "::none();");
    line("#pragma unroll 8");
    block(lines ? "for (gc_index k = begin + threadIdx.x; k < end; k += blockDim.x)"
                : "for (gc_index k = begin; k < end; ++k)",
          inside);
    if (lines) line("s = gc_across<" + op + ">(s);");
    line((lines ? "if (threadIdx.x == 0) " : "") + p + "[t] = s;");
    return lines ? each_block(items(), item_count(), kScanBlock, "scan_chunks")
                 : each_thread(items(), item_count(), 64, "scan_chunks");
  }

  Written finished(BufferId partial) {
    return side_by_side(split_) ? by_blocks(partial) : by_threads(partial);
  }

 private:
  bool is_best() const { return form(g_, id_) == Form::Running; }
  DType from() const { return g_.dtype(g_.input(id_, 0)); }
  std::string type() const { return is_best() ? best_type(from()) : sum_type(); }
  std::string op() const {
    if (!is_best()) return in_reduction(how(), sum_type());
    const bool largest = attributes<RunningAttributes>(g_, id_).largest;
    return str("gc_extreme<", type_name(compute_type(from())), largest ? ", true" : ", false",
               ", true>");
  }
  /// The element at a place of the operand, which is the k-th of its line.
  std::string element(const std::string& at, const std::string& k) {
    const std::string v = input(id_, 0, flat(at));
    return is_best() ? compared(from(), v, k) : v;
  }
  std::string made(const std::string& s) const {
    return is_best() ? stored(from(), s, attributes<RunningAttributes>(g_, id_).values) : result(s);
  }

  bool several() const { return plan_.chunks > 1; }
  int64_t item_count() const { return split_.outputs * plan_.chunks; }
  /// Lines and their chunks, in the order of `t`.
  std::string items() {
    const std::string n = size(split_.outputs), c = size(plan_.chunks);
    return n == "1" ? c : c == "1" ? n : n + " * " + c;
  }

  /// Which line t is of and which of its chunks, and where that begins and ends: a line's chunks
  /// are neighbours where it is one of many blocks', lines are where it is a thread's.
  void bounds(bool lines) {
    line_ = split_.outputs == 1 ? "0" : "t", chunk_ = several() ? "t" : "0";
    if (several() && split_.outputs > 1) {
      const std::string n = divisor(lines ? plan_.chunks : split_.outputs);
      line_ = let("gc_index", (lines ? "t / " : "t % ") + n, "o");
      chunk_ = let("gc_index", (lines ? "t % " : "t / ") + n, "j");
    }
    const std::string each = size(each_), length = size(split_.length);
    line("const gc_index begin = " + (several() ? chunk_ + " * " + each : "0") + ";");
    line("const gc_index end = " +
         (several() ? "begin + " + each + " < " + length + " ? begin + " + each + " : " + length
                    : length) +
         ";");
  }

  std::string partial_of(const std::string& chunk) {
    if (split_.outputs == 1) return chunk;
    return side_by_side(split_) ? line_ + " * " + size(plan_.chunks) + " + " + chunk
                                : chunk + " * " + size(split_.outputs) + " + " + line_;
  }

  std::string from_begin(const std::string& k) {
    return a_.reverse ? let("gc_index", size(split_.length) + " - 1 - " + k, "k") : k;
  }

  void combine(const std::string& op, const std::string& s, const std::string& v) {
    line(s + " = " + op + "::of(" + s + ", " + v + ");");
  }

  std::string earlier(BufferId partial) {
    step_.bytes_read += plan_.partial_bytes;
    return buffer(partial, type().c_str(), false, "w0");
  }

  Written by_threads(BufferId partial) {
    count_node(id_);
    const std::string op = this->op(), q = writes(id_);
    const std::string p = several() ? earlier(partial) : "";
    bounds(false);
    const std::string base = place_in(split_.kept, line_);
    const Scope inside = nested([&] {
      const std::string at = place(base, split_.gone, from_begin("k"));
      const std::string v = element(at, "k");
      if (!a_.exclusive) combine(op, "s", v);
      line(q + "[" + at + "] = " + made("s") + ";");
      if (a_.exclusive) combine(op, "s", v);
    });
    line(type() + " s = " + op + "::none();");
    if (several())
      line("for (gc_index k = 0; k < " + chunk_ + "; ++k) s = " + op + "::of(s, " + p + "[" +
           partial_of("k") + "]);");
    line("#pragma unroll 4");
    block("for (gc_index k = begin; k < end; ++k)", inside);
    return each_thread(items(), item_count(), 64, "cumsum");
  }

  /// The threads of one y have a chunk; all of a block take equally many turns.
  Written by_blocks(BufferId partial) {
    count_node(id_);
    const std::string type = this->type(), op = this->op(), q = writes(id_);
    const std::string p = several() ? earlier(partial) : "", n = items();
    line("const bool live = t0 + threadIdx.y < " + n + ";");
    line("const gc_index t = live ? t0 + threadIdx.y : " + n + " - 1;");
    bounds(true);
    line(type + " s = " + op + "::none();");
    if (several()) {
      line("for (gc_index k = threadIdx.x; k < " + chunk_ + "; k += blockDim.x) s = " + op +
           "::of(s, " + p + "[" + partial_of("k") + "]);");
      line("s = gc_across<" + op + ">(s);");
    }
    const std::string base = place_in(split_.kept, line_), four = std::to_string(kEach);
    const Scope whole = nested([&] {
      line("const gc_index first = begin + turn + threadIdx.x * " + four + ";");
      line(type + " own[" + four + "], mine = " + op + "::none(), all;");
      line("#pragma unroll");
      block("for (int u = 0; u < " + four + "; ++u)", nested([&] {
              line("const gc_index k = first + u;");
              line("own[u] = " + op + "::none();");
              block("if (k < end)", nested([&] {
                      line("own[u] = " + element(place(base, split_.gone, from_begin("k")), "k") +
                           ";");
                    }));
              combine(op, "mine", "own[u]");
            }));
      line(type + " before = gc_before<" + op + ">(mine, all);");
      line("before = " + op + "::of(s, before);");
      line("#pragma unroll");
      block("for (int u = 0; u < " + four + "; ++u)", nested([&] {
              line("const gc_index k = first + u;");
              if (!a_.exclusive) combine(op, "before", "own[u]");
              block("if (live && k < end)", nested([&] {
                      line(q + "[" + place(base, split_.gone, from_begin("k")) +
                           "] = " + made("before") + ";");
                    }));
              if (a_.exclusive) combine(op, "before", "own[u]");
            }));
      combine(op, "s", "all");
    });
    block("for (gc_index turn = 0; turn < " + size(each_) + "; turn += " + four + " * blockDim.x)",
          whole);
    uint32_t lanes = 1;
    while (lanes < kScanBlock && lanes * kEach < each_) lanes *= 2;
    step_.block_x = lanes, step_.block_y = kScanBlock / lanes;
    step_.grid = grid_for(item_count(), step_.block_y);
    return written("  for (gc_index t0 = blockIdx.x * blockDim.y; t0 < " + n +
                       "; t0 += gridDim.x * blockDim.y) {\n" + body_.text + "  }\n",
                   "cumsum", kScanBlock);
  }

  const ScanAttributes a_;
  const Split split_;
  const Scan plan_;
  const int64_t each_;  ///< elements of a chunk
  std::string line_, chunk_;
};

/// Linear recurrences: many lines by a thread each; few long ones by a block each, whose threads
/// compose the steps of four elements and then those of one another.
class RecurrenceWriter : AloneWriter {
 public:
  RecurrenceWriter(const WriterInputs& in, NodeId id)
      : AloneWriter(in, id),
        how_(attributes<ScanAttributes>(g_, id)),
        split_(split(g_.dims(id), Dims{how_.axis})) {}

  Written write() {
    factors_ = reads(f_.storage[g_.input(id_, 0)]), terms_ = reads(f_.storage[g_.input(id_, 1)]);
    to_ = writes(id_);
    count_node(id_);
    constexpr int64_t kFewLines = 4096, kShort = 64;
    return split_.outputs < kFewLines && split_.length > kShort ? by_blocks() : by_threads();
  }

 private:
  std::string begin() { return split_.outputs == 1 ? "0" : place_in(split_.kept, "t"); }
  std::string at(const std::string& base, const std::string& k) {
    return place(base, split_.gone,
                 how_.reverse ? let("gc_index", size(split_.length) + " - 1 - " + k, "k") : k);
  }
  std::string element(const std::string& of, const std::string& i) {
    return decoded(dtype_, of + "[" + i + "]");
  }
  void store(const std::string& i, const std::string& y) {
    line(to_ + "[" + i + "] = " + result(y) + ";");
  }

  Written by_threads() {
    const std::string base = begin();
    const Scope step = nested([&] {
      const std::string i = at(base, "k");
      if (how_.exclusive) store(i, "s");
      line("s = " + element(factors_, i) + " * s + " + element(terms_, i) + ";");
      if (!how_.exclusive) store(i, "s");
    });
    line(sum_type() + " s = 0;");
    line("#pragma unroll 4");
    block("for (gc_index k = 0; k < " + size(split_.length) + "; ++k)", step);
    return each_thread(size(split_.outputs), split_.outputs, 64, "linear_recurrence");
  }

  /// All threads of a block take equally many turns.
  Written by_blocks() {
    const std::string type = sum_type(), steps = "gc_affine<" + type + ">";
    const std::string op = "gc_after<" + type + ">", four = std::to_string(kEach);
    const std::string base = begin(), length = size(split_.length);
    auto each_of_four = [&](auto body) {
      line("#pragma unroll");
      block("for (int u = 0; u < " + four + "; ++u)", nested([&] {
              line("const gc_index k = first + u;");
              body();
            }));
    };
    line(type + " s = 0;");
    block("for (gc_index turn = 0; turn < " + length + "; turn += " + four + " * blockDim.x)",
          nested([&] {
            line("const gc_index first = turn + threadIdx.x * " + four + ";");
            line(steps + " own[" + four + "], mine = " + op + "::none(), all;");
            each_of_four([&] {
              line("own[u] = " + op + "::none();");
              block("if (k < " + length + ")", nested([&] {
                      const std::string i = at(base, "k");
                      line("own[u] = {" + element(factors_, i) + ", " + element(terms_, i) + "};");
                    }));
              line("mine = " + op + "::of(mine, own[u]);");
            });
            line("const " + steps + " before = gc_before<" + op + ">(mine, all);");
            line(type + " y = before.factor * s + before.term;");
            each_of_four([&] {
              auto put = [&] {
                block("if (k < " + length + ")", nested([&] { store(at(base, "k"), "y"); }));
              };
              if (how_.exclusive) put();
              line("y = own[u].factor * y + own[u].term;");
              if (!how_.exclusive) put();
            });
            line("s = all.factor * s + all.term;");
          }));
    return each_block(size(split_.outputs), split_.outputs, kScanBlock, "linear_recurrence");
  }

  const ScanAttributes how_;
  const Split split_;
  std::string factors_, terms_, to_;
};

}  // namespace

Scan plan_scan(const Graph& g, NodeId id) {
  const Split s = split(g.dims(id), Dims{scan_of(g, id).axis});
  // How lines are cut depends on the shape alone, and so do the results.
  const int64_t outputs = std::max<int64_t>(1, s.outputs);
  const int64_t most =
      side_by_side(s) ? std::min<int64_t>(1024 / outputs, divide_up(s.length, 4096))
                      : std::min<int64_t>({(1 << 16) / outputs, divide_up(s.length, 64), 1024});
  Scan scan{std::max<int64_t>(1, most), 0};
  if (scan.chunks > 1)
    scan.partial_bytes =
        static_cast<size_t>(s.outputs * scan.chunks) *
        (form(g, id) == Form::Running ? kBestSize
                                      : accumulator_size(spec(g, id).combine, g.dtype(id)));
  return scan;
}

Written write_recurrence(const WriterInputs& in, NodeId id) {
  return RecurrenceWriter(in, id).write();
}

std::vector<Written> write_scan(const WriterInputs& in, NodeId id, BufferId partial) {
  std::vector<Written> steps;
  if (plan_scan(in.graph, id).chunks > 1) steps.push_back(ScanWriter(in, id).chunks(partial));
  steps.push_back(ScanWriter(in, id).finished(partial));
  return steps;
}

}  // namespace gradcell::cuda
