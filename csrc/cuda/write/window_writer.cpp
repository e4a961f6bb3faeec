// Kernels of what moves windows over images: one thread an element of the result, which takes its
// terms in order.
#include "cuda/write/kernel_writers.h"
#include "cuda/write/writer.h"

namespace gradcell::cuda {

namespace {

using Part = ConvolutionPart;
using Names = std::vector<std::string>;

std::string numbered(const char* name, size_t k) { return name + std::to_string(k); }

class WindowWriter : protected Writer {
 public:
  WindowWriter(const WriterInputs& in, NodeId id) : Writer(in, in.fusion.node[id].stage), id_(id) {
    body_.indent = "    ";
    count_node(id_);
  }

 protected:
  std::string type() const { return type_name(compute_type(g_.dtype(id_))); }
  std::string source(int k) { return reads(f_.storage[g_.input(id_, k)]); }
  DType source_type(int k) const { return g_.dtype(g_.input(id_, k)); }

  void open(const std::string& text) {
    line(text + " {");
    body_.indent += "  ";
    ++open_;
  }
  void close_all() {
    for (; open_ > 0; --open_) {
      body_.indent.resize(body_.indent.size() - 2);
      line("}");
    }
  }
  void loop(const std::string& i, int64_t n) {
    open("for (gc_index " + i + " = 0; " + i + " < " + size(n) + "; ++" + i + ")");
  }

  /// Names for the coordinates of thread t's element.
  void places(const Dims& dims, const Names& names) {
    const Names c = coordinates(dims, std::vector<uint8_t>(dims.size(), 1), "t");
    for (size_t k = 0; k < dims.size(); ++k)
      line("const gc_index " + names[k] + " = " + (dims[k] == 1 ? "0" : c[k]) + ";");
  }

  /// The element of a tensor at these coordinates.
  std::string element(const Dims& dims, const Names& at) {
    std::string text = at[0];
    for (size_t k = 1; k < dims.size(); ++k)
      text = (k > 1 ? "(" + text + ")" : text) + " * " + size(dims[k]) + " + " + at[k];
    return text;
  }

  /// Where element u of window p lies, as `name`; skips what lies beyond the image.
  void input_place(const WindowAxis& a, const std::string& name, const std::string& p,
                   const std::string& u) {
    line("const gc_index " + name + " = " + p + " * " + size(a.stride) + " + " + u + " * " +
         size(a.dilation) + shifted(-a.before) + ";");
    line("if (" + name + " < 0 || " + name + " >= " + size(a.input) + ") continue;");
  }
  /// Which window has element q as its element u; skips what none has.
  void output_place(const WindowAxis& a, const std::string& name, const std::string& q,
                    const std::string& u) {
    line("const gc_index " + name + "s = " + q + shifted(a.before) + " - " + u + " * " +
         size(a.dilation) + ";");
    line("if (" + name + "s < 0 || " + name + "s % " + divisor(a.stride) + " != 0) continue;");
    line("const gc_index " + name + " = " + name + "s / " + divisor(a.stride) + ";");
    line("if (" + name + " >= " + size(a.output) + ") continue;");
  }
  std::string shifted(int64_t by) {
    return by == 0 ? "" : by > 0 ? " + " + size(by) : " - " + size(-by);
  }

  Written finish(int64_t threads, const char* title) {
    step_.grid = grid_for(threads, kBlock);
    return written("  for (gc_index t = gc_first(); t < " + size(threads) +
                       "; t += gc_step()) {\n" + body_.text + "  }\n",
                   title);
  }

  NodeId id_;

 private:
  int open_ = 0;
};

class ConvolutionWriter : WindowWriter {
 public:
  using WindowWriter::WindowWriter;

  Written run() {
    const Part part = convolution_part(g_[id_].op);
    const Dims &a = g_.dims(g_.input(id_, 0)), &b = g_.dims(g_.input(id_, 1)), &out = g_.dims(id_);
    const ConvolutionSizes s =
        convolution_sizes(g_[id_].op, a, b, out, attributes<ConvolutionAttributes>(g_, id_));
    const std::string from_a = source(0), from_b = source(1), to = writes(id_);
    const size_t rank = s.axes.size();
    Names x{"n", "ci"}, w{"o", "c"}, y{"n", "o"};
    for (size_t k = 0; k < rank; ++k)
      x.push_back(numbered("pixel", k)), w.push_back(numbered("u", k)),
          y.push_back(numbered("place", k));
    const bool integers = !is_floating(g_.dtype(id_));
    const std::string sum = integers ? "long long" : type();
    const std::string inputs = size(s.inputs), outputs = size(s.outputs);
    places(out, part == Part::Output ? y : part == Part::Input ? x : w);
    if (part == Part::Input) {
      const std::string d = divisor(s.inputs);
      line("const gc_index c = ci % " + d + ", g = ci / " + d + ";");
    } else {
      line("const gc_index g = o / " + divisor(s.outputs) + ";");
    }
    line(sum + " s = 0;");
    if (part == Part::Output) loop("c", s.inputs);
    if (part == Part::Input) {
      loop("og", s.outputs);
      line("const gc_index o = g * " + outputs + " + og;");
    } else {
      if (part == Part::Weight) loop("n", s.images);
      line("const gc_index ci = g * " + inputs + " + c;");
    }
    for (size_t k = 0; k < rank; ++k) {
      const WindowAxis& axis = s.axes[k];
      part == Part::Weight ? loop(y[k + 2], axis.output) : loop(w[k + 2], axis.kernel);
      if (part == Part::Input)
        output_place(axis, y[k + 2], x[k + 2], w[k + 2]);
      else
        input_place(axis, x[k + 2], y[k + 2], w[k + 2]);
    }
    const DType t = g_.dtype(id_);
    const std::string left =
        decoded(t, from_a + "[" + element(a, part == Part::Input ? y : x) + "]");
    const std::string right =
        decoded(t, from_b + "[" + element(b, part == Part::Weight ? y : w) + "]");
    line("s += " + std::string(integers ? "(long long)" : "") + left + " * " + right + ";");
    close_all();
    line(to + "[t] = " + encoded(t, integers ? "(" + type() + ")s" : "s") + ";");
    return finish(g_.count(id_), "convolution");
  }
};

class LargestWriter : WindowWriter {
 public:
  using WindowWriter::WindowWriter;

