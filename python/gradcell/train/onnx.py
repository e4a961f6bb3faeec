"""export: a network's recorded graph as an ONNX file.

What is written are the graph's own nodes, each as one operator of ONNX, or a few (onnx_rules.py);
parameters are initialisers under their names.
"""

from __future__ import annotations

import importlib
import os
from typing import Any

from gradcell._core import Tensor
from gradcell.base import arguments, bad_type, bad_value, publish
from gradcell.base.whole_file import write_whole
from gradcell.nn.cell import Cell
from gradcell.ops.networks.attention import composed
from gradcell.show.inspect import recorded_nodes
from gradcell.tensors.tensor import declared_shape
from gradcell.train.data import evaluating
from gradcell.train.onnx_rules import write_nodes
from gradcell.train.onnx_writer import Writer

_OPSET = 18


def _package() -> Any:
    try:
        onnx = importlib.import_module("onnx")
        importlib.import_module("onnx.numpy_helper")
    except ImportError as error:
        raise ImportError("export needs the package onnx: pip install gradcell[onnx]") from error
    return onnx


def onnx_model(net: Cell, *inputs: Tensor) -> Any:
    """The ONNX model of net(*inputs), in the mode (training or not) that the network is in.

    Inputs are named as construct's parameters, outputs output or output_0, output_1, ...; shapes are
    those of the inputs. Raises NotImplementedError for a node that ONNX cannot express: random
    numbers (dropout in training mode); ValueError for an input of a shape that is not known.
    """
    onnx = _package()
    for k, x in enumerate(inputs):
        sizes = declared_shape(arguments.tensor(x, "export", f"inputs[{k}]"))
        if min(sizes, default=0) < 0:
            known = [None if n < 0 else n for n in sizes] if sizes != [-2] else None
            bad_value(
                f"export: inputs[{k}] is declared with shape {known}, but the file's shapes are those of the "
                "inputs: give a tensor of the shape that the file's network is to take"
            )
    with composed():
        nodes, given, outputs, parameters = recorded_nodes(net, inputs, net.get_parameters())
    code = net.construct.__code__
    words = list(code.co_varnames[1 : code.co_argcount])
    words += [f"input_{k}" for k in range(len(words), len(inputs))]
    writer = Writer(onnx, nodes, dict(zip(given, words, strict=False)))
    write_nodes(writer, nodes, parameters)
    return _model(writer, words, inputs, outputs)


def _model(e: Writer, words: list[str], inputs: tuple[Tensor, ...], outputs: list[int]) -> Any:
    info = e.helper.make_tensor_value_info
    results = []
    for k, node in enumerate(outputs):
        name = e.fresh("output" if len(outputs) == 1 else f"output_{k}")
        whole = e.whole(node)
        e.made.append(e.helper.make_node("Identity", [whole], [name], name))
        about = e.by_id[node]
        results.append(info(name, e.types[about["dtype"].name], about["shape"]))
    values = [
        info(word, e.types[x.dtype.name], list(x.shape))
        for word, x in zip(words, inputs, strict=False)
    ]
    graph = e.helper.make_graph(e.made, "gradcell", values, results, e.initializers)
    opsets = [e.helper.make_opsetid("", _OPSET)]
    model = e.helper.make_model(graph, opset_imports=opsets, producer_name="gradcell", ir_version=8)
    e.onnx.checker.check_model(model)
    return model


def export(
    net: Cell, *inputs: Any, file_name: str, file_format: str = "ONNX", **unused: Any
) -> None:
    """Writes a network as an ONNX file, in evaluation mode.

    inputs: tensors of the shapes and dtypes that the file's network is to take. file_name: '.onnx'
    is appended unless it ends in that. file_format: 'ONNX', the only one there is. net: a Cell.
    unused: options of MindSpore that have no effect in gradcell. Raises ValueError for another
    format, what onnx_model raises, and OSError if the file cannot be written.
    """
    if not isinstance(net, Cell):
        bad_type(f"export: expected a Cell, got {type(net).__name__}")
    if not isinstance(file_name, (str, os.PathLike)):
        bad_type("export: 'file_name' must be a string")
    if file_format != "ONNX":
        bad_value(
            f"export: 'file_format' must be 'ONNX', got {file_format!r}: gradcell writes no other; "
            "save_checkpoint keeps a network's parameters"
        )
    with evaluating(net):
        model = onnx_model(net, *inputs)
    path = os.fspath(file_name)
    data = model.SerializeToString()
    write_whole(path if path.endswith(".onnx") else path + ".onnx", data)


publish(globals())
