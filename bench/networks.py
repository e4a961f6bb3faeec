"""Training steps of convolutional networks: gradcell beside PyTorch, eager and compiled, in one
interleaved run. Options and results are those of compare.py.

    python bench/networks.py                   all cases
    python bench/networks.py --cases resnet    parts of a case's name

A step is forward, backward and Adam: LeNet5 on 32x32, a residual network of three blocks (16, 32 and
64 channels, batch normalisation) on 32x32, three 3x3 convolutions of 32 channels with GELU on 64x64.
"""

from __future__ import annotations

import sys

from cases import GRADCELL, Case, Target
from compare import main

PEERS = ("torch/eager", "torch/compile")
#: By network and batch: its name, and what gradcell takes of the best peer's time at most.
STEPS = {
    ("lenet", 32): ("LeNet5", 0.6),
    ("lenet", 128): ("LeNet5", 0.5),
    ("resnet", 16): ("ResNet of 3 blocks", 0.7),
    ("convolutions", 2): ("3 convolutions with GELU", 0.7),
}


def network_cases() -> list[Case]:
    steady = [
        Case(
            f"{name}, batch {batch}",
            "steady",
            "network",
            {"kind": kind, "batch": batch},
            (GRADCELL, *PEERS),
            (Target(limit),),
            tolerance=1e-3,
            group=kind,
        )
        for (kind, batch), (name, limit) in STEPS.items()
    ]
    memory = Case(
        "ResNet of 3 blocks, batch 16, peak memory",
        "memory",
        "network",
        {"kind": "resnet", "batch": 16},
        (GRADCELL, "torch/eager"),
        (Target(0.7),),
        quick=False,
        group="resnet",
    )
    return [*steady, memory]


if __name__ == "__main__":
    sys.exit(main(among=network_cases(), name="networks"))
