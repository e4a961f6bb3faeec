"""NumPy's functions of order and membership: sorts, quantiles, sets, where elements are, elements left
out and put in. Numbers and orders are constants of the derivative; elements are differentiated."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from gradcell import ops
from gradcell._core import Tensor, ops as _ops
from gradcell.base import arguments, bad_value, publish
from gradcell.base.places import places
from gradcell.numpy.conversion import _plain, along, floating, joined, tensor, tensors, vector


def sort(
    a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None
) -> Tensor:
    """The elements in ascending order along axis, NaN last; None: of all, as a vector.

    kind and stable have no effect: equal elements keep their order. order: only None.
    """
    return ops.sort(*along(a, axis))[0]


def argsort(
    a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None
) -> Tensor:
    """The indices, int32, that sort along axis; None: of all elements, as a vector.

    kind and stable have no effect: equal elements keep their order. order: only None.
    """
    return ops.argsort(*along(a, axis))


def partition(a: Any, kth: Any, axis: Any = -1) -> Tensor:
    """The elements so ordered along axis that the kth one has its place, none before it is larger and
    none behind it smaller: here all are in order.

    kth: a place, or several.
    """
    _places(a, kth, axis, "partition")
    return sort(a, axis)


def argpartition(a: Any, kth: Any, axis: Any = -1) -> Tensor:
    """The indices, int32, that give what partition gives.

    kth: a place, or several. axis: the dimension, counted from the end where negative.
    """
    _places(a, kth, axis, "argpartition")
    return argsort(a, axis)


def _places(a: Any, kth: Any, axis: Any, name: str) -> None:
    x, a_ = along(a, axis)
    n = x.shape[arguments.axis_in(x, a_, name)]
    for k in arguments.integers(kth, name, "kth"):
        if not -n <= k < n:
            bad_value(f"{name}: there is no place {k} among {n} elements")


def lexsort(keys: Any, axis: int = -1) -> Tensor:
    """The indices that sort by the last of keys, where it is equal by the one before, and so on.

    keys: tensors of one shape, the last one first in rank.
    """
    lines = [tensor(k) for k in keys]
    axis = arguments.axis_in(lines[0], axis, "lexsort")
    found = argsort(lines[0], axis)
    for line in lines[1:]:
        next_ = argsort(ops.gather_elements(line, axis, found), axis)
        found = ops.gather_elements(found, axis, next_)
    return found


#: (alpha, beta) of the places of quantiles, n q + alpha + q (1 - alpha - beta) - 1 (Hyndman, Fan 1996, The
#: American Statistician 50, 361: types 4 to 9).
_PLACES = {
    "linear": (1.0, 1.0), "interpolated_inverted_cdf": (0.0, 1.0), "hazen": (0.5, 0.5), "weibull": (0.0, 0.0),
    "median_unbiased": (1 / 3, 1 / 3), "normal_unbiased": (0.375, 0.375),
}  # fmt: skip
#: What is done with a place between two elements of "linear".
_ROUNDED: dict[str, Any] = {
    "lower": np.floor, "higher": np.ceil, "nearest": np.rint,
    "midpoint": lambda place: (np.floor(place) + np.ceil(place)) / 2,
}  # fmt: skip


def _quantiles(
    a: Any, q: Any, axis: Any, keepdims: bool, method: str, skip: bool, name: str
) -> Tensor:
    x = floating(a)
    axes = arguments.axes_of(axis, x.ndim, name)
    others = [i for i in builtins.range(x.ndim) if i not in axes]
    dims = [x.shape[i] for i in others]
    rows = _ops.reshape(_ops.transpose(x, [*others, *axes]), [*dims, -1])
    arguments.one_of(method, (*_PLACES, *_ROUNDED), name, "method")
    if method == "linear":
        found = (ops.nanquantile if skip else ops.quantile)(rows, q, -1)
    else:
        if skip:
            bad_value(f"{name}: the only method is 'linear', got {method!r}")
        found = _placed(rows, np.asarray(_plain(q), np.float64), method, name)
    if not keepdims:
        return found
    lead = list(found.shape[: found.ndim - len(dims)])
    return _ops.reshape(found, lead + [1 if i in axes else n for i, n in enumerate(x.shape)])


def _placed(rows: Tensor, q: np.ndarray, method: str, name: str) -> Tensor:
    n = rows.shape[-1]
    if ((q < 0) | (q > 1)).any() or not n:
        bad_value(f"{name}: shares within 0 and 1 of some elements are needed, got {q} of {n}")
    alpha, beta = _PLACES.get(method, (1.0, 1.0))
    place = np.clip(n * q + alpha + q * (1 - alpha - beta) - 1, 0, n - 1)
    place = _ROUNDED.get(method, lambda place: place)(place)
    line = ops.movedim(ops.sort(rows, -1)[0], -1, 0)
    low = np.floor(place)
    early, late = (_ops.gather(line, Tensor(i.astype(np.int64)), 0) for i in (low, np.ceil(place)))
    share = Tensor((place - low).reshape([*q.shape, *[1] * (rows.ndim - 1)]), rows.dtype)
    spoiled = ops.any(_ops.isnan(rows), -1)
    return _ops.where(spoiled, float("nan"), early + (late - early) * share)


def quantile(
    a: Any, q: Any, axis: Any = None, *, method: str = "linear", keepdims: bool = False
) -> Tensor:
    """The q-quantiles along axis, or several; of all elements for None. NaN if an element is NaN.

    q: shares within 0 and 1, whose dimensions come first. method: one of NumPy's: what stands between
    two elements.
    """
    return _quantiles(a, q, axis, keepdims, method, False, "quantile")


def nanquantile(
    a: Any, q: Any, axis: Any = None, *, method: str = "linear", keepdims: bool = False
) -> Tensor:
    """The q-quantiles of the elements that are not NaN.

    q: shares within 0 and 1. method: 'linear'.
    """
    return _quantiles(a, q, axis, keepdims, method, True, "nanquantile")


def _share(q: Any) -> Any:
    return q / 100 if isinstance(q, (Tensor, np.ndarray)) else np.asarray(q, np.float64) / 100


def percentile(
    a: Any, q: Any, axis: Any = None, *, method: str = "linear", keepdims: bool = False
) -> Tensor:
    """The quantiles of q percent.

    q: numbers within 0 and 100. method: one of NumPy's: what stands between two elements.
    """
    return _quantiles(a, _share(q), axis, keepdims, method, False, "percentile")


def nanpercentile(
    a: Any, q: Any, axis: Any = None, *, method: str = "linear", keepdims: bool = False
) -> Tensor:
    """The quantiles of q percent of the elements that are not NaN.

    q: numbers within 0 and 100. method: 'linear'.
    """
    return _quantiles(a, _share(q), axis, keepdims, method, True, "nanpercentile")


def median(a: Any, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    """The median along axis, or several: the mean of the two middle elements of an even number."""
    return _quantiles(a, 0.5, axis, keepdims, "linear", False, "median")


def nanmedian(a: Any, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    """The median of the elements that are not NaN."""
    return _quantiles(a, 0.5, axis, keepdims, "linear", True, "nanmedian")


def unique(
    x: Any, return_inverse: bool = False, *, return_index: bool = False, return_counts: bool = False,
    axis: Any = None, equal_nan: bool = True, sorted: bool = True,
) -> Any:  # fmt: skip
    """The different elements of x, flattened, in ascending order, or the different slices along axis.

    return_index, return_inverse, return_counts: whether their first places in x, the place of each of
    x's elements among them, and how often each occurs come too, int32, in this order. equal_nan: whether
    NaN counts once. sorted has no effect. Reads values.
    """
    t = vector(x) if axis is None else tensor(x)
    axis = None if axis is None else arguments.axis_in(t, axis, "unique")
    _, *found = np.unique(t.asnumpy(), True, True, True, axis, equal_nan=equal_nan)
    values = _ops.gather(t, Tensor(found[0]), 0 if axis is None else axis)
    wanted = zip((return_index, return_inverse, return_counts), found, strict=True)
    parts = [places(f.reshape(-1)) for want, f in wanted if want]
    return (values, *parts) if parts else values


def union1d(ar1: Any, ar2: Any) -> Tensor:
    """The different elements of both, in ascending order."""
    return unique(joined(ar1, ar2))  # type: ignore[no-any-return]


def setxor1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Tensor:
    """The elements of one of the two only, in ascending order."""
    a, b = (v.ravel() if assume_unique else unique(v) for v in tensors(ar1, ar2))
    parts = [ops.masked_select(v, ops.isin(v, w, True)) for v, w in ((a, b), (b, a))]
    return sort(ops.concat(parts, 0))


def nonzero(a: Any) -> tuple[Tensor, ...]:
    """The coordinates of the elements that are not zero, a vector for each dimension. Reads values."""
    return ops.unbind(ops.nonzero(tensor(a)), 1)


def flatnonzero(a: Any) -> Tensor:
    """The places in the flattened tensor of the elements that are not zero. Reads values."""
    return nonzero(vector(a))[0]


def extract(condition: Any, arr: Any) -> Tensor:
    """The elements of arr where condition is true, a vector. Reads values.

    condition: of arr's shape.
    """
    return ops.masked_select(vector(arr), _ops.not_equal(vector(condition), 0))


def compress(condition: Any, a: Any, axis: Any = None) -> Tensor:
    """The slices along axis for which condition is true; None: of the flattened tensor. Reads values.

    condition: a vector.
    """
    x, along_ = along(a, axis)
    return _ops.gather(x, flatnonzero(condition), along_)


def _index(obj: Any) -> Any:
    return obj if isinstance(obj, builtins.slice) else _plain(obj)


def delete(arr: Any, obj: Any, axis: Any = None) -> Tensor:
    """arr without the slices along axis at obj; None: without elements of the flattened tensor.

    obj: an index, several, a slice, or a vector of bools.
    """
    x, a = along(arr, axis)
    a = arguments.axis_in(x, a, "delete")
    kept = np.delete(np.arange(x.shape[a]), _index(obj))
    return _ops.gather(x, Tensor(kept), a)


def insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> Tensor:
    """arr with values put before the slices along axis at obj; None: of the flattened tensor.

    obj: an index, several, or a slice. values: what broadcasts to the new slices.
    """
    x, a = along(arr, axis)
    a = arguments.axis_in(x, a, "insert")
    n, given = x.shape[a], _index(obj)
    single = np.ndim(given) == 0 and not isinstance(given, builtins.slice)
    new = values if isinstance(values, Tensor) else Tensor(np.asarray(values), x.dtype)
    if single and axis is not None and new.ndim == x.ndim - 1 and new.ndim:
        new = ops.expand_dims(new, a)
    count = new.shape[a] if single and new.ndim == x.ndim else 1
    if not single:
        count = len(np.arange(n)[given] if isinstance(given, builtins.slice) else given)
    dims = [count if i == a else d for i, d in enumerate(x.shape)]
    where = [given] * count if single else given
    order = np.insert(np.arange(n), where, n + np.arange(count))
    both = _ops.concat([x, _ops.broadcast_to(_ops.cast(new, x.dtype), dims)], a)
    return _ops.gather(both, Tensor(order), a)


def trim_zeros(filt: Any, trim: str = "fb", axis: Any = None) -> Tensor:
    """An array without the zeros at its front, its back or both. Reads values.

    filt: an array. trim: 'f', 'b' or 'fb'. axis: the dimensions that are cut (all).
    """
    x = tensor(filt)
    places = np.argwhere(x.asnumpy())
    parts = [slice(None)] * x.ndim
    for k in arguments.axes_of(axis, x.ndim, "trim_zeros"):
        there = places[:, k]
        first = int(there.min()) if "f" in trim and there.size else 0
        last = int(there.max()) + 1 if there.size else 0
        parts[k] = slice(first, last if "b" in trim or not last else None)
    return x[tuple(parts)]


def nanargmax(a: Any, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    """The index of the largest element that is not NaN. Raises ValueError where all are."""
    return _of_numbers(a, axis, keepdims, "nanargmax", ops.argmax, -np.inf)


def nanargmin(a: Any, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    """The index of the smallest element that is not NaN. Raises ValueError where all are."""
    return _of_numbers(a, axis, keepdims, "nanargmin", ops.argmin, np.inf)


def _of_numbers(a: Any, axis: Any, keepdims: bool, name: str, find: Any, worst: float) -> Tensor:
    x = floating(a)
    nan = _ops.isnan(x)
    if ops.any(ops.all(nan, axis)).item():
        bad_value(f"{name}: all elements along an axis are NaN")
    return find(_ops.where(nan, worst, x), axis, keepdims)  # type: ignore[no-any-return]


publish(globals())
