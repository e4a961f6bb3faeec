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
    "mindspore.dataset.core": "gradcell.dataset",
    "mindspore.dataset.core.validator_helpers": "gradcell.dataset.config",
    "mindspore.dataset.engine": "gradcell.dataset",
    "mindspore.dataset.engine.datasets": "gradcell.dataset",
    "mindspore.dataset.engine.samplers": "gradcell.dataset",
    "mindspore.dataset.text.transforms": "gradcell.dataset.text",
    "mindspore.dataset.text.utils": "gradcell.dataset.text",
    "mindspore.dataset.transforms.c_transforms": "gradcell.dataset.transforms",
    "mindspore.dataset.transforms.py_transforms": "gradcell.dataset.transforms",
    "mindspore.dataset.transforms.transforms": "gradcell.dataset.transforms",
    "mindspore.dataset.vision.c_transforms": "gradcell.dataset.vision",
    "mindspore.dataset.vision.py_transforms": "gradcell.dataset.vision",
    "mindspore.dataset.vision.transforms": "gradcell.dataset.vision",
    "mindspore.dataset.vision.utils": "gradcell.dataset.vision",
    "mindspore.mindrecord.filereader": "gradcell.mindrecord",
    "mindspore.mindrecord.filewriter": "gradcell.mindrecord",
    "mindspore.train.callback._callback": "gradcell.train.callback",
    "mindspore.train.callback._checkpoint": "gradcell.train.callback",
    "mindspore.train.callback._loss_monitor": "gradcell.train.callback",
    "mindspore.train.callback._summary_collector": "gradcell.train.callback",
    "mindspore.train.callback._time_monitor": "gradcell.train.callback",
    "mindspore.common.api": "gradcell",
    "mindspore.common.dtype": "gradcell.dtype",
    "mindspore.common.parameter": "gradcell.parameter",
    "mindspore.common.tensor": "gradcell",
    "mindspore.nn.cell": "gradcell.nn.cell",
    "mindspore.nn.loss": "gradcell.nn",
    "mindspore.nn.loss.loss": "gradcell.nn",
    "mindspore.ops.composite": "gradcell.ops",
    "mindspore.ops.function": "gradcell.ops",
    "mindspore.ops.functional": "gradcell.ops",
    "mindspore.ops.operations": "gradcell.ops",
    "mindspore.ops.primitive": "gradcell.ops",
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
