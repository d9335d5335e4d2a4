"""Files that are missing, or not what their name says."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.errors import DatasetError, did_you_mean

# Of a text that Python's own reader of JSON, or what comes after it, gives up on.
TOO_DEEP = "nested too deeply, lists in lists hundreds of times over; make it flatter"


def near_file(missing: Path) -> str:
    """Return `" Did you mean 'x'?"` for the name beside a missing file that is nearest, or `""`.

    Where its folder is missing, too, for the folder. What is there and is a folder is called one.
    """
    if missing.is_dir():
        return " That is a folder; name a file."
    while not missing.parent.is_dir() and missing != missing.parent:
        missing = missing.parent
    names: list[str] = []
    with suppress(OSError):  # a folder that may not be listed
        names = sorted(one.name for one in missing.parent.iterdir())
    return did_you_mean(missing.name, names)


def read_npy(file: Path) -> NDArray[Any]:
    """Return the array of a `.npy` file. Raises DatasetError, and FileNotFoundError.

    Pickled objects are never loaded.
    """
    try:
        with file.open("rb") as stream:
            return np.lib.format.read_array(stream, allow_pickle=False)
    except (ValueError, EOFError):
        raise DatasetError(
            "not an array of numbers or text as numpy.save writes it, or not the whole of one "
            "(pickled objects are refused); save it anew with numpy.save, as plain numbers"
        ) from None
