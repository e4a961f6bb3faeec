"""Fixtures of more than one file."""

from __future__ import annotations

import pathlib

import pytest
from made_up_gpu import Process, build


@pytest.fixture(scope="session")
def fake_cuda(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return build(tmp_path_factory.mktemp("fake"))


@pytest.fixture
def process(fake_cuda: pathlib.Path, tmp_path: pathlib.Path) -> Process:
    return Process(fake_cuda, tmp_path)
