"""Runs an audit: loads the mechanism, audits pair after pair, gathers what came out."""

from __future__ import annotations

import logging
import math
import platform
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from dataclasses import asdict, replace
from functools import partial
from typing import Any

import numpy as np

from dpaudit.adapters.calls import ONE_BY_ONE
from dpaudit.adapters.pmf import check_stated
from dpaudit.auditing.checks import doubtful_inputs, exhausted
from dpaudit.auditing.exact_pmf import exact_certificates
from dpaudit.auditing.journal import Journal, opened_journal
from dpaudit.auditing.ledger import PairProgress
from dpaudit.auditing.options import MINIMUM_SAMPLES
from dpaudit.auditing.pair_audit import PROBING, PairAudit
from dpaudit.auditing.redrawing import Redrawing, Refutation, doubts
from dpaudit.auditing.schedule import FIRST_CALLS, PROBE, Plan, late_words, limits_for
from dpaudit.auditing.spec import AuditSpec
from dpaudit.auditing.underpowered import foreseen, misses_rare, too_few, too_weak
from dpaudit.certificates.certificate import Certificate, Redrawn
from dpaudit.certificates.result import (
    AuditResult,
    Ending,
    Exact,
    Failed,
    Progress,
    Repeated,
    Sampled,
    Verdict,
)
from dpaudit.certificates.searched import Searched
from dpaudit.errors import MechanismError
from dpaudit.float_errors import auditor_errstate
from dpaudit.hash_seed import USUAL, VARIABLE
from dpaudit.inputs.neighbouring import check_pair
from dpaudit.inputs.pairs import NeighbouringPair, notes, stated
from dpaudit.levels.candidates import Attack
from dpaudit.outcomes.set_order import hash_seed
from dpaudit.sampling.chunks import Chunk, FirstCalls, ToProbe
from dpaudit.sampling.executors import Setup, WorkerPool, drawing, new_processes, resolved
from dpaudit.sampling.executors.in_process import WORTHWHILE
from dpaudit.sampling.generators import preserved
from dpaudit.sampling.independence import DependentDrawsError, check_uncached
from dpaudit.sampling.sampler import Sampler
from dpaudit.sampling.state import State, changed, kept_state
from dpaudit.targets.construction import source_of
from dpaudit.targets.target import (
    CallableTarget,
    runs_in_another_process,
    single_targets,
    starts_a_program,
)
from dpaudit.version import __version__
from dpaudit.wording import UNSEEDED, counted

# Executors that draw on this machine, whose processes are started here.
_LOCAL = (None, "serial", "processes")
_AFAR = "the processes that draw are started elsewhere"
_NEW_PROCESSES = "waiting for new processes, which draw again"

# A search that tries fewer pairs has hardly begun.
_FEW_PAIRS = 20
# Of the time given: what takes less long than this is not said to be late.
_LATE = 1.1

# Variables that a warning names.
_NAMED = 3

_TIMED = (
    "the audit used elapsed times. They depend on the machine and its load: no seed repeats them, "
    "and the verdict assumes that other programs favour neither input (calls alternate at random)"
)

_UNLIKE = "equal seeds do not give equal outcomes, and "

_DIFFERED = (
    "a new process of the mechanism gave other outputs from the same seed than this one: does "
    "a process keep something, such as noise that it draws once?"
)

_log = logging.getLogger(__name__)

Notify = Callable[[Progress], None]


