"""Checkpoints: what is saved, whole files only, damage of every kind."""

import importlib.util
import json
import os
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from training_fixtures import Linear, assert_same, batch, snapshot

import gradcell as ms
from gradcell import Parameter, Tensor, nn, ops
from gradcell.files import pytorch
from gradcell.files.protobuf import field
from gradcell.train import (
    ckpt,
    load_checkpoint,
    load_param_into_net,
    save_checkpoint,
    serialization,
)

FILES = Path(__file__).parent
TOOLS = Path(__file__).parents[3] / "tools"


class Types(nn.Cell):
    def __init__(self, seed=0):
        super().__init__()
        rng = np.random.RandomState(seed)
        for dtype in (ms.float16, ms.bfloat16, ms.float32, ms.float64, ms.int32, ms.int64):
            name = f"p_{dtype.name}"
            setattr(self, name, Parameter(Tensor(rng.randn(2, 3) * 9, dtype), name=name))
        for dtype in (ms.uint16, ms.uint32, ms.uint64, ms.complex64):
            name = f"p_{dtype.name}"
            values = Tensor(rng.randint(0, 99, (2, 3)) * (1 + 1j * dtype.is_complex), dtype)
            setattr(self, name, Parameter(values, name=name, requires_grad=False))
        self.flag = Parameter(Tensor([True, False]), name="flag", requires_grad=False)
        self.scalar = Parameter(Tensor(rng.randn()), name="scalar")


@pytest.fixture(params=["ckpt", "safetensors"])
def path(tmp_path, request):
    return str(tmp_path / f"net.{request.param}")


def test_every_dtype_comes_back(path):
    net, other = Types(0), Types(1)
    save_checkpoint(net, path)
    found = load_checkpoint(path)
    assert list(found) == [p.name for p in net.get_parameters()]
    assert all(isinstance(p, Parameter) for p in found.values())
    assert load_param_into_net(other, found) == ([], [])
    assert_same(snapshot(net), snapshot(other))
    assert [p.dtype for p in other.get_parameters()] == [p.dtype for p in net.get_parameters()]


def test_safetensors_of_other_programs(tmp_path):
    from safetensors.numpy import load_file, save_file

    path = str(tmp_path / "net.safetensors")
    save_checkpoint(Linear(), path)
    np.testing.assert_array_equal(load_file(path)["w"], Linear().w.asnumpy())
    save_file({"w": np.array([3, 2, 1], np.float32)}, path)  # of another program
    net = Linear()
    load_checkpoint(path, net)
    assert net.w.asnumpy().tolist() == [3, 2, 1]
    os.rename(path, path + ".ckpt")  # the bytes say which format it is, not the name
    assert load_checkpoint(path + ".ckpt")["w"].asnumpy().tolist() == [3, 2, 1]


def test_the_format_that_is_asked_for(tmp_path):
    save_checkpoint(Linear(), str(tmp_path / "a"), format="safetensors")
    assert load_checkpoint(str(tmp_path / "a"), format="safetensors").keys() == {"w"}
    assert os.listdir(tmp_path) == ["a.safetensors"]
    with pytest.raises(ValueError, match="'format' must be 'ckpt' or 'safetensors', got 'pt'"):
        save_checkpoint(Linear(), str(tmp_path / "a"), format="pt")


# MindSpore's files: what its save_checkpoint wrote (tools/make_mindspore_files.py) ----------------


def test_every_dtype_of_mindspore():
    found = load_checkpoint(str(FILES / "dtypes.ckpt"))
    names = (
        "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64 "
        "complex64 complex128"
    ).split()
    assert [*found] == [*names, "scalar", "model.0.weight", "epoch_num", "rate", "flag", "note"]
    for name in names:
        expected = [[False, True, True], [True, True, True]] if name == "bool" else None
        assert found[name].dtype.name == name
        assert found[name].asnumpy().tolist() == (expected or [[0, 1, 2], [3, 4, 5]])
    assert (found["scalar"].shape, float(found["scalar"])) == ((), 3.5)
    assert (int(found["epoch_num"]), bool(found["flag"])) == (3, True)
    assert float(found["rate"]) == np.float32(0.1)
    assert found["note"] == "grün"
    assert found["model.0.weight"].shape == (2, 2)
    assert isinstance(found["model.0.weight"], Parameter)


