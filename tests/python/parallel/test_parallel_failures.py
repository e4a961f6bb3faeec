"""Processes that fall out of step: errors that name who and where, within seconds, not hangs."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import time

import pytest
from ranks import needs_ranks, start

import gradcell

pytestmark = needs_ranks

HEAD = """
import numpy as np
import gradcell as gc
from gradcell import Tensor, nn, ops
from gradcell.communication import init, get_rank, get_group_size
init()
rank, size = get_rank(), get_group_size()
x = Tensor(np.ones(3, np.float32))
def say(text): __import__("os").write(1, (text + "\\n").encode())  # one write: a line stays whole
"""
#: Seconds within which every process has to be gone.
LIMIT = 30


def fails(tmp_path: pathlib.Path, body: str, count: int = 2, **environment: str) -> str:
    """What the processes print: the run ends, not with success, within the limit."""
    script = tmp_path / "program.py"
    script.write_text(HEAD + body)
    begin = time.monotonic()
    done = start(count, str(script), timeout=LIMIT + 30, **environment)
    assert time.monotonic() - begin < LIMIT
    assert done.returncode != 0, done.stdout
    return done.stdout + done.stderr


def test_different_shapes_and_dtypes_can_be_answered(tmp_path: pathlib.Path) -> None:
    """All processes raise the same, and may go on."""
    script = tmp_path / "program.py"
    script.write_text(
        HEAD
        + """
def refused(call):
    try:
        call()
    except RuntimeError as error:
        return str(error)
    raise AssertionError("not refused")

a = refused(lambda: ops.AllReduce()(x if rank == 0 else ops.ones((4,))))
b = refused(lambda: ops.AllReduce()(x if rank == 0 else x.astype(gc.float64)))
c = refused(lambda: ops.AllReduce()(x) if rank == 0 else ops.AllGather()(x))
d = refused(lambda: ops.AllReduce("max" if rank else "sum")(x))
assert "rank 0: AllReduce(sum) of float32[3]" in a and "rank 1: AllReduce(sum) of float32[4]" in a, a
assert a.count("program.py:18)") >= 2, a
assert "float32[3]" in b and "float64[3]" in b
assert "rank 1: AllGather of float32[3]" in c
assert "AllReduce(max)" in d and "AllReduce(sum)" in d
def two(x):
    y = ops.AllReduce()(x * 2.0)
    return ops.AllGather()(y) if rank == 0 else y
def both():
    gc.jit(two)(x)
    ops.AllReduce("min")(x)
e = refused(both)
assert "rank 0: AllGather" in e and "rank 1: AllReduce(min)" in e, e
assert ops.AllReduce()(x).asnumpy().tolist() == [size] * 3
print("went on")
"""
    )
    done = start(2, str(script))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("went on") == 2


def test_a_collective_that_only_some_call(tmp_path: pathlib.Path) -> None:
    text = fails(tmp_path, "if rank == 0:\n    ops.AllReduce()(x)\n")
    assert "rank 0: AllReduce(sum) of float32[3]" in text and "program.py:11" in text
    assert "rank 1: the end of its program" in text


def test_a_process_that_raises(tmp_path: pathlib.Path) -> None:
    text = fails(
        tmp_path,
        """
ops.AllReduce()(x)
if rank == 1:
    raise ValueError("the data are gone")
ops.AllReduce()(x)
""",
        3,
    )
    assert "rank 1 stopped: ValueError: the data are gone" in text
    assert "was waiting for it in AllReduce(sum) of float32[3]" in text


@pytest.mark.one_in(12)
@pytest.mark.parametrize("trial", range(6))
@pytest.mark.parametrize("much", [False, True])
def test_the_last_words_arrive(tmp_path: pathlib.Path, much: bool, trial: int) -> None:
    """What a process printed before it ends all of them is passed on, however much it is. It was not, now and
    then: each is tried some times."""
    text = fails(
        tmp_path,
        f"""
import sys
ops.AllReduce()(x)
if {much}:
    print("." * 60000, file=sys.stderr)
raise ValueError(f"rank {{rank}} says so and has ended")
""",
    )
    assert "rank 0 says so and has ended" in text and "rank 1 says so and has ended" in text


def test_last_words_wait_for_their_reader() -> None:
    program = "import sys, gradcell.communication.engine as e; print('x'); e._wait_for_readers()"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1.5)  # nobody reads: it waits
        assert process.stdout.read() == b"x\n"
        assert process.wait(LIMIT) == 0


def test_a_step_that_fails_in_the_middle(tmp_path: pathlib.Path) -> None:
    text = fails(
        tmp_path,
        """
def step(x, i):
    y = ops.AllReduce()(x)
    z = ops.cumsum(y[ops.cumsum(i, 0)], 0)
    return ops.AllReduce()(z)
