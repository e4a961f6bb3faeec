// Convolutions in tiles (convolution.cuh). The text depends on the number of axes, on how tensors
// lie and on dtypes; sizes are arguments, so that all layers of a network share a few kernels.
#include "cuda/tiles/tile_products.h"
#include "cuda/write/single_node_writer.h"

namespace gradcell::cuda {

namespace {

constexpr int64_t kRowsOfTile = 64;

class ConvolutionTilesWriter : AloneWriter {
 public:
  ConvolutionTilesWriter(const WriterInputs& in, NodeId id, NodeId end,
                         const ConvolutionTiles& tiles, BufferId partial)
      : AloneWriter(in, id),
        end_(end),
        part_(convolution_part(g_[id].op)),
        attributes_(attributes<ConvolutionAttributes>(g_, id)),
        sizes_(sizes_of_convolution(g_, id)),
        tiles_(tiles),
        partial_(partial),
        type_(type_name(compute_type(dtype_))) {}

  Written sums() {
    count_node(id_);
    const ConvolutionProduct p = product_of(part_, sizes_);
    const size_t rank = sizes_.axes.size();
    // The factor of rows is the first operand, but for a gradient of weights.
    const int rows = part_ == ConvolutionPart::Weight ? 1 : 0;
    const std::string a = reads(f_.storage[g_.input(id_, rows)]);
    const std::string b = reads(f_.storage[g_.input(id_, 1 - rows)]);
    body_.indent = "  ";
    line("GC_NEEDS_WARPS();");
    line(str("const gc_windows<", rank, "> windows = {", windows(), "};"));
    const bool last[] = {is_last(ConvolutionPart::Input), is_last(ConvolutionPart::Weight),
                         is_last(ConvolutionPart::Output)};
    const char* const mask = tiles_.wide_bits ? "unsigned long long" : "unsigned";
    line(str("using Sums = gc_convolution<", narrow<int>(part_), ", ", rank, ", ", flag(last[0]),
             ", ", flag(last[1]), ", ", flag(last[2]), ", ", mask, ">;"));
    const std::string parts = number("parts", tiles_.parts);
    line("auto store = [&](gc_index part, gc_index i, " + type_ + " s) {");
    const Scope inside = nested([&] {
      if (tiles_.parts > 1) {
        const std::string to = buffer(partial_, type_.c_str(), true, "partial");
        step_.bytes_written += tiles_.partial_bytes;
        line(to + "[(gc_long)part * " + number("count", g_.count(id_)) + " + i] = s;");
      } else {
        store("s", "i");
      }
    });
    scopes_.back()->text += inside.text;
    line("};");
    line(str("gc_convolve<", unit(), ", ", tiles_.tall, ", ", type_, ", Sums, ",
             flag(rows_along(last)), ", ", flag(columns_along(last)), ", ", mask,
             ">(Sums(windows), ", a, ", ", b, ", ", parts, ", store);"));
    step_.flops = 2 * sizes_.work();
    step_.shared_bytes = tiles_.shared_bytes;
    step_.grid = grid_for(tiles_.parts * sizes_.groups * p.phases *
                              divide_up(p.rows, kRowsOfTile * tiles_.tall) *
                              divide_up(p.columns, kRowsOfTile),
                          1);
    step_.block_x = 32, step_.block_y = 8;
    return written(body_.text, "convolution", 256);
  }

  /// Of an element, over the parts.
  Written all() {
    const std::string from = buffer(partial_, type_.c_str(), false, "partial");
    const std::string n = size(g_.count(id_));
    step_.bytes_read += tiles_.partial_bytes;
    line("double s = 0;");
    line("for (gc_index k = 0; k < " + number("parts", tiles_.parts) + "; ++k) s += " + from +
         "[(gc_long)k * " + n + " + t];");
    store("(" + type_ + ")s", "t");
    return each_thread(n, g_.count(id_), kBlock, "convolution_sums");
  }

 private:
  static const char* flag(bool value) { return value ? "true" : "false"; }

  /// An argument of its own, though another one may be equal.
  std::string number(const std::string& name, int64_t value) {
    parameter("const gc_index", name, {Argument::Kind::Size, 0, value, Compute::I64});
    return name;
  }
  std::string windows() {
    std::string axes;
    for (size_t k = 0; k < sizes_.axes.size(); ++k) {
      const WindowAxis& w = sizes_.axes[k];
      const std::string at = std::to_string(k);
      axes += (k ? ", {" : "{") + number("input" + at, w.input) + ", " +
              number("kernel" + at, w.kernel) + ", " + number("output" + at, w.output) + ", " +
              number("stride" + at, w.stride) + ", " + number("dilation" + at, w.dilation) + ", " +
              number("before" + at, w.before) + "}";
    }
    return number("images", sizes_.images) + ", " + number("groups", sizes_.groups) + ", " +
           number("inputs", sizes_.inputs) + ", " + number("outputs", sizes_.outputs) + ", {" +
           axes + "}";
  }
  std::string unit() const {
    const ProductUnit by = unit_for(dtype_, in_.target.tf32);
    return by == ProductUnit::Fma ? "gc_plain" : unit_name(by, dtype_);
  }

  /// Whether the channels of one of the form's tensors come last. (Operands are in the order of
  /// ops/combining/convolution.h.)
  bool is_last(ConvolutionPart tensor) const {
    using Part = ConvolutionPart;
    if (tensor == part_) return attributes_.last & 4;
    const Part first = part_ == Part::Input ? Part::Output : Part::Input;
    return attributes_.last & (tensor == first ? 1 : 2);
  }
  /// Whether neighbours in memory are rows or columns, rather than terms: pixels, or channels where
  /// these come last.
  bool rows_along(const bool (&last)[3]) const {
    return part_ == ConvolutionPart::Output  ? !last[0]
           : part_ == ConvolutionPart::Input ? !last[2]
                                             : last[2];
  }
  bool columns_along(const bool (&last)[3]) const {
    const bool pointwise = sizes_.inner(&WindowAxis::kernel) == 1;
    return part_ == ConvolutionPart::Output  ? false
           : part_ == ConvolutionPart::Input ? last[1] || last[2] || pointwise
                                             : last[0];
  }

  /// An element of the result, or of what comes after it.
  void store(const std::string& sum, const std::string& at) {
    if (end_ == id_) return line(writes(id_) + "[" + at + "] = " + encoded(dtype_, sum) + ";");
    know(id_, flat(at), let(type_.c_str(), narrowed(dtype_, sum), "v"));
    const std::string value = compute(end_, flat(at));
    line(writes(end_) + "[" + at + "] = " + encoded(g_.dtype(end_), value) + ";");
  }

  const NodeId end_;
  const ConvolutionPart part_;
  const ConvolutionAttributes attributes_;
  const ConvolutionSizes sizes_;
  const ConvolutionTiles tiles_;
  const BufferId partial_;
  const std::string type_;
};

}  // namespace

std::vector<Written> write_convolution_tiles(const WriterInputs& in, NodeId id, NodeId end,
                                             const ConvolutionTiles& tiles, BufferId partial) {
  std::vector<Written> all;
  all.push_back(ConvolutionTilesWriter(in, id, end, tiles, partial).sums());
  if (tiles.parts > 1) all.push_back(ConvolutionTilesWriter(in, id, end, tiles, partial).all());
  return all;
}

}  // namespace gradcell::cuda
