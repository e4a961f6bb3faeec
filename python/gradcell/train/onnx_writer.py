"""An ONNX graph while it is written: operators, initialisers, and their names."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcell._core import Tensor

Node = dict[str, Any]


class Writer:
    """Makes the operators and initialisers of an ONNX graph for the nodes of a recorded one.

    names: of nodes that have been written, by their number; at first the inputs.
    """

    def __init__(self, onnx: Any, nodes: list[Node], inputs: dict[int, str]) -> None:
        self.helper: Any = onnx.helper
        self.onnx: Any = onnx
        self.types: dict[str, Any] = {
            name: getattr(onnx.TensorProto, kind)
            for name, kind in (
                ("bool", "BOOL"), ("uint8", "UINT8"), ("int8", "INT8"), ("int16", "INT16"),
                ("int32", "INT32"), ("int64", "INT64"), ("float16", "FLOAT16"),
                ("bfloat16", "BFLOAT16"), ("float32", "FLOAT"), ("float64", "DOUBLE"),
            )
        }  # fmt: skip
        self.by_id: dict[Any, Node] = {node["id"]: node for node in nodes}
        self.names: dict[int, str] = dict(inputs)
        self.made: list[Any] = list[Any]()
        self.initializers: list[Any] = list[Any]()
        self.taken: set[str] = set(inputs.values())
        self.full: dict[int, str] = {}
        self.constants: dict[tuple[Any, ...], str] = {}

    # Pieces ---------------------------------------------------------------------------------------

    def fresh(self, name: str) -> str:
        """A name that nothing has yet: this one, or this one with a number."""
        made, k = name, 0
        while made in self.taken:
            k += 1
            made = f"{name}_{k}"
        self.taken.add(made)
        return made

    def array(self, value: np.ndarray, name: str = "constant") -> str:
        """An initialiser, one for all equal ones of the same name."""
        key = name, value.dtype.str, value.shape, value.tobytes()
        if key not in self.constants:
            made = self.constants[key] = self.fresh(name)
            self.initializers.append(self.onnx.numpy_helper.from_array(value, made))
        return self.constants[key]

    def tensor(self, value: Tensor, name: str) -> str:
        """An initialiser of a tensor's values, bfloat16 too."""
        bits = value._numpy()
        if value.dtype.name != "bfloat16":
            return self.array(np.asarray(bits, order="C"), name)
        name = self.fresh(name)
        kind, data = self.types["bfloat16"], np.ascontiguousarray(bits).tobytes()
        made = self.helper.make_tensor(name, kind, list(value.shape), data, raw=True)
        self.initializers.append(made)
        return name

    def number(self, value: float, node: Node) -> str:
        """A number in the dtype of a node."""
        return self.tensor(Tensor(value, node["dtype"]), "constant")

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """An operator, by its first output."""
        return self.outputs(1, kind, *inputs, **attributes)[0]

    def outputs(self, count: int, kind: str, *inputs: str, **attributes: Any) -> list[str]:
        """An operator, by the names of its outputs."""
        names = [self.fresh(kind) for _ in range(count)]
        self.made.append(self.helper.make_node(kind, list(inputs), names, names[0], **attributes))
        return names

    def shape(self, dims: list[int]) -> str:
        """A shape, or a list of axes, as an input."""
        return self.array(np.array(dims, np.int64), "shape")

    def inputs(self, node: Node) -> list[str]:
        """Return a node's inputs in their whole shapes; constants are otherwise kept as one number."""
        return [self.whole(i) for i in node["inputs"]]

    def whole(self, i: int) -> str:
        """The name of a node's values in its full shape, also of a constant, which is kept as one number."""
        node = self.by_id[i]
        if node["op"] != "Const" or not node["shape"]:
            return self.names[i]
        if i not in self.full:
            self.full[i] = self.op("Expand", self.names[i], self.shape(node["shape"]))
        return self.full[i]
