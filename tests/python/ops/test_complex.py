"""Complex tensors: values against NumPy, derivatives against finite differences of the parts, both
modes, transforms, views and writes, files, and what has no meaning for them."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import mpmath
import numpy as np
import pytest
from check_grads import check_grads

import gradcell as ms
import gradcell.numpy as gnp
from gradcell import Parameter, Tensor, _core, mint, nn, ops
from gradcell.ops.elements.complex_numbers import complex_of, part

UNARY: dict[str, Any] = {
    "neg": np.negative, "abs": lambda z: np.abs(z) + 0j, "sign": lambda z: z / np.abs(z),
    "square": np.square, "sqrt": np.sqrt, "rsqrt": lambda z: 1 / np.sqrt(z),
    "reciprocal": lambda z: 1 / z, "exp": np.exp, "expm1": np.expm1, "log": np.log,
    "log1p": np.log1p, "log2": lambda z: np.log(z) / np.log(2), "log10": np.log10, "sin": np.sin,
    "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
    "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh, "acosh": np.arccosh,
    "atanh": np.arctanh, "sigmoid": lambda z: 1 / (1 + np.exp(-z)), "conj": np.conj,
}  # fmt: skip
BINARY: dict[str, Any] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "pow": np.power,
}  # fmt: skip

PLANE = np.array([[x + 1j * y for x in (-2.3, -0.7, 0.4, 1.9)] for y in (-1.6, -0.3, 0.8, 2.2)])
#: On the branch cuts of all of them, from both sides.
CUTS = np.array(
    [complex(x, y) for x in (-2.0, -0.5, 0.5, 2.0) for y in (0.0, -0.0)]
    + [complex(x, y) for y in (-2.0, -0.5, 0.5, 2.0) for x in (0.0, -0.0)]
)
EXTREME = np.array([complex(x, y) for x in (1e-30, 1.0, 1e30) for y in (-1e30, 1e-30, 3.0)])


@pytest.fixture(autouse=True)
def usual_mode() -> Iterator[None]:
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE)


both_dtypes = pytest.mark.parametrize("dtype", ["complex64", "complex128"])


def close(found: Any, expected: Any, dtype: str = "complex128", scale: float = 1.0) -> None:
    array, exact = found.asnumpy(), np.asarray(expected)
    assert array.shape == exact.shape
    eps = np.finfo(np.dtype(dtype)).eps
    assert (np.abs(array - exact) <= 16 * scale * eps * np.abs(exact) + 1e-300).all(), (
        array,
        exact,
    )


@both_dtypes
@pytest.mark.parametrize("name", UNARY)
def test_unary(name: str, dtype: str) -> None:
    z = PLANE.astype(dtype)
    found = getattr(ops, name)(Tensor(z))
    assert str(found.dtype) == dtype.capitalize()
    close(found, UNARY[name](z.astype(np.complex128)), dtype, 4)


@pytest.mark.parametrize("name", sorted(set(UNARY) - {"sign", "rsqrt", "reciprocal"}))
def test_branch_cuts(name: str) -> None:
    """C's: the sign of a zero says which side of a cut is meant."""
    with np.errstate(all="ignore"):
        exact = UNARY[name](CUTS)
    found = getattr(ops, name)(Tensor(CUTS)).asnumpy()
    np.testing.assert_allclose(found.real, exact.real, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(found.imag, exact.imag, rtol=1e-13, atol=1e-15)


@both_dtypes
@pytest.mark.parametrize("name", ["abs", "sqrt", "log", "reciprocal", "rsqrt"])
def test_no_square_overflows(name: str, dtype: str) -> None:
    z = EXTREME.astype(dtype)
    if dtype == "complex128":
        z = np.array([1e300 + 2e300j, 1e-300 - 3e-300j, 1e300 + 1e-300j])
    exact = UNARY[name](z.astype(np.clongdouble))
    close(getattr(ops, name)(Tensor(z)), exact.astype(np.complex128), dtype, 4)


@both_dtypes
@pytest.mark.parametrize("name", BINARY)
def test_binary(name: str, dtype: str) -> None:
    a, b = PLANE.astype(dtype), (PLANE[::-1, ::-1] * (0.5 + 0.3j)).astype(dtype)
    exact = BINARY[name](a.astype(np.complex128), b.astype(np.complex128))
    close(getattr(ops, name)(Tensor(a), Tensor(b)), exact, dtype, 8)


def test_quotients_do_not_overflow() -> None:
    a, b = (
        np.array([1e38 + 1e38j, 1e-38j], np.complex64),
        np.array([1e30 + 1e30j, 1e-30], np.complex64),
    )
    close(Tensor(a) / Tensor(b), a.astype(np.complex128) / b, "complex64")


def test_special_values() -> None:
    inf, nan = np.inf, np.nan
    z = Tensor(np.array([0, complex(inf, 1), complex(nan, 0), complex(0, -inf), 3 + 4j]))
    np.testing.assert_array_equal(ops.abs(z).asnumpy().real, [0, inf, nan, inf, 5])
    np.testing.assert_array_equal(ops.isnan(z).asnumpy(), [False, False, True, False, False])
    np.testing.assert_array_equal(ops.isinf(z).asnumpy(), [False, True, False, True, False])
    np.testing.assert_array_equal(ops.isfinite(z).asnumpy(), [True, False, False, False, True])
    np.testing.assert_allclose(ops.sign(z).asnumpy()[[0, 4]], [0, 0.6 + 0.8j], rtol=2.3e-16)
    assert (z * 2).asnumpy()[1] == complex(inf, 2)  # by a real number: no inf * 0
    assert (z / Tensor(2.0)).asnumpy()[3] == complex(0, -inf)
    assert ops.pow(Tensor(0j), 3).asnumpy() == 0 and ops.pow(Tensor(0j), Tensor(0j)).asnumpy() == 1


def test_parts_and_angle() -> None:
    z = Tensor(PLANE)
    np.testing.assert_array_equal(ops.real(z).asnumpy(), PLANE.real)
    np.testing.assert_array_equal(z.imag().asnumpy(), PLANE.imag)
    np.testing.assert_array_equal(
        ops.view_as_real(z).asnumpy(), np.stack([PLANE.real, PLANE.imag], -1)
    )
    np.testing.assert_allclose(ops.angle(z).asnumpy(), np.angle(PLANE), rtol=1e-15)
    np.testing.assert_allclose(ops.ComplexAbs()(z).asnumpy(), np.abs(PLANE), rtol=1e-15)
    np.testing.assert_array_equal(
        ops.angle(Tensor([-1.0, 0.0, 2.0])).asnumpy(), np.float32([np.pi, 0, 0])
    )
    assert z.is_complex() and not Tensor(1.0).is_complex() and not ops.is_floating_point(z)
    np.testing.assert_array_equal(ops.isreal(Tensor([1j, 2.0])).asnumpy(), [False, True])
    x, y = Tensor(np.float64([3, 1])), Tensor(np.float64(2))
    np.testing.assert_array_equal(ops.Complex()(x, y).asnumpy(), [3 + 2j, 1 + 2j])
    np.testing.assert_allclose(ops.polar(x, y).asnumpy(), [3 * np.exp(2j), np.exp(2j)], rtol=1e-15)


# dtypes -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("other", "expected"),
    [(ms.int32, "complex64"), (ms.float16, "complex64"), (ms.float32, "complex64"),
     (ms.float64, "complex128"), (ms.bool, "complex64"), (ms.complex128, "complex128")],
)  # fmt: skip
def test_promotion(other: Any, expected: str) -> None:
    z, x = Tensor([1 + 2j], ms.complex64), Tensor([3], other)
    for y in (z + x, x + z, z * x, ops.concat([z, x])):
        assert y.dtype.name == expected
    np.testing.assert_array_equal((z * x).asnumpy(), [3 + 6j] if other != ms.bool else [1 + 2j])


