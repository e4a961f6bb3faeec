"""The optimisers' rules in NumPy and float64, written from the papers, one parameter at a time.

`run(name, start, gradients, lr, **options)` gives the parameter after each step; lr is a function
of the step's number, 0 at the first.
"""

import numpy as np


def sgd(p, g, t, lr, s, *, momentum=0.0, dampening=0.0, nesterov=False):
    if momentum == 0:
        return p - lr * g
    s["v"] = g if t == 1 else momentum * s["v"] + (1 - dampening) * g
    return p - lr * (g + momentum * s["v"] if nesterov else s["v"])


def momentum(p, g, t, lr, s, *, momentum, use_nesterov=False):
    s["v"] = momentum * s.get("v", 0) + g
    return p - lr * (g + momentum * s["v"] if use_nesterov else s["v"])


def moments(g, s, beta1, beta2):
    s["m"] = beta1 * s.get("m", 0) + (1 - beta1) * g
    s["v"] = beta2 * s.get("v", 0) + (1 - beta2) * g**2
    return s["m"], s["v"]


def adam(
    p, g, t, lr, s, *, beta1=0.9, beta2=0.999, eps=1e-8, use_nesterov=False, use_amsgrad=False
):
    m, v = moments(g, s, beta1, beta2)
    if use_amsgrad:
        v = s["vhat"] = np.maximum(s.get("vhat", 0), v)
    if use_nesterov:
        m = beta1 * m + (1 - beta1) * g
    rate = lr * np.sqrt(1 - beta2**t) / (1 - beta1**t)
    return p - rate * m / (np.sqrt(v) + eps)


def adam_weight_decay(p, g, t, lr, s, *, beta1=0.9, beta2=0.999, eps=1e-6, decay=0.0):
    m, v = moments(g, s, beta1, beta2)
    return p - lr * (m / (np.sqrt(v) + eps) + decay * p)


def rmsprop(p, g, t, lr, s, *, decay=0.9, momentum=0.0, epsilon=1e-10, centered=False):
    s["s"] = decay * s.get("s", 1) + (1 - decay) * g**2
    s["a"] = decay * s.get("a", 0) + (1 - decay) * g
    spread = s["s"] - s["a"] ** 2 if centered else s["s"]
    s["d"] = momentum * s.get("d", 0) + lr * g / np.sqrt(spread + epsilon)
    return p - s["d"]


def adagrad(p, g, t, lr, s, *, accum=0.1, update_slots=True):
    s.setdefault("a", accum)
    if update_slots:
        s["a"] = s["a"] + g**2
    return p - lr * g / np.sqrt(s["a"])


def lamb(p, g, t, lr, s, *, beta1=0.9, beta2=0.999, eps=1e-6, decay=0.0):
    m, v = moments(g, s, beta1, beta2)
    r = m / (1 - beta1**t) / (np.sqrt(v / (1 - beta2**t)) + eps) + decay * p
    norm_p, norm_r = np.linalg.norm(p), np.linalg.norm(r)
    return p - lr * r * (norm_p / norm_r if norm_p > 0 and norm_r > 0 else 1)


def lars_gradient(p, g, lr, *, epsilon=1e-5, coefficient=1e-3, use_clip=False, decay=0.0):
    norm_p = np.linalg.norm(p)
    ratio = coefficient * norm_p / (np.linalg.norm(g) + decay * norm_p + epsilon)
    if use_clip:
        ratio = min(ratio / lr, 1)
    return ratio * (g + decay * p)


def adamax(p, g, t, lr, s, *, beta1=0.9, beta2=0.999, eps=1e-8):
    s["m"] = beta1 * s.get("m", 0) + (1 - beta1) * g
    s["v"] = np.maximum(beta2 * s.get("v", 0), np.abs(g))
    return p - lr / (1 - beta1**t) * s["m"] / (s["v"] + eps)


def adadelta(p, g, t, lr, s, *, rho=0.9, epsilon=1e-6):
    s["a"] = rho * s.get("a", 0) + (1 - rho) * g**2
    d = np.sqrt((s.get("b", 0) + epsilon) / (s["a"] + epsilon)) * g
    s["b"] = rho * s.get("b", 0) + (1 - rho) * d**2
    return p - lr * d


