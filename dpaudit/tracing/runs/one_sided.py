"""Find values that only one of the two inputs ever gives.

Noise may select such a value without hiding it, such as the exact count of the winner of a noisy
maximum. The value may occur only on an unlikely branch. Or it occurs only if noise passes a
threshold, as a rare key of a noisy histogram does.
"""

from __future__ import annotations

import math
from collections import Counter
from contextlib import suppress
from itertools import combinations, islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .differences import ThresholdLeak
from .effects import is_decided, rare_runs
from .places import place_of
from .replaying import TooLong, Toss
from .running import MissingEntry, briefly, same, same_output

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from .differences import Coupled
    from .noise_log import Recorder
    from .places import Place, Spot
    from .replaying import Draw, Entry, Moment, Use
    from .running import Coupler, Run

    Free = tuple[list[Run], list[Run]]


# Number of runs with independent noise that are made on each input at first. To count how often
# values occur, more runs are added.
_FIRST_RUNS = 24
# Seed of the first run with independent noise.
_FIRST_SEED = 1_000
# To count how often a value occurs, at most this number of runs is made on each input.
_MAX_RUNS = 1_500
# Time limit, in seconds, for all runs that count how often a value occurs.
_COUNTING_SECONDS = 5.0
# After this number of occurrences of a value, its occurrences are not counted any further: the
# share of the runs with this value is then known accurately enough.
_MAX_OCCURRENCES = 100
# Each time that this number of runs has been added on each input, the counts of values are checked:
# counting ends if they are accurate enough or refute the claim.
_RUNS_PER_CHECK = 50
# If some noise has an unknown distribution, counting does not stop before this number of runs on
# each input: the counts are then the only evidence.
_MIN_RUNS_UNKNOWN = 500
# A value that occurs less than twice (`_MIN_OCCURRENCES`) in the first 100 runs
# (`_RARE_AFTER_RUNS`) is probably a number that contains noise. Its occurrences are not counted any
# further.
_MIN_OCCURRENCES, _RARE_AFTER_RUNS = 2, 100
# Error probability of each confidence bound on how often a value occurs, if a single value is
# counted. Counting also stops if the bounds refute the claim. The counts are checked up to 30 times
# (`_MAX_RUNS` / `_RUNS_PER_CHECK`), so that each of the two bounds has the error probability 1e-5
# in all checks together.
_CHECK_ALPHA = 1e-5 * _RUNS_PER_CHECK / _MAX_RUNS
# Distributions of noise that hide the number to which the noise is added.
_HIDING = (
    *("laplace", "normal", "discrete", "geometric", "logistic"),
    *("gumbel", "exponential", "cauchy"),
)


# Joins the texts of two entries of the output that are examined together.
AND = " and "
# Stands for an exception in place of the names of entries.
_RAISES = ("raises",)
# Pairs of entries are examined together, in addition to single entries, only if the output has at
# most this number of entries.
_MAX_PAIRED_ENTRIES = 8


class Selected(NamedTuple):
    """A value of a part, or an exception, that only one of the two inputs gives, although both runs
    have the same noisy values.

    part: One part, or two parts.
    value, other: The value, and what the other input gives with the same noise, as text.
    often: The number of runs on this input, with independent noise, that give the value. No run on
        the other input gives it.
    runs: The number of runs on each input, without the first runs, in which the value was found.
    error: The type, the message and the line of the exception; None for a value.
    place: The last line of the user's code that the run executes; None if it is unknown.
    is_known: Whether all noise has a known law. If not, only `often` is evidence.
    tried: The number of values that were counted in the same runs.
    """

    part: tuple[str, ...]
    which: int
    value: str
    other: str
    often: int
    runs: int
    error: Any
    place: Place | None
    is_known: bool = True
    tried: int = 1

    @property
    def level(self) -> float:
        """Error probability of each confidence bound for the frequency of the value."""
        return _CHECK_ALPHA / self.tried


