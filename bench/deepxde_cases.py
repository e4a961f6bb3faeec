"""The programs of deepxde_names.py: for each public name of DeepXDE a few lines that use it.

A case is a function of a Bench, which gives numbers: losses before and after a few steps of Adam from given
weights, or values.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from deepxde_compare import set_weights

CASES: dict[str, Callable[..., Any]] = {}


def case(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Files a function under the names that it uses."""

    def kept(function: Callable[..., Any]) -> Callable[..., Any]:
        CASES.update(dict.fromkeys(names, function))
        return function

    return kept


class Bench:
    """What cases need: DeepXDE, PyTorch's names, a folder, and short ways to train."""

    def __init__(self, dde: Any, torch: Any, folder: Path) -> None:
        self.dde, self.torch, self.folder = dde, torch, folder
        self.line = dde.geometry.Interval(-1, 1)

    def net(self, inputs: int = 1, outputs: int = 1) -> Any:
        return self.dde.nn.FNN([inputs, 8, 8, outputs], "tanh", "Glorot uniform")

    def residual(self, x: Any, u: Any) -> Any:
        return self.dde.grad.hessian(u, x) - 1

    def edges(self) -> Any:
        return self.dde.icbc.DirichletBC(self.line, lambda x: 0, lambda x, on: on)

    def poisson(self, conditions: Any = None, residual: Any = None, **options: Any) -> Any:
        return self.dde.data.PDE(
            self.line, residual or self.residual, conditions or self.edges(), 12, 2, **options
        )

    def model(self, data: Any, net: Any = None, optimizer: str = "adam", **options: Any) -> Any:
        kind = options.pop("kind", self.dde.Model)
        model = kind(data, net or self.net())
        set_weights(model, self.torch)
        model.compile(optimizer, **{"lr": 1e-3, **options})
        return model

    def fit(self, data: Any, net: Any = None, callbacks: Any = None, **options: Any) -> Any:
        """The losses before and after five steps."""
        batch = options.pop("batch_size", None)
        model = self.model(data, net, **options)
        model.train(iterations=5, display_every=5, batch_size=batch, callbacks=callbacks)
        return self.losses(model)

    def losses(self, model: Any) -> Any:
        return np.concatenate([np.ravel(x) for x in model.losshistory.loss_train])


# Networks and data of operators -----------------------------------------------------------------------


def functions() -> tuple[Any, Any]:
    """Values of 12 functions at 6 places, [12, 6], and 7 points to look at, [7, 1]."""
    random = np.random.default_rng(0)
    return random.normal(size=(12, 6)).astype("f4"), np.linspace(0, 1, 7)[:, None].astype("f4")


def aligned(b: Bench, net: Any, inputs: Any, kind: str) -> Any:
    y = np.outer(inputs[0].sum(1), inputs[-1][:, 0]).astype("f4")
    return b.fit(getattr(b.dde.data, kind)(inputs, y, inputs, y), net, batch_size=4)


HOW = ("tanh", "Glorot normal")


@case("nn.DeepONetCartesianProd", "data.TripleCartesianProd")
def _(b: Bench) -> Any:
    net = b.dde.nn.DeepONetCartesianProd([6, 8, 8], [1, 8, 8], *HOW)
    return aligned(b, net, functions(), "TripleCartesianProd")


@case("nn.PODDeepONet")
def _(b: Bench) -> Any:
    f, x = functions()
    basis = np.stack([np.sin(k * x[:, 0]) for k in range(1, 5)], 1).astype("f4")
    return aligned(b, b.dde.nn.PODDeepONet(basis, [6, 8, 4], *HOW), (f, x), "TripleCartesianProd")


@case("nn.MIONetCartesianProd", "data.QuadrupleCartesianProd")
def _(b: Bench) -> Any:
    f, x = functions()
    net = b.dde.nn.MIONetCartesianProd([6, 8, 8], [6, 8, 8], [1, 8, 8], *HOW)
    return aligned(b, net, (f, f * f, x), "QuadrupleCartesianProd")


@case("nn.PODMIONet")
def _(b: Bench) -> Any:
    f, x = functions()
    basis = np.stack([np.sin(k * x[:, 0]) for k in range(1, 9)], 1).astype("f4")
    net = b.dde.nn.PODMIONet(
        basis,
        [6, 8, 8],
        [6, 8, 8],
        dict.fromkeys(("branch1", "branch2", "merger", "trunk"), "tanh"),
        HOW[1],
    )
    return aligned(b, net, (f, f * f, x), "QuadrupleCartesianProd")


