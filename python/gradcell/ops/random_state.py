"""The state of all random generators as one text: saved in checkpoints, put back to repeat a
run."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from gradcell._core import Tensor
from gradcell.common import seed as _seed
from gradcell.ops import random


def _streams() -> dict[str, Any]:
    """The variables that hold the state of random ops, by name."""
    made = {"global": random._global}
    made.update({f"{a}:{b}": v for (a, b), v in random._streams.items()})
    return made


def random_state() -> str:
    """The state of all of gradcell's random generators, as text."""
    streams = {name: v._numpy().tolist() for name, v in _streams().items()}
    initial = _seed._generator.bit_generator.state if _seed._generator is not None else None
    return json.dumps({"seed": _seed.get_seed(), "streams": streams, "initialisers": initial})


def set_random_state(state: str) -> None:
    """Puts the random generators into a state that random_state gave."""
    found = json.loads(state)
    _seed._seed = found["seed"]
    _seed._generator = None
    if found["initialisers"] is not None:
        _seed.generator().bit_generator.state = found["initialisers"]
    if found["streams"]:
        for name, value in found["streams"].items():
            if name == "global":
                stream = random._global
            else:
                a, b = name.split(":")
                stream = random._stream(int(a), int(b))
            stream._set_array(Tensor(np.array(value, np.int64)))