class FreeRuns:
    """Runs with independent noise, which show which parts contain noise. They are made when
    needed."""

    def __init__(self, coupler: Coupler) -> None:
        self._coupler = coupler._replace(seed=_FIRST_SEED, alignment=None)
        self._runs: tuple[list[Run], list[Run]] | None = None
        self._rare: dict[int, list[Run] | None] = {}

    def both(self) -> tuple[list[Run], list[Run]]:
        """Return the runs on d1 and the runs on d2: 24 each, and those that `growing` has added."""
        if self._runs is None:
            seeds = range(_FIRST_SEED, _FIRST_SEED + _FIRST_RUNS)
            runs = [[self._coupler.run(which, seed=seed) for seed in seeds] for which in (0, 1)]
            self._runs = runs[0], runs[1]
        return self._runs

    def growing(self) -> Iterator[tuple[list[Run], list[Run]]]:
        """Yield the runs on d1 and those on d2 for 5 s, each time with one more run on each
        input."""
        hastened = self._coupler.hastened(_COUNTING_SECONDS)
        with suppress(TooLong):
            all_runs = self.both()
            while True:
                yield all_runs
                seed = _FIRST_SEED + len(all_runs[0])
                for runs, run in zip(
                    all_runs, [hastened.run(which, seed=seed) for which in (0, 1)]
                ):
                    runs.append(run)

    def constants(self, which: int) -> set[str]:
        """Return the parts that have the same value in all runs on an input."""
        first, *other_runs = self.both()[which]
        return {
            name
            for name, value in first.parts.items()
            if all(same(value, run.parts.get(name, MissingEntry)) for run in other_runs)
        }

    def is_bare(self, name: str) -> bool:
        """Return whether a part contains no noise: all runs on one input give the same value, and
        no run on the other input gives it. The part counts as noisy if rare noise gives each input
        a value of the other."""

        def valued(run: Run) -> Any:
            return run.error is not None if name == "raises" else run.parts.get(name, MissingEntry)

        return self._is_fixed(valued)

    def is_drawn_by_one(self) -> bool:
        """Return whether the numbers of draws differ between inputs, whatever the noise."""

        def valued(run: Run) -> Any:
            return Counter((d.moment[1], d.callers, d.size) for d in run.recorder.draws)

        return self._is_fixed(valued)

    def impossible(self, name: str) -> tuple[int, int]:
        """Return the number of runs on one input in which a part has a value that is impossible on
        the other input, and the number of runs. A value is impossible if the part is there a
        uniform number with another range. The count is 0 if the part is no uniform number on either
        input."""
        all_runs = self.both()
        for which in (0, 1):
            every = [
                (run.parts.get(name, MissingEntry), _uniform_numbers(run))
                for run in all_runs[which]
            ]
            for entry, (_, ends) in every[0][1].items():
                numbers_drawn = [(value, numbers.get(entry)) for value, numbers in every]
                if all(
                    number and number[1] == ends and same(value, number[0])
                    for value, number in numbers_drawn
                ):
                    values = [run.parts.get(name, MissingEntry) for run in all_runs[1 - which]]
                    return sum(not _is_within(value, ends) for value in values), len(values)
        return 0, len(all_runs[0])

    def _is_fixed(self, valued: Callable[[Run], Any]) -> bool:
        """Return whether a value is constant on one input, and never occurs on the other one."""
        both_runs = self.both()
        values = [list(map(valued, runs)) for runs in both_runs]
        is_constant = any(all(same(value, runs[0]) for value in runs) for runs in values)
        if not is_constant or any(
            same(first, second) for first in values[0] for second in values[1]
        ):
            return False
        return not is_decided(both_runs, self._rare_runs, valued)

    def _rare_runs(self, which: int) -> list[Run] | None:
        """Return runs on an input with rare values of the noise; None if they would be too many."""
        if which not in self._rare:
            self._rare[which] = rare_runs(self._coupler, which, self.both()[which][0])
        return self._rare[which]

    def is_never(self, which: int, name: str) -> bool:
        """Return whether a part, or a text, of this name occurs in no run on an input."""
        return not any(name in marks(run) for run in self.both()[which])


