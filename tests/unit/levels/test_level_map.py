"""Numbers that equal a known number up to rounding have its level; all others have their own."""

from __future__ import annotations

import numpy as np

from dpaudit.attacks.single_outputs import atoms
from dpaudit.draws import SelectionDraws
from dpaudit.levels.candidates import UnorderedCells
from dpaudit.levels.level_map import LevelMap, NearLevels
from dpaudit.outcomes import from_raw

KNOWN = [0.1, 0.1, 0.3, 0.3, 0.0, 0.0, -0.0, -0.0, 7.0]


def level_map() -> LevelMap:
    draws = SelectionDraws(from_raw(KNOWN * 50), np.arange(len(KNOWN) * 50) % 2 == 0)
    (found,) = atoms(draws)
    assert isinstance(found, UnorderedCells)
    assert found.cell_counts is not None
    return found.cell_counts.cells


def test_rounding_does_not_change_the_level() -> None:
    level, numbers = level_map(), np.array(KNOWN)
    near = NearLevels.of(level, numbers)
    rounded = numbers * (1 + 1e-15)
    assert near(from_raw(rounded)).tolist() == [*level(from_raw(numbers[:-1])), level.levels - 1]
