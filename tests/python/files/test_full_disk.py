"""Every function that writes a file, on a disk that is full: the error names the file, what was there before
stays, and nothing else is left behind."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import gradcell

#: Each writes a file of more than LIMIT bytes under this name.
WRITERS = {
    "a.ckpt": "gc.save_checkpoint(net, path)",
    "a.safetensors": "gc.save_checkpoint(net, path)",
    "net.onnx": "gc.export(net, gc.Tensor(np.ones((1, 64), np.float32)), file_name=path, file_format='ONNX')",
    "rows.mindrecord": "records(path)",
    "a.html": "gc.draw_graph(net, gc.Tensor(np.ones((1, 64), np.float32)), path=path)",
    "a.dot": "gc.draw_graph(deep, gc.Tensor(np.ones((1, 64), np.float32)), path=path)",
    "a.svg": "report().picture(path)",
    "a.json": "report().trace(path)",
    "profile.txt": "profiled(path)",
    "arrays": "names.save({'a': np.ones(5000)}, path)",
    "*.tfevents.*": "summary(path)",
}
SCRIPT = """
import itertools, json, os, resource, sys, traceback
import numpy as np
import gradcell as gc
from gradcell import nn, ops, profiler
from gradcell.mindrecord import FileWriter
from gradcell.train import SummaryRecord
try:
    from gradcell.deepxde import names
except ImportError:
    names = None

folder, writers, limits = sys.argv[1], json.loads(sys.argv[2]), json.loads(sys.argv[3])
net = nn.Dense(64, 64)

def deep(x):
    for _ in range(60):
        x = ops.sin(net(x)) * 2
    return x

def report():
    step = gc.jit(lambda x: deep(x).sum())
    return profiler.profile(step, gc.Tensor(np.ones((1, 64), np.float32)), repeat=2)

def profiled(path):
    p = profiler.Profiler(output_path=os.path.dirname(path))
    for _ in range(3):
        deep(gc.Tensor(np.ones((1, 64), np.float32)))
    p.analyse()

def records(path):
    writer = FileWriter(path, overwrite=True)
    writer.add_schema({"x": {"type": "bytes"}, "n": {"type": "int32"}}, "rows")
    writer.add_index(["n"])
    writer.write_raw_data([{"x": bytes(5000), "n": i} for i in range(3)])
    writer.commit()

def summary(path):
    with SummaryRecord(os.path.dirname(path)) as record:
        record.add_value("histogram", "x", np.random.rand(5000))
        record.add_value("tensor", "y", np.random.rand(5000).astype(np.float32))
        record.record(1)

found = {}
for limit, (name, code) in itertools.product(limits, writers.items()):
    if name == "arrays" and names is None:
        continue
    inside = os.path.join(folder, str(len(found)))
    os.mkdir(inside)
    path = os.path.join(inside, name)
    if "*" not in name:
        with open(path, "w") as file:
            file.write("before")
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    error, text = None, None
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        exec(code)
    except OSError as caught:
        error, text = caught, str(caught)
    except Exception as caught:
        text = "".join(traceback.format_exception(caught))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    found[f"{limit} {name}"] = {
        "names": error is not None and str(error.filename or ""),
        "text": text,
        "left": {n: os.path.getsize(os.path.join(inside, n)) for n in os.listdir(inside)},
    }
print(json.dumps(found))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there are no limits of files")
def test_writers_on_a_full_disk(tmp_path):
    """One of no bytes, and one of fewer than they write."""
    limits = [0, 300]
    ran = subprocess.run(
        [
            sys.executable,
            "-W",
            "ignore",
            "-c",
            SCRIPT,
            str(tmp_path),
            json.dumps(WRITERS),
            json.dumps(limits),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    found = json.loads(ran.stdout.splitlines()[-1])
    assert len(found) >= len(limits) * (len(WRITERS) - 1)
    for case, what in found.items():
        assert what["names"], f"{case}: {what}"
        name = case.partition(" ")[2]
        last = Path(what["names"]).name
        if "*" in name:
            assert ".tfevents." in last and set(what["left"]) == {last}
            continue
        assert last in (name, f"{name}.db"), what
        assert name in what["text"]
        assert what["left"] == {name: len("before")}, f"{case}: {what['left']}"


#: Who opens files to write: the mechanism itself, those that use its names, and streams.
OPENERS = {
    "__main__.py",  # nothing, in the place of a pipe whose reader has gone
    "base/whole_file.py",
    "communication/worker.py",  # a worker's log
    "deepxde/names.py",
    "mindrecord/writer.py",
    "train/summary/summary_record.py",  # a stream of events
}


@pytest.mark.one_in(6)
def test_no_other_function_writes_files():
    package = Path(gradcell.__file__).parent
    found = set()
    for file in package.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and writes(node):
                found.add(file.relative_to(package).as_posix())
    assert found == OPENERS


def writes(call: ast.Call) -> bool:
    last = getattr(call.func, "attr", getattr(call.func, "id", ""))
    if last not in (
        "open",
        "write_text",
        "write_bytes",
        "savez",
        "tofile",
        "dump",
        "save",
        "replace",
    ):
        return False
    name = ast.unparse(call.func)
    if name in ("open", "gzip.open", "io.open"):
        modes = [*call.args[1:2], *(k.value for k in call.keywords if k.arg == "mode")]
        return any(isinstance(m, ast.Constant) and set("wxa+") & set(str(m.value)) for m in modes)
    return name.rpartition(".")[2] in ("write_text", "write_bytes", "savez", "tofile") or name in (
        "os.open",
        "json.dump",
        "pickle.dump",
        "np.save",
        "os.replace",
    )
