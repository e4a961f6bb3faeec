"""Lets a script that imports mindspore run on gradcell: `mindspore` and its submodules become names
of the modules here. Used by `python -m gradcell run`."""

from __future__ import annotations

import contextlib
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import pkgutil
import sys
from collections.abc import Sequence
from types import ModuleType

_NAME = "mindspore"

#: Submodules that stand somewhere else here.
_PLACES = {
    "mindspore.common.api": "gradcell",
    "mindspore.common.dtype": "gradcell.dtype",
    "mindspore.common.parameter": "gradcell.parameter",
    "mindspore.common.tensor": "gradcell",
    "mindspore.nn.cell": "gradcell.nn.cell",
    "mindspore.nn.layer": "gradcell.nn",
    "mindspore.nn.layer.activation": "gradcell.nn.activations",
    "mindspore.nn.layer.basic": "gradcell.nn.basic",
    "mindspore.nn.layer.combined": "gradcell.nn.fused",
    "mindspore.nn.layer.container": "gradcell.nn.containers",
    "mindspore.nn.layer.conv": "gradcell.nn.convolution",
    "mindspore.nn.layer.dense": "gradcell.nn.basic",
    "mindspore.nn.layer.embedding": "gradcell.nn.basic",
    "mindspore.nn.layer.image": "gradcell.nn.images",
    "mindspore.nn.layer.math": "gradcell.nn.op_cells",
    "mindspore.nn.layer.normalization": "gradcell.nn.normalization",
    "mindspore.nn.layer.padding": "gradcell.nn.padding",
    "mindspore.nn.layer.pooling": "gradcell.nn.pooling",
    "mindspore.nn.layer.rnn_cells": "gradcell.nn.recurrent",
    "mindspore.nn.layer.rnns": "gradcell.nn.recurrent",
    "mindspore.nn.layer.transformer": "gradcell.nn.attention",
    "mindspore.nn.loss": "gradcell.nn",
    "mindspore.nn.loss.loss": "gradcell.nn.losses",
    "mindspore.nn.utils": "gradcell.nn.cell",
    "mindspore.ops.composite": "gradcell.ops",
    "mindspore.ops.function": "gradcell.ops",
    "mindspore.ops.functional": "gradcell.ops",
    "mindspore.ops.operations": "gradcell.ops",
    "mindspore.ops.primitive": "gradcell.ops",
    "mindspore.train.metrics": "gradcell.nn.metrics",
}


def _place(name: str) -> str | None:
    """The module that `name` stands for, or None if there is none."""
    own = "gradcell" + name[len(_NAME) :]
    try:
        if importlib.util.find_spec(own) is not None:
            return own
    except ModuleNotFoundError:
        pass
    return _PLACES.get(name)


def _absent(name: str) -> str:
    return f"gradcell has no {_NAME}{name[len('gradcell') :]}"


def _say_what_is_missing(module: ModuleType) -> None:
    """Has the module call names that it lacks by MindSpore's full name."""
    own = module.__dict__.get("__getattr__")

    def missing(name: str) -> object:
        if own is not None:
            with contextlib.suppress(AttributeError):
                return own(name)
        raise AttributeError(_absent(f"{module.__name__}.{name}"))

    module.__getattr__ = missing  # type: ignore[method-assign]


class _Loader(importlib.abc.Loader):
    def __init__(self, place: str) -> None:
        self.place = place

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return importlib.import_module(self.place)

    def exec_module(self, module: ModuleType) -> None:
        """The module has run already."""


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if (
            name.startswith("gradcell.")
            and importlib.machinery.PathFinder.find_spec(name, path) is None
        ):
            # `from mindspore.x import name`, with no such name
            raise ModuleNotFoundError(_absent(name), name=_NAME + name[len("gradcell") :])
        if name != _NAME and not name.startswith(_NAME + "."):
            return None
        place = _place(name)
        if place is None:
            raise ModuleNotFoundError(f"gradcell has no {name}", name=name)
        return importlib.machinery.ModuleSpec(name, _Loader(place), is_package=True)


def install() -> None:
    """From now on, `import mindspore` imports gradcell. An installed MindSpore is not touched."""
    if any(isinstance(f, _Finder) for f in sys.meta_path):
        return
    for name in [n for n in sys.modules if n == _NAME or n.startswith(_NAME + ".")]:
        del sys.modules[name]
    package = importlib.import_module("gradcell")
    _say_what_is_missing(package)
    for found in pkgutil.walk_packages(package.__path__, "gradcell."):
        if not found.name.endswith(("._core", ".__main__", ".demo")):
            _say_what_is_missing(importlib.import_module(found.name))
    sys.meta_path.insert(0, _Finder())
    sys.modules[_NAME] = package
