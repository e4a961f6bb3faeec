"""Writes the small files of tests/python/files with the real MindSpore: checkpoints, MindRecord,
event files. Run it with a Python that has mindspore; the tests need only what it wrote.

    python tools/make_mindspore_files.py
"""

from __future__ import annotations

import argparse
import gzip
from pathlib import Path
from typing import Any

import mindspore as ms
import mindspore.dataset.vision as vision
import numpy as np
from compare_checkpoints import transformer
from mindspore import nn, ops
from mindspore.mindrecord import FileWriter
from PIL import Image

FILES = Path(__file__).parent.parent / "tests/python/files"


def checkpoints() -> None:
    """Every dtype, a scalar, a dotted name, what append_dict takes, and a CRC at the end."""
    values = np.arange(6).reshape(2, 3)
    names = (
        "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64 "
        "complex64 complex128"
    ).split()
    dtypes = {n: ms.bool_ if n == "bool" else getattr(ms, n) for n in names}
    tensors = {name: ms.Tensor(values, dtype) for name, dtype in dtypes.items()}
    tensors["scalar"] = ms.Tensor(3.5)
    tensors["model.0.weight"] = ms.Tensor(np.eye(2, dtype=np.float32))
    rows = [{"name": name, "data": data} for name, data in tensors.items()]
    more = {"epoch_num": 3, "rate": 0.1, "note": "grün", "flag": True}
    ms.save_checkpoint(rows, str(FILES / "dtypes.ckpt"), append_dict=more)
    one = [{"name": "w", "data": ms.Tensor(np.arange(3, dtype=np.float32))}]
    ms.save_checkpoint(one, str(FILES / "crc.ckpt"), crc_check=True)
    ms.set_seed(1)
    net = transformer(nn, ops, size=8, words=11)
    ms.save_checkpoint(net, str(FILES / "transformer.ckpt"))
    ids = ms.Tensor(np.arange(10, dtype=np.int32).reshape(2, 5))
    print("the transformer's output:", net(ids).asnumpy()[:, -1, :4].tolist())


def mind_record() -> None:
    """Rows of every type, in several pages, packed because a file is mostly zeros."""
    fields = {
        "z": "bytes",
        "n": "int32",
        "q": "int64",
        "t": "string",
        "f": "float32",
        "d": "float64",
    }
    schema: dict[str, dict[str, object]] = {name: {"type": kind} for name, kind in fields.items()}
    schema |= {
        "i": {"type": "int64", "shape": [-1]},
        "j": {"type": "int32", "shape": [2]},
        "v": {"type": "float32", "shape": [-1, 2]},
    }
    wide = np.array([1, 2, -128, 128, 300, 70000, 2**40, -(2**40), -1])
    rows = [
        {
            "z": bytes([k]) * 9000,
            "n": k - 3,
            "q": 10 ** (2 * k),
            "t": f"é{k}" * k,
            "f": 0.5 * k,
            "d": 0.1 * k,
            "i": wide[: k + 1],
            "j": np.array([k, -1000 * k], np.int32),
            "v": np.full((k + 1, 2), k, np.float32),
        }
        for k in range(9)
    ]
    path = FILES / "rows.mindrecord"
    writer = FileWriter(str(path), 1, overwrite=True)
    writer.set_header_size(1 << 14)
    writer.set_page_size(1 << 15)
    writer.add_schema(schema, "rows of every type")
    writer.add_index(["n", "t"])
    writer.write_raw_data(rows)
    writer.commit()
    packed = gzip.compress(path.read_bytes(), mtime=0)
    path.with_suffix(".mindrecord.gz").write_bytes(packed)
    path.unlink()
    path.with_suffix(".mindrecord.db").unlink()


def images() -> None:
    """What the transforms of images make of one of 13 x 17 pixels."""
    draw = np.random.RandomState(0)
    image = draw.randint(0, 256, (13, 17, 3)).astype(np.uint8)
    image[3:8, 4:12] //= 3
    made = {"image": image}
    for how in ("NEAREST", "LINEAR", "CUBIC", "AREA", "PILCUBIC"):
        inter = getattr(vision.Inter, how)
        made[f"Resize((7, 9), Inter.{how})"] = vision.Resize((7, 9), inter)(image)
        made[f"Resize((20, 30), Inter.{how})"] = vision.Resize((20, 30), inter)(image)
    calls = [
        "Resize(8)",
        "HWC2CHW()",
        "Rescale(1 / 255, -1.0)",
        "Normalize([100.0, 110, 120], [50.0, 60, 70])",
        "NormalizePad([100.0, 110, 120], [50.0, 60, 70], 'float16')",
        "ToTensor()",
        "CenterCrop((5, 6))",
        "CenterCrop((18, 22))",
        "Crop((1, 2), (3, 4))",
        "Pad([1, 2, 3, 4])",
        "Pad([1, 2], padding_mode=Border.REFLECT)",
        "Pad(2, padding_mode=Border.SYMMETRIC)",
        "Pad(2, 9, Border.CONSTANT)",
        "PadToSize((18, 20))",
        "HorizontalFlip()",
        "VerticalFlip()",
        "Invert()",
        "Equalize()",
        "AutoContrast()",
        "AutoContrast(10.0)",
        "Posterize(3)",
        "Solarize((50, 200))",
        "AdjustBrightness(1.3)",
        "AdjustContrast(1.3)",
        "AdjustSaturation(0.6)",
        "AdjustHue(0.2)",
        "AdjustSharpness(1.5)",
        "AdjustGamma(1.5)",
        "GaussianBlur(3, 1.0)",
        "GaussianBlur((5, 3))",
        "Erase(1, 2, 2, 3, 7)",
        "ConvertColor(ConvertMode.COLOR_RGB2GRAY)",
        "ConvertColor(ConvertMode.COLOR_RGB2BGR)",
        "RgbToHsv(True)",
        "Rotate(30)",
        "Rotate(30, expand=True)",
        "ResizedCrop(1, 2, 8, 9, (5, 5))",
    ]
    for call in calls:
        made[call] = eval(f"vision.{call}".replace("Border.", "vision.Border.").replace(
            "ConvertMode.", "vision.ConvertMode."))(image)  # fmt: skip
    picture = Image.fromarray(image)
    for call in ("Resize((7, 9))", "Grayscale(3)", "ToTensor()"):
        made[f"PIL {call}"] = np.asarray(eval(f"vision.{call}")(picture))
    np.savez_compressed(FILES / "images.npz", **made)


def resized() -> None:
    """resized.npz: bytes in other sizes, by 'interpolation (rows, columns, channels) (height, width)'."""
    made: dict[str, Any] = {}
    numbers = np.random.RandomState(0)
    for shape in ((8, 8, 3), (6, 10, 1), (16, 12, 3), (5, 7, 3)):
        image = made[f"{shape}"] = numbers.randint(0, 256, shape).astype(np.uint8)
        for how in ("NEAREST", "BILINEAR", "BICUBIC", "AREA"):
            for size in ((4, 4), (3, 5), (2, 2), (12, 9)):
                operation = vision.Resize(size, getattr(vision.Inter, how))
                made[f"{how} {shape} {size}"] = operation(image)
    np.savez_compressed(FILES / "resized.npz", **made)


if __name__ == "__main__":
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    FILES.mkdir(exist_ok=True)
    checkpoints()
    mind_record()
    images()
    resized()
