"""Small things that programs rely on."""

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops

X = np.array([[0.5, -1.5, 2.0], [1.0, 0.25, -0.75]], np.float32)


def _x():
    return Tensor(X)


def slopes_in_a_list():
    net = nn.PReLU(3, [0.1, 0.2, 0.3])
    return net(_x()), net.w.value(), [p.name for p in net.trainable_params()], ms.grad(net)(_x())


def slopes_in_a_tensor():
    return nn.PReLU(1, Tensor([0.1], ms.float32))(_x())


def slopes_of_another_number():
    return nn.PReLU(3, [0.1, 0.2])


def slopes_that_are_no_numbers():
    return nn.PReLU(2, ["a", 0.2])


def dtype_of_a_parameter():
    p = Parameter(_x(), name="p")
    p.set_dtype(ms.float16)
    found = p.value(), p.dtype, p.name, p.requires_grad
    p.set_dtype(ms.int32)
    return found, p.value()


def dtype_of_a_networks_parameters():
    net = nn.Dense(3, 2, "ones", "ones")
    for p in net.get_parameters():
        p.set_dtype(ms.float16)
    return net(_x().astype(ms.float16)), [str(p.dtype) for p in net.trainable_params()]


def steps_of_a_generator():
    generator = ms.Generator()
    generator.manual_seed(5)
    first, second = generator._step(Tensor(3)), generator._step(Tensor(1))
    found = [int(n) for n in (*first, *second)]
    generator.manual_seed(6)
    return found, [int(n) for n in generator._step(Tensor(2))], str(first[0].dtype)


def scope_of_a_cell():
    net = nn.SequentialCell(nn.MaxPool2d(2), nn.ReLU())
    return net.get_scope(), net[0].get_scope(), nn.MaxPool2d(2).get_scope()


def order_of_groups():
    net = nn.SequentialCell(nn.Dense(2, 2), nn.Dense(2, 2))
    first, second = net[0].trainable_params(), net[1].trainable_params()
    plain = nn.SGD([{"params": first, "lr": 0.1}, {"params": second}], 0.2)
    ordered = nn.SGD(
        [
            {"params": second, "lr": 0.1},
            {"params": first},
            {"order_params": net.trainable_params()},
        ],
        0.2,
    )
    none = nn.SGD(net.trainable_params(), 0.1)
    return [(o.is_group, o.is_group_lr, o.is_group_params_ordered) for o in (plain, ordered, none)]


def type_of_a_tensor():
    return (
        _x().type(),
        Tensor([1]).type(),
        Tensor([True]).type(),
        _x().type(ms.int32),
        Tensor(1.5, ms.float16).type(),
    )


def updates_in_place():
    x = _x()
    y = x
    x -= 1
    x *= 2
    x += Tensor([1.0, 2.0, 3.0], ms.float32)
    x /= 4
    x **= 2
    x //= 0.5
    x %= 3
    return x, y


def updates_in_place_by_name():
    x = _x()
    names = [
        "__isub__",
        "__iadd__",
        "__imul__",
        "__ipow__",
        "__imod__",
        "__ifloordiv__",
        "__itruediv__",
    ]
    has = [hasattr(x, name) for name in names]
    x.__isub__(1.0)
    return has, x


def updates_in_place_in_a_function():
    def f(x):
        y = x * 2
        y -= x
        y *= 3
        return y

    return f(_x()), ms.grad(f)(_x())


def updates_of_integers():
    x = Tensor([7, -8, 9], ms.int32)
    x -= 2
    x //= 2
    x *= 3
    return x


def dtype_of_numpy():
    return (Tensor([1, 2], np.dtype("float32")), Tensor(X, np.dtype(np.int32)), Tensor([1.5], np.float64),
            Tensor([1], dtype=np.dtype("bool")))  # fmt: skip


def array_of_objects():
    return Tensor(np.array([1, 2.5], dtype=object))


def array_of_objects_in_a_dtype():
    return Tensor(np.array([1, 2.5], dtype=object), ms.float32)


def norm_of_matrices():
    x = Tensor(np.arange(12, dtype=np.float32).reshape(2, 2, 3) - 5)
    return (ops.norm(x, 2, (1, 2)), ops.norm(x[0], 2), ops.norm(x, -2, (0, 2)),
            ops.norm(x, 2, (1, 2), keepdim=True), ops.norm(x, "nuc", (1, 2)),
            ops.norm(x[0], 1), ops.norm(x, float("inf"), (0, 1)))  # fmt: skip


def norm_of_matrices_by_default():
    x = Tensor(np.arange(12, dtype=np.float32).reshape(2, 2, 3) - 5)
    return ops.norm(x), ops.norm(x, dim=(0, 1)), x.norm(2, (1, 2)), ops.norm(x, "fro", (1, 2))


def comparisons_of_uint64():
    x = Tensor(np.array([1, 2**63 + 1, 2**64 - 1], np.uint64))
    y = Tensor(np.array([2, 2**63, 2**64 - 1], np.uint64))
    return x > y, x >= y, x < y, x <= y, x == y, x != y


