"""Methods of Tensor that are not an op's function; those that are stand at the ops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradcell import _core, ops
from gradcell._core import Tensor
from gradcell.base import arguments, bad_index, bad_type, bad_value, to_dtype
from gradcell.ops._index import IN_PLACE_LATER, METHODS_LATER
from gradcell.ops.arrays import shaping
from gradcell.ops.decorators import attach, in_place, method, record_later
from gradcell.ops.method_forms import listed, reshape
from gradcell.tensors.taken import notice

# Methods that are not an op's function ------------------------------------------------------------


@method("sum", keep_dims="keepdims")
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
    def _method(
        self: Tensor, dim: Any = None, keepdim: bool = False, *, axis: Any = None,
        keepdims: bool | None = None, initial: Any = None, where: Any = True,
        return_indices: bool | None = None,
    ) -> Any:  # fmt: skip
        values = {"initial": initial, "where": None if where is True else where}
        # MindSpore's two forms: (dim, keepdim), and one with NumPy's arguments.
        numpys = keepdims is not None or return_indices is not None or initial is not None
        pair = return_indices if numpys or dim is None else hasattr(dim, "__index__")
        return (with_index if pair else alone)(
            self, axis if dim is None else dim, keepdim or bool(keepdims), **values
        )

    _method.__name__ = _method.__qualname__ = name
    _method.__doc__ = (
        f"The {'largest' if name == 'max' else 'smallest'} element: {name}() of all, "
        f"{name}(axis=a) along a, or several axes; {name}(d), {name}(dim=d), with keepdim at most, and "
        "return_indices=True give (values, indices)."
    )
    return _method


@method()
def squeeze(self: Tensor, *axes: Any, axis: Any = None, dim: Any = None) -> Tensor:
    """Without the dimensions of size 1, or without those given that have size 1."""
    if not axes:
        axes = (axis if dim is None else dim,)
    return ops.squeeze(self, None if axes[0] is None else listed("Squeeze", axes))


@method()
def permute(self: Tensor, *dims: Any) -> Tensor:
    """With the dimensions in the given order."""
    return _core.views.transpose(self, listed("Transpose", dims))


@method("broadcast_to", "expand")
def broadcast_to(self: Tensor, *shape: Any) -> Tensor:
    """Broadcast to a shape, integers or one tuple; -1 keeps a dimension."""
    return _core.views.broadcast_to(self, listed("BroadcastTo", shape))


@method()
def flatten(self: Tensor, start_dim: Any = 0, end_dim: int = -1, *, order: str = "C") -> Tensor:
    """With the dimensions from start_dim to end_dim joined to one."""
    if isinstance(start_dim, str):
        start_dim, order = 0, start_dim
    return shaping.flattened(self, order, start_dim, end_dim)


@method()
def ravel(self: Tensor) -> Tensor:
    """All elements as a vector."""
    return _core.views.reshape(self, [self.size])


@method()
def repeat(self: Tensor, *repeats: Any) -> Tensor:
    """The tensor repeated as a whole, this many times along each dimension."""
    return ops.tile(self, tuple(listed("repeat", repeats)))


@method()
def flip(self: Tensor, *dims: Any) -> Tensor:
    """With the order of elements reversed along dims."""
    return ops.flip(self, listed("flip", dims))


@method(dim="axis")
def cumsum(self: Tensor, axis: Any = None, dtype: Any = None) -> Tensor:
    """The sums up to each element along axis; None: of the flattened tensor.

    bool and integers below int64 are added up as int32, those from uint16 on as uint64, unless dtype
    says otherwise.
    """
    x = ravel(self) if axis is None else self
    if dtype is None and not x.dtype.is_floating and x.dtype != _core.int64:
        dtype = _core.uint64 if x.dtype.name in ("uint16", "uint32", "uint64") else _core.int32
    return ops.cumsum(x, 0 if axis is None else axis, dtype)


@method()
def to(self: Tensor, dtype: Any = None, *args: Any, **kwargs: Any) -> Tensor:
    """In another dtype."""
    return _core.ops.cast(self, self.dtype if dtype is None else to_dtype(dtype))


@method()
def assign_value(self: Tensor, value: Tensor) -> Tensor:
    """Takes over another tensor's elements, of the same shape. Returns itself."""
    if self._is_variable:
        ops.assign(self, value)
        return self
    if tuple(value.shape) != tuple(self.shape):
        bad_value(f"assign_value: shapes {list(self.shape)} and {list(value.shape)} differ")
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


