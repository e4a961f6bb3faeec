"""Loops that tests run: bodies with what they are given, the same steps one by one, recurrent layers in
NumPy."""

from __future__ import annotations

import numpy as np

from gradcell import ops

RNG = np.random.default_rng(11)


def normal(*shape):
    return RNG.standard_normal(shape)


def unrolled(step, first, sliced, steps, *, reverse=False):
    """What loop does, with a step of the graph for each of its own."""
    state, kept = list(first), [None] * steps
    for t in range(steps)[:: -1 if reverse else 1]:
        state, out = step(list(state), [x[t] for x in sliced])
        kept[t] = list(out)
    return list(state), [ops.stack(list(k)) for k in zip(*kept, strict=True)]


# Bodies: (step, shapes of the first state, of the slices, of what is the same in all steps). -------


def dense(state, slices, w, u):
    h = ops.tanh(ops.matmul(state[0], w) + ops.matmul(slices[0], u))
    return [h], [h]


def long_memory(state, slices, w, b):
    gates = slices[0] + ops.matmul(state[0], w.T) + b
    i, f, g, o = ops.split(gates, 2, 1)
    c = ops.sigmoid(f) * state[1] + ops.sigmoid(i) * ops.tanh(g)
    h = ops.sigmoid(o) * ops.tanh(c)
    return [h, c], [h]


def elements(state, slices, a, b):
    """Products by elements: their sums over steps are no matrix products."""
    x = state[0] * a + ops.sin(slices[0]) * b
    return [x], [x * x, a * state[0]]


def shifted(state, slices, w):
    """What is carried goes from place to place; nothing but the state is kept."""
    return [ops.tanh(slices[0] * w), state[0], state[1]], [state[2]]


def unread(state, slices, w):
    """A slice that is kept as it is, a state that stays, a number that is the same in all steps."""
    return [state[0] * 0.5 + slices[1].sum(), state[1]], [slices[0], w * 2.0, state[1] * slices[0]]


def sums(state, slices, m, v):
    """Products that are no weights' gradients: the transposed side, several dimensions."""
    x = ops.matmul(m, state[0])
    y = ops.matmul(x.expand_dims(0), state[0].T.expand_dims(0))[0]
    return [ops.tanh(x + slices[0] * v)], [y.sum(0), (-x + v).mean()]


def counted(state, slices, w):
    """An integer among what is carried, and a choice by it."""
    n, h = state
    odd = ops.equal(n % 2, 1)
    return [n + 1, ops.where(odd, h * w, h + slices[0])], [h, n]


def shared(state, slices, w):
    """Results that have one another's elements; a state that becomes what another one was."""
    x = ops.tanh(state[0] * w + slices[0])
    return [x, state[0].reshape(3, 2)], [x, x.reshape(6), x.reshape(3, 2), state[1], slices[0]]


def before(state, slices, w):
    """What is carried is kept as it was before each step, once beside what it becomes; two states that
    become the same."""
    a, b, c, d = state
    x = ops.tanh(a * w + slices[0] * d)
    return [x, x * b, x - c, x - c], [a, b, c, d, x]


BODIES = {
    "dense": (dense, [(3, 4)], [(3, 2)], [(4, 4), (2, 4)]),
    "lstm": (long_memory, [(3, 2), (3, 2)], [(3, 8)], [(8, 2), (8,)]),
    "elements": (elements, [(5,)], [(5,)], [(5,), ()]),
    "shifted": (shifted, [(2, 2)] * 3, [(2, 2)], [(2, 2)]),
    "shared": (shared, [(2, 3), (3, 2)], [(2, 3)], [(2, 3)]),
    "before": (before, [(2, 3)] * 4, [(2, 3)], [(2, 3)]),
    "unread": (unread, [(3,), (3,)], [(3,), (2,)], [(3,)]),
    "sums": (sums, [(3, 2)], [(3, 2)], [(3, 3), (3, 2)]),
}


def arrays(name, steps):
    _, first, sliced, same = BODIES[name]
    return [
        *(normal(*s) for s in first),
        *(normal(steps, *s) for s in sliced),
        *(0.7 * normal(*s) for s in same),
    ]


def function(name, how, steps, reverse):
    """(first states, slices, the same...) to all results."""
    step, first, sliced, _ = BODIES[name]
    n, m = len(first), len(sliced)

    def f(*xs):
        def one(state, slices):
            return step(state, slices, *xs[n + m :])

        last, kept = how(one, xs[:n], xs[n : n + m], steps, reverse=reverse)
        return (*last, *kept)

    return f


def scalar(f):
    def g(*xs):
        return sum((ops.sin(y) * (k + 1)).sum() for k, y in enumerate(f(*xs)))

    return g


# Layers --------------------------------------------------------------------------------------------


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def reference(kind, x, h, c, wi, wh, bi, bh):
    """One direction in NumPy: outputs, last state."""
    outs = []
    for row in x:
        i, g = row @ wi.T + bi, h @ wh.T + bh
        if kind == "LSTM":
            a = np.split(i + g, 4, 1)
            c = sigmoid(a[1]) * c + sigmoid(a[0]) * np.tanh(a[2])
            h = sigmoid(a[3]) * np.tanh(c)
        elif kind == "GRU":
            (ir, iz, inew), (hr, hz, hn) = np.split(i, 3, 1), np.split(g, 3, 1)
            n = np.tanh(inew + sigmoid(ir + hr) * hn)
            z = sigmoid(iz + hz)
            h = (1 - z) * n + z * h
        else:
            h = np.tanh(i + g)
        outs.append(h)
    return np.stack(outs), h, c
