// Kernels of discrete Fourier transforms, one after the other for factors of a line's length
// (Cooley and Tukey 1965; in Stockham's order, so that nothing is put back into place).
//
// After kernels for factors that come to `done`, element k * (n / done) + j of a line is the
// transform, at frequency k, of the elements j, j + n / done, j + 2 n / done and so on. One for a
// factor p more takes p of these, j + r * n / (done * p), turns the r-th by r k of done * p parts
// of a circle, and makes of them the frequencies k + done * s: a transform of p elements, which a
// thread has in registers. For a prime that is too large for that a thread sums up all p terms of
// one result.
#include <charconv>
#include <cmath>
#include <numbers>

#include "cuda/write/single_node_writer.h"

namespace gradcell::cuda {

namespace {

/// Elements that a thread transforms in registers.
constexpr int64_t kMostInRegisters = 16;

/// Of a sine or cosine of a factor's: 0 where rounding has left something.
std::string literal(long double v) {
  char text[32];
  const auto near = std::abs(v) < 1e-15L ? 0.0 : static_cast<double>(v);
  return {text, std::to_chars(text, text + sizeof text, near).ptr};
}

/// Factors of n: as few as are small, and primes that are not.
std::vector<int64_t> factors_of(int64_t n) {
  std::vector<int64_t> primes, factors;
  for (int64_t p = 2; p * p <= n; ++p)
    for (; n % p == 0; n /= p) primes.push_back(p);
  if (n > 1 || primes.empty()) primes.push_back(n);
  while (!primes.empty()) {
    int64_t factor = 1;
    for (size_t k = primes.size(); k-- > 0;) {
      if (factor > 1 && factor * primes[k] > kMostInRegisters) continue;
      factor *= primes[k];
      primes.erase(primes.begin() + static_cast<ptrdiff_t>(k));
    }
    factors.push_back(factor);
  }
  return factors;
}

class FourierWriter : AloneWriter {
 public:
  FourierWriter(const WriterInputs& in, NodeId id, int64_t done, int64_t factor)
      : AloneWriter(in, id), done_(done), factor_(factor) {
    const auto a = attributes<FourierAttributes>(g_, id_);
    const Dims& dims = g_.dims(id_);
    const auto axis = static_cast<size_t>(a.axis);
    length_ = dims[axis], sign_ = a.inverse ? "" : "-";
    inner_ = product(dims, axis + 1, dims.size() - 1);
    lines_ = product(dims, 0, axis);
  }

  /// from, to: buffers of pairs; none: the operand, and the result.
  Written write(std::optional<BufferId> from, std::optional<BufferId> to) {
    type_ = type_name(compute_type(dtype_));
    if (!to) count_node(id_);
    from_ = from ? pairs(*from, false, "p0") : reads(f_.storage[g_.input(id_, 0)]);
    to_ = to ? pairs(*to, true, "q0") : writes(id_);
    // Each number has a name of its own: texts are the same whatever the numbers are, above 1.
    const int64_t behind = length_ / (done_ * factor_) * inner_;
    const bool in_registers = factor_ <= kMostInRegisters;
    step_of_input_ = number("behind", behind), step_of_result_ = number("step", done_ * behind);
    std::string rest = "t";
    auto split_off = [&](const char* name, int64_t n) {
      if (n == 1) return std::string("0");
      parameter("const gc_divisor", name, {Argument::Kind::Divisor, 0, n, Compute::I64});
      const std::string found = let("gc_index", str(rest, " % ", name), "i");
      rest = let("gc_index", str(rest, " / ", name), "i");
      return found;
    };
    const std::string place = split_off("by_behind", behind);
    k_ = split_off("by_done", done_);
    s_ = in_registers ? "0" : split_off("by_factor", factor_);
    const std::string begin = rest + " * " + number("line", length_ * inner_) + " + " + place;
    result_ = let("gc_index", begin + " + " + k_ + " * " + step_of_input_, "i");
    input_ = let("gc_index", begin + " + " + k_ + " * " + number("taken", factor_ * behind), "i");
    return in_registers ? transform() : sum();
  }

 private:
  std::string pairs(BufferId b, bool written, const char* name) {
    (written ? step_.bytes_written : step_.bytes_read) += bytes(id_);
    return buffer(b, type_.c_str(), written, name);
  }

  std::string number(const char* name, int64_t value) {
    if (value == 1) return "1";
    parameter("const gc_index", name, {Argument::Kind::Size, 0, value, Compute::I64});
    return name;
  }

