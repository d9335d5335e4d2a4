"""Leaks in texts are refuted; what keeps its claim passes; and no audit that saw nothing passes."""

from __future__ import annotations

import base64
import json
import math
import uuid
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpaudit
from dpaudit.certificates.result import AuditResult, Verdict
from dpaudit.claims import PureDP

Rng = np.random.Generator
TWO, ONE = [1, 2], [1]


def noisy(rows: list[int], scale: float, rng: Rng) -> float:
    """Return a count, 1/scale-DP for one row more or less."""
    return len(rows) + float(rng.laplace(scale=scale))


def identifier(rng: Rng) -> str:
    return str(uuid.UUID(bytes=rng.bytes(16), version=4))


def as_json(rows: list[int], scale: float, rng: Rng) -> str:
    return json.dumps({"count": noisy(rows, scale, rng)})


def in_a_sentence(rows: list[int], scale: float, rng: Rng) -> str:
    return f"There are {noisy(rows, scale, rng):.9f} records."


def with_an_id(rows: list[int], scale: float, rng: Rng) -> dict[str, str]:
    return {"id": identifier(rng), "result": as_json(rows, scale, rng)}


def as_csv(rows: list[int], scale: float, rng: Rng) -> str:
    counts = {name: rng.laplace(scale=scale) for name in "ac"}
    counts["b"] = noisy(rows, scale, rng)
    return "name,count\n" + "".join(f"{name},{counts[name]:.6f}\n" for name in "abc")


def as_bytes(rows: list[int], scale: float, rng: Rng) -> bytes:
    return f"<count id='{identifier(rng)}'>{noisy(rows, scale, rng)}</count>".encode()


def in_any_order(rows: list[int], scale: float, rng: Rng) -> str:
    lines = [f"count: {noisy(rows, scale, rng)}", f"noise: {rng.normal()}", "state: ok"]
    rng.shuffle(lines)
    return "\n".join(lines)


def over_a_thousand(rows: list[int], scale: float, rng: Rng) -> str:
    return f"{998 + noisy(rows, scale, rng):,.2f} EUR"


def in_a_frame(rows: list[int], scale: float, rng: Rng) -> pd.DataFrame:
    cells = [f"{rng.normal():.4f} %", f"{noisy(rows, scale, rng):.4f} %", "n/a"]
    return pd.DataFrame({"id": [identifier(rng) for _ in cells], "share": cells})


def json_in_json(rows: list[int], scale: float, rng: Rng) -> str:
    inner = json.dumps([json.dumps({"count": noisy(rows, scale, rng)}), rng.normal()])
    return json.dumps({"parts": inner})


def word_of_a_log(rows: list[int], scale: float, rng: Rng) -> str:
    is_true = rng.random() < 1 / (1 + math.exp(-1 / scale))
    level = "WARN" if is_true == (len(rows) > 1) else "INFO"
    time = f"{rng.integers(24):02d}:{rng.integers(60):02d}:{60 * rng.random():09.6f}"
    return f"2026-01-05T{time}Z {level} request {rng.bytes(16).hex()}"


def letters(rng: Rng, most: int) -> str:
    return "".join(map(chr, rng.integers(97, 123, size=rng.integers(4, most))))


def a_time(rng: Rng) -> str:
    hour, minute, second = (int(part) for part in rng.integers(0, [24, 60, 60]))
    return f"2026-01-05T{hour:02}:{minute:02}:{second:02}"


def with_a_time(rows: list[int], scale: float, rng: Rng) -> str:
    return f"{a_time(rng)} there are {noisy(rows, scale, rng):.2f} records"


def with_a_name(rows: list[int], scale: float, rng: Rng) -> str:
    return json.dumps({"name": letters(rng, 20), "count": noisy(rows, scale, rng)})


def as_hexadecimal(rows: list[int], scale: float, rng: Rng) -> str:
    return noisy(rows, scale, rng).hex()


def parts_of_a_list(rows: list[int], scale: float, rng: Rng) -> list[str]:
    parts = [f"part {i}: {rng.normal():.5f}" for i in range(rng.poisson(2))]
    return [f"total {noisy(rows, scale, rng):.5f}", *parts]


def key_of_json(rows: list[int], scale: float, rng: Rng) -> str:
    return json.dumps({identifier(rng): noisy(rows, scale, rng)})


def key_of_a_dict(rows: list[int], scale: float, rng: Rng) -> dict[str, bool]:
    return {f"count {noisy(rows, scale, rng):.9f}": True}


def element_of_a_set(rows: list[int], scale: float, rng: Rng) -> set[str]:
    return {f"{noisy(rows, scale, rng):.9f}"}


def in_letters(rows: list[int], scale: float, rng: Rng) -> str:
    digits = str.maketrans("0123456789", "abcdefghij")
    return f"{noisy(rows, scale, rng):.9f}".translate(digits)


