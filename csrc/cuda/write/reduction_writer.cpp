#include "cuda/write/kernel_writers.h"

#include <algorithm>

#include "cuda/write/single_node_writer.h"

namespace gradcell::cuda {

namespace {

// Kernels of one node -----------------------------------------------------------------------------

class NodeWriter : AloneWriter {
 public:
  using AloneWriter::AloneWriter;

  /// One pass, or the first of two: partial results of chunks.
  Written reduction(BufferId partial) {
    count_node(id_);
    const Reduction plan = plan_reduction(g_, id_);
    const Split s = split(g_.dims(g_.input(id_, 0)), g_.attrs(id_));
    const std::string type = sum_type(), op = in_reduction(how(), type);
    const bool two = plan.chunks > 1;
    if (two) step_.bytes_written += plan.partial_bytes;
    std::string to = two ? buffer(partial, type.c_str(), true, "q0") : writes(id_);
    std::string outputs = size(s.outputs), length = size(s.length), chunks = size(plan.chunks);
    const bool quads = !plan.columns && comes_in_quads(s);
    int64_t of_chunk = divide_up(s.length, plan.chunks);
    if (quads) of_chunk = divide_up(of_chunk, kQuad) * kQuad;
    std::string each = size(of_chunk);
    auto part = [&](bool within) {  // of t: which output, which chunk
      return let("gc_index",
                 (within ? "t % " : "t / ") + divisor(plan.columns ? s.outputs : plan.chunks), "o");
    };
    std::string o = s.outputs == 1 ? "0" : two ? part(plan.columns) : "t";
    std::string base = place_in(s.kept, o);
    if (two) {
      std::string c = s.outputs == 1 ? "t" : part(!plan.columns);
      line("const gc_index begin = " + c + " * " + each + ";");
      line("const gc_index end = begin + " + each + " < " + length + " ? begin + " + each + " : " +
           length + ";");
    }
    std::string from = two ? "begin" : "0", end = two ? "end" : length;
    if (!quads || !reduce_quads(type, op, base, from, end)) {
      const Scope inside = nested([&] {
        line("s = " + op + "::of(s, " + input(id_, 0, flat(place(base, s.gone, "k"))) + ");");
      });
      line(type + " s = " + op + "::none();");
      line("#pragma unroll 8");
      if (!plan.columns) from = two ? from + " + threadIdx.x" : "threadIdx.x";
      block("for (gc_index k = " + from + "; k < " + end +
                (plan.columns ? "; ++k)" : "; k += blockDim.x)"),
            inside);
    }
    if (!plan.columns) line("s = gc_across<" + op + ">(s);");
    line((plan.columns ? "" : "if (threadIdx.x == 0) ") + to + "[t] = " + (two ? "s" : result()) +
         ";");

    std::string all = two ? outputs == "1" ? chunks : outputs + " * " + chunks : outputs;
    const int64_t items = s.outputs * plan.chunks, work = divide_up(s.length, plan.chunks);
    if (plan.columns) return each_thread(all, items, kBlock, "reduce");
    return each_block(all, items,
                      work > 2048  ? kMaxBlock
                      : work > 256 ? 256
                      : work > 64  ? 64
                                   : 32,
                      "reduce");
  }

  /// The partial results of each output, in order.
  Written finished_reduction(BufferId partial) {
    count_node(id_);
    const Reduction plan = plan_reduction(g_, id_);
    const int64_t count = split(g_.dims(g_.input(id_, 0)), g_.attrs(id_)).outputs;
    const std::string type = sum_type(), op = in_reduction(how(), type);
    step_.bytes_read += plan.partial_bytes;
    std::string p = buffer(partial, type.c_str(), false, "p0"), q = writes(id_);
    std::string outputs = size(count), chunks = size(plan.chunks);
    line(type + " s = " + op + "::none();");
    std::string place = outputs == "1" ? "k"
                        : plan.columns ? "k * " + outputs + " + t"
                                       : "t * " + chunks + " + k";
    line("#pragma unroll 8");
    line("for (gc_index k = threadIdx.x; k < " + chunks + "; k += blockDim.x) s = " + op +
         "::of(s, " + p + "[" + place + "]);");
    line("s = gc_across<" + op + ">(s);");
    line("if (threadIdx.x == 0) " + q + "[t] = " + result() + ";");
    Written w = each_block(outputs, count, plan.chunks > 64 ? 256 : 32, "reduce");
    w.title += "_finish";
    w.step.nodes = 0;
    return w;
  }

