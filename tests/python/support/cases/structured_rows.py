"""The structured rows of the test table: for each op with a shape rule of its own, its cases.

A case is one way to call the op: a function of tensors, the same in NumPy, and the shapes of its
float operands. test_structured.py checks values in all dtypes and derivatives to the case's order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from attention_rows import attention_cases
from window_rows import window_cases

import gradcell as ms
from gradcell import Tensor, _core, ops

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Case:
    """One way to call one op."""

    op: str  # in the op table, or by MindSpore's name where it is composed of others
    label: str
    run: Callable[..., Any]  # tensors to a tensor or a tuple of tensors
    reference: Callable[..., Any]  # the same on NumPy arrays
    shapes: tuple[Shape, ...]
    order: int = 3  # the highest derivative checked; 0: values only
    moves: bool = False  # only moves elements, so integers and bools go through too

    def operands(self, seed: int = 0) -> list[np.ndarray]:
        """Distinct numbers between -1.5 and 1.5, no two closer than the differences' step."""
        rng = np.random.default_rng(seed)
        found = []
        for shape in self.shapes:
            count = int(np.prod(shape))
            values = np.linspace(-1.5, 1.5, count + 1)[:count] + rng.uniform(0.0, 0.5 / (count + 1))
            found.append(rng.permutation(values).reshape(shape))
        return found


def axes_of(axis: Any) -> Any:
    """NumPy's form of a MindSpore axis: () and None are all of them."""
    if axis is None or axis in ((), []):
        return None
    return tuple(axis) if isinstance(axis, (tuple, list)) else axis


def swap(x: np.ndarray, flag: bool) -> np.ndarray:
    return np.swapaxes(x, -1, -2) if flag else x


def called(name: str, *settings: Any) -> Callable[..., Any]:
    """ops.<name>(*settings), looked up when it is called: a missing op fails its own cases only."""
    return lambda *xs: getattr(ops, name)(*settings)(*xs)


def function(name: str) -> Callable[..., Any]:
    return lambda *xs: getattr(ops, name)(*xs)


def matmul_cases() -> Iterator[Case]:
    flags = [(a, b) for a in (False, True) for b in (False, True)]
    for ta, tb in flags:

        def product(x: np.ndarray, y: np.ndarray, ta: bool = ta, tb: bool = tb) -> np.ndarray:
            return swap(x, ta) @ swap(y, tb)

        for m, k, n in [(2, 3, 4), (1, 3, 1), (3, 1, 2), (2, 0, 3), (0, 2, 3), (2, 3, 0)]:
            shapes = ((k, m) if ta else (m, k), (n, k) if tb else (k, n))
            yield Case(
                "MatMul", f"{ta}-{tb}-{m}x{k}x{n}", called("MatMul", ta, tb), product, shapes
            )
        for first, second in [((2,), (2,)), ((2, 1), (1, 3)), ((3,), (1,)), ((0,), (0,))]:
            a = (4, 3) if ta else (3, 4)
            b = (2, 4) if tb else (4, 2)
            label = f"{ta}-{tb}-{first}-{second}"
            yield Case("BatchMatMul", label, called("BatchMatMul", ta, tb), product,
                       (first + a, second + b))  # fmt: skip
        big = ((130, 70) if ta else (70, 130), (65, 130) if tb else (130, 65))
        yield Case("MatMul", f"{ta}-{tb}-big", called("MatMul", ta, tb), product, big, order=1)
    pairs: list[tuple[Shape, Shape]] = [
        ((3,), (3,)),
        ((2, 3), (3,)),
        ((3,), (3, 2)),
        ((4, 2, 3), (3,)),
        ((3,), (4, 3, 2)),
        ((2, 3), (4, 3, 2)),
        ((4, 2, 3), (3, 2)),
        ((2, 1, 2, 3), (4, 3, 2)),
        ((1, 2, 3), (5, 3, 1)),
        ((0,), (0,)),
        ((2, 0), (0, 3)),
        ((0, 2, 3), (3, 2)),
    ]
    for a, b in pairs:
        yield Case("MatMul", f"matmul-{a}-{b}", function("matmul"), np.matmul, (a, b))
    yield Case("MatMul", "operator", lambda x, y: x @ y, np.matmul, ((2, 3), (3, 2)))
    yield Case("MatMul", "squared", lambda x: ops.matmul(x, x), lambda x: x @ x, ((3, 3),))
    yield Case("MatMul", "gram", lambda x: ops.matmul(x, x.T), lambda x: x @ x.T, ((3, 2),))
    yield Case("BatchMatMul", "bmm", function("bmm"), np.matmul, ((2, 2, 3), (2, 3, 2)))


