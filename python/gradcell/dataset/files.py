"""Datasets in the files of MNIST, CIFAR, folders of images, MindRecord and TFRecord.

A file that is missing, cut short or not of its kind is an error that names it; it is found when the
dataset is made, before any row is given.
"""

from __future__ import annotations

import fnmatch
import gzip
import os
import zlib
from collections.abc import Sequence
from typing import Any, ClassVar, NoReturn

import numpy as np

from gradcell.base import arguments, bad_type, bad_value, publish, unsupported
from gradcell.dataset.config import get_num_parallel_workers
from gradcell.dataset.rows import Row, column_names
from gradcell.dataset.sources import IndexedDataset
from gradcell.mindrecord import shards_of

#: The endings of pictures' files.
_ENDINGS = ".jpg", ".jpeg", ".png", ".bmp", ".JPG", ".JPEG", ".PNG"


def _fail(owner: str, path: str, what: str) -> NoReturn:
    bad_value(f"{owner}: {path}: {what}")


def _folder(owner: str, path: Any) -> str:
    if not isinstance(path, (str, os.PathLike)):
        bad_type(f"{owner}: 'dataset_dir' must be a string")
    if not os.path.isdir(path):
        bad_value(f"{owner}: there is no folder {os.fspath(path)}")
    return os.fspath(path)


def _read(owner: str, folder: str, name: str) -> tuple[str, bytes]:
    """(path, contents) of a file, or of it packed by gzip."""
    path = os.path.join(folder, name)
    try:
        if not os.path.exists(path) and os.path.exists(path + ".gz"):
            path += ".gz"
            with gzip.open(path) as packed:
                return path, packed.read()
        with open(path, "rb") as file:
            return path, file.read()
    except FileNotFoundError:
        _fail(owner, path, "there is no such file")
    except (OSError, EOFError, zlib.error) as error:
        _fail(owner, path, f"cannot be read: {error}")


class _Arrays(IndexedDataset):
    """Images and labels of the files in a folder, in memory."""

    def __init__(
        self, dataset_dir: str, usage: str | None = None, num_samples: int | None = None,
        num_parallel_workers: int | None = None, shuffle: bool | None = None, sampler: Any = None,
        num_shards: int | None = None, shard_id: int | None = None, cache: Any = None,
    ) -> None:  # fmt: skip
        owner = type(self).__name__
        super().__init__(sampler, shuffle, num_shards, shard_id, num_samples)
        arguments.one_of(usage, (None, "train", "test", "all"), owner, "usage")
        found = self._load(owner, _folder(owner, dataset_dir), usage)
        self.names: list[str] = list(found)
        self.columns: list[np.ndarray] = list(found.values())
        self._count = len(self.columns[0])

    def _load(self, owner: str, folder: str, usage: str | None) -> dict[str, np.ndarray]:
        """The columns by name."""
        raise NotImplementedError

    def _order(self, epoch: int) -> tuple[Sequence[np.ndarray], np.ndarray]:
        return self.columns, self._indices(epoch)

    def _row(self, i: int) -> Row:
        return tuple(c[i, ...] for c in self.columns)

    def _labels(self, column: str) -> np.ndarray:
        return self.columns[self.names.index(column)]


# MNIST --------------------------------------------------------------------------------------------


def _read_idx(owner: str, folder: str, name: str, axes: int) -> np.ndarray:
    """An array of bytes in the IDX format (yann.lecun.com/exdb/mnist): two zeros, the dtype (8:
    uint8), the number of axes, their lengths in 4 bytes each, big-endian, the values."""
    path, data = _read(owner, folder, name)
    head = 4 + 4 * axes
    if len(data) < head:
        _fail(owner, path, f"truncated: {len(data)} bytes")
    if data[:4] != bytes([0, 0, 8, axes]):
        _fail(owner, path, f"not an IDX file of {axes} axes: it begins with {data[:4].hex()}")
    shape = np.frombuffer(data[4:head], ">u4").tolist()
    size = int(np.prod(shape, dtype=object))
    if len(data) - head != size:
        _fail(owner, path, f"{'truncated' if len(data) - head < size else 'corrupted'}: "
              f"{len(data) - head} bytes for the shape {shape}")  # fmt: skip
    pixels: np.ndarray = np.frombuffer(data, np.uint8, offset=head).reshape(shape)
    return pixels


