"""Names of MindSpore's that programs import, often without need, and that mean nothing here.

They can be imported. Using one raises NotImplementedError, or warns once where doing nothing is all there
is to do; both say why.
"""

from __future__ import annotations

from typing import Any

from gradcell.base import notice, unsupported, where

#: Why, and 'module: names', below `mindspore`; what there is no use for.
_REFUSED: tuple[tuple[str, str], ...] = (
    ("programs run as they are written, and nothing rewrites them", """
        rewrite: SymbolTree Node NodeType ScopedValue ValueType TreeNodeHelper PatternEngine"""),
    ("functions are traced as they run, not read from bytecode", """
        _c_expression: get_code_extra jit_mode_pi_enable jit_mode_pi_disable jit_mode_pi_compile"""),
    ("amp.auto_mixed_precision and Cell.to_float set precision", "_c_expression: amp"),
    ("NumPy has no bfloat16; Tensor(x, dtype=mindspore.bfloat16) has", "common.np_dtype: bfloat16"),
    ("files are the system's", "common.file_system: FileSystem mindio_preload"),
    ("a derivative of one's own is Cell.bprop, custom_vjp or _Function", """
        ops._grad_experimental.grad_base: bprop_getters bprops get_bprop_fn taylor_fprop_getters
        ops._grad_experimental.grad_base: taylor_fprops get_taylor_fprop_fn"""),
    ("nn.GRU, nn.LSTM and nn.RNN compute it", """
        ops.operations._rl_inner_ops: GRUV2 LSTMV2 CudnnGRU
        ops: LSTM
        ops.operations: LSTM"""),
    ("a GeneratorDataset of json.loads of its files' lines gives the rows", "dataset: CLUEDataset"),
    ("ops do not take sparse tensors", """
        ops.operations.sparse_ops: SparseAdd SparseConcat SparseReorder SparseSlice
        ops.operations.sparse_ops: SparseSoftmax SparseTensorDenseAdd SparseTensorDenseMatmul"""),
    ("it is of MindSpore's own compiler", """
        ops.operations._inner_ops: AntiQuant TopTypeof
        ops.vm_impl_registry: vm_impl_registry
        _c_expression: init_exec_dataset
        train.serialization: _get_mindir_inputs"""),
    ("names of Parameters are given, or those of the attributes that hold them", """
        common.parameter: _is_parameter_generated"""),
    ("checkpoints are ModelCheckpoint's and save_checkpoint's", """
        train.callback: _CheckpointManager CheckpointManager TrainFaultTolerance
        train: TrainFaultTolerance"""),
    ("flops are not counted; gradcell.profiler says what steps take", """
        train: FlopsUtilizationCollector
        train.callback: FlopsUtilizationCollector"""),
    ("it splits checkpoints of a cluster", """
        train._utils: get_parameter_redundancy remove_param_redundancy parse_hccl_file
        train._utils: parse_strategy_ckpt read_proto"""),
    ("summaries are written by SummaryRecord", """
        train.summary.enums: BaseEnum ModeEnum PluginEnum WriterPluginEnum
        train.summary._summary_adapter: get_event_file_name package_graph_event package_init_event
        train.summary._summary_adapter: package_summary_event _fill_histogram_summary _make_image"""),
    ("processes exchange gradients by data_parallel", """
        boost: AdaSum DimReduce GroupLossScaleManager
        nn: AdaSumByDeltaWeightWrapCell AdaSumByGradWrapCell
        nn.wrap.loss_scale: grad_scale shard_grad_scale"""),
    ("MindSpore 2.10 stops at it, too, on a CPU; solvers.GaussNewton takes steps of second order", """
        nn: thor DenseThor Conv2dThor EmbeddingThor EmbeddingLookupThor
        nn.optim: thor
        train.train_thor: ConvertModelUtils ConvertNetUtils
        train.train_thor.dataset_helper: DatasetHelper
        : ConvertModelUtils ConvertNetUtils
        train: ConvertModelUtils ConvertNetUtils"""),
    ("MindIR is neither read nor written; export writes ONNX", """
        : load load_mindir save_mindir export_split_mindir
        nn: GraphCell
        train.serialization: load load_mindir save_mindir export_split_mindir"""),
    ("each process of a cluster has its whole network here, and its checkpoint", """
        : build_searched_strategy load_distributed_checkpoint merge_pipeline_strategys
        : merge_sliced_parameter rank_list_for_transform restore_group_info_list transform_checkpoints
        train.serialization: build_searched_strategy load_distributed_checkpoint merge_sliced_parameter
        train.serialization: _get_merged_param_data restore_group_info_list
        train.node_strategy_pb2: ParallelStrategyMap"""),
    ("checkpoints are read by load_checkpoint, whose result is a dict", "train.serialization: Checkpoint"),
    ("a function in map or filter can print the rows that it gets", """
        dataset.debug: DebugHook PrintDataHook PrintMetaDataHook"""),
    ("a pipeline is a program, which is kept as its text", "dataset: serialize deserialize"),
    ("FileWriter writes MindRecord files of any rows", """
        mindrecord: Cifar10ToMR Cifar100ToMR CsvToMR ImageNetToMR MnistToMR TFRecordToMR"""),
    ("transforms of sounds are functions of arrays that a program brings along", """
        dataset.audio: BassBiquad"""),
    ("Profiler and gradcell.profiler say what steps take", """
        profiler: AicoreMetrics DynamicProfilerMonitor ProfilerActivity ProfilerLevel _ExperimentalConfig
        profiler: schedule tensorboard_trace_handler
        profiler.profiler: analyse"""),
    ("nn.TrainOneStepCell trains; layers are as they are written, and rest by requires_grad = False", """
        boost: FreezeOpt GradientFreeze ParameterProcess freeze_cell
        boost.grad_freeze: FreezeOpt GradientFreeze freeze_cell
        boost: AutoBoost BoostTrainOneStepCell BoostTrainOneStepWithLossScaleCell LessBN OptimizerProcess"""),
)  # fmt: skip

