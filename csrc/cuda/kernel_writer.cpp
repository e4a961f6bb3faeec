#include "cuda/kernel_writer.h"

#include <algorithm>

#include "cuda/writer.h"
#include "ops/ops.h"

namespace gradcell::cuda {

namespace {

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

std::string in_reduction(Combine how, const std::string& type) {
  return str("gc_", combine_name(how), "<", type, ">");
}

/// Sums and products of floats are taken in double, of integers in long long: one rounding at the
/// end.
const char* accumulator_type(Combine how, DType t) {
  const Compute c = compute_type(t);
  if (how == Combine::Max || how == Combine::Min) return type_name(c);
  return c == Compute::F32 || c == Compute::F64 ? "double" : "long long";
}

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

  void loop(int64_t n, const Scope& inside) {
    line("for (gc_index k = threadIdx.x; k < " + size(n) + "; k += blockDim.x) {");
    body_.text += inside.text;
    line("}");
    longest_ = std::max(longest_, n);
  }

  /// All reductions of one depth: one loop for each length.
  void reduce_level(int level) {
    std::map<int64_t, std::vector<NodeId>> by_length;
    for (auto& [id, l] : level_)
      if (l == level) by_length[trailing_reduction(g_, id)].push_back(id);
    for (auto& [n, ids] : by_length) {
      Scope inside;
      inside.indent = "      ";
      std::vector<std::string> sums;
      push(inside);
      for (NodeId id : ids) {
        NodeId x = f_.storage[g_.input(id, 0)];
        std::string type = type_name(compute_type(g_.dtype(id)));
        std::string sum = "s" + std::to_string(next_++);
        std::string v = value(x, Index{"", "r", "k"});
        bool add = is_sum(g_, id);
        line(add ? sum + " += " + v + ";"
                 : sum + " = " + in_reduction(spec(g_, id).combine, type) + "::of(" + sum + ", " +
                       v + ");");
        sums.push_back(sum);
        count_node(id);
      }
      pop();
      for (size_t i = 0; i < ids.size(); ++i) {
        std::string type = type_name(compute_type(g_.dtype(ids[i])));
        line(type + " " + sums[i] + " = " + in_reduction(spec(g_, ids[i]).combine, type) +
             "::none();");
      }
      loop(n, inside);
      for (size_t i = 0; i < ids.size(); ++i) {
        DType t = g_.dtype(ids[i]);
        std::string type = type_name(compute_type(t));
        line(sums[i] + " = " +
             narrowed(t, "gc_across<" + in_reduction(spec(g_, ids[i]).combine, type) + ">(" +
                             sums[i] + ")") +
             ";");
        done_[ids[i]] = sums[i];
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
      Scope inside;
      inside.indent = "      ";
      push(inside);
      for (NodeId id : ids) {
        std::string v = value(id, Index{"", "r", n == 1 ? "0" : "k"});
        std::string q = writes(id);
        std::string place = n == 1 ? "r" : let("gc_index", "r * " + size(n) + " + k", "i");
        line(q + "[" + place + "] = " + encoded(g_.dtype(id), v) + ";");
        count_node(id);
      }
      pop();
      if (n == 1) {
        line("if (live && threadIdx.x == 0) {");
        body_.text += inside.text;
        line("}");
      } else {
        std::string count = size(n);
        line("for (gc_index k = threadIdx.x; live && k < " + count + "; k += blockDim.x) {");
        body_.text += inside.text;
        line("}");
        longest_ = std::max(longest_, n);
      }
    }
  }

  std::map<NodeId, int> level_, depth_;
  std::map<NodeId, std::string> done_;
  int64_t longest_ = 1;
};

// Reductions to buffers ---------------------------------------------------------------------------

/// The reduced and the remaining dimensions of an input, as views of its places.
struct Split {
  View kept, gone;
  int64_t outputs = 1, length = 1;
};

Split split(const Dims& dims, std::span<const int64_t> axes) {
  const Dims strides = row_major(dims);
  Split s{{pick(dims, axes, false), pick(strides, axes, false)},
          {pick(dims, axes, true), pick(strides, axes, true)}};
  s.outputs = element_count(s.kept.dims), s.length = element_count(s.gone.dims);
  return s;
}

class ReductionWriter : Writer {
 public:
  ReductionWriter(const WriterInputs& in, NodeId id)
      : Writer(in, in.fusion.node[id].stage),
        id_(id),
        plan_(plan_reduction(in.graph, id)),
        split_(split(g_.dims(g_.input(id, 0)), g_.attrs(id))),
        type_(accumulator_type(spec(g_, id).combine, g_.dtype(id))),
        op_(in_reduction(spec(g_, id).combine, type_)) {}

