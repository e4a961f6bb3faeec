"""Under `python -m gradcell run`: which device a program gets that asks for one which may not be here."""

from __future__ import annotations

import sys

from gradcell import _gpu, context


class Choice:
    """The GPU for 'GPU' and 'Ascend' if one is usable, else the CPU; or the device given, for any.

    Says in one line on stderr where a program gets another device than it asks for.
    """

    def __init__(self, given: str | None) -> None:
        self.given = given
        self._told: set[str] = set()

    def __call__(self, asked: str, number: int) -> str:
        if self.given is not None:
            return self._tell(asked, self.given, "as --device says")
        missing = None if asked == "CPU" else _gpu.missing(number)
        device = asked if asked == "CPU" else "CPU" if missing else "GPU"
        return self._tell(asked, device, missing or "which is here")

    def _tell(self, asked: str, device: str, why: str) -> str:
        if asked != device and asked not in self._told:
            self._told.add(asked)
            print(
                f"gradcell run: the script asks for {asked} and gets the {device}: {why}",
                file=sys.stderr,
            )
        return device


def choose(given: str | None) -> None:
    """From now on programs get devices so. given: 'CPU' or 'GPU', in use at once.

    Raises RuntimeError, which says what is missing, if it is not usable.
    """
    if given is not None:
        context.set_context(device_target=given)
    context.device_for = Choice(given)
