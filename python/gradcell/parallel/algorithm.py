"""MindSpore's search for a way to divide a network over processes; here none is divided."""

from __future__ import annotations

from typing import Any

from gradcell.base import bad_value, notice
from gradcell.nn.cell import Cell

_DEFAULTS: dict[str, Any] = {
    "fully_use_devices": False, "elementwise_op_strategy_follow": False,
    "enable_algo_approxi": False, "algo_approxi_epsilon": 0.1, "tensor_slice_align_enable": False,
    "tensor_slice_align_size": 16,
}  # fmt: skip
_values = dict(_DEFAULTS)

_WHY = "every process computes the whole network: no network is divided"


def set_algo_parameters(**kwargs: Any) -> None:
    """Stores options of MindSpore's search for a way to divide a network, which gradcell does not
    use.

    kwargs: options by name. Raises ValueError for an unknown one; warns once.
    """
    for name in kwargs:
        if name not in _DEFAULTS:
            bad_value(f"Set context keyword {name} is not recognized!")
    notice.once("set_algo_parameters", _WHY)
    _values.update(kwargs)


def get_algo_parameters(attr_key: str) -> Any:
    """The value of an option that set_algo_parameters sets. Raises ValueError for an unknown one.

    attr_key: the name of the option.
    """
    if attr_key not in _values:
        bad_value(f"Get context keyword {attr_key} is not recognized!")
    return _values[attr_key]


def reset_algo_parameters() -> None:
    """Resets all options to their first values."""
    _values.update(_DEFAULTS)


def shard(fn: Any, in_strategy: Any, out_strategy: Any = None, parameter_plan: Any = None) -> Any:
    """fn itself. Warns once: the strategies divide nothing.

    fn: a function or a Cell. in_strategy, out_strategy and parameter_plan have no effect.
    """
    notice.once("shard", _WHY)
    return fn


def sync_pipeline_shared_parameters(net: Any) -> None:
    """Nothing is to be done: all stages are in this process, and share their parameters.

    net has no effect.
    """


class Layout:
    """The layout of a tensor on an array of devices: Layout(device_matrix, alias_name)('dp',
    'None').

    device_matrix: the sizes of the array of devices, a tuple. alias_name: a name for each of its
    axes. rank_list: the numbers of the devices, which are stored.
    """

    def __init__(self, device_matrix: Any, alias_name: Any, rank_list: Any = None) -> None:
        if len(device_matrix) != len(alias_name):
            bad_value(
                f"Layout: device_matrix {device_matrix} and alias_name {alias_name} differ in length"
            )
        self.device_matrix: tuple[Any, ...] = tuple(device_matrix)
        self.alias_name: tuple[Any, ...] = tuple(alias_name)
        self.rank_list: Any = rank_list
        self.tensor_map: tuple[Any, ...] = ()

    def __call__(self, *tensor_map: Any) -> Layout:
        """This layout for a tensor whose dimensions are cut along the named axes."""
        out = Layout(self.device_matrix, self.alias_name, self.rank_list)
        out.tensor_map = tensor_map
        return out


class AutoParallel(Cell):
    """A network whose work MindSpore would divide: the network itself, in one process.

    Its methods keep MindSpore's settings; the first warns that nothing is divided.
    """

    def __init__(self, network: Cell, parallel_mode: str = "semi_auto") -> None:
        super().__init__(auto_prefix=False)
        self.network: Cell = network
        self._parallel_mode = parallel_mode

    def construct(self, *args: Any, **kwargs: Any) -> Any:
        """Return the network's output."""
        return self.network(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name in _SETTINGS:
            notice.once(f"AutoParallel.{name}", _WHY)
            return lambda *args, **kwargs: None
        return super().__getattr__(name)


_SETTINGS = frozenset(
    """comm_fusion dataset_strategy disable_strategy_file_only_for_trainable_params
    dump_local_norm enable_device_local_norm enable_fp32_communication enable_gradients_mean
    full_batch hsdp init_param_in_compile load_operator_strategy_file load_param_strategy_file
    no_init_parameters_in_compile pipeline print_local_norm save_operator_strategy_file
    save_param_strategy_file set_group_ckpt_save_file set_optimizer_weight_shard_size
    transformer_opt""".split()
)
