#include "cuda/write/writer.h"

#include <algorithm>

#include "ops/moving/index.h"
#include "ops/moving/order.h"
#include "plan/costs.h"

namespace gradcell::cuda {

namespace {

/// More blocks than this only wait for each other.
constexpr int64_t kMaxGrid = 8192;

/// With no bound the compiler may use more registers than a block of this many threads can have;
/// without the 1, a block a multiprocessor, it would rather spill some than have fewer blocks.
std::string launch_bounds(uint32_t threads, const char* blocks) {
  return str("__launch_bounds__(", threads, ", ", blocks, ")");
}

}  // namespace

uint32_t grid_for(int64_t items, int64_t each) {
  return narrow<uint32_t>(std::clamp<int64_t>((items + each - 1) / each, 1, kMaxGrid));
}

// Parameters --------------------------------------------------------------------------------------

void Writer::parameter(std::string type, std::string name, Argument a) {
  parameters_.push_back({std::move(type), std::move(name)});
  step_.arguments.push_back(a);
}

std::string Writer::buffer(BufferId b, const char* type, bool written, const std::string& name) {
  std::string& known = known_[(written ? "write " : "read ") + std::to_string(b)];
  if (!known.empty()) return known;
  // Nothing that a kernel writes is read through another pointer of the same launch, but for an
  // update in place (flat_writer.cpp).
  parameter((written ? "" : "const ") + std::string(type) + "* __restrict__", name,
            {Argument::Kind::Buffer, b, 0, Compute::F32});
  return known = name;
}

std::string Writer::reads(NodeId id) {
  BufferId b = in_.buffer_of[id];
  if (auto it = known_.find("read " + std::to_string(b)); it != known_.end()) return it->second;
  step_.bytes_read += bytes(id);
  read_[b] = bytes(id);
  return buffer(b, stored_type(g_.dtype(id)), false, "p" + std::to_string(reads_++));
}

std::string Writer::writes(NodeId id) {
  step_.bytes_written += bytes(id);
  return buffer(in_.buffer_of[id], stored_type(g_.dtype(id)), true,
                "q" + std::to_string(writes_++));
}

std::string Writer::index_parameter(Argument::Kind kind, const char* type, const char* letter,
                                    int64_t value) {
  if (value == 0 || value == 1) return std::to_string(value);
  std::string& name = known_[letter + std::to_string(value)];
  if (!name.empty()) return name;
  name = letter + std::to_string(index_parameters_[letter[0]]++);
  parameter(type, name, {kind, 0, value, Compute::I64});
  return name;
}

std::string Writer::size(int64_t value) {
  return index_parameter(Argument::Kind::Size, "const gc_index", "n", value);
}

std::string Writer::divisor(int64_t value) {
  return index_parameter(Argument::Kind::Divisor, "const gc_divisor", "d", value);
}

std::string Writer::constant(NodeId id) {
  require(in_.constant_of[id] >= 0, ErrorKind::Runtime, "planning: a constant that no run brings");
  return constant(narrow<uint32_t>(in_.constant_of[id]), g_.dtype(id));
}

std::string Writer::constant(uint32_t index, DType dtype) {
  std::string& name = known_["constant " + std::to_string(index)];
  if (!name.empty()) return name;
  name = "c" + std::to_string(constants_++);
  Compute type = compute_type(dtype);
  parameter("const " + std::string(type_name(type)), name,
            {Argument::Kind::Constant, index, 0, type});
  return name;
}

std::string Writer::status() {
  if (!known_.contains("status"))
    parameter("int*", "status", {Argument::Kind::Status, 0, 0, Compute::I32});
  return known_["status"] = "status";
}

std::string Writer::packs(int64_t value) {
  parameter("const gc_index", "packs", {Argument::Kind::Packs, 0, value, Compute::I64});
  return "packs";
}

Writer::Parameter Writer::of_each(const Parameter& p, const std::string& segments) {
  std::string type = p.type;
  for (const char* word : {" __restrict__", "const "})
    if (size_t at = type.find(word);
        at != std::string::npos && (word[0] == ' ' || type.back() != '*'))
      type.erase(at, std::string(word).size());
  return {"const __grid_constant__ gc_each<" + type + ", " + segments + ">", "all_" + p.name};
}

// Text --------------------------------------------------------------------------------------------

void Writer::line(const std::string& text) {
  const std::string whole = scopes_.back()->indent + text + "\n";
  scopes_.back()->text += whole;
  if ((length_ += whole.size()) > in_.longest) throw TooLong();
}

void Writer::block(const std::string& head, const Scope& inside) {
  line(head + " {");
  scopes_.back()->text += inside.text;
  line("}");
}

std::string Writer::let(const char* type, const std::string& expression, const char* prefix) {
  std::string key = std::string(type) + " " + expression;
  for (auto s = scopes_.rbegin(); s != scopes_.rend(); ++s)
    if (auto it = (*s)->names.find(key); it != (*s)->names.end()) return it->second;
  std::string name = prefix + std::to_string(next_++);
  line("const " + std::string(type) + " " + name + " = " + expression + ";");
  return scopes_.back()->names[key] = name;
}

void Writer::count_node(NodeId id) {
  if (!counted_.insert(id).second) return;
  ++step_.nodes;
  if (is_elementwise(g_[id].op))
    step_.instructions += g_.count(id) * element_cost(g_, id).gpu_instructions;
  step_.location = g_[id].location;
  std::string word = info(g_[id].op).function;
  bool computes = is_elementwise(g_[id].op) || f_.node[id].role == Role::RowReduce ||
                  f_.node[id].role == Role::Alone || f_.node[id].role == Role::Tile;
  if (!computes && moved_.empty()) moved_ = word;
  if (computes && std::find(title_.begin(), title_.end(), word) == title_.end())
    title_.push_back(word);
}

Written Writer::written(const std::string& text_of_body, const char* fallback_title,
                        uint32_t threads, const char* blocks) {
  Written w;
  std::string formal;
  for (const Parameter& p : parameters_)
    formal += (formal.empty() ? "" : ", ") + p.type + " " + p.name;
  w.text = "extern \"C\" __global__ void " + launch_bounds(threads, blocks) + " " + kNameMark +
           "(" + formal + ") {\n" + text_of_body + "}\n";
  // The first ops and the last say best what a kernel is.
  if (title_.size() > 4) title_.erase(title_.begin() + 2, title_.end() - 2);
  for (const std::string& t : title_) w.title += (w.title.empty() ? "" : "_") + t;
  if (w.title.empty()) w.title = moved_.empty() ? fallback_title : moved_;
  step_.stage = stage_;
  w.step = std::move(step_);
  w.read = std::move(read_);
  return w;
}

// Indices -----------------------------------------------------------------------------------------

std::string Writer::linear(NodeId id, const Index& at) { return linear(g_.count(id), at); }

std::string Writer::linear(int64_t count, const Index& at) {
  if (at.row.empty()) return at.linear;
  const int64_t features = count / rows_;
  if (features == 1) return at.row;
  std::string row = at.row + " * " + size(features);
  return let("gc_index", at.feature == "0" ? row : row + " + " + at.feature, "i");
}

std::vector<std::string> Writer::coordinates(const Dims& dims, const std::vector<uint8_t>& wanted,
                                             const std::string& place) {
  std::vector<std::string> c(dims.size());
  size_t first = 0;  // the first dimension that is wanted or needed to get at one
  while (first < dims.size() && !wanted[first]) ++first;
  std::string rest = place;
  int64_t skipped = 1;  // innermost dimensions that nobody wants
  for (size_t k = dims.size(); k-- > first;) {
    if (dims[k] == 1) {
      c[k] = "0";
      continue;
    }
    if (!wanted[k]) {
      skipped *= dims[k];
      continue;
    }
    if (skipped > 1) rest = let("gc_index", rest + " / " + divisor(skipped), "i");
    skipped = dims[k];
    bool outermost = std::all_of(dims.begin(), dims.begin() + static_cast<ptrdiff_t>(k),
                                 [](int64_t d) { return d == 1; });
    c[k] = outermost ? rest : let("gc_index", rest + " % " + divisor(dims[k]), "i");
  }
  return c;
}

std::string Writer::place_in(const View& v, size_t begin, size_t end, const std::string& place,
                             int64_t offset) {
  Dims dims, strides;
  for (size_t k = begin; k < end; ++k) {
    if (v.dims[k] == 1) continue;
    bool joins = !dims.empty() && strides.back() == v.strides[k] * v.dims[k];
    if (joins)
      dims.back() *= v.dims[k], strides.back() = v.strides[k];
    else
      dims.push_back(v.dims[k]), strides.push_back(v.strides[k]);
  }
  std::vector<uint8_t> wanted;
  for (int64_t s : strides) wanted.push_back(s != 0);
  std::vector<std::string> c = coordinates(dims, wanted, place);
  std::string sum = offset != 0 ? size(offset) : "";
  for (size_t k = 0; k < dims.size(); ++k) {
    if (strides[k] == 0) continue;
    bool down = strides[k] < 0;
    std::string term = c[k];
    int64_t step = down ? -strides[k] : strides[k];
    if (step != 1) term += " * " + size(step);
    sum = sum.empty() ? (down ? "-" + term : term) : sum + (down ? " - " : " + ") + term;
  }
  if (sum.empty()) return "0";
  bool atom = sum.find(' ') == std::string::npos && sum[0] != '-';
  return atom ? sum : let("gc_index", sum, "i");
}

Index Writer::seen(const View& v, int64_t source_count, const Index& at) {
  if (source_count == 1) return flat("0");
  if (at.row.empty()) return flat(place_in(v, 0, v.dims.size(), at.linear, v.offset));
  size_t lead = 0;
  int64_t led = 1;
  while (lead < v.dims.size() && led < rows_) led *= v.dims[lead++];
  if (led != rows_) {  // rows end within a dimension
    const int64_t count = product(v.dims, 0, v.dims.size());
    return flat(place_in(v, 0, v.dims.size(), linear(count, at), v.offset));
  }
  std::string inside = place_in(v, lead, v.dims.size(), at.feature, v.offset);
  View rows{Dims(v.dims.begin(), v.dims.begin() + static_cast<ptrdiff_t>(lead)),
            Dims(v.strides.begin(), v.strides.begin() + static_cast<ptrdiff_t>(lead)), 0};
  // One stride for all rows: the view keeps them, if the source has as many.
  int64_t stride = source_count / rows_;
  bool kept = source_count % rows_ == 0 && stride > 0;
  int64_t expected = stride;
  for (size_t k = lead; kept && k-- > 0;) {
    if (rows.dims[k] == 1) continue;
    kept = rows.strides[k] == expected;
    expected *= rows.dims[k];
  }
  if (kept) return {"", at.row, inside};
  std::string outside = place_in(rows, 0, lead, at.row, 0);
  if (outside == "0") return flat(inside);
  if (inside == "0") return flat(outside);
  return flat(let("gc_index", outside + " + " + inside, "i"));
}

// Values ------------------------------------------------------------------------------------------

std::string Writer::load(NodeId id, const Index& at) {
  std::string place = g_.count(id) == 1 ? "0" : linear(id, at);
  DType t = g_.dtype(id);
  return let(type_name(compute_type(t)), decoded(t, reads(id) + "[" + place + "]"), "v");
}

std::string Writer::reduced(NodeId id, const Index&) {
  fail(ErrorKind::Runtime, "a kernel needs ", info(g_[id].op).name, " before its buffer is there");
}

/// Whether an index is known as the text is written.
static bool is_number(const std::string& index) {
  return !index.empty() && index.find_first_not_of("0123456789") == std::string::npos;
}

std::string Writer::value(NodeId id, const Index& at) {
  id = f_.storage[id];
  if (is_constant(g_, id)) return constant(id);
  std::string key = value_key(id, at);
  for (auto s = scopes_.rbegin(); s != scopes_.rend(); ++s)
    if (auto it = (*s)->names.find(key); it != (*s)->names.end()) return it->second;

  // What is the same for a whole row is computed once a row.
  bool per_row = rows_ > 0 && scopes_.size() > 1 && at.linear.empty() && is_number(at.feature);
  std::vector<Scope*> inner;
  if (per_row) {
    inner = scopes_;
    scopes_.resize(1);
  }
  std::string name = in_memory(id)                   ? load(id, at)
                     : f_.node[id].role == Role::Map ? compute(id, at)
                                                     : reduced(id, at);
  scopes_.back()->names[key] = name;
  if (per_row) scopes_ = std::move(inner);
  return name;
}

std::string Writer::compute(NodeId id, const Index& at) {
  count_node(id);
  switch (form(g_, id)) {
#define FORM(Name, parts, rows, tile, call, kernel, cost, value, writer) \
  case Form::Name:                                                       \
    return value(id, at);
#include "ir/forms.def"
  }
  return no_value(id, at);
}

const char* Writer::type_of(NodeId id) const { return type_name(compute_type(g_.dtype(id))); }

std::string Writer::no_value(NodeId id, const Index&) {
  fail(ErrorKind::NotImplemented, info(g_[id].op).name, " cannot be computed element by element");
}

std::string Writer::by_row(NodeId id, const Index& at) {
  const Op op = g_[id].op;
  std::array<std::string, 3> in;
  const int n = g_[id].input_count;
  const bool swap = commutes(op) && swapped(id);
  for (int k = 0; k < n; ++k) in[k] = input(id, swap ? n - 1 - k : k, at);
  const std::string text = applied(op, type_of(g_.input(id, n - 1)), in);
  const DType t = g_.dtype(id);
  return let(type_of(id), t == DType::Bool ? text : narrowed(t, text), "v");
}

std::string Writer::cast(NodeId id, const Index& at) {
  const std::string x = input(id, 0, at);
  const std::string y = converted(g_.dtype(g_.input(id, 0)), g_.dtype(id), x);
  return y == x ? x : let(type_of(id), y, "v");
}

std::string Writer::moved(NodeId id, const Index& at) {
  const Movement m = spec(g_, id).movement(g_, id);
  const Piece& p = m.pieces[0];
  if (is_view(m)) return input(id, 0, seen(p.from, g_.count(g_.input(id, 0)), at));
  return m.zeros ? placed_in_zeros(id, p, at) : joined(id, m, at);
}

std::string Writer::ranged(NodeId id, const Index& at) {
  const Dims& d = g_.dims(id);
  const auto axis = static_cast<size_t>(g_.attrs(id)[0]);
  const int64_t n = d[axis], inner = product(d, axis + 1, d.size());
  Dims box{g_.count(id) / std::max<int64_t>(1, n * inner), n, inner};
  std::string c = n == 1 ? "0" : coordinates(box, {0, 1, 0}, linear(id, at))[1];
  return let(type_of(id), narrowed(g_.dtype(id), "(" + std::string(type_of(id)) + ")" + c), "v");
}

std::string Writer::random(NodeId id, const Index& at) {
  const NodeId state = f_.storage[g_.input(id, 0)];
  const std::string key = value(state, flat("0")), offset = value(state, flat("1"));
  return let(type_of(id), "gc_uniform(" + key + ", " + offset + ", " + linear(id, at) + ")", "v");
}

std::string Writer::of_integers(NodeId id, const Index& at) {
  std::string x[2];
  for (int k = 0; k < 2; ++k) {  // an operand without dimensions is the same at each place
    const NodeId from = f_.storage[g_.input(id, k)];
    x[k] = value(from, g_.dims(from).empty() ? flat("0") : at);
  }
  const DType t = g_.dtype(id);
  const std::string type = type_of(id), bits = std::to_string(8 * item_size(t));
  // (A long long holds the bits of an uint64.)
  auto size = [&](const std::string& v) {
    return (t == DType::UInt64 ? "(unsigned long long)" : "gc_size") + str("(", v, ")");
  };
  auto of = [&](const std::string& value) { return narrowed(t, "(" + type + ")" + value); };
  const auto text = [&] {
    switch (static_cast<IntegerFunction>(attributes<IntegersAttributes>(g_, id).function)) {
      case IntegerFunction::And:
        return str(x[0], " & ", x[1]);
      case IntegerFunction::Or:
        return str(x[0], " | ", x[1]);
      case IntegerFunction::Xor:
        return str(x[0], " ^ ", x[1]);
      case IntegerFunction::LeftShift:
        return of(str("gc_left(", x[0], ", ", x[1], ", ", bits, ")"));
      case IntegerFunction::RightShift:
        return of(
            str("gc_right(", t == DType::UInt64 ? size(x[0]) : x[0], ", ", x[1], ", ", bits, ")"));
      case IntegerFunction::Gcd:
        return of(str("gc_divisor_of(", size(x[0]), ", ", size(x[1]), ")"));
      case IntegerFunction::Lcm: {
        const std::string all = of(str("gc_multiple_of(", size(x[0]), ", ", size(x[1]), ")"));
        return is_unsigned(t) ? all : of(str("abs((", type, ")", all, ")"));
      }
    }
    fail(ErrorKind::NotImplemented, "a function of integers without a text");
  }();
  return let(type_of(id), text, "v");
}

size_t Writer::dimensions_of_row(NodeId id, const Piece& p, const Index& at) const {
  if (at.row.empty()) return 0;
  const Dims& to = g_.dims(id);
  size_t lead = 0;
  int64_t rows = 1;
  while (lead < to.size() && rows < rows_) rows *= to[lead++];
  const bool stay = rows == rows_ && lead > 0 &&
                    rows_of(p, to, lead, rows_, g_.count(g_.input(id, p.input))) == RowsOf::Same;
  return stay ? lead : 0;
}

std::string Writer::place_in_piece(const std::string& d, int64_t start, int64_t step, int64_t n,
                                   std::string& inside) {
  const std::string from_start = step < 0     ? let("gc_index", size(start) + " - " + d, "i")
                                 : start == 0 ? d
                                              : let("gc_index", d + " - " + size(start), "i");
  const int64_t stride = n == 1 ? 1 : step < 0 ? -step : step;  // a single element: any step
  inside += (inside.empty() ? "" : " && ") + from_start + " >= 0 && " + from_start + " < " +
            size(n) + " * " + size(stride);
  if (stride == 1) return from_start;
  inside += " && " + from_start + " % " + divisor(stride) + " == 0";
  return let("gc_index", from_start + " / " + divisor(stride), "i");
}

/// Zero, but for the places that hold an element of the piece.
std::string Writer::placed_in_zeros(NodeId id, const Piece& p, const Index& at) {
  const size_t lead = dimensions_of_row(id, p, at);
  const bool in_row = lead > 0;
  const auto inner = [lead](const Dims& all) {
    return Dims(all.begin() + static_cast<ptrdiff_t>(lead), all.end());
  };
  const Dims box = inner(g_.dims(id)), sizes = inner(p.from.dims), strides = inner(p.from.strides);
  const std::vector<std::string> c =
      coordinates(box, std::vector<uint8_t>(box.size(), 1), in_row ? at.feature : linear(id, at));
  std::string inside, place = p.from.offset == 0 ? "" : size(p.from.offset);
  for (size_t k = 0; k < box.size(); ++k) {
    const int64_t start = p.start[lead + k], step = p.step[lead + k], n = sizes[k];
    const bool whole = start == 0 && step == 1 && n == box[k];
    const std::string d = whole ? c[k] : place_in_piece(c[k], start, step, n, inside);
    if (n == 1) continue;
    const std::string term = strides[k] == 1 ? d : d + " * " + size(strides[k]);
    place += (place.empty() ? "" : " + ") + term;
  }
  if (place.empty()) place = "0";
  const std::string result = "v" + std::to_string(next_++);
  const Scope branch = nested([&] {
    std::string name = place.find(' ') == std::string::npos ? place : let("gc_index", place, "i");
    Index where = in_row ? Index{"", at.row, name} : flat(name);
    line(result + " = " + value(f_.storage[g_.input(id, p.input)], where) + ";");
  });
  line(std::string(type_of(id)) + " " + result + " = 0;");
  block("if (" + (inside.empty() ? "true" : inside) + ")", branch);
  return result;
}

/// Whole tensors without gaps between them: they lie behind each other along one axis.
std::string Writer::joined(NodeId id, const Movement& m, const Index& at) {
  const Dims &to = g_.dims(id), &last = m.pieces.back().start;
  const auto axis = static_cast<size_t>(
      std::find_if(last.begin(), last.end(), [](int64_t s) { return s != 0; }) - last.begin());
  const int64_t inner = product(to, axis + 1, to.size()), before = product(to, 0, axis);
  int64_t begin = 0;
  bool in_row = !at.row.empty() && before % rows_ == 0;
  int64_t outer = in_row ? before / rows_ : before, width = to[axis] * inner;
  std::string place = in_row ? at.feature : linear(id, at);
  std::vector<std::string> c = coordinates({outer, width}, {1, 1}, place);
  if (width == 1) c[1] = "0";
  if (in_row && outer == 1 && is_number(c[1])) {  // it is known in which
    int64_t which = std::stoll(c[1]);
    for (const Piece& p : m.pieces) {
      const int64_t part = p.from.dims[axis] * inner;
      if (which < part)
        return value(f_.storage[g_.input(id, p.input)], {"", at.row, std::to_string(which)});
      which -= part;
    }
  }
  std::string result = "v" + std::to_string(next_++);
  std::vector<Scope> branches;
  std::vector<std::string> tests;
  for (const Piece& p : m.pieces) {
    NodeId x = g_.input(id, p.input);
    int64_t part = p.from.dims[axis] * inner;
    if (part == 0) continue;
    tests.push_back(begin + part == width ? "" : "if (" + c[1] + " < " + size(begin + part) + ") ");
    branches.push_back(nested([&] {
      std::string inside = begin == 0 ? c[1] : let("gc_index", c[1] + " - " + size(begin), "i");
      if (outer > 1) inside = let("gc_index", c[0] + " * " + size(part) + " + " + inside, "i");
      const Index where = in_row ? Index{"", at.row, inside} : flat(inside);
      line(result + " = " + value(f_.storage[x], where) + ";");
    }));
    begin += part;
  }
  line(std::string(type_name(compute_type(g_.dtype(id)))) + " " + result + ";");
  for (size_t k = 0; k < branches.size(); ++k) {
    line((k ? "} else " : "") + tests[k] + "{");
    scopes_.back()->text += branches[k].text;
  }
  line("}");
  return result;
}

std::string Writer::taken(NodeId id, const Index& at) {
  NodeId x = g_.input(id, 0), indices = g_.input(id, 1);
  auto axis = static_cast<size_t>(g_.attrs(id)[0]);
  const Dims& from = g_.dims(x);
  const int64_t outer = product(from, 0, axis), inner = product(from, axis + 1, from.size());
  const int64_t n = from[axis], m = g_.count(indices);
  require(n > 0, ErrorKind::Index, info(g_[id].op).name,
          ": an axis of size 0 has no element to take");
  std::vector<std::string> c =
      coordinates({outer, m, inner}, {outer > 1, 1, inner > 1}, linear(id, at));
  std::string which = value(f_.storage[indices], flat(m == 1 ? "0" : c[1]));
  const std::string checked = are_labels(g_[id].op) ? "gc_label(" : "gc_place(";
  std::string place =
      let("gc_index", checked + which + ", " + size(n) + ", " + status() + ")", "i");
  if (outer > 1) place = c[0] + " * " + size(n) + " + " + place;
  if (inner > 1) {
    if (outer > 1) place = let("gc_index", place, "i");
    place += " * " + size(inner) + " + " + c[2];
  }
  if (place.find(' ') != std::string::npos) place = let("gc_index", place, "i");
  return value(f_.storage[x], flat(place));
}

/// An element of a product with few terms.
std::string Writer::multiplied(NodeId id, const Index& at) {
  const auto p = attributes<ProductAttributes>(g_, id);
  const int64_t n = g_.dims(id).back(), rows = g_.count(id) / n;
  std::string row = at.row, column = at.feature;
  if (row.empty() || g_.count(id) / rows_ != n) {
    const std::vector<std::string> c = coordinates({rows, n}, {1, 1}, linear(id, at));
    row = c[0], column = c[1];
  }
  std::string sum;
  for (int pair = 0; pair < g_[id].input_count; pair += 2) {
    const NodeId a = f_.storage[g_.input(id, pair)], b = f_.storage[g_.input(id, pair + 1)];
    const ProductSizes s = sizes_of(g_.dims(g_.input(id, pair)), g_.dims(id), p);
    const bool one = rows == s.m;
    const std::string which = one ? "" : let("gc_index", row + " / " + divisor(s.m), "i");
    const std::string within =
        one || !p.transpose_a ? row : let("gc_index", row + " % " + divisor(s.m), "i");
    // An operand's element (i, j) of so many columns, in its own matrix of the batch.
    auto element = [&](NodeId x, const std::string& i, const std::string& j, int64_t columns,
                       const std::string& matrix, int64_t count) {
      std::string place = columns == 1 ? i : i == "0" ? j : i + " * " + size(columns);
      if (columns > 1 && i != "0" && j != "0") place += " + " + j;
      if (!matrix.empty()) place = matrix + " * " + size(count) + " + " + place;
      if (place.find(' ') != std::string::npos) place = let("gc_index", place, "i");
      return value(x, flat(place));
    };
    const bool in_row = !at.row.empty() && g_.input(id, pair) == row_factor(g_, id, rows_);
    for (int64_t k = 0; k < s.k; ++k) {
      const std::string term = std::to_string(k);
      const std::string x = in_row          ? value(a, {"", at.row, term})
                            : p.transpose_a ? element(a, term, within, s.m, which, s.m * s.k)
                                            : element(a, row, term, s.k, "", 0);
      const std::string y = p.transpose_b ? element(b, column, term, s.k, which, n * s.k)
                                          : element(b, term, column, n, which, n * s.k);
      sum += (sum.empty() ? "" : " + ") + x + " * " + y;
    }
    step_.flops += 2 * g_.count(id) * s.k;
  }
  return let(type_name(compute_type(g_.dtype(id))), narrowed(g_.dtype(id), sum), "v");
}

}  // namespace gradcell::cuda
