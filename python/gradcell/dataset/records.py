"""TFRecordDataset: rows of TensorFlow's Example messages, and Schema, which says their columns."""

from __future__ import annotations

import json
import mmap
import os
from typing import Any, NoReturn

import numpy as np

from gradcell.base import arguments, bad_value, unsupported
from gradcell.dataset.files import _matching
from gradcell.dataset.rows import Row, column_names
from gradcell.dataset.sources import IndexedDataset, Shuffle
from gradcell.dataset.transforms import _numpy_dtype
from gradcell.files.protobuf import WireError, fields, read_varint, signed
from gradcell.files.records import intact, places

__all__ = ["Schema", "TFRecordDataset"]


class Schema:
    """The columns of a dataset: names, dtypes, shapes; from a JSON file of MindSpore's, or by
    add_column.

    schema_file: the path of a JSON file, or None. Raises ValueError for a bad file.
    """

    def __init__(self, schema_file: str | None = None) -> None:
        self.columns: list[dict[str, Any]] = []
        self.num_rows: int | None = None
        if schema_file is not None:
            self._read(schema_file)

    def _read(self, path: str) -> None:
        try:
            with open(path) as file:
                found = json.load(file)
            columns = found["columns"]
            named = columns if isinstance(columns, dict) else {c["name"]: c for c in columns}
            for name, column in named.items():
                self.add_column(name, column["type"], column.get("shape"))
            self.num_rows = found.get("numRows")
        except OSError as error:
            bad_value(f"Schema: cannot read {path}: {error.strerror}")
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            bad_value(f"Schema: {path} is not a schema: {error}")

    def add_column(self, name: str, de_type: Any, shape: list[int] | None = None) -> None:
        """Adds a column; a shape has at most one unknown length, -1."""
        dtype = np.dtype(str) if de_type == "string" else _numpy_dtype(de_type, "Schema", "de_type")
        if any(column["name"] == name for column in self.columns):
            bad_value(f"Schema.add_column: there is a column {name!r} already")
        dims = None if shape is None else [arguments.integer(n, "Schema", "shape") for n in shape]
        self.columns.append({"name": name, "type": dtype, "shape": dims})


class TFRecordDataset(IndexedDataset):
    """Rows of TFRecord files: numbers as int64 or float32 of one axis, or as the schema says; bytes
    as arrays of bytes.

    dataset_files: a name, a pattern or a list of them. schema: a Schema or its file; by default the
    first row's columns. columns_list: which columns. shuffle: all rows, only the files' order
    (Shuffle.FILES), or neither. shard_equal_rows has no effect. compression_type: must be None,
    else NotImplementedError is raised. Raises ValueError for missing or damaged files.
    """

    def __init__(
        self, dataset_files: Any, schema: Any = None, columns_list: list[str] | None = None,
        num_samples: int | None = None, num_parallel_workers: int | None = None,
        shuffle: Any = Shuffle.GLOBAL, num_shards: int | None = None, shard_id: int | None = None,
        shard_equal_rows: bool = False, cache: Any = None, compression_type: Any = None,
    ) -> None:  # fmt: skip
        owner = "TFRecordDataset"
        if compression_type is not None:
            unsupported(f"{owner}: packed files are not implemented")
        mixed = shuffle in (True, Shuffle.GLOBAL, Shuffle.INFILE)
        super().__init__(None, mixed, num_shards, shard_id, num_samples, num_parallel_workers)
        self.shuffled_files: bool = shuffle == Shuffle.FILES and num_shards is None
        self._places: list[tuple[int, int, int]] = []
        self._data: list[memoryview] = []
        self._paths = _matching(owner, dataset_files)
        for k, path in enumerate(self._paths):
            self._open(k, path)
        self._count = len(self._places)
        if isinstance(schema, (str, os.PathLike)):
            schema = Schema(os.fspath(schema))
        self._about = {} if schema is None else {c["name"]: c for c in schema.columns}
        if columns_list is not None:
            self.names: list[str] = column_names(owner, columns_list)
        elif schema is not None:
            self.names = [column["name"] for column in schema.columns]
        else:
            if not self._count:
                bad_value(f"{owner}: there are no rows")
            self.names = sorted(self._example(0))

    def _open(self, k: int, path: str) -> None:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else b"")
        try:
            self._places.extend((k, a, b) for a, b in places(data))
        except ValueError as error:
            bad_value(f"TFRecordDataset: {path}: {error}")
        self._data.append(data)

    def _indices(self, epoch: int) -> np.ndarray:
        found = super()._indices(epoch)
        if not self.shuffled_files:
            return found
        order = np.argsort(self._random(epoch).permutation(len(self._paths)))
        files = np.array([self._places[i][0] for i in found], np.int64)
        return found[np.argsort(order[files], kind="stable")]

    def _example(self, i: int) -> dict[str, np.ndarray]:
        k, a, b = self._places[i]

        def fail(what: str) -> NoReturn:
            bad_value(f"TFRecordDataset: {self._paths[k]}: row at byte {a}: {what}")

        if not intact(self._data[k], a, b):
            fail("corrupted: its checksum is another one")
        try:
            return {
                name: values
                for _, features, _ in _messages(self._data[k][a:b])
                for _, entry, _ in _messages(features)
                for name, values in [_feature(entry)]
            }
        except (WireError, UnicodeDecodeError) as error:
            fail(f"corrupted or no Example: {error}")

    def _row(self, i: int) -> Row:
        found = self._example(i)
        row = []
        for name in self.names:
            if name not in found:
                bad_value(f"TFRecordDataset: row {i} has no {name!r}, but {sorted(found)}")
            values, about = found[name], self._about.get(name)
            if about is not None:
                if about["type"].kind != "U" and values.dtype.kind != "S":
                    values = values.astype(about["type"])
                elif values.dtype.kind == "S" and about["type"] == np.uint8:
                    values = np.frombuffer(bytes(values[0]), np.uint8)
                if about["shape"] is not None:
                    try:
                        values = values.reshape(about["shape"])
                    except ValueError:
                        bad_value(
                            f"TFRecordDataset: {name!r} of row {i} has {values.size} values, not "
                            f"the shape {about['shape']}"
                        )
            row.append(values)
        return tuple(row)


def _messages(data: memoryview) -> list[tuple[int, memoryview, int]]:
    """The fields of a message that are messages themselves."""
    return [(n, v, at) for n, v, at in fields(data) if not isinstance(v, int)]


def _feature(entry: memoryview) -> tuple[str, np.ndarray]:
    """(name, values) of an entry of the map of features."""
    name, values = "", np.zeros(0, np.float32)
    for number, part, _ in _messages(entry):
        if number == 1:
            name = str(part, "utf-8")
        for kind, held, at in _messages(part) if number == 2 else ():
            values = _values(kind, held, at)
    return name, values


def _values(kind: int, held: memoryview, at: int) -> np.ndarray:
    if kind == 1:
        return np.array([bytes(v) for _, v, _ in _messages(held)], object).astype("S")
    parts = [v for _, v, _ in fields(held)]
    if kind == 2:
        joined = b"".join(bytes(v) for v in parts if not isinstance(v, int))
        if len(joined) % 4:
            raise WireError("floats that end too early", at)
        return np.frombuffer(joined, "<f4").astype(np.float32)
    if kind != 3:
        raise WireError(f"a feature of the unknown kind {kind}", at)
    numbers: list[int] = []
    for part in parts:
        if isinstance(part, int):
            numbers.append(signed(part))
            continue
        place = 0
        while place < len(part):
            value, place = read_varint(part, place)
            numbers.append(signed(value))
    return np.array(numbers, np.int64)
