"""Define the functions of dpaudit that run a mechanism from Python: `audit`, `search` and `trace`.

Users import them from `dpaudit`. They turn their arguments into a checked `AuditSpec` and run the
same engine as the command line. bounds.py has the functions for outputs, guesses and scores that
were recorded elsewhere.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

from dpaudit.auditing.engine import run_audit
from dpaudit.auditing.option_parsing import refused
from dpaudit.auditing.options import (
    DEFAULTS,
    OPTIONS,
    TWO_BUDGETS,
    BoundMethod,
    DefaultSamples,
    OnError,
    Stop,
    records_of,
    verify,
)
from dpaudit.auditing.spec import AuditSpec, PairSearch
from dpaudit.certificates.result import AuditResult, Progress
from dpaudit.certificates.traced import Trace
from dpaudit.claims import PrivacyClaim
from dpaudit.claims.registry import ClaimNumbers, stated_claim
from dpaudit.errors import UsageError
from dpaudit.inputs.adjacency import Adjacency, parse_adjacency
from dpaudit.inputs.pairs import NeighbouringPair, describe_pair
from dpaudit.progress_bar import notebook_bar
from dpaudit.sampling.executors import Workers
from dpaudit.targets.target import (
    AnyTarget,
    CallableTarget,
    CommandTarget,
    ImportedTarget,
    IsolatedTarget,
    Limits,
    SingleTarget,
    TwoTargets,
    repeated,
)
from dpaudit.wording import did_you_mean

if TYPE_CHECKING:
    from concurrent.futures import Executor


Target = Callable[..., Any] | str | list[str]

# Arguments that are no values of their options, but objects of Python, or parts of the claim.
_OBJECTS = ("mechanism", "d1", "d2", "claim", *ClaimNumbers.__annotations__)
# Largest value of the argument `noises` of `trace`, the number of noise sequences to try.
_MAX_NOISES = 1_000


class CommonOptions(TypedDict, total=False):
    """Types of the further keyword arguments of `parity`, which those of `audit` contain.
    docs/options.md describes them."""

    name: str | None
    batch_arg: str | None
    data_arg: str | None
    rng_arg: str | None
    post_process: Callable[[Any], Any] | None
    on_error: OnError
    bound: BoundMethod
    stop: Stop
    allow_underpowered: bool
    require_rare: float | None
    strict: bool
    isolate: bool
    python: str | None
    timeout: float | None
    memory_limit: int | None
    executor: Executor | str | None
    floating_point: bool
    attacks: Sequence[Any]
    journal: str | os.PathLike[str] | None
    resume: bool


class MoreOptions(ClaimNumbers, CommonOptions, total=False):
    """Types of the further keyword arguments of `search` and of the assertions, which are those of
    `audit`."""

    adjacency: Adjacency | str | None
    repeat: int
    range: Sequence[Any] | None
    exact: bool
    certification_seed: int | None
    require_power: float | None
    timing: bool
    no_trace: bool


def audit(  # noqa: D417  # options without a text here are listed by section
    mechanism: Callable[..., Any] | str | list[str],
    d1: Any,
    d2: Any,
    claim: PrivacyClaim | Literal["library"] | None = None,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    adversary: Any = None,
    guarantees: Any = None,
    tradeoff: Any = None,
    mu: float | None = None,
    sigma: float | None = None,
    order: float | None = None,
    rho: float | None = None,
    params: Mapping[str, Any] | None = None,
    samples: int = DEFAULTS["samples"],
    time: float | None = DEFAULTS["time"],
    confidence: float = DEFAULTS["confidence"],
    seed: int = DEFAULTS["seed"],
    workers: Workers = DEFAULTS["workers"],
    on_progress: Callable[[Progress], None] | None = None,
    batch_arg: str | None = None,
    data_arg: str | None = None,
    rng_arg: str | None = None,
    post_process: Callable[[Any], Any] | None = None,
    adjacency: Adjacency | str | None = None,
    repeat: int = 1,
    on_error: OnError = "auto",
    range: Sequence[Any] | None = None,  # noqa: A002  # the name of the option
    exact: bool = False,
    bound: BoundMethod = "game",
    stop: Stop = "auto",
    certification_seed: int | None = None,
    python: str | None = None,
    isolate: bool = False,
    timeout: float | None = None,
    memory_limit: int | None = None,
    executor: Executor | str | None = None,
    floating_point: bool = False,
    timing: bool = False,
    attacks: Sequence[Any] = (),
    name: str | None = None,
    allow_underpowered: bool = False,
    require_power: float | None = None,
    require_rare: float | None = None,
    strict: bool = False,
    journal: str | os.PathLike[str] | None = None,
    resume: bool = False,
    no_trace: bool = False,
) -> AuditResult:
    """Look for statistical proof that `mechanism` leaks more than `claim` allows on (d1, d2).

    Parameters
    ----------
    mechanism : callable, str or list of str
        A callable; the import path `package.module:attr` of a callable; or the words of a command
        line, for a program that speaks the protocol of docs/guides/protocol.md. The first parameter
        of a callable takes the dataset. A parameter `rng`, if there is one, gets a
        `numpy.random.Generator`; otherwise `random_state` or `generator` without a default does, or
        `seed`, without a default or None by default, gets an integer drawn from it. A parameter
        `size`, if there is one, gets the number of outputs that the call must return. The options
        `data_arg`, `rng_arg` and `batch_arg` name other parameters; `"none"` for the last two means
        that the callable has no such parameter.
    d1, d2 : Any
        Neighbouring inputs. The mechanism gets these objects themselves; dpaudit never changes an
        input.
    claim : PrivacyClaim or 'library', optional
        The claim to test, such as `PureDP(1.0)`. In its place, give its parameters as keyword
        arguments: `epsilon=1.0`, `epsilon=1.0, delta=1e-5`, `mu=0.5` or `rho=0.1`. `'library'` asks
        the library of the mechanism for its claim (docs/guides/library-claims.md).
    params : mapping of str to Any, optional
        Keyword arguments with which the mechanism is called.
    samples : int, optional
        Number of draws, of both inputs together, from 100 to 10¹⁵. Default: as many as about 30
        seconds of drawing allow, at most 1,000,000 (docs/budget.md).
    time : float, optional
        Budget in seconds, above 0, in place of `samples`. The speed of the mechanism then decides
        the number of draws.
    confidence : float, default 0.99
        1 minus the probability of a false alarm, in [0.5, 1).
    seed : int, default 0
        Seed of all random numbers, at least 0. With stated `samples`, equal seeds give equal
        results, for any `workers`.
    workers : int or 'auto', default 1
        Number of processes that draw. With two or more, it must be possible to pickle or import
        the mechanism. With `'auto'`, this process draws. If more than about 5 seconds of drawing
        are left, one further process per core also draws.
    on_progress : callable, optional
        Called with a `Progress` after every block of draws. Default: in a notebook, a bar below the
        cell; elsewhere, nothing.

    Returns
    -------
    AuditResult
        The result, with `verdict`, `epsilon_lower`, `delta_lower`, `p_value`, and a certificate for
        the pair.

    Other Parameters
    ----------------
    epsilon, delta, adversary, tradeoff, mu, sigma, order, rho
        "Claim" in docs/options.md. `guarantees` are the points (ε, δ) of a `PrivacyProfile`.
    batch_arg, data_arg, rng_arg, post_process, adjacency, repeat, on_error, range, exact
        "What to audit" in docs/options.md. `post_process` is a callable, `range` a sequence.
    bound, stop, certification_seed
        "Budget" in docs/options.md.
    python, isolate, timeout, memory_limit, executor
        "Processes" in docs/options.md. `timeout` is in seconds, `memory_limit` in bytes; `executor`
        may be a `concurrent.futures.Executor` with `workers` processes, which is left open.
    floating_point, timing, attacks
        "Attacks" in docs/options.md. `attacks` may contain attack objects in place of import paths.
    name, allow_underpowered, require_power, require_rare, strict, journal, resume, no_trace
        "Output" in docs/options.md.

    Raises
    ------
    UsageError
        For a request that cannot be carried out. If the mechanism fails during the audit, there is
        no exception: the verdict is ERROR, with a message.

    Notes
    -----
    If the mechanism satisfies the claim, the verdict is VIOLATION with probability at most
    1 - confidence. Each bound is valid with probability at least `confidence` (docs/method.md §2
    to §4). NO_VIOLATION_FOUND proves nothing about other inputs, rarer events or more draws.

    Examples
    --------
    >>> import dpaudit
    >>> def laplace(x, size, rng):
    ...     return x + rng.laplace(size=size)
    >>> result = dpaudit.audit(laplace, 0, 1, epsilon=0.25, samples=2_000)
    >>> result.verdict
    <Verdict.VIOLATION: 'VIOLATION'>
    >>> result.epsilon_lower > 0.25
    True
    """
    arguments = locals()
    pair = NeighbouringPair(d1, d2, parse_adjacency(adjacency), describe_pair(d1, d2))
    return run(arguments, pairs=(pair,))


def search(
    mechanism: Callable[..., Any] | str | list[str],
    claim: PrivacyClaim | Literal["library"] | None = None,
    *,
    space: Any,
    form: str | None = None,
    inside: bool = False,
    outside: bool = False,
    keep: int = 1,
    params: Mapping[str, Any] | None = None,
    samples: int = DEFAULTS["samples"],
    time: float | None = DEFAULTS["time"],
    confidence: float = DEFAULTS["confidence"],
    seed: int = DEFAULTS["seed"],
    workers: Workers = DEFAULTS["workers"],
    on_progress: Callable[[Progress], None] | None = None,
    **more: Unpack[MoreOptions],
) -> AuditResult:
    """Find the pair of neighbouring inputs on which `mechanism` leaks most, and audit it.

    Parameters
    ----------
    mechanism : callable, str or list of str
        As in `audit`.
    claim : PrivacyClaim or 'library', optional
        The claim to test; in its place, its parameters as keyword arguments, as in `audit`.
    space : str or mapping
        Description of all possible inputs, such as `"list of number in [0, 1]"`
        (docs/guides/find-the-pair.md).
    form : {'array', 'numpy', 'pandas', 'polars'}, optional
        Type of the inputs that the mechanism gets. Default: lists, dicts and plain values.
    inside : bool, default False
        Whether to try only inputs in the space. By default a few other inputs are tried as well:
        values beyond the bounds of the space, NaN, missing values, new categories. A leak on such
        an input is reported in `searched.beyond`, and does not change the verdict.
    outside : bool, default False
        Whether a leak on an input outside of the space counts for the verdict.
    keep : int, default 1
        Number of pairs to audit, from 1 to 100. The pairs share the error probability.
    params, samples, time, confidence, seed, workers, on_progress : optional
        As in `audit`. About a quarter of the draws, or of the time, is used for the search; these
        draws are made in this process and certify nothing.

    Returns
    -------
    AuditResult
        As in `audit`, with a certificate for each pair; `searched` describes how the pairs were
        found. If a pair seems to leak, a simpler pair that leaks as well is also audited. All pairs
        share the error probability.

    Other Parameters
    ----------------
    adjacency
        The relation between two neighbouring inputs, such as `"add-remove"`. Required.
    **more
        All other keywords of `audit`.

    Raises
    ------
    UsageError
        For a request that cannot be carried out, such as a space without values.
    TypeError
        For an unknown keyword.

    Notes
    -----
    If the mechanism satisfies the claim on all neighbours, the verdict is VIOLATION with
    probability at most 1 - confidence: the draws that choose a pair do not certify it
    (docs/method.md). NO_VIOLATION_FOUND proves nothing about pairs that were not found.

    Examples
    --------
    >>> import dpaudit
    >>> def total(numbers, size, rng):
    ...     return sum(numbers) + rng.laplace(scale=0.5, size=size)
    >>> result = dpaudit.search(
    ...     total, epsilon=1.0, space="list of number in [0, 1]", adjacency="add-remove",
    ...     samples=100_000,
    ... )
    >>> result.verdict
    <Verdict.VIOLATION: 'VIOLATION'>
    """
    from dpaudit.searching.pair_search import neighbour_search

    check_keywords("search", search, more)
    relation = parse_adjacency(more.get("adjacency"))
    pairs = neighbour_search(space, relation, form=form, inside=inside, outside=outside, keep=keep)
    arguments = {
        "mechanism": mechanism, "claim": claim, "params": params, "samples": samples, "time": time,
        "confidence": confidence, "seed": seed, "workers": workers, "on_progress": on_progress,
    }  # fmt: skip
    return run({**arguments, **more}, search=pairs)


class TraceOptions(ClaimNumbers, total=False):
    """Types of the further keyword arguments of `trace`. docs/options.md describes them."""

    batch_arg: str | None
    data_arg: str | None
    rng_arg: str | None
    post_process: Callable[[Any], Any] | None
    python: str | None


def trace(
    mechanism: Callable[..., Any] | str,
    d1: Any,
    d2: Any,
    claim: PrivacyClaim | None = None,
    *,
    params: Mapping[str, Any] | None = None,
    noises: int = 3,
    follow: Sequence[str] = (),
    primitives: Sequence[Callable[..., Any] | str] = (),
    **more: Unpack[TraceOptions],
) -> Trace:
    """Run `mechanism` on two inputs with the same noise, and name the lines where the runs differ.

    Parameters
    ----------
    mechanism : callable or str
        As in `audit`, except that a program in another language is not possible.
    d1, d2 : Any
        Neighbouring inputs.
    claim : PrivacyClaim, optional
        The claim with which the privacy cost of each line's noise is compared; in its place, its
        parameters as keyword arguments, as in `audit`. Without a claim, a line is reported as a
        cause of a leak only if no claim would allow it.
    params : mapping of str to Any, optional
        Keyword arguments with which the mechanism is called.
    noises : int, default 3
        Number of noise sequences to try, from 1 to 1,000. For each sequence, the mechanism is run
        about four times.
    follow : sequence of str, default ()
        Installed packages, folders or files whose lines may be reported. Lines of code that is not
        installed may always be reported.
    primitives : sequence of callable or str, default ()
        Functions that add noise to their first argument, or import paths of such functions. dpaudit
        knows the usual functions of common libraries.

    Returns
    -------
    Trace
        `findings` lists the differences between the runs on both inputs, causes of leaks first.
        `sites` lists the lines that draw noise, with their privacy cost.

    Other Parameters
    ----------------
    batch_arg, data_arg, rng_arg, post_process, python
        As in `audit`.

    Raises
    ------
    UsageError
        For a mechanism that cannot be traced, such as a program in another language.
    TypeError
        For an unknown keyword.

    Notes
    -----
    A trace is a diagnosis, valid for the noise that was tried. A trace does not prove that a
    mechanism leaks (use `audit` for a proof) or that it does not leak (docs/method.md).

    Examples
    --------
    >>> import dpaudit
    >>> def noisy(x, rng):
    ...     return x + rng.laplace(scale=0.5)
    >>> trace = dpaudit.trace(noisy, 0, 1, epsilon=1.0)
    >>> trace.sites[0].cost
    2.0
    """
    from dpaudit.tracing.mechanism_trace import trace_pair

    check_keywords("trace", trace, more, TraceOptions)
    if isinstance(d2, PrivacyClaim) and claim is None:
        why = "d2 is a claim: write trace(mechanism, d1, d2, claim), with two inputs"
        raise UsageError(why, code="arguments-wrong")
    numbers = _numbers(more)
    if claim is not None or numbers:
        claim = stated_claim(claim, numbers)
        verify(claim=claim)
    options = {**DEFAULTS, "params": params, **more}
    names = ["params", *(name for name in more if name not in _OBJECTS)]
    options |= {name: OPTIONS[name].read(options[name]) for name in names}
    if not isinstance(noises, Integral) or not 1 <= noises <= _MAX_NOISES:
        raise refused("noises", noises, f"must be a whole number from 1 to {_MAX_NOISES:,}")
    if isinstance(follow, str) or isinstance(primitives, str):
        raise UsageError("follow and primitives must be lists", code="option-invalid")
    target = _target(mechanism, options)
    return trace_pair(
        target, d1, d2, claim, seeds=int(noises), follow=follow, primitives=primitives
    )


def check_keywords(
    name: str, function: Callable[..., Any], more: Mapping[str, Any], options: Any = MoreOptions
) -> None:
    """Raise TypeError for a keyword that is not among the `options` of a function."""
    known = options.__annotations__
    for option in more:
        if option not in known:
            near = did_you_mean(option, [*function.__annotations__, *known])
            raise TypeError(f"{name}() got an unexpected keyword argument {option!r}.{near}")


def _numbers(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of the claim among the keyword arguments of `audit`."""
    names = ClaimNumbers.__annotations__
    return {name: arguments[name] for name in names if arguments.get(name) is not None}


