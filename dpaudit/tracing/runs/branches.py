"""Parts of the output that noise selects but does not hide: the plain count of the winner of a
noisy maximum, or a value on a branch that a coin rarely takes. Many runs with independent noise
show that only one input has such a value."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .effects import is_decided
from .places import place_of
from .replaying import Choice, TooLong
from .running import Missing, briefly, same
from .threshold_leaks import marks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from .comparing import Coupled
    from .places import Place, Spot
    from .recording import Recorder
    from .replaying import Entry, Moment
    from .running import Coupler, Run

    Free = tuple[list[Run], list[Run]]


# Runs with independent noise, of either input, and the seed of the first.
_FREE, _FREE_SEED = 24, 1_000
# Runs of either input that count how often a value occurs, and seconds that they may take.
_RUNS, _SECONDS = 1_500, 5.0
# Occurrences that are enough, and runs from one check to the next.
_ENOUGH, _STEP = 100, 50
# Runs at least, where noise was seen whose law is not known.
_TELLING = 500
# A value that has not occurred twice in 300 runs is a noised number.
_AGAIN, _FEW = 2, 300
# Laws of noise that hides its operand.
_HIDING = (
    *("laplace", "normal", "discrete", "geometric", "logistic"),
    *("gumbel", "exponential", "cauchy"),
)


class Selected(NamedTuple):
    """A value that only one input has in a part of the output that differs though all noised values
    are equal; or an exception that only one input raises.

    part: its name, or "raises".  which: the input that has the value, 0 or 1.  other: the value of
    the other input with the same noise.  often: in how many of `runs` free runs the input has the
    value; the other input never does.  error: the exception, with its line.  place: the last line
    of the run.  is_known: whether all noise has a known law; if not, only `often` is evidence.
    """

    part: str
    which: int
    value: str
    other: str
    often: int
    runs: int
    error: Any
    place: Place | None
    is_known: bool = True


def hastened(coupler: Coupler) -> Coupler:
    return coupler.hastened(_SECONDS)


class FreeRuns:
    """Runs of both inputs with independent noise, made when they are first asked for. They show
    which parts of the output have noise."""

    def __init__(self, coupler: Coupler) -> None:
        self._coupler = coupler._replace(seed=_FREE_SEED, alignment=None)
        self._runs: tuple[list[Run], list[Run]] | None = None

    def both(self) -> tuple[list[Run], list[Run]]:
        """Return the runs made so far, at least 24 of either input."""
        if self._runs is None:
            seeds = range(_FREE_SEED, _FREE_SEED + _FREE)
            made = [[self._coupler.run(which, seed=seed) for seed in seeds] for which in (0, 1)]
            self._runs = made[0], made[1]
        return self._runs

    def growing(self) -> Iterator[tuple[list[Run], list[Run]]]:
        """Yield the runs, with one more of either input each time, for some seconds."""
        own = hastened(self._coupler)
        with suppress(TooLong):
            both = self.both()
            while True:
                yield both
                seed = _FREE_SEED + len(both[0])
                for runs, made in zip(both, [own.run(which, seed=seed) for which in (0, 1)]):
                    runs.append(made)

    def is_bare(self, name: str) -> bool:
        """Return whether a part of the output ("raises": whether it raises) has no noise: it is
        constant for one input, and never has that value for the other."""
        both_runs = self.both()

        def valued(one: Run) -> Any:
            return one.error is not None if name == "raises" else one.parts.get(name, Missing)

        both = [list(map(valued, runs)) for runs in both_runs]
        is_constant = any(all(same(one, runs[0]) for one in runs) for runs in both)
        if not is_constant or any(same(one, other) for one in both[0] for other in both[1]):
            return False
        return not is_decided(self._coupler, both_runs, valued)

    def is_never(self, which: int, name: str) -> bool:
        """Return whether no run of an input has a part of the output, or a text in it."""
        return not any(name in marks(each) for each in self.both()[which])


def selects(runs: Sequence[Run]) -> bool:
    """Return whether a part of the output varies, is no noised value, and may repeat a value, so
    that noise seems to select it."""
    for name in dict.fromkeys(name for one in runs for name in one.parts):
        values = [one.parts.get(name, Missing) for one in runs]
        texts = set(map(repr, values))
        is_measured = any(isinstance(one, float) for one in values) and len(texts) == len(values)
        noised = (_is_noised(one, value) for one, value in zip(runs, values))
        if len(texts) > 1 and not is_measured and not all(noised):
            return True
    return False


def _is_noised(one: Run, value: Any) -> bool:
    if not isinstance(value, (int, float)):
        return False
    return any(np.any(np.asarray(use.value) == value) for use in one.recorder.uses)


def selected(pairs: Sequence[Coupled], runs: FreeRuns) -> list[Selected]:
    """Return the values that only one input has, among parts of the output that differ though
    noise was seen."""
    differing = [one for one in pairs if one.noised]
    found: list[Selected] | None = None
    for free in runs.growing() if differing else ():
        many = min(map(len, free))
        if found is None:
            found = list(_candidates(differing, free))
        elif many % _STEP and many < _RUNS:
            continue
        found = [one for one in (_counted(one, free, many) for one in found) if one is not None]
        most = max((one.often for one in found), default=_ENOUGH)
        is_enough = many >= _TELLING or all(one.is_known for one in found)
        if (most >= _ENOUGH and is_enough) or many >= (_RUNS if most >= _AGAIN else _FEW):
            break
    return found or []


def _counted(one: Selected, free: Free, many: int) -> Selected | None:
    """Return a value with its number of occurrences; None if the other input has it, too."""
    own, others = (
        [text_of(run, one.part) for run in runs[:many]] for runs in _turned(free, one.which)
    )
    return None if one.value in others else one._replace(often=own.count(one.value), runs=many)


def _candidates(pairs: Sequence[Coupled], free: Free) -> Iterator[Selected]:
    """Yield the values that only one input has in these runs."""
    seen = set()
    for pair in sorted(pairs, key=_is_known, reverse=True):
        comparison = pair.comparison
        ends = [one for one in comparison.ends if one is not None]
        for part in pair.noised:
            raises = part == "raises"
            error = next((one for one in comparison.errors if one is not None), None)
            texts = texts_of(pair, part)
            for which in (0, 1):
                value = texts[which]
                others = [text_of(run, part) for run in free[1 - which]]
                if (part, which, value) in seen or value in (None, *others):
                    continue
                seen.add((part, which, value))
                assert value is not None
                yield Selected(
                    part, which, value, texts[1 - which] or "nothing", 0, 0,
                    error if raises else None, ends[0] if ends else None, _is_known(pair),
                )  # fmt: skip


def _turned(free: Free, which: int) -> Free:
    return free if which == 0 else free[::-1]


def texts_of(pair: Coupled, part: str) -> tuple[str | None, str | None]:
    """Return the values of a part for d1 and for d2 in a pair of runs."""
    if part == "raises":
        both = tuple(None if one is None else part for one in pair.comparison.errors)
    else:
        both = pair.comparison.differing[part]
    one, other = both
    return (one, other) if pair.forward else (other, one)


def text_of(one: Run, part: str) -> str | None:
    if part == "raises":
        return None if one.error is None else part
    return briefly(one.parts[part]) if part in one.parts else None


def _is_known(pair: Coupled) -> bool:
    """Return whether all noise has a known law and is equal in both runs, so that it does not cause
    the difference of the outputs."""
    one, raises = pair.comparison, pair.noised == ["raises"]
    is_hiding = all(each.kind != "effect" and each.law in _HIDING for each in one.hidden)
    # A run that raises makes fewer draws.
    is_even = raises or not (one.uneven or one.unused)
    return bool(one.hidden) and is_hiding and is_even and not (one.picks or one.chosen)


# Laws whose outcomes are numbers; of others, the outcome is a place in a list.
_NUMBERS = ("integers", "binomial")
_HOLDS = {True: "holds", False: "does not hold"}
# Branches that are tried, rarest first, the seconds for them, and the runs of either input on each
# branch, with their first seed.
_BRANCHES, _SECONDS_FOR_BRANCHES, _RUNS_OF_A_BRANCH, _SEED = 24, 1.0, 24, 4_000


class OnRareBranch(NamedTuple):
    """A value that one input has in every run on a rare branch, and the other input never has.

    coin, falls, chance: the line of the coin, its outcome in words, and its probability.  part,
    which, value, error, place: as of `Selected`.
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
    """Another outcome of a coin, or of a choice of few outcomes. chance: the probability that it
    occurs at least once on this line in a run."""

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
    """Yield values that only one input has on rare branches, with a coupled pair that shows each;
    for a second at most.

    firsts: a run of either input, with the coupler's seed.  couple: adds the run of the other input
    to a run of d1 (True) or d2 (False).
    """
    own = coupler.hastened(_SECONDS_FOR_BRANCHES)
    seen: set[tuple[Spot, Any]] = set()
    with suppress(TooLong):
        for forward, first in zip((True, False), firsts):
            for branch in sorted(_branches(first.recorder), key=lambda branch: branch.chance)[
                :_BRANCHES
            ]:
                if (branch.moment[1], branch.value) in seen:
                    continue
                overrides: dict[Entry, Any] = {(branch.moment, 0): branch.value}
                turned = own.run(not forward, overrides, has_lines=True)
                coin = turned.recorder.by_moment.get(branch.moment)
                if isinstance(coin, Choice) and not _are_lone(turned.recorder)(coin):
                    continue
                pair = couple(turned, forward)
                if pair.absorbed is not None:
                    continue  # the other input may have it too, which its turn shows
                seen.add((branch.moment[1], branch.value))
                laws = [one.probabilities for one in pair.comparison.chosen]
                if not pair.noised or any(one != other for one, other in laws):
                    continue
                found = _of_one_alone(own, pair, overrides, runs)
                if found is not None:
                    yield _on_rare_branch(branch, found, pair), pair


