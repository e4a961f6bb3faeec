"""Runs one case of a table (layer_cases.py, cases/*.txt) in MindSpore or in gradcell: the same text, the same
numbers, so that what comes out can be compared.

A case is (expression, inputs). The expression makes a Cell, in the names nn, ops, ms, np, Tensor and
those of SPACES. An input is written 'kind: sizes', or a tuple of such for a tuple of tensors; the
kinds are in KINDS, none is 'normal'. Parameters get numbers of their own. What comes out: every
output, and the gradients of their sum, weighted, by inputs and parameters. Outputs may be arrays,
numbers and text too.
"""

from __future__ import annotations

import json
import math
import re
import zlib
from collections.abc import Callable
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

KINDS: dict[str, Callable[[np.random.Generator, list[int]], np.ndarray]] = {
    "normal": lambda rng, shape: rng.standard_normal(shape).astype(np.float32),
    "complex": lambda rng, shape: (
        rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
    ).astype(np.complex64),
    "unit": lambda rng, shape: rng.uniform(0.05, 0.95, shape).astype(np.float32),
    "shares": lambda rng, shape: rng.dirichlet(np.ones(shape[-1]), shape[:-1]).astype(np.float32),
    "log shares": lambda rng, shape: np.log(
        rng.dirichlet(np.ones(shape[-1]), shape[:-1]) + 1e-3
    ).astype(np.float32),
    "sign": lambda rng, shape: rng.choice([-1.0, 1.0], shape).astype(np.float32),
    "bit": lambda rng, shape: rng.integers(0, 2, shape).astype(np.float32),
    "image": lambda rng, shape: (
        np.add.outer(np.arange(shape[0]) * 9, np.arange(math.prod(shape[1:])) * 3) % 200
        + rng.integers(0, 56, (shape[0], math.prod(shape[1:])))
    )
    .astype(np.uint8)
    .reshape(shape),
    "mask": lambda rng, shape: (rng.integers(0, 2, shape) * (np.arange(shape[-1]) > 0)) == 1,
}


def array(text: str, rng: np.random.Generator) -> np.ndarray:
    """The numbers of an input; 'int n' are int32 below n, 'classes n' ones above 0, 'lengths n' from
    1 to n, 'targets n' classes with -1 behind them, 'int32 ...' those that follow."""
    kind, _, sizes = text.rpartition(":")
    shape = [int(n) for n in sizes.split()]
    if kind.startswith("int32 "):
        return np.array([int(n) for n in kind[6:].split()], np.int32).reshape(shape)
    if kind.startswith("classes "):
        return rng.integers(1, int(kind[8:]), shape).astype(np.int32)
    if kind.startswith("targets "):
        found = np.argsort(rng.random(shape), axis=-1) % int(kind[8:])
        return np.where(np.arange(shape[-1]) < shape[-1] - 2, found, -1).astype(np.int32)
    if kind.startswith("int "):
        return rng.integers(0, int(kind[4:]), shape).astype(np.int32)
    if kind.startswith("lengths "):
        return rng.integers(1, int(kind[8:]) + 1, shape).astype(np.int32)
    return KINDS[kind or "normal"](rng, shape)


def tensors(ms: Any, inputs: Any, rng: np.random.Generator) -> list[Any]:
    """The inputs of a case as tensors and tuples of tensors."""
    made: list[Any] = []
    for item in inputs:
        if item is None:
            made.append(None)
        elif isinstance(item, tuple):
            made.append(tuple(tensors(ms, item, rng)))
        else:
            made.append(ms.Tensor(array(item, rng)))
    return made


def set_parameters(ms: Any, cell: Any, rng: np.random.Generator) -> None:
    """Numbers for every parameter, in the cell's order; positive ones for variances. What is fixed
    stays as it is.
    """
    for p in cell.get_parameters():
        if not (p.requires_grad or "mean" in p.name or "variance" in p.name):
            continue
        values = rng.uniform(-0.5, 0.5, p.shape).astype(np.float32)
        p.set_data(ms.Tensor(np.abs(values) + 0.5 if "variance" in p.name else values))


#: Names of an expression besides nn, ops, ms, np and Tensor.
SPACES = {
    "train": "train", "amp": "amp", "dataset": "dataset", "vision": "dataset.vision",
    "transforms": "dataset.transforms", "text": "dataset.text", "communication": "communication",
}  # fmt: skip


