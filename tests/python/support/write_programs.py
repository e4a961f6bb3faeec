"""Random programs with views, copies and writes, as source text for tensors and for NumPy.

A seed gives a Program: `source` defines program(x, p) for gradcell (x a tensor, p a Parameter) and
`model` the same for NumPy, statement by statement. NumPy's arrays hold float64 Taylor coefficients
in front, [order, direction, ...], so that its own views carry values and derivatives along random
directions alike: what aliases there, and what a derivative is, is decided without gradcell. What
is a view and what a copy is MindSpore's choice, as docs/views.md has it: += makes a new tensor.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

ORDERS, DIRECTIONS = 3, 2
FRONT = (ORDERS, DIRECTIONS)
Array = np.ndarray
S = slice(None)


# Arithmetic on Taylor coefficients ------------------------------------------------------------------


def const(value: Any) -> Array:
    """A number or array without derivatives."""
    out = np.zeros(FRONT + np.shape(value))
    out[0] = value
    return out


def lifted(a: Array, rank: int) -> Array:
    """With leading dimensions of size 1, up to rank."""
    return a.reshape(FRONT + (1,) * (rank - a.ndim + 2) + a.shape[2:])


def both(a: Array, b: Array) -> tuple[Array, Array]:
    rank = max(a.ndim, b.ndim) - 2
    return lifted(a, rank), lifted(b, rank)


def add(a: Array, b: Array) -> Array:
    a, b = both(a, b)
    return np.ascontiguousarray(a + b)


def sub(a: Array, b: Array) -> Array:
    a, b = both(a, b)
    return np.ascontiguousarray(a - b)


def mul(a: Array, b: Array) -> Array:
    a, b = both(a, b)
    parts = [sum(a[i] * b[k - i] for i in range(k + 1)) for k in range(ORDERS)]
    return np.ascontiguousarray(np.stack(parts))


def composed(a: Array, f: Any, first: Any, second: Any) -> Array:
    """f(a), by the chain rule to second order."""
    return np.ascontiguousarray(
        np.stack([f(a[0]), first(a[0]) * a[1], first(a[0]) * a[2] + second(a[0]) * a[1] ** 2 / 2])
    )


def sin(a: Array) -> Array:
    return composed(a, np.sin, np.cos, lambda v: -np.sin(v))


def tanh(a: Array) -> Array:
    def slope(v: Any) -> Any:
        return 1 - np.tanh(v) ** 2

    return composed(a, np.tanh, slope, lambda v: -2 * np.tanh(v) * slope(v))


def total(a: Array) -> Array:
    return np.asarray(a.sum(tuple(range(2, a.ndim))))


def stopped(a: Array) -> Array:
    out = np.zeros(a.shape)
    out[0] = a[0]
    return out


def put(a: Array, key: Any, value: Array) -> None:
    """a[key] = value."""
    at = (S, S, *(key if isinstance(key, tuple) else (key,)))
    a[at] = lifted(value, a[at].ndim - 2)


def take(a: Array, key: Any) -> Array:
    out = a[(S, S, *(key if isinstance(key, tuple) else (key,)))]
    return out if np.shares_memory(out, a) else np.ascontiguousarray(out)


def spread(a: Array, shape: tuple[int, ...]) -> Array:
    """A view of a that may be written to where its elements do not share places."""
    wide = np.broadcast_to(lifted(a, len(shape)), FRONT + shape)
    return as_strided(a, wide.shape, wide.strides)  # (wide itself is not to be written to)


def moved(a: Array, perm: tuple[int, ...]) -> Array:
    return a.transpose((0, 1, *(k + 2 for k in perm)))


def shaped(a: Array, shape: tuple[int, ...]) -> Array:
    return a.reshape(FRONT + shape)


def cut(a: Array, axis: int, begin: int, end: int) -> Array:
    return take(a, (S,) * axis + (slice(begin, end),))


def diagonal(a: Array, offset: int, axis1: int, axis2: int) -> Array:
    out = np.diagonal(a, offset, axis1 + 2, axis2 + 2)  # (not to be written to)
    first = a[(S,) * (2 + (axis2 if offset > 0 else axis1)) + (slice(abs(offset), None),)]
    return as_strided(first, out.shape, out.strides)


def overlaps(a: Array) -> bool:
    """Whether several elements of a view are one."""
    return any(n > 1 and s == 0 for n, s in zip(a.shape[2:], a.strides[2:], strict=True))


# Programs -------------------------------------------------------------------------------------------


@dataclass
class Program:
    seed: int
    x: np.ndarray
    p: np.ndarray
    source: str = ""
    model: list[str] = field(default_factory=list)
    constants: dict[str, Any] = field(default_factory=dict)

    def run_model(self, dx: np.ndarray, dp: np.ndarray) -> tuple[Array, Array]:
        """(the result, what p is afterwards) as Taylor coefficients along directions (dx[i], dp[i])."""
        env = self.start(dx, dp)
        for line in self.model:
            exec(line, env)
        return env["out"], env["p"]

    def start(self, dx: np.ndarray, dp: np.ndarray) -> dict[str, Any]:
        env = dict(globals(), **self.constants)
        for name, value, direction in (("x", self.x, dx), ("p", self.p, dp)):
            env[name] = const(value)
            env[name][1] = direction
        return env


class Writer:
    """Writes a program, running the model as it goes, so that every statement is possible."""

    def __init__(self, seed: int, statements: int = 0) -> None:
        self.rng = random.Random(seed)
        shapes = [(4,), (2, 3), (3, 4), (4, 2), (2, 2, 3), (1, 4), (3, 1, 2), (3, 3)]
        values = np.random.default_rng(seed)
        x, p = (values.uniform(-1.0, 1.0, self.rng.choice(shapes)) for _ in range(2))
        self.program = Program(seed, x, p)
        zero = (np.zeros((DIRECTIONS, *x.shape)), np.zeros((DIRECTIONS, *p.shape)))
        self.env = self.program.start(*zero)
        self.names = ["x", "p"]
        self.lines: list[str] = []
        kinds: list[tuple[int, Callable[[], None]]] = [
            (6, self.view), (3, self.copy), (3, self.compute), (6, self.write), (3, self.method),
            (2, self.in_place), (1, self.loop), (1, self.rows), (1, self.assign),
        ]  # fmt: skip
        weights = [w for w, _ in kinds]
        for _ in range(statements or self.rng.randint(3, 12)):
            self.rng.choices([k for _, k in kinds], weights)[0]()
        self.finish()

    # Statements -------------------------------------------------------------------------------------

    def emit(self, tensor: str, model: str) -> None:
        self.lines.append(tensor)
        self.program.model.append(model)
        exec(model, self.env)

    def bind(self, tensor: str, model: str) -> None:
        name = f"r{len(self.names)}"
        self.emit(f"{name} = {tensor}", f"{name} = {model}")
        self.names.append(name)

    def constant(self, value: Any) -> str:
        name = f"c{len(self.program.constants)}"
        self.program.constants[name] = self.env[name] = value
        return name

    def pick(self, fits: Callable[[str], bool] = lambda _: True) -> str | None:
        found = [n for n in self.names if fits(n)]
        return self.rng.choice(found[-5:] if self.rng.random() < 0.6 else found) if found else None

    def dims(self, name: str) -> tuple[int, ...]:
        return tuple(int(n) for n in self.env[name].shape[2:])

    def writable(self) -> str | None:
        return self.pick(lambda n: not overlaps(self.env[n]))

    def basic_key(self, dims: tuple[int, ...]) -> str:
        """A key of ints, slices, None and Ellipsis that leaves some elements."""
        parts = []
        some = self.rng.randint(1, len(dims))
        dots = self.rng.choice(["first", "last", "", "", "", "", "", ""])
        for n in dims[-some:] if dots == "first" else dims[:some]:
            kind = self.rng.randrange(5)
            if kind < 2:
                parts.append(str(self.rng.randrange(-n, n)))
            elif kind == 2:
                begin = self.rng.randrange(n)
                parts.append(f"{begin}:{self.rng.randint(begin + 1, n)}")
            elif kind == 3:
                parts.append(self.rng.choice(["::2", "::-1", ":", "1:" if n > 1 else ":"]))
            else:
                parts.append(":")
        if self.rng.random() < 0.2:
            parts.insert(self.rng.randint(0, len(parts)), "None")
        if dots:
            parts.insert(0 if dots == "first" else len(parts), "...")
        return ", ".join(parts)

    def key(self, dims: tuple[int, ...]) -> str:
        kind = self.rng.random()
        if kind < 0.7 or not dims:
            return self.basic_key(dims) if dims else "..."
        values = np.random.default_rng(self.rng.getrandbits(32))
        if kind < 0.85:
            return self.constant(values.random(dims) < 0.5)
        return str([self.rng.randrange(-dims[0], dims[0]) for _ in range(self.rng.randint(1, 3))])

    def view(self) -> None:
        a = self.pick()
        assert a is not None
        dims = self.dims(a)
        rank = len(dims)
        size = int(np.prod(dims))
        axis = self.rng.randrange(rank) if rank else 0
        choices: list[tuple[str, str]] = [
            (f"{a}.reshape({size})", f"shaped({a}, ({size},))"),
            (f"{a}.view(1, {size})", f"shaped({a}, (1, {size}))"),
            (f"ops.ravel({a})", f"shaped({a}, ({size},))"),
            (f"mint.flatten({a})", f"shaped({a}, ({size},))"),
            (f"Tensor({a})", f"{a}[...]"),
            (f"{a}[...]", f"{a}[...]"),
            (f"{a}.expand_dims({axis})", f"shaped({a}, {(*dims[:axis], 1, *dims[axis:])})"),
            (f"{a}.squeeze()", f"shaped({a}, {tuple(n for n in dims if n != 1)})"),
            (f"{a}.broadcast_to({(2, *dims)})", f"spread({a}, {(2, *dims)})"),
        ]
        for first in (2, 3):
            if size % first == 0:
                shape = (first, size // first)
                choices += [(f"ops.reshape({a}, {shape})", f"shaped({a}, {shape})")] * 2
        if rank:
            other = self.rng.randrange(rank)
            perm = tuple(self.rng.sample(range(rank), rank))
            swap = list(range(rank))
            swap[axis], swap[other] = swap[other], swap[axis]
            n = dims[axis]
            at = self.rng.randrange(n)
            half = -(-n // 2)
            i = self.rng.randrange(dims[0])
            pieces = -(-n // half)
            part = self.rng.randrange(pieces)
            piece = f"cut({a}, {axis}, {part * half}, {min(n, part * half + half)})"
            choices += [
                (f"{a}.T", f"moved({a}, {tuple(range(rank))[::-1]})"),
                (f"ops.transpose({a}, {perm})", f"moved({a}, {perm})"),
                (f"{a}.permute({perm})", f"moved({a}, {perm})"),
                (f"{a}.swapaxes({axis}, {other})", f"moved({a}, {tuple(swap)})"),
                (f"mint.transpose({a}, {axis}, {other})", f"moved({a}, {tuple(swap)})"),
                (f"ops.split({a}, {half}, {axis})[{part}]", piece),
                (f"{a}.chunk({pieces}, {axis})[{part}]", piece),
                (f"{a}.narrow({axis}, {at}, {n - at})", f"cut({a}, {axis}, {at}, {n})"),
                (f"{a}.unbind({axis})[{at}]", f"take({a}, (S,) * {axis} + ({at},))"),
                (f"mint.select({a}, {axis}, {at})", f"take({a}, (S,) * {axis} + ({at},))"),
                (f"list({a})[{i}]", f"take({a}, {i})"),
            ]
            key = self.basic_key(dims)
            choices += [(f"{a}[{key}]", f"{a}[:, :, {key}]")] * 8
        if rank > 1:
            k, m = self.rng.sample(range(rank), 2)
            offset = self.rng.randrange(-dims[k] + 1, dims[m])
            choices.append(
                (f"{a}.diagonal({offset}, {k}, {m})", f"diagonal({a}, {offset}, {k}, {m})")
            )
            choices.append(
                (f"ops.diagonal({a}, {offset}, {k}, {m})", f"diagonal({a}, {offset}, {k}, {m})")
            )
        self.bind(*self.rng.choice(choices))

    def copy(self) -> None:
        a = self.pick()
        assert a is not None
        dims = self.dims(a)
        calls = [
            "{}.copy()", "copy.copy({})", "copy.deepcopy({})", "+{}", "{}.astype(ms.float64)",
            "{}.to(ms.float64)", "{}.contiguous()", "ops.addn(({},))", "ops.identity({})",
            "ops.dropout({}, 0.0)", "ops.pad({}, ())", "ops.roll({}, 0, 0)", "ops.flip({}, ())",
            "ops.flatten({}).reshape(DIMS)", "{}.double()", "nn.Identity()({})", "ops.cast({}, ms.float64)",
            "mint.clone({})", "ops.tile({}, (1,))", "Tensor({}, ms.float64)", "{}.clamp(-1e9, 1e9)",
        ]  # fmt: skip
        call = self.rng.choice(calls)
        if not dims or (a == "p" and "py." in call):
            call = "+{}"
        model = f"{a}.copy()"
        if self.rng.random() < 0.15:
            call, model = self.rng.choice(["ops.stop_gradient({})", "{}.detach()"]), f"stopped({a})"
        elif dims and self.rng.random() < 0.4:
            mask = self.constant(np.random.default_rng(self.rng.getrandbits(32)).random(dims) < 0.6)
            rows = [self.rng.randrange(-dims[0], dims[0]) for _ in range(self.rng.randint(1, 3))]
            kept = self.env[mask].any() and self.rng.random() < 0.5
            call, model = (
                ("{}[Tensor(" + mask + ")]", f"take({a}, {mask})")
                if kept
                else ("{}[" + str(rows) + "]", f"take({a}, ({rows},))")
            )
        self.bind(call.replace("DIMS", str(dims)).format(a), model)

    def value(self, dims: tuple[int, ...]) -> tuple[str, str]:
        """Something of these dimensions, or that broadcasts to them."""

        def fits(n: str) -> bool:
            have = self.dims(n)
            tail = dims[len(dims) - len(have) :]
            return len(have) <= len(dims) and all(
                m in (1, k) for m, k in zip(have, tail, strict=True)
            )

        b = self.pick(fits) if self.rng.random() < 0.75 else None
        number = round(self.rng.uniform(-1, 1), 2)
        if b is None:
            return str(number), f"const({number})"
        return self.rng.choice(
            [
                (b, b),
                (f"{b} * {number}", f"mul({b}, const({number}))"),
                (f"ops.sin({b})", f"sin({b})"),
                (f"{b} * {b}", f"mul({b}, {b})"),
            ]
        )

    def compute(self) -> None:
        a = self.pick()
        assert a is not None
        tensor, model = self.value(self.dims(a))
        kind = self.rng.choice(["+", "-", "*", "sin", "tanh"])
        if kind in ("sin", "tanh"):
            self.bind(f"ops.{kind}({a})", f"{kind}({a})")
        else:
            name = {"+": "add", "-": "sub", "*": "mul"}[kind]
            self.bind(f"{a} {kind} ({tensor})", f"{name}({a}, {model})")

    def write(self) -> None:
        a = self.writable()
        if a is None:
            return
        key = self.key(self.dims(a))
        named = f"Tensor({key})" if key in self.program.constants else key
        at = f"({key},)" if key[0] in "c[" else f"np.s_[{key}]"
        shape = tuple(int(n) for n in take(self.env[a], eval(at, self.env)).shape[2:])
        tensor, model = self.value(shape)
        if self.rng.random() < 0.3 and not (key[0] == "[" or overlaps(self.env[a])):
            self.emit(f"{a}[{named}] += {tensor}", f"put({a}, {at}, add(take({a}, {at}), {model}))")
        else:
            self.emit(f"{a}[{named}] = {tensor}", f"put({a}, {at}, {model})")

    def method(self) -> None:
        a = self.writable()
        if a is None:
            return
        dims = self.dims(a)
        same = self.pick(lambda n: self.dims(n) == dims)
        choices = [(f"{a}.mul_(0.5)", f"put({a}, ..., mul({a}, const(0.5)))")]
        if a != "p":
            choices += [(f"{a}.fill_(0.25)", f"put({a}, ..., const(0.25))"),
                        (f"{a}.zero_()", f"put({a}, ..., const(0.0))")]  # fmt: skip
        if same:
            whole = f"put({a}, ..., {same}.copy())"
            choices += [
                (f"{a}.copy_({same})", whole),
                (f"{a}.assign_value({same})", whole),
                (f"ops.assign({a}, {same})", whole),
                (f"{a}.add_({same})", f"put({a}, ..., add({a}, {same}))"),
                (f"{a}.sub_({same} * 0.5)", f"put({a}, ..., sub({a}, mul({same}, const(0.5))))"),
            ]
        self.emit(*self.rng.choice(choices))

    def in_place(self) -> None:
        """An operator in place binds the name to a new tensor."""
        a = self.pick(lambda n: n not in ("x", "p"))
        if a is None:
            return
        tensor, model = self.value(self.dims(a))
        kind = self.rng.choice("+-*")
        name = {"+": "add", "-": "sub", "*": "mul"}[kind]
        self.emit(f"{a} {kind}= {tensor}", f"{a} = {name}({a}, {model})")

    def loop(self) -> None:
        """Writes to the rows of an iteration."""
        a = self.pick(lambda n: len(self.dims(n)) > 1 and not overlaps(self.env[n]))
        if a is None:
            return
        n = self.dims(a)[1]
        i, j = self.rng.randrange(n), self.rng.randrange(n)
        self.emit(
            f"for row in {a}: row[{i}] = row[{j}] * 0.5 + row[{i}]",
            f"for k in range({self.dims(a)[0]}): row = take({a}, k); "
            f"put(row, {i}, add(mul(take(row, {j}), const(0.5)), take(row, {i})))",
        )

    def rows(self) -> None:
        """A tensor made of what is read in a loop."""
        a = self.pick(lambda n: len(self.dims(n)) > 0)
        if a is None:
            return
        self.bind(
            f"ops.stack([ops.sin(row) for row in {a}])",
            f"np.ascontiguousarray(np.stack([sin(take({a}, k)) for k in range({self.dims(a)[0]})], 2))",
        )

    def assign(self) -> None:
        """The parameter's new value."""
        same = self.pick(lambda n: self.dims(n) == self.dims("p"))
        if same is None:
            return
        call = self.rng.choice(["p.set_data({})", "ops.assign(p, {})", "p[...] = {}"])
        self.emit(call.format(same), f"put(p, ..., {same}.copy())")

    def finish(self) -> None:
        """The result depends on every element of every tensor."""
        weigh = np.random.default_rng(self.program.seed + 1)
        terms, models = [], []
        for name in self.names:
            w = self.constant(weigh.uniform(-1.0, 1.0, self.dims(name)))
            terms.append(f"(ops.tanh({name}) * Tensor({w})).sum()")
            models.append(f"total(mul(tanh({name}), const({w})))")
        self.lines.append("return " + " + ".join(terms))
        self.program.model.append("out = " + f"sum([{', '.join(models)}])")
        body = "\n    ".join(self.lines)
        self.program.source = f"def program(x, p):\n    {body}\n"


def program(seed: int) -> Program:
    return Writer(seed).program
