"""Someone from JAX: trees of weights, keys, vmap of networks, scan, hessians of dicts, and no classes."""

import pickle
from dataclasses import dataclass

import numpy as np

import gradcell as gc
from gradcell import nn, ops, random


def init(key, sizes=(1, 16, 16, 1)):
    layers = []
    for k, n, m in zip(random.split(key, len(sizes) - 1), sizes, sizes[1:]):
        layers.append({"w": random.normal(k, (n, m)) / np.sqrt(n), "b": ops.zeros(m)})
    return layers


def net(params, x):
    for layer in params[:-1]:
        x = ops.tanh(x @ layer["w"] + layer["b"])
    return x @ params[-1]["w"] + params[-1]["b"]


def loss(params, x):
    return ops.square(net(params, x) - ops.sin(3 * x)).mean()


x = np.linspace(-1, 1, 64, dtype=np.float32)[:, None]
optimizer = nn.Adam.functional(learning_rate=1e-2)


@gc.jit
def step(params, state, x):
    value, grads = gc.value_and_grad(loss)(params, x)
    params, state = optimizer.update(params, state, grads)
    return params, state, value


params = init(random.key(0))
state = optimizer.init(params)
for i in range(1000):
    params, state, value = step(params, state, x)
print("one network", float(value) < 1e-3)

# An ensemble: as many networks as keys
many = gc.vmap(init)(random.split(random.key(1), 8))
states = gc.vmap(optimizer.init)(many)
steps = gc.jit(gc.vmap(step, in_axes=(0, 0, None)))
for i in range(1000):
    many, states, values = steps(many, states, x)
print("eight networks", values.shape, float(values.max()) < 1e-2)

# Derivatives of trees
small = init(random.key(2), (1, 3, 1))
along = gc.tree.map(ops.ones_like, small)
value, slope = gc.jvp(loss, (small, x), (along, ops.zeros_like(gc.Tensor(x))))
whole = gc.hessian(lambda p: loss(p, x))(small)
print("hessian of a tree", whole[0]["w"][1]["b"].shape)
print("jacobian", gc.jacrev(net)(small, x)[0]["w"].shape)


@dataclass
class Oscillator:
    x: gc.Tensor
    v: gc.Tensor


def leap(s, _):
    v = s.v - 0.01 * s.x
    s = Oscillator(s.x + 0.01 * v, v)
    return s, s.x


end, path = ops.scan(leap, Oscillator(gc.Tensor(1.0), gc.Tensor(0.0)), np.zeros(314))
print("half a period", abs(float(end.x) + 1) < 1e-3, path.shape)
energy = gc.grad(lambda s: 0.5 * (s.x**2 + s.v**2))(end)
print("gradient of a dataclass", type(energy).__name__)


@gc.custom_jvp
def log1pexp(x):
    return ops.log(1 + ops.exp(x))


log1pexp.defjvp(
    lambda primals, tangents: (log1pexp(*primals), tangents[0] * ops.sigmoid(primals[0]))
)
print("own rule", float(gc.grad(log1pexp)(100.0)))
sizes = gc.vmap(lambda a: ops.cond(a > 0, lambda a: a, lambda a: -a, a))(np.array([-1.0, 2.0]))
print("cond", sizes.asnumpy().tolist())
checkpointed = gc.grad(lambda p: gc.recompute(loss, p, x))(params)
plain, aux = gc.vjp(lambda p: (loss(p, x), "aux"), params, has_aux=True)[::2]
print(
    "aux",
    aux,
    np.allclose(checkpointed[0]["w"].asnumpy(), gc.grad(loss)(params, x)[0]["w"].asnumpy()),
)
print("pickled", float(loss(pickle.loads(pickle.dumps(params)), x)) == float(loss(params, x)))
