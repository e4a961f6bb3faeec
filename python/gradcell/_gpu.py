"""The GPU: finding the CUDA libraries, choosing a device, saying what is missing."""

from __future__ import annotations

import contextlib
import importlib
import os

from gradcell import _core, _structure

#: The engine's names for the libraries, cuda-pathfinder's, and the variables that name a file.
_LIBRARIES = {
    "driver": ("cuda", "GRADCELL_CUDA_DRIVER"),
    "NVRTC": ("nvrtc", "GRADCELL_NVRTC"),
    "cuBLASLt": ("cublasLt", "GRADCELL_CUBLASLT"),
}
_paths: dict[str, str] | None = None


def find_libraries() -> dict[str, str]:
    """Where each library is; empty where only the system's search is left.

    A variable (GRADCELL_CUDA_DRIVER, GRADCELL_NVRTC, GRADCELL_CUBLASLT) comes first, then the wheels
    of the cuda12 and cuda13 extras, found by cuda-pathfinder.
    """
    global _paths
    if _paths is not None:
        return _paths
    load = None
    with contextlib.suppress(ImportError):
        load = importlib.import_module("cuda.pathfinder").load_nvidia_dynamic_lib
    found = {}
    for name, (pathfinder_name, variable) in _LIBRARIES.items():
        found[name] = os.environ.get(variable, "")
        if found[name] or load is None or name == "driver":
            continue
        # The pathfinder raises errors of its own for what is not there.
        with contextlib.suppress(Exception):
            found[name] = load(pathfinder_name).abs_path or ""
    _core.set_cuda_paths(found["driver"], found["NVRTC"], found["cuBLASLt"])
    _paths = found
    return found


def _switch(number: int) -> None:
    before = _core.device_in_use()
    _core.use_device(number)
    _structure.changed("process", "device", before, number)  # forms are compiled for a device


def use(number: int) -> None:
    """Plans run on this GPU from now on. Raises RuntimeError that says what is missing."""
    find_libraries()
    try:
        _switch(number)
    except RuntimeError as error:
        raise RuntimeError(f"device_target='GPU': {error}") from None


def leave() -> None:
    """Plans run on the CPU from now on."""
    _switch(-1)


def _reason(error: BaseException) -> str:
    text = str(error)
    where = _core.user_location()
    return text.removesuffix(f" ({where})") if where else text


def report() -> list[tuple[str, str]]:
    """What `python -m gradcell info` says about GPUs: (name, finding)."""
    paths = find_libraries()
    rows = []
    try:
        found = _core.cuda_driver_info()
        version = found["version"]
        rows.append(("NVIDIA driver", f"CUDA {version // 1000}.{version % 1000 // 10}"))
        for i, device in enumerate(found["devices"]):
            capability = device["capability"]
            rows.append((f"GPU {i}", f"{device['name']} (sm_{capability})"))
    except RuntimeError as error:
        rows.append(("NVIDIA driver", f"missing: {_reason(error)}"))
    try:
        rows.append(("NVRTC", f"{_core.nvrtc_version()} {paths['NVRTC']}".rstrip()))
    except RuntimeError as error:
        rows.append(("NVRTC", f"missing: {_reason(error)}"))
    try:
        rows.append(("cuBLASLt", _core.cublaslt_path()))
    except RuntimeError as error:
        rows.append(("cuBLASLt", f"missing: {_reason(error)}"))
    return rows
