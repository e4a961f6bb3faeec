"""Runs plans that gpu_plans.py wrote, with the NVIDIA driver, NVRTC, cuBLASLt and NumPy alone.

    python bench/gpu_replay.py PLANS [--json FILE] [--kernels FOLDER]

A line for each case: how far its results are from the CPU engine's, beside the largest of them, and its
times by device events, as a captured graph and step by step. --repeats 0: no times. Each input, output and
temporary is an allocation of its own, of exactly its size, so that memcheck sees where one ends. Compiled
kernels are kept in --kernels. The exit status says whether all is as it should be.
"""

from __future__ import annotations

import argparse
import ctypes
import hashlib
import importlib.util
import itertools
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

BYTES = {"bool": 1, "uint8": 1, "int8": 1, "int16": 2, "float16": 2, "bfloat16": 2}
BYTES |= {"int32": 4, "float32": 4, "int64": 8, "float64": 8}
C_TYPES = {"float": ctypes.c_float, "double": ctypes.c_double}
C_TYPES |= {"int": ctypes.c_int, "long long": ctypes.c_longlong}
OWN_SHARED = 1024  # bytes that a kernel may have besides what a launch says
WORKSPACE = 32 << 20
LONG = 50.0  # milliseconds for which a graph is launched, again and again, to be timed


