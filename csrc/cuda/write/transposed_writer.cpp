// Elementwise kernels that read something transposed: neighbouring elements of the result come from
// places far apart. A block takes tiles of 32 x 32: it computes what is to be transposed in the
// order in which that lies in memory, puts it into shared memory, and goes on in the result's
// order.
#include <algorithm>
#include <optional>

#include "cuda/write/writer.h"

namespace gradcell::cuda {

namespace {

/// A result of [outer, fast, between, last], read from what has neighbours along `fast`.
struct Transposition {
  int64_t fast, between, last;
  bool operator==(const Transposition&) const = default;
};

constexpr int64_t kTile = 32;
/// Shorter sides leave too much of a tile empty, fewer elements lie in the caches anyway.
constexpr int64_t kShortest = 16, kFewest = 1024;
/// Of 8 KB each at most.
constexpr size_t kMostTiles = 4;

class TransposedWriter : Writer {
 public:
  using Writer::Writer;

  std::optional<Written> run(std::span<const NodeId> outputs) {
    count_ = g_.count(outputs[0]);
    if (count_ < kFewest) return std::nullopt;
    for (NodeId id : outputs) look(id);
    if (tiles_.empty()) return std::nullopt;
    const std::string fast = size(how_->fast), last = size(how_->last);
    const std::string across = size(divide_up(how_->last)), down = size(divide_up(how_->fast));
    const std::string between = size(how_->between);
    const int64_t outer = count_ / (how_->fast * how_->between * how_->last);
    const int64_t tiles = divide_up(how_->last) * divide_up(how_->fast) * how_->between * outer;
    auto split = [&](const char* name, const char* of, int64_t by, const char* rest) {
      const std::string d = divisor(divide_up(by));
      line(str("const gc_index ", name, " = ", of, " % ", d, " * 32, ", rest, " = ", of, " / ", d,
               ";"));
    };
    split("across", "b", how_->last, "b1");
    split("down", "b1", how_->fast, "rest");
    const std::string d = divisor(how_->between);
    std::string row = "(rest / " + d + " * " + fast + " + y) * " + between + " + rest % " + d;
    if (how_->between == 1) row = "rest * " + fast + " + y";
    auto elements = [&](const char* x, const char* y, const Scope& inside) {
      line("#pragma unroll 4");
      const Scope whole = nested([&] {
        line(str("const gc_index x = across + ", x, ", y = down + ", y, ";"));
        line("if (x >= " + last + " || y >= " + fast + ") continue;");
        line("const gc_index i = (" + row + ") * " + last + " + x;");
        scopes_.back()->text += inside.text;
      });
      block("for (int e = gc_thread(); e < 1024; e += gc_threads())", whole);
    };
    std::string shared;
    const Scope in_order = deeper([&] {
      for (size_t k = 0; k < tiles_.size(); ++k) {
        const NodeId id = tiles_[k], source = f_.storage[g_.input(id, 0)];
        const View from = view_of(id);
        const std::string v = value(source, seen(from, g_.count(source), flat("i")));
        line(str("tile", k, "[e / 32 * 33 + e % 32] = ", v, ";"));
        count_node(id);
        shared += str("  __shared__ ", type_of(id), " tile", k, "[32 * 33];\n");
      }
    });
    const Scope stores = deeper([&] {
      for (size_t k = 0; k < tiles_.size(); ++k) {
        const std::string v = str("z", k);
        line(str("const ", type_of(tiles_[k]), " ", v, " = tile", k, "[e % 32 * 33 + e / 32];"));
        know(tiles_[k], flat("i"), v);
      }
      for (NodeId id : outputs) {
        const std::string v = value(id, flat("i"));
        line(writes(id) + "[i] = " + encoded(g_.dtype(id), v) + ";");
        count_node(id);
      }
    });
    line("__syncthreads();");
    elements("e / 32", "e % 32", in_order);
    line("__syncthreads();");
    elements("e % 32", "e / 32", stores);
    step_.grid = grid_for(tiles, 1), step_.block_x = kBlock;
    std::string all = outer == 1 ? "" : " * " + size(outer);
    if (how_->between > 1) all = " * " + between + all;
    return written(shared + "  for (gc_index b = blockIdx.x; b < " + across + " * " + down + all +
                       "; b += gridDim.x) {\n" + body_.text + "  }\n",
                   "transpose", kBlock);
  }

 private:
  static int64_t divide_up(int64_t n) { return (n + kTile - 1) / kTile; }
  const char* type_of(NodeId id) const { return type_name(compute_type(g_.dtype(id))); }
  View view_of(NodeId id) const { return spec(g_, id).movement(g_, id).pieces[0].from; }

  /// A scope of a loop's body in the kernel's.
  template <class F>
  Scope deeper(F write) {
    Scope inside;
    const Scope outer = nested([&] { inside = nested(write); });
    return inside;
  }

  /// Finds what is read transposed on the way from an output, at the kernel's own index.
  void look(NodeId id) {
    id = f_.storage[id];
    if (is_constant(g_, id) || in_memory(id) || g_.count(id) != count_ || !seen_.insert(id).second)
      return;
    const Form f = form(g_, id);
    if (f == Form::Elementwise || f == Form::Convert)
      for (NodeId input : g_.inputs(id)) look(input);
    if (f != Form::Move || tiles_.size() == kMostTiles) return;
    const Movement m = spec(g_, id).movement(g_, id);
    if (!is_view(m)) return;
    if (const auto t = transposition(m.pieces[0].from); t && (!how_ || *how_ == *t))
      how_ = t, tiles_.push_back(id);
  }

  std::optional<Transposition> transposition(const View& view) const {
    const View v = merged(view);
    const size_t last = v.dims.size() - 1;
    if (v.strides[last] == 0 || v.strides[last] == 1 || v.dims[last] < kShortest) return {};
    for (size_t k = 0; k < last; ++k)
      if (v.strides[k] == 1 && v.dims[k] >= kShortest)
        return Transposition{v.dims[k], product(v.dims, k + 1, last), v.dims[last]};
    return {};
  }

  int64_t count_ = 0;
  std::optional<Transposition> how_;
  std::vector<NodeId> tiles_;
  std::set<NodeId> seen_;
};

}  // namespace

std::optional<Written> write_transposed(const WriterInputs& in, int32_t stage,
                                        std::span<const NodeId> outputs) {
  return TransposedWriter(in, stage).run(outputs);
}

}  // namespace gradcell::cuda
