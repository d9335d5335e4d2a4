"""Coupled runs: on d1, then on d2 with the same noised values, for several seeds, both ways; and
what has to be tried again before a difference may be called one."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .branches import Seldom, Selected, hastened, seldom, selected, selects
from .coins import Absorbed, Flips
from .comparing import Chosen, Comparison, Hidden, Parted, are_picked, compare
from .effects import by_effect, by_range, is_decided
from .exact_enumeration import Laws, laws_of
from .flatten import Missing, same
from .patching import generators_kept
from .places import Place, place_of
from .recording import Draw, Recorder, TooLong, Use
from .replaying import alignment_of
from .running import Run, Subject, rarely_collecting, run
from .threshold_leaks import Appearing, appearing, marks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .places import Spot


# Free runs that show whether a part of the output has any noise in it.
_FREE, _SEED = 24, 1_000
# So often spots are looked for at which a noised value meets data: one may show another.
_SEVERED = 3
# Pairs of runs that confirm that noised values which are plain numbers show no data.
_CONFIRMING = 24
# Pairs of runs that are made besides, where noise selects what is released.
_SELECTING = 24
# Ways that a coin opens so often come up in the runs that count values.
_OFTEN = 0.1


class Coupled(NamedTuple):
    """A pair of runs.

    forward: whether d1 came first.  seed: of the noise.  comparison: of the two.  absorbed: coins
    that make up for what differs in the output.  bare: the parts of the output that differ and have
    no noise in them, or exceptions ("raises").  noised: those that differ and do have some.
    appearing: parts that the second input alone has, where noise passes a threshold.
    """

    forward: bool
    seed: int
    comparison: Comparison
    absorbed: Absorbed | None
    bare: list[str]
    noised: list[str]
    appearing: list[Appearing]


class Runs(NamedTuple):
    """All that was run.

    coupled: pairs of runs.  draws: how many primitives were called for d1.  lines: of the user's
    own code, that were run for d1.  keeps_state: whether a second run on d1 differs from the first.
    constant_seeds: where a generator is given the same seed in every run: the place, what was
    called, and the seed.  not_understood: where, and what.  uncalled: primitives that the user has
    named, and that no run for d1 has called.  over: why not all was run; None if it
    was.  laws: of the output, where a few coins are all that is random; else None.  selected: parts
    of the output that noise selects, but does not hide.  seldom: likewise, on ways that a coin
    seldom opens.
    """

    coupled: list[Coupled]
    draws: int
    lines: int
    keeps_state: bool
    constant_seeds: list[tuple[Place, str, str]]
    not_understood: list[tuple[Place, str]]
    uncalled: list[str]
    over: str | None
    laws: Laws | None = None
    selected: tuple[Selected, ...] = ()
    seldom: tuple[Seldom, ...] = ()


@generators_kept()
@rarely_collecting()
def couple(
    subject: Subject, d1: Any, d2: Any, seeds: int, begun: tuple[Run, bool] | None = None
) -> Runs:
    """Run a mechanism on two inputs with the same noise. begun: the first run, if it was made."""
    coupled: list[Coupled] = []
    every: list[Run] = []
    adaptive = _Adaptive()
    over, keeps_state, strict = None, False, False
    free = _Free(subject, (d1, d2))
    laws: Laws | None = None
    try:
        for seed in range(seeds):
            for forward in (True, False):
                before, after = (d1, d2) if forward else (d2, d1)
                if coupled:
                    first = run(subject, before, seed, is_strict=strict)
                else:
                    first, strict = begun or beginning(subject, before, seed)
                every.append(first)
                if not coupled:
                    keeps_state = _keeps_state(subject, before, seed, first, strict)
                    if not keeps_state:
                        laws = laws_of(subject, (d1, d2), 0, strict)
                    free.is_known = laws is not None and laws.is_finite
                pair = _couple(subject, first, (before, after), seed, forward, free, strict)
                coupled.append(pair)
                adaptive.couple(subject, pair, (before, after), free, strict)
        adaptive.confirm(subject, (d1, d2), free, strict)
    except TooLong as error:
        over = str(error)
    coupled = coupled if adaptive.coupled is None else adaptive.coupled
    firsts = every[::2]  # those on d1
    is_told = over is not None or keeps_state or laws is not None or _not_understood(firsts)
    rarely: list[Seldom] = []
    if not is_told and adaptive.coupled is None:
        coupled += _selecting(subject, (d1, d2), coupled, every, strict)
        more, rarely = _seldom(subject, (d1, d2), coupled, every, free, strict)
        coupled += more
    first_run = firsts[0] if firsts else None
    return Runs(
        [one._replace(comparison=one.comparison._replace(moved=())) for one in coupled],
        draws=0 if first_run is None else len(first_run.recorder.draws),
        lines=0 if first_run is None else len(first_run.lines),
        keeps_state=keeps_state,
        constant_seeds=_constant(firsts),
        not_understood=_not_understood(firsts),
        uncalled=_uncalled(firsts),
        over=over,
        laws=laws,
        selected=() if is_told else tuple(selected(coupled, free.more)),
        seldom=tuple(rarely),
    )


def beginning(subject: Subject, dataset: Any, seed: int) -> tuple[Run, bool]:
    """Return the very first run, and whether the code is strict about the types of its numbers."""
    modules = len(sys.modules)
    first = run(subject, dataset, seed)
    if len(sys.modules) > modules:
        # What it has imported is watched in the next run.
        first = run(subject, dataset, seed)
    if first.error is not None:
        again = run(subject, dataset, seed, is_strict=True)
        if again.error is None:
            return again, True
    return first, False


def _selecting(
    subject: Subject,
    inputs: tuple[Any, Any],
    coupled: list[Coupled],
    every: list[Run],
    strict: bool,
) -> list[Coupled]:
    """Return one more pair of runs in which what noise selects differs, if the others show none:
    which record wins is another one with other noise."""
    if any(one.bare or one.noised or one.absorbed for one in coupled) or not selects(every):
        return []
    own = hastened(subject)
    free = _Free(own, inputs)
    with suppress(TooLong):
        for seed in range(3_000, 3_000 + _SELECTING):
            first = run(own, inputs[0], seed, is_strict=strict)
            pair = _couple(own, first, inputs, seed, True, free, strict)
            if pair.bare or pair.noised or pair.absorbed:
                return [pair]
    return []


def _seldom(
    subject: Subject,
    inputs: tuple[Any, Any],
    coupled: list[Coupled],
    every: list[Run],
    free: _Free,
    strict: bool,
) -> tuple[list[Coupled], list[Seldom]]:
    """Return what ways show that coins seldom open, if nothing else differs; and pairs of runs on
    those that they open often, of which other runs show how often."""
    if any(one.bare or one.noised or one.absorbed for one in coupled) or not every:
        return [], []
    seed = 0

    def couple_it(first: Run, forward: bool) -> Coupled:
        turned = inputs if forward else inputs[::-1]
        return _couple(subject, first, turned, seed, forward, free, strict)

    found = list(seldom(subject, inputs, every[:2], seed, couple_it, free.both, strict))
    often = [pair for one, pair in found if one.chance >= _OFTEN]
    return often, [one for one, _ in found if one.chance < _OFTEN]


def _uncalled(firsts: list[Run]) -> list[str]:
    """Return the primitives that the user has named and no run has called."""
    every = firsts[0].recorder.calls if firsts else {}
    return [name for name in every if not any(one.recorder.calls.get(name) for one in firsts)]


def _is_repeated(use: Use, again: Recorder) -> bool:
    """Return whether the noise of a use hides the same in another run on the same input."""
    other = again.by_moment.get(use.moment)
    if not isinstance(other, Use) or np.shape(other.operand) != np.shape(use.operand):
        return False
    one, two = (np.asarray(each.operand, dtype=float) for each in (use, other))
    return bool(np.allclose(one, two, rtol=1e-9, atol=1e-9, equal_nan=True))


def _keeps_state(subject: Subject, dataset: Any, seed: int, first: Run, strict: bool) -> bool:
    """Return whether a third run, on the same input with the same noise, goes another way."""
    again = run(subject, dataset, seed, reference=first, is_strict=strict)
    if first.error is not None and again.error is not None:
        return False
    return (
        len(again.recorder.draws) != len(first.recorder.draws)
        or (again.error is None) != (first.error is None)
        or not all(_is_repeated(one, again.recorder) for one in first.recorder.uses)
        or again.parts.keys() != first.parts.keys()
        or not all(same(one, again.parts[name]) for name, one in first.parts.items())
    )


def _couple(
    subject: Subject,
    first: Run,
    inputs: tuple[Any, Any],
    seed: int,
    forward: bool,
    free: _Free,
    strict: bool,
) -> Coupled:
    before, after = inputs
    alignment: dict[Any, Any] = {}
    second = run(subject, after, seed, reference=first, is_strict=strict)
    found = alignment_of(first, second)
    if found:
        alignment = found
        second = run(subject, after, seed, reference=first, alignment=alignment, is_strict=strict)
    comparison = compare(first, second, alignment)
    comparison = by_range(subject, comparison, first, inputs, seed, strict)
    absorbed: Absorbed | None = None
    bare: list[str] = []
    noised: list[str] = []
    raises = (first.error is None) != (second.error is None)
    if (raises or comparison.differing) and not free.is_known:
        absorbed = free.flips.absorbed(subject, first, second, inputs, seed, alignment, strict)
        if absorbed is None:
            names = ["raises"] if raises else list(comparison.differing)
            bare = [name for name in names if free.is_bare(name)]
            noised = [name for name in names if name not in bare]
            if noised and not bare and not raises and not comparison.uneven:
                found_by = by_effect(subject, first, second, (before, after), seed, strict)
                if found_by:
                    comparison = _with_effects(comparison, found_by, first)
                    noised = []
    more: list[Appearing] = []
    if comparison.uneven and not bare:
        never = partial(free.is_never, 0 if forward else 1)
        more = appearing(subject, (first, second), inputs, seed, alignment, strict, never)
    return Coupled(forward, seed, comparison, absorbed, bare, noised, more)


def _with_effects(comparison: Comparison, found: list[Hidden], first: Run) -> Comparison:
    """Return a comparison with noise that is known by its effect: where it is compared as well, as
    the sign of an inverse distribution function is, that picks no records."""
    own = {piece for one in found for piece in one.pieces}
    choices = [one for one in first.recorder.choices if not own.issuperset(np.ravel(one.ids))]
    return comparison._replace(
        hidden=[*comparison.hidden, *found], picks=bool(choices) or are_picked(first.recorder)
    )


class _Adaptive:
    """The same pairs of runs, but for what was noised once: where it meets data again, such as in a
    sum of squares around a noised mean, it is a plain number.

    Else its noise would seem to hide these data, too. Whether it does is seen by the output: if
    that is equal though the noised value is plain, other noise hides them.
    """

    def __init__(self) -> None:
        self._pairs: list[Coupled] = []
        self._severed: frozenset[Spot] = frozenset()
        self._is_refuted = False

    @property
    def coupled(self) -> list[Coupled] | None:
        """The pairs; None where nothing is adaptive, or the outputs of one pair differ."""
        return self._pairs if self._severed and not self._is_refuted else None

    def couple(
        self, subject: Subject, pair: Coupled, inputs: tuple[Any, Any], free: _Free, strict: bool
    ) -> None:
        """Run a pair again, if it needs to be."""
        if self._is_refuted:
            return
        comparison = pair.comparison
        if comparison.twice or self._severed or _has_two_scales(comparison):
            self._severed = self._severed.union(comparison.moved)
        for _ in range(_SEVERED if self._severed else 0):
            pair = self._again(subject, inputs, pair.seed, pair.forward, free, strict)
            if self._severed.issuperset(pair.comparison.moved):
                break
            self._severed = self._severed.union(pair.comparison.moved)
        self._pairs.append(pair)

    def confirm(self, subject: Subject, inputs: tuple[Any, Any], free: _Free, strict: bool) -> None:
        """See with more noise whether the outputs are equal: those of a comparison may be by
        chance."""
        for seed in range(_CONFIRMING if self._severed else 0):
            if self._is_refuted:
                return
            self._again(subject, inputs, 2_000 + seed, True, free, strict)

    def _again(
        self,
        subject: Subject,
        inputs: tuple[Any, Any],
        seed: int,
        forward: bool,
        free: _Free,
        strict: bool,
    ) -> Coupled:
        own = subject._replace(severed=self._severed)
        first = run(own, inputs[0], seed, is_strict=strict)
        pair = _couple(own, first, inputs, seed, forward, free, strict)
        by_effect = any(one.kind == "effect" for one in pair.comparison.hidden)
        self._is_refuted = bool(pair.bare or pair.noised or by_effect)
        return pair


def _has_two_scales(comparison: Comparison) -> bool:
    return any(one.scales[0] != one.scales[1] for one in comparison.hidden)


class _Free:
    """Runs with noise of their own, which show what has noise in it."""

    def __init__(self, subject: Subject, datasets: tuple[Any, Any]) -> None:
        self._subject, self._datasets = subject, datasets
        self._runs: tuple[list[Run], list[Run]] | None = None
        self.flips = Flips()
        # Whether the laws of the output say all, so that no difference has to be explained.
        self.is_known = False

    def is_bare(self, name: str) -> bool:
        """Return whether a part of the output, or whether it raises, tells the inputs apart
        whatever the noise: one input always has the same there, and the other never that."""
        both_runs = self.both()

        def valued(one: Run) -> Any:
            return one.error is not None if name == "raises" else one.parts.get(name, Missing)

        both = [list(map(valued, runs)) for runs in both_runs]
        is_constant = any(all(_same(one, runs[0]) for one in runs) for runs in both)
        if not is_constant or any(_same(one, other) for one in both[0] for other in both[1]):
            return False
        return not is_decided(self._subject, self._datasets, both_runs, _SEED, valued)

    def is_never(self, which: int, name: str) -> bool:
        """Return whether an input never has a part of the output, or a text in it."""
        return not any(name in marks(each) for each in self.both()[which])

    def more(self) -> Iterator[tuple[list[Run], list[Run]]]:
        """Yield the runs of either input, and more of them with each turn, while there is time."""
        own = hastened(self._subject)
        with suppress(TooLong):
            both = self.both()
            while True:
                yield both
                seed = _SEED + len(both[0])
                more = [run(own, one, seed, has_lines=False) for one in self._datasets]
                for runs, one in zip(both, more):
                    runs.append(one)

    def both(self) -> tuple[list[Run], list[Run]]:
        """Return the runs of either input that were made."""
        if self._runs is None:
            self._runs = tuple(  # type: ignore[assignment]  # two
                [
                    run(self._subject, dataset, _SEED + seed, has_lines=False)
                    for seed in range(_FREE)
                ]
                for dataset in self._datasets
            )
        assert self._runs is not None
        return self._runs


def _same(one: Any, other: Any) -> bool:
    if one is Missing or other is Missing:
        return one is other
    return same(one, other)


def _constant(firsts: list[Run]) -> list[tuple[Place, str, str]]:
    """Return the seeds that are the same in all runs, with different noise."""
    if len(firsts) < 2:
        return []
    every = [
        {(spot, name, repr(seed)[:60]) for spot, name, seed in one.recorder.seeds} for one in firsts
    ]
    common = set.intersection(*every)
    return [(place_of(spot), name, seed) for spot, name, seed in common]


def _not_understood(firsts: list[Run]) -> list[tuple[Place, str]]:
    found: dict[tuple[Any, str], Place] = {}
    for one in firsts:
        for spot, what in one.recorder.not_understood:
            found.setdefault((spot, what), place_of(spot))
        for draw in one.recorder.draws:
            if isinstance(draw, Draw) and draw.law == "unknown":
                found.setdefault((draw.moment[1], draw.primitive), place_of(draw.moment[1]))
    return [(place, what) for (_, what), place in found.items()]


_KINDS: dict[str, Any] = {
    one.__name__: one
    for one in (
        *(Runs, Coupled, Absorbed, Comparison, Hidden, Chosen, Parted, Place, Laws, Appearing),
        *(Selected, Seldom),
    )
}
# Entries of an array, and characters of anything else, among parameters that are shown alone.
_MOST, _LONGEST = 64, 200


def written(runs: Runs) -> bytes:
    """Return runs as JSON: a record, or a tuple, is a mapping with one key."""
    return json.dumps(_plain(runs)).encode()


def read(data: bytes) -> Runs:
    """Return the runs that were written. Raises ValueError for anything else."""
    try:
        found = _made(json.loads(data))
    except (TypeError, KeyError, RecursionError) as error:
        raise ValueError(f"malformed runs ({error})") from None
    if not isinstance(found, Runs):
        raise ValueError(f"{type(found).__name__} in place of runs")
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, tuple):
        name = type(value).__name__ if type(value) in _KINDS.values() else "tuple"
        return {name: list(map(_plain, value))}
    if isinstance(value, list):
        return list(map(_plain, value))
    if isinstance(value, dict):
        return {"dict": [[_plain(key), _plain(one)] for key, one in value.items()]}
    if isinstance(value, np.ndarray):
        return list(map(_plain, np.ravel(value)[:_MOST].tolist()))
    return repr(value)[:_LONGEST]


def _made(node: Any) -> Any:
    if isinstance(node, list):
        return list(map(_made, node))
    if not isinstance(node, dict):
        return node
    ((name, parts),) = node.items()
    if name == "dict":
        return {_made(key): _made(one) for key, one in parts}
    made = map(_made, parts)
    return tuple(made) if name == "tuple" else _KINDS[name](*made)
