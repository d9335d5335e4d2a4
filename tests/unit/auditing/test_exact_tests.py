"""Notes about the outputs of an event."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

import dpaudit


def noisy(values: list[float], size: int, rng: Any) -> Any:
    return np.array(values) + rng.normal(size=(size, len(values)))


def means(text: str) -> list[float]:
    """Return the mean of the numbers of each output, such as 1.5 for `(1, 2)`."""
    return [
        float(np.mean([float(number) for number in one.split(",")]))
        for one in re.findall(r"\(([-\d., ]+)\)", text)
    ]


def test_a_violation_shows_outputs_of_an_event_on_a_score() -> None:
    result = dpaudit.audit(noisy, [1.0] * 6, [0.0] * 6, dpaudit.PureDP(1.0), samples=2_000)
    (one,) = result.certificates
    assert one.refuted
    assert one.fixed.events[0].words.startswith("score ")
    (note,) = (text for text in one.notes if "point to d1" in text)
    of_d1, of_d2 = map(means, note.split("; "))
    assert len(of_d1) == len(of_d2) == 2
    assert min(of_d1) > max(of_d2)


def test_an_event_that_names_its_outputs_has_no_examples() -> None:
    result = dpaudit.audit(noisy, [4.0], [0.0], dpaudit.PureDP(1.0), samples=2_000)
    (one,) = result.certificates
    assert one.refuted
    assert not any("point to d1" in text for text in one.notes)


def with_long_beginning(value: float, rng: Any) -> list[str]:
    return [f"{'a' * 100}{int(rng.random() < value)}" for _ in range(12)]


def test_examples_that_are_cut_before_they_differ_are_left_out() -> None:
    result = dpaudit.audit(with_long_beginning, 0.7, 0.4, dpaudit.PureDP(0.3), samples=4_000)
    (one,) = result.certificates
    assert one.refuted
    assert one.fixed.events[0].words.startswith("score ")
    assert not any("point to d1" in text for text in one.notes)
