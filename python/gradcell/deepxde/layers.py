"""torch.nn as DeepXDE's networks and its users' need it: modules, containers, layers, initialisers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from gradcell import mint, ops
from gradcell._core import Tensor
from gradcell.base import bad_key, bad_value, unsupported
from gradcell.deepxde.names import Names, default_float, halved, parameter, random
from gradcell.tensors.parameter import Parameter

_Named = Iterator[tuple[str, Any]]


class Module:
    """A network or a part of one: Parameters and modules that are its attributes belong to it."""

    training = True

    def __init__(self, *_: Any, **__: Any) -> None: ...

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.forward(*args, **kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the module's output; subclasses define it."""
        unsupported(f"{type(self).__name__} has no forward")

    def _parts(self) -> _Named:
        """Its attributes that are Parameters or modules, by name."""
        for name, value in vars(self).items():
            if isinstance(value, (Parameter, Module)):
                yield name, value

    def named_children(self) -> _Named:
        """(name, module) of the modules in it."""
        return ((n, v) for n, v in self._parts() if isinstance(v, Module))

    def children(self) -> Iterator[Module]:
        """The modules in it."""
        return (v for _, v in self.named_children())

    def modules(self) -> Iterator[Module]:
        """Itself and all modules in it, however deep."""
        yield self
        for child in self.children():
            yield from child.modules()

    def named_parameters(self, prefix: str = "", recurse: bool = True) -> _Named:
        """Its own first, then those of the modules in it; each once."""
        seen: set[int] = set()
        for name, value in self._all_parameters(f"{prefix}." if prefix else ""):
            if id(value) not in seen:
                seen.add(id(value))
                yield name, value

    def _all_parameters(self, prefix: str) -> _Named:
        parts = list(self._parts())
        yield from ((prefix + n, v) for n, v in parts if isinstance(v, Parameter))
        for name, value in parts:
            if isinstance(value, Module):
                yield from value._all_parameters(f"{prefix}{name}.")

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """All Parameters in it."""
        return (p for _, p in self.named_parameters())

    def register_parameter(self, name: str, value: Any) -> None:
        """Sets an attribute."""
        setattr(self, name, value)

    def register_buffer(self, name: str, value: Any, persistent: bool = True) -> None:
        """Sets an attribute."""
        setattr(self, name, value)

    def add_module(self, name: str, module: Module) -> None:
        """Sets an attribute."""
        setattr(self, name, module)

    def train(self, mode: bool = True) -> Module:
        """Says whether it trains, to all modules in it."""
        self.__dict__["training"] = mode
        for _, part in self._parts():
            if isinstance(part, Module):
                part.train(mode)
        return self

    def eval(self) -> Module:
        """Says that it does not train."""
        return self.train(False)

    def apply(self, function: Callable[[Module], Any]) -> Module:
        """Calls a function with all modules in it."""
        for module in self.modules():
            function(module)
        return self

    def requires_grad_(self, requires_grad: bool = True) -> Module:
        """Itself; what is trained is what the optimiser was given."""
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Nothing: gradients are not kept."""

    def to(self, *_: Any, **__: Any) -> Module:
        """Itself."""
        return self

    cpu = to

    def state_dict(self) -> dict[str, Any]:
        """The Parameters' values by name, as arrays."""
        return {name: p.asnumpy().copy() for name, p in self.named_parameters()}

    def load_state_dict(self, state: dict[str, Any], strict: bool = True) -> None:
        """Sets the parameters. Raises KeyError for other names, ValueError for other shapes."""
        own = dict(self.named_parameters())
        if strict and set(own) != set(state):
            different = sorted(set(own) ^ set(state))
            bad_key(f"load_state_dict: these names are on one side only: {different}")
        for name, p in own.items():
            if name not in state:
                continue
            value = np.asarray(state[name])
            if value.shape != tuple(p.shape):
                bad_value(
                    f"load_state_dict: {name} has shape {list(p.shape)}, but the state has "
                    f"{list(value.shape)}"
                )
            p.set_data(Tensor(value, p.dtype))


class ModuleList(Module):
    """Modules or Parameters in order."""

    def __init__(self, items: Iterable[Any] = ()) -> None:
        super().__init__()
        self._items = list(items)

    def _parts(self) -> _Named:
        return ((str(i), item) for i, item in enumerate(self._items))

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, i: Any) -> Any:
        return type(self)(self._items[i]) if isinstance(i, slice) else self._items[i]

    def __setitem__(self, i: int, item: Any) -> None:
        self._items[i] = item

    def append(self, item: Any) -> ModuleList:
        """Adds one."""
        self._items.append(item)
        return self

    def extend(self, items: Iterable[Any]) -> ModuleList:
        """Adds several."""
        self._items.extend(items)
        return self


class Sequential(ModuleList):
    """Modules one after the other."""

    def __init__(self, *modules: Any) -> None:
        super().__init__(modules)

    def forward(self, x: Any) -> Any:
        """Return the last module's output."""
        for module in self._items:
            x = module(x)
        return x

    def __getitem__(self, i: Any) -> Any:
        return Sequential(*self._items[i]) if isinstance(i, slice) else self._items[i]


