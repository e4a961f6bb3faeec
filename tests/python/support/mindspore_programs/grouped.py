"""Optimisers and schedules of mindspore.experimental.optim: parameters after some steps."""

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor
from mindspore.experimental import optim

X = np.array([[0.5, -1.5, 2.0], [1.0, 0.25, -0.75]], np.float32)


def _trained(make, steps=4):
    first = Parameter(Tensor(X), name="first")
    second = Parameter(Tensor(X[0] * 0.5), name="second")
    optimizer = make([first, second])
    for i in range(steps):
        g = np.cos(np.arange(6, dtype=np.float32) * (i + 1)).reshape(2, 3)
        done = optimizer((Tensor(g), Tensor(g[1] * 0.5)))
        assert done
    kept = [(p.name, p.value()) for p in optimizer.get_parameters() if "rate" in p.name]
    return first.value(), second.value(), kept, [p.name for p in optimizer.parameters]


def adadelta():
    return _trained(lambda p: optim.Adadelta(p, lr=0.5, weight_decay=0.1))


def adagrad():
    return _trained(lambda p: optim.Adagrad(p, lr=0.1, lr_decay=0.2, initial_accumulator_value=0.3))


def adam():
    return _trained(lambda p: optim.Adam(p, lr=0.1, betas=(0.8, 0.95), weight_decay=0.1))


def adam_uphill():
    return _trained(lambda p: optim.Adam(p, lr=0.1, maximize=True))


def adamw():
    return _trained(lambda p: optim.AdamW(p, lr=0.1, amsgrad=True))


def adamax():
    return _trained(lambda p: optim.Adamax(p, lr=0.1, weight_decay=0.05))


def asgd():
    return _trained(lambda p: optim.ASGD(p, lr=0.1, lambd=0.01, t0=2.0))


def nadam():
    return _trained(lambda p: optim.NAdam(p, lr=0.1, weight_decay=0.05))


def radam():
    return _trained(lambda p: optim.RAdam(p, lr=0.1, betas=(0.9, 0.99)), 8)


def rmsprop():
    return _trained(lambda p: optim.RMSprop(p, lr=0.1, momentum=0.5, centered=True))


def rmsprop_plain():
    return _trained(lambda p: optim.RMSprop(p, lr=0.1, weight_decay=0.1, maximize=True))


def rprop():
    return _trained(lambda p: optim.Rprop(p, lr=0.1))


def sgd():
    return _trained(lambda p: optim.SGD(p, 0.1, 0.9, 0.2, 0.05))


def sgd_of_nesterov():
    return _trained(lambda p: optim.SGD(p, 0.1, 0.9, nesterov=True, maximize=True))


def groups():
    def make(p):
        return optim.Adam(
            [{"params": [p[0]], "lr": 0.3, "weight_decay": 0.1}, {"params": p[1:]}], lr=0.05
        )

    return _trained(make)


def rate_that_is_set():
    p = Parameter(Tensor(X), name="p")
    optimizer = optim.SGD([p], lr=0.1)
    found = []
    for lr in (0.1, 0.5):
        ms.ops.assign(optimizer.param_groups[0]["lr"], Tensor(lr, ms.float32))
        optimizer((Tensor(X),))
        found.append(p.value())
    optimizer.param_groups[0]["lr"] = 0.25
    optimizer((Tensor(X),))
    return [*found, p.value()]


def options_of_groups():
    p = Parameter(Tensor(X), name="p")
    optimizer = optim.AdamW([p], lr=0.1)
    optimizer.add_param_group({"params": Parameter(Tensor(X), name="q"), "lr": 0.5})
    found = [sorted(set(g) - {"max_exp_avg_sq"}) for g in optimizer.param_groups]
    return found, optimizer.group_start_id, [lr.name for lr in optimizer.lrs]


def rate_below_zero():
    return optim.Adam([Parameter(Tensor(X), name="p")], lr=-0.1)


def beta_of_one():
    return optim.AdamW([Parameter(Tensor(X), name="p")], betas=(1.0, 0.9))


def no_parameters():
    return optim.Adam([])


def parameter_of_two_groups():
    p = Parameter(Tensor(X), name="p")
    return optim.Adam([{"params": [p]}, {"params": [p]}])


def _rates(make, steps=8, base=0.5, measures=None):
    p, q = Parameter(Tensor(X), name="p"), Parameter(Tensor(X), name="q")
    optimizer = optim.SGD([{"params": [p], "lr": base}, {"params": [q]}], lr=0.1)
    schedule = make(optimizer)
    found = [[float(lr.value()) for lr in optimizer.lrs]]
    for i in range(steps):
        schedule.step(*(() if measures is None else (Tensor(measures[i], ms.float32),)))
        found.append([float(lr.value()) for lr in optimizer.lrs])
    return found, schedule.get_last_lr()


