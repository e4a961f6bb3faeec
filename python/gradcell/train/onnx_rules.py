"""Rules that write each op of a recorded graph in ONNX: as the same operator, or as a few. Where
there is none, the op says why (`Spec::not_in_onnx`).

Operators: https://onnx.ai/onnx/operators/, opset 18.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from gradcell._core import Tensor, op_table
from gradcell.base import unsupported
from gradcell.tensors.parameter import Parameter
from gradcell.train.onnx_writer import Node, Writer

#: Nodes that are one operator of ONNX on the same inputs.
SAME = {
    "Neg": "Neg", "Abs": "Abs", "Sign": "Sign", "Sqrt": "Sqrt", "Reciprocal": "Reciprocal",
    "Exp": "Exp", "Log": "Log", "Sin": "Sin", "Cos": "Cos", "Tan": "Tan", "Asin": "Asin",
    "Acos": "Acos", "Atan": "Atan", "Sinh": "Sinh", "Cosh": "Cosh", "Tanh": "Tanh",
    "Asinh": "Asinh", "Acosh": "Acosh", "Atanh": "Atanh", "Sigmoid": "Sigmoid", "Erf": "Erf",
    "Floor": "Floor", "Ceil": "Ceil", "Round": "Round", "ReLU": "Relu", "LogicalNot": "Not",
    "Add": "Add", "Sub": "Sub", "Mul": "Mul", "Div": "Div", "Pow": "Pow", "Maximum": "Max",
    "Minimum": "Min", "LogicalAnd": "And", "LogicalOr": "Or", "LogicalXor": "Xor",
    "Equal": "Equal", "Less": "Less", "LessEqual": "LessOrEqual", "Greater": "Greater",
    "GreaterEqual": "GreaterOrEqual", "Select": "Where", "Alias": "Identity",
    "StopGradient": "Identity",
}  # fmt: skip


def _iota(e: Writer, n: Node) -> str:
    axis, dims = n["attributes"]["axis"], n["shape"]
    line = np.arange(dims[axis]).reshape([-1 if k == axis else 1 for k in range(len(dims))])
    values = np.broadcast_to(line, dims)
    return e.tensor(Tensor(np.ascontiguousarray(values), n["dtype"]), "iota")


def _first(e: Writer, n: Node) -> str:
    return e.op("Identity", e.names[n["inputs"][0]])


def _trunc(e: Writer, n: Node) -> str:
    (x,) = e.inputs(n)
    if not n["dtype"].is_floating:
        return e.op("Identity", x)
    below = e.op("Less", x, e.number(0, n))
    return e.op("Where", below, e.op("Ceil", x), e.op("Floor", x))


def _expm1(e: Writer, n: Node) -> str:
    """tanh(x / 2) (exp(x) + 1): no digits are lost near 0."""
    (x,) = e.inputs(n)
    half = e.op("Tanh", e.op("Mul", x, e.number(0.5, n)))
    return e.op("Mul", half, e.op("Add", e.op("Exp", x), e.number(1, n)))


def _log1p(e: Writer, n: Node) -> str:
    """log(u) x / (u - 1) with u = fl(1 + x), or x where u is 1 (Goldberg, ACM Computing Surveys 23,
    1991, theorem 4)."""
    (x,) = e.inputs(n)
    one = e.number(1, n)
    u = e.op("Add", x, one)
    ratio = e.op("Div", x, e.op("Sub", u, one))
    small = e.op("Equal", u, one)
    huge = e.op("Equal", e.op("Sub", u, one), u)  # where x is too large for 1 to matter
    made = e.op("Where", huge, e.op("Log", u), e.op("Mul", e.op("Log", u), ratio))
    return e.op("Where", small, x, made)


def _ndtr(e: Writer, n: Node) -> str:
    (x,) = e.inputs(n)
    erf = e.op("Erf", e.op("Mul", x, e.number(math.sqrt(0.5), n)))
    return e.op("Mul", e.number(0.5, n), e.op("Add", e.number(1, n), erf))


def _logit(e: Writer, n: Node) -> str:
    (x,) = e.inputs(n)
    return e.op("Log", e.op("Div", x, e.op("Sub", e.number(1, n), x)))


def _log_to(base: float) -> Callable[[Writer, Node], str]:
    def rule(e: Writer, n: Node) -> str:
        return e.op("Mul", e.op("Log", *e.inputs(n)), e.number(1 / math.log(base), n))

    return rule


def _mod(e: Writer, n: Node) -> str:
    """With the divisor's sign, as Python has it."""
    a, b = e.inputs(n)
    if not n["dtype"].is_floating:
        return e.op("Mod", a, b)
    rest, zero = e.op("Mod", a, b, fmod=1), e.number(0, n)
    signs = e.op("Xor", e.op("Less", rest, zero), e.op("Less", b, zero))
    wrong = e.op("And", e.op("Not", e.op("Equal", rest, zero)), signs)
    return e.op("Where", wrong, e.op("Add", rest, b), rest)


