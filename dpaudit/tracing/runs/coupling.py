"""Couples runs: on d1, then on d2 with the same noised values, and in the other order, for several
seeds. Differences are explained, or confirmed by further runs. `written` and `read` send the runs
from one process to another."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .branches import (
    FreeRuns,
    OnRareBranch,
    Selected,
    hastened,
    on_rare_branches,
    selected,
    selects,
)
from .coins import Absorbed, Flips
from .comparing import (
    Chosen,
    Comparison,
    ControlFlow,
    Coupled,
    Hidden,
    alignment_of,
    are_picked,
    compare,
)
from .effects import by_effect, by_range
from .exact_enumeration import Laws, laws_of
from .patching import generators_kept
from .places import Place, place_of
from .recording import Recorder
from .replaying import Draw, TooLong, Use
from .running import Coupler, Run, Subject, rarely_collecting, run, same_output
from .threshold_leaks import ThresholdLeak, threshold_leaks

if TYPE_CHECKING:
    from .places import Spot


# Times that spots are looked for at which a noised value meets data: one may hide another.
_SEVERED = 3
# Pairs of runs that confirm that severed noised values hide no data, and their first seed.
_CONFIRMING, _CONFIRMING_SEED = 24, 2_000
# Further pairs of runs, where noise selects what is released, and their first seed.
_SELECTING, _SELECTING_SEED = 24, 3_000
# Branches of this probability are seen in the runs that count values.
_OFTEN = 0.1


class Runs(NamedTuple):
    """All coupled runs of a mechanism.

    coupled: pairs of runs.  draws, lines: primitives called, and lines run, in the first run of d1.
    keeps_state: whether a second run of d1 with the same noise differs from the first.
    constant_seeds: generators that get the same seed in every run: the line, the function and the
    seed.  not_understood: lines whose noise has no known law, and the function.  uncalled: names of
    the user's primitives that no run called.  over: why some runs were not made; None if all were.
    laws: the exact laws of the output, if all noise is a few coins.  selected: values that only one
    input has, among parts of the output that noise selects but does not hide.  rare: such values
    on rare branches.
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
    rare: tuple[OnRareBranch, ...] = ()


@generators_kept()
@rarely_collecting()
def couple(
    subject: Subject, d1: Any, d2: Any, seeds: int, begun: tuple[Run, bool] | None = None
) -> Runs:
    """Run a mechanism on two inputs with the same noise, in both orders for each of some seeds.

    begun: what `beginning` returned for d1, if it was called before.
    """
    coupled: list[Coupled] = []
    every: list[Run] = []
    pairs = _Pairs(Coupler(subject, (d1, d2)))
    over, keeps_state, laws = None, False, None
    try:
        first, strict = begun or beginning(subject, d1, 0)
        every.append(first)
        pairs = _Pairs(Coupler(subject, (d1, d2), strict=strict))
        keeps_state = _keeps_state(pairs.coupler, first)
        if not keeps_state:
            laws = laws_of(pairs.coupler)
        pairs.are_explained = laws is not None and laws.is_finite
        for seed in range(seeds):
            for forward in (True, False):
                coupler = pairs.turned(forward)._replace(seed=seed)
                if coupled:
                    first = coupler.run(0, has_lines=True)
                    every.append(first)
                coupled.append(pairs.couple(coupler, first, forward))
                pairs.add_adaptive(coupler, coupled[-1])
        pairs.confirm_adaptive()
    except TooLong as error:
        over = str(error)
    firsts = every[::2]  # those on d1
    is_explained = over is not None or keeps_state or laws is not None or _not_understood(firsts)
    rare: list[OnRareBranch] = []
    if pairs.adaptive is not None:
        coupled = pairs.adaptive
    elif not is_explained:
        coupled += _selecting(pairs.coupler, coupled, every)
        frequent, rare = _on_branches(pairs, coupled, every)
        coupled += frequent
    return Runs(
        [one._replace(comparison=one.comparison._replace(moved=())) for one in coupled],
        draws=len(firsts[0].recorder.draws) if firsts else 0,
        lines=len(firsts[0].lines) if firsts else 0,
        keeps_state=keeps_state,
        constant_seeds=_constant(firsts),
        not_understood=_not_understood(firsts),
        uncalled=_uncalled(firsts),
        over=over,
        laws=laws,
        selected=() if is_explained else tuple(selected(coupled, pairs.free)),
        rare=tuple(rare),
    )


