"""SummaryRecord: numbers, pictures and histograms of a run in a file that TensorBoard shows."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from gradcell._core import Tensor
from gradcell.base import arguments, bad_type, bad_value, fail
from gradcell.base.whole_file import naming
from gradcell.ops.primitives import summaries
from gradcell.train.summary import events

_MESSAGES: dict[str, Callable[[Any], bytes]] = {
    "scalar": events.scalar,
    "image": events.image,
    "histogram": events.histogram,
    "tensor": events.tensor,
}
_number = 0
_lock = threading.Lock()


class SummaryRecord:
    """A file of values by step and name, in log_dir, for `tensorboard --logdir`.

    file_prefix, file_suffix: what the file's name begins with and ends in. max_file_size: nothing
    more is written after this many bytes. raise_exception: whether a value that is nan or inf is an
    error. log_dir: the folder of the file, which is made if it is missing. network has no effect.
    num_process and export_options have no effect.

    Usable in a `with` block; close ends the file.
    """

    def __init__(
        self, log_dir: str, file_prefix: str = "events", file_suffix: str = "_MS",
        num_process: int = 32, network: Any = None, max_file_size: int | None = None,
        raise_exception: bool = False, export_options: Any = None,
    ) -> None:  # fmt: skip
        global _number
        owner = "SummaryRecord"
        if not isinstance(log_dir, (str, os.PathLike)):
            bad_type(f"{owner}: 'log_dir' must be a string")
        for name, text in (("file_prefix", file_prefix), ("file_suffix", file_suffix)):
            if not isinstance(text, str) or "/" in text:
                bad_value(f"{owner}: '{name}' must be a plain name, got {text!r}")
        if max_file_size is not None:
            arguments.integer(max_file_size, owner, "max_file_size", 1)
        self._limit = max_file_size
        self._raise = arguments.boolean(raise_exception, owner, "raise_exception")
        self._mode = "train"
        self._folder = os.path.abspath(os.fspath(log_dir))
        os.makedirs(self._folder, exist_ok=True)
        with _lock:
            _number += 1
            name = (
                f"{file_prefix}.out.tfevents.{int(time.time())}.{socket.gethostname()}."
                f"{os.getpid()}.{_number}{file_suffix}"
            )
        self._path = os.path.join(self._folder, name)
        self._file: Any = open(self._path, "xb")
        self._write(events.version())
        self._waiting: list[tuple[str, bytes]] = []
        summaries.listen(1)

    def __enter__(self) -> SummaryRecord:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()

    @property
    def log_dir(self) -> str:
        """The file's path."""
        return self._path

    def set_mode(self, mode: str) -> None:
        """Says whether what follows is of 'train' or 'eval': the latter's names get 'eval/' before."""
        self._mode = arguments.one_of(mode, ("train", "eval"), "SummaryRecord.set_mode", "mode")

    def add_value(self, plugin: str, name: str, value: Any) -> None:
        """Adds a value to the step that record writes next.

        plugin: 'scalar', 'image' (of [N, C, H, W]), 'histogram' or 'tensor'. value: a Tensor, array
        or number. Raises ValueError for another plugin or shape, TypeError for another value.
        """
        owner = "SummaryRecord.add_value"
        arguments.one_of(plugin, tuple(_MESSAGES), owner, "plugin")
        if not isinstance(name, str) or not name:
            bad_type(f"{owner}: 'name' must be a string")
        if isinstance(value, Tensor):
            value = value.asnumpy()
        if not isinstance(value, (np.ndarray, np.generic, int, float)):
            bad_type(f"{owner}: 'value' must be a Tensor or a number, got {type(value).__name__}")
        if self._raise and not np.isfinite(np.asarray(value, np.float64)).all():
            fail(f"{owner}: {name!r} holds nan or inf")
        if plugin == "scalar" and np.size(value) != 1:
            bad_value(f"{owner}: the scalar {name!r} has the shape {list(np.shape(value))}")
        try:
            message = _MESSAGES[plugin](value)
        except ValueError as error:
            bad_value(f"{owner}: {name!r}: {error}")
        self._waiting.append((name if self._mode == "train" else f"eval/{name}", message))

    def record(self, step: int, train_network: Any = None, plugin_filter: Any = None) -> bool:
        """Writes the values added since the last call, and those of the network's summary ops, as
        those of a step.

        Returns False if there are none, or if the file has reached max_file_size. Raises ValueError
        if it is closed.
        """
        number = arguments.integer(step, "SummaryRecord.record", "step", 0)
        if self._file is None:
            bad_value(f"SummaryRecord.record: {self._path} is closed")
        for (plugin, name), value in summaries.take().items():
            self.add_value(plugin, name, value)
        values, self._waiting = self._waiting, []
        if not values or (self._limit is not None and self._file.tell() >= self._limit):
            return False
        self._write(events.event(number, values))
        return True

    def _write(self, data: bytes) -> None:
        with naming(self._path):
            self._file.write(data)

    def flush(self) -> None:
        """Makes what was recorded visible to readers."""
        if self._file is not None:
            with naming(self._path):
                self._file.flush()

    def close(self) -> None:
        """Ends the file."""
        if self._file is not None:
            file, self._file = self._file, None
            with naming(self._path), file:
                pass
            summaries.listen(-1)
