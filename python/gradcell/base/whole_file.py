"""Files that are written whole or not at all, and errors of writing that name the file."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator


@contextlib.contextmanager
def naming(path: str | os.PathLike[str], *others: str) -> Iterator[None]:
    """An OSError of what runs inside that names no file, or one of the others, names this one."""
    try:
        yield
    except OSError as error:
        if error.errno is None or error.filename not in (None, *others):
            raise
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error


@contextlib.contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[str]:
    """The name of a file to write to. At the end it is on the disk, and takes the place of the one at
    `path`; if an error is raised, it is gone, and an OSError names `path`."""
    path = os.path.abspath(path)
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f".{name}.{os.urandom(4).hex()}.tmp")
    with naming(path, temporary):
        try:
            yield temporary
            _flush(temporary)
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary)
            raise
        if os.name == "posix":
            _flush(folder)


def _flush(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY if os.name == "posix" else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_whole(path: str | os.PathLike[str], data: bytes | str) -> None:
    """Writes a file whole or not at all. Raises OSError."""
    with whole_file(path) as temporary, open(temporary, "xb") as file:
        file.write(data.encode() if isinstance(data, str) else data)
