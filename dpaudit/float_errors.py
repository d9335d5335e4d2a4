"""What NumPy does at a floating-point error: as the user has set it while code of theirs runs.

`np.seterr(all="raise")`, in a mechanism or a script that audits, is for their own code: the
auditor's rounds to zero, and divides by it, where that is the right answer.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

_NUMPYS_OWN: dict[str, Any] = {
    "divide": "warn",
    "over": "warn",
    "under": "ignore",
    "invalid": "warn",
}


class _Theirs(threading.local):
    setting: Any = None


_theirs = _Theirs()


@contextmanager
def ours() -> Iterator[None]:
    """Do as NumPy does by itself; afterwards as the user has set it last."""
    if _theirs.setting is not None:
        yield
        return
    _theirs.setting = np.seterr(**_NUMPYS_OWN)
    try:
        yield
    finally:
        np.seterr(**_theirs.setting)
        _theirs.setting = None


@contextmanager
def theirs() -> Iterator[None]:
    """Do as the user has set it last, where `ours` was entered before."""
    if _theirs.setting is None:
        yield
        return
    now = np.geterr()
    if now == _NUMPYS_OWN:  # else set by code that was imported since
        np.seterr(**_theirs.setting)
    try:
        yield
    finally:
        _theirs.setting = np.seterr(**_NUMPYS_OWN)
