"""Products of matrices and vectors beyond matmul, and matrices made of parts."""

from __future__ import annotations

import itertools
import math
import string
from typing import Any

import numpy as np

from gradcell._core import Tensor, complex128, float64, ops as _ops
from gradcell.base import arguments, bad_value
from gradcell.ops.arrays import shaping
from gradcell.ops.decorators import method, one_plan, wide_plan
from gradcell.ops.elements import complex_numbers
from gradcell.ops.matrices import products
from gradcell.ops.matrices.norms import vector_norm

__all__ = [
    "addbmm", "addmv", "addr", "baddbmm", "batch_dot", "block_diag", "cdist", "cross", "einsum",
    "kron", "matrix_diag", "matrix_exp", "mv", "vander", "vecdot",
]  # fmt: skip


@one_plan
def mv(mat: Any, vec: Any) -> Tensor:
    """The product of a matrix [m, n] and a vector [n]."""
    a, v = arguments.tensor(mat, "mv", "mat"), arguments.tensor(vec, "mv", "vec")
    if a.ndim != 2 or v.ndim != 1:
        bad_value(f"mv: a matrix and a vector are needed, got {list(a.shape)} and {list(v.shape)}")
    return _ops.reshape(_ops.matmul(a, _ops.reshape(v, [v.size, 1])), [a.shape[0]])


def _plus(base: Any, product: Tensor, beta: Any, alpha: Any) -> Tensor:
    return _ops.add(_ops.mul(arguments.beside(base, product), beta), _ops.mul(product, alpha))


