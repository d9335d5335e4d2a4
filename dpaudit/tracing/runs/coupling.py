"""Run a mechanism on d1 and on d2 with the same noisy values, and explain how the outputs differ.

This is done for several seeds, with d1 first and with d2 first. If neither a shift nor a choice
explains the difference of a pair, further runs with other noise examine it. `written` and `read`
send the results from one process to another.
"""

from __future__ import annotations

import json
import math
import sys
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .coins import Absorbed, Flips, Laws, laws_of
from .comparing import alignment_of, are_picked, compare, may_be_constant, rescaled
from .differences import Chosen, ControlFlow, Coupled, Hidden, RunDifferences, ThresholdLeak
from .effects import Effects, by_effect, by_range, lost_fills, noise_alone
from .noise_log import Recorder
from .one_sided import (
    FreeRuns,
    OnRareBranch,
    Selected,
    on_rare_branches,
    selected,
    threshold_leaks,
    values_together,
)
from .patching import generators_kept
from .places import Place, place_of
from .replaying import OPAQUE, Draw, TooLong, Use
from .running import Coupler, Run, Subject, rarely_collecting, run, same_output

if TYPE_CHECKING:
    from .places import Spot
    from .replaying import Moment


# Instructions that combine a noisy value with the data a second time are found in a pair of runs.
# The pair is then repeated, with plain numbers in place of the noisy values at these instructions.
# A repetition may find further such instructions, so it is followed by another one. Largest number
# of repetitions.
_MAX_REPETITIONS = 3
# If the outputs of a pair of runs are equal after some noisy values were replaced by plain numbers,
# this number of further pairs with other noise must confirm it.
_CONFIRMING_PAIRS = 24
# Seed of the first of the 24 (`_CONFIRMING_PAIRS`) pairs of runs that must confirm that the outputs
# of d1 and d2 are equal. Each further pair has the next seed: 2001, 2002 and so on.
_CONFIRMING_SEED = 2_000
# Some values occur only after one outcome of a random choice. If the outcome has at least this
# probability, the runs in which the value occurs are counted, as for all other values
# (`Runs.selected`). If it is rarer, the value is only listed, in `Runs.rare`.
_MIN_COUNTED_PROBABILITY = 0.1


class Runs(NamedTuple):
    """All pairs of runs of a mechanism on d1 and d2.

    draws: The number of draws in the first run on d1.
    keeps_state: Whether a second run on d1 with the same noise differs from the first run.
    constant_seeds: (line, function, seed) for each generator that gets the same seed in every run.
    not_understood: (line, function) for each draw with an unknown law.
    uncalled: The names of the user's primitives that no run on d1 called.
    over: The reason why some runs were not made; None if all runs were made.
    laws: The probability of each output on d1 and on d2, if a few choices are the only noise.
    selected: The values that only one input gives, for parts that noise selects but does not hide,
        such as the exact count of the winner of a noisy maximum.
    rare: The values that only one input gives, and only after an unlikely outcome of a choice.
    inside_libraries: The names of the functions of libraries that draw noise in compiled code.
    """

    coupled: list[Coupled]
    draws: int
    keeps_state: bool
    constant_seeds: list[tuple[Place, str, str]]
    not_understood: list[tuple[Place, str]]
    uncalled: list[str]
    over: str | None
    laws: Laws | None = None
    selected: tuple[Selected, ...] = ()
    rare: tuple[OnRareBranch, ...] = ()
    inside_libraries: tuple[str, ...] = ()

    @property
    def filled(self) -> list[Place]:
        """The lines of noise that fills memory in place, such as the first weights of a model. This
        noise reaches the output by a way that the trace does not follow."""
        unused = (draw for pair in self.coupled[:1] for draw in pair.comparison.unused)
        return [location for location, _, is_fill in unused if is_fill]