def _uniform_numbers(run: Run) -> dict[Entry, tuple[float, tuple[float, float]]]:
    """Return the value of each uniform number that a run draws, with the ends of its range."""
    numbers = {}
    for draw in run.recorder.draws:
        if draw.law == "uniform" and draw.scale is not None and draw.values is not None:
            low, width, values = (
                np.ravel(np.broadcast_to(column, np.shape(draw.values))).tolist()
                for column in (draw.parameters.get("low", 0.0), draw.scale, draw.values)
            )
            for index, (start, size, value) in enumerate(zip(low, width, values)):
                numbers[draw.moment, index] = value, (start, start + size)
    return numbers


def _is_within(value: Any, ends: tuple[float, float]) -> bool:
    return isinstance(value, (int, float)) and ends[0] <= value <= ends[1]


def selected(
    pairs: Sequence[Coupled], runs: FreeRuns, claim: Sequence[tuple[float, float]] = ()
) -> list[Selected]:
    """Return the values of the output that occur on one input, but in no run with independent noise
    on the other input.

    pairs: The pairs whose parts are examined, if they contain noise and differ.
    runs: The runs in which a value is counted, until the counts are large enough.
    claim: The points (ε, δ) of the claim. Counting stops when the counts refute one of them.
    """
    differing = [pair for pair in pairs if pair.noised]
    candidates: list[Selected] | None = None
    chosen = 0  # these first runs choose the values; later runs count them
    for free in runs.growing() if differing else ():
        count = min(map(len, free))
        if candidates is None:
            chosen, candidates = count, list(_candidates(differing, free))
            candidates = [candidate._replace(tried=len(candidates)) for candidate in candidates]
        elif count % _RUNS_PER_CHECK and count < _MAX_RUNS:
            continue
        counted = [_counted(candidate, free, range(chosen, count)) for candidate in candidates]
        candidates = [candidate for candidate in counted if candidate is not None]
        largest = max((candidate.often for candidate in candidates), default=_MAX_OCCURRENCES)
        is_enough = count >= _MIN_RUNS_UNKNOWN or all(
            candidate.is_known for candidate in candidates
        )
        if (largest >= _MAX_OCCURRENCES and is_enough) or count >= (
            _MAX_RUNS if largest >= _MIN_OCCURRENCES else _RARE_AFTER_RUNS
        ):
            break
        if any(_refutes(candidate, point) for candidate in candidates for point in claim):
            break
    return candidates or []


def _refutes(candidate: Selected, point: tuple[float, float]) -> bool:
    """Return whether p > e^ε · q + δ for bounds: a lower one (p) on its input, an upper one (q)."""
    (epsilon, delta), share = point, candidate.often / max(1, candidate.runs)
    # The lower bound is the larger of two: one by Hoeffding's inequality, one by the multiplicative
    # form of Chernoff's inequality, which is tighter for small shares.
    error = -math.log(candidate.level) / max(1, candidate.runs)
    least = share - min(math.sqrt(error / 2), math.sqrt(2 * share * error))
    largest = -math.expm1(-error)
    return least - delta > 0 and math.log((least - delta) / largest) > epsilon


def _counted(candidate: Selected, free: Free, counting: range) -> Selected | None:
    """Return a value with its count; None if a run on the other input gives it, too."""
    texts, other_texts = (
        [text_of(runs[index], candidate.part) for index in counting]
        for runs in _turned(free, candidate.which)
    )
    is_on_both = candidate.value in other_texts
    return (
        None
        if is_on_both
        else candidate._replace(often=texts.count(candidate.value), runs=len(counting))
    )


def _candidates(pairs: Sequence[Coupled], free: Free) -> Iterator[Selected]:
    """Yield values that one input gives in a pair and the other never gives, not yet counted."""
    examined = set()
    for pair in sorted(pairs, key=_is_known, reverse=True):
        comparison = pair.comparison
        ends = [end for end in comparison.ends if end is not None]
        for part in (*((name,) for name in pair.noised), *pair.together):
            raises = part == _RAISES
            error = next((error for error in comparison.errors if error is not None), None)
            texts = texts_of(pair, part)
            for which in (0, 1):
                value = texts[which]
                other_texts = [text_of(run, part) for run in free[1 - which]]
                if (part, which, value) in examined or value in (None, *other_texts):
                    continue
                examined.add((part, which, value))
                assert value is not None
                yield Selected(
                    part, which, value, texts[1 - which] or "nothing", 0, 0,
                    error if raises else None, ends[0] if ends else None, _is_known(pair),
                )  # fmt: skip


