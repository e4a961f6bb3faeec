#include "ir/print.h"
#include "ops/ops.h"

#include <gtest/gtest.h>

#include "ad/transform.h"

namespace gradcell {
namespace {

TEST(Print, ANodeALine) {
  Graph g;
  NodeId x = leaf(g, DType::Float32, Dims{2, 3}), y = leaf(g, DType::Float32, Dims{2, 3});
  NodeId m = binary(g, Op::Mul, unary(g, Op::Sin, x), y);
  unary(g, Op::Exp, x);  // not needed by the root: not listed
  NodeId roots[] = {reduce(g, Combine::Sum, m, Dims{0, 1}), m};
  EXPECT_EQ(to_text(g, roots),
            "%0 = Leaf() : float32[2, 3]\n"
            "%1 = Leaf() : float32[2, 3]\n"
            "%2 = Sin(%0) : float32[2, 3]\n"
            "%3 = Mul(%1, %2) : float32[2, 3]\n"
            "%4 = ReduceSum(%3, axes=[0, 1]) : float32[]\n"
            "return %4, %3\n");
  EXPECT_EQ(to_text(g, m), "%3 = Mul(%1, %2) : float32[2, 3]");
}

TEST(Print, AttributesHaveNames) {
  Graph g;
  const Dims d{4, 4};
  NodeId x = leaf(g, DType::Float64, d), i = leaf(g, DType::Int32, Dims{3});
  auto line = [&](NodeId id) {
    std::string s = to_text(g, id);
    return s.substr(s.find("= ") + 2);
  };
  EXPECT_EQ(line(matmul(g, x, x, false, true)), "MatMul(%0, %0, transpose_b) : float64[4, 4]");
  EXPECT_EQ(line(matmul(g, x, x, true, false)), "MatMul(%0, %0, transpose_a) : float64[4, 4]");
  EXPECT_EQ(line(transpose(g, x, Dims{1, 0})), "Transpose(%0, perm=[1, 0]) : float64[4, 4]");
  EXPECT_EQ(line(slice(g, x, {{1, 3}, {2, 2}, {1, -2}})),
            "Slice(%0, start=[1, 3], step=[1, -2]) : float64[2, 2]");
  EXPECT_EQ(line(slice_scatter(g, x, Dims{8, 4}, Dims{0, 0}, Dims{2, 1})),
            "SliceScatter(%0, start=[0, 0], step=[2, 1]) : float64[8, 4]");
  NodeId two[] = {x, x};
  EXPECT_EQ(line(concat(g, two, 1)), "Concat(%0, %0, axis=1) : float64[4, 8]");
  EXPECT_EQ(line(cumsum(g, x, {1, true, true})),
            "CumSum(%0, axis=1, exclusive, reverse) : float64[4, 4]");
  EXPECT_EQ(line(gather(g, x, i, 0)), "Gather(%0, %1, axis=0) : float64[3, 4]");
  EXPECT_EQ(line(arg_reduce(g, Combine::Max, x, 1)), "ArgMax(%0, axis=1) : int32[4]");
  EXPECT_EQ(line(iota(g, DType::Int32, Dims{5}, 0)), "Iota(axis=0) : int32[5]");
  EXPECT_EQ(line(cast(g, x, DType::BFloat16)), "Cast(%0) : bfloat16[4, 4]");
}

TEST(Print, ConstantsReadBackAsTheyAre) {
  Graph g;
  auto text = [&](DType t, double v) {
    std::string s = to_text(g, constant(g, t, Dims{}, v));
    return s.substr(s.find('(') + 1, s.find(')') - s.find('(') - 1);
  };
  EXPECT_EQ(text(DType::Float32, 0.1), "0.1");
  EXPECT_EQ(text(DType::Float64, 0.1), "0.1");
  EXPECT_EQ(text(DType::Float32, -0.0), "-0");
  EXPECT_EQ(text(DType::Float64, 1.0 / 3), "0.3333333333333333");
  EXPECT_EQ(text(DType::Int32, -7), "-7");
  EXPECT_EQ(text(DType::Bool, 1), "1");
}

TEST(Print, RemarksAndOrder) {
  Graph g;
  NodeId x = leaf(g, DType::Float32, Dims{});
  NodeId y = unary(g, Op::Sin, x);
  NodeId out[] = {y}, ones[] = {constant(g, DType::Float32, Dims{}, 1)}, wrt[] = {x};
  NodeId roots[] = {ad::adjoint(g, out, ones, wrt)[0]};
  auto remark = [&](NodeId id) {
    return std::string(g[id].op == Op::Leaf ? "argument 0" : "net.py:3");
  };
  EXPECT_EQ(to_text(g, roots, remark),
            "%0 = Leaf() : float32[]  # argument 0\n"
            "%1 = Cos(%0) : float32[]  # net.py:3, order 1\n"
            "return %1\n");
}

TEST(Print, Drawing) {
  Graph g;
  NodeId x = leaf(g, DType::Float32, Dims{2});
  NodeId roots[] = {binary(g, Op::Sub, unary(g, Op::Sin, x), x)};
  EXPECT_EQ(to_dot(g, roots),
            "digraph {\n"
            "  node [shape=ellipse, style=filled, fontname=\"sans-serif\", fontsize=11];\n"
            "  edge [arrowsize=0.6, fontname=\"sans-serif\", fontsize=9];\n"
            "  n0 [label=\"Leaf\\nfloat32[2]\", fillcolor=\"#ffffff\", shape=box];\n"
            "  n1 [label=\"Sin\\nfloat32[2]\", fillcolor=\"#ffffff\"];\n"
            "  n0 -> n1;\n"
            "  n2 [label=\"Sub\\nfloat32[2]\", fillcolor=\"#ffffff\", shape=box, peripheries=2];\n"
            "  n1 -> n2 [label=\"0\"];\n"
            "  n0 -> n2 [label=\"1\"];\n"
            "}\n");
}

}  // namespace
}  // namespace gradcell
