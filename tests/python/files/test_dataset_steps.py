"""Steps of datasets: what MindSpore 2.10 gives for the same calls; workers; samplers and shards."""

import os
import random
import threading
import time

import numpy as np
import pytest

import gradcell as ms
import gradcell.dataset as ds
from gradcell.dataset import config, workers

X = np.arange(10, dtype=np.int32)


def rows(dataset):
    return [
        tuple(np.asarray(v).tolist() for v in row)
        for row in dataset.create_tuple_iterator(num_epochs=1, output_numpy=True)
    ]


def ten(**options):
    return ds.NumpySlicesDataset(X, ["x"], shuffle=False, **options)


def values(dataset):
    return [row[0] for row in rows(dataset)]


def growing():
    return ds.GeneratorDataset([np.arange(i + 1) for i in range(3)], ["a"], shuffle=False)


@pytest.fixture(autouse=True)
def no_seed(monkeypatch):
    monkeypatch.setattr(config, "_seed", None)


def test_shards_are_of_one_size():
    parts = [values(ten(num_shards=3, shard_id=k)) for k in range(3)]
    assert parts == [[0, 3, 6, 9], [1, 4, 7, 0], [2, 5, 8, 1]]
    assert values(ten(num_shards=3, shard_id=1, num_samples=2)) == [1, 4]
    source = ds.GeneratorDataset(list(range(10)), ["x"], shuffle=False, num_shards=3, shard_id=2)
    assert values(source) == [2, 5, 8, 1]


def test_shuffled_shards_cover_the_rows_without_a_seed():
    for epoch in range(3):
        seen = set()
        for k in range(5):
            part = ds.NumpySlicesDataset(X, ["x"], num_shards=5, shard_id=k)
            part.set_epoch(epoch)
            seen.update(values(part))
        assert seen == set(range(10))


@pytest.mark.parametrize(
    ("sampler", "expected"),
    [
        (lambda: ds.DistributedSampler(4, 1, shuffle=False), [1, 5, 9]),
        (lambda: ds.DistributedSampler(4, 3, shuffle=False), [3, 7, 1]),
        (lambda: ds.SequentialSampler(3, 4), [3, 4, 5, 6]),
        (lambda: ds.SubsetSampler([3, 1]), [3, 1]),
        (lambda: [3, 1, 4], [3, 1, 4]),
        (lambda: ds.IterSampler(iter([2, 2])), [2, 2]),
    ],
)
def test_samplers(sampler, expected):
    assert values(ds.NumpySlicesDataset(X, ["x"], sampler=sampler())) == expected


def test_random_samplers():
    class Mine(ds.Sampler):
        def __iter__(self):
            yield from range(0, self.dataset_size, 4)

    def drawn(sampler):
        return values(ds.NumpySlicesDataset((X, X % 3), ["x", "label"], sampler=sampler))

    assert drawn(Mine()) == [0, 4, 8]
    assert sorted(drawn(ds.SubsetRandomSampler([5, 6, 7]))) == [5, 6, 7]
    assert sorted(drawn(ds.RandomSampler())) == list(range(10))
    assert len(drawn(ds.RandomSampler(True, 30))) == 30
    weights = [0, 1, 0, 3, *[0] * 6]
    counts = np.bincount(drawn(ds.WeightedRandomSampler(weights, 4000)), minlength=10)
    assert counts[1] + counts[3] == 4000
    assert abs(counts[3] - 3000) < 5 * np.sqrt(4000 * 0.75 * 0.25)
    chosen = drawn(ds.PKSampler(2))
    assert [k % 3 for k in chosen] == [0, 0, 1, 1, 2, 2]
    with pytest.raises(IndexError, match="no row 10 of 10"):
        drawn([10])


def test_split():
    def parts(sizes, **options):
        return [values(p) for p in ten().split(sizes, **options)]

    assert parts([0.7, 0.3], randomize=False) == [list(range(7)), [7, 8, 9]]
    assert parts([0.33, 0.33, 0.34], randomize=False) == [[0, 1, 2, 3], [4, 5, 6], [7, 8, 9]]
    assert parts([3, 7], randomize=False) == [[0, 1, 2], [3, 4, 5, 6, 7, 8, 9]]
    shuffled = ds.NumpySlicesDataset(X, ["x"])  # whose order is new in each epoch
    train, test = shuffled.split([0.8, 0.2])
    first, held_out = set(values(train)), set(values(test))
    assert first | held_out == set(range(10))
    assert not first & held_out
    for _ in range(5):
        assert (set(values(train)), set(values(test))) == (first, held_out)
    for bad in ([3, 3], [0.5, 0.6], [0.001, 0.999], [], "ab"):
        with pytest.raises((ValueError, TypeError), match="split"):
            ten().split(bad)


