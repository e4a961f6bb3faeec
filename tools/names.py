"""Writes docs/names.md: which of MindSpore's public names are held, which are not, and why.

python tools/names.py list     in an environment with MindSpore: the names, into tools/names.txt
python tools/names.py          in one with gradcell: the document
"""

from __future__ import annotations

import importlib
import inspect
import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
SUPPORT = ROOT / "tests" / "python" / "support"
sys.path[:0] = [str(SUPPORT), str(SUPPORT / "cases")]
LIST, DOCUMENT = ROOT / "tools" / "names.txt", ROOT / "docs" / "names.md"

#: MindSpore's namespaces, in the order of the document; the last word of some is a class.
SPACES = (
    "mindspore", "ops", "nn", "numpy", "mint", "mint.nn", "mint.nn.functional", "mint.linalg",
    "mint.special", "Tensor", "nn.Cell", "train", "train.Model", "amp", "dataset",
    "dataset.GeneratorDataset", "dataset.vision", "dataset.transforms", "dataset.text",
    "dataset.config", "dataset.audio", "communication", "parallel", "common.initializer",
    "scipy.linalg", "scipy.optimize", "nn.probability.distribution", "nn.probability.bijector",
    "mindrecord", "log",
)  # fmt: skip

#: Why names are not held, by the first pattern that fits; namespaces come before the names.
REASONS: tuple[tuple[str, str], ...] = (
    ("MindIR, MindSpore's own form of graphs, is neither read nor written; export writes ONNX",
     r"mindir|MindIR|^(mindspore|train) load$|GraphCell"),
    ("MindSpore 2.10 stops at them too on a CPU: its Model for THOR lacks arguments of a call",
     r"Thor|thor|THOR|ConvertNetUtils|ConvertModelUtils"),
    ("sound", r"^dataset\.audio"),
    ("sparse tensors are holders only: ops do not take them",
     r"\b(csr|coo|row_tensor|sparse|make_(coo|csr|row|sparse|map))|Sparse|CSR|COO|MapTensor|map_tensor"),
    ("for Ascend, or for MindSpore's own compilers and kernels",
     r"npu|NPU|Ascend|quant|Quant|moe_|nsa_|flash|Flash|_attention|Attention|rotary|rotated|swiglu|AiCPU|Akg|"
     r"Ffts|FFTS|TBE|int4|hifloat|float8|vm_impl|ms_kernel|kernel|prim_arg|obfusc|Obf|"
     r"boost|rewrite|dump|Dump|jit_forbidden|dvm"),
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
    place, _, name = f"{root}.{space}".rpartition(".")
    return getattr(importlib.import_module(place), name, None) or importlib.import_module(
        f"{root}.{space}"
    )


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
    return next((why for why, pattern in REASONS if re.search(pattern, text)), "not supported yet")


#: How a name of a namespace stands in the cases of tests/python.
FORMS = {
    "ops": r"\bops\.(\w+)",
    "nn": r"\bnn\.(\w+)",
    "numpy": r"\bms\.numpy\.(\w+)",
    "mint": r"\bms\.mint\.(\w+)",
    "mint.nn": r"\bms\.mint\.nn\.(\w+)",
    "mint.nn.functional": r"\bms\.mint\.nn\.functional\.(\w+)",
    "mint.linalg": r"\bms\.mint\.linalg\.(\w+)",
    "mint.special": r"\bms\.mint\.special\.(\w+)",
    "Tensor": r"(?:\b[xyzw]|Tensor|[\])])\.(\w+)",
    "nn.probability.distribution": r"\bdistribution\.(\w+)",
    "nn.probability.bijector": r"\bbijector\.(\w+)",
    "common.initializer": r"\binitializer\.(\w+)",
    "scipy.linalg": r"\bms\.scipy\.linalg\.(\w+)",
    "scipy.optimize": r"\bms\.scipy\.optimize\.(\w+)",
    "mindspore": r"\bms\.(\w+)",
    "nn.Cell": r"\bcell\.(\w+)",
    "train": r"\btrain\.(\w+)",
    "train.Model": r"\bmodel\.(\w+)",
    "amp": r"\bamp\.(\w+)",
    "dataset": r"\bdataset\.(\w+)",
    "dataset.GeneratorDataset": r"(?:\)|\brows)\.(\w+)",
    "dataset.vision": r"\bvision\.(\w+)",
    "dataset.transforms": r"\btransforms\.(\w+)",
    "dataset.text": r"\btext\.(\w+)",
    "dataset.config": r"\bconfig\.(\w+)",
    "communication": r"\bcommunication\.(\w+)",
    "parallel": r"\bparallel\.(\w+)",
    "mindrecord": r"\bmindrecord\.(\w+)",
    "log": r"\blog\.(\w+)",
}

#: Names that are held without a case beside MindSpore, and why: 'reason: namespace name ...'.
NOT_ASKED = """
descriptions of kernels for MindSpore's compilers: ops AiCPURegOp AkgGpuRegOp CpuRegOp CustomRegOp
descriptions of kernels for MindSpore's compilers: ops DataType TBERegOp custom_info_register
descriptions of kernels for MindSpore's compilers: ops op_info_register
kernels of a program's own (test_name_derivatives.py): ops Custom CustomOpBuilder
need several processes (test_parallel_collectives.py): ops AllGather AllReduce AlltoAll Barrier
need several processes (test_parallel_collectives.py): ops Broadcast Pull Push Reduce ReduceOp
need several processes (test_parallel_collectives.py): ops ReduceScatter
for Ascend alone, as they say: ops DropoutDoMask DropoutGenMask DynamicGRUV2 DynamicRNN
for Ascend alone, as they say: ops FusedCastAdamWeightDecay NPUAllocFloatStatus
for Ascend alone, as they say: ops NPUClearFloatStatus NPUGetFloatStatus
write files (test_summary.py): ops HistogramSummary ImageSummary ScalarSummary TensorSummary
decorators, which give no numbers (test_ops_trees.py): ops MultitypeFuncGraph prim_attr_register
hooks (test_hooks.py): Tensor hooks register_hook
prints: mindspore run_check
compiled there from the text of a file (test_program_idioms.py): mindspore jit data_sink
for MindSpore's own compilers, as they say: mindspore lazy_inline no_inline ms_memory_recycle
for a cluster, as they say (test_program_idioms.py): mindspore Layout shard set_ps_context
for a cluster, as they say (test_program_idioms.py): mindspore sync_pipeline_shared_parameters
for a cluster, as they say (test_program_idioms.py): parallel Layout shard get_algo_parameters
for a cluster, as they say (test_program_idioms.py): parallel reset_algo_parameters set_algo_parameters
for a cluster, as they say (test_program_idioms.py): parallel sync_pipeline_shared_parameters
for a cluster, as they say (test_program_idioms.py): nn.Cell shard offload
reads and writes (test_profiler.py): mindspore Profiler
read files (test_dataset_files.py): dataset Cifar10Dataset Cifar100Dataset FashionMnistDataset
read files (test_dataset_files.py): dataset ImageFolderDataset MindDataset MnistDataset TFRecordDataset
read files (test_dataset_files.py): mindrecord FileReader FileWriter SUCCESS FAILED
read files (test_vision.py): dataset.vision Decode RandomCropDecodeResize
need a dataset of classes (test_dataset_files.py): dataset PKSampler
keeps nothing, as it says (test_dataset_steps.py): dataset DatasetCache
written down from MindSpore in test_text.py: dataset.text BasicTokenizer BertTokenizer Lookup
written down from MindSpore in test_text.py: dataset.text PythonTokenizer RegexTokenizer ToNumber
written down from MindSpore in test_text.py: dataset.text Truncate TruncateSequencePair Vocab
written down from MindSpore in test_text.py: dataset.text UnicodeCharTokenizer WhitespaceTokenizer
written down from MindSpore in test_text.py: dataset.text WordpieceTokenizer to_bytes to_str
writes a file (test_dataset_files.py): dataset.GeneratorDataset save
draw (test_vision.py): dataset.vision CutMixBatch MixUpBatch UniformAugment
a run that ends before its time (test_training_exits.py): train BackupAndRestore OnRequestExit
takes a network (test_training_exits.py): train OcclusionSensitivity
takes a network (test_training_exits.py): nn OcclusionSensitivity
the base of others (test_bijectors.py): nn.probability.bijector Bijector
a flag that says there what here is always so: Tensor is_init
no numbers: nn no_init_parameters rearrange_inputs
programs of their own, in both modes (test_mindspore_programs.py): mindspore Symbol enable_dynamic
programs of their own, in both modes (test_mindspore_programs.py): Tensor const_arg set_const_arg
programs of their own, in both modes (test_mindspore_programs.py): nn.Cell get_scope
"""


def not_asked(space: str) -> dict[str, str]:
    """The names of a namespace that have no case, and why."""
    found = {}
    for line in NOT_ASKED.strip().splitlines():
        why, _, rest = line.partition(": ")
        where, *names = rest.split()
        if where == space:
            found |= dict.fromkeys(names, why)
    return found


def held(space: str) -> set[str]:
    """The names of a namespace that are here."""
    lines = dict(line.split(": ", 1) for line in LIST.read_text().splitlines())
    where = owner("gradcell", space)
    return {n for n in lines[space].split() if hasattr(where, n)}


def cases() -> list[str]:
    """What the cases of tests/python ask in both packages, as they are written there."""
    found: list[str] = []
    for table in ("layer_cases", "name_cases", "optimizer_cases", "metric_cases"):
        module = importlib.import_module(table)
        for value in vars(module).values():
            if isinstance(value, (list, frozenset)):
                found += [c if isinstance(c, str) else str(c[0]) for c in value if c]
    return found + pictures() + [row.expression for row in table_rows()]


def pictures() -> list[str]:
    """What test_vision.py asks of an image that MindSpore was given too."""
    stored = np.load(ROOT / "tests" / "python" / "files" / "images.npz")
    return [f"vision.{call.removeprefix('PIL ')}" for call in stored.files if "(" in call]


def table_rows() -> list[Any]:
    """The rows of tests/python/cases."""
    agreement = importlib.import_module("agreement")
    tables = sorted((ROOT / "tests" / "python" / "cases").glob("*.txt"))
    return [row for table in tables for row in agreement.rows(table)]


def names_in(texts: list[str]) -> dict[str, set[str]]:
    """The names of each namespace that are written there."""
    text = "\n".join(texts)
    return {space: set(re.findall(pattern, text)) for space, pattern in FORMS.items()}


def compared() -> dict[str, set[str]]:
    """The names of each namespace that a case asks for."""
    return names_in(cases())


def refused() -> dict[str, str]:
    """The rows that MindSpore has nothing to say to, and its reasons."""
    golden = ROOT / "tests" / "python" / "golden"
    said = json.loads((golden / "refused.json").read_text())
    return {row.expression: said[row.name] for row in table_rows() if row.name in said}


def agreeing() -> dict[str, set[str]]:
    """The names of each namespace that MindSpore gave numbers for."""
    said = refused()
    return names_in([text for text in cases() if text not in said])


def refusals() -> list[str]:
    """A line for each reason: 'reason: the names that have no case but such'."""
    found: dict[str, list[str]] = {}
    both = agreeing()
    for text, said in refused().items():
        none = re.search(
            r"unregistered|Kernel select failed|kernelmod|Not found op|Ascend|this device", said
        )
        why = "there is no kernel for the CPU" if none else re.sub(r"^\w+Error: ", "", said)
        for space, names in names_in([text]).items():
            for name in sorted(names & held(space) - both[space]):
                full = f"`{space}.{name}`"
                if full not in found.setdefault(why, []):
                    found[why].append(full)
    return [f"- {why}: {', '.join(names)}" for why, names in found.items() if names]


def private() -> list[str]:
    """How names of MindSpore's private modules stand, and small programs that use them."""
    sys.path[:0] = [
        str(SUPPORT / "mindspore_programs"),
        str(ROOT / "tests" / "python" / "agreement"),
    ]
    imports, programs = map(importlib.import_module, ("imports", "test_mindspore_programs"))
    absent = importlib.import_module("gradcell.mindspore.absent_names")
    asked = [f"{module}.{n}" for module, names in imports._modules.items() for n in names]
    unknown, lacking, unused = set(), set(), set()
    for module, names in imports._modules.items():
        name = f"imports: mindspore.{module}"
        there = programs.STORED[name]["graph"][1:]
        unknown.update(f"{module}.{n}" for n in there)
        here = programs.DIFFERS[name][0][1:] if name in programs.DIFFERS else there
        lacking.update(f"{module}.{n}" for n in here)
        unused.update(
            f"{module}.{n}"
            for n in names
            for p in (module, module.rpartition(".")[0])
            if f"{p}.{n}" in absent.REFUSED or f"{p}.{n}" in absent.IGNORED
        )
    ran = [n for n in programs.STORED if not n.startswith("imports")]
    differ = {n: why for n, (_, why) in programs.DIFFERS.items() if n in ran}
    modes = list(programs.MODES_DIFFER)
    return [
        f"Of {len(asked)} names that programs import from modules below the public ones, "
        f"{len(asked) - len(unknown)} are in MindSpore 2.10 and {len(asked) - len(lacking)} can be imported "
        f"here: {len(unused)} of these only say why they do nothing here.",
        "",
        f"Of {len(ran)} small programs, which use such names, small behaviours, errors, tensors of unknown "
        f"rank and training in twelve fields, {len(ran) - len(differ)} give what MindSpore gives in "
        f"GRAPH_MODE and in PYNATIVE_MODE ({len(modes)} of them what its right mode gives, where its modes "
        f"differ), and {len(differ)} differ:",
        "",
        *(f"- `{name.partition(': ')[2]}`: {why}" for name, why in differ.items()),
    ]


def write_document() -> None:
    rows, missing, both = [], {}, agreeing()
    for line in LIST.read_text().splitlines():
        space, _, names = line.partition(": ")
        words = names.split()
        try:
            where = owner("gradcell", space)
        except (ImportError, AttributeError):
            where = None
        lacking = [n for n in words if where is None or not hasattr(where, n)]
        line = [f"`{space}`", len(words), len(words) - len(lacking), "", "", ""]
        if space in FORMS:
            here, agree, excused = held(space), both[space], not_asked(space)
            line[3:] = [len(here & agree), len(here - agree - set(excused)), len(excused)]
        rows.append(f"| {' | '.join(map(str, line))} |")
        for name in lacking:
            missing.setdefault(reason(space, name), {}).setdefault(space, []).append(name)
    parts = [
        "# MindSpore's names",
        "",
        "How many of MindSpore 2.10's public names gradcell supports. `python tools/names.py` writes this "
        "page. Using a missing name raises an error that gives its full name.",
        "",
        "| namespace | names | supported | agree | MindSpore refuses | not compared |",
        "|---|---|---|---|---|---|",
        *rows,
        "",
        "A name agrees if a test compares it in both packages: values, dtypes, shapes and first gradients "
        "(`tests/python/support/cases/*_cases.py`, `tests/python/cases`; `tools/agreement.py` records "
        "MindSpore's results and errors). Names that have no CPU kernel in MindSpore run here; most are "
        "compared with another spelling of the same function. `test_tables.py` fails for a supported name "
        "that is neither compared nor listed below.",
        "",
        "## What MindSpore refuses",
        "",
        *refusals(),
        "",
        "## Private modules",
        "",
        *private(),
        "",
        "## What is not compared",
        "",
        *(f"- {line}" for line in NOT_ASKED.strip().splitlines()),
        "",
        "## What is not supported",
    ]
    for why in [*(w for w, _ in REASONS), "not supported yet"]:
        if why in missing:
            parts += ["", f"### {why[0].upper()}{why[1:]}", ""]
            parts += [f"- `{space}`: {', '.join(names)}" for space, names in missing[why].items()]
    DOCUMENT.write_text("\n".join(parts) + "\n")


if __name__ == "__main__":
    write_list() if sys.argv[1:] == ["list"] else write_document()
