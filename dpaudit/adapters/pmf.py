"""The exact law of a mechanism, read from its function `pmf`. `pmf(dataset, **params)` returns a
mapping from every possible output to its probability. An exact audit (option `exact`) compares the
laws for d1 and d2 with the claim, and draws nothing."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from functools import partial
from numbers import Real
from typing import Any

from dpaudit.adapters.calls import Function, apply_post_process
from dpaudit.adapters.loading import together
from dpaudit.errors import Name, TargetError
from dpaudit.inputs.values import resolved
from dpaudit.outcomes import from_raw
from dpaudit.targets.construction import functions, post_processing
from dpaudit.targets.target import (
    AnyTarget,
    CommandTarget,
    ComposedTarget,
    IsolatedTarget,
    RepeatedTarget,
    TwoTargets,
)
from dpaudit.wording import shortened

# A law (probability distribution): a list of pairs (outcome, probability). An outcome may be an
# exception (`Raised`).
Weighted = list[tuple[Any, float]]

# A row of a table of two laws: an outcome in words, its probability under d1, and its probability
# under d2.
LawRow = tuple[str, float, float]

# Largest number of outcomes of a law, since all are kept in memory.
MAX_OUTCOMES = 1_000_000
# The sum of the probabilities of a law may differ from 1 by at most this number, as by rounding.
_SUM_TOLERANCE = 1e-9


def law_table(
    target: AnyTarget, d1: Any, d2: Any, then: Callable[[list[Any]], list[Any]] | None = None
) -> tuple[LawRow, ...]:
    """Return a row for each possible output of a target: (output in words, probability under d1,
    probability under d2). The law of a composition is the product of the laws of its parts. Outputs
    are those after post-processing.

    then: maps the list of all outputs of a law to the list of outcomes to compare, such as the
        guesses of an adversary. None: the outputs themselves are compared.

    Raises TargetError if a mechanism has no pmf, or if a pmf is not a probability distribution.
    """
    law_of = stated_law(target)
    laws = [law_of(d1, "d1"), law_of(d2, "d2")]
    raw = [[outcome for outcome, _ in law] for law in laws]
    # A pmf is a dict from outputs to probabilities. Outputs that are equal in Python, such as 1 and
    # 1.0, are a single key of a dict. So `plain` below makes them a single outcome, too, also if
    # one occurs only under d1 and the other only under d2.
    outputs = [outcome for law in raw for outcome in (law if then is None else then(law))]
    outcomes = from_raw(outputs).plain()
    weights = [(arm, weight) for arm, law in enumerate(laws) for _, weight in law]
    # Maps the hash of an outcome to (index, (p, q)): the first index of the outcome, and its
    # probabilities under d1 (list p) and d2 (list q), which have to be added up.
    parts: dict[int, tuple[int, tuple[list[float], list[float]]]] = {}
    for index, (key, (arm, weight)) in enumerate(
        zip(outcomes.keys().tolist(), weights, strict=True)
    ):
        parts.setdefault(key, (index, ([], [])))[1][arm].append(weight)
    return tuple(
        (outcomes.word(index), math.fsum(p), math.fsum(q)) for index, (p, q) in parts.values()
    )


def stated_law(target: AnyTarget) -> Callable[[Any, str], Weighted]:
    """Return a function that takes a dataset and its label, "d1" or "d2", and returns the law of a
    target for this dataset. Raises TargetError if a part of the target cannot be loaded or has no
    pmf."""
    if isinstance(target, RepeatedTarget):
        single = stated_law(target.target)
        return lambda dataset, label: _product([single(dataset, label)] * target.times, target.name)
    if isinstance(target, ComposedTarget):
        parts, transform = list(map(stated_law, target.parts)), post_processing(target.post_process)
        return lambda dataset, label: _processed(
            _product([part(dataset, label) for part in parts], target.name), transform
        )
    if isinstance(target, IsolatedTarget | CommandTarget | TwoTargets):
        raise TargetError(
            "an exact audit reads the pmf of one mechanism in this process, and "
            f"{target.name} runs elsewhere or is two; leave out exact",
            code="exact-impossible",
        )
    function, post_process = functions(target)
    pmf, params = _pmf(function, target.name), resolved(target.params)
    return lambda dataset, label: _processed(
        _called(partial(pmf, dataset, **params), f"{target.name} for {label}"), post_process
    )


def _product(laws: list[Weighted], name: str) -> Weighted:
    _check_size(math.prod(map(len, laws)), name, "audit without exact")
    return [
        (together(outcomes), math.prod(weights))
        for outcomes, weights in (
            zip(*entries, strict=True) for entries in itertools.product(*laws)
        )
    ]


def _check_size(size: int, name: str, remedy: str) -> None:
    if size > MAX_OUTCOMES:
        limit = f"an exact audit takes at most {MAX_OUTCOMES:,}"
        why = f"{name} has {size:,} outcomes; {limit}; {remedy}"
        raise TargetError(why, code="exact-impossible")


def _processed(law: Weighted, post_process: Function | None) -> Weighted:
    outcomes, weights = [outcome for outcome, _ in law], [weight for _, weight in law]
    return list(zip(apply_post_process(post_process, outcomes), weights, strict=True))


def _called(pmf: Callable[[], Any], name: str) -> Weighted:
    try:
        law = pmf()
    except Exception as error:
        reason = shortened(str(error), 200)
        why = f"the pmf of {name} raised {type(error).__name__}: {reason}"
        raise TargetError(why, code="pmf-invalid") from error
    return _checked(law, f"the pmf of {name}")


def _pmf(function: Function, name: str) -> Function:
    """Return the attribute `pmf` of a callable or of a method's object. Raises TargetError."""
    for owner in (function, getattr(function, "__self__", None)):
        pmf = getattr(owner, "pmf", None)
        if callable(pmf):
            return pmf  # type: ignore[no-any-return]  # `callable` narrows Any to Any
    raise TargetError(
        Name("exact"),
        f": {name} has no pmf; give it a method pmf(dataset, **params) that returns "
        "{outcome: probability}",
        code="exact-impossible",
    )


def _checked(law: Any, name: str) -> Weighted:
    if not isinstance(law, Mapping):
        raise TargetError(
            f"{name} is of type {type(law).__name__}; it must be a mapping from every outcome to "
            "its probability",
            code="pmf-invalid",
        )
    _check_size(len(law), name, "audit the mechanism without exact")
    weights = [(outcome, _probability(outcome, value, name)) for outcome, value in law.items()]
    total = math.fsum(weight for _, weight in weights)
    if abs(total - 1) > _SUM_TOLERANCE:
        raise TargetError(
            f"{name} adds up to {total!r}, not to 1 within {_SUM_TOLERANCE:g}; state all outcomes "
            "and their exact probabilities",
            code="pmf-invalid",
        )
    return [(outcome, weight) for outcome, weight in weights if weight > 0]


def _probability(outcome: Any, value: Any, name: str) -> float:
    if isinstance(value, Real) and not isinstance(value, bool):
        number = float(value)
        if 0 <= number <= 1 + _SUM_TOLERANCE:
            return number
    why = f"{name} gives {outcome!r} the probability {value!r}; it must lie in [0, 1]"
    raise TargetError(why, code="pmf-invalid")
