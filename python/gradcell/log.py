"""MindSpore's log: debug, info, warning, error and critical write a line to stderr.

GLOG_v says from which level on, 0 (debug) to 4 (critical), 2 by default; a line names the process and
the program's file and line. The functions take a message and what its % signs stand for.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from typing import Any, Protocol

from gradcell.base import publish

_NAMES = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
_LEVELS = (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL)


def get_level() -> str:
    """The lowest level that is written: '0' debug, '1' info, '2' warning, '3' error, '4' critical."""
    text = os.environ.get("GLOG_v", "2")
    return text if text in ("0", "1", "2", "3", "4") else "2"


def get_log_config() -> dict[str, str]:
    """The settings in use, under the names of their environment variables."""
    return {"GLOG_v": get_level(), "GLOG_logtostderr": "1"}


class _Formatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        now = time.strftime("%Y-%m-%d-%H:%M:%S", time.localtime(record.created))
        who = f"{os.getpid()}:{threading.get_ident()},{record.processName}"
        place = f"{record.pathname}:{record.lineno}"
        return (
            f"[{record.levelname}] ME({who}):{now}.{int(record.msecs):03d} [{place}] "
            f"{record.getMessage()}"
        )


class _Stderr(logging.StreamHandler):
    """Whatever sys.stderr is when a line is written."""

    def emit(self, record: logging.LogRecord) -> None:
        self.stream = sys.stderr
        super().emit(record)


_logger = logging.getLogger("gradcell")
_logger.propagate = False
if not _logger.handlers:
    _handler = _Stderr()
    _handler.setFormatter(_Formatter())
    _logger.addHandler(_handler)


def _write(level: int, msg: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    if level >= int(get_level()):
        _logger.setLevel(_LEVELS[int(get_level())])
        _logger.log(_LEVELS[level], msg, *args, stacklevel=3, **kwargs)


class _Log(Protocol):
    def __call__(self, msg: Any, *args: Any, **kwargs: Any) -> None: ...


def _logs(level: int, what: str) -> _Log:
    def function(msg: Any, *args: Any, **kwargs: Any) -> None:
        _write(level, msg, args, kwargs)

    function.__name__ = function.__qualname__ = _NAMES[level].lower()
    function.__doc__ = f"""Logs a message {what}.

    msg: the message, with % signs for args. args: values for the % signs of the message. kwargs:
    keyword arguments of Python's logging.
    """
    return function


debug: _Log = _logs(0, "for debugging")
info: _Log = _logs(1, "about what happens")
warning: _Log = _logs(2, "about what may be wrong")
error: _Log = _logs(3, "about an error")
critical: _Log = _logs(4, "about an error that ends the program")


def vlog_print(level: str, module: str, file: str, line: int, msg: str) -> None:
    """Logs a verbose message, written from GLOG_v=0 on.

    level has no effect. module: a name, which comes first. file, line: where the message comes
    from. msg: the message, with % signs for args.
    """
    _write(0, "%s %s:%s %s", (module, file, line, msg), {})


def _get_logger() -> logging.Logger:
    return _logger


publish(globals())
