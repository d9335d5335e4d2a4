"""Check whether an audit had enough draws to refute its claim; if not, its result shows nothing.

Most functions return a message for the report if draws, or guesses about canaries, are too few;
else None. engine.py, recorded_outputs.py and single_run.py put it into `AuditResult.underpowered`,
which leads to exit code 4 (docs/method.md §8). planning.py computes numbers of draws by the
functions here.
"""

from __future__ import annotations

import math
import shlex
from bisect import bisect_left
from collections.abc import Callable, Sequence
from operator import itemgetter

from dpaudit.auditing.options import MAX_SAMPLES, MIN_SAMPLES
from dpaudit.auditing.schedule import Plan
from dpaudit.auditing.spec import AuditSpec
from dpaudit.certificates.certificate import Certificate, FixedTest
from dpaudit.certificates.certify import detectable_rare_of_any
from dpaudit.certificates.evidence import BETTING_SHARE, CERTIFICATION_SHARE, DrawLimits
from dpaudit.claims import PrivacyClaim, ProfilePoint
from dpaudit.inputs.neighbouring import EQUAL_INPUTS
from dpaudit.inputs.records import are_equal
from dpaudit.levels.portfolio import OTHER_SHARE, RARE_SHARE
from dpaudit.stats.binomial import clopper_pearson_lower, right_share
from dpaudit.stats.power import (
    POWER,
    detectable_epsilon,
    detectable_epsilon_pair,
    draws_to_refute,
    telling_share,
)
from dpaudit.wording import counted

# Error probability of two estimates: the lower bound for the probability of an event, and the test
# of whether a trial guesses d1 or d2 better than chance.
ESTIMATE_ALPHA = 0.01
# The next audit may learn a rarer event than this audit. So the share of its draws that are in the
# event is assumed to be 0.9 times the share in this audit.
_SHARE_IN_NEXT_AUDIT = 0.9


def why_underpowered(spec: AuditSpec, certificates: Sequence[Certificate]) -> str | None:
    """Return a message if an audit could not have refuted its claim, or lacks the power that it
    requires."""
    if any(certificate.refuted for certificate in certificates):
        return None
    budgets = [pair.evidence.budget for pair in certificates if spec.sampling.time is not None]
    reason = foreseen(spec) or (too_few(spec.tested, spec.alpha, max(budgets)) if budgets else None)
    if certificates and all(map(raised_only, certificates)):
        reason = reason or "all draws of all inputs raised an exception; an audit needs outputs"
    reason = reason or next(filter(None, map(saw_nothing, certificates)), None)
    if reason is not None or not certificates:
        return reason
    factor, rare, points = (
        spec.requirements.require_power,
        spec.requirements.require_rare,
        spec.tested.points(),
    )
    # The number of draws that would be enough is known for a claim of one point, and for an audit
    # that makes all draws of its budget.
    is_forecast = len(points) == 1 and {pair.evidence.budget for pair in certificates} == {
        spec.sampling.samples
    }
    weak = None
    if factor is not None:
        weak = too_weak(certificates, factor, spec.origin.command, is_forecast=is_forecast)
    missed = None if rare is None else misses_rare(certificates, rare, points, spec.origin.command)
    return "; ".join(filter(None, (weak, missed))) or None


def raised_only(certificate: Certificate) -> bool:
    """Return whether all draws of an audit raised an exception."""
    raised = sum(d1 + d2 for d1, d2 in certificate.failures.values())
    return 0 < certificate.draws == raised


def foreseen(spec: AuditSpec) -> str | None:
    """Return a message if the specification alone shows that an audit cannot refute its claim: its
    inputs are equal, or its draws are too few. With a time limit, the number of draws is unknown
    and not checked."""
    # An audit of equal inputs cannot refute anything. `repr` is compared, too, since inputs such as
    # 1 and True are equal by ==, but the mechanism can distinguish them.
    same = [are_equal(pair.d1, pair.d2) and repr(pair.d1) == repr(pair.d2) for pair in spec.pairs]
    if same and all(same):
        return EQUAL_INPUTS
    return (
        None
        if spec.statistics.exact or spec.sampling.time is not None
        else too_few(spec.tested, spec.alpha, spec.sampling.samples)
    )