def test_numbers_are_weak() -> None:
    z, x = Tensor([1 + 2j], ms.complex64), Tensor([2.0], ms.float32)
    assert (z + 1j).dtype == ms.complex64 and (x * 1j).dtype == ms.complex64
    assert (Tensor([2.0], ms.float64) * 1j).dtype == ms.complex128
    assert (z * 2.5).dtype == ms.complex64 and (1 - z).dtype == ms.complex64
    assert (z * np.complex64(1j)).dtype == ms.complex64
    np.testing.assert_array_equal((1j / z).asnumpy(), np.complex64([1j / (1 + 2j)]))
    np.testing.assert_array_equal(ops.add(x, [1j]).asnumpy(), [2 + 1j])
    # As there: NumPy's dtype of Python's complex numbers.
    assert Tensor(1 + 2j).dtype == ms.complex128 and Tensor([1j, 2]).dtype == ms.cdouble
    assert Tensor([1, 2], ms.cfloat).asnumpy().tolist() == [1, 2]


def test_casts() -> None:
    z = Tensor([1.5 + 2j, 0j, 0.5j], ms.complex64)
    assert z.astype(ms.float32).asnumpy().tolist() == [1.5, 0, 0]
    assert z.astype(ms.int32).asnumpy().tolist() == [1, 0, 0]
    assert z.astype(ms.bool).asnumpy().tolist() == [True, False, True]
    assert ops.cast(Tensor([3], ms.int32), ms.complex128).asnumpy().tolist() == [3]
    assert ops.zeros((2,), ms.complex64).asnumpy().tolist() == [0, 0]
    assert ops.full((2,), 1 + 2j, dtype=ms.complex64).asnumpy().tolist() == [1 + 2j] * 2
    assert ms.dtype_to_nptype(ms.complex64) is np.complex64
    assert ms.dtype_to_pytype(ms.complex128) is complex


def test_python_and_printing() -> None:
    z = Tensor(np.array([1 + 2j, 3 - 1j], np.complex64))
    assert str(z) == "[1.+2.j 3.-1.j]"
    assert repr(z) == "Tensor(shape=[2], dtype=Complex64, value= [1+2j, 3-1j])"
    assert repr(z[0] * 0.344095j) == "Tensor(shape=[], dtype=Complex64, value= -0.68819+0.344095j)"
    assert complex(z[1]) == 3 - 1j and z[0].item() == 1 + 2j
    with pytest.raises(TypeError):
        float(z[0])
    for twin in (
        pickle.loads(pickle.dumps(z)),
        copy.deepcopy(z),
        Tensor(z),
        ms.from_numpy(z.asnumpy()),
    ):
        assert twin.dtype == ms.complex64
        np.testing.assert_array_equal(twin.asnumpy(), z.asnumpy())
    np.testing.assert_array_equal(np.from_dlpack(z), z.asnumpy())
    assert (z == Tensor([1 + 2j, 3])).asnumpy().tolist() == [True, False]
    assert (z != z).asnumpy().tolist() == [False, False]


