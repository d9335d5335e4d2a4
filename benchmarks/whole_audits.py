"""Whole audits of mechanisms that meet their claim exactly: each VIOLATION is a false alarm."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import repeat
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from benchmarks.definitions import gaussian, merged, reveal_or_randomize
from dpaudit.auditing import schedule
from dpaudit.auditing.engine import run_audit
from dpaudit.auditing.familywise import settled, together
from dpaudit.auditing.options import BoundMethod, Sampling, Statistics, Stop
from dpaudit.auditing.spec import AuditSpec
from dpaudit.certificates.result import AuditResult, Verdict
from dpaudit.claims import (
    ApproximateDP,
    ApproximateZCDP,
    FunctionalDP,
    GaussianDP,
    PrivacyClaim,
    ProbabilisticDP,
    PureDP,
    RenyiDP,
)
from dpaudit.draws import MAX_BUFFERED_DRAWS, SelectionDraws
from dpaudit.inputs.pairs import NeighbouringPair
from dpaudit.outcomes import Outcomes
from dpaudit.targets.target import CallableTarget, repeated

EPSILON, DELTA = 1.0, 0.05
# Entries of a vector that is too long for logistic regression.
LONG = 520
# A probability that few draws do not show.
_RARE = 0.002
# Rare values, and the share of the draws that are any of them.
_RARE_VALUES, _OFTEN_RARE = 40, 0.2
_TRUTH = 1 / (1 + math.exp(-EPSILON))
_REVEALING = partial(reveal_or_randomize, delta=DELTA)
# D_a / a of randomised response is largest at a = 1.
_RHO = EPSILON * math.tanh(EPSILON / 2)
# The trade-off function of randomised response: straight lines through the three points.
_TRADE_OFF = ((0.0, 1.0), (1 - _TRUTH, 1 - _TRUTH), (1.0, 0.0))

Draw = Callable[..., NDArray[Any] | float]


def laplace(dataset: int, size: int, rng: np.random.Generator) -> NDArray[np.float64]:
    return dataset + rng.laplace(scale=1 / EPSILON, size=size)


def randomized_response(dataset: int, size: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Answer truthfully with the odds of ε, beside a number that has nothing to do with it."""
    truthful = rng.random(size) < _TRUTH
    return np.column_stack([np.where(truthful, dataset, 1 - dataset), rng.integers(8, size=size)])


