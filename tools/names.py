"""Writes docs/names.md: which of MindSpore's public names are held, which are not, and why.

python tools/names.py list     in an environment with MindSpore: the names, into tools/names.txt
python tools/names.py          in one with gradcell: the document
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
LIST, DOCUMENT = ROOT / "tools" / "names.txt", ROOT / "docs" / "names.md"

#: MindSpore's namespaces, in the order of the document; Tensor and Cell are classes.
SPACES = (
    "mindspore", "ops", "nn", "numpy", "mint", "mint.nn", "mint.nn.functional", "mint.linalg",
    "mint.special", "Tensor", "nn.Cell", "train", "amp", "dataset", "dataset.vision",
    "dataset.transforms", "communication", "parallel", "common.initializer", "scipy.linalg",
    "mindrecord", "log",
)  # fmt: skip

#: Why names are not held, by the first pattern that fits; namespaces come before the names.
REASONS: tuple[tuple[str, str], ...] = (
    ("sparse tensors are holders only: ops do not take them",
     r"\b(csr|coo|row_tensor|sparse|make_(coo|csr|row|sparse|map))|Sparse|CSR|COO|MapTensor|map_tensor"),
    ("for Ascend, or for MindSpore's own compilers and kernels",
     r"npu|NPU|Ascend|quant|Quant|moe_|nsa_|flash|Flash|_attention|Attention|rotary|rotated|swiglu|AiCPU|Akg|"
     r"Ffts|FFTS|TBE|int4|hifloat|float8|vm_impl|ms_kernel|kernel|prim_arg|mindir|MindIR|obfusc|Obf|"
     r"boost|rewrite|dump|Dump|jit_forbidden|dvm|Thor|thor|THOR"),
    ("for a cluster of processes",
     r"all_to_all|all_gather|reduce_scatter|broadcast_object|scatter_object|gather_object|send|recv|Send|"
     r"Receive|Recv|barrier|Barrier|pipeline|Pipeline|strategy|reshard|rank_list|group|Collective|"
     r"Alltoall|AlltoAll|NeighborExchange|isend|shard|merge_sliced|comm_|distributed|Distributed|Push|Pull"),
    ("MindSpore's own graph words, which traced Python does not need",
     r"scalar_|bool_|tuple_|list_|dict_|make_|string_|env_|Scalar|Tuple|switch|partial_|stop_gradient_|"
     r"hook|Hook|_registry|augassign|zip_operation|ref_to_embed|array_reduce|tail|merge|reduced_shape"),
)  # fmt: skip


def owner(root: str, space: str) -> object:
    """The module or class of a namespace."""
    if space == "mindspore":
        return importlib.import_module(root)
    if space in ("Tensor", "nn.Cell"):
        place, _, name = f"{root}.{space}".rpartition(".")
        return getattr(importlib.import_module(place), name)
    return importlib.import_module(f"{root}.{space}")


def write_list() -> None:
    """MindSpore's names: what a namespace lists as public, and its own functions and classes else."""
    lines = []
    for space in SPACES:
        where = owner("mindspore", space)
        names = getattr(where, "__all__", None) or [n for n in dir(where) if not n.startswith("_")]
        found = set()
        for name in set(names):
            if name.startswith("_") or not hasattr(where, name):
                continue
            value = getattr(where, name)
            home = getattr(value, "__module__", "") or ""
            if not inspect.ismodule(value) and (
                isinstance(where, type) or home.startswith("mindspore")
            ):
                found.add(name)
        lines.append(f"{space}: {' '.join(sorted(found))}")
    LIST.write_text("\n".join(lines) + "\n")


def reason(space: str, name: str) -> str:
    text = f"{space} {name}"
    return next((why for why, pattern in REASONS if re.search(pattern, text)), "not there yet")


#: How a name of a namespace stands in the cases of tests/python.
FORMS = {
    "ops": r"\bops\.(\w+)",
    "nn": r"\bnn\.(\w+)",
    "numpy": r"\bms\.numpy\.(\w+)",
    "mint": r"\bms\.mint\.(\w+)",
    "mint.nn": r"\bms\.mint\.nn\.(\w+)",
    "mint.nn.functional": r"\bms\.mint\.nn\.functional\.(\w+)",
    "Tensor": r"\bx\.(\w+)\(",
}


def compared() -> dict[str, set[str]]:
    """The names of each namespace that a case of tests/python asks for in both packages."""
    sys.path.insert(0, str(ROOT / "tests" / "python"))
    text = ""
    for table in ("layer_cases", "name_cases", "optimizer_cases"):
        module = importlib.import_module(table)
        for value in vars(module).values():
            if isinstance(value, (list, frozenset)):
                text += " ".join(c if isinstance(c, str) else str(c[0]) for c in value if c) + " "
    return {space: set(re.findall(pattern, text)) for space, pattern in FORMS.items()}


def write_document() -> None:
    rows, missing, cases = [], {}, compared()
    for line in LIST.read_text().splitlines():
        space, _, names = line.partition(": ")
        words = names.split()
        try:
            where = owner("gradcell", space)
        except (ImportError, AttributeError):
            where = None
        lacking = [n for n in words if where is None or not hasattr(where, n)]
        both = len(cases[space] & set(words) - set(lacking)) if space in cases else ""
        rows.append(f"| `{space}` | {len(words)} | {len(words) - len(lacking)} | {both} |")
        for name in lacking:
            missing.setdefault(reason(space, name), {}).setdefault(space, []).append(name)
    parts = [
        "# MindSpore's names",
        "",
        "Of the public names of MindSpore 2.10, how many are held. `python tools/names.py` writes this; "
        "names that are not there say so by their full name when a program asks for them.",
        "",
        "| namespace | names | held | beside MindSpore |",
        "|---|---|---|---|",
        *rows,
        "",
        "The last column counts names that a test asks for in both packages: values, dtypes, shapes and "
        "first gradients agree (`tests/python/*_cases.py`; `tools/agreement.py` writes what MindSpore "
        "gives). MindSpore has no CPU kernels for others, which are tested against NumPy, finite "
        "differences or formulas.",
        "",
        "## What is not held",
    ]
    for why in [*(w for w, _ in REASONS), "not there yet"]:
        if why in missing:
            parts += ["", f"### {why[0].upper()}{why[1:]}", ""]
            parts += [f"- `{space}`: {', '.join(names)}" for space, names in missing[why].items()]
    DOCUMENT.write_text("\n".join(parts) + "\n")


if __name__ == "__main__":
    write_list() if sys.argv[1:] == ["list"] else write_document()
