"""The discrete Fourier transforms of ops, with NumPy's names of arguments: mindspore.numpy.fft."""

from gradcell.base.forms import Forms as _Forms
from gradcell.ops.matrices import fourier as _fourier

_ONE = "fft ifft rfft irfft hfft ihfft"

_FORMS = _Forms(
    "gradcell.numpy.fft",
    (
        ("a, n=None, axis=-1, norm=None", "fourier.{}(a, n, axis, norm)", _ONE),
        ("a, s=None, axes=(-2, -1), norm=None", "fourier.{}(a, s, axes, norm)",
         " ".join(f"{name}2" for name in _ONE.split())),
        ("a, s=None, axes=None, norm=None", "fourier.{}(a, s, axes, norm)",
         " ".join(f"{name}n" for name in _ONE.split())),
        ("x, axes=None", "fourier.{}(x, axes)", "fftshift ifftshift"),
        ("n, d=1.0, dtype=None", "fourier.{}(n, d, dtype)", "fftfreq rfftfreq"),
    ),
    {"fourier": _fourier},
)  # fmt: skip

__all__ = list(_FORMS.rows)

for _name in __all__:
    globals()[_name] = _FORMS.make(_name)
