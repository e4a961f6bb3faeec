"""Recurrent networks: RNN, LSTM and GRU, as layers over sequences and as cells of one step.

The three rules are functions of (input gates, hidden gates, state), in one table; layers and cells
are the same classes for all of them. A layer's steps are one loop of the graph (ops/control/loops.py): what a
step does is recorded once, however long the sequence is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import InitVar
from typing import Any, ClassVar, NamedTuple

import numpy as np

from gradcell import _core
from gradcell._core import Tensor, ops as _ops
from gradcell.base import arguments, bad_type, bad_value, fields, publish
from gradcell.common.initializer import Uniform, initializer
from gradcell.nn.basic import Dropout
from gradcell.nn.cell import Cell
from gradcell.ops.control.loops import loop
from gradcell.tensors.parameter import Parameter, ParameterTuple

_State = tuple[Tensor, ...]  #: (h,), or (h, c) of an LSTM


def _parts(gates: Tensor, count: int) -> list[Tensor]:
    """Gates [B, count H] as count tensors [B, H]."""
    rows, width = gates.shape[0], gates.shape[1] // count
    return [_ops.slice(gates, [0, k * width], [rows, width], [1, 1]) for k in range(count)]


def _lstm(i: Tensor, h: Tensor, state: _State) -> _State:
    """Hochreiter and Schmidhuber 1997, with forget gates (Gers et al. 2000)."""
    enter, keep, new, out = _parts(_ops.add(i, h), 4)
    kept = _ops.mul(_ops.sigmoid(keep), state[1])
    c = _ops.add(kept, _ops.mul(_ops.sigmoid(enter), _ops.tanh(new)))
    return _ops.mul(_ops.sigmoid(out), _ops.tanh(c)), c


def _gru(i: Tensor, h: Tensor, state: _State) -> _State:
    """Cho et al. 2014, the reset gate behind the product."""
    (i_reset, i_update, i_new), (h_reset, h_update, h_new) = _parts(i, 3), _parts(h, 3)
    reset = _ops.sigmoid(_ops.add(i_reset, h_reset))
    update = _ops.sigmoid(_ops.add(i_update, h_update))
    new = _ops.tanh(_ops.add(i_new, _ops.mul(reset, h_new)))
    return (_ops.add(new, _ops.mul(update, _ops.sub(state[0], new))),)


class _Rule(NamedTuple):
    gates: int
    step: Callable[[Tensor, Tensor, _State], _State]
    states: int = 1


_RULES = {
    "tanh": _Rule(1, lambda i, h, state: (_ops.tanh(_ops.add(i, h)),)),
    "relu": _Rule(1, lambda i, h, state: (_ops.relu(_ops.add(i, h)),)),
    "lstm": _Rule(4, _lstm, 2),
    "gru": _Rule(3, _gru),
}


def _gates(x: Tensor, weight: Tensor, bias: Any) -> Tensor:
    """x Wᵀ + b, computed in x's dtype."""
    out = _ops.matmul(x, _ops.cast(weight, x.dtype), transpose_b=True)
    return out if bias is None else _ops.add(out, _ops.cast(bias, x.dtype))


def _given_states(owner: str, name: str, hx: Any, count: int) -> _State:
    if count == 1:
        return (arguments.tensor(hx, owner, name),)
    if not isinstance(hx, (tuple, list)) or len(hx) != count:
        got = f"{len(hx)} values" if isinstance(hx, (tuple, list)) else type(hx).__name__
        bad_type(f"For '{owner}', the '{name}' must be a tuple (h, c), but got {got}")
    return tuple(arguments.tensor(part, owner, f"{name}[{k}]") for k, part in enumerate(hx))


