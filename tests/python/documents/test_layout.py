"""How the source is laid out: which module may know which."""

import ast
import functools
import importlib
import inspect
import pkgutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import gradcell

ROOT = Path(gradcell.__file__).parent


@functools.cache
def modules():
    """{module: file}, the package's own first; the core counts as a module."""
    found = {"gradcell._core": None}
    for file in sorted(ROOT.rglob("*.py")):
        parts = ["gradcell", *file.relative_to(ROOT).with_suffix("").parts]
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


def imported(source, module, known):
    """The modules that `module` imports, in functions and for type checkers too.

    A module stands on those it names and on the packages around them, whose `__init__` runs first;
    the packages that it is itself in have begun to run by then, and count only where they are named.
    """
    return imported_by(nodes(source), module, known)


@functools.cache
def nodes(source):
    """The imports, calls and attributes of a text, which is parsed once."""
    kinds = (ast.Import, ast.ImportFrom, ast.Call, ast.Attribute)
    return [node for node in ast.walk(ast.parse(source)) if isinstance(node, kinds)]


def imported_by(nodes, module, known):
    around = {module.rsplit(".", k)[0] for k in range(1, module.count(".") + 1)}
    named = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            named |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: a relative import"
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                named.add(whole if whole in known else node.module)
    named = {name for name in named if name in known}
    outer = {name.rsplit(".", k)[0] for name in named for k in range(1, name.count(".") + 1)}
    return (named | (outer - around)) - {module}


def cycle(graph):
    """Some cycle of the graph as a list of its nodes, or None."""
    done, path = set(), []

    def walk(node):
        if node in path:
            return [*path[path.index(node) :], node]
        if node in done:
            return None
        path.append(node)
        for below in sorted(graph[node]):
            found = walk(below)
            if found:
                return found
        path.pop()
        done.add(node)
        return None

    return next(filter(None, map(walk, graph)), None)


def without_lazy_parts(graph, files):
    """The graph without what a package's `__init__` names for type checkers only: at run time its
    `__getattr__` imports it, when it is asked for."""
    known = set(files)
    for module, file in files.items():
        if file is None or file.name != "__init__.py":
            continue
        tree = ast.parse(file.read_text())
        for node in tree.body:
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
                node.body = [ast.Pass()]
        graph[module] = imported_by(list(ast.walk(tree)), module, known)
    return graph


def test_modules_do_not_import_each_other_in_a_circle():
    files = modules()
    graph = {
        name: imported(file.read_text(), name, set(files)) if file else set()
        for name, file in files.items()
    }
    found = cycle(without_lazy_parts(graph, files))
    assert found is None, " -> ".join(found)


def test_a_circle_is_found():
    known = {"gradcell", "gradcell.a", "gradcell.a.x", "gradcell.b", "gradcell.b.y"}
    sources = {
        "gradcell": "",
        "gradcell.a": "from gradcell.a.x import f",
        "gradcell.a.x": "def f():\n    from gradcell.b import y",
        "gradcell.b": "",
        "gradcell.b.y": "import gradcell.a",
    }
    graph = {name: imported(text, name, known) for name, text in sources.items()}
    assert cycle(graph) == ["gradcell.a", "gradcell.a.x", "gradcell.b.y", "gradcell.a"]
    graph["gradcell.b.y"] = imported("import gradcell.a.x", "gradcell.b.y", known)
    assert cycle(graph) is not None
    graph["gradcell.b.y"] = set()
    assert cycle(graph) is None


#: The rooms and modules at the root, lowest first: each imports only what is in lines above its own, in
#: functions and by importlib.import_module too. (`gradcell` itself and `__main__` are the roof.)
FLOORS = """
    _core
    base
    dtype tree
    files mindrecord
    context cuda
    communication
    compilation profiler runtime log
    tensors
    derivatives
    debug
    ops
    common random
    nn
    schedules solvers
    amp boost dataset mint numpy parallel physics scipy show
    train
    array_api demo deepxde mindspore
"""


def asked_for(source):
    """The modules that importlib.import_module is called with, where the text says which."""
    return {
        node.args[0].value
        for node in nodes(source)
        if isinstance(node, ast.Call)
        and node.args
        and isinstance(node.args[0], ast.Constant)
        and ast.unparse(node.func).endswith("import_module")
    }


