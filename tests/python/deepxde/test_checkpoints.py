"""PyTorch's files on gradcell. golden/deepxde_adam.pt was written by DeepXDE 1.15 on PyTorch 2.13: the
network and data below after 10 steps of Adam; deepxde_adam.json has the weights then and 5 steps later."""

from __future__ import annotations

import importlib.util
import json
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

if importlib.util.find_spec("deepxde") is None:
    pytest.skip("needs DeepXDE", allow_module_level=True)

from gradcell.deepxde import dde, torch
from gradcell.files import pytorch

GOLDEN = Path(__file__).parents[1] / "golden"
WANTED = json.loads((GOLDEN / "deepxde_adam.json").read_text())


def model(optimizer: str = "adam", width: int = 5) -> Any:
    x = np.linspace(-0.8, 1, 9, dtype="f4")[:, None]
    data = dde.data.DataSet(X_train=x, y_train=np.sin(3 * x), X_test=x, y_test=x)
    found = dde.Model(data, dde.nn.FNN([1, width, 1], "tanh", "Glorot uniform"))
    found.compile(optimizer, lr=1e-2, verbose=0)
    return found


def weights(model: Any) -> Any:
    return np.concatenate([p.asnumpy().reshape(-1) for p in model.net.parameters()])


def test_training_goes_on_from_pytorchs_file() -> None:
    begun = model()
    begun.restore(str(GOLDEN / "deepxde_adam.pt"))
    np.testing.assert_array_equal(weights(begun), np.array(WANTED["saved"], "f4"))
    begun.train(iterations=5, display_every=5, verbose=0)
    np.testing.assert_allclose(weights(begun), WANTED["after 5 steps"], rtol=1e-5, atol=1e-7)


def test_the_learning_rate_is_the_saved_one() -> None:
    begun = model()
    begun.compile("adam", lr=0.5, verbose=0)
    begun.restore(str(GOLDEN / "deepxde_adam.pt"))
    begun.train(iterations=5, display_every=5, verbose=0)
    np.testing.assert_allclose(weights(begun), WANTED["after 5 steps"], rtol=1e-5, atol=1e-7)


def test_other_networks_and_optimizers_are_told() -> None:
    with pytest.raises(ValueError, match=r"linears\.0\.weight has shape"):
        model(width=6).restore(str(GOLDEN / "deepxde_adam.pt"))
    with pytest.raises(KeyError, match="of another optimizer"):
        model("rmsprop").restore(str(GOLDEN / "deepxde_adam.pt"))


def archive(path: Path, content: bytes, **members: bytes) -> str:
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("archive/data.pkl", content)
        for name, data in members.items():
            file.writestr(f"archive/{name}", data)
    return str(path)


class _Calls:
    def __reduce__(self) -> Any:
        return print, ("it ran",)


def test_a_file_runs_no_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = archive(tmp_path / "bad.pt", pickle.dumps({"a": _Calls()}))
    with pytest.raises(ValueError, match="only numbers and tensors are read"):
        torch.load(path)
    assert "it ran" not in capsys.readouterr().out


def test_a_tensor_outside_its_storage_and_a_cut_file(tmp_path: Path) -> None:
    with pytest.raises(IndexError, match="outside its storage"):
        pytorch._tensor(np.zeros(4, "f4"), 0, (3, 2), (2, 1))
    with pytest.raises(ValueError, match="cannot be read"):
        torch.load(archive(tmp_path / "cut.pt", pickle.dumps({"a": 1})[:-4]))
    with pytest.raises(ValueError, match="another byte order"):
        torch.load(archive(tmp_path / "big.pt", pickle.dumps({}), byteorder=b"big"))


def test_views_are_read_as_they_were() -> None:
    storage = np.arange(6, dtype="f4")
    np.testing.assert_array_equal(pytorch._tensor(storage, 1, (2, 2), (1, 2)), [[1, 3], [2, 4]])
    assert pytorch._tensor(storage, 0, (), ()).shape == ()
    assert pytorch._tensor(storage, 0, (0, 3), (3, 1)).shape == (0, 3)
