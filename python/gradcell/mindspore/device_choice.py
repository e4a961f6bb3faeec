"""Under `python -m gradcell run`: which device a program gets that asks for one which may not be here."""

from __future__ import annotations

import sys

from gradcell import context
from gradcell.base import gpu


def choose(given: str | None) -> None:
    """From now on programs get the GPU for 'GPU' and 'Ascend' if one is usable, else the CPU; or the device
    given, which is in use at once, for any. One line on stderr says so where it is not what they ask for.

    Raises RuntimeError, which says what is missing, if the device given is not usable.
    """
    told: set[str] = set()

    def device_for(asked: str, number: int) -> str:
        missing = None if given or asked == "CPU" else gpu.missing(number)
        device = given or ("CPU" if missing or asked == "CPU" else "GPU")
        if asked != device and asked not in told:
            told.add(asked)
            why = "as --device says" if given else missing or "which is here"
            said = f"gradcell run: the script asks for {asked} and gets the {device}: {why}"
            print(said, file=sys.stderr)
        return device

    if given is not None:
        context.set_context(device_target=given)
    context.device_for = device_for