def test_a_network_of_mindspore():
    """The transformer of tools/compare_checkpoints.py, and what MindSpore said it computes."""
    spec = importlib.util.spec_from_file_location("networks", TOOLS / "compare_checkpoints.py")
    networks = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(networks)
    ms.set_seed(2)
    net = networks.transformer(nn, ops, size=8, words=11)
    found = load_checkpoint(str(FILES / "transformer.ckpt"))
    assert [*found] == [p.name for p in net.get_parameters()]
    assert load_param_into_net(net, found, strict_load=True) == ([], [])
    out = net(Tensor(np.arange(10, dtype=np.int32).reshape(2, 5))).asnumpy()
    expected = [
        [-0.9433457255363464, -0.03220769762992859, 0.7727262377738953, -0.544665515422821],
        [-0.6160485744476318, 0.732439398765564, 0.8364173769950867, -0.7555445432662964],
    ]
    np.testing.assert_allclose(out[:, -1, :4], expected, rtol=3e-5, atol=1e-6)


def test_a_dtype_that_is_not_there(tmp_path):
    tensor = field(1, 1) + field(2, "Int4") + field(3, b"\0")
    path = tmp_path / "a.ckpt"
    path.write_bytes(field(1, field(1, "w") + field(2, tensor)))
    with pytest.raises(ValueError, match=r"'w' \(byte 0\) has the dtype 'Int4', which gradcell"):
        load_checkpoint(str(path))


def test_a_file_of_pytorch(tmp_path):
    """pytorch.pt is what torch.save of PyTorch 2.13 wrote of these values."""
    path = FILES / "pytorch.pt"
    found = ms.load_checkpoint(path)
    view = np.arange(12, dtype=np.float32).reshape(3, 4)
    weights = [
        np.arange(int(np.prod(s)), dtype=np.float32).reshape(s) / 8 for s in [(3, 2), 3, (1, 3), 1]
    ]
    names = [f"{k}.{n}" for k in (0, 2) for n in ("weight", "bias")]
    want = {f"model.{n}": w - k for k, (n, w) in enumerate(zip(names, weights, strict=True))}
    want |= {"views.0": view.T, "views.1": view[1:, ::2], "bf16": np.float32([1.5, -2.0])}
    want |= {"half": np.float16([0.1]), "double": np.float64(0.1), "int": np.array([-3, 2**40])}
    want |= {"flag": np.array([True, False]), "complex": np.complex64([1 + 2j])}
    want |= {"empty": np.zeros((0, 3), np.float32), "parameter": np.ones(2, np.float32)}
    want |= {"epoch": np.int64(3), "rate": np.float64(1e-3)}
    assert found.pop("note") == "ab" and set(found) == set(want)
    for name, value in want.items():
        got = found[name].asnumpy()
        assert got.dtype == value.dtype and got.shape == value.shape, name
        np.testing.assert_array_equal(got, value, err_msg=name)
    net = nn.SequentialCell(nn.Dense(2, 3), nn.Tanh(), nn.Dense(3, 1))
    with pytest.warns(RuntimeWarning, match="'model.' before their names"):
        ms.load_checkpoint(path, net=net, specify_prefix="model")
    np.testing.assert_array_equal(net[2].weight.asnumpy(), want["model.2.weight"])
    old = tmp_path / "old.pt"
    old.write_bytes(pytorch.OLD + b"\x80\x02M\xe9\x03.")
    with pytest.raises(ValueError, match=r"before its version 1\.6"):
        ms.load_checkpoint(old)


@pytest.mark.parametrize("place", range(40, 4800, 119))
def test_a_damaged_file_of_pytorch(place, tmp_path):
    whole = bytearray((FILES / "pytorch.pt").read_bytes())
    cut, changed = tmp_path / "cut.pt", tmp_path / "changed.pt"
    cut.write_bytes(whole[:place])
    with pytest.raises(ValueError, match="load_checkpoint"):
        ms.load_checkpoint(cut)
    whole[place] ^= 255
    changed.write_bytes(whole)
    try:
        found = ms.load_checkpoint(changed)
    except ValueError:
        return
    kept = ms.load_checkpoint(FILES / "pytorch.pt")  # a byte between members that nothing reads
    assert {n: str(v) for n, v in found.items()} == {n: str(v) for n, v in kept.items()}


