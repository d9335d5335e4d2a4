"""Audits of an unchanged mechanism, and the same audits of a mutant. Run in a new interpreter each
(planting.py), so that no module of the one is loaded in the other."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import CodeType
from typing import Any, Literal

from dpaudit.auditing.engine import run_audit
from dpaudit.auditing.ledger import PROBING
from dpaudit.auditing.options import MIN_SAMPLES
from dpaudit.auditing.planning import draws_for_leak
from dpaudit.auditing.source import sampler_maker
from dpaudit.auditing.spec import AuditSpec
from dpaudit.auditing.underpowered import raised_only
from dpaudit.certificates.certificate import Certificate
from dpaudit.certificates.result import AuditResult, Verdict
from dpaudit.certificates.traced import Finding, Site, Trace
from dpaudit.claims import PrivacyClaim, ProfilePoint
from dpaudit.errors import DpauditError, UsageError
from dpaudit.mutating.mutants import Reach
from dpaudit.mutating.spaces import space_of
from dpaudit.sampling.chunks import ToLearn, ToProbe
from dpaudit.searching.pair_search import NeighbourSearch
from dpaudit.stats.power import POWER
from dpaudit.targets.target import (
    ImportedTarget,
    IsolatedTarget,
    single_targets,
    starts_a_program,
)
from dpaudit.tracing.costs import Piece, sum_exceeds
from dpaudit.tracing.mechanism_trace import trace_pair
from dpaudit.tracing.runs.places import Followed

Answer = Literal["killed", "missed", "not shown to be a leak", "invalid", "not run"]

# Errors of an audit that say that its draws depend on each other.
_DEPENDENT = ("draws-repeat", "draws-differ", "new-process-differs")
# Draws of each pair from which it is seen which functions run.
_WATCHED_DRAWS = 32
_TRACE_SECONDS = 20.0
# Distributions of noise that is a whole number.
_WHOLE = ("discrete", "geometric")
# Share of the draws of an audit with which a search looks for a pair that shows a survivor.
SEARCH_SHARE = 1 / 8


@dataclass(frozen=True, slots=True)
class Baseline:
    """An audit of the unchanged mechanism.

    spec: the audit as it is run on each mutant: its pairs, and one process.
    left_out: why the audit judges no mutant; "" if it does.
    fails: whether the audit ends otherwise than with a pass.
    reach: the user's code that it runs.
    has_fractions: whether outputs contain numbers that are not whole, which may be noised values.
    known: kinds of the findings of a trace of its pairs that would be causes of a leak, and "sum"
        if the costs of all lines together exceed the claim, or are not known.
    search: finds pairs, and finds no leak of the unchanged mechanism; None if there is none.
    seconds: duration of the audit.
    """

    spec: AuditSpec
    left_out: str = ""
    fails: bool = False
    reach: Reach = field(default_factory=Reach)
    has_fractions: bool = False
    known: frozenset[str] = frozenset()
    search: NeighbourSearch | None = None
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the audits of a file say of a mutant.

    Attributes
    ----------
    answer : {'killed', 'missed', 'not shown to be a leak', 'invalid', 'not run'}
        Whether an audit killed the mutant, and what is known of a survivor.
    audit : str
        Name of the audit that killed the mutant, or whose pair or space shows the leak; "" if none.
    why : str
        What the trace or the search found, or the error.
    point : ProfilePoint or None
        The tested point (ε, δ) of the claim.
    epsilon_lower : float
        Lower bound for ε of the audit that killed the mutant, or of the pair that a search found;
        0 without one.
    draws : int or None
        Number of draws with which the audit would kill the mutant in 9 of 10 runs; None if unknown.
    pair : tuple of two inputs, or None
        The pair that a search found and that refutes the claim.
    """

    answer: Answer
    audit: str = ""
    why: str = ""
    point: ProfilePoint | None = None
    epsilon_lower: float = 0.0
    draws: int | None = None
    pair: tuple[Any, Any] | None = None


