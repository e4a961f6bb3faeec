"""What is said for a name that a module does not have: what to write instead, or the nearest names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

#: {module: {a name of PyTorch's or JAX's: what to write here}}.
INSTEAD = {
    "gradcell": {
        "arange": "ops.arange", "cat": "ops.concat", "zeros": "ops.zeros", "ones": "ops.ones",
        "linspace": "ops.linspace", "matmul": "ops.matmul", "stack": "ops.stack",
        "sin": "ops.sin", "exp": "ops.exp", "sum": "ops.reduce_sum", "mean": "ops.mean",
        "randn": "ops.randn", "rand": "ops.rand", "where": "ops.where",
        "save": "gradcell.save_checkpoint", "load": "gradcell.load_checkpoint",
        "autograd": "gradcell.grad, which takes a function", "optim": "nn.Adam and its kin",
        "compile": "gradcell.jit",
        "device": "gradcell.set_context(device_target=...)", "jacobian": "gradcell.jacrev or gradcell.jacfwd",
        "array": "gradcell.Tensor", "lax": "ops", "random": "ops.randn and gradcell.set_seed",
    },
    "gradcell.nn": {
        "Module": "nn.Cell, with construct in place of forward",
        "Sequential": "nn.SequentialCell", "ModuleList": "nn.CellList",
        "Parameter": "gradcell.Parameter", "BatchNorm": "nn.BatchNorm1d or nn.BatchNorm2d",
        "functional": "ops", "CrossEntropy": "nn.CrossEntropyLoss", "init": "gradcell.common.initializer",
    },
    "gradcell.ops": {
        "mse": "ops.mse_loss",
        "linear": "nn.Dense, or ops.matmul", "array": "gradcell.Tensor", "tensor": "gradcell.Tensor",
    },
}  # fmt: skip


def missing(module: str, name: str, names: Iterable[str]) -> AttributeError:
    """The error for a name that a module does not have."""
    text = f"module '{module}' has no attribute {name!r}"
    instead = INSTEAD.get(module, {}).get(name)
    if instead is not None:
        return AttributeError(f"{text}: use {instead}")
    if name.startswith("_"):
        return AttributeError(text)
    near = difflib.get_close_matches(name, list(names), 3, 0.75)
    return AttributeError(f"{text}; did you mean {' or '.join(near)}?" if near else text)
