"""Checkpoints: parameters, optimiser and loss-scale state, and the random generators, in one file
of MindSpore's format (.ckpt) or of safetensors.

A file is written whole or not at all: under another name first, flushed to the disk, then renamed.
It carries a checksum of each tensor, so that a damaged file is found when it is read, before any
network is touched.
"""

from __future__ import annotations

import glob
import json
import os
import re
import warnings
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from gradcell import _core
from gradcell._core import Tensor
from gradcell.base import arguments, bad_type, bad_value, unsupported, where
from gradcell.base.convert import little_endian
from gradcell.base.whole_file import write_whole
from gradcell.communication.comm_func import part_of
from gradcell.communication.management import get_rank
from gradcell.files import pytorch
from gradcell.nn.cell import Cell
from gradcell.ops.random.state import random_state as state_now, set_random_state
from gradcell.tensors.parameter import Parameter
from gradcell.train import ckpt

_TYPES = {
    "bool": "BOOL", "uint8": "U8", "uint16": "U16", "uint32": "U32", "uint64": "U64", "int8": "I8",
    "int16": "I16", "int32": "I32", "int64": "I64", "float16": "F16", "bfloat16": "BF16",
    "float32": "F32", "float64": "F64", "complex64": "C64",
}  # fmt: skip
_NAMES = {code: name for name, code in _TYPES.items()}
_FORMAT = "gradcell checkpoint 1"


# Writing ------------------------------------------------------------------------------------------


def _named(save_obj: Any) -> list[tuple[str, Tensor]]:
    if isinstance(save_obj, Cell):
        return [(p.name, p) for p in save_obj.get_parameters()]
    if isinstance(save_obj, dict):
        return list(save_obj.items())
    if isinstance(save_obj, (list, tuple)):
        if all(isinstance(i, Parameter) for i in save_obj):
            return [(p.name, p) for p in save_obj]
        if all(isinstance(i, dict) and {"name", "data"} <= set(i) for i in save_obj):
            return [(i["name"], i["data"]) for i in save_obj]
    bad_type(
        "save_checkpoint: expected a Cell, a dict of tensors, a list of Parameters or of dicts with 'name' "
        f"and 'data', but got {type(save_obj).__name__}"
    )


_SAVED_FIRST = "; it is save_checkpoint(net, path)"


def _path(name: Any, form: str, owner: str, folder: type[OSError | ValueError]) -> str:
    """The file's path, with the ending of the format. Raises TypeError for anything that is not a name,
    ValueError for an empty one and another format, `folder` for a folder's."""
    if not isinstance(name, (str, os.PathLike)):
        bad_type(
            f"For '{owner}', the 'ckpt_file_name' must be string, but got "
            f"{type(name).__name__}{_SAVED_FIRST * (owner == 'save_checkpoint')}"
        )
    if form not in ("ckpt", "safetensors"):
        bad_value(f"{owner}: 'format' must be 'ckpt' or 'safetensors', got {form!r}")
    path = os.fspath(name)
    if not path:
        bad_value(f"{owner}: 'ckpt_file_name' is empty")
    if os.path.isdir(path) or path.endswith(os.sep):
        raise folder(f"{owner}: {path!r} is a folder; it must be a file's name{where()}")
    endings = (".ckpt", ".safetensors") if form == "ckpt" else (".safetensors",)
    return path if path.endswith(endings) else f"{path}.{form}"


def _serialize(
    arrays: dict[str, tuple[str, list[int], np.ndarray]], metadata: dict[str, str]
) -> bytes:
    """The bytes of a safetensors file."""
    import safetensors as package

    made: dict[str, Any] = {}
    for name, (dtype, shape, array) in arrays.items():
        if hasattr(package, "TensorSpec"):
            where_ = {"data_ptr": array.ctypes.data, "data_len": array.nbytes}
            made[name] = package.TensorSpec(dtype=dtype, shape=shape, **where_)
        else:  # before safetensors 0.8
            made[name] = {"dtype": dtype, "shape": shape, "data": array.tobytes()}
    return bytes(package.serialize(made, metadata))


def _put_together(items: dict[str, Any]) -> bool:
    """Replaces parts of parameters that processes share out by the whole. Whether there are any."""
    cut = {n: v for n, v in items.items() if getattr(v, "shards", None) is not None}
    for name, part in cut.items():
        shards = part.shards
        shape = [part.shape[0] * shards.size, *part.shape[1:]]
        items[name] = shards.gathered([part.value()], [shape])[0]
    return bool(cut)