def divisor(by: int, index: type) -> Any:
    """A divisor as kernels take it: csrc/cuda/run/divisor.h."""
    bits, rounds = 8 * ctypes.sizeof(index) - 1, (by - 1).bit_length()
    multiplier, shift = (-(-(1 << bits + rounds) // by), rounds - 1) if by >> bits == 0 else (0, 0)
    return (index * 3)(by, multiplier, shift)


def opened(variable: str, name: str) -> ctypes.CDLL:
    """A library: what the variable names, else from NVIDIA's wheels, else the system's."""
    spec = importlib.util.find_spec("nvidia")
    folders = [Path(f) for f in (spec and spec.submodule_search_locations) or ()]
    tried = [os.environ[variable]] if variable in os.environ else []
    for version in (13, 12):
        tried += [str(p) for f in folders for p in f.glob(f"*/lib/{name}.so.{version}")]
        tried.append(f"{name}.so.{version}")
    for file in [*tried, f"{name}.so.1", f"{name}.so"]:
        try:
            return ctypes.CDLL(file)
        except OSError:
            continue
    raise RuntimeError(f"{name} was not found; {variable} can name it")


class Nvrtc:
    def __init__(self, kept: Path | None) -> None:
        self.library, self.kept = opened("GRADCELL_NVRTC", "libnvrtc"), kept
        major, minor, count = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
        self.library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
        self.version = f"{major.value}.{minor.value}"
        # It finds this by its name once it is open, which not all of NVIDIA's wheels see to.
        beside = Path(self.library._name).with_name(f"libnvrtc-builtins.so.{self.version}")
        if beside.is_absolute() and beside.exists():
            ctypes.CDLL(str(beside))
        self.library.nvrtcGetNumSupportedArchs(ctypes.byref(count))
        known = (ctypes.c_int * count.value)()
        self.library.nvrtcGetSupportedArchs(known)
        self.known = list(known)

    def compile(self, source: str, capability: int, shared: int) -> bytes:
        """Machine code, or PTX where this NVRTC is older than the GPU."""
        if capability in self.known:
            target, kind = f"sm_{capability}", "CUBIN"
        else:
            target, kind = f"compute_{max(a for a in self.known if a < capability)}", "PTX"
        options = [f"--gpu-architecture={target}", "--std=c++17", "--fmad=false"]
        options += ["--diag-suppress=177", f"--define-macro=GRADCELL_SHARED={shared}"]
        key = hashlib.sha256("\n".join([self.version, *options, source]).encode()).hexdigest()[:32]
        if self.kept and (self.kept / key).exists():
            return (self.kept / key).read_bytes()
        lib, program, size = self.library, ctypes.c_void_p(), ctypes.c_size_t()
        lib.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"plan.cu", 0, None, None)
        words = (ctypes.c_char_p * len(options))(*[o.encode() for o in options])
        if lib.nvrtcCompileProgram(program, len(options), words):
            lib.nvrtcGetProgramLogSize(program, ctypes.byref(size))
            log = ctypes.create_string_buffer(size.value)
            lib.nvrtcGetProgramLog(program, log)
            raise RuntimeError(f"NVRTC: {log.value.decode()[:2000]}")
        getattr(lib, f"nvrtcGet{kind}Size")(program, ctypes.byref(size))
        code = ctypes.create_string_buffer(size.value)
        getattr(lib, f"nvrtcGet{kind}")(program, code)
        lib.nvrtcDestroyProgram(ctypes.byref(program))
        if self.kept:
            self.kept.mkdir(parents=True, exist_ok=True)
            beside = self.kept / f"{key}.{os.getpid()}"
            beside.write_bytes(code.raw)
            beside.replace(self.kept / key)
        return code.raw


class Gpu:
    """The driver's first GPU, a stream on it, and memory."""

    def __init__(self) -> None:
        self.library = opened("GRADCELL_CUDA_DRIVER", "libcuda")
        self.call("cuInit", 0)
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)
        name = ctypes.create_string_buffer(100)
        self.call("cuDeviceGetName", name, 100, device)
        self.name = name.value.decode()

        def attribute(number: int) -> int:
            value = ctypes.c_int()
            self.call("cuDeviceGetAttribute", ctypes.byref(value), number, device)
            return value.value

        self.capability = 10 * attribute(75) + attribute(76)
        self.shared = attribute(97)  # bytes that a block can have
        version = ctypes.c_int()
        self.call("cuDriverGetVersion", ctypes.byref(version))
        self.driver = version.value
        self.stream = self.made("cuStreamCreate", 1)

    def call(self, name: str, *arguments: Any) -> None:
        error = getattr(self.library, name)(*arguments)
        if error:
            text = ctypes.c_char_p()
            self.library.cuGetErrorString(error, ctypes.byref(text))
            raise RuntimeError(f"{name}: {(text.value or b'').decode()} ({error})")

    def made(self, name: str, *arguments: Any) -> ctypes.c_void_p:
        handle = ctypes.c_void_p()
        self.call(name, ctypes.byref(handle), *arguments)
        return handle

    def allocate(self, size: int) -> int:
        return self.made("cuMemAlloc_v2", ctypes.c_size_t(size)).value or 0 if size else 0

    def free(self, place: int) -> None:
        if place:
            self.call("cuMemFree_v2", ctypes.c_uint64(place))

    def upload(self, place: int, values: np.ndarray) -> None:
        if values.nbytes:
            data = values.ctypes.data_as(ctypes.c_void_p)
            size = ctypes.c_size_t(values.nbytes)
            self.call("cuMemcpyHtoDAsync_v2", ctypes.c_uint64(place), data, size, self.stream)
            self.wait()

    def download(self, values: np.ndarray, place: int) -> np.ndarray:
        if values.nbytes:
            data = values.ctypes.data_as(ctypes.c_void_p)
            size = ctypes.c_size_t(values.nbytes)
            self.call("cuMemcpyDtoHAsync_v2", data, ctypes.c_uint64(place), size, self.stream)
            self.wait()
        return values

    def copy(self, to: int, source: int, size: int) -> None:
        if size and to != source:
            places = ctypes.c_uint64(to), ctypes.c_uint64(source)
            self.call("cuMemcpyDtoDAsync_v2", *places, ctypes.c_size_t(size), self.stream)

    def clear(self, place: int, size: int) -> None:
        if size:
            to, count = ctypes.c_uint64(place), ctypes.c_size_t(size)
            self.call("cuMemsetD8Async", to, ctypes.c_ubyte(0), count, self.stream)

    def wait(self) -> None:
        self.call("cuStreamSynchronize", self.stream)

    def event(self) -> ctypes.c_void_p:
        event = self.made("cuEventCreate", 0)
        self.call("cuEventRecord", event, self.stream)
        return event

    def between(self, events: list[ctypes.c_void_p]) -> list[float]:
        """Milliseconds from each event to the next, all of which are then gone."""
        self.call("cuEventSynchronize", events[-1])
        found, ms = [], ctypes.c_float()
        for first, then in itertools.pairwise(events):
            self.call("cuEventElapsedTime", ctypes.byref(ms), first, then)
            found.append(ms.value)
        for event in events:
            self.call("cuEventDestroy_v2", event)
        return found