def rooms_of(package, graph):
    """{room: those that it imports} of a package: its modules and packages, but for `__init__`, its roof."""
    depth = package.count(".") + 2

    def within(module):
        return ".".join(module.split(".")[:depth]) if module.startswith(f"{package}.") else None

    rooms = {}
    for module, below in graph.items():
        here = within(module)
        if here:
            rooms.setdefault(here, set()).update(filter(None, map(within, below)))
    return {here: below - {here} for here, below in rooms.items()}


def room(module):
    return [*module.split("."), ""][1]


@functools.cache
def homes(package):
    """{name: the module that a package's `__init__` has it from}, also where that is asked for later."""
    found = {}
    for node in ast.walk(ast.parse(modules()[package].read_text())):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                star = importlib.import_module(node.module).__all__ if alias.name == "*" else ()
                found.update(dict.fromkeys(star or [alias.asname or alias.name], node.module))
    later = getattr(importlib.import_module(package), "_LATER", {})
    return {**found, **{n: f"{package}.{place or n}" for n, place in later.items()}}


def home(place, name):
    """The module in which a name of a module is, followed through packages."""
    files = modules()
    if f"{place}.{name}" in files:
        return f"{place}.{name}"
    file = files.get(place)
    if file is None or file.name != "__init__.py" or homes(place).get(name, place) == place:
        return place
    return home(homes(place)[name], name)


@functools.cache
def used(module):
    """{the modules that a module's text names or whose names it uses, through packages, too}."""
    source, found, packages = modules()[module].read_text(), set(), {}
    for node in nodes(source):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name == "gradcell":
                    packages[alias.asname or "gradcell"] = "gradcell"
                else:
                    found.add(alias.name)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                place = home(node.module, alias.name)
                file = modules().get(place)
                if file is not None and file.name == "__init__.py" and alias.name != "*":
                    packages[alias.asname or alias.name] = place
                else:
                    found.add(place)
    for node in nodes(source):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.value.id in packages:
                found.add(home(packages[node.value.id], node.attr))
    later = asked_for(source)
    return {name for name in found | set(packages.values()) | later if name in modules()}


#: The pairs of rooms that are against the order, with the reason: at most five.
AGAINST = {
    (
        "context",
        "communication",
    ): "MindSpore has the settings of processes that share work there too",
}


def pairs():
    """{(a room, one that it imports): [(module, module), ...]}, without what the roofs do."""
    found = {}
    for name, file in modules().items():
        if file is not None and room(name) not in ("", "__main__"):
            for other in used(name):
                if room(other) not in ("", room(name)):
                    found.setdefault((room(name), room(other)), []).append((name, other))
    return found


def test_a_room_imports_what_is_below_it():
    """Names of `gradcell` itself count for the room that they are in."""
    height = {
        name: level
        for level, line in enumerate(FLOORS.strip().splitlines())
        for name in line.split()
    }
    assert {room(name) for name in modules()} - {"", "__main__"} == set(height)
    found = pairs()
    assert len(found) > 100
    wrong = {(a, b): where for (a, b), where in found.items() if height[b] >= height[a]}
    assert set(wrong) == set(AGAINST), wrong
    assert len(AGAINST) <= 5


#: What is MindSpore's, DeepXDE's and for show, or stands on both halves (train.step): no module of the core
#: imports it or takes names of it. All the other modules are the core. (Packages' `__init__` name both.)
BESIDE_THE_CORE = """
    amp array_api boost dataset deepxde demo log mindrecord mindspore mint numpy parallel runtime scipy
    common._grad_function common.api common.generator common.kinds common.sparse_tensor
    nn.dynamic_lr nn.fused nn.held_primitives nn.images nn.margins nn.metrics nn.op_cells
    nn.probability nn.wrap
    ops.composite ops.functional ops.operations ops.primitives
    train.amp train.callback train.data train.dataset_helper train.loss_scale_manager train.model
    train.onnx train.onnx_rules train.onnx_writer train.step train.summary
""".split()


def beside_the_core(module):
    parts = module.split(".")[1:]
    return any(".".join(parts[:k]) in BESIDE_THE_CORE for k in range(1, len(parts) + 1))


