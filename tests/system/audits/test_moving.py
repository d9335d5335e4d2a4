"""An audit that moves from this process to workers has the same result."""

from __future__ import annotations

import functools
import multiprocessing
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from functools import partial
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dpaudit import AuditResult, PureDP, Verdict
from dpaudit.auditing import pace, schedule
from dpaudit.auditing.engine import run_audit
from dpaudit.auditing.options import DEFAULTS
from dpaudit.auditing.spec import AuditSpec
from dpaudit.certificates.result import Progress
from dpaudit.inputs.pairs import NeighbouringPair
from dpaudit.processes import cores
from dpaudit.sampling.executors import in_process, pools, worker_processes
from dpaudit.sampling.executors.in_process import InProcess
from dpaudit.targets.target import CallableTarget, ImportedTarget, IsolatedTarget
from tests.result_files import to_json
from tests.sent import (
    Carries,
    batch,
    ends_elsewhere,
    keeps_count,
    keeps_noise,
    other_elsewhere,
    single,
    unseeded,
    writes,
)
from tests.specs import audit_of, replace

# Draws with `counts_on`, so that some are only counted; and draws of a short audit.
SAMPLES, FEW = 40_000, 1_000


UNGUARDED = """
from dpaudit.processes import cores
from dpaudit.sampling.executors import in_process, worker_processes, pools
import dpaudit

in_process.WORTHWHILE_SECONDS = in_process._FIRST_SECONDS = 0.0
cores.cores = lambda: 2

def mechanism(x, size, rng):
    return x + rng.laplace(size=size)

result = dpaudit.audit(mechanism, 0, 1, dpaudit.PureDP(1.0), samples=100, workers="auto")
print((result.workers, *result.notes))
"""


class Cut(BaseException):
    """An exception that ends a run."""


def spec_of(function: Callable[..., Any], epsilon: float = 1.0, **more: Any) -> AuditSpec:
    return audit_of(
        **{
            "name": "audit",
            "target": CallableTarget(function=function),
            "pairs": (NeighbouringPair(0.0, 1.0, None, "0, 1"),),
            "claim": PureDP(epsilon),
            "samples": SAMPLES,
            "workers": "auto",
            **more,
        },
    )


def as_text(result: AuditResult) -> str:
    """Return the parts of a result that depend neither on workers nor on resumptions."""
    return to_json([replace(result, seconds=0.0, resumed=0, workers=None)])


@functools.cache
def alone(function: Callable[..., Any], epsilon: float = 1.0) -> AuditResult:
    """Return the result of one process. The caller uses `counts_on`."""
    return run_audit(spec_of(function, epsilon, workers=1))


@pytest.fixture
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cores, "cores", lambda: 2)


