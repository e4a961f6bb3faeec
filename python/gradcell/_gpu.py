"""Whether a GPU can be used, and if not, why."""

from __future__ import annotations

import ctypes

from gradcell import _core


def require() -> None:
    """Raises RuntimeError that says what is missing."""
    where = f" ({_core.user_location()})"
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        raise RuntimeError(
            "device_target='GPU': no NVIDIA driver was found (libcuda.so.1 cannot be opened). "
            f"Install the driver, or use device_target='CPU'.{where}"
        ) from None
    count = ctypes.c_int()
    if cuda.cuInit(0) != 0 or cuda.cuDeviceGetCount(ctypes.byref(count)) != 0 or count.value == 0:
        raise RuntimeError(
            "device_target='GPU': the NVIDIA driver is installed but reports no usable GPU. "
            f"Use device_target='CPU'.{where}"
        )
    raise RuntimeError(f"device_target='GPU': this build of gradcell has no CUDA engine{where}")
