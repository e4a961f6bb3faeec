"""Loops: values and derivatives against the same steps one by one, and against loops in NumPy."""

from __future__ import annotations

import time

import numpy as np
import pytest
from check_grads import check_grads
from loop_cases import BODIES, arrays, counted, function, normal, reference, scalar, unrolled

import gradcell as gc
from gradcell import Tensor, nn, ops
from gradcell.ops.control.loops import loop


def equal(found, expected, tolerance=1e-12):
    found, expected = (r if isinstance(r, (tuple, list)) else (r,) for r in (found, expected))
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        a, b = a.asnumpy(), b.asnumpy()
        assert a.shape == b.shape and a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * max(1, np.abs(b).max()))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("steps", [1, 2, 5])
@pytest.mark.parametrize("name", BODIES)
def test_values_and_gradients(name, steps, reverse):
    xs = [Tensor(a) for a in arrays(name, steps)]
    every = tuple(range(len(xs)))
    looped, apart = (function(name, how, steps, reverse) for how in (loop, unrolled))
    equal(looped(*xs), apart(*xs))
    equal(gc.grad(scalar(looped), every)(*xs), gc.grad(scalar(apart), every)(*xs))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", BODIES)
def test_second_and_third_derivatives(name, reverse):
    xs = [Tensor(a) for a in arrays(name, 3)]
    every = tuple(range(len(xs)))

    def cubed(gradient):
        return lambda *xs: sum((d * d * d).sum() for d in gradient(*xs))

    def derivative(f, order):
        for _ in range(order):
            f = cubed(gc.grad(f, every))
        return gc.grad(f, every)

    looped, apart = (scalar(function(name, how, 3, reverse)) for how in (loop, unrolled))
    for order in (1, 2):
        equal(derivative(looped, order)(*xs), derivative(apart, order)(*xs), 1e-9)


@pytest.mark.parametrize("name", BODIES)
def test_forward_mode(name):
    xs = [Tensor(a) for a in arrays(name, 4)]
    vs = [Tensor(a) for a in arrays(name, 4)]
    every = tuple(range(len(xs)))
    looped, apart = (function(name, how, 4, False) for how in (loop, unrolled))
    for of in (looped, apart):
        assert len(gc.jvp(of, tuple(xs), tuple(vs))[1]) == len(of(*xs))
    equal(gc.jvp(looped, tuple(xs), tuple(vs))[1], gc.jvp(apart, tuple(xs), tuple(vs))[1])

    def over(f):
        return lambda *xs: gc.jvp(gc.grad(scalar(f), every), xs, tuple(vs))[1]

    equal(over(looped)(*xs), over(apart)(*xs), 1e-10)


def test_against_finite_differences():
    f = function("lstm", loop, 3, False)
    check_grads(f, arrays("lstm", 3), order=3, tolerance=1e-6)


@pytest.mark.parametrize("name", BODIES)
def test_some_inputs_alone(name):
    """What is not differentiated by is a structural zero."""
    xs = [Tensor(a) for a in arrays(name, 3)]
    looped, apart = (scalar(function(name, how, 3, False)) for how in (loop, unrolled))
    for k in range(len(xs)):
        equal(gc.grad(looped, k)(*xs), gc.grad(apart, k)(*xs))


def test_integers_are_carried():
    first = [Tensor(np.array(3, np.int32)), Tensor(normal(4))]
    xs, w = Tensor(normal(5, 4)), Tensor(normal(4))

    def f(how):
        def g(h, xs, w):
            last, kept = how(lambda s, x: counted(s, x, w), [first[0], h], [xs], 5)
            return (*last, *kept)

        return g

    equal(f(loop)(first[1], xs, w), f(unrolled)(first[1], xs, w))

    def total(how):
        return lambda *a: (f(how)(*a)[1] ** 2).sum() + f(how)(*a)[2].sum()

    equal(
        gc.grad(total(loop), (0, 1, 2))(first[1], xs, w),
        gc.grad(total(unrolled), (0, 1, 2))(first[1], xs, w),
    )