REDUCTIONS: dict[str, Callable[..., Any]] = {
    "ReduceSum": np.sum,
    "ReduceMean": np.mean,
    "ReduceMax": np.max,
    "ReduceMin": np.min,
    "ReduceProd": np.prod,
}
AXES: list[Any] = [(), 0, -1, (0, 2), (-1, 0), (0, 1, 2), [1]]


def reduced(x: Any, name: str, axis: Any) -> Any:
    """By the Tensor method. prod takes its axis by position only: it has two keyword forms."""
    if axis is None:
        return getattr(x, name)()
    return x.prod(axis) if name == "prod" else getattr(x, name)(axis=axis)


def reduction_cases() -> Iterator[Case]:
    for op, reference in REDUCTIONS.items():
        for axis in AXES:
            for keep in (False, True):
                yield Case(
                    op,
                    f"{axis}-{keep}",
                    lambda x, op=op, axis=axis, keep=keep: getattr(ops, op)(keep)(x, axis),
                    lambda x, f=reference, a=axis, k=keep: f(x, axis=axes_of(a), keepdims=k),
                    ((2, 3, 2),),
                )
        yield Case(op, "scalar", lambda x, op=op: getattr(ops, op)()(x), reference, ((),))
        yield Case(op, "width-1", lambda x, op=op: getattr(ops, op)()(x, 1),
                   lambda x, f=reference: f(x, axis=1), ((3, 1),))  # fmt: skip
        for axis in (0, 1, ()):
            if op == "ReduceProd":
                yield Case(op, f"big-{axis}", lambda x, a=axis: ops.ReduceProd()(x * 0.1 + 1.0, a),
                           lambda x, a=axis: np.prod(x * 0.1 + 1.0, axis=axes_of(a)), ((70, 9),),
                           order=1)  # fmt: skip
                continue
            yield Case(op, f"big-{axis}", lambda x, op=op, a=axis: getattr(ops, op)()(x, a),
                       lambda x, f=reference, a=axis: f(x, axis=axes_of(a)), ((300, 70),),
                       order=1 if op in ("ReduceSum", "ReduceMean") else 0)  # fmt: skip
    for axis in (None, 0, -1, (0, 1)):
        for name in ("sum", "mean", "prod", "max", "min"):
            if name == "prod" and isinstance(axis, tuple):
                continue
            yield Case(
                f"Reduce{name.capitalize()}",
                f"Tensor.{name}-{axis}",
                lambda x, n=name, a=axis: reduced(x, n, a),
                lambda x, n=name, a=axis: getattr(x, n)(axis=a),
                ((3, 4),),
            )
        for name in ("amax", "amin", "mean"):
            yield Case(
                f"Reduce{name.removeprefix('a').capitalize()}",
                f"ops.{name}-{axis}",
                lambda x, n=name, a=axis: getattr(ops, n)(x, a),
                lambda x, n=name, a=axis: getattr(np, n)(x, axis=a),
                ((3, 4),),
            )
    yield Case("ReduceSum", "ops.sum", lambda x: ops.sum(x, 1, True),
               lambda x: x.sum(1, keepdims=True), ((3, 4),))  # fmt: skip
    yield Case("ReduceMax", "ops.max", lambda x: ops.max(x, 1)[0], lambda x: x.max(1), ((3, 4),))
    yield Case("ReduceMin", "ops.min", lambda x: ops.min(x, 0)[0], lambda x: x.min(0), ((3, 4),))
    for op, shape, axis in [
        ("ReduceSum", (0, 3), 0),
        ("ReduceSum", (0, 3), 1),
        ("ReduceSum", (0,), ()),
        ("ReduceProd", (0, 3), 0),
        ("ReduceProd", (3, 0), 0),
        ("ReduceMax", (0, 3), 1),
        ("ReduceMin", (3, 0), 0),
        ("ReduceMean", (0, 3), 1),
    ]:
        yield Case(op, f"empty-{shape}-{axis}", lambda x, op=op, a=axis: getattr(ops, op)()(x, a),
                   lambda x, f=REDUCTIONS[op], a=axis: f(x, axis=axes_of(a)), (shape,))  # fmt: skip


def arg_cases() -> Iterator[Case]:
    """The dtypes are checked apart."""
    for axis in (0, 1, -1):
        yield Case("ArgMax", f"{axis}", lambda x, a=axis: ops.Argmax(a)(x),
                   lambda x, a=axis: x.argmax(a), ((3, 4),), order=0)  # fmt: skip
        yield Case("ArgMin", f"{axis}", lambda x, a=axis: ops.Argmin(a)(x),
                   lambda x, a=axis: x.argmin(a), ((3, 4),), order=0)  # fmt: skip
        yield Case("ArgMax", f"ops.argmax-{axis}", lambda x, a=axis: ops.argmax(x, a, True),
                   lambda x, a=axis: x.argmax(a, keepdims=True), ((3, 4),), order=0)  # fmt: skip
    yield Case("ArgMax", "all", function("argmax"), np.argmax, ((3, 4),), order=0)
    yield Case("ArgMin", "all", function("argmin"), np.argmin, ((3, 4),), order=0)
    yield Case("ArgMax", "method", lambda x: x.argmax(axis=1), lambda x: x.argmax(1), ((3, 4),),
               order=0)  # fmt: skip
    yield Case("ArgMin", "method", lambda x: x.argmin(axis=1), lambda x: x.argmin(1), ((3, 4),),
               order=0)  # fmt: skip
    yield Case("ArgMax", "big", lambda x: ops.argmax(x, 1), lambda x: x.argmax(1), ((130, 70),),
               order=0)  # fmt: skip


