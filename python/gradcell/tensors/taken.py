"""Numbers that are taken from tensors while those are differentiated: float(x), x.asnumpy(), math.sin(x).

No derivative goes through them, so what is computed with them is wrong without a word, whereas what is
printed, kept or decided by them is right. The program's text says which it is: `notice` follows what becomes
of the number in the function that took it, and warns, once for each place, where that is known to be lost.
set_context(locate_constants=True) also names the places of which it is not known.

An array that another library makes of a tensor by itself, as np.asarray(x) or scipy.special.erf(x) do, was
not asked for as numbers: `array_of` allows it only where it is known to be said, kept or decided by.
"""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import linecache
import os
import sys
import types
import warnings
from typing import Any

import numpy as np

from gradcell import _core, context
from gradcell._core import Tensor
from gradcell.base import CellBase

#: What becomes of a number: it is said or decided by, nobody knows, or it is computed with.
_USED, _UNKNOWN, _LOST = range(3)

#: Functions that only say, count or decide; those that make numbers of numbers; methods that keep.
_SAYING = {
    print, str, repr, format, isinstance, issubclass, type, id, hash, bool, len, range, enumerate,
    callable, input, setattr,
}  # fmt: skip
_OF_NUMBERS = {
    float, int, complex, round, abs, min, max, sum, pow, divmod, tuple, list, dict, set, zip, sorted,
}  # fmt: skip
_MODULES_OF_NUMBERS = set("math cmath numpy statistics decimal fractions scipy".split())
_MODULES_THAT_SAY = set(
    "logging warnings time sys json csv io tqdm wandb matplotlib unittest pytest".split()
)
_KEEPING = set(
    "append extend insert add write writerow info debug warning warn error critical exception log "
    "update record put set_description set_postfix add_scalar add_scalars add_value format join "
    "setdefault emit report send plot scatter print isfinite isnan all any is_integer".split()
)
#: What gives the number itself, so that it was asked for; all else converts by the way.
_TAKING = {
    float, int, complex, np.from_dlpack, np.array, np.asarray, np.asanyarray, np.ascontiguousarray,
    np.float32, np.float64,
}  # fmt: skip

#: By the code and the instruction that took a number: what becomes of it (_USED where it has been said),
#: and the text that took it.
_places: dict[tuple[types.CodeType, int], tuple[int, str]] = {}
_MOST_PLACES = 4096

#: What takes the numbers for the user.
_PLUMBING = {
    "gradcell.tensors.tensor", "gradcell.tensors.numpy_protocol", "gradcell.base.tree",
    "gradcell.ops.decorators", "gradcell.ops.tensor_methods",
}  # fmt: skip


@functools.cache
def _libraries() -> tuple[str, ...]:
    """Return the folders of other libraries, which take arrays for the user."""
    import sysconfig  # reads a large file

    return tuple({sysconfig.get_path(name) + os.sep for name in ("stdlib", "purelib", "platlib")})


def notice(x: Tensor, how: str) -> None:
    """Says where numbers are taken from x, if it is being differentiated and they are lost there."""
    if not (_core.in_trace() and (x._traced or x._is_variable)):
        return
    frame = _taking_frame()
    if frame is None:
        return
    place, fate, text = _fate_at(frame)
    if fate == _USED or (fate == _UNKNOWN and not context.get_context("locate_constants")):
        return
    if not _is_differentiated(x):
        return
    _places[place] = (_USED, text)
    warnings.warn_explicit(
        f"{text or how} takes numbers out of a tensor that is being differentiated: no derivative goes "
        "through them. Compute with gradcell.ops, or take them from ops.stop_gradient(x) where constants "
        f"are meant ({_line(frame)})",
        RuntimeWarning,
        frame.f_code.co_filename,
        frame.f_lineno,
    )


def array_of(x: Tensor, how: str) -> None:
    """Raises TypeError, with the user's line, where another library takes x as an array, if x is being
    differentiated and the array is not known to be only printed, kept or decided by."""
    if not (_core.in_trace() and (x._traced or x._is_variable)):
        return
    frame = _taking_frame()
    libraries = []
    while frame is not None and frame.f_code.co_filename.startswith(_libraries()):
        libraries.append(frame.f_globals.get("__name__", ""))
        frame = frame.f_back
    if frame is None or any(
        name.startswith("numpy.testing") or name.partition(".")[0] in _MODULES_THAT_SAY
        for name in libraries
    ):
        return
    _, fate, text = _fate_at(frame)
    if fate != _USED and _is_differentiated(x):
        raise TypeError(
            f"{text or how} cannot be differentiated: it makes an array of a tensor, through which no "
            "derivative goes. Compute with gradcell.ops, or take the array of ops.stop_gradient(x) where a "
            f"constant is meant ({_line(frame)})"
        )


def _taking_frame() -> types.FrameType | None:
    """Return the frame of the code that took a number; None if that is the package itself."""
    frame: types.FrameType | None = sys._getframe(2)
    while frame is not None and (module := frame.f_globals.get("__name__", "")) in _PLUMBING:
        frame = frame.f_back
    return None if frame is None or module.partition(".")[0] == "gradcell" else frame


