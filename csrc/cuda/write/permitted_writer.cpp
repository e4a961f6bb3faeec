// The kernel that looks whether integers are permitted: a thread an integer, which raises a flag
// that is read with the next value.
#include "cuda/write/single_node_writer.h"
#include "ops/moving/order.h"

namespace gradcell::cuda {

namespace {

class PermittedWriter : AloneWriter {
 public:
  using AloneWriter::AloneWriter;

  Written write() {
    const NodeId x = f_.storage[g_.input(id_, 0)];
    const int64_t n = g_.count(x), problems = g_.count(id_);
    const std::string to = writes(id_), zero = " = (" + std::string(stored_type(dtype_)) + ")0;";
    const auto limit = static_cast<IntegerLimit>(attributes<PermittedAttributes>(g_, id_).limit);
    const bool negative = limit == IntegerLimit::Pow;
    count_node(id_);
    if (n > 0 && !(negative && is_unsigned(dtype_)))
      line("if (" + decoded(dtype_, reads(x) + "[t]") + (negative ? " < 0" : " == 0") +
           ") gc_flag(" + status() + ", " + std::to_string(flag_of(limit)) + ");");
    if (n <= problems) {  // of none too
      line(to + "[t]" + zero);
    } else {
      const std::string each = divisor(n / std::max<int64_t>(1, problems));
      line("if (t % " + each + " == 0) " + to + "[t / " + each + "]" + zero);
    }
    const int64_t items = std::max(n, problems);
    return each_thread(size(items), items, kBlock, "permitted");
  }
};

}  // namespace

Written write_permitted(const WriterInputs& in, NodeId id) {
  return PermittedWriter(in, id).write();
}

}  // namespace gradcell::cuda
