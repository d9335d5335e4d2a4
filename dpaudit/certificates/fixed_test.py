"""The exact test of a rule: from the tally of the draws kept for it to bounds and a p-value.

`game_test` and `pair_test` count the guesses of a rule, `atoms_test` counts single outputs
(docs/method.md §2 and §7). None of these draws has been used before.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress, pairwise
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.certificates.records import (
    EpsilonInterval,
    EventCount,
    FixedStage,
    FixedTest,
    Guess,
    Method,
    RuleKind,
)
from dpaudit.claims import ProfilePoint
from dpaudit.draws import AtomTally, RangeTally, Tally
from dpaudit.errors import MechanismError, UsageError
from dpaudit.levels.portfolio import SingleOutputs
from dpaudit.outcomes import KeyArray, Outcomes, Raised, from_raw
from dpaudit.stats import game as games
from dpaudit.stats import power, probabilistic
from dpaudit.stats.binomial import (
    clopper_pearson_interval,
    epsilon_interval,
    pair_delta_lower,
    pair_epsilon_lower,
    pair_p_value,
)

# A single output in words, the input that is expected to give it more often, and its draws of d1
# and of d2.
AccusedAtom = tuple[str, Guess, int, int]
Accused = tuple[AccusedAtom, ...]
Words = Sequence[str | None]

_GUESSES: tuple[Guess, Guess] = ("d1", "d2")


@dataclass(frozen=True, slots=True)
class FrozenRule:
    """A rule that was fixed before the draws of the exact test.

    kind: main, rare or other (docs/method.md §4).
    share: share of the exact test's error probability, in (0, 1].
    attack: name of the attack that found the rule.
    guesses: guess at each level: d1 (1), d2 (-1) or none (0).
    words: the event in which the rule guesses d1, and the event in which it guesses d2; None for an
    event that is not shown.
    point: point of the claim that the rule tests; None for the point that is bet against.
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
    """The settings of a test.

    point: point of the claim. alpha: error probability of the test. confidence: confidence of the
    intervals of P(E) and Q(E), which reports show.
    """

    stage: FixedStage
    point: ProfilePoint
    alpha: float
    confidence: float


def game_test(setting: Setting, tally: Tally, rule: FrozenRule) -> FixedTest:
    """Return the exact test by right and wrong guesses in the distinguishing game (docs/method.md
    §2)."""
    game, point, alpha = tally.game(rule.guessed), setting.point, setting.alpha
    p = games.p_value(game, point.epsilon, point.delta, alpha)
    epsilon = games.epsilon_lower(game, point.delta, alpha)
    detectable = power.detectable_epsilon(
        game.correct + game.wrong,
        point.epsilon,
        alpha,
        draws=game.draws,
        spared=game.h * point.delta,
    )
    # The lower bound for ε is found in steps, and may be at most the claimed ε although p is at
    # most alpha. The claim then stands.
    disagree = p <= alpha and epsilon < point.epsilon
    return _of_game(
        setting,
        rule,
        "game",
        game,
        events=_events(setting, tally, rule),
        epsilon_lower=epsilon,
        delta_lower=games.delta_lower(game, point.epsilon, point.delta, alpha),
        p_value=math.nextafter(alpha, 1.0) if disagree else p,
        detectable_epsilon=detectable,
    )


def illustrated(setting: Setting, tally: Tally, rule: FrozenRule) -> FixedTest:
    """Return the counts of an event after bets have ended a run; they test nothing.

    tally: counts of the draws made after the event was chosen.
    """
    return _of_game(
        setting,
        rule,
        "game",
        tally.game(rule.guessed),
        events=_events(setting, tally, rule),
        epsilon_lower=0.0,
        delta_lower=0.0,
        p_value=1.0,
        detectable_epsilon=math.inf,
    )


