// What kernels of a single node share: what it reduces, and the loops over its results.
#pragma once

#include "cuda/write/writer.h"

namespace gradcell::cuda {

inline int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

inline std::string in_reduction(Combine how, const std::string& type) {
  return str("gc_", combine_name(how), "<", type, ">");
}

/// Sums and products of floats are taken in double, of integers in long long: one rounding at the
/// end.
inline const char* accumulator_type(Combine how, DType t) {
  const Compute c = compute_type(t);
  if (how == Combine::Max || how == Combine::Min) return type_name(c);
  return c == Compute::F32 || c == Compute::F64 ? "double" : "long long";
}
/// Of a gc_best.
inline constexpr size_t kBestSize = 16;
inline size_t accumulator_size(Combine how, DType t) {
  const std::string type = accumulator_type(how, t);
  return type == "float" || type == "int" ? 4 : 8;
}

/// The reduced and the remaining dimensions of an input, as views of its places.
struct Split {
  View kept, gone;
  int64_t outputs = 1, length = 1;
};

inline Split split(const Dims& dims, std::span<const int64_t> axes) {
  const Dims strides = row_major(dims);
  Split s{{pick(dims, axes, false), pick(strides, axes, false)},
          {pick(dims, axes, true), pick(strides, axes, true)}};
  s.outputs = element_count(s.kept.dims), s.length = element_count(s.gone.dims);
  return s;
}

/// Writes a node that has kernels of its own.
class AloneWriter : protected Writer {
 public:
  /// More segments: one of several nodes of equal shapes that share a launch.
  AloneWriter(const WriterInputs& in, NodeId id, size_t segments = 1)
      : Writer(in, in.fusion.node[id].stage), id_(id), dtype_(g_.dtype(id)), segments_(segments) {
    body_.indent = "    ";
  }

 protected:
  Combine how() const { return spec(g_, id_).combine; }
  std::string sum_type() const { return accumulator_type(how(), dtype_); }
  /// `sum`, of the accumulator's type, as an element of the result.
  std::string result(const std::string& sum = "s") const {
    return encoded(dtype_, "(" + std::string(type_name(compute_type(dtype_))) + ")" + sum);
  }

  /// An element with its place, to be compared with others; and what a node stores of one. Of
  /// uint64, whose bits an int64 holds, the first bit is turned for that.
  std::string compared(DType t, const std::string& v, const std::string& at) const {
    return str(best_type(t), "{", turned(t, v), ", ", at, "}");
  }
  std::string stored(DType t, const std::string& best, bool values) const {
    return values ? encoded(dtype_, turned(t, best + ".value")) : "(int)" + best + ".at";
  }
  static std::string best_type(DType t) { return str("gc_best<", type_name(compute_type(t)), ">"); }

  std::string place_in(const View& v, const std::string& place) {
    return Writer::place_in(v, 0, v.dims.size(), place, 0);
  }
  /// The place that is k steps into a view from `base`.
  std::string place(const std::string& base, const View& v, const std::string& k) {
    std::string step = place_in(v, k);
    return base == "0" ? step : step == "0" ? base : let("gc_index", base + " + " + step, "i");
  }

  // The body for each t < n, one by a thread or by a block; and one statement for each element i.
  Written each_thread(const std::string& n, int64_t items, uint32_t threads, const char* title) {
    step_.grid = grid_for(items * segments(), threads), step_.block_x = threads;
    return written(loop("gc_first()", n, items, "gc_step()"), title);
  }
  Written each_block(const std::string& n, int64_t items, uint32_t threads, const char* title) {
    step_.grid = grid_for(items * segments(), 1), step_.block_x = threads;
    return written(loop("blockIdx.x", n, items, "gridDim.x"), title);
  }
  Written each_element(const std::string& n, const std::string& statement, const char* title) {
    step_.grid = grid_for(g_.count(id_), kBlock);
    return written(
        "  for (gc_index i = gc_first(); i < " + n + "; i += gc_step()) " + statement + ";\n",
        title);
  }

  NodeId id_;
  DType dtype_;

 private:
  static std::string turned(DType t, const std::string& v) {
    if (t == DType::UInt64) return "((" + v + ") ^ gc_limits<long long>::low())";
    return t == DType::Bool ? "int(" + v + ")" : v;
  }

  int64_t segments() const { return static_cast<int64_t>(segments_); }

  std::string loop(const std::string& first, const std::string& n, int64_t items,
                   const std::string& step) {
    if (segments_ == 1)
      return "  for (gc_index t = " + first + "; t < " + n + "; t += " + step + ") {\n" +
             body_.text + "  }\n";
    const std::string count = std::to_string(segments_), d = divisor(items);
    std::string sizes, others;
    for (size_t k = 0; k < parameters_.size(); ++k) {
      Parameter& p = parameters_[k];
      const Argument::Kind kind = step_.arguments[k].kind;
      const bool same = kind == Argument::Kind::Size || kind == Argument::Kind::Divisor;
      (same ? sizes += "  " : others += "    ") +=
          p.type + " " + p.name + " = all_" + p.name + (same ? "[0];\n" : "[which];\n");
      p = of_each(p, count);
    }
    return sizes + "  for (gc_index t_of_all = " + first + "; t_of_all < " + n + " * " + count +
           "; t_of_all += " + step + ") {\n    const gc_index which = t_of_all / " + d +
           ", t = t_of_all % " + d + ";\n" + others + body_.text + "  }\n";
  }

  size_t segments_;
};

}  // namespace gradcell::cuda
