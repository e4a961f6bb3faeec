"""A fractional Laplacian of order 1.5 in one dimension; zero outside by an output transform."""

import deepxde as dde
from deepxde import backend as bkd
from scipy.special import gamma

dde.config.set_default_float("float64")
dde.config.set_random_seed(12)
order = 1.5


def residual(x, u, matrix):
    left_side = bkd.sparse_dense_matmul(bkd.sparse_tensor(*matrix), u)
    inside = x[: left_side.shape[0]]
    factors = [gamma(k + 1) / gamma(k + 1 - order) for k in (3, 4, 5, 6)]
    source = 0
    for sign, factor, k in zip((1, -3, 3, -1), factors, (3, 4, 5, 6), strict=True):
        source = source + sign * factor * (inside ** (k - order) + (1 - inside) ** (k - order))
    return left_side - source


line = dde.geometry.Interval(0, 1)
edges = dde.icbc.DirichletBC(line, lambda x: 0, lambda x, on_boundary: on_boundary)
data = dde.data.FPDE(
    line, residual, order, edges, [101], num_domain=20, num_boundary=2,
    solution=lambda x: x**3 * (1 - x) ** 3,
)  # fmt: skip
net = dde.nn.FNN([1] + [20] * 4 + [1], "tanh", "Glorot normal")
net.apply_output_transform(lambda x, u: x * (1 - x) * u)
model = dde.Model(data, net)
model.compile("adam", lr=1e-3)
model.train(iterations=10000)
