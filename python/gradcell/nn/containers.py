"""Cells that hold cells: in sequence, as a list, by name; and a sequence made of widths."""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Callable, ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from typing import TYPE_CHECKING, Any, overload

from gradcell import _core
from gradcell._core import Tensor
from gradcell.base import arguments, bad_index, bad_key, bad_type, bad_value, publish, unsupported
from gradcell.base.signposts import kind_of
from gradcell.nn.activations import get_activation
from gradcell.nn.basic import Dense
from gradcell.nn.cell import Cell, Layer

if TYPE_CHECKING:
    from typing_extensions import Self


def _prefix_of(cells: Mapping[str, Cell]) -> str:
    """Return the prefix of the names of a container's parameters, before a child's own name. It is
    read off the first child that has parameters, as MindSpore does, so that children appended later
    are named alike. Where the child's name is in several positions of the parameter's, it is the
    last, or the first at which the second child's parameter has the second child's name too."""
    with_parameters = (
        (key, p.name.split("."))
        for key, c in cells.items()
        for p in [next(c.get_parameters(), None)]
        if p is not None
    )
    first, second = next(with_parameters, None), next(with_parameters, None)
    prefix = ""
    if first is not None:
        for i, part in enumerate(first[1]):
            if part == first[0]:
                prefix = "".join(f"{name}." for name in first[1][:i])
                if second is not None and second[1][i : i + 1] == [second[0]]:
                    break
    return prefix


def _checked(owner: str, cell: Any) -> None:
    if not isinstance(cell, Cell):
        bad_type(f"For '{owner}', each cell must be subclass of Cell, but got {kind_of(cell)}.")


class _Numbered(Cell):
    """Base class of SequentialCell and CellList, with children named 0, 1, 2, ..."""

    def _put(self, position: int, cell: Any) -> None:
        """A cell at a position, with its prefix; those behind it move up."""
        _checked(type(self).__name__, cell)
        behind = list(self._cells.values())[position:]
        self._renumber([cell, *behind], position)

    def _renumber(self, children: list[Cell], first: int = 0) -> None:
        """Makes children those from `first` on; the others stay."""
        prefix = _prefix_of(self._cells)
        for key in list(self._cells)[first:]:
            del self._cells[key]
        for i, cell in enumerate(children, first):
            self._add_cell(str(i), cell)
            if prefix and self._auto_prefix:
                cell.update_parameters_name(f"{prefix}{i}.")
        if self._may_be_read():
            _core.bump_structure_version()

    @overload
    def __getitem__(self, index: int) -> Cell: ...
    @overload
    def __getitem__(self, index: slice) -> Self: ...
    def __getitem__(self, index: int | slice) -> Any:
        children = list(self._cells.values())
        if not isinstance(index, slice):
            return children[self._position(index)]
        part = self._empty()
        object.__setattr__(part, "_auto_prefix", False)  # the parameters keep their names
        for cell in children[index]:
            part.append(cell)
        return part

    def _empty(self) -> Any:
        """Return what a slice is put into."""
        return type(self)()

    def _position(self, index: Any) -> int:
        n = len(self._cells)
        if not isinstance(index, int) or isinstance(index, bool):
            bad_type(
                f"For '{type(self).__name__}', the index must be int or slice, but got "
                f"{type(index).__name__}."
            )
        if not -n <= index < n:
            bad_index(
                f"For '{type(self).__name__}', the index must be in [{-n}, {n}), but got {index}."
            )
        return index % n

    def __len__(self) -> int:
        return len(self._cells)

    def __iter__(self) -> Iterator[Cell]:
        return iter(list(self._cells.values()))

    def __contains__(self, cell: Any) -> bool:
        return any(cell is c for c in self._cells.values())

    def __setitem__(self, index: int, cell: Cell) -> None:
        children = list(self._cells.values())
        position = self._position(index)
        _checked(type(self).__name__, cell)
        children[position] = cell
        self._renumber(children)

    def __delitem__(self, index: int | slice) -> None:
        children = list(self._cells.values())
        del children[index if isinstance(index, slice) else self._position(index)]
        self._renumber(children)

    def append(self, cell: Cell) -> None:
        """A cell at the end. Raises TypeError if it is none."""
        self._put(len(self), cell)

    def insert(self, index: int, cell: Cell) -> None:
        """A cell before a position. Raises IndexError, TypeError."""
        n = len(self)
        if not isinstance(index, int) or not -n <= index <= n:
            bad_index(
                f"For '{type(self).__name__}', the index must be in [{-n}, {n}], but got {index}."
            )
        self._put(index % n if index < 0 else index, cell)

    def extend(self, cells: Iterable[Cell]) -> Self:
        """Cells at the end. Returns itself. Raises TypeError if it is not a list of cells."""
        if not isinstance(cells, (list, tuple, _Numbered)):
            bad_type(
                f"For '{type(self).__name__}', the cells must be a list, but got {type(cells).__name__}."
            )
        for cell in list(cells):
            self.append(cell)
        return self


