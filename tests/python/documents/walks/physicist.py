"""A physicist: a plate with a corner and three kinds of conditions, growth from a file, both with errors."""

import csv

import numpy as np

import gradcell as gc
from gradcell import nn, ops, physics

gc.set_default_dtype(gc.float64)
gc.set_seed(0)

# u_xx + u_yy = 0 on an L, u given at the bottom, insulated at the left, losing heat elsewhere
shape = physics.Polygon([[0, 0], [2, 0], [2, 1], [1, 1], [1, 2], [0, 2]])
net = nn.MLP(2, 16, 16, 1, init="xavier_uniform")
laplace = gc.laplacian(net)
inside = shape.interior(300, seed=0)
edge, normal = shape.boundary(120, 0)
bottom, left = edge[:, 1] < 1e-9, edge[:, 0] < 1e-9
rest = ~(bottom | left)

residuals = [laplace, physics.dirichlet(net, 1.0), physics.neumann(net, 0.0)]
residuals.append(physics.robin(net, 1.0, 1.0, 0.0))
solver = gc.GaussNewton(residuals, net.trainable_params(), weights=[1, 100, 10, 10])
given = [
    inside,
    edge[bottom],
    (edge[left], normal[left]),
    (edge[rest], normal[rest]),
]
state = solver.run(60, *given, progress=30)
u = net(np.array([[0.5, 0.5], [1.5, 0.5], [0.5, 1.5]])).asnumpy()[:, 0]
print("loss", state.loss < 0.02, "temperatures fall away from the bottom", u[2] < u[0] < 1)

# Logistic growth, r N (1 - N / K), from a file
random = np.random.default_rng(0)
t = np.linspace(0, 10, 40)
true = 12 / (1 + 11 * np.exp(-0.9 * t))
with open("growth.csv", "w", newline="") as file:
    csv.writer(file).writerows([("t", "n"), *zip(t, true + random.normal(0, 0.2, 40))])
table = physics.columns("growth.csv")
t, n = table["t"], table["n"]
r, k, start = (
    gc.Parameter(gc.Tensor(v), name=name) for v, name in ((0.5, "r"), (10.0, "K"), (2.0, "n0"))
)


def misfit(t, n):
    return k / (1 + (k / start - 1) * ops.exp(-r * t)) - n


fit = gc.GaussNewton(misfit, [r, k, start])
print("fit", fit.run(50, t, n).success)
certain = fit.covariance([r, k, start])
for p, deviation, truth in zip((r, k, start), certain.deviations, (0.9, 12, 1)):
    print(p.name, f"{float(p):.2f} +- {deviation:.2f}", abs(float(p) - truth) < 3 * deviation)
line = np.linspace(0, 10, 50)[:, None]
half = 2 * certain.of(lambda t: misfit(t, 0.0), line)
physics.band("growth.png", line, misfit(line, 0.0), half, measured=(t, n))
