"""Every elementwise op against references of its own: values, special values, dtypes, shapes,
derivatives to order 4, and all its names. The rows are in op_rows.py."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import op_rows
import pytest
from op_rows import COMPARE, DIFFERENTIABLE, KINKS, LOGICAL, ROWS, Row

import gradcell as ms
from gradcell import Tensor, ops

DTYPES = {"float32": np.float32, "float64": np.float64}
INTEGERS = ("bool", "uint8", "int8", "int16", "int32", "int64")
SHAPES = [(), (1,), (7,), (65,), (3, 4), (2, 3, 5), (4099,), (0,), (3, 0), (0, 2, 0)]
BROADCAST_PAIRS = [
    ((), (3,)),
    ((3, 1), (1, 4)),
    ((2, 3, 4), (4,)),
    ((3, 1), (2, 3, 4)),
    ((1,), (5,)),
    ((5, 1, 1), (1, 1, 6)),
    ((70, 3), (3,)),
    ((70, 1), (70, 5)),
    ((0, 3), (3,)),
    ((0, 1), (1, 4)),
    ((1, 1), ()),
]
BINARY = [row for row in ROWS if row.arity == 2]

every_row = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
every_differentiable_row = pytest.mark.parametrize("row", DIFFERENTIABLE, ids=lambda row: row.name)
every_binary_row = pytest.mark.parametrize("row", BINARY, ids=lambda row: row.name)
every_dtype = pytest.mark.parametrize("dtype", list(DTYPES))


def spellings(row: Row) -> dict[str, Callable[..., Any]]:
    """All the names the row's op goes by. Those that MindSpore lacks may be missing."""
    found: dict[str, Callable[..., Any]] = {f"ops.{row.function}": getattr(ops, row.function)}
    optional = {"Log2", "Log10"}
    for name in row.objects:
        if name not in optional or hasattr(ops, name):
            found[f"ops.{name}()"] = getattr(ops, name)()
    for name in row.aliases:
        found[f"ops.{name}"] = getattr(ops, name)
    if row.method:
        method = row.method
        found[f"Tensor.{method}"] = lambda x, *rest: getattr(x, method)(*rest)
    if row.operator:
        found["operator"] = row.operator
    return found


def evaluate(row: Row, operands: list[np.ndarray]) -> np.ndarray:
    """The op's value, with its dtype and shape checked."""
    result = getattr(ops, row.function)(*(Tensor(x) for x in operands)).asnumpy()
    assert result.shape == np.broadcast_shapes(*(x.shape for x in operands))
    assert result.dtype == (operands[0].dtype if row.differentiable else np.bool_)
    return result


def ulps(got: np.ndarray, exact: np.ndarray, dtype: Any) -> np.ndarray:
    """The error in units of the last place of `dtype` at the exact value."""
    with np.errstate(over="ignore"):
        rounded = exact.astype(dtype)
    limits = np.finfo(dtype)
    size = np.clip(np.abs(rounded), limits.smallest_subnormal, limits.max / 2)
    with np.errstate(invalid="ignore"):
        error = np.abs(got.astype(np.float64) - exact)
    # Overflow is right where the rounded reference overflows too.
    error = np.where(np.isinf(rounded) & (got == rounded), 0.0, error)
    return error / np.spacing(size).astype(np.float64)


def assert_close(got: np.ndarray, expected: np.ndarray, tolerance: float) -> None:
    """Equal to `tolerance`, relative to the largest finite expected value."""
    finite = np.abs(expected[np.isfinite(expected)])
    scale = finite.max(initial=0.01)  # more than the noise of a numeric derivative that is 0
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance * scale)