  Written transform() {
    const std::string p = std::to_string(factor_);
    line(type_ + " re[" + p + "], im[" + p + "];");
    line("#pragma unroll");
    block("for (int r = 0; r < " + p + "; ++r)", nested([&] {
            load("r", "re[r]", "im[r]");
            if (done_ > 1)
              line("if (r > 0) gc_turn(re[r], im[r], " + sign_ + "r * " + k_ + ", " +
                   number("whole", done_ * factor_) + ");");
          }));
    std::string cosines, sines;
    for (int64_t j = 0; j < factor_; ++j) {
      const auto turn = 2 * std::numbers::pi_v<long double> * static_cast<long double>(j) /
                        static_cast<long double>(factor_);
      cosines += (j ? ", " : "") + literal(std::cos(turn));
      sines += (j ? ", " : "") + literal(std::sin(turn));
    }
    line("constexpr " + type_ + " c[" + p + "] = {" + cosines + "}, s[" + p + "] = {" + sines +
         "};");
    line("#pragma unroll");
    block("for (int k = 0; k < " + p + "; ++k)", nested([&] {
            line(type_ + " x = re[0], y = im[0];");
            line("#pragma unroll");
            line("for (int r = 1; r < " + p + "; ++r) {");
            line("  const int j = r * k % " + p + ";");
            line("  x = gc_fma(re[r], c[j], gc_fma(-im[r], " + sign_ + "s[j], x));");
            line("  y = gc_fma(im[r], c[j], gc_fma(re[r], " + sign_ + "s[j], y));");
            line("}");
            store("k", "x", "y");
          }));
    const int64_t items = lines_ * (length_ / factor_) * inner_;
    return each_thread(number("items", items), items, 64, "fourier");
  }

  Written sum() {
    const std::string whole = number("whole", done_ * factor_);
    const std::string k = let("gc_index", k_ + " + " + number("done", done_) + " * " + s_, "k");
    line(type_ + " re = 0, im = 0;");
    line("gc_index turned = 0;");  // r * k modulo the parts
    block("for (gc_index r = 0; r < " + number("factor", factor_) + "; ++r)", nested([&] {
            line(type_ + " x, y;");
            load("r", "x", "y");
            line("gc_turn(x, y, " + sign_ + "turned, " + whole + ");");
            line("re += x;");
            line("im += y;");
            line("turned = turned >= " + whole + " - " + k + " ? turned - (" + whole + " - " + k +
                 ") : turned + " + k + ";");
          }));
    store(s_, "re", "im");
    const int64_t items = lines_ * length_ * inner_;
    return each_thread(number("items", items), items, 64, "fourier");
  }

  void load(const std::string& r, const std::string& re, const std::string& im) {
    const std::string at =
        let("gc_index", "2 * (" + input_ + " + " + r + " * " + step_of_input_ + ")", "i");
    line(re + " = " + from_ + "[" + at + "];");
    line(im + " = " + from_ + "[" + at + " + 1];");
  }
  void store(const std::string& s, const std::string& re, const std::string& im) {
    const std::string at =
        let("gc_index", "2 * (" + result_ + " + " + s + " * " + step_of_result_ + ")", "i");
    line(to_ + "[" + at + "] = " + re + ";");
    line(to_ + "[" + at + " + 1] = " + im + ";");
  }

  const int64_t done_, factor_;
  int64_t length_ = 0, lines_ = 0, inner_ = 0;
  std::string sign_, type_, from_, to_, input_, result_, step_of_input_, step_of_result_, k_, s_;
};

int64_t length_of(const Graph& g, NodeId id) {
  return g.dims(id)[static_cast<size_t>(attributes<FourierAttributes>(g, id).axis)];
}

}  // namespace

bool transforms_in_steps(const Graph& g, NodeId id) {
  return factors_of(length_of(g, id)).size() > 1;
}

std::vector<Written> write_fourier(const WriterInputs& in, NodeId id,
                                   std::optional<BufferId> between) {
  const std::vector<int64_t> factors = factors_of(length_of(in.graph, id));
  std::vector<Written> steps;
  int64_t done = 1;
  std::optional<BufferId> from;
  for (size_t k = 0; k < factors.size(); ++k) {
    // The last one writes the result, which those before use in turn with the buffer between.
    const bool other = (factors.size() - k) % 2 == 0, last = k + 1 == factors.size();
    const std::optional<BufferId> to = last    ? std::nullopt
                                       : other ? between
                                               : std::optional(in.buffer_of[id]);
    steps.push_back(FourierWriter(in, id, done, factors[k]).write(from, to));
    from = to, done *= factors[k];
  }
  return steps;
}

}  // namespace gradcell::cuda
