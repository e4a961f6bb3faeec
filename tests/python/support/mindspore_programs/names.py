"""Names of MindSpore's private modules, which programs import."""

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops

X = np.array([[0.5, -1.5, 2.0], [1.0, 0.25, -0.75]], np.float32)
Y = np.array([[2.0, 0.5, -1.0], [1.5, 4.0, 0.5]], np.float32)


def generated_functions():
    from mindspore.ops.function.array_func import min_ext, new_ones, split_ext

    x = Tensor(X)
    return (
        min_ext(x),
        min_ext(x, 1),
        split_ext(x, 2, 1),
        new_ones(x, (2,)),
        new_ones(x, 3, dtype=ms.int32),
    )


def generated_primitives():
    from mindspore.ops.auto_generate import SumExt, contiguous

    x = Tensor(X)
    return SumExt()(x, (1,), False, None), contiguous(x.T)


def generated_ones():
    from mindspore.ops.auto_generate import OnesLikeExt

    return OnesLikeExt()(Tensor(X), None)


def generated_objects():
    from mindspore.ops.auto_generate.gen_ops_def import exp_op, sum_ext_op
    from mindspore.ops.function.array_func import arg_max_with_value_

    x = Tensor(X)
    return exp_op(x), sum_ext_op(x, (0,), True, None), arg_max_with_value_(x)


def generated_updates():
    from mindspore.ops.auto_generate.gen_ops_def import inplace_add_ext_op
    from mindspore.ops.auto_generate.gen_ops_prim import InplaceAddExt

    x, y = Tensor(X), Tensor(Y)
    inplace_add_ext_op(x, y, 2)
    InplaceAddExt()(x, y, 1)
    return x


def gradients_as_ops():
    from mindspore.ops.operations._grad_ops import ROIAlignGrad, SoftplusGrad, StridedSliceGrad

    rois = Tensor(np.array([[0, 0.5, 0.5, 3, 3]], np.float32))
    dy = Tensor(np.arange(4, dtype=np.float32).reshape(1, 1, 2, 2))
    return (
        SoftplusGrad()(Tensor(X), Tensor(Y)),
        StridedSliceGrad()(Tensor(X), (3, 4), (0, 1), (2, 4), (1, 1)),
        ROIAlignGrad(2, 2, 0.5, 2)(dy, rois, (1, 1, 4, 4)),
    )


def equal_count():
    from mindspore.ops.operations import EqualCount

    x = Tensor(X)
    return EqualCount()(x, ops.abs(x)), EqualCount()(
        Tensor([1, 2, 3], ms.int32), Tensor([3, 2, 1], ms.int32)
    )


def tuple_to_tensor():
    from mindspore.ops.operations._sequence_ops import TupleToTensor

    return TupleToTensor()((1, 2, 3), ms.float32)


def scalar_functions():
    from mindspore.ops import functional as F

    return (F.scalar_add(2, 3), F.scalar_sub(2.5, 1), F.scalar_mul(2, 4), F.scalar_div(7, 2),
            F.scalar_floordiv(7, 2), F.scalar_mod(7, 4), F.scalar_pow(2, 5), F.scalar_usub(3),
            F.scalar_uadd(2.5), F.scalar_gt(2, 1), F.scalar_le(2, 1), F.scalar_eq(2, 2), F.scalar_max(1, 4),
            F.scalar_min(1, 4), F.scalar_lt(1, 2), F.scalar_ge(1, 2), F.scalar_log(7))  # fmt: skip


def own_derivative():
    from mindspore.ops.function.grad.grad_func import custom_vjp

    @custom_vjp
    def cube(x):
        return x * x * x

    def back(x, out, dout):
        return (dout * x * 10.0,)

    cube.defbwd(back)
    return cube(Tensor(X)), ms.grad(cube)(Tensor(X))


def flags():
    from mindspore.ops.composite.base import core

    @core(flag=True)
    def f(x):
        return x

    return f._func_graph_flags["flag"]


def zeros_like():
    from mindspore.ops.composite.multitype_ops import zeros_like_impl

    return zeros_like_impl.zeros_like(Tensor(X))


def primitive_of_a_program():
    from mindspore.ops.primitive import PrimitiveWithInfer, _primexpr, prim_attr_register

    class Op(PrimitiveWithInfer):
        @prim_attr_register
        def __init__(self, size, kind="a"):
            self.init_prim_io_names(inputs=["x"], outputs=["y"])

    @_primexpr
    def double(n):
        return 2 * n

    op = Op(3)
    op.add_prim_attr("more", 5)
    found = [op.size, op.kind, op.name, double(4), op.more, dict(op.attrs), str(op)]
    return (
        found,
        op.del_prim_attr("more").attrs,
        str(ops.ReduceSum().add_prim_attr("more", 2).set_stage(1)),
    )


