"""Recomputes a result from what it records: wealth, bounds and p-value, from the tallies alone."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dpaudit.auditing.canaries import certify_guesses
from dpaudit.auditing.recheck.schedule import follow_schedule
from dpaudit.auditing.spec import BETTING_SHARE, CERTIFICATION_SHARE, CONFIRMATION_SHARE
from dpaudit.auditing.stated_laws import certify
from dpaudit.certificates.exact_certificate import ExactCertificate
from dpaudit.certificates.fixed_test import Setting, atoms_test, game_test, pair_test
from dpaudit.certificates.replay import replay, tally
from dpaudit.certificates.result import AuditResult, Certificate, EventCount, FixedTest, Verdict
from dpaudit.claims import PrivacyClaim, ProbabilisticDP, ProfilePoint, compose
from dpaudit.stats.betting import Beliefs
from dpaudit.stats.finite import epsilon_interval
from dpaudit.stats.one_run import Guesses
from dpaudit.stats.thinning import TOSSED_AGAIN
from dpaudit.tally import Tally

# Other versions of the libraries may round differently in the last places.
_RELATIVE = 1e-6

_TESTS = {"game": game_test, "clopper-pearson": pair_test}
_STAGES = ("learning", "certification", "confirmation", "recorded")

_NOT_BET_ON = ("confirmation", "recorded")

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
    found += [finding for one in result.exact for finding in _exact(result, one)]
    found += [*_one_run(result), *_repeated(result)]
    refuted = any(one.refuted for one in result.by_pair)
    violation = result.verdict is Verdict.VIOLATION
    found.append(("verdict is a violation", violation, refuted))
    return [
        f"{name}: recorded {recorded!r}, recomputed {computed!r}"
        for name, recorded, computed in found
        if not _agree(recorded, computed)
    ]


def _certificate(result: AuditResult, one: Certificate) -> Iterator[Finding]:
    try:
        yield "the point tested is one of the claim's", True, _is_implied(result.claim, one.point)
        yield from _shares(result, one)
        yield from _draws(one)
        fixed = _fixed(result, one)
        yield from _fields(one.fixed, fixed)
        yield from _verdict(result, one, fixed)
        if one.schedule is not None:
            rounds = [_beliefs(entry["posteriors"], entry["rules"]) for entry in one.rounds]
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
    if result.repeated is None:
        return []
    claim = compose([result.repeated.claim] * result.repeated.times)
    return [("the claim for all runs", result.claim, claim)]


def _one_run(result: AuditResult) -> list[Finding]:
    one = result.one_run
    if one is None:
        return []
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


def _shares(result: AuditResult, one: Certificate) -> Iterator[Finding]:
    alpha = (1 - result.confidence) / max(1, len(result.certificates))
    if one.fixed.stage == "recorded":
        yield "share of the error probability", one.alpha, alpha
        yield "share for betting", one.alpha_betting, 0.0
        yield "share for the exact test", one.fixed.alpha, alpha * _recorded_share(one)
        return
    certifying = one.fixed.stage == "certification"
    share = CERTIFICATION_SHARE if certifying else CONFIRMATION_SHARE
    yield "share of the error probability", one.alpha, alpha
    yield "share for betting", one.alpha_betting, BETTING_SHARE * alpha
    yield "share for the exact test", one.fixed.alpha, share * alpha


def _recorded_share(one: Certificate) -> float:
    """Return the share of the level that is left where coins may have been tossed again."""
    if one.recording is None:
        raise ValueError("the numbers of recorded draws are missing")
    thinned = not one.recording.coin_flipped and one.fixed.method != "clopper-pearson"
    return 1 - TOSSED_AGAIN if thinned else 1.0


def _draws(one: Certificate) -> Iterator[Finding]:
    for place, block in enumerate(one.blocks):
        yield f"draws of block {place}", block.draws, tally(block).draws
    yield "draws", one.draws, sum(block.draws for block in one.blocks)
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


def _fixed(result: AuditResult, one: Certificate) -> FixedTest:
    fixed = one.fixed
    counts = [tally(block).counts for block in one.blocks if block.stage == fixed.stage]
    total = Tally(sum(counts, start=Tally.empty(len(one.guesses)).counts))
    setting = Setting(fixed.stage, one.point, fixed.alpha, result.confidence)
    if fixed.method == "probabilistic":
        if not isinstance(result.claim, ProbabilisticDP):
            raise ValueError("the probabilistic test belongs to the probabilistic definition")
        return atoms_test(setting, fixed.accused, total.arms)
    test = _TESTS[fixed.method]
    words = tuple(_words(fixed, guess) for guess in ("d1", "d2"))
    return test(setting, total, np.array(one.guesses, dtype=np.int64), words)


def _words(fixed: FixedTest, guess: str) -> str | None:
    return next((event.words for event in fixed.events if event.guess == guess), None)


def _fields(recorded: FixedTest, computed: FixedTest) -> Iterator[Finding]:
    for name in (
        "draws",
        "correct",
        "wrong",
        "two_guesses",
        "epsilon_lower",
        "delta_lower",
        "p_value",
        "detectable_epsilon",
    ):
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


def _verdict(result: AuditResult, one: Certificate, fixed: FixedTest) -> Iterator[Finding]:
    p_fixed = fixed.p_value * one.alpha / fixed.alpha
    if fixed.stage == "recorded":
        yield "wealth without bets", one.wealth, 1.0
        yield "ε without bets", one.epsilon_betting, 0.0
        yield "ε at least", one.epsilon_lower, fixed.epsilon_lower
        yield "δ at least", one.delta_lower, fixed.delta_lower
        yield "p-value", one.p_value, min(1.0, p_fixed)
        yield "refuted by betting", one.refuted_after, None
        yield "refuted", one.refuted, fixed.p_value <= fixed.alpha
        return
    rounds = [_beliefs(entry["posteriors"], entry["rules"]) for entry in one.rounds]
    bets = replay(one.point, one.alpha_betting, rounds, one.blocks)
    p_betting = math.exp(-max(0.0, bets.log_largest)) / BETTING_SHARE
    yield "wealth", one.wealth, math.exp(min(bets.log_largest, 700.0))
    yield "ε by betting", one.epsilon_betting, bets.epsilon_lower
    yield "ε at least", one.epsilon_lower, max(bets.epsilon_lower, fixed.epsilon_lower)
    yield "δ at least", one.delta_lower, fixed.delta_lower
    yield "p-value", one.p_value, min(1.0, p_betting, p_fixed)
    yield "refuted by betting", one.refuted_after is not None, bets.refuted
    yield "refuted", one.refuted, bets.refuted or fixed.p_value <= fixed.alpha


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


def _beliefs(posteriors: Sequence[Any], rules: Sequence[Any]) -> Beliefs:
    beliefs = Beliefs(np.array(posteriors, dtype=np.float64), np.array(rules, dtype=np.int64))
    # Only bets on these can be expected to win nothing under the claim.
    if not ((beliefs.posteriors > 0) & (beliefs.posteriors < 1)).all():
        raise ValueError("a believed probability is not in (0, 1)")
    if not np.isin(beliefs.rules, (-1, 0, 1)).all():
        raise ValueError("a guess is none of -1, 0, 1")
    return beliefs


def _agree(recorded: Any, computed: Any) -> bool:
    if isinstance(recorded, float) and isinstance(computed, float):
        return math.isclose(recorded, computed, rel_tol=_RELATIVE, abs_tol=1e-12)
    return bool(recorded == computed)