def test_the_core_imports_nothing_of_what_is_beside_it():
    files = {name: file for name, file in modules().items() if file is not None}
    assert [n for n in BESIDE_THE_CORE if f"gradcell.{n}" not in files] == []
    roofs = {name for name, file in files.items() if file.name == "__init__.py"} | {
        "gradcell.__main__"
    }
    core = [name for name in files if not beside_the_core(name) and name not in roofs]
    assert {"gradcell.nn.cell", "gradcell.derivatives.transform"} <= set(core)
    wrong = {name: sorted(filter(beside_the_core, used(name))) for name in core}
    assert {name: others for name, others in wrong.items() if others} == {}


def test_names_are_followed_to_where_they_are():
    assert home("gradcell", "grad") == "gradcell.derivatives.transform"
    assert home("gradcell", "Tensor") == "gradcell._core"
    assert home("gradcell.ops", "ReLU") == "gradcell.ops.primitives.classes"
    assert home("gradcell.ops", "cholesky") == "gradcell.ops.matrices.factorisations"
    assert home("gradcell.nn", "Dense") == "gradcell.nn.basic"
    assert home("gradcell", "Model") == "gradcell.train.model"


def test_gradcell_loads_what_differentiating_a_function_needs():
    """Not what talks to other processes, unless NumPy does; no losses, no classes of ops, no layers."""

    def loaded_by(module):
        text = f"import sys, {module}; print(*sys.modules)"
        ran = subprocess.run(
            [sys.executable, "-c", text], capture_output=True, text=True, check=True
        )
        return set(ran.stdout.split())

    loaded = loaded_by("gradcell")
    assert "gradcell.derivatives.transform" in loaded
    others = {"socket", "termios", "ssl", "subprocess", "multiprocessing"}
    unwanted = others & loaded - loaded_by("numpy")
    beside = {name for name in loaded if name.startswith("gradcell.") and beside_the_core(name)}
    assert unwanted | beside == set()
    rooms = {".".join(name.split(".")[:3]) for name in loaded if name.startswith("gradcell.")}
    not_yet = {"gradcell.communication", "gradcell.nn", "gradcell.ops.networks", "gradcell.train"}
    assert rooms & not_yet == set()


def test_no_op_is_listed_twice():
    """Of two modules of ops that both list a name, one would hide the other."""
    places = {}
    for info in pkgutil.walk_packages(gradcell.ops.__path__, "gradcell.ops."):
        if info.name.count(".") > 2:
            for name in getattr(importlib.import_module(info.name), "__all__", ()):
                places.setdefault(name, []).append(info.name)
    assert len(places) > 800
    assert {name: where for name, where in places.items() if len(where) > 1} == {}
    counts = Counter(gradcell.ops.__all__)
    assert [name for name, n in counts.items() if n > 1] == []


def test_the_rooms_of_a_package_do_not_import_each_other_in_a_circle():
    """What resolves names when they are asked for is `__init__`'s, and the names' own modules'."""
    files = modules()
    graph = {}
    for name, file in files.items():
        source = file.read_text() if file else ""
        graph[name] = imported(source, name, set(files)) | (asked_for(source) & set(files))
    graph = without_lazy_parts(graph, files)
    packages = {name for name, file in files.items() if file and file.name == "__init__.py"}
    found = {name: cycle(rooms_of(name, graph)) for name in packages - {"gradcell"}}
    assert {name: rooms for name, rooms in found.items() if rooms} == {}


def test_a_circle_of_rooms_is_found():
    graph = {
        "p": {"p.a", "p.b"},
        "p.a.x": {"p.b.y"},
        "p.a.z": set(),
        "p.b.y": {"p.a.z"},
        "p.c": {"p.a.x"},
        "q": {"p.c"},
    }
    assert rooms_of("p", graph) == {"p.a": {"p.b"}, "p.b": {"p.a"}, "p.c": {"p.a"}}
    assert cycle(rooms_of("p", graph)) == ["p.a", "p.b", "p.a"]
    assert rooms_of("p.a", graph) == {"p.a.x": set(), "p.a.z": set()}


def test_every_function_is_written_where_its_source_is_looked_for():
    """No text is executed: type checkers, debuggers and inspect.getsource read what runs."""
    calls = [
        f"{name}:{node.lineno}"
        for name, file in modules().items()
        if file is not None
        for node in nodes(file.read_text())
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("exec", "eval")
    ]
    assert calls == []


#: The most modules of a folder that one can keep in mind.
MOST_FILES = 25


