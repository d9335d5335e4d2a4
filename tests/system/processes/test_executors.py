"""All pools give the same draws; processes that are killed are replaced, crashes are errors."""

from __future__ import annotations

import functools
import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import partial
from multiprocessing import active_children, get_context
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit.attacks.learning import learn
from dpaudit.attacks.objective import Objective
from dpaudit.claims import ProfilePoint, PureDP
from dpaudit.errors import MechanismError, UsageError
from dpaudit.inputs.pairs import NeighbouringPair
from dpaudit.sampling.chunks import Chunk, Learning, Measure, Probe, ToCount, ToLearn
from dpaudit.sampling.executors import Setup, drawing, pools, processes
from dpaudit.sampling.executors.pools import Done, OrderedPool, Recipe
from dpaudit.sampling.executors.processes import ProcessPool
from dpaudit.sampling.sampler import Sampler
from dpaudit.targets.target import CallableTarget
from tests.sent import (
    Carries,
    batch,
    closes_its_connection,
    ends_by,
    ends_with,
    hangs,
    keeps_a_fork,
    killed_once,
    leaves_a_fork,
    mutates,
    padded,
    replies_in_part,
    single,
    with_legacy,
)
from tests.whole_audits import process_to_fork as process_to_fork
from tests.whole_audits import spawned as spawned
from tests.whole_audits import workers_are_forked as workers_are_forked

LEFT_OPEN = """
import time
from dpaudit.sampling.executors.pools import Recipe
from dpaudit.sampling.executors.processes import ProcessPool

if __name__ == "__main__":
    pool = ProcessPool(Recipe("", b"", ("", 0, 0), ()), 1)
    print(pool.call(abs, -1).result())
    pool.call(time.sleep, 600)
"""
PAIR = NeighbouringPair(0.0, 1.0)
SIZES = (50, 300, 7, 120, 64)


SEEDED: list[Callable[..., Any]] = [batch, with_legacy, Carries()]


def maker(function: Callable[..., Any], pair: NeighbouringPair = PAIR) -> Callable[[], Sampler]:
    return partial(Sampler, CallableTarget(function=function), (pair,), 0)


def sampler(function: Callable[..., Any]) -> Sampler:
    return maker(function)()


def setup(function: Callable[..., Any], workers: int = 1, pair: NeighbouringPair = PAIR) -> Setup:
    make = maker(function, pair)
    return Setup(make(), make, workers)


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
    [*((one, None, 2) for one in SEEDED), (single, "processes", 1)],
)
def test_processes_draw_the_same(function: Any, executor: str | None, workers: int) -> None:
    draw_the_same(function, executor, workers)


def test_new_processes_draw_the_same(spawned: None) -> None:
    draw_the_same(batch, None, 2)


def draw_the_same(function: Callable[..., Any], executor: str | None, workers: int) -> None:
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


def test_an_executor_may_run_tasks_when_they_are_submitted() -> None:
    with drawing("serial", setup(with_legacy)) as drawer:
        here = [numbers(drawn) for drawn in drawer(chunks())]
    with drawing(Immediate(), setup(with_legacy)) as drawer:
        assert [numbers(drawn) for drawn in drawer(chunks())] == here


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
        ("dask://", 1, "executor-unknown", "dask://host:8786"),
        ("processes://here", 1, "executor-unknown", "give processes"),
        ("dask://here:8786", 2, "options-conflict", "workers=2"),
        (7, 1, "executor-unknown", "executor=7"),
    ]:
        with pytest.raises(UsageError) as error:
            dpaudit.audit(single, 0, 1, PureDP(1.0), executor=executor, workers=workers)  # type: ignore[arg-type]  # on purpose
        assert error.value.code == code
        assert named in str(error.value)


def test_only_some_chunks_are_drawn_ahead() -> None:
    asked: list[int] = []

    def endless() -> Iterator[Chunk[Any]]:
        for index in itertools.count():
            asked.append(index)
            yield ToLearn((0, 0, index), 10)

    with drawing("processes", setup(single, 2)) as drawer:
        drawn = drawer(endless())
        next(drawn)
        next(drawn)
        drawn.close()  # type: ignore[attr-defined]  # it is a generator
    assert len(asked) <= 8


class FixedPace(OrderedPool):
    """A pool whose chunks all take the same time."""

    def __init__(self, ahead: int, seconds: float) -> None:
        super().__init__(1)
        self._ahead, self._each = ahead, seconds
        self.sizes: list[int] = []

    def ahead(self) -> int:
        return self._ahead

    def submit(self, chunks: Sequence[Chunk[Any]], /) -> Future[Done]:
        self.sizes.append(len(chunks))
        future: Future[Done] = Future()
        future.set_result(Done([Probe(True, 1) for _ in chunks], self._each * len(chunks)))
        return future