def _check_state(owner: str, x: Tensor, states: _State, shape: list[int]) -> None:
    for state in states:
        if list(state.shape) != shape:
            bad_value(
                f"For '{owner}', an input of shape {list(x.shape)} takes states of shape {shape}, but got "
                f"{list(state.shape)}."
            )
        if state.dtype != x.dtype:
            bad_type(
                f"For '{owner}', the input is {x.dtype} and the state {state.dtype}; they must be of one "
                "type."
            )


def _check_features(owner: str, x: Tensor, size: int) -> None:
    if x.shape[-1] != size:
        bad_value(
            f"For '{owner}', the last dimension of the input must be input_size {size}, but got shape "
            f"{list(x.shape)}."
        )


# Layers -------------------------------------------------------------------------------------------


@fields.declared
class _Recurrent(Cell):
    """Base class of RNN, LSTM and GRU."""

    mode: ClassVar[str]

    input_size: int = fields.integer(1, shown=True)
    hidden_size: int = fields.integer(1, shown=True)
    num_layers: int = fields.integer(1, default=1)
    has_bias: bool = fields.boolean(default=True)
    batch_first: bool = fields.boolean(default=False)
    dropout: float = fields.anything(default=0.0)
    bidirectional: bool = fields.boolean(default=False)
    dtype: InitVar[_core.DType | None] = fields.floating_dtype(default=None)

    def _build(self, dtype: _core.DType | None) -> None:
        self._rule = _RULES[self.mode]
        self.dropout_op: Dropout = Dropout(p=self.dropout)
        self._directions = 2 if self.bidirectional else 1
        self._start(dtype)

    def _start(self, dtype: _core.DType | None) -> None:
        """Parameters for each layer and direction, uniform within ±1/sqrt(hidden_size)."""
        rows, h = self._rule.gates * self.hidden_size, self.hidden_size
        kinds: dict[str, list[Parameter]] = {"w_ih": [], "w_hh": [], "b_ih": [], "b_hh": []}
        for k in range(self.num_layers * self._directions):
            layer, reverse = divmod(k, self._directions)
            width = self.input_size if layer == 0 else h * self._directions
            shapes: dict[str, tuple[int, ...]] = {"w_ih": (rows, width), "w_hh": (rows, h)}
            if self.has_bias:
                shapes |= {"b_ih": (rows,), "b_hh": (rows,)}
            for kind, shape in shapes.items():
                word = "weight" if kind[0] == "w" else "bias"
                name = f"{word}{kind[1:]}_l{layer}{'_reverse' if reverse else ''}"
                values = initializer(Uniform(1 / math.sqrt(h)), shape, dtype)
                kinds[kind].append(Parameter(values, name=name))
        for kind, parameters in kinds.items():
            setattr(self, f"{kind}_list", ParameterTuple(parameters))

    def construct(self, x: Tensor, hx: Any = None, seq_length: Any = None) -> Any:
        """(outputs of the last layer, last states of all): see the class."""
        owner = type(self).__name__
        x = arguments.tensor(x, owner, "x")
        if x.ndim != 3 or 0 in x.shape:
            bad_value(
                f"For '{owner}', the input must have 3 dimensions, none of them of size 0, but got shape "
                f"{list(x.shape)}."
            )
        _check_features(owner, x, self.input_size)
        if self.batch_first:
            x = _ops.transpose(x, [1, 0, 2])
        batch = x.shape[1]
        shape = [self.num_layers * self._directions, batch, self.hidden_size]
        if hx is None:
            states: _State = (_ops.full(shape, 0.0, x.dtype),) * self._rule.states
        else:
            states = _given_states(owner, "hx", hx, self._rule.states)
            _check_state(owner, x, states, shape)
        running = None if seq_length is None else self._running(x, seq_length)
        last: list[_State] = []
        for layer in range(self.num_layers):
            if layer and self.dropout:
                x = self.dropout_op(x)
            outs = []
            for k in range(layer * self._directions, (layer + 1) * self._directions):
                out, end = self._run_direction(k, x, states, running)
                outs.append(out)
                last.append(end)
            x = outs[0] if len(outs) == 1 else _ops.concat(outs, 2)
        if self.batch_first:
            x = _ops.transpose(x, [1, 0, 2])
        ends = tuple(
            _ops.reshape(_ops.concat([end[k] for end in last], 0), shape)
            for k in range(self._rule.states)
        )
        return x, ends[0] if len(ends) == 1 else ends

    def _running(self, x: Tensor, seq_length: Any) -> Tensor:
        """For each step which sequences are that long, [time, batch, 1]."""
        owner, (time, batch, _) = type(self).__name__, x.shape
        seq_length = arguments.tensor(seq_length, owner, "seq_length")
        if seq_length.dtype.name not in ("int32", "int64"):
            bad_type(
                f"For '{owner}', the 'seq_length' must be int32 or int64, but got {seq_length.dtype}."
            )
        if tuple(seq_length.shape) != (batch,):
            bad_value(
                f"For '{owner}', batch size of x and seq_length must be equal, but got {batch} of x and "
                f"seq_length of shape {list(seq_length.shape)}."
            )
        # Looked up in a table, so that a length out of 1 ... time is an IndexError.
        outside = _ops.less(seq_length, 1)
        at = _ops.where(outside, time + 1, seq_length)
        running = np.arange(time) < np.arange(time + 1)[:, None]
        rows = _ops.gather(Tensor(running), at, 0)
        return _ops.reshape(_ops.transpose(rows, [1, 0]), [time, batch, 1])

    def _run_direction(
        self, k: int, x: Tensor, states: _State, running: Tensor | None
    ) -> tuple[Tensor, _State]:
        """(outputs [time, batch, hidden], last state) of one direction of one layer. Where a sequence
        does not run, its state stays: backwards, it begins with its last element."""
        time, batch, width = x.shape
        b_ih = self.b_ih_list[k] if self.has_bias else None
        b_hh = self.b_hh_list[k] if self.has_bias else None
        w_hh = self.w_hh_list[k]
        # The input's share of all steps' gates is one product.
        rows = _ops.reshape(x, [time * batch, width])
        gates = _gates(rows, self.w_ih_list[k], b_ih)
        first = [
            _ops.reshape(
                _ops.slice(s, [k, 0, 0], [1, batch, self.hidden_size], [1, 1, 1]),
                [batch, self.hidden_size],
            )
            for s in states
        ]

        def step(state: list[Tensor], slices: list[Tensor]) -> tuple[_State, _State]:
            new = self._rule.step(slices[0], _gates(state[0], w_hh, b_hh), tuple(state))
            out = new[0]
            if running is not None:
                runs = slices[1]
                out = _ops.where(runs, out, 0)
                new = tuple(_ops.where(runs, n, old) for n, old in zip(new, state, strict=True))
            return new, (out,)

        sliced = [_ops.reshape(gates, [time, batch, gates.shape[1]])]
        if running is not None:
            sliced.append(running)
        backwards = bool(k % self._directions)
        last, outs = loop(step, first, sliced, time, reverse=backwards)
        return outs[0], tuple(last)


