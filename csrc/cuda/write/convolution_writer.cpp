// Convolutions in tiles (convolution.cuh). The text depends on the number of axes, on how tensors
// lie and on dtypes; sizes are arguments, so that all layers of a network share a few kernels.
#include <algorithm>

#include "cuda/fuse/tile_products.h"
#include "cuda/write/single_node_writer.h"
#include "ops/combining/convolution.h"

namespace gradcell::cuda {

namespace {

using Part = ConvolutionPart;

constexpr int64_t kSideOfTile = 64, kTermsOfStep = 32;
/// Of a block's shared memory, what a kernel may have by itself.
constexpr size_t kOwnOfKernel = 1024;
/// Blocks that keep any GPU busy, and the fewest steps that are worth a block.
constexpr int64_t kBusy = 256, kFewestSteps = 8, kMostParts = 512;
/// Of a tile's products, those that are wanted: with fewer a thread an element takes less time,
/// which needs about 8 instructions a product where a tile's needs a half.
constexpr double kFewestWanted = 0.06;

/// The product of matrices that a convolution is: see convolution.cuh.
struct ConvolutionProduct {
  int64_t rows, columns, terms, phases = 1;  ///< of a group; of Input of a phase, at most
};
ConvolutionProduct product_of(Part part, const ConvolutionSizes& s) {
  const int64_t taps = s.inner(&WindowAxis::kernel);
  const int64_t places = s.images * s.inner(&WindowAxis::output);
  if (part == Part::Output) return {places, s.outputs, s.inputs * taps};
  if (part == Part::Weight) return {s.outputs, s.inputs * taps, places};
  ConvolutionProduct p{s.images, s.inputs, s.outputs};
  for (const WindowAxis& a : s.axes) {
    p.rows *= divide_up(a.input, a.stride);
    p.terms *= divide_up(a.kernel, a.stride);
    p.phases *= a.stride;
  }
  return p;
}

ConvolutionSizes sizes_of_convolution(const Graph& g, NodeId id) {
  return convolution_sizes(g[id].op, g.dims(g.input(id, 0)), g.dims(g.input(id, 1)), g.dims(id),
                           attributes<ConvolutionAttributes>(g, id));
}

int64_t bits_of(const ConvolutionSizes& s) {
  int64_t bits = 0;
  for (const WindowAxis& a : s.axes) bits += a.kernel;
  return bits;
}

/// As gc_convolve lays it out, or a little more.
size_t shared_bytes_of(DType t, int64_t tall) {
  const auto item = static_cast<int64_t>(item_size(t));
  const int64_t pitch = kTermsOfStep + 16 / item, lines = kSideOfTile * (tall + 1);
  return static_cast<size_t>(2 * lines * pitch * item + (lines + 2 * kTermsOfStep) * 32);
}

class ConvolutionTilesWriter : AloneWriter {
 public:
  ConvolutionTilesWriter(const WriterInputs& in, NodeId id, const ConvolutionTiles& tiles,
                         BufferId partial)
      : AloneWriter(in, id), tiles_(tiles), partial_(partial) {}

  Written sums() {
    count_node(id_);
    const Part part = convolution_part(g_[id_].op);
    const ConvolutionSizes s = sizes_of_convolution(g_, id_);
    const ConvolutionProduct p = product_of(part, s);
    const size_t rank = s.axes.size();
    // The factor of rows is the first operand, but for a gradient of weights.
    const NodeId first = f_.storage[g_.input(id_, 0)], second = f_.storage[g_.input(id_, 1)];
    const std::string a = reads(part == Part::Weight ? second : first);
    const std::string b = reads(part == Part::Weight ? first : second);
    const std::string type = type_name(compute_type(dtype_));
    std::string axes;
    for (size_t k = 0; k < rank; ++k) {
      const WindowAxis& w = s.axes[k];
      const std::string at = std::to_string(k);
      axes += (k ? ", {" : "{") + number("input" + at, w.input) + ", " +
              number("kernel" + at, w.kernel) + ", " + number("output" + at, w.output) + ", " +
              number("stride" + at, w.stride) + ", " + number("dilation" + at, w.dilation) + ", " +
              number("before" + at, w.before) + "}";
    }
    body_.indent = "  ";
    line("GC_NEEDS_WARPS();");
    line(str("const gc_windows<", rank, "> windows = {", number("images", s.images), ", ",
             number("groups", s.groups), ", ", number("inputs", s.inputs), ", ",
             number("outputs", s.outputs), ", {", axes, "}};"));
    const char* const mask = bits_of(s) <= 30 ? "unsigned" : "unsigned long long";
    line(str("using Sums = gc_convolution<", static_cast<int>(part), ", ", rank,
             ", false, false, false, ", mask, ">;"));
    const std::string parts = number("parts", tiles_.parts);
    std::string store;
    if (tiles_.parts > 1) {
      const std::string to = buffer(partial_, type.c_str(), true, "partial");
      step_.bytes_written += tiles_.partial_bytes;
      store = to + "[(gc_long)part * " + number("count", g_.count(id_)) + " + i] = s;";
    } else {
      store = writes(id_) + "[i] = " + result() + ";";
    }
    // Neighbours in memory are pixels, of weights elements of the kernel.
    const bool rows_along = part != Part::Weight;
    const bool columns_along = part == Part::Input && s.inner(&WindowAxis::kernel) == 1;
    const ProductUnit unit = unit_for(dtype_, tf32_allowed());
    const std::string kind = unit == ProductUnit::Fma ? "gc_plain" : unit_name(unit, dtype_);
    line(str("gc_convolve<", kind, ", ", tiles_.tall, ", ", type, ", Sums, ",
             rows_along ? "true" : "false", ", ", columns_along ? "true" : "false", ", ", mask,
             ">("));
    line("    Sums(windows), " + a + ", " + b + ", " + parts + ", [&](gc_index part, gc_index i, " +
         type + " s) { " + store + " });");
    step_.flops = 2 * s.work();
    step_.shared_bytes = shared_bytes_of(dtype_, tiles_.tall);
    step_.grid =
        grid_for(tiles_.parts * s.groups * p.phases * divide_up(p.rows, kSideOfTile * tiles_.tall) *
                     divide_up(p.columns, kSideOfTile),
                 1);
    step_.block_x = 32, step_.block_y = 8;
    return written(body_.text, "convolution", 256);
  }

