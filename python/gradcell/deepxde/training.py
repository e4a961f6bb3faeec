"""Replacements of DeepXDE's functions that train: a model's losses as compiled functions, its
training step, L-BFGS, operators of predictions."""

from __future__ import annotations

import gc as collector
import inspect
import operator
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

import gradcell as gc
from gradcell import ops
from gradcell._core import Tensor
from gradcell.base import bad_value, tree, unsupported
from gradcell.compilation.compiled import Numbering, run_traced
from gradcell.deepxde import names
from gradcell.deepxde.newton import NNCG
from gradcell.deepxde.points import Reading
from gradcell.deepxde.solvers import SOLVERS, Solver

#: DeepXDE, when it has been imported, and what was in the place of functions here.
dde: Any = None
_theirs: dict[str, Callable[..., Any]] = {}


def begin(package: Any) -> None:
    """Keep DeepXDE and its own functions, before anything of it is replaced."""
    global dde
    dde = package
    _theirs["predict"] = package.model.Model.predict
    _theirs["set_model"] = package.callbacks.CallbackList.set_model


class Tensors:
    """NumPy arrays as tensors; one that comes again is not copied again."""

    def __init__(self, kept: int = 16) -> None:
        self._kept: dict[int, tuple[Any, Tensor]] = {}
        self._most = kept

    def __call__(self, value: Any) -> Any:
        if isinstance(value, (tuple, list)):
            return tuple(self(v) for v in value)
        if value is None or isinstance(value, Tensor):
            return value
        found = self._kept.pop(id(value), None)
        if found is None or found[0] is not value:
            array = np.asarray(value)
            if array.dtype.kind == "f":
                array = array.astype(dde.config.real(np))
            found = (value, Tensor(array))
        self._kept[id(value)] = found
        while len(self._kept) > self._most:
            self._kept.pop(next(iter(self._kept)))
        return found[1]


@contextmanager
def watched(inputs: Any) -> Iterator[Any]:
    """The inputs to differentiate with respect to, and a scope for others; DeepXDE's caches are
    empty afterwards."""
    with ExitStack() as opened:
        names.SCOPES.append(opened)
        try:
            both = opened.enter_context(gc.watch(*inputs)) if isinstance(inputs, tuple) else None
            yield both if both is not None else opened.enter_context(gc.watch(inputs))
        finally:
            names.SCOPES.pop()
            dde.gradients.clear()
            if dde.config.autodiff == "forward":
                collector.collect()  # its cached lambdas refer to tensors in cycles


def _unpacked(inputs: tuple[Tensor, ...]) -> Any:
    return inputs if len(inputs) > 1 else inputs[0]


def _packed(inputs: Any) -> tuple[Any, ...]:
    return inputs if isinstance(inputs, tuple) else (inputs,)