def beginning(subject: Subject, dataset: Any, seed: int) -> tuple[Run, bool]:
    """Return the first run, and whether the code is strict about the types of its numbers."""
    modules = len(sys.modules)
    first = run(subject, dataset, seed)
    if len(sys.modules) > modules:
        # The modules that it has imported are patched only in the next run.
        first = run(subject, dataset, seed)
    if first.error is not None:
        again = run(subject, dataset, seed, is_strict=True)
        if again.error is None:
            return again, True
    return first, False


class _Pairs:
    """Couples pairs of runs of one mechanism.

    Where a noised value meets data again, such as in a sum of squares around a noised mean, its
    noise seems to hide these data, too. So such pairs are run once more with the noised value
    severed, that is as a plain number (`adaptive`). If the outputs are equal nevertheless, other
    noise hides the data, and the adaptive pairs count; if not, they are dropped.
    """

    def __init__(self, coupler: Coupler) -> None:
        self.coupler = coupler
        self.free = FreeRuns(coupler)
        # Whether the exact laws are known, so that no difference has to be explained.
        self.are_explained = False
        self._flips = Flips()
        self._adaptive: list[Coupled] = []
        self._severed: frozenset[Spot] = frozenset()
        self._is_refuted = False

    def turned(self, forward: bool) -> Coupler:
        """Return the coupler with d1 first, or with d2 first."""
        return self.coupler if forward else self.coupler._replace(inputs=self.coupler.inputs[::-1])

    def couple(self, coupler: Coupler, first: Run, forward: bool) -> Coupled:
        """Make the second run of a pair, and explain how it differs from the first."""
        second = coupler.run(1, reference=first, has_lines=True)
        alignment = alignment_of(first, second)
        if alignment:
            coupler = coupler._replace(alignment=alignment)
            second = coupler.run(1, reference=first, has_lines=True)
        comparison = by_range(coupler, compare(first, second, alignment), first)
        absorbed: Absorbed | None = None
        bare: list[str] = []
        noised: list[str] = []
        raises = (first.error is None) != (second.error is None)
        if (raises or comparison.differing) and not self.are_explained:
            absorbed = self._flips.absorbed(coupler, first, second)
            if absorbed is None:
                names = ["raises"] if raises else list(comparison.differing)
                bare = [name for name in names if self.free.is_bare(name)]
                noised = [name for name in names if name not in bare]
                if noised and not bare and not raises and not comparison.uneven:
                    hidden = by_effect(coupler, first, second)
                    if hidden:
                        comparison = _with_effects(comparison, hidden, first)
                        noised = []
        leaks: list[ThresholdLeak] = []
        if comparison.uneven and not bare:
            never = partial(self.free.is_never, 0 if forward else 1)
            leaks = threshold_leaks(coupler, (first, second), never)
        return Coupled(forward, coupler.seed, comparison, absorbed, bare, noised, leaks)

    @property
    def adaptive(self) -> list[Coupled] | None:
        """The adaptive pairs; None if nothing was severed, or if the outputs of a pair differ."""
        return self._adaptive if self._severed and not self._is_refuted else None

    def add_adaptive(self, coupler: Coupler, pair: Coupled) -> None:
        """Add a pair to the adaptive ones; run it again first if a value is to be severed."""
        if self._is_refuted:
            return
        comparison = pair.comparison
        two_scales = any(one.scales[0] != one.scales[1] for one in comparison.hidden)
        if comparison.twice or self._severed or two_scales:
            self._severed = self._severed.union(comparison.moved)
        for _ in range(_SEVERED if self._severed else 0):
            pair = self._again(coupler, pair.forward)
            if self._severed.issuperset(pair.comparison.moved):
                break
            self._severed = self._severed.union(pair.comparison.moved)
        self._adaptive.append(pair)

    def confirm_adaptive(self) -> None:
        """Compare outputs with more noise: in a few pairs they may be equal by chance."""
        for seed in range(_CONFIRMING if self._severed else 0):
            if self._is_refuted:
                return
            self._again(self.coupler._replace(seed=_CONFIRMING_SEED + seed), forward=True)

    def _again(self, coupler: Coupler, forward: bool) -> Coupled:
        own = coupler._replace(subject=coupler.subject._replace(severed=self._severed))
        pair = self.couple(own, own.run(0, has_lines=True), forward)
        is_by_effect = any(one.kind == "effect" for one in pair.comparison.hidden)
        self._is_refuted = bool(pair.bare or pair.noised or is_by_effect)
        return pair


