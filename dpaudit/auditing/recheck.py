"""Recompute a result from its record, for `dpaudit report`.

A result file holds the tally (counts by level and input) of each block of draws, the beliefs of the
bettors, and the frozen rules. `recheck` recomputes wealth, p-values and bounds from these, and the
sizes of blocks from the schedule (schedule.py), and returns a sentence for each value that differs.
Private generators yield findings: tuples (name, recorded value, recomputed value), whether or not
the two values agree. A level is a bin of outputs. A round is the set of beliefs with which bettors
bet on some consecutive blocks.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import partial
from itertools import accumulate, chain
from typing import Any

import numpy as np

from dpaudit.auditing.canaries import certify_guesses, guess_numbers, wrong_numbers
from dpaudit.auditing.canary_scores import rate_of
from dpaudit.auditing.exact_pmf import certify
from dpaudit.auditing.exact_tests import several_points
from dpaudit.auditing.familywise import settled, share_of, unsettled
from dpaudit.auditing.options import MIN_SAMPLES
from dpaudit.auditing.schedule import FEW_DRAWS, Plan, look_stride, wants_refit
from dpaudit.auditing.underpowered import limits_of
from dpaudit.certificates.certificate import Certificate, ExactCertificate
from dpaudit.certificates.evidence import Evidence, numbers
from dpaudit.certificates.fixed_test import (
    VERSION_WITH_LARGE_EVENTS,
    FrozenRule,
    before_version_8,
)
from dpaudit.certificates.one_run import OneRunCertificate
from dpaudit.certificates.records import FixedTest, Schedule
from dpaudit.certificates.result import AuditResult, Family, Interrupted, Verdict
from dpaudit.certificates.wealth import beliefs_of, first_refuted, tally
from dpaudit.claims import PrivacyClaim, compose, group
from dpaudit.draws import Tally
from dpaudit.levels.portfolio import OTHER_SHARE, RARE_SHARE
from dpaudit.stats.binomial import epsilon_interval
from dpaudit.stats.one_run import Guesses
from dpaudit.stats.witness import Witness

# Two numbers count as equal up to this relative difference: versions of the libraries round
# differently.
_RELATIVE_TOLERANCE = 1e-6

# Allowed values for the least number of draws of a confirmation (new draws after bets have refuted
# the claim): for a mechanism that makes one draw per call, and for other mechanisms.
_CONFIRMING = (MIN_SAMPLES, FEW_DRAWS)

# Version of the result format that added the field `detectable_rare`. It is not compared in results
# of older versions.
_VERSION_WITH_RARE = 6
# The stages of a run, in their order. Each block of draws belongs to one of them.
_STAGES = ("learning", "certification", "confirmation", "recorded")
# Stages of a run in which no bets are made: bets have ended before a confirmation, and recorded
# draws are only tested.
_NOT_BET_ON = ("confirmation", "recorded")

# Fields of a certificate that cannot be recomputed from the counts, and so are not compared.
_REMARKS = ("pair", "warnings", "adjacency", "notes", "redrawn")

# A comparison: (name of a value, recorded value, recomputed value).
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
        for name, recorded, computed in chain(
            _of_pairs(result), _of_claims(result), _of_request(result)
        )
        if not _agree(recorded, computed)
    ]


def recheck_families(results: Sequence[AuditResult], *, has_ended: bool) -> list[str]:
    """Return a sentence for each contradiction in the records of families of audits.

    The audits of a family share one false-alarm probability (docs/method.md §9). For example, the
    level of an audit, the largest p-value that refutes its claim, must follow from the p-values of
    the family by Holm's procedure.

    results: results with or without a family.
    has_ended: whether all audits have ended, so that Holm's procedure was applied. If False, the
        level of each audit must be an equal share of the family's false-alarm probability.
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
            findings = _one_run(result, record)
        elif isinstance(record, ExactCertificate):
            findings = _exact(result, record)
        else:
            findings = _certificate(result, record)
        for name, *both in findings:
            yield f"{record.pair}: {name}", *both


def _one_run(result: AuditResult, record: OneRunCertificate) -> Iterator[Finding]:
    try:
        yield from _compared("", record, _guessed(result, record))
    except (ValueError, TypeError) as error:
        yield "the record", f"cannot be recomputed ({error})", None


