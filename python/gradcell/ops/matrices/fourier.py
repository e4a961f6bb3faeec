"""Discrete Fourier transforms, as MindSpore has them: of complex and real tensors, along one, two or
all dimensions, in NumPy's conventions of length (n, s) and of norm.

In between are pairs [..., 2] of real and imaginary parts, along whose axes the core transforms. A
real signal's transform is that of the complex one, of which half is kept: the other half is its
conjugate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradcell._core import DType, Tensor, default_dtype, float32, float64, ops as _ops
from gradcell.base import arguments, bad_type, bad_value, has_numpy_dtype, to_dtype
from gradcell.ops.arrays import shaping
from gradcell.ops.decorators import one_plan
from gradcell.ops.elements.complex_numbers import part

__all__: list[str] = [
    "fftfreq", "fftshift", "ifftshift", "rfftfreq", "stft",
]  # fmt: skip


_NORMS = ("backward", "ortho", "forward")


# Pairs --------------------------------------------------------------------------------------------


def _pairs(x: Tensor, owner: str) -> Tensor:
    """Any tensor as pairs; integers and float16 count as float32. Raises TypeError for others."""
    if x.dtype.is_complex:
        return _ops.view_as_real(x)
    if x.dtype.name == "bool" or not has_numpy_dtype(x.dtype):
        bad_type(f"For '{owner}', the input must not be {x.dtype}")
    wide = x.dtype if x.dtype == float64 else float32
    column = _ops.reshape(_ops.cast(x, wide), [*x.shape, 1])
    return _ops.concat([column, _ops.full([*x.shape, 1], 0, wide)], x.ndim)


def _conjugate(pairs: Tensor) -> Tensor:
    return _ops.view_as_real(_conjugated(_ops.view_as_complex(pairs)))


def _conjugated(z: Tensor) -> Tensor:
    from gradcell.ops.elements.complex_numbers import conj

    return conj(z)


def _sized(pairs: Tensor, n: int, axis: int) -> Tensor:
    """The first n along an axis, zeros behind where there are fewer."""
    if pairs.shape[axis] >= n:
        return shaping._window(pairs, axis, 0, n)
    dims = list(pairs.shape)
    dims[axis] = n
    return _ops.slice_scatter(pairs, dims, [0] * len(dims), [1] * len(dims))


def _mirrored(pairs: Tensor, n: int, axis: int) -> Tensor:
    """n elements, of which the first n // 2 + 1 are given and the others are their conjugates."""
    half = _sized(pairs, n // 2 + 1, axis)
    count = n - (n // 2 + 1)
    if count == 0:
        return half
    dims, start, step = list(half.shape), [0] * half.ndim, [1] * half.ndim
    dims[axis], start[axis], step[axis] = count, count, -1
    return _ops.concat([half, _conjugate(_ops.slice(half, start, dims, step))], axis)


def _factor(norm: str, inverse: bool, count: int) -> float:
    if norm == "ortho":
        return 1 / math.sqrt(count)
    return 1 / count if inverse == (norm == "backward") else 1.0


def _scaled(x: Tensor, factor: float) -> Tensor:
    return x if factor == 1.0 else _ops.mul(x, factor)


# All of them ----------------------------------------------------------------------------------------


def _transform(
    x: Tensor, axes: Sequence[int], sizes: Sequence[int], norm: str, kind: str, owner: str
) -> Tensor:
    """kind: 'fft', 'ifft', or of real signals 'rfft' (to half of the frequencies), 'ihfft' (the same,
    conjugate), 'irfft' and 'hfft' (from half of them), which the last of the axes is about."""
    pairs = _pairs(x, owner)
    inverse = kind in ("ifft", "irfft", "ihfft")
    last, n = axes[-1], sizes[-1]
    if kind in ("irfft", "hfft"):
        # hfft is the forward transform of a signal whose half is given: its conjugate's inverse one.
        z = _conjugate(pairs) if kind == "hfft" else pairs
        for axis, size in zip(axes[:-1], sizes[:-1], strict=True):
            z = _ops.fourier(_sized(z, size, axis), axis, True)
        z = _ops.fourier(_mirrored(z, n, last), last, True)
        y = part(_ops.view_as_complex(z), 0)
        return _scaled(y, _factor(norm, inverse, math.prod(sizes)))
    z = pairs
    for axis, size in zip(axes, sizes, strict=True):
        z = _ops.fourier(_sized(z, size, axis), axis, kind == "ifft")
    if kind in ("rfft", "ihfft"):
        z = shaping._window(z, last, 0, n // 2 + 1)
    if kind == "ihfft":
        z = _conjugate(z)
    z = _scaled(z, _factor(norm, inverse, math.prod(sizes)))
    return _ops.view_as_complex(z)


def _checked(x: Any, norm: Any, owner: str) -> tuple[Tensor, str]:
    t = arguments.tensor(x, owner)
    if t.ndim == 0:
        bad_value(f"For '{owner}', the input must have a dimension")
    return t, "backward" if norm is None else arguments.one_of(norm, _NORMS, owner, "norm")


def _size(x: Tensor, axis: int, given: int | None, kind: str) -> int:
    if given is not None:
        return given
    n = x.shape[axis]
    return 2 * (n - 1) if kind in ("irfft", "hfft") else n


def _along(kind: str) -> Callable[..., Tensor]:
    @one_plan
    def transform(input: Any, n: Any = None, dim: Any = -1, norm: Any = None) -> Tensor:
        x, rule = _checked(input, norm, kind)
        axis = arguments.axis_of(dim, x.ndim, kind, "dim")
        given = None if n is None else arguments.integer(n, kind, "n", 1)
        size = _positive(_size(x, axis, given, kind), kind)
        return _transform(x, [axis], [size], rule, kind, kind)

    return transform


def _positive(size: int, owner: str) -> int:
    if size < 1:
        bad_value(f"For '{owner}', there is nothing to transform: a length is {size}")
    return size


def _over(kind: str, name: str, dims: tuple[int, ...] | None) -> Callable[..., Tensor]:
    @one_plan
    def transform(input: Any, s: Any = None, dim: Any = dims, norm: Any = None) -> Tensor:
        x, rule = _checked(input, norm, name)
        given = None if s is None else arguments.integers(s, name, "s")
        if dim is None and given is not None:
            dim = tuple(range(-len(given), 0))
        axes = arguments.axes_of(dim, x.ndim, name, "dim")
        if given is not None and len(given) != len(axes):
            bad_value(f"For '{name}', s and dim must be equally long, got {given} and {list(axes)}")
        real = [kind] * len(axes) if kind in ("fft", "ifft") else ["fft"] * (len(axes) - 1) + [kind]
        sizes = [
            _positive(_size(x, a, None if given is None else given[i], real[i]), name)
            for i, a in enumerate(axes)
        ]
        return _transform(x, axes, sizes, rule, kind, name)

    return transform


#: kind: what its transform is.
_KINDS = {
    "fft": "The discrete Fourier transform",
    "ifft": "The inverse discrete Fourier transform",
    "rfft": "The Fourier transform of a real signal: the n // 2 + 1 frequencies that are not negative",
    "irfft": "The real signal of n values with these n // 2 + 1 frequencies: the inverse of rfft",
    "hfft": "The real Fourier transform, n values, of a signal whose other half is its conjugate",
    "ihfft": "The inverse of hfft: n // 2 + 1 values of a real signal's inverse transform",
}
_ONE = """ along dim.

    n: the length, to which the signal is cut or padded with zeros; by default all of it, for
    inverse real transforms 2 (m - 1) of m frequencies. norm: 'backward' (None) divides the inverse
    transform by n, 'forward' the other, 'ortho' each by its root. Integers and float16 count as
    float32. Raises TypeError for bool and bfloat16, ValueError for invalid lengths, dims and norms.
    """
_SEVERAL = """ along {}.

    s: the lengths along dim to cut to or fill up with zeros to. dim: {}. norm, dtypes and errors
    as in ops.{}; what is particular to real signals is about the last dim.
    """


def _make() -> None:
    for kind, text in _KINDS.items():
        forms = {
            kind: (_along(kind), text + _ONE),
            f"{kind}2": (
                _over(kind, f"{kind}2", (-2, -1)),
                text + _SEVERAL.format("two dims", "by default the last two", kind),
            ),
            f"{kind}n": (
                _over(kind, f"{kind}n", None),
                text + _SEVERAL.format("several dims", "by default as many as s, or all", kind),
            ),
        }
        for name, (function, doc) in forms.items():
            function.__name__ = function.__qualname__ = name
            function.__doc__ = doc
            globals()[name] = function
            __all__.append(name)


_make()


# Frequencies --------------------------------------------------------------------------------------


def _frequencies(values: Callable[[int, float], Any], n: Any, d: Any, dtype: Any) -> Tensor:
    name = values.__name__
    count = arguments.integer(n, name, "n", 1)
    want: DType = default_dtype() if dtype is None else to_dtype(dtype)
    return Tensor(values(count, arguments.number(d, values.__name__, "d")), want)


def fftfreq(n: Any, d: Any = 1.0, dtype: Any = None) -> Tensor:
    """The n frequencies of fft's result for samples d apart, float32 unless dtype says otherwise."""
    return _frequencies(np.fft.fftfreq, n, d, dtype)


def rfftfreq(n: Any, d: Any = 1.0, dtype: Any = None) -> Tensor:
    """The n // 2 + 1 frequencies of rfft's result for samples d apart."""
    return _frequencies(np.fft.rfftfreq, n, d, dtype)


def _shifted(input: Any, dim: Any, owner: str, back: bool) -> Tensor:
    x = arguments.tensor(input, owner)
    axes = arguments.axes_of(dim, x.ndim, owner, "dim")
    return shaping.roll(x, [-(x.shape[a] // 2) if back else x.shape[a] // 2 for a in axes], axes)


@one_plan
def fftshift(input: Any, dim: Any = None) -> Tensor:
    """With the zero frequency moved to the middle of the dims (None: all)."""
    return _shifted(input, dim, "fftshift", False)


@one_plan
def ifftshift(input: Any, dim: Any = None) -> Tensor:
    """The inverse of fftshift: moves the zero frequency from the middle to the front."""
    return _shifted(input, dim, "ifftshift", True)


# Other forms --------------------------------------------------------------------------------------


@one_plan
def with_size(
    x: Any, *, signal_ndim: int, inverse: bool, real: bool, norm: str = "backward",
    onesided: bool = True, signal_sizes: Any = (),
) -> Tensor:  # fmt: skip
    """The transform over the last signal_ndim dimensions, 1 to 3: FFT, IFFT, RFFT or IRFFT as inverse
    and real say. onesided: of real signals half of the frequencies; signal_sizes: the signal's lengths
    in IRFFT.

    Raises TypeError for real tensors in FFT, IFFT and IRFFT and for complex ones in RFFT.
    """
    owner = "FFTWithSize"
    t, rule = _checked(x, norm, owner)
    rank = arguments.integer(signal_ndim, owner, "signal_ndim", 1)
    if rank > 3 or rank > t.ndim:
        bad_value(
            f"For '{owner}', signal_ndim must be 1, 2 or 3 and at most the number of dimensions of x, got "
            f"{rank} for shape {list(t.shape)}"
        )
    if t.dtype.is_complex == (real and not inverse):
        bad_type(f"For '{owner}', inverse={inverse}, real={real}: x is {t.dtype}")
    axes = list(range(t.ndim - rank, t.ndim))
    sizes = [t.shape[a] for a in axes]
    if not (real and onesided):
        y = _transform(t, axes, sizes, rule, "ifft" if inverse else "fft", owner)
        return part(y, 0) if real and inverse else y
    if not inverse:
        return _transform(t, axes, sizes, rule, "rfft", owner)
    given = arguments.integers(signal_sizes, owner, "signal_sizes")
    sizes[-1] = _positive(given[-1] if given else 2 * (sizes[-1] - 1), owner)
    if given and (
        given[:-1] != sizes[:-1] or len(given) != rank or given[-1] // 2 + 1 != t.shape[-1]
    ):
        bad_value(f"For '{owner}', signal_sizes {given} do not fit x of shape {list(t.shape)}")
    return _transform(t, axes, sizes, rule, "irfft", owner)


@one_plan
def stft(
    x: Any, n_fft: Any, hop_length: Any = None, win_length: Any = None, window: Any = None,
    center: bool = True, pad_mode: str = "REFLECT", normalized: bool = False, onesided: Any = None,
    return_complex: Any = None,
) -> Tensor:  # fmt: skip
    """Fourier transforms of overlapping pieces of a signal, [time] or [batch, time].

    Pieces of n_fft values are hop_length (n_fft // 4) apart and multiplied by the window, [win_length],
    ones by default, in their middle. center: pieces lie around their places, the ends mirrored
    (pad_mode 'REFLECT' or 'CONSTANT', zeros). Result [batch, frequencies, pieces], of real signals half
    of the frequencies (onesided), complex, or [..., 2] of the parts (return_complex False, which is
    the rule for real signals).

    pad_mode: 'REFLECT' or 'CONSTANT'. normalized: whether each transform is divided by sqrt(n_fft).
    onesided: whether only the first n_fft // 2 + 1 frequencies are computed; by default for real
    signals. return_complex: whether the result is complex; by default for complex signals.
    """
    t = arguments.tensor(x, "stft", "x")
    if t.ndim not in (1, 2):
        bad_value(f"stft: a signal has 1 or 2 dimensions, got shape {list(t.shape)}")
    n = arguments.integer(n_fft, "stft", "n_fft", 1)
    hop = n // 4 if hop_length is None else arguments.integer(hop_length, "stft", "hop_length", 1)
    width = n if win_length is None else arguments.integer(win_length, "stft", "win_length", 1)
    arguments.one_of(pad_mode.upper(), ("REFLECT", "CONSTANT"), "stft", "pad_mode")
    whole = t.dtype.is_complex
    half = not whole if onesided is None else bool(onesided)
    if half and whole:
        bad_value("stft: onesided=True needs a real signal")
    margin, length = (n // 2 if center else 0), t.shape[-1]
    if n > length + 2 * margin or hop < 1 or width > n:
        bad_value(
            f"stft: n_fft {n}, hop_length {hop} and win_length {width} do not fit a signal of {length}"
        )
    if margin >= length:
        bad_value(f"stft: a signal of {length} is too short for margins of {margin}")
    place = np.arange(-margin, length + margin)
    inside = (place >= 0) & (place < length)
    at = np.where(place < 0, -place, np.where(inside, place, 2 * (length - 1) - place))
    pieces = np.arange(0, len(at) - n + 1, hop)[:, None] + np.arange(n)
    frames = _ops.gather(t, Tensor(at[pieces]), t.ndim - 1)
    weights = np.zeros(n)
    weights[(n - width) // 2 : (n - width) // 2 + width] = 1
    factor = Tensor(weights, float32)
    if window is not None:
        w = arguments.tensor(window, "stft", "window")
        if list(w.shape) != [width]:
            bad_value(f"stft: the window must have {width} values, got shape {list(w.shape)}")
        factor = _ops.slice_scatter(w, [n], [(n - width) // 2], [1])
    frames = _ops.mul(frames, factor)
    if pad_mode.upper() == "CONSTANT":
        frames = _ops.mul(frames, Tensor(inside[pieces].astype(np.float32)))
    norm = "ortho" if normalized else "backward"
    axis = frames.ndim - 1
    y = _transform(frames, [axis], [n], norm, "rfft" if half else "fft", "stft")
    y = _ops.transpose(y, [*range(axis - 1), axis, axis - 1])
    return y if (whole if return_complex is None else return_complex) else _ops.view_as_real(y)
