"""The Python interface: one function, on the same engine as the command line."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dpaudit.auditing.engine import run_audit
from dpaudit.auditing.result import AuditResult, Progress
from dpaudit.auditing.spec import AuditSpec, BoundMethod, OnError
from dpaudit.claims import PrivacyClaim
from dpaudit.errors import UsageError
from dpaudit.pairs import Adjacency, NeighbouringPair, describe_pair, parse_adjacency
from dpaudit.targets.target import AnyTarget, CallableTarget, ImportedTarget


def audit(
    mechanism: Callable[..., Any] | str,
    d1: Any,
    d2: Any,
    claim: PrivacyClaim,
    *,
    params: Mapping[str, Any] | None = None,
    batch_arg: str | None = None,
    post_process: Callable[[Any], Any] | None = None,
    adjacency: Adjacency | str | None = None,
    samples: int = 1_000_000,
    time: float | None = None,
    confidence: float = 0.99,
    seed: int = 0,
    workers: int = 1,
    bound: BoundMethod = "game",
    full: bool = False,
    on_error: OnError = "outcome",
    range: Sequence[Any] | None = None,  # noqa: A002  # the key of configuration files
    exact: bool = False,
    name: str | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> AuditResult:
    """Look for statistical proof that `mechanism` leaks more than `claim` allows on (d1, d2).

    mechanism: any callable of the dataset (lambdas and closures too), or an import path
        `package.module:attr`. With a parameter `rng` it gets a `numpy.random.Generator`; with
        `size`, or the name given as `batch_arg`, it returns that many outputs at once
        (`batch_arg="none"`: never).
    d1, d2: neighbouring inputs, handed over as they are and never changed.
    claim: `PureDP(1.0)`, `ApproximateDP(1.0, 1e-5)` or `ProbabilisticDP(1.0, 1e-5)`.
    params: keyword arguments of every call.  post_process: applied to every output.
    adjacency: `add-remove`, `replace` or a distance such as `l1:1`; checked where it can be.
    samples: draws of both inputs together, at least 1,000; time: seconds, which plan the draws
        from the speed of the mechanism instead.
    confidence: in (0, 1). The verdict is VIOLATION for a mechanism that keeps the claim with
        probability at most 1 - confidence.
    seed: equal seeds give equal results, whatever `workers` (more than one need a mechanism that
        can be pickled or imported).
    bound: `game`, or the weaker textbook `clopper-pearson`.
    full: draw all samples even after a refutation, for a tighter bound.
    on_error: an exception of the mechanism is an outcome, or with `fail` ends the audit (ERROR).
    range: all outputs that there are, exceptions by name; gives an interval for ε, not only a lower
        bound.
    exact: draw nothing; compute from `mechanism.pmf(dataset, **params)`, a mapping from outcomes to
        probabilities.
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
    target = _target(mechanism, params or {}, batch_arg, post_process)
    relation = parse_adjacency(adjacency)
    spec = AuditSpec(
        name=name or target.name,
        target=target,
        pairs=(NeighbouringPair(d1, d2, relation, describe_pair(d1, d2)),),
        claim=claim,
        samples=samples,
        time=time,
        confidence=confidence,
        seed=seed,
        workers=workers,
        bound=bound,
        full=full,
        on_error=on_error,
        range=None if range is None else tuple(range),
        exact=exact,
    )
    return run_audit(spec, on_progress)


def _target(
    mechanism: Callable[..., Any] | str,
    params: Mapping[str, Any],
    batch_arg: str | None,
    post_process: Callable[[Any], Any] | None,
) -> AnyTarget:
    if not isinstance(mechanism, str):
        return CallableTarget(
            function=mechanism, params=params, batch_arg=batch_arg, post_process=post_process
        )
    if post_process is not None:
        raise UsageError(
            f"post_process with the import path {mechanism!r}: give both as callables, or both "
            "in a configuration file"
        )
    return ImportedTarget(path=mechanism, params=params, batch_arg=batch_arg)