def _floor_div(e: Writer, n: Node) -> str:
    a, b = e.inputs(n)
    quotient = e.op("Div", e.op("Sub", a, _mod(e, n)), b)
    return e.op("Round", quotient) if n["dtype"].is_floating else quotient


def _numbers(e: Writer, n: Node) -> str:
    """The input, as floats: ONNX asks only those whether they are NaN or infinite."""
    (x,) = e.inputs(n)
    floating = e.by_id[n["inputs"][0]]["dtype"].is_floating
    return x if floating else e.op("Cast", x, to=e.types["float32"])


def _finite(e: Writer, n: Node) -> str:
    x = _numbers(e, n)
    return e.op("Not", e.op("Or", e.op("IsNaN", x), e.op("IsInf", x)))


def _slice(e: Writer, n: Node) -> str:
    start, step = n["attributes"]["start"], n["attributes"]["step"]
    ends = [s + d * c for s, d, c in zip(start, step, n["shape"], strict=True)]
    ends = [end if end >= 0 else -(2**31) for end in ends]  # backwards, through the first element
    axes = [
        k
        for k, count in enumerate(e.by_id[n["inputs"][0]]["shape"])
        if (start[k], step[k], n["shape"][k]) != (0, 1, count)
    ]
    chosen = [e.shape([values[k] for k in axes]) for values in (start, ends)]
    return e.op("Slice", *e.inputs(n), *chosen, e.shape(axes), e.shape([step[k] for k in axes]))


def _slice_scatter(e: Writer, n: Node) -> str:
    (x,) = e.inputs(n)
    start, step = n["attributes"]["start"], n["attributes"]["step"]
    dims, counts = n["shape"], e.by_id[n["inputs"][0]]["shape"]
    if all(d == 1 for d in step):
        after = [t - s - c for t, s, c in zip(dims, start, counts, strict=True)]
        return e.op("Pad", x, e.shape([*start, *after]), e.number(0, n))
    lines = [s + d * np.arange(c) for s, d, c in zip(start, step, counts, strict=True)]
    places = np.ravel_multi_index(np.meshgrid(*lines, indexing="ij"), dims).reshape(-1)
    zeros = e.op("Expand", e.number(0, n), e.shape([math.prod(dims)]))
    index, flat = e.array(places.astype(np.int64)), e.op("Reshape", x, e.shape([-1]))
    made = e.op("ScatterElements", zeros, index, flat, axis=0)
    return e.op("Reshape", made, e.shape(dims), allowzero=1)


def _matmul(e: Writer, n: Node) -> str:
    a, b = e.inputs(n)
    rank, flags = len(n["shape"]), n["attributes"]
    swapped = [*range(rank - 2), rank - 1, rank - 2]
    if flags["transpose_a"]:
        a = e.op("Transpose", a, perm=swapped)
    if flags["transpose_b"]:
        b = e.op("Transpose", b, perm=swapped)
    return e.op("MatMul", a, b)


