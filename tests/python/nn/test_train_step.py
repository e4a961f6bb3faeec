"""Training steps in a line: train_step, and optimisers of trees."""

import copy
import pickle
from typing import NamedTuple

import numpy as np
import optim_reference as reference
import pytest

import gradcell as gc
from gradcell import Parameter, Tensor, amp, nn, ops

RANDOM = np.random.default_rng(3)
X, Y = RANDOM.normal(size=(8, 3)), RANDOM.normal(size=(8, 1))


def network(dtype=gc.float32):
    gc.set_seed(0)
    return nn.MLP(3, 4, 1, dtype=dtype)


def mean_square(net):
    return lambda x, y: ops.square(net(x) - y).mean()


def values(parameters):
    return [p.asnumpy().copy() for p in parameters]


# Optimisers with Parameters -------------------------------------------------------------------------


def test_a_step_is_the_one_of_the_formula():
    w = Parameter(Tensor(np.ones((3, 1))), name="w")
    step = gc.train_step(lambda x, y: ops.square(x @ w - y).mean(), nn.SGD([w], 0.1))
    want = np.ones((3, 1))
    for _ in range(3):
        loss = step(X, Y)
        np.testing.assert_allclose(float(loss), np.mean((X @ want - Y) ** 2), rtol=1e-12)
        want -= np.float32(0.1) * 2 / 8 * X.T @ (X @ want - Y)
    np.testing.assert_allclose(w.asnumpy(), want, rtol=1e-12)


def test_a_step_is_the_plan_that_is_written_by_hand():
    net = network()
    optimizer = nn.Adam(net.trainable_params(), 1e-2)
    gradients = gc.value_and_grad(mean_square(net), None, optimizer.parameters)

    def by_hand(x, y):
        value, found = gradients(x, y)
        optimizer(found)
        return value

    def text(step):
        data = Tensor(X, gc.float32), Tensor(Y, gc.float32)
        return [line.partition("  #")[0] for line in gc.graph_text(step, *data).splitlines()]

    assert text(by_hand) == text(gc.train_step(mean_square(net), optimizer))


def test_a_step_is_traced_once_and_takes_arrays_in_the_networks_dtype():
    net, traced = network(), []
    loss = lambda x, y: (traced.append(x.dtype), mean_square(net)(x, y))[1]  # noqa: E731
    step = gc.train_step(loss, nn.Adam(net.trainable_params()))
    losses = [float(step(X, Y)) for _ in range(4)]
    losses.append(float(step(Tensor(X, gc.float32), y=Tensor(Y, gc.float32))))
    assert losses == sorted(losses, reverse=True)
    assert traced[0] == gc.float32 and len(traced) <= 2  # by name is another form
    with pytest.raises(TypeError):  # a Tensor keeps its dtype
        step(Tensor(X), Tensor(Y))


def test_a_step_returns_what_the_loss_returns():
    net = network()
    loss = lambda x, y: (mean_square(net)(x, y), {"mean": net(x).mean()}, 3)  # noqa: E731
    value, more, three = gc.train_step(loss, nn.SGD(net.trainable_params()), has_aux=True)(X, Y)
    assert value.shape == () and list(more) == ["mean"] and three == 3
    cell = nn.WithLossCell(net, nn.MSELoss())
    assert float(gc.train_step(cell, nn.SGD(net.trainable_params()))(X, Y)) < float(value)


