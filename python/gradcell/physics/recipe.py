"""One call for a differential equation: it chooses by what it measures, and says why."""

from __future__ import annotations

import itertools
import time as clock
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from gradcell import nn, ops
from gradcell._core import Tensor
from gradcell.base import bad_value, where
from gradcell.physics.asked import APART, Asked, Guess
from gradcell.physics.deep import train
from gradcell.physics.pieces import Fitter, Piece
from gradcell.physics.points import Array
from gradcell.physics.shapes import Shape
from gradcell.physics.waves import Coordinates, Site, steep_sites

__all__ = ["Solution", "SolutionPass", "solve"]

#: How many waves the first pass has, and the misfit that its pieces of time may have.
_FEW, _ROUGH = 150, 1e-2
#: The factors of both with the next pass.
_MORE, _LESS = 1.5, 1 / 30
#: Frequencies that the search begins with, in radians from the middle of an axis to its end.
_FIRST = (5.0, 2.5, 10.0, 20.0, 40.0, 1.5, 0.7)
#: What frequencies are multiplied by to find better ones.
_FACTORS = (2.0, 1.3, 0.7)
#: The most sites of an axis.
_SITES = 3
#: A misfit above which a fit says nothing about the solution, and one below which it says which frequencies
#: it has.
_LOST, _CLEAR = 0.5, 0.05
#: The waves of a piece of space, of a solution that is one number, and the share of all misfits that is left
#: to pieces as they are.
_EACH, _LEFT = 200, 0.1
#: In many dimensions, half as many waves again that leave more than this share of the misfit do not pay.
_SLOW = 0.4

_UNDETERMINED = (
    "The equation and conditions do not determine u: of all that fit them this is one of the smallest. Where "
    "that is not wanted, a condition is missing, as a value of u."
)


@dataclass(frozen=True)
class SolutionPass:
    """One pass of `solve` over the problem, and the result.

    seconds: since the beginning. unknowns: of the largest network. pieces: how many networks share the time.
    misfit: as in `Solution`. change: how far the solution moved since the last pass, relative to it; nan in
    the first one. error: the estimated error.
    """

    seconds: float
    unknowns: int
    pieces: int
    misfit: float
    change: float
    error: float


class _Part(Protocol):
    """A network and where it is the solution."""

    @property
    def coordinates(self) -> Coordinates: ...

    @property
    def misfit(self) -> float: ...

    @property
    def size(self) -> int: ...

    def values(self, x: Array) -> Array: ...

    def cell(self) -> nn.Cell: ...


