"""mindspore.scipy.linalg, over gradcell.ops. overwrite_* and check_finite change nothing."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradcell import ops
from gradcell._core import Tensor, ops as _ops
from gradcell.base import arguments, bad_value
from gradcell.base.spelling import spelling
from gradcell.ops.matrices.factorisations import (
    _differentiable as differentiable,
    of_triangle,
    triangular_solution,
)

__all__ = [
    "block_diag", "cho_factor", "cho_solve", "cholesky", "det", "eigh", "expm", "inv", "solve",
    "solve_continuous_lyapunov", "solve_sylvester", "solve_triangular", "sqrtm",
]  # fmt: skip
__dir__ = sorted(__all__).copy


def triangular(a: Tensor, lower: bool, unit_diagonal: bool) -> Tensor:
    """The triangle of a, with ones on the diagonal if unit_diagonal."""
    part = ops.tril(a) if lower else ops.triu(a)
    if not unit_diagonal:
        return part
    eye = ops.eye(a.shape[-1], a.shape[-1], a.dtype)
    return _ops.add(_ops.mul(part, _ops.sub(1.0, eye)), eye)


@spelling(ops.inverse, ignored="overwrite_a check_finite")
def inv(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Tensor: ...
@spelling(ops.det, ignored="overwrite_a check_finite")
def det(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Tensor: ...


def cholesky(
    a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Tensor:
    """U with U' U = a for symmetric (Hermitian) positive definite matrices, of which the upper triangle is
    read; if lower L with L L' = a, of which the lower one is."""
    return ops.cholesky(a if lower else ops.adjoint(a), not lower)


def cho_factor(
    a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Tensor, bool]:
    """Return (the factor that cholesky gives, lower), for cho_solve.

    overwrite_a and check_finite have no effect. a: a symmetric (Hermitian) positive definite matrix.
    """
    return cholesky(a, lower), lower


def cho_solve(
    c_and_lower: Any, b: Any, overwrite_b: bool = False, check_finite: bool = True
) -> Tensor:
    """The solution of a x = b from what cho_factor gives for a."""
    factor, lower = c_and_lower
    columns = b if b.ndim > 1 else b.reshape(-1, 1)
    return ops.cholesky_solve(columns, factor, not lower).reshape(b.shape)


def solve_triangular(
    a: Any, b: Any, trans: Any = 0, lower: bool = False, unit_diagonal: bool = False,
    overwrite_b: bool = False, debug: Any = None, check_finite: bool = True,
) -> Tensor:  # fmt: skip
    """The solution of a x = b for a triangular a; of the transposed system for trans 1 or 'T', of the
    conjugate transposed one for 2 or 'C'.

    overwrite_b, debug and check_finite have no effect. lower: whether a is a lower triangle.
    unit_diagonal: whether the diagonal counts as ones.
    """
    part = triangular(a, lower, unit_diagonal)
    if trans not in (0, "N"):
        part = ops.adjoint(part) if trans in (2, "C") else ops.swapaxes(part, -2, -1)
        lower = not lower
    return triangular_solution(part if lower else ops.adjoint(part), b, not lower)


def eigh(
    a: Any, b: Any = None, lower: bool = True, eigvals_only: bool = False, overwrite_a: bool = False,
    overwrite_b: bool = False, turbo: bool = True, eigvals: Any = None, type: int = 1,
    check_finite: bool = True,
) -> Any:  # fmt: skip
    """(eigenvalues, eigenvectors) of the symmetric (Hermitian) matrix of which a triangle of a is one
    half; the derivative is by the elements of that triangle, and 0 by the others."""
    if b is not None:
        raise NotImplementedError("eigh: a second matrix is not supported")
    values, vectors = ops.eigh(of_triangle(a, lower))
    return values if eigvals_only else (values, vectors)


@spelling(ops.tensor_solve)
def solve(a: Any, b: Any) -> Tensor: ...
@spelling(ops.matrix_exp)
def expm(A: Any) -> Tensor: ...


def solve_sylvester(a: Any, b: Any, q: Any) -> Tensor:
    """The x with a x + x b = q.

    a: a matrix [m, m]. b: a matrix [n, n]. q: a matrix [m, n]. It is one system of m n equations, and takes
    memory for (m n)^2 numbers. Raises ValueError where a and -b have an eigenvalue in common.
    """
    m, n = q.shape
    if a.shape != (m, m) or b.shape != (n, n):
        bad_value(
            f"solve_sylvester: a and b must be square matrices of sizes {m} and {n} for q of shape "
            f"{[m, n]}, got {list(a.shape)} and {list(b.shape)}"
        )
    system = _ops.add(
        ops.kron(a, ops.eye(n, n, a.dtype)), ops.kron(ops.eye(m, m, b.dtype), ops.swapaxes(b, 0, 1))
    )
    return ops.tensor_solve(system, q.reshape(-1)).reshape(m, n)


def solve_continuous_lyapunov(a: Any, q: Any) -> Tensor:
    """The x with a x + x a' = q, for matrices [n, n].

    q: a matrix [n, n].
    """
    return solve_sylvester(a, ops.adjoint(a), q)


#: More steps than any matrix that has a root with some digits needs.
_MOST_STEPS = 60


def sqrtm(A: Any) -> Tensor:
    """The x with x x = A whose eigenvalues have positive real parts, for matrices [n, n] without eigenvalues
    that are negative numbers or 0.

    A: a matrix [n, n]. By Denman and Beavers' iteration in its product form, with scaling by determinants
    (Higham 2008, Functions of Matrices, equation 6.29). The derivative solves x dx + dx x = dA. Raises
    ValueError where the iteration does not end: A has no such root, or is close to such a matrix. Reads
    values, so a compiled function that calls it is retraced.
    """
    a = arguments.floating(arguments.tensor(A, "sqrtm", "A"))
    if a.ndim != 2 or a.shape[0] != a.shape[1]:
        bad_value(f"sqrtm: a square matrix is needed, got shape {list(a.shape)}")
    n, known = a.shape[0], _ops.stop_gradient(a)
    eye = ops.eye(n, n, a.dtype)
    small = n * float(
        np.finfo("float64" if a.dtype.name in ("float64", "complex128") else "float32").eps
    )
    root, product = known, known
    for _ in range(_MOST_STEPS):
        size = float(ops.slogdet(product)[1].asnumpy().real)
        scale = math.exp(-size / (2 * n)) if math.isfinite(size) else 1.0
        scale = scale if abs(math.log(scale)) > 1e-2 else 1.0
        if not math.isfinite(size):
            break
        back = ops.inverse(product) / scale**2
        root = (root * scale) @ (eye + back) * 0.5
        product = (eye + (product * scale**2 + back) * 0.5) * 0.5
        apart = float(ops.norm(product - eye).asnumpy().real)
        if not small <= apart < 1e8:
            break
    residual = float(ops.norm(root @ root - known).asnumpy().real)
    if not residual <= 1e4 * small * float(ops.norm(root).asnumpy().real) ** 2:
        bad_value(
            "sqrtm: the matrix has no root with eigenvalues of positive real parts, or hardly"
        )
    root = root + solve_sylvester(root, root, known - root @ root)

    def adjoint(xs: Any, outputs: Any, cotangents: Any) -> list[Tensor]:
        turned = ops.adjoint(outputs[0])
        return [solve_sylvester(turned, turned, cotangents[0])]

    return differentiable("sqrtm", [root], [a], adjoint)[0]


block_diag = ops.block_diag
