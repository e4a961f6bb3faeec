"""Primitive: an op as an object, ops.Sin()(x)."""

from __future__ import annotations

from typing import Any


class Primitive:
    """An op as an object: constructed with its attributes, called with its inputs.

    name: the op's name, by default the class's. attributes: the op's settings, by name.
    """

    def __init__(self, name: str | None = None, **attributes: Any) -> None:
        self.name: str = name or type(self).__name__
        self.attributes = attributes
        self.attrs: dict[str, Any] = {**attributes}  # and what has been added to them

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"{self.name} has no function")

    def init_prim_io_names(self, inputs: Any, outputs: Any) -> None:
        """Keeps the names of what goes in and comes out."""
        self.add_prim_attr("input_names", inputs).add_prim_attr("output_names", outputs)

    def add_prim_attr(self, name: str, value: Any) -> Primitive:
        """Keeps a value under a name; the op computes the same. Returns itself."""
        self.__dict__[name] = self.attrs[name] = value
        return self

    def del_prim_attr(self, name: str) -> Primitive:
        """Removes what add_prim_attr keeps. Returns itself."""
        if name in self.attrs and name in self.__dict__:
            del self.attrs[name], self.__dict__[name]
        return self

    def set_stage(self, stage: int) -> Primitive:
        """Keeps the stage of a pipeline. Returns itself."""
        return self.add_prim_attr("stage", stage)

    def __repr__(self) -> str:
        names = ("input_names", "output_names")
        inside = ", ".join(f"{k}={v}" for k, v in self.attrs.items() if k not in names)
        return f"Prim[{self.name}]" + (f"<{inside}>" if inside else "")

    __str__ = __repr__