class ModuleDict(Module):
    """Modules by name."""

    def __init__(self, modules: dict[str, Any] | None = None) -> None:
        super().__init__()
        self._modules = dict(modules or {})

    def _parts(self) -> _Named:
        return iter(self._modules.items())

    def __getitem__(self, name: str) -> Any:
        return self._modules[name]

    def __setitem__(self, name: str, module: Any) -> None:
        self._modules[name] = module

    def __contains__(self, name: str) -> bool:
        return name in self._modules

    def keys(self) -> Iterable[str]:
        """The names."""
        return self._modules.keys()

    def values(self) -> Iterable[Any]:
        """The modules."""
        return self._modules.values()

    def items(self) -> Iterable[tuple[str, Any]]:
        """(name, module)."""
        return self._modules.items()


class Linear(Module):
    """x W' + b, the weights [out, in]; drawn as PyTorch draws them."""

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.in_features: int = in_features
        self.out_features: int = out_features
        bound, dtype = in_features**-0.5, dtype or default_float()
        self.weight: Parameter = parameter(
            random().uniform(-bound, bound, (out_features, in_features)), dtype
        )
        self.bias: Parameter | None = (
            parameter(random().uniform(-bound, bound, out_features), dtype) if bias else None
        )

    def forward(self, x: Tensor) -> Tensor:
        """x W' + b."""
        x, weight, bias = halved(x, self.weight, self.bias)
        y = ops.matmul(x, ops.transpose(weight, (1, 0)))
        return y if bias is None else y + bias


class Dropout(Module):
    """Elements set to zero at random while it trains."""

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        """x with zeros, or x."""
        return mint.nn.functional.dropout(x, self.p, self.training)


class Identity(Module):
    """x."""

    def forward(self, x: Any) -> Any:
        """x."""
        return x


def _activation(name: str, function: str) -> type[Module]:
    """A module of a function, whose further arguments it takes."""

    def set_up(self: Any, *args: Any, inplace: bool = False, **kwargs: Any) -> None:
        self.args, self.kwargs = args, kwargs

    def forward(self: Any, x: Tensor) -> Tensor:
        return getattr(mint.nn.functional, function)(x, *self.args, **self.kwargs)  # type: ignore[no-any-return]

    return type(name, (Module,), {"__init__": set_up, "forward": forward})


_ACTIVATIONS = {
    "Tanh": "tanh", "ReLU": "relu", "SiLU": "silu", "GELU": "gelu", "ELU": "elu", "SELU": "selu",
    "Sigmoid": "sigmoid", "Softplus": "softplus", "LeakyReLU": "leaky_relu", "Softmax": "softmax",
}  # fmt: skip


# Initialisers ---------------------------------------------------------------------------------------


def _fans(t: Tensor) -> tuple[float, float]:
    if t.ndim < 2:
        bad_value(f"an initialiser by fans needs a matrix, got shape {list(t.shape)}")
    field = t.size / (t.shape[0] * t.shape[1])
    return t.shape[1] * field, t.shape[0] * field


def _set(t: Any, values: Any) -> Any:
    t.set_data(Tensor(np.broadcast_to(values, t.shape), t.dtype))
    return t


def _drawn(scale: Callable[[float, float], float], uniform: bool) -> Callable[..., Any]:
    """Elements with this variance, given the numbers of inputs and outputs, times gain squared."""

    def initialise(t: Any, gain: float = 1.0, **_: Any) -> Any:
        deviation = gain * scale(*_fans(t)) ** 0.5
        if uniform:
            return _set(t, random().uniform(-(3**0.5) * deviation, 3**0.5 * deviation, t.shape))
        return _set(t, random().normal(0, deviation, t.shape))

    return initialise


def _kaiming(uniform: bool) -> Callable[..., Any]:
    def initialise(t: Any, a: float = 0, **_: Any) -> Any:
        return _drawn(lambda n, m: 2 / (1 + a * a) / n, uniform)(t)

    return initialise


def _xavier(n: float, m: float) -> float:
    return 2 / (n + m)


INIT = Names("torch.nn.init", {
    "xavier_normal_": _drawn(_xavier, False), "xavier_uniform_": _drawn(_xavier, True),
    "kaiming_normal_": _kaiming(False), "kaiming_uniform_": _kaiming(True),
    "zeros_": lambda t: _set(t, 0), "ones_": lambda t: _set(t, 1),
    "constant_": lambda t, value: _set(t, value),
    "normal_": lambda t, mean=0.0, std=1.0: _set(t, random().normal(mean, std, t.shape)),
    "uniform_": lambda t, a=0.0, b=1.0: _set(t, random().uniform(a, b, t.shape)),
})  # fmt: skip


def _parameter(data: Any = None, requires_grad: bool = True) -> Parameter:
    return parameter(data, None, requires_grad)


NN = Names("torch.nn", {
    "Module": Module, "ModuleList": ModuleList, "ParameterList": ModuleList, "ModuleDict": ModuleDict,
    "Sequential": Sequential, "Linear": Linear, "Dropout": Dropout, "Identity": Identity,
    "Parameter": _parameter, "parameter": Names("torch.nn.parameter", {"Parameter": _parameter}),
    "init": INIT, "functional": Names("torch.nn.functional", {}, mint.nn.functional),
    **{name: _activation(name, function) for name, function in _ACTIVATIONS.items()},
})  # fmt: skip
