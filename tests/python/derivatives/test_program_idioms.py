"""What programs written for MindSpore say besides computing: settings, processes, compiling, logging,
containers; what has no meaning here says so once."""

from __future__ import annotations

import inspect
import subprocess
import sys
import warnings

import numpy as np
import pytest

import gradcell as gc
from gradcell import Tensor, nn, ops
from gradcell.base import notice


@pytest.fixture(autouse=True)
def as_at_first():
    notice._said.clear()
    yield
    gc.reset_auto_parallel_context()
    gc.communication.release()


def run(code):
    """What a process of its own prints, with mindspore as a name for gradcell."""
    code = "import gradcell; gradcell.mindspore.install()\n" + code
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)


# One process as a group of one --------------------------------------------------------------------


def test_a_group_of_one():
    gc.communication.init("nccl")
    assert gc.communication.get_rank() == 0 and gc.communication.get_group_size() == 1
    gc.communication.create_group("mine", [0])
    assert gc.communication.get_process_group_ranks("mine") == [0]
    x = Tensor([1.0, 2.0])
    for op in (ops.AllReduce(), ops.AllReduce(ops.ReduceOp.MAX), ops.AllGather(), ops.Broadcast(0)):
        np.testing.assert_array_equal(op(x).asnumpy(), x.asnumpy())
    np.testing.assert_array_equal(
        gc.grad(lambda x: ops.AllReduce()(x * x).sum())(x).asnumpy(), [2, 4]
    )
    assert gc.communication.comm_func.all_reduce(x)[1] is None
    with pytest.raises(RuntimeError, match="no other process to talk to"):
        gc.communication.comm_func.send(x)
    with pytest.raises(ValueError, match="rank_ids is"):
        gc.communication.create_group("all", [0, 1])
    with pytest.raises(ValueError, match="no group 'other'"):
        gc.communication.get_rank("other")
    with pytest.raises(ValueError, match="backend_name"):
        gc.communication.init("mpi")


def test_parallel_settings_are_kept():
    assert gc.get_auto_parallel_context("parallel_mode") == gc.ParallelMode.STAND_ALONE
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gc.set_auto_parallel_context(
            parallel_mode=gc.context.ParallelMode.DATA_PARALLEL, gradients_mean=True, device_num=1
        )
    assert gc.get_auto_parallel_context("gradients_mean") is True
    assert nn.DistributedGradReducer([]).mean is True
    with pytest.warns(RuntimeWarning, match="there is one process"):
        gc.set_auto_parallel_context(device_num=8)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # said once
        gc.set_auto_parallel_context(device_num=8)
    gc.reset_auto_parallel_context()
    assert gc.get_auto_parallel_context("device_num") == 1
    with pytest.raises(ValueError, match="keyword foo is not recognized"):
        gc.set_auto_parallel_context(foo=1)
    with pytest.raises(ValueError, match="parallel_mode"):
        gc.set_auto_parallel_context(parallel_mode="x")
    with pytest.raises(ValueError, match="device_num"):
        gc.set_auto_parallel_context(device_num=0)


def test_training_in_data_parallel_mode_is_training():
    def trained():
        gc.set_seed(3)
        net = nn.Dense(2, 1)
        step = nn.TrainOneStepCell(
            nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), 0.1)
        )
        step(Tensor(np.ones((4, 2), np.float32)), Tensor(np.ones((4, 1), np.float32)))
        return net.weight.asnumpy()

    alone = trained()
    gc.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
    np.testing.assert_array_equal(trained(), alone)


def test_parts_of_a_batch():
    net = nn.Dense(3, 1)
    x = Tensor(np.arange(12, dtype=np.float32).reshape(4, 3))
    whole = ops.reduce_mean(net(x))

    class Loss(nn.Cell):
        def __init__(self):
            super().__init__()
            self.net = net

        def construct(self, x):
            return ops.reduce_mean(self.net(x))

    for cell in (gc.parallel.nn.Pipeline(Loss(), 2), gc.parallel.nn.GradAccumulation(Loss(), 4)):
        np.testing.assert_allclose(cell(x).asnumpy(), whole.asnumpy(), rtol=1e-6)


# Settings -----------------------------------------------------------------------------------------


