"""The file of nights: what is added, what is read, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit.auditing.engine import run_audit
from dpaudit.auditing.spec import AuditSpec
from dpaudit.certificates.result import (
    AuditResult,
    Failed,
    FreshCounts,
    Nights,
    Progress,
    Verdict,
)
from dpaudit.errors import MechanismError, StopAudit
from dpaudit.inputs.pairs import NeighbouringPair
from dpaudit.nights import record
from dpaudit.nights.detector import log_evidence, log_factors
from dpaudit.targets.target import AnyTarget, CallableTarget, ImportedTarget, IsolatedTarget
from tests.raising import refusal
from tests.specs import audit_of, replace

POINT = dpaudit.PureDP(1.0).point()
# A night of a leak, and one of a mechanism that is far from its claim.
LEAK, PRIVATE = FreshCounts(4_500, 1_550, 500, True, POINT), FreshCounts(600, 500, 0, True, POINT)
LEVEL = 1e-4


def laplace(x: float, size: int, rng: np.random.Generator) -> Any:
    return x + rng.laplace(size=size)


def spec_of(**more: Any) -> AuditSpec:
    options = {
        "name": "count",
        "target": CallableTarget(function=laplace),
        "pairs": (NeighbouringPair(0.0, 1.0, None, "0, 1"),),
        "claim": dpaudit.PureDP(1.0),
        "samples": 400,
        "no_trace": True,
        **more,
    }
    return audit_of(**options)


@pytest.fixture(scope="module")
def result() -> AuditResult:
    return run_audit(spec_of(certification_seed=1, stop="never"))


Add = Callable[..., Nights | None]


@pytest.fixture
def add(result: AuditResult, tmp_path: Path) -> Add:
    """Add nights with these counts to a file, and return the state after the last."""

    def added(*nights: FreshCounts, file: str = "e.json", **more: Any) -> Nights | None:
        ending, level = more.pop("ending", result.ending), more.pop("level", LEVEL)
        last = None
        for counts in nights:
            night = replace(result, fresh=(counts,), ending=ending)
            spec = record.with_fresh_seed(spec_of(**more))
            last = record.add(tmp_path / file, level, spec, night)
        return None if last is None else last.nights

    return added


def evidence_of(nights: Nights | None) -> float:
    assert nights is not None
    return nights.evidence


def test_the_evidence_follows_from_all_lines(add: Add, tmp_path: Path) -> None:
    counts = (LEAK, PRIVATE, PRIVATE)
    nights = add(*counts)
    expected = log_evidence(np.array([[log_factors(night, POINT)] for night in counts]))
    assert nights is not None
    assert (nights.count, nights.since_alarm, nights.first) == (3, 3, None)
    assert nights.evidence == pytest.approx(math.exp(expected))
    lines = record.read(tmp_path / "e.json")
    assert [night.pairs[0] for night in lines] == list(counts)
    assert not any(night.failed for night in lines)
    assert len({night.seed for night in lines}) == 3


def test_an_alarm_is_a_violation_that_names_the_first_night(
    add: Add, result: AuditResult, tmp_path: Path
) -> None:
    add(*[PRIVATE] * 3, LEAK)
    for _ in range(20):
        spec = record.with_fresh_seed(spec_of())
        night = record.add(tmp_path / "e.json", LEVEL, spec, replace(result, fresh=(LEAK,)))
        if night.verdict is Verdict.VIOLATION:
            break
    lines = record.read(tmp_path / "e.json")
    assert not night.is_refuted_tonight
    assert night.nights is not None
    assert night.nights.first is not None
    assert night.nights.first.time == lines[3].time
    assert night.nights.first.versions == lines[3].versions
    assert night.nights.evidence >= 1 / LEVEL
    assert [night.alarm for night in lines] == [False] * (len(lines) - 1) + [True]
    assert add(PRIVATE) == Nights(len(lines) + 1, 1, evidence_of(add(PRIVATE, file="new")), LEVEL)


def test_an_alarm_is_raised_where_the_evidence_reaches_one_over_the_level(add: Add) -> None:
    evidence = evidence_of(add(LEAK, LEAK))
    for factor, is_alarm in ((1.001, True), (0.999, False)):
        nights = add(LEAK, LEAK, file=f"{factor}.json", level=factor / evidence)
        assert nights is not None
        assert (nights.first is not None) is is_alarm


@pytest.mark.parametrize(
    "changed",
    [
        {"claim": dpaudit.PureDP(1.5)},
        {"claim": dpaudit.ApproximateDP(1.0, 1e-6)},
        {"pairs": (NeighbouringPair(0.0, 2.0, None, "0, 2"),)},
        {"name": "other"},
        {"level": 0.9},
        {"target": ImportedTarget(path="math:cos")},
    ],
)
def test_a_changed_audit_begins_a_new_record(add: Add, changed: dict[str, Any]) -> None:
    add(LEAK, LEAK)
    nights = add(LEAK, **changed)
    assert nights is not None
    assert nights.count == 1
    kept = add(LEAK)
    assert kept is not None
    assert kept.count == 3


def test_the_mechanism_is_named_relative_to_the_record(add: Add, tmp_path: Path) -> None:
    targets: list[AnyTarget] = [
        ImportedTarget(path=path)
        for path in ("a.py:f", f"{Path.cwd()}/a.py:f", "b.py:f", "a.py:g", "a.f")
    ]
    nights = [add(PRIVATE, target=target) for target in targets]
    isolated = add(PRIVATE, target=IsolatedTarget(target=ImportedTarget(path="a.py:f")))
    assert [night and night.count for night in (*nights, isolated)] == [1, 2, 1, 1, 1, 3]


def test_a_night_after_one_with_a_time_in_the_future_is_the_last(
    add: Add, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class FastClock(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> FastClock:
            return cls(2999, 1, 1, tzinfo=tz)

    with monkeypatch.context() as patch:
        patch.setattr(record, "datetime", FastClock)
        add(*[LEAK] * 20, level=0.1)
    lines = record.read(tmp_path / "e.json")
    last_alarm = max(index for index, line in enumerate(lines) if line.alarm)
    nights = add(PRIVATE, level=0.1)
    assert nights is not None
    assert nights.since_alarm == len(lines) - last_alarm
    assert record.read(tmp_path / "e.json")[-1].time == lines[-1].time


def test_a_damaged_installation_has_no_version(
    add: Add, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    damaged = tmp_path / "numpy-9.dist-info"
    damaged.mkdir()
    (damaged / "top_level.txt").write_text("numpy\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(record, "_packages", record._packages.__wrapped__)
    add(PRIVATE)
    (night,) = record.read(tmp_path / "e.json")
    assert night.versions["numpy"] == np.__version__
    assert None not in night.versions.values()


def test_two_branches_merge_by_the_union_of_their_lines(add: Add, tmp_path: Path) -> None:
    add(LEAK, PRIVATE, LEAK, PRIVATE)
    file = tmp_path / "e.json"
    first, second, third, fourth = file.read_bytes().splitlines(keepends=True)
    (tmp_path / "merged.json").write_bytes(first + third + fourth + second)
    nights = [add(LEAK, file=name) for name in ("e.json", "merged.json")]
    assert nights[0] == nights[1]


def test_a_night_that_ended_as_an_error_has_a_factor_of_at_most_one(add: Add) -> None:
    add(LEAK)
    nights = add(LEAK, ending=Failed("draws depend on each other", code="draws-dependent"))
    factors = [log_factors(LEAK, POINT), np.minimum(log_factors(LEAK, POINT), 0.0)]
    assert evidence_of(nights) == pytest.approx(math.exp(log_evidence(np.array(factors)[:, None])))


def test_a_night_without_fresh_draws_adds_no_line(add: Add, result: AuditResult) -> None:
    spec = record.with_fresh_seed(spec_of())
    unbegun = replace(result, fresh=(), ending=Failed("no"))
    assert record.add(Path("absent"), LEVEL, spec, unbegun) is unbegun
    assert not Path("absent").exists()


def test_a_curve_keeps_the_point_of_its_first_night(add: Add, result: AuditResult) -> None:
    curve = dpaudit.GaussianDP(1.0)
    points = curve.points()[:2]
    undrawn, first, later = (
        FreshCounts(n, n // 2, 0, True, point)
        for n, point in ((0, points[1]), (600, points[0]), (500, points[1]))
    )
    nights = add(undrawn, first, later, claim=curve)
    factors = [[log_factors(night, points[0])] for night in (undrawn, first, later)]
    assert evidence_of(nights) == pytest.approx(math.exp(log_evidence(np.array(factors))))


@pytest.mark.parametrize(
    ("change", "code", "line"),
    [
        (lambda lines: [lines[0], lines[1].replace(b'"seed"', b'"sede"')], "evidence-damaged", 2),
        (lambda lines: [lines[0], b"<<<<<<< HEAD\n", lines[1]], "evidence-damaged", 2),
        (lambda lines: [lines[0], lines[1][:40]], "evidence-damaged", 2),
        (lambda lines: [*lines, lines[0]], "evidence-twice", 3),
    ],
)
def test_a_file_edited_by_hand_is_refused_with_its_line(
    add: Add, tmp_path: Path, change: Callable[[list[bytes]], list[bytes]], code: str, line: int
) -> None:
    add(PRIVATE, LEAK)
    file = tmp_path / "e.json"
    file.write_bytes(b"".join(change(file.read_bytes().splitlines(keepends=True))))
    error = refusal(record.read, file)
    assert error.code == code
    assert str(error).startswith(f"{file}:{line}: ")


def test_a_file_without_its_last_line_break_is_continued(add: Add, tmp_path: Path) -> None:
    add(LEAK)
    file = tmp_path / "e.json"
    file.write_bytes(file.read_bytes().rstrip())
    add(LEAK)
    assert len(record.read(file)) == 2


@pytest.mark.parametrize(
    "options",
    [
        {"certification_seed": 7},
        {"stop": "bets"},
        {"stop": "confirmed"},
        {"journal": Path("journal")},
    ],
)
def test_a_night_has_a_fresh_seed_all_its_draws_and_no_journal(options: dict[str, Any]) -> None:
    assert refusal(record.with_fresh_seed, spec_of(**options)).code == "options-conflict"


def test_only_the_draws_that_certify_have_the_seed_of_the_night() -> None:
    nights = [run_audit(spec_of(certification_seed=seed, stop="never")) for seed in (1, 1, 2)]
    blocks = [night.certificates[0].evidence.blocks for night in nights]
    learned = [
        [block.tally.counts.tolist() for block in night if block.stage == "learning"]
        for night in blocks
    ]
    assert learned[0] == learned[2]
    assert nights[0].fresh == nights[1].fresh != nights[2].fresh
    for night in nights:
        (main,) = [test for test in night.certificates[0].rules if test.rule.kind == "main"]
        none = main.draws - main.correct - main.wrong
        counts = FreshCounts(main.correct, main.wrong, none, main.two_guesses, POINT)
        assert night.fresh == (counts,)


def at_draws(number: int, error: BaseException) -> Callable[[Progress], None]:
    """Raise an error when a number of draws was made."""

    def check(progress: Progress) -> None:
        if progress.draws >= number:
            raise error

    return check


@pytest.mark.parametrize("number", [500, 3_000])
def test_an_interrupted_night_counts_what_was_drawn(number: int, tmp_path: Path) -> None:
    spec = record.with_fresh_seed(spec_of(samples=8_000))
    stopped = run_audit(spec, at_draws(number, StopAudit()), lambda: None)
    certificate = stopped.certificates[0]
    learned = certificate.evidence.learning_draws
    assert stopped.fresh[0].draws == certificate.draws - learned
    assert (stopped.fresh[0].draws > 0) is (number > 1_000)
    night = record.add(tmp_path / "e.json", LEVEL, spec, stopped)
    assert night.nights is not None
    assert not record.read(tmp_path / "e.json")[0].failed


def test_a_night_that_fails_counts_what_was_drawn_of_each_pair(tmp_path: Path) -> None:
    pairs = (NeighbouringPair(0.0, 1.0, None, "0, 1"), NeighbouringPair(0.0, 2.0, None, "0, 2"))
    spec = record.with_fresh_seed(spec_of(samples=8_000, pairs=pairs))
    failed = run_audit(spec, at_draws(3_000, MechanismError("gone")), lambda: None)
    assert failed.verdict is Verdict.ERROR
    assert len(failed.fresh) == 1
    assert failed.fresh[0].draws > 0
    record.add(tmp_path / "e.json", LEVEL, spec, failed)
    (night,) = record.read(tmp_path / "e.json")
    assert night.failed
    assert [counts.draws for counts in night.pairs] == [failed.fresh[0].draws, 0]
