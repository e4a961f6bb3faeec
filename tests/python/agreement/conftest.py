"""What rows of tables set for the whole process goes back to what it was."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Any

import pytest

from gradcell.dataset import config


@pytest.fixture(autouse=True)
def settings_of_datasets() -> Iterator[None]:
    def settings() -> dict[str, Any]:
        kept = (str, int, float, dict, list, types.NoneType)
        return {k: v for k, v in vars(config).items() if k[:2] != "__" and isinstance(v, kept)}

    before = {k: v.copy() if isinstance(v, (dict, list)) else v for k, v in settings().items()}
    yield
    for name, now in settings().items():
        if isinstance(now, (dict, list)):
            now.clear()
            now.update(before[name]) if isinstance(now, dict) else now.extend(before[name])
        else:
            setattr(config, name, before[name])
