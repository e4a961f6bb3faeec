"""python tools/api_reference/examples [--write]: whether the examples print what they say."""

from __future__ import annotations

import importlib
import sys
import textwrap
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))
examples = importlib.import_module("api_reference.examples")

bad = 0
for path in examples.files():
    shown = []
    for name, text in examples.read(path).items():
        try:
            true = examples.written(text)
        except Exception as error:
            print(f"{path.name}: {name}: {type(error).__name__}: {error}")
            true, bad = text, 1
        if true != text and "--write" not in sys.argv:
            print(f"{path.name}: {name} prints\n{true}")
            bad = 1
        shown.append(f"{name}\n{textwrap.indent(true, '    ')}")
    if "--write" in sys.argv:
        path.write_text("\n".join(shown))
sys.exit(bad)
