"""A pair of neighbours that is worth a look."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Origin = Literal["edge", "extreme", "pattern", "lattice", "random", "trace", "raising"]


@dataclass(frozen=True, slots=True)
class Proposal:
    """Two neighbouring inputs, as plain Python.

    why: a few words, such as "the added record is NaN".  inside: both lie in the space.
    """

    d1: Any
    d2: Any
    why: str
    origin: Origin
    inside: bool
