"""Cell: a network, or a part of one, or anything with parameters and a construct method."""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator
from types import NoneType
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec, Protocol, TypeVar

from gradcell import _core
from gradcell._core import Tensor
from gradcell.base import bad_key, bad_type, bad_value, is_tensor, structure, to_dtype, tree, where
from gradcell.base.naming import by_own_names
from gradcell.base.signposts import SignatureOfInit, check_arguments, instead
from gradcell.common.recompute import recompute
from gradcell.compilation.compiled import dispatcher_of, keep_form, traced
from gradcell.derivatives.hooks import HookHandle
from gradcell.nn.bprop import construct_with_bprop
from gradcell.nn.graph_mode import GraphMode
from gradcell.nn.hooks import CellHooks
from gradcell.nn.reading import read, reads
from gradcell.tensors.parameter import Parameter, ParameterTuple, _Buffer

__all__ = [
    "Cell",
    "no_init_parameters",
]

#: What a cell has under a name besides its own attributes, or None: gradcell.nn says what.
held_by: Callable[[Any, str], Any] | None = None

P = ParamSpec("P")
R = TypeVar("R", covariant=True)


class _Constructs(Protocol[P, R]):
    """Whatever has a construct method, to type checkers."""

    def construct(self, *args: P.args, **kwargs: P.kwargs) -> R: ...


#: MindSpore's options of Cell.recompute.
_RECOMPUTE_OPTIONS = (
    "use_reentrant", "output_recompute", "early_stop", "context_fn", "mp_comm_recompute",
    "parallel_optimizer_comm_recompute", "recompute_slice_activation",
)  # fmt: skip


def cast_floating(value: Any, dtype: _core.DType) -> Any:
    """A tree of tensors with the real floating ones in another dtype."""

    def cast(t: Tensor) -> Tensor:
        same = t.dtype == dtype or t.dtype.is_complex or not t.dtype.is_floating
        return t if same else _core.ops.cast(t, dtype)

    return tree.map_leaves(cast, value)


@contextlib.contextmanager
def no_init_parameters() -> Iterator[None]:
    """A scope for networks whose parameters will be loaded. It changes nothing here: parameters
    have values from the start."""
    yield


