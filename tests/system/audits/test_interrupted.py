"""An audit that is interrupted ends with the result of its bets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit.auditing.engine import run_audit
from dpaudit.auditing.recheck import recheck
from dpaudit.auditing.spec import AuditSpec
from dpaudit.certificates.result import AuditResult, Interrupted, Progress, Sampled, Verdict
from dpaudit.certificates.wealth import Wealth
from dpaudit.errors import StopAudit
from dpaudit.inputs.pairs import NeighbouringPair
from dpaudit.reports.audit_report import is_expected
from dpaudit.targets.target import CallableTarget
from tests.forging import forged
from tests.raising import refusal
from tests.result_files import from_json, to_json
from tests.specs import audit_of

SAMPLES = 20_000


def laplace(x: float, size: int, rng: np.random.Generator) -> Any:
    return x + rng.laplace(size=size)


def spec_of(claim: dpaudit.PrivacyClaim | None = None, **more: Any) -> AuditSpec:
    options = {
        "name": "audit",
        "target": CallableTarget(function=laplace),
        "pairs": (NeighbouringPair(0.0, 1.0, None, "0, 1"),),
        "claim": claim or dpaudit.PureDP(1.0),
        "samples": SAMPLES,
        "no_trace": True,
        **more,
    }
    return audit_of(**options)


class Stop:
    """Ends an audit after a number of blocks."""

    def __init__(self, blocks: int) -> None:
        self._blocks = blocks
        self.seen: list[Progress] = []

    def __call__(self, progress: Progress) -> None:
        self.seen.append(progress)
        if len(self.seen) == self._blocks:
            raise StopAudit


def ignore() -> None:
    """The `check` of an audit whose progress interrupts it."""


def interrupted(blocks: int, spec: AuditSpec | None = None) -> tuple[AuditResult, Progress]:
    stop = Stop(blocks)
    result = run_audit(spec or spec_of(), stop, ignore)
    assert isinstance(result.ending, Interrupted)
    return result, stop.seen[-1]


@pytest.mark.parametrize("blocks", [1, 8])
def test_the_bound_of_the_bets_is_the_result(blocks: int) -> None:
    result, seen = interrupted(blocks)
    assert (result.draws, result.epsilon_lower) == (seen.draws, seen.epsilon_lower)
    assert (result.delta_lower, result.verdict) == (0.0, Verdict.NO_VIOLATION_FOUND)
    assert result.certificates[0].evidence.budget == SAMPLES
    assert result.underpowered is not None
    assert not is_expected(result)
    assert recheck(result) == []


@pytest.mark.parametrize(
    "claim",
    [dpaudit.PureDP(0.4), dpaudit.ApproximateDP(0.4, 1e-3), dpaudit.RenyiDP(2.0, 0.05)],
    ids=["pure", "approximate", "renyi"],
)
def test_it_refutes_if_the_bets_have_refuted(claim: dpaudit.PrivacyClaim) -> None:
    spec = spec_of(claim, stop="never")
    whole = run_audit(spec)
    after = whole.certificates[0].evidence.refuted_after
    assert after is not None
    blocks = [block.draws for block in whole.certificates[0].evidence.blocks]
    needed = next(n for n in range(len(blocks)) if sum(blocks[:n]) == after)
    before, _ = interrupted(needed - 1, spec)
    result, seen = interrupted(needed, spec)
    assert before.verdict is Verdict.NO_VIOLATION_FOUND
    assert (result.verdict, seen.draws) == (Verdict.VIOLATION, after)
    assert any("interrupted" in text for text in result.all_warnings)
    for ended in (before, result):
        assert recheck(ended) == []
        assert from_json(to_json([ended])) == [ended]


def test_a_file_cannot_hide_it() -> None:
    result, _ = interrupted(8)
    with pytest.raises(ValueError, match="incomplete"):
        Sampled(result.certificates)
    document = json.loads(to_json([result]))
    document["audits"][0]["ending"] |= {"kind": "sampled"}
    del document["audits"][0]["ending"]["pairs"]
    assert refusal(from_json, forged(document)).code == "results-damaged"


def test_without_a_check_the_exception_passes_on() -> None:
    with pytest.raises(StopAudit):
        run_audit(spec_of(), Stop(3))


def test_before_the_first_block_there_is_no_result() -> None:
    def stop() -> None:
        raise StopAudit

    with pytest.raises(StopAudit):
        run_audit(spec_of(), None, stop)


def test_draws_during_which_a_signal_came_do_not_count() -> None:
    """A mechanism may catch the exception, and return what it never returns otherwise."""
    requests: list[int] = []

    def caught(x: float, rng: np.random.Generator) -> float | str:
        requests.append(len(requests))
        return "caught" if len(requests) == 2_000 else float(x + rng.laplace())

    def check() -> None:
        if len(requests) >= 2_000:
            raise StopAudit

    result = run_audit(spec_of(target=CallableTarget(function=caught)), None, check)
    assert isinstance(result.ending, Interrupted)
    whole = run_audit(spec_of(target=CallableTarget(function=laplace_alone)))
    made = result.certificates[0].evidence.blocks
    assert 0 < result.draws < 2_000
    assert made == whole.certificates[0].evidence.blocks[: len(made)]


def laplace_alone(x: float, rng: np.random.Generator) -> float:
    return float(x + rng.laplace())


@pytest.mark.parametrize("moment", ["record", "_log_gains"])
def test_an_exception_within_the_bets_leaves_the_blocks_before(
    moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls, usual = [0], getattr(Wealth, moment)

    def stopping(wealth: Wealth, *given: Any) -> Any:
        value = usual(wealth, *given)
        calls[0] += 1
        if calls[0] == 12:
            raise StopAudit
        return value

    monkeypatch.setattr(Wealth, moment, stopping)
    result = run_audit(spec_of(), None, ignore)
    monkeypatch.undo()
    assert isinstance(result.ending, Interrupted)
    assert result.draws > 0
    assert recheck(result) == []


def test_pairs_that_were_not_audited_share_the_error_probability() -> None:
    pairs = tuple(NeighbouringPair(0.0, 1.0, None, f"pair {n}") for n in range(3))
    first = run_audit(spec_of(pairs=pairs)).certificates[0]
    result, _ = interrupted(len(first.evidence.blocks) + 5, spec_of(pairs=pairs))
    assert result.certificates[0] == first
    assert [one.is_interrupted for one in result.certificates] == [False, True]
    assert result.p_value == min(1.0, 3 * min(one.p_value for one in result.certificates))
    assert [one.alpha for one in result.certificates] == pytest.approx(2 * [0.01 / 3])
    assert recheck(result) == []
    assert from_json(to_json([result])) == [result]


def test_a_journal_continues_what_was_interrupted(tmp_path: Path) -> None:
    result, _ = interrupted(9, spec_of(journal=tmp_path))
    assert any("--resume" in note for note in result.notes)
    again = run_audit(spec_of(journal=tmp_path, resume=True))
    assert again.certificates == run_audit(spec_of()).certificates


def test_a_time_limit_is_no_number_of_draws() -> None:
    result, seen = interrupted(2, spec_of(samples=1_000_000, time=60.0))
    assert (result.draws, result.certificates[0].evidence.budget) == (seen.draws, seen.draws)
    assert recheck(result) == []
