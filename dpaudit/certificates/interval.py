"""A confidence interval for ε, if the user has declared all outputs (docs/method.md §10)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.certificates.certificate import EpsilonInterval
from dpaudit.draws import RangeTally
from dpaudit.errors import MechanismError, UsageError
from dpaudit.outcomes import KeyArray, Outcomes, Raised, from_raw
from dpaudit.stats.binomial import epsilon_interval

STOPPED = (
    "range: no interval for ε, because the run stopped at the refutation, before its planned end; "
    "full: true continues to the end"
)


@dataclass(frozen=True, slots=True, eq=False)
class FiniteRange:
    """The outputs that the user has declared.

    A declared text may be an output or the name of an exception. So it has two keys (codes of
    outputs), of which at most one may occur.

    keys: keys of the outputs, in rising order. words: the output of each key in words.
    entry: for each key, the position of the declared output in the user's list.
    """

    keys: KeyArray
    words: tuple[str, ...]
    entry: NDArray[np.intp]

    @classmethod
    def of(cls, declared: Sequence[Any]) -> FiniteRange:
        """Return the range of a list of outputs. Raises UsageError for an output listed twice."""
        texts = [(place, item) for place, item in enumerate(declared) if isinstance(item, str)]
        others = [(place, item) for place, item in enumerate(declared) if not isinstance(item, str)]
        raised = [(place, Raised(text, "")) for place, text in texts]
        rows: list[tuple[int, str, int]] = []
        for group in filter(None, (texts, [*others, *raised])):
            outcomes = _table([item for _, item in group])
            words = map(outcomes.word, range(len(group)))
            places = (place for place, _ in group)
            rows += zip(outcomes.keys().tolist(), words, places, strict=True)
        rows.sort(key=itemgetter(0))
        for (key, word, _), (following, _, _) in pairwise(rows):
            if key == following:
                raise UsageError(f"range lists the output {word} twice", code="option-invalid")
        keys, words_by_key, entry = zip(*rows, strict=True)
        return cls(np.array(keys, dtype=np.uint64), words_by_key, np.array(entry, dtype=np.intp))

    def interval(self, tally: RangeTally, alpha: float) -> EpsilonInterval | str:
        """Return the interval, or the reason why there is none.

        tally: counts of the certification draws, in a run that reached its planned end.
        alpha: error probability of the interval.
        """
        if tally.undeclared is not None:
            return (
                f"range: no interval for ε, because {tally.undeclared} occurred and is not declared"
            )
        chosen: dict[int, int] = {}
        for row in np.argsort(-tally.atoms.counts.sum(axis=1), kind="stable").tolist():
            place = int(self.entry[row])
            if place not in chosen:
                chosen[place] = row
            elif tally.atoms.counts[row].any():
                both = f"{self.words[chosen[place]]} and {self.words[row]}"
                return (
                    f"range: no interval for ε, because {both} occurred, both declared by one text"
                )
        rows = [chosen[place] for place in sorted(chosen)]
        counts = [(int(d1), int(d2)) for d1, d2 in tally.atoms.counts[rows]]
        lower, upper = epsilon_interval(counts, alpha)
        atoms = tuple((self.words[row], *count) for row, count in zip(rows, counts, strict=True))
        return EpsilonInterval(lower, upper, atoms)


def _table(outputs: list[Any]) -> Outcomes:
    try:
        return from_raw(outputs).plain()
    except MechanismError as error:
        raise UsageError(
            f"range={outputs!r} cannot be outputs: {error}", code="option-invalid"
        ) from error
