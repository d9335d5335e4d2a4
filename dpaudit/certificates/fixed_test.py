"""The one exact test of a pair: from the tally of draws kept for it to bounds and a p-value."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from dpaudit.certificates.certificate import EventCount, FixedStage, FixedTest, Guess, RuleKind
from dpaudit.claims import ProfilePoint
from dpaudit.draws import AtomTally, Tally
from dpaudit.levels.portfolio import SingleOutputs
from dpaudit.stats import game as games
from dpaudit.stats import power, probabilistic
from dpaudit.stats.binomial import (
    clopper_pearson_interval,
    pair_delta_lower,
    pair_epsilon_lower,
    pair_p_value,
)

AccusedAtom = tuple[str, Guess, int, int]
Accused = tuple[AccusedAtom, ...]
Words = Sequence[str | None]

_GUESSES: tuple[Guess, Guess] = ("d1", "d2")


@dataclass(frozen=True, slots=True)
class FrozenRule:
    """A rule of the portfolio, as a test needs it.

    share: its part of the exact test's error probability.  attack: what found it.  guesses:
    (levels,), 1 for d1, -1 for d2, 0 for none.  words: its events, for d1 and for d2.  point: the
    inequality that it tests; None for the one that is bet against.
    """

    kind: RuleKind
    share: float
    attack: str
    guesses: tuple[int, ...]
    words: Words = (None, None)
    point: ProfilePoint | None = None

    @property
    def guessed(self) -> NDArray[np.int64]:
        return np.array(self.guesses, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Setting:
    """What a test is about: its stage, the point of the claim, its share of the error probability,
    and the confidence of the intervals that are shown beside it."""

    stage: FixedStage
    point: ProfilePoint
    alpha: float
    confidence: float


def game_test(setting: Setting, tally: Tally, rule: FrozenRule) -> FixedTest:
    """Return the test of the distinguishing game."""
    game, point, alpha = tally.game(rule.guessed), setting.point, setting.alpha
    p = games.p_value(game, point.epsilon, point.delta, alpha)
    epsilon = games.epsilon_lower(game, point.delta, alpha)
    return FixedTest(
        stage=setting.stage,
        method="game",
        alpha=alpha,
        draws=tally.draws,
        correct=game.correct,
        wrong=game.wrong,
        two_guesses=game.two_guesses,
        events=_events(setting, tally, rule),
        epsilon_lower=epsilon,
        delta_lower=games.delta_lower(game, point.epsilon, point.delta, alpha),
        # Where the two disagree, on account of the scan's steps, the claim stands.
        p_value=p if p > alpha or epsilon >= point.epsilon else math.nextafter(alpha, 1.0),
        detectable_epsilon=power.detectable_epsilon(
            game.correct + game.wrong,
            point.epsilon,
            alpha,
            draws=game.draws,
            spared=game.h * point.delta,
        ),
        kind=rule.kind,
        share=rule.share,
        attack=rule.attack,
        guesses=rule.guesses,
        point=rule.point,
    )


def pair_test(setting: Setting, tally: Tally, rule: FrozenRule) -> FixedTest:
    """Return the textbook test by a pair of Clopper-Pearson bounds; alpha shared by the events."""
    game, point = tally.game(rule.guessed), setting.point
    events = _events(setting, tally, rule)
    alpha = setting.alpha / max(1, len(events))
    ahead = [_ahead(event) for event in events]
    p_values = [pair_p_value(*one, point.epsilon, point.delta) for one in ahead]
    detectable = (
        power.detectable_epsilon_pair(*one, point.epsilon, point.delta, alpha) for one in ahead
    )
    return FixedTest(
        stage=setting.stage,
        method="clopper-pearson",
        alpha=setting.alpha,
        draws=tally.draws,
        correct=game.correct,
        wrong=game.wrong,
        two_guesses=game.two_guesses,
        events=events,
        epsilon_lower=_most(pair_epsilon_lower(*one, point.delta, alpha) for one in ahead),
        delta_lower=_most(pair_delta_lower(*one, point.epsilon, alpha) for one in ahead),
        p_value=min(1.0, len(events) * min(p_values, default=1.0)),
        detectable_epsilon=min(detectable, default=math.inf),
        kind=rule.kind,
        share=rule.share,
        attack=rule.attack,
        guesses=rule.guesses,
        point=rule.point,
    )


def atoms_test(
    setting: Setting, accused: Accused, arms: tuple[int, int], rule: FrozenRule
) -> FixedTest:
    """Return the test of the probabilistic definition, alpha halved for the two directions.

    rule: how the draws were tallied; it has no part in the test.
    """
    alpha, point = setting.alpha / 2, setting.point
    sides = [_side(accused, guess, arms) for guess in _GUESSES]
    masses = [
        probabilistic.violating_mass(own, other, draws, point.epsilon, alpha)
        for own, other, draws in sides
    ]
    found = [
        atom
        for guess, mass in zip(_GUESSES, masses, strict=True)
        for atom in compress(_of(accused, guess), mass.certified)
    ]
    p_values = [
        probabilistic.p_value(own, other, draws, point.epsilon, point.delta)
        for own, other, draws in sides
    ]
    right = sum(d1 if guess == "d1" else d2 for _, guess, d1, d2 in found)
    return FixedTest(
        stage=setting.stage,
        method="probabilistic",
        alpha=setting.alpha,
        draws=sum(arms),
        correct=right,
        wrong=sum(atom[2] + atom[3] for atom in found) - right,
        two_guesses=len({atom[1] for atom in found}) == 2,
        events=tuple(
            _event(setting, f"output is {words}", guess, (d1, d2), arms)
            for words, guess, d1, d2 in found
        ),
        epsilon_lower=_most(
            probabilistic.epsilon_lower(own, other, draws, point.delta, alpha)
            for own, other, draws in sides
        ),
        delta_lower=_most(mass.delta_lower for mass in masses),
        p_value=min(1.0, 2 * min(p_values)),
        detectable_epsilon=min(
            probabilistic.detectable_epsilon(own, other, draws, point.epsilon, point.delta, alpha)
            for own, other, draws in sides
        ),
        accused=accused,
        attack="single outputs",
        guesses=rule.guesses,
    )


def accused(atoms: SingleOutputs, tally: AtomTally) -> Accused:
    """Return the atoms of both directions with their counts."""
    return tuple(
        (atoms.words[i], guess, int(tally.counts[i, 0]), int(tally.counts[i, 1]))
        for guess, mask in zip(_GUESSES, (atoms.for_d1, atoms.for_d2), strict=True)
        for i in np.flatnonzero(mask)
    )


def _events(setting: Setting, tally: Tally, rule: FrozenRule) -> tuple[EventCount, ...]:
    return tuple(
        _event(setting, said, guess, tally.event(rule.guessed == sign), tally.arms)
        for guess, sign, said in zip(_GUESSES, (1, -1), rule.words, strict=True)
        if said is not None
    )


def _event(
    setting: Setting, words: str, guess: Guess, counts: tuple[int, int], arms: tuple[int, int]
) -> EventCount:
    intervals = [
        clopper_pearson_interval(count, draws, 1 - setting.confidence) if draws else (0.0, 1.0)
        for count, draws in zip(counts, arms, strict=True)
    ]
    return EventCount(words, guess, *counts, *arms, *intervals)


def _ahead(event: EventCount) -> tuple[int, int, int, int]:
    """Return count and draws of the input that the event is evidence for, then of the other one."""
    first, second = (event.count_d1, event.draws_d1), (event.count_d2, event.draws_d2)
    return (*first, *second) if event.guess == "d1" else (*second, *first)


def _of(accused: Accused, guess: Guess) -> list[AccusedAtom]:
    return [atom for atom in accused if atom[1] == guess]


def _side(
    accused: Accused, guess: Guess, arms: tuple[int, int]
) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Return one direction: draws of the accused input and of the other, by atom; its draws."""
    table = np.array([atom[2:] for atom in _of(accused, guess)], dtype=np.int64).reshape(-1, 2)
    own, other = (0, 1) if guess == "d1" else (1, 0)
    return table[:, own], table[:, other], arms[own]


def _most(bounds: Iterable[float]) -> float:
    return max(bounds, default=0.0)
