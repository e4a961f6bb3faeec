"""Names that programs import from MindSpore's modules, most of them private: which ones are not there."""

import importlib

TABLE = """
_c_expression: security get_code_extra TensorPy amp
_c_expression: init_exec_dataset
_checkparam: args_type_check
_extends.parse: compile_config
boost: AutoBoost GradientAccumulation GradientFreeze
boost.base: OptimizerProcess ParameterProcess
boost.boost: AutoBoost OptimizerProcess ParameterProcess
boost.grad_accumulation: GradientAccumulation gradient_accumulation_op gradient_clear_op
boost.grad_freeze: FreezeOpt GradientFreeze freeze_cell
common: file_system np_dtype
common._stub_tensor: StubTensor
common.initializer: _init_random_uniform _init_random_normal _INITIALIZER_ALIAS
common.parameter: Parameter _Buffer _is_parameter_generated
common.np_dtype: bfloat16
common.sparse_tensor: RowTensorInner
communication._comm_helper: GlobalComm
dataset: CLUEDataset ds deserialize serialize
dataset.audio: BassBiquad
dataset.debug: DebugHook
dataset.engine.datasets: BatchDataset
dataset.transforms: vision
dataset.transforms.validators: check_random_transform_ops
dataset.vision.py_transforms_util: adjust_brightness adjust_contrast adjust_saturation is_pil random_crop
dataset.vision.py_transforms_util: augment_error_message rotate
device_context.ascend: is_available op_debug op_precision op_tuning
device_context.ascend.op_precision: precision_mode
device_context.cpu: op_tuning
device_context.gpu: is_available op_tuning
experimental: optim
experimental.optim: ASGD Adadelta Adagrad Adam AdamW Adamax NAdam Optimizer RAdam RMSprop SGD
experimental.optim: Rprop lr_scheduler
experimental.optim.lr_scheduler: ConstantLR CosineAnnealingLR CosineAnnealingWarmRestarts CyclicLR LambdaLR
experimental.optim.lr_scheduler: ExponentialLR LRScheduler LinearLR MultiStepLR MultiplicativeLR StepLR
experimental.optim.lr_scheduler: PolynomialLR ReduceLROnPlateau SequentialLR
experimental.optim.optimizer: Optimizer
hal: device_count is_available
device_context.cpu.op_tuning: threads_num
mindrecord: Cifar10ToMR
numpy.utils: _to_tensor
nn: AdaSumByDeltaWeightWrapCell AdaSumByGradWrapCell GraphCell MultiFieldEmbeddingLookup PReLU thor
nn.optim: thor
nn.layer.conv: _check_input_3d
nn.wrap.loss_scale: grad_scale shard_grad_scale
nn.probability: bijector distribution
nn.probability.bijector: Bijector Exp GumbelCDF Invert PowerTransform ScalarAffine Softplus
nn.probability.distribution: Bernoulli Beta Categorical Cauchy Exponential Gamma Geometric Gumbel
nn.probability.distribution: HalfNormal Laplace LogNormal Logistic Normal Poisson TransformedDistribution
nn.probability.distribution: Uniform _utils
nn.probability.distribution._utils: broadcast_to exp_generic log_generic
nn.probability.distribution._utils.custom_ops: exp_generic log1p_generic log_generic
ops: as_strided Primitive PrimitiveWithInfer prim_attr_register
ops._primitive_cache: _get_cache_prim
ops._grad_experimental: grad_base
ops._grad_experimental.grad_base: get_bprop_fn
ops.auto_generate: SumExt OnesLikeExt TraceV2 contiguous gen_ops_def gen_ops_prim trace_v2_op
ops.auto_generate.gen_ops_def: inplace_add_ext_op exp_op sum_ext_op
ops.auto_generate.gen_ops_prim: InplaceAddExt SumExt
ops.composite: GradOperation MultitypeFuncGraph
ops.composite.base: core
ops.composite.multitype_ops: zeros_like_impl
ops.function.array_func: min_ext new_ones split_ext arg_max_with_value_
ops.function.grad.grad_func: custom_vjp
ops.function.math_func: F matrix_exp
ops.functional: scalar_add
ops.operations: AdamNoUpdateParam LSTM TransposeView
ops.operations: ApplyAdadelta ApplyAdamWithAmsgrad BesselI0 BesselI0e BesselI1 BesselI1e BesselJ0 BesselJ1
ops.operations: BesselK0 BesselK0e BesselK1 BesselK1e BesselY0 BesselY1 Conv3DTranspose EqualCount
ops.operations: FusedSparseFtrl FusedSparseLazyAdam Igamma Igammac Mvlgamma Renorm ScatterDiv ScatterMul
ops.operations: ScatterSub SparseApplyFtrl Zeta
ops.operations._grad_ops: IgammaGradA ROIAlignGrad SoftplusGrad StridedSliceGrad
ops.operations._inner_ops: AntiQuant TopTypeof
ops.operations._rl_inner_ops: GRUV2
ops.operations._sequence_ops: TupleToTensor
ops.operations.sparse_ops: SparseReshape SparseCountSparseOutput
ops.primitive: PrimitiveWithInfer constexpr prim_attr_register _primexpr
profiler: AicoreMetrics DynamicProfilerMonitor ProfilerActivity ProfilerLevel schedule
profiler: mstx tensorboard_trace_handler
profiler.profiler: analyse
train: BackupAndRestore FlopsUtilizationCollector OcclusionSensitivity OnRequestExit TrainFaultTolerance
train._utils: _make_directory get_parameter_redundancy
train.callback: BackupAndRestore OnRequestExit _CheckpointManager _set_cur_net
train.callback._callback: set_cur_net Callback
train.callback._checkpoint: CheckpointManager CheckpointConfig ModelCheckpoint
train.model: _StepSync
train.node_strategy_pb2: ParallelStrategyMap
train.serialization: Checkpoint _get_merged_param_data _get_mindir_inputs build_searched_strategy
train.serialization: load_distributed_checkpoint merge_sliced_parameter tensor_to_ms_type
train.train_thor: ConvertModelUtils ConvertNetUtils
train.train_thor.dataset_helper: DatasetHelper
train.summary: _summary_adapter enums
train.summary._summary_adapter: package_init_event
train.summary.enums: PluginEnum
"""


def _is_there(module, name):
    try:
        return hasattr(importlib.import_module(module), name) or bool(
            importlib.import_module(f"{module}.{name}")
        )
    except (ImportError, AttributeError):
        return False


def _missing(module, names):
    def missing():
        return [n for n in names if not _is_there(f"mindspore.{module}", n)]

    return missing


_modules = {}
for _line in TABLE.strip().splitlines():
    _module, _, _names = _line.partition(":")
    _modules.setdefault(_module, []).extend(_names.split())
for _module, _names in _modules.items():
    globals()[f"mindspore.{_module}"] = _missing(_module, _names)
