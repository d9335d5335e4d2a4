"""What was learned, frozen: a map from outcome to level, a guess for every level, and what
selection says of itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from dpaudit.draws import LevelArray
from dpaudit.levels.level_map import IntArray, LevelMap
from dpaudit.outcomes import KeyArray, Outcomes

if TYPE_CHECKING:  # a worker needs no SciPy, which takes as long to import as all else
    from dpaudit.levels.candidate import Candidate
    from dpaudit.stats.betting import Beliefs


@dataclass(frozen=True, slots=True, eq=False)
class Distinguisher:
    """The rule of the game: level the outcome, then guess 1, guess 2 or abstain.

    attack: what found it, in words. guesses: (levels,) of 1 (d1), -1 (d2), 0 (abstain).
    """

    attack: str
    level: LevelMap
    guesses: IntArray

    @property
    def levels(self) -> int:
        return self.level.levels

    def __call__(self, outcomes: Outcomes) -> LevelArray:
        """Return the level of every outcome."""
        return self.level(outcomes)

    def words(self, guess: Literal[1, -1]) -> str | None:
        """Return the event of one guess in words; None when the rule never makes it."""
        chosen = np.asarray(self.guesses == guess)
        return self.level.words(chosen) if chosen.any() else None


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
    promises: whether any order promised a bound above 0, or may refute the claim.
    tried: the attacks that were considered.  scores: of the one that was used, if it is a score.
    expected: (levels, 2), draws of both inputs to expect at every level, of as many as selection.
    """

    distinguisher: Distinguisher
    beliefs: Beliefs
    tried: tuple[Tried, ...] = ()
    scores: ScoreDistributions | None = None
    expected: NDArray[np.float64] | None = None
    leading: tuple[Candidate, ...] = ()
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