# Structure ----------------------------------------------------------------------------------------


def test_movement_and_sums() -> None:
    a = (np.arange(24) * (1 - 0.5j)).reshape(2, 3, 4)
    x = Tensor(a)
    for found, expected in [
        (x.transpose(2, 0, 1), a.transpose(2, 0, 1)), (x.reshape(4, 6), a.reshape(4, 6)),
        (x[1, ::2], a[1, ::2]), (x[..., -1], a[..., -1]), (x[:, [2, 0]], a[:, [2, 0]]),
        (x[x.real() > 5], a[a.real > 5]), (x.sum((0, 2)), a.sum((0, 2))), (x.mean(), a.mean()),
        (ops.cumsum(x, 1), a.cumsum(1)), (ops.flip(x, (2,)), a[..., ::-1]),
        (ops.where(Tensor(a.real > 5), x, -x), np.where(a.real > 5, a, -a)),
        (ops.concat([x, x], 1), np.concatenate([a, a], 1)), (ops.tile(x, (1, 2, 1)), np.tile(a, (1, 2, 1))),
        (ops.gather(x, Tensor([1, 0, 1]), 2), a[..., [1, 0, 1]]), (ops.roll(x, 1, 2), np.roll(a, 1, 2)),
        (ops.matmul(x, x.swapaxes(1, 2)), a @ a.swapaxes(1, 2)),
        (ops.BatchMatMul(transpose_b=True)(x, x), a @ a.swapaxes(1, 2)),
        (ops.adjoint(x), a.conj().swapaxes(1, 2)), (x.H, a.conj().swapaxes(1, 2)),
        (x.adjoint(), a.conj().swapaxes(1, 2)),
        (ops.diag(x[0, 0]), np.diag(a[0, 0])), (ops.tril(x), np.tril(a)),
    ]:  # fmt: skip
        np.testing.assert_allclose(found.asnumpy(), expected, rtol=1e-14)


def test_convolution() -> None:
    rng = np.random.default_rng(3)
    x = rng.standard_normal((1, 2, 5, 5)) + 1j * rng.standard_normal((1, 2, 5, 5))
    w = rng.standard_normal((3, 2, 3, 3)) + 1j * rng.standard_normal((3, 2, 3, 3))
    exact = np.zeros((1, 3, 3, 3), complex)
    for i in range(3):
        for j in range(3):
            exact[0, :, i, j] = np.einsum("cyx,ocyx->o", x[0, :, i : i + 3, j : j + 3], w)
    found = ops.conv2d(Tensor(x), Tensor(w), pad_mode="valid")
    np.testing.assert_allclose(found.asnumpy(), exact, rtol=1e-13)


def test_views_and_writes() -> None:
    a = (np.arange(6) * (1 + 1j)).reshape(2, 3)
    x = Tensor(a.copy())
    row, column = x[0], x.T[1]
    x[0, 1] = 7j
    assert row.asnumpy()[1] == 7j and column.asnumpy()[0] == 7j
    row[:] = 5
    assert x.asnumpy()[0].tolist() == [5, 5, 5]

    def inside(z: Tensor) -> Tensor:
        w = z.copy()
        w[0] = w[0] * 2j
        w.T[2] = z[:, 0]
        return w

    b = a.copy()
    b[0] = b[0] * 2j
    b.T[2] = a[:, 0]
    np.testing.assert_array_equal(ms.jit(inside)(Tensor(a)).asnumpy(), b)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_elements_at_indices(dtype: str) -> None:
    """Elements of 8 and of 16 bytes, where values are there and where they are recorded."""
    a = ((np.arange(12) - 3) * (1 - 2j)).reshape(3, 4).astype(dtype)
    at = np.array([[1, 0], [2, 3], [0, 0]])
    new = np.array([[7j, 8], [-1, 2j], [3, 4j]], dtype)
    placed, added = a.copy(), a.copy()
    np.put_along_axis(placed, at, new, 1)
    np.add.at(added, (np.arange(3)[:, None], at), new)
    rows, columns = a.copy(), a.copy()
    rows[[0, 2]] = 7 + 8j
    columns[:, [0, 2]] = 7 + 8j

    def written(x: Tensor, index: Any) -> Tensor:
        y = x.copy()
        y[index] = 7 + 8j
        return y

    two, index = Tensor(np.array([0, 2])), Tensor(at)
    for function, expected in [
        (lambda x: ops.gather_elements(x, 1, index), np.take_along_axis(a, at, 1)),
        (lambda x: ops.tensor_scatter_elements(x, index, Tensor(new), axis=1), placed),
        (lambda x: ops.tensor_scatter_elements(x, index, Tensor(new), 1, "add"), added),
        (lambda x: written(x, two), rows),
        (lambda x: written(x, (slice(None), two)), columns),
    ]:
        np.testing.assert_array_equal(function(Tensor(a)).asnumpy(), expected)
        np.testing.assert_array_equal(ms.jit(function)(Tensor(a)).asnumpy(), expected)
    zeros = np.array([[0, 1j, 2], [complex(-0.0, 0), 0, 3]], dtype)
    assert ops.nonzero(Tensor(zeros)).asnumpy().tolist() == np.argwhere(zeros).tolist()


