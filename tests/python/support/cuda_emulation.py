"""Runs CUDA plans without a GPU: their kernels as C++, their matrix products as NumPy.

`Batch` compiles the kernels of many plans at once; `Batch.run` carries out one of them.
"""

from __future__ import annotations

import ctypes
import fcntl
import functools
import hashlib
import itertools
import os
import pathlib
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest
from draws import TOGETHER

SHIM = pathlib.Path(__file__).resolve().parents[2] / "cuda_shim.h"
RUNNER = SHIM.with_suffix(".cpp")
#: Bytes of shared memory that a block can have on sm_90, and what Launcher::fit_rows leaves of them.
SHARED, OWN_SHARED = 232448, 1024
NUMPY = {
    "bool": np.bool_,
    "uint8": np.uint8,
    "uint16": np.uint16,
    "uint32": np.uint32,
    "uint64": np.uint64,
    "int8": np.int8,
    "int16": np.int16,
    "int32": np.int32,
    "int64": np.int64,
    "float16": np.float16,
    "bfloat16": np.uint16,
    "float32": np.float32,
    "float64": np.float64,
}
C_TYPES = {
    "float": ctypes.c_float,
    "double": ctypes.c_double,
    "int": ctypes.c_int,
    "long long": ctypes.c_longlong,
}