@pytest.mark.one_in(2, by="row.name")
@every_row
@every_dtype
def test_value(row: Row, dtype: str) -> None:
    operands = op_rows.sample(row, 200, seed=1, dtype=DTYPES[dtype])
    hard = [point for point in row.hard if fits(point, dtype)]
    if hard:
        columns = np.array(hard, dtype=DTYPES[dtype]).T
        operands = [np.concatenate([x, more]) for x, more in zip(operands, columns, strict=True)]
    got = evaluate(row, operands)
    exact = op_rows.exact_values(row, operands)
    if not row.differentiable:
        np.testing.assert_array_equal(got, exact)
        return
    error = ulps(got, exact, DTYPES[dtype])
    worst = int(np.nanargmax(np.where(np.isnan(error), np.inf, error)))
    at = [x[worst] for x in operands]
    assert error[worst] <= row.ulp[dtype], f"{row.name}{at}: {got[worst]}, not {exact[worst]}"


def fits(point: tuple[float, ...], dtype: str) -> bool:
    """Whether `dtype` can tell the point from 0 and infinity."""
    with np.errstate(all="ignore"):
        return all(x == 0 or (np.isfinite(y := DTYPES[dtype](x)) and y != 0) for x in point)


@pytest.mark.one_in(20, by="row.name")
@every_row
@every_dtype
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_shape(row: Row, dtype: str, shape: tuple[int, ...]) -> None:
    count = int(np.prod(shape))
    operands = [x.reshape(shape) for x in op_rows.sample(row, count, seed=2, dtype=DTYPES[dtype])]
    got = evaluate(row, operands)
    with np.errstate(all="ignore"):
        expected = row.numpy(*operands)
    np.testing.assert_allclose(got, expected, rtol=3e-6 if dtype == "float32" else 1e-13)


@pytest.mark.one_in(22, by="row.name")
@every_binary_row
@pytest.mark.parametrize("shapes", BROADCAST_PAIRS, ids=str)
@pytest.mark.parametrize("swapped", [False, True], ids=["", "swapped"])
def test_broadcast(row: Row, shapes: tuple[tuple[int, ...], ...], swapped: bool) -> None:
    shapes = shapes[::-1] if swapped else shapes
    operands = [
        op_rows.sample(row, int(np.prod(shape)), seed=3 + i)[i].reshape(shape)
        for i, shape in enumerate(shapes)
    ]
    got = evaluate(row, operands)
    np.testing.assert_allclose(got, row.numpy(*operands), rtol=1e-13)
    if not row.differentiable:
        return
    gradients = ms.grad(getattr(ops, row.function), (0, 1))(*(Tensor(x) for x in operands))
    whole = np.broadcast_arrays(*operands)
    for i, gradient in enumerate(gradients):
        times = (1, 0) if i == 0 else (0, 1)
        partial = op_rows.exact_partial(row, list(whole), times) if whole[0].size else whole[0]
        expected = unbroadcast(partial, operands[i].shape)
        assert gradient.shape == operands[i].shape
        np.testing.assert_allclose(gradient.asnumpy(), expected, rtol=1e-11, atol=1e-11)


