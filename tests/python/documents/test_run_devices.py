"""`python -m gradcell run` of scripts that ask for Ascend or GPU: they get what is there, with one line that
says so, and what they print is what they print where they ask for what they get."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from made_up_gpu import Process

PARSER = """
import argparse
import numpy as np
import mindspore as ms
from mindspore import nn
parser = argparse.ArgumentParser()
parser.add_argument("--device_target", choices=["GPU", "Ascend"], default="Ascend")
target = parser.parse_args().device_target
ms.set_context(mode=ms.GRAPH_MODE, device_target=target)
print(ms.get_context("device_target"))
"""
SCRIPTS = {
    "regression by Model": (
        "Ascend",
        """
from mindspore import dataset
from mindspore.train import Model
ms.set_seed(1)
rows = [(np.float32([i, 1]), np.float32([2 * i - 1])) for i in range(8)]
data = dataset.GeneratorDataset(rows, ["x", "y"], shuffle=False).batch(4)
net = nn.Dense(2, 1, weight_init="zeros")
model = Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.01), amp_level="O0")
model.train(20, data, dataset_sink_mode=False)
print(net.weight.asnumpy().round(4))
""",
    ),
    "functions and data_sink": (
        "GPU",
        """
from mindspore import dataset, ops
rows = [(np.float32([i, 1]),) for i in range(4)]
data = dataset.GeneratorDataset(rows, ["x"], shuffle=False).batch(2)
step = ms.data_sink(lambda x: ops.reduce_sum(x), data, sink_size=2)
print(float(step()), ms.grad(lambda x: ops.sin(x) * x)(ms.Tensor(0.5)))
""",
    ),
    "loss scaling in half precision": (
        "Ascend",
        """
from mindspore import amp, ops
ms.set_seed(1)
layers = nn.Dense(3, 4, "ones"), nn.ReLU(), nn.Dense(4, 1, "ones")
net = amp.auto_mixed_precision(nn.SequentialCell(*layers), "O2")
scaler = amp.StaticLossScaler(128)
def forward(x):
    return scaler.scale(ops.mean(ops.square(net(x).astype(ms.float32))))
of = ms.value_and_grad(forward, None, net.trainable_params())
value, grads = of(ms.Tensor(np.ones((2, 3), np.float32)))
print(float(scaler.unscale(value)), [scaler.unscale(g).sum() for g in grads])
""",
    ),
    "a device number from the environment": (
        "GPU",
        """
import os
ms.set_context(device_target=target, device_id=int(os.getenv("DEVICE_ID", "0")))
conv = nn.Conv2d(1, 2, 3, weight_init="ones", pad_mode="same")
print(conv(ms.Tensor(np.arange(9, dtype=np.float32).reshape(1, 1, 3, 3))))
""",
    ),
    "set_device, and options of Ascend's": (
        "Ascend",
        """
ms.set_device(target, 0)
ms.set_context(ascend_config={}, max_call_depth=2000)
print(ms.get_current_device().device_target, ms.Tensor([1.0, 2.0]).cumsum(0))
""",
    ),
    "a device by communication.init": (
        "GPU",
        """
from mindspore import communication, context
context.set_context(device_target=target)
communication.init("nccl" if target == "GPU" else "hccl")
context.set_auto_parallel_context(device_num=communication.get_group_size(), parallel_mode="data_parallel")
reducer = nn.DistributedGradReducer(nn.Dense(1, 1).trainable_params())
print(communication.get_rank(), context.get_context("device_target"))
""",
    ),
}  # fmt: skip


def run(
    folder: Path, script: str, *options: str, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    file = folder / "script.py"
    file.write_text(script)
    command = [sys.executable, "-m", "gradcell", "run", *options]
    return subprocess.run(command, capture_output=True, text=True, env=environment)


@pytest.mark.one_in(6)
@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_gets_what_is_there(name: str, tmp_path: Path) -> None:
    asked, text = SCRIPTS[name]
    file = str(tmp_path / "script.py")
    no_gpu = {**Process(tmp_path / "no.so", tmp_path).environment}
    found = run(tmp_path, PARSER + text, file, "--device_target", asked, environment=no_gpu)
    assert found.returncode == 0, found.stderr
    said = [line for line in found.stderr.splitlines() if line.startswith("gradcell run")]
    start = (
        f"gradcell run: the script asks for {asked} and gets the CPU: no NVIDIA driver was found"
    )
    assert len(said) == 1 and said[0].startswith(start)
    plain = PARSER.replace('"GPU", "Ascend"', '"CPU"') + text
    wanted = run(tmp_path, plain, file, "--device_target", "CPU", environment=no_gpu)
    assert wanted.returncode == 0 and "gradcell run" not in wanted.stderr, wanted.stderr
    assert found.stdout == wanted.stdout and found.stdout.startswith("CPU\n")


def test_the_option_decides(tmp_path: Path) -> None:
    file = str(tmp_path / "script.py")
    done = run(tmp_path, PARSER, "--device", "cpu", file, "--device_target", "GPU")
    line = "gradcell run: the script asks for GPU and gets the CPU: as --device says\n"
    assert (done.stdout, done.stderr) == ("CPU\n", line)
    no_gpu = {**Process(tmp_path / "no.so", tmp_path).environment}
    done = run(tmp_path, PARSER, "--device", "GPU", file, environment=no_gpu)
    assert done.returncode == 2 and "Traceback" not in done.stderr and not done.stdout
    assert done.stderr.startswith("gradcell run --device: device_target='GPU': no NVIDIA driver")
    assert run(tmp_path, PARSER, "--device", "TPU", file).returncode == 2


def test_without_run_it_stays_an_error(tmp_path: Path) -> None:
    text = "import gradcell as ms\nms.set_context(device_target='Ascend')\n"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    assert done.returncode == 1 and "python -m gradcell run" in done.stderr
    wrong = run(tmp_path, text.replace("Ascend", "TPU"), str(tmp_path / "script.py"))
    assert wrong.returncode == 1 and "ValueError: device_target must be" in wrong.stderr


@pytest.mark.one_in(4)
def test_a_gpu_that_is_there(process: Process, tmp_path: Path) -> None:
    file = str(tmp_path / "script.py")

    def of(text: str, *arguments: str) -> tuple[str, str]:
        done = run(tmp_path, text, *arguments, environment=process.environment)
        assert done.returncode == 0, done.stderr
        return done.stdout, done.stderr

    asked = PARSER + "print(ms.Tensor([1.0, 2.0]) * 3)\n"
    line = "gradcell run: the script asks for Ascend and gets the GPU: which is here\n"
    assert of(asked, file) == ("GPU\n[3. 6.]\n", line)
    assert of(asked, file, "--device_target", "GPU") == ("GPU\n[3. 6.]\n", "")
    silent = "import mindspore as ms\nprint(ms.get_current_device().device_target)\n"
    assert of(silent, file) == ("CPU\n", "")
    assert of(silent, "--device", "GPU", file) == ("GPU\n", "")
    far = PARSER.replace("device_target=target", "device_target=target, device_id=99")
    out, said = of(far, file)
    assert out == "CPU\n" and "gets the CPU: " in said and "99" in said
