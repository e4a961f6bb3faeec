"""Learning rates in a word."""

import pickle

import numpy as np
import pytest

import gradcell as gc
from gradcell import Parameter, Tensor, nn, schedules

STEPS = np.arange(12)
P = np.minimum(STEPS / 8, 1)


def check(schedule, want):
    got = schedule(Tensor(STEPS))
    assert got.dtype == gc.float32
    np.testing.assert_allclose(got.asnumpy(), want, rtol=1e-6, atol=1e-9)


def test_rates():
    check(schedules.linear(1e-2, 1e-4, 8), 1e-2 + (1e-4 - 1e-2) * P)
    check(schedules.linear(0, 1, 8), P)
    check(schedules.cosine(1e-2, 1e-4, 8), 1e-4 + (1e-2 - 1e-4) * (1 + np.cos(np.pi * P)) / 2)
    check(schedules.exponential(1e-2, 1e-5, 8), 10 ** (-2 - 3 * P))
    check(schedules.constant(0.3), np.full(12, 0.3))
    check(schedules.piecewise({0: 3.0, 2: 0.5, 5: 1}), [3.0] * 2 + [0.5] * 3 + [1.0] * 7)
    assert float(schedules.linear(0.0, 1.0, 4)(1)) == 0.25


def test_warm_up():
    check(schedules.constant(0.3, warmup=3), [0.1, 0.2, *[0.3] * 10])
    late = [1.0, *(1 - np.minimum(np.arange(8) / 4, 1))]
    check(schedules.linear(1.0, 0.0, 4, warmup=4), [0.25, 0.5, 0.75, *late])
    check(schedules.piecewise({0: 1.0, 2: 0.1}, warmup=2), [0.5, 1.0, 1.0, 1.0, *[0.1] * 8])


def test_in_a_compiled_step():
    p = Parameter(Tensor([0.0]), name="p")
    schedule = pickle.loads(pickle.dumps(schedules.cosine(1.0, 0.0, 4)))
    step = gc.train_step(lambda: p.sum(), nn.SGD([p], schedule))
    for _ in range(6):
        step()
    np.testing.assert_allclose(
        p.asnumpy(), [-(1 + (2 + 2**0.5) / 4 + 0.5 + (2 - 2**0.5) / 4)], rtol=1e-6
    )


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: schedules.cosine(-1.0, 0.0, 3), ValueError, "start"),
        (lambda: schedules.exponential(1.0, 0.0, 3), ValueError, "end"),
        (lambda: schedules.linear(1.0, 0.0, 0), ValueError, "steps"),
        (lambda: schedules.linear(1.0, 0.0, 2.5), TypeError, "steps"),
        (lambda: schedules.constant("a"), TypeError, "number"),
        (lambda: schedules.constant(1.0, warmup=-1), ValueError, "warmup"),
        (lambda: schedules.piecewise([1.0]), TypeError, "a dict from steps to rates, got list"),
        (lambda: schedules.piecewise({}), ValueError, "begins at step 0"),
        (lambda: schedules.piecewise({3: 1.0}), ValueError, "begins at step 0"),
        (lambda: schedules.piecewise({0: 1.0, 5: 1.0, 3: 2.0}), ValueError, r"got \[0, 5, 3\]"),
        (lambda: schedules.cosin, AttributeError, "cosin"),
    ],
)
def test_schedules_refuse(call, error, text):
    with pytest.raises(error, match=text):
        call()
