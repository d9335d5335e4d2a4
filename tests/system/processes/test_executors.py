"""All pools give the same draws; draws of a process that dies are repeated only if equal."""

from __future__ import annotations

import functools
import os
import pickle
import select
import signal
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from multiprocessing import active_children, get_context
from pathlib import Path
from threading import Thread
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit.attacks.learning import learn
from dpaudit.attacks.objective import Objective
from dpaudit.certificates.result import Progress, Verdict
from dpaudit.claims import ProfilePoint, PureDP
from dpaudit.errors import MechanismError, TargetError, UsageError
from dpaudit.inputs.pairs import NeighbouringPair
from dpaudit.sampling.chunks import Chunk, Learning, Measure, ToCount, ToLearn
from dpaudit.sampling.executors import Setup, drawing, pools
from dpaudit.sampling.executors.pools import Recipe
from dpaudit.sampling.executors.worker_processes import ProcessPool
from dpaudit.sampling.sampler import Sampler
from dpaudit.targets.target import CallableTarget
from dpaudit.wording import WORKER_DIED
from tests.sent import (
    Carries,
    batch,
    ends_by,
    ends_once,
    ends_with,
    mutates,
    single,
    unseeded_crash,
    with_legacy,
)

PAIR = NeighbouringPair(0.0, 1.0)
SIZES = (50, 300, 7, 120, 64)


SEEDED: list[Callable[..., Any]] = [batch, with_legacy, Carries()]


def maker(function: Callable[..., Any], pair: NeighbouringPair = PAIR) -> Callable[[], Sampler]:
    return partial(Sampler, CallableTarget(function=function), (pair,), 0)


def sampler(function: Callable[..., Any]) -> Sampler:
    return maker(function)()


def setup(function: Callable[..., Any], workers: int = 1, pair: NeighbouringPair = PAIR) -> Setup:
    make = maker(function, pair)
    return Setup(make(), make, workers, may_repeat=lambda how: True)


def chunks() -> list[Chunk[Any]]:
    return [ToLearn((0, 0, index), size) for index, size in enumerate(SIZES)]


def numbers(drawn: Learning) -> list[float]:
    assert drawn.fresh is not None
    return drawn.fresh.release().outcomes.columns[0].numbers.tolist()  # type: ignore[no-any-return]  # of floats


@functools.cache
def rule() -> Any:
    fresh = sampler(batch).draw(ToLearn((0, 0, 0), 1_000)).fresh
    assert fresh is not None
    return learn(fresh.release(), Objective(ProfilePoint(0.5, 0.0), 10_000)).portfolio


def measured(count: int) -> list[Chunk[Any]]:
    return [ToCount((0, 1, index), 100 + index, Measure(rule())) for index in range(count)]


def tallies(drawn: Iterator[Any]) -> list[Any]:
    return [one.tally.counts.tolist() for one in drawn if one.tally is not None]


