"""Writes the types of the compiled core, two files of python/gradcell.

    python tools/make_stubs.py                  writes _core.pyi, from the built core
    python tools/make_stubs.py --rows OPS_DEF   writes _op_rows.pyi, from the op table
    python tools/make_stubs.py --check          exits 1 if they do not have the names of the core

_core.pyi is kept in git. It changes when a binding does: pybind11 puts each function's signature into
its docstring, and methods that Python adds to Tensor (ops/decorators.py) bring their
own. What a row of the op table adds, a function in `ops` and a method of Tensor, is the same text for
every row of a kind, so it is not kept: CMake writes _op_rows.pyi before it builds, by reading the
table, which needs neither NumPy nor the core; the classes of _core.pyi inherit from those there, and
ops/__init__.pyi imports the functions and primitives that are no more than a row. It lies beside the
sources, where mypy and editors find it, and is part of the wheel: `pip install .` or a build of any
preset brings the types of a new row.
"""

from __future__ import annotations

import argparse
import inspect
import re
import sys
import textwrap
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

PACKAGE = Path(__file__).parents[1] / "python" / "gradcell"
TARGET, ROWS_TARGET = PACKAGE / "_core.pyi", PACKAGE / "_op_rows.pyi"
HEAD = '''"""Types of the compiled core. Written by tools/make_stubs.py; do not edit."""

from builtins import bool as _bool, float as _float, int as _int
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from gradcell._op_rows import OpRows, TensorRows
from gradcell.base.types import {}

_Array = np.ndarray[Any, Any]

'''
ROWS_HEAD = '''"""Types of the op table's rows. Written by tools/make_stubs.py in each build."""

from typing import Any

from gradcell._core import Tensor
from gradcell.base.types import Array, TensorLike
from gradcell.ops.primitive import Primitive

'''
#: The kinds of rows and the operands of their functions; a method's first is the tensor.
ROW_OPERANDS = {
    "UNARY": ("input",),
    "PREDICATE": ("input",),
    "BINARY": ("input", "other"),
    "COMPARE": ("input", "other"),
    "TERNARY": ("condition", "input", "other"),
}
#: The operands that have to be tensors or arrays: the only one, and the condition.
TENSORS = {"UNARY": "input", "PREDICATE": "input", "TERNARY": "condition"}
#: Structured ops without a function of their own in Python.
UNBOUND = {"leaf", "identity", "full", "call_output", "value_of", "after"}
STATIC = "@staticmethod\n"
#: The types of properties of Tensor that are made without annotations.
PROPERTIES = {
    "dtype": "DType",
    **dict.fromkeys(("shape", "strides"), "tuple[_int, ...]"),
    **dict.fromkeys(("itemsize", "nbytes"), "_int"),
    **dict.fromkeys(("T", "mT", "H", "mH", "real", "imag"), "Tensor"),
}
#: The results of functions that pybind11 says give an object.
RESULTS = {
    **dict.fromkeys(("dtype_named", "default_dtype", "promote", "promote_number"), "DType"),
    **{"__float__": "_float", "__int__": "_int", "__complex__": "complex"},
    "from_numpy": "Tensor",
}
#: The operators of Tensor that give a tensor, or NotImplemented, which leaves the other operand's turn.
OPERATORS = {
    f"__{side}{name}__"
    for name in "add sub mul truediv floordiv mod pow and or xor matmul lt le gt ge".split()
    for side in ("", "r")
}
#: What annotations of Python functions may say and be understood in the stub.
KNOWN = re.compile(
    r"^(Any|None|int|float|str|bool|Tensor|Array|TensorLike|Axis|Shape|DTypeLike|tuple|list|dict|Iterator|np|"
    r"ndarray|dtype|\W|\.)+$"
)