@pytest.mark.parametrize("functional", [False, True])
def test_an_overflow_skips_the_step_and_lowers_the_scale(functional):
    """With the scale 2**16, float16 gradients of a loss with slope 1 overflow once, then they are exact."""
    scaler = amp.DynamicLossScaler(2.0**16, 2, 2)
    start = np.array([1.0, 2.0], np.float16)
    slope = lambda w: (w * Tensor([1.0, 0.5], gc.float16)).sum()  # noqa: E731
    if functional:
        optimizer, w = nn.SGD.functional(learning_rate=0.25), Tensor(start)
        step, state = gc.train_step(slope, optimizer, scaler=scaler), optimizer.init(w)
    else:
        w = Parameter(Tensor(start), name="w")
        step = gc.train_step(lambda: slope(w), nn.SGD([w], 0.25), scaler=scaler)
    found = []
    for _ in range(4):
        if functional:
            w, state, loss = step(w, state)
        else:
            loss = step()
        found.append((w.asnumpy().tolist(), float(scaler.scale_value)))
    assert loss.dtype == gc.float16
    assert found == [
        ([1.0, 2.0], 2.0**15), ([0.75, 1.875], 2.0**15), ([0.5, 1.75], 2.0**16),
        ([0.5, 1.75], 2.0**15),
    ]  # fmt: skip


def test_a_scale_that_cannot_fall_is_told():
    w = Parameter(Tensor([0.0]), name="w")
    scaler = amp.DynamicLossScaler(1.0, 2, 2)
    step = gc.train_step(lambda: ops.log(w).sum(), nn.SGD([w]), scaler=scaler)
    step()
    with pytest.warns(RuntimeWarning, match="even at the smallest loss scale"):
        step()
    assert w.asnumpy() == [0.0]


NET = network()


def loss_of_the_module(x, y):
    return mean_square(NET)(x, y)


def test_steps_are_pickled_and_copied():
    step = gc.train_step(loss_of_the_module, nn.SGD(NET.trainable_params(), 0.1))
    again = pickle.loads(
        pickle.dumps(gc.train_step(nn.WithLossCell(NET, nn.MSELoss()), nn.SGD([NET[0].weight])))
    )
    before = values(NET.trainable_params())
    assert float(again(X, Y)) == pytest.approx(float(loss_of_the_module(*map(np.float32, (X, Y)))))
    assert all(
        map(np.array_equal, before, values(NET.trainable_params()))
    )  # its network is another one
    assert callable(copy.deepcopy(step))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda o: gc.train_step(3, o), TypeError, "expected a loss function, got int"),
        (lambda o: gc.train_step(sum, NET), TypeError, "expected an optimiser.* got MLP"),
        (lambda o: gc.train_step(sum, o, scaler=2.0), TypeError, "a loss scale such as"),
        (lambda o: gc.train_step(NET, o)(X), ValueError, r"the loss has shape \[8, 1\]: return one"),
        (lambda o: gc.train_step(lambda: (1, 2), o)(), TypeError, "a tuple of 2; with has_aux=True"),
        (lambda o: gc.train_step(NET, o, has_aux=True)(X), ValueError, "has_aux is True.*more than one"),
        (lambda o: gc.train_step(lambda: 3.0, o)(), TypeError, "must be a real Tensor, got float"),
        (
            lambda o: gc.train_step(lambda x: nn.MLP(3, 1)(x).mean(), o)(X),
            ValueError,
            "depends on none of the parameters.* another network",
        ),
    ],
)  # fmt: skip
def test_train_step_refuses(call, error, text):
    with pytest.raises(error, match=text):
        call(nn.SGD(NET.trainable_params()))


# Optimisers of trees --------------------------------------------------------------------------------


class Weights(NamedTuple):
    matrix: Tensor
    rest: dict


def tree():
    return Weights(
        Tensor(RANDOM.normal(size=(3, 2))), {"beta": [Tensor(RANDOM.normal(size=2))], "none": None}
    )


RULES = [
    ("SGD", {"momentum": 0.9, "nesterov": True}),
    ("Adam", {"weight_decay": 0.1, "use_amsgrad": True}),
    ("RMSProp", {"centered": True, "epsilon": 1e-3}),
    ("Lamb", {"weight_decay": 0.1}),
    ("FTRL", {"l1": 0.3, "l2": 0.1}),
]


