"""The exact law of a mechanism's output, where the mechanism states it as `pmf`."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from numbers import Real
from typing import Any

from dpaudit.adapters.calls import Function, apply_post_process
from dpaudit.adapters.loading import together
from dpaudit.errors import TargetError
from dpaudit.inputs.values import resolved
from dpaudit.outcomes import from_raw
from dpaudit.targets.construction import functions, post_processing
from dpaudit.targets.target import (
    AnyTarget,
    CommandTarget,
    ComposedTarget,
    IsolatedTarget,
    PythonTarget,
    RepeatedTarget,
)

# Outcomes with their probabilities; an exception is an outcome, too.
Weighted = list[tuple[Any, float]]

# An outcome in words, its probability for d1 and its probability for d2.
LawRow = tuple[str, float, float]

MOST_OUTCOMES = 1_000_000
_SUM_TOLERANCE = 1e-9


def law_table(
    target: AnyTarget, d1: Any, d2: Any, then: Callable[[list[Any]], list[Any]] | None = None
) -> tuple[LawRow, ...]:
    """Return the exact laws of the output on two datasets, side by side.

    Post-processing is applied to the outcomes that the mechanism states; the law of a composition
    is the product of the laws of its parts.  then: applied to the list of all outcomes in the end.
    Raises TargetError where there is no pmf, or one that is no law.
    """
    laws = [weighted(target, dataset, label) for dataset, label in ((d1, "d1"), (d2, "d2"))]
    raw = [[outcome for outcome, _ in law] for law in laws]
    # The keys of a pmf are equal as Python compares them, however they are represented.
    every = [one for each in raw for one in (each if then is None else then(each))]
    outcomes = from_raw(every).plain()
    weights = [(arm, weight) for arm, law in enumerate(laws) for _, weight in law]
    # The first place of every outcome, and its probabilities, which may be in several parts.
    found: dict[int, tuple[int, tuple[list[float], list[float]]]] = {}
    for place, (key, (arm, weight)) in enumerate(
        zip(outcomes.keys().tolist(), weights, strict=True)
    ):
        found.setdefault(key, (place, ([], [])))[1][arm].append(weight)
    return tuple(
        (outcomes.word(place), math.fsum(p), math.fsum(q)) for place, (p, q) in found.values()
    )


def weighted(target: AnyTarget, dataset: Any, label: str) -> Weighted:
    """Return the outcomes on a dataset that have a probability above 0, with it."""
    if isinstance(target, ComposedTarget):
        law = _product([weighted(part, dataset, label) for part in target.parts], target.name)
        return _processed(law, post_processing(target.post_process))
    if isinstance(target, RepeatedTarget):
        return _product([weighted(target.target, dataset, label)] * target.times, target.name)
    if isinstance(target, IsolatedTarget | CommandTarget):
        raise _elsewhere(target.name)
    function, post_process = functions(target)
    return _processed(_stated(function, target, dataset, label), post_process)


def check_stated(target: AnyTarget) -> None:
    """Raise TargetError where a part of a target cannot be loaded, or states no law; none is asked
    for."""
    if isinstance(target, RepeatedTarget):
        check_stated(target.target)
    elif isinstance(target, ComposedTarget):
        for part in target.parts:
            check_stated(part)
        post_processing(target.post_process)
    elif isinstance(target, IsolatedTarget | CommandTarget):
        raise _elsewhere(target.name)
    else:
        _pmf(functions(target)[0], target.name)
        resolved(target.params)


def _elsewhere(name: str) -> TargetError:
    return TargetError(
        f"{name} runs in another process, and an exact audit reads the pmf in this one; leave out "
        "exact, or the option that starts the process"
    )


def _product(laws: list[Weighted], name: str) -> Weighted:
    _check_size(math.prod(map(len, laws)), name, "compose fewer mechanisms, or audit without exact")
    return [
        (together(outcomes), math.prod(weights))
        for outcomes, weights in (zip(*each, strict=True) for each in itertools.product(*laws))
    ]


def _check_size(size: int, name: str, remedy: str) -> None:
    if size > MOST_OUTCOMES:
        most = f"an exact audit takes at most {MOST_OUTCOMES:,}"
        raise TargetError(f"{name} has {size:,} outcomes; {most}; {remedy}")


def _processed(law: Weighted, post_process: Function | None) -> Weighted:
    outcomes, weights = [outcome for outcome, _ in law], [weight for _, weight in law]
    return list(zip(apply_post_process(post_process, outcomes), weights, strict=True))


def _stated(function: Function, target: PythonTarget, dataset: Any, label: str) -> Weighted:
    pmf, params = _pmf(function, target.name), resolved(target.params)
    try:
        law = pmf(dataset, **params)
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        raise TargetError(
            f"the pmf of {target.name} raised {type(error).__name__} for {label}: {reason}"
        ) from error
    return _checked(law, f"the pmf of {target.name} for {label}")


def _pmf(function: Function, name: str) -> Function:
    """Return the `pmf` of a callable, or of the object whose method it is."""
    for owner in (function, getattr(function, "__self__", None)):
        pmf = getattr(owner, "pmf", None)
        if callable(pmf):
            return pmf  # type: ignore[no-any-return]  # `callable` narrows Any to Any
    raise TargetError(
        f"{name} has no pmf, so its exact distribution is unknown; give it an attribute or method "
        "pmf(dataset, **params) that returns {outcome: probability}, or leave out exact"
    )


def _checked(law: Any, name: str) -> Weighted:
    if not isinstance(law, Mapping):
        raise TargetError(
            f"{name} is of type {type(law).__name__}; it must be a mapping from every outcome to "
            "its probability"
        )
    _check_size(len(law), name, "audit the mechanism without exact")
    weights = [(outcome, _probability(outcome, one, name)) for outcome, one in law.items()]
    total = math.fsum(weight for _, weight in weights)
    if abs(total - 1) > _SUM_TOLERANCE:
        raise TargetError(
            f"{name} adds up to {total!r}, not to 1 within {_SUM_TOLERANCE:g}; state all outcomes "
            "and their exact probabilities"
        )
    return [(outcome, weight) for outcome, weight in weights if weight > 0]


def _probability(outcome: Any, value: Any, name: str) -> float:
    if isinstance(value, Real) and not isinstance(value, bool):
        number = float(value)
        if 0 <= number <= 1 + _SUM_TOLERANCE:
            return number
    raise TargetError(f"{name} gives {outcome!r} the probability {value!r}; it must lie in [0, 1]")
