"""What a call is refused with: tests compare codes and the values that a message names."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from dpaudit.errors import DpauditError


def refusal(call: Callable[..., Any], *args: Any, **keywords: Any) -> DpauditError:
    """Return the error that a call raises, which is one line."""
    with pytest.raises(DpauditError) as caught:
        call(*args, **keywords)
    assert "\n" not in str(caught.value)
    return caught.value


def code(call: Callable[..., Any], *args: Any, **keywords: Any) -> str:
    """Return the code of the error that a call raises."""
    return refusal(call, *args, **keywords).code


def placed(call: Callable[..., Any], *args: Any, **keywords: Any) -> tuple[str, int | None]:
    """Return the code of the error, and the line of the configuration file that it names."""
    error = refusal(call, *args, **keywords)
    line = re.search(r"\.yaml:(\d+)(?::\d+)?: ", str(error))
    return error.code, int(line[1]) if line else None
