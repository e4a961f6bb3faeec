// Kernels that write updates to places: sums of updates, the best of them, and which one is a
// place's last. The result does not depend on the launch, whatever places repeat.
//
// A few updates are taken in order by each thread, for places that it alone owns. More of them are
// sorted by their places first (sort_writer.h): updates of a place are neighbours then. Threads
// take runs of them, a chunk of updates each; what a place has in several chunks one more kernel
// brings together, in order.
#include <algorithm>

#include "cuda/write/sort_writer.h"
#include "ops/moving/order.h"

namespace gradcell::cuda {

namespace {

/// So many updates are taken in order; so many of a row, where each row has its own.
constexpr int64_t kFew = 512, kFewOfRow = 64;
/// How updates are sorted and added up: by the shape alone.
struct Updates {
  int64_t places, updates, columns;  ///< columns: elements of an update, in all rows
  Sorting sorting;
  int64_t run, runs;  ///< updates that a thread adds up
};

/// Beside those of a sort.
enum Ends { Heads = kSortTemporaries, Tails, kTemporaries };

bool is_best(const Graph& g, NodeId id) { return form(g, id) == Form::BestOfRows; }
/// Whether each row (of the best: each set of rows) has updates of its own, some of them for no
/// place.
bool in_rows(const Graph& g, NodeId id) { return form(g, id) == Form::AddPlaces || is_best(g, id); }

/// The input that says the updates' places.
NodeId places_of(const Graph& g, NodeId id) { return g.input(id, is_best(g, id) ? 1 : 0); }

Updates updates_of(const Graph& g, NodeId id, size_t axis) {
  const Dims& dims = g.dims(id);
  const int64_t columns = in_rows(g, id) ? product(dims, axis + 1, dims.size())
                                         : g.count(id) / std::max<int64_t>(1, dims[axis]);
  const int64_t places =
      in_rows(g, id) ? g.count(id) / std::max<int64_t>(1, columns) + 1 : dims[axis];
  const int64_t updates = g.count(places_of(g, id));
  Updates u{places, updates, columns, sorting_of(updates, passes_of(places)), 0, 0};
  u.run = 16;  // about as many updates a run as runs, where all have one place
  while (u.run < 512 && u.run * u.run * 4 < updates) u.run *= 2;
  u.runs = divide_up(updates, u.run);
  return u;
}

/// Bytes of what runs leave of places that they share with others.
size_t ends_memory(const Graph& g, NodeId id, const Updates& s) {
  const size_t each =
      is_best(g, id) ? kBestSize : accumulator_size(spec(g, id).combine, g.dtype(id));
  return static_cast<size_t>(s.runs * s.columns) * each;
}

class ScatterWriter : public SortWriter {
 public:
  ScatterWriter(const WriterInputs& in, NodeId id, size_t axis)
      : ScatterWriter(in, id, axis, updates_of(in.graph, id, axis)) {}

  // In order --------------------------------------------------------------------------------------

  /// A thread owns one column of some places: it clears them, then takes the updates in order.
  Written in_order(BufferId sums) {
    const char* type = type_name(compute_type(dtype_));
    const bool own = sums == in_.buffer_of[id_];
    std::string q = own ? writes(id_) : buffer(sums, type, true, "q0");
    const char* stored = own ? stored_type(dtype_) : type;
    auto add = [&](const std::string& to, const std::string& from) {
      std::string v = input(id_, 1, flat(let("gc_index", from, "i")));
      line(to + " = (" + stored + ")(" + to + " + " + v + ");");
    };
    return in_order(q, stored, "0", "scatter_add", add);
  }

  /// float sums to the half type that the tensor has.
  Written narrowed_sums(BufferId sums) {
    std::string p = buffer(sums, "float", false, "p0"), q = writes(id_);
    step_.bytes_read += static_cast<size_t>(g_.count(id_)) * sizeof(float);
    return each_element(size(g_.count(id_)), q + "[i] = " + encoded(dtype_, p + "[i]"),
                        "scatter_add_finish");
  }

  Written last_in_order() {
    auto mark = [&](const std::string& to, const std::string& from) {
      line(to + " = " + from + ";");
    };
    return in_order(writes(id_), stored_type(dtype_), "-1", "last_writer", mark);
  }

  // Sorted ----------------------------------------------------------------------------------------

  /// Of the first pass an update's key is its place; later ones find it where it was stored.
  Pass pass(int number) {
    Pass p{number, number * kDigitBits, {}};
    if (number == 0)
      p.key = [this](std::span<const BufferId>) {
        const std::string where = value(f_.storage[places_of(g_, id_)], flat("k"));
        if (in_rows(g_, id_)) return place_in_row(where);
        line("return gc_place(" + where + ", " + size(s_.places) + ", " + status() + ");");
      };
    return p;
  }

