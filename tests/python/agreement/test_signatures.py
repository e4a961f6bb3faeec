"""Names are called as MindSpore's are: parameters, their order and defaults (tools/signatures.py)."""

from __future__ import annotations

import copy
import importlib
import inspect
import itertools
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import signatures_of

import gradcell
from gradcell import Tensor, _core, mint, nn, ops
from gradcell.base.spelling import spelling


@pytest.fixture(scope="module")
def differences() -> list[tuple[str, str]]:
    return [(call, what) for call, found in signatures_of.differences().items() for what in found]


def test_names_are_called_as_in_mindspore(differences: list[tuple[str, str]]) -> None:
    unexplained = [d for d in differences if signatures_of.reason(*d) is None]
    assert not unexplained


def test_subclasses_may_assign_what_they_may_in_mindspore() -> None:
    assert not signatures_of.fixed_here()


def test_every_reason_explains_a_difference(differences: list[tuple[str, str]]) -> None:
    used = {signatures_of.reason(*d) for d in differences}
    assert used - {None} == set(signatures_of.KEPT)


def test_most_names_are_looked_at() -> None:
    compared = [line for line in signatures_of.stored() if signatures_of.compared(line)]
    assert len(compared) > 2400


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("ops.matmul(input, other)", []),
        ("ops.matmul(input, weight)", ["no weight (other)", "other is needed"]),
        ("ops.matmul(other, input)", ["other is not 0", "input is not 1"]),
        ("ops.argsort(input, axis=0)", ["axis=-1, not 0"]),
        ("ops.argsort(input, axis=-1, missing=None)", ["no missing (descending)"]),
        ("Tensor.mean(dim=None, keepdim=False)", []),
        ("ops.no_such_op(x)", []),
        ("nn.MSELoss.construct(logits, labels)", []),
        ("mint.nn.MSELoss.construct(input, target)", []),
        ("nn.MSELoss.construct(logits, weight)", ["no weight (labels)", "labels is needed"]),
        ("ops.MatMul.__call__(input, mat2)", []),
        ("ops.MatMul.__call__(x, mat2)", ["no x (input)", "input is needed"]),
    ],
)
def test_differences_are_found(line: str, found: list[str]) -> None:
    assert signatures_of.differences_of(line) == found


def scaled(input: float, by: float = 2.0, *, shift: float = 0.0) -> tuple[Any, ...]:
    """input times by, plus shift; input has no other use than that.

    input, by: numbers. shift: a number.
    """
    return input, by, shift


@spelling(scaled, n=lambda n: -n)
def moved(n: float, shift: float = 1.0) -> tuple[Any, ...]: ...
@spelling(scaled, shift="by", ignored="device")
def shifted(x: float, *, shift: float, device: str = "") -> tuple[Any, ...]: ...
@spelling(scaled, fixed={"by": 5.0}, then=lambda result, dtype: (*result, dtype))
def fixed(input: float, dtype: str = "none") -> tuple[Any, ...]: ...


