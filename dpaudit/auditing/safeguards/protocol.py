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
    """Counts of blocks of draws, all of one stage, by the levels of one portfolio.

    rule: the portfolio.

    guesses: (levels,), the guess of one of its rules at each level.
    tallies: the tally of each block.
    learning_draws: the sample buffer, and later learning draws with rare outputs; None while
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
    in_turns: whether the rows of both inputs are in one recording, in the order of the draws.
    rule: the portfolio, if these are the rows that the exact test has counted; None: these are all
        rows.
    """

    outcomes: Outcomes
    is_d1: NDArray[np.bool_]
    in_turns: bool
    rule: Portfolio | None = None


class Safeguard:
    """A safeguard that does nothing. A subclass overrides the methods that it needs."""

    def observe(self, draws: KeptDraws | CountedBlocks | RecordedRows) -> list[str]:
        """Return warnings about draws, or raise MechanismError."""
        return []

    def judge(self, certificate: Certificate, counts: CountedBlocks) -> Certificate:
        """Return the certificate with warnings and notes added, or raise MechanismError. `counts`
        are the certifying draws, counted by the frozen rules."""
        return certificate

    def explain(self, error: MechanismError) -> MechanismError:
        """Return the error that ended the audit of the pair. The cause is added if this safeguard
        knows it."""
        return error


class PairSafeguard(Safeguard):
    """A safeguard for a pair whose draws dpaudit makes itself."""

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
    """Return the certificate with more warnings and notes, some before and some after its own."""
    return replace(
        certificate,
        warnings=(*first, *certificate.warnings, *last),
        notes=(*first_notes, *certificate.notes, *last_notes),
    )
