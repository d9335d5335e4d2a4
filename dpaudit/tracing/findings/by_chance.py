"""Detectors of values that only one input has, in parts that noise selects but does not hide."""

from __future__ import annotations

import math
from collections.abc import Iterator

from dpaudit.certificates.traced import Finding, FindingKind, SourceLine
from dpaudit.claims import PrivacyClaim
from dpaudit.tracing.findings.remedies import GIVE_AN_OUTPUT
from dpaudit.tracing.findings.sites import Case
from dpaudit.tracing.runs.branches import Selected
from dpaudit.tracing.runs.places import Place
from dpaudit.tracing.source import number, shown

# Error probability of each bound on a probability.
_LEVEL = 1e-5
# A value that occurred only once may be a noised number.
_AGAIN = 2
# Occurrences that noise of an unknown law does not explain.
_OFTEN = 100


def of_selected(case: Case) -> Iterator[Finding]:
    """Yield values that only one input has. They are causes if the counts of the runs refute the
    claim: the other input may have such a value too rarely to be seen."""
    # The most frequent value of each part.
    for one in sorted(case.runs.selected, key=lambda one: -one.often):
        is_cause = _is_above(one, case.claim)
        if not (is_cause or one.is_known or one.often >= _OFTEN):
            continue
        which, other = (f"d{number}" for number in (one.which + 1, 2 - one.which))
        often = f"in {one.often} of {one.runs} runs"
        if one.error is not None:
            kind, message, place = one.error
            said = f": {message}" if message else ""
            words = f"{kind} is raised for {which} alone, {often} and never for {other}{said}"
            line = _line(place or one.place)
            yield Finding("exception", is_cause, line, words, GIVE_AN_OUTPUT, cost=math.inf)
            continue
        if one.often < _AGAIN:
            words = (
                f"{one.part} is {one.value} for {which} and {one.other} for {other} with the same "
                "noised values: what hides this was not seen"
            )
            yield Finding("no-noise", False, _line(one.place), words, "")
            continue
        words = (
            f"{one.part} is {one.value} for {which} {often} and never for {other}, which has "
            f"{one.other} with the same noised values: noise selects it, and does not hide it"
        )
        remedy = "add noise to it, or do not release it"
        yield Finding("no-noise", is_cause, _line(one.place), words, remedy, cost=math.inf)


def _line(place: Place | None) -> SourceLine:
    return shown(place or Place("?", 0, "", ""))


def _is_above(one: Selected, claim: PrivacyClaim | None) -> bool:
    if claim is None or not one.often:
        return False
    # Imported here, since most traces need no SciPy.
    from dpaudit.stats.binomial import clopper_pearson_lower, clopper_pearson_upper

    least = clopper_pearson_lower(one.often, one.runs, _LEVEL)
    most = clopper_pearson_upper(0, one.runs, _LEVEL)
    return any(least > math.exp(point.epsilon) * most + point.delta for point in claim.points())


def of_rare_branches(case: Case) -> Iterator[Finding]:
    """Yield values that only one input has on a branch with a probability above the claimed δ. They
    are no certain causes: the other input may have such a value on another branch."""
    points = () if case.claim is None else case.claim.points()
    allowed = min((point.delta for point in points), default=0.0)
    for one in case.runs.rare:
        if one.chance <= allowed:
            continue
        has, has_not = (f"d{which}" for which in (one.which + 1, 2 - one.which))
        way = f"where `{one.coin.code}` {one.falls}, with probability {number(one.chance)}"
        coin, place = shown(one.coin), one.place
        if one.error is not None:
            kind, message, raised = one.error
            said = f": {message}" if message else ""
            words = f"{kind} is raised for {has} {way}, and in no run for {has_not}{said}"
            place = raised or place
        else:
            words = (
                f"{one.part} is {one.value} for {has} {way}, and in no run for {has_not}: no noise "
                "hides it"
            )
        line = coin if place is None else shown(place)
        others = () if str(line) == str(coin) else (coin,)
        what: FindingKind = "no-noise" if one.error is None else "exception"
        yield Finding(what, False, line, words, "", others)