gc.jit(step)(x, Tensor([0, 1 if rank == 0 else 70]))
""",
    )
    assert "rank 1 stopped:" in text and "out of range" in text


def test_a_process_that_is_killed(tmp_path: pathlib.Path) -> None:
    body = """
import os, signal
for k in range(100000):
    ops.AllReduce()(x)
    if k == 20 and rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
"""
    assert "signal 9" in fails(tmp_path, body)  # the launcher's word, which ends the others
    begin = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "gradcell", "msrun", "--worker_num=3", str(tmp_path / "program.py")],
        capture_output=True, text=True, timeout=LIMIT + 30,
    )  # fmt: skip
    assert done.returncode != 0 and time.monotonic() - begin < LIMIT
    assert "rank 1 (process" in done.stderr and "ended by signal 9" in done.stderr, done.stderr


def test_a_process_without_memory(tmp_path: pathlib.Path) -> None:
    text = fails(
        tmp_path,
        """
ops.AllReduce()(x)
if rank == 0:
    ops.ones((1 << 20, 1 << 20, 1 << 10))
ops.AllReduce()(x)
""",
    )
    assert "rank 0 stopped: MemoryError" in text


@pytest.mark.one_in(2)
@pytest.mark.parametrize("killed", [0, 1])
def test_checkpoints_are_whole(tmp_path: pathlib.Path, killed: int) -> None:
    """Of a run in which the process that writes is killed while it does, or another in a step."""
    text = fails(
        tmp_path,
        f"""
import os, signal
from gradcell.train import Callback, CheckpointConfig, Model, ModelCheckpoint

calls = []
def dies(*_):
    calls.append(1)
    if rank == {killed} and len(calls) == 5:
        os.kill(os.getpid(), signal.SIGKILL)
class Dies(Callback):
    step_end = dies
if {killed} == 0:
    sync = os.fsync
    os.fsync = lambda file: (dies(), sync(file))  # the third file's bytes are on their way

gc.set_auto_parallel_context(parallel_mode="data_parallel", enable_parallel_optimizer=True)
gc.set_seed(1)
net = nn.SequentialCell(nn.Dense(3, 400), nn.Dense(400, 1))
model = Model(net, nn.MSELoss(), nn.Adam(net.trainable_params()))
data = [(np.ones((2, 3), np.float32), np.ones((2, 1), np.float32))] * 8
config = CheckpointConfig(save_checkpoint_steps=1, keep_checkpoint_max=10)
saver = ModelCheckpoint("net", {str(tmp_path / "saved")!r}, config)
model.train(1, data, callbacks=[saver, *([Dies()] if {killed} else [])])
""",
    )
    assert "signal 9" in text or "KILLED BY SIGNAL: 9" in text, text
    saved = sorted((tmp_path / "saved").glob("*.ckpt"))
    assert len(saved) >= 2
    for file in saved:
        found = gradcell.load_checkpoint(str(file))
        assert [p.shape for n, p in found.items() if n.endswith("0.weight")] == [(400, 3)] * 3


def test_waiting_has_an_end(tmp_path: pathlib.Path) -> None:
    """Where nobody says anything: a group's members are somewhere else."""
    text = fails(
        tmp_path,
        """
import time
from gradcell.communication import create_group
create_group("both", [0, 1])
if rank == 0:
    ops.AllReduce(group="both")(x)
else:
    ops.AllGather()(x)
""",
        GRADCELL_COLLECTIVE_TIMEOUT="2",
    )
    assert "waited 2 s in AllReduce(sum) of float32[3]" in text or "waited 2 s in AllGather" in text
    assert "AllGather of float32[3]" in text and "AllReduce(sum) of float32[3]" in text


def test_fewer_batches(tmp_path: pathlib.Path) -> None:
    text = fails(
        tmp_path,
        """
gc.set_auto_parallel_context(parallel_mode="data_parallel")
gc.set_seed(1)
net = nn.Dense(3, 1)
model = gc.train.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params()))
data = [(np.ones((2, 3), np.float32), np.ones((2, 1), np.float32))] * (5 - rank)
model.train(1, data)
""",
    )
    assert "rank 1 has 4 batches in an epoch, rank 0 5" in text
    assert "num_shards" in text


def test_different_seeds(tmp_path: pathlib.Path) -> None:
    text = fails(
        tmp_path,
        """
gc.set_auto_parallel_context(parallel_mode="data_parallel")
gc.set_seed(rank)
net = nn.Dense(3, 1)
step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params()))
step(Tensor(np.ones((2, 3), np.float32)), Tensor(np.ones((2, 1), np.float32)))
""",
    )
    assert "rank 1 begins with another 'weight' than rank 0" in text
    assert "set_seed" in text and "parameter_broadcast" in text


