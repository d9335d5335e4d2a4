"""Define `assert_kills`, the assertion that an audit would notice typical bugs of a mechanism."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any, Unpack

from dpaudit.api import spec_of
from dpaudit.auditing.options import DEFAULTS
from dpaudit.claims import PrivacyClaim
from dpaudit.errors import UsageError
from dpaudit.inputs.adjacency import parse_adjacency
from dpaudit.inputs.pairs import NeighbouringPair, describe_pair
from dpaudit.mutating.kinds import KINDS, checked
from dpaudit.mutating.scoring import Mutation, mutated
from dpaudit.reports.mutation_report import as_text, summary
from dpaudit.testing.assertions import AssertionOptions, parted
from dpaudit.testing.session import current


def assert_kills(
    mechanism: Callable[..., Any] | str,
    d1: Any,
    d2: Any,
    claim: PrivacyClaim | None = None,
    *,
    kinds: Sequence[str] = tuple(KINDS),
    min_score: float = 1.0,
    total: float = math.inf,
    **options: Unpack[AssertionOptions],
) -> Mutation:
    """Fail the test unless an audit notices typical bugs that are planted in the mechanism.

    Parameters
    ----------
    mechanism : callable or str
        A function of a file, or an import path such as `mine.py:noisy_count`.
    d1, d2, claim, **options
        The audit, as in `assert_private`.
    kinds : sequence of str
        The kinds of bugs to plant, such as `"scale-halved"` (docs/guides/mutate.md). Default: all.
    min_score : float, default 1
        Smallest share of killed bugs, among those that are killed or shown to leak, in [0, 1].
    total : float, optional
        Time limit for everything, in seconds. Bugs that are left then are not run, and the test
        fails.

    Returns
    -------
    Mutation
        The planted bugs, and what the audit says of each.

    Raises
    ------
    AssertionError
        If the score is below `min_score`, if no bug was killed or missed, or if a bug was not run.
        The message is the report.
    UsageError
        If the arguments are invalid, or if the function cannot be imported from its file.

    Notes
    -----
    The audit runs once for each bug, in a process of its own, with the draws of the options. The
    score says nothing about bugs that were not planted, nor about other inputs.
    """
    __tracebackhide__ = True
    keywords, claim = parted(claim, options)
    keywords = current().options(keywords)
    arguments = {**DEFAULTS, **keywords, "mechanism": _path(mechanism), "claim": claim}
    adjacency = parse_adjacency(keywords.get("adjacency"))
    pair = NeighbouringPair(d1, d2, adjacency, describe_pair(d1, d2))
    result = mutated([spec_of(arguments, (pair,))], checked(kinds), total)
    if result.score is None or result.score < min_score or not result.is_complete:
        raise AssertionError(f"{summary(result)}\n\n{as_text(result)}")
    return result


def _path(mechanism: Callable[..., Any] | str) -> str:
    """Return the import path of a mechanism by its file: another process imports it there."""
    if isinstance(mechanism, str):
        return mechanism
    if not inspect.isfunction(mechanism) or not mechanism.__qualname__.isidentifier():
        raise UsageError(
            f"{mechanism!r} cannot be imported by another process; give a function that a file "
            "defines at its top level, or an import path",
            code="not-picklable",
        )
    return f"{inspect.getsourcefile(mechanism)}:{mechanism.__qualname__}"