def pairs(b: Bench, inputs: Any, net: Any, kind: str) -> Any:
    y = (inputs[0].sum(1, keepdims=True) * inputs[-1]).astype("f4")
    batch = 20 if kind == "Triple" else None  # Quadruple's batches are of another form
    return b.fit(getattr(b.dde.data, kind)(inputs, y, inputs, y), net, batch_size=batch)


@case("nn.DeepONet", "data.Triple")
def _(b: Bench) -> Any:
    f, x = functions()
    net = b.dde.nn.DeepONet([6, 8, 8], [1, 8, 8], *HOW)
    return pairs(b, (np.repeat(f, 7, 0), np.tile(x, (12, 1))), net, "Triple")


@case("data.Quadruple")
def _(b: Bench) -> Any:
    f, x = functions()

    class Product(b.dde.nn.NN):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.parts = b.torch.nn.ModuleList([b.net(6, 4), b.net(6, 4), b.net(1, 4)])

        def forward(self, inputs: Any) -> Any:
            a, c, e = (part(x) for part, x in zip(self.parts, inputs, strict=True))
            return b.torch.sum(a * c * e, 1, keepdim=True)

    both = np.repeat(f, 7, 0)
    return pairs(b, (both, both**2, np.tile(x, (12, 1))), Product(), "Quadruple")


@case("nn.FNN", "data.PDE", "icbc.DirichletBC", "grad.hessian", "metrics.l2_relative_error")
def _(b: Bench) -> Any:
    net = b.dde.nn.FNN(
        [1, 8, 8, 1], ["tanh", "sin", "tanh"], "Glorot uniform", regularization=["l2", 1e-4]
    )
    net.apply_feature_transform(lambda x: b.torch.cat([x], 1) * 2)
    net.apply_output_transform(lambda x, u: (1 - x**2) * u)
    return b.fit(b.poisson(), net, metrics=None)


@case("nn.PFNN", "grad.jacobian", "icbc.PointSetBC")
def _(b: Bench) -> Any:
    slope = b.dde.grad.jacobian

    def residual(x: Any, y: Any) -> Any:
        return [slope(y, x, i=0) - y[:, 1:2], slope(y, x, i=1) + y[:, 0:1]]

    start = b.dde.icbc.PointSetBC(np.array([[-1.0], [0.5]]), np.array([[1.0], [0.0]]))
    net = b.dde.nn.PFNN([1, [6, 6], [6, 6], 2], "tanh", "Glorot uniform")
    return b.fit(b.poisson([start], residual), net, loss_weights=[1, 2, 3])


# Data -------------------------------------------------------------------------------------------------


@case("data.BatchSampler")
def _(b: Bench) -> Any:
    sampler = b.dde.data.BatchSampler(10, shuffle=True)
    return np.concatenate([sampler.get_next(4) for _ in range(5)])


@case("data.DataSet")
def _(b: Bench) -> Any:
    x = np.linspace(-1, 1, 9)[:, None]
    y = np.sin(x)
    data = b.dde.data.DataSet(X_train=x, y_train=y, X_test=x, y_test=y, standardize=True)
    return b.fit(data)


@case("data.Function")
def _(b: Bench) -> Any:
    return b.fit(b.dde.data.Function(b.line, np.sin, 8, 9, "pseudo", online=True))


@case("data.FuncConstraint")
def _(b: Bench) -> Any:
    def constraint(inputs: Any, outputs: Any, x: Any) -> Any:
        return outputs[:] - 1

    return b.fit(
        b.dde.data.FuncConstraint(b.line, constraint, lambda x: x**2, 8, np.array([[0.5]], "f4"), 9)
    )


@case("data.MfFunc")
def _(b: Bench) -> Any:
    data = b.dde.data.MfFunc(b.line, np.sin, np.cos, 8, 4, 9)
    return b.fit(data)


@case("data.MfDataSet")
def _(b: Bench) -> Any:
    x = np.linspace(-1, 1, 6)[:, None]
    data = b.dde.data.MfDataSet(x, x[:3], np.sin(x), np.cos(x[:3]), x[:3], np.cos(x[:3]))
    return b.fit(data)


