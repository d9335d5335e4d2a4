"""The definitions that can be claimed, by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any

from dpaudit.claims.approximate import ApproximateDP
from dpaudit.claims.base import PrivacyClaim, checked_positive
from dpaudit.claims.computational import ComputationalDP
from dpaudit.claims.f_dp import FunctionalDP
from dpaudit.claims.gaussian import GaussianDP
from dpaudit.claims.probabilistic import ProbabilisticDP
from dpaudit.claims.pure import PureDP
from dpaudit.claims.renyi import RenyiDP, ZeroConcentratedDP
from dpaudit.claims.total_variation import TotalVariation
from dpaudit.errors import ClaimError, did_you_mean

DEFINITIONS: Mapping[str, type[PrivacyClaim]] = {
    definition.key: definition
    for definition in (
        PureDP,
        ApproximateDP,
        ProbabilisticDP,
        ComputationalDP,
        TotalVariation,
        FunctionalDP,
        GaussianDP,
        RenyiDP,
        ZeroConcentratedDP,
    )
}


# Parameters that only one definition has.
_TELLING = {
    "mu": GaussianDP.key,
    "sigma": GaussianDP.key,
    "rho": ZeroConcentratedDP.key,
    "order": RenyiDP.key,
    "tradeoff": FunctionalDP.key,
    "adversary": ComputationalDP.key,
}
# What may be given in place of a parameter.
_INSTEAD = {"mu": "sigma"}


def make_claim(parameters: Mapping[str, Any], definition: str | None = None) -> PrivacyClaim:
    """Build a claim from named parameters, e.g. `{"epsilon": 1.0, "delta": 1e-5}`.

    Without `definition`, the one that the parameters belong to (`implied_definition`). A Gaussian
    claim may be given as `sigma`, for noise of that standard deviation at sensitivity 1. Raises
    ClaimError for an unknown definition, a missing, unknown or impossible parameter.
    """
    given = {name: value for name, value in parameters.items() if value is not None}
    if definition is None:
        definition = implied_definition(given)
    if definition not in DEFINITIONS:
        raise ClaimError(
            f"unknown definition {definition!r}; known: {', '.join(DEFINITIONS)}."
            + did_you_mean(definition, DEFINITIONS)
        )
    if definition == "pure" and given.get("delta") == 0:
        del given["delta"]
    if definition == GaussianDP.key and "sigma" in given:
        if "mu" in given:
            raise ClaimError("mu and sigma say the same, mu = 1/sigma; give one of them")
        given["mu"] = 1 / checked_positive("sigma", given.pop("sigma"))
    return DEFINITIONS[definition](**_checked_names(given, definition))


def implied_definition(given: Mapping[str, Any]) -> str:
    """Return the definition that parameters belong to: approximate with a δ > 0, else pure, unless
    one of them has a definition of its own."""
    for name, definition in _TELLING.items():
        if name in given:
            return definition
    return "approximate" if given.get("delta") else "pure"


def required(definition: str) -> list[str]:
    """Return the parameters that a definition cannot do without."""
    return [one.name for one in fields(DEFINITIONS[definition]) if one.default is MISSING]


def _checked_names(given: dict[str, Any], definition: str) -> dict[str, Any]:
    wanted = [field.name for field in fields(DEFINITIONS[definition])]
    for name in given:
        if name not in wanted:
            raise ClaimError(
                f"{name!r} is not a parameter of the {definition} definition; "
                f"it takes {', '.join(map(_words, wanted))}." + did_you_mean(name, wanted)
            )
    missing = [name for name in required(definition) if name not in given]
    if missing:
        needed = " and ".join(map(_words, missing))
        raise ClaimError(f"the {definition} definition needs {needed}")
    return given


def _words(name: str) -> str:
    return f"{name} or {_INSTEAD[name]}" if name in _INSTEAD else name