def checked_types():
    from mindspore._checkparam import args_type_check

    @args_type_check(int, name=str)
    def f(count, name="a"):
        return f"{count}{name}"

    return f(2, name="b"), f(None)


def wrong_type():
    from mindspore._checkparam import args_type_check

    @args_type_check(int)
    def f(count):
        return count

    return f("2")


def words():
    from mindspore import _Function
    from mindspore._c_expression import TensorPy, security
    from mindspore.common._grad_function import _Function as same
    from mindspore.common.sparse_tensor import RowTensorInner
    from mindspore.communication._comm_helper import GlobalComm
    from mindspore.ops.function.math_func import F

    return (
        security.enable_security(), isinstance(Tensor(X), TensorPy), _Function is same,
        RowTensorInner.__name__[:9], GlobalComm.INITED, F.relu(Tensor(X)),
    )  # fmt: skip


def imports_without_use():
    from mindspore import boost, set_dump
    from mindspore._extends.parse import compile_config
    from mindspore.boost.grad_freeze import FreezeOpt, freeze_cell
    from mindspore.common import file_system
    from mindspore.device_context.cpu import op_tuning
    from mindspore.ops._grad_experimental import grad_base
    from mindspore.ops.operations import _rl_inner_ops, sparse_ops
    from mindspore.rewrite import SymbolTree
    from mindspore.train import TrainFaultTolerance
    from mindspore.train.callback import _CheckpointManager  # noqa: F401
    from mindspore.train.summary import _summary_adapter, enums

    compile_config.FALLBACK_FORCE_ANY = "1"
    return [n.__name__.rpartition(".")[2] for n in (
        SymbolTree, TrainFaultTolerance, FreezeOpt, freeze_cell, boost.AutoBoost, sparse_ops.SparseReshape,
        _rl_inner_ops.GRUV2, enums.PluginEnum, file_system.FileSystem, op_tuning.threads_num,
        _summary_adapter.package_init_event, grad_base.get_bprop_fn, set_dump,
    )]  # fmt: skip


def overloads_by_kinds_of_numbers():
    kind = ops.MultitypeFuncGraph("kind")

    @kind.register("Int64")
    def _int(x):
        return 1

    @kind.register("Float64")
    def _float(x):
        return 2

    @kind.register("Bool")
    def _bool(x):
        return 3

    return kind(3), kind(True)


def gradients_added_up():
    from mindspore.boost import GradientAccumulation

    net = nn.SequentialCell(
        nn.Dense(3, 3, "ones", "zeros"), nn.Tanh(), nn.Dense(3, 1, "ones", "zeros")
    )
    step = GradientAccumulation(2, nn.Momentum(net.trainable_params(), 0.1, 0.9))
    of = ms.value_and_grad(nn.WithLossCell(net, nn.MSELoss()), None, net.trainable_params())
    found = []
    for _ in range(5):
        loss, grads = of(Tensor(X), Tensor(Y[:, :1]))
        found.append(step(loss, grads))
    return found, [p.value() for p in net.trainable_params()]


def gradients_added_up_by_hand():
    from mindspore.boost.grad_accumulation import gradient_accumulation_op, gradient_clear_op

    total = Parameter(Tensor(X), name="total")
    first = gradient_accumulation_op(4, total, Tensor(Y)) * 1
    return first, gradient_clear_op(total) * 1, total.value()


def transforms_of_one_image():
    from mindspore.dataset.vision import Inter, py_transforms_util as util
    from PIL import Image

    image = Image.fromarray((np.arange(18).reshape(2, 3, 3) * 14).astype(np.uint8))
    made = (
        util.adjust_brightness(image, 0.5),
        util.adjust_contrast(image, 1.5),
        util.adjust_saturation(image, 0.25),
        util.rotate(image, 90, Inter.NEAREST, True, None, 0),
        util.horizontal_flip(image),
        util.center_crop(image, (2, 1)),
        util.random_crop(image, (2, 3), None, False, 0, "constant"),
    )
    kinds = util.is_pil(image), util.is_pil(np.zeros(3)), "{}" in util.augment_error_message
    return [np.asarray(m).tolist() for m in made], kinds


def changes_by_adam():
    from mindspore.ops.operations import AdamNoUpdateParam

    m, v = ms.Parameter(Tensor(X * 0.5), name="m"), ms.Parameter(Tensor(X * X), name="v")
    rates = [Tensor(r, ms.float32) for r in (0.81, 0.998, 0.01, 0.9, 0.999, 1e-8)]
    return AdamNoUpdateParam()(m, v, *rates, Tensor(Y)), m.value(), v.value()


def transposed_view():
    from mindspore.ops.operations import TransposeView

    return TransposeView()(Tensor(X), (1, 0))


def dtypes_of_checkpoints():
    from mindspore.train.serialization import tensor_to_ms_type

    return [
        str(tensor_to_ms_type[name]) for name in ("Int8", "UInt64", "Float32", "BFloat16", "Bool")
    ]


