"""Whether draws hang together by the call, or by the time, that they were made in
(docs/method.md §11).

Noise that is drawn once for a whole batch, or a state that changes slowly, makes draws of one input
alike within a call and different between calls. Ten thousand such draws may be worth a dozen.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpaudit.draws import SelectionDraws
from dpaudit.sampling.independence import (
    IMPOSSIBLE,
    DependentDrawsError,
    beginning,
    is_telling,
    numbers,
)
from dpaudit.stats.homogeneity import log_evidence, log_mean
from dpaudit.tally import Tally

BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]
# The logarithm of an e-value, and what it is about.
Evidence = tuple[float, str]

# Each input's draws of a block are compared in so many runs, which the sampler's calls are.
_RUNS = 4
# Columns that are looked at, and where they are cut.
_COLUMNS = 8
_QUANTILES = (0.25, 0.5, 0.75)


@dataclass(frozen=True, slots=True)
class Difference:
    """What is said of draws that differ more than what is independent: that they do (with a place
    for the input), the cause when it cannot be chance, and the advice when it may be."""

    words: str
    cause: str
    advice: str


CALLS = Difference(
    "outputs for {} differ from call to call more than independent draws",
    ": many outputs share one noise value, or a state changes from call to call; draw fresh noise "
    "for every output and keep nothing between calls",
    "every bound is for independent draws; do the outputs of a call share noise, or does the "
    "mechanism keep state between calls?",
)
_FROM_PROCESSES = (
    "outputs for {} differ from process to process more than independent draws can (p < {:g}): an "
    "event {} {:,} draws here and {} draws of new processes; every process of the mechanism keeps "
    "something, such as noise that it draws when it is imported or takes from the clock; draw "
    "fresh noise for every output and keep nothing between calls; if outputs contain the date or "
    "the time, remove it by post_process"
)


def check_calls(draws: SelectionDraws, blocks: Sequence[int], level: float) -> list[str]:
    """Return a warning about learning draws, made in blocks of these sizes, that differ from call
    to call more than chance allows. Raises MechanismError for what independent draws cannot do.

    What was learned is left out: it fits the draws that it was learned from better than later ones,
    and that is no sign of anything.
    """
    return judged(_of_calls(draws, blocks), level, CALLS)


def check_further(
    draws: SelectionDraws,
    tallies: Sequence[Tally],
    guesses: IntArray,
    level: float,
    before: float = 0.0,
) -> list[str]:
    """Return a warning, as `check_calls` does, about draws that were made only to be checked: by
    their entries, and by the levels that a rule gives them, with a tally for each block.

    before: what `doubt` returned for other draws."""
    found = _of_calls(draws, [one.draws for one in tallies]) + _of_blocks(tallies, guesses)
    return judged(found, level, CALLS, before)


def _of_calls(draws: SelectionDraws, blocks: Sequence[int]) -> list[Evidence]:
    draws = beginning(draws)
    found: list[Evidence] = []
    events = list(_events(draws))
    for name, arm in (("d1", draws.is_d1), ("d2", ~draws.is_d1)):
        runs = _runs(arm, blocks)
        sizes = np.bincount(runs)
        found += [
            (log_evidence(np.bincount(runs, weights=inside[arm]).astype(np.int64), sizes), name)
            for inside in events
        ]
    return found


def check_blocks(tallies: Sequence[Tally], guesses: IntArray, level: float) -> list[str]:
    """Return a warning, as `check_calls` does, about certification draws that differ from block to
    block; every one has calls of its own for each input."""
    return judged(_of_blocks(tallies, guesses), level, CALLS)


def between_processes(
    first: Tally, others: Sequence[Tally], guesses: IntArray, level: float
) -> tuple[float, str]:
    """Return the log of an e-value against "all processes draw from one law", and the difference in
    words: no words if the e-value is below 1 / level.

    first: certified draws of the first process.  others: one tally for each new process.
    """
    found = _of_blocks([first, *others], guesses)
    evidence = log_mean(one for one, _ in found)
    if evidence < -math.log(level):
        return evidence, ""
    place = max(range(len(found)), key=lambda one: found[one][0])
    arm, number = divmod(place, len(found) // 2)
    event = level_sets(sum(others, first).counts[:, arm], guesses)[number]
    draws, *more = (int(one.counts[:, arm].sum()) for one in (first, *others))
    here, *there = (100 * one.counts[event, arm].sum() for one in (first, *others))
    shares = [inside / size for inside, size in zip(there, more, strict=True) if size]
    low, high = min(shares, default=0.0), max(shares, default=0.0)
    own = f"came up in {here / max(1, draws):.3g} % of" if here else "never came up in"
    new = f"in {low:.3g} % to {high:.3g} % of" if high else "never in"
    return evidence, _FROM_PROCESSES.format(found[place][1], level, own, draws, new)


def doubt(tallies: Sequence[Tally], guesses: IntArray) -> float:
    """Return the log of the e-value of certification draws that differ from block to block.

    Whatever it made of them, draws that were made later give another one, and the product of both
    is one again: its expectation, given the first, is at most the first. A test that goes on in
    this way may warn at either look, at the level of one (Ville).
    """
    return log_mean(one for one, _ in _of_blocks(tallies, guesses))


def _of_blocks(tallies: Sequence[Tally], guesses: IntArray) -> list[Evidence]:
    counts = np.stack([tally.counts for tally in tallies])  # (blocks, levels, arms)
    return [
        (log_evidence(by_block[:, chosen].sum(axis=1), by_block.sum(axis=1)), name)
        for name, by_block in (("d1", counts[:, :, 0]), ("d2", counts[:, :, 1]))
        for chosen in level_sets(by_block.sum(axis=0), guesses)
    ]


def judged(
    found: Sequence[Evidence], level: float, difference: Difference, before: float = 0.0
) -> list[str]:
    """Return what to say of e-values, of one event and one input each, whose mean is one again.

    before: the log of one of other draws, which came first."""
    evidence = before + log_mean(one for one, _ in found)
    if evidence < -math.log(level):
        return []
    words = difference.words.format(max(found)[1])
    if evidence >= -math.log(IMPOSSIBLE):
        raise DependentDrawsError(f"{words} can (p < {IMPOSSIBLE:g}){difference.cause}")
    return [f"{words} should (p < {math.exp(-evidence):.1e}), but {difference.advice}"]


def _runs(arm: BoolArray, blocks: Sequence[int]) -> IntArray:
    """Return, for every draw of an input, the number of its run: a quarter of its block's draws of
    that input, in order."""
    parts = np.split(arm, np.cumsum(blocks)[:-1])
    runs = [len(run) for part in parts for run in np.array_split(part[part], _RUNS)]
    return np.repeat(np.arange(len(runs)), runs)


def _events(draws: SelectionDraws) -> Iterator[BoolArray]:
    """Yield events whose frequency may tell calls apart: entries up to a quantile."""
    for column in filter(is_telling, draws.outcomes.columns[:_COLUMNS]):
        values = numbers(column)
        cuts = np.unique(np.quantile(values, _QUANTILES, method="lower"))
        yield from (values <= cut for cut in cuts)


def level_sets(counts: IntArray, guesses: IntArray) -> list[BoolArray]:
    """Return sets of levels: those that speak for d1, for d2, and the lower half, as nearly as
    levels allow."""
    lower = np.cumsum(counts)
    half = np.argmin(np.abs(lower - lower[-1] / 2))
    return [guesses > 0, guesses < 0, np.arange(len(counts)) <= half]
