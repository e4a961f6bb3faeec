"""The core of all transforms: variables of differentiation, recording of the function, signature,
checks and errors.

`By` says by what a transform differentiates, `Call` records the function, and `differentiating` is the
scope of the variables.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, Literal, ParamSpec, TypeAlias, TypeVar

import numpy as np

from gradcell import _core
from gradcell._core import Tensor
from gradcell.base import CellBase, Made, arguments, bad_type, bad_value, door, tree
from gradcell.base.naming import by_own_names
from gradcell.compilation.compiled import cache_for, own
from gradcell.derivatives.checks import (
    as_tensors,
    aux_of,
    check_argument,
    check_directions,
    check_outputs,
    check_positions,
    check_real,
    check_weights,
    refuse_in_no_grad,
    unmarked,
)
from gradcell.tensors.parameter import Parameter

# What the signatures of transforms are made of.
P = ParamSpec("P")
R = TypeVar("R")
No: TypeAlias = Literal[False]
Several: TypeAlias = tuple[int, ...]

#: NumPy's kinds of numbers, and Python's.
_NUMBERS = (np.number, np.bool_, bool, int, float)


class differentiating:
    """A scope with new variables in the place of the tensors in `args` and of Parameters. It gives
    (args with those variables, all variables as nodes, to differentiate by). When it closes,
    results refer to the tensors themselves again."""

    # (Not a generator: contextlib's frames would be taken for the user's.)
    def __init__(self, args: Any = (), parameters: Sequence[Parameter] = ()) -> None:
        self.args: Any = args
        self.parameters: Sequence[Parameter] = parameters
        self.variables: list[Tensor] = []

    def __enter__(self) -> tuple[Any, list[Tensor]]:
        try:
            given = tree.map_leaves(self._opened, self.args)
            for p in self.parameters:
                self.variables.append(_core.push_alias(p))
        except BaseException:
            self.__exit__()
            raise
        return given, self.variables

    def _opened(self, x: Tensor) -> Tensor:
        alias = _core.alias(x)
        self.variables.append(_core.record(alias))  # a function may write into its own
        return alias

    def __exit__(self, *_: object) -> None:
        _core.dissolve(self.variables)


class Call(differentiating):
    """A scope in which a function has been recorded with these arguments, to be differentiated by some. It
    gets arguments of its own: what it writes into them nobody sees."""

    out: Any  #: all that it returned
    target: Any  #: what is differentiated: the first output with has_aux, else all
    aux: Any
    outputs: list[Tensor]  #: the tensors of the target
    wrt: list[Tensor]  #: the variables

    def __init__(self, by: By, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        integers = by.integers or by.integer_inputs
        #: What is differentiated by; its tensors come first among the variables, before the Parameters'.
        self.by: list[Any] = []
        for p in by.positions:
            check_argument(by.fn, args, p, integers)
            self.by.append(as_tensors(args[p]))
        super().__init__(self.by, by.weights)
        self.what: By = by
        self.full: list[Any] = [*args]
        if len(args) > len(by.positions):
            for i in set(range(len(args))).difference(by.positions):
                self.full[i] = own(args[i])
        self.kwargs: dict[str, Any] = own(kwargs) if kwargs else kwargs

    def __enter__(self) -> Call:  # type: ignore[override]
        by, full = self.what, self.full
        given, self.wrt = super().__enter__()
        try:
            for p, x in zip(by.positions, given, strict=True):
                full[p] = x
            self.out = self.target = by.fn(*full, **self.kwargs)
            self.aux = None
            if by.has_aux:
                self.target, self.aux = aux_of(self.out)
            self.outputs = tree.leaves(self.target)
            check_outputs(by.fn, self.outputs, by.integers)
            if not by.complex:
                check_real(by.name, [*self.wrt, *self.outputs])
        except BaseException:
            self.__exit__()
            raise
        return self

    def arranged(self, found: Sequence[Any]) -> Any:
        """Arrange one result for each variable in the structure of the variables: alone for one
        position, a tuple for several, a tuple for Parameters, alone for a single one; (by position,
        by Parameter) for both."""
        return self.what.joined(*self.parted(found))

    def parted(self, found: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """The same as two lists: by position, by Parameter."""
        following = iter(found)
        by_input = [
            next(following)
            if isinstance(x, Tensor)
            else tree.map_leaves(lambda _: next(following), unmarked(x))
            for x in self.by
        ]
        return by_input, list(following)

    def valued(self, *results: Any) -> tuple[Any, ...]:
        """(The target, results), and with has_aux the aux after them."""
        return (self.target, *results, self.aux) if self.what.has_aux else (self.target, *results)

    def with_aux(self, result: Any) -> Any:
        """The result; with has_aux (result, aux), which is the second output, or a tuple of several."""
        return (result, self.aux) if self.what.has_aux else result


class By:
    """The variables of a transform: the arguments at some positions, Parameters, or both.

    Raises ValueError if both are None, and what check_positions and check_weights raise.
    """

    #: Whether integers and numbers are taken too, as MindSpore's grad takes them.
    integers = False
    #: The same of arguments, where what is returned has to be floating.
    integer_inputs = False
    #: Whether there are derivatives of complex tensors.
    complex = False

    def __init__(
        self, name: str, fn: Any, grad_position: Any = 0, weights: Any = None, has_aux: Any = False
    ) -> None:
        arguments.boolean(has_aux, name, "has_aux")
        if grad_position is None and weights is None:
            raise ValueError("`grad_position` and `weight` can not be None at the same time.")
        self.name: str = name
        self.fn: Any = fn
        self.has_aux: Any = has_aux
        self.positions: tuple[int, ...] = (
            () if grad_position is None else check_positions(grad_position)
        )
        self.by_position: bool = grad_position is not None
        self.by_weights: bool = weights is not None
        self.single_weight: bool = isinstance(weights, Tensor)
        self.weights: list[Parameter] = [] if weights is None else check_weights(weights)
        ids = tuple(p._variable_id() for p in self.weights) if self.by_weights else None
        self.key: tuple[Any, ...] = (
            self.positions,
            self.by_position,
            self.single_weight,
            ids,
            has_aux,
        )

    def placed(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments, those by name in their places as far as one is differentiated by; numbers that are
        have become tensors."""
        if kwargs:
            args, kwargs = in_places(self.fn, args, kwargs, max(self.positions, default=-1) + 1)
        return self.numbers_as_tensors(args), kwargs

    def numbers_as_tensors(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments, with tensors for NumPy's numbers that are differentiated by, and for Python's where
        integers are taken."""
        kinds = _NUMBERS if self.integers else _NUMBERS[:2]
        chosen = [p for p in self.positions if p < len(args) and isinstance(args[p], kinds)]
        if not chosen:
            return args
        return tuple(Tensor(a) if i in chosen else a for i, a in enumerate(args))

    def joined(self, by_input: list[Any], by_weight: list[Any]) -> Any:
        """Both in the structure that Call.arranged gives."""
        inputs = by_input[0] if len(by_input) == 1 else tuple(by_input)
        weights = by_weight[0] if self.single_weight else tuple(by_weight)
        if not self.by_weights:
            return inputs
        return (inputs, weights) if self.by_position else weights


def in_places(
    fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any], count: int
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments, `count` of them by position if fn's signature says which those by name are."""
    if not kwargs or len(args) >= count:
        return args, kwargs
    function = fn
    if isinstance(fn, CellBase):
        function = fn.construct  # type: ignore[attr-defined]
        kwargs = by_own_names(type(fn).construct, kwargs)  # type: ignore[attr-defined]
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # a builtin
        return args, kwargs
    given, named = list(args), dict(kwargs)
    for p in parameters[len(args) : count]:
        if p.kind is not p.POSITIONAL_OR_KEYWORD:
            break
        if p.name in named:
            given.append(named.pop(p.name))
        elif p.default is not p.empty:
            given.append(p.default)
        else:
            break
    return tuple(given), named


def transformed(by: By, key: Any, record: Callable[..., Any]) -> Callable[..., Any]:
    """Return the transform of by.fn, which `record` records; `key` identifies the record."""
    of = (by.name, by.key, key)
    run = cache_for(by.fn, of)

    def call(*args: Any, **kwargs: Any) -> Any:
        refuse_in_no_grad()
        args, kwargs = by.placed(args, kwargs)
        return run(record, *args, **kwargs)

    made: Any = functools.update_wrapper(Made(call), by.fn, updated=())
    made._transform = (by.fn, of, id(made))
    return made  # type: ignore[no-any-return]


class Given(By):
    """By what jvp and its kin, which are given the inputs at once, differentiate: by all inputs, or by
    Parameters instead. Inputs are a tuple or list of arguments, or the only one."""

    complex = True

    def __init__(
        self, name: str, fn: Any, inputs: Any, weights: Any = None, has_aux: Any = False
    ) -> None:
        arguments.function(fn, name)
        refuse_in_no_grad()
        inputs = door.numbers_too(inputs, fn)
        self.inputs: tuple[Any, ...] = (
            tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
        )
        if not self.inputs:
            bad_value(f"{name}: there are no inputs")
        for x in self.inputs:
            if weights is None and not (isinstance(x, Tensor) or tree.leaves(x)):
                bad_type(f"{name}: inputs must be tensors, got {type(x).__name__}")
        positions = tuple(range(len(self.inputs))) if weights is None else None
        super().__init__(name, fn, positions, weights, has_aux)

    def directions(self, v: Any) -> Any:
        """Return v, with a tensor for each that is differentiated by. Raises TypeError for what is none,
        ValueError where shapes or dtypes differ."""
        v = door.numbers_too(v, self.fn)
        for t in v if isinstance(v, (tuple, list)) else (v,):
            if not (isinstance(t, Tensor) or tree.leaves(t)):
                bad_type(f"{self.name}: v must be tensors, got {type(t).__name__}")
        check_directions(
            self.name,
            self.weights if self.by_weights else tree.leaves(self.inputs),
            tree.leaves(v),
        )
        return v

    def run(self, key: Any, record: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call `record` with the arguments, in GRAPH_MODE by a cached form; `key` identifies the
        record."""
        return cache_for(self.fn, (self.name, self.key, key))(record, *args, **kwargs)
