"""Plans of the number of draws, from one trial."""

from __future__ import annotations

from typing import Any

import pytest

from dpaudit.auditing.engine import run_audit
from dpaudit.auditing.planning import draws_for_leak, trial_of
from dpaudit.auditing.schedule import Plan
from dpaudit.auditing.spec import AuditSpec
from dpaudit.auditing.underpowered import (
    certifying,
    draws_needed,
    event_share,
    most_powerful,
)
from dpaudit.certificates.evidence import DrawLimits
from dpaudit.config.building import build_spec
from dpaudit.errors import UsageError
from tests.specs import replace


def spec(**more: Any) -> AuditSpec:
    inputs = {} if "pairs" in more else {"d1": 0, "d2": 1}
    settings = {"mechanism": "mechanisms.laplace:laplace", "claim": {"epsilon": 1}}
    return build_spec({**settings, **inputs, **more})


def test_a_trial_has_other_draws_than_the_audit() -> None:
    audit = spec()
    assert trial_of(audit).sampling.seed != audit.sampling.seed


def test_a_trial_makes_all_of_its_draws_whatever_the_audit_requires() -> None:
    audit = spec(time=3.0, stop="bets", require_power=1.1, require_rare=0.1, expect="pass")
    trial = trial_of(audit, 500)
    assert (trial.sampling.samples, trial.sampling.time) == (500, None)
    result = run_audit(trial)
    assert (result.draws, result.underpowered) == (500, None)


@pytest.mark.parametrize("bound", ["game", "clopper-pearson"])
def test_rarer_events_and_smaller_leaks_need_more_draws(bound: str) -> None:
    (certificate,) = run_audit(trial_of(spec(bound=bound), 2_000)).certificates
    share = event_share(most_powerful(certificate)) / 2
    samples = draws_for_leak([certificate], 1.3, 0.9)
    assert samples == draws_needed(certificate, share, 1.3, 0.9)
    rarer = draws_needed(certificate, share / 2, 1.3, 0.9)
    assert rarer is not None
    assert draws_for_leak([certificate], 1.5, 0.9) < samples < rarer / 1.5
    assert draws_needed(certificate, 0.0, 1.3, 0.9) is None
    unsure, sure = (draws_for_leak([certificate], 1.3, power) for power in (0.5, 0.99))
    assert unsure < samples < sure


def test_an_event_of_chance_is_not_planned_for() -> None:
    """Right guesses are as many as wrong ones."""
    (certificate,) = run_audit(trial_of(spec(), 2_000)).certificates
    guesses = certificate.fixed.correct + certificate.fixed.wrong
    chance = replace(certificate.fixed, correct=guesses // 2, wrong=guesses - guesses // 2)
    with pytest.raises(UsageError) as error:
        draws_for_leak([replace(certificate, fixed=chance, others=())], 1.3, 0.9)
    assert error.value.code == "plan-impossible"


@pytest.mark.parametrize(
    "settings",
    [
        {"claim": {"definition": "probabilistic", "epsilon": 1, "delta": 0.01}},
        {"mechanism": "mechanisms.randomized_response:randomized_response", "exact": True},
        {"d2": 0},
    ],
)
def test_what_has_no_number_of_draws_is_refused_before_a_trial(settings: dict[str, Any]) -> None:
    with pytest.raises(UsageError) as error:
        trial_of(spec(**settings))
    assert error.value.code == "plan-impossible"


@pytest.mark.parametrize("samples", [100, 1_000, 13_400, 500_000, 5_000_000])
def test_draws_of_the_exact_test_are_those_that_are_left(samples: int) -> None:
    left = certifying(samples, DrawLimits())
    assert samples // 2 <= left <= samples - Plan(samples, None).freeze_at