class Solution:
    """A solution that `solve` found: a function of points [n, d] that gives u, [n, m], made of networks.

    parts: the networks with where they are the solution. asked: the problem.

    networks: the cells: one, or one for each piece of time or space, in the ansatz if there is one. ends:
    where each piece of time ends. misfit: the residuals at points that nothing was fitted to, as errors of u
    relative to it: those of its own waves that would cause them, and the change that fitting them would
    make if they were noise. error: the estimated relative error: the misfit, or how far the solution moved
    with the last pass times the factor by which the misfit fell, if that is more; nan after one pass. If
    the next pass has no smaller misfit, how far it is from this one, at least the misfit. Where u grows in
    time, early residuals are relative to what it is by then.
    history: a SolutionPass for each pass. why: sentences that say what was chosen and for what reason.
    reached: whether the estimated error is at most the tolerance.
    """

    def __init__(self, parts: Sequence[Any], asked: Asked) -> None:
        axis = asked.time
        self._parts: list[_Part] = list(parts)
        self._asked: Asked = asked
        boxes = [p.coordinates for p in parts]
        self.ends: list[float] = [] if axis is None else [float(b.high[axis]) for b in boxes]
        times = (
            [1.0 for _ in boxes]
            if axis is None
            else [float(b.high[axis] - b.low[axis]) for b in boxes]
        )
        squares = [p.misfit**2 for p in parts]
        self.misfit: float = float(np.sqrt(np.average(squares, weights=times)))
        self.networks: list[nn.Cell] = [p.cell() for p in parts]
        self.error: float = float("nan")
        self.history: list[SolutionPass] = []
        self.why: list[str] = []
        self.reached: bool = False

    def __call__(self, x: Tensor) -> Tensor:
        """Return u at points [n, d] as a tensor [n, m] that can be differentiated."""
        found: Tensor = self._asked.solution(self.networks[0])(x)
        nearest = self._distance(x, 0, ops)
        for k, network in enumerate(self.networks[1:], 1):
            distance = self._distance(x, k, ops)
            found = ops.where(distance < nearest, self._asked.solution(network)(x), found)
            nearest = ops.minimum(distance, nearest)
        return found

    def _distance(self, x: Any, k: int, m: Any = np) -> Any:
        """The squared distances [n, 1] from a network's box, which has no end where the shape ends."""
        of, shape = self._parts[k].coordinates, self._asked.shape
        low: Any = np.where(of.low > shape.low, of.low, -np.inf)
        high: Any = np.where(of.high < shape.high, of.high, np.inf)
        if m is not np:
            low, high = Tensor(low), Tensor(high)
        beyond = m.maximum(low - x, 0.0) + m.maximum(x - high, 0.0)
        return (beyond * beyond).sum(1, keepdims=True)

    def values(self, x: Any) -> Array:
        """Return u at points, an array [n, d], as an array [n, m], of each network at its own points only.

        x: the points.
        """
        x = np.asarray(x, np.float64)
        which = np.argmin([self._distance(x, k)[:, 0] for k in range(len(self._parts))], axis=0)
        parts = {
            int(k): self._asked.values(self._parts[k], x[which == k]) for k in np.unique(which)
        }
        found = np.empty((len(x), *next(iter(parts.values())).shape[1:]))
        for k, values in parts.items():
            found[which == k] = values
        return found

    def __repr__(self) -> str:
        return f"Solution(networks={len(self.networks)}, misfit={self.misfit:.1e}, error={self.error:.1e})"


def solve(
    equation: Callable[[Any], Callable[[Tensor], Tensor]],
    shape: Shape,
    conditions: Sequence[tuple[Callable[[Any], Any], Any]] = (),
    *,
    outputs: int = 1,
    time: int | None = None,
    periodic: Sequence[int] = (),
    ansatz: Callable[[Any], Callable[[Tensor], Tensor]] | None = None,
    tolerance: float = 1e-6,
    max_seconds: float = 60.0,
    seed: int = 0,
    callback: Callable[[Solution], Any] | None = None,
    progress: bool = False,
) -> Solution:
    """Solve a differential equation, choosing how by what is measured on the way, and say why.

    u is a sum of waves of random frequencies; least squares by orthogonal factors determine their amplitudes,
    in Newton steps where the equation is not linear (J. Chen, X. Chi, W. E, Z. Yang, J. Mach. Learn. 1,
    2022). The frequencies, the places where coordinates are stretched because u is steep there, and the
    lengths of pieces of time are those with the smallest misfit: residuals at points that nothing was fitted
    to. Each pass has more waves and begins with the last one's solution. Where more waves hardly lower
    the misfit, u is made of pieces of space, the worst of which are halved from pass to pass, and whose
    values and derivatives below the equation's order agree where they meet; where Newton's steps do not end
    there, all begins again with other waves. In more than three dimensions dense layers are trained by
    Gauss-Newton steps instead.

    equation: a function of u that gives a residual function of points, [n, d] to [n, k]; u is a function of
    points, [n, d] to [n, outputs], as `gc.partials` takes it. shape: where it holds. conditions: pairs of
    such a function, as `lambda u: physics.dirichlet(u, 0.0)`, and of where on the boundary it holds: a
    function of points [n, d] that gives [n] of bool, or None for all of it. Residuals that take normals
    behind the points, as those of `neumann`, get them. outputs: how many numbers the network, or u, has at a
    point. time: the axis of a Box along which u evolves from conditions at its low end, in up to three
    coordinates in pieces one after the other. periodic: axes of a Box after whose length u repeats itself.
    ansatz: a function of the network that gives u, which equation and conditions then get:
    `lambda v: physics.enriched(v, given)`, or `lambda v: lambda x: before(x) + v(x)`, which begins with
    another solution. tolerance: the estimated relative error at which it ends. max_seconds: when it ends at
    the latest, with the best pass so far. seed: of points and frequencies. callback: a function of the
    Solution after each pass, which ends the run by returning True. progress: prints a line a pass.

    Where equation and conditions leave u free, as slopes alone leave a constant, the integral of its square
    is made small, and a RuntimeWarning says so.

    All is in float64. Raises TypeError and ValueError for other arguments, what GaussNewton raises for
    residuals of other shapes, and ValueError if no pass ends in time.
    """
    if not (tolerance >= 0 and max_seconds > 0):
        bad_value(
            "solve: tolerance must not be negative and max_seconds positive, got "
            f"{tolerance} and {max_seconds}"
        )
    asked = Asked(equation, shape, conditions, outputs, time, periodic, ansatz)
    return _Run(asked, tolerance, max_seconds, seed, callback, progress).solution()


