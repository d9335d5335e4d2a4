"""Define the assertions for tests: `assert_private`, `assert_violates` and `assert_same_law`."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, Literal, TypedDict, Unpack

from dpaudit.api import CommonOptions, MoreOptions, audit, check_keywords, search
from dpaudit.auditing.options import DefaultSamples
from dpaudit.certificates.result import AuditResult, Progress, Verdict
from dpaudit.claims import PrivacyClaim
from dpaudit.claims.registry import ClaimNumbers, stated_claim
from dpaudit.errors import UsageError
from dpaudit.reports.audit_report import is_expected, reason, warnings_of
from dpaudit.reports.bounds_report import bounds
from dpaudit.reports.json import entry
from dpaudit.reports.numbers import unglued
from dpaudit.same_law import parity
from dpaudit.sampling.executors import Workers
from dpaudit.sampling.executors.new_processes import compared_with
from dpaudit.testing.session import KeptAudit, PytestRun, current
from dpaudit.wording import did_you_mean

Mechanism = Callable[..., Any] | str | list[str]

# Text that only the warning of an under-powered audit contains. A test passes with this warning
# only if the user allowed it, so it is not shown.
_ALLOWED = " cannot refute "


class AuditWarning(UserWarning):
    """Category of the Python warnings of a passing test. Each warning of the audit becomes one, for
    example that both inputs give equal outputs. (A failing test shows the report instead.)"""


class _NotGiven:
    """Class of the default value of d1 and d2. This is not None, since None is a possible input."""

    def __repr__(self) -> str:
        return "not given"


NOT_GIVEN = _NotGiven()
# Keys that the option `search` may have if its value is a mapping, as in a configuration file. A
# text as value is the space of inputs.
_OF_A_SEARCH = ("space", "inside", "outside", "keep", "form")


class _Budget(TypedDict, total=False):
    params: Mapping[str, Any] | None
    samples: int
    time: float | None
    confidence: float
    seed: int
    workers: Workers
    on_progress: Callable[[Progress], None] | None


class AssertionOptions(MoreOptions, _Budget, total=False):
    """Keyword arguments of the assertions: numbers of the claim, a search in place of inputs, and
    the options of `dpaudit.audit`."""

    search: Any


_OF_CLAIMS = ClaimNumbers.__annotations__
_KNOWN = [name for name in AssertionOptions.__annotations__ if name not in _OF_CLAIMS]


def assert_private(
    mechanism: Mechanism,
    d1: Any = NOT_GIVEN,
    d2: Any = NOT_GIVEN,
    claim: PrivacyClaim | None = None,
    **options: Unpack[AssertionOptions],
) -> AuditResult:
    """Fail the test if draws prove that the mechanism leaks more than is claimed.

    Parameters
    ----------
    mechanism : callable, str or list of str
        A function `mechanism(data, rng)` or `mechanism(data, size, rng)`, an import path such as
        `mine.py:noisy_count`, or the words of a command. All forms of `dpaudit.audit` are accepted.
    d1, d2 : Any
        The two neighbouring inputs. They are passed to the mechanism and never changed. In their
        place, give the keyword arguments `search=SPACE` and `adjacency=RELATION`: the test then
        searches for the pair that leaks most, as `dpaudit.search` does, and audits this pair.
    claim : PrivacyClaim, optional
        The claim, such as `PureDP(1.0)`. In its place, give its parameters as keyword arguments:
        `epsilon=1.0`, `epsilon=1.0, delta=1e-5`, `mu=0.5` or `rho=0.1`.
    **options : Any
        Further options of `dpaudit.audit`. The defaults are as many draws of both inputs together
        as about 10 seconds of drawing allow, at most 100,000, confidence 0.9999 and seed 0;
        `[tool.dpaudit]` in pyproject.toml changes them for all tests.

    Returns
    -------
    AuditResult
        The result, whose verdict is that no violation was found.

    Raises
    ------
    AssertionError
        In each of these cases; the message is the report of the audit. The claim is refuted. The
        audit ended with an error. The audit lacked the power to refute any leak (allowed by
        `allow_underpowered=True`), or its power is below `require_power` or `require_rare`. The
        audit gave a warning, and `strict=True`.
    UsageError
        If the arguments are invalid.

    Notes
    -----
    With the same code, seed and stated `samples`, the test has the same outcome every time, unless
    the mechanism has randomness that the seed does not control. If the claim is true,
    the test fails for a new seed with probability at most 1 - confidence (docs/method.md §4). A
    test that passes proves nothing about other inputs, rarer events or more draws.

    Examples
    --------
    >>> from dpaudit.testing import assert_private
    >>> def laplace(x, size, rng):
    ...     return x + rng.laplace(size=size)
    >>> result = assert_private(laplace, 0, 1, epsilon=1.0, samples=20_000)
    >>> result.epsilon_lower < 1.0
    True
    """
    __tracebackhide__ = True
    result = audited(mechanism, d1, d2, claim, options, expect="pass")
    if not is_expected(result):
        raise AssertionError(_failure(result))
    _warn(result)
    return result


def assert_violates(
    mechanism: Mechanism,
    d1: Any = NOT_GIVEN,
    d2: Any = NOT_GIVEN,
    claim: PrivacyClaim | None = None,
    **options: Unpack[AssertionOptions],
) -> AuditResult:
    """Fail the test unless draws prove that the mechanism leaks more than is claimed.

    Parameters
    ----------
    mechanism, d1, d2, claim, **options
        As in `assert_private`.

    Returns
    -------
    AuditResult
        The result, whose verdict is a violation of the claim.

    Raises
    ------
    AssertionError
        If the claim is not refuted, if the audit ended with an error, or if the audit gave a
        warning and `strict=True`. The message is the report of the audit.
    UsageError
        If the arguments are invalid.

    Examples
    --------
    >>> from dpaudit.testing import assert_violates
    >>> def too_little_noise(x, size, rng):
    ...     return x + rng.laplace(scale=0.5, size=size)
    >>> assert_violates(too_little_noise, 0, 1, epsilon=1.0).epsilon_lower > 1.0
    True
    """
    __tracebackhide__ = True
    result = audited(mechanism, d1, d2, claim, options, expect="violation")
    if not is_expected(result):
        raise AssertionError(_failure(result))
    _warn(result)
    return result


class ParityAssertion(CommonOptions, _Budget, total=False):
    """Keyword arguments of `assert_same_law`, which are those of `dpaudit.parity`."""

    tau: float
    python_b: str | None


def assert_same_law(
    a: Mechanism, b: Mechanism, inputs: Sequence[Any], **options: Unpack[ParityAssertion]
) -> AuditResult:
    """Fail the test if draws prove that two implementations of a mechanism differ on an input.

    Parameters
    ----------
    a, b : callable, str or list of str
        The implementations, in each form that `assert_private` takes.
    inputs : sequence of Any
        The inputs, each of which both implementations get.
    **options : Any
        Further options of `dpaudit.parity`, such as `tau`, the total variation distance that is
        allowed. The defaults are those of `assert_private`.

    Returns
    -------
    AuditResult
        The result, whose verdict is that no violation was found.

    Raises
    ------
    AssertionError
        If the total variation distance on some input is more than tau, or if the audit ended with
        an error, lacked power, or gave a warning and `strict=True`. The message is the report.
    UsageError
        If the arguments are invalid.

    Notes
    -----
    If the implementations have the same law, the test fails for a new seed with probability at most
    1 - confidence. A test that passes proves nothing about other inputs or smaller distances.

    Examples
    --------
    >>> from dpaudit.testing import assert_same_law
    >>> def plain(x, rng):
    ...     return x + rng.laplace()
    >>> def batched(x, size, rng):
    ...     return x + rng.laplace(size=size)
    >>> assert_same_law(plain, batched, [0], samples=10_000).delta_lower
    0.0
    """
    __tracebackhide__ = True
    try:
        check_keywords("assert_same_law", assert_same_law, options, ParityAssertion)
        result = _kept(partial(_run_parity, a, b, inputs), options, expect="pass")
    except (UsageError, TypeError) as error:
        raise error.with_traceback(None) from None
    if not is_expected(result):
        raise AssertionError(_failure(result))
    _warn(result)
    return result


def _failure(result: AuditResult) -> str:
    """Return the reason on one line, for pytest's summary, and the report below it."""
    verdict, text = result.verdict, reason(result)
    if result.underpowered is not None and verdict is not Verdict.ERROR:
        first = f"UNDER-POWERED: {result.underpowered}"
    elif verdict is Verdict.ERROR or result.failing_warnings:
        first = f"{verdict.value}: {text}"
    else:
        first = f"{verdict.value}: {bounds(result)[0].brief(result)}"
    return f"{unglued(' '.join(first.split()))}\n\n{result.report()}"


