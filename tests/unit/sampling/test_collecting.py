"""Python looks for garbage rarely while outputs are read, and as often as before afterwards."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator

import pytest

from dpaudit.sampling.sampler import rarely_collecting

USUAL = (700, 10, 10)


@pytest.fixture(autouse=True)
def usual_thresholds() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(*USUAL)
    yield
    gc.set_threshold(*before)


def test_the_collector_is_as_before_whatever_happens() -> None:
    with rarely_collecting():
        assert gc.get_threshold() == (10_000, 10, 10)
    assert gc.get_threshold() == USUAL
    with pytest.raises(ZeroDivisionError), rarely_collecting():
        1 / 0
    assert gc.get_threshold() == USUAL


@pytest.mark.parametrize("first", [0, 10_000, 50_000])
def test_a_collector_that_is_off_or_looks_rarely_is_left_alone(first: int) -> None:
    gc.set_threshold(first, 10, 10)
    with rarely_collecting():
        assert gc.get_threshold()[0] == first
    assert gc.get_threshold()[0] == first


def test_a_threshold_that_other_code_sets_stays() -> None:
    with rarely_collecting():
        gc.set_threshold(5_000, 10, 10)
    assert gc.get_threshold() == (5_000, 10, 10)


def test_threads_that_overlap_leave_it_as_it_was() -> None:
    with rarely_collecting():
        thread = threading.Thread(target=rarely_collecting().__enter__)
        thread.start()
        thread.join()
    assert gc.get_threshold() == USUAL
