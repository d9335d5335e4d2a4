"""What was learned, frozen: a map from outcome to level, up to three rules on these levels, and
what selection says of itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from dpaudit.claims import ProfilePoint
from dpaudit.draws import LevelArray
from dpaudit.levels.cells import NO_OUTPUT
from dpaudit.levels.joint import JointLevels
from dpaudit.levels.level_map import IntArray, LevelMap
from dpaudit.outcomes import KeyArray, Outcomes

if TYPE_CHECKING:  # a worker needs no SciPy, which takes as long to import as all else
    from dpaudit.levels.candidate import Candidate
    from dpaudit.levels.sieve import Sieve
    from dpaudit.stats.betting import Beliefs


# How the error probability of the exact test is split among the rules of a portfolio. The share of
# a rule that learning did not find goes to the main rule (docs/method.md §2).
RARE_SHARE = 0.08
OTHER_SHARE = 0.02


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """One rule of the game: guess d1 (1), guess d2 (-1) or abstain (0) at every level.

    attack: what found it.  level, guesses: its own levels, and its guess at each, (levels,).
    share: its part of the exact test's error probability.  expected: (2, 2), the draws of d1 and of
    d2 to expect where it guesses d1, then where it guesses d2, of as many as it was learned from.
    point: of the claim's profile that the rule is for; None for the one that is bet against.
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
        """The right and the wrong guesses that the learning draws let expect of as many draws."""
        if self.expected is None:
            return 0.0, 0.0
        (right, wrong), (missed, found) = self.expected.tolist()
        return right + found, wrong + missed


@dataclass(frozen=True, slots=True, eq=False)
class Distinguisher:
    """The frozen portfolio: the level of an outcome, and the guesses of every rule at each level.

    rules: the main rule first; their shares add up to 1.  table: (rules, levels), the guesses of
    each rule at the joint levels.
    """

    level: LevelMap
    rules: tuple[Rule, ...]
    table: IntArray

    @classmethod
    def of(cls, rules: Sequence[Rule]) -> Distinguisher:
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

    def only(self, place: int) -> Distinguisher:
        """Return the portfolio of one of the rules, on the same levels, with all of the share."""
        rule = replace(self.rules[place], share=1.0)
        return Distinguisher(self.level, (rule,), self.table[place : place + 1])


@dataclass(frozen=True, slots=True)
class Tried:
    """An attack that was considered for the exact bound.

    predicted: the bound that it promised on held-out selection draws, for ε at the δ of the point
        tested (for δ at its ε when the claim is a curve); None when it was skipped.
    skipped: why, in words; empty when it was tried.
    """

    attack: str
    predicted: float | None
    skipped: str = ""


@dataclass(frozen=True, slots=True)
class ScoreDistributions:
    """How the score of the attack that was used fell on selection draws of either input, each draw
    scored by a fit that had not seen it.

    edges: where the levels part, rising.  counts: (draws of d1, draws of d2) by level, from below
        the first edge on; the last one counts outcomes that have no score.
    columns: what the score depends on most, with the share of each; they add up to at most 1.
    """

    edges: tuple[float, ...]
    counts: tuple[tuple[int, int], ...]
    columns: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Learned:
    """All that a round of learning leaves: the rule for the bound, and what the bettors believe.

    leading: the orders that promised most, to be counted on.
    sieve: what the rare rule was found by, if there is one.
    promises: whether any order promised a bound above 0.
    tried: the attacks that were considered.  scores: of the one that was used, if it is a score.
    expected: (levels, 2), draws of both inputs to expect at every level, of as many as selection.
    """

    distinguisher: Distinguisher
    beliefs: Beliefs
    tried: tuple[Tried, ...] = ()
    scores: ScoreDistributions | None = None
    expected: NDArray[np.float64] | None = None
    leading: tuple[Candidate, ...] = ()
    sieve: Sieve | None = None
    promises: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class AccusedAtoms:
    """Raw outputs to certify one by one, for the probabilistic definition.

    keys: (atoms,), rising; words: by atom. for_d1, for_d2: (atoms,), whether P(s) > e^ε Q(s), or
    Q(s) > e^ε P(s), is suspected.
    """

    keys: KeyArray
    words: tuple[str, ...]
    for_d1: NDArray[np.bool_]
    for_d2: NDArray[np.bool_]
