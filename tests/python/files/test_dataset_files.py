"""Datasets in files: MNIST, CIFAR, folders of images, MindRecord; cut, wrong and hostile ones."""

import gzip
import json
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from PIL import Image

import gradcell.dataset as ds
from gradcell import Tensor
from gradcell.files.protobuf import field, varint
from gradcell.files.records import framed, places
from gradcell.mindrecord import FileReader, FileWriter
from gradcell.mindrecord.values import pack_integers, unpack_integers

FILES = Path(__file__).parent
DRAW = np.random.RandomState(0)


def arrays(dataset):
    return list(dataset.create_dict_iterator(num_epochs=1, output_numpy=True))


# MNIST and CIFAR ----------------------------------------------------------------------------------


def idx(array):
    head = bytes([0, 0, 8, array.ndim]) + b"".join(struct.pack(">I", n) for n in array.shape)
    return head + array.astype(np.uint8).tobytes()


@pytest.fixture
def mnist(tmp_path):
    parts = {}
    for name, count in (("train", 7), ("t10k", 3)):
        images = DRAW.randint(0, 256, (count, 28, 28))
        labels = DRAW.randint(0, 10, count)
        (tmp_path / f"{name}-images-idx3-ubyte").write_bytes(idx(images))
        packed = gzip.compress(idx(labels))
        (tmp_path / f"{name}-labels-idx1-ubyte.gz").write_bytes(packed)
        parts[name] = images, labels
    return tmp_path, parts


def test_mnist(mnist):
    folder, parts = mnist
    rows = arrays(ds.MnistDataset(str(folder), "train", shuffle=False))
    assert (rows[0]["image"].shape, rows[0]["image"].dtype) == ((28, 28, 1), np.uint8)
    assert (rows[0]["label"].shape, rows[0]["label"].dtype) == ((), np.uint32)
    np.testing.assert_array_equal([r["image"][..., 0] for r in rows], parts["train"][0])
    np.testing.assert_array_equal([r["label"] for r in rows], parts["train"][1])
    assert ds.MnistDataset(folder, "test").get_dataset_size() == 3
    assert ds.MnistDataset(folder).get_dataset_size() == 10
    batch = next(ds.FashionMnistDataset(folder, num_samples=4).batch(4).create_dict_iterator())
    assert isinstance(batch["label"], Tensor)
    assert batch["image"].shape == (4, 28, 28, 1)


def test_bad_mnist(mnist):
    folder, parts = mnist
    file = folder / "train-images-idx3-ubyte"
    good = file.read_bytes()
    bad = {
        r"truncated: 3 bytes": good[:3],
        r"truncated: 5487 bytes for the shape \[7, 28, 28\]": good[:-1],
        r"corrupted: 5489 bytes": good + b"x",
        r"not an IDX file of 3 axes: it begins with 00000801": b"\0\0\x08\x01" + good[4:],
        r"truncated: .* for the shape \[4294967295, 4294967295": good[:4]
        + b"\xff" * 12
        + good[16:],
        r"6 images, but 7 labels": idx(parts["train"][0][:6]),
    }
    for text, data in bad.items():
        file.write_bytes(data)
        with pytest.raises(ValueError, match=rf"MnistDataset: .*train-images-idx3-ubyte: {text}"):
            ds.MnistDataset(folder, "train")
    file.unlink()
    with pytest.raises(ValueError, match="train-images-idx3-ubyte: there is no such file"):
        ds.MnistDataset(folder, "all")
    (folder / "t10k-labels-idx1-ubyte.gz").write_bytes(gzip.compress(good)[:200])
    with pytest.raises(ValueError, match=r"t10k-labels-idx1-ubyte\.gz: cannot be read"):
        ds.MnistDataset(folder, "test")
    with pytest.raises(ValueError, match="there is no folder"):
        ds.MnistDataset(folder / "none")
    with pytest.raises(ValueError, match="usage"):
        ds.MnistDataset(folder, "training")