def test_zip_concat_filter_flat_map_apply():
    zipped = ds.zip((ten(), ten().rename("x", "y").take(4)))
    assert (rows(zipped), zipped.get_col_names()) == ([(k, k) for k in range(4)], ["x", "y"])
    assert zipped.get_dataset_size() == 4
    assert values(ten() + ten().take(2)) == [*range(10), 0, 1]
    assert ten().concat([ten(), ten()]).get_dataset_size() == 30
    even = ten().filter(lambda x: x % 2 == 0, ["x"])
    assert (values(even), even.get_dataset_size()) == ([0, 2, 4, 6, 8], 5)
    assert even.batch(2).get_dataset_size() == 3
    flat = (
        ten().take(4).flat_map(lambda n: ds.NumpySlicesDataset([int(n)] * 2, ["k"], shuffle=False))
    )
    assert (values(flat), flat.get_dataset_size()) == ([0, 0, 1, 1, 2, 2, 3, 3], 8)
    assert values(ten().apply(lambda d: d.take(2))) == [0, 1]
    with pytest.raises(ValueError, match="twice"):
        ds.zip((ten(), ten()))
    with pytest.raises(ValueError, match="columns"):
        ten() + zipped
    with pytest.raises(TypeError, match="must return a dataset"):
        ten().apply(lambda d: 3)


def test_columns_of_map():
    def three():
        return ds.NumpySlicesDataset((X[:2], X[:2] + 10, X[:2] + 20), list("abc"), shuffle=False)

    one = three().map(lambda a, c: a + c, ["a", "c"], ["s"])
    assert (one.get_col_names(), rows(one)) == (["s", "b"], [(20, 10), (22, 11)])
    two = three().map(lambda b: (b, b + 1), ["b"], ["s", "t"])
    assert (two.get_col_names(), rows(two)[1]) == (["s", "t", "a", "c"], (11, 12, 1, 21))
    renamed = three().map(lambda b: b, ["b"], ["z"])
    assert (renamed.get_col_names(), rows(renamed)[1]) == (["a", "z", "c"], (1, 11, 21))
    assert rows(three().map(lambda a: a * 2)) == [(0, 10, 20), (2, 11, 21)]
    ordered = three().map(lambda b: (b, b + 1), ["b"], ["s", "t"], column_order=["a", "t"])
    assert rows(ordered) == [(0, 11), (1, 12)]


def test_repeat_without_end():
    endless = ten().repeat()
    assert (endless.get_dataset_size(), ten().repeat(2).batch(4).get_dataset_size()) == (10, 5)
    assert [row[0] for row, _ in zip(endless.create_tuple_iterator(), range(25), strict=False)] == [
        *range(10), *range(10), *range(5)
    ]  # fmt: skip
    assert (
        ten().take(3).filter(lambda x: False).repeat().batch(2).create_tuple_iterator() is not None
    )
    assert rows(ten().filter(lambda x: False).repeat()) == []


# Batches ------------------------------------------------------------------------------------------


def test_functions_of_batches():
    got = []

    def double(column, info):
        got.append((type(column), type(column[0]), info.get_epoch_num()))
        return [v * 2 + info.get_batch_num() for v in column]

    dataset = ten().batch(4, per_batch_map=lambda x, info: (double(x, info),), input_columns="x")
    assert values(dataset) == [[0, 2, 4, 6], [9, 11, 13, 15], [18, 20]]
    assert got == [(list, np.ndarray, 0)] * 3
    more = ten().batch(
        5, per_batch_map=lambda x, info: (x, [-v for v in x]), output_columns=["p", "q"]
    )
    assert more.get_col_names() == ["p", "q"]
    assert rows(more)[1] == ([5, 6, 7, 8, 9], [-5, -6, -7, -8, -9])
    with pytest.raises(ValueError, match="gave 1 columns where 2"):
        rows(ten().batch(5, per_batch_map=lambda x, i: (x,), output_columns=["p", "q"]))