def least_to_refute(claim: PrivacyClaim, alpha: float) -> int:
    """Return the smallest number of draws of a pair that could refute the claim; 0 if no number
    could."""
    points = [point for point in claim.points() if not no_draws_could(point, alpha)]
    return min((_enough(point, alpha) for point in points), default=0)


def too_few(claim: PrivacyClaim, alpha: float, samples: int) -> str | None:
    """Return a message if `samples` draws cannot refute the claim even in the best case, in which
    every draw reveals its input. The message names a number of draws that could."""
    points = claim.points()
    if any(_can_refute(point, samples, alpha) for point in points):
        return None
    point = min(points, key=lambda point: _enough(point, alpha))
    remedy = f"; at least {_enough(point, alpha):,} could (samples)"
    if no_draws_could(point, alpha):
        remedy = ", and no number of draws could"
    return _cannot_refute(counted(samples, "draw"), point, remedy, " even if every draw")


def too_weak(
    certificates: Sequence[Certificate],
    factor: float,
    command: str | None = None,
    *,
    is_forecast: bool = True,
) -> str | None:
    """Return a message if a pair has less power than the option `require_power` asks for: if the
    smallest ε that it would have detected is above `factor` times the claimed ε. The message names
    the worst pair. Pairs that were tested at ε = 0 are ignored.

    command: as in `misses_rare`.
    is_forecast: whether the message names a number of draws that would be enough, if events are as
        frequent as in these draws.
    """
    leaks = [
        (most_powerful(certificate).detectable_epsilon, certificate) for certificate in certificates
    ]
    weak = [
        (e / certificate.point.epsilon, e, certificate)
        for e, certificate in leaks
        if certificate.point.epsilon > 0
    ]
    worst, least, weakest = max(weak, key=itemgetter(0), default=(0.0, 0.0, certificates[0]))
    if worst <= factor:
        return None
    of = f" on {weakest.pair}" if len(certificates) > 1 else ""
    leak = f"only leaks of ε ≥ {least:.4g}" if math.isfinite(least) else "no leak"
    more = (
        _more_draws(weak, factor, command) if is_forecast else "; more draws may catch smaller ones"
    )
    return (
        f"it would have caught {leak}{of}, but {factor:g} times the claim is ε = "
        f"{factor * weakest.point.epsilon:.4g}{more}"
    )


def _more_draws(
    weak: Sequence[tuple[float, float, Certificate]], factor: float, command: str | None
) -> str:
    """Return the end of the message of `too_weak`: the number of draws that would be enough."""
    needed = []
    for times, _, certificate in weak:
        test = most_powerful(certificate)
        if times > factor and test.method != "probabilistic":
            share = _SHARE_IN_NEXT_AUDIT * event_share(test)
            needed.append(draws_needed(certificate, share, factor, POWER))
    known = [number for number in needed if number is not None]
    if not known or len(known) < len(needed):
        return "; no number of draws is known to be enough for this event"
    option = _option("samples", f"{max(known):_}", command)
    return f"; for an event as frequent as this one, about {option} would be enough"


def most_powerful(certificate: Certificate) -> FixedTest:
    """Return the exact test that can detect the smallest ε, of all rules that test the point of the
    certificate."""
    alike = [test for test in certificate.rules if test.rule.point == certificate.fixed.rule.point]
    return min(alike, key=lambda test: test.detectable_epsilon)


