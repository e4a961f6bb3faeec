"""Symbol: a dimension of an unknown size."""

from __future__ import annotations

from gradcell.base import arguments
from gradcell.base.errors import bad_value


class Symbol:
    """A dimension of an unknown size, for Tensor(shape=(Symbol(), 3), dtype=...): remainder + a multiple of
    divisor, from min to max. Each size is compiled for itself.

    max: the largest size, 0 for no limit. min: the smallest size, at least 1. divisor: at least 1.
    remainder: from 0 to divisor - 1. unique: a bool, which is only checked. Raises TypeError,
    ValueError.
    """

    def __init__(
        self, max: int = 0, min: int = 1, divisor: int = 1, remainder: int = 0, unique: bool = False
    ) -> None:
        for name, value, least in (("max", max, 0), ("min", min, 1), ("divisor", divisor, 1)):
            arguments.integer(value, "Symbol", name, least)
        if not 0 <= arguments.integer(remainder, "Symbol", "remainder") < divisor:
            bad_value(f"Symbol: 'remainder' must be in [0, {divisor}), got {remainder}")
        arguments.boolean(unique, "Symbol", "unique")