def flat(result: Any) -> list[Any]:
    """The tensors, numbers and texts of nested tuples and lists, in order."""
    if isinstance(result, (tuple, list)):
        return [x for item in result for x in flat(item)]
    return [] if result is None else [result]


def values(y: Any) -> np.ndarray:
    """An output as an array; text as its bytes."""
    if isinstance(y, str):
        return np.frombuffer(y.encode(), np.uint8)
    return np.asarray(y.asnumpy() if hasattr(y, "asnumpy") else y)


def is_complex(ms: Any, x: Any) -> bool:
    return x.dtype in (ms.complex64, ms.complex128)


def is_float(ms: Any, x: Any) -> bool:
    floats = (ms.float16, ms.float32, ms.float64)
    return isinstance(x, ms.Tensor) and (x.dtype in floats or is_complex(ms, x))


def weighted(ms: Any, cell: Any, outputs: list[Any], seed: int) -> Callable[..., Any]:
    """The scalar function of the inputs that gradients are taken of."""
    rng = np.random.default_rng(seed)
    weights = [ms.Tensor(rng.uniform(0.5, 1.5, tuple(y.shape)).astype(np.float32)) for y in outputs]

    def function(*inputs: Any) -> Any:
        total: Any = 0.0
        for y, w in zip(flat(cell(*inputs)), weights, strict=True):
            if is_float(ms, y) and is_complex(ms, y):
                total = total + (ms.ops.real(y) * w).sum() - (ms.ops.imag(y) * w * w).sum()
            elif is_float(ms, y):
                total = total + (y * w).sum()
        return total

    return function


class Row(NamedTuple):
    """A line of a table in cases/. stands_in: what MindSpore is asked instead where it refuses."""

    expression: str
    inputs: list[str]
    stands_in: str
    only_values: bool

    @property
    def name(self) -> str:
        return f"{self.expression} of {self.inputs}"


def rows(path: Path) -> list[Row]:
    """A table: below a line '# expressions | inputs' expressions of x, y and z, below '# callables |
    inputs' what is called with the inputs. 'values EXPRESSION' has its values compared alone, since
    MindSpore's first gradients are wrong; 'EXPRESSION := OTHER' asks MindSpore for OTHER where it
    has no kernel for EXPRESSION."""
    found: list[Row] = []
    head, inputs = "", []
    for line in path.read_text().splitlines():
        if line.startswith("# "):
            kind, *inputs = [part.strip() for part in line[2:].split("|")]
            names = " ".join(["", ", ".join("xyz"[: len(inputs)])]).rstrip()
            head = f"lambda{names}: " if kind == "expressions" else ""
        elif line:
            valued = line.startswith("values ")
            text, _, other = line.removeprefix("values ").partition(" := ")
            found.append(Row(head + text, inputs, head + other if other else "", valued))
    return found


def made(ms: Any, expression: str) -> Any:
    """What an expression says: a cell, or a function."""
    names = {"nn": ms.nn, "ops": ms.ops, "ms": ms, "np": np, "Tensor": ms.Tensor}
    asked = re.findall(r"\b[a-z]+\b", expression)
    names |= {name: attrgetter(place)(ms) for name, place in SPACES.items() if name in asked}
    names["__name__"] = "agreement"  # functions of an expression belong to a module
    return eval(expression, names)


def run(
    ms: Any, expression: str, inputs: Any, gradients: bool = True, seed_text: str = ""
) -> dict[str, np.ndarray]:
    """What a case gives: 'parameter name' its sizes, 'output i', 'by input i', 'by name'. seed_text:
    the case whose numbers it gets, if not its own."""
    seed = zlib.crc32((seed_text or f"{expression}{inputs}").encode())
    rng = np.random.default_rng(seed)
    cell = made(ms, expression)
    parameters: list[Any] = []
    if isinstance(cell, ms.nn.Cell):
        set_parameters(ms, cell, rng)
        parameters = list(cell.trainable_params())
    given = tensors(ms, inputs, rng)
    outputs = flat(cell(*given))
    found = {f"output {i}": values(y) for i, y in enumerate(outputs)}
    if isinstance(cell, ms.nn.Cell):
        for p in cell.get_parameters():
            found[f"parameter {p.name}"] = np.array(p.shape, np.int64)
            if not p.requires_grad:
                found[f"after {p.name}"] = np.array(p.asnumpy())  # the gradients run it again
    where = [i for i, x in enumerate(given) if is_float(ms, x)]
    if gradients and (where or parameters) and any(is_float(ms, y) for y in outputs):
        function = weighted(ms, cell, outputs, seed)
        slopes = ms.grad(function, tuple(where) or None, parameters or None)(*given)
        by_input, by_parameter = slopes, ()
        if parameters:
            by_input, by_parameter = slopes if where else ((), slopes)
        for i, g in zip(where, flat(by_input), strict=True):
            found[f"by input {i}"] = g.asnumpy()
        for p, g in zip(parameters, by_parameter, strict=True):
            found[f"by {p.name}"] = g.asnumpy()
    return found


