"""Bad input: an exception of the right type that says what, where and why; nothing lost, no crash.

MindSpore's exception types, and messages that name the op, the shapes and this file.
"""

from __future__ import annotations

import re
import subprocess
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import forked_scripts
import numpy as np
import pytest

import gradcell as ms
from gradcell import Parameter, Tensor, nn, ops

HERE = Path(__file__).name


def ones(*shape: int, dtype: Any = np.float32) -> Tensor:
    return Tensor(np.ones(shape, dtype=dtype))


def shape_pattern(shape: tuple[int, ...]) -> str:
    """(2, 3) as it may be written: in round or square brackets, with or without blanks."""
    return r"[\[({]\s*" + r"\s*,\s*".join(map(str, shape)) + r"\s*,?\s*[\])}]"


def assert_message(error: BaseException, *patterns: str, here: bool = True) -> None:
    text = str(error)
    for pattern in patterns:
        assert re.search(pattern, text), f"{pattern!r} is not in: {text}"
    if here:
        assert re.search(re.escape(HERE) + r".{0,12}\d+", text), f"no {HERE} and line in: {text}"


ShapeError = tuple[str, Callable[[], Any], tuple[tuple[int, ...], ...]]

WRONG_SHAPES: list[ShapeError] = [
    ("Add", lambda: ones(2, 3) + ones(2), ((2, 3), (2,))),
    ("Mul", lambda: ops.mul(ones(2, 3), ones(4, 3)), ((2, 3), (4, 3))),
    ("Sub", lambda: ops.Sub()(ones(3), ones(2, 2)), ((3,), (2, 2))),
    ("Less", lambda: ones(2, 3) < ones(5), ((2, 3), (5,))),
    ("Maximum", lambda: ops.maximum(ones(2, 0), ones(2, 3)), ((2, 0), (2, 3))),
    ("LogicalAnd", lambda: ops.logical_and(ones(2) > 0, ones(3) > 0), ((2,), (3,))),
    ("MatMul", lambda: ops.MatMul()(ones(2, 3), ones(2, 3)), ((2, 3), (2, 3))),
    ("MatMul", lambda: ops.matmul(ones(2, 3), ones(4, 5)), ((2, 3), (4, 5))),
    ("MatMul", lambda: ones(2, 3) @ ones(2), ((2, 3), (2,))),
    ("MatMul", lambda: ops.matmul(ones(2, 2, 3), ones(3, 3, 2)), ((2, 2, 3), (3, 3, 2))),
    ("MatMul", lambda: ops.MatMul(True)(ones(2, 3), ones(3, 2)), ((2, 3), (3, 2))),
    ("MatMul", lambda: ops.BatchMatMul()(ones(2, 2, 3), ones(2, 2, 3)), ((2, 2, 3),)),
    ("Reshape", lambda: ops.reshape(ones(2, 3), (4, 2)), ((2, 3), (4, 2))),
    ("Reshape", lambda: ones(2, 3).reshape(-1, 4), ((2, 3),)),
    ("BroadcastTo", lambda: ops.broadcast_to(ones(2, 3), (2, 4)), ((2, 3), (2, 4))),
    ("BroadcastTo", lambda: ops.broadcast_to(ones(2, 3), (3,)), ((2, 3), (3,))),
    ("Concat", lambda: ops.concat((ones(2, 3), ones(2, 4)), 0), ((2, 3), (2, 4))),
    ("Concat", lambda: ops.concat((ones(2, 3), ones(6)), 0), ((2, 3), (6,))),
    ("Stack", lambda: ops.stack((ones(2, 3), ones(3, 2))), ((2, 3), (3, 2))),
    ("Select", lambda: ops.where(ones(2) > 0, ones(3), ones(4)), ((3,), (4,))),
]


@pytest.mark.parametrize("row", WRONG_SHAPES, ids=lambda row: f"{row[0]}-{row[2]}")
def test_shapes_that_do_not_fit(row: ShapeError) -> None:
    op, call, shapes = row
    with pytest.raises(ValueError) as caught:
        call()
    assert_message(caught.value, f"(?i){op}", *(shape_pattern(shape) for shape in shapes))


