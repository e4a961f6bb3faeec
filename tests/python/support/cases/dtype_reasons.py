"""Why gradcell's answer is not NumPy's: rules of the table of dtypes (dtype_table.py), each with the pattern
of the differences that it explains. The first pattern that fits is the reason. The lines that they are
matched with are 'kind | dtype | form | call | what'; the kinds are those that dtype_table.py gives.
"""

from __future__ import annotations

_WHOLE = r"(bool|u?int\d+)"
_NARROW = r"(float16|bfloat16|float32|complex64)"
_ORDERED = (
    r"no order|[mM]ax|[mM]in|[sS]ort|[mM]edian|[cC]lip|clamp|ptp|[tT]op|[gG]reater|[lL]ess|[<>]|heaviside|"
    r"quantile|searchsorted|percentile|histogram|\.(lt|le|gt|ge)\b|tensor_(lt|le|gt|ge)"
)

REASONS: tuple[tuple[str, str], ...] = (
    # Dtypes
    (
        "Floats made of integers and bools are float32, and complex numbers complex64: MindSpore's defaults, "
        "also for int64. NumPy's have the bits of the integers",
        rf"^dtype \| {_WHOLE} \| .*\| (float32 for float(16|64)|complex64 for complex128)$",
    ),
    (
        "A list beside a tensor, and a number in products, has the tensor's dtype; NumPy's is an array of 64 "
        "bits",
        r"^(dtype|wraps) \| \S+ \| (a list \| |a (number|float) \| .*(dot|outer|kron|convolve|correlate))",
    ),
    (
        "Floats keep their dtype where NumPy or SciPy computes in a wider one",
        rf"^dtype \| {_NARROW} \| .*\| {_NARROW} for (float32|float64|complex128)$",
    ),
    (
        "Histograms and their edges are float32, as MindSpore's",
        r"^dtype .*histogram.* \| float32 for float(16|64)$",
    ),
    (
        "Numbers written in a program are float32, MindSpore's default",
        r"^dtype \| \S+ \| .*(arange|linspace|full|eye|ones|zeros|Zeros|Ones|Eye|Tensor\(|fftfreq).* \| "
        r"(float32|complex64) for (float64|bfloat16|complex128)$",
    ),
    (
        "Places and counts are int32, as MindSpore's are; NumPy's are int64",
        r"^dtype .*(sort|Sort|top_?k|TopK|cummax|cummin|count_nonzero|indices|[aA]rg[mM]).* "
        r"\| int32 for int64$",
    ),
    (
        "Sums and products of integers of less than 64 bits keep their dtype or become int32 or int64, as "
        "MindSpore's; NumPy's are int64 or uint64",
        rf"^(dtype|wraps|alone wraps) \| {_WHOLE} .*(sum|Sum|prod|Prod|trace|addbmm|vander|apply_over_axes|"
        r"apply_along_axis|cumsum).*\b(bool|u?int\d+) for (u?int64|float64)\]?$",
    ),
    (
        "Sums, products and convolutions of integers wrap, as their arithmetic does",
        rf"^alone wraps \| {_WHOLE} ",
    ),
    (
        "The mean of integers is an integer, rounded down, as MindSpore's (not in `gradcell.numpy`)",
        rf"^(numbers|dtype|alone numbers) \| {_WHOLE} .*([mM]ean).*\bu?int\d+ for float\d+\]?$",
    ),
    (
        "A sum with an `initial` float is a float, as MindSpore's",
        rf"^dtype \| {_WHOLE} .*initial=.* \| float32 for u?int\d+$",
    ),
    (
        "`heaviside`, `rint` and `fabs` of integers are integers, as MindSpore's",
        rf"^dtype \| {_WHOLE} .*(heaviside|[rR]int|fabs).* (bool|u?int\d+) for float\d+$",
    ),
    (
        "`floor`, `ceil`, `fix` and `relu6` of integers are floats, as MindSpore's",
        rf"^dtype \| {_WHOLE} .*(floor|ceil|fix|[rR]e[lL][uU]6).* \| float32 for (bool|u?int\d+)$",
    ),
    (
        "Reciprocals of integers are floats, as MindSpore's; NumPy rounds them",
        rf"^(numbers|dtype) \| {_WHOLE} .*([rR]eciprocal|\binv|Inv).*\bfloat32 for u?int\d+\]?$",
    ),
    (
        "`ops.full` makes integers of its number, as MindSpore's does",
        r"^(dtype|numbers) .*ops\.full\(.*\bint64 for (float64|bool)\]?$",
    ),
    (
        "`x += y` on parts of a tensor and `tensor_scatter_div` keep the tensor's dtype",
        rf"^(alone )?numbers \| {_WHOLE} .*([sS]catter|[iI]nplace|fill).*\b(bool|u?int\d+) for float64\]$",
    ),
    (
        "The sum of bools is their or, the difference their exclusive or, the product their and, in bool",
        r"^(NumPy refuses|numbers|dtype|alone numbers|alone wraps) \| bool .*([sS]ub|\+|-|trapz|trapezoid|"
        r"[cC]ross|GradOperation|ediff1d|diff).*\b(bool|float32|int64) for (float64|bool)\]?$",
    ),
    (
        "`truncate_mod` of bools is of floats",
        r"^(dtype|numbers) \| bool .*(truncate_mod|TruncateMod).*\bfloat32 for int8\]?$",
    ),
    (
        "The conjugate of bools is bool, and their squares and sums of products are int64",
        r"^dtype \| bool .*([cC]onj|adjoint|mH|\.H|\*\*|einsum|vdot|vecdot).* (bool|int64) for (int8|bool)$",
    ),
    (
        "The sums that `einsum`, `convolve` and `correlate` take of bools are counts",
        r"^(numbers|dtype) \| bool .*(einsum|convolve|correlate).*int64 for bool\]?$",
    ),
    (
        "The inverse transforms of half types are float32",
        r"^dtype \| float16 .*fft.* \| float32 for float16$",
    ),
    (
        "`~` of integers is logical, as MindSpore's; `bitwise_not` is of their bits",
        r"^(numbers|dtype) \| u?int\d+ .*~x.* \[?bool for u?int\d+\]?$",
    ),
    (
        "The sizes of complex numbers are complex numbers in `ops`, as MindSpore's",
        r"^dtype \| complex.*(?<!numpy\.)\b(abs|absolute|Abs|slogdet)\b.* \| complex\d+ for float\d+$",
    ),
    (
        "The covariance of no complex numbers is complex",
        r"^dtype \| complex128 \| size 0 \| .*\bcov\b.* \| complex128 for float64$",
    ),
    # What is refused
    ("Complex numbers have no order", rf"^refused( alone)? \| complex.*({_ORDERED})"),
    ("Integers are not divided by zero", r"^refused( alone)? .*integer division by zero"),
    (
        "Tensors only, as in MindSpore: the error names the argument",
        r"^refused( alone)? .*must be (a )?Tensor, but got",
    ),
    (
        "Bools are cast first: products of matrices, convolutions, windows, means, quotients, remainders, "
        "powers, roundings and counts in intervals take numbers, as MindSpore's",
        r"^refused( alone)? \| bool .*(not defined for bool|dtypes \w+ and bool differ|bool: cast it)",
    ),
    (
        "Fourier transforms take no bools and no bfloat16, as in MindSpore",
        r"^refused( alone)? .*[fF][fF][tT]\w*', the input must not be",
    ),
    (
        "`Complex` and `polar` take two tensors of float32 or of float64, as MindSpore's",
        r"^refused .*two tensors of float32 or of float64",
    ),
    ("`ComplexAbs` takes complex numbers", r"^refused .*needs a complex tensor"),
    (
        "Roundings, `relu` and functions of real numbers take no complex ones, as MindSpore's",
        r"^refused( alone)? \| complex.*: not defined for complex",
    ),
    (
        "Interpolations of images, attention, deformable convolutions and `derivative` take floats of one "
        "dtype, as MindSpore's",
        r"^refused( alone)? .*(flash_attention|derivative|Sample: not defined|deformable)",
    ),
    (
        "Updates and segments have the sizes of their indices; NumPy broadcasts them",
        r"^refused( alone)? .*(do not fit indices|cannot take shape|not of the first dimensions)",
    ),
    (
        "A part that reaches beyond the end is refused; NumPy's slices end there",
        r"^refused( alone)? .*(there are no \d+ elements|are not within a dimension)",
    ),
    (
        "`mm` and `bmm` take matrices",
        r"^refused .*(inputs of at least two dimensions|matrices are needed)",
    ),
    ("`@` takes tensors and arrays, no lists", r"^refused .*unsupported operand type\(s\) for @"),
    (
        "Fourier transforms and `diag` need a dimension, and medians an element",
        r"^refused .*(must have a dimension|rank must be at least 1|tensor with dimensions is needed|"
        r"has no elements)",
    ),
    # Values
    (
        "`argsort` of a tensor without dimensions has none; NumPy's has one",
        r"^shape .*no dimensions .*argsort",
    ),
    (
        "`pinv` of integers is of floats; NumPy's of no elements is of integers",
        r"^dtype .*size 0 .*pinv",
    ),
    (
        "Running sums of a tensor without dimensions have none; NumPy's have one",
        r"^shape .*no dimensions .*cum(sum|prod)",
    ),
    ("`ops.flatten` keeps the first dimension, as MindSpore's", r"^shape .*(ops\.flatten|Flatten)"),
    (
        "The remainder of `ops.Mod` has the sign of the first number, as MindSpore's",
        r"^numbers .*ops\.Mod\(",
    ),
    (
        "A segment without elements has the largest or smallest number of its dtype, as MindSpore's",
        r"^numbers .*segment_(min|max)",
    ),
    (
        "`igamma` and `igammac` of 0 are NaN, as MindSpore's",
        r"^numbers .*\b[iI]gammac?\b",
    ),
    (
        "NumPy has no bfloat16: its answer is that of float32, without roundings in between",
        r"^(numbers|alone numbers) \| bfloat16 ",
    ),
    (
        "NumPy or SciPy refuses the dtype, and gradcell gives the function of the same numbers",
        r"^NumPy refuses \|",
    ),
)
