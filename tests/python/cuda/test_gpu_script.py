"""bench/gpu.sh on the made-up GPU, without a network, ended at any time: what was done lies in its folder."""

from __future__ import annotations

import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tarfile
import time

import numpy as np
import pytest
from made_up_gpu import PACKAGE, TESTS, Process

BENCH = TESTS.parent / "bench"
SCRIPT = BENCH / "gpu.sh"
PYTHON = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
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
    """What the script is told: the made-up GPU is slow, and other tests run beside it."""
    usual = {"PYTHON": sys.executable, "GPU_SCALE": "0.0005", "GPU_PATIENCE": "10"}
    return {**process.environment, **usual, **more}


def ended(out: pathlib.Path) -> dict[str, int]:
    found = re.findall(r"^(\w+): status (\d+), \d+ s$", (out / "steps.txt").read_text(), re.M)
    return {name: int(status) for name, status in found}


@pytest.mark.one_in(8)
def test_no_step_ends_the_others(process: Process, alone: list[str]) -> None:
    out, archive = process.folder / "out", process.folder / "gpu.tgz"
    steps = "versions replay package profile smoke"
    (out / "carried" / "plans").mkdir(parents=True)  # without any plans
    done = subprocess.run(
        [*alone, "sh", str(SCRIPT), str(out)],
        env=environment(process, GPU_STEPS=steps, GPU_ARCHIVE=str(archive)),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    with tarfile.open(archive) as packed:
        names = {pathlib.PurePath(name).name for name in packed.getnames()}
        assert {"steps.txt", "smoke.txt", "package.txt"} <= names and "carried" not in names
        last = packed.extractfile("./steps.txt")
        assert last and last.read().decode() == (out / "steps.txt").read_text()
    found = ended(out)
    assert list(found) == steps.split()
    assert found["package"] == 0 and "Fake GPU" in (out / "smoke.txt").read_text()
    lines = (out / "smoke.txt").read_text().splitlines()
    assert found["smoke"] == 0 and sum(": ok, " in line for line in lines) == 6, lines
    assert found["profile"] == 127  # no ncu here
    assert found["replay"] == 2 and "no plans in" in (out / "replay.txt").read_text()


def limits(name: str) -> dict[str, int]:
    """Of a variable in the script: the seconds of each step."""
    (text,) = re.findall(rf'^{name}="([^"]*)"', SCRIPT.read_text(), re.M)
    return {step: int(n) for step, n in re.findall(r"(\w+)=(\d+)", text)}


def test_the_limits_fit_into_ten_minutes() -> None:
    """A command on a lent machine may take ten: no step is kept from its turn by those before it."""
    usual, second = limits("limits"), limits("second")
    assert sum(usual.values()) <= 570 and sum(second.values()) <= 590
    text = SCRIPT.read_text()
    steps = dict(re.findall(r"^step_(\w+)\(\) \{\n(.*?)^\}", text, re.M | re.S))
    assert set(steps) == {*usual, *second}
    for step, body in steps.items():
        for within in re.findall(r"\b(?:within|replay) (\d+) ", body):
            assert int(within) <= {**usual, **second}[step], step
    assert list(usual)[:5] == ["versions", "replay", "package", "smoke", "tests"]


def test_what_is_ended_early_is_told(tmp_path: pathlib.Path) -> None:
    sleeper = tmp_path / "python"
    sleeper.write_text("#!/bin/sh\nexec sleep 30\n")
    sleeper.chmod(0o755)
    more = {"PYTHON": str(sleeper), "GPU_SECONDS": "2", "GPU_STEPS": "tileless untuned"}
    out = tmp_path / "out"
    began = time.monotonic()
    subprocess.run(
        ["sh", str(SCRIPT), str(out)], env={**os.environ, **more}, stdout=subprocess.DEVNULL
    )
    assert time.monotonic() - began < 20
    assert ended(out) == {"tileless": 124, "untuned": 124}
    lines = (out / "steps.txt").read_text().splitlines()
    assert re.match(r"  ended after [12] s: .*gpu_bench.py", lines[0])
    assert re.match(r"  no time left for .*gpu_bench.py", lines[2])


def test_a_step_has_no_more_than_its_own_time(tmp_path: pathlib.Path) -> None:
    # The script counts whole seconds: of one, none may be left when it looks.
    script = SCRIPT.read_text().replace("tileless=20", "tileless=3")
    folder = tmp_path / "bench"
    folder.mkdir()
    (folder / "gpu.sh").write_text(script)
    sleeper = tmp_path / "python"
    sleeper.write_text("#!/bin/sh\nexec sleep 30\n")
    sleeper.chmod(0o755)
    out = tmp_path / "out"
    subprocess.run(
        ["sh", str(folder / "gpu.sh"), str(out)],
        env={**os.environ, "PYTHON": str(sleeper), "GPU_STEPS": "tileless"},
        stdout=subprocess.DEVNULL,
    )
    assert ended(out) == {"tileless": 124}
    assert re.search(r"ended after [123] s", (out / "steps.txt").read_text())


@pytest.fixture(scope="module")
def plans(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """What gpu_plans.py writes, of a small size."""
    folder = tmp_path_factory.mktemp("plans")
    command = [sys.executable, str(BENCH / "gpu_plans.py"), str(folder), "--scale", "0.0005"]
    done = subprocess.run(command, env=PYTHON, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


def carried(plans: pathlib.Path, to: pathlib.Path, *names: str) -> pathlib.Path:
    """A folder with some of the plans."""
    to.mkdir(parents=True)
    for name in names:
        found = list(plans.glob(f"{name}.*"))
        assert found, sorted(p.name for p in plans.iterdir())
        for file in found:
            shutil.copy(file, to)
    return to


#: Tensor cores and sums, products with a bias, a loop as a kernel and as launches, pools, a scan, random
#: numbers, and a timed one.
SOME = (
    "check-64-wide-TF32", "check-loss-scale-step", "check-recurrent", "check-recurrent-launches",
    "check-layer-MaxPool2d", "check-dropout",
    "check-cumprod-0-False-False", "check-small-products-12-heads", "time-copy",
)  # fmt: skip


def replay(
    process: Process, plans: pathlib.Path, *options: str
) -> subprocess.CompletedProcess[str]:
    """In a Python that has no gradcell."""
    environment = {k: v for k, v in process.environment.items() if k != "PYTHONPATH"}
    script = str(BENCH / "gpu_replay.py")
    forbid = "import sys, runpy; sys.modules['gradcell'] = None; sys.argv = sys.argv[1:]; "
    return subprocess.run(
        [sys.executable, "-c", forbid + "runpy.run_path(sys.argv[0], run_name='__main__')", script,
         str(plans), *options],
        env=environment, capture_output=True, text=True, cwd=process.folder,
    )  # fmt: skip


@pytest.mark.one_in(6)
def test_there_are_forty_checks_and_steps_with_and_without_tiles_and_groups(
    plans: pathlib.Path,
) -> None:
    names = {p.stem for p in plans.glob("*.json")}
    assert len([n for n in names if n.startswith("check-")]) == 40
    assert len(list(plans.glob("check-*.npz"))) > 35
    narrow = {n for n in names if n.endswith("-no-tiles")}
    assert len(narrow) == 5 and {n.removesuffix("-no-tiles") for n in narrow} < names
    single = {n for n in names if n.endswith("-no-groups")}
    assert len(single) == 3 and {n.removesuffix("-no-groups") for n in single} < names
    launched = {n for n in names if n.endswith("-launches")}
    assert len(launched) == 2 and {n.removesuffix("-launches") for n in launched} < names
    texts = [p.read_text() for p in plans.glob("check-*.json")]
    for function in (
        "gc_convolve",
        "gc_products",
        "attention",
        "gc_tf32x3",
        "gc_bfloat",
        "gc_count",
        "gc_uniform",
        "gc_multiply_rows",
    ):
        assert any(function in text.split("namespace scalar {")[-1] for text in texts), function


@pytest.mark.one_in(12)
def test_plans_run_by_themselves(process: Process, plans: pathlib.Path) -> None:
    some = carried(plans, process.folder / "some", *SOME)
    done = replay(process, some, "--json", "out.json", "--kernels", "kernels", "--repeats", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    cases = json.loads((process.folder / "out.json").read_text())["cases"]
    assert list(cases) == sorted(SOME)
    assert [name for name, row in cases.items() if row.get("right")] == sorted(SOME)
    assert all(row["ms"] > 0 and row["steps"] for row in cases.values())
    kernels = set((process.folder / "kernels").iterdir())
    done = replay(process, some, "--repeats", "0", "--kernels", "kernels")  # from the folder
    assert done.returncode == 0 and set((process.folder / "kernels").iterdir()) == kernels
    assert process.counts()["compiles"] == 0


@pytest.mark.one_in(6)
def test_each_buffer_of_a_replay_is_an_allocation(
    process: Process, plans: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    some = carried(plans, process.folder / "some", "check-64-wide-TF32")
    process.environment["FAKE_CUDA_SIZES"] = str(process.folder / "sizes")
    assert replay(process, some, "--repeats", "0").returncode == 0
    sizes = sorted(map(int, (process.folder / "sizes").read_text().split()))
    plan = json.loads((some / "check-64-wide-TF32.json").read_text())
    workspace, status = 32 << 20, 4
    assert sizes == sorted([workspace, status, *(b[3] for b in plan["buffers"])])


@pytest.mark.one_in(6)
def test_a_wrong_result_is_told(process: Process, plans: pathlib.Path) -> None:
    wrong = "check-cumprod-0-False-False"
    some = carried(plans, process.folder / "some", "check-dropout", wrong)
    values = dict(np.load(some / f"{wrong}.npz"))
    values["out0"].flat[3] += 1e-4 * np.abs(values["out0"]).max()
    np.savez(some / f"{wrong}.npz", **values)
    (some / "check-64.json").write_text("{}")
    done = replay(process, some, "--repeats", "0", "--json", "out.json")
    assert done.returncode == 1
    cases = json.loads((process.folder / "out.json").read_text())["cases"]
    assert "error" in cases["check-64"]
    assert not cases[wrong]["right"] and cases["check-dropout"]["right"]


@pytest.mark.one_in(16)
def test_the_tools_of_a_toolkit(process: Process, plans: pathlib.Path, alone: list[str]) -> None:
    """ncu and compute-sanitizer, made up: they write down what they are called for, and call it."""
    out, tools = process.folder / "out", process.folder / "tools"
    names = ("time-Burgers-nn-Dense-8x20", "time-Burgers-nn-Dense-4x64")
    carried(plans, out / "carried" / "plans", "check-64-wide-TF32", "check-dropout", *names)
    tools.mkdir()
    for name in ("ncu", "compute-sanitizer"):
        (tools / name).write_text(
            f'#!/bin/sh\necho {name} "$@" "${{GRADCELL_CUDA_EXACT_MEMORY:-0}}" >>{tools}/calls\n'
            'while [ "${1#*python}" = "$1" ]; do shift; done\nexec "$@"\n'
        )
        (tools / name).chmod(0o755)
    path = f"{tools}{os.pathsep}{os.environ['PATH']}"
    steps = environment(process, GPU_STEPS="profile sanitizer", PATH=path)
    subprocess.run([*alone, "sh", str(SCRIPT), str(out)], env=steps, stdout=subprocess.DEVNULL)
    assert ended(out) == {"profile": 2, "sanitizer": 0}  # the third plan is not there
    calls = (tools / "calls").read_text().splitlines()
    assert [c.split()[0] for c in calls] == ["ncu"] * 3 + ["compute-sanitizer"] * 3
    assert all("--launch-count 1 " in c and "gpu_replay.py" in c for c in calls[:3])
    tool = [re.search(r"--tool (\w+) .*(gpu_\w+)\.py.* (\d)$", c) for c in calls[3:]]
    assert [t.groups() for t in tool if t] == [
        ("memcheck", "gpu_replay", "0"), ("racecheck", "gpu_replay", "0"), ("memcheck", "gpu_smoke", "1"),
    ]  # fmt: skip
    assert (out / "sanitizer.txt").read_text().count("check-dropout") == 2


@pytest.mark.slow
def test_times_without_what_the_libraries_choose(process: Process, alone: list[str]) -> None:
    """Products by cuBLASLt's first algorithms, a call for each, convolutions by gradcell's own kernels."""
    out = process.folder / "out"
    names = ["untuned", "convolutions", "ungrouped"]
    steps = environment(process, GPU_STEPS=" ".join(names), GPU_SCALE="0.0001")
    subprocess.run([*alone, "sh", str(SCRIPT), str(out)], env=steps, stdout=subprocess.DEVNULL)
    assert list(ended(out)) == names
    untuned, own, single = (
        json.loads((out / f"gpu_{name}.json").read_text())
        for name in ("untuned", "no_cudnn", "no_groups")
    )
    assert (own["groups"], single["groups"]) == (True, False)
    assert [c.partition(": ")[0] for c in single["cases"]] == ["small products"] * 3
    assert all(row["products"] >= 10 for row in single["cases"].values())
    assert (untuned["tuned"], untuned["cudnn"]) == (False, True)
    assert (own["tuned"], own["cudnn"]) == (True, False)
    assert {"float32 product", "TF32 product", "MLP training step"} <= set(untuned["cases"])
    assert set(own["cases"]) == {"convolution, float32", "convolution, float16"}


@pytest.mark.slow
def test_a_step_ends_with_its_time(process: Process, alone: list[str]) -> None:
    out = process.folder / "out"
    steps = environment(process, GPU_STEPS="times tests", GPU_SECONDS="15", GPU_SCALE="0.01")
    subprocess.run([*alone, "sh", str(SCRIPT), str(out)], env=steps, stdout=subprocess.DEVNULL)
    assert ended(out) == {"times": 124, "tests": 124}
    assert "Fake GPU" in (out / "times.txt").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_what_was_done_is_kept(
    process: Process, plans: pathlib.Path, alone: list[str], seed: int
) -> None:
    out = process.folder / "out"
    carried(plans, out / "carried" / "plans", *SOME)
    steps = ["versions", "replay", "package", "smoke", "times", "tileless", "compare"]
    run = subprocess.Popen(
        [*alone, "sh", str(SCRIPT), str(out)],
        env=environment(process, GPU_STEPS=" ".join(steps)),
        stdout=subprocess.DEVNULL,
    )
    time.sleep(random.Random(seed).uniform(8, 70))
    run.kill()
    run.wait()
    found = ended(out)
    assert list(found) == steps[: len(found)]
    lines = (out / "replay.txt").read_text().splitlines() if "replay" in found else []
    told = [line.split()[0] for line in lines if line.startswith(("check-", "time-"))]
    if lines:
        assert list(json.loads((out / "gpu_replay.json").read_text())["cases"]) == told
    for name in found:
        assert (out / f"{name}.txt").exists()
    if not (out / "times.txt").exists():
        return
    rows = re.findall(
        r"^(\S.*?) +[\d.]+ +\d+ +\d+ +\d+ +[\d.]+ +[\d.]+$", (out / "times.txt").read_text(), re.M
    )
    if rows:  # at most the last one is in the table alone
        cases = json.loads((out / "gpu.json").read_text())["cases"]
        good = [name for name, row in cases.items() if "error" not in row]
        assert good[: len(rows) - 1] == [r.strip() for r in rows[:-1]]
