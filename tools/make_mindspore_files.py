"""Writes the small files of tests/python/files with the real MindSpore: checkpoints, MindRecord,
event files. Run it with a Python that has mindspore; the tests need only what it wrote.

    python tools/make_mindspore_files.py
"""

from __future__ import annotations

from pathlib import Path

import mindspore as ms
import numpy as np

FILES = Path(__file__).parent.parent / "tests/python/files"


def checkpoints() -> None:
    """Every dtype, a scalar, a dotted name, what append_dict takes, and a CRC at the end."""
    values = np.arange(6).reshape(2, 3)
    names = "bool int8 int16 int32 int64 uint8 float16 bfloat16 float32 float64".split()
    dtypes = {n: ms.bool_ if n == "bool" else getattr(ms, n) for n in names}
    tensors = {name: ms.Tensor(values, dtype) for name, dtype in dtypes.items()}
    tensors["scalar"] = ms.Tensor(3.5)
    tensors["model.0.weight"] = ms.Tensor(np.eye(2, dtype=np.float32))
    rows = [{"name": name, "data": data} for name, data in tensors.items()]
    more = {"epoch_num": 3, "rate": 0.1, "note": "grün", "flag": True}
    ms.save_checkpoint(rows, str(FILES / "dtypes.ckpt"), append_dict=more)
    one = [{"name": "w", "data": ms.Tensor(np.arange(3, dtype=np.float32))}]
    ms.save_checkpoint(one, str(FILES / "crc.ckpt"), crc_check=True)


if __name__ == "__main__":
    FILES.mkdir(exist_ok=True)
    checkpoints()
