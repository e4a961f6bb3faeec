"""Products of a matrix and itself transposed, of which half is computed, and sums of outer products of
single examples."""

from __future__ import annotations

import numpy as np
import pytest

import gradcell as gc
from gradcell import Tensor, nn, ops


@pytest.mark.one_in(8)
@pytest.mark.parametrize("dtype, tolerance", [(np.float32, 3e-6), (np.float64, 1e-14)])
@pytest.mark.parametrize(
    "rows, columns",
    [
        (255, 300),
        (256, 16),
        (256, 40),
        (300, 1025),
        (700, 2500),
        (1500, 300),
        (321, 64),
        (2100, 70),
    ],
)
def test_gram_matrices(rows, columns, dtype, tolerance):
    x = np.random.default_rng(0).standard_normal((rows, columns)).astype(dtype)
    wide = x.astype(np.float64)
    for fn, want in [
        (lambda a: ops.matmul(a, a.T), wide @ wide.T),
        (lambda a: ops.matmul(a.T, a), wide.T @ wide),
        (lambda a: ops.matmul(a, a.T + 0.0), wide @ wide.T),
    ]:
        found = gc.jit(fn)(Tensor(x)).asnumpy()
        np.testing.assert_allclose(found, want, atol=tolerance * np.abs(want).max(), rtol=0)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_gram_matrices_are_the_same_for_any_number_of_threads(threads):
    x = Tensor(np.random.default_rng(0).standard_normal((1000, 700)))
    one = gc.jit(lambda a: (ops.matmul(a, a.T), ops.matmul(a.T, a)))
    want = [t.asnumpy().copy() for t in one(x)]
    gc.set_context(max_threads=threads)
    try:
        for a, b in zip(one(x), want, strict=True):
            np.testing.assert_array_equal(a.asnumpy(), b)
    finally:
        gc.set_context(max_threads=None)


@pytest.mark.parametrize("dtype, tolerance", [("float32", 1e-5), ("float64", 1e-13)])
@pytest.mark.parametrize("width", [4, 16, 17, 24, 70])
def test_gradients_of_single_points_of_a_laplacian(width, dtype, tolerance):
    """Layers narrow and wide: elementwise outer products, sums of them in one call, one product."""
    gc.set_seed(0)
    kind = getattr(gc, dtype)
    net = nn.SequentialCell(
        nn.Dense(3, width, dtype=kind), nn.Tanh(), nn.Dense(width, width, dtype=kind), nn.Tanh(),
        nn.Dense(width, 1, dtype=kind),
    )  # fmt: skip
    weights = net.trainable_params()
    laplacian = gc.laplacian(net)
    x = Tensor(np.random.default_rng(0).random((9, 3)), kind)

    def one(point):
        return ops.reshape(laplacian(ops.reshape(point, [1, 3])), [])

    found = gc.vmap(gc.grad(one, None, weights))(x)
    for k in range(9):
        want = gc.grad(lambda p: laplacian(p).sum(), None, weights)(x[k : k + 1])
        for f, w in zip(found, want, strict=True):
            scale = max(1e-30, np.abs(w.asnumpy()).max())
            np.testing.assert_allclose(f.asnumpy()[k], w.asnumpy(), atol=tolerance * scale, rtol=0)


@pytest.mark.one_in(12)
@pytest.mark.parametrize("dtype, tolerance", [("float32", 1e-5), ("float64", 1e-13)])
@pytest.mark.parametrize("lead", [(), (1,), (3,)])
@pytest.mark.parametrize("terms", [(1, 4), (4, 1), (1, 1, 3), (1, 1, 1), (2, 5), (1, 0)])
@pytest.mark.parametrize("m, n", [(1, 4), (4, 1), (1, 1), (3, 5), (40, 50)])
def test_sums_of_products_that_sum_over_axes_of_their_own(m, n, terms, lead, dtype, tolerance):
    """One call for all of them, whichever of them are outer products."""
    rng = np.random.default_rng(0)
    pairs = [(rng.random((*lead, m, k)), rng.random((*lead, k, n))) for k in terms]
    given = [Tensor(x, getattr(gc, dtype)) for pair in pairs for x in pair]

    def sums(*xs):
        out = ops.matmul(xs[0], xs[1])
        for a, b in zip(xs[2::2], xs[3::2], strict=True):
            out = out - ops.matmul(a, b)
        return out

    found = gc.jit(sums)(*given).asnumpy()
    want = pairs[0][0] @ pairs[0][1] - sum(a @ b for a, b in pairs[1:])
    np.testing.assert_allclose(found, want, atol=10 * tolerance, rtol=0)