class _Run:
    """The passes of one call."""

    def __init__(
        self, asked: Asked, tolerance: float, max_seconds: float, seed: int,
        callback: Callable[[Solution], Any] | None, progress: bool,
    ) -> None:  # fmt: skip
        self.asked, self.tolerance, self.seconds = asked, tolerance, max_seconds
        self.seed, self.callback, self.progress = seed, callback, progress
        self.begun = clock.perf_counter()
        self.fitter = Fitter(asked, seed)
        size = asked.size
        self.axes = [[k] for k in range(size)] if size <= APART else [list(range(size))]
        self.space = [[k for k in range(size) if k != asked.time]]
        self.history: list[SolutionPass] = []
        self.begin()

    def begin(self) -> None:
        """As before the first pass with this seed."""
        self.random = np.random.default_rng(self.fitter.seed)
        self.reach = np.full(self.asked.size, _FIRST[0])
        self.scanned = False  # whether the frequencies are those of a fit that says something
        self.seen: set[Any] = set()  # what was fitted in this pass: boxes, waves and frequencies
        self.since = self.spent()
        self.fit_seconds = 0.0
        self.best: Solution | None = None
        self.why: list[str] = []

    def spent(self) -> float:
        return clock.perf_counter() - self.begun

    def over(self) -> bool:
        return self.spent() > self.seconds

    # Fits -----------------------------------------------------------------------------------------

    def fit(
        self, of: Coordinates, count: int, before: Piece | None, guess: Guess,
        reach: Array | None = None,
    ) -> Piece:  # fmt: skip
        begun = self.spent()
        found = self.fitter.fit(of, self.reach if reach is None else reach, count, before, guess)
        self.fit_seconds = self.spent() - begun
        return found

    def searched(
        self, of: Coordinates, count: int, before: Piece | None, guess: Guess, groups: list[list[int]],
        enough: float, best: Piece | None = None,
    ) -> Piece:  # fmt: skip
        """A piece with the frequencies whose misfit is the smallest, or small enough, looked for in one group
        of axes after the other from those that there are."""
        firsts = () if self.scanned or best else _FIRST[1:]
        best = best or self.fit(of, count, before, guess)
        fit = of.sites, *of.low, *of.high, count
        self.seen.add((*fit, *self.reach))

        def better(reach: Array) -> bool:
            nonlocal best
            assert best is not None
            if (*fit, *reach) in self.seen:
                return False
            self.seen.add((*fit, *reach))
            found = self.fit(of, count, before, guess, reach)
            if not found.beats(best):
                return False
            best, self.reach = found, reach
            return True

        for first in firsts:
            if best.misfit > enough:
                better(np.full(self.asked.size, first))
        for group in groups:
            for factor in _FACTORS:
                found, reach = False, self.reach.copy()
                reach[group] *= factor
                while best.misfit > enough and not self.over() and better(reach):
                    found, reach = True, reach.copy()
                    reach[group] *= factor
                if found:
                    break
        self.scanned = self.scanned or best.misfit < _CLEAR
        return best

    def adapted(
        self, piece: Piece, enough: float, count: int, before: Piece | None, guess: Guess
    ) -> Piece:
        """A piece in the same box with a smaller misfit, by sites where it is steep and other frequencies."""
        for _ in range(4):
            if not enough < piece.misfit < _LOST or self.over():
                return piece
            of, sites = piece.coordinates, self.sites(piece)
            if not _finer(sites, of.sites):
                break
            stretched = Coordinates(of.low, of.high, sites)
            trial = self.fit(stretched, count, before, guess)
            if [*map(len, sites)] != [*map(len, of.sites)]:
                trial = self.searched(stretched, count, before, guess, self.space, enough, trial)
            if trial.misfit >= piece.misfit:
                break
            piece = trial
        if enough < piece.misfit < _LOST and self.space[0]:
            piece = self.searched(
                piece.coordinates, count, before, guess, self.space, enough, piece
            )
        return piece

    def sites(self, piece: Piece) -> tuple[tuple[Site, ...], ...]:
        """The sites at which a piece is steep, for each axis."""
        of, size, lines, n = piece.coordinates, self.asked.size, 12, 250
        found: list[tuple[Site, ...]] = [()] * size
        for k in filter(self.asked.stretched, range(size)):
            z = np.repeat(self.random.uniform(-1, 1, (lines, 1, size)), n, 1)
            z[:, :, k] = np.linspace(-1, 1, n)
            x = of.back(z.reshape(-1, size))
            u = self.asked.values(piece, x).reshape(lines, n, -1)
            length = float(of.high[k] - of.low[k])
            found[k] = steep_sites([*x[:, k].reshape(lines, n)], [*u], length, _SITES)
        return tuple(found)

    # Passes ---------------------------------------------------------------------------------------

    def solution(self) -> Solution:
        """The best of all passes."""
        if self.asked.time is None or self.asked.size > APART:
            while not self.steady():
                self.fitter.seed += 1
                self.begin()
                self.why.append(
                    "Newton's steps from a solution of fewer waves did not end: all began again with others."
                )
        else:
            self.timed(self.asked.time)
        assert self.best is not None
        first = "The residuals are linear in u: one least-squares problem fits a network."
        if not self.fitter.linear:
            first = "The residuals are not linear in u: Newton steps fit a network."
        if self.fitter.free:
            first += " " + _UNDETERMINED
            warnings.warn(f"solve: {_UNDETERMINED}{where()}", RuntimeWarning, stacklevel=3)
        self.best.why = [first, *self.why]
        self.best.history = self.history
        self.best.reached = self.best.error <= self.tolerance
        return self.best

    def steady(self) -> bool:
        """More and more waves, as long as they pay or say too little, and if a pass will take long, as long
        as they pay well; else pieces of space, or layers. Returns False if all should begin again."""
        asked, count, last, groups = self.asked, _FEW, np.inf, self.axes * 2
        of = Coordinates(asked.shape.low, asked.shape.high, ((),) * asked.size)
        free = [k for k in range(asked.size) if k not in asked.periodic and asked.size <= APART]
        while True:
            past, started = self.past(), self.spent()
            piece = self.searched(of, count, None, past, groups, self.tolerance / 10)
            if asked.boxed:
                piece = self.adapted(piece, self.tolerance / 10, count, None, past)
            of = piece.coordinates
            if self.ended([piece]):
                break
            if asked.size > APART and count > 2 * _FEW and piece.misfit > _SLOW * last:
                self.why.append(
                    f"{count} waves leave a misfit of {piece.misfit:.1e}, two thirds of them {last:.1e}: "
                    f"more do not pay in {asked.size} dimensions, so dense layers are trained by "
                    "Gauss-Newton steps."
                )
                layers = train(asked, self.fitter, piece, self.seed, self.begun + self.seconds)
                any(self.ended([found]) for found in layers)
                return True
            left = self.seconds - self.spent()
            long = 3 * _MORE**3 * (self.spent() - started) > left
            least = _SLOW / 2 if long else _SLOW
            over = 40 * self.fit_seconds > left
            # Where waves are too few to show anything, more of them may pay all of a sudden, but not
            # where they make it worse.
            clear = piece.misfit < _CLEAR or piece.misfit > last
            slow = piece.misfit > least * last and (long or clear)
            if free and piece.misfit < _LOST and (over or slow):
                return self.halved(piece, free)
            if over:
                self.why.append(f"More than {count} waves would have taken too long.")
                break
            last, groups = piece.misfit, self.axes
            self.faster()
            count = int(_MORE * count)
        self.tell([piece])
        return True

    def halved(self, whole: Piece, axes: Sequence[int]) -> bool:
        """Pieces of space, those with the largest misfits in halves along each axis from pass to pass.
        Returns False if they contradict the last solution, and there is time to begin again."""
        if 2 * self.fit_seconds > self.seconds - self.spent():
            self.tell([whole])
            return True
        reach = self.reach * _FACTORS[2] * (self.each() / whole.count) ** (1 / self.asked.size)
        boxes = [(of, reach) for of in self.halves(whole.coordinates, axes)]
        factors = itertools.cycle([_FACTORS[1], 1 / _FACTORS[1]])
        guess = self.past()
        while True:
            pieces, boxes = self.side_by_side(boxes, next(factors), guess)
            guess = Solution(pieces, self.asked).values
            if self.ended(pieces):
                break
            if self.contradicted(pieces):
                return False
            misfits = np.array([p.misfit for p in pieces])
            order = np.argsort(misfits)
            kept = order[np.cumsum(misfits[order]) < _LEFT * misfits.sum()]
            halves = [
                [b] if k in kept else [(of, b[1]) for of in self.halves(b[0], axes)]
                for k, b in enumerate(boxes)
            ]
            boxes = [b for some in halves for b in some]
            more = len(boxes) / len(pieces)
            if self.fit_seconds * more**1.5 > self.seconds - self.spent():
                self.why.append(f"More than {len(pieces)} pieces would have taken too long.")
                break
        self.tell(pieces)
        return True

    def contradicted(self, pieces: Sequence[Piece]) -> bool:
        """Return whether Newton's steps from the last solution did not end, as where fewer waves had one that
        the equation does not have, and there is as much time left as was spent."""
        worse = self.best and Solution(pieces, self.asked).misfit > self.best.misfit
        time = self.seconds - self.spent() > self.spent() - self.since
        return bool(self.past() and worse and not self.fitter.ended and time)

    def halves(self, of: Coordinates, axes: Sequence[int]) -> list[Coordinates]:
        """The halves of a box along its longer ones of some axes, those that have any of the shape."""
        ends, longest = [(of.low, of.high)], max(of.high[k] - of.low[k] for k in axes)
        for k in (k for k in axes if of.high[k] - of.low[k] > 0.6 * longest):
            parted = []
            for low, high in ends:
                middle = (low[k] + high[k]) / 2
                below, above = high.copy(), low.copy()
                below[k] = above[k] = middle
                parted += [(low, below), (above, high)]
            ends = parted
        return [
            Coordinates(a, b, ((),) * self.asked.size)
            for a, b in ends
            if self.asked.inhabited(a, b)
        ]

    def each(self) -> int:
        """The waves of a piece of space."""
        return int(_EACH / np.sqrt(self.fitter.numbers))

    def side_by_side(
        self, boxes: Sequence[tuple[Coordinates, Array]], factor: float, guess: Guess
    ) -> tuple[list[Piece], list[tuple[Coordinates, Array]]]:
        """Pieces in boxes with given frequencies, or so many times them where that is better, and each box
        with the frequencies whose misfit there is smaller."""
        count, begun = self.each(), self.spent()
        places, first = map(list, zip(*boxes, strict=True))
        second = [factor * reach for reach in first]
        one = self.fitter.together(places, first, count, None, guess)
        guess = Solution(one, self.asked).values
        other = one if self.over() else self.fitter.together(places, second, count, None, guess)
        self.fit_seconds = self.spent() - begun
        misfits = np.array([[p.misfit for p in found] for found in (one, other)])
        better = misfits[1] < 0.8 * misfits[0]
        best = [b if new else a for a, b, new in zip(first, second, better, strict=True)]
        found = [one, other][int(np.argmin(np.linalg.norm(misfits, axis=1)))]
        return found, [*zip(places, best, strict=True)]

    def faster(self) -> None:
        """The frequencies that more waves have room for."""
        self.seen.clear()
        if self.scanned:
            self.reach = self.reach * _MORE ** (1 / self.asked.size)

    def timed(self, axis: int) -> None:
        """Passes over pieces of time, each with more waves and a smaller misfit."""
        count, tolerance = _FEW, _ROUGH
        h = float(self.asked.shape.high[axis] - self.asked.shape.low[axis])
        pieces: list[Piece] = []
        while True:
            found = self.march(axis, count, tolerance, h)
            if not found:
                self.why.append(f"A pass with {count} waves did not end in time.")
                break
            pieces = found
            if self.ended(pieces):
                break
            h = float(pieces[0].coordinates.high[axis] - self.asked.shape.low[axis])
            count, tolerance = int(_MORE * count), _LESS * tolerance
            self.faster()
        self.tell(pieces)

    def march(self, axis: int, count: int, tolerance: float, h: float) -> list[Piece]:
        """One pass: its pieces, none if it did not end in time. Where the misfit is above the tolerance, a
        piece is halved as long as two such steps halve the misfit, and once where that lowers it clearly;
        else it gets more waves, and where nothing helps its misfit becomes the tolerance. Frequencies in time
        stay as they are when a piece becomes shorter or longer. Longer ones are tried where the misfit
        allows, now and then where it is just below the tolerance."""
        low, high = (float(x[axis]) for x in (self.asked.shape.low, self.asked.shape.high))
        pieces: list[Piece] = []
        sites: Any = ((),) * self.asked.size
        t, most, past = low, 2 * count, self.past()
        tried: list[tuple[Piece, Array]] = []  # that begin here, with their frequencies
        # Pieces of one length so far, and how many there are before a longer one is tried.
        alike, patience = 0, 2

        def lengthen(to: float) -> float:
            self.reach[axis] *= to / h
            return to

        while high - t > 1e-9 * (high - low):
            if self.over():
                if self.best is None:
                    bad_value(f"solve: no pass ended within {self.seconds:g} s, allow max_seconds")
                return []
            longer = alike >= patience and not tried
            h = lengthen(2 * h) if longer else h
            h = lengthen(high - t) if high - t < 1.3 * h else h
            begin, end = self.asked.shape.low.copy(), self.asked.shape.high.copy()
            begin[axis], end[axis] = t, t + h
            of, before = Coordinates(begin, end, sites), pieces[-1] if pieces else None
            guess = past or (self.later(before, axis) if before else None)
            if before is None:
                groups = self.axes * (1 if past else 2)
                piece = self.searched(of, count, None, guess, groups, tolerance / 10)
            else:
                piece = self.fit(of, count, before, guess)
            if longer:
                alike, patience = 0, 2 if piece.misfit <= tolerance else 2 * patience
                if piece.misfit > tolerance:
                    h = lengthen(h / 2)
                    continue
            piece = self.adapted(piece, tolerance, count, before, guess)
            if piece.misfit < _LOST:
                sites = piece.coordinates.sites
            pays = len(tried) < 2 or piece.misfit < 0.5 * tried[-2][0].misfit
            if len(tried) == 1 and piece.misfit <= tolerance:
                pays = piece.misfit < 0.7 * tried[0][0].misfit
            if (piece.misfit > tolerance or not pays) and h > 1e-6 * (high - low):
                tried.append((piece, self.reach.copy()))
                stuck = len(tried) > 4 and piece.misfit > 0.5 * tried[-5][0].misfit
                if pays or (piece.misfit > _CLEAR and (count >= most or not stuck)):
                    h = lengthen(h / 2)
                    continue
                least = min(p.misfit for p, _ in tried)
                piece, self.reach = next(x for x in tried if x[0].misfit < 1.5 * least)
                h = float(piece.coordinates.high[axis]) - t
                if count < most:
                    count, tried = int(_MORE * count), []
                    continue
                tolerance = max(tolerance, 1.5 * piece.misfit)
            pieces.append(piece)
            t += h
            alike = 0 if tried else alike + 1
            if piece.misfit < tolerance / 2:
                h, alike = lengthen(h * (1.4 if piece.misfit > tolerance / 100 else 2.5)), 0
            tried, sites = [], self.sites(piece)
        return pieces

    def later(self, piece: Piece, axis: int) -> Callable[[Array], Array]:
        """The values of a piece at its end of an axis, a function of points."""

        def values(x: Array) -> Array:
            x = x.copy()
            x[:, axis] = piece.coordinates.high[axis]
            return self.asked.values(piece, x)

        return values

    def past(self) -> Guess:
        """The last solution, where it says something."""
        return self.best.values if self.best and self.best.misfit < _LOST else None

    def ended(self, parts: Sequence[_Part]) -> bool:
        """Takes note of a pass; whether it was the last one."""
        found, change = Solution(parts, self.asked), float("nan")
        if self.best is not None:
            some = parts[:: max(1, len(parts) // 50)]
            x = np.concatenate([self.asked.inside(400, p.coordinates, 7) for p in some])
            new, old = found.values(x), self.best.values(x)
            size = np.maximum(np.linalg.norm(new, axis=0), np.finfo(np.float64).tiny)
            change = float(np.max(np.linalg.norm(new - old, axis=0) / size))
            better = found.misfit < self.best.misfit
            gain = found.misfit / self.best.misfit if better else 1.0
            found.error = max(found.misfit, change * gain)
            self.best.error = float(np.fmin(self.best.error, max(self.best.misfit, change)))
        size, count = max(p.size for p in parts), len(parts)
        self.history.append(
            SolutionPass(self.spent(), size, count, found.misfit, change, found.error)
        )
        if self.progress:
            print(
                f"solve: {self.spent():.1f} s, {size} unknowns in {count} pieces, misfit "
                f"{found.misfit:.1e}, estimated error {found.error:.1e}"
            )
        if self.best is None or found.misfit <= self.best.misfit:
            self.best = found
        stopped = self.callback is not None and self.callback(found) is True
        return stopped or self.best.error <= self.tolerance or self.over()

    def tell(self, pieces: Sequence[Piece]) -> None:
        """Says what the last pass chose."""
        reach = ", ".join(f"{r:.2g}" for r in self.reach)
        self.why.append(
            f"The misfit was the smallest with frequencies up to {reach} radians from the middle to the "
            "ends of the axes."
        )
        for k in range(self.asked.size):
            sites = [s for p in pieces for s in p.coordinates.sites[k]]
            if sites:
                place, width = min(sites, key=lambda s: s[1])
                self.why.append(
                    f"Axis {k} is stretched where u is steep, most at {place:.2g}, where it changes within "
                    f"{width:.1e}."
                )
        axis = self.asked.time
        if len(pieces) > 1 and axis is None:
            width = min(float(np.min(p.coordinates.high - p.coordinates.low)) for p in pieces)
            self.why.append(
                f"More waves did not pay: space is in {len(pieces)} pieces, the smallest {width:.2g} wide; "
                "those with the largest misfits were halved."
            )
        elif len(pieces) > 1:
            lengths = [p.coordinates.high[axis] - p.coordinates.low[axis] for p in pieces]
            self.why.append(
                f"Time is in {len(pieces)} pieces, the shortest {min(lengths):.2g} long: longer ones had "
                "misfits above what the pass allowed."
            )


def _finer(some: Any, than: Any) -> bool:
    """Return whether there are sites where the others have none, or one half as wide again."""
    return any(
        not any(w < 1.5 * width and abs(p - place) < 1.5 * w for p, w in others)
        for sites, others in zip(some, than, strict=True)
        for place, width in sites
    )