def _padded(e: Writer, n: Node, x: str, before: list[int], after: list[int], fill: float) -> str:
    """The last dimensions with more around them, or less."""
    if not any(before) and not any(after):
        return x
    outer = [0] * (len(n["shape"]) - len(before))
    return e.op("Pad", x, e.shape([*outer, *before, *outer, *after]), e.number(fill, n))


def _missing(e: Writer, n: Node, kernel: list[int]) -> list[int]:
    """Return how far the last window of each dimension reaches beyond the image."""
    a, image = n["attributes"], e.by_id[n["inputs"][0]]["shape"][-len(kernel) :]
    steps = zip(n["shape"][-len(kernel) :], a["stride"], kernel, a["dilation"], strict=True)
    reach = [(y - 1) * s + (k - 1) * d + 1 for y, s, k, d in steps]
    return [r - x - b for r, x, b in zip(reach, image, a["before"], strict=True)]


def _convolution(e: Writer, n: Node) -> str:
    x, w = e.inputs(n)
    a, kernel = n["attributes"], e.by_id[n["inputs"][1]]["shape"][2:]
    x = _padded(e, n, x, a["before"], _missing(e, n, kernel), 0)
    return e.op("Conv", x, w, strides=a["stride"], dilations=a["dilation"], group=a["groups"])


def _convolution_input(e: Writer, n: Node) -> str:
    y, w = e.inputs(n)
    a, kernel = n["attributes"], e.by_id[n["inputs"][1]]["shape"][2:]
    how = {"strides": a["stride"], "dilations": a["dilation"], "group": a["groups"]}
    made, image = e.op("ConvTranspose", y, w, **how), e.by_id[n["inputs"][0]]["shape"][2:]
    steps = zip(image, a["stride"], kernel, a["dilation"], strict=True)
    whole = [(y - 1) * s + (k - 1) * d + 1 for y, s, k, d in steps]
    after = [x - f + b for x, f, b in zip(a["size"], whole, a["before"], strict=True)]
    return _padded(e, n, made, [-b for b in a["before"]], after, 0)


def _convolution_weight(e: Writer, n: Node) -> str:
    """A convolution of x with y's gradient, images and channels exchanged; windows move
    as the kernel's elements did."""
    x, y = e.inputs(n)
    a = n["attributes"]
    (images, channels, *size), (_, _, *windows) = (e.by_id[i]["shape"] for i in n["inputs"])
    groups, rank = a["groups"], len(size)
    each = channels // groups
    last = list(range(2, 2 + rank))
    x = e.op("Reshape", x, e.shape([images, groups, each, *size]), allowzero=1)
    x = e.op("Transpose", x, perm=[2, 1, 0, *(k + 1 for k in last)])
    x = e.op("Reshape", x, e.shape([each, groups * images, *size]), allowzero=1)
    y = e.op("Transpose", y, perm=[1, 0, *last])
    steps = zip(a["size"], a["dilation"], windows, a["stride"], size, a["before"], strict=True)
    after = [(k - 1) * d + (p - 1) * s + 1 - q - b for k, d, p, s, q, b in steps]
    x = _padded(e, n, x, a["before"], after, 0)
    made = e.op("Conv", x, y, strides=a["dilation"], dilations=a["stride"], group=groups)
    return e.op("Transpose", made, perm=[1, 0, *last])


def _largest(e: Writer, n: Node) -> tuple[str, str, list[int]]:
    """(the largest elements, their places in all of the padded input, that one's windowed sizes)."""
    (x,) = e.inputs(n)
    a, source = n["attributes"], e.by_id[n["inputs"][0]]
    rank, after = len(a["kernel"]), _missing(e, n, a["kernel"])
    x = _padded(e, {**n, "dtype": source["dtype"]}, x, a["before"], after, -math.inf)
    sizes = [q + b + f for q, b, f in zip(source["shape"][-rank:], a["before"], after, strict=True)]
    x = e.op("Reshape", x, e.shape([-1, 1, *sizes]))
    how = {"kernel_shape": a["kernel"], "strides": a["stride"], "dilations": a["dilation"]}
    best, found = e.outputs(2, "MaxPool", x, **how)
    return best, found, sizes


