"""The score of a sequence: what its entries say, each given those before it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpaudit.attacks.sequences.walk import LOST, Places, Step, Summary, Walk
from dpaudit.levels.level_map import FloatArray
from dpaudit.levels.scores import shares, with_most
from dpaudit.outcomes import Outcomes
from dpaudit.outcomes.bands import Bands

NAME = "sum over entries, each given those before it"


@dataclass(frozen=True, slots=True, eq=False)
class Prefixes:
    """The score that adds up what entries say, from the first one on."""

    steps: tuple[Step, ...]
    summary: Summary
    columns: tuple[tuple[str, float], ...]

    @classmethod
    def of(cls, walk: Walk, fit: Sequence[FloatArray], spread: Sequence[float]) -> Prefixes:
        """fit: what every past and symbol says, by entry. spread: of what each entry says."""
        importance = shares([one.symbols.name for one in walk.steps], spread)
        steps = [step.weighing(own) for step, own in zip(walk.steps, fit, strict=True)]
        return cls(tuple(steps), walk.summary, importance)

    def through(self, bands: Bands) -> Prefixes:
        """Return the score of outcomes of which this one is that of their bands."""
        return replace(self, steps=tuple(step.through(bands) for step in self.steps))

    def __call__(self, outcomes: Outcomes) -> FloatArray:
        total = np.zeros(outcomes.size)
        for step, cell in self.along(outcomes):
            total += step.weights.take(cell)
        return total

    def along(self, outcomes: Outcomes) -> Iterator[tuple[Step, Places]]:
        """Yield every entry with the past and symbol of all outcomes; not to be kept."""
        past = np.full(outcomes.size, LOST + 1, dtype=np.intp)
        columns = outcomes.named(one.symbols.name for one in self.steps)
        for step, column in zip(self.steps, columns, strict=True):
            past *= len(step.symbols.values) + 1
            past += step.symbols(column)
            yield step, past
            past = step.following.take(past)

    def words(self) -> str:
        what = f"adds up {len(self.steps):,} entries, each given {self.summary.words}"
        named = with_most(what, self.columns)
        has_bands = any(step.symbols.bands is not None for step in self.steps)
        return f"{named}, of numbers the band that they lie in" if has_bands else named