def _turned(free: Free, which: int) -> Free:
    return free if which == 0 else free[::-1]


def texts_of(pair: Coupled, part: tuple[str, ...]) -> tuple[str | None, str | None]:
    """Return the texts of one or two parts in a pair of runs: on d1 and on d2."""
    if part == _RAISES:
        texts = tuple(None if error is None else part[0] for error in pair.comparison.errors)
    else:
        (name, *more) = part
        texts = pair.together[part] if more else pair.comparison.differing[name]
    first_text, second_text = texts
    return (first_text, second_text) if pair.forward else (second_text, first_text)


def text_of(run: Run, part: tuple[str, ...]) -> str | None:
    if part == _RAISES:
        return None if run.error is None else part[0]
    if not run.parts.keys() >= {*part}:
        return None
    return AND.join(briefly(run.parts[name]) for name in part)


def values_together(
    first: Run, second: Run, noised: Sequence[str]
) -> dict[tuple[str, ...], tuple[str, str]]:
    """Return a mapping from two parts, at least one of them in `noised`, to two texts: their values
    in the first run, and in the second run. For a long output, it is empty."""
    if first.parts.keys() != second.parts.keys() or len(first.parts) > _MAX_PAIRED_ENTRIES:
        return {}
    names = (two for two in combinations(sorted(first.parts), 2) if {*two} & {*noised})
    return {name: (str(text_of(first, name)), str(text_of(second, name))) for name in names}


def _is_known(pair: Coupled) -> bool:
    """Return whether both runs of a pair had the same noise, so that only the inputs differ."""
    comparison, raises = pair.comparison, pair.noised == ["raises"]
    is_hiding = all(noise.kind != "effect" and noise.law in _HIDING for noise in comparison.hidden)
    # If only one of the runs raises an exception, it ends early, and so draws noise less often than
    # the other run. Unequal numbers of draws then do not mean that the noise is unknown.
    is_even = raises or not (comparison.uneven or comparison.unused)
    return (
        bool(comparison.hidden)
        and is_hiding
        and is_even
        and not (comparison.picks or comparison.chosen)
    )


# Discrete distributions whose outcomes mean something to the user as numbers. An outcome of any
# other discrete distribution is an index in a list of options.
_NUMBERS = ("integers", "binomial")
_HOLDS = {True: "holds", False: "does not hold"}
# A rare branch is the code that runs after an unlikely outcome of a random choice. To find rare
# branches, runs force one such outcome at a time, the least likely first. Largest number of
# outcomes that are forced for each input.
_MAX_BRANCHES = 24
# Time limit, in seconds, for all runs with a forced outcome of a random choice.
_BRANCH_SECONDS = 1.0
# Number of runs on each input with the same forced outcome of a random choice.
_RUNS_PER_BRANCH = 24
# Runs in which an outcome of a random choice is forced have this seed and the following ones. Runs
# with independent noise (`_FIRST_SEED`) have smaller seeds.
_BRANCH_SEED = 4_000


class OnRareBranch(NamedTuple):
    """A value that one input gives in every run on an unlikely branch, and that the other input
    never gives.

    coin: The line of the choice.
    falls: The outcome in words, such as "holds" (for a comparison) or "picks option 2".
    chance: The probability that the outcome occurs at least once on this line in a run.
    value: The value as text.
    error: The type, the message and the line of the exception; None for a value.
    place: The last line of the user's code that the run executes; None if it is unknown.
    """

    coin: Place
    falls: str
    chance: float
    part: str
    which: int
    value: str
    error: Any
    place: Place | None


