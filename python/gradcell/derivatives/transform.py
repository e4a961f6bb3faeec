"""Transforms of functions: grad and its kin.

A transform runs the user's function once on tensors that record, and works on the graph that comes
out. Transforms nest: all of one call share one trace. The outermost one runs what was recorded.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Literal, NoReturn, ParamSpec, TypeVar, overload

from gradcell import _core
from gradcell._core import Tensor
from gradcell.base import arguments, tree
from gradcell.base.errors import bad_type, bad_value, fail
from gradcell.base.location import where
from gradcell.base.signposts import explains_arguments
from gradcell.compilation.compiled import MISSED, CompiledCache, cache_for, function_name, own, run
from gradcell.derivatives.checks import (
    as_tensors,
    aux_of,
    check_argument,
    check_directions,
    check_outputs,
    check_positions,
    check_weights,
    refuse_in_no_grad,
    tensors_of,
    unmarked,
)
from gradcell.derivatives.hooks import hooked
from gradcell.tensors.parameter import Parameter, parameter_of


def _after_hooks(owner: Tensor, gradient: Tensor) -> Tensor:
    """The gradient by an argument or a Parameter, after the hooks that are registered on it; zero by a
    Parameter that is not trained."""
    if isinstance(owner, Parameter) and not owner.requires_grad:
        return _core.ops.full(list(gradient.shape), 0, gradient.dtype)
    hooks = owner.__dict__.get("_gradient_hooks")
    return hooked(gradient, hooks) if hooks else gradient


def _warn_of_integers(
    name: str, outputs: list[Tensor], by: Sequence[Tensor], gradients: Sequence[Tensor]
) -> None:
    """Warns where a gradient that MindSpore gives too is not the derivative: rounded to an integer
    argument's dtype, or 0 since all that is returned are integers made of floats."""
    exact = not any(t.dtype.is_floating for t in outputs)
    for x, g in zip(by, gradients, strict=True):
        if x.dtype.is_floating and exact:
            warnings.warn(
                f"grad: {name} returned {outputs[0].dtype}, so its gradient with respect to "
                f"floats is 0 everywhere; return a tensor of a floating dtype{where()}",
                RuntimeWarning,
                stacklevel=3,
            )
            return
        if x.dtype.is_floating or exact:
            continue
        if not _core.same_node(g, _core.ops.full(list(g.shape), 0, g.dtype)):
            warnings.warn(
                f"grad: the gradient of {name} with respect to a tensor of {x.dtype} is rounded "
                "towards zero to that dtype, as MindSpore does; cast the argument to a floating dtype for "
                f"the exact one{where()}",
                RuntimeWarning,
                stacklevel=3,
            )
            return


def _differentiate(
    fn: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    positions: Sequence[int],
    parameters: Sequence[Parameter] | None,
    has_aux: bool,
    sens: Any,
    with_sens: bool,
    chosen: bool = True,
) -> tuple[Any, list[Any], list[Tensor], list[Parameter]]:
    """(fn's output, gradients by position, gradients by parameter, those parameters). By a tuple, list
    or dict of tensors the gradients have its structure.

    parameters None: every trainable one that fn reads. chosen: the positions were, so integers there have to
    have a derivative; else (all arguments) it may be 0.
    """
    name = function_name(fn)
    arguments = list(args)
    if kwargs:
        kwargs = own(kwargs)
    for i, a in enumerate(args):
        if i not in positions:
            arguments[i] = own(a)
    by = [as_tensors(args[p]) for p in positions]
    inputs: list[Tensor] = []
    weights: list[Tensor] = []
    named: list[Tensor] = []  # the integers that were chosen by their position

    def open_leaf(x: Tensor) -> Tensor:
        a = _core.alias(x)
        inputs.append(_core.record(a))  # fn may write into its own
        return a

    try:
        for p, given in zip(positions, by, strict=True):
            arguments[p] = tree.map_leaves(open_leaf, given)
            if chosen and isinstance(given, Tensor) and not given.dtype.is_floating:
                named.append(inputs[-1])
        for parameter in parameters or ():
            weights.append(_core.push_alias(parameter))
        out = fn(*arguments, **kwargs)
        target = aux_of(out)[0] if has_aux else out
        found = weights
        if parameters is None:
            for leaf in tree.leaves(target):
                _core.record(leaf)  # a parameter that is returned itself has been read too
            read = [parameter_of(v) for v in _core.lifted_variables()]
            parameters = [p for p in read if p is not None and p.requires_grad]
            found = [_core.record(p) for p in parameters]
        outputs = tree.leaves(target)
        check_outputs(name, outputs, integers=True)
        cotangents: list[Tensor | None] = [None] * len(outputs)
        if with_sens:
            cotangents = [*_cotangents(name, target, outputs, sens)]
        if named:
            _core.require_rules_for_integers(outputs, named)
        grads = _core.adjoint(outputs, cotangents, inputs + found)
        owners = [*tree.leaves(by), *parameters]
        if not (_core.all_floating(owners) and _core.all_floating(outputs)):
            _warn_of_integers(name, outputs, owners, grads)
        grads = [_after_hooks(o, g) for o, g in zip(owners, grads, strict=True)]
    finally:
        _core.dissolve(inputs + weights)
    found_by = iter(grads)
    by_position = [tree.map_leaves(lambda _: next(found_by), unmarked(x)) for x in by]
    return out, by_position, grads[len(inputs) :], list(parameters)


