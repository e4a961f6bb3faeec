"""Cells that are functions of ops: made from the function and from the fields that the class declares."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from gradcell._core import Tensor
from gradcell.base import arguments, fields
from gradcell.base.fields import dataclass_transform
from gradcell.base.spelling import Parameters
from gradcell.nn.cell import Cell, Layer

C = TypeVar("C", bound=Cell)


@dataclass_transform(
    eq_default=False,
    field_specifiers=(
        fields.anything,
        fields.number,
        fields.boolean,
        fields.tensor,
        fields.checked,
    ),
)
def cell_of(function: Callable[..., Any], **others: str) -> Callable[[type[C]], type[C]]:
    """A decorator: the cell is this function of tensors, its inputs, and of what it keeps.

    The class declares its fields, as fields.declared has them; the function gets them by name, or by the name
    that `others` gives. A construct names the inputs and hands them to `_computed`, which refuses what is no
    tensor in these names; those of many cells are in base classes.
    """

    def made(cls: type[C]) -> type[C]:
        if any(isinstance(value, fields.Field) for value in vars(cls).values()):
            cls = fields.declared(cls)
        inputs = cls.construct.__code__.co_varnames[1 : cls.construct.__code__.co_argcount]
        kept = {"reduction", *getattr(cls, "_declared_fields", {})} - {*others}
        taken = () if inspect.isbuiltin(function) else Parameters(function).names[len(inputs) :]
        given = [*((name, name) for name in taken if name in kept), *others.items()]

        def computed(self: Any, *values: Any) -> Any:
            for name, value in zip(inputs, values, strict=True):
                arguments.tensor(value, type(self).__name__, name)
            return function(*values, **{other: getattr(self, name) for name, other in given})

        cls._computed = computed
        return cls

    return made


class OfX(Layer):
    """A function of x."""

    def construct(self, x: Tensor) -> Tensor:
        return self._computed(x)


class OfInput(Layer):
    """A function of what MindSpore calls input."""

    def construct(self, input: Tensor) -> Tensor:
        return self._computed(input)


class OfInputX(Layer):
    """A function of what MindSpore calls input_x."""

    def construct(self, input_x: Tensor) -> Tensor:
        return self._computed(input_x)
