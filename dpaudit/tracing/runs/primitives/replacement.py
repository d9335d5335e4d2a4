"""What stands in for a primitive while a run is watched."""

from __future__ import annotations

from typing import Any, NamedTuple


class Replacement(NamedTuple):
    """An attribute that is another one during a run.

    owner: a module or a class.  name: of the attribute.  value: what it is during a run.
    """

    owner: Any
    name: str
    value: Any