def test_the_crc_at_the_end(tmp_path):
    data = (FILES / "crc.ckpt").read_bytes()
    assert load_checkpoint(str(FILES / "crc.ckpt"))["w"].asnumpy().tolist() == [0, 1, 2]
    path = str(tmp_path / "a.ckpt")
    save_checkpoint(Linear(), path, crc_check=True)
    assert Path(path).read_bytes()[-17:-10] == data[-17:-10] == b"crc_num"
    load_checkpoint(path)
    for at in range(len(data)):
        broken = bytearray(data)
        broken[at] ^= 1
        Path(path).write_bytes(broken)
        with pytest.raises(ValueError, match=r"a\.ckpt: "):
            load_checkpoint(path)


def test_a_large_tensor_comes_in_parts(tmp_path, monkeypatch):
    path = str(tmp_path / "a.ckpt")
    monkeypatch.setattr(ckpt, "_PART", 16)
    w = np.arange(11, dtype=np.float32)
    save_checkpoint({"w": Tensor(w), "b": Tensor(w[:2])}, path)
    assert Path(path).read_bytes().count(b"\n\x01w\x12") == 3
    np.testing.assert_array_equal(load_checkpoint(path)["w"].asnumpy(), w)


def hostile(path, *parts):
    path.write_bytes(b"".join(parts))
    with pytest.raises(ValueError, match=r"a\.ckpt: ") as caught:
        load_checkpoint(str(path))
    return str(caught.value)


def test_hostile_files(tmp_path):
    path = tmp_path / "a.ckpt"

    def entry(name="w", label="Float32", dims=(1,), content=bytes(4)):
        head = b"".join(field(1, n) for n in dims)
        return field(1, field(1, name) + field(2, head + field(2, label) + field(3, content)))

    assert "1000000 bytes where" in hostile(path, b"\n", struct.pack("<BBB", 0xC0, 0x84, 0x3D))
    assert "does not end" in hostile(path, b"\n\xff\xff")
    assert "bad number" in hostile(path, b"\n" + b"\xff" * 12)
    assert "4 bytes for Float32 of shape" in hostile(path, entry(dims=(2**62, 4)))
    assert "shape [-1]" in hostile(path, entry(dims=(-1,)))
    assert "shape" in hostile(path, entry(dims=[1] * 70))
    assert "shape [0, 4611686018427387904, 4]" in hostile(
        path, entry(dims=(0, 2**62, 4), content=b"")
    )
    assert "neither 0 nor 1" in hostile(path, entry(label="Bool", content=b"\2"))
    assert "twice" in hostile(path, entry(), entry("v"), entry())
    assert "differ in dtype or shape" in hostile(path, entry(), entry(dims=(2,)))
    assert "not valid text" in hostile(path, entry(label="str", content=b"\xff" * 4))
    assert "unknown field 3" in hostile(path, entry(), field(3, 1))
    assert "without a tensor" in hostile(path, field(1, field(1, "w")))
    assert "without a name" in hostile(path, field(1, field(2, b"")))
    assert "kind (field 3)" in hostile(path, field(1, field(1, "w") + field(3, b"")))
    assert "wire type 3" in hostile(path, entry(), b"\x0b")
    assert "metadata" in hostile(path, field(1000, "[" * 100000))
    assert "metadata" in hostile(path, field(1000, "{}"))


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_any_bytes_are_read_or_refused(tmp_path_factory, data):
    """Changed, cut and spliced files end in a dict of tensors or in ValueError, quickly."""
    whole = (FILES / "dtypes.ckpt").read_bytes()
    broken = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(broken)))
        put = data.draw(st.binary(max_size=6))
        broken[at : at + data.draw(st.integers(0, 6))] = put
    path = tmp_path_factory.mktemp("fuzz") / "a.ckpt"
    path.write_bytes(broken)
    try:
        found = load_checkpoint(str(path))
    except ValueError as error:
        assert "a.ckpt: " in str(error)
    else:
        assert sum(v.nbytes for v in found.values() if isinstance(v, Tensor)) <= len(broken)