@pytest.mark.parametrize("kind", [10, 100])
def test_cifar(tmp_path, kind):
    names = [f"data_batch_{i}.bin" for i in range(1, 6)] if kind == 10 else ["train.bin"]
    test = "test_batch.bin" if kind == 10 else "test.bin"
    columns = ["label"] if kind == 10 else ["coarse_label", "fine_label"]
    written = []
    for name in [*names, test]:
        labels = DRAW.randint(0, 10, (2, len(columns)))
        images = DRAW.randint(0, 256, (2, 3, 32, 32))
        rows = np.concatenate([labels, images.reshape(2, -1)], axis=1).astype(np.uint8)
        (tmp_path / name).write_bytes(rows.tobytes())
        written.append((images, labels))
    make = ds.Cifar10Dataset if kind == 10 else ds.Cifar100Dataset
    dataset = make(str(tmp_path), "train", shuffle=False)
    rows = arrays(dataset)
    assert len(rows) == 2 * len(names)
    assert dataset.get_col_names() == ["image", *columns[::-1]]
    np.testing.assert_array_equal(rows[1]["image"], written[0][0][1].transpose(1, 2, 0))
    for k, column in enumerate(columns):
        assert rows[1][column] == written[0][1][1, k]
        assert rows[1][column].dtype == np.uint32
    assert make(tmp_path).get_dataset_size() == 2 * len(names) + 2
    file = tmp_path / names[0]
    good = file.read_bytes()
    for text, data in (
        ("truncated", good[:-5]),
        ("truncated", b""),
        ("label of", b"\xff" + good[1:]),
    ):
        file.write_bytes(data)
        with pytest.raises(ValueError, match=rf"{names[0]}: .*{text}"):
            make(tmp_path, "train")


# Folders ------------------------------------------------------------------------------------------


def test_image_folders(tmp_path):
    pictures = DRAW.randint(0, 256, (4, 6, 5, 3)).astype(np.uint8)
    for k, name in enumerate(["cat/a.png", "cat/b.png", "dog/c.png", "dog/deep/d.png"]):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pictures[k]).save(path)
    (tmp_path / "cat" / "notes.txt").write_text("no picture")
    dataset = ds.ImageFolderDataset(str(tmp_path), shuffle=False, decode=True)
    rows = arrays(dataset)
    np.testing.assert_array_equal([r["image"] for r in rows], pictures)
    assert [int(r["label"]) for r in rows] == [0, 0, 1, 1]
    assert rows[0]["label"].dtype == np.int32
    assert (dataset.num_classes(), dataset.get_class_indexing()) == (2, {"cat": 0, "dog": 1})
    batched = dataset.batch(2)
    assert batched.num_classes() == 2
    raw = arrays(ds.ImageFolderDataset(tmp_path, class_indexing={"dog": 7}, shuffle=False))
    assert [int(r["label"]) for r in raw] == [7, 7]
    assert raw[0]["image"].tobytes() == (tmp_path / "dog/c.png").read_bytes()
    sampled = ds.ImageFolderDataset(tmp_path, sampler=ds.PKSampler(3))
    assert sorted(int(r["label"]) for r in arrays(sampled)) == [0, 0, 0, 1, 1, 1]
    (tmp_path / "cat/a.png").write_bytes((tmp_path / "cat/a.png").read_bytes()[:60])
    with pytest.raises(ValueError, match=r"a\.png: not a picture, or a damaged one"):
        arrays(ds.ImageFolderDataset(tmp_path, decode=True, num_parallel_workers=2))
    with pytest.raises(ValueError, match="no class 'cow'"):
        ds.ImageFolderDataset(tmp_path, class_indexing={"cow": 1})
    with pytest.raises(ValueError, match="no images"):
        ds.ImageFolderDataset(tmp_path / "cat")


# MindRecord ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    """A file that MindSpore wrote (tools/make_mindspore_files.py)."""
    path = tmp_path_factory.mktemp("real") / "rows.mindrecord"
    path.write_bytes(gzip.decompress((FILES / "rows.mindrecord.gz").read_bytes()))
    return path


WIDE = np.array([1, 2, -128, 128, 300, 70000, 2**40, -(2**40), -1])


def expected(k):
    return {
        "z": bytes([k]) * 9000, "n": k - 3, "q": 10 ** (2 * k), "t": f"é{k}" * k, "f": 0.5 * k,
        "d": 0.1 * k, "i": WIDE[: k + 1], "j": np.array([k, -1000 * k], np.int32),
        "v": np.full((k + 1, 2), k, np.float32),
    }  # fmt: skip