@fields.declared
class RNN(_Recurrent):
    """A recurrent network h = tanh(W x + b + U h + c), or relu, over sequences.

    input_size, hidden_size: features of input and state. num_layers: each takes the outputs of the
    one before. batch_first: input and output are (batch, time, features), else (time, batch,
    features). dropout: between layers, in training. bidirectional: a second pass, backwards, whose
    outputs are appended to the first's. nonlinearity: 'tanh' or 'relu'.

    Called with x, hx (num_layers * directions, batch, hidden_size; zeros by default) and seq_length
    (batch,), int32 or int64, from 1 to time: later elements are ignored, and their outputs are 0.
    Returns (outputs, last states). Parameters for layer k: weight_ih_lk, weight_hh_lk, bias_ih_lk,
    bias_hh_lk, and with _reverse appended.

    Raises TypeError for wrong types, ValueError for incompatible shapes or an empty input,
    IndexError for a length out of range.
    """

    nonlinearity: str = fields.one_of("tanh", "relu", default="tanh", kw_only=True)

    def _build(self, dtype: _core.DType | None) -> None:
        object.__setattr__(self, "mode", self.nonlinearity)
        super()._build(dtype)


class LSTM(_Recurrent):
    """Long short-term memory over sequences: i, f, g, o are the gates' order in the parameters.

    c = sigmoid(f) c + sigmoid(i) tanh(g); h = sigmoid(o) tanh(c). hx and the last states are tuples
    (h, c). Otherwise like RNN.
    """

    mode = "lstm"


