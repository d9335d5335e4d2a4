"""Whole audits of draws that change from call to call."""

from __future__ import annotations

import os
from contextlib import closing
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit.auditing.engine import run_audit
from dpaudit.certificates.result import AuditResult, Verdict
from dpaudit.inputs.pairs import NeighbouringPair
from dpaudit.sampling.executors.new_processes import NewProcesses, compared_with
from dpaudit.targets.target import ImportedTarget
from mechanisms import laplace, shared_noise
from tests.specs import audit_of


def audited(mechanism: Any, **more: Any) -> AuditResult:
    shared_noise.forget()
    claim = dpaudit.PureDP(more.pop("epsilon", 1.0))
    return dpaudit.audit(mechanism, 0.0, 1.0, claim, **{"samples": 20_000, **more})


def warned(result: AuditResult) -> str:
    return " ".join(text for one in result.certificates for text in one.warnings)


@pytest.mark.parametrize(
    "mechanism",
    [
        shared_noise.broadcast,
        shared_noise.half_shared,
        shared_noise.alternating,
        shared_noise.drifting,
        shared_noise.stale,
        shared_noise.by_generator,
        shared_noise.counting,
    ],
)
def test_draws_that_hang_together_are_an_error(mechanism: Any) -> None:
    result = audited(mechanism)
    assert (result.verdict, result.error_code) == (Verdict.ERROR, "draws-differ")


@pytest.mark.parametrize("samples", [100, 50_000])
def test_noise_kept_for_each_dataset_is_named(samples: int) -> None:
    result = audited(shared_noise.remembered, samples=samples)
    if result.verdict is Verdict.VIOLATION:
        assert " (calls changed _kept)" in warned(result)


# Without NumPy, which each of the many new processes would import.
_ELSEWHERE = """
from random import expovariate, gauss
kept = {}

def laplace():
    return expovariate(1.0) - expovariate(1.0)

def remembered(x):
    return x + kept.setdefault(x, laplace()) + gauss(0.0, 0.3)

def with_half_the_noise(x):
    return x + laplace() / 2
"""


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    file = tmp_path / "elsewhere.py"
    file.write_text(_ELSEWHERE, "utf-8")
    return file


@pytest.mark.parametrize("where", [{"isolate": True}, {"executor": "processes"}])
def test_noise_kept_by_another_process_is_found(
    where: dict[str, Any], elsewhere: Path, new_processes: None
) -> None:
    """No variable shows it, but a new process draws other noise."""
    result = audited(f"{elsewhere}:remembered", samples=2_000, **where)
    assert result.verdict is not Verdict.VIOLATION
    if result.verdict is Verdict.ERROR:
        assert result.error_code == "new-process-differs"


@pytest.mark.parametrize("where", [{"isolate": True}, {"executor": "processes"}])
def test_a_broken_mechanism_in_other_processes_is_not_warned_about(
    where: dict[str, Any], elsewhere: Path, new_processes: None
) -> None:
    result = audited(f"{elsewhere}:with_half_the_noise", samples=5_000, **where)
    assert result.verdict is Verdict.VIOLATION
    assert warned(result) == ""
    (redrawn,) = (one.redrawn for one in result.certificates)
    assert redrawn is not None
    assert (redrawn.processes, redrawn.note) == (8, "")
    assert redrawn.draws >= 8 * 8


_KEEPS = """
import functools, os, time
calls, held = [], []

def counted(rows, rng):
    calls.append(1)
    return len(rows) + rng.laplace(scale=0.3)

@functools.lru_cache
def noisy(many):
    # By a seed, since noise that each process draws for itself may tell the same by chance.
    import numpy
    is_first = os.environ.get("FIRST") == str(os.getpid())
    return many + numpy.random.default_rng([is_first, many]).laplace()

def stored(rows):
    return noisy(len(rows))

def for_one_process_alone(rows, rng):
    if not held:
        path = os.path.join(os.path.dirname(__file__), "lock")
        held.append(os.open(path, os.O_CREAT | os.O_EXCL))
    return len(rows) + rng.laplace(scale=0.3)

def in_no_hurry(rows, rng):
    if not held:
        time.sleep(0.0 if os.environ.get("FIRST") == str(os.getpid()) else 60.0)
        held.append(1)
    return len(rows) + rng.laplace(scale=0.3)
"""


