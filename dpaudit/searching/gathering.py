"""The pairs that a search tries, each pair once: pairs at the bounds, the other pairs of the
catalogue, random pairs, and pairs of which only one input raises an exception."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice, zip_longest
from typing import Any

from dpaudit.auditing.spec import AuditSpec
from dpaudit.inputs.adjacency import Users
from dpaudit.searching.proposals import (
    Outside,
    Proposal,
    at_bounds,
    catalogue,
    kind_outside,
    parts,
    proposals,
)
from dpaudit.searching.relations import Relation
from dpaudit.searching.relations.steps import entries, moved
from dpaudit.searching.search_settings import SearchSettings
from dpaudit.searching.space import MissingLibrary, distinct
from dpaudit.searching.spaces.record_spaces import Lists
from dpaudit.searching.trials import (
    MAX_FIRST_PAIRS,
    PROPOSED_SHARE,
    SEARCH_SHARE,
    SEVERAL_PAIRS,
    Budget,
    Contender,
    Inputs,
)

# The search for proposals ends after this number of proposals in a row that give no new pair.
_MAX_REPEATS = 1_000
# If not even the first proposals give a usable pair, the search for proposals ends after this
# number of them, which is less than `_MAX_REPEATS`: perhaps no input can be converted to the data
# type that the mechanism takes.
_MAX_UNUSABLE = 100
# Share of a search's time after which no more proposals are made.
_PROPOSING_SHARE = 1 / 3
# Largest number of pairs of each kind outside the space that are tried if the user neither excludes
# nor includes inputs outside the space. They only serve a note in the report. More pairs have
# numbers beyond the bounds: their leak may need several records.
_PAIRS_OUTSIDE: Mapping[Outside, int] = {"NaN": 8, "missing": 8, "beyond": 16, "other": 8}
# Bisection looks for the step at which exceptions begin, between inputs that give outputs and
# inputs that always raise. It uses at most this number of inputs that give outputs. Of the inputs
# that raise, it uses the smallest one, and at most this number of the largest ones.
_BISECTED_INPUTS = 3
# Bisection finds pairs for which the mechanism raises on only one of the two inputs. Largest number
# of such pairs that are added to the pairs to try.
_BISECTED_PAIRS = 2


# Largest number of times that `_closer` halves the distance between two inputs. It stops earlier if
# they are neighbours.
_MAX_HALVINGS = 60

# Type of functions that take a dataset and make a few draws of the mechanism on it. They return
# whether every draw raises an exception; None if no draw can be made.
Raises = Callable[[Any], bool | None]


class Gathering:
    """Makes a `Contender` of each pair that was not proposed before. `note` says why some kinds of
    proposals are missing, as without Hypothesis."""

    def __init__(
        self, settings: SearchSettings, spec: AuditSpec, inputs: Inputs, budget: Budget
    ) -> None:
        self._settings, self._spec, self._inputs, self._budget = settings, spec, inputs, budget
        self._relation = settings.relation
        self._proposed: set[tuple[int, int]] = set()
        self.note = ""

    def gathered(self) -> list[Contender]:
        """Return the pairs to try: first pairs at the bounds, then the rest of the catalogue, then
        random pairs. Random pairs take long to make, so they are made only if there are draws for
        further pairs."""
        contenders: list[Contender] = []
        source = proposals(
            self._relation, seed=self._spec.sampling.seed, inside_only=not self._settings.outside
        )
        capacity, limit = self._budget.places(PROPOSED_SHARE), self._spec.sampling.time
        source = chain(at_bounds(self._relation), source)
        for contender in islice(self._contenders(source), MAX_FIRST_PAIRS):
            is_late = (
                limit is not None
                and self._budget.elapsed() > _PROPOSING_SHARE * SEARCH_SHARE * limit
            )
            is_full = len(contenders) >= capacity and contender.proposal.origin == "random"
            # Hypothesis needs up to a second for its first pair, and a user's own code may need any
            # time for each.
            enough = 1 if self._relation.is_own else SEVERAL_PAIRS
            if (is_late and len(contenders) >= enough) or (contenders and is_full):
                break
            contenders.append(contender)
        return contenders

    def beyond(self) -> list[Contender]:
        """Return at most 40 pairs outside the space, for notes in the report. Return [] if an
        option excludes or includes all inputs outside the space."""
        if self._settings.inside or self._settings.outside:
            return []
        outside = [proposal for proposal in catalogue(self._relation) if not proposal.inside]
        chosen: list[Proposal] = []
        for kind, limit in _PAIRS_OUTSIDE.items():
            alike = [
                proposal
                for proposal in outside
                if kind_outside(proposal, self._relation.space) == kind
            ]
            chosen += _by_turns(alike)[:limit]
        return list(self._contenders(chosen))

    def raising(
        self, ranked: Sequence[Contender], raises: Callable[[Any], bool | None]
    ) -> list[Contender]:
        """Return pairs for which the mechanism raises an exception on only one of the inputs.
        Bisection finds them on a path of neighbours. The path leads from an input that gave outputs
        to an input of a pair in `ranked` whose two inputs always raised."""
        raising = [
            contender.proposal
            for contender in ranked
            if contender.d1.only_raises and contender.d2.only_raises
        ]
        quiet = [
            contender.proposal
            for contender in ranked
            if contender.draws and not contender.d1.raised
        ]
        if not (raising and quiet):
            return []
        by_size = sorted(
            (max(proposal.d1, proposal.d2, key=_size) for proposal in raising), key=_size
        )
        few = [*by_size[:1], *by_size[::-1][:_BISECTED_INPUTS]]
        datasets = [proposal.d1 for proposal in quiet[:_BISECTED_INPUTS]]
        source = where_exceptions_begin(few, datasets, self._relation, raises)
        return list(islice(self._contenders(source), _BISECTED_PAIRS))

    def _contenders(self, source: Iterable[Proposal]) -> Iterator[Contender]:
        """Yield a `Contender` for each proposed pair that was not proposed before."""
        fruitless = 0
        for proposal in self._possible(source):
            d1, d2 = self._inputs.of(proposal.d1), self._inputs.of(proposal.d2)
            fruitless += 1
            if fruitless > (_MAX_REPEATS if self._proposed else _MAX_UNUSABLE):
                return
            if d1 is None or d2 is None or d1 is d2:
                continue
            key = min(d1.number, d2.number), max(d1.number, d2.number)
            if key not in self._proposed:
                self._proposed.add(key)
                fruitless = 0
                yield Contender(proposal, d1, d2, len(self._proposed))

    def _possible(self, source: Iterable[Proposal]) -> Iterator[Proposal]:
        """Yield the proposals, without the random ones if Hypothesis is not installed."""
        try:
            yield from source
        except MissingLibrary as error:
            self.note = str(error)


def _size(dataset: Any) -> int:
    return len(parts(dataset))


def _by_turns(pairs: Sequence[Proposal]) -> list[Proposal]:
    """Return the first pair of each d1, then the second pair of each d1, and so on."""
    groups: dict[str, list[Proposal]] = {}
    for pair in pairs:
        groups.setdefault(repr(pair.d1), []).append(pair)
    return [pair for turn in zip_longest(*groups.values()) for pair in turn if pair is not None]


def where_exceptions_begin(
    raising: Sequence[Any], quiet: Sequence[Any], relation: Relation, raises: Raises
) -> Iterator[Proposal]:
    """Yield pairs such that the mechanism gives outputs for one input, and always raises an
    exception for the other: at most one pair for each dataset in `raising`.

    A path of neighbours leads from a dataset that gives outputs to a dataset that raises. At some
    step of the path, the exceptions begin: this step is a leak. Bisection finds it with few draws.
    If neighbours differ in size, the first path to a list adds its records one by one (or user by
    user). Other paths replace one record after the other. For query answers, the step is bisected
    further: the two vectors move closer together until they are neighbours.

    raising: datasets for which the mechanism raises.
    quiet: datasets for which the mechanism gives outputs.
    raises: whether the mechanism raises for a dataset; None if that is unknown.
    """
    for dataset in raising:
        for path in _paths(dataset, quiet, relation):
            step = _first_step(path, raises)
            if step is not None and relation.is_of_answers:
                step = _closer(*step, relation, raises)
            if step is not None and relation.holds(*step):
                inside = relation.are_inside(*step)
                yield Proposal(*step, "where exceptions begin", "raising", inside)
                break


def _paths(dataset: Any, quiet: Sequence[Any], relation: Relation) -> Iterator[list[Any]]:
    """Yield paths of successive neighbours to a dataset for which the mechanism raises."""
    inner = relation.inner
    if not (isinstance(inner, Lists) and isinstance(dataset, list)):
        yield from ([start, dataset] for start in quiet)
        return
    if relation.grows:
        prefixes = _prefixes(dataset, relation.adjacency.users)
        yield [prefix for prefix in prefixes if inner.fits(len(prefix))]
    for start in quiet:
        if isinstance(start, list) and start:
            same_size = [start[index % len(start)] for index in range(len(dataset))]
            yield list(_by_records(same_size, dataset, relation))


def _prefixes(dataset: list[Any], users: Users | None) -> Iterator[list[Any]]:
    """Yield the beginnings of a dataset, the empty one first, each longer by a record or user."""
    if users is None:
        yield from (dataset[:size] for size in range(len(dataset) + 1))
        return
    names = list(distinct(row[users.column] for row in dataset))
    for number in range(len(names) + 1):
        yield [row for row in dataset if row[users.column] in names[:number]]


def _by_records(start: list[Any], end: list[Any], relation: Relation) -> Iterator[Any]:
    """Yield the datasets of a path between two lists of the same size, record by record."""
    # If neighbours differ by one added or removed record, replacing a record takes two steps: the
    # new record is added first, unless the list may not grow.
    is_full = not relation.has_room(len(end) + 1)
    for index, record in enumerate(end):
        yield [*end[:index], *start[index:]]
        if relation.grows:
            between = [] if is_full else [record, start[index]]
            yield [*end[:index], *between, *start[index + 1 :]]
    yield end


def _first_step(path: list[Any], raises: Raises) -> tuple[Any, Any] | None:
    """Return the two successive datasets of a path between which exceptions begin, or None."""
    low, high = 0, len(path) - 1
    if high < 1 or raises(path[low]) is not False or raises(path[high]) is not True:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        if raises(path[middle]):
            high = middle
        else:
            low = middle
    return path[low], path[high]


def _closer(quiet: Any, raising: Any, relation: Relation, raises: Raises) -> tuple[Any, Any]:
    """Return two inputs on the way between a quiet and a raising one, closer to each other."""
    for _ in range(_MAX_HALVINGS):
        first, second = entries(quiet), entries(raising)
        if relation.holds(quiet, raising) or len(first) != len(second):
            break
        if not all(map(math.isfinite, first + second)):
            break
        middle = moved(quiet, [(high - low) / 2 for low, high in zip(first, second, strict=True)])
        if middle in (quiet, raising):
            break
        if raises(middle):
            raising = middle
        else:
            quiet = middle
    return quiet, raising
