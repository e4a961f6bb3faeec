"""Signatures as text, and how gradcell's differ from MindSpore's in golden/signatures.txt."""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import re
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).parents[1] / "golden" / "signatures.txt"
#: Attributes that subclasses of MindSpore's public classes cannot assign: 'attributes: classes'.
FIXED = GOLDEN.with_name("fixed_attributes.txt")
#: Those that are not assigned here for a reason: MindSpore refuses a tensor's device too, and takes a list
#: for its shape without a look at how many elements there are.
OF_ELEMENTS = {f"mindspore.{c}.{n}" for c in ("Parameter", "Tensor") for n in ("device", "shape")}

_P = inspect.Parameter


def default_of(value: Any) -> str:
    """A default as text; `...` for what is no literal."""
    if value is None or type(value) in (bool, int, float, str):
        return (
            repr(value)
            if value == value and value not in (float("inf"), -float("inf"))
            else f"float('{value}')"
        )
    if isinstance(value, (tuple, list)):
        inside = ", ".join(map(default_of, value))
        return f"[{inside}]" if isinstance(value, list) else f"({inside}{',' * (len(value) == 1)})"
    if re.fullmatch(r"-?[0-9.]+", repr(value)):
        return repr(value)
    shown = re.fullmatch(r"(?:mindspore|gradcell)\.(\w+)", repr(value))
    return shown[1] if shown else "..."


def text(signature: inspect.Signature) -> str:
    """A signature without annotations."""
    plain = [
        p.replace(
            annotation=p.empty,
            default=p.default if p.default is p.empty else _Shown(default_of(p.default)),
        )
        for p in signature.parameters.values()
    ]
    return str(signature.replace(parameters=plain, return_annotation=signature.empty))


class _Shown:
    """A default that prints as the given text."""

    def __init__(self, shown: str) -> None:
        self.shown = shown

    def __repr__(self) -> str:
        return self.shown


def bare(signature: inspect.Signature) -> inspect.Signature:
    """Without the first parameter, self."""
    return signature.replace(parameters=list(signature.parameters.values())[1:])


def fixed(cls: type) -> list[str]:
    """The public attributes that an object of the class cannot be assigned: properties without a setter."""
    names = sorted({n for base in cls.__mro__ for n in vars(base) if not n.startswith("_")})
    found = {n: inspect.getattr_static(cls, n) for n in names}
    return [n for n, value in found.items() if isinstance(value, property) and value.fset is None]


def fixed_here() -> list[str]:
    """'class.attribute' for each that subclasses may assign in MindSpore and, without a reason, not here."""
    found = []
    for line in FIXED.read_text().splitlines():
        there, _, classes = line.partition(": ")
        for path in classes.split():
            space, _, name = path.rpartition(".")
            here = getattr(owner(space), name, None)
            if isinstance(here, type):
                found += [f"{path}.{n}" for n in fixed(here) if n not in there.split()]
    return [path for path in found if path not in OF_ELEMENTS]


def stored() -> list[str]:
    """The lines of the golden file."""
    return GOLDEN.read_text().splitlines()


def read(line: str) -> tuple[str, list[tuple[str, str, str]]]:
    """(the name, its parameters: kind, name and default, '' for none)."""
    name, _, rest = line.partition("(")
    given = ast.parse(f"def f({rest}: pass").body[0].args  # type: ignore[attr-defined]
    found = []
    plain = [*given.posonlyargs, *given.args]
    defaults = [None] * (len(plain) - len(given.defaults)) + given.defaults
    found += [
        ("", a.arg, ast.unparse(d) if d else "") for a, d in zip(plain, defaults, strict=True)
    ]
    if given.vararg:
        found.append(("*", given.vararg.arg, ""))
    for a, d in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        found.append(("key", a.arg, ast.unparse(d) if d else ""))
    if given.kwarg:
        found.append(("**", given.kwarg.arg, ""))
    return name, found


def owner(space: str) -> Any:
    """The module or class of a namespace; None if gradcell has none such."""
    if space == "mindspore":
        return importlib.import_module("gradcell")
    place, _, name = f"gradcell.{space}".rpartition(".")
    try:
        return getattr(importlib.import_module(place), name, None) or importlib.import_module(
            f"gradcell.{space}"
        )
    except ImportError:
        return None


@functools.cache
def ours(space: str, name: str) -> tuple[inspect.Signature, dict[str, str]] | None:
    """How gradcell's name is called, and other spellings of its keywords; None if that cannot be told."""
    naming = importlib.import_module("gradcell.base.naming")
    where = owner(space)
    value = getattr(where, name, None)
    if value is None or not callable(value):
        return None
    if isinstance(where, type) and hasattr(where, "add_prim_attr"):
        return inputs_of(value), {}
    callee = getattr(value, "_callee", lambda: value)()
    try:
        signature = inspect.signature(callee)
    except (TypeError, ValueError):
        return None
    if isinstance(where, type) and not isinstance(
        inspect.getattr_static(where, name), (classmethod, staticmethod)
    ):
        signature = bare(signature)
    others = naming.other_names(value) if name == "construct" else {}
    return signature, getattr(value, "_spellings", others)


