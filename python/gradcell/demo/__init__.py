"""Programs that show, in a minute at most and with a picture, what gradcell is for.

python -m gradcell demo --list
python -m gradcell demo inverse
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from types import ModuleType


@dataclass(frozen=True)
class Demo:
    """A module of this package with `run(steps, points, path)`; the defaults of its steps and points
    (or examples, or whatever it draws at random)."""

    about: str
    steps: int
    points: int

    def module(self, name: str) -> ModuleType:
        """Return gradcell.demo.NAME, imported at first use."""
        return importlib.import_module(f"gradcell.demo.{name}")


DEMOS = {
    "burgers": Demo("Burgers' equation, solved by a network", 200, 2000),
    "inverse": Demo("a viscosity, found from noisy observations", 4000, 1000),
    "forces": Demo("a potential, learned from forces on atoms", 3000, 512),
    "digits": Demo("digits, classified in float16 with a dynamic loss scale", 2500, 120000),
}