class Program:
    """A model's functions, compiled: outputs, losses, the training step."""

    def __init__(self, model: Any, lr: Any, loss_fn: Any, decay: Any) -> None:
        self.model: Any = model
        self.loss_fn: Any = loss_fn
        self.tensors: Tensors = Tensors()
        self.reading: Reading = Reading(model)
        self.numbers: Numbering = Numbering()
        self._given: tuple[Any, ...] = ()
        self._leaves: list[Tensor] = []
        self._outline: Any = None
        self._structure = ""
        self.l1: float = self._regularization("l1")
        # Training in mixed precision; steps of second order are not. DeepXDE 1.13 does not have it.
        first = model.opt_name not in ("NNCG", *SOLVERS)
        self.mixed = getattr(dde.config, "mixed", False) and first
        self.outputs_of: Callable[..., Any] = gc.jit(self._outputs)
        self.optimizer: Any
        self.schedule: Any
        self.optimizer, self.schedule = self._make_optimizer(lr, decay)

    def _regularization(self, kind: str) -> float:
        given = self.model.net.regularizer
        if given is None:
            return 0.0
        if given[0] not in ("l1", "l2"):
            unsupported(
                f"{given[0]} regularization is not among what DeepXDE's PyTorch backend has"
            )
        return given[1] if given[0] == kind else 0.0

    def _make_optimizer(self, lr: Any, decay: Any) -> tuple[Any, Any]:
        model = self.model
        mine, other = list(model.net.parameters()), list(model.external_trainable_variables)
        given: Any = mine + other
        if model.opt_name in SOLVERS:
            if self._regularization("l2"):
                bad_value(f"{model.opt_name} doesn't support weight_decay > 0")
            if lr is not None or decay is not None:
                print(f"Warning: learning rate is ignored for {model.opt_name}")
            return Solver(model.opt_name, given), None
        if other and model.opt_name not in ("L-BFGS", "L-BFGS-B", "NNCG"):
            given = [{"params": mine}, {"params": other, "weight_decay": 0}]
        how = {"learning_rate": lr, "decay": decay, "weight_decay": self._regularization("l2")}
        return dde.optimizers.get(given, model.opt_name, **how)  # type: ignore[no-any-return]

    def number(self) -> int:
        """Distinguishes the compiled forms of what the losses read besides tensors."""
        model = self.model
        weights = None if model.loss_weights is None else tuple(map(float, model.loss_weights))
        autodiff = dde.config.autodiff
        key = weights, model.net.training, autodiff, self._structure, *self.reading.key()
        return self.numbers(key)

    def _outputs(self, number: int, *inputs: Tensor) -> Any:
        return self.model.net(_unpacked(inputs))

    def errors(
        self, losses_fn: Any, loss_fn: Any, leaves: tuple[Tensor, ...], net: Any = None
    ) -> tuple[Any, list[Any]]:
        """(outputs, what loss_fn makes of each kind of error), recorded. net: what gives the outputs."""
        model = self.model
        inputs, targets, aux_vars, read = tree.refill(self._outline, list(leaves))
        with watched(inputs) as x, self.reading.replaced(read):
            if isinstance(model, dde.zcs.Model):
                x = self._with_zcs(x)
            try:
                model.net.auxiliary_vars = aux_vars
                out = (net or model.net)(x)
                extra = (
                    {}
                    if isinstance(model, dde.zcs.Model)
                    else {"aux": [model.net] if dde.config.autodiff == "forward" else None}
                )
                found = losses_fn(targets, out, loss_fn, x, model, **extra)
            finally:
                model.net.auxiliary_vars = None
                if isinstance(model, dde.zcs.Model):
                    model.zcs_parameters = None
            return out, list(found) if isinstance(found, (list, tuple)) else [found]

    def _losses(self, losses_fn: Any, leaves: tuple[Tensor, ...]) -> tuple[Any, Tensor]:
        """(outputs, the vector of losses), recorded."""
        model = self.model
        out, found = self.errors(losses_fn, self.loss_fn, leaves)
        if self.mixed:
            found = [ops.cast(loss, gc.float32) for loss in found]
        losses = ops.stack(found, 0)
        if model.loss_weights is not None:
            losses = losses * Tensor(np.asarray(model.loss_weights, np.float64), losses.dtype)
        if self.l1:
            total = sum((ops.sum(ops.abs(p)) for p in model.net.parameters()), start=0.0)
            losses = ops.concat((losses, ops.reshape(self.l1 * total, (1,))), 0)
        return out, losses

    def _with_zcs(self, inputs: Any) -> Any:
        """The trunk's inputs with a zero for each coordinate that derivatives are taken by."""
        branch, trunk = inputs
        zeros = [
            names.SCOPES[-1].enter_context(gc.watch(ops.zeros((), trunk.dtype)))
            for _ in range(trunk.shape[1])
        ]
        self.model.zcs_parameters = {"leaves": zeros}
        return branch, trunk + ops.reshape(ops.stack(zeros, 0), (1, -1))

    # What DeepXDE calls

    def outputs(self, training: bool, inputs: Any) -> Any:
        """The network's outputs."""
        self.model.net.train(mode=training)
        number = self.numbers((training, *self.reading.globals()))
        return self.outputs_of(number, *_packed(self.tensors(inputs)))

    def arguments(self, *given: Any) -> tuple[Any, ...]:
        """Of compiled losses, for inputs, targets, auxiliary variables: a number and tensors."""
        read = self.reading.arrays(self.tensors)
        given = (*given, *read)
        if len(given) != len(self._given) or any(map(operator.is_not, given, self._given)):
            parts = *(self.tensors(x) for x in given[:3]), read
            self._given, self._leaves = given, tree.leaves(parts)
            self._outline = tree.outline(parts)
            self._structure = str(tree.refill(self._outline, [...] * len(self._leaves)))
        return self.number(), *self._leaves

    def losses(self, kind: str) -> Callable[..., Any]:
        """A compiled function of inputs, targets and auxiliary variables: (outputs, losses)."""
        losses_fn = getattr(self.model.data, f"losses_{kind}")

        @gc.jit
        def losses(number: int, *leaves: Tensor) -> Any:
            return self._losses(losses_fn, leaves)

        def evaluate(inputs: Any, targets: Any, aux_vars: Any) -> Any:
            self.model.net.train(mode=kind == "train")
            return losses(*self.arguments(inputs, targets, aux_vars))

        return evaluate

    def total(self, number: int, *leaves: Tensor) -> Tensor:
        """The sum of the training losses, recorded."""
        with names.in_halves(self.mixed):
            return ops.sum(self._losses(self.model.data.losses_train, leaves)[1])

    def train_step(self) -> Callable[..., None]:
        """A function of the same that takes one step."""
        optimizer, schedule = self.optimizer, self.schedule
        if isinstance(optimizer, NNCG):
            optimizer.minimise(self.total)
            return self._whole_step(optimizer)
        if isinstance(optimizer, Solver):
            optimizer.minimise(self)
            return self._whole_step(optimizer)
        value_and_grad: Callable[..., Any] = gc.value_and_grad(
            self.total, None, optimizer.parameters
        )

        @gc.jit
        def step(number: int, *leaves: Tensor) -> Tensor:
            loss, gradients = value_and_grad(number, *leaves)
            optimizer.update(gradients)
            return loss  # type: ignore[no-any-return]

        def train(inputs: Any, targets: Any, aux_vars: Any) -> None:
            self.model.net.train(mode=True)
            step(*self.arguments(inputs, targets, aux_vars))
            if schedule is not None:
                schedule.step()

        return train

    def _whole_step(self, optimizer: NNCG | Solver) -> Callable[..., None]:
        def train(inputs: Any, targets: Any, aux_vars: Any) -> None:
            self.model.net.train(mode=True)
            optimizer.step(*self.arguments(inputs, targets, aux_vars))

        return train


