"""Parameters: tensors that training changes."""

from __future__ import annotations

import functools
import itertools
import warnings
import weakref
from collections.abc import Iterable
from typing import Any

from gradcell import _core
from gradcell._core import ParameterBase, Tensor
from gradcell.base import arguments, bad_type, bad_value, structure, to_dtype, where
from gradcell.tensors import printing
from gradcell.tensors.tensor import HOOKS, copied_attributes, with_hooks

_numbers = itertools.count()
#: The parameter of each variable, for transforms that find parameters by what a function reads.
_by_variable: weakref.WeakValueDictionary[int, Parameter] = weakref.WeakValueDictionary()


class Parameter(ParameterBase):
    """A tensor that belongs to a Cell and that an optimiser changes.

    default_input: its value, anything of which a Tensor can be made. name: a name; with None it
    gets the name of the attribute to which it is assigned. requires_grad: whether
    trainable_params() lists it. storage_format, device: accepted for compatibility with MindSpore.

    Raises ValueError if the name is not a string, TypeError if requires_grad is not a bool.
    """

    _requires_grad = True  # in the place of Tensor's property

    def __init__(
        self,
        default_input: Any,
        name: str | None = None,
        requires_grad: bool = True,
        layerwise_parallel: bool = False,
        parallel_optimizer: bool = True,
        storage_format: str = "",
        device: str | None = None,
    ) -> None:
        if name is not None and not isinstance(name, str):
            bad_value(f"Parameter: the name must be a string, got {name!r}")
        arguments.boolean(requires_grad, "Parameter", "requires_grad")
        value = default_input if isinstance(default_input, Tensor) else Tensor(default_input)
        super().__init__(value)
        self._named = name is not None
        self._name = name if name is not None else f"Parameter#{next(_numbers)}"
        self._requires_grad = requires_grad
        self.layerwise_parallel = layerwise_parallel
        self.parallel_optimizer = parallel_optimizer
        self._prefixed = False
        #: How processes share it out, if this is one's part (nn.wrap.grad_reducer.StateShards).
        self.shards: Any = None
        _by_variable[self._variable_id()] = self

    @property
    def name(self) -> str:
        """The name; inside a Cell, with the path that leads to it: fc.weight."""
        return self._name

    @name.setter
    def name(self, name: str) -> None:
        if not isinstance(name, str) or not name:
            bad_value(f"Parameter: the name must be a string, got {name!r}")
        self._name = name
        self._named = True

    param_name = name

    @property
    def requires_grad(self) -> bool:
        """Return whether training changes the parameter."""
        return self._requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        arguments.boolean(value, "Parameter", "requires_grad")
        if value != self._requires_grad:
            self._requires_grad = value
            structure.changed(self, "requires_grad", not value, value)

    @property
    def data(self) -> Tensor:
        """A view without derivatives: a plain Tensor with the elements, whatever they are by then."""
        return _core.views.stop_gradient(self)

    @data.setter
    def data(self, data: Any) -> None:
        self.set_data(data)

    def value(self) -> Tensor:
        """The value, a plain Tensor that later changes of the parameter leave as it is."""
        return self._node_tensor()

    def init_data(self, *args: Any, **kwargs: Any) -> Parameter:
        """Itself: values are there from the start."""
        return self

    @property
    def has_init(self) -> bool:
        """False: values are there from the start."""
        return False

    def set_data(self, data: Any, slice_shape: bool = False) -> Parameter:
        """Takes over the elements of `data`, cast to this parameter's dtype. Returns itself.

        Raises TypeError unless data is a Tensor, an array or a number, ValueError if the shapes differ.
        """
        number = isinstance(data, (int, float)) and not isinstance(data, bool)
        if number or _core.is_array(data):
            data = Tensor(data, self.dtype)
        if not isinstance(data, Tensor):
            bad_type(f"Parameter.set_data: expected a Tensor, got {type(data).__name__}")
        if tuple(data.shape) != tuple(self.shape):
            bad_value(
                f"Parameter.set_data: {self.name} has shape {list(self.shape)}, the data {list(data.shape)}"
            )
        if data.dtype == _core.float64 and self.dtype != data.dtype and not data._traced:
            warnings.warn(
                f"Parameter.set_data: float64 numbers are rounded to {self.name}'s {self.dtype.name}; "
                f"cast them, or make the parameter of float64{where()}",
                RuntimeWarning,
                stacklevel=2,
            )
        self._set_array(_core.ops.cast(data, self.dtype))
        return self

    def set_dtype(self, dst_type: Any) -> None:
        """Casts the elements to another dtype, which the parameter has from now on."""
        dtype = to_dtype(dst_type)
        if dtype != self.dtype:
            self._set_array(_core.ops.cast(self._node_tensor(), dtype))
            _core.bump_structure_version()

    assign_value = set_data  # type: ignore[assignment]

    def clone(self, init: Any = "same") -> Parameter:
        """A parameter with the same name: init 'same' copies the elements, 'zeros', 'ones' or a
        number fills it."""
        if isinstance(init, str) and init == "same":
            value = self._node_tensor().copy()
        else:
            fill = {"zeros": 0, "ones": 1}.get(init, init) if isinstance(init, str) else init
            if isinstance(fill, Tensor):
                value = fill
            elif isinstance(fill, (int, float)):
                value = _core.ops.full(list(self.shape), fill, self.dtype)
            else:
                bad_value(f"Parameter.clone: unknown init {init!r}")
        copy = Parameter(value, self.name, self.requires_grad)
        copy._prefixed = self._prefixed
        return copy

    def __copy__(self) -> Parameter:
        twin = self.clone()
        twin.__dict__.update(self.__dict__)
        return with_hooks(twin, dict(self.__dict__.get(HOOKS, {})))  # type: ignore[no-any-return]

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        twin = self.clone()
        memo[id(self)] = twin
        return copied_attributes(self, twin, memo, ("shards",))  # type: ignore[no-any-return]

    def __reduce_ex__(self, protocol: Any) -> Any:
        arguments = (
            self._node_tensor(),
            self.name,
            self.requires_grad,
            self._named,
            self._prefixed,
        )
        left = ("_name", "_named", "_requires_grad", "_prefixed", "shards", HOOKS)
        return _rebuild, arguments, {n: v for n, v in self.__dict__.items() if n not in left}

    def __repr__(self) -> str:
        return printing.parameter_repr(
            self.name, tuple(self.shape), str(self.dtype), self.requires_grad
        )

    __str__ = __repr__


