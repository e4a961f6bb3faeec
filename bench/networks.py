"""Training steps of ordinary networks: gradcell beside PyTorch, eager and compiled, in one
interleaved run. Options and results are those of compare.py.

    python bench/networks.py                   all cases
    python bench/networks.py --cases resnet    parts of a case's name

A step is forward, backward and Adam: LeNet5 on 32x32, a residual network of three blocks (16, 32 and
64 channels, batch normalisation) on 32x32, three 3x3 convolutions of 32 channels with GELU on 64x64,
a language model (4 layers, width 128, 4 heads, 128 tokens), GRU and LSTM of 128 over 32 steps, and a
dense network, 784-512-512-10. In bfloat16 PyTorch's is autocast, gradcell's amp level O2; float16 has
a dynamic loss scale, and is compared with gradcell's own bfloat16.
"""

from __future__ import annotations

import sys

from cases import BFLOAT16, GRADCELL, Case, Target
from compare import main

PEERS = ("torch/eager", "torch/compile")
#: By network, batch and what it computes in: its name, and what gradcell takes of the best peer's
#: time at most.
STEPS = {
    ("lenet", 32, "float32"): ("LeNet5", 0.6),
    ("lenet", 128, "float32"): ("LeNet5", 0.5),
    ("resnet", 16, "float32"): ("ResNet of 3 blocks", 0.7),
    ("convolutions", 2, "float32"): ("3 convolutions with GELU", 0.7),
    ("gpt", 8, "float32"): ("GPT of 4 layers", 0.7),
    ("gru", 32, "float32"): ("GRU of 32 steps", 0.4),
    ("lstm", 32, "float32"): ("LSTM of 32 steps", 0.4),
    ("dense", 32, "float32"): ("MLP", 0.6),
    ("dense", 128, "float32"): ("MLP", 0.75),
    ("dense", 1024, "float32"): ("MLP", 0.9),
    ("dense", 128, "bfloat16"): ("MLP", 0.45),
    ("dense", 1024, "bfloat16"): ("MLP", 0.6),
    ("dense", 8192, "bfloat16"): ("MLP", 0.6),
    ("gpt", 8, "bfloat16"): ("GPT of 4 layers", 0.8),
    ("resnet", 16, "bfloat16"): ("ResNet of 3 blocks", 0.8),
}
#: Networks whose memory is measured, by the batch.
MEMORY = {"resnet": 16, "gpt": 8}
#: Half types round at other places: the losses agree to their precision.
TOLERANCE = {"float32": 1e-3, "bfloat16": 5e-2}


def _title(name: str, batch: int, dtype: str) -> str:
    return f"{name}, batch {batch:,}" + ("" if dtype == "float32" else f", {dtype}")


def network_cases() -> list[Case]:
    steady = [
        Case(
            _title(name, batch, dtype),
            "steady",
            "network",
            {"kind": kind, "batch": batch, "dtype": dtype},
            (GRADCELL, *PEERS),
            (Target(limit),),
            tolerance=TOLERANCE[dtype],
            group=kind,
        )
        for (kind, batch, dtype), (name, limit) in STEPS.items()
    ]
    scaled = [
        Case(
            _title("MLP", batch, "float16"),
            "steady",
            "network",
            {"kind": "dense", "batch": batch, "dtype": "float16"},
            (GRADCELL, BFLOAT16),
            (Target(1.6, BFLOAT16),),
            tolerance=TOLERANCE["bfloat16"],
            group="dense",
        )
        for batch in (128, 1024, 8192)
    ]
    memory = [
        Case(
            f"{STEPS[kind, batch, 'float32'][0]}, batch {batch}, peak memory",
            "memory",
            "network",
            {"kind": kind, "batch": batch},
            (GRADCELL, "torch/eager"),
            (Target(0.7),),
            quick=False,
            group=kind,
        )
        for kind, batch in MEMORY.items()
    ]
    return [*steady, *scaled, *memory]


if __name__ == "__main__":
    sys.exit(main(among=network_cases(), name="networks"))
