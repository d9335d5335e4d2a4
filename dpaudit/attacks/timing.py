"""The attack on time: how long a call took, in bins chosen on selection draws."""

from __future__ import annotations

from dataclasses import replace

from dpaudit.attacks.one_dimensional import orders_of
from dpaudit.draws import SelectionDraws
from dpaudit.levels.candidate import Candidate
from dpaudit.outcomes.units import ELAPSED


def elapsed(selection: SelectionDraws) -> list[Candidate]:
    """Order outcomes by the duration of their calls."""
    durations = selection.outcomes.column(ELAPSED)
    return [replace(one, attack=f"time: {one.attack}") for one in orders_of(durations, selection)]