def _cotangents(name: str, target: Any, outputs: list[Tensor], sens: Any) -> list[Tensor]:
    given = tree.leaves(sens)
    if isinstance(sens, (int, float)) and len(outputs) == 1:
        given = [Tensor(float(sens), outputs[0].dtype)]
    if len(given) != len(outputs):
        bad_value(
            f"The given sens gradient's size should be same as out of network! {name} has {len(outputs)} "
            f"outputs, sens has {len(given)}"
        )
    if isinstance(sens, dict) and isinstance(target, dict):
        given = tree.matched("sens", sens, target)
    for out, s in zip(outputs, given, strict=True):
        if s.dtype != out.dtype:
            bad_type(f"sens: The dtype should be {out.dtype}, but got {s.dtype}")
        if tuple(s.shape) != tuple(out.shape) and s.size != 1:
            bad_value(f"sens: The shape should be {list(out.shape)}, but got {list(s.shape)}")
    return [
        _core.ops.broadcast_to(_core.ops.reshape(s, []), list(o.shape))
        if tuple(s.shape) != tuple(o.shape)
        else s
        for o, s in zip(outputs, given, strict=True)
    ]


def _without_sens(
    args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any], Any]:
    """(arguments, keyword arguments, cotangent) of a call whose last argument is the cotangent, or the
    keyword sens. Raises ValueError if there is none, TypeError if it is neither tensors nor a number."""
    if "sens" in kwargs:
        sens = kwargs["sens"]
        kwargs = {k: v for k, v in kwargs.items() if k != "sens"}
    elif args:
        *rest, sens = args
        args = tuple(rest)
    else:
        bad_value("Grad with sens, but the sens is not provided.")
    if not tree.leaves(sens) and not isinstance(sens, (int, float)):
        bad_type(f"sens must be a Tensor or a tuple of them, got {type(sens).__name__}")
    return args, kwargs, sens


def _numbers_as_tensors(args: tuple[Any, ...], positions: Sequence[int]) -> tuple[Any, ...]:
    """The arguments, with a tensor for each number to differentiate by."""
    numbers = (bool, int, float)
    return tuple(
        Tensor(a) if i in positions and isinstance(a, numbers) else a for i, a in enumerate(args)
    )


