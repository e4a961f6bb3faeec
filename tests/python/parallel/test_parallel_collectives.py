"""Collectives among several processes: values against NumPy, derivatives against one process, random
sequences, effects that are not used."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest
from draws import DRAWN
from rank_programs import COLLECTIVES, SHAPE, inputs
from ranks import needs_ranks, of_tests_that_run, results

import gradcell as gc
from gradcell import Tensor, ops

pytestmark = needs_ranks
#: Random sequences, and how many of them are drawn each day.
SEQUENCES, DRAWN_OF_THEM = 200, 20
#: The programs, by the test that looks at what they give.
PROGRAMS = {
    "test_values_in_all_dtypes": "values",
    "test_functions_messages_groups": "functions",
    "test_derivatives_against_one_process": "derivatives",
    "test_batches": "batched",
    "test_effects_take_place_once_and_in_order": "ordered",
}


@pytest.fixture(scope="module")
def of_three(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> dict[str, list[Any]]:
    """What each program of the tests that run gave in three processes that were started once."""
    names = of_tests_that_run(request, PROGRAMS)
    draw = request.config.stash[DRAWN]
    first = draw.day * DRAWN_OF_THEM % SEQUENCES
    seeds = range(first, first + DRAWN_OF_THEM) if draw.leaves_out else range(SEQUENCES)
    programs: dict[str, Any] = {**{name: {} for name in names}, "sequences": {"seeds": seeds}}
    folder = tmp_path_factory.mktemp("collectives")
    found = results(folder, 3, "several", timeout=240, programs=programs)
    return {name: [of_rank[name] for of_rank in found] for name in programs}


def expected(name: str, all_of: list[np.ndarray]) -> list[np.ndarray]:
    """What each process gets, in NumPy; integers wrap."""
    size = len(all_of)
    stacked = np.stack(all_of)
    reduced = {
        "sum": lambda: stacked.sum(0, dtype=stacked.dtype),
        "max": lambda: stacked.max(0),
        "min": lambda: stacked.min(0),
        "prod": lambda: stacked.prod(0, dtype=stacked.dtype),
    }
    if name in reduced:
        return [reduced[name]()] * size
    if name.startswith("scatter_"):
        return list(np.split(reduced[name.removeprefix("scatter_")](), size))
    if name == "gather":
        return [np.concatenate(all_of)] * size
    if name == "broadcast":
        return [all_of[1]] * size
    if name == "reduce":
        return [reduced["sum"]() if r == 1 else np.zeros_like(all_of[0]) for r in range(size)]
    parts = [np.split(x, size) for x in all_of]
    return [np.concatenate([parts[s][r] for s in range(size)], 1) for r in range(size)]


@pytest.mark.one_in(4)
def test_values_in_all_dtypes(of_three: dict[str, list[Any]]) -> None:
    found = of_three["values"]
    for name, dtype in [k for k in found[0] if isinstance(k, tuple)]:
        x = inputs(3, np.int64 if dtype == "uint8" else dtype)
        x = np.abs(x).astype(np.uint8) if dtype == "uint8" else x
        if dtype == "float16":  # added in float32, rounded once
            wide = expected(name, list(x.astype(np.float32)))
            want = [w.astype(np.float16) for w in wide]
        else:
            want = expected(name, list(x))
        for rank in range(3):
            got = found[rank][name, dtype]
            assert got.dtype == np.dtype(dtype)
            np.testing.assert_array_equal(got, want[rank], err_msg=f"{name} {dtype} {rank}")
    flags = inputs(3) > 0
    for rank in range(3):
        np.testing.assert_array_equal(found[rank]["any"], flags.any(0))
        np.testing.assert_array_equal(found[rank]["all"], flags.all(0))
        np.testing.assert_array_equal(found[rank]["bfloat16"], inputs(3).sum(0))
        assert [np.isnan(v).tolist() for v in found[rank]["nan"]] == [[True, False]] * 2
        assert [v[1] for v in found[rank]["nan"]] == [2, 0]
        assert found[rank]["empty"] == (0, 3)


@pytest.mark.one_in(4)
def test_functions_messages_groups(of_three: dict[str, list[Any]]) -> None:
    x = inputs(3, np.float32)
    found = of_three["functions"]
    rows = [np.arange(6, dtype=np.float32).reshape(6, 1) + 10 * r for r in range(3)]
    given = [[1, 2, 3], [3, 2, 1], [0, 6, 0]]
    for rank, f in enumerate(found):
        np.testing.assert_array_equal(f["all_reduce"], x.max(0))
        np.testing.assert_array_equal(f["gather"], x.reshape(18, 4) * (rank == 1))
        np.testing.assert_array_equal(f["scatter"], x[2][2 * rank : 2 * rank + 2])
        np.testing.assert_array_equal(f["reduce"], x.min(0) * (rank == 0))
        cuts = [np.split(rows[s], np.cumsum(given[s])[:-1])[rank] for s in range(3)]
        np.testing.assert_array_equal(f["uneven"], np.concatenate(cuts))
        assert f["traffic"]["exchanges"] >= 6 and f["traffic"]["bytes"] > 0
    np.testing.assert_array_equal(found[2]["received"], x[0])
    assert found[0]["ends"] == found[2]["ends"] == [2, 0]
    assert (found[0]["number"], found[2]["number"]) == (1, 0)


def in_one_process(name: str, xs: list[Any]) -> list[Any]:
    """A collective on the inputs of all processes: what each of them gets."""
    size = len(xs)

    def reduced(how: str) -> Any:
        function = {"sum": ops.add, "max": ops.maximum, "min": ops.minimum, "prod": ops.mul}[how]
        y = xs[0]
        for x in xs[1:]:
            y = function(y, x)
        return y

    if name in ("sum", "max", "min", "prod"):
        return [reduced(name)] * size
    if name.startswith("scatter_"):
        y, rows = reduced(name.removeprefix("scatter_")), SHAPE[0] // size
        return [y[r * rows : (r + 1) * rows] for r in range(size)]
    if name == "gather":
        return [ops.concat(xs, 0)] * size
    if name == "broadcast":
        return [xs[1]] * size
    if name == "reduce":
        return [reduced("sum") if r == 1 else xs[r] * 0.0 for r in range(size)]
    rows = SHAPE[0] // size
    return [ops.concat([x[r * rows : (r + 1) * rows] for x in xs], 1) for r in range(size)]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("size", [2, 3])
def test_derivatives_against_one_process(
    of_three: dict[str, list[Any]], tmp_path: pathlib.Path, size: int
) -> None:
    found = of_three["derivatives"] if size == 3 else results(tmp_path, size, "derivatives")
    xs = [Tensor(inputs(size)[r] + 0.1 * r + 0.37) for r in range(size)]
    count = SHAPE[0] * SHAPE[1]
    weights = [Tensor(np.linspace(0.5, 1.5, count).reshape(SHAPE) + r) for r in range(size)]
    for name in COLLECTIVES:

        def losses(*xs: Any, name: str = name) -> list[Any]:
            outs = in_one_process(name, [ops.sin(x) * w for x, w in zip(xs, weights, strict=True)])
            made = []
            for r, y in enumerate(outs):
                rows = Tensor(np.arange(float(y.shape[0])).reshape(-1, 1))
                made.append((ops.cos(y) * (rows + 1.0 + r)).sum() + (y * y * 0.1).sum())
            return made

        def total(*xs: Any, losses: Any = losses) -> Any:
            return sum(losses(*xs), Tensor(0.0, gc.float64))

        every = tuple(range(size))

        def slopes(*xs: Any, total: Any = total, every: Any = every) -> Any:
            return sum(((g**2).sum() for g in gc.grad(total, every)(*xs)), Tensor(0.0, gc.float64))

        first = gc.grad(total, every)(*xs)
        second = gc.grad(slopes, every)(*xs)
        values = losses(*xs)
        for r in range(size):
            _, tangent = gc.jvp(
                lambda *xs, r=r, losses=losses: losses(*xs)[r], tuple(xs), tuple(weights)
            )
            got = found[r][name]
            close = {"rtol": 1e-11, "atol": 1e-11, "err_msg": f"{name} rank {r}"}
            np.testing.assert_allclose(got["loss"], values[r].asnumpy(), **close)
            np.testing.assert_allclose(got["grad"], first[r].asnumpy(), **close)
            np.testing.assert_allclose(got["jit"], first[r].asnumpy(), **close)
            np.testing.assert_allclose(got["tangent"], tangent.asnumpy(), **close)
            np.testing.assert_allclose(got["second"], second[r].asnumpy(), rtol=1e-10, atol=1e-9)
    # Products at zeros: of the other processes' factors alone.
    z = np.stack([found[r]["zeros"][0] for r in range(size)])
    weight = sum(1.0 + r for r in range(size))
    for r in range(size):
        np.testing.assert_allclose(found[r]["zeros"][1], weight * np.delete(z, r, 0).prod(0))


def test_batches(of_three: dict[str, list[Any]]) -> None:
    """A collective over a batch is one exchange, not one for each example."""
    for found in of_three["batched"]:
        for name, (over, single, count) in found.items():
            np.testing.assert_allclose(over, single, rtol=1e-12, err_msg=name)
            assert count == 1, name


def test_effects_take_place_once_and_in_order(of_three: dict[str, list[Any]]) -> None:
    found = of_three["ordered"]
    x = inputs(3)
    a = (x * x).sum(0)
    for rank in range(3):
        value, count, gradient, more = found[rank]
        np.testing.assert_allclose(value, (a * a * x[rank]).sum())
        assert count == 4  # two sums, the one that nobody uses, the barrier
        assert more == found[0][3] and np.isfinite(gradient).all()


def test_random_sequences(of_three: dict[str, list[Any]]) -> None:
    found = of_three["sequences"]
    for seed in found[0]:
        random = np.random.default_rng(seed)
        steps = [
            (str(random.choice(list(COLLECTIVES))), float(random.uniform(0.5, 1.5)))
            for _ in range(random.integers(1, 6))
        ]
        keep = bool(random.integers(2))
        xs = list(inputs(3, np.float64, seed))
        ys = xs
        for at, (name, factor) in enumerate(steps):
            zs = expected(name, [y * factor for y in ys])
            for rank in range(3):
                for run in found[rank][seed]:
                    np.testing.assert_allclose(
                        run[at], zs[rank], rtol=1e-9, atol=1e-12, err_msg=f"{seed} {at} {name}"
                    )
            padded = [np.concatenate([z.reshape(-1)[:24], np.ones(24)])[:24] for z in zs]
            ys = [
                np.tanh(z.reshape(SHAPE)) + (y if keep else 0.0)
                for z, y in zip(padded, ys, strict=True)
            ]
