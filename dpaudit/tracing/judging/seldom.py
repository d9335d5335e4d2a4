"""What one input alone has on ways that a coin seldom opens: as findings."""

from __future__ import annotations

from collections.abc import Iterator

from dpaudit.certificates.traced import Finding, FindingKind
from dpaudit.claims import PrivacyClaim
from dpaudit.tracing.runs.coupling import Runs
from dpaudit.tracing.wording import number, shown


def of_seldom(runs: Runs, claim: PrivacyClaim | None) -> Iterator[Finding]:
    """Yield parts of the output that one input alone has there, where the claim's δ does not allow
    for the way. It is no cause for certain: other ways may give the same to the other input."""
    points = () if claim is None else claim.points()
    allowed = min((point.delta for point in points), default=0.0)
    for one in runs.seldom:
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