def test_wrong_shapes_inside_a_derivative_name_the_line() -> None:
    def fn(x: Any) -> Any:
        y = ops.sin(x)
        return y * ones(7)  # this line

    with pytest.raises(ValueError) as caught:
        ms.grad(fn)(ones(2, 3))
    line = fn.__code__.co_firstlineno + 2
    assert_message(caught.value, "Mul", shape_pattern((2, 3)), shape_pattern((7,)), rf"\b{line}\b")


def test_wrong_shapes_inside_a_cell_name_the_line() -> None:
    class Net(nn.Cell):
        def construct(self, x: Any) -> Any:
            return ops.matmul(x, x)

    with pytest.raises(ValueError) as caught:
        Net()(ones(2, 3))
    line = Net.construct.__code__.co_firstlineno + 1
    assert_message(caught.value, "(?i)matmul", shape_pattern((2, 3)), rf"\b{line}\b")


def test_a_failed_op_leaves_the_trace_usable() -> None:
    """Caught inside the function, an error costs nothing but its own op."""

    def fn(x: Any) -> Any:
        try:
            return x + ones(7)
        except ValueError:
            return x * x

    got = ms.grad(fn)(Tensor(np.array([1.0, 2.0, 3.0])))
    np.testing.assert_array_equal(got.asnumpy(), [2.0, 4.0, 6.0])
    with pytest.raises(ZeroDivisionError):
        ms.grad(lambda x: x * (1 / 0))(ones(2))
    np.testing.assert_array_equal(ms.grad(lambda x: x * x)(ones(2)).asnumpy(), [2.0, 2.0])


AXES: list[tuple[str, Callable[[], Any], type[Exception] | tuple[type[Exception], ...]]] = [
    ("ReduceSum", lambda: ops.ReduceSum()(ones(2, 3), 2), (ValueError, IndexError)),
    ("ReduceSum", lambda: ones(2, 3).sum(axis=-3), (ValueError, IndexError)),
    ("ReduceSum", lambda: ops.ReduceSum()(ones(2, 3), (0, 0)), (ValueError, RuntimeError)),
    ("ReduceMax", lambda: ops.ReduceMax()(ones(2, 3), 5), (ValueError, IndexError)),
    ("ArgMax", lambda: ops.argmax(ones(2, 3), 4), (ValueError, IndexError)),
    ("Concat", lambda: ops.concat((ones(2), ones(2)), 1), (ValueError, IndexError)),
    ("Stack", lambda: ops.stack((ones(2), ones(2)), 3), (ValueError, IndexError)),
    ("CumSum", lambda: ops.cumsum(ones(2), 1), (ValueError, IndexError)),
    ("ExpandDims", lambda: ops.expand_dims(ones(2), 3), (ValueError, IndexError)),
    ("Transpose", lambda: ops.transpose(ones(2, 3), (0, 0)), (ValueError, RuntimeError)),
    ("Transpose", lambda: ops.transpose(ones(2, 3), (0, 2)), (ValueError, IndexError)),
    ("Transpose", lambda: ops.transpose(ones(2, 3), (0,)), ValueError),
    ("Squeeze", lambda: ops.Squeeze(3)(ones(2, 1)), (ValueError, IndexError)),
    ("Split", lambda: ops.Split(1, 2)(ones(2, 3)), ValueError),
    ("Split", lambda: ops.split(ones(2, 3), (1, 1), 1), ValueError),
    ("Reshape", lambda: ops.reshape(ones(2, 3), (-1, -1)), ValueError),
    ("Concat", lambda: ops.concat((), 0), (ValueError, TypeError, IndexError)),
    ("Gather", lambda: ops.gather(ones(2, 3), Tensor([0], ms.int32), 4), (ValueError, IndexError)),
]


@pytest.mark.parametrize("row", AXES, ids=lambda row: row[0])
def test_axes_and_sizes(row: Any) -> None:
    op, call, types = row
    with pytest.raises(types) as caught:
        call()
    assert_message(caught.value, f"(?i){op}")


