"""export: every node of the graph, and networks, run by onnxruntime."""

import numpy as np
import onnx
import onnxruntime
import pytest
from op_rows import ROWS
from window_rows import POOLS, SAMPLES, SMALL, convolved, sampled, shapes

import gradcell as ms
from gradcell import Parameter, Tensor, _core, nn, ops
from gradcell.show.inspect import recorded_nodes
from gradcell.train.onnx import export, onnx_model
from gradcell.train.onnx_rules import RULES, SAME

DRAW = np.random.RandomState(0)
X = DRAW.uniform(-2, 2, (3, 4, 5)).astype(np.float32)
Y = DRAW.uniform(-2, 2, (3, 4, 5)).astype(np.float32)
P = np.abs(X) + 0.1
UNIT = X / 2.5
INTS = DRAW.randint(-9, 10, (3, 4, 5)).astype(np.int32)
ODD = np.array([np.nan, np.inf, -np.inf, 0, -1.5], np.float32)
INDEX = np.array([[2, 0], [1, 1]], np.int32)

DOUBLED = ops.InsertGradientOf(lambda g: g * 2)


class Sines(nn.Cell):
    def construct(self, x):
        return ops.sin(ops.sin(x))


SINES = Sines()
LSTM = nn.LSTM(5, 3, bidirectional=True)
CASES = [
    *[(name, lambda x, f=name: getattr(ops, f)(x), [X]) for name in
      ("neg", "abs", "sign", "square", "exp", "expm1", "sin", "cos", "tan", "atan", "sinh", "cosh",
       "tanh", "asinh", "sigmoid", "erf", "erfc", "floor", "ceil", "round", "trunc", "relu", "exp2",
       "hardsigmoid", "hardswish", "ndtr")],
    ("logit", lambda x: ops.logit(ops.abs(x)), [UNIT]),
    *[(name, lambda x, f=name: getattr(ops, f)(x), [P]) for name in
      ("sqrt", "rsqrt", "reciprocal", "log", "log1p", "log2", "log10")],
    *[(name, lambda x, f=name: getattr(ops, f)(x), [UNIT]) for name in ("asin", "acos", "atanh")],
    ("acosh", lambda x: ops.acosh(x), [P + 1]),
    ("log1p near 0", lambda x: ops.log1p(x), [X * 1e-9]),
    ("expm1 near 0", lambda x: ops.expm1(x), [X * 1e-9]),
    ("log1p far away", lambda x: ops.log1p(x), [np.array([3e38, np.inf, 1e9], np.float32)]),
    *[(name, lambda x, y, f=name: getattr(ops, f)(x, y), [X, Y]) for name in
      ("add", "sub", "mul", "div", "maximum", "minimum", "floor_mod", "fmod", "floor_div")],
    ("mod of ints", lambda x, y: ops.floor_mod(x, y), [INTS, np.where(INTS[::-1] == 0, 3, INTS[::-1])]),
    ("fmod of ints", lambda x, y: ops.fmod(x, y), [INTS, np.where(INTS[::-1] == 0, 3, INTS[::-1])]),
    ("floor of ints", lambda x, y: ops.floor_div(x, y), [INTS, np.where(INTS[::-1] == 0, 3, INTS[::-1])]),
    ("pow", lambda x, y: ops.pow(x, y), [P, Y]),
    ("hypot", lambda x, y: ops.hypot(x, y), [X, Y]),
    *[(name, lambda x, y, f=name: getattr(ops, f)(x > 0, y > 0), [X, Y]) for name in
      ("logical_and", "logical_or", "logical_xor")],
    ("logical_not", lambda x: ops.logical_not(x > 0), [X]),
    *[(name, lambda x, y, f=name: getattr(ops, f)(x, y), [INTS, INTS[::-1].copy()]) for name in
      ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")],
    *[(f"{name} of {x.dtype}", lambda x, f=name: getattr(ops, f)(x), [x])
      for name in ("isnan", "isinf", "isfinite") for x in (ODD, INTS, INTS > 0)],
    ("where", lambda x, y: ops.where(x > y, x, y * 2), [X, Y]),
    ("where of numbers", lambda x: ops.where(x > 0, 1.0, 0.0), [X]),
    ("broadcast", lambda x: x + x.sum(1, keepdims=True), [X]),
    ("a whole constant", lambda x: ops.cat([x, ops.ones_like(x)], 1), [X]),
    ("constants only", lambda x: (x * 0).sum() + ops.ones((2, 3), ms.float32).sum() + x, [X]),
    ("iota", lambda x: x + ops.arange(5).astype(ms.float32), [X]),
    ("stop", lambda x: ops.stop_gradient(x) * x, [X]),
    ("cast", lambda x: (x * 3).astype(ms.int32), [X]),
    ("reshape", lambda x: x.reshape(5, 12) * 1, [X]),
    ("transpose", lambda x: x.transpose(2, 0, 1), [X]),
    ("slice", lambda x: x[1:, ::2, 1:4:2], [X]),
    ("backwards", lambda x: x[:, ::-1, 3::-2], [X]),
    ("pad", lambda x: ops.pad(x, (1, 2, 0, 3)), [X]),
    ("concat", lambda x, y: ops.cat([x, y * 2], 1), [X, Y]),
    ("matmul", lambda x, y: ops.matmul(x, y.transpose(0, 2, 1)), [X, Y]),
    ("matmul t", lambda x, y: ops.matmul(x.transpose(0, 2, 1), y), [X, Y]),
    ("sum", lambda x: x.sum((0, 2)), [X]),
    ("numbers", lambda x: Tensor(2.5) * x.sum(), [X]),
    ("max", lambda x: ops.amax(x, 1), [X]),
    ("prod", lambda x: ops.prod(x, 1), [X]),
    ("min", lambda x: x.min(), [X]),
    ("argmax", lambda x: x.argmax(1), [X]),
    ("argmin", lambda x: x.argmin(0), [X]),
    ("cumsum", lambda x: ops.cumsum(x, 1), [X]),
    ("cumsum's gradient", lambda x: ms.grad(lambda y: (ops.cumsum(y, 1) ** 2).sum())(x), [X]),
    ("gather", lambda x, i: ops.gather(x, i, 1), [X, INDEX]),
    ("labels", lambda x, i: ops.cross_entropy(x[:2, :3, 0], i.reshape(-1)[:2]), [X, INDEX]),
    ("alias", lambda x: ms.grad(lambda y: (y**3).sum())(x), [X]),
    ("attention", lambda q, k: ops.flash_attention_score(q, k, k, 2, input_layout="BSH"),
     [DRAW.standard_normal((2, n, 8)).astype(np.float32) for n in (3, 5)]),
    ("steps of a loop", lambda x: LSTM(x)[0], [X]),
    ("a call with a derivative of its own", lambda x: DOUBLED(x) + 1, [X]),
    ("computed again", lambda x: ms.grad(lambda y: ms.recompute(SINES, y).sum())(x), [X]),
    ("slice's gradient", lambda x: ms.grad(lambda y: (y[1:, ::2] ** 2).sum())(x), [X]),
    ("slice's gradient at once", lambda x: ms.grad(lambda y: (y[1:, 1:3] ** 2).sum())(x), [X]),
    *[(f"convolution, {part} {label}", lambda a, b, s=s, part=part: convolved(s, part, a, b),
       [DRAW.standard_normal(shape).astype(np.float32) for shape in shapes(s, part)])
      for part in ("output", "input", "weight") for label, s in SMALL.items() if 0 not in s.x],
    *[(f"windows {label}", lambda x, how=how: _core.ops.window_max(x, *map(list, how)),
       [DRAW.standard_normal(shape).astype(np.float32)])
      for label, (shape, *how) in POOLS.items() if 0 not in shape],
    *[(f"windows' places {label}", lambda x, how=how: _core.ops.window_argmax(x, *map(list, how)),
       [DRAW.standard_normal(shape).astype(np.float32)])
      for label, (shape, *how) in POOLS.items() if 0 not in shape],
    *[(f"sample {part}", lambda a, b, part=part: sampled(part, a, b),
       [DRAW.standard_normal(shape).astype(np.float32) for shape in shapes])
      for part, (shapes, _) in SAMPLES.items()],
    *[(f"recurrence {axis} {exclusive} {reverse}",
       lambda x, how=(axis, exclusive, reverse): _core.ops.linear_recurrence(x, x * 2.0, *how), [X])
      for axis in (0, 1) for exclusive in (False, True) for reverse in (False, True)],
    ("recurrence of numbers", lambda x: ops.linear_recurrence(0.5, x), [X[0]]),
    ("pooling's gradient", lambda x: ms.grad(lambda y: (ops.max_pool2d(y, 2, 1) ** 2).sum())(x),
     [DRAW.standard_normal((2, 3, 5, 5)).astype(np.float32)]),
    ("pooling's tangent", lambda x: ms.jvp(lambda y: ops.max_pool2d(y, 3, 2), x, x * 2)[1],
     [DRAW.standard_normal((2, 3, 5, 5)).astype(np.float32)]),
    ("gather's gradient", lambda x, i: ms.grad(lambda y: (ops.gather(y, i, 1) ** 2).sum())(x), [X, INDEX]),
]  # fmt: skip


class Wrapped(nn.Cell):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def construct(self, *inputs):
        return self.function(*inputs)


def run(model, *inputs):
    session = onnxruntime.InferenceSession(model.SerializeToString())
    given = {i.name: x for i, x in zip(session.get_inputs(), inputs, strict=True)}
    return session.run(None, given)


@pytest.mark.parametrize(("label", "function", "inputs"), CASES, ids=[c[0] for c in CASES])
def test_every_node(label, function, inputs):
    net = Wrapped(function)
    (made,) = run(onnx_model(net, *map(Tensor, inputs)), *inputs)
    expected = net(*map(Tensor, inputs)).asnumpy()
    assert (made.shape, made.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_allclose(made, expected, rtol=3e-6, atol=1e-6 if "0" not in label else 0)


def test_every_op_is_written_and_run_here():
    written = {*SAME, *RULES}
    structured = [row for row in _core.op_table() if row["kind"] == "structured"]
    reasons = {row["name"]: row["not_in_onnx"] for row in structured}
    assert {name for name, reason in reasons.items() if reason is None} == written & {*reasons}
    seen = set()
    for _, function, inputs in CASES:
        nodes, *_ = recorded_nodes(function, tuple(map(Tensor, inputs)))
        seen |= {n["op"] for n in nodes}
    assert seen >= written, written - seen


REFUSED = [
    *[(row.name, lambda *x, f=row.function: getattr(ops, f)(*x), [P] * row.arity)
      for row in ROWS if row.name not in {*SAME, *RULES}],
    ("CumProd", lambda x: ops.cumprod(x, 1), [X]),
    ("RandomUniform", lambda x: ops.dropout(x, 0.5), [X]),
]  # fmt: skip


@pytest.mark.parametrize(("op", "function", "inputs"), REFUSED, ids=[r[0] for r in REFUSED])
def test_what_onnx_lacks_is_refused_by_name(op, function, inputs):
    with pytest.raises(NotImplementedError, match=rf"nothing for {op}, made at .*test_onnx.py"):
        onnx_model(Wrapped(function), *map(Tensor, inputs))


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, stride=2, has_bias=True)
        self.norm = nn.BatchNorm2d(4)
        self.pool = nn.MaxPool2d(2, 2)
        self.dense = nn.Dense(16, 5)
        self.layer_norm = nn.LayerNorm((5,))
        self.dropout = nn.Dropout(p=0.5)
        self.table = nn.Embedding(7, 5)

    def construct(self, image, token):
        h = self.pool(ops.relu(self.norm(self.conv(image))))
        h = self.dropout(self.dense(h.reshape(h.shape[0], -1)))
        return ops.softmax(self.layer_norm(h)), self.table(token)


@pytest.fixture
def image():
    return Tensor(DRAW.randn(2, 3, 8, 8).astype(np.float32)), Tensor(np.array([[1, 2]], np.int32))


def test_a_network(tmp_path, image):
    ms.set_seed(1)
    net = Net()
    net.set_train(True)
    path = tmp_path / "net"
    export(net, *image, file_name=str(path), file_format="ONNX")
    assert net.training
    assert net.dropout.training
    assert [p.name for p in tmp_path.iterdir()] == ["net.onnx"]
    model = onnx.load(str(path) + ".onnx")
    assert [i.name for i in model.graph.input] == ["image", "token"]
    assert [o.name for o in model.graph.output] == ["output_0", "output_1"]
    held = {i.name: onnx.numpy_helper.to_array(i) for i in model.graph.initializer}
    for parameter in net.get_parameters():
        np.testing.assert_array_equal(held[parameter.name], parameter.asnumpy())
    net.set_train(False)
    for made, expected in zip(run(model, *(x.asnumpy() for x in image)), net(*image), strict=True):
        np.testing.assert_allclose(made, expected.asnumpy(), rtol=1e-5, atol=1e-6)


def test_a_half_network():
    net = nn.Dense(4, 3).to_float(ms.float16)
    net.set_train(False)
    x = DRAW.randn(2, 4).astype(np.float32)
    (made,) = run(onnx_model(net, Tensor(x)), x)
    np.testing.assert_allclose(made, net(Tensor(x)).asnumpy(), rtol=2e-3, atol=1e-3)


def test_bfloat16_parameters_keep_their_bits():
    net = Wrapped(lambda x: x)
    net.w = Parameter(Tensor(X[0], ms.bfloat16), name="w")
    net.function = lambda x: x + net.w.astype(ms.float32)
    model = onnx_model(net, Tensor(X[0]))
    held = {i.name: i for i in model.graph.initializer}
    assert held["w"].data_type == onnx.TensorProto.BFLOAT16
    assert held["w"].raw_data == net.w.value()._numpy().tobytes()


def test_an_output_that_is_an_input_or_a_constant():
    net = Wrapped(lambda x: (x, ops.ones((2, 2), ms.float32), x * 2))
    made = run(onnx_model(net, Tensor(X)), X)
    np.testing.assert_array_equal(made[0], X)
    np.testing.assert_array_equal(made[1], np.ones((2, 2)))


def test_export_refuses_what_it_cannot_write(tmp_path, image, monkeypatch):
    net = Net()
    with pytest.raises(TypeError, match="expected a Cell"):
        export(3, file_name="a", file_format="ONNX")
    with pytest.raises(ValueError, match="must be 'ONNX', got 'MINDIR'"):
        export(net, *image, file_name=str(tmp_path / "a"), file_format="MINDIR")
    with pytest.raises(TypeError, match=r"inputs\[1\].*Tensor"):
        export(net, image[0], 3, file_name=str(tmp_path / "a"))
    for unknown in ([None, 3, 8, 8], None):
        declared = Tensor(shape=unknown, dtype=ms.float32)
        with pytest.raises(
            ValueError, match=r"inputs\[0\] is declared with shape (\[None, 3|None)"
        ):
            export(net, declared, file_name=str(tmp_path / "a"))
    with pytest.raises(TypeError, match="'file_name' must be a string"):
        export(net, *image, file_name=3)
    net.set_train(True)
    with pytest.raises(NotImplementedError, match=r"RandomUniform.*training mode"):
        onnx_model(net, *image)
    assert list(tmp_path.iterdir()) == []
    import sys

    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"pip install gradcell\[onnx\]"):
        export(net, *image, file_name=str(tmp_path / "a"))