class Products:
    """cuBLASLt's products of row-major matrices, which are its own of the transposes, in the other order."""

    TYPES = {"float32": 0, "float64": 1, "float16": 2, "bfloat16": 14}  # noqa: RUF012

    def __init__(self, gpu: Gpu) -> None:
        self.gpu, self.library = gpu, opened("GRADCELL_CUBLASLT", "libcublasLt")
        self.handle, self.workspace = ctypes.c_void_p(), gpu.allocate(WORKSPACE)
        self.known: dict[Any, tuple[Any, ...]] = {}
        self.call("cublasLtCreate", ctypes.byref(self.handle))

    def call(self, name: str, *arguments: Any) -> None:
        status = getattr(self.library, name)(*arguments)
        if status:
            raise RuntimeError(f"{name} failed (cuBLAS status {status})")

    def made(self, name: str, *arguments: Any) -> ctypes.c_void_p:
        handle = ctypes.c_void_p()
        self.call(name, ctypes.byref(handle), *arguments)
        return handle

    def layout(self, kind: int, rows: int, columns: int, batch: int) -> ctypes.c_void_p:
        sizes = ctypes.c_uint64(rows), ctypes.c_uint64(columns), ctypes.c_int64(rows)
        made = self.made("cublasLtMatrixLayoutCreate", kind, *sizes)
        if batch != 1:
            setter = "cublasLtMatrixLayoutSetAttribute"
            self.set(setter, made, 5, ctypes.c_int32(batch))
            self.set(setter, made, 6, ctypes.c_int64(rows * columns))
        return made

    def set(self, setter: str, of: ctypes.c_void_p, attribute: int, value: Any) -> None:
        size = ctypes.c_size_t(ctypes.sizeof(value))
        self.call(setter, of, attribute, ctypes.byref(value), size)

    def described(self, m: dict[str, Any], alignments: tuple[int, ...]) -> tuple[Any, ...]:
        """Descriptor, layouts of both factors and the result, and an algorithm."""
        turned = m["transpose_b"], m["transpose_a"]
        rows, columns, inner, batch = m["m"], m["n"], m["k"], m["batch"]
        key = m["dtype"], m["tf32"], turned, rows, columns, inner, batch, alignments
        if key in self.known:
            return self.known[key]
        kind, wide = self.TYPES[m["dtype"]], m["dtype"] == "float64"
        compute = 70 if wide else 77 if m["tf32"] else 68
        desc = self.made("cublasLtMatmulDescCreate", compute, 1 if wide else 0)
        for attribute, value in zip((3, 4), turned, strict=True):
            self.set("cublasLtMatmulDescSetAttribute", desc, attribute, ctypes.c_int32(value))
        b = (inner, columns) if turned[0] else (columns, inner)
        a = (rows, inner) if turned[1] else (inner, rows)
        layouts = [self.layout(kind, *shape, batch) for shape in (b, a, (columns, rows))]
        preference = self.made("cublasLtMatmulPreferenceCreate")
        settings: list[tuple[int, Any]] = [(1, ctypes.c_uint64(WORKSPACE))]
        settings += [(5 + k, ctypes.c_uint32(n)) for k, n in enumerate(alignments)]
        for attribute, value in settings:
            self.set("cublasLtMatmulPreferenceSetAttribute", preference, attribute, value)
        found = (
            ctypes.c_uint64 * 16
        )()  # cublasLtMatmulHeuristicResult_t: the algorithm comes first
        count = ctypes.c_int()
        search = self.handle, desc, *layouts, layouts[2], preference, 1, found, ctypes.byref(count)
        self.call("cublasLtMatmulAlgoGetHeuristic", *search)
        if count.value == 0:
            raise RuntimeError(f"cuBLASLt has no algorithm for {m}")
        self.known[key] = desc, *layouts, found
        return self.known[key]

    def product(self, m: dict[str, Any], at: list[int]) -> Callable[[], None]:
        """What puts a product on the stream."""
        places = [at[m["b"]], at[m["a"]], at[m.get("addend", m["out"])], at[m["out"]]]
        alignments = tuple((p | 16) & -(p | 16) for p in places)
        desc, lb, la, lo, found = self.described(m, alignments)
        number = ctypes.c_double if m["dtype"] == "float64" else ctypes.c_float
        one, beta = number(1), number(1 if m["accumulate"] or "addend" in m else 0)
        pb, pa, pc, po = (ctypes.c_void_p(p) for p in places)
        words = (
            self.handle, desc, ctypes.byref(one), pb, lb, pa, la, ctypes.byref(beta), pc, lo, po, lo,
            found, ctypes.c_void_p(self.workspace), ctypes.c_size_t(WORKSPACE), self.gpu.stream,
        )  # fmt: skip
        return lambda: self.call("cublasLtMatmul", *words)


