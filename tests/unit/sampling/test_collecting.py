"""Garbage is looked for rarely while a block is drawn, and as often as before after it."""

from __future__ import annotations

import gc

import pytest

from dpaudit.sampling.collecting import rarely_collecting


def test_the_collector_is_as_before_whatever_happens() -> None:
    before = gc.get_threshold()
    with rarely_collecting():
        assert gc.get_threshold()[0] > before[0]
    assert gc.get_threshold() == before
    with pytest.raises(ZeroDivisionError), rarely_collecting():
        1 / 0
    assert gc.get_threshold() == before


def test_a_collector_that_is_off_stays_off() -> None:
    before = gc.get_threshold()
    gc.set_threshold(0)
    try:
        with rarely_collecting():
            assert gc.get_threshold()[0] == 0
    finally:
        gc.set_threshold(*before)