  Written first(BufferId partial) {
    count_node(id_);
    bool two = plan_.chunks > 1;
    std::string source = "q0";
    if (two) {
      buffer(partial, type_, true, source);
      step_.bytes_written += plan_.partial_bytes;
    } else {
      source = writes(id_);
    }
    std::string outputs = size(split_.outputs), length = size(split_.length);
    std::string chunks = size(plan_.chunks);
    std::string each = size(divide_up(split_.length, plan_.chunks));
    body_.indent = "    ";
    std::string o = "t", c = "0";
    if (two && plan_.columns) {
      o = split_.outputs == 1 ? "0" : let("gc_index", "t % " + outputs, "o");
      c = split_.outputs == 1 ? "t" : let("gc_index", "t / " + outputs, "o");
    } else if (two) {
      o = split_.outputs == 1 ? "0" : let("gc_index", "t / " + chunks, "o");
      c = split_.outputs == 1 ? "t" : let("gc_index", "t % " + chunks, "o");
    } else if (split_.outputs == 1) {
      o = "0";
    }
    std::string base = place_in(split_.kept, 0, split_.kept.dims.size(), o, 0);
    if (two) {
      line("const gc_index begin = " + c + " * " + each + ";");
      line("const gc_index end = begin + " + each + " < " + length + " ? begin + " + each + " : " +
           length + ";");
    }
    Scope inside;
    inside.indent = "      ";
    push(inside);
    std::string step = place_in(split_.gone, 0, split_.gone.dims.size(), "k", 0);
    std::string place = base == "0"   ? step
                        : step == "0" ? base
                                      : let("gc_index", base + " + " + step, "i");
    std::string v = input(id_, 0, flat(place));
    line("s = " + op_ + "::of(s, " + v + ");");
    pop();
    line(std::string(type_) + " s = " + op_ + "::none();");
    std::string from = two ? "begin" : "0", to = two ? "end" : length;
    if (plan_.columns)
      line("for (gc_index k = " + from + "; k < " + to + "; ++k) {");
    else
      line("for (gc_index k = " + (two ? from + " + threadIdx.x" : "threadIdx.x") + "; k < " + to +
           "; k += blockDim.x) {");
    body_.text += inside.text;
    line("}");
    if (!plan_.columns) line("s = gc_across<" + op_ + ">(s);");
    std::string result = two ? "s" : final_value("s");
    line((plan_.columns ? "" : "if (threadIdx.x == 0) ") + source + "[t] = " + result + ";");

    int64_t items = split_.outputs * plan_.chunks;
    std::string all = two ? outputs == "1" ? chunks : outputs + " * " + chunks : outputs;
    std::string header =
        plan_.columns ? "  for (gc_index t = gc_first(); t < " + all + "; t += gc_step()) {\n"
                      : "  for (gc_index t = blockIdx.x; t < " + all + "; t += gridDim.x) {\n";
    step_.grid = plan_.columns ? grid_for(items, kBlock) : grid_for(items, 1);
    if (!plan_.columns) {
      int64_t work = divide_up(split_.length, plan_.chunks);
      step_.block_x = work > 2048 ? kMaxBlock : work > 256 ? 256 : work > 64 ? 64 : 32;
    }
    return written(header + body_.text + "  }\n", "reduce");
  }

  /// The partial results of each output, in order.
  Written second(BufferId partial) {
    count_node(id_);
    step_.bytes_read += plan_.partial_bytes;
    std::string p = buffer(partial, type_, false, "p0"), q = writes(id_);
    std::string outputs = size(split_.outputs), chunks = size(plan_.chunks);
    body_.indent = "    ";
    line(std::string(type_) + " s = " + op_ + "::none();");
    std::string place = plan_.columns ? (outputs == "1" ? "k" : "k * " + outputs + " + t")
                                      : (outputs == "1" ? "k" : "t * " + chunks + " + k");
    line("for (gc_index k = threadIdx.x; k < " + chunks + "; k += blockDim.x) s = " + op_ +
         "::of(s, " + p + "[" + place + "]);");
    line("s = gc_across<" + op_ + ">(s);");
    line("if (threadIdx.x == 0) " + q + "[t] = " + final_value("s") + ";");
    std::string header = "  for (gc_index t = blockIdx.x; t < " + outputs + "; t += gridDim.x) {\n";
    step_.grid = grid_for(split_.outputs, 1);
    step_.block_x = plan_.chunks > 64 ? 256 : 32;
    Written w = written(header + body_.text + "  }\n", "reduce");
    w.title += "_finish";
    w.step.nodes = 0;
    return w;
  }

