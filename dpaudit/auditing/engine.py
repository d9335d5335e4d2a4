"""Run an audit by drawing from a mechanism: `run_audit` turns an `AuditSpec` into a result.

api.py and cli/batch.py call `run_audit`. The function searches for pairs if the audit asks for a
search, opens the journal, loads the mechanism, audits each pair of inputs (pair_audit.py), and
returns an `AuditResult` with one certificate per pair, which has the counts and bounds of the pair.
This module also warns about mechanisms that keep state between calls. It ends the audit with an
error if calls exhaust the mechanism, or if new processes draw from another distribution.
"""

from __future__ import annotations

import platform
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from importlib import metadata
from typing import Any

import numpy as np

from dpaudit import torch_use
from dpaudit.auditing import pace
from dpaudit.auditing.checks import doubtful_inputs, other_values
from dpaudit.auditing.kept_state import KeptState, state_words
from dpaudit.auditing.ledger import PACING, PROBING, Ledger
from dpaudit.auditing.options import DefaultSamples, StopEarly, flag_of
from dpaudit.auditing.pair_audit import PairAudit
from dpaudit.auditing.schedule import (
    FIRST_CALLS,
    PROBE_CALLS,
    SLOW_DRAW,
    Plan,
    limits_for,
)
from dpaudit.auditing.spec import AuditSpec
from dpaudit.auditing.time_left import Journal, Notify, TimeLeft
from dpaudit.auditing.underpowered import why_underpowered
from dpaudit.certificates.certificate import Certificate, Redrawn
from dpaudit.certificates.evidence import DrawLimits
from dpaudit.certificates.result import (
    AuditResult,
    Ending,
    Exact,
    Failed,
    Interrupted,
    Repeated,
    Sampled,
    Searched,
    Verdict,
)
from dpaudit.errors import MechanismError, StopAudit
from dpaudit.float_errors import auditor_errstate
from dpaudit.hash_seed import USUAL, VARIABLE
from dpaudit.inputs.neighbouring import check_pair
from dpaudit.inputs.pairs import notes, stated
from dpaudit.levels.candidates import Scorer
from dpaudit.levels.portfolio import TREES
from dpaudit.outcomes.set_order import hash_seed
from dpaudit.sampling.chunks import Chunk, FirstCalls, ToPace, ToProbe
from dpaudit.sampling.executors import (
    LOCAL,
    WORTHWHILE_SECONDS,
    Setup,
    WorkerPool,
    drawing,
    new_processes,
    resolved,
)
from dpaudit.sampling.independence import check_uncached
from dpaudit.sampling.sampler import Sampler
from dpaudit.sampling.seeding import preserved
from dpaudit.targets.construction import source_of
from dpaudit.targets.target import (
    CallableTarget,
    single_targets,
)
from dpaudit.version import __version__
from dpaudit.wording import KERNELS, UNSEEDED, counted

# Least number of pairs that a search has to try; if it tries fewer, the result has a warning.
_MIN_PAIRS = 20

# To measure the speed of a mechanism, the first call of a mechanism that makes batches asks for
# _PACED_BATCH draws; if each call makes one draw, as many draws are made as take _PACED_SECONDS.
_PACED_BATCH, _PACED_SECONDS = 16, 0.05
# Longest wait, in seconds, for further processes to start before their speed is measured, with
# _PACED_CHUNKS chunks for each process, each for about _PACED_CHUNK_SECONDS.
_PATIENCE, _PACED_CHUNKS, _PACED_CHUNK_SECONDS = 5.0, 4, 0.2

_TIMED = (
    "the audit used elapsed times. They depend on the machine and its load: no seed repeats them, "
    "and the verdict assumes that other programs favour neither input (calls alternate at random)"
)
_INTERRUPTED = "interrupted before its planned end"
_UNCHECKED = (
    "the audit was interrupted before it checked the refutation: neither whether draws depend on "
    "each other, nor with draws of new processes"
)
_DIFFERED = (
    "a new process of the mechanism gave other outputs from the same seed than this one: does "
    "a process keep something, such as noise that it draws once?"
)


