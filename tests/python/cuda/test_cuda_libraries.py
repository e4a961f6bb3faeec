"""Compiled kernels and CUDA's libraries on a made-up GPU: the cache, versions, what is missing."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys

import pytest
from forked_scripts import Script
from made_up_gpu import HEAD, PACKAGE, Process

pytestmark = pytest.mark.one_in(8)  # each has a process of its own, and compiles kernels

GPU = "ms.set_context(device_target='GPU')\n"
CHAIN = GPU + "print(float((ops.sin(tensor(9)) * 2.0).sum()))\n"


def test_kernels_are_compiled_once(process: Process) -> None:
    first = process.good(CHAIN)
    assert process.counts()["compiles"] > 0
    assert process.good(CHAIN) == first
    assert process.counts()["compiles"] == 0
    assert not list((process.folder / "cache").glob("**/*.cubin.*"))  # nothing half-written


def test_a_corrupted_cache_entry_is_compiled_again(process: Process) -> None:
    first = process.good(CHAIN)
    compiles = process.counts()["compiles"]
    entries = sorted((process.folder / "cache").glob("**/*.cubin"))
    assert len(entries) == compiles
    entries[0].write_bytes(entries[0].read_bytes()[:-100])
    if len(entries) > 1:
        entries[1].write_bytes(b"rubbish")
    assert process.good(CHAIN) == first
    assert process.counts()["compiles"] == min(2, compiles)
    process.good(CHAIN)
    assert process.counts()["compiles"] == 0


def test_two_processes_share_a_cache(process: Process) -> None:
    started = [Script(HEAD + CHAIN, process.environment) for _ in range(4)]
    ended = [script.result() for script in started]
    assert all(done.returncode == 0 for done in ended), ended
    results = {done.stdout for done in ended}
    assert len(results) == 1
    assert {process.good(CHAIN)} == results
    assert process.counts()["compiles"] == 0
    assert not list((process.folder / "cache").glob("**/*.cubin.*"))


def test_no_place_for_a_cache(process: Process) -> None:
    file = process.folder / "file"
    file.write_text("")
    first = process.good(CHAIN)
    assert process.good(CHAIN, GRADCELL_CACHE_DIR=str(file / "below")) == first


@pytest.mark.one_in(1)
@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"GRADCELL_CUDA_DRIVER": "/nowhere.so"}, "no NVIDIA driver was found"),
        ({"FAKE_CUDA_VERSION": "11080"}, "too old: it supports CUDA 11.8"),
        ({"FAKE_CUDA_VERSION": "12040"}, "NVRTC 13.0 is newer than the NVIDIA driver"),
        ({"FAKE_CUDA_DEVICES": "0"}, "reports no usable GPU"),
    ],
)
def test_what_is_missing_is_said(
    process: Process, environment: dict[str, str], message: str
) -> None:
    error = process.error(GPU, **environment)
    assert error.startswith("RuntimeError: device_target='GPU'")
    assert message in error


@pytest.mark.one_in(1)
@pytest.mark.parametrize(
    ("driver", "installed", "taken"),
    [
        ("13000", (12, 13), 13),
        ("12040", (12, 13), 12),
        ("13020", (12, 13), 13),
        ("14000", (12, 13), 13),
        ("12080", (13,), None),
    ],
)
def test_the_driver_decides_between_versions_of_cuda(
    process: Process, driver: str, installed: tuple[int, ...], taken: int | None
) -> None:
    """The wheels of the cuda12 and cuda13 extras, side by side."""
    site = process.folder / "site"
    for version in installed:
        for library, folder in (("nvrtc", "cuda_nvrtc"), ("cublasLt", "cublas")):
            place = site / "nvidia" / (folder if version == 12 else f"cu{version}") / "lib"
            place.mkdir(parents=True, exist_ok=True)
            shutil.copy(process.environment["GRADCELL_NVRTC"], place / f"lib{library}.so.{version}")
    environment = {
        "GRADCELL_NVRTC": "",
        "GRADCELL_CUBLASLT": "",
        "FAKE_CUDA_VERSION": driver,
        "PYTHONPATH": os.pathsep.join([str(site), process.environment["PYTHONPATH"]]),
    }
    if taken is None:
        error = process.error(GPU, **environment)
        assert f"NVRTC {installed[0]}" in error
        assert "is newer than the NVIDIA driver" in error and "gradcell[cuda12]" in error
        return
    script = """
