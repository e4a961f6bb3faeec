"""Lets a script that imports mindspore run on gradcell: `mindspore` and its submodules become names
of the modules here. Used by `python -m gradcell run`, and by gradcell.mindspore.install().

A missing name is called by MindSpore's full name in the error; where an import asks for it,
one line on stderr says so too, since programs often catch ImportError.
"""

from __future__ import annotations

import contextlib
import dis
import importlib
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Sequence
from types import FrameType, ModuleType

from gradcell.base import notice
from gradcell.mindspore import absent_names

_NAME = "mindspore"

#: What `mindspore.__version__` says: the version whose names and behaviour this follows.
VERSION = "2.10.0"

#: Modules of MindSpore that stand somewhere else here: 'place: modules', all below the packages.
_MODULES = """
    : common.tensor
    boost: boost.base boost.boost
    mindspore: experimental
    mindspore.checkparam: _checkparam
    mindspore.lr_scheduler: experimental.optim.lr_scheduler
    mindspore.optim: experimental.optim experimental.optim.optimizer
    common.kinds: _c_expression _c_expression.typing common._typing common._stub_tensor
    common.sparse_tensor: common.sparse_tensor
    common.api: common._register_for_tensor common.jit_config common.mutable common.jit_trace
    common.api: _extends common.lazy_inline common.jit_context
    communication.management: communication._comm_helper
    common.api: graph graph.api
    derivatives.hooks: common.hook_handle
    common.generator: common.generator
    tensors.parameter: common.parameter
    dtype: common.dtype
    derivatives.jacobians: ops.function.grad.grad_func
    nn.probability.distribution: nn.probability.distribution._utils
    nn.probability.distribution: nn.probability.distribution._utils.custom_ops
    nn.probability.distribution: nn.probability.distribution._utils.utils
    nn: nn.layer nn.loss nn.grad nn.grad.cell_grad
    nn.activations: nn.layer.activation
    nn.attention: nn.layer.transformer
    nn.basic: nn.layer.basic nn.layer.dense nn.layer.embedding
    nn.cell: nn.utils
    nn.containers: nn.layer.container
    nn.convolution: nn.layer.conv
    nn.fused: nn.layer.combined
    nn.images: nn.layer.image
    nn.losses: nn.loss.loss
    nn.metrics: train.metrics
    nn.normalization: nn.layer.normalization
    nn.op_cells: nn.layer.math
    nn.padding: nn.layer.padding
    nn.pooling: nn.layer.pooling
    nn.recurrent: nn.layer.rnn_cells nn.layer.rnns
    numpy: numpy.array_creations numpy.array_ops numpy.math_ops numpy.logic_ops numpy.utils
    numpy: numpy.utils_const
    ops: ops.function ops.function.array_func ops.function.math_func ops.function.nn_func
    ops: ops.function.linalg_func ops.function.random_func ops.function.parameter_func
    ops: ops.function.clip_func ops.function.image_func ops.function.debug_func ops.function.grad
    ops: ops.function.other_func ops.function.spectral_func ops.function.vmap_func
    ops: ops.primitive ops.auto_generate ops.auto_generate.gen_ops_prim ops.auto_generate.gen_ops_def
    ops: ops.operations.array_ops ops.operations.math_ops ops.operations.nn_ops ops._primitive_cache
    ops: ops.operations.comm_ops ops.operations.other_ops ops.operations.random_ops
    ops: ops.operations.image_ops ops.operations.inner_ops ops.operations._inner_ops
    ops: ops.operations.debug_ops ops.operations.linalg_ops ops.operations.control_ops
    ops: ops.operations._grad_ops ops.operations._scalar_ops ops.operations._sequence_ops
    ops: ops.operations.sparse_ops ops.operations.spectral_ops ops.operations.manually_defined
    ops: ops.composite.base ops.composite.math_ops ops.composite.multitype_ops
    ops: ops.composite.multitype_ops.zeros_like_impl ops.composite.multitype_ops.ones_like_impl
    ops: ops.composite.clip_ops ops.composite.random_ops ops.composite.array_ops
    ops.primitives.custom: ops.op_info_register
    parallel.algorithm: parallel.algo_parameter_config parallel.function parallel.shard parallel.strategy
    communication.mode: parallel._mode
    communication.sharing: parallel._auto_parallel_context
    runtime: hal hal.memory device_context device_context.cpu device_context.cpu.op_tuning
    dataset: dataset.core dataset.engine dataset.engine.datasets dataset.engine.samplers
    dataset.config: dataset.core.validator_helpers
    dataset.text: dataset.text.transforms dataset.text.utils
    dataset.transforms: dataset.transforms.c_transforms dataset.transforms.py_transforms
    dataset.transforms: dataset.transforms.transforms
    mindspore.checkparam: dataset.transforms.validators
    dataset.vision: dataset.vision.c_transforms dataset.vision.py_transforms
    dataset.vision: dataset.vision.transforms dataset.vision.utils
    dataset.vision.as_functions: dataset.vision.py_transforms_util
    mindrecord: mindrecord.filereader mindrecord.filewriter
    train.callback: train.callback._callback train.callback._checkpoint
    train.callback: train.callback._loss_monitor train.callback._summary_collector
    train.callback: train.callback._time_monitor
    amp: train.amp train.loss_scale_manager
"""
_PLACES = {
    f"{_NAME}.{module}": f"gradcell.{place}".rstrip(".")
    for place, module in absent_names.table(_MODULES)
}

