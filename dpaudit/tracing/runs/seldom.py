"""Ways that a coin opens and no run has taken, such as an output for debugging once in a thousand
draws: each is taken on purpose, on both inputs, to see whether noise hides what differs there."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .events import TooLong
from .places import place_of
from .running import run
from .selected import text_of, texts_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from .events import Entry, Moment
    from .places import Place
    from .running import Run, Subject

    Coupled = Any  # of coupling.py, which imports this module
    Way = tuple[Moment, Any, float, str]

# Laws whose outcomes are written down as they are; of others, which one is picked.
_NUMBERS = ("integers", "binomial")
# Coins that are tried, the rarest ways first; and runs with noise of their own on each way.
_COINS, _RUNS, _SEED = 64, 12, 4_000
# A value that comes up less often is a measurement, such as noise that was not seen.
_AGAIN = 2


class Seldom(NamedTuple):
    """What one input alone has on a way that a coin seldom opens, though all noised values are
    equal.

    coin: where it is tossed.  falls: how, in words.  chance: how likely that is.  part: of the
    output, by its name, or "raises".  values: of d1 and d2.  error: the exception, with its line.
    place: the last line of the run.  pair: of runs that show it.
    """

    coin: Place
    falls: str
    chance: float
    part: str
    values: tuple[str | None, str | None]
    error: Any
    place: Place | None
    pair: Coupled


def seldom(
    subject: Subject,
    inputs: tuple[Any, Any],
    firsts: Sequence[Run],
    seed: int,
    couple: Callable[[Run, bool], Coupled],
    others: Callable[[], tuple[list[Run], list[Run]]],
    strict: bool,
) -> Iterator[Seldom]:
    """Yield what one input alone has on such ways.

    firsts: a run on d1 and one on d2.  seed: of both.  couple: adds the run on the other input with
    the same noise to one on d1 (True) or d2 (False).  others: returns runs of either input in which
    no coin was turned.
    """
    seen: set[tuple[Moment, Any]] = set()
    with suppress(TooLong):
        for forward, first in zip((True, False), firsts):
            ways = sorted(_ways(first), key=lambda way: way[2])
            for moment, value, chance, falls in ways[:_COINS]:
                if (moment, value) in seen:
                    continue
                overrides: dict[Entry, Any] = {(moment, 0): value}
                turned = run(
                    subject, inputs[not forward], seed, overrides=overrides, is_strict=strict
                )
                pair = couple(turned, forward)
                if pair.absorbed is not None:
                    continue  # what the other input has may be its own, which its turn shows
                seen.add((moment, value))
                laws = [one.probabilities for one in pair.comparison.chosen]
                if any(one != other for one, other in laws):
                    continue
                found = _of_one_alone(subject, inputs, pair, overrides, others, strict)
                if found is not None:
                    errors, ends = pair.comparison.errors, pair.comparison.ends
                    yield Seldom(
                        place_of(moment[1]), falls, chance, *found,
                        next((one for one in errors if one is not None), None),
                        next((one for one in ends if one is not None), None), pair,
                    )  # fmt: skip


def _ways(first: Run) -> Iterator[Way]:
    """Yield what single coins, and choices of few outcomes, might have come to: the moment, the
    outcome, how likely that is, and in words."""
    for coin in first.recorder.choices:
        if np.size(coin.values) == 1:
            value = not bool(np.ravel(coin.values)[0])
            holds = float(np.ravel(coin.probability)[0])
            chance = holds if value else 1 - holds
            if chance > 0:
                yield coin.moment, value, chance, "holds" if value else "does not hold"
    for draw in first.recorder.draws:
        if draw.outcomes and np.size(draw.values) == 1:
            seen = np.ravel(draw.values)[0]
            for outcome, chance in draw.outcomes:
                if outcome != seen and chance > 0:
                    is_itself = draw.law in _NUMBERS
                    falls = f"is {outcome}" if is_itself else f"picks option {outcome + 1}"
                    yield draw.moment, outcome, chance, falls


def _of_one_alone(
    subject: Subject,
    inputs: tuple[Any, Any],
    pair: Coupled,
    overrides: dict[Entry, Any],
    others: Callable[[], tuple[list[Run], list[Run]]],
    strict: bool,
) -> tuple[str, tuple[str | None, str | None]] | None:
    """Return a part of the output in which one input alone has a value, with what both have: on
    this way it comes up again with other noise, and the other input has it on no way."""
    names = sorted(pair.noised, key=lambda name: name.startswith("len("))
    if not names:
        return None
    both = [
        [
            run(subject, one, seed, overrides=overrides, has_lines=False, is_strict=strict)
            for seed in range(_SEED, _SEED + _RUNS)
        ]
        for one in inputs
    ]
    free = others()
    for name in names:
        values = texts_of(pair, name)
        for which in (0, 1):
            own = [text_of(one, name) for one in both[which]]
            never = [text_of(one, name) for one in (*both[1 - which], *free[1 - which])]
            value = values[which]
            if value is not None and own.count(value) >= _AGAIN and value not in never:
                return name, values
    return None
