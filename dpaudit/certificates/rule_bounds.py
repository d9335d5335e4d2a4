"""Make the exact test of a rule: compute bounds and a p-value from counts of draws that were
reserved for the test.

`game_test` and `pair_test` count right and wrong guesses, and `atoms_test` counts single outputs
(docs/method.md §2 and §7).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import compress, pairwise
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.certificates.certificate import EventCount, FixedTest
from dpaudit.certificates.evidence import FixedStage, FrozenRule, Guess, SuspectedOutput
from dpaudit.claims import ProfilePoint
from dpaudit.draws import AtomTally, RangeTally, Tally
from dpaudit.errors import MechanismError, UsageError
from dpaudit.levels.portfolio import SingleOutputs
from dpaudit.outcomes import KeyArray, Outcomes, Raised, from_raw
from dpaudit.stats import game as games
from dpaudit.stats import power
from dpaudit.stats.binomial import (
    clopper_pearson_interval,
    pair_delta_lower,
    pair_epsilon_lower,
    pair_p_value,
)

_GUESSES: tuple[Guess, Guess] = ("d1", "d2")


@dataclass(frozen=True, slots=True)
class Setting:
    """The settings of an exact test.

    stage: purpose of the draws on which the test is made.
    alpha: error probability of the test.
    confidence: confidence of the intervals for P(E) and Q(E) in reports.
    """

    stage: FixedStage
    point: ProfilePoint
    alpha: float
    confidence: float


def game_test(setting: Setting, tally: Tally, rule: FrozenRule) -> FixedTest:
    """Return the exact test by the numbers of right and wrong guesses of a rule (docs/method.md
    §2)."""
    game, point, alpha = tally.game(rule.guess), setting.point, setting.alpha
    d1, d2 = (sum(tally.event(rule.guess == sign)) for sign in (1, -1))
    p = games.p_value(game, point.epsilon, point.delta, alpha)
    epsilon = games.epsilon_lower(game, point.delta, alpha)
    detectable = power.detectable_epsilon(
        game.correct + game.wrong,
        point.epsilon,
        alpha,
        draws=game.draws,
        spared=game.h * point.delta,
        by_input=(d1, d2),
    )
    # The lower bound for ε is searched in steps, so it can be below the claimed ε although p is at
    # most alpha. The test then does not refute the claim, and p is raised above alpha.
    disagree = p <= alpha and epsilon < point.epsilon
    return replace(
        illustrated(setting, tally, rule),
        epsilon_lower=epsilon,
        delta_lower=games.delta_lower(game, point.epsilon, point.delta, alpha),
        p_value=math.nextafter(alpha, 1.0) if disagree else p,
        detectable_epsilon=detectable,
    )


def illustrated(setting: Setting, tally: Tally, rule: FrozenRule) -> FixedTest:
    """Return a `FixedTest` that tests nothing and has p-value 1, for a run that ended by its bets.
    It only shows the counts of an event, on draws that were made after the event was chosen."""
    return _untested(setting, rule, tally.game(rule.guess), _events(setting, tally, rule))


def pair_test(setting: Setting, tally: Tally, rule: FrozenRule) -> FixedTest:
    """Return the exact test by Clopper-Pearson bounds for the probabilities of an event on d1 and
    on d2. If the rule has two events, each is tested with half of alpha."""
    untested, point = illustrated(setting, tally, rule), setting.point
    events = untested.events
    alpha = setting.alpha / max(1, len(events))
    counts = [_ahead(event) for event in events]
    p_values = [pair_p_value(*arms, point.epsilon, point.delta) for arms in counts]
    detectable = [
        power.detectable_epsilon_pair(*arms, point.epsilon, point.delta, alpha) for arms in counts
    ]
    epsilons = [pair_epsilon_lower(*arms, point.delta, alpha) for arms in counts]
    deltas = [pair_delta_lower(*arms, point.epsilon, alpha) for arms in counts]
    return replace(
        untested,
        method="clopper-pearson",
        epsilon_lower=max(epsilons, default=0.0),
        delta_lower=max(deltas, default=0.0),
        p_value=min(1.0, len(events) * min(p_values, default=1.0)),
        detectable_epsilon=min(detectable, default=math.inf),
    )


def atoms_test(
    setting: Setting, suspects: Sequence[SuspectedOutput], arms: tuple[int, int], rule: FrozenRule
) -> FixedTest:
    """Return the test of probabilistic DP. It tests P(V) ≤ δ, where V is the set of outputs s with
    P(s) > e^ε Q(s), and the same with d1 and d2 exchanged, each with half of alpha.

    suspects: the single outputs to test, with their counts.
    rule: the rule to record in the result; its guesses do not affect the test.
    """
    from dpaudit.stats import probabilistic  # other definitions do not need it

    alpha, point = setting.alpha / 2, setting.point
    atoms = [[atom for atom in suspects if atom[1] == guess] for guess in _GUESSES]
    # Two tables, (outputs, 2), with the counts of each output for d1 and for d2. The first table
    # has the outputs that are expected more often for d1 ("its input" is d1), the second those that
    # are expected more often for d2. For each table, `sides` has (counts for its input, counts for
    # the other input, number of all draws of its input).
    tables = [np.array([atom[2:] for atom in of], dtype=np.int64).reshape(-1, 2) for of in atoms]
    sides = [(table[:, arm], table[:, 1 - arm], arms[arm]) for arm, table in enumerate(tables)]
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
    events = tuple(
        _event(setting, f"output is {words}", guess, (d1, d2), arms)
        for words, guess, d1, d2 in certified
    )
    return replace(
        _untested(setting, FrozenRule("main", 1.0, "single outputs", rule.guesses), game, events),
        method="probabilistic",
        epsilon_lower=max(probabilistic.epsilon_lower(*side, point.delta, alpha) for side in sides),
        delta_lower=max(mass.delta_lower for mass in masses),
        p_value=min(1.0, 2 * min(p_values)),
        detectable_epsilon=min(
            probabilistic.detectable_epsilon(*side, point.epsilon, point.delta, alpha)
            for side in sides
        ),
    )


def _untested(
    setting: Setting, rule: FrozenRule, game: games.Game, events: tuple[EventCount, ...]
) -> FixedTest:
    """Return a `FixedTest` with the counts of a rule that refutes nothing."""
    return FixedTest(
        stage=setting.stage,
        method="game",
        alpha=setting.alpha,
        draws=game.draws,
        correct=game.correct,
        wrong=game.wrong,
        two_guesses=game.two_guesses,
        events=events,
        epsilon_lower=0.0,
        delta_lower=0.0,
        p_value=1.0,
        detectable_epsilon=math.inf,
        rule=rule,
    )


def suspect_counts(atoms: SingleOutputs, tally: AtomTally) -> tuple[SuspectedOutput, ...]:
    """Return the single outputs to test, with their counts. Those that are expected more often on
    d1 come first."""
    return tuple(
        (atoms.words[i], guess, int(tally.counts[i, 0]), int(tally.counts[i, 1]))
        for guess, mask in zip(_GUESSES, (atoms.for_d1, atoms.for_d2), strict=True)
        for i in np.flatnonzero(mask)
    )


def _events(setting: Setting, tally: Tally, rule: FrozenRule) -> tuple[EventCount, ...]:
    return tuple(
        _event(setting, words, guess, tally.event(rule.guess == sign), tally.arms)
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
    """Return (count, draws) of the input that gives the event more often, then of the other."""
    first, second = (event.count_d1, event.draws_d1), (event.count_d2, event.draws_d2)
    return (*first, *second) if event.guess == "d1" else (*second, *first)


STOPPED = (
    "range: no interval for ε, because the run stopped at the refutation, before its planned end; "
    "stop: never continues to the end"
)


@dataclass(frozen=True, slots=True, eq=False)
class FiniteRange:
    """The possible outputs, as declared by the user.

    A declared text, such as `ValueError`, may mean an output or an exception, so it has two keys.
    If both occur in the draws, the declaration is ambiguous, and there is no interval for ε.

    keys: 64-bit hashes of the declared outputs, rising.
    words: for each key, the description of its output.
    entry: for each key, the position of its output in the user's list.
    """

    keys: KeyArray
    words: tuple[str, ...]
    entry: NDArray[np.intp]

    @classmethod
    def of(cls, declared: Sequence[Any]) -> FiniteRange:
        """Return the range with these outputs. Raise UsageError if one is listed twice."""
        texts = [(index, item) for index, item in enumerate(declared) if isinstance(item, str)]
        values = [(index, item) for index, item in enumerate(declared) if not isinstance(item, str)]
        raised = [(index, Raised(text, "")) for index, text in texts]
        rows: list[tuple[int, str, int]] = []
        for group in filter(None, (texts, [*values, *raised])):
            outcomes = _table([item for _, item in group])
            words = map(outcomes.word, range(len(group)))
            indices = (index for index, _ in group)
            rows += zip(outcomes.keys().tolist(), words, indices, strict=True)
        rows.sort(key=itemgetter(0))
        for (key, word, _), (following, _, _) in pairwise(rows):
            if key == following:
                raise UsageError(f"range lists the output {word} twice", code="option-invalid")
        keys, words_by_key, entry = zip(*rows, strict=True)
        return cls(np.array(keys, dtype=np.uint64), words_by_key, np.array(entry, dtype=np.intp))

    def counts(self, tally: RangeTally) -> tuple[tuple[str, int, int], ...] | str:
        """Return (output in words, draws of d1, draws of d2) for each declared output, from the
        certification of a complete run. If there is no interval for ε, return the reason instead.
        """
        if tally.undeclared is not None:
            return (
                f"range: no interval for ε, because {tally.undeclared} occurred and is not declared"
            )
        chosen: dict[int, int] = {}
        for row in np.argsort(-tally.atoms.counts.sum(axis=1), kind="stable").tolist():
            index = int(self.entry[row])
            if index not in chosen:
                chosen[index] = row
            elif tally.atoms.counts[row].any():
                words = f"{self.words[chosen[index]]} and {self.words[row]}"
                return (
                    f"range: no interval for ε, because {words} occurred, both declared by one text"
                )
        rows = [chosen[index] for index in sorted(chosen)]
        counts = tally.atoms.counts
        return tuple((self.words[row], int(counts[row, 0]), int(counts[row, 1])) for row in rows)


def _table(outputs: list[Any]) -> Outcomes:
    try:
        return from_raw(outputs).plain()
    except MechanismError as error:
        raise UsageError(
            f"range={outputs!r} cannot be outputs: {error}", code="option-invalid"
        ) from error
