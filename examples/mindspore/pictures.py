"""What the programs of this folder have in common: their command line and their pictures."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any


def options(description: str, picture: str, **defaults: Any) -> argparse.Namespace:
    """--steps=..., --seed=... and the like as given by `defaults`; --picture, a file's name."""
    parser = argparse.ArgumentParser(description=description)
    for name, value in defaults.items():
        parser.add_argument(f"--{name}", type=type(value), default=value)
    parser.add_argument("--picture", default=picture, help="PNG that is written; '' for none")
    return parser.parse_args()


def figure(panels: int) -> tuple[Any, Sequence[Any]] | None:
    """A Matplotlib figure of so many panels in a row, or None where Matplotlib is missing."""
    try:
        import matplotlib
    except ImportError:
        print("matplotlib is not installed: no picture")
        return None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    made, axes = pyplot.subplots(1, panels, figsize=(4.6 * panels, 3.8), squeeze=False)
    return made, axes[0]


def save(made: Any, name: str) -> None:
    made.tight_layout()
    made.savefig(name, dpi=110)
    print("saved", name)
