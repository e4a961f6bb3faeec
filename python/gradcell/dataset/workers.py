"""Steps on several workers: results in the order of the rows, random numbers by the row.

Each row has a generator of its own, made of the seed, the epoch, the step and the row's number; so
what random transforms draw does not depend on which worker has the row, nor on how many there are.
"""

from __future__ import annotations

import multiprocessing
import random
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextvars import ContextVar
from typing import Any, TypeVar

import numpy as np

from gradcell.dataset.config import get_prefetch_size, get_seed

T = TypeVar("T")


class _Stream:
    """A row's generator, made when it is first drawn from."""

    __slots__ = ("entropy", "made")

    def __init__(self, entropy: list[int]) -> None:
        self.entropy = entropy
        self.made: np.random.Generator | None = None


_current: ContextVar[_Stream | None] = ContextVar("stream", default=None)
_eager: tuple[int | None, np.random.Generator] | None = None


def generator() -> np.random.Generator:
    """Return the generator of random transforms: the row's, or outside of a dataset one that starts
    anew when the seed changes."""
    global _eager
    stream = _current.get()
    if stream is not None:
        if stream.made is None:
            stream.made = np.random.default_rng(stream.entropy)
        return stream.made
    if _eager is None or _eager[0] != get_seed():
        _eager = (get_seed(), np.random.default_rng(get_seed()))
    return _eager[1]


def _seeded(work: Callable[[Any], T], item: Any, entropy: list[int]) -> T:
    token = _current.set(_Stream(entropy))
    try:
        return work(item)
    finally:
        _current.reset(token)


_work: Callable[[Any], Any]


def _start(work: Callable[[Any], Any]) -> None:
    global _work
    _work = work


def _in_process(item: Any, entropy: list[int]) -> Any:
    words = np.random.SeedSequence(entropy).generate_state(2)
    np.random.seed(words)  # for functions of the user's that draw from NumPy's or Python's stream
    random.seed(int(words[0]))
    return _seeded(_work, item, entropy)


def in_order(
    work: Callable[[Any], T], items: Iterable[Any], entropy: list[int], workers: int,
    processes: bool = False,
) -> Iterator[T]:  # fmt: skip
    """work(item) of each item, in their order, on that many threads or processes.

    entropy: what the generator of each row is made of, with the row's number behind it. Work on
    processes is copied to them by fork, items and results are pickled; on Windows, which has no fork,
    work is pickled too, so its functions are to be a module's own.
    """
    if workers == 1 and not processes:
        for number, item in enumerate(items):
            yield _seeded(work, item, [*entropy, number])
        return
    pool: Executor
    if processes:
        context = multiprocessing.get_context("spawn" if sys.platform == "win32" else "fork")
        pool = ProcessPoolExecutor(workers, context, _start, (work,))
    else:
        pool = ThreadPoolExecutor(workers, "gradcell-dataset")
    waiting: deque[Future[T]] = deque()
    try:
        for number, item in enumerate(items):
            row = [*entropy, number]
            if processes:
                waiting.append(pool.submit(_in_process, item, row))
            else:
                waiting.append(pool.submit(_seeded, work, item, row))
            if len(waiting) >= workers * get_prefetch_size():
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
