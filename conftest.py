"""Fixtures of more than one file. GRADCELL_TEST_DEVICE=GPU runs tests on the GPU."""

from __future__ import annotations

import fcntl
import gc
import os
import pathlib
import sys
import types
from collections.abc import Iterator
from datetime import date, datetime, timezone
from typing import Any

import pytest
from _pytest.assertion import rewrite
from affected import affected
from draws import DRAWN, TOGETHER, Draw, Together
from made_up_gpu import Process, build

import gradcell
from gradcell.dataset import config


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("gradcell")
    group.addoption("--draw", metavar="DATE", help="the cases of one_in that are drawn on this day")
    group.addoption("--for", metavar="FILE", help="only what a change of this file can break")


def pytest_configure(config: pytest.Config) -> None:
    gradcell.set_context(full_tracebacks=True)
    option = config.option
    option.draw = getattr(config, "workerinput", {}).get("draw") or option.draw
    option.draw = option.draw or datetime.now(timezone.utc).date().isoformat()
    config.stash[DRAWN] = Draw(
        date.fromisoformat(option.draw).toordinal(),
        leaves_out=option.markexpr == "not full" and not any("[" in a for a in config.args),
    )
    config.stash[TOGETHER] = Together(config)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """A process of pytest-xdist draws as the first does, at midnight too."""
    node.workerinput["draw"] = node.config.option.draw


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    terminalreporter.write_line(
        f"Cases drawn for {config.option.draw}; again: --draw {config.option.draw}"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Of the files that processes of pytest-xdist import, each compiles a share for all first."""
    mine = getattr(session.config, "workerinput", None)
    if mine is None or sys.dont_write_bytecode:
        return
    given = [session.config.rootpath / argument for argument in session.config.args]
    files = sorted(file for folder in given for file in folder.rglob("test_*.py"))
    state = session.config.stash[rewrite.assertstate_key]
    for file in files[int(mine["workerid"].removeprefix("gw")) :: mine["workercount"]]:
        compiled = rewrite.get_cache_dir(file) / f"{file.stem}{rewrite.PYC_TAIL}"
        if rewrite._read_pyc(file, compiled) is None:
            rewrite.try_makedirs(compiled.parent)
            stat, code = rewrite._rewrite_test(file, session.config)
            rewrite._write_pyc(state, code, stat, compiled)


@pytest.hookimpl(trylast=True)  # when all arguments of a test are known
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Of a test's cases, those that are not drawn are marked `full`; the others are put together."""
    leave_out_what_is_not_drawn(metafunc)
    metafunc._calls[:] = metafunc.config.stash[TOGETHER].of(metafunc)


def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    return pyfuncitem.config.stash[TOGETHER].run(pyfuncitem)


def drawn_of(test: Any, calls: list[Any]) -> set[int]:
    """The numbers of its cases that are drawn, by its own mark or its file's; `days` are the file's."""
    marks = list(test.iter_markers("one_in"))
    days = max(mark.kwargs.get("days", 1) for mark in marks)
    options = {**marks[0].kwargs, "days": days}
    return test.config.stash[DRAWN].of(test.nodeid, calls, *marks[0].args, **options)


def leave_out_what_is_not_drawn(metafunc: pytest.Metafunc) -> None:
    definition, calls = metafunc.definition, metafunc._calls
    draw, marked = metafunc.config.stash[DRAWN], definition.get_closest_marker("one_in")
    if draw.leaves_out and definition.get_closest_marker("slow"):
        calls[1:] = []
    if not marked or not calls:
        return
    drawn = drawn_of(definition, calls)
    for number, call in enumerate(calls):
        if number not in drawn:
            call.marks.append(pytest.mark.full.mark)
    if draw.leaves_out:
        calls[:] = [calls[number] for number in sorted(drawn)] or calls[:1]


@pytest.hookimpl(tryfirst=True)  # before they are left out
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What is slow is `full`, and a test of one case on all days but its own, if nobody names it."""
    named = {argument.rpartition("/")[2] for argument in config.args if "::" in argument}
    for item in items:
        marker = item.get_closest_marker("one_in")
        alone = marker is not None and not hasattr(item, "callspec")
        alone = alone and item.nodeid.rpartition("/")[2] not in named
        left = alone and not drawn_of(item, [None])
        if left or item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.full)
    if file := config.getoption("--for"):
        chosen = set(affected(file, items))
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        items[:] = [item for item in items if item in chosen]


def pytest_collection_finish() -> None:
    """The garbage collector need not look at the tests themselves again, millions of objects."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def device() -> Iterator[str]:
    target = os.environ.get("GRADCELL_TEST_DEVICE", "CPU")
    gradcell.set_context(device_target=target)
    yield target
    gradcell.set_context(device_target="CPU")


@pytest.fixture(params=["graph", "pynative"])
def mode(request: pytest.FixtureRequest) -> Iterator[int]:
    """Both modes, one after the other: what set_context takes."""
    before = gradcell.get_context("mode")
    mode = gradcell.GRAPH_MODE if request.param == "graph" else gradcell.PYNATIVE_MODE
    gradcell.set_context(mode=mode)
    yield mode
    gradcell.set_context(mode=before)


@pytest.fixture(scope="session")
def fake_cuda(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The library of the made-up GPU, built once for all processes of pytest-xdist."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    with open(folder / "fake.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return build(folder / "fake")


@pytest.fixture
def process(fake_cuda: pathlib.Path, tmp_path: pathlib.Path) -> Process:
    return Process(fake_cuda, tmp_path)


def settings_of_datasets() -> dict[str, Any]:
    kept = (str, int, float, dict, list, types.NoneType)
    return {k: v for k, v in vars(config).items() if k[:2] != "__" and isinstance(v, kept)}


@pytest.hookimpl(hookwrapper=True)  # and no fixture, which takes longer than many a test
def pytest_runtest_call() -> Iterator[None]:
    """What a test or a document's program sets for the whole process goes back to what it was."""
    before = {
        k: v.copy() if isinstance(v, (dict, list)) else v for k, v in settings_of_datasets().items()
    }
    yield
    for name, now in settings_of_datasets().items():
        if isinstance(now, (dict, list)):
            now.clear()
            now.update(before[name]) if isinstance(now, dict) else now.extend(before[name])
        else:
            setattr(config, name, before[name])
