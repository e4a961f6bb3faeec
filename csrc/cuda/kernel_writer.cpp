#include "cuda/kernel_writer.h"

#include <algorithm>

#include "cuda/alone_writer.h"

namespace gradcell::cuda {

namespace {

// Rows --------------------------------------------------------------------------------------------

class RowWriter : Writer {
 public:
  RowWriter(const WriterInputs& in, int32_t stage, int64_t rows) : Writer(in, stage) {
    rows_ = rows;
  }

  Written run(std::span<const NodeId> outputs) {
    body_.indent = "    ";
    for (NodeId id : outputs) collect(id);
    int levels = 0;
    for (auto& [id, level] : level_) levels = std::max(levels, level);
    for (int level = 1; level <= levels; ++level) reduce_level(level);
    store(outputs);

    std::string n = size(rows_);
    std::string text = "  for (gc_index r0 = blockIdx.x * blockDim.y; r0 < " + n +
                       "; r0 += gridDim.x * blockDim.y) {\n"
                       "    const bool live = r0 + threadIdx.y < " +
                       n +
                       ";\n"
                       "    const gc_index r = live ? r0 + threadIdx.y : " +
                       n + " - 1;\n" + body_.text + "  }\n";
    // About four elements a lane, at most a block a row.
    uint32_t lanes = 1;
    while (lanes < kMaxBlock && static_cast<int64_t>(lanes) * 4 < longest_) lanes *= 2;
    step_.block_x = lanes;
    step_.block_y = std::max<uint32_t>(1, kBlock / lanes);
    step_.grid = grid_for(rows_, step_.block_y);
    return written(std::move(text), "rows");
  }

 private:
  int64_t features(NodeId id) const { return g_.count(id) / rows_; }

  /// The row reductions below a node, with their depth.
  int collect(NodeId id) {
    id = f_.storage[id];
    const Fused& node = f_.node[id];
    bool here = (node.role == Role::Map || node.role == Role::RowReduce) &&
                !(node.stored && node.stage < stage_);
    if (!here) return 0;
    if (auto it = depth_.find(id); it != depth_.end()) return it->second;
    int depth = 0;
    for (NodeId i : g_.inputs(id)) depth = std::max(depth, collect(i));
    if (node.role == Role::RowReduce) level_[id] = ++depth;
    return depth_[id] = depth;
  }

  /// All reductions of one depth: one loop for each length.
  void reduce_level(int level) {
    std::map<int64_t, std::vector<NodeId>> by_length;
    for (auto& [id, l] : level_)
      if (l == level) by_length[trailing_reduction(g_, id)].push_back(id);
    for (auto& [n, ids] : by_length) {
      struct Sum {
        NodeId id;
        std::string name, type, op;
      };
      std::vector<Sum> sums;
      const Scope inside = of_element(n, [&] {
        for (NodeId id : ids) {
          const std::string type = type_name(compute_type(g_.dtype(id)));
          const Sum s{id, "s" + std::to_string(next_++), type,
                      in_reduction(spec(g_, id).combine, type)};
          std::string v = input(id, 0, Index{"", "r", "k"});
          line(is_sum(g_, id) ? s.name + " += " + v + ";"
                              : s.name + " = " + s.op + "::of(" + s.name + ", " + v + ");");
          sums.push_back(s);
          count_node(id);
        }
      });
      for (const Sum& s : sums) line(s.type + " " + s.name + " = " + s.op + "::none();");
      over_row(n, inside, {});
      for (const Sum& s : sums) {
        const std::string across = "gc_across<" + s.op + ">(" + s.name + ")";
        line(s.name + " = " + narrowed(g_.dtype(s.id), across) + ";");
        done_[s.id] = s.name;
      }
    }
  }

  std::string reduced(NodeId id, const Index& at) override {
    auto it = done_.find(id);
    if (it == done_.end() || (at.row != "r" && at.linear != "r")) return Writer::reduced(id, at);
    return it->second;
  }