def test_settings_without_effect_say_so_once():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gc.set_context(jit_syntax_level=gc.STRICT, save_graphs=False, enable_graph_kernel=True)
        gc.set_context(max_call_depth=20)
    assert gc.get_context("max_call_depth") == 20 and gc.get_context("save_graphs") is False
    with pytest.warns(RuntimeWarning, match="save_graphs.*draw_graph"):
        gc.set_context(save_graphs=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gc.set_context(save_graphs=True)
    gc.set_context(save_graphs=False, max_call_depth=1000)
    assert gc.get_context(attr_key="mode") == gc.PYNATIVE_MODE
    gc.set_device("CPU")
    assert gc.get_current_device() == ("CPU", 0)
    with pytest.raises(ValueError, match="unknown option 'nothing'"):
        gc.get_context("nothing")


def test_words_about_compiling():
    @gc.jit_class
    class Scale:
        def __init__(self, factor):
            self.factor = factor

        def __call__(self, x):
            return x * self.factor

    @gc.constexpr
    def twice(n):
        return 2 * n

    class Net(nn.Cell):
        @gc.lazy_inline
        def __init__(self):
            super().__init__()
            self.scale = Scale(twice(3))

        def construct(self, x):
            return self.scale(x)

    config = gc.JitConfig(jit_level="O1")
    net = Net()
    net.set_jit_config(config)
    assert net.jit_config_dict["jit_level"] == "O1"
    assert float(gc.jit(net, jit_config=config)(Tensor(2.0))) == 12.0
    with pytest.raises(TypeError, match=r"cannot be used for nn\.Cell"):
        gc.jit_class(Net)
    with pytest.raises(ValueError, match="jit_level"):
        gc.JitConfig(jit_level="O9")
    with pytest.raises(TypeError, match="JitConfig is needed"):
        net.set_jit_config({"jit_level": "O0"})


def test_mutable():
    for value in (3, 2.5, (1, 2), [Tensor(1.0)], {"a": 1}):
        out = gc.mutable(value)
        assert out == value and isinstance(out, type(value)) and out.__ms_mutable__
    t = Tensor([1.0])
    assert gc.mutable(t) is t
    got = gc.jit(lambda xs: xs[0] * xs[1])(gc.mutable((Tensor(2.0), Tensor(3.0))))
    assert float(got) == 6.0
    with pytest.raises(TypeError, match="must be a tuple, list, dict"):
        gc.mutable("text")
    with pytest.raises(ValueError, match="first input should be list or"):
        gc.mutable(3, dynamic_len=True)


def test_data_sink():
    numbers = np.arange(6, dtype=np.float32)
    data = gc.dataset.NumpySlicesDataset(numbers, shuffle=False).batch(2)
    seen = []

    def step(batch):
        seen.append(batch.asnumpy().tolist())
        return batch.sum()

    one = gc.data_sink(step, data)
    assert [float(one()) for _ in range(4)] == [1.0, 5.0, 9.0, 1.0]  # from the front again
    assert seen[:3] == [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]
    assert float(gc.data_sink(step, data, sink_size=2)()) == 5.0
    with pytest.raises(ValueError, match="sink_size"):
        gc.data_sink(step, data, sink_size=0)


def test_declared_inputs():
    net = nn.Dense(3, 2)
    net.set_inputs(Tensor(shape=[None, 3], dtype=gc.float32))
    for n in (1, 4):
        assert net(Tensor(np.ones((n, 3), np.float32))).shape == (n, 2)
    with pytest.raises(
        ValueError, match=r"declared by set_inputs as Tensor\[Float32\] of shape \[None, 3\]"
    ):
        net(Tensor(np.ones((4, 4), np.float32)))
    with pytest.raises(TypeError, match="declared by set_inputs"):
        net(Tensor(np.ones((4, 3), np.float16)))
    net.compile(Tensor(np.ones((4, 3), np.float32)))
    assert net.get_inputs()[0].shape == (0, 3)
    with pytest.raises(ValueError, match="takes no init"):
        Tensor(shape=[None, 3], dtype=gc.float32, init="ones")
    np.testing.assert_array_equal(Tensor(shape=[2], dtype=gc.int32).asnumpy(), [0, 0])


def test_cells_settings_and_states():
    net = nn.SequentialCell(nn.Dense(2, 3), nn.ReLU(), nn.Dense(3, 1))
    assert net.get_sub_cell("0") is net[0]
    with pytest.raises(AttributeError, match=r"no cell at .x\.y."):
        net.get_sub_cell("x.y")
    other = nn.SequentialCell(nn.Dense(2, 3), nn.ReLU(), nn.Dense(3, 1))
    assert other.load_state_dict(net.state_dict()) == ([], [])
    for a, b in zip(net.get_parameters(), other.get_parameters(), strict=True):
        np.testing.assert_array_equal(a.asnumpy(), b.asnumpy())
    with pytest.raises(ValueError, match="parameters without a value"):
        other.load_state_dict({})
    with pytest.raises(ValueError, match="has shape"):
        other.load_state_dict({"0.weight": Tensor([1.0])}, strict=False)
    assert net.recompute() is None
    assert net.set_comm_fusion(2) is net and net.set_data_parallel() is net


# Logging, random states, containers ---------------------------------------------------------------


def test_log(capsys, monkeypatch):
    gc.log.info("quiet")
    gc.log.warning("%d of %s", 2, "them")
    line = capsys.readouterr().err
    assert line.startswith("[WARNING] ME(") and "test_program_idioms.py:" in line
    assert line.endswith("] 2 of them\n") and line.count("\n") == 1
    monkeypatch.setenv("GLOG_v", "0")
    gc.log.debug("now")
    assert "[DEBUG]" in capsys.readouterr().err and gc.log.get_level() == "0"
    monkeypatch.setenv("GLOG_v", "3")
    gc.log.warning("hidden")
    assert capsys.readouterr().err == ""


def test_random_states():
    gc.manual_seed(5)
    state = gc.get_rng_state()
    first = ops.rand(3).asnumpy()
    assert (ops.rand(3).asnumpy() != first).any()
    gc.set_rng_state(state)
    np.testing.assert_array_equal(ops.rand(3).asnumpy(), first)
    assert gc.initial_seed() == 5 and gc.default_generator.initial_seed() == 5
    gc.default_generator.set_state(state)
    np.testing.assert_array_equal(ops.rand(3).asnumpy(), first)
    np.testing.assert_array_equal(gc.get_rng_state(), gc.default_generator.get_state())
    with pytest.raises(TypeError, match="expected a Tensor of uint8"):
        gc.default_generator.set_state(Tensor([1, 2]))


def test_draws_follow_their_probabilities():
    gc.set_seed(11)
    weights = Tensor([1.0, 0.0, 3.0])
    drawn = ops.multinomial(weights, 8000).asnumpy()
    share = np.bincount(drawn, minlength=3) / 8000
    np.testing.assert_allclose(share, [0.25, 0, 0.75], atol=0.02)
    assert sorted(ops.multinomial(weights, 2, replacement=False).asnumpy().tolist()) == [0, 2]
    logits = Tensor(np.log([[0.2, 0.8], [0.5, 0.5]]).astype(np.float32))
    rows = ops.random_categorical(logits, 8000).asnumpy()
    np.testing.assert_allclose(rows.mean(1), [0.8, 0.5], atol=0.02)
    order = ops.shuffle(Tensor(np.arange(50))).asnumpy()
    assert sorted(order) == list(range(50)) and (order != np.arange(50)).any()
    mask = Tensor(np.array([[True, False], [False, True]]))
    places, counts = ops.RandomChoiceWithMask(3)(mask)
    assert sorted(places.asnumpy()[:2].tolist()) == [[0, 0], [1, 1]]
    assert counts.asnumpy().tolist() == [True, True, False]


def test_sparse_tensors():
    indices, values = Tensor([[0, 1], [2, 0]]), Tensor([3.0, 4.0])
    dense = np.array([[0, 3], [0, 0], [4, 0]], np.float32)
    coo = gc.COOTensor(indices, values, (3, 2))
    csr = coo.to_csr()
    rows = gc.RowTensor(Tensor([0, 2]), Tensor([[0.0, 3.0], [4.0, 0.0]]), (3, 2))
    for sparse in (coo, csr, csr.to_coo(), rows):
        np.testing.assert_array_equal(sparse.to_dense().asnumpy(), dense)
        assert sparse.shape == (3, 2) and sparse.dtype == gc.float32
    np.testing.assert_array_equal(csr.indptr.asnumpy(), [0, 1, 1, 2])
    np.testing.assert_array_equal(csr.mm(Tensor([[1.0], [2.0]])).asnumpy(), [[6], [0], [4]])
    with pytest.raises(ValueError, match="do not fit"):
        gc.COOTensor(indices, values, (3, 2, 1))


def test_dtypes_as_programs_ask_for_them():
    from gradcell import dtype
    from gradcell.common import kinds

    assert dtype.dtype_to_nptype(gc.float16) is np.float16
    assert dtype.pytype_to_dtype(float) == gc.float64 and dtype.pytype_to_dtype(np.int8) == gc.int8
    assert gc.float == gc.float32 and gc.int == gc.int32 and gc.bool == gc.bool_
    assert isinstance(gc.float16, kinds.Float) and not isinstance(gc.int8, kinds.Float)
    assert isinstance(gc.int8, kinds.Number) and not isinstance(3, kinds.Number)
    with pytest.raises(NotImplementedError, match="convert python type"):
        dtype.pytype_to_dtype(str)


def test_minimize():
    from gradcell.scipy.optimize import minimize

    def valley(x, a):
        return ops.sum(100 * ops.square(x[1:] - ops.square(x[:-1])) + ops.square(a - x[:-1]))

    found = minimize(valley, Tensor(np.zeros(4)), args=(1.0,), options={"gtol": 1e-9})
    assert found.success and found.nit > 5
    np.testing.assert_allclose(found.x.asnumpy(), np.ones(4), atol=1e-7)
    with pytest.raises(NotImplementedError, match="'BFGS' without them is"):
        minimize(valley, Tensor(np.zeros(4)), bounds=[(0, 1)] * 4)


# Names --------------------------------------------------------------------------------------------


def test_functions_say_what_they_take():
    add, linear = gc.numpy.add, gc.mint.nn.Linear
    assert list(inspect.signature(add).parameters) == ["x1", "x2", "dtype"]
    assert add.__name__ == "add" and "The sum of" in add.__doc__
    assert "def mean(input: Any, dim: Any = None" in inspect.getsource(gc.mint.mean)
    assert "def roll(" in inspect.getsource(gc.mint.roll) and "def roll(" in inspect.getsource(
        gc.numpy.roll
    )
    assert gc.numpy.add is add and issubclass(linear, nn.Dense)
    assert str(inspect.signature(ops.MaxPool)).startswith("(kernel_size=1, strides=1")
    with pytest.raises(TypeError, match="unexpected keyword argument 'z'"):
        add(1, 2, z=3)
    with pytest.raises(TypeError, match=r"ops.MaxPool\(.*test_program_idioms.py"):
        ops.MaxPool(window=2)
    with pytest.raises(ValueError, match=r"test_program_idioms\.py"):
        add(Tensor([1.0, 2.0]), Tensor([1.0, 2.0, 3.0]))


def test_missing_names_are_told_where_a_program_hides_the_error():
    done = run(
        "for line in ('from mindspore.nn import NoCell', 'import mindspore.no_part',\n"
        "             'from mindspore.log import nothing', 'from mindspore.nn import NoCell'):\n"
        "    try:\n"
        "        exec(line)\n"
        "    except ImportError as error:\n"
        "        print(error)\n"
        "import mindspore\n"
        "assert not hasattr(mindspore, 'nothing')\n"
    )
    assert done.returncode == 0
    expected = ["nn.NoCell", "no_part", "log.nothing"]
    assert done.stderr.splitlines() == [f"gradcell has no mindspore.{name}" for name in expected]
    assert done.stdout.splitlines() == [
        f"gradcell has no mindspore.{name}" for name in [*expected, "nn.NoCell"]
    ]


@pytest.mark.one_in(2)
def test_older_paths():
    done = run(
        "import mindspore as ms, mindspore.numpy as mnp\n"
        "from mindspore.ops.operations.math_ops import MatMul\n"
        "from mindspore.ops.primitive import constexpr\n"
        "from mindspore.common.api import _pynative_executor, _cell_graph_executor\n"
        "from mindspore._c_expression.typing import Number\n"
        "from mindspore.communication.management import init, get_rank, get_group_size\n"
        "from mindspore.parallel._auto_parallel_context import auto_parallel_context\n"
        "from mindspore.context import ParallelMode\n"
        "from mindspore._checkparam import check_positive_int\n"
        "from mindspore.nn.layer.activation import Tanh\n"
        "import mindspore.nn.layer as layer\n"
        "assert layer.CellList is ms.nn.CellList and MatMul is ms.ops.MatMul and Tanh is ms.nn.Tanh\n"
        "assert ms.ops.functional.tuple_to_array((1, 2)).shape == (2,)\n"
        "assert isinstance(ms.float32, Number) and ms.ops.P.Shape is ms.ops.Shape\n"
        "_pynative_executor.sync()\n"
        "net = ms.nn.Dense(2, 1)\n"
        "_cell_graph_executor.compile(net, ms.ops.ones((3, 2)), phase='train')\n"
        "assert auto_parallel_context().get_device_num() == 1\n"
        "check_positive_int(3, 'n')\n"
        "try:\n"
        "    check_positive_int(0, 'n', 'Op')\n"
        "except ValueError as error:\n"
        "    print(error)\n"
        "print(mnp.arange(3).dtype, tuple(map(int, ms.__version__.split('.')[:2])) >= (2, 0))\n"
    )
    assert done.returncode == 0, done.stderr
    assert "For 'Op', the 'n' must be > 0, but got '0'." in done.stdout
    assert done.stdout.splitlines()[-1] == "Int32 True"


class Standardised(nn.Conv2d):
    """A convolution whose weights have mean 0 and variance 1, over what its base keeps."""

    def construct(self, x):
        mean = self.weight.mean((1, 2, 3), keep_dims=True)
        deviation = self.weight.std((1, 2, 3), keepdims=True)
        out = self.conv2d(x, (self.weight - mean) / (deviation + 1e-5))
        return self.bias_add(out, self.bias) if self.has_bias else out


def test_a_construct_over_the_primitives_of_its_base():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, 3, 5, 5))
    net = Standardised(3, 4, 3, pad_mode="pad", padding=1, has_bias=True)
    w = net.weight.asnumpy().astype(np.float64)
    w = (w - w.mean((1, 2, 3), keepdims=True)) / (w.std((1, 2, 3), keepdims=True) + 1e-5)
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    expected = np.einsum("nchwij,ocij->nohw", windows, w)
    expected += net.bias.asnumpy()[:, None, None]
    np.testing.assert_allclose(net(Tensor(x, gc.float32)), expected, atol=2e-5)
    slopes = gc.grad(lambda: net(Tensor(x, gc.float32)).square().sum(), None, net.weight)()
    assert slopes.shape == (4, 3, 3, 3) and np.isfinite(slopes.asnumpy()).all()


def test_a_layer_norm_along_the_channels():
    class ChannelNorm(nn.LayerNorm):
        def construct(self, x):
            y, mean, _ = self.layer_norm(ops.transpose(x, (0, 2, 3, 1)), self.gamma, self.beta)
            return ops.transpose(y, (0, 3, 1, 2)), mean

    x = np.random.default_rng(1).standard_normal((2, 4, 3, 3))
    y, mean = ChannelNorm((4,), epsilon=1e-6)(Tensor(x, gc.float32))
    centred = x - x.mean(1, keepdims=True)
    np.testing.assert_allclose(y, centred / np.sqrt(x.var(1, keepdims=True) + 1e-6), atol=1e-5)
    np.testing.assert_allclose(mean.asnumpy()[..., 0], x.mean(1), atol=1e-6)


def test_what_a_base_keeps_gives_way_to_what_is_set():
    class Mine(nn.Dense):
        def __init__(self):
            super().__init__(3, 2)
            self.matmul = ops.MatMul()

    assert Mine().matmul(Tensor(np.ones((1, 2))), Tensor(np.ones((2, 5)))).shape == (1, 5)
    with pytest.raises(AttributeError, match="no attribute 'conv2d'"):
        _ = Mine().conv2d
