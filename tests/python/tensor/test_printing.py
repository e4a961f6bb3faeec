"""Tensors and parameters print as MindSpore prints them: the texts below are recorded from it.

In: (values, dtype name, text of `print`, text inside a tuple), made with MindSpore 2.10.0 on Linux.
"""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from gradcell.tensors import printing

CASES = [
    (
        np.array(1, np.float32),
        "Float32",
        "1.0",
        "Tensor(shape=[], dtype=Float32, value= 1)",
    ),
    (
        np.array(-2.0, np.float32),
        "Float32",
        "-2.0",
        "Tensor(shape=[], dtype=Float32, value= -2)",
    ),
    (
        np.array(np.pi, np.float32),
        "Float32",
        "3.1415927",
        "Tensor(shape=[], dtype=Float32, value= 3.14159)",
    ),
    (
        np.array(1e-7, np.float32),
        "Float32",
        "1e-07",
        "Tensor(shape=[], dtype=Float32, value= 1e-07)",
    ),
    (
        np.array(-0.0, np.float32),
        "Float32",
        "-0.0",
        "Tensor(shape=[], dtype=Float32, value= -0)",
    ),
    (
        np.array(np.nan, np.float32),
        "Float32",
        "nan",
        "Tensor(shape=[], dtype=Float32, value= nan)",
    ),
    (
        np.array(-np.nan, np.float32),
        "Float32",
        "nan",
        "Tensor(shape=[], dtype=Float32, value= -nan)",
    ),
    (
        np.array(-np.inf, np.float32),
        "Float32",
        "-inf",
        "Tensor(shape=[], dtype=Float32, value= -inf)",
    ),
    (
        np.array(1 / 3),
        "Float64",
        "0.3333333333333333",
        "Tensor(shape=[], dtype=Float64, value= 0.333333)",
    ),
    (
        np.array(1e300),
        "Float64",
        "1e+300",
        "Tensor(shape=[], dtype=Float64, value= 1e+300)",
    ),
    (
        np.array(1 / 3, np.float16),
        "Float16",
        "0.3333",
        "Tensor(shape=[], dtype=Float16, value= 0.333252)",
    ),
    (
        np.array(-1.25, np.float16),
        "Float16",
        "-1.25",
        "Tensor(shape=[], dtype=Float16, value= -1.25)",
    ),
    (
        np.array(1 / 3, np.float32),
        "BFloat16",
        "0.333984",
        "Tensor(shape=[], dtype=BFloat16, value= 0.333984)",
    ),
    (
        np.array(7),
        "Int64",
        "7",
        "Tensor(shape=[], dtype=Int64, value= 7)",
    ),
    (
        np.array(-5, np.int8),
        "Int8",
        "-5",
        "Tensor(shape=[], dtype=Int8, value= -5)",
    ),
    (
        np.array(200, np.uint8),
        "UInt8",
        "200",
        "Tensor(shape=[], dtype=UInt8, value= 200)",
    ),
    (
        np.array(True),
        "Bool",
        "True",
        "Tensor(shape=[], dtype=Bool, value= True)",
    ),
    (
        np.array([1, 2.5, 1 / 3], np.float32),
        "Float32",
        "[1.         2.5        0.33333334]",
        "Tensor(shape=[3], dtype=Float32, value= [ 1.00000000e+00,  2.50000000e"
        "+00,  3.33333343e-01])",
    ),
    (
        np.array([[4, 6, 8]], np.float32),
        "Float32",
        "[[4. 6. 8.]]",
        "Tensor(shape=[1, 3], dtype=Float32, value=\n"
        "[[ 4.00000000e+00,  6.00000000e+00,  8.00000000e+00]])",
    ),
    (
        np.array([[2048, -4096], [0, 1e-30]], np.float32),
        "Float32",
        "[[ 2.048e+03 -4.096e+03]\n [ 0.000e+00  1.000e-30]]",
        "Tensor(shape=[2, 2], dtype=Float32, value=\n"
        "[[ 2.04800000e+03, -4.09600000e+03],\n"
        " [ 0.00000000e+00,  1.00000000e-30]])",
    ),
    (
        np.array([1e-45, 1e38], np.float32),
        "Float32",
        "[1.e-45 1.e+38]",
        "Tensor(shape=[2], dtype=Float32, value= [ 1.40129846e-45,  9.99999968e+37])",
    ),
    (
        np.array([np.nan, -np.nan, np.inf, -np.inf], np.float32),
        "Float32",
        "[ nan  nan  inf -inf]",
        "Tensor(shape=[4], dtype=Float32, value= [            nan,            -"
        "nan,             inf,            -inf])",
    ),
    (
        np.array([[1e100, 1], [-1e-200, np.nan]]),
        "Float64",
        "[[ 1.e+100  1.e+000]\n [-1.e-200      nan]]",
        "Tensor(shape=[2, 2], dtype=Float64, value=\n"
        "[[1.00000000e+100,  1.00000000e+00],\n"
        " [-1.00000000e-200,             nan]])",
    ),
    (
        np.array([1.5, 2.25, 1 / 3], np.float16),
        "Float16",
        "[1.5    2.25   0.3333]",
        "Tensor(shape=[3], dtype=Float16, value= [ 1.5000e+00,  2.2500e+00,  3.3325e-01])",
    ),
    (
        np.array([[6e-8, 65504], [-np.inf, np.nan]], np.float16),
        "Float16",
        "[[5.96e-08 6.55e+04]\n [    -inf      nan]]",
        "Tensor(shape=[2, 2], dtype=Float16, value=\n"
        "[[ 5.9605e-08,  6.5504e+04],\n"
        " [       -inf,         nan]])",
    ),
    (
        np.array([1.5, -2.25, 1e30, np.nan, np.inf, 100], np.float32),
        "BFloat16",
        "[1.500000 -2.250000 1000255551742587262118492372992.000000 nan inf\n 100.000000]",
        "Tensor(shape=[6], dtype=BFloat16, value= [        1.5,       -2.25, 1."
        "00026e+30,         nan,         inf,         100])",
    ),
    (
        np.array([[-1.5, 1e-9], [123456, 3]], np.float32),
        "BFloat16",
        "[[-1.500000 0.000000]\n [123392.000000 3.000000]]",
        "Tensor(shape=[2, 2], dtype=BFloat16, value=\n"
        "[[       -1.5, 9.96806e-10],\n"
        " [     123392,           3]])",
    ),
    (
        np.arange(30, dtype=np.float32) / 8,
        "BFloat16",
        "[0.000000 0.125000 0.250000 0.375000 0.500000 0.625000 0.750000 0.8750"
        "00\n"
        " 1.000000 1.125000 1.250000 1.375000 1.500000 1.625000 1.750000 1.8750"
        "00\n"
        " 2.000000 2.125000 2.250000 2.375000 2.500000 2.625000 2.750000 2.8750"
        "00\n"
        " 3.000000 3.125000 3.250000 3.375000 3.500000 3.625000]",
        "Tensor(shape=[30], dtype=BFloat16, value= [    0, 0.125,  0.25, 0.375,"
        "   0.5, 0.625,  0.75, 0.875,     1, 1.125,  1.25, 1.375,   1.5, 1.625,"
        "  1.75, 1.875,     2, 2.125,  2.25, 2.375,   2.5, 2.625,  2.75, 2.875,"
        " \n"
        "     3, 3.125,  3.25, 3.375,   3.5, 3.625])",
    ),
    (
        np.array([True, False]),
        "Bool",
        "[ True False]",
        "Tensor(shape=[2], dtype=Bool, value= [ True, False])",
    ),
    (
        np.array([[True, True]]),
        "Bool",
        "[[ True  True]]",
        "Tensor(shape=[1, 2], dtype=Bool, value=\n[[ True,  True]])",
    ),
    (
        np.array([True] * 26),
        "Bool",
        "[ True  True  True  True  True  True  True  True  True  True  True  Tr"
        "ue\n"
        "  True  True  True  True  True  True  True  True  True  True  True  Tr"
        "ue\n"
        "  True  True]",
        "Tensor(shape=[26], dtype=Bool, value= [ True,  True,  True,  True,  Tr"
        "ue,  True,  True,  True,  True,  True,  True,  True, \n"
        "  True,  True,  True,  True,  True,  True,  True,  True,  True,  True,"
        "  True,  True, \n"
        "  True,  True])",
    ),
    (
        np.array([1, 200], np.uint8),
        "UInt8",
        "[  1 200]",
        "Tensor(shape=[2], dtype=UInt8, value= [  1, 200])",
    ),
    (
        np.array([[1, -20], [3, 4]], np.int32),
        "Int32",
        "[[  1 -20]\n [  3   4]]",
        "Tensor(shape=[2, 2], dtype=Int32, value=\n[[  1, -20],\n [  3,   4]])",
    ),
    (
        np.array([-300, 7], np.int16),
        "Int16",
        "[-300    7]",
        "Tensor(shape=[2], dtype=Int16, value= [-300,    7])",
    ),
    (
        np.array([2**62, -1]),
        "Int64",
        "[4611686018427387904                  -1]",
        "Tensor(shape=[2], dtype=Int64, value= [4611686018427387904,                  -1])",
    ),
    (
        np.arange(8).reshape(2, 2, 2),
        "Int64",
        "[[[0 1]\n  [2 3]]\n\n [[4 5]\n  [6 7]]]",
        "Tensor(shape=[2, 2, 2], dtype=Int64, value=\n"
        "[[[0, 1],\n"
        "  [2, 3]],\n"
        " [[4, 5],\n"
        "  [6, 7]]])",
    ),
    (
        np.arange(16, dtype=np.int32).reshape(2, 2, 2, 2),
        "Int32",
        "[[[[ 0  1]\n"
        "   [ 2  3]]\n"
        "\n"
        "  [[ 4  5]\n"
        "   [ 6  7]]]\n"
        "\n"
        "\n"
        " [[[ 8  9]\n"
        "   [10 11]]\n"
        "\n"
        "  [[12 13]\n"
        "   [14 15]]]]",
        "Tensor(shape=[2, 2, 2, 2], dtype=Int32, value=\n"
        "[[[[ 0,  1],\n"
        "   [ 2,  3]],\n"
        "  [[ 4,  5],\n"
        "   [ 6,  7]]],\n"
        " [[[ 8,  9],\n"
        "   [10, 11]],\n"
        "  [[12, 13],\n"
        "   [14, 15]]]])",
    ),
    (
        np.ones((1, 1, 1), np.float32),
        "Float32",
        "[[[1.]]]",
        "Tensor(shape=[1, 1, 1], dtype=Float32, value=\n[[[ 1.00000000e+00]]])",
    ),
    (
        np.arange(12, dtype=np.float32),
        "Float32",
        "[ 0.  1.  2.  3.  4.  5.  6.  7.  8.  9. 10. 11.]",
        "Tensor(shape=[12], dtype=Float32, value= [ 0.00000000e+00,  1.00000000"
        "e+00,  2.00000000e+00,  3.00000000e+00,  4.00000000e+00,  5.00000000e+"
        "00,  6.00000000e+00,  7.00000000e+00,  8.00000000e+00,  9.00000000e+00"
        ",  1.00000000e+01,  1.10000000e+01\n"
        " ])",
    ),
    (
        np.arange(14, dtype=np.float32),
        "Float32",
        "[ 0.  1.  2.  3.  4.  5.  6.  7.  8.  9. 10. 11. 12. 13.]",
        "Tensor(shape=[14], dtype=Float32, value= [ 0.00000000e+00,  1.00000000"
        "e+00,  2.00000000e+00,  3.00000000e+00,  4.00000000e+00,  5.00000000e+"
        "00,  6.00000000e+00,  7.00000000e+00,  8.00000000e+00,  9.00000000e+00"
        ",  1.00000000e+01,  1.10000000e+01, \n"
        "  1.20000000e+01,  1.30000000e+01])",
    ),
    (
        np.arange(24),
        "Int64",
        "[ 0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15 16 17 18 19 20 21 22 23]",
        "Tensor(shape=[24], dtype=Int64, value= [ 0,  1,  2,  3,  4,  5,  6,  7"
        ",  8,  9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23\n"
        " ])",
    ),
    (
        np.arange(50),
        "Int64",
        "[ 0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15 16 17 18 19 20 21 22 "
        "23\n"
        " 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 "
        "47\n"
        " 48 49]",
        "Tensor(shape=[50], dtype=Int64, value= [ 0,  1,  2,  3,  4,  5,  6,  7"
        ",  8,  9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, \n"
        " 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 4"
        "1, 42, 43, 44, 45, 46, 47, \n"
        " 48, 49])",
    ),
    (
        np.arange(1001, dtype=np.float32),
        "Float32",
        "[   0.    1.    2. ...  998.  999. 1000.]",
        "Tensor(shape=[1001], dtype=Float32, value= [ 0.00000000e+00,  1.000000"
        "00e+00,  2.00000000e+00 ...  9.98000000e+02,  9.99000000e+02,  1.00000"
        "000e+03])",
    ),
    (
        np.arange(2000),
        "Int64",
        "[   0    1    2 ... 1997 1998 1999]",
        "Tensor(shape=[2000], dtype=Int64, value= [   0,    1,    2 ... 1997, 1998, 1999])",
    ),
    (
        np.arange(1001, dtype=np.float32),
        "BFloat16",
        "[0.000000 1.000000 2.000000 ... 1000.000000 1000.000000 1000.000000]",
        "Tensor(shape=[1001], dtype=BFloat16, value= [   0,    1,    2 ... 1000, 1000, 1000])",
    ),
    (
        np.arange(12, dtype=np.float32).reshape(2, 6),
        "Float32",
        "[[ 0.  1.  2.  3.  4.  5.]\n [ 6.  7.  8.  9. 10. 11.]]",
        "Tensor(shape=[2, 6], dtype=Float32, value=\n"
        "[[ 0.00000000e+00,  1.00000000e+00,  2.00000000e+00,  3.00000000e+00, "
        " 4.00000000e+00,  5.00000000e+00],\n"
        " [ 6.00000000e+00,  7.00000000e+00,  8.00000000e+00,  9.00000000e+00, "
        " 1.00000000e+01,  1.10000000e+01]])",
    ),
    (
        np.arange(14, dtype=np.float32).reshape(2, 7),
        "Float32",
        "[[ 0.  1.  2.  3.  4.  5.  6.]\n [ 7.  8.  9. 10. 11. 12. 13.]]",
        "Tensor(shape=[2, 7], dtype=Float32, value=\n"
        "[[ 0.00000000e+00,  1.00000000e+00,  2.00000000e+00 ...  4.00000000e+0"
        "0,  5.00000000e+00,  6.00000000e+00],\n"
        " [ 7.00000000e+00,  8.00000000e+00,  9.00000000e+00 ...  1.10000000e+0"
        "1,  1.20000000e+01,  1.30000000e+01]])",
    ),
    (
        np.arange(14).reshape(7, 2),
        "Int64",
        "[[ 0  1]\n [ 2  3]\n [ 4  5]\n [ 6  7]\n [ 8  9]\n [10 11]\n [12 13]]",
        "Tensor(shape=[7, 2], dtype=Int64, value=\n"
        "[[ 0,  1],\n"
        " [ 2,  3],\n"
        " [ 4,  5],\n"
        " ...\n"
        " [ 8,  9],\n"
        " [10, 11],\n"
        " [12, 13]])",
    ),
    (
        np.arange(224).reshape(2, 8, 14),
        "Int64",
        "[[[  0   1   2   3   4   5   6   7   8   9  10  11  12  13]\n"
        "  [ 14  15  16  17  18  19  20  21  22  23  24  25  26  27]\n"
        "  [ 28  29  30  31  32  33  34  35  36  37  38  39  40  41]\n"
        "  [ 42  43  44  45  46  47  48  49  50  51  52  53  54  55]\n"
        "  [ 56  57  58  59  60  61  62  63  64  65  66  67  68  69]\n"
        "  [ 70  71  72  73  74  75  76  77  78  79  80  81  82  83]\n"
        "  [ 84  85  86  87  88  89  90  91  92  93  94  95  96  97]\n"
        "  [ 98  99 100 101 102 103 104 105 106 107 108 109 110 111]]\n"
        "\n"
        " [[112 113 114 115 116 117 118 119 120 121 122 123 124 125]\n"
        "  [126 127 128 129 130 131 132 133 134 135 136 137 138 139]\n"
        "  [140 141 142 143 144 145 146 147 148 149 150 151 152 153]\n"
        "  [154 155 156 157 158 159 160 161 162 163 164 165 166 167]\n"
        "  [168 169 170 171 172 173 174 175 176 177 178 179 180 181]\n"
        "  [182 183 184 185 186 187 188 189 190 191 192 193 194 195]\n"
        "  [196 197 198 199 200 201 202 203 204 205 206 207 208 209]\n"
        "  [210 211 212 213 214 215 216 217 218 219 220 221 222 223]]]",
        "Tensor(shape=[2, 8, 14], dtype=Int64, value=\n"
        "[[[  0,   1,   2 ...  11,  12,  13],\n"
        "  [ 14,  15,  16 ...  25,  26,  27],\n"
        "  [ 28,  29,  30 ...  39,  40,  41],\n"
        "  ...\n"
        "  [ 70,  71,  72 ...  81,  82,  83],\n"
        "  [ 84,  85,  86 ...  95,  96,  97],\n"
        "  [ 98,  99, 100 ... 109, 110, 111]],\n"
        " [[112, 113, 114 ... 123, 124, 125],\n"
        "  [126, 127, 128 ... 137, 138, 139],\n"
        "  [140, 141, 142 ... 151, 152, 153],\n"
        "  ...\n"
        "  [182, 183, 184 ... 193, 194, 195],\n"
        "  [196, 197, 198 ... 207, 208, 209],\n"
        "  [210, 211, 212 ... 221, 222, 223]]])",
    ),
    (
        np.arange(2000, dtype=np.float32).reshape(40, 50),
        "Float32",
        "[[0.000e+00 1.000e+00 2.000e+00 ... 4.700e+01 4.800e+01 4.900e+01]\n"
        " [5.000e+01 5.100e+01 5.200e+01 ... 9.700e+01 9.800e+01 9.900e+01]\n"
        " [1.000e+02 1.010e+02 1.020e+02 ... 1.470e+02 1.480e+02 1.490e+02]\n"
        " ...\n"
        " [1.850e+03 1.851e+03 1.852e+03 ... 1.897e+03 1.898e+03 1.899e+03]\n"
        " [1.900e+03 1.901e+03 1.902e+03 ... 1.947e+03 1.948e+03 1.949e+03]\n"
        " [1.950e+03 1.951e+03 1.952e+03 ... 1.997e+03 1.998e+03 1.999e+03]]",
        "Tensor(shape=[40, 50], dtype=Float32, value=\n"
        "[[ 0.00000000e+00,  1.00000000e+00,  2.00000000e+00 ...  4.70000000e+0"
        "1,  4.80000000e+01,  4.90000000e+01],\n"
        " [ 5.00000000e+01,  5.10000000e+01,  5.20000000e+01 ...  9.70000000e+0"
        "1,  9.80000000e+01,  9.90000000e+01],\n"
        " [ 1.00000000e+02,  1.01000000e+02,  1.02000000e+02 ...  1.47000000e+0"
        "2,  1.48000000e+02,  1.49000000e+02],\n"
        " ...\n"
        " [ 1.85000000e+03,  1.85100000e+03,  1.85200000e+03 ...  1.89700000e+0"
        "3,  1.89800000e+03,  1.89900000e+03],\n"
        " [ 1.90000000e+03,  1.90100000e+03,  1.90200000e+03 ...  1.94700000e+0"
        "3,  1.94800000e+03,  1.94900000e+03],\n"
        " [ 1.95000000e+03,  1.95100000e+03,  1.95200000e+03 ...  1.99700000e+0"
        "3,  1.99800000e+03,  1.99900000e+03]])",
    ),
    (
        np.zeros((0,), np.float32),
        "Float32",
        "[]",
        "Tensor(shape=[0], dtype=Float32, value= )",
    ),
    (
        np.zeros((0, 3), np.float32),
        "Float32",
        "[]",
        "Tensor(shape=[0, 3], dtype=Float32, value=\n)",
    ),
    (
        np.zeros((2, 0)),
        "Float64",
        "[]",
        "Tensor(shape=[2, 0], dtype=Float64, value=\n)",
    ),
    (
        np.zeros((0,), np.float32),
        "BFloat16",
        "[]",
        "Tensor(shape=[0], dtype=BFloat16, value= )",
    ),
]