def shape_of_three_dimensions():
    from mindspore.nn.layer.conv import _check_input_3d

    return _check_input_3d((2, 3, 4), "Conv1d"), _check_input_3d((2, 3), "Conv1d")


def checked_transforms():
    from mindspore.dataset import vision
    from mindspore.dataset.transforms.validators import check_random_transform_ops

    class Chain:
        @check_random_transform_ops
        def __init__(self, transforms):
            self.transforms = transforms

    def made(transforms):
        try:
            return len(Chain(transforms).transforms)
        except (TypeError, ValueError) as error:
            return type(error).__name__

    return [made(t) for t in ([vision.HWC2CHW(), vision.ToType(np.float32)], [], 3, [5])]


def primitives_that_are_kept():
    from mindspore.ops._primitive_cache import _get_cache_prim

    sums = [_get_cache_prim(ops.ReduceSum)(keep) for keep in (True, True, False)]
    return sums[0] is sums[1], sums[0] is sums[2], sums[0](Tensor(X), 1)


def tensors_of_arguments():
    from mindspore.numpy.utils import _to_tensor

    return _to_tensor([1, 2.5]), _to_tensor(1, [2]), _to_tensor(Tensor(X))


def initialisers_by_name():
    from mindspore.common.initializer import _INITIALIZER_ALIAS, _init_random_uniform

    numbers = _init_random_uniform(-0.5, 0.25, (30, 2))
    return (
        sorted({name.replace("_", "") for name in _INITIALIZER_ALIAS} - {"constant"}),
        numbers.shape == (30, 2) and -0.5 <= numbers.min() < -0.4 < 0.1 < numbers.max() < 0.25,
    )


def devices_that_are_there():
    from mindspore import hal
    from mindspore.device_context import ascend, cpu

    return (
        hal.is_available("CPU"),
        hal.device_count("CPU"),
        cpu.is_available(),
        ascend.is_available(),
    )


def devices_of_another_kind():
    from mindspore import hal

    return hal.is_available("TPU")


def devices_that_are_not_there():
    from mindspore import hal

    return hal.device_count("Ascend")


def gradients_of_softmax_and_of_images():
    import mindspore.ops.auto_generate as generated

    x, image = Tensor(X), Tensor(np.arange(12, dtype=np.float32).reshape(1, 1, 3, 4) * 0.25)
    dy = Tensor(np.arange(30, dtype=np.float32).reshape(1, 1, 5, 6) / 7)
    dx = [generated.LogSoftmaxGrad(i)(ops.log_softmax(x, i), Tensor(Y)) for i in (-1, 0)]
    return (
        [ops.round(d * 1000) for d in dx],
        generated.ResizeBilinearGrad()(dy, image),
        generated.ResizeBilinearGrad(True)(dy, image),
        generated.ResizeBilinearGrad(False, True)(dy, image),
        generated.ResizeNearestNeighborGrad()(dy, (3, 4)),
        generated.ResizeNearestNeighborGrad(True)(dy, (3, 4)),
    )


def gradient_of_softmax():
    from mindspore.ops.auto_generate import SoftmaxBackward

    return SoftmaxBackward()(Tensor(Y), ops.softmax(Tensor(X), 1), 1)


def dynamic_shapes():
    from mindspore.ops.operations._inner_ops import ConvertToDynamic

    return ConvertToDynamic(is_dynamic_rank=True)(Tensor(X))


def gradients_of_upsampled_images():
    import mindspore.ops.auto_generate as generated

    def dy(*shape):
        return Tensor(np.arange(np.prod(shape), dtype=np.float32).reshape(1, 1, *shape) / 7)

    return (
        generated.UpsampleNearest1DGrad()(dy(6), (1, 1, 4), (6,), None),
        generated.UpsampleNearest2DGrad()(dy(5, 6), (1, 1, 3, 4), (5, 6), None),
        generated.UpsampleNearest3DGrad()(dy(4, 5, 6), (1, 1, 2, 3, 4), (4, 5, 6), None),
        generated.UpsampleTrilinear3DGrad()(dy(4, 5, 6), (1, 1, 2, 3, 4), (4, 5, 6), None),
        generated.UpsampleTrilinear3DGrad(True)(dy(4, 5, 6), (1, 1, 2, 3, 4), (4, 5, 6), None),
    )


def gradients_of_linearly_upsampled_images():
    import mindspore.ops.auto_generate as generated

    dy = Tensor(np.arange(8, dtype=np.float32).reshape(1, 2, 4))
    return (
        generated.UpsampleLinear1DGrad()(dy, (1, 2, 2), (4,), None, True),
        generated.UpsampleBilinear2DGrad()(dy[None], (1, 1, 2, 2), (2, 4), None, True),
    )
