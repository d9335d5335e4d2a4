"""Neighbours and proposals: what they are, by a naive oracle, and that none is missing."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import Any

import pytest

from dpaudit.inputs.neighbouring import check_pair
from dpaudit.inputs.pairs import NeighbouringPair
from dpaudit.searching import drawing
from dpaudit.searching import proposals as proposals_module
from dpaudit.searching import space as space_module
from dpaudit.searching.proposals import (
    MAX_EDGES,
    Proposal,
    at_bounds,
    catalogue,
    kind_outside,
    proposals,
)
from dpaudit.searching.relations.steps import patterns
from dpaudit.searching.search_settings import formed
from dpaudit.searching.space import identity
from dpaudit.searching.spaces import parse_space
from tests.neighbouring import relation as related
from tests.raising import code

NAN = math.nan
UNIT = "list of number in [0, 1]"
TABLE = "table {age: integer in [0, 120], city: category [a, b], x: number in [0, 1], name: text}"
USERS = "table {id: user, city: category [a, b, c], x: number in [0, 1]}"
# Rounds are short here, and a space ends sooner: Hypothesis takes a millisecond for each draw.
ROUND, VAIN = 8, 40
# More than Hypothesis draws in one round, so that another one follows.
SOME_RANDOM = ROUND + 10
MANY_RANDOM = 3 * ROUND
BOUNDED = "user:id,group=city,groups=2,per_group=1"
CASES = [
    ("list of 2 to 5 integer", "add-remove"),
    ("list of number or missing", "hamming:2"),
    ("list of list of boolean", "add-remove"),
    ("vector of 3 number in [0, 1]", "linf:1"),
    ("vector of 5 integer", "l2:3"),
    ("list of boolean", "coordinate:1"),
    ("number in [0, 1]", "l1:0.5"),
    ("category [a, b, c]", "replace"),
    ("text", "replace"),
    ("bytes", "replace"),
    (TABLE, "replace"),
    (USERS, BOUNDED),
    (UNIT, "replace"),
]


def _some(space: str, adjacency: str, number: int = 300, **more: Any) -> list[Proposal]:
    found = proposals(related(space, adjacency), seed=5, **more)
    return list(islice(found, number))


@dataclass(frozen=True)
class Drawn:
    """Up to 300 proposals, and the stream begun again as far as a second round of random ones."""

    space: str
    adjacency: str
    found: list[Proposal]
    again: list[Proposal]


def _be_short(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(drawing, "INPUTS_PER_RUN", ROUND)
    patch.setattr(proposals_module, "_MAX_VAIN_DRAWS", VAIN)


# Drawn for several tests at once, since Hypothesis takes its time; and one stream right after the
# other, since what it draws depends on the modules that are loaded.
@pytest.fixture(scope="module", params=CASES, ids="-".join)
def drawn(request: pytest.FixtureRequest) -> Drawn:
    space, adjacency = request.param
    not_random = len(list(islice(catalogue(related(space, adjacency)), 300)))
    with pytest.MonkeyPatch.context() as patch:
        _be_short(patch)
        found = _some(space, adjacency, min(300, not_random + MANY_RANDOM))
        again = _some(space, adjacency, min(300, not_random + SOME_RANDOM))
    return Drawn(space, adjacency, found, again)


def _written(record: Any) -> str:
    """Return a record as text: NaN is equal to NaN, −0.0 is not equal to 0.0."""
    return json.dumps(record, sort_keys=True, default=repr)


def _flat(value: Any) -> list[float]:
    return [x for one in value for x in _flat(one)] if isinstance(value, list) else [float(value)]


def _difference(one: float, other: float) -> float:
    if one == other or (math.isnan(one) and math.isnan(other)):
        return 0.0
    apart = abs(one - other)
    return math.inf if math.isnan(apart) else apart


def _oracle(d1: Any, d2: Any, adjacency: str, is_vector: bool) -> bool:
    """Whether two inputs are neighbours, written once more and without thought for speed."""
    kind, _, rest = adjacency.partition(":")
    if kind in ("l1", "l2", "linf", "coordinate"):
        apart = [_difference(a, b) for a, b in zip(_flat(d1), _flat(d2), strict=True)]
        most = float(rest) * (1 + 1e-9)
        if kind == "coordinate":
            return sum(map(bool, apart)) <= 1 and max(apart) <= most
        norms = {"l1": sum(apart), "l2": math.hypot(*apart), "linf": max(apart)}
        return norms[kind] <= most  # −0.0 and 0.0 are no step apart
    if kind == "replace" and not isinstance(d1, list):
        return _written(d1) != _written(d2)
    one, other = Counter(map(_written, d1)), Counter(map(_written, d2))
    fewer, more = (one - other).total(), (other - one).total()
    if kind == "add-remove":
        return fewer + more == 1
    places = sum(_written(a) != _written(b) for a, b in zip(d1, d2, strict=False))
    if kind == "hamming" or (kind == "replace" and is_vector):
        return len(d1) == len(d2) and 1 <= places <= int(rest or 1)
    if kind == "replace":
        return len(d1) == len(d2) and max(fewer, more) <= 1 and places > 0
    return _users_oracle(d1, d2, rest)


def _users_oracle(d1: Any, d2: Any, rest: str) -> bool:
    everybody = {row["id"] for row in d1 + d2}
    changed = [one for one in everybody if _of(d1, one) != _of(d2, one)]
    if len(changed) != 1 or (_of(d1, changed[0]) and _of(d2, changed[0])):
        return False
    if "groups" not in rest:
        return True
    for dataset in (d1, d2):
        for one in everybody:
            cities = Counter(row["city"] for row in dataset if row["id"] == one)
            if len(cities) > 2 or max(cities.values(), default=0) > 1:
                return False
    return True


def _of(dataset: Any, user: Any) -> list[str]:
    return sorted(_written(row) for row in dataset if row["id"] == user)


def test_every_proposal_is_a_pair_of_neighbours(drawn: Drawn) -> None:
    space, adjacency = drawn.space, drawn.adjacency
    relation = related(space, adjacency)
    inside = relation.space
    assert drawn.found
    for one in drawn.found:
        assert _oracle(one.d1, one.d2, adjacency, space.startswith("vector")), one
        assert relation.holds(one.d2, one.d1)
        assert one.inside == (inside.contains(one.d1) and inside.contains(one.d2))
        assert one.why
        if space.startswith("list of 2 to 5"):
            assert {len(one.d1), len(one.d2)} <= {2, 3, 4, 5}
        # As an audit of the pair sees it.
        assert check_pair(NeighbouringPair(one.d1, one.d2, relation.adjacency)) == ()


def test_proposals_come_once_and_again_for_the_seed(drawn: Drawn) -> None:
    found, again = drawn.found, drawn.again
    keys = [frozenset((identity(one.d1), identity(one.d2))) for one in found]
    assert len(set(keys)) == len(keys)
    randoms = Counter(one.origin for one in again)["random"]
    assert randoms >= SOME_RANDOM or len(again) == len(found)
    assert list(map(repr, found[: len(again)])) == list(map(repr, again))
    order = ["edge", "extreme", "pattern", "random"]
    places = [order.index(one.origin) for one in found]
    assert places == sorted(places)
    assert Counter(one.origin for one in found)["edge"] <= MAX_EDGES


def _values(proposal: Proposal, column: str) -> list[Any]:
    return [row[column] for row in [*proposal.d1, *proposal.d2]]


def _added(proposal: Proposal) -> Any:
    one, other = sorted((proposal.d1, proposal.d2), key=len)
    left = [row for row in other if other.count(row) > one.count(row)]
    return left[-1] if left else other[-1]


def test_the_catalogue_of_a_table_has_each_edge() -> None:
    found = list(catalogue(related(TABLE, "add-remove")))
    added = {(name, identity(value)) for one in found for name, value in _added(one).items()}
    for name, value in [
        *(("age", one) for one in (0, 120, -1, 121, None, 2**63 - 1, -(2**63), 10**18)),
        *(("x", one) for one in (0.0, 1.0, -1.0, 2.0, NAN, math.inf, -math.inf, None, -0.0)),
        *(("x", one) for one in (5e-324, 1e18, 1.7976931348623157e308, -1.7976931348623157e308)),
        *(("city", one) for one in ("a", "b", "new category", "", None)),
        *(("name", one) for one in ("", "é☃", None)),
    ]:
        assert (name, identity(value)) in added, (name, value)
    sizes = {tuple(sorted((len(one.d1), len(one.d2)))) for one in found}
    assert {(0, 1), (1, 2), (2, 3), (3, 4), (29, 30)} <= sizes  # empty, single, odd and even, full
    pairs = [sorted((one.d1, one.d2), key=len) for one in found]
    assert any(len(a) > 1 and all(r == a[0] for r in b) for a, b in pairs)  # all equal
    assert any(len(a) > 1 and b[: len(a)] == a[::-1] != a for a, b in pairs)  # reversed
    assert any(b[-1] in a and a[0] != a[1] for a, b in pairs if len(a) > 1)  # a duplicate
    for name in ("age", "city", "x", "name"):
        columns = [([r[name] for r in a], [r[name] for r in b]) for a, b in pairs if len(a) > 1]
        assert any(len(set(a)) == 1 and len(set(b)) == 2 for a, b in columns)  # constant
        assert any(a == [None, None] and b[-1] is not None for a, b in columns)  # missing
    cities = [({r["city"] for r in a}, {r["city"] for r in b}) for a, b in pairs]
    assert ({"a"}, {"a", "b"}) in cities  # the last of a group


def test_the_edges_of_users() -> None:
    found = list(catalogue(related(USERS, "user:id")))
    shapes = set()
    for one in found:
        smaller, larger = sorted((one.d1, one.d2), key=len)
        rows = [row for row in larger if row["id"] not in {r["id"] for r in smaller}]
        groups = {row["city"] for row in rows}
        alone = groups - {row["city"] for row in smaller}
        shapes.add((min(len(smaller), 1), min(len(rows), 4), len(groups) > 1, bool(alone)))
    assert (0, 1, False, True) in shapes  # empty beside one record
    assert (1, 2, True, True) in shapes  # two groups, alone in one of them
    assert (1, 2, True, False) in shapes  # two groups, alone in none
    assert (1, 1, False, True) in shapes  # alone in a group
    assert any(many == 4 for _, many, _, _ in shapes)  # many records
    bounded = list(catalogue(related(USERS, BOUNDED)))
    assert all(max(Counter(_values(one, "id")).values()) <= 4 for one in bounded)


@pytest.mark.parametrize("adjacency", ["linf:1", "l1:2", "l2:2", "linf:0.5"])
def test_patterns_go_as_far_as_is_allowed(adjacency: str) -> None:
    relation = related("vector of 5 number", adjacency).adjacency
    found = list(related("vector of 5 number", adjacency).pattern_pairs())
    assert {why.partition(", between")[0] for _, _, why in found} == {n for n, _, _ in patterns(5)}
    norms: dict[str, Callable[[list[float]], float]]
    norms = {"linf": max, "l1": sum, "l2": lambda all_: math.hypot(*all_)}
    for one, other, why in found:
        if "between" not in why:
            apart = [abs(a - b) for a, b in zip(one, other, strict=True)]
            assert norms[relation.kind](apart) == pytest.approx(relation.distance)


def test_one_user_has_a_record_in_every_category_that_is_allowed() -> None:
    space = "table {user: user, group: category [a, b, c]}"
    for adjacency, largest in (("user:user", "abc"), ("user:user,group=group,groups=2", "ab")):
        gains = []
        for pair in catalogue(related(space, adjacency), inside_only=True):
            fewer, more = sorted((pair.d1, pair.d2), key=len)
            users = {row["user"] for row in fewer}
            gains.append({row["group"] for row in more if row["user"] not in users})
        assert set(largest) in gains
        assert max(map(len, gains)) == len(largest)


def test_vectors_keep_their_places() -> None:
    vector, records = "vector of 3 integer", "list of integer"
    assert not related(vector, "replace").holds([1, 2, 3], [3, 2, 1])
    assert related(records, "replace").holds([1, 2, 3], [3, 2, 1])
    assert not related(records, "hamming:1").holds([1, 2, 3], [3, 2, 1])
    assert not related(records, "replace").holds([1, 2, 3], [1, 2, 3])


def test_datasets_are_copied_and_rows_of_arrays_are_in_the_order_of_the_space() -> None:
    space, rows = parse_space("table {b: integer, a: number}"), [{"a": 0.5, "b": 1}]
    assert formed(rows, None, space)[0] is not rows[0]
    assert formed(rows, "array", space).tolist() == [[1, 0.5]]
    assert formed([], "array", space).shape == (0, 2)
    assert list(formed([], "pandas", space).columns) == ["b", "a"]


def test_a_relation_that_no_two_inputs_can_have_is_refused() -> None:
    for space, adjacency in (
        ("text", "coordinate:1"),
        ("list of text", "linf:1"),
        ("list of 0 to 0 number", "replace"),
        ("vector of 3 number", "add-remove"),
        ("number", "add-remove"),
        ("list of number", "user:id"),
        ("table {idd: user}", "user:id"),
        (USERS, "user:id,group=town,groups=2"),
        ("integer", "l1:0.5"),
        ("vector of 3 category [1, 5]", "linf:2"),
    ):
        relation = related(space, adjacency)
        assert code(proposals, relation, seed=1) == "space-without-neighbours"
        assert code(list, catalogue(relation)) == "space-without-neighbours"


def test_the_catalogue_needs_no_hypothesis(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "hypothesis.strategies", None)
    assert code(space_module.strategies) == "package-missing"
    stream = proposals(related("list of boolean", "add-remove"), seed=1)
    first = list(islice(stream, 15))
    assert {one.origin for one in first} == {"edge"}
    assert code(list, stream) == "package-missing"


@pytest.mark.parametrize(
    ("space", "adjacency", "pairs"),
    [
        ("list of 1 to 6 number in [0, 1]", "replace", [([0.0], [1.0])]),
        ("list of 3 to 6 number in [0, 1]", "hamming:2", [([0.0] * 3, [0.0, 1.0, 1.0])]),
        (UNIT, "add-remove", [([], [1.0]), ([], [0.0])]),
        ("vector of 3 number in [0, 1]", "linf:1", []),
    ],
)
def test_pairs_at_the_bounds_are_the_smallest(space: str, adjacency: str, pairs: list[Any]) -> None:
    found = list(at_bounds(related(space, adjacency)))
    assert [(one.d1, one.d2) for one in found] == pairs
    assert {one.origin for one in found} <= {"bound"}


@pytest.mark.parametrize(
    ("space", "d2", "kind"),
    [
        (UNIT, [0.5, NAN], "NaN"),
        (UNIT, [0.5, None], "missing"),
        (UNIT, [0.5, 2.0], "beyond"),
        (UNIT, ["a"], "other"),
        ("list of number in [0, 1] or NaN", [NAN, 2.0], "beyond"),
        ("table {x: number in [0, 1], c: category [a, b]}", [{"x": 7.0, "c": "a"}], "beyond"),
    ],
)
def test_kinds_of_values_outside_the_space(space: str, d2: list[Any], kind: str) -> None:
    proposal = Proposal([], d2, "", "edge", False)
    assert kind_outside(proposal, parse_space(space)) == kind
