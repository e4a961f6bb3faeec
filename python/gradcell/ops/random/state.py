"""The state of all random generators and of the data's order: as a text in checkpoints, as a tensor
for users. Put back, it repeats a run."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from gradcell._core import Tensor, uint8
from gradcell.base import bad_type, seed as _seed, where
from gradcell.ops.random import draws


def _streams() -> dict[str, Any]:
    """The variables that hold the state of random ops, by name."""
    made = {"global": draws._global}
    made.update({f"{a}:{b}": v for (a, b), v in draws._streams.items()})
    return made


def random_state() -> str:
    """The state of all of gradcell's random generators, as text."""
    streams = {name: v._numpy().tolist() for name, v in _streams().items()}
    initial = _seed.generator().bit_generator.state
    return json.dumps(
        {
            "seed": _seed.get_seed(),
            "streams": streams,
            "initialisers": initial,
            "data": _seed.data_seed(),
        }
    )


def set_random_state(state: str) -> None:
    """Puts the random generators into a state that random_state gave."""
    found = json.loads(state)
    _seed._seed = found["seed"]
    _seed._data_seed = found["data"]
    _seed._generator = None
    _seed.generator().bit_generator.state = found["initialisers"]
    if found["streams"]:
        for key, stream in draws._streams.items():  # those that were not there yet
            stream._set_array(draws._stream_start(key))
        for name, value in found["streams"].items():
            if name == "global":
                stream = draws._global
            else:
                a, b = name.split(":")
                stream = draws._stream(int(a), int(b))
            stream._set_array(Tensor(np.array(value, np.int64)))


def get_rng_state() -> Tensor:
    """The state of all random generators (dropout, random ops, initialisers) and what the order of
    shuffled data follows from: a uint8 vector for set_rng_state, and nothing to compute with."""
    return Tensor(np.frombuffer(random_state().encode(), np.uint8).copy())


def set_rng_state(state: Tensor) -> None:
    """Puts everything that is random into a state that get_rng_state gave, in this process or in
    another one: the same numbers follow.

    Raises TypeError unless state is a tensor of uint8, ValueError if get_rng_state cannot have given
    it; then nothing is changed.
    """
    if not isinstance(state, Tensor) or state.dtype != uint8:
        got = state.dtype if isinstance(state, Tensor) else type(state).__name__
        bad_type(f"set_rng_state: expected a Tensor of uint8, got {got}")
    text = state.asnumpy().tobytes()
    before = random_state()
    try:
        set_random_state(text.decode())
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        set_random_state(before)
        raise ValueError(
            f"set_rng_state: this is not a state that get_rng_state gave{where()}"
        ) from error
