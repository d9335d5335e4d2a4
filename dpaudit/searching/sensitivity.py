"""How far the answers for neighbouring inputs are apart, against what is claimed: a search without
draws, since the function has no noise."""

from __future__ import annotations

import math
import time as clock
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from numbers import Real
from typing import Any, Literal

from dpaudit.adapters.calls import bind
from dpaudit.adapters.isolation import IsolatedFunction
from dpaudit.errors import DatasetError, MechanismError, Name, TargetError, UsageError
from dpaudit.inputs.adjacency import Adjacency, parse_adjacency
from dpaudit.inputs.frames import FORMS
from dpaudit.inputs.values import resolved
from dpaudit.outcomes import Raised
from dpaudit.searching.answers import Answers
from dpaudit.searching.climbing import Ended, Pair, Pool, climbed, of_every_size
from dpaudit.searching.distances import (
    NORMS,
    RECORDS,
    Distance,
    as_rows,
    metric,
    plain_numbers,
    plain_records,
)
from dpaudit.searching.forming import formed
from dpaudit.searching.grammar import parse_space
from dpaudit.searching.neighbours import are_neighbours, present
from dpaudit.searching.parts import key, records
from dpaudit.searching.proposals.stream import catalogue
from dpaudit.searching.random_pairs import look_at_random
from dpaudit.searching.shrinking import shrunk
from dpaudit.searching.snippets import snippet
from dpaudit.searching.space import Space
from dpaudit.searching.spaces.own import Own
from dpaudit.targets.construction import functions, is_made, source_of
from dpaudit.targets.parameters import NONE, Calling, calling
from dpaudit.targets.target import CallableTarget, ImportedTarget, IsolatedTarget
from dpaudit.watching import Watch
from dpaudit.wording import did_you_mean, shown

Target = ImportedTarget | CallableTarget | IsolatedTarget
Norm = Literal["l1", "l2", "linf", "records"]
Kind = Literal["distance", "infinite", "raises"]
Origin = Literal["catalogue", "sizes", "climbing", "random"]

SECONDS = 60.0
# A distance of exactly the claimed size may come out a few units in the last place above it.
_ROUNDING = 1e-9
# Pairs that climbs look at, from so many starts; and pairs that Hypothesis makes.
_CLIMBS, _STARTS, _RANDOM = 6_000, 4, 400
_SHRINKS = 1_000
# So many times as long as the shortest witness, one may be that is further apart.
_LONGER = 1.5
_OVER = "the time was over before the search was; more time goes further"
# Which of several finds is shown first: the plain one, then those that say less of Δ.
_ORDER: Mapping[Kind, int] = {"distance": 0, "infinite": 1, "raises": 2}


@dataclass(frozen=True, slots=True)
class Witness:
    """Two neighbouring inputs, and how far the answers are apart.

    Parameters
    ----------
    d1, d2 : Any
        The inputs, as plain Python: scalars, lists, mappings.
    outputs : tuple of Any
        The two answers, as plain Python; an exception by its type and message, as text.
    distance : float
        By the norm; infinite where none can be taken, or one input alone raises.
    kind : {'distance', 'infinite', 'raises'}
        What sets the answers apart: numbers, their shape or NaN or infinity in one alone, or an
        exception.
    words : str
        Why the distance is infinite; empty where it is not.
    inside : bool
        Whether both inputs lie in the space.
    """

    d1: Any
    d2: Any
    outputs: tuple[Any, Any]
    distance: float
    kind: Kind
    words: str
    inside: bool


@dataclass(frozen=True, slots=True)
class SensitivityResult:
    """What a search for a larger distance than the claimed one has found.

    Parameters
    ----------
    function : str
        What was looked at.
    source : str or None
        The file and line of its code, if known.
    space, adjacency : str
        What the inputs may be, and which are neighbours, in a line each.
    norm : {'l1', 'l2', 'linf', 'records'}
        How distance is measured.
    claimed : float
        What no distance may exceed.
    exceeded : bool
        Whether some pair is further apart. That none was found does not show that none exists.
    witnesses : tuple of Witness
        Shrunk pairs that are further apart than claimed, at most one of each kind; of inputs
        outside the space only where these count.
    beyond : tuple of Witness
        Such pairs outside the space, where these do not count and none inside is too far apart.
    largest : Witness or None
        A pair with the largest finite distance seen, inside the space if there is one.
    tried : mapping of str to int
        How many pairs were compared, by where they came from.
    raised : int
        How many further pairs were not counted, since both inputs raise.
    notes : tuple of str
        What was left out, and why.
    snippet : str
        A Python program that shows the answers for the first witness, or the first pair of
        `beyond`; empty without either.
    """

    function: str
    source: str | None
    space: str
    adjacency: str
    norm: Norm
    claimed: float
    exceeded: bool
    witnesses: tuple[Witness, ...]
    beyond: tuple[Witness, ...]
    largest: Witness | None
    tried: Mapping[str, int]
    raised: int
    notes: tuple[str, ...]
    snippet: str

    @property
    def witness(self) -> Witness | None:
        """The first of the witnesses, if there is one."""
        return self.witnesses[0] if self.witnesses else None


