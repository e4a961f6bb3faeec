"""Cache of compiled functions by signature, and jit.

A form is a plan for arguments of one signature. Whether a call is part of a trace, runs the form that
fits or is traced anew, the core's Dispatcher decides: for jit, transforms, cells and ops alike.
"""

from __future__ import annotations

import copyreg
import functools
import operator
import time
import warnings
import weakref
from collections.abc import Callable, ItemsView, Iterator, KeysView, ValuesView
from typing import Any, ParamSpec, TypeVar, overload

from gradcell import _core
from gradcell._core import Tensor
from gradcell.base import Made, Remade, bad_type, door, tree
from gradcell.compilation.prints import Prints
from gradcell.compilation.signatures import Unhashable, signature


def settled(out: Any, by_value: bool) -> Any:
    """Return a function's results without nodes of its trace."""
    if isinstance(out, Tensor):
        return _core.settled([out], by_value)[0]
    results = iter(_core.settled(tree.leaves(out), by_value))
    return tree.map_leaves(lambda _: next(results), out)


def own(args: Any) -> Any:
    """Arguments by value: tensors of the function's own, but for parameters; with the hooks on them."""

    def copied(t: Tensor) -> Tensor:
        if t._is_variable:
            return t
        own = _core.copy(t)
        if hooks := t.__dict__.get("_gradient_hooks"):
            own.__dict__["_gradient_hooks"] = hooks
        return own

    return tree.map_leaves(copied, args)


def traced(
    fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], by_value: bool = False
) -> Any:
    """fn(*args, **kwargs) in a trace of its own: recorded, then run as one plan.

    If fn raises, nothing has been assigned. by_value: the results share elements with nothing.
    """

    def body(trace: _core.Trace) -> Any:
        out = settled(fn(*args, **kwargs), by_value)
        trace.finish(tree.leaves(out))
        return out

    return _core.with_trace(body)


