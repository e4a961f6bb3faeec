"""Products of tensors: matmul and its kin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcell._core import Tensor, float32, float64, ops as _ops
from gradcell.base import arguments, bad_type, bad_value
from gradcell.ops.arrays import shaping
from gradcell.ops.decorators import method, one_plan

__all__ = ["addmm", "bmm", "dense", "dot", "ger", "inner", "matmul", "mm", "outer", "tensor_dot"]


@method(tensor2="other")
def matmul(input: Any, other: Any) -> Tensor:
    """The matrix product, with the rules of NumPy's matmul.

    input: [..., M, K] or [K]; other: [..., K, N] or [K]; both in their common dtype. Leading
    dimensions broadcast; a vector counts as a row on the left, as a column on the right, and its
    dimension is not in the result. Raises ValueError if the shapes do not multiply.
    """
    a = arguments.beside(input, other) if isinstance(other, Tensor) else input
    b = arguments.beside(other, input) if isinstance(input, Tensor) else other
    return _ops.matmul(a, b)


@method()
def mm(input: Any, mat2: Any) -> Tensor:
    """The product of two matrices, [M, K] by [K, N]. Raises ValueError for other ranks."""
    a, b = arguments.tensor(input, "mm"), arguments.tensor(mat2, "mm", "mat2")
    if a.ndim != 2 or b.ndim != 2:
        bad_value(f"mm: two matrices are needed, got shapes {list(a.shape)} and {list(b.shape)}")
    return _ops.matmul(a, b)


@method()
def bmm(input_x: Any, mat2: Any) -> Tensor:
    """The matrix products of two batches: [..., M, K] by [..., K, N], leading dimensions broadcast.

    Raises ValueError for vectors and numbers.
    """
    a, b = arguments.tensor(input_x, "BatchMatMul"), arguments.tensor(mat2, "BatchMatMul", "mat2")
    if a.ndim < 2 or b.ndim < 2:
        bad_value(
            f"BatchMatMul: inputs of at least two dimensions are needed, got shapes {list(a.shape)} and "
            f"{list(b.shape)}"
        )
    return _ops.matmul(a, b)


@method()
def dot(input: Any, other: Any) -> Tensor:
    """Sums of products over input's last dimension and other's last but one.

    Two vectors give a scalar; otherwise the result has input.shape[:-1] + other.shape without the
    summed dimension.
    """
    a, b = arguments.tensor(input, "dot"), arguments.tensor(other, "dot", "other")
    if a.ndim == 0 or b.ndim == 0:
        return _ops.mul(a, b)
    return tensor_dot(a, b, [[a.ndim - 1], [max(b.ndim - 2, 0)]])


@one_plan
def tensor_dot(x1: Any, x2: Any, axes: Any) -> Tensor:
    """Sums of products over the given dimensions of both tensors.

    axes: an integer n, for x1's last n and x2's first n dimensions, or two lists of dimensions. The
    result has x1's other dimensions, then x2's. Raises ValueError if the sizes differ.
    """
    a, b = arguments.tensor(x1, "tensor_dot", "x1"), arguments.tensor(x2, "tensor_dot", "x2")
    if isinstance(axes, int):
        if not 0 <= axes <= min(a.ndim, b.ndim):
            bad_value(
                f"tensor_dot: axes must be from 0 to {min(a.ndim, b.ndim)} for shapes {list(a.shape)} and "
                f"{list(b.shape)}, got {axes}"
            )
        left, right = list(range(a.ndim - axes, a.ndim)), list(range(axes))
    else:
        if not isinstance(axes, (tuple, list)) or len(axes) != 2:
            bad_type(f"tensor_dot: axes must be an int or two lists of dimensions, got {axes!r}")
        left = arguments.axes_of(axes[0], a.ndim, "tensor_dot")
        right = arguments.axes_of(axes[1], b.ndim, "tensor_dot")
    sizes = [a.shape[i] for i in left]
    if sizes != [b.shape[i] for i in right]:
        bad_value(
            f"tensor_dot: dimensions {left} of shape {list(a.shape)} and {right} of shape {list(b.shape)} "
            "have different sizes"
        )
    rest_a = [i for i in range(a.ndim) if i not in left]
    rest_b = [i for i in range(b.ndim) if i not in right]
    shape_a, shape_b = [a.shape[i] for i in rest_a], [b.shape[i] for i in rest_b]
    count = _product(sizes)
    if not rest_a and not rest_b and a.dtype == b.dtype and a.dtype in _EXACT:
        first, second = (_ops.transpose(t, o) for t, o in ((a, left), (b, right)))
        return _ops.reduce_sum(_ops.mul(first, second))
    rows = _ops.reshape(_ops.transpose(a, rest_a + left), [_product(shape_a), count])
    columns = _ops.reshape(_ops.transpose(b, right + rest_b), [count, _product(shape_b)])
    return _ops.reshape(_ops.matmul(rows, columns), shape_a + shape_b)


#: Whose products are not rounded before they are summed.
_EXACT = (float32, float64)


def _product(sizes: list[int]) -> int:
    total = 1
    for size in sizes:
        total *= size
    return total


@method()
def inner(input: Any, other: Any) -> Tensor:
    """Sums of products over the last dimensions of both tensors."""
    a, b = arguments.tensor(input, "inner"), arguments.tensor(other, "inner", "other")
    if a.ndim == 0 or b.ndim == 0:
        return _ops.mul(a, b)
    return tensor_dot(a, b, [[a.ndim - 1], [b.ndim - 1]])


@method("outer", "ger")
def outer(input: Any, vec2: Any) -> Tensor:
    """The outer product of two vectors: [N], [M] to [N, M]. The elements of another input count as one
    vector, and vec2 may be what broadcasts with it."""
    a, b = arguments.tensor(input, "outer"), arguments.tensor(vec2, "outer", "vec2")
    return _ops.mul(_ops.reshape(a, [a.size, 1]), b)


@method(one_plan)
def addmm(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """A matrix product added to input: $beta input + alpha mat1 mat2$."""
    product = mm(mat1, mat2)
    scaled = product if alpha == 1 else _ops.mul(product, alpha)
    base = arguments.beside(input, product)
    return _ops.add(base if beta == 1 else _ops.mul(base, beta), scaled)


ger: Callable[[Any, Any], Tensor] = outer


def dense(input: Any, weight: Any, bias: Any = None) -> Tensor:
    """A linear map: input times the transpose of weight, plus bias.

    weight: (out, in) or (in). bias: (out), a number beside weight (in), or None.
    """
    columns = arguments.tensor(weight, "dense", "weight")
    if columns.ndim > 1:
        columns = shaping.swapaxes(columns, -1, -2)
    out = matmul(input, columns)
    if bias is None:
        return out
    outputs = list(columns.shape[1:])
    return _ops.add(
        out, arguments.of_shape(bias, outputs, "dense", "bias", "the weight's outputs'")
    )
