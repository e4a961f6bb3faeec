"""The folders of csrc are floors: each includes only those below it, and no op is known all over.

What this needs are the sources, so it holds for a checkout.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

CSRC = Path(__file__).parents[3] / "csrc"

#: Each folder, and the ones that it may include besides itself.
FLOORS = {
    "base": "",
    "math": "base",
    "ir": "base math",
    "ops": "base math ir",
    "ad": "base math ir ops",
    "plan": "base math ir ops",
    "cpu": "base math ir ops plan",
    "cuda": "base math ir ops plan",
    "runtime": "base math ir ops ad plan cpu cuda",
    "bind": "base math ir ops ad plan cpu cuda runtime",
}

#: The rooms of the engines likewise. What writes CUDA text knows no device, what runs it no text.
ROOMS = {
    "cpu/kernels": "",
    "cpu/isa": "cpu/kernels",
    "cpu/isa/pairs": "cpu/kernels cpu/isa",
    "cpu/products": "cpu/kernels",
    "cpu/calls": "cpu/kernels cpu/products",
    "cpu/calls/order": "cpu/kernels cpu/products cpu/calls",
    "cpu/attention": "cpu/kernels cpu/calls",
    "cpu/program": "cpu/kernels",
    "cpu/run": "cpu/kernels cpu/products cpu/calls cpu/program",
    # codegen.cpp, which asks them in turn
    "cuda": "cuda/tiles cuda/fuse cuda/write cuda/write/regions cuda/join",
    "cuda/tiles": "cuda",
    "cuda/fuse": "cuda cuda/tiles",
    "cuda/write": "cuda cuda/tiles cuda/fuse",
    "cuda/write/attention": "cuda cuda/tiles cuda/fuse cuda/write",
    "cuda/write/regions": "cuda cuda/tiles cuda/fuse cuda/write",
    "cuda/join": "cuda cuda/tiles cuda/fuse cuda/write",
    "cuda/run": "cuda",
}

#: What one can keep in mind.
MOST_FILES = 25

SOURCES = sorted(p for p in CSRC.rglob("*") if p.suffix in (".h", ".cpp", ".def", ".cuh"))


def code(path: Path) -> str:
    return re.sub(r"//.*", "", path.read_text())


def test_every_folder_is_a_floor() -> None:
    assert {p.name for p in CSRC.iterdir() if p.is_dir()} == set(FLOORS)


@pytest.mark.parametrize("folder", FLOORS)
def test_a_floor_includes_what_is_below_it(folder: str) -> None:
    allowed = {folder, *FLOORS[folder].split()}
    wrong = [
        f"{path.relative_to(CSRC)} includes {name}"
        for path in SOURCES
        if path.relative_to(CSRC).parts[0] == folder
        for name in re.findall(r'#include "([\w./]+)"', path.read_text())
        if "/" in name and name.split("/")[0] not in allowed
    ]
    assert wrong == []


#: Headers that compilers and Python bring, on every system.
EVERYWHERE = {"Python.h", "arm_neon.h", "cpuid.h", "frameobject.h", "immintrin.h", "structmember.h"}


def test_one_room_knows_the_system() -> None:
    elsewhere = [path for path in SOURCES if path.parent != CSRC / "base" / "system"]
    headers = [
        f"{path.relative_to(CSRC)} includes {name}"
        for path in elsewhere
        for name in re.findall(r"#include <([\w./]+\.h)>", path.read_text())
        if name not in EVERYWHERE and not name.startswith("pybind11/")
    ]
    assert headers == []
    system = r"\b(_WIN32|_MSC_VER|__APPLE__|__linux__|__unix__|__MINGW32__)\b"
    assert [p.relative_to(CSRC) for p in elsewhere if re.search(system, code(p))] == []


def rooms(names: list[str]) -> list[str]:
    return [n for n in names if n.split("/")[0] in ("cpu", "cuda")]


def test_every_folder_of_an_engine_is_a_room() -> None:
    assert {
        str(p.parent.relative_to(CSRC)) for p in SOURCES if rooms([str(p.relative_to(CSRC))])
    } == (set(ROOMS))


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_includes_what_comes_before_it(room: str) -> None:
    allowed = {room, *ROOMS[room].split()}
    wrong = [
        f"{path.relative_to(CSRC)} includes {name}"
        for path in SOURCES
        if str(path.parent.relative_to(CSRC)) == room
        for name in rooms(re.findall(r'#include "([\w./]+)"', path.read_text()))
        if name.rpartition("/")[0] not in allowed
    ]
    assert wrong == []


def test_no_folder_holds_more_than_one_can_keep_in_mind() -> None:
    counts: dict[str, int] = {}
    for path in SOURCES:
        folder = str(path.parent.relative_to(CSRC))
        counts[folder] = counts.get(folder, 0) + 1
    full = {folder: n for folder, n in counts.items() if n > MOST_FILES}
    assert full == {}


def test_a_structured_op_is_known_in_few_places() -> None:
    """In its family's file, and in at most two others: the table of ops is one."""
    table = (CSRC / "ir" / "ops.def").read_text()
    texts = {path: code(path) for path in SOURCES}
    words = {path: set(re.findall(r"\w+", text)) for path, text in texts.items()}
    for op in re.findall(r"^STRUCTURED\((\w+)", table, re.M):
        places = [str(p.relative_to(CSRC)) for p in SOURCES if op in words[p]]
        family = [p for p in places if f"SPEC({op}," in texts[CSRC / p]]
        assert len(family) == 1, op
        assert family[0].startswith("ops/")
        assert len(places) <= 3, f"{op}: {places}"


