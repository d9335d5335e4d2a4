"""Assemble the result of an audit from the way it ended. Added are values that follow from the
options, versions of packages, and warnings and notes about the whole run."""

from __future__ import annotations

import math
import platform
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from importlib import metadata
from typing import Any

import numpy as np

from dpaudit.auditing.options import Journaling, flag_of
from dpaudit.auditing.safeguards.kept_state import state_words
from dpaudit.auditing.source import Source
from dpaudit.auditing.spec import AuditSpec
from dpaudit.auditing.underpowered import why_underpowered
from dpaudit.certificates.certificate import Certificate
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
from dpaudit.errors import Given, MechanismError, UsageError
from dpaudit.hash_seed import USUAL, VARIABLE
from dpaudit.levels.portfolio import TREES
from dpaudit.outcomes.set_order import hash_seed
from dpaudit.targets.construction import arguments_of, source_of
from dpaudit.version import __version__
from dpaudit.wording import counted

# Least number of pairs that a search has to try; if it tries fewer, the result has a warning.
_MIN_PAIRS = 20
# Parameters of claims that a mechanism may have under the same name.
_SHARED_NAMES = frozenset(("epsilon", "delta", "mu", "sigma", "rho"))

_INTERRUPTED = "interrupted before its planned end"


def result_of(source: Source, ending: Sampled | Exact | Failed) -> AuditResult:
    """Return the result of an audit that ended as `ending` says."""
    spec, journal = source.spec, source.journal
    certificates = () if isinstance(ending, Exact) else ending.certificates
    is_interrupted = isinstance(ending, Interrupted)
    why = None if is_interrupted else why_underpowered(spec, certificates)
    is_allowed, is_strict = spec.requirements.allow_underpowered, spec.requirements.strict
    # A strict audit fails by every warning, so that too little power is a note if it is allowed.
    allowed = [why] if why is not None and is_allowed else []
    defaults, parameters = other_values(spec)
    result = replace(
        _plain_result(spec, ending, journal.now()),
        versions=versions(certificates),
        warnings=(
            *journal.warnings,
            *source.time.warning,
            *source.warnings,
            *defaults,
            *([] if is_strict else allowed),
        ),
        underpowered=None if allowed else why,
        resumed=journal.resumed,
        workers=source.workers,
        notes=(
            *source.notes,
            *parameters,
            *(allowed if is_strict else []),
            *([_resumable(spec.journaling)] if is_interrupted else []),
        ),
    )
    if not is_interrupted or result.verdict is Verdict.VIOLATION:
        return result
    return replace(result, underpowered=_INTERRUPTED)


def failed(spec: AuditSpec, error: MechanismError, certificates: Iterable[Certificate]) -> Failed:
    """Return the ending of an audit that `error` stopped, with the certificates of the pairs before
    it."""
    return Failed(spec.origin.message(error), tuple(certificates), error.code)


def failed_search(spec: AuditSpec, error: MechanismError, seconds: float) -> AuditResult:
    """Return the result of an audit that `error` stopped while it searched for pairs."""
    return replace(_plain_result(spec, failed(spec, error, ()), seconds), versions=versions())


def with_search(result: AuditResult, searched: Searched, seconds: float) -> AuditResult:
    """Return the result of an audit, with a record of the search for its pairs and its duration."""
    warnings = dict.fromkeys([*result.warnings, *_search_warnings(searched, result)])
    seconds += result.seconds
    return replace(result, searched=searched, seconds=seconds, warnings=tuple(warnings))


def versions(certificates: Iterable[Certificate] = ()) -> dict[str, str]:
    """Return the versions of the packages on which a result depends. scikit-learn is among them if
    an attack used trees, and PYTHONHASHSEED is added if the user has set it."""
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
    attacks = (tried.attack for certificate in certificates for tried in certificate.attacks)
    if TREES in attacks:
        with suppress(metadata.PackageNotFoundError):
            names["scikit-learn"] = metadata.version("scikit-learn")
    return names


def other_values(spec: AuditSpec) -> tuple[list[str], list[str]]:
    """Return (warnings, notes) about parameters of the mechanism that differ from the claim: they
    have the name of a parameter of the claim, but another value. A default value gives a warning, a
    value that the user gave a note. There are none if a library made the claim."""
    claim = spec.claim if spec.grouped is None else spec.grouped.claim
    stated = (spec.origin.request or {}).get("settings", {}).get("claim", claim.parameters())
    arguments = {} if spec.claimed_by is not None else arguments_of(spec.target)
    defaults: list[str] = []
    notes: list[str] = []
    for name in arguments.keys() & stated.keys() & _SHARED_NAMES:
        claimed, (value, is_given, option) = stated[name], arguments[name]
        if not _is_number(claimed) or not _is_number(value) or math.isclose(claimed, value):
            continue
        claimed, value = (str(number).removesuffix(".0") for number in (claimed, value))
        keyword = f"{option}={{{name!r}: {claimed}}}"
        flag = (
            f"--init '{{{name}: {claimed}}}'" if option == "init" else f"--param {name}={claimed}"
        )
        usual = "" if is_given else "its default "
        ran = f"the mechanism ran with {usual}{name} = {value}; the claim is {claimed} ("
        text = spec.origin.message(UsageError(ran, Given(keyword, flag), ")"))
        (notes if is_given else defaults).append(text)
    return sorted(defaults), sorted(notes)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _plain_result(spec: AuditSpec, ending: Ending, seconds: float) -> AuditResult:
    """Return a result with only its ending, and what follows from the options."""
    return AuditResult(
        name=spec.name,
        claim=spec.tested,
        target=spec.target.describe(),
        confidence=spec.statistics.confidence,
        seed=spec.sampling.seed,
        ending=ending,
        seconds=seconds,
        versions={},
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
    )


def _resumable(journaling: Journaling) -> str:
    if journaling.journal is not None:
        return f"{flag_of('resume')} continues this run from its journal"
    return f"with {flag_of('journal')} DIR, an interrupted run can continue"


def _search_warnings(searched: Searched, result: AuditResult) -> list[str]:
    warnings, family = [], result.family
    may_refute = family is not None and result.p_value <= 1 - family.confidence
    texts = (text for certificate in result.certificates for text in certificate.warnings)
    is_warned = any("keeps state" in text for text in texts)
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
