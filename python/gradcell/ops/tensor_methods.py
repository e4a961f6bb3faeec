"""Tensor's methods over the ops: one table of names, each with an op and the spellings it takes.

MindSpore's methods come in two spellings, (axis, keepdims) and (dim, keepdim); both are taken.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from gradcell import _core, ops
from gradcell._core import Tensor
from gradcell.base import arguments
from gradcell.base.convert import to_dtype
from gradcell.base.location import where as _where
from gradcell.ops.arrays import shaping

_DIM = {"axis": "dim"}
_AXIS = {"dim": "axis"}
_DIM_KEEPDIM = {"axis": "dim", "keepdims": "keepdim", "keep_dims": "keepdim"}
_AXIS_KEEPDIMS = {"dim": "axis", "keepdim": "keepdims", "keep_dims": "keepdims"}
_AXIS_KEEP_DIMS = {"dim": "axis", "keepdim": "keep_dims", "keepdims": "keep_dims"}


def _spelled(function: Callable[..., Any], spellings: dict[str, str]) -> Callable[..., Any]:
    """The function as a method whose keywords may have other names."""

    @functools.wraps(function)
    def method(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        if kwargs:
            renamed = {spellings.get(k, k): v for k, v in kwargs.items()}
            if len(renamed) < len(kwargs):
                raise TypeError(
                    f"{function.__name__}: an argument is given under two names: "
                    f"{', '.join(kwargs)}{_where()}"
                )
            kwargs = renamed
        return function(self, *args, **kwargs)

    method._spellings = spellings  # type: ignore[attr-defined]  # for type checkers' stubs
    return method


def _listed(op: str, values: tuple[Any, ...]) -> list[int]:
    """Integers given one by one, or as one tuple or list."""
    if len(values) == 1 and not isinstance(values[0], int):
        return arguments.integers(values[0], op, "argument")
    return arguments.integers(values, op, "argument")


# Methods that are not an op's function ------------------------------------------------------------


def sum_(
    self: Tensor, dim: Any = None, keepdim: Any = False, keepdims: Any = None, initial: Any = None,
    *, dtype: Any = None, axis: Any = None,
) -> Tensor:  # fmt: skip
    """The sum. sum(dim, keepdim, dtype=) or sum(axis, dtype, keepdims, initial)."""
    if isinstance(keepdim, _core.DType) or (keepdim is None and keepdims is not None):
        keepdim, dtype = False, keepdim if dtype is None else dtype
    keep = keepdim if keepdims is None else keepdims
    out = ops.sum(self, dim if axis is None else axis, bool(keep), dtype=dtype)
    return out if initial is None else _core.ops.add(out, initial)


def _extremum(name: str, with_index: Callable[..., Any], alone: Callable[..., Any]) -> Any:
    def method(
        self: Tensor, dim: Any = None, keepdim: bool = False, *, axis: Any = None,
        keepdims: bool = False, initial: Any = None, where: Any = True,
        return_indices: bool = False,
    ) -> Any:  # fmt: skip
        mask = None if where is True else where
        if dim is not None:
            return with_index(self, dim, keepdim or keepdims, initial=initial, where=mask)
        if return_indices:
            return with_index(self, axis, keepdim or keepdims, initial=initial, where=mask)
        return alone(self, axis, keepdim or keepdims, initial=initial, where=mask)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = (
        f"The {'largest' if name == 'max' else 'smallest'} element: {name}() of all, "
        f"{name}(axis=a) along a; {name}(d), {name}(dim=d) and return_indices=True give "
        "(values, indices)."
    )
    return method


def squeeze(self: Tensor, *axes: Any, axis: Any = None, dim: Any = None) -> Tensor:
    """Without the dimensions of size 1, or without those given that have size 1."""
    if not axes:
        axes = (axis if dim is None else dim,)
    return ops.squeeze(self, None if axes[0] is None else _listed("Squeeze", axes))


def reshape(self: Tensor, *shape: Any) -> Tensor:
    """The elements, in order, in another shape: integers, or one tuple or list; -1 once."""
    return _core.views.reshape(self, _listed("Reshape", shape))


def transpose(self: Tensor, *axes: Any) -> Tensor:
    """The dimensions reversed; or in the order of axes, one by one or as a tuple; or, for two axes
    of a tensor of more dimensions, those two exchanged."""
    order = _listed("Transpose", axes) if axes and axes[0] is not None else []
    if not order:
        return _core.views.transpose(self, list(range(self.ndim))[::-1])
    if len(order) == 2 and self.ndim > 2 and len(axes) == 2:
        return ops.swapaxes(self, *order)
    return _core.views.transpose(self, order)


def permute(self: Tensor, *dims: Any) -> Tensor:
    """With the dimensions in the given order."""
    return _core.views.transpose(self, _listed("Transpose", dims))


def broadcast_to(self: Tensor, *shape: Any) -> Tensor:
    """Broadcast to a shape, integers or one tuple; -1 keeps a dimension."""
    return _core.views.broadcast_to(self, _listed("BroadcastTo", shape))


def flatten(self: Tensor, start_dim: Any = 0, end_dim: int = -1, *, order: str = "C") -> Tensor:
    """With the dimensions from start_dim to end_dim joined to one."""
    if isinstance(start_dim, str):
        start_dim, order = 0, start_dim
    return shaping.flattened(self, order, start_dim, end_dim)


def ravel(self: Tensor) -> Tensor:
    """All elements as a vector."""
    return _core.views.reshape(self, [self.size])


def repeat(self: Tensor, *repeats: Any) -> Tensor:
    """Repeated as a whole so many times along each dimension."""
    return ops.tile(self, tuple(_listed("repeat", repeats)))


def flip(self: Tensor, *dims: Any) -> Tensor:
    """With the order of elements reversed along dims."""
    return ops.flip(self, _listed("flip", dims))


def cumsum(self: Tensor, axis: Any = None, dtype: Any = None) -> Tensor:
    """The sums up to each element along axis; None: of the flattened tensor.

    bool and integers below int64 are added up as int32, unless dtype says otherwise.
    """
    x = ravel(self) if axis is None else self
    wide = ("int64", "uint16", "uint32", "uint64")
    if dtype is None and not x.dtype.is_floating and x.dtype.name not in wide:
        dtype = _core.int32
    return ops.cumsum(x, 0 if axis is None else axis, dtype)


def where(self: Tensor, condition: Any, y: Any) -> Tensor:
    """self where condition is true, else y."""
    return _core.ops.where(condition, self, y)


def gather(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """gather(dim, index): the elements at index along dim, as ops.gather_elements;
    gather(input_indices, axis, batch_dims=0): the slices along axis, as ops.gather."""
    slices = "input_indices" in kwargs or (args and isinstance(args[0], Tensor))
    return (ops.gather if slices else ops.gather_elements)(self, *args, **kwargs)


def to(self: Tensor, dtype: Any = None, *args: Any, **kwargs: Any) -> Tensor:
    """In another dtype."""
    return _core.ops.cast(self, self.dtype if dtype is None else to_dtype(dtype))


def assign_value(self: Tensor, value: Tensor) -> Tensor:
    """Takes over another tensor's elements, of the same shape. Returns itself."""
    if self._is_variable:
        ops.assign(self, value)
        return self
    if tuple(value.shape) != tuple(self.shape):
        raise ValueError(
            f"assign_value: shapes {list(self.shape)} and {list(value.shape)} differ{_where()}"
        )
    _core.write(self, value)
    return self


