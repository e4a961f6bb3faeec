"""Simulations, filters and recurrent networks: loops by scan."""

from __future__ import annotations

from typing import Any

import numpy as np

from field import Made, program


@program("mass-spring simulation, 1,000 steps", (0, 1, 2), loop=1000)
def springs(lib: Any, normal: Any) -> Made:
    """A chain of 64 masses."""

    def energy(x: Any, v: Any, k: Any) -> Any:
        def step(c: Any, _: Any) -> Any:
            x, v = c
            s = k * (x[1:] - x[:-1])
            v = v + 1e-3 * (lib.pad(s, (0, 1)) - lib.pad(s, (1, 0)))
            return (x + 1e-3 * v, v), None

        return (lib.scan(step, (x, v), None, 1000)[0][0] ** 2).sum()

    return energy, [0.1 * normal(64), np.zeros(64), 10 + normal(63)]


@program("N-body simulation, 32 bodies, 100 steps", (0, 1, 2), loop=100)
def bodies(lib: Any, normal: Any) -> Made:
    """Leapfrog steps under softened gravity."""

    def spread(x: Any, v: Any, mass: Any) -> Any:
        def step(c: Any, _: Any) -> Any:
            x, v = c
            apart = x[None] - x[:, None]
            far = (apart**2).sum(-1) + 0.01
            v = v + 1e-2 * ((mass / (far * lib.sqrt(far)))[:, :, None] * apart).sum(1)
            return (x + 1e-2 * v, v), None

        return (lib.scan(step, (x, v), None, 100)[0][0] ** 2).sum()

    return spread, [normal(32, 3), 0.1 * normal(32, 3), 0.1 * np.exp(0.3 * normal(32))]


@program("reaction and diffusion on 32 x 32, 100 steps", (0, 2), loop=100)
def reaction(lib: Any, normal: Any) -> Made:
    """Gray and Scott's, with periodic sides; its rates are to be found."""

    def misfit(u: Any, v: Any, rates: Any) -> Any:
        def around(x: Any) -> Any:
            up, left = lib.roll(x, 1, 0), lib.roll(x, 1, 1)
            return up + lib.roll(x, -1, 0) + left + lib.roll(x, -1, 1) - 4 * x

        def step(c: Any, _: Any) -> Any:
            u, v = c
            met = u * v * v
            u = u + 0.2 * around(u) - met + rates[0] * (1 - u)
            return (u, v + 0.1 * around(v) + met - rates[1] * v), None

        return (lib.scan(step, (u, v), None, 100)[0][1] ** 2).sum()

    start = 0.3 + 0.05 * np.abs(normal(32, 32))
    return misfit, [1 - start, start, np.array([0.035, 0.06])]


@program("neural ODE, 50 steps of Runge and Kutta", (1, 2, 3, 4), loop=50)
def neural_ode(lib: Any, normal: Any) -> Made:
    """A field of 2-32-2 moves 64 points."""

    def loss(x: Any, a: Any, b: Any, c: Any, wanted: Any) -> Any:
        def speed(x: Any) -> Any:
            return lib.tanh(x @ a + b) @ c

        def step(x: Any, _: Any) -> Any:
            k1 = speed(x)
            k2 = speed(x + 0.01 * k1)
            k3 = speed(x + 0.01 * k2)
            k4 = speed(x + 0.02 * k3)
            return x + 0.02 / 6 * (k1 + 2 * k2 + 2 * k3 + k4), None

        return ((lib.scan(step, x, None, 50)[0] - wanted) ** 2).mean()

    return loss, [normal(64, 2), normal(2, 32), normal(32), 0.3 * normal(32, 2), normal(64, 2)]


def filtered(lib: Any, f: Any, h: Any, seen: Any, q: Any, r: Any) -> Any:
    """Of each step: mean and spread before and after it, and the squared surprise."""

    def step(c: Any, z: Any) -> Any:
        mean, spread = f @ c[0], f @ c[1] @ f.T + q
        gain = spread @ h.T @ lib.inverse(h @ spread @ h.T + r)
        apart = z - h @ mean
        after = (mean + gain @ apart, spread - gain @ h @ spread)
        return after, ((mean, spread), after, (apart * apart).sum())

    return lib.scan(step, (0 * f[0], q), seen)


def linear_model(normal: Any) -> list[Any]:
    """Four states, two observations, 200 steps."""
    return [
        np.eye(4) + 0.01 * normal(4, 4),
        normal(2, 4),
        normal(200, 2),
        0.1 * np.eye(4),
        np.eye(2),
    ]


@program("Kalman filter, 200 steps", (0, 1), loop=200)
def kalman(lib: Any, normal: Any) -> Made:
    return lambda *model: filtered(lib, *model)[1][2].sum(), linear_model(normal)


