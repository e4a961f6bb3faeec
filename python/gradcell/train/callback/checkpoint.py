"""ModelCheckpoint: saves a run while it trains."""

from __future__ import annotations

import os
import re
import time
from typing import Any

from gradcell._core import Tensor, int32
from gradcell.base import arguments, bad_type, bad_value
from gradcell.communication import collectives
from gradcell.communication.management import get_rank
from gradcell.communication.sharing import _shares_data
from gradcell.nn.cell import Cell
from gradcell.train.callback.base import Callback, CallbackParameters, RunContext, step_in_epoch
from gradcell.train.serialization import save_checkpoint


def _as_rank_0(yes: bool) -> bool:
    """Return rank 0's answer on all ranks, whose clocks differ."""
    return bool(collectives.broadcast(Tensor(int(yes), int32), 0).asnumpy())


class CheckpointConfig:
    """Says when ModelCheckpoint saves and how many files it keeps.

    save_checkpoint_steps: save after this many steps; save_checkpoint_seconds: or at the first step
    after this many seconds, if it is not 0. keep_checkpoint_max: the oldest files beyond it are
    removed, 0: none. saved_network: what to save, by default the training cell with optimiser and
    loss-scale state. append_info: 'epoch_num', 'step_num', or dicts of more to save.
    keep_checkpoint_per_n_minutes has no effect. integrated_save and async_save have no effect.
    unused: options of MindSpore that have no effect in gradcell. Raises ValueError and TypeError
    for bad values.
    """

    def __init__(
        self, save_checkpoint_steps: int = 1, save_checkpoint_seconds: int = 0,
        keep_checkpoint_max: int = 5, keep_checkpoint_per_n_minutes: int = 0,
        integrated_save: bool = True, async_save: bool = False, saved_network: Cell | None = None,
        append_info: Any = None, **unused: Any,
    ) -> None:  # fmt: skip
        owner = "CheckpointConfig"
        counts = {"steps": save_checkpoint_steps, "seconds": save_checkpoint_seconds}
        for unit, count in counts.items():
            arguments.integer(count, owner, f"save_checkpoint_{unit}", 0)
        self.save_checkpoint_steps: int = save_checkpoint_steps
        self.save_checkpoint_seconds: int = save_checkpoint_seconds
        most = arguments.integer(keep_checkpoint_max, owner, "keep_checkpoint_max", 0)
        self.keep_checkpoint_max: int = most
        if not self.save_checkpoint_steps and not self.save_checkpoint_seconds:
            bad_value(f"{owner}: with these settings it would never save")
        if saved_network is not None and not isinstance(saved_network, Cell):
            bad_type(f"{owner}: 'saved_network' must be a Cell")
        self.saved_network = saved_network
        self.append_info: list[Any] = list(append_info or ())


class ModelCheckpoint(Callback):
    """Saves the run to directory/prefix-epoch_step.ckpt.

    config: a CheckpointConfig.

    Where several processes share the data, each has this callback, and rank 0 writes the file, from
    which any number of processes can continue. A file is complete or not written at all. It also
    contains the state of the random generators and the numbers of epoch and step, so that a run can
    continue exactly where it stopped: see Model.resume.
    """

    def __init__(
        self, prefix: str = "CKP", directory: str | None = None, config: CheckpointConfig | None = None,
    ) -> None:  # fmt: skip
        if not isinstance(prefix, str) or not prefix or "/" in prefix:
            bad_value(f"ModelCheckpoint: 'prefix' must be a plain name, got {prefix!r}")
        if config is not None and not isinstance(config, CheckpointConfig):
            bad_type("ModelCheckpoint: 'config' must be a CheckpointConfig")
        self._prefix = prefix
        self._directory = os.path.abspath(os.fspath(directory or "."))
        self._config = config or CheckpointConfig()
        self._latest = ""
        self._last_step = 0
        self._last_time = 0.0

    @property
    def latest_ckpt_file_name(self) -> str:
        """The path of the file saved last, empty before the first."""
        return self._latest

    def on_train_begin(self, run_context: RunContext) -> None:
        os.makedirs(self._directory, exist_ok=True)
        self._last_time = time.monotonic()
        self._last_step = run_context.original_args().cur_step_num or 0

    def _due(self, step: int) -> bool:
        c = self._config
        if c.save_checkpoint_seconds:
            due = time.monotonic() - self._last_time >= c.save_checkpoint_seconds
            return _as_rank_0(due) if _shares_data() else due
        return step >= self._last_step + c.save_checkpoint_steps

    def on_train_step_end(self, run_context: RunContext) -> None:
        p = run_context.original_args()
        if self._due(p.cur_step_num):
            self.save(p)

    def on_train_end(self, run_context: RunContext) -> None:
        p = run_context.original_args()
        if p.cur_step_num and p.cur_step_num != self._last_step:
            self.save(p)

    def save(self, p: CallbackParameters) -> None:
        """Saves now."""
        epoch, step, place = p.cur_epoch_num, p.cur_step_num, step_in_epoch(p)
        path = os.path.join(self._directory, f"{self._prefix}-{epoch}_{place}.ckpt")
        info: dict[str, Any] = {"epoch_num": epoch, "step_num": step, "step_in_epoch": place}
        for extra in self._config.append_info:
            if isinstance(extra, dict):
                info.update(extra)
        saved = self._config.saved_network or p.train_network
        alone = not _shares_data()
        parts = any(x.shards is not None for x in saved.get_parameters())
        if alone or parts or get_rank() == 0:
            save_checkpoint(saved, path, append_dict=info)
        if not alone:
            collectives.barrier()  # the file is there for all
        self._latest, self._last_step, self._last_time = path, p.cur_step_num, time.monotonic()
        if alone or get_rank() == 0:
            self._remove_oldest()

    def _remove_oldest(self) -> None:
        if not self._config.keep_checkpoint_max:
            return
        pattern = re.compile(re.escape(self._prefix) + r"-\d+_\d+\.ckpt")
        found = filter(pattern.fullmatch, os.listdir(self._directory))
        paths = [os.path.join(self._directory, f) for f in found]
        paths.sort(key=lambda f: (os.stat(f).st_mtime_ns, f))
        for path in paths[: -self._config.keep_checkpoint_max]:
            if path != self._latest:
                os.unlink(path)
