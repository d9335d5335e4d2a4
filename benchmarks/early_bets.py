"""Runs that bets alone end, on mechanisms that meet their claim exactly, and planted twins.

`python -m benchmarks.false_alarms --early-bets 10_000` plays these cases. A run bets as an audit
does (docs/method.md §4): the blocks, looks, fits and bettors are those of `dpaudit`, and only the
processes, checks and reports around them are left out. The twins bet on each block with beliefs
that they learned from that block.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit.attacks.early_bets import bet_early
from dpaudit.attacks.objective import Objective
from dpaudit.attacks.scorers import SCORERS
from dpaudit.attacks.weighted_sums import by_mean_differences
from dpaudit.auditing.schedule import Plan, look_stride, wants_refit
from dpaudit.certificates.evidence import EARLY_BETTING_SHARE, DrawLimits
from dpaudit.certificates.wealth import Wealth
from dpaudit.claims import ProfilePoint
from dpaudit.draws import FreshDraws, SelectionDraws, by_arm, pool
from dpaudit.levels.portfolio import Learned, Portfolio, Rule, Tried
from dpaudit.outcomes import from_raw
from dpaudit.stats.betting import Beliefs

# A run ends after this number of draws without a refutation. Most false alarms come early, where
# beliefs rest on few draws.
LONGEST = 120
_RULES = 3

Draw = Callable[[bool, np.random.Generator], Any]
Fit = Callable[[SelectionDraws, ProfilePoint], Learned]


@dataclass(frozen=True, slots=True)
class Law:
    """A mechanism that is (epsilon, delta)-DP, tightly; `draw` is called with whether its input is
    d1."""

    name: str
    draw: Draw
    epsilon: float
    delta: float = 0.0


def _laplace(epsilon: float) -> Draw:
    return lambda is_d1, rng: float(rng.laplace(float(is_d1), 1 / epsilon))


def _normal(is_d1: bool, rng: np.random.Generator) -> float:
    return float(rng.normal(float(is_d1)))


def _response(epsilon: float) -> Draw:
    honest = 1 / (1 + math.exp(-epsilon))
    return lambda is_d1, rng: "yes" if (rng.random() < honest) is is_d1 else "no"


def _among_five(is_d1: bool, rng: np.random.Generator) -> int:
    truth = 4 if is_d1 else 0
    return truth if rng.random() < (math.e - 1) / (math.e + 4) else int(rng.integers(5))


def _geometric(is_d1: bool, rng: np.random.Generator) -> int:
    share = 1 - math.exp(-0.5)
    return int(is_d1) + int(rng.geometric(share)) - int(rng.geometric(share))


def _revealing(is_d1: bool, rng: np.random.Generator) -> Any:
    if rng.random() < 0.05:
        return "d1" if is_d1 else "d2"
    return _response(0.3)(is_d1, rng)


def _pair(is_d1: bool, rng: np.random.Generator) -> list[float]:
    return [float(is_d1) + float(noise) for noise in rng.laplace(scale=2.0, size=2)]


def _vector(is_d1: bool, rng: np.random.Generator) -> list[float]:
    return [float(one) for one in is_d1 / math.sqrt(8) + rng.normal(size=8)]


def _scale(is_d1: bool, rng: np.random.Generator) -> float:
    return float(rng.laplace(scale=2.0 if is_d1 else 1.0))


def _same(is_d1: bool, rng: np.random.Generator) -> float:
    return float(rng.normal())


def _delta_of_normal(epsilon: float) -> float:
    from scipy.stats import norm

    return float(norm.cdf(0.5 - epsilon) - math.exp(epsilon) * norm.cdf(-0.5 - epsilon))


def _delta_of_scale(epsilon: float) -> float:
    """Return δ(ε) of Laplace noise of scale 1 against scale 2: the larger of both directions."""
    inner = 2 * (math.log(2) + epsilon)  # |x| below which the narrow law is e^ε times as likely
    there = max(0.0, 2 * (epsilon + math.log(2)))
    outer = math.exp(-there / 2) - math.exp(epsilon - there)
    at = 2 * (math.log(2) - epsilon)
    narrow = (1 - math.exp(-at)) - math.exp(epsilon) * (1 - math.exp(-at / 2)) if at > 0 else 0.0
    assert inner >= 0
    return max(outer, narrow)


VECTOR = Law("normal vector of 8, ε = 0.5", _vector, 0.5, _delta_of_normal(0.5))
LAWS = (
    Law("Laplace, ε = 0.1", _laplace(0.1), 0.1),
    Law("Laplace, ε = 1", _laplace(1.0), 1.0),
    Law("normal, ε = 0.5", _normal, 0.5, _delta_of_normal(0.5)),
    Law("normal, ε = 0", _normal, 0.0, _delta_of_normal(0.0)),
    Law("randomised response, ε = 1", _response(1.0), 1.0),
    Law("randomised response of five, ε = 1", _among_five, 1.0),
    Law("geometric, ε = 0.5", _geometric, 0.5),
    Law("reveal or randomise, ε = 0.3, δ = 0.05", _revealing, 0.3, 0.05),
    Law("two Laplace numbers, ε = 1", _pair, 1.0),
    Law("two scales, ε = 0.1", _scale, 0.1, _delta_of_scale(0.1)),
    VECTOR,
    Law("no difference, ε = 0", _same, 0.0),
)


def as_audits(selection: SelectionDraws, point: ProfilePoint) -> Learned:
    """Return what slow mode learns from draws."""
    learned = bet_early(selection, Objective(point, 1_000), SCORERS)
    assert learned.beliefs.early
    return learned


def by_sums(selection: SelectionDraws, point: ProfilePoint) -> Learned:
    """Return the weighted sum of slow mode, with counts of the draws that it was fitted to.

    Audits count held-out draws, so a twin of theirs gains little from a vector that it has seen.
    """
    level = by_mean_differences(selection, pools=True)[0].level_map()
    counts = by_arm(level(selection.outcomes), level.levels, selection.is_d1)
    belief = (counts[:, 0] + 1) / (counts.sum(axis=1) + 2)
    rules = np.tile(np.where(belief >= 0.5, 1, -1), (_RULES, 1))
    main = Rule("main", "weighted sum", level, rules[0])
    beliefs = Beliefs(belief[None], rules, early=True)
    return Learned(Portfolio.of([main]), beliefs, tried=(Tried("weighted sum", None),))


def refutes(
    law: Law,
    alpha: float,
    rng: np.random.Generator,
    *,
    fit: Fit = as_audits,
    ahead: bool = False,
) -> bool:
    """Return whether bets end a run at error probability `alpha`.

    ahead: bet on each block with beliefs learned from it, as no run may (the twins).
    """
    point = ProfilePoint(law.epsilon, law.delta)
    wealth = Wealth(point, EARLY_BETTING_SHARE * alpha)
    plan = Plan(100 * LONGEST, None, DrawLimits(ends_by_bets=True))
    seen: list[SelectionDraws] = []
    spent, learned = 0, None
    for size in plan.learning_sizes():
        if spent + size > LONGEST:
            return False
        is_d1 = rng.random(size) < 0.5
        outcomes = from_raw([law.draw(bool(one), rng) for one in is_d1])
        fresh, block = FreshDraws(outcomes, is_d1), SelectionDraws(outcomes, is_d1)
        if ahead and spent:
            learned = fit(pool([*seen, block]), point)
            wealth.believe(learned.beliefs)
        if learned is not None:
            rule = learned.portfolio
            looks = fresh.looks(rule, rule.levels, look_stride(size, ends_by_bets=True))
            if wealth.first_refuting(looks) is not None:
                return True
            wealth.record([sum(looks[1:], looks[0])])
        seen, spent = [pool([*seen, block])], spent + size
        if wants_refit(0, spent, plan.buffer_until, ends_by_bets=True):
            learned = fit(pool(seen), point)
            wealth.believe(learned.beliefs)
    return False