  Written extremum() {
    count_node(id_);
    NodeId x = g_.input(id_, 0);
    const Split s = split(g_.dims(x), g_.attrs(id_));
    std::string q = writes(id_), type = type_name(compute_type(g_.dtype(x)));
    std::string outputs = size(s.outputs), length = size(s.length);
    std::string op = "gc_extreme<" + type + (how() == Combine::Max ? ", true>" : ", false>");
    std::string base = place_in(s.kept, s.outputs == 1 ? "0" : "t");
    const Scope inside = nested([&] {
      line("s = " + op + "::of(s, {" + input(id_, 0, flat(place(base, s.gone, "k"))) + ", k});");
    });
    line("gc_best<" + type + "> s = {0, -1};");
    block("for (gc_index k = threadIdx.x; k < " + length + "; k += blockDim.x)", inside);
    line("s = gc_across<" + op + ">(s);");
    line("if (threadIdx.x == 0) " + q + "[t] = (" + type_name(compute_type(g_.dtype(id_))) +
         ")s.at;");
    return each_block(outputs, s.outputs, s.length > 256 ? 256 : 32, "arg");
  }

  Written bias(NodeId bias) {
    std::string q = writes(id_), p = reads(bias);
    const std::string n = size(g_.count(id_));
    std::string column = g_.count(bias) == 1 ? "0" : "i % " + divisor(g_.count(bias));
    std::string sum = decoded(dtype_, q + "[i]") + " + " + decoded(dtype_, p + "[" + column + "]");
    count_node(id_);
    step_.bytes_read += bytes(id_);
    return each_element(n, q + "[i] = " + encoded(dtype_, sum), "bias");
  }

  Written integer_product() {
    count_node(id_);
    const auto p = attributes<ProductAttributes>(g_, id_);
    const auto [m, n, k] = sizes_of(g_.dims(g_.input(id_, 0)), g_.dims(id_), p);
    require(g_[id_].input_count == 2, ErrorKind::Runtime,
            "sums of integer products are not merged");
    std::string a = reads(f_.storage[g_.input(id_, 0)]), b = reads(f_.storage[g_.input(id_, 1)]);
    std::string q = writes(id_), M = size(m), N = size(n), K = size(k), all = size(g_.count(id_));
    const std::string rows = divisor(m), columns = divisor(n);
    line("const gc_index j = t % " + columns + ", line = t / " + columns + ";");
    line("const gc_index i = line % " + rows + ", o = line / " + rows + ";");
    std::string left = a + "[o * " + M + " * " + K + " + " +
                       (p.transpose_a ? "k * " + M + " + i" : "i * " + K + " + k") + "]";
    std::string right = b + "[o * " + K + " * " + N + " + " +
                        (p.transpose_b ? "j * " + K + " + k" : "k * " + N + " + j") + "]";
    line("long long s = 0;");
    line("for (gc_index k = 0; k < " + K + "; ++k) s += (long long)" + left + " * " + right + ";");
    line(q + "[t] = " + result() + ";");
    return each_thread(all, g_.count(id_), kBlock, "matmul");
  }

 private:
  static constexpr int64_t kQuad = 4;

  /// Whether what an output is reduced from are neighbours, and each output begins at a fourth
  /// element.
  static bool comes_in_quads(const Split& s) {
    const View v = merged(s.gone);
    return v.dims.size() == 1 && v.strides[0] == 1 && s.length % kQuad == 0 &&
           s.length >= 32 * kQuad;
  }

  /// The loop that reduces elements `from` to `end` of an output, four neighbours at a time. False:
  /// nothing is read that has an element for each.
  bool reduce_quads(const std::string& type, const std::string& op, const std::string& base,
                    const std::string& from, const std::string& end) {
    std::string v;
    const Scope inside = nested([&] { v = input(id_, 0, flat("e")); });
    if (direct_.empty()) return false;
    std::string formal = "gc_index e", loads, given = "4 * j + u";
    for (const auto& [p, stored] : direct_) {
      const std::string x = "x" + p.substr(1);
      formal += ", const " + stored + " " + x;
      loads +=
          "      const gc_pack<" + stored + "> " + x + " = gc_load(" + p + ", j, packs > 0);\n";
      given += ", " + x + ".at[u]";
    }
    packs(1);
    line("auto at = [&](" + formal + ") {");
    scopes_.back()->text += inside.text;
    line("  return " + v + ";");
    line("};");
    line(type + " s = " + op + "::none();");
    line("#pragma unroll 4");
    line("for (gc_index k = " + (from == "0" ? "" : from + " / 4 + ") + "threadIdx.x; k < " + end +
         " / 4; k += blockDim.x) {");
    line("  const gc_index j = " + (base == "0" ? "" : base + " / 4 + ") + "k;");
    scopes_.back()->text += loads;
    line("#pragma unroll");
    line("  for (int u = 0; u < 4; ++u) s = " + op + "::of(s, at(" + given + "));");
    line("}");
    return true;
  }