def baseline(spec: AuditSpec) -> Baseline:
    """Audit the unchanged mechanism, and see which code runs."""
    try:
        return _baseline(spec)
    except DpauditError as error:
        return Baseline(spec, f"without a bug: {error}", fails=True)


def _baseline(spec: AuditSpec) -> Baseline:
    if spec.requirements.expect == "violation":
        return Baseline(spec, "it expects a violation")
    if starts_a_program(spec.target):
        return Baseline(spec, "its mechanism runs in another interpreter or program")
    watched = _watched(spec) if spec.pairs else None
    result = run_audit(spec)
    if result.verdict is not Verdict.NO_VIOLATION_FOUND:
        why = f"without a bug: {result.error or f'{result.verdict.value}, as dpaudit run shows'}"
        return Baseline(spec, why, fails=True)
    if not result.certificates:
        return Baseline(spec, "it makes no draws")
    spec = _with_pairs(spec, result)
    reach, has_fractions = watched or _watched(spec)
    if not reach.functions:
        return Baseline(spec, "it runs no code of yours that can be read")
    traces = list(_traces(spec))
    known = {"sum" for trace in traces if trace is None or trace.exceeds}
    known |= {cause.kind for trace in traces if trace is not None for cause in trace.causes}
    search = next((search for search in space_of(spec) if not _searched(spec, search)), None)
    return Baseline(spec, "", False, reach, has_fractions, frozenset(known), search, result.seconds)


def _with_pairs(spec: AuditSpec, result: AuditResult) -> AuditSpec:
    """Return an audit with the pairs and the number of draws that its first run has chosen."""
    pairs = spec.pairs
    if result.searched is not None and isinstance(spec.search, NeighbourSearch):
        pairs = tuple(spec.search.pair(d1, d2) for d1, d2 in result.searched.found)
    samples = max(certificate.evidence.budget for certificate in result.certificates)
    return replace(spec, pairs=pairs, sampling=replace(spec.sampling, samples=samples, time=None))


def _watched(spec: AuditSpec) -> tuple[Reach, bool]:
    """Return the user's code that a few draws run, and that makes the mechanism; and whether their
    outputs have fractions."""
    target = spec.target.target if isinstance(spec.target, IsolatedTarget) else spec.target
    codes: set[CodeType] = set()
    numbers = []
    sys.setprofile(lambda frame, event, _: codes.add(frame.f_code) if event == "call" else None)
    try:
        with closing(sampler_maker(replace(spec, target=target))()) as sampler:
            for number in range(len(spec.pairs)):
                key = number, PROBING, 0
                sampler.probe(ToProbe(key, _WATCHED_DRAWS))
                outcomes = sampler.learn(ToLearn(key, _WATCHED_DRAWS)).fresh.release().outcomes
                numbers += [column.numbers for column in outcomes.columns]
    finally:
        sys.setprofile(None)
    followed = Followed((), (), baseline.__code__)
    # Generated code has other names, "" or "<string>", in place of a file.
    own_code = [
        code
        for code in codes
        if followed.owns(code.co_filename) and Path(code.co_filename).is_file()
    ]
    names = {name for code in own_code for name in code.co_names}
    parts = [part for part in single_targets(target) if isinstance(part, ImportedTarget)]
    names |= {part.path.rpartition(":")[2].partition(".")[0] for part in parts}
    functions = {
        (code.co_filename, code.co_firstlineno) for code in own_code if code.co_name != "<module>"
    }
    has_fractions = any(bool((column % 1 > 0).any()) for column in numbers)
    return Reach(frozenset(functions), frozenset(names)), has_fractions


def _traces(spec: AuditSpec) -> Iterator[Trace | None]:
    """Yield the trace of each pair; None for a pair that cannot be traced."""
    for pair in spec.pairs:
        trace = None
        with suppress(DpauditError):
            trace = trace_pair(spec.target, pair.d1, pair.d2, spec.claim, seconds=_TRACE_SECONDS)
        yield trace


