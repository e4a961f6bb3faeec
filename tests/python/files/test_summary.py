"""Event files: their bytes read by a parser of the test's own, what SummaryCollector records."""

import io
import struct

import numpy as np
import pytest
from PIL import Image

import gradcell as ms
import gradcell.dataset as ds
from gradcell import Tensor, nn
from gradcell._core import crc32c
from gradcell.files.records import framed, places
from gradcell.train import Model, SummaryCollector, SummaryRecord


def message(data):
    """{field: [values]} of a protobuf message: ints, floats, bytes."""
    found, at = {}, 0

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        key = number()
        if key & 7 == 0:
            value = number()
        elif key & 7 == 1:
            value, at = struct.unpack("<d", data[at : at + 8])[0], at + 8
        elif key & 7 == 5:
            value, at = struct.unpack("<f", data[at : at + 4])[0], at + 4
        else:
            size = number()
            value, at = data[at : at + size], at + size
        found.setdefault(key >> 3, []).append(value)
    return found


def events(path):
    """[(step, {tag: value's message})], every checksum looked at."""
    data, at, found = path.read_bytes(), 0, []

    def check(part, expected):
        crc = crc32c(part)
        assert (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF == expected

    while at < len(data):
        size, first = struct.unpack("<QI", data[at : at + 12])
        check(data[at : at + 8], first)
        body = data[at + 12 : at + 12 + size]
        check(body, struct.unpack("<I", data[at + 12 + size : at + 16 + size])[0])
        found.append(message(body))
        at += 16 + size
    assert found[0][3] == [b"brain.Event:2"]
    made = []
    for event in found[1:]:
        values = [message(v) for v in message(event[5][0])[1]]
        made.append((event[2][0], {v[1][0].decode(): v for v in values}))
    return made


def only(folder):
    (path,) = folder.iterdir()
    assert "tfevents" in path.name
    return events(path)


def test_checksums():
    """Vectors of RFC 3720, appendix B.4."""
    assert crc32c(bytes(32)) == 0x8A9136AA
    assert crc32c(b"\xff" * 32) == 0x62A8AB43
    assert crc32c(bytes(range(32))) == 0x46DD794E
    assert crc32c(b"123456789") == 0xE3069283


def test_records_that_are_cut_or_wrong():
    data = framed(b"abc") + framed(b"")
    assert [bytes(data[a:b]) for a, b in places(memoryview(data))] == [b"abc", b""]
    for end in range(1, len(data)):
        if end != len(framed(b"abc")):
            with pytest.raises(ValueError, match="truncated"):
                list(places(memoryview(data)[:end]))
    with pytest.raises(ValueError, match="corrupted, or not a file of records"):
        list(places(memoryview(b"x" + data[1:])))


def test_values(tmp_path):
    image = np.random.RandomState(0).rand(2, 3, 4, 5)
    with SummaryRecord(str(tmp_path)) as record:
        record.add_value("scalar", "loss", Tensor(1.5))
        record.add_value("image", "input", image)
        record.add_value("histogram", "weights", np.arange(100.0))
        record.add_value("tensor", "matrix", Tensor(np.eye(2, dtype=np.float32)))
        assert record.record(7)
        assert not record.record(8)
        record.set_mode("eval")
        record.add_value("scalar", "loss", 2)
        record.record(9)
    (step, values), (last, later) = only(tmp_path)
    assert (step, last) == (7, 9)
    assert values["loss"][2] == [1.5]
    assert later["eval/loss"][2] == [2.0]
    picture = message(values["input"][4][0])
    assert (picture[1], picture[2], picture[3]) == ([4], [5], [3])
    pixels = np.asarray(Image.open(io.BytesIO(picture[4][0])))
    np.testing.assert_array_equal(pixels, np.rint(image[0].transpose(1, 2, 0) * 255))
    histogram = message(values["weights"][5][0])
    assert [histogram[k][0] for k in range(1, 6)] == [0, 99, 100, 4950, (np.arange(100) ** 2).sum()]
    limits, counts = (np.frombuffer(histogram[k][0], "<f8") for k in (6, 7))
    assert (limits[-1], counts.sum()) == (99, 100)
    tensor = message(values["matrix"][8][0])
    assert tensor[1] == [1]
    assert [message(d)[1][0] for d in message(tensor[2][0])[2]] == [2, 2]
    np.testing.assert_array_equal(np.frombuffer(tensor[4][0], "<f4"), [1, 0, 0, 1])


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_pictures(tmp_path, channels):
    image = np.random.RandomState(1).randint(0, 256, (1, channels, 6, 3)).astype(np.uint8)
    with SummaryRecord(tmp_path) as record:
        record.add_value("image", "input", image)
        record.record(0)
    picture = message(only(tmp_path)[0][1]["input"][4][0])
    pixels = np.asarray(Image.open(io.BytesIO(picture[4][0]))).reshape(6, 3, channels)
    np.testing.assert_array_equal(pixels, image[0].transpose(1, 2, 0))


def test_limit_and_end(tmp_path):
    record = SummaryRecord(tmp_path, max_file_size=100)
    written = 0
    for step in range(20):
        record.add_value("scalar", "a", step)
        written += record.record(step)
    record.close()
    record.close()
    assert 1 < written < 20
    assert len(only(tmp_path)) == written
    with pytest.raises(ValueError, match="is closed"):
        record.record(21)


def test_collector(tmp_path):
    x = np.random.RandomState(0).randn(12, 3).astype(np.float32)
    data = ds.NumpySlicesDataset((x, x.sum(1, keepdims=True)), ["x", "y"], shuffle=False).batch(2)
    net = nn.SequentialCell(nn.Dense(3, 4), nn.Dense(4, 1))
    model = Model(
        net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.01), metrics={"mae": ms.train.MAE()}
    )
    losses = ms.History()
    collector = SummaryCollector(
        str(tmp_path), collect_freq=2, collect_specified_data={"histogram_regular": "0.weight"}
    )
    model.fit(2, data, data, callbacks=[collector, losses])
    found = only(tmp_path)
    trained = [(step, values) for step, values in found if "loss/auto" in values]
    assert [step for step, _ in trained] == [1, 3, 5, 7, 9, 11]
    assert all("0.weight/auto" in values for _, values in trained)
    assert message(trained[0][1]["0.weight/auto"][5][0])[3] == [12.0]
    judged = [(s, v["eval_mae/auto"][2][0]) for s, v in found if "eval_mae/auto" in v]
    assert [step for step, _ in judged] == [6, 12]
    np.testing.assert_allclose(judged[1][1], losses.history["eval_mae"][1], rtol=1e-6)