@program("Kalman smoother, 200 steps", (0, 1), loop=400)
def smoother(lib: Any, normal: Any) -> Made:
    """Rauch, Tung and Striebel's: a loop back through what the filter found."""

    def roughness(f: Any, *model: Any) -> Any:
        last, (before, after, _) = filtered(lib, f, *model)

        def step(c: Any, given: Any) -> Any:
            (ahead, ahead_spread), (mean, spread) = given
            gain = spread @ f.T @ lib.inverse(ahead_spread)
            mean = mean + gain @ (c[0] - ahead)
            return (mean, spread + gain @ (c[1] - ahead_spread) @ gain.T), mean

        earlier = tuple(a[1:] for a in before), tuple(a[:-1] for a in after)
        return (lib.scan(step, last, earlier, reverse=True)[1] ** 2).sum()

    return roughness, linear_model(normal)


@program("hidden Markov model, 16 states, 500 steps", (0, 1, 2), loop=500)
def markov(lib: Any, normal: Any) -> Made:
    """The log likelihood, forward, in logarithms."""

    def likelihood(start: Any, moves: Any, shown: Any, seen: Any) -> Any:
        moves = moves - lib.logsumexp(moves, 1)[:, None]
        shown = shown - lib.logsumexp(shown, 0)

        def step(state: Any, emitted: Any) -> Any:
            return lib.logsumexp(state[:, None] + moves, 0) + emitted, None

        return lib.logsumexp(lib.scan(step, start, shown[seen])[0], 0)

    return likelihood, [normal(16), normal(16, 16), normal(32, 16), np.arange(500) * 7 % 32]


def _sequence_and_weights(normal: Any, gates: int) -> list[Any]:
    """32 steps of a batch of 32 with 64 features, and the weights of a cell with as many gates."""
    n = 64 * gates
    return [normal(32, 32, 64), 0.1 * normal(64, n), 0.1 * normal(64, n), 0.1 * normal(n)]


@program("GRU, 32 steps, batch 32", (1, 2, 3), loop=32)
def gru(lib: Any, normal: Any) -> Made:
    def loss(xs: Any, w: Any, u: Any, b: Any) -> Any:
        def step(h: Any, x: Any) -> Any:
            i, r = x @ w + b, h @ u
            reset = lib.sigmoid(i[:, :64] + r[:, :64])
            keep = lib.sigmoid(i[:, 64:128] + r[:, 64:128])
            return keep * h + (1 - keep) * lib.tanh(i[:, 128:] + reset * r[:, 128:]), None

        return (lib.scan(step, 0 * xs[0], xs)[0] ** 2).mean()

    return loss, _sequence_and_weights(normal, 3)


@program("LSTM, 32 steps, batch 32", (1, 2, 3), loop=32)
def lstm(lib: Any, normal: Any) -> Made:
    def loss(xs: Any, w: Any, u: Any, b: Any) -> Any:
        def step(c: Any, x: Any) -> Any:
            h, cell = c
            z = x @ w + h @ u + b
            keep, new, out = (lib.sigmoid(z[:, 64 * k : 64 * k + 64]) for k in range(3))
            cell = keep * cell + new * lib.tanh(z[:, 192:])
            return (out * lib.tanh(cell), cell), None

        return (lib.scan(step, (0 * xs[0], 0 * xs[0]), xs)[0][0] ** 2).mean()

    return loss, _sequence_and_weights(normal, 4)


@program("fixed point by a custom rule, 2 loops of 40", (0, 1, 2), loop=80)
def fixed_point(lib: Any, normal: Any) -> Made:
    """An implicit layer of 64 over a batch of 32; its adjoint is a fixed point too."""

    def layer(z: Any, w: Any, u: Any, x: Any) -> Any:
        return lib.tanh(z @ w + x @ u)

    def repeated(f: Any, z: Any) -> Any:
        return lib.scan(lambda z, _: (f(z), None), z, None, 40)[0]

    def found(w: Any, u: Any, x: Any) -> Any:
        return repeated(lambda z: layer(z, w, u, x), 0 * (x @ u))

    def forward(*given: Any) -> Any:
        z = found(*given)
        return z, (z, *given)

    def backward(kept: Any, given: Any) -> Any:
        z, *rest = kept
        by_z = lib.vjp(lambda z: layer(z, *rest), z)[1]
        adjoint = repeated(lambda a: given + by_z(a)[0], given)
        return lib.vjp(lambda *rest: layer(z, *rest), *rest)[1](adjoint)

    solved = lib.custom_vjp(found)
    solved.defvjp(forward, backward)
    return lambda w, u, x: (solved(w, u, x) ** 2).mean(), [
        0.05 * normal(64, 64), 0.2 * normal(32, 64), normal(32, 32),
    ]  # fmt: skip
