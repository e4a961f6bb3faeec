"""Training by several processes against training by one: the same batches, the same weights."""

from __future__ import annotations

import functools
import importlib.util
import pathlib
import re
from typing import Any

import numpy as np
import pytest
from rank_programs import inputs, least_squares, pinn, train
from ranks import needs_ranks, of_tests_that_run, results, start

import gradcell as gc

pytestmark = [
    needs_ranks,
    # (It is imported where it is needed: all processes of the tests would import it with this file.)
    pytest.mark.skipif(importlib.util.find_spec("sklearn") is None, reason="no sklearn"),
]

OPTIONS = ("", "scale", "accumulate", "clip", "shared", "shared scale", "norm", "broadcast",
           "buckets", "decay", "line", "shared line", "+graph", "shared scale+graph")  # fmt: skip


@pytest.fixture(autouse=True)
def settings() -> Any:
    yield
    gc.reset_auto_parallel_context()
    gc.set_context(mode=gc.PYNATIVE_MODE)


@functools.cache
def alone(option: str) -> Any:
    """One process, with the whole batches."""
    found = train(0, 1, option.removesuffix("+graph"), graph="+graph" in option)
    gc.reset_auto_parallel_context()
    gc.set_context(mode=gc.PYNATIVE_MODE)
    return found


#: The programs, by the test that looks at what they give.
PROGRAMS = {
    "test_two_processes_train_as_one": "trains",
    "test_half_precision": "trains",
    "test_reducer": "reducers",
    "test_pinn": "pinn",
    "test_gauss_newton": "least_squares",
}


