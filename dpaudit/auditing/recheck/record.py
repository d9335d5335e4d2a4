"""Recomputes a result from what it records: wealth, bounds and p-value, from the tallies alone."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

import numpy as np

from dpaudit.auditing.canaries import certify_guesses
from dpaudit.auditing.recheck.schedule import follow_schedule
from dpaudit.auditing.stated_laws import certify
from dpaudit.certificates.certificate import Certificate, EventCount, FixedTest
from dpaudit.certificates.evidence import Evidence, numbers
from dpaudit.certificates.exact_certificate import ExactCertificate
from dpaudit.certificates.one_run_certificate import OneRunCertificate
from dpaudit.certificates.replay import beliefs_of, tally
from dpaudit.certificates.result import AuditResult, Canaries, Exact, Verdict
from dpaudit.claims import PrivacyClaim, ProfilePoint, compose, group
from dpaudit.stats.finite import epsilon_interval
from dpaudit.stats.one_run import Guesses

# Other versions of the libraries may round differently in the last places.
_RELATIVE = 1e-6

# How findings name the numbers.
_NAMES = {
    "refuted": "refuted",
    "draws": "draws",
    "alpha": "share of the error probability",
    "alpha_betting": "share for betting",
    "wealth": "wealth",
    "epsilon_betting": "ε by betting",
    "epsilon_lower": "ε at least",
    "delta_lower": "δ at least",
    "p_value": "p-value",
}
_STAGES = ("learning", "certification", "confirmation", "recorded")

_NOT_BET_ON = ("confirmation", "recorded")

# What an exact test is computed from, and its events, which are looked at by themselves.
_GIVEN = ("stage", "method", "accused", "events")

Finding = tuple[str, Any, Any]


def recheck(result: AuditResult) -> list[str]:
    """Return what does not agree with the recorded draws, one sentence each; empty when all does.

    What the tallies mean, and that the draws were made at all, no file can show.
    """
    if result.verdict is Verdict.ERROR:
        return []
    found = [
        (f"{one.pair}: {name}", recorded, computed)
        for one in result.certificates
        for name, recorded, computed in _certificate(result, one)
    ]
    if isinstance(result.ending, Exact):
        found += [one for each in result.ending.certificates for one in _exact(result, each)]
    if isinstance(result.ending, Canaries):
        found += _guesses(result, result.ending.deciding)
    found += _repeated(result)
    return [
        f"{name}: recorded {recorded!r}, recomputed {computed!r}"
        for name, recorded, computed in found
        if not _agree(recorded, computed)
    ]


def _certificate(result: AuditResult, one: Certificate) -> Iterator[Finding]:
    try:
        yield "the point tested is one of the claim's", True, _is_implied(result.claim, one.point)
        yield from _draws(one)
        computed = replace(one, **numbers(_evidence(result, one)))
        yield from _fields(one.fixed, computed.fixed)
        yield from _numbers(one, computed)
        if one.schedule is not None:
            rounds = list(map(beliefs_of, one.rounds))
            yield from follow_schedule(result.claim, one, one.schedule, rounds)
        yield from _interval(one)
    except (ValueError, ArithmeticError, LookupError, TypeError, RuntimeError) as error:
        yield "the record", f"cannot be recomputed ({error})", None


def _exact(result: AuditResult, one: ExactCertificate) -> Iterator[Finding]:
    yield f"{one.pair}: sum of the law of d1", 1.0, math.fsum(p for _, p, _ in one.law)
    yield f"{one.pair}: sum of the law of d2", 1.0, math.fsum(q for _, _, q in one.law)
    computed = certify(result.claim, one.pair, one.law)
    for name in (
        "refuted",
        "point",
        "epsilon",
        "epsilon_lower",
        "delta_lower",
        "probabilistic_delta",
        "event",
    ):
        yield f"{one.pair}: {name}", getattr(one, name), getattr(computed, name)


def _repeated(result: AuditResult) -> list[Finding]:
    """Return whether the claim follows from that for one record and one run."""
    found: list[Finding] = []
    one_run = result.claim
    if result.repeated is not None:
        one_run = result.repeated.claim
        claim = compose([one_run] * result.repeated.times)
        found.append(("the claim for all runs", result.claim, claim))
    if result.grouped is not None:
        claim = group(result.grouped.claim, result.grouped.size)
        found.append(("the claim for all records", one_run, claim))
    return found


def _guesses(result: AuditResult, one: OneRunCertificate) -> list[Finding]:
    seen = Guesses(one.canaries, one.guesses, one.correct)
    computed = certify_guesses(seen, result.claim, 1 - result.confidence)
    return [
        (f"{name} of the guesses", getattr(one, name), getattr(computed, name))
        for name in (
            "refuted",
            "point",
            "alpha",
            "epsilon_lower",
            "delta_lower",
            "p_value",
            "detectable_epsilon",
        )
    ]


def _is_implied(claim: PrivacyClaim, point: ProfilePoint) -> bool:
    """Whether the claim implies the inequality, but for other rounding in the last places."""
    return claim.profile(point.epsilon) <= point.delta * (1 + _RELATIVE)


def _draws(one: Certificate) -> Iterator[Finding]:
    for place, block in enumerate(one.blocks):
        yield f"draws of block {place}", block.draws, tally(block).draws
    yield "draws within the budget", True, one.draws <= one.budget
    ends = np.cumsum([block.draws for block in one.blocks]).tolist()
    yield "refuted after a block", True, one.refuted_after is None or one.refuted_after in ends
    yield "blocks in the order of their stages", True, _are_in_order(one)


def _are_in_order(one: Certificate) -> bool:
    """Whether stages and rounds come in order, and the exact test had draws of its own."""
    stages = [_STAGES.index(block.stage) for block in one.blocks]
    rounds = [block.round for block in one.blocks if block.round is not None]
    certified = {block.round for block in one.blocks if block.stage == "certification"}
    confirmed = {block.round for block in one.blocks if block.stage in _NOT_BET_ON}
    in_order = stages == sorted(stages) and rounds == sorted(rounds)
    last = {len(one.rounds) - 1} if certified else set()
    return in_order and certified == last and confirmed <= {None} and one.blocks[0].round is None


def _evidence(result: AuditResult, one: Certificate) -> Evidence:
    """Return what the numbers must follow from."""
    fixed = one.fixed
    if fixed.method == "probabilistic" and not result.claim.counts_single_outputs:
        raise ValueError("the probabilistic test belongs to the probabilistic definition")
    return Evidence(
        point=one.point,
        alpha=(1 - result.confidence) / max(1, len(result.certificates)),
        confidence=result.confidence,
        blocks=one.blocks,
        stage=fixed.stage,
        method=fixed.method,
        guesses=one.guesses,
        words=(_words(fixed, "d1"), _words(fixed, "d2")),
        rounds=one.rounds,
        accused=fixed.accused,
        thinned=_is_thinned(one),
    )


def _is_thinned(one: Certificate) -> bool:
    """Whether the draws of the exact test are a random part of fixed numbers of draws."""
    if one.fixed.stage != "recorded":
        return False
    if one.recording is None:
        raise ValueError("the numbers of recorded draws are missing")
    return not one.recording.coin_flipped and one.fixed.method != "clopper-pearson"


def _words(fixed: FixedTest, guess: str) -> str | None:
    return next((event.words for event in fixed.events if event.guess == guess), None)


def _fields(recorded: FixedTest, computed: FixedTest) -> Iterator[Finding]:
    for name in (one.name for one in fields(computed) if one.name not in _GIVEN):
        yield f"{name} of the exact test", getattr(recorded, name), getattr(computed, name)
    yield "events", _counts(recorded), _counts(computed)
    for shown, expected in zip(recorded.events, computed.events, strict=True):
        bounds = zip(_bounds(shown), _bounds(expected), strict=True)
        yield from ((f"intervals of the event {shown.words}", *both) for both in bounds)


def _counts(fixed: FixedTest) -> list[tuple[Any, ...]]:
    return [
        (one.words, one.guess, one.count_d1, one.draws_d1, one.count_d2, one.draws_d2)
        for one in fixed.events
    ]


def _bounds(event: EventCount) -> list[float]:
    return [*event.interval_d1, *event.interval_d2]


def _numbers(one: Certificate, computed: Certificate) -> Iterator[Finding]:
    for name, words in _NAMES.items():
        yield words, getattr(one, name), getattr(computed, name)
    bets_refute = computed.wealth * computed.alpha_betting >= 1
    yield "refuted by betting", one.refuted_after is not None, bets_refute


def _interval(one: Certificate) -> Iterator[Finding]:
    interval = one.interval
    if interval is None:
        return
    counts = [(d1, d2) for _, d1, d2 in interval.atoms]
    tallied = [tally(block).arms for block in one.blocks if block.stage == "certification"]
    sums = [tuple(map(sum, zip(*pairs, strict=True))) for pairs in (counts, tallied)]
    yield "draws of the declared range", sums[0], sums[1]
    yield "an interval at the planned end only", "certification", one.fixed.stage
    lower, upper = epsilon_interval(counts, one.alpha)
    yield "lower end of the interval", interval.lower, lower
    yield "upper end of the interval", interval.upper, upper


def _agree(recorded: Any, computed: Any) -> bool:
    if isinstance(recorded, float) and isinstance(computed, float):
        return math.isclose(recorded, computed, rel_tol=_RELATIVE, abs_tol=1e-12)
    return bool(recorded == computed)