WRONG_TYPES: list[tuple[str, Callable[[], Any]]] = [
    ("sin of a float", lambda: ops.sin(3.0)),
    ("sin of a string", lambda: ops.sin("a")),
    ("sin of None", lambda: ops.sin(None)),
    ("sin of a list", lambda: ops.sin([1.0])),
    ("no argument", lambda: ops.sin()),
    ("two arguments", lambda: ops.sin(ones(2), ones(2))),
    ("object of a string", lambda: ops.Sin()("a")),
    ("add of a string", lambda: ones(2) + "a"),
    ("add of None", lambda: ones(2) + None),
    ("reflected add of None", lambda: None + ones(2)),
    ("sub of a dict", lambda: ones(2) - {}),
    ("matmul of a number", lambda: ones(2, 2) @ 3),
    ("bits of floats", lambda: ones(2) & ones(2)),
    ("axis a string", lambda: ops.ReduceSum()(ones(2), "a")),
    ("axis a float", lambda: ops.ReduceSum()(ones(2), 0.5)),
    ("shape a string", lambda: ops.reshape(ones(2), "ab")),
    ("shape of floats", lambda: ops.reshape(ones(2), (2.0,))),
    ("concat of one tensor", lambda: ops.concat(ones(2), 0)),
    ("concat of numbers", lambda: ops.concat((1.0, 2.0), 0)),
    ("gather with float indices", lambda: ops.gather(ones(3), ones(2), 0)),
    ("select by floats", lambda: ops.select(ones(2), ones(2), ones(2))),
    ("negative of bools", lambda: -(ones(2) > 0)),
    ("Tensor of None", lambda: Tensor(None)),
    ("Tensor of a string", lambda: Tensor("a")),
    ("Tensor of a dict", lambda: Tensor({})),
    ("Tensor of a ragged list", lambda: Tensor([[1.0, 2.0], [3.0]])),
    ("Tensor of strings", lambda: Tensor(np.array(["a", "b"]))),
    ("Tensor of objects", lambda: Tensor(np.array([None, 1], dtype=object))),
    ("dtype a string", lambda: Tensor([1.0], "float31")),
    ("astype a number", lambda: ones(2).astype(3)),
    ("cast to no dtype", lambda: ops.cast(ones(2), "no such dtype")),
    ("len of a scalar", lambda: len(Tensor(1.0))),
    ("index a scalar", lambda: Tensor(1.0)[0]),
]


@pytest.mark.parametrize("row", WRONG_TYPES, ids=lambda row: row[0])
def test_wrong_types(row: tuple[str, Callable[[], Any]]) -> None:
    with pytest.raises(TypeError) as caught:
        row[1]()
    assert str(caught.value).strip()


def test_wrong_dtypes_name_the_op_and_both() -> None:
    with pytest.raises(TypeError) as caught:
        ops.conv2d(ones(1, 1, 3, 3), ones(1, 1, 2, 2, dtype=np.float64))
    assert_message(caught.value, "(?i)conv2d", "(?i)float32", "(?i)float64")


def test_truth_and_number_of_many() -> None:
    for convert in (bool, float, int):
        with pytest.raises(ValueError, match=r"(?i)one element") as caught:
            convert(ones(2))
        assert_message(caught.value, "2")
    with pytest.raises(ValueError, match="one element"):
        ones(2, 3).item()


INDICES: list[tuple[str, Callable[[], Any]]] = [
    ("int", lambda: ones(2, 3)[2]),
    ("negative int", lambda: ones(2, 3)[-3]),
    ("second dimension", lambda: ones(2, 3)[0, 3]),
    ("too many", lambda: ones(2, 3)[0, 0, 0]),
    ("two ellipses", lambda: ones(2, 3)[..., 0, ...]),
    ("float", lambda: ones(2, 3)[0.5]),
    ("string", lambda: ones(2, 3)["a"]),
    ("tensor", lambda: ones(2, 3)[Tensor(np.array([0, 2]))]),
    ("negative tensor", lambda: ones(2, 3)[Tensor(np.array([0, -3]))]),
    ("list", lambda: ones(2, 3)[[0, 5]]),
    ("mask of another length", lambda: ones(2, 3)[Tensor(np.array([True, False, True]))]),
    ("gather", lambda: ops.gather(ones(2, 3), Tensor(np.array([0, 5], np.int32)), 0)),
    ("gather negative", lambda: ops.gather(ones(2, 3), Tensor(np.array([-9], np.int32)), 1)),
    ("tensors that do not broadcast",
     lambda: ones(2, 3)[Tensor(np.array([0, 1])), Tensor(np.array([0, 1, 2]))]),
    ("setitem", lambda: ones(2, 3).__setitem__(4, 1.0)),
]  # fmt: skip