def test_reads_what_mindspore_wrote(real):
    reader = FileReader(str(real))
    assert reader.len() == 9
    assert reader.schema()["v"] == {"shape": [-1, 2], "type": "float32"}
    for k, row in enumerate(reader.get_next()):
        assert row.keys() == expected(k).keys()
        for name, value in expected(k).items():
            np.testing.assert_array_equal(row[name], value)
    dataset = ds.MindDataset(str(real), shuffle=False)
    assert dataset.get_col_names() == ["d", "f", "i", "j", "n", "q", "t", "v", "z"]
    row = arrays(dataset)[4]
    types = {name: value.dtype for name, value in row.items() if name not in "tz"}
    assert types == {"d": np.float64, "f": np.float32, "i": np.int64, "j": np.int32,
                     "n": np.int32, "q": np.int64, "v": np.float32}  # fmt: skip
    assert (row["z"].dtype, row["z"].tobytes()) == (np.uint8, bytes([4]) * 9000)
    assert (row["t"].shape, str(row["t"])) == ((), "é4é4é4é4")


def test_dataset_of_records(real):
    def numbers(**options):
        dataset = ds.MindDataset(str(real), ["n"], **options)
        return [int(r["n"]) for r in arrays(dataset)]

    assert numbers(shuffle=False, num_shards=2, shard_id=1) == [-2, 0, 2, 4, -3]
    padded = {"padded_sample": {"n": -9}, "num_padded": 1}
    assert numbers(shuffle=False, num_shards=2, shard_id=1, **padded) == [-2, 0, 2, 4, -9]
    assert sorted(numbers()) == list(range(-3, 6))
    assert numbers(sampler=[3, 1]) == [0, -2]
    with pytest.raises(ValueError, match="no column 'x'"):
        ds.MindDataset(str(real), ["x"])
    with pytest.raises(ValueError, match=r"none\.mindrecord"):
        ds.MindDataset("none.mindrecord")


SCHEMA = {
    "z": {"type": "bytes"}, "n": {"type": "int32"}, "q": {"type": "int64"}, "t": {"type": "string"},
    "f": {"type": "float32"}, "d": {"type": "float64"}, "i": {"type": "int64", "shape": [-1]},
    "j": {"type": "int32", "shape": [2]}, "v": {"type": "float32", "shape": [-1, 2]},
}  # fmt: skip


def write(path, shards=1):
    writer = FileWriter(str(path), shards, overwrite=True)
    writer.set_header_size(1 << 14)
    writer.set_page_size(1 << 15)
    writer.add_schema(SCHEMA, "rows of every type")
    writer.add_index(["n", "t"])
    writer.write_raw_data([expected(k) for k in range(9)])
    writer.commit()


def test_writes_what_mindspore_wrote(real, tmp_path):
    """The same pages and header, but for numbers' widths: MindSpore shortens floats."""
    write(tmp_path / "rows.mindrecord")
    ours, theirs = (tmp_path / "rows.mindrecord").read_bytes(), real.read_bytes()

    def header(data):
        made = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
        for page in made["page"]:
            if page["page_type"] == "RAW_DATA":
                del page["page_size"]
                for group in page["row_group_ids"]:
                    del group["offset"]
        return made

    assert header(ours) == header(theirs)
    for page in range(3):  # the blobs
        at = (1 << 14) + page * (1 << 15)
        assert ours[at : at + (1 << 15)].rstrip(b"\0") == theirs[at : at + (1 << 15)].rstrip(b"\0")


