"""Optimisers as functions of trees: no Parameters, and the state is a tree that the caller keeps."""

from __future__ import annotations

from typing import Any, TypeVar

from gradcell._core import Tensor, ops as _ops
from gradcell.base import bad_type, bad_value, tree as _tree, with_tensors
from gradcell.compilation.compiled import jit
from gradcell.tensors.parameter import Parameter

T = TypeVar("T")


def _filled(tree: Any, values: list[Any]) -> Any:
    """A tree like another with values in the places of its tensors."""
    left = iter(values)
    return _tree.map_leaves(lambda _: next(left), tree)


class FunctionalOptimizer:
    """An optimiser of trees of tensors, as `nn.Adam.functional(learning_rate=1e-3)` gives it:

        state = optimizer.init(params)
        params, state = optimizer.update(params, state, gradients)

    Both are functions of their arguments alone, so that jit, vmap, grad and scan take them: vmap trains as
    many networks at once. The rule is that of the class, with all its options, but decay by weights is of
    all leaves, whatever they are called.

    kind: the class of the optimiser. options: its arguments but for the parameters.
    """

    def __init__(self, kind: type[Any], **options: Any) -> None:
        self.kind = kind
        self.options = options

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self.options.items())
        return f"{self.kind.__name__}.functional({given})"

    def _optimizer(self, params: Any) -> Any:
        leaves = _tree.leaves(params)
        if not leaves:
            bad_value(f"{self!r}: the parameters hold no tensor")
        own = []
        for k, t in enumerate(leaves):
            if not t.dtype.is_floating:
                bad_type(
                    f"{self!r}: tensor {k} of the parameters, of shape {list(t.shape)}, is of "
                    f"{t.dtype}, which cannot be trained: keep it outside of them"
                )
            own.append(Parameter(_ops.full(list(t.shape), 0.0, t.dtype), name=str(k)))
        return self.kind(own, **self.options)

    def _state(self, optimizer: Any, params: Any) -> dict[str, Any]:
        """The optimiser's own Parameters by name; those that belong to parameters in a tree like theirs."""
        tuples = {
            name: held
            for name, held in optimizer._tuples.items()
            if held is not optimizer.parameters
        }
        inside = {id(p) for held in (optimizer.parameters, *tuples.values()) for p in held}
        single = {n: p for n, p in optimizer.parameters_and_names() if id(p) not in inside}
        count = len(optimizer.parameters)
        return single | {
            name: _filled(params, list(held)) if len(held) == count else tuple(held)
            for name, held in tuples.items()
        }

    def init(self, params: Any) -> dict[str, Any]:
        """The state before the first step: a dict with the step count, the learning rate (where it is a
        number, so that another may be put there), and a tree like the parameters for each moment.

        params: a tree of floating tensors. Raises TypeError for others, ValueError if there is none.
        """
        params = with_tensors(params)
        return _tree.map_leaves(  # type: ignore[no-any-return]
            lambda p: p.value(), self._state(self._optimizer(params), params)
        )

    @jit
    def update(self, params: T, state: Any, gradients: Any) -> tuple[T, Any]:
        """The parameters and the state after a step by the gradients.

        params: a tree of floating tensors. state: what init or the last update gave. gradients: a tree like
        params. Raises ValueError for trees that do not fit.
        """
        optimizer = self._optimizer(params)
        own = self._state(optimizer, params)
        given = _tree.matched(f"{self!r}: the state", state, own)
        for p, value in zip(_tree.leaves(own), given, strict=True):
            p.set_data(value if isinstance(value, Tensor) else Tensor(value, p.dtype))  # type: ignore[attr-defined]
        for p, value in zip(optimizer.parameters, _tree.leaves(params), strict=True):
            p._set_array(value)
        optimizer(tuple(_tree.matched(f"{self!r}: the gradients", gradients, params)))
        after = [p.value() for p in optimizer.parameters]
        return _filled(params, after), _tree.map_leaves(lambda p: p.value(), own)