def test_records_refuse_what_is_no_value(tmp_path):
    cases = [
        (("curve", "a", 1), ValueError, "plugin"),
        (("scalar", "", 1), TypeError, "'name' must be a string"),
        (("scalar", "a", "b"), TypeError, "must be a Tensor or a number, got str"),
        (("scalar", "a", np.zeros(2)), ValueError, r"has the shape \[2\]"),
        (("image", "a", np.zeros((2, 3))), ValueError, r"\[N, C, H, W\], got \[2, 3\]"),
        (("scalar", "a", float("nan")), RuntimeError, "nan or inf"),
    ]
    with SummaryRecord(str(tmp_path), raise_exception=True) as record:
        for arguments, error, text in cases:
            with pytest.raises(error, match=text):
                record.add_value(*arguments)
    with pytest.raises(ValueError, match="plain name"):
        SummaryRecord(str(tmp_path), file_prefix="a/b")
    with pytest.raises(TypeError, match="log_dir"):
        SummaryRecord(3)
    with pytest.raises(ValueError, match="no 'everything' to collect"):
        SummaryCollector(str(tmp_path), collect_specified_data={"everything": True})
    with pytest.raises(ValueError, match="is not a pattern"):
        SummaryCollector(str(tmp_path), collect_specified_data={"histogram_regular": "("})
    with pytest.warns(UserWarning, match="collect_graph has no effect"):
        SummaryCollector(str(tmp_path), collect_specified_data={"collect_graph": True})


@pytest.mark.filterwarnings("ignore:.*asked for a tensor's value:RuntimeWarning")
def test_summary_ops_in_a_network(tmp_path):
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.scalar, self.histogram = ms.ops.ScalarSummary(), ms.ops.HistogramSummary()

        def construct(self, x):
            self.scalar("total", x.sum())
            self.histogram("values", x)
            return x * 2

    net = Net()
    step = ms.jit(net)
    net(Tensor([1.0]))  # no record is open
    with SummaryRecord(tmp_path) as record:
        for k in range(3):
            step(Tensor([float(k), 1.0]))
            assert record.record(k)
        assert not record.record(3)
    assert [values["total"][2] for _, values in only(tmp_path)] == [[1.0], [2.0], [3.0]]
    assert all("values" in values for _, values in only(tmp_path))
    with pytest.raises(TypeError, match="'name' must be str"):
        ms.ops.ScalarSummary()(3, Tensor([1.0]))