  /// Elements that are reduced come in fours where they are stored.
  std::string load(NodeId id, const Index& at) override {
    if (at.linear != "e" || g_.count(id) != g_.count(g_.input(id_, 0))) return Writer::load(id, at);
    const std::string p = reads(id), x = "x" + p.substr(1);
    const DType t = g_.dtype(id);
    direct_[p] = stored_type(t);
    const std::string value = decoded(t, x);
    return value == x ? x : let(type_name(compute_type(t)), value, "v");
  }

  std::map<std::string, std::string> direct_;  ///< the stored types by pointer
};

}  // namespace

namespace {
constexpr int64_t kShort = 64;        // elements that one thread sums up as fast as a launch takes
constexpr int64_t kCached = 1 << 18;  // elements
}  // namespace

Reduction plan_reduction(const Graph& g, NodeId id) {
  const Dims& dims = g.dims(g.input(id, 0));
  Split s = split(dims, g.attrs(id));
  Reduction r{};
  size_t last = dims.size();
  while (last > 0 && dims[last - 1] == 1) --last;
  auto axes = g.attrs(id);
  r.columns = last > 0 && !contains(axes, last - 1);
  // How the work is cut depends on the shape alone, and so do the sums.
  int64_t outputs = std::max<int64_t>(1, s.outputs);
  // What the second-level cache holds is read in any order as fast: a block a column, in one pass.
  if (s.length > kShort && s.length <= 8192 && outputs * s.length <= kCached) r.columns = false;
  if (r.columns)
    r.chunks = s.length <= kShort
                   ? 1
                   : std::min<int64_t>({(1 << 17) / outputs, divide_up(s.length, 32), 4096});
  else
    r.chunks = std::min<int64_t>({1024 / outputs, divide_up(s.length, 8192), 1024});
  r.chunks = std::max<int64_t>(1, r.chunks);
  const std::string type = accumulator_type(spec(g, id).combine, g.dtype(id));
  const size_t item = type == "float" || type == "int" ? 4 : 8;
  r.partial_bytes = r.chunks > 1 ? static_cast<size_t>(s.outputs * r.chunks) * item : 0;
  return r;
}

std::vector<Written> write_reduction(const WriterInputs& in, NodeId id, BufferId partial) {
  return write_reductions(in, {&id, 1}, {&partial, 1});
}

std::vector<Written> write_reductions(const WriterInputs& in, std::span<const NodeId> ids,
                                      std::span<const BufferId> partials) {
  std::vector<Written> passes;
  for (size_t k = 0; k < ids.size(); ++k) {
    std::vector<Written> own{NodeWriter(in, ids[k], ids.size()).reduction(partials[k])};
    if (plan_reduction(in.graph, ids[k]).chunks > 1)
      own.push_back(NodeWriter(in, ids[k], ids.size()).finished_reduction(partials[k]));
    for (size_t pass = 0; k > 0 && pass < own.size(); ++pass) {
      require(own[pass].text == passes[pass].text, ErrorKind::Runtime,
              "planning: reductions of one launch differ");
      Step &all = passes[pass].step, &step = own[pass].step;
      all.arguments.insert(all.arguments.end(), step.arguments.begin(), step.arguments.end());
      all.nodes += step.nodes, all.instructions += step.instructions;
      all.bytes_read += step.bytes_read, all.bytes_written += step.bytes_written;
      all.location = step.location;
      ++all.segments;
    }
    if (k == 0) passes = std::move(own);
  }
  return passes;
}

Written write_extremum(const WriterInputs& in, NodeId id) { return NodeWriter(in, id).extremum(); }

Written write_bias(const WriterInputs& in, NodeId sum, NodeId bias) {
  return NodeWriter(in, sum).bias(bias);
}
Written write_integer_product(const WriterInputs& in, NodeId id) {
  return NodeWriter(in, id).integer_product();
}

}  // namespace gradcell::cuda
