"""What a test says of a mechanism: `assert_private`, `assert_violates`."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, Literal

from dpaudit.api import MoreOptions, audit, search
from dpaudit.auditing.journal import remove
from dpaudit.certificates.result import AuditResult
from dpaudit.claims import PrivacyClaim, make_claim, parameters
from dpaudit.errors import UsageError
from dpaudit.reports.findings import is_expected
from dpaudit.reports.json import entry
from dpaudit.reports.text import warnings_of
from dpaudit.sampling.executors.new_processes import compared_with
from dpaudit.testing.session import Kept, Session, current
from dpaudit.wording import did_you_mean

Mechanism = Callable[..., Any] | str | list[str]

# Of the reason why an audit cannot fail.
_ALLOWED = " cannot refute "


class AuditWarning(UserWarning):
    """What an audit warns of in a test that passes, such as equal outputs of both inputs."""


class _NotGiven:
    """In the place of an input, since None is one."""

    def __repr__(self) -> str:
        return "not given"


NOT_GIVEN = _NotGiven()
# Keys of a search, as in a configuration file; its space may stand alone.
_OF_A_SEARCH = ("space", "inside", "outside", "keep", "form")


# Options of `audit` that a test may give beside those of its claim.
_USUAL = ("search", "params", "samples", "time", "confidence", "seed", "workers", "on_progress")


def assert_private(
    mechanism: Mechanism,
    d1: Any = NOT_GIVEN,
    d2: Any = NOT_GIVEN,
    claim: PrivacyClaim | None = None,
    **options: Any,
) -> AuditResult:
    """Fail the test if the mechanism leaks more than is claimed, as far as draws show it.

    Parameters
    ----------
    mechanism : callable, str or list of str
        As of `dpaudit.audit`.
    d1, d2 : Any
        Neighbouring inputs, handed over as they are and never changed. Or, in their place,
        `search=SPACE` and `adjacency=RELATION`: the pair that leaks most is looked for first, as by
        `dpaudit.search`.
    claim : PrivacyClaim, optional
        What is claimed. Or give its numbers: `epsilon=1.0`, `epsilon=1.0, delta=1e-5`, `mu=0.5`,
        `rho=0.1`.
    **options : Any
        Of `dpaudit.audit`. By default 100,000 draws of both inputs together at confidence 0.9999,
        from seed 0; `[tool.dpaudit]` in pyproject.toml sets others for all tests.

    Returns
    -------
    AuditResult
        No violation was found.

    Raises
    ------
    AssertionError
        With the report, if the claim is refuted, the audit ended with an error, or it could not
        have failed (`allow_underpowered=True` allows that), or not as surely as `require_power` and
        `require_rare` ask for; with `strict=True` also for a warning.
    UsageError
        For a request that cannot be carried out.

    Notes
    -----
    A test with the same code and seed has the same outcome every time, unless `time` plans its
    draws or the mechanism has randomness that no seed reaches. Of a correct mechanism and a new
    seed, it fails with probability at most 1 - confidence (docs/method.md §4). To pass proves
    nothing about other inputs, rarer events or more draws.

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
        raise AssertionError(_said(result))
    _warn(result)
    return result


def assert_violates(
    mechanism: Mechanism,
    d1: Any = NOT_GIVEN,
    d2: Any = NOT_GIVEN,
    claim: PrivacyClaim | None = None,
    **options: Any,
) -> AuditResult:
    """Fail the test unless draws prove that the mechanism leaks more than is claimed.

    Parameters
    ----------
    mechanism, d1, d2, claim, **options
        As of `assert_private`.

    Returns
    -------
    AuditResult
        The claim was refuted.

    Raises
    ------
    AssertionError
        With the report, if the claim is not refuted or the audit ended with an error; with
        `strict=True` also for a warning.
    UsageError
        For a request that cannot be carried out.

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
        raise AssertionError(_said(result))
    _warn(result)
    return result


def _said(result: AuditResult) -> str:
    """Return the report; what cannot fail begins with that: pytest's summary shows little."""
    text = result.report()
    if result.underpowered is None:
        return text
    return f"UNDER-POWERED: {' '.join(result.underpowered.split())}\n\n{text}"


def _warn(result: AuditResult) -> None:
    """Show the warnings of an audit, of which a test that passes shows no report."""
    __tracebackhide__ = True
    for text in warnings_of(result):
        if _ALLOWED in text:  # it gets here only where the test says allow_underpowered=True
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
    """Return the result of an audit of the test that is running, and keep it for the run's report.

    expect: the verdict that the test asks for.
    """
    __tracebackhide__ = True
    try:
        return _audited(mechanism, d1, d2, claim, options, expect)
    except (UsageError, TypeError) as error:
        # Of a request that cannot be carried out, the line of the test is the one to look at.
        raise error.with_traceback(None) from None


