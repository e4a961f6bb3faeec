"""gc.random: numbers by keys are Philox's, the same in all modes and transforms, and distributed as named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradcell as gc
from gradcell import Tensor, ops, random
from gradcell.ops.random import keys as philox

KEY = random.key(7)
N = 20_000


def word(*values: int) -> list[Tensor]:
    return [Tensor(np.array([v], np.uint64)) for v in values]


@pytest.mark.parametrize(
    ("key", "counter", "wanted"),
    [  # the known answers that the authors of Philox give for 4x32 with 10 rounds
        (0, (0,) * 4, (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        (2**64 - 1, (2**32 - 1,) * 4, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (
            0x299F31D0A4093822,
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)
def test_known_answers(key: int, counter: Any, wanted: Any) -> None:
    found = philox.philox(Tensor(np.uint64(key)), word(*counter))
    assert tuple(int(w.asnumpy()[0]) for w in found) == wanted


DRAWS: dict[str, Any] = {
    "bits": lambda k: random.bits(k, (5, 3)),
    "uniform": lambda k: random.uniform(k, (5, 3)),
    "uniform, float64": lambda k: random.uniform(k, (7,), gc.float64, -2.0, 3.0),
    "uniform, float16": lambda k: random.uniform(k, (7,), gc.float16),
    "normal": lambda k: random.normal(k, (5,)),
    "normal, float64": lambda k: random.normal(k, (4, 2), gc.float64),
    "normal, one": lambda k: random.normal(k),
    "exponential": lambda k: random.exponential(k, (6,)),
    "randint": lambda k: random.randint(k, (9,), -3, 5),
    "randint, wide": lambda k: random.randint(k, (9,), 0, 2**40),
    "bernoulli": lambda k: random.bernoulli(k, 0.3, (11,)),
    "permutation": lambda k: random.permutation(k, 8),
    "permutation of slices": lambda k: random.permutation(k, Tensor(np.arange(12.0).reshape(6, 2))),
    "categorical": lambda k: random.categorical(k, Tensor(np.log([0.2, 0.5, 0.3])), (7,)),
    "choice": lambda k: random.choice(k, 5, (4,)),
    "choice, each once": lambda k: random.choice(k, Tensor(np.arange(6.0)), (2, 3), replace=False),
    "choice by p": lambda k: random.choice(k, 3, (8,), p=Tensor([0.1, 0.0, 0.9])),
    "choice by p, each once": lambda k: random.choice(k, 4, (3,), False, Tensor([0.1, 0.4, 0.2, 0.3])),
    "split": lambda k: random.split(k, (2, 3)),
    "fold_in": lambda k: random.fold_in(k, 12),
    "ops.dropout": lambda k: ops.dropout(Tensor(np.ones(20, np.float32)), 0.5, seed=k),
    "ops.standard_normal": lambda k: ops.standard_normal((5,), seed=k),
    "ops.rand": lambda k: ops.rand(5, seed=k),
    "ops.multinomial": lambda k: ops.multinomial(Tensor([0.2, 0.8]), 6, seed=k),
}  # fmt: skip
every = pytest.mark.parametrize("name", DRAWS)


@every
@pytest.mark.parametrize("mode", [gc.PYNATIVE_MODE, gc.GRAPH_MODE])
def test_a_key_has_the_same_numbers_everywhere(name: str, mode: int) -> None:
    before = gc.get_context("mode")
    gc.set_context(mode=mode)
    try:
        draw = DRAWS[name]
        many = random.split(KEY, 3)
        want = [draw(k).asnumpy() for k in many]
        assert all(
            draw(k).asnumpy().tobytes() == w.tobytes() for k, w in zip(many, want, strict=True)
        )
        assert len({w.tobytes() for w in want}) > 1 or name in ("normal, one",)
        compiled = gc.jit(draw)
        for k, w in zip(many, want, strict=True):
            np.testing.assert_array_equal(compiled(k).asnumpy(), w)
        np.testing.assert_array_equal(gc.vmap(draw)(many).asnumpy(), want)
        np.testing.assert_array_equal(gc.jit(gc.vmap(draw))(many).asnumpy(), want)
        nested = gc.vmap(gc.vmap(lambda k: draw(k)))(ops.reshape(many, (3, 1)))
        np.testing.assert_array_equal(nested.asnumpy()[:, 0], want)
        alone = gc.vmap(lambda x: draw(KEY) if x.ndim else x, 0)(Tensor(np.ones((2, 1))))
        np.testing.assert_array_equal(alone.asnumpy(), [draw(KEY).asnumpy()] * 2)
    finally:
        gc.set_context(mode=before)


def test_set_seed_and_other_draws_change_nothing() -> None:
    want = random.uniform(KEY, (4,)).asnumpy()
    gc.set_seed(7)
    assert not np.array_equal(ops.rand(4).asnumpy(), want)
    np.testing.assert_array_equal(random.uniform(KEY, (4,)).asnumpy(), want)


def test_a_longer_draw_begins_as_a_shorter_one() -> None:
    long = random.uniform(KEY, (11,)).asnumpy()
    np.testing.assert_array_equal(random.uniform(KEY, (6,)).asnumpy(), long[:6])
    np.testing.assert_array_equal(long, (random.bits(KEY, (11,)).asnumpy() >> 8) * 2.0**-24)


def test_keys_differ() -> None:
    several = [*random.split(KEY, 500).asnumpy().tolist()]
    several += [int(random.fold_in(KEY, i)) for i in range(200)]
    several += [int(random.key(i)) for i in range(200)]
    several += random.split(random.split(KEY)[0], 100).asnumpy().tolist()
    assert len(set(several)) == 1000
    np.testing.assert_array_equal(random.split(KEY, 5).asnumpy()[:2], random.split(KEY).asnumpy())
    folded = gc.vmap(lambda i: random.fold_in(KEY, i))(Tensor(np.arange(4)))
    assert folded.asnumpy().tolist() == [int(random.fold_in(KEY, i)) for i in range(4)]
    assert int(gc.jit(random.key)(Tensor(5))) == int(random.key(5))


def test_each_bit_of_words_and_keys_is_fair() -> None:
    words = random.bits(KEY, (N,)).asnumpy()
    many = random.split(KEY, N).asnumpy()
    for x, count in ((words, 32), (many, 64)):
        share = [(x >> np.array(b, x.dtype) & np.array(1, x.dtype)).mean() for b in range(count)]
        assert np.abs(np.array(share) - 0.5).max() < 4.5 * 0.5 / np.sqrt(N)


def test_distributions() -> None:
    stats = pytest.importorskip("scipy.stats")
    first, second = random.split(KEY)
    for numbers, law in (
        (random.uniform(first, (N,), gc.float64, -1.0, 3.0), stats.uniform(-1, 4)),
        (random.uniform(first, (N,)), stats.uniform()),
        (random.normal(first, (N,)), stats.norm()),
        (random.normal(first, (N,), gc.float64), stats.norm()),
        (random.exponential(first, (N,)), stats.expon()),
    ):
        assert stats.kstest(numbers.asnumpy().astype(np.float64), law.cdf).pvalue > 1e-3
    for counts, p in (
        (np.bincount(random.randint(first, (N,), 0, 7).asnumpy(), minlength=7), np.ones(7) / 7),
        (np.bincount(random.bernoulli(first, 0.3, (N,)).asnumpy(), minlength=2), [0.7, 0.3]),
        (
            np.bincount(random.categorical(first, Tensor(np.log([0.2, 0.5, 0.3])), (N,)).asnumpy()),
            [0.2, 0.5, 0.3],
        ),
        (np.bincount(random.choice(first, 2, (N,), p=Tensor([0.1, 0.9])).asnumpy()), [0.1, 0.9]),
        (
            np.bincount(
                gc.vmap(lambda k: random.permutation(k, 4))(random.split(first, N)).asnumpy()[:, 0]
            ),
            np.ones(4) / 4,
        ),
    ):
        assert stats.chisquare(counts, np.array(p) * N).pvalue > 1e-3
    a, b = (random.normal(k, (N,)).asnumpy() for k in (first, second))
    assert abs(np.corrcoef(a, b)[0, 1]) < 4.5 / np.sqrt(N)
    each = gc.vmap(lambda k: random.normal(k))(random.split(KEY, N)).asnumpy()
    assert stats.kstest(each.astype(np.float64), "norm").pvalue > 1e-3
    assert abs(np.corrcoef(each[1:], each[:-1])[0, 1]) < 4.5 / np.sqrt(N)


def test_numbers_stay_below_one() -> None:
    for dtype, count in ((gc.float16, 11), (gc.bfloat16, 8), (gc.float32, 24), (gc.float64, 48)):
        x = random.uniform(KEY, (N,), dtype).asnumpy().astype(np.float64)
        assert 0 <= x.min() and x.max() < 1 and np.all(np.mod(x * 2.0**count, 1) == 0)
    for k in range(200):
        order = random.permutation(random.fold_in(KEY, k), 6).asnumpy()
        assert sorted(order) == list(range(6))
        once = random.choice(random.fold_in(KEY, k), 6, (5,), replace=False).asnumpy()
        assert len(set(once.tolist())) == 5


def test_gradients_and_loops() -> None:
    def mean(scale: Tensor, k: Tensor) -> Tensor:
        return (random.normal(k, (50,), gc.float64) * scale).mean()

    one = Tensor(1.0, gc.float64)
    assert float(gc.grad(mean)(one, KEY)) == pytest.approx(float(mean(one, KEY)), rel=1e-12)
    each = gc.vmap(gc.grad(mean), (None, 0))(one, random.split(KEY, 3)).asnumpy()
    want = [float(mean(one, k)) for k in random.split(KEY, 3)]
    np.testing.assert_allclose(each, want, rtol=1e-12)
    slope = gc.grad(lambda a: random.uniform(KEY, (4,), gc.float64, a, 2.0).sum())(one)
    assert float(slope) == pytest.approx(4 - float(random.uniform(KEY, (4,), gc.float64).sum()))

    def walk(carry: Any, _: Tensor) -> Any:
        k, x = carry
        k, now = random.split(k)
        x = x + random.normal(now)
        return (k, x), x

    (_, last), path = ops.scan(walk, (KEY, Tensor(0.0)), Tensor(np.zeros(6)))
    k, x = KEY, 0.0
    for i in range(6):
        k, now = random.split(k)
        x += float(random.normal(now))
        assert float(path[i]) == pytest.approx(x, rel=1e-5)
    assert float(last) == float(path[-1])


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: random.uniform(0, (3,)), TypeError, r"random.uniform: expected a key, as random.key\(0\)"),
        (lambda: random.normal(random.split(KEY), (3,)), TypeError, r"shape \[2\]: vmap the function"),
        (lambda: random.split(Tensor(1)), TypeError, "random.split: expected a key"),
        (lambda: random.key(-1), ValueError, "from 0 to below"),
        (lambda: random.key(0.5), TypeError, "seed"),
        (lambda: random.uniform(KEY, (3,), gc.int32), TypeError, "real floating one, got Int32"),
        (lambda: random.uniform(KEY, (-1,)), ValueError, "negative|shape"),
        (lambda: random.bernoulli(KEY, 1.5), ValueError, "bernoulli"),
        (lambda: random.choice(KEY, 3, (4,), replace=False), ValueError, "4 of 3"),
        (lambda: random.categorical(KEY, Tensor(np.ones((2, 3))), (5,)), ValueError, "does not end"),
        (lambda: random.fold_in(KEY, Tensor(0.5)), TypeError, "one integer"),
        (lambda: random.randint(KEY, (2,), 3, 3), ValueError, "less than high"),
    ],
)  # fmt: skip
def test_what_is_refused(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()
