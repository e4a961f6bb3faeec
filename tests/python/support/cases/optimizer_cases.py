"""What optimisers are asked in both packages: agreement.py runs some steps of each."""

from __future__ import annotations

# Not asked, since on a CPU MindSpore 2.10 does not do what it says: Momentum with use_nesterov moves
# as without, FTRL subtracts l1 where z is negative too.

OPTIMIZERS: list[str] = [
    "nn.SGD(params, 0.1, 0.9, weight_decay=0.1)",
    "nn.Momentum(params, 0.1, 0.9)",
    "nn.Adam(params, 0.1, use_nesterov=True)",
    "nn.Adam(params, 0.1, weight_decay=0.1, use_amsgrad=True)",
    "nn.AdamWeightDecay(params, 0.1, weight_decay=0.1)",
    "nn.AdaMax(params, 0.1)",
    "nn.AdaMax(params, [0.1, 0.05, 0.02, 0.01], 0.8, 0.9, weight_decay=0.1)",
    "nn.LazyAdam(params, 0.1)",
    "nn.AdamOffload(params, 0.1)",
    "nn.Adagrad(params, 0.1, 0.1)",
    "nn.Adadelta(params, 0.5)",
    "nn.ProximalAdagrad(params, 0.1, 0.1, 0.2, 0.3)",
    "nn.ProximalAdagrad(params, learning_rate=0.1, l2=0.3, weight_decay=0.1)",
    "nn.RMSProp(params, 0.1, momentum=0.5, centered=True)",
    "nn.Rprop(params, 0.1)",
    "nn.Rprop(params, 0.1, (0.4, 1.5), (0.05, 0.12), 0.1)",
    "nn.FTRL(params, learning_rate=0.1)",
    "nn.FTRL(params, 0.2, 0.1, -0.6, 0.0, 0.1, weight_decay=0.1)",
    "nn.ASGD(params, 0.1)",
    "nn.ASGD(params, 0.1, 0.05, 0.5, 1.0, 0.1)",
    "nn.AdaFactor(params)",
    "nn.AdaFactor(params, 0.1, relative_step=False, scale_parameter=False, beta1=0.0)",
    "nn.AdaFactor(params, warmup_init=True, weight_decay=0.1)",
]
