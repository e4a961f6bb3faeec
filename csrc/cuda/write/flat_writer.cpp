// The text of elementwise kernels: one array size each, or, as segments, several that share a
// launch.
#include <algorithm>

#include "cuda/write/writer.h"

namespace gradcell::cuda {

namespace {

constexpr int64_t kPack = 4;
/// Stands for the number of segments.
constexpr const char* kCountMark = "@COUNT@";

class FlatWriter : Writer {
 public:
  FlatWriter(const WriterInputs& in, int32_t stage, bool segment)
      : Writer(in, stage), segment_(segment) {}

  Written run(std::span<const NodeId> outputs) {
    int64_t n = g_.count(outputs[0]);
    count_ = n, dims_ = g_.dims(outputs[0]);
    body_.indent = "    ";
    std::string stores, packed, packed_stores, arguments, tail, formal;
    for (NodeId id : outputs) {
      std::string v = value(id, flat("i"));
      std::string q = writes(id), y = "y" + q.substr(1);
      line(y + " = " + encoded(g_.dtype(id), v) + ";");
      formal += ", " + std::string(stored_type(g_.dtype(id))) + "& " + y;
      packed += "    gc_pack<" + std::string(stored_type(g_.dtype(id))) + "> " + y + ";\n";
      packed_stores += "    gc_store(" + q + ", j, " + y + ");\n";
      arguments += ", " + y + ".at[u]";
      tail += ", " + q + "[i]";
      count_node(id);
    }
    std::string in_formal, in_packed, in_arguments, in_tail;
    for (const auto& [order, read] : direct_) {
      const auto& [p, type] = read;
      std::string x = "x" + p.substr(1);
      in_formal += ", const " + type + " " + x;
      in_packed += "    const gc_pack<" + type + "> " + x + " = gc_load(" + p + ", j);\n";
      in_arguments += ", " + x + ".at[u]";
      in_tail += ", " + p + "[i]";
    }
    std::string count = segment_ ? own_count() : n == 1 ? "1" : size(n);
    std::string first = segment_ ? "first" : "gc_first()", step = segment_ ? "step" : "gc_step()";
    std::string text;
    text += "  auto at = [&](gc_index i" + in_formal + formal + ") {\n" + body_.text + "  };\n";
    bool in_packs = (segment_ || n >= kPack) && direct_.size() + outputs.size() <= kMostPacks;
    if (in_packs) {
      packs(n / kPack);
      text += "  for (gc_index j = " + first + "; j < packs; j += " + step + ") {\n" + in_packed +
              packed +
              "#pragma unroll\n"
              "    for (int u = 0; u < 4; ++u) at(4 * j + u" +
              in_arguments + arguments + ");\n" + packed_stores + "  }\n";
    }
    std::string begin = in_packs ? "4 * packs + " + first : first;
    text += "  for (gc_index i = " + begin + "; i < " + count + "; i += " + step + ") at(i" +
            in_tail + tail + ");\n";
    step_.grid = grid_for(n, kBlock * kPack);
    note_elements(outputs);
    return written(segment_ ? of_segments(text) : std::move(text), "copy", kBlock);
  }

 private:
  /// Buffers read at the kernel's own index come in packs.
  std::string load(NodeId id, const Index& at) override {
    if (at.linear != "i" || !own_element(id)) {
      elsewhere_.insert(in_.buffer_of[id]);
      return Writer::load(id, at);
    }
    own_.insert(in_.buffer_of[id]);
    std::string p = reads(id), x = "x" + p.substr(1);
    DType t = g_.dtype(id);
    direct_[segment_ ? std::stoul(p.substr(1)) : id] = {p, stored_type(t)};
    std::string value = decoded(t, x);
    return value == x ? x : let(type_name(compute_type(t)), value, "v");
  }

  /// What an update in place has to know. Where one of several outputs may take over what others
  /// are computed from, no load may move behind a store.
  void note_elements(std::span<const NodeId> outputs) {
    ByElement e;
    for (BufferId b : own_)
      if (!elsewhere_.contains(b)) e.reads.push_back(b);
    for (NodeId id : outputs) e.writes.push_back(in_.buffer_of[id]);
    auto may_be_one = [&](BufferId from, BufferId to) {
      const Buffer &r = in_.buffers[from], &w = in_.buffers[to];
      return r.place == Place::Input && w.place == Place::Output && r.bytes == w.bytes;
    };
    bool overlap = false;
    for (BufferId from : e.reads)
      for (BufferId to : e.writes) overlap |= may_be_one(from, to);
    if (overlap && outputs.size() > 1)
      for (Parameter& p : parameters_)
        if (size_t at = p.type.find(" __restrict__"); at != std::string::npos) p.type.resize(at);
    step_.by_element = {std::move(e)};
  }

  /// Whether a buffer has an element for each of the kernel's. A segment of one element cannot tell
  /// by the count what is an array, in other segments longer, and what is one number for all.
  bool own_element(NodeId id) const {
    if (g_.count(id) != count_) return false;
    return !segment_ || count_ > 1 || g_.dims(id) == dims_;
  }

  // Segments: text that is the same for every size, whatever order the nodes were made in.

  std::string own_count() {
    parameter("const gc_index", "n", {Argument::Kind::Size, 0, count_, Compute::I64});
    return "n";
  }

  /// The operand whose expression comes first in an order of expressions is written first.
  bool swapped(NodeId id) override {
    return segment_ && shape_of(g_.input(id, 1)) < shape_of(g_.input(id, 0));
  }

