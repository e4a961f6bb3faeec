"""What the default run leaves out: no name, no transform and no error, and nothing for good."""

from __future__ import annotations

import functools
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from affected import PACKAGE, affected, affected_files
from draws import DRAWN, Together

TESTS = Path(__file__).parents[1]
ROOT = TESTS.parents[1]
sys.path += [str(ROOT / "tools"), str(TESTS / "agreement")]

import test_every_transform  # noqa: E402
from function_cases import CASES  # noqa: E402


@functools.cache
def functions() -> dict[str, str]:
    """The tests with their texts, decorators first."""
    found = {}
    for file in sorted(TESTS.rglob("test_*.py")):
        head, *blocks = re.split(r"\n{3,}", file.read_text())
        of_all = "".join(re.findall(r"^pytestmark = (.*one_in.*)\n?", head, re.M))
        for block in blocks:
            if test := re.search(r"^def (test_\w+)\(", block, re.M):
                own = "" if "@pytest.mark.one_in" in block else f"@{of_all}\n" * bool(of_all)
                found[f"{file.relative_to(TESTS)}::{test[1]}"] = own + block
    return found


def left_out() -> dict[str, str]:
    """The tests of which a default run leaves something out."""
    marks = re.compile(r"^@.*pytest\.mark\.(one_in\((?!1\))|slow)|WHERE_NONE_SPILLS\)", re.M)
    return {name: text for name, text in functions().items() if marks.search(text)}


def test_every_public_name_is_asked_for() -> None:
    """What compares cases with MindSpore's or NumPy's numbers is always whole; test_tables.py holds the cases
    to the names."""
    whole = {
        name
        for name in functions().keys() - left_out().keys()
        if name.startswith(
            ("agreement/test_agreement.py", "agreement/test_tables.py", "files/test_vision")
        )
    }
    assert {
        "agreement/test_tables.py::test_as_in_mindspore",
        "agreement/test_tables.py::test_against_numpy_where_mindspore_refuses",
        "agreement/test_tables.py::test_every_name_held_is_asked_for",
        "agreement/test_agreement.py::test_as_in_mindspore",
        "agreement/test_agreement.py::test_name_as_in_mindspore",
        "agreement/test_agreement.py::test_optimizer_as_in_mindspore",
        "agreement/test_agreement.py::test_metric_as_in_mindspore",
    } < whole
    assert not [name for name in left_out() if name.startswith("agreement/test_tables.py")]


def test_every_transform_is_tried(request: pytest.FixtureRequest) -> None:
    """On a dozen cases at least, whatever the day."""
    draw = request.config.stash[DRAWN]
    calls: list[Any] = [SimpleNamespace(params={"name": name}) for name in CASES]
    marks = test_every_transform.test_three_transforms_of_each.pytestmark
    (n,) = next(mark.args for mark in marks if mark.name == "one_in")
    for day in range(n):
        cases = draw._replace(day=draw.day + day).of("a test", calls, n)
        tried = Counter(t for k in cases for t in test_every_transform.drawn([*CASES][k]))
        assert set(tried) == set(test_every_transform.TRANSFORMS)
        assert min(tried.values()) >= 12


def test_what_expects_an_error_is_never_left_out() -> None:
    """So each error that a test expects is seen in each run, those of other processes too."""
    drawn = left_out()
    assert len(drawn) > 60
    expects = re.compile(r"pytest\.raises\(|process\.error\(|(?<![\w.])fails\(")
    expecting = [name for name, text in drawn.items() if expects.search(text)]
    assert expecting == [  # of each, a case in each run
        "parallel/test_parallel_failures.py::test_the_last_words_arrive",
        "parallel/test_parallel_failures.py::test_checkpoints_are_whole",
        "tensor/test_taken_numbers.py::test_an_array_is_refused_unless_it_is_known_to_be_used",
    ]


@pytest.mark.parametrize("n", [1, 2, 3, 12])
@pytest.mark.parametrize("count", [1, 5, 30])
def test_each_case_has_its_day(request: pytest.FixtureRequest, n: int, count: int) -> None:
    draw = request.config.stash[DRAWN]
    calls: list[Any] = [
        SimpleNamespace(params={"op": SimpleNamespace(name="even" if k % 2 else "odd")})
        for k in range(count)
    ]
    days = [draw._replace(day=draw.day + k) for k in range(n)]
    plain = [number for day in days for number in day.of("a test", calls, n)]
    assert sorted(plain) == list(range(count))  # each on one day
    for day in days:
        found = day.of("a test", calls, n, "op.name")
        assert {number % 2 for number in found} == {k % 2 for k in range(count)}
    grouped = {number for day in days for number in day.of("a test", calls, n, by="op.name")}
    assert grouped == set(range(count))


