"""How near an audit comes to an oracle that knows the law of the mechanism.

python -m benchmarks.efficiency [--only NAME]... [--seeds 25] [--processes 2] [--draws N]

With --draws the table has the efficiency at that budget alone, be it larger or smaller than those
of the full table.

Efficiency is the draws that the oracle needs to expect the bound of the audit, over the draws that
the audit made: the oracle neither learns nor bets, and spends all draws and all of α on one test.
It may exceed 1 by luck, and is cut at 2; a bound of 0 has efficiency 0. With --draws, `law` is the
mean efficiency of the bounds that the law allows the frozen events: no luck of the draws that
certify is left, but that of how many are in the event.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from statistics import fmean, median
from typing import Any
from unittest.mock import patch

import numpy as np
from scipy.special import expit

import dpaudit
from benchmarks.oracle import Oracle, Rule, information_limit
from benchmarks.specimens import Specimen, specimens
from dpaudit.auditing import exact_tests, pair_audit
from dpaudit.auditing.options import Stop
from dpaudit.certificates.evidence import BETTING_SHARE
from dpaudit.levels.portfolio import Learned, Portfolio
from dpaudit.outcomes import from_raw

ALPHA = 0.01
MANY, FEW = 1_000_000, 10_000
# Claim to refute, as a share of the true ε, and the largest budget, as a multiple of the limit.
CLAIMED_SHARE, BUDGET = 0.75, 25
# No audit draws more: what needs more by the limit alone is left out.
MOST = 10_000_000
# Bounds are noisy: above this many times N the oracle is not asked.
CLIP = 2.0
LEAST_SEEDS = 5


@dataclass(frozen=True, slots=True)
class Measured:
    """One line of the table, medians over seeds; refuting is nan where it was not measured.

    lower, oracle: bounds at 10⁶ draws. many, few: efficiency at 10⁶ and 10⁴ draws. refuting: draws
    to refute, over the limit. cpu: seconds outside the mechanism at 10⁶ draws.
    """

    name: str
    epsilon: float
    lower: float
    oracle: float
    many: float
    few: float
    refuting: float
    limit: float
    cpu: float
    attack: str


class Watched:
    """A mechanism under audit: the CPU time inside it, and what the oracle's rule guesses on it.

    frozen: the rule of the audit, where it is followed, once it is fixed.
    """

    def __init__(self, specimen: Specimen, rule: Rule) -> None:
        self.seconds = 0.0
        self.frozen: Portfolio | None = None
        self._specimen, self._rule = specimen, rule
        self._calls: list[tuple[int, int, int]] = []
        self._is_certified = False
        # By input: draws of the frozen rule, and its guesses to be expected, correct and wrong.
        self._guessed = np.zeros((2, 3))

    def __call__(self, dataset: Any, *, size: int, rng: np.random.Generator) -> Any:
        start = time.process_time()
        drawn = self._specimen.mechanism(dataset, size=size, rng=rng)
        if self._is_certified:
            return drawn
        ratios = self._specimen.log_ratio(drawn)
        ahead = int((ratios >= self._rule.high).sum())
        behind = int((ratios < self._rule.low).sum())
        is_d1 = dataset == self._specimen.d1
        self._calls.append((size, *((ahead, behind) if is_d1 else (behind, ahead))))
        if self.frozen is not None:
            guesses, share = self.frozen.guesses[self.frozen(from_raw(drawn))], expit(ratios)
            # The law tells how often a guess is right, whichever input this output came from.
            correct = share[guesses == 1].sum() + (1 - share[guesses == -1]).sum()
            wrong = np.count_nonzero(guesses) - correct
            self._guessed[int(is_d1)] += size, correct, wrong
        self.seconds += time.process_time() - start
        return drawn

    def last(self, draws: int) -> tuple[int, int]:
        """Return correct and wrong guesses on the last draws."""
        sizes, correct, wrong = np.array(self._calls[::-1]).T
        calls = int(np.searchsorted(np.cumsum(sizes), draws)) + 1
        if sizes[:calls].sum() != draws:
            raise RuntimeError(f"the last {draws:,} draws do not begin with a call")
        return int(correct[:calls].sum()), int(wrong[:calls].sum())

    def by_law(self) -> tuple[float, float]:
        """Return the probabilities that the frozen rule guesses right, and wrong."""
        correct, wrong = (self._guessed[:, 1:] / self._guessed[:, :1]).mean(axis=0)
        return float(correct), float(wrong)

    def until_certified(self) -> AbstractContextManager[Any]:
        """Record no calls after the last draw that counts. A refuted claim is drawn again."""
        usual = pair_audit.PairAudit._certificate

        def certified(*given: Any) -> Any:
            self._is_certified = True
            return usual(*given)

        return patch.object(pair_audit.PairAudit, "_certificate", certified)

    def following(self) -> AbstractContextManager[Any]:
        """Record the rule that an audit freezes."""
        usual = exact_tests.telling_witness

        def noticed(claim: Any, learned: Learned, *given: Any) -> Any:
            self.frozen = learned.portfolio
            return usual(claim, learned, *given)

        # The first to be told of what was learned, when that is fixed.
        return patch.object(pair_audit, "telling_witness", noticed)


def audit(
    specimen: Specimen,
    epsilon: float,
    samples: int,
    seed: int,
    rule: Rule,
    *,
    stop: Stop = "never",
    by_law: bool = False,
) -> tuple[dpaudit.AuditResult, Watched, float]:
    """Audit at a claim of `epsilon`; return the CPU seconds of it all too. by_law: follow the rule
    that is frozen."""
    claim: dpaudit.PrivacyClaim = dpaudit.PureDP(epsilon)
    if specimen.delta:
        claim = dpaudit.ApproximateDP(epsilon, specimen.delta)
    watched, start = Watched(specimen, rule), time.process_time()
    with watched.until_certified(), watched.following() if by_law else nullcontext():
        result = dpaudit.audit(
            watched, specimen.d1, specimen.d2, claim,
            samples=samples, confidence=1 - ALPHA, seed=seed, stop=stop,
        )  # fmt: skip
    if result.error is not None:
        raise RuntimeError(f"{specimen.name}: {result.error}")
    return result, watched, time.process_time() - start


@dataclass(frozen=True, slots=True)
class Run:
    """bound: for ε, less the luck of its draws. cpu: seconds outside the mechanism. lawful: the
    bound that the law allows the event; nan where it was not followed."""

    bound: float
    cpu: float
    attack: str
    lawful: float


def run(specimen: Specimen, samples: int, rule: Rule, seed: int, *, by_law: bool = False) -> Run:
    """Audit to the last draw and take the bound.

    Luck is what the oracle's rule gains on the certification draws over its expectation. Where the
    audit found the same rule it is all of the audit's luck, and often most of it.
    """
    claimed = specimen.epsilon if specimen.claimed is None else specimen.claimed
    result, watched, cpu = audit(specimen, claimed, samples, seed, rule, by_law=by_law)
    fixed, lower, lawful = result.certificates[0].fixed, result.epsilon_lower, math.nan
    oracle = Oracle(specimen.law, fixed.alpha, specimen.delta)
    if lower > 0:
        lower -= oracle.luck(rule, *watched.last(fixed.draws), fixed.draws)
    if watched.frozen is not None:
        lawful = oracle.allowed(watched.frozen.guesses, *watched.by_law(), fixed.draws)
    cpu -= watched.seconds
    return Run(max(0.0, lower), cpu, result.certificates[0].fixed.rule.attack, lawful)


def repeated(once: Callable[[int], Any], seeds: int, seconds: float) -> list[Any]:
    """Run with one seed after the other; fewer than `seeds`, but five, when that takes too long."""
    start, found = time.perf_counter(), []
    for seed in range(seeds):
        if seed >= LEAST_SEEDS and time.perf_counter() - start > seconds:
            break
        found.append(once(seed))
    return found


def efficiency(oracle: Oracle, bound: float, draws: int) -> float:
    """Return the share of the draws that the oracle needs for a bound, at most `CLIP`."""
    return oracle.draws_for(bound, CLIP * draws) / draws if bound > 0 else 0.0


def refuting(specimen: Specimen, seeds: int, seconds: float) -> tuple[float, float]:
    """Return draws to refute ¾ of the true ε over the limit of information, and that limit."""
    if specimen.delta or math.isinf(specimen.epsilon):
        return math.nan, math.nan
    claimed = CLAIMED_SHARE * specimen.epsilon
    limit = information_limit(specimen.law, claimed, BETTING_SHARE * ALPHA)
    budget = max(10_000, math.ceil(BUDGET * limit))
    if budget > MOST:
        return math.nan, limit

    nothing = Rule(-math.inf, math.inf, 0.0, 0.0)

    def once(seed: int) -> float:
        result, *_ = audit(specimen, claimed, budget, seed, nothing, stop="auto")
        return result.certificates[0].evidence.refuted_after or math.inf

    return median(repeated(once, seeds, seconds)) / limit, limit


def measured(specimen: Specimen, seeds: int, seconds: float) -> Measured:
    """Measure one specimen, for about three times `seconds` seconds."""
    oracle = Oracle(specimen.law, ALPHA, specimen.delta)
    many, few = (
        repeated(partial(run, specimen, size, oracle.rule(size)), seeds, seconds)
        for size in (MANY, FEW)
    )
    lower, lower_few = (median(one.bound for one in runs) for runs in (many, few))
    attacks = [one.attack for one in many]
    times, limit = refuting(specimen, seeds, seconds)
    return Measured(
        name=specimen.name,
        epsilon=specimen.epsilon,
        lower=lower,
        oracle=oracle.bound(MANY),
        many=efficiency(oracle, lower, MANY),
        few=efficiency(oracle, lower_few, FEW),
        refuting=times,
        limit=limit,
        cpu=median(one.cpu for one in many),
        attack=max(attacks, key=attacks.count),
    )


@dataclass(frozen=True, slots=True)
class Share:
    """One line of the table of one budget: medians over seeds; fields are as of `Measured`.

    law: the mean efficiency of the bounds that the law allows the events.
    """

    name: str
    epsilon: float
    lower: float
    oracle: float
    efficiency: float
    law: float
    cpu: float
    attack: str

    def __str__(self) -> str:
        return (
            f"{self.name:<48}{self.epsilon:>7.3f}{self.lower:>9.4f}{self.oracle:>9.4f}"
            f"{self.efficiency:>7.2f}{self.law:>6.2f}{self.cpu:>7.2f}  {self.attack}"
        )


def share(specimen: Specimen, draws: int, seeds: int, seconds: float) -> Share:
    """Measure the efficiency of one specimen at one budget."""
    oracle = Oracle(specimen.law, ALPHA, specimen.delta)
    once = partial(run, specimen, draws, oracle.rule(draws), by_law=True)
    runs = repeated(once, seeds, seconds)
    lower, attacks = median(one.bound for one in runs), [one.attack for one in runs]
    return Share(
        name=specimen.name,
        epsilon=specimen.epsilon,
        lower=lower,
        oracle=oracle.bound(draws),
        efficiency=efficiency(oracle, lower, draws),
        law=fmean(efficiency(oracle, one.lawful, draws) for one in runs),
        cpu=median(one.cpu for one in runs),
        attack=max(attacks, key=attacks.count),
    )


# In a process of the pool: the specimens that it measures.
_specimens: Sequence[Specimen] = ()


def _take(specimens: Sequence[Specimen]) -> None:
    global _specimens
    _specimens = specimens


def _share_of(index: int, draws: int, seeds: int, seconds: float) -> Share:
    return share(_specimens[index], draws, seeds, seconds)


def shares(
    some: Sequence[Specimen], draws: int, seeds: int, seconds: float, processes: int
) -> Iterator[str]:
    """Yield the lines of the table of one budget, each as soon as it is known."""
    yield f"99 %, {draws:,} draws, medians of {min(seeds, LEAST_SEEDS)} to {seeds} seeds"
    titles = f"{'at least':>9}{'oracle':>9}{'share':>7}{'law':>6}{'CPU':>7}"
    yield f"{'mechanism':<48}{'ε':>7}{titles}  attack"
    found = []
    # A specimen may hold a function that cannot be pickled; a fork has it without.
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(processes, context, _take, (some,)) as pool:
        measure = partial(_share_of, draws=draws, seeds=seeds, seconds=seconds)
        for row in pool.map(measure, range(len(some))):
            if row.oracle > 0:
                found.append(row.efficiency)
            yield str(row)
    nothing = sum(one == 0 for one in found)
    yield (
        f"\nefficiency at {draws:,}: median {median(found):.2f}, least {min(found):.2f}, "
        f"{nothing} of {len(found)} at 0"
    )


def line(one: Measured) -> str:
    """Return one line of the table."""
    refuted = "" if math.isnan(one.refuting) else f"{one.refuting:.1f} ×"
    limit = "" if math.isnan(one.limit) else f"{one.limit:,.0f}"
    return (
        f"{one.name:<48}{one.epsilon:>7.3f}{one.lower:>9.4f}{one.oracle:>9.4f}"
        f"{one.many:>7.2f}{one.few:>7.2f}{refuted:>9}{limit:>12}{one.cpu:>7.2f}  {one.attack}"
    )


def summary(table: Sequence[Measured]) -> Iterator[str]:
    """Yield the figures over all specimens, beside those wanted."""
    many, few = [one.many for one in table], [one.few for one in table]
    times = [one.refuting for one in table if not math.isnan(one.refuting)]
    slowest = max(one.cpu for one in table)
    yield f"efficiency at 10⁶: median {median(many):.2f} (≥ 0.7), least {min(many):.2f} (≥ 0.4)"
    yield f"efficiency at 10⁴: median {median(few):.2f} (≥ 0.4), least {min(few):.2f}"
    if times:
        most = max(times)
        yield f"draws to refute / limit: median {median(times):.1f} (≤ 6), most {most:.1f} (≤ 20)"
    yield f"CPU outside the mechanism at 10⁶: at most {slowest:.1f} s (≤ 15)"


def chosen(names: Iterable[str], some: Sequence[Specimen] | None = None) -> list[Specimen]:
    """Return the specimens of these names, all if there are none; raises SystemExit."""
    every = {one.name: one for one in (specimens() if some is None else some)}
    unknown = [name for name in names if name not in every]
    if unknown:
        raise SystemExit(f"--only {unknown[0]!r} is no specimen; known: {'; '.join(every)}")
    return [every[name] for name in names] or list(every.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", default=[], metavar="NAME")
    parser.add_argument("--seeds", type=int, default=25)
    parser.add_argument("--seconds", type=float, default=3.0, help="for each of three columns")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--draws", type=int, help="measure the efficiency at this budget alone")
    given = parser.parse_args()
    some = chosen(given.only)
    if given.draws is not None:
        for text in shares(some, given.draws, given.seeds, given.seconds, given.processes):
            print(text, flush=True)
        return
    print(
        f"99 %, medians of {LEAST_SEEDS} to {given.seeds} seeds; × is draws to refute ¾ ε / limit"
    )
    titles = f"{'at least':>9}{'oracle':>9}{'10⁶':>7}{'10⁴':>7}{'×':>9}{'limit':>12}{'CPU':>7}"
    print(f"{'mechanism':<48}{'ε':>7}{titles}  attack")
    table = []
    with ProcessPoolExecutor(given.processes) as pool:
        measure = partial(measured, seeds=given.seeds, seconds=given.seconds)
        for one in pool.map(measure, some):
            table.append(one)
            print(line(one), flush=True)
    print("\n".join(["", *summary(table)]))


if __name__ == "__main__":
    main()
