"""The cases of the functions with an axis of more elements than int32 counts: integers in their graphs that
count elements, or say where one is, and have too few bits.

The inputs are parts of a file without blocks, which take addresses but no memory, and graphs are recorded
alone. A number's bound follows from shapes: an index of an axis is below its size, a sum of n truths
at most n. What a user's integers hold is not known, so what is computed of them has no bound.

    python far_places.py [--case softmax]    each case, axis and integer that its dtype cannot hold
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import math
import os
import pickle
import resource
import signal
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import IO, Any

import agreement
import edges
import numpy as np
from function_cases import CASES

import gradcell as gc
from gradcell import Tensor
from gradcell.show.inspect import recorded_nodes

FAR = 2**31 + 5
SECONDS = 3
#: The memory that a trial may have, beside its inputs.
BYTES = 4 << 30
Node = dict[str, Any]
Bound = float | None


def _inputs(which: int | None = None) -> Callable[[Node, list[Bound], list[Node]], Bound]:
    """The largest bound of the inputs, or that of one."""

    def of(node: Node, bounds: list[Bound], inputs: list[Node]) -> Bound:
        taken = bounds if which is None else [bounds[which]]
        return None if None in taken or not taken else max(taken)  # type: ignore[type-var]

    return of


def _of_axis(node: Node, bounds: list[Bound], inputs: list[Node]) -> Bound:
    shape = inputs[0]["shape"] if inputs else node["shape"]
    axis = node["attributes"].get("axis", -1)
    return shape[axis] - 1 if shape else 0


def _all_of(node: Node, bounds: list[Bound], inputs: list[Node]) -> Bound:
    """A sum's: of all numbers that it adds up."""
    shape, at = inputs[0]["shape"], node["attributes"]
    axes = at["axes"] if "axes" in at else [at["axis"]]
    return None if bounds[0] is None else bounds[0] * math.prod(shape[a] for a in axes)


def _added(node: Node, bounds: list[Bound], inputs: list[Node]) -> Bound:
    return None if None in bounds else sum(bounds)  # type: ignore[arg-type]


def _multiplied(node: Node, bounds: list[Bound], inputs: list[Node]) -> Bound:
    return None if None in bounds else math.prod(bounds)  # type: ignore[arg-type]


#: The bound of |result| by op; of others nothing is known.
RULES: dict[str, Callable[[Node, list[Bound], list[Node]], Bound]] = {
    **dict.fromkeys("Iota ArgMax ArgMin Order FirstInOrder RunningBest".split(), _of_axis),
    **dict.fromkeys("ReduceSum CumSum".split(), _all_of),
    **dict.fromkeys("Add Sub".split(), _added),
    **dict.fromkeys("Mul".split(), _multiplied),
    **dict.fromkeys("Gather TakeAlong Select".split(), _inputs()),
    **dict.fromkeys(
        "Cast Reshape Slice Transpose Broadcast BroadcastTo Pad Concat StopGradient Neg Abs Maximum"
        " Minimum ReduceMax ReduceMin".split(),
        _inputs(),
    ),
    "Gather": _inputs(0),
    "TakeAlong": _inputs(0),
    "Select": lambda node, bounds, inputs: _inputs()(node, bounds[1:], inputs[1:]),
    "Const": lambda node, bounds, inputs: abs(node["attributes"]["value"]),
}


def too_small(nodes: Iterable[Node]) -> list[str]:
    """The nodes of integers whose bound their dtype does not hold, as text."""
    known: dict[int, Node] = {}
    bounds: dict[int, Bound] = {}
    found = []
    for node in nodes:
        inputs = [known[i] for i in node["inputs"]]
        name = node["dtype"].name
        bound: Bound = None
        if node["op"] in RULES:
            bound = RULES[node["op"]](node, [bounds[n["id"]] for n in inputs], inputs)
        if name == "bool":
            bound = 1
        if bound is not None and bound != bound:
            bound = None
        if bound is not None and "int" in name and bound > np.iinfo(name).max:
            found.append(f"{node['op']} {name} {node['shape']}: {bound:.0f} {node['location']}")
            bound = None  # said once
        known[node["id"]], bounds[node["id"]] = node, bound
    return found