def _window_max(e: Writer, n: Node) -> str:
    return e.op("Reshape", _largest(e, n)[0], e.shape(n["shape"]), allowzero=1)


def _window_argmax(e: Writer, n: Node) -> str:
    _, found, sizes = _largest(e, n)
    a, real = n["attributes"], e.by_id[n["inputs"][0]]["shape"][-len(sizes) :]
    place = ""
    for k, (size, before) in enumerate(zip(sizes, a["before"], strict=True)):
        inner, step = math.prod(sizes[k + 1 :]), math.prod(real[k + 1 :])
        at = e.op("Mod", e.op("Div", found, e.shape([inner])), e.shape([size]))
        at = e.op("Mul", e.op("Sub", at, e.shape([before])), e.shape([step]))
        place = e.op("Add", place, at) if place else at
    place = e.op("Reshape", place, e.shape(n["shape"]), allowzero=1)
    return e.op("Cast", place, to=e.types[n["dtype"].name])


def _take_along(e: Writer, n: Node) -> str:
    x, at = e.inputs(n)
    none = e.array(np.array(0, np.int32))
    taken = e.op("GatherElements", x, e.op("Max", at, none), axis=1)
    return e.op("Where", e.op("Less", at, none), e.number(0, n), taken)


def _put_along(e: Writer, n: Node) -> str:
    at, updates = e.inputs(n)
    none = e.array(np.array(0, np.int32))
    kept = e.op("Where", e.op("Less", at, none), e.number(0, n), updates)
    zeros = e.op("Expand", e.number(0, n), e.shape(n["shape"]))
    at = e.op("Max", at, none)
    return e.op("ScatterElements", zeros, at, kept, axis=1, reduction="add")


def _sample(part: str) -> Callable[[Writer, Node], str]:
    """A derivative of the form that ops/moving/sampling.h states, by its 'result', 'source' or 'weight'."""

    def rule(e: Writer, n: Node) -> str:
        first, at, last = e.inputs(n)
        channels = e.by_id[n["inputs"][0]]["shape"][1]
        images, places, results = e.by_id[n["inputs"][1]]["shape"]
        full, rows = [images, channels, places, results], [images * channels, places * results]
        none = e.array(np.array(0, np.int32))

        def spread(x: str, axis: int) -> str:
            one = [1 if k == axis else m for k, m in enumerate(full)]
            x = e.op("Reshape", x, e.shape(one), allowzero=1)
            return e.op("Expand", x, e.shape(full))

        at = e.op("Reshape", spread(at, 1), e.shape(rows), allowzero=1)
        inside = e.op("Max", at, none)
        outside = e.op("Less", at, none)
        if part == "source":
            updates = e.op("Mul", spread(first, 2), spread(last, 1))
            updates = e.op("Reshape", updates, e.shape(rows), allowzero=1)
            updates = e.op("Where", outside, e.number(0, n), updates)
            lines = [rows[0], n["attributes"]["size"]]
            zeros = e.op("Expand", e.number(0, n), e.shape(lines))
            y = e.op("ScatterElements", zeros, inside, updates, axis=1, reduction="add")
        else:
            x = e.op("Reshape", first, e.shape([rows[0], -1]))
            taken = e.op("GatherElements", x, inside, axis=1)
            taken = e.op("Where", outside, e.number(0, n), taken)
            taken = e.op("Reshape", taken, e.shape(full), allowzero=1)
            axis = 2 if part == "result" else 1
            y = e.op("Mul", taken, spread(last, 1 if part == "result" else 2))
            y = e.op("ReduceSum", y, e.shape([axis]), keepdims=0)
        return e.op("Reshape", y, e.shape(n["shape"]), allowzero=1)

    return rule


