"""The places of sparse elements: reshaped, beside NumPy's; values counted in rows, beside a loop."""

from __future__ import annotations

import numpy as np
import pytest

import gradcell as gc
from gradcell import Tensor, ops
from gradcell.ops.primitives.sparse_places import sparse_count, sparse_reshape

RNG = np.random.default_rng(4)


@pytest.mark.filterwarnings("ignore:.*asked for a tensor's value:RuntimeWarning")
@pytest.mark.parametrize(
    ("shape", "new"), [((4, 6), (3, -1, 2)), ((2, 3, 4), (24,)), ((12,), (3, 4)), ((2, 2), (2, 2))]
)
def test_places_in_another_shape(shape, new):
    flat = np.sort(RNG.choice(np.prod(shape), 3, replace=False))
    full = np.zeros(shape).reshape(new).shape
    given = (
        Tensor(np.stack(np.unravel_index(flat, shape), 1)),
        Tensor(np.array(shape)),
        Tensor(np.array(new)),
    )
    for found in (sparse_reshape(*given), gc.jit(sparse_reshape)(*given)):
        np.testing.assert_array_equal(found[0].asnumpy(), np.stack(np.unravel_index(flat, full), 1))
        np.testing.assert_array_equal(found[1].asnumpy(), full)


def test_shapes_that_do_not_fit():
    at = Tensor(np.array([[0, 1]]))
    cases = [
        ([2, 3], [4, -1]),
        ([2, 3], [7]),
        ([2, 3], [-1, -1]),
        ([6], [2, 3]),
        ([2, 2], [-2, -2]),
    ]
    for old, new in cases:
        with pytest.raises(ValueError, match="SparseReshape"):
            sparse_reshape(at, Tensor(np.array(old)), Tensor(np.array(new)))


@pytest.mark.filterwarnings("ignore:.*asked for a tensor's value:RuntimeWarning")
@pytest.mark.parametrize(
    "options", [{}, {"binary_output": True}, {"minlength": 9}, {"maxlength": 4}]
)
@pytest.mark.parametrize("dims", [(3, 50), (50,)])
def test_counts(options, dims):
    n = 20
    at = np.stack([np.sort(RNG.integers(0, m, n)) for m in dims], 1)
    values, weights = RNG.integers(0, 7, n), RNG.standard_normal(n)
    wanted: dict = {}
    for place, value, weight in zip(at, values, weights, strict=True):
        key = (*place[: len(dims) - 1], value)
        if value < options.get("maxlength", 10**9):
            wanted[key] = 1 if options.get("binary_output") else wanted.get(key, 0) + weight
    given = Tensor(at), Tensor(values), Tensor(np.array(dims)), Tensor(weights)

    def count(*given):
        return sparse_count(*given, **options)

    for found in (count(*given), gc.jit(count)(*given)):
        places, counts, shape = (t.asnumpy() for t in found)
        np.testing.assert_array_equal(places, np.array(sorted(wanted)).reshape(-1, len(dims)))
        np.testing.assert_allclose(counts, [wanted[k] for k in sorted(wanted)], 1e-13)
        columns = options.get("maxlength", max(values.max() + 1, options.get("minlength", 0)))
        np.testing.assert_array_equal(shape, [*dims[:-1], columns])


def test_counts_have_gradients_by_the_weights():
    at, values = Tensor(np.array([[0, 1], [0, 2], [1, 0]])), Tensor(np.array([1, 1, 5]))

    def total(weights):
        counts = sparse_count(at, values, Tensor(np.array([2, 3])), weights)[1]
        return ops.sum(counts * counts)

    found = gc.grad(total)(Tensor([1.0, 2.0, 0.5], gc.float64))
    np.testing.assert_allclose(found.asnumpy(), [6, 6, 1], 1e-14)


def test_values_that_do_not_fit():
    at, shape, one = Tensor(np.array([[0, 1]])), Tensor(np.array([2, 3])), Tensor([1.0])
    with pytest.raises(ValueError, match="negative"):
        sparse_count(at, Tensor([-1]), shape, one)
    with pytest.raises(ValueError, match="do not fit"):
        sparse_count(at, Tensor([1, 2]), shape, one)