@pytest.mark.parametrize(
    ("seconds", "ahead", "largest"),
    [(1e-4, 2, 256), (0.01, 2, 10), (1.0, 2, 1), (0.01, 100, 30)],
)
def test_bundles_grow_to_a_tenth_of_a_second_or_more_for_many_workers(
    seconds: float, ahead: int, largest: int
) -> None:
    """seconds: of one chunk."""
    pool, many = FixedPace(ahead, seconds), 1_500 + 100 * ahead
    assert len(list(pool(measured(many)))) == many
    assert pool.sizes[:ahead] == [1] * ahead
    assert max(pool.sizes) == largest
    assert all(later <= 2 * before for before, later in itertools.pairwise(pool.sizes[1:-1]))


def test_learning_blocks_are_bundles_of_their_own() -> None:
    pool = FixedPace(3, 1e-6)
    assert len(list(pool(chunks()))) == len(SIZES)
    assert pool.sizes == [1] * len(SIZES)


def test_a_mechanism_that_cannot_be_pickled_is_refused() -> None:
    with pytest.raises(UsageError) as error, drawing("processes", setup(lambda x: x)):
        pass
    assert error.value.code == "not-picklable"


@pytest.mark.parametrize("executor", ["processes", Immediate()])
def test_an_error_in_a_worker_reaches_the_caller(executor: Any) -> None:
    given = setup(mutates, 2, pair=NeighbouringPair([1], [2]))
    with drawing(executor, given) as drawer, pytest.raises(MechanismError) as error:
        list(drawer([ToLearn((0, 0, 0), 50)]))
    assert error.value.code == "input-changed"


@pytest.mark.parametrize(
    ("function", "code", "how"),
    [
        (partial(ends_with, 3), "worker-died", "exit code 3"),
        (partial(ends_by, signal.SIGSEGV), "worker-died", "SIGSEGV"),
        (partial(ends_by, signal.SIGKILL), "worker-killed", "4 times"),
    ],
)
def test_only_draws_of_processes_that_are_killed_from_outside_are_repeated(
    function: Callable[..., Any], code: str, how: str
) -> None:
    with drawing("processes", setup(function)) as drawer, pytest.raises(MechanismError) as error:
        list(drawer([ToLearn((0, 0, 0), 50)]))
    assert error.value.code == code
    assert how in str(error.value)


def test_a_chunk_that_is_lost_with_its_process_is_drawn_again(tmp_path: Path) -> None:
    flag = tmp_path / "killed"
    function = partial(killed_once, str(flag))
    lost = dpaudit.audit(function, 0, 1, PureDP(1.0), samples=40_000, workers=2)
    assert flag.exists()
    whole = dpaudit.audit(function, 0, 1, PureDP(1.0), samples=40_000)
    assert lost.error is None
    assert (lost.p_value, lost.epsilon_lower) == (whole.p_value, whole.epsilon_lower)
    assert lost.certificates[0].evidence.blocks == whole.certificates[0].evidence.blocks


def test_a_draw_that_is_not_needed_is_not_waited_for() -> None:
    start = time.monotonic()
    with drawing("processes", setup(hangs, 2)) as drawer:
        drawn = drawer([ToLearn((0, 0, 0), 10), ToLearn((0, 0, 1), 10_000)])
        next(drawn)
        drawn.close()  # type: ignore[attr-defined]  # it is a generator
    assert time.monotonic() - start < 30


@pytest.fixture
def recipe() -> Recipe:
    return Recipe.of(maker(batch))


def test_a_worker_keeps_the_samplers_of_the_last_audits(recipe: Recipe) -> None:
    (drawn,) = pools.draw(recipe, chunks()[:1]).drawn
    assert numbers(drawn) == numbers(sampler(batch).draw(chunks()[0]))
    first = pools._samplers[recipe.run]
    pools.draw(recipe, chunks()[:1])
    assert pools._samplers[recipe.run] is first
    for _ in range(pools._MAX_SAMPLERS):
        pools.draw(Recipe.of(maker(batch)), chunks()[:1])
    assert recipe.run not in pools._samplers
    assert len(pools._samplers) == pools._MAX_SAMPLERS
    for run in list(pools._samplers):
        pools.forget(run)
    assert not pools._samplers


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