  /// A number for what an expression looks like, sizes aside.
  uint64_t shape_of(NodeId id) {
    id = f_.storage[id];
    while (is_broadcast(g_, id) && !in_memory(id)) id = f_.storage[g_.input(id, 0)];
    auto known = shapes_.find(id);
    if (known != shapes_.end()) return known->second;
    uint64_t h = 0;
    auto mix = [&h](uint64_t v) { h = (h ^ v) * 0x9E3779B97F4A7C15ull, h ^= h >> 29; };
    auto spell = [&mix](std::string_view name) {  // a name: what it is numbered may change
      for (char c : name) mix(16 + static_cast<uint64_t>(c));
    };
    spell(name(g_.dtype(id)));
    if (is_constant(g_, id) || in_memory(id)) {
      mix(is_constant(g_, id) ? 1 : own_element(id) ? 2 : 3);
    } else {
      spell(info(g_[id].op).name);
      std::vector<uint64_t> inputs;
      for (NodeId i : g_.inputs(id)) inputs.push_back(shape_of(i));
      if (commutes(g_[id].op)) std::sort(inputs.begin(), inputs.end());
      for (uint64_t i : inputs) mix(i);
    }
    return shapes_[id] = h;
  }

  /// The loops of one segment inside a loop over blocks: which segment a block is in, and what its
  /// arguments are.
  std::string of_segments(const std::string& loops) {
    std::string text =
        "  for (gc_index block = blockIdx.x; block < gc_blocks(all_end); block += gridDim.x) {\n"
        "    const int s = gc_segment(all_end, block);\n";
    for (Parameter& p : parameters_) {
      text += "    " + p.type + " " + p.name + " = all_" + p.name + "[s];\n";
      p = of_each(p, kCountMark);
    }
    parameter("const gc_index", "end", {Argument::Kind::Size, 0, step_.grid, Compute::I64});
    parameters_.back() = of_each(parameters_.back(), kCountMark);
    text +=
        "    const gc_index begin = s > 0 ? all_end[s - 1] : 0, end = all_end[s];\n"
        "    const gc_index first = (block - begin) * blockDim.x + threadIdx.x;\n"
        "    const gc_index step = (end - begin) * blockDim.x;\n";
    for (size_t at = 0; at < loops.size();) {
      size_t newline = loops.find('\n', at) + 1;
      text += (loops[at] == '#' ? "" : "  ") + loops.substr(at, newline - at);
      at = newline;
    }
    return text + "  }\n";
  }

  bool segment_;
  int64_t count_ = 0;
  Dims dims_;
  /// Pointer and stored type, by node; in segments by when they were met.
  std::map<size_t, std::pair<std::string, std::string>> direct_;
  std::map<NodeId, uint64_t> shapes_;
  std::set<BufferId> own_, elsewhere_;  ///< read at the element that is written; at others
};

size_t bytes_of(const Argument& a, bool wide) {
  switch (a.kind) {
    case Argument::Kind::Buffer:
    case Argument::Kind::Status:
      return 8;
    case Argument::Kind::Constant:
      return compute_size(a.type);
    case Argument::Kind::Divisor:
      return wide ? 24 : 12;
    default:
      return wide ? 8 : 4;
  }
}

}  // namespace

Written write_flat(const WriterInputs& in, int32_t stage, std::span<const NodeId> outputs) {
  if (std::optional<Written> tiles = write_transposed(in, stage, outputs)) return *std::move(tiles);
  return FlatWriter(in, stage, false).run(outputs);
}

Written write_segment(const WriterInputs& in, int32_t stage, std::span<const NodeId> outputs) {
  return FlatWriter(in, stage, true).run(outputs);
}

size_t segments_a_launch(const WriterInputs& in, const Step& segment) {
  size_t each = 0, gaps = 4 * segment.arguments.size();
  for (const Argument& a : segment.arguments) each += bytes_of(a, in.wide);
  return (kMaxParameters - gaps) / each;
}

std::vector<Written> write_segments(const WriterInputs& in, int32_t stage,
                                    std::span<const std::vector<NodeId>> segments) {
  std::vector<Written> parts;
  for (const auto& outputs : segments) parts.push_back(write_segment(in, stage, outputs));
  size_t most = segments_a_launch(in, parts[0].step);
  size_t launches = (parts.size() + most - 1) / most;
  size_t each = (parts.size() + launches - 1) / launches;
  std::vector<Written> joined;
  for (size_t at = 0; at < parts.size(); at += each) {
    Written w = parts[at];
    for (size_t mark; (mark = w.text.find(kCountMark)) != std::string::npos;)
      w.text.replace(mark, std::string(kCountMark).size(), std::to_string(each));
    for (size_t i = at + 1; i < at + each; ++i) {
      // Where the last launch has fewer segments, copies without blocks fill it up.
      bool copy = i >= parts.size();
      Step& step = parts[std::min(i, parts.size() - 1)].step;
      if (!copy) {
        step.arguments.back().value += w.step.grid;
        w.step.grid += step.grid;
        w.step.nodes += step.nodes, w.step.instructions += step.instructions;
        w.step.bytes_written += step.bytes_written;
        w.step.location = step.location;
        w.step.by_element.push_back(step.by_element[0]);
        for (auto [buffer, bytes] : parts[i].read)
          if (w.read.emplace(buffer, bytes).second) w.step.bytes_read += bytes;
      }
      w.step.arguments.insert(w.step.arguments.end(), step.arguments.begin(), step.arguments.end());
    }
    w.step.segments = narrow<uint32_t>(each);
    joined.push_back(std::move(w));
  }
  return joined;
}

}  // namespace gradcell::cuda