Step = tuple[str, int, int, list[Callable[[], None]]]  # what, bytes, operations, what to enqueue


class Replay:
    """One plan with its memory, ready to run."""

    def __init__(self, gpu: Gpu, nvrtc: Nvrtc, products: Products, plan: dict[str, Any]) -> None:
        self.gpu, self.products, self.plan = gpu, products, plan
        self.blocks: list[int] = []
        self.wide = "typedef long long gc_index;" in plan["source"]
        self.status = self.block(4)
        gpu.clear(self.status, 4)
        began = time.perf_counter()
        code = nvrtc.compile(plan["source"], gpu.capability, gpu.shared)
        self.compile_seconds = time.perf_counter() - began
        self.module = gpu.made("cuModuleLoadData", code)
        self.functions: dict[str, ctypes.c_void_p] = {}
        self.inputs = [self.block(self.size(i)) for i in plan["inputs"]]
        own = [self.block(self.size(o)) for o in plan["outputs"]]
        self.outputs = self.aliased(plan, self.inputs, own)
        self.steps = self.prepared(plan, self.places(plan, self.inputs, self.outputs))

    def close(self) -> None:
        self.gpu.wait()
        for place in self.blocks:
            self.gpu.free(place)
        self.gpu.call("cuModuleUnload", self.module)

    def block(self, size: int) -> int:
        place = self.gpu.allocate(size)
        self.blocks.append(place)
        return place

    @staticmethod
    def size(array: dict[str, Any]) -> int:
        count = 1
        for n in array["shape"]:
            count *= n
        return count * BYTES[array["dtype"]]

    @staticmethod
    def aliased(plan: dict[str, Any], inputs: list[int], own: list[int]) -> list[int]:
        """Where outputs are: some are an input, or another output."""
        at = list(own)
        for k, o in enumerate(plan["outputs"]):
            if o["alias_input"] >= 0:
                at[k] = inputs[o["alias_input"]]
        for k, o in enumerate(plan["outputs"]):
            if o["alias_output"] >= 0:
                at[k] = at[o["alias_output"]]
        return at

    def places(self, plan: dict[str, Any], inputs: list[int], outputs: list[int]) -> list[int]:
        """The address of each buffer; temporaries that a product takes as one lie side by side."""
        buffers = plan["buffers"]
        at = [0] * len(buffers)
        groups = [
            list(s["matmul"][parts])
            for s in plan["steps"] if "matmul" in s
            for parts in ("a_parts", "b_parts", "out_parts")
        ]  # fmt: skip
        groups = sorted(groups, key=len, reverse=True) + [[b] for b in range(len(buffers))]
        for group in groups:
            if not group or buffers[group[0]][0] != "temporary" or at[group[0]]:
                continue
            place = self.block(sum(buffers[b][3] for b in group))
            for b in group:
                at[b] = place
                place += buffers[b][3]
        for b, (kind, index, _, _) in enumerate(buffers):
            if kind != "temporary":
                at[b] = (inputs if kind == "input" else outputs)[index]
        return at

    def prepared(self, plan: dict[str, Any], at: list[int]) -> list[Step]:
        steps: list[Step] = []
        for s in plan["steps"]:
            if "kernel" in s:
                what, actions = s["kernel"], [self.launch(s, at)]
            elif "loop" in s:
                what, actions = f"loop of {s['loop']['steps']}", self.loop(s["loop"], at)
            else:
                m = s["matmul"]
                what, actions = (
                    f"{m['dtype']} {m['m']}x{m['n']}x{m['k']}",
                    [self.product(plan, m, at)],
                )
                if "add_bias" in s:  # its own launch here, so that it is timed
                    actions.append(self.launch(s["add_bias"], at))
            steps.append((what, s["bytes_read"] + s["bytes_written"], s["flops"], actions))
        return steps

    def product(self, plan: dict[str, Any], m: dict[str, Any], at: list[int]) -> Callable[[], None]:
        if m["k"]:
            return self.products.product(m, at)
        size = 0 if m["accumulate"] else plan["buffers"][m["out"]][3]
        return lambda: self.gpu.clear(at[m["out"]], size)

    def launch(self, s: dict[str, Any], at: list[int]) -> Callable[[], None]:
        gpu, segments = self.gpu, s["segments"]
        each = len(s["arguments"]) // segments
        index = ctypes.c_longlong if self.wide else ctypes.c_int
        values: list[Any] = []
        for begin in range(0, len(s["arguments"]), each):
            part = s["arguments"][begin : begin + each]
            aligned = all(at[a[1]] % 16 == 0 for a in part if a[0] == "buffer")
            for kind, *rest in part:
                if kind == "buffer":
                    values.append(ctypes.c_uint64(at[rest[0]]))
                elif kind == "size":
                    values.append(index(rest[0]))
                elif kind == "divisor":
                    values.append(divisor(rest[0], index))
                elif kind == "packs":
                    values.append(index(rest[0] if aligned else 0))
                elif kind == "constant":
                    values.append(C_TYPES[rest[1]](self.plan["constants"][rest[0]]))
                else:
                    values.append(ctypes.c_uint64(self.status))
        packed = [(type(values[k]) * segments)(*values[k::each]) for k in range(each)]
        pointers = (ctypes.c_void_p * each)(*[ctypes.addressof(a) for a in packed])
        (x, y), (fixed, row) = s["block"], s["shared"]
        while row and x > 1 and fixed + row * (x | 1) > gpu.shared - OWN_SHARED:
            x //= 2
        shared = fixed + row * (x | 1)
        function = self.function(s["kernel"])
        if shared:
            gpu.call("cuFuncSetAttribute", function, 8, shared)
        words = (function, s["grid"], 1, 1, x, y, 1, shared, gpu.stream, pointers, None)

        def action(_kept: Any = packed) -> None:  # the pointers are to these
            gpu.call("cuLaunchKernel", *words)

        return action

    def function(self, name: str) -> ctypes.c_void_p:
        if name not in self.functions:
            arguments = self.module, name.encode()
            self.functions[name] = self.gpu.made("cuModuleGetFunction", *arguments)
        return self.functions[name]

    def loop(self, loop: dict[str, Any], at: list[int]) -> list[Callable[[], None]]:
        """By values: each step's results are copied to where they are kept and to the next state."""
        body, gpu = loop["body"], self.gpu
        reads, writes = ([at[b] for b in loop[k]] for k in ("reads", "writes"))
        sizes = [self.size(o) for o in body["outputs"]]
        fresh = [self.block(size) for size in sizes]
        now, then = ([self.block(sizes[o]) for _, o, _ in loop["carried"]] for _ in range(2))
        temporaries: list[int] | None = None
        actions: list[Callable[[], None]] = []

        def copy(to: int, source: int, size: int) -> None:
            actions.append(lambda: gpu.copy(to, source, size))

        for k, (first, o, _) in enumerate(loop["carried"]):
            copy(now[k], reads[first], sizes[o])
        for step in range(loop["steps"]):
            t = loop["steps"] - 1 - step if loop["reverse"] else step
            inputs = []
            for (kind, k), like in zip(loop["inputs"], body["inputs"], strict=True):
                offset = t * self.size(like) if kind == "sliced" else 0
                inputs.append(now[k] if kind == "carried" else reads[k] + offset)
            outputs = self.aliased(body, inputs, fresh)
            if temporaries is None:
                temporaries = self.places(body, inputs, outputs)
            places = [
                temporaries[b]
                if kind == "temporary"
                else (inputs if kind == "input" else outputs)[k]
                for b, (kind, k, _, _) in enumerate(body["buffers"])
            ]
            for _, _, _, one in self.prepared(body, places):
                actions += one
            for o, result in loop["kept"]:
                copy(writes[result] + t * sizes[o], outputs[o], sizes[o])
            for k, (_, o, _) in enumerate(loop["carried"]):
                copy(then[k], outputs[o], sizes[o])
            now, then = then, now
        for k, (_, o, result) in enumerate(loop["carried"]):
            if result >= 0:
                copy(writes[result], now[k], sizes[o])
        return actions

    def enqueue(self) -> None:
        for _, _, _, actions in self.steps:
            for action in actions:
                action()

    def graph(self) -> Callable[[], None]:
        """What launches all of it as one graph."""
        gpu = self.gpu
        gpu.call("cuStreamBeginCapture_v2", gpu.stream, 1)
        try:
            self.enqueue()
        finally:
            source = ctypes.c_void_p()
            gpu.call("cuStreamEndCapture", gpu.stream, ctypes.byref(source))
        made = gpu.made("cuGraphInstantiateWithFlags", source, ctypes.c_uint64(0))
        return lambda: gpu.call("cuGraphLaunch", made, gpu.stream)

    def times(self, repeats: int) -> dict[str, Any]:
        gpu, launch = self.gpu, self.graph()

        def took(count: int) -> float:
            begin = gpu.event()
            for _ in range(count):
                launch()
            return gpu.between([begin, gpu.event()])[0] / count

        took(1)
        first = took(1)
        inner = max(1, min(100, int(LONG / max(first, 1e-3))))
        ms = statistics.median(took(inner) for _ in range(repeats))
        rounds = []
        ahead = int(0.05 * sum(len(s[3]) for s in self.steps) / max(first, 1e-3)) + 1
        for _ in range(repeats):
            for _ in range(min(ahead, 1000)):  # the GPU has to do while the host enqueues
                launch()
            events = [gpu.event()]
            for _, _, _, actions in self.steps:
                for action in actions:
                    action()
                events.append(gpu.event())
            rounds.append(gpu.between(events))
        each = [statistics.median(r) for r in zip(*rounds, strict=True)]
        return {
            "ms": ms,
            "gigabytes_per_second": sum(s[1] for s in self.steps) / max(ms, 1e-9) / 1e6,
            "gigaflops": sum(s[2] for s in self.steps) / max(ms, 1e-9) / 1e6,
            "steps": [
                {"what": what, "ms": t, "bytes": size, "flops": flops}
                for (what, size, flops, _), t in zip(self.steps, each, strict=True)
            ],
        }

    def fill(self, values: dict[str, np.ndarray]) -> None:
        """The case's inputs, or floats from a fixed seed and zeros."""
        rng = np.random.default_rng(1)
        for k, (place, like) in enumerate(zip(self.inputs, self.plan["inputs"], strict=True)):
            if f"in{k}" in values:
                self.gpu.upload(place, np.ascontiguousarray(values[f"in{k}"]))
            elif like["dtype"] == "float32":
                part = rng.uniform(-0.3, 0.3, 1 << 20).astype(np.float32).view(np.uint8)
                size = self.size(like)
                for at in range(0, size, part.nbytes):
                    self.gpu.upload(place + at, part[: min(part.nbytes, size - at)])
            else:
                self.gpu.clear(place, self.size(like))

    def far(self, values: dict[str, np.ndarray]) -> tuple[float, bool]:
        """The largest difference beside the largest result, and whether all that are known are near
        enough."""
        worst, good = 0.0, True
        for k, (place, like) in enumerate(zip(self.outputs, self.plan["outputs"], strict=True)):
            if f"out{k}" not in values:
                continue
            raw = self.gpu.download(np.empty(self.size(like), np.uint8), place)
            if like["dtype"] == "bfloat16":
                got = (raw.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
            else:
                got = raw.view(like["dtype"])
            want = values[f"out{k}"].reshape(-1)
            if self.plan["tolerance"][k] == 0:
                good = good and bool(np.array_equal(got, want))
                continue
            got, want = got.astype(np.float64), want.astype(np.float64)
            finite = np.isfinite(want)
            same = np.array_equal(got[~finite], want[~finite], equal_nan=True)
            scale = max(1.0, float(np.abs(want[finite]).max(initial=0.0)))
            error = float(np.abs(got[finite] - want[finite]).max(initial=0.0)) / scale
            worst = max(worst, error)
            good = good and same and error <= 2 * self.plan["tolerance"][k]
        return worst, good


def case(gpu: Gpu, nvrtc: Nvrtc, products: Products, file: Path, repeats: int) -> dict[str, Any]:
    plan = json.loads(file.read_text())
    if gpu.capability < 80:
        raise RuntimeError(f"the plans are for sm_90, and not for sm_{gpu.capability}")
    beside = file.with_suffix(".npz")
    values = dict(np.load(beside)) if beside.exists() else {}
    replay = Replay(gpu, nvrtc, products, plan)
    try:
        replay.fill(values)
        replay.enqueue()
        gpu.wait()
        row: dict[str, Any] = {"compile_seconds": replay.compile_seconds}
        flag = int(gpu.download(np.zeros(1, np.int32), replay.status)[0])
        if flag:
            row["error"] = "an index is out of range"
        elif values:
            row["difference"], row["right"] = replay.far(values)
        if repeats:
            row |= replay.times(repeats)
    finally:
        replay.close()
    return row


def line(name: str, row: dict[str, Any]) -> Iterator[str]:
    if "error" in row:
        yield f"{name:36} {row['error']}"
        return
    right = (
        f"{row['difference']:.1e} {'ok' if row['right'] else 'WRONG'}" if "right" in row else "-"
    )
    text = f"{name:36} {right:14} compiled in {row['compile_seconds']:.2f} s"
    if "ms" in row:
        text += f" {row['ms']:10.4f} ms {row['gigabytes_per_second']:8.1f} GB/s"
        text += f" {row['gigaflops']:9.1f} GFLOP/s"
    yield text
    for step in sorted(row.get("steps", []), key=lambda s: -s["ms"])[:3]:
        yield f"    {step['ms']:10.4f} ms  {step['what']}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("plans", type=Path)
    parser.add_argument("--json", type=Path, help="rewritten after each case")
    parser.add_argument("--kernels", type=Path, help="a folder for compiled kernels")
    parser.add_argument("--repeats", type=int, default=5, help="how often times are taken; 0: not")
    parser.add_argument("--cases", nargs="*", default=[], help="parts of the files' names")
    options = parser.parse_args()
    files = sorted(options.plans.glob("*.json"), key=lambda f: f.stem)
    files = [f for f in files if not options.cases or any(p in f.name for p in options.cases)]
    if not files:
        print(f"no plans in {options.plans}: python bench/gpu_plans.py {options.plans}")
        return 2
    gpu, nvrtc = Gpu(), Nvrtc(options.kernels)
    products = Products(gpu)
    record: dict[str, Any] = {"gpu": gpu.name, "driver": gpu.driver, "nvrtc": nvrtc.version}
    record["cases"] = {}
    print(
        f"{gpu.name} (sm_{gpu.capability}), driver {gpu.driver}, NVRTC {nvrtc.version}", flush=True
    )
    bad = 0
    for file in files:
        try:
            row = case(gpu, nvrtc, products, file, options.repeats)
        except Exception as error:  # the next case may say more
            row = {"error": f"{type(error).__name__}: {error}"}
        bad += "error" in row or not row.get("right", True)
        for text in line(file.stem, row):
            print(text, flush=True)
        record["cases"][file.stem] = row
        if options.json:
            beside = options.json.with_suffix(".part")
            beside.write_text(json.dumps(record, indent=1) + "\n")
            beside.replace(options.json)
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
