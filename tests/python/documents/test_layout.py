"""How the source is laid out: which module may know which."""

import ast
import functools
import importlib
import inspect
import pkgutil
from collections import Counter
from pathlib import Path

import pytest

import gradcell

ROOT = Path(gradcell.__file__).parent


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
    """The imports and calls of a text, which is parsed once."""
    kinds = (ast.Import, ast.ImportFrom, ast.Call)
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
    dtype
    communication files mindrecord
    context cuda
    compilation profiler runtime log
    tensors
    derivatives
    ops
    common
    nn
    solvers
    amp boost dataset mint numpy parallel physics scipy show
    train
    demo deepxde mindspore
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


def test_a_room_imports_what_is_below_it():
    files = modules()
    height = {
        name: level
        for level, line in enumerate(FLOORS.strip().splitlines())
        for name in line.split()
    }
    rooms = {room(name) for name in files} - {"", "__main__"}
    assert rooms == set(height)
    graph = without_lazy_parts({}, files)  # those of packages' __init__
    wrong = []
    for name, file in files.items():
        if file is None or room(name) in ("", "__main__"):
            continue
        source = file.read_text()
        below = graph[name] if name in graph else imported(source, name, set(files))
        for other in sorted(below | (asked_for(source) & set(files))):
            here, there = room(name), room(other)
            if there not in ("", here) and height[there] >= height[here]:
                wrong.append(f"{name} imports {other}")
    assert wrong == []


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
        "boost",
        "common",
        "communication",
        "context",
        "cuda",
        "dataset",
        "dtype",
        "log",
    }
    | {"mindrecord", "mint", "nn", "numpy", "ops", "parallel", "physics"}
    | {"profiler", "runtime", "scipy"}
    | {"train"},
    "gradcell.communication": {"comm_func", "management"},
    "gradcell.mint": {"linalg", "nn", "special"},
    "gradcell.mint.nn": {"functional"},
    "gradcell.parallel": {"auto_parallel", "nn"},
    "gradcell.scipy": {"linalg", "optimize"},
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
