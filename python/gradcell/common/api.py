"""Compilation: jit and the names around it.

gradcell traces a function with the Python that it is made of, so it needs no hints about which
classes a graph may contain, what is constant or what is inlined, which MindSpore has to be given.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from gradcell._core import Tensor, device_in_use, release_cached_memory, synchronize_device
from gradcell.base import CellBase, arguments, bad_type, bad_value
from gradcell.base.symbol import Symbol as Symbol
from gradcell.compilation.compiled import jit, run_traced

ms_function = jit

#: Of compiled cells by their id, in MindSpore; here a cell keeps what was compiled.
cells_compile_cache: dict[int, Any] = {}


def ms_memory_recycle() -> None:
    """Returns memory that is kept for later use to the system."""
    release_cached_memory()


_OPTIONS = {
    "jit_level": ("", "O0", "O1", "O2", "O3"), "exc_mode": ("auto", "sink", "no_sink"),
    "jit_syntax_level": ("", "STRICT", "COMPATIBLE", "LAX"), "debug_level": ("RELEASE", "DEBUG"),
    "infer_boost": ("on", "off"),
}  # fmt: skip


class JitConfig:
    """Options of compilation, which are stored; they change nothing in gradcell.

    jit_level: '', 'O0', 'O1', 'O2' or 'O3'. exc_mode: 'auto', 'sink' or 'no_sink'.
    jit_syntax_level: '', 'STRICT', 'COMPATIBLE' or 'LAX'. debug_level: 'RELEASE' or 'DEBUG'.
    infer_boost: 'on' or 'off'. kwargs: further options, which are stored. Raises ValueError for a
    value that MindSpore does not know.
    """

    def __init__(
        self, jit_level: str = "", exc_mode: str = "auto", jit_syntax_level: str = "",
        debug_level: str = "RELEASE", infer_boost: str = "off", **kwargs: Any,
    ) -> None:  # fmt: skip
        given = (jit_level, exc_mode, jit_syntax_level, debug_level, infer_boost)
        for value, (name, allowed) in zip(given, _OPTIONS.items(), strict=True):
            arguments.one_of(value, allowed, "JitConfig", name)
        self.jit_config_dict: dict[str, Any] = {**dict(zip(_OPTIONS, given, strict=True)), **kwargs}


def jit_class(cls: type) -> type:
    """Returns the class unchanged: traced functions may make and use objects of any class.

    cls: a class. Raises TypeError for anything that is not a class, or for a Cell.
    """
    if not isinstance(cls, type):
        bad_type(f"Decorator jit_class can only be used for class type, but got {cls}.")
    if issubclass(cls, CellBase):
        bad_type(
            f"Decorator jit_class is used for user-defined classes and cannot be used for nn.Cell: {cls}."
        )
    return cls


def is_jit_class(cls: Any) -> bool:
    """Return whether traced functions may use the class: true of any class."""
    return isinstance(cls, type)


def constexpr(
    fn: Any = None, get_instance: bool = True, name: str | None = None, reuse_result: bool = True,
    check: bool = True,
) -> Any:  # fmt: skip
    """Marks a function of Python values; it runs as it is, also while another function is traced.

    get_instance: False for a class, whose objects are the function.

    fn: a function of Python values. name: what the class is called. reuse_result and check have no
    effect.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        if get_instance:
            return function

        class Constant:
            __doc__ = function.__doc__

            def __call__(self, *args: Any, **kwargs: Any) -> Any:
                return function(*args, **kwargs)

        named: str = name or str(getattr(function, "__name__", "Constant"))
        Constant.__name__ = Constant.__qualname__ = named
        return Constant

    return decorate if fn is None else decorate(fn)


def lazy_inline(fn: Any = None, attrs: Any = None, policy: Any = None) -> Any:
    """Returns the function (a cell's __init__) unchanged: equal parts of graphs are found without
    this mark.

    policy: None or 'front'. fn: a function; without it a decorator is returned. attrs has no
    effect. Raises ValueError for others.
    """
    if policy not in (None, "front"):
        bad_value(f"The 'policy' must be 'front', but got {policy!r}.")
    return fn if fn is not None else lambda function: function


def no_inline(fn: Any = None) -> Any:
    """Returns the function unchanged: a hint to MindSpore's compiler, which gradcell does not need.

    fn: a function, or None for a decorator. Raises ValueError for anything that is not a function.
    """
    if fn is None:
        return lambda function: function
    if not callable(fn):
        bad_value(f"Decorator no_inline can only be used for functions, got {fn!r}")
    return fn


def cell_attr_register(fn: Any = None, attrs: Any = None) -> Any:
    """The function itself, a cell's __init__: equal cells are found without it."""
    return fn if fn is not None else lambda function: function