class _Branch(NamedTuple):
    """A possible outcome of a choice that did not occur in a run.

    value: The outcome: True or False for a coin, else the drawn number.
    chance, falls: As in `OnRareBranch`.
    """

    moment: Moment
    value: Any
    chance: float
    falls: str


def on_rare_branches(
    coupler: Coupler,
    firsts: Sequence[Run],
    couple: Callable[[Run, bool], Coupled],
    runs: FreeRuns,
) -> Iterator[tuple[OnRareBranch, Coupled]]:
    """Find values that only one input gives, and only on an unlikely branch. Yield each value with
    the pair of runs that shows it. Stop after one second.

    firsts: A run on d1 and a run on d2, with the seed of the coupler.
    couple: Takes a run, and whether it is on d1, and returns its pair.
    runs: Runs with independent noise. A value is left out if the other input gives it in these
        runs.
    """
    hastened = coupler.hastened(_BRANCH_SECONDS)
    examined: set[tuple[Spot, Any]] = set()
    with suppress(TooLong):
        for forward, first in zip((True, False), firsts):
            for branch in sorted(_branches(first.recorder), key=lambda branch: branch.chance)[
                :_MAX_BRANCHES
            ]:
                if (branch.moment[1], branch.value) in examined:
                    continue
                overrides: dict[Entry, Any] = {(branch.moment, 0): branch.value}
                turned = hastened.run(not forward, overrides, has_lines=True)
                coin = turned.recorder.by_moment.get(branch.moment)
                if isinstance(coin, Toss) and not _are_lone(turned.recorder)(coin):
                    continue
                pair = couple(turned, forward)
                if pair.absorbed is not None:
                    # The pair shows no leak: if one random choice has another outcome in the second
                    # run, both runs give the same output. The branch is not added to `seen`, so the
                    # loop may still try it on the other input.
                    continue
                examined.add((branch.moment[1], branch.value))
                laws = [choice.probabilities for choice in pair.comparison.chosen]
                if not pair.noised or any(
                    first_odds != second_odds for first_odds, second_odds in laws
                ):
                    continue
                lone_value = _of_one_alone(hastened, pair, overrides, runs)
                if lone_value is not None:
                    yield _on_rare_branch(branch, lone_value, pair), pair


def _on_rare_branch(
    branch: _Branch, lone_value: tuple[str, int, str], pair: Coupled
) -> OnRareBranch:
    which = lone_value[1]
    ends = pair.comparison.ends if pair.forward else pair.comparison.ends[::-1]
    error = next((error for error in pair.comparison.errors if error is not None), None)
    location = place_of(branch.moment[1])
    is_raised = lone_value[0] == "raises"
    return OnRareBranch(
        location,
        branch.falls,
        branch.chance,
        *lone_value,
        error if is_raised else None,
        ends[which] or ends[0],
    )


def _branches(recorder: Recorder) -> Iterator[_Branch]:
    """Yield the outcomes of choices that did not occur; for each line, each outcome once."""
    # Comparisons of arrays are left out, and those whose uniform number is used elsewhere in the
    # run: a forced outcome might contradict the other use.
    left: dict[tuple[Spot, Any], float] = {}
    branches: dict[tuple[Spot, Any], _Branch] = {}

    def add(moment: Moment, value: Any, chance: float, falls: str) -> None:
        key = moment[1], value
        left[key] = left.get(key, 1.0) * (1 - chance)
        branches.setdefault(key, _Branch(moment, value, chance, falls))

    is_lone = _are_lone(recorder)
    for coin in recorder.choices:
        if is_lone(coin):
            value = not bool(np.ravel(coin.values)[0])
            holds = float(np.ravel(coin.probability)[0])
            add(coin.moment, value, holds if value else 1 - holds, _HOLDS[value])
    for draw in recorder.draws:
        if draw.outcomes and np.size(draw.values) == 1:
            drawn_value = np.ravel(draw.values)[0]
            for outcome, chance in draw.outcomes:
                if outcome != drawn_value:
                    is_itself = draw.law in _NUMBERS
                    falls = f"is {outcome}" if is_itself else f"picks option {outcome + 1}"
                    add(draw.moment, outcome, chance, falls)
    for key, branch in branches.items():
        if left[key] < 1:
            yield branch._replace(chance=1 - left[key])