#: The same for functions that a program calls, and goes on.
_IGNORED: tuple[tuple[str, str], ...] = (
    ("graph_text and inspect show what there is", ": set_dump"),
    ("a checkpoint is of the network that it is asked for", "train.callback: set_cur_net _set_cur_net"),
    ("files are the system's", ": set_mindio_server_info"),
    ("it is for Ascend processors", """
        device_context.ascend.op_debug: aclinit_config debug_option execute_timeout
        device_context.ascend.op_precision: conv_allow_hf32 matmul_allow_hf32 op_precision_mode
        device_context.ascend.op_precision: precision_mode
        device_context.ascend.op_tuning: aclnn_cache aoe_job_type aoe_tune_mode op_compile
        device_context.gpu.op_tuning: conv_dgrad_algo conv_fprop_algo conv_wgrad_algo"""),
    ("marks are of the traces of MindSpore's profiler", "profiler.mstx: mark range_start range_end"),
)  # fmt: skip

#: Modules that are all of MindSpore's own compiler: what is set there is not read.
_UNREAD = ("_extends.parse", "_extends.parse.compile_config")


def table(text: str) -> list[tuple[str, str]]:
    """(what stands before the colon, a word behind it) for the words of all lines."""
    lines = (line.partition(":") for line in text.strip().splitlines())
    return [(head.strip(), word) for head, _, words in lines for word in words.split()]


def _table(rows: tuple[tuple[str, str], ...]) -> dict[str, str]:
    pairs = ((path, why) for why, lines in rows for path in table(lines))
    return {".".join(filter(None, path)): why for path, why in pairs}


REFUSED, IGNORED = _table(_REFUSED), _table(_IGNORED)
_PARTS = [path.split(".")[:-1] for path in (*REFUSED, *IGNORED)]
MODULES = {".".join(p[: n + 1]) for p in _PARTS for n in range(len(p))}.union(_UNREAD)


class _Refused(type):
    """A class that can be imported, subclassed and asked about, and neither made nor looked into."""

    path: str
    why: str

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        unsupported(f"{cls._text()}")

    def __getattr__(cls, name: str) -> Any:
        raise AttributeError(name if name.startswith("__") else f"{cls._text()}{where()}")

    def _text(cls) -> str:
        return f"gradcell has no mindspore.{cls.path}: {cls.why}"


def refused(path: str) -> type:
    """Return the stand-in for a name, which raises NotImplementedError when it is used."""
    why = REFUSED.get(path, "it is private to MindSpore")
    members = {"path": path, "why": why, "__doc__": f"Not here: {why}."}
    return _Refused(path.rpartition(".")[2], (), members)


def named(path: str) -> Any:
    """Return the stand-in for a name below `mindspore`. Raises AttributeError for a name in no
    table."""
    name = path.rpartition(".")[2]
    if path in REFUSED:
        return refused(path)
    if path not in IGNORED:
        raise AttributeError(path)

    def ignored(*args: Any, **kwargs: Any) -> None:
        notice.once(f"mindspore.{path}", IGNORED[path])

    ignored.__name__ = ignored.__qualname__ = name
    ignored.__doc__ = f"Nothing: {IGNORED[path]}. Warns once."
    return ignored
