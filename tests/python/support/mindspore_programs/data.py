"""Data sets: made-up images, faces, places that are waited for, unsigned columns, Python objects."""

import os
import tempfile

import mindspore as ms
import numpy as np
from mindspore import Tensor, dataset


def _rows(data, **options):
    return list(data.create_dict_iterator(num_epochs=1, output_numpy=True, **options))


def made_up_images():
    data = dataset.FakeImageDataset(5, (3, 2, 3), 4, base_seed=1)
    rows = _rows(data)
    about = {(r["image"].shape, str(r["image"].dtype), str(r["label"].dtype)) for r in rows}
    inside = all(0 <= r["label"] < 4 for r in rows)
    return data.get_dataset_size(), data.get_col_names(), list(about), inside


def made_up_images_again():
    def images():
        data = dataset.FakeImageDataset(2, (2, 2, 3), base_seed=3, shuffle=False)
        return np.stack([row["image"] for row in _rows(data)])

    return bool((images() == images()).all())


def made_up_images_without_channels():
    return dataset.FakeImageDataset(4, (3, 2))


def _faces():
    from PIL import Image

    folder = tempfile.mkdtemp()
    names = [f"{i:06d}.jpg" for i in range(1, 5)]
    for i, name in enumerate(names):
        Image.fromarray(np.full((4, 3, 3), 40 * i, np.uint8)).save(os.path.join(folder, name))
    signs = [["1" if (i + k) % 3 == 0 else "-1" for k in range(40)] for i in range(4)]
    lines = [f"{n}  {'  '.join(s)}" for n, s in zip(names, signs)]  # noqa: B905
    with open(os.path.join(folder, "list_attr_celeba.txt"), "w") as file:
        file.write("\n".join(["4", " ".join(f"a{k}" for k in range(40)), *lines]) + "\n")
    with open(os.path.join(folder, "list_eval_partition.txt"), "w") as file:
        file.writelines(f"{n} {p}\n" for n, p in zip(names, (0, 0, 1, 2)))  # noqa: B905
    return folder


def faces():
    folder, found = _faces(), []
    for options in ({}, {"usage": "train"}, {"usage": "valid"}, {"usage": "test", "decode": True}):
        data = dataset.CelebADataset(folder, shuffle=False, **options)
        rows = _rows(data)
        size = [r["image"].size for r in rows] if options.get("decode") else []
        found.append((data.get_dataset_size(), size, [r["attr"].tolist() for r in rows]))
    return found, data.get_col_names(), str(rows[0]["attr"].dtype), rows[0]["image"].tolist()


def faces_of_another_use():
    return dataset.CelebADataset(_faces(), usage="all of them")


def faces_without_parts():
    folder = _faces()
    os.remove(os.path.join(folder, "list_eval_partition.txt"))
    everything = len(_rows(dataset.CelebADataset(folder)))
    try:
        return everything, _rows(dataset.CelebADataset(folder, usage="train"))
    except (RuntimeError, ValueError):
        return everything, "an error"


class _Counted:
    def __init__(self):
        self.total = 0

    def update(self, data):
        self.total += 1 if data is None else data["by"]


def updates_between_rows():
    found = []
    for data in ({}, {"data": {"by": 10}}):
        counted = _Counted()
        rows = dataset.NumpySlicesDataset([1, 2, 3], shuffle=False)
        rows = rows.sync_wait("place", num_batch=1, callback=counted.update)
        for _ in rows.create_tuple_iterator(num_epochs=1):
            rows.sync_update("place", **data)
        found.append(counted.total)
    return found


def update_of_another_place():
    rows = dataset.NumpySlicesDataset([1, 2, 3]).sync_wait("place")
    return rows.sync_update("elsewhere")


def update_of_no_rows():
    rows = dataset.NumpySlicesDataset([1, 2, 3]).sync_wait("place")
    return rows.sync_update("place", 0)


def two_places_of_a_name():
    return dataset.NumpySlicesDataset([1, 2, 3]).sync_wait("place").sync_wait("place")


def place_without_a_name():
    return dataset.NumpySlicesDataset([1, 2, 3]).sync_wait(3)


def unsigned_columns():
    kinds = np.uint8, np.uint16, np.uint32, np.uint64
    rows = {f"{k.__name__}": np.arange(2, dtype=k) for k in kinds}
    data = dataset.NumpySlicesDataset(rows, shuffle=False)
    last = list(data.create_tuple_iterator(num_epochs=1))[-1]
    return last, [str(t) for t in data.output_types()], next(data.batch(2).create_tuple_iterator())


class _Made:
    def __init__(self, make):
        self.make = make

    def __getitem__(self, i):
        return self.make(i), np.int32(i)

    def __len__(self):
        return 2


def _column(make):
    data = dataset.GeneratorDataset(_Made(make), ["x", "i"], shuffle=False)
    return [row["x"] for row in data.create_dict_iterator(num_epochs=1)]


def dicts_as_rows():
    made = _column(lambda i: {"a": i, "b": {"c": [1, "word"], "d": np.ones(2)}})
    return [[d["a"], d["b"]["c"][0], str(d["b"]["c"][1]), d["b"]["d"]] for d in made]


def words_as_rows():
    return [str(x) for x in _column(lambda i: f"word {i}")]


def images_as_rows():
    from PIL import Image

    return _column(lambda i: Image.new("RGB", (2, 1), (i, 2, 3)))


def tensors_as_rows():
    return _column(lambda i: Tensor([i, 1.5], ms.float32))


def data_of_data():
    rows = dataset.NumpySlicesDataset({"x": np.arange(4.0)}, shuffle=False)
    again = dataset.GeneratorDataset(rows, ["x"], shuffle=False)
    return again.get_dataset_size(), [row["x"].tolist() for row in _rows(again)]


def objects_between_two_functions():
    class Box:
        def __init__(self, value):
            self.value = value

    rows = dataset.NumpySlicesDataset([1, 2], ["x"], shuffle=False)
    return [
        row["x"].tolist() for row in _rows(rows.map([lambda x: Box(x), lambda box: box.value], "x"))
    ]


def words_from_a_function():
    rows = dataset.NumpySlicesDataset([1, 2], ["x"], shuffle=False)
    return [[str(w) for w in row["x"]] for row in _rows(rows.map(lambda x: ["a", f"b{x}"], "x"))]


def samplers_of_three_kinds():
    class Chosen:
        def __getitem__(self, i):
            return (2, 0, 3)[i]

        def __len__(self):
            return 3

    kinds = Chosen(), [2, 0, 3], dataset.SubsetSampler([2, 0, 3])
    data = [dataset.NumpySlicesDataset(np.arange(4), ["x"], sampler=s) for s in kinds]
    return [[int(row["x"]) for row in _rows(d)] for d in data]