@auditor_errstate()
def run_audit(
    spec: AuditSpec,
    on_progress: Notify | None = None,
    check: Callable[[], None] | None = None,
) -> AuditResult:
    """Run an audit, and return its result.

    Parameters
    ----------
    spec : AuditSpec
        The audit. If it has a search for pairs, the search is run first.
    on_progress : callable, optional
        Called with a Progress after every block of draws.
    check : callable, optional
        Called after every block of draws, before the block counts; raises StopAudit to end the
        audit. A StopAudit that `check`, `on_progress` or a handler of signals raises ends the audit
        with the result of its bets, if there are draws. Without `check`, a StopAudit passes on.

    Returns
    -------
    AuditResult
        The verdict is ERROR for a mechanism that cannot be audited.

    Raises
    ------
    UsageError
        If the audit cannot be carried out as asked, such as for a target that does not exist.
    """
    if spec.search is None or spec.pairs:
        return _run(spec, on_progress, check)
    start = time.monotonic()
    try:
        spec, searched = spec.search.find(spec, on_progress)
    except MechanismError as failure:
        failed = Failed(spec.origin.message(failure), code=failure.code)
        return _result(spec, failed, seconds=time.monotonic() - start, versions=versions())
    seconds = time.monotonic() - start
    result = _run(spec, on_progress, check)
    return replace(
        result,
        searched=searched,
        seconds=result.seconds + seconds,
        warnings=tuple(dict.fromkeys([*result.warnings, *_search_warnings(searched, result)])),
    )


def check_attacks(spec: AuditSpec) -> None:
    """Load the user's own attacks, to find mistakes before the audit.

    Raises the same errors as an audit whose attacks cannot be loaded.
    """
    _loaded_attacks(spec)


def _loaded_attacks(spec: AuditSpec) -> tuple[Scorer, ...]:
    from dpaudit.attacks.user_attacks import load_attacks  # most audits have none

    return load_attacks(spec.statistics.attacks, travels=spec.sampling.draws_ahead)


def check_mechanism(spec: AuditSpec) -> None:
    """Load the mechanism without drawing, to find mistakes before the audit.

    Raises the same errors as an audit whose mechanism cannot be loaded.
    """
    if spec.statistics.exact:
        from dpaudit.adapters.pmf import stated_law

        stated_law(spec.target)
        return
    with closing(_sampler_maker(spec)()) as sampler:
        check_uncached(sampler.mechanism.name, sampler.mechanism.parts)


def versions(certificates: Iterable[Certificate] = ()) -> dict[str, str]:
    """Return the versions of packages on which a result depends, as {package: version}. An entry
    PYTHONHASHSEED is added if the user chose a hash seed. scikit-learn is included if an attack of
    the certificates used trees.
    """
    import scipy

    names = {
        "dpaudit": __version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "python": platform.python_version(),
    }
    seed = hash_seed()
    if seed not in (None, USUAL):
        names[VARIABLE] = seed
    # `attacks` also lists the attacks that the last fit of the rules skipped. Trees count even if
    # they were skipped there, since an earlier fit may have used them.
    if any(tried.attack == TREES for one in certificates for tried in one.attacks):
        with suppress(metadata.PackageNotFoundError):
            names["scikit-learn"] = metadata.version("scikit-learn")
    return names


def _run(
    spec: AuditSpec, on_progress: Notify | None, check: Callable[[], None] | None
) -> AuditResult:
    """Run an audit whose pairs of inputs are known, and return its result."""
    if spec.journaling.journal is None or spec.statistics.exact:
        result = AuditRun(Journal(spec), on_progress, check).run()
    else:
        from dpaudit.auditing.journal import opened_journal

        with opened_journal(spec) as journal:
            result = AuditRun(journal, on_progress, check).run()
    return _traced(spec, result)


def _traced(spec: AuditSpec, result: AuditResult) -> AuditResult:
    """Return the result. If a pair refutes the claim, add a trace of this pair, which names the
    source lines of the mechanism that leak (docs/method.md §14).
    """
    refuting = result.decisive if result.verdict is Verdict.VIOLATION else None
    numbers = [n for n, one in enumerate(result.certificates) if one is refuting]
    if spec.no_trace or not numbers or isinstance(result.ending, Interrupted):
        return result
    # Imported here, since most audits refute nothing and need no trace.
    from dpaudit.tracing.forked_trace import trace_apart, with_draws

    pair, pace = spec.pairs[numbers[0]], result.seconds / max(1, result.draws)
    trace = trace_apart(spec.target, pair.d1, pair.d2, spec.claim, pace=pace)
    return replace(result, trace=with_draws(trace, result))


