"""Explain why a text is not valid YAML: where the mistake is, and how to repair it.

PyYAML reports the place where its parser stops, which is often after the mistake, and names parts
of its grammar. `explain` names the line to change in its place, and for a wrong indentation the
right one. It knows the messages of libyaml, by which PyYAML usually reads, and of PyYAML's own
parser.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import yaml

from dpaudit.wording import counted

# Matches a line break of YAML.
_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
# Matches the first key of a line, up to its colon.
_KEY = re.compile(r"""("[^"]*"|'[^']*'|[^\s"'\[{#-][^:#]*|-[^\s:][^:]*)\s*:(?=\s|$)""")
_DASH = re.compile(r"-( +|$)")
# Matches what follows a key or a dash if the text of the value is in the lines below.
_TEXT_BELOW = re.compile(r"\s*([!&]\S*\s+)*[|>][-+1-9]{0,2}\s*(#.*)?$")
# Matches a text that starts with a character that YAML reserves, so that the text needs quotes.
_RESERVED = re.compile(r"[@`%*&|>][^\s,}\]]*")
# Matches a reference without quotes, such as `${epsilon}`, which stands for a value in the key
# `matrix`. In braces or brackets, YAML needs quotes around it; without them, parsers stop at its
# brace.
_REFERENCE = re.compile(r"(?<![\"'\w$])\$\{[^{}\"']+\}")
# Explanations for parts of PyYAML's messages.
_CLEARER = {
    "<document start>": "something follows the end of the value",
    "node content": "a value is missing, or there is a comma too many",
    "sequence entries are not allowed": "a list begins on the line below its key: put each entry "
    "there, after a dash, or write [first, second]",
    "a block scalar": "after | or >, the text begins on the next line; put a text with | or > in "
    "front in quotes",
    "a directive": "a text with % in front needs quotes",
    "unknown escape character": "in double quotes, a backslash has a meaning of its own; use "
    "single quotes",
    "another document": "a line of three dashes begins another document; remove it, and put all "
    "audits into one list",
    # Only after a value that ends, such as a text in quotes: the line itself is indented rightly.
    "'-' indicator": "something follows the end of the value; put the whole value in quotes",
    "expected key": "something follows the end of the value; put the whole value in quotes",
    "<block end>": "something follows the end of the value; put the whole value in quotes",
}


class Explanation(NamedTuple):
    """The reason why a text is not valid YAML, with the line and the column of the mistake, both
    from 1; None if they are unknown."""

    why: str
    line: int | None = None
    column: int | None = None


class _Indent(NamedTuple):
    """Indentation of a key or of a dash, in spaces, and the number of its last line, from 1."""

    spaces: int
    is_dash: bool
    line: int


def _reserved(text: str, problem: str, context: str) -> str:
    """Return why a text that begins with a reserved character is no value; "" for other errors."""
    found = _RESERVED.match(text)
    if not found or not any(
        word in f"{problem} {context}" for word in ("token", "alias", "anchor")
    ):
        return ""
    first, word = found[0][0], found[0]
    why = f'a text with {first} in front needs quotes: "{word}"'
    if "undefined alias" in problem:
        why += f"; if it is an alias, define &{word[1:]} above it"
    return why


def explain(error: Any, text: str) -> Explanation:
    """Return the explanation of an error of PyYAML.

    error: a `yaml.YAMLError`, raised while `text` was read.
    """
    if isinstance(error, yaml.reader.ReaderError):
        before = _BREAK.split(text.partition(chr(error.character))[0])
        why = f"the control character U+{error.character:04X} is not allowed; remove it"
        return _at(len(before) - 1, len(before[-1]), why)
    problem, context = str(error.problem or ""), str(error.context or "")
    mark, start = error.problem_mark or error.context_mark, error.context_mark
    if mark is None:
        return Explanation(", ".join(filter(None, (problem, context))))
    if isinstance(error, yaml.constructor.ConstructorError):  # a value that does not fit its tag
        return _at(mark.line, mark.column, problem)
    lines = _BREAK.split(text)
    line = lines[mark.line] if mark.line < len(lines) else ""
    margin = len(line) - len(line.lstrip())
    if "end of stream" in problem and "quoted" in context:
        return _at(start.line, start.column, "the quote that begins here has no end; add it")
    if "flow" not in context and "\t" in line[:margin]:
        return _at(mark.line, line.index("\t"), "the line is indented by a tab; use spaces")
    if text[mark.index :].startswith("\t") and "token" in problem:
        return _at(mark.line, mark.column, "there is a tab in front of the value; use spaces")
    if "flow" in context and (reference := _REFERENCE.match(line, max(0, mark.column - 1))):
        why = f'a reference in braces or brackets needs quotes: "{reference[0]}"'
        return _at(mark.line, reference.start(), why)
    if twice := _second_property(text[: mark.index], text[mark.index : mark.index + 1]):
        return _at(mark.line, mark.column, twice)
    if "flow" in context and "content" not in problem:
        return _at(mark.line, mark.column, _unclosed(context, start, mark))
    if "could not find expected ':'" in problem:
        why = "a key needs a colon and a space after it (key: value)"
        return _at(start.line, start.column, why)
    before = start if start is not None and "scanning" in context else mark
    if reserved := _reserved(text[before.index :], problem, context):
        return _at(before.line, before.column, reserved)
    is_first = mark.column == margin and line != ""
    if "mapping values are not allowed" in problem:
        key = _KEY.match(_content(line))
        if key is None or len(line) - len(_content(line)) + key.end() - 1 < mark.column:
            return _at(mark.line, mark.column, "a value with a colon and a space needs quotes")
        is_first = True
    wrong = _indentation(lines, mark.line) if is_first else None
    if wrong is not None:
        return _at(mark.line, margin, wrong)
    if "mapping values are not allowed" in problem:
        why = "the line above has no colon and a space after its key (key: value)"
        return _at(mark.line, margin, why)
    said = ", ".join(filter(None, (problem, context)))
    why = next((clear for part, clear in _CLEARER.items() if part in said), said)
    return _at(mark.line, mark.column, why)