def _are_lone(recorder: Recorder) -> Callable[[Toss], bool]:
    """Return a function that says whether a coin is single, and its number used nowhere else."""

    def pieces(ids: Any) -> Iterator[int]:
        for number in np.ravel(ids).tolist():
            yield from recorder.pieces.parts_of(number)

    every = [event.ids for event in recorder.choices] + [event.ids for event in recorder.uses]
    used = Counter(piece for ids in every for piece in pieces(ids))

    def is_lone(coin: Toss) -> bool:
        if np.size(coin.values) != 1:
            return False
        numbers = list(pieces(coin.ids))
        draws = [recorder.pieces.draw_of(number) for number in numbers]
        are_uniform = all(draw.law == "uniform" for draw in draws)
        return are_uniform and all(used[number] == 1 for number in numbers)

    return is_lone


def _of_one_alone(
    coupler: Coupler, pair: Coupled, overrides: dict[Entry, Any], runs: FreeRuns
) -> tuple[str, int, str] | None:
    """Return (name, input, text) of a value that only one input gives after an outcome."""
    seeds = range(_BRANCH_SEED, _BRANCH_SEED + _RUNS_PER_BRANCH)
    all_runs = [[coupler.run(which, overrides, seed=seed) for seed in seeds] for which in (0, 1)]
    free = runs.both()
    for name in sorted(pair.noised, key=lambda name: name.startswith("len(")):
        for which in (0, 1):
            values = {text_of(run, (name,)) for run in all_runs[which]}
            never = {text_of(run, (name,)) for run in (*all_runs[1 - which], *free[1 - which])}
            (value, *more) = values
            if value is not None and not more and value not in never:
                return name, which, value
    return None


# A run with more comparisons of noisy values than this is not searched for leaks through
# thresholds.
_MAX_COMPARISONS = 16
# To force the result of a comparison, its noise is set to plus or minus this number of scales.
_FORCING_SCALES = 1e6
# Largest number of runs that force the results of comparisons of noisy values. After forced
# results, the program may come to further comparisons; the next run forces these, too.
_MAX_FORCED_RUNS = 8
# Number of further runs, each with other noise, that must confirm a leak through a threshold: each
# output must contain the entry. (Such a leak is an entry of the output that only one input can
# give, and that appears if noise passes a threshold.)
_CONFIRMING_RUNS = 12
# Seed of the first run that confirms a leak through a threshold.
_CONFIRMING_SEED = 5_000
_TAILED = ("laplace", "normal", "logistic", "discrete")


class _Compared(NamedTuple):
    """A comparison of a noisy value with a threshold, as the comparison of operand + factor × noise
    with 0.

    entry: The moment of the draw, and the index of the noise in the draw.
    operand: The number to which the noise is added, minus the threshold.
    """

    use: Use
    draw: Draw
    entry: Entry
    scale: float
    factor: float
    operand: float

    @property
    def side(self) -> int:
        """1 if the noisy value, operand + factor × noise, rises with the noise; -1 if it falls."""
        return 1 if self.factor > 0 else -1


