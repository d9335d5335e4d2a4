"""Learning from counts: leaks that only many draws show."""

import math
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit import ApproximateDP, AuditResult, PureDP, Verdict
from dpaudit.attacks.sequences import NAME as SEQUENCES
from dpaudit.auditing import counted_learning, schedule
from dpaudit.auditing.counted_learning import CountedLearning
from dpaudit.auditing.recheck import recheck
from tests.result_files import from_json, to_json

# An output of probability P that only d1 gives, next to noise that attains ε; draws of the audit.
P, EPSILON = 1e-3, 1.1
CLAIM, SAMPLES = ApproximateDP(EPSILON, P / 10), 200_000
# A value that too few of the kept draws show.
RARER = 3e-4
RARER_CLAIM = ApproximateDP(EPSILON, RARER / 10)
TRUTH = 1 / (1 + math.exp(-EPSILON))
# Part of the message about dropped rare outputs.
ROOM = "more often than others"
# In these, no leak below is found by the draws that are kept.
SEEDS = (1, 2)


def answer(dataset: int, size: int, rng: np.random.Generator) -> Any:
    return np.where(rng.random(size) < TRUTH, dataset, 1 - dataset).astype(float)


def value(dataset: int, size: int, rng: np.random.Generator, p: float = P) -> Any:
    found = answer(dataset, size, rng)
    found[(rng.random(size) < p) & (dataset == 1)] = 77.0
    return found


def tail(dataset: int, size: int, rng: np.random.Generator) -> Any:
    found = dataset + rng.laplace(scale=1 / EPSILON, size=size)
    found[(rng.random(size) < P) & (dataset == 1)] = 1e6
    return found


def category(
    dataset: int, size: int, rng: np.random.Generator, p: float = P, columns: int = 20
) -> Any:
    found = rng.normal(size=(size, columns))
    found[:, 0] = answer(dataset, size, rng)
    found[:, 7] = rng.integers(5, size=size)
    found[(rng.random(size) < p) & (dataset == 1), 7] = 9
    return found


def narrow(dataset: int, size: int, rng: np.random.Generator, p: float = P) -> Any:
    return category(dataset, size, rng, p, columns=8)


def key(dataset: int, size: int, rng: np.random.Generator) -> Any:
    leaks = (rng.random(size) < P) & (dataset == 1)
    return [
        {"answer": one, "leak": 1} if leak else {"answer": one}
        for one, leak in zip(answer(dataset, size, rng).tolist(), leaks.tolist(), strict=True)
    ]


def flags(dataset: int, size: int, rng: np.random.Generator) -> Any:
    """Whether answers are above a noisy threshold, up to the third one; those of the second half
    move the other way."""
    answers = np.where(np.arange(24) < 12, dataset, -dataset)
    above = answers + rng.laplace(0.0, 6.0, (size, 24)) >= rng.laplace(2.0, 2.0, (size, 1))
    return np.where(np.cumsum(above, axis=1) - above < 3, above.astype(np.int64), -1)


def failing(dataset: int, rng: np.random.Generator) -> float:
    if dataset and rng.random() < P:
        raise ValueError("leak")
    return float(dataset if rng.random() < TRUTH else 1 - dataset)