def test_sets_of_files_and_appending(tmp_path):
    write(tmp_path / "set", 3)
    names = sorted(p.name for p in tmp_path.iterdir())
    assert names == [f"set{k}{end}" for k in range(3) for end in ("", ".db")]
    for name in (str(tmp_path / "set0"), [str(tmp_path / f"set{k}") for k in range(3)]):
        dataset = ds.MindDataset(name, ["n", "i"], shuffle=False)
        assert [int(r["n"]) for r in arrays(dataset)] == list(range(-3, 6))
    write(tmp_path / "one")
    writer = FileWriter.open_for_append(str(tmp_path / "one"))
    writer.write_raw_data([{**expected(0), "n": 77}])
    writer.commit()
    assert [r["n"] for r in FileReader(str(tmp_path / "one")).get_next()] == [*range(-3, 6), 77]
    with pytest.raises(FileExistsError, match="one already exists"):
        again = FileWriter(str(tmp_path / "one"))
        again.add_schema(SCHEMA)
        again.commit()


def test_saving_a_dataset(tmp_path):
    source = ds.GeneratorDataset(
        [(np.full((k, 2), k, np.float32), np.int32(k), f"t{k}") for k in range(1, 4)],
        ["v", "n", "t"],
        shuffle=False,
    )
    source.save(str(tmp_path / "made"))
    rows = arrays(ds.MindDataset(str(tmp_path / "made"), ["v", "n", "t"], shuffle=False))
    for row, (v, n, t) in zip(rows, source.source, strict=True):
        np.testing.assert_array_equal(row["v"], v)
        assert (row["n"], str(row["t"])) == (n, t)


@settings(max_examples=200, deadline=None)
@given(values=st.lists(st.integers(-(2**63), 2**63 - 1), max_size=40))
def test_packed_integers(values):
    array = np.array(values, np.int64)
    packed = pack_integers(array)
    np.testing.assert_array_equal(unpack_integers(memoryview(packed), "int64"), array)
    for end in range(len(packed)):
        if len(packed) > end:
            with pytest.raises(ValueError, match="packed integer"):
                unpack_integers(memoryview(packed[:end]), "int64")


@pytest.mark.parametrize(
    ("schema", "row", "error", "text"),
    [
        ({"n": {"type": "uint8"}}, {}, ValueError, "'n' has the type 'uint8'"),
        ({"n": {"type": "string", "shape": [1]}}, {}, ValueError, "cannot be an array of 'string'"),
        ({"n": {"type": "int32", "shape": [-1, -1]}}, {}, ValueError, "more than one unknown"),
        ({}, {}, ValueError, "a field at least"),
        ({"n": {"type": "int32"}}, {"m": 1}, ValueError, "row 0 has no 'n'"),
        ({"n": {"type": "int32"}}, {"n": "x"}, TypeError, "'n' of row 0 must be int32, got str"),
        ({"n": {"type": "int32"}}, {"n": 2**31}, ValueError, "no int32"),
        ({"n": {"type": "int32"}}, {"n": True}, TypeError, "got bool"),
        ({"n": {"type": "int32", "shape": [2]}}, {"n": np.zeros(2)}, TypeError, "got float64"),
        ({"n": {"type": "int32", "shape": [2]}}, {"n": np.zeros(3, np.int32)}, ValueError,
         r"has the shape \(3,\), not \[2\]"),
        ({"n": {"type": "bytes"}}, {"n": bytes(40000)}, ValueError, "does not fit into a page"),
    ],
)  # fmt: skip
def test_bad_rows(tmp_path, schema, row, error, text):
    def made():
        writer = FileWriter(str(tmp_path / "a"))
        writer.set_page_size(1 << 15)
        writer.add_schema(schema)
        writer.write_raw_data([row])
        writer.commit()

    with pytest.raises(error, match=text):
        made()
    assert list(tmp_path.iterdir()) == []


def refused(path, data):
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"MindRecord: .*broken") as caught:
        list(FileReader(str(path)).get_next())
    return str(caught.value)