class _GradFunction:
    """What grad and value_and_grad return."""

    def __init__(
        self,
        fn: Any,
        grad_position: Any,
        weights: Any,
        has_aux: bool,
        return_ids: bool,
        with_value: bool,
        with_sens: bool = False,
    ) -> None:
        arguments.boolean(has_aux, "_Grad", "has_aux")
        arguments.boolean(return_ids, "_Grad", "return_ids")
        arguments.boolean(with_sens, "_Grad", "sens_param")
        if grad_position is None and weights is None:
            raise ValueError("`grad_position` and `weight` can not be None at the same time.")
        self.fn = fn
        self.positions = () if grad_position is None else check_positions(grad_position)
        self.single_position = len(self.positions) == 1
        self.by_position = grad_position is not None
        self.by_weights = weights is not None
        self.single_weight = isinstance(weights, Tensor)
        self.weights = check_weights(weights) if weights is not None else []
        self.has_aux, self.return_ids = has_aux, return_ids
        self.with_value, self.with_sens = with_value, with_sens
        if callable(fn):
            functools.update_wrapper(self, fn, updated=())
            self.cache: CompiledCache | None = cache_for(
                fn,
                (
                    self.positions,
                    self.by_position,
                    self.single_weight,
                    tuple(p._variable_id() for p in self.weights) if self.by_weights else None,
                    has_aux,
                    return_ids,
                    with_value,
                    with_sens,
                ),
            )

    def __iter__(self) -> NoReturn:
        name = "value_and_grad" if self.with_value else "grad"
        bad_type(f"{name} gives a function, which takes the arguments: {name}(f)(x), not {name}(f)")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not callable(self.fn):
            bad_type(f"The fn should be callable, but got {type(self.fn).__name__}")
        refuse_in_no_grad()
        if self.cache is not None and (found := self.cache.known(args, kwargs)) is not MISSED:
            return found
        others = False
        given = args[:-1] if self.with_sens and "sens" not in kwargs else args
        for p in self.positions:
            check_argument(function_name(self.fn), given, p, integers=True)
            others = others or not isinstance(args[p], Tensor)
        if others:
            args = _numbers_as_tensors(args, self.positions)
        return run(self._record, args, kwargs, self.cache, True)

    def _record(self, *args: Any, **kwargs: Any) -> Any:
        sens = None
        if self.with_sens:
            args, kwargs, sens = _without_sens(args, kwargs)
        out, dx, dw, _ = _differentiate(
            self.fn, args, kwargs, self.positions, self.weights, self.has_aux, sens, self.with_sens
        )
        grads = self._arrange(dx, dw)
        if self.with_value:
            return out, grads
        return (grads, tuple(out[1:])) if self.has_aux else grads

    def _arrange(self, dx: list[Any], dw: list[Any]) -> Any:
        if self.return_ids:
            dx = [(p, g) for p, g in zip(self.positions, dx, strict=True)]
            dw = [(w.name, g) for w, g in zip(self.weights, dw, strict=True)]
        by_input = dx[0] if self.single_position else tuple(dx)
        by_weight = dw[0] if self.single_weight else tuple(dw)
        if not self.by_weights:
            return by_input
        return (by_input, by_weight) if self.by_position else by_weight


P = ParamSpec("P")
R = TypeVar("R")


