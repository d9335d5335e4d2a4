"""Run an audit: `run_audit` turns an `AuditSpec` into a result.

It searches for pairs if the audit asks for a search, opens the journal, loads the mechanism
(source.py), audits each pair of inputs (pair_audit.py), and assembles an `AuditResult` with one
certificate per pair (results.py). If a pair refutes the claim, it traces the line that leaks.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace

from dpaudit.auditing.ledger import Ledger
from dpaudit.auditing.pair_audit import PairAudit, probe
from dpaudit.auditing.results import failed, failed_search, result_of, with_search
from dpaudit.auditing.source import Source, loaded_attacks, sampler_maker
from dpaudit.auditing.spec import AuditSpec
from dpaudit.auditing.time_left import Journal, Notify, TimeLeft
from dpaudit.certificates.certificate import Certificate
from dpaudit.certificates.certify import certify
from dpaudit.certificates.result import (
    AuditResult,
    Exact,
    Failed,
    Interrupted,
    Sampled,
    Verdict,
)
from dpaudit.errors import MechanismError, StopAudit
from dpaudit.float_errors import auditor_errstate
from dpaudit.inputs.neighbouring import check_pair
from dpaudit.inputs.pairs import stated
from dpaudit.sampling.independence import check_uncached

Check = Callable[[], None]

_UNCHECKED = (
    "the audit was interrupted before it checked the refutation: neither whether draws depend on "
    "each other, nor with draws of new processes"
)


@auditor_errstate()
def run_audit(
    spec: AuditSpec, on_progress: Notify | None = None, check: Check | None = None
) -> AuditResult:
    """Run an audit, and return its result. The verdict is ERROR if the mechanism cannot be audited.
    Raise UsageError for a wrong specification, such as a target that does not exist.

    on_progress: called with a Progress after every block of draws.
    check: called after every block, before the block is recorded. If it, `on_progress` or a signal
        handler raises StopAudit, the audit ends with the result of its bets, if there are draws.
        None: StopAudit is raised to the caller.
    """
    if spec.search is None or spec.pairs:
        return _traced(spec, _run(spec, on_progress, check))
    start = time.monotonic()
    try:
        spec, searched = spec.search.find(spec, on_progress)
    except MechanismError as error:
        return failed_search(spec, error, time.monotonic() - start)
    seconds = time.monotonic() - start
    result = _traced(spec, _run(spec, on_progress, check))
    return with_search(result, searched, seconds)


def _run(spec: AuditSpec, on_progress: Notify | None, check: Check | None) -> AuditResult:
    """Run an audit whose pairs are known, with its journal if it has one."""
    if spec.journaling.journal is None or spec.statistics.exact:
        return _audited(Journal(spec), on_progress, check)
    from dpaudit.auditing.journal import opened_journal

    with opened_journal(spec) as journal:
        return _audited(journal, on_progress, check)


def _audited(journal: Journal, on_progress: Notify | None, check: Check | None) -> AuditResult:
    """Audit all pairs, and return the result, however the audit ends."""
    source = Source(journal, TimeLeft(journal, on_progress), check)
    ledgers: list[Ledger] = []
    certificates: list[Certificate] = []
    ending: Sampled | Exact | Failed
    try:
        if source.spec.statistics.exact:
            # Imported here, since few mechanisms state the distribution of their output.
            from dpaudit.auditing.exact_pmf import exact_certificates

            ending = Exact(exact_certificates(source.spec))
        else:
            _audit_pairs(source, ledgers, certificates)
            ending = Sampled(tuple(certificates))
    except MechanismError as error:
        ending = failed(source.spec, error, certificates)
    except StopAudit:
        if len(ledgers) > len(certificates) and ledgers[-1].checkpoint is not None:
            certificates.append(_interrupted(ledgers[-1]))
        if check is None or not certificates:
            raise
        ending = Interrupted(tuple(certificates), pairs=len(source.spec.pairs))
    result = result_of(source, ending)
    if source.spec.sampling.certification_seed is None or not ledgers:
        return result
    return replace(result, fresh=tuple(ledger.fresh_counts() for ledger in ledgers))


def _audit_pairs(source: Source, ledgers: list[Ledger], certificates: list[Certificate]) -> None:
    """Audit each pair. Append its ledger when it begins, and its certificate when it ends."""
    for pair in source.spec.pairs:
        check_pair(pair, source.spec.group)
    with source.opened():
        for number in range(len(source.spec.pairs)):
            ledgers.append(probe(source, number))
            certificates.append(PairAudit(source, ledgers[number]).run())
        source.journal.finish()


def _interrupted(ledger: Ledger) -> Certificate:
    """Return the certificate of a pair that was interrupted, from its bets alone."""
    spec, pair = ledger.spec, ledger.spec.pairs[ledger.number]
    certificate = certify(ledger.evidence())
    warnings = [*check_pair(pair, spec.group), *ledger.warnings]
    warnings += [_UNCHECKED] if certificate.refuted else []
    return replace(certificate, pair=pair.label, warnings=tuple(warnings), adjacency=stated(pair))


def _traced(spec: AuditSpec, result: AuditResult) -> AuditResult:
    """Return the result, with a trace of a pair that refutes the claim (docs/method.md §14)."""
    refuting = result.decisive if result.verdict is Verdict.VIOLATION else None
    numbers = [n for n, pair in enumerate(result.certificates) if pair is refuting]
    if spec.no_trace or not numbers or isinstance(result.ending, Interrupted):
        return result
    # Imported here, since most audits refute nothing and need no trace.
    from dpaudit.tracing.forked_trace import trace_apart, with_draws

    pair, pace = spec.pairs[numbers[0]], result.seconds / max(1, result.draws)
    trace = trace_apart(spec.target, pair.d1, pair.d2, spec.claim, pace=pace)
    return replace(result, trace=with_draws(trace, result))


def check_attacks(spec: AuditSpec) -> None:
    """Load the user's own attacks. Raise the error that an audit would raise if one cannot be
    loaded."""
    loaded_attacks(spec.statistics, spec.sampling)


def check_mechanism(spec: AuditSpec) -> None:
    """Load the mechanism without drawing. Raise the error that an audit would raise if this
    fails."""
    if spec.statistics.exact:
        from dpaudit.adapters.pmf import stated_law

        stated_law(spec.target)
        return
    with closing(sampler_maker(spec)()) as sampler:
        check_uncached(sampler.mechanism.name, sampler.mechanism.parts)
