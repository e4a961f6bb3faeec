"""Every optimiser and schedule against NumPy in float64 for 20 steps, all options; bad input."""

import inspect
import math

import numpy as np
import optim_reference as reference
import pytest

import gradcell as ms
from gradcell import Parameter, Tensor, _core, nn

STEPS = 20
RNG = np.random.RandomState(7)
START = {"weight": RNG.randn(3, 4), "bias": RNG.randn(4), "scale": RNG.randn()}
GRADIENTS = [{k: RNG.randn(*np.shape(v)) for k, v in START.items()} for _ in range(STEPS)]


def make_parameters(dtype=ms.float32):
    return [Parameter(Tensor(np.array(v), dtype), name=k) for k, v in START.items()]


def gradients_at(step, dtype=ms.float32, scale=1.0):
    return tuple(Tensor(np.array(g) * scale, dtype) for g in GRADIENTS[step].values())


def check(name, optimizer, parameters, lr=lambda t: 0.05, rtol=2e-5, **options):
    scale = options.get("loss_scale", 1.0)
    expected = {
        k: reference.run(name, v, [g[k] * scale for g in GRADIENTS], lr, **options)
        for k, v in START.items()
    }
    for t in range(STEPS):
        assert optimizer(gradients_at(t, scale=scale)) == (True, True, True)
        for p in parameters:
            np.testing.assert_allclose(
                p.asnumpy(), expected[p.name][t], rtol=rtol, atol=rtol, err_msg=f"{p.name} {t}"
            )
    assert optimizer.global_step.asnumpy().tolist() == [STEPS]


RULES = [
    ("SGD", {}),
    ("SGD", {"weight_decay": 0.1}),
    ("SGD", {"momentum": 0.9}),
    ("SGD", {"momentum": 0.9, "dampening": 0.3, "weight_decay": 0.01, "loss_scale": 8.0}),
    ("SGD", {"momentum": 0.9, "nesterov": True}),
    ("Momentum", {"momentum": 0.9}),
    ("Momentum", {"momentum": 0.0}),
    ("Momentum", {"momentum": 0.8, "use_nesterov": True, "weight_decay": 0.1, "loss_scale": 4.0}),
    ("Adam", {}),
    ("Adam", {"beta1": 0.8, "beta2": 0.95, "eps": 1e-3, "weight_decay": 0.1}),
    ("Adam", {"use_nesterov": True, "loss_scale": 16.0, "weight_decay": 0.02}),
    ("Adam", {"use_amsgrad": True}),
    ("Adam", {"use_amsgrad": True, "use_nesterov": True}),
    ("AdamWeightDecay", {}),
    ("AdamWeightDecay", {"weight_decay": 0.1, "beta1": 0.7, "beta2": 0.9, "eps": 1e-2}),
    ("RMSProp", {}),
    ("RMSProp", {"decay": 0.8, "momentum": 0.5, "epsilon": 1e-3, "weight_decay": 0.1}),
    ("RMSProp", {"centered": True, "epsilon": 1e-3, "loss_scale": 2.0}),
    ("RMSProp", {"centered": True, "epsilon": 1e-3, "momentum": 0.9}),
    ("Adagrad", {}),
    ("Adagrad", {"accum": 0.5, "update_slots": False, "weight_decay": 0.1, "loss_scale": 2.0}),
    ("Lamb", {}),
    ("Lamb", {"weight_decay": 0.1, "beta1": 0.7, "beta2": 0.9, "eps": 1e-3}),
    ("LazyAdam", {"use_nesterov": True}),
    ("AdaMax", {"weight_decay": 0.1, "loss_scale": 2.0}),
    ("Adadelta", {"rho": 0.8, "epsilon": 1e-3}),
    ("ProximalAdagrad", {"accum": 0.2, "l1": 0.3, "l2": 0.2}),
    ("FTRL", {"initial_accum": 0.2, "lr_power": -0.6, "l1": 0.3, "l2": 0.1, "weight_decay": 0.1}),
    ("Rprop", {"etas": (0.4, 1.5), "step_sizes": (0.01, 0.2)}),
    ("ASGD", {"lambd": 0.05, "alpha": 0.5, "weight_decay": 0.1}),
]


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("name", "options"), RULES, ids=lambda v: v if isinstance(v, str) else "")
def test_rule(mode, name, options):
    parameters = make_parameters()
    optimizer = getattr(nn, name)(parameters, learning_rate=0.05, **options)
    check(name, optimizer, parameters, **options)


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_adafactor(mode, decay):
    parameters = make_parameters()
    optimizer = nn.AdaFactor(parameters, weight_decay=decay)
    check("AdaFactor", optimizer, parameters, weight_decay=decay)


