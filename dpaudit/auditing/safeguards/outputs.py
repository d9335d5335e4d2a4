"""Remark on properties of outputs that no attack examines, and on how outputs were read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dpaudit.attacks.single_columns import has_fractions, has_integers
from dpaudit.auditing.safeguards.protocol import (
    CountedBlocks,
    KeptDraws,
    PairSafeguard,
    RecordedRows,
    remarked,
)
from dpaudit.certificates.certificate import Certificate, EventCount
from dpaudit.claims import PrivacyClaim
from dpaudit.draws import SelectionDraws
from dpaudit.inputs.pairs import Side
from dpaudit.levels.portfolio import Portfolio
from dpaudit.outcomes import Outcomes, narrowed
from dpaudit.outcomes.texts import how_read
from dpaudit.sampling.independence import never_repeated
from dpaudit.wording import shortened

# Number of learning draws among which examples are looked for, and number of examples of each kind.
_MAX_LOOKED_AT, _MAX_EXAMPLES = 1_000, 2
# Matches a number with at least 4 decimals, which an example shows with 3 digits.
_FRACTION = re.compile(r"-?\d+\.\d{4,}(?:e[+-]?\d+)?")


class Outputs(PairSafeguard):
    _buffer: SelectionDraws

    def observe(self, draws: KeptDraws | CountedBlocks | RecordedRows) -> list[str]:
        if not (isinstance(draws, KeptDraws) and draws.is_complete):
            return []
        self._buffer = draws.draws
        warning = narrowed(self._buffer.outcomes)
        return [warning] if warning else []

    def judge(self, certificate: Certificate, counts: CountedBlocks) -> Certificate:
        buffer, statistics = self._buffer, self._spec.statistics
        examples: list[str] = []
        if self._is_in_doubt(certificate):
            events = certificate.fixed.events
            examples = _examples(events, buffer, counts.rule, counts.guesses)
        unexamined = unsearched(
            buffer.outcomes,
            floating_point=statistics.floating_point,
            timing=statistics.timing or isinstance(self._pair.d1, Side),
        )
        return remarked(
            replace(certificate, ignored=(*certificate.ignored, *unexamined)),
            last_notes=[
                *integer_noise(self._spec.tested, buffer.outcomes),
                *never_repeated(buffer),
                *how_read(buffer.outcomes.contents),
                *examples,
            ],
        )


def integer_noise(claim: PrivacyClaim, outcomes: Outcomes) -> tuple[str, ...]:
    """Return the claim's note about integer outputs in a tuple. The tuple is empty if the claim has
    no such note, or if not all outputs are integers."""
    note = claim.note_for_integers()
    return (note,) if note is not None and has_integers(outcomes) else ()


def unsearched(
    outcomes: Outcomes, *, floating_point: bool = False, timing: bool = False, command: str = ""
) -> list[str]:
    """Return remarks on properties of float outputs that no attack has examined, such as low-order
    bits. Each names the flag that adds an attack for it.

    floating_point, timing: whether the audit has these options.
    command: a command to name before the flag, if it is not the one that is running.
    """
    searched = {
        "low-order bits of floats": (floating_point, "--floating-point"),
        "elapsed times": (timing, "--timing"),
    }
    return [
        f"{name} ({command}{flag})"
        for name, (is_searched, flag) in searched.items()
        if not is_searched and has_fractions(outcomes)
    ]


def _examples(
    events: Sequence[EventCount],
    selection: SelectionDraws,
    portfolio: Portfolio,
    guesses: NDArray[np.int64],
) -> list[str]:
    """Return a note with examples of outputs, if events are about a score."""
    if not any(event.words.startswith("score ") for event in events):
        return []
    first = selection.outcomes.take(slice(0, _MAX_LOOKED_AT))
    examples: list[tuple[str, str]] = []
    at = guesses[portfolio(first)]
    for guess, where in ((1, "point to d1"), (-1, "point to d2"), (0, "point to neither")):
        words = first.words(np.flatnonzero(at == guess)[:_MAX_EXAMPLES].tolist())
        short = [_FRACTION.sub(lambda number: f"{float(number[0]):.3g}", word) for word in words]
        examples += [(" and ".join(map(shortened, short)), where)] if short else []
    examples = examples[:2]
    # Outputs with equal beginnings look alike after they are shortened, and explain nothing.
    if len({shown for shown, _ in examples}) < 2:
        return []
    return [f"outputs seen while learning: {'; '.join(map(' '.join, examples))}"]