 private:
  std::string final_value(const std::string& s) {
    DType t = g_.dtype(id_);
    return encoded(t, "(" + std::string(type_name(compute_type(t))) + ")" + s);
  }

  NodeId id_;
  Reduction plan_;
  Split split_;
  const char* type_;
  std::string op_;
};

class ExtremumWriter : Writer {
 public:
  ExtremumWriter(const WriterInputs& in, NodeId id)
      : Writer(in, in.fusion.node[id].stage), id_(id) {}
  Written run() {
    count_node(id_);
    NodeId x = g_.input(id_, 0);
    Split s = split(g_.dims(x), g_.attrs(id_));
    std::string q = writes(id_), type = type_name(compute_type(g_.dtype(x)));
    std::string outputs = size(s.outputs), length = size(s.length);
    std::string op =
        "gc_extreme<" + type + (spec(g_, id_).combine == Combine::Max ? ", true>" : ", false>");
    body_.indent = "    ";
    std::string base = place_in(s.kept, 0, s.kept.dims.size(), s.outputs == 1 ? "0" : "t", 0);
    Scope inside;
    inside.indent = "      ";
    push(inside);
    std::string step = place_in(s.gone, 0, s.gone.dims.size(), "k", 0);
    std::string v =
        input(id_, 0, flat(base == "0" ? step : let("gc_index", base + " + " + step, "i")));
    line("s = " + op + "::of(s, {" + v + ", k});");
    pop();
    line("gc_best<" + type + "> s = {0, -1};");
    line("for (gc_index k = threadIdx.x; k < " + length + "; k += blockDim.x) {");
    body_.text += inside.text;
    line("}");
    line("s = gc_across<" + op + ">(s);");
    line("if (threadIdx.x == 0) " + q + "[t] = (int)s.at;");
    step_.grid = grid_for(s.outputs, 1);
    step_.block_x = s.length > 256 ? 256 : 32;
    return written("  for (gc_index t = blockIdx.x; t < " + outputs + "; t += gridDim.x) {\n" +
                       body_.text + "  }\n",
                   "arg");
  }

 private:
  NodeId id_;
};

/// One thread a line, which combines in order.
class ScanWriter : Writer {
 public:
  ScanWriter(const WriterInputs& in, NodeId id) : Writer(in, in.fusion.node[id].stage), id_(id) {}
  Written run() {
    count_node(id_);
    const auto a = attributes<ScanAttributes>(g_, id_);
    const Combine how = spec(g_, id_).combine;
    Split s = split(g_.dims(id_), Dims{a.axis});
    DType t = g_.dtype(id_);
    const char* type = accumulator_type(how, t);
    const std::string op = in_reduction(how, type);
    std::string q = writes(id_), outputs = size(s.outputs), length = size(s.length);
    body_.indent = "    ";
    std::string base = place_in(s.kept, 0, s.kept.dims.size(), s.outputs == 1 ? "0" : "t", 0);
    Scope inside;
    inside.indent = "      ";
    push(inside);
    std::string k = a.reverse ? let("gc_index", length + " - 1 - k", "k") : "k";
    std::string step = place_in(s.gone, 0, 1, k, 0);
    std::string place = base == "0" ? step : let("gc_index", base + " + " + step, "i");
    std::string v = input(id_, 0, flat(place));
    const std::string next = "s = " + op + "::of(s, " + v + ");";
    if (!a.exclusive) line(next);
    line(q + "[" + place +
         "] = " + encoded(t, "(" + std::string(type_name(compute_type(t))) + ")s") + ";");
    if (a.exclusive) line(next);
    pop();
    line(std::string(type) + " s = " + op + "::none();");
    line("for (gc_index k = 0; k < " + length + "; ++k) {");
    body_.text += inside.text;
    line("}");
    step_.grid = grid_for(s.outputs, 64);
    step_.block_x = 64;
    return written("  for (gc_index t = gc_first(); t < " + outputs + "; t += gc_step()) {\n" +
                       body_.text + "  }\n",
                   "cumsum");
  }

 private:
  NodeId id_;
};

/// A thread owns one column of some places: it clears them, then takes the updates in order. So
/// results do not depend on the launch, and no two threads write one element.
class ScatterWriter : Writer {
 public:
  ScatterWriter(const WriterInputs& in, NodeId id)
      : Writer(in, in.fusion.node[id].stage), id_(id) {}

