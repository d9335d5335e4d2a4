"""The Python interface, on the same engine as the command line."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from dpaudit.auditing.engine import run_audit
from dpaudit.auditing.spec import AuditSpec, BoundMethod, OnError
from dpaudit.certificates.result import AuditResult, Progress
from dpaudit.claims import PrivacyClaim
from dpaudit.errors import UsageError
from dpaudit.inputs.pairs import Adjacency, NeighbouringPair, describe_pair, parse_adjacency
from dpaudit.targets.target import (
    CallableTarget,
    CommandTarget,
    ImportedTarget,
    IsolatedTarget,
    Limits,
    SingleTarget,
    repeated,
)

if TYPE_CHECKING:
    from concurrent.futures import Executor


def audit(
    mechanism: Callable[..., Any] | str | list[str],
    d1: Any,
    d2: Any,
    claim: PrivacyClaim,
    *,
    params: Mapping[str, Any] | None = None,
    batch_arg: str | None = None,
    data_arg: str | None = None,
    rng_arg: str | None = None,
    post_process: Callable[[Any], Any] | None = None,
    adjacency: Adjacency | str | None = None,
    samples: int = 1_000_000,
    time: float | None = None,
    confidence: float = 0.99,
    seed: int = 0,
    workers: int = 1,
    executor: Executor | str | None = None,
    bound: BoundMethod = "game",
    full: bool = False,
    allow_underpowered: bool = False,
    on_error: OnError = "outcome",
    range: Sequence[Any] | None = None,  # noqa: A002  # the key of configuration files
    exact: bool = False,
    repeat: int = 1,
    floating_point: bool = False,
    timing: bool = False,
    attacks: Sequence[Any] = (),
    distinguisher: Callable[[Any], Any] | str | None = None,
    isolate: bool = False,
    python: str | None = None,
    timeout: float | None = None,
    memory_limit: int | None = None,
    name: str | None = None,
    journal: str | os.PathLike[str] | None = None,
    resume: bool = False,
    on_progress: Callable[[Progress], None] | None = None,
) -> AuditResult:
    """Look for statistical proof that `mechanism` leaks more than `claim` allows on (d1, d2).

    mechanism: any callable of the dataset (lambdas and closures too), or an import path
        `package.module:attr`. The first parameter, or `data_arg`, takes the dataset. With a
        parameter `rng`, or `rng_arg`, it gets a `numpy.random.Generator`; with `size`, or
        `batch_arg`, it returns that many outputs at once (`"none"` for either: never). Or a list of
        words: a program that speaks the protocol of docs/protocol.md.
    d1, d2: neighbouring inputs, handed over as they are and never changed.
    claim: `PureDP(1.0)`, `ApproximateDP(1.0, 1e-5)` or `ProbabilisticDP(1.0, 1e-5)`.
    params: keyword arguments of every call.  post_process: applied to every output.
    adjacency: `add-remove`, `replace` or a distance such as `l1:1`; checked where it can be.
    samples: draws of both inputs together, from 1,000 to 10¹⁵; time: seconds, which plan the draws
        from the speed of the mechanism instead.
    confidence: in (0, 1). The verdict is VIOLATION for a mechanism that keeps the claim with
        probability at most 1 - confidence.
    seed: equal seeds give equal results, whatever `workers` (more than one need a mechanism that
        can be pickled or imported).
    executor: who the workers are: `serial`, `processes`, `dask` (a cluster on this machine),
        `dask://host:8786`, or a `concurrent.futures.Executor` with so many processes, which is left
        open (docs/scale.md). Default: `serial` with one worker, else `processes`.
    bound: `game`, or the weaker textbook `clopper-pearson`.
    full: draw all samples even after a refutation, for a tighter bound.
    allow_underpowered: leave `AuditResult.underpowered` empty for an audit that could not have
        refuted its claim; it is a warning then.
    on_error: an exception of the mechanism is an outcome, or with `fail` ends the audit (ERROR).
    range: all outputs that there are, exceptions by name; gives an interval for ε, not only a lower
        bound.
    exact: draw nothing; compute from `mechanism.pmf(dataset, **params)`, a mapping from outcomes to
        probabilities.
    repeat: so many independent runs on one input are one output, a tuple; `claim` is for one run,
        and what composition makes of it is tested. `post_process` is applied to every run.
    floating_point: look at the low-order bits and decimals of numbers, too; timing: at how long
        every call takes, of a mechanism that is called for one draw at a time.
    attacks: further attacks, beside the built-in ones: classes with `fit`, instances, functions,
        import paths of such, or names of installed ones (docs/attacks.md).
    distinguisher: a function of an output that returns a number, the larger the more the output
        speaks for d1; only these numbers are looked at, and where to cut them is found out.
    isolate: draw in a process of its own, so that a crash is an outcome, of a mechanism that can be
        pickled or imported; python: the path of the interpreter for it, where dpaudit need not be.
    timeout: seconds of a draw; memory_limit: bytes of address space; both of such a process.
    journal: a folder, for a file named after `name` (the mechanism's own) that keeps all that is
        drawn; resume: go on with the one that is there, or begin it (docs/journal.md).
    on_progress: called after every block of draws.

    Returns an AuditResult: `verdict`, `epsilon_lower`, `delta_lower`, `p_value`, `certificates`.
    NO_VIOLATION_FOUND proves nothing about other inputs, rarer events or more draws.

    Raises UsageError for a request that cannot be carried out. What goes wrong with the mechanism
    itself is the verdict ERROR, with a message.

    >>> import dpaudit
    >>> def laplace(x, size, rng):
    ...     return x + rng.laplace(size=size)
    >>> result = dpaudit.audit(laplace, 0, 1, dpaudit.PureDP(0.5), samples=20_000)
    >>> result.verdict
    <Verdict.VIOLATION: 'VIOLATION'>
    >>> result.epsilon_lower > 0.5
    True
    """
    limits = Limits(timeout=timeout, memory=memory_limit)
    names: dict[str, Any] = {"batch_arg": batch_arg, "data_arg": data_arg, "rng_arg": rng_arg}
    if isinstance(mechanism, list):
        target: SingleTarget = _command(mechanism, limits, params, names, post_process)
    else:
        called = replace(_target(mechanism, params or {}, post_process), **names)
        target = _placed(called, limits, python, isolate=isolate)
    relation = parse_adjacency(adjacency)
    spec = AuditSpec(
        name=name or target.name,
        target=repeated(target, repeat),
        pairs=(NeighbouringPair(d1, d2, relation, describe_pair(d1, d2)),),
        claim=claim,
        samples=samples,
        time=time,
        confidence=confidence,
        seed=seed,
        workers=workers,
        executor=executor,
        bound=bound,
        full=full,
        allow_underpowered=allow_underpowered,
        on_error=on_error,
        range=None if range is None else tuple(range),
        exact=exact,
        floating_point=floating_point,
        timing=timing,
        attacks=tuple(attacks),
        distinguisher=distinguisher,
        journal=journal,
        resume=resume,
    )
    return run_audit(spec, on_progress)


def bound(
    outcomes_d1: Sequence[Any] | NDArray[Any],
    outcomes_d2: Sequence[Any] | NDArray[Any],
    claim: PrivacyClaim,
    *,
    coin_flipped: bool = False,
    scores: bool = False,
    confidence: float = 0.99,
    seed: int = 0,
    bound: BoundMethod | None = None,
    name: str = "recorded outputs",
) -> AuditResult:
    """Look for statistical proof in draws that were made elsewhere, such as training runs.

    outcomes_d1, outcomes_d2: independent outputs for two neighbouring inputs, an entry each (of an
        array: a row), in the order in which they were made, which is looked at; at least 1,000 in
        all, and 100 of each.
    claim: as for `audit`.
    coin_flipped: a fair coin picked the input of every draw, so that the two numbers of draws are
        chance. Otherwise they are taken as fixed, and a bound that is valid then is used.
    scores: the outcomes are scores of an attack; only thresholds are tried.
    confidence: as for `audit`.  seed: splits the draws into those to learn from and the others.
    bound: `game` or `clopper-pearson`; None: the more powerful of those that are valid.

    Returns an AuditResult, as `audit` does. Raises UsageError for too few draws, or outcomes of a
    type that is not read.

    >>> import dpaudit
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> d1, d2 = rng.laplace(0, 1, 5_000), rng.laplace(1, 1, 5_000)
    >>> dpaudit.bound(d1, d2, dpaudit.PureDP(0.5)).verdict
    <Verdict.VIOLATION: 'VIOLATION'>
    """
    from dpaudit.auditing.recorded import audit_recorded, recorded_audit

    given = recorded_audit(
        outcomes_d1,
        outcomes_d2,
        name=name,
        source=name,
        pair="d1, d2",
        claim=claim,
        coin_flipped=coin_flipped,
        scores_only=scores,
        bound=bound,
        confidence=confidence,
        seed=seed,
    )
    return audit_recorded(given)


def bound_guesses(
    canaries: int,
    guesses: int,
    correct: int,
    claim: PrivacyClaim,
    *,
    confidence: float = 0.99,
    name: str = "guesses",
) -> AuditResult:
    """Look for statistical proof in one run with many canaries (Steinke, Nasr & Jagielski 2023).

    canaries: records that were each put in or left out by a fair coin of its own. guesses: how many
    of them were guessed to be in or out, from the output of the one run; with a claimed δ > 0 fixed
    before. correct: how many guesses were right.  claim: for one canary more or less.

    Returns an AuditResult with `one_run` in place of certificates. Raises UsageError for
    impossible counts, and for claims that guesses say nothing about.

    >>> import dpaudit
    >>> result = dpaudit.bound_guesses(1000, 100, 75, dpaudit.ApproximateDP(0.5, 1e-4))
    >>> result.verdict, round(result.epsilon_lower, 3)
    (<Verdict.VIOLATION: 'VIOLATION'>, 0.53)
    """
    from dpaudit.auditing.canaries import audit_guesses
    from dpaudit.stats.one_run import Guesses

    try:
        seen = Guesses(canaries, guesses, correct)
    except ValueError as error:
        raise UsageError(f"{error}; give canaries ≥ guesses ≥ correct ≥ 0") from None
    return audit_guesses(seen, claim, confidence=confidence, name=name)


def _target(
    mechanism: Callable[..., Any] | str,
    params: Mapping[str, Any],
    post_process: Callable[[Any], Any] | None,
) -> CallableTarget | ImportedTarget:
    if not isinstance(mechanism, str):
        return CallableTarget(function=mechanism, params=params, post_process=post_process)
    if post_process is not None:
        raise UsageError(
            f"post_process with the import path {mechanism!r}: give both as callables, or both "
            "in a configuration file"
        )
    return ImportedTarget(path=mechanism, params=params)


def _placed(
    target: CallableTarget | ImportedTarget, limits: Limits, python: str | None, *, isolate: bool
) -> SingleTarget:
    """Return the target, in a process of its own if that is asked for."""
    if isolate or python is not None:
        return IsolatedTarget(target=target, python=python, limits=limits)
    if limits != Limits():
        raise UsageError("timeout and memory_limit are for a process of its own; add isolate=True")
    return target


def _command(
    words: list[str],
    limits: Limits,
    params: Mapping[str, Any] | None,
    names: Mapping[str, str | None],
    post_process: Callable[[Any], Any] | None,
) -> CommandTarget:
    if not words or not all(isinstance(word, str) for word in words):
        raise UsageError(f"mechanism={words!r} must be the words of a command line")
    if params or post_process is not None:
        raise UsageError("a program takes no params and no post_process; let it do both")
    for key in ("data_arg", "rng_arg"):
        if names[key] is not None:
            raise UsageError(
                f"a program takes no {key}: the protocol says what it gets; leave it out"
            )
    batch_arg = names["batch_arg"]
    if batch_arg not in (None, "none", "size"):
        raise UsageError(f"batch_arg={batch_arg!r} must be 'size' or 'none' for a program")
    is_batch = None if batch_arg is None else batch_arg == "size"
    return CommandTarget(words=tuple(words), is_batch=is_batch, limits=limits)
