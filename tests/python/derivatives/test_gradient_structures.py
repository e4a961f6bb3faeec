"""What gradient functions return and refuse: structures, dtypes, zeros, errors, both modes.

Expected structures and messages are recorded from MindSpore 2.10.0. With x = 3, y = 4, w = 2, b = 5
and f = x * w * y + b: f = 29, dx = 8, dy = 6, dw = 12, db = 1.
"""

from __future__ import annotations

import numpy as np
import pytest

import gradcell as ms
from gradcell import Parameter, ParameterTuple, Tensor, nn, ops

DX, DY, DW, DB = 8.0, 6.0, 12.0, 1.0


@pytest.fixture(autouse=True)
def both_modes(mode):
    """Every test here runs in both modes."""


class Affine(nn.Cell):
    def __init__(self):
        super().__init__()
        self.w = Parameter(Tensor([2.0]), name="w")
        self.b = Parameter(Tensor([5.0]), name="b")

    def construct(self, x, y):
        return x * self.w * y + self.b


class OneInput(nn.Cell):
    def __init__(self):
        super().__init__()
        self.w = Parameter(Tensor([2.0]), name="w")

    def construct(self, x):
        return self.w * x


class NoInput(nn.Cell):
    def __init__(self):
        super().__init__()
        self.w = Parameter(Tensor([2.0]), name="w")

    def construct(self):
        return self.w * self.w


def square_times(x, y):
    return x * x * y


def product_and_sum(x, y):
    return x * y, x + y


@pytest.fixture
def net():
    return Affine()


@pytest.fixture
def x():
    return Tensor([3.0], ms.float32)


@pytest.fixture
def y():
    return Tensor([4.0], ms.float32)


@pytest.fixture
def sens():
    return Tensor([10.0], ms.float32)


def plain(value):
    """Tensors as numbers, containers as they are."""
    if isinstance(value, tuple):
        return tuple(plain(part) for part in value)
    if isinstance(value, list):
        return [plain(part) for part in value]
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, Tensor):
        numbers = value.asnumpy()
        return float(numbers.reshape(-1)[0]) if numbers.size == 1 else numbers.tolist()
    return value


# get_all, get_by_list -> the result without sens.
COMBINATIONS = {
    (False, False): DX,
    (True, False): (DX, DY),
    (False, True): (DW, DB),
    (True, True): ((DX, DY), (DW, DB)),
}


def times(value, factor):
    if isinstance(value, tuple):
        return tuple(times(part, factor) for part in value)
    return value * factor


@pytest.mark.parametrize(("flags", "expected"), COMBINATIONS.items(), ids=str)
@pytest.mark.parametrize("sens_param", [False, True])
@pytest.mark.parametrize("container", [list, tuple, ParameterTuple])
def test_grad_operation_in_all_eight_combinations(
    net, x, y, sens, flags, expected, sens_param, container
):
    get_all, get_by_list = flags
    operation = ops.GradOperation(get_all=get_all, get_by_list=get_by_list, sens_param=sens_param)
    weights = (container(net.trainable_params()),) if get_by_list else ()
    inputs = (x, y, sens) if sens_param else (x, y)
    result = operation(net, *weights)(*inputs)
    assert plain(result) == (times(expected, 10.0) if sens_param else expected)


def test_grad_operation_with_one_parameter_or_one_input(net, x, y):
    by_list = ops.GradOperation(get_by_list=True)
    assert plain(by_list(net, net.w)(x, y)) == DW
    assert plain(by_list(net, ParameterTuple([net.w]))(x, y)) == (DW,)
    assert plain(ops.GradOperation(get_all=True)(OneInput())(x)) == (2.0,)


@pytest.mark.filterwarnings("ignore:.*is rounded towards zero:RuntimeWarning")
@pytest.mark.parametrize("dtype", [ms.int32, ms.int64, ms.uint8, ms.bool_], ids=str)
def test_grad_operation_by_integers_is_the_derivative_in_their_dtype(dtype, mode):
    """As MindSpore prints it: without the fraction."""
    x, y = Tensor([2.5, 3.7]), Tensor([3, 4], ms.int32).astype(dtype)
    by_x, by_y = ops.GradOperation(get_all=True)(lambda x, y: x * y)(x, y)
    assert by_x.tolist() == y.astype(ms.float32).tolist()
    assert by_y.dtype == dtype
    assert by_y.tolist() == ([True, True] if dtype == ms.bool_ else [2, 3])