# Derivatives ----------------------------------------------------------------------------------------

SMOOTH = [*sorted(UNARY), "angle"]


def of_parts(function: Any) -> Any:
    """The parts of function(x + iy) as functions of x and y."""

    def parts(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        w = function(complex_of(x, y))
        return (part(w, 0), part(w, 1)) if w.dtype.is_complex else (w,)

    return parts


POINTS = PLANE.ravel()[[1, 4, 6, 11, 14]] * 0.6


@pytest.mark.parametrize("name", SMOOTH)
def test_functions_have_derivatives_of_both_parts(name: str) -> None:
    """To order 2, reverse and forward, of both parts by both parts."""
    check_grads(of_parts(getattr(ops, name)), [POINTS.real, POINTS.imag], order=2)


@pytest.mark.parametrize("name", BINARY)
def test_derivatives_of_two(name: str) -> None:
    a, b = POINTS, POINTS[::-1] * (0.7 - 0.4j)

    def parts(x: Tensor, y: Tensor, u: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        w = getattr(ops, name)(complex_of(x, y), complex_of(u, v))
        return part(w, 0), part(w, 1)

    check_grads(parts, [a.real, a.imag, b.real, b.imag], order=2)


def test_derivatives_of_products() -> None:
    a, b = POINTS[:4].reshape(2, 2), POINTS[1:].reshape(2, 2)

    def parts(x: Tensor, y: Tensor, u: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        w = ops.matmul(complex_of(x, y), complex_of(u, v).T)[1:] ** 3
        return part(w, 0), part(w, 1)

    check_grads(parts, [a.real, a.imag, b.real, b.imag], order=3)


def test_convention() -> None:
    """dL/dx + i dL/dy, MindSpore's (and PyTorch's, and the conjugate of JAX's)."""
    z = Tensor(PLANE)

    def loss(w: Tensor) -> Tensor:
        return ops.real(ops.exp(w) * w).sum() + (ops.imag(w) ** 3).sum()

    by_parts = ms.grad(lambda x, y: loss(complex_of(x, y)), (0, 1))(ops.real(z), ops.imag(z))
    gradient = ms.grad(loss)(z)
    assert gradient.dtype == ms.complex128
    np.testing.assert_allclose(
        gradient.asnumpy(), by_parts[0].asnumpy() + 1j * by_parts[1].asnumpy()
    )
    exact = np.conj((PLANE + 1) * np.exp(PLANE)) + 3j * PLANE.imag**2
    np.testing.assert_allclose(gradient.asnumpy(), exact, rtol=1e-13)


#: As MindSpore 2.10 prints them, of [1 + 2i, 3 - i] (and [0.5 - i, 2 + 2i]) in complex64.
PRINTED = [
    ("lambda z, w: ops.abs(z).sum()", [0.447214 + 0.894427j, 0.948683 - 0.316228j]),
    ("lambda z, w: ops.imag(ops.conj(z)).sum()", [-1j, -1j]),
    ("lambda z, w: ops.real(ops.exp(z)).sum()", [-1.1312 - 2.47173j, 10.8523 + 16.9014j]),
    ("lambda z, w: ops.real(z / w).sum()", [0.4 - 0.8j, 0.25 + 0.25j]),
    ("lambda z, w: ops.real(w / z).sum()", [0.3 - 0.4j, -0.2 - 0.4j]),
    ("lambda z, w: ops.sin(z)", [2.03272 + 3.0519j, -1.52764 - 0.165844j]),
    ("lambda z, w: ops.angle(z).sum()", [-0.4 + 0.2j, 0.1 + 0.3j]),
    ("lambda z, w: ops.real(ops.sqrt(z)).sum()", [0.284432 + 0.175789j, 0.27754 - 0.0450385j]),
    ("lambda z, w: ops.real(ops.log(z)).sum()", [0.2 + 0.4j, 0.3 - 0.1j]),
    (
        "lambda z, w: ops.real(ops.tanh(z)).sum()",
        [-0.302001 - 0.568103j, -0.00409412 - 0.00905284j],
    ),
    ("lambda z, w: ops.cast(z, ms.float32).sum()", [1, 1]),
]


@pytest.mark.parametrize("mode", [ms.GRAPH_MODE, ms.PYNATIVE_MODE])
@pytest.mark.parametrize(("text", "expected"), PRINTED)
def test_gradients_as_printed(text: str, expected: Any, mode: int) -> None:
    ms.set_context(mode=mode)
    z = Tensor(np.array([1 + 2j, 3 - 1j], np.complex64))
    w = Tensor(np.array([0.5 - 1j, 2 + 2j], np.complex64))
    if text == PRINTED[4][0]:  # by hand: conj(-w / z^2)
        expected = np.conj(-w.asnumpy() / z.asnumpy() ** 2)
    found = ms.grad(eval(text, {"ops": ops, "ms": ms}))(z, w)
    assert found.dtype == ms.complex64
    np.testing.assert_allclose(found.asnumpy(), expected, rtol=1e-5, atol=1e-6)


def test_at_zero() -> None:
    """A square root at zero has no NaN where the absolute value has a derivative by convention."""
    z = Tensor(np.array([0, 1j]))
    np.testing.assert_array_equal(
        ms.grad(lambda w: ops.real(ops.abs(w)).sum())(z).asnumpy(), [0, 1j]
    )
    cube = ms.grad(lambda w: ops.real(w**3).sum())(z).asnumpy()
    np.testing.assert_allclose(cube, np.conj(3 * np.array([0, 1j]) ** 2), atol=1e-16)


# Transforms -----------------------------------------------------------------------------------------


def wave(z: Tensor) -> Tensor:
    return ops.real(ops.exp(z * 1j) * ops.conj(z)).sum()


def test_jit_and_modes_agree() -> None:
    z = Tensor(PLANE)
    plain = [wave(z).asnumpy(), ms.grad(wave)(z).asnumpy()]
    for _ in range(2):
        np.testing.assert_allclose(ms.jit(wave)(z).asnumpy(), plain[0], rtol=1e-14)
        np.testing.assert_allclose(ms.jit(ms.grad(wave))(z).asnumpy(), plain[1], rtol=1e-14)
    ms.set_context(mode=ms.GRAPH_MODE)
    np.testing.assert_allclose(ms.grad(wave)(z).asnumpy(), plain[1], rtol=1e-14)
    # One plan for one signature; another dtype is another.
    step = ms.jit(lambda w: ops.exp(w))
    assert step(z).dtype == ms.complex128 and step(z.astype(ms.complex64)).dtype == ms.complex64
    assert step(Tensor(PLANE.real)).dtype == ms.float64


def test_jvp_vjp_vmap() -> None:
    z, v = Tensor(PLANE[0]), Tensor(PLANE[1])
    out, slope = ms.jvp(lambda w: ops.exp(w) * w, z, v)
    np.testing.assert_allclose(out.asnumpy(), np.exp(PLANE[0]) * PLANE[0], rtol=1e-14)
    np.testing.assert_allclose(
        slope.asnumpy(), np.exp(PLANE[0]) * (1 + PLANE[0]) * PLANE[1], rtol=1e-13
    )
    back = ms.vjp(lambda w: ops.exp(w), z)[1](v)
    back = back[0] if isinstance(back, tuple) else back
    np.testing.assert_allclose(back.asnumpy(), PLANE[1] * np.conj(np.exp(PLANE[0])), rtol=1e-14)
    mapped = ms.vmap(ms.grad(wave))(Tensor(PLANE))
    np.testing.assert_allclose(mapped.asnumpy(), ms.grad(wave)(Tensor(PLANE)).asnumpy(), rtol=1e-13)


def test_values_are_asked_for_inside() -> None:
    def branch(z: Tensor) -> Tensor:
        return ops.real(z * z).sum() if complex(z[0]).imag > 0 else ops.imag(z).sum()

    up, down = Tensor([1 + 1j, 2.0]), Tensor([1 - 1j, 2.0])
    np.testing.assert_allclose(ms.grad(branch)(up).asnumpy(), np.conj(2 * up.asnumpy()))
    np.testing.assert_allclose(ms.grad(branch)(down).asnumpy(), [1j, 1j])


def test_parameters_train(tmp_path: Any) -> None:
    """|w z - t|^2 by gradient descent, and the parameter's checkpoints."""

    class Scale(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.w = Parameter(Tensor(np.complex64(0.2 - 0.1j)), name="w")

        def construct(self, z: Tensor, t: Tensor) -> Tensor:
            return ops.real(ops.square(ops.abs(self.w * z - t))).mean()

    z = np.exp(1j * np.arange(8)).astype(np.complex64)
    t = (1.5 + 0.5j) * z
    net = Scale()
    step = nn.TrainOneStepCell(net, nn.SGD(net.trainable_params(), 0.2))
    for _ in range(60):
        loss = step(Tensor(z), Tensor(t.astype(np.complex64)))
    assert float(loss) < 1e-10 and net.w.dtype == ms.complex64
    np.testing.assert_allclose(net.w.asnumpy(), 1.5 + 0.5j, atol=1e-5)
    for form in ("ckpt", "safetensors"):
        ms.save_checkpoint(net, str(tmp_path / f"net.{form}"), format=form)
        again = ms.load_checkpoint(str(tmp_path / f"net.{form}"))["w"]
        assert again.dtype == ms.complex64 and again.asnumpy() == net.w.asnumpy()


def test_plans_hold_pairs() -> None:
    text = ms.plan_text(lambda z: ops.exp(z * 1j).sum(), Tensor(PLANE))
    assert "omplex" not in text and "cos" in text


# What there is not ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    ["ops.relu(z)", "ops.floor(z)", "ops.maximum(z, z)", "z < z", "ops.atan2(z, z)", "z // 2", "z % z",
     "ops.ReduceMax()(z)", "ops.Argmax()(z)", "ops.cummax(z, 0)", "ops.erfinv(z)", "ops.ReduceMax()(z)",
     "ops.topk(z, 1)", "ops.sort(z)", "_core.ops.iota([3], ms.complex64, 0)",
     "Tensor([1j], ms.float32)"],
)  # fmt: skip
def test_undefined(text: str) -> None:
    with pytest.raises(TypeError, match=r"(?i)complex|integer or float|not defined") as error:
        eval(text, {"ops": ops, "ms": ms, "z": Tensor(PLANE[0]), "Tensor": Tensor, "_core": _core})
    assert "complex" in str(error.value).lower()


def test_no_jacobians() -> None:
    for transform in (ms.jacrev, ms.jacfwd, ms.hessian):
        with pytest.raises(TypeError, match="complex"):
            transform(lambda z: ops.real(z))(Tensor(PLANE[0]))
    with pytest.raises(TypeError, match="complex"):
        ms.jacrev(lambda x: x * 1j)(Tensor([1.0, 2.0]))
    with pytest.raises(TypeError, match="complex, got Float32"):
        ops.view_as_real(Tensor([1.0]))


#: On numbers of NumPy's widest complex dtype, whose range no result of complex128 leaves.
WIDEST: dict[str, Callable[[Any], Any]] = {
    **{name: getattr(np, name) for name in (
        "abs", "exp", "expm1", "log", "log10", "log2", "sqrt", "square", "reciprocal", "sin",
        "cos", "tan", "sinh", "cosh", "tanh",
    )},
    **{name: getattr(np, "arc" + name[1:]) for name in ("asin", "acos", "atan", "asinh", "acosh", "atanh")},
    "log1p": lambda z: np.where(
        np.abs(z) < 0.5,
        0.5 * np.log1p(z.real * (2 + z.real) + z.imag**2),
        np.log(np.hypot(1 + z.real, z.imag)),
    ) + 1j * np.arctan2(z.imag, 1 + z.real),
    "exp2": lambda z: np.exp(z * np.log(np.longdouble(2))),
    "rsqrt": lambda z: 1 / np.sqrt(z),
    "sigmoid": lambda z: np.where(z.real < 0, np.exp(z) / (1 + np.exp(z)), 1 / (1 + np.exp(-z))),
}  # fmt: skip


#: What need not be right where the length of a number is beyond the dtype, though its parts are not.
OF_LENGTHS = ("square", "asin", "acos", "asinh", "acosh")


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", WIDEST)
def test_functions_everywhere(name: str, dtype: str) -> None:
    """A grid of small, equal, large and huge parts, and both zeros of cuts: the error is a few units in
    the last place of the number's length; a part overflows where it is beyond the dtype, and there alone.
    """
    wide = dtype == "complex128"
    parts = [
        0.0,
        1.0,
        0.5,
        2.0,
        3.0,
        0.3,
        1e-8,
        1e-20,
        20.0,
        40.0,
        1 + 2e-7,
        1 - 2e-7,
        88.6,
        100.0,
        1e8,
    ]
    parts += [1e-170, 1e-300, 1e160, 1e300, 1.7e308, 709.9, 800.0] if wide else [1e-30, 1e37, 3e38]
    line = np.array(parts + [-v for v in parts], "float64" if wide else "float32")
    z = np.empty((len(line), len(line)), dtype)
    z.real, z.imag = line[:, None], line
    if name in OF_LENGTHS:
        z = z[np.hypot(z.real.astype(np.longdouble), z.imag) <= np.finfo(dtype).max]
    got = getattr(ops, name)(Tensor(z.ravel())).asnumpy()
    with np.errstate(all="ignore"):
        want = np.asarray(WIDEST[name](z.ravel().astype(np.clongdouble)), np.clongdouble)
    limits = np.finfo(dtype)
    size = np.maximum(np.hypot(want.real, want.imag), limits.tiny)
    if name == "exp2":  # the angle is y log(2): the error of that product is the result's too
        size = size * np.maximum(1, np.abs(z.imag.ravel()))
    wrong = []
    for k, point in enumerate(z.ravel()):
        for g, w in ((got[k].real, want[k].real), (got[k].imag, want[k].imag)):
            if not np.isfinite(w):
                continue  # poles: what each of both parts is there is a convention
            if abs(w) > limits.max:
                right = np.isinf(g) and (g > 0) == (w > 0)
            else:
                near = abs(w) > limits.max * (1 - 40 * limits.eps)
                right = near or abs(np.longdouble(g) - w) <= 24 * limits.eps * size[k]
            if not right:
                wrong.append(f"{name}({point!r}) is {got[k]!r} for {want[k]!r}")
                break
    assert not wrong, f"{len(wrong)} of {z.size}:\n" + "\n".join(wrong[:20])


@pytest.mark.parametrize(
    "name", ["log", "log2", "log10", "log1p", "sqrt", "square", "atan", "atanh"]
)
def test_infinite_parts(name: str) -> None:
    """As the C standard, and so NumPy, has them."""
    line = np.array([0.0, -0.0, 1.0, -1.0, 2.5, -2.5, np.inf, -np.inf])
    z = np.empty((8, 8), "complex128")
    z.real, z.imag = line[:, None], line
    z = z[np.isinf(z)]
    with np.errstate(all="ignore"):
        want = WIDEST[name](z)
    got = getattr(ops, name)(Tensor(z)).asnumpy()
    np.testing.assert_allclose(got.real, want.real, 1e-15, err_msg=str(z))
    np.testing.assert_allclose(got.imag, want.imag, 1e-15, err_msg=str(z))


# Unsigned integers ----------------------------------------------------------------------------------


@pytest.mark.parametrize("bits", [16, 32, 64])
def test_unsigned(bits: int) -> None:
    kind = f"uint{bits}"
    a = np.array([1, 2, 2**bits - 1], kind)
    x, two = Tensor(a), Tensor(np.array([2, 2, 2], kind))
    assert x.dtype == getattr(ms, kind) and str(x.dtype) == f"UInt{bits}"
    for found, expected in [
        (x + x, a + a), (x - two, a - np.array(2, kind)), (x * x, a * a), (-x, -a), (x[1:], a[1:]),
        (ops.concat([x, x]), np.concatenate([a, a])), (x.astype(ms.int64), a.astype(np.int64)),
        (x.astype(ms.uint8), a.astype(np.uint8)), (x + 1, a + np.array(1, kind)),
        (x.sum(), a.sum()), (ops.cumsum(x, 0), a.cumsum(dtype=kind)),
        (ops.tile(x, (300, 1)).sum(0), np.tile(a, (300, 1)).sum(0)),
        (ops.gather(x, Tensor([2, 0]), 0), a[[2, 0]]), (ops.where(x == two, x, two), np.where(a == 2, a, 2)),
    ]:  # fmt: skip
        np.testing.assert_array_equal(found.asnumpy(), expected)
    assert (x == x).asnumpy().all() and not (x != x).asnumpy().any()
    assert (x < two).asnumpy().tolist() == [True, False, False]
    assert x.astype(ms.float64).asnumpy().tolist() == a.astype(float).tolist()
    assert (x // two).asnumpy().tolist() == (a // 2).tolist()
    assert int(x.max()) == 2**bits - 1 and int(ops.tile(x, (300, 1)).max()) == 2**bits - 1
    assert int(ops.argmax(x)) == 2 and int(x.min()) == 1
    assert ops.maximum(x, two).asnumpy().tolist() == np.maximum(a, 2).tolist()
    assert ops.sort(x, descending=True)[0].asnumpy().tolist() == a[::-1].tolist()
    with pytest.raises(OverflowError, match="does not fit"):
        Tensor([-1], getattr(ms, kind))


# Moments ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("axis", "ddof"), [(None, 0), (0, 0), (1, 1), ((0, 1), 2)])
def test_spread(axis: Any, ddof: int) -> None:
    """Real, as NumPy and PyTorch have it; the derivatives are those of both parts' variances."""
    rng = np.random.default_rng(3)
    z = rng.standard_normal((4, 3)) + 1j * rng.standard_normal((4, 3))
    some = z.copy()
    some[1, 2] = np.nan
    for f, reference, of in (
        (ops.var, np.var, z), (ops.std, np.std, z), (ms.numpy.var, np.var, z),
        (ms.numpy.nanvar, np.nanvar, some), (ms.numpy.nanstd, np.nanstd, some),
    ):  # fmt: skip
        got = f(Tensor(of), axis, ddof=ddof)
        assert got.dtype == ms.float64
        np.testing.assert_allclose(got.asnumpy(), reference(of, axis, ddof=ddof), rtol=1e-14)
    slope = ms.grad(lambda z: ops.var(z, axis, ddof).sum())(Tensor(z)).asnumpy()
    for k, part_of in enumerate((z.real, z.imag)):
        want = ms.grad(lambda x: ops.var(x, axis, ddof).sum())(Tensor(part_of.copy())).asnumpy()
        np.testing.assert_allclose((slope.real, slope.imag)[k], want, rtol=1e-13, atol=1e-16)


def test_the_slope_of_a_spread_without_nan() -> None:
    x = Tensor([1.0, np.nan, 3.0, 7.0], ms.float64)
    got = ms.grad(lambda x: ms.numpy.nanvar(x))(x).asnumpy()
    there = np.array([1.0, 3.0, 7.0])
    np.testing.assert_allclose(got[[0, 2, 3]], 2 / 3 * (there - there.mean()), rtol=1e-14)
    assert got[1] == 0


#: Near 0 and far from it, in all quadrants and on the axes, beside and between the nodes of the integral.
ERROR_POINTS = np.array(
    [0j, 1e-10 + 1e-9j, 0.3 - 0.2j, 0.79 + 0.99j, 0.81 - 0.2j, -1.3 + 1.1j, 2.5, -2.5j, 5.9j, -4 - 4j]
    + [x + 1j * y for x in np.linspace(0.05, 6, 9) for y in (1e-12, 0.3, 1.7, 4.0)]
)  # fmt: skip


@pytest.mark.parametrize("name", ["erf", "erfc"])
def test_error_functions_of_complex_numbers(name):
    """Values and first derivatives, 2 exp(-z^2) / sqrt(pi), by mpmath; the infinities of the real axis."""
    function, sign = getattr(ops, name), 1 if name == "erf" else -1
    wanted = np.array([complex(getattr(mpmath, name)(complex(z))) for z in ERROR_POINTS])
    found = function(Tensor(ERROR_POINTS)).asnumpy()
    assert np.all(np.abs(found - wanted) <= 3e-14 * np.abs(wanted))
    slope = ms.grad(lambda z: ops.sum(ops.real(function(z))))(Tensor(ERROR_POINTS)).asnumpy()
    exact = sign * 2 / np.sqrt(np.pi) * np.exp(-(ERROR_POINTS**2))
    assert np.all(np.abs(np.conj(slope) - exact) <= 1e-11 * np.maximum(np.abs(exact), 1))
    ends = function(Tensor(np.array([np.inf + 0j, -np.inf + 0j, 1e300 + 0j]))).asnumpy()
    np.testing.assert_array_equal(ends, [1, -1, 1] if name == "erf" else [0, 2, 0])


@pytest.mark.parametrize("order", [0, 1, 2, 3, 4, 5, 6.5, 1.5, 1 + 1j])
def test_powers_of_zero_to_a_tensor(order):
    """Value and derivatives at 0 of z^b for b of a tensor: of z^0 to z^4 exact, else those of limits."""
    b, zero = Tensor(np.array([order], complex)), Tensor(np.array([0j]))

    def real(z, b=b):
        return ops.sum(ops.real(z**b))

    def slopes(z):
        return ops.sum(ops.real(ms.grad(real)(z)))

    assert complex((zero**b).asnumpy()[0]) == (1 if order == 0 else 0)
    np.testing.assert_allclose(ms.grad(real)(zero).asnumpy(), [1.0 if np.real(order) == 1 else 0.0])
    if np.real(order) > 2 or order in (0, 1, 2):
        np.testing.assert_allclose(ms.grad(slopes)(zero).asnumpy(), [2.0 if order == 2 else 0.0])
    np.testing.assert_allclose(ms.grad(lambda b: real(zero, b))(b).asnumpy(), [0.0])


def test_infinite_parts_leave_zeros():
    """As NumPy: no NaN from an infinite factor and a zero; atanh keeps its digits beside -1 and 1."""
    z = np.array([1e8 + 0j, np.inf + 0j, -1e8 + 0j])
    for ours, theirs in ((ops.exp, np.exp), (ops.cosh, np.cosh), (ops.sinh, np.sinh)):
        with np.errstate(over="ignore"):
            np.testing.assert_array_equal(ours(Tensor(z)).asnumpy(), theirs(z))
    z = np.array(
        [-1 + 1e-8j, 1 + 1e-200j, 1e200 + 1j, -1 - 1e-30j, np.inf + 0j, 0.3 - 0.2j, 1e-20 + 0j]
    )
    found = ops.atanh(Tensor(z)).asnumpy()
    np.testing.assert_allclose(found.real, np.arctanh(z).real, 1e-14)
    np.testing.assert_allclose(found.imag, np.arctanh(z).imag, 1e-14)


def test_sizes_are_real_in_mint_and_numpy() -> None:
    """ops' are complex, as MindSpore's."""
    z, m = PLANE[0], PLANE[:2, :2] + 1j * np.eye(2)
    values = np.linalg.svd(m, compute_uv=False)
    found = {
        "abs": (np.abs(z), mint.abs, gnp.abs, gnp.absolute, gnp.fabs),
        "norm": (np.linalg.norm(z), mint.norm, mint.linalg.norm, mint.linalg.vector_norm, gnp.norm,
                 gnp.linalg.norm, gnp.linalg.vector_norm),
    }  # fmt: skip
    for wanted, *functions in found.values():
        for function in functions:
            given = function(Tensor(z))
            assert given.dtype == ms.float64
            np.testing.assert_allclose(given.asnumpy(), wanted, 1e-14)
            assert function(Tensor(z.astype(np.complex64))).dtype == ms.float32
    for order in ("fro", "nuc", 1, np.inf):
        for function in (mint.linalg.matrix_norm, mint.linalg.norm):
            given = function(Tensor(m), order, (0, 1))
            np.testing.assert_allclose(given.asnumpy(), np.linalg.norm(m, order), 1e-14)
            assert given.dtype == ms.float64
    for given in (gnp.linalg.svd(Tensor(m), compute_uv=False), gnp.linalg.svd(Tensor(m))[1]):
        assert given.dtype == ms.float64
        np.testing.assert_allclose(given.asnumpy(), values, 1e-14)
    assert ops.abs(Tensor(z)).dtype == ops.norm(Tensor(z)).dtype == ms.complex128
    product = mint.vdot(Tensor(PLANE[0]), Tensor(PLANE[1])).asnumpy()
    np.testing.assert_allclose(product, np.vdot(PLANE[0], PLANE[1]), 1e-14)


def test_close_complex_numbers() -> None:
    nan, inf = np.nan, np.inf
    a = np.array([1 + 1j, 1 + 1j, 1e-9j, complex(inf, 1), complex(nan, 0), complex(inf, 1), 3 + 4j])
    b = np.array(
        [1 + 1j, 1 + 1.1j, 0, complex(inf, 1), complex(0, nan), complex(1, inf), 3 + 4.00004j]
    )
    for equal_nan in (False, True):
        wanted = np.isclose(a, b, equal_nan=equal_nan)
        found = ops.isclose(Tensor(a), Tensor(b), equal_nan=equal_nan).asnumpy()
        np.testing.assert_array_equal(found, wanted)
    assert mint.allclose(Tensor(a[:1]), Tensor(b[:1]))
    assert not gnp.allclose(Tensor(a[:2]), Tensor(b[:2]))


def test_logsumexp_of_complex_numbers() -> None:
    found = ops.logsumexp(Tensor(PLANE), 1).asnumpy()
    np.testing.assert_allclose(found, np.log(np.exp(PLANE).sum(1)), 1e-13)
    far = ops.logsumexp(Tensor(PLANE[0] + 1e4), 0).asnumpy()
    np.testing.assert_allclose(far, np.log(np.exp(PLANE[0]).sum()) + 1e4, 1e-13)

    def both(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        w = ops.logsumexp(complex_of(x, y), 0)
        return part(w, 0), part(w, 1)

    check_grads(both, [POINTS.real, POINTS.imag], order=2)