def misses_rare(
    certificates: Sequence[Certificate],
    probability: float,
    points: Sequence[ProfilePoint],
    command: str | None = None,
) -> str | None:
    """Return a message if an audit has less power than the option `require_rare` asks for. An
    output that only one input gives is detected from some probability on. The message names this
    probability, and the draws that are needed.

    probability: value of `require_rare`, the probability of an output that has to be detected.
    command: command line that repeats the audit; decides how the message writes options.
    """
    caught = ((pair.detectable_rare, pair) for pair in certificates)
    every = ((math.inf if least is None else least, pair) for least, pair in caught)
    weak = [(least, pair) for least, pair in every if least > probability]
    if not weak:
        return None
    worst, weakest = max(weak, key=itemgetter(0))
    of = f" on {weakest.pair}" if len(certificates) > 1 else ""
    shown = "no output of only one input"
    if math.isfinite(worst):
        shown = f"an output of only one input if its probability is {worst:.3g} or more"
    option = _option("require_rare", f"{probability:g}", command)
    text = f"too few draws{of} for {option}: they show {shown}"
    allowing = min(point.delta for point in points)
    if allowing >= probability:
        return f"{text}; no number of draws could, since δ = {allowing:.3g} allows such outputs"
    needed = [draws_for_rare(pair, probability, points) for _, pair in weak]
    if None in needed:
        return f"{text}; no number of draws could"
    samples = max(number for number in needed if number is not None)
    return f"{text}. Use {_option('samples', f'{samples:_}', command)}."


def _option(name: str, value: str, command: str | None) -> str:
    """Return an option and its value as the user would write them, such as `--samples 1000`."""
    if command is None:
        return f"{name}={value}"
    words = shlex.split(command)
    target = words[words.index("dpaudit") + 2 :][:1]
    if any(word.endswith((".yaml", ".yml")) for word in target):
        return f"{name}: {value}"
    return f"--{name.replace('_', '-')} {value}"


