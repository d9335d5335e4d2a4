"""A reader of the text format of protocol buffers, without the schema of its messages."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

_TOKEN = re.compile(
    r"""(?P<space>\s+|\#[^\n]*)
    |(?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    |(?P<number>[-+]?\.?\d[\w.]*(?:(?<=[eE])[-+]\d+)?)
    |(?P<word>-?[A-Za-z_][\w.]*)
    |(?P<mark>[{}\[\]:,;<>])""",
    re.VERBOSE,
)
_ENDS = {"{": "}", "<": ">"}


@dataclass(frozen=True, slots=True)
class Message:
    """A message: the values of every field, in the order of the file.

    A list of values and a field that occurs several times are the same. The value of an enumeration
    is its name.
    """

    fields: dict[str, list[Value]]

    def messages(self, name: str) -> list[Message]:
        """Return the messages of a field."""
        return [value for value in self.fields.get(name, []) if isinstance(value, Message)]

    def message(self, name: str) -> Message:
        """Return the only message of a field; an empty one if it is missing."""
        return ([*self.messages(name), Message({})])[0]

    def number(self, name: str, default: float | None = None) -> float:
        """Return the last number of a field, or the default; raise ValueError without either."""
        numbers = self.numbers(name)
        if numbers:
            return numbers[-1]
        if default is None:
            raise ValueError(f"{name} is missing; state it")
        return default

    def numbers(self, name: str) -> list[float]:
        """Return the numbers of a field."""
        return [one for one in self.fields.get(name, []) if isinstance(one, int | float)]

    def text(self, name: str) -> str:
        """Return the last text of a field, or ""."""
        texts = [one for one in self.fields.get(name, []) if isinstance(one, str)]
        return texts[-1] if texts else ""


Value = int | float | str | Message


class _Token(NamedTuple):
    kind: str
    text: str
    line: int


def parse(source: str) -> Message:
    """Return the message that a file in the text format describes.

    Raises
    ------
    ValueError
        If the text is not in this format; the message names the line.
    """
    tokens = [*_tokens(source), _Token("end", "", source.count("\n") + 1)]
    tokens.reverse()  # the next one is the last
    return _message(tokens, end="")


def _tokens(source: str) -> Iterator[_Token]:
    place, line = 0, 1
    while place < len(source):
        match = _TOKEN.match(source, place)
        if match is None:
            raise ValueError(f"line {line}: {source[place]!r} is not text format")
        if match.lastgroup is not None and match.lastgroup != "space":
            yield _Token(match.lastgroup, match[0], line)
        place, line = match.end(), line + match[0].count("\n")


def _message(tokens: list[_Token], end: str) -> Message:
    fields: dict[str, list[Value]] = {}
    while (token := tokens.pop()).text != end or (end == "" and token.kind != "end"):
        if token.kind != "word":
            raise ValueError(f"line {token.line}: a field was expected, not {_shown(token)}")
        values = fields.setdefault(token.text, [])
        if tokens[-1].text == ":":
            tokens.pop()
        if tokens[-1].text == "[":
            tokens.pop()
            while tokens[-1].text != "]":
                values.append(_value(tokens))
                if tokens[-1].text == ",":
                    tokens.pop()
            tokens.pop()
        else:
            values.append(_value(tokens))
        if tokens[-1].text in {",", ";"}:
            tokens.pop()
    return Message(fields)


def _value(tokens: list[_Token]) -> Value:
    token = tokens.pop()
    if token.text in _ENDS:
        return _message(tokens, _ENDS[token.text])
    if token.kind == "word":
        return token.text
    try:
        if token.kind == "text":
            text = str(ast.literal_eval(token.text))
            while tokens[-1].kind == "text":  # adjacent texts are one
                text += str(ast.literal_eval(tokens.pop().text))
            return text
        if token.kind == "number":
            digits = token.text
            return int(digits) if digits.lstrip("+-").isdigit() else float(digits.rstrip("fF"))
    except (SyntaxError, ValueError):
        pass
    raise ValueError(f"line {token.line}: a value was expected, not {_shown(token)}")


def _shown(token: _Token) -> str:
    return "the end of the file" if token.kind == "end" else repr(token.text)
