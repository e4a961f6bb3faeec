"""Fixtures of more than one file. GRADCELL_TEST_DEVICE=GPU runs tests on the GPU."""

from __future__ import annotations

import fcntl
import gc
import os
import pathlib
import types
import zlib
from collections.abc import Iterator
from typing import Any

import pytest
from made_up_gpu import Process, build

import gradcell
from gradcell.dataset import config


@pytest.hookimpl(tryfirst=True)  # before the slow ones are left out
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of a test's cases, those beyond one in n are slow. The first always runs."""
    met: set[str] = set()
    for item in items:
        marker = item.get_closest_marker("one_in")
        if marker is None:
            continue
        test = item.nodeid.partition("[")[0]
        if test in met and zlib.crc32(item.nodeid.encode()) % marker.args[0]:
            item.add_marker(pytest.mark.slow)
        met.add(test)


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