#: What a table lists: forms, instructions of regions, and the columns of their tables.
LISTED = ("Form", "PartsRule", "TileForm", "KernelForm", "TileOp", "Runs", "Work")


def switches(text: str) -> list[str]:
    """The bodies of all switches, without those of switches inside them."""
    bodies, open_at = [], []
    depth = 0
    for m in re.finditer(r"switch \(|[{}]", text):
        if m[0] == "{":
            depth += 1
        elif m[0] == "}":
            depth -= 1
            if open_at and open_at[-1][0] == depth:
                _, start, inner = open_at.pop()
                body = text[start : m.start()]
                for part in inner:
                    body = body.replace(part, "", 1)
                bodies.append(body)
                if open_at:
                    open_at[-1][2].append(text[start : m.start()])
        else:
            open_at.append((depth, m.end(), []))
    return bodies


def test_the_bodies_of_switches_are_found() -> None:
    text = "f() { switch (a) { case A: switch (b) { case B: g(); default: } h(); } }"
    inner, outer = switches(text)
    assert "default" in inner and "case B" in inner
    assert "default" not in outer and "case A" in outer and "h()" in outer


def test_a_switch_over_a_table_lists_all_rows() -> None:
    """Then the compiler names each switch that a new form or instruction has no answer in."""
    cases = re.compile(rf"case (?:\w+::)*(?:{'|'.join(LISTED)})::")
    found = [(p, b) for p in SOURCES for b in switches(code(p)) if cases.search(b)]
    assert len(found) >= 12
    assert [str(p.relative_to(CSRC)) for p, b in found if re.search(r"\bdefault:", b)] == []


def test_the_interpreter_of_tests_has_a_case_for_every_op() -> None:
    """The compiler names one that is missing from its switch, which has no default."""
    text = code(CSRC.parent / "tests/cpp/evaluate.cpp")
    (body,) = (b for b in switches(text) if "case Op::Count:" in b)
    assert "default:" not in body and "ir/rows.h" in body


def test_every_source_file_has_its_place_on_the_map() -> None:
    """By its name, or by that of a family of ops: `writer.cpp` is not found in `row_writer.cpp`."""
    text = (CSRC.parent / "ARCHITECTURE.md").read_text()
    files = [p for p in SOURCES if p.suffix == ".cpp"]
    named = [p for p in files if re.search(rf"(?<!\w){p.stem}(\.cpp|\.h|`)", text)]
    assert [str(p.relative_to(CSRC)) for p in files if p not in named] == []


# Numbers in fewer bits ----------------------------------------------------------------------------

