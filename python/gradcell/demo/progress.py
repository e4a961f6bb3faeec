"""The demos' progress line, and their pictures if Matplotlib is installed."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator

import numpy as np


def progress(steps: int, losses: list[float], every: int = 1000) -> Iterator[int]:
    """0, 1, ..., steps - 1, shown as a bar in a terminal, where tqdm is installed, else as lines."""
    start = time.perf_counter()
    if sys.stderr.isatty():
        try:
            from tqdm import tqdm
        except ImportError:
            pass
        else:
            with tqdm(total=steps, unit="step", dynamic_ncols=True) as bar:
                for i in range(steps):
                    yield i
                    if i % 50 == 49:
                        bar.set_postfix_str(f"loss {np.mean(losses[-50:]):.1e}", refresh=False)
                    bar.update(1)
            return
    for i in range(steps):
        yield i
        if (i + 1) % every == 0 or i + 1 == steps:
            seconds = time.perf_counter() - start
            print(
                f"step {i + 1:6d}  loss {np.mean(losses[-50:]):.1e}  {seconds:5.1f} s", flush=True
            )


def picture(plot: Callable[[], None], path: str) -> None:
    """Draws and says so, or says why there is no picture."""
    try:
        plot()
    except ImportError:
        print("no picture: matplotlib is not installed (pip install matplotlib)")
        return
    print(f"saved {path}")