#: Names that modules of MindSpore have from elsewhere: 'module: name=where it is here'.
_FOREIGN = """
    : _Function=common._grad_function._Function
    : ms_class=common.api.jit_class
    common.api: ms_class=common.api.jit_class
    common.initializer: _INITIALIZER_ALIAS=common.initializer._BY_NAME
    common.kinds: TensorPy=Tensor security=common.kinds StubTensor=Tensor
    device_context.ascend: is_available=mindspore.helpers.ascend_is_available
    device_context.ascend: device_count=mindspore.helpers.ascend_count
    device_context.gpu: is_available=mindspore.helpers.gpu_is_available
    device_context.gpu: device_count=mindspore.helpers.gpu_count
    mindspore.checkparam: Validator=mindspore.checkparam Rel=mindspore.checkparam
    nn: ResizeBilinear=mindspore.helpers.ResizeBilinear
    numpy: _to_tensor=mindspore.helpers.tensors_of
    ops: control_depend=ops.depend
    ops: _get_cache_prim=mindspore.helpers.cached_primitive
    runtime: is_available=mindspore.helpers.is_available device_count=mindspore.helpers.device_count
    train.model: _StepSync=train.callback.Callback
    common.sparse_tensor: RowTensorInner=common.sparse_tensor.RowTensor
    communication.comm_func: GlobalComm=communication.GlobalComm
    common.api: _no_grad=common.no_grad._no_grad
    nn.layer.activation: Tensor=Tensor
    nn.basic: ClipByNorm=nn.ClipByNorm
    nn.convolution: _check_input_3d=mindspore.checkparam.check_input_3d
    nn.probability.distribution: exp_generic=ops.exp log_generic=ops.log
    nn.probability.distribution: log1p_generic=ops.log1p broadcast_to=Tensor.expand_as
    ops: Tensor=Tensor
    ops: constexpr=common.api.constexpr P=ops.operations
    ops: _primexpr=common.api.constexpr PrimitiveWithInfer=ops.Primitive core=ops.add_flags
    ops: F=ops C=ops PrimitiveWithCheck=ops.Primitive custom_vjp=nn.derivatives.custom_vjp
    ops: zeros_like_impl=ops ones_like_impl=ops contiguous=Tensor.contiguous
    ops: ClipByNorm=nn.ClipByNorm new_ones=Tensor.new_ones new_zeros=Tensor.new_zeros
    ops.composite: add_flags=ops.add_flags core=ops.add_flags
    derivatives.jacobians: custom_vjp=nn.derivatives.custom_vjp
    nn.wrap.cell_wrapper: PipelineCell=parallel.nn.Pipeline
    nn.wrap.cell_wrapper: MicroBatchInterleaved=parallel.nn.MicroBatchInterleaved
    ops.functional: Tensor=Tensor constexpr=common.api.constexpr
    ops.operations: constexpr=common.api.constexpr
    train.model: ParallelMode=context.ParallelMode context=context
    train.serialization: context=context Validator=mindspore.checkparam export=train.onnx.export
    train.serialization: tensor_to_ms_type=mindspore.checkparam.DTYPES
    train.callback: context=context
    train._utils: _make_directory=train.callback.backup._make_directory
    dataset: context=context ds=dataset
    dataset.transforms: vision=dataset.vision
    log: logging=log logger=log
"""
_OTHERS = {
    (
        f"gradcell.{module}".rstrip("."),
        entry.partition("=")[0],
    ): f"gradcell.{entry.partition('=')[2]}"
    for module, entry in absent_names.table(_FOREIGN)
}


