"""Which of many pairs leaks most, by draws that certify nothing: successive halving.

Estimates from few draws mislead, so many pairs get few draws, the best eighth of them four times
as many, and so on (Jamieson & Talwalkar 2016): each round costs half of the one before.
docs/method.md says why the audit of the winner is valid all the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from dpaudit.attacks.objective import Objective, best_predicted
from dpaudit.attacks.single_columns import one_dimensional, single_columns
from dpaudit.attacks.single_outputs import atoms
from dpaudit.attacks.weighted_sums import mean_differences
from dpaudit.claims import ProfilePoint
from dpaudit.draws import SelectionDraws
from dpaudit.levels.candidates import Candidate, Scorer
from dpaudit.levels.rules import predicted_growth
from dpaudit.searching.proposals import Proposal
from dpaudit.searching.trials import Drawing, Input, paired

# The best one of so many goes on, with so many times the draws.
KEPT, GROWTH = 8, 4
# Draws of either input in the first round, at least and at most.
FEWEST, MOST = 50, 1_000
# Standard errors by which a bound is lowered that pairs are compared by.
_ERRORS = 2.5
_Key = tuple[int, int, bool, int, bool]
# What is quick on outputs of many columns, for pairs of which most are given up.
_QUICK: tuple[Scorer, ...] = (one_dimensional, single_columns, mean_differences, atoms)


@dataclass(frozen=True, slots=True, eq=False)
class Contender:
    """A proposed pair under trial.

    evidence: how much likelier, in logs, the draws are than the claim allows.  estimate: the bound
    for ε to expect of an audit.  hope: that bound, less careful: pairs are compared by it, since
    care costs a rare event more than a frequent one.  order: its place among the proposals, of
    which simple ones come first.  has_wrong_type: a type that only one input has makes it raise.
    """

    proposal: Proposal
    d1: Input
    d2: Input
    order: int
    evidence: float = 0.0
    estimate: float = 0.0
    hope: float = 0.0
    draws: int = 0
    has_wrong_type: bool = False

    @property
    def is_alone(self) -> bool:
        """Whether the draws were made one by one, where the mechanism can make many in a call."""
        return self.d1.is_alone

    def rank(self, enough: float) -> tuple[float, ...]:
        """Return what a better contender has more of. enough: evidence that nothing is added to by
        more. A pair inside the space is worth more than one outside it, where both leak; a pair
        with a wrong type is worth less than any other."""
        evidence = _rounded(min(self.evidence, enough))
        inside, hope = self.proposal.inside, _rounded(self.hope)
        return (not self.has_wrong_type, evidence, inside, hope, -self.order)


@dataclass(slots=True)
class Judge:
    """Estimates how much a pair leaks, for one claim.

    coming: draws of the audit that is to follow.  attacks: all, for pairs that are left.
    is_hopeful: compare by bounds that are less careful than the estimate.
    """

    points: Sequence[ProfilePoint]
    coming: int
    drawing: Drawing
    attacks: Sequence[Scorer]
    is_hopeful: bool = False
    _known: dict[_Key, tuple[float, float, float]] = field(default_factory=dict)

    def tried(self, one: Contender, draws: int, *, thorough: bool) -> Contender:
        """Return a contender after so many draws of either input. Raises MechanismError."""
        for side in (one.d1, one.d2):
            self.drawing.fill(side, draws)
        if one.d1.only_raises and one.d2.only_raises:
            return replace(one, draws=2 * draws)
        key = (one.d1.number, one.d2.number, one.is_alone, draws, thorough)
        if key not in self._known:
            attacks = self.attacks if thorough else _QUICK
            self._known[key] = self._estimated(paired(one.d1, one.d2, draws), attacks)
        evidence, estimate, hope = self._known[key]
        return replace(one, evidence=evidence, estimate=estimate, hope=hope, draws=2 * draws)

    def _estimated(
        self, selection: SelectionDraws, attacks: Sequence[Scorer]
    ) -> tuple[float, float, float]:
        found = [one for attack in attacks for one in attack(selection)]
        # None where no output is like another one.
        aim = Objective(self.points[0], self.coming)
        growth = (self._growth(one, point) for one in found for point in self.points)
        estimate = max((best_predicted(one, aim) for one in found), default=0.0)
        hope = estimate
        if self.is_hopeful:
            hope = max((float(np.max(aim.lowered(one.table, _ERRORS))) for one in found), default=0)
        return max(growth, default=0.0), estimate, hope

    def _growth(self, candidate: Candidate, point: ProfilePoint) -> float:
        return max(0.0, float(np.max(predicted_growth(candidate.table, point))))


def halved(
    contenders: Iterable[Contender],
    tried: Callable[[Contender, int, int], Contender],
    *,
    draws: int,
    enough: float,
    is_over: Callable[[], bool],
    of_answers: bool = False,
    with_patterns: bool = False,
    until: int = 1,
) -> list[Contender]:
    """Return contenders, best first, after rounds of four times the draws for the best eighth,
    until one is left.

    tried: returns a contender after so many draws of either input, in the round with this number.
    draws: in the first round.  is_over: whether to end before the next trial.
    of_answers: whether places are for hope, too.  with_patterns: and for patterns.
    until: of so many, more than one, no further round is made: the caller compares them.
    """
    standing, out = list(contenders), list[Contender]()
    for number in range(rounds_for(len(standing))):
        if number and 1 < len(standing) <= until:
            break
        size = draws * GROWTH**number
        for place, one in enumerate(standing):
            if is_over():
                break
            standing[place] = tried(one, size, number)
        standing.sort(key=lambda one: one.rank(enough), reverse=True)
        standing, left = _chosen(
            standing, number, of_answers=of_answers, with_patterns=with_patterns
        )
        out = [*left, *out]
    return [*standing, *out]


def _chosen(
    ranked: list[Contender], number: int, *, of_answers: bool, with_patterns: bool
) -> tuple[list[Contender], list[Contender]]:
    """Return contenders that go on after the round with a number, and the others.

    Of answers, a half of the places is for those of the most hope, whatever their evidence: a rare
    event that leaks much needs more draws than a frequent one that leaks little to be as sure.
    Patterns are few, and known to be bad ones: all of them stay after the first round, then the
    best half, and so on.
    """
    places = math.ceil(len(ranked) / KEPT)
    if not of_answers:
        return ranked[:places], ranked[places:]
    best, rest = split(ranked, places, by_hope=True)
    if not (with_patterns and len(ranked) > KEPT):
        return best, rest
    patterns = [one for one in _by_hope(ranked) if one.proposal.origin == "pattern"]
    if number:
        patterns = patterns[: math.ceil(len(patterns) / 2)]
    return _parted(ranked, [*best, *patterns])


def split(
    ranked: list[Contender], places: int, *, by_hope: bool
) -> tuple[list[Contender], list[Contender]]:
    """Return so many contenders, and the others, both in the order given. by_hope: whether half of
    the places are for those of the most hope."""
    if not by_hope:
        return ranked[:places], ranked[places:]
    best = ranked[: places - places // 2]
    others = [one for one in _by_hope(ranked) if one not in best]
    return _parted(ranked, [*best, *others[: places // 2]])


def _by_hope(ranked: list[Contender]) -> list[Contender]:
    return sorted(ranked, key=lambda one: one.hope, reverse=True)


def _parted(
    ranked: list[Contender], chosen: list[Contender]
) -> tuple[list[Contender], list[Contender]]:
    """Return those chosen, and the others, both in the order given."""
    is_in = set(map(id, chosen))
    return (
        [one for one in ranked if id(one) in is_in],
        [one for one in ranked if id(one) not in is_in],
    )


def rounds_for(contenders: int) -> int:
    """Return after how many rounds one is left, and has had draws of its own.

    >>> rounds_for(1), rounds_for(2), rounds_for(8), rounds_for(400)
    (1, 2, 2, 4)
    """
    return 1 if contenders <= 1 else 1 + rounds_for(math.ceil(contenders / KEPT))


def _rounded(value: float) -> float:
    """Return two digits of a number, beyond which estimates are noise."""
    return value if math.isinf(value) else float(f"{value:.2g}")