class SequentialCell(_Numbered, Layer):
    """Several cells in a row: each gets the result of the one before.

    args: cells, or one list of them, or one OrderedDict of named ones. Input and output: those of
    the first and of the last cell.

    Raises TypeError for anything else.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], (list, tuple)):
            args = tuple(args[0])
        elif len(args) == 1 and isinstance(args[0], dict):
            for name, cell in args[0].items():
                self._check_name("SequentialCell", "name", name, True)
                _checked("SequentialCell", cell)
                self._add_cell(name, cell)
            return
        elif len(args) == 1 and not isinstance(args[0], Cell):
            bad_type(
                "For 'SequentialCell', the 'args[0]' must be Cell, list or orderedDict, but got "
                f"{type(args[0]).__name__}"
            )
        for cell in args:
            self.append(cell)

    def construct(self, input_data: Any, *more: Any) -> Any:
        """The last cell's output; the first one may take several inputs."""
        children = iter(self._cells.values())
        first = next(children, None)
        if first is None:
            return (input_data, *more) if more else input_data
        out = first(input_data, *more)
        for cell in children:
            out = cell(out)
        return out


class _Applied(Cell):
    """A function of a tensor as a cell."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def construct(self, x: Tensor) -> Tensor:
        return self.function(x)

    def extend_repr(self) -> str:
        return getattr(self.function, "__name__", repr(self.function))


def _maker(activation: Any) -> Callable[[], Cell]:
    """Return what gives the activation behind a layer."""
    if isinstance(activation, str):
        return lambda: get_activation(activation)  # type: ignore[return-value]
    if isinstance(activation, Cell):
        return lambda: activation
    if isinstance(activation, type) and issubclass(activation, Cell):
        return activation
    if not callable(activation):
        bad_type(
            "MLP: activation must be a name such as 'tanh', a function such as ops.sin, or a cell, got "
            f"{kind_of(activation)}"
        )
    return lambda: _Applied(activation)


class MLP(SequentialCell):
    """A multilayer perceptron: a fully connected layer between each two widths, with an activation behind
    all but the last.

    widths: the numbers of features, from the input's to the output's: MLP(2, 32, 32, 1) has two hidden
    layers. activation: a name that `get_activation` takes, a function of a tensor, a Cell's class, of
    which each layer has its own, or a Cell, which they share. init: the weights at the beginning,
    anything that `initializer` takes. bias_init: the same for biases; None: uniform within
    ±1/sqrt(inputs), as in Dense. dtype: of the parameters; None: the default dtype.

    Input (..., widths[0]), output (..., widths[-1]). It is a SequentialCell of Dense and activations:
    layers are net[0], net[1], ..., parameters "0.weight", "0.bias", "2.weight", ...

    Raises TypeError for arguments of a wrong type, ValueError for less than two widths, a width below 1 or an
    unknown name of an initialisation, KeyError for an unknown name of an activation.
    """

    def __init__(
        self,
        *widths: int,
        activation: Any = "tanh",
        init: Any = "xavier_uniform",
        bias_init: Any = None,
        dtype: _core.DType | None = None,
    ) -> None:
        if len(widths) == 1 and isinstance(widths[0], (list, tuple)):
            bad_type(f"MLP: widths are given one by one: MLP({', '.join(map(str, widths[0]))})")
        if len(widths) < 2:
            bad_value(
                "MLP: expected the widths of the input, of hidden layers and of the output, as in "
                f"MLP(2, 32, 32, 1), got {', '.join(map(str, widths)) or 'none'}"
            )
        for width in widths:
            arguments.integer(width, "MLP", "widths", 1)
        behind = _maker(activation)
        cells: list[Cell] = []
        for inputs, outputs in itertools.pairwise(widths):
            cells += [Dense(inputs, outputs, init, bias_init, dtype=dtype), behind()]
        super().__init__(*cells[:-1])

    def _empty(self) -> SequentialCell:
        return SequentialCell()


class CellList(_Numbered):
    """A list of cells whose parameters belong to the cell that contains the list.

    args: cells, or one list of them. The list itself cannot be called.

    kwargs: auto_prefix, whether parameters get the number of their cell in front of their names
    (True). Raises TypeError for an element that is not a Cell.
    """

    _lists_cells = True

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(auto_prefix=kwargs.get("auto_prefix", True))
        if len(args) == 1 and isinstance(args[0], (list, tuple, _Numbered)):
            args = tuple(args[0])
        for cell in args:
            self.append(cell)

    def construct(self, *inputs: Any) -> Any:
        """Not defined: a list computes nothing."""
        unsupported("CellList is a list of cells and cannot be called")


class CellDict(Cell):
    """Cells by name, whose parameters belong to the cell that contains it.

    args: none, or one dict, OrderedDict or iterable of (name, cell). It cannot be called itself.

    kwargs: auto_prefix, whether parameters get the name of their cell in front of their names
    (True). Raises TypeError for a name that is not a string or a value that is not a Cell, KeyError
    for a name that is empty, has a dot or is an attribute already.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(auto_prefix=kwargs.get("auto_prefix", True))
        if len(args) > 1:
            bad_type(f"For 'CellDict', at most one argument is taken, but got {len(args)}.")
        if args:
            self.update(args[0])

    def __getitem__(self, key: str) -> Cell:
        if key not in self._cells:
            bad_key(f"CellDict has no cell {key!r}")
        cell: Cell = self._cells[key]
        return cell

    def __setitem__(self, key: str, cell: Cell) -> None:
        if not isinstance(key, str):
            bad_type(f"For 'CellDict', each key must be str, but got {type(key).__name__}.")
        _checked("CellDict", cell)
        if not key or "." in key or (key not in self._cells and hasattr(self, key)):
            bad_key(f"For 'CellDict', the key {key!r} cannot be used.")
        prefix = _prefix_of(self._cells)
        self._add_cell(key, cell)
        if prefix and self._auto_prefix:
            cell.update_parameters_name(f"{prefix}{key}.")

    def __delitem__(self, key: str) -> None:
        self[key]
        del self._cells[key]

    def __len__(self) -> int:
        return len(self._cells)

    def __iter__(self) -> Iterator[str]:
        return iter(self._cells)

    def __contains__(self, key: Any) -> bool:
        return key in self._cells

    def keys(self) -> KeysView[str]:
        """The names."""
        return self._cells.keys()

    def values(self) -> ValuesView[Cell]:
        """The cells."""
        return self._cells.values()

    def items(self) -> ItemsView[str, Cell]:
        """(name, cell) pairs."""
        return self._cells.items()

    def clear(self) -> None:
        """Removes all cells."""
        self._cells.clear()

    def pop(self, key: str) -> Cell:
        """Removes a cell and returns it. Raises KeyError."""
        cell = self[key]
        del self._cells[key]
        return cell

    def update(self, cells: Any) -> None:
        """Takes in the cells of a dict or of (name, cell) pairs."""
        pairs = cells.items() if isinstance(cells, (dict, OrderedDict, CellDict)) else cells
        for key, cell in pairs:
            self[key] = cell

    def construct(self, *inputs: Any) -> Any:
        """Not defined: a dict computes nothing."""
        unsupported("CellDict is a dict of cells and cannot be called")


publish(globals())
