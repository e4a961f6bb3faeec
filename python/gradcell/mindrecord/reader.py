"""MindRecord files, read.

A file is its header (its length in 8 bytes, then JSON, padded to header_size) and pages of
page_size. A blob page holds the blob parts of rows start_row_id to end_row_id, each behind its
length (64 bits, little-endian); the same rows' numbers are in a raw page, at the offset that it
gives for the row group with the blob page's page_type_id. The index (.db) that lies beside each file is not
needed to read it.
"""

from __future__ import annotations

import json
import mmap
import os
from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np

from gradcell.base import bad_type, bad_value, unsupported, where
from gradcell.mindrecord.values import (
    ARRAYS,
    SCALARS,
    Schema,
    is_blob,
    unpack_blobs,
    unpack_scalars,
)


def check_schema(schema: Any) -> str | None:
    """Return the error in a schema, or None."""
    if not isinstance(schema, dict) or not schema:
        return "the schema must be a dict with a field at least"
    for name, field in schema.items():
        if not isinstance(name, str) or not isinstance(field, dict) or "type" not in field:
            return f"the field {name!r} must be a dict with a type"
        kind, shape = field["type"], field.get("shape")
        if "shape" in field:
            if kind not in ARRAYS:
                return f"the field {name!r} cannot be an array of {kind!r}, only of {ARRAYS}"
            if not isinstance(shape, list) or not all(
                isinstance(n, int) and not isinstance(n, bool) and n >= -1 for n in shape
            ):
                return f"the field {name!r} has the shape {shape!r}"
            if shape.count(-1) > 1:
                return f"the field {name!r} has more than one unknown length"
        elif kind not in (*SCALARS, "bytes"):
            return f"the field {name!r} has the type {kind!r}, not one of {(*SCALARS, 'bytes')}"
    return None


class DamagedFile(ValueError):
    """Raised for a file of another format, cut short or damaged."""


class RecordFile:
    """One file: its schema, how many rows it has, and each of them.

    path: the file. Raises ValueError for a missing, truncated or damaged file, with its name.
    """

    schema: Schema

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            with open(path, "rb") as file:
                size = os.fstat(file.fileno()).st_size
                if size < 8:
                    self._fail(f"truncated: {size} bytes")
                self._data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        except OSError as error:
            bad_value(f"MindRecord: cannot read {path}: {error.strerror}")
        header = self._header()
        try:
            self.schema = self._schema(header)
            self.shard_addresses: list[str] = [str(name) for name in header["shard_addresses"]]
            self._places = self._find(header)
        except DamagedFile:
            raise
        except (LookupError, TypeError, ValueError, OverflowError, AttributeError) as error:
            self._fail(f"corrupted: the header is incomplete: {type(error).__name__}: {error}")

    def _fail(self, what: str) -> NoReturn:
        raise DamagedFile(f"MindRecord: {self.path}: {what}{where()}")

    def _header(self) -> dict[str, Any]:
        length = int.from_bytes(self._data[:8], "little")
        if length > len(self._data) - 8:
            self._fail(f"truncated, or not a MindRecord file: a header of {length} bytes")
        try:
            header = json.loads(bytes(self._data[8 : 8 + length]))
        except (ValueError, RecursionError) as error:
            self._fail(f"corrupted, or not a MindRecord file: the header is not JSON: {error}")
        if not isinstance(header, dict):
            self._fail("corrupted: the header is not an object")
        return header

    def _schema(self, header: dict[str, Any]) -> Schema:
        if len(header["schema"]) != 1:
            self._fail(f"{len(header['schema'])} schemas, where gradcell reads one")
        (about,) = header["schema"]
        schema, blobs = about["schema"], about["blob_fields"]
        wrong = check_schema(schema)
        if wrong:
            self._fail(f"corrupted: {wrong}")
        if sorted(blobs) != sorted(name for name, field in schema.items() if is_blob(field)):
            self._fail(f"corrupted: the blob fields {blobs} do not fit the schema")
        self.blobs: list[str] = blobs
        return dict(sorted(schema.items()))

    def _find(self, header: dict[str, Any]) -> np.ndarray:
        """Return the beginnings and ends of the two parts of each row."""
        first, size = int(header["header_size"]), int(header["page_size"])
        if first < 8 or size < 1:
            self._fail(f"corrupted: header_size is {first}, page_size {size}")
        pages = header["page"]
        groups: dict[int, tuple[int, int]] = {}
        for page in pages:
            start = first + int(page["page_id"]) * size
            end = start + int(page["page_size"])
            if not first <= start <= end <= min(len(self._data), start + size):
                self._fail(
                    f"truncated or corrupted: a page lies in bytes {start} to {end}, the file has "
                    f"{len(self._data)}"
                )
            if page["page_type"] == "RAW_DATA":
                for group in page["row_group_ids"]:
                    groups[int(group["id"])] = (start + int(group["offset"]), end)
        blobs = [page for page in pages if page["page_type"] == "BLOB_DATA"]
        blobs.sort(key=lambda page: int(page["start_row_id"]))
        rows: list[tuple[int, int, int, int]] = []
        for page in blobs:
            count = int(page["end_row_id"]) - int(page["start_row_id"])
            if int(page["start_row_id"]) != len(rows) or count < 0:
                self._fail(f"corrupted: a page begins with row {page['start_row_id']}")
            start = first + int(page["page_id"]) * size
            group = int(page["page_type_id"])
            if group not in groups:
                self._fail(f"corrupted: there is no row group {group}")
            blob = self._parts(start, start + int(page["page_size"]), count)
            raw = self._parts(*groups[group], count)
            rows.extend((*a, *b) for a, b in zip(raw, blob, strict=True))
        return np.array(rows, np.int64).reshape(-1, 4)

    def _parts(self, at: int, end: int, count: int) -> list[tuple[int, int]]:
        """Return the places of `count` parts that follow each other from `at` on, each behind its
        length."""
        found = []
        for _ in range(count):
            if end - at < 8:
                self._fail(f"truncated or corrupted: no row at byte {at}")
            size = int.from_bytes(self._data[at : at + 8], "little")
            if size > end - at - 8:
                self._fail(f"corrupted: a row of {size} bytes at byte {at}, its page ends at {end}")
            found.append((at + 8, at + 8 + size))
            at += 8 + size
        return found

    def __len__(self) -> int:
        return len(self._places)

    def row(self, i: int) -> dict[str, Any]:
        """A row: numbers, strings, bytes and arrays by the fields' names. Raises ValueError."""
        a, b, c, d = self._places[i].tolist()
        try:
            scalars = unpack_scalars(self.schema, self._data[a:b])
            blobs = unpack_blobs(self.schema, self.blobs, self._data[c:d])
        except ValueError as error:
            self._fail(f"corrupted: row {i} (bytes {a} and {c}): {error}")
        return {name: {**scalars, **blobs}[name] for name in self.schema}