def test_names_and_kinds_of_objects(tmp_path):
    net = Linear()
    base = str(tmp_path / "x")
    save_checkpoint(net, base, append_dict={"epoch": 3, "lr": 0.1, "note": "a", "t": Tensor([1])})
    assert os.listdir(tmp_path) == ["x.ckpt"]
    found = load_checkpoint(base)
    assert int(found["epoch"]) == 3
    assert float(found["lr"]) == 0.1
    assert found["note"] == "a"
    save_checkpoint([{"name": "a", "data": net.w}], base)
    assert list(load_checkpoint(base)) == ["a"]
    save_checkpoint({"b": Tensor([1.0])}, base)
    assert list(load_checkpoint(base)) == ["b"]
    save_checkpoint(Types(), base, choice_func=lambda n: n.startswith("p_f"))
    assert list(load_checkpoint(base)) == ["p_float16", "p_float32", "p_float64"]
    assert list(load_checkpoint(base, filter_prefix="p_float1")) == ["p_float32", "p_float64"]
    assert list(load_checkpoint(base, specify_prefix=["p_float1"])) == ["p_float16"]
    for bad in (3, [3], {"a": 3}):
        with pytest.raises(TypeError, match="save_checkpoint"):
            save_checkpoint(bad, base)
    with pytest.raises(ValueError, match="twice"):
        save_checkpoint(net, base, append_dict={"w": 1})


def test_optimizer_and_scale_are_saved(path):
    def make():
        net = Linear(ms.float16)
        return nn.TrainOneStepWithLossScaleCell(
            net, nn.Adam(net.trainable_params(), 0.05), nn.DynamicLossScaleUpdateCell(2**15, 2, 2)
        )

    one = make()
    for _ in range(5):
        one(*batch())
    save_checkpoint(one, path)
    two = make()
    assert load_param_into_net(two, load_checkpoint(path)) == ([], [])
    for _ in range(5):
        one(*batch())
        two(*batch())
    assert_same(snapshot(one), snapshot(two))


def test_random_state(path):
    ms.set_seed(3)
    ops.rand(2)
    save_checkpoint(Linear(), path)
    first = ops.rand(5).asnumpy()
    ms.set_seed(4)
    load_checkpoint(path)
    assert not np.array_equal(ops.rand(5).asnumpy(), first)
    load_checkpoint(path, random_state=True)
    np.testing.assert_array_equal(ops.rand(5).asnumpy(), first)
    assert ms.get_seed() == 3


# Damage -------------------------------------------------------------------------------------------


def test_every_truncation_is_found(path):
    net = Linear()
    save_checkpoint(net, path)
    data = Path(path).read_bytes()
    before = snapshot(net)
    for end in range(0, len(data), 7):
        Path(path).write_bytes(data[:end])
        with pytest.raises(ValueError, match=r"net\.\w+: (truncated|corrupted)"):
            load_checkpoint(path, net)
    Path(path).write_bytes(data + b"x")
    with pytest.raises(ValueError, match=r"1 bytes too many|corrupted.* at byte \d+"):
        load_checkpoint(path, net)
    assert_same(before, snapshot(net))


def test_every_flipped_bit_is_found(path):
    net = Linear()
    save_checkpoint(net, path)
    data = Path(path).read_bytes()
    before = snapshot(net)
    rng = np.random.RandomState(0)
    for at in [*range(16), *range(len(data) - 12, len(data)), *rng.randint(0, len(data), 300)]:
        broken = bytearray(data)
        broken[at] ^= 1 << rng.randint(8)
        Path(path).write_bytes(broken)
        try:
            found = load_checkpoint(path)
        except ValueError as error:
            assert os.path.basename(path) in str(error)
            continue
        # White space at the header's end may change without changing anything.
        assert list(found) == ["w"]
        np.testing.assert_array_equal(found["w"].asnumpy(), before["w"])


def test_the_message_says_where(tmp_path):
    path = str(tmp_path / "net.safetensors")
    save_checkpoint(Types(), path)
    data = bytearray(Path(path).read_bytes())
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    first, _ = header["p_float32"]["data_offsets"]
    data[start + first] ^= 1
    Path(path).write_bytes(data)
    with pytest.raises(
        ValueError, match=rf"checksum of the tensor 'p_float32' \(bytes {start + first} to"
    ):
        load_checkpoint(path)


def test_no_such_file(tmp_path):
    with pytest.raises(ValueError, match="there is no file"):
        load_checkpoint(str(tmp_path / "none.ckpt"))