def draws_for_rare(
    certificate: Certificate,
    probability: float,
    points: Sequence[ProfilePoint],
    *,
    power: float = POWER,
) -> int | None:
    """Return the number of draws of a pair that an audit needs to detect an output that one input
    gives with this `probability`, and the other never. It is rounded up to three digits; None if no
    number is enough.

    certificate: the certificate of an audit with the same error probability and share of learning
        draws.
    points: the output has to refute at least one of them.
    """
    test = certificate.fixed
    points = [point for point in points if point.delta < probability]
    if not points:
        return None
    limits = certificate.evidence.limits or DrawLimits()
    # The part of the error probability that an audit reserves for a rule about rare outputs. It
    # reserves this part even if learning finds no such rule (docs/method.md §4).
    alpha = RARE_SHARE * test.alpha / test.rule.share
    usual = Plan(certificate.evidence.budget, None, limits).freeze_at
    # If this audit learned from more draws than usual, a longer audit may do so, too: it may then
    # learn from up to half of its draws.
    learns_more = certificate.draws - test.draws > usual

    def is_enough(samples: int) -> bool:
        sizes = [Plan(samples, None, limits).freeze_at, *([samples // 2] if learns_more else [])]
        caught = (
            detectable_rare_of_any(points, draws, samples - draws, alpha, power=power)
            for draws in sizes
        )
        return max(caught) <= probability

    return fewest_draws(is_enough)


def fewest_draws(is_enough: Callable[[int], bool]) -> int | None:
    """Return the smallest budget for which `is_enough` is true, rounded up to three digits; None if
    there is none. `is_enough` should be true for all larger budgets, too; rare exceptions are
    allowed."""
    # Double a small budget until it is enough. A search from the largest budget is not possible:
    # SciPy before 1.17 cannot compute Clopper-Pearson bounds for 10¹² draws.
    enough = MIN_SAMPLES
    while not is_enough(enough):
        enough *= 2
        if enough >= MAX_SAMPLES:
            return None
    budgets = range(max(MIN_SAMPLES, enough // 2), enough)
    samples = budgets.start + bisect_left(budgets, True, key=is_enough)
    # The rounded number is checked again, since a larger number of draws may fail where a smaller
    # number is enough: numbers of guesses are integers, and a larger budget may spend a larger
    # share on learning.
    while not is_enough(rounded(samples)):
        samples = math.ceil(1.01 * samples)
    return rounded(samples)


def rounded(number: int) -> int:
    """Return a number of draws rounded up to three digits.

    >>> rounded(123_456), rounded(100)
    (124000, 100)
    """
    unit: int = 10 ** max(0, len(str(number)) - 3)
    return -(-number // unit) * unit


def is_mostly_new(certificate: Certificate) -> bool:
    """Return whether at least half of the test draws gave outputs that learning never saw."""
    unseen = certificate.unseen
    return unseen is not None and 2 * (unseen.count_d1 + unseen.count_d2) >= certificate.fixed.draws


def saw_nothing(certificate: Certificate) -> str | None:
    """Return a message if most test draws gave outputs that learning never saw, and the audit could
    not use them. This is so if the rule could have shown no leak, or if outputs are texts that
    hardly repeat, even if numbers in them are ignored."""
    unseen, fixed = certificate.unseen, certificate.fixed
    if certificate.refuted or unseen is None or not is_mostly_new(certificate):
        return None
    is_blind = math.isinf(fixed.detectable_epsilon)
    if not is_blind and not certificate.evidence.new_texts:
        return None
    of = "" if is_blind else " by what texts say beside their numbers"
    new, draws = unseen.count_d1 + unseen.count_d2, fixed.draws
    remedy = "let --post-process (YAML: post_process) turn each output into numbers or into values "
    remedy += "that repeat"
    if certificate.evidence.recording is not None:
        remedy = "record numbers, or values that repeat"
    return (
        f"{draws:,} test draws cannot refute {point_words(certificate.point)}{of}, since {new:,} "
        f"of them gave an output that learning never saw; {remedy}"
    )


def event_could_not(certificate: Certificate) -> str | None:
    """Return a message if the rule could not have refuted the claim: it makes the same guess at
    nearly all draws, or its event has too few draws even if all guesses were right."""
    fixed, point = certificate.fixed, certificate.point
    if not fixed.events or math.isfinite(fixed.detectable_epsilon):
        return None
    guesses = fixed.correct + fixed.wrong
    if fixed.method == "game":
        share = max(fixed.guesses_by_input) / fixed.draws
        telling = telling_share(fixed.guesses_by_input, fixed.draws)
        right = (1 + telling) / 2
        spared = fixed.h * point.delta * fixed.draws / max(1, guesses)
        pure = right_share(point.epsilon)
        allowed = min(1.0, pure + spared * (1 - pure))
        if telling < 1 and point.epsilon == 0:
            return f"it came up in {100 * share:.3g} % of the draws"
        if telling < 1 and right <= allowed < 1:
            return (
                f"the rule makes the same guess at {100 * share:.3g} % of the draws, so at most "
                f"{100 * right:.3g} % of its guesses can be right; {point_words(point)} allows "
                f"{100 * allowed:.3g} %"
            )
    of = "" if guesses == fixed.draws else " in the event"
    remedy = "no number could" if no_draws_could(point, fixed.alpha) else "more draws help"
    words, even = f"{counted(guesses, 'draw')}{of}", ", even if every one"
    return _cannot_refute(words, point, f" ({remedy})", even)


def no_draws_could(point: ProfilePoint, alpha: float) -> bool:
    """Return whether even `MAX_SAMPLES` draws of a pair are too few to refute a point, at the error
    probability `alpha` of the pair."""
    return _enough(point, alpha) > MAX_SAMPLES


def kept_too_few(certificate: Certificate) -> str | None:
    """Return a message if a recording left too few draws to the exact test, even in the best case,
    in which every draw reveals its input."""
    fixed, point = certificate.fixed, certificate.point
    needed = draws_to_refute(point.epsilon, point.delta, fixed.alpha)
    if certificate.refuted or fixed.draws >= needed:
        return None
    remedy = ", and no number could" if no_draws_could(point, fixed.alpha) else "; record more"
    draws = f"the {fixed.draws:,} recorded outputs kept for the exact test"
    return _cannot_refute(draws, point, remedy)


def _can_refute(point: ProfilePoint, samples: int, alpha: float) -> bool:
    """Return whether an audit can refute a point (ε, δ) if every draw reveals its input."""
    exact = draws_to_refute(point.epsilon, point.delta, CERTIFICATION_SHARE * alpha)
    betting = draws_to_refute(point.epsilon, point.delta, BETTING_SHARE * alpha)
    return samples - Plan(samples, None).freeze_at >= exact or samples >= betting


def _enough(point: ProfilePoint, alpha: float) -> int:
    """Return the smallest budget, in draws, with which an audit can refute a point (ε, δ)."""
    budgets = range(2, 2 * MAX_SAMPLES)
    return 2 + bisect_left(budgets, True, key=lambda draws: _can_refute(point, draws, alpha))


def _cannot_refute(
    draws: str, point: ProfilePoint, remedy: str, even: str = " even if every one"
) -> str:
    return f"{draws} cannot refute {point_words(point)}{even} reveals its input{remedy}"


def point_words(point: ProfilePoint) -> str:
    """Return a point (ε, δ) for messages, such as `ε = 1, δ = 1e-05`."""
    delta = f", δ = {point.delta:g}" if point.delta else ""
    return f"ε = {point.epsilon:g}{delta}" if math.isfinite(point.epsilon) else "ε = ∞"


def event_share(test: FixedTest) -> float:
    """Return a lower bound, at 99 % confidence, for the probability of the event of a test."""
    return clopper_pearson_lower(test.correct + test.wrong, test.draws, ESTIMATE_ALPHA)


def draws_needed(certificate: Certificate, share: float, factor: float, power: float) -> int | None:
    """Return the smallest number of draws of a pair with which an audit detects a leak with
    probability `power`; None if no number is enough.

    certificate: the certificate of a similar audit.
    share: probability of the event that leaks, as a share of all draws.
    factor: size of the leak, as a multiple of the claimed ε.
    """
    epsilon = certificate.point.epsilon
    if epsilon <= 0 or share <= 0:
        return None
    return fewest_draws(
        lambda samples: _detectable(certificate, samples, share, power) <= factor * epsilon
    )


def certifying(samples: int, limits: DrawLimits) -> int:
    """Return the smallest number of draws that the exact test gets out of a budget of `samples`
    draws.

    limits: limits on memory, which decide how many draws are kept to learn from.
    """
    schedule = Plan(samples, None, limits)
    counts = schedule.freeze_at > schedule.buffer_until
    # The exact test gets the draws that learning leaves. If learning continues from counts when the
    # buffer is full (`counts`), it takes at most half of the budget. Otherwise it ends after
    # `freeze_at` draws.
    return samples // 2 if counts else samples - schedule.freeze_at


def _detectable(certificate: Certificate, samples: int, share: float, power: float) -> float:
    """Return the least ε that the exact test of an audit detects with probability `power`."""
    test, point = most_powerful(certificate), certificate.point
    draws, alpha = certifying(samples, certificate.evidence.limits or DrawLimits()), _alpha(test)
    if test.method != "clopper-pearson":
        spared = test.h * point.delta
        inside = math.floor(share * draws)
        of_d1 = round(inside * test.guesses_by_input[0] / max(1, test.correct + test.wrong))
        return detectable_epsilon(
            inside,
            point.epsilon,
            alpha,
            draws=draws,
            spared=spared,
            by_input=(of_d1, inside - of_d1),
            power=power,
        )
    # Here, the exact test makes a pair of Clopper-Pearson bounds for each event of the rule. The
    # result is the smallest ε that the bounds of at least one event detect. `past_share` is the
    # share of the draws that are in an event in the certificate; `half` is the number of certifying
    # draws of each input.
    past_share, half = (test.correct + test.wrong) / test.draws, draws // 2
    alpha, least = alpha / max(1, len(test.events)), math.inf
    for event in test.events:
        count, of = event.count_d2, event.draws_d2
        if event.guess == "d2":
            count, of = event.count_d1, event.draws_d1
        arm = math.floor(half * (count / max(of, 1)) * share / past_share), half
        epsilon = detectable_epsilon_pair(
            *arm, *arm, point.epsilon, point.delta, alpha, power=power
        )
        least = min(least, epsilon)
    return least


def _alpha(test: FixedTest) -> float:
    """Return the error probability to assume, in a forecast, for the test of this rule."""
    # The next audit may find rules of more kinds than this one did, and then divides the error
    # probability among more rules (docs/method.md §4, the portfolio).
    shares = {"main": 1 - RARE_SHARE - OTHER_SHARE, "rare": RARE_SHARE, "other": OTHER_SHARE}
    return test.alpha / test.rule.share * min(test.rule.share, shares[test.rule.kind])
