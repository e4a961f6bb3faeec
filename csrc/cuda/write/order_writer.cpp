// Kernels that put the elements of rows into order. In short rows a thread counts how many elements
// come before its own; longer ones are sorted as one line, by what elements are and then by rows.
// Both are stable.
#include "cuda/write/sort_writer.h"
#include "ops/moving/order.h"

namespace gradcell::cuda {

namespace {

/// Rows of so many elements are counted, and longer ones as long as that takes so many looks (an
/// estimate: a microsecond for 2^20 of them, where each pass of a sort launches three kernels).
constexpr int64_t kCounted = 64, kCountedOfFew = 1024, kMostLooks = int64_t{1} << 27;

/// What is put into order, and how: keys are numbers from 0 that come in the elements' order.
struct Ordering {
  int64_t length, rows;
  Wanted wanted;
  int bits, key_passes;  ///< of keys
  bool wide() const { return bits > 32; }
  const char* key() const { return wide() ? "unsigned long long" : "unsigned"; }
};

Ordering ordering_of(const Graph& g, NodeId id) {
  const NodeId x = g.input(id, 0);
  const DType t = g.dtype(x);
  const int64_t length = g.dims(x).back();
  Ordering r{length, g.count(x) / std::max<int64_t>(1, length), wanted_of(g, id), 0, 0};
  r.bits = t == DType::Bool ? 1 : is_narrow_float(t) ? 32 : narrow<int>(8 * item_size(t));
  r.key_passes = narrow<int>(divide_up(r.bits, kDigitBits));
  return r;
}

int passes_in(const Ordering& r) { return r.key_passes + (r.rows > 1 ? passes_of(r.rows) : 0); }

class OrderWriter : public SortWriter {
 public:
  OrderWriter(const WriterInputs& in, NodeId id) : OrderWriter(in, id, ordering_of(in.graph, id)) {}

  Written counted() {
    const std::string n = size(r_.length), key = r_.key();
    const std::string to = writes(id_),
                      row = let("gc_index", "t / " + divisor(r_.length) + " * " + n, "i");
    count_node(id_);
    line("const " + key + " own = " + ordered("t") + ";");
    line("gc_index rank = 0;");
    block("for (gc_index k = " + row + "; k < " + row + " + " + n + "; ++k)", nested([&] {
            line("const " + key + " other = " + ordered("k") + ";");
            line("rank += other < own || (other == own && k < t);");
          }));
    const std::string first = r_.wanted.count == r_.length
                                  ? row
                                  : "t / " + divisor(r_.length) + " * " + size(r_.wanted.count);
    line((r_.wanted.count == r_.length ? "" : "if (rank < " + size(r_.wanted.count) + ") ") + to +
         "[" + first + " + rank] = (int)(t - " + row + ");");
    const int64_t items = r_.length * r_.rows;
    return each_thread(size(items), items, kBlock, "order");
  }

  Pass pass(int number) {
    const bool of_rows = number >= r_.key_passes;
    Pass p{number, (of_rows ? number - r_.key_passes : number) * kDigitBits, {}};
    if (number == 0)
      p.key = [this](std::span<const BufferId>) { line("return " + ordered("k") + ";"); };
    if (number == r_.key_passes)
      p.key = [this, number](std::span<const BufferId> t) {
        line("return (" + std::string(r_.key()) + ")(" + left(number, t) + "[k] / " +
             divisor(r_.length) + ");");
      };
    return p;
  }

  Written finish(std::span<const BufferId> t) {
    const std::string at = sorted(t, At, "at"), to = writes(id_), each = divisor(r_.wanted.count);
    count_node(id_);
    const std::string row = let("gc_index", "t / " + each + " * " + size(r_.length), "i");
    line(to + "[t] = (int)(" + at + "[" + row + " + t % " + each + "] - " + row + ");");
    const int64_t items = r_.wanted.count * r_.rows;
    return each_thread(size(items), items, kBlock, "order");
  }

 private:
  OrderWriter(const WriterInputs& in, NodeId id, const Ordering& r)
      : SortWriter(in, id, sorting_of(r.length * r.rows, passes_in(r)), r.key(), r.wide() ? 8 : 4),
        r_(r) {}

  /// The key of the element at an index.
  std::string ordered(const std::string& index) {
    const NodeId x = f_.storage[g_.input(id_, 0)];
    const DType t = g_.dtype(x);
    const std::string v = decoded(t, reads(x) + "[" + index + "]"), key = r_.key();
    const std::string half = r_.wide() ? "1ull" : "1u";
    std::string found = "(" + key + ")(" + v + ")";
    if (is_floating(t))
      found = "gc_ordered(" + v + ")";
    else if (t != DType::Bool && !is_unsigned(t))
      found += str(" + (", half, " << ", r_.bits - 1, ")");
    if (!r_.wanted.descending) return found;
    const std::string most =
        r_.bits == 32 || r_.bits == 64 ? "~(" + key + ")0" : str((int64_t{1} << r_.bits) - 1, "u");
    return most + " - (" + found + ")";
  }

  Ordering r_;
};

bool is_counted(const Ordering& r) {
  return r.length <= kCounted ||
         (r.length <= kCountedOfFew && r.length * r.rows <= kMostLooks / r.length);
}

}  // namespace

std::vector<size_t> order_memory(const WriterInputs& in, NodeId id) {
  const Ordering r = ordering_of(in.graph, id);
  if (is_counted(r)) return {};
  return sorting_memory(sorting_of(r.length * r.rows, passes_in(r)), r.wide() ? 8 : 4, in.wide);
}

std::vector<Written> write_order(const WriterInputs& in, NodeId id, std::span<const BufferId> t) {
  const Ordering r = ordering_of(in.graph, id);
  auto writer = [&] { return OrderWriter(in, id); };
  std::vector<Written> steps;
  if (is_counted(r)) {
    steps.push_back(writer().counted());
    return steps;
  }
  add_passes(steps, passes_in(r), t, writer);
  steps.push_back(writer().finish(t));
  return steps;
}

}  // namespace gradcell::cuda
