"""The protocol of safeguards, and what they observe."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dpaudit.auditing.ledger import Ledger
from dpaudit.auditing.source import Source
from dpaudit.certificates.certificate import Certificate
from dpaudit.certificates.evidence import Stage
from dpaudit.draws import SelectionDraws, Tally
from dpaudit.errors import MechanismError
from dpaudit.levels.portfolio import Portfolio
from dpaudit.outcomes import Outcomes
from dpaudit.sampling.independence import CHECKS, WARNING_ALPHA


@dataclass(frozen=True, slots=True, eq=False)
class KeptDraws:
    """Learning draws in memory: a block, or the whole sample buffer if `is_complete`."""

    draws: SelectionDraws
    is_complete: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class CountedBlocks:
    """Blocks of draws of one stage that one portfolio of rules has counted.

    guesses: (levels,), the guesses of one of them.
    tallies: the counts of each block.
    learning_draws: the learning draws in memory, and later ones with rare outputs; None while
        learning.
    """

    stage: Stage
    rule: Portfolio
    guesses: NDArray[np.int64]
    tallies: Sequence[Tally]
    learning_draws: SelectionDraws | None = None


@dataclass(frozen=True, slots=True, eq=False)
class RecordedRows:
    """Recorded rows, in the order of the recording.

    is_d1: (rows,), whether the input of each row was d1.
    in_turns: whether one recording has the rows of both inputs, in the order of the draws.
    rule: None for all rows; else the rules that counted these rows for the exact test.
    """

    outcomes: Outcomes
    is_d1: NDArray[np.bool_]
    in_turns: bool
    rule: Portfolio | None = None


class Safeguard:
    """One safeguard; a subclass overrides the methods that it needs."""

    def observe(self, draws: KeptDraws | CountedBlocks | RecordedRows) -> list[str]:
        """Return warnings about draws, or raise MechanismError."""
        return []

    def judge(self, certificate: Certificate, counts: CountedBlocks) -> Certificate:
        """Return the certificate with warnings and notes, or raise MechanismError. `counts` are the
        draws that the frozen rule has counted."""
        return certificate

    def explain(self, error: MechanismError) -> MechanismError:
        """Return an error of the audit of the pair, with its cause if this safeguard knows it."""
        return error


class PairSafeguard(Safeguard):
    """A safeguard of one pair from which dpaudit draws."""

    def __init__(self, source: Source, ledger: Ledger) -> None:
        self._source, self._ledger, self._spec = source, ledger, source.spec
        self._pair = source.spec.pairs[ledger.number]
        # Probability of a false warning, for one check of this pair.
        self._level = 1 / len(source.spec.pairs) * WARNING_ALPHA / CHECKS

    def _is_in_doubt(self, certificate: Certificate) -> bool:
        """Return whether the certificate refutes the claim, alone or in its family."""
        return certificate.refuted or self._spec.may_refute(certificate.p_value)


def remarked(
    certificate: Certificate,
    *,
    first: Sequence[str] = (),
    last: Sequence[str] = (),
    first_notes: Sequence[str] = (),
    last_notes: Sequence[str] = (),
) -> Certificate:
    """Return the certificate with warnings and notes before and after those that it has."""
    return replace(
        certificate,
        warnings=(*first, *certificate.warnings, *last),
        notes=(*first_notes, *certificate.notes, *last_notes),
    )
