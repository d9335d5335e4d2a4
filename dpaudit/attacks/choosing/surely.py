"""Outputs that one input alone gave: how sure that is, what bold bets on it make, and how it is bet
on beside any other order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from dpaudit.attacks.choosing.aim import Aim, evidence, promise
from dpaudit.attacks.rare import NAME as RARE
from dpaudit.draws import LevelArray
from dpaudit.levels import tuning
from dpaudit.levels.candidate import Candidate
from dpaudit.levels.cells import NO_OUTPUT
from dpaudit.levels.level_map import FloatArray, Grouped, IntArray, LevelMap
from dpaudit.levels.shrinkage import ShrunkLevels
from dpaudit.outcomes import Outcomes


@dataclass(frozen=True, slots=True, eq=False)
class SetApart(LevelMap):
    """The levels of an order, and at one end of it one more for what another order sets apart.

    chosen: (levels of `other`,), what is set apart.  place: of the level that it gets.
    """

    order: LevelMap
    other: LevelMap
    chosen: NDArray[np.bool_]
    place: int

    @property
    def levels(self) -> int:
        return self.order.levels + 1

    def __call__(self, outcomes: Outcomes) -> LevelArray:
        level = self.order(outcomes)
        moved = level + (level >= self.place)
        return np.where(self.chosen[self.other(outcomes)], self.place, moved).astype(np.intp)

    def words(self, chosen: NDArray[np.bool_]) -> str:
        usual = self.order.words(np.delete(chosen, self.place))
        apart = self.other.words(self.chosen)
        if not chosen.any():
            return NO_OUTPUT
        if not chosen[self.place]:
            return f"{usual}, and not: {apart}"
        return apart if usual == NO_OUTPUT else f"{usual}, or {apart}"


def sure_guesses(candidate: Candidate, aim: Aim, luck: float) -> IntArray:
    """Return the guess of one input where only that one was seen, and so often that the claimed ε
    allows it with a probability of at most `luck`: (levels,). Of the two inputs, the one with more
    such draws, since a rule that guesses both has to pay for all of δ.

    Of the cells of orders other than what is rare, which are many, some are lucky: of so many the
    probability is a part. Of what is rare it is so for cells that tell nothing. Where a level was
    set apart, it alone is guessed.
    """
    if candidate.apart is not None:
        guesses = np.zeros(len(candidate.held_out), dtype=np.int64)
        first, second = candidate.held_out[candidate.apart]
        is_sure = max(first, second) * _nats(aim) >= -math.log(luck)
        guesses[candidate.apart] = np.sign(first - second) * is_sure
        return guesses
    counts, together, cells = candidate.held_out, candidate.held_out, len(candidate.held_out)
    if candidate.fine is not None:
        together, cells = _of_largest_cells(candidate), len(candidate.fine.counts)
    least = math.log((1 if candidate.attack == RARE else cells) / luck)
    # Of what is rare most may tell nothing, and comes up for either input as often.
    by_chance = together * math.log(2) < math.log(cells / luck)
    sure = (together * _nats(aim) >= least) & ~by_chance & (counts[:, ::-1] == 0)
    arm = int(np.argmax((counts * sure).sum(axis=0)))
    return np.where(sure[:, arm], 1 - 2 * arm, 0).astype(np.int64)


def sure_growth(candidate: Candidate, aim: Aim) -> float:
    """Return how much log wealth bold bets on what one input alone gave would have made of as many
    draws, less what is luck; 0 where nothing was given by one alone so often."""
    guesses = sure_guesses(candidate, aim, tuning.HARDLY)
    if not guesses.any():
        return 0.0
    draws = float(candidate.held_out[guesses != 0].sum())
    paid = aim.point.delta * int(candidate.held_out.sum()) / 2
    return max(0.0, (draws - paid) * _nats(aim) + math.log(tuning.HARDLY))


def is_telling(rare: Candidate, aim: Aim, more: float = 1.0) -> bool:
    """Return whether rare outputs may refute the claim, with so many times the draws: what a single
    input has given so far, or what is more than the luckiest of some.

    rare: an order of them, of which nothing was lowered to be sure.
    """
    luckiest = math.log(len(rare.held_out)) + tuning.LIKELY
    if evidence(rare, aim) > luckiest:
        return True
    of_one = rare.held_out[rare.held_out.min(axis=1) == 0]
    most = int(of_one.max(initial=0))
    if most * _nats(aim) < -math.log(tuning.HARDLY):
        return False
    # Of as many cells that tell nothing, which both inputs give as often, none is likely to.
    is_of_one = more > 1 and most * math.log(2) > luckiest
    return is_of_one or evidence(rare.foreseen(more), aim) > tuning.LIKELY


def likely_to_refute(candidates: list[Candidate], aim: Aim) -> Candidate | None:
    """Return the order that may refute the claim, where nothing is sure to: it is worth more than
    one that shows more but cannot."""
    hopeful = [one.hopeful() for one in candidates if one.shrunk is not None]
    able = [
        one
        for one in hopeful
        if promise(one, aim)[0] > aim.point.epsilon
        and (is_telling(one, aim) if one.attack == RARE else evidence(one, aim) > tuning.LIKELY)
    ]
    return max(able, key=lambda one: evidence(one, aim), default=None)


def is_as_likely(best: Candidate, likely: Candidate, aim: Aim) -> bool:
    """Return whether the order that promises most is as likely to refute the claim as one of a few
    rare outputs is: its frequent outputs foretell that it does, and as much speaks for it."""
    if not (best.is_smooth and best.smoothed.follows):
        return False
    promised = float(np.max(aim.chosen_by(best)))
    return promised > aim.point.epsilon and evidence(best, aim) >= evidence(likely, aim)


def with_the_sure(best: Candidate, candidates: Sequence[Candidate], aim: Aim) -> Candidate:
    """Return an order to bet on, with what one input alone gave set apart in it, if another order
    shows more of that."""
    if not aim.reserve or aim.point.delta == 0:
        return best
    other = max(candidates, key=lambda one: sure_growth(one, aim))
    if sure_growth(other, aim) <= sure_growth(best, aim):
        return best
    guesses = sure_guesses(other, aim, tuning.HARDLY)
    place = len(best.held_out) - 1 if guesses.max() > 0 else 0
    draws = other.held_out[guesses != 0].sum(axis=0)
    shrunk = best.shrunk
    if shrunk is not None:
        expected = np.insert(shrunk.expected, place, draws, axis=0)
        shrunk = ShrunkLevels(expected, np.insert(shrunk.variance, place, 0.0))
    return replace(
        best,
        held_out=np.insert(best.held_out, place, draws, axis=0),
        freeze=partial(_set_apart, best, other, guesses != 0, place),
        shrunk=shrunk,
        fine=None,
        scored=None,
        position=_beyond(best.position, place),
        place=None,
        finer=None,
        again=None,
        apart=place,
    )


def _of_largest_cells(candidate: Candidate) -> IntArray:
    """Return the draws of the largest cell of every level, by input, of an order of cells that are
    together since their counts are alike: (levels, 2)."""
    level, fine = candidate.freeze(), candidate.fine
    if fine is None or not isinstance(level, Grouped):
        return candidate.held_out
    found = np.zeros_like(candidate.held_out)
    np.maximum.at(found, level.group, fine.counts)
    return found


def _set_apart(
    best: Candidate, other: Candidate, chosen: NDArray[np.bool_], place: int
) -> SetApart:
    return SetApart(best.freeze(), other.freeze(), chosen, place)


def _beyond(position: FloatArray | None, place: int) -> FloatArray | None:
    """Return positions with that of one more level at an end, as far out as the last one."""
    if position is None or len(position) == 0:
        return None
    return np.insert(position, place, position[min(place, len(position) - 1)])


def _nats(aim: Aim) -> float:
    """Return what a draw that one input alone can give is worth, at the claim's ε."""
    return math.log1p(math.exp(-aim.point.epsilon))
