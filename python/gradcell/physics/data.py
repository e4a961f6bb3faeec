"""Measurements and other programs' solutions from files."""

from __future__ import annotations

import csv
import importlib
from pathlib import Path
from typing import Any

import numpy as np

from gradcell.base import bad_value, where
from gradcell.physics.points import Array

__all__ = ["columns"]


def columns(path: Any) -> dict[str, Array]:
    """Return the columns of a file by name, each [n, 1] or [n, k] of float64, as residuals take them.

    path: a table of numbers with a line of names above (.csv; .tsv with tabs); or a mesh (.vtk, .vtu and what
    else meshio reads), whose columns are "x", "y", "z" and the data of its points. Raises ValueError with the
    line for what is no number, ImportError for a mesh without meshio.
    """
    file = Path(path)
    if file.suffix.lower() not in (".csv", ".tsv", ".txt"):
        return _of_mesh(file)
    with file.open(newline="", encoding="utf-8-sig") as opened:
        rows = list(csv.reader(opened, delimiter="\t" if file.suffix.lower() == ".tsv" else ","))
    names, found = [name.strip() for name in rows[0]] if rows else [], []
    for number, row in enumerate(rows[1:], 2):
        if not row:
            continue
        try:
            found.append([float(cell) for cell in row])
            if len(row) != len(names):
                raise ValueError
        except ValueError:
            bad_value(
                f"columns: line {number} of {file} should be {len(names)} numbers, as many as there are "
                f"names, but is {row}"
            )
    if not found or len(set(names)) != len(names):
        bad_value(
            f"columns: {file} should have different names above lines of numbers, got {names}"
        )
    return dict(zip(names, np.array(found).T[:, :, None], strict=True))


def _of_mesh(file: Path) -> dict[str, Array]:
    try:
        meshio: Any = importlib.import_module("meshio")
    except ImportError as error:
        raise ImportError(
            f"columns: {file.suffix} files need meshio: pip install 'gradcell[shapes]'{where()}"
        ) from error
    mesh = meshio.read(file)
    found = {name: np.asarray(values, np.float64) for name, values in mesh.point_data.items()}
    axes = dict(zip("xyz", np.asarray(mesh.points, np.float64).T, strict=False))
    return {
        name: values.reshape(len(mesh.points), -1) for name, values in {**found, **axes}.items()
    }