@generators_kept()
@rarely_collecting()
def couple(subject: Subject, d1: Any, d2: Any, seeds: int, begun: Run | None = None) -> Runs:
    """Run a mechanism on two inputs with the same noise, and return all pairs of runs. Each seed
    gives two pairs: one begins with d1, the other with d2. `begun` is the first run on d1, with
    seed 0, if it was made already."""
    coupled: list[Coupled] = []
    every: list[Run] = []
    pairs = _Pairs(Coupler(subject, (d1, d2)))
    over, keeps_state, laws = None, False, None
    try:
        first = begun or beginning(subject, d1)
        every.append(first)
        keeps_state = _keeps_state(pairs.coupler, first)
        if not keeps_state:
            laws = laws_of(pairs.coupler)
            pairs.lost = lost_fills(pairs.coupler, first)
        pairs.are_explained = laws is not None and math.isfinite(laws.epsilon)
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
    firsts = every[::2]  # the runs on d1
    is_explained = over is not None or keeps_state or laws is not None or _not_understood(firsts)
    rare: list[OnRareBranch] = []
    if pairs.adaptive is not None:
        coupled = pairs.adaptive
    elif not is_explained:
        frequent, rare = _on_branches(pairs, coupled, every)
        coupled += frequent
    return Runs(
        [pair._replace(comparison=pair.comparison._replace(moved=())) for pair in coupled],
        draws=len(firsts[0].recorder.draws) if firsts else 0,
        keeps_state=keeps_state,
        constant_seeds=_constant(firsts, coupled),
        not_understood=_not_understood(firsts),
        uncalled=_uncalled(firsts),
        over=over,
        laws=laws,
        selected=() if is_explained else tuple(selected(coupled, pairs.free, subject.claim)),
        rare=tuple(rare),
        inside_libraries=_inside_libraries(firsts),
    )


def beginning(subject: Subject, dataset: Any) -> Run:
    """Return the first run on a dataset, with seed 0. If this run imports modules, return a second
    run, since only this one records the random functions of these modules."""
    modules = len(sys.modules)
    first = run(subject, dataset, 0)
    return first if len(sys.modules) == modules else run(subject, dataset, 0)


class _Pairs:
    """Makes pairs of runs of a mechanism on two inputs with the same noise.

    A program may combine a noisy value with the data a second time, such as in a sum of squares
    around a noisy mean. The noise of the value then seems to hide the data in this second use, too.
    To check this, an *adaptive* pair is run, in which the value is *severed* from its noise: a
    plain number takes its place. If the outputs of the adaptive pairs are equal, other noise hides
    the data in the second use, and the adaptive pairs replace the first pairs. Otherwise they are
    dropped.
    """

    def __init__(self, coupler: Coupler) -> None:
        self.coupler = coupler
        self.free = FreeRuns(coupler)
        # Whether the probability of each output is known exactly on both inputs: differences of the
        # outputs then need no further explanation.
        self.are_explained = False
        # The draws that fill memory in place and do not reach the output.
        self.lost: frozenset[Moment] = frozenset()
        self._flips = Flips()
        self._adaptive: list[Coupled] = []
        self._severed: frozenset[Spot] = frozenset()
        self._is_refuted = False

    def turned(self, forward: bool) -> Coupler:
        """Return the `Coupler` that runs d1 first if `forward`, and d2 first otherwise."""
        return self.coupler if forward else self.coupler._replace(inputs=self.coupler.inputs[::-1])

    def couple(self, coupler: Coupler, first: Run, forward: bool) -> Coupled:
        """Run the second input with the noise of the first run, and explain the differences."""
        second = coupler.run(1, reference=first, has_lines=True)
        alignment = alignment_of(first, second)
        if alignment:
            coupler = coupler._replace(alignment=alignment)
            second = coupler.run(1, reference=first, has_lines=True)
        scaled = frozenset(rescaled(first, second, alignment))
        if scaled:
            coupler = coupler._replace(subject=coupler.subject._replace(scaled=scaled))
            first = coupler.run(0, reference=first, has_lines=True)
            second = coupler.run(1, reference=first, has_lines=True)
        delta = min((point[1] for point in coupler.subject.claim), default=0.0)
        constants = self.free.constants(not forward) if may_be_constant(first) else ()
        comparison = compare(first, second, alignment, delta, constants, self.lost)
        comparison = by_range(coupler, comparison, first)
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
                    effects = by_effect(coupler, first, second)
                    if effects.hidden:
                        comparison = _with_effects(comparison, effects, first)
                        noised = []
        elif forward and not (raises or comparison.twice):
            comparison = comparison._replace(alone=noise_alone(coupler, first, second))
        leaks: list[ThresholdLeak] = []
        if comparison.uneven and not bare:
            never = partial(self.free.is_never, 0 if forward else 1)
            leaks = threshold_leaks(coupler, (first, second), never)
        decided = None
        if comparison.uneven and noised and not (bare or raises) and self.free.is_drawn_by_one():
            decided = max(self.free.impossible(name) for name in noised)
        together = {} if raises else values_together(first, second, noised)
        return Coupled(
            forward, coupler.seed, comparison, absorbed, bare, noised, leaks, together, decided
        )

    @property
    def adaptive(self) -> list[Coupled] | None:
        """The adaptive pairs; None if no noisy value was replaced, or if outputs differ."""
        return self._adaptive if self._severed and not self._is_refuted else None

    def add_adaptive(self, coupler: Coupler, pair: Coupled) -> None:
        """Run a pair again with severed values, if the same noise hides two changes of the data."""
        if self._is_refuted:
            return
        comparison = pair.comparison
        two_scales = any(noise.scales[0] != noise.scales[1] for noise in comparison.hidden)
        if comparison.twice or self._severed or two_scales:
            self._severed = self._severed.union(comparison.moved)
        for _ in range(_MAX_REPETITIONS if self._severed else 0):
            pair = self._again(coupler, pair.forward)
            if self._severed.issuperset(pair.comparison.moved):
                break
            self._severed = self._severed.union(pair.comparison.moved)
        self._adaptive.append(pair)

    def confirm_adaptive(self) -> None:
        """Check the adaptive pairs with 24 more: outputs of a few may be equal by chance."""
        for seed in range(_CONFIRMING_PAIRS if self._severed else 0):
            if self._is_refuted:
                return
            self._again(self.coupler._replace(seed=_CONFIRMING_SEED + seed), forward=True)

    def _again(self, coupler: Coupler, forward: bool) -> Coupled:
        adapted = coupler._replace(subject=coupler.subject._replace(severed=self._severed))
        pair = self.couple(adapted, adapted.run(0, has_lines=True), forward)
        is_by_effect = any(noise.kind == "effect" for noise in pair.comparison.hidden)
        self._is_refuted = bool(pair.bare or pair.noised or is_by_effect)
        return pair