def as_bfloat16(values: np.ndarray) -> np.ndarray:
    """Round float32 values to the nearest bfloat16 (ties to even), kept as float32."""
    bits = values.astype(np.float32).reshape(-1).view(np.uint32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) & np.uint32(0xFFFF0000)
    rounded = np.where(np.isnan(values.reshape(-1)), bits, rounded).astype(np.uint32)
    return rounded.view(np.float32).reshape(values.shape)


def case_id(case: tuple) -> str:
    return f"{case[1]}-{case[0].shape}"


@pytest.mark.parametrize("case", CASES, ids=case_id)
def test_text_is_mindspore_s(case):
    values, dtype_name, text, text_in_tuple = case
    if dtype_name == "BFloat16":
        values = as_bfloat16(values)
    assert printing.tensor_str(values, dtype_name) == text
    assert printing.tensor_repr(values, dtype_name) == text_in_tuple


def test_bfloat16_from_raw_bits():
    bits = np.array([[0x3F80, 0xC010]], np.uint16)  # 1 and -2.25
    assert printing.tensor_str(bits, "BFloat16") == "[[1.000000 -2.250000]]"
    expected = "Tensor(shape=[1, 2], dtype=BFloat16, value=\n[[    1, -2.25]])"
    assert printing.tensor_repr(bits, "BFloat16") == expected