def _search_warnings(searched: Searched, result: AuditResult) -> list[str]:
    warnings, family = [], result.family
    may_refute = family is not None and result.p_value <= 1 - family.confidence
    is_warned = any("keeps state" in text for one in result.certificates for text in one.warnings)
    is_violation = result.verdict is Verdict.VIOLATION
    if searched.kept and (is_violation or may_refute) and not is_warned:
        redrawn = getattr(result.decisive, "redrawn", None)
        warnings.append(state_words(searched.kept, redrawn))
    if result.verdict is Verdict.NO_VIOLATION_FOUND:
        if searched.refused:
            pairs = counted(searched.refused, "pair")
            warnings.append(f"no output came for either input of {pairs}: {searched.refusal}")
        if searched.pairs < _MIN_PAIRS:
            pairs = counted(searched.pairs, "pair")
            warnings.append(f"the search tried only {pairs}; more draws, or more time, try more")
    elif is_violation and 2 * searched.refused > searched.pairs:
        warnings.append(
            f"no output came for either input of {searched.refused:,} of the {searched.pairs:,} "
            f"pairs tried ({searched.refusal}): the space may not be what the mechanism takes"
        )
    return warnings


def _result(spec: AuditSpec, ending: Ending, **run: Any) -> AuditResult:
    """Return the result of an audit with the fields that follow from its specification.

    spec: the audit.
    ending: certificates, or the error that ended the audit.
    run: fields of `AuditResult` that describe the run, such as seconds and warnings.
    """
    return AuditResult(
        name=spec.name,
        claim=spec.tested,
        target=spec.target.describe(),
        confidence=spec.statistics.confidence,
        seed=spec.sampling.seed,
        ending=ending,
        expect=spec.requirements.expect,
        repeated=Repeated(spec.runs, spec.claim) if spec.runs > 1 else None,
        claimed_by=spec.claimed_by,
        grouped=spec.grouped,
        request=spec.origin.request,
        source=source_of(spec.target),
        command=spec.origin.command,
        family=spec.statistics.family,
        strict=spec.requirements.strict,
        pace=spec.origin.pace,
        **run,
    )


def _resumable(spec: AuditSpec) -> str:
    if spec.journaling.journal is not None:
        return f"{flag_of('resume')} continues this run from its journal"
    return f"with {flag_of('journal')} DIR, an interrupted run can continue"


def _sampler_maker(spec: AuditSpec) -> Callable[[], Sampler]:
    """Return a function that makes a sampler in this process or in a worker process.

    The function refers to no other part of the audit. A worker that unpickles it therefore imports
    only the modules of the sampler, which are about half of the modules of an audit.
    """
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
    )