def shards_of(owner: str, names: Any) -> list[RecordFile]:
    """The files that a name stands for: those of a list, or the file and the others of its set.

    owner: who asks, for the message of an error. names: a path, or a list of paths. Raises
    ValueError for missing or damaged files and for files of different schemas.
    """
    if isinstance(names, (str, os.PathLike)):
        path = os.fspath(names)
        if not os.path.exists(path) and os.path.exists(path + "0"):
            path += "0"
        first = RecordFile(path)
        folder = os.path.dirname(path)
        paths = [os.path.join(folder, os.path.basename(n)) for n in first.shard_addresses]
        if os.path.basename(path) not in map(os.path.basename, paths):
            paths = [path]  # a file that was renamed
        files = [first if p == path else RecordFile(p) for p in paths]
    elif isinstance(names, (list, tuple)) and names:
        files = [RecordFile(os.fspath(name)) for name in names]
    else:
        bad_type(f"{owner}: expected a file's name or a list of them")
    for file in files[1:]:
        if file.schema != files[0].schema:
            bad_value(f"{owner}: {file.path} has another schema than {files[0].path}")
    return files


class FileReader:
    """Reads the rows of MindRecord files one after the other.

    file_name: a file (and the others of its set), or a list of files. columns: the fields to give,
    all by default. num_consumer has no effect. operator: must be None, else NotImplementedError is
    raised.
    """

    def __init__(
        self,
        file_name: Any,
        num_consumer: int = 4,
        columns: list[str] | None = None,
        operator: Any = None,
    ) -> None:
        if operator is not None:
            unsupported("FileReader: 'operator' is not implemented")
        self._files = shards_of("FileReader", file_name)
        schema = self._files[0].schema
        self._columns = list(schema) if columns is None else list(columns)
        for name in self._columns:
            if name not in schema:
                bad_value(f"FileReader: there is no field {name!r}; the fields are {list(schema)}")

    def get_next(self) -> Iterator[dict[str, Any]]:
        """The rows: numbers, strings, bytes and arrays by the fields' names."""
        for file in self._files:
            for i in range(len(file)):
                row = file.row(i)
                yield {name: row[name] for name in self._columns}

    def len(self) -> int:
        """Return the number of rows."""
        return sum(map(len, self._files))

    def schema(self) -> Schema:
        """The fields, each with its type and, if it is an array, its shape."""
        return {name: dict(field) for name, field in self._files[0].schema.items()}

    def close(self) -> None:
        """Ends reading."""
        self._files = []