def numpy_cumsum(x: np.ndarray, axis: int, exclusive: bool, reverse: bool) -> np.ndarray:
    if reverse:
        return np.flip(numpy_cumsum(np.flip(x, axis), axis, exclusive, False), axis)
    total = np.cumsum(x, axis)
    return total - x if exclusive else total


def cumsum_cases() -> Iterator[Case]:
    for axis in (0, 1, -1, -2):
        for exclusive in (False, True):
            for reverse in (False, True):
                yield Case(
                    "CumSum",
                    f"{axis}-{exclusive}-{reverse}",
                    lambda x, a=axis, e=exclusive, r=reverse: ops.CumSum(e, r)(x, a),
                    lambda x, a=axis, e=exclusive, r=reverse: numpy_cumsum(x, a, e, r),
                    ((2, 3),),
                )
    yield Case("CumSum", "ops.cumsum", lambda x: ops.cumsum(x, 1), lambda x: x.cumsum(1), ((2, 3),))
    yield Case("CumSum", "method", lambda x: x.cumsum(1), lambda x: x.cumsum(1), ((2, 3),))
    yield Case("CumSum", "empty", lambda x: ops.cumsum(x, 0), lambda x: x.cumsum(0), ((0, 3),))
    yield Case("CumSum", "big", lambda x: ops.cumsum(x, 0) * 0.01, lambda x: x.cumsum(0) * 0.01,
               ((300, 5),), order=1)  # fmt: skip


def numpy_cumprod(x: np.ndarray, axis: int, exclusive: bool, reverse: bool) -> np.ndarray:
    if reverse:
        return np.flip(numpy_cumprod(np.flip(x, axis), axis, exclusive, False), axis)
    if exclusive:
        shape = list(x.shape)
        shape[axis] = 1
        x = np.concatenate([np.ones(shape, x.dtype), np.delete(x, -1, axis)], axis)
    return np.cumprod(x, axis).astype(x.dtype)


def numpy_fourier(x: np.ndarray, axis: int, inverse: bool) -> np.ndarray:
    """The transform of pairs [..., 2], without a factor."""
    z = x[..., 0] + 1j * x[..., 1]
    axis %= z.ndim
    y = np.fft.ifft(z, axis=axis) * z.shape[axis] if inverse else np.fft.fft(z, axis=axis)
    return np.stack([y.real, y.imag], -1).astype(x.dtype)


def fourier_cases() -> Iterator[Case]:
    for shape, axis in [((1, 2), 0), ((2, 2), 0), ((5, 2), 0), ((3, 4, 2), 0), ((3, 4, 2), 1),
                        ((2, 7, 3, 2), 1), ((0, 3, 2), 1), ((13, 3, 2), 0)]:  # fmt: skip
        for inverse in (False, True):
            yield Case("FourierTransform", f"{shape}-{axis}-{inverse}",
                       lambda x, a=axis, i=inverse: _core.ops.fourier(x, a, i),
                       lambda x, a=axis, i=inverse: numpy_fourier(x, a, i), (shape,))  # fmt: skip
    for shape, axis in [((300, 64, 2), 1), ((64, 300, 2), 0), ((2, 1009, 2), 1)]:
        yield Case("FourierTransform", f"big-{shape}-{axis}",
                   lambda x, a=axis: _core.ops.fourier(x, a, False) * 0.01,
                   lambda x, a=axis: numpy_fourier(x, a, False) * 0.01, (shape,), order=0)  # fmt: skip


def cumprod_cases() -> Iterator[Case]:
    for axis in (0, 1, -1, -2):
        for exclusive in (False, True):
            for reverse in (False, True):
                yield Case(
                    "CumProd",
                    f"{axis}-{exclusive}-{reverse}",
                    lambda x, a=axis, e=exclusive, r=reverse: ops.CumProd(e, r)(x, a),
                    lambda x, a=axis, e=exclusive, r=reverse: numpy_cumprod(x, a, e, r),
                    ((2, 3),),
                )
    yield Case(
        "CumProd", "ops.cumprod", lambda x: ops.cumprod(x, 1), lambda x: x.cumprod(1), ((2, 5),)
    )
    yield Case("CumProd", "method", lambda x: x.cumprod(1), lambda x: x.cumprod(1), ((2, 3),))
    yield Case("CumProd", "empty", lambda x: ops.cumprod(x, 0), lambda x: x.cumprod(0), ((0, 3),))