def comparisons_of_uint64_with_numbers():
    x = Tensor(np.array([1, 3, 2**63], np.uint64))
    return x > 2, x == 3, x <= 3


def comparisons_of_unsigned_with_negative_numbers():
    x = Tensor(np.array([1, 255, 0], np.uint8))
    return x > -1, x == -1, x < -1


def closeness_of_uint8():
    x = Tensor(np.array([1, 255, 0], np.uint8))
    y = Tensor(np.array([2, 255, 1], np.uint8))
    return ops.isclose(x, y), ops.isclose(x, y, 0.0, 1.0)


def closeness_with_a_number():
    return ops.isclose(Tensor(np.array([1, 255, 0], np.uint8)), -1)


def negative_seed():
    ms.set_seed(-1)


def negative_seed_of_an_op():
    return ops.normal((2, 3), Tensor(0.0), Tensor(1.0), seed=-1).shape


def negative_seed_of_a_cell():
    return nn.Dropout(p=0.5).construct(_x()).shape, ops.StandardNormal(seed=-1)((2,)).shape


def negative_seed_of_a_function():
    return ops.uniform((2,), Tensor(0.0), Tensor(1.0), seed=-3).shape


def constant_argument():
    x = Tensor(X, const_arg=True)
    return x.const_arg, _x().const_arg, x + 1, ms.tensor([1.0], const_arg=True).const_arg


def constant_argument_set():
    x = _x()
    x.set_const_arg(True)
    return x.const_arg, x.set_const_arg(False).const_arg


def constant_argument_in_words():
    return Tensor(X, const_arg="yes")


def syntax_level():
    config = ms.JitConfig(jit_syntax_level="COMPATIBLE")
    return config.jit_config_dict["jit_syntax_level"]


def syntax_level_in_other_words():
    return ms.JitConfig(jit_syntax_level="STRONG")


def _data():
    rows = [(X[:, :2] * (i + 1), X[:, 2:]) for i in range(6)]
    return ms.dataset.GeneratorDataset(rows, ["x", "y"], shuffle=False)


class _Losses(ms.Callback):
    def __init__(self):
        super().__init__()
        self.seen = []

    def on_train_step_end(self, run_context):
        params = run_context.original_args()
        self.seen.append((params.cur_epoch_num, params.cur_step_num, params.net_outputs * 1))


def steps_of_an_epoch():
    found = []
    for epochs, sink, size in ((2, False, -1), (1, False, 4), (2, True, 4)):
        net = nn.Dense(2, 1, "ones", "zeros")
        model = ms.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.01))
        losses = _Losses()
        model.train(epochs, _data(), losses, dataset_sink_mode=sink, sink_size=size)
        found.append(losses.seen)
    return found


def no_steps_of_an_epoch():
    net = nn.Dense(2, 1)
    model = ms.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.01))
    model.train(1, _data(), dataset_sink_mode=True, sink_size=0)


def gradient_of_the_norm_of_matrices():
    x = Tensor(np.arange(6, dtype=np.float32).reshape(2, 3) - 2)

    def largest(a):
        return ops.norm(a, 2, (0, 1))

    def total(a):
        return ops.norm(a, "nuc", (0, 1))

    return ms.grad(largest)(x), ms.grad(total)(x)


class _Scaled(nn.Cell):
    def __init__(self):
        super().__init__()
        self.w = Parameter(Tensor(2.0, ms.float32), name="w")

    def construct(self, x, y):
        return x * y * self.w


class _Both(nn.Cell):
    def construct(self, x, y):
        return x * y, x + y


def cotangents_of_grad():
    x, y, sens = Tensor(X[0]), Tensor(X[1]), Tensor([1.0, 10.0, 100.0], ms.float32)
    net = _Scaled()
    return (
        ms.grad(net, 0, sens_param=True)(x, y, sens),
        ms.grad(net, 0, None, False, True, True)(x, y, sens),
        ms.value_and_grad(net, (0, 1), net.trainable_params(), sens_param=True)(x, y, sens),
        ms.grad(_Both(), (0, 1), sens_param=True)(x, y, (sens, y)),
    )


def cotangent_that_is_missing():
    return ms.grad(_Scaled(), sens_param=True)(Tensor(X[0]), Tensor(X[1]))


def checkpoints_of_other_arguments():
    import os
    import tempfile

    def error_of(function, *args, **kwargs):
        try:
            function(*args, **kwargs)
        except Exception as error:
            return type(error).__name__

    net, path = nn.Dense(2, 1), os.path.join(tempfile.mkdtemp(), "net.ckpt")
    wrong = [
        {"save_obj": 5}, {"ckpt_file_name": 3}, {"append_dict": 5}, {"integrated_save": 5}, {"format": "x"},
        {"choice_func": 5}, {"save_obj": [{"name": "a"}]},
    ]  # fmt: skip
    found = [
        error_of(ms.save_checkpoint, **{"save_obj": net, "ckpt_file_name": path, **w})
        for w in wrong
    ]
    ms.save_checkpoint(net, path)
    found += [error_of(ms.load_checkpoint, 3), error_of(ms.load_checkpoint, path, 5)]
    of_net = [(5, {}), (net, 5), (net, {"a": 5}), (net, {5: Parameter(_x(), name="p")})]
    return found, [error_of(ms.load_param_into_net, *args) for args in of_net]