def test_a_mismatch_leaves_the_network_as_it_was(path):
    net = Types()
    before = snapshot(net)
    good = {p.name: Parameter(p.value() * 0, name=p.name) for p in list(net.get_parameters())[:3]}
    with pytest.raises(ValueError, match=r"'scalar' has shape \[\] in the network and \[2\]"):
        load_param_into_net(net, {**good, "scalar": Parameter(Tensor([1.0, 2.0]))})
    with pytest.raises(TypeError, match="'p_int32' is Int32 in the network and Float32"):
        load_param_into_net(
            net, {**good, "p_int32": Parameter(Tensor(np.ones((2, 3), np.float32)))}
        )
    with pytest.raises(TypeError, match="must be a Parameter"):
        load_param_into_net(net, {**good, "scalar": "a"})
    assert_same(before, snapshot(net))
    half = {"p_float32": Parameter(Tensor(np.ones((2, 3)), ms.float16))}
    with pytest.raises(TypeError, match="Float16"):
        load_param_into_net(net, half, strict_load=True)
    with pytest.warns(RuntimeWarning, match=r"11 of 12 parameters.*stay as they were"):
        missing, unused = load_param_into_net(net, {**half, "other": Parameter(Tensor([1.0]))})
    assert unused == ["other"]
    assert "scalar" in missing
    assert "p_float32" not in missing


def test_a_failed_write_leaves_the_old_file(path, monkeypatch, tmp_path):
    save_checkpoint(Linear(), path)
    old = Path(path).read_bytes()

    def fail(descriptor):
        raise OSError("no space left")

    monkeypatch.setattr(serialization.os, "fsync", fail)
    net = Linear()
    net.w.set_data(net.w * 2)
    with pytest.raises(OSError, match="no space"):
        save_checkpoint(net, path)
    assert Path(path).read_bytes() == old
    assert os.listdir(tmp_path) == [os.path.basename(path)]


