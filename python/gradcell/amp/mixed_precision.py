"""Mixed precision: which cells of a network compute in a half type, and which stay in float32.

A level is a rule over the tree of cells. Each cell it touches is marked with the dtype it computes
in and, where that differs, the dtype its output is handed on in; Cell runs by these marks.
Parameters stay float32.
"""

from __future__ import annotations

from typing import Any

from gradcell import _core, nn, ops
from gradcell.base import bad_type, bad_value
from gradcell.nn.cell import Cell, cast_floating
from gradcell.ops.primitive import Primitive

__all__ = ["auto_mixed_precision", "custom_mixed_precision", "get_black_list", "get_white_list"]

_LEVELS = ("O0", "O1", "O2", "O3", "auto")


_PRODUCTS = "Conv2D Conv3D Conv2DTranspose MatMul BatchMatMul PReLU ReLU Ger"


class _Lower(Primitive):
    """A cell's primitive that computes in a half type and returns float32."""

    def __init__(self, primitive: Primitive, dtype: _core.DType) -> None:
        super().__init__(primitive.name, **primitive.attributes)
        self.primitive, self.dtype = primitive, dtype

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        given, named = cast_floating((args, kwargs), self.dtype)
        return cast_floating(self.primitive(*given, **named), _core.float32)


def _lists() -> tuple[list[type[Cell]], list[type[Cell]]]:
    names = [f"Conv{k}d{kind}" for kind in ("", "Transpose") for k in (1, 2, 3)]
    names += ["Dense", "LSTMCell", "RNNCell", "GRUCell"]
    stable = ("BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "LayerNorm")
    return [getattr(nn, n) for n in names], [getattr(nn, n) for n in stable]


def get_white_list() -> list[type[Any]]:
    """A copy of the cells and primitives that level O1 computes in a half type: those of one matrix
    product, and what usually follows it."""
    return [*_lists()[0], *(getattr(ops, n) for n in _PRODUCTS.split())]


def get_black_list() -> list[type[Cell]]:
    """A copy of the cells that level O2 keeps in float32: those that add up many terms."""
    return _lists()[1]


def _unstable() -> tuple[type[Cell], ...]:
    """Return the cells that level auto keeps in float32: the black list, losses, and cells that
    exponentiate."""
    return (*get_black_list(), nn.GroupNorm, nn.LossBase, nn.Softmax, nn.LogSoftmax)


def _mark(cell: Cell, compute: _core.DType, output: _core.DType | None = None) -> None:
    for below in cell._walk():
        below._steer(_cast_to=compute)
    cell._steer(_output_to=output)


def _listed(cell: Cell, kinds: tuple[type[Cell], ...]) -> list[Cell]:
    """The topmost cells of some kinds, each once."""
    if isinstance(cell, kinds):
        return [cell]
    found: dict[int, Cell] = {}
    for child in cell.cells():
        found.update((id(c), c) for c in _listed(child, kinds))
    return list(found.values())


def _lower_listed(network: Cell, white: list[type[Any]], dtype: _core.DType) -> None:
    cells = _listed(network, tuple(white))
    for cell in cells:
        _mark(cell, dtype, _core.float32)
    lowered = {id(below) for cell in cells for below in cell._walk()}
    for cell in network._walk():
        if id(cell) in lowered or type(cell).__module__.startswith("gradcell.nn"):
            continue
        for name, value in vars(cell).items():
            if isinstance(value, tuple(white)) and isinstance(value, Primitive):
                cell.__dict__[name] = _Lower(value, dtype)


def _lower_all_but(network: Cell, black: list[type[Cell]], dtype: _core.DType) -> None:
    _mark(network, dtype, _core.float32)
    for cell in _listed(network, tuple(black)):
        _mark(cell, _core.float32, dtype)
    if isinstance(network, tuple(black)):
        network._steer(_output_to=None)


def _automatic(network: Cell, dtype: _core.DType) -> None:
    for cell in _listed(network, tuple(_lists()[0])):
        _mark(cell, dtype)
    for cell in _listed(network, _unstable()):
        _mark(cell, _core.float32)


def _check_dtype(dtype: Any) -> None:
    if dtype not in (_core.float16, _core.bfloat16):
        bad_value(f"The dtype should be one of (mstype.float16, mstype.bfloat16), but got {dtype}.")


def auto_mixed_precision(
    network: Cell, amp_level: str = "O0", dtype: _core.DType = _core.float16
) -> Cell:
    """Makes a network compute in mixed precision, and returns it. Parameters stay float32.

    amp_level: 'O0' changes nothing. 'O1': cells and primitives of get_white_list() compute in dtype
    and return float32. 'O2': all but those of get_black_list() compute in dtype. 'O3': all compute in dtype.
    'auto': the white list in dtype, normalisations, softmax and losses in float32, every other
    cell in what it is given. The output of O2 and O3 is float32. dtype: float16 or bfloat16.

    Raises TypeError if network is not a Cell, ValueError for another level or dtype.
    """
    if not isinstance(network, Cell):
        bad_type(f"For amp_level '{amp_level}', the network type should be Cell.")
    if amp_level not in _LEVELS:
        bad_value(f"The amp level {amp_level} is not supported")
    if amp_level == "O0":
        return network
    _check_dtype(dtype)
    if amp_level == "O1":
        _lower_listed(network, get_white_list(), dtype)
    elif amp_level == "auto":
        _automatic(network, dtype)
    else:
        _lower_all_but(network, get_black_list() if amp_level == "O2" else [], dtype)
    _core.bump_structure_version()
    return network


def _check_list(name: str, kinds: Any) -> None:
    if not isinstance(kinds, list):
        bad_type(f"The type of {name} should be list, but got {type(kinds)}")
    for kind in kinds:
        if not isinstance(kind, type):
            bad_type(f"The element in {name} should be a class, but got {kind}")


def custom_mixed_precision(
    network: Cell, *, white_list: list[type[Any]] | None = None,
    black_list: list[type[Cell]] | None = None, dtype: _core.DType = _core.float16,
) -> Cell:  # fmt: skip
    """Makes a network compute in mixed precision by a list of your own, and returns it.

    white_list: these cells, and primitives that are attributes of cells, compute in dtype and hand
    on float32. black_list: all cells but these compute in dtype; the output is float32. Exactly one
    of the two. dtype: float16 or bfloat16.

    Raises TypeError if network is not a Cell or a list is not a list of classes, ValueError for none or both
    of the lists or for another dtype.
    """
    if not isinstance(network, Cell):
        bad_type("The network type should be Cell.")
    if white_list is None and black_list is None:
        bad_value("For custom_mixed_precision, one of white_list and black_list must be provided.")
    if white_list is not None and black_list is not None:
        bad_value(
            "For custom_mixed_precision, the white_list or black_list cannot be provided at the same time, "
            "please provide one or the other."
        )
    _check_dtype(dtype)
    if white_list is not None:
        _check_list("white_list", white_list)
        _lower_listed(network, white_list, dtype)
    else:
        _check_list("black_list", black_list)
        _lower_all_but(network, black_list or [], dtype)
    _core.bump_structure_version()
    return network
