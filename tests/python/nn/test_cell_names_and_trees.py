"""Cells: automatic parameter names, order, the printed tree, and what is refused.

The names and texts are recorded from MindSpore 2.10.0.
"""

from __future__ import annotations

import copy

import numpy as np
import pytest

import gradcell as ms
from gradcell import Parameter, ParameterTuple, Tensor, nn, ops


def names(cell: nn.Cell) -> list[str]:
    return [param.name for param in cell.get_parameters()]


class Inner(nn.Cell):
    def __init__(self):
        super().__init__()
        self.z = Parameter(Tensor([1.0]), name="z")


class Outer(nn.Cell):
    def __init__(self, net, auto_prefix=True):
        super().__init__(auto_prefix=auto_prefix)
        self.net = net
        self.head = nn.Dense(1, 1)


class Mixed(nn.Cell):
    """A parameter set after the sub-cells is listed before theirs all the same."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(3, 2)
        self.layers = nn.SequentialCell(nn.Dense(2, 2, activation="relu"), nn.Tanh())
        self.pair = nn.CellList([nn.ReLU(), nn.MSELoss()])
        self.w = Parameter(Tensor([1.0]), name="own")
        self.matmul = ops.MatMul()
        self.last = nn.Dense(2, 1, has_bias=False)

    def construct(self, x):
        return self.last(self.layers(self.fc(x))) * self.w


def test_names_are_paths():
    assert names(nn.Dense(1, 1)) == ["weight", "bias"]
    assert names(Outer(Inner())) == ["net.z", "head.weight", "head.bias"]
    assert names(Outer(Outer(Inner()))) == [
        "net.net.z",
        "net.head.weight",
        "net.head.bias",
        "head.weight",
        "head.bias",
    ]
    assert names(Outer(Inner(), auto_prefix=False)) == ["z", "weight", "bias"]
    assert names(nn.SequentialCell(nn.Dense(1, 1), nn.Dense(1, 1, has_bias=False))) == [
        "0.weight",
        "0.bias",
        "1.weight",
    ]
    assert names(nn.CellList([nn.Dense(1, 1, has_bias=False)])) == ["0.weight"]


def test_own_parameters_come_first():
    net = Mixed()
    expected = ["own", "fc.weight", "fc.bias", "layers.0.weight", "layers.0.bias", "last.weight"]
    assert names(net) == expected
    assert [param.name for param in net.trainable_params()] == expected
    assert list(net.parameters_dict()) == expected
    assert net.parameters_dict()["fc.weight"] is net.fc.weight
    paths = [path for path, _ in net.parameters_and_names()]
    assert paths == ["w", *expected[1:]]
    net.fc.weight.requires_grad = False
    assert [param.name for param in net.untrainable_params()] == ["fc.weight"]
    assert "fc.weight" not in [param.name for param in net.trainable_params()]


def test_a_parameter_without_name_takes_its_attribute_s():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.a = Parameter(Tensor([1.0]))
            self.b = Parameter(Tensor([1.0]))

    assert names(Net()) == ["a", "b"]


def test_only_cells_parameters_and_parameter_tuples_are_collected():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.loose = [Parameter(Tensor([1.0]))]
            self.pair = ParameterTuple(
                [Parameter(Tensor([1.0]), name="p1"), Parameter(Tensor([1.0]), name="p2")]
            )
            self.cells_in_a_list = [nn.Dense(1, 1)]

    with pytest.warns(RuntimeWarning, match="cells_in_a_list is a list of cells"):
        net = Net()
    assert names(net) == ["p1", "p2"]


def test_wrapping_twice_keeps_the_first_prefix():
    inner = Inner()
    Outer(inner)
    assert inner.z.name == "net.z"
    Outer(inner)
    assert inner.z.name == "net.z"


def test_a_shared_cell_has_one_set_of_parameters():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            layer = nn.Dense(1, 1)
            self.a = layer
            self.b = layer

    net = Net()
    assert len(names(net)) == 2
    assert net.a is net.b


def test_a_replaced_cell_takes_the_place_of_the_old():
    net = Mixed()
    net.fc = nn.Dense(5, 4)
    assert names(net)[1:3] == ["fc.weight", "fc.bias"]
    assert net.fc.weight.shape == (4, 5)


def test_cells_and_names():
    net = Mixed()
    assert list(net.cells()) == [net.fc, net.layers, net.pair, net.last]
    assert list(net.name_cells()) == ["fc", "layers", "pair", "last"]
    found = [name for name, _ in net.cells_and_names()]
    assert found[:3] == ["", "fc", "layers"]
    assert {"layers.0", "layers.1", "pair.1"} <= set(found)


def test_printed_tree():
    text = """\
