"""Recurrent layers and attention: what sequence lengths and masks leave out, derivatives, bad input.

Their values are compared with MindSpore's in test_agreement.py.
"""

from __future__ import annotations

import numpy as np
import pytest
from check_grads import check_grads
from nn_checks import check_gradients

import gradcell as gc
from gradcell import Tensor, nn

F64 = gc.float64
RNG = np.random.default_rng(5)
LAYERS = [nn.RNN, nn.LSTM, nn.GRU]


def normal(*shape):
    return RNG.standard_normal(shape)


def outputs(result):
    out, state = result
    return [out, *(state if isinstance(state, tuple) else (state,))]


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("bidirectional", [False, True])
def test_lengths_are_shorter_sequences(mode, layer, bidirectional):
    net = layer(3, 4, 2, bidirectional=bidirectional, dtype=F64)
    x, lengths = normal(5, 3, 3), [5, 2, 4]
    found = outputs(net(Tensor(x), None, Tensor(np.array(lengths, np.int32))))
    for i, n in enumerate(lengths):
        alone = outputs(net(Tensor(x[:n, i : i + 1])))
        np.testing.assert_allclose(found[0].asnumpy()[:n, i], alone[0].asnumpy()[:, 0], rtol=1e-12)
        assert not found[0].asnumpy()[n:, i].any()
        for part, single in zip(found[1:], alone[1:], strict=True):
            np.testing.assert_allclose(part.asnumpy()[:, i], single.asnumpy()[:, 0], rtol=1e-12)


@pytest.mark.parametrize("layer", LAYERS)
def test_cells_are_one_step(mode, layer):
    cell = {nn.RNN: nn.RNNCell, nn.LSTM: nn.LSTMCell, nn.GRU: nn.GRUCell}[layer](3, 4, dtype=F64)
    net = layer(3, 4, dtype=F64)
    for p, q in zip(net.get_parameters(), cell.get_parameters(), strict=True):
        q.set_data(p)
    x, states = normal(3, 2, 3), [Tensor(np.zeros((2, 4)))] * (2 if layer is nn.LSTM else 1)
    hx = tuple(states) if layer is nn.LSTM else states[0]
    for row in x:
        hx = cell(Tensor(row), hx)
    last = hx[0] if layer is nn.LSTM else hx
    np.testing.assert_allclose(net(Tensor(x))[0].asnumpy()[-1], last.asnumpy(), rtol=1e-12)


@pytest.mark.parametrize("layer", LAYERS)
def test_gradients(layer):
    net = layer(3, 4, 2, bidirectional=True, dtype=F64)

    class First(nn.Cell):
        def __init__(self):
            super().__init__()
            self.net = net

        def construct(self, x):
            return self.net(x, None, Tensor(np.array([4, 2], np.int32)))[0]

    check_gradients(First(), [normal(4, 2, 3)], second=True)


def test_names_and_dropout(mode):
    net = nn.LSTM(3, 4, 2, bidirectional=True, dropout=0.5)
    names = [p.name for p in net.get_parameters()]
    assert names[:4] == [
        "weight_ih_l0",
        "weight_ih_l0_reverse",
        "weight_ih_l1",
        "weight_ih_l1_reverse",
    ]
    assert len(names) == 16 and names[-1] == "bias_hh_l1_reverse"
    x = Tensor(normal(6, 2, 3).astype(np.float32))
    first = net(x)[0].asnumpy()
    assert (net(x)[0].asnumpy() == first).all()
    net.set_train()
    assert not np.allclose(net(x)[0].asnumpy(), first)


def test_compiled_once_for_all_batches():
    net = nn.GRU(3, 4)
    runs = []

    @gc.jit
    def step(x):
        runs.append(1)
        return net(x)[0].sum()

    for _ in range(3):
        step(Tensor(normal(5, 2, 3).astype(np.float32)))
    assert len(runs) == 1