def _place(name: str) -> str | None:
    """The module that `name` stands for, or None if there is none."""
    if name in _PLACES or name == _NAME:
        return _PLACES.get(name, "gradcell")
    own = "gradcell" + name[len(_NAME) :]
    if name.rpartition(".")[2].startswith("_") and not _is_own(own):
        asked = _asked_from()
        return own if asked is None or f"{asked}.".startswith(f"{name}.") else None
    return own if _is_absent(own) or _is_own(own) else None


def _is_own(own: str) -> bool:
    package = sys.modules.get(own.rpartition(".")[0])  # the import system has imported it
    path = getattr(package, "__path__", None)
    return bool(path and importlib.machinery.PathFinder.find_spec(own, path))


def _is_absent(own: str) -> bool:
    return own[len("gradcell.") :] in absent_names.MODULES


def _absent(name: str) -> str:
    return f"gradcell has no {_NAME}{name[len('gradcell') :]}"


_told: set[str] = set()


def _tell(message: str) -> None:
    """Print one line on stderr for each name, only once."""
    if message not in _told:
        _told.add(message)
        print(message, file=sys.stderr)


def _is_import() -> bool:
    """Return whether the program asks by `from module import name`."""
    frame = sys._getframe(2)
    return frame.f_code.co_code[frame.f_lasti] == dis.opmap["IMPORT_FROM"]


def _is_private(module: ModuleType | None, name: str) -> bool:
    """Return whether a name, or the module that has it, is private to MindSpore and not here."""
    return name.rpartition(".")[2].startswith("_") or isinstance(module, _Unread)


def _is_tried(frame: FrameType) -> bool:
    """Return whether the program expects an error where it is: within a `try`."""
    code = dis.Bytecode(frame.f_code)
    if sys.version_info >= (3, 11):
        entries = getattr(code, "exception_entries", ())
        return any(e.start <= frame.f_lasti < e.end for e in entries)
    blocks = []
    for i in code:
        if i.offset > frame.f_lasti:
            break
        if i.opname.startswith("SETUP_"):
            blocks.append(i.opname)
        elif i.opname == "POP_BLOCK" and blocks:
            blocks.pop()
    return "SETUP_FINALLY" in blocks


#: The files that stand between a program's import and this one.
_MACHINERY = ("<frozen importlib._bootstrap>", "<frozen importlib._bootstrap_external>")


def _asked_from() -> str | None:
    """The module of MindSpore's that the program's text names, where it is at `from module import name`."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename in (__file__, *_MACHINERY):
        frame = frame.f_back
    if frame is None:
        return None
    passed = [i for i in dis.get_instructions(frame.f_code) if i.offset <= frame.f_lasti]
    if not passed or passed[-1].opname not in ("IMPORT_NAME", "IMPORT_FROM"):
        return None
    module = [str(i.argval) for i in passed if i.opname == "IMPORT_NAME"][-1]
    return module if f"{module}.".startswith(f"{_NAME}.") else None


def _at(path: str) -> object:
    """A module, or what is in one or in a class there."""
    place, _, attribute = path.rpartition(".")
    home = _at(place) if place else importlib.import_module(path)
    if isinstance(home, ModuleType) and place and not hasattr(home, attribute):
        return importlib.import_module(path)
    return getattr(home, attribute) if place else home


def _found_elsewhere(module: ModuleType, name: str) -> object:
    """Find a name that MindSpore's module has and the module here has not. Raises AttributeError."""
    target = _OTHERS.get((module.__name__, name))
    if target is not None:
        return _at(target)
    parent, _, last = module.__name__.rpartition(".")
    for alias in _aliases(parent) if parent else ():
        # mindspore.ops.primitive, as an attribute, is the module of this name that is here, too.
        place = _PLACES.get(f"{alias}.{last}")
        if place and place != module.__name__ and hasattr(importlib.import_module(place), name):
            return getattr(importlib.import_module(place), name)
    for alias in _aliases(module.__name__):
        path = f"{alias}.{name}"
        if path in _PLACES or path[len(_NAME) + 1 :] in absent_names.MODULES:
            return importlib.import_module(path)
        with contextlib.suppress(AttributeError):
            return absent_names.named(path[len(_NAME) + 1 :])
    if _is_own(f"{module.__name__}.{name}"):
        return importlib.import_module(f"{module.__name__}.{name}")
    if name in getattr(sys.modules.get(parent), "__all__", ()):
        return getattr(sys.modules[parent], name)  # MindSpore divides its packages otherwise
    if module.__name__ == "gradcell.ops":
        return importlib.import_module("gradcell.ops.primitives.generated_names").named(name)
    raise AttributeError(name)