def _rebuild(
    value: Tensor, name: str, requires_grad: bool, named: bool, prefixed: bool
) -> Parameter:
    parameter = Parameter(value, name, requires_grad)
    parameter._named, parameter._prefixed = named, prefixed
    return parameter


def parameter_of(variable_id: int) -> Parameter | None:
    """The parameter that owns a variable, if it is still there."""
    return _by_variable.get(variable_id)


def parameter_behind(x: Any) -> Any:
    """The Parameter that a tensor was read from, by a cell that computes in another dtype; else x."""
    return x.__dict__.get("_parameter", x) if isinstance(x, Tensor) else x


class _Buffer(Parameter):
    """A tensor of a cell that is none of its parameters.

    data: a Tensor. persistent: whether the cell's state_dict has it. Raises TypeError for another kind of
    data.
    """

    def __init__(self, data: Tensor, *, persistent: bool = True) -> None:
        super().__init__(arguments.tensor(data, "Buffer", "data"), requires_grad=False)
        self.persistent: bool = persistent

    def clone(self, init: Any = "same") -> Parameter:
        return _Buffer(super().clone(init).value(), persistent=self.persistent)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return functools.partial(_Buffer, persistent=self.persistent), (self._node_tensor(),)

    __repr__ = Tensor.__repr__
    __str__ = Tensor.__str__


class ParameterTuple(tuple[Parameter, ...]):
    """A tuple of parameters, whose names must differ.

    Raises TypeError for an element that is not a Parameter, ValueError for a name that appears twice.
    """

    def __new__(cls, iterable: Iterable[Parameter]) -> ParameterTuple:
        items = tuple(iterable)
        names: set[str] = set()
        for p in items:
            if not isinstance(p, Parameter):
                bad_type(
                    f"ParameterTuple: every element must be a Parameter, got {type(p).__name__}"
                )
            if p.name in names:
                bad_value(
                    f"ParameterTuple: the name {p.name!r} appears twice; a Cell names its parameters by "
                    "their paths with update_parameters_name()"
                )
            names.add(p.name)
        return super().__new__(cls, items)

    def clone(self, prefix: str, init: Any = "same") -> ParameterTuple:
        """Clones of all, each named prefix.name."""
        copies = []
        for p in self:
            copy = p.clone(init)
            copy._name = f"{prefix}.{p.name}"
            copies.append(copy)
        return ParameterTuple(copies)
