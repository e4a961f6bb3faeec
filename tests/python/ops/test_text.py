"""Transforms of text: what MindSpore 2.10 gives for the same calls, and bad input."""

import numpy as np
import pytest

import gradcell.dataset as ds
import gradcell.dataset.text as T

WORDS = ["the", "qu", "##ick", "fox", "[UNK]", "[CLS]", "##es", "un", "##s", ",", "!", "中", "国", "i",
         "am", "caf", "##e"]  # fmt: skip
VOCAB = T.Vocab.from_list(WORDS)

CASES = [
    (T.Lookup(VOCAB, "[UNK]"), ["the", "zzz"], np.array([0, 4], np.int32)),
    (T.Lookup(VOCAB, "[UNK]", np.int64), "fox", np.array(3)),
    (T.ToNumber(np.int32), ["1", "-5"], np.array([1, -5], np.int32)),
    (T.ToNumber(np.float32), ["1.5", "2e3"], np.array([1.5, 2000], np.float32)),
    (T.UnicodeCharTokenizer(), "a b中", ["a", " ", "b", "中"]),
    (T.WhitespaceTokenizer(), "  a b\tc ", ["a", "b", "c"]),
    (T.WhitespaceTokenizer(), "  ", [""]),
    (T.PythonTokenizer(lambda s: s.split("-")), "a-b", ["a", "b"]),
    (T.RegexTokenizer(r"\s+|,", r","), "a, b c", ["a", ",", "b", "c"]),
    (
        T.BasicTokenizer(True),
        "Héllo, 中国 World-wide  x_y $5",
        ["hello", ",", "中", "国", "world", "-", "wide", "x", "_", "y", "$", "5"],
    ),
    (T.BasicTokenizer(False, True), "I am, ok", ["I", " ", "am", ",", " ", "ok"]),
    (
        T.WordpieceTokenizer(VOCAB),
        ["quick", "foxes", "unfox", "foxs"],
        ["qu", "##ick", "fox", "##es", "[UNK]", "fox", "##s"],
    ),
    (
        T.BertTokenizer(VOCAB, lower_case=True),
        "The quick, FOXES 中国! I am Café",
        ["the", "qu", "##ick", ",", "fox", "##es", "中", "国", "!", "i", "am", "caf", "##e"],
    ),
    (T.BertTokenizer(VOCAB), "[CLS] the fox", ["[CLS]", "the", "fox"]),
    (T.Truncate(2), [1, 2, 3], np.array([1, 2])),
    (T.to_str, np.array([b"ab", b"c"]), ["ab", "c"]),
    (T.to_bytes, np.array(["ab", "c"]), np.array([b"ab", b"c"])),
]


@pytest.mark.parametrize(("transform", "given", "expected"), CASES)
def test_as_mindspore(transform, given, expected):
    made = transform(given if isinstance(given, (str, np.ndarray)) else np.array(given))
    expected = np.array(expected)
    assert made.dtype.kind == expected.dtype.kind
    assert made.tolist() == expected.tolist()
    if made.dtype.kind in "if":
        assert made.dtype == expected.dtype


@pytest.mark.parametrize(
    ("length", "sizes", "kept"),
    [
        (5, (6, 3), (3, 2)),
        (4, (3, 3), (2, 2)),
        (5, (4, 4), (3, 2)),
        (5, (2, 6), (2, 3)),
        (9, (2, 3), (2, 3)),
    ],
)
def test_pairs(length, sizes, kept):
    a, b = T.TruncateSequencePair(length)(np.arange(sizes[0]), np.arange(sizes[1]))
    assert (a.tolist(), b.tolist()) == (list(range(kept[0])), list(range(kept[1])))


def test_vocabularies(tmp_path):
    special = T.Vocab.from_list(["a", "b"], special_tokens=["<pad>"], special_first=False)
    assert special.vocab() == {"a": 0, "b": 1, "<pad>": 2}
    assert VOCAB.tokens_to_ids(["the", "zzz"]) == [0, -1]
    assert VOCAB.tokens_to_ids("fox") == 3
    assert VOCAB.ids_to_tokens([0, 99]) == ["the", ""]
    (tmp_path / "words").write_text("a,1\nb,2\nc,3\n")
    found = T.Vocab.from_file(str(tmp_path / "words"), ",", 2, ["<s>"])
    assert found.vocab() == {"<s>": 0, "a": 1, "b": 2}
    texts = ds.GeneratorDataset([("b a",), ("a c",), ("a b d",)], ["text"], shuffle=False)
    words = texts.map(T.WhitespaceTokenizer(), "text")
    counted = T.Vocab.from_dataset(words, "text", freq_range=(1, None), top_k=3)
    assert counted.vocab() == {"a": 0, "b": 1, "c": 2}
    numbers = words.map(T.Lookup(counted, "c"), "text")
    assert [v.asnumpy().tolist() for (v,) in numbers] == [[1, 0], [0, 2], [0, 1, 2]]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: T.Lookup(VOCAB)(np.array(["zzz"])), ValueError, "'zzz' is not in the vocabulary"),
        (lambda: T.Lookup(VOCAB, "?"), ValueError, r"'\?' is not in the vocabulary"),
        (lambda: T.Lookup({}), TypeError, "expected a Vocab"),
        (lambda: T.Vocab.from_list(["a", "a"]), ValueError, "'a' appears twice"),
        (lambda: T.Vocab.from_file("/none"), ValueError, "cannot read /none"),
        (lambda: T.Vocab.from_dict({"a": -1}), ValueError, "at least 0"),
        (lambda: T.ToNumber(np.int32)(np.array(["x"])), ValueError, "ToNumber"),
        (lambda: T.WhitespaceTokenizer()(np.array(["a", "b"])), ValueError, "expected one string"),
        (lambda: T.RegexTokenizer("("), ValueError, "no pattern"),
        (lambda: T.BertTokenizer(VOCAB, with_offsets=True), NotImplementedError, "with_offsets"),
    ],
)
def test_tokenizers_refuse_what_they_cannot_read(call, error, text):
    with pytest.raises(error, match=text):
        call()