@case("data.FPDE")
def _(b: Bench) -> Any:
    def residual(x: Any, y: Any, matrix: Any) -> Any:
        left = b.torch.matmul(b.torch.as_tensor(matrix), y)
        return left - 1

    data = b.dde.data.FPDE(
        b.line, residual, 1.5, b.edges(), [10], meshtype="static", num_domain=8, num_boundary=2
    )
    return b.fit(data)


@case("data.TimeFPDE", "geometry.GeometryXTime", "geometry.TimeDomain", "icbc.IC")
def _(b: Bench) -> Any:
    def residual(x: Any, y: Any, matrix: Any) -> Any:
        left = -b.torch.matmul(b.torch.as_tensor(matrix), y)
        return b.dde.grad.jacobian(y, x, i=0, j=1)[: left.shape[0]] - left

    domain = b.dde.geometry.GeometryXTime(
        b.dde.geometry.Interval(0, 1), b.dde.geometry.TimeDomain(0, 1)
    )
    edges = b.dde.icbc.DirichletBC(domain, lambda x: 0, lambda x, on: on)
    start = b.dde.icbc.IC(domain, lambda x: np.sin(x[:, :1]), lambda x, on: on)
    data = b.dde.data.TimeFPDE(
        domain, residual, 1.5, [edges, start], [5], meshtype="static", num_domain=9,
        num_boundary=1, num_initial=1,
    )  # fmt: skip
    return b.fit(data, b.net(2))


@case("data.IDE")
def _(b: Bench) -> Any:
    def residual(x: Any, y: Any, weights: Any) -> Any:
        known = b.torch.matmul(b.torch.as_tensor(weights), y)
        slope = b.dde.grad.jacobian(y, x)[: known.shape[0]]
        return slope + y[: known.shape[0]] - known

    time = b.dde.geometry.TimeDomain(0, 5)
    start = b.dde.icbc.IC(time, lambda x: 1, lambda x, on: on)
    return b.fit(
        b.dde.data.IDE(time, residual, start, 8, kernel=lambda x, s: np.exp(s - x), num_domain=6,
                       num_boundary=2, train_distribution="uniform")
    )  # fmt: skip


@case("data.TimePDE")
def _(b: Bench) -> Any:
    domain = b.dde.geometry.GeometryXTime(b.line, b.dde.geometry.TimeDomain(0, 1))
    start = b.dde.icbc.IC(domain, lambda x: np.sin(x[:, :1]), lambda x, on: on)

    def residual(x: Any, u: Any) -> Any:
        return b.dde.grad.jacobian(u, x, j=1) - b.dde.grad.hessian(u, x)

    return b.fit(b.dde.data.TimePDE(domain, residual, start, 20, 4, 6), b.net(2))


def pi_operator(b: Bench, name: str, net: Any, residual: Any = None, **options: Any) -> Any:
    def of_data(x: Any, y: Any, v: Any) -> Any:
        return b.dde.grad.jacobian(y, x, j=0) - v

    pde = b.dde.data.PDE(b.line, residual or of_data, b.edges(), 10, 2, num_test=10)
    space = b.dde.data.PowerSeries(N=3)
    places = np.linspace(-1, 1, 6)[:, None]
    data = getattr(options.pop("place", b.dde.data), name)(
        pde, space, places, 4, num_test=3, **options.pop("more", {})
    )
    return b.fit(data, net, **options)


@case("data.PDEOperator")
def _(b: Bench) -> Any:
    return pi_operator(b, "PDEOperator", b.dde.nn.DeepONet([6, 8, 8], [1, 8, 8], *HOW))


@case("data.PDEOperatorCartesianProd")
def _(b: Bench) -> Any:
    net = b.dde.nn.DeepONetCartesianProd([6, 8, 8], [1, 8, 8], *HOW)
    return pi_operator(b, "PDEOperatorCartesianProd", net, more={"batch_size": 2})


@case("zcs.Model", "zcs.PDEOperatorCartesianProd", "zcs.LazyGrad")
def _(b: Bench) -> Any:
    def residual(zcs: Any, u: Any, v: Any) -> Any:
        return b.dde.zcs.LazyGrad(zcs, u).compute((1,)) - v

    net = b.dde.nn.DeepONetCartesianProd([6, 8, 8], [1, 8, 8], *HOW)
    return pi_operator(
        b, "PDEOperatorCartesianProd", net, residual, place=b.dde.zcs, kind=b.dde.zcs.Model
    )


