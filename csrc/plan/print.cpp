// Plans as text: one line an instruction.
#include <sstream>

#include "plan/loop_plan.h"

namespace gradcell {

namespace {

constexpr const char* kComputeNames[] = {"f32", "f64", "i32", "i64"};

std::string text(const Operand& o) {
  std::string s = (o.uniform ? "u" : "v") + std::to_string(o.value);
  if (o.base != 0 || (o.stride != 1 && !o.uniform))
    s += "[" + std::to_string(o.base) + "::" + std::to_string(o.stride) + "]";
  return s;
}

std::string text(const Plan& p, BufferId b) {
  const Buffer& buffer = p.buffers[b];
  switch (buffer.place) {
    case Place::Input:
      return "input" + std::to_string(buffer.index);
    case Place::Output:
      return "output" + std::to_string(buffer.index);
    default:
      return "temp+" + std::to_string(buffer.offset) +
             (buffer.feature_major ? "^T"
              : buffer.tiled       ? "^tiles"
                                   : "");
  }
}

void write(std::ostream& out, const Plan& p, const Region& r) {
  out << "  region rows=" << r.rows;
  if (r.block > 1) out << " blocks of " << r.block;
  out << " scratch=" << r.row_bytes << "/row\n";
  for (size_t u = 0; u < r.uniforms.size(); ++u) {
    const Uniform& uniform = r.uniforms[u];
    out << "    u" << u << " = ";
    if (uniform.constant >= 0)
      out << "constant" << uniform.constant;
    else
      out << text(p, uniform.buffer) << " x" << uniform.count;
    out << "\n";
  }
  for (size_t w = 0; w < r.weights.size(); ++w)
    out << "    w" << w << " = pack " << text(p, r.weights[w].buffer) << " " << r.weights[w].k
        << "x" << r.weights[w].m << "\n";
  for (const RowLoad& l : r.loads)
    out << "    v" << l.value << " = load " << text(p, l.buffer) << " x"
        << r.values[l.value].features
        << (l.viewed() ? " view " + to_string(l.view.dims) + " by " + to_string(l.view.strides)
                       : "")
        << "\n";
  for (const Instruction& i : r.program) {
    out << "    " << (accumulates(i) ? "acc" : "v") << i.dst << (accumulates(i) ? " += " : " = ");
    if (i.kind == TileOp::Elementwise)
      out << info(i.op).function;
    else if (i.kind == TileOp::Choose)
      out << "by " << info(i.op).function << " ";
    else if (i.kind == TileOp::Formula)
      out << "[" << kFormulas[narrow<int>(i.formula)] << "]";
    else if (i.combine != Combine::Sum)
      out << "reduce_" << combine_name(i.combine) << " ";
    out << info(i.kind).text;
    for (int k = 0; k < i.operand_count; ++k) {
      static const char* const kLinks[] = {" + ", " - ", " -> - ", " * "};
      if (i.kind == TileOp::Chain && k > 0)
        out << kLinks[narrow<int>(i.links[k - 1])];
      else
        out << (k ? ", " : " ");
      out << text(i.operand[k]);
    }
    if (i.kind == TileOp::Product) out << ", w" << i.weights;
    out << "  : " << kComputeNames[narrow<int>(i.type)] << " x" << i.features;
    if (i.inner) out << " (" << i.inner << ")";
    out << "\n";
  }
  for (const RowStore& s : r.stores)
    out << "    store " << text(s.from) << " -> " << text(p, s.buffer) << "\n";
  for (size_t a = 0; a < r.accumulators.size(); ++a)
    out << "    store acc" << a << " -> " << text(p, r.accumulators[a].buffer) << "\n";
}

/// What a step of a loop does, indented.
void write(std::ostream& out, const LoopPlan& loop) {
  out << "    " << loop.steps << " steps" << (loop.reverse ? ", the last one first" : "") << "\n";
  std::istringstream body(to_text(loop.body));
  for (std::string line; std::getline(body, line);) out << "    " << line << "\n";
}

}  // namespace

std::string to_text(const Plan& p) {
  std::ostringstream out;
  out << "plan: " << p.inputs.size() << " inputs, " << p.constants.size() << " constants, "
      << p.outputs.size() << " outputs, " << p.node_count << " nodes, arena " << p.arena_bytes
      << " bytes\n";
  for (size_t s = 0; s < p.stages.size(); ++s) {
    out << "stage " << s << "\n";
    for (int32_t c : p.stages[s].waits) out << "  wait for collective " << c << "\n";
    for (const Region& r : p.stages[s].regions) write(out, p, r);
    for (const Call& c : p.stages[s].calls) {
      if (c.sequence >= 0)
        out << "  collective " << c.sequence << " " << info(c.op).name;
      else
        out << "  call " << info(c.op).name;
      for (size_t i = 1; i < c.joined.size(); ++i) out << ", " << info(c.joined[i].op).name;
      for (size_t i = 0; i < c.inputs.size(); ++i)
        out << " " << text(p, c.inputs[i]) << to_string(c.in[i].dims);
      out << " -> " << text(p, c.output) << to_string(c.out.dims);
      for (size_t i = 0; i < c.more.size(); ++i)
        out << ", " << text(p, c.more[i]) << to_string(c.more_out[i].dims);
      out << "\n";
      if (c.loop) write(out, *c.loop);
    }
  }
  return out.str();
}

}  // namespace gradcell