def unbroadcast(x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Sums over the dimensions that broadcasting `shape` to x.shape added or widened."""
    x = x.sum(axis=tuple(range(x.ndim - len(shape))))
    widened = tuple(i for i, n in enumerate(shape) if n == 1 and x.shape[i] != 1)
    return x.sum(axis=widened, keepdims=True)


@pytest.mark.one_in(2, by="row.name")
@every_row
@every_dtype
def test_special_values(row: Row, dtype: str) -> None:
    limits = np.finfo(DTYPES[dtype])
    values = [np.nan, np.inf, 0.0, limits.smallest_subnormal, limits.tiny, limits.max, 1.0, 2.5]
    values += [-x for x in values[1:]]
    grid = np.meshgrid(*[np.array(values, dtype=DTYPES[dtype])] * row.arity, indexing="ij")
    operands = [x.ravel() for x in grid]
    with np.errstate(all="ignore"):
        expected = row.numpy(*operands)
        checked = row.special(*operands) if row.special else np.ones(len(expected), bool)
    operands = [x[checked] for x in operands]
    expected = expected[checked]
    got = evaluate(row, operands)
    for i, (g, e) in enumerate(zip(got, expected, strict=True)):
        where = f"{row.name}{[float(x[i]) for x in operands]}: {g}, not {e}"
        if np.isnan(e) or np.isinf(e) or e == 0 or expected.dtype == bool:
            assert np.array_equal(g, e, equal_nan=True), where
        else:
            largest = abs(e) == np.finfo(e.dtype).max  # whose spacing is inf
            ulp = 2 * float(np.spacing(abs(e) / 2)) if largest else float(np.spacing(abs(e)))
            assert abs(float(g) - float(e)) <= 8 * ulp, where
        if e == 0 and row.signed_zero and expected.dtype != bool:
            assert np.signbit(g) == np.signbit(e), where


@pytest.mark.one_in(8, by="row.name")
@every_differentiable_row
@pytest.mark.parametrize("dtype", list(DTYPES))
def test_partial_derivatives_in_two_orders(row: Row, dtype: str) -> None:
    """Every partial derivative to the row's order, in one order of differentiation and its
    reverse."""
    operands = op_rows.sample(row, 12, seed=4, dtype=DTYPES[dtype])
    tensors = [Tensor(x) for x in operands]
    tolerance = 1e-11 if dtype == "float64" else 3e-5
    for order in range(1, row.order + 1):
        for times in itertools.product(range(order + 1), repeat=row.arity):
            if sum(times) != order:
                continue
            expected = op_rows.exact_partial(row, operands, times)
            positions = [i for i, n in enumerate(times) for _ in range(n)]
            for path in {tuple(positions), tuple(reversed(positions))}:
                derivative: Callable[..., Any] = getattr(ops, row.function)
                for position in path:
                    derivative = ms.grad(derivative, position)
                got = derivative(*tensors)
                assert got.shape == tensors[0].shape
                assert got.asnumpy().dtype == DTYPES[dtype]
                try:
                    assert_close(got.asnumpy(), expected, tolerance)
                except AssertionError as error:
                    raise AssertionError(f"{row.name} differentiated by {path}: {error}") from None


@every_differentiable_row
def test_derivative_of_zero_size(row: Row) -> None:
    tensors = [Tensor(np.zeros((0, 3)))] * row.arity
    first = ms.grad(getattr(ops, row.function))
    assert first(*tensors).shape == (0, 3)
    assert ms.grad(first)(*tensors).shape == (0, 3)


@every_differentiable_row
def test_derivative_keeps_nan_apart(row: Row) -> None:
    """A NaN in one element leaves the derivatives of the others alone."""
    operands = op_rows.sample(row, 5, seed=5)
    expected = ms.grad(getattr(ops, row.function))(*(Tensor(x) for x in operands)).asnumpy()
    operands[0] = operands[0].copy()
    operands[0][2] = np.nan
    got = ms.grad(getattr(ops, row.function))(*(Tensor(x) for x in operands)).asnumpy()
    others = np.arange(5) != 2
    np.testing.assert_array_equal(got[others], expected[others])


@pytest.mark.parametrize("kink", KINKS, ids=str)
def test_kink(kink: tuple[str, tuple[float, ...], tuple[float, ...]]) -> None:
    function, point, expected = kink
    tensors = [Tensor(np.array([x])) for x in point]
    for i, derivative in enumerate(expected):
        got = ms.grad(getattr(ops, function), i)(*tensors).asnumpy()
        np.testing.assert_array_equal(got, [derivative], err_msg=f"by operand {i}")


@every_row
def test_names_agree(row: Row) -> None:
    operands = [Tensor(x) for x in op_rows.sample(row, 40, seed=6)]
    results = {name: f(*operands).asnumpy() for name, f in spellings(row).items()}
    expected = results.pop(f"ops.{row.function}")
    for name, result in results.items():
        np.testing.assert_array_equal(result, expected, err_msg=name)


@pytest.mark.parametrize("row", op_rows.BINARY + COMPARE, ids=lambda row: row.name)
@every_dtype
def test_python_scalars(row: Row, dtype: str) -> None:
    """A Python number on either side takes the tensor's dtype; `2.0 - x` works as `x - 2.0`."""
    operands = op_rows.sample(row, 9, seed=7, dtype=DTYPES[dtype])
    number = float(operands[1][0])
    function = getattr(ops, row.function)
    forms = [function] if row.operator is None else [function, row.operator]
    for form in forms:
        kind = DTYPES[dtype] if row.differentiable else np.bool_
        rtol = 3e-6 if dtype == "float32" else 1e-13
        right = form(Tensor(operands[0]), number).asnumpy()
        assert right.dtype == kind
        expected = row.numpy(operands[0], DTYPES[dtype](number))
        np.testing.assert_allclose(right, expected, rtol=rtol)
        if form is function and row in COMPARE:
            continue  # ops.less(2.0, x) is not MindSpore's
        left = form(float(operands[0][0]), Tensor(operands[1])).asnumpy()
        assert left.dtype == kind
        np.testing.assert_allclose(left, row.numpy(operands[0][0], operands[1]), rtol=rtol)


def round_to_bfloat16(x: np.ndarray) -> np.ndarray:
    """The nearest bfloat16 (ties to even), as float32."""
    bits = x.astype(np.float32).view(np.uint32).astype(np.uint64)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
    return rounded.astype(np.uint32).view(np.float32)


@pytest.mark.one_in(2, by="row.name")
@every_row
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision(row: Row, dtype: str) -> None:
    """Stored as 16 bits, computed in float32: within one rounding of the exact value."""
    half: Callable[[np.ndarray], np.ndarray] = (
        round_to_bfloat16 if dtype == "bfloat16" else lambda x: x.astype(np.float16)
    )
    operands = [half(x) for x in op_rows.sample(row, 60, seed=8)]
    tensors = [Tensor(x.astype(np.float32)).astype(getattr(ms, dtype)) for x in operands]
    result = getattr(ops, row.function)(*tensors)
    exact = op_rows.exact_values(row, [x.astype(np.float64) for x in operands])
    if not row.differentiable:
        assert str(result.dtype) == "Bool"
        np.testing.assert_array_equal(result.asnumpy(), exact)
        return
    assert str(result.dtype) == {"float16": "Float16", "bfloat16": "BFloat16"}[dtype]
    got = result.astype(ms.float32).asnumpy()
    digits = 2.0**-11 if dtype == "float16" else 2.0**-8
    np.testing.assert_allclose(got, exact, rtol=1.01 * digits, atol=2.0**-25)
    gradient = ms.grad(getattr(ops, row.function))(*tensors)
    assert gradient.dtype == result.dtype
    partial = op_rows.exact_partial(
        row, [x.astype(np.float64) for x in operands], (1,) + (0,) * (row.arity - 1)
    )
    assert_close(gradient.astype(ms.float32).asnumpy().astype(np.float64), partial, 4 * digits)


def integer_operands(row: Row, dtype: str) -> list[np.ndarray]:
    first, second = [1, 1, 1, 1], [1, 1, 1, 1]
    if dtype != "bool":
        first = [7, 3, 4, 1]
        second = [3, 3, 2, 2]
    if dtype.startswith("int") and row.domain[0][0][0] < 0:
        first = [7, -3, 4, -1]
    return [np.array(x, dtype=dtype) for x in (first, second)][: row.arity]


@pytest.mark.one_in(6, by="row.name")
@every_row
@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers(row: Row, dtype: str) -> None:
    """MindSpore's result dtype, and NumPy's values; where MindSpore raises TypeError, that or
    what the same operands give as float32."""
    operands = integer_operands(row, dtype)
    tensors = [Tensor(x) for x in operands]
    function = getattr(ops, row.function)
    kind = row.integers
    if dtype == "bool" and kind == "same":
        # bool + bool is "or", bool * bool "and"; the rest of bool arithmetic may be refused.
        kind = "bool" if row.name in ("Add", "Mul", "Maximum", "Minimum") else "unsupported"
    try:
        result = function(*tensors)
        got = result.asnumpy()
    except TypeError:
        assert dtype == "bool" or kind == "unsupported", f"{row.name} must take {dtype}"
        return
    if kind == "same":
        expected = row.numpy(*operands).astype(dtype)
    elif kind == "bool":
        expected = row.numpy(*operands).astype(bool)
    elif kind == "float32":
        with np.errstate(all="ignore"):
            expected = row.numpy(*(x.astype(np.float32) for x in operands))
    else:
        with np.errstate(all="ignore"):
            expected = row.numpy(*(x.astype(np.float32) for x in operands))
        np.testing.assert_allclose(got.astype(np.float32), expected, rtol=1e-6)
        return
    assert got.dtype == expected.dtype, f"{row.name} of {dtype} must give {expected.dtype}"
    np.testing.assert_allclose(got, expected, rtol=1e-6)


@pytest.mark.parametrize("row", COMPARE + LOGICAL, ids=lambda row: row.name)
def test_bool_results_stop_gradients(row: Row) -> None:
    """A bool made from x is a constant to the derivative, also after a cast back to numbers."""

    def masked(*xs: Any) -> Any:
        return xs[0] * getattr(ops, row.function)(*xs).astype(ms.float64)

    operands = op_rows.sample(row, 6, seed=9)
    tensors = [Tensor(x) for x in operands]
    expected = row.numpy(*operands).astype(np.float64)
    np.testing.assert_array_equal(ms.grad(masked)(*tensors).asnumpy(), expected)


def test_mod_by_name() -> None:
    """`ops.Mod` and `ops.fmod` take the dividend's sign, `%` and floor_mod the divisor's."""
    x = np.array([7.0, -7.0, 7.0, -7.0, 5.5])
    y = np.array([3.0, 3.0, -3.0, -3.0, -2.0])
    for function in (ops.Mod(), ops.fmod):
        np.testing.assert_array_equal(function(Tensor(x), Tensor(y)).asnumpy(), np.fmod(x, y))
    np.testing.assert_array_equal((Tensor(x) % Tensor(y)).asnumpy(), np.mod(x, y))
    np.testing.assert_array_equal((Tensor(-7, ms.int32) % 3).asnumpy(), 2)
    np.testing.assert_array_equal((Tensor(-7, ms.int32) // 2).asnumpy(), -4)


@pytest.mark.parametrize("power", [0, 1, 2, 3, -1, -2, 0.5, 2.5])
def test_scalar_powers(power: float) -> None:
    """x ** n for a Python n, to order 4, at a negative x too where the power is whole."""
    points = np.array([-1.7, -0.4, 0.6, 2.2] if power == int(power) else [0.3, 0.6, 1.1, 2.2])

    def raised(x: Any) -> Any:
        return x**power

    function: Callable[..., Any] = raised
    factor, exponent = 1.0, float(power)
    for _ in range(4):
        np.testing.assert_allclose(
            function(Tensor(points)).asnumpy(),
            factor * points**exponent if factor else 0 * points,
            rtol=1e-12,
        )
        factor, exponent = factor * exponent, exponent - 1.0
        function = ms.grad(function)


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8"])
def test_integer_division_by_zero_is_an_error(dtype: str) -> None:
    """Where the divisor is not known, too, as in a compiled function. The lowest number divided by -1
    wraps."""
    lowest = np.iinfo(dtype).min
    x = Tensor(np.array([1, 5, lowest, lowest], dtype=dtype))
    y = Tensor(np.array([0, 0, 0, -1 if lowest else 0], dtype=dtype))
    for function in (ops.floor_div, ops.floor_mod, ops.Mod()):
        compiled = ms.jit(lambda a, b, f=function: f(a, b))
        with pytest.raises(ValueError, match="integer division by zero"):
            compiled(x, y)
        if lowest:
            wraps = compiled(x[3:], y[3:]).asnumpy()
            assert wraps.shape == (1,)


def test_eighth_derivative() -> None:
    """tanh(x) sin(x), against mpmath."""
    from mpmath import mp

    x = np.linspace(-2.0, 2.0, 9)
    with mp.workdps(60):
        expected = [float(mp.diff(lambda t: mp.tanh(t) * mp.sin(t), mp.mpf(p), 8)) for p in x]

    def derivative(t: Any) -> Any:
        return ops.tanh(t) * ops.sin(t)

    nested: Callable[..., Any] = derivative
    for _ in range(8):
        nested = ms.grad(nested)
    assert_close(nested(Tensor(x)).asnumpy(), np.array(expected), 1e-9)
