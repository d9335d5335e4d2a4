"""An audit that is interrupted anywhere, and continued, has the result of an undisturbed one."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit import (
    AuditResult,
    GaussianDP,
    ProbabilisticDP,
    PureDP,
    RenyiDP,
    Verdict,
)
from dpaudit.auditing.engine import run_audit
from dpaudit.auditing.journal import journal_path
from dpaudit.auditing.options import DrawnSeed
from dpaudit.auditing.spec import AuditSpec
from dpaudit.certificates.result import Progress
from dpaudit.errors import JournalError
from dpaudit.inputs.pairs import NeighbouringPair
from dpaudit.targets.target import CallableTarget, repeated
from mechanisms.pdp import counterexample
from tests.raising import code
from tests.result_files import to_json
from tests.sent import batch, single
from tests.specs import audit_of, replace

SAMPLES = 2_000
CARRIED = np.random.default_rng(5)


class Cut(BaseException):
    """An end of the run, whatever its cause."""


class Counting:
    """A mechanism whose noise follows from the seed, and whose state does not."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, x: float) -> float:
        self.calls += 1
        return x + CARRIED.laplace() + random.gauss(0, 1e-3) + np.random.normal(0, 1e-3)


def failing(x: int, rng: np.random.Generator) -> int:
    if rng.random() < 0.1 + 0.1 * x:
        raise ValueError(f"no \ud800 {x}")
    return x if rng.random() < 0.6 else 1 - x


def atoms(x: int, size: int, rng: np.random.Generator) -> Any:
    return counterexample(x, epsilon=1.0, delta=0.1, size=size, rng=rng)


def spec_of(function: Callable[..., Any], claim: Any = None, **more: Any) -> AuditSpec:
    pair = NeighbouringPair(0, 1, None, "0, 1")
    return audit_of(
        **{
            "name": "audit",
            "target": CallableTarget(function=function),
            "pairs": (pair,),
            "claim": claim or PureDP(1.0),
            "samples": SAMPLES,
            **more,
        },
    )


SPECS = {
    "batch": spec_of(batch),
    "refuted while learning": spec_of(batch, PureDP(0.2), samples=6_000),
    "ended by bets": spec_of(single, PureDP(0.1), stop="bets"),
    "bets on a divergence": spec_of(single, RenyiDP(2.0, 0.05), stop="bets"),
    "a curve": spec_of(batch, GaussianDP(1.0)),
    "probabilistic": spec_of(atoms, ProbabilisticDP(1.0, 0.02)),
    "failures and a declared range": spec_of(failing, PureDP(2.0), range=(0, 1, "ValueError")),
    "generators everywhere": spec_of(Counting(), PureDP(1.5), samples=1_000),
    "several pairs": spec_of(
        batch,
        pairs=tuple(NeighbouringPair(0, x, None, f"0, {x}") for x in (1, 0.5)),
        samples=1_000,
    ),
    "several runs": spec_of(batch, target=repeated(CallableTarget(function=batch), 3), samples=500),
}


def whole(spec: AuditSpec) -> str:
    return as_text(run_audit(spec))


def as_text(result: AuditResult) -> str:
    # All but the number of runs, and what follows from it, is the same.
    return to_json([replace(result, seconds=0.0, resumed=0, warnings=(), workers=None)])


def cut_after(spec: AuditSpec, blocks: int, folder: Path) -> AuditResult:
    """Run an audit; raise Cut after this number of blocks."""
    left = blocks

    def count(_: Progress) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise Cut

    return run_audit(replace(spec, journal=folder, resume=True), count)