class MnistDataset(_Arrays):
    """MNIST: images, uint8 of [28, 28, 1], and labels, uint32.

    dataset_dir: the folder of train-images-idx3-ubyte and the others, packed by gzip or not. usage:
    'train', 'test' or 'all' (None: all that are there). The others as in NumpySlicesDataset. Raises
    ValueError for a missing or damaged file.
    """

    _parts = (("train", "train"), ("t10k", "test"))

    def _load(self, owner: str, folder: str, usage: str | None) -> dict[str, np.ndarray]:
        images, labels = [], []
        for prefix, part in self._parts:
            file = f"{prefix}-images-idx3-ubyte"
            there = any(os.path.exists(os.path.join(folder, file + end)) for end in ("", ".gz"))
            if usage not in (None, "all", part) or (usage is None and not there):
                continue
            images.append(_read_idx(owner, folder, file, 3))
            labels.append(_read_idx(owner, folder, f"{prefix}-labels-idx1-ubyte", 1))
            if len(images[-1]) != len(labels[-1]):
                what = f"{len(images[-1])} images, but {len(labels[-1])} labels"
                _fail(owner, os.path.join(folder, file), what)
        if not images or sum(map(len, images)) == 0:
            _fail(owner, folder, "there are no images of MNIST in it")
        if len({image.shape[1:] for image in images}) > 1:
            _fail(owner, folder, "the files hold images of different sizes")
        joined = np.concatenate(images)[..., None]
        return {"image": joined, "label": np.concatenate(labels).astype(np.uint32)}


class FashionMnistDataset(MnistDataset):
    """The Fashion-MNIST images, whose files have the format of MNIST's."""


# CIFAR --------------------------------------------------------------------------------------------


