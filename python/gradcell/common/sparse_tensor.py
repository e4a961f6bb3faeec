"""Sparse tensors: holders of indices, values and a shape, which turn into each other and into tensors.

Ops do not take them; to_dense() gives a tensor that they take.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from gradcell import _core, ops
from gradcell._core import Tensor
from gradcell.base import arguments, bad_value, explain

__all__ = ["COOTensor", "CSRTensor", "RowTensor", "SparseTensor"]


def _shape(shape: Any, owner: str) -> tuple[int, ...]:
    return tuple(arguments.integers(shape, owner, "shape"))


class _Sparse:
    """Base class of sparse tensors: values and a shape."""

    def __init__(self, values: Any, shape: Any) -> None:
        self.values: Tensor = arguments.tensor(values, type(self).__name__, "values")
        self.shape: tuple[int, ...] = _shape(shape, type(self).__name__)

    @functools.cached_property
    def dtype(self) -> _core.DType:
        """The dtype of the values."""
        return self.values.dtype

    @functools.cached_property
    def ndim(self) -> int:
        """The number of dimensions of the tensor that this stands for."""
        return len(self.shape)

    @functools.cached_property
    def size(self) -> int:
        """The number of values."""
        return self.values.size

    @functools.cached_property
    def dense_shape(self) -> tuple[int, ...]:
        """The shape of the tensor that this stands for."""
        return self.shape

    def asnumpy(self) -> np.ndarray:
        """The tensor that this stands for, as an array."""
        return self.to_dense().asnumpy()

    def to_dense(self) -> Tensor:
        """The tensor that this stands for."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}(shape={list(self.shape)}, dtype={self.dtype}, values={self.values})"


class COOTensor(_Sparse):
    """Values at positions: indices [n, rank], values [n]; values for the same position are added.

    indices: int tensor [n, rank]. coo_tensor: another COOTensor to copy, in place of the other
    arguments.
    """

    def __init__(
        self, indices: Any = None, values: Any = None, shape: Any = None, coo_tensor: Any = None
    ) -> None:
        if coo_tensor is not None:
            indices, values, shape = coo_tensor.indices, coo_tensor.values, coo_tensor.shape
        super().__init__(values, shape)
        self.indices: Tensor = arguments.tensor(indices, type(self).__name__, "indices")
        if list(self.indices.shape) != [self.values.size, len(self.shape)]:
            bad_value(
                f"For COOTensor, indices of shape {list(self.indices.shape)} do not fit {self.values.size} "
                f"values and shape {list(self.shape)}"
            )

    def to_dense(self) -> Tensor:
        """The tensor with the values at their places, zeros elsewhere."""
        return ops.scatter_nd(self.indices, self.values, self.shape)

    def to_tuple(self) -> tuple[Tensor, Tensor, tuple[int, ...]]:
        """(indices, values, shape)."""
        return self.indices, self.values, self.shape

    def astype(self, dtype: Any) -> COOTensor:
        """With values of another dtype."""
        return COOTensor(self.indices, ops.cast(self.values, dtype), self.shape)

    def abs(self) -> COOTensor:
        """With the absolute values."""
        return COOTensor(self.indices, ops.abs(self.values), self.shape)

    def to_csr(self) -> CSRTensor:
        """The same matrix by rows. Raises ValueError unless there are two dimensions."""
        if self.ndim != 2:
            bad_value(f"to_csr: two dimensions are needed, got {list(self.shape)}")
        places = self.indices.asnumpy()
        order = np.lexsort((places[:, 1], places[:, 0]))
        counts = np.bincount(places[:, 0], minlength=self.shape[0])
        indptr = np.concatenate([[0], np.cumsum(counts)]).astype(places.dtype)
        columns = Tensor(np.ascontiguousarray(places[order, 1]))
        values = ops.gather(self.values, Tensor(order), 0)
        return CSRTensor(Tensor(indptr), columns, values, self.shape)


SparseTensor = COOTensor


class CSRTensor(_Sparse):
    """A matrix by rows: row i has the values and columns from indptr[i] to indptr[i + 1].

    indptr: int tensor [rows + 1]. indices: int tensor [n], the column of each value. csr_tensor:
    another CSRTensor to copy, in place of the other arguments.
    """

    def __init__(
        self, indptr: Any = None, indices: Any = None, values: Any = None, shape: Any = None,
        csr_tensor: Any = None,
    ) -> None:  # fmt: skip
        if csr_tensor is not None:
            indptr, indices = csr_tensor.indptr, csr_tensor.indices
            values, shape = csr_tensor.values, csr_tensor.shape
        super().__init__(values, shape)
        self.indptr: Tensor = arguments.tensor(indptr, "CSRTensor", "indptr")
        self.indices: Tensor = arguments.tensor(indices, "CSRTensor", "indices")
        have = self.indptr.size, self.indices.size
        if len(self.shape) != 2 or have != (self.shape[0] + 1, self.values.size):
            bad_value(
                f"For CSRTensor, indptr of {self.indptr.size} and indices of {self.indices.size} elements do "
                f"not fit {self.values.size} values and shape {list(self.shape)}"
            )

    def to_coo(self) -> COOTensor:
        """The same matrix in coordinate form."""
        counts = np.diff(self.indptr.asnumpy())
        rows = np.repeat(np.arange(self.shape[0]), counts)
        places = np.stack([rows, self.indices.asnumpy()], 1).astype(self.indices.asnumpy().dtype)
        return COOTensor(Tensor(places), self.values, self.shape)

    def to_dense(self) -> Tensor:
        """The matrix with the values at their places, zeros elsewhere."""
        return self.to_coo().to_dense()

    def to_tuple(self) -> tuple[Tensor, Tensor, Tensor, tuple[int, ...]]:
        """(indptr, indices, values, shape)."""
        return self.indptr, self.indices, self.values, self.shape

    def astype(self, dtype: Any) -> CSRTensor:
        """With values of another dtype."""
        return CSRTensor(self.indptr, self.indices, ops.cast(self.values, dtype), self.shape)

    def mm(self, matrix: Any) -> Tensor:
        """The product with a matrix."""
        return ops.matmul(self.to_dense(), matrix)

    mv = mm


class RowTensor(_Sparse):
    """Slices of a tensor: values [n, ...] are its rows at indices [n].

    indices: int tensor [n]. row_tensor: another RowTensor to copy, in place of the other arguments.
    """

    def __init__(
        self, indices: Any = None, values: Any = None, shape: Any = None, row_tensor: Any = None
    ) -> None:
        if row_tensor is not None:
            indices, values, shape = row_tensor.indices, row_tensor.values, row_tensor.shape
        super().__init__(values, shape)
        self.indices: Tensor = arguments.tensor(indices, "RowTensor", "indices")
        if tuple(self.values.shape) != (self.indices.size, *self.shape[1:]):
            bad_value(
                f"For RowTensor, values of shape {list(self.values.shape)} do not fit {self.indices.size} "
                f"indices and shape {list(self.shape)}"
            )

    def to_dense(self) -> Tensor:
        """The tensor with the rows at their places, those for one place added, zeros elsewhere."""
        return ops.index_add(ops.zeros(self.shape, self.dtype), self.indices, self.values, 0)


explain(globals())
