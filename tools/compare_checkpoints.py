"""Checkpoints of MindSpore and gradcell, each read by the other: a ResNet-18 and a transformer.

    python tools/compare_checkpoints.py MINDSPORE_PYTHON

The networks are written once, below, and made by both packages; parameters must have the same names,
order, shapes and dtypes, and each package must read back every value of the other's file, with the
optimiser's state, into the network itself. Prints a line for each network and exits with 1 if
anything differs.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np


def resnet18(nn: Any, ops: Any) -> Any:
    """The network of He et al., CVPR 2016, 770, table 1, for 3 channels and 10 classes."""

    class Block(nn.Cell):  # type: ignore[misc]
        def __init__(self, before: int, after: int, stride: int) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(before, after, 3, stride, pad_mode="pad", padding=1)
            self.bn1 = nn.BatchNorm2d(after)
            self.conv2 = nn.Conv2d(after, after, 3, 1, pad_mode="pad", padding=1)
            self.bn2 = nn.BatchNorm2d(after)
            self.relu = nn.ReLU()
            self.down_sample = None
            if stride != 1 or before != after:
                self.down_sample = nn.SequentialCell(
                    [nn.Conv2d(before, after, 1, stride), nn.BatchNorm2d(after)]
                )

        def construct(self, x: Any) -> Any:
            short = x if self.down_sample is None else self.down_sample(x)
            h = self.relu(self.bn1(self.conv1(x)))
            return self.relu(self.bn2(self.conv2(h)) + short)

    class ResNet(nn.Cell):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(3, 64, 7, 2, pad_mode="pad", padding=3)
            self.bn1 = nn.BatchNorm2d(64)
            self.pool = nn.MaxPool2d(3, 2, pad_mode="same")
            self.layers = nn.CellList()
            before = 64
            for k, after in enumerate((64, 128, 256, 512)):
                layer = nn.SequentialCell()
                layer.append(Block(before, after, 1 if k == 0 else 2))
                layer.append(Block(after, after, 1))
                self.layers.append(layer)
                before = after
            self.fc = nn.Dense(512, 10)

        def construct(self, x: Any) -> Any:
            h = self.pool(ops.relu(self.bn1(self.conv1(x))))
            for layer in self.layers:
                h = layer(h)
            return self.fc(h.mean((2, 3)))

    return ResNet()


def transformer(nn: Any, ops: Any, size: int = 32, words: int = 50) -> Any:
    """A decoder of two layers of Vaswani et al., NIPS 2017, with layer norms before."""

    class Layer(nn.Cell):  # type: ignore[misc]
        def __init__(self, size: int, heads: int) -> None:
            super().__init__()
            self.heads = heads
            self.norm1, self.norm2 = nn.LayerNorm((size,)), nn.LayerNorm((size,))
            self.projections = nn.CellList([nn.Dense(size, size) for _ in range(3)])
            self.out = nn.Dense(size, size, has_bias=False)
            self.mlp = nn.SequentialCell(
                nn.Dense(size, 4 * size), nn.GELU(), nn.Dense(4 * size, size)
            )

        def construct(self, x: Any) -> Any:
            h = self.norm1(x)
            n, t, c = x.shape
            q, k, v = (
                p(h).reshape(n, t, self.heads, c // self.heads).transpose(0, 2, 1, 3)
                for p in self.projections
            )
            weights = ops.matmul(q, k.transpose(0, 1, 3, 2)) / (c // self.heads) ** 0.5
            mixed = ops.matmul(ops.softmax(weights, -1), v)
            x = x + self.out(mixed.transpose(0, 2, 1, 3).reshape(n, t, c))
            return x + self.mlp(self.norm2(x))

    class Transformer(nn.Cell):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.token = nn.Embedding(words, size)
            self.position = nn.Embedding(16, size)
            self.layers = nn.SequentialCell([Layer(size, 4) for _ in range(2)])
            self.norm = nn.LayerNorm((size,))
            self.head = nn.Dense(size, words)

        def construct(self, ids: Any) -> Any:
            h = self.token(ids) + self.position.embedding_table[: ids.shape[1]]
            return self.head(self.norm(self.layers(h)))

    return Transformer()


NETWORKS = {"ResNet-18": (resnet18, (2, 3, 32, 32)), "transformer": (transformer, (2, 16))}


def values_of(parameters: dict[str, Any]) -> dict[str, list[Any]]:
    """From a name to [dtype, shape, a hash of the values' bytes]."""
    arrays = {name: p.asnumpy() for name, p in parameters.items()}
    return {
        name: [str(a.dtype), list(a.shape), hashlib.sha256(a.tobytes()).hexdigest()]
        for name, a in arrays.items()
    }


def side(package: str, folder: Path, step: str) -> None:
    """What one package does in its process: writes its files, or reads the other's."""
    if package == "mindspore":
        import mindspore as ms
        from mindspore import nn, ops
    else:
        import gradcell as ms
        from gradcell import nn, ops
    other = {"mindspore": "gradcell", "gradcell": "mindspore"}[package]
    report = {}
    for label, (make, shape) in NETWORKS.items():
        ms.set_seed(1 if package == "mindspore" else 2)
        net = make(nn, ops)
        optimizer = nn.Adam(net.trainable_params(), 0.01)
        cell = nn.TrainOneStepCell(net, optimizer)
        random = np.random.RandomState(0)
        x = random.randint(0, 50, shape) if label == "transformer" else random.randn(*shape)
        x = ms.Tensor(x.astype(np.int32 if label == "transformer" else np.float32))
        if step == "write":
            ms.save_checkpoint(cell, str(folder / f"{package}-{label}.ckpt"))
        else:
            found = ms.load_checkpoint(str(folder / f"{other}-{label}.ckpt"))
            missing, unused = ms.load_param_into_net(cell, found, strict_load=True)
            assert not missing and not unused, (label, missing, unused)
        net.set_train(False)
        held = {p.name: p for p in cell.get_parameters()}
        report[label] = {"parameters": values_of(held), "output": net(x).asnumpy().tolist()}
    (folder / f"{package}-{step}.json").write_text(json.dumps(report))


def main(mindspore: str) -> int:
    """Runs both sides and compares."""
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        programs = {"mindspore": mindspore, "gradcell": sys.executable}
        for step in ("write", "read"):
            for package, program in programs.items():
                command = [program, __file__, "--side", package, name, step]
                subprocess.run(command, check=True)
        reports = {p.stem: json.loads(p.read_text()) for p in folder.glob("*.json")}
    for label in NETWORKS:
        for writer, reader in (("mindspore", "gradcell"), ("gradcell", "mindspore")):
            wrote, read = reports[f"{writer}-write"][label], reports[f"{reader}-read"][label]
            same = wrote["parameters"] == read["parameters"]
            order = list(wrote["parameters"]) == list(read["parameters"])
            a, b = np.array(wrote["output"]), np.array(read["output"])
            far = float(np.abs(a - b).max() / np.abs(a).max())
            failed += not (same and order and far < 1e-4)
            print(
                f"{label}: {writer} writes, {reader} reads: {len(wrote['parameters'])} parameters "
                f"{'equal' if same else 'DIFFERENT'}, order {'equal' if order else 'DIFFERENT'}, "
                f"outputs within {far:.1e}"
            )
            if not same:
                names = set(wrote["parameters"]) ^ set(read["parameters"])
                print("  names of one only:", sorted(names)[:10])
    return int(failed > 0)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--side"]:
        side(sys.argv[2], Path(sys.argv[3]), sys.argv[4])
        sys.exit()
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("python", metavar="MINDSPORE_PYTHON", help="a Python that has MindSpore")
    sys.exit(main(parser.parse_args().python))
