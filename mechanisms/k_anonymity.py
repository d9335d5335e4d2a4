"""A k-anonymous release, which is not differentially private at all (Sweeney 2002).

The four made-up records in `RECORDS` become the 2-anonymous table of Qiu & Liu 2023 (Differential
Privacy, ST793): whoever knows that Bob lives in 1742 and is over 70 knows his diagnosis.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from mechanisms.truth import satisfies

# ZIP code, age, diagnosis.
Record = tuple[str, int, str]
Row = tuple[str, str, str]

RECORDS: list[Record] = [
    ("4213", 33, "Common flu"),
    ("4286", 38, "Healthy"),
    ("1742", 71, "Ottis"),
    ("1742", 76, "Ottis"),
]


def _release(dataset: Sequence[Record], k: int) -> tuple[Row, ...]:
    rows: dict[int, Row] = {}
    for group in _groups(dataset, k):
        zip_code = _masked([str(dataset[place][0]) for place in group])
        age = _masked([str(dataset[place][1]) for place in group])
        rows.update((place, (zip_code, age, dataset[place][2])) for place in group)
    return tuple(rows[place] for place in sorted(rows))


def _groups(dataset: Sequence[Record], k: int) -> list[list[int]]:
    """Return groups of at least k neighbours by ZIP code and age; fewer than k are left out."""
    order = sorted(range(len(dataset)), key=lambda place: tuple(map(str, dataset[place][:2])))
    starts = range(0, len(order) - k + 1, k)
    ends = [*starts[1:], len(order)]
    return [order[start:end] for start, end in zip(starts, ends, strict=False)]


def _masked(values: list[str]) -> str:
    """Return what the values begin with in common, and a star for the rest."""
    columns = takewhile(lambda digits: len(set(digits)) == 1, zip(*values, strict=False))
    common = "".join(digits[0] for digits in columns)
    return common if all(value == common for value in values) else f"{common}*"


def _pmf(dataset: Sequence[Record], k: int) -> dict[tuple[Row, ...], float]:
    return {_release(dataset, k): 1.0}


@satisfies("none", pmf=_pmf)
def k_anonymous(dataset: Sequence[Record], k: int = 2, *, size: int) -> list[tuple[Row, ...]]:
    """Broken: masks ZIP codes and ages until k rows share them, but not diagnoses.

    The release is deterministic, so it has no ε (∞) for any pair whose tables differ, whatever k
    is. Adjacency: replace one record.
    """
    return [_release(dataset, k)] * size