def run(
    arguments: Mapping[str, Any],
    *,
    pairs: tuple[NeighbouringPair, ...] = (),
    search: PairSearch | None = None,
    compared_with: Target | None = None,
) -> AuditResult:
    """Run an audit or a search with the keyword arguments of `audit`, and return its result."""
    on_progress = arguments["on_progress"]
    if on_progress is not None and not callable(on_progress):
        raise refused("on_progress", on_progress, "must be a function, which gets a Progress")
    spec = spec_of(arguments, pairs, search, compared_with)
    with notebook_bar() as bar:
        return run_audit(spec, on_progress or bar)


def spec_of(
    arguments: Mapping[str, Any],
    pairs: tuple[NeighbouringPair, ...],
    search: PairSearch | None = None,
    compared_with: Target | None = None,
) -> AuditSpec:
    """Return the audit for keyword arguments of `audit`.

    compared_with: the mechanism B of a comparison, whose A is the mechanism of the arguments.
    """
    mechanism = arguments["mechanism"]
    claim = stated_claim(arguments["claim"], _numbers(arguments))
    if arguments["time"] is not None and not isinstance(arguments["samples"], DefaultSamples):
        raise UsageError(*TWO_BUDGETS, code="options-conflict")
    names = [name for name in arguments if name in OPTIONS and name not in _OBJECTS]
    options = {**DEFAULTS, **{name: OPTIONS[name].read(arguments[name]) for name in names}}
    target: AnyTarget = repeated(_target(mechanism, options), options["repeat"])
    if compared_with is not None:
        python_b = arguments["python_b"] or options["python"]
        b = _target(compared_with, {**options, "python": python_b})
        target = TwoTargets(a=_target(mechanism, options), b=b)
    source = None
    if isinstance(claim, str) and claim == "library":
        # Imported only if the library of the mechanism states the claim; most users state it
        # themselves.
        from dpaudit.adapters.asking import library_claim

        claim, source = library_claim(target, pairs, parse_adjacency(options["adjacency"]))
    records = records_of(options)
    return AuditSpec(
        name=options["name"] or target.name,
        claim=claim,
        claimed_by=source,
        target=target,
        pairs=pairs,
        search=search,
        no_trace=options["no_trace"],
        sampling=records.sampling,
        statistics=records.statistics,
        requirements=records.requirements,
        journaling=records.journaling,
    )


