"""What the tests of training share: a small network, counts of plans and host reads."""

import contextlib

import numpy as np

import gradcell as ms
from gradcell import Parameter, Tensor, _core, nn


class Linear(nn.Cell):
    """The mean squared error of x @ w, computed in `dtype`, times `factor`."""

    def __init__(self, dtype=ms.float32, factor=1.0):
        super().__init__()
        self.w = Parameter(Tensor(np.array([0.5, -1.0, 2.0], np.float32)), name="w")
        self.dtype, self.factor = dtype, factor

    def construct(self, x, y):
        w = self.w.astype(self.dtype)
        residual = (x.astype(self.dtype) * w).sum(axis=1) - y.astype(self.dtype)
        return (residual * residual).mean() * self.factor


X = np.array([[1, 2, 3], [0.5, -1, 0.25], [-2, 1, 1], [0, 0.5, -1]], np.float32)
Y = np.array([1, -2, 0.5, 3], np.float32)
START = np.array([0.5, -1.0, 2.0])


def batch():
    return Tensor(X), Tensor(Y)


def linear_gradient(w):
    """(loss, gradient) of Linear in float64."""
    residual = X.astype(np.float64) @ w - Y
    return (residual**2).mean(), 2 * (residual[:, None] * X).mean(axis=0)


@contextlib.contextmanager
def counted():
    """Counts, in the dict it gives, the plans run and made inside."""
    before = _core.plan_cache_info()
    counts = {}
    yield counts
    after = _core.plan_cache_info()
    counts["runs"] = after["runs"] - before["runs"]
    counts["made"] = after["misses"] - before["misses"]


def snapshot(cell):
    """Copies of a cell's parameters by name."""
    return {p.name: p.asnumpy().copy() for p in cell.get_parameters()}


def assert_same(a, b):
    """Bit for bit."""
    assert list(a) == list(b)
    for name in a:
        assert a[name].tobytes() == b[name].tobytes(), name
