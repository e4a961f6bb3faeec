"""Ops that programs ask for by name, values and gradients, as functions that are compiled in GRAPH_MODE."""

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops
from mindspore.nn.probability import distribution
from mindspore.ops import operations as P

X = np.array([[0.5, 1.5, 2.0], [1.0, 0.25, 0.75]], np.float32)
Y = np.array([[2.0, 0.5, 1.0], [1.5, 4.0, 0.5]], np.float32)
ROWS = np.array([1, 0], np.int32)


def _of_both(name):
    """Values, and gradients by the second argument, which MindSpore has for all of these."""

    def both():
        op = getattr(ops, name)

        def f(x, y):
            return op(x, y)

        return f(Tensor(X + 1), Tensor(Y)), ms.grad(f, 1)(Tensor(X + 1), Tensor(Y))

    return both


def _of_one(name):
    def one():
        op = getattr(ops, name)

        def f(x):
            return op(x)

        return f(Tensor(X)), ms.grad(f)(Tensor(X))

    return one


for _name in "igamma igammac zeta".split():
    globals()[_name] = _of_both(_name)
for _name in "bessel_i0 bessel_i0e bessel_i1 bessel_i1e bessel_j0 bessel_j1 bessel_k0".split():
    globals()[_name] = _of_one(_name)
for _name in "bessel_k0e bessel_k1 bessel_k1e bessel_y0 bessel_y1".split():
    globals()[_name] = _of_one(_name)


def mvlgamma():
    def f(x):
        return ops.mvlgamma(x, 2)

    return f(Tensor(X + 1)), ms.grad(f)(Tensor(X + 1))


def isposinf():
    return ops.isposinf(Tensor(np.array([np.inf, -np.inf, np.nan, 1.0], np.float32)))


def cdist():
    def f(x, y):
        return ops.cdist(x, y, 2.0)

    return f(Tensor(X), Tensor(Y)), ms.grad(f, (0, 1))(Tensor(X), Tensor(Y))


def renorm():
    def f(x):
        return P.Renorm(2, 0, 1.0)(x)

    return f(Tensor(X)), ms.grad(f)(Tensor(X))


def max_unpool1d():
    places = Tensor([[[0, 2, 5], [1, 3, 4]]], ms.int64)

    def f(x):
        return ops.max_unpool1d(x, places, 2, 2)

    return f(Tensor(X[None])), ms.grad(f)(Tensor(X[None]))


def convolution_transposed():
    op = P.Conv3DTranspose(2, 1, (2, 2, 2))
    w = np.arange(16, dtype=np.float32).reshape(2, 1, 2, 2, 2) / 8
    x = np.arange(16, dtype=np.float32).reshape(1, 2, 2, 2, 2) / 4

    def f(x, w):
        return op(x, w)

    return f(Tensor(x), Tensor(w)), ms.grad(f, (0, 1))(Tensor(x), Tensor(w))


def stopped_in_place():
    def f(x):
        y = x * 2
        ops.stop_gradient_(y)
        return y * x

    return f(Tensor(X)), ms.grad(f)(Tensor(X))


def regularised():
    net = nn.L1Regularizer(0.1)
    return net(Tensor(X)), ms.grad(net)(Tensor(X))


def _by_the_first(name):
    def first():
        op = getattr(ops, name)

        def f(x, y):
            return op(x, y)

        return ms.grad(f)(Tensor(X + 1), Tensor(Y))

    return first


for _name in "igamma igammac zeta".split():
    globals()[f"{_name}_by_the_first"] = _by_the_first(_name)


def zeta_at_edges():
    x, y = Tensor([1.0, 0.5, -2.0, 0.0], ms.float32), Tensor([2.0, 2.0, 2.0, 1.0], ms.float32)

    def f(x, y):
        return ops.zeta(x, y)

    return f(x, y), ms.grad(f, 1)(x, y)


def clipped_by_the_norm():
    from mindspore.nn.layer.basic import ClipByNorm

    net = ClipByNorm()
    given = Tensor(X), Tensor(1.5, ms.float32)
    return net(*given), ms.grad(net, (0, 1))(*given)