def space(name: str, **options: Any) -> None:
    @case(f"data.{name}")
    def _(b: Bench) -> Any:
        made = getattr(b.dde.data, name)(**options)
        features = made.random(2)
        x = np.linspace(0, 1, 5)
        if name == "GRF2D":
            x = np.stack([x, x[::-1]], 1)
        elif name not in ("GRF", "GRF_KL"):
            x = x[:, None]
        return np.concatenate([np.ravel(features), np.ravel(made.eval_batch(features, x))])


for kind, given in {
    "PowerSeries": {}, "Chebyshev": {}, "GRF": {"N": 20}, "GRF_KL": {"N": 20}, "GRF2D": {"N": 6},
}.items():  # fmt: skip
    space(kind, **given)


@case("data.wasserstein2")
def _(b: Bench) -> Any:
    spaces = [b.dde.data.GRF(N=20, length_scale=s) for s in (0.2, 0.5)]
    return b.dde.data.wasserstein2(*spaces)


# Conditions -------------------------------------------------------------------------------------------


def condition(name: str, make: Callable[[Bench], Any]) -> None:
    @case(f"icbc.{name}")
    def _(b: Bench) -> Any:
        return b.fit(b.poisson([make(b)]))


def at_right(x: Any, on: Any) -> Any:
    return on and x[0] > 0


condition("NeumannBC", lambda b: b.dde.icbc.NeumannBC(b.line, lambda x: 1, at_right))
condition("RobinBC", lambda b: b.dde.icbc.RobinBC(b.line, lambda x, u: 2 * u, at_right))
condition("PeriodicBC", lambda b: b.dde.icbc.PeriodicBC(b.line, 0, at_right, derivative_order=1))
condition(
    "OperatorBC",
    lambda b: b.dde.icbc.OperatorBC(
        b.line, lambda x, u, _: b.dde.grad.jacobian(u, x) - 1, at_right
    ),
)
condition(
    "PointSetOperatorBC",
    lambda b: b.dde.icbc.PointSetOperatorBC(
        np.array([[0.2], [0.4]]), np.array([[1.0], [2.0]]),
        lambda x, u, _: b.dde.grad.jacobian(u, x)),
)  # fmt: skip


@case("icbc.Interface2DBC")
def _(b: Bench) -> Any:
    box = b.dde.geometry.Rectangle([0, 0], [1, 1])
    left = lambda x, on: on and np.isclose(x[0], 0)  # noqa: E731
    right = lambda x, on: on and np.isclose(x[0], 1)  # noqa: E731
    both = b.dde.icbc.Interface2DBC(box, lambda x: 0, left, right)

    def residual(x: Any, u: Any) -> Any:
        return b.dde.grad.hessian(u, x, component=0, i=0, j=1)

    return b.fit(b.dde.data.PDE(box, residual, both, 12, 40), b.net(2, 2))


# Geometries -------------------------------------------------------------------------------------------

GEOMETRIES: dict[str, Callable[[Any], Any]] = {
    "Interval": lambda g: g.Interval(-1, 2),
    "Rectangle": lambda g: g.Rectangle([0, 0], [1, 2]),
    "Disk": lambda g: g.Disk([0, 0], 1),
    "Ellipse": lambda g: g.Ellipse([0, 0], 2, 1),
    "Polygon": lambda g: g.Polygon([[0, 0], [2, 0], [2, 1], [1, 2], [0, 1]]),
    "StarShaped": lambda g: g.StarShaped([0, 0], 1, [0.1, 0.1], [0.2, 0.1]),
    "Triangle": lambda g: g.Triangle([0, 0], [1, 0], [0, 1]),
    "Cuboid": lambda g: g.Cuboid([0, 0, 0], [1, 1, 2]),
    "Sphere": lambda g: g.Sphere([0, 0, 0], 1),
    "Hypercube": lambda g: g.Hypercube([0] * 4, [1] * 4),
    "Hypersphere": lambda g: g.Hypersphere([0] * 4, 1),
    "PointCloud": lambda g: g.PointCloud(
        np.random.default_rng(0).uniform(size=(30, 2)), np.array([[0.0, 0], [1, 1]]),
        boundary_normals=np.array([[-1.0, 0], [1, 0]])),
    "CSGUnion": lambda g: g.Rectangle([0, 0], [1, 1]) | g.Disk([1, 1], 0.5),
    "CSGDifference": lambda g: g.Rectangle([0, 0], [1, 1]) - g.Disk([1, 1], 0.5),
    "CSGIntersection": lambda g: g.Rectangle([0, 0], [1, 1]) & g.Disk([1, 1], 0.5),
}  # fmt: skip


