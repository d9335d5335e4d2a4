"""From what a mechanism returned to a table of columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.outcomes.paths import ROOT
from dpaudit.outcomes.reading.kinds import reader_of
from dpaudit.outcomes.reading.reader import Reader
from dpaudit.outcomes.scalars import Entries
from dpaudit.outcomes.tables import Outcomes
from dpaudit.watching import Watch, step

# So that it is said once.
_watch = Watch()


def from_raw(raw: Sequence[Any] | NDArray[Any]) -> Outcomes:
    """Return the table of `raw`, one outcome an entry (an array: one a row).

    Numbers, strings, bytes, Booleans, None, dates, fractions, complex numbers, members of
    enumerations, UUIDs, NumPy's scalars; lists, tuples, sets, dicts, arrays, dataclasses, named
    tuples and pandas objects of these, of any size and depth; an entry may be `Raised`. Raises
    MechanismError, which names the type and the place, for anything else.
    """
    # Those of very many entries.
    with step("reading outputs of the mechanism", _watch):
        reader = Reader(len(raw), reader_of)
        if isinstance(raw, np.ndarray) and raw.dtype != object:
            reader.read_array(ROOT, None, raw)
        elif len(raw):
            reader.read(ROOT, None, raw if isinstance(raw, list) else list(raw))
        else:
            reader.add(ROOT, None, Entries(np.empty(0)))
        return reader.table()
