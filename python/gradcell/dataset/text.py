"""Transforms of text: vocabularies, tokenisers, conversions."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from gradcell.base import arguments, bad_type, bad_value, fields, publish, unsupported
from gradcell.dataset.datasets import Dataset
from gradcell.dataset.rows import as_array
from gradcell.dataset.transforms import TensorOperation, _numpy_dtype


def to_str(array: Any, encoding: str = "utf8") -> np.ndarray:
    """An array of bytes as one of strings; strings as they are."""
    found = as_array(array)
    return np.char.decode(found, encoding) if found.dtype.kind == "S" else found


def to_bytes(array: Any, encoding: str = "utf8") -> np.ndarray:
    """An array of strings as one of bytes; bytes as they are."""
    found = as_array(array)
    return np.char.encode(found, encoding) if found.dtype.kind == "U" else found


class Vocab:
    """Words and their numbers. Made by from_list, from_dict, from_file or from_dataset.

    numbers: from word to number.
    """

    def __init__(self, numbers: dict[str, int] | None = None) -> None:
        self._numbers = dict(numbers or {})

    @classmethod
    def from_dict(cls, word_dict: dict[str, int]) -> Vocab:
        """Words with their numbers. Raises ValueError for negative ones."""
        for word, number in word_dict.items():
            arguments.integer(number, "Vocab.from_dict", f"word_dict[{word!r}]", 0)
        return cls(word_dict)

    @classmethod
    def from_list(
        cls, word_list: Iterable[str], special_tokens: Any = None, special_first: bool = True
    ) -> Vocab:
        """Words numbered from 0 on, special ones before or behind. Raises ValueError for one that is
        there twice."""
        words, special = list(word_list), list(special_tokens or ())
        listed = special + words if special_first else words + special
        twice = [word for word, count in Counter(listed).items() if count > 1]
        if twice:
            bad_value(f"Vocab.from_list: {twice[0]!r} appears twice")
        return cls({word: k for k, word in enumerate(listed)})

    @classmethod
    def from_file(
        cls, file_path: str, delimiter: str = "", vocab_size: int | None = None,
        special_tokens: Any = None, special_first: bool = True,
    ) -> Vocab:  # fmt: skip
        """A word from each line of a file, up to the delimiter; vocab_size: at most this many lines.
        Raises ValueError for a file that cannot be read."""
        try:
            with open(file_path, encoding="utf8") as file:
                lines = [line.rstrip("\r\n") for line in file]
        except (OSError, UnicodeDecodeError) as error:
            bad_value(f"Vocab.from_file: cannot read {file_path}: {error}")
        words = [line.split(delimiter)[0] if delimiter else line for line in lines]
        return cls.from_list(words[:vocab_size], special_tokens, special_first)

    @classmethod
    def from_dataset(
        cls, dataset: Dataset, columns: Any = None, freq_range: Any = None, top_k: int | None = None,
        special_tokens: Any = None, special_first: bool = True,
    ) -> Vocab:  # fmt: skip
        """The words of a dataset's columns, the most frequent first, then by their letters.
        freq_range: (least, most) how often; top_k: at most this many."""
        part = dataset if columns is None else dataset.project(columns)
        counts: Counter[str] = Counter()
        for row in part.create_tuple_iterator(num_epochs=1, output_numpy=True):
            for values in row:
                counts.update(to_str(values).reshape(-1).tolist())
        least, most = freq_range or (None, None)
        chosen = [
            word
            for word, count in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
            if (least is None or count >= least) and (most is None or count <= most)
        ]
        return cls.from_list(chosen[:top_k], special_tokens, special_first)

    def vocab(self) -> dict[str, int]:
        """From word to number."""
        return dict(self._numbers)

    def tokens_to_ids(self, tokens: Any) -> Any:
        """The number of a word, or those of a list; -1 where there is none."""
        if isinstance(tokens, str):
            return self._numbers.get(tokens, -1)
        return [self._numbers.get(str(token), -1) for token in tokens]

    def ids_to_tokens(self, ids: Any) -> Any:
        """The word of a number, or those of a list; '' where there is none."""
        words = {number: word for word, number in self._numbers.items()}
        if isinstance(ids, (int, np.integer)):
            return words.get(int(ids), "")
        return [words.get(int(i), "") for i in ids]


def _numbers_of(vocab: Any, owner: str, name: str) -> dict[str, int]:
    if not isinstance(vocab, Vocab):
        bad_type(f"{owner}: '{name}': expected a Vocab, got {type(vocab).__name__}")
    return vocab.vocab()


class Lookup(TensorOperation):
    """Words to their numbers in a vocabulary; unknown_token's for those that it lacks."""

    numbers: Any = fields.checked(_numbers_of, alias="vocab")
    unknown: Any = fields.anything(alias="unknown_token", default=None)
    dtype: Any = fields.checked(_numpy_dtype, alias="data_type", default=np.int32)

    def _build(self) -> None:
        if self.unknown is not None and self.unknown not in self.numbers:
            self._fail(f"{self.unknown!r} is not in the vocabulary")

    def _one(self, value: Any) -> np.ndarray:
        words = to_str(value)
        unknown = self.numbers.get(self.unknown)
        found = [self.numbers.get(word, unknown) for word in words.reshape(-1).tolist()]
        if None in found:
            word = words.reshape(-1)[found.index(None)]
            self._fail(f"{str(word)!r} is not in the vocabulary, and there is no unknown_token")
        return np.array(found, self.dtype).reshape(words.shape)


