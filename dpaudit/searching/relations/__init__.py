"""Relations, one class for each kind of adjacency, such as `add-remove`. A relation tests whether
two inputs are neighbours, and proposes pairs that a search should try."""

from __future__ import annotations

from collections.abc import Mapping

from dpaudit.inputs.adjacency import Adjacency
from dpaudit.searching.relations.record_relations import AddRemove, Hamming, Imported, Replace
from dpaudit.searching.relations.relation import Ingredients, Relation
from dpaudit.searching.relations.steps import Steps
from dpaudit.searching.relations.users import OneUser
from dpaudit.searching.space import Space

__all__ = ["Ingredients", "Relation", "relation_on"]

_KINDS: Mapping[str, type[Relation]] = {
    "add-remove": AddRemove,
    "replace": Replace,
    "hamming": Hamming,
    "user": OneUser,
    "l1": Steps,
    "l2": Steps,
    "linf": Steps,
    "coordinate": Steps,
    "import": Imported,
}


def relation_on(space: Space, adjacency: Adjacency) -> Relation:
    """Return the `Relation` for a space and an adjacency, such as `add-remove`."""
    return _KINDS[adjacency.kind](space, adjacency)
