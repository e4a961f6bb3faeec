// The kernel of searches: a thread finds the place of one element in its row's ordered line, which
// it halves until nothing is left. NaN is behind all numbers.
#include "cuda/write/single_node_writer.h"
#include "ops/moving/order.h"

namespace gradcell::cuda {

namespace {

class SearchWriter : AloneWriter {
 public:
  using AloneWriter::AloneWriter;

  Written write() {
    const NodeId line_id = f_.storage[g_.input(id_, 0)], x = f_.storage[g_.input(id_, 1)];
    const std::string line_of = reads(line_id), from = reads(x), to = writes(id_);
    const std::string n = size(g_.dims(g_.input(id_, 0)).back()), m = divisor(g_.dims(id_).back());
    const DType dtype = g_.dtype(x);
    // (An int64 holds the bits of an uint64 for all that does not compare.)
    const std::string type =
        dtype == DType::UInt64 ? "unsigned long long" : type_name(compute_type(dtype));
    const std::string first = let("gc_index", "t / " + m + " * " + n, "i");
    line("const " + type + " x = " + decoded(dtype, from + "[t]") + ";");
    line("gc_index low = 0, rest = " + n + ";");
    line("while (rest > 0) {");
    line("  const gc_index half = rest / 2;");
    line("  const " + type + " a = " + decoded(dtype, line_of + "[" + first + " + low + half]") +
         ";");
    line("  const bool on = " +
         (attributes<LineAttributes>(g_, id_).right ? "!" + before(dtype, "x", "a")
                                                    : before(dtype, "a", "x")) +
         ";");
    line("  low = on ? low + half + 1 : low;");
    line("  rest = on ? rest - half - 1 : half;");
    line("}");
    line(to + "[t] = (int)low;");
    count_node(id_);
    return each_thread(size(g_.count(id_)), g_.count(id_), kBlock, "search");
  }

 private:
  static std::string before(DType dtype, const std::string& a, const std::string& b) {
    const std::string less = a + " < " + b;
    if (!is_floating(dtype)) return "(" + less + ")";
    return str("(", less, " || (", b, " != ", b, " && ", a, " == ", a, "))");
  }
};

}  // namespace

Written write_search(const WriterInputs& in, NodeId id) { return SearchWriter(in, id).write(); }

}  // namespace gradcell::cuda
