"""The frozen result of learning: a portfolio of up to three rules on one table of levels, the
beliefs to bet on, and a record of what was tried."""

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
    """The level of the main rule where all side rules abstain; otherwise an additional level for
    each combination of guesses. The guess of every rule follows from the level.

    main, main_guesses: the levels of the main rule, and its guess at each, (main levels,).
    sides: the levels and guesses of each side rule.
    extra: (extra levels, rules), the guesses at the additional levels, the main rule first.
    place: the additional level of each combination of guesses, by the combination as a number in
        base 3 (see `_number`).
    """

    main: LevelMap
    main_guesses: IntArray
    sides: tuple[tuple[LevelMap, IntArray], ...]
    extra: IntArray
    place: IntArray

    @classmethod
    def of(
        cls, main: LevelMap, guesses: IntArray, sides: Sequence[tuple[LevelMap, IntArray]]
    ) -> JointLevels:
        """Return the joint levels. guesses: of the main rule.  sides: as of the class."""
        every = [np.unique(one).tolist() for one in (guesses, *(own for _, own in sides))]
        combined = [one for one in product(*every) if any(one[1:])]
        extra = np.array(combined, dtype=np.int64).reshape(len(combined), len(every))
        place = np.zeros(3 ** len(every), dtype=np.int64)
        place[_number(extra.T)] = np.arange(len(extra))
        return cls(main, guesses, tuple(sides), extra, place)

    @property
    def levels(self) -> int:
        return self.main.levels + len(self.extra)

    def guesses(self) -> IntArray:
        """Return the guesses of every rule: (rules, levels)."""
        usual = np.zeros((1 + len(self.sides), self.main.levels), dtype=np.int64)
        usual[0] = self.main_guesses
        return np.concatenate([usual, self.extra.T], axis=1)

    def __call__(self, outcomes: Outcomes) -> LevelArray:
        level = self.main(outcomes)
        guessed = [own[side(outcomes)] for side, own in self.sides]
        rows = np.flatnonzero(np.any([one != 0 for one in guessed], axis=0))
        if rows.size:
            level = level.copy()
            each = [self.main_guesses[level[rows]], *(one[rows] for one in guessed)]
            level[rows] = self.main.levels + self.place[_number(np.stack(each))]
        return level

    def words(self, chosen: NDArray[np.bool_]) -> str:
        return self.main.words(chosen[: self.main.levels])


def _number(guesses: IntArray) -> IntArray:
    """Return combinations of guesses, (rules, combinations), as numbers in base 3; a guess of d2 is
    the digit 2."""
    digits = guesses % 3
    weights = 3 ** np.arange(len(digits))[::-1]
    return np.asarray(weights @ digits)


# Shares of the error probability of the exact test for the rules next to the main rule. The share
# of a rule that learning does not find goes to the main rule (docs/method.md §2).
RARE_SHARE = 0.08
OTHER_SHARE = 0.02


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """One rule of the game: guess d1 (1), guess d2 (-1) or abstain (0) at every level.

    attack: the name of the attack that proposed it.
    level, guesses: its own levels, and its guess at each, (levels,).
    share: its part of the error probability of the exact test.
    expected: (2, 2), expected draws of d1 and of d2 where it guesses d1, then where it guesses d2,
        of as many draws as it was learned from.
    point: the point of the claim's profile that it tests; None for the point that is bet against.
    """

    kind: Literal["main", "rare", "other"]
    attack: str
    level: LevelMap
    guesses: IntArray
    share: float = 1.0
    expected: NDArray[np.float64] | None = None
    point: ProfilePoint | None = None

    def words(self, guess: Literal[1, -1]) -> str | None:
        """Return the event of one guess in words; None when the rule never makes it, or makes it
        at levels alone that no output has."""
        chosen = np.asarray(self.guesses == guess)
        words = self.level.words(chosen) if chosen.any() else NO_OUTPUT
        return None if words == NO_OUTPUT else words

    @property
    def right_and_wrong(self) -> tuple[float, float]:
        """Expected right and wrong guesses, of as many draws as the rule was learned from."""
        if self.expected is None:
            return 0.0, 0.0
        (right, wrong), (missed, result) = self.expected.tolist()
        return right + result, wrong + missed