# In the place of DeepXDE's functions ------------------------------------------------------------------


def compile_pytorch(self: Any, lr: Any, loss_fn: Any, decay: Any) -> None:
    """Model._compile_pytorch: sets what evaluates and trains the model."""
    program = Program(self, lr, loss_fn, decay)
    self._gradcell = program
    self.opt, self.lr_scheduler = program.optimizer, program.schedule
    self.outputs = program.outputs
    self.outputs_losses_train = program.losses("train")
    self.outputs_losses_test = program.losses("test")
    self.train_step = None if self.opt_name in ("L-BFGS", "L-BFGS-B") else program.train_step()


def train_lbfgs(self: Any, verbose: int = 1) -> None:
    """Model._train_pytorch_lbfgs: runs of as many steps as DeepXDE has between two tests."""
    options, state, program = dde.optimizers.LBFGS_options, self.train_state, self._gradcell
    solver: Any = None
    steps = evaluations = 0
    while steps < options["maxiter"]:
        self.callbacks.on_epoch_begin()
        self.callbacks.on_batch_begin()
        state.set_data_train(*self.data.train_next_batch(self.batch_size))
        self.net.train(mode=True)
        arguments = program.arguments(state.X_train, state.y_train, state.train_aux_vars)
        most = min(options.get("iter_per_step") or 1000, options["maxiter"] - steps)
        if solver is None:
            solver = gc.LBFGS(
                program.total, program.optimizer.parameters, *arguments,
                history=options["maxcor"], gradient_tolerance=options["gtol"],
                value_tolerance=options["ftol"], search=max(options["maxls"], 1),
            )  # fmt: skip
            arguments = ()
        result = solver.run(most, *arguments, max_evaluations=options["maxfun"] - evaluations)
        steps, evaluations = steps + result.nit, evaluations + result.nfev
        if hasattr(state, "iteration"):
            state.iteration += result.nit
        else:  # its name in DeepXDE 1.13
            state.epoch += result.nit
        state.step += result.nit
        self._test(verbose=verbose)
        self.callbacks.on_batch_end()
        self.callbacks.on_epoch_end()
        if result.reason != "steps":
            if verbose > 0:
                print(f"L-BFGS stopped after {steps} steps: {result.message}.")
            break
        if self.stop_training:
            break


def operated(model: Any, operator: Any, arrays: tuple[Any, ...]) -> Any:
    """Apply an operator to the network's inputs and outputs; returns an array."""
    model.net.eval()

    def of(*inputs: Tensor) -> Any:
        with watched(_unpacked(inputs)) as xs:
            out = model.net(xs)
            return operator(xs, (out, model.net) if dde.config.autodiff == "forward" else out)

    return dde.utils.to_numpy(run_traced(of, tuple(map(Tensor, arrays)), {}))


def predict(self: Any, x: Any, operator: Any = None, callbacks: Any = None) -> Any:
    """Model.predict: what an operator computes is one plan."""
    if operator is None or len(inspect.signature(operator).parameters) != 2:
        return _theirs["predict"](self, x, operator, callbacks)
    real = dde.config.real(np)
    arrays = tuple(np.asarray(v, real) for v in _packed(x))
    found = dde.callbacks.CallbackList(callbacks=callbacks)
    found.set_model(self)
    found.on_predict_begin()
    y = operated(self, operator, arrays)
    found.on_predict_end()
    return y


#: Those of the user's callbacks whose methods record what they compute.
_METHODS = """on_train_begin on_train_end on_epoch_begin on_epoch_end on_batch_begin on_batch_end
    on_predict_begin on_predict_end"""
_recording: weakref.WeakSet[Any] = weakref.WeakSet()


def let_record(callback: Any) -> None:
    """Lets the methods of a user's own callback take gradients as they can with PyTorch."""
    if type(callback).__module__.startswith("deepxde.") or callback in _recording:
        return
    _recording.add(callback)
    for name in _METHODS.split():
        method = getattr(callback, name, None)
        if method is not None and not getattr(method, "__module__", "").startswith("deepxde."):
            setattr(callback, name, names.recorded(method))


def set_model(self: Any, model: Any) -> None:
    """CallbackList.set_model: before the callbacks are used."""
    for callback in self.callbacks:
        let_record(callback)
    _theirs["set_model"](self, model)


def on_predict_end(self: Any) -> None:
    """OperatorPredictor.on_predict_end."""
    self.value = operated(
        self.model, self.op, tuple(dde.utils.to_numpy(v) for v in _packed(self.x))
    )
