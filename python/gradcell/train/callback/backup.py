"""Callbacks that keep what a run has reached when it ends before its time."""

from __future__ import annotations

import json
import os
import signal
from typing import Any

from gradcell.base import arguments, bad_type, bad_value, notice
from gradcell.communication.management import get_rank
from gradcell.train.callback.base import Callback, RunContext
from gradcell.train.serialization import load_checkpoint, save_checkpoint


def _make_directory(path: str, arg_name: str = "path") -> str:
    """The real path of a directory, made if it does not exist. Raises TypeError unless it is a path."""
    if not isinstance(path, (str, os.PathLike)) or not os.fspath(path):
        bad_type(f"the {arg_name} must be a path, got {path!r}")
    found = os.path.realpath(path)
    os.makedirs(found, exist_ok=True)
    return found


class BackupAndRestore(Callback):
    """Saves the training cell to backup_dir/backup.ckpt, and reads it before training if it is there.

    save_freq: 'epoch', or the number of epochs between two saves. delete_checkpoint: whether the
    file is deleted when training has ended. The number of the epoch is not saved: a run that
    continues counts from 1 again. backup_dir: a folder, which is made if it is missing.
    """

    def __init__(
        self, backup_dir: str, save_freq: str | int = "epoch", delete_checkpoint: bool = True
    ) -> None:
        owner, folder = "BackupAndRestore", _make_directory(backup_dir, "backup_dir")
        self.backup_file: str = os.path.join(folder, "backup.ckpt")
        every = 1 if save_freq == "epoch" else save_freq
        self.save_freq: int = arguments.integer(every, owner, "save_freq", 1)
        self.delete_checkpoint: bool = delete_checkpoint
        arguments.boolean(delete_checkpoint, owner, "delete_checkpoint")

    def on_train_begin(self, run_context: RunContext) -> None:
        if os.path.exists(self.backup_file):
            load_checkpoint(self.backup_file, net=run_context.original_args().train_network)

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        p = run_context.original_args()
        if p.cur_epoch_num % self.save_freq == 0:
            save_checkpoint(p.train_network, self.backup_file)

    def on_train_end(self, run_context: RunContext) -> None:
        if self.delete_checkpoint and os.path.exists(self.backup_file):
            os.remove(self.backup_file)


class OnRequestExit(Callback):
    """Ends training or evaluation after the present step when the process gets a signal, or when
    config_file, a JSON file, contains {"GracefulExit": 1}.

    save_ckpt: the network is then saved to directory/rank_0/file_name_train.ckpt (_eval in an
    evaluation), which the next run reads first. An evaluation within Model.fit belongs to its
    training: it reads and saves nothing. save_mindir has no effect: MindIR is not written. sig: the
    signal, whose former handler is restored at the end. file_name: the beginning of the
    checkpoint's name. directory: its folder. config_file: the path of a JSON file, or None.
    """

    def __init__(
        self, save_ckpt: bool = True, save_mindir: bool = True, file_name: str = "Net",
        directory: str | None = "./", config_file: str | None = None, sig: int = signal.SIGTERM,
    ) -> None:  # fmt: skip
        owner = "OnRequestExit"
        self.save_ckpt: bool = arguments.boolean(save_ckpt, owner, "save_ckpt")
        if arguments.boolean(save_mindir, owner, "save_mindir"):
            notice.once("OnRequestExit's save_mindir", "MindIR is not written; export writes ONNX")
        self.sig: int = arguments.integer(sig, owner, "sig")
        if self.sig == getattr(signal, "SIGKILL", None):
            bad_value("Not support send exit request by signal SIGKILL.")
        self.exit: bool = False
        self.remote_config_file = config_file
        self._handled_before: Any = None
        self._trains = False
        if save_ckpt:
            place = _make_directory(os.path.join(directory or ".", f"rank_{get_rank()}"))
            self.train_name: str = os.path.join(place, f"{file_name}_train")
            self.eval_name: str = os.path.join(place, f"{file_name}_eval")

    def _asked(self) -> bool:
        if not self.exit and self.remote_config_file and os.path.exists(self.remote_config_file):
            with open(self.remote_config_file, encoding="utf-8") as file:
                try:
                    self.exit = json.load(file).get("GracefulExit") == 1
                except (ValueError, AttributeError):  # it is being written, or says nothing
                    return False
        return self.exit

    def _begin(self, network: Any, *names: str) -> None:
        def ask(*_: Any) -> None:
            self.exit = True

        self.exit = False
        self._handled_before = signal.signal(self.sig, ask)
        found = [f"{n}.ckpt" for n in names if os.path.isfile(f"{n}.ckpt")]
        if found:
            load_checkpoint(found[0], net=network)

    def _end(self, network: Any, name: str) -> None:
        if self.exit and self.save_ckpt:
            save_checkpoint(network, f"{name}.ckpt")

    def on_train_begin(self, run_context: RunContext) -> None:
        self._trains = True
        names = [self.train_name] if self.save_ckpt else []
        self._begin(run_context.original_args().train_network, *names)

    def on_train_step_end(self, run_context: RunContext) -> None:
        if self._asked():
            run_context.request_stop()

    def on_train_end(self, run_context: RunContext) -> None:
        self._end(run_context.original_args().train_network, self.train_name)

    def on_eval_begin(self, run_context: RunContext) -> None:
        if self._trains:
            return
        names = [self.eval_name, self.train_name] if self.save_ckpt else []
        self._begin(run_context.original_args().eval_network, *names)

    def on_eval_step_end(self, run_context: RunContext) -> None:
        self.on_train_step_end(run_context)

    def on_eval_end(self, run_context: RunContext) -> None:
        if self._trains:
            return
        self._end(run_context.original_args().eval_network, self.eval_name)

    def close(self) -> None:
        self._trains = False
        if self._handled_before is not None:
            signal.signal(self.sig, self._handled_before)
            self._handled_before = None
