"""Transforms of images: what the real MindSpore makes of an image, Pillow, statistics, bad input."""

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageEnhance, ImageOps

import gradcell.dataset as ds
import gradcell.dataset.transforms as T
import gradcell.dataset.vision as V
from gradcell.dataset import config
from gradcell.dataset.vision.convert import hsv_to_rgb, rgb_to_hsv

REAL = np.load(Path(__file__).parent / "images.npz")
IMAGE = REAL["image"]
#: Differences in gray levels: 1 for Pillow's filters and where OpenCV calculates in fixed point; hue has
#: 180 steps there.
TOLERANCE = {"Resize": 1, "AdjustBrightness": 1, "AdjustContrast": 1,
             "GaussianBlur": 1, "AdjustHue": 5}  # fmt: skip


RESIZED = np.load(Path(__file__).parent / "resized.npz")


@pytest.mark.parametrize("case", [c for c in RESIZED.files if not c.startswith("(")])
def test_bytes_are_resized_to_the_last_bit(case):
    """As in OpenCV's integers; cubic ones are summed in float32 there, so that halves may fall otherwise."""
    how, _, rest = case.partition(" ")
    shape, size = rest[: rest.index(")") + 1], eval(rest[rest.index(")") + 2 :])
    made = V.Resize(size, getattr(V.Inter, how))(RESIZED[shape])
    apart = np.abs(np.asarray(made).astype(int).reshape(RESIZED[case].shape) - RESIZED[case])
    assert np.count_nonzero(apart) <= (apart.size // 40 if how == "BICUBIC" else 0)
    assert apart.max() <= 1


@pytest.fixture(autouse=True)
def seeded(monkeypatch):
    monkeypatch.setattr(config, "_seed", 5)


@pytest.mark.parametrize(
    "call", [c for c in REAL.files if c != "image" and "NormalizePad" not in c]
)
def test_as_mindspore(call):
    operation = eval(call.removeprefix("PIL "), {**vars(V)})
    made = operation(Image.fromarray(IMAGE) if call.startswith("PIL") else IMAGE)
    expected = REAL[call]
    assert isinstance(made, Image.Image) == (call in ("PIL Resize((7, 9))", "PIL Grayscale(3)"))
    made = np.asarray(made)
    assert (made.shape, made.dtype) == (expected.shape, expected.dtype)
    difference = np.abs(made.astype(np.float64) - expected)
    if made.dtype == np.uint8:
        assert difference.max() <= TOLERANCE.get(call.split("(")[0], 0)
        assert (difference > 0).mean() < 0.25
    else:
        assert difference.max() < 1e-6


def test_normalize_pad():
    made = V.NormalizePad([100, 110, 120], [50, 60, 70], "float16")(IMAGE)
    np.testing.assert_allclose(made[..., :3], (IMAGE - [100, 110, 120]) / [50, 60, 70], rtol=1e-3)
    assert (made.dtype, made.shape) == (np.float16, (13, 17, 4))
    assert not made[..., 3].any()


def test_as_pillow():
    picture = Image.fromarray(IMAGE)
    for how, name in ((V.Inter.PILCUBIC, "BICUBIC"), (V.Inter.ANTIALIAS, "LANCZOS")):
        for size in ((7, 9), (20, 30), (13, 5)):
            expected = np.asarray(picture.resize(size[::-1], Image.Resampling[name]), np.int64)
            made = V.Resize(size, how)(IMAGE) if how != 1 else V.image.resize(IMAGE, *size, how)
            assert np.abs(made - expected).max() <= 1
    for made, expected in [
        (V.AdjustSharpness(1.5)(IMAGE), ImageEnhance.Sharpness(picture).enhance(1.5)),
        (V.AdjustSaturation(0.6)(IMAGE), ImageEnhance.Color(picture).enhance(0.6)),
        (V.AdjustContrast(0.7)(IMAGE), ImageEnhance.Contrast(picture).enhance(0.7)),
        (V.AutoContrast(5)(IMAGE), ImageOps.autocontrast(picture, 5)),
        (V.Posterize(3)(IMAGE), ImageOps.posterize(picture, 3)),
        (V.Rotate(30, V.Inter.BILINEAR)(IMAGE), picture.rotate(30, Image.Resampling.BILINEAR)),
    ]:
        assert np.abs(made.astype(int) - np.asarray(expected)).max() <= 1


def test_affine():
    still = V.Affine(0, (0, 0), 1, (0, 0))(IMAGE)
    np.testing.assert_array_equal(still, IMAGE)
    moved = V.Affine(0, (2 / 17, 0), 1, (0, 0))(IMAGE)
    np.testing.assert_array_equal(moved[:, 2:], IMAGE[:, :-2])
    assert not moved[:, :2].any()
    square = IMAGE[:, :13]
    np.testing.assert_array_equal(V.Affine(90, (0, 0), 1, 0)(square), np.rot90(square, -1))
    np.testing.assert_array_equal(V.Rotate(90)(square), np.rot90(square))
    assert V.Rotate(90, expand=True)(IMAGE).shape == (17, 13, 3)
    assert V.RandomAffine(20, (0.1, 0.2), (0.8, 1.2), 10)(IMAGE[..., :1]).shape == (13, 17, 1)
    filled = V.RandomRotation((45, 45), fill_value=7)(np.zeros((9, 9, 3), np.uint8))
    assert (filled[0, 0] == 7).all()


def test_files():
    data = io.BytesIO()
    Image.fromarray(IMAGE).save(data, "PNG")
    raw = np.frombuffer(data.getvalue(), np.uint8)
    np.testing.assert_array_equal(V.Decode()(raw), IMAGE)
    np.testing.assert_array_equal(V.Decode()(data.getvalue()), IMAGE)
    assert isinstance(V.Decode(to_pil=True)(raw), Image.Image)
    assert V.RandomCropDecodeResize((5, 6))(raw).shape == (5, 6, 3)
    for broken in (raw[:-40], raw[:20], raw[:0], np.frombuffer(b"GIF89a" + b"\0" * 9, np.uint8)):
        with pytest.raises(ValueError, match="Decode: not a picture"):
            V.Decode()(broken)
    with pytest.raises(TypeError, match="uint8 of one axis"):
        V.Decode()(IMAGE)


def test_gray_images_and_batches():
    flat = IMAGE[..., 0]
    for operation in (V.Resize((5, 6)), V.CenterCrop(8), V.Pad(2), V.HorizontalFlip(), V.Invert(),
                      V.Equalize(), V.GaussianBlur(3), V.RandomCrop(7), V.Rotate(10)):  # fmt: skip
        made = operation(flat)
        assert made.ndim == 2
        np.testing.assert_array_equal(made, operation(IMAGE[..., :1])[..., 0]) if not isinstance(
            operation, V.RandomCrop
        ) else None
    stack = np.stack([IMAGE, IMAGE[::-1]])
    for operation in (V.Resize((5, 6)), V.CenterCrop(8), V.HorizontalFlip(), V.VerticalFlip()):
        made = operation(stack)
        np.testing.assert_array_equal(made[1], operation(stack[1]))


def test_hsv_there_and_back():
    values = np.random.RandomState(0).rand(50, 3)
    np.testing.assert_allclose(hsv_to_rgb(rgb_to_hsv(values)), values, atol=1e-12)
    import colorsys

    expected = [colorsys.rgb_to_hsv(*v) for v in values]
    np.testing.assert_allclose(rgb_to_hsv(values), expected, atol=1e-12)


def test_chances():
    counts = sum(
        np.array_equal(V.RandomHorizontalFlip(0.3)(IMAGE), IMAGE[:, ::-1]) for _ in range(2000)
    )
    assert abs(counts - 600) < 5 * np.sqrt(2000 * 0.3 * 0.7)
    tops = [V.RandomCrop((12, 17))(IMAGE)[0, 0, 0] == IMAGE[0, 0, 0] for _ in range(1000)]
    assert abs(sum(tops) - 500) < 5 * np.sqrt(250)
    choice = T.RandomChoice([lambda x: x, lambda x: x + 1, lambda x: x + 2])
    drawn = np.bincount([choice(0) for _ in range(3000)])
    assert np.abs(drawn - 1000).max() < 5 * np.sqrt(3000 * 2 / 9)
    assert sum(T.RandomApply([lambda x: 1], 0.2)(0) for _ in range(2000)) < 600
    orders = {T.RandomOrder([lambda s: s + "a", lambda s: s + "b"])("") for _ in range(50)}
    assert orders == {"ab", "ba"}


def test_random_transforms_are_of_their_kind():
    assert V.RandomResizedCrop((5, 6))(IMAGE).shape == (5, 6, 3)
    assert V.RandomResize(8)(IMAGE).shape == (8, 10, 3)
    erased = V.RandomErasing(1.0, value=9)(IMAGE.transpose(2, 0, 1))
    assert (erased == 9).all(axis=0).any()
    cut = V.CutOut(4, 2)(IMAGE)
    assert 0 < (cut == 0).all(axis=-1).sum() <= 32 + (IMAGE == 0).all(axis=-1).sum()
    assert not np.array_equal(V.RandomColorAdjust(0.4, 0.4, 0.4, 0.1)(IMAGE), IMAGE)
    np.testing.assert_array_equal(V.RandomColorAdjust()(IMAGE), IMAGE)
    for operation in (V.RandomColor(), V.RandomSharpness(), V.RandomPosterize((3, 5)),
                      V.RandomSolarize(), V.RandomEqualize(1.0), V.RandomAutoContrast(prob=1.0),
                      V.RandomInvert(1.0), V.RandomGrayscale(1.0), V.RandomLighting(0.5),
                      V.RandomAdjustSharpness(2.0, 1.0), V.RandomVerticalFlip(1.0)):  # fmt: skip
        made = operation(IMAGE)
        assert (made.shape, made.dtype) == (IMAGE.shape, np.uint8)
        assert not np.array_equal(made, IMAGE)
    policy = V.RandomSelectSubpolicy([[(V.Invert(), 1), (V.HorizontalFlip(), 1)]])
    np.testing.assert_array_equal(policy(IMAGE), 255 - IMAGE[:, ::-1])
    assert V.UniformAugment([V.Invert(), V.HorizontalFlip()])(IMAGE).shape == IMAGE.shape
    patches = V.SlicePatches(2, 2)(IMAGE)
    assert [p.shape for p in patches] == [(7, 9, 3)] * 4
    np.testing.assert_array_equal(patches[0], IMAGE[:7, :9])
    assert [p.shape for p in V.FiveCrop(5)(IMAGE)] == [(5, 5, 3)] * 5


def test_mixing():
    images = np.stack([np.zeros((4, 4, 1)), np.ones((4, 4, 1))]).astype(np.float32)
    labels = np.eye(2, dtype=np.float32)
    for operation in (V.MixUpBatch(1.0), V.CutMixBatch(V.ImageBatchFormat.NHWC)):
        for _ in range(20):
            mixed, shares = operation(images, labels)
            np.testing.assert_allclose(mixed.mean(axis=(1, 2, 3)), shares[:, 1], atol=1e-6)
            np.testing.assert_allclose(shares.sum(axis=1), 1, atol=1e-6)
    with pytest.raises(ValueError, match="labels as vectors"):
        V.MixUpBatch()(images, np.arange(2))


def test_in_a_dataset_with_workers():
    def made(workers):
        source = ds.NumpySlicesDataset({"image": np.stack([IMAGE] * 12), "label": np.arange(12)})
        dataset = source.map(
            [V.RandomCrop(8), V.RandomHorizontalFlip(), V.Rescale(1 / 255, 0), V.HWC2CHW()],
            "image",
            num_parallel_workers=workers,
        )
        dataset = dataset.map(T.TypeCast(np.int32), "label").batch(4)
        return [(x.asnumpy(), y.asnumpy()) for x, y in dataset]

    first = made(1)
    assert first[0][0].shape == (4, 3, 8, 8)
    for other in (made(1), made(3)):
        for (a, b), (c, d) in zip(first, other, strict=True):
            np.testing.assert_array_equal(a, c)
            np.testing.assert_array_equal(b, d)


# Transforms of any data: values of MindSpore 2.10 ------------------------------------------------


def test_general_transforms():
    def same(made, expected, dtype=np.int64):
        assert made.dtype == dtype
        np.testing.assert_allclose(made, expected, rtol=1e-12)

    same(T.OneHot(4)(np.array(2)), [0, 0, 1, 0])
    smooth = T.OneHot(4, 0.1)(np.array(2, np.int32))
    same(smooth, [0.025, 0.025, 0.925, 0.025], np.float64)
    same(T.TypeCast(np.int32)(np.array(2.7)), 2, np.int32)
    same(T.Fill(3)(np.zeros(3)), [3, 3, 3], np.float64)
    same(T.PadEnd([5], -1)(np.arange(3)), [0, 1, 2, -1, -1])
    same(T.PadEnd([2], -1)(np.arange(3)), [0, 1])
    assert T.PadEnd([3])(np.array(["a", "b"])).tolist() == ["a", "b", ""]
    same(T.Slice([0, 2])(np.arange(5)), [0, 2])
    same(T.Slice(2)(np.arange(5)), [2])
    same(T.Slice(slice(1, 3))(np.arange(5)), [1, 2])
    same(T.Slice(None, slice(0, 1))(np.arange(4).reshape(2, 2)), [[0], [2]])
    same(T.Mask(T.Relational.GE, 2)(np.arange(5)), [0, 0, 1, 1, 1], bool)
    same(T.Concatenate(0, np.array([9]), np.array([8]))(np.arange(3)), [9, 0, 1, 2, 8])
    values, places, counts = T.Unique()(np.array([3, 1, 3, 2]))
    assert (values.tolist(), places.tolist(), counts.tolist()) == (
        [3, 1, 2],
        [0, 1, 0, 2],
        [2, 1, 1],
    )
    assert len(T.Duplicate()(np.arange(3))) == 2
    composed = T.Compose([V.Resize((3, 4)), V.Rescale(1 / 255, 0.0), V.HWC2CHW()])(IMAGE)
    assert (composed.shape, composed.dtype) == ((3, 3, 4), np.float32)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: V.Resize((3, 0)), ValueError, "size"),
        (lambda: V.Resize((3, 4, 5)), ValueError, "one number or two"),
        (lambda: V.Resize(3)(np.arange(3)), TypeError, r"got int64 of shape \[3\]; see Decode"),
        (lambda: V.Resize(3)("abc"), TypeError, "must be an array"),
        (lambda: V.RandomCrop(20)(IMAGE), ValueError, r"\(13, 17\) has no part of \(20, 20\)"),
        (lambda: V.Crop((10, 0), 5)(IMAGE), ValueError, "not within an image"),
        (lambda: V.Normalize([1, 2], [1]), ValueError, "as many numbers"),
        (lambda: V.Normalize([1, 2], [1, 0]), ValueError, "must be positive"),
        (lambda: V.Normalize([1, 2], [1, 1])(IMAGE), ValueError, "2 means for 3 channels"),
        (lambda: V.RandomHorizontalFlip(1.5), ValueError, "prob"),
        (lambda: V.RandomResizedCrop(5, (0.9, 0.1)), ValueError, "'scale'.*in order"),
        (lambda: V.Equalize()(IMAGE.astype(np.float32)), ValueError, "must be uint8, got float32"),
        (lambda: V.AdjustHue(0.7), ValueError, "hue_factor"),
        (lambda: V.GaussianBlur(4), ValueError, "must be odd"),
        (lambda: V.Pad([1, 2, 3]), ValueError, "1, 2 or 4"),
        (lambda: V.Rotate(10, V.Inter.AREA)(IMAGE), ValueError, "cannot interpolate"),
        (lambda: V.ToPIL()(np.zeros((3, 4, 5, 6))), TypeError, "is not an image"),
        (lambda: T.OneHot(3)(np.array(3)), ValueError, "for 3 classes"),
        (lambda: T.OneHot(3)(np.array(1.0)), TypeError, "must be integers"),
        (lambda: T.Compose([]), TypeError, "list of functions"),
        (lambda: T.TypeCast("nothing"), TypeError, "is not a dtype"),
        (lambda: T.PadEnd([2, 2])(np.arange(3)), ValueError, "cannot become"),
    ],
)
def test_transforms_refuse_what_is_no_image(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_without_pillow(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ImportError, match=r"pip install gradcell\[vision\]"):
        V.Decode()(np.zeros(5, np.uint8))
    assert V.Resize((4, 4))(IMAGE).shape == (4, 4, 3)