@in_place("copy_")
def _copied(self: Tensor, src: Any, non_blocking: bool = False) -> Tensor:
    source = _core.ops.cast(src, self.dtype) if isinstance(src, Tensor) else Tensor(src, self.dtype)
    return ops.broadcast_to(source, self.shape)


def _scaled(self: Tensor, other: Any, alpha: Any, op: str) -> Any:
    """alpha * other, in the dtype that it takes beside the tensor."""
    if isinstance(alpha, (bool, int, float)) and alpha == 1:
        return other
    y = arguments.operand(other, op, "other", self)
    if isinstance(alpha, float) and not (self.dtype.is_floating or y.dtype.is_floating):
        bad_type(f"{op}: alpha is a float, but the tensors are of {self.dtype} and {y.dtype}")
    return _core.ops.mul(y, alpha)


@method()
def diag(self: Tensor, diagonal: int = 0) -> Tensor:
    """The elements on the diagonal of zeros, as ops.diag. Raises ValueError for another diagonal."""
    if diagonal != 0:
        bad_value(f"For 'Tensor.diag', the argument 'diagonal' should be '0', but got {diagonal}")
    return ops.diag(self)


@method()
def itemset(self: Tensor, *args: Any) -> Tensor:
    """A copy with one element replaced: itemset(place, value), place a number or coordinates; of one
    element, itemset(value). Raises IndexError for a place that is not there."""
    if len(args) not in (1, 2):
        bad_value(
            f"'Tensor.itemset()' must have at least one and at most 2 arguments, got {len(args)}"
        )
    if len(args) == 1 and tuple(self.shape) != (1,):
        bad_index(
            "Only tensor which shape is (1,) support 1 arg that means omit index, but the tensor shape is "
            f"{tuple(self.shape)}"
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
        bad_index(f"index {place} is out of bounds for axis 0 with size {size}")
    return place % size


@method()
def unique(
    self: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False,
    dim: Any = None,
) -> Any:  # fmt: skip
    """The different elements, or slices along dim, in order; with return_inverse the place of each among
    them, with return_counts how often each occurs. Reads values, so a compiled function that calls
    it is retraced."""
    given = _core.views.reshape(self, [self.size]) if dim is None else self
    axis = arguments.axis_in(given, 0 if dim is None else dim, "unique", "dim")
    _, first, inverse, counts = np.unique(
        given.asnumpy(), return_index=True, return_inverse=True, return_counts=True, axis=axis
    )
    found = ops.gather(given, Tensor(first), axis)
    place = Tensor(inverse.reshape(self.shape if dim is None else -1).astype(np.int64))
    parts = [found, *[place] * return_inverse, *[Tensor(counts.astype(np.int64))] * return_counts]
    return tuple(parts) if len(parts) > 1 else found


@in_place()
@method()
def add(self: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
    """self + alpha * other; other: a tensor or number, which broadcasts. Raises TypeError for a
    float alpha beside integers."""
    return _core.ops.add(self, _scaled(self, other, alpha, "add"))


@in_place()
@method(y="other")
def sub(self: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
    """self - alpha * other; otherwise like add."""
    return _core.ops.sub(self, _scaled(self, other, alpha, "sub"))


@method()
def matrix_determinant(self: Tensor) -> Tensor:
    """As ops.det."""
    return ops.det(self)


@method()
def log_matrix_determinant(self: Tensor) -> Any:
    """As ops.slogdet."""
    return ops.slogdet(self)


@method()
def sum_to_size(self: Tensor, *size: Any) -> Tensor:
    """The sum over dimensions that broadcasting to this shape has repeated."""
    dims = listed("sum_to_size", size)
    extra = self.ndim - len(dims)
    fits = extra >= 0 and all(
        n in (1, m) for n, m in zip(dims, self.shape[max(extra, 0) :], strict=False)
    )
    if not fits:
        bad_value(
            f"sum_to_size: a tensor of shape {list(self.shape)} cannot be summed to shape {dims}"
        )
    axes = [*range(extra), *(i + extra for i, n in enumerate(dims) if n == 1)]
    out = _core.ops.reduce_sum(self, axes, True) if axes else self
    return _core.ops.reshape(out, dims)


def _new(value: int) -> Callable[..., Tensor]:
    def method(self: Tensor, *size: Any, dtype: Any = None) -> Tensor:
        if len(size) == 2 and isinstance(size[0], (tuple, list)):
            dtype, size = size[1], (size[0],)
        return ops.full(listed("full", size), value, dtype=arguments.dtype_or(dtype, self.dtype))

    method.__doc__ = f"A tensor of {value}s, of this tensor's dtype unless another is given."
    return method


@method("reshape_as", "view_as")
def reshape_as(self: Tensor, other: Any) -> Tensor:
    """The elements in other's shape. Raises ValueError if their numbers differ."""
    return reshape(self, tuple(other.shape))


def _attribute(
    function: Callable[[Tensor], Any], write: Callable[[Tensor, Any], Any] | None = None
) -> None:
    """A decorator: the function is a property of Tensor, which `write` takes a new value for."""
    setattr(Tensor, function.__name__, property(function, write, doc=function.__doc__))


@method(x="other")
def expand_as(self: Tensor, other: Any) -> Tensor:
    """Broadcast to other's shape."""
    return broadcast_to(self, tuple(other.shape))


@method()
def fill(self: Tensor, value: Any) -> Tensor:
    """A tensor of this shape and dtype with every element value."""
    return ops.full_like(self, value)


@method("numel", "nelement")
def numel(self: Tensor) -> int:
    """The number of elements."""
    return self.size


@method()
def ndimension(self: Tensor) -> int:
    """The number of dimensions."""
    return self.ndim


@method()
def value(self: Tensor) -> Tensor:
    """This tensor's value: itself."""
    return self


def data(self: Tensor) -> Tensor:
    """A view without derivatives: a write to it is one to the tensor, as is x.data = y."""
    return _core.views.stop_gradient(self)


_attribute(data, assign_value)


@method()
def allclose(
    self: Tensor, other: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False
) -> bool:
    """Return whether isclose is true of all elements: a bool."""
    return bool(ops.all(ops.isclose(self, other, rtol, atol, equal_nan)))


@method()
def argwhere(self: Tensor) -> Tensor:
    """The coordinates of the elements that are not zero."""
    return ops.nonzero(self)


@method()
def argmax_with_value(self: Tensor, axis: Any = 0, keep_dims: bool = False) -> Any:
    """(the largest elements along axis, their indices)."""
    return ops.max(self, axis, keep_dims)


@method()
def argmin_with_value(self: Tensor, axis: Any = 0, keep_dims: bool = False) -> Any:
    """(the smallest elements along axis, their indices)."""
    return ops.min(self, axis, keep_dims)


@method()
def clone(self: Tensor) -> Tensor:
    """A copy."""
    return self.copy()


@method()
def flipud(self: Tensor) -> Tensor:
    """With the rows in reverse order."""
    return ops.flip(self, 0)


@method()
def fliplr(self: Tensor) -> Tensor:
    """With the columns in reverse order."""
    return ops.flip(self, 1)


@method()
def reverse(self: Tensor, axis: Any) -> Tensor:
    """With the order of elements reversed along axis."""
    return ops.flip(self, axis)


@method()
def fmax(self: Tensor, other: Any) -> Tensor:
    """The larger of both; beside NaN the other."""
    return _of_numbers(self, other, ops.maximum)


@method()
def fmin(self: Tensor, other: Any) -> Tensor:
    """The smaller of both; beside NaN the other."""
    return _of_numbers(self, other, ops.minimum)


@method()
def searchsorted(self: Tensor, v: Any, side: Any = "left", sorter: Any = None) -> Tensor:
    """Return the places of v in this sorted vector, int32."""
    return ops.searchsorted(self, v, side=side, sorter=sorter, out_int32=True)


@method()
def ptp(self: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The largest element less the smallest, along axis."""
    return ops.sub(ops.amax(self, axis, keepdims), ops.amin(self, axis, keepdims))


@method()
def stride(self: Tensor, dim: Any = None) -> Any:
    """The distance of neighbours along dim in elements; None: a tuple for all dimensions."""
    return (
        tuple(n // self.itemsize for n in self.strides)
        if dim is None
        else self.strides[arguments.axis_in(self, dim, "stride", "dim")] // self.itemsize
    )


@method()
def new_full(self: Tensor, size: Any, fill_value: Any, *, dtype: Any = None) -> Tensor:
    """A tensor of one number, of this tensor's dtype unless another is given."""
    return ops.full(size, fill_value, dtype=self.dtype if dtype is None else dtype)


@method()
def new_empty(self: Tensor, *size: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """As new_zeros."""
    return self.new_zeros(*size, dtype=dtype)


@method()
def top_k(self: Tensor, k: Any, sorted: bool = True) -> Any:
    """As ops.topk."""
    return ops.topk(self, k, sorted=sorted)


@method()
def is_signed(self: Tensor) -> bool:
    """Return whether the dtype has negative numbers."""
    return self.dtype.is_floating or self.dtype.name.startswith("int")


@method()
def data_ptr(self: Tensor) -> int:
    """The address of the first element."""
    return self._data_pointer()


@method()
def get_bytes(self: Tensor) -> bytes:
    """The elements as bytes."""
    notice(self, "get_bytes()")
    return self.asnumpy().tobytes()


@method()
def storage_offset(self: Tensor) -> int:
    """0: a tensor's elements begin where its memory does."""
    return 0


@method()
def is_init(self: Tensor) -> bool:
    """True: values are there from the start."""
    return True


@method()
def contiguous(self: Tensor) -> Tensor:
    """A copy, row-major as all tensors are."""
    return _core.copy(self)


@method()
def is_contiguous(self: Tensor) -> bool:
    """True: all tensors are row-major."""
    return True


@method()
def init_data(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """This tensor: initialisers have been run when it was made."""
    return self


@method()
def flush_from_cache(self: Tensor) -> None:
    """Does nothing: there is no such cache."""
    return None


@_attribute
def has_init(self: Tensor) -> bool:
    """False: the values are set when the tensor is made."""
    return False


@_attribute
def T(self: Tensor) -> Tensor:
    """The dimensions in reverse order."""
    return _core.views.transpose(self, list(range(self.ndim))[::-1])


@_attribute
def mT(self: Tensor) -> Tensor:
    """The last two dimensions exchanged."""
    return ops.swapaxes(self, -2, -1)


@_attribute
def device(self: Tensor) -> str:
    """Return the device of tensors, as the context says: 'CPU' or 'GPU'."""
    return "CPU" if _core.device_in_use() < 0 else "GPU"


@method()
def to_device(self: Tensor, device: str, /, *, stream: None = None) -> Tensor:
    """The tensor on a device, 'CPU' or 'GPU', as move_to moves it. stream: None."""
    if stream is not None:
        bad_value("to_device: work is in order already, so that stream must be None")
    return self.move_to(device)


@_attribute
def mH(self: Tensor) -> Tensor:
    """The last two dimensions exchanged, conjugate."""
    return self.adjoint()


setattr(Tensor, "H", Tensor.mH)  # noqa: B010 (to a type checker it is there)


method("max", keep_dims="keepdims")(_extremum("max", ops.max, ops.amax))
method("min", keep_dims="keepdims")(_extremum("min", ops.min, ops.amin))
method("new_zeros")(_new(0))
method("new_ones")(_new(1))
method("detach")(ops.stop_gradient)
method("multiply", value="other")(ops.multiply)
method("remainder", divisor="other")(ops.remainder)
method("subtract", y="other")(ops.subtract)

# In place, of functions that say nothing themselves: rows of the op table, and under other names.
for _name in "erfinv exp floor floor_divide log remainder sigmoid sign tanh".split():
    in_place(f"{_name}_")(getattr(ops, _name))
in_place("mul_")(ops.mul)
in_place("div_")(ops.div)
in_place("fill_", value="fill_value")(ops.full_like)
in_place("zero_")(ops.zeros_like)

for _name, _of in (("lshift", "bitwise_left_shift"), ("rshift", "bitwise_right_shift")):
    setattr(Tensor, f"__{_name}__", lambda self, other, of=_of: getattr(ops, of)(self, other))
    setattr(Tensor, f"__r{_name}__", lambda self, other, of=_of: getattr(ops, of)(other, self))

record_later(METHODS_LATER)
record_later(IN_PLACE_LATER, in_place=True)
attach(ops)