@auditor_errstate()
def run_audit(spec: AuditSpec, on_progress: Notify | None = None) -> AuditResult:
    """Audit `spec`; calls `on_progress` after every block.

    A mechanism that cannot be audited gives the verdict ERROR. Raises UsageError for a request
    that cannot be carried out, such as a target that is not there.
    """
    if spec.search is None or spec.pairs:
        return _traced(spec, _run(spec, on_progress))
    began = time.monotonic()
    try:
        found, searched = spec.search.find(spec, on_progress)
    except MechanismError as failure:
        failed = Failed(str(failure), code=failure.code)
        return _result(spec, failed, seconds=time.monotonic() - began, versions=versions())
    seconds = time.monotonic() - began
    result = _traced(found, _run(found, on_progress))
    redrawn = getattr(result.decisive, "redrawn", None)
    is_doubted = bool(searched.kept) and _is_doubted(result)
    warned = [_state_words(searched.kept, redrawn)] if is_doubted else []
    if result.verdict is Verdict.NO_VIOLATION_FOUND:
        warned += _unsearched(searched)
    elif result.verdict is Verdict.VIOLATION and 2 * searched.refused > searched.pairs:
        warned.append(
            f"no output came for either input of {searched.refused:,} of the {searched.pairs:,} "
            f"pairs tried ({searched.refusal}): the space may not be what the mechanism takes"
        )
    return replace(
        result,
        searched=searched,
        seconds=result.seconds + seconds,
        warnings=tuple(dict.fromkeys([*result.warnings, *warned])),
    )


def _traced(spec: AuditSpec, result: AuditResult) -> AuditResult:
    """Return a result with a trace of the pair that refutes the claim, where one can be had."""
    if spec.no_trace or result.verdict is not Verdict.VIOLATION:
        return result
    refuting = result.decisive
    numbers = [n for n, one in enumerate(result.certificates) if one is refuting]
    if not numbers:  # nothing was drawn
        return result
    # Most audits refute nothing.
    from dpaudit.tracing.apart import trace_apart
    from dpaudit.tracing.judging.draws import with_draws

    pair, pace = spec.pairs[numbers[0]], result.seconds / max(1, result.draws)
    found = trace_apart(spec.target, pair.d1, pair.d2, spec.claim, pace=pace)
    return replace(result, trace=with_draws(found, result))


def _unsearched(searched: Searched) -> list[str]:
    """Return warnings of a search that has seen little."""
    said = []
    if searched.refused:
        pairs = counted(searched.refused, "pair")
        said += [f"no output came for either input of {pairs}: {searched.refusal}"]
    if searched.pairs < _FEW_PAIRS:
        pairs = counted(searched.pairs, "pair")
        said += [f"the search tried only {pairs}; more draws, or more time, try more"]
    return said


def _is_doubted(result: AuditResult) -> bool:
    """Whether a verdict stands, or may yet by what others of a family show, against the claim, and
    no certificate says already that state is kept."""
    said = any("keeps state" in one for pair in result.certificates for one in pair.warnings)
    family = result.family
    may = family is not None and result.p_value <= 1 - family.confidence
    return (result.verdict is Verdict.VIOLATION or may) and not said


def _run(spec: AuditSpec, on_progress: Notify | None) -> AuditResult:
    with _journal(spec) as journal:
        return _audited(journal, on_progress)


def check_attacks(spec: AuditSpec) -> None:
    """Load the attacks of a user. Raises what the audit would."""
    if spec.attacks:
        from dpaudit.attacks.user_attacks import load_attacks

        load_attacks(spec.attacks, travels=spec.draws_ahead)


def check_mechanism(spec: AuditSpec) -> None:
    """Load what draws, and draw nothing. Raises what the audit would."""
    if spec.exact:
        check_stated(spec.target)
        return
    with closing(_maker(spec)()) as sampler:
        check_uncached(sampler.mechanism.name, sampler.mechanism.parts)


def _journal(spec: AuditSpec) -> AbstractContextManager[Journal]:
    if spec.journal is None or spec.exact:
        return nullcontext(Journal(spec))
    return opened_journal(spec, spec.journal)


