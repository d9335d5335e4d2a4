"""What each part of the learner is worth: remove them one after the other, and measure.

python -m benchmarks.ablation [--only TEXT]... [--cases TEXT]... [--draws N]... [--seeds 25]
                              [--rounds N] [--without NAME]... [--list]

A removal replaces a scorer, a smoother, a special case or a tuned constant by nothing, or by the
simplest thing that works. Its loss is the efficiency (benchmarks/efficiency.py) with the part less
the efficiency without it, on equal draws, by law: the exact law of the mechanism judges the frozen
rules, so that no luck of certification draws is left. Cases are the specimens, the mixtures, and
the twenty mechanisms of DP-Sniper's suite (benchmarks/peer_suite.py) at each number of draws.

Each round measures every removal that is left, on top of those that went before, and removes the
one with the smallest loss, so that of two parts that do the same work one stays. A part may go when
the upper end of its loss (mean plus two standard errors over seeds) is below 0.05 in every case, no
case has lost more than 0.08 to all that went, and the tests of protected features pass. What stays
is printed with the case that it is needed for.

Learning from counts, which begins at some 1.6 million draws, is measured by whole audits; below
that, `learn` is called on the draws that an audit would keep, which takes a third of the time.
The gallery and expected violations (`make gallery`, `benchmarks.expected_violations`) are to be run
before a part is deleted.
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from benchmarks import mixtures, peer_suite
from benchmarks.efficiency import ALPHA, CLIP, audit
from benchmarks.oracle import Oracle, Rule
from benchmarks.specimens import Specimen, specimens
from dpaudit.attacks import learning
from dpaudit.attacks.objective import Objective
from dpaudit.auditing import engine
from dpaudit.auditing.schedule import Plan, limits_for
from dpaudit.claims import ProfilePoint
from dpaudit.draws import SelectionDraws
from dpaudit.levels.piecewise_logit import Smoothed
from dpaudit.outcomes import Outcomes, from_raw
from dpaudit.sampling.executors import new_processes

FloatArray = NDArray[np.float64]

# A part goes when it costs less than this in every case, and all parts together less than that.
LOSS, LOSS_IN_ALL = 0.05, 0.08
# Standard errors from the mean to the upper end of a loss.
ERRORS = 2.0
SEEDS, DRAWS = 25, (50_000, 400_000)
# Number of seeds after which a loss that is clearly too large is not measured further.
ENOUGH_TO_STAY = 5
# Draws, judged by their log-ratios, from which the probabilities of guesses are known.
JUDGED = 100_000
PROTECTED = "tests/validity/test_protected_features.py"

# Where things are. A module that moves is changed here alone.
LEARNING = "dpaudit.attacks.learning"
OBJECTIVE = "dpaudit.attacks.objective"
FREEZING = "dpaudit.attacks.freezing"
ADDITIVE = "dpaudit.attacks.additive"
COLUMNS = "dpaudit.attacks.single_columns"
OUTPUTS = "dpaudit.attacks.single_outputs"
BLOCKS = "dpaudit.attacks.blocks"
CANDIDATES = "dpaudit.levels.candidates"
TUNING = "dpaudit.levels.tuning"


@dataclass(frozen=True, slots=True)
class Without:
    """Replaces a tuple of functions by one without those of these names."""

    names: tuple[str, ...]

    def __call__(self, functions: tuple[Callable[..., Any], ...]) -> tuple[Any, ...]:
        return tuple(one for one in functions if one.__name__ not in self.names)


@dataclass(frozen=True, slots=True)
class Constant:
    """Replaces whatever there was by a value."""

    value: Any

    def __call__(self, _: Any) -> Any:
        return self.value


# The parts: (place, what makes the replacement of what is there), by name of the removal.
Patches = tuple[tuple[str, Callable[[Any], Any]], ...]


def _scorer(*names: str) -> Patches:
    return ((f"{LEARNING}:SCORERS", Without(names)),)


def _set(place: str, value: Any) -> Patches:
    return ((place, Constant(value)),)


def _nothing(*_: Any, **__: Any) -> list[Any]:
    return []


def _none(*_: Any, **__: Any) -> None:
    return None


def _no(*_: Any, **__: Any) -> bool:
    return False


def _as_floats(counts: NDArray[np.integer]) -> FloatArray:
    return counts.astype(np.float64)


def _plain_share(counts: NDArray[np.integer], arms: NDArray[np.integer]) -> FloatArray:
    """Return the share of d1 in each cell, with one draw of prior weight for each input."""
    even = (arms[0] + 1) / (arms.sum() + 2)
    return np.asarray((counts[:, 0] + 2 * even) / (counts.sum(axis=1) + 2))


def _unsharpened(candidate: Any, *_: Any, **__: Any) -> Any:
    return candidate


def _raw_counts(counts: Any, *_: Any, **__: Any) -> Any:
    return Smoothed(
        np.asarray(counts, dtype=np.float64), follows_score=False, log_likelihood=-math.inf
    )


SCORERS: dict[str, Patches] = {
    f"scorer {name}": _scorer(name)
    for name in (
        "single_columns",
        "additive",
        "innovations",
        "prefixes",
        "banded",
        "logistic",
        "mean_differences",
        "parts",
        "kinds",
        "represented",
        "atoms",
    )
} | {
    "scorer sequences, all": (
        *_scorer("prefixes", "banded"),
        (f"{BLOCKS}:SCORING", Without(("prefixes", "banded_sums"))),
    ),
}

SMOOTHERS: dict[str, Patches] = {
    "smoother isotonic, of thresholds": _set(f"{COLUMNS}:pooled_counts", _as_floats),
    "smoother isotonic, of columns in sums": _set(f"{ADDITIVE}:pooled_counts", _as_floats),
    "smoother piecewise fits of levels": _set(f"{CANDIDATES}:smoothed", _raw_counts),
    "smoother clusters of cells": _set(f"{CANDIDATES}:averaged", _plain_share),
    "smoother neighbours of cells": _set(f"{COLUMNS}:_WIDTHS", (0,)),
    "smoother predictions among sequences": _set(f"{OUTPUTS}:sequence_predictor", _none),
    "smoother finer intervals at cut-offs": _set(f"{FREEZING}:_cut_finer", _unsharpened),
}

CASES: dict[str, Patches] = {
    "case few values": _set(f"{LEARNING}:_has_few_values", _no),
    "case both sides look alike": _set(f"{OBJECTIVE}:_look_alike", _no),
    "case cut-offs of piecewise fits": _set(f"{OBJECTIVE}:Objective._smoothed_bounds", _none),
    "case rare rule": _set(f"{FREEZING}:rare_rule", _none),
    "case rule of another kind": _set(f"{FREEZING}:_other_rule", _none),
    "case keeping half of the draws": _set("dpaudit.auditing.schedule:Plan.extend_buffer", _no),
}

# Tuned constants with a neutral value of each.
NEUTRAL: dict[str, float] = {
    "PENALTY": 0.0,
    "PENALTY_ANY_ORDER": 3.5,
    "PENALTY_WITHOUT_DELTA": 0.0,
    "PENALTY_SMOOTHED": 0.0,
    "PENALTY_ONE_FIT": 0.0,
    "PENALTY_SHRUNK": 0.0,
    "DEVIATIONS": 0.0,
    "DEVIATIONS_BEYOND_LUCK": 2.0,
    "ERRORS_OF_COLUMN": -math.inf,
    "FEW_CELLS": 0,
    "LESS_SIMPLE": 1.0,
    "ABOUT_AS_MUCH": 1.0,
    "ODDS_OF_TAIL": 1.0,
    "LARGEST_SIDE": 1.0,
    "GAIN_OF_RAMP": 1.0,
    "GAIN_OF_CHOICE": 0.0,
    "COST_OF_PARAMETER": 0.0,
    "GAIN_OF_BLOCK": 0.0,
    "DRAWS_PER_CELL": 1,
    "SHARE_OF_TAILS": 0.0,
    "PRIOR_DRAWS": 0.0,
    "NOISE_COLUMNS": 1.0,
    "LARGEST_SCALE": math.inf,
}


def removals() -> dict[str, Patches]:
    """Return all removals whose places exist: of a part that is gone there is none."""
    constants = {
        f"constant {name} = {value:g}": _set(f"{TUNING}:{name}", value)
        for name, value in NEUTRAL.items()
    }
    every = {**SCORERS, **SMOOTHERS, **CASES, **constants}
    return {
        name: patches
        for name, patches in every.items()
        if all(_exists(place) for place, _ in patches) and any(map(_changes, patches))
    }


def _resolved(place: str) -> tuple[Any, str]:
    module, _, path = place.partition(":")
    *parents, name = path.split(".")
    owner: Any = import_module(module)
    for parent in parents:
        owner = getattr(owner, parent)
    return owner, name


def _exists(place: str) -> bool:
    try:
        owner, name = _resolved(place)
    except (ImportError, AttributeError):
        return False
    return hasattr(owner, name)


def _changes(patches: tuple[str, Callable[[Any], Any]]) -> bool:
    owner, name = _resolved(patches[0])
    old = getattr(owner, name)
    return bool(patches[1](old) != old)


@contextmanager
def removed(names: Sequence[str]) -> Iterator[None]:
    """Run without some parts."""
    every = removals()
    with ExitStack() as stack:
        for name in names:
            for place, made in every.get(name, ()):
                owner, attribute = _resolved(place)
                new = made(getattr(owner, attribute))
                stack.enter_context(patch.object(owner, attribute, new))
        yield


@dataclass(eq=False)
class Case:
    """A specimen at a number of draws."""

    specimen: Specimen
    draws: int
    _kept: dict[tuple[int, int], SelectionDraws] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"{self.specimen.name}, {self.draws:,} draws"

    def efficiency(self, seed: int) -> float:
        """Return the efficiency, by law, of what is learned from draws of this seed."""
        if Plan(self.draws, None, self._limits).freeze_at > self._limits.learned:
            return self._of_an_audit(seed)
        return self._of_learning(seed)

    def _of_learning(self, seed: int) -> float:
        """Learn from as many draws as an audit keeps: half of them where fewer promise nothing."""
        plan = Plan(self.draws, None, self._limits)
        while True:
            selection, coming = (
                self._selection(plan.buffer_until, seed),
                self.draws - plan.buffer_until,
            )
            point = ProfilePoint(self._claimed, self.specimen.delta)
            learned = learning.learn(selection, Objective(point, coming), learning.SCORERS)
            if learned.predicts_bound or not plan.extend_buffer():
                break
        rule = learned.portfolio
        guesses = rule.guesses[rule(self._judged[0])]
        right = np.where(guesses > 0, self._judged[1], 1 - self._judged[1])[guesses != 0]
        correct = float(right.sum()) / len(guesses)
        wrong = np.count_nonzero(guesses) / len(guesses) - correct
        return self._share(self._oracle.allowed(rule.guesses, correct, wrong, coming))

    def _of_an_audit(self, seed: int) -> float:
        nothing = Rule(-math.inf, math.inf, 0.0, 0.0)
        result, watched, _ = audit(
            self.specimen, self._claimed, self.draws, seed, nothing, by_law=True
        )
        if watched.frozen is None:
            return 0.0
        coming = result.certificates[0].fixed.draws
        bound = self._oracle.allowed(watched.frozen.guesses, *watched.by_law(), coming)
        return self._share(bound)

    @property
    def _claimed(self) -> float:
        given = self.specimen.claimed
        return self.specimen.epsilon if given is None else given

    @cached_property
    def _limits(self) -> Any:
        return limits_for(len(self._judged[0].columns), single_draws=False)

    @cached_property
    def _oracle(self) -> Oracle:
        return Oracle(self.specimen.law, ALPHA, self.specimen.delta)

    @cached_property
    def _judged(self) -> tuple[Outcomes, FloatArray]:
        """Outputs, as many of either input, and the probability that each came from d1."""
        half = JUDGED // 2
        outputs = self._drawn(half, half, np.random.default_rng(JUDGED))
        return from_raw(outputs), expit(np.asarray(self.specimen.log_ratio(outputs)))

    @cached_property
    def _bounds(self) -> tuple[FloatArray, FloatArray]:
        """Numbers of draws, and the bound that the oracle expects of each."""
        draws = np.geomspace(self.draws / 2_000, CLIP * self.draws, 48)
        return draws, np.maximum.accumulate([self._oracle.bound(one) for one in draws])

    def _share(self, bound: float) -> float:
        """Return the share of the draws with which the oracle expects a bound."""
        draws, bounds = self._bounds
        if bound <= 0:
            return 0.0
        return float(np.exp(np.interp(bound, bounds, np.log(draws)))) / self.draws

    def _selection(self, size: int, seed: int) -> SelectionDraws:
        """Return draws of both inputs in random order; those of the last seed are kept."""
        if (size, seed) not in self._kept:
            rng = np.random.default_rng([seed, size])
            first = int(rng.binomial(size, 0.5))
            outcomes = from_raw(self._drawn(first, size - first, rng))
            order = rng.permutation(size)
            if any(known != seed for _, known in self._kept):
                self._kept.clear()
            self._kept[size, seed] = SelectionDraws(outcomes.take(order), order < first)
        known = self._kept[size, seed]
        return SelectionDraws(known.outcomes, known.is_d1)

    def _drawn(self, first: int, second: int, rng: np.random.Generator) -> Any:
        one, mechanism = self.specimen, self.specimen.mechanism
        d1, d2 = mechanism(one.d1, size=first, rng=rng), mechanism(one.d2, size=second, rng=rng)
        return [*d1, *d2] if isinstance(d1, list) else np.concatenate([d1, d2])


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
        return float(np.std(self.by_seed, ddof=1) / math.sqrt(len(self.by_seed)))

    @property
    def upper(self) -> float:
        return self.mean + ERRORS * self.error

    def __str__(self) -> str:
        return f"{self.mean:+.3f} ± {self.error:.3f} {self.case}"


class Measuring:
    """Measures removals on top of those that went; efficiencies are computed once."""

    def __init__(self, cases: Sequence[Case], seeds: int) -> None:
        self._cases, self._seeds = cases, seeds
        self._known: dict[tuple[str, int, tuple[str, ...]], float] = {}

    def losses(self, name: str, gone: Sequence[str], before: Sequence[str]) -> list[Loss]:
        """Return by case what a removal costs, the largest upper end first. gone: without these,
        too.  before: what it is compared with is without these."""
        found = [self._loss(case, (*gone, name), tuple(before)) for case in self._cases]
        return sorted(found, key=lambda one: -one.upper)

    def _loss(self, case: Case, without: tuple[str, ...], before: tuple[str, ...]) -> Loss:
        lost: list[float] = []
        for seed in range(self._seeds):
            lost.append(
                self._efficiency(case, seed, before) - self._efficiency(case, seed, without)
            )
            if len(lost) == ENOUGH_TO_STAY:
                loss = Loss(case.name, tuple(lost))
                if loss.mean - ERRORS * loss.error > LOSS:
                    break
        return Loss(case.name, tuple(lost))

    def _efficiency(self, case: Case, seed: int, without: tuple[str, ...]) -> float:
        key = case.name, seed, tuple(sorted(without))
        if key not in self._known:
            with removed(without):
                self._known[key] = case.efficiency(seed)
        return self._known[key]


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


def lines(
    measuring: Measuring, names: Sequence[str], gone: Sequence[str], rounds: int
) -> Iterator[str]:
    """Yield the table, a line as soon as it is known."""
    gone, left = list(gone), [name for name in names if name not in gone]
    for number in range(rounds):
        found: dict[str, list[Loss]] = {}
        yield f"\nround {number + 1}, without: {', '.join(gone) or 'nothing'}"
        for name in left:
            found[name] = losses = measuring.losses(name, gone, gone)
            average = float(np.mean([one.mean for one in losses]))
            yield f"  {name:<44}{average:+.4f} on average, at most {losses[0]}"
        for name in sorted(found, key=lambda one: found[one][0].upper):
            if found[name][0].upper >= LOSS:
                yield "  no other part may go"
                return
            in_all = max(measuring.losses(name, gone, ()), key=lambda one: one.mean)
            if in_all.mean <= LOSS_IN_ALL and are_protected([*gone, name]):
                yield f"  goes: {name}; most lost in all: {in_all}"
                gone.append(name)
                left.remove(name)
                break
            yield f"  stays, though it costs little: {name}; most lost in all: {in_all}"
            left.remove(name)
        else:
            return


def cases(draws: Sequence[int], texts: Sequence[str]) -> list[Case]:
    """Return all specimens whose name contains one of some texts, at each number of draws."""
    every = [*specimens(), *mixtures.specimens(), *peer_suite.specimens()]
    some = [one for one in every if not texts or any(text in one.name for text in texts)]
    return [Case(one, number) for number in draws for one in some]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", action="append", default=[], help="removals with this text")
    parser.add_argument("--cases", action="append", default=[], help="cases with this text")
    parser.add_argument("--draws", action="append", type=int, help="50,000 and 400,000")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--rounds", type=int, default=len(NEUTRAL), help="parts that may go")
    parser.add_argument("--without", action="append", default=[], help="begin without this part")
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
    # Whole audits are spared what follows a violation: no bound depends on it.
    os.environ.setdefault("PYTHONHASHSEED", "0")
    with (
        patch.object(engine, "_traced", lambda spec, result: result),
        patch.object(new_processes, "PROCESSES", 0),
    ):
        measuring = Measuring(cases(given.draws or DRAWS, given.cases), given.seeds)
        for line in lines(measuring, names, given.without, given.rounds):
            print(line, flush=True)


if __name__ == "__main__":
    main()
