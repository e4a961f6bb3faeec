"""What a kernel's critical path takes: a model of one warp, from the text of `nvdisasm -c -hex`.

One thread's integers are computed, so that branches, loops, calls and addresses are the real ones; numbers
in floating point are not, and a branch on one falls through unless only a slow path is passed over.
An instruction is issued when the barriers it waits for are free, and the next one after its stall count
(both are in its 128 bits); what sets a barrier frees it after a latency. Nothing is contended for: the sum is
a lower bound, of use to compare two texts of a kernel and not to predict a time.

    python tools/sass_cycles.py plan.json kernel.sass --step 0 --l2 sums

`plan.json` is {"arguments": [...], "threads": [x, y], "base": 0x210} as `arguments_of` makes it.
"""

from __future__ import annotations

import re
import struct
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

#: Cycles until a result is there, of what sets a barrier. Of sm_80 and sm_90 by published measurements.
LATENCY = {
    "LDS": 30, "SHFL": 25, "MUFU": 22, "F2F": 28, "DADD": 10, "DMUL": 10, "DFMA": 10, "LDC": 35,
    "S2R": 30, "I2F": 22, "F2I": 22, "ULDC": 12, "BAR": 30, "CCTL": 20, "S2UR": 30, "R2UR": 12,
    "POPC": 20, "HMMA": 33, "F2FP": 10, "VOTE": 12, "LDSM": 33,
}  # fmt: skip
L1, L2 = 38, 270
LIMIT = 50_000  # instructions of a function: it has no end
MASK = 0xFFFFFFFF


@dataclass
class Instruction:
    guard: str  # "", "P0", "!P0"
    op: str
    operands: list[str]
    stall: int
    sets: tuple[int, ...]  # barriers: that of its result, that of its operands
    waits: int  # a bit for each barrier
    text: str


@dataclass
class Function:
    name: str
    body: list[Instruction] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)


def split(text: str) -> list[str]:
    """Operands; commas in brackets are none."""
    return [p.strip() for p in re.split(r",(?![^\[(]*[\])])", text)] if text else []


def parse(lines: Iterable[str]) -> dict[str, Function]:
    """The functions of a disassembly, by name."""
    found: dict[str, Function] = {}
    current: Function | None = None
    pending = ""
    for line in lines:
        if label := re.match(r"^(\.L_x_\d+|[$\w][\w$.]*):\s*$", line):
            name = label[1]
            if name.startswith(".L_x_"):
                if current:
                    current.labels[name] = len(current.body)
            else:
                current = found.setdefault(name, Function(name))
        elif first := re.match(
            r"^\s*/\*[0-9a-f]{4,}\*/\s+(.*?)\s*;\s*/\* 0x[0-9a-f]{16} \*/", line
        ):
            pending = first[1]
        elif pending and (second := re.match(r"^\s*/\* 0x([0-9a-f]{16}) \*/", line)) and current:
            control = int(second[1], 16) >> 41 & 0x1FFFFF
            guard = re.match(r"@(!?U?P\w+)\s+", pending)
            rest = pending[guard.end() :] if guard else pending
            op, _, operands = rest.partition(" ")
            sets = tuple(b for b in (control >> 5 & 7, control >> 8 & 7))
            current.body.append(
                Instruction(
                    guard[1] if guard else "", op, split(operands.strip()), control & 15, sets,
                    control >> 11 & 63, pending,
                )
            )  # fmt: skip
            pending = ""
    return found