  Written cleared() {
    const std::string q = writes(id_);
    return each_element(size(g_.count(id_)), q + "[i] = " + nothing(), "scatter_clear");
  }

  /// The best update of each place, by a thread that looks at all of its rows.
  Written best_of_few() {
    const NodeId ids = f_.storage[places_of(g_, id_)], rows = f_.storage[g_.input(id_, 0)];
    const Dims& dims = g_.dims(id_);
    const int64_t places = dims[axis_], n = g_.dims(places_of(g_, id_)).back();
    const int64_t sets = product(dims, 0, axis_);
    const std::string q = writes(id_);
    count_node(id_);
    const std::vector<std::string> c = coordinates({sets, places, s_.columns}, {1, 1, 1}, "t");
    line(type() + " s = {0, -1};");
    block("for (gc_index k = 0; k < " + size(n) + "; ++k)", nested([&] {
            const std::string update = let("gc_index", c[0] + " * " + size(n) + " + k", "i");
            const std::string where = value(ids, flat(update));
            line("if (" + where + " >= " + size(places) + ") gc_flag(" + status() + ");");
            line("if (" + where + " != " + c[1] + ") continue;");
            const std::string at =
                let("gc_index", update + " * " + size(s_.columns) + " + " + c[2], "i");
            take("s", compared(from(), value(rows, flat(at)), "k"));
          }));
    line(q + "[t] = s.at < 0 ? " + nothing() + " : " + made() + ";");
    return each_thread(size(g_.count(id_)), g_.count(id_), 128, "segment_best");
  }

  /// What stands where no update goes.
  std::string nothing() {
    if (!is_best(g_, id_)) return form(g_, id_) == Form::LastIndex ? "-1" : "0";
    const auto a = attributes<SegmentAttributes>(g_, id_);
    if (!a.values) return "-1";
    return str("(", stored_type(dtype_), ")", encoded(dtype_, end_of_dtype(dtype_, a.largest)));
  }

  /// What the places come to that a run of updates holds all of, and what it holds of others: of
  /// the place it begins with in `heads`, of the one it ends with in `tails`.
  Written taken(std::span<const BufferId> t) {
    count_node(id_);
    const std::string type = this->type(), n = size(s_.updates);
    const std::string key = sorted(t, Keys, "key"), at = sorted(t, At, "at");
    const std::string q = writes(id_);
    const std::string heads = temporary(t[Heads], type.c_str(), true, "q_head", ends_bytes());
    const std::string tails = temporary(t[Tails], type.c_str(), true, "q_tail", ends_bytes());
    run_bounds();
    line("gc_index place = " + key + "[begin];");
    line("bool head = begin > 0 && " + key + "[begin - 1] == place;");
    line(type + " s = " + start() + ";");
    line("#pragma unroll 4");
    block("for (gc_index k = begin; k < end; ++k)", nested([&] {
            const std::string update = let("gc_index", at + "[k]", "i");
            take_update(update, n);
            line("const gc_index next = k + 1 < " + n + " ? " + key + "[k + 1] : -1;");
            line("if (next == place) continue;");
            const std::string to = element("place", size(s_.places));
            line("if (head) " + heads + "[t] = s;");
            const std::string there =
                in_rows(g_, id_) ? "if (place < " + size(s_.places - 1) + ") " : "";
            line("else " + there + q + "[" + to + "] = " + made() + ";");
            line("s = " + start() + ", head = false, place = next;");
          }));
    line("if (end == " + n + " || " + key + "[end - 1] != " + key + "[end]) continue;");
    line("(head ? " + heads + " : " + tails + ")[t] = s;");
    return runs(is_best(g_, id_) ? "segment_best" : "scatter_add");
  }

  /// Brings together what is in several runs of a place's.
  Written across_runs(std::span<const BufferId> t) {
    const std::string type = this->type(), columns = size(s_.columns), n = size(s_.updates);
    const std::string key = sorted(t, Keys, "key"), q = writes(id_);
    step_.bytes_written = 0;  // a part of what is counted already
    const std::string heads = temporary(t[Heads], type.c_str(), false, "p_head", ends_bytes());
    const std::string tails = temporary(t[Tails], type.c_str(), false, "p_tail", ends_bytes());
    run_bounds();
    line("const gc_index place = " + key + "[end - 1];");
    line("if (end == " + n + " || " + key + "[end] != place) continue;");
    line("if (begin > 0 && " + key + "[begin - 1] == place) continue;");
    if (in_rows(g_, id_)) line("if (place == " + size(s_.places - 1) + ") continue;");
    line(type + " s = " + tails + "[t];");
    const std::string run = size(s_.run);
    line("for (gc_index u = t, last = end; last < " + n + " && " + key + "[last] == place;) {");
    line("  u += " + columns + ";");
    take("s", heads + "[u]", "  ");
    line("  last = last + " + run + " < " + n + " ? last + " + run + " : " + n + ";");
    line("}");
    line(q + "[" + element("place", size(s_.places)) + "] = " + made() + ";");
    return runs(is_best(g_, id_) ? "segment_best_finish" : "scatter_add_finish");
  }

