"""Small matrices, factorisations, broadcasts and contractions."""

from __future__ import annotations

from typing import Any

import numpy as np

from field import Made, program


@program("Levenberg-Marquardt, 50 parameters")
def fit(lib: Any, normal: Any) -> Made:
    """A step of it, with 200 points."""

    def apart(p: Any, x: Any, y: Any) -> Any:
        return (p[:25] * lib.tanh(x[:, None] * p[25:])).sum(1) - y

    def step(p: Any, x: Any, y: Any) -> Any:
        r, j = apart(p, x, y), lib.jacfwd(apart)(p, x, y)
        return p - lib.solve(j.T @ j + lib.diag(0 * p + 0.1), (j.T @ r)[:, None])[:, 0]

    x = np.linspace(0, 1, 200)
    return step, [normal(50), x, np.sin(6 * x)]


@program("Gaussian process, 500 points", (0, 1))
def process(lib: Any, normal: Any) -> Made:
    """Its evidence."""

    def evidence(scales: Any, x: Any, y: Any) -> Any:
        apart = ((x[:, None] - x[None]) ** 2 * lib.exp(scales)).sum(-1)
        root = lib.cholesky(lib.exp(-0.5 * apart) + lib.diag(0 * y + 0.1))
        z = lib.solve_triangular(root, y[:, None])
        return 0.5 * (z * z).sum() + lib.log(lib.diagonal(root)).sum()

    return evidence, [np.zeros(3), normal(500, 3), normal(500)]


@program("equivariant tensor products, 1,000 edges", (0, 1))
def tensor_products(lib: Any, normal: Any) -> Made:
    """16 channels of 9 components."""
    return lambda x, y, w: (lib.einsum("eua,eb,abk->euk", x, y, w) ** 2).mean(), [
        normal(1000, 16, 9), normal(1000, 9), normal(9, 9, 9),
    ]  # fmt: skip


def _small(n: int) -> None:
    """1,024 small matrices."""

    def positive(normal: Any) -> Any:
        a = normal(1024, n, n)
        return a @ np.swapaxes(a, 1, 2) + np.eye(n)

    def products(lib: Any, normal: Any) -> Made:
        return lambda a, b: a @ b, [normal(1024, n, n), normal(1024, n, n)]

    def inverses(lib: Any, normal: Any) -> Made:
        return lambda a: lib.inverse(a), [positive(normal)]

    def log_det(lib: Any, normal: Any) -> Made:
        return lambda a: lib.slogdet(a)[1].sum(), [positive(normal)]

    for make, name, wrt in (
        (products, "products", ()), (inverses, "inverses", ()), (log_det, "log determinants", (0,)),
    ):  # fmt: skip
        make.__name__ += str(n)
        program(f"1,024 {name}, {n} x {n}", wrt)(make)


for _n in (3, 4, 8):
    _small(_n)


@program("products of all pairs, 50 x 2,000")
def pair_products(lib: Any, normal: Any) -> Made:
    return lambda x, y: (x[:, None] * y).sum(-1), [normal(50, 16), normal(2000, 16)]


@program("distances of all pairs, 50 x 2,000")
def pair_distances(lib: Any, normal: Any) -> Made:
    return lambda x, y: ((x[:, None] - y) ** 2).sum(-1), [normal(50, 16), normal(2000, 16)]


@program("kernel of all pairs, 50 x 2,000", (0, 1))
def kernel(lib: Any, normal: Any) -> Made:
    return lambda x, y: lib.exp(-0.1 * ((x[:, None] - y) ** 2).sum(-1)).sum(), [
        normal(50, 16), normal(2000, 16),
    ]  # fmt: skip