def plain(text: str) -> str:
    """pybind11's spelling of types in the stub's."""
    array = r"(typing\.Annotated\[numpy\.typing\.ArrayLike, |numpy\.typing\.NDArray\[)[^\]]*\]"
    text = re.sub(array, "numpy.ndarray", text)
    text = text.replace("typing.SupportsInt | typing.SupportsIndex", "int")
    text = text.replace("typing.SupportsFloat | typing.SupportsIndex", "float")
    text = (
        text.replace("gradcell::Tensor", "Tensor")
        .replace("gradcell._core.", "")
        .replace("gradcell.", "")
    )
    text = text.replace("collections.abc.", "").replace("typing.", "").replace("numpy.", "np.")
    text = re.sub(r"\b(object|handle)\b", "Any", text)
    text = re.sub(r"<[^>]*>", "...", text)
    text = re.sub(
        r"\b(list|tuple|dict)\b(?!\[)",
        lambda m: {"dict": "dict[str, Any]"}.get(m[0], f"{m[0]}[Any{', ...' * (m[0] == 'tuple')}]"),
        text,
    )
    text = re.sub(r"\bCallable\b(?!\[)", "Callable[..., Any]", text)
    # Tensor has methods and the module has dtypes of these names.
    text = re.sub(r"\b(bool|int|float)\b", r"_\1", text)
    return text.replace("np.ndarray", "_Array")


def from_docstring(name: str, member: Any, static: bool = False) -> str:
    """The stub of a pybind11 function, which `member` may wrap."""
    text = (member.__doc__ or "").strip()
    return from_signature(name, text.split("\n")[0], static)


def from_signature(name: str, signature: str, static: bool) -> str:
    found = re.fullmatch(rf"{re.escape(name)}\((.*)\) -> (.*)", signature)
    if found is None and name == "__init__":
        return "def __init__(self, *args: Any, **kwargs: Any) -> None: ..."
    if found is None:
        return f"def {name}(*args: Any, **kwargs: Any) -> {RESULTS.get(name, 'Any')}: ..."
    arguments = re.sub(r"^self: [\w.:]+", "self", found[1])
    if name in OPERATORS:
        return f"def {name}({plain(arguments)}) -> Tensor: ..."
    if name in ("__eq__", "__ne__"):  # any object may stand on the other side
        result = "_bool" if "bool" in found[2] else "Tensor"
        override = "" if result != "Tensor" else "  # type: ignore[override]"
        return (
            f"def {name}(self, other: Any) -> {result}: ...{override}"
            if override
            else (f"def {name}(self, other: object) -> {result}: ...")
        )
    result = RESULTS.get(name) or plain(found[2])
    return f"{STATIC if static else ''}def {name}({plain(arguments)}) -> {result}: ..."


def annotation(value: Any) -> str:
    if value is inspect.Signature.empty:
        return "Any"
    text = value if isinstance(value, str) else getattr(value, "__name__", "Any")
    return plain(text.replace("_core.", "")) if KNOWN.match(text) else "Any"


def from_python(name: str, function: FunctionType) -> str:
    # A method that hands on to a function has that function's arguments and result.
    # {another: the argument's name}
    spellings: dict[str, str] = getattr(function, "_spellings", {})
    function = function._callee() if hasattr(function, "_callee") else function
    parts, star, optional = [], False, False
    for i, p in enumerate(inspect.signature(function).parameters.values()):
        mark = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        star |= mark == "*"
        if p.kind is p.KEYWORD_ONLY and not star:
            parts.append("*")
            star = True
        if i == 0 and not mark:  # a method's own tensor
            parts.append("self")
            continue
        positional = p.kind is p.POSITIONAL_OR_KEYWORD
        optional |= positional and (p.default is not p.empty or p.name in spellings.values())
        default = " = ..." if p.default is not p.empty or (positional and optional) else ""
        parts.append(f"{mark}{p.name}: {annotation(p.annotation)}{default}")
    parts += ["*"] * (bool(spellings) and not star)
    parts += [f"{other}: Any = ..." for other in spellings]
    returns = annotation(inspect.signature(function).return_annotation)
    returns = RESULTS.get(name, returns) if returns == "Any" else returns
    return f"def {name}({', '.join(parts)}) -> {returns}: ..."


