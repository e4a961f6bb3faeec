"""The cases of the tables at edges (edges.py): no trial ends its process, none is refused in words that are
not gradcell's, none gives numbers that do not agree. By default a sample of the trials runs, with the slow
marker all of them, which are counted.

What was found by it, as tests of their own beside NumPy and SciPy.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import edges
import forked_scripts
import numpy as np
import pytest

import gradcell as gc
from gradcell import Tensor, mint, ops


def counted(*arguments: str) -> dict[str, Any]:
    """What edges.py says of trials, run in a process of its own, which forks."""
    environment = {**os.environ, "PYTHONPATH": forked_scripts.PYTHONPATH, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "ignore", edges.__file__, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_sample_of_the_trials() -> None:
    found = counted("--one-in", "400")
    assert found["failures"] == []
    assert found["counts"]["as it should"] > 300


@pytest.mark.slow
@pytest.mark.parametrize("edge", edges.EDGES)
def test_every_trial(edge: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = counted("--edge", edge)
    with capsys.disabled():
        print(f"\n{edge}: {found['counts']}")
    assert found["failures"] == []


# Without elements ---------------------------------------------------------------------------------

MATRICES = {
    "product": lambda x: x @ x,
    "inverse": ops.inverse,
    "q": lambda x: mint.linalg.qr(x)[0],
    "r": lambda x: mint.linalg.qr(x)[1],
    "pinv": ops.pinv,
    "cholesky": ops.cholesky,
    "det": ops.det,
    "singular values": lambda x: ops.svd(x, compute_uv=False),
}  # fmt: skip
SECOND = {
    "grad of grad": lambda f: gc.grad(gc.grad(f)),
    "jacrev of jacrev": lambda f: gc.jacrev(gc.jacrev(f)),
    "jacfwd of jacrev": lambda f: gc.jacfwd(gc.jacrev(f)),
}  # fmt: skip


@pytest.mark.parametrize("shape", [(0, 0), (0, 1, 1), (0, 2, 2), (2, 0, 0)])
@pytest.mark.parametrize("transform", SECOND)
@pytest.mark.parametrize("name", MATRICES)
def test_second_derivatives_of_no_elements(name: str, transform: str, shape: tuple[int]) -> None:
    f = MATRICES[name]
    x = Tensor(np.zeros(shape))
    out = tuple(f(x).shape)
    want = shape if transform == "grad of grad" else out + shape + shape
    assert tuple(SECOND[transform](f)(x).shape) == want


def test_norms_and_moments_of_no_elements() -> None:
    none, matrix = Tensor(np.zeros(0)), Tensor(np.zeros((0, 3)))
    for order in (1, 2, np.inf, "fro", "nuc"):
        assert ops.norm(matrix, order, (0, 1)).asnumpy() == 0
    assert ops.norm(none, np.inf, 0).asnumpy() == 0
    assert ops.pinv(matrix).shape == np.linalg.pinv(np.zeros((0, 3))).shape
    for f in (ops.var, ops.std):
        for ddof in (0, 1):
            assert np.isnan(f(none, ddof=ddof).asnumpy())
            assert list(f(matrix, 0, ddof).shape) == [3]
            assert np.isnan(f(matrix, 0, ddof).asnumpy()).all()


def test_variance_of_fewer_than_are_taken_off() -> None:
    """NumPy divides by 0 there, not by less."""
    x = np.array([1.0, 3.0])
    assert ops.var(Tensor(x), ddof=2).asnumpy() == ops.var(Tensor(x), ddof=3).asnumpy() == np.inf
    assert np.isnan(ops.var(Tensor(3.0), ddof=1).asnumpy())
    assert ops.var(Tensor(3.0)).asnumpy() == 0


# Without dimensions -------------------------------------------------------------------------------


def test_a_tensor_without_dimensions_is_a_vector_of_one() -> None:
    """Where an axis of 0 or -1 is asked for, and the result has x's shape."""
    x, v = Tensor(3.0), Tensor([3.0])
    zero, one = Tensor(0), Tensor(1.0)
    at, of = Tensor([0]), Tensor([1.0])
    both = {
        "scatter": (mint.scatter(x, 0, zero, one), mint.scatter(v, 0, at, of)),
        "scatter at [0]": (mint.scatter(x, 0, at, of), mint.scatter(v, 0, at, of)),
        "scatter_add": (mint.scatter_add(x, 0, zero, one), mint.scatter_add(v, 0, at, of)),
        "x.scatter": (x.scatter(-1, zero, one), v.scatter(-1, at, of)),
        "x.scatter_add": (x.scatter_add(0, zero, one), v.scatter_add(0, at, of)),
        "gather": (mint.gather(x, 0, zero), mint.gather(v, 0, at)),
        "index_add": (mint.index_add(x, 0, at, of), mint.index_add(v, 0, at, of)),
        "index_fill": (x.index_fill(0, at, 1.0), v.index_fill(0, at, 1.0)),
        "flip": (mint.flip(x, (0,)), mint.flip(v, (0,))),
        "roll": (mint.roll(x, 1, 0), mint.roll(v, 1, 0)),
        "cumsum": (mint.cumsum(x, 0), mint.cumsum(v, 0)),
        "amin": (mint.amin(x, 0), mint.amin(v, 0)),
        "sum": (mint.sum(x, 0), mint.sum(v, 0)),
        "fftshift": (ops.fftshift(x, 0), ops.fftshift(v, 0)),
        "topk": (mint.topk(x, 1)[0], mint.topk(v, 1)[0]),
        "topk's places": (mint.topk(x, 1)[1], mint.topk(v, 1)[1]),
    }  # fmt: skip
    for name, (found, wanted) in both.items():
        assert list(found.shape) == [], name
        assert found.asnumpy() == wanted.asnumpy().item(), name
    assert mint.gather(x, 0, Tensor([0, 0])).tolist() == [3.0, 3.0]
    assert mint.repeat_interleave(x, 2, 0).tolist() == [3.0, 3.0]


