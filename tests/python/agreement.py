"""Runs one case of a table (layer_cases.py) in MindSpore or in gradcell: the same text, the same
numbers, so that what comes out can be compared.

A case is (expression, inputs). The expression makes a Cell, in the names nn, ops, ms, np, Tensor. An
input is written 'kind: sizes', or a tuple of such for a tuple of tensors; the kinds are in KINDS,
none is 'normal'. Parameters get numbers of their own. What comes out: every output, and the
gradients of their sum, weighted, by inputs and parameters.
"""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

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


def flat(result: Any) -> list[Any]:
    """The tensors of nested tuples and lists, in order."""
    if isinstance(result, (tuple, list)):
        return [x for item in result for x in flat(item)]
    return [] if result is None else [result]


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


def run(ms: Any, expression: str, inputs: Any, gradients: bool = True) -> dict[str, np.ndarray]:
    """What a case gives: 'parameter name' its sizes, 'output i', 'by input i', 'by name'."""
    seed = zlib.crc32(f"{expression}{inputs}".encode())
    rng = np.random.default_rng(seed)
    names = {"nn": ms.nn, "ops": ms.ops, "ms": ms, "np": np, "Tensor": ms.Tensor}
    cell = eval(expression, names)
    parameters: list[Any] = []
    if isinstance(cell, ms.nn.Cell):
        set_parameters(ms, cell, rng)
        parameters = list(cell.trainable_params())
    given = tensors(ms, inputs, rng)
    outputs = flat(cell(*given))
    found = {f"output {i}": y.asnumpy() for i, y in enumerate(outputs)}
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