@overload
def grad(
    fn: Callable[P, Any],
    grad_position: int = 0,
    weights: None = None,
    has_aux: Literal[False] = False,
    return_ids: Literal[False] = False,
) -> Callable[P, Tensor]: ...
@overload
def grad(
    fn: Callable[P, Any],
    grad_position: tuple[int, ...],
    weights: None = None,
    has_aux: Literal[False] = False,
    return_ids: Literal[False] = False,
) -> Callable[P, tuple[Tensor, ...]]: ...
@overload
def grad(
    fn: Callable[P, Any],
    grad_position: None,
    weights: Parameter,
    has_aux: Literal[False] = False,
    return_ids: Literal[False] = False,
) -> Callable[P, Tensor]: ...
@overload
def grad(
    fn: Callable[P, Any],
    grad_position: None,
    weights: Sequence[Parameter],
    has_aux: Literal[False] = False,
    return_ids: Literal[False] = False,
) -> Callable[P, tuple[Tensor, ...]]: ...
@overload
def grad(
    fn: Callable[P, Any],
    grad_position: Any = 0,
    weights: Any = None,
    has_aux: bool = False,
    return_ids: bool = False,
) -> Callable[P, Any]: ...
@overload
def grad(
    fn: Callable[..., Any],
    grad_position: Any = 0,
    weights: Any = None,
    has_aux: bool = False,
    return_ids: bool = False,
    *,
    sens_param: bool,
) -> Callable[..., Any]: ...
@explains_arguments
def grad(
    fn: Any,
    grad_position: Any = 0,
    weights: Any = None,
    has_aux: bool = False,
    return_ids: bool = False,
    sens_param: bool = False,
) -> Callable[..., Any]:
    """Makes a function that returns fn's gradients.

    fn: a function or Cell; of several outputs, the sum is differentiated. grad_position: the index,
    or a tuple of indices, of the arguments to differentiate with respect to, or None. weights: a
    Parameter, or a list or tuple of them, to differentiate with respect to, or None. has_aux: only
    fn's first output is differentiated, and the others are returned in a tuple after the
    gradients. return_ids: each gradient comes as (position or parameter name, gradient). sens_param:
    whether the last argument of the function that is made, or its keyword sens, is the cotangent, in
    place of ones: a tensor, or a tuple for several outputs.

    Returns a tensor for one position, a tuple for a tuple of positions, a tuple for weights (a
    tensor for a single Parameter), and (by position, by weights) for both. A gradient has the shape
    and dtype of its argument or parameter; it is zero if fn does not depend on it. By a tuple, list,
    dict or dataclass with tensors, or one of a subclass, it is a container of the same type with the
    same attributes. Numbers, alone or in a tuple, list or dict, are treated as tensors.

    Gradients with respect to integers and bools, and of functions that return them, are as in
    MindSpore: exact for sums and products of integers; rounded towards zero where floats are
    involved, with a RuntimeWarning; 0, with a RuntimeWarning, for integers computed from floats.

    Raises ValueError if grad_position and weights are both None, TypeError for an argument that is
    neither tensor nor number, IndexError for a position beyond the arguments.
    """
    return _GradFunction(fn, grad_position, weights, has_aux, return_ids, False, sens_param)


@overload
def value_and_grad(
    fn: Callable[P, R],
    grad_position: int = 0,
    weights: None = None,
    has_aux: Literal[False] = False,
    return_ids: Literal[False] = False,
) -> Callable[P, tuple[R, Tensor]]: ...
@overload
def value_and_grad(
    fn: Callable[P, R],
    grad_position: tuple[int, ...],
    weights: None = None,
    has_aux: Literal[False] = False,
    return_ids: Literal[False] = False,
) -> Callable[P, tuple[R, tuple[Tensor, ...]]]: ...
@overload
def value_and_grad(
    fn: Callable[P, R],
    grad_position: None,
    weights: Parameter,
    has_aux: Literal[False] = False,
    return_ids: Literal[False] = False,
) -> Callable[P, tuple[R, Tensor]]: ...
@overload
def value_and_grad(
    fn: Callable[P, R],
    grad_position: None,
    weights: Sequence[Parameter],
    has_aux: Literal[False] = False,
    return_ids: Literal[False] = False,
) -> Callable[P, tuple[R, tuple[Tensor, ...]]]: ...
@overload
def value_and_grad(
    fn: Callable[P, Any],
    grad_position: Any = 0,
    weights: Any = None,
    has_aux: bool = False,
    return_ids: bool = False,
) -> Callable[P, tuple[Any, Any]]: ...
@overload
def value_and_grad(
    fn: Callable[..., Any],
    grad_position: Any = 0,
    weights: Any = None,
    has_aux: bool = False,
    return_ids: bool = False,
    *,
    sens_param: bool,
) -> Callable[..., Any]: ...
@explains_arguments
def value_and_grad(
    fn: Any,
    grad_position: Any = 0,
    weights: Any = None,
    has_aux: bool = False,
    return_ids: bool = False,
    sens_param: bool = False,
) -> Callable[..., Any]:
    """Makes a function that returns fn's output together with its gradients.

    fn: a function or Cell; of several outputs, the sum is differentiated. grad_position: the index,
    or a tuple of indices, of the arguments to differentiate with respect to, or None. weights: a
    Parameter, or a list or tuple of them, to differentiate with respect to, or None. has_aux: only
    fn's first output is differentiated; the value has all of them. return_ids: each gradient comes
    as (position or parameter name, gradient). sens_param: whether the last argument of the function
    that is made, or its keyword sens, is the cotangent, in place of ones.

    Returns (value, gradients); the gradients have the structure, shapes and dtypes that grad gives.

    Raises ValueError if grad_position and weights are both None, TypeError for an argument that is
    neither tensor nor number, IndexError for a position beyond the arguments.
    """
    return _GradFunction(fn, grad_position, weights, has_aux, return_ids, True, sens_param)


