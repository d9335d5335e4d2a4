"""NumPy's floating-point error settings: the user's in code of the user, else the defaults.

A mechanism or a script may set `np.seterr(all="raise")` for its own code. The code of the auditor
divides by zero and rounds to zero where that gives the right answer, under the defaults of NumPy.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_DEFAULTS: dict[str, Any] = {
    "divide": "warn",
    "over": "warn",
    "under": "ignore",
    "invalid": "warn",
}


class _UserSetting(threading.local):
    """The user's last setting in this thread (None outside of `auditor_errstate`), and whether it
    is in force."""

    setting: Any = None
    is_in_force: bool = False


_user = _UserSetting()


@contextmanager
def auditor_errstate() -> Iterator[None]:
    """Run code of the auditor with NumPy's default settings; restore the user's last setting."""
    if _user.setting is not None:
        yield
        return
    import numpy as np  # here, since importing a user's module must not need NumPy

    _user.setting = np.seterr(**_DEFAULTS)
    try:
        yield
    finally:
        np.seterr(**_user.setting)
        _user.setting = None


@contextmanager
def user_errstate() -> Iterator[None]:
    """Run code of the user with the user's last setting, inside `auditor_errstate`."""
    if _user.setting is None or _user.is_in_force:
        yield
        return
    import numpy as np

    _user.is_in_force = True
    if np.geterr() == _DEFAULTS:  # otherwise a module of the user that was imported since set it
        np.seterr(**_user.setting)
    try:
        yield
    finally:
        _user.setting = np.seterr(**_DEFAULTS)
        _user.is_in_force = False
