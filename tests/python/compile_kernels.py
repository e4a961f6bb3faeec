"""Compiles every kernel of a run of the whole test suite with NVRTC, for each architecture.

    GRADCELL_SAVE_CUDA=folder pytest
    python tests/python/compile_kernels.py folder [sm_75 sm_80 sm_90 sm_100]

Plans are made for the CPU and for CUDA alike, so the suite needs no GPU. Exits 1, with the compiler's
log, if a kernel does not compile.
"""

from __future__ import annotations

import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cuda_emulation import Nvrtc

ARCHITECTURES = ("sm_75", "sm_80", "sm_90", "sm_100")
START, END = "\nnamespace gradcell {\nnamespace scalar {\n", "\n}  // namespace scalar"
KERNEL = re.compile(r'extern "C" __global__ void .*?\n}\n', re.S)
NAME = re.compile(r" (\w+)\(", re.S)
PART = 100  # kernels a module


def distinct(folder: Path) -> dict[str, list[str]]:
    """The different kernels of all files, by the text that comes before them in their module."""
    found: dict[str, dict[str, None]] = {}
    for file in folder.glob("*.cu"):
        text = file.read_text()
        at = text.rindex(START)
        kernels = found.setdefault(text[:at], {})
        for kernel in KERNEL.findall(text[at:]):
            head, rest = kernel.split(") ", 1)  # behind the launch bounds
            kernels[head + ") @" + NAME.sub("(", " " + rest, count=1)] = None
    return {prelude: list(kernels) for prelude, kernels in found.items()}


def main(folder: Path, architectures: tuple[str, ...]) -> int:
    nvrtc, modules, count = Nvrtc(), [], 0
    for prelude, kernels in distinct(folder).items():
        count += len(kernels)
        for begin in range(0, len(kernels), PART):
            texts = [
                k.replace("@(", f"kernel_{i}(") for i, k in enumerate(kernels[begin : begin + PART])
            ]
            modules.append(prelude + START + "".join(texts) + "}\n}\n")
    jobs = [(module, arch, True) for module in modules for arch in architectures]
    with ThreadPoolExecutor(2) as pool:
        failures = [error for error in pool.map(lambda job: failure(nvrtc, *job), jobs) if error]
    print(f"{count} kernels for {', '.join(architectures)}: {len(failures)} modules failed")
    print(*failures[:5], sep="\n")
    return 1 if failures or not count else 0


def failure(nvrtc: Nvrtc, module: str, arch: str, quick: bool) -> str:
    try:
        nvrtc.compile(module, arch, quick)
    except AssertionError as error:
        return f"{arch}: {error}"
    return ""


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), tuple(sys.argv[2:]) or ARCHITECTURES))
