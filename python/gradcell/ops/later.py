"""Which module an op is in that is imported when it is first asked for."""

from __future__ import annotations

_MODULES = {
    "arrangement": """
        atleast_1d atleast_2d atleast_3d broadcast_tensors column_stack diagflat dsplit dstack hsplit
        moveaxis multi_dot numel ravel rot90 row_stack tensor_split tril_indices triu_indices type_as
        view_as vsplit""",
    "linear_algebra": """
        addbmm addmv addr baddbmm block_diag cholesky cholesky_inverse cholesky_solve cross det einsum
        inverse kron logdet matrix_diag matrix_power matrix_solve mv pinv qr slogdet svd tensor_solve
        vander vecdot""",
    "scans": "cummax cummin cumprod diff logcumsumexp trapz",
    "sets": """
        bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor bucketize
        gcd isin lcm searchsorted unique unique_consecutive unique_with_pad""",
    "special": """
        addcdiv addcmul cbrt copysign deg2rad digamma erfinv exp2 fix float_power frac heaviside lgamma
        logaddexp logaddexp2 logit nan_to_num positive rad2deg sgn signbit sinc truncate_div
        truncate_mod xdivy""",
    "statistics": """
        aminmax bincount corrcoef cov histc median nanmean nanmedian nanquantile nansum quantile
        std_mean var_mean""",
}

LATER = {name: module for module, names in _MODULES.items() for name in names.split()}
