"""All scorers, in order of preference: of equally good candidates, that of the first scorer is
used.

`learning.py` lists the scorers for outcomes with one column itself. It imports this module for
outcomes with several columns, and for scorers that an option turns on. `dpaudit list attacks`
prints the first paragraph of the docstring of each scorer.
"""

from __future__ import annotations

from collections.abc import Set

from dpaudit.attacks.additive import additive, exchangeable
from dpaudit.attacks.agreements import agreements
from dpaudit.attacks.blocks import kinds, parts
from dpaudit.attacks.prefixes import banded, prefixes
from dpaudit.attacks.single_columns import (
    bits,
    elapsed,
    one_dimensional,
    represented,
    single_columns,
)
from dpaudit.attacks.single_outputs import atoms
from dpaudit.attacks.weighted_sums import logistic, mean_differences
from dpaudit.attacks.whitened import innovations
from dpaudit.levels.candidates import Scorer

# Scorers over several columns. They are left out where outcomes have at most 8 different values: a
# list of these values is as powerful, and a reader can check it by hand.
OF_SEVERAL_COLUMNS: tuple[Scorer, ...] = (
    agreements,  # labels and integers: whether two entries are equal
    additive,  # sum over columns of log-ratios
    innovations,  # the same of each number minus its prediction from the numbers before it
    prefixes,  # sequences: log-ratio of each entry, given the entries before it
    banded,  # the same, with numbers replaced by bands
    logistic,  # logistic regression
    mean_differences,  # weighted sum of more than 512 columns
    parts,  # sum over independent blocks of columns, each by its best scorer
    kinds,  # by type of output, each by its best scorer
)
# Scorers that need no option, in order of preference: of equally good candidates the first one
# wins. The last scorers give events that take longer to describe.
SCORERS: tuple[Scorer, ...] = (
    one_dimensional,  # outcomes of one column, by size or by cell
    single_columns,  # the most informative of several columns, in the same way
    *OF_SEVERAL_COLUMNS,
    represented,  # details that == ignores: types, the sign of zero, the order of keys
    atoms,  # whole outputs, each by its own frequency
)
# Scorers that an option adds, by the name of the option. They also get outcomes with one column.
OPTIONAL: dict[str, Scorer] = {
    "repeat": exchangeable,  # lists of independent runs: sum over runs of log-ratios
    "floating_point": bits,
    "timing": elapsed,
}


def scorers_for(switches: Set[str]) -> tuple[Scorer, ...]:
    """Return the scorers of every audit, and after them those that the options `switches` turn
    on."""
    return (*SCORERS, *optional_scorers(switches))


def optional_scorers(switches: Set[str]) -> tuple[Scorer, ...]:
    return tuple(scorer for name, scorer in OPTIONAL.items() if name in switches)