def test_an_interrupted_write_leaves_the_old_file(path, monkeypatch, tmp_path):
    save_checkpoint(Linear(), path)
    old = Path(path).read_bytes()

    def interrupt(a, b):
        raise KeyboardInterrupt

    monkeypatch.setattr(serialization.os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        save_checkpoint(Types(), path)
    assert Path(path).read_bytes() == old
    assert os.listdir(tmp_path) == [os.path.basename(path)]


# Random state -------------------------------------------------------------------------------------

LOOP = """
import sys
import numpy as np
import gradcell as ms
from gradcell import dataset, nn, ops

begin, stop, path, seed = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
if seed:
    ms.set_seed(seed)
ms.set_context(mode=ms.GRAPH_MODE)
net = nn.SequentialCell(nn.Dense(4, 16), nn.Dropout(p=0.5), nn.Dense(16, 1)).set_train()
optimizer = nn.Adam(net.trainable_params(), 0.01)
step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), optimizer)
numbers = np.random.default_rng(0).normal(size=(48, 5)).astype(np.float32)
data = dataset.NumpySlicesDataset((numbers[:, :4], numbers[:, 4:])).shuffle(7).batch(8)
if begin:
    ms.load_checkpoint(path, step, random_state=True)
for epoch in range(begin, stop):
    data.set_epoch(epoch)
    for x, y in data:
        step(x, y + 0.1 * ops.standard_normal(y.shape, seed=3))
    if epoch == 1:
        ms.save_checkpoint(step, path)
print([p.asnumpy().tobytes().hex() for p in net.get_parameters()], ops.rand(3))
"""


@pytest.mark.one_in(8)
@pytest.mark.parametrize("seed", [0, 7])
def test_a_loop_of_ones_own_resumes_bit_for_bit(path, seed):
    """Dropout, shuffled data and a stream with a seed of its own, in another process."""

    def run(begin, stop):
        arguments = [str(begin), str(stop), path, str(seed)]
        return subprocess.run(
            [sys.executable, "-c", LOOP, *arguments], capture_output=True, text=True, check=True
        ).stdout

    whole = run(0, 4)
    assert run(2, 4) == whole
    assert (run(0, 4) == whole) == bool(seed)


def everything_random():
    data = ms.dataset.NumpySlicesDataset(np.arange(50.0, dtype=np.float32))
    order = np.concatenate([x.asnumpy().ravel() for (x,) in data])
    drawn = [ops.rand(4), ops.randn(3), ops.standard_normal((2,), seed=5), ops.randperm(6)]
    layer = nn.Dropout(p=0.5).set_train()
    drawn += [layer(Tensor(np.ones(9, np.float32))), nn.Dense(2, 3).weight]
    return [order, *(t.asnumpy() for t in drawn)]


@pytest.mark.parametrize("seed", [None, 3])
def test_the_random_state_is_read_and_set(mode, monkeypatch, seed):
    monkeypatch.setattr("gradcell.base.seed._seed", seed)
    state = ms.get_rng_state()
    assert state.dtype == ms.uint8 and state.ndim == 1
    first, second = everything_random(), everything_random()
    assert not np.array_equal(first[1], second[1])
    ms.set_seed(99)
    ops.standard_normal((2,), seed=123456)
    ms.set_rng_state(state)
    for a, b in zip(first, everything_random(), strict=True):
        np.testing.assert_array_equal(a, b)
    for a, b in zip(second, everything_random(), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_wrong_random_state_changes_nothing():
    before = ms.get_rng_state().asnumpy()
    damaged = [Tensor([1, 2], ms.uint8), Tensor(before[:-1]), Tensor(np.flip(before).copy())]
    for state in damaged:
        with pytest.raises(ValueError, match=r"set_rng_state: .*test_checkpoints\.py"):
            ms.set_rng_state(state)
    for wrong in (3, None, before, Tensor([1.0])):
        with pytest.raises(TypeError, match="set_rng_state: expected a Tensor of uint8"):
            ms.set_rng_state(wrong)
    np.testing.assert_array_equal(ms.get_rng_state().asnumpy(), before)


class Wrapped(nn.Cell):
    def __init__(self, network):
        super().__init__()
        self.network = network
        self.head = nn.Dense(2, 1)

    def construct(self, x):
        return self.head(self.network(x))


def test_names_saved_with_a_prefix_are_taken_without_it(tmp_path):
    """What is saved as part of a larger network is loaded into the part, as MindSpore does it; random
    weights do not stay in silence."""

    def part():
        return nn.SequentialCell(nn.Dense(3, 4), nn.Tanh(), nn.Dense(4, 2))

    whole = Wrapped(part())
    saved = {f"step.{p.name}": p for p in whole.get_parameters()}
    saved["moments.network.0.weight"] = Parameter(Tensor([1.0]))
    path = str(tmp_path / "whole.ckpt")
    save_checkpoint(saved, path)
    net = part()
    with pytest.warns(
        RuntimeWarning, match=r"4 parameters are saved with 'step\.network\.' before"
    ):
        missing, unused = load_param_into_net(net, load_checkpoint(path))
    assert missing == []
    assert unused == ["step.head.weight", "step.head.bias", "moments.network.0.weight"]
    for p, q in zip(net.get_parameters(), whole.network.get_parameters(), strict=True):
        np.testing.assert_array_equal(p.asnumpy(), q.asnumpy())


def test_several_prefixes_and_strict_loading():
    def saved(*names):
        return {n: Parameter(Tensor(np.full((1, 1) if "weight" in n else 1, i + 5.0, np.float32)))
                for i, n in enumerate(names)}  # fmt: skip

    net = nn.Dense(1, 1)
    found = saved("a.weight", "b.bias")
    with pytest.warns(RuntimeWarning) as said:
        assert load_param_into_net(net, found) == ([], [])
    assert [str(w.message).split("'")[1] for w in said] == ["a.", "b."]
    assert (net.weight.item(), net.bias.item()) == (5.0, 6.0)
    with pytest.warns(RuntimeWarning, match="2 of 2 parameters are not in parameter_dict"):
        assert load_param_into_net(net, found, strict_load=True) == (["weight", "bias"], [*found])
    before = net.weight.item()
    wrong = {"a.weight": Parameter(Tensor([[1.0, 2.0]]))}
    with (
        pytest.warns(RuntimeWarning, match="before their names"),
        pytest.raises(ValueError, match=r"'a\.weight' has shape \[1, 1\] in the network"),
    ):
        load_param_into_net(net, wrong)
    assert net.weight.item() == before
