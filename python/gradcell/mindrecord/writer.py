"""MindRecord files, written: rows, and beside each file its index, which MindSpore wants."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import sqlite3
import struct
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from gradcell.base import arguments, bad_type, bad_value, where
from gradcell.base.whole_file import whole_file
from gradcell.mindrecord.reader import FileReader, check_schema
from gradcell.mindrecord.values import Schema, is_blob, pack_blobs, pack_scalars

_SQL = {"int32": "INTEGER", "int64": "INTEGER", "float32": "REAL", "float64": "REAL"}
_KINDS = {"string": (str,), "bytes": (bytes, bytearray)}


class FileWriter:
    """Writes rows to MindRecord files. The files exist once commit has returned.

    file_name: the file; with shard_num above 1 the files' numbers are appended. overwrite: replace
    files of that name. shard_num: the number of files, from 1 to 1000. Raises TypeError and
    ValueError for bad arguments.

    As in MindSpore: add_schema, add_index if rows are to be found by fields, write_raw_data as
    often as needed, commit.
    """

    def __init__(self, file_name: str, shard_num: int = 1, overwrite: bool = False) -> None:
        if not isinstance(file_name, (str, os.PathLike)):
            bad_type("FileWriter: 'file_name' must be a string")
        arguments.integer(shard_num, "FileWriter", "shard_num")
        if not 1 <= shard_num <= 1000:
            bad_value("FileWriter: 'shard_num' must be in [1, 1000]")
        name = os.fspath(file_name)
        self._paths = [name] if shard_num == 1 else [f"{name}{i}" for i in range(shard_num)]
        self._overwrite = bool(overwrite)
        self._schema: Schema | None = None
        self._description = ""
        self._index: list[str] = []
        self._rows: list[dict[str, Any]] = []
        self._header_size, self._page_size = 1 << 24, 1 << 25

    @classmethod
    def open_for_append(cls, file_name: str) -> FileWriter:
        """A writer that puts rows behind those of a file."""
        reader = FileReader(file_name)
        paths = [file.path for file in reader._files]
        writer = cls(paths[0], overwrite=True)
        writer._paths = paths
        writer._schema = reader.schema()
        writer._rows = list(reader.get_next())
        reader.close()
        return writer

    def add_schema(self, content: dict[str, Any], desc: str | None = None) -> int:
        """Says the rows' fields: {'type': ...} with int32, int64, float32, float64, string or
        bytes, and with 'shape' for an array of numbers, -1 in it for an unknown length.

        Raises ValueError for anything else.
        """
        wrong = check_schema(content)
        if wrong:
            bad_value(f"FileWriter.add_schema: {wrong}")
        self._schema = {name: dict(field) for name, field in sorted(content.items())}
        self._description = desc or ""
        return 0

    def add_index(self, index_fields: list[str]) -> str:
        """Says by which fields, numbers or strings, rows can be found."""
        schema = self._need_schema()
        for name in index_fields:
            if name not in schema or is_blob(schema[name]):
                bad_value(
                    f"FileWriter.add_index: {name!r} is not a field that holds a number or a string"
                )
        self._index = list(index_fields)
        return "SUCCESS"

    def _need_schema(self) -> Schema:
        if self._schema is None:
            bad_value("FileWriter: add_schema comes first")
        return self._schema

    def write_raw_data(self, raw_data: list[dict[str, Any]], parallel_writer: bool = False) -> str:
        """Adds rows: dicts with a value for each field. Raises TypeError and ValueError for a row
        that does not fit the schema; then none of them is added."""
        schema = self._need_schema()
        listed = [raw_data] if isinstance(raw_data, dict) else list(raw_data)
        self._rows.extend([_checked(schema, i, row) for i, row in enumerate(listed)])
        return "SUCCESS"

    def set_header_size(self, header_size: int) -> str:
        """Set the header's size in bytes: a multiple of 4 from 16 KiB to 128 MiB."""
        self._header_size = _size("header_size", header_size, 1 << 14, 1 << 27)
        return "SUCCESS"

    def set_page_size(self, page_size: int) -> str:
        """Set a page's size in bytes: a multiple of 4 from 32 KiB to 256 MiB. A row must fit."""
        self._page_size = _size("page_size", page_size, 1 << 15, 1 << 28)
        return "SUCCESS"

    def commit(self) -> str:
        """Writes the files. Raises FileExistsError unless they may be replaced."""
        schema = self._need_schema()
        for path in self._paths:
            if not self._overwrite and (os.path.exists(path) or os.path.exists(path + ".db")):
                raise FileExistsError(
                    f"FileWriter: {path} already exists; overwrite=True replaces it{where()}"
                )
        ends = [len(self._rows) * k // len(self._paths) for k in range(len(self._paths) + 1)]
        for shard, path in enumerate(self._paths):
            part = self._rows[ends[shard] : ends[shard + 1]]
            self._write(schema, shard, path, part)
        return "SUCCESS"

    def _write(self, schema: Schema, shard: int, path: str, rows: list[dict[str, Any]]) -> None:
        blobs = sorted(name for name, field in schema.items() if is_blob(field))
        pages = _Pages(path, self._page_size, shard)
        for row in rows:
            scalars = {n: row[n] for n, field in schema.items() if not is_blob(field)}
            pages.add(pack_scalars(scalars or {"id": 0}), pack_blobs(schema, blobs, row))
        described = pages.close()
        header = {
            "header_size": self._header_size,
            "index_fields": [{"index_field": n, "schema_id": 0} for n in sorted(self._index)]
            or None,
            "page": described,
            "page_size": self._page_size,
            "compression_size": _saved(schema, blobs, rows),
            "schema": [{"blob_fields": blobs, "desc": self._description, "schema": schema}],
            "shard_addresses": [os.path.basename(p) for p in self._paths],
            "shard_id": shard,
            "statistics": None,
            "version": "3.0",
        }
        text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
        if len(text) + 8 > self._header_size:
            bad_value(
                f"FileWriter: a header of {len(text)} bytes, more than set_header_size allows"
            )
        # The index is complete before there is a file, and takes its place after it.
        with whole_file(path + ".db") as index, whole_file(path) as temporary:
            with open(temporary, "xb") as file:
                file.write(struct.pack("<Q", len(text)) + text)
                for number, data in enumerate(pages.written):
                    file.seek(self._header_size + number * self._page_size)
                    file.write(data)
            name = os.path.basename(path)
            _write_index(index, name, schema, sorted(self._index), rows, pages.places)


def _size(name: str, value: Any, least: int, most: int) -> int:
    arguments.integer(value, "FileWriter", name)
    if not least <= value <= most or value % 4:
        bad_value(f"FileWriter: '{name}' must be a multiple of 4 from {least} to {most}")
    return value  # type: ignore[no-any-return]


def _checked(schema: Schema, i: int, row: Any) -> dict[str, Any]:
    owner = "FileWriter.write_raw_data"
    if not isinstance(row, dict):
        bad_type(f"{owner}: row {i} must be a dict, got {type(row).__name__}")
    made: dict[str, Any] = {}
    for name, field in schema.items():
        if name not in row:
            bad_value(f"{owner}: row {i} has no {name!r}")
        kind, value = field["type"], row[name]
        if "shape" in field:
            array = np.asarray(value)
            if array.dtype != kind:
                bad_type(
                    f"{owner}: {name!r} of row {i} must be an array of {kind}, got {array.dtype}"
                )
            try:
                made[name] = array.reshape(field["shape"])
            except ValueError:
                bad_value(
                    f"{owner}: {name!r} of row {i} has the shape {array.shape}, not {field['shape']}"
                )
            continue
        kinds: tuple[type, ...] = _KINDS.get(kind, (int, np.integer))
        if kind.startswith("float"):
            kinds = (float, np.floating, int, np.integer)
        if not isinstance(value, kinds) or isinstance(value, bool):
            bad_type(f"{owner}: {name!r} of row {i} must be {kind}, got {type(value).__name__}")
        if kind.startswith("int") and abs(2 * int(row[name]) + 1) >= 2 ** int(kind[3:]):
            bad_value(f"{owner}: {name!r} of row {i} is {value}, no {kind}")
        made[name] = value
    return made


def _saved(schema: Schema, blobs: list[str], rows: list[dict[str, Any]]) -> int:
    """Return the number of bytes that packing integers saves, for the header."""
    packed = [name for name in blobs if schema[name]["type"] in ("int32", "int64")]
    return sum(
        row[name].nbytes - len(pack_blobs(schema, [name], row)) for row in rows for name in packed
    )


class _Pages:
    """Rows put into pages: a blob page is a row group, whose numbers are in one raw page."""

    def __init__(self, path: str, size: int, shard: int) -> None:
        self.path, self.size, self.shard = path, size, shard
        self.groups: list[tuple[bytearray, bytearray, list[tuple[int, int, int, int]]]] = []
        self.written: list[bytes] = []
        self.places: list[tuple[int, ...]] = []

    def add(self, raw: bytes, blob: bytes) -> None:
        """Adds a row's two parts."""
        raw, blob = struct.pack("<Q", len(raw)) + raw, struct.pack("<Q", len(blob)) + blob
        if max(len(raw), len(blob)) > self.size:
            bad_value(
                f"FileWriter: a row of {max(len(raw), len(blob))} bytes does not fit into a page of "
                f"{self.size}; see set_page_size"
            )
        last = self.groups[-1] if self.groups else None
        if (
            last is None
            or len(last[0]) + len(raw) > self.size
            or len(last[1]) + len(blob) > self.size
        ):
            last = (bytearray(), bytearray(), [])
            self.groups.append(last)
        a, c = len(last[0]), len(last[1])
        last[2].append((a, a + len(raw), c, c + len(blob)))
        last[0].extend(raw)
        last[1].extend(blob)

    def close(self) -> list[dict[str, Any]]:
        """The header's description of the pages."""
        described = []
        row = 0
        for number, (_, blob, places) in enumerate(self.groups):
            described.append(self._page("BLOB_DATA", number, len(blob), row, row + len(places)))
            described[-1]["row_group_ids"].append({"id": 0, "offset": 0})
            self.written.append(bytes(blob))
            row += len(places)
        page = bytearray()
        kind = 0
        for number, (raw, _, places) in enumerate(self.groups):
            if number == 0 or len(page) + len(raw) > self.size:
                page = bytearray()
                described.append(self._page("RAW_DATA", kind, 0, 0, 0))
                self.written.append(b"")
                kind += 1
            about, offset = described[-1], len(page)
            about["row_group_ids"].append({"id": number, "offset": offset})
            page.extend(raw)
            about["page_size"], self.written[-1] = len(page), bytes(page)
            for a, b, c, d in places:
                self.places.append((about["page_id"], offset + a, offset + b, number, number, c, d))
        return described

    def _page(self, kind: str, number: int, size: int, start: int, end: int) -> dict[str, Any]:
        return {
            "end_row_id": end,
            "page_id": len(self.written),
            "page_size": size,
            "page_type": kind,
            "page_type_id": number,
            "row_group_ids": [],
            "shard_id": self.shard,
            "start_row_id": start,
        }


@contextlib.contextmanager
def _as_os_errors(path: str) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise OSError(errno.EIO, f"{os.strerror(errno.EIO)}: {error}", path) from error


def _write_index(
    target: str,
    name: str,
    schema: Schema,
    index: list[str],
    rows: list[dict[str, Any]],
    places: list[tuple[int, ...]],
) -> None:
    """The SQLite file beside a MindRecord file of that name: where each row is, and its index fields."""
    fixed = (
        "ROW_ID INT NOT NULL, PAGE_ID_RAW INT NOT NULL, PAGE_OFFSET_RAW INT NOT NULL, "
        "PAGE_OFFSET_RAW_END INT NOT NULL, ROW_GROUP_ID INT NOT NULL, PAGE_ID_BLOB INT NOT NULL, "
        "PAGE_OFFSET_BLOB INT NOT NULL, PAGE_OFFSET_BLOB_END INT NOT NULL"
    )
    fields = [
        f'INC_{k} INT, "{n}_0" {_SQL.get(schema[n]["type"], "TEXT")}' for k, n in enumerate(index)
    ]
    key = ["ROW_ID", *(f"INC_{k}" for k in range(len(index)))]
    columns = ", ".join([fixed, *fields, f"PRIMARY KEY({','.join(key)})"])
    with _as_os_errors(target), contextlib.closing(sqlite3.connect(target)) as base:
        base.execute("PRAGMA journal_mode = MEMORY")  # no file beside it
        base.execute(f"CREATE TABLE INDEXES({columns})")
        base.execute("CREATE TABLE SHARD_NAME(NAME TEXT NOT NULL)")
        base.execute("INSERT INTO SHARD_NAME VALUES (?)", (name,))
        marks = ",".join("?" * (8 + 2 * len(index)))
        for i, (row, at) in enumerate(zip(rows, places, strict=True)):
            values = [v for n in index for v in (0, _plain(row[n]))]
            base.execute(f"INSERT INTO INDEXES VALUES ({marks})", (i, *at, *values))
        base.commit()


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def write_rows(
    file_name: str, num_files: int, names: list[str], rows: Iterable[tuple[np.ndarray, ...]]
) -> None:
    """Writes a dataset's rows; their schema is made from the first one.

    file_name: the path of the file, or what the files' names begin with. num_files: the number of
    files. names: of the columns. rows: tuples with an array for each column. Raises ValueError if
    there are no rows and TypeError for a dtype that MindRecord does not have.
    """
    listed = list(rows)
    if not listed:
        bad_value("save: the dataset has no rows")
    schema: dict[str, Any] = {}
    for name, array in zip(names, listed[0], strict=True):
        kind = array.dtype.name
        if array.dtype.kind in "US":
            schema[name] = {"type": "string" if array.dtype.kind == "U" else "bytes"}
        elif kind in ("int8", "int16", "uint8", "uint16", "bool"):
            schema[name] = {"type": "int32"}
        elif kind == "float16":
            schema[name] = {"type": "float32"}
        elif kind in _SQL:
            schema[name] = {"type": kind}
        else:
            bad_type(f"save: MindRecord has no {kind}, as the column {name!r} is")
        if array.ndim and array.dtype.kind not in "US":
            schema[name]["shape"] = [-1, *array.shape[1:]]
    writer = FileWriter(file_name, num_files)
    writer.add_schema(schema)
    writer.write_raw_data(
        [{n: _stored(schema[n], a) for n, a in zip(names, row, strict=True)} for row in listed]
    )
    writer.commit()


def _stored(field: dict[str, Any], array: np.ndarray) -> Any:
    if "shape" in field:
        return array.astype(field["type"])
    return array.item()
