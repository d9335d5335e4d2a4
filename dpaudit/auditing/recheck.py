"""Recomputes a result from its record, for `dpaudit report`.

A result file holds the tally (counts by level and input) of each block of draws, the beliefs of the
bettors, and the frozen rules. `recheck` recomputes wealth, p-values and bounds from these, and the
sizes of blocks from the schedule (schedule.py), and returns a sentence for each value that differs.
Private generators yield findings: tuples (name, recorded value, recomputed value), whether or not
the two values agree. A level is a bin of outputs; a round is a set of beliefs that was bet with.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from itertools import accumulate
from typing import Any

from dpaudit.auditing.canaries import certify_guesses
from dpaudit.auditing.exact_pmf import certify
from dpaudit.auditing.familywise import settled, share_of, unsettled
from dpaudit.auditing.options import MINIMUM_SAMPLES
from dpaudit.auditing.pair_audit import several_points
from dpaudit.auditing.schedule import CONFIRMING, Plan, look_stride, wants_refit
from dpaudit.auditing.underpowered import limits_of
from dpaudit.certificates.certificate import (
    Block,
    Certificate,
    EventCount,
    ExactCertificate,
    FixedTest,
    OneRunCertificate,
    Schedule,
)
from dpaudit.certificates.evidence import Evidence, numbers
from dpaudit.certificates.fixed_test import FrozenRule
from dpaudit.certificates.result import AuditResult, Family, Verdict
from dpaudit.certificates.wealth import beliefs_of, first_refuted, tally
from dpaudit.claims import PrivacyClaim, ProfilePoint, compose, group
from dpaudit.levels.portfolio import OTHER_SHARE, RARE_SHARE
from dpaudit.stats.binomial import epsilon_interval
from dpaudit.stats.one_run import Guesses
from dpaudit.stats.witness import Witness

# Largest relative difference of two equal numbers: versions of the libraries round differently.
_RELATIVE = 1e-6

# Allowed minimum sizes of a confirmation, in draws: for a mechanism with one draw per call, and for
# other mechanisms.
_CONFIRMING = (MINIMUM_SAMPLES, CONFIRMING)

# Fields of a certificate: {name of the field: name in findings}.
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
# First version of the format of result files that has the field `detectable_rare`.
_VERSION_WITH_RARE = 6
# Stages of blocks, in the order in which a run passes through them.
_STAGES = ("learning", "certification", "confirmation", "recorded")
# Stages whose blocks are not bet on.
_NOT_BET_ON = ("confirmation", "recorded")

# Fields of an exact test that are inputs of the computation, and so are not compared.
_GIVEN = ("stage", "method", "accused")
# Fields of a certificate that do not follow from its counts, and so are not compared.
_REMARKS = ("pair", "warnings", "adjacency", "notes", "redrawn")

# (name of a value, recorded value, recomputed value)
Finding = tuple[str, Any, Any]


def recheck(result: AuditResult) -> list[str]:
    """Return a sentence for each value of a result that does not follow from the recorded counts.

    The recheck cannot show that the draws were made, or that the counts come from draws.

    Returns
    -------
    list of str
        Empty if all values agree, and for a result with the verdict ERROR.
    """
    if result.verdict is Verdict.ERROR:
        return []
    return [
        f"{name}: recorded {recorded!r}, recomputed {computed!r}"
        for name, recorded, computed in (
            *_of_pairs(result),
            *_of_claims(result),
            *_of_request(result),
        )
        if not _agree(recorded, computed)
    ]


def recheck_families(results: Sequence[AuditResult], *, has_ended: bool) -> list[str]:
    """Return a sentence for each contradiction in families of audits (docs/method.md §9).

    Empty if the levels of all audits follow from their p-values by Holm's procedure.

    results: results with or without a family.
    has_ended: whether all audits have ended, so that Holm's procedure was applied.
    """
    members = [(one, one.family) for one in results if one.family is not None]
    families: dict[str, list[Family]] = {}
    for _, family in members:
        families.setdefault(family.name, []).append(family)
    findings = [
        f"{name}: its audits do not agree on how many they are, and how sure"
        for name, own in families.items()
        if len({(one.size, one.confidence) for one in own}) > 1 or len(own) > own[0].size
    ]
    names = Counter((family.name, one.name) for one, family in members)
    findings += [
        f"{family_name}: the audit {name!r} stands {times} times in it, and counts once"
        for (family_name, name), times in names.items()
        if times > 1
    ]
    findings += [
        f"{one.name}: chance has no part in it, so that it shares no error probability"
        for one, _ in members
        if not one.ending.by_chance
    ]
    if findings:
        return findings
    expected = settled(results) if has_ended else unsettled(results)
    for recorded, computed in zip(results, expected, strict=True):
        if recorded.family is None or computed.family is None:
            continue
        own_share = share_of(recorded.family.confidence, recorded.family.size)
        for name, *both in (
            ("level of Holm's procedure", recorded.family.level, computed.family.level),
            ("confidence of its share", recorded.confidence, own_share),
        ):
            if not _agree(*both):
                difference = "recorded {!r}, recomputed {!r}".format(*both)
                findings.append(f"{recorded.name}: {name}: {difference}")
    return findings


def _of_pairs(result: AuditResult) -> Iterator[Finding]:
    for record in result.by_pair:
        if isinstance(record, OneRunCertificate):
            yield from _guesses(result, record)
        elif isinstance(record, ExactCertificate):
            yield from _exact(result, record)
        else:
            for name, *both in _certificate(result, record):
                yield f"{record.pair}: {name}", *both


def _of_claims(result: AuditResult) -> Iterator[Finding]:
    """Yield findings that compare the tested claim with the claim for all runs and records."""
    one_run = result.claim
    if result.repeated is not None:
        one_run = result.repeated.claim
        claim = compose([one_run] * result.repeated.times)
        yield "the claim for all runs", result.claim, claim
    if result.grouped is not None:
        claim = group(result.grouped.claim, result.grouped.size)
        yield "the claim for all records", one_run, claim


def _of_request(result: AuditResult) -> Iterator[Finding]:
    """Yield findings for values that are both fields of the result and settings of its request.

    Yields nothing for older files, which have no settings.
    """
    settings = (result.request or {}).get("settings")
    if isinstance(settings, Mapping) and "name" in settings:
        yield "name", result.name, settings["name"]
        yield "expect", result.expect, settings.get("expect")


def _compared(
    recorded: Any, computed: Any, but: Collection[str], words: str = "{}"
) -> Iterator[Finding]:
    """Yield a finding for each field of two certificates or tests, except the fields in `but`.

    words: format string for the name of a finding; `{}` stands for the name of the field.
    """
    for name in (field.name for field in fields(computed) if field.name not in but):
        yield words.format(name), getattr(recorded, name), getattr(computed, name)


def _exact(result: AuditResult, record: ExactCertificate) -> Iterator[Finding]:
    yield f"{record.pair}: sum of the law of d1", 1.0, math.fsum(p for _, p, _ in record.law)
    yield f"{record.pair}: sum of the law of d2", 1.0, math.fsum(q for _, _, q in record.law)
    for name, *both in _compared(record, certify(result.claim, record.pair, record.law), _REMARKS):
        yield f"{record.pair}: {name}", *both


def _guesses(result: AuditResult, record: OneRunCertificate) -> Iterator[Finding]:
    seen = Guesses(record.canaries, record.guesses, record.correct)
    computed = certify_guesses(seen, result.claim, 1 - result.confidence)
    yield from _compared(record, computed, _REMARKS, "{} of the guesses")


def _certificate(result: AuditResult, record: Certificate) -> Iterator[Finding]:
    try:
        tested = [
            record.betting_point,
            *(test.point or record.betting_point for test in record.rules),
        ]
        for point in tested:
            # With a tolerance, since versions of the libraries round differently.
            is_implied = result.claim.profile(point.epsilon) <= point.delta * (1 + _RELATIVE)
            yield "the point tested is one of the claim's", True, is_implied
        yield from _draws(record)
        computed = replace(record, **numbers(_evidence(result, record)))
        yield from _rules(record)
        for recorded, again in zip(record.rules, computed.rules, strict=True):
            yield from _compared(recorded, again, _GIVEN, "{} of the exact test")
        yield "the rule that is shown", record.fixed.kind, computed.fixed.kind
        yield "the inequality that is shown", record.point, computed.point
        if record.divergence is not None:
            yield from _compared(record.divergence, computed.divergence, (), "{} of the divergence")
        if record.unseen is not None:
            yield from _compared(record.unseen, computed.unseen, (), "{} of what was new")
        yield from _numbers(record, computed)
        is_older = result.first_version is not None and result.first_version < _VERSION_WITH_RARE
        rare = None if is_older else computed.detectable_rare
        yield "probability of rare outputs that are refuted", record.detectable_rare, rare
        if record.schedule is not None:
            yield from _blocks(result.claim, record, record.schedule)
        yield from _interval(record)
    except (ValueError, ArithmeticError, LookupError, TypeError, RuntimeError) as error:
        yield "the record", f"cannot be recomputed ({error})", None


def _rules(record: Certificate) -> Iterator[Finding]:
    """Yield findings about the kinds of the frozen rules and their shares of the error probability.

    See the table of rules in docs/method.md §4.
    """
    kinds = [test.kind for test in record.rules]
    yield "rules, each of a kind of its own", len(set(kinds)), len(kinds)
    if record.fixed.stage == "confirmation":
        yield "rules of a confirmation", len(kinds), 1
    else:
        yield "a main rule", True, "main" in kinds
    shares = {"rare": RARE_SHARE, "other": OTHER_SHARE}
    rest = 1 - sum(shares[kind] for kind in kinds if kind != "main")
    for test in record.rules:
        share = shares.get(test.kind, rest)
        # A single rule has the whole error probability; in a confirmation it may be of any kind.
        yield f"share of the {test.kind} rule", test.share, share if len(kinds) > 1 else 1.0


def _draws(record: Certificate) -> Iterator[Finding]:
    for place, block in enumerate(record.blocks):
        yield f"draws of block {place}", block.draws, sum(map(sum, block.tally))
    yield "draws within the budget", True, record.draws <= record.budget
    ends = list(accumulate(block.draws for block in record.blocks))
    yield (
        "refuted after a block",
        True,
        record.refuted_after is None or record.refuted_after in ends,
    )
    yield "blocks in the order of their stages", True, _are_in_order(record)


def _are_in_order(record: Certificate) -> bool:
    """Return whether the stages and rounds of the blocks are in order.

    Then all certifying blocks were bet on with the last beliefs, and nothing was bet on the first
    block or on a confirmation.
    """
    stages = [_STAGES.index(block.stage) for block in record.blocks]
    rounds = [block.round for block in record.blocks if block.round is not None]
    certified = {block.round for block in record.blocks if block.stage == "certification"}
    confirmed = {block.round for block in record.blocks if block.stage in _NOT_BET_ON}
    in_order = stages == sorted(stages) and rounds == sorted(rounds)
    last = {len(record.rounds) - 1} if certified else set()
    return in_order and certified == last and confirmed <= {None} and record.blocks[0].round is None


def _evidence(result: AuditResult, record: Certificate) -> Evidence:
    """Return the recorded evidence, from which p-values and bounds are recomputed.

    Raises ValueError for a record that contradicts itself.
    """
    fixed = record.fixed
    if fixed.method == "probabilistic" and not result.claim.counts_single_outputs:
        raise ValueError("the probabilistic test belongs to the probabilistic definition")
    return Evidence(
        point=record.betting_point,
        points=several_points(result.claim),
        alpha=(1 - result.confidence) / max(1, len(result.certificates)),
        confidence=result.confidence,
        blocks=record.blocks,
        stage=fixed.stage,
        method=fixed.method,
        rules=tuple(map(_rule, record.rules)),
        rounds=record.rounds,
        accused=fixed.accused,
        thinned=_is_thinned(record),
        limited=_limited(result.claim, record),
        unseen=None if record.unseen is None else (record.unseen.count_d1, record.unseen.count_d2),
        ranges=record.unseen is not None and record.unseen.ranges,
    )


def _rule(test: FixedTest) -> FrozenRule:
    words = {event.guess: event.words for event in test.events}
    both = (words.get("d1"), words.get("d2"))
    return FrozenRule(test.kind, test.share, test.attack, test.guesses, both, test.point)


def _limited(claim: PrivacyClaim, record: Certificate) -> tuple[Witness, float] | None:
    if record.divergence is None:
        return None
    witness = record.divergence.witness
    if len(witness.values) != len(record.guesses):
        raise ValueError("the witness has a number for every level")
    return witness, dict(claim.divergences())[witness.order]


def _is_thinned(record: Certificate) -> bool:
    """Return whether the exact test counted a random part of a recording (docs/method.md §12).

    That is so if the numbers of recorded draws of d1 and d2 were fixed and the game certified.
    """
    if record.fixed.stage != "recorded":
        return False
    if record.recording is None:
        raise ValueError("the numbers of recorded draws are missing")
    return not record.recording.coin_flipped and record.fixed.method != "clopper-pearson"


def _numbers(record: Certificate, computed: Certificate) -> Iterator[Finding]:
    for name, words in _NAMES.items():
        yield words, getattr(record, name), getattr(computed, name)
    bets_refute = computed.wealth * computed.alpha_betting >= 1
    yield "refuted by betting", record.refuted_after is not None, bets_refute


def _interval(record: Certificate) -> Iterator[Finding]:
    interval = record.interval
    if interval is None:
        return
    counts = [(d1, d2) for _, d1, d2 in interval.atoms]
    tallied = [tally(block).arms for block in record.blocks if block.stage == "certification"]
    sums = [tuple(map(sum, zip(*pairs, strict=True))) for pairs in (counts, tallied)]
    yield "draws of the declared range", sums[0], sums[1]
    yield "an interval at the planned end only", "certification", record.fixed.stage
    lower, upper = epsilon_interval(counts, record.alpha)
    yield "lower end of the interval", interval.lower, lower
    yield "upper end of the interval", interval.upper, upper


def _blocks(claim: PrivacyClaim, record: Certificate, schedule: Schedule) -> Iterator[Finding]:
    """Yield findings that compare the recorded blocks with the blocks of the schedule.

    With a time limit, the clock decided the number of learning draws, so the learning blocks are
    taken from the record as they are.
    """
    plan = Plan(record.budget, None, limits_of(record))
    learning, certifying, confirming = (
        [block.draws for block in record.blocks if block.stage == stage]
        for stage in ("learning", "certification", "confirmation")
    )
    learned, spent = sum(learning), sum(learning) + sum(certifying)
    yield "draws of a confirmation, at least", True, schedule.confirming in _CONFIRMING
    stopped = bool(confirming) and not certifying
    if not schedule.by_clock:
        kept, ends = _kept(plan, learned - schedule.counted)
        later = list(_phases(plan, schedule.counted, record.betting_point.delta))
        counted = [size for phase in later for size in phase]
        yield "blocks to learn from", learning, _learning(kept, learning, counted, stopped)
        recorded = [block.round for block in record.blocks if block.stage == "learning"]
        now, before = (
            _rounds(claim, record.blocks, ends, later, full=full)
            for full in (schedule.full and not schedule.by_clock, False)
        )
        # Older versions of dpaudit refitted runs with --full as often as other runs.
        yield "rounds of the blocks", recorded, before if recorded == before else now
    wanted = [] if stopped else list(plan.certifying_sizes(learned))
    made = wanted[: len(certifying)] if confirming else wanted
    yield "blocks of the certification", certifying, made
    rounds = list(map(beliefs_of, record.rounds))
    # The number of bettors must not change: a new bettor would get a stake that an old bettor has
    # already lost.
    bettors = {(len(each.posteriors), len(each.rules)) for each in record.rounds}
    yield "bettors, the same in every round", True, len(bettors) <= 1
    refuted = first_refuted(record.betting_point, record.alpha_betting, rounds, record.blocks)
    yield "draws to the refutation", record.refuted_after, refuted
    if confirming:
        fresh = list(plan.confirming_sizes(spent))
        yield "blocks of the confirmation", confirming, fresh
        yield "draws before the confirmation", spent, refuted
        yield "room for a confirmation", True, _has_room(record, schedule, spent)
    else:
        yield "draws at the planned end", record.draws, record.budget
        stops = refuted is not None and _has_room(record, schedule, refuted)
        yield "draws after a refutation that ends the run", False, stops


def _has_room(record: Certificate, schedule: Schedule, spent: int) -> bool:
    """Return whether a refutation after `spent` draws leaves room for a confirmation."""
    return not schedule.full and record.budget - spent >= schedule.confirming


def _kept(plan: Plan, kept: int) -> tuple[list[int], list[int]]:
    """Return the sizes of the blocks in the sample buffer, and where the buffer was closed.

    The second list has the number of draws at the usual end of the buffer, and the number at its
    end after an extension to half of the budget, if it was extended.

    kept: recorded number of draws in the buffer.
    """
    ends, sizes = [plan.buffer_until], list(plan.learning_sizes())
    if kept > plan.buffer_until and plan.extend_buffer():
        ends.append(plan.buffer_until)
        sizes += plan.learning_sizes(ends[0])
    return sizes, ends


def _phases(plan: Plan, counted: int, delta: float) -> Iterator[list[int]]:
    """Yield a list for each phase of counted learning draws: the sizes of the blocks in the phase.

    A phase lies between two refits. The recorded counts decided when learning ended, so that
    number of draws is taken from the record.

    counted: recorded number of learning draws that were counted and not kept.
    delta: δ of the point that is bet against.
    """
    spent = plan.buffer_until
    until = spent + counted
    if not plan.may_freeze_early(until):
        until = max(until, plan.freeze_at)
    due = plan.next_freeze_check(spent)
    while counted and spent < until:
        sizes = list(plan.counting_sizes(spent, plan.next_refit(spent, due, delta)))
        spent += sum(sizes)
        yield sizes
        if spent >= due:
            due = plan.next_freeze_check(spent)


def _learning(
    kept: list[int], recorded: Sequence[int], later: list[int], stopped: bool
) -> list[int]:
    """Return the sizes that the learning blocks should have.

    If a bet refuted the claim while learning, the run stopped at that block. A block of the buffer
    is then cut after the look that refuted; a look is a part of a block that is bet on at a time.

    kept: scheduled sizes of blocks in the buffer.  recorded: recorded sizes of learning blocks.
    later: scheduled sizes of blocks that are only counted.
    stopped: whether a bet refuted the claim while learning.
    """
    wanted = [*kept, *later]
    if not stopped:
        return wanted
    wanted = wanted[: len(recorded)]
    is_kept = 0 < len(recorded) <= len(kept)
    if is_kept and recorded[-1] < wanted[-1] and recorded[-1] % look_stride(wanted[-1]) == 0:
        wanted[-1] = recorded[-1]
    return wanted


def _rounds(
    claim: PrivacyClaim,
    blocks: Sequence[Block],
    ends: list[int],
    later: list[list[int]],
    *,
    full: bool,
) -> list[int | None]:
    """Return, for each learning block, the index of the beliefs that should be bet with.

    None stands for a block on which nothing is bet, since nothing was learned before it.

    ends: number of draws at each end of the sample buffer.
    later: sizes of the blocks in each phase of counted learning draws.
    full: whether the run continues after a refutation (--full).
    """
    learning = [block for block in blocks if block.stage == "learning"]
    points = len(claim.points())
    wanted: list[int | None] = []
    round_, learned_from = None, 0
    # Each phase of counted learning draws begins with a refit.
    refits = set(accumulate(map(sum, later[:-1]), initial=ends[-1])) if later else set()
    refits.update(ends[:-1])
    for _, spent in zip(learning, accumulate(block.draws for block in learning), strict=True):
        wanted.append(round_)
        buffer_until = next((end for end in ends if spent < end), 0)
        is_kept = spent < buffer_until and wants_refit(
            learned_from, spent, buffer_until, points, full=full
        )
        if is_kept or spent in refits:
            round_, learned_from = 0 if round_ is None else round_ + 1, spent
    return wanted


def _agree(recorded: Any, computed: Any) -> bool:
    """Return whether two values are equal up to rounding: relative 1e-6, or absolute 1e-12."""
    if isinstance(recorded, float) and isinstance(computed, float):
        return math.isclose(recorded, computed, rel_tol=_RELATIVE, abs_tol=1e-12)
    if isinstance(recorded, tuple) and isinstance(computed, tuple):
        return len(recorded) == len(computed) and all(map(_agree, recorded, computed))
    if isinstance(recorded, EventCount | ProfilePoint) and type(recorded) is type(computed):
        names = [field.name for field in fields(recorded)]
        return all(_agree(getattr(recorded, n), getattr(computed, n)) for n in names)
    return bool(recorded == computed)