def test_hostile_records(real, tmp_path):
    good = real.read_bytes()
    size = int.from_bytes(good[:8], "little")
    header = json.loads(good[8 : 8 + size])
    path = tmp_path / "broken"

    def changed(change):
        made = json.loads(json.dumps(header))
        change(made)
        text = json.dumps(made).encode()
        return struct.pack("<Q", len(text)) + text + good[8 + len(text) :]

    assert "truncated: 0 bytes" in refused(path, b"")
    assert "truncated, or not a MindRecord" in refused(path, b"\xff" * 100)
    assert "not JSON" in refused(path, struct.pack("<Q", 200000) + b"[" * 200000)
    assert "not an object" in refused(path, struct.pack("<Q", 2) + b"[]")
    assert "the header is incomplete" in refused(path, struct.pack("<Q", 2) + b"{}")
    assert "truncated or corrupted: a page" in refused(path, good[: len(good) - 1])
    assert "page" in refused(path, changed(lambda h: h["page"][0].update(page_size=1 << 40)))
    assert "page" in refused(path, changed(lambda h: h["page"][0].update(page_id=-1)))
    assert "no row" in refused(path, changed(lambda h: h["page"][0].update(end_row_id=1 << 40)))
    assert "begins with row" in refused(
        path, changed(lambda h: h["page"][0].update(start_row_id=5))
    )
    assert "row group" in refused(path, changed(lambda h: h["page"][0].update(page_type_id=9)))
    assert "the type 'int9'" in refused(
        path, changed(lambda h: h["schema"][0]["schema"]["n"].update(type="int9"))
    )
    assert "blob fields" in refused(path, changed(lambda h: h["schema"][0].update(blob_fields=[])))
    assert "corrupted" in refused(path, changed(lambda h: h.update(header_size="x")))
    assert "header_size is -5" in refused(path, changed(lambda h: h.update(header_size=-5)))
    first = bytearray(good)
    first[1 << 14] ^= 0x80
    assert "row" in refused(path, bytes(first))


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_any_record_file_is_read_or_refused(real, tmp_path_factory, data):
    broken = bytearray(real.read_bytes())
    size = int.from_bytes(broken[:8], "little")
    starts = [0, 8 + size - 400, 1 << 14, (1 << 14) + 3 * (1 << 15)]
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.sampled_from(starts)) + data.draw(st.integers(0, 400))
        put = data.draw(st.binary(min_size=1, max_size=4))
        broken[at : at + len(put)] = put
    path = tmp_path_factory.mktemp("fuzz") / "broken"
    path.write_bytes(broken[: data.draw(st.sampled_from([len(broken), 20000, 60000]))])
    try:
        rows = list(FileReader(str(path)).get_next())
    except ValueError as error:
        assert "MindRecord: " in str(error)
    else:
        assert len(rows) <= 9


# TFRecord -----------------------------------------------------------------------------------------


def example(**columns):
    """TensorFlow's Example message: ints packed, floats packed, bytes."""
    entries = b""
    for name, values in columns.items():
        if isinstance(values[0], bytes):
            held = field(1, b"".join(field(1, v) for v in values))
        elif isinstance(values[0], float):
            held = field(2, field(1, np.array(values, "<f4").tobytes()))
        else:
            held = field(3, field(1, b"".join(map(varint, values))))
        entries += field(1, field(1, name) + field(2, held))
    return framed(field(1, entries))


@pytest.fixture
def tfrecord(tmp_path):
    for k in range(2):
        rows = [
            example(ids=[i, -i, 2**40], scale=[i / 2, 1.5], text=[b"ab", b"c"])
            for i in range(3 * k, 3 * k + 3)
        ]
        (tmp_path / f"part{k}.tfrecord").write_bytes(b"".join(rows))
    return tmp_path


def test_tfrecord(tfrecord):
    pattern = str(tfrecord / "part*.tfrecord")
    rows = arrays(ds.TFRecordDataset(pattern, shuffle=False))
    assert len(rows) == 6
    assert rows[4].keys() == {"ids", "scale", "text"}
    np.testing.assert_array_equal(rows[4]["ids"], [4, -4, 2**40])
    assert (rows[4]["ids"].dtype, rows[4]["scale"].dtype) == (np.int64, np.float32)
    np.testing.assert_array_equal(rows[4]["scale"], [2, 1.5])
    assert rows[4]["text"].tolist() == [b"ab", b"c"]
    (tfrecord / "schema.json").write_text(
        json.dumps({"columns": {"ids": {"type": "int32", "rank": 1, "shape": [3]},
                                "scale": {"type": "float32", "shape": [2, 1]}}})
    )  # fmt: skip
    schema = ds.Schema(str(tfrecord / "schema.json"))
    short = ds.TFRecordDataset([str(tfrecord / "part1.tfrecord")], schema, shuffle=False)
    row = arrays(short)[0]
    assert (row["ids"].dtype, row["scale"].shape) == (np.int32, (2, 1))
    made = ds.Schema()
    made.add_column("scale", np.float64, [2])
    assert arrays(ds.TFRecordDataset(pattern, made))[0]["scale"].dtype == np.float64
    shards = [ds.TFRecordDataset(pattern, None, ["ids"], num_shards=2, shard_id=k) for k in (0, 1)]
    assert sorted(int(r["ids"][0]) for s in shards for r in arrays(s)) == list(range(6))
    for epoch in range(4):
        files = ds.TFRecordDataset(pattern, columns_list=["ids"], shuffle=ds.Shuffle.FILES)
        files.set_epoch(epoch)
        order = [int(r["ids"][0]) for r in arrays(files)]
        assert order in ([0, 1, 2, 3, 4, 5], [3, 4, 5, 0, 1, 2])


