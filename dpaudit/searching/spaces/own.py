"""A user's own inputs: a function that generates them, or a strategy of Hypothesis."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from dpaudit.errors import DatasetError
from dpaudit.import_path import located, resolve
from dpaudit.inputs.values import IMPORT
from dpaudit.searching.drawing import drawn
from dpaudit.searching.space import Edge, strategies
from dpaudit.searching.waiting import within
from dpaudit.wording import shown

_SEEDS = 2**32
_PLAIN = (bool, int, float, str, type(None))


@dataclass(frozen=True, slots=True)
class Own:
    """What a user's function or strategy gives. Nobody knows what else it may give, so that every
    plain dataset counts as inside; none is an edge but those it gives for the first seeds."""

    path: str
    made_by: Any = field(compare=False, repr=False)

    @classmethod
    def of(cls, written: str, base: Path | None = None) -> Own:
        """Return the space of an import path, `import:my.module:generate`.

        Raises TargetError for a wrong path, DatasetError for what is neither.
        """
        path = located(written.removeprefix(IMPORT), base)
        found = resolve(path)
        if not _is_strategy(found) and not callable(found):
            raise DatasetError(
                f"{written} is {shown(found)}; name a function generate(rng), rng a NumPy "
                "Generator, or a strategy of Hypothesis",
                code="space-invalid",
            )
        return cls(path, found)

    def words(self) -> str:
        return f"{IMPORT}{self.path}"

    def contains(self, value: Any) -> bool:
        return not _fault(value)

    @property
    def simplest(self) -> Any:
        return self.generated(0)

    def usual(self) -> Any:
        return self.generated(0)

    def spread(self, number: int) -> list[Any]:
        if _is_strategy(self.made_by):
            return self._given(number)
        return [self.generated(seed) for seed in range(number)]

    def edges(self) -> Iterator[Edge]:
        yield Edge(self.generated(0), "generated", True)

    def simpler(self, value: Any) -> Iterator[Any]:
        """Yield what has fewer records; what simpler values are, only the generator knows."""
        if isinstance(value, list) and value:
            half = (len(value) + 1) // 2
            cuts = [value[:half], value[len(value) - half :]] if half < len(value) else []
            yield from cuts
            yield from (value[:i] + value[i + 1 :] for i in range(len(value)))

    def generated(self, seed: int) -> Any:
        """Return the input of a seed. Raises DatasetError where the generator fails."""
        if _is_strategy(self.made_by):
            return self._given(seed + 1)[seed]
        words = f"{self.words()} (seed {seed})"
        value = within(lambda: self.made_by(np.random.default_rng(seed)), words)
        value = plain(value)
        if fault := _fault(value):
            raise DatasetError(f"{words} returned {shown(value)}, {fault}", code="generator-failed")
        return value

    def strategy(self) -> Any:
        st = strategies()
        if _is_strategy(self.made_by):
            return self.made_by.map(self._checked)
        return st.integers(0, _SEEDS - 1).map(self.generated)

    def _given(self, number: int) -> list[Any]:
        """Return so many of what a strategy gives, after the first, which is often empty."""
        values = drawn(self.made_by, 0, self.words(), is_own=True)
        return [self._checked(one) for one in islice(values, 1, number + 1)]

    def _checked(self, value: Any) -> Any:
        value = plain(value)
        if fault := _fault(value):
            raise DatasetError(
                f"{self.words()} gave {shown(value)}, {fault}", code="generator-failed"
            )
        return value


def plain(value: Any) -> Any:
    """Return what was generated as plain Python: arrays as lists, tuples as lists."""
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, Mapping):
        return {key: plain(one) for key, one in value.items()}
    to_dicts = getattr(value, "to_dicts", None)  # of Polars
    if callable(to_dicts):
        return plain(to_dicts())
    if type(value).__module__.partition(".")[0] == "pandas":
        return plain(value.to_dict("records") if value.ndim == 2 else value.tolist())
    return value


def _fault(value: Any) -> str:
    """Return why a value is no dataset, or `""`."""
    if isinstance(value, _PLAIN):
        return ""
    if isinstance(value, dict):
        bad = next((one for one in value.values() if _fault(one)), None)
        return f"which holds {shown(bad)}" if bad is not None else ""
    if not isinstance(value, list):
        return "which is no dataset; return a number, a text, or a list of records"
    for one in value:
        if fault := _fault(one):
            return fault
    return _mixed(value)


def _mixed(records: list[Any]) -> str:
    """Return that records are of several types; missing ones and numbers go together."""
    kinds = list(dict.fromkeys(_kind(one) for one in records if one is not None))
    for one, other in pairwise(kinds):
        return f"whose records are of several types ({one} and {other}); return records of one type"
    keys = [one.keys() for one in records if isinstance(one, dict)]
    odd = next((one for one in keys if one != keys[0]), None)
    if odd is not None:
        return f"whose rows have several columns: {', '.join(keys[0])} and {', '.join(odd)}"
    return ""


def _kind(value: Any) -> str:
    if isinstance(value, bool | int | float):
        return "number"
    names: dict[type, str] = {str: "text", dict: "row", list: "list"}
    return names[type(value)]


def _is_strategy(found: Any) -> bool:
    return any(
        one.__name__ == "SearchStrategy" and one.__module__.startswith("hypothesis.")
        for one in type(found).__mro__
    )