X, H = Tensor(np.zeros((5, 2, 3), np.float32)), Tensor(np.zeros((1, 2, 4), np.float32))
LENGTHS = Tensor(np.array([5, 2], np.int32))
BAD = [
    (lambda: nn.LSTM(0, 4), ValueError, "input_size"),
    (lambda: nn.LSTM(3, 4, dropout=1.0), ValueError, "'p'"),
    (lambda: nn.RNN(3, 4, nonlinearity="sine"), ValueError, "nonlinearity"),
    (lambda: nn.GRU(2, 4)(X), ValueError, "input_size 2"),
    (lambda: nn.GRU(3, 4)(X[0]), ValueError, "3 dimensions"),
    (lambda: nn.GRU(3, 4)(X[:0]), ValueError, r"\[0, 2, 3\]"),
    (lambda: nn.GRU(3, 4)(X, (H, H)), TypeError, "hx"),
    (lambda: nn.LSTM(3, 4)(X, H), TypeError, "hx"),
    (lambda: nn.GRU(3, 4, 2)(X, H), ValueError, r"states of shape \[2, 2, 4\]"),
    (lambda: nn.GRU(3, 4)(X, H.astype(F64)), TypeError, "one type"),
    (lambda: nn.GRU(3, 4)(X, H, LENGTHS[:1]), ValueError, "seq_length"),
    (lambda: nn.GRU(3, 4)(X, H, LENGTHS.astype(gc.float32)), TypeError, "seq_length"),
    (lambda: nn.GRU(3, 4)(X, H, LENGTHS * 0), IndexError, "out of"),
    (lambda: nn.GRU(3, 4)(X, H, LENGTHS + 1), IndexError, "out of"),
    (lambda: nn.LSTMCell(3, 4)(X[0], H[0]), TypeError, "hx"),
    (lambda: nn.GRUCell(3, 4)(X[0], H), ValueError, "states of shape"),
    (lambda: nn.MultiheadAttention(6, 4), ValueError, "divisible"),
    (lambda: nn.MultiheadAttention(6, 2)(X, X, X), ValueError, "'query'"),
    (lambda: nn.MultiheadAttention(3, 1)(X, X[:, :1], X[:, :1]), ValueError, "do not fit"),
    (lambda: nn.MultiheadAttention(3, 1)(X, X, X, attn_mask=X[0]), ValueError, "attn_mask"),
    (
        lambda: nn.MultiheadAttention(3, 1)(X, X, X, LENGTHS.reshape(2, 1).tile((1, 5))),
        TypeError,
        "key_padding_mask",
    ),
    (lambda: nn.TransformerEncoderLayer(4, 2, activation="tanh"), ValueError, "activation"),
    (lambda: nn.Transformer(4, 2, 1, 1, 8)(X, X), ValueError, "d_model"),
    (lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2), 0), ValueError, "num_layers"),
]


@pytest.mark.parametrize("k", range(len(BAD)))
def test_transformers_refuse_shapes_that_do_not_fit(k):
    run, error, text = BAD[k]
    with pytest.raises(error, match=text):
        run()


def test_masked_keys_are_not_looked_at(mode):
    net = nn.MultiheadAttention(6, 2, dtype=F64)
    q, k, v = normal(3, 2, 6), normal(5, 2, 6), normal(5, 2, 6)
    hidden = np.zeros((2, 5), bool)
    hidden[:, 3:] = True
    out, weights = net(*map(Tensor, (q, k, v, hidden)))
    short, short_weights = net(*map(Tensor, (q, k[:3], v[:3])))
    np.testing.assert_allclose(out.asnumpy(), short.asnumpy(), rtol=1e-12)
    np.testing.assert_allclose(weights.asnumpy()[..., :3], short_weights.asnumpy(), rtol=1e-12)
    assert not weights.asnumpy()[..., 3:].any()
    # the same as a mask of queries and keys, of each head, and as numbers to add
    by_pair = np.broadcast_to(hidden[0], (3, 5))
    for mask in (by_pair, np.broadcast_to(by_pair, (4, 3, 5)), np.where(by_pair, -1e300, 0.0)):
        masked, _ = net(*map(Tensor, (q, k, v)), attn_mask=Tensor(np.array(mask)))
        np.testing.assert_allclose(masked.asnumpy(), out.asnumpy(), rtol=1e-12)


def test_attention_against_numpy(mode):
    net = nn.MultiheadAttention(4, 2, batch_first=True, dtype=F64)
    q, k = normal(2, 3, 4), normal(2, 5, 4)
    weight, bias = net.in_proj_weight.asnumpy(), normal(12)
    net.in_proj_bias.set_data(Tensor(bias))
    parts = [
        x @ weight[4 * i : 4 * i + 4].T + bias[4 * i : 4 * i + 4] for i, x in enumerate((q, k, k))
    ]
    heads = [x.reshape(2, -1, 2, 2).transpose(0, 2, 1, 3) for x in parts]
    scores = np.exp(heads[0] @ heads[1].transpose(0, 1, 3, 2) / np.sqrt(2))
    weights = scores / scores.sum(-1, keepdims=True)
    joined = (weights @ heads[2]).transpose(0, 2, 1, 3).reshape(2, 3, 4)
    expected = joined @ net.out_proj.weight.asnumpy().T + net.out_proj.bias.asnumpy()
    out, found = net(Tensor(q), Tensor(k), Tensor(k), average_attn_weights=False)
    np.testing.assert_allclose(out.asnumpy(), expected, rtol=1e-10)
    np.testing.assert_allclose(found.asnumpy(), weights, rtol=1e-10)


def test_transformer_derivatives():
    net = nn.Transformer(4, 2, 1, 1, 8, 0.0, "gelu", norm_first=True, dtype=F64)
    check_grads(lambda s, t: net(s, t), [normal(3, 1, 4), normal(2, 1, 4)], order=2, tolerance=1e-7)


def test_layers_of_a_stack_are_copies():
    layer = nn.TransformerEncoderLayer(4, 2, 8)
    net = nn.TransformerEncoder(layer, 2)
    names = [p.name for p in net.trainable_params()]
    assert names[0] == "layers.0.self_attn.in_proj_weight" and len(set(names)) == 24
    first, second = net.layers[0].dense1.weight, net.layers[1].dense1.weight
    assert first is not second and (first.asnumpy() == second.asnumpy()).all()
