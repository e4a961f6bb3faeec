#include "cuda/write/regions/region_writer.h"

#include <algorithm>

namespace gradcell::cuda {

std::string mapped(const Map& map, const std::string& f) {
  if (has_many_runs(map)) {
    const auto coordinates = coordinates_of(map);
    require(coordinates.has_value(), ErrorKind::Runtime, "planning: a map that is no expression");
    std::string sum = std::to_string(map[0]);
    for (const Coordinate& c : *coordinates) {
      if (c.step == 0) continue;
      const std::string part = c.divisor == 1 ? str("(", f, ")") : str("(", f, ") / ", c.divisor);
      sum += str(" + ", part, " % ", c.count, " * ", c.step);
    }
    return "(" + sum + ")";
  }
  std::string text;
  size_t open = 0;
  const std::vector<Run> runs = runs_of(map);
  for (size_t k = 0; k < runs.size(); ++k) {
    const Run& r = runs[k];
    const int32_t base = r.first - r.step * r.begin;
    std::string value = r.step == 0 ? str(r.first) : r.step == 1 ? f : str(r.step, " * ", f);
    if (r.step != 0 && base != 0) value += str(base < 0 ? " - " : " + ", base < 0 ? -base : base);
    if (k + 1 < runs.size())
      text += str("(", f, " < ", r.end, " ? ", value, " : "), ++open;
    else
      text += value;
  }
  return text + std::string(open, ')');
}

namespace {

/// A dtype whose elements are what registers of a type hold.
DType held(Compute c) {
  return c == Compute::F32   ? DType::Float32
         : c == Compute::F64 ? DType::Float64
         : c == Compute::I32 ? DType::Int32
                             : DType::Int64;
}

}  // namespace

// Phases ------------------------------------------------------------------------------------------

std::string RegionWriter::write_phases() {
  std::string phases;
  size_t at = 0;
  for (int32_t phase = 0; at < p_.items.size(); ++phase) {
    if (phase > 0) phases += "      __syncthreads();\n";
    phases += write_phase(phase, at);
  }
  return phases;
}

/// Writes the items of a phase, from `at` on.
std::string RegionWriter::write_phase(int32_t phase, size_t& at) {
  phase_text_.clear(), declared_.clear(), known_values_.clear();
  std::map<uint32_t, size_t> last;  // the item that writes a value last in this phase
  size_t end = at;
  for (; end < p_.items.size() && p_.items[end].phase == phase; ++end)
    if (const int64_t v = written_by(p_.items[end]); v >= 0) last[narrow<uint32_t>(v)] = end;
  changed_.clear();
  for (const auto& [v, item] : last) changed_.insert(v);
  for (; at < end; ++at) {
    write(p_.items[at]);
    const int64_t v = written_by(p_.items[at]);
    if (v < 0) continue;
    const auto value = narrow<uint32_t>(v);
    written_.insert(value);
    if (p_.shared[value] && last[value] == at)
      each(r_.values[value].features,
           str("if (own) ", in_tile(value, "f", "x"), " = v", value, "[j];"));
  }
  const std::string text = in_turns(before_phase());
  return text + after_phase();
}

std::string RegionWriter::in_turns(const std::string& before) {
  close();
  if (phase_text_.empty()) return {};
  std::string text = turns();
  for (uint32_t v : declared_)
    text += str("        ", name_of(r_.values[v].type), " v", v, "[", chunk(r_.values[v].features),
                "];\n");
  text += before + phase_text_ + "      }\n";
  phase_text_.clear(), declared_.clear(), known_values_.clear();
  return text;
}

int64_t RegionWriter::written_by(const TileItem& item) const {
  switch (item.kind) {
    case TileItem::Kind::Load:
      return r_.loads[item.index].value;
    case TileItem::Kind::Collect:
      return r_.program[item.index].dst;
    case TileItem::Kind::Compute:
      if (accumulates(r_.program[item.index]) || has_parts(item.index)) return -1;
      return r_.program[item.index].dst;
    case TileItem::Kind::Store:
    case TileItem::Kind::Carry:
      break;
  }
  return -1;
}

void RegionWriter::each(int32_t features, const std::string& statement) {
  if (loop_features_ != features) close();
  loop_features_ = features;
  loop_ += "          " + statement + "\n";
}

void RegionWriter::close() {
  if (!loop_.empty())
    phase_text_ += str("#pragma unroll\n        for (int j = 0; j < ", chunk(loop_features_),
                       "; ++j) {\n", place_of_thread(loop_features_), loop_, "        }\n");
  loop_.clear();
  loop_features_ = 0;
}

void RegionWriter::plain(const std::string& statement) {
  close();
  phase_text_ += "        " + statement + "\n";
}

std::string RegionWriter::in_registers(uint32_t v) {
  if (std::find(declared_.begin(), declared_.end(), v) == declared_.end()) declared_.push_back(v);
  known_values_.insert(v);
  return "v" + std::to_string(v);
}

std::string RegionWriter::own(uint32_t v) {
  if (known_values_.contains(v)) return "v" + std::to_string(v);
  const std::string name = in_registers(v), there = in_tile(v, "f", "x");
  // A thread without features of its own reads the last one, unless that is about to change.
  const bool changes = changed_.contains(v) || changes_elsewhere(v);
  const std::string read = changes ? "own ? " + there + " : 0" : there;
  each(r_.values[v].features, name + "[j] = " + read + ";");
  return name;
}

// Operands ----------------------------------------------------------------------------------------

std::string RegionWriter::element(const Operand& o, int32_t features, const std::string& f) {
  if (o.uniform) return uniform(o, features, f);
  return in_tile(o.value, along(o, f), "x");
}

std::string RegionWriter::element(const Operand& o, int32_t features) {
  if (!o.uniform && reads_own(r_, o, features)) return own(o.value) + "[j]";
  return element(o, features, "f");
}

std::string RegionWriter::along(const Operand& o, const std::string& f) {
  if (o.stride == 0) return std::to_string(o.base);
  const std::string scaled = o.stride == 1 ? f : str(o.stride, " * ", "(", f, ")");
  return o.base == 0 ? scaled : str(scaled, o.base < 0 ? " - " : " + ", std::abs(o.base));
}

std::string RegionWriter::uniform(const Operand& o, int32_t features, const std::string& f) {
  const Uniform& u = r_.uniforms[o.value];
  if (u.constant >= 0) return constant(narrow<uint32_t>(u.constant), u.dtype);
  std::string at = along(o, f);
  if (!u.map.empty()) {
    Map map;
    for (int32_t k = 0; k < (o.stride == 0 ? 1 : features); ++k)
      map.push_back(u.map[static_cast<size_t>(o.base + o.stride * k)]);
    at = gradcell::cuda::mapped(map, f);
  }
  return "(" + decoded(u.dtype, source(u.buffer) + "[" + at + "]") + ")";
}

// Items -------------------------------------------------------------------------------------------

void RegionWriter::write(const TileItem& item) {
  switch (item.kind) {
    case TileItem::Kind::Load:
      return load(r_.loads[item.index]);
    case TileItem::Kind::Compute:
      return compute(item.index);
    case TileItem::Kind::Collect:
      return collect(item.index);
    case TileItem::Kind::Store:
      return store(r_.stores[item.index]);
    case TileItem::Kind::Carry:
      return carry(item.index);
  }
}

void RegionWriter::load(const RowLoad& l) {
  const int32_t features = r_.values[l.value].features;
  std::string place = features == 1 ? "r" : str("r * ", features);
  if (l.viewed()) place = place_in(l.view, 0, l.view.dims.size(), "r", l.view.offset);
  if (features > 1) place += " + f";
  const std::string p = source(l.buffer);
  each(features, in_registers(l.value) + "[j] = " + decoded(l.dtype, p + "[" + place + "]") + ";");
}

void RegionWriter::store(const RowStore& s) {
  const std::string value = element(s.from, s.features), q = target(s.buffer);
  const std::string place = s.features == 1 ? "r" : str("r * ", s.features, " + f");
  each(s.features, "if (own && live) " + q + "[" + place + "] = " + encoded(s.dtype, value) + ";");
}

void RegionWriter::compute(uint32_t at) {
  const Instruction& i = r_.program[at];
  switch (i.kind) {
    case TileOp::Elementwise: {
      std::array<std::string, 3> in;
      for (int k = 0; k < i.operand_count; ++k) in[k] = element(i.operand[k], i.features);
      return assign(i, applied(i.op, type_name(compute_type(i.dtype)), in));
    }
    case TileOp::Convert:
      return assign(i, converted(held(i.type), i.dtype, element(i.operand[0], i.features)));
    case TileOp::Narrow:
      return assign(i, narrowed(i.dtype, element(i.operand[0], i.features)));
    case TileOp::Copy: {
      const std::string from = i.map < 0 ? "f" : gradcell::cuda::mapped(map(i.map), "f");
      return assign(i, i.map < 0 ? element(i.operand[0], i.features)
                                 : element({false, i.operand[0].value, 0, 1}, i.features, from));
    }
    case TileOp::Scatter:
      return scatter(i);
    case TileOp::FeatureReduce:
      return reduce_features(i);
    case TileOp::Product:
      return multiply(i);
    case TileOp::RowReduce:
      return reduce_rows(i);
    case TileOp::WeightGrad:
      return add_outer(i);
    case TileOp::Surround:  // of loops' bodies on a CPU
    case TileOp::Chain:
    case TileOp::Formula:
    case TileOp::Choose:
      break;
  }
  fail(ErrorKind::Runtime, "no tile kernel has joined instructions");
}

void RegionWriter::scatter(const Instruction& i) {
  const std::string before = i.zero || !written_.contains(i.dst) ? "0" : own(i.dst) + "[j]";
  const std::string from = gradcell::cuda::mapped(inverse(map(i.map), i.features), "f");
  const std::string value = element(i.operand[0], i.inner, "k");
  const std::string to = in_registers(i.dst);
  each(i.features,
       "{ const int k = " + from + "; " + to + "[j] = k < 0 ? " + before + " : " + value + "; }");
}

std::string RegionWriter::term(const Instruction& i) {
  Operand from = i.operand[0];
  from.stride = 1;
  const std::string place =
      gradcell::cuda::mapped(map(i.map), "f") + " + " + gradcell::cuda::mapped(map(i.map2), "k");
  return element(from, i.features, place);
}

void RegionWriter::reduce_features(const Instruction& i) {
  const std::string type = name_of(r_.values[i.dst].type), op = reduction(i.combine, type);
  const std::string to = in_registers(i.dst) + "[j]";
  each(i.features, to + " = " + op + "::none();");
  each(i.features, str("for (int k = 0; k < ", i.inner, "; ++k) ", to, " = ", op, "::of(", to, ", ",
                       term(i), ");"));
}

}  // namespace gradcell::cuda