#: Integers of fewer bits than a count of elements has.
FEWER = r"(?:std::)?(?:u?int(?:8|16|32)_t|int|unsigned(?: int| char| short)?|short|NodeId|BufferId)"
#: `static_cast<int>(n)`, `int(n)` but for function types, and `(int)n`.
BARE = re.compile(
    rf"static_cast<{FEWER}>\(|(?<![\w<:.>&*]){FEWER}\((?![\s)*]|void)|(?<![\w>)\]])\({FEWER}\)\s*[\w(~-]"
)


def bare_casts(text: str) -> list[str]:
    """The lines that make a number one of fewer bits, whatever it is."""
    text = re.sub(r'//.*|"(?:[^"\\\n]|\\.)*"', "", text)
    return [line.strip() for line in text.splitlines() if BARE.search(line)]


def test_bare_casts_are_found() -> None:
    bare = ["f(static_cast<int32_t>(n));", "x = int(n);", "y = (unsigned)n;", "NodeId(g.size())"]
    assert [len(bare_casts(line)) for line in bare] == [1] * len(bare)
    kept = [
        "narrow<int>(n)", "int{bits}", "static_cast<int64_t>(n)", "int (*f)(int)", "int f(int n)",
        "void g(int);", "Function<int(void*)> f;", "// int(n)", 'line("(int)s.at")', "sizeof(int)",
        "FunctionRef<void(int, int)>", "using Run = int(void*, int);", "operator int() const",
    ]  # fmt: skip
    assert [line for line in kept if bare_casts(line)] == []


def test_numbers_are_narrowed_in_one_way() -> None:
    """By base/narrow.h: `narrow` throws, `known` and `low_bits` say why nothing can be lost."""
    own = CSRC / "base" / "narrow.h"
    files = [p for p in SOURCES if p.suffix in (".h", ".cpp") and p != own]
    assert len(files) > 300
    found = {str(p.relative_to(CSRC)): bare_casts(p.read_text()) for p in files}
    assert {name: lines for name, lines in found.items() if lines} == {}


# Half types ---------------------------------------------------------------------------------------

#: A choice by one half type, which takes whatever else there is for the other one.
EITHER_HALF = re.compile(r"== DType::B?Float16\s*\?|!= DType::(?:B?Float16|Float32)\s*\?")


def test_no_choice_takes_all_other_dtypes_for_one() -> None:
    """A new half type is a row of tables that do not compile without it (cuda/float_types.h), not
    what is left where some are named."""
    assert EITHER_HALF.search("t == DType::Float16 ? 1 : 2")
    files = [p for p in SOURCES if p.suffix in (".h", ".cpp")]
    assert [str(p.relative_to(CSRC)) for p in files if EITHER_HALF.search(code(p))] == []
    half = re.compile(r"case DType::B?Float16:")
    found = [(p, b) for p in files for b in switches(code(p)) if half.search(b)]
    assert [str(p.relative_to(CSRC)) for p, b in found if re.search(r"\bdefault:", b)] == []


# Variables that anybody may set -------------------------------------------------------------------

