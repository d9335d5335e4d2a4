"""Inputs that a user's function or a user's strategy of Hypothesis generates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Self

import numpy as np

from dpaudit.errors import DatasetError
from dpaudit.import_path import located, resolve
from dpaudit.inputs.values import IMPORT
from dpaudit.searching.drawing import drawn
from dpaudit.searching.space import DescriptionReader, Space, strategies
from dpaudit.searching.timeouts import within
from dpaudit.wording import shown

_SEEDS = 2**32
_PLAIN = (bool, int, float, str, type(None))


@dataclass(frozen=True, slots=True)
class Own(Space):
    """The inputs that a user's function or strategy of Hypothesis, at an import path, generates.
    These inputs are unknown, so every dataset in plain Python counts as possible. The only edge is
    the input of seed 0."""

    path: str
    made_by: Any = field(compare=False, repr=False)

    @classmethod
    def read(cls, line: DescriptionReader) -> Self:
        """Read an import path, such as `import:my.module:generate`. Raises TargetError for a wrong
        path, and DatasetError if the object is neither a function nor a strategy."""
        written = line.token("an import path").text
        path = located(written.removeprefix(IMPORT), line.base)
        source = resolve(path)
        if not _is_strategy(source) and not callable(source):
            raise DatasetError(
                f"{written} is {shown(source)}; name a function generate(rng), rng a NumPy "
                "Generator, or a strategy of Hypothesis",
                code="space-invalid",
            )
        return cls(path, source)

    def words(self) -> str:
        return f"{IMPORT}{self.path}"

    def contains(self, value: Any) -> bool:
        return not _fault(value)

    @property
    def simplest(self) -> Any:
        return self.generated(0)

    def spread(self, number: int) -> list[Any]:
        if _is_strategy(self.made_by):
            return self._examples(number)
        return [self.generated(seed) for seed in range(number)]

    def is_numeric(self) -> bool:
        return True

    def all_edges(self) -> Iterator[tuple[Any, str]]:
        yield self.generated(0), "generated"

    def simpler(self, value: Any) -> Iterator[Any]:
        """Yield shorter copies of a list of records: its halves, then the list without each record.
        Records stay unchanged, since only the user's code knows which values are possible."""
        if isinstance(value, list) and value:
            half = (len(value) + 1) // 2
            yield from [value[:half], value[len(value) - half :]] if half < len(value) else []
            yield from (value[:i] + value[i + 1 :] for i in range(len(value)))

    def generated(self, seed: int) -> Any:
        """Return the input that the user's function generates from a seed. For a strategy, return
        the input with the index `seed` among those that it draws. Raises DatasetError if the code
        fails."""
        if _is_strategy(self.made_by):
            return self._examples(seed + 1)[seed]
        words = f"{self.words()} (seed {seed})"
        value = within(lambda: self.made_by(np.random.default_rng(seed)), words)
        return _checked(value, f"{words} returned")

    def strategy(self) -> Any:
        st = strategies()
        if _is_strategy(self.made_by):
            return self.made_by.map(lambda value: _checked(value, f"{self.words()} gave"))
        return st.integers(0, _SEEDS - 1).map(self.generated)

    def _examples(self, number: int) -> list[Any]:
        """Return `number` inputs that the strategy draws."""
        # The first input that it draws is left out, since it is often empty.
        values = drawn(self.made_by, 0, self.words(), is_own=True)
        words = f"{self.words()} gave"
        return [_checked(value, words) for value in islice(values, 1, number + 1)]


def _checked(value: Any, words: str) -> Any:
    """Return a generated value in plain Python. Raises DatasetError if it is not a dataset."""
    value = plain(value)
    if fault := _fault(value):
        raise DatasetError(f"{words} {shown(value)}, {fault}", code="generator-failed")
    return value


def plain(value: Any) -> Any:
    """Return a generated value in plain Python: arrays as lists, data frames as lists of rows."""
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return list(map(plain, value))
    if isinstance(value, Mapping):
        return {key: plain(part) for key, part in value.items()}
    to_dicts = getattr(value, "to_dicts", None)  # only data frames of Polars have this method
    if callable(to_dicts):
        return plain(to_dicts())
    if type(value).__module__.partition(".")[0] == "pandas":
        return plain(value.to_dict("records") if value.ndim == 2 else value.tolist())
    return value


def _fault(value: Any) -> str:
    """Return the reason why a value is not a dataset, for an error message; "" if it is one."""
    if isinstance(value, _PLAIN):
        return ""
    if isinstance(value, dict):
        bad = next((part for part in value.values() if _fault(part)), None)
        return f"which holds {shown(bad)}" if bad is not None else ""
    if not isinstance(value, list):
        return "which is no dataset; return a number, a text, or a list of records"
    return next(filter(None, map(_fault, value)), "") or _mixed(value)


def _mixed(records: list[Any]) -> str:
    """Return how the records of a dataset differ in type or in columns; "" if they do not."""
    types = list(dict.fromkeys(_type(record) for record in records if record is not None))
    if len(types) > 1:
        return (
            f"whose records are of several types ({types[0]} and {types[1]}); "
            "return records of one type"
        )
    keys = [record.keys() for record in records if isinstance(record, dict)]
    odd = next((columns for columns in keys if columns != keys[0]), None)
    if odd is not None:
        return f"whose rows have several columns: {', '.join(keys[0])} and {', '.join(odd)}"
    return ""


def _type(value: Any) -> str:
    if isinstance(value, bool | int | float):
        return "number"
    names: dict[type, str] = {str: "text", dict: "row", list: "list"}
    return names[type(value)]


def _is_strategy(source: Any) -> bool:
    return any(
        base.__name__ == "SearchStrategy" and base.__module__.startswith("hypothesis.")
        for base in type(source).__mro__
    )