def test_different_versions_and_programs(tmp_path: pathlib.Path) -> None:
    body = HEAD.replace(
        "init()",
        "\nif int(os.environ.get('PMI_RANK', "
        "os.environ.get('OMPI_COMM_WORLD_RANK', 0))) == 1: gc.__version__ = '9.9'\ninit()",
        1,
    )
    script = tmp_path / "versions.py"
    script.write_text("import os\n" + body)
    done = start(2, str(script), timeout=LIMIT)
    assert done.returncode != 0
    assert f"rank 0 runs gradcell {gradcell.__version__}, rank 1 9.9" in done.stderr
    other = HEAD.replace("init()", "if rank == 1: __file__ = os.devnull\ninit()", 1)
    rank = 'os.environ.get("PMI_RANK", os.environ.get("OMPI_COMM_WORLD_RANK"))'
    script.write_text(f"import os\nrank = int({rank})\n{other}ops.AllReduce()(x)\n")
    done = start(2, str(script), timeout=LIMIT)
    assert done.returncode == 0, done.stderr
    assert "rank 1 runs another program than rank 0" in done.stderr


def test_init_twice_and_release(tmp_path: pathlib.Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(
        HEAD
        + """
init()
init("mccl")
gc.communication.release()
try:
    ops.AllReduce()(x)
except RuntimeError as error:
    assert "call communication.init() first" in str(error)
    print("refused")
"""
    )
    done = start(2, str(script))
    assert done.returncode == 0 and done.stdout.count("refused") == 2, done.stderr


def test_without_mpi4py(tmp_path: pathlib.Path) -> None:
    """One of several processes, and nothing that brings them together."""
    (tmp_path / "mpi4py.py").write_text("raise ImportError('No module named mpi4py')\n")
    environment = {**os.environ, "PMI_SIZE": "2", "PMI_RANK": "0"}
    environment["PYTHONPATH"] = os.pathsep.join(
        [str(tmp_path), str(pathlib.Path(gradcell.__file__).resolve().parent.parent)]
    )
    done = subprocess.run(
        [sys.executable, "-c", HEAD], env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1
    assert "pip install 'gradcell[mpi]'" in done.stderr and "one of 2 processes" in done.stderr


def test_a_launcher_of_another_mpi(tmp_path: pathlib.Path) -> None:
    environment = {**os.environ, "OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "0"}
    environment["PYTHONPATH"] = str(pathlib.Path(gradcell.__file__).resolve().parent.parent)
    done = subprocess.run(
        [sys.executable, "-c", HEAD], env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1 and "another MPI" in done.stderr, done.stderr


@pytest.mark.one_in(3)
def test_msrun(tmp_path: pathlib.Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(HEAD + "import sys\nsay(f'rank {rank} of {size} {sys.argv[1:]}')\n")

    def msrun(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "gradcell", "msrun", *arguments],
            capture_output=True, text=True, timeout=60,
        )  # fmt: skip

    done = msrun("--worker_num=2", "--master_port=8118", str(script), "--flag")
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [f"rank {r} of 2 ['--flag']" for r in range(2)]
    done = msrun("--worker_num=2", f"--log_dir={tmp_path / 'log'}", str(script))
    assert done.returncode == 0 and not done.stdout, done.stderr
    logs = sorted(p.read_text() for p in (tmp_path / "log").iterdir())
    assert logs == [f"rank {r} of 2 []\n" for r in range(2)]
    assert msrun("--worker_num=2", "nowhere.py").returncode == 2
    assert msrun("--worker_num=4", "--local_worker_num=2", str(script)).returncode == 2


def test_threads_are_shared_out(tmp_path: pathlib.Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(HEAD + "say(f'{gc._core.max_threads()} {len(os.sched_getaffinity(0))}')\n")
    script.write_text("import os\n" + script.read_text())
    done = start(2, str(script), GRADCELL_NUM_THREADS="")
    assert done.returncode == 0, done.stderr
    for line in done.stdout.splitlines():
        threads, processors = map(int, line.split())
        assert threads == max(1, processors // 2)


def test_info_names_the_mpi() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "gradcell", "info"], capture_output=True, text=True, timeout=60
    )
    assert "mpi4py" in next(line for line in done.stdout.splitlines() if line.startswith("MPI"))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("option", ["LossMonitor", "TimeMonitor"])
def test_rank_0_alone_prints(tmp_path: pathlib.Path, option: str) -> None:
    script = tmp_path / "program.py"
    script.write_text(
        HEAD
        + f"""
gc.set_auto_parallel_context(parallel_mode="data_parallel")
gc.set_seed(1)
net = nn.Dense(3, 1)
model = gc.train.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params()))
data = [(np.ones((2, 3), np.float32), np.ones((2, 1), np.float32))] * 2
model.train(1, data, callbacks=[gc.train.{option}()])
"""
    )
    done = start(2, str(script))
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == (2 if option == "LossMonitor" else 1)