def pair_test(setting: Setting, tally: Tally, rule: FrozenRule) -> FixedTest:
    """Return the test by pairs of Clopper-Pearson bounds; the events share alpha equally."""
    point, events = setting.point, _events(setting, tally, rule)
    alpha = setting.alpha / max(1, len(events))
    counts = [_ahead(event) for event in events]
    p_values = [pair_p_value(*each, point.epsilon, point.delta) for each in counts]
    detectable = [
        power.detectable_epsilon_pair(*each, point.epsilon, point.delta, alpha) for each in counts
    ]
    epsilons = [pair_epsilon_lower(*each, point.delta, alpha) for each in counts]
    deltas = [pair_delta_lower(*each, point.epsilon, alpha) for each in counts]
    return _of_game(
        setting,
        rule,
        "clopper-pearson",
        tally.game(rule.guessed),
        events=events,
        epsilon_lower=max(epsilons, default=0.0),
        delta_lower=max(deltas, default=0.0),
        p_value=min(1.0, len(events) * min(p_values, default=1.0)),
        detectable_epsilon=min(detectable, default=math.inf),
    )


def atoms_test(
    setting: Setting, accused: Accused, arms: tuple[int, int], rule: FrozenRule
) -> FixedTest:
    """Return the test of the probabilistic definition, for d1 against d2 and for d2 against d1.

    Each of the two directions gets half of alpha.

    accused: the single outputs to test, with their counts.  arms: number of draws of d1 and of d2.
    rule: the rule by which the draws were tallied; its guesses have no part in the test.
    """
    alpha, point = setting.alpha / 2, setting.point
    atoms = [[atom for atom in accused if atom[1] == guess] for guess in _GUESSES]
    # For d1 and for d2: the outputs that are expected more often under this input, with their draws
    # of this input and of the other input; and the number of all draws of this input.
    tables = [np.array([one[2:] for one in of], dtype=np.int64).reshape(-1, 2) for of in atoms]
    sides = [(table[:, own], table[:, 1 - own], arms[own]) for own, table in enumerate(tables)]
    masses = [probabilistic.violating_mass(*side, point.epsilon, alpha) for side in sides]
    pairs = zip(atoms, masses, strict=True)
    certified = [atom for of, mass in pairs for atom in compress(of, mass.certified)]
    p_values = [probabilistic.p_value(*side, point.epsilon, point.delta) for side in sides]
    right = sum(d1 if guess == "d1" else d2 for _, guess, d1, d2 in certified)
    game = games.Game(
        right,
        sum(d1 + d2 for _, _, d1, d2 in certified) - right,
        sum(arms),
        two_guesses=len({guess for _, guess, *_ in certified}) == 2,
    )
    return _of_game(
        setting,
        FrozenRule("main", 1.0, "single outputs", rule.guesses),
        "probabilistic",
        game,
        events=tuple(
            _event(setting, f"output is {words}", guess, (d1, d2), arms)
            for words, guess, d1, d2 in certified
        ),
        epsilon_lower=max(probabilistic.epsilon_lower(*side, point.delta, alpha) for side in sides),
        delta_lower=max(mass.delta_lower for mass in masses),
        p_value=min(1.0, 2 * min(p_values)),
        detectable_epsilon=min(
            probabilistic.detectable_epsilon(*side, point.epsilon, point.delta, alpha)
            for side in sides
        ),
        accused=accused,
    )


def _of_game(
    setting: Setting, rule: FrozenRule, method: Method, game: games.Game, **numbers: Any
) -> FixedTest:
    return FixedTest(
        stage=setting.stage,
        method=method,
        alpha=setting.alpha,
        draws=game.draws,
        correct=game.correct,
        wrong=game.wrong,
        two_guesses=game.two_guesses,
        kind=rule.kind,
        share=rule.share,
        attack=rule.attack,
        guesses=rule.guesses,
        point=rule.point,
        **numbers,
    )


def accused(atoms: SingleOutputs, tally: AtomTally) -> Accused:
    """Return the single outputs to test, with their counts: first the outputs expected more often
    under d1, then the outputs expected more often under d2."""
    return tuple(
        (atoms.words[i], guess, int(tally.counts[i, 0]), int(tally.counts[i, 1]))
        for guess, mask in zip(_GUESSES, (atoms.for_d1, atoms.for_d2), strict=True)
        for i in np.flatnonzero(mask)
    )


