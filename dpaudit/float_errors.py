"""What NumPy does at a floating-point error: as the user has set it while code of theirs runs.

`np.seterr(all="raise")`, in a mechanism or a script that audits, is for their own code: the
auditor's rounds to zero, and divides by it, where that is the right answer.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_NUMPYS_OWN: dict[str, Any] = {
    "divide": "warn",
    "over": "warn",
    "under": "ignore",
    "invalid": "warn",
}


class _Theirs(threading.local):
    """What the user has set last, where `ours` was entered; and whether code of theirs runs."""

    setting: Any = None
    is_set: bool = False


_theirs = _Theirs()


@contextmanager
def ours() -> Iterator[None]:
    """Do as NumPy does by itself; afterwards as the user has set it last."""
    if _theirs.setting is not None:
        yield
        return
    import numpy as np  # which what only imports code of the user's may do without

    _theirs.setting = np.seterr(**_NUMPYS_OWN)
    try:
        yield
    finally:
        np.seterr(**_theirs.setting)
        _theirs.setting = None


@contextmanager
def theirs() -> Iterator[None]:
    """Do as the user has set it last, where `ours` was entered before."""
    if _theirs.setting is None or _theirs.is_set:
        yield
        return
    import numpy as np

    _theirs.is_set = True
    if np.geterr() == _NUMPYS_OWN:  # else set by code that was imported since
        np.seterr(**_theirs.setting)
    try:
        yield
    finally:
        _theirs.setting = np.seterr(**_NUMPYS_OWN)
        _theirs.is_set = False