@method(one_plan)
def addmv(input: Any, mat: Any, vec: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """A matrix-vector product added to input: $beta input + alpha mat vec$."""
    return _plus(input, mv(mat, vec), beta, alpha)


@one_plan
def addr(x: Any, vec1: Any, vec2: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """An outer product added to x: $beta x + alpha vec1 vec2'$."""
    return _plus(x, products.outer(vec1, vec2), beta, alpha)


@method(one_plan)
def baddbmm(input: Any, batch1: Any, batch2: Any, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """Batched matrix products added to input: $beta input + alpha batch1 batch2$."""
    return _plus(input, products.bmm(batch1, batch2), beta, alpha)


@method(one_plan)
def addbmm(input: Any, batch1: Any, batch2: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """beta input + alpha times the sum of the products of all matrices."""
    return _plus(input, _ops.reduce_sum(products.bmm(batch1, batch2), 0), beta, alpha)


@one_plan
def vecdot(x: Any, y: Any, *, axis: int = -1) -> Tensor:
    """The sums of products along axis, with the conjugate of x if it is complex.

    y: a tensor that broadcasts with x.
    """
    return _ops.reduce_sum(_ops.mul(complex_numbers.conj(x), y), axis)


@one_plan
def kron(input: Any, other: Any) -> Tensor:
    """The Kronecker product: a block input[i, j] * other for each element of input."""
    a, b = arguments.tensor(input, "kron"), arguments.tensor(other, "kron", "other")
    rank = max(a.ndim, b.ndim)
    left = [1] * (rank - a.ndim) + list(a.shape)
    right = [1] * (rank - b.ndim) + list(b.shape)
    apart = _ops.reshape(a, [n for m in left for n in (m, 1)])
    spread = _ops.reshape(b, [n for m in right for n in (1, m)])
    return _ops.reshape(_ops.mul(apart, spread), [m * n for m, n in zip(left, right, strict=True)])


@method(wide_plan)
def cross(input: Any, other: Any, dim: Any = None) -> Tensor:
    """The vector products along dim, of size 3; None: along the first dimension of that size."""
    a, b = arguments.tensor(input, "cross"), arguments.tensor(other, "cross", "other")
    dims = np.broadcast_shapes(tuple(a.shape), tuple(b.shape))
    if dim is None and 3 in dims:
        dim = dims.index(3)
    axis = arguments.axis_of(dim, len(dims), "cross", "dim") if dim is not None else 0
    if not dims or dims[axis] != 3:
        bad_value(f"cross: dim {dim} of shape {list(dims)} is not of size 3")
    a, b = _ops.broadcast_to(a, list(dims)), _ops.broadcast_to(b, list(dims))
    first = _ops.mul(shaping.roll(a, -1, axis), shaping.roll(b, -2, axis))
    second = _ops.mul(shaping.roll(a, -2, axis), shaping.roll(b, -1, axis))
    return _ops.sub(first, second)


# Einstein's sums ----------------------------------------------------------------------------------


def _letters(equation: str, ranks: list[int]) -> tuple[list[str], str]:
    """The subscripts of each operand and of the result, '...' as capital letters of their own."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        bad_value(f"einsum: {equation!r} is for {len(terms)} operands, not {len(ranks)}")
    used = set(left + right)
    spare = [c for c in string.ascii_letters if c not in used]
    hidden = [
        r - len(t.replace("...", "")) if "..." in t else 0
        for t, r in zip(terms, ranks, strict=True)
    ]
    widest = "".join(spare[: max(hidden, default=0)])
    full = [t.replace("...", widest[len(widest) - h :]) for t, h in zip(terms, hidden, strict=True)]
    for term, rank in zip(full, ranks, strict=True):
        if len(term) != rank or not term.isalpha() * (rank > 0) + (rank == 0):
            bad_value(f"einsum: {equation!r} does not fit an operand of {rank} dimensions")
    if not arrow:
        together = "".join(full)
        right = "..." * bool(widest) + "".join(
            sorted(c for c in set(together) if together.count(c) == 1 and c not in widest)
        )
    return full, right.replace("...", widest)


def _check_sizes(equation: str, pairs: list[tuple[Tensor, str]]) -> None:
    """A letter has one size, but for 1, which is spread over operands."""
    sizes: dict[str, int] = {}
    for x, letters in pairs:
        own: dict[str, int] = {}
        for c, n in zip(letters, x.shape, strict=True):
            here, there = own.setdefault(c, n), sizes.get(c, 1)
            if n != here or (n != there and 1 not in (n, there)):
                bad_value(
                    f"einsum: {equation!r} has '{c}' of sizes {there if n == here else here} and {n}, in "
                    f"operands of shapes {', '.join(str(list(x.shape)) for x, _ in pairs)}"
                )
            sizes[c] = n if there == 1 else there


def _diagonal(x: Tensor, letters: str) -> tuple[Tensor, str]:
    """Letters that repeat within one operand taken together."""
    for c in dict.fromkeys(letters):
        while letters.count(c) > 1:
            i = letters.index(c)
            j = letters.index(c, i + 1)
            x = shaping.diagonal(x, 0, i, j)
            letters = letters[:i] + letters[i + 1 : j] + letters[j + 1 :] + c
    return x, letters


def _contract(x: Tensor, a: str, y: Tensor, b: str, kept: set[str]) -> tuple[Tensor, str]:
    """One product of matrices in batches: letters of both that are kept, of one, summed."""
    size = dict(zip(a + b, (*x.shape, *y.shape), strict=True))
    size = {
        c: max(n, *(t.shape[s.index(c)] for t, s in ((x, a), (y, b)) if c in s))
        for c, n in size.items()
    }
    both = [c for c in a if c in b and c in kept]
    summed = [c for c in a if c in b and c not in kept]
    rows, columns = [c for c in a if c not in b], [c for c in b if c not in a]

    def matrix(t: Tensor, letters: str, first: list[str], second: list[str]) -> Tensor:
        order = both + first + second
        t = _ops.transpose(t, [letters.index(c) for c in order])
        t = _ops.broadcast_to(t, [size[c] for c in order])
        count = [
            int(np.prod([size[c] for c in part], dtype=np.int64)) for part in (both, first, second)
        ]
        return _ops.reshape(t, count)

    out = _ops.matmul(matrix(x, a, rows, summed), matrix(y, b, summed, columns))
    result = both + rows + columns
    return _ops.reshape(out, [size[c] for c in result]), "".join(result)


def _sum_out(x: Tensor, letters: str, kept: set[str]) -> tuple[Tensor, str]:
    """Without the letters that nothing else has."""
    lone = [i for i, c in enumerate(letters) if c not in kept]
    if lone:
        x = _ops.reduce_sum(x, lone)
    return x, "".join(c for c in letters if c in kept)


def _order(pairs: list[tuple[Tensor, str]], result: str) -> list[tuple[int, ...]]:
    """Return which operands become one, which is put behind the others, time after time."""
    if len(pairs) < 3:
        return [tuple(range(len(pairs)))]
    shapes = [np.broadcast_to(np.float32(0), tuple(x.shape)) for x, _ in pairs]
    search = "optimal" if len(pairs) < 6 else "greedy"  # of 6 there are 2,700 orders
    equation = f"{','.join(letters for _, letters in pairs)}->{result}"
    return list(np.einsum_path(equation, *shapes, optimize=(search, 2**62))[0][1:])


@one_plan
def einsum(equation: str, *operands: Any) -> Tensor:
    """Sums of products by Einstein's convention: 'ij,jk->ik' is the matrix product.

    operands: a tensor for each part of the equation.

    A letter names a dimension; those that are not after the arrow are summed over; without an arrow
    the result has the letters that occur once, in alphabetic order. '...' stands for leading
    dimensions that broadcast. More than two operands are contracted in the order with the fewest
    multiplications that is found (numpy.einsum_path). Raises ValueError for an equation that does not fit.
    """
    if len(operands) == 1 and isinstance(operands[0], (tuple, list)):
        operands = tuple(operands[0])
    xs = [arguments.tensor(x, "einsum", f"operands[{i}]") for i, x in enumerate(operands)]
    terms, result = _letters(equation, [x.ndim for x in xs])
    if len(set(result)) != len(result) or not set(result) <= set("".join(terms)):
        bad_value(
            f"einsum: {equation!r} has letters after the arrow that repeat, or that no operand has"
        )
    pairs = list(zip(xs, terms, strict=True))
    _check_sizes(equation, pairs)
    pairs = list(itertools.starmap(_diagonal, pairs))
    for taken in _order(pairs, result):
        first, *others = [pairs[i] for i in taken]
        pairs = [pair for i, pair in enumerate(pairs) if i not in taken]
        for i, second in enumerate(others):
            later = set(result).union(*(t for _, t in (*pairs, *others[i + 1 :])))
            (x, a), (y, b) = first, second
            x, a = _sum_out(x, a, later | set(b))
            y, b = _sum_out(y, b, later | set(a))
            first = _contract(x, a, y, b, later)
        pairs.append(first)
    x, letters = _sum_out(*pairs[0], set(result))
    return _ops.transpose(x, [letters.index(c) for c in result]) if result else x


# Matrices of parts --------------------------------------------------------------------------------


@one_plan
def block_diag(*inputs: Any) -> Tensor:
    """Matrices one after the other along the diagonal, zeros around them; vectors as rows.

    inputs: matrices, vectors or numbers.
    """
    blocks = []
    for x in arguments.tensors(inputs, "block_diag", "inputs"):
        blocks.append(x if x.ndim == 2 else _ops.reshape(x, [1, x.size]))
    if not blocks:
        bad_value("block_diag: needs at least one matrix")
    columns, at, bands = sum(b.shape[1] for b in blocks), 0, []
    for b in blocks:
        bands.append(_ops.slice_scatter(b, [b.shape[0], columns], [0, at], [1, 1]))
        at += b.shape[1]
    return _ops.concat(bands, 0)


@one_plan
def matrix_diag(
    x: Any, k: Any = 0, num_rows: int = -1, num_cols: int = -1, padding_value: Any = 0,
    align: str = "RIGHT_LEFT",
) -> Tensor:  # fmt: skip
    """Matrices with x's last dimension on the k-th diagonal and padding_value elsewhere.

    k: a number, or (lowest, highest) where x's last two dimensions are the diagonals, the highest
    first, aligned by `align` for those that lie above and below the main one. num_rows, num_cols:
    the matrices' size, the smallest that fits for -1. padding_value: a number. align: 'RIGHT_LEFT',
    'LEFT_RIGHT', 'LEFT_LEFT' or 'RIGHT_RIGHT', where shorter diagonals above the main one, and
    below it, begin or end. Raises ValueError if the diagonals do not fit.
    """
    t = arguments.tensor(x, "matrix_diag", "x")
    arguments.axis_in(t, -1, "matrix_diag")
    ks = arguments.integers(k, "matrix_diag", "k")
    low, high = ks[0], ks[-1]
    arguments.one_of(
        align, ("RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT"), "matrix_diag", "align"
    )
    if low == high and (len(ks) == 1 or t.ndim < 2 or t.shape[-2] != 1):
        t = _ops.reshape(t, [*t.shape[:-1], 1, t.shape[-1]])
    longest = t.shape[-1]
    rows, cols = (
        arguments.integer(_number(n), "matrix_diag", "num_rows") for n in (num_rows, num_cols)
    )
    least_rows, least_cols = longest - min(high, 0), longest + max(low, 0)
    if rows == -1 and cols == -1:
        rows = cols = max(least_rows, least_cols)
    rows = least_rows if rows == -1 else rows
    cols = least_cols if cols == -1 else cols
    fits = t.shape[-2] == 1 and 0 < longest == min(rows + min(low, 0), cols - max(low, 0))
    if low == high and fits and isinstance(padding_value, (int, float)) and padding_value == 0:
        lead = list(t.shape[:-2])
        first = low if low >= 0 else -low * cols
        line = _ops.reshape(t, [*lead, longest])
        steps = [*[1] * len(lead), cols + 1]
        flat = _ops.slice_scatter(line, [*lead, rows * cols], [*[0] * len(lead), first], steps)
        return _ops.reshape(flat, [*lead, rows, cols])
    index = np.full((rows, cols), -1)
    for d in range(low, high + 1):
        count = min(rows + min(d, 0), cols - max(d, 0))
        if count > longest or count <= 0 or t.shape[-2] != high - low + 1:
            bad_value(
                f"matrix_diag: diagonals of shape {list(t.shape)} do not fit {rows} by {cols} matrices and k "
                f"{k}"
            )
        side = align.split("_")[0 if d >= 0 else 1]
        start = longest - count if side == "RIGHT" else 0
        i = np.arange(count)
        index[i - min(d, 0), i + max(d, 0)] = (high - d) * longest + start + i
    flat = _ops.reshape(t, [*t.shape[:-2], t.shape[-2] * longest])
    taken = _ops.gather(flat, Tensor(np.maximum(index, 0).reshape(-1)), flat.ndim - 1)
    out = _ops.reshape(taken, [*t.shape[:-2], rows, cols])
    return _ops.where(Tensor(index >= 0), out, _ops.cast(padding_value, t.dtype))


def _number(value: Any) -> Any:
    return value.item() if isinstance(value, Tensor) else value


@one_plan
def vander(x: Any, N: Any = None) -> Tensor:
    """The powers of a vector's elements as columns, x^(N-1) first, 1 last.

    N: the number of columns, by default the length of x.
    """
    t = arguments.of_rank(x, (1,), "vander")
    n = t.shape[0] if N is None else arguments.integer(N, "vander", "N")
    if n <= 0:
        return _ops.full([t.shape[0], 0], 0, t.dtype)
    powers = _ops.full([t.shape[0], 1], 1, t.dtype)
    square = _ops.reshape(t, [t.shape[0], 1])
    while (known := powers.shape[1]) < n:  # twice as many: those so far times the next power
        count = min(known, n - known)
        more = _ops.mul(shaping._window(powers, 1, known - count, count), square)
        powers = _ops.concat([more, powers], 1)
        square = _ops.mul(square, square)
    return powers


@one_plan
def batch_dot(x1: Any, x2: Any, axes: Any = None) -> Tensor:
    """Sums of products along one dimension of each, matrix by matrix of a batch.

    axes: an integer for both, or one for each; by default x1's last and x2's last but one (its last, if
    it has two dimensions). Raises ValueError if the sizes differ.
    """
    a, b = arguments.tensor(x1, "batch_dot", "x1"), arguments.tensor(x2, "batch_dot", "x2")
    if axes is None:
        axes = (a.ndim - 1, max(b.ndim - 2, 1))
    i, j = (axes, axes) if isinstance(axes, int) else axes
    i, j = (arguments.axis_of(k, t.ndim, "batch_dot", "axes") for k, t in ((i, a), (j, b)))
    if (
        a.ndim < 2
        or b.ndim < 2
        or 0 in (i, j)
        or a.shape[i] != b.shape[j]
        or a.shape[0] != b.shape[0]
    ):
        bad_value(f"batch_dot: axes {axes} do not fit shapes {list(a.shape)} and {list(b.shape)}")
    left, right = shaping.movedim(a, i, -1), shaping.movedim(b, j, 1)
    n, k = left.shape[0], left.shape[-1]
    rest_a, rest_b = list(left.shape[1:-1]), list(right.shape[2:])
    left = _ops.reshape(left, [n, math.prod(rest_a), k])
    product = _ops.matmul(left, _ops.reshape(right, [n, k, math.prod(rest_b)]))
    dims = [n, *rest_a, *rest_b]
    return _ops.reshape(product, dims if len(dims) > 1 else [n, 1])


def cdist(x1: Any, x2: Any, p: float = 2.0) -> Tensor:
    """The distances of all points of x1 (..., n, d) from all of x2 (..., m, d): (..., n, m), by the p-norm of
    their difference, p from 0 (how many coordinates differ) to inf. Raises ValueError for a negative p."""
    a, b = (
        arguments.floating(arguments.tensor(t, "cdist", n)) for t, n in ((x1, "x1"), (x2, "x2"))
    )
    order = arguments.number(p, "cdist", "p")
    if order < 0:
        bad_value(f"For 'cdist', the 'p' must not be negative, but got {p}")
    if not a.ndim or not b.ndim or a.shape[-1] != b.shape[-1]:
        bad_value(
            f"For 'cdist', points of as many coordinates are needed, but got shapes {list(a.shape)} and "
            f"{list(b.shape)}"
        )
    differences = _ops.sub(shaping.expand_dims(a, -2), shaping.expand_dims(b, -3))
    return vector_norm(differences, order, -1, False)


_TAYLOR, _HALVINGS = (
    18,
    12,
)  #: terms, and how often the matrix is halved and its exponential squared


@one_plan
def matrix_exp(input: Any) -> Tensor:
    """The exponential of matrices [..., n, n]: the power series of the matrix over 2^12, squared twelve times
    (Moler and Van Loan 2003, Nineteen dubious ways, section 3), in float64 or complex128; for norms up to
    4,096."""
    x = arguments.floating(arguments.tensor(input, "matrix_exp"))
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        bad_value(f"matrix_exp: square matrices are needed, got shape {list(x.shape)}")
    wide = _ops.cast(x, complex128 if x.dtype.is_complex else float64)
    part = _ops.mul(wide, 0.5**_HALVINGS)
    one = _ops.cast(Tensor(np.eye(x.shape[-1])), wide.dtype)
    total: Any = one
    for k in range(_TAYLOR, 0, -1):
        total = _ops.add(one, _ops.mul(_ops.matmul(part, total), 1 / k))
    for _ in range(_HALVINGS):
        total = _ops.matmul(total, total)
    return _ops.cast(_ops.broadcast_to(total, list(x.shape)), x.dtype)
