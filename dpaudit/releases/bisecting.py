"""Find an event on one release of a package, and test the same event on every release with fresh
draws. Since no release has an event of its own, a release without a refutation can be compared with
the release on which the event was found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, Literal

from dpaudit.attacks.learning import best_point, learn
from dpaudit.attacks.objective import Objective
from dpaudit.attacks.scorers import scorers_for
from dpaudit.auditing.exact_tests import frozen_rules, several_points
from dpaudit.auditing.ledger import CERTIFYING, LEARNING, PROBING
from dpaudit.auditing.spec import AuditSpec
from dpaudit.certificates.certificate import FixedTest
from dpaudit.certificates.evidence import FrozenRule
from dpaudit.certificates.rule_bounds import Setting, game_test
from dpaudit.claims import ProfilePoint
from dpaudit.errors import DpauditError, MechanismError, UsageError
from dpaudit.levels.portfolio import Portfolio
from dpaudit.releases.environments import Environments, NotInstallable
from dpaudit.sampling.chunks import Measure, ToCount, ToLearn, ToProbe
from dpaudit.sampling.sampler import Sampler
from dpaudit.targets.target import IsolatedTarget, PythonTarget

Answer = Literal["refuted", "not refuted", "cannot tell"]
# Number of draws from which the event is learned. Tests use other draws.
LEARNED = 50_000
_PROBE = 32


@dataclass(frozen=True, slots=True, eq=False)
class Frozen:
    """An event that was found on one release. It was fixed before the draws that test it.

    point: point (ε, δ) of the claim that is tested.
    portfolio: assigns a level (a group of outputs) to each output.
    rule: guesses d1, d2 or nothing at each level. The event consists of the levels with a guess.
    """

    point: ProfilePoint
    portfolio: Portfolio
    rule: FrozenRule

    @property
    def words(self) -> str:
        """Description of the outputs for which the rule guesses d1. If there are none, those for
        d2."""
        return self.rule.words[0] or self.rule.words[1] or ""


@dataclass(frozen=True, slots=True)
class ReleaseResult:
    """The answer for one release.

    answer: "refuted": the event refutes the claim. "not refuted": it does not, although the test
        had enough power to refute it if the true ε were as large as the lower bound on the release
        `Bisection.found_in`. "cannot tell": the test had less power, or no test was possible.
    why: reason for "cannot tell"; "" for the other answers.
    epsilon_lower: lower bound for ε at the tested δ. It exceeds the true ε with probability at most
        `Bisection.level`. None without a test.
    detectable: smallest ε that the test would have refuted in 9 of 10 runs; None without a test.
    p_value: p-value of the claim, which is refuted if it is at most `Bisection.level`. None without
        a test.
    draws: number of all draws of the test, in the event or not; 0 without a test.
    """

    release: str
    answer: Answer
    why: str = ""
    epsilon_lower: float | None = None
    detectable: float | None = None
    p_value: float | None = None
    draws: int = 0


@dataclass(frozen=True, slots=True)
class Bisection:
    """The answers for all releases of a package. The same event was tested on each of them.

    found_in: the release on which the event was found.
    target, pair, claim, event: descriptions of the mechanism, the inputs, the claim and the event.
    confidence: 1 minus the probability that the claim is refuted on at least one release on which
        it is true.
    level: the largest p-value that refutes: (1 - confidence) divided by the number of releases.
    seed: seed of all draws.
    tested: the answers, oldest release first.
    """

    package: str
    found_in: str
    target: str
    pair: str
    claim: str
    event: str
    confidence: float
    level: float
    seed: int
    tested: tuple[ReleaseResult, ...]

    @property
    def summary(self) -> str:
        """A sentence with the first and the last refuted release, and the first later release that
        is not refuted."""
        indices = [index for index, result in enumerate(self.tested) if result.answer == "refuted"]
        if not indices:
            return "no release is refuted"
        first, last = self.tested[indices[0]], self.tested[indices[-1]]
        text = f"first seen in {first.release}"
        if any(result.answer != "not refuted" for result in self.tested[: indices[0]]):
            text += " (earlier releases: cannot tell)"
        later = self.tested[indices[-1] + 1 :]
        repair = next((result for result in later if result.answer == "not refuted"), None)
        if repair is None:
            return f"{text}, last seen in {last.release}"
        is_next = repair is later[0]
        return f"{text}, last seen in {last.release}, gone in {repair.release}" + (
            "" if is_next else " or earlier"
        )


def bisected(
    spec: AuditSpec,
    environments: Environments,
    versions: Sequence[str],
    found_in: str,
    *,
    is_kept: bool = True,
    on_release: Callable[[ReleaseResult], None] = lambda result: None,
) -> Bisection:
    """Learn an event on the release `found_in`, and test it on each release in `versions`.

    spec: the audit on the release `found_in`.
    environments: makes the environment of each release.
    is_kept: whether the environments stay on disk.
    on_release: called with the result of each release, as soon as the release is tested.

    Raises UsageError if the audit cannot have a single event. For the release `found_in`, raises
    NotInstallable if it cannot be installed, MechanismError if every call of the mechanism raises
    an exception, and the DpauditError of draws that end with an error.
    """
    if spec.claim.counts_single_outputs or spec.search is not None or len(spec.pairs) != 1:
        why = "a bisection takes one pair of inputs, and a claim that is not probabilistic"
        raise UsageError(why, code="options-conflict")
    frozen = freeze(spec)
    level = (1 - spec.statistics.confidence) / len(versions)
    answers: dict[str, ReleaseResult] = {}

    def add(answer: ReleaseResult) -> None:
        answers[answer.release] = answer
        on_release(answer)
        if not is_kept:
            environments.remove(answer.release)

    # Test the release on which the event was found first: its lower bound for ε is the leak that
    # the tests of other releases must be able to detect.
    try:
        first = _test(spec, frozen, environments, found_in, level)
    except _AlwaysRaises as error:
        raise MechanismError(
            f"--found-in {found_in}: {error}. Repair the mechanism, or name a release on which it "
            "runs",
            code="always-raises",
        ) from None
    add(_answer(found_in, first, 0.0))
    for release in versions:
        if release != found_in:
            add(_tested(spec, frozen, environments, release, level, first.epsilon_lower))
    return Bisection(
        package=environments.package,
        found_in=found_in,
        target=_python_target(spec).describe(),
        pair=spec.pairs[0].label,
        claim=spec.tested.describe(),
        event=frozen.words,
        confidence=spec.statistics.confidence,
        level=level,
        seed=spec.sampling.seed,
        tested=tuple(answers[release] for release in versions if release in answers),
    )


def freeze(spec: AuditSpec) -> Frozen:
    """Return an event that was learned from draws of the audit's mechanism. No test uses these
    draws. Raises MechanismError or TargetError if the mechanism does not run."""
    claim, future_draws = spec.tested, spec.sampling.samples
    scorers = scorers_for(spec.switches)
    with closing(_sampler(spec)) as sampler:
        sampler.probe(ToProbe((0, PROBING, 0), _PROBE))
        selection = sampler.learn(ToLearn((0, LEARNING, 0), LEARNED)).fresh.release()
    points = several_points(claim)
    point = best_point(selection, claim, future_draws, scorers) if points else claim.point()
    objective = Objective(point, future_draws, points)
    portfolio = learn(selection, objective, scorers).portfolio.only(0)
    (rule,) = frozen_rules(portfolio, is_one=True)
    return Frozen(point if rule.point is None else rule.point, portfolio, rule)


def _tested(
    spec: AuditSpec,
    frozen: Frozen,
    environments: Environments,
    release: str,
    level: float,
    needed: float,
) -> ReleaseResult:
    """Return the answer for a release. If no test is possible, the answer is "cannot tell"."""
    try:
        return _answer(release, _test(spec, frozen, environments, release, level), needed)
    except NotInstallable as error:
        return ReleaseResult(release, "cannot tell", f"does not install: {error}")
    except (DpauditError, _AlwaysRaises) as error:
        return ReleaseResult(release, "cannot tell", f"does not run: {error}")


def _test(
    spec: AuditSpec, frozen: Frozen, environments: Environments, release: str, level: float
) -> FixedTest:
    """Return the exact test of the event on draws of a release."""
    program = environments.interpreter(release)
    target = IsolatedTarget(target=_python_target(spec), python=program)
    return count(replace(spec, target=target), frozen, level)


def _answer(release: str, test: FixedTest, needed: float) -> ReleaseResult:
    """Return the answer for a release. The test should detect the ε `needed`; 0 if unknown."""
    numbers: dict[str, Any] = {
        "epsilon_lower": test.epsilon_lower,
        "detectable": test.detectable_epsilon,
        "p_value": test.p_value,
        "draws": test.draws,
    }
    if test.p_value <= test.alpha:
        return ReleaseResult(release, "refuted", **numbers)
    if not needed or test.detectable_epsilon > needed:
        why = "under-powered: the event is too rare or too frequent here to show the leak"
        return ReleaseResult(release, "cannot tell", why, **numbers)
    return ReleaseResult(release, "not refuted", **numbers)


class _AlwaysRaises(Exception):
    """Raised if every call of the mechanism raised an exception, as when its function is
    missing."""


def count(spec: AuditSpec, frozen: Frozen, level: float) -> FixedTest:
    """Return the exact test of the frozen event on fresh draws. `level` is its error
    probability."""
    measure = Measure(frozen.portfolio)
    with closing(_sampler(spec)) as sampler:
        sampler.probe(ToProbe((0, PROBING, 0), _PROBE))
        counted = sampler.count(ToCount((0, CERTIFYING, 0), spec.sampling.samples, measure))
    if counted.failures.total == counted.tally.draws:
        raised = next(iter(counted.failures.first.values()))
        raise _AlwaysRaises(f"every call raised {raised.words[:300]}")
    setting = Setting("certification", frozen.point, level, spec.statistics.confidence)
    return game_test(setting, counted.tally, frozen.rule)


def _sampler(spec: AuditSpec) -> Sampler:
    return Sampler(spec.target, spec.pairs, spec.sampling.seed, adversary=spec.claim.adversary)


def _python_target(spec: AuditSpec) -> PythonTarget:
    if isinstance(spec.target, IsolatedTarget):
        return spec.target.target
    why = "a bisection takes one mechanism in Python, without repeat and compose"
    raise UsageError(why, code="options-conflict")