#: All variables of csrc that outlive a call and may change, with what each is for. What a trace, a plan
#: or a form depends on is no such variable but a field of Settings (ir/settings.h), and what a lower
#: floor needs of a higher one is handed down to it.
VARIABLES = {
    "ir/settings.cpp: g_settings": "the one that settings() reads, for traces that begin",
    "ir/settings.cpp: others": "the settings that there have been",
    # What the process has one of.
    "base/thread_pool.cpp: g_max_threads": "how many threads: taken by each run, no result depends on it",
    "base/thread_pool.cpp: g_pool": "the threads",
    "base/thread_pool.cpp: once": "of the pool: a forked child makes its own",
    "base/thread_pool.cpp: t_in_task": "whether this thread runs a task",
    "base/interrupt.h: interrupt_check": "Python's signals, asked for wherever work is long, also where "
    "there is no trace; set once, at import",
    "base/waiting.h: wait_hook": "Python's lock, given up wherever a thread waits; set once, at import",
    "runtime/storage.cpp: cache": "memory to be used again",
    "runtime/storage.cpp: mutex": "transfers are made one at a time",
    "runtime/variable.cpp: lock": "of all variables' values",
    "runtime/plan_cache.cpp: cache": "plans, by settings and structure",
    "cpu/run/communicator.cpp: c": "the processes that work together",
    "cpu/run/communicator.cpp: g_left_behind": "whether a failed exchange still uses its buffers",
    "cpu/run/profile.cpp: measuring": "whether runs are measured: they compute the same",
    "cpu/run/profile.cpp: r": "what has been measured",
    "cpu/products/blas.cpp: g_calls": "calls of a BLAS that others in the process use, too",
    "cpu/products/blas.cpp: g_their_threads": "the same",
    "cpu/products/blas.cpp: g_sharing": "the same",
    "cpu/products/blas.cpp: p": "where the BLAS is: set before it is opened",
    "cuda/run/device.cpp: all": "the devices",
    "cuda/run/device.cpp: mutex": "the same",
    "cuda/run/driver.cpp: driver": "the driver's library, or why there is none",
    "cuda/run/driver.cpp: g_forked": "whether this process is a copy, which has no driver",
    "cuda/run/library.cpp: paths": "where the libraries are: set before they are opened",
    "cuda/run/nccl.cpp: nccl": "its library and groups",
    "cuda/run/nvrtc.cpp: nvrtc": "its library",
    "cuda/run/nvrtc.cpp: cache": "kernels, by text, architecture and version",
    # Numbers that only go on.
    "cpu/run/engine.cpp: made": "a number for each plan",
    "cuda/run/cache_files.cpp: counter": "names of files that are being written",
    "runtime/executable.cpp: count": "names of files that are being written",
    "runtime/trace.cpp: g_begun": "how many traces have begun",
    "runtime/trace.cpp: g_ended": "how many have ended",
    "runtime/variable.cpp: g_made": "a number for each variable",
    # What a thread is doing.
    "runtime/trace.cpp: t_trace": "its trace",
    "runtime/trace.cpp: t_current": "the same, quick to ask for",
    "runtime/trace.cpp: t_constants": "whether what it records is a constant of derivatives",
    # Memory that a thread keeps for its next call.
    "base/scratch.h: scratch": "kept memory",
    "cpu/attention/tiles.h: kept": "kept memory",
    "cpu/attention/tiles.h: wide": "kept memory",
    "cpu/calls/order/order.cpp: kept": "kept memory",
    "cpu/products/half_product.cpp: scratch": "kept memory",
    "cpu/program/region_run.h: block": "kept memory",
    # Python's side.
    "bind/dispatch.cpp: g_structure": "what forms depend on that Python holds: part of their keys",
    "bind/dispatch.cpp: g_graph_mode": "the mode: which calls keep a form, none of which depends on it",
    "bind/dispatch.cpp: members": "a type of Python's, which wants it so",
    "bind/dispatch.cpp: methods": "the same",
    "bind/dispatch.cpp: properties": "the same",
    "bind/dispatch.cpp: slots": "the same",
    "bind/dispatch.cpp: type": "the same",
    "bind/dispatch.cpp: type_spec": "the same",
    "bind/location.cpp: dirs": "which folders are the package's: set at import",
    "bind/location.cpp: seen": "code objects",
    "bind/spelling.cpp: members": "a type of Python's, which wants it so",
    "bind/spelling.cpp: methods": "the same",
    "bind/spelling.cpp: properties": "the same",
    "bind/spelling.cpp: slots": "the same",
    "bind/spelling.cpp: type_spec": "the same",
    "bind/tensor.cpp: fn": "the package's Python that makes arrays of other things: set once, at import",
    "bind/tensor.cpp: objects": "Python's dtypes",
}  # fmt: skip


def plain(text: str) -> str:
    """A source without comments, texts and directives."""
    text = re.sub(r'R"(\w*)\((?:.|\n)*?\)\1"', '""', text)
    text = re.sub(r'"(?:\\.|[^"\\\n])*"', '""', text)
    text = re.sub(r"'(?:\\.|[^'\\\n])'", "0", text)
    text = re.sub(r"//.*|/\*(?:.|\n)*?\*/|\[\[.*?\]\]", "", text)
    return re.sub(r"^[ \t]*#(?:\\\n|.)*$", "", text, flags=re.M)


