"""Constructors: of all public classes as recorded, and of those that declare fields, which check each."""

from __future__ import annotations

import copy
import importlib
import inspect
import itertools
import pickle
import typing
from dataclasses import InitVar
from pathlib import Path
from typing import Any

import pytest
import signatures_of

import gradcell as gc
from gradcell import nn
from gradcell.base import fields

GOLDEN = Path(__file__).parents[1] / "golden" / "constructors.txt"
#: What arguments without a default can be, tried in this order.
VALUES = (
    2, 0.5, (2, 2), 4, gc.Tensor([0.5, 0.5]), "mean", [1, 2, 2, 1], abs, "relu",
    [gc.Parameter(gc.Tensor([0.5]), name="p")], ((1, 1), (2, 2)), gc.nn.Dense(2, 2),
    1, [abs], "int32", gc.dataset.text.Vocab({"a": 1}),
)  # fmt: skip


def class_of(name: str) -> Any:
    place, _, last = f"gradcell.{name}".rpartition(".")
    return getattr(importlib.import_module(place), last)


LINES = GOLDEN.read_text().splitlines()
CLASSES = {name: class_of(name) for name in (line.partition("(")[0] for line in LINES)}
DECLARED = {
    name: cls
    for name, cls in CLASSES.items()
    if hasattr(cls.__init__, "declares") and not inspect.isabstract(cls)
}


def made(cls: Any) -> tuple[Any, dict[str, Any]]:
    """An object of the class, and what it was made of."""
    needed = [
        f.alias or name for name, f in cls._declared_fields.items() if f.default is fields.NEEDED
    ]
    for values in itertools.product(VALUES, repeat=len(needed)):
        given = dict(zip(needed, values, strict=True))
        try:
            return cls(**given), given
        except (TypeError, ValueError):
            continue
    raise AssertionError(f"{cls.__name__}: no values found for {needed}")


def test_constructors_are_those_recorded() -> None:
    found = [f"{n}{signatures_of.text(inspect.signature(cls))}" for n, cls in CLASSES.items()]
    assert found == LINES


def test_many_classes_declare_fields() -> None:
    assert len(DECLARED) >= 130


@pytest.mark.parametrize("name", DECLARED)
def test_each_field_refuses_what_it_is_not(name: str) -> None:
    cls = DECLARED[name]
    _, given = made(cls)
    owner = next(c.__name__ for c in cls.__mro__ if "_declared_fields" in vars(c))
    owner = cls.__name__ if owner.startswith("_") else owner
    for attribute, field in cls._declared_fields.items():
        argument = field.alias or attribute
        if field.fixed:
            with pytest.raises(TypeError, match=rf"\w\(\) got an unexpected .*'{argument}'"):
                cls(**given, **{argument: field.default})
            continue
        with pytest.raises(TypeError, match=r"multiple values|positional"):
            cls(*[None] * 40, **{argument: None})
        if argument in given:
            with pytest.raises(TypeError, match=rf"{owner}\(\) missing .*'{argument}'"):
                cls(**{k: v for k, v in given.items() if k != argument})
        if field.check is not None:
            with pytest.raises((TypeError, ValueError), match=argument) as refused:
                cls(**{**given, argument: object()})
            text = str(refused.value).replace(f", in {cls.__name__}", "")
            assert owner in text and ", in " not in text
    with pytest.raises(TypeError, match=r"\w\(\) got an unexpected .*'nonsense'"):
        cls(**given, nonsense=1)


@pytest.mark.parametrize("name", DECLARED)
def test_the_types_of_a_constructor_can_be_resolved(name: str) -> None:
    init = DECLARED[name].__init__
    assert set(typing.get_type_hints(init)) == {*inspect.signature(init).parameters} - {"self"} | {
        "return"
    }


@pytest.mark.parametrize("name", DECLARED)
def test_declared_objects_are_copied_and_pickled(name: str) -> None:
    one, _ = made(DECLARED[name])
    copies = [copy.deepcopy(one)]
    if "function" not in repr(vars(one)):
        copies.append(pickle.loads(pickle.dumps(one)))
    for other in copies:
        assert type(other) is type(one)
        assert set(vars(other)) == set(vars(one))
        assert repr(other).partition("at 0x")[0] == repr(one).partition("at 0x")[0]
        for attribute, field in type(one)._declared_fields.items():
            if field.kept and isinstance(getattr(one, attribute), (int, float, str, tuple)):
                assert getattr(other, attribute) == getattr(one, attribute)


# The mechanism ------------------------------------------------------------------------------------