def rows_by_a_sampler_of_the_programs_own():
    from mindspore import dataset

    class Backwards:
        def __getitem__(self, i):
            return (2, 0, 1)[i]

        def __len__(self):
            return 3

    class Tens:
        def __getitem__(self, i):
            return np.array(i * 10.0, np.float32)

        def __len__(self):
            return 3

    rows = dataset.GeneratorDataset(Tens(), ["x"], sampler=Backwards())
    return [float(x) for (x,) in rows.create_tuple_iterator(num_epochs=1, output_numpy=True)]


def module_that_was_not_imported():
    return ms.common._grad_function._Function.__name__


def checkpoints_in_another_format():
    import os
    import tempfile

    def said(function, *args):
        try:
            return function(*args)
        except Exception as error:
            return type(error).__name__

    net = nn.Dense(3, 2, "ones", "zeros")
    first, second, third = (tempfile.mkdtemp() for _ in range(3))
    path, file = os.path.join(first, "net.ckpt"), os.path.join(second, "net.safetensors")
    ms.save_checkpoint(net, path)
    found = [ms.ckpt_to_safetensors(path), ms.ckpt_to_safetensors(path, second, {"weight": "w"})]
    found += [sorted(os.listdir(first)), sorted(os.listdir(second))]
    read = ms.load_checkpoint(file, format="safetensors")
    found.append(sorted((name, tuple(p.shape)) for name, p in read.items()))
    ms.safetensors_to_ckpt(file, third, {"w": "weight"})
    found.append(sorted(ms.load_checkpoint(os.path.join(third, "net.ckpt"))))
    wrong = (
        (ms.ckpt_to_safetensors, file),
        (ms.safetensors_to_ckpt, path),
        (ms.ckpt_to_safetensors, first),
    )
    return found, [said(*call) for call in wrong], said(ms.ckpt_to_safetensors, path + "x")


class _WithBuffers(nn.Cell):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", Tensor([2.0, 3.0], ms.float32))
        self.register_buffer("count", Tensor(1.0, ms.float32), persistent=False)
        self.register_buffer("nothing", None)
        self.fc = nn.Dense(2, 2, "ones", "zeros")

    def construct(self, x):
        ops.assign(self.count, self.count + 1)
        return self.fc(x * self.scale)


def buffers_of_a_cell():
    ms.set_context(mode=ms.PYNATIVE_MODE)  # in GRAPH_MODE MindSpore keeps their first values
    net = nn.SequentialCell(_WithBuffers(), nn.ReLU())
    x = Tensor([[1.0, -1.0]], ms.float32)
    found = [net(x), ms.grad(net)(x), net[0].count, isinstance(net[0].scale, Tensor)]
    ops.assign(net[0].scale, Tensor([4.0, 1.0], ms.float32))
    found += [net(x), sorted(net.state_dict()), [n for n, _ in net.parameters_and_names()]]
    found += [[n for n, _ in net.named_buffers()], [n for n, _ in net.named_buffers("a", False)]]
    return found, net.get_buffer("0.scale"), net[0].nothing, [b.shape for b in net.buffers()]


def buffers_that_are_loaded():
    first, second = _WithBuffers(), _WithBuffers()
    ops.assign(first.scale, Tensor([7.0, 8.0], ms.float32))
    second.load_state_dict(first.state_dict())
    second.count = None
    return second.scale, [n for n, _ in second.named_buffers()], second.count


def buffers_by_another_name():
    net, said = _WithBuffers(), []
    for args in (("a.b", Tensor(1)), ("", Tensor(1)), (3, Tensor(1)), ("a", "word"), ("construct", None),
                 ("fc", Tensor(1))):  # fmt: skip
        try:
            said.append(net.register_buffer(*args))
        except Exception as error:
            said.append(type(error).__name__)
    for change in (lambda: setattr(net, "scale", Tensor(1.0)), lambda: net.get_buffer("fc.weight")):
        try:
            said.append(change())
        except Exception as error:
            said.append(type(error).__name__)
    return said


def function_of_arrays():
    from mindspore.ops.operations import PyFunc

    def both(x, y):
        return x + y, x * y

    def double(x):
        return x * 2

    of_two = PyFunc(both, [ms.float32] * 2, [(2, 3)] * 2, [ms.float32] * 2, [(2, 3)] * 2)
    of_one = PyFunc(double, [ms.float32], [(2, 3)], [ms.float32], [(2, 3)])
    return of_two(_x(), _x()), of_one(_x())


def slope_of_a_function_of_arrays():
    from mindspore.ops.operations import PyFunc

    op = PyFunc(lambda x: x * 2, [ms.float32], [(2, 3)], [ms.float32], [(2, 3)])

    def f(x):
        return op(x)[0]

    return ms.grad(f)(_x())
