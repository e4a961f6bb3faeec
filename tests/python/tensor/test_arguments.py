"""Calls whose arguments do not fit say so with this file's line; calls that MindSpore or NumPy take
are taken: primitives by keyword, axes as tensors and tuples, tuples as indices."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradcell as ms
from gradcell import Tensor, nn, ops

HERE = re.escape(Path(__file__).name) + r":\d+"
X = Tensor([1.0, 2.0])
TABLE = Tensor(np.arange(12).reshape(3, 4))


def call(name: str, *args: Any, **kwargs: Any) -> Any:
    return getattr(X, name)(*args, **kwargs)


# Methods of Tensor --------------------------------------------------------------------------------

METHODS = sorted(
    n for n in dir(Tensor) if not n.startswith("_") and callable(getattr(Tensor, n, None))
)  # fmt: skip
#: They take any number of positional arguments.
VARIADIC = set(
    """broadcast_to expand flip permute repeat reshape squeeze transpose view new_zeros new_ones new_empty
    sum_to_size to init_data gather from_numpy index_add index_add_ itemset
    scatter_add select""".split()
)
#: MindSpore's further options have no effect.
ACCEPTED = {"init_data", "to"}


@pytest.mark.parametrize("name", METHODS)
def test_a_method_called_with_too_many_arguments(name: str) -> None:
    if name in ACCEPTED:
        call(name, no_such_argument=1)
        return
    if name in VARIADIC:
        pytest.raises((TypeError, ValueError, RuntimeError), call, name, no_such_argument=1)
        return
    with pytest.raises(TypeError, match=rf"Tensor\.\w+\(.*too many positional.*{HERE}"):
        call(name, *[X] * 30)
    with pytest.raises(TypeError, match=rf"Tensor\.\w+\(.*{HERE}"):
        call(name, no_such_argument=1)


@pytest.mark.parametrize("name", ["add", "mul", "equal", "where", "matmul", "masked_fill", "pow"])
def test_a_method_called_with_too_few_arguments(name: str) -> None:
    with pytest.raises(TypeError, match=rf"Tensor\.{name}\(.*missing a required.*{HERE}"):
        call(name)


def test_errors_of_a_method_itself_stay_as_they_are() -> None:
    with pytest.raises(TypeError, match="Add: expected a Tensor or a number, got str"):
        X.add("a")
    assert X.mean(dim=0).item() == X.mean(axis=0).item() == 1.5
    with pytest.raises(TypeError, match="two names"):
        X.mean(dim=0, axis=0)


def test_add_and_sub_take_alpha() -> None:
    assert X.add(X, alpha=3).tolist() == [4.0, 8.0]
    assert X.add(other=2.0, alpha=0.5).tolist() == [2.0, 3.0]
    assert X.sub(2.0, alpha=3).tolist() == [-5.0, -4.0]
    assert Tensor([1, 2], ms.int32).add(2, alpha=3).tolist() == [7, 8]
    assert ms.grad(lambda x: x.add(x, alpha=Tensor(2.0)))(X).tolist() == [3.0, 3.0]
    with pytest.raises(TypeError, match=rf"alpha is a float.*{HERE}"):
        Tensor([1, 2], ms.int32).add(2, alpha=0.5)


# Errors that were silent or unclear ---------------------------------------------------------------


class NoInit(nn.Cell):
    def __init__(self) -> None:
        self.a = 3

    def construct(self, x: Any) -> Any:
        return x


REFUSED: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: ops.squeeze(X, {}), TypeError, "Squeeze.*axis.*dict"),
    (lambda: X.squeeze({}), TypeError, "Squeeze.*dict"),
    (lambda: ops.reshape(X, {2}), TypeError, "Reshape.*set"),
    (lambda: ops.sum(X, {0}), TypeError, "axis.*set"),
    (lambda: ms.vjp(3, X), TypeError, "vjp.*must be a function.*int"),
    (lambda: ms.jvp(3, X, X), TypeError, "jvp.*must be a function.*int"),
    (lambda: ms.vjp(lambda x: 3.0, X), TypeError, "returned no tensor"),
    (lambda: ms.jvp(lambda x: 3.0, X, X), TypeError, "returned no tensor"),
    (lambda: ms.grad(lambda x: 3.0)(X), TypeError, "returned no tensor"),
    (lambda: ms.grad(lambda x: float(x.sum()))(X), TypeError, "returned no tensor"),
    (lambda: ms.value_and_grad(lambda x: 3)(X), TypeError, "returned no tensor"),
    (lambda: ops.GradOperation()(lambda x: 3.0)(X), TypeError, "returned no tensor"),
    (lambda: ms.set_context(max_threads=2**40), ValueError, "max_threads.*1 to 1024.*1099511627776"),
    (lambda: ms.set_context(max_threads=True), ValueError, "max_threads"),
    (lambda: ops.batch_dot(X, X, 7), ValueError, "batch_dot.*7"),
    (lambda: ops.tensor_dot(X, X, -9), ValueError, "tensor_dot.*0 to .*-9"),
    (lambda: ops.tensor_dot(X, X, 9), ValueError, "tensor_dot.*0 to .*9"),
    (lambda: ms.from_dlpack(3), TypeError, "from_dlpack.*int"),
    (lambda: nn.Dense(2**40, 2**40), ValueError, r"\[1099511627776, 1099511627776\]"),
    (lambda: nn.Dense(2**70, 2), ValueError, "more elements than can be addressed"),
    (lambda: NoInit()(X), AttributeError, r"NoInit: call super\(\).__init__\(\)"),
    (lambda: NoInit().trainable_params(), AttributeError, r"NoInit: call super\(\).__init__\(\)"),
    (lambda: repr(NoInit()), AttributeError, r"NoInit: call super\(\).__init__\(\)"),
    (lambda: NoInit().set_train(), AttributeError, r"NoInit: call super\(\).__init__\(\)"),
    (lambda: ops.gather_d(TABLE, 1, Tensor([[0], [5], [1]])), IndexError, "index 5 .* size 4"),
    (lambda: ops.gather_elements(TABLE, 0, Tensor([[0, -4]])), IndexError, "index -4 .* size 3"),
    (lambda: ops.gather_nd(TABLE, Tensor([[2, 3], [1, 7]])), IndexError, "index 7 .* size 4"),
    (lambda: ops.gather(TABLE, Tensor([[0], [9], [0]]), 1, 1), IndexError, "index 9 .* size 4"),
    (lambda: ops.Add()(X), TypeError, r"ops.Add.*missing a required argument"),
    (lambda: ops.Add()(X, X, X), TypeError, r"ops.Add.*too many positional"),
    (lambda: ops.Add()(a=X, b=X), TypeError, "ops.Add: there is no input 'a'.*input, other"),
    (lambda: ops.MatMul()(TABLE), TypeError, "ops.MatMul.*missing"),
    (lambda: ops.Softmax(axis=()), ValueError, "Softmax.*empty"),
    (lambda: ops.Softmax(axis=1.5), TypeError, "Softmax.*float"),
]  # fmt: skip


@pytest.mark.parametrize(("function", "kind", "message"), REFUSED)
def test_refused_with_the_users_line(
    function: Callable[[], Any], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=rf"(?s){message}.*{HERE}"):
        function()


def test_memory_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    def draw(*args: Any) -> Any:
        raise MemoryError("Unable to allocate")

    monkeypatch.setattr(ms.common.initializer.HeUniform, "draw", draw)
    with pytest.raises(MemoryError, match=rf"no memory.*\[3, 2\].*{HERE}"):
        nn.Dense(2, 3)


def test_copies_of_cells_ask_bare_instances() -> None:
    import copy
    import pickle

    net = nn.Dense(2, 2)
    for other in (copy.copy(net), copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        np.testing.assert_array_equal(other(TABLE[:, :2].float()), net(TABLE[:, :2].float()))


def test_an_attribute_that_becomes_minus_zero() -> None:
    class Sign(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.s = 0.0

        def construct(self, x: Tensor) -> Tensor:
            return x / (x * self.s)

    net, before = Sign(), ms.get_context("mode")
    ms.set_context(mode=ms.GRAPH_MODE)
    try:
        assert net(X).tolist() == [np.inf] * 2
        net.s = -0.0
        assert net(X).tolist() == [-np.inf] * 2
    finally:
        ms.set_context(mode=before)


# Files --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["{}", "{}/", "{}/no/file"])
def test_checkpoints_that_cannot_be_written(tmp_path: Path, form: str) -> None:
    with pytest.raises(OSError, match=rf"save_checkpoint.*folder.*{HERE}") as caught:
        ms.save_checkpoint(nn.Dense(2, 2), form.format(tmp_path))
    kind = FileNotFoundError if form.endswith("file") else IsADirectoryError
    assert isinstance(caught.value, kind)
    assert not list(tmp_path.parent.glob(tmp_path.name + ".*")) and not list(tmp_path.iterdir())


def test_checkpoints_that_are_no_files(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=rf"load_checkpoint.*is a folder.*{HERE}"):
        ms.load_checkpoint(str(tmp_path))
    for name in (None, 3, [str(tmp_path)]):
        for function in (ms.load_checkpoint, lambda n: ms.save_checkpoint(nn.Dense(2, 2), n)):
            with pytest.raises(TypeError, match=rf"ckpt_file_name.*{HERE}"):
                function(name)
    for function in (ms.load_checkpoint, lambda n: ms.save_checkpoint(nn.Dense(2, 2), n)):
        with pytest.raises(ValueError, match=rf"is empty.*{HERE}"):
            function("")


# What is taken ------------------------------------------------------------------------------------

#: Each primitive by MindSpore's names of its inputs, and the same by position.
BY_KEYWORD: list[tuple[Any, dict[str, Any]]] = [
    (ops.Add(), {"input": X, "other": 2.0}),
    (ops.LogicalAnd(), {"x": X > 1, "y": X > 0}),
    (ops.RealDiv(), {"x": X, "y": 2.0}),
    (ops.FloorMod(), {"x": X, "y": 2.0}),
    (ops.Pow(), {"input": X, "exponent": 2}),
    (ops.Sqrt(), {"x": X}),
    (ops.Exp(), {"input": X}),
    (ops.MatMul(), {"input": TABLE.float(), "mat2": TABLE.float().T}),
    (ops.BatchMatMul(), {"x": TABLE.float(), "y": TABLE.float().T}),
    (ops.ReduceSum(keep_dims=True), {"x": TABLE, "axis": 0}),
    (ops.ReduceAll(), {"input": TABLE > 0, "axis": 0}),
    (ops.CumSum(), {"input": TABLE, "axis": 1}),
    (ops.Reshape(), {"input": TABLE, "shape": (4, 3)}),
    (ops.Transpose(), {"input": TABLE, "dims": (1, 0)}),
    (ops.Cast(), {"input_x": X, "dtype": ms.int32}),
    (ops.Softmax(), {"input": X}),
    (ops.LogSoftmax(), {"logits": X}),
    (ops.Slice(), {"input": TABLE, "begin": (0, 1), "size": (2, 2)}),
    (ops.GatherD(), {"x": TABLE, "dim": 0, "index": Tensor([[1, 0, 1, 0]])}),
    (ops.LinSpace(), {"start": Tensor(0.0), "stop": Tensor(1.0), "num": 3}),
    (ops.Fill(), {"dtype": ms.float32, "dims": (2,), "x": 1.5}),
    (ops.OneHot(), {"indices": TABLE[0], "depth": 3, "on_value": 1.0, "off_value": 0.0}),
    (ops.SmoothL1Loss(), {"prediction": X, "target": X * 2}),
    (ops.ZerosLike(), {"x": X}),
    (ops.LayerNorm(), {"input_x": TABLE.float(), "gamma": Tensor([1.0] * 4), "beta": 0.0}),
]  # fmt: skip


@pytest.mark.parametrize(("primitive", "inputs"), BY_KEYWORD, ids=lambda v: getattr(v, "name", ""))
def test_primitives_by_keyword(primitive: Any, inputs: dict[str, Any]) -> None:
    def values(out: Any) -> Any:
        return [t.tolist() for t in out] if isinstance(out, tuple) else out.tolist()

    expected = values(primitive(*inputs.values()))
    assert values(primitive(**inputs)) == expected
    first, *rest = inputs
    assert values(primitive(inputs[first], **{k: inputs[k] for k in rest})) == expected


def test_axes_as_tensors_and_tuples() -> None:
    x = TABLE.float()
    for name in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd"):
        by_int = getattr(ops, name)()(x, 0)
        assert getattr(ops, name)()(x, Tensor(0)).tolist() == by_int.tolist()
        assert getattr(ops, name)()(x, Tensor([0])).tolist() == by_int.tolist()
    assert ops.ReduceSum()(x, Tensor([0, 1])).item() == 66
    for name in ("Softmax", "LogSoftmax"):
        expected = getattr(ops, name)(0)(x).asnumpy()
        np.testing.assert_array_equal(getattr(ops, name)(axis=(0,))(x).asnumpy(), expected)
    np.testing.assert_allclose(ops.Softmax((0, 1))(x).asnumpy().sum(), 1, rtol=1e-6)


KEYS: list[Any] = [
    ((0, 1), slice(None)),
    (Ellipsis, (0, 2)),
    ([0, 1], (0, 2)),
    ((0, 1),),
    ((0, 1), (2, 3)),
    ((True, False, True), slice(None)),
    (range(2), 1),
    (slice(1, None), (1, -1), None),
    (True, slice(None)),
]


@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_tuples_within_a_key_are_indices(key: Any) -> None:
    array = np.arange(12).reshape(3, 4)
    np.testing.assert_array_equal(TABLE[key].asnumpy(), array[key])
    x = TABLE.copy()
    x[key] = -1
    array[key] = -1
    np.testing.assert_array_equal(x.asnumpy(), array)


@pytest.mark.parametrize("key", [True, False, (True,), (True, None), (Ellipsis, False)], ids=repr)
@pytest.mark.parametrize("shape", [(), (3,)], ids=repr)
@pytest.mark.parametrize("kind", [lambda k: k, Tensor, np.array], ids=["bool", "Tensor", "ndarray"])
def test_a_single_bool_is_a_new_axis(key: Any, shape: tuple[int, ...], kind: Any) -> None:
    """As in NumPy: of size 1 for True, of size 0 for False."""

    def made(k: Any) -> Any:
        if isinstance(k, tuple):
            return tuple(made(part) for part in k)
        return kind(k) if isinstance(k, bool) else k

    array = np.full(shape, 0.5, np.float32)
    x = Tensor(array)
    assert x[made(key)].shape == array[key].shape
    np.testing.assert_array_equal(x[made(key)].asnumpy(), array[key])
    x[made(key)] = 7.0
    array[key] = 7.0
    np.testing.assert_array_equal(x.asnumpy(), array)