def in_a_file(folder: Path, name: str, **options: Any) -> AuditResult:
    """As the command line audits it."""
    (folder / "m.py").write_text(_KEEPS, "utf-8")
    spec = audit_of(
        name="audit",
        target=ImportedTarget(path=f"{folder / 'm.py'}:{name}"),
        pairs=(NeighbouringPair([1, 2], [1], None, "[1, 2], [1]"),),
        claim=dpaudit.PureDP(1.0),
        **{"samples": 20_000, "workers": "auto", "command": "dpaudit run", **options},
    )
    return run_audit(spec)


def test_a_result_that_is_stored_is_no_violation_where_others_can_be_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, new_processes: None
) -> None:
    """By itself, nothing tells it from a mechanism without noise."""
    monkeypatch.setenv("FIRST", str(os.getpid()))
    result = in_a_file(tmp_path, "stored")
    assert (result.verdict, result.error_code) == (Verdict.ERROR, "new-process-differs")


def test_a_leak_beside_state_that_tells_nothing_stays_one(
    tmp_path: Path, new_processes: None
) -> None:
    journal = tmp_path / "j"
    result = in_a_file(tmp_path, "counted", journal=journal)
    assert result.verdict is Verdict.VIOLATION
    assert "calls changed calls" in warned(result)
    assert "8 new processes" in warned(result)
    (record,) = journal.iterdir()
    whole = record.read_bytes()
    asked = whole.rindex(b"\n", 0, whole.index(b'"name":"compared 0"')) + 1
    # At the end, and where it is cut before other processes are asked.
    for end in (len(whole), asked):
        record.write_bytes(whole[:end])
        again = in_a_file(tmp_path, "counted", journal=journal, resume=True)
        assert again.certificates == result.certificates
        assert again.certificates[0].redrawn == result.certificates[0].redrawn


@pytest.mark.parametrize(
    ("name", "patience", "why"),
    [("for_one_process_alone", 60.0, "FileExistsError"), ("in_no_hurry", 2.0, "within 2 s")],
)
def test_where_no_other_process_draws_it_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, new_processes: None, name: str,
    patience: float, why: str,
) -> None:  # fmt: skip
    """What new processes lack is no fault of the mechanism, but its state is a reason for doubt."""
    monkeypatch.setenv("FIRST", str(os.getpid()))
    monkeypatch.setattr("dpaudit.sampling.executors.new_processes.DRAWING_SECONDS", 1.0)
    monkeypatch.setattr("dpaudit.sampling.executors.new_processes.WAITING_SECONDS", patience)
    result = in_a_file(tmp_path, name)
    assert result.verdict is Verdict.VIOLATION
    (certificate,) = result.certificates
    assert certificate.redrawn is not None
    assert certificate.redrawn.processes == 0
    assert why in certificate.redrawn.note
    assert any(certificate.redrawn.note in one for one in certificate.notes)
    assert "keeps state " in warned(result)


def test_a_callable_is_compared_only_where_all_audits_are(new_processes: None) -> None:
    """A script may run again in every process that imports its functions."""
    plain = audited(laplace.wrong_density, samples=2_000)
    assert plain.certificates[0].redrawn is None

    def local(x: float, size: int, rng: np.random.Generator) -> Any:
        return x + rng.laplace(scale=0.3, size=size)

    with closing(NewProcesses()) as processes, compared_with(processes):
        again = audited(laplace.wrong_density, samples=2_000)
        closure = audited(local, samples=2_000)
    assert again.certificates[0].redrawn is not None
    assert again.certificates[0].redrawn.processes == 8
    assert again.certificates == plain.certificates
    assert closure.verdict is Verdict.VIOLATION
    assert closure.certificates[0].redrawn is not None
    assert "cannot be sent " in closure.certificates[0].redrawn.note
    assert warned(closure) == ""


@pytest.mark.parametrize(("samples", "seed"), [(1_000, 14), (1_000, 29), (1_000, 65), (2_000, 89)])
def test_a_weak_shift_of_every_call_is_no_silent_violation(samples: int, seed: int) -> None:
    """The rule that refutes by chance guesses on few levels, which show little of the shift."""

    def shifted(x: float, size: int, rng: np.random.Generator) -> Any:
        return rng.laplace(size=size) + 0.35 * rng.normal()

    result = audited(shifted, epsilon=0.0, samples=samples, seed=seed)
    assert (result.verdict, result.error_code) == (Verdict.ERROR, "draws-differ")


def test_noise_kept_for_each_dataset_does_look_like_a_leak() -> None:
    """Else the test above would show nothing."""
    assert audited(shared_noise.remembered).verdict is Verdict.VIOLATION


def test_a_broken_mechanism_without_state_is_not_warned_about() -> None:
    for seed in range(8):
        result = audited(laplace.wrong_density, seed=seed)
        assert result.verdict is Verdict.VIOLATION
        assert warned(result) == ""


