"""Texts that are not YAML: the line and column where the parser stops, and the line quoted."""

from __future__ import annotations

import pytest

from dpaudit.inputs.yaml_values import YamlError, parse_yaml

AUDIT = "version: 1\naudits:\n  - name: a\n"


@pytest.mark.parametrize(
    ("text", "line", "column", "quoted"),
    [
        (AUDIT + "     d1: 0\n", 4, 8, "d1: 0"),
        (AUDIT + "\td1: 0\n", 4, 1, "d1: 0"),
        (AUDIT + "    d1: a: b\n", 4, 10, "d1: a: b"),
        (AUDIT + "    d1: @b.csv\n", 4, 9, "d1: @b.csv"),
        (AUDIT + "    d1: \x01\n", 4, None, "U+0001"),
        ("a: {b: ${c}}\n", 1, 9, "a: {b: ${c}}"),
        ("a: *y\n", 1, 4, "a: *y"),
    ],
)
def test_the_line_is_named_and_quoted(
    text: str, line: int, column: int | None, quoted: str
) -> None:
    with pytest.raises(YamlError) as error:
        parse_yaml(text)
    assert (error.value.code, error.value.line, error.value.column) == (
        *("yaml-invalid", line, column),
    )
    assert quoted in str(error.value)
