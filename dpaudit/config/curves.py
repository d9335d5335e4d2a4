"""A claim's curve beside its point: one audit becomes two, with verdicts of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dpaudit.claims import DEFINITIONS
from dpaudit.config.problems import problem
from dpaudit.errors import did_you_mean

CURVE = "curve"


def with_curve(settings: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the audit of the claim's point and, where `claim` has a `curve`, that of the curve.

    A wrong curve often leaves the point unrefuted, and the other way round. Raises a PlacedError
    for a curve that is not one definition with its parameters, and perhaps what to expect.
    """
    claim = settings.get("claim")
    if not isinstance(claim, Mapping) or CURVE not in claim:
        yield dict(settings)
        return
    point = {name: value for name, value in claim.items() if name != CURVE}
    yield {**settings, "claim": point}
    curve, expect = _parts(claim[CURVE])
    audit = {**settings, "name": f"{settings['name']} (curve)", "claim": curve}
    yield {**audit, "expect": expect} if expect is not None else audit


def _parts(curve: Any) -> tuple[dict[str, Any], Any]:
    """Return the claim that a curve is, and its own expectation."""
    given = dict(curve) if isinstance(curve, Mapping) else {}
    expect = given.pop("expect", None)
    definition = next(iter(given), None)
    if len(given) != 1 or not isinstance(given[definition], Mapping):
        raise problem(
            ("claim", CURVE),
            f"curve={curve!r} must be one definition with its parameters, such as "
            "{gaussian: {sigma: 3.75}}",
        )
    if definition not in DEFINITIONS:
        raise problem(
            ("claim", CURVE),
            f"unknown definition {definition!r}; known: {', '.join(DEFINITIONS)}."
            + did_you_mean(str(definition), DEFINITIONS),
        )
    return {"definition": definition, **given[definition]}, expect
