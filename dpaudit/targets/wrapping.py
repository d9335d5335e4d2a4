"""A mechanism in front of another: all that stays the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dpaudit.targets.adapter import Mechanism


@dataclass(frozen=True, slots=True)
class Wrapping:
    """What a mechanism that changes the outputs of another one has from that one.

    Subclasses are mechanisms: they add `sample` and `sample_each`.
    """

    mechanism: Mechanism

    @property
    def name(self) -> str:
        return self.mechanism.name

    @property
    def interleaved(self) -> bool:
        return self.mechanism.interleaved

    @property
    def takes_rng(self) -> bool:
        return self.mechanism.takes_rng

    @property
    def parts(self) -> tuple[Any, ...]:
        return self.mechanism.parts

    def close(self) -> None:
        self.mechanism.close()
