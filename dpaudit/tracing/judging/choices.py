"""Discrete choices whose probabilities depend on the data: as findings."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dpaudit.certificates.traced import Finding
from dpaudit.claims import PrivacyClaim
from dpaudit.tracing.costs import law_exceeds
from dpaudit.tracing.judging.sites import choice_cost
from dpaudit.tracing.runs.coupling import Runs
from dpaudit.tracing.wording import number, shown


def of_choices(runs: Runs, claim: PrivacyClaim | None) -> Iterator[Finding]:
    """Yield discrete choices whose probabilities depend too much on the data."""
    for pair in runs.coupled:
        for one in pair.comparison.chosen:
            first, second = map(np.asarray, one.probabilities)
            if first.shape != second.shape or np.array_equal(first, second):
                continue
            if one.is_coin:
                each = zip(first.tolist(), second.tolist(), strict=True)
                laws = [(np.array([p, 1 - p]), np.array([q, 1 - q])) for p, q in each]
            else:
                laws = [(first, second)]
            if any(law_exceeds(*law, claim) for law in laws):
                cost = choice_cost(one)
                words = (
                    f"`{one.place.code}` chooses with probabilities that depend on the data: "
                    f"ε = {number(cost)}"
                )
                # Where the same outcome means something else, as an interval between records
                # does, its probability says nothing by itself.
                means_the_same = not any(
                    each.comparison.differing or each.comparison.ranges for each in runs.coupled
                )
                is_picked = any(map(_is_picked_from_data, one.parameters))
                is_cause = means_the_same and not is_picked
                callers = tuple(map(shown, one.callers))
                line = shown(one.place)
                yield Finding("data-dependent-choice", is_cause, line, words, "", callers, cost)


def _is_picked_from_data(parameters: dict[str, object]) -> bool:
    """Whether a choice may be one of records, of which another number is no leak by itself."""
    return "n" in parameters and "p" not in parameters