def run_traced(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """fn(*args, **kwargs) as a part of the trace around it, else in one of its own."""
    return fn(*args, **kwargs) if _core.in_trace() else traced(fn, args, kwargs)


#: How many compiled forms of a function are kept; the one used longest ago goes first.
MOST_FORMS = 512
#: How many ways through a function, by what it asks of tensors, are compiled for one signature.
MOST_BRANCHES = 64


#: Called after each trace: (cache, key, when it began, the trace or None, why it comes at every call or "").
watchers: list[Callable[[CompiledCache, Any, float, _core.Trace | None, str], None]] = []


class _Compiled:
    """One signature's result: a plan and the tree of its outputs; or neither, if it asked for a
    value while it was traced."""

    def __init__(
        self, compiled: _core.Compiled | None, out: Any, keep: list[Any], prints: Prints
    ) -> None:
        self.compiled = compiled
        self.keep = keep  # objects that the signature names by id stay alive
        self.prints = prints
        self.again = ""  # why it is traced at every call
        # Only the places of the tensors matter: values must not be kept.
        self.outline = tree.outline(out) if compiled is not None else None

    def run(self, tensors: list[Tensor]) -> Any:
        assert self.compiled is not None
        found = self.compiled.run(tensors)
        if self.prints.calls:
            self.prints.show(found[len(found) - self.prints.count :])
        return tree.refill(self.outline, found)


class _Choice:
    """A form of a function that asks whether something holds: what computes the answer, and what it goes on
    with for either one, which has the results here as further arguments."""

    def __init__(self, compiled: _core.Compiled) -> None:
        self.compiled = compiled
        self.after: dict[bool, _Compiled | _Choice] = {}

    def chosen(self, tensors: list[Tensor]) -> _Compiled | None:
        """The form for what holds now, whose arguments the tensors become; None: there is none yet."""
        at: _Compiled | _Choice | None = self
        while isinstance(at, _Choice):
            found = at.compiled.run(tensors)
            tensors += found
            at = at.after.get(bool(found[0]))
        return at

    def count(self) -> int:
        """Return the number of forms behind it."""
        return sum(at.count() if isinstance(at, _Choice) else 1 for at in self.after.values())


def _added(
    at: _Compiled | _Choice | None, steps: list[tuple[_core.Compiled, bool]], last: _Compiled
) -> _Compiled | _Choice | None:
    """Return what is at a place, with a form behind some steps; None if something else is asked there."""
    if not steps:
        return last
    (compiled, answer), *rest = steps
    if at is None:
        at = _Choice(compiled)
    if not isinstance(at, _Choice) or not at.compiled.same_as(compiled):
        return None
    after = _added(at.after.get(answer), rest, last)
    if after is None:
        return None
    at.after[answer] = after
    return at


class CompiledCache:
    """The compiled forms of one function, one for each signature; the latest MOST_FORMS.

    Those that a dispatcher can distinguish are kept by it alone. It has this cache, which does not
    keep it alive.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.entries: dict[Any, _Compiled | _Choice] = {}  # the latest last
        self.epoch: int = -1  # of the entries
        self.warned: bool = False
        self.dispatcher: Callable[[], Any] = lambda: None

    def of(self, dispatcher: _core.Dispatcher) -> Any:
        """The dispatcher, which has this cache from now on."""
        self.dispatcher = weakref.ref(dispatcher)
        dispatcher.cache = self  # type: ignore[attr-defined]
        return dispatcher

    def call(self, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """fn(*args, **kwargs) outside of traces, from the cache where it can be."""
        fn = functools.partial(_without_iterators, self.name, fn)
        tensors: list[Tensor] = []
        objects: list[Any] = []
        structure, key = _core.structure_version(), None
        try:
            key = (
                structure,
                signature(args, tensors, objects),
                signature(kwargs, tensors, objects) if kwargs else None,
            )
        except Unhashable:
            return self._once(
                (structure, None, None), "an argument that may change", fn, args, kwargs
            )
        entry = self.entries.pop(key, None)
        if entry is not None:
            self.entries[key] = entry
        form = entry.chosen(tensors) if isinstance(entry, _Choice) else entry
        if form is None:
            return self._trace(key, objects, fn, args, kwargs)
        if form.compiled is None:
            return self._once(key, form.again, fn, args, kwargs)
        return form.run(tensors)

    def _once(self, key: Any, why: str, fn: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """A call of what is not compiled."""
        begin = time.perf_counter()
        out = traced(lambda: fn(*own(args), **own(kwargs)), (), {}, True)
        for watch in watchers[:]:
            watch(self, key, begin, None, why)
        return out

    def _trace(
        self, key: Any, objects: list[Any], fn: Callable[..., Any], args: Any, kwargs: Any
    ) -> Any:
        def body(trace: _core.Trace) -> tuple[Any, _core.Compiled | None, _core.Trace]:
            def symbol(t: Tensor) -> Tensor:
                return t if t._is_variable else trace.argument(t)

            trace.remember_decisions()
            with prints:
                out = fn(*tree.map_leaves(symbol, args), **tree.map_leaves(symbol, kwargs))
                out = settled(out, True)
            compiled = trace.finish_compiled([*tree.leaves(out), *prints.tensors])
            return out, compiled, trace

        prints = Prints()
        begin = time.perf_counter()
        out, compiled, trace = _core.with_trace(body, key[0])
        prints.finish()
        taken = (
            compiled is not None
            and not (prints.calls or kwargs or trace.steps)
            and (dispatcher := self.dispatcher()) is not None
            and keep(dispatcher, key[0], args, {}, compiled, out)
        )
        again = ""
        if not taken:
            again = self._kept(key, _Compiled(compiled, out, objects, prints), trace)
        for watch in watchers[:]:
            watch(self, key, begin, trace, again)
        if again and not self.warned:
            self.warned = True
            warnings.warn(
                f"{self.name} {again}, so what it does next may depend on it: it is traced again at every "
                "call instead of being compiled once",
                RuntimeWarning,
                stacklevel=4,
            )
        return out

    def _kept(self, key: Any, form: _Compiled, trace: _core.Trace) -> str:
        """Keep a form. Return why it is traced again at every call, if it is."""
        epoch = key[0][0]
        if epoch != self.epoch:  # no form of an earlier one runs again
            self.entries.clear()
            self.epoch = epoch
        entry = _added(self.entries.pop(key, None) if trace.steps else None, trace.steps, form)
        again = ""
        if form.compiled is None:
            again = (
                "asked for a tensor's value, or kept a tensor, while it was traced "
                f"({trace.asked_at or 'unknown line'})"
            )
        elif entry is None:
            again = "asked whether something holds that it did not ask before"
        elif isinstance(entry, _Choice) and entry.count() > MOST_BRANCHES:
            again = f"went more than {MOST_BRANCHES} ways by what it asked of tensors"
        if entry is None or (again and form.compiled is not None):
            entry = form = _Compiled(None, None, form.keep, form.prints)
        form.again = again
        self.entries[key] = entry
        while len(self.entries) > MOST_FORMS:
            self.entries.pop(next(iter(self.entries)), None)
        return again


def _without_iterators(name: str, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """fn's result, without iterators."""
    return _read_out(name, fn(*args, **kwargs))


def _read_out(name: str, out: Any) -> Any:
    """A result with tuples and lists in the place of what can be read only once, as MindSpore has them: it
    would go on when nothing is recorded any more, and later calls would get the same one, used up. Raises
    TypeError for iterators of a program's own."""
    if isinstance(out, Tensor):
        return out
    if isinstance(out, map) and type(out.__reduce__()[1][1]) is type(iter([])):  # of a list
        out = list(out)
    elif isinstance(out, (zip, map, enumerate, range, KeysView, ValuesView)):
        out = tuple(out)
    elif isinstance(out, ItemsView) or (
        isinstance(out, Iterator) and type(out).__module__ == "builtins"
    ):
        out = list(out)
    elif isinstance(out, Iterator):
        bad_type(
            f"{name} returns a {type(out).__name__}, which can be read only once, and after the function has "
            "been compiled; return a list or a tuple of what it gives"
        )
    found = tree.parts(out)
    if found is None:
        return out
    now = [_read_out(name, part) for part in found]
    return out if all(map(operator.is_, found, now)) else tree.rebuilt(out, now)


def keep(
    dispatcher: _core.Dispatcher,
    structure: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    compiled: _core.Compiled,
    out: Any,
) -> bool:
    """Has a dispatcher run a form for such arguments, with results like `out`. False: it cannot tell
    them from others."""
    is_tuple = type(out) is tuple and all(isinstance(t, Tensor) for t in out)
    fill = None
    if not (isinstance(out, Tensor) or is_tuple):
        fill = functools.partial(tree.refill, tree.outline(out))
    return dispatcher._add(structure, args, compiled, fill, is_tuple, kwargs)  # type: ignore[no-any-return]


#: The largest constants of its own that a form may hold that is kept unasked.
_MOST_CAPTURED = 1 << 18


class _NoForm(Exception):
    """Raised for a call that cannot be cached."""


def keep_form(
    forms: Any,
    fn: Callable[..., Any],
    once: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    reads: bool = False,
) -> Any:
    """fn(*args, **kwargs), which only computes, and a form of it for such arguments. reads: it may read and
    assign Parameters.

    Where fn has more effects, or more to depend on, than a form knows, it is what `once` gives, now and
    from now on.
    """
    began: list[bool] = []
    structure = _core.structure_version()
    try:
        out, compiled = _core.with_trace(
            functools.partial(_recorded_form, fn, args, kwargs, reads, began), structure
        )
    except _NoForm:
        out, compiled = once(*args, **kwargs), None
    except Exception:  # of fn's own code: none of it is kept
        if not began:  # what has begun to run does not run again
            once(*args, **kwargs)  # wrong arguments are refused here, in fn's words
        raise
    if compiled is None:
        forms._stop()
    elif compiled.captured_bytes <= _MOST_CAPTURED:
        keep(forms, structure, args, kwargs, compiled, out)
    return out


def _recorded_form(
    fn: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    reads: bool,
    began: list[bool],
    trace: _core.Trace,
) -> tuple[Any, _core.Compiled | None]:
    symbols: list[Tensor] = []

    def symbol(t: Tensor) -> Tensor:
        symbols.append(trace.argument(t))
        return symbols[-1]

    own_args, own_kwargs = tree.map_leaves(symbol, args), tree.map_leaves(symbol, kwargs)
    before = [_core.record(s) for s in symbols]
    out = fn(*own_args, **own_kwargs)
    results = tree.leaves(out)
    single = isinstance(out, Tensor) and not reads
    if (
        (_core.lifted_variables() and not reads)
        or not all(map(_core.same_node, before, symbols))
        or any(_core.same_base(r, s) for r in results for s in symbols if not (single and r is s))
    ):
        raise _NoForm
    del own_args, own_kwargs, before, results, symbols[:]  # what lives on is not repeatable
    out = settled(out, True)
    began.append(True)
    return out, trace.finish_compiled(tree.leaves(out))


def function_name(fn: Any) -> str:
    """A function's name for messages; a name is itself."""
    return fn if isinstance(fn, str) else getattr(fn, "__qualname__", None) or type(fn).__name__


def dispatcher_of(name: str, inside: Any, once: Any, again: Any = None) -> Any:
    """A dispatcher for what is compiled in GRAPH_MODE, called with the function as its first argument: so
    nothing here keeps that alive. again: what keeps a form in PYNATIVE_MODE, if anything does."""

    def first(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        dispatcher = known()  # which is running
        if not hasattr(dispatcher, "cache"):
            CompiledCache(name).of(dispatcher)
        return dispatcher.cache.call(fn, args, kwargs)

    more = {} if again is None else {"again": again}
    made: Any = _core.Dispatcher(MOST_FORMS, inside, once=once, first=first, owned=True, **more)
    known: Callable[[], Any] = weakref.ref(made)
    return made


def _part(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return settled(fn(*args, **kwargs), True)


def _by_value(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return traced(fn, args, kwargs, True)


#: By the owner's id while it lives: equal owners are two.
_caches: dict[int, tuple[weakref.ref[Any], dict[Any, Any]]] = {}


def cache_for(fn: Any, key: Any) -> Any:
    """Return the cached runner of a transform of fn, which is called with the function that records
    it, and the arguments. The results share elements with nothing. `key` says which transform; it
    lives as long as fn."""
    # One of a transform, which may be made anew for each call, is the function's. (functools.wraps of one
    # copies what it says of itself.)
    while (made := getattr(fn, "__dict__", {}).get("_transform")) and made[2] == id(fn):
        fn, key = made[0], (key, made[1])
    owner = getattr(fn, "__self__", fn)
    method = None if owner is fn else getattr(fn, "__func__", getattr(fn, "__name__", None))
    number = id(owner)
    known = _caches.get(number)
    if known is None:
        try:
            gone = weakref.ref(owner, lambda _: _caches.pop(number, None))
        except TypeError:  # no weak references to it
            return dispatcher_of(function_name(fn), _part, _by_value)
        known = _caches[number] = (gone, {})
    of = (key, method)
    found = known[1].get(of)
    if found is None:
        found = known[1][of] = dispatcher_of(function_name(fn), _part, _by_value)
        door.of(found, fn)
    return found


class Numbering:
    """Numbers for hashable values, the same for equal ones: what a Dispatcher can distinguish."""

    def __init__(self) -> None:
        self.numbers: dict[Any, int] = {}
        self.count: int = 0

    def __call__(self, value: Any) -> int:
        number = self.numbers.pop(value, None)
        if number is None:
            number, self.count = self.count, self.count + 1
            if len(self.numbers) >= MOST_FORMS:
                self.numbers.pop(next(iter(self.numbers)))
        self.numbers[value] = number  # the latest last
        return number


def _keyed(function: Callable[..., Any], key: Callable[[], Any]) -> Any:
    """jit of a function whose forms are distinguished by what key() gives, too."""
    numbers = Numbering()
    compiled = jit(functools.wraps(function)(lambda _, *args, **kwargs: function(*args, **kwargs)))

    def call(*args: Any, **kwargs: Any) -> Any:
        return compiled(numbers(key()), *args, **kwargs)

    made: Any = functools.update_wrapper(Made(call), function)
    made._made_of = (jit, (function, key), {}, None)
    return made


#: MindSpore's options of jit, of all its versions, which have no effect.
_OPTIONS = set(
    "fn mode input_signature hash_args jit_config compile_once capture_mode jit_level dynamic fullgraph "
    "backend ge_options obj".split()
)
_STATIC = "; arguments that are not tensors are static as they are"


P = ParamSpec("P")
R = TypeVar("R")


@overload
def jit(
    function: Callable[P, R], key: Callable[[], Any] | None = None, **options: Any
) -> Callable[P, R]: ...
@overload
def jit(
    function: None = None, key: Callable[[], Any] | None = None, **options: Any
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
def jit(function: Any = None, key: Callable[[], Any] | None = None, **options: Any) -> Any:
    """Compiles a function: use it as @jit or as jit(function).

    The function is traced once for each combination of its arguments, and later calls skip Python. What
    counts is the dtype and shape of tensors, which arguments are Parameters, and everything else by value:
    numbers, and what plain objects, containers, functions and methods contain. Iterators and generators of
    random numbers advance at every call. The MOST_FORMS plans that were used last are kept.

    Assignments to parameters, to elements of tensors and to attributes of cells are noticed, and restoring
    a setting, as set_train does, reuses the plan compiled for it. Whatever else the function reads
    (globals, elements of lists, NumPy arrays) keeps the value that it had when the function was traced.

    What `if`, `while`, `and` and bool() ask of tensors is remembered: each way through the function is traced
    once, MOST_BRANCHES of them, and later calls run its parts one after the other and look at the answers
    between. A function that asks for another value of a tensor, as float(loss) does, is traced at every call
    instead, with one warning.

    Containers of tensors (tuples, lists, dicts, dataclasses, subclasses of them) keep their type and
    attributes. Of results, a zip becomes a tuple and a map a list; other iterators, which could be read
    only once, are a TypeError.

    function: a function of tensors and other arguments; left out in @jit(key=...). key: a function without
    arguments that returns something hashable about what the function reads. It is called before each call,
    and the function is traced again when the result changes. options: MindSpore's (mode, jit_config,
    capture_mode and the like), which are accepted and have no effect.
    """
    unknown = sorted(set(options) - _OPTIONS)
    if unknown:
        bad_type(
            f"jit: there is no option {unknown[0]!r}; those of MindSpore are "
            f"{', '.join(sorted(_OPTIONS))}{_STATIC * unknown[0].startswith('static')}"
        )
    if function is None:
        return lambda fn: jit(fn, key, **options)
    if not callable(function):
        bad_type(f"jit: expected a function, got {type(function).__name__}")
    if key is not None:
        if not callable(key):
            called = isinstance(key, _core.Tensor)
            way_out = (
                ": the function's arguments come in a second call, jit(f)(x)" if called else ""
            )
            bad_type(f"jit: key must be a function, got {type(key).__name__}{way_out}")
        return _keyed(function, key)
    cache = CompiledCache(function_name(function))

    def inside(*args: Any, **kwargs: Any) -> Any:
        return settled(_without_iterators(cache.name, function, *own(args), **own(kwargs)), True)

    def first(*args: Any, **kwargs: Any) -> Any:
        return cache.call(function, args, kwargs)

    dispatcher: Any = cache.of(_core.Dispatcher(MOST_FORMS, inside, first=first))
    functools.update_wrapper(dispatcher, function)
    dispatcher._made_of = (jit, (function,), {}, None)
    door.of(dispatcher, function)
    return dispatcher


def _pickled(compiled: Any) -> str | tuple[Any, ...]:
    if not hasattr(compiled, "_made_of"):
        raise TypeError("a compiled form cannot be pickled, only the function that jit returned")
    return Remade.__reduce__(compiled)


def _deep_copied(compiled: Any, memo: dict[int, Any]) -> Any:
    return Remade.__deepcopy__(compiled, memo) if hasattr(compiled, "_made_of") else compiled


copyreg.pickle(_core.Dispatcher, _pickled)
_core.Dispatcher.__deepcopy__ = _deep_copied  # type: ignore[attr-defined]
