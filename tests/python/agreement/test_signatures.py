"""Names are called as MindSpore's are: parameters, their order and defaults (tools/signatures.py)."""

from __future__ import annotations

import inspect

import pytest
import signatures_of

import gradcell
from gradcell import Tensor, mint, nn, ops
from gradcell.base.naming import with_names


@pytest.fixture(scope="module")
def differences() -> list[tuple[str, str]]:
    return [(call, what) for call, found in signatures_of.differences().items() for what in found]


def test_names_are_called_as_in_mindspore(differences: list[tuple[str, str]]) -> None:
    unexplained = [d for d in differences if signatures_of.reason(*d) is None]
    assert not unexplained


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


def test_a_function_under_other_names() -> None:
    def scaled(input: float, by: float = 2.0, *, shift: float = 0.0) -> float:
        """input times by.

        input, by: numbers."""
        local = input * by
        return local + shift

    named = with_names(scaled, "x factor")
    assert named(3.0) == 6.0
    assert named(x=3.0, factor=4.0, shift=1.0) == 13.0
    assert str(inspect.signature(named)).startswith("(x: 'float', factor: 'float' = 2.0, *, shift")
    assert named.__doc__ == "x times factor.\n\n        x, factor: numbers."
    with pytest.raises(TypeError, match="input"):
        named(input=3.0)
    assert scaled(input=3.0) == 6.0


def test_a_captured_parameter_keeps_its_name() -> None:
    def outer(x: float) -> object:
        return lambda: x

    with pytest.raises(ValueError, match="cannot"):
        with_names(outer, "y")


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
