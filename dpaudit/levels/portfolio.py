"""The frozen result of learning.

A portfolio has up to three rules, a main rule and side rules, which share their levels. At each
level, a rule guesses d1, guesses d2 or abstains. `Learned` is a portfolio with the beliefs to bet
on and a record of the attacks that were tried. `SingleOutputs` takes the place of rules for the
probabilistic definition of DP.

`attacks/rules.py` makes portfolios; `auditing/` counts draws by their levels.
`attacks/learning.py` defines all terms.
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
    """Level map of a portfolio of rules. If all side rules abstain, an outcome has its level of the
    main rule. Otherwise it has one of the additional levels; each stands for a combination of
    guesses of all rules. So the level of an outcome determines the guess of every rule.

    main, main_guesses: the level map of the main rule, and its guess at each level, (main levels,).
    sides: for each side rule, its level map and its guess at each of its levels.
    extra: (extra levels, rules), the guesses of all rules at the additional levels, main rule
        first.
    """

    main: LevelMap
    main_guesses: IntArray
    sides: tuple[tuple[LevelMap, IntArray], ...]
    extra: IntArray

    @classmethod
    def of(
        cls, main: LevelMap, guesses: IntArray, sides: Sequence[tuple[LevelMap, IntArray]]
    ) -> JointLevels:
        """Return the level map of a portfolio, made from a main rule and side rules. The level
        that it gives to an outcome determines the guess of every rule.

        main: the level map of the main rule.
        guesses: (main levels,), the guesses of the main rule.
        sides: for each side rule, its level map and its guesses.
        """
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
        """Return the guess of every rule at every level of the portfolio: (rules, levels), 1 for
        d1, -1 for d2, 0 for none.
        """
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
    """One rule of the distinguishing game: at every level it guesses d1 (1), guesses d2 (-1) or
    abstains (0).

    role: "main", or the role of a side rule, which the exact test tests in addition to the main
        rule. "rare": guesses an input at outputs that only this input gave. "other": made from
        bins if the main rule is made from single cells, and the reverse.
    attack: the name of the attack that proposed the rule.
    level, guesses: the map from an outcome to its level, and the guess at each level, (levels,).
    share: share of the exact test's error probability that this rule gets.
    expected_guesses: (2, 2), expected number of learning draws by guess (rows: d1, d2) and by
        input (columns: d1, d2); None: unknown.
    point: the point (ε, δ) of the claim's profile that the rule tests; None: the point that the
        audit tests and bets against.
    """

    role: Literal["main", "rare", "other"]
    attack: str
    level: LevelMap
    guesses: IntArray
    share: float = 1.0
    expected_guesses: NDArray[np.float64] | None = None
    point: ProfilePoint | None = None

    def words(self, guess: Literal[1, -1]) -> str | None:
        """Return in words the event at which the rule makes a guess: 1 stands for d1, -1 for d2.
        Return None if the rule never makes this guess, or only at levels that no output has.
        """
        chosen = np.asarray(self.guesses == guess)
        words = self.level.words(chosen) if chosen.any() else NO_OUTPUT
        return None if words == NO_OUTPUT else words

    @property
    def right_and_wrong(self) -> tuple[float, float]:
        """(right, wrong): the expected numbers of right and of wrong guesses that this rule makes
        about the inputs of the learning draws; (0, 0) if they are unknown."""
        if self.expected_guesses is None:
            return 0.0, 0.0
        (right_d1, wrong_d1), (wrong_d2, right_d2) = self.expected_guesses.tolist()
        return right_d1 + right_d2, wrong_d1 + wrong_d2


@dataclass(frozen=True, slots=True, eq=False)
class Portfolio:
    """A frozen portfolio of rules on common levels.

    level: map from an outcome to its level.
    rules: the main rule first; their shares of the error probability add up to 1.
    all_guesses: (rules, levels), the guess of each rule at each level.
    """

    level: LevelMap
    rules: tuple[Rule, ...]
    all_guesses: IntArray

    @classmethod
    def of(cls, rules: Sequence[Rule]) -> Portfolio:
        """Return the portfolio of these rules.

        rules: the main rule first, then side rules.
        """
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
        """Return a portfolio that holds only one of the rules, on the same levels, with all of the
        error probability (share 1).

        number: the index of the rule.
        """
        rule = replace(self.rules[number], share=1.0)
        return Portfolio(self.level, (rule,), self.all_guesses[number : number + 1])


# Name of the attack that needs scikit-learn.
TREES = "gradient-boosted trees"


@dataclass(frozen=True, slots=True)
class Tried:
    """An attack that was considered for the exact test, with its predicted bound or the reason why
    it was skipped.

    predicted: the predicted bound: on ε at the δ of the tested point or, if the claim is a curve,
        on δ at the ε of this point; None for a skipped attack.
    skipped: the reason for skipping the attack, in words; empty for an attack that was tried.
    """

    attack: str
    predicted: float | None
    skipped: str = ""


@dataclass(frozen=True, slots=True)
class ScoreDistributions:
    """Histogram of the score of the main rule, over selection draws of each input. Each draw is
    scored by a fit to other draws.

    edges: the edges between levels, rising.
    counts: (draws of d1, draws of d2) for each level, the lowest first; the last pair counts
        outcomes without a score.
    columns: the columns that the score depends on most, each with its share; the shares add up to
        at most 1.
    """

    edges: tuple[float, ...]
    counts: tuple[tuple[int, int], ...]
    columns: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Learned:
    """The result of a round of learning: rules, and beliefs to bet on.

    portfolio: the rules of this round. The exact test has those of the last round of learning.
    beliefs: Pr[d1 | level] of every bettor, and the rules to bet on.
    tried: the attacks that were considered.
    scores: histogram of the score of the main rule; None if the main rule has no score.
    expected_draws: (levels, 2), expected draws by level and input, out of all learning draws. The
        portfolio has the levels of the main rule, and additional levels for side rules. A draw at
        an additional level counts twice: there, and at its level of the main rule.
    leading: the candidates that count further draws.
    rare_filter: selects rare outputs for the rare rule; None without a rare rule.
    predicts_bound: whether some attack is predicted to certify a bound above 0.
    counts: (levels, 2), draws by level of the main rule and input; the level of each draw comes
        from a fit to other draws.
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
        """Return the expected draws by level and input, (levels, 2), with each draw counted at one
        level only.

        The levels of the main rule come first, then the additional levels, for outcomes at which a
        side rule guesses. In `expected_draws`, a draw at an additional level is also counted at its
        level of the main rule. Here these draws are subtracted from the levels of the main rule, in
        the proportions of the selection draws.

        selection: the draws that were learned from.
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
    """Single outputs to certify one by one, for the probabilistic definition of DP.

    keys: (outputs,), hashes of the outputs, rising.
    words: (outputs,), each output in words.
    for_d1: (outputs,), whether P(s) > e^ε Q(s) is suspected for the output s. P is the distribution
        of the output on d1, Q on d2.
    for_d2: (outputs,), whether Q(s) > e^ε P(s) is suspected.
    """

    keys: KeyArray
    words: tuple[str, ...]
    for_d1: NDArray[np.bool_]
    for_d2: NDArray[np.bool_]