def save_checkpoint(
    save_obj: Any, ckpt_file_name: str, integrated_save: bool = True, async_save: bool = False,
    append_dict: dict[str, Any] | None = None, enc_key: Any = None, enc_mode: str = "AES-GCM",
    choice_func: Callable[[str], bool] | None = None, crc_check: bool = False, format: str = "ckpt",
    **unused: Any,
) -> None:  # fmt: skip
    """Writes parameters to a file, as they are at one time. The file is complete or not written at all.

    save_obj: a Cell (a training cell holds the optimiser's and the loss scale's parameters too), a
    dict from name to tensor, a list of Parameters, or a list of dicts with 'name' and 'data'.
    ckpt_file_name: what it ends in, '.ckpt' or '.safetensors', says the format: MindSpore's own,
    which MindSpore reads too, or safetensors; otherwise the ending of `format` is appended.
    append_dict: more to save, tensors, numbers or strings. choice_func: which names to save.
    crc_check: put MindSpore's checksum at the end of a .ckpt (there is one of each tensor anyway).
    The state of the random generators is saved too. Of an optimiser's state that processes share
    out the whole is saved: all of them call this, and rank 0 writes. integrated_save and async_save
    have no effect. enc_mode: encryption, which gradcell does not have. unused: options of MindSpore
    that have no effect in gradcell.

    Raises TypeError for another kind of object, ValueError for a name that appears twice,
    NotImplementedError for enc_key, OSError if the file cannot be written, IsADirectoryError for a
    folder among it.
    """
    if enc_key is not None:
        unsupported("save_checkpoint: encryption is not implemented")
    arguments.boolean(integrated_save, "save_checkpoint", "integrated_save")
    if append_dict is not None and not isinstance(append_dict, dict):
        bad_type(f"save_checkpoint: append_dict must be a dict, got {type(append_dict).__name__}")
    path = _path(ckpt_file_name, format, "save_checkpoint", IsADirectoryError)
    if not os.path.isdir(os.path.dirname(os.path.abspath(path))):
        raise FileNotFoundError(f"save_checkpoint: there is no folder for {path!r}{where()}")
    items: dict[str, Any] = {}
    texts: dict[str, str] = {}
    value: Any
    for name, value in _named(save_obj):
        if not isinstance(name, str) or not isinstance(value, (Tensor, np.ndarray)):
            kind = type(value).__name__
            bad_type(f"save_checkpoint: expected tensors by name, got {kind} for {name!r}")
        if name in items:
            bad_value(f"save_checkpoint: the name {name!r} appears twice")
        if choice_func is None or choice_func(name):
            items[name] = value
    for name, value in (append_dict or {}).items():
        if name in items:
            bad_value(f"save_checkpoint: the name {name!r} appears twice")
        if isinstance(value, str):
            texts[name] = value
        elif isinstance(value, (bool, int, float, Tensor, np.ndarray, np.generic)):
            items[name] = value
        else:
            bad_type(
                f"save_checkpoint: append_dict[{name!r}] must be a tensor, a number or a string, got "
                f"{type(value).__name__}"
            )
    if _put_together(items) and get_rank() != 0:
        return
    tensors = {n: v for n, v in items.items() if isinstance(v, Tensor)}
    # As they are at one time, whoever trains them meanwhile.
    items.update(zip(tensors, _core.snapshot(list(tensors.values())), strict=True))
    arrays: dict[str, tuple[str, list[int], np.ndarray]] = {}
    sums = {}
    for name, value in items.items():
        if isinstance(value, float):
            value = np.float64(value)
        t = value if isinstance(value, Tensor) else Tensor(value)
        dtype, shape = t.dtype.name, list(t.shape)
        array = np.ascontiguousarray(t._numpy())
        arrays[name] = (dtype, shape, array)
        sums[name] = ckpt.checksum(name, _TYPES[dtype], shape, array)
    if path.endswith(".ckpt"):
        about = {"format": _FORMAT, "random_state": state_now()}
        write_whole(path, ckpt.serialize(arrays, texts, about, crc_check))
        return
    told = {"checksums": sums, "order": list(items), "texts": texts}
    metadata = {"format": _FORMAT, **{name: json.dumps(what) for name, what in told.items()}}
    metadata["random_state"] = state_now()
    metadata["checksum"] = str(ckpt.checksum_of(metadata))
    write_whole(path, _serialize(arrays, metadata))


# Reading ------------------------------------------------------------------------------------------