def numpy_recurrence(
    a: np.ndarray, b: np.ndarray, axis: int, exclusive: bool, reverse: bool
) -> np.ndarray:
    """y[i] = a[i] y[i - 1] + b[i], one element after the other; exclusive: y[i - 1] at i."""
    a, b = (np.moveaxis(np.asarray(x), axis, 0)[:: -1 if reverse else 1] for x in (a, b))
    results, y = [], np.zeros(b.shape[1:], b.dtype)
    for factor, term in zip(a, b, strict=True):
        before, y = y, factor * y + term
        results.append(before if exclusive else y)
    y = np.stack(results)[:: -1 if reverse else 1] if results else b
    return np.moveaxis(y, 0, axis)


def recurrence_cases() -> Iterator[Case]:
    for axis in (0, 1, -1):
        for exclusive in (False, True):
            for reverse in (False, True):
                yield Case(
                    "LinearRecurrence",
                    f"{axis}-{exclusive}-{reverse}",
                    lambda a, b, x=axis, e=exclusive, r=reverse: _core.ops.linear_recurrence(
                        a, b, x, e, r
                    ),
                    lambda a, b, x=axis, e=exclusive, r=reverse: numpy_recurrence(a, b, x, e, r),
                    ((2, 3), (2, 3)),
                )
    for shape, axis in (((3, 2, 9), 0), ((2, 17), 1), ((0, 3), 0), ((2, 1), 1)):
        yield Case(
            "LinearRecurrence",
            f"{shape}-{axis}",
            lambda a, b, x=axis: _core.ops.linear_recurrence(a, b, x),
            lambda a, b, x=axis: numpy_recurrence(a, b, x, False, False),
            (shape, shape),
            order=2,
        )
    for shape, axis in (((40, 300), 0), ((300, 40), 1), ((20, 30, 4), 1), ((2000,), 0)):
        for reverse in (False, True):
            yield Case(
                "LinearRecurrence",
                f"big-{shape}-{axis}-{reverse}",
                lambda a, b, x=axis, r=reverse: ops.linear_recurrence(a * 0.25, b, x, reverse=r),
                lambda a, b, x=axis, r=reverse: numpy_recurrence(a * 0.25, b, x, False, r),
                (shape, shape),
                order=0,
            )
    yield Case(
        "LinearRecurrence", "broadcast",
        lambda a, b: ops.linear_recurrence(a, b, 1),
        lambda a, b: numpy_recurrence(np.broadcast_to(a, (3, 4)), b, 1, False, False),
        ((4,), (3, 4)))  # fmt: skip
    for reverse in (False, True):
        yield Case(
            "LinearRecurrence", f"initial-{reverse}",
            lambda b, y, r=reverse: ops.linear_recurrence(0.5, b, 1, y, r),
            lambda b, y, r=reverse: numpy_recurrence(
                np.full((3, 4), 0.5, b.dtype),
                np.concatenate([b[:, :3], b[:, 3:] + y / 2], 1)
                if r
                else np.concatenate([b[:, :1] + y / 2, b[:, 1:]], 1),
                1, False, r),
            ((3, 4), (3, 1)), order=2)  # fmt: skip


def moving(
    op: str, label: str, run: Callable[..., Any], reference: Callable[..., Any], *shapes: Shape
) -> Case:
    return Case(op, label, run, reference, shapes, moves=True)


