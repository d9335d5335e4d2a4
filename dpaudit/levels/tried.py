"""What selection says of itself: which attacks were tried, and how a score fell on either input."""

from __future__ import annotations

from dataclasses import dataclass


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
