"""The settings of MindSpore's search for a way to divide a network: with one process there is none."""

from __future__ import annotations

from typing import Any

from gradcell.base import notice

_values: dict[str, Any] = {}


def set_cost_model_context(**kwargs: Any) -> None:
    """Keeps the options. Warns once: nothing is searched."""
    notice.once("set_cost_model_context", "one process computes everything, nothing is divided")
    _values.update(kwargs)


def get_cost_model_context(attr_key: str) -> Any:
    """Return the value that set_cost_model_context has set, or None."""
    return _values.get(attr_key)


def reset_cost_model_context() -> None:
    """Forgets all options."""
    _values.clear()


def _set_multi_subgraphs(multi_subgraph: bool = True) -> None:
    set_cost_model_context(multi_subgraphs=multi_subgraph)


def _get_multi_subgraphs() -> Any:
    return get_cost_model_context("multi_subgraphs")