  Written sum(BufferId sums) {
    const char* type = type_name(compute_type(g_.dtype(id_)));
    bool own = sums == in_.buffer_of[id_];
    std::string q = own ? writes(id_) : buffer(sums, type, true, "q0");
    const char* stored = own ? stored_type(g_.dtype(id_)) : type;
    NodeId updates = f_.storage[g_.input(id_, 1)];
    auto add = [&](const std::string& to, const std::string& place, const std::string& from) {
      std::string v = value(updates, flat(let("gc_index", from, "i")));
      line(to + "[" + place + "] = (" + stored + ")(" + to + "[" + place + "] + " + v + ");");
    };
    return in_order(q, stored, "0", static_cast<size_t>(g_.attrs(id_)[0]), "scatter_add", add);
  }

  Written last() {
    auto mark = [&](const std::string& to, const std::string& place, const std::string& from) {
      line(to + "[" + place + "] = " + from + ";");
    };
    return in_order(writes(id_), stored_type(DType::Int64), "-1", 0, "last_writer", mark);
  }

  /// float sums to the half type that the tensor has.
  Written narrow(BufferId sums) {
    std::string p = buffer(sums, "float", false, "p0"), q = writes(id_), n = size(g_.count(id_));
    step_.bytes_read += static_cast<size_t>(g_.count(id_)) * sizeof(float);
    step_.grid = grid_for(g_.count(id_), kBlock);
    Written w = written("  for (gc_index i = gc_first(); i < " + n + "; i += gc_step()) " + q +
                            "[i] = " + encoded(g_.dtype(id_), p + "[i]") + ";\n",
                        "scatter_add_finish");
    return w;
  }

 private:
  /// Places stand on an axis of the node, indices are its first input. `update` writes how the
  /// element of `to` at a place takes the update at an index.
  template <class Update>
  Written in_order(const std::string& q, const std::string& stored, const char* clear, size_t axis,
                   const char* title, Update update) {
    count_node(id_);
    NodeId indices = f_.storage[g_.input(id_, 0)];
    const Dims& dims = g_.dims(id_);
    const int64_t outer = product(dims, 0, axis), inner = product(dims, axis + 1, dims.size());
    const int64_t n = dims[axis], m = g_.count(indices);
    int64_t owners = std::clamp<int64_t>((1 << 17) / std::max<int64_t>(1, outer * inner), 1, n);
    int64_t each = divide_up(n, owners);
    owners = divide_up(n, each);
    body_.indent = "    ";
    View box{{outer, owners, inner}, {}, 0};
    std::vector<std::string> c = coordinates(box.dims, {1, 1, 1}, "t");
    for (size_t k = 0; k < 3; ++k)
      if (box.dims[k] == 1) c[k] = "0";
    std::string count = size(n), width = size(inner), updates = size(m);
    line("const gc_index begin = " + c[1] + " * " + size(each) + ";");
    line("const gc_index end = begin + " + size(each) + " < " + count + " ? begin + " + size(each) +
         " : " + count + ";");
    line(stored + "* const to = " + q + " + " + c[0] + " * " + count + " * " + width + " + " +
         c[2] + ";");
    line("for (gc_index k = begin; k < end; ++k) to[k * " + width + "] = " + clear + ";");
    Scope inside;
    inside.indent = "      ";
    push(inside);
    std::string where = value(indices, flat(m == 1 ? "0" : "k"));
    std::string place =
        let("gc_index", "gc_place(" + where + ", " + count + ", " + status() + ")", "i");
    line("if (" + place + " < begin || " + place + " >= end) continue;");
    update("to", place + " * " + width,
           "(" + c[0] + " * " + updates + " + k) * " + width + " + " + c[2]);
    pop();
    line("for (gc_index k = 0; k < " + updates + "; ++k) {");
    body_.text += inside.text;
    line("}");
    int64_t items = outer * owners * inner;
    step_.grid = grid_for(items, 128);
    step_.block_x = 128;
    return written("  for (gc_index t = gc_first(); t < " + size(items) + "; t += gc_step()) {\n" +
                       body_.text + "  }\n",
                   title);
  }

