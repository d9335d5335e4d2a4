"""Ask the library of a mechanism for the claim that it makes (`claim: {from: library}`). If the
mechanism runs in a separate process, or under another Python, the library is asked there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from dpaudit.adapters.isolation import PythonChild
from dpaudit.claims import PrivacyClaim, make_claim
from dpaudit.claims.base import ClaimSource
from dpaudit.errors import ClaimError, Name
from dpaudit.inputs.adjacency import Adjacency
from dpaudit.inputs.pairs import NeighbouringPair
from dpaudit.inputs.values import resolved
from dpaudit.library_claims import NoClaim, Question, ask
from dpaudit.targets.construction import functions
from dpaudit.targets.target import (
    AnyTarget,
    CommandTarget,
    ComposedTarget,
    IsolatedTarget,
    RepeatedTarget,
    TwoTargets,
)
from dpaudit.watching import Watch


def library_claim(
    target: AnyTarget,
    pairs: Sequence[NeighbouringPair],
    adjacency: Adjacency | None = None,
    delta: float | None = None,
) -> tuple[PrivacyClaim, ClaimSource]:
    """Return the claim that the library of a mechanism makes for one run, and the call of the
    library that gave it. The claim is for inputs as far apart, in the mechanism's own metric, as d1
    and d2.

    pairs: the pairs of inputs. If empty, `adjacency` gives the distance of the pairs that a search
        will find.
    delta: the δ at which to ask for ε, if the library's claim is a curve ε(δ). None: ask at several
        δ.

    Raises ClaimError if there is no such claim, or if the claims for two pairs differ; TargetError
    if the mechanism cannot be made.
    """
    answers: list[dict[str, Any]] = []
    relation = None if adjacency is None else (adjacency.kind, adjacency.distance)
    for pair in pairs or (None,):
        inputs = None if pair is None else (pair.d1, pair.d2)
        try:
            answers.append(_answer(target, inputs, relation, delta))
        except NoClaim as error:
            raise ClaimError(Name("from"), f"=library: {error}", code=error.code) from error
    first = answers[0]
    for pair, answer in zip(pairs[1:], answers[1:], strict=True):
        if answer["claim"] != first["claim"]:
            why = (
                f"=library: the claims for two pairs differ ({first['answer']} for "
                f"{pairs[0].label}, {answer['answer']} for {pair.label}); give each pair an audit "
                "of its own"
            )
            raise ClaimError(Name("from"), why, code="options-conflict")
    source = ClaimSource(*(first[name] for name in ("library", "version", "asked", "answer")))
    return make_claim(first["claim"]), source


def _answer(target: AnyTarget, inputs: Any, relation: Any, delta: float | None) -> dict[str, Any]:
    if isinstance(target, RepeatedTarget):
        return _answer(target.target, inputs, relation, delta)
    if isinstance(target, ComposedTarget | CommandTarget | TwoTargets):
        what = "a program" if isinstance(target, CommandTarget) else "a composition"
        why = f"{what} has no object of a library to ask; give the claim itself"
        raise NoClaim(why, code="claim-source-unknown")
    if isinstance(target, IsolatedTarget):
        # The time limit is meant for draws, and importing a library may take longer, so there is no
        # limit here.
        unlimited = replace(target, limits=replace(target.limits, timeout=None))
        child = PythonChild(unlimited, Watch.of_process(None))
        try:
            return child.claim(inputs, relation, delta)
        finally:
            child.kill()
    function, _ = functions(target)
    return ask(function, Question(inputs, relation, delta, dict(resolved(target.params))))