def _aliases(place: str) -> list[str]:
    """MindSpore's names of a module here."""
    return [_NAME + place[len("gradcell") :], *(a for a, p in _PLACES.items() if p == place)]


def _say_what_is_missing(module: ModuleType) -> None:
    """Has the module call names that it lacks by MindSpore's full name."""
    own = module.__dict__.get("__getattr__")
    if getattr(own, "says_what_is_missing", False):
        return

    def missing(name: str) -> object:
        part = sys.modules.get(f"{module.__name__}.{name}")
        if part is not None:  # it is being imported
            return part
        if own is not None:
            with contextlib.suppress(AttributeError):
                return own(name)
        if not name.startswith("__"):
            with contextlib.suppress(AttributeError):
                return _found_elsewhere(module, name)
        message = _absent(f"{module.__name__}.{name}")
        if _is_import():
            _tell(message)
            if _is_private(module, name) and not _is_tried(sys._getframe(1)):
                return absent_names.refused(f"{module.__name__}.{name}"[len("gradcell.") :])
            raise ImportError(message, name=name)
        raise AttributeError(message)

    missing.says_what_is_missing = True  # type: ignore[attr-defined]
    module.__getattr__ = missing  # type: ignore[method-assign]


class _Unread(ModuleType):
    """A module whose names are all in absent_names; what a program sets in it is not read."""

    def __setattr__(self, name: str, value: object) -> None:
        super().__setattr__(name, value)
        if not name.startswith("__") and not isinstance(value, ModuleType):
            what = f"{_NAME}{self.__name__[len('gradcell') :]}.{name} = {value!r}"
            notice.once(what, "it is of MindSpore's own compiler")


class _Loader(importlib.abc.Loader):
    """Gives a module that there is under another name."""

    def __init__(self, place: str) -> None:
        self.place = place

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        if self.place not in sys.modules and not _is_own(self.place):
            made = sys.modules[self.place] = _Unread(self.place)
            made.__path__ = []
            _say_what_is_missing(made)
            return made
        return importlib.import_module(self.place)

    def exec_module(self, module: ModuleType) -> None:
        """The module has run already."""


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name.startswith("gradcell."):
            return self._own(name, path)
        if name != _NAME and not name.startswith(_NAME + "."):
            return None
        place = _place(name)
        if place is None:
            _tell(f"gradcell has no {name}")
            raise ModuleNotFoundError(f"gradcell has no {name}", name=name)
        return importlib.machinery.ModuleSpec(name, _Loader(place), is_package=True)

    @staticmethod
    def _own(name: str, path: Sequence[str] | None) -> importlib.machinery.ModuleSpec | None:
        """A module of the package, which is to say what it lacks once it has run."""
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is None:  # `from mindspore.x import name`, with no such name
            asked = _asked_from() or _NAME + name.rpartition(".")[0][len("gradcell") :]
            full = f"{asked}.{name.rpartition('.')[2]}"
            if _is_private(sys.modules.get(name.rpartition(".")[0]), name):  # asked for next
                raise ModuleNotFoundError(full, name=name)
            _tell(f"gradcell has no {full}")
            raise ModuleNotFoundError(f"gradcell has no {full}", name=full)
        loader = spec.loader
        if isinstance(loader, importlib.machinery.SourceFileLoader):
            run = loader.exec_module

            def exec_module(module: ModuleType) -> None:
                run(module)
                _say_what_is_missing(module)

            loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def install() -> None:
    """Has `import mindspore` import gradcell from now on: for notebooks, and programs that are not run by
    `python -m gradcell run`. Call it before the first import of mindspore; what has been imported from an
    installed MindSpore stays what it is. Files are not touched.
    """
    if any(isinstance(f, _Finder) for f in sys.meta_path):
        return
    for name in [n for n in sys.modules if n == _NAME or n.startswith(_NAME + ".")]:
        del sys.modules[name]
    package = importlib.import_module("gradcell")
    for name, module in list(sys.modules.items()):
        if name == "gradcell" or name.startswith("gradcell."):
            _say_what_is_missing(module)
    package.__version__ = VERSION  # type: ignore[attr-defined]
    sys.meta_path.insert(0, _Finder())
    sys.modules[_NAME] = package