Mixed(
  (fc): Dense(input_channels=3, output_channels=2, has_bias=True)
  (layers): SequentialCell(
    (0): Dense(
      input_channels=2, output_channels=2, has_bias=True, activation=ReLU()
      (activation): ReLU()
    )
    (1): Tanh()
  )
  (pair): CellList(
    (0): ReLU()
    (1): MSELoss()
  )
  (last): Dense(input_channels=2, output_channels=1)
)"""
    assert str(Mixed()) == text
    assert repr(Mixed()) == text


def test_printed_leaves():
    class Empty(nn.Cell):
        pass

    assert str(Empty()) == "Empty()"
    assert str(nn.Tanh()) == "Tanh()"
    assert str(nn.SequentialCell([nn.Tanh()])) == "SequentialCell(\n  (0): Tanh()\n)"
    assert str(ops.MatMul()) == "Prim[MatMul]<transpose_a=False, transpose_b=False>"
    assert str(ops.Sin()) == "Prim[Sin]"


def test_printed_dtypes():
    assert [str(t) for t in (ms.float32, ms.bool_, ms.bfloat16, ms.int64, ms.uint8)] == [
        "Float32",
        "Bool",
        "BFloat16",
        "Int64",
        "UInt8",
    ]


def test_printed_parameters():
    text = "Parameter (name=w, shape=(2,), dtype=Float32, requires_grad=True)"
    w = Parameter(Tensor([1.0, 2.0]), name="w")
    assert str(w) == text
    assert repr(w) == text
    b = Parameter(Tensor([1]), name="b", requires_grad=False)
    text_b = "Parameter (name=b, shape=(1,), dtype=Int64, requires_grad=False)"
    assert str(ParameterTuple([w, b])) == f"({text}, {text_b})"
    assert str([w]) == f"[{text}]"


def test_modes_of_a_cell_return_the_cell():
    net = Mixed()
    assert net.set_train() is net
    assert net.training and net.fc.training
    assert net.set_train(False) is net
    assert not net.fc.training
    assert net.set_grad() is net
    assert net.requires_grad
    assert net.to_float(ms.float16) is net
    with pytest.raises(ValueError):
        net.to_float(ms.int32)


def test_insert_param_to_cell():
    net = Inner()
    net.insert_param_to_cell("q", Parameter(Tensor([2.0]), name="q"))
    assert names(net) == ["z", "q"]
    assert net.q.asnumpy() == 2
    with pytest.raises(KeyError):
        net.insert_param_to_cell("q.r", Parameter(Tensor([1.0])))
    with pytest.raises(TypeError):
        net.insert_param_to_cell("s", 3)


def test_what_a_cell_refuses():
    class NoSuper(nn.Cell):
        def __init__(self):
            self.layer = nn.Tanh()

    class Recursive(nn.Cell):
        def __init__(self):
            super().__init__()
            self.me = self

        def construct(self, x):
            return self.me(x)

    with pytest.raises(AttributeError):
        NoSuper()
    with pytest.raises(RecursionError):
        Recursive()(Tensor([1.0]))
    with pytest.raises(AttributeError, match="'Inner' object has no attribute 'missing'"):
        Inner().missing  # noqa: B018
    with pytest.raises(AttributeError, match="construct"):
        nn.Cell()(Tensor([1.0]))
    with pytest.raises(TypeError):
        Mixed()()
    with pytest.raises(TypeError):
        nn.SequentialCell(3)
    with pytest.raises(TypeError):
        nn.CellList([3])


def test_parameter_construction():
    assert Parameter(3.0, name="a").shape == ()
    assert Parameter([1.0, 2.0], name="a").shape == (2,)
    assert Parameter(np.ones(2), name="a").dtype == ms.float64
    assert isinstance(Parameter(Tensor(1.0)), Tensor)
    with pytest.raises(ValueError):
        Parameter(Tensor(1.0), name=3)
    with pytest.raises(TypeError):
        Parameter(Tensor(1.0), requires_grad="a")
    with pytest.raises(TypeError):
        Parameter("a", name="a")


def test_set_data_keeps_the_dtype():
    w = Parameter(Tensor([1.0, 2.0]), name="w")
    assert w.set_data(Tensor([3, 4], ms.int32)) is w
    assert w.dtype == ms.float32
    np.testing.assert_array_equal(w.asnumpy(), [3, 4])
    with pytest.raises(TypeError):
        w.set_data("a")


def test_parameter_tuple():
    w = Parameter(Tensor([1.0, 2.0]), name="w")
    clone = ParameterTuple([w]).clone("moments", init="zeros")
    assert isinstance(clone, tuple)
    assert clone[0].name == "moments.w"
    np.testing.assert_array_equal(clone[0].asnumpy(), [0, 0])
    same = ParameterTuple([w]).clone("copy")[0]
    np.testing.assert_array_equal(same.asnumpy(), [1, 2])
    with pytest.raises(TypeError):
        ParameterTuple([Tensor([1.0])])
    with pytest.raises(ValueError):
        ParameterTuple([w, Parameter(Tensor([1.0]), name="w")])


def test_a_deep_copy_shares_nothing():
    net = nn.Dense(2, 1)
    twin = copy.deepcopy(net)
    before = net.weight.asnumpy().copy()
    twin.weight.set_data(Tensor(np.zeros((1, 2), np.float32)))
    np.testing.assert_array_equal(net.weight.asnumpy(), before)
    assert names(twin) == names(net)


def test_dense_starts_as_mindspore_s():
    ms.set_seed(1)
    net = nn.Dense(400, 300)
    bound = 1 / np.sqrt(400)
    for param in (net.weight, net.bias):
        values = param.asnumpy()
        assert param.dtype == ms.float32
        assert np.abs(values).max() <= bound
        np.testing.assert_allclose(values.std(), bound / np.sqrt(3), rtol=0.15)
    assert net.weight.shape == (300, 400)
    ones = nn.Dense(2, 1, weight_init="ones", bias_init="zeros")
    np.testing.assert_array_equal(ones(Tensor([[1.0, 2.0]])).asnumpy(), [[3]])
    given = nn.Dense(2, 1, weight_init=Tensor([[1.0, 2.0]]), bias_init=Tensor([0.5]))
    np.testing.assert_array_equal(given(Tensor([1.0, 2.0])).asnumpy(), [5.5])


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("a", 1), TypeError),
        ((0, 1), ValueError),
        ((3, 1, Tensor([[1.0, 2.0]])), ValueError),
    ],
    ids=["type", "zero", "weight shape"],
)
def test_dense_refuses(arguments, error):
    with pytest.raises(error):
        nn.Dense(*arguments)


def test_mse_loss():
    x, y = Tensor([0.0, 1.0]), Tensor([1.0, 3.0])
    assert float(nn.MSELoss()(x, y)) == 2.5
    assert float(nn.MSELoss("sum")(x, y)) == 5
    np.testing.assert_array_equal(nn.MSELoss(reduction="none")(x, y).asnumpy(), [1, 4])
    with pytest.raises(ValueError, match="reduction"):
        nn.MSELoss(reduction="xx")


def names_of(cell):
    return [p.name.removesuffix(".weight") for p in cell.get_parameters()]


def unit():
    return nn.Dense(1, 1, has_bias=False)


class Appending(nn.Cell):
    """What MindSpore 2.10 names is in the test below."""

    def __init__(self):
        super().__init__()
        self.listed = nn.CellList()
        self.listed.append(unit())
        self.listed.append(unit())
        self.filled = nn.SequentialCell([unit()])
        self.filled.append(unit())
        self.plain = nn.CellList([nn.ReLU()])
        self.plain.append(unit())
        chain = nn.SequentialCell()
        chain.append(nn.SequentialCell(unit()))
        self.chain = chain
        self.insert_child_to_cell("inserted", nn.SequentialCell(unit()))


def test_cells_appended_to_what_was_empty():
    net = Appending()
    assert names_of(net) == ["0", "1", "filled.0", "filled.1", "1", "chain.0.0", "0"]

    class Outer(nn.Cell):
        def __init__(self):
            super().__init__()
            self.net = net

    paths = ["listed.0", "listed.1", "filled.0", "filled.1", "plain.1", "chain.0.0", "inserted.0"]
    assert names_of(Outer()) == ["net." + path for path in paths]


def test_names_that_appear_twice_become_paths_at_the_first_call():
    class Net(Appending):
        def construct(self, x):
            return self.listed[0](x)

    net = Net()
    with pytest.raises(ValueError, match="update_parameters_name"):
        nn.SGD(net.trainable_params())
    net(Tensor([[1.0]]))
    assert names_of(net)[:2] == ["listed.0", "listed.1"] and names_of(net)[-1] == "inserted.0"
    nn.SGD(net.trainable_params())


def test_names_without_a_clash_stay():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.listed = nn.CellList()
            self.listed.append(unit())

        def construct(self, x):
            return self.listed[0](x)

    net = Net()
    net(Tensor([[1.0]]))
    assert names_of(net) == ["0"]


class Building(nn.Cell):
    """A network whose lists get their cells after they were assigned."""

    def __init__(self, build):
        super().__init__()
        build(self)


def one_by_one(net):
    net.layers = nn.CellList()
    for _ in range(3):
        net.layers.append(unit())


def blocks_one_by_one(net):
    net.layers = nn.CellList()
    for _ in range(3):
        block = nn.SequentialCell()
        block.append(unit())
        block.append(unit())
        net.layers.append(block)


def behind_a_named_one(net):
    net.layers = nn.CellList([unit()])
    net.layers.append(unit())
    net.layers.append(nn.SequentialCell(unit(), unit()))


def at_the_front(net):
    net.layers = nn.CellList([unit(), unit()])
    net.layers.insert(0, unit())


def in_between(net):
    net.layers = nn.CellList([unit(), unit()])
    net.layers.insert(1, unit())
    net.layers.extend([unit()])


def behind_a_removed_one(net):
    net.layers = nn.SequentialCell([unit(), unit(), unit()])
    del net.layers[0]
    net.layers.append(unit())


def behind_one_without(net):
    net.layers = nn.SequentialCell([nn.ReLU()])
    net.layers.append(unit())


def assigned_in_between(net):
    cells = nn.CellList()
    cells.append(unit())
    net.layers = cells
    cells.append(unit())


def within_blocks(net):
    net.layers = nn.CellList([nn.SequentialCell(unit()), nn.SequentialCell(unit())])
    net.layers.append(nn.SequentialCell(unit(), unit()))
    net.layers[0].append(unit())


def by_key(net):
    net.layers = nn.CellDict({"a": unit()})
    net.layers["b"] = unit()


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (one_by_one, "0 1 2"),
        (blocks_one_by_one, "0.0 0.1 0.1.0 0.1.1 0.2.0 0.2.1"),
        (behind_a_named_one, "layers.0 layers.1 layers.2.0 layers.2.1"),
        (at_the_front, "layers.0 layers.1 layers.2"),
        (in_between, "layers.0 layers.1 layers.2 layers.3"),
        (behind_a_removed_one, "layers.0 layers.1 layers.2"),
        (behind_one_without, "1"),
        (assigned_in_between, "layers.0 layers.1"),
        (within_blocks, "layers.0.0 layers.0.1 layers.1.0 layers.2.0 layers.2.1"),
        (by_key, "layers.a layers.b"),
    ],
)
def test_names_of_cells_that_come_later(build, expected):
    """What MindSpore 2.10 names them."""
    assert names_of(Building(build)) == expected.split()
