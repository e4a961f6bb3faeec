"""The same equations as bench/solve.py, solved by others: DeepXDE on PyTorch, with the settings of its own
examples, and a twin of gradcell's Gauss-Newton method in JAX. Each run is a process of its own on one
thread; the processor's time counts. `bench/solve.py --methods deepxde jax` calls this. With SOLVE_PRINT=1
runs show how far they are; one of DeepXDE that is told to end (SIGTERM) gives what it had reached."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import gradcell as gc
from solve_problems import PI, PROBLEMS, RE, Problem, kovasznay_exact, relative

PEERS = ("deepxde", "jax")
#: Where DeepXDE's points have the time last, and ours first.
TIME_LAST = ("heat", "burgers", "allen-cahn")
Watch = Callable[[], bool]


def measured(peer: str, problem: str, seed: int, seconds: float | None) -> dict[str, Any] | None:
    """A run in a process of its own, or None where the peer has not this problem."""
    if problem not in (DEEPXDE if peer == "deepxde" else TWINS):
        return None
    command = [sys.executable, __file__, peer, problem, str(seed), str(seconds or 1e9)]
    names = ("OMP", "OPENBLAS", "MKL", "GRADCELL")
    one = {f"{name}_NUM_THREADS": "1" for name in names} | {"DDE_BACKEND": "pytorch"}
    out = subprocess.run(command, env={**os.environ, **one}, stdout=subprocess.PIPE, text=True)
    if out.returncode:
        raise RuntimeError(f"{peer}, {problem}, seed {seed} failed, as said above")
    return json.loads(out.stdout.splitlines()[-1])  # type: ignore[no-any-return]


# DeepXDE -------------------------------------------------------------------------------------------------


class Setting:
    """An equation as DeepXDE's user writes it. layers, points (inside, on the border, at the start), Adam's
    steps and whether L-BFGS follows: those of the example that is named."""

    def __init__(
        self, example: str, layers: list[int], points: tuple[int, int, int], adam: int,
        data: Callable[[Any, Any, tuple[int, int, int]], Any], lbfgs: bool = True,
        activation: str = "tanh", ansatz: Any = None, weights: list[float] | None = None,
    ) -> None:  # fmt: skip
        self.example, self.layers, self.points, self.adam = example, layers, points, adam
        self.data, self.lbfgs, self.activation = data, lbfgs, activation
        self.ansatz, self.weights = ansatz, weights


def _poisson(dde: Any, torch: Any, points: tuple[int, int, int]) -> Any:
    box = dde.geometry.Rectangle([0, 0], [1, 1])

    def equation(x: Any, u: Any) -> Any:
        second = dde.grad.hessian(u, x, i=0, j=0) + dde.grad.hessian(u, x, i=1, j=1)
        return second + 2 * PI**2 * torch.sin(PI * x[:, :1]) * torch.sin(PI * x[:, 1:])

    border = dde.icbc.DirichletBC(box, lambda x: 0, lambda x, on: on)
    return dde.data.PDE(box, equation, border, num_domain=points[0], num_boundary=points[1])


def _helmholtz(dde: Any, torch: Any, points: tuple[int, int, int]) -> Any:
    box, k = dde.geometry.Rectangle([-1, -1], [1, 1]), 4 * PI

    def equation(x: Any, u: Any) -> Any:
        second = dde.grad.hessian(u, x, i=0, j=0) + dde.grad.hessian(u, x, i=1, j=1)
        q = (1 - 2 * k**2) * torch.sin(k * x[:, :1]) * torch.sin(k * x[:, 1:])
        return second + u - q

    return dde.data.PDE(box, equation, [], num_domain=points[0], num_boundary=points[1])


def _in_time(
    dde: Any, low: float, high: float, points: tuple[int, int, int], equation: Any, start: Any
) -> Any:
    """Points (x, t) for t from 0 to 1, with 0 at both ends; start: None where it holds by construction."""
    line = dde.geometry.Interval(low, high)
    space = dde.geometry.GeometryXTime(line, dde.geometry.TimeDomain(0, 1))
    conditions = []
    if start is not None:
        conditions = [
            dde.icbc.DirichletBC(space, lambda x: 0, lambda _, on: on),
            dde.icbc.IC(space, start, lambda _, initial: initial),
        ]
    return dde.data.TimePDE(
        space, equation, conditions,
        num_domain=points[0], num_boundary=points[1], num_initial=points[2],
    )  # fmt: skip


def _heat(dde: Any, torch: Any, points: tuple[int, int, int]) -> Any:
    def equation(x: Any, u: Any) -> Any:
        return dde.grad.jacobian(u, x, i=0, j=1) - dde.grad.hessian(u, x, i=0, j=0) / PI**2

    def start(x: Any) -> Any:
        return np.sin(PI * x[:, :1]) + np.sin(2 * PI * x[:, :1]) / 2

    return _in_time(dde, 0, 1, points, equation, start)


def _burgers(dde: Any, torch: Any, points: tuple[int, int, int]) -> Any:
    def equation(x: Any, u: Any) -> Any:
        u_x, u_t = dde.grad.jacobian(u, x, i=0, j=0), dde.grad.jacobian(u, x, i=0, j=1)
        return u_t + u * u_x - 0.01 / PI * dde.grad.hessian(u, x, i=0, j=0)

    return _in_time(dde, -1, 1, points, equation, lambda x: -np.sin(PI * x[:, :1]))


def _allen_cahn(dde: Any, torch: Any, points: tuple[int, int, int]) -> Any:
    def equation(x: Any, u: Any) -> Any:
        u_t, u_xx = dde.grad.jacobian(u, x, i=0, j=1), dde.grad.hessian(u, x, i=0, j=0)
        return u_t - 1e-4 * u_xx - 5 * (u - u**3)

    return _in_time(dde, -1, 1, points, equation, None)


def _kovasznay(dde: Any, torch: Any, points: tuple[int, int, int]) -> Any:
    box = dde.geometry.Rectangle([-0.5, -0.5], [1, 1.5])

    def equation(x: Any, f: Any) -> Any:
        u, v = f[:, :1], f[:, 1:2]
        d = [[dde.grad.jacobian(f, x, i=i, j=j) for j in range(2)] for i in range(3)]

        def momentum(k: int) -> Any:
            second = sum(dde.grad.hessian(f, x, component=k, i=j, j=j) for j in range(2))
            return u * d[k][0] + v * d[k][1] + d[2][k] - second / RE

        return [momentum(0), momentum(1), d[0][0] + d[1][1]]

    def border(k: int) -> Any:
        return dde.icbc.DirichletBC(
            box, lambda x: kovasznay_exact(x)[:, k : k + 1], lambda _, on: on, component=k
        )

    conditions = [border(k) for k in range(3)]
    return dde.data.PDE(box, equation, conditions, num_domain=points[0], num_boundary=points[1])


DEEPXDE = {
    "poisson": Setting("Poisson_Lshape", [2, 50, 50, 50, 50, 1], (1200, 120, 0), 50_000, _poisson),
    "heat": Setting("heat", [2, 20, 20, 20, 1], (2540, 80, 160), 20_000, _heat),
    "kovasznay": Setting(
        "Kovasznay_flow", [2, 50, 50, 50, 50, 3], (2601, 400, 0), 30_000, _kovasznay
    ),
    "helmholtz-4": Setting(
        "Helmholtz_Dirichlet_2d_HPO", [2, 150, 150, 150, 1], (1600, 160, 0), 5_000, _helmholtz, False,
        "sin", lambda x, y: (1 - x[:, :1] ** 2) * (1 - x[:, 1:] ** 2) * y,
    ),
    "burgers": Setting("Burgers", [2, 20, 20, 20, 1], (2540, 80, 160), 15_000, _burgers),
    "allen-cahn": Setting(
        "Allen_Cahn", [2, 20, 20, 20, 1], (8000, 400, 800), 40_000, _allen_cahn,
        ansatz=lambda x, y: x[:, :1] ** 2 * _cos(PI * x[:, :1]) + x[:, 1:] * (1 - x[:, :1] ** 2) * y,
    ),
}  # fmt: skip


def _cos(x: Any) -> Any:
    import torch

    return torch.cos(x)


def deepxde(name: str, seed: int, course: Callable[[Problem], Any]) -> tuple[int, Any]:
    with contextlib.redirect_stdout(io.StringIO()):
        import deepxde as dde
        import torch

        torch.set_num_threads(1)
        dde.config.set_random_seed(seed)
        setting = DEEPXDE[name]
        data = setting.data(dde, torch, setting.points)
        net = dde.nn.FNN(setting.layers, setting.activation, "Glorot normal")
        if setting.ansatz:
            net.apply_output_transform(setting.ansatz)
        model = dde.Model(data, net)
        problem = PROBLEMS[name](seed)
        points, want = problem.test
        if name in TIME_LAST:
            points = points[:, ::-1].copy()
        problem.error = lambda: relative(model.predict(points)[:, : want.shape[1]], want)
        problem.seconds = float("inf")
        seen = course(problem)

        class Seen(dde.callbacks.Callback):  # type: ignore[misc]
            def on_epoch_end(self) -> None:
                known = len(seen.points)
                model.stop_training = seen.watch()
                if os.environ.get("SOLVE_PRINT") and len(seen.points) > known:
                    print(model.train_state.step, *seen.points[-1], file=sys.stderr, flush=True)

        model.compile("adam", lr=1e-3)
        model.train(iterations=setting.adam, display_every=10**9, callbacks=[Seen()])
        if setting.lbfgs and not model.stop_training:
            model.compile("L-BFGS")
            model.train(display_every=10**9, callbacks=[Seen()])
        seen.next = 0.0
        seen.watch()
    return sum(p.numel() for p in net.parameters()), seen


# A twin in JAX -------------------------------------------------------------------------------------------


def _twin_network(parameters: Any, x: Any) -> Any:
    import jax.numpy as jnp

    for weight, bias in parameters[:-1]:
        x = jnp.tanh(weight @ x + bias)
    weight, bias = parameters[-1]
    return weight @ x + bias


def _along(f: Any, x: Any, k: int) -> tuple[Any, Any]:
    """The first and second derivative of f by coordinate k."""
    import jax
    import jax.numpy as jnp

    unit = jnp.zeros_like(x).at[k].set(1)

    def first(x: Any) -> Any:
        return jax.jvp(f, (x,), (unit,))[1]

    return jax.jvp(first, (x,), (unit,))


def _twin_value(parameters: Any, x: Any, wanted: Any = 0.0) -> Any:
    return _twin_network(parameters, x) - wanted


def _twin_laplacian(of: Any) -> Any:
    """The residual functions of laplacian u + of(u, source), and of u on the border."""

    def inside(parameters: Any, x: Any, f: Any) -> Any:
        u = lambda x: _twin_network(parameters, x)  # noqa: E731
        return sum(_along(u, x, k)[1] for k in range(len(x))) + of(u(x), f)

    return [inside, _twin_value]


def _twin_heat() -> Any:
    def inside(parameters: Any, x: Any) -> Any:
        u = lambda x: _twin_network(parameters, x)  # noqa: E731
        return _along(u, x, 0)[0] - _along(u, x, 1)[1] / PI**2

    return [inside, _twin_value]


def _twin_wave() -> Any:
    import jax.numpy as jnp

    def inside(parameters: Any, x: Any) -> Any:
        def u(x: Any) -> Any:
            t, y = x
            start = jnp.sin(PI * y) + jnp.sin(3 * PI * y) / 2
            return start + t * t * y * (1 - y) * _twin_network(parameters, x)

        return _along(u, x, 0)[1] - 4 * _along(u, x, 1)[1]

    return [inside]


def _twin_burgers() -> Any:
    import jax.numpy as jnp

    def inside(parameters: Any, x: Any) -> Any:
        def u(x: Any) -> Any:
            ansatz = x[0] * (1 - x[1] ** 2) * _twin_network(parameters, x)
            return -jnp.sin(PI * x[1]) + ansatz

        (u_t, _), (u_x, u_xx) = _along(u, x, 0), _along(u, x, 1)
        return u_t + u(x) * u_x - 0.01 / PI * u_xx

    return [inside]


TWINS: dict[str, Callable[[], Any]] = {
    "poisson": lambda: _twin_laplacian(lambda u, f: f),
    "helmholtz-1": lambda: _twin_laplacian(lambda u, q: u - q),
    "helmholtz-4": lambda: _twin_laplacian(lambda u, q: u - q),
    "poisson-10": lambda: _twin_laplacian(lambda u, f: -f),
    "heat": _twin_heat,
    "wave": _twin_wave,
    "burgers": _twin_burgers,
}


def jax_twin(name: str, seed: int, course: Callable[[Problem], Any]) -> tuple[int, Any]:
    """The steps of gradcell.GaussNewton from the same weights at the same points."""
    import jax
    import jax.numpy as jnp
    from jax.flatten_util import ravel_pytree

    from gradcell.solvers.gauss_newton import STEPS, _growth

    jax.config.update("jax_enable_x64", True)
    problem = PROBLEMS[name](seed)
    arrays = [p.asnumpy() for p in problem.parameters]
    theta, unravel = ravel_pytree(
        [(jnp.array(w), jnp.array(b)) for w, b in zip(arrays[::2], arrays[1::2], strict=True)]
    )
    functions = TWINS[name]()
    scales = problem.weights

    def per_block(take: Any, points: Any) -> Any:
        """Rows of all functions, each weighted so that the sum of squares is the loss."""
        rows = []
        for f, p, w in zip(functions, points, scales, strict=True):

            def at(*x: Any, f: Any = f) -> Any:
                return take(lambda theta: f(unravel(theta), *x)[0])

            rows.append(jax.vmap(at)(*p) * (w / len(p[0])) ** 0.5)
        return jnp.concatenate(rows)

    def residual(theta: Any, points: Any) -> Any:
        return per_block(lambda f: f(theta), points)

    @jax.jit
    def step(theta: Any, damping: Any, points: Any) -> Any:
        r = residual(theta, points)
        jacobian = per_block(lambda f: jax.grad(f)(theta), points)
        matrix = jacobian.T @ jacobian
        largest = jnp.max(jnp.diag(matrix))
        begun = jnp.where(damping > 0, damping, largest * 1e-3)
        used = jnp.maximum(begun, largest * 16 * np.finfo(np.float64).eps)
        factor = jax.scipy.linalg.cho_factor(matrix + used * jnp.eye(len(theta)))

        def least_squares(right: Any) -> Any:
            return jax.scipy.linalg.cho_solve(factor, jacobian.T @ right)

        s = -least_squares(r)
        moved = lambda theta: jax.jvp(lambda t: residual(t, points), (theta,), (s,))[1]  # noqa: E731
        c = -0.5 * least_squares(jax.jvp(moved, (theta,), (s,))[1])
        grid = jnp.array(STEPS)
        there = theta + grid[:, None] * s + grid[:, None] ** 2 * c
        losses = jnp.sum(jax.vmap(lambda t: residual(t, points))(there) ** 2, 1)
        losses = jnp.where(jnp.isnan(losses), jnp.inf, losses)
        before, best = jnp.sum(r**2), jnp.argmin(losses)
        lower = losses[best] < before
        taken = jnp.where(lower, grid[best], 0.0)
        return jnp.where(lower, there[best], theta), taken, used, jnp.minimum(losses[best], before)

    random = np.random.default_rng(seed)

    def fresh() -> Any:
        return [tuple(np.asarray(a.asnumpy()) for a in p) for p in problem.points(random)]

    points, damping, count = fresh(), 0.0, 0
    seen = course(problem)
    while not seen.watch():
        if problem.every and count % problem.every == 0 and count:
            points = fresh()
        theta, taken, used, loss = step(theta, damping, points)
        damping, count = float(used) * _growth(float(taken)), count + 1
        for parameter, array in zip(
            problem.parameters, jax.tree_util.tree_leaves(unravel(theta)), strict=True
        ):
            parameter.set_data(gc.Tensor(np.asarray(array)))
        if os.environ.get("SOLVE_PRINT"):
            print(count, float(loss), damping, file=sys.stderr)
    return len(theta), seen


# A run ---------------------------------------------------------------------------------------------------


def main() -> None:
    from solve import Course

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("peer", choices=PEERS)
    parser.add_argument("problem", choices=list(PROBLEMS))
    parser.add_argument("seed", type=int)
    parser.add_argument("seconds", type=float)
    given = parser.parse_args()
    if given.peer == "jax":  # one CPU for all that it starts: XLA has no other way to one thread
        os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[-1]})

    def course(problem: Problem) -> Any:
        problem.seconds = min(problem.seconds, given.seconds)
        # What a run that is told to end had reached counts.
        signal.signal(signal.SIGTERM, lambda *_: setattr(problem, "seconds", 0.0))
        return Course(problem, full=given.peer == "deepxde")

    find = deepxde if given.peer == "deepxde" else jax_twin
    size, seen = find(given.problem, given.seed, course)
    target = PROBLEMS[given.problem](given.seed).target
    print(json.dumps(seen.record(given.problem, given.peer, given.seed, size, target)))


if __name__ == "__main__":
    main()