def move_after(chunks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let an audit move after some chunks, however few draws it has left."""
    look = InProcess._look

    def counting(pool: InProcess, first_seconds: float) -> None:
        nonlocal chunks
        chunks -= 1
        if chunks < 0:
            look(pool, first_seconds)

    monkeypatch.setattr(in_process, "WORTHWHILE_SECONDS", 0.0)
    monkeypatch.setattr(in_process, "_FIRST_SECONDS", 0.0)
    monkeypatch.setattr(InProcess, "_look", counting)
    # On a busy machine, draws of microseconds do not show how many cores they take.
    monkeypatch.setattr(in_process._Speed, "cores_used", lambda speed: 1.0)


@pytest.fixture
def eager(two_cores: None, monkeypatch: pytest.MonkeyPatch) -> None:
    move_after(0, monkeypatch)


class Here(Executor):
    """Runs tasks of workers in this process, when they are submitted."""

    def submit(self, function: Callable[..., Any], /, *args: Any, **more: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(function(*args, **more))
        except Exception as error:  # noqa: BLE001  # as executors do
            future.set_exception(error)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        pools.forget(worker_processes._recipe.run)


@pytest.fixture
def workers_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let workers be this process, in tests that are not about processes."""

    def executor(recipe: Any, workers: int, folder: str) -> Any:
        monkeypatch.setattr(worker_processes, "_recipe", recipe, raising=False)
        monkeypatch.setattr(worker_processes, "_folder", folder, raising=False)
        monkeypatch.setattr(worker_processes, "_barrier", threading.Barrier(1), raising=False)
        return SimpleNamespace(kill=lambda: None), Here()

    monkeypatch.setattr(worker_processes, "_executor", executor)


@pytest.fixture
def counts_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few draws are kept for learning; further ones are only counted."""
    monkeypatch.setattr(schedule, "MAX_BUFFERED_DRAWS", 2_000)


@pytest.fixture
def no_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    def started(*args: Any) -> Any:
        raise AssertionError("a process was started")

    monkeypatch.setattr(worker_processes, "_executor", started)


# Chunks: 2 before all others, 9 to learn from, 40 to count and learn from, 12 to certify.
@pytest.mark.usefixtures("two_cores", "counts_on", "workers_here")
@pytest.mark.parametrize(
    ("function", "chunks"),
    [(batch, 30), (single, 54), (Carries(), 8)],
)
def test_an_audit_that_moves_has_the_same_result(
    function: Callable[..., Any], chunks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    has_the_same_result(function, chunks, monkeypatch)


@pytest.mark.usefixtures("two_cores", "counts_on")
def test_an_audit_that_moves_to_processes_has_the_same_result(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    has_the_same_result(batch, 30, monkeypatch)


def has_the_same_result(
    function: Callable[..., Any], chunks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    move_after(chunks, monkeypatch)
    moved = run_audit(spec_of(function))
    assert (alone(function).workers, moved.workers) == (1, 2)
    assert as_text(moved) == as_text(alone(function))
    assert moved.certificates[0].evidence.counted >= 3_000


@pytest.mark.usefixtures("eager", "workers_here")
@pytest.mark.parametrize(("workers", "samples"), [(1, 200), (2, 500), ("auto", 500)])
def test_the_default_number_follows_from_the_speed_of_all_processes(
    workers: Any, samples: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Every measurement takes a second: of 16 draws by this process, or of 24 by two processes.
    monkeypatch.setattr(pace, "clock", count().__next__)
    spec = spec_of(batch, samples=DEFAULTS["samples"], workers=workers)
    result = run_audit(spec)
    assert result.certificates[0].evidence.budget == samples


@pytest.mark.usefixtures("two_cores", "no_processes")
@pytest.mark.parametrize("more", [{}, {"time": 0.3}, {"stop": "never"}])
def test_a_short_audit_starts_no_processes(more: dict[str, Any]) -> None:
    result = run_audit(spec_of(batch, samples=FEW, **more))
    assert result.error is None
    assert (result.workers, result.notes) == (1, ())


@pytest.mark.usefixtures("eager", "no_processes")
@pytest.mark.parametrize("more", [{"timing": True}, {"executor": "serial"}, {"workers": 1}])
def test_timed_and_serial_audits_stay_in_this_process(more: dict[str, Any]) -> None:
    result = run_audit(spec_of(single, samples=1_000, **more))
    assert result.error is None
    assert (result.workers, result.notes) == (1, ())


@pytest.mark.usefixtures("eager")
def test_a_mechanism_that_cannot_be_sent_is_drawn_here_with_a_note() -> None:
    spec = spec_of(lambda x, size, rng: batch(x, size, rng), samples=FEW)
    result = run_audit(spec)
    assert as_text(replace(result, notes=())) == as_text(run_audit(replace(spec, workers=1)))
    assert result.workers == 1
    (note,) = result.notes
    assert note.startswith("only one process ")
    assert "pickle" in note
    assert result.warnings == ()


def fit_product(selection: Any) -> Any:
    """Return a score that cannot be pickled."""
    return lambda outcomes: outcomes.columns[0].numbers * outcomes.columns[1].numbers


@pytest.mark.usefixtures("eager", "workers_here")
def test_a_score_that_cannot_be_sent_stays_here() -> None:
    target = ImportedTarget(path="benchmarks.whole_audits:signs")
    spec = spec_of(batch, target=target, attacks=(fit_product,), samples=2_000)
    result = run_audit(spec)
    assert result.error is None
    assert "fit_product" in " ".join(result.notes)
    assert as_text(replace(result, notes=())) == as_text(run_audit(replace(spec, workers=1)))


@pytest.mark.usefixtures("eager")
def test_each_worker_has_its_own_process_of_an_isolated_mechanism() -> None:
    target = IsolatedTarget(target=CallableTarget(function=single))
    spec = spec_of(single, target=target, samples=500)
    alone, moved = (run_audit(replace(spec, workers=workers)) for workers in (1, "auto"))
    assert moved.workers == 2
    assert as_text(moved) == as_text(alone)


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize(
    ("function", "said"),
    [
        (other_elsewhere, "equal seeds "),
        (ends_elsewhere, " ended at once"),
        (keeps_count, " which changed _made"),
        (partial(writes, "written"), "write to written"),
    ],
)
def test_a_mechanism_with_state_stays_in_this_process(
    function: Callable[..., Any], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    spec = spec_of(function, samples=FEW)
    result = run_audit(spec)
    assert as_text(replace(result, notes=())) == as_text(run_audit(replace(spec, workers=1)))
    assert (result.workers, len(result.notes)) == (1, 1)
    assert said in result.notes[0]
    assert not multiprocessing.active_children()


@pytest.mark.usefixtures("eager")
def test_an_audit_goes_on_where_no_process_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*args: Any) -> Any:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(worker_processes, "_executor", refused)
    (note,) = run_audit(spec_of(batch, samples=FEW)).notes
    assert note.endswith("[Errno 38] Function not implemented")


OWN_POOL = """
import multiprocessing
{audit}
if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(abs, [-7]))
"""


def test_a_script_that_other_processes_run_first_does_not_audit_again(tmp_path: Path) -> None:
    """Both the workers and a process of the user run the script first, which audits without a
    guard."""
    script = tmp_path / "script.py"
    script.write_text(OWN_POOL.format(audit=UNGUARDED))
    done = subprocess.run(
        [sys.executable, str(script)], text=True, capture_output=True, timeout=60, check=True
    )
    assert done.stdout.endswith("[7]\n")
    # The first audit has a note; the one in the child wants no workers.
    assert done.stdout.count("only one process ") == 1
    assert done.stderr == ""


@pytest.mark.usefixtures("eager", "workers_here")
def test_a_mechanism_that_no_seed_reaches_has_no_state_to_compare() -> None:
    result = run_audit(spec_of(unseeded, epsilon=2.0, samples=2_000))
    assert (result.workers, result.notes) == (2, ())
    assert not result.certificates[0].reproducible


@pytest.mark.usefixtures("eager", "new_processes")
def test_noise_that_each_worker_keeps_is_no_violation() -> None:
    # Chunks that one worker drew agree with each other. If the check of calls sees too few others,
    # only the comparison with new processes shows the noise.
    result = run_audit(spec_of(keeps_noise, samples=2_000))
    assert result.workers == 2
    assert result.verdict is not Verdict.VIOLATION


@pytest.mark.usefixtures("eager")
def test_a_violation_is_doubted_where_others_drew_otherwise(
    monkeypatch: pytest.MonkeyPatch, new_processes: None
) -> None:
    target = ImportedTarget(path="mechanisms.shared_noise:remembered")
    spec = spec_of(batch, target=target, samples=2_000, command="dpaudit run")
    result = run_audit(spec)
    assert (result.workers, result.verdict) == (1, Verdict.ERROR)
    monkeypatch.setattr("dpaudit.sampling.executors.new_processes.PROCESSES", 0)
    result = run_audit(spec_of(batch, target=target, samples=2_000))
    assert (result.workers, result.verdict) == (1, Verdict.VIOLATION)
    said = " ".join(result.certificates[0].warnings)
    assert "gave other outputs " in said
    other = run_audit(spec_of(other_elsewhere, samples=2_000))
    assert (other.workers, other.verdict) == (1, Verdict.NO_VIOLATION_FOUND)
    assert other.certificates[0].warnings == ()


def cut_after(blocks: int, spec: AuditSpec) -> AuditResult:
    def watch(moment: Progress) -> None:
        nonlocal blocks
        blocks -= 1
        if blocks == 0:
            raise Cut

    return run_audit(spec, watch)


@pytest.mark.usefixtures("two_cores", "counts_on", "workers_here")
@pytest.mark.parametrize(
    ("workers", "cuts", "chunks", "epsilon"),
    [
        (("auto", 2, 1), (3, 8), 0, 1.0),
        ((1, "auto", "auto"), (20, 27), 5, 1.0),
        ((1, "auto", 1), (3, 8), 0, 0.3),
    ],
)
def test_a_journal_does_not_mind_who_goes_on(
    workers: tuple[Any, ...],
    cuts: tuple[int, int],
    chunks: int,
    epsilon: float,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    move_after(chunks, monkeypatch)
    spec = spec_of(batch, epsilon)
    whole = as_text(alone(batch, epsilon))
    kept = replace(spec, journal=tmp_path, resume=True)
    for number, cut in zip(workers[:2], cuts, strict=True):
        with pytest.raises(Cut):
            cut_after(cut, replace(kept, workers=number))
    assert as_text(run_audit(replace(kept, workers=workers[2]))) == whole
    # And once more, from what is recorded alone, of which test_journal.py asks one process.
    assert as_text(run_audit(replace(kept, workers="auto"))) == whole
