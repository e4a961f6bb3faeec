"""Result dtypes are MindSpore's: tensor with tensor, tensor with Python scalar, and reductions.

The tables are recorded from MindSpore 2.10.0. Where its CPU kernels refuse a dtype (most bfloat16
arithmetic, minimum of bools), the tables have what its promotion rules give. Two oddities are left
out: `any` of uint8 is uint8 there, and bool // bool is bool.
"""

from __future__ import annotations

import operator

import numpy as np
import pytest

import gradcell as ms
from gradcell import Tensor, ops

NAMES = ["bool", "u8", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64"]
DTYPES = dict(
    zip(
        NAMES,
        [
            ms.bool_,
            ms.uint8,
            ms.int8,
            ms.int16,
            ms.int32,
            ms.int64,
            ms.float16,
            ms.bfloat16,
            ms.float32,
            ms.float64,
        ],
        strict=True,
    )
)
FLOATS = NAMES[6:]

# Row: left operand; column: right operand, both in the order of NAMES.
LATTICE = """
bool   u8   i8  i16  i32  i64  f16 bf16  f32  f64
  u8   u8  i16  i16  i32  i64  f16 bf16  f32  f64
  i8  i16   i8  i16  i32  i64  f16 bf16  f32  f64
 i16  i16  i16  i16  i32  i64  f16 bf16  f32  f64
 i32  i32  i32  i32  i32  i64  f16 bf16  f32  f64
 i64  i64  i64  i64  i64  i64  f16 bf16  f32  f64
 f16  f16  f16  f16  f16  f16  f16  f32  f32  f64
bf16 bf16 bf16 bf16 bf16 bf16  f32 bf16  f32  f64
 f32  f32  f32  f32  f32  f32  f32  f32  f32  f64
 f64  f64  f64  f64  f64  f64  f64  f64  f64  f64
"""
PROMOTED = {
    (left, right): result
    for left, row in zip(NAMES, LATTICE.strip().splitlines(), strict=True)
    for right, result in zip(NAMES, row.split(), strict=True)
}

ARITHMETIC = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "maximum": ops.maximum,
    "minimum": ops.minimum,
}
NO_BOOL = {"pow": operator.pow, "mod": operator.mod, "floordiv": operator.floordiv}
COMPARISONS = {"eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "ge": operator.ge}


def ones(name: str) -> Tensor:
    return Tensor(np.ones(2, np.int64), DTYPES[name])


def name_of(tensor: Tensor) -> str:
    return next(name for name, dtype in DTYPES.items() if tensor.dtype == dtype)


@pytest.mark.one_in(8)
@pytest.mark.parametrize("op", [*ARITHMETIC, *NO_BOOL])
@pytest.mark.parametrize("left", NAMES)
def test_arithmetic(op, left):
    function = {**ARITHMETIC, **NO_BOOL}[op]
    rights = [name for name in NAMES if not (op in NO_BOOL and left == name == "bool")]
    results = {right: name_of(function(ones(left), ones(right))) for right in rights}
    assert results == {right: PROMOTED[left, right] for right in rights}


@pytest.mark.parametrize("left", NAMES)
def test_true_division(left):
    results = {right: name_of(ones(left) / ones(right)) for right in NAMES}
    both_integral = {right: "f32" for right in NAMES[:6] if left in NAMES[:6]}
    assert results == {right: PROMOTED[left, right] for right in NAMES} | both_integral


@pytest.mark.parametrize("op", COMPARISONS)
@pytest.mark.parametrize("left", NAMES)
def test_comparisons(op, left):
    results = {name_of(COMPARISONS[op](ones(left), ones(right))) for right in NAMES}
    assert results == {"bool"}


@pytest.mark.parametrize("left", NAMES)
def test_where(left):
    condition = Tensor([True, False])
    results = {right: name_of(ops.where(condition, ones(left), ones(right))) for right in NAMES}
    assert results == {right: PROMOTED[left, right] for right in NAMES}


def with_scalar(name: str, scalar: object) -> str:
    """The dtype of a tensor with a Python scalar: the scalar's kind counts, not its size."""
    if isinstance(scalar, float) and name not in FLOATS:
        return "f32"
    if isinstance(scalar, int) and not isinstance(scalar, bool) and name == "bool":
        return "i64"
    return name


@pytest.mark.parametrize("op", [*ARITHMETIC, *NO_BOOL])
@pytest.mark.parametrize("scalar", [True, 2, 2.5], ids=repr)
def test_scalars_on_either_side(op, scalar):
    function = {**ARITHMETIC, **NO_BOOL}[op]
    names = [name for name in NAMES if not (scalar is True and name == "bool")]
    expected = {name: with_scalar(name, scalar) for name in names}
    assert {name: name_of(function(ones(name), scalar)) for name in names} == expected
    assert {name: name_of(function(scalar, ones(name))) for name in names} == expected


@pytest.mark.parametrize("scalar", [True, 2, 2.5], ids=repr)
def test_division_by_and_of_a_scalar(scalar):
    expected = {name: name if name in FLOATS else "f32" for name in NAMES}
    assert {name: name_of(ones(name) / scalar) for name in NAMES} == expected
    assert {name: name_of(scalar / ones(name)) for name in NAMES} == expected


def test_integers_wrap_and_halves_overflow():
    assert (Tensor([127], ms.int8) + 1).asnumpy() == -128
    assert (Tensor([1], ms.uint8) - 2).asnumpy() == 255
    assert (-Tensor([1], ms.uint8)).asnumpy() == 255
    assert np.isinf((Tensor([60000.0], ms.float16) * 2).asnumpy())
    assert np.isinf((Tensor([1.0], ms.float16) + 1e6).asnumpy())


def test_bool_arithmetic():
    true, false = Tensor([True]), Tensor([False])
    assert bool(true + true) is True
    assert bool(true * false) is False
    assert bool(true - true) is False
    with pytest.raises(TypeError):
        (-true).asnumpy()


# Result for each dtype of NAMES; "-": refused with an error.
REDUCTIONS = {
    "sum": "i64 i64 i64 i64 i64 i64 f16 bf16 f32 f64",
    "prod": "i64 i64 i64 i64 i64 i64 f16 bf16 f32 f64",
    "mean": "- u8 i8 i16 i32 i64 f16 bf16 f32 f64",
    "max": "- u8 i8 i16 i32 i64 f16 bf16 f32 f64",
    "min": "- u8 i8 i16 i32 i64 f16 bf16 f32 f64",
    "all": "bool bool bool bool bool bool bool bool bool bool",
    "any": "bool bool bool bool bool bool bool bool bool bool",
    "argmax": "i64 i64 i64 i64 i64 i64 i64 i64 i64 i64",
    "argmin": "- i32 i32 i32 i32 i32 i32 i32 i32 i32",
}
PRIMITIVES = {
    "ReduceSum": "bool u8 i8 i16 i32 i64 f16 bf16 f32 f64",
    "ReduceProd": "bool u8 i8 i16 i32 i64 f16 bf16 f32 f64",
    "ReduceMean": "- u8 i8 i16 i32 i64 f16 bf16 f32 f64",
    "ReduceMax": "- u8 i8 i16 i32 i64 f16 bf16 f32 f64",
    "ReduceMin": "- u8 i8 i16 i32 i64 f16 bf16 f32 f64",
}


def by_dtype(row: str) -> dict[str, str]:
    return {name: result for name, result in zip(NAMES, row.split(), strict=True) if result != "-"}


@pytest.mark.parametrize("method", REDUCTIONS)
def test_reduction_methods(method):
    expected = by_dtype(REDUCTIONS[method])
    assert {name: name_of(getattr(ones(name), method)()) for name in expected} == expected


@pytest.mark.parametrize("primitive", PRIMITIVES)
def test_reduction_primitives(primitive):
    expected = by_dtype(PRIMITIVES[primitive])
    reduce = getattr(ops, primitive)()
    assert {name: name_of(reduce(ones(name), 0)) for name in expected} == expected


@pytest.mark.parametrize("function", ["sqrt", "reciprocal"])
def test_functions_that_turn_integers_into_float32(function):
    expected = {name: name if name in FLOATS else "f32" for name in NAMES}
    assert {name: name_of(getattr(ops, function)(ones(name))) for name in NAMES} == expected


@pytest.mark.parametrize("function", ["exp", "log", "sin", "cos", "tanh", "sigmoid", "erf", "atan"])
def test_float_functions_keep_floats_and_turn_integers_into_float32(function):
    """MindSpore's CPU kernels refuse integers here; gradcell computes them in float32."""
    expected = {name: name if name in FLOATS else "f32" for name in NAMES}
    assert {name: name_of(getattr(ops, function)(ones(name))) for name in NAMES} == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1, "i64"),
        (1.0, "f32"),
        (True, "bool"),
        ([1, 2], "i64"),
        ((1, 2), "i64"),
        ([1.0, 2.0], "f32"),
        ([1, 2.0], "f32"),
        ([True, 2], "i64"),
        ([True], "bool"),
        ([], "f32"),
        (np.array(1.0), "f64"),
        (np.array([1, 2], np.int16), "i16"),
        (np.float32(3), "f32"),
    ],
    ids=repr,
)
def test_tensor_from_python_and_numpy(value, expected):
    assert name_of(Tensor(value)) == expected


@pytest.mark.parametrize(("left", "right"), [("f32", "f16"), ("f32", "i32"), ("f64", "f32")])
def test_matmul_promotes_as_add_does(left, right):
    a, b = ones(left).reshape(1, 2), ones(right).reshape(2, 1)
    for product in (ops.matmul, ops.MatMul()):
        for x, y in ((a, b), (b.reshape(1, 2), a.reshape(2, 1))):
            assert name_of(product(x, y)) == name_of(x + y)
            assert product(x, y).asnumpy().tolist() == [[2.0]]
