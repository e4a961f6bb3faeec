"""Primitive: an op as an object, ops.Sin()(x)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

from gradcell.base import arguments
from gradcell.base.errors import bad_type

#: MindSpore's names of inputs, where they are not those of the op's function.
_INPUTS = {
    "AdaptiveMaxPool2D": "input", "ArgMaxWithValue": "input", "ArgMinWithValue": "input", "Argmax": "input_x",
    "BCEWithLogitsLoss": "input target weight posWeight", "BiasAdd": "input_x bias",
    "BinaryCrossEntropy": "input target weight", "BroadcastTo": "input", "Cast": "input_x dtype",
    "Cdist": "x1 x2", "Cholesky": "input_x", "Cross": "input other", "CumSum": "input axis",
    "Fill": "dtype dims x", "Flatten": "input_x", "FloorMod": "x y",
    "Gcd": "input other", "GeLU": "input", "Identity": "input_x", "LayerNorm": "input_x gamma beta",
    "LinSpace": "start stop num", "LogicalAnd": "x y", "LogicalOr": "x y", "MatMul": "input mat2",
    "MatrixDeterminant": "input", "OnesLike": "x", "Pow": "input exponent", "Rank": "x", "RealDiv": "x y",
    "ReduceAll": "input axis", "ResizeBilinearV2": "image size", "ResizeNearestNeighborV2": "image size",
    "ReverseV2": "input", "Roll": "input", "ScalarToTensor": "x dtype", "Shape": "x",
    "Slice": "input begin size", "SmoothL1Loss": "prediction target", "Split": "input_x",
    "Sqrt": "x", "StridedSlice": "input_x begin end strides", "Svd": "input",
    "TensorScatterElements": "data indices updates", "Transpose": "input dims", "ZerosLike": "x",
}  # fmt: skip


class Primitive:
    """An op as an object: constructed with its attributes, called with its inputs.

    name: the op's name, by default the class's. attributes: the op's settings, by name.
    """

    def __init__(self, name: str | None = None, **attributes: Any) -> None:
        self.name = name or type(self).__name__
        self.attributes = attributes
        self._added: dict[str, Any] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"{self.name} has no function")

    @property
    def attrs(self) -> dict[str, Any]:
        """The attributes, and what has been added to them."""
        return {**self.attributes, **self._added}

    def init_prim_io_names(self, inputs: Any, outputs: Any) -> None:
        """Keeps the names of what goes in and comes out."""
        self.add_prim_attr("input_names", inputs).add_prim_attr("output_names", outputs)

    def add_prim_attr(self, name: str, value: Any) -> Primitive:
        """Keeps a value under a name; the op computes the same. Returns itself."""
        self.__dict__[name] = self._added[name] = value
        return self

    def del_prim_attr(self, name: str) -> Primitive:
        """Removes what add_prim_attr keeps. Returns itself."""
        if name in self._added:
            del self._added[name], self.__dict__[name]
        return self

    def set_stage(self, stage: int) -> Primitive:
        """Keeps the stage of a pipeline. Returns itself."""
        return self.add_prim_attr("stage", stage)

    def __repr__(self) -> str:
        names = ("input_names", "output_names")
        inside = ", ".join(f"{k}={v}" for k, v in self.attrs.items() if k not in names)
        return f"Prim[{self.name}]" + (f"<{inside}>" if inside else "")

    __str__ = __repr__


def inputs_of(
    name: str, function: Callable[..., Any], attributes: Iterable[str] = ()
) -> dict[str, str]:
    """What the op's inputs are called: {by MindSpore: by the function}, in order."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    own = [
        p.name
        for p in inspect.signature(function).parameters.values()
        if p.kind in kinds and p.name not in attributes
    ]
    named = _INPUTS.get(name, "").split() or own
    return dict(zip(named, own, strict=False))


def apply(
    primitive: Primitive,
    function: Callable[..., Any],
    inputs: dict[str, str],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """function(inputs, attributes), inputs by position or under MindSpore's names.

    Raises TypeError, with those names and the user's line, for inputs that it does not take.
    """
    for name in kwargs:
        if name not in inputs:
            bad_type(
                f"ops.{primitive.name}: there is no input {name!r}; the inputs are {', '.join(inputs)}"
            )
    given = {inputs[name]: value for name, value in kwargs.items()}
    try:
        return function(*args, **given, **primitive.attributes)
    except TypeError:
        given.update(primitive.attributes)
        arguments.explain_misfit(f"ops.{primitive.name}", function, args, given)
        raise


def primitive_of(name: str, function: Callable[..., Any]) -> type[Primitive]:
    """The class of an op without attributes, over its function."""

    inputs = inputs_of(name, function)

    def call(self: Primitive, *args: Any, **kwargs: Any) -> Any:
        return apply(self, function, inputs, args, kwargs)

    members = {"__call__": call, "__doc__": function.__doc__, "__module__": "gradcell.ops"}
    return type(name, (Primitive,), members)