class _Tired(Exception):
    """A climb has looked at as many pairs as it may."""


def sensitivity(
    function: Callable[..., Any] | str,
    *,
    space: Space | str | Mapping[str, Any],
    adjacency: Adjacency | str | Mapping[str, Any],
    claimed: float,
    norm: Norm = "l1",
    params: Mapping[str, Any] | None = None,
    form: str | None = None,
    inside_only: bool = False,
    outside: bool = False,
    python: str | None = None,
    seed: int = 0,
    time: float = SECONDS,
) -> SensitivityResult:
    """Search for neighbouring inputs whose answers are further apart than claimed.

    Parameters
    ----------
    function : callable or str
        A function of the dataset without noise, or its import path `package.module:attr`.
    space : str or mapping
        What one input may be, such as `"list of number in [0, 1]"`.
    adjacency : str or mapping
        The neighbouring relation, such as `"add-remove"`, `"replace"` or `"linf:1"`.
    claimed : float
        The sensitivity that is claimed, at least 0 and finite.
    norm : {'l1', 'l2', 'linf', 'records'}, default 'l1'
        How the distance of two answers is measured. `'records'` is for transformations, whose
        answers are datasets: how many records differ, in any order.
    params : mapping of str to Any, optional
        Keyword arguments of every call.
    form : {'array', 'numpy', 'pandas', 'polars'}, optional
        What inputs are made into before the function gets them. Default: plain Python.
    inside_only : bool, default False
        Whether inputs outside the space are left out, such as values beyond the bounds, or NaN. By
        default they are tried, and what they show is in `beyond`.
    outside : bool, default False
        Whether inputs outside the space count, too.
    python : str, optional
        The Python that runs the function, in a process of its own; dpaudit need not be installed
        there.
    seed : int, default 0
        Of the random pairs, at least 0.
    time : float, default 60
        Seconds after which the search ends with what it has. To shrink that may take as long again.

    Returns
    -------
    SensitivityResult
        `exceeded`, the shrunk `witnesses`, and the `largest` distance seen.

    Raises
    ------
    UsageError
        For what cannot be searched as asked, and for functions with noise or without numbers.
    MechanismError
        When the function raises for every input.

    Notes
    -----
    A pair that is found refutes the claim. That none is found proves nothing.

    Examples
    --------
    >>> import dpaudit
    >>> found = dpaudit.sensitivity(
    ...     lambda rows: sum(rows), space="list of number in [-3, 1]",
    ...     adjacency="add-remove", claimed=1, inside_only=True)
    >>> found.exceeded, found.witness.distance
    (True, 3.0)
    """
    given = params or {}
    target = (
        ImportedTarget(path=function, params=given)
        if isinstance(function, str)
        else CallableTarget(function=function, params=given)
    )
    return searched(
        target if python is None else IsolatedTarget(target=target, python=python),
        space=space,
        adjacency=adjacency,
        claimed=claimed,
        norm=norm,
        form=form,
        inside_only=inside_only,
        outside=outside,
        seed=seed,
        time=time,
    )


