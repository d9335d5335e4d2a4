"""A range of outputs that the user declares to be all there are: an interval for ε."""

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
    """The declared outputs. A text may be an output or the name of an exception, so it has two
    keys, of which one at most may come up.

    keys: rising.  words: by key.  entry: by key, the place of what was declared in the list.
    """

    keys: KeyArray
    words: tuple[str, ...]
    entry: NDArray[np.intp]

    @classmethod
    def of(cls, declared: Sequence[Any]) -> FiniteRange:
        """Return the range. Raises UsageError for an output that is listed twice."""
        texts = [(place, one) for place, one in enumerate(declared) if isinstance(one, str)]
        others = [(place, one) for place, one in enumerate(declared) if not isinstance(one, str)]
        raised = [(place, Raised(one, "")) for place, one in texts]
        found: list[tuple[int, str, int]] = []
        for group in filter(None, (texts, [*others, *raised])):
            outcomes = _table([one for _, one in group])
            said = map(outcomes.word, range(len(group)))
            places = (place for place, _ in group)
            found += zip(outcomes.keys().tolist(), said, places, strict=True)
        found.sort(key=itemgetter(0))
        for (key, word, _), (following, _, _) in pairwise(found):
            if key == following:
                raise UsageError(f"range lists the output {word} twice", code="option-invalid")
        keys, words, entry = zip(*found, strict=True)
        return cls(np.array(keys, dtype=np.uint64), words, np.array(entry, dtype=np.intp))

    def interval(self, tally: RangeTally, alpha: float) -> EpsilonInterval | str:
        """Return the interval at 1 - alpha, or why there is none.

        tally: the draws kept for certification, of a run that reached its planned end.
        """
        if tally.undeclared is not None:
            return f"range: no interval for ε, because {tally.undeclared} came up and is not in it"
        chosen: dict[int, int] = {}
        for row in np.argsort(-tally.atoms.counts.sum(axis=1), kind="stable").tolist():
            place = int(self.entry[row])
            if place not in chosen:
                chosen[place] = row
            elif tally.atoms.counts[row].any():
                both = f"{self.words[chosen[place]]} and {self.words[row]}"
                return f"range: no interval for ε, because {both} came up as the same declared text"
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