def _target(mechanism: Target, options: Mapping[str, Any]) -> SingleTarget:
    limits = Limits(timeout=options["timeout"], memory=options["memory_limit"])
    if isinstance(mechanism, list):
        return _command(mechanism, limits, options)
    called = {key: options[key] for key in ("batch_arg", "data_arg", "rng_arg")}
    called["params"] = options["params"] or {}
    post_process = options["post_process"]
    target: CallableTarget | ImportedTarget
    if not isinstance(mechanism, str):
        target = CallableTarget(function=mechanism, post_process=post_process, **called)
    elif post_process is None:
        target = ImportedTarget(path=mechanism, **called)
    else:
        raise UsageError(
            f"post_process with the import path {mechanism!r}: give both as callables, or both "
            "in a configuration file",
            code="options-conflict",
        )
    if options["isolate"] or options["python"] is not None or limits != Limits():
        return IsolatedTarget(target=target, python=options["python"], limits=limits)
    return target


def _command(words: list[str], limits: Limits, options: Mapping[str, Any]) -> CommandTarget:
    if not words or not all(isinstance(word, str) for word in words):
        why = f"mechanism={words!r} must be the words of a command line"
        raise UsageError(why, code="option-invalid")
    if options["params"] or options["post_process"] is not None:
        why = "a program takes no params and no post_process; do both in the program"
        raise UsageError(why, code="options-conflict")
    for key in ("data_arg", "rng_arg"):
        if options[key] is not None:
            why = f"a program takes no {key}: the protocol defines its input; leave it out"
            raise UsageError(why, code="options-conflict")
    batch_arg = options["batch_arg"]
    if batch_arg not in (None, "none", "size"):
        why = f"batch_arg={batch_arg!r} must be 'size' or 'none' for a program"
        raise UsageError(why, code="option-invalid")
    is_batch = None if batch_arg is None else batch_arg == "size"
    return CommandTarget(words=tuple(words), is_batch=is_batch, limits=limits)
