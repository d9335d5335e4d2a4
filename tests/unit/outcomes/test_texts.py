"""What texts contain: structures in JSON, and numbers."""

from __future__ import annotations

import json
import math
import uuid
from typing import Any

import numpy as np
import pytest

from dpaudit.auditing.journal import from_json, to_json
from dpaudit.outcomes import Outcomes, concatenate, from_raw
from dpaudit.outcomes.texts import content

A_UUID = "550e8400-e29b-41d4-a716-446655440000"


@pytest.mark.parametrize(
    ("text", "numbers", "words"),
    [
        ("There are -1.25e-3 records.", (-0.00125,), "There are # records."),
        ("\u22123.5 °C", (-3.5,), "# °C"),
        ("$1,234.5", (1.0, 234.5), "$#,#"),
        ("1e999", (math.inf,), "#"),
        (f"{A_UUID}: 3", (A_UUID, 3.0), "#: #"),
        ((3.14).hex(), (3.14,), "#"),
        ("[1, 2", (1.0, 2.0), "[#, #"),
    ],
)
def test_the_numbers_in_a_text(text: str, numbers: tuple[Any, ...], words: str) -> None:
    result = content(text, 40)
    assert result is not None
    assert (result.numbers, result.words, result.total) == (numbers, words, len(numbers))


@pytest.mark.parametrize("text", ["", "Zürich", "{", "٣"])
def test_a_text_without_digits_or_structure_is_a_label_alone(text: str) -> None:
    assert content(text, 40) is None
    assert [column.name for column in from_raw([text, "no"]).columns] == ["output"]


def test_json_that_is_nested_too_deeply_is_read_as_any_other_text() -> None:
    nested = "[" * 41 + "7" + "]" * 41
    deep, shallow = content(nested, 40), content(nested, 41)
    assert deep is not None
    assert shallow is not None
    assert (deep.structure, deep.numbers) == (None, (7.0,))
    assert shallow.structure is not None
    from_raw(["[" * 10_000 + "7" + "]" * 10_000])  # no error: today's limit is for outputs


def test_one_text_has_a_bounded_number_of_columns() -> None:
    line = ",".join(["1.5"] * 5_000)
    result = content(line, 40)
    assert result is not None
    assert (len(result.numbers), result.total) == (4_096, 5_000)
    assert len(from_raw([line, line + ",2"]).columns) <= 2 * 4_096
    large = content(json.dumps([0] * 100_000), 40)
    assert large is not None
    assert large.structure is None


def test_contents_of_all_shapes_keep_their_places() -> None:
    texts = ["3.5 of 4", "yes", '{"a": 1}', '{"a": 2, "b": "7 x"}', "2 rows"]
    table = from_raw(texts)
    entries = {
        name: [table.column(name).word(row) for row in range(table.size)]
        for name in (
            "output",
            "numbers(output)[0]",
            "numbers(output)[1]",
            "length of numbers(output)",
            "words(output)",
            'json(output)["a"]',
            'numbers(json(output)["b"])[0]',
        )
    }
    assert entries == {
        "output": list(map(repr, texts)),
        "numbers(output)[0]": ["3.5", "absent", "absent", "absent", "2"],
        "numbers(output)[1]": ["4", "absent", "absent", "absent", "absent"],
        "length of numbers(output)": ["2", "absent", "absent", "absent", "1"],
        "words(output)": ["'# of #'", "absent", "absent", "absent", "'# rows'"],
        'json(output)["a"]': ["absent", "absent", "1", "2", "absent"],
        'numbers(json(output)["b"])[0]': ["absent", "absent", "absent", "7", "absent"],
    }


@pytest.mark.parametrize(
    "texts",
    [
        [f"{n / 7} of {n}" for n in range(40)],
        [f"{n / 7}" if n % 3 else "none" for n in range(40)],
        [json.dumps([n] * (n % 4)) for n in range(40)],
        [str(uuid.UUID(int=n * 2**97 + 12)) for n in range(40)],
    ],
)
def test_a_text_has_the_same_entries_in_every_batch(texts: list[str]) -> None:
    """Outcomes that are read one by one equal those that are read at once, also after a file."""
    table = from_raw(texts)
    apart = concatenate([from_raw([text]) for text in texts])
    kept = from_json(to_json(table), Outcomes)
    assert np.array_equal(apart.keys(), table.keys())
    assert np.array_equal(kept.keys(), table.keys())
    assert len(np.unique(table.keys())) == len(set(texts))
    assert apart.contents == table.contents == kept.contents
    assert table.words(range(3)) == list(map(repr, texts[:3]))


def test_contents_of_texts_that_repeat_are_not_learned_from() -> None:
    few, many = [f"bin {n % 4}" for n in range(40)], [f"bin {n}" for n in range(40)]
    assert [column.name for column in from_raw(few).columns] == ["output"]
    assert from_raw(few).texts_read == frozenset()
    assert len(from_raw(many).columns) == 2
    assert from_raw(many).texts_read == {"output"}
    shapes = [*few, *["none"] * 40]
    assert [column.name for column in from_raw(shapes).columns] == ["output"]
    assert from_raw([*many, *(chr(200 + n) for n in range(40))]).texts_read == frozenset()
