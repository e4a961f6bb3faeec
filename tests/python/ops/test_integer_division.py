"""Integer quotients and remainders, which vectors take through double: every sign, the ends of the dtypes."""

from __future__ import annotations

import numpy as np
import pytest

import gradcell as gc


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64"])
def test_quotients_and_remainders(dtype: str) -> None:
    info, rng = np.iinfo(dtype), np.random.default_rng(0)
    ends = [info.min, info.min + 1, info.max, info.max - 1, 1, 2, 3, 7, 127]
    ends += [-1, -2, -3, -7, info.min // 2] if info.min else []
    a = np.concatenate([ends, rng.integers(info.min, info.max, 999, endpoint=True)]).astype(dtype)
    b = np.concatenate([ends, rng.integers(info.min, info.max, 99, endpoint=True)]).astype(dtype)
    b = b[b != 0]
    a, b = (np.ascontiguousarray(x) for x in np.broadcast_arrays(a[:, None], b[None]))
    with np.errstate(all="ignore"):
        quotient, remainder = a // b, a % b  # the lowest over -1 wraps
    assert np.array_equal((gc.Tensor(a) // gc.Tensor(b)).asnumpy(), quotient)
    assert np.array_equal((gc.Tensor(a) % gc.Tensor(b)).asnumpy(), remainder)
    number = int(b[0, 3])
    assert np.array_equal((gc.Tensor(a) // number).asnumpy(), a // b.dtype.type(number))
    assert np.array_equal((gc.Tensor(a) % number).asnumpy(), a % b.dtype.type(number))


def test_a_zero_anywhere_is_found() -> None:
    for place in (0, 1023, 1024, 32_768, 69_999):
        b = np.ones(70_000, np.int32)
        b[place] = 0
        with pytest.raises(ValueError, match="zero"):
            gc.Tensor(np.ones(70_000, np.int32)) // gc.Tensor(b)