class Immediate(Executor):
    """Runs a task while it is submitted."""

    def submit(self, function: Callable[..., Any], /, *args: Any, **more: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(function(*args, **more))
        return future


class InThread(Immediate):
    """Runs a task in a thread, without being a ThreadPoolExecutor."""

    def submit(self, function: Callable[..., Any], /, *args: Any, **more: Any) -> Future[Any]:
        future: Future[Any] = Future()

        def run() -> None:
            try:
                future.set_result(function(*args, **more))
            except UsageError as error:
                future.set_exception(error)

        Thread(target=run).start()
        return future


@pytest.mark.parametrize(
    ("function", "executor", "workers"),
    [*((function, None, 2) for function in SEEDED), (single, "processes", 1)],
)
def test_processes_draw_the_same(
    function: Callable[..., Any], executor: str | None, workers: int
) -> None:
    with drawing("serial", setup(function)) as drawer:
        here = [numbers(drawn) for drawn in drawer(chunks())]
    with drawing(executor, setup(function, workers)) as drawer:
        assert [numbers(drawn) for drawn in drawer(chunks())] == here


@pytest.mark.parametrize("method", ["fork", "forkserver"])
def test_an_executor_of_the_caller_draws_the_same(method: str) -> None:
    every = measured(30)
    with drawing("serial", setup(batch)) as drawer:
        here = tallies(drawer(every))
    with (
        ProcessPoolExecutor(2, mp_context=get_context(method)) as pool,
        drawing(pool, setup(batch, 2)) as drawer,
    ):
        assert tallies(drawer(every)) == here
        assert tallies(drawer(every)) == here


def test_threads_are_refused() -> None:
    with ThreadPoolExecutor(2) as threads, pytest.raises(UsageError) as error:
        dpaudit.audit(single, 0, 1, PureDP(1.0), executor=threads, workers=2)
    assert error.value.code == "executor-with-threads"
    with pytest.raises(UsageError) as error:
        dpaudit.audit(single, 0, 1, PureDP(1.0), executor=InThread())
    assert error.value.code == "executor-with-threads"


def test_an_executor_of_the_caller_that_breaks_is_an_error() -> None:
    wanted = pytest.raises(MechanismError)
    make = partial(ends_by, signal.SIGKILL)
    with (
        ProcessPoolExecutor(1, mp_context=get_context("forkserver")) as pool,
        drawing(pool, setup(make)) as drawer,
        wanted as error,
    ):
        list(drawer(chunks()))
    assert error.value.code == "workers-lost"


def test_other_values_for_an_executor_are_refused() -> None:
    for executor, workers, code, named in [
        ("proceses", 1, "executor-unknown", "'processes'"),
        ("serial", 2, "options-conflict", "workers=2"),
        (7, 1, "executor-unknown", "executor=7"),
    ]:
        with pytest.raises(UsageError) as error:
            dpaudit.audit(single, 0, 1, PureDP(1.0), executor=executor, workers=workers)  # type: ignore[arg-type]  # on purpose
        assert error.value.code == code
        assert named in str(error.value)


def test_a_mechanism_that_cannot_be_pickled_is_refused() -> None:
    with pytest.raises(UsageError) as error, drawing("processes", setup(lambda x: x)):
        pass
    assert error.value.code == "not-picklable"


def test_a_function_that_a_notebook_defines_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = ModuleType("__main__")
    exec("def noisy(x, rng): return x + rng.normal()", vars(notebook))
    monkeypatch.setitem(sys.modules, "__main__", notebook)
    with pytest.raises(UsageError) as error, drawing("processes", setup(notebook.noisy)):
        pass
    assert error.value.code == "not-picklable"
    with pytest.raises(TargetError) as isolated:
        dpaudit.audit(notebook.noisy, 0, 1, epsilon=1.0, isolate=True)
    assert isolated.value.code == "not-picklable"


@pytest.mark.parametrize("executor", ["processes", Immediate()])
def test_an_error_in_a_worker_reaches_the_caller(executor: Any) -> None:
    given = setup(mutates, 2, pair=NeighbouringPair([1], [2]))
    with drawing(executor, given) as drawer, pytest.raises(MechanismError) as error:
        list(drawer([ToLearn((0, 0, 0), 50)]))
    assert error.value.code == "input-changed"


@pytest.mark.parametrize(
    ("function", "how"),
    [(partial(ends_with, 3), "exit code 3"), (partial(ends_by, signal.SIGSEGV), "SIGSEGV")],
)
def test_draws_that_end_their_process_again_are_an_error(
    function: Callable[..., Any], how: str
) -> None:
    with drawing("processes", setup(function)) as drawer, pytest.raises(MechanismError) as error:
        list(drawer([ToLearn((0, 0, 0), 50)]))
    assert error.value.code == "worker-died"
    assert how in str(error.value)
    assert {"isolate", "journal", "resume"} <= set(error.value.parts)


def test_draws_of_a_process_that_died_are_repeated_three_times(tmp_path: Path) -> None:
    every = chunks()
    with drawing("serial", setup(batch)) as drawer:
        here = [numbers(drawn) for drawn in drawer(every)]
    ended = setup(partial(ends_once, str(tmp_path), 3), 2)
    with drawing("processes", ended) as drawer:
        assert [numbers(drawn) for drawn in drawer(every)] == here
    assert len(list(tmp_path.iterdir())) == 3


def test_draws_that_a_seed_does_not_repeat_are_not_repeated(tmp_path: Path) -> None:
    ended = replace(setup(partial(ends_once, str(tmp_path), 1), 2), may_repeat=lambda how: False)
    with drawing("processes", ended) as drawer, pytest.raises(MechanismError) as error:
        list(drawer(chunks()))
    assert error.value.code == "worker-died"


def test_unseeded_noise_that_ends_its_process_gets_no_verdict(tmp_path: Path) -> None:
    """A planted mechanism: only one input crashes, and the draws that survive are alike."""

    def run(**more: Any) -> dpaudit.AuditResult:
        return dpaudit.audit(
            unseeded_crash, 0, 1, PureDP(2.0), samples=20_000, workers=2, journal=tmp_path, **more
        )

    assert (run().verdict, run(resume=True).verdict) == (Verdict.ERROR, Verdict.ERROR)
    again = run(resume=True)
    assert again.error_code in ("worker-died", "mechanism-ends-process")
    assert "ended in the middle of a block " in " ".join(again.warnings)


@pytest.mark.parametrize("moment", [0.0, 0.3])
def test_an_audit_goes_on_when_a_worker_is_killed(moment: float) -> None:
    """moment: when a process of the audit is killed, as a share of its draws."""
    killed = list[int]()

    def kill(progress: Progress) -> None:
        if not killed and progress.draws >= moment * 40_000:
            worker = active_children()[0]
            assert worker.pid is not None
            killed.append(worker.pid)
            os.kill(worker.pid, signal.SIGKILL)

    lost = dpaudit.audit(batch, 0, 1, PureDP(1.0), samples=40_000, workers=2, on_progress=kill)
    assert killed
    assert lost.error is None
    assert any(text.startswith(WORKER_DIED) for text in lost.warnings)
    alone = whole()
    assert (lost.p_value, lost.epsilon_lower) == (alone.p_value, alone.epsilon_lower)
    assert lost.certificates[0].evidence.blocks == alone.certificates[0].evidence.blocks


@functools.cache
def whole() -> dpaudit.AuditResult:
    return dpaudit.audit(batch, 0, 1, PureDP(1.0), samples=40_000)


@pytest.fixture
def recipe() -> Recipe:
    return Recipe.of(maker(batch))


def test_a_worker_leaves_the_global_generators_as_they_were(recipe: Recipe) -> None:
    np.random.seed(3)
    expected = np.random.random()
    np.random.seed(3)
    pools.draw(recipe, chunks())
    assert np.random.random() == expected
    pools.forget(recipe.run)


def test_a_worker_with_other_versions_is_refused(
    recipe: Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pools, "_versions", lambda: ("dpaudit 0", "numpy 1.0", "Python 3.11"))
    with pytest.raises(UsageError, match=r"dpaudit 0, numpy 1.0") as error:
        pools.draw(recipe, chunks())
    assert error.value.code == "worker-versions-differ"


def test_a_result_is_sent_in_one_piece() -> None:
    """An executor waits forever for the rest of a result whose sender is killed."""
    with drawing("processes", setup(batch)) as drawer:
        assert isinstance(drawer, ProcessPool)
        future = drawer.submit([ToLearn((0, 0, 0), 10_000)])
        assert len(pickle.dumps(future.result())) < select.PIPE_BUF / 2
        (drawn,) = drawer.result(future).drawn
        assert len(pickle.dumps(drawn)) > select.PIPE_BUF
    assert numbers(drawn) == numbers(sampler(batch).draw(ToLearn((0, 0, 0), 10_000)))