def _reduce(kind: str) -> Callable[[Writer, Node], str]:
    def rule(e: Writer, n: Node) -> str:
        return e.op(kind, *e.inputs(n), e.shape(n["attributes"]["axes"]), keepdims=0)

    return rule


def _arg(kind: str) -> Callable[[Writer, Node], str]:
    def rule(e: Writer, n: Node) -> str:
        found = e.op(kind, *e.inputs(n), axis=n["attributes"]["axis"], keepdims=0)
        return e.op("Cast", found, to=e.types[n["dtype"].name])

    return rule


def _cumsum(e: Writer, n: Node) -> str:
    axis = e.array(np.array(n["attributes"]["axis"], np.int64))
    flags = {name: int(n["attributes"][name]) for name in ("exclusive", "reverse")}
    return e.op("CumSum", *e.inputs(n), axis, **flags)


def _linear_recurrence(e: Writer, n: Node) -> str:
    """A Scan, whose body is one step."""
    flags, info, node = n["attributes"], e.helper.make_tensor_value_info, e.helper.make_node
    axis, back, kind = flags["axis"], int(flags["reverse"]), e.types[n["dtype"].name]
    one = [d for k, d in enumerate(n["shape"]) if k != axis]
    names = map(e.fresh, ("before", "factor", "term", "product", "after", "result"))
    before, factor, term, product, after, result = names
    steps = [
        node("Mul", [factor, before], [product]),
        node("Add", [product, term], [after]),
        node("Identity", [before if flags["exclusive"] else after], [result]),
    ]
    given = [info(name, kind, one) for name in (before, factor, term)]
    found = [info(name, kind, one) for name in (after, result)]
    body = e.helper.make_graph(steps, "step", given, found)
    begin = e.op("Expand", e.number(0, n), e.shape(one))
    places = {"scan_input_axes": [axis] * 2, "scan_output_axes": [axis]}
    ways = {"scan_input_directions": [back] * 2, "scan_output_directions": [back]}
    how = {"body": body, "num_scan_inputs": 2, **places, **ways}
    return e.outputs(2, "Scan", begin, *e.inputs(n), **how)[1]


def _scatter_add(e: Writer, n: Node) -> str:
    """Updates added at the positions of an axis that the indices say; the others are 0."""
    index, updates = e.inputs(n)
    axis, dims = n["attributes"]["axis"], n["shape"]
    at = e.by_id[n["inputs"][0]]["shape"]
    flat = [*dims[:axis], math.prod(at), *dims[axis + 1 :]]
    zeros = e.op("Expand", e.number(0, n), e.shape(dims))
    column = e.shape([math.prod(at) if k == axis else 1 for k in range(len(dims))])
    places = e.op("Expand", e.op("Reshape", index, column), e.shape(flat))
    updates = e.op("Reshape", updates, e.shape(flat))
    return e.op("ScatterElements", zeros, places, updates, axis=axis, reduction="add")