def member(name: str, value: Any) -> str:
    if isinstance(value, property):
        read = value.fget
        result = "Any"
        if isinstance(read, FunctionType):
            result = annotation(inspect.signature(read).return_annotation)
        elif read is not None and "->" in (read.__doc__ or ""):
            result = plain(read.__doc__.strip().split("-> ")[-1].split("\n")[0])
        result = result if "np.dtype" in result else PROPERTIES.get(name, result)
        return f"@property\ndef {name}(self) -> {result}: ..."
    if isinstance(value, staticmethod):
        return f"{STATIC}def {name}(*args: Any, **kwargs: Any) -> {RESULTS.get(name, 'Any')}: ..."
    wrapped = inspect.unwrap(value) if callable(value) else value
    if hasattr(value, "_callee") or isinstance(wrapped, FunctionType):
        return from_python(name, value)
    if re.fullmatch(r"__i(\w+)__", name) and f"__{name[3:]}" in OPERATORS:
        return f"def {name}(self, other: Any) -> Tensor: ..."
    if callable(value):
        return from_docstring(name, value)
    return f"{name}: Any"


def lines(text: str, indent: str) -> list[str]:
    return [indent + line for line in text.split("\n")]


def rows_stub(table: str) -> str:
    """_op_rows.pyi for the text of the op table."""
    rows = re.findall(rf"^({'|'.join(ROW_OPERANDS)})\((\w+), (\w+),", table, re.M)
    functions, methods, public = ["class OpRows:"], ["class TensorRows:"], []
    for kind, primitive, name in rows:
        operands = [
            f"{operand}: {'Array' if operand == TENSORS.get(kind) else 'TensorLike'}"
            for operand in ROW_OPERANDS[kind]
        ]
        of_ops = f"({', '.join(operands)}) -> Tensor: ..."
        of_tensor = f"({', '.join(['self', *operands[1:]])}) -> Tensor: ..."
        called = f"({', '.join(['self', *operands])}) -> Tensor: ..."
        functions += lines(f"{STATIC}def {name}{of_ops}", "    ")
        methods += lines(f"def {name}{of_tensor}", "    ")
        public += [
            f"def {name}{of_ops}",
            f"class {primitive}(Primitive):",
            f"    def __call__{called}",
        ]
    for name in re.findall(r"^STRUCTURED\(\w+, (\w+)\)", table, re.M):
        if name not in UNBOUND:
            functions += lines(
                f"{STATIC}def {name}(*args: Any, **kwargs: Any) -> Tensor: ...", "    "
            )
    return ROWS_HEAD + "\n".join([*functions, "", *methods, "", *public]) + "\n"


def row_functions() -> set[str]:
    """The functions of the core's elementwise rows."""
    from gradcell import _core

    return {row["function"] for row in _core.op_table() if row["kind"] != "structured"}


def structured_functions() -> set[str]:
    """The functions that are made of the specs of structured ops."""
    from gradcell import _core

    structured = {row["function"] for row in _core.op_table() if row["kind"] == "structured"}
    return structured - UNBOUND


def takes_operands(method: Any) -> bool:
    """Whether a method of a row's name is the row's, not a form of it with more arguments."""
    if not hasattr(method, "__wrapped__"):
        return True
    return tuple(inspect.signature(method).parameters) in ROW_OPERANDS.values()


def class_stub(cls: type) -> list[str]:
    base = "TensorRows" if cls.__name__ == "Tensor" else cls.__mro__[1].__name__
    out = [
        f"class {cls.__name__}({base}):"
        if base not in ("object", "pybind11_object")
        else f"class {cls.__name__}:"
    ]
    rows = row_functions() if cls.__name__ == "Tensor" else set()
    skipped = {
        "__module__",
        "__doc__",
        "__dict__",
        "__new__",
        "_pybind11_conduit_v1_",
        "__weakref__",
        "__reduce__",
        "__vectorcalloffset__",
        "__hash__",
        "__reduce_ex__",
        "__array_ufunc__",
        "__array_priority__",
    }
    if "__new__" in vars(cls) and "__init__" not in vars(cls):
        out += lines(from_docstring("__init__", None), "    ")
    for name, value in vars(cls).items():
        if not hasattr(cls, name):  # a signpost, where nothing is
            continue
        if name not in skipped and not (name in rows and takes_operands(value)):
            out += lines(member(name, value), "    ")
    return out if len(out) > 1 else [out[0] + " ..."]