class ToNumber(TensorOperation):
    """Converts texts of numbers to a dtype."""

    dtype: Any = fields.checked(_numpy_dtype, alias="data_type")

    def _one(self, value: Any) -> np.ndarray:
        words = to_str(value)
        try:
            return words.astype(self.dtype)
        except (ValueError, OverflowError) as error:
            bad_value(f"ToNumber: {error}")


class TruncateSequencePair(fields.Declares):
    """Two sequences, the longer one cut first, until both together have at most max_length."""

    length: int = fields.integer(0, alias="max_length")

    def __call__(self, first: Any, second: Any) -> tuple[np.ndarray, np.ndarray]:
        a, b = as_array(first), as_array(second)
        over = max(len(a) + len(b) - self.length, 0)
        longer = min(max(len(a) - len(b), 0), over), min(max(len(b) - len(a), 0), over)
        rest = over - sum(longer)
        return a[: len(a) - longer[0] - rest // 2], b[: len(b) - longer[1] - (rest + 1) // 2]


class Truncate(TensorOperation):
    """Shortens each sequence to its first max_seq_len elements."""

    length: int = fields.integer(0, alias="max_seq_len")

    def _one(self, value: Any) -> np.ndarray:
        return as_array(value)[..., : self.length]


# Tokenisers ---------------------------------------------------------------------------------------


class _Tokenizer(TensorOperation):
    def _one(self, value: Any) -> np.ndarray:
        text = to_str(value)
        if text.size != 1 or text.dtype.kind != "U":
            self._fail(f"expected one string, got {text.dtype} of shape {list(text.shape)}")
        found = self._tokens(str(text.reshape(())))
        return np.array(found if found else [""])

    def _tokens(self, text: str) -> list[str]:
        raise NotImplementedError


class PythonTokenizer(_Tokenizer):
    """Split a string by a function of yours.

    tokenizer: a function from a string to a list of strings.
    """

    tokenizer: Callable[[str], list[str]] = fields.checked(arguments.function)

    def _tokens(self, text: str) -> list[str]:
        return list(self.tokenizer(text))


class WhitespaceTokenizer(_Tokenizer):
    """Splits a text at white space."""

    def _tokens(self, text: str) -> list[str]:
        return text.split()


class UnicodeCharTokenizer(_Tokenizer):
    """Splits a text into its characters."""

    def _tokens(self, text: str) -> list[str]:
        return list(text)


def _pattern(text: str, owner: str, name: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except (re.error, TypeError) as error:
        bad_value(f"{owner}: '{name}' is no pattern: {error}")


class RegexTokenizer(_Tokenizer):
    """Split a string at the matches of delim_pattern, and keep those that match keep_delim_pattern.

    delim_pattern: a regular expression of what lies between tokens. keep_delim_pattern: a regular
    expression of the delimiters that are tokens too.
    """

    pattern: Any = fields.checked(_pattern, alias="delim_pattern")
    keep: Any = fields.checked(_pattern, alias="keep_delim_pattern", default="")

    def _tokens(self, text: str) -> list[str]:
        found, at = [], 0
        for match in self.pattern.finditer(text):
            found.append(text[at : match.start()])
            if self.keep.pattern and self.keep.fullmatch(match.group()):
                found.append(match.group())
            at = match.end()
        return [token for token in [*found, text[at:]] if token]


class BasicTokenizer(_Tokenizer):
    """Words and signs of BERT: split at white space and around every sign and Chinese character
    (github.com/google-research/bert, tokenization.py); lower_case: without capitals and accents."""

    _ideographs = ((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2FA1F), (0xF900, 0xFAFF))

    lower: bool = fields.boolean(alias="lower_case", default=False)
    keep: bool = fields.boolean(alias="keep_whitespace", default=False)

    def _alone(self, char: str) -> bool:
        code = ord(char)
        sign = code < 128 and char.isprintable() and not char.isalnum() and char != " "
        ideograph = any(low <= code <= high for low, high in self._ideographs)
        return sign or ideograph or unicodedata.category(char).startswith("P")

    def _tokens(self, text: str) -> list[str]:
        if self.lower:
            text = unicodedata.normalize("NFD", text.lower())
            text = "".join(c for c in text if unicodedata.category(c) != "Mn")
        text = "".join(f"\0{c}\0" if self._alone(c) else c for c in text)
        pieces = re.split(r"\0+|(\s+)", text)
        return [p for p in pieces if p and (self.keep or not p.isspace())]


class WordpieceTokenizer(TensorOperation):
    """Words cut into the longest pieces that are in a vocabulary; pieces within a word begin with
    suffix_indicator; words that cannot be cut, or are longer than max_bytes_per_token, are
    unknown_token (Wu et al., arXiv:1609.08144, section 4.1)."""

    words: Any = fields.checked(_numbers_of, alias="vocab")
    suffix: str = fields.anything(alias="suffix_indicator", default="##")
    limit: int = fields.integer(0, alias="max_bytes_per_token", default=100)
    unknown: str = fields.anything(alias="unknown_token", default="[UNK]")

    def _pieces(self, word: str) -> list[str]:
        unknown = [self.unknown or word]
        if len(word.encode()) > self.limit:
            return unknown
        found, at = [], 0
        while at < len(word):
            ends = range(len(word), at, -1)
            head = self.suffix if at else ""
            end = next((e for e in ends if head + word[at:e] in self.words), None)
            if end is None:
                return unknown
            found.append(head + word[at:end])
            at = end
        return found

    def _one(self, value: Any) -> np.ndarray:
        words = to_str(value).reshape(-1).tolist()
        return np.array([piece for word in words for piece in self._pieces(word)] or [""])


class BertTokenizer(WordpieceTokenizer):
    """BasicTokenizer, then WordpieceTokenizer; words of the vocabulary in brackets stay whole.

    lower_case: whether capitals and accents are removed. normalization_form has no effect.
    preserve_unused_token: whether [CLS], [SEP], [UNK], [PAD], [MASK] and [unused7] stay whole.
    with_offsets: must be False, else NotImplementedError is raised. suffix_indicator: the sign
    before parts of words that are not the first. max_bytes_per_token: longer words count as
    unknown. unknown_token: what stands for a word that the vocabulary lacks.
    """

    lower: bool = fields.boolean(alias="lower_case", default=False)
    keep: bool = fields.boolean(alias="keep_whitespace", default=False)
    normalization_form: Any = fields.anything(default=None)
    whole: bool = fields.boolean(alias="preserve_unused_token", default=True)
    with_offsets: bool = fields.anything(default=False)

    def _build(self) -> None:
        if self.with_offsets:
            unsupported("BertTokenizer: 'with_offsets' is not implemented")
        self._basic: BasicTokenizer = BasicTokenizer(self.lower, self.keep)

    def _one(self, value: Any) -> np.ndarray:
        text = str(to_str(value).reshape(()))
        words = r"(\[(?:CLS|SEP|UNK|PAD|MASK|unused\d+)\])"
        parts = re.split(words, text) if self.whole else [text]
        found: list[str] = []
        for part in parts:
            if self.whole and re.fullmatch(r"\[\w+\]", part):
                found.append(part)
            elif part:
                found.extend(self._basic._tokens(part))
        return super()._one(np.array(found or [""]))


publish(globals())
