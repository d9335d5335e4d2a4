"""Ways that a coin opens and the first runs have not taken, such as an output for debugging once in
a thousand draws: each is taken on purpose, to see whether one input alone has what comes of it."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .events import Choice, TooLong
from .places import place_of
from .running import run
from .selected import hastened, text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from .events import Entry, Moment
    from .places import Place, Spot
    from .recorder import Recorder
    from .running import Run, Subject

    Coupled = Any  # of coupling.py, which imports this module

# Laws whose outcomes are written down as they are; of others, which one is picked.
_NUMBERS = ("integers", "binomial")
# How a comparison falls.
_HOLDS = {True: "holds", False: "does not hold"}
# Ways that are tried, the rarest first, and for how many seconds; and the runs on either input,
# with noise of their own, that show what a way comes to.
_WAYS, _SECONDS, _RUNS, _SEED = 24, 1.0, 24, 4_000


class Seldom(NamedTuple):
    """What one input alone has on a way that a coin seldom opens, in every run.

    coin: where it is tossed.  falls: how, in words.  chance: how likely that is.  part: of the
    output, by its name, or "raises".  which: the input that has it, 0 or 1.  value: what it has.
    error: the exception, with its line.  place: the last line of its run.
    """

    coin: Place
    falls: str
    chance: float
    part: str
    which: int
    value: str
    error: Any
    place: Place | None


class _Way(NamedTuple):
    """What one coin, or choice of few outcomes, might have come to. chance: that it does so once at
    least, of all times that it is tossed on its line."""

    moment: Moment
    value: Any
    chance: float
    falls: str


def seldom(
    subject: Subject,
    inputs: tuple[Any, Any],
    firsts: Sequence[Run],
    seed: int,
    couple: Callable[[Run, bool], Coupled],
    others: Callable[[], tuple[list[Run], list[Run]]],
    strict: bool,
) -> Iterator[tuple[Seldom, Coupled]]:
    """Yield what one input alone has on such ways, with a pair of runs that shows it, as far as
    there is time.

    firsts: a run on d1 and one on d2.  seed: of both.  couple: adds the run on the other input with
    the same noise to one on d1 (True) or d2 (False).  others: returns runs of either input in which
    no coin was turned.
    """
    own = hastened(subject, _SECONDS)
    seen: set[tuple[Spot, Any]] = set()
    with suppress(TooLong):
        for forward, first in zip((True, False), firsts):
            for way in sorted(_ways(first.recorder), key=lambda way: way.chance)[:_WAYS]:
                if (way.moment[1], way.value) in seen:
                    continue
                overrides: dict[Entry, Any] = {(way.moment, 0): way.value}
                turned = run(own, inputs[not forward], seed, overrides=overrides, is_strict=strict)
                coin = turned.recorder.by_moment.get(way.moment)
                if isinstance(coin, Choice) and not _are_lone(turned.recorder)(coin):
                    continue
                pair = couple(turned, forward)
                if pair.absorbed is not None:
                    continue  # what the other input has may be its own, which its turn shows
                seen.add((way.moment[1], way.value))
                laws = [one.probabilities for one in pair.comparison.chosen]
                if not pair.noised or any(one != other for one, other in laws):
                    continue
                found = _of_one_alone(own, inputs, pair, overrides, others, strict)
                if found is not None:
                    yield _seldom(way, found, pair), pair


def _seldom(way: _Way, found: tuple[str, int, str], pair: Coupled) -> Seldom:
    which = found[1]
    ends = pair.comparison.ends if pair.forward else pair.comparison.ends[::-1]
    error = next((one for one in pair.comparison.errors if one is not None), None)
    place = place_of(way.moment[1])
    is_raised = found[0] == "raises"
    return Seldom(
        place, way.falls, way.chance, *found, error if is_raised else None, ends[which] or ends[0]
    )


def _ways(recorder: Recorder) -> Iterator[_Way]:
    """Yield them, of each line and outcome the first. Only single coins whose number is used for
    nothing else: turned, another comparison of it would contradict this one."""
    left: dict[tuple[Spot, Any], float] = {}
    found: dict[tuple[Spot, Any], _Way] = {}

    def add(moment: Moment, value: Any, chance: float, falls: str) -> None:
        key = moment[1], value
        left[key] = left.get(key, 1.0) * (1 - chance)
        found.setdefault(key, _Way(moment, value, chance, falls))

    is_lone = _are_lone(recorder)
    for coin in recorder.choices:
        if is_lone(coin):
            value = not bool(np.ravel(coin.values)[0])
            holds = float(np.ravel(coin.probability)[0])
            add(coin.moment, value, holds if value else 1 - holds, _HOLDS[value])
    for draw in recorder.draws:
        if draw.outcomes and np.size(draw.values) == 1:
            seen = np.ravel(draw.values)[0]
            for outcome, chance in draw.outcomes:
                if outcome != seen:
                    is_itself = draw.law in _NUMBERS
                    falls = f"is {outcome}" if is_itself else f"picks option {outcome + 1}"
                    add(draw.moment, outcome, chance, falls)
    for key, way in found.items():
        if left[key] < 1:
            yield way._replace(chance=1 - left[key])


def _are_lone(recorder: Recorder) -> Callable[[Choice], bool]:
    """Return what tells whether a coin is a single uniform number that was compared once, and used
    for nothing else."""

    def pieces(ids: Any) -> Iterator[int]:
        for number in np.ravel(ids).tolist():
            yield from recorder.pieces.parts_of(number)

    every = [one.ids for one in recorder.choices] + [one.ids for one in recorder.uses]
    used = Counter(piece for ids in every for piece in pieces(ids))

    def is_lone(coin: Choice) -> bool:
        if np.size(coin.values) != 1:
            return False
        numbers = list(pieces(coin.ids))
        draws = [recorder.pieces.draw_of(number) for number in numbers]
        are_uniform = all(draw is not None and draw.law == "uniform" for draw in draws)
        return are_uniform and all(used[number] == 1 for number in numbers)

    return is_lone


def _of_one_alone(
    subject: Subject,
    inputs: tuple[Any, Any],
    pair: Coupled,
    overrides: dict[Entry, Any],
    others: Callable[[], tuple[list[Run], list[Run]]],
    strict: bool,
) -> tuple[str, int, str] | None:
    """Return a part of the output, which input alone has a value there, and that: it has it in
    every run on this way, and the other input in none, on this way or another."""
    both = [
        [
            run(subject, one, seed, overrides=overrides, has_lines=False, is_strict=strict)
            for seed in range(_SEED, _SEED + _RUNS)
        ]
        for one in inputs
    ]
    free = others()
    for name in sorted(pair.noised, key=lambda name: name.startswith("len(")):
        for which in (0, 1):
            own = {text_of(one, name) for one in both[which]}
            never = {text_of(one, name) for one in (*both[1 - which], *free[1 - which])}
            (value, *more) = own
            if value is not None and not more and value not in never:
                return name, which, value
    return None
