"""Who owns memory, and who sees its changes when: arrays of others are never written, parameters that
threads share change all at once, and an update that fails has not happened."""

import contextlib
import ctypes
import gc as garbage
import itertools
import os
import pickle
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import gradcell as gc
from gradcell import Parameter, Tensor, _core, nn, ops
from gradcell.dataset import NumpySlicesDataset

SOURCES = Path(__file__).parents[3] / "csrc"
N = 96

launches = itertools.count(1 << 21)


@contextlib.contextmanager
def plans_made_anew() -> Iterator[None]:
    """While it lasts, the settings are none that there have been before, so no kept plan is found; they
    differ from others in what plans for a CPU do not go by."""
    _core.weigh_cuda_plans(launch=next(launches))
    try:
        yield
    finally:
        _core.weigh_cuda_plans()


def numbers():
    return np.arange(1, N + 1, dtype=np.float32)


# Doors: how memory of others comes in -------------------------------------------------------------


def plain(folder):
    a = numbers()
    return a, gc.from_numpy(a)


def read_only(folder):
    a = numbers()
    a.flags.writeable = False
    return a, gc.from_numpy(a)


def mapped(folder):
    np.save(folder / "a.npy", numbers())
    a = np.load(folder / "a.npy", mmap_mode="r")
    return a, gc.from_numpy(a)


def mapped_for_both(folder):
    np.save(folder / "b.npy", numbers())
    a = np.load(folder / "b.npy", mmap_mode="r+")
    return a, gc.from_numpy(a)


def part(folder):
    a = np.tile(numbers(), 3)
    return a, gc.from_numpy(a[N : 2 * N])


def bytes_of(folder):
    a = np.frombuffer(numbers().tobytes(), np.float32)
    return a, gc.from_numpy(a)


def made_of_array(folder):
    a = numbers()
    return a, Tensor(a)


def buffer(folder):
    a = np.frombuffer(bytearray(numbers().tobytes()), np.float32)
    return a, gc.from_numpy(a)


def by_dlpack(folder):
    a = numbers()
    return a, gc.from_dlpack(a)


class Described:
    def __init__(self, a):
        self.held, self.__array_interface__ = a, a.__array_interface__


def by_interface(folder):
    a = numbers()
    return a, Tensor(Described(a))


def in_c(folder):
    held = (ctypes.c_float * N)(*numbers())
    a = np.ctypeslib.as_array(held)
    return a, gc.from_numpy(a)


def column(folder):
    a = numbers()
    return a, next(iter(NumpySlicesDataset({"x": a[None]}, shuffle=False)))[0]


def pickled(folder):
    content = pickle.dumps(Tensor(numbers()))
    return np.frombuffer(content[-N * 4 :], np.uint8), pickle.loads(content)


def file(ending):
    def door(folder):
        path = str(folder / f"c{ending}")
        gc.save_checkpoint([{"name": "w", "data": Tensor(numbers())}], path)
        return np.fromfile(path, np.uint8), gc.load_checkpoint(path)["w"]

    door.__name__ = f"file{ending}"
    return door


def of_tensor(folder):
    t = Tensor(numbers())
    return t.asnumpy(), gc.from_numpy(t.asnumpy())


def view_of(folder):
    a = np.tile(numbers(), 2)
    return a, gc.from_numpy(a)[:N]


DOORS = [
    plain, read_only, mapped, mapped_for_both, part, bytes_of, made_of_array, buffer,
    by_dlpack, by_interface, in_c, column, pickled, file(".ckpt"), file(".safetensors"), of_tensor,
    view_of,
]  # fmt: skip


# Writers: what could write there ------------------------------------------------------------------


def trained(p, steps=3):
    step = gc.jit(lambda: ops.assign(p, p * 2))
    for _ in range(steps):
        step()


def jitted_update(t):
    p = Parameter(t)
    trained(p)
    return p


def eager_update(t):
    p = Parameter(t)
    for _ in range(3):
        ops.assign(p, p * 2)
    return p


def set_data(t):
    p = Parameter(np.zeros(N, np.float32))
    p.set_data(t)
    trained(p)
    return p


def assigned_in_jit(t):
    p = Parameter(np.zeros(N, np.float32))
    gc.jit(lambda x: ops.assign(p, x))(t)
    trained(p)
    return p


def optimised(kind, *more):
    def writer(t):
        p = Parameter(t, "p")
        optimizer = kind([p], *more)
        for _ in range(2):
            optimizer((Tensor(-numbers()),))
        return p

    writer.__name__ = kind.__name__
    return writer


