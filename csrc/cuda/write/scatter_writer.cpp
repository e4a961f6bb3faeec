// Kernels that write updates to places: sums of updates, and which update is a place's last. The
// result does not depend on the launch, whatever places repeat.
//
// A few updates are taken in order by each thread, for places that it alone owns. More of them are
// sorted by their places first: passes of a stable radix sort, each a count of digits by chunks of
// updates, sums of the counts, and a move. Updates of a place are neighbours then. Threads add up
// runs of them, a chunk of updates each; what a place has in several chunks is added by one more
// kernel, in order.
#include <algorithm>

#include "cuda/write/sort_writer.h"

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

/// Whether each row has updates of its own, some of them for no place.
bool in_rows(const Graph& g, NodeId id) { return form(g, id) == Form::AddPlaces; }

Updates updates_of(const Graph& g, NodeId id, size_t axis) {
  const Dims dims = in_rows(g, id) ? Dims{g.count(id) + 1} : g.dims(id);
  const int64_t places = dims[axis], updates = g.count(g.input(id, 0));
  Updates u{places, updates, 1, sorting_of(updates, passes_of(places)), 0, 0};
  if (!in_rows(g, id)) u.columns = g.count(id) / std::max<int64_t>(1, places);
  u.run = 16;  // about as many updates a run as runs, where all have one place
  while (u.run < 512 && u.run * u.run * 4 < updates) u.run *= 2;
  u.runs = divide_up(updates, u.run);
  return u;
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
        const std::string where = value(f_.storage[g_.input(id_, 0)], flat("k"));
        if (in_rows(g_, id_)) return place_in_row(where);
        line("return gc_place(" + where + ", " + size(s_.places) + ", " + status() + ");");
      };
    return p;
  }

  Written cleared(const char* nothing) {
    const std::string q = writes(id_);
    return each_element(size(g_.count(id_)), q + "[i] = " + nothing, "scatter_clear");
  }

  /// The sums of the places that a run of updates holds all of, and of what it holds of others: of
  /// the place it begins with in `heads`, of the one it ends with in `tails`.
  Written sums(std::span<const BufferId> t) {
    count_node(id_);
    const std::string type = sum_type(), n = size(s_.updates);
    const std::string key = sorted(t, Keys, "key"), at = sorted(t, At, "at");
    const std::string q = writes(id_);
    const std::string heads = temporary(t[Heads], type.c_str(), true, "q_head", ends_bytes());
    const std::string tails = temporary(t[Tails], type.c_str(), true, "q_tail", ends_bytes());
    run_bounds();
    line("gc_index place = " + key + "[begin];");
    line("bool head = begin > 0 && " + key + "[begin - 1] == place;");
    line(type + " s = 0;");
    line("#pragma unroll 4");
    block("for (gc_index k = begin; k < end; ++k)", nested([&] {
            const std::string update = let("gc_index", at + "[k]", "i");
            line("s += " + input(id_, 1, flat(element(update, n))) + ";");
            line("const gc_index next = k + 1 < " + n + " ? " + key + "[k + 1] : -1;");
            line("if (next == place) continue;");
            const std::string to = element("place", size(s_.places));
            line("if (head) " + heads + "[t] = s;");
            const std::string there =
                in_rows(g_, id_) ? "if (place < " + size(g_.count(id_)) + ") " : "";
            line("else " + there + q + "[" + to + "] = " + result() + ";");
            line("s = 0, head = false, place = next;");
          }));
    line("if (end == " + n + " || " + key + "[end - 1] != " + key + "[end]) continue;");
    line("(head ? " + heads + " : " + tails + ")[t] = s;");
    return runs("scatter_add");
  }

  /// Adds up the places whose updates are in several runs.
  Written across_runs(std::span<const BufferId> t) {
    const std::string type = sum_type(), columns = size(s_.columns), n = size(s_.updates);
    const std::string key = sorted(t, Keys, "key"), q = writes(id_);
    step_.bytes_written = 0;  // a part of what is counted already
    const std::string heads = temporary(t[Heads], type.c_str(), false, "p_head", ends_bytes());
    const std::string tails = temporary(t[Tails], type.c_str(), false, "p_tail", ends_bytes());
    run_bounds();
    line("const gc_index place = " + key + "[end - 1];");
    line("if (end == " + n + " || " + key + "[end] != place) continue;");
    line("if (begin > 0 && " + key + "[begin - 1] == place) continue;");
    if (in_rows(g_, id_)) line("if (place == " + size(g_.count(id_)) + ") continue;");
    line(type + " s = " + tails + "[t];");
    const std::string run = size(s_.run);
    line("for (gc_index u = t, last = end; last < " + n + " && " + key + "[last] == place;) {");
    line("  u += " + columns + ";");
    line("  s += " + heads + "[u];");
    line("  last = last + " + run + " < " + n + " ? last + " + run + " : " + n + ";");
    line("}");
    line(q + "[" + element("place", size(s_.places)) + "] = " + result() + ";");
    return runs("scatter_add_finish");
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

  size_t ends_bytes() const {
    return static_cast<size_t>(s_.runs * s_.columns) * accumulator_size(how(), dtype_);
  }

  /// What has no place is put behind all others.
  void place_in_row(const std::string& where) {
    const std::string n = size(g_.dims(id_)[1]), updates = divisor(g_.dims(g_.input(id_, 0))[1]);
    line("if (" + where + " < -1 || " + where + " >= " + n + ") gc_flag(" + status() + ");");
    line("if (" + where + " < 0 || " + where + " >= " + n + ") return " + size(g_.count(id_)) +
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

size_t axis_of(const Graph& g, NodeId id) {
  return form(g, id) == Form::Scatter ? static_cast<size_t>(g.attrs(id)[0]) : 0;
}

bool is_narrow(const Graph& g, NodeId id) { return is_narrow_float(g.dtype(id)); }

}  // namespace

bool sorts_updates(const Graph& g, NodeId id) {
  const NodeId places = g.input(id, 0);
  return g.count(places) > kFew && (!in_rows(g, id) || g.dims(places)[1] > kFewOfRow);
}

std::vector<size_t> updates_memory(const WriterInputs& in, NodeId id) {
  const Graph& g = in.graph;
  const bool adds = form(g, id) != Form::LastIndex;
  if (!sorts_updates(g, id))
    return adds && is_narrow(g, id) ? std::vector{static_cast<size_t>(g.count(id)) * sizeof(float)}
                                    : std::vector<size_t>{};
  const Updates s = updates_of(g, id, axis_of(g, id));
  std::vector<size_t> bytes = sorting_memory(s.sorting, in.wide ? 8 : 4, in.wide);
  bytes.resize(kTemporaries);
  bytes[Heads] = bytes[Tails] = adds ? static_cast<size_t>(s.runs * s.columns) *
                                           accumulator_size(spec(g, id).combine, g.dtype(id))
                                     : 0;
  return bytes;
}

std::vector<Written> write_updates(const WriterInputs& in, NodeId id, std::span<const BufferId> t) {
  const bool adds = form(in.graph, id) != Form::LastIndex;
  const size_t axis = axis_of(in.graph, id);
  auto writer = [&] { return ScatterWriter(in, id, axis); };
  std::vector<Written> steps;
  if (!sorts_updates(in.graph, id)) {
    if (!adds)
      steps.push_back(writer().last_in_order());
    else
      steps.push_back(writer().in_order(t.empty() ? in.buffer_of[id] : t[0]));
    if (!t.empty()) steps.push_back(writer().narrowed_sums(t[0]));
    return steps;
  }
  add_passes(steps, updates_of(in.graph, id, axis).sorting.passes, t, writer);
  steps.push_back(writer().cleared(adds ? "0" : "-1"));
  if (adds) {
    steps.push_back(writer().sums(t));
    steps.push_back(writer().across_runs(t));
  } else {
    steps.push_back(writer().lasts(t));
  }
  return steps;
}

}  // namespace gradcell::cuda
