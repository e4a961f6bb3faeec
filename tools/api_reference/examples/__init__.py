"""Examples of public names: text files, a name and under it, indented, what one types and what Python
prints.

They are not in the docstrings: most functions' docstrings come from tables (op rows, spellings), and
text that only the site shows would be read at every import. tests/python/documents/test_reference.py runs
them; after a change `python tools/api_reference/examples --write` puts in what is printed.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
import tempfile
import textwrap
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent

#: What every example begins with.
IMPORTS = """\
import numpy as np
import gradcell as gc
from gradcell import Tensor, amp, dataset, nn, ops, train

np.set_printoptions(precision=4, suppress=True)
"""


def read(path: Path) -> dict[str, str]:
    """The examples of a file by name. Raises ValueError for a name that stands there twice."""
    found: dict[str, str] = {}
    for name, body in re.findall(r"^(\S+)\n((?:[ ]{4}.*\n|\n)+)", path.read_text(), re.M):
        if name in found:
            raise ValueError(f"{path.name} has two examples of {name}")
        found[name] = textwrap.dedent(body).strip() + "\n"
    return found


def files() -> list[Path]:
    return sorted(HERE.glob("*.txt"))


EXAMPLES: dict[str, str] = {}
for _path in files():
    for _name, _text in read(_path).items():
        if _name in EXAMPLES:
            raise ValueError(f"{_path.name}: {_name} has an example in another file")
        EXAMPLES[_name] = _text


def run(text: str) -> list[tuple[doctest.Example, str]]:
    """Each statement of an example with what it printed, in a namespace and a folder of its own."""
    namespace: dict[str, Any] = {"__name__": "__example__"}
    results = []
    here, printing = os.getcwd(), _options()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            exec(IMPORTS, namespace)
            for example in doctest.DocTestParser().get_examples(text):
                out = io.StringIO()
                with contextlib.redirect_stdout(out):
                    exec(compile(example.source, "example.py", "single"), namespace)
                results.append((example, out.getvalue()))
        finally:
            os.chdir(here)
            _set_options(printing)
    return results


def _options() -> dict[str, Any]:
    import numpy as np

    return np.get_printoptions()


def _set_options(options: dict[str, Any]) -> None:
    import numpy as np

    np.set_printoptions(precision=options["precision"], suppress=options["suppress"])


def written(text: str) -> str:
    """The example with what it prints."""
    lines = []
    for example, out in run(text):
        first, *rest = example.source.splitlines()
        lines += [
            f">>> {first}",
            *(f"... {line}".rstrip() for line in rest),
            *out.rstrip().splitlines(),
        ]
    return "\n".join(lines) + "\n"