def test_a_function_for_the_size():
    dataset = ten().batch(lambda info: info.get_batch_num() + 1)
    assert values(dataset) == [[0], [1, 2], [3, 4, 5], [6, 7, 8, 9]]
    assert dataset.get_dataset_size() == 4


def test_padding():
    expected = [[0, -1, -1, -1], [0, 1, -1, -1], [0, 1, 2, -1]]
    assert values(growing().padded_batch(3, pad_info={"a": ([4], -1)})) == [expected]
    expected = [[0, -1, -1], [0, 1, -1], [0, 1, 2]]
    assert values(growing().padded_batch(3, pad_info={"a": ([None], -1)})) == [expected]
    assert values(growing().batch(3, pad_info={"a": (None, -1)})) == [expected]
    assert values(growing().padded_batch(2)) == [[[0, 0], [0, 1]], [[0, 1, 2]]]
    with pytest.raises(ValueError, match=r"shape \(3,\), which is more than \[2\]"):
        rows(growing().padded_batch(3, pad_info={"a": ([2], 0)}))


def test_buckets():
    source = ds.GeneratorDataset([np.arange(i % 5 + 1) for i in range(10)], ["a"], shuffle=False)
    dataset = source.bucket_batch_by_length(["a"], [3, 5], [2, 2, 2], None, {"a": ([None], 0)})
    small, middle = [[0, 0], [0, 1]], [[0, 1, 2, 0], [0, 1, 2, 3]]
    large = [[0, 1, 2, 3, 4]] * 2
    assert values(dataset) == [small, middle, small, middle, large]
    assert dataset.get_dataset_size() == 5
    with pytest.raises(ValueError, match="2 boundaries need 3 batch sizes"):
        source.bucket_batch_by_length(["a"], [3, 5], [2, 2])


def test_types_and_shapes():
    assert ten().output_types() == [np.int32]
    assert (ten().output_shapes(), ten().batch(3).output_shapes()) == ([[]], [[3]])
    assert growing().output_shapes(estimate=True) == [[None]]
    assert (ten().num_classes(), ten().get_class_indexing()) == (None, {})
    strings = ds.GeneratorDataset([("a", 1), ("bc", 2)], ["s", "i"], shuffle=False)
    assert rows(strings) == [("a", 1), ("bc", 2)]
    assert next(strings.create_dict_iterator())["s"] == "a"
    typed = ds.GeneratorDataset(
        [(1, 2.0)], ["a", "b"], column_types=[ms.float32, ms.int8], shuffle=False
    )
    assert typed.output_types() == [np.float32, np.int8]
    wrong = ds.GeneratorDataset([np.float64(1)], ["a"], column_types=[ms.float32])
    with pytest.raises(TypeError, match="'a' should be float32, a row has float64"):
        rows(wrong)


def test_batch_sampler_and_collate():
    dataset = ds.GeneratorDataset(
        list(range(6)), ["x"], batch_sampler=[[0, 5], [1, 2, 3]], collate_fn=lambda part: sum(part)
    )
    assert (values(dataset), dataset.get_dataset_size()) == ([5, 6], 2)


# Workers ------------------------------------------------------------------------------------------


def noisy(x):
    return x + workers.generator().random()


def global_noise(x):
    return x + np.random.rand() + random.random()


def slow_first(x):
    time.sleep(0.02 if x < 2 else 0)
    return x, os.getpid(), threading.get_ident()


def test_workers_keep_the_order_and_what_is_drawn():
    config.set_seed(3)
    expected = values(ten().map(noisy))
    assert len(set(expected)) == 10
    for count in (1, 2, 5):
        assert values(ten().map(noisy, num_parallel_workers=count)) == expected
    processes = {"num_parallel_workers": 3, "python_multiprocessing": True}
    assert values(ten().map(noisy, **processes)) == expected
    assert values(ten().map(noisy).skip(4)) == expected[4:]
    dataset = ten().map(noisy, num_parallel_workers=2)
    first, second = values(dataset), values(dataset)
    assert first == expected
    assert not set(first) & set(second)  # another epoch
    config.set_seed(4)
    dataset.reset()
    assert not set(values(dataset)) & set(expected)