def module_stub(title: str, module: ModuleType) -> list[str]:
    """As a class of static methods: one file holds everything."""
    rows = row_functions() | structured_functions() if title == "ops" else set()
    out = ["class ops(OpRows):" if title == "ops" else f"class {title}:"]
    for name, value in vars(module).items():
        if isinstance(value, BuiltinFunctionType) and name not in rows:
            out += lines(from_docstring(name, value, static=True), "    ")
    return out


def members(block: list[str]) -> list[str]:
    """The members of a class, each with its decorators."""
    return re.findall(r"(?:    @.*\n)*    \w.*", "\n".join(block[1:]))


def with_bases(classes: list[list[str]]) -> list[list[str]]:
    """The classes; of those that have ten members in common these stand in a base."""
    found: dict[str, list[list[str]]] = {}
    for block in classes:
        if block[0].endswith(":") and "(" not in block[0]:
            like = next(
                (
                    k
                    for k, held in found.items()
                    if len({*members(held[0])} & {*members(block)}) > 9
                ),
                block[0],
            )
            found.setdefault(like, []).append(block)
    out = list(classes)
    for alike in found.values():
        if len(alike) > 1:
            common = [m for m in members(alike[0]) if all(m in members(b) for b in alike)]
            name = "_Like" + re.findall(r"class (\w+)", alike[0][0])[0]
            place = out.index(alike[0])
            for block in alike:
                own = [m for m in members(block) if m not in common]
                out[out.index(block)] = [f"{block[0][:-1]}({name}):", *(own or ["    ..."])]
            out.insert(place, [f"class {name}:", *common])
    return out


def stub() -> str:
    """_core.pyi for the built core."""
    from gradcell import _core

    classes, rest = [], []
    for name, value in vars(_core).items():
        if name.startswith("__"):
            continue
        if isinstance(value, type):
            classes.append(class_stub(value))
        elif isinstance(value, ModuleType):
            classes.append(module_stub(name, value))
        elif isinstance(value, _core.DType):
            rest.append([f"{name}: DType"])
        else:
            rest.append(lines(from_docstring(name, value), ""))
    classes = with_bases(classes)
    text = "\n".join("\n".join(block) for block in classes + rest) + "\n"
    used = re.findall(r"\b(?:Array|Axis|DTypeLike|Shape|TensorLike)\b", text)
    return HEAD.format(", ".join(sorted({*used}))) + text


def filled(text: str) -> str:
    """Statements that are longer than a line, in as many as they fill, broken between arguments."""

    def in_lines(line: str) -> str:
        indent = " " * (len(line) - len(line.lstrip()) + 8)
        whole = re.sub(r"(?<=[^, ]) ", "\0", line)
        return textwrap.fill(whole, 100, subsequent_indent=indent).replace("\0", " ")

    return "".join(f"{in_lines(line)}\n" for line in text.splitlines())


def names(text: str) -> set[str]:
    return set(re.findall(r"^ *(?:def|class) (\w+)|^(\w+): DType", text, re.M))


def differences() -> list[str]:
    """What the stubs do not have of the core's names, or have beyond them."""
    from gradcell import _core

    built = ROWS_TARGET
    if not built.exists():  # nothing was built in this checkout: what the installed package has
        built = Path(_core.__file__).parent / built.name
    of_ops, of_tensor = built.read_text().split("\n\ndef ")[0].split("class TensorRows")
    functions, methods = names(of_ops), names(of_tensor)
    wanted = {(name, "") for name in row_functions()} | {("OpRows", "")}
    structured = {(name, "") for name in structured_functions()}
    missing = (functions ^ (wanted | structured)) | (methods ^ (wanted - {("OpRows", "")}))
    return sorted("".join(n) for n in missing | (names(stub()) ^ names(TARGET.read_text())))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    way = parser.add_mutually_exclusive_group()
    way.add_argument("--check", action="store_true", help="write nothing")
    way.add_argument("--rows", type=Path, metavar="OPS_DEF", help="the op table")
    options = parser.parse_args()
    if options.check:
        found = differences()
        if found:
            print("build the core, run tools/make_stubs.py; not the names of the core:", found)
        return 1 if found else 0
    if options.rows:
        ROWS_TARGET.write_text(rows_stub(options.rows.read_text()))
    else:
        TARGET.write_text(filled(stub()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