def shape_cases() -> Iterator[Case]:
    for to in [(-1,), (6, 2), (2, -1, 2), (1, 12, 1), (3, 4)]:
        yield moving("Reshape", f"{to}", lambda x, s=to: ops.reshape(x, s),
                     lambda x, s=to: x.reshape(s), (3, 4))  # fmt: skip
    yield moving("Reshape", "object", lambda x: ops.Reshape()(x, (4, 3)),
                 lambda x: x.reshape(4, 3), (3, 4))  # fmt: skip
    yield moving("Reshape", "method", lambda x: x.reshape(4, -1), lambda x: x.reshape(4, 3), (3, 4))
    yield moving("Reshape", "view", lambda x: x.view(2, 6), lambda x: x.reshape(2, 6), (3, 4))
    yield moving("Reshape", "to-scalar", lambda x: ops.reshape(x, ()), lambda x: x.reshape(()),
                 (1, 1))  # fmt: skip
    yield moving("Reshape", "empty", lambda x: ops.reshape(x, (3, 0)), lambda x: x.reshape(3, 0),
                 (0, 2))  # fmt: skip
    for axis in [None, 0, -1, (0, 2), (-1, 0)]:
        yield moving("Squeeze", f"{axis}", lambda x, a=axis: ops.squeeze(x, a),
                     lambda x, a=axis: x.squeeze(a), (1, 3, 1))  # fmt: skip
    yield moving(
        "Squeeze", "object", lambda x: ops.Squeeze(1)(x), lambda x: x.squeeze(1), (3, 1, 2)
    )
    yield moving("Squeeze", "method", lambda x: x.squeeze(), lambda x: x.squeeze(), (1, 3, 1))
    for axis in (0, 1, 2, -1, -3):
        yield moving("ExpandDims", f"{axis}", lambda x, a=axis: ops.expand_dims(x, a),
                     lambda x, a=axis: np.expand_dims(x, a), (3, 2))  # fmt: skip
    yield moving("ExpandDims", "object", lambda x: ops.ExpandDims()(x, 1),
                 lambda x: np.expand_dims(x, 1), (3, 2))  # fmt: skip
    yield moving("ExpandDims", "unsqueeze", lambda x: ops.unsqueeze(x, 0), lambda x: x[None], ())
    for order in [(0, 1, 2), (2, 1, 0), (1, 0, 2), (0, 2, 1), (2, 0, 1), (-1, 0, 1)]:
        yield moving("Transpose", f"{order}", lambda x, p=order: ops.transpose(x, p),
                     lambda x, p=order: x.transpose(p), (2, 3, 4))  # fmt: skip
    yield moving("Transpose", "object", lambda x: ops.Transpose()(x, (1, 0)), np.transpose, (2, 3))
    yield moving("Transpose", "T", lambda x: x.T, np.transpose, (2, 3, 4))
    yield moving("Transpose", "method", lambda x: x.transpose(2, 0, 1),
                 lambda x: x.transpose(2, 0, 1), (2, 3, 4))  # fmt: skip
    yield moving("Transpose", "swapaxes", lambda x: ops.swapaxes(x, 0, -1),
                 lambda x: x.swapaxes(0, -1), (2, 3, 4))  # fmt: skip
    yield moving("Transpose", "empty", lambda x: ops.transpose(x, (1, 0)), np.transpose, (0, 3))
    yield Case("Transpose", "big", lambda x: ops.transpose(x, (1, 0)), np.transpose, ((130, 70),),
               order=1, moves=True)  # fmt: skip
    for shape, to in [((2, 3), (4, 2, 3)), ((2, 1), (2, 5)), ((), (3, 2)), ((1,), (4,)),
                      ((3, 1), (2, 3, 4)), ((1, 3), (0, 3)), ((2, 3), (2, 3))]:  # fmt: skip
        yield moving("BroadcastTo", f"{shape}-{to}", lambda x, s=to: ops.broadcast_to(x, s),
                     lambda x, s=to: np.broadcast_to(x, s), shape)  # fmt: skip
    yield moving("BroadcastTo", "keep", lambda x: ops.broadcast_to(x, (4, -1, 3)),
                 lambda x: np.broadcast_to(x, (4, 2, 3)), (2, 3))  # fmt: skip
    yield moving("BroadcastTo", "object", lambda x: ops.BroadcastTo((2, 3))(x),
                 lambda x: np.broadcast_to(x, (2, 3)), (3,))  # fmt: skip
    for reps in [(2,), (2, 3), (2, 1, 2), (1, 1), (0, 2)]:
        yield moving("Tile", f"{reps}", lambda x, r=reps: ops.tile(x, r),
                     lambda x, r=reps: np.tile(x, r), (2, 3))  # fmt: skip
    yield moving("Tile", "object", lambda x: ops.Tile()(x, (2, 2)), lambda x: np.tile(x, (2, 2)),
                 (3,))  # fmt: skip


