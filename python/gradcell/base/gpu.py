"""The GPU: finding the CUDA libraries, choosing a device, saying what is missing."""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import importlib.util
import os
from pathlib import Path

from gradcell import _core

#: The engine's names for the libraries, cuda-pathfinder's, and the variables that name a file.
_LIBRARIES = {
    "NVRTC": ("nvrtc", "GRADCELL_NVRTC"),
    "cuBLASLt": ("cublasLt", "GRADCELL_CUBLASLT"),
    "NCCL": ("nccl", "GRADCELL_NCCL"),
    "cuDNN": ("cudnn", "GRADCELL_CUDNN"),
}
#: Libraries whose own versions are in their names, whatever CUDA's is.
_OWN_VERSIONS = {"nccl": [2], "cudnn": [9, 8]}
_OFF = "0"  # in place of a path: cuDNN is not used
_OLDEST, _NEWEST = 12, 13  # CUDA's versions that the engine knows
_paths: dict[str, str] | None = None


def _versions(driver: str) -> range:
    """The versions of CUDA that the driver can use, the newest first; all without a driver."""
    version = ctypes.c_int()
    try:
        failed = ctypes.CDLL(driver or "libcuda.so.1").cuDriverGetVersion(ctypes.byref(version))
    except (OSError, AttributeError):
        failed = 1
    newest = _NEWEST if failed else version.value // 1000
    return range(newest, _OLDEST - 1, -1)


def _toolkits() -> list[Path]:
    """Folders of toolkits that the system's loader may not know."""
    named = [os.environ.get(name, "") for name in ("CUDA_HOME", "CUDA_PATH", "CONDA_PREFIX")]
    roots = [Path(root) for root in named if root]
    roots += sorted(Path("/usr/local").glob("cuda*"), reverse=True)
    return [root / folder for root in roots for folder in ("lib64", "lib")]


def _find(name: str, versions: range) -> str:
    """The file of a library in the newest of the versions, in wheels, where the system looks, or in a
    toolkit; else of any that cuda-pathfinder finds."""
    spec = importlib.util.find_spec("nvidia")
    folders = [Path(f) for f in (spec and spec.submodule_search_locations) or ()]
    for version in _OWN_VERSIONS.get(name, versions):
        file = f"lib{name}.so.{version}"
        for folder in folders:
            for path in sorted(folder.glob(f"*/lib/{file}")):
                return str(path)
        with contextlib.suppress(OSError):
            ctypes.CDLL(file)
            return file
        for folder in _toolkits():
            if (folder / file).exists():
                return str(folder / file)
    # The pathfinder raises errors of its own for what is not there.
    with contextlib.suppress(Exception):
        load = importlib.import_module("cuda.pathfinder").load_nvidia_dynamic_lib
        return load(name).abs_path or ""
    return ""


def find_libraries() -> dict[str, str]:
    """Return the path of each library, empty if it is not found.

    A variable (GRADCELL_CUDA_DRIVER, GRADCELL_NVRTC, GRADCELL_CUBLASLT, GRADCELL_NCCL,
    GRADCELL_CUDNN) comes first, then what suits the driver: of several versions of CUDA that are
    installed, the newest that it can use.
    """
    global _paths
    if _paths is not None:
        return _paths
    found = {"driver": os.environ.get("GRADCELL_CUDA_DRIVER", "")}
    versions = _versions(found["driver"])
    for name, (library, variable) in _LIBRARIES.items():
        found[name] = os.environ.get(variable, "") or _find(library, versions)
    if found["cuDNN"] == _OFF:
        found["cuDNN"] = ""
    _core.set_cuda_paths(*(found[name] for name in ("driver", *_LIBRARIES)))
    _paths = found
    return found


def use(number: int) -> None:
    """Plans run on this GPU from now on. Raises RuntimeError that says what is missing."""
    find_libraries()
    try:
        _core.use_device(number)
    except RuntimeError as error:
        raise RuntimeError(f"device_target='GPU': {error}") from None


def missing(number: int) -> str | None:
    """Return the reason why plans cannot run on this GPU, in a few words, or None."""
    find_libraries()
    try:
        _core.require_device(number)
    except RuntimeError as error:
        return reason(error).partition(". ")[0]
    return None


def leave() -> None:
    """Plans run on the CPU from now on."""
    _core.use_device(-1)


def reason(error: BaseException) -> str:
    """An error's text without the place of the user's line."""
    text = str(error)
    where = _core.user_location()
    return text.removesuffix(f" ({where})") if where else text


def report() -> list[tuple[str, str]]:
    """Return the lines of `python -m gradcell info` about GPUs: (name, finding)."""
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
        rows.append(("NVIDIA driver", f"missing: {reason(error)}"))
    try:
        rows.append(("NVRTC", f"{_core.nvrtc_version()} {paths['NVRTC']}".rstrip()))
    except RuntimeError as error:
        rows.append(("NVRTC", f"missing: {reason(error)}"))
    try:
        rows.append(("cuBLASLt", _core.cublaslt_path()))
    except RuntimeError as error:
        rows.append(("cuBLASLt", f"missing: {reason(error)}"))
    try:
        version, path = _core.nccl_version()
        rows.append(("NCCL", f"{version // 10000}.{version // 100 % 100}.{version % 100} {path}"))
    except RuntimeError as error:
        rows.append(("NCCL", f"missing: {reason(error)}"))
    if os.environ.get("GRADCELL_CUDNN") == _OFF:
        return [*rows, ("cuDNN", "not used: GRADCELL_CUDNN=0")]
    try:
        version, path = _core.cudnn_version()
        thousands = 10_000 if version >= 90_000 else 1_000
        major, rest = divmod(version, thousands)
        rows.append(("cuDNN", f"{major}.{rest // 100}.{rest % 100} {path}"))
    except RuntimeError as error:
        rows.append(("cuDNN", f"missing: {reason(error)}"))
    return rows