  void store(std::span<const NodeId> outputs) {
    std::map<int64_t, std::vector<NodeId>> by_length;
    for (NodeId id : outputs) by_length[features(id)].push_back(id);
    for (auto& [n, ids] : by_length) {
      std::vector<Array> written;
      const Scope inside = of_element(n, [&] {
        for (NodeId id : ids) {
          const std::string v =
              encoded(g_.dtype(id), value(id, Index{"", "r", n == 1 ? "0" : "k"}));
          const Array to{writes(id), stored_type(g_.dtype(id))};
          line((n == 1 ? to.pointer + "[r]" : to.element()) + " = " + v + ";");
          written.push_back(to);
          count_node(id);
        }
      });
      if (n == 1)
        block("if (live && threadIdx.x == 0)", inside);
      else
        over_row(n, inside, written);
    }
  }

  // Elements of a row, four neighbours at a time where four divides their number.

  struct Array {
    std::string pointer, type;
    /// What an element of it is called: x3 or y3, of p3 or q3.
    std::string element() const { return (pointer[0] == 'p' ? "x" : "y") + pointer.substr(1); }
  };

  template <class F>
  Scope of_element(int64_t n, F write) {
    direct_.clear(), length_ = n;
    const Scope inside = nested(write);
    length_ = 0;
    return inside;
  }

  std::string load(NodeId id, const Index& at) override {
    if (length_ < 2 || at.row != "r" || at.feature != "k" || features(id) != length_)
      return Writer::load(id, at);
    const DType t = g_.dtype(id);
    const Array from{reads(id), stored_type(t)};
    if (std::ranges::find(direct_, from.pointer, &Array::pointer) == direct_.end())
      direct_.push_back(from);
    const std::string value = decoded(t, from.element());
    return value == from.element() ? value : let(type_name(compute_type(t)), value, "v");
  }

  void over_row(int64_t n, const Scope& inside, const std::vector<Array>& written) {
    longest_ = std::max(longest_, n);
    const std::string at = "at" + std::to_string(next_++), count = size(n);
    const std::string live = written.empty() ? "" : "live && ";
    std::string formal = "gc_index k", loads, stores, of_four = "4 * k + u", of_one = "k";
    for (const Array& a : direct_) {
      const std::string x = a.element();
      formal += ", const " + a.type + " " + x;
      loads += "      const gc_pack<" + a.type + "> " + x + " = gc_load(" + a.pointer +
               ", j, packs > 0);\n";
      of_four += ", " + x + ".at[u]", of_one += ", " + a.pointer + "[r * " + count + " + k]";
    }
    for (const Array& a : written) {
      const std::string y = a.element();
      formal += ", " + a.type + "& " + y;
      loads += "      gc_pack<" + a.type + "> " + y + ";\n";
      stores += "      gc_store(" + a.pointer + ", j, " + y + ", packs > 0);\n";
      of_four += ", " + y + ".at[u]", of_one += ", " + a.pointer + "[r * " + count + " + k]";
    }
    line("auto " + at + " = [&](" + formal + ") {");
    scopes_.back()->text += inside.text;
    line("};");
    const size_t arrays = direct_.size() + written.size();
    std::string first = "threadIdx.x";
    if (arrays > 0 && arrays <= kMostRowPacks) {
      const std::string fours = fours_of(n);
      line("for (gc_index k = threadIdx.x; " + live + "k < " + fours + "; k += blockDim.x) {");
      line("  const gc_index j = r * " + fours + " + k;");
      scopes_.back()->text += loads;
      line("#pragma unroll");
      line("  for (int u = 0; u < 4; ++u) " + at + "(" + of_four + ");");
      scopes_.back()->text += stores;
      line("}");
      first = "4 * " + fours + " + threadIdx.x";
    }
    line("for (gc_index k = " + first + "; " + live + "k < " + count + "; k += blockDim.x) " + at +
         "(" + of_one + ");");
  }

  /// An argument, whatever the number: the text has no sizes.
  std::string fours_of(int64_t n) {
    if (fours_.empty()) packs(1);
    auto [it, fresh] = fours_.try_emplace(n, "fours" + std::to_string(fours_.size()));
    if (fresh)
      parameter("const gc_index", it->second,
                {Argument::Kind::Size, 0, n % 4 == 0 ? n / 4 : 0, Compute::I64});
    return it->second;
  }

