"""Safeguards against results that are wrong about the mechanism (docs/method.md §11).

A safeguard watches the audit of one pair for one way in which its result could be wrong, such as
draws that depend on each other. All have one protocol (`protocol.Safeguard`); pair_audit.py knows
only their list:

observe(draws)
    Called for learning draws in memory (`KeptDraws`), for the blocks that a rule has counted
    (`CountedBlocks`), and for recorded rows (`RecordedRows`). Returns warnings.
judge(certificate, counts)
    Called once, in the order of the list, when the certificate is computed. Returns the certificate
    with warnings and notes. It may make further draws, which change no bound.
explain(error)
    Called if the audit of the pair ends with an error. Returns the error, with a cause if known.

`observe` and `judge` raise MechanismError if the result would be invalid. Warnings about the
mechanism stand before those about its draws, so a safeguard that is judged late puts them first.
Too few draws to refute the claim (underpowered.py) are judged for all pairs of an audit together.
"""

from dpaudit.auditing.ledger import Ledger
from dpaudit.auditing.safeguards.constants import Constants
from dpaudit.auditing.safeguards.inputs import InputTypes
from dpaudit.auditing.safeguards.kept_state import KeptState
from dpaudit.auditing.safeguards.outputs import Outputs
from dpaudit.auditing.safeguards.protocol import CountedBlocks, KeptDraws, PairSafeguard, Safeguard
from dpaudit.auditing.safeguards.redrawing import Redrawing
from dpaudit.auditing.safeguards.repeated_draws import RepeatedDraws
from dpaudit.auditing.safeguards.shared_noise import SharedNoise
from dpaudit.auditing.source import Source

__all__ = ["CountedBlocks", "KeptDraws", "Safeguard", "safeguards"]


def safeguards(source: Source, ledger: Ledger) -> tuple[Safeguard, ...]:
    """Return the safeguards of a pair, in the order in which they judge."""
    kinds: tuple[type[PairSafeguard], ...] = (
        RepeatedDraws,
        Outputs,
        Constants,
        SharedNoise,
        Redrawing,
        KeptState,
        InputTypes,
    )
    return tuple(kind(source, ledger) for kind in kinds)