RULES: dict[str, Callable[[Writer, Node], str]] = {
    "Const": lambda e, n: e.number(n["attributes"]["value"], n),
    "Leaf": lambda e, n: e.tensor(n["value"], "constant"),
    "Iota": _iota,
    "CallOutput": _first,  # the others are for derivatives
    "ValueOf": _first,
    "After": _first,
    "Cast": lambda e, n: e.op("Cast", e.names[n["inputs"][0]], to=e.types[n["dtype"].name]),
    "Square": lambda e, n: e.op("Mul", *e.inputs(n), *e.inputs(n)),
    "Rsqrt": lambda e, n: e.op("Reciprocal", e.op("Sqrt", *e.inputs(n))),
    "Exp2": lambda e, n: e.op("Pow", e.number(2, n), *e.inputs(n)),
    "Expm1": _expm1,
    "Log1p": _log1p,
    "Log2": _log_to(2),
    "Log10": _log_to(10),
    "Erfc": lambda e, n: e.op("Sub", e.number(1, n), e.op("Erf", *e.inputs(n))),
    "Ndtr": _ndtr,
    "Logit": _logit,
    "HSigmoid": lambda e, n: e.op("HardSigmoid", *e.inputs(n), alpha=1 / 6, beta=0.5),
    "HSwish": lambda e, n: e.op("HardSwish", *e.inputs(n)),
    "Trunc": _trunc,
    "Mod": _mod,
    "Fmod": lambda e, n: e.op("Mod", *e.inputs(n), fmod=1),
    "FloorDiv": _floor_div,
    "NotEqual": lambda e, n: e.op("Not", e.op("Equal", *e.inputs(n))),
    "IsFinite": _finite,
    "IsNan": lambda e, n: e.op("IsNaN", _numbers(e, n)),
    "IsInf": lambda e, n: e.op("IsInf", _numbers(e, n)),
    "Permitted": lambda e, n: e.number(0, n),  # 0, or an error
    "Reshape": lambda e, n: e.op("Reshape", *e.inputs(n), e.shape(n["shape"]), allowzero=1),
    "Transpose": lambda e, n: e.op("Transpose", *e.inputs(n), perm=n["attributes"]["perm"]),
    "BroadcastTo": lambda e, n: e.op("Expand", *e.inputs(n), e.shape(n["shape"])),
    "Slice": _slice,
    "SliceScatter": _slice_scatter,
    "Concat": lambda e, n: e.op("Concat", *e.inputs(n), axis=n["attributes"]["axis"]),
    "MatMul": _matmul,
    "Convolution": _convolution,
    "ConvolutionInput": _convolution_input,
    "ConvolutionWeight": _convolution_weight,
    "WindowMax": _window_max,
    "WindowArgMax": _window_argmax,
    "TakeAlong": _take_along,
    "PutAlong": _put_along,
    "Sample": _sample("result"),
    "SampleSource": _sample("source"),
    "SampleWeight": _sample("weight"),
    "ReduceSum": _reduce("ReduceSum"),
    "ReduceMax": _reduce("ReduceMax"),
    "ReduceProd": _reduce("ReduceProd"),
    "ReduceMin": _reduce("ReduceMin"),
    "ArgMax": _arg("ArgMax"),
    "ArgMin": _arg("ArgMin"),
    "CumSum": _cumsum,
    "LinearRecurrence": _linear_recurrence,
    **dict.fromkeys(
        ("Gather", "Label"), lambda e, n: e.op("Gather", *e.inputs(n), axis=n["attributes"]["axis"])
    ),
    "ScatterAdd": _scatter_add,
}


def write_nodes(e: Writer, nodes: list[Node], parameters: dict[int, Parameter]) -> None:
    """The nodes one after the other; parameters, by their nodes' numbers, are initialisers under their
    names. Raises NotImplementedError for a node that ONNX cannot express."""
    for node in nodes:
        i = node["id"]
        if i in e.names:  # an input
            continue
        known = parameters.get(i) if node["op"] == "Leaf" else None
        e.names[i] = _written(e, node) if known is None else e.tensor(known, known.name)


def _written(e: Writer, node: Node) -> str:
    kind = node["op"]
    if kind in SAME:
        made = [e.names[i] for i in node["inputs"]]
        if all(e.by_id[i]["op"] == "Const" for i in node["inputs"]):
            made = e.inputs(node)
        return e.op(SAME[kind], *made)
    if kind in RULES:
        return RULES[kind](e, node)
    reasons = {row["name"]: row["not_in_onnx"] for row in op_table()}
    reason = reasons[kind] or "there is no operator for it"
    unsupported(f"export: ONNX has nothing for {kind}, made at {node['location']}: {reason}")