def rates_by_steps():
    return _rates(lambda o: optim.lr_scheduler.StepLR(o, 3, 0.5))


def rates_on_a_line():
    return _rates(lambda o: optim.lr_scheduler.LinearLR(o, 0.25, 0.75, 4))


def rates_of_powers():
    return _rates(lambda o: optim.lr_scheduler.ExponentialLR(o, 0.9))


def rates_of_a_polynomial():
    return _rates(lambda o: optim.lr_scheduler.PolynomialLR(o, 5, 2.0))


def rates_by_a_function():
    return _rates(lambda o: optim.lr_scheduler.LambdaLR(o, lambda n: 0.9**n))


def rates_by_functions_of_groups():
    functions = [lambda n: 0.9, lambda n: 0.5 + 0.1 * n]
    return _rates(lambda o: optim.lr_scheduler.MultiplicativeLR(o, functions))


def rates_by_milestones():
    return _rates(lambda o: optim.lr_scheduler.MultiStepLR(o, [2, 5, 5], 0.5))


def rates_that_begin_low():
    return _rates(lambda o: optim.lr_scheduler.ConstantLR(o, 0.25, 3))


def rates_of_one_after_another():
    def make(o):
        first = optim.lr_scheduler.ConstantLR(o, 0.1, 2)
        second = optim.lr_scheduler.ExponentialLR(o, 0.9)
        return optim.lr_scheduler.SequentialLR(o, [first, second], [3])

    return _rates(make)


def rates_on_a_plateau():
    measures = [1.0, 0.9, 0.91, 0.92, 0.95, 0.95, 0.5, 0.6, 0.6, 0.6, 0.6]
    return _rates(
        lambda o: optim.lr_scheduler.ReduceLROnPlateau(o, "min", 0.5, 1, cooldown=1, min_lr=0.06),
        len(measures), measures=measures,
    )  # fmt: skip


def rates_in_cycles():
    return _rates(lambda o: optim.lr_scheduler.CyclicLR(o, 0.1, [0.5, 1.0], 2, 3))


def rates_in_falling_cycles():
    return _rates(lambda o: optim.lr_scheduler.CyclicLR(o, 0.1, 0.5, 2, mode="triangular2"))


def rates_in_cycles_of_powers():
    return _rates(
        lambda o: optim.lr_scheduler.CyclicLR(o, 0.1, 0.5, 2, mode="exp_range", gamma=0.9)
    )


def rates_along_a_cosine():
    return _rates(lambda o: optim.lr_scheduler.CosineAnnealingLR(o, 3, 0.05))


def rates_that_begin_again():
    return _rates(lambda o: optim.lr_scheduler.CosineAnnealingWarmRestarts(o, 2, 2, 0.05), 15)


def rates_that_begin_again_alike():
    return _rates(lambda o: optim.lr_scheduler.CosineAnnealingWarmRestarts(o, 3))


def schedule_of_another_optimiser():
    return optim.lr_scheduler.StepLR(ms.nn.SGD([Parameter(Tensor(X), name="p")], 0.1), 3)


def steps_of_a_network():
    ms.set_seed(3)
    net = ms.nn.Dense(3, 2, "ones", "zeros")
    optimizer = optim.AdamW(net.trainable_params(), lr=0.1)
    schedule = optim.lr_scheduler.StepLR(optimizer, 2, 0.5)

    def loss_of(x):
        return ms.ops.square(net(x)).mean()

    of = ms.value_and_grad(loss_of, None, optimizer.parameters)
    losses = []
    for _ in range(5):
        loss, grads = of(Tensor(X))
        optimizer(grads)
        schedule.step()
        losses.append(loss)
    return losses, schedule.get_last_lr(), net.weight.value()


def optimiser_of_a_program():
    class Descent(optim.Optimizer):
        def __init__(self, params, lr):
            super().__init__(params, {"lr": lr})

        def construct(self, gradients):
            for i, group in enumerate(self.param_groups):
                for k, p in enumerate(group["params"], self.group_start_id[i]):
                    ms.ops.assign(p, p - gradients[k] * group["lr"])
            return True

    p, q = Parameter(Tensor(X), name="p"), Parameter(Tensor(X[0]), name="q")
    optimizer = Descent([p], 0.5)
    optimizer.add_param_group({"params": q, "lr": 0.25})
    optimizer((Tensor(X), Tensor(X[0])))
    return p.value(), q.value()
