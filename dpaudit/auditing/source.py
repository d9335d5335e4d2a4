"""The mechanism of an audit, and the processes that draw from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from typing import Any

from dpaudit.auditing.ledger import PROBING
from dpaudit.auditing.options import Sampling, Statistics, flag_of
from dpaudit.auditing.schedule import FIRST_CALLS
from dpaudit.auditing.spec import AuditSpec
from dpaudit.auditing.time_left import Journal, TimeLeft
from dpaudit.levels.candidates import Scorer
from dpaudit.sampling.chunks import Chunk, FirstCalls, Probe
from dpaudit.sampling.executors import (
    LOCAL,
    Drawer,
    Setup,
    WorkerPool,
    drawing,
    new_processes,
    resolved,
)
from dpaudit.sampling.independence import check_uncached
from dpaudit.sampling.sampler import Sampler
from dpaudit.sampling.seeding import preserved
from dpaudit.sampling.state import StateDigests, kept_state
from dpaudit.targets.target import TwoTargets
from dpaudit.wording import WORKER_DIED

_CRASHES = f"with {flag_of('isolate')}, a crash of the mechanism counts as an outcome"


class Source:
    """The mechanism and processes that make the draws of an audit. Use it inside its context
    `opened`.

    journal: holds the audit, and records its draws.
    time: the time that the audit has left.
    make: returns a sampler with a new mechanism; it can be sent to other processes.
    sampler: the sampler of this process.
    before: the variables of the mechanism before its first call.
    pool: the processes that draw.
    draw: makes the draws of chunks, or takes them from the journal.
    processes: starts the new processes that repeat a refutation.
    shares_processes: whether other audits use these processes, too.
    workers: number of processes that drew; None before the end.
    is_reproducible: whether equal seeds gave equal outputs for the present pair; True before this
        was tested.
    notes, warnings: remarks about the processes, such as why only this one drew.
    """

    sampler: Sampler
    before: StateDigests
    pool: WorkerPool
    draw: Drawer

    def __init__(
        self, journal: Journal, time: TimeLeft, check: Callable[[], None] | None = None
    ) -> None:
        """Prepare to draw. `check` is called after each block of draws, before it is recorded."""
        self.journal, self.time, self._check = journal, time, check
        self.make = sampler_maker(journal.spec)
        self.attacks: tuple[Scorer, ...] = ()
        shared = new_processes.current()
        self.shares_processes = shared is not None
        self.processes = shared or new_processes.NewProcesses()
        self.workers: int | None = None
        self.is_reproducible = True
        self.notes: tuple[str, ...] = ()
        self.warnings: tuple[str, ...] = ()

    @property
    def spec(self) -> AuditSpec:
        """The audit, including the options that were chosen after its first calls."""
        return self.journal.spec

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Return a context in which the mechanism is loaded. Raise MechanismError for a mechanism
        that caches its results."""
        self.attacks = loaded_attacks(self.spec.statistics, self.spec.sampling)
        self.sampler = self.make()
        check_uncached(self.sampler.mechanism.name, self.sampler.mechanism.parts)
        self.before = kept_state(*self.sampler.mechanism.parts)
        executor = self.spec.sampling.executor
        with (
            closing(self.sampler),
            preserved(self.sampler.carried),
            drawing(executor, self._setup()) as self.pool,
        ):
            self.draw = self.journal.recording(self._checked, lambda: self.pool.is_here)
            try:
                yield
            finally:
                self.workers = self.pool.workers
                self.notes = () if self.pool.note is None else (self.pool.note,)
                if not self.shares_processes:
                    self.processes.close()

    def first_calls(self, number: int) -> Probe:
        """Make the first calls of the mechanism for a pair, and return their measurements."""
        # A mechanism may end the process that calls it. So even these calls are made in the process
        # that makes all other draws.
        self.is_reproducible = True
        (probe,) = self.draw([FirstCalls((number, PROBING, 1), FIRST_CALLS)])
        self.begin_after_imports()
        return probe

    def begin_after_imports(self) -> None:
        """Set `before` to the present values, for the variables of modules that calls have
        imported."""
        self.before = self.before.with_imports(kept_state(*self.sampler.mechanism.parts))

    @property
    def most_workers(self) -> int:
        """Largest number of processes that may draw."""
        sampling = self.spec.sampling
        # Other processes that draw would change the duration of calls.
        if sampling.workers == "auto" and self.spec.statistics.timing:
            return 1
        return resolved(sampling.executor, sampling.workers)

    @property
    def begins_here(self) -> bool:
        """Whether this process draws alone, until the audit turns out to be long."""
        return self.spec.sampling.workers == "auto" and self.spec.sampling.executor is None

    def _setup(self) -> Setup:
        if self.begins_here:
            left = None if self.spec.statistics.timing else self.time.seconds
            return Setup(self.sampler, self.make, 1, left, self._may_repeat)
        return Setup(self.sampler, self.make, self.most_workers, None, self._may_repeat)

    def _may_repeat(self, how: str) -> bool:
        if self.is_reproducible:
            text = (
                f"{WORKER_DIED} ({how}), and its draws were made again from their seeds; {_CRASHES}"
            )
            self.warnings = tuple(dict.fromkeys([*self.warnings, text]))
        return self.is_reproducible

    def _checked(self, chunks: Iterable[Chunk[Any]], /) -> Iterator[Any]:
        """Yield the results of chunks, unless a signal came during their draws."""
        # The mechanism may have caught the exception that the signal raised.
        for result in self.pool(chunks):
            if self._check is not None:
                self._check()
            yield result


def loaded_attacks(statistics: Statistics, sampling: Sampling) -> tuple[Scorer, ...]:
    """Return the user's own attacks; raise UsageError for one that cannot be loaded."""
    if not statistics.attacks:
        return ()
    from dpaudit.attacks.user_attacks import load_attacks  # most audits have none

    return load_attacks(statistics.attacks, travels=sampling.draws_ahead)


def sampler_maker(spec: AuditSpec) -> Callable[[], Sampler]:
    """Return a function that makes a sampler in this process or in a worker process. It refers to
    no other part of the audit, so a worker imports only half of the modules."""
    return partial(
        Sampler,
        spec.target,
        spec.pairs,
        spec.sampling.seed,
        fail_on_error=spec.sampling.on_error == "fail",
        adversary=spec.claim.adversary,
        timing=spec.statistics.timing,
        # Whether outputs may differ in the order of text keys. Sets of texts have another order
        # under another hash seed, so this is True only if all workers have the hash seed of this
        # process: workers on this machine have it.
        text_orders=spec.sampling.executor in LOCAL,
        # Two implementations may round differently; only floating_point compares last bits.
        rounds=isinstance(spec.target, TwoTargets) and not spec.statistics.floating_point,
    )