  Written run() {
    const Dims& from = g_.dims(g_.input(id_, 0));
    const std::vector<WindowAxis> axes = window_axes(from, attributes<WindowAttributes>(g_, id_));
    const size_t lead = from.size() - axes.size();
    const DType t = source_type(0);
    const std::string x = source(0), to = writes(id_), type = type_name(compute_type(t));
    const bool where = finds_places(g_[id_].op);
    Names p{"r"}, q{"r"};
    Dims rows{product(from, 0, lead)}, places_of{rows};
    for (size_t k = 0; k < axes.size(); ++k) {
      p.push_back(numbered("place", k)), q.push_back(numbered("pixel", k));
      rows.push_back(axes[k].output), places_of.push_back(axes[k].input);
    }
    places(rows, p);
    line(type + " best = gc_max<" + type + ">::none();");
    line("gc_index at = -1;");
    for (size_t k = 0; k < axes.size(); ++k) {
      loop(numbered("u", k), axes[k].kernel);
      input_place(axes[k], q[k + 1], p[k + 1], numbered("u", k));
    }
    line("const gc_index i = " + element(places_of, q) + ";");
    line("const " + type + " v = " + decoded(t, x + "[i]") + ";");
    line("if (at < 0 || v > best || v != v) best = v, at = i;");
    close_all();
    const int64_t size_of_image = product(from, lead, from.size());
    line(
        to + "[t] = " +
        (where ? "(int)(at < 0 ? at : at - r * " + size(size_of_image) + ")" : encoded(t, "best")) +
        ";");
    return finish(g_.count(id_), where ? "window_argmax" : "window_max");
  }
};

/// Rows are few or many, and so are their elements: a thread takes an element, or adds up an
/// element's updates in order.
class AlongWriter : WindowWriter {
 public:
  using WindowWriter::WindowWriter;

  Written take() {
    const Dims &from = g_.dims(g_.input(id_, 0)), &out = g_.dims(id_);
    const std::string x = source(0), at = source(1), to = writes(id_);
    line("const gc_index k = " + at + "[t];");
    line("if (k < -1 || k >= " + size(from[1]) + ") gc_flag(" + status() + ");");
    const std::string there = "k >= 0 && k < " + size(from[1]);
    line(to + "[t] = " + there + " ? " + x + "[t / " + divisor(out[1]) + " * " + size(from[1]) +
         " + k] : " + encoded(g_.dtype(id_), "(" + type() + ")0") + ";");
    return finish(g_.count(id_), "take_along");
  }

  Written put() {
    const Dims &from = g_.dims(g_.input(id_, 0)), &out = g_.dims(id_);
    const std::string at = source(0), x = source(1), to = writes(id_);
    const DType t = g_.dtype(id_);
    places(out, {"r", "k"});
    line(type() + " s = 0;");
    loop("i", from[1]);
    line("const gc_index j = r * " + size(from[1]) + " + i;");
    line("if (" + at + "[j] < -1 || " + at + "[j] >= " + size(out[1]) + ") gc_flag(" + status() +
         ");");
    line("if (" + at + "[j] == k) s = (" + type() + ")(s + " + decoded(t, x + "[j]") + ");");
    close_all();
    line(to + "[t] = " + encoded(t, "s") + ";");
    return finish(g_.count(id_), "put_along");
  }
};

}  // namespace

Written write_convolution(const WriterInputs& in, NodeId id) {
  return ConvolutionWriter(in, id).run();
}
Written write_window(const WriterInputs& in, NodeId id) { return LargestWriter(in, id).run(); }
Written write_along(const WriterInputs& in, NodeId id) {
  AlongWriter writer(in, id);
  return form(in.graph, id) == Form::TakePlaces ? writer.take() : writer.put();
}

}  // namespace gradcell::cuda