def _warn(result: AuditResult) -> None:
    """Issue the warnings of an audit as Python warnings."""
    # pytest shows no report for a test that passes.
    __tracebackhide__ = True
    for text in warnings_of(result):
        if _ALLOWED in text:  # a test passes with this warning only if allow_underpowered=True
            continue
        warnings.warn(f"{result.name}: {text}", AuditWarning, stacklevel=3)


def audited(
    mechanism: Mechanism,
    d1: Any,
    d2: Any,
    claim: PrivacyClaim | None,
    options: Mapping[str, Any],
    expect: Literal["violation", "pass"] | None = None,
) -> AuditResult:
    """Run an audit for the current test, and return its result. The result is kept for the report
    of the test run. `expect` is the verdict with which the test passes."""
    __tracebackhide__ = True
    try:
        keywords, claim = parted(claim, options)
        return _kept(partial(_run, mechanism, d1, d2, claim), keywords, expect)
    except (UsageError, TypeError) as error:
        # Without a traceback, pytest shows the line of the test that failed, not a line of dpaudit.
        raise error.with_traceback(None) from None


def _kept(
    run: Callable[[dict[str, Any]], AuditResult],
    keywords: Mapping[str, Any],
    expect: Literal["violation", "pass"] | None,
) -> AuditResult:
    session = current()
    if session.test is not None:
        _check_marked(session.test.options)
    keywords = session.options(keywords)
    if session.test is not None:
        keywords.setdefault("name", session.test.name())
    with nullcontext() if session.test is None else compared_with(session.processes()):
        result = run(keywords)
    if session.test is not None:
        command = _repeating(session, session.test.repeated, _chosen_samples(keywords, result))
        result = replace(result, command=command)
    result = replace(result, expect=expect)
    if session.test is not None:
        alpha = 1 - result.confidence if result.ending.by_chance else 0.0
        draws = max((certificate.draws for certificate in result.certificates), default=0)
        session.test.kept.append(KeptAudit(result.name, entry(result), alpha, draws))
    return result


