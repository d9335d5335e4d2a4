"""NumPy's settings for floating-point errors (`np.seterr`), kept separately for dpaudit and user.

A mechanism or a script may set `np.seterr(all="raise")` for its own code. dpaudit's own code needs
NumPy's defaults, since it divides by zero or underflows where this gives the right answer. An audit
runs within `auditor_errstate`, and calls of user code run within `user_errstate`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# NumPy's default settings.
_DEFAULTS: dict[str, Any] = {
    "divide": "warn",
    "over": "warn",
    "under": "ignore",
    "invalid": "warn",
}


class _UserSetting(threading.local):
    """The settings of the user in this thread.

    setting: the last settings of the user; None outside of `auditor_errstate`.
    is_in_force: whether user code is running, within `user_errstate`.
    """

    setting: Any = None
    is_in_force: bool = False


_user = _UserSetting()


@contextmanager
def auditor_errstate() -> Iterator[None]:
    """Run dpaudit's own code with NumPy's defaults; at the end restore the user's last settings."""
    if _user.setting is not None:
        yield
        return
    import numpy as np  # imported here, since importing a user's module must not need NumPy

    _user.setting = np.seterr(**_DEFAULTS)
    try:
        yield
    finally:
        np.seterr(**_user.setting)
        _user.setting = None


@contextmanager
def user_errstate() -> Iterator[None]:
    """Run user code with the user's last settings; no effect outside of `auditor_errstate`.

    Settings that the user code changes are kept for later user code.
    """
    if _user.setting is None or _user.is_in_force:
        yield
        return
    import numpy as np

    _user.is_in_force = True
    # If the present settings are not the defaults, a user's module that was imported meanwhile has
    # changed them. The present settings are then the user's last settings and stay in force.
    if np.geterr() == _DEFAULTS:
        np.seterr(**_user.setting)
    try:
        yield
    finally:
        _user.setting = np.seterr(**_DEFAULTS)
        _user.is_in_force = False
