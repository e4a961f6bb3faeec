"""Questions of training cells about the parallel setting, under MindSpore's module name."""

from gradcell.communication.sharing import (
    _get_device_num as _get_device_num,
    _get_enable_parallel_optimizer as _get_enable_parallel_optimizer,
    _get_full_batch as _get_full_batch,
    _get_global_rank as _get_global_rank,
    _get_gradients_mean as _get_gradients_mean,
    _get_parallel_mode as _get_parallel_mode,
    _get_pipeline_stages as _get_pipeline_stages,
    _is_pynative_parallel as _is_pynative_parallel,
    _shares_data as _shares_data,
)
