"""What a search is asked for: what one input may be, the relation between two, and more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dpaudit.inputs.adjacency import Adjacency
from dpaudit.inputs.pairs import NeighbouringPair
from dpaudit.searching.forming import formed
from dpaudit.searching.neighbours import NUMERIC
from dpaudit.searching.space import Space
from dpaudit.wording import shortened

_LONGEST = 300


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """What to search, and how.

    space: what one input may be.  adjacency: the relation between the two.  form: what datasets are
    handed over as; None: as they are.  inside: do not try inputs that lie outside the space.
    outside: let such inputs decide the verdict; where neither is set, a few are tried, and a leak
    is noted.  keep: how many pairs to certify; they share the error probability.  elsewhere:
    whether the process that the mechanism is in makes data frames.
    """

    space: Space
    adjacency: Adjacency
    form: str | None = None
    inside: bool = False
    outside: bool = False
    keep: int = 1
    elsewhere: bool = False

    @property
    def is_of_answers(self) -> bool:
        """Whether inputs are answers to queries, not records."""
        return self.adjacency.kind in NUMERIC

    def describe(self) -> str:
        """Return in words what is searched."""
        form = f" as {self.form}" if self.form else ""
        where = ", inside it alone" if self.inside else ", and outside it" if self.outside else ""
        kept = f", {self.keep} pairs kept" if self.keep > 1 else ""
        return f"{self.space.words()}{form} ({self.adjacency.describe()}{where}{kept})"

    def pair(self, d1: Any, d2: Any) -> NeighbouringPair:
        """Return two plain inputs as an audit takes them."""
        label = f"d1 = {shortened(repr(d1), _LONGEST)}, d2 = {shortened(repr(d2), _LONGEST)}"
        one, other = self.formed(d1), self.formed(d2)
        return NeighbouringPair(one, other, self.adjacency, label)

    def formed(self, dataset: Any) -> Any:
        """Return a dataset as the mechanism takes it. Raises DatasetError where there is none."""
        return formed(dataset, self.form, self.space, elsewhere=self.elsewhere)
