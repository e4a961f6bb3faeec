"""The primitives that MindSpore's cells keep as attributes, for classes that are derived from them and
call self.conv2d(x, weight), self.layer_norm(x, gamma, beta) or self.reduce_mean(loss) in a construct of
their own. They are made when they are asked for: the cells here compute without them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcell import ops
from gradcell._core import Tensor
from gradcell.dtype import int32


def _op(name: str, *attributes: Any, **named: Any) -> Any:
    return getattr(ops, name)(*attributes, **named)


def _convolution(name: str) -> Callable[[Any], Any]:
    def made(cell: Any) -> Any:
        options = {"pad_mode": cell.pad_mode, "pad": cell.padding, "stride": cell.stride}
        options |= {"dilation": cell.dilation, "group": cell.group}
        return _op(name, cell.out_channels, cell.kernel_size, **options)

    return made


def _pooling(name: str) -> Callable[[Any], Any]:
    return lambda cell: _op(name, cell.kernel_size, cell.stride, cell.pad_mode)


def _norm(is_training: bool) -> Callable[[Any], Any]:
    return lambda cell: _op("BatchNorm", is_training, cell.eps, 1 - cell.momentum)


def _plain(names: str) -> dict[str, Callable[[Any], Any]]:
    """attribute=Primitive without options, several of them."""

    def maker(name: str) -> Callable[[Any], Any]:
        return lambda cell: _op(name)

    pairs = (entry.split("=") for entry in names.split())
    return {attribute: maker(name) for attribute, name in pairs}


#: By the classes' names, which stand for those derived from them.
_HELD: dict[str, dict[str, Callable[[Any], Any]]] = {
    "Dense": {
        "matmul": lambda _: _op("MatMul", transpose_b=True),
        **_plain("bias_add=BiasAdd reshape=Reshape shape_op=Shape"),
    },
    "Conv1d": {
        "conv2d": _convolution("Conv2D"),
        "squeeze": lambda _: _op("Squeeze", 2),
        **_plain("bias_add=BiasAdd expand_dims=ExpandDims shape=Shape"),
    },
    "Conv2d": {"conv2d": _convolution("Conv2D"), **_plain("bias_add=BiasAdd")},
    "Conv3d": {"conv3d": _convolution("Conv3D"), **_plain("bias_add=BiasAdd shape=Shape")},
    "LayerNorm": {
        "layer_norm": lambda cell: _op(
            "LayerNorm", cell.begin_norm_axis, cell.begin_params_axis, cell.epsilon
        )
    },
    "_BatchNorm": {
        "bn_train": _norm(True),
        "bn_infer": _norm(False),
        **_plain("reshape=Reshape shape=Shape square=Square sqrt=Sqrt cast=Cast"),
    },
    "Dropout": {"dropout": lambda cell: _op("Dropout", cell.keep_prob)},
    "Embedding": {
        "init_tensor": lambda cell: cell.embedding_table,
        **_plain("gather=Gather reshape=Reshape expand=ExpandDims get_shp=Shape array_mul=MatMul"),
    },
    "MaxPool2d": {"max_pool": _pooling("MaxPool")},
    "AvgPool2d": {"avg_pool": _pooling("AvgPool")},
    "Softmax": {"softmax": lambda cell: _op("Softmax", cell.axis)},
    "LogSoftmax": {"log_softmax": lambda cell: _op("LogSoftmax", cell.axis)},
    "ReLU": _plain("relu=ReLU"),
    "ReLU6": _plain("relu6=ReLU6"),
    "Tanh": _plain("tanh=Tanh"),
    "Sigmoid": _plain("sigmoid=Sigmoid"),
    "HSwish": _plain("hswish=HSwish"),
    "HSigmoid": _plain("hsigmoid=HSigmoid"),
    "PReLU": {"prelu": lambda _: _op("PReLU"), "w": lambda cell: cell.weight},
    "LossBase": {
        "reduce_mean": lambda _: _op("ReduceMean"),
        "reduce_sum": lambda _: _op("ReduceSum"),
        **_plain("mul=Mul cast=Cast"),
    },
    "Optimizer": {
        "map_reverse": lambda _: _op("Map", None, True),
        "hyper_map_reverse": lambda _: _op("HyperMap", None, True),
        "global_step_increase_tensor": lambda _: Tensor(1, int32),
        "optim_filter": lambda cell: (True,) * len(cell.parameters),
        "use_parallel": lambda _: False,
        **_plain("map_=Map hyper_map=HyperMap assignadd=AssignAdd"),
    },
    "TrainOneStepCell": _plain("hyper_map=HyperMap"),
    "LARS": {"global_step": lambda cell: cell.opt.global_step},
    "SequentialCell": {"cell_list": lambda cell: tuple(cell.cells())},
}


def held_by(cell: Any, name: str) -> Any:
    """Return the primitive that MindSpore's cell of this kind has under a name, or None."""
    for kind in type(cell).__mro__:
        makes = _HELD.get(kind.__name__, {}).get(name)
        if makes is not None and str(kind.__module__).startswith("gradcell."):
            return makes(cell)
    return None