def _audited(
    mechanism: Mechanism,
    d1: Any,
    d2: Any,
    claim: PrivacyClaim | None,
    options: Mapping[str, Any],
    expect: Literal["violation", "pass"] | None,
) -> AuditResult:
    session = current()
    if session.test is not None:
        _check_marked(session.test.options)
    given, claim = _parted(claim, options)
    given = session.options(given)
    if session.test is not None:
        given.setdefault("name", session.test.name())
    with nullcontext() if session.test is None else compared_with(session.processes()):
        result = _run(mechanism, d1, d2, claim, given)
    if session.test is not None:
        result = replace(result, command=_repeating(session, session.test.repeated))
    result = replace(result, expect=expect)
    if session.test is not None:
        alpha = 1 - result.confidence if result.ending.by_chance else 0.0
        draws = max((one.budget for one in result.certificates), default=0)
        session.test.kept.append(Kept(result.name, tuple(entry(result)), alpha, draws))
    return result


def _known() -> list[str]:
    return [*_USUAL, *MoreOptions.__annotations__]


def _check_marked(options: Mapping[str, Any]) -> None:
    """Raise UsageError for an option of a test's marker that no audit has."""
    known = _known()
    for name in options:
        if name not in known:
            is_of_claim = name in {one.name for one in parameters()}
            why = " Claims belong into the assertion." if is_of_claim else did_you_mean(name, known)
            raise UsageError(
                f"the marker dpaudit: unknown option {name!r}.{why}", code="key-unknown"
            )


def _parted(
    claim: PrivacyClaim | None, options: Mapping[str, Any]
) -> tuple[dict[str, Any], PrivacyClaim]:
    """Return the options of the audit, and the claim, which its numbers may stand for."""
    known = _known()
    of_claims = {one.name for one in parameters()} - set(known)
    numbers = {name: value for name, value in options.items() if name in of_claims}
    given = {name: value for name, value in options.items() if name not in of_claims}
    for name in given:
        if name == "expect":
            raise TypeError(
                "unexpected keyword argument 'expect': assert_private expects a pass, and "
                "assert_violates a violation; leave it out, and call the one you mean"
            )
        if name not in known:
            near = did_you_mean(name, [*known, *of_claims])
            raise TypeError(f"unexpected keyword argument {name!r}.{near}")
    if claim is None:
        if not numbers:
            raise UsageError(
                "nothing is claimed; give epsilon=…, or a claim, as PureDP(1.0)",
                code="option-missing",
            )
        return given, make_claim(numbers)
    if numbers:
        raise UsageError(
            f"give the claim or its numbers, not both: {', '.join(numbers)}",
            code="options-conflict",
        )
    return given, claim


def _run(
    mechanism: Mechanism, d1: Any, d2: Any, claim: PrivacyClaim, given: dict[str, Any]
) -> AuditResult:
    """Return the result. A journal is for a run that was ended before: of one that has come to its
    end nothing is kept, so that the next run draws anew."""
    how = given.pop("search", None)
    if how is None:
        _check_inputs(d1, d2)
        run = partial(audit, mechanism, d1, d2, claim)
    else:
        run = partial(search, mechanism, claim, **_searching(how, d1, d2, given))
    if "journal" not in given:
        return run(**given)
    given.setdefault("resume", True)
    result = run(**given)
    remove(given["journal"], result.name)
    return result


def _check_inputs(d1: Any, d2: Any) -> None:
    for name, value in (("d1", d1), ("d2", d2)):
        if value is NOT_GIVEN:
            raise UsageError(
                f"{name} is missing; give two neighbouring inputs, or search='list of number in "
                "[0, 1]' and adjacency='add-remove'",
                code="option-missing",
            )


def _searching(how: Any, d1: Any, d2: Any, given: dict[str, Any]) -> dict[str, Any]:
    """Return the keywords of a search, taken out of those given."""
    if d1 is not NOT_GIVEN or d2 is not NOT_GIVEN:
        raise UsageError("give either d1 and d2, or search, not both", code="options-conflict")
    said = dict(how) if isinstance(how, Mapping) and "space" in how else {"space": how}
    for key in said:
        if key not in _OF_A_SEARCH:
            near = did_you_mean(str(key), _OF_A_SEARCH)
            raise UsageError(f"search: unknown key {key!r}.{near}", code="key-unknown")
    return {**said, "adjacency": given.pop("adjacency", None)}


def _repeating(session: Session, test: str) -> str:
    """Return the command that runs a test again, with what the command line has changed."""
    forced = session.forced.get("samples")
    return shlex.join(
        ["pytest", test, *([f"--dpaudit-samples={forced}"] if forced is not None else [])]
    )