  /// The last of each place's updates.
  Written lasts(std::span<const BufferId> t) {
    count_node(id_);
    const std::string key = sorted(t, Keys, "key"), at = sorted(t, At, "at"), q = writes(id_);
    const std::string n = size(s_.updates);
    line("if (t + 1 == " + n + " || " + key + "[t + 1] != " + key + "[t]) " + q + "[" + key +
         "[t]] = " + at + "[t];");
    return each_thread(n, s_.updates, kBlock, "last_writer");
  }

 private:
  ScatterWriter(const WriterInputs& in, NodeId id, size_t axis, const Updates& s)
      : SortWriter(in, id, s.sorting, "gc_index", in.wide ? 8 : 4), axis_(axis), s_(s) {}

  size_t ends_bytes() const { return ends_memory(g_, id_, s_); }

  // What a place's updates come to: `s`.
  DType from() const { return g_.dtype(g_.input(id_, 0)); }
  std::string type() const { return is_best(g_, id_) ? best_type(from()) : sum_type(); }
  std::string start() const { return is_best(g_, id_) ? type() + "{0, -1}" : "0"; }
  void take(const std::string& s, const std::string& v, const char* indent = "") {
    if (!is_best(g_, id_)) return line(indent + s + " += " + v + ";");
    const bool largest = attributes<SegmentAttributes>(g_, id_).largest;
    line(str(indent, s, " = gc_better<", largest ? "true" : "false", ">(", s, ", ", v, ");"));
  }
  void take_update(const std::string& update, const std::string& many) {
    if (!is_best(g_, id_)) return take("s", input(id_, 1, flat(element(update, many))));
    const std::string v =
        let(type_name(compute_type(from())),
            value(f_.storage[g_.input(id_, 0)], flat(element(update, many))), "v");
    const std::string at = update + " % " + divisor(g_.dims(places_of(g_, id_)).back());
    if (is_floating(from())) line("if (!(head && " + v + " != " + v + "))");
    take("s", compared(from(), v, at));
  }
  std::string made() const {
    return is_best(g_, id_) ? stored(from(), "s", attributes<SegmentAttributes>(g_, id_).values)
                            : result();
  }

  /// What has no place is put behind all others.
  void place_in_row(const std::string& where) {
    const std::string n = size(g_.dims(id_)[is_best(g_, id_) ? axis_ : 1]);
    const std::string updates = divisor(g_.dims(places_of(g_, id_)).back());
    const std::string below = is_best(g_, id_) ? "" : where + " < -1 || ";
    line("if (" + below + where + " >= " + n + ") gc_flag(" + status() + ");");
    line("if (" + where + " < 0 || " + where + " >= " + n + ") return " + size(s_.places - 1) +
         ";");
    line("return gc_index(k / " + updates + " * " + n + " + " + where + ");");
  }

  /// Element `column` of a place or update of so many.
  std::string element(const std::string& which, const std::string& many) {
    const Dims& dims = g_.dims(id_);
    const int64_t inner = product(dims, axis_ + 1, dims.size());
    if (s_.columns == 1) return which;
    const std::vector<std::string> c = coordinates({s_.columns / inner, inner}, {1, 1}, "column");
    std::string row = s_.columns == inner ? which : c[0] + " * " + many + " + " + which;
    if (inner == 1) return let("gc_index", row, "i");
    return let("gc_index",
               (s_.columns == inner ? row : "(" + row + ")") + " * " + size(inner) + " + " + c[1],
               "i");
  }

  void run_bounds() {
    const std::string run = size(s_.run), n = size(s_.updates), columns = divisor(s_.columns);
    if (s_.columns > 1) line("const gc_index column = t % " + columns + ";");
    line("const gc_index begin = " + std::string(s_.columns > 1 ? "t / " + columns : "t") + " * " +
         run + ";");
    line("const gc_index end = begin + " + run + " < " + n + " ? begin + " + run + " : " + n + ";");
  }

  Written runs(const char* title) {
    const std::string all =
        s_.columns > 1 ? size(s_.runs) + " * " + size(s_.columns) : size(s_.runs);
    return each_thread(all, s_.runs * s_.columns, 128, title);
  }

