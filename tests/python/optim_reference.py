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


RULES = {
    "SGD": sgd,
    "Momentum": momentum,
    "Adam": adam,
    "AdamWeightDecay": adam_weight_decay,
    "RMSProp": rmsprop,
    "Adagrad": adagrad,
    "Lamb": lamb,
}
DECOUPLED = ("AdamWeightDecay", "Lamb")


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