@pytest.mark.parametrize(("name", "options"), RULES, ids=lambda v: v if isinstance(v, str) else "")
def test_trees_take_the_steps_of_the_rule(name, options):
    optimizer = getattr(nn, name).functional(learning_rate=0.05, **options)
    params = start = tree()
    state = optimizer.init(params)
    slopes = [gc.tree.map(ops.sin, gc.tree.map(lambda t, k=k: t * 7 + k, params)) for k in range(4)]
    for gradients in slopes:
        params, state = optimizer.update(params, state, gradients)
    assert gc.tree.structure(params) == gc.tree.structure(start)
    places = zip(*map(gc.tree.leaves, (start, params, *slopes)), strict=True)
    for k, (begun, ended, *given) in enumerate(places):
        want = reference.run(
            name, begun.asnumpy(), [g.asnumpy() for g in given], lambda t: 0.05, **options
        )
        np.testing.assert_allclose(ended.asnumpy(), want[-1], rtol=1e-6, err_msg=str(k))
    with pytest.raises(AssertionError):  # the start is as it was
        np.testing.assert_allclose(start.matrix.asnumpy(), params.matrix.asnumpy(), rtol=1e-6)


def loss_of(params, x, y):
    return ops.square(
        ops.tanh(x @ params.matrix).sum(1, keepdims=True) + params.rest["beta"][0][0] - y
    ).mean()


def test_a_step_of_trees_changes_nothing_but_what_it_returns():
    optimizer = nn.Adam.functional(learning_rate=0.05)
    step = gc.train_step(lambda *a: (loss_of(*a), 1), optimizer, has_aux=True)
    params = start = tree()
    before = values(gc.tree.leaves(start))
    state, losses = optimizer.init(params), []
    for _ in range(5):
        params, state, (loss, one) = step(params, state, X, Y)
        losses.append(float(loss))
    assert losses == sorted(losses, reverse=True) and one == 1
    assert all(map(np.array_equal, before, values(gc.tree.leaves(start))))
    assert state["global_step"].asnumpy() == [5] and type(state["moment1"]) is Weights
    moved = step(params, {**state, "learning_rate": Tensor(0.0)}, X, Y)[0]
    assert all(map(np.array_equal, values(gc.tree.leaves(moved)), values(gc.tree.leaves(params))))


def test_vmap_trains_many_at_once():
    optimizer = pickle.loads(pickle.dumps(nn.Adam.functional(learning_rate=0.05)))
    step, trees = gc.train_step(loss_of, optimizer), [tree() for _ in range(3)]

    def trained(params):
        state = optimizer.init(params)
        for _ in range(3):
            params, state, loss = step(params, state, X, Y)
        return params, loss

    together, losses = gc.vmap(trained)(gc.tree.map(lambda *t: ops.stack(t), *trees))
    for k, alone in enumerate(trees):
        params, loss = trained(alone)
        np.testing.assert_allclose(losses[k].asnumpy(), loss.asnumpy(), rtol=1e-9)
        for a, b in zip(gc.tree.leaves(together), gc.tree.leaves(params), strict=True):
            np.testing.assert_allclose(a[k].asnumpy(), b.asnumpy(), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda o, p: o.init({"n": Tensor(3)}), TypeError, "tensor 0 .*Int64, which cannot be trained"),
        (lambda o, p: o.init({"n": None}), ValueError, "hold no tensor"),
        (lambda o, p: o.update(p, o.init(p), p.matrix), ValueError, "the gradients: a Weights of 2"),
        (lambda o, p: o.update(p, {}, p), ValueError, "the state: a dict of 6 is needed"),
        (lambda o, p: o.update(p, o.init(p.matrix), p), ValueError, "the state: .* got Tensor"),
        (lambda o, p: nn.Adam.functional(learningrate=1).init(p), TypeError, "learning_rate"),
    ],
)  # fmt: skip
def test_trees_that_do_not_fit(call, error, text):
    with pytest.raises(error, match=text):
        call(nn.Adam.functional(learning_rate=0.1), tree())