def test_what_has_no_place_without_dimensions_is_refused() -> None:
    x = Tensor(3.0)
    refused = {
        "chunk": lambda: mint.chunk(x, 2), "split": lambda: mint.split(x, 1),
        "tensor_split": lambda: ops.tensor_split(x, 2), "Unstack": lambda: mint.unbind(x),
        "narrow": lambda: mint.narrow(x, 0, 0, 1), "trapz": lambda: ops.trapz(x),
        "quantile": lambda: ops.quantile(x, 0.5, 0), "stride": lambda: x.stride(0),
        "select_scatter": lambda: ops.select_scatter(x, x, 0, 0), "vander": lambda: ops.vander(x),
        "rollaxis": lambda: gc.numpy.rollaxis(x, 0), "matrix_diag": lambda: ops.matrix_diag(x),
        "batch_norm": lambda: ops.batch_norm(x, x, x, x, x, training=True),
        "tril_indices_from": lambda: gc.numpy.tril_indices_from(x),
    }  # fmt: skip
    for name, f in refused.items():
        with pytest.raises(ValueError, match=name):
            f()


def test_what_has_no_place_without_elements_is_refused() -> None:
    image = Tensor(np.zeros((1, 2, 0, 4)))
    refused = {
        "adaptive pooling": lambda: ops.adaptive_avg_pool2d(image, 2),
        "adaptive pool": lambda: ops.adaptive_max_pool2d(image, 2),
        "Resize": lambda: ops.ResizeNearestNeighbor((3, 4))(image),
        "histogramdd": lambda: gc.numpy.histogramdd(Tensor(np.zeros((3, 0)))),
        "pad": lambda: gc.numpy.pad(Tensor(np.zeros(0)), 1, "edge"),
        "MirrorPad": lambda: ops.MirrorPad("REFLECT")(Tensor(np.zeros(0)), Tensor([[1, 1]])),
    }  # fmt: skip
    for name, f in refused.items():
        with pytest.raises(ValueError, match=name):
            f()
    with pytest.raises(ValueError, match="pad_width"):
        gc.numpy.pad(Tensor(3.0), ((1, 0), (0, 2)))


