"""A process that the mechanism forked and that ends by an exception, or comes back: here it would
go on with the audit, fork again, and so on without an end."""

from __future__ import annotations

import os
from typing import NoReturn


def end_if_forked(owner: int, error: BaseException | None = None) -> None:
    """End this process, as Python would have, unless it is `owner`.

    error: what has come out of the mechanism, SystemExit above all.
    """
    if os.getpid() != owner:
        _end(error)


def _end(error: BaseException | None) -> NoReturn:
    code = error.code if isinstance(error, SystemExit) else error is not None
    os._exit(code if isinstance(code, int) else code is not None)