def _guessed(result: AuditResult, record: OneRunCertificate) -> OneRunCertificate:
    """Return the certificate that follows from the recorded counts of guesses.

    result, record: the recorded result, which has the claim, and its certificate with the counts.
    """
    n, tests, independent = record.canaries, record.tests, record.is_independent
    numbers = [test.guesses for test in tests]
    if independent:
        pairs = zip(tests, wrong_numbers(n), strict=True)
        numbers = [test.correct + wrong for test, wrong in pairs]
    elif len(tests) > 1:
        numbers = list(guess_numbers(n))
    counts = [Guesses(n, number, test.correct) for number, test in zip(numbers, tests, strict=True)]
    computed = certify_guesses(counts, result.claim, 1 - result.confidence, independent)
    if record.scores is None:
        return computed
    total, level = record.scores.included, 1 - result.confidence
    rates = tuple(
        rate_of(one.false_positives, (one.above, one.fewest, one.most), total, level)
        for one in record.scores.rates
    )
    included, excluded = (sum(column) for column in zip(*record.scores.histogram, strict=True))
    sums = {"included": included, "excluded": excluded}
    scores = replace(record.scores, **sums, rates=rates)
    return replace(computed, canaries=included + excluded, scores=scores)


def _of_claims(result: AuditResult) -> Iterator[Finding]:
    """Recompute the tested claim. It follows from the claim for one run of the mechanism if the
    audit tests several runs, and from the claim for one record if the inputs differ in several
    records.

    Yield (name, recorded claim, recomputed claim) in each of these two cases; nothing in any other.
    """
    one_run = result.claim
    if result.repeated is not None:
        one_run = result.repeated.claim
        claim = compose([one_run] * result.repeated.times)
        yield "the claim for all runs", result.claim, claim
    if result.grouped is not None:
        claim = group(result.grouped.claim, result.grouped.size)
        yield "the claim for all records", one_run, claim


def _of_request(result: AuditResult) -> Iterator[Finding]:
    """Yield (name, value of the field, value in the settings) for each value that a result holds
    twice: as a field, and in the settings of its request. The caller compares the two values. Yield
    nothing for a result without a request.
    """
    settings = (result.request or {}).get("settings")
    if isinstance(settings, Mapping) and "name" in settings:
        yield "name", result.name, settings["name"]
        yield "expect", result.expect, settings.get("expect")


def _compared(name: str, recorded: Any, computed: Any) -> Iterator[Finding]:
    """Yield a finding (path, recorded value, computed value) for each value in two records, whether
    the values are equal or not. The path names the value, such as `fixed.alpha`.

    name: path to both records, which begins the paths of their values; "" for a whole certificate.
    recorded, computed: the two records.
    """
    if is_dataclass(recorded) and type(recorded) is type(computed):
        for part in (field.name for field in fields(recorded) if field.name not in _REMARKS):
            path = f"{name}.{part}" if name else part
            yield from _compared(path, getattr(recorded, part), getattr(computed, part))
    elif isinstance(recorded, tuple) and isinstance(computed, tuple):
        yield f"length of {name}", len(recorded), len(computed)
        for place, both in enumerate(zip(recorded, computed, strict=False)):
            yield from _compared(f"{name}[{place}]", *both)
    else:
        yield name, recorded, computed


def _exact(result: AuditResult, record: ExactCertificate) -> Iterator[Finding]:
    yield "sum of the law of d1", 1.0, math.fsum(p for _, p, _ in record.law)
    yield "sum of the law of d2", 1.0, math.fsum(q for _, _, q in record.law)
    yield from _compared("", record, certify(result.claim, record.pair, record.law))