# Infinite and missing numbers -------------------------------------------------------------------------


def test_what_is_missing_stays_missing() -> None:
    """NaN is not made a number where PyTorch has NaN."""
    x = Tensor([np.nan, 1.0, -1.0, 0.1])
    for f, wanted in (
        (lambda x: ops.hardshrink(x), [1.0, -1.0, 0.0]),
        (lambda x: ops.softshrink(x), [0.5, -0.5, 0.0]),
        (lambda x: ops.threshold(x, 0.2, 2.0), [1.0, 2.0, 2.0]),
    ):
        found = f(x).asnumpy()
        assert np.isnan(found[0])
        np.testing.assert_allclose(found[1:], np.float32(wanted))
    half = Tensor([0.5, 0.5])
    assert np.isnan(ops.kl_div(half, Tensor([np.nan, 0.5])).asnumpy())
    assert ops.kl_div(half, Tensor([0.0, 1.0])).asnumpy() == -0.25


def test_variances_of_infinite_numbers() -> None:
    x = np.array([np.inf, 1.0, 2.0, np.nan])
    with np.errstate(invalid="ignore"):
        for name in ("nanvar", "nanstd"):
            assert np.isnan(getattr(gc.numpy, name)(Tensor(x)).asnumpy())
            found = getattr(gc.numpy, name)(Tensor(x[1:]), ddof=1).asnumpy()
            np.testing.assert_allclose(found, getattr(np, name)(x[1:], ddof=1), rtol=1e-6)
    assert np.isnan(gc.numpy.nanvar(Tensor(x[1:3]), ddof=2).asnumpy())
    none = Tensor(np.zeros((3, 0)))
    assert np.isnan(ops.cov(none).asnumpy()).all()
    assert np.isnan(gc.numpy.cov(none).asnumpy()).all()


def test_angles_of_infinite_numbers() -> None:
    x = np.array([np.inf, -np.inf, np.nan, 2.0])
    np.testing.assert_array_equal(ops.angle(Tensor(x)).asnumpy(), np.angle(x))


def test_integrals_and_angles_of_nothing() -> None:
    none = Tensor(np.zeros((3, 0)))
    np.testing.assert_array_equal(ops.trapz(none).asnumpy(), np.zeros(3))
    assert gc.numpy.unwrap(none).shape == (3, 0)
    with pytest.raises(ValueError, match="cross"):
        gc.numpy.cross(Tensor(np.zeros((2, 0))), Tensor(np.zeros((2, 0))))
    with pytest.raises(ValueError, match="argmax"):
        ops.argmax(Tensor(3.0), 1)
    unpooled = ops.max_unpool2d(
        Tensor(np.zeros((0, 1, 2, 2))), Tensor(np.zeros((0, 1, 2, 2), int)), 2
    )
    assert unpooled.shape == (0, 1, 4, 4)
    assert ops.batch_dot(Tensor(np.zeros((0, 2, 3))), Tensor(np.zeros((0, 3, 4)))).shape == (
        0,
        2,
        4,
    )


def test_rows_of_a_parameter_without_dimensions() -> None:
    w, a, line = (gc.Parameter(Tensor(1.0), name=name) for name in "wal")
    with pytest.raises(ValueError, match="SparseApplyFtrl: a var of at least one dimension"):
        ops.SparseApplyFtrl(0.1, 0.01, 0.02, -0.5)(
            w, a, line, Tensor(1.0), Tensor([1, 1], gc.int32)
        )
