"""Containers, printed cells, hooks, flags, pickling: what is common to cells."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from nn_checks import normal

import gradcell as ms
from gradcell import Parameter, Tensor, nn

# Containers --------------------------------------------------------------------------------------


def test_sequential_cell():
    net = nn.SequentialCell(nn.Dense(2, 3), nn.ReLU())
    net.append(nn.Dense(3, 1))
    assert len(net) == 3 and isinstance(net[-1], nn.Dense)
    assert [p.name for p in net.get_parameters()] == ["0.weight", "0.bias", "2.weight", "2.bias"]
    assert net(Tensor([[1.0, 2.0]])).shape == (1, 1)
    assert isinstance(net[:2], nn.SequentialCell) and len(net[:2]) == 2
    del net[0]
    assert list(net.name_cells()) == ["0", "1"]
    assert [p.name for p in net.get_parameters()] == ["1.weight", "1.bias"]
    with pytest.raises(IndexError):
        net[5]
    assert isinstance(nn.SequentialCell({"first": nn.ReLU()}).first, nn.ReLU)


def test_containers_inside_a_cell():
    class Outer(nn.Cell):
        def __init__(self, net):
            super().__init__()
            self.net = net

    for kind in (nn.SequentialCell, nn.CellList):
        outer = Outer(kind([nn.Dense(1, 1, has_bias=False)]))
        outer.net.append(nn.Dense(1, 1, has_bias=False))
        names = ["net.0.weight", "net.1.weight"]
        assert [p.name for p in outer.get_parameters()] == names
        assert [p.name for p in outer.net[1:].get_parameters()] == names[1:]
        assert [p.name for p in outer.get_parameters()] == names
        outer.net[0] = nn.Dense(1, 1, has_bias=False)
        assert [p.name for p in outer.get_parameters()] == names


def test_cell_list():
    cells = nn.CellList([nn.Dense(1, 1)])
    cells.extend([nn.Dense(1, 1), nn.ReLU()])
    cells.insert(0, nn.Tanh())
    assert [type(c).__name__ for c in cells] == ["Tanh", "Dense", "Dense", "ReLU"]
    assert [p.name for p in cells.get_parameters()][:2] == ["1.weight", "1.bias"]
    with pytest.raises(NotImplementedError):
        cells(Tensor([1.0]))


def test_cell_dict():
    cells = nn.CellDict({"a": nn.Dense(1, 1), "b": nn.ReLU()})
    assert list(cells) == ["a", "b"] and "a" in cells and len(cells) == 2
    assert [p.name for p in cells.get_parameters()] == ["a.weight", "a.bias"]
    assert str(nn.CellDict({"a": nn.ReLU()})) == "CellDict(\n  (a): ReLU()\n)"
    assert isinstance(cells.pop("b"), nn.ReLU)
    with pytest.raises(TypeError):
        cells["c"] = 3
    with pytest.raises(KeyError):
        cells["x.y"] = nn.ReLU()


# Printing ----------------------------------------------------------------------------------------


def test_printed_layers():
    gamma = "Parameter (name={}, shape=(3,), dtype=Float32, requires_grad={})"
    statistics = (
        f"gamma={gamma.format('gamma', True)}, beta={gamma.format('beta', True)}, "
        f"moving_mean={gamma.format('mean', False)}, "
        f"moving_variance={gamma.format('variance', False)}"
    )
    expected = {
        nn.MaxPool2d(2, 2): "MaxPool2d(kernel_size=2, stride=2, pad_mode=VALID)",
        nn.AvgPool2d((2, 3), 2, "same"): ("AvgPool2d(kernel_size=(2, 3), stride=2, pad_mode=SAME)"),
        nn.BatchNorm1d(3): f"BatchNorm1d(num_features=3, eps=1e-05, momentum=0.9, {statistics})",
        nn.GroupNorm(1, 2): "GroupNorm(num_groups=1, num_channels=2)",
        nn.Embedding(5, 3): (
            "Embedding(vocab_size=5, embedding_size=3, use_one_hot=False, "
            "embedding_table=Parameter (name=embedding_table, shape=(5, 3), dtype=Float32, "
            "requires_grad=True), dtype=Float32, padding_idx=None)"
        ),
        nn.Dropout(p=0.3): "Dropout(p=0.3)",
        nn.Dropout(0.8): "Dropout(keep_prob=0.8)",
        nn.Softmax(): "Softmax()",
        nn.CrossEntropyLoss(): "CrossEntropyLoss()",
    }
    for cell, text in expected.items():
        assert str(cell) == text
    text = str(nn.Conv2d(2, 3, 3))
    assert text.startswith(
        "Conv2d(input_channels=2, output_channels=3, kernel_size=(3, 3), stride=(1, 1), "
        "pad_mode=same, padding=0, dilation=(1, 1), group=1, has_bias=False, weight_init="
    )
    assert text.endswith(", bias_init=None, format=NCHW)")


# What every cell can do ---------------------------------------------------------------------------


def test_hooks(mode):
    net = nn.SequentialCell(nn.Dense(2, 1, "ones", "zeros"))
    x = Tensor([[1.0, 2.0]])
    after = net[0].register_forward_hook(lambda cell, inputs, out: out * 10)
    assert float(net(x)) == 30
    before = net[0].register_forward_pre_hook(lambda cell, inputs: (inputs[0] * 0,))
    assert float(net(x)) == 0
    before.remove()
    assert float(net(x)) == 30
    np.testing.assert_array_equal(ms.grad(net)(x).asnumpy(), [[10, 10]])
    after.remove()
    assert float(net(x)) == 3
    with pytest.raises(TypeError):
        net.register_forward_hook(3)


def test_hooks_stay_whether_or_not_their_handles_are_kept(mode):
    net = nn.SequentialCell(nn.Dense(2, 1, "ones", "zeros"))
    x = Tensor([[1.0, 2.0]])
    called = []
    for k in range(300):
        net[0].register_forward_hook(lambda cell, inputs, out, k=k: called.append(k))
    for k in range(300):
        net[0].register_forward_pre_hook(lambda cell, inputs, k=k: called.append(-1 - k))
    net(x)
    assert called == [-1 - k for k in range(300)] + list(range(300))


def test_a_parameter_in_a_text():
    bias = nn.Dense(2, 1).bias
    text = "Parameter (name=bias, shape=(1,), dtype=Float32, requires_grad=True)"
    assert f"{bias}" == str(bias) == text


def test_flags_and_names():
    net = nn.SequentialCell(nn.Dense(2, 1))
    assert net.add_flags(a=True) is net and net.a and net.get_flags() == {"a": True}
    assert net.add_flags_recursive(b=2)[0].b == 2
    net.update_cell_prefix()
    assert net[0].param_prefix == "0"
    assert list(net.state_dict()) == ["0.weight", "0.bias"]
    net.check_names()
    net[0].bias.name = "0.weight"
    with pytest.raises(ValueError, match=r"0\.weight"):
        net.check_names()


def test_what_may_replace_an_attribute():
    net = nn.SequentialCell(nn.Dense(2, 1))
    dense = net[0]
    with pytest.raises(TypeError, match="Parameter 'weight' already exists in network"):
        dense.weight = 3
    with pytest.raises(TypeError, match="Sub cell 'inner' already exists in network"):
        dense.inner = nn.ReLU()
        dense.inner = 3
    dense.weight = Tensor([[5.0, 6.0]])
    np.testing.assert_array_equal(dense.weight.asnumpy(), [[5, 6]])
    with pytest.raises(KeyError):
        dense.insert_child_to_cell("a.b", nn.ReLU())
    with pytest.raises(KeyError):
        dense.insert_param_to_cell("inner", Parameter(Tensor([1.0]), name="q"))


def test_pickled_cells_give_the_same():
    net = nn.SequentialCell(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Flatten(), nn.Dense(32, 3))
    x = Tensor(normal(2, 1, 4, 4).astype(np.float32))
    twin = pickle.loads(pickle.dumps(net))
    np.testing.assert_array_equal(twin(x).asnumpy(), net(x).asnumpy())
    assert [p.name for p in twin.get_parameters()] == [p.name for p in net.get_parameters()]


def test_training_and_evaluation_are_compiled_apart(mode):
    net = nn.SequentialCell(nn.BatchNorm1d(2), nn.Dropout(p=0.5))
    x = Tensor(normal(50, 2).astype(np.float32))
    first = net(x).asnumpy()
    net.set_train()
    assert (net(x).asnumpy() == 0).any()
    net.set_train(False)
    assert not (net(x).asnumpy() == 0).any()
    assert (net(x).asnumpy() != first).any()  # the statistics have moved