def test_a_broken_mechanism_is_not_warned_about_after_few_draws() -> None:
    for seed, samples in product(range(8), (100, 150, 300)):
        result = audited(laplace.wrong_density, samples=samples, seed=seed)
        assert result.error is None
        assert warned(result) == ""


@pytest.mark.parametrize("samples", [100, 300])
@pytest.mark.parametrize(
    "mechanism",
    [shared_noise.broadcast, shared_noise.drifting, shared_noise.stale, shared_noise.by_generator],
)
def test_few_draws_that_hang_together_are_no_silent_violation(mechanism: Any, samples: int) -> None:
    result = audited(mechanism, samples=samples)
    assert result.verdict is not Verdict.VIOLATION or warned(result)


def test_variables_that_have_no_digest_do_not_end_the_audit() -> None:
    class Unruly:
        def __len__(self) -> int:
            raise RuntimeError("no length")

    big, long, unruly = 1 << 20_000, range(10**30), Unruly()

    def mechanism(x: float, rng: np.random.Generator) -> float:
        return float(x + rng.laplace()) if x in long or big or unruly else 0.0

    assert dpaudit.audit(mechanism, 0, 1, dpaudit.PureDP(1.5), samples=1_000).error is None


def test_none_nearly_always_is_no_error_when_something_else_comes_up() -> None:
    def thresholded(x: float, rng: np.random.Generator) -> float | None:
        return x if rng.random() < 1e-3 else None

    claim = dpaudit.ApproximateDP(1.0, 0.01)
    result = dpaudit.audit(thresholded, 0.0, 1.0, claim, samples=20_000)
    assert result.verdict is Verdict.NO_VIOLATION_FOUND


def test_times_are_not_compared(tmp_path: Any) -> None:
    """Draws that time out follow the load of the machine."""
    (tmp_path / "m.py").write_text(
        "calls = 0\n"
        "def slow(x, rng):\n"
        "    global calls\n"
        "    calls += 1\n"
        "    share = 0.7 if calls // 500 % 2 else 0.3\n"
        "    return 'slow' if rng.random() < share else 'quick'\n"
    )
    name, claim = f"{tmp_path}/m.py:slow", dpaudit.PureDP(1.0)
    plain = dpaudit.audit(name, 0, 1, claim, samples=3_000)
    assert plain.error_code == "draws-differ"
    timed = dpaudit.audit(name, 0, 1, claim, samples=3_000, isolate=True, timeout=30)
    assert timed.verdict is Verdict.NO_VIOLATION_FOUND


def test_new_processes_draw_where_only_workers_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, new_processes: None
) -> None:
    """The auditing process need not be able to: it may lack what the workers have."""
    monkeypatch.setenv("FIRST", str(os.getpid()))
    (tmp_path / "m.py").write_text(
        "import os\n"
        "def elsewhere(x, rng):\n"
        "    if os.environ['FIRST'] == str(os.getpid()):\n"
        "        raise RuntimeError('not here')\n"
        "    return x + rng.laplace()\n"
    )
    name = f"{tmp_path}/m.py:elsewhere"
    result = audited(name, epsilon=0.5, samples=5_000, workers=2)
    assert result.verdict is Verdict.VIOLATION
    assert warned(result) == ""
    assert result.certificates[0].redrawn is not None
    assert result.certificates[0].redrawn.processes == 8


def in_the_environment(dataset: float, size: int, rng: np.random.Generator) -> Any:
    """Noise that the first call leaves in an environment variable."""
    noise = float(os.environ.setdefault("KEPT_NOISE", str(rng.laplace())))
    return dataset + noise + rng.normal(0, 0.3, size)


class Importing:
    """An attack whose library sets an environment variable when it is imported, as some do."""

    def fit(self, selection: Any) -> Any:
        os.environ["SET_BY_A_LIBRARY"] = str(selection.size)
        return lambda outcomes: outcomes.columns[0].numbers


def test_the_environment_is_state_of_the_mechanism_but_not_of_an_attack(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("KEPT_NOISE", raising=False)
    result = audited(in_the_environment, epsilon=0.1)
    os.environ.pop("KEPT_NOISE", None)
    assert result.verdict is Verdict.VIOLATION
    assert "(calls changed os.environ)" in warned(result)
    result = audited(laplace.wrong_density, attacks=[Importing], stop="never")
    os.environ.pop("SET_BY_A_LIBRARY")
    assert result.verdict is Verdict.VIOLATION
    assert warned(result) == ""