# Trials -------------------------------------------------------------------------------------------


def sizes(name: str) -> list[int]:
    """The sizes of a case's inputs, each to be made far in turn."""
    shapes = [s for i in CASES[name][1] if isinstance(i, str) for s in _shape(i)]
    return sorted(set(shapes))


@functools.cache
def _given(text: str) -> np.ndarray:
    return agreement.array(text, np.random.default_rng(0))


def _shape(text: str) -> tuple[int, ...]:
    return tuple(_given(text).shape)


def far(a: np.ndarray, size: int, file: IO[bytes]) -> np.ndarray:
    """Zeros with FAR for a size; an array that has none of it as it is."""
    if size not in a.shape:
        return a
    at = a.shape.index(size)
    dtype = np.dtype(np.float32 if a.dtype.kind == "f" else a.dtype)
    shape = tuple(FAR if i == at else n for i, n in enumerate(a.shape))
    file.truncate(max(os.fstat(file.fileno()).st_size, math.prod(shape) * dtype.itemsize))
    return np.asarray(np.memmap(file, dtype, "r+", shape=shape))


def graphs(name: str, size: int) -> Iterator[list[Node]]:
    """The graphs of a case and of its gradient with an axis that is far."""
    expression, texts = CASES[name]
    cell = agreement.made(gc, expression)
    file = tempfile.TemporaryFile()
    given = tuple(Tensor.from_numpy(far(_given(t), size, file)) for t in texts)
    yield recorded_nodes(cell, given)[0]
    real = [i for i, x in enumerate(given) if x.dtype == gc.float32]
    if not real:
        return

    def total(*x: Tensor) -> Tensor:
        outputs = [y for y in agreement.flat(cell(*x)) if edges.is_real(y)]
        return sum((y.astype(gc.float32).sum() for y in outputs), Tensor(0.0))

    yield recorded_nodes(gc.grad(total, tuple(real)), given)[0]


def trial(name: str, size: int) -> tuple[str, list[str]]:
    """(its kind, what it found), in a process of its own: 'recorded', 'refused' or 'died'."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.close(read)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(SECONDS)
        resource.setrlimit(resource.RLIMIT_DATA, (BYTES, BYTES))
        kind, found = "recorded", list[str]()
        with contextlib.suppress(BaseException), os.fdopen(write, "wb") as out:
            try:
                for nodes in graphs(name, size):
                    found += too_small(nodes)
            except Exception as error:
                kind = "refused" if not found else kind
                found = found or [f"{type(error).__name__}: {str(error)[:200]}"]
            pickle.dump((kind, found), out)
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as given:
        text = given.read()
    os.waitpid(child, 0)
    return pickle.loads(text) if text else ("died", [])


def trials(names: Iterable[str]) -> Iterator[tuple[str, int]]:
    for name in names:
        if all(isinstance(i, str) for i in CASES[name][1]):
            yield from ((name, size) for size in sizes(name))


def counted(
    chosen: Iterable[tuple[str, int]], show: bool = False
) -> tuple[dict[str, int], list[str]]:
    """(how many trials ended in each way, what is wrong)."""
    counts: dict[str, int] = {}
    wrong = []
    for name, size in chosen:
        kind, found = trial(name, size)
        counts[kind] = counts.get(kind, 0) + 1
        if show and sum(counts.values()) % 100 == 0:
            print(counts, flush=True)
        text = "\n  ".join([f"{name} ({size}): {kind}", *found])
        if kind == "recorded" and found:
            wrong.append(text)
        if show and found and kind == "recorded":
            print(text, flush=True)
    return counts, wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--case", default="")
    case = parser.parse_args().case
    warnings.simplefilter("ignore")
    counts, wrong = counted(trials(n for n in CASES if case in n), show=True)
    print(counts, len(wrong))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