from gradcell import _core
print(_core.nvrtc_version(), _core.cublaslt_path(), (Tensor([1.0, 2.0]) * 2.0).asnumpy())
"""
    out = process.good(GPU + script, **environment)
    assert out.startswith(f"{taken}.0 ") and f"libcublasLt.so.{taken} [2. 4.]" in out


def test_a_toolkit_that_suits_the_driver_comes_before_wheels_that_do_not(process: Process) -> None:
    """Wheels of CUDA 13 (one comes with the tests' extra) beside a toolkit of CUDA 12, whose folder the
    loader does not know."""
    site, toolkit = process.folder / "site", process.folder / "toolkit"
    for library in ("nvrtc", "cublasLt"):
        for place, version in ((site / "nvidia" / "cu13" / "lib", 13), (toolkit / "lib64", 12)):
            place.mkdir(parents=True, exist_ok=True)
            shutil.copy(process.environment["GRADCELL_NVRTC"], place / f"lib{library}.so.{version}")
    script = "print(ms._core.nvrtc_version(), ms._core.cublaslt_path())"
    environment = {
        "GRADCELL_NVRTC": "",
        "GRADCELL_CUBLASLT": "",
        "CUDA_HOME": str(toolkit),
        "PYTHONPATH": os.pathsep.join([str(site), process.environment["PYTHONPATH"]]),
    }
    for driver, taken in (("12080", f"12.0 {toolkit}"), ("13000", "13.0 ")):
        out = process.good(GPU + script, FAKE_CUDA_VERSION=driver, **environment)
        assert out.startswith(taken) and out.strip().endswith(f".so.{driver[:2]}"), out


@pytest.mark.one_in(1)
def test_a_missing_library_names_its_extra(process: Process) -> None:
    # An empty library stands for one that cannot be opened: the system's are not there either.
    for variable, name in (("GRADCELL_NVRTC", "NVRTC"), ("GRADCELL_CUBLASLT", "cuBLASLt")):
        broken = process.folder / "broken.so"
        broken.write_text("")
        error = process.error(GPU, **{variable: str(broken)})
        if name not in error:
            pytest.skip(f"the system has {name}")
        assert "gradcell[cuda13]" in error


@pytest.mark.parametrize(
    ("capability", "ptx"), [("90", False), ("89", False), ("103", False), ("120", True)]
)
def test_a_gpu_that_this_nvrtc_does_not_know(process: Process, capability: str, ptx: bool) -> None:
    """Machine code runs within a generation; for the next one the driver translates."""
    process.good(CHAIN, FAKE_CUDA_CAPABILITY=capability)
    assert (process.counts()["ptx"] > 0) == ptx
    process.good(CHAIN, FAKE_CUDA_CAPABILITY=capability)
    assert process.counts()["compiles"] == 0


def test_what_nvrtc_opens_by_its_name_lies_beside_it(process: Process) -> None:
    """The wheel of NVRTC 13.0 does not look beside itself."""
    nvrtc = process.folder / "libnvrtc.so.13"
    shutil.copy(process.environment["GRADCELL_NVRTC"], nvrtc)
    process.environment |= {"GRADCELL_NVRTC": str(nvrtc), "FAKE_NVRTC_BUILTINS": "1"}
    assert "failed to open libnvrtc-builtins.so.13.0" in process.run(CHAIN).stderr
    name = "libnvrtc-builtins.so.13.0"
    command = ["g++", "-shared", "-x", "c++", "/dev/null", f"-Wl,-soname,{name}", "-o", name]
    subprocess.run(command, cwd=process.folder, check=True)
    process.good(CHAIN)


@pytest.mark.one_in(1)
def test_gpus_that_are_too_old(process: Process) -> None:
    error = process.error(GPU, FAKE_CUDA_CAPABILITY="70")
    assert "the GPU Fake GPU has compute capability 7.0; gradcell needs 7.5 or later" in error
    error = process.error(CHAIN, FAKE_CUDA_CAPABILITY="75", FAKE_NVRTC_ARCHS="80 90")
    assert "NVRTC 13.0 cannot compile for a GPU of compute capability 7.5" in error


def test_nothing_of_cuda_is_linked() -> None:
    readelf = shutil.which("readelf")
    if not readelf:
        pytest.skip("no readelf")
    library = next(PACKAGE.glob("_core*.so"))
    dynamic = subprocess.run([readelf, "-d", str(library)], capture_output=True, text=True).stdout
    needed = re.findall(r"NEEDED.*\[(.*)\]", dynamic)
    assert needed
    assert not [n for n in needed if re.search("cuda|nvrtc|cublas", n, re.I)]


def test_info(process: Process) -> None:
    command = [sys.executable, "-m", "gradcell", "info"]
    out = subprocess.run(command, env=process.environment, capture_output=True, text=True).stdout
    assert "Fake GPU (sm_90)" in out
    assert str(process.folder / "cache") in out
    missing = {**process.environment, "GRADCELL_CUDA_DRIVER": "/nowhere.so"}
    done = subprocess.run(command, env=missing, capture_output=True, text=True)
    assert done.returncode == 0
    for line in ("version", "instruction set", "threads", "BLAS", "kernel cache"):
        assert line in done.stdout