class GRU(_Recurrent):
    """Gated recurrent units over sequences: r, z, n are the gates' order in the parameters.

    n = tanh(W x + b + sigmoid(r) (U h + c)); h = n + sigmoid(z) (h - n). Otherwise like RNN.
    """

    mode = "gru"


# Cells --------------------------------------------------------------------------------------------


@fields.declared
class _Step(Cell):
    """Base class of RNNCell, LSTMCell and GRUCell."""

    mode: ClassVar[str]

    input_size: int = fields.integer(1, shown=True)
    hidden_size: int = fields.integer(1, shown=True)
    has_bias: bool = fields.boolean(default=True)
    dtype: InitVar[_core.DType | None] = fields.floating_dtype(default=None)

    def _build(self, dtype: _core.DType | None) -> None:
        self._rule, h = _RULES[self.mode], self.hidden_size
        self.bias_ih: Parameter | None = None
        self.bias_hh: Parameter | None = None
        rows = self._rule.gates * h
        shapes: dict[str, tuple[int, ...]] = {"weight_ih": (rows, self.input_size)}
        shapes["weight_hh"] = (rows, h)
        if self.has_bias:
            shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
        for name, shape in shapes.items():
            values = initializer(Uniform(1 / math.sqrt(h)), shape, dtype)
            setattr(self, name, Parameter(values, name=name))

    def construct(self, x: Tensor, hx: Any) -> Any:
        """The next state."""
        owner = type(self).__name__
        x = arguments.tensor(x, owner, "x")
        if x.ndim != 2:
            bad_value(
                f"For '{owner}', the input must be (batch, input_size), but got shape {list(x.shape)}."
            )
        _check_features(owner, x, self.input_size)
        states = _given_states(owner, "hx", hx, self._rule.states)
        _check_state(owner, x, states, [x.shape[0], self.hidden_size])
        i = _gates(x, self.weight_ih, self.bias_ih)
        new = self._rule.step(i, _gates(states[0], self.weight_hh, self.bias_hh), states)
        return new[0] if len(new) == 1 else new


class RNNCell(_Step):
    """One step of RNN: x (batch, input_size), h (batch, hidden_size) to the next h.

    Parameters: weight_ih, weight_hh, bias_ih, bias_hh. nonlinearity: 'tanh' or 'relu'. Raises
    TypeError, ValueError.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        has_bias: bool = True,
        nonlinearity: str = "tanh",
        dtype: _core.DType | None = None,
    ) -> None:
        arguments.one_of(nonlinearity, ["tanh", "relu"], "RNNCell", "nonlinearity")
        object.__setattr__(self, "mode", nonlinearity)
        super().__init__(input_size, hidden_size, has_bias, dtype)
        self.nonlinearity = nonlinearity


class LSTMCell(_Step):
    """One step of LSTM: x (batch, input_size) and (h, c), each (batch, hidden_size), to the next
    (h, c). Parameters as RNNCell's. Raises TypeError, ValueError."""

    mode = "lstm"


class GRUCell(_Step):
    """One step of GRU: x (batch, input_size), h (batch, hidden_size) to the next h. Parameters as
    RNNCell's. Raises TypeError, ValueError."""

    mode = "gru"


publish(globals())