def test_cases_that_run_as_one_are_named_where_they_fail(pytestconfig: pytest.Config) -> None:
    """Each runs, with its own arguments and what fixtures give to all."""
    together, ran = Together(pytestconfig), []
    calls = [SimpleNamespace(id=f"case {k}", params={"k": k}) for k in range(4)]

    def test(k: int, of_all: str) -> None:
        ran.append((k, of_all))
        if k == 3:
            pytest.skip("not here")
        assert k % 2 == 0, "odd"

    item = SimpleNamespace(
        obj=test,
        callspec=calls[0],
        funcargs={"k": 0, "of_all": "x"},
        _fixtureinfo=SimpleNamespace(argnames=("k", "of_all")),
        repr_failure=lambda info: f"E {info.value}",
    )
    assert together.run(item) is None and not ran  # one case: pytest runs it
    together.cases[id(calls[0])] = calls
    with pytest.raises(pytest.fail.Exception, match=r"^1 of 4 cases: case 1\n(.*\n)*E odd"):
        together.run(item)
    assert ran == [(k, "x") for k in range(4)]
    calls.remove(calls[1])
    with pytest.raises(pytest.skip.Exception, match="1 of 3 cases, as case 3: not here"):
        together.run(item)
    calls.pop()
    assert together.run(item) is True


@pytest.mark.parametrize("n", [4, 12])
def test_a_file_has_its_days(request: pytest.FixtureRequest, n: int) -> None:
    draw, calls = request.config.stash[DRAWN], list(range(30))
    days = [draw._replace(day=draw.day + k) for k in range(n)]
    tests = [f"{file}::{test}" for file in "abcde" for test in ("one", "two")]
    found = {test: [day.of(test, calls, n, days=4) for day in days] for test in tests}
    for file in "abcde":
        one, two = ([bool(drawn) for drawn in found[f"{file}::{test}"]] for test in ("one", "two"))
        assert one == two and sum(one) == n // 4
    assert len({tuple(map(bool, drawn)) for drawn in found.values()}) > 1  # not all on one day
    for drawn in found.values():
        assert sorted(number for numbers in drawn for number in numbers) == calls
    assert all(
        draw.of(test, calls, 1, days=4) == set(calls) for test in tests
    )  # what is always whole


@pytest.mark.one_in(3)
def test_a_day_can_be_drawn_again(request: pytest.FixtureRequest) -> None:
    """In processes of pytest-xdist too, which take the first one's day."""
    test = "tests/python/ops/test_cumprod.py::test_derivatives_along_longer_axes"
    command = [sys.executable, "-m", "pytest", "-n", "1", "--draw", "2020-02-29"]
    done = subprocess.run(
        [*command, "-p", "no:cacheprovider", test], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert "Cases drawn for 2020-02-29; again: --draw 2020-02-29" in done.stdout
    assert request.config.option.draw != "2020-02-29"


@pytest.mark.one_in(12)
def test_a_file_is_tested_by_what_it_can_break(request: pytest.FixtureRequest) -> None:
    """`--for FILE`."""
    ctc, losses = PACKAGE / "ops/networks/ctc.py", PACKAGE / "ops/primitives/sequences.py"
    files = affected_files(ctc, PACKAGE.rglob("*.py"))
    assert {ctc, losses} <= files and len(files) < 10
    everything = affected_files(PACKAGE / "base/tree.py", PACKAGE.rglob("*.py"))
    assert len(everything) > 200
    items = request.session.items
    here = [i for i in items if i.path == Path(__file__)]
    assert affected("tests/python/documents/test_draw.py", items) == here
    assert affected("tests/python/support/draws.py", here) == here
    assert affected("csrc/cuda/codegen.cpp", here) == []
    assert affected("pyproject.toml", here) == here


@pytest.mark.one_in(6)
@pytest.mark.parametrize("option", ["--for python/gradcell/__init__.py", "--draw 2020-02-29"])
def test_an_option_is_known_wherever_its_value_lies(option: str) -> None:
    """pytest takes the value for a folder of tests, until it knows the option."""
    command = [sys.executable, "-m", "pytest", *option.split(), "--markers"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_test_without_a_text_is_looked_at() -> None:
    exec("def test(): return ops.hfft(1)", made := {})
    item = SimpleNamespace(name="test", function=made["test"])
    assert affected("python/gradcell/ops/matrices/fourier.py", [item]) == [item]


def test_a_file_that_is_not_there_breaks_nothing() -> None:
    with pytest.raises(FileNotFoundError, match=r"--for: there is no .*no_such\.py"):
        affected("python/gradcell/no_such.py", [])


def calls_nothing() -> None:
    """A test of no function of the package."""


@pytest.mark.one_in(3)
def test_a_name_that_is_imported_later_is_found() -> None:
    """No text of its module's __all__ has it, but ops/_index.py."""
    cases = ("test[ops.hfft(x) of 2]", "test[ops.sin(x) of 2]")
    items = [SimpleNamespace(name=name, function=calls_nothing) for name in cases]
    assert affected("python/gradcell/ops/matrices/fourier.py", items) == items[:1]
