"""Every name of numpy, numpy.linalg and numpy.fft, and every keyword, is in gradcell.numpy or has a reason
here why it is not."""

from __future__ import annotations

import inspect
import pickle
import re
from typing import Any

import numpy as np
import pytest

import gradcell as gc
import gradcell.numpy as gnp
from gradcell import Tensor

#: {a reason: NumPy's names that are not here}.
MISSING = {
    "Files are NumPy's: read the array, then make a Tensor of it": """
        fromfile fromregex fromstring frombuffer genfromtxt load loadtxt memmap save savetxt savez
        savez_compressed
    """,
    "A dtype that tensors do not have": """
        busday_count busday_offset busdaycalendar bytes_ character clongdouble complex256 datetime64
        datetime_as_string datetime_data float128 is_busday isnat longdouble object_ rec recarray
        record str_ strings char timedelta64 void flexible long ulong
    """,
    "A class of NumPy's arrays, or how they lie in memory": """
        asarray_chkfinite asfortranarray asmatrix bmat broadcast flatiter isfortran ma matrix
        may_share_memory nditer nested_iters require shares_memory ufunc frompyfunc iterable
        little_endian ctypeslib
    """,
    "About NumPy itself, its text or its settings": """
        ScalarType True_ False_ array2string core dtypes einsum_path emath exceptions f2py
        format_float_positional format_float_scientific get_include getbufsize geterrcall info lib
        mintypecode min_scalar_type common_type sctypeDict setbufsize seterrcall show_config
        show_runtime test testing typecodes typename typing
    """,
    "The Array API standard's, in gradcell.array_api": """
        can_cast cumulative_prod cumulative_sum from_dlpack isdtype nextafter unique_all
        unique_counts unique_inverse unique_values
    """,
    "Bits of floats and integers, of which there is no op": """
        bitwise_count frexp packbits spacing unpackbits
    """,
    "Eigenvalues of matrices that are not symmetric have no op": "roots linalg.eig linalg.eigvals",
    "NumPy advises against it, or its successor is another package": """
        poly1d polynomial real_if_close sort_complex
    """,
    "Seldom used, of integers alone": "mask_indices",
}  # fmt: skip

#: {a reason: function: keywords that are not taken}. Some are of newer or older versions of NumPy alone.
NO_KEYWORDS = {
    "A text is what print shows": "array_repr array_str: max_line_width precision suppress_small",
    "A tensor is made in one piece": "array: ndmax",
    "Quantiles of weighted elements have no op": "nanpercentile nanquantile percentile quantile: weights",
    "What else it gives comes from linalg.lstsq": "polyfit: full",
    "The result is a new tensor": "linalg.multi_dot fft.fft fft.fft2 fft.fftn fft.ifft fft.ifft2 fft.ifftn"
    " fft.rfft fft.rfft2 fft.rfftn fft.irfft fft.irfft2 fft.irfftn fft.hfft fft.ihfft: out",
    "A tensor is where the context says": "fft.fftfreq fft.rfftfreq: device",
    "Both are one function": "linalg.outer linalg.tensordot: x1 x2",
    "NumPy has them from 2.5 on": "argsort sort: descending",
    "NumPy 2.4 has them no more": "nanpercentile nanquantile percentile quantile: interpolation,"
    " corrcoef: bias ddof, reshape: newshape",
}  # fmt: skip

SPACES = {"": (np, gnp), "linalg.": (np.linalg, gnp.linalg), "fft.": (np.fft, gnp.fft)}


ABSENT = object()


def names() -> dict[str, tuple[Any, Any]]:
    """{a public name of NumPy's: (NumPy's value, gradcell's, or ABSENT)}."""
    return {
        space + name: (getattr(theirs, name), getattr(ours, name, ABSENT))
        for space, (theirs, ours) in SPACES.items()
        for name in theirs.__all__
        if not name.startswith("_")
    }


def test_every_name_is_there_or_has_a_reason() -> None:
    known = [name for text in MISSING.values() for name in text.split()]
    assert len(known) == len({*known})
    found = names()
    assert len(found) > 450
    newer = {"long", "ulong"}  # of NumPy 2
    assert {n for n, (_, ours) in found.items() if ours is ABSENT} - newer == {*known} - newer


def keywords(value: Any) -> set[str]:
    if isinstance(value, np.ufunc):
        return {"out", "where", "casting", "order", "dtype", "subok"}
    found = inspect.signature(value).parameters.values()
    return {p.name for p in found if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}