def _searched(spec: AuditSpec, search: NeighbourSearch) -> Judgement | None:
    """Return the judgement if a search finds a pair that refutes the claim."""
    samples = max(MIN_SAMPLES, int(SEARCH_SHARE * spec.sampling.samples))
    sampling = replace(spec.sampling, samples=samples)
    with suppress(DpauditError):
        result = run_audit(replace(spec, pairs=(), search=search, sampling=sampling))
        pairs = () if result.searched is None else result.searched.found
        # The last pair is the simplest one that the search found, if it leaks, too.
        for certificate, pair in reversed([*zip(result.by_pair, pairs, strict=False)]):
            if certificate.refuted:
                point, lower = certificate.point, certificate.epsilon_lower
                return Judgement("missed", spec.name, "", point, lower, pair=pair)
    return None


def judgement(baselines: Sequence[Baseline]) -> Judgement:
    """Run the audits on the mechanism as it is in this process, with a planted bug."""
    survived: list[tuple[Baseline, AuditResult]] = []
    error = ""
    for base in baselines:
        try:
            result = run_audit(base.spec)
        except DpauditError as raised:
            error = error or str(raised)
            continue
        if result.certificates and all(map(raised_only, result.certificates)):
            error = error or "every call raises an exception"
            continue
        is_dependent = result.error_code in _DEPENDENT
        if result.is_refuted_alone or is_dependent:
            why = (result.error or "").partition(". ")[0]
            lower = 0.0 if is_dependent else result.epsilon_lower
            return Judgement("killed", base.spec.name, why, result.point, lower)
        error = error or result.error or ""
        survived.append((base, result))
    if error:
        return Judgement("invalid", why=error)
    traced = _traced(survived)
    if traced.draws is not None:
        return traced
    searches = (_searched(base.spec, base.search) for base, _ in survived if base.search)
    return next(filter(None, searches), traced)


def _traced(survived: Sequence[tuple[Baseline, AuditResult]]) -> Judgement:
    """Return the first leak that only traces with the bug show; else, a sum above the claim."""
    traced = Judgement("not shown to be a leak")
    for base, result in survived:
        name = base.spec.name
        for trace, certificate in zip(_traces(base.spec), result.certificates, strict=True):
            if trace is None:
                continue
            for finding in (f for f in trace.findings if f.kind not in base.known):
                if _is_leak(finding, trace, base):
                    draws = _draws(certificate, finding.cost)
                    return Judgement("missed", name, finding.words, certificate.point, draws=draws)
                if finding.kind == "sum":
                    traced = replace(traced, audit=name, why=finding.words)
    return traced


def _is_leak(finding: Finding, trace: Trace, base: Baseline) -> bool:
    """Return whether a finding shows a leak, and is no upper bound of one."""
    # If values are only compared, they may leak less, as in the sparse vector technique. If whole
    # numbers are released, the noise is whole, too.
    sites = [s for s in trace.sites if s.released or base.has_fractions or s.law in _WHOLE]
    is_costly = any(_exceeds(site, base.spec.claim) for site in sites)
    # The mean of two noisy counts costs less than both together.
    return finding.is_cause or (finding.kind == "sum" and is_costly)


def _exceeds(site: Site, claim: PrivacyClaim) -> bool:
    law = "normal" if site.unit == "μ" else "laplace"
    piece = None if site.total is None else Piece(law, (1.0, 1.0), site.total, released=False)
    return piece is not None and sum_exceeds([piece], claim)


def _draws(certificate: Certificate, cost: float | None) -> int | None:
    """Return how many draws would refute the cost of a line; None if no larger number is known."""
    epsilon = certificate.point.epsilon
    if cost is None or not 0 < epsilon < cost < math.inf:
        return None
    with suppress(UsageError):  # no number is known
        draws = draws_for_leak([certificate], cost / epsilon, POWER)
        return draws if draws > certificate.draws else None
    return None
