"""The Array API standard, version 2024.12, over tensors: what Tensor.__array_namespace__ gives.

Libraries that are written for the standard, such as SciPy and scikit-learn, compute with tensors by it, and
derivatives go through them. Most functions are those of ops; a promotion that the standard leaves open is
that of Tensor's operators.
"""

from __future__ import annotations

import math as _math

from gradcell.array_api import data_types as _data_types, fft, functions as _functions, linalg
from gradcell.array_api.data_types import *  # noqa: F403
from gradcell.array_api.data_types import Info as _Info
from gradcell.array_api.functions import *  # noqa: F403

__array_api_version__ = "2024.12"
__array_namespace_info__ = _Info

e: float = _math.e
inf: float = _math.inf
nan: float = _math.nan
newaxis: None = None
pi: float = _math.pi

__all__ = [
    "e", "fft", "inf", "linalg", "nan", "newaxis", "pi", *_data_types.__all__, *_functions.__all__,
]  # fmt: skip
__dir__ = sorted(__all__).copy