@pytest.mark.parametrize("row", INDICES, ids=lambda row: row[0])
def test_index_out_of_range(row: tuple[str, Callable[[], Any]]) -> None:
    with pytest.raises(IndexError) as caught:
        row[1]().asnumpy()
    assert_message(caught.value)


def test_index_out_of_range_says_the_bounds() -> None:
    with pytest.raises(IndexError, match=r"too many indices for a tensor of 2 dimensions: 3"):
        _ = ones(2, 3)[0, 0, 0]
    with pytest.raises(IndexError, match=r"indices of shapes \[2\], \[3\] do not broadcast"):
        _ = ones(2, 3)[[0, 1], [0, 1, 2]]
    with pytest.raises(IndexError, match=r"index 5 is out of bounds for dimension with size 2"):
        _ = ones(2, 3)[5]


def test_zero_slice_step() -> None:
    with pytest.raises(ValueError, match=r"(?i)step") as caught:
        _ = ones(4)[::0]
    assert_message(caught.value)


def square(x: Any) -> Any:
    return (x * x).sum()


def test_gather_out_of_range_inside_a_derivative() -> None:
    """Found when the plan runs: an error, not a wild read."""
    indices = Tensor(np.array([0, 1 << 30], np.int32))
    with pytest.raises(IndexError, match="1073741824 is out of range"):
        ms.grad(lambda x: ops.gather(x, indices, 0).sum())(ones(4)).asnumpy()


@pytest.mark.parametrize("position", [2, 7, (0, 5)], ids=str)
def test_grad_position_out_of_range(position: Any) -> None:
    with pytest.raises(IndexError, match="is out of range: "):
        ms.grad(lambda x, y: x * y, position)(ones(2), ones(2))


@pytest.mark.parametrize(
    ("position", "types", "message"),
    [
        ("a", TypeError, "must be int or tuple"),
        (1.0, TypeError, "must be int or tuple"),
        ([0], TypeError, "must be int or tuple"),
        ((0, "a"), TypeError, "must be int"),
        ((0.5,), TypeError, "must be int"),
        (-1, ValueError, ">= 0"),
        ((0, -2), ValueError, ">= 0"),
        ((0, 0), ValueError, "duplicate"),
        ((), (RuntimeError, ValueError), "empty"),
    ],
    ids=str,
)
@pytest.mark.parametrize("transform", ["grad", "value_and_grad"])
def test_grad_position_of_the_wrong_type(
    transform: str, position: Any, types: Any, message: str
) -> None:
    with pytest.raises(types, match=message):
        getattr(ms, transform)(square, position)(ones(2))


@pytest.mark.parametrize("transform", ["grad", "value_and_grad"])
def test_neither_position_nor_weights(transform: str) -> None:
    text = re.escape("`grad_position` and `weight` can not be None at the same time.")
    with pytest.raises(ValueError, match=text):
        getattr(ms, transform)(square, None, None)(ones(2))


@pytest.mark.parametrize("weights", ["w", 3, [1.0], ["w"], {"w": 1}], ids=str)
def test_weights_that_are_no_parameters(weights: Any) -> None:
    with pytest.raises(TypeError):
        ms.grad(square, None, weights)(ones(2))


