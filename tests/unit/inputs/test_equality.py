from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from dpaudit.inputs.equality import fingerprint


def test_fingerprint_notices_a_change() -> None:
    array = np.zeros(4)
    before = fingerprint(array)
    assert fingerprint(array.copy()) == before
    assert fingerprint(array.astype(np.float32)) != before
    assert fingerprint(array.reshape(2, 2)) != before
    array[2] = 1
    assert fingerprint(array) != before
    rows = [{"a": 1}]
    first = fingerprint(rows)
    rows[0]["a"] = 2
    assert fingerprint(rows) != first


def test_fingerprint_of_a_frame_depends_on_its_content_alone() -> None:
    pandas: Any = importlib.import_module("pandas")
    frame = pandas.DataFrame({"a": [1, 2]})
    before = fingerprint(frame)
    assert before is not None
    assert fingerprint(frame.copy()) == before
    frame.loc[0, "a"] = 7
    assert fingerprint(frame) != before
    assert fingerprint(frame.rename(columns={"a": "b"})) != fingerprint(frame)


def test_fingerprint_may_be_impossible() -> None:
    assert fingerprint(lambda: 0) is None