def _of_numbers(self: Tensor, other: Any, function: Callable[..., Tensor]) -> Tensor:
    """function, where one of both is NaN the other."""
    result = function(self, other)
    if not result.dtype.is_floating:
        return result
    a, b = (ops.cast(x, result.dtype) if isinstance(x, Tensor) else x for x in (self, other))
    b = b if isinstance(b, Tensor) else Tensor(b, result.dtype)
    return ops.where(ops.isnan(a), b, ops.where(ops.isnan(b), a, result))


def _in_place(name: str, function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The op with its result taken over by the tensor itself, in the tensor's dtype."""

    @functools.wraps(function)
    def method(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        new = function(self, *args, **kwargs)
        if tuple(new.shape) != tuple(self.shape):
            raise ValueError(
                f"{name}: the result's shape {list(new.shape)} is not that of the tensor, "
                f"{list(self.shape)}{_where()}"
            )
        return assign_value(self, new)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"{name[:-1]} in place. Returns the tensor."
    return method


def _copied(self: Tensor, src: Any, non_blocking: bool = False) -> Tensor:
    source = src if isinstance(src, Tensor) else Tensor(src, self.dtype)
    return ops.broadcast_to(source, self.shape)


def _scaled(self: Tensor, other: Any, alpha: Any, op: str) -> Any:
    """alpha * other, in the dtype that it takes beside the tensor."""
    if isinstance(alpha, (bool, int, float)) and alpha == 1:
        return other
    y = arguments.operand(other, op, "other", self)
    if isinstance(alpha, float) and not (self.dtype.is_floating or y.dtype.is_floating):
        raise TypeError(
            f"{op}: alpha is a float, but the tensors are of {self.dtype} and {y.dtype}{_where()}"
        )
    return _core.ops.mul(y, alpha)


def diag(self: Tensor, diagonal: int = 0) -> Tensor:
    """The elements on the diagonal of zeros, as ops.diag. Raises ValueError for another diagonal."""
    if diagonal != 0:
        raise ValueError(
            f"For 'Tensor.diag', the argument 'diagonal' should be '0', but got {diagonal}{_where()}"
        )
    return ops.diag(self)


def index_add(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """index_add(dim, index, source, alpha=1): this tensor with alpha source added along dim at index;
    index_add(indices, y, axis, use_lock=True, check_index_bound=True): as ops.index_add."""
    if "indices" in kwargs or (args and isinstance(args[0], Tensor)):
        return _added_at(self, *args, **kwargs)
    return _source_added(self, *args, **kwargs)


def _source_added(self: Tensor, dim: int, index: Any, source: Any, *, alpha: Any = 1) -> Tensor:
    return ops.index_add(self, index, source if alpha == 1 else _core.ops.mul(source, alpha), dim)


def _added_at(
    self: Tensor, indices: Any, y: Any, axis: Any, use_lock: bool = True,
    check_index_bound: bool = True,
) -> Tensor:  # fmt: skip
    return ops.index_add(self, indices, y, axis)


def itemset(self: Tensor, *args: Any) -> Tensor:
    """A copy with one element replaced: itemset(place, value), place a number or coordinates; of one
    element, itemset(value). Raises IndexError for a place that is not there."""
    if len(args) not in (1, 2):
        raise ValueError(
            f"'Tensor.itemset()' must have at least one and at most 2 arguments, got {len(args)}{_where()}"
        )
    if len(args) == 1 and tuple(self.shape) != (1,):
        raise IndexError(
            "Only tensor which shape is (1,) support 1 arg that means omit index, but the tensor shape is "
            f"{tuple(self.shape)}{_where()}"
        )
    place, value = (0, *args)[-2:]
    at = (
        place
        if isinstance(place, (tuple, list))
        else np.unravel_index(_within(place, self.size), tuple(self.shape))
    )
    out = self.copy()
    out[tuple(int(i) for i in at)] = value
    return out


def _within(place: int, size: int) -> int:
    if not -size <= place < size:
        raise IndexError(f"index {place} is out of bounds for axis 0 with size {size}{_where()}")
    return place % size


def unique(
    self: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False,
    dim: Any = None,
) -> Any:  # fmt: skip
    """The different elements, or slices along dim, in order; with return_inverse the place of each among
    them, with return_counts how often each occurs. Reads values, so a compiled function that calls
    it is retraced."""
    given = _core.views.reshape(self, [self.size]) if dim is None else self
    axis = arguments.axis_of(0 if dim is None else dim, given.ndim, "unique", "dim")
    _, first, inverse, counts = np.unique(
        given.asnumpy(), return_index=True, return_inverse=True, return_counts=True, axis=axis
    )
    found = ops.gather(given, Tensor(first), axis)
    place = Tensor(inverse.reshape(self.shape if dim is None else -1).astype(np.int64))
    parts = [found, *[place] * return_inverse, *[Tensor(counts.astype(np.int64))] * return_counts]
    return tuple(parts) if len(parts) > 1 else found


def add(self: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
    """self + alpha * other; other: a tensor or number, which broadcasts. Raises TypeError for a
    float alpha beside integers."""
    return _core.ops.add(self, _scaled(self, other, alpha, "add"))


def sub(self: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
    """self - alpha * other; otherwise like add."""
    return _core.ops.sub(self, _scaled(self, other, alpha, "sub"))


def matrix_determinant(self: Tensor) -> Tensor:
    """As ops.det."""
    return ops.det(self)


def log_matrix_determinant(self: Tensor) -> Any:
    """As ops.slogdet."""
    return ops.slogdet(self)


def inplace_update(self: Tensor, v: Any, indices: Any) -> Tensor:
    """As ops.inplace_update."""
    return ops.inplace_update(self, v, indices)


def sum_to_size(self: Tensor, *size: Any) -> Tensor:
    """The sum over dimensions that broadcasting to this shape has repeated."""
    dims = _listed("sum_to_size", size)
    extra = self.ndim - len(dims)
    fits = extra >= 0 and all(
        n in (1, m) for n, m in zip(dims, self.shape[max(extra, 0) :], strict=False)
    )
    if not fits:
        raise ValueError(
            f"sum_to_size: a tensor of shape {list(self.shape)} cannot be summed to shape {dims}{_where()}"
        )
    axes = [*range(extra), *(i + extra for i, n in enumerate(dims) if n == 1)]
    out = _core.ops.reduce_sum(self, axes, True) if axes else self
    return _core.ops.reshape(out, dims)


def _new(value: int) -> Callable[..., Tensor]:
    def method(self: Tensor, *size: Any, dtype: Any = None) -> Tensor:
        if len(size) == 2 and isinstance(size[0], (tuple, list)):
            dtype, size = size[1], (size[0],)
        return ops.full(_listed("full", size), value, dtype=arguments.dtype_or(dtype, self.dtype))

    method.__doc__ = f"A tensor of {value}s, of this tensor's dtype unless another is given."
    return method


def _said(text: str, function: Callable[..., Any]) -> Callable[..., Any]:
    function.__doc__ = text
    return function


_reshape_as = _said(
    "The elements in other's shape. Raises ValueError if their numbers differ.",
    lambda self, other: reshape(self, tuple(other.shape)),
)


# The table ----------------------------------------------------------------------------------------

#: name: (op, {another spelling of a keyword: the op's}).
_SPELLED: dict[str, tuple[Callable[..., Any], dict[str, str]]] = {
    "mean": (ops.mean, _AXIS_KEEP_DIMS),
    "prod": (ops.prod, _AXIS_KEEP_DIMS),
    "all": (ops.all, _AXIS_KEEP_DIMS),
    "any": (ops.any, _AXIS_KEEP_DIMS),
    "amax": (ops.amax, _AXIS_KEEPDIMS),
    "amin": (ops.amin, _AXIS_KEEPDIMS),
    "argmax": (ops.argmax, _DIM_KEEPDIM),
    "argmin": (ops.argmin, _AXIS_KEEPDIMS),
    "var": (ops.var, _AXIS_KEEPDIMS),
    "std": (ops.std, _AXIS_KEEPDIMS),
    "norm": (ops.norm, _DIM_KEEPDIM),
    "logsumexp": (ops.logsumexp, _DIM_KEEPDIM),
    "count_nonzero": (ops.count_nonzero, _AXIS_KEEP_DIMS),
    "cumsum": (cumsum, _AXIS),
    "softmax": (ops.softmax, _AXIS),
    "log_softmax": (ops.log_softmax, _AXIS),
    "expand_dims": (ops.expand_dims, _AXIS),
    "unsqueeze": (ops.unsqueeze, _DIM),
    "swapaxes": (ops.swapaxes, {}),
    "swapdims": (ops.swapdims, {}),
    "movedim": (ops.movedim, {}),
    "t": (ops.t, {}),
    "tile": (ops.tile, {"reps": "dims"}),
    "repeat_interleave": (ops.repeat_interleave, _AXIS),
    "split": (ops.split, {"dim": "axis", "split_size": "split_size_or_sections"}),
    "chunk": (ops.chunk, _AXIS),
    "unbind": (ops.unbind, _DIM),
    "narrow": (ops.narrow, _AXIS),
    "roll": (ops.roll, {"axis": "dims"}),
    "tril": (ops.tril, {}),
    "triu": (ops.triu, {}),
    "diagonal": (ops.diagonal, {"axis1": "dim1", "axis2": "dim2"}),
    "trace": (ops.trace, {}),
    "index_select": (ops.index_select, _AXIS),
    "take": (ops.take, _AXIS),
    "sort": (ops.sort, _AXIS),
    "argsort": (ops.argsort, _AXIS),
    "topk": (ops.topk, _DIM),
    "nonzero": (ops.nonzero, {}),
    "scatter_add": (
        _said(
            "This tensor with src added at index along dim, at the index's own other coordinates.",
            lambda self, dim, index, src: ops.tensor_scatter_elements(self, index, src, dim, "add"),
        ),
        _DIM,
    ),
    "tensor_scatter_add": (ops.tensor_scatter_add, {}),
    "masked_fill": (ops.masked_fill, {}),
    "masked_select": (ops.masked_select, {}),
    "clip": (ops.clamp, {"xmin": "min", "xmax": "max"}),
    "clamp": (ops.clamp, {}),
    "isclose": (ops.isclose, {}),
    "matmul": (ops.matmul, {"tensor2": "other"}),
    "mm": (ops.mm, {}),
    "bmm": (ops.bmm, {}),
    "dot": (ops.dot, {}),
    "inner": (ops.inner, {}),
    "outer": (ops.outer, {}),
    "addmm": (ops.addmm, {}),
    "full_like": (ops.full_like, {}),
}

#: Methods under their own names, and properties.
_OWN: dict[str, Any] = {
    "add": add,
    "diag": diag,
    "index_add": index_add,
    "itemset": itemset,
    "unique": unique,
    "sub": sub,
    "sum": sum_,
    "max": _extremum("max", ops.max, ops.amax),
    "min": _extremum("min", ops.min, ops.amin),
    "squeeze": squeeze,
    "reshape": reshape,
    "view": reshape,
    "reshape_as": _reshape_as,
    "view_as": _reshape_as,
    "transpose": transpose,
    "permute": permute,
    "broadcast_to": broadcast_to,
    "expand": broadcast_to,
    "expand_as": _said(
        "Broadcast to other's shape.",
        lambda self, other: broadcast_to(self, tuple(other.shape)),
    ),
    "flatten": flatten,
    "ravel": ravel,
    "repeat": repeat,
    "flip": flip,
    "where": where,
    "gather": gather,
    "to": to,
    "type_as": _said(
        "The elements in other's dtype.", lambda self, other: _core.ops.cast(self, other.dtype)
    ),
    "assign_value": assign_value,
    "copy_": _in_place("copy_", _copied),
    "add_": _in_place("add_", add),
    "sub_": _in_place("sub_", sub),
    "mul_": _in_place("mul_", ops.mul),
    "div_": _in_place("div_", ops.div),
    "fill_": _in_place("fill_", ops.full_like),
    "index_add_": _in_place("index_add_", index_add),
    "zero_": _in_place("zero_", ops.zeros_like),
    "fill": _said(
        "A tensor of this shape and dtype with every element value.",
        lambda self, value: ops.full_like(self, value),
    ),
    "new_zeros": _new(0),
    "new_ones": _new(1),
    "numel": _said("The number of elements.", lambda self: self.size),
    "nelement": _said("The number of elements.", lambda self: self.size),
    "ndimension": _said("The number of dimensions.", lambda self: self.ndim),
    "value": _said("This tensor's value: itself.", lambda self: self),
    "data": property(
        lambda self: _core.views.stop_gradient(self),
        doc="A view without derivatives: a write to it is one to the tensor.",
    ),
    "allclose": _said(
        "Whether all elements are close to other's, as isclose has it: a bool.",
        lambda self, other, rtol=1e-05, atol=1e-08, equal_nan=False: bool(
            ops.all(ops.isclose(self, other, rtol, atol, equal_nan))
        ),
    ),
    "argwhere": _said(
        "The coordinates of the elements that are not zero.", lambda self: ops.nonzero(self)
    ),
    "adjoint": _said(
        "The last two dimensions exchanged, conjugate.", lambda self: ops.adjoint(self)
    ),
    "argmax_with_value": _said(
        "(the largest elements along axis, their indices).",
        lambda self, axis=0, keep_dims=False: ops.max(self, axis, keep_dims),
    ),
    "argmin_with_value": _said(
        "(the smallest elements along axis, their indices).",
        lambda self, axis=0, keep_dims=False: ops.min(self, axis, keep_dims),
    ),
    "clone": _said("A copy.", lambda self: self.copy()),
    "matrix_determinant": matrix_determinant,
    "log_matrix_determinant": log_matrix_determinant,
    "flipud": _said("With the rows in reverse order.", lambda self: ops.flip(self, 0)),
    "fliplr": _said("With the columns in reverse order.", lambda self: ops.flip(self, 1)),
    "reverse": _said(
        "With the order of elements reversed along axis.",
        lambda self, axis: ops.flip(self, axis),
    ),
    "fmax": _said(
        "The larger of both; beside NaN the other.",
        lambda self, other: _of_numbers(self, other, ops.maximum),
    ),
    "fmin": _said(
        "The smaller of both; beside NaN the other.",
        lambda self, other: _of_numbers(self, other, ops.minimum),
    ),
    "soft_shrink": _said("As ops.softshrink.", lambda self, lambd=0.5: ops.softshrink(self, lambd)),
    "inplace_update": inplace_update,
    "isneginf": _said("Whether each element is -inf.", lambda self: ops.isneginf(self)),
    "isposinf": _said("Whether each element is inf.", lambda self: ops.isposinf(self)),
    "searchsorted": _said(
        "Where to put v into this vector in order, int32.",
        lambda self, v, side="left", sorter=None: ops.searchsorted(
            self, v, side=side, sorter=sorter, out_int32=True
        ),
    ),
    "ptp": _said(
        "The largest element less the smallest, along axis.",
        lambda self, axis=None, keepdims=False: ops.sub(
            ops.amax(self, axis, keepdims), ops.amin(self, axis, keepdims)
        ),
    ),
    "select": _said(
        "The slice at index along dim, without that dimension.",
        lambda self, dim, index: ops.squeeze(ops.narrow(self, dim, index, 1), dim),
    ),
    "stride": _said(
        "The distance of neighbours along dim in elements; None: a tuple for all dimensions.",
        lambda self, dim=None: (
            tuple(n // self.itemsize for n in self.strides)
            if dim is None
            else self.strides[dim] // self.itemsize
        ),
    ),
    "new_full": _said(
        "A tensor of one number, of this tensor's dtype unless another is given.",
        lambda self, size, fill_value, *, dtype=None: ops.full(
            size, fill_value, dtype=self.dtype if dtype is None else dtype
        ),
    ),
    "new_empty": _said(
        "As new_zeros.",
        lambda self, *size, dtype=None, device=None: self.new_zeros(*size, dtype=dtype),
    ),
    "top_k": _said("As ops.topk.", lambda self, k, sorted=True: ops.topk(self, k, sorted=sorted)),
    "is_signed": _said(
        "Whether the dtype has negative numbers.",
        lambda self: self.dtype.is_floating or self.dtype.name.startswith("int"),
    ),
    "sum_to_size": sum_to_size,
    "data_ptr": _said("The address of the first element.", lambda self: self._data_pointer()),
    "get_bytes": _said("The elements as bytes.", lambda self: self.asnumpy().tobytes()),
    "storage_offset": _said("0: a tensor's elements begin where its memory does.", lambda self: 0),
    "byte": _said("The elements as uint8.", lambda self: _core.ops.cast(self, _core.uint8)),
    "short": _said("The elements as int16.", lambda self: _core.ops.cast(self, _core.int16)),
    "is_init": _said("True: values are there from the start.", lambda self: True),
    "H": property(lambda self: self.adjoint(), doc="The last two dimensions exchanged, conjugate."),
    "detach": ops.stop_gradient,
    "contiguous": _said("A copy, row-major as all tensors are.", lambda self: _core.copy(self)),
    "is_contiguous": _said("True: all tensors are row-major.", lambda self: True),
    "init_data": _said(
        "This tensor: initialisers have been run when it was made.",
        lambda self, *args, **kwargs: self,
    ),
    "flush_from_cache": _said("Does nothing: there is no such cache.", lambda self: None),
    "has_init": property(
        lambda self: False, doc="False: initialisers have been run when it was made."
    ),
    "T": property(
        lambda self: _core.views.transpose(self, list(range(self.ndim))[::-1]),
        doc="The dimensions in reverse order.",
    ),
    "mT": property(
        lambda self: ops.swapaxes(self, -2, -1), doc="The last two dimensions exchanged."
    ),
    "mH": property(
        lambda self: self.adjoint(), doc="The last two dimensions exchanged, conjugate."
    ),
}

#: Conveniences beyond MindSpore's own methods: activations.
_ACTIVATIONS = (
    "elu", "gelu", "hardsigmoid", "hardswish", "hardtanh", "leaky_relu", "logsigmoid", "mish",
    "relu6", "selu", "silu", "softplus", "softsign",
)  # fmt: skip


def _explained(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    """The method, whose TypeError for arguments that it does not take says so and where.

    The core's methods have the signatures of the op's functions.
    """
    function, spellings = _SPELLED.get(name, (method, {}))
    if not isinstance(function, FunctionType):
        function = getattr(ops, name)

    @functools.wraps(method if isinstance(method, FunctionType) else function)
    def explained(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        try:
            return method(self, *args, **kwargs)
        except TypeError:
            renamed = {spellings.get(k, k): v for k, v in kwargs.items()}
            callee = getattr(method, "_callee", lambda: function)()
            arguments.explain_misfit(f"Tensor.{name}", callee, (self, *args), renamed)
            raise

    return explained


#: Ops as methods, with the tensor as their first argument; imported when they are first called.
_FROM_OPS = """
    addbmm addcdiv addcmul addmv addr aminmax angle approximate_equal baddbmm bincount
    bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor
    cholesky cholesky_inverse cholesky_solve conj cov cross cummax cummin cumprod deg2rad det
    diagflat diagonal_scatter diff digamma dsplit float_power frac gather_elements gather_nd gcd
    ger hardshrink heaviside histc hsplit igamma igammac imag index_fill inverse is_complex
    is_floating_point isreal lcm lgamma logaddexp logaddexp2 logcumsumexp logdet logit
    matrix_power median moveaxis multinomial mvlgamma renorm nan_to_num nanmean nanmedian
    nanquantile nansum positive qr quantile rad2deg random_categorical real reverse_sequence
    rot90 select_scatter sgn signbit sinc slice_scatter slogdet svd tensor_scatter_sub
    tensor_split unique_consecutive unique_with_pad unsorted_segment_max unsorted_segment_min
    unsorted_segment_sum vsplit xdivy scatter scatter_nd_add
"""

#: Ops whose result the tensor takes over: 'name_' is the op 'name' in place.
_IN_PLACE = """
    clamp erfinv exp floor floor_divide index_fill log masked_fill remainder scatter sigmoid sign tanh
"""


def _from_ops(name: str) -> Callable[..., Any]:
    def method(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        return getattr(ops, name)(self, *args, **kwargs)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"ops.{name} of this tensor."
    method._callee = lambda: getattr(ops, name)  # type: ignore[attr-defined]
    return method


def _attach_ops() -> None:
    for name in _FROM_OPS.split():
        setattr(Tensor, name, _from_ops(name))
    for name in _IN_PLACE.split():
        setattr(Tensor, f"{name}_", _in_place(f"{name}_", _from_ops(name)))


def _attach() -> None:
    _attach_ops()
    for name, (function, spellings) in _SPELLED.items():
        setattr(Tensor, name, _spelled(function, spellings) if spellings else function)
    for name, method in _OWN.items():
        if isinstance(method, FunctionType) and method.__name__ == "<lambda>":
            method.__name__ = method.__qualname__ = name
        setattr(Tensor, name, method)
    for name in _ACTIVATIONS:
        setattr(Tensor, name, getattr(ops, name))
    for name, method in list(vars(Tensor).items()):
        if not name.startswith("_") and callable(method) and not isinstance(method, staticmethod):
            setattr(Tensor, name, _explained(name, method))


_attach()