def searched(
    target: Target,
    *,
    space: Any,
    adjacency: Any,
    claimed: Any,
    norm: Any,
    form: str | None = None,
    inside_only: bool = False,
    outside: bool = False,
    seed: int = 0,
    time: float = SECONDS,
    check: Callable[[], None] = lambda: None,
) -> SensitivityResult:
    """Return what a search finds for a target. check: called now and then, to raise when the search
    is to end; the rest is as in `sensitivity`."""
    relation = _relation(adjacency)
    _check(claimed, norm, form, seed, time)
    if inside_only and outside:
        raise UsageError(
            "give either inside, which leaves out inputs outside the space, or outside, which "
            "lets them count",
            code="options-conflict",
        )
    of = parse_space(space) if isinstance(space, str | Mapping) else space
    elsewhere = isinstance(target, IsolatedTarget)
    form_of = partial(formed, form=form, space=of, elsewhere=elsewhere)
    form_of(of.usual())  # else every dataset would be refused for the same reason
    read = plain_records if norm == RECORDS else plain_numbers
    with _function(target) as function, warnings.catch_warnings():
        answers = Answers(function, read, target.name, form_of)
        search = _Search(answers, of, relation, float(claimed), norm, time, check)
        # Of overflows and the like, which inputs at the edges are made for.
        warnings.simplefilter("ignore")
        with nullcontext() if elsewhere else Watch.without_timeout().calls(target.name, answers):
            search.run(seed, inside_only=inside_only)
            witnesses = search.witnesses(outside=outside)
            beyond, largest = search.beyond(outside=outside), search.largest()
    if not search.tried and not witnesses:
        search.refuse(target.name)
    named = target.target if isinstance(target, IsolatedTarget) else target
    assert isinstance(named, ImportedTarget | CallableTarget)
    shown_one = next(iter(witnesses or beyond), None)
    program = "" if shown_one is None else snippet(named, shown_one.d1, shown_one.d2, form)
    return SensitivityResult(
        function=target.name,
        source=source_of(target),
        space=of.words(),
        adjacency=relation.describe(),
        norm=norm,
        claimed=float(claimed),
        exceeded=bool(witnesses),
        witnesses=witnesses,
        beyond=beyond,
        largest=largest,
        tried=dict(search.tried),
        raised=search.raised,
        notes=tuple(search.notes),
        snippet=program,
    )


def _relation(adjacency: Any) -> Adjacency:
    found = parse_adjacency(adjacency)
    if found is None:
        raise UsageError(
            Name("adjacency"),
            " is missing; a sensitivity is for one relation, such as add-remove",
            code="option-missing",
        )
    return found


def _check(claimed: Any, norm: Any, form: Any, seed: Any, time: Any) -> None:
    if isinstance(claimed, bool) or not isinstance(claimed, Real | Fraction):
        raise UsageError(
            Name("claimed"), f"={shown(claimed)} must be a number, such as 1", code="option-invalid"
        )
    if not 0 <= float(claimed) < math.inf:
        raise UsageError(
            Name("claimed"), f"={claimed} must be at least 0, and finite", code="option-invalid"
        )
    for name, value, known in (("norm", norm, NORMS), ("form", form, (*FORMS, None))):
        if value not in known:
            words = [one for one in known if one]
            near = did_you_mean(str(value), words)
            why = f"={shown(value)} is not known; known: {', '.join(words)}.{near}"
            raise UsageError(Name(name), why, code="option-invalid")
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise UsageError(
            Name("seed"), f"={shown(seed)} must be an integer, at least 0", code="option-invalid"
        )
    if isinstance(time, bool) or not isinstance(time, Real) or not float(time) > 0:
        raise UsageError(
            Name("time"), f"={shown(time)} must be above 0 seconds", code="option-invalid"
        )


@contextmanager
def _function(target: Target) -> Iterator[Callable[[Any], Any]]:
    """Yield the function of the dataset alone. Raises TargetError."""
    if isinstance(target, IsolatedTarget):
        with closing(IsolatedFunction(target)) as elsewhere:
            _check_calling(elsewhere.calling, target)
            yield elsewhere
        return
    found, _ = functions(target)
    how = calling(found, target, is_made=is_made(target))
    _check_calling(how, target)
    yield bind(found, resolved(target.params), how.data)


def _check_calling(how: Calling, target: Target) -> None:
    if how.rng is not None:
        raise TargetError(
            f"{target.name} takes a generator of noise ({how.rng}); a sensitivity is of a function "
            "without noise: name the part that computes the answer before noise is added",
            code="function-not-repeatable",
        )
    if how.batch not in (None, NONE):
        raise TargetError(
            f"{target.name} takes a number of outputs ({how.batch}), as mechanisms do; a "
            "sensitivity is of a function that returns one answer: name the part before noise is "
            "added",
            code="function-not-repeatable",
        )


