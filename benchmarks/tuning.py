"""What each number of dpaudit/levels/tuning.py is worth: audits with it halved and doubled.

python -m benchmarks.tuning [--number NAME]... [--draws 10000] [--seeds 2] [--processes 2]

Every audit of a reference mechanism is run to its last draw, with the same seeds for all values.
The efficiency (benchmarks/efficiency.py) is the share of the draws with which an oracle expects
the same bound; its median over seeds is that of a mechanism. The table has the mean change over
mechanisms, in hundredths, and the mechanism that changes most.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from statistics import fmean, median

from benchmarks.efficiency import ALPHA, chosen, efficiency, run
from benchmarks.oracle import Oracle
from dpaudit.levels import tuning

# One of each kind: numbers, few and many values, vectors, leaks that are spread, rare ones, δ > 0.
MECHANISMS = (
    "Laplace, ε = 1",
    "Laplace, wrong scale",
    "Laplace vector, d = 5, one differs",
    "Laplace vector, d = 5, all differ",
    "k-RR, k = 10",
    "k-RR, k = 1000, wrong scale",
    "RAPPOR, d = 8, wrong scale",
    "noisy max of 5, value",
    "prefix sums of 10",
    "SVT, 10 queries",
    "thresholded histogram",
    "Gaussian",
    "Gaussian, d = 10, wrong scale",
    "tight pair",
)
FACTORS = (0.5, 2.0)
NUMBERS = {name: value for name, value in vars(tuning).items() if name.isupper()}


@dataclass(frozen=True, slots=True)
class Trial:
    """One mechanism audited with a number of the table multiplied by a factor; '': as they are."""

    mechanism: str
    number: str
    factor: float
    draws: int
    seeds: int

    def efficiency(self) -> float:
        """Return the median over seeds."""
        (specimen,) = chosen([self.mechanism])
        oracle = Oracle(specimen.law, ALPHA, specimen.delta)
        rule = oracle.rule(self.draws)
        if self.number:
            setattr(tuning, self.number, changed(NUMBERS[self.number], self.factor))
        try:
            bounds = [run(specimen, self.draws, rule, seed).bound for seed in range(self.seeds)]
        finally:
            vars(tuning).update(NUMBERS)
        return median(efficiency(oracle, bound, self.draws) for bound in bounds)


def changed(value: float, factor: float) -> float:
    """Return the number times the factor, of the same type; a share stays below 1."""
    if isinstance(value, int):
        return max(1, round(value * factor))
    return min(value * factor, 0.999) if value < 1 else value * factor


def line(number: str, base: Sequence[float], found: Sequence[Sequence[float]]) -> str:
    """Return the line of one number; base, found: efficiencies of the mechanisms."""
    parts = [f"{number:<26}{NUMBERS[number]:>9,}"]
    for one in found:
        gains = [100 * (new - old) for new, old in zip(one, base, strict=True)]
        most = max(range(len(gains)), key=lambda i: abs(gains[i]))
        where = f"{gains[most]:+.0f} {MECHANISMS[most]}" if abs(gains[most]) >= 0.5 else "none"
        parts.append(f"{fmean(gains):>+7.1f}  {where:<38}")
    return "".join(parts).rstrip()


def table(numbers: Sequence[str], draws: int, seeds: int, processes: int) -> Iterator[str]:
    """Yield the lines of the table, each as soon as it is known."""
    settings = [("", 1.0), *((name, factor) for name in numbers for factor in FACTORS)]
    trials = [Trial(one, *setting, draws, seeds) for setting in settings for one in MECHANISMS]
    with ProcessPoolExecutor(processes) as pool:
        found = pool.map(Trial.efficiency, trials)
        base = [next(found) for _ in MECHANISMS]
        yield f"{draws:,} draws, {seeds} seeds, mean efficiency {fmean(base):.3f}"
        yield f"{'number':<26}{'value':>9}{'half':>7}{'':40}{'double':>7}"
        for name in numbers:
            changes = [[next(found) for _ in MECHANISMS] for _ in FACTORS]
            yield line(name, base, changes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--number", action="append", default=[], choices=NUMBERS, metavar="NAME")
    parser.add_argument("--draws", type=int, default=10_000)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args()
    numbers = given.number or list(NUMBERS)
    for text in table(numbers, given.draws, given.seeds, given.processes):
        print(text, flush=True)


if __name__ == "__main__":
    main()
