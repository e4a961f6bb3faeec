"""Transforms of functions: grad and its kin.

A transform runs the user's function once on tensors that record, and works on the graph that comes
out. Transforms nest: all of one call share one trace. The outermost one runs what was recorded.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Literal, NoReturn, overload

from gradcell import _core
from gradcell._core import Tensor
from gradcell.base import arguments, bad_type, bad_value, door, fail, tree, where
from gradcell.base.remade import Made, Remade, transform
from gradcell.base.signposts import explains_arguments
from gradcell.compilation.compiled import cache_for, function_name
from gradcell.derivatives.checks import aux_of, check_outputs, check_weights, refuse_in_no_grad
from gradcell.derivatives.differentiating import By, Call, Given, No, P, R, Several, in_places
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


def _gradients(call: Call, sens: Any, with_sens: bool, every: bool, chosen: bool) -> list[Tensor]:
    """The gradients by the call's variables; every: by each trainable Parameter that the function has read.

    chosen: the positions were, so integers there have to have a derivative; else (all arguments) it may be 0.
    """
    outputs, wrt, owners = call.outputs, call.wrt, [*tree.leaves(call.by), *call.what.weights]
    if every:
        for leaf in outputs:
            _core.record(leaf)  # a parameter that is returned itself has been read too
        read = [parameter_of(v) for v in _core.lifted_variables()]
        parameters = [p for p in read if p is not None and p.requires_grad]
        wrt = [*wrt, *map(_core.record, parameters)]
        owners += parameters
    cotangents: list[Tensor | None] = [None] * len(outputs)
    if with_sens:
        cotangents = [*_cotangents(call, sens)]
    floating = _core.all_floating(owners)
    if chosen and not floating and (named := _integers(call)):
        _core.require_rules_for_integers(outputs, named)
    grads = _core.adjoint(outputs, cotangents, wrt)
    if not (floating and _core.all_floating(outputs)):
        _warn_of_integers(function_name(call.what.fn), outputs, owners, grads)
    return [_after_hooks(o, g) for o, g in zip(owners, grads, strict=True)]


def _integers(call: Call) -> list[Tensor]:
    """The variables that stand for arguments that are integers."""
    following = iter(call.wrt)
    found = [[next(following) for _ in tree.leaves(x)] for x in call.by]
    return [
        variables[0]
        for x, variables in zip(call.by, found, strict=True)
        if isinstance(x, Tensor) and not x.dtype.is_floating
    ]


def _cotangents(call: Call, sens: Any) -> list[Tensor]:
    target, outputs, given = call.target, call.outputs, tree.leaves(sens)
    if isinstance(sens, (int, float)) and len(outputs) == 1:
        given = [Tensor(float(sens), outputs[0].dtype)]
    if len(given) != len(outputs):
        bad_value(
            f"The given sens gradient's size should be same as out of network! "
            f"{function_name(call.what.fn)} has {len(outputs)} "
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


class _Gradient(By):
    """By what MindSpore's grad differentiates: by integers and numbers too."""

    integers = complex = True


class _GradFunction(Remade):
    """The function that grad and value_and_grad return."""

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
        arguments.boolean(return_ids, "_Grad", "return_ids")
        arguments.boolean(with_sens, "_Grad", "sens_param")
        given = (fn, grad_position, weights, has_aux, return_ids, with_value, with_sens)
        self._made_of = (_GradFunction, given, {}, None)
        self.by = _Gradient("_Grad", fn, grad_position, weights, has_aux)
        self.fn, self.return_ids = fn, return_ids
        self.with_value, self.with_sens = with_value, with_sens
        if callable(fn):
            functools.update_wrapper(self, fn, updated=())
            key = (self.by.key, return_ids, with_value, with_sens)
            self._transform = (fn, key, id(self))
            self.run = cache_for(fn, key)

    def __iter__(self) -> NoReturn:
        name = "value_and_grad" if self.with_value else "grad"
        bad_type(f"{name} gives a function, which takes the arguments: {name}(f)(x), not {name}(f)")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        arguments.function(self.fn, "value_and_grad" if self.with_value else "grad")
        refuse_in_no_grad()
        if "sens" in kwargs or not self.with_sens:
            args, kwargs = self.by.placed(args, kwargs)
        else:
            args = self.by.numbers_as_tensors(args)
        return self.run(self._record, *args, **kwargs)

    def _record(self, *args: Any, **kwargs: Any) -> Any:
        sens = None
        if self.with_sens:
            args, kwargs, sens = _without_sens(args, kwargs)
        with Call(self.by, args, kwargs) as call:
            by_input, by_weight = call.parted(_gradients(call, sens, self.with_sens, False, True))
        if self.return_ids:
            by_input = list(zip(self.by.positions, by_input, strict=True))
            by_weight = [(w.name, g) for w, g in zip(self.by.weights, by_weight, strict=True)]
        grads = self.by.joined(by_input, by_weight)
        if self.with_value:
            return call.out, grads
        return (grads, tuple(call.out[1:])) if self.by.has_aux else grads