def _on_rare_branch(branch: _Branch, found: tuple[str, int, str], pair: Coupled) -> OnRareBranch:
    which = found[1]
    ends = pair.comparison.ends if pair.forward else pair.comparison.ends[::-1]
    error = next((one for one in pair.comparison.errors if one is not None), None)
    place = place_of(branch.moment[1])
    is_raised = found[0] == "raises"
    return OnRareBranch(
        place,
        branch.falls,
        branch.chance,
        *found,
        error if is_raised else None,
        ends[which] or ends[0],
    )


def _branches(recorder: Recorder) -> Iterator[_Branch]:
    """Yield the branches of a run, the first for each line and outcome. Only single coins count
    whose number has no other use, which might contradict the flipped outcome."""
    left: dict[tuple[Spot, Any], float] = {}
    found: dict[tuple[Spot, Any], _Branch] = {}

    def add(moment: Moment, value: Any, chance: float, falls: str) -> None:
        key = moment[1], value
        left[key] = left.get(key, 1.0) * (1 - chance)
        found.setdefault(key, _Branch(moment, value, chance, falls))

    is_lone = _are_lone(recorder)
    for coin in recorder.choices:
        if is_lone(coin):
            value = not bool(np.ravel(coin.values)[0])
            holds = float(np.ravel(coin.probability)[0])
            add(coin.moment, value, holds if value else 1 - holds, _HOLDS[value])
    for draw in recorder.draws:
        if draw.outcomes and np.size(draw.values) == 1:
            seen = np.ravel(draw.values)[0]
            for outcome, chance in draw.outcomes:
                if outcome != seen:
                    is_itself = draw.law in _NUMBERS
                    falls = f"is {outcome}" if is_itself else f"picks option {outcome + 1}"
                    add(draw.moment, outcome, chance, falls)
    for key, branch in found.items():
        if left[key] < 1:
            yield branch._replace(chance=1 - left[key])


