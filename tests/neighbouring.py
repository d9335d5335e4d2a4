"""Relations on spaces, as users write them."""

from __future__ import annotations

from dpaudit.inputs.adjacency import parse_adjacency
from dpaudit.searching.relations import Relation, relation_on
from dpaudit.searching.spaces import parse_space


def relation(space: str, adjacency: str) -> Relation:
    """Return a relation on a space, such as `add-remove` on `list of number in [0, 1]`."""
    parsed = parse_adjacency(adjacency)
    assert parsed is not None
    return relation_on(parse_space(space), parsed)
