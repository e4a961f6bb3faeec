"""Random programs: any bytes decode to a valid, tame program of 3 to 30 ops.

In: bytes, four for each op (which op, two operands, its parameters), so that hypothesis can shrink
a failing program by shortening the bytes and lowering their numbers. Out: a Program, to be run by
any backend that has NumpyTape's methods. Decoding evaluates the program as it grows, and keeps to
points where every derivative exists: no ties, no kinks, no poles, and values below 4.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy_adjoint import Dual, NumpyTape, Var

Shape = tuple[int, ...]

SHAPES: list[Shape] = [(), (3,), (2, 3), (3, 1), (1,), (2, 2, 2), (4,), (3, 3), (1, 4), (2, 1, 3)]
#: With more rows than a tile of the CPU engine has, and than a vector.
MANY_ROWS: list[Shape] = [(130, 3), (130,), (3,), (3, 2), (130, 1), (), (70, 2, 2), (2, 2), (1, 3),
                          (197,), (2, 65)]  # fmt: skip
HEADER = 6  # bytes before the first op
MAX_OPS = 30
FEW, MANY = 48, 2000  # the most elements a result may have
MAX_RANK = 4
LARGEST = 4.0
GAP = 1e-4  # the least distance from a kink

ANYWHERE = ("neg", "square", "sin", "cos", "atan", "asinh", "tanh", "sigmoid", "erf", "exp",
            "expm1", "sinh")  # fmt: skip
ABOVE_ZERO = ("sqrt", "rsqrt", "reciprocal", "log", "log1p")
STEEP = ("exp", "expm1", "sinh")
KINKED = ("abs", "relu", "floor")


@dataclass(frozen=True)
class Step:
    """One op: the registers it reads and its parameters."""

    op: str
    args: tuple[int, ...]
    attrs: tuple[Any, ...] = ()


@dataclass
class Program:
    shapes: list[Shape]
    seed: int
    steps: list[Step] = field(default_factory=list)

    def inputs(self) -> list[np.ndarray]:
        rng = np.random.default_rng(self.seed)
        return [rng.uniform(-2.0, 2.0, shape) for shape in self.shapes]

    def direction(self) -> list[np.ndarray]:
        rng = np.random.default_rng(self.seed + 1)
        return [rng.uniform(-1.0, 1.0, shape) for shape in self.shapes]

    def __str__(self) -> str:
        """As Python-like text, for the report of a failure."""
        lines = [f"r{i} = input{shape}" for i, shape in enumerate(self.shapes)]
        for step in self.steps:
            operands = [f"r{i}" for i in step.args] + [repr(a) for a in step.attrs]
            lines.append(f"r{len(lines)} = {step.op}({', '.join(operands)})")
        return "\n".join([f"seed {self.seed}", *lines])

    def __call__(self, tape: Any, *inputs: Any) -> Any:
        """The scalar sum(w * last) + sum(middle ** 2) / 4, with the ops of `tape`."""
        registers = list(inputs)
        shapes = list(self.shapes)
        for step in self.steps:
            registers.append(apply(tape, step, registers))
            shapes.append(tuple(registers[-1].shape))
        middle = len(registers) // 2
        weights = np.cos(np.arange(math.prod(shapes[-1]), dtype=np.float64)).reshape(shapes[-1])
        last = tape.mul(registers[-1], tape.constant(weights))
        square = tape.unary("square", registers[middle])
        total = tape.reduce_sum(last, tuple(range(len(shapes[-1]))), False)
        rest = tape.reduce_sum(square, tuple(range(len(shapes[middle]))), False)
        return tape.add(total, tape.mul(rest, tape.constant(0.25)))


def apply(tape: Any, step: Step, registers: Sequence[Any]) -> Any:
    args = [registers[i] for i in step.args]
    if step.op in ("scale", "shift"):
        method = tape.mul if step.op == "scale" else tape.add
        return method(args[0], tape.constant(step.attrs[0]))
    if step.op == "concat":
        return tape.concat(args, *step.attrs)
    if step.op == "where":
        return tape.where(tape.greater(args[0], args[1]), args[2], args[3])
    if step.op == "gather":
        return tape.gather(args[0], np.array(step.attrs[0]), step.attrs[1])
    if hasattr(tape, step.op):
        return getattr(tape, step.op)(*args, *step.attrs)
    return tape.unary(step.op, *args)


class Decoder:
    """Turns bytes to steps, one method for each kind of op. A choice that would not be valid or
    tame becomes the nearest one that is."""

    def __init__(self, data: bytes) -> None:
        count = 1 + data[0] % 3
        pool, self.limit = (MANY_ROWS, MANY) if data[0] >= 192 else (SHAPES, FEW)
        shapes = [pool[data[1 + i] % len(pool)] for i in range(count)]
        self.program = Program(shapes, seed=data[4] + 256 * data[5])
        self.tape = NumpyTape()
        self.registers = [Var(Dual(x, np.zeros_like(x))) for x in self.program.inputs()]
        self.hidden: set[int] = set()  # registers that later ops do not read
        self.kinds: list[Callable[[int, int, int], None]] = [
            self.unary,
            self.binary,
            self.reduce,
            self.matmul,
            self.move,
            self.select,
            self.join,
            self.unary,
        ]
        for op, a, b, p in chunks(data[HEADER:]):
            if len(self.program.steps) >= MAX_OPS - 4:
                break
            self.kinds[op % len(self.kinds)](a, b, (op // len(self.kinds)) * 256 + p)

    def emit(self, op: str, *args: int, attrs: tuple[Any, ...] = ()) -> int:
        step = Step(op, args, attrs)
        self.program.steps.append(step)
        self.registers.append(apply(self.tape, step, self.registers))
        return len(self.registers) - 1

    def emit_tame(self, op: str, *args: int, attrs: tuple[Any, ...] = ()) -> int:
        """The same, scaled down by a power of two where it is large."""
        result = self.emit(op, *args, attrs=attrs)
        largest = float(np.abs(self.value(result)).max(initial=0.0))
        if largest > LARGEST:
            factor = 2.0 ** -math.ceil(math.log2(largest / 2))
            self.hidden.add(result)
            return self.emit("scale", result, attrs=(factor,))
        return result

    def value(self, register: int) -> np.ndarray:
        return self.registers[register].value

    def pick(self, number: int, fits: Callable[[np.ndarray], bool] = lambda x: True) -> int | None:
        """A register that fits, rather a new one: so that most of the program is live."""
        newest_first = reversed(range(len(self.registers)))
        found = [i for i in newest_first if i not in self.hidden and fits(self.value(i))]
        if not found:
            return None
        return found[min(number % len(found), number // 16 % len(found))]

    def register(self, number: int) -> int:
        found = self.pick(number)
        assert found is not None
        return found

    def partner(self, x: int, number: int) -> int:
        """A register that broadcasts with x; x itself is one."""

        def fits(y: np.ndarray) -> bool:
            try:
                return math.prod(np.broadcast_shapes(self.value(x).shape, y.shape)) <= self.limit
            except ValueError:
                return False

        found = self.pick(number, fits)
        return x if found is None else found

    def unary(self, a: int, b: int, p: int) -> None:
        x = self.register(a)
        names = ANYWHERE + ABOVE_ZERO + KINKED
        self.unary_step(names[p % len(names)], x)

    def unary_step(self, name: str, x: int) -> None:
        value = self.value(x)
        if name in ABOVE_ZERO:
            self.emit_tame(name, self.positive(x))
            return
        near = np.abs(value - np.round(value)) if name == "floor" else np.abs(value)
        if name in KINKED and near.min(initial=1.0) < GAP:
            name = "tanh"
        if name in STEEP and np.abs(value).max(initial=0.0) > 2.5:
            name = "tanh"
        self.emit_tame(name, x)

    def positive(self, x: int) -> int:
        if self.value(x).min(initial=1.0) >= 0.3:
            return x
        return self.emit("shift", self.emit("square", x), attrs=(0.5,))

    def binary(self, a: int, b: int, p: int) -> None:
        x = self.register(a)
        y = self.partner(x, b)
        name = ("add", "sub", "mul", "div", "maximum", "minimum")[p % 6]
        if x == y and name in ("sub", "div"):  # would be constant
            name = "add"
        if name == "div":
            y = self.positive(y)
        if name in ("maximum", "minimum") and not self.apart(x, y):
            name = "mul"
        self.emit_tame(name, x, y)

    def apart(self, x: int, y: int) -> bool:
        return bool(np.abs(self.value(x) - self.value(y)).min(initial=1.0) >= GAP)

    def reduce(self, a: int, b: int, p: int) -> None:
        x = self.register(a)
        value = self.value(x)
        axes = tuple(i for i in range(value.ndim) if (b >> i) & 1) or tuple(range(value.ndim))
        name = ("reduce_sum", "reduce_mean", "reduce_max", "reduce_min")[p % 4]
        if name in ("reduce_max", "reduce_min"):
            extreme = value.max(axes, keepdims=True)
            if name == "reduce_min":
                extreme = value.min(axes, keepdims=True)
            if ((np.abs(value - extreme) < GAP).sum(axes) > 1).any():
                name = "reduce_mean"
        self.emit_tame(name, x, attrs=(axes, bool((p >> 2) & 1)))

    def matmul(self, a: int, b: int, p: int) -> None:
        x = self.pick(a, lambda v: v.ndim >= 2)
        if x is None:
            self.binary(a, b, p)
            return
        left = self.value(x).shape

        def fits(y: np.ndarray) -> bool:
            if y.ndim < 2 or y.shape[-2] != left[-1]:
                return False
            try:
                batch = np.broadcast_shapes(left[:-2], y.shape[:-2])
            except ValueError:
                return False
            return math.prod(batch) * left[-2] * y.shape[-1] <= self.limit

        y = self.pick(b, fits)
        if y is None and math.prod(left[:-1]) * left[-2] > self.limit:
            self.binary(a, b, p)
            return
        if y is None:
            rank = len(left)
            order = (*range(rank - 2), rank - 1, rank - 2)
            y = self.emit("transpose", x, attrs=(order,))
        self.emit_tame("matmul", x, y)

    def move(self, a: int, b: int, p: int) -> None:
        x = self.register(a)
        shape = self.value(x).shape
        size = math.prod(shape)
        kind = p % 6
        if kind == 0:
            self.emit("reshape", x, attrs=(reshaped(shape, b),))
        elif kind == 1 and len(shape) > 1:
            order = np.random.default_rng(b).permutation(len(shape))
            self.emit("transpose", x, attrs=(tuple(int(i) for i in order),))
        elif kind == 2 and size * 3 <= self.limit and len(shape) < MAX_RANK:
            widened = tuple(1 + b % 3 if n == 1 else n for n in shape)
            to = (1 + (b >> 2) % 3, *widened) if b & 1 else widened
            if math.prod(to) <= self.limit:
                self.emit("broadcast_to", x, attrs=(to,))
        elif kind == 3 and shape:
            axis = b % len(shape)
            count = 1 + (b >> 2) % 4
            if size // shape[axis] * count <= self.limit:
                indices = [(b * 7 + 3 * i * i) % shape[axis] for i in range(count)]
                self.emit("gather", x, attrs=(indices, axis))
        elif kind == 4 and shape:
            self.emit_tame("cumsum", x, attrs=(b % len(shape),))
        elif shape:
            self.emit("index", x, attrs=(sliced(shape, b),))

    def select(self, a: int, b: int, p: int) -> None:
        x = self.register(a)
        y = self.partner(x, b)
        if not self.apart(x, y):
            self.emit_tame("mul", x, y)
            return
        whole = np.broadcast_shapes(self.value(x).shape, self.value(y).shape)
        chosen = self.pick(p, lambda v: np.broadcast_shapes(whole, v.shape) == whole if ok(whole, v)
                           else False)  # fmt: skip
        self.emit("where", x, y, x if chosen is None else chosen, y)

    def join(self, a: int, b: int, p: int) -> None:
        x = self.pick(a, lambda v: v.ndim > 0)
        if x is None:
            self.unary(a, b, p)
            return
        shape = self.value(x).shape
        axis = p % len(shape)

        def fits(y: np.ndarray) -> bool:
            same = y.ndim == len(shape) and all(
                i == axis or n == m for i, (n, m) in enumerate(zip(shape, y.shape, strict=True))
            )
            return same and math.prod(shape) + y.size <= self.limit

        y = self.pick(b, fits)
        if y is not None:
            self.emit("concat", x, y, attrs=(axis,))


def ok(whole: Shape, value: np.ndarray) -> bool:
    try:
        np.broadcast_shapes(whole, value.shape)
    except ValueError:
        return False
    return True


def chunks(data: bytes) -> Iterator[bytes]:
    for i in range(0, len(data) - 3, 4):
        yield data[i : i + 4]


def reshaped(shape: Shape, b: int) -> Shape:
    """Flat, with a dimension of one more, or two dimensions merged."""
    size = math.prod(shape)
    if b % 3 == 1 and len(shape) < MAX_RANK:
        at = (b >> 2) % (len(shape) + 1)
        return (*shape[:at], 1, *shape[at:])
    if b % 3 == 2 and len(shape) > 1:
        return (shape[0] * shape[1], *shape[2:])
    for n in (2, 3):
        if (b >> 3) & 1 and size % n == 0 and size > n:
            return (n, size // n)
    return (size,)


def sliced(shape: Shape, b: int) -> tuple[Any, ...]:
    """Bits of b choose for each dimension: whole, from 1, reversed, every other, or one element."""
    index: list[Any] = []
    for i, n in enumerate(shape):
        choice = (b >> (2 * i)) % 5
        start = 1 if n > 1 else 0
        index.append(
            [
                slice(None),
                slice(start, None),
                slice(None, None, -1),
                slice(None, None, 2),
                (b >> 4) % n - (n if b & 1 else 0),
            ][choice]
        )
    if b & 8 and len(shape) < MAX_RANK:
        index.insert(b % (len(index) + 1), None)
    return tuple(index)


def decode(data: bytes) -> Program:
    """A program of 3 to 30 ops from at least HEADER + 12 bytes."""
    decoder = Decoder(data)
    while len(decoder.program.steps) < 3:  # moves that did not fit leave no step
        decoder.unary_step("sin", len(decoder.registers) - 1)
    return decoder.program
