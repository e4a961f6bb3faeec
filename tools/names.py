"""Writes docs/names.md: which of MindSpore's public names are supported, which are not, and why; and the
section of docs/coming-from/mindspore.md that has its figures.

    python tools/names.py list     in an environment with MindSpore: the names, into tools/names.txt
    python tools/names.py          in one with gradcell: the documents
"""

from __future__ import annotations

import argparse
import functools
import importlib
import inspect
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
SUPPORT = ROOT / "tests" / "python" / "support"
sys.path[:0] = [str(SUPPORT), str(SUPPORT / "cases")]
LIST, DOCUMENT = ROOT / "tools" / "names.txt", ROOT / "docs" / "names.md"

PAGE, SECTION = ROOT / "docs" / "coming-from" / "mindspore.md", "## Beside MindSpore 2.10"

LATER = "Not supported yet: Please ask for those that you need."

#: MindSpore's namespaces, in the order of the document; the last word of some is a class.
SPACES = (
    "mindspore", "ops", "nn", "numpy", "mint", "mint.nn", "mint.nn.functional", "mint.linalg",
    "mint.special", "Tensor", "nn.Cell", "train", "train.Model", "amp", "dataset",
    "dataset.GeneratorDataset", "dataset.vision", "dataset.transforms", "dataset.text",
    "dataset.config", "dataset.audio", "communication", "parallel", "common.initializer",
    "scipy.linalg", "scipy.optimize", "nn.probability.distribution", "nn.probability.bijector",
    "mindrecord", "log",
)  # fmt: skip

