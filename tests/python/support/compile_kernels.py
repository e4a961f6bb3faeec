"""Compiles every kernel of a run of the whole test suite with NVRTC, for each architecture.

    GRADCELL_SAVE_CUDA=folder pytest
    python tests/python/support/compile_kernels.py folder --known known.jsonl

Plans are made for the CPU and for CUDA alike, so the suite needs no GPU. What a kernel uses is added to
the file of --known as soon as its module is compiled, and not compiled again: a run can be ended at any
time and taken up again, --part 1/3 and so on share the work, and after a change only kernels with
another text are compiled. Prints how many there are, for how many each architecture is done, the most
registers and what spills. Exits 1, with the compiler's log, if a kernel does not compile or spills.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import re
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from cuda_emulation import Nvrtc

ARCHITECTURES = ("sm_75", "sm_80", "sm_90", "sm_100")
START, END = "\nnamespace gradcell {\nnamespace scalar {\n", "\n}  // namespace scalar"
HEAD = 'extern "C" __global__ void '
NAME = re.compile(r" (\w+)\(", re.S)


class Kernel(NamedTuple):
    prelude: str
    text: str  # with @ for its name

    def key(self, arch: str) -> str:
        return hashlib.sha256("\n".join((arch, *self)).encode()).hexdigest()[:32]


class Store:
    """The different kernels of a folder's files, in a file of their own, and from how many plans they
    are. The suite has far more plans than different kernels: gathering removes the plans' files."""

    def __init__(self, folder: Path) -> None:
        self.file, self.folder, self.plans = folder / "kernels.json", folder, 0
        self.kernels: dict[Kernel, None] = {}
        self.preludes: dict[str, str] = {}
        if self.file.exists():
            kept = json.loads(self.file.read_text())
            self.plans = kept["plans"]
            for prelude, texts in kept["kernels"].items():
                self.preludes[prelude] = prelude
                self.kernels.update({Kernel(prelude, text): None for text in texts})

    def gather(self) -> None:
        taken = []
        for file in self.folder.glob("*.cu"):
            text = file.read_text()
            if START not in text or not text.endswith("}  // namespace gradcell\n"):
                continue  # still being written
            at = text.rindex(START)
            prelude = self.preludes.setdefault(text[:at], text[:at])
            for kernel in text[at : text.rindex(END)].split(HEAD)[1:]:
                head, rest = (HEAD + kernel).split(") ", 1)  # behind the launch bounds
                bare = head + ") @" + NAME.sub("(", " " + rest, count=1)
                self.kernels[Kernel(prelude, bare)] = None
            taken.append(file)
        self.plans += len(taken)
        texts: dict[str, list[str]] = {}
        for k in self.kernels:
            texts.setdefault(k.prelude, []).append(k.text)
        self.file.write_text(json.dumps({"plans": self.plans, "kernels": texts}))
        for file in taken:
            file.unlink()


def read(known: Path) -> dict[str, dict[str, int]]:
    if not known.exists():
        return {}
    lines = [json.loads(line) for line in known.read_text().splitlines() if line.endswith("}")]
    return {line["key"]: line for line in lines}


def module(kernels: list[Kernel]) -> str:
    texts = [k.text.replace("@(", f"kernel_{i}(") for i, k in enumerate(kernels)]
    return kernels[0].prelude + START + "".join(texts) + "}\n}\n"


def modules(kernels: list[Kernel], most: int) -> list[list[Kernel]]:
    """By what comes before them, so many in each."""
    by_prelude: dict[str, list[Kernel]] = {}
    for k in kernels:
        by_prelude.setdefault(k.prelude, []).append(k)
    return [all_[i : i + most] for all_ in by_prelude.values() for i in range(0, len(all_), most)]


def compiled(nvrtc: Nvrtc, kernels: list[Kernel], arch: str) -> tuple[list[dict[str, object]], str]:
    """A line for each kernel of a module, or the compiler's log."""
    try:
        usage = nvrtc.usage(module(kernels), arch)
    except AssertionError as error:
        return [], f"{arch}: {error}"
    return [
        {"key": k.key(arch), "registers": usage[f"kernel_{i}"].registers,
         "spilled": usage[f"kernel_{i}"].spilled}
        for i, k in enumerate(kernels)
    ], ""  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("architectures", nargs="*", default=ARCHITECTURES)
    parser.add_argument("--known", type=Path, default=Path("known_kernels.jsonl"))
    parser.add_argument("--part", default="1/1", help="K/N: the K-th of N parts")
    parser.add_argument("--sample", type=int, help="only so many, at random")
    parser.add_argument(
        "--seconds", type=float, default=float("inf"), help="begin none after these"
    )
    parser.add_argument("--module", type=int, default=50, help="kernels a module")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    start = time.perf_counter()
    store = Store(options.folder)
    store.gather()
    kernels, plans = list(store.kernels), store.plans
    if options.sample is not None:
        random.Random(1).shuffle(kernels)
        del kernels[options.sample :]
    part, parts = map(int, options.part.split("/"))
    known = read(options.known)
    jobs = []
    for arch in options.architectures:
        missing = [k for k in kernels if k.key(arch) not in known]
        jobs += [(m, arch) for m in modules(missing, options.module)]
    jobs = jobs[part - 1 :: parts]
    nvrtc, failures = Nvrtc(), []

    def run(job: tuple[list[Kernel], str]) -> tuple[list[dict[str, object]], str]:
        if time.perf_counter() - start > options.seconds:
            return [], ""
        return compiled(nvrtc, *job)

    with ThreadPoolExecutor(options.threads) as pool, options.known.open("a") as file:
        for lines, failure in pool.map(run, jobs):
            file.writelines(json.dumps(line) + "\n" for line in lines)
            file.flush()
            failures += [failure] if failure else []
    known = read(options.known)
    print(f"{plans} plans, {len(kernels)} kernels, {time.perf_counter() - start:.0f} s")
    spilled = 0
    for arch in options.architectures:
        uses = [known[k.key(arch)] for k in kernels if k.key(arch) in known]
        spills = [u for u in uses if u["spilled"]]
        spilled += len(spills)
        most = max((u["registers"] for u in uses), default=0)
        print(f"{arch}: {len(uses)} compiled, at most {most} registers, {len(spills)} spill")
    print(*failures[:5], sep="\n")
    return 1 if failures or spilled or not kernels else 0


if __name__ == "__main__":
    sys.exit(main())
