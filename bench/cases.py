"""What is measured, and what gradcell is to reach in each case."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

#: Names of contenders: a framework, or framework/variant.
GRADCELL = "gradcell"
PYNATIVE = "gradcell/pynative"
PEERS = ("jax", "torch/eager", "torch/compile", "mindspore")
#: Measured and shown, but given the derivative by hand: never "the best peer".
HAND_WRITTEN = ("numexpr",)
#: A library above PyTorch, asked for its own example only.
DEEPXDE = "deepxde"
#: gradcell of another source tree, if one is given: a change is measured against what was before.
BEFORE = "gradcell/before"
BFLOAT16 = "gradcell/bfloat16"  # a step of the networks in another type
CONTENDERS = (GRADCELL, BEFORE, PYNATIVE, BFLOAT16, *PEERS, *HAND_WRITTEN, DEEPXDE)


@dataclass(frozen=True)
class Target:
    """subject's figure is at most `limit` times the best peer's ("peers") or the contender's named
    by `of`; "" stands for an absolute limit, in seconds or bytes."""

    limit: float
    of: str = "peers"
    subject: str = GRADCELL


@dataclass(frozen=True)
class Case:
    """kind "steady": seconds a call; "first": seconds of the first call in a new process; "plan":
    seconds spent on planning; "memory": peak bytes over those of the process with the framework
    loaded. tolerance: largest error accepted, over the largest magnitude of the same array."""

    name: str
    kind: str
    step: str
    params: Mapping[str, Any]
    contenders: tuple[str, ...]
    targets: tuple[Target, ...]
    tolerance: float = 1e-5
    quick: bool = True
    group: str = field(default="")
    peers: tuple[str, ...] = PEERS


def _size(n: int) -> str:
    return f"10^{len(str(n)) - 1}"


def _elementwise() -> list[Case]:
    limits = {10**3: 0.3, 10**5: 0.75, 10**7: 0.6}
    return [
        Case(
            f"{'gradient' if order == 1 else 'second derivative'}, {_size(n)} elements",
            "steady",
            "elementwise",
            {"order": order, "elements": n},
            (GRADCELL, *PEERS, *HAND_WRITTEN),
            (Target(limit),),
            group="elementwise",
        )
        for order in (1, 2)
        for n, limit in limits.items()
    ]


PINNS = {(8, 20, 10_000): 0.3, (4, 64, 1_024): 0.5, (4, 128, 4_096): 0.65}
PINN_8X20 = {"depth": 8, "width": 20, "points": 10_000, "dtype": "float32"}


def _pinn() -> list[Case]:
    return [
        Case(
            f"PINN {depth}x{width}, {points:,} points, {dtype}",
            "steady",
            "pinn",
            {"depth": depth, "width": width, "points": points, "dtype": dtype},
            (GRADCELL, PYNATIVE, *PEERS),
            (Target(limit), Target(3.0, GRADCELL, PYNATIVE)),
            tolerance=2e-4 if dtype == "float32" else 1e-8,
            group="pinn",
        )
        for dtype in ("float32", "float64")
        for (depth, width, points), limit in PINNS.items()
    ]


def _deepxde() -> list[Case]:
    """The network, the points and the optimiser of DeepXDE's example, from equal weights."""
    return [
        Case(
            "DeepXDE's Burgers example, training step",
            "steady",
            "deepxde",
            {},
            (GRADCELL, PYNATIVE, *PEERS, DEEPXDE),
            (Target(0.5), Target(0.2, DEEPXDE)),
            tolerance=1e-4,
        )
    ]


def _mlp() -> list[Case]:
    return [
        Case(
            f"MLP training step, batch {batch:,}",
            "steady",
            "mlp",
            {"batch": batch},
            (GRADCELL, *PEERS),
            (Target(limit),),
            tolerance=1e-3,
            group="mlp",
        )
        for batch, limit in ((32, 0.8), (128, 0.85), (1024, 1.0))
    ]


def _scalar() -> list[Case]:
    targets = (Target(0.5, "jax"), Target(2.5e-6, ""))
    return [Case("gradient of x^2 + y", "steady", "scalar", {}, (GRADCELL, *PEERS), targets)]


def _high_order() -> list[Case]:
    without_compile = (GRADCELL, "jax", "torch/eager", "mindspore")
    name, params = "8th derivative of tanh(x) sin(x)", {"order": 8, "elements": 10_000}
    return [
        Case(
            f"{name}, {call}",
            kind,
            "tanh_sin",
            params,
            without_compile,
            (Target(limit, "jax"),),
            tolerance=1e-4,
        )
        for call, kind, limit in (
            ("later calls", "steady", 0.75),
            ("first call", "first", 1 / 50),
        )
    ]


def _first_call() -> list[Case]:
    name = "PINN 8x20, 10,000 points"
    contenders = (GRADCELL, "jax", "torch/eager", "mindspore")
    return [
        Case(f"{name}, first call", "first", "pinn", PINN_8X20, contenders, (Target(0.030, ""),)),
        Case(f"{name}, planning", "plan", "pinn", PINN_8X20, (GRADCELL,), (Target(0.010, ""),)),
    ]


def _memory() -> list[Case]:
    def case(points: int, contenders: tuple[str, ...], targets: tuple[Target, ...]) -> Case:
        params = {**PINN_8X20, "points": points}
        name = f"PINN 8x20, {points:,} points, peak memory"
        return Case(name, "memory", "pinn", params, contenders, targets, quick=False)

    return [
        case(300_000, (GRADCELL, "jax", "torch/eager"), ()),
        case(1_000_000, (GRADCELL,), (Target(200e6, ""),)),
    ]


def all_cases() -> list[Case]:
    groups = {
        "elementwise": _elementwise(),
        "pinn": _pinn(),
        "deepxde": _deepxde(),
        "mlp": _mlp(),
        "scalar": _scalar(),
        "high-order": _high_order(),
        "first-call": _first_call(),
        "memory": _memory(),
    }
    return [
        Case(**{**vars(case), "group": group}) for group, cases in groups.items() for case in cases
    ]