def without(brackets: str, text: str) -> str:
    while (less := re.sub(brackets, "", text)) != text:
        text = less
    return text


def at_namespaces(text: str) -> list[str]:
    """What stands outside of all braces but namespaces', up to each ; or {."""
    found, open_braces, begin = [], [], 0
    for m in re.finditer(r"[{};]", text):
        outside, before = all(open_braces), text[begin : m.start()].strip()
        if m[0] == "}":
            open_braces.pop()
        elif m[0] == "{":
            space = re.fullmatch(r'(?:inline\s+)?namespace(?:\s+[\w:]+)?|extern\s+""', before)
            open_braces.append(bool(space))
            if outside and not space:
                found.append(before)
        elif outside:
            found.append(before)
        if all(open_braces):
            begin = m.end()
    return found


def may_change(declared: str) -> bool:
    """Of a variable's declaration, without its value."""
    if "constexpr" in declared.split():
        return False
    if re.search(r"[*&]", declared):
        return not re.search(r"(\*\s*const\s+|&\s*)\w+$", declared)
    return "const" not in declared.split()


def variables(text: str) -> set[str]:
    """What outlives a call and may change: at namespaces, static or of a thread."""
    found = set()
    text = plain(text)
    for statement in at_namespaces(text):
        kinds = (
            "using|typedef|class|struct|enum|union|template|static_assert|friend|extern|namespace"
        )
        if re.match(rf"({kinds})\b", statement):
            continue
        declared = re.split(r"(?<![=!<>])=(?!=)", statement)[0].strip()
        if pointer := re.search(r"\(\*\s*(\w+)\)\s*\(", declared):
            found.add(pointer[1])
            continue
        if another := re.fullmatch(r",\s*(\w+)", statement):  # of a declaration
            found.add(another[1])
        declared = re.sub(r"\[[^\]]*\]\s*$", "", without(r"<[^<>]*>", declared)).strip()
        if re.fullmatch(r"[\w:*&\s]+\s[*&]?[A-Za-z_]\w*", declared) and may_change(declared):
            found.add(declared.split()[-1].lstrip("*&"))
            found.update(re.findall(r",\s*(\w+)\s*=(?!=)", statement))
    name, value = r"[\w:*&\s]+?\s[*&]?[A-Za-z_]\w*", r"\s*(?:\[[^\]]*\]\s*)*(?:=(?!=)|\{|;)"
    local = rf"\b(?:static|thread_local)\s+({name}){value}"
    for declared in re.findall(local, without(r"<[^<>;{}]*>", text)):
        if may_change(declared):
            found.add(declared.split()[-1].lstrip("*&"))
    return found


def test_variables_are_found() -> None:
    text = """
    namespace a { namespace {
    std::atomic<std::map<int, int>> one{f(3)}, ten{0};
    constexpr int no = 3;  const char* const not_this = "x;";
    Location (*two)() = nullptr;  thread_local bool three;  const int nor[] = {1, 2};  const char* four = "";
    int f(int x) { static auto* five = new T; static const T t; static T& r = *five; int y = 2; return y; }
    struct S { int member; static int g(); static std::mutex six; };  int declared(int);
    inline std::atomic<void (*)()> seven{nullptr};  int eight[3] = {};
    int eleven = 1, twelve = 2;  template <class T> T x(T) {}
    int g() { thread_local std::vector<T> nine; return 0; }  using T = int;  extern int nobody;
    } }
    """
    assert variables(text) == {
        "one", "two", "three", "four", "five", "six", "seven", "eight", "nine",
        "ten", "eleven", "twelve"
    }  # fmt: skip


def test_no_variable_that_anybody_may_set() -> None:
    found = {
        f"{p.relative_to(CSRC).as_posix()}: {name}"
        for p in SOURCES
        if p.suffix in (".h", ".cpp")
        for name in variables(p.read_text())
    }
    assert found == set(VARIABLES), (
        "what plans, forms and results depend on is a field of Settings (ir/settings.h); what a lower floor "
        "needs of a higher one is handed down"
    )