def loaded(t):
    net = nn.Cell()
    net.w = Parameter(np.zeros(N, np.float32), "w")
    gc.load_param_into_net(net, {"w": Parameter(t, "w")})
    trained(net.w)
    return net.w


def elements(t):
    t[0] = 77
    return t


def chosen(t):
    t[t > 5] = 77
    return t


def elements_of_parameter(t):
    p = Parameter(t)
    p[1:5] = 77
    return p


def through_view(t):
    t.reshape(2, -1)[0][3] = 77
    return t


def in_place(t):
    t.add_(1)
    t.copy_(Tensor(np.full(N, 77, np.float32)))
    return t


def inside_jit(t):
    def f(x):
        x[0] = 77
        return x + 0

    return gc.jit(f)(t)


def same(t):
    """What comes out is no memory of what went in."""
    y = gc.jit(lambda x: x)(t)
    y.asnumpy()[0] = 77
    return y


def several_same(t):
    x = gc.jit(lambda x: (x, x))(t)[0]
    x.asnumpy()[:] = 77
    return x


def array_of_parameter(t):
    p = Parameter(t)
    p.asnumpy()[:] = 77
    trained(p, 1)
    return p


def array_of_copy(t):
    y = t.copy()
    y.asnumpy()[:] = 77
    return y


WRITERS = [
    jitted_update, eager_update, set_data, assigned_in_jit, optimised(nn.SGD), optimised(nn.Adam),
    optimised(nn.Momentum, 0.1, 0.9), loaded, elements, chosen, elements_of_parameter, through_view, in_place,
    inside_jit, same, several_same, array_of_parameter, array_of_copy,
]  # fmt: skip


@pytest.mark.parametrize("door", DOORS, ids=lambda f: f.__name__)
def test_what_belongs_to_others_is_not_written(door, tmp_path):
    for writer in WRITERS:
        memory, t = door(tmp_path)
        before = memory.copy()
        np.testing.assert_array_equal(t.asnumpy(), numbers())
        result = writer(t)
        assert not np.array_equal(result.asnumpy(), numbers()), writer.__name__  # it was written
        np.testing.assert_array_equal(memory, before, err_msg=writer.__name__)


@pytest.mark.parametrize("door", [read_only, mapped, bytes_of], ids=lambda f: f.__name__)
def test_an_array_over_memory_that_is_read_only_is_read_only(door, tmp_path):
    _, t = door(tmp_path)
    assert not t.asnumpy().flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        t.asnumpy()[0] = 1
    assert not np.asarray(t).flags.writeable
    assert Parameter(t).asnumpy().flags.writeable


def test_from_numpy_still_shares_what_its_owner_writes():
    a = numbers()
    t = gc.from_numpy(a)
    a[0] = 5
    assert float(t[0]) == 5
    t.asnumpy()[1] = 6
    assert a[1] == 6


# Threads ------------------------------------------------------------------------------------------


class Pair(nn.Cell):
    """Two parameters with the sum 0, and all elements of each alike, whenever one looks."""

    def __init__(self, n):
        super().__init__()
        self.a = Parameter(np.zeros(n, np.float64), "a")
        self.b = Parameter(np.zeros(n, np.float64), "b")

    def construct(self, x):
        return ops.stack([self.a + self.b + x, self.a])


def require_whole(a, b):
    assert (a == a[0]).all() and (b == -a[0]).all()


@pytest.mark.parametrize("n", [3, 40000])
def test_eight_threads_train_read_save_and_infer(n, tmp_path):
    net, steps, wrong = Pair(n), 60, []
    training = threading.Semaphore(3)
    ended = threading.Event()
    one = Tensor(1.0, gc.float64)

    @gc.jit
    def step(x):
        ops.assign(net.a, net.a + x)
        ops.assign(net.b, net.b - x)

    def train(update):
        with training:
            for _ in range(steps):
                update()

    optimizer = nn.SGD([net.a, net.b], 1.0)
    gradients = (Tensor(np.full(n, -1.0)), Tensor(np.full(n, 1.0)))
    infer = gc.jit(net)

    def inferred(f):
        both, a = f(Tensor(0.0, gc.float64)).asnumpy()
        assert (both == 0).all() and (a == a[0]).all()

    def read(p):
        a = p.asnumpy().copy()
        assert (a == a[0]).all()

    def save():
        path = str(tmp_path / "pair.ckpt")
        gc.save_checkpoint(net, path)
        found = gc.load_checkpoint(path)
        require_whole(found["a"].asnumpy(), found["b"].asnumpy())

    def thread(body, repeated=True):
        def run():
            try:
                body()
                while repeated and not ended.is_set():
                    body()
            except BaseException as error:
                wrong.append(error)

        return threading.Thread(target=run)

    trainers = [thread(lambda f=f: train(f), False) for f in (
        lambda: step(one), lambda: step(one), lambda: optimizer(gradients))]  # fmt: skip
    readers = [
        thread(lambda: inferred(infer)),
        thread(lambda: inferred(lambda x: ops.vmap(net)(x[None])[0])),
        thread(save),
        thread(lambda: read(net.a)),
        thread(lambda: read(net.b)),
    ]
    for t in trainers + readers:
        t.start()
    for t in trainers:
        t.join()
    ended.set()
    for t in readers:
        t.join()
    assert not wrong
    require_whole(net.a.asnumpy(), net.b.asnumpy())
    assert net.a.asnumpy()[0] == 3 * steps  # no update was lost