#: x = [2.5, 3.7], y = [3, 4] (i = [1, 0] where it is an index): the gradients that MindSpore prints.
BY_INTEGERS = [
    (lambda x, y: x * (y.reshape(2, 1) + 1).reshape(-1), [4.0, 5.0], [2, 3]),
    (lambda x, y: x[y - 3] * 2, [2.0, 2.0], [0, 0]),
    (lambda x, y: x[4 - y] * y, [4.0, 3.0], [3, 2]),
    (lambda x, y: ops.where(y > 3, x, x * y), [3.0, 1.0], [2, 0]),
    (lambda x, y: x * ops.where(x > 3, y, y * y), [9.0, 4.0], [12, 3]),
    (lambda x, y: x * (y // 2), [1.0, 2.0], [0, 0]),
    (lambda x, y: x * y.sum(), [7.0, 7.0], [6, 6]),
    (lambda x, y: x * y.max(), [4.0, 4.0], [0, 6]),
    (lambda x, y: ops.sin(y.astype(ms.float32)) * 0 + x, [1.0, 1.0], [0, 0]),
]


@pytest.mark.filterwarnings("ignore:.*is rounded towards zero:RuntimeWarning")
@pytest.mark.parametrize(("function", "by_x", "by_y"), BY_INTEGERS)
def test_grad_operation_through_integer_arithmetic(function, by_x, by_y):
    got = ops.GradOperation(get_all=True)(function)(Tensor([2.5, 3.7]), Tensor([3, 4], ms.int32))
    np.testing.assert_allclose(got[0].asnumpy(), by_x, rtol=1e-6)
    assert got[1].tolist() == by_y and got[1].dtype == ms.int32


def test_what_has_been_rounded_to_an_integer_has_no_derivative():
    gradient = ms.grad(lambda x: x * x.astype(ms.int32))
    np.testing.assert_array_equal(gradient(Tensor([2.5, 3.7])).asnumpy(), [2.0, 3.0])


def test_a_parameter_that_is_returned_itself(mode):
    p = Parameter(Tensor([1.0, 2.0]), name="p")

    class Returned(nn.Cell):
        def __init__(self):
            super().__init__()
            self.p = p

        def construct(self, x):
            return self.p

    by_list = ops.GradOperation(get_by_list=True)
    for function in (Returned(), lambda x: p, lambda x: (x, p)):
        assert plain(by_list(function)(Tensor(1.0))) == ([1.0, 1.0],)
        assert plain(by_list(function, [p])(Tensor(1.0))) == ([1.0, 1.0],)


def test_grad_operation_without_inputs():
    net = NoInput()
    weights = ParameterTuple(net.trainable_params())
    assert ops.GradOperation()(net)() == ()
    assert ops.GradOperation(get_all=True)(net)() == ()
    assert plain(ops.GradOperation(get_by_list=True)(net, weights)()) == (4.0,)
    both = ops.GradOperation(get_all=True, get_by_list=True)(net, weights)()
    assert plain(both) == ((), (4.0,))


def test_arguments_that_are_no_tensors_are_left_out(x, y):
    operation = ops.GradOperation(get_all=True)
    assert plain(operation(lambda x, n: x * n)(x, 3)) == (3.0,)
    assert plain(operation(lambda x, n: x * n)(x, 3.0)) == (3.0,)
    assert plain(operation(lambda x, pair: x * pair[0] * pair[1])(x, (y, y))) == (16.0,)
    assert plain(operation(lambda x, pair: x * pair[0])(x, [y])) == (4.0,)
    assert plain(operation(lambda x, table: x * table["a"])(x, {"a": y})) == (4.0,)
    assert plain(operation(lambda x, nothing: x * 2)(x, None)) == (2.0,)
    assert plain(operation(lambda x, word: x * 2)(x, "a")) == (2.0,)


def test_sens_of_several_outputs(x, y, sens):
    operation = ops.GradOperation(get_all=True, sens_param=True)
    result = operation(product_and_sum)(x, y, (sens, Tensor([1.0], ms.float32)))
    assert plain(result) == (41.0, 31.0)


@pytest.mark.parametrize(
    "wrong", [Tensor([1.0, 2.0]), Tensor([[1.0], [2.0]])], ids=["[2]", "[2,1]"]
)
def test_sens_of_another_shape(x, wrong):
    with pytest.raises(ValueError, match="sens: The shape should be"):
        ops.GradOperation(sens_param=True)(OneInput())(x, wrong).asnumpy()


@pytest.mark.parametrize("dtype", [ms.float16, ms.float64, ms.int32], ids=str)
def test_sens_of_another_dtype(x, dtype):
    with pytest.raises(TypeError, match=f"(?i)sens.*{dtype}"):
        ops.GradOperation(sens_param=True)(OneInput())(x, Tensor([1], dtype)).asnumpy()


def test_sens_missing(x):
    with pytest.raises(TypeError, match="last argument is the sens"):
        ops.GradOperation(sens_param=True)(OneInput())(x)


@pytest.mark.parametrize("flag", ["get_all", "get_by_list", "sens_param"])
def test_grad_operation_flags_are_bools(flag):
    with pytest.raises(TypeError, match=flag):
        ops.GradOperation(**{flag: "a"})


@pytest.mark.parametrize(
    ("position", "expected"),
    [(0, 24.0), (1, 9.0), ((0,), 24.0), ((0, 1), (24.0, 9.0)), ((1, 0), (9.0, 24.0))],
    ids=str,
)
def test_positions(x, y, position, expected):
    assert plain(ms.grad(square_times, position)(x, y)) == expected
    assert plain(ms.value_and_grad(square_times, position)(x, y)) == (36.0, expected)


@pytest.mark.parametrize(
    ("position", "error"),
    [
        ([0, 1], TypeError),
        ("a", TypeError),
        (1.0, TypeError),
        ((0, "a"), TypeError),
        (-1, ValueError),
        ((0, 0), ValueError),
        (2, (IndexError, RuntimeError, ValueError)),
        ((0, 2), (IndexError, RuntimeError, ValueError)),
        ((), (RuntimeError, ValueError)),
        (None, ValueError),
    ],
    ids=str,
)
def test_wrong_positions(x, y, position, error):
    with pytest.raises(error):
        ms.grad(square_times, position)(x, y)


def test_weights_as_list_tuple_or_alone(net, x, y):
    both = net.trainable_params()
    for weights in (both, tuple(both), ParameterTuple(both)):
        assert plain(ms.grad(net, None, weights)(x, y)) == (DW, DB)
        assert plain(ms.grad(net, 0, weights)(x, y)) == (DX, (DW, DB))
        assert plain(ms.grad(net, (0, 1), weights)(x, y)) == ((DX, DY), (DW, DB))
    assert plain(ms.grad(net, None, net.w)(x, y)) == DW
    assert plain(ms.grad(net, 0, net.w)(x, y)) == (DX, DW)
    assert plain(ms.grad(net, (0, 1), net.w)(x, y)) == ((DX, DY), DW)
    assert plain(ms.grad(net, None, [net.w])(x, y)) == (DW,)
    assert plain(ms.grad(net, None, [])(x, y)) == ()
    assert plain(ms.grad(net, 0, [])(x, y)) == (DX, ())


def test_weights_that_are_none(net, x, y):
    with pytest.raises(TypeError, match="weights"):
        ms.grad(net, None, "w")(x, y)


def test_has_aux(x, y):
    assert plain(ms.grad(product_and_sum, 0, has_aux=True)(x, y)) == (4.0, (7.0,))
    value = ms.value_and_grad(product_and_sum, 0, has_aux=True)(x, y)
    assert plain(value) == ((12.0, 7.0), 4.0)
    three = ms.grad(lambda x, y: (x * y, x, y), 0, has_aux=True)(x, y)
    assert plain(three) == (4.0, (3.0, 4.0))
    nested = ms.grad(lambda x, y: (x * y, (x, y)), 0, has_aux=True)(x, y)
    assert plain(nested) == (4.0, ((3.0, 4.0),))


def test_has_aux_needs_two_outputs(x, y):
    message = "When has_aux is True, origin fn requires more than one outputs"
    with pytest.raises(ValueError, match=message):
        ms.grad(square_times, 0, has_aux=True)(x, y)
    with pytest.raises(TypeError, match="has_aux"):
        ms.grad(product_and_sum, 0, has_aux="a")(x, y)


def test_outputs_of_any_structure_are_summed(x, y):
    assert plain(ms.grad(lambda x, y: ((x * y, x), y))(x, y)) == 5.0
    assert plain(ms.value_and_grad(lambda x, y: [x * y, x])(x, y)) == ([12.0, 3.0], 5.0)
    assert plain(ms.value_and_grad(lambda x, y: {"a": x * y})(x, y)) == ({"a": 12.0}, 4.0)
    assert plain(ms.value_and_grad(product_and_sum, (0, 1))(x, y)) == ((12.0, 7.0), (5.0, 4.0))
    assert plain(ms.grad(lambda x, y: (x * x, 3))(x, y)) == 6.0


def test_output_of_any_shape():
    value, gradient = ms.value_and_grad(lambda x: x * x)(Tensor([1.0, 2.0, 3.0]))
    np.testing.assert_array_equal(value.asnumpy(), [1, 4, 9])
    np.testing.assert_array_equal(gradient.asnumpy(), [2, 4, 6])


def test_return_ids(net, x, y):
    weights = net.trainable_params()
    by_name = (("w", DW), ("b", DB))
    assert plain(ms.grad(net, 0, return_ids=True)(x, y)) == (0, DX)
    assert plain(ms.grad(net, (0, 1), return_ids=True)(x, y)) == ((0, DX), (1, DY))
    assert plain(ms.grad(net, None, weights, return_ids=True)(x, y)) == by_name
    assert plain(ms.grad(net, 0, weights, return_ids=True)(x, y)) == ((0, DX), by_name)
    all_of_them = ((0, DX), (1, DY)), by_name
    assert plain(ms.grad(net, (0, 1), weights, return_ids=True)(x, y)) == all_of_them
    value = ms.value_and_grad(net, (0, 1), weights, return_ids=True)(x, y)
    assert plain(value) == (29.0, all_of_them)


def test_get_grad(net, x, y):
    gradients = ms.grad(net, (0, 1), net.trainable_params(), return_ids=True)(x, y)
    assert plain(ops.get_grad(gradients, 0)) == DX
    assert plain(ms.get_grad(gradients, 1)) == DY
    assert plain(ms.get_grad(gradients, net.w)) == DW
    with pytest.raises(RuntimeError, match="Can not find the gradient"):
        ms.get_grad(gradients, 5)
    with pytest.raises(TypeError):
        ms.get_grad(gradients, "w")


def test_inputs_that_are_not_reached_get_zeros(net, x):
    matrix = Tensor(np.ones((2, 3), np.float16))
    dx, dy = ms.grad(lambda x, y: x * x, (0, 1))(x, matrix)
    assert plain(dx) == 6.0
    assert dy.dtype == ms.float16
    np.testing.assert_array_equal(dy.asnumpy(), np.zeros((2, 3)))
    assert plain(ms.grad(lambda x: x * x, None, net.trainable_params())(x)) == (0.0, 0.0)
    assert plain(ms.grad(lambda x: Tensor([1.0]))(x)) == 0.0


def test_functions_without_a_tensor_have_no_gradient(x):
    with pytest.raises(TypeError):
        ms.grad(lambda x: None)(x)
    with pytest.raises(TypeError):
        ms.grad(lambda x: 3.0)(x)


def test_gradients_have_the_dtype_of_their_input(y):
    half = Tensor([3.0], ms.float16)
    dhalf, dy = ms.grad(lambda a, b: a * b, (0, 1))(half, y)
    assert (dhalf.dtype, dy.dtype) == (ms.float16, ms.float32)
    assert ms.grad(lambda x: x * x * 2.0)(Tensor([3.0], ms.float64)).dtype == ms.float64


def test_a_parameter_as_input(net, y):
    assert plain(ms.grad(square_times, (0, 1))(net.w, y)) == (16.0, 4.0)


def test_what_cannot_be_differentiated_at_all(x):
    with pytest.raises(TypeError, match="must be a function"):
        ms.grad(3)(x)
    with pytest.raises(TypeError, match="missing 1 required"):
        ms.grad(square_times)(x)
    with pytest.raises(TypeError, match="3 were given"):
        ms.grad(square_times)(x, x, x)


@pytest.mark.parametrize(
    ("function", "at", "expected"),
    [
        (lambda x: ops.abs(x), [0.0, -1.0, 2.0], [0, -1, 1]),
        (lambda x: ops.relu(x), [0.0, -1.0, 2.0], [0, 0, 1]),
        (lambda x: x.max(), [1.0, 2.0, 2.0], [0, 0.5, 0.5]),
        (lambda x: ops.ReduceMax()(x), [1.0, 2.0, 2.0], [0, 0.5, 0.5]),
        (lambda x: ops.prod(x), [0.0, 2.0, 3.0], [6, 0, 0]),
        (lambda x: ops.clamp(x, 0.0, 1.0), [0.0, 0.5, 1.0, 2.0], [1, 1, 1, 0]),
        (lambda x: ops.floor(x), [1.5], [0]),
        (lambda x: ops.round(x), [1.5], [0]),
        (lambda x: ops.sign(x), [1.5], [0]),
        (lambda x: x**2, [-2.0, 0.0], [-4, 0]),
        (lambda x: ops.sqrt(x), [0.0, 4.0], [np.inf, 0.25]),
    ],
    ids=[
        "abs",
        "relu",
        "max",
        "ReduceMax",
        "prod",
        "clamp",
        "floor",
        "round",
        "sign",
        "**2",
        "sqrt",
    ],
)
def test_conventions_at_kinks(function, at, expected):
    gradient = ms.grad(function)(Tensor(at, ms.float32))
    np.testing.assert_allclose(gradient.asnumpy(), expected, rtol=1e-6)


def test_ties_are_shared_between_operands():
    left, right = Tensor([1.0, 2.0]), Tensor([1.0, 1.0])
    for function, expected in (
        (ops.maximum, [[0.5, 1], [0.5, 0]]),
        (ops.minimum, [[0.5, 0], [0.5, 1]]),
    ):
        gradients = ms.grad(function, (0, 1))(left, right)
        np.testing.assert_array_equal([part.asnumpy() for part in gradients], expected)


def test_vjp_and_jvp(net, x, y, sens):
    out, vjp_fn = ms.vjp(square_times, x, y)
    assert plain(out) == 36.0
    assert plain(vjp_fn(sens)) == (240.0, 90.0)
    one = Tensor([1.0])
    out, tangent = ms.jvp(square_times, (x, y), (one, Tensor([0.0])))
    assert (plain(out), plain(tangent)) == (36.0, 24.0)
    _, vjp_fn = ms.vjp(net, x, y, weights=net.trainable_params())
    assert plain(vjp_fn(sens)) == ((80.0, 60.0), (120.0, 10.0))


def test_second_order_sums_the_first(x, y):
    twice = ms.grad(ms.grad(square_times, (0, 1)), (0, 1))
    assert plain(twice(x, y)) == (14.0, 6.0)
    operation = ops.GradOperation(get_all=True)
    assert plain(operation(operation(square_times))(x, y)) == (14.0, 6.0)


@pytest.mark.parametrize(
    "part",
    [np.s_[:, 1], np.s_[:, 1:3], np.s_[:, ::2], np.s_[1:, 2], np.s_[0], np.s_[..., 3]],
    ids=str,
)
def test_gradient_of_a_slice(part):
    values = np.arange(12, dtype=np.float32).reshape(3, 4)
    expected = np.zeros((3, 4))
    expected[part] = 2 * values[part]
    gradient = ms.grad(lambda x: x[part] * x[part])(Tensor(values))
    np.testing.assert_array_equal(gradient.asnumpy(), expected)