  /// Of an element, over the parts.
  Written all() {
    const std::string type = type_name(compute_type(dtype_));
    const std::string from = buffer(partial_, type.c_str(), false, "partial"), to = writes(id_);
    const std::string n = size(g_.count(id_));
    step_.bytes_read += tiles_.partial_bytes;
    line("double s = 0;");
    line("for (gc_index k = 0; k < " + number("parts", tiles_.parts) + "; ++k) s += " + from +
         "[(gc_long)k * " + n + " + t];");
    line(to + "[t] = " + result() + ";");
    return each_thread(n, g_.count(id_), kBlock, "convolution_sums");
  }

 private:
  /// An argument of its own, though another one may be equal.
  std::string number(const std::string& name, int64_t value) {
    parameter("const gc_index", name, {Argument::Kind::Size, 0, value, Compute::I64});
    return name;
  }

  const ConvolutionTiles tiles_;
  const BufferId partial_;
};

}  // namespace

ConvolutionTiles plan_convolution(const Graph& g, NodeId id, const Target& target) {
  const DType t = g.dtype(id);
  const ConvolutionSizes s = sizes_of_convolution(g, id);
  if (!is_floating(t) || bits_of(s) > 62 || s.axes.size() > 3) return {};
  const Part part = convolution_part(g[id].op);
  const ConvolutionProduct p = product_of(part, s);
  auto fits = [&](int64_t tall) {
    return shared_bytes_of(t, tall) + kOwnOfKernel <= target.shared_bytes;
  };
  if (!fits(1)) return {};
  auto blocks = [&](int64_t tall) {
    return s.groups * p.phases * divide_up(p.rows, kSideOfTile * tall) *
           divide_up(p.columns, kSideOfTile);
  };
  const int64_t steps = divide_up(p.terms, kTermsOfStep);
  const double made = static_cast<double>(blocks(1) * kSideOfTile * kSideOfTile) *
                      static_cast<double>(steps * kTermsOfStep);
  // An element of the weights' gradient has so many terms that a thread would take too long.
  if (part != Part::Weight && static_cast<double>(s.work()) < kFewestWanted * made) return {};
  ConvolutionTiles tiles;
  const bool many = part == Part::Weight ? p.rows > kSideOfTile : blocks(2) >= kBusy;
  tiles.tall = many && item_size(t) <= 4 && fits(2) ? 2 : 1;
  const int64_t most = std::min(kMostParts, std::max<int64_t>(1, steps / kFewestSteps));
  tiles.parts = std::clamp<int64_t>(kBusy / std::max<int64_t>(1, blocks(tiles.tall)), 1, most);
  if (tiles.parts > 1)
    tiles.partial_bytes =
        static_cast<size_t>(tiles.parts * g.count(id)) * (compute_type(t) == Compute::F64 ? 8 : 4);
  return tiles;
}

std::vector<Written> write_convolution_tiles(const WriterInputs& in, NodeId id,
                                             const ConvolutionTiles& tiles, BufferId partial) {
  std::vector<Written> all;
  all.push_back(ConvolutionTilesWriter(in, id, tiles, partial).sums());
  if (tiles.parts > 1) all.push_back(ConvolutionTilesWriter(in, id, tiles, partial).all());
  return all;
}

}  // namespace gradcell::cuda
