"""From what a user wrote to a search."""

from __future__ import annotations

from numbers import Integral
from pathlib import Path
from typing import Any

from dpaudit.errors import Name, UsageError
from dpaudit.inputs.adjacency import Adjacency
from dpaudit.searching.grammar import parse_space
from dpaudit.searching.neighbours import check_possible
from dpaudit.searching.search import NeighbourSearch
from dpaudit.wording import shown

_MOST_KEPT = 100


def neighbour_search(
    space: Any,
    adjacency: Adjacency | None,
    *,
    form: str | None = None,
    inside: Any = False,
    outside: Any = False,
    keep: Any = 1,
    base: Path | None = None,
    elsewhere: bool = False,
) -> NeighbourSearch:
    """Return a search. space: a line, or a mapping.  base: where relative import paths start.

    Raises UsageError for what is no space, and for a relation that none of its inputs have.
    """
    if adjacency is None:
        raise UsageError(
            "a search needs the relation between the inputs; give ",
            Name("adjacency"),
            ", such as add-remove",
            code="option-missing",
        )
    for name, value in (("inside", inside), ("outside", outside)):
        if not isinstance(value, bool):
            raise UsageError(
                Name(name), f"={shown(value)} must be true or false", code="option-invalid"
            )
    if inside and outside:
        raise UsageError(
            "give either ",
            Name("inside"),
            ", which leaves out inputs outside the space, or ",
            Name("outside"),
            ", which lets them decide the verdict",
            code="options-conflict",
        )
    is_whole = isinstance(keep, Integral) and not isinstance(keep, bool)
    if not (is_whole and 1 <= keep <= _MOST_KEPT):
        raise UsageError(
            Name("keep"),
            f"={shown(keep)} must be a number of pairs, from 1 to {_MOST_KEPT}",
            code="option-invalid",
        )
    found = parse_space(space, base)
    check_possible(found, adjacency)
    return NeighbourSearch(found, adjacency, form, inside, outside, int(keep), elsewhere)