def _audited(journal: Journal, on_progress: Notify | None) -> AuditResult:
    spec = journal.spec
    run = _Run(journal, on_progress)
    ending: Ending
    try:
        ending = run.audit_all()
    except MechanismError as failure:
        ending = Failed(str(failure), tuple(run.certificates), failure.code)
    cannot_fail = _underpowered(spec, run.certificates)
    allowed = [cannot_fail] if cannot_fail and spec.allow_underpowered else []
    return _result(
        spec,
        ending,
        seconds=journal.now(),
        versions=versions(run.certificates),
        warnings=(*journal.warnings, *run.notices, *([] if spec.strict else allowed)),
        underpowered=None if allowed else cannot_fail,
        resumed=journal.resumed,
        workers=run.workers,
        # A strict audit may be allowed to be under-powered: that alone does not fail it.
        notes=(*run.notes, *(allowed if spec.strict else [])),
    )


def _result(spec: AuditSpec, ending: Ending, **more: Any) -> AuditResult:
    """Return the result of an audit, with what it says of itself. more: of how it went."""
    return AuditResult(
        name=spec.name,
        claim=spec.tested,
        target=spec.target.describe(),
        confidence=spec.confidence,
        seed=spec.seed,
        ending=ending,
        expect=spec.expect,
        repeated=Repeated(spec.runs, spec.claim) if spec.runs > 1 else None,
        grouped=spec.grouped,
        request=spec.request,
        source=source_of(spec.target),
        command=spec.command,
        family=spec.family,
        strict=spec.strict,
        **more,
    )


def _underpowered(spec: AuditSpec, certificates: Sequence[Certificate]) -> str | None:
    """Return why no certificate could have refuted the claim, or would have as surely as is asked
    for; None when one could, or has."""
    if any(one.refuted for one in certificates):
        return None
    budgets = [one.budget for one in certificates if spec.time is not None]
    found = foreseen(spec) or (too_few(spec, max(budgets)) if budgets else None)
    if found is not None or not certificates:
        return found
    reasons = []
    if spec.require_power is not None:
        reasons.append(too_weak(certificates, spec.require_power))
    if spec.require_rare is not None:
        points = spec.tested.points()
        reasons.append(misses_rare(certificates, spec.require_rare, points, spec.command))
    return "; ".join(filter(None, reasons)) or None


def versions(certificates: Iterable[Certificate] = ()) -> dict[str, str]:
    """Return the versions that a result depends on, and the hash seed that a user has chosen."""
    import scipy

    from dpaudit.attacks.trees import NAME

    found = {
        "dpaudit": __version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "python": platform.python_version(),
    }
    seed = hash_seed()
    if seed not in (None, USUAL):
        found[VARIABLE] = seed
    # Trees that were left out in the end may have been tried on fewer draws.
    if any(tried.attack == NAME for one in certificates for tried in one.attacks):
        from importlib import metadata

        with suppress(metadata.PackageNotFoundError):
            found["scikit-learn"] = metadata.version("scikit-learn")
    return found


