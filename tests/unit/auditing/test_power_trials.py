"""Plans of the number of draws, from trials."""

from __future__ import annotations

import functools
import re
from types import SimpleNamespace

import pytest

from dpaudit.auditing import power_trials
from dpaudit.auditing.engine import run_audit
from dpaudit.auditing.power_trials import (
    AuditPlan,
    Timed,
    _joined,
    _planned,
    _trial_of,
    plan,
)
from dpaudit.auditing.schedule import Plan
from dpaudit.auditing.spec import AuditSpec
from dpaudit.auditing.underpowered import certifying, draws_needed, rounded
from dpaudit.certificates.evidence import DrawLimits
from dpaudit.certificates.result import AuditResult
from dpaudit.config.building import build_spec
from dpaudit.errors import UsageError
from tests.specs import replace


def spec(**more: object) -> AuditSpec:
    laplace = {"mechanism": "mechanisms.laplace:laplace", "d1": 0, "d2": 1}
    return build_spec({**laplace, "claim": {"epsilon": 1}, **more})


def test_a_trial_has_other_draws_than_the_audit() -> None:
    audit = spec()
    seeds = {_trial_of(audit, 1_000, number).sampling.seed for number in range(9)} | {
        audit.sampling.seed
    }
    assert len(seeds) == 10


@pytest.mark.parametrize("bound", ["game", "clopper-pearson"])
def test_the_planned_draws_are_enough_and_few_less_are_not(bound: str) -> None:
    trial = run_audit(_trial_of(spec(bound=bound), 2_000, 0))
    (found,) = _planned([trial], 1.3, 0.9).pairs
    assert found.samples is not None
    rarer = draws_needed(found.certificate, found.share / 2, 1.3, 0.9)
    larger = draws_needed(found.certificate, found.share, 1.5, 0.9)
    assert rarer is not None
    assert larger is not None
    assert larger < found.samples < rarer / 1.5
    assert draws_needed(found.certificate, 0.0, 1.3, 0.9) is None
    unsure, sure = (draws_needed(found.certificate, found.share, 1.3, one) for one in (0.5, 0.99))
    assert unsure is not None
    assert sure is not None
    assert unsure < found.samples < sure


@functools.cache
def _of_laplace(samples: int, seed: int) -> AuditResult:
    """Return what comes of a trial: a slower machine draws the same."""
    return run_audit(replace(spec(), samples=samples, seed=seed))


def _planned_on(slowness: float, loading: float = 0.3) -> tuple[AuditPlan, list[str]]:
    """Return the plan for a fast mechanism on a machine that is so much slower than a usual one,
    where the first audit loads what others have, and to learn takes longer than to draw; and what
    was announced."""
    pending, said = [loading], list[str]()

    def timed(audit: AuditSpec) -> Timed:
        learning = 0.02 + 0.08 * min(1, audit.sampling.samples / 10_000)
        drawing = slowness * (learning + 3e-7 * audit.sampling.samples)
        seconds = drawing + (slowness * pending.pop() if pending else 0)
        result = _of_laplace(audit.sampling.samples, audit.sampling.seed)
        return Timed(replace(result, seconds=seconds), drawing)

    return plan(spec(), 1.03, 0.9, timed, say=said.append), said


def test_the_plan_for_a_fast_mechanism_does_not_depend_on_the_machine() -> None:
    usual, said = _planned_on(1)
    slow, said_slow = _planned_on(4)
    assert usual.trials > 1
    assert (slow.samples, slow.trials, slow.draws) == (usual.samples, usual.trials, usual.draws)
    assert (usual.is_cut, slow.is_cut) == (False, False)
    # What was announced is no more than it took.
    assert said == []
    assert [text.partition(" of ")[0] for text in said_slow] == ["a trial"]
    assert re.fullmatch(r"a trial of [\d,]+ draws: at most \d s", said_slow[0])


def test_time_before_the_first_draw_is_no_time_of_draws() -> None:
    usual, _ = _planned_on(1)
    loading, said = _planned_on(1, loading=20.0)
    assert said == []
    assert (loading.samples, loading.rate) == (usual.samples, usual.rate)
    assert loading.overhead < 1e-9


@pytest.mark.parametrize(
    ("slowness", "first"), [(20, 10_000), (95, 1_000), (110, 1_000), (1_200, 100)]
)
def test_a_plan_that_time_cuts_off_rests_on_a_trial_of_a_fixed_size(
    slowness: float, first: int
) -> None:
    cut, _ = _planned_on(slowness, loading=0.0)
    assert (cut.is_cut, cut.trials, cut.last.draws) == (True, 1, first)


def test_several_pairs_need_what_the_worst_of_them_does() -> None:
    pairs = [{"d1": 0, "d2": 1}, {"d1": 0, "d2": 0.2}]
    given = {key: value for key, value in _settings().items() if key not in ("d1", "d2")}
    trial = run_audit(_trial_of(build_spec({**given, "pairs": pairs}), 2_000, 0))
    found = _planned([trial], 1.3, 0.9)
    assert len(found.pairs) == 2
    assert found.enough == max(one.samples or 0 for one in found.pairs)


def _settings() -> dict[str, object]:
    return {
        "mechanism": "mechanisms.laplace:laplace",
        "d1": 0,
        "d2": 1,
        "claim": {"epsilon": 1},
    }


@pytest.mark.parametrize("samples", [100, 1_000, 13_400, 500_000, 5_000_000])
def test_draws_of_the_exact_test_are_those_that_are_left(samples: int) -> None:
    left = certifying(samples, DrawLimits())
    assert samples // 2 <= left <= samples - Plan(samples, None).freeze_at


def test_numbers_are_rounded_up() -> None:
    assert [rounded(one) for one in (100, 999, 1_000, 1_001, 123_456)] == [
        100,
        999,
        1_000,
        1_010,
        124_000,
    ]


def test_single_outputs_are_not_planned_for() -> None:
    settings = {"mechanism": "mechanisms.randomized_response:randomized_response"}
    claim = {"definition": "probabilistic", "epsilon": 1, "delta": 0.01}
    audit = build_spec({**_settings(), **settings, "claim": claim})
    trial = run_audit(_trial_of(replace(audit), 2_000, 0))
    with pytest.raises(UsageError) as error:
        _planned([trial], 1.2, 0.9)
    assert error.value.code == "plan-impossible"


def test_the_share_of_a_trial_is_not_rounded_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(power_trials, "draws_needed", lambda *_: None)
    for inside in range(1, 200):
        test = SimpleNamespace(correct=inside, wrong=0, draws=700, method="", events=())
        monkeypatch.setattr(power_trials, "most_powerful", lambda _, test=test: test)
        planned = power_trials._of_trial(SimpleNamespace(), 1.0, 0.9, is_single=False)  # type: ignore[arg-type]
        assert planned.share == 0.9 * inside / 700


def test_the_score_of_an_event_is_explained_once() -> None:
    low, high, mark = "score < 1", "score > 3", ", where the score is "
    events = [f"{low}{mark}one", f"{high}{mark}one"]
    assert _joined(events) == f"{low} or {high}{mark}one"
    assert _joined(events[:1]) == events[0]
    other = [events[0], f"{high}{mark}two"]
    assert _joined(other) == " or ".join(other)