@dataclass(frozen=True, slots=True, eq=False)
class Portfolio:
    """The frozen portfolio: the level of an outcome, and the guesses of every rule at each level.

    level: the joint levels of all rules.
    rules: the main rule first; their shares add up to 1.
    table: (rules, levels), the guesses of each rule at the joint levels.
    """

    level: LevelMap
    rules: tuple[Rule, ...]
    table: IntArray

    @classmethod
    def of(cls, rules: Sequence[Rule]) -> Portfolio:
        """Return the portfolio of rules on one table of levels."""
        main, sides = rules[0], rules[1:]
        if not sides:
            return cls(main.level, (main,), main.guesses[None, :])
        level = JointLevels.of(
            main.level, main.guesses, [(one.level, one.guesses) for one in sides]
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
        """The guesses of the main rule: (levels,)."""
        return np.asarray(self.table[0])

    def __call__(self, outcomes: Outcomes) -> LevelArray:
        """Return the level of every outcome."""
        return self.level(outcomes)

    def only(self, place: int) -> Portfolio:
        """Return the portfolio of one of the rules, on the same levels, with a share of 1."""
        rule = replace(self.rules[place], share=1.0)
        return Portfolio(self.level, (rule,), self.table[place : place + 1])


@dataclass(frozen=True, slots=True)
class Tried:
    """An attack that was considered for the exact test.

    predicted: the bound that it promised on held-out selection draws, for ε at the δ of the point
        tested (for δ at its ε when the claim is a curve); None when it was skipped.
    skipped: why it was skipped, in words; empty when it was tried.
    """

    attack: str
    predicted: float | None
    skipped: str = ""


@dataclass(frozen=True, slots=True)
class ScoreDistributions:
    """Histogram of the score of the main rule's attack on selection draws of either input.

    Each draw is scored by a fit to other draws.

    edges: the edges between levels, rising.
    counts: (draws of d1, draws of d2) by level, from below the first edge on; the last pair counts
        outcomes without a score.
    columns: the columns that the score depends on most, each with its share; the shares add up to
        at most 1.
    """

    edges: tuple[float, ...]
    counts: tuple[tuple[int, int], ...]
    columns: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Learned:
    """The result of a round of learning: the portfolio of the exact test, and beliefs to bet on.

    tried: the attacks that were considered.
    scores: of the attack of the main rule, if its levels are bins of a score.
    expected: (levels, 2), expected draws by level and input, of as many draws as were learned
        from. Draws at the additional levels of a portfolio are also counted at those of the main
        rule.
    leading: the candidates that promised most, which count further draws.
    rare_filter: of the table of the rare rule; None without a rare rule.
    promises: whether any candidate promised a bound above 0.
    """

    portfolio: Portfolio
    beliefs: Beliefs
    tried: tuple[Tried, ...] = ()
    scores: ScoreDistributions | None = None
    expected: NDArray[np.float64] | None = None
    leading: tuple[Candidate, ...] = ()
    rare_filter: RareFilter | None = None
    promises: bool = True

    def expected_as_in(self, selection: SelectionDraws) -> NDArray[np.float64] | None:
        """Return `expected` with the draws of the additional levels of a portfolio taken from the
        levels of the main rule, in the shares of the selection draws: (levels, 2)."""
        portfolio, expected = self.portfolio, self.expected
        if expected is None or len(portfolio.rules) == 1:
            return expected
        main = portfolio.main.level
        usual, of_main = main.levels, main(selection.outcomes)
        level = portfolio(selection.outcomes)
        is_extra = level >= usual
        before = by_arm(of_main, usual, selection.is_d1)
        moved = by_arm(of_main[is_extra], usual, selection.is_d1[is_extra])
        counts = by_arm(level, portfolio.levels, selection.is_d1)[usual:].sum(axis=1, keepdims=True)
        share = expected[usual:] / np.maximum(expected[usual:].sum(axis=1, keepdims=True), 1e-9)
        times = expected[:usual].sum() / max(1, selection.size)
        left = expected[:usual] * (1 - moved / np.maximum(before, 1))
        return np.concatenate([left, times * counts * share])


@dataclass(frozen=True, slots=True, eq=False)
class SingleOutputs:
    """Single outputs to certify one by one, for the probabilistic definition.

    keys: (atoms,), rising.
    words: (atoms,).
    for_d1, for_d2: (atoms,), whether P(s) > e^ε Q(s), or Q(s) > e^ε P(s), is suspected.
    """

    keys: KeyArray
    words: tuple[str, ...]
    for_d1: NDArray[np.bool_]
    for_d2: NDArray[np.bool_]
