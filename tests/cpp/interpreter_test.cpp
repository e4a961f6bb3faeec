// The engine beside the interpreter, op by op: all rows of the table in each dtype, and the forms
// that no other test here runs.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "evaluate.h"
#include "ir/body.h"
#include "ir/op_info.h"
#include "ops/moving/order.h"
#include "ops/ops.h"

namespace gradcell {
namespace {

using namespace testing;  // NOLINT

struct Interpreted : ::testing::Test {
  Graph g;
  Leaves leaves;

  NodeId input(const Dims& dims, DType t = DType::Float64, double low = -1, double high = 1) {
    return random_leaf(g, leaves, t, dims, low, high);
  }
  NodeId given(DType t, const Dims& dims, const std::vector<double>& values) {
    const NodeId id = leaf(g, t, dims);
    leaves[id] = make_array(t, dims, values);
    return id;
  }
  NodeId node(Op op, std::vector<NodeId> in, const Dims& attributes = {}) {
    return make(g, op, {in, attributes});
  }
  void expect_same(NodeId id, double tolerance = 1e-12) {
    SCOPED_TRACE(info(g[id].op).name);
    expect_close(run(g, id, leaves), interpret(g, id, leaves), tolerance);
  }
};

double tolerance_of(DType t) {
  return t == DType::Float64   ? 1e-13
         : t == DType::Float32 ? 1e-6
         : t == DType::Float16 ? 2e-3
                               : 2e-2;
}

TEST_F(Interpreted, EveryRowInEveryDType) {
  int rows = 0;
  for (DType t : {DType::Float64, DType::Float32, DType::Float16, DType::BFloat16, DType::Int64,
                  DType::Int32, DType::Int16, DType::Int8, DType::UInt8, DType::UInt16,
                  DType::UInt32, DType::UInt64, DType::Bool}) {
    const bool real = is_floating(t), natural = is_unsigned(t) || t == DType::Bool;
    const NodeId a = input({70}, t, real ? 0.1 : natural ? 0 : -9, real ? 0.9 : 10);
    const NodeId b = input({70}, t, real ? -3 : natural ? 1 : -4, real ? 3 : 5);
    const NodeId c = input({70}, DType::Bool, 0, 2);
    for (uint16_t i = 0; i < static_cast<uint16_t>(Op::Count); ++i) {
      const auto op = static_cast<Op>(i);
      const OpInfo& row = info(op);
      if (row.kind == OpKind::Structured) continue;
      const bool number = row.kind == OpKind::Compare || row.kind == OpKind::Predicate ||
                          row.kind == OpKind::Ternary;
      if (!number && row.cls == OpClass::Float && !real) continue;
      if (!number && (row.cls == OpClass::Bool) != (t == DType::Bool)) continue;
      if (t == DType::Bool && row.kind == OpKind::Predicate) continue;
      if (op == Op::Pow && !real) continue;  // exponents below 0 are refused before
      ++rows;
      // Above 1, where its function begins; else between 0 and 1, where all others have values.
      const NodeId x = op == Op::Acosh ? binary(g, Op::Add, a, constant(g, t, Dims{70}, 1)) : a;
      const NodeId y = row.kind == OpKind::Ternary ? select(g, c, a, b)
                       : row.kind == OpKind::Unary || row.kind == OpKind::Predicate
                           ? unary(g, op, x)
                           : binary(g, op, x, b);
      expect_same(y, real ? tolerance_of(t) : 0);
    }
  }
  EXPECT_GT(rows, 400);
}

TEST_F(Interpreted, ScansAndTransforms) {
  for (bool exclusive : {false, true})
    for (bool reverse : {false, true}) {
      expect_same(cumprod(g, input({3, 7, 2}), {1, exclusive, reverse}));
      expect_same(cumprod(g, input({9}, DType::Int32, -3, 4), {0, exclusive, reverse}), 0);
    }
  for (bool inverse : {false, true}) {
    expect_same(fourier(g, input({3, 5, 2}), {1, inverse}));
    expect_same(fourier(g, input({6, 4, 2}), {0, inverse}));
  }
}

TEST_F(Interpreted, Samples) {
  const NodeId x = input({2, 3, 5}), w = input({2, 4, 6}), y = input({2, 3, 6});
  const NodeId at = input({2, 4, 6}, DType::Int32, -1, 5);
  expect_same(node(Op::Sample, {x, at, w}));
  expect_same(node(Op::SampleSource, {y, at, w}, {5}));
  expect_same(node(Op::SampleWeight, {x, at, y}));
}

TEST_F(Interpreted, Attention) {
  const int64_t one = std::bit_cast<int64_t>(1.0), half = std::bit_cast<int64_t>(0.5),
                none = std::bit_cast<int64_t>(-std::numeric_limits<double>::infinity());
  for (bool inside : {false, true})
    for (int masked : {0, 1, 2})
      for (int64_t ahead : {int64_t{0}, int64_t{1000}}) {
        auto of = [&](int64_t rows, int64_t width) {
          return input(inside ? Dims{2, rows, 3, width} : Dims{2, 3, rows, width});
        };
        const NodeId q = of(6, 4), k = of(7, 4), v = of(7, 5), dy = of(6, 5);
        std::vector<NodeId> mask;
        if (masked == 1) mask = {input({1, 3, 6, 7}, DType::Bool, 0, 2)};
        if (masked == 2) mask = {input({2, 1, 1, 7})};
        auto made = [&](Op op, std::vector<NodeId> in, bool shifted, std::vector<NodeId> rest) {
          in.insert(in.end(), mask.begin(), mask.end());
          in.insert(in.end(), rest.begin(), rest.end());
          return node(op, in,
                      {masked > 0, false, shifted, one, 6, 1000, ahead, inside, false, shifted,
                       half, none});
        };
        const NodeId sums = made(Op::AttentionLogSum, {q, k}, false, {});
        expect_same(sums);
        expect_same(made(Op::Attention, {q, k, v}, false, {}));
        const NodeId shift = of(6, 1);
        expect_same(made(Op::AttentionRows, {q, k, v, sums}, false, {}));
        expect_same(made(Op::AttentionColumns, {q, k, dy, sums}, false, {dy, v}));
        expect_same(made(Op::AttentionRows, {q, k, k, sums}, true, {shift, dy, v}));
        expect_same(made(Op::AttentionColumns, {q, k, q, sums}, true, {shift, dy, v}));
      }
}

TEST_F(Interpreted, Orders) {
  const NodeId x = input({4, 9}, DType::Float32, -3, 3), t = input({4, 9}, DType::Int16, 0, 4);
  for (NodeId v : {x, t})
    for (int64_t flag : {0, 1}) {
      expect_same(node(Op::Order, {v}, {flag}), 0);
      for (int64_t sorted : {0, 1}) expect_same(node(Op::FirstInOrder, {v}, {5, flag, sorted}), 0);
      for (int64_t inner : {0, 1})
        for (int64_t values : {0, 1})
          expect_same(node(Op::RunningBest, {v}, {inner, flag, values}), 0);
      const NodeId ids = given(DType::Int32, {4}, {2, 0, -1, 2});
      for (int64_t values : {0, 1})
        expect_same(node(Op::SegmentBest, {v, ids}, {4, flag, values}), 0);
      const NodeId line = node(Op::TakeAlong, {v, node(Op::Order, {v}, {0})});
      expect_same(node(Op::PlaceInLine, {line, v}, {flag}), 0);
    }
  expect_same(node(Op::Among, {x, input({4, 3}, DType::Float32, -3, 3)}), 0);
  expect_same(node(Op::Among, {t, input({4, 3}, DType::Int16, 0, 4)}), 0);
  const NodeId edges = given(DType::Float64, {4, 3}, {-2, 0, 1, 0, 1, 2, -3, -3, 3, -1, 0, 0});
  expect_same(node(Op::CountBetween, {x, edges}), 0);
  const NodeId weights = input({4, 6}, DType::Float32, 0, 1),
               u = input({4, 8}, DType::Float32, 0, 1);
  expect_same(node(Op::DrawByWeights, {weights, u}), 0);
}

TEST_F(Interpreted, Integers) {
  for (DType t : {DType::Int8, DType::Int32, DType::Int64, DType::UInt8, DType::UInt16}) {
    const bool natural = is_unsigned(t);
    const NodeId a = input({40}, t, natural ? 0 : -9, 10), b = input({40}, t, 1, 7);
    for (int64_t f = 0; f <= static_cast<int64_t>(IntegerFunction::Lcm); ++f) {
      const bool shifts = f == static_cast<int64_t>(IntegerFunction::LeftShift) ||
                          f == static_cast<int64_t>(IntegerFunction::RightShift);
      expect_same(node(Op::OfIntegers, {a, shifts ? b : input({40}, t, natural ? 0 : -8, 9)}, {f}),
                  0);
    }
    expect_same(node(Op::Permitted, {b}, {static_cast<int64_t>(IntegerLimit::Mod), 1}), 0);
  }
}

TEST_F(Interpreted, Factorisations) {
  for (bool pairs : {false, true}) {
    auto matrices = [&](int64_t rows, int64_t columns) {
      Dims dims{3, rows, columns};
      if (pairs) dims.push_back(2);
      return input(dims);
    };
    const NodeId a = matrices(5, 5), b = matrices(5, 2);
    const NodeId lu = node(Op::LUFactors, {a}, {pairs});
    expect_same(lu, 1e-11);
    for (bool adjoint : {false, true})
      expect_same(node(Op::LUSolve, {lu, b}, {pairs, adjoint}), 1e-9);
    expect_same(node(Op::LUInverse, {lu}, {pairs}), 1e-9);
    for (bool adjoint : {false, true})
      expect_same(node(Op::TriangularSolve, {a, b}, {pairs, adjoint}), 1e-9);
    expect_same(node(Op::LUDeterminant, {lu}, {pairs}), 1e-11);
    for (auto [m, n] : {std::pair{6, 4}, std::pair{4, 6}, std::pair{4, 4}})
      for (bool full : {false, true}) {
        const NodeId x = matrices(m, n);
        for (bool vectors : {false, true})
          expect_same(node(Op::QRFactors, {x}, {pairs, full, vectors}), 1e-11);
        expect_same(node(Op::SingularFactors, {x}, {pairs, full, false}), 1e-11);
      }
  }
  const NodeId x = input({3, 5, 5});
  const NodeId positive = binary(g, Op::Add, matmul(g, x, x, false, true),
                                 broadcast_to(g,
                                              given(DType::Float64, {5, 5},
                                                    [] {
                                                      std::vector<double> v(25);
                                                      for (size_t i = 0; i < 25; i += 6) v[i] = 1;
                                                      return v;
                                                    }()),
                                              Dims{3, 5, 5}));
  const NodeId factor = node(Op::CholeskyFactor, {positive}, {false});
  expect_same(factor, 1e-11);
  expect_same(
      node(Op::DampedCholeskyFactor, {positive, input({3, 1, 1}, DType::Float64, 0, 1)}, {false}),
      1e-11);
  expect_same(node(Op::CholeskySolve, {factor, input({3, 5, 2})}, {false, false}), 1e-10);
  expect_same(node(Op::CholeskyInverse, {factor}, {false}), 1e-10);
}

/// Vectors have no sign: what they multiply together to has.
TEST_F(Interpreted, VectorsOfFactorisations) {
  for (auto [m, n] : {std::pair{5, 5}, std::pair{6, 4}, std::pair{4, 6}}) {
    const NodeId x = input({m, n});
    const int64_t k = std::min(m, n);
    const NodeId s = node(Op::SingularFactors, {x}, {false, false, true});
    auto part = [&](NodeId of, int64_t begin, Dims dims) {
      const int64_t size = element_count(dims);
      return reshape(g, slice(g, of, {{begin}, {size}, {1}}), dims);
    };
    const NodeId u = part(s, k, {m, k}), v = part(s, k + m * k, {k, n});
    const NodeId values = broadcast_to(g, part(s, 0, {k}), Dims{m, k});
    const NodeId whole = matmul(g, binary(g, Op::Mul, u, values), v, false, false);
    expect_same(whole, 1e-11);
    expect_close(interpret(g, whole, leaves), leaves[x], 1e-12);
    if (m != n) continue;
    const NodeId symmetric = binary(g, Op::Add, x, transpose(g, x, Dims{1, 0}));
    const NodeId e = node(Op::EigenFactors, {symmetric}, {false});
    const NodeId vectors = slice(g, e, {{1, 0}, {n, n}, {1, 1}});
    const NodeId scaled = binary(
        g, Op::Mul, vectors, broadcast_to(g, slice(g, e, {{0, 0}, {1, n}, {1, 1}}), Dims{n, n}));
    const NodeId again = matmul(g, scaled, vectors, false, true);
    expect_same(again, 1e-11);
    expect_close(interpret(g, again, leaves), interpret(g, symmetric, leaves), 1e-12);
  }
}

TEST_F(Interpreted, Loops) {
  for (bool reverse : {false, true}) {
    Graph inner;
    const NodeId state = leaf(inner, DType::Float64, Dims{4}),
                 x = leaf(inner, DType::Float64, Dims{4}), w = leaf(inner, DType::Float64, Dims{4});
    const NodeId sum = binary(inner, Op::Add, binary(inner, Op::Mul, state, w), x);
    const NodeId next[] = {unary(inner, Op::Sin, sum)}, kept[] = {sum}, in[] = {state, x, w};
    std::vector<NodeId> number;
    const Dims body = write_body(inner, in, next, kept, number);
    const NodeId given[] = {input({4}), input({5, 4}), input({4})};
    auto result = [&](int64_t of, bool last) {
      return loop_result(g, given, {5, 1, 1, of, last, reverse, false, body});
    };
    expect_same(result(0, true));
    expect_same(result(number[sum], false));
    expect_same(result(0, false));
  }
}

}  // namespace
}  // namespace gradcell
