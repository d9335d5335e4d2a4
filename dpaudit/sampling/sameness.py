"""Whether all outputs are one and the same, so that an audit had nothing to look at."""

from __future__ import annotations

import numpy as np

from dpaudit.draws import SelectionDraws
from dpaudit.errors import MechanismError
from dpaudit.outcomes import Column
from dpaudit.stats.binomial import clopper_pearson_upper
from dpaudit.tally import Tally

# What comes out of a computation that gave nothing.
_EMPTY = {"None", "NaN"}


def check_varied(draws: SelectionDraws, level: float) -> list[str]:
    """Return a warning when all draws of both inputs gave the same output, with a bound of this
    error probability for what was never seen."""
    if not _are_alike(draws):
        return []
    fewest = min(int(draws.is_d1.sum()), int((~draws.is_d1).sum()))
    hidden = clopper_pearson_upper(0, fewest, level)
    return [
        f"all {draws.size:,} learning draws are {draws.outcomes.word(0)}, for both d1 and d2; is "
        "this intended? An output that never came up may still have a probability of up to "
        f"{hidden:.2g} for one input alone"
    ]


def check_computed(draws: SelectionDraws, later: Tally) -> None:
    """Raise MechanismError when every output was None, NaN or infinite: nothing was computed.

    later: the draws after those, by level, which count too: a mechanism may return None nearly
    always, and what it returns otherwise be what matters.
    """
    columns = draws.outcomes.columns
    levels = int((later.counts.sum(axis=1) > 0).sum())
    if levels <= 1 and _are_alike(draws) and columns and all(map(_is_empty, columns)):
        word, cause = draws.outcomes.word(0), "did the function forget to return?"
        if word != "None":
            cause = "an overflow, a division by zero, or a missing value among the inputs?"
        raise MechanismError(f"every output was {word}: {cause}")


def _are_alike(draws: SelectionDraws) -> bool:
    keys = draws.outcomes.keys()
    return draws.size > 0 and bool((keys == keys[0]).all())


def _is_empty(column: Column) -> bool:
    """Whether the one entry of a column is what a failed computation leaves."""
    if column.codes is not None and column.codes[0] > 0:
        return column.labels[column.codes[0] - 1] in _EMPTY
    return not np.isfinite(column.numbers[0])
