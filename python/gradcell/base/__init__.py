"""The foundation of all packages: trees of tensors, checks of arguments, errors and warnings with
the user's line.

In: Python values. Out: tensors, dtypes, checked numbers, texts. It knows the core and nothing above itself.
"""

from gradcell.base.cells import CellBase as CellBase
from gradcell.base.convert import has_numpy_dtype as has_numpy_dtype, to_dtype as to_dtype
from gradcell.base.door import is_tensor as is_tensor, with_tensors as with_tensors
from gradcell.base.places import place_type as place_type
from gradcell.base.public import explain as explain, later as later, publish as publish
from gradcell.base.remade import Made as Made, Remade as Remade, transform as transform

from gradcell.base.errors import (  # isort: skip
    bad_index as bad_index, bad_key as bad_key, bad_type as bad_type, bad_value as bad_value,
    fail as fail, unsupported as unsupported, where as where,
)  # fmt: skip
from gradcell.base.signposts import (  # isort: skip
    explains_arguments as explains_arguments, kind_of as kind_of, missing as missing,
    wrong_argument as wrong_argument,
)  # fmt: skip
from gradcell.base.types import (  # isort: skip
    Array as Array, Axis as Axis, DTypeLike as DTypeLike, Shape as Shape, TensorLike as TensorLike,
)  # fmt: skip
