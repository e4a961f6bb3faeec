"""Import of DeepXDE with the names of gradcell.deepxde in the place of PyTorch, and the table of
what is replaced. Nothing stays among the loaded modules that others could take for PyTorch."""

from __future__ import annotations

import builtins
import contextlib
import importlib
import importlib.util
import inspect
import io
import os
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from gradcell import mint
from gradcell.base import tracebacks
from gradcell.deepxde import layers, names, optimizers

torch: names.Names = names.Names(
    "torch", {**names.TORCH, "nn": layers.NN, "optim": optimizers.OPTIM}, mint
)
tf: names.Names = names.Names("tensorflow", names.TF)
tf.math = tf  # type: ignore[attr-defined]
jax: names.Names = names.Names("jax", {
    "numpy": names.Names("jax.numpy", names.JNP), "nn": mint.nn.functional})  # fmt: skip

#: What of DeepXDE is replaced: where it is, its parameters, and what takes its place in training.py.
REPLACED = (
    ("model.Model._compile_pytorch", "self, lr, loss_fn, decay", "compile_pytorch"),
    ("zcs.Model._compile_pytorch", "self, lr, loss_fn, decay", "compile_pytorch"),
    ("model.Model._train_pytorch_lbfgs", "self, verbose=1", "train_lbfgs"),
    ("model.Model.predict", "self, x, operator=None, callbacks=None", "predict"),
    ("callbacks.CallbackList.set_model", "self, model", "set_model"),
    ("callbacks.OperatorPredictor.on_predict_end", "self", "on_predict_end"),
    (
        "optimizers.pytorch.optimizers.NNCG",
        "params, lr=1.0, rank=10, mu=0.0001, update_freq=20, chunk_size=1, cg_tol=1e-16, "
        "cg_max_iters=1000, line_search_fn=None, verbose=False",
        "NNCG",
    ),
)

#: What is called and read besides: a version that has not these is refused too.
RELIED_ON = (
    ("model.Model._outputs_losses", "self, training, inputs, targets, auxiliary_vars"),
    ("model.Model._train_step", "self, inputs, targets, auxiliary_vars"),
    ("model.Model._test", "self, verbose=1"),
    ("data.PDE.losses", "self, targets, outputs, loss_fn, inputs, model, aux=None"),
    ("optimizers.get", "params, optimizer, learning_rate=None, decay=None, weight_decay=0"),
    ("gradients.clear", ""),
)


def _stands_for(name: str) -> ModuleType | None:
    """Return our module for the name of PyTorch or of a module in it, else None."""
    first, *rest = name.split(".")
    module: Any = torch
    if first != "torch":
        return None
    for part in rest:
        try:
            module = getattr(module, part)
        except AttributeError as error:
            raise ModuleNotFoundError(str(error), name=name) from None
    return module  # type: ignore[no-any-return]


@contextlib.contextmanager
def torch_for(wants: Callable[[dict[str, Any]], bool]) -> Iterator[None]:
    """While it lasts, modules whose globals `wants` accepts import our names as `torch`."""
    plain = builtins.__import__

    def importing(
        name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0
    ) -> Any:
        if level == 0 and name.partition(".")[0] == "torch" and globals and wants(globals):
            found = _stands_for(name)
            return found if fromlist else torch
        return plain(name, globals, locals, fromlist, level)

    builtins.__import__ = importing
    try:
        yield
    finally:
        builtins.__import__ = plain


def script_imports(directory: str) -> contextlib.AbstractContextManager[None]:
    """Our names as `torch` for a script and the modules in its folder."""
    inside = os.path.join(os.path.abspath(directory), "")

    def wants(space: dict[str, Any]) -> bool:
        file = os.path.abspath(space.get("__file__") or "")
        return space.get("__name__") == "__main__" or (
            file.startswith(inside) and "site-packages" not in file
        )

    return torch_for(wants)


def _of(package: ModuleType, path: str) -> Any:
    found: Any = package
    for part in path.split("."):
        found = getattr(found, part)
    return found


def _parameters(function: Any) -> str:
    parameters = inspect.signature(function).parameters.values()
    plain = [p.replace(annotation=inspect.Parameter.empty) for p in parameters]
    return str(inspect.Signature(plain))[1:-1]


def check(package: Any) -> None:
    """Raises ImportError unless the version has the functions that are replaced or relied on."""
    for path, expected, *_ in (*REPLACED, *RELIED_ON):
        try:
            found = _parameters(_of(package, path))
        except AttributeError:
            found = None
        if found != expected:
            what = "is missing" if found is None else f"has the parameters ({found})"
            raise ImportError(
                f"gradcell.deepxde does not know DeepXDE {package.__version__}: deepxde.{path} {what}, "
                f"not ({expected}). It knows 1.13 to 1.15"
            )


def load() -> ModuleType:
    """Imports DeepXDE on our names. Raises ImportError where it is imported already, is not installed
    or is of a version that differs."""
    if "deepxde" in sys.modules:
        raise ImportError(
            "deepxde is imported already, on another backend: import gradcell.deepxde before it"
        )
    found = importlib.util.find_spec("deepxde")
    if found is None or found.origin is None:
        raise ImportError("DeepXDE is not installed: pip install 'gradcell[deepxde]'")
    # Messages name the line of the script, not that of DeepXDE which called what they tell of.
    tracebacks.leave_out(os.path.dirname(os.path.abspath(found.origin)))
    before = os.environ.get("DDE_BACKEND")
    os.environ["DDE_BACKEND"] = "pytorch"
    said = io.StringIO()
    try:
        with torch_for(lambda space: space.get("__name__", "").split(".")[0] == "deepxde"):
            with contextlib.redirect_stderr(said):
                package = importlib.import_module("deepxde")
        check(package)
    except BaseException:
        for name in [n for n in sys.modules if n.split(".")[0] == "deepxde"]:
            del sys.modules[name]
        sys.stderr.write(said.getvalue())
        raise
    finally:
        if before is None:
            del os.environ["DDE_BACKEND"]
        else:
            os.environ["DDE_BACKEND"] = before
    print(
        f"DeepXDE {package.__version__} on gradcell (its backend is called pytorch).",
        file=sys.stderr,
    )
    return package


def replace(package: Any) -> None:
    """Puts our functions in the place of DeepXDE's, and TensorFlow's and JAX's names beside them."""
    from gradcell.deepxde import training

    training.begin(package)
    for path, _, ours in REPLACED:
        owner, _, name = path.rpartition(".")
        setattr(_of(package, owner), name, getattr(training, ours))
    backend = sys.modules["deepxde.backend"]
    backend.tf, backend.torch, backend.jax = tf, torch, jax  # type: ignore[attr-defined]
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] == "deepxde" and hasattr(module, "tf"):
            vars(module)["tf"] = tf  # DeepXDE has a function there, which tells nothing
    names.add_methods()