def test_processes_seed_the_global_generators_by_the_row():
    ms.set_seed(3)
    made = [
        values(ten().map(global_noise, num_parallel_workers=n, python_multiprocessing=True))
        for n in (2, 3)
    ]
    assert made[0] == made[1]
    assert len(set(made[0])) == 10


def test_workers_are_others_and_give_rows_in_order():
    names = ["x", "process", "thread"]
    threads = rows(ten().map(slow_first, "x", names, num_parallel_workers=4))
    assert [r[0] for r in threads] == list(range(10))
    assert {r[1] for r in threads} == {os.getpid()}
    assert threading.get_ident() not in {r[2] for r in threads}
    made = rows(
        ten().map(slow_first, "x", names, num_parallel_workers=2, python_multiprocessing=True)
    )
    assert [r[0] for r in made] == list(range(10))
    assert os.getpid() not in {r[1] for r in made}


@pytest.mark.parametrize("processes", [False, True])
def test_an_error_in_a_worker_reaches_the_caller(processes):
    def broken(x):
        if x == 7:
            raise KeyError("seven")
        return x

    dataset = ten().map(broken, num_parallel_workers=2, python_multiprocessing=processes)
    before = threading.active_count()
    with pytest.raises(KeyError, match="seven"):
        rows(dataset)
    assert threading.active_count() <= before


def test_an_iterator_that_is_left_stops_its_workers():
    before = threading.active_count()
    iterator = iter(ten().repeat().map(noisy, num_parallel_workers=3))
    next(iterator)
    iterator.close()
    assert threading.active_count() == before