def encoded(rows: list[int], scale: float, rng: Rng) -> str:
    text = f"{noisy(rows, scale, rng):.15f}"
    return base64.b16encode(rng.bytes(8) + text.encode()).decode().translate(_LETTERS)


_LETTERS = str.maketrans("0123456789", "ghijklmnop")
Text = Callable[[list[int], float, Rng], Any]
READ: list[Text] = [
    as_json,
    in_a_sentence,
    with_an_id,
    as_csv,
    as_bytes,
    in_any_order,
    over_a_thousand,
    in_a_frame,
    json_in_json,
    word_of_a_log,
    with_a_time,
    with_a_name,
    as_hexadecimal,
    parts_of_a_list,
]
UNREAD: list[Text] = [key_of_json, key_of_a_dict, element_of_a_set, in_letters, encoded]


def audited(text: Text, scale: float, **more: Any) -> AuditResult:
    def mechanism(rows: list[int], rng: Rng) -> Any:
        return text(rows, scale, rng)

    options = {"samples": 10_000, "name": text.__name__, "no_trace": True, **more}
    return dpaudit.audit(mechanism, TWO, ONE, PureDP(1.0), **options)


@pytest.mark.parametrize("text", READ)
def test_a_leak_in_a_text_is_refuted(text: Text) -> None:
    assert audited(text, 0.1).verdict is Verdict.VIOLATION


@pytest.mark.parametrize("text", READ)
def test_a_text_that_keeps_its_claim_passes(text: Text) -> None:
    result = audited(text, 1.0, samples=4_000)
    assert result.verdict is Verdict.NO_VIOLATION_FOUND
    assert result.underpowered is None


@pytest.mark.parametrize("text", UNREAD)
def test_an_audit_that_sees_only_new_outputs_is_underpowered(text: Text) -> None:
    for scale in (0.1, 1.0):
        assert audited(text, scale, samples=4_000).underpowered is not None


def hit_or_miss(rows: list[int], scale: float, rng: Rng) -> str:
    is_true = rng.random() < 1 / (1 + math.exp(-1 / scale))
    return "hit" if is_true == (len(rows) > 1) else "miss"


def after_a_time_and_words(rows: list[int], scale: float, rng: Rng) -> str:
    words = " ".join(letters(rng, 10) for _ in range(10))
    return f"{a_time(rng)} {words} {hit_or_miss(rows, scale, rng)}"


def after_noise_and_letters(rows: list[int], scale: float, rng: Rng) -> str:
    return f"{rng.normal()},{letters(rng, 12)},{hit_or_miss(rows, scale, rng)}"


def after_words(rows: list[int], scale: float, rng: Rng) -> str:
    words = " ".join(letters(rng, 10) for _ in range(10))
    return f"{words} {hit_or_miss(rows, scale, rng)}"


@pytest.mark.parametrize(
    ("text", "seed"), [(after_a_time_and_words, 1), (after_noise_and_letters, 2), (after_words, 3)]
)
def test_a_rule_from_other_columns_does_not_hide_that_words_are_new(text: Text, seed: int) -> None:
    result = audited(text, 1 / 2.9, samples=8_000, seed=seed)
    assert result.verdict is Verdict.NO_VIOLATION_FOUND
    assert result.underpowered is not None


@pytest.mark.parametrize("text", [as_json, in_a_sentence, with_an_id])
def test_a_leak_in_recorded_texts_is_refuted(text: Text) -> None:
    rng = np.random.default_rng(0)
    d1, d2 = ([text(rows, 0.1, rng) for _ in range(1_000)] for rows in (TWO, ONE))
    result = dpaudit.bound(d1, d2, PureDP(1.0))
    assert result.verdict is Verdict.VIOLATION
    assert any("texts" in note for note in result.certificates[0].notes)


def test_recordings_that_are_all_new_are_underpowered() -> None:
    rng = np.random.default_rng(0)
    d1, d2 = ([in_letters(rows, 0.1, rng) for _ in range(1_000)] for rows in (TWO, ONE))
    assert dpaudit.bound(d1, d2, PureDP(1.0)).underpowered is not None


def test_a_text_of_noise_alone_is_not_underpowered() -> None:
    """All of the text was read, so that its numbers would have shown a leak."""

    def noise(rows: list[int], rng: Rng) -> str:
        return f"{rng.normal():.9f} records"

    options: dict[str, Any] = {"samples": 4_000, "no_trace": True}
    result = dpaudit.audit(noise, TWO, ONE, PureDP(1.0), **options)
    assert result.underpowered is None
    assert result.certificates[0].unseen is not None
    assert result.certificates[0].unseen.count_d1 < 0.05 * result.certificates[0].fixed.draws