def test_asgd_means():
    parameters = make_parameters()
    optimizer = nn.ASGD(parameters, 0.05, t0=3.0)
    seen = []
    for t in range(STEPS):
        optimizer(gradients_at(t))
        seen.append(parameters[0].asnumpy().astype(np.float64))
    # mu is used a step after it is made, and is 1 up to step t0 + 1.
    np.testing.assert_allclose(optimizer.ax[0].asnumpy(), np.mean(seen[4:], axis=0), rtol=1e-5)


@pytest.mark.parametrize(
    ("name", "options", "error"),
    [
        ("Rprop", {"etas": (0.5, 0.9)}, ValueError),
        ("Rprop", {"etas": [0.5, 1.2]}, TypeError),
        ("Rprop", {"step_sizes": (2.0, 1.0)}, ValueError),
        ("FTRL", {"lr_power": 0.5}, ValueError),
        ("FTRL", {"learning_rate": [0.1, 0.2]}, ValueError),
        ("AdaFactor", {"learning_rate": 0.1}, ValueError),
        ("AdaFactor", {"relative_step": False}, ValueError),
        ("AdaMax", {"beta1": 1.0}, ValueError),
        ("Adadelta", {"rho": 1.5}, ValueError),
        ("ProximalAdagrad", {"l1": "much"}, TypeError),
    ],
)
def test_values_out_of_range(name, options, error):
    with pytest.raises(error, match=name):
        getattr(nn, name)(make_parameters(), **options)


@pytest.mark.parametrize("use_clip", [False, True])
@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_lars(mode, use_clip, decay):
    parameters = make_parameters()
    inner = nn.Momentum(parameters, 0.05, 0.9, weight_decay=decay, loss_scale=4.0)
    optimizer = nn.LARS(
        inner, epsilon=1e-3, coefficient=0.02, use_clip=use_clip, lars_filter=lambda p: True
    )
    lars = {"epsilon": 1e-3, "coefficient": 0.02, "use_clip": use_clip}
    check(
        "Momentum",
        optimizer,
        parameters,
        lars=lars,
        momentum=0.9,
        weight_decay=decay,
        loss_scale=4.0,
    )


