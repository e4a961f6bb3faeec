"""Collectives on GPUs: NCCL's calls and their order, on a made-up NCCL beside the made-up driver."""

from __future__ import annotations

import socket
from subprocess import CompletedProcess

import numpy as np
from forked_scripts import Script
from made_up_gpu import HEAD, Process

START = """
ms.set_context(device_target="GPU")
from gradcell import communication, _core
communication.init()
rank, size = communication.get_rank(), communication.get_group_size()
"""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def ended(
    process: Process, body: str, count: int = 2, **environment: str
) -> list[CompletedProcess[str]]:
    """How `count` processes end, started as torchrun does."""
    port = free_port()
    started = [
        Script(
            HEAD + START + body,
            {
                **process.environment,
                "FAKE_NCCL_LOG": str(process.folder),
                "FAKE_CUDA_DEVICES": str(count),
                "FAKE_CUDA_COUNTS": str(process.folder / f"counts_{rank}"),
                "WORLD_SIZE": str(count), "RANK": str(rank), "LOCAL_RANK": str(rank),
                "LOCAL_WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1",
                "GRADCELL_PORT": str(port), **environment,
            },
        )
        for rank in range(count)
    ]  # fmt: skip
    return [script.result() for script in started]


def run(process: Process, body: str, count: int = 2, **environment: str) -> list[str]:
    """What `count` processes print, all of which end well."""
    done = ended(process, body, count, **environment)
    for one in done:
        assert one.returncode == 0, one.stderr[-3000:]
    return [one.stdout for one in done]


def calls(process: Process, rank: int) -> list[str]:
    return (process.folder / f"nccl_{rank}").read_text().splitlines()


def test_each_collective(process: Process) -> None:
    """Values, and what is called with which counts, types and reductions."""
    texts = run(
        process,
        """
x = Tensor((np.arange(8) + 10 * rank).astype(np.float32).reshape(4, 2))
found = [ops.AllReduce()(x), ops.AllReduce("max")(x), ops.AllGather()(x),
         ops.ReduceScatter("min")(x), ops.Broadcast(1)(x), ops.Reduce(0)(x),
         ops.AlltoAll(2, 0, 1)(x), ops.AllReduce("prod")(x.astype(ms.float16))]
ops.Barrier()()
print([f.asnumpy().tolist() for f in found])
""",
    )
    parts = [np.arange(8.0).reshape(4, 2) + 10 * r for r in range(2)]
    for rank, text in enumerate(texts):
        found = eval(text)
        want = [
            parts[0] + parts[1], parts[1], np.concatenate(parts), parts[0][2 * rank :][:2],
            parts[1], (parts[0] + parts[1]) * (rank == 0),
            np.concatenate([p[2 * rank : 2 * rank + 2] for p in parts], 1), parts[0] * parts[1],
        ]  # fmt: skip
        for got, expected in zip(found, want, strict=True):
            np.testing.assert_array_equal(np.array(got), expected)
        assert calls(process, rank) == [
            f"init {rank} of 2", "all_reduce 8 type 7 op 0", "all_reduce 8 type 7 op 2",
            "all_gather 32 type 1", "reduce_scatter 4 type 7 op 3", "broadcast 32 type 1 op 1",
            "reduce 8 type 7 op 0", "all_to_all 16 type 1", "all_gather 16 type 1",
            "all_reduce 1 type 2 op 0",
        ]  # fmt: skip


def test_training_steps_are_captured(process: Process) -> None:
    """Two GPUs train as one, and from the third step on a step is one launch of a graph."""
    body = """
net = nn.SequentialCell(nn.Dense(3, 8), nn.Tanh(), nn.Dense(8, 2))
for p in net.get_parameters():
    p.set_data(Tensor(np.linspace(-1, 1, p.size).astype(np.float32).reshape(p.shape)))
ms.set_context(mode=ms.GRAPH_MODE)
ms.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()),
                           nn.Adam(net.trainable_params(), 1e-2))
x = rng.standard_normal((8, 3)).astype(np.float32)
y = rng.standard_normal((8, 2)).astype(np.float32)
rows = slice(rank * 8 // size, (rank + 1) * 8 // size)
for _ in range(6):
    loss = step(Tensor(x[rows]), Tensor(y[rows]))
print([p.asnumpy().tolist() for p in net.get_parameters()])
"""
    two = [eval(text) for text in run(process, body)]
    one = eval(process.good(START + body))
    for rank in range(2):
        for got, want in zip(two[rank], one, strict=True):
            np.testing.assert_allclose(np.array(got), np.array(want), rtol=2e-4, atol=1e-6)
    log = calls(process, 0)
    assert log == calls(process, 1)[:0] + log and len(log) == len(calls(process, 1))
    assert any(line.endswith("captured") for line in log)
    counts = dict(line.split() for line in (process.folder / "counts_0").read_text().splitlines())
    assert int(counts["graphs"]) >= 1


def test_without_nccl(process: Process) -> None:
    """Every process says so itself; none waits for the others."""
    done = ended(process, "", GRADCELL_NCCL="/nowhere/libnccl.so.2")
    assert all(one.returncode != 0 and "gradcell[cuda13]" in one.stderr for one in done)


def test_the_device_comes_before_init(process: Process) -> None:
    """A group that was made without GPUs has nothing to exchange with on them."""
    body = """
ms.set_context(device_target="GPU")
try:
    _core.ops.all_reduce(tensor(3), 77, 2, 0, 0).asnumpy()
except RuntimeError as error:
    print(error)
"""
    assert "choose the device before communication.init" in process.good(START + body)
