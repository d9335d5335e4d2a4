"""Whether all outputs are one and the same, so that an audit had nothing to look at; and whether a
part of them never repeats, so that it hides the others."""

from __future__ import annotations

import numpy as np

from dpaudit.draws import SelectionDraws
from dpaudit.errors import MechanismError
from dpaudit.outcomes import Column, Outcomes
from dpaudit.stats.binomial import clopper_pearson_upper

# What comes out of a computation that gave nothing.
_EMPTY = {"None", "NaN"}
# Draws by which a number that never repeats is known, and the share of distinct values of a part
# that repeats, at most.
_MANY, _REPEATING = 500, 0.1


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


def never_repeated(draws: SelectionDraws) -> list[str]:
    """Return a note on a whole number, or a text, that is another one in every draw, next to a part
    of the output that repeats: the seed of a hash function, as a rule, without which no event says
    what the other part means."""
    columns = draws.outcomes.columns
    if draws.size < _MANY or len(columns) < 2:
        return []
    # Noise is a column of other numbers, which need not be sorted to be left out.
    discrete = [one for one in columns if _is_discrete(one) and _distinct(one) == draws.size]
    if not discrete or min(map(_distinct, columns)) > draws.size * _REPEATING:
        return []
    return [
        f"{discrete[0].name} was another one in each of {draws.size:,} draws. If it is the seed of "
        "a hash function, as in local hashing, no event can use it: let --post-process (YAML: "
        "post_process) make of each output the values that it supports"
    ]


def _distinct(column: Column) -> int:
    return len(np.unique(column.keys()))


def _is_discrete(column: Column) -> bool:
    """Whether all entries are texts, or whole numbers: other numbers are noise."""
    if column.codes is not None and np.all(column.codes > 0):
        return True
    numbers = column.numbers
    return column.codes is None and bool(np.all(numbers == np.rint(numbers)))


def _is_empty(column: Column) -> bool:
    """Whether the one entry of a column is what a failed computation leaves."""
    if column.codes is not None and column.codes[0] > 0:
        return column.labels[column.codes[0] - 1] in _EMPTY
    return not np.isfinite(column.numbers[0])