def proximal_adagrad(p, g, t, lr, s, *, accum=0.1, l1=0.0, l2=0.0):
    s["a"] = s.get("a", accum) + g**2
    r = lr / np.sqrt(s["a"])
    v = p - r * g
    return np.sign(v) * np.maximum(np.abs(v) - r * l1, 0) / (1 + r * l2)


def ftrl(p, g, t, lr, s, *, initial_accum=0.1, lr_power=-0.5, l1=0.0, l2=0.0):
    before = s.get("n", initial_accum)
    s["n"] = before + g**2
    sigma = (s["n"] ** -lr_power - before**-lr_power) / lr
    s["z"] = s.get("z", 0) + g - sigma * p
    step = -(s["z"] - np.sign(s["z"]) * l1) / (s["n"] ** -lr_power / lr + 2 * l2)
    return np.where(np.abs(s["z"]) <= l1, 0, step)


def rprop(p, g, t, lr, s, *, etas=(0.5, 1.2), step_sizes=(1e-6, 50.0)):
    agree = g * s.get("g", 0)
    factor = np.where(agree > 0, etas[1], np.where(agree < 0, etas[0], 1.0))
    s["s"] = np.clip(s.get("s", lr) * factor, *step_sizes)
    s["g"] = np.where(agree < 0, 0, g)
    return p - np.sign(s["g"]) * s["s"]


def asgd(p, g, t, lr, s, *, lambd=1e-4, alpha=0.75, t0=1e6):
    eta = s.get("eta", lr)
    s["eta"] = lr / (1 + lambd * lr * t) ** alpha
    return (1 - lambd * eta) * p - eta * g


def adafactor(p, g, t, lr, s, *, decay_rate=0.8, beta1=0.9, decay=0.0):
    rms = lambda x: np.sqrt(np.mean(x**2))  # noqa: E731
    rate, b = min(1e-2, t**-0.5) * max(1e-3, rms(p)), 1 - t**-decay_rate
    q = g**2 + 1e-30
    if g.ndim > 1:
        s["r"] = b * s.get("r", 0) + (1 - b) * q.mean(axis=1)
        s["c"] = b * s.get("c", 0) + (1 - b) * q.mean(axis=0)
        u = g / np.sqrt(np.outer(s["r"], s["c"]) / s["r"].mean())
    else:
        s["v"] = b * s.get("v", 0) + (1 - b) * q
        u = g / np.sqrt(s["v"])
    u = rate * u / max(1, rms(u))
    s["m"] = beta1 * s.get("m", 0) + (1 - beta1) * u
    return p - rate * decay * p - s["m"]


RULES = {
    "ASGD": asgd,
    "AdaFactor": adafactor,
    "AdaMax": adamax,
    "Adadelta": adadelta,
    "FTRL": ftrl,
    "LazyAdam": adam,
    "ProximalAdagrad": proximal_adagrad,
    "Rprop": rprop,
    "SGD": sgd,
    "Momentum": momentum,
    "Adam": adam,
    "AdamWeightDecay": adam_weight_decay,
    "RMSProp": rmsprop,
    "Adagrad": adagrad,
    "Lamb": lamb,
}
DECOUPLED = ("AdaFactor", "AdamWeightDecay", "Lamb")


def run(
    name,
    start,
    gradients,
    lr,
    *,
    weight_decay=0.0,
    loss_scale=1.0,
    centralise=False,
    lars=None,
    **options,
):
    p, state, made = np.asarray(start, np.float64), {}, []
    for t, g in enumerate(gradients, 1):
        g = np.asarray(g, np.float64) / loss_scale
        rate = lr(t - 1)
        decay = weight_decay(t - 1) if callable(weight_decay) else weight_decay
        if lars is not None:
            g = lars_gradient(p, g, rate, decay=decay, **lars)
        elif name in DECOUPLED:
            options["decay"] = decay
        else:
            g = g + decay * p
        if centralise and g.ndim > 1:
            g = g - g.mean(axis=tuple(range(1, g.ndim)), keepdims=True)
        p = RULES[name](p, g, t, rate, state, **options)
        made.append(p)
    return made
