"""Model: training, evaluation and prediction with a network, a loss and an optimiser."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from gradcell import _core, amp, nn
from gradcell._core import Tensor
from gradcell.base import arguments, bad_type, bad_value, door, fail, notice
from gradcell.communication import collectives
from gradcell.communication.sharing import _get_device_num, _get_parallel_mode, _shares_data
from gradcell.nn.cell import Cell
from gradcell.nn.metrics import Loss, get_metrics
from gradcell.train.callback.base import Callback, CallbackManager, CallbackParameters, RunContext
from gradcell.train.data import Batches, as_tensor, evaluating
from gradcell.train.serialization import load_checkpoint, load_param_into_net


def _check_pair(owner: str, inputs: Any) -> None:
    if len(inputs) != 2:
        bad_value(
            f"{owner}: with loss_fn a batch must be data and label, but the data gave {len(inputs)} in a "
            "batch"
        )


class Model:
    """A network together with its loss, optimiser and metrics.

    network: a Cell; without loss_fn it returns the loss. loss_fn: called with the network's output
    and the label, the last input of a batch. optimizer: for train and fit. metrics: a set of names
    ('accuracy', 'loss', 'mse', 'mae', ...) or a dict from name to Metric. eval_network: returns
    what metrics are given, with eval_indexes the positions of loss, prediction and label in it.
    amp_level, loss_scale_manager, keep_batchnorm_fp32: as amp.build_train_network takes them.

    A training step that fails or is interrupted, also by Ctrl-C, leaves parameters, optimiser and
    loss scale as the last finished step left them. A last batch of fewer rows is trained on as it
    is.

    eval_indexes: three ints. amp_level: 'O0' to 'O3' or 'auto'. boost_level has no effect. kwargs:
    loss_scale_manager and keep_batchnorm_fp32. Raises TypeError for wrong types, ValueError for
    metrics without loss_fn or eval_network.
    """

    def __init__(
        self, network: Cell, loss_fn: Any = None, optimizer: Any = None, metrics: Any = None,
        eval_network: Cell | None = None, eval_indexes: list[int] | None = None, amp_level: str = "O0",
        boost_level: str = "O0", **kwargs: Any,
    ) -> None:  # fmt: skip
        if not isinstance(network, Cell):
            bad_type(f"Model: the network must be a Cell, got {type(network).__name__}")
        if loss_fn is not None and not callable(loss_fn):
            bad_type(f"Model: loss_fn must be callable, got {type(loss_fn).__name__}")
        unknown = set(kwargs) - {"loss_scale_manager", "keep_batchnorm_fp32"}
        if unknown:
            bad_type(f"Model: unknown argument {min(unknown)!r}")
        self._network, self._loss_fn, self._optimizer = network, loss_fn, optimizer
        self._metric_fns = get_metrics(metrics)
        if self._metric_fns and loss_fn is None and eval_network is None:
            bad_value("Model: metrics need loss_fn or eval_network")
        if eval_indexes is not None and (eval_network is None or len(eval_indexes) != 3):
            bad_value(
                "Model: eval_indexes are the places of loss, prediction and label in what eval_network "
                "returns"
            )
        self._eval_indexes = eval_indexes
        self._train_network = self._build_train_network(amp_level, kwargs)
        self._own_eval_network = eval_network is None
        self._eval_network = self._build_eval_network(eval_network, amp_level)
        self._resume: tuple[int, int, int] | None = None

    def _build_train_network(self, level: str, kwargs: dict[str, Any]) -> Cell:
        if self._optimizer is None:
            if self._loss_fn is None:
                return self._network
            return nn.WithLossCell(self._network, self._loss_fn)
        given = self._network, self._optimizer, self._loss_fn
        return amp.build_train_network(*given, level, **kwargs)

    def _build_eval_network(self, eval_network: Cell | None, level: str) -> Cell | None:
        if eval_network is not None or self._loss_fn is None:
            return eval_network
        return nn.WithEvalCell(self._network, self._loss_fn, level in ("O2", "O3", "auto"))

    @property
    def train_network(self) -> Cell:
        """The training cell: network, loss, optimiser, loss scale."""
        return self._train_network

    @property
    def eval_network(self) -> Cell | None:
        """The cell whose outputs metrics are made of."""
        return self._eval_network

    @property
    def predict_network(self) -> Cell:
        """The network."""
        return self._network

    # Training -------------------------------------------------------------------------------------

    def train(
        self, epoch: int, train_dataset: Any, callbacks: Any = None, dataset_sink_mode: bool = False,
        sink_size: int = -1, initial_epoch: int = 0,
    ) -> None:  # fmt: skip
        """Trains up to the epoch with number `epoch`, from initial_epoch on.

        train_dataset: a Dataset, or an iterable of batches: tuples of arrays, dicts or single
        arrays. callbacks: a Callback or a list of them, called in its order. dataset_sink_mode has
        no effect.
        """
        _check_sink_size(dataset_sink_mode, sink_size)
        self._fit(epoch, train_dataset, None, 1, callbacks, initial_epoch)

    def fit(
        self, epoch: int, train_dataset: Any, valid_dataset: Any = None, valid_frequency: Any = 1,
        callbacks: Any = None, dataset_sink_mode: bool = False, valid_dataset_sink_mode: bool = False,
        sink_size: int = -1, initial_epoch: int = 0,
    ) -> None:  # fmt: skip
        """Trains, and evaluates on valid_dataset every valid_frequency epochs, or in the epochs of
        that list; callbacks find the results as eval_results, with 'eval_' before the names."""
        if valid_dataset is not None and not self._metric_fns:
            bad_value("Model.fit: a valid_dataset needs metrics")
        if not isinstance(valid_frequency, (list, tuple, set)):
            arguments.integer(valid_frequency, "Model", "valid_frequency", 1)
        _check_sink_size(dataset_sink_mode, sink_size)
        self._fit(epoch, train_dataset, valid_dataset, valid_frequency, callbacks, initial_epoch)

    def _fit(
        self, epochs: int, train_data: Any, valid_data: Any, frequency: Any, callbacks: Any,
        initial_epoch: int,
    ) -> None:  # fmt: skip
        arguments.integer(epochs, "Model", "epoch", 1)
        arguments.integer(initial_epoch, "Model", "initial_epoch", 0)
        if self._optimizer is None and self._loss_fn is not None:
            bad_value("Model.train: there is no optimizer")
        batches = Batches("Model.train", train_data)
        listed = CallbackManager(callbacks)
        skip, steps_before = 0, 0
        if self._resume is not None:
            initial_epoch, skip, steps_before = self._resume
            self._resume = None
        p = self._parameters("train", listed)
        p.epoch_num, p.train_dataset = epochs, train_data
        p.batch_num = batches.size()
        _check_batches(p.batch_num)
        if skip and p.batch_num == skip:
            initial_epoch, skip = initial_epoch + 1, 0
        p.cur_step_num = steps_before or initial_epoch * (p.batch_num or 0)
        p.cur_epoch_num = initial_epoch
        context = RunContext(p)
        self._train_network.set_train()
        call = _Caller(listed.callbacks, context)
        try:
            call("on_train_begin")
            for number in range(initial_epoch, epochs):
                p.cur_epoch_num = number + 1
                call("on_train_epoch_begin")
                self._train_epoch(batches.epoch(number, skip), call, skip)
                skip = 0
                self._check_scale()
                p.eval_results = {}
                if valid_data is not None and _due(number + 1, frequency):
                    results = self._evaluate(Batches("Model.fit", valid_data), listed)
                    p.eval_results = {f"eval_{k}": v for k, v in results.items()}
                call("on_train_epoch_end")
                if _one_wants(context.get_stop_requested()):
                    break
            call("on_train_end")
        finally:
            listed.close()

    def _train_epoch(self, batches: Any, call: _Caller, skip: int) -> None:
        p = call.context.original_args()
        for number, inputs in enumerate(batches, skip + 1):
            p.cur_step_num += 1
            p.cur_step_in_epoch = number
            p.train_dataset_element = inputs
            if self._loss_fn is not None:
                _check_pair("Model.train", inputs)
            call("on_train_step_begin")
            try:
                p.net_outputs = self._train_network(*inputs)
            except BaseException:
                p.cur_step_num -= 1  # this step has not been made
                raise
            call("on_train_step_end")
            if call.context.get_stop_requested():
                break

    def _check_scale(self) -> None:
        manager = getattr(self._train_network, "loss_scaling_manager", None)
        check = getattr(manager, "check_floor", None)
        if check is not None:
            check()

    def resume(self, ckpt_file_name: str) -> int:
        """Makes the next train or fit go on where ModelCheckpoint saved this file.

        Parameters, optimiser, loss scale, random generators and the data's order are put back, so
        that the run ends, bit for bit, as the uninterrupted one: call train with the same
        arguments. Returns the number of steps made. Raises ValueError for a damaged file, or one
        that lacks a parameter of this model's; then nothing is changed.
        """
        saved = load_checkpoint(ckpt_file_name)
        missing = [p.name for p in self._train_network.get_parameters() if p.name not in saved]
        missing += [n for n in ("epoch_num", "step_num", "step_in_epoch") if n not in saved]
        if missing:
            bad_value(
                f"Model.resume: {ckpt_file_name} has no {missing[0]!r}: it is not a checkpoint of this "
                "model's training"
            )
        load_param_into_net(self._train_network, saved, strict_load=True)
        load_checkpoint(ckpt_file_name, random_state=True)
        names = "epoch_num", "step_num", "step_in_epoch"
        epoch, step, in_epoch = (int(saved[n].asnumpy()) for n in names)
        self._resume = (epoch - 1, in_epoch, step)
        return step

    # Evaluation -----------------------------------------------------------------------------------

    def eval(
        self, valid_dataset: Any, callbacks: Any = None, dataset_sink_mode: bool = False
    ) -> dict[str, Any]:
        """The metrics over a dataset, by name. Raises ValueError without metrics."""
        if not self._metric_fns:
            bad_value("Model.eval: there are no metrics")
        listed = CallbackManager(callbacks)
        try:
            return self._evaluate(Batches("Model.eval", valid_dataset), listed)
        finally:
            listed.close()

    def _evaluate(self, batches: Batches, callbacks: CallbackManager) -> dict[str, Any]:
        assert self._eval_network is not None
        for metric in self._metric_fns.values():
            metric.clear()
        p = self._parameters("eval", callbacks)
        p.batch_num, p.cur_step_num, p.cur_epoch_num = batches.size(), 0, 1
        call = _Caller(callbacks.callbacks, RunContext(p))
        pairs = self._loss_fn is not None and self._own_eval_network
        with evaluating(self._eval_network):
            call("on_eval_begin")
            call("on_eval_epoch_begin")
            for inputs in batches.epoch(0):
                p.cur_step_num += 1
                call("on_eval_step_begin")
                if pairs:
                    _check_pair("Model.eval", inputs)
                p.net_outputs = self._eval_network(*inputs)
                self._update_metrics(p.net_outputs)
                call("on_eval_step_end")
                if call.context.get_stop_requested():
                    break
            p.eval_results = {k: m.eval() for k, m in self._metric_fns.items()}
            call("on_eval_epoch_end")
            call("on_eval_end")
        return dict(p.eval_results)

    def _update_metrics(self, outputs: Any) -> None:
        outputs = outputs if isinstance(outputs, (tuple, list)) else (outputs,)
        loss, pred, label = self._eval_indexes or (0, 1, 2)
        for metric in self._metric_fns.values():
            if metric.indexes is not None:
                metric.update(*outputs)  # it takes what its indexes name
            elif isinstance(metric, Loss):
                metric.update(outputs[loss])
            else:
                metric.update(outputs[pred], outputs[label])

    def predict(self, *predict_data: Any, backend: Any = None, config: Any = None) -> Any:
        """The network's outputs, in evaluation mode, for arrays or Tensors.

        backend, config: of MindSpore's other engines; ignored.
        """
        with evaluating(self._network):
            given = door.with_tensors(predict_data, self._network)
            return self._network(*(as_tensor(x) for x in given))

    # ----------------------------------------------------------------------------------------------

    def _parameters(self, mode: str, callbacks: CallbackManager) -> CallbackParameters:
        p = CallbackParameters()
        p.mode, p.list_callback = mode, callbacks.callbacks
        p.network, p.train_network = self._network, self._train_network
        p.eval_network = self._eval_network
        p.optimizer, p.loss_fn, p.metrics = self._optimizer, self._loss_fn, self._metric_fns
        p.parallel_mode, p.device_number = _get_parallel_mode(), _get_device_num()
        return p


def _check_sink_size(sink_mode: bool, sink_size: Any) -> None:
    arguments.integer(sink_size, "Model.train", "sink_size")
    if sink_size != -1 and sink_size < 1:
        bad_value(f"Model.train: 'sink_size' must be -1 or positive, but got {sink_size}")
    if sink_mode and sink_size != -1:
        notice.once(f"Model.train(sink_size={sink_size})", "an epoch is all of the data")


def _check_batches(count: int | None) -> None:
    """Raises RuntimeError where processes that share the data have different numbers of batches."""
    if not _shares_data():
        return
    mine = Tensor([-1 if count is None else count], _core.int64)
    counts = collectives.all_gather(mine).asnumpy().tolist()
    odd = [r for r, n in enumerate(counts) if n != counts[0]]
    if odd:
        fail(
            f"Model.train: rank {odd[0]} has {counts[odd[0]]} batches in an epoch, rank 0 {counts[0]}: all "
            "processes make the same steps. num_shards and shard_id of a dataset give parts of equal sizes"
        )


def _one_wants(stop: bool) -> bool:
    """Return whether training ends: if one process wants to stop, all do."""
    if not _shares_data():
        return stop
    return bool(collectives.all_reduce(Tensor(int(stop), _core.int32), "max").asnumpy())


class _Caller:
    """Calls one method of each callback; an exception gets a note that names the callback."""

    def __init__(self, callbacks: list[Callback], context: RunContext) -> None:
        self.callbacks, self.context = callbacks, context

    def __call__(self, event: str) -> None:
        for callback in self.callbacks:
            method: Callable[[RunContext], None] = getattr(callback, event)
            try:
                method(self.context)
            except Exception as error:
                if sys.version_info >= (3, 11):
                    error.add_note(f"raised by the callback {type(callback).__name__}.{event}")
                raise


def _due(epoch: int, frequency: Any) -> bool:
    if isinstance(frequency, (list, tuple, set)):
        return epoch in frequency
    return bool(epoch % frequency == 0)