@pytest.fixture(autouse=True)
def few_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep fewer draws, so that a budget of fewer draws is one to count in."""
    monkeypatch.setattr(schedule, "MAX_BUFFERED_DRAWS", 5_000)


def audited(mechanism: Any, claim: Any = CLAIM, seed: int = 0, **more: Any) -> AuditResult:
    return dpaudit.audit(mechanism, 1, 0, claim, samples=SAMPLES, seed=seed, **more)


@pytest.mark.parametrize("mechanism", [value, tail, category, key, failing])
def test_a_rare_leak_is_found(mechanism: Any) -> None:
    result = audited(mechanism, seed=SEEDS[0])
    assert result.verdict is Verdict.VIOLATION
    assert recheck(result) == []


@pytest.mark.parametrize("claim", [CLAIM, PureDP(EPSILON)])
@pytest.mark.parametrize("seed", SEEDS)
def test_without_the_leak_nothing_is_found(claim: Any, seed: int) -> None:
    result = audited(answer, claim, seed)
    (certificate,) = result.certificates
    assert result.verdict is Verdict.NO_VIOLATION_FOUND
    assert certificate.evidence.counted >= SAMPLES // 8 - 5_000
    assert recheck(result) == []


def test_workers_and_a_journal_that_is_cut_short_change_nothing(tmp_path: Path) -> None:
    name = "tests.validity.test_counted_learning:tail"
    alone = audited(name)
    assert audited(name, workers=2).certificates == alone.certificates
    assert_continued(alone, partial(audited, name, journal=tmp_path), tmp_path)


def assert_continued(alone: AuditResult, journaled: Any, path: Path) -> None:
    """Compare an audit with one that writes a journal, and with one that is cut short."""
    (certificate,) = alone.certificates
    assert journaled().certificates == alone.certificates
    (file,) = path.iterdir()
    whole = file.read_bytes()
    for share in (0.3, 0.6):
        file.write_bytes(whole[: int(share * len(whole))])
        (again,) = journaled(resume=True).certificates
        assert again.evidence.blocks == certificate.evidence.blocks
        assert again.evidence.rounds == certificate.evidence.rounds
        assert again.ignored == certificate.ignored


def rarer(dataset: int, size: int, rng: np.random.Generator) -> Any:
    return category(dataset, size, rng, RARER)


def test_tails_of_many_columns_leave_room_for_a_leak(monkeypatch: pytest.MonkeyPatch) -> None:
    """What there is room for at first does not show a leak that is as rare."""

    def found() -> AuditResult:
        return dpaudit.audit(rarer, 1, 0, RARER_CLAIM, samples=2 * SAMPLES, seed=1)

    monkeypatch.setattr(counted_learning, "MAX_KEPT_DRAWS", 768)
    result = found()
    (certificate,) = result.certificates
    assert result.verdict is Verdict.VIOLATION
    assert certificate.fixed.rule.kind == "rare"
    assert recheck(result) == []
    assert any(ROOM in one for one in certificate.ignored)
    monkeypatch.setattr(CountedLearning, "make_room", lambda *_: None)
    assert found().verdict is Verdict.NO_VIOLATION_FOUND


def test_where_room_is_made_nothing_is_found_without_a_leak(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(counted_learning, "MAX_KEPT_DRAWS", 512)
    result = audited(partial(narrow, p=0.0), seed=1)
    assert result.verdict is Verdict.NO_VIOLATION_FOUND
    assert any(ROOM in one for one in result.certificates[0].ignored)
    assert recheck(result) == []


def test_room_is_made_alike_by_workers_and_when_continued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counted_learning, "MAX_KEPT_DRAWS", 512)
    name = "tests.validity.test_counted_learning:narrow"
    alone = audited(name, seed=1)
    (certificate,) = alone.certificates
    assert any(ROOM in one for one in certificate.ignored)
    assert audited(name, seed=1, workers=2).certificates == alone.certificates
    assert_continued(alone, partial(audited, name, seed=1, journal=tmp_path), tmp_path)


@pytest.fixture
def enough_kept(monkeypatch: pytest.MonkeyPatch, few_kept: None) -> None:
    """Keep enough draws for sequences to be learned again from counts."""
    monkeypatch.setattr(schedule, "MAX_BUFFERED_DRAWS", 10_000)


@pytest.mark.usefixtures("enough_kept")
def test_sequences_are_counted_alike_by_workers_and_when_continued(tmp_path: Path) -> None:
    name = "tests.validity.test_counted_learning:flags"
    alone = audited(name, PureDP(0.2))
    (certificate,) = alone.certificates
    assert certificate.fixed.rule.attack == SEQUENCES
    assert recheck(alone) == []
    assert audited(name, PureDP(0.2), workers=2).certificates == alone.certificates
    assert_continued(alone, partial(audited, name, PureDP(0.2), journal=tmp_path), tmp_path)


@pytest.mark.usefixtures("enough_kept")
def test_recorded_sequences_are_learned_from_counts() -> None:
    result = recorded(flags, 1, tossed=False)
    assert result.certificates[0].fixed.rule.attack == SEQUENCES
    assert recheck(result) == []


def test_draws_that_come_again_among_those_that_are_counted_are_an_error() -> None:
    def repeating(dataset: int, size: int, rng: np.random.Generator) -> Any:
        """Begin some calls alike, of those whose draws are only counted to learn from."""
        made[0] += size
        found = dataset + rng.normal(size=size)
        if 8_000 < made[0] < 20_000:
            found[:40] = dataset + first[: min(40, size)]
        return found

    made, first = [0], np.random.default_rng(1).normal(size=40)
    result = audited(repeating, dpaudit.GaussianDP(1.5))
    assert result.verdict is Verdict.ERROR


def test_draws_that_change_while_they_are_counted_are_an_error() -> None:
    def drifting(dataset: int, size: int, rng: np.random.Generator) -> Any:
        """Answer for a while as no other call does, while draws are only counted."""
        made[0] += size
        return answer(dataset if 8_000 < made[0] < 14_000 else 0, size, rng) + rng.random(size)

    made = [0]
    result = audited(drifting, PureDP(3.0))
    assert result.verdict is Verdict.ERROR


def test_a_stream_that_never_stops_being_new_stays_within_bounds() -> None:
    def changing(dataset: int, size: int, rng: np.random.Generator) -> Any:
        """Return only new outputs from some draw on, and more of them than there is room for."""
        made[0] += size
        found = answer(dataset, size, rng)
        return found if made[0] < 6_000 else found + rng.random(size)

    made = [0]
    (certificate,) = audited(changing, PureDP(3.0)).certificates
    assert any("there was no room" in one for one in certificate.ignored)


def recorded(
    mechanism: Any, seed: int, *, tossed: bool, claim: Any = CLAIM, draws: int = SAMPLES
) -> AuditResult:
    rng = np.random.default_rng(seed)
    d1 = int(rng.binomial(draws, 0.5)) if tossed else draws // 2
    of_d1, of_d2 = (mechanism(one, size=size, rng=rng) for one, size in ((1, d1), (0, draws - d1)))
    return dpaudit.bound(of_d1, of_d2, claim, coin_flipped=tossed, seed=seed)


def recorded_rarer(mechanism: Any, seed: int) -> AuditResult:
    drawn = partial(mechanism, p=RARER)
    return recorded(drawn, seed, tossed=False, claim=RARER_CLAIM, draws=2 * SAMPLES)


@pytest.mark.parametrize(("mechanism", "tossed"), [(value, False), (tail, True)])
def test_recorded_outputs_are_counted_as_well(mechanism: Any, tossed: bool) -> None:
    result = recorded(mechanism, SEEDS[0], tossed=tossed)
    assert result.verdict is Verdict.VIOLATION
    (one,) = result.certificates
    kept, *counted, exact = [block.draws for block in one.evidence.blocks]
    assert kept == 5_000
    learned = kept + sum(counted)
    assert SAMPLES // 9 < learned <= SAMPLES // 2
    assert exact > 0.98 * (SAMPLES - learned)
    assert recheck(result) == []
    (again,) = from_json(to_json([result]))
    assert recheck(again) == []


def test_tails_of_recorded_columns_leave_room_for_a_leak(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counted_learning, "MAX_KEPT_DRAWS", 1_024)
    result = recorded_rarer(category, 2)
    assert result.verdict is Verdict.VIOLATION
    assert any(ROOM in one for one in result.certificates[0].ignored)
    monkeypatch.setattr(CountedLearning, "make_room", lambda *_: None)
    assert recorded_rarer(category, 2).verdict is Verdict.NO_VIOLATION_FOUND


def test_without_counting_a_recorded_leak_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [recorded_rarer(value, seed).verdict for seed in SEEDS]
    assert found == [Verdict.VIOLATION] * len(SEEDS)
    monkeypatch.setattr("dpaudit.auditing.recorded_outputs.Plan.freeze_at", 0)
    found = [recorded_rarer(value, seed).verdict for seed in SEEDS]
    assert found == [Verdict.NO_VIOLATION_FOUND] * len(SEEDS)


def test_recorded_draws_that_meet_the_claim_are_not_refuted() -> None:
    for seed in SEEDS:
        result = recorded(answer, seed, tossed=bool(seed % 2))
        assert result.verdict is Verdict.NO_VIOLATION_FOUND
        assert len(result.certificates[0].evidence.blocks) > 2


@pytest.mark.parametrize("more", [0, 1, 7])
def test_any_number_of_rows_is_counted_to_an_end(
    more: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An eighth of the rows may be odd, and rows of both inputs are learned from in pairs."""
    monkeypatch.setattr(schedule, "MAX_BUFFERED_DRAWS", 200)
    rng = np.random.default_rng(0)
    size = 2_000 + more
    result = dpaudit.bound(rng.normal(size=size), rng.normal(size=size), PureDP(2.0))
    learned = sum(block.draws for block in result.certificates[0].evidence.blocks[:-1])
    assert 2 * size // 8 <= learned <= size + 1