  NodeId id_;
};

class BiasWriter : Writer {
 public:
  BiasWriter(const WriterInputs& in, NodeId sum)
      : Writer(in, in.fusion.node[sum].stage), sum_(sum) {}
  Written run(NodeId bias) {
    DType t = g_.dtype(sum_);
    std::string q = writes(sum_), p = reads(bias), n = size(g_.count(sum_));
    std::string column = g_.count(bias) == 1 ? "0" : "i % " + size(g_.count(bias));
    std::string sum = decoded(t, q + "[i]") + " + " + decoded(t, p + "[" + column + "]");
    count_node(sum_);
    step_.bytes_read += bytes(sum_);
    step_.grid = grid_for(g_.count(sum_), kBlock);
    return written("  for (gc_index i = gc_first(); i < " + n + "; i += gc_step()) " + q +
                       "[i] = " + encoded(t, sum) + ";\n",
                   "bias");
  }

 private:
  NodeId sum_;
};

class IntegerProductWriter : Writer {
 public:
  IntegerProductWriter(const WriterInputs& in, NodeId id)
      : Writer(in, in.fusion.node[id].stage), id_(id) {}
  Written run() {
    count_node(id_);
    const auto p = attributes<ProductAttributes>(g_, id_);
    const bool ta = p.transpose_a, tb = p.transpose_b;
    const auto [m, n, k] = sizes_of(g_.dims(g_.input(id_, 0)), g_.dims(id_), p);
    DType t = g_.dtype(id_);
    require(g_[id_].input_count == 2, ErrorKind::Runtime,
            "sums of integer products are not merged");
    std::string a = reads(f_.storage[g_.input(id_, 0)]), b = reads(f_.storage[g_.input(id_, 1)]);
    std::string q = writes(id_), M = size(m), N = size(n), K = size(k), all = size(g_.count(id_));
    body_.indent = "    ";
    line("const gc_index j = t % " + N + ", i = t / " + N + " % " + M + ", o = t / (" + M + " * " +
         N + ");");
    std::string left = a + "[o * " + M + " * " + K + " + " +
                       (ta ? "k * " + M + " + i" : "i * " + K + " + k") + "]";
    std::string right = b + "[o * " + K + " * " + N + " + " +
                        (tb ? "j * " + K + " + k" : "k * " + N + " + j") + "]";
    line("long long s = 0;");
    line("for (gc_index k = 0; k < " + K + "; ++k) s += (long long)" + left + " * " + right + ";");
    line(q + "[t] = " + encoded(t, "(" + std::string(type_name(compute_type(t))) + ")s") + ";");
    step_.grid = grid_for(g_.count(id_), kBlock);
    return written("  for (gc_index t = gc_first(); t < " + all + "; t += gc_step()) {\n" +
                       body_.text + "  }\n",
                   "matmul");
  }

 private:
  NodeId id_;
};

}  // namespace

Written write_rows(const WriterInputs& in, int32_t stage, int64_t rows,
                   std::span<const NodeId> outputs) {
  return RowWriter(in, stage, rows).run(outputs);
}

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
  if (r.columns)
    r.chunks = std::min<int64_t>({(1 << 17) / outputs, divide_up(s.length, 32), 512});
  else
    r.chunks = std::min<int64_t>({1024 / outputs, divide_up(s.length, 8192), 1024});
  r.chunks = std::max<int64_t>(1, r.chunks);
  const std::string type = accumulator_type(spec(g, id).combine, g.dtype(id));
  const size_t item = type == "float" || type == "int" ? 4 : 8;
  r.partial_bytes = r.chunks > 1 ? static_cast<size_t>(s.outputs * r.chunks) * item : 0;
  return r;
}

std::vector<Written> write_reduction(const WriterInputs& in, NodeId id, BufferId partial) {
  std::vector<Written> steps;
  steps.push_back(ReductionWriter(in, id).first(partial));
  if (plan_reduction(in.graph, id).chunks > 1)
    steps.push_back(ReductionWriter(in, id).second(partial));
  return steps;
}

Written write_extremum(const WriterInputs& in, NodeId id) { return ExtremumWriter(in, id).run(); }
Written write_scan(const WriterInputs& in, NodeId id) { return ScanWriter(in, id).run(); }

std::vector<Written> write_scatter(const WriterInputs& in, NodeId id, BufferId sums) {
  std::vector<Written> steps;
  steps.push_back(ScatterWriter(in, id).sum(sums));
  if (sums != in.buffer_of[id]) steps.push_back(ScatterWriter(in, id).narrow(sums));
  return steps;
}

Written write_last_index(const WriterInputs& in, NodeId id) { return ScatterWriter(in, id).last(); }

Written write_bias(const WriterInputs& in, NodeId sum, NodeId bias) {
  return BiasWriter(in, sum).run(bias);
}

Written write_integer_product(const WriterInputs& in, NodeId id) {
  return IntegerProductWriter(in, id).run();
}

}  // namespace gradcell::cuda