def joining_cases() -> Iterator[Case]:
    for axis in (0, 1, -1):
        shapes: list[Shape] = [(2, 3), (1, 3), (4, 3)] if axis == 0 else [(2, 1), (2, 3), (2, 0)]
        yield moving("Concat", f"{axis}", lambda *xs, a=axis: ops.concat(xs, a),
                     lambda *xs, a=axis: np.concatenate(xs, a), *shapes)  # fmt: skip
    yield moving("Concat", "object", lambda x, y: ops.Concat(1)((x, y)),
                 lambda x, y: np.concatenate([x, y], 1), (2, 3), (2, 2))  # fmt: skip
    yield moving("Concat", "cat", lambda x, y: ops.cat([x, y]), lambda x, y: np.concatenate([x, y]),
                 (2,), (3,))  # fmt: skip
    yield moving("Concat", "twice", lambda x: ops.concat((x, x), 1),
                 lambda x: np.concatenate([x, x], 1), (2, 3))  # fmt: skip
    yield moving("Concat", "one", lambda x: ops.concat((x,), 0), lambda x: x, (2, 3))
    for axis in (0, 1, -1, -2):
        yield moving("Stack", f"{axis}", lambda *xs, a=axis: ops.stack(xs, a),
                     lambda *xs, a=axis: np.stack(xs, a), (2, 3), (2, 3), (2, 3))  # fmt: skip
    yield moving("Stack", "object", lambda x, y: ops.Stack(1)([x, y]),
                 lambda x, y: np.stack([x, y], 1), (3,), (3,))  # fmt: skip
    yield moving("Stack", "scalars", lambda x, y: ops.stack((x, y)), lambda x, y: np.stack([x, y]),
                 (), ())  # fmt: skip
    for size, axis in [(2, 0), (2, 1), (3, -1), (4, 0)]:
        yield moving("Split", f"{size}-{axis}", lambda x, n=size, a=axis: ops.split(x, n, a),
                     lambda x, n=size, a=axis: np.split(x, range(n, x.shape[a], n), a),
                     (4, 5))  # fmt: skip
    yield moving("Split", "sections", lambda x: ops.split(x, (1, 3, 1), 1),
                 lambda x: np.split(x, [1, 4], 1), (2, 5))  # fmt: skip
    yield moving("Split", "object", lambda x: ops.Split(1, 2)(x), lambda x: np.split(x, 2, 1),
                 (3, 4))  # fmt: skip
    yield moving("Split", "one-used", lambda x: ops.split(x, 2, 0)[1], lambda x: x[2:], (4, 3))


#: What may stand between brackets, for a (4, 3, 5) tensor.
INDICES: list[Any] = [
    1,
    -1,
    slice(1, None),
    slice(None, -1),
    slice(None, None, 2),
    slice(None, None, -1),
    slice(3, 0, -2),
    slice(-1, -4, -2),
    slice(1, 1),
    slice(10, None),
    slice(-100, 100),
    None,
    Ellipsis,
    (Ellipsis, 0),
    (1, Ellipsis, None, slice(None, None, -1)),
    (0, 1, 2),
    (slice(None), 1),
    (slice(None), None, 1),
    (slice(None), slice(None), slice(-1, None, -3)),
    (slice(2, 0, -1), Ellipsis, slice(1, 4, 2)),
    (None, 2, None, Ellipsis, -1),
    (slice(None), slice(3, 1), 0),
    (),
    np.int64(2),
]
#: The same with arrays in it, which become tensors.
ARRAY_INDICES: list[Any] = [
    np.array([0, 2, 0]),
    np.array([[1, -1], [3, 3]]),
    (slice(None), np.array([2, 0, 2, 2])),
    (np.array([0, 3, 0]), np.array([1, 2, 1])),
    (np.array([[0], [2]]), np.array([1, 2])),
    (1, np.array([0, 0])),
    (slice(None), np.array([1, 0]), slice(None, None, 2)),
    (Ellipsis, np.array([4, 4, 0])),
    (slice(None, None, -1), slice(1, None), np.array([-1, 0])),
    np.array([True, False, True, True]),
    (slice(None), np.array([False, True, True])),
    np.array([2]),
    [0, 2],
    (1, slice(None), np.array([1, 0, 3])),
    (np.array([1, 0, 3]), slice(None), 2),
    (slice(None), 2, np.array([1, 0, 3])),
    (0, None, np.array([1, 0])),
    (np.array([1, 0]), None, np.array([1, 2])),
    (np.array([[1], [0]]), Ellipsis, np.array([1, 2])),
    (None, np.array([[1], [0]]), Ellipsis, np.array([1, 2, 1]), np.array([0, 0, 3])),
]


def to_tensors(index: Any) -> Any:
    if isinstance(index, tuple):
        return tuple(to_tensors(i) for i in index)
    return Tensor(index) if isinstance(index, np.ndarray) else index


def index_label(index: Any) -> str:
    text = repr(index.tolist() if isinstance(index, np.ndarray) else index)
    for long, short in [
        ("slice", ""),
        ("array", ""),
        ("None", "_"),
        ("Ellipsis", "..."),
        (" ", ""),
    ]:
        text = text.replace(long, short)
    return text