def inputs_of(call: Any) -> inspect.Signature:
    """The inputs of a primitive, by MindSpore's names, with the defaults of its function."""
    if not hasattr(call, "inputs"):
        return bare(inspect.signature(call))
    return importlib.import_module("gradcell.ops.primitives.rows").signature_of(call)  # type: ignore[no-any-return]


def _same(a: str, b: str) -> bool:
    """Whether two defaults are equal: as text or as values, 0 and 0.0."""
    try:
        return a == b or ast.literal_eval(a) == ast.literal_eval(b)
    except ValueError:
        return False


def differences_of(line: str) -> list[str]:
    """How the call that a line of the golden file names differs from gradcell's."""
    full, theirs = read(line)
    space, _, name = full.rpartition(".")
    found_here = ours(space, name)
    if found_here is None:
        return []
    signature, spellings = found_here
    value_names = {p.name: p for p in signature.parameters.values()}
    plain = [
        p for p in value_names.values() if p.kind in (_P.POSITIONAL_ONLY, _P.POSITIONAL_OR_KEYWORD)
    ]
    star = any(p.kind is _P.VAR_POSITIONAL for p in value_names.values())
    rest = any(p.kind is _P.VAR_KEYWORD for p in value_names.values())
    found, covered = [], set[str]()
    for i, (kind, p, default) in enumerate(theirs):
        if kind in ("*", "**"):
            continue
        p = p if p in value_names else spellings.get(p, p)
        covered.add(p)
        here = value_names.get(p)
        if here is None or here.kind is _P.POSITIONAL_ONLY:
            if kind == "" and rest and not star and not any(k == "**" for k, _, _ in theirs):
                found.append(f"{p} is not {i}")
            if not rest:
                at = plain[i].name if kind == "" and i < len(plain) else ""
                found.append(
                    f"no {p}" + (f" ({at})" if at and at not in [q[1] for q in theirs] else "")
                )
            continue
        if kind == "" and not star:
            if i >= len(plain) or plain[i].name != p:
                found.append(f"{p} is not {i}")
        if default and here.default is _P.empty and here.kind is not _P.VAR_POSITIONAL:
            found.append(f"{p} has no default")
        elif default and not _same(default_of(here.default), default):
            found.append(f"{p}={default_of(here.default)}, not {default}")
    needed = [
        p.name
        for p in value_names.values()
        if p.default is p.empty and p.kind not in (_P.VAR_POSITIONAL, _P.VAR_KEYWORD)
    ]
    if not any(k in ("*", "**") for k, _, _ in theirs):
        found += [f"{p} is needed" for p in needed if p not in covered]
    return found


def compared(line: str) -> bool:
    """Whether gradcell has the name, and a signature to compare."""
    space, _, name = read(line)[0].rpartition(".")
    return ours(space, name) is not None


def differences() -> dict[str, list[str]]:
    return {line: what for line in stored() if (what := differences_of(line))}


#: Why differences stay: {reason: what of `name(...): difference` it explains}.
KEPT = {
    "The default dtype, set_default_dtype's": r"dtype=None, not float32$",
    "None stands for the layer's only format": r"^nn\.Conv[23]d\b.*: data_format=None",
    "One group of processes, under the name of Ascend's or of CPUs'": r"group='mccl_world_group'",
    "Both are taken": r": pad_mode='valid', not 'VALID'$",
    "Told apart by what is given": r"^mint\.(max|min)\(|^Tensor\.(max|min|sum|flatten|scatter_)\(",
    "MindSpore has one on a CPU only for ddof=0": r"^Tensor\.(std|var).*: ddof=0, not 1$",
    "None and () stand for all dimensions": r": axis=\(\), not None$",
    "None stands for int32": r"count_nonzero.*: dtype=int32, not None$",
    "None stands for the last dimension": r"topk.*: dim=None, not -1$",
    "The name of the class": r": name='', not '\w+'$",
    "It needs one": r"^mindspore\.ParameterTuple|^Tensor\.from_numpy|set_multiprocessing_start_method",
    "It does nothing": r"^dataset\.DatasetCache",
    "None stands for the order that a seed gives": r"^dataset\.RandomSampler.*: shuffle=None",
    "NumPy's dtypes": r"^dataset\..*: (d|data_)type=\.\.\., not \w+$",
    "Tokens come without their places, and without Unicode's normal forms": r"^dataset\.text\.\w+Tokenizer",
}  # fmt: skip


def reason(call: str, difference: str) -> str | None:
    """Why a difference stays."""
    said = f"{call}: {difference}"
    return next((why for why, pattern in KEPT.items() if re.search(pattern, said)), None)
