"""The losses of two of mindspore_programs/applications.py in NumPy, float64, and nothing else: derivatives
come from a tape of a few ops, whose rules stand beside them. They settle what is right where MindSpore's two
modes differ.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

Array = np.ndarray


class Node:
    """A value on the tape, and how its cotangent goes back."""

    def __init__(
        self, value: Array, back: Sequence[tuple[Node, Callable[[Array], Array]]] = ()
    ) -> None:
        self.value, self.back = np.asarray(value, np.float64), back

    def __add__(self, other: Node | Array) -> Node:
        o = as_node(other)
        return Node(self.value + o.value, [(self, lambda d: d), (o, lambda d: d)])

    def __mul__(self, other: Node | Array) -> Node:
        o = as_node(other)
        return Node(
            self.value * o.value, [(self, lambda d: d * o.value), (o, lambda d: d * self.value)]
        )

    def linear(self, weight: Node) -> Node:
        """self @ weight.T."""
        return Node(
            self.value @ weight.value.T,
            [(self, lambda d: d @ weight.value), (weight, lambda d: d.T @ self.value)],
        )

    def tanh(self) -> Node:
        y = np.tanh(self.value)
        return Node(y, [(self, lambda d: d * (1 - y * y))])

    def sum(self) -> Node:
        return Node(self.value.sum(), [(self, lambda d: np.broadcast_to(d, self.value.shape))])

    def moved(self, move: Callable[[Array], Array], back: Callable[[Array], Array]) -> Node:
        """A linear function and its transpose."""
        return Node(move(self.value), [(self, back)])


def as_node(value: Node | Array | float) -> Node:
    return value if isinstance(value, Node) else Node(np.asarray(value))


def gradients(loss: Node, inputs: list[Node]) -> list[Array]:
    order: list[Node] = []
    seen: set[int] = set()

    def visit(node: Node) -> None:
        if id(node) not in seen:
            seen.add(id(node))
            for parent, _ in node.back:
                visit(parent)
            order.append(node)

    visit(loss)
    found = {id(n): np.zeros_like(n.value) for n in order}
    found[id(loss)] = np.ones_like(loss.value)
    for node in reversed(order):
        for parent, rule in node.back:
            d = rule(found[id(node)])
            shape = parent.value.shape  # sums where it was broadcast
            d = d.sum(axis=tuple(range(d.ndim - len(shape))))
            axes = tuple(i for i, n in enumerate(shape) if n == 1 and d.shape[i] != 1)
            found[id(parent)] += d.sum(axis=axes, keepdims=True)
    return [found[id(n)] for n in inputs]


def numbers(seed: int, *shape: int) -> Array:
    return np.random.RandomState(seed).normal(size=shape).astype(np.float32)


def weights(shapes: list[tuple[int, ...]]) -> list[Node]:
    """What `_filled` gives parameters of these shapes."""
    sizes = [math.prod(s[1:]) if len(s) > 1 else 100 for s in shapes]
    return [
        Node(numbers(seed, *s) / np.sqrt(n).astype(np.float32))
        for seed, (s, n) in enumerate(zip(shapes, sizes, strict=True))
    ]


def trained(
    loss: Callable[[], Node], parameters: list[Node], rate: float, steps: int = 5
) -> list[float]:
    """The losses of steps with momentum 0.9."""
    moments = [np.zeros_like(p.value) for p in parameters]
    found = []
    for _ in range(steps):
        now = loss()
        found.append(float(now.value))
        for k, (p, d) in enumerate(zip(parameters, gradients(now, parameters), strict=True)):
            moments[k] = 0.9 * moments[k] + d
            p.value = p.value - rate * moments[k]
    return found


def molecular_dynamics() -> list[float]:
    place = np.stack(np.meshgrid(*[np.arange(3)] * 3), -1).reshape(-1, 3) * 1.2
    x = (place + 0.1 * numbers(1, 27, 3)).astype(np.float32).astype(np.float64)
    forces = numbers(2, 27, 3).astype(np.float64)
    first, second = np.triu_indices(27, 1)
    apart = x[first] - x[second]
    r = np.sqrt((apart**2).sum(-1))
    inside = r < 4.0
    cut = (0.5 * (np.cos(r * np.pi / 4) + 1) * inside)[:, None]
    cut_slope = (-0.5 * np.sin(r * np.pi / 4) * np.pi / 4 * inside)[:, None]
    far = r[:, None] - np.linspace(0.5, 4.0, 8).astype(np.float32).astype(np.float64)
    features = np.exp(-2 * far**2)
    slopes = -4 * far * features
    towards = np.zeros((27, 3, len(r)))  # of the atoms' places, by the distances
    for k, (i, j) in enumerate(zip(first, second, strict=True)):
        towards[i, :, k] = apart[k] / r[k]
        towards[j, :, k] = -apart[k] / r[k]
    towards = towards.reshape(81, -1)
    w1, b1, w2, b2, w3, b3 = parameters = weights([(32, 8), (32,), (32, 32), (32,), (1, 32), (1,)])

    def loss() -> Node:
        h1 = (as_node(features).linear(w1) + b1).tanh()
        h2 = (h1.linear(w2) + b2).tanh()
        energy = h2.linear(w3) + b3
        t1 = as_node(slopes).linear(w1) * (h1 * h1 * -1.0 + 1.0)
        t2 = t1.linear(w2) * (h2 * h2 * -1.0 + 1.0)
        slope = t2.linear(w3) * cut + energy * cut_slope  # of each pair's energy by its distance
        force = slope.moved(lambda v: towards @ v, lambda d: towards.T @ d) + forces.reshape(81, 1)
        total = (energy * cut).sum() + 3.0
        return (force * force).sum() * (1 / 81) + total * total * 0.1

    return trained(loss, parameters, 1e-5)


def convolution(x: Node, w: Node, b: Node, stride: int, pad: int) -> Node:
    """Images [n, channels, rows, columns], weights [out, in, rows, columns]."""
    xp = np.pad(x.value, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    kh, kw = w.value.shape[2:]
    rows, columns = (xp.shape[2] - kh) // stride + 1, (xp.shape[3] - kw) // stride + 1
    at = [
        (i, j, np.s_[:, :, i : i + stride * rows : stride, j : j + stride * columns : stride])
        for i in range(kh)
        for j in range(kw)
    ]
    y = sum(np.einsum("oc,nchw->nohw", w.value[:, :, i, j], xp[s]) for i, j, s in at)

    def by_image(d: Array) -> Array:
        found = np.zeros_like(xp)
        for i, j, s in at:
            found[s] += np.einsum("oc,nohw->nchw", w.value[:, :, i, j], d)
        return found[:, :, pad : xp.shape[2] - pad, pad : xp.shape[3] - pad]

    def by_weight(d: Array) -> Array:
        found = np.zeros_like(w.value)
        for i, j, s in at:
            found[:, :, i, j] = np.einsum("nohw,nchw->oc", d, xp[s])
        return found

    return Node(
        y + b.value[:, None, None],
        [(x, by_image), (w, by_weight), (b, lambda d: d.sum((0, 2, 3)))],
    )


def doubled(x: Node, w: Node, b: Node) -> Node:
    """The transposed convolution of 2 x 2 with stride 2, weights [in, out, 2, 2]."""
    n, _, h, v = x.value.shape

    def split(d: Array) -> Array:
        return d.reshape(n, -1, h, 2, v, 2)

    y = np.einsum("nchw,coij->nohiwj", x.value, w.value).reshape(n, -1, 2 * h, 2 * v)
    return Node(
        y + b.value[:, None, None],
        [
            (x, lambda d: np.einsum("nohiwj,coij->nchw", split(d), w.value)),
            (w, lambda d: np.einsum("nohiwj,nchw->coij", split(d), x.value)),
            (b, lambda d: d.sum((0, 2, 3))),
        ],
    )


def gelu(x: Node) -> Node:
    inner = (x + x * x * x * 0.044715) * math.sqrt(2 / math.pi)
    return x * (inner.tanh() + 1.0) * 0.5


def around(x: Node) -> Node:
    """Periodic along the last axis by one column, a row of zeros at both ends of the other."""

    def back(d: Array) -> Array:
        d = d[:, :, 1:-1]
        found = d[..., 1:-1].copy()
        found[..., -1] += d[..., 0]
        found[..., 0] += d[..., -1]
        return found

    return x.moved(
        lambda v: np.pad(
            np.concatenate((v[..., -1:], v, v[..., :1]), -1), ((0, 0), (0, 0), (1, 1), (0, 0))
        ),
        back,
    )


def weather() -> list[float]:
    x, y = (as_node(numbers(seed, 2, 4, 16, 32)) for seed in (1, 2))
    latitude = np.cos(np.linspace(-1.5, 1.5, 16))
    share = (latitude / latitude.mean()).astype(np.float32).astype(np.float64).reshape(1, 1, 16, 1)
    shapes = [
        (16, 4, 3, 3),
        (16,),
        (32, 16, 3, 3),
        (32,),
        (32, 32, 3, 3),
        (32,),
        (32, 16, 2, 2),
        (16,),
    ]
    shapes += [(4, 32, 1, 1), (4,)]
    parameters = weights(shapes)
    enter, down, middle, up, out = (parameters[i : i + 2] for i in range(0, 10, 2))

    def net(x: Node) -> Node:
        high = gelu(convolution(around(x), *enter, 1, 0))
        low = gelu(convolution(gelu(convolution(high, *down, 2, 1)), *middle, 1, 1))
        rise = gelu(doubled(low, *up))
        both = Node(
            np.concatenate((high.value, rise.value), 1),
            [(high, lambda d: d[:, :16]), (rise, lambda d: d[:, 16:])],
        )
        return x + convolution(both, *out, 1, 0)

    def loss() -> Node:
        off = net(net(x)) + y * -1.0
        return (off * off * share).sum() * (1 / y.value.size)

    return trained(loss, parameters, 0.01)


REFERENCES = {"molecular_dynamics": molecular_dynamics, "weather": weather}