def given(ms: Any, row: Row) -> tuple[list[np.ndarray], dict[str, np.ndarray]]:
    """The inputs and parameters that `run` gives a row, floating ones in float64."""
    rng = np.random.default_rng(zlib.crc32(f"{row.expression}{row.inputs}".encode()))
    cell, parameters = made(ms, row.expression), {}
    if isinstance(cell, ms.nn.Cell):
        set_parameters(ms, cell, rng)
        parameters = {p.name: p.asnumpy().astype(np.float64) for p in cell.get_parameters()}
    inputs = [array(item, rng) for item in row.inputs]
    return [x.astype(np.float64) if x.dtype.kind == "f" else x for x in inputs], parameters


def along(
    row: Row, outputs: list[np.ndarray], reference: Callable[..., Any], inputs: list[np.ndarray],
    at: int, direction: np.ndarray,
) -> float:  # fmt: skip
    """The derivative that `run` takes by an input, along a direction, of a function on arrays: a
    central difference."""
    rng = np.random.default_rng(zlib.crc32(f"{row.expression}{row.inputs}".encode()))
    weights = [rng.uniform(0.5, 1.5, y.shape).astype(np.float32) for y in outputs]

    def total(x: np.ndarray) -> float:
        wanted = reference(*inputs[:at], x, *inputs[at + 1 :])
        wanted = wanted if isinstance(wanted, list) else [wanted]
        floats = zip(wanted, weights, outputs, strict=True)
        return float(sum((y * w).sum() for y, w, out in floats if out.dtype.kind == "f"))

    step = 1e-6 * direction
    return (total(inputs[at] + step) - total(inputs[at] - step)) / 2e-6


def run_optimizer(ms: Any, expression: str, steps: int = 4) -> dict[str, np.ndarray]:
    """The parameters 'w' and 'b' after each of some steps with random gradients, and the shapes of
    the optimiser's own parameters ('state name')."""
    rng = np.random.default_rng(zlib.crc32(expression.encode()))
    shapes = {"w": (3, 4), "b": (5,)}
    params = [
        ms.Parameter(ms.Tensor(rng.standard_normal(s).astype(np.float32)), name=name)
        for name, s in shapes.items()
    ]
    optimizer = eval(expression, {"nn": ms.nn, "params": params})
    found = {}
    for step in range(steps):
        gradients = [rng.standard_normal(s).astype(np.float32) for s in shapes.values()]
        optimizer(tuple(ms.Tensor(g) for g in gradients))
        for p in params:
            found[f"{p.name} after {step}"] = np.array(p.asnumpy())
    for p in optimizer.get_parameters():
        found[f"state {p.name}"] = np.array(p.shape, np.int64)
    return found


Results = dict[str, dict[str, np.ndarray]]


def save(path: Path, results: Results) -> None:
    """Writes what cases gave: the numbers of each dtype as one array, and where they belong."""
    numbers: dict[str, list[np.ndarray]] = {}
    index: dict[str, dict[str, list[Any]]] = {}
    for name, found in results.items():
        index[name] = {key: [str(x.dtype), list(x.shape)] for key, x in found.items()}
        for x in found.values():
            numbers.setdefault(str(x.dtype), []).append(x.ravel())
    arrays = {kind: np.concatenate(parts) for kind, parts in numbers.items()}
    text = np.frombuffer(json.dumps(index).encode(), np.uint8)
    np.savez_compressed(path, index=text, **arrays)  # type: ignore[arg-type]


def load(path: Path) -> Results:
    """Reads what `save` wrote."""
    stored = np.load(path)
    at = dict.fromkeys(stored.files, 0)
    arrays = {kind: stored[kind] for kind in stored.files}
    results: Results = {}
    for name, found in json.loads(arrays["index"].tobytes()).items():
        results[name] = {}
        for key, (kind, shape) in found.items():
            end = at[kind] + math.prod(shape)
            results[name][key] = arrays[kind][at[kind] : end].reshape(shape)
            at[kind] = end
    return results
