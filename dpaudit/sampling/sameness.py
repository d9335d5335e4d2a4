"""Whether all outputs are one and the same, so that an audit had nothing to look at."""

from __future__ import annotations

import numpy as np

from dpaudit.errors import MechanismError
from dpaudit.outcomes import Column, Outcomes
from dpaudit.stats.binomial import clopper_pearson_upper

# What comes out of a computation that gave nothing.
_EMPTY = {"None", "NaN"}


def all_equal(outcomes: Outcomes) -> bool:
    """Return whether there are outcomes, and all are one output."""
    keys = outcomes.keys()
    return len(keys) > 0 and bool((keys == keys[0]).all())


def constant(output: str, arms: tuple[int, int], level: float) -> str:
    """Return a warning that all draws gave one output, with a bound of this error probability for
    any other output. arms: draws of d1 and of d2."""
    hidden = clopper_pearson_upper(0, min(arms), level)
    return (
        f"all {sum(arms):,} draws are {output}, for both d1 and d2; is this intended? An output "
        f"that never came up may still have a probability of up to {hidden:.2g} for one input alone"
    )


def check_computed(outcomes: Outcomes) -> None:
    """Raise MechanismError when the one output of all draws is None, NaN or infinite: nothing was
    computed."""
    columns = outcomes.columns
    if columns and all(map(_is_empty, columns)):
        word, cause = outcomes.word(0), "did the function forget to return?"
        if word != "None":
            cause = "an overflow, a division by zero, or a missing value among the inputs?"
        raise MechanismError(f"every output was {word}: {cause}")


def _is_empty(column: Column) -> bool:
    """Whether the one entry of a column is what a failed computation leaves."""
    if column.codes is not None and column.codes[0] > 0:
        return column.labels[column.codes[0] - 1] in _EMPTY
    return not np.isfinite(column.numbers[0])