def on_a_grid(dataset: int, size: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Round the output to multiples of 2⁻¹⁰, so that its low-order bits say nothing."""
    return np.ldexp(np.rint(np.ldexp(laplace(dataset, size, rng), 10)), -10)


def one_at_a_time(dataset: int, rng: np.random.Generator) -> float:
    return dataset + rng.laplace(scale=1 / EPSILON)


def prefix_sums(dataset: int, size: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Release the sums of the first 1, …, 6 noisy answers, of which the fourth is the input."""
    answers = rng.laplace(scale=1 / EPSILON, size=(size, 6))
    answers[:, 3] += dataset
    return np.cumsum(answers, axis=1)


def spread_out(
    dataset: int, size: int, rng: np.random.Generator, norm: float = 3.0
) -> NDArray[np.float64]:
    """Add normal noise to every entry of a long vector, of this norm for one of the inputs."""
    return rng.normal(dataset * norm / math.sqrt(LONG), 1, (size, LONG))


def signs(dataset: int, size: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Answer by whether the signs of two numbers agree: neither says anything by itself."""
    numbers = rng.normal(size=(size, 3))
    agree = (rng.random(size) < _TRUTH) == bool(dataset)
    numbers[:, 1] = np.abs(numbers[:, 1]) * np.sign(numbers[:, 0]) * np.where(agree, 1, -1)
    return numbers


def reveal_in_other_words(
    dataset: int, size: int, rng: np.random.Generator, delta: float
) -> NDArray[np.float64]:
    """Reveal the input with probability δ, by a number that is never the same; else randomise."""
    found = np.where(rng.random(size) < _TRUTH, dataset, 1 - dataset).astype(np.float64)
    chosen = rng.random(size) < delta
    found[chosen] = 10 * (1 + dataset) + rng.random(int(chosen.sum()))
    return found


def rare_at_the_claim(dataset: int, size: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Randomise the input or, in a fifth of the draws, return one of many rare values, each of
    which is e^ε times as likely for one of the inputs."""
    truthful = rng.random(size) < _TRUTH
    value = np.where(truthful, dataset, 1 - dataset)
    rare = 10 + 2 * rng.integers(_RARE_VALUES // 2, size=size) + value
    return np.where(rng.random(size) < _OFTEN_RARE, rare, value).astype(np.float64)


class FourthAnswer:
    """An attack of the user's own: the fourth of the answers behind prefix sums."""

    def fit(self, selection: SelectionDraws) -> Callable[[Outcomes], NDArray[np.float64]]:
        return fourth_answer


def fourth_answer(outcomes: Outcomes) -> NDArray[np.float64]:
    before, after = outcomes.named(["output[2]", "output[3]"])
    return after.numbers - before.numbers


def _divergence(order: float) -> float:
    """Return D_a of randomised response, either answer against the other."""
    p, q = _TRUTH, 1 - _TRUTH
    moment = p**order * q ** (1 - order) + q**order * p ** (1 - order)
    return math.log(moment) / (order - 1)


@dataclass(frozen=True, slots=True)
class Setting:
    """What is audited and how; every claim is true and tight, for one run and for `repeat`.

    scale: how many times the usual draws, for attacks that are tried only when there are many.
    kept: draws to keep and learn from, where learning is to go on by counting; None: the usual.
    samples: draws of every audit, in place of the usual ones; 0: those.
    """

    name: str
    mechanism: Draw
    claim: PrivacyClaim
    bound: BoundMethod = "game"
    stop: Stop = "auto"
    repeat: int = 1
    floating_point: bool = False
    timing: bool = False
    attacks: tuple[Any, ...] = ()
    scale: int = 1
    kept: int | None = None
    samples: int = 0

    def is_wrong(self, result: AuditResult) -> bool:
        """Whether a true claim was refuted or a bound lies above the truth."""
        own = result.claim.own_lower(result.point.epsilon, result.delta_lower)
        given = result.claim.parameters()
        truth = next((given[name] for name in ("mu", "rho", "epsilon") if name in given), math.inf)
        too_high = own is not None and own[1] > truth
        refuted = result.verdict is Verdict.VIOLATION
        return refuted or too_high or result.epsilon_lower > result.point.epsilon


SETTINGS = (
    Setting("Laplace", laplace, PureDP(EPSILON)),
    Setting("randomised response", randomized_response, PureDP(EPSILON)),
    Setting(
        "randomised response, --stop never", randomized_response, PureDP(EPSILON), stop="never"
    ),
    Setting(
        "randomised response, pair of intervals",
        randomized_response,
        PureDP(EPSILON),
        bound="clopper-pearson",
    ),
    Setting("reveal or randomise", _REVEALING, ApproximateDP(EPSILON, DELTA)),
    Setting("reveal or randomise, PDP", _REVEALING, ProbabilisticDP(EPSILON, DELTA)),
    Setting("reveal or randomise, approximate zCDP", _REVEALING, ApproximateZCDP(_RHO, DELTA)),
    Setting(
        "reveal or randomise, learned by counting",
        partial(reveal_or_randomize, delta=_RARE),
        ApproximateDP(EPSILON, _RARE),
        scale=8,
        kept=250,
    ),
    Setting(
        "reveal in other words or randomise, learned by counting",
        partial(reveal_in_other_words, delta=_RARE),
        ApproximateDP(EPSILON, _RARE),
        scale=8,
        kept=250,
    ),
    Setting(
        "randomised response, learned by counting",
        randomized_response,
        PureDP(EPSILON),
        scale=8,
        kept=250,
    ),
    Setting("rare values at the claim", rare_at_the_claim, PureDP(EPSILON)),
    Setting(
        "rare values at the claim, learned by counting",
        rare_at_the_claim,
        PureDP(EPSILON),
        scale=8,
        kept=250,
    ),
    Setting("T∘K as approximate DP", partial(merged, delta=DELTA), ApproximateDP(EPSILON, DELTA)),
    Setting("Gaussian noise, μ", gaussian, GaussianDP(1.0)),
    Setting("randomised response, Rényi", randomized_response, RenyiDP(4.0, _divergence(4.0))),
    Setting("randomised response, f-DP", randomized_response, FunctionalDP(_TRADE_OFF, "f")),
    Setting("Laplace on a grid, low-order bits", on_a_grid, PureDP(EPSILON), floating_point=True),
    Setting("Laplace, elapsed time", one_at_a_time, PureDP(EPSILON), timing=True),
    Setting("randomised response, 2 runs", randomized_response, PureDP(EPSILON), repeat=2),
    Setting("Gaussian noise, μ, 4 runs", gaussian, GaussianDP(1.0), repeat=4),
    Setting("prefix sums: what is new, logistic regression", prefix_sums, PureDP(EPSILON), scale=2),
    Setting("agreeing signs, trees", signs, PureDP(EPSILON), scale=12),
    Setting("agreeing signs, trees, --stop never", signs, PureDP(EPSILON), stop="never", scale=12),
    Setting(
        "prefix sums, a user's attack",
        prefix_sums,
        PureDP(EPSILON),
        attacks=(FourthAnswer,),
        scale=2,
    ),
    Setting("normal noise on a long vector: difference of means", spread_out, GaussianDP(3.0)),
    Setting("Laplace, 100 draws", laplace, PureDP(EPSILON), samples=100),
    Setting("randomised response, 100 draws", randomized_response, PureDP(EPSILON), samples=100),
    Setting("randomised response, 150 draws", randomized_response, PureDP(EPSILON), samples=150),
    Setting(
        "reveal or randomise, 150 draws", _REVEALING, ApproximateDP(EPSILON, DELTA), samples=150
    ),
    Setting(
        "reveal or randomise, PDP, 100 draws",
        _REVEALING,
        ProbabilisticDP(EPSILON, DELTA),
        samples=100,
    ),
    Setting("Gaussian noise, μ, 150 draws", gaussian, GaussianDP(1.0), samples=150),
)


# A batch of four: of both kinds of claims, of events and of single outputs.
BATCH = tuple(
    one
    for one in SETTINGS
    if one.name
    in {"Laplace", "randomised response", "reveal or randomise", "reveal or randomise, PDP"}
)


def false_alarm_of_any(nominal: float, seeds: Sequence[int], *, corrected: bool) -> bool:
    """Audit a batch that has one error probability together, a seed for each audit; return whether
    any is refuted. corrected: by Holm's procedure, as it must; not each by its own p-value."""
    specs = [
        replace(spec, sampling=replace(spec.sampling, samples=1_000))
        for spec in map(_spec, BATCH, repeat(nominal), seeds)
    ]
    results = [run_audit(spec) for spec in together(specs, "batch")]
    if not corrected:
        return any(one.p_value <= nominal for one in results)
    return any(one.verdict is Verdict.VIOLATION for one in settled(results))


def _spec(setting: Setting, nominal: float, seed: int) -> AuditSpec:
    return AuditSpec(
        name=setting.name,
        target=repeated(CallableTarget(function=setting.mechanism), setting.repeat),
        pairs=(NeighbouringPair(0, 1, label="d1 = 0, d2 = 1"),),
        claim=setting.claim,
        sampling=Sampling(
            samples=setting.samples or setting.scale * (1_000 + 1_000 * (seed % 4)),
            seed=seed,
            stop=setting.stop,
        ),
        statistics=Statistics(
            confidence=1 - nominal,
            bound=setting.bound,
            floating_point=setting.floating_point,
            timing=setting.timing,
            attacks=setting.attacks,
        ),
        no_trace=True,  # it would look for a leak that is none
    )


def false_alarm(setting: Setting, nominal: float, seed: int) -> bool:
    """Audit once; return whether its result is wrong."""
    spec = _spec(setting, nominal, seed)
    kept = MAX_BUFFERED_DRAWS if setting.kept is None else setting.kept
    with patch.object(schedule, "MAX_BUFFERED_DRAWS", kept):
        result = run_audit(spec)
    if result.verdict is Verdict.ERROR:
        raise RuntimeError(f"{setting.name}, seed {seed}: {result.error}")
    return setting.is_wrong(result)