def geometry(name: str, make: Callable[[Any], Any]) -> None:
    @case(f"geometry.{name}")
    def _(b: Bench) -> Any:
        """Laplace's equation there, with a Neumann condition where DeepXDE has normals; in float64, as some
        geometries give points of that alone."""
        b.dde.config.set_default_float("float64")
        try:
            place = make(b.dde.geometry)
            n = place.dim

            def residual(x: Any, u: Any) -> Any:
                return sum(b.dde.grad.hessian(u, x, i=i, j=i) for i in range(n))

            normals = name not in ("StarShaped", "Ellipse")
            kind = b.dde.icbc.NeumannBC if normals else b.dde.icbc.DirichletBC
            edge = kind(place, lambda x: 1, lambda x, on: on)
            return b.fit(b.dde.data.PDE(place, residual, edge, 10, 2), b.net(n))
        finally:
            b.dde.config.set_default_float("float32")


for title, maker in GEOMETRIES.items():
    geometry(title, maker)


@case("geometry.sample")
def _(b: Bench) -> Any:
    kinds = ("pseudo", "LHS", "Halton", "Hammersley", "Sobol")
    return np.concatenate([np.ravel(b.dde.geometry.sample(4, 2, kind)) for kind in kinds])


# Callbacks --------------------------------------------------------------------------------------------


def callback(name: str, run: Callable[[Bench], Any]) -> None:
    CASES[f"callbacks.{name}"] = run


def watched(b: Bench, make: Callable[[], Any], read: Callable[[Any], Any], **options: Any) -> Any:
    found = make()
    losses = b.fit(options.pop("data", None) or b.poisson(), callbacks=[found], **options)
    return np.concatenate([losses, np.ravel(read(found))])


POINTS = np.linspace(-1, 1, 5)[:, None].astype("f4")
callback(
    "EarlyStopping",
    lambda b: watched(
        b,
        lambda: b.dde.callbacks.EarlyStopping(min_delta=1e9, patience=2),
        lambda c: c.stopped_epoch,
    ),
)
callback("Timer", lambda b: watched(b, lambda: b.dde.callbacks.Timer(60), lambda c: c.threshold))
callback(
    "ModelCheckpoint",
    lambda b: watched(
        b,
        lambda: b.dde.callbacks.ModelCheckpoint(
            str(b.folder / "kept"), save_better_only=True, period=5
        ),
        lambda c: len(list(b.folder.glob("kept*"))),
    ),
)
callback(
    "FirstDerivative",
    lambda b: watched(b, lambda: b.dde.callbacks.FirstDerivative(POINTS), lambda c: c.get_value()),
)
callback(
    "OperatorPredictor",
    lambda b: watched(
        b, lambda: b.dde.callbacks.OperatorPredictor(POINTS, b.residual), lambda c: c.get_value()
    ),
)
callback(
    "PDEPointResampler",
    lambda b: watched(
        b, lambda: b.dde.callbacks.PDEPointResampler(1, True, True), lambda c: c.num_bcs_initial
    ),
)
callback(
    "MovieDumper",
    lambda b: watched(
        b,
        lambda: b.dde.callbacks.MovieDumper(
            str(b.folder / "movie"), [-1], [1], 5, save_spectrum=True
        ),
        lambda c: c.y[-1],
    ),
)
callback(
    "DropoutUncertainty",
    lambda b: watched(
        b, lambda: b.dde.callbacks.DropoutUncertainty(5), lambda c: c.model.train_state.y_std_test
    ),
)


@case("callbacks.VariableValue", "backend.Variable")
def _(b: Bench) -> Any:
    factor = b.dde.Variable(0.5)
    data = b.poisson(residual=lambda x, u: b.dde.grad.hessian(u, x) - factor)
    return watched(b, lambda: b.dde.callbacks.VariableValue(factor), lambda c: c.get_value(),
                   data=data, external_trainable_variables=factor)  # fmt: skip


