"""A drawn chunk as JSON and arrays, and back: the same integers, keys and entries."""

from __future__ import annotations

import base64
import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.auditing.journal.records import Record
from dpaudit.draws import FreshDraws, SelectionDraws
from dpaudit.outcomes import Raised, from_raw
from dpaudit.outcomes.packing import pack, unpack
from dpaudit.sampling.chunks import Counted, Drawn, Failures, Head, Learning, Probe, Rare
from dpaudit.tally import AtomTally, RangeTally, Tally

_IS_D1 = "is_d1"


def words_of(drawn: Drawn) -> dict[str, Any]:
    """Return all of a chunk but its fresh draws."""
    if isinstance(drawn, Probe):
        return {"probe": list(dataclasses.astuple(drawn))}
    words = _counted_words(drawn) if isinstance(drawn, Counted) else {}
    if drawn.failures.counts:
        first = drawn.failures.first.values()
        words["failures"] = [
            dict(drawn.failures.counts),
            {one.kind: one.message for one in first},
            {one.kind: one.where for one in first},
        ]
    return words


def _counted_words(counted: Counted) -> dict[str, Any]:
    words: dict[str, Any] = {"tally": counted.tally.counts.tolist()}
    if counted.atoms is not None:
        words["atoms"] = _atoms_words(counted.atoms)
    if counted.declared is not None:
        words["declared"] = [_atoms_words(counted.declared.atoms), counted.declared.undeclared]
    if counted.others:
        words["others"] = [one.counts.tolist() for one in counted.others]
    if counted.rare is not None:
        words["rare"] = [counted.rare.kept.size, list(counted.rare.arms), counted.rare.lost]
    if counted.unseen is not None:
        words["unseen"] = list(counted.unseen)
    for head in counted.heads:
        words["head"] = [coded(head.keys), coded(head.is_d1)]
    return words


def arrays_of(drawn: Drawn) -> dict[str, NDArray[Any]]:
    """Return the columns of fresh draws, and of rare ones. To write them down is to look at
    nothing."""
    if isinstance(drawn, Learning):
        draws = drawn.fresh.release()
    elif isinstance(drawn, Counted) and drawn.rare is not None and drawn.rare.kept.size:
        draws = drawn.rare.kept
    else:
        return {}
    return {**pack(draws.outcomes), _IS_D1: draws.is_d1}


def drawn_of(record: Record) -> Drawn:
    """Return the chunk of a record, its draws as fresh as they were."""
    words = record.words
    if "probe" in words:
        return Probe(*words["probe"])
    failures = _failures(*words.get("failures", ({}, {})))
    if "tally" not in words:
        arrays = record.arrays()
        is_d1 = arrays.pop(_IS_D1)
        return Learning(FreshDraws(unpack(arrays), is_d1), failures)
    return Counted(
        tally=Tally(_counts(words["tally"])),
        atoms=_atoms(words["atoms"]) if "atoms" in words else None,
        declared=_declared(*words["declared"]) if "declared" in words else None,
        failures=failures,
        heads=(_head(*words["head"]),) if "head" in words else (),
        others=tuple(Tally(_counts(rows)) for rows in words.get("others", ())),
        rare=_rare(record, *words["rare"]) if "rare" in words else None,
        unseen=_pair(*words["unseen"]) if "unseen" in words else None,
    )


def _rare(record: Record, kept: int, arms: list[int], lost: int) -> Rare:
    d1, d2 = arms
    if kept == 0:
        return Rare(SelectionDraws(from_raw([]), np.empty(0, dtype=bool)), (d1, d2), lost)
    arrays = record.arrays()
    is_d1 = arrays.pop(_IS_D1)
    return Rare(SelectionDraws(unpack(arrays), is_d1), (d1, d2), lost)


def coded(array: NDArray[Any]) -> str:
    """Return the bytes of an array as text."""
    return base64.b64encode(array.tobytes()).decode("ascii")


def _counts(rows: list[list[int]]) -> NDArray[np.int64]:
    return np.array(rows, dtype=np.int64).reshape(-1, 2)


def _atoms_words(atoms: AtomTally) -> list[Any]:
    return [atoms.counts.tolist(), list(atoms.arms)]


def _atoms(words: list[Any]) -> AtomTally:
    counts, (d1, d2) = words
    return AtomTally(_counts(counts), (d1, d2))


def _pair(d1: int, d2: int) -> tuple[int, int]:
    return d1, d2


def _declared(atoms: list[Any], undeclared: str | None) -> RangeTally:
    return RangeTally(_atoms(atoms), undeclared)


def _failures(
    counts: Mapping[str, list[int]], messages: Mapping[str, str], *places: Mapping[str, str]
) -> Failures:
    """Return failures; older journals do not say where they were raised."""
    where = places[0] if places else {}
    first = {kind: Raised(kind, one, where.get(kind, "")) for kind, one in messages.items()}
    return Failures({kind: (d1, d2) for kind, (d1, d2) in counts.items()}, first)


def _head(keys: str, is_d1: str) -> Head:
    return Head(_decoded(keys, np.uint64), _decoded(is_d1, np.bool_))


def _decoded(text: str, kind: type) -> NDArray[Any]:
    return np.frombuffer(base64.b64decode(text), dtype=kind).copy()