def test_weights_of_grad_operation() -> None:
    with pytest.raises(TypeError, match="weights"):
        ops.GradOperation(get_by_list=True)(square, "w")(ones(2))
    with pytest.raises(TypeError, match="get_all"):
        ops.GradOperation(get_all="yes")


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint8, np.bool_])
def test_differentiating_an_integer(dtype: Any) -> None:
    x = Tensor(np.ones(3, dtype=dtype))
    with pytest.warns(RuntimeWarning, match=f"with respect to a tensor of {x.dtype} is rounded"):
        assert ms.grad(lambda x: x * 2.5)(x).dtype == x.dtype
    with pytest.raises(TypeError, match=f"argument 0 of dtype {x.dtype}"):
        ms.hvp(lambda x: x * 2.5, x, x)
    # As an input that is not differentiated it is welcome.
    got = ms.grad(lambda y, x: (y * x).sum())(ones(3), x)
    np.testing.assert_array_equal(got.asnumpy(), [1.0, 1.0, 1.0])


@pytest.mark.parametrize("output", [None, "text", object(), {1, 2}], ids=["None", "str", "object",
                                                                       "set"])  # fmt: skip
def test_an_output_that_is_no_tensor(output: Any) -> None:
    with pytest.raises(TypeError, match="returned no tensor"):
        ms.grad(lambda x: output)(ones(2))


def test_fn_that_is_not_callable() -> None:
    with pytest.raises(TypeError, match="must be a function"):
        ms.grad(3)(ones(2))
    with pytest.raises(TypeError, match="has_aux"):
        ms.grad(square, has_aux="yes")(ones(2))
    with pytest.raises(ValueError, match="has_aux"):
        ms.grad(square, has_aux=True)(ones(2))


def test_sens_of_the_wrong_shape() -> None:
    gradient = ops.GradOperation(sens_param=True)(lambda x: x * x)
    with pytest.raises(ValueError) as caught:
        gradient(ones(2), ones(3))
    assert_message(caught.value, shape_pattern((2,)), shape_pattern((3,)))
    with pytest.raises(TypeError, match=r"(?i)float32.*float16"):
        gradient(ones(2), ones(2, dtype=np.float16))
    two = ops.GradOperation(sens_param=True)(lambda x: (x * x, x + x))
    with pytest.raises(ValueError, match="sens") as caught:
        two(ones(2), (ones(2),))
    assert_message(caught.value, "2", "1")


def test_sens_missing() -> None:
    gradient = ops.GradOperation(sens_param=True)(lambda x, y: x * y)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'y'"):
        gradient(ones(2), ones(2))
    with pytest.raises(TypeError, match="last argument is the sens") as caught:
        ops.GradOperation(sens_param=True)(lambda x: x * x)(ones(2))
    assert_message(caught.value)


def test_missing_arguments() -> None:
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'y'"):
        ms.grad(lambda x, y: x * y)(ones(2))


def test_get_grad_of_what_is_not_there() -> None:
    grads = ms.grad(square, 0, return_ids=True)(ones(2))
    with pytest.raises(RuntimeError, match="Can not find"):
        ops.get_grad(grads, 5)
    with pytest.raises(TypeError):
        ops.get_grad(grads, "x")


@pytest.mark.parametrize("name", ["max", "min"])
def test_empty_reductions_with_no_identity(name: str) -> None:
    for call in (
        lambda: getattr(ones(0), name)(),
        lambda: getattr(ones(2, 0), name)(axis=1),
        lambda: getattr(ops, f"Reduce{name.capitalize()}")()(ones(0, 3), 0),
        lambda: getattr(ops, f"arg{name}")(ones(0)),
    ):
        with pytest.raises(ValueError, match="empty"):
            call().asnumpy()


def test_empty_reductions_with_an_identity() -> None:
    assert float(ones(0).sum().asnumpy()) == 0.0
    assert float(ones(0).prod().asnumpy()) == 1.0
    assert np.isnan(ones(0).mean().asnumpy())
    np.testing.assert_array_equal(ones(3, 0).sum(axis=1).asnumpy(), [0, 0, 0])
    assert ms.grad(lambda x: x.sum())(ones(0, 3)).shape == (0, 3)


def run_apart(script: str) -> subprocess.CompletedProcess[str]:
    """In a process of its own, for what might crash it."""
    code = "import numpy as np, gradcell as ms\nfrom gradcell import Tensor, nn, ops\n"
    code += textwrap.dedent(script) + "\nprint('survived')\n"
    return forked_scripts.run(code)


