"""The public names as entries: one for each thing, with every name under which it can be had.

In: the namespaces below. Out: `entries()`. Names of one object are one entry. A spelling of another
namespace (numpy.sin, mint.sin, the primitive ops.Sin) belongs to the entry of the function that it
stands for; what stands for nothing else is an entry of its own.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import gradcell

#: Where public names are, in the order in which an entry takes its name.
NAMESPACES = (
    "gradcell", "gradcell.ops", "gradcell.nn", "gradcell.amp", "gradcell.train", "gradcell.solvers",
    "gradcell.physics", "gradcell.schedules", "gradcell.random", "gradcell.mindspore",
    "gradcell.dataset", "gradcell.dataset.transforms", "gradcell.dataset.vision",
    "gradcell.dataset.text", "gradcell.dataset.config", "gradcell.common", "gradcell.common.initializer",
    "gradcell.nn.metrics", "gradcell.nn.optim", "gradcell.nn.wrap",
    "gradcell.nn.probability.distribution", "gradcell.nn.probability.bijector",
    "gradcell.train.callback", "gradcell.train.summary",
    "gradcell.scipy.optimize", "gradcell.scipy.linalg", "gradcell.scipy.special",
    "gradcell.scipy.stats", "gradcell.scipy.integrate", "gradcell.scipy.signal",
    "gradcell.communication", "gradcell.parallel",
    "gradcell.tree", "gradcell.cuda", "gradcell.runtime", "gradcell.profiler", "gradcell.boost",
    "gradcell.mindrecord", "gradcell.log", "gradcell.numpy", "gradcell.mint", "gradcell.mint.linalg",
    "gradcell.mint.special", "gradcell.mint.nn", "gradcell.mint.nn.functional",
)  # fmt: skip

#: Packages without public names of their own, or that cannot be imported everywhere; demo is programs, and
#: the names of array_api are the Array API standard's.
OTHERS = (
    "gradcell.array_api", "gradcell.deepxde", "gradcell.demo", "gradcell.scipy", "gradcell.nn.probability",
)  # fmt: skip

#: Spellings that no rule below finds: the entry that each belongs to.
SPELLINGS = {
    "ops.arcsin": "ops.asin", "ops.tensor_div": "ops.div", "ops.subtract": "ops.sub",
    "ops.ArgMaxWithValue": "ops.max", "ops.ArgMinWithValue": "ops.min", "ops.BatchMatMul": "ops.bmm",
    "ops.Conv2DTranspose": "nn.Conv2dTranspose", "ops.Conv3DTranspose": "nn.Conv3dTranspose",
    "ops.DiagPart": "ops.diagonal", "ops.Dropout2D": "nn.Dropout2d", "ops.Dropout3D": "nn.Dropout3d",
    "ops.AdaptiveAvgPool2D": "ops.adaptive_avg_pool2d", "ops.AvgPool": "ops.avg_pool2d",
    "ops.AdaptiveMaxPool2D": "ops.adaptive_max_pool2d", "ops.AvgPool3D": "ops.avg_pool3d",
    "ops.MaxPool": "ops.max_pool2d", "ops.MaxPool3D": "ops.max_pool3d",
    "ops.MaxUnpool2D": "ops.max_unpool2d", "ops.MaxUnpool3D": "ops.max_unpool3d",
    "ops.FastGeLU": "ops.gelu", "ops.HSigmoid": "ops.hardsigmoid", "ops.HSwish": "ops.hardswish",
    "ops.MatrixDeterminant": "ops.det", "ops.MatrixInverse": "ops.inverse", "ops.Pack": "ops.stack",
    "ops.RandomShuffle": "ops.shuffle", "ops.ReduceAll": "ops.all", "ops.ReduceAny": "ops.any",
    "ops.ReduceProd": "ops.prod", "ops.GatherV2": "ops.gather", "ops.ReverseV2": "ops.flip",
    "ops.TensorShape": "ops.shape", "ops.Unpack": "ops.unstack",
    "ops.SigmoidCrossEntropyWithLogits": "ops.binary_cross_entropy_with_logits",
    "mint.nn.Hardshrink": "nn.HShrink", "mint.nn.Hardsigmoid": "nn.HSigmoid",
    "mint.nn.Hardswish": "nn.HSwish", "mint.nn.SELU": "nn.SeLU", "mint.nn.Softshrink": "nn.SoftShrink",
    "ops.row_stack": "ops.vstack", "ops.cat": "ops.concat", "ops.swish": "ops.silu",
    "ops.gather_d": "ops.gather_elements",
    "ops.clip": "ops.clamp", "numpy.concatenate": "ops.concat", "mint.vdot": "ops.dot",
}  # fmt: skip

#: What the rules below would take for another function's spelling.
DIFFERENT = frozenset(
    {
        "numpy.nanstd",
        "numpy.select",
        "mint.select",
        "numpy.tri",
        "numpy.polymul",
        "numpy.nanmax",
        "numpy.nanmin",
        "numpy.nanvar",
        "ops.Scan",
    }
)


@dataclass
class Entry:
    """One section of the reference. name: "gc.grad", "ops.sin"; home: the module it is defined in;
    others: its further names, each with the value if it is not the same object."""

    name: str
    value: Any
    home: str
    others: dict[str, Any] = field(default_factory=dict)


def short(namespace: str, name: str) -> str:
    """How a program writes it after `import gradcell as gc` and `from gradcell import nn, ops...`."""
    space = namespace.partition(".")[2]
    return f"{space}.{name}" if space else f"gc.{name}"


def public_names(module: ModuleType) -> list[str]:
    """The names that a module exports, without modules."""
    names = {n for n in module.__all__ if not n.startswith("_")}
    return sorted(
        (n for n in names if not isinstance(getattr(module, n), ModuleType)),
        key=lambda n: (n.lower(), n),
    )


def packages() -> set[str]:
    """Every package of gradcell that exports names: NAMESPACES and OTHERS have them all. One without
    `__all__`, said or published, is a room of the house, whose modules only others here import."""
    root = Path(gradcell.__path__[0])
    return {
        ".".join(("gradcell", *file.parent.relative_to(root).parts))
        for file in root.rglob("__init__.py")
        if re.search(r"__all__|publish\(globals", file.read_text()) and file.parent != root
    }


def home_of(namespace: str, value: Any) -> str:
    home = getattr(value, "__module__", None)
    return home if isinstance(home, str) and home.startswith("gradcell") else namespace


def constant(value: Any) -> bool:
    return isinstance(value, (bool, int, float, str))


def entries() -> list[Entry]:
    """All public names, in the order of NAMESPACES."""
    held: dict[str, Entry] = {}
    by_object: dict[int, list[tuple[str, str, Any]]] = {}
    for namespace in NAMESPACES:
        module = importlib.import_module(namespace)
        for name in public_names(module):
            value = getattr(module, name)
            # A number or a string is its name: equal ones are different things.
            key = hash((name, value)) if constant(value) else id(value)
            by_object.setdefault(key, []).append((namespace, name, value))
    for places in by_object.values():
        namespace, name, value = min(places, key=lambda place: distance(*place))
        first = short(namespace, name)
        others = dict.fromkeys(short(n, m) for n, m, _ in places)
        del others[first]
        held[first] = Entry(first, value, home_of(namespace, value), others)
    return [*folded(held), deepxde()]


def deepxde() -> Entry:
    """gradcell.deepxde, by its text: importing it needs DeepXDE."""
    path = Path(gradcell.__path__[0]) / "deepxde" / "__init__.py"
    tree = ast.parse(path.read_text())
    names = next(
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    )
    module = ModuleType("gradcell.deepxde", ast.get_docstring(tree))
    module.__file__ = str(path)
    others = dict.fromkeys(f"deepxde.{name}" for name in names)
    return Entry("gc.deepxde", module, "gradcell.deepxde", others)


def distance(namespace: str, name: str, value: Any) -> tuple[int, int, int]:
    """The entry's own name comes first: in the package that it is defined in, if that exports it."""
    home = home_of(namespace, value)
    within = home == namespace or home.startswith(namespace + ".")
    own = getattr(value, "__name__", None) or str(value).lower()  # a dtype's is its text
    depth = namespace.count(".")
    if namespace == "gradcell.common":  # it repeats names of gradcell
        within = False
    # Of packages within packages the outer one: nn.Adam, not nn.optim.Adam.
    rank = (depth if depth else 9) if within else 99
    return rank, NAMESPACES.index(namespace), int(own != name)


