"""Portfolios, and the other results of learning.

`Learned` is a portfolio with the beliefs to bet on and a record of the attacks that were tried. For
probabilistic DP, `SingleOutputs` takes its place. `attacks/rules.py` makes portfolios; `auditing/`
counts draws by their levels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from dpaudit.claims import ProfilePoint
from dpaudit.draws import LevelArray, SelectionDraws, by_arm
from dpaudit.levels.cells import NO_OUTPUT
from dpaudit.levels.level_map import IntArray, LevelMap
from dpaudit.outcomes import KeyArray, Outcomes

if TYPE_CHECKING:  # workers do not need SciPy, which takes as long to import as everything else
    from dpaudit.levels.candidates import Candidate
    from dpaudit.levels.rare_filter import RareFilter
    from dpaudit.stats.betting import Beliefs


@dataclass(frozen=True, slots=True, eq=False)
class JointLevels(LevelMap):
    """The common levels of all rules of a portfolio. An outcome at which all side rules abstain has
    the level that the main rule gives it. For all other outcomes there are extra levels, one for
    each combination of guesses.

    main, main_guesses: the level map of the main rule, and its guess at each level, (main levels,).
    sides: for each side rule, its level map and its guess at each level of that map.
    extra: (extra levels, rules), the guesses of all rules at the extra levels, main rule first.
    """

    main: LevelMap
    main_guesses: IntArray
    sides: tuple[tuple[LevelMap, IntArray], ...]
    extra: IntArray

    @classmethod
    def of(
        cls, main: LevelMap, guesses: IntArray, sides: Sequence[tuple[LevelMap, IntArray]]
    ) -> JointLevels:
        """Return the common levels of a main rule, given by its level map and its guesses, and side
        rules."""
        values_of_rules = [
            np.unique(values).tolist()
            for values in (guesses, *(side_guesses for _, side_guesses in sides))
        ]
        combined = [
            combination for combination in product(*values_of_rules) if any(combination[1:])
        ]
        extra = np.array(combined, dtype=np.int64).reshape(len(combined), len(values_of_rules))
        return cls(main, guesses, tuple(sides), extra)

    @property
    def levels(self) -> int:
        return self.main.levels + len(self.extra)

    def guesses(self) -> IntArray:
        """Return the guess of every rule at every level: (rules, levels)."""
        usual = np.zeros((1 + len(self.sides), self.main.levels), dtype=np.int64)
        usual[0] = self.main_guesses
        return np.concatenate([usual, self.extra.T], axis=1)

    def __call__(self, outcomes: Outcomes) -> LevelArray:
        level = self.main(outcomes)
        guessed = [guesses[side(outcomes)] for side, guesses in self.sides]
        rows = np.flatnonzero(np.any([side_guesses != 0 for side_guesses in guessed], axis=0))
        if rows.size:
            level = level.copy()
            combined = [
                self.main_guesses[level[rows]],
                *(side_guesses[rows] for side_guesses in guessed),
            ]
            is_same = np.all(np.stack(combined, axis=1)[:, None] == self.extra, axis=2)
            level[rows] = self.main.levels + is_same.argmax(axis=1)
        return level

    def words(self, chosen: NDArray[np.bool_]) -> str:
        return self.main.words(chosen[: self.main.levels])


# Shares of the error probability α of the exact test that the two side rules get. The rare rule,
# about outputs that only one input gave, is tested at 8 % of α; the "other" rule, the best rule of
# another kind of attack, at 2 %. The main rule gets the rest of α, or all of α without side rules
# (docs/method.md §4).
RARE_SHARE = 0.08
OTHER_SHARE = 0.02


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """A rule, with the level map that it is made on.

    role: "main"; or, for a side rule, "rare" for the rare rule, and "other" for a rule from another
        kind of candidate: from bins if the main rule is made from single cells, and the reverse.
    attack: the name of the attack that proposed the rule.
    level, guesses: the level map, and the guess at each level, (levels,).
    share: share of the exact test's error probability that this rule gets.
    expected_guesses: (2, 2), expected learning draws by guess (rows) and input (columns), d1 first;
        None: unknown.
    point: the point (ε, δ) of the claim's profile that the rule tests; None: that of the audit.
    """

    role: Literal["main", "rare", "other"]
    attack: str
    level: LevelMap
    guesses: IntArray
    share: float = 1.0
    expected_guesses: NDArray[np.float64] | None = None
    point: ProfilePoint | None = None

    def words(self, guess: Literal[1, -1]) -> str | None:
        """Return the event at which the rule makes `guess`, 1 for d1 or -1 for d2, in words. Return
        None if the rule makes this guess for no output."""
        chosen = np.asarray(self.guesses == guess)
        words = self.level.words(chosen) if chosen.any() else NO_OUTPUT
        return None if words == NO_OUTPUT else words

    @property
    def right_and_wrong(self) -> tuple[float, float]:
        """(right, wrong): the expected numbers of right and wrong guesses of this rule about the
        learning draws; (0, 0) if they are unknown."""
        if self.expected_guesses is None:
            return 0.0, 0.0
        (right_d1, wrong_d1), (wrong_d2, right_d2) = self.expected_guesses.tolist()
        return right_d1 + right_d2, wrong_d1 + wrong_d2


@dataclass(frozen=True, slots=True, eq=False)
class Portfolio:
    """The rules of a portfolio, on common levels.

    rules: the main rule first; their shares of the error probability add up to 1.

    all_guesses: (rules, levels), the guess of each rule at each common level.
    """

    level: LevelMap
    rules: tuple[Rule, ...]
    all_guesses: IntArray

    @classmethod
    def of(cls, rules: Sequence[Rule]) -> Portfolio:
        """Return the portfolio of these rules, the main rule first."""
        main, sides = rules[0], rules[1:]
        if not sides:
            return cls(main.level, (main,), main.guesses[None, :])
        level = JointLevels.of(
            main.level, main.guesses, [(side.level, side.guesses) for side in sides]
        )
        return cls(level, tuple(rules), level.guesses())

    @property
    def main(self) -> Rule:
        return self.rules[0]

    @property
    def levels(self) -> int:
        return self.level.levels

    @property
    def guesses(self) -> IntArray:
        """The guess of the main rule at each level: (levels,), 1 for d1, -1 for d2, 0 for none."""
        return np.asarray(self.all_guesses[0])

    def __call__(self, outcomes: Outcomes) -> LevelArray:
        """Return the level of every outcome: (size,)."""
        return self.level(outcomes)

    def only(self, number: int) -> Portfolio:
        """Return a portfolio of the rule at index `number` alone, on the same levels. Its share is
        1."""
        rule = replace(self.rules[number], share=1.0)
        return Portfolio(self.level, (rule,), self.all_guesses[number : number + 1])


# Name of the attack that needs scikit-learn.
TREES = "gradient-boosted trees"


@dataclass(frozen=True, slots=True)
class Tried:
    """An attack that was tried, or skipped, in the search for rules for the exact test.

    predicted: the predicted bound, on ε at the tested δ or, if the claim is a curve, on δ at the
        tested ε; None for a skipped attack.
    skipped: the reason for skipping it; empty for an attack that was tried.
    """

    attack: str
    predicted: float | None
    skipped: str = ""


@dataclass(frozen=True, slots=True)
class ScoreDistributions:
    """Histogram of the held-out score of the main rule, by input.

    edges: the edges between levels, rising.
    counts: (draws of d1, draws of d2) for each level; the last pair is of outcomes without a score.
    columns: (name, share) of the columns that the score depends on most; shares add up to at most
        1.
    """

    edges: tuple[float, ...]
    counts: tuple[tuple[int, int], ...]
    columns: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Learned:
    """The result of a round of learning: rules, and beliefs to bet on.

    portfolio: the rules of this round. The exact test uses the rules of the last round.
    beliefs: Pr[d1 | level] of every bettor, and the rules to bet on.
    tried: the attacks that were considered.
    scores: histogram of the score of the main rule; None if the main rule has no score.
    expected_draws: (levels, 2), expected learning draws by level of the portfolio. A draw at an
        extra level counts twice: there, and at its level of the main rule.
    leading: the best candidates, for which further draws are counted.
    rare_filter: selects rare outputs for the rare rule; None without a rare rule.
    predicts_bound: whether some attack is predicted to certify a bound above 0.
    counts: (levels, 2), held-out counts of the learning draws by level of the main rule.
    """

    portfolio: Portfolio
    beliefs: Beliefs
    tried: tuple[Tried, ...] = ()
    scores: ScoreDistributions | None = None
    expected_draws: NDArray[np.float64] | None = None
    leading: tuple[Candidate, ...] = ()
    rare_filter: RareFilter | None = None
    predicts_bound: bool = True
    counts: IntArray | None = None

    def expected_by_joint_level(self, selection: SelectionDraws) -> NDArray[np.float64] | None:
        """Return the expected draws by level of the portfolio, (levels, 2), each draw counted once.

        In `expected_draws`, draws at extra levels are counted at a level of the main rule too. Here
        they are subtracted there, in the proportions in which selection draws have both levels.
        """
        portfolio, expected = self.portfolio, self.expected_draws
        if expected is None or len(portfolio.rules) == 1:
            return expected
        main = portfolio.main.level
        usual, of_main = main.levels, main(selection.outcomes)
        level = portfolio(selection.outcomes)
        is_extra = level >= usual
        counted = by_arm(of_main, usual, selection.is_d1)
        moved = by_arm(of_main[is_extra], usual, selection.is_d1[is_extra])
        counts = by_arm(level, portfolio.levels, selection.is_d1)[usual:].sum(axis=1, keepdims=True)
        share = expected[usual:] / np.maximum(expected[usual:].sum(axis=1, keepdims=True), 1e-9)
        times = expected[:usual].sum() / max(1, selection.size)
        left = expected[:usual] * (1 - moved / np.maximum(counted, 1))
        return np.concatenate([left, times * counts * share])


@dataclass(frozen=True, slots=True, eq=False)
class SingleOutputs:
    """Outputs to test one by one for probabilistic DP, whether one input gives them too often.

    keys: (outputs,), hashes of the outputs, rising.
    words: (outputs,), each output in words.
    for_d1: (outputs,), whether P(s) > e^ε Q(s) is suspected for the output s.
    for_d2: (outputs,), whether Q(s) > e^ε P(s) is suspected.
    """

    keys: KeyArray
    words: tuple[str, ...]
    for_d1: NDArray[np.bool_]
    for_d2: NDArray[np.bool_]