def clipped_by_the_norms_of_rows():
    from mindspore.nn.layer.basic import ClipByNorm

    return ClipByNorm(1)(Tensor(X), Tensor(1.0, ms.float32))


def gradients_of_gradients_as_ops():
    from mindspore.ops.operations._grad_ops import SoftplusGrad, StridedSliceGrad

    softplus, sliced = SoftplusGrad(), StridedSliceGrad()

    def f(dy, x):
        return softplus(dy, x)

    def g(dy):
        return sliced(dy, (3, 4), (0, 1), (2, 4), (1, 1)) * 2

    return ms.grad(f, (0, 1))(Tensor(X), Tensor(Y)), ms.grad(g)(Tensor(X))


def traces():
    from mindspore.ops.auto_generate import TraceV2, trace_v2_op

    op = TraceV2()

    def f(x):
        return op(x, 1, 0, 1, ms.float32)

    return f(Tensor(X)), ms.grad(f)(Tensor(X)), trace_v2_op(Tensor(X), 0, 1, 0, None)


def counted():
    from mindspore.ops.operations.sparse_ops import SparseCountSparseOutput

    at = Tensor([[0, 1], [0, 2], [1, 0], [1, 2], [1, 3]], ms.int64)
    values, shape = Tensor([1, 1, 5, 5, 2], ms.int32), Tensor([2, 4], ms.int64)
    weights = Tensor([1, 2, 0.5, 3, 1], ms.float32)
    options = {}, {"binary_output": True}, {"minlength": 8}, {"maxlength": 3}
    found = [SparseCountSparseOutput(**o)(at, values, shape, weights) for o in options]
    line = at[:, 1:], values.astype(ms.int64), Tensor([4], ms.int64), weights.astype(ms.int64)
    return found, SparseCountSparseOutput()(*line)


def reshaped_places():
    from mindspore.ops.operations.sparse_ops import SparseReshape

    at = Tensor([[0, 0], [0, 1], [1, 2]], ms.int64)
    return SparseReshape()(at, Tensor([2, 3], ms.int64), Tensor([3, -1], ms.int64))


def gradients_by_concentrations_of_beta():
    beta = distribution.Beta()

    def f(x, a, b):
        return beta.log_prob(x, a, b)

    return ms.grad(f, (0, 1, 2))(Tensor(X[0] / 4), Tensor(X[1] + 1), Tensor(Y[0]))


def gradients_by_what_distributions_are_of():
    gamma, poisson = distribution.Gamma(), distribution.Poisson()

    def of_gamma(x, a, b):
        return gamma.log_prob(x, a, b)

    def of_poisson(x, rate):
        return poisson.log_prob(x, rate)

    return (
        ms.grad(of_gamma, (0, 1, 2))(Tensor(X[0] / 4), Tensor(X[1] + 1), Tensor(Y[0])),
        ms.grad(of_poisson, 1)(Tensor([0.0, 2.0, 5.0], ms.float32), Tensor(Y[0])),
    )


def gradients_of_a_divergence():
    gamma = distribution.Gamma()
    base = Tensor([2.5, 0.5, 1.0], ms.float32), Tensor([1.5, 3.0, 0.5], ms.float32)

    def apart(a, b):
        return gamma.kl_loss("Gamma", *base, a, b)

    found = ms.grad(apart, (0, 1))(Tensor(X[1] + 1), Tensor(Y[0]))
    return [float(v) for g in found for v in g.asnumpy()]


class _Scatter(nn.Cell):
    def __init__(self, op):
        super().__init__()
        self.op, self.x = op, Parameter(Tensor(X), name="x")

    def construct(self, rows, updates):
        return self.op(self.x, rows, updates)


def scattered():
    given = Tensor(ROWS), Tensor(Y)
    return [_Scatter(op)(*given) for op in (P.ScatterDiv(), P.ScatterSub(), P.ScatterMul())]


def _parameters(count):
    return [Parameter(Tensor(X + i), name=f"p{i}") for i in range(count)]