def test_no_folder_holds_more_than_one_can_keep_in_mind():
    counts = Counter(file.parent for file in modules().values() if file)
    assert {str(folder): n for folder, n in counts.items() if n > MOST_FILES} == {}


def test_no_folder_of_tests_holds_more_than_one_can_keep_in_mind():
    counts = Counter(file.parent for file in Path(__file__).parents[1].rglob("*.py"))
    assert {str(folder): n for folder, n in counts.items() if n > 30} == {}


#: MindSpore's paths of modules that the packages around them do not list.
PATHS = [
    "common.initializer",
    "nn.optim",
    "nn.wrap",
    "ops.composite",
    "ops.functional",
    "ops.operations",
    "train.amp",
    "train.callback",
    "train.loss_scale_manager",
]


#: The modules that are public names of the package they are in.
FILES = {
    "gradcell": {
        "amp",
        "array_api",
        "boost",
        "common",
        "communication",
        "context",
        "cuda",
        "dataset",
        "debug",
        "dtype",
        "log",
    }
    | {"mindrecord", "mindspore", "mint", "nn", "numpy", "ops", "parallel", "physics"}
    | {"profiler", "random", "runtime", "schedules", "scipy"}
    | {"train", "tree"},
    "gradcell.array_api": {"fft", "linalg"},
    "gradcell.communication": {"comm_func", "management"},
    "gradcell.mint": {"linalg", "nn", "special"},
    "gradcell.mint.nn": {"functional"},
    "gradcell.parallel": {"auto_parallel", "nn"},
    "gradcell.scipy": {"integrate", "linalg", "optimize", "signal", "special", "stats"},
    "gradcell.common": {"initializer"},
    "gradcell.dataset": {"config", "text", "transforms", "vision"},
}


def public_modules():
    """The modules that can be reached by public names, from gradcell on."""
    found, left = {}, ["gradcell", *(f"gradcell.{path}" for path in PATHS)]
    while left:
        name = left.pop()
        module = found[name] = importlib.import_module(name)
        values = [getattr(module, public) for public in module.__all__]
        left += [v.__name__ for v in values if inspect.ismodule(v) and v.__name__ not in found]
    return sorted(found)


def defined_names(tree):
    """The public names that type checkers see in a module: what it defines, and imports as itself."""
    for node in tree.body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            yield node.name
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (t.id for t in targets if isinstance(t, ast.Name))
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from (alias.name for alias in node.names if alias.asname == alias.name)


def published():
    """The modules whose `__all__` is made of what they define."""
    texts = {name: file.read_text() for name, file in modules().items() if file}
    return {name: text for name, text in texts.items() if "publish(globals()" in text}


@pytest.mark.parametrize("name", published())
def test_published_names_are_those_that_type_checkers_see(name):
    module, text = importlib.import_module(name), published()[name]
    seen = {n for n in defined_names(ast.parse(text)) if not n.startswith("_")}
    if hasattr(module, "__path__"):
        below = [
            node.module
            for node in ast.parse(text).body
            if isinstance(node, ast.ImportFrom) and node.names[0].name == "*"
        ]
        seen |= {n for place in below for n in importlib.import_module(place).__all__}
        seen -= {"layer", "loss"}  # MindSpore's subpackages: modules
    assert seen == set(module.__all__)


@pytest.mark.parametrize("name", public_modules())
def test_what_is_listed_is_what_is_public(name):
    module = importlib.import_module(name)
    listed = dir(module)
    assert listed == sorted(set(module.__all__))
    assert not {"Any", "TYPE_CHECKING", "annotations"} & set(listed)
    own = {m.name for m in pkgutil.iter_modules(getattr(module, "__path__", []))}
    files = {n for n in own & set(listed) if inspect.ismodule(getattr(module, n))}
    assert files <= FILES.get(name, set())
    assert not [n for n in listed if n.startswith("_")]


def test_the_public_modules():
    found = public_modules()
    assert {"gradcell", "gradcell.nn", "gradcell.ops", "gradcell.train"} <= set(found)
    for path in ("operations", "functional", "composite"):
        assert inspect.ismodule(getattr(gradcell.ops, path))
    assert gradcell.ops.functional.sin is gradcell.ops.sin
    with pytest.raises(AttributeError, match="no attribute 'sine'"):
        _ = gradcell.ops.sine
