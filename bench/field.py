"""Programs of the field beside JAX, in turns in one process: loops, small matrices, broadcasts, contractions.

    python bench/field.py                    # all, a table
    python bench/field.py springs pairs      # some
    python bench/field.py --seconds 10       # of turns for each

Both get the same float32 inputs on the CPU and are compiled; values are compared before. A step is timed from
the call to its results in memory. Prints milliseconds of both, the ratio of medians, seconds of first calls.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import gradcell as gc
from gradcell import ops

Program = tuple[str, Callable[..., Any], Callable[..., Any], list[np.ndarray]]
RNG = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


def both(
    name: str, ours: Any, theirs: Any, inputs: list[np.ndarray], wrt: Any
) -> Iterator[Program]:
    yield name, gc.jit(ours), jax.jit(theirs), inputs
    yield (
        f"{name}, gradient", gc.jit(gc.grad(ours, wrt)), jax.jit(jax.grad(theirs, wrt)), inputs,
    )  # fmt: skip


def springs() -> Iterator[Program]:
    """A chain of 64 masses, 1,000 steps."""

    def program(pad: Any, scan: Any) -> Any:
        def force(x: Any, k: Any) -> Any:
            s = k * (x[1:] - x[:-1])
            return pad(s, (0, 1)) - pad(s, (1, 0))

        def energy(x: Any, v: Any, k: Any) -> Any:
            def step(c: Any, _: Any) -> Any:
                x, v = c
                v = v + 1e-3 * force(x, k)
                return (x + 1e-3 * v, v), None

            (x, v), _ = scan(step, (x, v), None, length=1000)
            return (x * x).sum()

        return energy

    inputs = [0.1 * normal(64), np.zeros(64, np.float32), 10 + normal(63)]
    yield from both(
        "mass-spring simulation",
        program(ops.pad, ops.scan),
        program(jnp.pad, jax.lax.scan),
        inputs,
        (0, 1, 2),
    )


def kalman() -> Iterator[Program]:
    """Four states, two observations, 200 steps."""

    def program(scan: Any, inverse: Any) -> Any:
        def misfit(f: Any, h: Any, seen: Any, q: Any, r: Any) -> Any:
            def step(c: Any, z: Any) -> Any:
                mean, spread = c
                mean, spread = f @ mean, f @ spread @ f.T + q
                gain = spread @ h.T @ inverse(h @ spread @ h.T + r)
                apart = z - h @ mean
                return (mean + gain @ apart, spread - gain @ h @ spread), (apart * apart).sum()

            return scan(step, (0 * f[0], q), seen)[1].sum()

        return misfit

    inputs = [
        np.eye(4, dtype=np.float32) + 0.01 * normal(4, 4), normal(2, 4), normal(200, 2),
        0.1 * np.eye(4, dtype=np.float32), np.eye(2, dtype=np.float32),
    ]  # fmt: skip
    yield from both(
        "Kalman filter",
        program(ops.scan, ops.inverse),
        program(jax.lax.scan, jnp.linalg.inv),
        inputs,
        (0, 1),
    )


def fit() -> Iterator[Program]:
    """A step of Levenberg and Marquardt: 50 parameters, 200 points."""

    def program(lib: Any, jacobian: Any, solve: Any) -> Any:
        def apart(p: Any, x: Any, y: Any) -> Any:
            return (p[:25] * lib.tanh(x[:, None] * p[25:])).sum(1) - y

        def step(p: Any, x: Any, y: Any) -> Any:
            r, j = apart(p, x, y), jacobian(apart)(p, x, y)
            return p - solve(j.T @ j + 0.1 * lib.eye(50), (j.T @ r).reshape(50, 1)).reshape(-1)

        return step

    x = np.linspace(0, 1, 200).astype(np.float32)
    ours, theirs = (
        program(ops, gc.jacfwd, ops.matrix_solve),
        program(jnp, jax.jacfwd, jnp.linalg.solve),
    )
    yield "Levenberg-Marquardt, 50", gc.jit(ours), jax.jit(theirs), [normal(50), x, np.sin(6 * x)]


def tensor_products() -> Iterator[Program]:
    """eua,eb,abk->euk of 1,000 edges, 16 channels, 9 components."""

    def program(lib: Any) -> Any:
        return lambda x, y, w: (lib.einsum("eua,eb,abk->euk", x, y, w) ** 2).sum()

    inputs = [normal(1000, 16, 9), normal(1000, 9), normal(9, 9, 9)]
    yield from both("equivariant tensor products", program(ops), program(jnp), inputs, (0, 1))


def matrices() -> Iterator[Program]:
    """1,024 small ones."""
    for n in (3, 4, 8):
        a, b = normal(1024, n, n), normal(1024, n, n)
        yield (
            f"products, {n} x {n}",
            gc.jit(lambda a, b: a @ b),
            jax.jit(lambda a, b: a @ b),
            [a, b],
        )
        a = a @ np.swapaxes(a, 1, 2) + np.eye(n, dtype=np.float32)
        yield f"inverses, {n} x {n}", gc.jit(ops.inverse), jax.jit(jnp.linalg.inv), [a]
        yield (
            f"log det, {n} x {n}, gradient", gc.jit(gc.grad(lambda a: ops.logdet(a).sum())),
            jax.jit(jax.grad(lambda a: jnp.linalg.slogdet(a)[1].sum())), [a],
        )  # fmt: skip


def process() -> Iterator[Program]:
    """The evidence of a Gaussian process of 500 points."""

    def program(lib: Any, cholesky: Any, solve: Any) -> Any:
        def evidence(scales: Any, x: Any, y: Any) -> Any:
            apart = ((x[:, None] - x[None]) ** 2 * lib.exp(scales)).sum(-1)
            root = cholesky(lib.exp(-0.5 * apart) + 0.1 * lib.eye(500))
            z = solve(root, y.reshape(500, 1))
            return 0.5 * (z * z).sum() + lib.log(lib.diagonal(root)).sum()

        return evidence

    ours = program(
        ops, ops.cholesky, lambda a, b: gc.scipy.linalg.solve_triangular(a, b, lower=True)
    )
    theirs = program(
        jnp, jnp.linalg.cholesky, lambda a, b: jax.scipy.linalg.solve_triangular(a, b, lower=True)
    )
    inputs = [np.zeros(3, np.float32), normal(500, 3), normal(500)]
    yield from both("Gaussian process, 500", ours, theirs, inputs, (0, 1))


def pairs() -> Iterator[Program]:
    """50 by 2,000 rows of 16."""
    x, y = normal(50, 16), normal(2000, 16)
    for name, f in {
        "products of all pairs": lambda x, y: (x[:, None] * y).sum(-1),
        "distances of all pairs": lambda x, y: ((x[:, None] - y) ** 2).sum(-1),
    }.items():
        yield name, gc.jit(f), jax.jit(f), [x, y]
    yield (
        "kernel of all pairs, gradient",
        gc.jit(gc.grad(lambda x, y: ops.exp(-((x[:, None] - y) ** 2).sum(-1)).sum(), (0, 1))),
        jax.jit(jax.grad(lambda x, y: jnp.exp(-((x[:, None] - y) ** 2).sum(-1)).sum(), (0, 1))),
        [x, y],
    )


def ensemble() -> Iterator[Program]:
    """16 networks of 32 over 128 points, by vmap."""

    def program(lib: Any, vmap: Any) -> Any:
        one = vmap(lambda v, w, x: lib.tanh(x @ v) @ w, (0, 0, None))
        return lambda v, w, x: (one(v, w, x) ** 2).mean()

    inputs = [normal(16, 1, 32), normal(16, 32, 1), normal(128, 1)]
    yield from both("ensemble of 16", program(ops, gc.vmap), program(jnp, jax.vmap), inputs, (0, 1))


PROGRAMS = {
    f.__name__: f
    for f in (springs, kalman, fit, tensor_products, matrices, process, pairs, ensemble)
}


def leaves(result: Any) -> list[np.ndarray]:
    results = result if isinstance(result, (tuple, list)) else [result]
    return [np.asarray(r) for r in results]


def seconds_of(f: Callable[..., Any], inputs: list[Any]) -> float:
    start = time.perf_counter()
    leaves(f(*inputs))
    return time.perf_counter() - start


def compare(program: Program, seconds: float) -> None:
    name, ours, theirs, arrays = program
    mine, others = [gc.Tensor(a) for a in arrays], [jnp.asarray(a) for a in arrays]
    first = seconds_of(ours, mine), seconds_of(theirs, others)
    apart = max(
        float(np.abs(a - b).max() / np.abs(b).max())
        for a, b in zip(leaves(ours(*mine)), leaves(theirs(*others)), strict=True)
    )
    if apart > 1e-2:
        raise AssertionError(f"{name}: results differ by {apart:.1e} of the largest")
    times: tuple[list[float], list[float]] = ([], [])
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        times[0].append(seconds_of(ours, mine))
        times[1].append(seconds_of(theirs, others))
    a, b = (1e3 * statistics.median(t) for t in times)
    print(
        f"| {name} | {a:.3g} | {b:.3g} | {a / b:.2f} | {first[0]:.2f} | {first[1]:.2f} | {apart:.0e} |",
        flush=True,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help=", ".join(PROGRAMS))
    parser.add_argument("--seconds", type=float, default=4)
    options = parser.parse_args()
    print("| program | gradcell, ms | JAX, ms | ratio | first call, s | JAX's | apart |")
    print("|---|---|---|---|---|---|---|")
    for chosen in options.programs or PROGRAMS:
        if chosen not in PROGRAMS:
            parser.error(f"there is no program {chosen}; there are {', '.join(PROGRAMS)}")
        for program in PROGRAMS[chosen]():
            compare(program, options.seconds)