#: Why names are not supported, 'title: explanation', by the first pattern that fits; namespaces come before
#: the names.
REASONS: tuple[tuple[str, str], ...] = (
    ("MindIR: gradcell neither reads nor writes MindSpore's graph format. `export` writes ONNX instead.",
     r"mindir|MindIR|^(mindspore|train) load$|GraphCell"),
    ("THOR: MindSpore 2.10 itself cannot run this optimiser on a CPU: its `Model` lacks arguments.",
     r"Thor|thor|THOR|ConvertNetUtils|ConvertModelUtils"),
    ("Audio: The transforms of sound files.", r"^dataset\.audio"),
    ("Sparse tensors: `CSRTensor` and `COOTensor` exist as containers, but ops do not accept them.",
     r"\b(csr|coo|row_tensor|sparse|make_(coo|csr|row|sparse|map))|Sparse|CSR|COO|MapTensor|map_tensor"),
    ("Ascend, compilers and kernels: Names for Ascend processors and MindSpore's compilers.",
     r"npu|NPU|Ascend|quant|Quant|moe_|nsa_|flash|Flash|_attention|Attention|rotary|rotated|swiglu|AiCPU|Akg|"
     r"Ffts|FFTS|TBE|int4|hifloat|float8|vm_impl|ms_kernel|kernel|prim_arg|obfusc|Obf|"
     r"boost|rewrite|dump|Dump|jit_forbidden|dvm"),
    ("Clusters: Names for models that are split over many machines.",
     r"all_to_all|all_gather|reduce_scatter|broadcast_object|scatter_object|gather_object|send|recv|Send|"
     r"Receive|Recv|barrier|Barrier|pipeline|Pipeline|strategy|reshard|rank_list|group|Collective|"
     r"Alltoall|AlltoAll|NeighborExchange|isend|shard|merge_sliced|comm_|distributed|Distributed|Push|Pull"),
    ("Graph operations: Names by which MindSpore's compiler replaces Python's lists, tuples and branches. "
     "gradcell records Python as it runs and does not need them.",
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
    return next((why for why, pattern in REASONS if re.search(pattern, text)), LATER)


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

#: Names that are supported but not compared with MindSpore, and why: 'reason: namespace name ...'.
NOT_ASKED = """
They register kernels with MindSpore's compilers: ops AiCPURegOp AkgGpuRegOp CpuRegOp CustomRegOp
They register kernels with MindSpore's compilers: ops DataType TBERegOp custom_info_register op_info_register
The program defines the kernel itself (`test_name_derivatives.py`): ops Custom
The program defines the kernel itself (`test_cpp_functions.py`): ops CustomOpBuilder
They need several processes (`test_parallel_collectives.py`): ops AllGather AllReduce AlltoAll Barrier
They need several processes (`test_parallel_collectives.py`): ops Broadcast Pull Push Reduce ReduceOp
They need several processes (`test_parallel_collectives.py`): ops ReduceScatter
They run on Ascend processors only, in MindSpore too: ops DropoutDoMask DropoutGenMask DynamicGRUV2 DynamicRNN
They run on Ascend processors only, in MindSpore too: ops FusedCastAdamWeightDecay NPUAllocFloatStatus
They run on Ascend processors only, in MindSpore too: ops NPUClearFloatStatus NPUGetFloatStatus
They write files (`test_summary.py`): ops HistogramSummary ImageSummary ScalarSummary TensorSummary
They decorate functions and return no numbers (`test_ops_trees.py`): ops MultitypeFuncGraph prim_attr_register
They register hooks (`test_hooks.py`): Tensor hooks register_hook
It only prints: mindspore run_check
MindSpore compiles these from a source file (`test_program_idioms.py`): mindspore jit data_sink
They are hints to MindSpore's compiler, which gradcell accepts and ignores: mindspore lazy_inline no_inline
They are hints to MindSpore's compiler, which gradcell accepts and ignores: mindspore ms_memory_recycle
They matter on a cluster only (`test_program_idioms.py`): mindspore Layout shard set_ps_context
They matter on a cluster only (`test_program_idioms.py`): mindspore sync_pipeline_shared_parameters
They matter on a cluster only (`test_program_idioms.py`): parallel Layout shard get_algo_parameters
They matter on a cluster only (`test_program_idioms.py`): parallel reset_algo_parameters set_algo_parameters
They matter on a cluster only (`test_program_idioms.py`): parallel sync_pipeline_shared_parameters
They matter on a cluster only (`test_program_idioms.py`): nn.Cell shard offload
It measures time (`test_profiler.py`): mindspore Profiler
They read files (`test_dataset_files.py`): dataset Cifar10Dataset Cifar100Dataset FashionMnistDataset
They read files (`test_dataset_files.py`): dataset ImageFolderDataset MindDataset MnistDataset TFRecordDataset
They read files (`test_dataset_files.py`): mindrecord FileReader FileWriter SUCCESS FAILED
They decode image files (`test_vision.py`): dataset.vision Decode RandomCropDecodeResize
It needs a dataset with classes (`test_dataset_files.py`): dataset PKSampler
It does nothing in gradcell, as its docstring says (`test_dataset_steps.py`): dataset DatasetCache
Small programs ask for them (`test_mindspore_programs.py`): ops PyFunc
Small programs ask for them (`test_mindspore_programs.py`): nn.Cell buffers get_buffer named_buffers
Small programs ask for them (`test_mindspore_programs.py`): nn.Cell register_buffer
Small programs ask for them (`test_mindspore_programs.py`): dataset CelebADataset FakeImageDataset
Small programs ask for them (`test_mindspore_programs.py`): dataset.GeneratorDataset sync_update sync_wait
Their expected values come from MindSpore, by hand (`test_text.py`): dataset.text BasicTokenizer
Their expected values come from MindSpore, by hand (`test_text.py`): dataset.text BertTokenizer Lookup
Their expected values come from MindSpore, by hand (`test_text.py`): dataset.text PythonTokenizer
Their expected values come from MindSpore, by hand (`test_text.py`): dataset.text RegexTokenizer ToNumber
Their expected values come from MindSpore, by hand (`test_text.py`): dataset.text Truncate Vocab
Their expected values come from MindSpore, by hand (`test_text.py`): dataset.text TruncateSequencePair
Their expected values come from MindSpore, by hand (`test_text.py`): dataset.text UnicodeCharTokenizer
Their expected values come from MindSpore, by hand (`test_text.py`): dataset.text WhitespaceTokenizer
Their expected values come from MindSpore, by hand (`test_text.py`): dataset.text WordpieceTokenizer
Their expected values come from MindSpore, by hand (`test_text.py`): dataset.text to_bytes to_str
It writes a file (`test_dataset_files.py`): dataset.GeneratorDataset save
They draw random numbers (`test_vision.py`): dataset.vision CutMixBatch MixUpBatch UniformAugment
They act when a run ends early (`test_training_exits.py`): train BackupAndRestore OnRequestExit
It needs a whole network (`test_training_exits.py`): train OcclusionSensitivity
It needs a whole network (`test_training_exits.py`): nn OcclusionSensitivity
It is an abstract base class (`test_bijectors.py`): nn.probability.bijector Bijector
It is a flag that never changes in gradcell: Tensor is_init
It is the Array API's (`test_array_api.py`): Tensor device
They return no numbers: nn no_init_parameters rearrange_inputs
Whole programs compare them in both modes (`test_mindspore_programs.py`): mindspore Symbol enable_dynamic
Whole programs compare them in both modes (`test_mindspore_programs.py`): Tensor const_arg set_const_arg
Whole programs compare them in both modes (`test_mindspore_programs.py`): nn.Cell get_scope
Whole programs compare them in both modes (`test_mindspore_programs.py`): ops AdamNoUpdateParam
"""

#: What a message of MindSpore comes to, by the first pattern that fits.
MESSAGES = (
    ("It has no CPU kernel for them",
     r"unregistered|Kernel select failed|kernelmod|Not found op|Ascend|this device"),
    ("It compiles functions from their source file, and the tests' expressions have none",
     r"temporary source code"),
    ("It wants a program that `mpirun` started", r"mpirun"),
    ("The process ends with a segmentation fault", r"ended with status 11"),
)  # fmt: skip


def not_asked(space: str) -> dict[str, str]:
    """The names of a namespace that have no case, and why."""
    found = {}
    for why, where, names in excuses():
        if where == space:
            found |= dict.fromkeys(names, why)
    return found


def excuses() -> list[tuple[str, str, list[str]]]:
    """The reason, the namespace and the names of each line of NOT_ASKED."""
    parts = [line.partition(": ") for line in NOT_ASKED.strip().splitlines()]
    return [(why, rest.split()[0], rest.split()[1:]) for why, _, rest in parts]


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


@functools.cache
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


Lists = dict[str, dict[str, list[str]]]  # names by reason and namespace


def refusals() -> tuple[Lists, dict[str, list[str]]]:
    """The names whose every case stops in MindSpore: by a reason of MESSAGES, and by another message."""
    known: Lists = {}
    others: dict[str, list[str]] = {}
    both, here = agreeing(), {space: held(space) for space in FORMS}
    for text, said in refused().items():
        why = next((w for w, pattern in MESSAGES if re.search(pattern, said)), None)
        message = re.sub(r"^\w+Error: ", "", said).rstrip(".").replace("`", "'").replace("|", "\\|")
        for space, names in names_in([text]).items():
            for name in sorted(names & here[space] - both[space]):
                if why:
                    place, entry = known.setdefault(why, {}).setdefault(space, []), name
                else:
                    place, entry = others.setdefault(message, []), f"`{space}.{name}`"
                if entry not in place:
                    place.append(entry)
    return known, others


def listed(spaces: dict[str, list[str]]) -> list[str]:
    """A line for each namespace."""
    return [f"- `{space}`: {', '.join(sorted(names))}" for space, names in spaces.items()]


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
        "Programs also import names from modules that MindSpore does not document. The tests ask for "
        f"{len(asked)} of them: {len(asked) - len(unknown)} exist in MindSpore 2.10, and "
        f"{len(asked) - len(lacking)} can be imported from gradcell. {len(unused)} of these do nothing "
        "except explain why.",
        "",
        f"The tests also run {len(ran)} small programs in GRAPH_MODE and in PYNATIVE_MODE. They use such "
        "names, details of behaviour, errors, tensors of unknown rank, ways to train, and training in twelve "
        "fields. "
        f"{len(ran) - len(differ)} print what MindSpore prints. In {len(modes)} of these MindSpore's two "
        f"modes differ, and gradcell gives the right result in both. The other {len(differ)} differ from "
        "MindSpore:",
        "",
        "| program | difference |",
        "|---|---|",
        *(
            f"| {name.partition(': ')[2].replace('_', ' ')} | {why} |"
            for name, why in differ.items()
        ),
    ]


def called() -> list[str]:
    """How calls of names differ, by reason."""
    signatures_of = importlib.import_module("signatures_of")
    by_reason: dict[str, dict[str, None]] = {}
    differing = signatures_of.differences()
    for call, found in differing.items():
        for what in found:
            name = f"`{call.partition('(')[0]}`"
            by_reason.setdefault(signatures_of.reason(call, what), {})[name] = None
    here = sum(map(signatures_of.compared, signatures_of.stored()))
    return [
        f"gradcell has {here:,} of MindSpore's {len(signatures_of.stored()):,} signatures (a name may have "
        f"several). Parameters have the same names, order and defaults in {here - len(differing):,} of them; "
        f"{len(differing)} differ:",
        "",
        *(f"- {why}: {', '.join(found)}." for why, found in by_reason.items()),
    ]


def losses() -> dict[str, tuple[list[float], list[float]]]:
    """The losses of MindSpore's and of gradcell's steps of the programs of many fields, by their titles."""
    place = SUPPORT / "mindspore_programs"
    command = [sys.executable, "-m", "gradcell", "run", str(place / "__main__.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    here = json.loads(done.stdout.splitlines()[-1])
    programs = importlib.import_module("test_mindspore_programs")
    found = {}
    for file in ("applications", "fields"):
        text = (place / f"{file}.py").read_text()
        for title, function in re.findall(r'^    "(.+)": _(\w+),$', text, re.M):
            name = f"{file}: {function}"
            mode = programs.MODES_DIFFER.get(name, "graph")
            found[title] = programs.STORED[name][mode][1:], here[name][mode][1:]
    return found


def figures(total: list[int]) -> list[str]:
    """The section of the page; total: of the columns of names.md's table."""
    names, supported, agree, refused = total[:4]
    timed = (ROOT / "bench" / "results" / "applications.md").read_text()
    parts = [
        SECTION,
        "",
        f"`python tools/names.py` writes this section. gradcell has {supported:,} of {names:,} public names. "
        f"{agree:,} of these give MindSpore's values, dtypes, shapes and first gradients in the tests, and "
        f"{refused:,} run only here, since MindSpore itself stops at them on a CPU. [Names](../names.md) has "
        "each, and the small programs whose results differ, with the reason.",
        "",
        "Programs of many fields train five steps with both packages, from the same weights and data. The "
        "losses are those of the fifth step; the difference is the largest of the five, relative. The times "
        "are those of one step in `GRAPH_MODE`, in milliseconds, on one quiet machine "
        "(`bench/applications.py`).",
        "",
        "| program | MindSpore's loss | gradcell's | difference | MindSpore, ms | gradcell, ms |",
        "|---|---|---|---|---|---|",
    ]
    for title, (theirs, ours) in losses().items():
        apart = max(abs(a - b) / abs(a) for a, b in zip(theirs, ours, strict=True))
        times = next(line for line in timed.splitlines() if line.startswith(f"| {title} |")).split(
            "|"
        )
        row = f"| {title} | {theirs[-1]:.6g} | {ours[-1]:.6g} | {f'{apart:.0e}' if apart else 0} |"
        parts.append(f"{row}{times[2]}|{times[3]}|")
    parts += [
        "",
        "MindSpore's two modes give different losses for molecular dynamics and weather. The table has those "
        "of the mode that agrees with losses computed in NumPy; gradcell gives these in both modes.",
    ]
    return parts


def write_page(total: list[int]) -> None:
    """The figures, in place of what their section says."""
    before, _, rest = PAGE.read_text().partition(f"{SECTION}\n")
    after = rest[rest.index("\n## ") :]
    PAGE.write_text(before + "\n".join(figures(total)) + "\n" + after)


def write_document() -> None:
    rows: list[list[Any]] = []
    missing: Lists = {}
    both = agreeing()
    for space, _, text in (line.partition(": ") for line in LIST.read_text().splitlines()):
        words = text.split()
        try:
            where = owner("gradcell", space)
        except (ImportError, AttributeError):
            where = None
        lacking = [n for n in words if where is None or not hasattr(where, n)]
        row: list[Any] = [f"`{space}`", len(words), len(words) - len(lacking), "", "", ""]
        if space in FORMS:
            here, agree, excused = held(space), both[space], not_asked(space)
            row[3:] = [len(here & agree), len(here - agree - set(excused)), len(excused)]
        rows.append(row)
        for name in lacking:
            missing.setdefault(reason(space, name), {}).setdefault(space, []).append(name)
    total = [sum(int(row[k] or 0) for row in rows) for k in range(1, 6)]
    parts = [
        "# MindSpore's names",
        "",
        f"gradcell supports {total[1]:,} of the {total[0]:,} public names of MindSpore 2.10; "
        f"{total[2]:,} of them give MindSpore's results in the tests. A name that is missing raises an error "
        "that gives its full name. `python tools/names.py` writes this page.",
        "",
        "| namespace | names | supported | same result | MindSpore stops | not compared |",
        "|---|---|---|---|---|---|",
        *(f"| {' | '.join(map(str, row))} |" for row in rows),
        "",
        "*Same result*: a test compares values, dtypes, shapes and first gradients in both packages. "
        "*MindSpore stops*: gradcell runs the name, and MindSpore raises an error on a CPU; most of these "
        "names are compared by another spelling. *Not compared*: other tests cover the name. "
        "The lists below give both kinds, and then what is not supported.",
        "",
        "The cases are in `tests/python/cases` and `tests/python/support/cases`, and `tools/agreement.py` "
        "records what MindSpore gives for them. A test fails if a supported name is in no case and no list.",
        "",
        "## Where MindSpore stops",
        "",
    ]
    known, others = refusals()
    for why, spaces in known.items():
        parts += [f"**{why}:**", "", *listed(spaces), ""]
    parts += ["**It stops with another message:**", "", "| names | message |", "|---|---|"]
    parts += [f"| {', '.join(names)} | `{message}` |" for message, names in others.items()]
    parts.append("")
    parts += ["## How names are called", "", *called(), ""]
    parts += ["## Undocumented modules", "", *private(), "", "## What is not compared", ""]
    parts += [
        "Why MindSpore gives no result to compare for these names, and which tests they have instead:",
        "",
    ]
    reasons: Lists = {}
    for why, space, names in excuses():
        reasons.setdefault(why, {}).setdefault(space, []).extend(names)
    for why, spaces in reasons.items():
        named = (f"`{space}`: {', '.join(sorted(names))}" for space, names in spaces.items())
        parts.append(f"- {why}. {'; '.join(named)}.")
    parts += ["", "## What is not supported"]
    for why in [*(w for w, _ in REASONS), LATER]:
        if why in missing:
            title, _, explanation = why.partition(": ")
            parts += ["", f"### {title}", "", explanation, "", *listed(missing[why])]
    DOCUMENT.write_text("\n".join(parts) + "\n")
    write_page(total)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", nargs="?", choices=["list"], help="the names, from MindSpore")
    write_list() if parser.parse_args().what else write_document()
