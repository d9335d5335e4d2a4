"""Search for inputs whose answers differ by more than the sensitivity that a function claims. This
search maximizes the distance between the answers of a function without noise, so it makes no
draws."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from numbers import Real
from typing import Any, Literal

import numpy as np

from dpaudit.adapters.calls import as_python, bind
from dpaudit.adapters.isolation import Isolated
from dpaudit.errors import DatasetError, MechanismError, Name, TargetError, UsageError
from dpaudit.inputs.adjacency import Adjacency, parse_adjacency
from dpaudit.inputs.values import FORMS, resolved
from dpaudit.outcomes import Raised
from dpaudit.searching.climbing import Pair, RecordPool, climbed, key, of_every_size
from dpaudit.searching.distances import (
    NORMS,
    RECORDS,
    AnswerCache,
    Distance,
    as_rows,
    metric,
    plain_numbers,
    plain_records,
)
from dpaudit.searching.drawing import look_at_random
from dpaudit.searching.proposals import catalogue, pair_strategy
from dpaudit.searching.relations import Relation, relation_on
from dpaudit.searching.search_settings import check_where, formed, invalid
from dpaudit.searching.shrinking import shrunk
from dpaudit.searching.snippets import snippet
from dpaudit.searching.space import Space
from dpaudit.searching.spaces import parse_space
from dpaudit.searching.timeouts import Limit, SearchEnded
from dpaudit.targets.construction import functions, source_of
from dpaudit.targets.parameters import NONE, Calling, calling
from dpaudit.targets.target import CallableTarget, ImportedTarget, IsolatedTarget
from dpaudit.watching import Watch
from dpaudit.wording import did_you_mean, shown

Target = ImportedTarget | CallableTarget | IsolatedTarget
Norm = Literal["l1", "l2", "linf", "records"]
Kind = Literal["distance", "infinite", "raises"]
Origin = Literal["catalogue", "sizes", "climbing", "random"]

SECONDS = 60.0
# Relative rounding error of a distance: only a distance that exceeds the claim by more than this
# fraction refutes it.
_ROUNDING = 1e-9
# Largest number of pairs that hill climbing compares, in all climbs together.
_MAX_CLIMBED = 6_000
# Number of pairs from which hill climbing starts.
_CLIMBING_STARTS = 4
# Number of random pairs that Hypothesis draws.
_RANDOM_PAIRS = 400
# Largest number of pairs that are tried in order to make a pair simpler.
_MAX_SHRINKING_TRIES = 1_000
# Shrinking gives two pairs: the simplest pair above the claim, and a pair with the largest
# distance. The second one is reported if its text is at most this many times as long as the text of
# the first one.
_MAX_TEXT_RATIO = 1.5
_OVER = "the time was over before the search was; more time goes further"
# How the answers of the function on two neighbouring inputs may differ, in the order in which a
# report lists these kinds. "distance": in their numbers. "infinite": in their shapes, or by NaN or
# infinity in one answer. "raises": one input raises an exception.
_KINDS: tuple[Kind, ...] = ("distance", "infinite", "raises")


@dataclass(frozen=True, slots=True)
class Witness:
    """Two neighbouring inputs, and the distance of their answers.

    Parameters
    ----------
    d1, d2 : Any
        The inputs, in plain Python: scalars, lists, mappings.
    outputs : tuple of Any
        The two answers, in plain Python; for an exception, its type and message as text.
    distance : float
        The distance by the norm; infinite if it cannot be computed, or if only one input raises.
    kind : {'distance', 'infinite', 'raises'}
        How the answers differ: in their numbers; in shape, or by NaN or infinity in one of them;
        or by an exception for one input.
    words : str
        Why the distance is infinite; empty for a finite one.
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
    """The result of a search for a larger distance than claimed.

    Parameters
    ----------
    function : str
        The name of the function.
    source : str or None
        The file and line of its code, if known.
    space, adjacency : str
        The set of possible inputs and the neighbouring relation, in the notation of users, such as
        `list of number in [0, 1]` and `add-remove`.
    norm : {'l1', 'l2', 'linf', 'records'}
        How distances are measured.
    claimed : float
        The claimed sensitivity, which no distance may exceed.
    exceeded : bool
        Whether a distance exceeds the claim. False does not prove the claim.
    witnesses : tuple of Witness
        Small pairs whose distance exceeds the claim, at most one of each `Witness.kind`. A pair
        outside the space is listed only with `outside=True`, if no pair inside exceeds the claim.
    beyond : tuple of Witness
        Small pairs outside the space whose distance exceeds the claim, if no pair inside exceeds it
        and `outside` is False.
    largest : Witness or None
        A small pair with the largest finite distance seen, inside the space if there is one.
    tried : mapping of str to int
        The number of pairs that were compared, by their origin: 'catalogue' (all proposed pairs
        that are not random), 'sizes', 'climbing' or 'random'.
    raised : int
        The number of pairs for which the function raises an exception on both inputs. `tried` does
        not count them.
    notes : tuple of str
        The parts of the search that were left out, and why.
    snippet : str
        A Python program that prints the answers for the first witness, or for the first pair of
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
        """The first witness (pair of inputs that exceeds the claim); None if there is none."""
        return self.witnesses[0] if self.witnesses else None


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
    """Search for neighbouring inputs whose answers differ by more than a claimed sensitivity.

    Parameters
    ----------
    function : callable or str
        A function of the dataset without noise, or its import path `package.module:attr`.
    space : str or mapping
        The set of possible inputs, such as `"list of number in [0, 1]"`.
    adjacency : str or mapping
        The neighbouring relation, such as `"add-remove"`, `"replace"` or `"linf:1"`.
    claimed : float
        The claimed sensitivity, at least 0 and finite.
    norm : {'l1', 'l2', 'linf', 'records'}, default 'l1'
        How the distance of two answers is measured. `'records'` is for transformations, whose
        answers are datasets: the number of records that differ, in any order.
    params : mapping of str to Any, optional
        Keyword arguments of every call.
    form : {'array', 'numpy', 'pandas', 'polars'}, optional
        The data type of the inputs that the function takes; 'array' and 'numpy' both mean a NumPy
        array. Default: plain Python.
    inside_only : bool, default False
        Whether to leave out inputs outside the space, such as values beyond the bounds, or NaN. By
        default they are tried, but cannot refute the claim: if only pairs with such inputs exceed
        it, `exceeded` is False, and `beyond` lists small pairs of this kind.
    outside : bool, default False
        Whether pairs with inputs outside the space can refute the claim. If so, `witnesses` lists
        them when no pair inside the space exceeds the claim. Not together with `inside_only`.
    python : str, optional
        The Python interpreter that runs the function in another process; dpaudit need not be
        installed there.
    seed : int, default 0
        The seed of the random pairs, at least 0.
    time : float, default 60
        Seconds after which the search ends with its results so far. Shrinking these may take as
        long again.

    Returns
    -------
    SensitivityResult
        `exceeded`, the small `witnesses`, and the `largest` distance seen.

    Raises
    ------
    UsageError
        For wrong arguments, and for functions with noise or whose answers have no numbers.
    MechanismError
        When the function raises for every input.

    Notes
    -----
    A pair above the claim refutes it. If the search finds none, that proves nothing.

    Examples
    --------
    >>> import dpaudit
    >>> result = dpaudit.sensitivity(
    ...     lambda rows: sum(rows), space="list of number in [-3, 1]",
    ...     adjacency="add-remove", claimed=1, inside_only=True)
    >>> result.exceeded, result.witness.distance
    (True, 3.0)
    """
    keywords = params or {}
    target = (
        ImportedTarget(path=function, params=keywords)
        if isinstance(function, str)
        else CallableTarget(function=function, params=keywords)
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
    """Search for inputs that exceed the claimed sensitivity of the function that `target`
    describes. The arguments are those of `sensitivity`. `check` is called before each pair, and may
    raise an exception to end the search."""
    if (parsed := parse_adjacency(adjacency)) is None:
        raise UsageError(
            Name("adjacency"),
            " is missing; a sensitivity is for one relation, such as add-remove",
            code="option-missing",
        )
    _check(claimed, norm, form, seed, time)
    check_where(inside_only, outside)
    parsed_space = parse_space(space) if isinstance(space, str | Mapping) else space
    relation, limit = relation_on(parsed_space, parsed), float(claimed)
    elsewhere = isinstance(target, IsolatedTarget)
    form_of = partial(formed, form=form, space=parsed_space, elsewhere=elsewhere)
    form_of(parsed_space.usual())  # raises DatasetError if datasets cannot take the form
    read = plain_records if norm == RECORDS else plain_numbers
    with _function(target) as function, warnings.catch_warnings():
        answers = AnswerCache(function, read, target.name, form_of)
        search = _SensitivitySearch(
            answers, relation, metric(norm, parsed.kind), limit, time, check
        )
        # Hide the warnings of the function, such as overflow warnings: extreme inputs provoke them.
        warnings.simplefilter("ignore")
        with nullcontext() if elsewhere else Watch.without_timeout().calls(target.name, answers):
            search.run(seed, inside_only=inside_only)
            is_inside = any(inside for inside, _ in search.exceeding)
            witnesses = search.shrunk(inside=is_inside or not outside)
            beyond = () if is_inside or outside else search.shrunk(inside=False)
            largest = search.largest()
    if not search.tried and not witnesses:
        search.refuse(target.name)
    named = target.target if isinstance(target, IsolatedTarget) else target
    assert isinstance(named, ImportedTarget | CallableTarget)
    first = next(iter(witnesses or beyond), None)
    return SensitivityResult(
        function=target.name,
        source=source_of(target),
        space=parsed_space.words(),
        adjacency=relation.describe(),
        norm=norm,
        claimed=limit,
        exceeded=bool(witnesses),
        witnesses=witnesses,
        beyond=beyond,
        largest=largest,
        tried=dict(search.tried),
        raised=search.raised,
        notes=tuple(search.notes),
        snippet="" if first is None else snippet(named, first.d1, first.d2, form),
    )


def _check(claimed: Any, norm: Any, form: Any, seed: Any, time: Any) -> None:
    if isinstance(claimed, bool) or not isinstance(claimed, Real | Fraction):
        raise invalid("claimed", claimed, "a number, such as 1")
    if not 0 <= float(claimed) < math.inf:
        raise invalid("claimed", claimed, "at least 0, and finite")
    for name, value, known in (("norm", norm, NORMS), ("form", form, (*FORMS, None))):
        if value not in known:
            words = list(filter(None, known))
            near = did_you_mean(str(value), words)
            why = f"={shown(value)} is not known; known: {', '.join(words)}.{near}"
            raise UsageError(Name(name), why, code="option-invalid")
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise invalid("seed", seed, "an integer, at least 0")
    if isinstance(time, bool) or not isinstance(time, Real) or not float(time) > 0:
        raise invalid("time", time, "above 0 seconds")


@contextmanager
def _function(target: Target) -> Iterator[Callable[[Any], Any]]:
    """Provide the function of a target, which takes only the dataset. Raises TargetError."""
    if isinstance(target, IsolatedTarget):
        with closing(Isolated(target)) as mechanism:
            _check_calling(mechanism.how, target)
            # Each call has a new seed, so that a second call shows whether there is noise.
            rng = np.random.default_rng(0)
            yield lambda dataset: next(iter(as_python(mechanism.sample_each([dataset], rng))))
        return
    function, _ = functions(target)
    how = calling(function, target)
    _check_calling(how, target)
    yield bind(function, resolved(target.params), how.data)


def _check_calling(how: Calling, target: Target) -> None:
    if how.rng is not None:
        raise TargetError(
            f"{target.name} takes a generator or a seed ({how.rng}); a sensitivity is of a "
            "function without noise: name the part that computes the answer before noise is added",
            code="function-not-repeatable",
        )
    if how.batch not in (None, NONE):
        raise TargetError(
            f"{target.name} takes a number of outputs ({how.batch}), as mechanisms do; a "
            "sensitivity is of a function that returns one answer: name the part before noise is "
            "added",
            code="function-not-repeatable",
        )


class _SensitivitySearch:
    """A search for pairs whose answers differ by more than the claimed sensitivity, with its
    results so far.

    exceeding: maps (whether both inputs lie in the space, `Witness.kind`) to (pair, distance), for
        one pair whose distance exceeds the claim.
    tried: number of pairs that were compared, by origin.
    raised: number of pairs for which the function raises an exception on both inputs.
    """

    def __init__(
        self,
        answers: AnswerCache,
        relation: Relation,
        measure: Callable[[Any, Any], Distance],
        claimed: float,
        seconds: float,
        check: Callable[[], None],
    ) -> None:
        self._answers, self._relation, self._measure = answers, relation, measure
        self._claimed, self._seconds, self._check = claimed, seconds, check
        self._limit = Limit(seconds)
        self._known: set[tuple[str, str]] = set()
        self._largest: dict[bool, tuple[Pair, float]] = {}
        self._starts: list[tuple[float, Pair]] = []
        self._raised_first: tuple[Raised, Any] | None = None
        self.exceeding: dict[tuple[bool, Kind], tuple[Pair, float]] = {}
        self.tried: Counter[str] = Counter()
        self.raised, self.notes = 0, list[str]()

    def run(self, seed: int, *, inside_only: bool) -> None:
        """Compare answers. Random pairs are tried only if no distance inside exceeds the claim."""
        relation, pool = self._relation, RecordPool(self._relation)
        try:
            for proposal in catalogue(relation, inside_only=inside_only):
                self._look(Pair(proposal.d1, proposal.d2), proposal.inside, "catalogue")
                pool.add(proposal)
            for pair in of_every_size(relation):
                if relation.space.contains(pair.d2):
                    self._look(pair, True, "sizes")
            self._climb(pool)
            if (True, "distance") not in self.exceeding:
                self._look_at_random(seed)
        except SearchEnded:
            self.notes.append(_OVER)

    def _climb(self, pool: RecordPool) -> None:
        """Compare pairs made by hill climbing from the pairs inside with the largest distances."""
        for _, start in sorted(self._starts, key=lambda entry: -entry[0])[:_CLIMBING_STARTS]:
            climb = Limit(trials=_MAX_CLIMBED // _CLIMBING_STARTS)

            def score(pair: Pair, climb: Limit = climb) -> float:
                if not self._relation.holds_inside(*pair):
                    return -math.inf
                climb.spend()
                return self._look(pair, True, "climbing")

            try:
                climbed(start, pool, score)
            except SearchEnded:
                if self._limit.is_over():
                    raise

    def _look_at_random(self, seed: int) -> None:
        def look(pair: tuple[Any, Any]) -> float:
            if not self._relation.holds_inside(*pair):
                return 0.0
            distance = self._look(Pair(*pair), True, "random")
            # The distance guides Hypothesis, which takes only finite numbers.
            return distance if math.isfinite(distance) else 0.0

        strategy = partial(pair_strategy, self._relation)
        note = look_at_random(strategy, look, self._exceeds, seed=seed, examples=_RANDOM_PAIRS)
        self.notes += [note] if note else []

    def _exceeds(self, distance: float) -> bool:
        return distance > self._claimed * (1 + _ROUNDING)

    def _look(self, pair: Pair, inside: bool, origin: Origin) -> float:
        """Record the distance of the answers for a pair, and return it; -∞ if there is none."""
        self._check()
        self._limit.spend()
        try:
            kind, distance, _ = self._compared(pair)
        except DatasetError:  # the dataset cannot take the form
            return -math.inf
        texts = (key(pair.d1), key(pair.d2))
        is_new = texts not in self._known
        self._known.add(texts)
        if kind is None:
            self.raised += is_new
            return -math.inf
        self.tried[origin] += is_new
        if kind == "distance" and distance > self._largest.get(inside, (pair, -1.0))[1]:
            self._largest[inside] = (pair, distance)
            if inside:
                self._starts.append((distance, pair))
        # Outside the space, distances have no limit, so the first pair is kept: it is one of the
        # simplest. Inside the space, the pair with the largest distance is kept.
        _, largest = self.exceeding.get((inside, kind), (pair, -1.0))
        if self._exceeds(distance) and (largest < 0 or (inside and distance > largest)):
            self._answers.check(pair.d1)
            self._answers.check(pair.d2)
            self.exceeding[inside, kind] = (pair, distance)
        return distance

    def _compared(self, pair: Pair) -> tuple[Kind | None, float, str]:
        """Return (kind of difference, distance, reason of infinity); no kind if both raise."""
        first, second = self._answers.of(pair.d1), self._answers.of(pair.d2)
        if isinstance(first, Raised) and isinstance(second, Raised):
            self._raised_first = self._raised_first or (first, pair.d1)
            return None, -math.inf, ""
        for answer, which in ((first, "d1"), (second, "d2")):
            if isinstance(answer, Raised):
                return "raises", math.inf, f"raises only for {which}: {answer.words}"
        distance = self._measure(first, second)
        return ("infinite" if distance.words else "distance"), distance.value, distance.words

    def shrunk(self, *, inside: bool) -> tuple[Witness, ...]:
        """Return simplified pairs above the claim, at most one for each kind of difference."""
        self._limit = Limit(self._seconds)
        kinds = [kind for kind in _KINDS if (inside, kind) in self.exceeding]
        return tuple(self._small(*self.exceeding[inside, kind], kind) for kind in kinds)

    def _small(self, pair: Pair, distance: float, kind: Kind) -> Witness:
        """Return a simplified pair whose distance exceeds the claim, with its outputs."""
        # The pair simplified without reducing its distance is better, unless it is much longer to
        # write or has more records.
        small = self._shrunk(pair, kind, self._exceeds)
        if self._relation.are_inside(*small):
            far = self._shrunk(pair, kind, lambda value: value >= distance * (1 - _ROUNDING))
            is_short = len(key(far)) <= _MAX_TEXT_RATIO * len(key(small))
            small = far if is_short and _records(far) <= _records(small) else small
        return self._witness(small)

    def _shrunk(self, pair: Pair, kind: Kind, is_far: Callable[[float], bool]) -> Pair:
        def violates(d1: Any, d2: Any) -> bool:
            if self._limit.is_over():
                return False
            try:
                of_kind, distance, _ = self._compared(Pair(d1, d2))
            except DatasetError:
                return False
            return of_kind == kind and is_far(distance)

        return Pair(*shrunk(*pair, self._relation, violates, most_tries=_MAX_SHRINKING_TRIES))

    def largest(self) -> Witness | None:
        """Return a simplified pair with the largest finite distance, if possible inside."""
        largest = self._largest.get(True) or self._largest.get(False)
        if largest is None:
            return None
        pair, distance = largest
        return self._witness(
            self._shrunk(pair, "distance", lambda value: value >= distance * (1 - _ROUNDING))
        )

    def _witness(self, pair: Pair) -> Witness:
        kind, distance, words = self._compared(pair)
        outputs = _written(self._answers.of(pair.d1)), _written(self._answers.of(pair.d2))
        inside = self._relation.are_inside(*pair)
        return Witness(pair.d1, pair.d2, outputs, distance, kind or "raises", words, inside)

    def refuse(self, name: str) -> None:
        """Raise the exception that says why no pair could be compared."""
        if self._raised_first is None and self.notes:
            raise UsageError(
                Name("time"),
                f" was over before two answers of {name} were there; give more",
                code="mechanism-slow",
            )
        if self._raised_first is None:
            raise UsageError(
                f"no pair of neighbours of {self._relation.space.words()!r} was found under "
                f"{self._relation.describe()}; give another space or relation",
                code="space-without-neighbours",
            )
        error, dataset = self._raised_first
        raise MechanismError(
            f"every input raised: {name} raised {error.words} for {shown(dataset, 40)}, and so on "
            f"for all {self.raised:,} pairs; give a --space whose inputs it takes",
            code="always-raises",
        )


def _records(pair: Pair) -> int:
    return sum(len(dataset) if isinstance(dataset, list) else 1 for dataset in pair)


def _written(answer: Any) -> Any:
    """Return an answer as the report shows it."""
    if isinstance(answer, Raised):
        return answer.words
    return as_rows(answer) if isinstance(answer, tuple) else answer