def divisor(by: int, index: type) -> Any:
    """What the engine passes for a divisor, as prelude.cuh has it."""
    bits, rounds = 8 * ctypes.sizeof(index) - 1, (by - 1).bit_length()
    multiplier, shift = (-(-(1 << bits + rounds) // by), rounds - 1) if by >> bits == 0 else (0, 0)
    return (index * 3)(by, multiplier, shift)


def widen(array: np.ndarray, dtype: str) -> np.ndarray:
    """bfloat16 patterns as float32; anything else as it is."""
    if dtype != "bfloat16":
        return array
    return (array.astype(np.uint32) << 16).view(np.float32).reshape(array.shape)


def to_bfloat16(array: np.ndarray) -> np.ndarray:
    bits = np.ascontiguousarray(array, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def compiler() -> str:
    found = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
    if not found:
        pytest.skip("no C++ compiler to run the kernels' text with")
    return found


def compile_with(*arguments: str) -> None:
    flags = ["-std=c++20", "-O1", "-w", "-fwrapv", "-ffp-contract=off", "-fPIC", "-pthread"]
    done = subprocess.run([compiler(), *flags, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:4000]


def built(place: pathlib.Path, name: str, key: str, build: Callable[[pathlib.Path], None]) -> str:
    """A file that one process builds for all of pytest-xdist; `place`: any folder of this process's tests."""
    mine = next((p for p in place.parents if p.name.startswith("popen-")), place)
    folder = mine.parent / "compiled" / hashlib.sha256(key.encode()).hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / name
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "done").exists():
            build(target)
            (folder / "done").touch()
    return str(target)


def runner(place: pathlib.Path) -> str:
    """What runs kernels."""
    return built(
        place,
        "cuda_shim.o",
        RUNNER.read_text(),
        lambda target: compile_with("-O2", "-c", str(RUNNER), "-o", str(target)),
    )


def header(place: pathlib.Path, prelude: str, flags: tuple[str, ...]) -> str:
    """What comes before kernels, the shim first; compiled, if the compiler is g++."""

    def build(file: pathlib.Path) -> None:
        file.write_text(f'#include "{SHIM}"\n{prelude}')
        if "clang" not in compiler():
            compile_with(*flags, "-x", "c++-header", str(file), "-o", f"{file}.gch")

    return built(place, "prelude.h", f"{flags} {prelude}", build)


def compiled(files: list[pathlib.Path], folder: pathlib.Path, prelude: str = "") -> pathlib.Path:
    """The shared library of some C++ files of kernels and of what runs them, two compiled at a time."""
    # Kernels tell cuda_shim.cpp what they access; a name's lines in a report are from -g1. Each library
    # has shared memory of its own.
    kernels = ["-Og", "-fsanitize=thread", "-g1", "-fno-gnu-unique"]
    if "clang" not in compiler():
        kernels += ["--param", "tsan-instrument-func-entry-exit=0"]
    kernels += ["-include", header(folder, prelude, tuple(kernels))]

    def build(library: pathlib.Path) -> None:
        def compile(file: pathlib.Path) -> str:
            target = str(folder / f"{file.stem}.o")
            compile_with(*kernels, "-c", str(file), "-o", target)
            return target

        with ThreadPoolExecutor(2) as pool:
            objects = [runner(folder), *pool.map(compile, files)]
        compile_with("-shared", *objects, "-o", str(library))

    texts = "\n".join(file.read_text() for file in files)
    return pathlib.Path(built(folder, "kernels.so", f"{kernels} {texts}", build))


def with_places(report: str, library: pathlib.Path) -> str:
    """A report with the lines that its places in the library's code come from."""
    places = sorted(set(re.findall(r"@([0-9a-f]+)", report)))
    if not places or not shutil.which("addr2line"):
        return report
    command = ["addr2line", "-i", "-e", str(library)]
    for place in places:
        done = subprocess.run([*command, place], capture_output=True, text=True)
        lines = []
        for where in done.stdout.split()[:3]:
            file, _, line = where.rpartition(":")
            if pathlib.Path(file).is_file() and line.isdigit():
                texts = pathlib.Path(file).read_text().splitlines()
                lines.append(f"`{texts[int(line) - 1].strip()}`")
        report = report.replace(f"@{place}", " in ".join(lines) or place)
    return report


def parameter_types(kernel: str) -> list[str]:
    """The types of the parameters in a kernel's text."""
    found = re.search(r"__global__ void __launch_bounds__\(\d+, \w+\) \w+\((.*?)\) \{", kernel)
    assert found is not None
    parameters = re.split(r",(?![^<]*>)", found[1])
    types = [re.sub(r"\w+$", "", p).replace("__restrict__", "") for p in parameters]
    return [t if "*" in t else t.replace("const ", "") for t in types]


def module(prelude: str, kernels: list[str]) -> str:
    texts = "\n".join(kernels)
    return f"{prelude}\nnamespace gradcell {{\nnamespace scalar {{\n{texts}}}\n}}\n"


class Barriers:
    """Gives the barriers of a text numbers, so that cuda_shim.cpp can leave one out."""

    NAMES: ClassVar[dict[str, str]] = {
        "__syncthreads": "shim_barrier",
        "__syncwarp": "shim_warp_barrier",
    }

    def __init__(self) -> None:
        self.where: list[str] = ["none"]  # by number: the text before it

    def numbered(self, text: str) -> str:
        def number(found: re.Match[str]) -> str:
            self.where.append(text[: found.end()])
            return f"{self.NAMES[found[1]]}({len(self.where) - 1})"

        return re.sub(r"\b(__syncthreads|__syncwarp)\(\)", number, text)


class Kernels:
    """Every different kernel of some plans once, as kernel_0, kernel_1 and so on; None: a plan left out."""

    def __init__(self, plans: Sequence[Any]) -> None:
        self.prelude: str = next(plan for plan in plans if plan is not None).raw["prelude"]
        self.texts: list[str] = []
        self.number: dict[tuple[int, str], int] = {}  # of a plan's kernel, by its name
        seen: dict[str, int] = {}
        for i, plan in enumerate(plans):
            if plan is None:
                continue
            assert plan.raw["prelude"] == self.prelude
            for name, kernel in plan.kernels:
                bare = kernel.replace(f" {name}(", " @(")
                if bare not in seen:
                    seen[bare] = len(seen)
                    self.texts.append(bare.replace(" @(", f" kernel_{seen[bare]}("))
                self.number[i, name] = seen[bare]

    def needs_warps(self, plan: int, name: str) -> bool:
        """Whether a kernel is right for its own block only."""
        return "GC_NEEDS_WARPS" in self.texts[self.number[plan, name]]

    def source(self, begin: int = 0, end: int | None = None) -> str:
        """The module that holds some of the kernels."""
        return module(self.prelude, self.texts[begin:end])


#: Where no kernel may spill: on each architecture all of them, at night; otherwise every 12th on sm_90.
WHERE_NONE_SPILLS = [
    pytest.param("sm_90", 12, id="sm_90, some"),
    *(
        pytest.param(arch, 1, id=arch, marks=pytest.mark.slow)
        for arch in ("sm_75", "sm_80", "sm_90", "sm_100")
    ),
]


#: Bytes that a kernel may spill where two blocks of it share a multiprocessor: measured, they are worth more.
FEW_SPILLED = 160


def spills(of: Usage, text: str) -> bool:
    return of.spilled > (FEW_SPILLED if "__launch_bounds__(256, gc_two_blocks)" in text else 0)


def that_spill(kernels: Kernels, arch: str, every: int) -> dict[str, Usage]:
    """Which kernels spill registers, of every so many of them, as the engine has them compiled. That the
    others compile is seen, too."""
    nvrtc, size = Nvrtc(), 100
    names = [str(re.search(r"\bkernel_\d+\b", text)[0]) for text in kernels.texts[::every]]  # type: ignore[index]

    def usage(begin: int) -> dict[str, Usage]:
        return nvrtc.usage(
            module(kernels.prelude, kernels.texts[::every][begin : begin + size]), arch
        )

    with ThreadPoolExecutor(2) as pool:
        found: dict[str, Usage] = {}
        for part in pool.map(usage, range(0, len(names), size)):
            found.update(part)
        if every > 1:
            sources = [kernels.source(b, b + size) for b in range(0, len(kernels.texts), size)]
            virtual = arch.replace("sm", "compute")
            list(pool.map(lambda source: nvrtc.compile(source, virtual, quick=True), sources))
    assert sorted(found) == sorted(names)
    texts = dict(zip(names, kernels.texts[::every], strict=True))
    return {name: of for name, of in found.items() if spills(of, texts[name])}


class Plans(Mapping[str, Any]):
    """The plans of cases by name, made when they are asked for."""

    def __init__(self, cases: Iterable[str], make: Callable[[str], Any]) -> None:
        self.cases, self.make = list(cases), functools.cache(make)

    def __getitem__(self, name: str) -> Any:
        return self.make(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.cases)

    def __len__(self) -> int:
        return len(self.cases)


def chosen(
    request: pytest.FixtureRequest,
    plans: Mapping[str, Any],
    of: Callable[[dict[str, Any]], str | None] = lambda parameters: parameters.get("name"),
) -> list[Any]:
    """The plans that a fixture is asked for by the tests that run, all if these name none, and None for each
    other; `of`: the name of a test's plan, by its parameters."""
    items: list[Any] = request.session.items
    asked = {
        of(call.params)
        for i in items
        if i.module is request.module
        and request.fixturename in i.fixturenames
        and hasattr(i, "callspec")
        for call in request.config.stash[TOGETHER].part(i) or [i.callspec]
    }
    wanted = asked & set(plans) or set(plans)
    return [plans[name] if name in wanted else None for name in plans]


class Launches(NamedTuple):
    """What the launches of a run have in common."""

    number: int  # of the plan
    constants: list[Any]
    threads: tuple[int, int] | None
    grid: int
    aligned: bool
    epilogues: bool
    status: ctypes.c_int


def nobody_wrote(shape: Any, dtype: Any = np.uint8) -> np.ndarray:
    """An array that reads as NaN."""
    count = int(np.prod(shape)) * np.dtype(dtype).itemsize
    memory = np.full(count + 64, 0xFF, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + count].view(dtype).reshape(shape)


def view(place: int, shape: Any, dtype: str) -> np.ndarray:
    """The array at an address."""
    size = int(np.prod(shape)) * np.dtype(NUMPY[dtype]).itemsize
    memory = (ctypes.c_ubyte * size).from_address(place) if size else bytearray()
    return np.frombuffer(memory, NUMPY[dtype]).reshape(shape)


def block_of(step: dict[str, Any], room: int = SHARED - OWN_SHARED) -> tuple[int, int]:
    """The block of a launch, with as many rows as Launcher::fit_rows finds room for."""
    (x, y), (fixed, row) = step["block"], step["shared"]
    while row and x > 1 and fixed + row * (x | 1) > room:
        x //= 2
    return x, y


class Batch:
    """The kernels of several plans, compiled by a C++ compiler, a few files at a time; None: left out."""

    PART = 60  # kernels a file

    def __init__(self, plans: Sequence[Any], folder: pathlib.Path, wide: bool = False) -> None:
        self.plans = plans
        self.kernels = Kernels(plans)
        if wide:
            narrow, index = "typedef int gc_index;", "typedef long long gc_index;"
            assert narrow in self.kernels.prelude
            self.kernels.prelude = self.kernels.prelude.replace(narrow, index)
        self.wide = "typedef long long gc_index" in self.kernels.prelude
        files = []
        self.barriers = Barriers()
        prelude = self.barriers.numbered(self.kernels.prelude)
        texts = [self.barriers.numbered(t) for t in self.kernels.texts]
        for begin in range(0, len(texts), self.PART):
            part = texts[begin : begin + self.PART]
            source = module("", part) + "using namespace gradcell::scalar;\n"
            for i, kernel in enumerate(part, begin):
                types = parameter_types(kernel)
                values = ", ".join(f"*({t}*)a[{k}]" for k, t in enumerate(types))
                # Arguments are no memory of the launch's.
                source += (
                    f'extern "C" __attribute__((no_sanitize("thread"))) void run_{i}(void** a) '
                )
                source += f"{{ kernel_{i}({values}); }}\n"
            files.append(folder / f"kernels{begin}.cpp")
            files[-1].write_text(source)
        self.path = compiled(files, folder, prelude)
        self.library = ctypes.CDLL(str(self.path))
        self.library.shim_report.restype = ctypes.c_char_p

    def run(
        self,
        number: int,
        threads: tuple[int, int] | None = (1, 1),
        grid: int = 1,
        aligned: bool = True,
        epilogues: bool = True,
        order: int | None = None,
    ) -> list[np.ndarray]:
        """The outputs of a plan, from the input values that it was recorded with. Without epilogues:
        as where cuBLASLt adds no bias. threads None: the blocks that the plan has, on sm_90; `grid` is then
        the most of them. Lanes, warps and blocks run by chance, another one for each plan, or in the
        `order` of cuda_shim.cpp. AssertionError for what is undefined on a GPU (see there)."""
        raw = self.plans[number].raw
        self.library.shim_order(number + 2 if order is None else order)
        inputs = [np.ascontiguousarray(v) for v in raw["input_values"]]
        how = Launches(number, raw["constants"], threads, grid, aligned, epilogues, ctypes.c_int(0))
        arena = nobody_wrote(raw["arena_bytes"])
        outputs = self._carry_out(how, raw, inputs, arena.ctypes.data)
        if how.status.value:
            raise IndexError("an index is out of range")
        return [widen(a, o["dtype"]) for a, o in zip(outputs, raw["outputs"], strict=True)]

    def _carry_out(
        self, how: Launches, plan: dict[str, Any], inputs: list[np.ndarray], arena: int
    ) -> list[np.ndarray]:
        """The outputs of a plan, or of one step of a loop's body."""
        outputs = [nobody_wrote(o["shape"], NUMPY[o["dtype"]]) for o in plan["outputs"]]
        places = []
        for kind, index, offset, size in plan["buffers"]:
            if kind == "temporary":
                places.append(arena + offset)
            else:
                array = (inputs if kind == "input" else outputs)[index]
                assert array.nbytes == size
                places.append(array.ctypes.data)
        steps = []
        for step in plan["steps"]:
            steps.append(step)
            if "add_bias" in step and not how.epilogues:
                product = {k: v for k, v in step["matmul"].items() if k != "bias"}
                steps[-1:] = [{"matmul": product}, step["add_bias"]]
        for step in steps:
            if "matmul" in step:
                self._matmul(step["matmul"], plan["buffers"], places)
            elif "loop" in step:
                self._loop(how, step["loop"], places)
            else:
                self._launch(how, plan, step, places)
        result = []
        for o, array in zip(plan["outputs"], outputs, strict=True):
            if o["alias_input"] >= 0:
                array = inputs[o["alias_input"]].reshape(o["shape"])
            elif o["alias_output"] >= 0:
                array = outputs[o["alias_output"]].reshape(o["shape"])
            result.append(array)
        return result

    def _loop(self, how: Launches, loop: dict[str, Any], places: list[int]) -> None:
        """As the loop is defined: by values, whatever the engine does to save copies."""
        body, steps = loop["body"], loop["steps"]
        reads, writes = ([places[b] for b in loop[k]] for k in ("reads", "writes"))

        def array(place: int, like: dict[str, Any], steps: int | None = None) -> np.ndarray:
            shape = like["shape"] if steps is None else [steps, *like["shape"]]
            return view(place, shape, like["dtype"])

        state = [
            array(reads[first], body["outputs"][output]).copy()
            for first, output, _ in loop["carried"]
        ]
        for step in range(steps):
            t = steps - 1 - step if loop["reverse"] else step
            inputs = []
            for (kind, index), like in zip(loop["inputs"], body["inputs"], strict=True):
                if kind == "carried":
                    inputs.append(state[index])
                elif kind == "same":
                    inputs.append(array(reads[index], like))
                else:
                    inputs.append(
                        array(reads[index], like, steps)[t : t + 1].reshape(like["shape"])
                    )
            outputs = self._carry_out(how, body, inputs, places[loop["arena"]])
            for output, result in loop["kept"]:
                array(writes[result], body["outputs"][output], steps)[t] = outputs[output]
            state = [outputs[output].copy() for _, output, _ in loop["carried"]]
        for (_, output, result), last in zip(loop["carried"], state, strict=True):
            if result >= 0:
                array(writes[result], body["outputs"][output])[...] = last

    def _launch(
        self, how: Launches, plan: dict[str, Any], step: dict[str, Any], places: list[int]
    ) -> None:
        index_type = ctypes.c_longlong if self.wide else ctypes.c_int
        values: list[Any] = []
        each = len(step["arguments"]) // step["segments"]
        for at, (kind, *rest) in enumerate(step["arguments"]):
            if at % each == 0:  # a segment
                buffers = [a[1] for a in step["arguments"][at : at + each] if a[0] == "buffer"]
                aligned = how.aligned and all(places[b] % 16 == 0 for b in buffers)
            if kind == "buffer":
                values.append(ctypes.c_void_p(places[rest[0]]))
            elif kind == "size":
                values.append(index_type(rest[0]))
            elif kind == "divisor":
                values.append(divisor(rest[0], index_type))
            elif kind == "packs":
                values.append(index_type(rest[0] if aligned else 0))
            elif kind == "constant":
                values.append(C_TYPES[rest[1]](how.constants[rest[0]]))
            else:
                values.append(ctypes.cast(ctypes.pointer(how.status), ctypes.c_void_p))
        arguments = [(type(values[k]) * step["segments"])(*values[k::each]) for k in range(each)]
        pointers = (ctypes.c_void_p * len(arguments))(*[ctypes.addressof(a) for a in arguments])
        kernel = f"run_{self.kernels.number[how.number, step['kernel']]}"
        threads, grid = how.threads, how.grid
        fixed, row = step["shared"]
        if threads is None or self.kernels.needs_warps(how.number, step["kernel"]):
            threads, grid = block_of(step), min(grid, step["grid"])
        elif step["block"][1] == 1:
            threads = (min(threads[0] * threads[1], step["block"][0]), 1)
        given = {a[1] for a in step["arguments"] if a[0] == "buffer"}
        ranges = [(places[b], places[b] + plan["buffers"][b][3]) for b in given]
        if any(a[0] == "status" for a in step["arguments"]):
            ranges.append((ctypes.addressof(how.status), ctypes.addressof(how.status) + 4))
        begins, ends = ((ctypes.c_ulong * len(ranges))(*side) for side in zip(*ranges, strict=True))
        self.library.shim_ranges(len(ranges), begins, ends)
        shared = fixed + row * (block_of(step)[0] | 1)
        ended = self.library.shim_launch(
            getattr(self.library, kernel), pointers, grid, *threads, shared
        )
        report = self.library.shim_report().decode()
        if report or ended:
            report += "threads end where others wait for them" if ended else ""
            raise AssertionError(f"{step['kernel']}: {with_places(report, self.path)}")

    @staticmethod
    def _matmul(m: dict[str, Any], buffers: Any, places: list[int]) -> None:
        def matrices(b: int, *shape: int, parts: Any = ()) -> np.ndarray:
            size = int(np.prod(shape)) * np.dtype(NUMPY[m["dtype"]]).itemsize
            parts = parts or [b]
            assert parts[0] == b and sum(buffers[p][3] for p in parts) == size
            for one, next in itertools.pairwise(parts):
                assert places[next] == places[one] + buffers[one][3]
            return view(places[b], shape, m["dtype"])

        count, rows, columns, inner = m["batch"], m["m"], m["n"], m["k"]
        of_a = (inner, rows) if m["transpose_a"] else (rows, inner)
        of_b = (columns, inner) if m["transpose_b"] else (inner, columns)
        a = matrices(m["a"], count, *of_a, parts=m["a_parts"])
        b = matrices(m["b"], count, *of_b, parts=m["b_parts"])
        a, b = widen(a, m["dtype"]), widen(b, m["dtype"])
        a = a.swapaxes(1, 2) if m["transpose_a"] else a
        b = b.swapaxes(1, 2) if m["transpose_b"] else b
        wide = np.float64 if m["dtype"] == "float64" else np.float32
        product = a.astype(wide) @ b.astype(wide)
        out = matrices(m["out"], count, rows, columns, parts=m["out_parts"])
        if m["accumulate"]:
            product = product + widen(out, m["dtype"])
        if "addend" in m:
            product = product + widen(matrices(m["addend"], count, rows, columns), m["dtype"])
        if "bias" in m:
            product = product + widen(matrices(m["bias"], columns), m["dtype"])
        out[...] = to_bfloat16(product) if m["dtype"] == "bfloat16" else product


class Usage(NamedTuple):
    registers: int
    spilled: int  # bytes that go to memory and back for want of registers
    shared: int  # bytes of shared memory that its text names


def from_wheel(library: str) -> str | None:
    from cuda.pathfinder import load_nvidia_dynamic_lib

    return load_nvidia_dynamic_lib(library).abs_path


class Nvrtc:
    """NVRTC from $GRADCELL_NVRTC, its wheel or the system, through ctypes."""

    done: ClassVar[dict[tuple[Any, ...], tuple[bytes, str]]] = {}

    def __init__(self) -> None:
        try:
            path = os.environ.get("GRADCELL_NVRTC") or from_wheel("nvrtc")
        except Exception as error:
            pytest.skip(
                f"NVRTC is not here (pip install nvidia-cuda-nvrtc cuda-pathfinder): {error}"
            )
        self.path, self.library = path, ctypes.CDLL(path)
        major, minor = ctypes.c_int(), ctypes.c_int()
        self.library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
        self.version = (major.value, minor.value)

    def compile(self, source: str, arch: str, quick: bool = False) -> bytes:
        """The CUBIN, or the PTX where arch is "compute_75"; AssertionError with the log if it does not
        compile. Quick: hardly optimised, where this NVRTC has a way to do that."""
        quickly = [b"--Ofast-compile=max"] if quick and self.version >= (12, 8) else []
        code, log = self._compile(source, arch, quickly)
        usage = (
            r"^(ptxas +(info|\.) .*| +\d+ bytes stack frame.*)\n"  # of each kernel, where asked for
        )
        said = re.sub(usage, "", log, flags=re.M).strip("\0\n ")
        assert not said, said[:2000]
        return code

    def usage(self, source: str, arch: str) -> dict[str, Usage]:
        """What each kernel uses, by ptxas, which is in NVRTC."""
        _, log = self._compile(source, arch, [])
        found: dict[str, Usage] = {}
        for part in log.split("Compiling entry function '")[1:]:
            spilled = re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", part)
            registers = re.search(r"Used (\d+) registers", part)
            assert spilled and registers, part
            shared = re.search(r"(\d+) bytes smem", part)
            found[part[: part.index("'")]] = Usage(
                int(registers[1]),
                int(spilled[1]) + int(spilled[2]),
                int(shared[1]) if shared else 0,
            )
        return found

    def _compile(self, source: str, arch: str, more: list[bytes]) -> tuple[bytes, str]:
        """The code and the log; each text is compiled once for all tests."""
        key = (self.path, source, arch, *more)
        if key not in self.done:
            self.done[key] = self._compile_now(source, arch, more)
        return self.done[key]

    def _compile_now(self, source: str, arch: str, more: list[bytes]) -> tuple[bytes, str]:
        lib, program = self.library, ctypes.c_void_p()
        made = lib.nvrtcCreateProgram(
            ctypes.byref(program), source.encode(), b"gradcell.cu", 0, None, None
        )
        assert made == 0
        options = [f"--gpu-architecture={arch}".encode(), b"--std=c++17", b"--fmad=false"]
        options += [b"--diag-suppress=177", *more]
        if arch.startswith("sm_"):
            options.append(b"--ptxas-options=-v")
        code = lib.nvrtcCompileProgram(
            program, len(options), (ctypes.c_char_p * len(options))(*options)
        )
        size = ctypes.c_size_t()
        lib.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        lib.nvrtcGetProgramLog(program, log)
        assert code == 0, log.value.decode()[:4000]
        kind = "PTX" if arch.startswith("compute_") else "CUBIN"
        getattr(lib, f"nvrtcGet{kind}Size")(program, ctypes.byref(size))
        code_text = ctypes.create_string_buffer(size.value)
        assert getattr(lib, f"nvrtcGet{kind}")(program, code_text) == 0
        lib.nvrtcDestroyProgram(ctypes.byref(program))
        return code_text.raw, log.value.decode()