def _certificate(result: AuditResult, record: Certificate) -> Iterator[Finding]:
    try:
        points = (test.point or record.betting_point for test in record.rules)
        for point in (record.betting_point, *points):
            # Libraries of different versions round differently, so a relative difference of 1e-6 is
            # allowed.
            is_implied = result.claim.profile(point.epsilon) <= point.delta * (
                1 + _RELATIVE_TOLERANCE
            )
            yield "the point tested is one of the claim's", True, is_implied
        yield from _draws(record)
        yield from _rules(record)
        computed = numbers(_evidence(result, record))
        if result.first_version is not None and result.first_version < _VERSION_WITH_RARE:
            computed["detectable_rare"] = None
        if (result.first_version or math.inf) < VERSION_WITH_LARGE_EVENTS:
            before = partial(before_version_8, point=record.betting_point)
            computed["fixed"] = before(computed["fixed"])
            computed["others"] = tuple(map(before, computed["others"]))
        for name, value in computed.items():
            yield from _compared(name, getattr(record, name), value)
        bets_refute = computed["wealth"] * computed["alpha_betting"] >= 1
        bets_refute |= _by_divergence(record)
        yield "refuted by betting", record.refuted_after is not None, bets_refute
        # The blocks of an interrupted run are the beginning of its schedule.
        if record.schedule is not None and not record.is_interrupted:
            yield from _blocks(result.claim, record, record.schedule)
        yield from _interval(record)
    except (ValueError, ArithmeticError, LookupError, TypeError, RuntimeError) as error:
        yield "the record", f"cannot be recomputed ({error})", None


def _by_divergence(record: Certificate) -> bool:
    """Return whether the recorded bets against the claimed Rényi divergence refute the claim; False
    if the record has no such bets.
    """
    bets = record.divergence_bets
    return bets is not None and bets.wealth * bets.alpha >= 1


def _rules(record: Certificate) -> Iterator[Finding]:
    """Yield comparisons (name, recorded value, required value) for the frozen rules, whether or not
    the two values agree: their kinds (main, rare, other) must be distinct, and their shares of the
    error probability must agree with the table in docs/method.md §4.
    """
    kinds = [test.kind for test in record.rules]
    yield "rules, each of a kind of its own", len(set(kinds)), len(kinds)
    if record.fixed.stage in ("confirmation", "betting", "interrupted"):
        yield f"rules of a {record.fixed.stage}", len(kinds), 1
    else:
        yield "a main rule", True, "main" in kinds
    shares = {"rare": RARE_SHARE, "other": OTHER_SHARE}
    rest = 1 - sum(shares[kind] for kind in kinds if kind != "main")
    for test in record.rules:
        share = shares.get(test.kind, rest)
        # A confirmation has only one rule, of any kind. It has the whole error probability.
        yield f"share of the {test.kind} rule", test.share, share if len(kinds) > 1 else 1.0


def _draws(record: Certificate) -> Iterator[Finding]:
    """Yield findings about the blocks: that their numbers of draws add up, and that their stages
    and rounds (sets of beliefs to bet with) have the right order.
    """
    for place, block in enumerate(record.blocks):
        yield f"draws of block {place}", block.draws, sum(map(sum, block.tally))
    yield "draws within the budget", True, record.draws <= record.budget
    ends = [None, *accumulate(block.draws for block in record.blocks)]
    yield "refuted after a block", True, record.refuted_after in ends
    stages = [_STAGES.index(block.stage) for block in record.blocks]
    yield "stages in their order", stages, sorted(stages)
    rounds = [block.round for block in record.blocks if block.round is not None]
    yield "rounds in their order", rounds, sorted(rounds)
    # A round is the set of beliefs with which bettors bet on some consecutive blocks of draws.
    # `block.round` is the index of the round, or None if nothing was bet on the block. All
    # certifying blocks must have the last round. Three kinds of blocks have no bets: the first
    # block, before which nothing was learned; the blocks of a confirmation; and recorded draws.
    certified = {block.round for block in record.blocks if block.stage == "certification"}
    yield "round of the certification", certified, {len(record.rounds) - 1} if certified else set()
    others = {block.round for block in record.blocks if block.stage in _NOT_BET_ON}
    yield "rounds of blocks without bets", others | {record.blocks[0].round}, {None}