@pytest.fixture(scope="module")
def of_two(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> dict[str, list[Any]]:
    """What each program of the tests that run gave in two processes that were started once."""
    options = {"trains": {"options": [*OPTIONS, "half"]}}
    programs: dict[str, Any] = {
        name: options.get(name, {}) for name in of_tests_that_run(request, PROGRAMS)
    }
    found = results(tmp_path_factory.mktemp("training"), 2, "several", programs=programs)
    return {name: [of_rank[name] for of_rank in found] for name in programs}


def check(found: list[Any], option: str, size: int) -> None:
    want = alone(option)
    for rank in range(size):
        got = found[rank][option]
        np.testing.assert_allclose(got["losses"], want["losses"], rtol=2e-5, err_msg=option)
        assert got["scales"] == want["scales"]
        for name, value in want["weights"].items():
            np.testing.assert_allclose(
                got["weights"][name], value, rtol=2e-3, atol=2e-5, err_msg=f"{option} {name}"
            )
            same = found[0][option]["weights"][name].tobytes()
            assert got["weights"][name].tobytes() == same, f"{option} {name} differs by rank"


@pytest.mark.one_in(3)
def test_two_processes_train_as_one(of_two: dict[str, list[Any]]) -> None:
    check_all(of_two["trains"], 2)


@pytest.mark.one_in(32)
@pytest.mark.parametrize("size", [1, 4])
def test_processes_train_as_one(tmp_path: pathlib.Path, size: int) -> None:
    check_all(results(tmp_path, size, "trains", timeout=240, options=list(OPTIONS)), size)


def check_all(runs: list[Any], size: int) -> None:
    """As one process does, whatever their number; and a second run gives the same bits."""
    found, again = ([of_rank[k] for of_rank in runs] for k in (0, 1))
    for option in OPTIONS:
        check(found, option, size)
        first, second = found[0][option], again[size - 1][option]
        # (The loss of the step that overflows is NaN.)
        np.testing.assert_array_equal(first["losses"], second["losses"], err_msg=option)
        assert first["scales"] == second["scales"], option
        for name, value in first["weights"].items():
            assert value.tobytes() == second["weights"][name].tobytes(), f"{option} {name}"
    assert [o for o, _ in found[0]["scale"]["scales"]].count(True) == 1
    # The state is shared out: parts of the moments of what has equal parts.
    whole, part = found[0][""]["state"], found[0]["shared"]["state"]
    moments = [name for name in whole if "moment" in name and whole[name][0] % size == 0]
    assert any(name.endswith("weight") for name in moments)
    for name in moments:
        assert part[name] == (whole[name][0] // size, *whole[name][1:])


@pytest.mark.one_in(3)
def test_half_precision(of_two: dict[str, list[Any]]) -> None:
    found = [once for once, _ in of_two["trains"]]
    want = alone("half")
    np.testing.assert_allclose(found[0]["half"]["losses"], want["losses"], rtol=5e-3)
    assert found[0]["half"]["scales"] == found[1]["half"]["scales"]


def test_reducer(of_two: dict[str, list[Any]]) -> None:
    for f in of_two["reducers"]:
        np.testing.assert_array_equal(f["half mean"], np.full(3, 60000, np.float16))
        for got, dtype in zip(f["sum"], ("float32", "float16", "float32", "float64"), strict=True):
            x = inputs(2, dtype)
            assert got.dtype == np.dtype(dtype)
            np.testing.assert_array_equal(got, x.astype(np.float64).sum(0).astype(dtype))
        np.testing.assert_array_equal(f["degree"], inputs(2, "float32").sum(0) / 4)


def test_gauss_newton(of_two: dict[str, list[Any]]) -> None:
    """The loss is the mean of all points', so two processes take the steps of one."""
    one = least_squares(0, 1)
    for runs in of_two["least_squares"]:
        for (loss, x, reason, damping), want in zip(runs, one, strict=True):
            assert reason == want[2] and damping == pytest.approx(want[3], rel=1e-6)
            assert loss == pytest.approx(want[0], rel=1e-4)
            np.testing.assert_allclose(x, want[1], rtol=1e-4, atol=1e-5)
    first, second = of_two["least_squares"]
    for a, b in zip(first, second, strict=True):  # the same to the bit
        np.testing.assert_array_equal(a[1], b[1])


def test_pinn(of_two: dict[str, list[Any]]) -> None:
    one = pinn(0, 1)
    for weights in of_two["pinn"]:
        for got, want in zip(weights, one, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-3, atol=2e-5)


@pytest.mark.one_in(6)
@pytest.mark.parametrize("size", [1, 2, 4])
def test_model_saves_once_and_any_number_goes_on(tmp_path: pathlib.Path, size: int) -> None:
    folder = tmp_path / "saved"
    folder.mkdir()
    found = results(tmp_path, 2, "model", folder=str(folder), resume=False)
    assert sorted(p.name for p in folder.iterdir()) == ["digits-1_4.ckpt", "digits-2_4.ckpt"]
    whole = gc.load_checkpoint(str(folder / "digits-1_4.ckpt"))
    moments = [n for n in found[0]["shapes"] if n.startswith("moment1") and "weight" in n]
    for name in moments:  # each process has half of what the file has
        assert whole[name].shape[0] == 2 * found[0]["shapes"][name][0]
    gone_on = results(tmp_path, size, "model", folder=str(folder), resume=True)
    for got, want in zip(gone_on[0]["weights"], found[0]["weights"], strict=True):
        if size == 2:
            assert got.tobytes() == want.tobytes()
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-5)


@pytest.mark.one_in(3)
def test_the_documents_programs(tmp_path: pathlib.Path) -> None:
    """The programs of docs/parallel.md run, with fewer points and steps."""
    text = (pathlib.Path(__file__).parents[3] / "docs" / "parallel.md").read_text()
    programs = re.findall(r"```python\n(.*?)```", text, re.S)
    assert len(programs) == 2
    for number, program in enumerate(programs):
        short = program.replace("20000", "200").replace("range(200)", "range(3)")
        script = tmp_path / f"program_{number}.py"
        script.write_text(f"import os\nos.chdir({str(tmp_path)!r})\n" + short)
        done = start(2, str(script), timeout=60)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "saved" / "net-5_10.ckpt").exists()
    assert done.stdout == ""