class GradOperation:
    """MindSpore's older interface to derivatives: GradOperation(...)(fn) is a function that gives
    gradients.

    get_all: whether to differentiate with respect to all tensor arguments, which gives a tuple, or
    only the first; integers count too, in their dtype. get_by_list: whether to differentiate with
    respect to parameters: those given as the second argument of the call, or all trainable ones
    that the function reads; together with get_all the result is (for arguments, for parameters).
    sens_param: whether the last argument of the gradient function, or the keyword sens, is the
    cotangent: a tensor, or a tuple for a tuple output.

    Raises TypeError if a flag is not a bool.
    """

    def __init__(
        self, get_all: bool = False, get_by_list: bool = False, sens_param: bool = False
    ) -> None:
        arguments.boolean(get_all, "GradOperation", "get_all")
        arguments.boolean(get_by_list, "GradOperation", "get_by_list")
        arguments.boolean(sens_param, "GradOperation", "sens_param")
        self.get_all, self.get_by_list, self.sens_param = get_all, get_by_list, sens_param

    def __call__(self, fn: Any, weights: Any = None) -> Callable[..., Any]:
        """The gradient function of fn."""
        if not callable(fn):
            bad_type(f"The fn should be callable, but got {type(fn).__name__}")
        single = isinstance(weights, Tensor)
        parameters = check_weights(weights) if weights is not None and self.get_by_list else None
        key = (
            "GradOperation",
            self.get_all,
            self.get_by_list,
            self.sens_param,
            single,
            None if parameters is None else tuple(p._variable_id() for p in parameters),
        )
        cache = cache_for(fn, key)

        @functools.wraps(fn, updated=())
        def gradient_function(*args: Any, **kwargs: Any) -> Any:
            refuse_in_no_grad()
            if not self.get_all and not self.get_by_list and args:
                check_argument(function_name(fn), args, 0, integers=True)
                args = _numbers_as_tensors(args, (0,))
            return run(record, args, kwargs, cache, True)

        def record(*args: Any, **kwargs: Any) -> Any:
            sens = None
            if self.sens_param:
                by_place = "sens" not in kwargs
                args, kwargs, sens = _without_sens(args, kwargs)
                if by_place and not args and not kwargs and not self.get_by_list:
                    bad_type(
                        "GradOperation: with sens_param the last argument is the sens, and none is left for "
                        f"{function_name(fn)}"
                    )
            positions = [
                i
                for i, a in enumerate(args)
                if isinstance(a, Tensor) or hasattr(a, "__ms_mutable__")
            ]
            if not self.get_all and not self.get_by_list and args:
                positions = [0]
            elif not self.get_all:
                positions = []
            by = parameters if self.get_by_list else []
            _, dx, dw, _ = _differentiate(
                fn, args, kwargs, positions, by, False, sens, self.sens_param, not self.get_all
            )
            by_weight = dw[0] if single and dw else tuple(dw)
            if not self.get_all:
                if self.get_by_list:
                    return by_weight
                return dx[0] if dx else ()
            return (tuple(dx), by_weight) if self.get_by_list else tuple(dx)

        return gradient_function


def get_grad(gradients: Any, identifier: Any) -> Tensor:
    """The gradient of one argument or Parameter among the results of grad(..., return_ids=True).

    gradients: what the function of grad returned. identifier: a position or a Parameter.

    Raises TypeError unless identifier is an int or a Parameter, RuntimeError if it is not there.
    """
    if not isinstance(identifier, (int, Parameter)):
        bad_type(
            f"get_grad: the identifier must be an int or a Parameter, got {type(identifier).__name__}"
        )
    wanted = identifier.name if isinstance(identifier, Parameter) else identifier

    def find(item: Any) -> Tensor | None:
        if not isinstance(item, (tuple, list)):
            return None
        if len(item) == 2 and isinstance(item[0], (int, str)) and item[0] == wanted:
            return item[1]  # type: ignore[no-any-return]
        for part in item:
            found = find(part)
            if found is not None:
                return found
        return None

    found = find(gradients)
    if found is None:
        fail(f"Can not find the gradient for position or Parameter {wanted}")
    return found