def test_bad_tfrecord(tfrecord):
    path = tfrecord / "part0.tfrecord"
    good = path.read_bytes()
    whole = {b + 4 for _, b in places(memoryview(good))}
    for end in set(range(1, len(good), 5)) - whole:
        path.write_bytes(good[:end])
        with pytest.raises(ValueError, match=r"part0\.tfrecord: truncated"):
            ds.TFRecordDataset(str(path))
    path.write_bytes(framed(b"\x0a\xff"))
    with pytest.raises(ValueError, match=r"part0\.tfrecord: row at byte 12: corrupted"):
        ds.TFRecordDataset(str(path))
    path.write_bytes(good)
    with pytest.raises(ValueError, match=r"row \d has no 'other'"):
        arrays(ds.TFRecordDataset(str(path), columns_list=["other"]))
    with pytest.raises(ValueError, match="there is no such file"):
        ds.TFRecordDataset(str(tfrecord / "none*"))
    schema = ds.Schema()
    schema.add_column("ids", "int64", [4])
    with pytest.raises(ValueError, match=r"'ids' of row \d has 3 values, not the shape \[4\]"):
        arrays(ds.TFRecordDataset(str(path), schema))
    (tfrecord / "schema.json").write_text("{")
    with pytest.raises(ValueError, match=r"schema\.json is not a schema"):
        ds.Schema(str(tfrecord / "schema.json"))


def test_every_damaged_bit_of_a_tfrecord(tmp_path):
    """Of lengths, bytes and checksums: an error that names the file, wherever a bit has turned."""
    whole = example(ids=[1, -2], text=[b"ab"]) + example(ids=[3, 4], text=[b"c"])
    path = tmp_path / "rows.tfrecord"
    for bit in range(8 * len(whole)):
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"rows\.tfrecord"):
            arrays(ds.TFRecordDataset(str(path), shuffle=False))


def test_every_damaged_byte_of_a_packed_file(tmp_path):
    images = gzip.compress(struct.pack(">4I", 2051, 2, 4, 4) + bytes(range(32)))
    labels = gzip.compress(struct.pack(">2I", 2049, 2) + bytes([1, 2]))
    (tmp_path / "train-labels-idx1-ubyte.gz").write_bytes(labels)
    good = len(arrays(packed_images(tmp_path, images)))
    assert good == 2
    for at in range(10, len(images)):
        damaged = bytearray(images)
        damaged[at] ^= 0x55
        with pytest.raises(ValueError, match=r"train-images-idx3-ubyte\.gz"):
            arrays(packed_images(tmp_path, bytes(damaged)))


def packed_images(folder, images):
    (folder / "train-images-idx3-ubyte.gz").write_bytes(images)
    return ds.MnistDataset(str(folder), "train", shuffle=False)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_any_example_is_read_or_refused(tmp_path_factory, data):
    body = bytearray(example(ids=[1, 2], scale=[0.5], text=[b"ab"])[12:-4])
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(body) - 1))
        body[at] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.mktemp("fuzz") / "a.tfrecord"
    path.write_bytes(framed(bytes(body)))
    try:
        arrays(ds.TFRecordDataset(str(path)))
    except ValueError as error:
        assert "a.tfrecord" in str(error) or "TFRecordDataset" in str(error)
