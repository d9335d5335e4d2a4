"""Bets against a divergence are mixed after the infima of their wealths; a twin mixes before."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from dpaudit.certificates.certify import mixed_log_wealth
from dpaudit.certificates.evidence import DivergenceBet
from dpaudit.draws import Tally
from dpaudit.levels.level_map import FloatArray, IntArray
from dpaudit.stats.witness import DivergenceWitness, best_stakes

NOMINAL, SEED, RUNS, DRAWS = 0.1, 20_262, 100, 1_000
IsAbove = Callable[[Iterable[bool], int, float], bool]
# A coin with D_2 = log(7/6) in both directions, which is the claim.
LAWS: FloatArray = np.array([[0.6, 0.4], [0.4, 0.6]])
ORDER, LIMIT = 2.0, math.log(7 / 6)


def witnesses() -> list[DivergenceWitness]:
    """Return the optimal witness, log P/Q, and the same plus 1, which shows the same divergence:
    the means of e^g and of e^{2g} are e and e² times as large."""
    values = np.log(LAWS[:, 0] / LAWS[:, 1])
    shifted = (values, values + 1)
    stakes = (best_stakes(ORDER, one, LAWS, DRAWS / 2, NOMINAL)[0] for one in shifted)
    return [
        DivergenceWitness(ORDER, True, tuple(one.tolist()), own)
        for one, own in zip(shifted, stakes, strict=True)
    ]


def after_infima(counts: IntArray) -> float:
    """Return the log wealth as an audit computes it."""
    bets = [DivergenceBet(witness, 0.5, Tally(counts)) for witness in witnesses()]
    return mixed_log_wealth(bets, {ORDER: LIMIT})


def before_the_infimum(counts: IntArray) -> float:
    """Return the log of the infimum, over one pair of means, of the mixed wealth (the twin). At the
    true means of one witness, the bets of the other are not fair."""
    means = np.geomspace(0.5, 6.0, 400)[:, None]
    mixed = np.zeros(len(means))
    for witness in witnesses():
        x, y = witness.raised
        stake, against = witness.stakes
        first = np.log1p(stake * (x - means)) @ counts[:, 0]
        second = np.log1p(against * (means**2 * math.exp(-LIMIT) - y)) @ counts[:, 1]
        mixed += 0.5 * np.prod(0.1 + 0.9 * np.exp(np.stack([first, second])), axis=0)
    return float(np.log(mixed.min()))


def alarms(log_wealth: Callable[[IntArray], float]) -> Iterator[bool]:
    rng = np.random.default_rng(SEED)
    while True:
        arm = int(rng.binomial(DRAWS, 0.5))
        draws = (arm, DRAWS - arm)
        counts = np.stack([rng.multinomial(n, LAWS[:, b]) for b, n in enumerate(draws)], axis=1)
        yield log_wealth(counts) >= -math.log(NOMINAL)


def test_wealth_mixed_after_infima_does_not_exceed_its_level(is_above: IsAbove) -> None:
    assert not is_above(alarms(after_infima), RUNS, NOMINAL)


def test_wealth_mixed_before_the_infimum_is_caught(is_above: IsAbove) -> None:
    assert is_above(alarms(before_the_infimum), RUNS, NOMINAL)
