"""The cases of an ablation: mechanisms whose law is known, and what is learned from their draws.

`Case.efficiency` measures one seed without some parts of the learner (benchmarks/removals.py). The
results of scorers are kept from one removal to the next, as long as no removed part has a say in
them.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from benchmarks.efficiency import ALPHA, CLIP, audit
from benchmarks.oracle import Oracle, Rule
from benchmarks.removals import notice, notice_scorer, noticing, removals, removed
from benchmarks.specimens import Specimen
from dpaudit.attacks import learning, scorers
from dpaudit.attacks import trees as tree_attacks
from dpaudit.attacks.objective import Objective
from dpaudit.attacks.rare_outputs import RareTable
from dpaudit.auditing.schedule import Plan, limits_for
from dpaudit.claims import ProfilePoint
from dpaudit.draws import SelectionDraws
from dpaudit.levels import candidates
from dpaudit.levels.candidates import Candidate
from dpaudit.levels.portfolio import Learned
from dpaudit.outcomes import Outcomes, from_raw

FloatArray = NDArray[np.float64]

# Draws, judged by their log-ratios, from which the probabilities of guesses are known.
JUDGED = 100_000
# Drafts that are kept in memory: five seeds, each of half of the draws too.
MOST_DRAFTS = 10


@dataclass(frozen=True, slots=True)
class Kept:
    """A result, the removals that it was made without, and those that could have changed it."""

    value: Any
    without: frozenset[str]
    used: frozenset[str]

    def holds(self, without: frozenset[str]) -> bool:
        """Return whether the result would be the same without these parts."""
        return self.without <= without and not (without - self.without) & self.used


@dataclass(eq=False)
class _Draft:
    """Draws to learn from, and what was made of them so far."""

    selection: SelectionDraws
    _known: dict[Any, list[Kept]] = field(default_factory=dict)

    def learn(self, objective: Objective, without: frozenset[str]) -> Learned:
        """Return what is learned; what a removal does not touch is not computed again."""
        used: list[Kept] = []

        def kept(key: Any, make: Callable[[], Any]) -> Any:
            result = self._kept(key, without, make)
            used.append(result)
            return result.value

        def trees(*given: Any) -> Any:
            key = ("trees", *map(id, used))
            made, skipped = kept(key, partial(make_trees, *given))
            return _fresh(made), skipped

        def of(selection: SelectionDraws, often: int) -> RareTable:
            make = partial(_with_shares, RareTable.of, selection, often)
            table: RareTable
            table, order = self._kept(("rare", often), without, make).value
            vars(table)["order"] = lambda: _fresh(order)
            return table

        def frequent(*given: Any) -> RareTable:
            make = partial(_with_shares, RareTable.frequent, *given, order=False)
            table: RareTable = self._kept("frequent", without, make).value[0]
            return table

        def smoothed(*given: Any) -> Any:
            key = ("smoothed", *(None if one is None else one.tobytes() for one in given))
            return self._kept(key, without, partial(smoothed_counts, *given)).value

        # A removal may have replaced this function.
        smoothed_counts = vars(candidates)["smoothed"]
        make_trees = tree_attacks.propose_trees
        attacks = tuple(_Scorer(one, kept) for one in scorers.SCORERS)
        tables = SimpleNamespace(of=of, frequent=frequent)
        with (
            patch.object(tree_attacks, "propose_trees", trees),
            patch.object(learning, "RareTable", tables),
            patch.object(candidates, "smoothed", smoothed),
        ):
            return learning.learn(self.selection, objective, attacks)

    def _kept(self, key: Any, without: frozenset[str], make: Callable[[], Any]) -> Kept:
        every = self._known.setdefault(key, [])
        for one in every:
            if one.holds(without):
                notice(one.used)
                return one
        with noticing() as used:
            value = make()
        every.append(Kept(value, without, frozenset(used)))
        return every[-1]


@dataclass(frozen=True, eq=False)
class _Scorer:
    """A scorer whose candidates are kept. It equals its function, since `learn` compares them."""

    function: Callable[..., Any]
    kept: Callable[[Any, Callable[[], Any]], Any]

    def __call__(self, selection: SelectionDraws) -> list[Candidate]:
        result = self.kept(self.function, lambda: list(self.function(selection)))
        if result:
            notice_scorer(self.function.__name__)
        return _fresh(result)

    def __eq__(self, other: object) -> bool:
        return self.function is other

    def __hash__(self) -> int:
        return hash(self.function)


def _fresh(every: Sequence[Candidate]) -> list[Candidate]:
    """Return candidates without what they have cached, since a removal may change that."""
    return [replace(one) for one in every]


def _with_shares(
    make: Callable[..., RareTable], *given: Any, order: bool = True
) -> tuple[RareTable, list[Candidate]]:
    """Return a table of rare outputs, after it has computed all that it caches, and its order."""
    table = make(*given)
    _ = table._shares
    return table, table.order() if order else []


@dataclass(eq=False)
class Case:
    """A specimen at a number of draws."""

    specimen: Specimen
    draws: int
    _drafts: dict[tuple[int, int], _Draft] = field(default_factory=dict)
    _bounds: dict[int, float] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"{self.specimen.name}, {self.draws:,} draws"

    @property
    def columns(self) -> int:
        """Number of columns of an output."""
        one = self.specimen
        drawn = one.mechanism(one.d1, size=2, rng=np.random.default_rng(0))
        return len(from_raw(drawn).columns)

    def efficiency(self, seed: int, without: frozenset[str]) -> tuple[float, frozenset[str]]:
        """Return the efficiency, by law, of what is learned from draws of this seed without some
        parts, and the removals that could change it."""
        with removed(sorted(without)), noticing() as used:
            if Plan(self.draws, None, self._limits).freeze_at > self._limits.buffer_draws:
                return self._of_an_audit(seed), frozenset(removals())
            return self._of_learning(seed, without), frozenset(used)

    def forget(self) -> None:
        """Free the draws."""
        self._drafts.clear()
        self.__dict__.pop("_judged", None)

    def _of_learning(self, seed: int, without: frozenset[str]) -> float:
        """Learn from as many draws as an audit keeps: half of them where fewer promise nothing."""
        plan = Plan(self.draws, None, self._limits)
        while True:
            draft, future_draws = (
                self._draft(plan.buffer_until, seed),
                self.draws - plan.buffer_until,
            )
            point = ProfilePoint(self._claimed, self.specimen.delta)
            learned = draft.learn(Objective(point, future_draws), without)
            if learned.predicts_bound or not plan.extend_buffer():
                break
        rule = learned.portfolio
        guesses = rule.guesses[rule(self._judged[0])]
        right = np.where(guesses > 0, self._judged[1], 1 - self._judged[1])[guesses != 0]
        correct = float(right.sum()) / len(guesses)
        wrong = np.count_nonzero(guesses) / len(guesses) - correct
        return self._share(self._oracle.allowed(rule.guesses, correct, wrong, future_draws))

    def _of_an_audit(self, seed: int) -> float:
        nothing = Rule(-math.inf, math.inf, 0.0, 0.0)
        result, watched, _ = audit(
            self.specimen, self._claimed, self.draws, seed, nothing, by_law=True
        )
        if watched.frozen is None:
            return 0.0
        future_draws = result.certificates[0].fixed.draws
        bound = self._oracle.allowed(watched.frozen.guesses, *watched.by_law(), future_draws)
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

    def _share(self, bound: float) -> float:
        """Return the share of the draws with which the oracle expects a bound, interpolated between
        48 numbers of draws. Its bound rises with the draws."""
        if bound <= 0:
            return 0.0
        draws = np.geomspace(self.draws / 2_000, CLIP * self.draws, 48).tolist()
        above = bisect_left(range(len(draws)), bound, key=lambda at: self._bound(at, draws[at]))
        if above in (0, len(draws)):
            return float(draws[min(above, len(draws) - 1)] / self.draws)
        ends = [self._bound(at, draws[at]) for at in (above - 1, above)]
        return (
            float(np.exp(np.interp(bound, ends, np.log(draws[above - 1 : above + 1])))) / self.draws
        )

    def _bound(self, place: int, draws: float) -> float:
        if place not in self._bounds:
            self._bounds[place] = self._oracle.bound(draws)
        return self._bounds[place]

    def _draft(self, size: int, seed: int) -> _Draft:
        """Return draws of both inputs in random order, and what was made of them before."""
        if (size, seed) not in self._drafts:
            rng = np.random.default_rng([seed, size])
            first = int(rng.binomial(size, 0.5))
            outcomes = from_raw(self._drawn(first, size - first, rng))
            order = rng.permutation(size)
            if len(self._drafts) >= MOST_DRAFTS:
                self._drafts.clear()
            self._drafts[size, seed] = _Draft(SelectionDraws(outcomes.take(order), order < first))
        return self._drafts[size, seed]

    def _drawn(self, first: int, second: int, rng: np.random.Generator) -> Any:
        one, mechanism = self.specimen, self.specimen.mechanism
        d1, d2 = mechanism(one.d1, size=first, rng=rng), mechanism(one.d2, size=second, rng=rng)
        return [*d1, *d2] if isinstance(d1, list) else np.concatenate([d1, d2])
