"""Someone with a MindSpore script: it is run as it is."""

import numpy as np

import mindspore as ms
from mindspore import Model, Tensor, nn, ops
from mindspore.amp import DynamicLossScaler, all_finite
from mindspore.dataset import GeneratorDataset
from mindspore.train import Callback, LossMonitor, TimeMonitor

ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
ms.set_seed(1)
random = np.random.default_rng(0)
x = random.normal(size=(256, 4)).astype(np.float32)
y = (x.sum(1, keepdims=True) > 0).astype(np.float32)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.layers = nn.SequentialCell(nn.Dense(4, 16), nn.ReLU(), nn.Dense(16, 1))

    def construct(self, x):
        return self.layers(x)


class Count(Callback):
    steps = 0

    def on_train_step_end(self, run_context):
        Count.steps += 1


net, loss = Net(), nn.BCEWithLogitsLoss()
optimizer = nn.Adam(net.trainable_params(), learning_rate=0.02)
data = GeneratorDataset(list(zip(x, y)), ["x", "y"], shuffle=True).batch(64)
model = Model(net, loss, optimizer, metrics={"loss"})
model.train(10, data, callbacks=[LossMonitor(40), TimeMonitor(), Count()], dataset_sink_mode=False)
print("steps", Count.steps, "loss", model.eval(data)["loss"] < 0.3)

scaler = DynamicLossScaler(1024, 2, 100)
forward = lambda x, y: scaler.scale(loss(net(x), y))
gradient = ops.value_and_grad(forward, None, optimizer.parameters)


@ms.jit
def step(x, y):
    value, grads = gradient(x, y)
    finite = all_finite(grads)
    if finite:
        optimizer(scaler.unscale(grads))
    scaler.adjust(finite)
    return scaler.unscale(value)


for _ in range(20):
    value = step(Tensor(x), Tensor(y))
print("scaled", float(value) < 0.3)
grad = ops.GradOperation(get_by_list=True)(lambda x, y: loss(net(x), y), optimizer.parameters)
print("GradOperation", len(grad(Tensor(x), Tensor(y))))
ms.save_checkpoint(net, "net.ckpt")
fresh = Net()
ms.load_param_into_net(fresh, ms.load_checkpoint("net.ckpt"))
print("checkpoint", np.allclose(fresh(Tensor(x)).asnumpy(), net(Tensor(x)).asnumpy()))
print(
    "ReduceSum",
    ops.ReduceSum(keep_dims=True)(Tensor(x), 1).shape,
    ops.reduce_sum(Tensor(x), 1).shape,
)