  std::vector<Array> direct_;  ///< read at the element's own place
  int64_t length_ = 0;
  std::map<int64_t, std::string> fours_;
  std::map<NodeId, int> level_, depth_;
  std::map<NodeId, std::string> done_;
  int64_t longest_ = 1;
};

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
      return let("gc_index", (within ? "t % " : "t / ") + (plan.columns ? outputs : chunks), "o");
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
    line("if (threadIdx.x == 0) " + q + "[t] = (int)s.at;");
    return each_block(outputs, s.outputs, s.length > 256 ? 256 : 32, "arg");
  }

  /// A thread sums up one pair of the result. (O(n^2) on a line of n: there is no library for it
  /// here.)
  Written fourier() {
    count_node(id_);
    const auto a = attributes<FourierAttributes>(g_, id_);
    const Dims& dims = g_.dims(id_);
    const auto axis = static_cast<size_t>(a.axis);
    const std::string type = type_name(compute_type(dtype_));
    const std::string q = writes(id_), n = size(dims[axis]);
    const std::string inner = size(product(dims, axis + 1, dims.size() - 1));
    const std::string pairs = size(g_.count(id_) / 2);
    const std::string at = let("gc_index", "t / " + inner, "i");
    const std::string k = let("gc_index", at + " % " + n, "k");
    const std::string base =
        let("gc_index", "(" + at + " - " + k + ") * " + inner + " + t % " + inner, "i");
    const Scope inside = nested([&] {
      const std::string turn = let("gc_index", "j * " + k + " % " + n, "r");
      const std::string near =
          let("gc_index", turn + " * 2 > " + n + " ? " + turn + " - " + n + " : " + turn, "r");
      const std::string turned = type + "(6.283185307179586) * " + type + "(" + near + ")";
      const std::string angle = let(type.c_str(), turned + " / " + type + "(" + n + ")", "a");
      const std::string c = let(type.c_str(), "cos(" + angle + ")", "c");
      const char* sign = a.inverse ? "" : "-";
      const std::string s = let(type.c_str(), sign + ("sin(" + angle + ")"), "s");
      const std::string re = let("gc_index", "2 * (" + base + " + j * " + inner + ")", "i");
      const std::string im = let("gc_index", re + " + 1", "i");
      const std::string x = input(id_, 0, flat(re)), y = input(id_, 0, flat(im));
      line("re += " + x + " * " + c + " - " + y + " * " + s + ";");
      line("im += " + x + " * " + s + " + " + y + " * " + c + ";");
    });
    line(type + " re = 0, im = 0;");
    block("for (gc_index j = 0; j < " + n + "; ++j)", inside);
    line(q + "[2 * t] = re;");
    line(q + "[2 * t + 1] = im;");
    return each_thread(pairs, g_.count(id_) / 2, 64, "fourier");
  }

  Written bias(NodeId bias) {
    std::string q = writes(id_), p = reads(bias);
    const std::string n = size(g_.count(id_));
    std::string column = g_.count(bias) == 1 ? "0" : "i % " + size(g_.count(bias));
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
    line("const gc_index j = t % " + N + ", i = t / " + N + " % " + M + ", o = t / (" + M + " * " +
         N + ");");
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

Written write_rows(const WriterInputs& in, int32_t stage, int64_t rows,
                   std::span<const NodeId> outputs) {
  return RowWriter(in, stage, rows).run(outputs);
}

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
      all.nodes += step.nodes;
      all.bytes_read += step.bytes_read, all.bytes_written += step.bytes_written;
      all.location = step.location;
      ++all.segments;
    }
    if (k == 0) passes = std::move(own);
  }
  return passes;
}

Written write_extremum(const WriterInputs& in, NodeId id) { return NodeWriter(in, id).extremum(); }

Written write_fourier(const WriterInputs& in, NodeId id) { return NodeWriter(in, id).fourier(); }
Written write_bias(const WriterInputs& in, NodeId sum, NodeId bias) {
  return NodeWriter(in, sum).bias(bias);
}
Written write_integer_product(const WriterInputs& in, NodeId id) {
  return NodeWriter(in, id).integer_product();
}

}  // namespace gradcell::cuda
