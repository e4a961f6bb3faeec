"""Datasets: batches, order, maps, repeats, iterators, bad input."""

import numpy as np
import pytest

import gradcell as ms
from gradcell import Tensor
from gradcell.dataset import GeneratorDataset, NumpySlicesDataset

X = np.arange(20, dtype=np.float32).reshape(10, 2)
Y = np.arange(10, dtype=np.int32)


def plain(**options):
    return NumpySlicesDataset((X, Y), ["x", "y"], shuffle=False, **options)


def columns(dataset, k=1):
    return [row[k].asnumpy().tolist() for row in dataset]


def test_rows_and_names():
    dataset = NumpySlicesDataset({"a": X, "b": Y}, shuffle=False)
    assert dataset.get_col_names() == ["a", "b"]
    assert dataset.get_dataset_size() == 10
    first = next(iter(dataset.create_dict_iterator(output_numpy=True)))
    np.testing.assert_array_equal(first["a"], X[0])
    (tensor, label) = next(iter(dataset.create_tuple_iterator()))
    assert isinstance(tensor, Tensor)
    assert (tensor.dtype, label.dtype) == (ms.float32, ms.int32)
    assert NumpySlicesDataset([1, 2, 3], shuffle=False).get_col_names() == ["column_0"]


@pytest.mark.parametrize(("drop", "sizes"), [(False, [4, 4, 2]), (True, [4, 4])])
def test_batches(drop, sizes):
    dataset = plain().batch(4, drop_remainder=drop)
    assert [x.shape[0] for x, _ in dataset] == sizes
    assert dataset.get_dataset_size() == len(sizes)
    assert dataset.get_batch_size() == 4
    # The same rows without the fast path of arrays.
    slow = plain().map(lambda x: x, ["x"]).batch(4, drop)
    assert columns(slow) == columns(dataset)


def test_shuffling_is_by_seed_and_epoch():
    ms.set_seed(5)
    dataset = NumpySlicesDataset((X, Y), ["x", "y"]).batch(10)
    first, second = columns(dataset)[0], columns(dataset)[0]
    assert first != second
    assert sorted(first) == sorted(second) == list(range(10))
    again = NumpySlicesDataset((X, Y), ["x", "y"]).batch(10)
    again.set_epoch(1)
    assert columns(again)[0] == second
    ms.set_seed(6)
    again.set_epoch(1)
    assert columns(again)[0] != second


@pytest.mark.parametrize("buffer", [2, 4, 10, 100])
def test_shuffle_with_a_buffer(buffer):
    dataset = plain().shuffle(buffer)
    orders = [columns(dataset) for _ in range(3)]
    assert all(sorted(o) == list(range(10)) for o in orders)
    assert len({tuple(o) for o in orders}) > 1
    if buffer < 10:
        assert all(value < k + buffer for o in orders for k, value in enumerate(o))


def test_map():
    dataset = plain().map([lambda x: x * 2, lambda x: x + 1], input_columns=["x"])
    np.testing.assert_array_equal(next(iter(dataset))[0].asnumpy(), X[0] * 2 + 1)
    split = plain().map(lambda x: (x[0], x[1]), ["x"], ["left", "right"])
    assert split.get_col_names() == ["left", "right", "y"]
    assert [float(v) for v in next(iter(split.skip(3)))] == [6, 7, 3]
    with pytest.raises(ValueError, match="no column 'z'"):
        plain().map(lambda x: x, ["z"])
    with pytest.raises(ValueError, match="gave 1 values for 2"):
        list(plain().map(lambda x: x, ["x"], ["left", "right"]))


def test_repeat_take_skip_project_rename():
    assert columns(plain().take(2).repeat(3)) == [0, 1] * 3
    assert plain().take(2).repeat(3).get_dataset_size() == 6
    assert columns(plain().skip(8)) == [8, 9]
    assert plain().skip(8).batch(4).get_dataset_size() == 1
    dataset = plain().project("y").rename("y", "label")
    assert dataset.get_col_names() == ["label"]
    assert columns(plain().batch(3).repeat(2), 1)[4] == [0, 1, 2]


def test_iterators_count_epochs():
    iterator = plain().create_tuple_iterator(num_epochs=2)
    assert len(list(iterator)) == len(list(iterator)) == 10
    with pytest.raises(RuntimeError, match="all its epochs"):
        list(iterator)


def test_next_gives_the_rows_of_an_epoch():
    dataset = plain()
    np.testing.assert_array_equal(next(dataset.create_dict_iterator())["x"].asnumpy(), X[0])
    iterator = dataset.create_tuple_iterator(num_epochs=2, output_numpy=True)
    for _ in range(2):
        assert [next(iterator)[1] for _ in range(10)] == Y.tolist()
        with pytest.raises(StopIteration):
            next(iterator)
    with pytest.raises(RuntimeError, match="all its epochs"):
        next(iterator)


class Pairs:
    def __getitem__(self, i):
        return np.float32(i), i

    def __len__(self):
        return 7


def test_generators():
    assert sorted(columns(GeneratorDataset(Pairs(), ["x", "y"]))) == list(range(7))
    assert columns(GeneratorDataset(Pairs(), ["x", "y"], shuffle=False)) == list(range(7))

    def rows():
        yield from ((np.ones(2, np.float32), k) for k in range(5))

    dataset = GeneratorDataset(rows, ["x", "y"], num_samples=4)
    assert dataset.get_dataset_size() == 4
    assert columns(dataset) == columns(dataset) == [0, 1, 2, 3]
    assert columns(GeneratorDataset([(1, 2), (3, 4)], ["x", "y"], shuffle=False)) == [2, 4]


def test_an_iterator_can_be_read_only_once():
    dataset = GeneratorDataset(iter([(1, 2)]), ["x", "y"])
    assert columns(dataset) == [2]
    with pytest.raises(ValueError, match="read only once"):
        list(dataset)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: NumpySlicesDataset((X, Y[:5])), ValueError, "different lengths"),
        (lambda: NumpySlicesDataset((X[:0],)), ValueError, "no rows"),
        (lambda: NumpySlicesDataset((X, Y), ["x"]), ValueError, "1 names for 2"),
        (lambda: NumpySlicesDataset((X, Y), ["x", "x"]), ValueError, "twice"),
        (lambda: NumpySlicesDataset([object()]), TypeError, "not an array"),
        (lambda: plain().batch(0), ValueError, "at least 1"),
        (lambda: plain().batch(2.0), TypeError, "int"),
        (lambda: plain().repeat(-2), ValueError, "at least 1"),
        (lambda: plain().shuffle(1), ValueError, "at least 2"),
        (lambda: GeneratorDataset(3, ["x"]), TypeError, "iterable"),
        (lambda: GeneratorDataset(Pairs()), ValueError, "column_names"),
        (lambda: list(GeneratorDataset(Pairs(), ["x"])), ValueError, "2 values"),
        (lambda: GeneratorDataset(iter([]), ["x"], shuffle=True), ValueError, "shuffled"),
        (
            lambda: list(GeneratorDataset([np.ones(2), np.ones(3)], ["x"]).batch(2)),
            ValueError,
            "different shapes",
        ),
    ],
)
def test_sources_refuse_rows_that_do_not_fit(call, error, text):
    with pytest.raises(error, match=text):
        call()
