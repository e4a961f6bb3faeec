"""Hooks on gradients of tensors, and the handles that remove hooks."""

from __future__ import annotations

import itertools
import warnings
import weakref
from collections.abc import Callable
from typing import Any

from gradcell import _core
from gradcell._core import Tensor
from gradcell.base import bad_type, bad_value, fail, where
from gradcell.derivatives.own_derivatives import Pullback, Tensors, defined_at

__all__ = ["HookHandle"]


def check_hook(hook: Any) -> None:
    """Raises TypeError unless hook can be called."""
    if not callable(hook):
        bad_type(f"Expected a callable hook function, but got {type(hook).__name__}.")


class HookHandle:
    """A hook that is called until remove()."""

    _numbers = itertools.count()

    def __init__(
        self,
        hook_dict: dict[int, Callable[..., Any]] | None = None,
        hook: Any = None,
        emptied: Callable[[], Any] | None = None,
    ) -> None:
        self._hooks = {} if hook_dict is None else hook_dict
        self._emptied = emptied  # called when the last hook is gone
        self.handle_id: int = next(self._numbers)  # an id would come again when the handle is gone
        if hook is not None:
            self._hooks[self.handle_id] = hook
            _core.bump_structure_version()

    def remove(self) -> None:
        """Ends the calls."""
        if self._hooks.pop(self.handle_id, None) is not None:
            _core.bump_structure_version()
            if not self._hooks and self._emptied is not None:
                self._emptied()


def hooked(gradient: Tensor, hooks: dict[int, Callable[..., Any]]) -> Tensor:
    """A tensor's gradient after its hooks: what each returns, unless None, takes its place.

    Raises RuntimeError for anything that is not a tensor, ValueError for another shape.
    """
    for hook in list(hooks.values()):
        new = hook(gradient)
        if new is None:
            continue
        if not isinstance(new, Tensor):
            fail(
                f"A tensor hook should return a Tensor, but got type: {type(new).__name__}. "
                f"({defined_at(hook)})"
            )
        if tuple(new.shape) != tuple(gradient.shape):
            bad_value(
                f"register_hook: {defined_at(hook)} got a gradient of shape {list(gradient.shape)} and must "
                f"return one of that shape, or None, but it returned {list(new.shape)}"
            )
        gradient = new if new.dtype == gradient.dtype else _core.ops.cast(new, gradient.dtype)
    return gradient


def register_hook(self: Tensor, hook: Callable[..., Any]) -> HookHandle:
    """Has hook(gradient) called with the gradient by this tensor, when one is taken; what it returns,
    unless None, is taken instead. The result's remove() ends that.

    Of a tensor inside a function that is differentiated it sees the whole gradient, whatever has been
    computed with the tensor before; of a Parameter or an argument it sees what the transform gives.
    Raises TypeError if it is not a function; when the gradient is taken RuntimeError if the hook returns no
    tensor, ValueError if it is of another shape.
    """
    check_hook(hook)
    hooks: dict[int, Callable[..., Any]] = {}
    if not self._traced:
        hooks = self.__dict__.setdefault("_gradient_hooks", hooks)
        _core.set_hooked(self, True)
        this = weakref.ref(self)

        def emptied() -> None:
            if (tensor := this()) is not None:
                _core.set_hooked(tensor, False)

        return HookHandle(hooks, hook, emptied)
    before = self.__dict__.get("_inserted_hooks")
    if before is not None and _core.same_node(self, before[0]):
        hooks = before[1]
    handle = HookHandle(hooks)
    hooks[handle.handle_id] = hook
    if self.dtype.is_floating and len(hooks) == 1:

        def pull(inputs: Any, outputs: Any, cotangents: Tensors, wanted: Any) -> Tensors:
            given = cotangents[0]
            return [None if given is None else hooked(given, hooks)]

        _core.insert_call(self, Pullback("register_hook", pull))
        self.__dict__["_inserted_hooks"] = (_core.record(self), hooks)
    return handle


def hooks(self: Tensor) -> list[Callable[..., Any]]:
    """The hooks on the gradient by this Parameter or argument."""
    return list(self.__dict__.get("_gradient_hooks", {}).values())


def wants_gradient(self: Tensor) -> bool:
    """Return whether a derivative by something reaches this tensor, or requires_grad_ has asked for
    it."""
    if self._traced:
        return self.dtype.is_floating and _core.differentiated([self])
    return bool(self.__dict__.get("_asked", False))


def requires_grad_(self: Tensor, requires_grad: bool = True) -> None:
    """Marks a tensor as one that needs a gradient, outside functions that are differentiated.

    What is differentiated by is said to grad and its kin; this marks a tensor for programs that look.
    Raises RuntimeError for False on a tensor that a derivative passes through.
    """
    if not requires_grad and self._traced and self._requires_grad:
        fail(
            "You can only set requires_grad false to a leaf tensor! Use ops.stop_gradient for a tensor that "
            "is a constant of derivatives"
        )
    self.__dict__["_asked"] = bool(requires_grad)


def retain_grad(self: Tensor) -> None:
    """Keeps the gradient by this tensor in its attribute _grad, when one is taken.

    Raises RuntimeError if no derivative reaches it.
    """
    if not self._requires_grad:
        fail("Can't retain grad, if tensor has requires=False")
    if self.__dict__.get("_retains_grad"):
        return
    self.__dict__["_retains_grad"] = True

    def keep(gradient: Tensor) -> None:
        self.__dict__["_grad"] = gradient

    register_hook(self, keep)


def _no_tape(self: Tensor, value: Any) -> None:
    """Says where gradients come from: to set it on a tensor records nothing."""
    if value:
        warnings.warn(
            "requires_grad: a tensor does not record how it was computed. "
            "gradcell.grad(function)(x) gives the gradient of a function with respect to x; "
            f"make a value that is to be trained a gradcell.Parameter{where()}",
            RuntimeWarning,
            stacklevel=2,
        )


for _name, _method in {
    "register_hook": register_hook,
    "hooks": hooks,
    "requires_grad_": requires_grad_,
    "_retain_grad": retain_grad,
    "_retains_grad": False,
    "_grad": None,
    "_requires_grad": property(wants_gradient),
    "requires_grad": property(wants_gradient, _no_tape),
}.items():
    setattr(Tensor, _name, _method)
