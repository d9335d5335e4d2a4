"""What optional parts of the program need, and how a message says to install it.

The packages are named themselves: an index that is asked for dpaudit[html] need not have it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

Extra = Literal["figures", "html", "dask", "parquet", "learned", "search"]

# As in pyproject.toml, without versions.
EXTRAS: Mapping[Extra, tuple[str, ...]] = {
    "figures": ("matplotlib",),
    "html": ("jinja2", "matplotlib"),
    "dask": ("distributed",),
    "parquet": ("pyarrow",),
    "learned": ("scikit-learn",),
    "search": ("hypothesis",),
}


def remedy(extra: Extra) -> str:
    """Return the command that installs what an extra needs.

    >>> remedy("html")
    'pip install jinja2 matplotlib'
    """
    return f"pip install {' '.join(EXTRAS[extra])}"
