"""MindSpore in graph mode."""

from __future__ import annotations

from typing import Any

from steps import Step, mindspore_api

ms = mindspore_api.use("mindspore")


def build(kind: str, params: dict[str, Any], variant: str) -> Step | None:
    return mindspore_api.build(kind, params, compiled=kind != "mlp", wait=ms.runtime.synchronize)
