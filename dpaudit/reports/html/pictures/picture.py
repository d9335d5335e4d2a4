"""What a figure is: a drawing, what stands for what in it, and what it says."""

from __future__ import annotations

from dataclasses import dataclass

from dpaudit.certificates.result import AuditResult
from dpaudit.reports import numbers

# Pieces of a curve.
STEPS = 48


@dataclass(frozen=True, slots=True)
class Key:
    """What stands for what. kind: the class. shape: `line`, `area`, or one of `canvas.SHAPES`."""

    kind: str
    shape: str
    words: str


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure and what it says. drawing: SVG. alt: what can be seen, in words. notes: how to read
    it. head, rows: its numbers as a table."""

    name: str
    title: str
    drawing: str
    keys: tuple[Key, ...]
    alt: str
    notes: tuple[str, ...]
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def level(result: AuditResult) -> str:
    """Return the confidence of an audit in words."""
    return numbers.level(result.confidence)


def ratio(count: int, draws: int) -> float:
    """Return a share of draws; 0 where there are none."""
    return count / draws if draws else 0.0
