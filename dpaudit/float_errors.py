"""Keep two settings of NumPy's floating-point errors (`np.seterr`) apart: dpaudit's and the user's.

The user's code may set `np.seterr(all="raise")` for itself. dpaudit's code needs NumPy's defaults,
since it divides by zero or underflows where this gives the right answer. An audit therefore runs in
`auditor_errstate`, and each call of the user's code in `user_errstate`.
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
    """The setting of `np.seterr` that the user's code had last, in this thread."""

    setting: Any = None
    is_in_force: bool = False


_user = _UserSetting()


@contextmanager
def auditor_errstate() -> Iterator[None]:
    """Within the `with` block, use NumPy's default settings, which dpaudit's code needs. At the
    end, restore the settings that the user's code had last."""
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
    """Within the `with` block, use the settings of `np.seterr` that the user's code had last. Store
    the settings at the end of the block for the next such block. Outside `auditor_errstate`, do
    nothing."""
    if _user.setting is None or _user.is_in_force:
        yield
        return
    import numpy as np

    _user.is_in_force = True
    # The settings are NumPy's defaults here, except if a module of the user has changed them when
    # it was imported. Then they already are the user's settings, and are not replaced.
    if np.geterr() == _DEFAULTS:
        np.seterr(**_user.setting)
    try:
        yield
    finally:
        _user.setting = np.seterr(**_DEFAULTS)
        _user.is_in_force = False