def test_settings():
    config.set_prefetch_size(4)
    assert config.get_prefetch_size() == 4
    config.set_prefetch_size(16)
    config.set_enable_shared_mem(False)
    assert config.get_enable_shared_mem() is False
    with pytest.raises(AttributeError, match="set_nothing"):
        config.set_nothing(3)
    for bad in (-1, 2.0, True):
        with pytest.raises((TypeError, ValueError), match="seed"):
            config.set_seed(bad)
    ms.set_seed(8)
    assert config.get_seed() == 8
    config.set_seed(9)
    assert config.get_seed() == 9


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: ten(num_shards=3), ValueError, "go together"),
        (lambda: ten(num_shards=3, shard_id=3), ValueError, r"\[0, 3\), got 3"),
        (lambda: ds.NumpySlicesDataset(X, sampler=[1], shuffle=True), ValueError, "cannot go with"),
        (lambda: ds.NumpySlicesDataset(X, sampler=3), TypeError, "must be a Sampler"),
        (lambda: ds.WeightedRandomSampler([0, 0]), ValueError, "not all 0"),
        (lambda: ten().map(noisy, num_parallel_workers=0), ValueError, "num_parallel_workers"),
        (lambda: ten().filter(3), TypeError, "must be a function"),
        (lambda: ten().padded_batch(2, pad_info={"y": ([2], 0)}), ValueError, "no column 'y'"),
        (lambda: rows(ten().batch(lambda info: 0)), ValueError, "at least 1"),
        (lambda: ds.GeneratorDataset([1], ["x"], column_types=[1, 2]), ValueError, "column_types"),
        (lambda: ds.PaddedDataset([]), TypeError, "list of dicts"),
    ],
)
def test_steps_refuse_columns_that_are_not_there(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_a_cache_says_that_it_does_nothing():
    with pytest.warns(UserWarning, match="does not cache"):
        cache = ds.DatasetCache(1)
    assert cache.get_stat()["num_mem_cached"] == 0


# Dicts as values: what MindSpore 2.10 gives for the same programs. ------------------------------------


def dict_rows(source=None):
    def rows():
        for i in range(4):
            yield {"a": np.array(i), "b": [i, 2.5], "n": (i, None)}, np.array(i)

    return ds.GeneratorDataset(source or rows, ["x", "y"], shuffle=False)


def plain(value):
    """Tensors and arrays as numbers, containers as they are."""
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(map(plain, value))
    assert value is None or isinstance(value, (ms.Tensor, np.ndarray))
    return value if value is None else np.asarray(value).tolist()


FIRST = {"a": 0, "b": [0, 2.5], "n": (0, None)}


@pytest.mark.parametrize("arrays", [False, True])
@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (lambda d: d, {"x": FIRST, "y": 0}),
        (lambda d: d.map(lambda v: {"c": v["a"] + 1}, ["x"]), {"x": {"c": 1}, "y": 0}),
        (lambda d: d.map(lambda v: v["a"], ["x"]), {"x": 0, "y": 0}),
        (lambda d: d.map(lambda v: {"v": v}, ["y"]), {"x": FIRST, "y": {"v": 0}}),
        (
            lambda d: d.map(lambda v: (v["a"], {"r": v["b"]}), ["x"], output_columns=["o", "p"]),
            {"o": 0, "p": {"r": [0, 2.5]}, "y": 0},
        ),
        (lambda d: d.project(["x"]), {"x": FIRST}),
        (lambda d: d.rename(["x"], ["z"]), {"z": FIRST, "y": 0}),
        (lambda d: d.take(1), {"x": FIRST, "y": 0}),
        (lambda d: d.skip(1), {"x": {"a": 1, "b": [1, 2.5], "n": (1, None)}, "y": 1}),
        (lambda d: d.repeat(2), {"x": FIRST, "y": 0}),
        (lambda d: d.filter(lambda x, y: x["a"] > 2), {"x": {"a": 3, "b": [3, 2.5], "n": (3, None)}, "y": 3}),
        (lambda d: d.concat(dict_rows()), {"x": FIRST, "y": 0}),
        (
            lambda d: d.zip(dict_rows().rename(["x", "y"], ["p", "q"])),
            {"x": FIRST, "y": 0, "p": FIRST, "q": 0},
        ),
        (
            lambda d: d.map(lambda v: {"a": v["a"], "b": v["b"]}, ["x"]).batch(3),
            {"x": {"a": [0, 1, 2], "b": [[0, 2.5], [1, 2.5], [2, 2.5]]}, "y": [0, 1, 2]},
        ),
        (
            lambda d: d.batch(2, per_batch_map=lambda x, y, info: ({"k": np.stack([v["a"] for v in x])}, y)),
            {"x": {"k": [0, 1]}, "y": [0, 1]},
        ),
        (
            lambda d: d.batch(2, per_batch_map=lambda x, y, info: ([v["a"] for v in x], y)),
            {"x": [0, 1], "y": [0, 1]},
        ),
    ],
)  # fmt: skip
def test_dicts_go_through_pipelines(step, expected, arrays):
    row = next(iter(step(dict_rows()).create_dict_iterator(num_epochs=1, output_numpy=arrays)))
    assert plain(row) == expected


def test_dicts_of_slices_and_shuffled_dicts():
    rows = [{"k": i, "s": "text"} for i in range(5)]
    data = ds.NumpySlicesDataset({"a": rows, "b": np.arange(5)}, shuffle=False)
    assert [plain(r) for r in data.create_tuple_iterator(num_epochs=1, output_numpy=True)] == [
        [{"k": i, "s": "text"}, i] for i in range(5)
    ]
    (batch,) = data.project(["a"]).batch(5).create_tuple_iterator(num_epochs=1)
    assert (
        batch[0]["k"].asnumpy().tolist() == [0, 1, 2, 3, 4] and list(batch[0]["s"]) == ["text"] * 5
    )
    shuffled = dict_rows().shuffle(4).create_tuple_iterator(num_epochs=1)
    assert sorted(row[0]["a"].item() for row in shuffled) == [0, 1, 2, 3]
    assert dict_rows().output_shapes() == [[0], []]
    assert dict_rows().output_types() == [np.dtype(object), np.dtype("int64")]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (lambda i: {"a": np.zeros(i + 1)}, r"batch: x\['a'\] of the rows is not made an array"),
        (lambda i: {"a": {"b": i}}, r"batch: x\['a'\] of the rows is not made an array"),
        (lambda i: {"ab"[i % 2]: i}, r"batch: the rows of column 'x' have different keys"),
    ],
)
def test_dicts_that_make_no_batch(value, message):
    data = dict_rows(lambda: ((value(i), i) for i in range(4))).batch(2)
    with pytest.raises((TypeError, ValueError), match=message):
        next(iter(data.create_tuple_iterator(num_epochs=1)))
