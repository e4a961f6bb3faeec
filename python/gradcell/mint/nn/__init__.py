"""mindspore.mint.nn: layers and losses in mint's spelling, over those of gradcell.nn.

layers.py has those with parameters of other names. Each other one is a row: (mint's constructor, the
class of gradcell.nn, what its constructor gets, names).
"""

from __future__ import annotations

import inspect as _inspect
import typing as _typing
from importlib import import_module as _import_module
from typing import Any

from gradcell import nn as _nn
from gradcell.base import notice
from gradcell.base.location import where

_CONV = (
    "in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True, "
    "padding_mode='zeros', dtype=None"
)
_LOSS = "reduction='mean'"

_ROWS: tuple[tuple[str, str, str], ...] = (
    ("in_features, out_features, bias=True, weight_init=None, bias_init=None, dtype=None",
     "in_features, out_features, weight_init, bias_init, bias, **_dtype(dtype)", "Linear=Dense"),
    (_CONV, "in_channels, out_channels, kernel_size, stride, **_padding(padding, padding_mode), "
     "dilation=dilation, group=groups, has_bias=bias, **_dtype(dtype)", "Conv2d Conv3d"),
    ("inplace=False", "**_new(inplace)", "ReLU6 SiLU"),
    ("", "", "ReLU Sigmoid Tanh LogSigmoid Mish SELU=SeLU Hardsigmoid=HSigmoid Hardswish=HSwish"),
    ("approximate='none'", "approximate == 'tanh'", "GELU"),
    ("alpha=1.0, inplace=False", "alpha, **_new(inplace)", "ELU"),
    ("lambd=0.5", "lambd", "Hardshrink=HShrink Softshrink=SoftShrink"),
    ("min_val=-1.0, max_val=1.0, inplace=False", "min_val, max_val, **_new(inplace)", "Hardtanh"),
    ("threshold, value, inplace=False", "threshold, value, **_new(inplace)", "Threshold"),
    ("dim=None", "-1 if dim is None else dim", "Softmax LogSoftmax"),
    ("dim=-1", "dim", "GLU"),
    ("p=0.5, inplace=False", "p=p, **_new(inplace)", "Dropout Dropout2d"),
    ("start_dim=1, end_dim=-1", "start_dim, end_dim", "Flatten"),
    ("*args, **kwargs", "", "Identity"),
    (_LOSS, "reduction", "MSELoss L1Loss"),
    ("reduction='mean', beta=1.0", "beta, reduction", "SmoothL1Loss"),
    ("weight=None, reduction='mean'", "weight, reduction", "BCELoss"),
    ("weight=None, reduction='mean', pos_weight=None",
     "reduction, weight, pos_weight",
     "BCEWithLogitsLoss"),
    ("weight=None, ignore_index=-100, reduction='mean', label_smoothing=0.0",
     "weight, ignore_index, reduction, label_smoothing", "CrossEntropyLoss"),
    ("weight=None, ignore_index=-100, reduction='mean'",
     "weight, ignore_index, reduction",
     "NLLLoss"),
    ("kernel_size=1, stride=None, padding=0, dilation=1, return_indices=False, ceil_mode=False",
     "kernel_size, kernel_size if stride is None else stride, 'pad', padding, dilation, "
     "return_indices, ceil_mode",
     "MaxPool2d"),
    ("kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, "
     "divisor_override=None",
     "kernel_size, kernel_size if stride is None else stride, 'pad', padding, ceil_mode, "
     "count_include_pad, divisor_override",
     "AvgPool2d AvgPool3d"),
    ("output_size", "output_size", "AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d"),
    ("upscale_factor", "upscale_factor", "PixelShuffle"),
)  # fmt: skip
_TABLE = {
    entry.partition("=")[0]: (signature, given, entry.partition("=")[2] or entry)
    for signature, given, entries in _ROWS
    for entry in entries.split()
}
#: Classes of layers.py.
_LAYERS = (
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "Conv1d",
    "ConvTranspose2d",
    "Embedding",
    "GroupNorm",
    "LayerNorm",
    "PReLU",
    "SyncBatchNorm",
)
__all__ = [*_TABLE, *_LAYERS, "Cell", "functional"]  # noqa: F405


def _dtype(dtype: Any) -> dict[str, Any]:
    return {} if dtype is None else {"dtype": dtype}


def _new(inplace: bool) -> dict[str, Any]:
    """Warns once where the input is to be overwritten."""
    if inplace:
        notice.once("mint.nn: inplace=True", "a layer gives a new tensor")
    return {}


def _padding(padding: Any, padding_mode: str) -> dict[str, Any]:
    """nn's pad_mode and padding for mint's: numbers, 'valid' or 'same'."""
    if padding_mode != "zeros":
        raise NotImplementedError(f"mint.nn: padding_mode {padding_mode!r} is not there{where()}")
    if isinstance(padding, str):
        return {"pad_mode": padding}
    if isinstance(padding, (tuple, list)):
        padding = tuple(n for n in padding for _ in (0, 1))
    return {"pad_mode": "pad", "padding": padding}


def _make(name: str) -> type:
    signature, given, base_name = _TABLE[name]
    base = getattr(_nn, base_name)
    made: dict[str, Any] = {}
    line = f"def __init__(self, {signature}):\n    base.__init__(self, {given})\n"
    names = {"base": base, "_dtype": _dtype, "_padding": _padding, "_new": _new}
    exec(compile(line, __file__, "exec"), names, made)
    text = f"nn.{base_name}, constructed as {name}({signature}).\n\n{_inspect.getdoc(base)}"
    return type(name, (base,), {**made, "__doc__": text, "__module__": "gradcell.mint.nn"})


if _typing.TYPE_CHECKING:
    from gradcell.mint.nn._tables import *  # noqa: F403

from gradcell.base.signposts import missing as _missing  # noqa: E402

if not _typing.TYPE_CHECKING:  # a misspelt name is an error to a type checker

    def __getattr__(name: str) -> Any:
        if name == "functional":
            return _import_module("gradcell.mint.nn.functional")
        if name == "Cell":
            return _nn.Cell
        if name in _LAYERS:
            return getattr(_import_module("gradcell.mint.nn.layers"), name)
        if name not in _TABLE:
            raise _missing("gradcell.mint.nn", name, __all__)
        value = _make(name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted(__all__)