def test_a_function_of_several_names_is_one_and_can_be_pickled() -> None:
    for name in (
        "concat",
        "concatenate",
        "permute_dims",
        "row_stack",
        "transpose",
        "trapz",
        "vstack",
    ):
        function = getattr(gnp, name)
        assert pickle.loads(pickle.dumps(function)) is function
    assert gnp.concat is gnp.concatenate and gnp.vstack is gnp.row_stack


def test_every_keyword_is_taken_or_has_a_reason() -> None:
    known: dict[str, set[str]] = {}
    for text in ", ".join(NO_KEYWORDS.values()).split(","):
        functions, _, those = text.partition(":")
        for name in functions.split():
            known.setdefault(name, set()).update(those.split())
    missing, expected, asked = {}, {}, 0
    for name, (theirs, ours) in names().items():
        if ours is ABSENT or ours is theirs or isinstance(theirs, type) or not callable(theirs):
            continue
        try:
            wanted = keywords(theirs)
        except ValueError:  # no signature
            continue
        taken = getattr(ours, "_takes", None) or {*inspect.signature(ours).parameters}
        asked += len(wanted)
        if wanted - {*taken}:
            missing[name] = wanted - {*taken}
        if wanted & known.get(name, set()):
            expected[name] = wanted & known[name]
    assert asked > 1000
    assert missing == expected
    assert known.keys() - expected.keys() <= {
        "array",
        "corrcoef",
        "reshape",
        "argsort",
        "sort",
    }


def test_a_quotient_is_written_where_it_is_asked_for() -> None:
    a, b = np.array([1.0, 2.0, 3.0]), np.array([2.0, 0.0, 4.0])
    out = Tensor(np.full(3, 9.0))
    got = gnp.divide(Tensor(a), Tensor(b), out=out, where=Tensor(b) != 0)
    assert got is out
    expected = np.divide(a, b, out=np.full(3, 9.0), where=b != 0)
    np.testing.assert_array_equal(out.asnumpy(), expected)
    with pytest.raises(TypeError, match="where= needs out="):
        gnp.divide(Tensor(a), Tensor(b), where=Tensor(b) != 0)


def test_a_name_given_twice_and_one_that_is_none_are_refused() -> None:
    with pytest.raises(TypeError, match=r"numpy\.clip: an argument is given under two names"):
        gnp.clip(Tensor([1.0]), a_min=0.0, xmin=1.0)
    with pytest.raises(TypeError, match=r"numpy\.sum\(.*got an unexpected keyword argument 'axes'"):
        gnp.sum(Tensor([1.0]), axes=0)
    with pytest.raises(ValueError, match=re.escape("numpy.zeros: order must be one of")):
        gnp.zeros(3, order="Z")


def test_random_numbers_are_numpys_and_are_not_kept_by_compiled_functions() -> None:
    ours, theirs = (m.random.default_rng(5) for m in (gnp, np))
    np.testing.assert_array_equal(
        ours.normal(Tensor([1.0]), 2.0, 4).asnumpy(), theirs.normal([1.0], 2.0, 4)
    )
    line = Tensor(np.arange(5.0))
    ours.shuffle(line)
    expected = np.arange(5.0)
    theirs.shuffle(expected)
    np.testing.assert_array_equal(line.asnumpy(), expected)
    assert isinstance(ours.random(), float)
    assert not np.array_equal(*(gnp.random.rand(3).asnumpy() for _ in range(2)))
    with pytest.raises(
        RuntimeError, match=r"draws when Python runs, which a compiled function does once"
    ):
        gc.jit(lambda x: x * gnp.random.rand())(Tensor([1.0]))


IDLE = [
    ("array", ([1.0],), {"order": "F", "subok": True}), ("zeros", (3,), {"order": "C", "device": "cpu"}),
    ("concatenate", (([1.0], [2.0]),), {"casting": "unsafe"}), ("isin", ([1], [1, 2]), {"kind": "sort"}),
    ("sort", ([2.0, 1.0],), {"kind": "stable"}), ("broadcast_to", ([1.0], (2, 1)), {"subok": True}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "args", "given"), IDLE)
def test_what_says_how_memory_is_kept_changes_no_number(name: str, args: Any, given: Any) -> None:
    expected = getattr(np, name)(*args, **given)
    np.testing.assert_array_equal(getattr(gnp, name)(*args, **given).asnumpy(), expected)
