"""Which cases of tests that are marked one_in a run takes, and which cases run as one test: conftest.py."""

from __future__ import annotations

import copy
import itertools
import zlib
from collections.abc import Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import pytest


def arguments(call: Any) -> dict[str, Any]:
    """A case's, which earlier versions of pytest have in two places."""
    return {**getattr(call, "funcargs", {}), **call.params}


class Draw(NamedTuple):
    """Which cases of tests marked one_in(n) run on a day: every one of them on one of n days that follow."""

    day: int
    leaves_out: bool  # the others are not even made, which takes longer than to run many

    def of(self, test: str, calls: Sequence[Any], n: int, by: str = "", days: int = 1) -> set[int]:
        """The numbers of the cases that are drawn, at least one of those with the same `by`. Those of a file
        whose tests share something dear run on one of some `days`, then so many times more of them."""
        day = self.day
        if days > 1 and n > 1:
            day, other = divmod(day + zlib.crc32(test.partition("::")[0].encode()), days)
            if other:
                return set()
            n = max(n // days, 1)
        groups: dict[str, list[int]] = {}
        name, _, attribute = by.partition(".")
        for number, call in enumerate(calls):
            value = arguments(call)[name] if by else ""
            key = attrgetter(attribute)(value) if attribute else value
            assert isinstance(key, str), f"{test}: name cases by a text, not by {type(key)}"
            groups.setdefault(key, []).append(number)
        return {
            number
            for key, group in groups.items()
            for k, number in enumerate(group, day + zlib.crc32(f"{test} {key}".encode()))
            if k % (min(n, len(group)) if by else n) == 0
        }


DRAWN = pytest.StashKey[Draw]()


#: The most cases that are one test.
MOST = 25
#: The function of pytest's fixtures for arguments that parametrize gives.
DIRECT = "get_direct_param_fixture_func"


class Together:
    """Cases of a test that run as one, by the first of them: pytest, its processes and its report take longer
    over a test than most cases do. Who names cases (`pytest FILE::TEST[CASE]`, `-k`, `--for`) has each alone,
    and so is each case that has a mark or a fixture of its own, and each that hypothesis makes."""

    def __init__(self, config: pytest.Config) -> None:
        option = config.option
        named = any("[" in argument for argument in config.args)
        self.apart = bool(named or option.keyword or option.usepdb or config.getoption("--for"))
        self.cases: dict[int, list[Any]] = {}

    def of(self, metafunc: pytest.Metafunc) -> list[Any]:
        """A test's cases, in parts; of cases with `full`, parts of their own."""
        calls: list[Any] = metafunc._calls
        if self.apart or not calls or not self._fit(metafunc, calls[0]):
            return calls

        def alike(call: Any) -> tuple[Any, ...]:
            return str(arguments(call).get("mode")), [mark.name for mark in call.marks]

        found = []
        for (_, marks), group in itertools.groupby(sorted(calls, key=alike), alike):
            held = list(group)
            size = 1 if set(marks) - {"full"} else MOST
            for begin in range(0, len(held), size):
                part = held[begin : begin + size]
                first = part[0]
                if len(part) > 1:
                    name = f"{first.id} and {len(part) - 1} more"
                    first = copy.copy(first)
                    object.__setattr__(first, "_idlist", [name])  # it is frozen
                    self.cases[id(first)] = part
                found.append(first)
        return found

    @staticmethod
    def _fit(metafunc: pytest.Metafunc, call: Any) -> bool:
        """Whether cases differ by their arguments alone, and share what fixtures give."""
        definition, defined = metafunc.definition, metafunc._arg2fixturedefs
        made = {name: held[-1] for name, held in defined.items() if held}
        direct = set(arguments(call))
        indirect = {n for n in direct & set(made) if made[n].func.__name__ != DIRECT} - {"mode"}
        shared = {n for n, one in made.items() if one.scope in ("module", "session")} - indirect
        shared |= {"request"} - set(definition._fixtureinfo.argnames)  # that of shared fixtures
        return (
            set(metafunc.fixturenames) <= direct - indirect | shared
            and not definition.get_closest_marker("slow")
            and not hasattr(definition.obj, "hypothesis")
        )

    def part(self, item: Any) -> list[Any]:
        """The cases that a test consists of; none if it is one itself."""
        return self.cases.get(id(getattr(item, "callspec", None)), [])

    def run(self, item: Any) -> bool | None:
        """Runs all cases of a test, and says of those that fail which they are and why; None: it is one."""
        part, failed, skipped = self.part(item), {}, []
        names = item._fixtureinfo.argnames
        for call in part:
            try:
                own = {**item.funcargs, **arguments(call)}
                own["mode"] = item.funcargs.get("mode")  # by its fixture, alike for all
                item.obj(**{name: own[name] for name in names})
            except pytest.skip.Exception as why:
                skipped.append(f"{call.id}: {why.msg}")
            except (Exception, pytest.fail.Exception):
                failed[call.id] = str(item.repr_failure(pytest.ExceptionInfo.from_current()))
        if failed:
            texts = [f"____ {name} ____\n\n{text}" for name, text in failed.items()]
            few = "\n\n".join(texts[:5])
            pytest.fail(
                f"{len(failed)} of {len(part)} cases: {'; '.join(failed)}\n\n{few}", pytrace=False
            )
        if skipped:
            pytest.skip(f"{len(skipped)} of {len(part)} cases, as {skipped[0]}")
        return True if part else None


TOGETHER = pytest.StashKey[Together]()
