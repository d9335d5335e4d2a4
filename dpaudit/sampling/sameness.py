"""Whether all outputs are one and the same, so that an audit had nothing to look at."""

from __future__ import annotations

import numpy as np

from dpaudit.draws import SelectionDraws
from dpaudit.errors import MechanismError
from dpaudit.outcomes import Column
from dpaudit.stats.binomial import clopper_pearson_upper

# What comes out of a computation that gave nothing.
_EMPTY = {"None", "NaN"}


def check_varied(draws: SelectionDraws, level: float) -> list[str]:
    """Return a warning when all draws of both inputs gave the same output.

    level: error probability of the bound for what was never seen.
    Raises MechanismError when that output is None, NaN or infinite: nothing was computed.
    """
    keys = draws.outcomes.keys()
    if draws.size == 0 or (keys != keys[0]).any():
        return []
    word = draws.outcomes.word(0)
    columns = draws.outcomes.columns
    if columns and all(map(_is_empty, columns)):
        raise MechanismError(f"every output was {word}: {_cause(word)}")
    fewest = min(int(draws.is_d1.sum()), int((~draws.is_d1).sum()))
    hidden = clopper_pearson_upper(0, fewest, level)
    return [
        f"all {draws.size:,} outputs that were looked at are {word}, for d1 and d2 alike; is that "
        f"meant? An output that never came up may still have a probability of up to {hidden:.2g} "
        "for one input alone"
    ]


def _cause(word: str) -> str:
    if word == "None":
        return "did the function forget to return?"
    return "an overflow, a division by zero, or a missing value among the inputs?"


def _is_empty(column: Column) -> bool:
    """Whether the one entry of a column is what a failed computation leaves."""
    if column.codes is not None and column.codes[0] > 0:
        return column.labels[column.codes[0] - 1] in _EMPTY
    return not np.isfinite(column.numbers[0])
