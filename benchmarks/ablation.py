"""What each part of the learner is worth: remove them one after the other, and measure.

python -m benchmarks.ablation [--only TEXT]... [--cases TEXT]... [--draws N]... [--seeds 25]
                              [--without NAME]... [--keep FILE] [--list]

A removal replaces a scorer, a smoother, a special case or a tuned constant by nothing, or by the
simplest thing that works. Its loss is the efficiency (benchmarks/efficiency.py) with the part less
the efficiency without it, on equal draws, by law: the exact law of the mechanism judges the frozen
main rule, so that no luck of certification draws is left. (Side rules cannot show in it.) Cases are
the specimens, the mixtures, and the twenty mechanisms of DP-Sniper's suite
(benchmarks/peer_suite.py) at each number of draws.

1. *Screen.* Every removal is measured with one seed in every case. Where the loss is large, four
   more seeds follow, and the part *stays* if mean minus two standard errors is above 0.05: one such
   case is enough, and the others are left out.
2. *Alone.* The parts that are left are measured with all seeds, in the most telling cases first. A
   part stays as above; it is *close* when the upper end of a loss (mean plus two standard errors)
   is at least 0.05, and then the other cases are left out, too.
3. *One after the other*, the cheapest first, then those that were close: each is measured with all
   seeds in all cases on top of those that went, so that of two parts that do the same work one
   stays. A part goes when the upper end of its loss is below 0.05 in every case, no case has lost
   more than 0.08 to all that went, and the tests of protected features pass.

A run records the parts that it uses (benchmarks/removals.py). A removal of another part would give
the same efficiency, which is then taken from that run; so are candidates of scorers that a removal
does not touch. `--keep` writes all efficiencies to a file, from which a later run of the same
learner continues.

Learning from counts, which begins at some 1.6 million draws, is measured by whole audits; below
that, `learn` is called on the draws that an audit would keep, which takes a third of the time.
The gallery and expected violations (`make gallery`, `benchmarks.expected_violations`) are to be run
before a part is deleted.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import patch

import numpy as np

from benchmarks import mixtures, peer_suite
from benchmarks.ablation_cases import Case, Kept
from benchmarks.removals import removals, removed, watched
from benchmarks.specimens import specimens
from dpaudit.auditing import engine
from dpaudit.sampling.executors import new_processes

# A part goes when it costs less than this in every case, and all parts together less than that.
LOSS, LOSS_IN_ALL = 0.05, 0.08
# Standard errors from the mean to the upper end of a loss.
ERRORS = 2.0
SEEDS, DRAWS = 25, (50_000, 400_000)
# Seeds of the screen, the loss there from which a case is measured further, and the number of seeds
# after which a loss that is clearly too large is not measured further.
SCREENED, SUSPECT, ENOUGH_TO_STAY = 1, 0.1, 5
PROTECTED = "tests/validity/test_protected_features.py"


@dataclass(frozen=True, slots=True)
class Loss:
    """The loss of one removal in one case: by seed, paired."""

    case: str
    by_seed: tuple[float, ...]

    @property
    def mean(self) -> float:
        return float(np.mean(self.by_seed))

    @property
    def error(self) -> float:
        if len(self.by_seed) < 2:
            return math.inf
        return float(np.std(self.by_seed, ddof=1) / math.sqrt(len(self.by_seed)))

    @property
    def upper(self) -> float:
        return self.mean + ERRORS * self.error

    @property
    def shows_need(self) -> bool:
        """Whether the part is needed for this case."""
        return len(self.by_seed) >= ENOUGH_TO_STAY and self.mean - ERRORS * self.error > LOSS

    def __str__(self) -> str:
        return f"{self.mean:+.3f} ± {self.error:.3f} ({len(self.by_seed)} seeds) {self.case}"


class Measuring:
    """Measures efficiencies, each once; those of a file are known."""

    def __init__(self, file: Path | None) -> None:
        self._known: dict[tuple[str, int], list[Kept]] = {}
        self._file = file
        if file is not None and file.exists():
            for line in file.read_text().splitlines():
                case, seed, value, without, used = json.loads(line)
                kept = Kept(value, frozenset(without), frozenset(used))
                self._known.setdefault((case, seed), []).append(kept)

    def loss(self, case: Case, seeds: int, name: str, gone: Sequence[str] = ()) -> Loss:
        """Return the loss of a removal in a case on top of those that went."""
        return self.loss_of(case, seeds, frozenset({*gone, name}), frozenset(gone))

    def loss_of(
        self, case: Case, seeds: int, without: frozenset[str], before: frozenset[str] = frozenset()
    ) -> Loss:
        """Return the loss of several removals, compared with the learner without others. It has
        fewer seeds where five show that the part is needed."""
        lost: list[float] = []
        for seed in range(seeds):
            lost.append(self.efficiency(case, seed, before) - self.efficiency(case, seed, without))
            if len(lost) == ENOUGH_TO_STAY and Loss(case.name, tuple(lost)).shows_need:
                break
        return Loss(case.name, tuple(lost))

    def efficiency(self, case: Case, seed: int, without: frozenset[str]) -> float:
        every = self._known.setdefault((case.name, seed), [])
        for one in every:
            if one.holds(without):
                return float(one.value)
        value, used = case.efficiency(seed, without)
        every.append(Kept(value, without, used))
        if self._file is not None:
            with self._file.open("a") as file:
                file.write(json.dumps([case.name, seed, value, sorted(without), sorted(used)]))
                file.write("\n")
        return value


@dataclass
class Ablation:
    """The three steps of an ablation. Each yields the lines of its table as soon as they are known.

    left: the removals that no case has shown to be needed. close: those of them that may not go,
    since a loss is not clearly small.
    """

    measuring: Measuring
    cases: list[Case]
    seeds: int
    left: list[str]
    gone: list[str]
    close: list[str] = field(default_factory=list)
    _screened: dict[tuple[str, str], float] = field(default_factory=dict)
    _upper: dict[str, float] = field(default_factory=dict)

    def screen(self) -> Iterator[str]:
        """Measure every removal with one seed in every case."""
        for case in self.cases:
            for name in list(self.left):
                loss = self.measuring.loss(case, SCREENED, name, self.gone)
                if loss.mean > SUSPECT:
                    loss = self.measuring.loss(case, ENOUGH_TO_STAY, name, self.gone)
                self._screened[case.name, name] = loss.mean
                if loss.shows_need:
                    self.left.remove(name)
                    yield f"  stays: {name:<44}{loss}"
            case.forget()
        for name in self.left:
            worst = max(self.cases, key=lambda one: self._screened[one.name, name])
            mean = float(np.mean([self._screened[one.name, name] for one in self.cases]))
            most = self._screened[worst.name, name]
            yield f"  left:  {name:<44}{mean:+.4f} on average, at most {most:+.3f} {worst.name}"

    def alone(self) -> Iterator[str]:
        """Measure what is left with all seeds, the most telling cases first."""
        found: dict[str, list[Loss]] = {name: [] for name in self.left}
        for case in sorted(self.cases, key=self._most_screened, reverse=True):
            for name in self._by_seed(case):
                loss = self.measuring.loss(case, self.seeds, name, self.gone)
                found[name].append(loss)
                if loss.upper >= LOSS:
                    self.left.remove(name)
                    if not loss.shows_need:
                        self.close.append(name)
                    yield f"  {'stays' if loss.shows_need else 'close'}: {name:<44}{loss}"
            case.forget()
        for name in self.left:
            yield f"  costs little: {name:<36}{_summary(found[name])}"
            self._upper[name] = max(one.upper for one in found[name])

    def in_sequence(self) -> Iterator[str]:
        """Remove the parts one after the other, and measure each on top of those that went."""
        for name in [*sorted(self.left, key=lambda one: self._upper[one]), *self.close]:
            losses: list[Loss] = []
            worst, reason = Loss("no case", (0.0,)), ""
            for case in sorted(self.cases, key=lambda one: -self._screened[one.name, name]):
                losses.append(self.measuring.loss(case, self.seeds, name, self.gone))
                in_all = self.measuring.loss_of(case, self.seeds, frozenset({*self.gone, name}))
                worst = max(worst, in_all, key=lambda one: one.mean)
                case.forget()
                if losses[-1].upper >= LOSS:
                    reason = f"on top of those that went: {losses[-1]}"
                elif in_all.mean > LOSS_IN_ALL:
                    reason = f"lost in all: {in_all}"
                if reason:
                    break
            if not reason and not are_protected([*self.gone, name]):
                reason = "a protected feature fails"
            if reason:
                yield f"  stays: {name:<44}{reason}"
                continue
            self.gone.append(name)
            yield f"  goes: {name:<45}{_summary(losses)}; most lost in all: {worst}"

    def _most_screened(self, case: Case) -> float:
        return max((self._screened.get((case.name, name), 0.0) for name in self.left), default=0.0)

    def _by_seed(self, case: Case) -> Iterator[str]:
        """Yield the removals that are left, after all were measured seed by seed: draws of a seed
        are made once."""
        needed: set[str] = set()
        for seed in range(self.seeds):
            for name in self.left:
                if (
                    seed == ENOUGH_TO_STAY
                    and self.measuring.loss(case, seed, name, self.gone).shows_need
                ):
                    needed.add(name)
                if name not in needed:
                    for without in (self.gone, (*self.gone, name)):
                        self.measuring.efficiency(case, seed, frozenset(without))
        yield from list(self.left)


def _summary(losses: Sequence[Loss]) -> str:
    worst = max(losses, key=lambda one: one.upper)
    mean = float(np.mean([one.mean for one in losses]))
    return f"{mean:+.4f} on average of {len(losses)} cases, at most {worst}"


def are_protected(without: Sequence[str]) -> bool:
    """Return whether the tests of protected features pass without some parts."""
    words = [sys.executable, "-m", "benchmarks.ablation", "--protected"]
    for name in without:
        words += ["--without", name]
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


def _protected(without: Sequence[str]) -> int:
    import pytest

    # The plugin has imported dpaudit before pytest could rewrite its assertions.
    quiet = ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
    with removed(without):
        return int(pytest.main(["-q", "-x", "-p", "no:cacheprovider", *quiet, PROTECTED]))


def cases(draws: Sequence[int], texts: Sequence[str]) -> list[Case]:
    """Return all specimens whose name contains one of some texts, at each number of draws. Those of
    one column, which take the least time, come first."""
    every = [*mixtures.specimens(), *peer_suite.specimens(), *specimens()]
    some = [one for one in every if not texts or any(text in one.name for text in texts)]
    made = [Case(one, number) for number in draws for one in some]
    return sorted(made, key=lambda one: one.draws * one.columns)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", action="append", default=[], help="removals with this text")
    parser.add_argument("--cases", action="append", default=[], help="cases with this text")
    parser.add_argument("--draws", action="append", type=int, help="50,000 and 400,000")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--without", action="append", default=[], help="begin without this part")
    parser.add_argument("--keep", type=Path, help="file of efficiencies, to continue from")
    parser.add_argument("--list", action="store_true", help="name all removals, and no more")
    parser.add_argument("--protected", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.protected:
        raise SystemExit(_protected(given.without))
    names = [
        name for name in removals() if not given.only or any(text in name for text in given.only)
    ]
    if given.list:
        print("\n".join(names))
        return
    os.environ.setdefault("PYTHONHASHSEED", "0")
    left = [name for name in names if name not in given.without]
    some = cases(given.draws or DRAWS, given.cases)
    ablation = Ablation(Measuring(given.keep), some, given.seeds, left, given.without)
    steps: tuple[Callable[[], Iterator[str]], ...] = (
        ablation.screen,
        ablation.alone,
        ablation.in_sequence,
    )
    # Whole audits are spared what follows a violation: no bound depends on it.
    with (
        patch.object(engine, "_traced", lambda spec, result: result),
        patch.object(new_processes, "PROCESSES", 0),
        watched(),
    ):
        for step in steps:
            print(
                f"\n{step.__name__}: {len(ablation.left)} removals, {len(some)} cases", flush=True
            )
            for line in step():
                print(line, flush=True)


if __name__ == "__main__":
    main()