class Cifar10Dataset(_Arrays):
    """CIFAR-10: images, uint8 of [32, 32, 3], and labels, uint32.

    dataset_dir: the folder of the binary version's data_batch_1.bin to data_batch_5.bin and
    test_batch.bin. usage: 'train', 'test' or 'all' (None: all that are there). Raises ValueError
    for a missing or damaged file.
    """

    _files: ClassVar[dict[str, list[str]]] = {
        "train": [f"data_batch_{i}.bin" for i in range(1, 6)],
        "test": ["test_batch.bin"],
    }
    _labels_of: ClassVar[tuple[tuple[str, int], ...]] = (("label", 10),)

    def _load(self, owner: str, folder: str, usage: str | None) -> dict[str, np.ndarray]:
        wanted = [f for part, fs in self._files.items() if usage in (None, "all", part) for f in fs]
        if usage is None:
            wanted = [f for f in wanted if os.path.exists(os.path.join(folder, f))]
        if not wanted:
            _fail(owner, folder, "there are no files of CIFAR in it")
        rows = np.concatenate([self._rows_of(owner, folder, name) for name in wanted])
        count = len(self._labels_of)
        images = rows[:, count:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
        found = {"image": np.ascontiguousarray(images)}
        # CIFAR-100's file has the coarse label first, MindSpore's columns the fine one.
        for k, (name, _) in reversed([*enumerate(self._labels_of)]):
            found[name] = rows[:, k].astype(np.uint32)
        return found

    def _rows_of(self, owner: str, folder: str, name: str) -> np.ndarray:
        path, data = _read(owner, folder, name)
        size = len(self._labels_of) + 3 * 32 * 32
        if len(data) == 0 or len(data) % size:
            what = f"{len(data)} bytes, which is not a multiple of {size}"
            _fail(owner, path, f"truncated or corrupted: {what}")
        rows = np.frombuffer(data, np.uint8).reshape(-1, size)
        for k, (label, classes) in enumerate(self._labels_of):
            if rows[:, k].max() >= classes:
                _fail(owner, path, f"corrupted: a {label} of {rows[:, k].max()}")
        return rows


class Cifar100Dataset(Cifar10Dataset):
    """CIFAR-100: images, uint8 of [32, 32, 3], fine_label and coarse_label, uint32.

    dataset_dir: the folder of the binary version's train.bin and test.bin; the rest as in
    Cifar10Dataset.
    """

    _files: ClassVar[dict[str, list[str]]] = {"train": ["train.bin"], "test": ["test.bin"]}
    _labels_of: ClassVar[tuple[tuple[str, int], ...]] = (("coarse_label", 20), ("fine_label", 100))


# Folders of images --------------------------------------------------------------------------------


class _Pictures(IndexedDataset):
    """Files of pictures, each with a value: image, the file's bytes as uint8 (or decode: the picture), and
    the value."""

    def __init__(
        self, folder: Any, decode: bool, decrypt: Any, which: tuple[Any, ...], workers: int | None
    ) -> None:
        owner = type(self).__name__
        which = (*which, workers or get_num_parallel_workers())
        super().__init__(*which)
        if decrypt is not None:
            unsupported(f"{owner}: 'decrypt' is not implemented")
        self.decode: bool = arguments.boolean(decode, owner, "decode")
        self._files = self._listed(owner, _folder(owner, folder))
        self._count = len(self._files)

    def _listed(self, owner: str, folder: str) -> list[tuple[str, Any]]:
        """(path, value) of each picture."""
        raise NotImplementedError

    def _row(self, i: int) -> Row:
        path, value = self._files[i]
        try:
            with open(path, "rb") as file:
                image = np.frombuffer(file.read(), np.uint8)
        except OSError as error:
            _fail(type(self).__name__, path, f"cannot be read: {error.strerror}")
        if self.decode:
            from gradcell.dataset.vision.convert import decoded

            image = decoded(image, path)
        return image, value

    def _labels(self, column: str) -> np.ndarray:
        return np.array([value for _, value in self._files])


class ImageFolderDataset(_Pictures):
    """Images in folders, a folder for each class: image, the file's bytes as uint8 (or decode: the
    picture, uint8 of [height, width, 3]), and label, int32, the folder's place in their order.

    extensions: the files' endings; by default those of pictures. class_indexing: labels by the
    folders' names. decode: whether images are decoded. Raises ValueError for a missing or empty
    folder.
    """

    def __init__(
        self, dataset_dir: str, num_samples: int | None = None, num_parallel_workers: int | None = None,
        shuffle: bool | None = None, sampler: Any = None, extensions: list[str] | None = None,
        class_indexing: dict[str, int] | None = None, decode: bool = False, num_shards: int | None = None,
        shard_id: int | None = None, cache: Any = None, decrypt: Any = None,
    ) -> None:  # fmt: skip
        self._endings = tuple(extensions or _ENDINGS)
        self._given = class_indexing
        self.names: list[str] = ["image", "label"]
        which = sampler, shuffle, num_shards, shard_id, num_samples
        super().__init__(dataset_dir, decode, decrypt, which, num_parallel_workers)

    def _listed(self, owner: str, folder: str) -> list[tuple[str, Any]]:
        there = sorted(d.name for d in os.scandir(folder) if d.is_dir())
        places = {name: i for i, name in enumerate(there)}
        self._classes = places if self._given is None else dict(self._given)
        for name in self._classes:
            if name not in there:
                _fail(owner, folder, f"there is no class {name!r} in it")
        found = [
            (os.path.join(top, file), np.array(label, np.int32))
            for name, label in self._classes.items()
            for top, _, files in sorted(os.walk(os.path.join(folder, name)))
            for file in sorted(files)
            if file.endswith(self._endings)
        ]
        if not found:
            _fail(owner, folder, f"there are no images in its folders ({', '.join(self._endings)})")
        return found

    def get_class_indexing(self) -> dict[str, Any]:
        """From a folder's name to its label."""
        return dict(self._classes)

    def num_classes(self) -> int:
        """Return the number of classes."""
        return len(self._classes)


class CelebADataset(_Pictures):
    """CelebA: image, as ImageFolderDataset's, and attr, uint32 of [40], 1 for each attribute that a face has.

    dataset_dir: the folder of the images, of list_attr_celeba.txt and, for a usage but 'all', of
    list_eval_partition.txt. usage: 'train', 'valid', 'test' or 'all'. extensions: the images'
    endings; by default all. decode: whether images are decoded. Raises ValueError for a missing or
    damaged file.
    """

    def __init__(
        self, dataset_dir: str, num_parallel_workers: int | None = None, shuffle: bool | None = None,
        usage: str = "all", sampler: Any = None, decode: bool = False, extensions: list[str] | None = None,
        num_samples: int | None = None, num_shards: int | None = None, shard_id: int | None = None,
        cache: Any = None, decrypt: Any = None,
    ) -> None:  # fmt: skip
        parts = ("train", "valid", "test", "all")
        self._part = parts.index(arguments.one_of(usage, parts, "CelebADataset", "usage"))
        self._endings = tuple(extensions or ("",))
        self.names: list[str] = ["image", "attr"]
        which = sampler, shuffle, num_shards, shard_id, num_samples
        super().__init__(dataset_dir, decode, decrypt, which, num_parallel_workers)

    def _listed(self, owner: str, folder: str) -> list[tuple[str, Any]]:
        path, data = _read(owner, folder, "list_attr_celeba.txt")
        lines = data.decode("utf8", "replace").splitlines()[2:]
        rows = [line.split() for line in lines if line.strip()]
        if not rows or any(len(row) != 41 or {*row[1:]} - {"1", "-1"} for row in rows):
            _fail(owner, path, "its lines must have a name and 40 attributes, 1 or -1")
        part = None
        if self._part < 3:
            text = _read(owner, folder, "list_eval_partition.txt")[1].decode("utf8", "replace")
            part = dict(line.split()[:2] for line in text.splitlines() if line.strip())
        found = [
            (os.path.join(folder, name), np.array([a == "1" for a in values], np.uint32))
            for name, *values in rows
            if name.endswith(self._endings) and (part is None or part.get(name) == str(self._part))
        ]
        if not found:
            _fail(owner, folder, "there are no images of that part in it")
        return found


class FakeImageDataset(IndexedDataset):
    """Made-up images, uint8, and labels, uint32: random numbers, the same for the same base_seed.

    num_images: the number of rows. image_size: (height, width, channels). num_classes: labels are below it.
    base_seed: an int.
    """

    def __init__(
        self, num_images: int = 1000, image_size: Any = (224, 224, 3), num_classes: int = 10,
        base_seed: int = 0, num_samples: int | None = None, num_parallel_workers: int | None = None,
        shuffle: bool | None = None, sampler: Any = None, num_shards: int | None = None,
        shard_id: int | None = None, cache: Any = None,
    ) -> None:  # fmt: skip
        owner = "FakeImageDataset"
        super().__init__(sampler, shuffle, num_shards, shard_id, num_samples, num_parallel_workers)
        self._count = arguments.integer(num_images, owner, "num_images", 1)
        self._size = arguments.integers(image_size, owner, "image_size")
        if len(self._size) != 3 or min(self._size) < 1:
            bad_value(f"{owner}: 'image_size' must be three positive ints, got {image_size}")
        self._classes = arguments.integer(num_classes, owner, "num_classes", 1)
        self._seed = arguments.integer(base_seed, owner, "base_seed") % 2**32
        self.names: list[str] = ["image", "label"]

    def _row(self, i: int) -> Row:
        random = np.random.default_rng([self._seed, i])
        image = random.integers(256, size=self._size, dtype=np.uint8)
        return image, np.array(random.integers(self._classes), np.uint32)

    def num_classes(self) -> int:
        """Return the number of classes."""
        return self._classes


# MindRecord ---------------------------------------------------------------------------------------


class MindDataset(IndexedDataset):
    """Rows of MindRecord files: numbers, arrays, strings; bytes as uint8 of one axis.

    dataset_files: a file's name (its set is read) or a list of them. columns_list: which fields, in
    which order; all by default, by their names. padded_sample: a row that is added at the end.
    num_padded: how often it is added. Raises ValueError for missing or damaged files and missing
    fields.
    """

    def __init__(
        self, dataset_files: Any, columns_list: list[str] | None = None,
        num_parallel_workers: int | None = None, shuffle: Any = None, num_shards: int | None = None,
        shard_id: int | None = None, sampler: Any = None, padded_sample: dict[str, Any] | None = None,
        num_padded: int | None = None, num_samples: int | None = None, cache: Any = None,
    ) -> None:  # fmt: skip
        owner = "MindDataset"
        super().__init__(sampler, shuffle, num_shards, shard_id, num_samples, num_parallel_workers)
        self._shards = shards_of(owner, dataset_files)
        schema = self._shards[0].schema
        names = list(schema) if columns_list is None else column_names(owner, columns_list)
        self.names: list[str] = names
        for name in self.names:
            if name not in schema:
                bad_value(f"{owner}: there is no column {name!r}; the columns are {list(schema)}")
        self._types = [
            None if schema[n]["type"] in ("string", "bytes") else np.dtype(schema[n]["type"])
            for n in self.names
        ]
        self._ends = np.cumsum([len(shard) for shard in self._shards])
        self._padding: dict[str, Any] | None = None
        padded = 0
        if padded_sample is not None or num_padded is not None:
            if not isinstance(padded_sample, dict) or num_padded is None:
                bad_value(f"{owner}: 'padded_sample' and 'num_padded' go together")
            for name in self.names:
                if name not in padded_sample:
                    bad_value(f"{owner}: 'padded_sample' has no {name!r}")
            padded = arguments.integer(num_padded, owner, "num_padded", 0)
            self._padding = padded_sample
        self._count = int(self._ends[-1]) + padded

    def _row(self, i: int) -> Row:
        if i >= self._ends[-1]:
            assert self._padding is not None
            found = self._padding
        else:
            shard = int(np.searchsorted(self._ends, i, side="right"))
            start = int(self._ends[shard - 1]) if shard else 0
            found = self._shards[shard].row(i - start)
        return tuple(
            np.frombuffer(value, np.uint8) if isinstance(value, bytes) else np.asarray(value, dtype)
            for value, dtype in zip((found[n] for n in self.names), self._types, strict=True)
        )


def _matching(owner: str, names: Any) -> list[str]:
    """Files by a name, a pattern or a list of them, in order. Raises ValueError if there is none."""
    listed = [names] if isinstance(names, (str, os.PathLike)) else list(names)
    found = []
    for given in listed:
        name = os.fspath(given)
        folder, pattern = os.path.split(name)
        there = fnmatch.filter(sorted(os.listdir(folder or ".")), pattern)
        if os.path.isfile(name):
            there = [pattern]
        found += [os.path.join(folder, file) for file in there]
        if not there:
            _fail(owner, name, "there is no such file")
    return found


publish(globals())
