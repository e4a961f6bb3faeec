// The kernels of a group of products: one that multiplies, and one that adds up what the shares of
// the terms come to, where there are several.
#include "cuda/join/product_groups.h"
#include "cuda/tiles/tile_products.h"
#include "cuda/write/writer.h"

namespace gradcell::cuda {

namespace {

/// Writes the text of all products of a group, with the arguments of one of them: each parameter
/// is an array.
class GroupWriter : Writer {
 public:
  GroupWriter(const WriterInputs& in, const Step& step, const ProductGroup& group, BufferId partial)
      : Writer(in, step.stage),
        step_of_one_(step),
        p_(step.product),
        group_(group),
        partial_(partial),
        count_(std::to_string(group.steps.size())),
        type_(type_name(compute_type(p_.dtype))) {
    step_.location = step.location;
  }

  Written products() {
    matrix("a", p_.a, p_.m * p_.k), matrix("b", p_.b, p_.k * p_.n);
    const std::string to = group_.parts > 1 ? partial_result() : result();
    number("k", p_.k);
    const auto by = unit_for(p_.dtype, p_.tf32);
    const std::string unit = by == ProductUnit::Fma ? "gc_plain" : unit_name(by, p_.dtype);
    const std::string text = str(
        sizes(), operand("a", "m * k"), operand("b", "k * n"), to, "  gc_products<", unit, ", ",
        type_, ", ", stored_type(p_.dtype), ", ", p_.transpose_a ? "true" : "false", ", ",
        p_.transpose_b ? "true" : "false", ">(", count_, " * batch, m, n, k, parts, a, b, to);\n");
    step_.nodes = step_of_one_.nodes, step_.flops = step_of_one_.flops;
    step_.shared_bytes = group_shared_bytes(p_.dtype);
    step_.block_x = 32, step_.block_y = 8;
    step_.grid = grid_for(blocks_of_group(p_, group_), 1);
    step_.tile_cycles = group_.work;
    return finished(text, "products");
  }

  Written sums() {
    read("partial", type_, partial_, group_.partial_bytes);
    const std::string to = result();
    const std::string text =
        str(sizes(), to, "  for (gc_index t = gc_first(); t < ", count_,
            " * batch * m * n; t += gc_step()) {\n    const gc_index of = t / (m * n), i = t % (m "
            "* n);\n"
            "    const auto from = all_partial[0] + of * parts * m * n + i;\n    double s = 0;\n"
            "    for (gc_index part = 0; part < parts; ++part) s += from[part * m * n];\n"
            "    to(of)(0, i, i % n, (",
            type_, ")s);\n  }\n");
    const auto count = static_cast<int64_t>(group_.steps.size());
    step_.grid = grid_for(count * p_.batch * p_.m * p_.n, kBlock), step_.block_x = kBlock;
    return finished(text, "products_sums");
  }

 private:
  /// A parameter that is read.
  void read(const char* name, const std::string& type, BufferId b, size_t bytes) {
    parameter("const " + type + "*", name, {Argument::Kind::Buffer, b, 0, Compute::F32});
    read_bytes_[b] = bytes;
  }
  /// A matrix for each of the batch.
  void matrix(const char* name, BufferId b, int64_t elements) {
    read(name, stored_type(p_.dtype), b, stored_bytes(p_.batch * elements));
  }
  size_t stored_bytes(int64_t elements) const {
    return static_cast<size_t>(elements) * item_size(p_.dtype);
  }
  void number(const char* name, int64_t value) {
    parameter("const gc_index", name, {Argument::Kind::Size, 0, value, Compute::I64});
    numbers_ += str(numbers_.empty() ? "" : ", ", name, " = all_", name, "[0]");
  }
  std::string sizes() {
    number("m", p_.m), number("n", p_.n), number("batch", p_.batch), number("parts", group_.parts);
    return "  const gc_index " + numbers_ + ";\n";
  }

  static std::string operand(const std::string& name, const std::string& elements) {
    return str("  auto ", name, " = [&](gc_index of) { return all_", name,
               "[of / batch] + of % batch * ", elements, "; };\n");
  }
  /// What stores an element of product `of`: of the result, or of one part's sums.
  std::string stores(const std::string& places, const std::string& statement) const {
    return str("  auto to = [&](gc_index of) {\n", places,
               "    return [=](gc_index part, gc_index i, gc_index column, ", type_, " s) { ",
               statement, "; };\n  };\n");
  }
  std::string result() {
    const std::string stored = stored_type(p_.dtype);
    parameter(stored + "*", "q", {Argument::Kind::Buffer, p_.out, 0, Compute::F32});
    step_.bytes_written += stored_bytes(p_.batch * p_.m * p_.n);
    std::string places = "    const auto q = all_q[of / batch] + of % batch * m * n;\n";
    std::string value = "s";
    if (p_.adds) {
      matrix("c", p_.addend, p_.m * p_.n);
      places += "    const auto c = all_c[of / batch] + of % batch * m * n;\n";
      value += " + " + decoded(p_.dtype, "c[i]");
    }
    if (p_.has_bias) {
      read("bias", stored, p_.bias, stored_bytes(p_.n));
      places += "    const auto bias = all_bias[of / batch];\n";
      value += " + " + decoded(p_.dtype, "bias[column]");
    }
    return stores(places, "q[i] = " + encoded(p_.dtype, value));
  }
  std::string partial_result() {
    parameter(type_ + "*", "partial", {Argument::Kind::Buffer, partial_, 0, Compute::F32});
    step_.bytes_written += group_.partial_bytes / group_.steps.size();
    return stores("    const auto partial = all_partial[0] + of * parts * m * n;\n",
                  "partial[part * m * n + i] = s");
  }

  Written finished(const std::string& text, const char* title) {
    for (Parameter& p : parameters_) p = of_each(p, count_);
    Written w = written(text, title, kBlock);
    w.read = read_bytes_;
    return w;
  }

  const Step& step_of_one_;
  const Gemm& p_;
  const ProductGroup& group_;
  BufferId partial_;
  std::string count_, type_, numbers_;
  std::map<BufferId, size_t> read_bytes_;
};

}  // namespace

std::vector<Written> write_product_group(const WriterInputs& in, const CudaPlan& plan,
                                         const ProductGroup& group, BufferId partial) {
  std::vector<Written> passes;
  for (size_t at : group.steps) {
    const Step& step = plan.steps[at];
    std::vector<Written> own{GroupWriter(in, step, group, partial).products()};
    if (group.parts > 1) own.push_back(GroupWriter(in, step, group, partial).sums());
    const bool first = passes.empty();
    if (first) passes.resize(own.size());
    for (size_t pass = 0; pass < own.size(); ++pass) {
      Written &all = passes[pass], &one = own[pass];
      if (first) {
        for (auto [buffer, bytes] : one.read) one.step.bytes_read += bytes;
        all = std::move(one);
        continue;
      }
      all.step.arguments.insert(all.step.arguments.end(), one.step.arguments.begin(),
                                one.step.arguments.end());
      all.step.nodes += one.step.nodes, all.step.flops += one.step.flops;
      for (auto [buffer, bytes] : one.read)
        if (all.read.emplace(buffer, bytes).second) all.step.bytes_read += bytes;
      all.step.bytes_written += one.step.bytes_written;
      all.step.stage = one.step.stage, all.step.location = one.step.location;
      ++all.step.segments;
    }
  }
  return passes;
}

}  // namespace gradcell::cuda