# Failures -----------------------------------------------------------------------------------------


class Stopped(Exception):
    pass


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # in callbacks
@pytest.mark.parametrize("compiled", [False, True])
def test_an_update_that_is_interrupted_has_happened_or_not(compiled):
    net = Pair(3000)
    optimizer = nn.Adam([net.a, net.b], 0.5)
    gradients = (Tensor(np.full(3000, -1.0)), Tensor(np.full(3000, 1.0)))
    step = gc.jit(lambda: optimizer(gradients)) if compiled else lambda: optimizer(gradients)

    def stop(signum, frame):
        raise Stopped

    stopped = 0
    before = signal.signal(signal.SIGALRM, stop)
    try:
        for attempt in range(60):
            # Planning is interrupted, too.
            with plans_made_anew() if attempt % 5 == 0 else contextlib.nullcontext():
                try:
                    signal.setitimer(signal.ITIMER_REAL, 1e-4 * (1 + attempt % 12))
                    for _ in range(20):
                        step()
                    signal.setitimer(signal.ITIMER_REAL, 0)
                except Stopped:
                    stopped += 1
            require_whole(net.a.asnumpy(), net.b.asnumpy())
            moments = [p.asnumpy() for p in optimizer.get_parameters() if p.size == 3000]
            assert all((m == m[0]).all() for m in moments)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert stopped > 0


# What compiled forms go by ------------------------------------------------------------------------


@pytest.mark.one_in(2)
def test_a_parameter_in_a_list_is_told_from_one_that_had_its_address():
    f = gc.jit(lambda ps: ops.ones(ps[0].shape))
    for n in range(1, 300):
        assert f([Parameter(np.zeros(n % 7 + 1, np.float32))]).shape == (n % 7 + 1,)
        if n % 50 == 0:
            garbage.collect()


def test_numbers_of_variables_do_not_return():
    numbers_ = [Parameter(1.0)._variable_id() for _ in range(500)]
    assert len(set(numbers_)) == 500


def test_a_dispatcher_that_is_given_what_is_no_form_raises():
    d = _core.Dispatcher(1, lambda: 0, first=lambda: 0)
    with pytest.raises((RuntimeError, TypeError)):
        d._add((0, 0, 0), (), 1, None, 0)
    assert d._count() == 0


def test_an_op_that_fails_runs_once():
    x, index = Tensor(numbers()), Tensor([N], gc.int32)
    for _ in range(4):  # traced, then compiled, then from its form
        before = _core.plan_cache_info()["runs"]
        with pytest.raises(IndexError, match=r"test_ownership\.py:\d+"):
            ops.gather(x, index, 0)
        assert _core.plan_cache_info()["runs"] <= before + 1


def test_the_lock_of_python_is_given_up_in_one_way():
    """pybind11's own unwinds threads through C++ frames when the interpreter ends (bind/gil.h)."""
    texts = {p: p.read_text() for p in SOURCES.rglob("*.cpp")}
    assert not [str(p) for p, text in texts.items() if re.search(r"gil_scoped_release", text)]


@pytest.mark.slow
def test_writing_the_cuda_text_of_plans_changes_no_plan(tmp_path):
    program = """
import numpy as np, gradcell as gc
from gradcell import ops
q = gc.Tensor(np.ones((2, 64, 8), np.float32))
def f(q):
    return ops.matmul(ops.softmax(ops.matmul(q, q.swapaxes(1, 2)) * 0.5), q).sum()
print(gc.plan_text(f, q))
print(gc.plan_text(gc.grad(f), q))
"""

    def plans(**more):
        ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                             env=os.environ | more, timeout=120)  # fmt: skip
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    assert plans() == plans(GRADCELL_SAVE_CUDA=str(tmp_path))
