"""Axes and indices as people type them: every public function with an axis is called with axes of all kinds,
and what NumPy, SciPy, PyTorch or MindSpore's pages say of indices holds."""

from __future__ import annotations

import inspect
import re
import warnings
from typing import Any

import numpy as np
import pytest
from scipy import ndimage

import gradcell as gc
import gradcell.numpy as gnp
from gradcell import Tensor, mint, ops
from gradcell.mint.nn import functional

AXES = set("axis axes dim dims dim0 dim1 axis1 axis2 start_dim end_dim seq_dim batch_dim".split())
PLACES = {
    "ops": ops,
    "mint": mint,
    "mint.nn.functional": functional,
    "mint.linalg": mint.linalg,
    "numpy": gnp,
    "scipy.linalg": gc.scipy.linalg,
    "Tensor": Tensor,
}
#: Their axes count in the result, name a pair with another axis, or are counted by a list of them.
OF_RESULT = {"expand_dims", "unsqueeze", "stack", "one_hot"}
OF_PAIRS = {"diagonal", "trace", "tensor_dot", "tensordot", "glu"}
MATRIX = Tensor(np.array([[3.0, 1.0, 2.0], [4.0, 0.5, 6.0]], np.float32))
SCALAR = Tensor(np.float32(2.0))
HERE = r"test_axes\.py:\d+"


def _others(x: Tensor) -> dict[str, Any]:
    """What is given for the parameters without defaults."""
    index, pair = Tensor(np.zeros(x.shape, np.int64)), [x, x]
    return {
        **dict.fromkeys("index indices".split(), index),
        **dict.fromkeys("tensors arrays tup".split(), pair),
        **dict.fromkeys("src updates y other b x2 input_y input_x arr x1".split(), x),
        **dict.fromkeys("k n shifts shift num_or_sections indices_or_sections".split(), 1),
        **dict.fromkeys("split_size_or_sections chunks length value maxnorm".split(), 1),
        **{"start": 0, "repeats": 2, "p": 2.0, "q": 0.5, "depth": 2},
        **{"input_indices": Tensor([0]), "condition": np.array([True, False])},
    }


def _called(function: Any, parameter: str, x: Tensor, axis: Any) -> list[np.ndarray]:
    placed, named, given, first = [], {}, _others(x), True
    for name, p in inspect.signature(function).parameters.items():
        if p.kind == p.VAR_KEYWORD or (p.kind == p.VAR_POSITIONAL and name != parameter):
            continue
        if name == parameter:
            value = axis
        elif first:
            value = given[name] if name in ("tensors", "arrays", "tup") else x
        elif p.default is not p.empty:
            continue
        else:
            value = 0 if name in AXES else given[name]
        first = False
        if p.kind in (p.POSITIONAL_ONLY, p.VAR_POSITIONAL):
            placed.append(value)
        else:
            named[name] = value
    if placed and named:  # *axes, after the tensor
        placed = [*named.values(), *placed]
        named = {}
    found = function(*placed, **named)
    leaves = found if isinstance(found, (tuple, list)) else [found]
    return [t.asnumpy() for t in leaves if isinstance(t, Tensor)]


def _with_axes() -> list[tuple[str, Any, str]]:
    found = []
    for place, owner in PLACES.items():
        for name in sorted(getattr(owner, "__all__", dir(owner))):
            function = getattr(owner, name, None)
            if name == "lexsort":  # whose axis is that of each key
                continue
            if name.startswith("_") or isinstance(function, type) or not callable(function):
                continue
            try:
                parameters = inspect.signature(function).parameters
            except (TypeError, ValueError):
                continue
            found += [(f"{place}.{name}", function, p) for p in parameters if p in AXES]
    return found


def _begins(function: Any, parameter: str) -> str:
    """Why axis 0 of a matrix is not right for a function; nothing if it is."""
    try:
        _called(function, parameter, MATRIX, 0)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