  /// `update` writes how an element takes the update at an index.
  template <class Update>
  Written in_order(const std::string& q, const std::string& stored, const char* clear,
                   const char* title, Update update) {
    count_node(id_);
    NodeId indices = f_.storage[g_.input(id_, 0)];
    const Dims& dims = g_.dims(id_);
    const int64_t outer = product(dims, 0, axis_), inner = product(dims, axis_ + 1, dims.size());
    const int64_t n = dims[axis_], m = g_.count(indices);
    int64_t owners = std::clamp<int64_t>((1 << 17) / std::max<int64_t>(1, outer * inner), 1, n);
    int64_t each = divide_up(n, owners);
    owners = divide_up(n, each);
    const std::vector<std::string> c = coordinates({outer, owners, inner}, {1, 1, 1}, "t");
    std::string count = size(n), width = size(inner), updates = size(m);
    line("const gc_index begin = " + c[1] + " * " + size(each) + ";");
    line("const gc_index end = begin + " + size(each) + " < " + count + " ? begin + " + size(each) +
         " : " + count + ";");
    line(stored + "* const to = " + q + " + " + c[0] + " * " + count + " * " + width + " + " +
         c[2] + ";");
    line("for (gc_index k = begin; k < end; ++k) to[k * " + width + "] = " + clear + ";");
    const Scope inside = nested([&] {
      std::string where = value(indices, flat(m == 1 ? "0" : "k"));
      std::string place =
          let("gc_index", "gc_place(" + where + ", " + count + ", " + status() + ")", "i");
      line("if (" + place + " < begin || " + place + " >= end) continue;");
      update("to[" + place + " * " + width + "]",
             "(" + c[0] + " * " + updates + " + k) * " + width + " + " + c[2]);
    });
    block("for (gc_index k = 0; k < " + updates + "; ++k)", inside);
    const int64_t items = outer * owners * inner;
    return each_thread(size(items), items, 128, title);
  }

  const size_t axis_;
  const Updates s_;
};

/// The axis of places. (Places of elements of rows have no elements behind them.)
size_t axis_of(const Graph& g, NodeId id) {
  if (in_rows(g, id)) return g.dims(id).size() - (is_best(g, id) ? 2 : 1);
  return form(g, id) == Form::Scatter ? static_cast<size_t>(g.attrs(id)[0]) : 0;
}

bool is_narrow(const Graph& g, NodeId id) { return is_narrow_float(g.dtype(id)); }

}  // namespace

bool sorts_updates(const Graph& g, NodeId id) {
  const NodeId places = places_of(g, id);
  return g.count(places) > kFew && (!in_rows(g, id) || g.dims(places).back() > kFewOfRow);
}

std::vector<size_t> updates_memory(const WriterInputs& in, NodeId id) {
  const Graph& g = in.graph;
  const bool adds = form(g, id) != Form::LastIndex;
  if (!sorts_updates(g, id))
    return adds && !is_best(g, id) && is_narrow(g, id)
               ? std::vector{static_cast<size_t>(g.count(id)) * sizeof(float)}
               : std::vector<size_t>{};
  const Updates s = updates_of(g, id, axis_of(g, id));
  std::vector<size_t> bytes = sorting_memory(s.sorting, in.wide ? 8 : 4, in.wide);
  bytes.resize(kTemporaries);
  bytes[Heads] = bytes[Tails] = adds ? ends_memory(g, id, s) : 0;
  return bytes;
}

std::vector<Written> write_updates(const WriterInputs& in, NodeId id, std::span<const BufferId> t) {
  const bool adds = form(in.graph, id) != Form::LastIndex;
  const size_t axis = axis_of(in.graph, id);
  auto writer = [&] { return ScatterWriter(in, id, axis); };
  std::vector<Written> steps;
  if (!sorts_updates(in.graph, id)) {
    if (is_best(in.graph, id))
      steps.push_back(writer().best_of_few());
    else if (!adds)
      steps.push_back(writer().last_in_order());
    else
      steps.push_back(writer().in_order(t.empty() ? in.buffer_of[id] : t[0]));
    if (!t.empty()) steps.push_back(writer().narrowed_sums(t[0]));
    return steps;
  }
  add_passes(steps, updates_of(in.graph, id, axis).sorting.passes, t, writer);
  steps.push_back(writer().cleared());
  if (adds) {
    steps.push_back(writer().taken(t));
    steps.push_back(writer().across_runs(t));
  } else {
    steps.push_back(writer().lasts(t));
  }
  return steps;
}

}  // namespace gradcell::cuda
