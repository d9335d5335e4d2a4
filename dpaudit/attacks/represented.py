"""The attack on how outputs are represented: types, signs of zero, orders of keys, digits."""

from __future__ import annotations

from dataclasses import replace

from dpaudit.attacks.single_columns import ONE_COLUMN, orders_of_telling
from dpaudit.draws import SelectionDraws
from dpaudit.levels.candidate import Candidate

NAME = "representation: "


def represented(selection: SelectionDraws) -> list[Candidate]:
    """Order outputs by what a recipient sees of them and Python does not compare, for each of the
    most telling places."""
    columns = selection.outcomes.representations
    found = orders_of_telling(selection, columns) if len(columns) else []
    return [replace(one, attack=f"{NAME}{one.attack.removeprefix(ONE_COLUMN)}") for one in found]