def test_a_process_that_is_killed_while_it_replies_is_not_waited_for(recipe: Recipe) -> None:
    pool = ProcessPool(recipe, 1)
    try:
        with pytest.raises(MechanismError) as error:
            pool.call(replies_in_part).result(60)
        assert error.value.code == "worker-killed"
        (drawn,) = pool.submit(chunks()[:1]).result(60).drawn  # by the next process
        assert numbers(drawn) == numbers(sampler(batch).draw(chunks()[0]))
    finally:
        pool.close(in_order=True)


@contextmanager
def opened(recipe: Recipe, workers: int = 1) -> Iterator[ProcessPool]:
    pool = ProcessPool(recipe, workers, ())
    try:
        yield pool
    finally:
        pool.close(in_order=True)


def end(pool: ProcessPool, number: int) -> None:
    """End the idle process of a pool with a signal."""
    process = pool._workers[0]._process
    assert process.pid is not None
    os.kill(process.pid, number)
    process.join()


def test_a_process_that_is_killed_with_a_fork_left_is_not_waited_for(recipe: Recipe) -> None:
    with opened(recipe) as pool, pytest.raises(MechanismError) as error:
        pool.call(leaves_a_fork).result(30)
    assert error.value.code == "worker-killed"


def test_a_process_that_is_killed_while_it_is_sent_a_task_is_replaced(recipe: Recipe) -> None:
    with opened(recipe) as pool:
        assert pool.call(keeps_a_fork).result(60)  # type: ignore[arg-type]  # no draws
        process = pool._workers[0]._process
        assert process.pid is not None
        os.kill(process.pid, signal.SIGSTOP)
        task = pool.call(len, bytes(10_000_000))  # type: ignore[arg-type]  # no draws
        time.sleep(0.5)  # to send as much as the connection takes
        process.kill()
        assert task.result(30) == 10_000_000  # type: ignore[comparison-overlap]  # no draws


def test_a_process_that_closes_its_connection_is_not_replaced(
    recipe: Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "_GRACE_SECONDS", 0.2)
    with opened(recipe) as pool, pytest.raises(MechanismError) as error:
        pool.call(closes_its_connection).result(60)
    assert error.value.code == "worker-died"


def test_an_idle_process_is_replaced_only_if_it_is_killed_from_outside(recipe: Recipe) -> None:
    with opened(recipe) as pool:
        pool.submit(chunks()[:1]).result(60)
        end(pool, signal.SIGKILL)
        pool.submit(chunks()[:1]).result(60)
        end(pool, signal.SIGSEGV)
        with pytest.raises(MechanismError, match="SIGSEGV") as error:
            pool.submit(chunks()[:1]).result(60)
    assert error.value.code == "worker-died"


def test_the_datasets_are_sent_once(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    ask = processes.ask

    def recording(there: Any, data: bytes, *others: Any) -> Any:
        sizes.append(len(data))
        return ask(there, data, *others)

    monkeypatch.setattr(processes, "ask", recording)
    large = Recipe.of(partial(padded, bytes(1_000_000), maker(batch)))
    with opened(large) as pool:
        for _ in range(3):
            pool.submit(chunks()[:1]).result(60)
    assert 1_000_000 < sum(sizes) < 2_000_000


def test_processes_start_when_they_are_needed(recipe: Recipe) -> None:
    before = len(active_children())
    with opened(recipe, 3) as pool:
        assert len(active_children()) == before
        pool.submit(chunks()[:1]).result(60)
        assert len(active_children()) == before + 1
        pool.settle(60)
        assert len(active_children()) == before + 3


def test_a_process_that_cannot_begin_is_an_error_of_the_next_task() -> None:
    make: Any = partial(ends_with, 3, 0.0)
    with opened(Recipe.of(make)) as pool:
        pool.start()
        wait(pool.started, 60)
        with pytest.raises(MechanismError) as error:
            pool.submit(chunks()[:1])
    assert error.value.code == "worker-died"


def test_a_process_that_cannot_be_replaced_is_an_error(
    recipe: Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: Any) -> None:
        raise OSError("no process")

    unhandled: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", unhandled.append)
    with opened(recipe) as pool:
        pool.submit(chunks()[:1]).result(60)
        monkeypatch.setattr(processes._Process, "start", fails)
        end(pool, signal.SIGKILL)
        with pytest.raises(OSError, match="no process"):
            pool.submit(chunks()[:1]).result(60)
    assert not unhandled


def test_a_pool_that_was_not_closed_ends_with_its_program(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(LEFT_OPEN)
    done = subprocess.run(
        [sys.executable, str(script)], timeout=60, capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("1\n", "")