class _Run:
    """One audit under way; `certificates` holds the pairs that have ended."""

    def __init__(self, journal: Journal, on_progress: Notify | None) -> None:
        self.certificates: list[Certificate] = []
        self.notices: tuple[str, ...] = ()
        self.notes: tuple[str, ...] = ()
        self.workers: int | None = None
        self._number = 0
        self._moment: PairProgress | None = None
        self._shown: Progress | None = None
        self._spec, self._journal, self._on_progress = journal.spec, journal, on_progress
        self._users: tuple[Attack, ...] = ()
        self._make = _maker(self._spec)
        self._state: State = {}
        # Where no command or test run has processes for all of its audits.
        self._processes = new_processes.NewProcesses()

    def audit_all(self) -> Exact | Sampled:
        if self._spec.exact:
            return Exact(exact_certificates(self._spec))
        warnings = [check_pair(pair, self._spec.group) for pair in self._spec.pairs]
        if self._spec.attacks:
            from dpaudit.attacks.user_attacks import load_attacks

            self._users = load_attacks(self._spec.attacks, travels=self._spec.draws_ahead)
        sampler = self._make()
        check_uncached(sampler.mechanism.name, sampler.mechanism.parts)
        self._state = kept_state(*sampler.mechanism.parts)
        with (
            closing(sampler),
            preserved(sampler.carried),
            closing(self._processes),
            drawing(self._spec.executor, self._setup(sampler)) as crew,
            self._noted(crew),
        ):
            for number, pair in enumerate(self._spec.pairs):
                found = self._audit(number, sampler, crew)
                said = [
                    *warnings[number],
                    *filter(None, [getattr(sampler.mechanism, "doubt", None)]),
                ]
                said += [_TIMED] if self._spec.timing else []
                is_doubted = found.refuted or self._spec.may_refute(found.p_value)
                is_looked_at = is_doubted or not found.reproducible
                names = self._changed(number, sampler) if is_looked_at else []
                said += [_state_words(names, found.redrawn, found.reproducible)] if names else []
                is_compared = found.redrawn is not None and found.redrawn.processes > 0
                said += [_DIFFERED] if is_doubted and crew.differed and not is_compared else []
                said += [] if found.redrawn is None else doubts(found.redrawn)
                unseeded = () if found.reproducible or names else (UNSEEDED,)
                remarked = replace(
                    found,
                    warnings=(*said, *found.warnings, *self._doubtful(pair, found)),
                    adjacency=stated(pair),
                    notes=(
                        *unseeded,
                        *found.notes,
                        *notes(pair, self._spec.group),
                        *_not_compared(found.redrawn),
                    ),
                )
                self.certificates.append(remarked)
            self._journal.finish()
        return Sampled(tuple(self.certificates))

    def _doubtful(self, pair: NeighbouringPair, found: Certificate) -> list[str]:
        """Return warnings of inputs that may be none; nobody has typed those of a search."""
        return [] if self._spec.search is not None else list(doubtful_inputs(pair, found))

    def _setup(self, sampler: Sampler) -> Setup:
        """Return what an executor is given. Times are never taken beside others who draw."""
        spec = self._spec
        is_auto, is_alone = spec.workers == "auto", spec.timing
        if is_auto and spec.executor is None:
            return Setup(sampler, self._make, left=None if is_alone else self._left)
        workers = 1 if is_auto and is_alone else resolved(spec.executor, spec.workers)
        return Setup(sampler, self._make, workers)

    @contextmanager
    def _noted(self, crew: WorkerPool) -> Iterator[None]:
        """Note who drew, however it ends."""
        try:
            yield
        finally:
            self.workers = crew.workers
            self.notes = () if crew.note is None else (crew.note,)

    def _left(self, rate: float) -> float:
        """Return about how many seconds of drawing are left, at so many draws a second."""
        spec, moment = self._spec, self._moment
        later = len(spec.pairs) - self._number - 1
        if spec.time is not None:
            seconds = spec.time - self._journal.now()
            if later or moment is None or moment.left is None:
                return seconds
            return min(seconds, moment.left / rate)
        coming = spec.samples if moment is None or moment.left is None else moment.left
        return (coming + later * spec.samples) / rate

    def _audit(self, number: int, sampler: Sampler, crew: WorkerPool) -> Certificate:
        self._number, self._moment = number, None
        draws = self._journal.recording(crew, lambda: crew.is_here)
        single_draws = sampler.mechanism.interleaved
        # Looked at where it will draw: a mechanism that dies must not take this process along.
        (first,) = draws([FirstCalls((number, PROBING, 1), FIRST_CALLS)])
        is_mine = self._spec.executor in (None, "serial", "processes")
        if single_draws and is_mine and self._spec.time is not None:
            self._late(number, self._hands() / max(first.seconds, 1e-9), -4 * PROBE)
        (probe,) = draws([ToProbe((number, PROBING, 0), PROBE)])
        columns, by_outputs = (
            max(first.columns, probe.columns),
            self._spec.tested.counts_single_outputs,
        )
        limits = limits_for(columns, single_draws=single_draws, by_outputs=by_outputs)
        late = partial(self._late, number)
        seconds = self._seconds(number)
        plan = Plan(self._spec.samples, seconds, limits, self._journal.clock, late)
        notify = partial(self._notify, number, self._journal.now(), seconds)
        compare = partial(self._compared, number, crew, first.seconds)
        audit = PairAudit(self._spec, number, plan, draws, notify, self._users, compare)
        try:
            found = audit.run()
        except MechanismError as error:
            explained = self._explained(error, number, sampler, failed=audit.has_failures)
            if explained is None:
                raise
            raise explained from error
        if found.failures and (words := self._exhausted(number)):
            raise MechanismError(words)
        return replace(found, reproducible=probe.reproducible)

    def _explained(
        self, error: MechanismError, number: int, sampler: Sampler, *, failed: bool
    ) -> MechanismError | None:
        """Return an error with what calls change or use up, if it may come of that; else None.

        failed: whether a draw was an exception.
        """
        if failed and (words := self._exhausted(number)):
            return MechanismError(words)
        is_dependent = isinstance(error, DependentDrawsError)
        names = self._changed(number, sampler) if failed or is_dependent else []
        is_here = self._spec.executor in _LOCAL and not runs_in_another_process(self._spec.target)
        if is_dependent and not names and is_here:  # workers may have made all calls
            sampler.draw(_few(number))
            names = self._changed(number, sampler)
        more: list[str] = []
        if names:
            question = "" if is_dependent else ": do they use anything up?"
            more.append(f"; calls change {_listed(names)}{question}")
        is_batch = not (sampler.mechanism.interleaved or starts_a_program(self._spec.target))
        if is_dependent and is_batch:
            more += ["; with ", ONE_BY_ONE, ", dpaudit calls it once for each output"]
        return MechanismError(*error.parts, *more) if more else None

    def _exhausted(self, number: int) -> str | None:
        """Return how calls use the mechanism up, where they do."""
        spec = self._spec
        look = partial(exhausted, self._make, spec.target, spec.pairs[number], spec.samples)
        return self._journal.once(f"used up {number}", look)

    def _compared(
        self, number: int, crew: WorkerPool, seconds: float, refuted: Refutation
    ) -> Redrawn | None:
        """Compare a refutation with draws of new processes; None where nothing asks for that.
        Raises MechanismError where they differ. seconds: that a draw takes."""
        processes = new_processes.current() or self._processes
        is_asked = processes is not self._processes or self._can_be_sent or crew.others_drew
        if not (is_asked and new_processes.PROCESSES):
            return None
        if self._spec.executor not in _LOCAL and not runs_in_another_process(self._spec.target):
            return Redrawn(0, 0, _AFAR)
        look = partial(self._waits, _NEW_PROCESSES)
        redrawing = Redrawing(self._spec, processes, self._make, seconds, look)

        def plain() -> tuple[dict[str, Any], str]:
            redrawn, words = redrawing.compared(refuted)
            return asdict(redrawn), words

        found = self._journal.once(f"compared {number}", plain)
        if found is None:
            return Redrawn(0, 0, "the journal has no draws of new processes")
        redrawn, words = found
        if words:
            raise MechanismError(words)
        return Redrawn(**redrawn)

    @property
    def _can_be_sent(self) -> bool:
        """Whether new processes can import the mechanism for themselves."""
        targets = single_targets(self._spec.target)
        return not any(isinstance(one, CallableTarget) for one in targets)

    def _changed(self, number: int, sampler: Sampler) -> list[str]:
        """Return the variables of the mechanism that its calls have changed."""
        if self._spec.resume and not runs_in_another_process(self._spec.target):
            sampler.draw(_few(number))  # all other calls may have been made before
        names = list(changed(self._state, kept_state(*sampler.mechanism.parts)))
        return names + (["os.environ"] if sampler.changes_environment else [])

    def _hands(self) -> int:
        """Return how many will draw, if it takes as long as it may."""
        spec = self._spec
        is_short = spec.executor is None and (spec.time or 0.0) <= WORTHWHILE
        if spec.workers == "auto" and (spec.timing or is_short):
            return 1
        return resolved(spec.executor, spec.workers)

    def _seconds(self, number: int) -> float | None:
        """Return this pair's share of the time that is left."""
        if self._spec.time is None:
            return None
        left = self._spec.time - self._journal.clock()
        return max(0.0, left) / (len(self._spec.pairs) - number)

    def _late(self, number: int, rate: float, spent: int) -> None:
        """Say, once, that even the fewest draws will take longer than they may.

        rate: draws a second.  spent: draws of the pair so far; below 0: those to make besides.
        """
        if self._spec.time is None:
            return
        pairs = len(self._spec.pairs)
        coming = (pairs - number) * MINIMUM_SAMPLES - spent
        # The clock is asked each time, so that a journal tells the same to any number of workers.
        takes = self._journal.clock() + coming / rate
        if takes > _LATE * self._spec.time and not self.notices:
            self.notices = (late_words(self._spec.time, rate, pairs, takes),)
            _log.warning("%s: %s", self._spec.name, self.notices[0])

    def _notify(
        self, number: int, start: float, seconds: float | None, moment: PairProgress
    ) -> None:
        self._journal.note(moment)
        self._moment = moment
        if self._on_progress is None:
            return
        elapsed = max(self._journal.now() - start, 1e-9)
        rate = moment.draws / elapsed
        remaining = (moment.budget - moment.draws) / rate
        if not moment.is_planned and seconds is not None:
            # The fewest draws are made however long they take.
            remaining = max(0.0, seconds - elapsed, (MINIMUM_SAMPLES - moment.draws) / rate)
        self._shown = Progress(
            name=self._spec.name,
            pair=self._spec.pairs[number].label,
            draws=moment.draws,
            budget=moment.budget if moment.is_planned else 0,
            rate=rate,
            wealth=moment.wealth,
            epsilon_lower=moment.epsilon_lower,
            remaining=remaining,
        )
        self._on_progress(self._shown)

    def _waits(self, words: str) -> None:
        """Show that the audit waits for something else than draws of its own."""
        if self._on_progress is not None and self._shown is not None:
            self._on_progress(replace(self._shown, remaining=math.inf, waiting=words))