def _are_lone(recorder: Recorder) -> Callable[[Choice], bool]:
    """Return a predicate: whether a coin is a single uniform number without another use."""

    def pieces(ids: Any) -> Iterator[int]:
        for number in np.ravel(ids).tolist():
            yield from recorder.pieces.parts_of(number)

    every = [one.ids for one in recorder.choices] + [one.ids for one in recorder.uses]
    used = Counter(piece for ids in every for piece in pieces(ids))

    def is_lone(coin: Choice) -> bool:
        if np.size(coin.values) != 1:
            return False
        numbers = list(pieces(coin.ids))
        draws = [recorder.pieces.draw_of(number) for number in numbers]
        are_uniform = all(draw is not None and draw.law == "uniform" for draw in draws)
        return are_uniform and all(used[number] == 1 for number in numbers)

    return is_lone


def _of_one_alone(
    coupler: Coupler, pair: Coupled, overrides: dict[Entry, Any], runs: FreeRuns
) -> tuple[str, int, str] | None:
    """Return a part of the output, the input that has a value there in every run on this branch
    while the other input never has it, and the value; None if there is no such part."""
    seeds = range(_SEED, _SEED + _RUNS_OF_A_BRANCH)
    both = [[coupler.run(which, overrides, seed=seed) for seed in seeds] for which in (0, 1)]
    free = runs.both()
    for name in sorted(pair.noised, key=lambda name: name.startswith("len(")):
        for which in (0, 1):
            own = {text_of(one, name) for one in both[which]}
            never = {text_of(one, name) for one in (*both[1 - which], *free[1 - which])}
            (value, *more) = own
            if value is not None and not more and value not in never:
                return name, which, value
    return None