# Optimisers, losses, metrics, settings ----------------------------------------------------------------


@case("optimizers.get", "optimizers.is_external_optimizer")
def _(b: Bench) -> Any:
    found = [b.fit(b.poisson(), optimizer=name) for name in ("adam", "sgd", "rmsprop")]
    regular = b.dde.nn.FNN([1, 8, 8, 1], "tanh", "Glorot uniform", regularization=["l2", 1e-2])
    found.append(b.fit(b.poisson(), regular, optimizer="adamw"))
    decays = [("step", 2, 0.5), ("cosine", 4, 0.0), ("inverse time", 2, 0.5), ("exponential", 0.5),
              ("lambda", lambda n: 1 / (1 + n))]  # fmt: skip
    found += [b.fit(b.poisson(), decay=decay) for decay in decays]
    given = b.net()
    own = b.torch.optim.Adam(given.parameters(), lr=1e-2)
    found.append(b.fit(b.poisson(), given, optimizer=own))
    return np.concatenate(found)


@case("optimizers.set_LBFGS_options")
def _(b: Bench) -> Any:
    b.dde.optimizers.set_LBFGS_options(maxiter=5)
    b.dde.optimizers.config.LBFGS_options["iter_per_step"] = 5
    try:
        model = b.model(b.poisson(), optimizer="L-BFGS", lr=None)
        model.train(display_every=1)
        return b.losses(model)[:2]  # before; the searches for a step differ
    finally:
        b.dde.optimizers.set_LBFGS_options()
        b.dde.optimizers.config.LBFGS_options["iter_per_step"] = 1000


@case("optimizers.set_NNCG_options")
def _(b: Bench) -> Any:
    b.dde.optimizers.set_NNCG_options(mu=20.0, cgtol=1e-5, rank=10)
    try:
        model = b.model(b.poisson(), optimizer="NNCG", lr=None)
        model.train(iterations=3, display_every=3)
        return b.losses(model)
    finally:
        b.dde.optimizers.set_NNCG_options()


def loss(name: str, given: str) -> None:
    @case(f"losses.{name}")
    def _(b: Bench) -> Any:
        x = np.linspace(-1, 1, 6).reshape(3, 2).astype("f4")
        y = np.exp(x)
        if name == "softmax_cross_entropy":
            y = np.eye(2, dtype="f4")[[0, 1, 1]]
        data = b.dde.data.DataSet(X_train=x, y_train=y, X_test=x, y_test=y)
        return b.fit(data, b.net(2, 2), loss=given)


for title, short in {
    "mean_absolute_error": "MAE", "mean_squared_error": "MSE", "zero": "zero",
    "mean_absolute_percentage_error": "MAPE", "mean_l2_relative_error": "mean l2 relative error",
    "softmax_cross_entropy": "softmax cross entropy",
}.items():  # fmt: skip
    loss(title, short)

METRICS = """accuracy l2_relative_error nanl2_relative_error mean_l2_relative_error mean_squared_error
    mean_absolute_percentage_error max_absolute_percentage_error absolute_percentage_error_std"""


def metric(name: str) -> None:
    @case(f"metrics.{name}")
    def _(b: Bench) -> Any:
        x = np.linspace(-1, 1, 6).reshape(3, 2)
        y = np.exp(x)
        data = b.dde.data.DataSet(X_train=x, y_train=y, X_test=x, y_test=y)
        short = name.replace("mean_squared_error", "MSE").replace(
            "mean_absolute_percentage_error", "MAPE")  # fmt: skip
        short = {"max_absolute_percentage_error": "max APE", "absolute_percentage_error_std": "APE SD",
                 "accuracy": "accuracy"}.get(name, short.replace("_", " "))  # fmt: skip
        model = b.model(data, b.net(2, 2), metrics=[short])
        model.train(iterations=2, display_every=2)
        return np.ravel(model.losshistory.metrics_test)


for title in METRICS.split():
    metric(title)


@case("config.set_default_float", "config.default_float")
def _(b: Bench) -> Any:
    found = []
    for name in ("float64", "float32"):
        b.dde.config.set_default_float(name)
        found.append(b.fit(b.poisson()))
        assert b.dde.config.default_float() == name
    return np.concatenate(found)


