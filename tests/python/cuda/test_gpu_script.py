"""bench/gpu.sh on the made-up GPU, without a network, ended at any time: what was done lies in its folder."""

from __future__ import annotations

import json
import pathlib
import random
import re
import shutil
import subprocess
import sys
import time

import pytest
from made_up_gpu import TESTS, Process

SCRIPT = TESTS.parent / "bench" / "gpu.sh"
#: No network, and nothing outlives the command.
ALONE = ["unshare", "--net", "--pid", "--fork", "--kill-child", "timeout", "600"]


@pytest.fixture
def alone() -> list[str]:
    if (
        not shutil.which("unshare")
        or subprocess.run([*ALONE, "true"], capture_output=True).returncode
    ):
        pytest.skip("no unshare, or not allowed to")
    return ALONE


def environment(process: Process, **more: str) -> dict[str, str]:
    return {**process.environment, "PYTHON": sys.executable, "GPU_SCALE": "0.0005", **more}


def ended(out: pathlib.Path) -> dict[str, int]:
    found = re.findall(r"^(\w+): status (\d+), \d+ s$", (out / "steps.txt").read_text(), re.M)
    return {name: int(status) for name, status in found}


def test_no_step_ends_the_others(process: Process, alone: list[str]) -> None:
    out = process.folder / "out"
    steps = "versions package profile smoke"
    done = subprocess.run(
        [*alone, "sh", str(SCRIPT), str(out)],
        env=environment(process, GPU_STEPS=steps),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    found = ended(out)
    assert list(found) == steps.split()
    assert found["package"] == 0 and "Fake GPU" in (out / "smoke.txt").read_text()
    lines = (out / "smoke.txt").read_text().splitlines()
    assert found["smoke"] == 0 and sum(": ok, " in line for line in lines) == 6, lines
    assert found["profile"] == 127  # no ncu here


@pytest.mark.slow
def test_a_step_ends_with_its_time(process: Process, alone: list[str]) -> None:
    out = process.folder / "out"
    steps = environment(process, GPU_STEPS="times tests", GPU_SECONDS="15", GPU_SCALE="0.01")
    subprocess.run([*alone, "sh", str(SCRIPT), str(out)], env=steps, stdout=subprocess.DEVNULL)
    assert ended(out) == {"times": 124, "tests": 124}
    assert "Fake GPU" in (out / "times.txt").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_what_was_done_is_kept(process: Process, alone: list[str], seed: int) -> None:
    out = process.folder / "out"
    run = subprocess.Popen(
        [*alone, "sh", str(SCRIPT), str(out)],
        env=environment(process, GPU_STEPS="versions package smoke times compare"),
        stdout=subprocess.DEVNULL,
    )
    time.sleep(random.Random(seed).uniform(8, 70))
    run.kill()
    run.wait()
    found = ended(out)
    assert list(found) == ["versions", "package", "smoke", "times", "compare"][: len(found)]
    for name in found:
        assert (out / f"{name}.txt").exists()
    if not (out / "times.txt").exists():
        return
    rows = re.findall(
        r"^(\S.*?) +[\d.]+ +\d+ +\d+ +[\d.]+ +[\d.]+$", (out / "times.txt").read_text(), re.M
    )
    if rows:  # at most the last one is in the table alone
        cases = json.loads((out / "gpu.json").read_text())["cases"]
        assert len(rows) - 1 <= len(cases) and list(cases)[: len(rows) - 1] == [
            r.strip() for r in rows[:-1]
        ]
