"""Methods of Cell for compilation and sharding."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import NoneType
from typing import Any

from gradcell import context
from gradcell._core import Tensor
from gradcell.base import CellBase, bad_key, bad_type, bad_value, notice, where
from gradcell.tensors.parameter import _Buffer
from gradcell.tensors.tensor import declared_shape

_ALONE = "there is one process"


def _described(x: Tensor) -> str:
    sizes = declared_shape(x)
    if sizes == [-2]:
        return f"Tensor[{x.dtype}] of any shape"
    return f"Tensor[{x.dtype}] of shape {[n if n > 0 else None for n in sizes]}"


def _fits(x: Any, declared: Tensor) -> bool:
    if not isinstance(x, Tensor) or x.dtype != declared.dtype:
        return False
    sizes = declared_shape(declared)
    if context.get_context("mode") == context.PYNATIVE_MODE and not any(n > 0 for n in sizes):
        return True
    return sizes == [-2] or (
        x.ndim == len(sizes) and all(n in (-1, 0, m) for n, m in zip(sizes, x.shape, strict=True))
    )


class GraphMode(CellBase):
    """Methods of every Cell: compiling ahead, declared inputs, settings for several processes."""

    # Compiling --------------------------------------------------------------------------------------

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Compiles construct for arguments like these: runs it once and, in GRAPH_MODE, keeps the plan."""
        self(*args, **kwargs)  # type: ignore[operator]

    def compile_and_run(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the cell."""
        return self(*args, **kwargs)  # type: ignore[operator]

    def set_inputs(self, *inputs: Any, **kwargs: Any) -> None:
        """Declares the arguments: tensors whose dtypes and sizes those of a call must have; a size of
        None, as Tensor(shape=[None, 3], dtype=...) has it, or of 0 fits any, and Tensor(shape=None,
        dtype=...) any shape. In PYNATIVE_MODE a shape of such sizes alone fits any shape too.

        Raises ValueError if construct has no argument of a keyword's name.
        """
        if kwargs:
            names = self.construct.__code__.co_varnames[1:]  # type: ignore[attr-defined]
            for name in kwargs:
                if name not in names:
                    bad_value(f"set_inputs: construct has no argument {name!r}")
            inputs = tuple(kwargs.get(name) for name in names[: max(map(names.index, kwargs)) + 1])
        self._steer(_declared=tuple(inputs))  # type: ignore[attr-defined]

    def get_inputs(self) -> Any:
        """Return the inputs that set_inputs has declared, or None."""
        return self.__dict__.get("_declared")

    def _check_inputs(self, args: tuple[Any, ...]) -> None:
        for i, (declared, x) in enumerate(zip(self.__dict__["_declared"], args, strict=False)):
            if isinstance(declared, Tensor) and not _fits(x, declared):
                kind = (
                    TypeError
                    if not isinstance(x, Tensor) or x.dtype != declared.dtype
                    else ValueError
                )
                got = _described(x) if isinstance(x, Tensor) else type(x).__name__
                raise kind(
                    f"{type(self).__name__}: argument {i} is declared by set_inputs as "
                    f"{_described(declared)}, but got {got}{where()}"
                )

    def set_jit_config(self, jit_config: Any) -> None:
        """Keeps a JitConfig: cells are compiled the same way for every one. Raises TypeError for others."""
        if not hasattr(jit_config, "jit_config_dict"):
            bad_type(f"set_jit_config: a JitConfig is needed, got {jit_config!r}")
        object.__setattr__(self, "_jit_config", jit_config)

    @property
    def jit_config_dict(self) -> dict[str, Any]:
        """The options that set_jit_config has been given."""
        config = self.__dict__.get("_jit_config")
        return {} if config is None else dict(config.jit_config_dict)

    def set_boost(self, boost_type: str) -> Any:
        """Warns once: there are no such changes to a network."""
        notice.once("Cell.set_boost", "no network is changed for speed")
        return self

    def update_cell_type(self, cell_type: str) -> None:
        """Keeps the word that MindSpore marks compiled cells with."""
        object.__setattr__(self, "cell_type", cell_type)

    def offload(self, backward_prefetch: Any = "Auto") -> None:
        """Warns once: tensors stay in the device's memory."""
        notice.once("Cell.offload", "tensors stay in the device's memory")

    # Parts ------------------------------------------------------------------------------------------

    def get_sub_cell(self, target: str) -> Any:
        """The cell at a path of attributes below this one, itself for ''. Raises AttributeError."""
        cell: Any = self
        for name in target.split(".") if target else ():
            cell = cell._cells.get(name)
            if cell is None:
                raise AttributeError(
                    f"get_sub_cell: {type(self).__name__} has no cell at {target!r}{where()}"
                )
        return cell

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Makes a tensor that is no parameter an attribute; in-place ops change it, and load_state_dict.

        name: the attribute's. tensor: a Tensor, or None for a place without one. persistent: whether
        state_dict has it. Raises TypeError for another kind of name or tensor, KeyError for a name that is
        empty, has a dot or is in use.
        """
        self._check_name("register_buffer", "name", name, True)  # type: ignore[attr-defined]
        if hasattr(self, name) and not isinstance(getattr(self, name), (_Buffer, NoneType)):
            bad_key(f"register_buffer: the attribute {name!r} already exists")
        setattr(self, name, None if tensor is None else _Buffer(tensor, persistent=persistent))

    def _buffers(self, prefix: str = "", recurse: bool = True) -> Iterator[tuple[str, _Buffer]]:
        for path, cell in self.cells_and_names() if recurse else [("", self)]:  # type: ignore[attr-defined]
            for name, value in vars(cell).items():
                if isinstance(value, _Buffer):
                    yield ".".join(filter(None, (prefix, path, name))), value

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """(path of attributes, tensor) of every buffer of this cell and those below.

        prefix: what paths begin with. recurse: False leaves out those of cells below. remove_duplicate:
        whether a tensor of several paths comes once.
        """
        seen: set[int] = set()
        for path, value in self._buffers(prefix, recurse):
            if not remove_duplicate or id(value) not in seen:
                seen.add(id(value))
                yield path, value

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Every buffer, each once; recurse False leaves out those of cells below."""
        return (value for _, value in self.named_buffers(recurse=recurse))

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at a path of attributes. Raises AttributeError where there is none."""
        path, _, name = target.rpartition(".")
        found = vars(self.get_sub_cell(path)).get(name)
        if not isinstance(found, _Buffer):
            raise AttributeError(
                f"get_buffer: {type(self).__name__} has no buffer {target!r}{where()}"
            )
        return found

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True
    ) -> tuple[list[str], list[str]]:
        """Gives parameters the values that state_dict has for their paths: (paths that it lacks, paths
        that are none). Raises ValueError for either if strict, and for a shape that differs."""
        own = self.state_dict()  # type: ignore[attr-defined]
        missing = [path for path in own if path not in state_dict]
        unexpected = [path for path in state_dict if path not in own]
        if strict and (missing or unexpected):
            bad_value(
                f"load_state_dict: parameters without a value: {missing}, values without a parameter: "
                f"{unexpected}"
            )
        for path, p in own.items():
            value = state_dict.get(path)
            if value is not None and tuple(value.shape) != tuple(p.shape):
                bad_value(
                    f"load_state_dict: {path} has shape {list(p.shape)}, its value {list(value.shape)}"
                )
        for path, p in own.items():
            if path in state_dict:
                p.set_data(state_dict[path])
        return missing, unexpected

    # Several processes ------------------------------------------------------------------------------

    def set_comm_fusion(self, fusion_type: Any = None, recurse: bool = True) -> Any:
        """Accept a choice of gradients to sum together over processes; it changes nothing."""
        return self

    def set_data_parallel(self) -> Any:
        """Every process has all parameters: so it is with one."""
        return self

    def set_broadcast_flag(self, mode: bool = True) -> Any:
        """Parameters begin with the values of process 0: so they do with one."""
        return self

    def parameters_broadcast_dict(self, recurse: bool = True) -> dict[str, Any]:
        """The parameters by name, whose values process 0 gives to all."""
        return dict(self.parameters_dict(recurse))  # type: ignore[attr-defined]

    def shard(self, in_strategy: Any, out_strategy: Any = None, parameter_plan: Any = None) -> Any:
        """The cell itself. Warns once: with one process nothing is divided."""
        notice.once("Cell.shard", _ALONE)
        return self