def index_cases() -> Iterator[Case]:
    for index in INDICES:
        yield moving("StridedSlice", f"x[{index_label(index)}]", lambda x, i=index: x[i],
                     lambda x, i=index: x[i], (4, 3, 5))  # fmt: skip
    for index in ARRAY_INDICES:
        yield moving("Gather", f"x[{index_label(index)}]", lambda x, i=index: x[to_tensors(i)],
                     lambda x, i=index: x[i], (4, 3, 5))  # fmt: skip
    yield moving("StridedSlice", "overlapping", lambda x: x[1:] + x[:-1], lambda x: x[1:] + x[:-1],
                 (5, 2))  # fmt: skip
    yield moving("StridedSlice", "nested", lambda x: x[1:, ::-1][::2, 1:],
                 lambda x: x[1:, ::-1][::2, 1:], (5, 4))  # fmt: skip
    for begin, end, strides in [
        ((0, 1), (3, 3), (1, 1)),
        ((0, 3), (4, 0), (2, -1)),
        ((1, -2), (-1, 100), (1, 1)),
        ((3, 3), (0, 0), (-2, -1)),
    ]:
        yield moving(
            "StridedSlice",
            f"{begin}-{end}-{strides}",
            lambda x, b=begin, e=end, s=strides: ops.strided_slice(x, b, e, s),
            lambda x, b=begin, e=end, s=strides: x[tuple(map(slice, b, e, s))],
            (4, 4),
        )
    yield moving("StridedSlice", "masks",
                 lambda x: ops.StridedSlice(begin_mask=1, end_mask=2, shrink_axis_mask=4)(
                     x, (2, 1, 3), (3, 2, 4), (1, 1, 1)),
                 lambda x: x[:3, 1:, 3], (4, 3, 5))  # fmt: skip


def gather_cases() -> Iterator[Case]:
    for axis in (0, 1, -1):
        for indices in ([0, 2, 0, 0], [[1, 2], [-1, 1]], 1, []):
            at = np.array(indices, dtype=np.int32)
            yield moving("Gather", f"{axis}-{indices}",
                         lambda x, i=at, a=axis: ops.gather(x, Tensor(i), a),
                         lambda x, i=at, a=axis: np.take(x, i, a), (4, 3))  # fmt: skip
    columns = np.array([2, 0, 2], dtype=np.int64)
    yield moving("Gather", "object", lambda x: ops.Gather()(x, Tensor(columns), 1),
                 lambda x: x[:, columns],
                 (2, 3))  # fmt: skip
    rows = np.array([[0, 2], [1, 1]], dtype=np.int32)
    yield moving("Gather", "batch_dims", lambda x: ops.gather(x, Tensor(rows), 1, 1),
                 lambda x: np.take_along_axis(x, rows, 1), (2, 3))  # fmt: skip
    yield moving("Label", "classes", lambda x: _core.ops.label(x, Tensor(columns), 0),
                 lambda x: x[columns],
                 (4, 3))  # fmt: skip
    yield moving("Gather", "gather_elements", lambda x: ops.gather_elements(x, 1, Tensor(rows)),
                 lambda x: np.take_along_axis(x, rows, 1), (2, 3))  # fmt: skip

    def scattered(x: np.ndarray, updates: np.ndarray, indices: np.ndarray) -> np.ndarray:
        total = x.copy()
        np.add.at(total, tuple(np.moveaxis(indices, -1, 0)), updates)
        return total

    for indices, shape in [([[0], [2], [0]], (3, 2)), ([[0, 1], [3, 0], [0, 1]], (3,))]:
        at = np.array(indices, dtype=np.int32)
        yield Case("ScatterAdd", f"tensor_scatter_add-{indices}",
                   lambda x, u, i=at: ops.tensor_scatter_add(x, Tensor(i), u),
                   lambda x, u, i=at: scattered(x, u, i), ((4, 2), shape))  # fmt: skip


def select_cases() -> Iterator[Case]:
    mask = np.array([[True, False, True], [False, False, True]])
    yield moving("Select", "select", lambda x, y: ops.select(Tensor(mask), x, y),
                 lambda x, y: np.where(mask, x, y), (2, 3), (2, 3))  # fmt: skip
    yield moving("Select", "object", lambda x, y: ops.Select()(Tensor(mask), x, y),
                 lambda x, y: np.where(mask, x, y), (2, 3), (2, 3))  # fmt: skip
    yield moving("Select", "broadcast", lambda x, y: ops.where(Tensor(mask), x, y),
                 lambda x, y: np.where(mask, x, y), (3,), (2, 1))  # fmt: skip
    yield Case("Select", "computed", lambda x, y: ops.where(x > 0.01, x, y * x),
               lambda x, y: np.where(x > 0.01, x, y * x), ((2, 3), (2, 3)))  # fmt: skip
    yield Case("Select", "scalar", lambda x: ops.where(x > 0.01, x * x, 0.5),
               lambda x: np.where(x > 0.01, x * x, 0.5), ((7,),))  # fmt: skip
    yield moving("Select", "empty", lambda x, y: ops.where(x > y, x, y),
                 np.maximum, (0, 3), (0, 3))  # fmt: skip


