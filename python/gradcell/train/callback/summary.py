"""SummaryCollector: records a run as it goes, for TensorBoard."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np

from gradcell.base import arguments, bad_type, bad_value, tree, where
from gradcell.nn.cell import Cell
from gradcell.train.callback.base import Callback, CallbackParameters, RunContext, loss_of
from gradcell.train.summary.summary_record import SummaryRecord

#: What collect_specified_data may say, and what is so by default.
_DEFAULTS: dict[str, Any] = {
    "collect_metric": True, "collect_input_data": True, "histogram_regular": None,
}  # fmt: skip
_WITHOUT = (
    "collect_graph", "collect_train_lineage", "collect_eval_lineage", "collect_dataset_graph",
    "collect_landscape",
)  # fmt: skip


class SummaryCollector(Callback):
    """Writes the loss, the results of evaluations, histograms of parameters and a picture of the
    input into a file for TensorBoard.

    collect_freq: the number of steps between two collections. collect_specified_data: a dict of
    what to collect: collect_metric (the loss), collect_input_data (of 4 axes: the first image),
    histogram_regular (a regular expression of parameters' names; by default the first five).
    keep_default_action: whether what the dict does not name is collected. max_file_size: as in
    SummaryRecord. summary_dir: the folder of the file. custom_lineage_data and collect_tensor_freq
    have no effect. num_process and export_options have no effect.
    """

    def __init__(
        self, summary_dir: str, collect_freq: int = 10, num_process: int = 32,
        collect_specified_data: dict[str, Any] | None = None, keep_default_action: bool = True,
        custom_lineage_data: Any = None, collect_tensor_freq: int | None = None,
        max_file_size: int | None = None, export_options: Any = None,
    ) -> None:  # fmt: skip
        owner = "SummaryCollector"
        self._dir, self._limit = summary_dir, max_file_size
        self._freq = arguments.integer(collect_freq, owner, "collect_freq", 1)
        given = {} if collect_specified_data is None else collect_specified_data
        if not isinstance(given, dict):
            bad_type(f"{owner}: 'collect_specified_data' must be a dict")
        for name, value in given.items():
            if name in _WITHOUT:
                if value:
                    warnings.warn(f"{owner}: {name} has no effect here{where()}", stacklevel=2)
            elif name not in _DEFAULTS:
                bad_value(f"{owner}: there is no {name!r} to collect, but {', '.join(_DEFAULTS)}")
        keep = arguments.boolean(keep_default_action, owner, "keep_default_action")
        if keep:
            self._what = {**_DEFAULTS, **given}
        else:
            self._what = {"histogram_regular": "", **dict.fromkeys(given, False), **given}
        pattern = self._what.get("histogram_regular")
        try:
            self._pattern = re.compile(pattern) if pattern else None
        except re.error as error:
            bad_value(f"{owner}: 'histogram_regular' is not a pattern: {error}")
        self._first = pattern is None
        self._record: SummaryRecord | None = None
        self._alone = False

    def on_train_begin(self, run_context: RunContext) -> None:
        self._open()

    def on_eval_begin(self, run_context: RunContext) -> None:
        self._alone = self._record is None
        self._open()

    def _open(self) -> SummaryRecord:
        if self._record is None:
            self._record = SummaryRecord(self._dir, max_file_size=self._limit)
        return self._record

    def _parameters(self, network: Cell) -> list[Any]:
        found = network.trainable_params()
        if self._first:
            return found[:5]
        return [p for p in found if self._pattern and self._pattern.search(p.name)]

    def on_train_step_end(self, run_context: RunContext) -> None:
        p = run_context.original_args()
        if (p.cur_step_num - 1) % self._freq:
            return
        record = self._open()
        self._collect(p, record)
        record.record(p.cur_step_num)
        record.flush()

    def _collect(self, p: CallbackParameters, record: SummaryRecord) -> None:
        loss = loss_of(p.net_outputs)
        if self._what.get("collect_metric") and loss is not None:
            record.add_value("scalar", "loss/auto", loss)
        for parameter in self._parameters(p.train_network):
            record.add_value("histogram", f"{parameter.name}/auto", parameter)
        if self._what.get("collect_input_data"):
            arrays = tree.leaves(p.train_dataset_element)
            if arrays and arrays[0].ndim == 4 and arrays[0].shape[1] in (1, 3):
                record.add_value("image", "input_data/auto", np.asarray(arrays[0].asnumpy()[:1]))

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        self._metrics(run_context.original_args())

    def on_eval_end(self, run_context: RunContext) -> None:
        if self._alone:  # in a fit, the epoch's end has them
            self._metrics(run_context.original_args())

    def _metrics(self, p: CallbackParameters) -> None:
        if not self._what.get("collect_metric"):
            return
        record = self._open()
        for name, value in (p.eval_results or {}).items():
            if np.size(value) == 1:
                record.add_value("scalar", f"{name}/auto", value)
        record.record(p.cur_step_num or 0)
        record.flush()

    def close(self) -> None:
        if self._record is not None:
            self._record.close()
            self._record = None
