"""Tests that the distribution of draws is the same in all calls and blocks (docs/method.md §11,
*Draws of one call*).

The tests of `independence.py` compare single draws; these compare the counts of groups of draws. A
check returns warnings in words if chance rarely explains the counts, and raises DependentDrawsError
if chance is excluded (p < 1e-12). An *e-value* has expectation at most 1 for independent draws, so
that it exceeds 1 / α with probability at most α. The parameters of all checks:

level
    The probability of a warning for independent draws.
blocks
    The number of draws in each block, in order.
tallies
    The counts of draws by level and input, one tally for each block.
guesses
    The guess at each level, (levels,).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpaudit.draws import SelectionDraws, Tally
from dpaudit.sampling.independence import (
    IMPOSSIBLE,
    DependentDrawsError,
    beginning,
    is_informative,
    numbers,
)
from dpaudit.stats.dependence import log_e_value, log_mean_e_value

BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]
# A pair: the log of an e-value (evidence against independent draws), and the name of the tested
# draws for messages, such as "d1".
Evidence = tuple[float, str]

# The draws of one input in a block are split into this number of runs (successive draws), whose
# distributions are compared. In a small learning block, the sampler calls the mechanism 4 times for
# each input, so each run contains the draws of one call.
_RUNS = 4
# _MAX_CALL_COLUMNS: largest number of columns of the output that are compared between runs of
#     draws.
# _QUANTILES: for each of these quantiles of a column, the frequency of the event "the value is at
#     most the quantile" is compared.
_MAX_CALL_COLUMNS, _QUANTILES = 8, (0.25, 0.5, 0.75)


@dataclass(frozen=True, slots=True)
class DriftWords:
    """Texts of a message that the distribution of draws changes between calls or parts of a file.

    words: statement of the change, with the placeholder {} for the name of the tested draws.
    cause: the likely cause, for an error.
    advice: questions for the user, for a warning.
    """

    words: str
    cause: str
    advice: str


_CALLS = DriftWords(
    "outputs for {} differ from call to call more than independent draws",
    ": many outputs share one noise value, or a state changes from call to call; draw fresh noise "
    "for every output and keep nothing between calls",
    "every bound is for independent draws; do the outputs of a call share noise, or does the "
    "mechanism keep state between calls?",
)


def check_calls(draws: SelectionDraws, blocks: Sequence[int], level: float) -> list[str]:
    """Return a warning if the distribution of learning draws changes from call to call, else [].
    The compared events are of the form "a column of the output is at most a quartile". Events of
    learned rules would not do: rules fit the draws from which they were learned better than other
    draws."""
    return judged(_between_calls(draws, blocks), level, _CALLS)


def check_further(
    draws: SelectionDraws,
    tallies: Sequence[Tally],
    guesses: IntArray,
    level: float,
    before: float = 0.0,
) -> list[str]:
    """Return a warning if the distribution of further draws changes from call to call, else [].
    These draws were made for this check alone. They are compared by quartiles, as in `check_calls`,
    and by levels, as in `check_blocks`.

    before: log of the e-value of the certification draws, from `doubt`. The e-value of the further
        draws is multiplied by that e-value.
    """
    evidence = _between_calls(draws, [tally.draws for tally in tallies])
    return judged(evidence + _between_blocks(tallies, guesses), level, _CALLS, before)


def check_blocks(tallies: Sequence[Tally], guesses: IntArray, level: float) -> list[str]:
    """Return a warning if the distribution over a rule's levels changes between blocks, else [].
    The rule must have been fixed before these draws.

    No call of the mechanism gives draws to two blocks. So a change between blocks shows noise that
    all draws of a call share, or a state that calls change.
    """
    return judged(_between_blocks(tallies, guesses), level, _CALLS)


def doubt(tallies: Sequence[Tally], guesses: IntArray) -> float:
    """Return the log of an e-value against the hypothesis that all certification blocks have one
    distribution.

    Its product with the e-value of later draws is an e-value, too. So a test may use this one first
    and, if it gives no warning, the product after the later draws. One error probability covers
    both (Ville's inequality).
    """
    return log_mean_e_value(log for log, _ in _between_blocks(tallies, guesses))


def judged(
    every: Sequence[Evidence], level: float, difference: DriftWords, before: float = 0.0
) -> list[str]:
    """Return a warning that draws are dependent if the mean of the e-values in `every` is at least
    1 / level, else []. The mean is an e-value, too, even if the e-values depend on each other.

    every: pairs (log of an e-value, name of its draws).
    before: log of an e-value of earlier draws, by which the mean is multiplied.
    """
    evidence = before + log_mean_e_value(log for log, _ in every)
    if evidence < -math.log(level):
        return []
    words = difference.words.format(max(every)[1])
    if evidence >= -math.log(IMPOSSIBLE):
        message = f"{words} can (p < {IMPOSSIBLE:g}){difference.cause}"
        raise DependentDrawsError(message, code="draws-differ")
    return [f"{words} should (p < {math.exp(-evidence):.1e}), but {difference.advice}"]


def _between_calls(draws: SelectionDraws, blocks: Sequence[int]) -> list[Evidence]:
    """Return e-values against equal distributions in the quarters of blocks, by input and event."""
    draws = beginning(draws)
    events = [
        values <= cut
        for column in filter(is_informative, draws.outcomes.columns[:_MAX_CALL_COLUMNS])
        for values in [numbers(column)]
        for cut in np.unique(np.quantile(values, _QUANTILES, method="lower"))
    ]
    every: list[Evidence] = []
    for name, arm in (("d1", draws.is_d1), ("d2", ~draws.is_d1)):
        parts = np.split(arm, np.cumsum(blocks)[:-1])
        lengths = [len(run) for part in parts for run in np.array_split(part[part], _RUNS)]
        runs = np.repeat(np.arange(len(lengths)), lengths)
        sizes = np.bincount(runs)
        for inside in events:
            counts = np.bincount(runs, weights=inside[arm]).astype(np.int64)
            every.append((log_e_value(counts, sizes), name))
    return every


def _between_blocks(tallies: Sequence[Tally], guesses: IntArray) -> list[Evidence]:
    """Return e-values against "all blocks have one distribution", for each input and event."""
    counts = np.stack([tally.counts for tally in tallies])  # (blocks, levels, arms)
    return [
        (log_e_value(by_block[:, chosen].sum(axis=1), by_block.sum(axis=1)), name)
        for name, by_block in (("d1", counts[:, :, 0]), ("d2", counts[:, :, 1]))
        for chosen in level_sets(by_block.sum(axis=0), guesses)
    ]


def level_sets(counts: IntArray, guesses: IntArray) -> list[BoolArray]:
    """Return three masks of shape (levels,), each of a set of levels that should be equally
    frequent in all blocks. The first has the levels with the guess d1, the second those with the
    guess d2, and the third the lowest levels with about half of all draws. `counts` has the draws
    at each level."""
    lower = np.cumsum(counts)
    half = np.argmin(np.abs(lower - lower[-1] / 2))
    return [guesses > 0, guesses < 0, np.arange(len(counts)) <= half]
