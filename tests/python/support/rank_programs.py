"""What the processes of the tests of data parallel training do: see ranks.py."""

from __future__ import annotations

import functools
import gzip
import importlib.util
import pathlib
from typing import Any

import numpy as np

import gradcell as gc
from gradcell import Tensor, _core, amp, nn, ops
from gradcell.communication import comm_func, create_group, destroy_group, get_rank

SHAPE = (6, 4)


def inputs(size: int, dtype: Any = np.float64, seed: int = 3) -> np.ndarray:
    """The inputs of all processes, [size, *SHAPE]: each knows them all."""
    random = np.random.default_rng(seed)
    values = random.integers(-9, 9, (size, *SHAPE)).astype(dtype)
    return values if np.dtype(dtype).kind != "f" else values / 4


def several(rank: int, size: int, programs: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """What some of the programs below return, given their options, one after the other."""
    found = {}
    for name, options in programs.items():
        found[name] = globals()[name](rank, size, **options)
        gc.reset_auto_parallel_context()
    return found


# Collectives --------------------------------------------------------------------------------------

#: Each collective as a function of one process's tensor.
COLLECTIVES = {
    "sum": lambda x: ops.AllReduce()(x),
    "max": lambda x: ops.AllReduce("max")(x),
    "min": lambda x: ops.AllReduce("min")(x),
    "prod": lambda x: ops.AllReduce("prod")(x),
    "gather": lambda x: ops.AllGather()(x),
    "scatter_sum": lambda x: ops.ReduceScatter()(x),
    "scatter_max": lambda x: ops.ReduceScatter("max")(x),
    "scatter_prod": lambda x: ops.ReduceScatter("prod")(x),
    "broadcast": lambda x: ops.Broadcast(1)(x),
    "reduce": lambda x: ops.Reduce(1)(x),
    "to_all": lambda x: ops.AlltoAll(gc.communication.get_group_size(), 0, 1)(x),
}


def values(rank: int, size: int) -> dict[str, Any]:
    """All collectives on all dtypes, outside of transforms and in a compiled function."""
    found = {}
    for dtype in ("float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint8"):
        if dtype == "uint8":
            x = Tensor(np.abs(inputs(size, np.int64))[rank].astype(np.uint8))
        else:
            x = Tensor(inputs(size, dtype)[rank])
        for name, function in COLLECTIVES.items():
            at_once = function(x)
            compiled = gc.jit(function)
            for y in (compiled(x), compiled(x)):
                assert y.dtype == at_once.dtype
                assert np.array_equal(y.asnumpy(), at_once.asnumpy()), (name, dtype)
            found[name, dtype] = at_once.asnumpy()
    flags = Tensor(inputs(size)[rank] > 0)
    found["any"] = ops.AllReduce("max")(flags).asnumpy()
    found["all"] = ops.AllReduce("min")(flags).asnumpy()
    bf = Tensor(inputs(size)[rank], gc.bfloat16)
    found["bfloat16"] = ops.AllReduce()(bf).astype(gc.float32).asnumpy()
    nan = Tensor(np.array([np.nan if rank == 1 else 2.0, float(rank)], np.float32))
    found["nan"] = [ops.AllReduce(op)(nan).asnumpy() for op in ("max", "min")]
    empty = ops.AllGather()(Tensor(np.zeros((0, 3), np.float32)))
    found["empty"] = tuple(empty.shape)
    return found


def functions(rank: int, size: int) -> dict[str, Any]:
    """comm_func, messages and groups of some processes."""
    x = Tensor(inputs(size, np.float32)[rank])
    found: dict[str, Any] = {}
    y, handle = comm_func.all_reduce(x, "max", async_op=True)
    handle.wait()
    found["all_reduce"] = y.asnumpy()
    found["gather"] = comm_func.gather_into_tensor(x, 1).asnumpy()
    found["scatter"] = comm_func.scatter_tensor(x, 2).asnumpy()
    found["reduce"] = comm_func.reduce(x, 0, "min").asnumpy()
    rows = Tensor(np.arange(6, dtype=np.float32).reshape(6, 1) + 10 * rank)
    given, had = [[1, 2, 3], [3, 2, 1], [0, 6, 0]][rank], [[1, 3, 0], [2, 2, 6], [3, 1, 0]][rank]
    out, _ = comm_func.all_to_all_single_with_output_shape((sum(had), 1), rows, had, given)
    found["uneven"] = out.asnumpy()
    if rank == 0:
        comm_func.send(x, 2, tag=5)
    if rank == 2:
        into = Tensor(np.zeros(SHAPE, np.float32))
        found["received"] = comm_func.recv(into, 0, tag=5).asnumpy()
    if rank in (0, 2):
        create_group("ends", [2, 0])
        found["ends"] = ops.AllGather("ends")(Tensor([rank])).asnumpy().tolist()
        found["number"] = get_rank("ends")
        destroy_group("ends")
    comm_func.barrier()
    found["traffic"] = _core.communication.traffic()
    return found


def derivatives(rank: int, size: int) -> dict[str, Any]:
    """First and second derivatives through collectives in the middle of a function, and forward
    ones."""
    found = {}
    x = Tensor(inputs(size)[rank] + 0.1 * rank + 0.37)
    weight = Tensor(np.linspace(0.5, 1.5, SHAPE[0] * SHAPE[1]).reshape(SHAPE) + rank)
    for name, collective in COLLECTIVES.items():

        def loss(x: Any, collective: Any = collective) -> Any:
            y = collective(ops.sin(x) * weight)
            rows = ops.arange(y.shape[0]).astype(gc.float64).reshape(-1, *([1] * (y.ndim - 1)))
            return (ops.cos(y) * (rows + 1.0 + rank)).sum() + (y * y * 0.1).sum()

        def slope(x: Any, loss: Any = loss) -> Any:
            return (gc.grad(loss)(x) ** 2).sum()

        _, tangent = gc.jvp(loss, (x,), (weight,))
        found[name] = {
            "loss": loss(x).asnumpy(),
            "grad": gc.grad(loss)(x).asnumpy(),
            "jit": gc.jit(gc.grad(loss))(x).asnumpy(),
            "second": gc.grad(slope)(x).asnumpy(),
            "tangent": tangent.asnumpy(),
        }
    zero = Tensor(np.array([0.0, 2.0, 0.0 if rank == 1 else 3.0]) + (rank if rank != 0 else 0))

    def product(x: Any) -> Any:
        return (ops.AllReduce("prod")(x) * (1.0 + rank)).sum()

    found["zeros"] = (zero.asnumpy(), gc.grad(product)(zero).asnumpy())
    return found


def batched(rank: int, size: int) -> dict[str, Any]:
    """vmap over collectives, against one example after the other; derivatives along directions."""
    found = {}
    x = Tensor(inputs(size)[rank] * (1.0 + np.arange(3.0).reshape(3, 1, 1)))
    for name, collective in COLLECTIVES.items():
        before = _core.communication.traffic()["exchanges"]
        over = gc.vmap(lambda x, f=collective: f(x * 2.0))(x)
        count = _core.communication.traffic()["exchanges"] - before
        single = [collective(x[k] * 2.0).asnumpy() for k in range(3)]
        found[name] = (over.asnumpy(), np.stack(single), count)
    return found


def ordered(rank: int, size: int) -> list[Any]:
    """Values asked for by one process in the middle of a function, and results that nobody uses."""
    x = Tensor(inputs(size)[rank])

    def function(x: Any) -> Any:
        ops.AllReduce("max")(x)  # takes place, used or not
        a = ops.AllReduce()(x * x)
        if rank == 0:
            assert float(a.sum().asnumpy()) > 0  # now here, later elsewhere
        b = ops.AllReduce("min")(a + rank)
        ops.Barrier()()
        if rank == 1:
            float(b.sum().asnumpy())
        return (a * b * x).sum()

    before = _core.communication.traffic()["exchanges"]
    value = function(x)
    count = _core.communication.traffic()["exchanges"] - before
    before = _core.communication.traffic()["exchanges"]
    g = gc.grad(function)(x)
    return [
        value.asnumpy(),
        count,
        g.asnumpy(),
        _core.communication.traffic()["exchanges"] - before,
    ]


def sequences(rank: int, size: int, seeds: range) -> dict[int, Any]:
    """Random programs of collectives, the same on all processes: the results of each, by its seed."""
    found = {}
    for seed in seeds:
        random = np.random.default_rng(seed)
        steps = [
            (str(random.choice(list(COLLECTIVES))), float(random.uniform(0.5, 1.5)))
            for _ in range(random.integers(1, 6))
        ]
        keep = bool(random.integers(2))
        x = Tensor(inputs(size, np.float64, seed)[rank])

        def program(x: Any, steps: Any = steps, keep: bool = keep) -> Any:
            results, y = [], x
            for name, factor in steps:
                z = COLLECTIVES[name](y * factor)
                results.append(z)
                rows = z.reshape(-1)[: SHAPE[0] * SHAPE[1]]
                pad = SHAPE[0] * SHAPE[1] - rows.shape[0]
                rows = ops.concat([rows, ops.ones((pad,), gc.float64)]) if pad else rows
                y = ops.tanh(rows.reshape(SHAPE)) + (y if keep else 0.0)
            return tuple(results)

        runs = (program, gc.jit(program)) if seed % 2 else (gc.jit(program),)
        found[seed] = [[r.asnumpy() for r in run(x)] for run in runs]
    return found


# Training -----------------------------------------------------------------------------------------


class Network(nn.Cell):
    """Digits of 64 pixels to 10 classes."""

    def __init__(self, norm: str = "") -> None:
        super().__init__()
        # (A bias before a normalisation has a gradient of rounding errors alone.)
        self.first = nn.Dense(64, 32, has_bias=not norm)
        self.norm = {"": lambda: None, "sync": lambda: nn.SyncBatchNorm(32), "own": nn.BatchNorm1d}[
            norm
        ](*([32] if norm == "own" else []))
        self.second = nn.Dense(32, 10)

    def construct(self, x: Any) -> Any:
        h = self.first(x)
        if self.norm is not None:
            h = self.norm(h)
        return self.second(ops.relu(h))


@functools.cache
def digits(count: int = 480) -> tuple[np.ndarray, np.ndarray]:
    """Read from scikit-learn's file: to import its package takes a process longer than to train."""
    package = importlib.util.find_spec("sklearn")
    assert package is not None and package.origin is not None
    file = pathlib.Path(package.origin).parent / "datasets" / "data" / "digits.csv.gz"
    with gzip.open(file, "rt") as lines:
        data = np.loadtxt(lines, np.float32, delimiter=",", max_rows=count)
    return data[:, :-1] / 16, data[:, -1].astype(np.int32)


class Accumulating(nn.TrainOneStepCell):
    """Two parts of a batch before each update."""

    def construct(self, x: Any, y: Any) -> Any:
        half = x.shape[0] // 2
        loss, grads = self.value_and_gradients(None, (x[:half], y[:half]))
        loss2, more = self.value_and_gradients(None, (x[half:], y[half:]))
        grads = tuple((a + b) * 0.5 for a, b in zip(grads, more, strict=True))
        self.optimizer(self.grad_reducer(grads))
        return (loss + loss2) * 0.5


class Clipping(nn.TrainOneStepCell):
    """With the gradients' global norm clipped."""

    def construct(self, x: Any, y: Any) -> Any:
        loss, grads = self.value_and_gradients(None, (x, y))
        self.optimizer(ops.clip_by_global_norm(self.grad_reducer(grads), 0.5))
        return loss


def train(rank: int, size: int, option: str = "", steps: int = 12, graph: bool = False) -> Any:
    """Losses (means over all processes) and final parameters of a few steps on the digits."""
    gc.set_context(mode=gc.GRAPH_MODE if graph else gc.PYNATIVE_MODE)
    gc.set_auto_parallel_context(
        parallel_mode="data_parallel",
        gradients_mean=True,
        parameter_broadcast=option == "broadcast",
        enable_parallel_optimizer=option.startswith("shared"),
        parallel_optimizer_config={"parallel_optimizer_threshold": 0},
    )
    gc.set_seed(7 + (rank if option == "broadcast" else 0))
    net = Network("sync" if option == "norm" else "")
    if option == "half":
        net.to_float(gc.float16)
    loss_fn = nn.CrossEntropyLoss()
    with_loss = nn.WithLossCell(net, loss_fn)
    optimizer = (
        nn.Momentum(net.trainable_params(), 0.1, 0.9)
        if option == "buckets"
        else nn.AdamWeightDecay(net.trainable_params(), 1e-2, weight_decay=0.01)
        if option == "decay"
        else nn.Adam(net.trainable_params(), 1e-2)
    )
    if option == "buckets":
        gc.set_auto_parallel_context(all_reduce_fusion_config=[1, 2])
    if option in ("scale", "shared scale", "half"):
        update = nn.DynamicLossScaleUpdateCell(2.0**14, 2, 4)
        step = nn.TrainOneStepWithLossScaleCell(with_loss, optimizer, update)
    elif option.endswith("line"):
        step = gc.train_step(with_loss, optimizer, scaler=amp.StaticLossScaler(2.0**10))
    else:
        kind = {"accumulate": Accumulating, "clip": Clipping}.get(option, nn.TrainOneStepCell)
        step = kind(with_loss, optimizer)
    net.set_train()
    x, y = digits()
    losses, scales, batch = [], [], 48
    for k in range(steps):
        rows = np.arange(k * batch, (k + 1) * batch) % len(x)
        # Each half of a process's part is the part of a half of the batch.
        mine = rows.reshape(2, size, -1)[:, rank].reshape(-1)
        data = x[mine].copy()
        if option in ("scale", "shared scale") and k == 5 and rank == size - 1:
            data[0, 0] = np.inf  # one process overflows: none makes the step
        out = step(Tensor(data), Tensor(y[mine]))
        loss = out[0] if isinstance(out, tuple) else out
        losses.append(float(ops.AllReduce()(loss.astype(gc.float64)).asnumpy()) / size)
        if isinstance(out, tuple):
            scales.append((bool(out[1].asnumpy()), float(out[2].asnumpy())))
    state = {p.name: tuple(p.shape) for p in optimizer.get_parameters()}
    weights = {p.name: p.asnumpy().copy() for p in net.get_parameters()}
    return {"losses": losses, "scales": scales, "weights": weights, "state": state}


def trains(rank: int, size: int, options: list[str]) -> list[dict[str, Any]]:
    """Several trainings, one after the other, and once more."""
    found: list[dict[str, Any]] = [{}, {}]
    for once in found:
        for option in options:
            once[option] = train(
                rank, size, option.removesuffix("+graph"), graph="+graph" in option
            )
            gc.reset_auto_parallel_context()
    return found


def pinn(rank: int, size: int, points: int = 64) -> Any:
    """A few steps on u'' + u = 0 by the mean over all points, each process with its part."""
    gc.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
    gc.set_seed(1)
    net = nn.SequentialCell(
        nn.Dense(1, 16), nn.Tanh(), nn.Dense(16, 16), nn.Tanh(), nn.Dense(16, 1)
    )

    class Residual(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.net = net

        def construct(self, x: Any) -> Any:
            slope = gc.grad(lambda x: self.net(x).sum())
            second = gc.grad(lambda x: slope(x).sum())(x)
            return ((second + self.net(x)) ** 2).mean() + (self.net(x[:1] * 0.0) - 1.0).sum() ** 2

    step = nn.TrainOneStepCell(Residual(), nn.Adam(net.trainable_params(), 1e-2))
    x = np.linspace(0, 3, points, dtype=np.float32).reshape(-1, 1)
    mine = Tensor(x[rank * points // size : (rank + 1) * points // size])
    for _ in range(10):
        step(mine)
    return [p.asnumpy().copy() for p in net.get_parameters()]


def least_squares(rank: int, size: int, points: int = 48) -> Any:
    """Gauss-Newton steps for u'' + u = 0 and an unknown amplitude, each process with its part of the points:
    by the matrix, with few points too, by products, with momentum and after steps of Adam; the weights and
    what runs say."""
    gc.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
    found: list[Any] = []
    for options in (
        {},
        {"method": "cg"},
        {"momentum": 0.5},
        {"few": 8, "damping": 1e-4},
        {"adam": 5},
    ):
        given = dict(options)
        few, adam = given.pop("few", points), given.pop("adam", 0)
        net = gc.physics.network([1, 8, 1], 1, gc.float64)
        scale = gc.Parameter(Tensor(np.array([2.0])), name="scale")
        second = gc.laplacian(net)

        def inside(x: Any, net: Any = net, second: Any = second) -> Any:
            return second(x) + net(x)

        def measured(x: Any, u: Any, net: Any = net, scale: Any = scale) -> Any:
            return net(x) * scale - u

        x = np.linspace(0, 3, few).reshape(-1, 1)
        mine = x[rank * few // size : (rank + 1) * few // size]
        solver = gc.GaussNewton(
            [inside, measured], [*net.trainable_params(), scale], weights=[1, 10], **given
        )
        end = solver.run(12, mine, (mine, np.cos(mine)), max_seconds=1e6, adam=adam)
        found.append((end.loss, end.x, end.reason, solver.damping))
    return found


def model(rank: int, size: int, folder: str, resume: bool) -> Any:
    """Model.train with a sharded dataset and checkpoints, or going on from one."""
    from gradcell.dataset import NumpySlicesDataset
    from gradcell.train import CheckpointConfig, LossMonitor, Model, ModelCheckpoint

    gc.set_auto_parallel_context(
        parallel_mode="data_parallel",
        gradients_mean=True,
        enable_parallel_optimizer=True,
        parallel_optimizer_config={"parallel_optimizer_threshold": 0},
    )
    gc.set_seed(11)
    x, y = digits(192)
    data = NumpySlicesDataset((x, y), shuffle=False, num_shards=size, shard_id=rank)
    data = data.batch(48 // size)
    net = Network()
    optimizer = nn.Adam(net.trainable_params(), 1e-2)
    trainer = Model(net, nn.CrossEntropyLoss(), optimizer)
    config = CheckpointConfig(save_checkpoint_steps=4, keep_checkpoint_max=5)
    saver = ModelCheckpoint("digits", folder, config)
    if resume:
        trainer.resume(f"{folder}/digits-1_4.ckpt")
    trainer.train(2, data, callbacks=[LossMonitor(), saver])
    shapes = {p.name: tuple(p.shape) for p in optimizer.get_parameters()}
    return {"weights": [p.asnumpy().copy() for p in net.get_parameters()], "shapes": shapes}


def reducers(rank: int, size: int) -> dict[str, Any]:
    """nn.DistributedGradReducer itself."""
    gc.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
    found = {}
    big = Tensor(np.full(3, 60000, np.float16))
    found["half mean"] = nn.DistributedGradReducer([])((big,))[0].asnumpy()
    parts = tuple(
        Tensor(inputs(size, d)[rank]) for d in ("float32", "float16", "float32", "float64")
    )
    found["sum"] = [g.asnumpy() for g in nn.DistributedGradReducer([], mean=False)(parts)]
    found["degree"] = nn.DistributedGradReducer([], True, 4)(parts)[0].asnumpy()
    return found