def folded(held: dict[str, Entry]) -> list[Entry]:
    """Spellings become names of the entry that they stand for."""
    docstrings: dict[str, str] = {}
    for name in held:
        if name.startswith("ops.") and name[4].islower() and name not in SPELLINGS:
            docstrings.setdefault(inspect.getdoc(held[name].value) or name, name)
    targets = {name: target(entry, held, docstrings) for name, entry in held.items()}
    for name, of in targets.items():
        if of is None:
            continue
        way = [name]
        while targets.get(of) and of not in way:
            way.append(of)
            of = targets[of]
        if of in way:
            raise ValueError(f"spellings of each other: {' -> '.join([*way, of])}")
        entry = held[name]
        held[of].others[name] = entry.value
        held[of].others.update(dict.fromkeys(entry.others, entry.value))
    kept = [entry for name, entry in held.items() if targets[name] is None]
    add_methods(kept)
    return kept


def add_methods(kept: list[Entry]) -> None:
    """A Tensor's method stands under the function of its name, x.add_ with x.add."""
    by_name = {name: entry for entry in kept for name in (entry.name, *entry.others)}
    for name, method in sorted(vars(gradcell.Tensor).items()):
        function = by_name.get(f"ops.{name}") or by_name.get(f"ops.{name.rstrip('_')}")
        if callable(method) and function is not None and not name.startswith("_"):
            function.others[f"Tensor.{name}"] = method


def target(entry: Entry, held: dict[str, Entry], docstrings: dict[str, str]) -> str | None:
    """The entry that this one is a spelling of."""
    space, _, name = entry.name.rpartition(".")
    text = inspect.getdoc(entry.value) or ""
    guesses: list[str] = []
    if entry.name in DIFFERENT:
        return None
    if entry.name in SPELLINGS:
        guesses = [SPELLINGS[entry.name]]
    elif space == "ops":
        guesses = [docstrings.get(text, "")]
        if name[0].isupper() and inspect.isclass(entry.value):
            words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
            guesses += [f"ops.{words}", f"ops.{name.lower()}"]
    elif space.split(".")[0] in ("mint", "numpy", "scipy"):
        target = getattr(entry.value, "_target", None)
        function = inspect.unwrap(entry.value) if callable(entry.value) else entry.value
        of_one = inspect.isfunction(function) and function.__name__ == name
        source = inspect.getsource(function) if of_one else ""
        calls = re.findall(r"\bops\.(\w+)\(", source)
        guesses = [f"nn.{name}"] if space == "mint.nn" else []
        guesses += [f"ops.{target.__name__}"] if target else []
        guesses += [f"ops.{calls[0]}"] if len(calls) == 1 else []
        guesses += [docstrings.get(text, "")]
        guesses += [f"ops.{name}", f"gc.{name}"]
    return next((g for g in guesses if g in held and g != entry.name), None)
