"""ProgressBar: how far an epoch is, in a terminal, a notebook or a log file."""

from __future__ import annotations

import sys
import time
from typing import Any, TextIO

import numpy as np

from gradcell.base import arguments
from gradcell.communication.engine import processes

from gradcell.train.callback.base import (  # isort: skip
    Callback, CallbackParameters, RunContext, loss_of, overflowed, step_in_epoch,
)  # fmt: skip


class ProgressBar(Callback):
    """Shows the progress of an epoch and its mean loss: a bar in a terminal or a notebook, one line
    for each epoch in a log file. The bar needs tqdm; without it there are lines.

    every: the number of steps after which the loss is read and shown. file: where to write, by
    default stderr.
    """

    def __init__(self, every: int = 10, file: TextIO | None = None) -> None:
        self.every: int = arguments.integer(every, "ProgressBar", "every", 1)
        self.file = file
        self._bar: Any = None
        self._losses: list[float] = []
        self._start = 0.0

    def _new_bar(self, p: CallbackParameters) -> Any:
        file = self.file or sys.stderr
        notebook = "ipykernel" in sys.modules
        if not notebook and not (hasattr(file, "isatty") and file.isatty()):
            return None
        if processes.world.rank > 0:
            return None
        try:
            from tqdm.auto import tqdm
        except ImportError:
            return None
        return tqdm(
            total=p.batch_num,
            desc=f"epoch {p.cur_epoch_num}/{p.epoch_num}",
            unit="step",
            file=None if notebook else file,
            leave=True,
            dynamic_ncols=True,
        )

    def on_train_epoch_begin(self, run_context: RunContext) -> None:
        self._losses, self._start = [], time.perf_counter()
        self._bar = self._new_bar(run_context.original_args())

    def on_train_step_end(self, run_context: RunContext) -> None:
        p = run_context.original_args()
        step = step_in_epoch(p)
        if step % self.every == 0 or step == p.batch_num:
            loss = loss_of(p.net_outputs)
            if loss is not None and not overflowed(p.net_outputs):
                self._losses.append(loss)
            if self._bar is not None and self._losses:
                self._bar.set_postfix(loss=f"{np.mean(self._losses):.4g}", refresh=False)
        if self._bar is not None:
            self._bar.update(1)

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        p = run_context.original_args()
        shown = {"loss": np.mean(self._losses)} if self._losses else {}
        found = (p.eval_results or {}).items()
        shown.update({k: v for k, v in found if isinstance(v, (int, float))})
        text = ", ".join(f"{k} {v:.4g}" for k, v in shown.items())
        if self._bar is not None:
            self._bar.set_postfix_str(text)
            self.close()
            return
        seconds = time.perf_counter() - self._start
        if processes.world.rank > 0:
            return  # rank 0 speaks for all
        print(
            f"epoch {p.cur_epoch_num}/{p.epoch_num}: {step_in_epoch(p)} steps in {seconds:.1f} s"
            + (f", {text}" if text else ""),
            file=self.file or sys.stderr,
            flush=True,
        )

    def close(self) -> None:
        """Ends the bar's line."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None