def _evidence(result: AuditResult, record: Certificate) -> Evidence:
    """Return the recorded evidence, from which p-values and bounds are recomputed.

    Raises ValueError for a record that contradicts itself.
    """
    fixed, bets = record.fixed, record.divergence_bets
    if bets is not None and any(sum(map(sum, one.counts)) > record.draws for one in bets.bets):
        raise ValueError("a witness bet on more draws than were made")
    if fixed.method == "probabilistic" and not result.claim.counts_single_outputs:
        raise ValueError("the probabilistic test belongs to the probabilistic definition")
    return Evidence(
        point=record.betting_point,
        points=several_points(result.claim),
        alpha=(1 - result.confidence) / _pairs(result),
        confidence=result.confidence,
        blocks=record.blocks,
        stage=fixed.stage,
        method=fixed.method,
        rules=tuple(map(_rule, record.rules)),
        rounds=record.rounds,
        accused=fixed.accused,
        thinned=_is_thinned(record),
        limited=_limited(result.claim, record),
        divergence_bets=None if bets is None else bets.bets,
        limits=dict(result.claim.divergences()),
        ends_by_bets=record.schedule is not None and record.schedule.bets,
        illustration=_illustration(record),
        unseen=None if record.unseen is None else (record.unseen.count_d1, record.unseen.count_d2),
        ranges=record.unseen is not None and record.unseen.ranges,
    )


def _pairs(result: AuditResult) -> int:
    """Return the number of pairs that share the error probability of the audit."""
    ending = result.ending
    return ending.pairs if isinstance(ending, Interrupted) else max(1, len(result.certificates))


def _illustration(record: Certificate) -> Tally | None:
    """Return the counts of the event that illustrates a refutation by bets: draws by guess of the
    rule (d1, d2, none) and by input, (3, 2). Return None for a run that bets did not end.

    Raises ValueError if the counts are of all draws of the run, or more. The first draws choose the
    event, so only the draws after them may be counted.
    """
    fixed = record.fixed
    if fixed.stage == "interrupted":
        return Tally.empty(len(fixed.guesses))
    if fixed.stage != "betting":
        return None
    if fixed.draws >= record.draws:
        raise ValueError("the event was chosen before the first draw")
    counts = {event.guess: (event.count_d1, event.count_d2) for event in fixed.events}
    arms = [(event.draws_d1, event.draws_d2) for event in fixed.events]
    table = np.array([counts.get("d1", (0, 0)), counts.get("d2", (0, 0)), (0, 0)], dtype=np.int64)
    table[2] = np.array(arms[0] if arms else (fixed.draws, 0)) - table.sum(axis=0)
    return Tally(table)


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
    """Return whether the exact test counted only a random part of the recorded outputs
    (docs/method.md §12). It does so if the numbers of draws of d1 and d2 were fixed in advance, and
    the test counts right and wrong guesses (the distinguishing game, docs/method.md §2)."""
    if record.fixed.stage != "recorded":
        return False
    if record.recording is None:
        raise ValueError("the numbers of recorded draws are missing")
    return not record.recording.coin_flipped and record.fixed.method != "clopper-pearson"


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
    rounds = list(map(beliefs_of, record.rounds))
    refuted = first_refuted(record.betting_point, record.alpha_betting, rounds, record.blocks)
    after = record.refuted_after
    if _by_divergence(record) and after is not None and (refuted is None or refuted > after):
        # Take the recorded number of draws: the counts to repeat divergence bets are not recorded.
        refuted = after
    yield "draws of a confirmation, at least", True, schedule.confirming in _CONFIRMING
    ended = schedule.bets and not schedule.full and refuted is not None
    stopped = (bool(confirming) or ended) and not certifying
    if not schedule.by_clock:
        (sizes, now), (_, before) = (
            _learning(claim, record, schedule, stopped=stopped, full=full)
            for full in (schedule.full, False)
        )
        yield "blocks to learn from", learning, sizes
        recorded = [block.round for block in record.blocks if block.stage == "learning"]
        # `now` has the rounds (periods between two refits of the rules) of the present schedule,
        # `before` those of the schedule without the option `full`. Older versions of dpaudit used
        # the latter schedule even with `full`, so a record with the rounds `before` is accepted.
        yield "rounds of the blocks", recorded, before if recorded == before else now
    wanted = [] if stopped else list(plan.certifying_sizes(learned))
    made = wanted[: len(certifying)] if confirming or ended else wanted
    yield "blocks of the certification", certifying, made
    # All rounds (periods of fixed beliefs) must have the same bettors, who share the initial wealth
    # at the start: a bettor who joins later might stake wealth that another one has lost already.
    bettors = {(len(each.posteriors), len(each.rules)) for each in record.rounds}
    yield "bettors, the same in every round", True, len(bettors) <= 1
    early = {each.early for each in rounds}
    yield "bets from the first draws", early, {schedule.bets} if rounds else set()
    yield "stage of a run that bets ended", ended, record.fixed.stage == "betting"
    yield "draws to the refutation", record.refuted_after, refuted
    # Number of draws when bets refuted the claim; None if they did not. The next line computes
    # whether the budget then had room for a confirmation.
    at = spent if confirming else refuted
    room = at is not None and not schedule.full and record.budget - at >= schedule.confirming
    if ended:
        yield "draws at the refutation", record.draws, refuted
    elif confirming:
        yield "blocks of the confirmation", confirming, list(plan.confirming_sizes(spent))
        yield "draws before the confirmation", spent, refuted
        yield "room for a confirmation", True, room
    else:
        yield "draws at the planned end", record.draws, record.budget
        yield "draws after a refutation that ends the run", False, room