class _Update(nn.Cell):
    def __init__(self, op, count):
        super().__init__()
        self.op = op
        self.first, self.second = _parameters(3)[:2]
        self.third = Parameter(Tensor(X + 2), name="third")
        self.fourth = Parameter(Tensor(X + 3), name="fourth")
        self.count = count

    def construct(self, *given):
        if self.count == 2:
            self.op(self.first, self.second, *given)
        elif self.count == 3:
            self.op(self.first, self.second, self.third, *given)
        else:
            self.op(self.first, self.second, self.third, self.fourth, *given)
        return self.first, self.second, self.third, self.fourth


def _updated(op, count, *given):
    net = _Update(op, count)
    net(*given)
    return [p.value() for p in net.get_parameters()]


def followed_the_regularised_leader():
    given = Tensor(Y), Tensor(ROWS)
    return [_updated(P.FusedSparseFtrl(0.01, 0.1, 0.2, -0.5), 3, *given),
            _updated(P.SparseApplyFtrl(0.01, 0.1, 0.2, -0.5), 3, *given)]  # fmt: skip


def adam_of_rows():
    numbers = [Tensor(n, ms.float32) for n in (0.9, 0.999, 0.01, 0.9, 0.999, 1e-8)]
    return _updated(P.FusedSparseLazyAdam(), 3, *numbers, Tensor(Y), Tensor(ROWS))


def adam_with_the_largest():
    numbers = [Tensor(n, ms.float32) for n in (0.9, 0.999, 0.01)]
    return _updated(P.ApplyAdamWithAmsgrad(), 4, *numbers, Tensor(Y))


def adadelta():
    numbers = [Tensor(n, ms.float32) for n in (0.01, 0.9, 1e-6)]
    return _updated(P.ApplyAdadelta(), 3, *numbers, Tensor(Y))


def embeddings_of_fields():
    table = Tensor(np.arange(8).reshape(4, 2) / 7 - 0.5, ms.float32)
    rows, fields = (
        Tensor([[0, 3, 1], [2, 2, 1]], ms.int32),
        Tensor([[0, 1, 1], [0, 0, 0]], ms.int32),
    )
    found = []
    for operator in ("SUM", "MAX", "MEAN"):
        net = nn.MultiFieldEmbeddingLookup(4, 2, 2, table, operator=operator)
        found += [net(rows, Tensor(Y), fields), ms.grad(net, 1)(rows, Tensor(Y), fields)]
    return found


def embeddings_of_fields_of_a_largest_norm():
    table = Tensor([[3.0, 4.0], [0.3, 0.4], [0.0, 1.0], [5.0, 12.0]], ms.float32)
    rows, fields = (
        Tensor([[0, 3, 1], [2, 2, 3]], ms.int32),
        Tensor([[0, 1, 1], [0, 0, 0]], ms.int32),
    )
    net = nn.MultiFieldEmbeddingLookup(4, 2, 2, table, max_norm=1.0)
    return net(rows, Tensor(Y), fields), ms.grad(net, 1)(rows, Tensor(Y), fields)


def occlusion():
    net = nn.Dense(3, 2, weight_init=Tensor(X), bias_init=Tensor([0.3, 0.6], ms.float32))
    metric = ms.train.OcclusionSensitivity(0.5, 1, 2, [0, 1])
    metric.update(net, Y[:1], np.array(1, np.int32))
    return metric.eval().tolist()


def backup():
    import tempfile

    class Fails(ms.train.Callback):
        def on_train_step_end(self, run_context):
            if run_context.original_args().cur_step_num == 5:
                raise RuntimeError("the power is off")

    def fitted(*callbacks):
        net = nn.Dense(3, 1, "ones", "zeros")
        rows = ms.dataset.NumpySlicesDataset((X, Y[:, :1]), ["x", "y"], shuffle=False).batch(1)
        opt = nn.Momentum(net.trainable_params(), 0.01, 0.9)
        model = ms.train.Model(net, nn.MSELoss(), opt)
        try:
            model.train(3, rows, callbacks=list(callbacks), dataset_sink_mode=False)
        except RuntimeError:
            return "ended"
        return net.weight.value()

    with tempfile.TemporaryDirectory() as place:
        first = fitted(Fails(), ms.train.BackupAndRestore(place))
        return first, fitted(ms.train.BackupAndRestore(place))


def device_that_is_not_given():
    return ms.set_device(None)