def _at(line: int, column: int, why: str) -> Explanation:
    """Return the explanation for a place. line, column: from 0, as PyYAML counts them."""
    return Explanation(why, line + 1, column + 1)


def _unclosed(context: str, start: Any, mark: Any) -> str:
    opened, closed = ("{", "}") if "mapping" in context else ("[", "]")
    where = f"the {opened} of line {start.line + 1}" if start.line != mark.line else f"a {opened}"
    return f"{where} lacks its {closed}, or a comma; quote a text with commas or brackets"


def _second_property(before: str, mark: str) -> str | None:
    """Return the message that a value has two anchors or two tags, or that an alias has one of
    them; None for any other mistake.

    before: the text in front of the mistake.
    mark: the character at the mistake.
    """
    first = re.search(r"(?:[&!]\S*\s+)+$", before)
    marks = "" if first is None else "".join(word[0] for word in first[0].split())
    if marks and mark == "*":
        return "an alias (*name) has no anchor and no tag in front; remove what is in front"
    if mark and mark in marks:
        what = "anchor (&name)" if mark == "&" else "tag (!name)"
        return f"a value has at most one {what}; remove the second one"
    return None


def _content(line: str) -> str:
    """Return a line without its indentation and the dashes of lists in front of its key."""
    line = line.lstrip(" ")
    while dash := _DASH.match(line):
        line = line[dash.end() :]
    return line


def _indentation(lines: list[str], number: int) -> str | None:
    """Return the message that a line is indented wrongly; None if it is indented like a key or a
    dash above it.

    number: index of the line.
    """
    line = lines[number]
    spaces = len(line) - len(line.lstrip(" "))
    is_dash = _DASH.match(line[spaces:]) is not None
    every = _indents(lines[:number])
    above = [one for one in every if one.is_dash is is_dash]
    if not every or any(one.spaces == spaces for one in above):
        return None
    if not above:
        why = "the line {}, and the lines above {}; {}"
        if is_dash:
            remedy = "indent it below the key that it belongs to"
            return why.format("begins with a dash", "are keys", remedy)
        return why.format("is a key", "begin with dashes", "put it into an entry of the list")
    less = [one for one in above if one.spaces < spaces][-1:]
    more = [one for one in above if one.spaces > spaces][:1]
    nearest = sorted([*less, *more], key=lambda one: abs(one.spaces - spaces))
    remedies = [f"by {one.spaces} as line {one.line}" for one in nearest]
    return f"the line is indented by {counted(spaces, 'space')}; indent it {', or '.join(remedies)}"


def _indents(lines: list[str]) -> list[_Indent]:
    """Return the indentations that a line after `lines` may have, the smallest first: those of the
    keys and dashes that are still open after these lines. The lines of a text below | or > have
    neither.
    """
    found: list[_Indent] = []
    above: int | None = None  # indentation of the key or dash of the text
    for number, line in enumerate(lines, 1):
        spaces = len(line) - len(line.lstrip(" "))
        rest = line[spaces:]
        if above is not None and (spaces > above or not rest):
            continue
        while dash := _DASH.match(rest):
            # The dashes of a list may be indented like the key above it.
            found = [one for one in found if (one.spaces, one.is_dash) < (spaces, True)]
            found.append(_Indent(spaces, is_dash=True, line=number))
            spaces, rest = spaces + dash.end(), rest[dash.end() :]
        if key := _KEY.match(rest):
            found = [one for one in found if one.spaces < spaces]
            found.append(_Indent(spaces, is_dash=False, line=number))
            rest = rest[key.end() :]
        above = found[-1].spaces if found and _TEXT_BELOW.match(rest) else None
    return found
