"""Random programs over what is outside of elementwise graphs: linear algebra, orders and searches, samples,
complex numbers and transforms, loops, convolutions, segments, recomputation.

A program maps square matrices to square matrices, step by step, and is written twice: with gradcell's ops and
in NumPy. A step whose point is too near a kink (a tie, an edge between samples) is replaced by a smooth one,
and each result is scaled down where it is large, so that finite differences of the NumPy program are a
reference for every derivative.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import gradcell as gc
from gradcell import Tensor, ops

SIZES = (1, 2, 3, 4, 5)
#: The least distance from a tie or an edge.
GAP = 0.02


def tied(x: np.ndarray, axis: int | None = -1) -> bool:
    """Whether two numbers in a line are nearly equal."""
    lines = np.sort(x, axis) if axis is not None else np.sort(x, None)
    return bool(np.abs(np.diff(lines, axis=axis if axis is not None else 0)).min(initial=1.0) < GAP)


def good(x: Any) -> Any:
    """A well-conditioned matrix made of x, for Tensor and array."""
    return 0.3 * x + eye(x) * 2.5


def eye(x: Any) -> Any:
    n = x.shape[-1]
    return Tensor(np.eye(n)) if isinstance(x, Tensor) else np.eye(n)


def symmetric(x: Any) -> Any:
    return 0.5 * (x + x.T)


def spread(x: Any) -> Any:
    """Symmetric, with eigenvalues that stand apart."""
    n = x.shape[-1]
    steps = np.diag(np.arange(n) * 3.0)
    return 0.2 * symmetric(x) + (Tensor(steps) if isinstance(x, Tensor) else steps)


def positive(x: Any) -> Any:
    product = ops.matmul(x, x.T) if isinstance(x, Tensor) else x @ x.T
    return 0.1 * product + eye(x)


def over(x: np.ndarray, v: np.ndarray) -> np.ndarray:
    """v's numbers, a column, over the matrix."""
    return v.reshape(-1, 1) * np.ones_like(x)


@dataclass(frozen=True)
class Kind:
    """A step: with gradcell's ops, in NumPy, and whether a point is too near a kink."""

    run: Callable[..., Tensor]
    reference: Callable[..., np.ndarray]
    kinked: Callable[..., bool] = lambda *_: False
    inputs: int = 1


def column(y: Tensor, x: Tensor) -> Tensor:
    return y.reshape(-1, 1) * ops.ones_like(x)


def np_grid_sample(x: np.ndarray, grid: np.ndarray) -> np.ndarray:
    """Bilinear, zeros outside, corners aligned."""
    n = x.shape[0]
    at = (grid + 1) / 2 * (n - 1)
    found = np.zeros(grid.shape[:-1])
    low = np.floor(at).astype(int)
    for dy in (0, 1):
        for dx in (0, 1):
            cx, cy = low[..., 0] + dx, low[..., 1] + dy
            weight = (1 - abs(at[..., 0] - cx)) * (1 - abs(at[..., 1] - cy))
            inside = (cx >= 0) & (cx < n) & (cy >= 0) & (cy < n)
            found += np.where(inside, weight * x[cy.clip(0, n - 1), cx.clip(0, n - 1)], 0.0)
    return found


def points(x: Any) -> Any:
    """Places within [-1, 1] for samples."""
    if isinstance(x, Tensor):
        return ops.stack([0.9 * ops.sin(x), 0.9 * ops.cos(1.3 * x)], -1)
    return np.stack([0.9 * np.sin(x), 0.9 * np.cos(1.3 * x)], -1)


def near_samples(x: np.ndarray, *_: Any) -> bool:
    at = (points(x) + 1) / 2 * (x.shape[0] - 1)
    return x.shape[0] < 2 or bool(np.abs(at - np.round(at)).min() < GAP)


def np_convolution(x: np.ndarray, k: np.ndarray) -> np.ndarray:
    """Correlation of the same size, zeros around."""
    n, m = x.shape[0], k.shape[0]
    low = (m - 1) // 2
    wide = np.pad(x, (low, m - 1 - low))
    found = np.zeros_like(x)
    for i in range(m):
        for j in range(m):
            found += k[i, j] * wide[i : i + n, j : j + n]
    return found