@case("config.set_default_autodiff")
def _(b: Bench) -> Any:
    b.dde.config.set_default_autodiff("forward")
    try:
        return b.fit(b.poisson(residual=lambda x, u: b.dde.grad.hessian(u, x)[0] - 1))
    finally:
        b.dde.config.set_default_autodiff("reverse")


@case("config.set_random_seed")
def _(b: Bench) -> Any:
    b.dde.config.set_random_seed(5)
    return b.line.random_points(4)


@case("config.set_parallel_scaling")
def _(b: Bench) -> Any:
    b.dde.config.set_parallel_scaling("weak")
    return b.fit(b.poisson())


@case("config.enable_xla_jit", "config.disable_xla_jit")
def _(b: Bench) -> Any:
    b.dde.config.disable_xla_jit()
    return b.dde.config.enable_xla_jit()  # PyTorch refuses


# DeepXDE's functions of tensors -----------------------------------------------------------------------

UNARY = "abs cos elu exp gelu lgamma relu selu sigmoid silu sin square tanh".split()
REDUCED = "max mean min prod sum".split()
TENSORS: dict[str, Callable[[Any, Any], Any]] = {
    **{n: lambda k, x, n=n: getattr(k, n)(x) for n in UNARY},
    **{n: lambda k, x, n=n: getattr(k, n)(x, 1, True) for n in REDUCED},
    **{f"reduce_{n}": lambda k, x, n=n: getattr(k, f"reduce_{n}")(x) for n in REDUCED},
    "as_tensor": lambda k, x: k.as_tensor([[1.5, 2.0]]) * x[:, :2],
    "from_numpy": lambda k, x: k.from_numpy(np.ones((2, 3), "f4")) + x,
    "to_numpy": lambda k, x: k.as_tensor(k.to_numpy(x)),
    "concat": lambda k, x: k.concat([x, x], 1),
    "stack": lambda k, x: k.stack([x, x], 0),
    "expand_dims": lambda k, x: k.expand_dims(x, 1),
    "reverse": lambda k, x: k.reverse(x, [0]),
    "roll": lambda k, x: k.roll(x, 1, 1),
    "reshape": lambda k, x: k.reshape(x, (3, 2)),
    "transpose": lambda k, x: k.transpose(x, (1, 0)),
    "matmul": lambda k, x: k.matmul(x, k.transpose(x, (1, 0))),
    "minimum": lambda k, x: k.minimum(x, x * x),
    "norm": lambda k, x: k.norm(x, axis=1),
    "pow": lambda k, x: k.pow(k.abs(x), 1.5),
    "zeros": lambda k, x: k.zeros((2, 3), k.float32) + x,
    "zeros_like": lambda k, x: k.zeros_like(x) + x,
    "shape": lambda k, x: k.as_tensor(np.array([float(n) for n in k.shape(x)])),
    "size": lambda k, x: k.as_tensor(np.array([float(k.size(x)), float(k.ndim(x))])),
    "is_tensor": lambda k, x: k.as_tensor(np.array([float(k.is_tensor(x)), float(k.is_tensor(1))])),
    "sparse_tensor": lambda k, x: k.sparse_dense_matmul(
        k.sparse_tensor([(0, 1), (1, 0), (2, 1)], [2.0, 3.0, -1.0], (3, 2)), x),
}  # fmt: skip
TENSORS |= {"ndim": TENSORS["size"], "sparse_dense_matmul": TENSORS["sparse_tensor"]}


def of_tensors(name: str, function: Callable[[Any, Any], Any]) -> None:
    @case(f"backend.{name}")
    def _(b: Bench) -> Any:
        k = b.dde.backend
        x = k.as_tensor(np.array([[0.5, -1.0, 2.0], [1.5, 0.25, -0.5]], "f4"))
        return np.asarray(k.to_numpy(function(k, x)))


for title, made in TENSORS.items():
    of_tensors(title, made)


@case("backend.is_gpu_available")
def _(b: Bench) -> Any:
    return float(b.dde.backend.is_gpu_available())


@case("backend.l1_regularization", "backend.l2_regularization", "backend.l1_l2_regularization")
def _(b: Bench) -> Any:
    return b.dde.backend.l2_regularization(0.1)  # PyTorch's backend has none
