"""Single outputs that probabilistic DP is refuted by."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpaudit.attacks.atoms import count_atoms
from dpaudit.claims import ProfilePoint
from dpaudit.draws import SelectionDraws
from dpaudit.levels import tuning
from dpaudit.levels.distinguisher import AccusedAtoms
from dpaudit.levels.level_map import IntArray, log_ratio
from dpaudit.outcomes import raised

_MOST_ATOMS = 64


def accuse(selection: SelectionDraws, point: ProfilePoint) -> AccusedAtoms:
    """Return the atoms to certify one by one: those that look violating, and the most unequal ones
    as far as they are needed to outweigh δ. Exceptions are no raw outputs and never among them."""
    found = count_atoms(selection)
    raw = ~raised(found.outcomes)
    counts = found.counts.sum(axis=0)
    arms = counts.sum(axis=0) + found.rest
    masks = np.zeros((2, len(counts)), dtype=bool)
    for mask, step in zip(masks, (1, -1), strict=True):
        mask[_accused(counts[:, ::step], arms[::step], raw, point)] = True
    chosen = np.flatnonzero(masks.any(axis=0))
    words = tuple(found.outcomes.words(chosen.tolist()))
    return AccusedAtoms(found.keys[chosen], words, masks[0, chosen], masks[1, chosen])


def has_atoms(selection: SelectionDraws) -> bool:
    """Return whether outputs repeat, so that single outputs can be counted."""
    found = count_atoms(selection)
    return bool(found.counts[:, ~raised(found.outcomes)].sum() > selection.size / 10)


def _accused(
    counts: IntArray, arms: IntArray, raw: NDArray[np.bool_], point: ProfilePoint
) -> IntArray:
    error = np.sqrt(1 / (counts[:, 0] + 0.5) + 1 / (counts[:, 1] + 0.5))
    ratio = log_ratio(counts, arms)
    order = np.argsort(-(ratio - error), kind="stable")
    order = order[raw[order] & (counts[order, 0] > 0)]
    mass = np.cumsum(counts[order, 0]) / max(1, arms[0])
    lower = mass - tuning.PENALTY_OF_MASS * np.sqrt(mass / max(1, arms[0]))
    needed = int(np.searchsorted(lower, point.delta, side="right")) + 1
    looks_violating = ratio[order] > point.epsilon
    keep = looks_violating | (np.arange(len(order)) < needed)
    return np.asarray(order[keep][:_MOST_ATOMS], dtype=np.int64)