class _Mutable:
    """Base class of the types of values that mutable() marks."""

    __ms_mutable__ = True
    __ms_dynamic_len__ = False


_MUTABLE: dict[type, type] = {
    kind: type(f"_Mutable{kind.__name__.title()}", (kind, _Mutable), {"__module__": __name__})
    for kind in (int, float, tuple, list, dict)
}
globals().update({kind.__name__: kind for kind in _MUTABLE.values()})  # pickle looks for them here


def mutable(input_data: Any, dynamic_len: bool = False) -> Any:
    """The value, marked as one that changes from call to call.

    Tensors in tuples, lists and dicts are arguments of what is compiled with or without it; of a
    number each value is traced once. input_data: a number, a tensor, or a tuple, list or dict.
    dynamic_len: whether the length of a tuple or list may change. Raises TypeError for other
    values, ValueError for dynamic_len of what has no length.
    """
    arguments.boolean(dynamic_len, "mutable", "dynamic_len")
    if isinstance(input_data, Tensor):
        return input_data
    kind = next((k for k in _MUTABLE if type(input_data) in (k, _MUTABLE[k])), None)
    if kind is None:
        bad_type(
            "For 'mutable', the 'input_data' must be a tuple, list, dict, int, float or Tensor, but got "
            f"{type(input_data).__name__}"
        )
    if dynamic_len and kind not in (tuple, list):
        bad_value(
            "For mutable, when the variable_len is set to True, the first input should be list or tuple, "
            f"but got: {input_data!r}"
        )
    out = _MUTABLE[kind](input_data)
    out.__ms_dynamic_len__ = dynamic_len
    return out


def enable_dynamic(**kwargs: Any) -> Callable[[Any], Any]:
    """A decorator that declares arguments' shapes, Tensor(shape=None, dtype=...): the function
    itself, since each shape is compiled for itself.

    kwargs: a tensor without data for each argument, by its name. Raises ValueError for an argument
    that the function does not have.
    """

    def declare(function: Any) -> Any:
        names = inspect.signature(function).parameters
        for name in kwargs:
            if name not in names:
                bad_value(f"enable_dynamic: there is no argument {name!r}")
        return function

    return declare


def data_sink(
    fn: Callable[..., Any], dataset: Any, sink_size: int = 1, jit_config: Any = None,
    input_signature: Any = None,
) -> Callable[..., Any]:  # fmt: skip
    """A function that runs fn on the dataset's next batches, sink_size of them in one call (for -1
    a whole epoch), and returns the last result.

    The dataset begins again when it ends. With jit_config fn is compiled. fn: a function of a
    batch's columns. dataset: a Dataset. sink_size: batches in one call. jit_config: a JitConfig, or
    None. input_signature has no effect. Raises ValueError for a sink_size below -1 or of 0.
    """
    if type(sink_size) is not int or sink_size < -1 or sink_size == 0:
        bad_value(f"The 'sink_size' must be -1 or positive, but got sink_size {sink_size}.")
    step = fn if jit_config is None else jit(fn)
    batches: Any = None

    @functools.wraps(fn, updated=())
    def sink_process(*args: Any, **kwargs: Any) -> Any:
        nonlocal batches
        count = sink_size if sink_size > 0 else dataset.get_dataset_size()
        out: Any = None
        for _ in range(count):
            batch = next(batches, None) if batches is not None else None
            if batch is None:
                batches = dataset.create_tuple_iterator(num_epochs=1)
                batch = next(batches, None)
            if batch is None:
                bad_value("data_sink: the dataset has no batches")
            out = step(*batch, *args, **kwargs)
        return out

    return sink_process


class _PynativeExecutor:
    """MindSpore's executor of ops one by one, as far as programs call it."""

    def sync(self) -> None:
        """Waits until all that has been asked for is computed."""
        if device_in_use() >= 0:
            synchronize_device(device_in_use())

    def set_grad_flag(self, flag: bool) -> None:
        """Does nothing: a transform runs its function itself, so nothing has to be recorded beforehand."""

    def clear_res(self) -> None:
        """Gives cached memory back."""
        release_cached_memory()


class _CellGraphExecutor:
    """MindSpore's compiler of cells, as far as programs call it."""

    def compile(
        self, obj: Any, *args: Any, phase: str = "predict", **kwargs: Any
    ) -> tuple[str, bool]:
        """Compiles a cell or function for arguments like these: runs it once, and keeps the plan."""
        run_traced(obj, args, {})
        return f"{phase}.{id(obj)}", True

    def __call__(self, obj: Any, *args: Any, phase: str = "predict") -> Any:
        """Runs a cell or function."""
        return obj(*args)


_pynative_executor = _PynativeExecutor()
_cell_graph_executor = _executor = _CellGraphExecutor()