@pytest.mark.parametrize("name", BODIES)
def test_over_a_batch(name):
    """Each input a batch by itself, and all of them."""
    batches = [
        Tensor(np.stack(rows)) for rows in zip(*(arrays(name, 3) for _ in range(4)), strict=True)
    ]
    one = [b[0] for b in batches]
    looped, apart = (function(name, how, 3, True) for how in (loop, unrolled))
    for k in [*range(len(batches)), None]:
        axes = tuple(0 if k in (i, None) else None for i in range(len(batches)))
        xs = [b if a == 0 else x for b, x, a in zip(batches, one, axes, strict=True)]
        equal(gc.vmap(looped, axes)(*xs), gc.vmap(apart, axes)(*xs))
    every = tuple(range(len(one)))
    equal(
        gc.vmap(gc.grad(scalar(looped), every))(*batches),
        gc.vmap(gc.grad(scalar(apart), every))(*batches),
    )

    def over(f):
        return gc.grad(lambda *xs: sum(y.sum() for y in gc.vmap(f)(*xs)), every)

    equal(over(looped)(*batches), over(apart)(*batches))


def test_taylor_and_laplacian():
    w, x = Tensor(0.5 * normal(3, 3)), Tensor(normal(4, 3))
    xs = Tensor(normal(4, 4, 3))

    def f(how):
        def g(h):
            last, _ = how(lambda s, t: ([ops.tanh(ops.matmul(s[0], w) + t[0])],) * 2, [h], [xs], 4)
            return last[0]

        return g

    for order in (1, 2, 3):
        along = Tensor(normal(order, 4, 3))
        equal(ops.jet(f(loop), x, along)[1], ops.jet(f(unrolled), x, along)[1], 1e-10)
    equal(gc.laplacian(f(loop))(x), gc.laplacian(f(unrolled))(x), 1e-10)


def test_loops_in_loops():
    def inner(how, w):
        def step(state, slices):
            last, kept = how(
                lambda s, x: ([ops.tanh(s[0] * w + x[0])], [s[0]]), state, [slices[0]], 3
            )
            return last, [kept[0].sum(0)]

        return step

    def f(how):
        def g(h, x, w):
            last, kept = how(inner(how, w), [h], [x], 2)
            return (*last, *kept)

        return g

    xs = [Tensor(normal(4)), Tensor(normal(2, 3, 4)), Tensor(normal(4))]
    equal(f(loop)(*xs), f(unrolled)(*xs))
    every = (0, 1, 2)
    equal(gc.grad(scalar(f(loop)), every)(*xs), gc.grad(scalar(f(unrolled)), every)(*xs))