def _events(setting: Setting, tally: Tally, rule: FrozenRule) -> tuple[EventCount, ...]:
    return tuple(
        _event(setting, words, guess, tally.event(rule.guessed == sign), tally.arms)
        for guess, sign, words in zip(_GUESSES, (1, -1), rule.words, strict=True)
        if words is not None
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
    """Return count and draws of the input under which the event is expected more often, then of the
    other input."""
    first, second = (event.count_d1, event.draws_d1), (event.count_d2, event.draws_d2)
    return (*first, *second) if event.guess == "d1" else (*second, *first)


STOPPED = (
    "range: no interval for ε, because the run stopped at the refutation, before its planned end; "
    "full: true continues to the end"
)


@dataclass(frozen=True, slots=True, eq=False)
class FiniteRange:
    """The outputs that the user has declared.

    A declared text may be an output or the name of an exception. So it has two keys (codes of
    outputs), of which at most one may occur.

    keys: keys of the outputs, in rising order. words: the output of each key in words.
    entry: for each key, the position of the declared output in the user's list.
    """

    keys: KeyArray
    words: tuple[str, ...]
    entry: NDArray[np.intp]

    @classmethod
    def of(cls, declared: Sequence[Any]) -> FiniteRange:
        """Return the `FiniteRange` of a list of declared outputs.

        Raises UsageError for an output listed twice.
        """
        texts = [(place, item) for place, item in enumerate(declared) if isinstance(item, str)]
        others = [(place, item) for place, item in enumerate(declared) if not isinstance(item, str)]
        raised = [(place, Raised(text, "")) for place, text in texts]
        rows: list[tuple[int, str, int]] = []
        for group in filter(None, (texts, [*others, *raised])):
            outcomes = _table([item for _, item in group])
            words = map(outcomes.word, range(len(group)))
            places = (place for place, _ in group)
            rows += zip(outcomes.keys().tolist(), words, places, strict=True)
        rows.sort(key=itemgetter(0))
        for (key, word, _), (following, _, _) in pairwise(rows):
            if key == following:
                raise UsageError(f"range lists the output {word} twice", code="option-invalid")
        keys, words_by_key, entry = zip(*rows, strict=True)
        return cls(np.array(keys, dtype=np.uint64), words_by_key, np.array(entry, dtype=np.intp))

    def interval(self, tally: RangeTally, alpha: float) -> EpsilonInterval | str:
        """Return the interval, or the reason why there is none.

        tally: counts of the certification draws, in a run that reached its planned end.
        alpha: error probability of the interval.
        """
        if tally.undeclared is not None:
            return (
                f"range: no interval for ε, because {tally.undeclared} occurred and is not declared"
            )
        chosen: dict[int, int] = {}
        for row in np.argsort(-tally.atoms.counts.sum(axis=1), kind="stable").tolist():
            place = int(self.entry[row])
            if place not in chosen:
                chosen[place] = row
            elif tally.atoms.counts[row].any():
                both = f"{self.words[chosen[place]]} and {self.words[row]}"
                return (
                    f"range: no interval for ε, because {both} occurred, both declared by one text"
                )
        rows = [chosen[place] for place in sorted(chosen)]
        counts = [(int(d1), int(d2)) for d1, d2 in tally.atoms.counts[rows]]
        lower, upper = epsilon_interval(counts, alpha)
        atoms = tuple((self.words[row], *count) for row, count in zip(rows, counts, strict=True))
        return EpsilonInterval(lower, upper, atoms)


def _table(outputs: list[Any]) -> Outcomes:
    try:
        return from_raw(outputs).plain()
    except MechanismError as error:
        raise UsageError(
            f"range={outputs!r} cannot be outputs: {error}", code="option-invalid"
        ) from error