class Cell(GraphMode):
    """The base class of all networks: assign parameters and cells as attributes, and define
    construct.

    auto_prefix: whether the names of parameters in the cells below begin with the path of
    attributes. flags: options, which are stored.
    """

    #: That compiled functions need not look for changed attributes.
    _counts_its_changes = True
    #: Whether it has a derivative of its own: bprop(self, *inputs, output, gradient).
    _has_bprop: bool = False
    #: Whether it is known to be a Layer, to the last cell; a class of the user's never is.
    _only_computes = False
    #: What runs it, from the first call on, until a setting changes how.
    _runner: Any = None
    _cells: OrderedDict[str, Any]
    _params: OrderedDict[str, Parameter]
    _auto_prefix: bool
    #: The function of a cell that `cell_of` makes, of its inputs and what it keeps.
    _computed: Callable[..., Tensor]

    if not TYPE_CHECKING:  # who would read from it what __init__ takes
        __signature__ = SignatureOfInit()

        def __new__(cls, *args: Any, **kwargs: Any) -> Any:
            if kwargs:
                check_arguments(cls, kwargs)
            return super().__new__(cls)

    def __init__(self, auto_prefix: bool = True, flags: dict[str, Any] | None = None) -> None:
        object.__setattr__(self, "_cells", OrderedDict())
        object.__setattr__(self, "_params", OrderedDict())
        object.__setattr__(self, "_tuples", {})
        object.__setattr__(self, "_auto_prefix", auto_prefix)
        object.__setattr__(self, "_called", False)
        object.__setattr__(self, "_made_at", _core.trace_clock())
        object.__setattr__(self, "_cast_to", None)  # the compute dtype
        object.__setattr__(self, "_output_to", None)  # the output dtype, if not that
        object.__setattr__(self, "_computes_in", None)  # while construct runs in another dtype
        object.__setattr__(self, "_hooks", None)
        object.__setattr__(self, "_recomputes", False)
        object.__setattr__(self, "_has_bprop", callable(getattr(self, "bprop", None)))
        self.training = False
        self.requires_grad = False
        self.param_prefix = ""
        self.cls_name: str = type(self).__name__
        if flags:
            self.add_flags(**flags)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if not cls.__module__.startswith("gradcell."):
            cls._only_computes = False

    # Attributes -----------------------------------------------------------------------------------

    def __setattr__(self, name: str, value: Any) -> None:
        if "_cells" not in self.__dict__:
            if isinstance(value, (Cell, Parameter, ParameterTuple)):
                raise AttributeError(
                    f"{type(self).__name__}: call super().__init__() before assigning {name!r}"
                    f"{where()}"
                )
            object.__setattr__(self, name, value)
            return
        if isinstance(value, Parameter) and not isinstance(value, _Buffer):
            self._forget(name, keep=self._params)
            self._add_parameter(name, value)
        elif isinstance(value, Cell):
            self._forget(name, keep=self._cells)
            self._add_cell(name, value)
        elif name in self._params:
            if is_tensor(value):
                self._params[name].set_data(value)
            elif value is None:
                self._forget(name)
                object.__setattr__(self, name, None)
            else:
                self._taken("Parameter", name, value, "parameter")
        elif name in self._cells and value is not None:
            self._taken("Sub cell", name, value, "cell")
        elif isinstance(self.__dict__.get(name), _Buffer) and not isinstance(
            value, (_Buffer, NoneType)
        ):
            self._taken("Buffer", name, value, "buffer")
        elif isinstance(value, ParameterTuple):
            self._forget(name)
            self._tuples[name] = value
            here = {id(p) for p in self._params.values()}
            for p in value:
                if id(p) not in here:
                    self._params[p.name] = p
            object.__setattr__(self, name, value)
        else:
            if isinstance(value, (list, tuple, dict)):
                self._check_holds_no_cells(name, value)
            self._changed(name, value)
            self._cells.pop(name, None)
            object.__setattr__(self, name, value)
            if name == "construct":
                self._steer()

    def _taken(self, what: str, name: str, value: Any, word: str) -> NoReturn:
        bad_type(
            f"{what} '{name}' already exists in network, can not assign this type: '{type(value)}' as a "
            f"{word}. ({type(self).__name__})"
        )

    def _check_holds_no_cells(self, name: str, value: Any) -> None:
        """Warns of cells in a plain container: they are no part of this one."""
        items = value.values() if isinstance(value, dict) else value
        own = {id(c) for c in self._walk()} if any(isinstance(c, Cell) for c in items) else set()
        if any(
            isinstance(c, Cell) and id(c) not in own and any(True for _ in c.get_parameters())
            for c in items
        ):
            kind = type(value).__name__
            better = "nn.CellDict" if isinstance(value, dict) else "nn.CellList"
            warnings.warn(
                f"{type(self).__name__}.{name} is a {kind} of cells, whose parameters are not trained, "
                f"saved or printed with it: use {better}{where()}",
                RuntimeWarning,
                stacklevel=3,
            )

    def _changed(self, name: str, value: Any) -> None:
        """A plain attribute may steer construct: compiled forms must not outlive its change."""
        if not self._may_be_read():
            return
        old = self.__dict__.get(name)
        if structure.same(old, value):
            return
        if _core.in_trace():
            _core.mark_unrepeatable()
        else:
            structure.changed(self, name, old, value)

    def _may_be_read(self) -> bool:
        """Return whether a trace may have read attributes: one has begun or ended since the cell
        was made."""
        return self._made_at != _core.trace_clock()  # type: ignore[no-any-return]

    def _forget(self, name: str, keep: dict[str, Any] | None = None) -> None:
        """Drops an attribute; its place in `keep` stays, for what replaces it."""
        for holder in (self._cells, self._params, self._tuples, self.__dict__):
            if holder is not keep:
                holder.pop(name, None)
        if self._may_be_read():
            _core.bump_structure_version()

    def __getattr__(self, name: str) -> Any:
        # Only for what is not in __dict__: parameters and cells.
        own = self.__dict__
        if "_params" in own:
            found = own["_params"].get(name)
            if found is not None:
                return found if own["_computes_in"] is None else read(found, own["_computes_in"])
            found = own["_cells"].get(name)
            if found is not None:
                return found
        elif not name.startswith("__"):  # copy and pickle ask a bare instance for theirs
            raise AttributeError(
                f"{type(self).__name__}: call super().__init__() in __init__, before anything else "
                f"(there is no {name!r} yet){where()}"
            )
        if not name.startswith("_"):
            found = None if held_by is None else held_by(self, name)
            if found is not None:
                return found
        raise AttributeError(
            f"The '{type(self).__name__}' object has no attribute '{name}'{instead(type(self), name)}."
            f"{where()}"
        )

    def __delattr__(self, name: str) -> None:
        if name in self._params or name in self._cells:
            self._forget(name)
        else:
            object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._params, *self._cells]

    def _add_parameter(self, name: str, parameter: Parameter) -> None:
        if not parameter._named:
            parameter.name = name
        self._params[name] = parameter

    def _add_cell(self, name: str, cell: Cell) -> None:
        if cell is self or any(c is self for c in cell._walk()):
            raise RecursionError(
                f"{type(self).__name__}: the cell {name!r} contains this cell itself{where()}"
            )
        self._cells[name] = cell
        if self._auto_prefix:
            cell.update_parameters_name(name + ".", recurse=True)

    def update_parameters_name(self, prefix: str = "", recurse: bool = True) -> None:
        """Names every parameter by its path of attributes, with a prefix before it."""
        if not isinstance(prefix, str):
            bad_type(f"update_parameters_name: prefix must be a string, got {prefix!r}")
        for path, p in self.parameters_and_names(expand=recurse):
            p.name = prefix + path

    def _walk(self) -> Iterator[Cell]:
        """This cell and all below it, each once."""
        seen: set[int] = set()

        def visit(cell: Cell) -> Iterator[Cell]:
            if id(cell) in seen:
                return
            seen.add(id(cell))
            yield cell
            for child in cell._cells.values():
                yield from visit(child)

        return visit(self)

    # Parameters and cells -------------------------------------------------------------------------

    def parameters_and_names(
        self, name_prefix: str = "", expand: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """(path of attributes, parameter) for every parameter, each once."""
        seen: set[int] = set()

        def visit(cell: Cell, prefix: str) -> Iterator[tuple[str, Parameter]]:
            for key, p in cell._params.items():
                if id(p) not in seen:
                    seen.add(id(p))
                    yield prefix + key, p
            if expand:
                for key, child in cell._cells.items():
                    yield from visit(child, f"{prefix}{key}.")

        return visit(self, name_prefix + "." if name_prefix else "")

    def get_parameters(self, expand: bool = True) -> Iterator[Parameter]:
        """Every parameter, own ones first; expand False leaves out those of cells below."""
        return (p for _, p in self.parameters_and_names(expand=expand))

    def trainable_params(self, recurse: bool = True) -> list[Parameter]:
        """The parameters with requires_grad."""
        return [p for p in self.get_parameters(recurse) if p.requires_grad]

    def untrainable_params(self, recurse: bool = True) -> list[Parameter]:
        """The parameters without requires_grad."""
        return [p for p in self.get_parameters(recurse) if not p.requires_grad]

    def parameters_dict(self, recurse: bool = True) -> OrderedDict[str, Parameter]:
        """The parameters by name."""
        return OrderedDict((p.name, p) for p in self.get_parameters(recurse))

    def insert_param_to_cell(
        self, param_name: str, param: Parameter | None, check_name_contain_dot: bool = True
    ) -> None:
        """Makes a parameter an attribute of this cell.

        Raises KeyError for an empty name or one with a dot, TypeError if it is not a Parameter.
        """
        self._check_name("insert_param_to_cell", "param_name", param_name, check_name_contain_dot)
        if param_name not in self._params and hasattr(self, param_name):
            bad_key(f"For 'insert_param_to_cell', {param_name!r} already exists in the network.")
        if not isinstance(param, Parameter):
            bad_type(
                f"For 'insert_param_to_cell', the 'param' must be Parameter, but got {type(param).__name__}."
            )
        self._add_parameter(param_name, param)

    def insert_child_to_cell(self, child_name: str, child_cell: Cell) -> None:
        """Makes a cell an attribute of this cell.

        Raises TypeError for a name that is not a string or a child that is not a Cell, KeyError for an
        empty name or one with a dot.
        """
        self._check_name("insert_child_to_cell", "child_name", child_name, True)
        if not isinstance(child_cell, Cell):
            bad_type(
                "For 'insert_child_to_cell', the argument 'child_cell' must be 'Cell', but got type "
                f"{type(child_cell)}."
            )
        auto_prefix, self._auto_prefix = self._auto_prefix, False  # its parameters keep their names
        try:
            self._add_cell(child_name, child_cell)
        finally:
            self._auto_prefix = auto_prefix

    @staticmethod
    def _check_name(owner: str, what: str, name: Any, no_dot: bool) -> None:
        if not isinstance(name, str):
            bad_type(f"For '{owner}', the '{what}' must be str, got {type(name)}.")
        if not name or (no_dot and "." in name):
            bad_key(f"For '{owner}', the '{what}' must not be empty or contain '.', got {name!r}")

    def check_names(self) -> None:
        """Raises ValueError if two parameters have the same name."""
        seen: set[str] = set()
        for path, p in self.parameters_and_names():
            if p.name in seen:
                bad_value(
                    f"The value of {p!r} ({path}) is the name of another parameter too: each must have a "
                    "name of its own"
                )
            seen.add(p.name)

    def check_names_and_refresh_name(self) -> None:
        """Names every parameter by its path, if two have the same name."""
        names = [p.name for p in self.get_parameters()]
        if len(set(names)) < len(names):
            self.update_parameters_name()

    def state_dict(
        self,
        *args: Any,
        destination: OrderedDict[str, Any] | None = None,
        prefix: str = "",
        keep_vars: bool = False,
    ) -> OrderedDict[str, Any]:
        """The parameters and persistent buffers by their paths of attributes, after prefix; in destination
        if that is given. keep_vars: for compatibility; Parameters stay themselves."""
        given = (*args, *(destination, prefix)[len(args) :])
        found = OrderedDict() if given[0] is None else given[0]
        found.update((f"{given[1]}{name}", p) for name, p in self.parameters_and_names())
        found.update((f"{given[1]}{n}", b) for n, b in self._buffers() if b.persistent)
        return found

    def init_parameters_data(self, auto_parallel_mode: bool = False) -> dict[Parameter, Parameter]:
        """A dict from each parameter to itself: values are set from the start."""
        return {p: p for p in self.get_parameters()}

    def get_scope(self) -> str | None:
        """None: graphs name the user's lines, not cells."""
        return None

    def update_cell_prefix(self) -> None:
        """Sets param_prefix of every cell below to its path."""
        for path, cell in self.cells_and_names():
            cell.__dict__["param_prefix"] = path

    def cells(self) -> Any:
        """The cells right below this one."""
        return self._cells.values()

    def name_cells(self) -> OrderedDict[str, Cell]:
        """The cells right below this one, by name."""
        return OrderedDict(self._cells)

    def cells_and_names(
        self, cells: set[int] | None = None, name_prefix: str = ""
    ) -> Iterator[tuple[str, Cell]]:
        """(path, cell) for this cell and all below it, each once."""
        seen: set[int] = set() if cells is None else cells

        def visit(cell: Cell, path: str) -> Iterator[tuple[str, Cell]]:
            if id(cell) in seen:
                return
            seen.add(id(cell))
            yield path, cell
            for key, child in cell._cells.items():
                yield from visit(child, f"{path}.{key}" if path else key)

        return visit(self, name_prefix)

    def apply(self, fn: Callable[[Cell], None]) -> Cell:
        """Calls fn on every cell below this one and on this one, children first. Returns itself."""
        for child in self._cells.values():
            child.apply(fn)
        fn(self)
        return self

    # Flags ----------------------------------------------------------------------------------------

    def _set_below(self, name: str, value: Any) -> None:
        for cell in self._walk():
            if (old := cell.__dict__.get(name)) is not value:
                cell.__dict__[name] = value
                structure.changed(cell, name, old, value)

    def set_train(self, mode: bool = True) -> Cell:
        """Sets training or evaluation mode for this cell and all cells in it; Dropout and
        BatchNorm depend on it."""
        self._set_below("training", bool(mode))
        return self

    def set_grad(self, requires_grad: bool = True) -> Cell:
        """Marks the cell for differentiation; grad works without it."""
        self._set_below("requires_grad", bool(requires_grad))
        return self

    def to_float(self, dst_type: Any) -> Cell:
        """Computes in another floating dtype: inputs, and parameters where they are used, are cast.

        Raises ValueError unless it is float16, bfloat16, float32 or float64.
        """
        if dst_type is not None and not isinstance(dst_type, _core.DType):
            dst_type = to_dtype(dst_type)
        if dst_type not in (_core.float16, _core.bfloat16, _core.float32, _core.float64):
            bad_value(f"to_float: expected float16, bfloat16, float32 or float64, got {dst_type!r}")
        for cell in self._walk():
            cell._steer(_cast_to=dst_type, _output_to=None)
        _core.bump_structure_version()
        return self

    def add_flags(self, **flags: Any) -> Cell:
        """Sets attributes, which get_flags lists. Returns itself."""
        for key, value in flags.items():
            setattr(self, key, value)
        self.__dict__.setdefault("_flags", {}).update(flags)
        return self

    def add_flags_recursive(self, **flags: Any) -> Cell:
        """add_flags for this cell and all below. Returns itself."""
        for cell in self._walk():
            cell.add_flags(**flags)
        return self

    def get_flags(self) -> dict[str, Any]:
        """Return the flags that add_flags has set."""
        return dict(self.__dict__.get("_flags", {}))

    # Running --------------------------------------------------------------------------------------

    def construct(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the cell's output; each cell defines it."""
        raise AttributeError(
            f"For 'Cell', the method 'construct' is not defined. ({type(self).__name__}"
            f"{': rename its forward' if hasattr(type(self), 'forward') else ''}){where()}"
        )

    if TYPE_CHECKING:  # a call takes and gives what construct does

        def __call__(self: _Constructs[P, R], *args: P.args, **kwargs: P.kwargs) -> R: ...
    else:

        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            runner = self._runner or self._prepared()
            if kwargs:
                kwargs = by_own_names(type(self).construct, kwargs)
            return runner(self, *args, **kwargs)

    def _prepared(self) -> Any:
        """Return the runner of the cell with its present settings."""
        own = self.__dict__
        if not self._called:  # (a Cell without super().__init__() says so)
            own["_called"] = True
            if not _core.in_trace():
                self.check_names_and_refresh_name()
        # One Python frame a cell in a trace: finding the user's line walks through them.
        inside = "construct" if self._is_plain() else "_run"
        again = Cell._again if self._only_computes else None
        own["_runner"] = dispatcher_of(type(self).__name__, inside, Cell._once, again)
        return own["_runner"]

    def _dtype_of_arrays(self) -> _core.DType | None:
        """Return the dtype that floating arrays of other libraries get when they are arguments: that of
        to_float, or of the first real floating Parameter; None: their own."""
        if self._cast_to is not None:
            return self._cast_to  # type: ignore[no-any-return]
        dtypes = (p.dtype for p in self.get_parameters())
        return next((d for d in dtypes if d.is_floating and not d.is_complex), None)

    def _is_plain(self) -> bool:
        """Return whether a call only calls construct."""
        own = self.__dict__
        return not (
            own["_cast_to"] is not None
            or own["_hooks"] is not None
            or own["_recomputes"]
            or own.get("_declared") is not None
            or "construct" in own
            or self._has_bprop
        )

    def _steer(self, **settings: Any) -> None:
        """Sets what decides how the cell runs."""
        self.__dict__.update(settings, _runner=None)

    def _once(self, *args: Any, **kwargs: Any) -> Any:
        return traced(self._run, args, kwargs)

    def _again(self, *args: Any, **kwargs: Any) -> Any:
        once = functools.partial(Cell._once, self)
        if not all(c._only_computes and c._is_plain() for c in self._walk()):
            return once(*args, **kwargs)
        return keep_form(self._runner, self.construct, once, args, kwargs, reads=True)

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        if self.__dict__.get("_declared") is not None:
            self._check_inputs(args)
        if self._hooks is not None:
            return self._hooks.run(self, self._compute, args, kwargs)
        return self._compute(args, kwargs)

    def __getstate__(self) -> dict[str, Any]:
        return {name: v for name, v in self.__dict__.items() if name != "_runner"}

    def _constructed(self, *args: Any, **kwargs: Any) -> Any:
        if self._recomputes:
            return recompute(self._own_construct, *args, **kwargs)
        return self._own_construct(*args, **kwargs)

    def _own_construct(self, *args: Any, **kwargs: Any) -> Any:
        if self._has_bprop:
            return construct_with_bprop(self, args, kwargs)
        return self.construct(*args, **kwargs)

    def _compute(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        dtype = self._cast_to
        if dtype is None:
            return self._constructed(*args, **kwargs)
        # Floating arguments are cast here, the cell's own parameters where construct reads them;
        # they keep their dtype, and gradients, which flow back through the casts, have it too.
        own = self.__dict__
        before = own["_computes_in"]
        own["_computes_in"] = dtype
        try:
            with reads(own, dtype):
                out = self._constructed(*cast_floating(args, dtype), **cast_floating(kwargs, dtype))
        finally:
            own["_computes_in"] = before
        return out if self._output_to is None else cast_floating(out, self._output_to)

    # Derivatives ----------------------------------------------------------------------------------

    def recompute(self, **kwargs: Any) -> None:
        """Makes derivatives compute this cell again instead of storing its intermediate values:
        see gradcell.recompute. MindSpore's options are accepted and have no effect; raises
        ValueError for others.
        """
        for key in kwargs:
            if key not in _RECOMPUTE_OPTIONS:
                bad_value(
                    f"For 'recompute', keyword '{key}' is not recognized! the key kwargs must be "
                    f"{', '.join(map(repr, _RECOMPUTE_OPTIONS[-3:]))}"
                )
        self._steer(_recomputes=True)
        _core.bump_structure_version()

    # Hooks ----------------------------------------------------------------------------------------

    def register_forward_pre_hook(
        self, hook_fn: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> HookHandle:
        """Has hook_fn(cell, inputs) called before construct: what it returns, unless None, takes
        the place of the inputs. with_kwargs: hook_fn(cell, inputs, keywords) gives both or None.
        prepend: before the existing hooks. The result's remove() ends that. Raises TypeError if it is
        not a function.
        """
        return self._new_hooks().add("forward_pre", hook_fn, prepend, with_kwargs)

    def register_forward_hook(
        self,
        hook_fn: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> HookHandle:
        """Has hook_fn(cell, inputs, output) called after construct: what it returns, unless None,
        takes the place of the output. with_kwargs: hook_fn(cell, inputs, keywords, output). prepend:
        before the existing hooks. always_call: also when construct raises. The result's remove() ends
        that. Raises TypeError if it is not a function.
        """
        return self._new_hooks().add("forward", hook_fn, prepend, with_kwargs, always_call)

    def register_backward_pre_hook(self, hook_fn: Callable[..., Any]) -> HookHandle:
        """Has hook_fn(cell, grad_output) called with the gradients of the outputs, a tuple, before they
        pass the cell: what it returns, unless None, is passed instead. None among them: that output has
        none. The result's remove() ends that.

        Raises TypeError if it is not a function; when a derivative is taken, TypeError if it returns another
        number of gradients, ValueError for another shape or dtype.
        """
        return self._new_hooks().add("backward_pre", hook_fn)

    def register_backward_hook(self, hook_fn: Callable[..., Any]) -> HookHandle:
        """Has hook_fn(cell, grad_input, grad_output) called with the gradients of the tensors among the
        arguments and of the outputs, two tuples, when they have passed the cell: what it returns, unless
        None, takes the place of grad_input. None among them: there is no gradient. The result's remove()
        ends that. Raises what register_backward_pre_hook does.
        """
        return self._new_hooks().add("backward", hook_fn)

    def _new_hooks(self) -> CellHooks:
        if self._hooks is None:
            self._steer(_hooks=CellHooks())
        return self._hooks  # type: ignore[no-any-return]

    # Text -----------------------------------------------------------------------------------------

    def _repr_html_(self) -> str:
        from gradcell.base.notebook import cell_html

        return cell_html(self)

    def extend_repr(self) -> str:
        """Return the text between the parentheses of the cell's repr."""
        return ""

    def __repr__(self) -> str:
        extra = self.extend_repr()
        if not self._cells:
            return f"{type(self).__name__}({extra})"
        lines = [f"{type(self).__name__}("]
        if extra:
            lines.append(f"  {extra}")
        for key, child in self._cells.items():
            text = repr(child).replace("\n", "\n  ")
            lines.append(f"  ({key}): {text}")
        return "\n".join([*lines, ")"])

    __str__ = __repr__


class Layer(Cell):
    """A cell whose calls do no more than compute: results from arguments and Parameters. So the second call
    with arguments of a kind keeps a form, as one of an op does, and later ones run it, in both modes.

    A class may say its attributes behind its bases: `class MaxPool1d(_MaxPool, rank=1)`.
    """

    _only_computes = True

    def __init_subclass__(cls, **attributes: Any) -> None:
        super().__init_subclass__()
        for name, value in attributes.items():
            setattr(cls, name, value)
