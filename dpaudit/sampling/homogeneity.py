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
from dpaudit.errors import MechanismError
from dpaudit.sampling.independence import IMPOSSIBLE, beginning, is_telling, numbers
from dpaudit.stats.homogeneity import log_evidence, log_mean
from dpaudit.tally import Tally

BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]

# Each input's draws of a block are compared in so many runs, which the sampler's calls are.
_RUNS = 4
# Columns that are looked at, and where they are cut.
_COLUMNS = 8
_QUANTILES = (0.25, 0.5, 0.75)
_REMEDY = (
    "draw fresh noise for every output and keep nothing between calls; with --batch-arg none, "
    "dpaudit calls a batch function once for each output"
)


@dataclass(frozen=True, slots=True)
class Between:
    """What draws are compared between, and what it means that they differ.

    groups: as in "from call to call".  cause: of a difference, with the remedy.  question: whether
    that is the cause.
    """

    groups: str
    cause: str
    question: str


CALLS = Between(
    "from call to call",
    "many outputs share one noise value, or a state changes from call to call; " + _REMEDY,
    "do the outputs of a call share noise, or does the mechanism keep state between calls?",
)
PROCESSES = Between(
    "from process to process",
    "every process of the mechanism keeps something, such as noise that it draws once; draw fresh "
    "noise for every output and keep nothing between calls",
    "does a process of the mechanism keep something, such as noise that it draws once?",
)


def check_calls(draws: SelectionDraws, blocks: Sequence[int], level: float) -> list[str]:
    """Return a warning about learning draws that differ from call to call more than chance allows.

    blocks: sizes of the blocks that the draws were made in.  level: how likely a warning may be for
    independent draws.  What was learned is left out: it fits the draws that it was learned from
    better than later ones, and that is no sign of anything.
    Raises MechanismError for what independent draws cannot do.
    """
    draws = beginning(draws)
    found: list[tuple[float, str]] = []
    events = list(_events(draws))
    for name, arm in (("d1", draws.is_d1), ("d2", ~draws.is_d1)):
        runs = _runs(arm, blocks)
        sizes = np.bincount(runs)
        found += [
            (log_evidence(np.bincount(runs, weights=inside[arm]).astype(np.int64), sizes), name)
            for inside in events
        ]
    return _judged(found, level, CALLS)


def check_blocks(
    tallies: Sequence[Tally], guesses: IntArray, level: float, between: Between = CALLS
) -> list[str]:
    """Return a warning about certification draws that differ from block to block more than chance
    allows, as `check_calls` does of learning draws.

    tallies: of the blocks, in order; every one has calls, or a process, of its own for each input.
    """
    counts = np.stack([tally.counts for tally in tallies])  # (blocks, levels, arms)
    found: list[tuple[float, str]] = []
    for arm, name in enumerate(("d1", "d2")):
        by_block = counts[:, :, arm]
        found += [
            (log_evidence(by_block[:, chosen].sum(axis=1), by_block.sum(axis=1)), name)
            for chosen in level_sets(by_block.sum(axis=0), guesses)
        ]
    return _judged(found, level, between)


def _judged(found: Sequence[tuple[float, str]], level: float, between: Between) -> list[str]:
    differ = f"outputs for {{}} differ {between.groups} more than independent draws"
    advice = f"every bound is for independent draws; {between.question}"
    return judged(found, level, differ, f": {between.cause}", advice)


def judged(
    found: Sequence[tuple[float, str]], level: float, differ: str, cause: str, advice: str
) -> list[str]:
    """Return what to say of e-values, of one event and one input each, whose mean is one again.
    differ: of what is named, that it differs more than what is independent; cause: of what cannot
    be chance.
    """
    evidence = log_mean(one for one, _ in found)
    if evidence < -math.log(level):
        return []
    words = differ.format(max(found)[1])
    if evidence >= -math.log(IMPOSSIBLE):
        raise MechanismError(f"{words} can (p < {IMPOSSIBLE:g}){cause}")
    return [f"{words} should (p < {math.exp(-evidence):.1e}), but {advice}"]


def _runs(arm: BoolArray, blocks: Sequence[int]) -> IntArray:
    """Return, for every draw of an input, the number of its run: a quarter of its block's draws of
    that input, in order."""
    ends = np.minimum(np.cumsum(blocks), len(arm))
    starts = np.minimum(np.cumsum(blocks) - np.asarray(blocks), len(arm))
    sizes = [int(arm[start:end].sum()) for start, end in zip(starts, ends, strict=True)]
    runs = [
        len(part) for size in sizes for part in np.array_split(np.empty(size, dtype=bool), _RUNS)
    ]
    return np.repeat(np.arange(len(runs)), runs)


def _events(draws: SelectionDraws) -> Iterator[BoolArray]:
    """Yield events whose frequency may tell calls apart: entries up to a quantile."""
    for column in filter(is_telling, draws.outcomes.columns[:_COLUMNS]):
        values = numbers(column)
        cuts = np.unique(np.quantile(values, _QUANTILES, method="lower"))
        yield from (values <= cut for cut in cuts)


def level_sets(counts: IntArray, guesses: IntArray) -> list[BoolArray]:
    """Return sets of levels: those that speak for d1, for d2, and the lower half."""
    half = np.cumsum(counts) <= counts.sum() / 2
    return [guesses > 0, guesses < 0, half]