class _Search:
    """What was looked at so far."""

    def __init__(
        self,
        answers: Answers,
        space: Space,
        adjacency: Adjacency,
        claimed: float,
        norm: Norm,
        seconds: float,
        check: Callable[[], None],
    ) -> None:
        self._answers, self._space, self._adjacency = answers, space, adjacency
        self._claimed, self._seconds, self._check = claimed, seconds, check
        self._deadline = clock.monotonic() + seconds
        self._measure = metric(norm, adjacency.kind)
        self._known: set[tuple[str, str]] = set()
        self._found: dict[tuple[bool, Kind], tuple[Pair, float]] = {}
        self._largest: dict[bool, tuple[Pair, float]] = {}
        self._starts: list[tuple[float, int, Pair]] = []
        self._raised_first: tuple[Raised, Any] | None = None
        self.tried: Counter[str] = Counter()
        self.raised, self.notes = 0, list[str]()

    def run(self, seed: int, *, inside_only: bool) -> None:
        """Look at pairs: those proposed, those that climbing leads to, and random ones."""
        pool = Pool(may_invent=not isinstance(present(self._space), Own))
        try:
            for one in catalogue(self._space, self._adjacency, inside_only=inside_only):
                self._look(Pair(one.d1, one.d2), one.inside, "catalogue")
                if one.inside:
                    pool.add(one.d1)
                    pool.add(one.d2)
            for pair in of_every_size(self._space, self._adjacency):
                if self._space.contains(pair.d2):
                    self._look(pair, True, "sizes")
            self._climb(pool)
            if (True, "distance") not in self._found:
                self._look_at_random(seed)
        except Ended:
            self.notes.append(_OVER)

    def _climb(self, pool: Pool) -> None:
        """Climb from the pairs that are furthest apart, inside the space."""
        starts = sorted(self._starts, key=lambda one: (-one[0], one[1]))[:_STARTS]
        for _, _, start in starts:
            left = [_CLIMBS // _STARTS]

            def score(pair: Pair, left: list[int] = left) -> float:
                if not self._may_stand(pair):
                    return -math.inf
                left[0] -= 1
                if left[0] < 0:
                    raise _Tired
                return self._look(pair, True, "climbing")

            try:
                climbed(start, pool, score)
            except _Tired:
                continue

    def _may_stand(self, pair: Pair) -> bool:
        contains = self._space.contains
        return (
            contains(pair.d1)
            and contains(pair.d2)
            and are_neighbours(pair.d1, pair.d2, self._adjacency, self._space)
        )

    def _look_at_random(self, seed: int) -> None:
        def look(d1: Any, d2: Any) -> float:
            pair = Pair(d1, d2)
            if not self._may_stand(pair):
                return 0.0
            distance = self._look(pair, True, "random")
            # Others are noted, and are nothing to climb on.
            return distance if math.isfinite(distance) else 0.0

        note = look_at_random(
            self._space, self._adjacency, look, self.exceeds, seed=seed, examples=_RANDOM
        )
        if note:
            self.notes.append(note)

    def exceeds(self, distance: float) -> bool:
        """Return whether a distance is above the claim, by more than rounding."""
        return distance > self._claimed * (1 + _ROUNDING)

    def _look(self, pair: Pair, inside: bool, origin: Origin) -> float:
        """Return how far the answers for a pair are apart; -∞ where nothing can be said."""
        self._check()
        if clock.monotonic() > self._deadline:
            raise Ended
        try:
            kind, distance, _ = self._compared(pair)
        except DatasetError:  # cannot be made into the form
            return -math.inf
        named = (key(pair.d1), key(pair.d2))
        is_new = named not in self._known
        self._known.add(named)
        if kind is None:
            self.raised += is_new
            return -math.inf
        self.tried[origin] += is_new
        self._note(pair, inside, kind, distance)
        return distance

    def _note(self, pair: Pair, inside: bool, kind: Kind, distance: float) -> None:
        if kind == "distance" and distance > self._largest.get(inside, (pair, -1.0))[1]:
            self._largest[inside] = (pair, distance)
            if inside:
                self._starts.append((distance, len(self._starts), pair))
        if not self.exceeds(distance):
            return
        # Outside the space distances have no end: there the first will do, one of the simplest.
        _, most = self._found.get((inside, kind), (pair, -1.0))
        if most < 0 or (inside and distance > most):
            self._answers.check(pair.d1)
            self._answers.check(pair.d2)
            self._found[inside, kind] = (pair, distance)

    def _compared(self, pair: Pair) -> tuple[Kind | None, float, str]:
        """Return what sets the answers apart (None: both raise), how far, and why so far."""
        first, second = self._answers.of(pair.d1), self._answers.of(pair.d2)
        if isinstance(first, Raised) and isinstance(second, Raised):
            self._raised_first = self._raised_first or (first, pair.d1)
            return None, -math.inf, ""
        for one, which in ((first, "d1"), (second, "d2")):
            if isinstance(one, Raised):
                return "raises", math.inf, f"raises only for {which}: {one.words}"
        found: Distance = self._measure(first, second)
        return ("infinite" if found.words else "distance"), found.value, found.words

    def witnesses(self, *, outside: bool) -> tuple[Witness, ...]:
        """Return what was found of each kind, shrunk; from outside the space only where that counts
        and nothing was found inside."""
        is_inside = any(one for one, _ in self._found)
        return self._of_each_kind(inside=is_inside or not outside)

    def beyond(self, *, outside: bool) -> tuple[Witness, ...]:
        """Return what was found outside the space, where that does not count and nothing was found
        inside."""
        is_inside = any(one for one, _ in self._found)
        return () if is_inside or outside else self._of_each_kind(inside=False)

    def _of_each_kind(self, *, inside: bool) -> tuple[Witness, ...]:
        self._deadline = clock.monotonic() + self._seconds
        kinds = sorted((kind for one, kind in self._found if one is inside), key=_ORDER.__getitem__)
        return tuple(self._witness(self._small(*self._found[inside, one], one)) for one in kinds)

    def _small(self, pair: Pair, distance: float, kind: Kind) -> Pair:
        """Return a small pair that is further apart than claimed; inside the space as far as the
        one found, where that makes it hardly longer."""
        small = self._shrunk(pair, kind, self.exceeds)
        if not self._space.contains(small.d1) or not self._space.contains(small.d2):
            return small
        far = self._shrunk(pair, kind, lambda other: other >= distance * (1 - _ROUNDING))
        longer = len(key(far)) > _LONGER * len(key(small))
        return small if longer or records(far) > records(small) else far

    def _shrunk(self, pair: Pair, kind: Kind, is_far: Callable[[float], bool]) -> Pair:
        def violates(d1: Any, d2: Any) -> bool:
            if clock.monotonic() > self._deadline:
                return False
            try:
                found, distance, _ = self._compared(Pair(d1, d2))
            except DatasetError:
                return False
            return found == kind and is_far(distance)

        ended = shrunk(*pair, self._space, self._adjacency, violates, most_tries=_SHRINKS)
        return Pair(*ended)

    def largest(self) -> Witness | None:
        """Return a small pair with the largest finite distance, inside the space if there is
        one."""
        found = self._largest.get(True) or self._largest.get(False)
        if found is None:
            return None
        pair, distance = found
        return self._witness(
            self._shrunk(pair, "distance", lambda other: other >= distance * (1 - _ROUNDING))
        )

    def _witness(self, pair: Pair) -> Witness:
        kind, distance, words = self._compared(pair)
        outputs = self._output(pair.d1), self._output(pair.d2)
        inside = self._space.contains(pair.d1) and self._space.contains(pair.d2)
        return Witness(pair.d1, pair.d2, outputs, distance, kind or "raises", words, inside)

    def _output(self, dataset: Any) -> Any:
        answer = self._answers.of(dataset)
        if isinstance(answer, Raised):
            return answer.words
        return as_rows(answer) if isinstance(answer, tuple) else answer

    def refuse(self, name: str) -> None:
        """Raise for a search in which nothing could be compared."""
        if self._raised_first is None and self.notes:
            raise UsageError(
                Name("time"),
                f" was over before two answers of {name} were there; give more",
                code="mechanism-slow",
            )
        if self._raised_first is None:
            raise UsageError(
                f"no pair of neighbours of {self._space.words()!r} was found under "
                f"{self._adjacency.describe()}; give another space or relation",
                code="space-without-neighbours",
            )
        error, dataset = self._raised_first
        raise MechanismError(
            f"every input raised: {name} raised {error.words} for {shown(dataset, 40)}, and so on "
            f"for all {self.raised:,} pairs; give a --space whose inputs it takes",
            code="always-raises",
        )