def cast_cases() -> Iterator[Case]:
    yield Case("Cast", "same", lambda x: ops.cast(x, x.dtype), lambda x: x, ((3,),))
    yield Case("Cast", "object", lambda x: ops.Cast()(x, ms.float64), lambda x: x, ((3,),))
    yield Case("Cast", "through-bool", lambda x: x * (x > 0.01).astype(x.dtype),
               lambda x: x * (x > 0.01), ((5,),))  # fmt: skip
    yield Case("Cast", "to-int", lambda x: ops.cast(x * 3, ms.int32),
               lambda x: (x * 3).astype(np.int32), ((7,),), order=0)  # fmt: skip
    yield Case("Cast", "to-bool", lambda x: ops.cast(x, ms.bool_), lambda x: x != 0, ((7,),),
               order=0)  # fmt: skip


def constant_cases() -> Iterator[Case]:
    yield Case(
        "Iota", "arange", lambda: ops.arange(0, 7, 2), lambda: np.arange(0, 7, 2), (), order=0
    )
    yield Case("Iota", "times", lambda x: x * ops.arange(0, 3).astype(x.dtype),
               lambda x: x * np.arange(3), ((3,),))  # fmt: skip
    yield Case("Const", "zeros", lambda: ops.zeros((2, 3)), lambda: np.zeros((2, 3)), (), order=0)
    yield Case("Const", "ones", lambda: ops.ones((2, 0)), lambda: np.ones((2, 0)), (), order=0)
    yield Case("Const", "like", lambda x: x * ops.ones_like(x) + ops.zeros_like(x), lambda x: x,
               ((2, 3),))  # fmt: skip
    labels = np.array([0, 2, 1, 2], dtype=np.int32)
    yield Case("OneHot", "ops.one_hot", lambda: ops.one_hot(Tensor(labels), 3),
               lambda: np.eye(3)[labels], (), order=0)  # fmt: skip
    yield Case("OneHot", "axis", lambda: ops.one_hot(Tensor(labels), 3, 1, 0, 0),
               lambda: np.eye(3)[labels].T, (), order=0)  # fmt: skip
    yield Case("OneHot", "object",
               lambda: ops.OneHot()(Tensor(labels), 3, Tensor(2.0, ms.float32),
                                    Tensor(-1.0, ms.float32)),
               lambda: np.eye(3)[labels] * 3 - 1, (), order=0)  # fmt: skip
    yield Case("OneHot", "out-of-range",
               lambda: ops.one_hot(Tensor(np.array([0, 5], np.int32)), 3),
               lambda: np.array([[1, 0, 0], [0, 0, 0]]), (), order=0)  # fmt: skip
    yield Case("OneHot", "weights", lambda x: x * ops.one_hot(Tensor(labels), 3).astype(x.dtype),
               lambda x: x * np.eye(3)[labels], ((4, 3),))  # fmt: skip


CASES: list[Case] = [
    *matmul_cases(),
    *reduction_cases(),
    *arg_cases(),
    *cumsum_cases(),
    *fourier_cases(),
    *cumprod_cases(),
    *recurrence_cases(),
    *shape_cases(),
    *joining_cases(),
    *index_cases(),
    *gather_cases(),
    *select_cases(),
    *cast_cases(),
    *constant_cases(),
    *window_cases(Case),
    *attention_cases(Case),
]

#: Ops whose tests are functions of their own in test_structured.py and test_indexing.py.
TESTED_APART = {
    "ViewAsReal", "ViewAsComplex",  # test_complex.py
    "Assign", "ReduceAll", "ReduceAny", "Random", "Dropout", "StopGradient", "LastWriter",
    "CallOutput",  # test_own_derivatives.py
    "ValueOf",  # test_special_points.py
    "After",  # test_recompute.py
    "Recurrence",  # test_loops.py
    # Linear algebra: test_factorisations.py, test_linear_algebra_transforms.py.
    "LUFactors", "LUSolve", "LUInverse", "LUDeterminant", "CholeskyFactor", "CholeskySolve",
    "CholeskyInverse", "DampedCholeskyFactor", "TriangularSolve", "QRFactors", "EigenFactors",
    "SingularFactors",
    # Orders and searches: test_order_kernels.py, test_occurrences.py, test_order_transforms.py.
    "Order", "FirstInOrder", "RunningBest", "SegmentBest", "PlaceInLine", "Among", "CountBetween",
    "DrawByWeights", "OfIntegers",
    # Divisors and exponents: test_permitted_integers.py.
    "Permitted",
    # Among several processes: test_parallel_collectives.py.
    "AllReduce", "AllGather", "ReduceScatter", "Broadcast", "CollectiveReduce", "AllToAll", "Barrier",
}  # fmt: skip

#: Rows of the op table that users do not call by that name, and the cases that need them.
TESTED_THROUGH = {
    "Leaf": "ReduceSum",  # every operand
    "Alias": "Reshape",
    "Slice": "StridedSlice",
    "SliceScatter": "StridedSlice",  # the adjoint of Slice
    "RandomUniform": "Random",
    "RandomNormal": "Random",
}
