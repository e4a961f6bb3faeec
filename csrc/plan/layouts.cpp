#include "plan/layouts.h"

#include <algorithm>
#include <utility>

#include "ops/combining/product.h"
#include "plan/region/uses.h"

namespace gradcell {

namespace {

/// Rows of so many features are run through as they lie, where nothing multiplies.
constexpr int64_t kWide = 64;

/// What is known of a buffer: a matrix that could be stored either way, and how it is used.
struct Matrix {
  int64_t rows = 0, features = 0;  ///< 0: not seen yet
  bool fixed = false;              ///< something needs it row-major
  bool in_region = false;
  bool multiplied = false;  ///< a product, or a region that has one, uses it
  bool in_call = false;

  void use(int64_t r, int64_t f) {
    if (rows == 0) rows = r, features = f;
    fixed |= rows != r || features != f || f == 1;
  }
};

bool multiplies(const Region& r) {
  return std::ranges::any_of(r.program, [](const Instruction& i) {
    return i.kind == TileOp::Product || i.kind == TileOp::WeightGrad;
  });
}

bool is_plain_product(const Call& c) {
  return c.form == Form::Product && c.inputs.size() == 2 && c.out.dims.size() == 2 &&
         exact(c.out.dtype);
}

std::vector<Matrix> find_matrices(const Plan& plan) {
  std::vector<Matrix> m(plan.buffers.size());
  for (size_t b = 0; b < m.size(); ++b) m[b].fixed = plan.buffers[b].place != Place::Temp;
  auto in_region = [&](BufferId b, const Region& r, int32_t features, DType dtype, bool products) {
    m[b].use(r.rows, features);
    m[b].in_region = true;
    m[b].fixed |= !exact(dtype) || r.block > 1;
    m[b].multiplied |= products;
  };
  for (const Stage& stage : plan.stages) {
    for (const Region& r : stage.regions) {
      const bool products = multiplies(r);
      for (const Uniform& u : r.uniforms)
        if (u.constant < 0) m[u.buffer].fixed = true;
      for (const PackedWeights& w : r.weights) m[w.buffer].fixed = true;
      for (const Accumulator& a : r.accumulators) m[a.buffer].fixed = true;
      for (const RowLoad& l : r.loads)
        if (l.viewed())
          m[l.buffer].fixed = true;
        else
          in_region(l.buffer, r, r.values[l.value].features, l.dtype, products);
      for (const RowStore& s : r.stores) in_region(s.buffer, r, s.features, s.dtype, products);
    }
    for (const Call& c : stage.calls) {
      auto in_call = [&](BufferId b, const TensorDesc& d) {
        if (is_plain_product(c))
          m[b].use(d.dims[0], d.dims[1]), m[b].multiplied = m[b].in_call = true;
        else
          m[b].fixed = true;
      };
      for (size_t k = 0; k < c.inputs.size(); ++k) in_call(c.inputs[k], c.in[k]);
      in_call(c.output, c.out);
      for (BufferId b : c.more) m[b].fixed = true;
    }
  }
  return m;
}

void flip(TensorDesc& d) { std::swap(d.dims[0], d.dims[1]); }

}  // namespace

void choose_layouts(Plan& plan) {
  std::vector<Matrix> matrices = find_matrices(plan);
  for (size_t b = 0; b < matrices.size(); ++b) {
    const Matrix& m = matrices[b];
    if (m.fixed || !m.in_region || !(m.multiplied || m.features < kWide)) continue;
    const bool tiled = !m.in_call && m.rows % kTiledRows == 0;
    (tiled ? plan.buffers[b].tiled : plan.buffers[b].feature_major) = true;
  }
  for (Stage& stage : plan.stages)
    for (Call& c : stage.calls) {
      if (!is_plain_product(c)) continue;
      auto p = decode<ProductAttributes>(c.attributes);
      for (size_t k : {0, 1}) {
        if (!plan.buffers[c.inputs[k]].feature_major) continue;
        flip(c.in[k]);
        bool& transposed = k == 0 ? p.transpose_a : p.transpose_b;
        transposed = !transposed;
      }
      c.attributes = encode(p);
      if (!plan.buffers[c.output].feature_major) continue;
      flip(c.out);  // the transposed product is that of the transposed factors, swapped
      std::swap(c.inputs[0], c.inputs[1]);
      std::swap(c.in[0], c.in[1]);
      c.attributes = encode(ProductAttributes{!p.transpose_b, !p.transpose_a});
    }
}

}  // namespace gradcell