class AuditRun:
    """One run of an audit, which may continue an interrupted run from its journal.

    Call `run` once. `journal` holds the audit and records its draws. `on_progress` is called with a
    Progress after every block of draws. `check` is called before each block of draws counts
    (`run_audit`).
    """

    _sampler: Sampler
    _pool: WorkerPool
    _state: KeptState

    def __init__(
        self,
        journal: Journal,
        on_progress: Notify | None,
        check: Callable[[], None] | None = None,
    ) -> None:
        self._spec, self._journal = journal.spec, journal
        self._time = TimeLeft(journal, on_progress)
        self._check = check
        self._certificates: list[Certificate] = []
        # The audit of the present pair; None between pairs.
        self._audit: PairAudit | None = None
        # Notes about the executor, such as the reason why only this process drew.
        self._notes: tuple[str, ...] = ()
        self._workers: int | None = None
        # Index of the pair of inputs that is audited now.
        self._number = 0
        self._make = _sampler_maker(self._spec)
        self._users_attacks: tuple[Scorer, ...] = ()
        # _stop_early: value of the option `stop_early`, given by the user or chosen by the speed of
        # the mechanism; None before it is chosen.
        # _is_by_clock: whether the speed decided, so that a rerun might choose another value.
        self._stop_early: StopEarly | None = None
        self._is_by_clock = False
        # Starts new processes for this audit only. If a command or test run shares one
        # `NewProcesses` among its audits, the shared one is used instead.
        self._processes = new_processes.NewProcesses()

    def run(self) -> AuditResult:
        spec, journal = self._spec, self._journal
        ending: Ending
        try:
            ending = self._exact() if spec.statistics.exact else self._sample()
        except MechanismError as failure:
            words = spec.origin.message(failure)
            ending = Failed(words, tuple(self._certificates), failure.code)
        spec = self._spec
        why = why_underpowered(spec, self._certificates)
        is_interrupted = isinstance(ending, Interrupted)
        if is_interrupted:
            why = None
        allowed = (why,) if why is not None and spec.requirements.allow_underpowered else ()
        defaults, others = other_values(spec)
        result = _result(
            self._with_choice(),
            ending,
            seconds=journal.now(),
            versions=versions(self._certificates),
            warnings=(
                *journal.warnings,
                *self._time.warning,
                *defaults,
                *(() if spec.requirements.strict else allowed),
            ),
            underpowered=None if allowed else why,
            resumed=journal.resumed,
            workers=self._workers,
            # `allowed` is the message that the audit has too little power, if the user allows this.
            # It is usually a warning. In a strict audit, every warning makes the audit fail, so the
            # message is a note instead.
            notes=(
                *self._notes,
                *others,
                *(allowed if spec.requirements.strict else ()),
                *([_resumable(spec)] if is_interrupted else []),
            ),
        )
        if not is_interrupted or result.verdict is Verdict.VIOLATION:
            return result
        return replace(result, underpowered=_INTERRUPTED)

    def _exact(self) -> Exact:
        # Imported here to save time: the module is needed only for mechanisms that state the
        # distribution of their output, and most do not.
        from dpaudit.auditing.exact_pmf import exact_certificates

        return Exact(exact_certificates(self._spec))

    def _with_choice(self) -> AuditSpec:
        """Return the audit with the choice of `stop_early` written into its request and command, if
        the speed of the mechanism made this choice. A rerun then makes the same choice.
        """
        spec, origin, chosen = self._spec, self._spec.origin, self._stop_early
        if not self._is_by_clock:
            return spec
        request, command = origin.request, origin.command
        if request is not None and isinstance(settings := request.get("settings"), Mapping):
            request = {**request, "settings": {**settings, "stop_early": chosen}}
        if command is not None:
            command = f"{command} {flag_of('stop_early')} {chosen}"
        return replace(spec, origin=replace(origin, request=request, command=command))

    def _sample(self) -> Sampled:
        try:
            return self._sampled()
        except StopAudit:
            if self._check is None:
                raise
            # The exception may have come after the certificate of the pair was stored.
            is_open = self._audit is not None and len(self._certificates) == self._number
            certificate = self._audit.interrupted() if self._audit and is_open else None
            if certificate is not None:
                pair = self._spec.pairs[self._number]
                texts = [*check_pair(pair, self._spec.group), *certificate.warnings]
                texts += [_UNCHECKED] if certificate.refuted else []
                self._certificates.append(
                    replace(certificate, warnings=tuple(texts), adjacency=stated(pair))
                )
            if not self._certificates:
                raise
            return Interrupted(tuple(self._certificates), pairs=len(self._spec.pairs))

    def _sampled(self) -> Sampled:
        spec = self._spec
        warnings = [check_pair(pair, spec.group) for pair in spec.pairs]
        if spec.statistics.attacks:
            self._users_attacks = _loaded_attacks(spec)
        self._sampler = sampler = self._make()
        check_uncached(sampler.mechanism.name, sampler.mechanism.parts)
        self._state = KeptState(sampler, self._make, self._journal)
        with (
            closing(sampler),
            preserved(sampler.carried),
            closing(self._processes),
            drawing(spec.sampling.executor, self._setup()) as self._pool,
        ):
            try:
                for number in range(len(spec.pairs)):
                    self._number = number
                    self._time.begin(number)
                    certificate = self._remarked(self._audit_pair(), warnings[number])
                    self._certificates.append(certificate)
                    self._audit = None
                self._journal.finish()
            finally:
                self._workers = self._pool.workers
                self._notes = () if self._pool.note is None else (self._pool.note,)
        return Sampled(tuple(self._certificates))

    def _setup(self) -> Setup:
        """Return the settings of the executor.

        With `timing`, `workers: auto` means this process alone: other processes that draw would
        change the duration of calls.
        """
        spec = self._spec
        is_auto = spec.sampling.workers == "auto"
        if is_auto and spec.sampling.executor is None:
            left = None if spec.statistics.timing else self._time.seconds
            return Setup(self._sampler, self._make, left=left)
        workers = (
            1
            if is_auto and spec.statistics.timing
            else resolved(spec.sampling.executor, spec.sampling.workers)
        )
        return Setup(self._sampler, self._make, workers)

    def _audit_pair(self) -> Certificate:
        spec, number, journal = self._spec, self._number, self._journal
        drawer = journal.recording(self._checked, lambda: self._pool.is_here)
        single_draws = self._sampler.mechanism.interleaved
        # A mechanism may end the process that calls it. So the drawer makes even the first calls,
        # and makes them in the process that makes all other draws.
        (first,) = drawer([FirstCalls((number, PROBING, 1), FIRST_CALLS)])
        self._state.begin_after_imports()
        if single_draws and spec.sampling.executor in LOCAL and spec.sampling.time is not None:
            self._time.check(self._most_workers() / max(first.seconds, 1e-9), -PROBE_CALLS)
        (probe,) = drawer([ToProbe((number, PROBING, 0), PROBE_CALLS // 4)])
        limits = limits_for(
            max(first.columns, probe.columns),
            single_draws=single_draws,
            by_outputs=spec.tested.counts_single_outputs,
        )
        limits = replace(limits, ends_by_bets=self._ends_by_bets(probe.seconds))
        self._choose_samples(first.seconds if single_draws else 0.0, limits)
        spec = self._spec
        seconds = None
        if (
            spec.sampling.time is not None
        ):  # the remaining time is divided equally among remaining pairs
            seconds = max(0.0, spec.sampling.time - journal.clock()) / (len(spec.pairs) - number)
        plan = Plan(spec.sampling.samples, seconds, limits, journal.clock, self._time.check)
        show = partial(self._time.show, journal.now(), seconds)
        ledger = Ledger(spec, number, plan, drawer, show)
        self._time.begin(number, ledger)
        self._audit = audit = PairAudit(
            ledger, self._users_attacks, partial(self._compared, first.seconds, ledger)
        )
        try:
            certificate = audit.run()
        except MechanismError as error:
            has_failures = ledger.failures.total > 0
            explained = self._state.explained(error, number, has_failures=has_failures)
            if explained is None:
                raise
            raise explained from error
        if certificate.failures and (words := self._state.exhausted(number)):
            raise MechanismError(words, code="mechanism-exhausted")
        return replace(certificate, reproducible=probe.reproducible)

    def _checked(self, chunks: Iterable[Chunk[Any]], /) -> Iterator[Any]:
        """Yield the results of chunks. If a signal came during the draws of a chunk, they do not
        count: the mechanism may have caught the exception that the signal raised.
        """
        for drawn in self._pool(chunks):
            if self._check is not None:
                self._check()
            yield drawn

    def _choose_samples(self, seconds: float, limits: DrawLimits) -> None:
        """Choose the number of draws, unless the user stated it or a time limit.

        seconds: duration of a draw, if each call makes one draw; else 0.
        """
        spec, most = self._spec, self._spec.sampling.samples
        if spec.sampling.time is not None or not isinstance(most, DefaultSamples):
            return
        measure = partial(self._rate, most, seconds, limits)
        # A run that continues a journal takes the rate of the first run.
        rate = self._journal.once("rate", measure) or measure()
        self._spec = self._journal.spec = pace.with_chosen_samples(spec, rate)

    def _rate(self, samples: DefaultSamples, seconds: float, limits: DrawLimits) -> float:
        """Return the draws per second of all processes that will draw.

        seconds, limits: as in `_choose_samples`.
        """

        def draw(indices: Iterable[int], size: int, patience: float = 0.0) -> None:
            keys = ((self._number, PACING, index) for index in indices)
            deque(self._pool(ToPace(key, size, patience) for key in keys), maxlen=0)

        def draw_again(size: int) -> None:
            # Equal keys give equal numbers of draws of each input, for which a mechanism is
            # compiled only once.
            draw([size], size)

        enough = pace.rate_enough(samples, len(self._spec.pairs))
        first = _PACED_BATCH
        if seconds:
            first = max(1, min(limits.block, int(_PACED_SECONDS / seconds)))
        rate = pace.rate_of(draw_again, first, limits.block, enough)
        sampling = self._spec.sampling
        is_alone = sampling.workers == "auto" and self._spec.statistics.timing
        if rate >= enough or is_alone or resolved(sampling.executor, sampling.workers) == 1:
            return rate
        draw([0], 1, _PATIENCE)  # more processes may start
        if not self._pool.others_drew:
            return rate
        number = _PACED_CHUNKS * self._pool.workers
        size = max(1, min(limits.block, int(_PACED_CHUNK_SECONDS * rate)))
        indices = range(limits.block + 1, limits.block + 1 + number)
        return number * size / pace.duration(draw, indices, size)

    def _ends_by_bets(self, seconds: float) -> bool:
        """Return whether the audit of a pair ends as soon as bets refute the claim, without further
        draws that confirm the refutation. The option `stop_early` or `full` decides this. If the
        user gave neither, the first pair decides this for all pairs: True if its draws are slow.

        seconds: duration of a draw, if each call makes one draw; else 0.
        """
        asked = self._spec.sampling.stop_early
        if asked is None and self._spec.sampling.full:
            return False
        if self._stop_early is None:
            by_clock: StopEarly = "bets" if seconds > SLOW_DRAW else "confirmed"
            self._stop_early = asked or by_clock
            # Whether a rerun might choose the other value, so that this choice must be recorded.
            # If draws are faster than a fifth of `SLOW_DRAW`, every rerun chooses "confirmed".
            self._is_by_clock = asked is None and seconds > SLOW_DRAW / 5
        return self._stop_early == "bets"

    def _remarked(self, certificate: Certificate, warnings: tuple[str, ...]) -> Certificate:
        """Return the certificate of the present pair with warnings and notes about the whole run.

        warnings: warnings about the pair of inputs, known before the draws.
        """
        spec, redrawn, mechanism = self._spec, certificate.redrawn, self._sampler.mechanism
        pair = spec.pairs[self._number]
        texts = [*warnings, *filter(None, [getattr(mechanism, "doubt", None)])]
        texts += [_TIMED] if spec.statistics.timing else []
        is_doubted = certificate.refuted or spec.may_refute(certificate.p_value)
        is_reproducible = certificate.reproducible
        names = self._state.changed(self._number) if is_doubted or not is_reproducible else []
        texts += [state_words(names, redrawn, is_reproducible)] if names else []
        is_compared = redrawn is not None and redrawn.processes > 0
        texts += [_DIFFERED] if is_doubted and self._pool.differed and not is_compared else []
        doubts: list[str] = []
        redrawing_notes: list[str] = []
        if redrawn is not None:
            from dpaudit.auditing.redrawing import redrawing_remarks

            doubts, redrawing_notes = redrawing_remarks(redrawn)
        # A wrong type of an input is reported only if the user gave the inputs. Inputs that a
        # search made have the type that the user asked for.
        is_theirs = spec.search is None and certificate.failures
        doubtful = doubtful_inputs(pair, certificate) if is_theirs else []
        unseeded = [] if is_reproducible or names else [UNSEEDED]
        unseeded += [KERNELS] if not is_reproducible and torch_use.is_loaded() else []
        return replace(
            certificate,
            warnings=(*texts, *doubts, *certificate.warnings, *doubtful),
            adjacency=stated(pair),
            notes=(*unseeded, *certificate.notes, *notes(pair, spec.group), *redrawing_notes),
        )

    def _compared(self, seconds: float, ledger: Ledger, *refutation: Any) -> Redrawn | None:
        """Compare draws of this process with draws of new processes, and return a record of the
        comparison. Return None if no comparison is wanted or possible. Raise MechanismError if new
        processes draw from other distributions.

        seconds: duration of one draw.
        ledger, refutation: the fields of `Refutation`.
        """
        processes = new_processes.current() or self._processes
        targets = single_targets(self._spec.target)
        can_be_sent = not any(isinstance(one, CallableTarget) for one in targets)
        is_asked = processes is not self._processes or can_be_sent or self._pool.others_drew
        if not (is_asked and new_processes.PROCESSES):
            return None
        from dpaudit.auditing.redrawing import Redrawing, Refutation

        redrawing = Redrawing(
            self._spec, processes, self._pool, self._make, seconds, self._time.show_waiting
        )
        return redrawing.recorded(self._journal, Refutation(ledger, *refutation))

    def _most_workers(self) -> int:
        """Return the largest number of processes that may draw at any time of the audit."""
        spec = self._spec
        is_short = (
            spec.sampling.executor is None and (spec.sampling.time or 0.0) <= WORTHWHILE_SECONDS
        )
        if spec.sampling.workers == "auto" and (spec.statistics.timing or is_short):
            return 1
        return resolved(spec.sampling.executor, spec.sampling.workers)