SCHEDULES = [
    (nn.ExponentialDecayLR(0.1, 0.9, 4), lambda t: 0.1 * 0.9 ** (t / 4)),
    (nn.ExponentialDecayLR(0.1, 0.9, 4, is_stair=True), lambda t: 0.1 * 0.9 ** (t // 4)),
    (nn.NaturalExpDecayLR(0.1, 0.9, 4), lambda t: 0.1 * math.exp(-0.9 * t)),
    (nn.NaturalExpDecayLR(0.1, 0.9, 4, True), lambda t: 0.1 * math.exp(-0.9 * (t // 4) * 4)),
    (nn.InverseDecayLR(0.1, 0.5, 4), lambda t: 0.1 / (1 + 0.5 * t / 4)),
    (nn.InverseDecayLR(0.1, 0.5, 4, True), lambda t: 0.1 / (1 + 0.5 * (t // 4))),
    (
        nn.CosineDecayLR(0.01, 0.1, 12),
        lambda t: 0.01 + 0.045 * (1 + math.cos(math.pi * min(t, 12) / 12)),
    ),
    (
        nn.PolynomialDecayLR(0.1, 0.01, 8, 0.5),
        lambda t: 0.09 * (1 - min(t, 8) / 8) ** 0.5 + 0.01,
    ),
    (
        nn.PolynomialDecayLR(0.1, 0.01, 8, 2.0, True),
        lambda t: 0.09 * (1 - t / (8 * max(1, math.ceil(t / 8)))) ** 2 + 0.01,
    ),
    (nn.WarmUpLR(0.1, 6), lambda t: 0.1 * min(t, 6) / 6),
    ([0.1, 0.05, 0.02], lambda t: [0.1, 0.05, 0.02][min(t, 2)]),
    (Tensor([0.1, 0.05]), lambda t: [0.1, 0.05][min(t, 1)]),
    (Tensor(0.07), lambda t: 0.07),
    ((0.1 / (i + 1) for i in range(30)), lambda t: 0.1 / (t + 1)),
]


@pytest.mark.parametrize("k", range(len(SCHEDULES)))
def test_dynamic_learning_rate(mode, k):
    rate, value = SCHEDULES[k]
    if k == len(SCHEDULES) - 1:
        rate = [0.1 / (i + 1) for i in range(30)]
    parameters = make_parameters()
    check("Momentum", nn.Momentum(parameters, rate, 0.9), parameters, lr=value, momentum=0.9)


class HalvingDecay(nn.Cell):
    def construct(self, step):
        return 0.2 / (1 + step.astype(ms.float32))


@pytest.mark.parametrize("name", sorted({row[0] for row in RULES}))
def test_weight_decay_by_a_schedule_is_that_of_the_step(mode, name):
    """The first step's decay is the schedule at 0, in every rule."""
    options = {"momentum": 0.9} if name == "Momentum" else {}
    parameters = make_parameters()
    optimizer = getattr(nn, name)(
        parameters, learning_rate=0.05, weight_decay=HalvingDecay(), **options
    )
    check(name, optimizer, parameters, weight_decay=lambda t: 0.2 / (1 + t), **options)


def test_adam_weight_decay_with_a_schedule_as_mindspore_prints_it():
    class Growing(nn.Cell):
        def construct(self, step):
            return (step.astype(ms.float32) + 1.0) * 0.1

    p = Parameter(Tensor([1.0, 2.0, -3.0]), name="p")
    optimizer = nn.AdamWeightDecay([p], 0.1, weight_decay=Growing())
    for k in range(3):
        optimizer((Tensor(np.array([0.1, -0.2, 0.3], np.float32) * (k + 1)),))
    np.testing.assert_allclose(p.asnumpy(), [-0.23141979, 3.0547972, -3.9959233], rtol=1e-4)


def test_groups(mode):
    weight, bias, scale = parameters = make_parameters()
    groups = [
        {"params": [weight], "lr": 0.1, "weight_decay": 0.01, "grad_centralization": True},
        {
            "params": [bias],
            "lr": nn.ExponentialDecayLR(0.1, 0.9, 4),
            "weight_decay": HalvingDecay(),
        },
        {"params": [scale]},
        {"order_params": parameters},
    ]
    optimizer = nn.Adam(groups, learning_rate=0.02, weight_decay=0.3)
    expected = {
        "weight": ((lambda t: 0.1), {"weight_decay": 0.01, "centralise": True}),
        "bias": ((lambda t: 0.1 * 0.9 ** (t / 4)), {"weight_decay": lambda t: 0.2 / (1 + t)}),
        "scale": ((lambda t: 0.02), {"weight_decay": 0.3}),
    }
    names = [p.name for p in optimizer.get_parameters()]
    assert names[:3] == ["global_step", "learning_rate_group_0", "learning_rate"]
    for t in range(STEPS):
        optimizer(gradients_at(t))
    for p in parameters:
        lr, options = expected[p.name]
        want = reference.run("Adam", START[p.name], [g[p.name] for g in GRADIENTS], lr, **options)
        np.testing.assert_allclose(p.asnumpy(), want[-1], rtol=2e-5, atol=2e-5)
    assert optimizer.get_lr_parameter(weight).name == "learning_rate_group_0"
    assert optimizer.get_lr_parameter([scale])[0].name == "learning_rate"


def test_decay_leaves_out_beta_and_gamma_unless_grouped():
    gamma = Parameter(Tensor([2.0]), name="norm.gamma")
    nn.SGD([gamma], 0.1, weight_decay=0.5)((Tensor([0.0]),))
    assert gamma.asnumpy() == [2.0]
    nn.SGD([{"params": [gamma]}], 0.1, weight_decay=0.5)((Tensor([0.0]),))
    np.testing.assert_allclose(gamma.asnumpy(), [1.9], rtol=1e-6)


def test_learning_rate_is_read_at_every_step(mode):
    p = Parameter(Tensor([1.0]), name="p")
    optimizer = nn.SGD([p], 0.5)
    optimizer((Tensor([1.0]),))
    optimizer.learning_rate.set_data(Tensor(0.25))
    optimizer((Tensor([1.0]),))
    assert p.asnumpy() == [0.25]


@pytest.mark.parametrize(
    "start", [1.0, [1.0, 1.0], nn.WarmUpLR(1.0, 4)], ids=["number", "list", "cell"]
)
def test_a_learning_rate_is_assigned(start):
    p = Parameter(Tensor([0.0]), name="p")
    optimizer = nn.SGD([p], start)
    step = ms.jit(lambda g: optimizer((g,)))

    def rate():
        before = p.asnumpy()
        shown = float(optimizer.get_lr())
        step(Tensor([1.0]))
        assert shown == pytest.approx((before - p.asnumpy()).item(), abs=1e-6)
        return pytest.approx(shown, rel=1e-6)

    rate()
    given = [0.5, 2, np.float64(0.25), Tensor(0.125), [9.0] * 5 + [3.0, 4.0], nn.WarmUpLR(0.7, 7)]
    wanted = [0.5, 2.0, 0.25, 0.125, 3.0, 0.6]  # the last two are those of step 5 and of step 6
    for value, expected in zip(given, wanted, strict=True):
        optimizer.learning_rate = value
        assert expected == rate()
    for value, error in [(-1.0, ValueError), ("a", TypeError), (math.nan, ValueError)]:
        with pytest.raises(error, match="learning rate"):
            optimizer.learning_rate = value
    assert rate() == 0.7
    optimizer.learning_rate = own = Parameter(Tensor(0.5), name="own")
    own.set_data(Tensor(1.5))
    assert rate() == 1.5


#: What the options of optimisers may be assigned; of each class all that it has.
ASSIGNED = {
    "weight_decay": 0.3, "loss_scale": 4.0, "beta1": 0.5, "beta2": 0.7, "eps": 0.1, "epsilon": 0.1,
    "momentum": 0.4, "dampening": 0.2, "nesterov": True, "use_nesterov": True, "decay": 0.5, "rho": 0.5,
    "update_slots": False, "l1": 0.2, "l2": 0.3, "lr_power": -0.7, "lambd": 0.2, "alpha": 0.3, "t0": 1.0,
    "clip_threshold": 0.1, "decay_rate": 0.5, "scale_parameter": False, "warmup_init": True,
    "coefficient": 0.5, "use_clip": True,
}  # fmt: skip
#: Options of some classes that are other than by default.
BEFORE = {
    "AdaFactor": {"eps": (1e-3, 1e-2)}, "SGD": {"momentum": 0.9}, "Momentum": {"momentum": 0.9},
    "FTRL": {"weight_decay": 0.01}, "LARS": {"lars_filter": lambda p: True},
}  # fmt: skip
OPTIMISERS = sorted(
    name
    for name, kind in vars(nn).items()
    if isinstance(kind, type) and issubclass(kind, nn.Optimizer) and kind is not nn.Optimizer
)


def optimiser(name, parameters, **options):
    options = {**BEFORE.get(name, {}), **options}
    if name == "LARS":
        inner = {k: options.pop(k) for k in ("weight_decay", "loss_scale") if k in options}
        return nn.LARS(nn.Momentum(parameters, 0.05, 0.9, **inner), **options)
    if name != "AdaFactor":
        options.setdefault("learning_rate", 0.05)
    return getattr(nn, name)(parameters, **options)


def options_of(name):
    given = {"weight_decay", *inspect.signature(getattr(nn, name)).parameters}
    given |= {"loss_scale"} if name == "LARS" else set()
    given -= {
        "params",
        "learning_rate",
        "optimizer",
        "lars_filter",
        "kwargs",
        "use_locking",
        "compression",
    }
    return sorted(given)


@pytest.mark.parametrize("name", OPTIMISERS)
def test_every_option_that_is_assigned_holds_from_the_next_step(name):
    for option in options_of(name):
        parameters, others = make_parameters(), make_parameters()
        optimizer = optimiser(name, parameters)
        step = ms.jit(optimizer)
        step(gradients_at(0))
        initial = not hasattr(optimizer, option) or isinstance(
            getattr(optimizer, option), ms.ParameterTuple
        )
        value = (1e-4, 0.5) if option == "eps" and name == "AdaFactor" else ASSIGNED.get(option)
        if initial:  # of the state at the beginning, or of nothing
            assert option in ("accum", "initial_accum", "etas", "step_sizes", "loss_scale"), option
            continue
        if value is None:
            assert option in optimizer._fixed
            with pytest.raises(ValueError, match="make another optimiser"):
                setattr(optimizer, option, not getattr(optimizer, option))
            continue
        # what it would be if it had been made with it after the first step
        want = optimiser(name, others)
        want(gradients_at(0))
        again = optimiser(name, others, **{option: value})
        own = {p.name: p for p in want.get_parameters()}
        for p in again.get_parameters():
            if p.name not in ("learning_rate", "momentum"):
                p.set_data(own[p.name])
        setattr(optimizer, option, value)
        for t in (1, 2):
            step(gradients_at(t))
            again(gradients_at(t))
        for a, b in zip(parameters, others, strict=True):
            np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=1e-5, err_msg=option)
        bad = "no" if option != "weight_decay" else -1.0
        with pytest.raises((TypeError, ValueError), match=name.replace("LARS", "LARS|Momentum")):
            setattr(optimizer, option, bad)


@pytest.mark.parametrize("name", OPTIMISERS)
def test_state_is_not_assigned_by_mistake(name):
    optimizer = optimiser(name, make_parameters())
    for state in optimizer._tuples:
        with pytest.raises(TypeError, match="is state"):
            setattr(optimizer, state, 0.5)


def test_options_that_do_not_fit_together():
    sgd = nn.SGD(make_parameters(), 0.1)
    with pytest.raises(ValueError, match="nesterov requires a momentum"):
        sgd.nesterov = True
    assert sgd.nesterov is False
    sgd.momentum = 0.9
    sgd.nesterov = True
    with pytest.raises(ValueError, match="nesterov requires a momentum"):
        sgd.momentum = 0
    assert float(sgd.momentum) == pytest.approx(0.9)
    with pytest.raises(ValueError, match="not both"):
        nn.AdaFactor(make_parameters()).learning_rate = 0.1
    with pytest.raises(ValueError, match="beta1 must stay 0"):
        nn.AdaFactor(make_parameters(), beta1=None).beta1 = 0.5
    with pytest.raises(ValueError, match="learning rates that change"):
        nn.FTRL(make_parameters()).learning_rate = [0.1, 0.2]
    rprop = nn.Rprop(make_parameters())
    rprop.learning_rate = 0.2
    rprop(gradients_at(0))
    with pytest.raises(ValueError, match=r"optimizer\.step_size"):
        rprop.learning_rate = 0.1
    lars = optimiser("LARS", make_parameters())
    lars.learning_rate = 0.5
    assert float(lars.opt.learning_rate) == float(lars.learning_rate) == 0.5


def test_a_rule_of_a_users_own_may_keep_its_decay_as_it_likes():
    class Own(nn.Optimizer):
        def __init__(self, params):
            super().__init__(0.1, params)
            self.weight_decay = Tensor([0.5])
            self.beta1 = Tensor([0.9])

    own = Own(make_parameters())
    assert own.weight_decay.shape == (1,) and own.beta1.shape == (1,)


def test_an_assigned_decay_is_that_of_groups_without_one():
    a, b = (Parameter(Tensor([1.0]), name=n) for n in "ab")
    optimizer = nn.SGD([{"params": [a], "weight_decay": 0.5}, {"params": [b]}], 1.0)
    optimizer.weight_decay = 0.25
    optimizer((Tensor([0.0]), Tensor([0.0])))
    assert (a.asnumpy(), b.asnumpy()) == ([0.5], [0.75])
    optimizer.weight_decay = HalvingDecay()
    optimizer.weight_decay = 0.0
    assert optimizer.exec_weight_decay and not optimizer.dynamic_weight_decay
    with pytest.raises(ValueError, match="weight_decay of their own"):
        nn.SGD([{"params": [a], "weight_decay": 0.5}], 1.0).weight_decay = 0.1


def test_an_assigned_number_is_not_compiled_again():
    optimizer = nn.SGD([Parameter(Tensor([0.0]), name="p")], 1.0)
    traced = []
    step = ms.jit(lambda g: (traced.append(1), optimizer((g,)))[1])
    for value in (1.0, 0.5, 0.25):
        optimizer.learning_rate = value
        step(Tensor([1.0]))
    assert len(traced) == 1 and optimizer.parameters[0].asnumpy() == [-1.75]


def test_an_assigned_rate_is_that_of_groups_without_one():
    a, b = (Parameter(Tensor([0.0]), name=n) for n in "ab")
    optimizer = nn.SGD([{"params": [a], "lr": 0.1}, {"params": [b]}], 1.0)
    optimizer.learning_rate = [0.5, 0.25]
    for _ in range(2):
        optimizer((Tensor([1.0]), Tensor([1.0])))
    np.testing.assert_allclose([a.asnumpy(), b.asnumpy()], [[-0.2], [-0.75]], rtol=1e-6)
    optimizer = nn.SGD([{"params": [a], "lr": 0.1}], 1.0)
    with pytest.raises(ValueError, match="get_lr_parameter"):
        optimizer.learning_rate = 0.5


@pytest.mark.parametrize(("dtype", "tolerance"), [(ms.float16, 0.03), (ms.bfloat16, 0.08)])
def test_half_parameters_have_float32_state(dtype, tolerance):
    parameters = make_parameters(dtype)
    optimizer = nn.Adam(parameters, 0.05)
    assert {p.dtype for p in optimizer.moment2} == {ms.float32}
    # A gradient whose square is far below the smallest float16.
    for _ in range(STEPS):
        optimizer(tuple(Tensor(np.full(p.shape, 1e-5), dtype) for p in parameters))
    for p in parameters:
        assert p.dtype == dtype
        np.testing.assert_allclose(p.asnumpy(), START[p.name] - 1.0, atol=tolerance)


def test_float64_parameters():
    parameters = make_parameters(ms.float64)
    optimizer = nn.Momentum(parameters, Tensor(0.25), 0.5)
    want = reference.run(
        "Momentum", START["bias"], [g["bias"] for g in GRADIENTS], lambda t: 0.25, momentum=0.5
    )
    for t in range(STEPS):
        optimizer(gradients_at(t, ms.float64))
    np.testing.assert_allclose(parameters[1].asnumpy(), want[-1], rtol=1e-13)


def test_a_step_is_one_plan():
    parameters = [Parameter(Tensor(np.ones(3, np.float32)), name=f"p{i}") for i in range(50)]
    optimizer = nn.Adam(parameters, nn.ExponentialDecayLR(0.1, 0.9, 4), weight_decay=0.1)
    gradients = tuple(Tensor(np.ones(3, np.float32)) for _ in parameters)
    optimizer(gradients)
    before = _core.plan_cache_info()
    for _ in range(5):
        optimizer(gradients)
    after = _core.plan_cache_info()
    assert after["runs"] - before["runs"] == 5
    assert after["misses"] == before["misses"]


class UserMomentum(nn.Optimizer):
    """A rule of a user's own, in MindSpore's way."""

    def __init__(self, params, learning_rate, momentum=0.9):
        super().__init__(learning_rate, params)
        self.moment = Parameter(Tensor(momentum, ms.float32), name="moment")
        self.moments = self.parameters.clone(prefix="moments", init="zeros")

    def construct(self, gradients):
        lr = self.get_lr()
        for k, p in enumerate(self.parameters):
            self.moments[k].set_data(self.moments[k] * self.moment + gradients[k])
            p.set_data(p - self.moments[k] * lr)
        return self.parameters


def test_a_users_optimizer(mode):
    parameters = make_parameters()
    optimizer = UserMomentum(parameters, 0.05)
    for t in range(STEPS):
        optimizer(gradients_at(t))
    want = reference.run(
        "Momentum", START["bias"], [g["bias"] for g in GRADIENTS], lambda t: 0.05, momentum=0.9
    )
    np.testing.assert_allclose(parameters[1].asnumpy(), want[-1], rtol=2e-5)


# Lists of learning rates --------------------------------------------------------------------------


def test_dynamic_lr_lists():
    assert nn.piecewise_constant_lr([2, 5], [0.1, 0.05]) == [0.1, 0.1, 0.05, 0.05, 0.05]
    np.testing.assert_allclose(
        nn.exponential_decay_lr(0.1, 0.9, 6, 2, 1), [0.1, 0.1, 0.09, 0.09, 0.081, 0.081]
    )
    np.testing.assert_allclose(
        nn.exponential_decay_lr(0.1, 0.9, 6, 1, 2, True), [0.1, 0.1, 0.09, 0.09, 0.081, 0.081]
    )
    np.testing.assert_allclose(
        nn.natural_exp_decay_lr(0.1, 0.9, 6, 2, 2, True),
        [0.1, 0.1, 0.1, 0.1, 0.1 * math.exp(-1.8), 0.1 * math.exp(-1.8)],
    )
    np.testing.assert_allclose(
        nn.inverse_decay_lr(0.1, 0.5, 6, 1, 1, True), [0.1 / (1 + 0.5 * i) for i in range(6)]
    )
    np.testing.assert_allclose(
        nn.cosine_decay_lr(0.01, 0.1, 6, 2, 2), [0.1, 0.1, 0.055, 0.055, 0.01, 0.01]
    )
    np.testing.assert_allclose(
        nn.polynomial_decay_lr(0.1, 0.01, 6, 2, 2, 0.5),
        [0.1, 0.1, *[0.09 * 0.5**0.5 + 0.01] * 2, 0.01, 0.01],
    )
    np.testing.assert_allclose(nn.warmup_lr(0.1, 6, 2, 2), [0, 0, 0.05, 0.05, 0.1, 0.1])


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: nn.exponential_decay_lr(-0.1, 0.9, 6, 2, 1), ValueError),
        (lambda: nn.exponential_decay_lr(0.1, 0.9, 0, 2, 1), ValueError),
        (lambda: nn.exponential_decay_lr(0.1, 0.9, 6.0, 2, 1), TypeError),
        (lambda: nn.piecewise_constant_lr([5, 2], [0.1, 0.2]), ValueError),
        (lambda: nn.piecewise_constant_lr([5], [0.1, 0.2]), ValueError),
        (lambda: nn.cosine_decay_lr(0.2, 0.1, 6, 2, 2), ValueError),
        (lambda: nn.ExponentialDecayLR(0.1, -0.9, 4), ValueError),
        (lambda: nn.ExponentialDecayLR(0.1, 0.9, 4, 1), TypeError),
        (lambda: nn.CosineDecayLR(0.2, 0.1, 4), ValueError),
        (lambda: nn.WarmUpLR(0.1, 0), ValueError),
        (lambda: nn.PolynomialDecayLR(0.1, 0.2, 4, 0.5), ValueError),
    ],
)
def test_bad_schedules(call, error):
    with pytest.raises(error):
        call()


# Bad input ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda p: nn.Adam([]), ValueError, "must not be empty"),
        (lambda p: nn.Adam(3), TypeError, "must be Iterable"),
        (lambda p: nn.Adam([1]), TypeError, "must be 'Parameter' or 'dict'"),
        (lambda p: nn.Adam([p[0], {"params": p[1:]}]), TypeError, "'Parameter' or 'dict'"),
        (lambda p: nn.Adam(p + p), ValueError, "given twice"),
        (lambda p: nn.Adam([{"params": p}, {"params": p[:1]}]), ValueError, "given twice"),
        (lambda p: nn.Adam([{"params": []}]), ValueError, "must not be empty"),
        (lambda p: nn.Adam([{"params": p, "rate": 1}]), KeyError, "rate"),
        (lambda p: nn.Adam([{"params": p}, {"order_params": p[:1]}]), ValueError, "order_params"),
        (lambda p: nn.Adam(p, -1.0), ValueError, "learning rate"),
        (lambda p: nn.Adam(p, float("nan")), ValueError, "learning rate"),
        (lambda p: nn.Adam(p, []), ValueError, "empty"),
        (lambda p: nn.Adam(p, "a"), TypeError, "learning rate"),
        (lambda p: nn.Adam(p, Tensor([[0.1]])), ValueError, "dimensions"),
        (lambda p: nn.Adam(p, beta1=1.5), ValueError, "beta1"),
        (lambda p: nn.Adam(p, eps=0.0), ValueError, "eps"),
        (lambda p: nn.Adam(p, weight_decay=-1.0), ValueError, "weight_decay"),
        (lambda p: nn.Adam(p, loss_scale=0.0), ValueError, "loss_scale"),
        (lambda p: nn.Adam(p, use_amsgrad=1), TypeError, "use_amsgrad"),
        (lambda p: nn.Momentum(p, 0.1, -1.0), ValueError, "momentum"),
        (lambda p: nn.SGD(p, nesterov=True), ValueError, "nesterov"),
        (lambda p: nn.SGD(p, momentum=0.9, dampening=2.0), ValueError, "dampening"),
        (lambda p: nn.LARS(p), TypeError, "Optimizer"),
        (lambda p: nn.SGD([Parameter(Tensor([1]), name="i")]), TypeError, "cannot be trained"),
        (
            lambda p: nn.SGD([Parameter(Tensor([1.0]), name="global_step")]),
            ValueError,
            "the optimiser's own",
        ),
    ],
)
def test_bad_arguments(call, error, text):
    with pytest.raises(error, match=text):
        call(make_parameters())


@pytest.mark.parametrize(
    ("gradients", "error", "text"),
    [
        (lambda g: g[:1], ValueError, "1 gradients for 3"),
        (lambda g: (*g[:2], Tensor([1.0, 2.0])), ValueError, "'scale' has shape"),
        (lambda g: (*g[:2], None), TypeError, "'scale' is not a Tensor"),
        (lambda g: 3, TypeError, "tuple of gradients"),
    ],
)
def test_bad_gradients_leave_everything_as_it_was(gradients, error, text):
    parameters = make_parameters()
    optimizer = nn.Adam(parameters)
    before = [p.asnumpy().copy() for p in optimizer.get_parameters()]
    with pytest.raises(error, match=text):
        optimizer(gradients(gradients_at(0)))
    for p, b in zip(optimizer.get_parameters(), before, strict=True):
        np.testing.assert_array_equal(p.asnumpy(), b)


def test_state_is_updated_in_place_unless_someone_holds_it(mode):
    start = RNG.randn(100, 30).astype(np.float32)
    parameter = Parameter(Tensor(start), name="weight")
    optimizer = nn.Adam([parameter])
    step = ms.jit(lambda g: optimizer((g,)))
    gradient = Tensor(np.ones((100, 30), np.float32))
    step(gradient)

    def addresses():
        states = (parameter, optimizer.moment1[0], optimizer.moment2[0])
        return [s.asnumpy().__array_interface__["data"][0] for s in states]

    at = addresses()
    for _ in range(3):
        step(gradient)
    assert addresses() == at
    held = parameter.asnumpy()
    values = held.copy()
    step(gradient)
    np.testing.assert_array_equal(held, values)
    assert np.abs(parameter.asnumpy() - values).min() > 0


# Complex parameters -------------------------------------------------------------------------------

COMPLEX = np.array([1 + 2j, -0.5 + 0.25j, 3 - 1j])


@pytest.mark.parametrize(("name", "options"), RULES, ids=lambda v: v if isinstance(v, str) else "")
def test_a_complex_parameter_is_a_pair_of_real_ones(name, options):
    rng = np.random.default_rng(5)
    numbers = COMPLEX.view(np.float64).reshape(3, 2)
    of_pairs = Parameter(Tensor(numbers), name="w")
    of_complex = Parameter(Tensor(COMPLEX), name="w")
    real, complex_ = (
        getattr(nn, name)([p], learning_rate=0.05, **options) for p in (of_pairs, of_complex)
    )
    for _ in range(4):
        g = rng.standard_normal((3, 2))
        real((Tensor(g),))
        complex_((Tensor(g.copy().view(np.complex128)[:, 0]),))
        found = of_complex.asnumpy().view(np.float64).reshape(3, 2)
        np.testing.assert_array_equal(found, of_pairs.asnumpy())


#: PyTorch 2's parameters after five steps from COMPLEX for the loss below.
PYTORCH = {
    ("Adam", ()): [0.5278144513706096 + 1.501779456227287j,
                   -0.0022246483473819523 + 0.6276039366824455j,
                   2.5012675353338625 - 0.5029557929767768j],
    ("Adagrad", ()): [0.7296373755320137 + 1.6835813106397033j,
                      -0.18469855493765253 + 0.4687172426965443j,
                      2.6942453754649605 - 0.727539002111382j],
    ("AdaMax", ()): [0.6001837237238595 + 1.5169635930482497j,
                     -0.020502602740152337 + 0.5636474968530888j,
                     2.5125145637584465 - 0.5257775565191483j],
    ("Rprop", ()): [0.4632 + 1.25584j, 0.24416 + 0.542j, 2.25584 - 0.25584j],
    ("Adadelta", (("learning_rate", 1.0), ("rho", 0.9))): [
        0.983695966917323 + 1.9835884351350526j, -0.48359271319722047 + 0.2661739711572802j,
        2.9835832169883467 - 0.9835996662348954j],
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "options"), PYTORCH, ids=lambda v: v if isinstance(v, str) else ""
)
def test_complex_steps_are_pytorchs(name, options):
    w = Parameter(Tensor(COMPLEX), name="w")
    optimizer = getattr(nn, name)([w], **{"learning_rate": 0.1, **dict(options)})
    target = np.array([0.5 - 1j, 2 + 0.5j, -1 + 1j])
    for _ in range(5):  # the gradient of sum(k |w - target|^2), as both packages give it
        optimizer((Tensor(2 * np.array([1.0, 10.0, 0.1]) * (w.asnumpy() - target)),))
    np.testing.assert_allclose(w.asnumpy(), PYTORCH[name, options], rtol=2e-6)


def test_adafactor_refuses_complex_parameters():
    with pytest.raises(TypeError, match="AdaFactor: 'w' has dtype Complex128"):
        nn.AdaFactor([Parameter(Tensor(COMPLEX), name="w")])


def test_lars_measures_complex_numbers():
    """The rate is that of the lengths of parameter and gradient, a real number."""
    w = Parameter(Tensor(COMPLEX), name="w")
    g = np.array([0.3 + 0.1j, -1j, 0.5])
    nn.LARS(nn.SGD([w], learning_rate=0.1))((Tensor(g),))
    ratio = 1e-3 * np.linalg.norm(COMPLEX) / (np.linalg.norm(g) + 1e-5)
    np.testing.assert_allclose(w.asnumpy(), COMPLEX - 0.1 * ratio * g, rtol=1e-6)