@fields.declared
class Shift(nn.Cell):
    by: float = fields.number(least=0, shown=True)
    axis: int | None = fields.integer(default=None, alias="dim", shown=True)
    start: InitVar[Any] = fields.anything(default="ones")
    fast: bool = fields.boolean(default=False, kw_only=True)

    def _build(self, start: Any) -> None:
        self.scale = gc.Parameter(gc.common.initializer.initializer(start, (2,)), name="scale")

    def construct(self, x: gc.Tensor) -> gc.Tensor:
        return x * self.scale + self.by


@fields.declared
class Further(Shift):
    axis: int | None = fields.integer(default=3, alias="dim", shown=True)
    more: int = fields.one_of(1, 2, default=1)


def test_a_declared_cell() -> None:
    cell = Shift(1, dim=2, fast=True)
    assert (cell.by, cell.axis, cell.fast) == (1.0, 2, True)
    assert not hasattr(cell, "start") and not hasattr(Shift, "by")
    assert cell(gc.Tensor([1.0, 2.0])).asnumpy().tolist() == [2.0, 3.0]
    assert repr(cell) == "Shift(by=1.0, axis=2)"
    assert str(inspect.signature(Shift)) == (
        "(by: 'float', dim: 'int | None' = None, start: 'Any' = 'ones', *, fast: 'bool' = False)"
    )
    assert [p.name for p in cell.trainable_params()] == ["scale"]


def test_declared_fields_are_inherited_in_their_place() -> None:
    assert list(inspect.signature(Further).parameters) == ["by", "dim", "start", "more", "fast"]
    cell = Further(1, 2, "zeros", 2)
    assert (cell.axis, cell.more) == (2, 2)
    assert Further(1).axis == 3
    assert cell(gc.Tensor([1.0, 2.0])).asnumpy().tolist() == [1.0, 1.0]


class Base:
    def __init__(self, rate: float, name: str = "base") -> None:
        if rate < 0:
            raise ValueError("a negative rate")
        self.rate, self.name = rate, name


@fields.declared
class OfBase(Base):
    size: int = fields.integer(1)
    speed: InitVar[float] = fields.of_base("rate", default=0.5)
    name: InitVar[str] = fields.fixed("own", of_base="name")

    def _build(self, speed: float) -> None:
        self.reach = self.size * speed


@fields.declared
class Fixed(Shift):
    axis: int | None = fields.fixed(2)
    start: InitVar[Any] = fields.fixed("zeros")

    def _build(self, **given: Any) -> None:  # type: ignore[override]
        assert given == {"start": "zeros"}
        super()._build(**given)


def test_arguments_of_the_base_class_come_first() -> None:
    one = OfBase(3, 2.0)
    assert (one.rate, one.name, one.size, one.reach) == (2.0, "own", 3, 6.0)
    assert str(inspect.signature(OfBase)) == "(size: 'int', speed: 'float' = 0.5) -> 'None'"
    with pytest.raises(ValueError, match="a negative rate"):
        OfBase("none", -1.0)  # type: ignore[arg-type]


def test_fixed_fields_are_no_arguments() -> None:
    assert list(inspect.signature(Fixed).parameters) == ["by", "fast"]
    cell = Fixed(1)
    assert cell.axis == 2
    assert cell(gc.Tensor([1.0, 2.0])).asnumpy().tolist() == [1.0, 1.0]
    with pytest.raises(TypeError, match="unexpected keyword argument 'start'"):
        Fixed(1, start="ones")  # type: ignore[call-arg]


def test_own_constructors_call_declared_ones() -> None:
    class Own(nn.Dense):
        def __init__(self, features: int) -> None:
            super().__init__(features, features, has_bias=False)
            self.features = features

    class Child(Own):
        pass

    layer = Child(3)
    assert layer.weight.shape == (3, 3) and layer.features == layer.in_channels == 3
    with pytest.raises(TypeError, match="For 'Dense', the 'in_channels' must be int"):
        Child("3")  # type: ignore[arg-type]


def test_a_plain_class_declares_fields() -> None:
    @fields.declared
    class Plain:
        size: int = fields.integer(1)

    assert Plain(2).size == 2
    with pytest.raises(ValueError, match="For 'Plain', the 'size' must be at least 1, but got 0"):
        Plain(0)
    with pytest.raises(TypeError, match="unexpected keyword argument 'sise': use size"):
        Plain(sise=1)  # type: ignore[call-arg]


def test_types_without_a_field_are_those_of_the_class() -> None:
    """Else type checkers would see an argument that the constructor does not take."""
    with pytest.raises(TypeError, match=r"Other\.rank is no field: its type has to be a ClassVar"):

        @fields.declared
        class Other:
            rank: int = 2
            size: int = fields.integer(1)