def _with_effects(comparison: Comparison, hidden: list[Hidden], first: Run) -> Comparison:
    """Return a comparison with noise that is known by its effect. A comparison of such noise, as of
    the sign in an inverse distribution function, picks no records."""
    own = {piece for one in hidden for piece in one.pieces}
    choices = [one for one in first.recorder.choices if not own.issuperset(np.ravel(one.ids))]
    return comparison._replace(
        hidden=[*comparison.hidden, *hidden], picks=bool(choices) or are_picked(first.recorder)
    )


def _have_differences(coupled: list[Coupled]) -> bool:
    return any(one.bare or one.noised or one.absorbed for one in coupled)


def _selecting(coupler: Coupler, coupled: list[Coupled], every: list[Run]) -> list[Coupled]:
    """Return one more pair, in which a value that noise selects differs, if no other pair has one:
    with other noise, another record wins."""
    if _have_differences(coupled) or not selects(every):
        return []
    pairs = _Pairs(hastened(coupler))
    with suppress(TooLong):
        for seed in range(_SELECTING_SEED, _SELECTING_SEED + _SELECTING):
            own = pairs.coupler._replace(seed=seed)
            pair = pairs.couple(own, own.run(0, has_lines=True), forward=True)
            if _have_differences([pair]):
                return [pair]
    return []


def _on_branches(
    pairs: _Pairs, coupled: list[Coupled], every: list[Run]
) -> tuple[list[Coupled], list[OnRareBranch]]:
    """Return pairs on frequent branches, and values that one input alone has on rare ones, if
    nothing else differs."""
    if _have_differences(coupled) or not every:
        return [], []

    def couple_it(first: Run, forward: bool) -> Coupled:
        return pairs.couple(pairs.turned(forward), first, forward)

    found = list(on_rare_branches(pairs.coupler, every[:2], couple_it, pairs.free))
    frequent = [pair for one, pair in found if one.chance >= _OFTEN]
    return frequent, [one for one, _ in found if one.chance < _OFTEN]


def _uncalled(firsts: list[Run]) -> list[str]:
    calls = firsts[0].recorder.calls if firsts else {}
    return [name for name in calls if not any(one.recorder.calls.get(name) for one in firsts)]


def _is_repeated(use: Use, again: Recorder) -> bool:
    """Return whether the noise of a use hides the same in another run of the same input."""
    other = again.by_moment.get(use.moment)
    if not isinstance(other, Use) or np.shape(other.operand) != np.shape(use.operand):
        return False
    one, two = (np.asarray(each.operand, dtype=float) for each in (use, other))
    return bool(np.allclose(one, two, rtol=1e-9, atol=1e-9, equal_nan=True))


def _keeps_state(coupler: Coupler, first: Run) -> bool:
    """Return whether a second run of the same input with the same noise differs from the first."""
    again = coupler.run(0, reference=first, has_lines=True)
    if first.error is not None and again.error is not None:
        return False
    return (
        len(again.recorder.draws) != len(first.recorder.draws)
        or not all(_is_repeated(one, again.recorder) for one in first.recorder.uses)
        or not same_output(first, again)
    )


def _constant(firsts: list[Run]) -> list[tuple[Place, str, str]]:
    """Return the seeds that all runs of d1 share, though their noise differs."""
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
        *(Runs, Coupled, Absorbed, Comparison, Hidden, Chosen, ControlFlow, Place, Laws),
        *(ThresholdLeak, Selected, OnRareBranch),
    )
}
# Entries of an array, and characters of anything else, among parameters that are shown alone.
_MOST, _LONGEST = 64, 200


def written(runs: Runs) -> bytes:
    """Return runs as JSON: each named tuple, and each tuple, is a mapping with one key."""
    return json.dumps(_plain(runs)).encode()


def read(data: bytes) -> Runs:
    """Return the runs in JSON. Raises ValueError if it is malformed."""
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