def _few(number: int) -> Chunk[Any]:
    """Return calls that count for nothing."""
    return FirstCalls((number, PROBING, 2), FIRST_CALLS)


def _state_words(
    names: Sequence[str], redrawn: Redrawn | None, is_reproducible: bool = True
) -> str:
    """Return that calls change variables, and whether outputs seem to depend on these."""
    words = f"the mechanism keeps state between calls (calls changed {_listed(names)}); "
    words = words if is_reproducible else _UNLIKE + words
    if redrawn is not None and redrawn.processes:
        processes = counted(redrawn.processes, "new process")
        return f"{words}{processes}, which begin without it, drew as this one did"
    return (
        f"{words}no new process was compared with this one, and if the outputs depend on that "
        "state, they are not independent and may refute a claim that holds"
    )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMED]) + (", …" if len(names) > _NAMED else "")


def _not_compared(redrawn: Redrawn | None) -> list[str]:
    if redrawn is None or redrawn.processes:
        return []
    return [f"not compared with draws of new processes: {redrawn.note}"]


def _maker(spec: AuditSpec) -> Callable[[], Sampler]:
    """Return what makes a sampler, here or in another process. It names nothing else of the audit:
    a worker that unpickles it imports what draws, which is half of what an audit imports."""
    return partial(
        Sampler,
        spec.target,
        spec.pairs,
        spec.seed,
        fail_on_error=spec.on_error == "fail",
        adversary=spec.claim.adversary,
        timing=spec.timing,
        # Workers that others start may have another hash seed.
        text_orders=spec.executor in (None, "serial", "processes"),
    )
