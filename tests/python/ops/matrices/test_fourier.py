"""Fourier transforms: against NumPy's in all lengths, norms and dimensions; derivatives against finite
differences; what MindSpore gives is in test_agreement.py."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from check_grads import check_grads

import gradcell as ms
from gradcell import Tensor, ops
from gradcell.ops.elements.complex_numbers import complex_of, part

LENGTHS = [1, 2, 3, 4, 5, 7, 8, 11, 12, 13, 16, 30, 49, 97, 121, 128, 251, 1000]
NORMS = [None, "backward", "ortho", "forward"]


def signal(*shape: int) -> np.ndarray:
    rng = np.random.default_rng(sum(shape))
    return rng.standard_normal(shape) + 1j * rng.standard_normal(shape)


def close(found: Any, expected: np.ndarray, rtol: float = 1e-13) -> None:
    array = found.asnumpy()
    assert array.shape == expected.shape and array.dtype.kind == expected.dtype.kind
    np.testing.assert_allclose(
        array, expected, rtol=0, atol=rtol * max(1, np.abs(expected).max(initial=0))
    )


@pytest.mark.parametrize("n", LENGTHS)
def test_lengths(n: int) -> None:
    z = signal(2, n)
    for dtype, tolerance in (("complex128", 1e-13), ("complex64", 2e-6)):
        x = Tensor(z.astype(dtype))
        close(ops.fft(x), np.fft.fft(z), tolerance)
        close(ops.ifft(x), np.fft.ifft(z), tolerance)
        assert ops.fft(x).dtype == x.dtype
    close(ops.rfft(Tensor(z.real)), np.fft.rfft(z.real))
    close(ops.ihfft(Tensor(z.real)), np.fft.ihfft(z.real))
    close(ops.irfft(Tensor(z), n), np.fft.irfft(z, n))
    close(ops.hfft(Tensor(z), n), np.fft.hfft(z, n))
    close(ops.ifft(ops.fft(Tensor(z))), z)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_along(name: str, norm: str | None) -> None:
    z = signal(3, 5, 4)
    z = z.real if name in ("rfft", "ihfft") else z
    for n in (None, 3, 4, 7, 8):
        for axis in (0, 1, -1):
            found = getattr(ops, name)(Tensor(z), n, axis, norm)
            close(found, getattr(np.fft, name)(z, n, axis, norm))


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft"])
def test_over_several(name: str, norm: str | None) -> None:
    z = signal(3, 5, 4)
    z = z.real if name == "rfft" else z
    close(getattr(ops, f"{name}2")(Tensor(z), norm=norm), getattr(np.fft, f"{name}2")(z, norm=norm))
    for s, axes in [
        (None, (0, 2)),
        ((4, 6), (0, 1)),
        ((2, 3), (-1, 0)),
        (None, (1, 2, 0)),
        ((5, 2, 3), None),
    ]:
        dims = (0, 1, 2) if axes is None else axes
        close(
            getattr(ops, f"{name}n")(Tensor(z), s, axes, norm),
            getattr(np.fft, f"{name}n")(z, s, dims, norm),
        )


def test_half_of_conjugates() -> None:
    """hfftn is the forward transform of what irfftn is the inverse of; ihfftn undoes it."""
    x = np.random.default_rng(0).standard_normal((4, 6))
    half = ops.ihfftn(Tensor(x))
    close(half, np.conj(np.fft.rfftn(x)) / 24)
    close(ops.hfftn(half, (4, 6)), x)
    close(ops.hfft2(half, (4, 6)), x)


def test_dtypes() -> None:
    for kind, wide in (("int32", "complex64"), ("float16", "complex64"), ("float64", "complex128")):
        x = Tensor(np.arange(4).astype(kind))
        assert ops.fft(x).dtype.name == wide and ops.rfft(x).dtype.name == wide
        assert ops.irfft(x).dtype.name == ("float32" if wide == "complex64" else "float64")
        close(ops.fft(x), np.fft.fft(np.arange(4)), 1e-6)
    assert (
        ops.fftfreq(4).dtype == ms.float32 and ops.fftfreq(4, dtype=ms.float64).dtype == ms.float64
    )
    np.testing.assert_array_equal(
        ops.fftfreq(5, 0.5).asnumpy(), np.fft.fftfreq(5, 0.5).astype(np.float32)
    )


def test_shifts() -> None:
    z = signal(3, 4)
    for dim in (None, 0, 1, (0, 1)):
        close(ops.fftshift(Tensor(z), dim), np.fft.fftshift(z, dim))
        close(ops.ifftshift(Tensor(z), dim), np.fft.ifftshift(z, dim))


def test_large_ones_use_threads_and_agree() -> None:
    z = signal(256, 360).astype(np.complex64)
    before = ms.get_context("max_threads")
    found = [ops.fft2(Tensor(z)).asnumpy()]
    ms.set_context(max_threads=1)
    found.append(ops.fft2(Tensor(z)).asnumpy())
    ms.set_context(max_threads=before)
    np.testing.assert_array_equal(*found)
    close(Tensor(found[0]), np.fft.fft2(z.astype(np.complex128)).astype(np.complex64), 1e-6)


# Derivatives --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "options"),
    [("fft", {}), ("ifft", {"n": 5}), ("fft", {"n": 2, "norm": "ortho"}), ("irfft", {"n": 5}),
     ("irfft", {"n": 6, "norm": "forward"}), ("hfft", {}), ("fft2", {}), ("ifftn", {"s": (3, 2)}),
     ("irfft2", {}), ("hfftn", {"s": (2, 5)})],
)  # fmt: skip
def test_transforms_have_derivatives_of_both_parts(name: str, options: dict[str, Any]) -> None:
    z = signal(3, 4)

    def parts(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        w = getattr(ops, name)(complex_of(x, y) ** 2, **options)
        return (part(w, 0), part(w, 1)) if w.dtype.is_complex else (ops.sin(w),)

    check_grads(parts, [z.real, z.imag], order=2)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("rfft", {}),
        ("rfft", {"n": 7}),
        ("ihfft", {}),
        ("rfft2", {}),
        ("rfftn", {"s": (2, 3)}),
        ("fft", {}),
    ],
)
def test_derivatives_of_real_signals(name: str, options: dict[str, Any]) -> None:
    def power(x: Tensor) -> Tensor:
        return ops.real(ops.square(ops.abs(getattr(ops, name)(ops.sin(x), **options))))

    check_grads(power, [signal(3, 4).real], order=3)


def test_spectral_derivative_in_a_plan() -> None:
    """d/dx of sin 3x by multiplication with i k; its residual's gradient; the same in jit."""
    n = 32
    x = np.arange(n) * 2 * np.pi / n
    k = Tensor(np.fft.fftfreq(n, 1 / n) * 1j)

    def slope(u: Tensor) -> Tensor:
        return ops.real(ops.ifft(ops.fft(u) * k))

    u = Tensor(np.sin(3 * x))
    np.testing.assert_allclose(slope(u).asnumpy(), 3 * np.cos(3 * x), atol=1e-12)
    loss = lambda v: ops.square(slope(v)).sum()  # noqa: E731
    expected = 2 * 9 * np.sin(3 * x)  # -2 u''
    for transform in (ms.grad(loss), ms.jit(ms.grad(loss))):
        np.testing.assert_allclose(transform(u).asnumpy(), expected, atol=1e-10)
    rows = Tensor(np.stack([np.sin(x), np.cos(2 * x)]))
    np.testing.assert_allclose(
        ms.vmap(slope)(rows).asnumpy(), np.stack([np.cos(x), -2 * np.sin(2 * x)]), atol=1e-12
    )