def _header(data: bytes, fail: Callable[[str], NoReturn]) -> tuple[dict[str, Any], int]:
    """(the header, where the tensors begin)."""
    if len(data) < 8:
        fail(f"truncated: {len(data)} bytes, less than the 8 of the header's length")
    length = int.from_bytes(data[:8], "little")
    if length > len(data) - 8:
        fail(
            f"truncated, or not a safetensors file: the header should be {length} bytes from byte 8, "
            f"the file has {len(data)}"
        )
    try:
        header = json.loads(data[8 : 8 + length])
    except ValueError as error:
        fail(f"corrupted: the header (bytes 8 to {8 + length}) is not JSON: {error}")
    if not isinstance(header, dict):
        fail("corrupted: the header is not a JSON object")
    return header, 8 + length


def _read(path: str) -> tuple[dict[str, Tensor], dict[str, str], dict[str, str]]:
    """(tensors, texts, metadata) of a file, every byte of it checked. Raises ValueError that says what is
    wrong and where."""

    def fail(what: str) -> NoReturn:
        bad_value(f"load_checkpoint: {path}: {what}")

    try:
        with open(path, "rb") as file:
            data = file.read()
    except FileNotFoundError as error:
        raise ValueError(f"load_checkpoint: there is no file {path!r}{where()}") from error
    if data.startswith(b"PK\x03\x04") and pytorch.is_pytorchs(path):
        return (*_flat(pytorch.read(path)), {})
    if data.startswith(pytorch.OLD):
        fail(
            "a pickle, as PyTorch wrote before its version 1.6, and such a file could run anything. With "
            'PyTorch: torch.save(torch.load(path, weights_only=True), "weights.pt")'
        )
    if ckpt.is_ckpt(data):
        return ckpt.read(path, data)
    header, start = _header(data, fail)
    metadata = header.pop("__metadata__", {})
    ours = metadata.get("format") == _FORMAT
    if ours:
        rest = {k: v for k, v in metadata.items() if k != "checksum"}
        if str(ckpt.checksum_of(rest)) != metadata.get("checksum"):
            fail(f"corrupted: the checksum of the header (bytes 8 to {start}) does not match")
    sums = json.loads(metadata["checksums"]) if ours else {}
    for name in sums:
        if name not in header:
            fail(f"corrupted: the header has lost the tensor {name!r}")
    end = start
    tensors: dict[str, Tensor] = {}
    for name, entry in header.items():
        try:
            code, shape = entry["dtype"], [int(n) for n in entry["shape"]]
            first, last = (start + int(o) for o in entry["data_offsets"])
        except (KeyError, TypeError, ValueError) as error:
            fail(f"corrupted: the header's entry of {name!r}: {error}")
        what = f"the tensor {name!r}"
        if last > len(data):
            fail(f"truncated: {what} lies in bytes {first} to {last}, the file has {len(data)}")
        if code not in _NAMES:
            fail(f"{what} has the unknown dtype {code}")
        dtype = getattr(_core, _NAMES[code])
        part = data[first:last]
        if first < start or len(part) != int(np.prod(shape, dtype=np.int64)) * dtype.itemsize:
            fail(f"corrupted: {what} has {len(part)} bytes for shape {shape}")
        if ours and sums.get(name) != ckpt.checksum(name, code, shape, part):
            fail(f"corrupted: the checksum of {what} (bytes {first} to {last}) does not fit")
        tensors[name] = _tensor(part, dtype, shape)
        end = max(end, last)
    if end != len(data):
        fail(f"corrupted: {len(data) - end} bytes too many after byte {end}")
    order = json.loads(metadata["order"]) if ours else list(tensors)
    texts = json.loads(metadata["texts"]) if ours else {}
    return {name: tensors[name] for name in order}, texts, metadata


def _flat(saved: Any) -> tuple[dict[str, Tensor], dict[str, str]]:
    """(tensors, texts) of what torch.save was given, by the path of keys that leads to each."""
    tensors: dict[str, Tensor] = {}
    texts: dict[str, str] = {}

    def visit(path: str, value: Any) -> None:
        if isinstance(value, dict):
            parts = value.items()
        elif isinstance(value, (list, tuple)):
            parts = enumerate(value)  # type: ignore[assignment]
        else:
            if isinstance(value, str):
                texts[path] = value
            elif value is not None:
                tensors[path] = Tensor(np.asarray(value))
            return
        for key, part in parts:
            visit(f"{path}.{key}" if path else str(key), part)

    visit("", saved)
    return tensors, texts


def _tensor(data: bytes, dtype: _core.DType, shape: list[int]) -> Tensor:
    array = np.frombuffer(data, little_endian(dtype)).reshape(shape).copy()
    return _core.from_numpy(array, dtype)