def _check_marked(options: Mapping[str, Any]) -> None:
    """Raise UsageError if the marker of a test has an unknown option."""
    for name in options:
        if name not in _KNOWN:
            near = did_you_mean(name, _KNOWN)
            why = " Claims belong into the assertion." if name in _OF_CLAIMS else near
            raise UsageError(
                f"the marker dpaudit: unknown option {name!r}.{why}", code="key-unknown"
            )


def parted(
    claim: PrivacyClaim | None, options: Mapping[str, Any]
) -> tuple[dict[str, Any], PrivacyClaim]:
    """Return the options of the audit, and the claim; numbers such as epsilon make one if None."""
    numbers = {name: value for name, value in options.items() if name in _OF_CLAIMS}
    keywords = {name: value for name, value in options.items() if name not in _OF_CLAIMS}
    for name in keywords:
        if name == "expect":
            raise TypeError(
                "unexpected keyword argument 'expect': assert_private expects a pass, and "
                "assert_violates a violation; leave it out, and call the one you mean"
            )
        if name not in _KNOWN:
            near = did_you_mean(name, [*_KNOWN, *_OF_CLAIMS])
            raise TypeError(f"unexpected keyword argument {name!r}.{near}")
    return keywords, stated_claim(claim, numbers)


def _run(
    mechanism: Mechanism, d1: Any, d2: Any, claim: PrivacyClaim, keywords: dict[str, Any]
) -> AuditResult:
    """Return the result of an audit, or of a search with an audit."""
    how = keywords.pop("search", None)
    if how is None:
        _check_inputs(d1, d2)
        run = partial(audit, mechanism, d1, d2, claim)
    else:
        run = partial(search, mechanism, claim, **_searching(how, d1, d2, keywords))
    return _journaled(run, keywords)


def _run_parity(
    a: Mechanism, b: Mechanism, inputs: Sequence[Any], keywords: dict[str, Any]
) -> AuditResult:
    # The settings of a project may have options that are about two inputs.
    known = {name: keywords[name] for name in keywords if name in ParityAssertion.__annotations__}
    return _journaled(partial(parity, a, b, inputs), known)


def _journaled(run: Callable[..., AuditResult], keywords: dict[str, Any]) -> AuditResult:
    """Run an audit. Remove its journal at the end, so that the next run makes new draws."""
    if "journal" not in keywords:
        return run(**keywords)
    keywords.setdefault("resume", True)
    result = run(**keywords)
    # Imported here, since most tests have no journal.
    from dpaudit.auditing.journal import remove

    remove(keywords["journal"], result.name)
    return result


def _check_inputs(d1: Any, d2: Any) -> None:
    for name, value in (("d1", d1), ("d2", d2)):
        if value is NOT_GIVEN:
            raise UsageError(
                f"{name} is missing; give two neighbouring inputs, or search='list of number in "
                "[0, 1]' and adjacency='add-remove'",
                code="option-missing",
            )


def _searching(how: Any, d1: Any, d2: Any, keywords: dict[str, Any]) -> dict[str, Any]:
    """Return the keywords of `dpaudit.search` for the option `how`, and move `adjacency` there."""
    if d1 is not NOT_GIVEN or d2 is not NOT_GIVEN:
        raise UsageError("give either d1 and d2, or search, not both", code="options-conflict")
    keys = dict(how) if isinstance(how, Mapping) and "space" in how else {"space": how}
    for key in keys:
        if key not in _OF_A_SEARCH:
            near = did_you_mean(str(key), _OF_A_SEARCH)
            raise UsageError(f"search: unknown key {key!r}.{near}", code="key-unknown")
    return {**keys, "adjacency": keywords.pop("adjacency", None)}


def _chosen_samples(keywords: Mapping[str, Any], result: AuditResult) -> int | None:
    """Return the number of draws if the speed of the mechanism decided it; else None."""
    is_chosen = isinstance(keywords["samples"], DefaultSamples) if "samples" in keywords else False
    if not is_chosen or result.searched is not None or not result.certificates:
        return None
    return result.certificates[0].evidence.budget


def _repeating(session: PytestRun, test: str, chosen: int | None) -> str:
    """Return the pytest command that repeats a test with the same number of draws."""
    forced = session.forced.get("samples", chosen)
    return shlex.join(
        ["pytest", test, *([f"--dpaudit-samples={forced}"] if forced is not None else [])]
    )
