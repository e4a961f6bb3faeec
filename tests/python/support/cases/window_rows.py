"""The structured rows of convolutions and of windows, and what they are in plain loops.

`loops` is the trilinear form that csrc/ops/combining/convolution.h states, term by term: each of the family's
three ops is its derivative by one of the three tensors.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from gradcell import Tensor, _core

core = _core.ops


class Windows(NamedTuple):
    """One number a dimension; `groups` of `inputs` and `outputs` channels."""

    images: int
    groups: int
    inputs: int
    outputs: int
    input: tuple[int, ...]
    kernel: tuple[int, ...]
    output: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    before: tuple[int, ...]

    @property
    def x(self) -> tuple[int, ...]:
        return (self.images, self.groups * self.inputs, *self.input)

    @property
    def w(self) -> tuple[int, ...]:
        return (self.groups * self.outputs, self.inputs, *self.kernel)

    @property
    def y(self) -> tuple[int, ...]:
        return (self.images, self.groups * self.outputs, *self.output)


def windows(
    input: tuple[int, ...], kernel: tuple[int, ...], stride: int = 1, dilation: int = 1,
    before: int = 0, after: int = 0, images: int = 2, groups: int = 1, inputs: int = 2,
    outputs: int = 2,
) -> Windows:  # fmt: skip
    rank = len(input)
    output = tuple(
        (n + before + after - (k - 1) * dilation - 1) // stride + 1
        for n, k in zip(input, kernel, strict=True)
    )
    same = tuple((v,) * rank for v in (stride, dilation, before))
    return Windows(images, groups, inputs, outputs, input, kernel, output, *same)


def terms(s: Windows) -> Iterator[tuple[Any, Any, Any]]:
    """(slices of x, of w, of y) that are multiplied and added up, for each group, tap and place."""
    for tap in itertools.product(*map(range, s.kernel)):
        for place in itertools.product(*map(range, s.output)):
            steps = zip(place, s.stride, tap, s.dilation, s.before, strict=True)
            at = tuple(p * t + u * d - b for p, t, u, d, b in steps)
            if all(0 <= q < n for q, n in zip(at, s.input, strict=True)):
                yield at, tap, place


def loops(s: Windows, part: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """x and w to y ("output"), y and w to x ("input"), x and y to w ("weight")."""
    shape = {"output": s.y, "input": s.x, "weight": s.w}[part]
    out = np.zeros(shape, np.result_type(a, b))
    for g in range(s.groups):
        c = slice(g * s.inputs, (g + 1) * s.inputs)
        o = slice(g * s.outputs, (g + 1) * s.outputs)
        for at, tap, place in terms(s):
            x, w, y = (slice(None), c, *at), (o, slice(None), *tap), (slice(None), o, *place)
            if part == "output":
                out[y] += a[x] @ b[w].T
            elif part == "input":
                out[x] += a[y] @ b[w]
            else:
                out[w] += b[y].T @ a[x]
    return out


OPS = {"output": "convolution", "input": "convolution_input", "weight": "convolution_weight"}
NAMES = {"output": "Convolution", "input": "ConvolutionInput", "weight": "ConvolutionWeight"}


def convolved(s: Windows, part: str, a: Tensor, b: Tensor) -> Tensor:
    size = {"output": s.output, "input": s.input, "weight": s.kernel}[part]
    lists = [list(v) for v in (s.stride, s.dilation, s.before, size)]
    return getattr(core, OPS[part])(a, b, *lists, s.groups)


def shapes(s: Windows, part: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return {"output": (s.x, s.w), "input": (s.y, s.w), "weight": (s.x, s.y)}[part]


SMALL = {
    "line": windows((5,), (3,)),
    "line, stride, padding": windows((7,), (3,), 2, 1, 1, 2),
    "line, dilation": windows((8,), (3,), 1, 3, 1, 1, inputs=1),
    "plane": windows((3, 4), (2, 3), before=1, after=1),
    "plane, stride": windows((5, 4), (3, 2), 2, 1, 1, 0, images=1),
    "plane, stride beyond the kernel": windows((5, 5), (1, 2), 3, images=1),
    "plane, dilation and stride": windows((5, 6), (2, 2), 2, 2, 1, 1, images=1),
    "groups": windows((3, 3), (2, 2), groups=2, inputs=1, outputs=2, images=1),
    "depthwise": windows((3, 3), (2, 2), groups=3, inputs=1, outputs=1, images=1, before=1),
    "pointwise": windows((2, 2), (1, 1), inputs=3, outputs=2),
    "space": windows((2, 3, 2), (2, 2, 2), before=1, images=1, inputs=1),
    "wide padding": windows((2,), (3,), 1, 1, 4, 3, inputs=1, outputs=1),
    "cropped": windows((6,), (2,), 1, 1, -1, 0, inputs=1),
    "no image": windows((4, 4), (3, 3), images=0),
    "no channel": windows((4,), (3,), inputs=0),
}  # fmt: skip


def largest(x: np.ndarray, kernel: Any, stride: Any, dilation: Any, before: Any, size: Any) -> Any:
    """(the largest elements, the first ones' places) of windows over the last dimensions."""
    rank = len(kernel)
    flat = x.reshape(-1, *x.shape[x.ndim - rank :])
    best = np.full((len(flat), *size), -np.inf)
    found = np.full((len(flat), *size), -1)
    for place in itertools.product(*map(range, size)):
        for tap in itertools.product(*map(range, kernel)):
            steps = zip(place, stride, tap, dilation, before, strict=True)
            at = tuple(p * s + u * d - b for p, s, u, d, b in steps)
            if not all(0 <= q < n for q, n in zip(at, flat.shape[1:], strict=True)):
                continue
            v = flat[(slice(None), *at)]
            wins = (found[(slice(None), *place)] < 0) | (v > best[(slice(None), *place)])
            wins |= np.isnan(v)
            best[(slice(None), *place)] = np.where(wins, v, best[(slice(None), *place)])
            number = int(np.ravel_multi_index(at, flat.shape[1:]))
            found[(slice(None), *place)] = np.where(wins, number, found[(slice(None), *place)])
    shape = (*x.shape[: x.ndim - rank], *size)
    return best.reshape(shape), found.reshape(shape)


#: Shape, kernel, stride, dilation, before, size.
POOLS = {
    "line": ((2, 6), (2,), (2,), (1,), (0,), (3,)),
    "plane": ((1, 2, 4, 5), (2, 3), (2, 1), (1, 1), (1, 1), (3, 5)),
    "overlapping": ((1, 1, 5, 5), (3, 3), (1, 1), (1, 1), (0, 0), (3, 3)),
    "dilation": ((2, 6, 5), (2, 2), (1, 2), (2, 3), (0, 0), (4, 1)),
    "space": ((1, 3, 2, 4), (2, 2, 2), (1, 1, 2), (1, 1, 1), (1, 0, 0), (4, 1, 2)),
    "beyond": ((1, 5), (3,), (3,), (1,), (0,), (2,)),
    "no image": ((0, 2, 4), (2,), (2,), (1,), (0,), (2,)),
}  # fmt: skip


def window_cases(case: Callable[..., Any]) -> Iterator[Any]:
    """case: structured_rows.Case."""
    for label, s in SMALL.items():
        for part, name in NAMES.items():
            yield case(
                name,
                label,
                lambda a, b, s=s, p=part: convolved(s, p, a, b),
                lambda a, b, s=s, p=part: loops(s, p, a, b),
                shapes(s, part),
            )
    for label, (shape, *how) in POOLS.items():
        lists = [list(v) for v in how]
        yield case("WindowMax", label, lambda x, h=lists: core.window_max(x, *h),
                   lambda x, h=how: largest(x, *h)[0], (shape,))  # fmt: skip
        yield case("WindowArgMax", label, lambda x, h=lists: core.window_argmax(x, *h),
                   lambda x, h=how: largest(x, *h)[1].astype(np.int32), (shape,), order=0)  # fmt: skip
    places = np.array([[0, 2, 2, -1], [3, 1, 0, 1]], np.int32)
    kept = (places >= 0).astype(float)
    yield case("TakeAlong", "rows", lambda x: core.take_along(x, Tensor(places)),
               lambda x: np.take_along_axis(x, places.astype(int), 1) * kept, ((2, 4),))  # fmt: skip

    def put(x: np.ndarray) -> np.ndarray:
        out = np.zeros((2, 5))
        for r, i in itertools.product(range(2), range(4)):
            if places[r, i] >= 0:
                out[r, places[r, i]] += x[r, i]
        return out

    yield case("PutAlong", "rows", lambda x: core.put_along(Tensor(places), x, 5), put, ((2, 4),))

    for part, (shapes_of, wanted) in SAMPLES.items():
        yield case(f"Sample{part}", "four places", lambda a, b, p=part: sampled(p, a, b), wanted,
                   shapes_of)  # fmt: skip


# Samples: the trilinear form that csrc/ops/moving/sampling.h states.

#: Of 2 images, 3 places of each of 4 results, among 5 elements.
PLACES = np.array(
    [[[0, 2, -1, 4], [1, 2, 3, 3], [0, 0, -1, 1]], [[4, 4, 4, 0], [-1, 1, 2, 3], [3, 2, 1, 0]]],
    np.int32,
)
_X, _W, _Y = (2, 6, 5), PLACES.shape, (2, 6, 4)


def _taken(x: np.ndarray) -> np.ndarray:
    """x [n, c, p] at the places: [n, c, k, i]."""
    none = np.zeros((*x.shape[:2], 1))
    return np.stack([a[:, p] for a, p in zip(np.concatenate([x, none], 2), PLACES, strict=True)])


def _added(y: np.ndarray, w: np.ndarray) -> np.ndarray:
    x = np.zeros((2, y.shape[1], 6))
    for n, k, i in np.ndindex(*PLACES.shape):
        x[n, :, PLACES[n, k, i]] += y[n, :, i] * w[n, k, i]  # what is at -1 is cut off
    return x[..., :5]


#: part: (shapes of the two tensors, what it is)
SAMPLES: dict[str, tuple[tuple[tuple[int, ...], ...], Callable[..., np.ndarray]]] = {
    "": ((_X, _W), lambda x, w: np.einsum("ncki,nki->nci", _taken(x), w)),
    "Source": ((_Y, _W), _added),
    "Weight": ((_X, _Y), lambda x, y: np.einsum("ncki,nci->nki", _taken(x), y)),
}


def sampled(part: str, a: Tensor, b: Tensor, places: np.ndarray = PLACES) -> Tensor:
    if part == "":
        return core.sample(a, Tensor(places), b)
    if part == "Source":
        return core.sample_source(a, Tensor(places), b, 5)
    return core.sample_weight(a, Tensor(places), b)
