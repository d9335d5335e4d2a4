"""Which figures there are of an audit, and which there are not."""

from __future__ import annotations

from dpaudit.certificates.certificate import Certificate, ExactCertificate
from dpaudit.certificates.result import AuditResult
from dpaudit.reports.html.pictures.belief import belief
from dpaudit.reports.html.pictures.outputs import outputs
from dpaudit.reports.html.pictures.picture import Picture
from dpaudit.reports.html.pictures.profile import profile
from dpaudit.reports.html.pictures.region import region, tested_events
from dpaudit.reports.html.pictures.wealth import wealth


def pictures(result: AuditResult) -> list[Picture]:
    """Return the figures that there are, of the pair that decides."""
    one = result.decisive
    if one is None:
        return []
    found: list[Picture | None] = []
    if isinstance(one, Certificate | ExactCertificate):
        found = [region(result, one), outputs(one)]
    found.insert(1, profile(result))
    if isinstance(one, Certificate):
        found.append(wealth(one))
    return [*(picture for picture in found if picture is not None), belief(result)]


def left_out(result: AuditResult) -> str:
    """Return which figures there are not, and why; the empty text where there are all."""
    one = result.decisive
    if one is None:
        return "Nothing is drawn, since no pair of inputs was finished."
    if isinstance(one, ExactCertificate):
        return "Nothing was drawn at random, so that there is no wealth to show."
    if not isinstance(one, Certificate):
        return (
            "One run has guesses in place of events: there are no errors of events, no outputs and "
            "no wealth to show."
        )
    missing = (
        [] if tested_events(one) else ["No event was tested, so that there are no errors to show."]
    )
    if one.recording is not None:
        missing.append("Nothing is bet on recorded outputs, so that there is no wealth to show.")
    elif not any(block.round is not None for block in one.blocks):
        missing.append("Nothing was bet, so that there is no wealth to show.")
    return " ".join(missing)
