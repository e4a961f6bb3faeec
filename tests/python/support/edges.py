"""The cases of the tables at edges: sizes 0 and 1, no dimensions, equal, huge, tiny, infinite and missing
numbers, and one array in two places; under transforms, in processes of their own.

A trial is (case, edge, transform). `outcomes` gives for each its kind ('as it should', 'skipped', 'refused',
'wrong', 'foreign' words of Python's, 'died') and the text. A process that dies is one trial's outcome; those
behind it go on in another process.

    python edges.py --edge zeros --transform grad --case softmax
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import pickle
import re
import select
import signal
import traceback
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import agreement
import check_grads
import numpy as np
from function_cases import CASES, OTHER_DERIVATIVE, RANDOM

import gradcell as gc
from gradcell import Tensor, ops

Arrays = list[Any]
Trial = tuple[str, str, str]
#: The longest that one trial may take.
SECONDS = 20


class Skip(Exception):
    """The edge or the transform does not concern the case."""


# Edges ------------------------------------------------------------------------------------------


def sized(change: Callable[[tuple[int, ...]], tuple[int, ...]]) -> Callable[[Arrays], Arrays]:
    """The arrays in other sizes: their first elements, or zeros."""

    def of(arrays: Arrays) -> Arrays:
        def one(a: np.ndarray) -> np.ndarray:
            to = tuple(change(a.shape))
            n = int(np.prod(to))
            return np.resize(a, to) if n else np.zeros(to, a.dtype)

        return [one(a) for a in arrays]

    return of


def named_size(which: int, n: int) -> Callable[[Arrays], Arrays]:
    """The first or last size of the first array is n, wherever it occurs."""

    def of(arrays: Arrays) -> Arrays:
        if not arrays or not arrays[0].ndim:
            raise Skip
        old = arrays[0].shape[which]
        return sized(lambda s: tuple(n if k == old else k for k in s))(arrays)

    return of


def numbers(
    change: Callable[[np.ndarray], Any], complex_too: bool = True
) -> Callable[[Arrays], Arrays]:
    """Other numbers in the places of floating ones."""

    def of(arrays: Arrays) -> Arrays:
        kinds = "fc" if complex_too else "f"
        if not any(a.dtype.kind in kinds and a.size for a in arrays):
            raise Skip
        return [
            np.asarray(change(a)).astype(a.dtype).reshape(a.shape) if a.dtype.kind in kinds else a
            for a in arrays
        ]

    return of


def with_first(value: float, last: float | None = None) -> Callable[[np.ndarray], np.ndarray]:
    def of(a: np.ndarray) -> np.ndarray:
        a = a.copy().reshape(-1)
        a[0] = value
        if last is not None:
            a[-1] = last
        return a

    return of


def twice_the_same(arrays: Arrays) -> Arrays:
    """One array in two places."""
    like = [a for a in arrays if a.shape == arrays[0].shape and a.dtype == arrays[0].dtype]
    if len(like) < 2:
        raise Skip
    return [arrays[0] if any(a is b for b in like) else a for a in arrays]


EDGES: dict[str, Callable[[Arrays], Arrays]] = {
    "first size 0": named_size(0, 0),
    "last size 0": named_size(-1, 0),
    "all sizes 0": sized(lambda s: (0,) * len(s)),
    "first size 1": named_size(0, 1),
    "last size 1": named_size(-1, 1),
    "all sizes 1": sized(lambda s: (1,) * len(s)),
    "no dimensions": sized(lambda s: ()),
    "first without dimensions": lambda a: sized(lambda s: ())(a[:1]) + a[1:],
    "others without dimensions": lambda a: a[:1] + sized(lambda s: ())(a[1:]) if len(a) > 1 else skip(),
    "one dimension": sized(lambda s: s[-1:]),
    "one dimension of 0": sized(lambda s: (0,)),
    "one dimension of 1": sized(lambda s: (1,)),
    "two dimensions of 0": sized(lambda s: (0, 0)),
    "two dimensions of 1": sized(lambda s: (1, 1)),
    "sizes 0 and 1": sized(lambda s: (0, 1)),
    "sizes 1 and 0": sized(lambda s: (1, 0)),
    "zeros": numbers(np.zeros_like),
    "ones": numbers(np.ones_like),
    "equal": numbers(lambda a: np.full_like(a, a.flat[0])),
    "whole": numbers(np.round),
    "huge": numbers(lambda a: a * 1e300),
    "tiny": numbers(lambda a: a * 1e-300),
    "one NaN": numbers(with_first(np.nan)),
    "infinities": numbers(with_first(np.inf, -np.inf)),
    "all infinite": numbers(lambda a: np.full_like(a, np.inf)),
    "twice the same": twice_the_same,
}  # fmt: skip


#: Matrices of alike elements are singular, and have no derivative there.
ALIKE = ("zeros", "ones", "equal", "whole")
MATRICES = re.compile(
    r"inv|det|qr|svd|eig|lu_|cholesky|solve|lstsq|rank|svd|Determinant|matrix_power|orth|null"
)


def skip() -> Any:
    raise Skip


# A case at an edge --------------------------------------------------------------------------------


def wide(a: np.ndarray) -> np.ndarray:
    return a.astype({"f": np.float64, "c": np.complex128}.get(a.dtype.kind, a.dtype))


class Case:
    """F(x) of one case at an edge: x are its floating inputs."""

    def __init__(self, name: str, edge: str) -> None:
        expression, inputs = CASES[name]
        if not inputs or any(not isinstance(i, str) for i in inputs) or ".tolist()[" in name:
            raise Skip
        self.name, self.edge = name, edge
        seed = zlib.crc32(name.encode())
        rng = np.random.default_rng(seed)
        gc.set_seed(1)
        self.cell = agreement.made(gc, expression)
        self.kept = []
        if isinstance(self.cell, gc.nn.Cell):
            agreement.set_parameters(gc, self.cell, rng)
            self.cell.to_float(gc.float64)
            self.kept = [(p, p.value()) for p in self.cell.get_parameters()]
        arrays = EDGES[edge]([wide(agreement.array(i, rng)) for i in inputs])
        self.arrays = arrays
        self.places = [i for i, x in enumerate(arrays) if x.dtype == np.float64]
        self.x = tuple(self.given[i] for i in self.places)
        self.rng = rng

    @property
    def given(self) -> list[Tensor]:
        """New tensors of the inputs: one for two places, if they have one array."""
        made: dict[int, Tensor] = {}
        return [made.setdefault(id(a), Tensor(a)) for a in self.arrays]

    def call(self, *args: Any) -> Any:
        for p, value in self.kept:
            p.set_data(value)
        gc.set_seed(1)
        return self.cell(*args)

    def f(self, *x: Tensor) -> tuple[Tensor, ...]:
        args = list(self.given)
        for i, value in zip(self.places, x, strict=True):
            args[i] = value
        return tuple(y for y in agreement.flat(self.cell(*args)) if is_real(y))

    def ready(self) -> None:
        """Makes weights of the outputs and directions of the inputs."""
        if not self.x or any(word in self.name for word in OTHER_DERIVATIVE):
            raise Skip
        outputs = [y for y in agreement.flat(self.call(*self.given)) if is_real(y)]
        if not outputs:
            raise Skip
        finite = [np.isfinite(y.asnumpy()).all() for y in (*self.x, *outputs)]
        singular = self.edge in ALIKE and MATRICES.search(self.name)
        # (What overflows or vanishes in a derivative alone is for the tests of special points.)
        self.smooth = all(finite) and not singular and self.edge not in ("huge", "tiny")
        self.narrow = any(y.dtype == gc.float32 for y in outputs)
        self.w = [
            Tensor(self.rng.uniform(0.5, 1.5, tuple(y.shape))).astype(y.dtype) for y in outputs
        ]
        self.v, self.u = (
            tuple(Tensor(self.rng.standard_normal(tuple(x.shape))) for x in self.x)
            for _ in range(2)
        )
        for p, value in self.kept:
            p.set_data(value)

    def phi(self, *x: Tensor) -> Tensor:
        return inner(self.f(*x), self.w)

    def along(self, t: float) -> float:
        return float(self.phi(*[x + v * t for x, v in zip(self.x, self.v, strict=True)]).asnumpy())


def is_real(y: Any) -> bool:
    return isinstance(y, Tensor) and y.dtype in (gc.float64, gc.float32)


def arrays_of(out: Any) -> list[np.ndarray]:
    return [np.array(agreement.values(y)) for y in agreement.flat(out)]


def tuple_of(x: Any) -> tuple[Any, ...]:
    return tuple(x) if isinstance(x, (tuple, list)) else (x,)


def gradients(case: Case, *x: Tensor) -> tuple[Tensor, ...]:
    return tuple_of(gc.grad(case.phi, tuple(range(len(x))))(*x))


def inner(xs: Iterable[Any], vs: Iterable[Any]) -> Tensor:
    total = Tensor(0.0, gc.float64)
    for x, v in zip(xs, vs, strict=True):
        total = total + (x * v).sum()
    return total


# Transforms: each raises Wrong, or the refusal -------------------------------------------------------


class Wrong(Exception):
    """A number, shape or refusal that does not agree."""


def same(
    found: list[np.ndarray],
    wanted: list[np.ndarray],
    what: str,
    error: float,
    tell_apart: bool = True,
) -> None:
    """Raises Wrong unless shapes, dtypes and numbers agree. tell_apart: NaN from infinite ones, which is what
    sums become that overflow in another order."""
    if len(found) != len(wanted):
        raise Wrong(f"{what}: {len(found)} results for {len(wanted)}")
    for a, b in zip(found, wanted, strict=True):
        if a.shape != b.shape:
            raise Wrong(f"{what}: shape {a.shape} for {b.shape}")
        if a.dtype != b.dtype:
            raise Wrong(f"{what}: dtype {a.dtype} for {b.dtype}")
        if a.dtype.kind in "fc":
            near(a, b, what, error)
            # (Which of them products of infinite complex numbers are depends on the order.)
            told_apart = tell_apart and a.dtype.kind == "f"
            if told_apart and not np.array_equal(np.isnan(a), np.isnan(b)):
                raise Wrong(f"{what}: {short(a)} for {short(b)}")
        elif not np.array_equal(a, b):
            raise Wrong(f"{what}: {short(a)} for {short(b)}")


def near(
    a: np.ndarray, b: np.ndarray, what: str, error: float = 1e-9, least: float = 1e-290
) -> None:
    """Raises Wrong unless a and b agree; a number that is not finite agrees with any such one."""
    with np.errstate(all="ignore"):
        both = np.isfinite(a) & np.isfinite(b)
        scale = np.abs(b[both]).max(initial=max(least, 1e-290))
        bad = np.abs(a - b)[both] > error * scale + 1e-300
    if bad.any() or (np.isfinite(a) != np.isfinite(b)).any():
        raise Wrong(f"{what}: {short(a)} for {short(b)}")


def short(a: np.ndarray) -> str:
    return np.array2string(np.asarray(a), precision=6, threshold=8).replace("\n", " ")


def plain(case: Case) -> list[np.ndarray]:
    return arrays_of(case.call(*case.given))


def t_value(case: Case) -> None:
    first = plain(case)
    for y in first:
        y.sum() if y.dtype.kind in "fciub" else None


#: NumPy's functions that have other names than those of gradcell.numpy.
OTHER_NAMES = {"norm": np.linalg.norm, "multi_dot": np.linalg.multi_dot}
OTHER_NAMES["matrix_power"] = np.linalg.matrix_power


class _NumPy:
    """NumPy in the place of gradcell.numpy."""

    def __getattr__(self, name: str) -> Any:
        return OTHER_NAMES.get(name) or getattr(np, name)


class _Reference:
    """What an expression of gradcell.numpy sees as the package."""

    numpy = _NumPy()
    int32, float32, float16, bool_ = np.int32, np.float64, np.float64, np.bool_


def t_numpy(case: Case) -> None:
    """gradcell.numpy beside NumPy, where both give numbers."""
    expression = CASES[case.name][0]
    if not re.search(r"\bms\.numpy\.", expression) or re.search(r"\b(ops|nn|mint)\.", expression):
        raise Skip
    left_out = {  # sums overflow in the order of the terms, histograms are float32, zeros are padded with
        "huge": "matmul|dot|inner|convolve|correlate|power|histogram",
        "one NaN": "convolve|correlate",
        "infinities": "convolve|correlate",
        "all infinite": "convolve|correlate",
    }
    if re.search(left_out.get(case.edge, "nothing"), expression):
        raise Skip
    found = plain(case)
    names = {"ms": _Reference, "np": np, "Tensor": lambda v, *_: np.array(v)}
    try:
        with np.errstate(all="ignore"):
            given = eval(expression, names)(*[a.copy() for a in case.arrays])
            wanted = [np.asarray(y) for y in agreement.flat(given)]
    except Exception:
        raise Skip from None  # NumPy has no such function, or refuses
    if "cumprod" in expression and case.arrays[0].ndim == 0:
        raise Skip  # NumPy's has a dimension then
    one_kind = [
        [y.astype(complex if y.dtype.kind == "c" else float) for y in ys] for ys in (found, wanted)
    ]
    same(*one_kind, "numpy", 2e-5)


def t_jit(case: Case) -> None:
    if "Parameter(" in case.name:  # it is made once, and keeps what it became
        raise Skip

    def run(*args: Any) -> Any:
        gc.set_seed(1)
        return case.cell(*args)

    compiled = gc.jit(run)
    case.call(*case.given)
    for p, value in case.kept:
        p.set_data(value)
    try:
        wanted = plain(case)
    except Exception as error:
        try:
            for p, value in case.kept:
                p.set_data(value)
            found = arrays_of(compiled(*case.given))
        except Exception as other:
            if type(other) is not type(error):
                raise Wrong(f"jit: {other!r} for {error!r}") from None
            raise
        raise Wrong(f"jit: {found} for {error!r}") from None
    error = 1e-5 if narrow(wanted) else 1e-9
    for _ in range(2):
        for p, value in case.kept:
            p.set_data(value)
        same(arrays_of(compiled(*case.given)), wanted, "jit", error, case.edge != "huge")


def narrow(found: list[np.ndarray]) -> bool:
    return any(a.dtype in (np.float32, np.complex64, np.float16) for a in found)


def t_vmap(case: Case) -> None:
    if any(isinstance(y, str) for y in agreement.flat(case.call(*case.given))):
        raise Skip
    wanted = plain(case)
    if not wanted:
        raise Skip
    for p, value in case.kept:
        p.set_data(value)
    both = [ops.stack([x, x]) for x in case.given]
    found = arrays_of(gc.vmap(case.cell)(*both))
    error = 1e-5 if narrow(wanted) else 1e-9
    same(found, [np.stack([w, w]) for w in wanted], "vmap", error, case.edge != "huge")


def t_grad(case: Case) -> None:
    """The gradient in reverse, beside the derivative forward, which jit gives too."""
    case.ready()
    slopes = gradients(case, *case.x)
    for g, x in zip(slopes, case.x, strict=True):
        if g.shape != x.shape or g.dtype != x.dtype:
            raise Wrong(f"gradient: {g.shape} {g.dtype} for {x.shape} {x.dtype}")
    error = 1e-4 if case.narrow else 1e-8
    compiled = gc.jit(lambda *x: gradients(case, *x))(*case.x)
    same(arrays_of(compiled), arrays_of(slopes), "jit of grad", error)
    _, moved = gc.jvp(case.f, case.x, case.v)
    if not case.smooth:
        return
    forward = inner(tuple_of(moved), case.w).asnumpy()
    reverse = inner(slopes, case.v).asnumpy()
    scale = sum(parts(tuple_of(moved), case.w)) + sum(parts(slopes, case.v))
    ordinary = "size" in case.edge or "dimension" in case.edge
    known = None if case.narrow or not ordinary else check_grads.differences(case.along)
    if known and abs(reverse - known[0]) > 3e-6 * max(1.0, abs(known[0]), abs(known[1])):
        raise Wrong(f"reverse {reverse}, by differences {known[0]}")
    if (
        np.isfinite(reverse) != np.isfinite(forward)
        or abs(reverse - forward) > error * scale + 1e-13
    ):
        raise Wrong(f"reverse {reverse}, forward {forward}: {[short(g.asnumpy()) for g in slopes]}")


def parts(xs: Iterable[Any], vs: Iterable[Any]) -> Iterator[float]:
    """The sizes of what an inner product adds."""
    with np.errstate(all="ignore"):
        for x, v in zip(xs, vs, strict=True):
            a = np.abs(x.asnumpy() * v.asnumpy())
            yield float(a[np.isfinite(a)].sum())


def t_grad_of_grad(case: Case) -> None:
    """Second derivatives, in reverse of reverse beside forward of reverse."""
    case.ready()
    every = tuple(range(len(case.x)))

    def slope(*x: Tensor) -> Tensor:
        return inner(gradients(case, *x), case.v)

    once = gradients(case, *case.x)
    least = sum(parts(once, case.v)) + 1e-5
    twice = tuple_of(gc.grad(slope, every)(*case.x))
    for g, x in zip(twice, case.x, strict=True):
        if g.shape != x.shape:
            raise Wrong(f"second derivative: {g.shape} for {x.shape}")
    _, moved = gc.jvp(lambda *x: gradients(case, *x), case.x, case.v)
    if not case.smooth:
        return
    error = 1e-3 if case.narrow else 1e-7
    for k, (a, b) in enumerate(zip(twice, tuple_of(moved), strict=True)):
        near(a.asnumpy(), b.asnumpy(), f"second derivative by x{k}", error, least)


def t_vmap_of_grad(case: Case) -> None:
    case.ready()
    slopes = gradients(case, *case.x)
    both = [ops.stack([x, x]) for x in case.x]
    found = gc.vmap(lambda *x: gradients(case, *x))(*both)
    error = 1e-4 if case.narrow else 1e-8
    for k, (a, b) in enumerate(zip(tuple_of(found), slopes, strict=True)):
        near(a.asnumpy(), np.stack([b.asnumpy()] * 2), f"vmap of grad by x{k}", error)


TRANSFORMS: dict[str, Callable[[Case], None]] = {
    name[2:]: fn for name, fn in list(globals().items()) if name.startswith("t_")
}

#: What Python and NumPy say where gradcell should have.
FOREIGN = re.compile(
    "index out of range|unpack|not subscriptable|not iterable|has no attribute|unsupported operand|"
    "empty sequence|argument is empty|empty iterable|zero-size array|cannot reshape|could not be broadcast|"
    "unexpected keyword|positional argument|division by zero|modulo by zero|math domain|pop from empty|"
    "unhashable|referenced before|cannot access local|math range|cannot convert float|maximum recursion|"
    "bad operand|must be real number|only (integer|size-1|length-1)|cannot be interpreted|"
    "not supported between"
)
ALLOWED = (TypeError, ValueError, IndexError, NotImplementedError)


def trial(name: str, edge: str, transform: str) -> tuple[str, str]:
    """(kind, text): 'as it should', 'skipped', 'refused', 'wrong' or 'foreign'."""
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            case = Case(name, edge)
            TRANSFORMS[transform](case)
        except Skip:
            return "skipped", ""
        except Wrong as wrong:
            return "wrong", str(wrong)
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
            last = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{os.path.relpath(last.filename)}:{last.lineno}"
            ours = isinstance(error, ALLOWED) or last.filename.endswith("base/errors.py")
            good = ours and not FOREIGN.search(text)
            return "refused" if good else "foreign", f"{text} @ {where}"
    return "as it should", ""


# Processes ------------------------------------------------------------------------------------------


def child(given: list[Trial], to: int) -> None:
    """Runs trials and writes each outcome as it is known."""

    def tell(text: tuple[str, str] | None) -> None:
        data = pickle.dumps(text)
        os.write(to, len(data).to_bytes(4, "little") + data)

    for one in given:
        signal.alarm(SECONDS)
        tell(trial(*one))
    os._exit(0)


def outcomes(given: list[Trial], workers: int = 2) -> Iterator[tuple[Trial, str, str]]:
    """(trial, kind, text) of each; 'died' is a kind too."""
    parts = [given[k::workers] for k in range(workers)]
    running: dict[int, list[Any]] = {}  # by file: process, trials left, bytes read

    def start(rest: list[Trial]) -> None:
        if not rest:
            return
        mine, theirs = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if not pid:
            os.close(mine)
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1), os.dup2(null, 2)
            child(rest, theirs)
        os.close(theirs)
        running[mine] = [pid, rest, b""]

    for part in parts:
        start(part)
    while running:
        for file in select.select(list(running), [], [])[0]:
            pid, rest, data = running[file]
            more = os.read(file, 1 << 16)
            data += more
            at = 0
            while len(data) - at >= 4:
                n = int.from_bytes(data[at : at + 4], "little")
                if len(data) - at < 4 + n:
                    break
                kind, text = pickle.loads(data[at + 4 : at + 4 + n])
                yield rest[0], kind, text
                rest = rest[1:]
                at += 4 + n
            running[file][1:] = [rest, data[at:]]
            if not more:
                status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
                os.close(file)
                del running[file]
                if rest:
                    yield (
                        rest[0],
                        "died",
                        signal.Signals(-status).name if status < 0 else str(status),
                    )
                    start(rest[1:])


def trials(edge: str = "", transform: str = "", case: str = "", one_in: int = 1) -> list[Trial]:
    """Those of an edge and a transform, or of all, of cases whose names have a text in them; one in n."""
    names = [n for n in CASES if case in n and not any(word in n for word in RANDOM)]
    every = [
        (n, e, t)
        for n in names
        for e in ([edge] if edge else EDGES)
        for t in ([transform] if transform else TRANSFORMS)
    ]
    return [t for t in every if zlib.crc32(" ".join(t).encode()) % one_in == 0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("edge", "transform", "case"):
        parser.add_argument(f"--{name}", default="")
    parser.add_argument("--one-in", type=int, default=1)
    parser.add_argument("--refused", action="store_true", help="lists what is refused too")
    asked = vars(parser.parse_args())
    shown = ("wrong", "foreign", "died", *(["refused"] if asked.pop("refused") else []))
    counts: dict[str, int] = {}
    failures = []
    for one, kind, text in outcomes(trials(**asked)):
        counts[kind] = counts.get(kind, 0) + 1
        if kind in shown:
            failures.append([kind, *one, text[:300]])
    print(json.dumps({"counts": counts, "failures": failures}, indent=1))


if __name__ == "__main__":
    main()