def test_stft_against_a_loop() -> None:
    x = np.random.default_rng(1).standard_normal(40)
    window = np.hanning(8)
    found = ops.stft(Tensor(x), 8, 3, window=Tensor(window), return_complex=True)
    padded = np.pad(x, 4, mode="reflect")
    pieces = [padded[i : i + 8] * window for i in range(0, 41, 3) if i + 8 <= 48]
    close(found, np.stack([np.fft.rfft(p) for p in pieces], -1))


# What there is not ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [(lambda x: ops.fft(x, norm="bad"), ValueError, "norm"),
     (lambda x: ops.fft(x, n=0), ValueError, "at least 1"),
     (lambda x: ops.fft(x, dim=3), ValueError, "dim"),
     (lambda x: ops.fft(Tensor(3.0)), ValueError, "dimension"),
     (lambda x: ops.fft([1.0]), TypeError, "fft.*Tensor"),
     (lambda x: ops.fft(x.astype(ms.bool)), TypeError, "fft.*Bool"),
     (lambda x: ops.fft(x.astype(ms.bfloat16)), TypeError, "fft.*BFloat16"),
     (lambda x: ops.fftn(x, dim=(0, 0)), ValueError, "differ"),
     (lambda x: ops.fftn(x, (2, 3), (0,)), ValueError, "equally long"),
     (lambda x: ops.irfft(x[:, :1]), ValueError, "length is 0"),
     (lambda x: ops.FFTWithSize(1, False, False)(x), TypeError, "Float32"),
     (lambda x: ops.FFTWithSize(4, False, True)(x), ValueError, "signal_ndim"),
     (lambda x: ops.FFTWithSize(1, True, True, signal_sizes=(9,))(x * 1j), ValueError, "signal_sizes"),
     (lambda x: ops.stft(x, 9), ValueError, "stft")],
)  # fmt: skip
def test_errors(call: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        call(Tensor(np.ones((3, 4), np.float32)))
