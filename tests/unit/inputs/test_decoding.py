"""What became text on a command line, though it looks like a value."""

from __future__ import annotations

from typing import Any

import pytest

from dpaudit.errors import DatasetError
from dpaudit.inputs.datasets import load_dataset, parse_dataset
from dpaudit.inputs.decoding import check_read
from tests.raising import code


def said(text: str) -> list[str]:
    """Return the message of the error, or the warnings."""
    try:
        return check_read(text, parse_dataset(text))
    except DatasetError as error:
        return [str(error)]


def is_refused(text: str) -> bool:
    try:
        check_read(text, parse_dataset(text))
    except DatasetError:
        return True
    return False


@pytest.mark.parametrize(
    ("text", "form", "meant"),
    [
        ("None", "null", None),
        ("yes", "true", True),
        ("OFF", "false", False),
        ("tRUE", "true", True),
        ("-inf", "-.inf", float("-inf")),
        ("np.inf", ".inf", float("inf")),
        ("pd.NA", "null", None),
    ],
)
def test_a_constant_of_another_notation_is_said_with_how_yaml_writes_it(
    text: str, form: str, meant: Any
) -> None:
    (line,) = said(text)
    assert line.startswith(f"{text} is text here; write {form}")
    assert load_dataset(parse_dataset(form)) == meant
    assert not said(form)
    assert is_refused(text) is (text not in ("yes", "OFF"))


@pytest.mark.parametrize(
    "text",
    [
        *("(1,2)", "()", "1, 2", "[None, 1]", "[(1,2),(3,4)]", "{'a': None, 'b': (True, 1e999)}"),
        *("0b11", "1/2", "1,000", "-1,234,567.5", "1,5", "{None: 1}", "{2, 1}", "{1, 2}"),
        *("1+2j", "b'a'", "np.array([1, 2])", "range(3)", "{a}", "{a:1}", "[(1, 2)]" + 2_000 * " "),
    ],
)
def test_what_looks_like_a_value_is_refused(text: str) -> None:
    (line,) = said(text)
    assert line.partition(" is ")[0] in text
    assert "; write " in line
    assert is_refused(text)


@pytest.mark.parametrize("text", ["None", "(1,2)", "nan", "yes"])
def test_what_is_meant_as_text_may_be_quoted(text: str) -> None:
    (line,) = said(text)
    quoted = f'"{text}"'
    assert line.endswith(f"or '{quoted}' for the text")
    assert parse_dataset(quoted) == text
    for one in (quoted, f"'{text}'", f"[{quoted}]", f"['{text}', 1]", f"{{a: {quoted}}}"):
        assert not said(one), one


@pytest.mark.parametrize(
    "text",
    [
        *("hello", "hello world", "[a, b]", "north", "2024-01-01", "TypeError", "[0, TypeError]"),
        *("null", "~", "True", "[true, 1]", "1e5", "1_000", "0x1F", "NaN", "[1, NaN]", "Infinity"),
        *("[1,2,]", "{}", "'it''s'", "{tuple: [1, 2]}", "@rows.csv", "import:a.b:c", "x=None"),
        *('{"a": "None"}', "-5", "1.", ".5", "v1.2.3", "a/b", "1/0", "x" * 5_000, "(" * 150),
    ],
)
def test_what_is_read_as_it_looks_is_not_remarked_on(text: str) -> None:
    assert not said(text)


def test_a_number_larger_than_any_float_is_refused_in_every_form() -> None:
    for text in ("1e999", "[1, -1e999]", '{"a": 1e400}', "{a: 1e999}", "[x, 1e999]"):
        assert code(parse_dataset, text) == "number-too-large"
    assert parse_dataset("[Infinity, 1e308]") == [float("inf"), 1e308]
    assert parse_dataset("[.inf, -.inf]") == [float("inf"), float("-inf")]