@overload
def grad(
    fn: Callable[P, Any], grad_position: int = 0, weights: None = None, has_aux: No = False
) -> Callable[P, Tensor]: ...
@overload
def grad(
    fn: Callable[P, Any], grad_position: Several, weights: None = None, has_aux: No = False
) -> Callable[P, tuple[Tensor, ...]]: ...
@overload
def grad(
    fn: Callable[P, Any], grad_position: None, weights: Parameter, has_aux: No = False
) -> Callable[P, Tensor]: ...
@overload
def grad(
    fn: Callable[P, Any], grad_position: None, weights: Sequence[Parameter], has_aux: No = False
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

    fn: a function or Cell; several outputs are summed. grad_position: the index,
    or a tuple of indices, of the arguments to differentiate with respect to, or None. weights: a
    Parameter, or a list or tuple of them, to differentiate with respect to, or None. has_aux: only
    fn's first output is differentiated, and the others are returned in a tuple after the
    gradients. return_ids: each gradient comes as (position or parameter name, gradient). sens_param:
    if True, the returned function takes the cotangent last, or as its keyword sens, in place of ones: a
    tensor, or a tuple for several outputs.

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
    fn: Callable[P, R], grad_position: int = 0, weights: None = None, has_aux: No = False
) -> Callable[P, tuple[R, Tensor]]: ...
@overload
def value_and_grad(
    fn: Callable[P, R], grad_position: Several, weights: None = None, has_aux: No = False
) -> Callable[P, tuple[R, tuple[Tensor, ...]]]: ...
@overload
def value_and_grad(
    fn: Callable[P, R], grad_position: None, weights: Parameter, has_aux: No = False
) -> Callable[P, tuple[R, Tensor]]: ...
@overload
def value_and_grad(
    fn: Callable[P, R], grad_position: None, weights: Sequence[Parameter], has_aux: No = False
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

    fn: a function or Cell; several outputs are summed. grad_position: the index,
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
        self.get_all: bool = get_all
        self.get_by_list: bool = get_by_list
        self.sens_param: bool = sens_param

    @transform()
    def __call__(self, fn: Any, weights: Any = None) -> Callable[..., Any]:
        """The gradient function of fn."""
        arguments.function(fn, "GradOperation")
        single = isinstance(weights, Tensor)
        every = self.get_by_list and weights is None
        of = (self.get_all, self.get_by_list, self.sens_param)
        given = weights if self.get_by_list else None
        first = _Gradient("GradOperation", fn, 0, given)
        run = cache_for(fn, ("GradOperation", of, first.key))

        def gradient_function(*args: Any, **kwargs: Any) -> Any:
            refuse_in_no_grad()
            if not self.get_all and not self.get_by_list:
                if kwargs and ("sens" in kwargs or not self.sens_param):
                    args, kwargs = in_places(fn, args, kwargs, 1)
                args = first.numbers_as_tensors(args)
            return run(record, *args, **kwargs)

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
            by = _Gradient("GradOperation", fn, 0, given if self.get_by_list and not every else ())
            if self.get_all:
                by.positions = tuple(
                    i
                    for i, a in enumerate(args)
                    if isinstance(a, Tensor) or hasattr(a, "__ms_mutable__")
                )
            elif self.get_by_list or not args:
                by.positions = ()
            with Call(by, args, kwargs) as call:
                dx, dw = call.parted(
                    _gradients(call, sens, self.sens_param, every, not self.get_all)
                )
            by_weight = dw[0] if single and dw else tuple(dw)
            if not self.get_all:
                if self.get_by_list:
                    return by_weight
                return dx[0] if dx else ()
            return (tuple(dx), by_weight) if self.get_by_list else tuple(dx)

        return functools.update_wrapper(Made(gradient_function), fn, updated=())


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


@overload
def jvp(
    fn: Callable[..., R],
    inputs: Any,
    v: Any,
    has_aux: No = False,
    weights: Any = None,
    **kwargs: Any,
) -> tuple[R, R]: ...
@overload
def jvp(
    fn: Callable[..., Any],
    inputs: Any,
    v: Any,
    has_aux: Literal[True],
    weights: Any = None,
    **kwargs: Any,
) -> tuple[Any, Any, Any]: ...
@explains_arguments
def jvp(
    fn: Callable[..., Any],
    inputs: Any,
    v: Any,
    has_aux: bool = False,
    weights: Any = None,
    **kwargs: Any,
) -> tuple[Any, ...]:
    """The value of a function and its derivative along a direction, in forward mode: (fn(inputs), J
    v) with the Jacobian J. With has_aux the value is fn's first output, and the second output, or a
    tuple of several, comes third.

    inputs: the arguments, a tuple of tensors and trees of them, or the only one. v: the same, of the same
    shapes and dtypes. weights: a Parameter, or a list or tuple of them, to which v belongs instead.
    kwargs: fn's arguments by name, which stay as they are.

    Raises TypeError for anything that is not a tensor, ValueError for shapes or dtypes that differ.
    """
    by = Given("jvp", fn, inputs, weights, has_aux)
    by.integer_inputs = True
    v = by.directions(v)

    def record(xs: tuple[Any, ...], v: Any, **kwargs: Any) -> Any:
        with Call(by, xs, kwargs) as call:
            moved = _core.tangent(call.outputs, call.wrt, tree.leaves(v))
        along = tree.refill(tree.outline(call.target), moved)
        return call.valued(along)

    return by.run(None, record, by.inputs, v, **kwargs)  # type: ignore[no-any-return]


@overload
def vjp(
    fn: Callable[..., R], *inputs: Tensor, weights: None = None, has_aux: No = False, **kwargs: Any
) -> tuple[R, Callable[..., tuple[Tensor, ...]]]: ...
@overload
def vjp(
    fn: Callable[..., R], *inputs: Any, weights: Any = None, has_aux: No = False, **kwargs: Any
) -> tuple[R, Callable[..., tuple[Any, ...]]]: ...
@overload
def vjp(
    fn: Callable[..., Any], *inputs: Any, weights: Any = None, has_aux: Literal[True], **kwargs: Any
) -> tuple[Any, Callable[..., Any], Any]: ...
@transform(part=1)
@explains_arguments
def vjp(
    fn: Callable[..., Any], *inputs: Any, weights: Any = None, has_aux: bool = False, **kwargs: Any
) -> tuple[Any, ...]:
    """The value of a function, and a function that multiplies cotangents by its Jacobian:
    (fn(*inputs), vjp_fn). With has_aux these are of fn's first output, and the second output, or a
    tuple of several, comes third.

    inputs: the arguments, tensors or trees of them, with which fn is called; or as in jvp one tuple of
    all. weights: Parameters, or None. kwargs: fn's arguments by name, which stay as they are.
    vjp_fn(cotangent) gives the tuple of cotangents of the inputs; with weights, (that, the tuple for the
    weights).

    Raises TypeError for anything that is not a tensor.
    """
    given = inputs[0] if len(inputs) == 1 and type(inputs[0]) is tuple else inputs
    by = Given("vjp", fn, given, None, has_aux)
    by.integers = True
    if weights is not None:
        by.weights = check_weights(weights)
    key = (has_aux, [p._variable_id() for p in by.weights])

    def value(*xs: Any, **kwargs: Any) -> Any:
        # fn may write into its arguments, and is run again on these inputs.
        return fn(*tree.map_leaves(_core.record, xs), **kwargs)

    out = by.run("value", value, *by.inputs, **kwargs)
    target, aux = aux_of(out) if has_aux else (out, None)
    check_outputs(fn, tree.leaves(target))

    outline = tree.outline(target)
    types = [(list(y.shape), y.dtype) for y in tree.leaves(target)]

    def check(cotangent: Any) -> Any:
        if isinstance(cotangent, (int, float)) and len(types) == 1:
            return cotangent
        cotangent = door.numbers_too(cotangent, fn)
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
        return cotangent

    def pull_back(*sens: Any) -> Any:
        cotangent = check(sens[0] if len(sens) == 1 else sens)
        return by.run(("pull", str(key)), record, by.inputs, cotangent, **kwargs)

    def record(xs: tuple[Any, ...], cotangent: Any, **kwargs: Any) -> Any:
        with Call(by, xs, kwargs) as call:
            dx, dw = call.parted(_gradients(call, cotangent, True, False, True))
        return (tuple(dx), tuple(dw)) if weights is not None else tuple(dx)

    return (target, Made(pull_back), aux) if has_aux else (target, Made(pull_back))