def test_values_stay_untouched_and_may_be_read_only_or_strided():
    values = np.arange(12, dtype=np.float32).reshape(3, 4)
    values.flags.writeable = False
    assert printing.tensor_repr(values.T[::2], "Float32") == (
        "Tensor(shape=[2, 3], dtype=Float32, value=\n"
        "[[ 0.00000000e+00,  4.00000000e+00,  8.00000000e+00],\n"
        " [ 2.00000000e+00,  6.00000000e+00,  1.00000000e+01]])"
    )


def test_numpy_print_options_reach_print_only():
    values = np.array([1 / 3], np.float32)
    with np.printoptions(precision=2):
        assert printing.tensor_str(values, "Float32") == "[0.33]"
        assert "3.33333343e-01" in printing.tensor_repr(values, "Float32")


def test_parameter():
    text = "Parameter (name=fc.weight, shape=(2, 3), dtype=Float32, requires_grad=True)"
    assert printing.parameter_repr("fc.weight", (2, 3), "Float32", True) == text
    assert printing.parameter_str("fc.weight", [2, 3], "Float32", True) == text
    text = "Parameter (name=step, shape=(), dtype=Int32, requires_grad=False)"
    assert printing.parameter_repr("step", (), "Int32", False) == text


def test_only_numpy_is_imported():
    path = printing.__file__
    code = (
        "import sys, numpy; before = set(sys.modules); "
        f"exec(compile(open({path!r}).read(), 'printing', 'exec'), {{'__name__': 'printing'}}); "
        "print(sorted(name for name in set(sys.modules) - before))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() in ("[]", "['__future__']")
