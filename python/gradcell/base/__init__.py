"""The foundation of all packages: trees of tensors, checks of arguments, errors and warnings with
the user's line.

In: Python values. Out: tensors, dtypes, checked numbers, texts. It knows the core and nothing above itself.
"""

from __future__ import annotations

from gradcell.base.errors import (  # isort: skip
    bad_index as bad_index, bad_key as bad_key, bad_type as bad_type, bad_value as bad_value,
    fail as fail, unsupported as unsupported, where as where,
)  # fmt: skip
from gradcell.base.public import explain as explain, later as later, publish as publish
