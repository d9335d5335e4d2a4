"""Notes on parameters of a mechanism that have another value than the claim."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from dpaudit import ApproximateDP, PureDP, audit
from dpaudit.auditing.results import other_values
from dpaudit.config.building import build_spec
from tests.specs import replace


def lap(d: Any, rng: Any, epsilon: float = 1.0, scale: float = 3.0) -> Any:
    return d + rng.laplace(scale=scale / epsilon)


def gaussian(d: Any, rng: Any, sigma: float = 1.0, mu: float = 0.0) -> Any:
    return mu + d + rng.normal(scale=sigma)


def released(d: Any, rng: Any, epsilon: Any = True, delta: str = "small") -> Any:
    return lap(d, rng)


class Noise:
    def __init__(self, epsilon: float = 2.0, delta: float = 1e-6) -> None:
        self.epsilon = epsilon

    def __call__(self, d: Any, rng: Any) -> Any:
        return lap(d, rng, self.epsilon)

    def twice(self, d: Any, rng: Any, epsilon: float = 0.5) -> Any:
        return lap(d, rng, epsilon)


# Settings besides the mechanism, and what differs from the claim: the name of the parameter, its
# value, whether it is a default, the claimed value, and the option of the remedy.
Difference = tuple[str, str, bool, str, str]
CASES: list[tuple[str, dict[str, Any], list[Difference]]] = [
    ("lap", {"claim": {"epsilon": 0.5}}, [("epsilon", "1", True, "0.5", "--param")]),
    (
        "lap",
        {"claim": {"epsilon": 0.5}, "params": {"epsilon": 2}},
        [("epsilon", "2", False, "0.5", "--param")],
    ),
    ("lap", {"claim": {"epsilon": 1}, "repeat": 3}, []),
    ("gaussian", {"claim": {"sigma": 2}}, [("sigma", "1", True, "2", "--param")]),
    ("released", {"claim": {"epsilon": 0.5, "delta": 0.1}}, []),
    (
        "Noise",
        {"claim": {"epsilon": 0.5, "delta": 0.1}},
        [("delta", "1e-06", True, "0.1", "--init"), ("epsilon", "2", True, "0.5", "--init")],
    ),
    ("Noise", {"claim": {"epsilon": 0.5}, "call": "twice"}, []),
]


@pytest.mark.parametrize(("name", "settings", "differences"), CASES)
def test_a_parameter_with_another_value_than_the_claim_is_named(
    name: str, settings: dict[str, Any], differences: list[Difference]
) -> None:
    spec = build_spec({"mechanism": f"{__name__}:{name}", "d1": 0, "d2": 1, **settings})
    warnings, notes = other_values(spec)
    assert len(warnings) == sum(is_default for _, _, is_default, _, _ in differences)
    notes = sorted([*warnings, *notes])
    assert len(notes) == len(differences)
    for note, (parameter, value, is_default, claimed, option) in zip(
        notes, differences, strict=True
    ):
        assert f" {parameter} = {value}; the claim is {claimed} ({option} " in note
        assert ("default" in note) is is_default


def test_a_composition_has_no_parameter_of_its_own() -> None:
    parts = [{"mechanism": f"{__name__}:lap"}, {"mechanism": f"{__name__}:lap"}]
    settings = {"compose": parts, "d1": 0, "d2": 1, "claim": {"epsilon": 0.5}}
    assert other_values(build_spec(settings)) == ([], [])


def test_a_claim_that_a_library_made_is_not_compared() -> None:
    spec = build_spec({"mechanism": f"{__name__}:lap", "d1": 0, "d2": 1, "claim": {"epsilon": 0.5}})
    assert other_values(spec) != ([], [])
    assert other_values(replace(spec, claimed_by="OpenDP 0.14")) == ([], [])


def test_a_function_has_the_note_with_the_keyword_argument_of_python() -> None:
    result = audit(lap, 0, 1, ApproximateDP(0.5, 0.1), samples=200)
    (warning,) = result.warnings
    assert "params={'epsilon': 0.5}" in warning
    assert audit(partial(lap, epsilon=0.5), 0, 1, PureDP(0.5), samples=200).warnings == ()