@pytest.mark.parametrize("rows", [1, 2, 5, 16, 33, 200])
def test_rows_alone_and_together(rows):
    """Rows that never meet, in tiles; rows that do, by a mean over them; with threads and without."""
    w, x, h = normal(6, 6), normal(7, rows, 6), normal(rows, 6)
    for meet in (False, True):

        def step(state, slices, meet=meet):
            new = ops.tanh(ops.matmul(state[0], Tensor(w)) + slices[0])
            if meet:
                new = new - new.mean(0)
            return [new, state[0]], [new, state[1]]

        state, before, kept = h, h, [[], []]
        for t in range(7):
            new = np.tanh(state @ w + x[t])
            if meet:
                new = new - new.mean(0)
            kept[0].append(new), kept[1].append(before)
            state, before = new, state
        expected = [state, before, np.stack(kept[0]), np.stack(kept[1])]
        for threads in (1, 2, 3):
            gc._core.set_max_threads(threads)
            try:
                last, all_steps = loop(step, [Tensor(h)] * 2, [Tensor(x)], 7)
            finally:
                gc._core.set_max_threads(0)
            for found, wanted in zip([*last, *all_steps], expected, strict=True):
                np.testing.assert_allclose(found.asnumpy(), wanted, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("dtype", [gc.float16, gc.bfloat16, gc.float32])
def test_smaller_numbers(dtype):
    tolerance = {gc.float16: 2e-3, gc.bfloat16: 2e-2, gc.float32: 1e-6}[dtype]
    xs = arrays("lstm", 4)
    exact = gc.grad(scalar(function("lstm", loop, 4, False)), (0, 1, 2, 3, 4))(*map(Tensor, xs))
    small = [Tensor(x).astype(dtype) for x in xs]
    found = gc.grad(scalar(function("lstm", loop, 4, False)), (0, 1, 2, 3, 4))(*small)
    for a, b in zip(found, exact, strict=True):
        assert a.dtype == dtype
        scale = np.abs(b.asnumpy()).max()
        difference = np.abs(a.astype(gc.float64).asnumpy() - b.asnumpy()).max()
        assert difference <= 8 * tolerance * scale


def test_complex_numbers_among_what_is_the_same():
    z = Tensor(normal(3) + 1j * normal(3))
    last, _ = loop(
        lambda s, x: ([s[0] + (z * z).real() * x[0]], []),
        [Tensor(normal(3))],
        [Tensor(normal(2, 3))],
        2,
    )
    assert last[0].dtype == gc.float64
    with pytest.raises(TypeError, match="complex"):
        loop(lambda s, x: ([s[0] * 2], []), [z], [Tensor(normal(2, 3))], 2)


def test_errors():
    h, x = Tensor(normal(3)), Tensor(normal(2, 3))
    weight = gc.Parameter(Tensor(normal(3)), name="w")
    with pytest.raises(ValueError, match=r"keep dtype and shape.*\[3\].*\[2, 3\]"):
        loop(lambda s, t: ([x], []), [h], [x], 2)
    with pytest.raises(ValueError, match=r"keep dtype and shape.*float64.*float32"):
        loop(lambda s, t: ([s[0].astype(gc.float32)], []), [h], [x], 2)
    with pytest.raises(ValueError, match="differs from example to example"):
        loop(lambda s, t: ([s[0] * float(s[0].sum())], []), [h], [x], 2)
    with pytest.raises(ValueError, match="recorded once"):
        loop(lambda s, t: ([s[0] + ops.rand_like(s[0])], []), [h], [x], 2)

    def assigns(s, t):
        ops.assign(weight, s[0])
        return [s[0]], []

    with pytest.raises(ValueError):
        loop(assigns, [h], [x], 2)


def test_an_index_out_of_range():
    places = Tensor(np.array([[0, 1, 2], [0, 7, 1]]))
    with pytest.raises(IndexError):
        loop(lambda s, t: ([ops.gather(s[0], t[0], 0)], []), [Tensor(normal(3))], [places], 2)


def test_text():
    w = Tensor(np.zeros((2, 2), np.float32))

    def f(h, x):
        return loop(lambda s, t: ([ops.tanh(ops.matmul(s[0], w) + t[0])],) * 2, [h], [x], 9)[1][0]

    text = gc.graph_text(
        f, Tensor(np.zeros((3, 2), np.float32)), Tensor(np.zeros((9, 3, 2), np.float32))
    )
    assert "steps=9, carried=1, sliced=1" in text and "body=@0" in text
    assert text.split("@0\n")[1].splitlines() == [
        "  %0 = Leaf() : float32[3, 2]",
        "  %1 = Leaf() : float32[3, 2]",
        "  %2 = Leaf() : float32[2, 2]",
        "  %3 = MatMul(%0, %2) : float32[3, 2]",
        "  %4 = Add(%1, %3) : float32[3, 2]",
        "  %5 = Tanh(%4) : float32[3, 2]",
        "  next %5",
    ]
    plan = gc.plan_text(
        f, Tensor(np.zeros((3, 2), np.float32)), Tensor(np.zeros((9, 3, 2), np.float32))
    )
    assert "call Recurrence" in plan and "9 steps" in plan and "tanh" in plan


# MindSpore's loops -------------------------------------------------------------------------------


@pytest.mark.parametrize("unroll", [False, True])
def test_mindspores_loops(mode, unroll):
    xs = [Tensor(a) for a in normal(4, 3)]

    def both(carry, x):
        total, count = carry
        return (total * 0.5 + x, count + 1), {"square": total * total}

    def scanned(first, *xs):
        (total, count), ys = ops.Scan()(both, (first, 0), list(xs), unroll=unroll)
        assert len(ys) == 4
        return total.sum() + sum(y["square"].sum() for y in ys), count

    first = normal(3)
    total, loss = first, 0.0
    for x in xs:
        loss += (total * total).sum()
        total = total * 0.5 + x.asnumpy()
    value, count = scanned(Tensor(first), *xs)
    np.testing.assert_allclose(value.asnumpy(), loss + total.sum(), rtol=1e-12)
    assert int(count) == 4
    slope = gc.grad(scanned, has_aux=True)(Tensor(first), *xs)[0].asnumpy()
    h = 1e-6
    for k in range(3):
        step = h * np.eye(3)[k]
        ends = [scanned(Tensor(first + s), *xs)[0].asnumpy() for s in (step, -step)]
        np.testing.assert_allclose(slope[k], (ends[0] - ends[1]) / (2 * h), rtol=1e-6)

    assert ops.Scan()(lambda c, x: (c + 1, c), 5, None, 3, unroll=unroll)[0] == 8
    assert ops.Scan()(both, 1, [], unroll=unroll) == (1, [])
    assert float(ops.ForiLoop()(1, 5, lambda i, v: v * i, Tensor(1.0), unroll=unroll)) == 24
    assert ops.ForiLoop()(5, 5, lambda i, v: v * i, 3.0, unroll=unroll) == 3.0
    assert ops.WhileLoop()(lambda v: v < 100, lambda v: v * 3, 2) == 162
    for call, error in [
        (lambda: ops.Scan()(3, 1, [1]), TypeError),
        (lambda: ops.Scan()(both, 1, 3), TypeError),
        (lambda: ops.Scan()(both, 1, None), TypeError),
        (lambda: ops.Scan()(lambda c, x: c, 1, [1], unroll=unroll), ValueError),
        (lambda: ops.ForiLoop()(0, 1.5, lambda i, v: v, 1), TypeError),
        (lambda: ops.ForiLoop()(0, 2, lambda v: v, 1, unroll=unroll), ValueError),
        (lambda: ops.WhileLoop()(True, lambda v: v, 1), TypeError),
        (lambda: ops.WhileLoop()(lambda v: v.no_such_thing, lambda v: v, 1), ValueError),
    ]:
        with pytest.raises(error):
            call()


# Layers --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_layers_against_numpy(mode, kind):
    net = getattr(nn, kind)(3, 5, 2, bidirectional=True, dtype=gc.float64)
    parameters = [
        [p.asnumpy() for p in kind]
        for kind in (net.w_ih_list, net.w_hh_list, net.b_ih_list, net.b_hh_list)
    ]
    x, h, c = normal(6, 4, 3), normal(4, 4, 5), normal(4, 4, 5)
    expected, last = x, []
    for layer in range(2):
        outs = []
        for k in (2 * layer, 2 * layer + 1):
            order = slice(None, None, -1 if k % 2 else 1)
            out, *end = reference(kind, expected[order], h[k], c[k], *(p[k] for p in parameters))
            outs.append(out[order]), last.append(end)
        expected = np.concatenate(outs, 2)
    hx = (Tensor(h), Tensor(c)) if kind == "LSTM" else Tensor(h)
    out, state = net(Tensor(x), hx)
    np.testing.assert_allclose(out.asnumpy(), expected, rtol=1e-11)
    found = state[0] if kind == "LSTM" else state
    np.testing.assert_allclose(found.asnumpy(), np.stack([e[0] for e in last]), rtol=1e-11)
    if kind == "LSTM":
        np.testing.assert_allclose(state[1].asnumpy(), np.stack([e[1] for e in last]), rtol=1e-11)


def nodes(steps, batch=4):
    """Of a training step's plan, and how long the first call takes."""
    net = nn.LSTM(16, 16)
    net.set_train()
    step = gc.value_and_grad(lambda x: net(x)[0].sum(), None, net.trainable_params())
    x = Tensor(normal(steps, batch, 16).astype(np.float32))
    text = gc.graph_text(step, x)
    planned = gc._core.plan_cache_info()["misses"]
    began = time.perf_counter()
    step(x)
    seconds = time.perf_counter() - began
    assert gc._core.plan_cache_info()["misses"] > planned
    return text.count("\n"), seconds


def test_plans_do_not_grow_with_the_steps():
    assert nodes(10)[0] == nodes(1000)[0] < 150


def test_planning_takes_no_longer_with_more_steps():
    assert nodes(1000, 5)[1] < 0.5  # 0.02 s on a quiet machine; the tests share theirs


def test_taken_apart_for_export():
    from gradcell.show.inspect import recorded_nodes

    net = nn.GRU(3, 4)
    found, *_ = recorded_nodes(lambda x: net(x)[0], (Tensor(normal(3, 2, 3).astype(np.float32)),))
    assert "Recurrence" not in {n["op"] for n in found}
    assert sum(n["op"] == "MatMul" for n in found) == 4