def _fate_at(frame: types.FrameType) -> tuple[tuple[types.CodeType, int], int, str]:
    """(The place, what becomes of what is taken there, the text that takes it)."""
    place = (frame.f_code, frame.f_lasti)
    if place not in _places:
        if len(_places) >= _MOST_PLACES:
            _places.clear()
        _places[place] = _Reading(frame).fate()
    return place, *_places[place]


def _is_differentiated(x: Tensor) -> bool:
    if x._is_variable and x._variable_id() not in _core.lifted_variables():
        return False
    return _core.differentiated([x])


def _line(frame: types.FrameType) -> str:
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


@functools.lru_cache(maxsize=64)
def _parsed(filename: str, lines: tuple[str, ...]) -> dict[ast.AST, ast.AST]:
    """Each node's parent in a file; nothing for what cannot be read."""
    try:
        tree = ast.parse("".join(lines), filename)
    except (SyntaxError, ValueError):
        return {}
    return {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}


class _Reading:
    """The text of the function that took a number, at the instruction that did."""

    def __init__(self, frame: types.FrameType) -> None:
        self.frame = frame
        name = frame.f_code.co_filename
        self.parents = _parsed(name, tuple(linecache.getlines(name, frame.f_globals)))
        self.followed: set[str] = set()
        self.locals = [frame.f_locals]
        back: types.FrameType | None = frame
        while back is not None and back.f_code.co_name in _COMPREHENSIONS:
            back = back.f_back
            self.locals += [back.f_locals] if back is not None else []

    def fate(self) -> tuple[int, str]:
        """(What becomes of the number, the text that took it)."""
        takers = self._takers()
        text = ast.unparse(takers[0]) if len(takers) == 1 else ""
        fate = min(map(self._of_taking, takers), default=_UNKNOWN)
        return fate, text if len(text) < 60 and "\n" not in text else ""

    def _takers(self) -> list[Any]:
        """The expressions that may have asked for the number: one, if Python knows the columns."""
        code = self.frame.f_code
        found = [n for n in self.parents if isinstance(n, (ast.Call, ast.BinOp, ast.Subscript))]
        if not hasattr(code, "co_positions"):  # before Python 3.11
            return [n for n in found if n.lineno == self.frame.f_lineno and isinstance(n, ast.Call)]
        line, end, start, stop = list(code.co_positions())[self.frame.f_lasti // 2]
        ending = [n for n in found if (n.end_lineno, n.end_col_offset) == (end, stop)]
        exact = [n for n in ending if (n.lineno, n.col_offset) == (line, start)]
        return [
            *(exact or (n for n in ending if isinstance(n, ast.Call)))
        ]  # (a chain of several lines)

    def _of_taking(self, node: ast.expr) -> int:
        if isinstance(node, ast.Subscript):
            return _USED  # an index
        fate = self._of_value(node)
        if fate != _UNKNOWN or not isinstance(node, ast.Call):
            return fate
        called = self._value(node.func)
        asked_for = isinstance(node.func, ast.Attribute) and self._is_tensor(node.func.value)
        if _hashable(called) and called in _SAYING:
            return _USED
        if called is None or asked_for or (_hashable(called) and called in _TAKING):
            return _UNKNOWN
        # A conversion by the way, as in math.sin(x): nobody prints or keeps that on purpose.
        return _LOST if isinstance(called, (types.BuiltinFunctionType, type)) else _UNKNOWN

    def _of_value(self, node: ast.AST) -> int:
        """Return what becomes of an expression's value."""
        parent = self.parents.get(node)
        if isinstance(parent, (ast.FormattedValue, ast.Compare, ast.BoolOp, ast.Slice, ast.Expr)):
            return _USED
        if isinstance(parent, (ast.If, ast.While, ast.Assert, ast.Raise)):
            return _USED
        if isinstance(parent, ast.IfExp) and parent.test is node:
            return _USED
        if isinstance(parent, ast.UnaryOp):
            return _USED if isinstance(parent.op, ast.Not) else self._of_value(parent)
        if isinstance(parent, ast.Subscript):
            return _USED if parent.slice is node else self._of_value(parent)
        if isinstance(parent, ast.BinOp):
            return self._of_operand(parent, parent.right if parent.left is node else parent.left)
        if isinstance(parent, (ast.Call, ast.keyword)):
            return self._of_argument(node, parent)
        if isinstance(parent, ast.Attribute):
            return self._of_value(parent)
        if isinstance(parent, _PASSING_ON):
            return self._of_value(parent)
        if isinstance(parent, (ast.Assign, ast.AnnAssign, ast.NamedExpr, ast.AugAssign)):
            return self._of_assigned(parent)
        return _UNKNOWN

    def _of_operand(self, sum_: ast.BinOp, other: ast.expr) -> int:
        if isinstance(sum_.op, ast.Mod) and (
            isinstance(sum_.left, ast.JoinedStr)
            or (isinstance(sum_.left, ast.Constant) and isinstance(sum_.left.value, str))
        ):
            return _USED
        return _LOST if self._is_tensor(other) else self._of_value(sum_)

    def _of_argument(self, node: ast.AST, parent: ast.AST) -> int:
        call = parent if isinstance(parent, ast.Call) else self.parents.get(parent)
        if not isinstance(call, ast.Call):  # a keyword of a class
            return _UNKNOWN
        if call.func is node:
            return self._of_value(call)
        called = self._value(call.func)
        if isinstance(call.func, ast.Name) and call.func.id == "print":
            return _USED  # (while functions are compiled another stands for it)
        if self._gives_tensor(call):
            return _LOST
        if isinstance(call.func, ast.Attribute) and call.func.attr in _KEEPING:
            return _USED
        module = (getattr(called, "__module__", None) or "").partition(".")[0]
        if module in _MODULES_THAT_SAY or (_hashable(called) and called in _SAYING):
            return _USED
        if isinstance(called, type) and issubclass(called, BaseException):
            return _USED
        numbers = module in _MODULES_OF_NUMBERS or (_hashable(called) and called in _OF_NUMBERS)
        return self._of_value(call) if numbers else _UNKNOWN

    def _of_assigned(self, node: ast.AST) -> int:
        if isinstance(node, ast.NamedExpr) and (fate := self._of_value(node)) != _USED:
            return fate
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]  # type: ignore[attr-defined]
        if isinstance(node, ast.AugAssign) and self._is_tensor(node.target):
            return _LOST
        return max(self._of_target(t) for t in targets)

    def _of_target(self, target: ast.expr) -> int:
        if isinstance(target, (ast.Attribute, ast.Subscript)):
            return _LOST if self._is_tensor(target.value) else _USED  # kept somewhere
        if not isinstance(target, ast.Name) or target.id in self.followed:
            return _UNKNOWN
        self.followed.add(target.id)
        names = [n for n in ast.walk(self._function_of(target)) if isinstance(n, ast.Name)]
        same = [n for n in names if n.id == target.id]
        if sum(isinstance(n.ctx, ast.Store) for n in same) > 1:
            return _UNKNOWN  # it may be another value
        return max((self._of_value(n) for n in same if isinstance(n.ctx, ast.Load)), default=_USED)

    def _function_of(self, node: ast.AST) -> ast.AST:
        while node in self.parents and not isinstance(node, (ast.FunctionDef, ast.Lambda)):
            node = self.parents[node]
        return node

    def _is_tensor(self, node: ast.AST) -> bool:
        """Return whether an expression is known to be a tensor."""
        if isinstance(node, ast.BinOp):
            return self._is_tensor(node.left) or self._is_tensor(node.right)
        if isinstance(node, ast.UnaryOp):
            return self._is_tensor(node.operand)
        if isinstance(node, ast.Subscript):
            return self._is_tensor(node.value)
        if isinstance(node, ast.Call):
            return self._gives_tensor(node)
        found = self._value(node)
        if found is None and isinstance(node, ast.Name):
            return self._will_be_tensor(node)
        return isinstance(found, Tensor)

    def _will_be_tensor(self, name: ast.Name) -> bool:
        """Return whether a name that has no value yet is going to be one of a tensor."""
        key = f"={name.id}"
        if key in self.followed:
            return False
        self.followed.add(key)
        given = [
            n.value
            for n in ast.walk(self._function_of(name))
            if isinstance(n, ast.Assign)
            and any(isinstance(t, ast.Name) and t.id == name.id for t in n.targets)
        ]
        return bool(given) and all(map(self._is_tensor, given))

    def _gives_tensor(self, call: ast.Call) -> bool:
        function = call.func
        if isinstance(function, ast.Attribute) and self._is_tensor(function.value):
            return function.attr not in _TAKERS
        called = self._value(function)
        module = (getattr(called, "__module__", None) or type(called).__module__).partition(".")[0]
        return isinstance(called, CellBase) or (callable(called) and module == "gradcell")

    def _value(self, node: ast.AST) -> Any:
        """Return the present value of a name or an attribute; None if it is not known."""
        if isinstance(node, ast.Name):
            for names in (*self.locals, self.frame.f_globals, vars(builtins)):
                if node.id in names:
                    return names[node.id]
        if isinstance(node, ast.Attribute) and (owner := self._value(node.value)) is not None:
            if isinstance(owner, (types.ModuleType, CellBase)):
                return getattr(owner, node.attr, None)
            return inspect.getattr_static(owner, node.attr, None)
        return None


_COMPREHENSIONS = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")
_PASSING_ON = (
    ast.List, ast.Tuple, ast.Set, ast.Dict, ast.Starred, ast.IfExp, ast.ListComp, ast.SetComp,
    ast.GeneratorExp,
)  # fmt: skip


def _hashable(value: Any) -> bool:
    return value is not None and type(value).__hash__ is not None and not isinstance(value, Tensor)


#: Tensor's methods that take numbers.
_TAKERS = set("item asnumpy numpy tolist get_bytes tobytes __array__ __float__ __int__".split())