def _learning(
    claim: PrivacyClaim, record: Certificate, schedule: Schedule, *, stopped: bool, full: bool
) -> tuple[list[int], list[int | None]]:
    """Return the sizes that the learning blocks should have, and the rounds of their bets.

    A round is the index of the beliefs with which a block was bet on; None before anything was
    learned. The number of learning draws is taken from the record, since the counts of the run
    decided when learning ended.

    claim, record, schedule: the tested claim, the recorded certificate, and its schedule.
    stopped: whether a bet refuted the claim while learning, and so stopped the run. The last block
        in the buffer may then have fewer draws than planned: it ends with the look (part of a
        block) that refuted the claim.
    full: whether the run continues after a refutation (option `full`).
    """
    plan, points = Plan(record.budget, None, limits_of(record)), len(claim.points())
    recorded = [block.draws for block in record.blocks if block.stage == "learning"]
    sizes: list[int] = []
    rounds: list[int] = []
    spent, learned_from, round_ = 0, 0, -1
    while True:  # at most twice: the buffer may be extended to half of the budget
        for size in plan.learning_sizes(spent):
            sizes.append(size)
            rounds.append(round_)
            spent += size
            until = plan.buffer_until
            ends_by_bets = schedule.bets
            if spent < until and wants_refit(
                learned_from, spent, until, points, full=full, ends_by_bets=ends_by_bets
            ):
                round_, learned_from = round_ + 1, spent
        if sum(recorded) - schedule.counted <= plan.buffer_until or not plan.extend_buffer():
            break
        round_, learned_from = round_ + 1, spent
    kept, end, due = len(sizes), spent + schedule.counted, plan.next_freeze_check(spent)
    if not plan.may_freeze_early(end):
        end = max(end, plan.freeze_at)
    while schedule.counted and spent < end:
        round_ += 1
        refit_at = plan.next_refit(spent, due, record.betting_point.delta)
        counted = list(plan.counting_sizes(spent, refit_at))
        sizes += counted
        rounds += [round_] * len(counted)
        spent += sum(counted)
        due = plan.next_freeze_check(spent) if spent >= due else due
    if stopped:
        sizes = sizes[: len(recorded)]
        is_kept = 0 < len(recorded) <= kept
        stride = look_stride(sizes[-1], ends_by_bets=schedule.bets)
        if is_kept and recorded[-1] < sizes[-1] and recorded[-1] % stride == 0:
            sizes[-1] = recorded[-1]
    return sizes, [None if number < 0 else number for number in rounds[: len(recorded)]]


def _agree(recorded: Any, computed: Any) -> bool:
    """Return whether two values are equal up to rounding: relative 1e-6, or absolute 1e-12."""
    if isinstance(recorded, float) and isinstance(computed, float):
        return math.isclose(recorded, computed, rel_tol=_RELATIVE_TOLERANCE, abs_tol=1e-12)
    return bool(recorded == computed)