def _with_effects(comparison: RunDifferences, effects: Effects, first: Run) -> RunDifferences:
    """Return the comparison with the noise in `effects`, and without the choices of its sign."""
    # An inverse distribution function may compare a uniform number with a threshold, such as 1/2,
    # which looks like a random choice of the program.
    ids = {piece for noise in effects.hidden for piece in noise.pieces}
    recorder = first.recorder
    choices = [
        choice
        for choice in recorder.choices
        if choice.moment not in effects.decisions and not ids.issuperset(np.ravel(choice.ids))
    ]
    return comparison._replace(
        hidden=[*comparison.hidden, *effects.hidden],
        picks=bool(choices) or are_picked(recorder, effects.decisions),
    )


def _on_branches(
    pairs: _Pairs, coupled: list[Coupled], every: list[Run]
) -> tuple[list[Coupled], list[OnRareBranch]]:
    """Return the pairs that show values on likely branches, and the values on rarer branches."""
    if not every or any(pair.bare or pair.noised or pair.absorbed for pair in coupled):
        return [], []

    def couple_it(first: Run, forward: bool) -> Coupled:
        return pairs.couple(pairs.turned(forward), first, forward)

    branches = list(on_rare_branches(pairs.coupler, every[:2], couple_it, pairs.free))
    frequent = [pair for branch, pair in branches if branch.chance >= _MIN_COUNTED_PROBABILITY]
    return frequent, [branch for branch, _ in branches if branch.chance < _MIN_COUNTED_PROBABILITY]


def _uncalled(firsts: list[Run]) -> list[str]:
    calls = firsts[0].recorder.calls if firsts else {}
    return [name for name in calls if not any(run.recorder.calls.get(name) for run in firsts)]


def _is_repeated(use: Use, again: Recorder) -> bool:
    """Return whether a use adds noise to the same number in two runs on the same input."""
    repeated = again.by_moment.get(use.moment)
    if not isinstance(repeated, Use) or np.shape(repeated.operand) != np.shape(use.operand):
        return False
    operand, repeated_operand = (
        np.asarray(addition.operand, dtype=float) for addition in (use, repeated)
    )
    return bool(np.allclose(operand, repeated_operand, rtol=1e-9, atol=1e-9, equal_nan=True))