def whole_and_blocks(spec: AuditSpec) -> tuple[str, int]:
    result = run_audit(spec)
    return as_text(result), sum(len(one.evidence.blocks) for one in result.certificates)


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS.keys())
def test_an_interrupted_run_has_the_result_of_an_undisturbed_one(
    spec: AuditSpec, tmp_path: Path
) -> None:
    expected, blocks = whole_and_blocks(spec)
    # At other blocks, and twice: below.
    with pytest.raises(Cut):
        cut_after(spec, blocks // 2, tmp_path)
    assert as_text(cut_after(spec, blocks, tmp_path)) == expected


def test_it_may_be_interrupted_after_any_block(tmp_path: Path) -> None:
    spec = spec_of(batch, PureDP(0.5), samples=100)
    expected, blocks = whole_and_blocks(spec)
    for place in range(0, blocks, 3):
        folder = tmp_path / str(place)
        with pytest.raises(Cut):
            cut_after(spec, place, folder)
        assert as_text(cut_after(spec, blocks, folder)) == expected


def test_the_journal_may_end_after_every_byte(tmp_path: Path) -> None:
    spec = replace(spec_of(batch, samples=100), journal=tmp_path)
    expected = as_text(run_audit(spec))
    path = journal_path(tmp_path, spec.name)
    content = path.read_bytes()
    for size in range(0, len(content), len(content) // 8):
        path.write_bytes(content[:size])
        assert as_text(run_audit(replace(spec, resume=True))) == expected


def test_a_journal_changes_no_result_and_a_finished_one_makes_no_draws(tmp_path: Path) -> None:
    drawn = 0

    def counted(x: float, size: int, rng: np.random.Generator) -> Any:
        nonlocal drawn
        drawn += size
        return batch(x, size, rng)

    spec = spec_of(counted)
    expected = whole(spec)
    assert as_text(run_audit(replace(spec, journal=tmp_path))) == expected
    drawn = 0
    again = run_audit(replace(spec, journal=tmp_path, resume=True))
    assert as_text(again) == expected
    assert drawn == 0


def test_a_budget_planned_by_the_clock_stays(tmp_path: Path) -> None:
    spec = spec_of(batch, PureDP(2.0), time=0.2)
    budgets = []

    def cut(moment: Progress) -> None:
        budgets.append(moment.budget)
        # Learning has ended, so that the budget is final.
        if moment.draws > 0.6 * moment.budget > 0:
            raise Cut

    with pytest.raises(Cut):
        run_audit(replace(spec, journal=tmp_path), cut)
    result = run_audit(replace(spec, journal=tmp_path, resume=True))
    (certificate,) = result.certificates
    assert certificate.draws == certificate.evidence.budget == budgets[-1]
    again = run_audit(replace(spec, journal=tmp_path, resume=True))
    assert as_text(again) == as_text(result)
    assert 0 < again.seconds <= result.seconds


def test_every_draw_of_an_unseeded_mechanism_is_used_once(tmp_path: Path) -> None:
    source = random.SystemRandom()

    def unseeded(x: int) -> int:
        return x if source.random() < 0.7 else 1 - x

    spec = spec_of(unseeded)
    with pytest.raises(Cut):
        cut_after(spec, 12, tmp_path)
    path = journal_path(tmp_path, "audit")
    before = path.read_bytes()
    first, second = (cut_after(spec, 1_000, tmp_path) for _ in range(2))
    assert path.read_bytes().startswith(before)
    assert as_text(first) == as_text(second)
    assert first.certificates[0].draws == SAMPLES


def test_a_run_continues_after_an_error_of_the_mechanism(tmp_path: Path) -> None:
    is_broken = True

    def broken(x: float, size: int, rng: np.random.Generator) -> Any:
        if is_broken and size > 60:
            raise MemoryError("no room")
        return batch(x, size, rng)

    spec = replace(spec_of(broken), journal=tmp_path, resume=True)
    result = run_audit(spec)
    assert result.verdict is Verdict.ERROR
    is_broken = False
    assert as_text(run_audit(spec)) == whole(replace(spec, journal=None, resume=False))


def parity(x: int, size: int, rng: np.random.Generator) -> Any:
    return 2 * rng.integers(500, size=size) + (x ^ (rng.random(size) < 0.3))


class Fickle:
    """An attack on parity that never learns the same twice."""

    def fit(self, selection: Any) -> Callable[[Any], Any]:
        cut = random.SystemRandom().uniform(100, 900)

        def score(outcomes: Any) -> Any:
            numbers = outcomes.column("output").numbers
            return 2 * (numbers % 2) + (numbers > cut)

        return score


def test_a_fit_that_differs_from_the_recorded_one_is_refused(tmp_path: Path) -> None:
    # Of a claim that is nearly refuted: then the bettors follow the attack for certain.
    spec = spec_of(parity, PureDP(0.8), attacks=(Fickle(),), samples=6_000)
    with pytest.raises(Cut):
        cut_after(spec, 30, tmp_path)
    with pytest.raises(JournalError) as error:
        cut_after(spec, 1_000, tmp_path)
    assert error.value.code == "journal-disagrees"


def test_other_versions_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = replace(spec_of(batch), journal=tmp_path, resume=True)
    run_audit(spec)
    monkeypatch.setattr(
        "dpaudit.auditing.journal._versions", lambda: {"numpy": "9.9", "python": "4.0"}
    )
    (warning,) = run_audit(spec).warnings
    assert f"numpy {np.__version__}, then 9.9" in warning
    monkeypatch.setattr("dpaudit.auditing.pair_audit.wants_refit", lambda *_, **__: False)
    with pytest.raises(JournalError, match=r"numpy .*, then 9\.9") as error:
        run_audit(spec)
    assert error.value.code == "journal-disagrees"


OTHERS = {
    "samples was 2,000, is 7,000 .*never changed": {"samples": 7_000},
    "claim was 1-DP, is 2-DP": {"claim": PureDP(2.0)},
    "seed was 0, is 1": {"seed": 1},
    "the content of pairs differs": {"pairs": (NeighbouringPair(0, 1.5, None, "0, 1"),)},
    "target was batch, is single": {"target": CallableTarget(function=single)},
}


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> AuditSpec:
    """Return an audit that has begun, and its journal."""
    folder = tmp_path_factory.mktemp("begun")
    with pytest.raises(Cut):
        cut_after(spec_of(batch), 5, folder)
    return replace(spec_of(batch), journal=folder)


@pytest.mark.parametrize(("words", "more"), OTHERS.items(), ids=OTHERS)
def test_another_audit_is_refused_with_the_difference(
    words: str, more: dict[str, Any], begun: AuditSpec
) -> None:
    spec = begun
    with pytest.raises(JournalError, match=f": {words}") as error:
        run_audit(replace(spec, resume=True, **more))
    assert error.value.code == "journal-of-another-audit"


def test_the_code_of_a_file_must_not_change(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "noise.py"
    file.write_text("def draw(x, rng):\n    return x + rng.laplace()\n")
    settings: dict[str, Any] = {"samples": 200, "journal": tmp_path, "name": "noise"}
    dpaudit.audit("noise.py:draw", 0, 1, PureDP(1.0), **settings)
    file.write_text("def draw(x, rng):\n    return x + rng.laplace(scale=2)\n")
    with pytest.raises(JournalError, match=r"the code of noise\.py has changed"):
        dpaudit.audit("noise.py:draw", 0, 1, PureDP(1.0), resume=True, **settings)


def test_an_existing_journal_is_not_overwritten(tmp_path: Path) -> None:
    spec = replace(spec_of(batch), journal=tmp_path)
    run_audit(spec)
    with pytest.raises(JournalError) as error:
        run_audit(spec)
    assert error.value.code == "journal-exists"


def test_a_journal_without_its_request_is_refused(tmp_path: Path) -> None:
    spec = replace(spec_of(batch, samples=200), journal=tmp_path, resume=True)
    run_audit(spec)
    path = journal_path(tmp_path, spec.name)
    _, _, records = path.read_bytes().partition(b"\n")
    path.write_bytes(records)
    assert code(run_audit, spec) == "journal-damaged"
    assert path.read_bytes() == records


def test_a_random_seed_is_replaced_by_that_of_the_journal(tmp_path: Path) -> None:
    spec = replace(spec_of(batch), journal=tmp_path, resume=True)
    first = run_audit(replace(spec, seed=DrawnSeed(7)))
    second = run_audit(replace(spec, seed=DrawnSeed(8)))
    assert first.seed == second.seed == 7
    assert as_text(first) == as_text(second)
    with pytest.raises(JournalError, match="seed was 7, is 9"):
        run_audit(replace(spec, seed=9))


def test_audits_of_different_names_have_different_files() -> None:
    names = ["laplace", "Laplace", "a/b", "a b", "a-b", "../up", "é", "", "x" * 300, "x" * 301]
    paths = [journal_path("folder", name) for name in names]
    assert len(set(map(str, paths))) == len(names)
    assert all(path.parent == Path("folder") for path in paths)
    assert all(len(path.name) < 110 for path in paths)
    assert paths[0] == Path("folder/laplace.journal")
    assert not any(path.name.startswith(".") for path in paths)


def test_a_block_that_ends_several_processes_is_an_error(tmp_path: Path) -> None:
    """Outcomes that end the process must not vanish from the counts."""
    spec = replace(spec_of(ending, samples=500), journal=tmp_path, resume=True)
    for _ in range(3):
        assert ended_by_itself(spec)
    result = run_audit(spec)
    assert result.verdict is Verdict.ERROR
    assert result.error_code == "mechanism-ends-process"
    assert "isolate: true" in str(result.error)


def ending(x: float, rng: np.random.Generator) -> float:
    if x == 0 and rng.random() < 0.05:
        os._exit(7)
    return float(x + rng.laplace())


def ended_by_itself(spec: AuditSpec) -> bool:
    """Run an audit in a new process; return whether the mechanism ended it."""
    process = os.fork()
    if process == 0:
        try:
            run_audit(spec)
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 7