@pytest.mark.slow
def test_most_functions_with_an_axis_are_called_below() -> None:
    """The others say in their own words what they need, or are not given their arguments here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        said = [_begins(function, parameter) for _, function, parameter in _with_axes()]
    assert said.count("") >= 230
    assert all(re.search(HERE, text) or "KeyError" in text for text in said if text)


@pytest.mark.one_in(24)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("label", "function", "parameter"),
    _with_axes(),
    ids=[f"{label}-{parameter}" for label, _, parameter in _with_axes()],
)
def test_every_function_with_an_axis_takes_it_as_an_axis(
    label: str, function: Any, parameter: str
) -> None:
    if not _begins(function, parameter):
        _check(label, function, parameter)


def _check(label: str, function: Any, parameter: str) -> None:
    name = label.rsplit(".", 1)[1]

    def refused(x: Tensor, axis: Any, *kinds: Any, text: str = "") -> None:
        with pytest.raises(kinds or (ValueError, TypeError, IndexError)) as raised:
            _called(function, parameter, x, axis)
        said = str(raised.value)
        assert re.search(HERE, said) and text in said, (label, parameter, axis, said)

    if name not in OF_RESULT | OF_PAIRS:  # from the end
        try:
            front = _called(function, parameter, MATRIX, 1)
        except Exception as error:
            front, text = None, str(error)
        if front is None:
            refused(MATRIX, -1)
            assert re.search(HERE, text), (label, text)
        else:
            back = _called(function, parameter, MATRIX, -1)
            for a, b in zip(front, back, strict=True):
                np.testing.assert_array_equal(a, b, err_msg=label)
    for axis in (7, -8):
        refused(MATRIX, axis, ValueError, IndexError, text=str(axis))
    for axis in (1.0, 1.5, "0"):
        if not (name == "flatten" and axis == "0"):  # (the order, by place)
            refused(MATRIX, axis, TypeError)
    for x, axis in [
        *((MATRIX, a) for a in ((), (0, 1), (-1, -2), [0], (0, 0), (0, 7))),
        *((SCALAR, a) for a in (0, -1, 1, ())),
    ]:
        try:
            _called(function, parameter, x, axis)
        except Exception:
            refused(x, axis)  # in words of our own
            continue
        assert axis != (0, 7), label
        assert axis != (0, 0) or name in OF_PAIRS | {"roll"}, label
        assert x is MATRIX or axis != 1 or name in OF_RESULT | {"flatten"}, label


def test_the_greatest_by_the_forms_of_its_arguments() -> None:
    x = np.array([[1.0, 5.0, 3.0], [4.0, 2.0, 6.0]], np.float32)
    t = Tensor(x)
    for name in ("max", "min"):
        f, of, where = getattr(t, name), getattr(np, name), getattr(np, f"arg{name}")
        for got, axis, keep in [
            (f(), None, False),
            (f(-1, keepdims=True), -1, True),
            (f((0, 1)), (0, 1), False),
            (f([0, 1], keepdims=True), (0, 1), True),
            (f(axis=0), 0, False),
            (f(axis=(0, 1), keepdims=True), (0, 1), True),
            (f(None), None, False),
            (f(0, keepdims=False), 0, False),
            (f(0, return_indices=False), 0, False),
        ]:
            np.testing.assert_array_equal(got.asnumpy(), of(x, axis=axis, keepdims=keep))
        for got, axis, keep in [
            (f(0), 0, False),
            (f(-1, True), -1, True),
            (f(dim=0, keepdim=True), 0, True),
            (f(axis=1, return_indices=True), 1, False),
            (f(1, return_indices=True, keepdims=True), 1, True),
        ]:
            values, indices = got
            np.testing.assert_array_equal(values.asnumpy(), of(x, axis=axis, keepdims=keep))
            np.testing.assert_array_equal(indices.asnumpy(), where(x, axis=axis, keepdims=keep))
    np.testing.assert_array_equal(t.max(-1, initial=5.5).asnumpy(), x.max(-1, initial=5.5))
    with pytest.raises(TypeError, match="'axis' must be int"):
        t.max((0, 1), return_indices=True)


def test_axes_as_tuples() -> None:
    x = np.arange(6.0).reshape(2, 3)
    t = Tensor(x)
    for axis in ((0, 1), (0, -1), (2, 0), (), 1, -1, [0, 3]):
        np.testing.assert_array_equal(
            gnp.expand_dims(t, axis).asnumpy(),
            np.expand_dims(x, tuple(axis) if isinstance(axis, list) else axis),
        )
    for shift, axis in ((1, (0, 1)), ((1, 2), (1, 0)), ((1, 1), (0, 0)), (4, 1), (-1, None)):
        np.testing.assert_array_equal(gnp.roll(t, shift, axis).asnumpy(), np.roll(x, shift, axis))
    with pytest.raises(ValueError, match="axes that differ"):
        gnp.expand_dims(t, (0, 0))
    with pytest.raises(ValueError, match="rot90: two dimensions"):
        ops.rot90(t, 1, [0])


def test_indices_of_mint_are_int64() -> None:
    v = Tensor(np.array([3.0, 1.0, 2.0], np.float32))
    image = Tensor(np.arange(16.0, dtype=np.float32).reshape(1, 1, 4, 4))
    found = [
        mint.topk(v, 2)[1], mint.sort(v)[1], mint.argsort(v), mint.argmax(v), mint.argmin(v, 0),
        mint.max(v, 0)[1], mint.min(v, 0)[1], mint.median(v, 0)[1], mint.cummax(v, 0)[1],
        mint.cummin(v, 0)[1], mint.nonzero(v), mint.where(v > 1)[0], mint.searchsorted(v, v),
        *mint.unique_consecutive(v, True, True)[1:], mint.multinomial(v, 2), mint.randperm(3),
        functional.max_pool2d(image, 2, return_indices=True)[1],
        functional.adaptive_max_pool2d(image, 2, return_indices=True)[1],
        functional.adaptive_max_pool1d(image[0], 2, return_indices=True)[1],
    ]  # fmt: skip
    assert {t.dtype for t in found} == {gc.int64}
    np.testing.assert_array_equal(mint.topk(v, 2)[1].asnumpy(), [0, 2])
    np.testing.assert_array_equal(mint.sort(v, descending=True)[1].asnumpy(), [0, 2, 1])


def test_take_counts_from_the_end_and_says_what_is_outside() -> None:
    x = np.array([1.0, 2.0, 3.0])
    t, at = Tensor(x), np.array([-1, 0, -3, 2])
    for take in (ops.take, gnp.take, mint.take, Tensor.take):
        np.testing.assert_array_equal(take(t, Tensor(at)).asnumpy(), np.take(x, at))
        gradient = gc.grad(
            lambda t, take=take: (take(t, Tensor(at)) * Tensor([1.0, 2.0, 4.0, 8.0])).sum()
        )
        np.testing.assert_array_equal(gradient(t).asnumpy(), [6.0, 0.0, 9.0])
        traced = gc.jit(lambda t, i, take=take: take(t, i))
        np.testing.assert_array_equal(traced(t, Tensor(at)).asnumpy(), np.take(x, at))
        with pytest.raises(TypeError, match=r"of integers, got Float"):
            take(t, Tensor([1.7]))
    outside = Tensor(np.array([7, -9, -1]))
    # MindSpore's default is to clip, what counts from the end first.
    np.testing.assert_array_equal(gnp.take(t, outside).asnumpy(), [3, 1, 3])
    np.testing.assert_array_equal(
        ops.take(t, outside, mode="wrap").asnumpy(), np.take(x, [7, -9, -1], mode="wrap")
    )
    for refuse in (
        lambda t, i: mint.take(t, i),
        lambda t, i: ops.take(t, i, mode="raise"),
        gc.jit(lambda t, i: mint.take(t, i)),
    ):
        with pytest.raises(IndexError, match=r"index 7 is out of (range|bounds)"):
            refuse(t, outside)


def test_an_index_is_of_integers() -> None:
    t = Tensor([1.0, 2.0, 3.0])
    for index in (Tensor(1.7), Tensor([1.7]), Tensor(np.float64(1.0)), Tensor(np.array([1j]))):
        with pytest.raises(IndexError, match="an index must be of integers"):
            t[index]
        with pytest.raises(IndexError, match="an index must be of integers"):
            t[index] = 0.0
    assert t.asnumpy().tolist() == [1, 2, 3]


def test_indices_along_an_axis_broadcast() -> None:
    x = np.arange(24.0).reshape(2, 3, 4)
    for shape, axis in [
        ((1, 2, 1), 1), ((2, 1, 4), 1), ((1, 1, 5), 2), ((2, 3, 1), -1), ((3, 1, 4), 0), ((0, 1, 1), 0),
    ]:  # fmt: skip
        at = np.random.default_rng(0).integers(-2, 2, shape)
        got = gnp.take_along_axis(Tensor(x), Tensor(at), axis)
        np.testing.assert_array_equal(got.asnumpy(), np.take_along_axis(x, at, axis))
    flat = np.array([3, -1, 0])
    np.testing.assert_array_equal(
        gnp.take_along_axis(Tensor(x), Tensor(flat), None).asnumpy(),
        np.take_along_axis(x, flat, None),
    )
    with pytest.raises(ValueError, match="does not broadcast"):
        gnp.take_along_axis(Tensor(x), Tensor(np.zeros((2, 2, 3), int)), 1)
    with pytest.raises(ValueError, match="1 dimensions for a tensor of 3"):
        gnp.take_along_axis(Tensor(x), Tensor([0]), 1)


@pytest.mark.parametrize("name", ["sum", "max", "min"])
def test_a_segment_that_does_not_exist_is_an_error(name: str) -> None:
    op = getattr(ops, f"unsorted_segment_{name}")
    x = Tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    np.testing.assert_array_equal(op(x, Tensor([1, -1, 0]), 2).asnumpy(), [[5, 6], [1, 2]])
    traced = gc.jit(lambda x, i: op(x, i, 2))
    np.testing.assert_array_equal(traced(x, Tensor([1, -5, 0])).asnumpy(), [[5, 6], [1, 2]])
    for ids in ([0, 1, 2], [0, 9, -1]):
        with pytest.raises(IndexError, match=rf"(id|index) {max(ids)}\b"):
            op(x, Tensor(ids), 2)
        with pytest.raises(IndexError, match=r"is out of range"):
            traced(x, Tensor(ids))
    with pytest.raises(TypeError, match="of integers"):
        op(x, Tensor([0.0, 1.0, 1.0]), 2)
    with pytest.raises(ValueError, match=r"segment_ids of shape \[2\]"):
        op(x, Tensor([0, 1]), 2)


def test_norms_of_mint_are_of_vectors_but_for_words() -> None:
    x = np.array([[1.0, 5.0, 3.0], [4.0, 2.0, 6.0]])
    t = Tensor(x)
    for p in (0, 1, 2, 3, 2.5, np.inf, -np.inf):
        flat = np.linalg.norm(x.ravel(), p)
        for got in (mint.norm(t, p), mint.norm(t, p, (0, 1))):
            np.testing.assert_allclose(got.asnumpy(), flat, rtol=1e-13)
        np.testing.assert_allclose(
            mint.norm(t, p, 1, True).asnumpy(), np.linalg.norm(x, p, 1, True), rtol=1e-13
        )
    for got, p in (
        (mint.norm(t), "fro"),
        (mint.norm(t, "fro", (0, 1)), "fro"),
        (mint.norm(t, "nuc"), "nuc"),
    ):
        np.testing.assert_allclose(got.asnumpy(), np.linalg.norm(x, p), rtol=1e-13)


def test_a_smooth_loss_without_its_smooth_part() -> None:
    x, y = Tensor([1.0, 2.0, -3.0]), Tensor([1.0, 2.5, 1.0])
    np.testing.assert_array_equal(ops.smooth_l1_loss(x, y, beta=0).asnumpy(), [0.0, 0.5, 4.0])
    np.testing.assert_array_equal(
        gc.grad(lambda x: functional.smooth_l1_loss(x, y, "sum", 0.0))(x).asnumpy(), [0, -1, -1]
    )
    with pytest.raises(ValueError, match="must not be negative"):
        ops.smooth_l1_loss(x, y, beta=-1.0)


def test_images_without_a_batch() -> None:
    draw = np.random.default_rng(0)
    x = [
        Tensor(draw.normal(size=(4, 6, 5, 7)[: n + 1])) for n in range(4)
    ]  # x[n]: channels, n dims
    w = [Tensor(draw.normal(size=(2, 4, 3, 2, 3)[: n + 2])) for n in range(4)]
    functions = {
        **{
            f"conv{n}d": lambda t, n=n: getattr(functional, f"conv{n}d")(t, w[n], padding=1)
            for n in (1, 2, 3)
        },
        **{
            f"avg_pool{n}d": lambda t, n=n: getattr(functional, f"avg_pool{n}d")(t, 2)
            for n in (1, 2, 3)
        },
        "conv_transpose2d": lambda t: functional.conv_transpose2d(
            t, ops.swapaxes(w[2], 0, 1), stride=2
        ),
        "max_pool2d": lambda t: functional.max_pool2d(t, 2, return_indices=True),
        "adaptive_avg_pool2d": lambda t: functional.adaptive_avg_pool2d(t, 3),
    }
    layers = {
        "Conv1d": mint.nn.Conv1d(4, 2, 3), "Conv2d": mint.nn.Conv2d(4, 2, 3, padding="same"),
        "Conv3d": mint.nn.Conv3d(4, 2, 2), "ConvTranspose2d": mint.nn.ConvTranspose2d(4, 2, 3),
        "MaxPool2d": mint.nn.MaxPool2d(2), "AvgPool2d": mint.nn.AvgPool2d(2),
        "AvgPool3d": mint.nn.AvgPool3d(2),
    }  # fmt: skip
    for name, f in {**functions, **layers}.items():
        image = x[int(re.findall(r"\d", name)[0])]
        image = image.astype(gc.float32) if name in layers else image
        alone, batch = f(image), f(ops.expand_dims(image, 0))
        for a, b in zip(
            *((r,) if isinstance(r, Tensor) else r for r in (alone, batch)), strict=True
        ):
            np.testing.assert_allclose(a.asnumpy(), b.asnumpy()[0], rtol=1e-6, err_msg=name)
    layer = layers["ConvTranspose2d"]
    assert layer(x[2].astype(gc.float32), output_size=(8, 7)).shape == (2, 8, 7)


@pytest.mark.parametrize("corners", [True, False])
def test_samples_of_volumes(corners: bool) -> None:
    """As SciPy's map_coordinates has them."""
    draw = np.random.default_rng(0)
    volume, grid = draw.normal(size=(2, 3, 4, 5, 6)), draw.uniform(-1.3, 1.3, (2, 3, 4, 2, 3))
    sizes = np.array([4, 5, 6])[:, None, None, None]
    for mode, order in (("bilinear", 1), ("nearest", 0)):
        for padding, way in (("zeros", "constant"), ("border", "nearest")):
            got = ops.grid_sample(Tensor(volume), Tensor(grid), mode, padding, corners)
            for n in range(2):
                at = np.moveaxis(grid[n], -1, 0)[::-1]
                at = (at + 1) / 2 * (sizes - 1) if corners else ((at + 1) * sizes - 1) / 2
                at = np.clip(at, 0, sizes - 1) if padding == "border" else at
                around = (
                    np.pad(volume[n], [(0, 0), *[(2, 2)] * 3]) if way == "constant" else volume[n]
                )
                at = at + 2 if way == "constant" else at
                at = np.clip(at, 0, np.array(around.shape[1:])[:, None, None, None] - 1)
                at = np.round(at) if mode == "nearest" else at
                want = [ndimage.map_coordinates(c, at, order=order, mode="nearest") for c in around]
                np.testing.assert_allclose(got[n].asnumpy(), np.stack(want), atol=1e-13)

    def loss(x: Tensor, g: Tensor) -> Tensor:
        return ops.square(
            ops.grid_sample(x, g, padding_mode="reflection", align_corners=corners)
        ).sum()

    for k, x in enumerate((volume, grid)):
        step = draw.normal(size=x.shape) * 1e-6
        slope = (gc.grad(loss, k)(Tensor(volume), Tensor(grid)).asnumpy() * step).sum()
        ends = [
            loss(*(Tensor(v + s * step if v is x else v) for v in (volume, grid))).item()
            for s in (1, -1)
        ]
        np.testing.assert_allclose(slope, (ends[0] - ends[1]) / 2, rtol=1e-6)