def test_a_function_under_other_names() -> None:
    assert moved(3.0) == (-3.0, 2.0, 1.0) and moved(3.0, 4.0) == (-3.0, 2.0, 4.0)
    assert moved(shift=4.0, n=3.0) == (-3.0, 2.0, 4.0)
    assert shifted(3.0, shift=4.0) == shifted(shift=4.0, x=3.0, device="CPU") == (3.0, 4.0, 0.0)
    assert fixed(1.0) == (1.0, 5.0, 0.0, "none") and fixed(1.0, "a") == fixed(1.0, dtype="a")
    assert (
        str(inspect.signature(moved)) == "(n: 'float', shift: 'float' = 1.0) -> 'tuple[Any, ...]'"
    )
    assert moved.__doc__ == (
        "n times by, plus shift; n has no other use than that.\n\nn: numbers. shift: a number."
    )
    assert pickle.loads(pickle.dumps(moved)) is moved and copy.deepcopy(moved) is moved
    assert repr(moved) == "<function moved>"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: moved(), "missing a required argument: 'n'"),
        (lambda: moved(1.0, n=2.0), "multiple values for argument 'n'"),
        (lambda: moved(1.0, 2.0, 3.0), "too many positional arguments"),
        (lambda: moved(1.0, by=2.0), "unexpected keyword argument 'by'"),
        (lambda: shifted(1.0), "missing a required .*argument: 'shift'"),
        (
            lambda: mint.std(X, axis=0),
            r"mint\.std\(input, dim=None, \*, correction=1, keepdim=False\)",
        ),
    ],
)
def test_a_spelling_refuses_by_its_own_names(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(TypeError, match=rf"\w+\(.*\).*{message}.*|{message}.*\(.*test_signatures"):
        call()
    with pytest.raises(TypeError, match=r"test_signatures\.py:\d+"):
        call()


def test_what_a_spelling_raises_comes_through() -> None:
    def refused(value: float) -> float:
        raise ValueError("refused")

    @spelling(scaled, input=refused)
    def turned(input: float) -> tuple[Any, ...]: ...

    @spelling(refused)
    def never(x: float) -> float: ...

    for call in (turned, never):
        with pytest.raises(ValueError, match="refused"):
            call(1.0)
    with pytest.raises(ValueError, match="no parameters of the target"):

        @spelling(scaled)
        def more(a: int, b: int, c: int, d: int) -> None: ...


def test_many_forms_of_a_call() -> None:
    """More than are kept: each is as if it came first."""
    names = [f"n{i}" for i in range(7)]
    known: dict[str, Any] = {}

    def target(**given: Any) -> dict[str, Any]:
        return given

    plans = _core.Spelling(
        lambda count, names: (target, tuple(range(len(names))), 0, names, (), ())
    )
    for order in itertools.islice(itertools.permutations(names), 200):
        known = {n: object() for n in order}
        assert plans(**known) == known


SPACES = [
    "mint", "mint.nn.functional", "mint.linalg", "numpy", "numpy.fft", "scipy.linalg", "ops",
]  # fmt: skip


def spelled() -> list[Any]:
    """All public functions that are spellings of others."""
    spaces = [importlib.import_module(f"gradcell.{s}") for s in SPACES]
    found = [
        getattr(space, n) for space in (*spaces, Tensor) for n in dir(space) if hasattr(space, n)
    ]
    return [v for v in {id(v): v for v in found}.values() if hasattr(v, "_target")]


def reached(
    call: Any, count: int, names: tuple[str, ...], values: dict[str, Any]
) -> dict[str, Any]:
    """What the target is given for values of the parameters of these forms."""
    target, sources, by_place, rest, turns, then = call._planned(count, names)
    placed = list(inspect.signature(call).parameters)[:count]
    given = [values[n] for n in (*placed, *names)]
    for place, _ in turns:
        given[place] = ("turned", given[place])
    found = [s[0] if isinstance(s, tuple) else given[s] for s in sources]
    named = dict(zip(rest, found[by_place:], strict=True))
    bound = inspect.signature(target).bind(*found[:by_place], **named)
    bound.apply_defaults()
    end = [s[0] if isinstance(s, tuple) else given[s] for s in then[1:]]
    return {**bound.arguments, "then": end}


def test_spellings_mean_the_same_by_place_by_name_and_by_default() -> None:
    doors = spelled()
    assert len(doors) > 180
    for call in doors:
        parameters = inspect.signature(call).parameters
        assert pickle.loads(pickle.dumps(call)) is call
        plain = [n for n, p in parameters.items() if p.kind is p.POSITIONAL_OR_KEYWORD]
        required = tuple(n for n, p in parameters.items() if p.default is p.empty)
        values = {n: object() if n in required else p.default for n, p in parameters.items()}
        others = tuple(n for n in parameters if n not in plain)
        by_place = reached(call, len(plain), others, values)
        by_name = reached(call, 0, tuple(parameters), values)
        backwards = reached(call, 0, tuple(parameters)[::-1], values)
        short = reached(call, 0, required, values)
        assert by_place == by_name == backwards, call
        for name, value in short.items():
            turned = ("turned", value)
            assert by_place[name] in (value, turned) or by_place[name] == value, (call, name)


def test_transpose_takes_the_name_of_older_programs() -> None:
    x = ops.ones((2, 3))
    assert ops.transpose(x, input_perm=(1, 0)).shape == ops.transpose(x, dims=(1, 0)).shape
    with pytest.raises(TypeError, match="dims"):
        ops.transpose(x)


X = Tensor([[0.5, -1.25], [2.0, 0.75]])


@pytest.mark.parametrize(
    ("cell", "inputs"),
    [
        (nn.MSELoss(), {"logits": X, "labels": X * X}),
        (mint.nn.MSELoss(), {"input": X, "target": X * X}),
        (nn.MAELoss(), {"logits": X, "label": X * X}),
        (mint.nn.ELU(), {"input": X}),
        (mint.nn.ReflectionPad1d(1), {"input": X}),
        (nn.SequentialCell(nn.Tanh()), {"input_data": X}),
        (ops.Round(), {"input": X, "decimals": 1}),
        (ops.Gcd(), {"input": Tensor([4, 6]), "other": Tensor([6, 9])}),
    ],
)
def test_inputs_by_name(cell: nn.Cell, inputs: dict[str, Tensor]) -> None:
    named, placed = cell(**inputs), cell(*inputs.values())
    assert (named.asnumpy() == placed.asnumpy()).all()


def test_one_input_by_two_names() -> None:
    with pytest.raises(TypeError, match="'labels' and as 'target'"):
        nn.MSELoss()(X, labels=X, target=X)
    with pytest.raises(TypeError, match="'input' and as 'x'"):
        nn.Tanh()(input=X, x=X)
    with pytest.raises(TypeError, match="'x'"):
        nn.Tanh()(X, input=X)


def test_inputs_of_the_programs_own_layers_have_one_name() -> None:
    class Own(nn.Cell):
        def construct(self, x: Tensor) -> Tensor:
            return x

    assert Own()(x=X) is not None
    with pytest.raises(TypeError, match="input"):
        Own()(input=X)
    with pytest.raises(TypeError, match="nonsense"):
        nn.Tanh()(nonsense=X)


def test_a_tensor_takes_what_mindspores_does() -> None:
    parameters = inspect.signature(gradcell.tensor).parameters
    assert inspect.signature(Tensor).parameters == parameters
    assert list(parameters) == "input_data dtype shape init const_arg device".split()
    assert Tensor(None, gradcell.float16, (2,), "ones").dtype == gradcell.float16
    assert Tensor([1.0], None, None, None, False, "CPU").shape == (1,)
    with pytest.raises(ValueError, match="'shape' and 'init'"):
        Tensor([1.0], gradcell.float32, (1,))
    with pytest.raises(TypeError, match="nonsense"):
        Tensor([1.0], nonsense=3)