@explains_arguments
def jvp(fn: Callable[..., Any], inputs: Any, v: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """The value of a function and its derivative along a direction, in forward mode: (fn(inputs), J
    v) with the Jacobian J. With has_aux the value is fn's first output, and the second output, or a
    tuple of several, comes third.

    inputs, v: a tensor or a tuple of tensors, both of the same shapes and dtypes.

    Raises TypeError for anything that is not a tensor, ValueError for shapes or dtypes that differ.
    """
    arguments.function(fn, "jvp")
    refuse_in_no_grad()
    xs, vs = tensors_of("jvp", "inputs", inputs), tensors_of("jvp", "v", v)
    check_directions("jvp", xs, vs)

    def record(*both: Tensor) -> Any:
        arguments = [_core.alias(x) for x in both[: len(xs)]]
        wrt = [_core.record(x) for x in arguments]  # fn may write into its own
        try:
            out = fn(*arguments)
            target, aux = aux_of(out) if has_aux else (out, None)
            outputs = tree.leaves(target)
            check_outputs(function_name(fn), outputs)
            tangents = iter(_core.tangent(outputs, wrt, list(both[len(xs) :])))
        finally:
            _core.dissolve(wrt)
        moved = tree.map_leaves(lambda _: next(tangents), target)
        return (target, moved, aux) if has_aux else (target, moved)

    return run(record, (*xs, *vs), {}, None, True)  # type: ignore[no-any-return]


@explains_arguments
def vjp(
    fn: Callable[..., Any], *inputs: Tensor, weights: Any = None, has_aux: bool = False
) -> tuple[Any, ...]:
    """The value of a function, and a function that multiplies cotangents by its Jacobian:
    (fn(*inputs), vjp_fn). With has_aux these are of fn's first output, and the second output, or a
    tuple of several, comes third.

    inputs: tensors, with which fn is called. weights: Parameters, or None. vjp_fn(cotangent) gives
    the tuple of cotangents of the inputs; with weights, (that, the tuple for the weights).
    """
    arguments.function(fn, "vjp")
    tensors_of("vjp", "inputs", inputs)
    parameters = check_weights(weights) if weights is not None else []
    # fn may write into its arguments, and is run again on these inputs.
    out = run(lambda *xs: fn(*map(_core.record, xs)), inputs, {}, None, True)
    target, aux = aux_of(out) if has_aux else (out, None)
    check_outputs(function_name(fn), tree.leaves(target))

    outline = tree.outline(target)
    types = [(list(y.shape), y.dtype) for y in tree.leaves(target)]

    def check(cotangent: Any) -> None:
        if isinstance(cotangent, (int, float)) and len(types) == 1:
            return
        alone = isinstance(cotangent, Tensor) and len(types) == 1
        given = [cotangent] if alone else tree.matched("vjp: the cotangent", cotangent, outline)
        for k, (c, (shape, dtype)) in enumerate(zip(given, types, strict=True)):
            if not isinstance(c, Tensor):
                bad_type(f"vjp: cotangent {k} must be a Tensor, got {type(c).__name__}")
            if (list(c.shape), c.dtype) != (shape, dtype):
                kind = bad_value if list(c.shape) != shape else bad_type
                kind(
                    f"vjp: cotangent {k} must have the shape and dtype of its output, {dtype}{shape}, but "
                    f"is {c.dtype}{list(c.shape)}"
                )

    def pull_back(*sens: Any) -> Any:
        cotangent = sens[0] if len(sens) == 1 else sens
        check(cotangent)

        def record(*args: Any) -> Any:
            positions = range(len(inputs))
            _, dx, dw, _ = _differentiate(
                fn, args[: len(inputs)], {}, positions, parameters, has_aux, args[-1], True
            )
            return (tuple(dx), tuple(dw)) if weights is not None else tuple(dx)

        return run(record, (*inputs, cotangent), {}, None, True)

    return (target, pull_back, aux) if has_aux else (target, pull_back)