def load_checkpoint(
    ckpt_file_name: str, net: Cell | None = None, strict_load: bool = False, filter_prefix: Any = None,
    dec_key: Any = None, dec_mode: str = "AES-GCM", specify_prefix: Any = None,
    choice_func: Callable[[str], bool] | None = None, crc_check: bool = False,
    remove_redundancy: bool = False, format: str = "ckpt", random_state: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Reads a checkpoint of gradcell or MindSpore, a safetensors file of another program, or a file of
    torch.save, without PyTorch; its first bytes decide which format it is. What torch.save was given in dicts
    and lists gets names such as "model.0.weight"; its bfloat16 comes as float32.

    net: a Cell to load into at once. filter_prefix, specify_prefix: a prefix, or several, of names
    to leave out, or to take only. choice_func: which names to take. random_state: also put the
    random generators into the state they were saved in. crc_check, remove_redundancy: for
    compatibility with MindSpore; sums are checked where a file has them. ckpt_file_name: the path
    of the file. strict_load: whether dtypes must be equal. dec_key, dec_mode: encryption, which
    gradcell does not have.

    Returns a dict from name to Parameter (strings of append_dict as they are). Raises ValueError
    for a missing, truncated or corrupted file, with the place of the damage, and for a folder,
    TypeError for anything that is not a name; nothing is changed
    then.
    """
    if dec_key is not None:
        unsupported("load_checkpoint: encryption is not implemented")
    with_ending = _path(ckpt_file_name, format, "load_checkpoint", ValueError)
    path = os.fspath(ckpt_file_name)
    if not os.path.exists(path) and os.path.exists(with_ending):
        path = with_ending
    tensors, texts, metadata = _read(path)

    def wanted(name: str) -> bool:
        if filter_prefix is not None and name.startswith(_prefixes(filter_prefix)):
            return False
        if specify_prefix is not None and not name.startswith(_prefixes(specify_prefix)):
            return False
        return choice_func is None or choice_func(name)

    found: dict[str, Any] = {n: Parameter(t, name=n) for n, t in tensors.items() if wanted(n)}
    if net is not None:
        load_param_into_net(net, found, strict_load)
    if random_state:
        if "random_state" not in metadata:
            bad_value(f"load_checkpoint: {path}: it contains no state of random generators")
        set_random_state(metadata["random_state"])
    return {**found, **{n: t for n, t in texts.items() if wanted(n)}}


def _prefixes(given: Any) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def load_param_into_net(
    net: Cell, parameter_dict: dict[str, Any], strict_load: bool = False,
    remove_redundancy: bool = False,
) -> tuple[list[str], list[str]]:  # fmt: skip
    """Sets the parameters of a Cell to those of the same name.

    parameter_dict: from name to Parameter, as load_checkpoint gives. strict_load: without it a saved
    parameter of another floating dtype is cast, and where a name is not in the dict but another is that
    ends in it (the network was saved as part of a larger one), all that have this beginning are taken
    without it, with a warning. remove_redundancy: for compatibility. Returns (names of net's parameters
    that were not in the dict, names in the dict that net does not have). Warns of the former.

    Raises TypeError for wrong types or dtypes, ValueError for another shape; then net is as it was.
    """
    if not isinstance(net, Cell):
        bad_type(
            f"load_param_into_net: expected a Cell, got {type(net).__name__}; it is load_param_into_net(net, "
            "parameters)"
        )
    if not isinstance(parameter_dict, dict):
        bad_type(
            f"load_param_into_net: expected a dict, got {type(parameter_dict).__name__}; "
            "load_checkpoint(path) reads one from a file"
        )
    arguments.boolean(strict_load, "load_param_into_net", "strict_load")
    for name, value in parameter_dict.items():
        if not isinstance(value, (Tensor, str)):  # strings are of append_dict
            kind = type(value).__name__
            bad_type(f"load_param_into_net: {name!r} must be a Parameter, got {kind}")
    own = {p.name: p for p in net.get_parameters()}
    saved = {name: name for name in own if name in parameter_dict}
    if not strict_load:
        saved |= _with_prefixes([n for n in own if n not in saved], parameter_dict)
    changes: list[tuple[Parameter, Tensor]] = []
    for of_net, name in saved.items():
        p, value = own[of_net], parameter_dict[name]
        if not isinstance(value, Tensor):
            kind = type(value).__name__
            bad_type(f"load_param_into_net: {name!r} must be a Parameter, got {kind}")
        value = _own_part(p, value)
        _check_fits(name, p, value, strict_load)
        changes.append((p, value))
    for p, value in changes:
        p.set_data(_copied(value))
    missing = [n for n in own if n not in saved]
    if missing:
        warnings.warn(
            f"load_param_into_net: {len(missing)} of {len(own)} parameters are not in "
            f"parameter_dict and stay as they were: {', '.join(map(repr, missing[:10]))}"
            f"{', ...' if len(missing) > 10 else ''}{where()}",
            RuntimeWarning,
            stacklevel=2,
        )
    used = set(saved.values())
    return missing, [n for n in parameter_dict if n not in used]


def _with_prefixes(missing: list[str], parameter_dict: dict[str, Any]) -> dict[str, str]:
    """By the names that are missing, those that are saved with a prefix before them."""
    lengths, wanted = {len(n) for n in missing}, set(missing)
    ends = {s[-n:]: s for s in reversed(parameter_dict) for n in lengths if s[-n:] in wanted}
    found: dict[str, str] = {}
    while name := next((n for n in missing if n in ends), None):
        prefix = ends[name][: -len(name)]
        taken = {n: prefix + n for n in missing if prefix + n in parameter_dict}
        warnings.warn(
            f"load_param_into_net: {len(taken)} parameters are saved with {prefix!r} before their names, "
            f"such as {next(iter(taken.values()))!r}; they are taken without it{where()}",
            RuntimeWarning,
            stacklevel=3,
        )
        found |= taken
        missing = [n for n in missing if n not in taken]
    return found


def _update_param(param: Parameter, new_param: Tensor, strict_load: bool = False) -> None:
    """MindSpore's name for setting one parameter, with load_param_into_net's checks."""
    new_param = _own_part(param, new_param)
    _check_fits(param.name, param, new_param, strict_load)
    param.set_data(_copied(new_param))


def _own_part(p: Parameter, value: Tensor) -> Tensor:
    """Return this process's part of a saved parameter: all of it, unless p is shared out."""
    if p.shards is None or list(value.shape) != [p.shape[0] * p.shards.size, *p.shape[1:]]:
        return value
    return part_of(value, p.shards.size, p.shards.rank)


def _copied(value: Tensor) -> Tensor:
    return value.value().copy() if isinstance(value, Parameter) else value.copy()


def _check_fits(name: str, p: Parameter, value: Tensor, strict: bool) -> None:
    if tuple(p.shape) != tuple(value.shape):
        bad_value(
            f"load_param_into_net: {name!r} has shape {list(p.shape)} in the network and {list(value.shape)} "
            "in the checkpoint"
        )
    castable = not strict and p.dtype.is_floating and value.dtype.is_floating
    if p.dtype != value.dtype and not castable:
        bad_type(
            f"load_param_into_net: {name!r} is {p.dtype} in the network and {value.dtype} in the checkpoint"
        )


def _converter(name: str, before: str, after: str) -> Callable[..., None]:
    """The function of this name, from files that end in `before` to such that end in `after`."""

    def convert(
        file_path: str, save_path: str | None = None, name_map: dict[str, str] | None = None,
        file_name_regex: str | None = None, processes_num: int = 1,
    ) -> None:  # fmt: skip
        folder, files = os.path.dirname(file_path), [file_path]
        if os.path.isdir(file_path):
            folder, wanted = file_path, re.compile(file_name_regex or "")
            found = sorted(glob.glob(os.path.join(glob.escape(folder), "rank*", f"*{before}")))
            files = [f for f in found if wanted.search(os.path.basename(f))]
        if not files or not all(os.path.isfile(f) and f.endswith(before) for f in files):
            bad_value(f"{name}: {file_path!r} is no {before} file or folder of rank folders")
        for file in files:
            target = os.path.join(save_path or folder, os.path.relpath(file, folder or "."))
            os.makedirs(os.path.dirname(target) or ".", exist_ok=True)
            saved = load_checkpoint(file, format=before[1:]).items()
            named = {(name_map or {}).get(n, n): v for n, v in saved}
            texts = {n: v for n, v in named.items() if isinstance(v, str)}
            tensors = {n: v for n, v in named.items() if n not in texts}
            target = target.removesuffix(before) + after
            save_checkpoint(tensors, target, append_dict=texts, format=after[1:])

    convert.__name__ = convert.__qualname__ = name
    convert.__doc__ = f"""Writes the parameters of a {before} file, or of those in a folder's rank folders, as
    {after}.

    file_path: the file or folder. save_path: the folder to write to, by default the same. name_map: new names
    by old ones. file_name_regex: which files of a folder, by default all. processes_num has no effect. Raises
    ValueError for another file.
    """
    return convert


ckpt_to_safetensors: Callable[..., None] = _converter(
    "ckpt_to_safetensors", ".ckpt", ".safetensors"
)
safetensors_to_ckpt: Callable[..., None] = _converter(
    "safetensors_to_ckpt", ".safetensors", ".ckpt"
)