def np_loop(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    c = x
    for i in range(3):
        c = np.tanh(0.5 * c + y * (i + 1.0) * 0.2) + 0.1 * x
    return c


def loop(x: Tensor, y: Tensor, unroll: bool = False) -> Tensor:
    return ops.ForiLoop()(
        0, 3, lambda i, c: ops.tanh(0.5 * c + y * (i + 1.0) * 0.2) + 0.1 * x, x, unroll=unroll
    )  # fmt: skip


def scan(x: Tensor, y: Tensor) -> Tensor:
    """Over the rows of x; the states are the rows of what comes out."""
    rows = [x[i] for i in range(x.shape[0])]
    return ops.stack(ops.Scan()(lambda c, row: ((c + row).sin(),) * 2, y[0], rows, unroll=False)[1])


def np_scan(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    c, rows = y[0], []
    for row in x:
        c = np.sin(c + row)
        rows.append(c)
    return np.stack(rows)


def while_loop(x: Tensor) -> Tensor:
    return ops.WhileLoop()(lambda s: s[0] < 3, lambda s: [s[0] + 1, ops.sin(s[1]) + x], [0, x])[1]


def np_while(x: np.ndarray) -> np.ndarray:
    c = x
    for _ in range(3):
        c = np.sin(c) + x
    return c


def top(x: Tensor) -> Tensor:
    return column(ops.topk(x, 1)[0].reshape(-1), x)


def segments(x: Tensor) -> Tensor:
    n = x.shape[0]
    numbers = Tensor(np.arange(n) // 2, gc.int32)
    return ops.gather(ops.unsorted_segment_max(x, numbers, (n + 1) // 2), numbers, 0)


def np_segments(x: np.ndarray) -> np.ndarray:
    return np.stack([x[i - i % 2 : i - i % 2 + 2].max(0) for i in range(x.shape[0])])


def search(x: Tensor, y: Tensor) -> Tensor:
    """Places found among sorted numbers pick rows."""
    at = ops.searchsorted(ops.sort(y.reshape(-1))[0], x.reshape(-1)) % x.shape[0]
    return ops.gather(y, at, 0)[: x.shape[0]] * x


def np_search(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    at = np.searchsorted(np.sort(y, None), x.ravel()) % x.shape[0]
    return y[at][: x.shape[0]] * x


def ordered(x: Tensor, y: Tensor) -> Tensor:
    return ops.gather_elements(y, 1, ops.argsort(x, 1).astype(gc.int64))


def vectors(x: Tensor) -> Tensor:
    """The projector onto the first eigenvector, whose sign does not matter."""
    v = ops.eigh(spread(x))[1][:, :1]
    return ops.matmul(v, v.T)


def np_vectors(x: np.ndarray) -> np.ndarray:
    v = np.linalg.eigh(spread(x))[1][:, :1]
    return v @ v.T


def singular(x: Tensor) -> Tensor:
    """u f(s) v', of singular values that stand apart."""
    s, u, v = ops.svd(spread(x) + eye(x))
    return ops.matmul(u * ops.sin(s), v.T)


def np_singular(x: np.ndarray) -> np.ndarray:
    u, s, v = np.linalg.svd(spread(x) + eye(x), full_matrices=False)
    return (u * np.sin(s)) @ v


def orthogonal(x: Tensor) -> Tensor:
    q, r = ops.qr(good(x))
    return ops.matmul(q * ops.sign(ops.diagonal(r)), ops.sin(r * r))


def np_orthogonal(x: np.ndarray) -> np.ndarray:
    q, r = np.linalg.qr(good(x))
    return (q * np.sign(np.diag(r))) @ np.sin(r * r)


def spectrum(x: Tensor, y: Tensor) -> Tensor:
    return ops.real(ops.ifft(ops.fft(x) * ops.fft(y))) / x.shape[0]


def modulus(x: Tensor) -> Tensor:
    z = ops.fft(x, dim=0)
    return ops.real(z * ops.conj(z)) / x.shape[0]


def complex_exponential(x: Tensor, y: Tensor) -> Tensor:
    z = ops.exp(0.3 * ops.Complex()(x, y))
    return ops.real(z * z) + ops.imag(z)


def np_complex_exponential(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    z = np.exp(0.3 * (x + 1j * y))
    return (z * z).real + z.imag


def real_transform(x: Tensor) -> Tensor:
    z = ops.rfft(x)
    return ops.irfft(z * (1.0 + 0.5 * ops.abs(z)), n=x.shape[-1]) * 0.3


def np_real_transform(x: np.ndarray) -> np.ndarray:
    z = np.fft.rfft(x)
    return np.fft.irfft(z * (1.0 + 0.5 * np.abs(z)), n=x.shape[-1]) * 0.3


def near_zero_spectrum(x: np.ndarray) -> bool:
    return bool(np.abs(np.fft.rfft(x)).min() < 10 * GAP)


def convolution(x: Tensor, y: Tensor) -> Tensor:
    n, m = x.shape[0], min(3, y.shape[0])
    low = (m - 1) // 2
    wide = ops.pad(x.reshape(1, 1, n, n), (low, m - 1 - low, low, m - 1 - low))
    return ops.conv2d(wide, y[:m, :m].reshape(1, 1, m, m)).reshape(n, n)


def pooled(x: Tensor) -> Tensor:
    n = x.shape[0]
    wide = ops.pad(x.reshape(1, 1, n, n), (0, 1, 0, 1), value=-9.0)
    return ops.max_pool2d(wide, 2, 1).reshape(n, n)


def np_pooled(x: np.ndarray) -> np.ndarray:
    wide = np.pad(x, ((0, 1), (0, 1)), constant_values=-9.0)
    return np.maximum.reduce(
        [wide[i:, j:][: x.shape[0], : x.shape[0]] for i in (0, 1) for j in (0, 1)]
    )


def again(x: Tensor, y: Tensor) -> Tensor:
    return gc.recompute(lambda a, b: ops.sin(ops.matmul(a, b)) * a, x, y)


def again_loop(x: Tensor, y: Tensor) -> Tensor:
    return gc.recompute(loop, x, y)


def scattered(x: Tensor, y: Tensor) -> Tensor:
    n = x.shape[0]
    places = Tensor((np.arange(n) * 2 % n)[:, None], gc.int32)
    return ops.tensor_scatter_add(x, places, y)


def np_scattered(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    found = x.copy()
    np.add.at(found, np.arange(x.shape[0]) * 2 % x.shape[0], y)
    return found


def np_softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def cube(f: Callable[..., Any], x: Any) -> Any:
    """A batch of matrices made of one, in, and their mean out."""
    batch = [good(x), good(0.5 * x.T), good(x) * 1.5]
    if isinstance(x, Tensor):
        return ops.mean(f(ops.stack(batch)), 0)
    return f(np.stack(batch)).mean(0)


SMOOTH = Kind(lambda x: ops.sin(x), np.sin)
KINDS: dict[str, Kind] = {
    # elementwise and sums
    "sin": SMOOTH,
    "tanh": Kind(lambda x: ops.tanh(x), np.tanh),
    "softplus": Kind(lambda x: ops.softplus(x), lambda x: np.logaddexp(x, 0)),
    "mul": Kind(lambda x, y: x * y, lambda x, y: x * y, inputs=2),
    "add": Kind(lambda x, y: x + 0.5 * y, lambda x, y: x + 0.5 * y, inputs=2),
    "div": Kind(lambda x, y: x / (1 + y * y), lambda x, y: x / (1 + y * y), inputs=2),
    "matmul": Kind(lambda x, y: ops.matmul(x, y), lambda x, y: x @ y, inputs=2),
    "einsum": Kind(
        lambda x, y: ops.einsum("ij,kj->ki", x, y),
        lambda x, y: np.einsum("ij,kj->ki", x, y),
        inputs=2,
    ),
    "softmax": Kind(lambda x: ops.softmax(x, -1), np_softmax),
    "cumsum": Kind(lambda x: ops.cumsum(x, 0), lambda x: np.cumsum(x, 0)),
    "cumprod": Kind(lambda x: ops.cumprod(0.5 * x + 1, 1), lambda x: np.cumprod(0.5 * x + 1, 1)),
    "logsumexp": Kind(
        lambda x: x - ops.logsumexp(x, 1, True),
        lambda x: x - np.log(np.exp(x).sum(1, keepdims=True)),
    ),
    "roll": Kind(lambda x: ops.roll(x, 1, 0), lambda x: np.roll(x, 1, 0)),
    "transpose": Kind(lambda x: x.T, lambda x: x.T),
    # linear algebra
    "inverse": Kind(lambda x: ops.inverse(good(x)), lambda x: np.linalg.inv(good(x))),
    "inverses": Kind(lambda x: cube(ops.inverse, x), lambda x: cube(np.linalg.inv, x)),
    "solve": Kind(
        lambda x, y: ops.matrix_solve(good(x), y),
        lambda x, y: np.linalg.solve(good(x), y),
        inputs=2,
    ),
    "det": Kind(lambda x: ops.det(good(x)) * x, lambda x: np.linalg.det(good(x)) * x),
    "logdet": Kind(
        lambda x: ops.logdet(positive(x)) + x, lambda x: np.linalg.slogdet(positive(x))[1] + x
    ),
    "slogdet": Kind(
        lambda x: ops.slogdet(good(x))[1] * x, lambda x: np.linalg.slogdet(good(x))[1] * x
    ),
    "cholesky": Kind(
        lambda x: ops.cholesky(positive(x)), lambda x: np.linalg.cholesky(positive(x))
    ),
    "eigenvalues": Kind(
        lambda x: column(ops.eigh(spread(x))[0], x) * x,
        lambda x: over(x, np.linalg.eigvalsh(spread(x))) * x,
    ),
    "eigenvectors": Kind(vectors, np_vectors),
    "svd": Kind(singular, np_singular),
    "qr": Kind(orthogonal, np_orthogonal),
    "pinv": Kind(lambda x: ops.pinv(good(x)), lambda x: np.linalg.pinv(good(x))),
    "power": Kind(
        lambda x: ops.matrix_power(good(x), -2), lambda x: np.linalg.matrix_power(good(x), -2)
    ),
    "trace": Kind(lambda x: ops.trace(x) * x, lambda x: np.trace(x) * x),
    # orders and searches
    "sort": Kind(lambda x: ops.sort(x, 0)[0], lambda x: np.sort(x, 0), lambda x: tied(x, 0)),
    "descending": Kind(lambda x: ops.sort(x, 1, True)[0], lambda x: -np.sort(-x, 1), tied),
    "argsort": Kind(
        ordered, lambda x, y: np.take_along_axis(y, np.argsort(x, 1), 1), lambda x, y: tied(x), 2
    ),
    "topk": Kind(top, lambda x: over(x, x.max(1)), tied),
    "median": Kind(
        lambda x: column(ops.median(x, 1)[0], x),
        lambda x: over(x, np.sort(x, 1)[:, (x.shape[1] - 1) // 2]),
        tied,
    ),
    "quantile": Kind(
        lambda x: ops.quantile(x, 0.3) * x,
        lambda x: np.quantile(x, 0.3) * x,
        lambda x: tied(x, None),
    ),
    "cummax": Kind(lambda x: ops.cummax(x, 1)[0], lambda x: np.maximum.accumulate(x, 1), tied),
    "cummin": Kind(
        lambda x: ops.cummin(x, 0)[0], lambda x: np.minimum.accumulate(x, 0), lambda x: tied(x, 0)
    ),
    "max": Kind(lambda x: ops.amax(x, 0) * x, lambda x: x.max(0) * x, lambda x: tied(x, 0)),
    "segments": Kind(segments, np_segments, lambda x: tied(x, 0)),
    "search": Kind(
        search, np_search, lambda x, y: tied(np.concatenate([x.ravel(), y.ravel()]), 0), 2
    ),
    # samples, windows
    "samples": Kind(
        lambda x, y: ops.grid_sample(y[None, None], points(x)[None], align_corners=True)[0, 0],
        lambda x, y: np_grid_sample(y, points(x)),
        near_samples,
        2,
    ),
    "convolution": Kind(convolution, lambda x, y: np_convolution(x, y[:3, :3]), inputs=2),
    "max pool": Kind(pooled, np_pooled, lambda x: tied(x, None)),
    "scatter": Kind(scattered, np_scattered, inputs=2),
    # complex numbers
    "spectrum": Kind(
        spectrum,
        lambda x, y: np.fft.ifft(np.fft.fft(x) * np.fft.fft(y)).real / x.shape[0],
        inputs=2,
    ),
    "modulus": Kind(modulus, lambda x: np.abs(np.fft.fft(x, axis=0)) ** 2 / x.shape[0]),
    "real transform": Kind(real_transform, np_real_transform, near_zero_spectrum),
    "complex exponential": Kind(complex_exponential, np_complex_exponential, inputs=2),
    # loops and recomputation
    "loop": Kind(loop, np_loop, inputs=2),
    "unrolled": Kind(lambda x, y: loop(x, y, True), np_loop, inputs=2),
    "scan": Kind(scan, np_scan, inputs=2),
    "while": Kind(while_loop, np_while),
    "recompute": Kind(again, lambda x, y: np.sin(x @ y) * x, inputs=2),
    "recomputed loop": Kind(again_loop, np_loop, inputs=2),
}
NAMES = list(KINDS)


class Program:
    """A few steps over two matrices; called with Tensors or arrays it gives a number."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.seed = seed
        n = int(rng.choice(SIZES))
        self.inputs = [rng.uniform(-1.5, 1.5, (n, n)) for _ in range(2)]
        self.direction = [rng.uniform(-1, 1, (n, n)) for _ in range(2)]
        self.weights = rng.uniform(-1, 1, (n, n))
        self.steps: list[tuple[str, tuple[int, ...], float]] = []
        registers = list(self.inputs)
        for _ in range(int(rng.integers(2, 7))):
            name = NAMES[int(rng.integers(len(NAMES)))]
            last = len(registers) - 1
            places = (last, *rng.integers(0, last + 1, KINDS[name].inputs - 1).tolist())
            given = [registers[i] for i in places]
            if KINDS[name].kinked(*given):
                name, given, places = "sin", given[:1], places[:1]
            y = KINDS[name].reference(*given)
            scale = 2.0 ** -max(0, math.ceil(math.log2(float(np.abs(y).max(initial=1e-9)) / 1.5)))
            self.steps.append((name, places, scale))
            registers.append(y * scale)

    def __str__(self) -> str:
        lines = [
            f"r{i + 2} = {name}{places} * {s}" for i, (name, places, s) in enumerate(self.steps)
        ]
        return "\n".join([f"seed {self.seed}, matrices of {self.inputs[0].shape}", *lines])

    def __call__(self, *inputs: Any) -> Any:
        registers = list(inputs)
        numpy = isinstance(inputs[0], np.ndarray)
        for name, places, scale in self.steps:
            kind = KINDS[name]
            run = kind.reference if numpy else kind.run
            registers.append(run(*[registers[i] for i in places]) * scale)
        weights = self.weights if numpy else Tensor(self.weights)
        return (registers[-1] * weights).sum() + 0.25 * (registers[len(registers) // 2] ** 2).sum()

    def along(self, t: float) -> float:
        return float(self(*[x + t * v for x, v in zip(self.inputs, self.direction, strict=True)]))

    def derivatives(self) -> tuple[float, float, float, float] | None:
        """Value, slope, curvature along the direction by finite differences in NumPy, and the curvature's
        error; None where they do not settle, since a kink is near."""
        at, ends = self.along(0.0), []
        for h in (4e-3, 2e-3, 1e-3):
            up, down = self.along(h), self.along(-h)
            ends.append(((up - down) / (2 * h), (up - 2 * at + down) / h**2))
        (a1, a2), (b1, b2), (c1, c2) = ends
        first = ((4 * b1 - a1) / 3, (4 * c1 - b1) / 3)
        second = ((4 * b2 - a2) / 3, (4 * c2 - b2) / 3)
        slope, curvature = (16 * first[1] - first[0]) / 15, (16 * second[1] - second[0]) / 15
        scale = max(1.0, abs(slope), abs(curvature))
        if abs(first[1] - first[0]) > 2e-6 * scale or abs(second[1] - second[0]) > 2e-4 * scale:
            return None
        return at, slope, curvature, 1e-7 * scale + abs(first[1] - first[0])