def _keeps_state(coupler: Coupler, first: Run) -> bool:
    """Return whether a second run with the same input and noise differs from the first."""
    # The mechanism then keeps state between calls, or draws noise that is not recorded.
    again = coupler.run(0, reference=first, has_lines=True)
    if first.error is not None and again.error is not None:
        return False
    return (
        len(again.recorder.draws) != len(first.recorder.draws)
        or not all(_is_repeated(use, again.recorder) for use in first.recorder.uses)
        or not same_output(first, again)
    )


def _constant(firsts: list[Run], coupled: list[Coupled]) -> list[tuple[Place, str, str]]:
    """Return (line, function, seed) for each seed that is the same in all runs on d1."""
    # Some functions take the seed at each draw, such as those of JAX, which take a key. Such a seed
    # is returned only if its noise hides a change between the inputs, and if all other draws have
    # constant seeds, too. Otherwise it may be intended: a model may begin with the same random
    # weights in each run.
    if len(firsts) < 2:
        return []
    every = [
        {(spot, name, repr(seed)[:60]) for spot, name, seed in run.recorder.seeds} for run in firsts
    ]
    common = set.intersection(*every)
    drawing = {(draw.moment[1], draw.primitive) for draw in firsts[0].recorder.draws}
    changing = {(spot, name) for seeds in every for spot, name, _ in seeds - common}
    is_all = drawing <= {(spot, name) for spot, name, _ in common} - changing
    hiding = {
        noise.draw for pair in coupled for noise in pair.comparison.hidden if any(noise.shifts)
    }
    return [
        (place_of(spot), name, seed)
        for spot, name, seed in common
        if (spot, name) not in drawing or (is_all and place_of(spot) in hiding)
    ]


def _not_understood(firsts: list[Run]) -> list[tuple[Place, str]]:
    locations: dict[tuple[Any, str], Place] = {}
    for first in firsts:
        for spot, what in first.recorder.not_understood:
            locations.setdefault((spot, what), place_of(spot))
        for draw in first.recorder.draws:
            if isinstance(draw, Draw) and draw.law == "unknown":
                locations.setdefault((draw.moment[1], draw.primitive), place_of(draw.moment[1]))
    return [(location, what) for (_, what), location in locations.items()]


def _inside_libraries(firsts: list[Run]) -> tuple[str, ...]:
    opaque = (draw for run in firsts for draw in run.recorder.draws if draw.law == OPAQUE)
    return tuple(dict.fromkeys(draw.primitive for draw in opaque))


_KINDS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        *(Runs, Coupled, Absorbed, RunDifferences, Hidden, Chosen, ControlFlow, Place, Laws),
        *(ThresholdLeak, Selected, OnRareBranch),
    )
}
# Limits of the arguments of a draw that are kept to be shown to the user: number of entries of an
# array (`_SHOWN_ENTRIES`), and number of characters of any other object's text
# (`_SHOWN_CHARACTERS`).
_SHOWN_ENTRIES, _SHOWN_CHARACTERS = 64, 200


def written(runs: Runs) -> bytes:
    """Return the results as JSON in UTF-8. A named tuple becomes {class name: [fields]}, such as
    {"Place": ["a.py", 3, "x + y", "f"]}; a tuple becomes {"tuple": [items]}."""
    return json.dumps(_plain(runs)).encode()


def read(data: bytes) -> Runs:
    """Return the results that `written` encoded. Raises ValueError if the data are malformed."""
    try:
        runs = _decoded(json.loads(data))
    except (TypeError, KeyError, RecursionError) as error:
        raise ValueError(f"malformed runs ({error})") from None
    if not isinstance(runs, Runs):
        raise ValueError(f"{type(runs).__name__} in place of runs")
    return runs


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
        return {"dict": [[_plain(key), _plain(item)] for key, item in value.items()]}
    if isinstance(value, np.ndarray):
        return list(map(_plain, np.ravel(value)[:_SHOWN_ENTRIES].tolist()))
    return repr(value)[:_SHOWN_CHARACTERS]


def _decoded(node: Any) -> Any:
    if isinstance(node, list):
        return list(map(_decoded, node))
    if not isinstance(node, dict):
        return node
    ((name, parts),) = node.items()
    if name == "dict":
        return {_decoded(key): _decoded(item) for key, item in parts}
    fields = map(_decoded, parts)
    return tuple(fields) if name == "tuple" else _KINDS[name](*fields)
