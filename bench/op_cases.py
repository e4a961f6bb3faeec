"""One op a case: its inputs, and the same expression in gradcell and in PyTorch.

The cases are the lines of ops.txt:

    name | inputs | gradcell | PyTorch | notes

Expressions see the inputs by the names below, `ops`, `ms` and `nn` or `torch` and `F`, and
`written(x, write)`: a copy of x after the write. A PyTorch `=` is the same text with torch for ops.
Notes: `by x y`, the inputs that the gradient is by, `-` for none (else all that are floating);
`random`, numbers that cannot be compared; `tolerance`, of the largest magnitude (else 1e-5); `about`,
the public ops that it covers (else the first word of the name).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from inputs import Array

_N = 1000


def _uniform(seed: int, low: float, high: float, *shape: int) -> Array:
    values = np.random.default_rng(seed).uniform(low, high, shape or (_N, _N))
    return values.astype(np.float32)


def _integers(seed: int, low: int, high: int, *shape: int, dtype: Any = np.int32) -> Array:
    return np.random.default_rng(seed).integers(low, high, shape or (_N, _N)).astype(dtype)


def _bools(seed: int) -> Array:
    return np.random.default_rng(seed).random((_N, _N)) < 0.5


def _positive_definite(n: int) -> Array:
    a = np.random.default_rng(17).standard_normal((n, n))
    return (a @ a.T / n + np.eye(n)).astype(np.float32)


#: Every input by its name in the expressions. float32 [1000, 1000] where nothing else is said.
INPUTS: dict[str, Callable[[], Array]] = {
    "x": lambda: _uniform(0, -3, 3),
    "y": lambda: _uniform(1, -3, 3),
    "z": lambda: _uniform(2, -3, 3),
    "p": lambda: _uniform(3, 0.1, 3),
    "q": lambda: _uniform(4, 0.1, 3),
    "u": lambda: _uniform(5, -0.9, 0.9),
    "g": lambda: _uniform(6, 1.1, 4),
    "e": lambda: _uniform(7, 0.05, 0.95),
    "near1": lambda: _uniform(8, 0.99, 1.01),
    "distinct": lambda: (  # an order with no ties
        np.random.default_rng(9).permutation(_N * _N).reshape(_N, _N).astype(np.float32)
    ),
    "v": lambda: _uniform(10, -3, 3, _N * _N),
    "cube": lambda: _uniform(11, -3, 3, 100, 100, 100),
    "row": lambda: _uniform(12, -3, 3, _N),
    "column": lambda: _uniform(13, -3, 3, _N, 1),
    "row2": lambda: _uniform(14, -3, 3, _N),
    "square": lambda: _uniform(15, -1, 1, 256, 256),
    "square2": lambda: _uniform(16, -1, 1, 256, 256),
    "spd": lambda: _positive_definite(128),
    "batch": lambda: _uniform(18, -1, 1, 250, 32, 32),
    "batch2": lambda: _uniform(19, -1, 1, 250, 32, 32),
    "threes": lambda: _uniform(20, -1, 1, 333333, 3),
    "threes2": lambda: _uniform(21, -1, 1, 333333, 3),
    "i": lambda: _integers(22, -1000, 1000),
    "j": lambda: _integers(23, 1, 1000),
    "k": lambda: _integers(24, 0, 8),
    "long": lambda: _integers(25, -1000, 1000, dtype=np.int64),
    "byte": lambda: _integers(26, 0, 255, dtype=np.uint8),
    "b": lambda: _bools(27),
    "c": lambda: _bools(28),
    "half": lambda: _uniform(29, -3, 3).astype(np.float16),
    "double": lambda: _uniform(30, -3, 3).astype(np.float64),
    "rows": lambda: _integers(31, 0, _N, _N, dtype=np.int64),
    "unique_rows": lambda: np.random.default_rng(32).permutation(_N)[:500].astype(np.int64),
    "columns": lambda: _integers(33, 0, _N, _N, dtype=np.int64),
    "at": lambda: _integers(34, 0, _N, dtype=np.int64),
    "order": lambda: np.argsort(np.random.default_rng(35).random((_N, _N)), 1).astype(np.int64),
    "order0": lambda: np.argsort(np.random.default_rng(36).random((_N, _N)), 0).astype(np.int64),
    "labels": lambda: _integers(37, 0, _N, _N, dtype=np.int64),
    "sorted_row": lambda: np.sort(_uniform(38, -3, 3, _N)),
    "count": lambda: _integers(39, 0, 100, _N * _N, dtype=np.int64),
    "signs": lambda: (2 * _bools(40) - 1).astype(np.float32),
    "block": lambda: _uniform(41, -3, 3, 500, _N),
    "log_e": lambda: np.log(_uniform(42, 0.05, 0.95)),
    "mask_row": lambda: np.random.default_rng(43).random(_N) < 0.5,
    "nans": lambda: np.where(_bools(44), np.float32(np.nan), _uniform(44, -3, 3)),
    "long_v": lambda: np.random.default_rng(45).permutation(_N * _N).astype(np.int64),
    "scores": lambda: _uniform(47, -3, 3, 100_000, 10),
    "classes": lambda: _integers(48, 0, 10, 100_000),
    "pictures": lambda: _uniform(49, -3, 3, 10, 10, 100, 100),
    "kernel": lambda: _uniform(50, -1, 1, 10, 10, 3, 3),
    "signals": lambda: _uniform(51, -3, 3, 10, 100, 1000),
    "kernel1": lambda: _uniform(52, -0.2, 0.2, 100, 100, 3),
    "volumes": lambda: _uniform(53, -3, 3, 4, 10, 28, 30, 30),
    "kernel3": lambda: _uniform(54, -0.3, 0.3, 10, 10, 3, 3, 3),
    "where_to": lambda: _uniform(55, -1, 1, 10, 100, 100, 2),
    "targets": lambda: _integers(57, 1, 100, 100, 20),
    "images": lambda: _uniform(46, -3, 3, 10, 100, 10, 100),
}


#: Integers and bools, and floats that stand for some.
NOT_DIFFERENTIABLE = {
    "i", "j", "k", "long", "byte", "b", "c", "rows", "unique_rows", "columns", "at", "order", "order0",
    "labels", "classes", "count", "targets", "mask_row", "signs", "sorted_row", "long_v",
}  # fmt: skip


#: Public functions that PyTorch has no counterpart of, or that work on no elements: transforms,
#: functions of shapes, dtypes, tuples and primitives, views alone, updates of parameters.
NO_COUNTERPART = {
    "add_flags", "approximate_equal", "assign", "assign_add", "assign_sub", "bounding_box_decode",
    "bounding_box_encode", "cbrt", "check_valid", "choice_with_mask", "conj", "crop_and_resize",
    "custom_info_register", "depend", "derivative", "div_no_nan", "dtype", "get_grad", "grad", "identity",
    "imag", "inplace_sub", "inplace_update", "inv", "iou", "is_complex", "is_floating_point", "is_tensor",
    "isreal", "jacfwd", "jacrev", "jet", "jvp", "linearize", "list_len", "make_list", "make_range",
    "make_tuple", "mixed_precision_cast", "numel", "op_info_register", "partial", "pows",
    "prim_attr_register", "print_", "random_categorical", "rank", "real", "reverse_sequence", "scalar_cast",
    "scalar_to_array", "scalar_to_tensor", "scatter_add", "scatter_nd_add", "scatter_nd_sub",
    "scatter_nd_update", "scatter_update", "sequence_mask", "shape", "size", "squared_difference",
    "tensor_scatter_sub", "truncate_mod", "tuple_getitem", "tuple_len", "tuple_reversed", "tuple_setitem",
    "tuple_to_array", "flash_attention_score", "type_as", "typeof", "unique_with_pad", "value_and_grad",
    "vjp", "vmap", "xdivy", "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_tensors", "expand_dims",
    "flatten", "narrow", "ravel", "reshape", "squeeze", "stop_gradient", "t", "unsqueeze", "view_as",
    "clip_by_global_norm", "clip_by_norm", "dsplit", "hsplit", "vsplit",
}  # fmt: skip


@dataclass(frozen=True)
class OpCase:
    """by: the inputs that the gradient is by; none: there is no gradient to compare. tolerance None:
    the numbers are random."""

    group: str
    name: str
    inputs: tuple[str, ...]
    gradcell: str
    torch: str
    by: tuple[str, ...]
    tolerance: float | None
    covers: tuple[str, ...]


def _words(text: str) -> tuple[str, ...]:
    return tuple(w for w in text.split() if w != "-")


def _cases(text: str) -> Iterator[OpCase]:
    group = ""
    for line in text.splitlines():
        if line.startswith("["):
            group = line.strip("[]")
        if "|" not in line:
            continue
        name, inputs, gradcell, torch, *rest = (part.strip() for part in line.split(" | "))
        names = _words(inputs)
        notes = {}
        for note in rest[0].split(", ") if rest else []:
            key, _, value = note.partition(" ")
            notes[key] = value
        floating = " ".join(n for n in names if n not in NOT_DIFFERENTIABLE)
        yield OpCase(
            group,
            name,
            names,
            gradcell,
            gradcell.replace("ops.", "torch.") if torch == "=" else torch,
            _words(notes.get("by", floating)),
            None if "random" in notes else float(notes.get("tolerance", 1e-5)),
            _words(notes.get("about", name.split()[0])),
        )


CASES = list(_cases((Path(__file__).parent / "ops.txt").read_text()))