class Model:
    """Thread 0 of a block; `latency` says what a load from global memory takes, by its address."""

    def __init__(
        self,
        functions: dict[str, Function],
        constants: dict[int, int],
        threads: tuple[int, int],
        latency: Callable[[int | None], int],
    ) -> None:
        self.functions, self.constants, self.latency = functions, constants, latency
        self.threads = threads
        self.value: dict[str, int | None] = {"RZ": 0, "URZ": 0}
        self.truth: dict[str, bool | None] = {"PT": True, "UPT": True}
        self.time = 0
        self.free = [0] * 6
        self.issued = 0
        self.calls: dict[str, list[int]] = defaultdict(lambda: [0, 0])
        self.loads: dict[str, int] = defaultdict(int)

    # Operands ------------------------------------------------------------------------------------

    def of(self, text: str) -> int | None:
        text = text.replace(".reuse", "").replace(".64", "").replace(".H1", "").replace(".U32", "")
        if text.startswith("|"):
            inner = self.of(text.strip("|"))
            return inner and abs(inner)
        if text[0] == "-" and not text[1].isdigit():
            inner = self.of(text[1:])
            return None if inner is None else -inner & MASK
        if text[0] == "~":
            inner = self.of(text[1:])
            return None if inner is None else ~inner & MASK
        if re.match(r"^-?(0x[0-9a-f]+|\d+)$", text):
            return int(text, 0) & MASK
        if text.startswith("c["):
            inside = re.match(r"c\[\w+\]\[(.*)\]$", text)
            place = self.place(inside[1]) if inside else None
            return None if place is None else self.constants.get(place)
        return self.value.get(text)

    def place(self, text: str) -> int | None:
        total = 0
        for part in re.findall(r"[+-]?[^+-]+|\+-0x\w+", text.replace("+-", "-")):
            sign = -1 if part[0] == "-" else 1
            one = self.of(part.lstrip("+-"))
            if one is None:
                return None
            total += sign * one
        return total & MASK

    def holds(self, text: str) -> bool | None:
        text = text.replace(".reuse", "")
        truth = self.truth.get(text.lstrip("!"))
        return None if truth is None else truth != text.startswith("!")

    def set(self, name: str, value: int | None) -> None:
        if name not in ("RZ", "URZ"):
            self.value[name] = None if value is None else value & MASK

    def set_pair(self, name: str, value: int | None) -> None:
        self.set(name, value)
        if name not in ("RZ", "URZ"):
            number = re.match(r"(U?R)(\d+)", name)
            if number:
                high = None if value is None else value >> 32
                self.set(f"{number[1]}{int(number[2]) + 1}", high)

    # Instructions --------------------------------------------------------------------------------

    def compute(self, i: Instruction) -> None:
        base, kinds, o = i.op.split(".")[0], i.op.split(".")[1:], i.operands
        bare = base[1:] if base.startswith("U") and base not in ("ULDC",) else base
        if not o:
            return
        predicates = [p for p in o[1:3] if re.match(r"^!?U?P(T|\d)$", p)]

        def args(skip: int = 1) -> list[int | None]:
            return [self.of(x) for x in o[skip:] if not re.match(r"^!?U?P(T|\d)$", x)]

        def signed(x: int) -> int:
            return x - (1 << 32) if x >> 31 else x

        if re.match(r"^U?P(T|\d)$", o[0]) and bare in ("ISETP", "LOP3", "PLOP3", "FSETP", "VOTE"):
            return self.decide(i, bare, kinds)
        known = bare in (
            "IMAD", "IADD3", "LEA", "SHF", "SEL", "MOV", "VIADD", "VIMNMX", "VIADDMNMX", "LOP3",
            "IABS", "HFMA2", "I2F", "MUFU", "F2I", "S2R", "S2UR", "LDC", "ULDC", "CS2R", "R2UR", "I2FP",
        )  # fmt: skip
        if not known:
            # What it writes is not known any more.
            o = o[1:] if bare == "SHFL" else o
            if re.match(r"^U?R\d+$", o[0]) and bare not in ("ST", "STG", "STS", "STL", "RED"):
                wide = 2 if "64" in kinds or bare in ("DADD", "DMUL", "DFMA") else 1
                wide = 4 if "128" in kinds or bare == "HMMA" else wide
                number = re.match(r"(U?R)(\d+)", o[0])
                for k in range(wide):
                    self.set(f"{number[1]}{int(number[2]) + k}", None)  # type: ignore[index]
            return
        a = args()
        if bare in ("S2R", "S2UR"):
            block = {"SR_TID.X": 0, "SR_TID.Y": 0, "SR_CTAID.X": 0, "SR_LANEID": 0}
            return self.set(o[0], block.get(o[1], 0))
        if bare in ("LDC", "ULDC"):
            pair = "64" in kinds
            inside = re.match(r"c\[\w+\]\[(.*)\]$", o[1])
            place = self.place(inside[1]) if inside else None
            low = None if place is None else self.constants.get(place)
            if pair and low is not None:
                low |= self.constants.get(place + 4, 0) << 32  # type: ignore[operator]
            return (self.set_pair if pair else self.set)(o[0], low)
        if bare == "CS2R":
            return self.set_pair(o[0], 0)
        if bare == "HFMA2":
            halves = [float(x) for x in o[-2:]]
            packed = struct.pack("<ee", halves[1], halves[0])
            return self.set(o[0], struct.unpack("<I", packed)[0])
        if bare == "SEL":
            choice = self.holds(o[3])
            return self.set(o[0], None if choice is None else a[0] if choice else a[1])
        if bare == "LOP3":
            x, y, z, table = a[:4]
            return self.set(o[0], self.lop3(x, y, z, table))
        if None in a:
            return (self.set_pair if "WIDE" in kinds else self.set)(o[0], None)
        v: list[int] = [x for x in a if x is not None]
        if bare == "IMAD":
            if "MOV" in kinds:
                return self.set(o[0], v[2])
            if "HI" in kinds:
                x, y = (v[0], v[1]) if "U32" in kinds else (signed(v[0]), signed(v[1]))
                added = re.match(r"R(\d+)", o[3])  # a pair
                high = self.value.get(f"R{int(added[1]) + 1}") if added else 0
                whole = None if high is None else (x * y + (high << 32 | v[2])) >> 32
                return self.set(o[0], whole)
            if "WIDE" in kinds:
                x, y = (v[0], v[1]) if "U32" in kinds else (signed(v[0]), signed(v[1]))
                return self.set_pair(o[0], x * y + v[2])
            return self.set(o[0], v[0] * v[1] + v[2])
        if bare == "IADD3":
            return self.set(o[0], sum(v[:3]))
        if bare in ("MOV", "R2UR"):
            return self.set(o[0], v[0])
        if bare == "VIADD":
            return self.set(o[0], v[0] + v[1])
        if bare == "IABS":
            return self.set(o[0], abs(signed(v[0])))
        if bare == "LEA":
            if "HI" in kinds:
                shift = v[3] if len(v) > 3 else v[2]
                low = signed(v[0]) if "SX32" in kinds else v[0]
                high = 0 if len(v) < 4 else v[2]
                return self.set(o[0], ((high << 32 | low & MASK) >> (32 - shift)) + v[1])
            return self.set(o[0], (v[0] << v[2]) + v[1])
        if bare == "SHF":
            if "L" in kinds:
                return self.set(o[0], v[0] << v[1] if "HI" not in kinds else v[2] << v[1])
            wide = signed(v[2]) if "S32" in kinds else v[2]
            whole = wide << 32 | v[0]
            return self.set(o[0], whole >> v[1] >> (32 if "HI" in kinds else 0))
        if bare in ("VIMNMX", "VIADDMNMX"):
            x, y = (v[0], v[1]) if bare == "VIMNMX" else (v[0] + v[1] & MASK, v[2])
            if "U32" not in kinds:
                x, y = signed(x), signed(y)
            return self.set(o[0], min(x, y) if o[-1] == "PT" else max(x, y))
        if bare in ("I2F", "I2FP"):
            return self.set(o[0], struct.unpack("<I", struct.pack("<f", float(v[0])))[0])
        number = struct.unpack("<f", struct.pack("<I", v[0]))[0]
        if bare == "MUFU":
            value = 1 / number if "RCP" in kinds and number else None
            bits = None if value is None else struct.unpack("<I", struct.pack("<f", value))[0]
            return self.set(o[0], bits)
        if bare == "F2I":
            return self.set(o[0], int(number) if abs(number) < 2**32 else None)
        del predicates

    @staticmethod
    def lop3(x: int | None, y: int | None, z: int | None, table: int | None) -> int | None:
        if table is None:
            return None
        total = 0
        for k in range(8):
            if not table >> k & 1:
                continue
            part = MASK
            for operand, bit in ((x, 4), (y, 2), (z, 1)):
                if operand is None:
                    if part:
                        return None
                else:
                    part &= operand if k & bit else ~operand
            total |= part & MASK
        return total

    def decide(self, i: Instruction, bare: str, kinds: list[str]) -> None:
        o = i.operands
        if bare == "LOP3":
            v = [self.of(x) for x in o[2:6]]
            total = self.lop3(v[0], v[1], v[2], v[3])
            self.set(o[1], total)
            self.truth[o[0]] = None if total is None else total != 0
            return
        if bare == "PLOP3":
            inputs = [self.holds(p) for p in o[2:5]]
            table = self.of(o[5])
            truth: bool | None = None
            if table is not None:
                options = {
                    bool(table >> k & 1)
                    for k in range(8)
                    if all(
                        have is None or have == bool(k & bit)
                        for have, bit in zip(inputs, (4, 2, 1), strict=True)
                    )
                }
                truth = options.pop() if len(options) == 1 else None
            self.truth[o[0]] = truth
            return
        if bare == "VOTE":
            self.truth[o[0]] = None
            return
        result = other = None
        if bare == "ISETP":
            x, y = self.of(o[2]), self.of(o[3])
            if x is not None and y is not None:
                if "U32" not in kinds:
                    x, y = (v - (1 << 32) if v >> 31 else v for v in (x, y))
                compare = {
                    "LT": x < y, "LE": x <= y, "GT": x > y, "GE": x >= y, "EQ": x == y, "NE": x != y,
                }  # fmt: skip
                result = compare[kinds[0]]
                other = not result
        with_ = self.holds(o[4]) if len(o) > 4 else True

        def joined(x: bool | None) -> bool | None:
            if "OR" in kinds:
                return True if x or with_ else None if x is None or with_ is None else False
            if x is False or with_ is False:
                return False
            return None if x is None or with_ is None else True

        for name, truth in ((o[0], joined(result)), (o[1], joined(other))):
            if name not in ("PT", "UPT"):
                self.truth[name] = truth

    # Control -------------------------------------------------------------------------------------

    def run(self, name: str) -> int:
        f = self.functions[name]
        at, start, steps = 0, self.time, 0
        while at < len(f.body):
            i = f.body[at]
            steps += 1
            if steps > LIMIT:
                raise RuntimeError(f"no end: {name}")
            for b in range(6):
                if i.waits >> b & 1:
                    self.time = max(self.time, self.free[b])
            self.issued += 1
            goes = self.holds(i.guard) if i.guard else True
            base = i.op.split(".")[0]
            if goes is not False:
                self.barriers(i, base)
            self.time += max(1, i.stall)
            if base == "BAR":
                self.time += LATENCY["BAR"]
            if base == "CALL" and goes is not False:
                target = re.search(r"`\((.*)\)", i.text)
                full = target and self.callee(target[1])
                if full and goes is not None:
                    began = self.time
                    self.time += 20
                    self.run(full)
                    self.time += 20
                    entry = self.calls[full]
                    entry[0], entry[1] = entry[0] + 1, entry[1] + self.time - began
            elif base == "RET" and goes is not False:
                return self.time - start
            elif base == "EXIT" and goes:
                return self.time - start
            elif base == "BRA":
                label = re.search(r"`\((\.L_x_\d+)\)", i.text)
                to = f.labels.get(label[1]) if label else None
                conditions = [p for p in i.operands if re.match(r"^!?U?P\d$", p)]
                for p in conditions:
                    holds = self.holds(p)
                    goes = None if holds is None else goes and holds
                if to is not None and (goes or (goes is None and self.passes(f, at, to))):
                    at = to
                    self.time += 8
                    continue
            elif goes is not False:
                self.compute(i)
            at += 1
        return self.time - start

    def callee(self, name: str) -> str | None:
        if name in self.functions:
            return name
        near = [n for n in self.functions if n.startswith(name[:200])]
        return near[0] if near else None

    @staticmethod
    def passes(f: Function, at: int, to: int) -> bool:
        """Whether a branch on an unknown condition is taken: over calls of slow paths and loops."""
        if to <= at:
            return False
        over = f.body[at + 1 : to]
        back = any(
            j.op.startswith("BRA") and (m := re.search(r"`\((\.L_x_\d+)\)", j.text))
            and at < f.labels.get(m[1], len(f.body)) <= at + 1 + k
            for k, j in enumerate(over)
        )  # fmt: skip
        return back or any(j.op.startswith("CALL") for j in over)

    def barriers(self, i: Instruction, base: str) -> None:
        result, operands = i.sets
        if result != 7:
            if base in ("LDG", "LD"):
                address = re.search(r"\[(U?R\w+)\.64(?:\.?\w*)([+-][^\]]*)?\]$", i.operands[1])
                place = self.place(address[1] + (address[2] or "")) if address else None
                latency = self.latency(place)
                self.loads[f"{base} {place >> 24 if place is not None else '?'}"] += 1
            else:
                latency = LATENCY.get(base, 20)
            self.free[result] = max(self.free[result], self.time + latency)
        if operands != 7:
            self.free[operands] = max(self.free[operands], self.time + 14)


def constants_of(
    kernel: str, arguments: list[Any], threads: tuple[int, int], base: int
) -> dict[int, int]:
    """A launch's constant bank: buffer k begins at (k + 1) * 2^24."""
    found = re.search(r"__launch_bounds__\(\d+, \w+\) \w+\((.*?)\) \{", kernel)
    assert found is not None
    bank = {0: threads[0], 4: threads[1], 8: 1, 0xC: 1 << 20, 0x28: 0}
    at = base
    for text, (kind, *rest) in zip(re.split(r",(?![^<]*>)", found[1]), arguments, strict=True):
        size = 8 if "*" in text or "double" in text or "long" in text else 4
        at = (at + size - 1) // size * size
        if kind == "divisor":
            rounds = (rest[0] - 1).bit_length()
            bank[at], bank[at + 4] = rest[0], -(-(1 << 31 + rounds) // rest[0])
            bank[at + 8] = rounds - 1
            at += 12
            continue
        if kind == "buffer":
            bank[at], bank[at + 4] = (rest[0] + 1) << 24, 0
        elif kind in ("size", "packs"):
            bank[at] = rest[0]
        at += size
    return bank
