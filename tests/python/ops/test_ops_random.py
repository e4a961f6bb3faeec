"""Random numbers: moments, seeds, streams, dropout."""

from __future__ import annotations

import random

import numpy as np
import pytest
from ops_checks import T, close, ramp

import gradcell as ms
from gradcell import Tensor, ops


def test_moments_of_random_numbers() -> None:
    ms.set_seed(3)
    n = 200_000
    u = ops.rand(n).asnumpy()
    assert 0 <= u.min() and u.max() < 1
    assert abs(u.mean() - 0.5) < 4e-3 and abs(u.var() - 1 / 12) < 2e-3
    g = ops.randn(n + 1).asnumpy().astype(np.float64)
    assert g.shape == (n + 1,) and np.isfinite(g).all()
    assert abs(g.mean()) < 0.01 and abs(g.var() - 1) < 0.02
    assert abs((g**3).mean()) < 0.04 and abs((g**4).mean() - 3) < 0.1
    assert abs(np.corrcoef(g[:-1], g[1:])[0, 1]) < 0.01
    assert abs(np.corrcoef(g[: n // 2], g[n // 2 : n])[0, 1]) < 0.015
    k = ops.randint(-2, 5, (n,)).asnumpy()
    np.testing.assert_allclose(np.bincount(k + 2) / n, np.full(7, 1 / 7), atol=5e-3)
    wide = ops.randint(0, 1 << 40, (1000,)).asnumpy()
    assert len(np.unique(wide % 1024)) > 500 and wide.max() > 1 << 39
    b = ops.bernoulli(ops.zeros(n), 0.3).asnumpy()
    assert set(np.unique(b)) == {0.0, 1.0} and abs(b.mean() - 0.3) < 5e-3
    x = ops.uniform((n,), T(-2.0, ms.float32), T(3.0, ms.float32)).asnumpy()
    assert -2 <= x.min() and x.max() < 3 and abs(x.mean() - 0.5) < 0.02
    y = ops.normal((n,), 2.0, 3.0).asnumpy()
    assert abs(y.mean() - 2) < 0.03 and abs(y.std() - 3) < 0.03


def test_dropout() -> None:
    ms.set_seed(0)
    x = ops.ones((100, 1000))
    y = ops.dropout(x, p=0.25).asnumpy()
    np.testing.assert_allclose(np.unique(y), [0, 1 / 0.75], rtol=1e-6)
    assert abs((y == 0).mean() - 0.25) < 5e-3
    close(ops.dropout(x, 0.3, training=False), x.asnumpy())
    close(ops.dropout(x, 0.0), x.asnumpy())
    close(ops.dropout(x, 1.0), np.zeros((100, 1000)))
    out, mask = ops.Dropout(keep_prob=0.4)(x)
    np.testing.assert_array_equal(out.asnumpy() != 0, mask.asnumpy() == 1)
    (gradient, kept) = ms.grad(lambda t: _twice(ops.dropout(t, 0.5)), has_aux=True)(x)
    np.testing.assert_array_equal(gradient.asnumpy(), 2 * (kept[0].asnumpy() != 0))
    for p, kind in ((1.5, ValueError), (-0.1, ValueError), ("a", TypeError)):
        with pytest.raises(kind):
            ops.dropout(x, p)


def _twice(x: Tensor) -> tuple[Tensor, Tensor]:
    return x.sum(), x


def test_same_seed_same_numbers_in_both_modes() -> None:
    @ms.jit
    def compiled(n: Tensor) -> Tensor:
        return ops.randn(5) * n + ops.dropout(ops.ones(5), 0.5)

    def plain(n: Tensor) -> Tensor:
        return ops.randn(5) * n + ops.dropout(ops.ones(5), 0.5)

    runs = []
    for fn in (compiled, plain):
        ms.set_seed(11)
        runs.append([fn(T(2.0, ms.float32)).asnumpy().copy() for _ in range(3)])
    np.testing.assert_array_equal(runs[0], runs[1])
    assert not np.array_equal(runs[0][0], runs[0][1])
    assert ms.get_seed() == 11


def test_gradients_draw_new_numbers(mode: int) -> None:
    fn = ms.value_and_grad(lambda x: (x * ops.rand(3)).sum())
    x = T(np.ones(3, np.float32))
    ms.set_seed(5)
    first = [fn(x)[1].asnumpy().copy() for _ in range(3)]
    ms.set_seed(5)
    again = [fn(x)[1].asnumpy().copy() for _ in range(3)]
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first[0], first[1]) and not np.array_equal(first[1], first[2])


def test_own_streams() -> None:
    ms.set_seed(1)
    a, b = ops.rand(4, seed=7).asnumpy().copy(), ops.rand(4, seed=7).asnumpy().copy()
    c = ops.rand(4, seed=8).asnumpy().copy()
    assert not np.array_equal(a, b) and not np.array_equal(a, c)
    ms.set_seed(1)
    np.testing.assert_array_equal(ops.rand(4, seed=7).asnumpy(), a)
    ms.set_seed(1)
    np.testing.assert_array_equal(ops.UniformReal(7)((4,)).asnumpy(), a)
    assert ops.StandardNormal()((2, 3)).shape == (2, 3)
    assert ops.randn(0).shape == (0,) and ops.rand((2, 0)).shape == (2, 0)
    np.testing.assert_array_equal(np.sort(ops.randperm(9).asnumpy()), np.arange(9))


def test_failed_function_does_not_advance_the_stream() -> None:
    def fails(x: Tensor) -> Tensor:
        ops.rand(3)
        raise KeyError("stop")

    ms.set_seed(2)
    expected = ops.rand(3).asnumpy().copy()
    ms.set_seed(2)
    with pytest.raises(KeyError):
        ms.grad(fails)(ramp(2))
    np.testing.assert_array_equal(ops.rand(3).asnumpy(), expected)


def test_seed_errors() -> None:
    with pytest.raises(ValueError):
        ms.set_seed(-1)
    for bad in (1.5, "1", None, True):
        with pytest.raises(TypeError):
            ms.set_seed(bad)
    with pytest.raises(ValueError):
        ops.randint(3, 3, (2,))


@pytest.mark.parametrize("seed", [0, 1, 2**31, 2**32 - 1, 2**32, 2**63 - 1])
@pytest.mark.parametrize("of", ["set_seed", "dataset.config.set_seed"])
def test_a_seed_holds_for_numpy_and_python_too(seed: int, of: str) -> None:
    """As MindSpore documents it: numpy.random and Python's random start with it."""
    ms.set_seed(7)
    (ms.set_seed if of == "set_seed" else ms.dataset.config.set_seed)(seed)
    words = seed if seed < 2**32 else [seed % 2**32, seed // 2**32]
    expected = np.random.RandomState(words)
    np.testing.assert_array_equal(np.random.randn(5), expected.randn(5))
    np.testing.assert_array_equal(np.random.permutation(9), expected.permutation(9))
    of_python = random.Random(seed)
    assert [random.random() for _ in range(3)] == [of_python.random() for _ in range(3)]
    assert ms.dataset.config.get_seed() == seed
    ms.set_seed(5)
    assert ms.dataset.config.get_seed() == 5  # of the two the later one