@pytest.mark.parametrize(
    "expression",
    [
        "ops.ones((1 << 50,))",
        "ops.zeros((1 << 40, 1 << 40))",
        "ops.broadcast_to(Tensor(1.0), (1 << 45,)).asnumpy()",
        "(ops.broadcast_to(Tensor([[1.0]]), (1 << 20, 1 << 26)) * 2.0).asnumpy()",
        "ops.tile(Tensor([1.0, 2.0]), (1 << 50,)).asnumpy()",
        "ops.matmul(ops.broadcast_to(Tensor([[1.0]]), (1 << 23, 1)), "
        "ops.broadcast_to(Tensor([[1.0]]), (1, 1 << 23))).asnumpy()",
        "ms.grad(lambda x: ops.broadcast_to(x, (1 << 45,)).exp())(Tensor(1.0)).asnumpy()",
        "ops.ones((-1,))",
    ],
)
def test_enormous_shapes(expression: str) -> None:
    """MemoryError (ValueError where the element count itself does not fit), not an abort. An
    answer is right too, where no memory was needed for it."""
    done = run_apart(
        f"""
        try:
            print(np.shape({expression}))
        except (MemoryError, ValueError, OverflowError) as error:
            assert str(error)
        """
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "survived" in done.stdout


def test_work_goes_on_after_running_out_of_memory() -> None:
    done = run_apart(
        """
        for _ in range(3):
            try:
                ops.zeros((1 << 45,)) + 1.0
            except MemoryError:
                pass
        assert ms.grad(lambda x: x * x)(Tensor(3.0)).asnumpy() == 6.0
        """
    )
    assert done.returncode == 0, done.stderr[-2000:]


RECURSION = {
    "a cell holding itself": """
        class Loop(nn.Cell):
            def __init__(self):
                super().__init__()
                self.me = self
            def construct(self, x):
                return self.me(x)
        Loop()(Tensor([1.0]))
    """,
    "two cells holding each other": """
        class Half(nn.Cell):
            def construct(self, x):
                return self.other(x)
        a, b = Half(), Half()
        a.other = b
        b.other = a
        a(Tensor([1.0]))
    """,
    "a function calling itself": """
        def f(x):
            return f(x) + 1.0
        ms.grad(f)(Tensor([1.0]))
    """,
}


@pytest.mark.parametrize("what", sorted(RECURSION))
def test_recursion(what: str) -> None:
    body = textwrap.indent(textwrap.dedent(RECURSION[what]), "    ")
    done = run_apart(
        f"try:\n{body}\nexcept (RecursionError, ValueError) as error:\n    print(error)"
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "survived" in done.stdout
    assert len(done.stdout.splitlines()) > 1, "no error was raised"


def test_very_deep_graphs() -> None:
    """20,000 ops in a row, differentiated: the passes do not recurse on the machine's stack."""
    done = run_apart(
        """
        def f(x):
            y = x
            for _ in range(20000):
                y = ops.sin(y) + x
            return y.sum()
        print(ms.grad(f)(Tensor(np.array([0.1, 0.2]))).asnumpy())
        """
    )
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.parametrize(
    "array",
    [
        np.arange(12.0).reshape(3, 4).T,
        np.arange(12.0)[::-1],
        np.arange(24.0).reshape(4, 6)[1:3, ::2],
        np.broadcast_to(np.arange(3.0), (2, 3)),
        np.arange(6, dtype=">f8").reshape(2, 3),
        np.arange(6, dtype=">i4").reshape(2, 3),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.arange(5.0)[::-2],
        np.zeros((0, 3)),
        np.float32(3.5),
        np.array(2.0, dtype=np.float16),
    ],
    ids=lambda x: f"{np.asarray(x).dtype.str}-{np.shape(x)}-{np.asarray(x).strides}",
)
def test_unusual_arrays(array: Any) -> None:
    """Non-contiguous, reversed, broadcast and byte-swapped arrays become what they hold."""
    array = np.asarray(array)
    t = Tensor(array)
    assert t.shape == array.shape
    np.testing.assert_array_equal(t.asnumpy(), array)
    assert t.asnumpy().dtype == array.dtype.newbyteorder("=")
    np.testing.assert_array_equal((t + t).asnumpy(), array + array)


def test_read_only_arrays_stay_as_they_are() -> None:
    array = np.arange(4.0)
    array.flags.writeable = False
    t = Tensor(array)
    np.testing.assert_array_equal((t * 2).asnumpy(), array * 2)
    parameter = Parameter(t, name="w")
    ops.assign(parameter, Tensor(np.zeros(4)))
    np.testing.assert_array_equal(array, np.arange(4.0))
    np.testing.assert_array_equal(parameter.asnumpy(), np.zeros(4))


def test_the_source_array_is_copied() -> None:
    array = np.arange(4.0)
    t = Tensor(array)
    array[0] = 100.0
    np.testing.assert_array_equal(t.asnumpy(), [0.0, 1.0, 2.0, 3.0])


def test_nan_and_inf_go_through() -> None:
    x = Tensor(np.array([np.nan, np.inf, -np.inf, 1.0]))
    value, gradient = ms.value_and_grad(lambda x: ops.exp(x) * 2.0)(x)
    np.testing.assert_array_equal(value.asnumpy(), [np.nan, np.inf, 0.0, 2 * np.exp(1.0)])
    np.testing.assert_array_equal(gradient.asnumpy(), [np.nan, np.inf, 0.0, 2 * np.exp(1.0)])


def test_multiplying_by_zero_keeps_nan() -> None:
    """x * 0 is not 0: no simplification may say so for a runtime x."""
    x = Tensor(np.array([np.nan, np.inf, 1.0]))
    for zero in (0.0, Tensor(np.zeros(3))):
        got = (x * zero).asnumpy()
        assert np.isnan(got[0])
        assert np.isnan(got[1])
        assert got[2] == 0.0
    got = ms.jit(lambda x: x - x)(x).asnumpy()
    assert np.isnan(got[0])
    assert np.isnan(got[1])
    got = ms.jit(lambda x: x / x)(Tensor(np.array([0.0, np.inf, 2.0]))).asnumpy()
    assert np.isnan(got[0])
    assert np.isnan(got[1])
    assert got[2] == 1.0


def test_structural_zeros_make_no_nan() -> None:
    """A branch that the output does not depend on adds nothing, whatever its derivative is."""
    x = Tensor(np.array([0.0, 4.0]))

    def fn(x: Any) -> Any:
        ops.sqrt(x)  # infinite slope at 0, unused
        return (x * x).sum()

    np.testing.assert_array_equal(ms.grad(fn)(x).asnumpy(), [0.0, 8.0])


def test_gpu_that_is_not_there() -> None:
    done = run_apart(
        """
        import os
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
        try:
            ms.set_context(device_target="GPU")
            (Tensor([1.0]) + 1.0).asnumpy()
        except RuntimeError as error:
            print("refused:", error)
        """
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "refused:" in done.stdout, done.stdout
    assert re.search(r"(?i)cuda|driver|nvidia|gpu", done.stdout)


def test_context_values() -> None:
    with pytest.raises(ValueError, match="XX"):
        ms.set_context(device_target="XX")
    with pytest.raises(ValueError, match="mode"):
        ms.set_context(mode=7)
    with pytest.raises(ValueError, match="no_such_setting"):
        ms.set_context(no_such_setting=1)
    with pytest.raises(ValueError):
        ms.set_seed(-1)
    with pytest.raises(TypeError):
        ms.set_seed("a")


def test_wrong_data_for_a_parameter() -> None:
    parameter = Parameter(ones(2, 3), name="w")
    with pytest.raises(ValueError) as caught:
        ops.assign(parameter, ones(4))
    assert_message(caught.value, shape_pattern((2, 3)), shape_pattern((4,)))
    np.testing.assert_array_equal(parameter.asnumpy(), np.ones((2, 3)))
    with pytest.raises(TypeError):
        ops.assign(parameter, "a")


def test_dense_of_the_wrong_width() -> None:
    with pytest.raises(ValueError) as caught:
        nn.Dense(3, 2)(ones(4, 5))
    assert_message(caught.value, r"\b3\b", r"\b5\b")