def threshold_leaks(
    coupler: Coupler, runs: tuple[Run, Run], is_never: Callable[[str], bool]
) -> list[ThresholdLeak]:
    """Return the parts that only the second input gives, and only if noise passes a threshold.
    `runs` is a pair of runs with the same noise. `is_never` says whether a part occurs in no run on
    the first input."""
    first, second = runs
    if first.error is not None or second.error is not None:
        return []
    every = [list(islice(_compared(run), _MAX_COMPARISONS + 1)) for run in runs]
    ours, theirs = ([compared for compared in some if compared is not None] for some in every)
    if len(ours) < len(every[0]) or max(map(len, every)) > _MAX_COMPARISONS:
        # Return no entries: the search forces the noise of each comparison to both sides of its
        # threshold, so it needs few comparisons, each of a known form.
        return []

    def pushed(which: int, pushes: Iterable[tuple[_Compared, int]]) -> Run:
        overrides = {
            compared.entry: sign * compared.side * _FORCING_SCALES * compared.scale
            for compared, sign in pushes
        }
        return coupler.run(which, overrides, reference=first)

    # Names of all entries that occur in outputs of the first input, either with the noise of the
    # first run or with noise that forces another result of a comparison.
    known = marks(first)
    for sign in (1, -1):
        for compared in ours:
            known.update(marks(pushed(0, [(compared, sign)])))
        known.update(_far_out(pushed, ours, sign))
    leaks = []
    for compared in theirs:
        ends = pushed(1, [(compared, 1)]), pushed(1, [(compared, -1)])
        for sign, shown, hidden in ((1, *ends), (-1, *ends[::-1])):
            alone = [mark for mark in marks(shown) if mark not in known and is_never(mark)]
            if not (alone and same_output(first, hidden)):
                continue
            beyond = {compared.entry: sign * compared.side * _FORCING_SCALES * compared.scale}
            # In further runs, `beyond` forces the noise of this comparison, and all other noise is
            # drawn from new seeds. The leak is reported only if the entry `alone[0]` of the output
            # occurs in all of these runs. Otherwise other comparisons also decide whether it occurs
            # (an example is the winner of several noisy counts), and its probability is unknown.
            seeds = range(_CONFIRMING_SEED, _CONFIRMING_SEED + _CONFIRMING_RUNS)
            if all(alone[0] in marks(coupler.run(1, beyond, seed=seed)) for seed in seeds):
                leaks.append(_leak(compared, alone[0], sign))
    return leaks


def _far_out(
    pushed: Callable[[int, Iterable[tuple[_Compared, int]]], Run],
    ours: Sequence[_Compared],
    sign: int,
) -> dict[str, None]:
    """Return the parts of a run whose noisy values are all forced above, or below, thresholds."""
    # The forced results may lead to further comparisons, which are forced in another run.
    every = {compared.entry: compared for compared in ours}
    for _ in range(_MAX_FORCED_RUNS):
        forced = pushed(0, [(compared, sign) for compared in every.values()])
        further = islice(_compared(forced), 2 * _MAX_COMPARISONS)
        more = {compared.entry: compared for compared in further if compared is not None}
        if more.keys() <= every.keys():
            break
        every.update(more)
    return marks(forced)


def marks(run: Run) -> dict[str, None]:
    """Return the parts of a run, and all texts in its output, as ordered keys (values are None)."""
    texts: dict[str, None] = {}
    for value in run.parts.values():
        if isinstance(value, (str, bytes)):
            texts[repr(value)] = None
        elif isinstance(value, tuple):
            texts.update(dict.fromkeys(map(str, value)))
    texts.update(dict.fromkeys(run.parts))
    return texts


def _leak(compared: _Compared, part: str, sign: int) -> ThresholdLeak:
    return ThresholdLeak(
        place_of(compared.draw.moment[1]),
        place_of(compared.use.moment[1]),
        part,
        compared.draw.law,
        abs(compared.factor) * compared.scale,
        -sign * compared.operand,
        tuple(map(place_of, compared.draw.callers)),
    )


def _compared(run: Run) -> Iterator[_Compared | None]:
    """Yield a `_Compared` for each compared noisy value; None for noise that is unknown."""
    recorder, pieces = run.recorder, run.recorder.pieces
    for use in recorder.uses:
        if use.kind != "compare":
            continue
        columns = (np.ravel(column).tolist() for column in (use.ids, use.factor, use.operand))
        for number, factor, operand in zip(*columns):
            draw, scale = pieces.draw_of(number), pieces.scales[number]
            is_known = draw.law in _TAILED and draw.values is not None
            is_single = pieces.parts_of(number) == (number,)
            if not (is_known and is_single and math.isfinite(scale) and scale > 0):
                yield None
                continue
            entry = draw.moment, number - draw.first
            yield _Compared(use, draw, entry, scale, float(factor), float(operand))
