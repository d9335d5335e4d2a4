"""Read YAML texts as plain values. Keys must be unique; numbers and Booleans are those of YAML
1.2."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import yaml

from dpaudit.errors import UsageError
from dpaudit.wording import shown

_KINDS = "null bool int float str seq map set omap pairs binary timestamp merge"
_PLAIN_TAGS = frozenset(f"tag:yaml.org,2002:{kind}" for kind in _KINDS.split())

# Largest number of lists and mappings that may be nested. A document that is nested more deeply is
# refused, since it could overflow the stack.
MAX_DEPTH = 200
# Part of PyYAML's message, since version 6.0.4, about a text with more than 1,000 nested levels.
_TOO_DEEP = "exceeded maximum nesting depth"
_INDENTED = re.compile(rf"^[ ?:-]{{{MAX_DEPTH // 2}}}", re.MULTILINE)

# Largest number of values and characters by which a document may grow when its aliases are replaced
# by the values that they refer to. Without a limit, a few lines with aliases could stand for
# billions of values.
_MAX_REPEATED = 10_000_000

_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class PlainLoader(_Base):  # type: ignore[misc]  # the C loader if there is one, so the type is Any
    """PyYAML's safe loader, with the numbers and Booleans of YAML 1.2. What only YAML 1.1 reads as
    a number or Boolean, such as `1:30` and `yes`, is a text. So is a date without the tag
    `!!timestamp`."""

    # PyYAML's own rules for values without quotes are removed, since they follow YAML 1.1.
    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}

    def construct_integer(self, node: Any) -> int:
        """Return the integer in a node, such as 12, 1_000, 0x1F or 0o17; the text 017 is 17."""
        text = node.value.replace("_", "")
        sign, digits = (text[:1], text[1:]) if text[:1] in ("+", "-") else ("", text)
        base = {"0x": 16, "0o": 8}.get(digits[:2], 10)
        return int(sign + digits[2 if base != 10 else 0 :], base)

    def construct_float(self, node: Any) -> float:
        """Return the float in a node, such as 1.5, 1e3, .inf or .nan. Raises YamlError if the
        number is larger than any float."""
        value = float(self.construct_yaml_float(node))
        if math.isinf(value) and "inf" not in node.value.lower():
            why = f"{node.value} is larger than any float, 1.8e308; write .inf if that is meant"
            raise YamlError(why, line_of(node), code="number-too-large")
        return value

    def construct_truth(self, node: Any) -> bool:
        """Return the Boolean in a node with the tag `!!bool`. Raises an error for other texts."""
        if node.value.lower() not in self.bool_values:
            raise _misfit(node, "true or false")
        return bool(self.bool_values[node.value.lower()])

    def construct_time(self, node: Any) -> Any:
        """Return the date, or date with a time, in a node with the tag `!!timestamp`. Raises
        ConstructorError for any other text."""
        if not self.timestamp_regexp.match(node.value):
            raise _misfit(node, "a date such as 2024-01-31, or with a time, 2024-01-31 12:30:00")
        return self.construct_yaml_timestamp(node)


def _misfit(node: Any, wanted: str) -> Exception:
    tag = node.tag.replace("tag:yaml.org,2002:", "!!")
    problem = f"{tag} {node.value!r} must be {wanted}"
    return yaml.constructor.ConstructorError(None, None, problem, node.start_mark)


for _kind, _construct in (
    ("int", PlainLoader.construct_integer),
    ("float", PlainLoader.construct_float),
    ("bool", PlainLoader.construct_truth),
    ("timestamp", PlainLoader.construct_time),
):
    PlainLoader.add_constructor(f"tag:yaml.org,2002:{_kind}", _construct)

# (type, pattern, possible first characters) of the values without quotes that are not read as
# texts, as in YAML 1.2.2, section 10.3.2. Numbers may also have underscores between digits.
_SCALARS = (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("int", r"[-+]?[0-9][0-9_]*|0o[0-7][0-7_]*|0x[0-9a-fA-F][0-9a-fA-F_]*", "-+0123456789"),
    (
        "float",
        r"[-+]?(\.[0-9][0-9_]*|[0-9][0-9_]*(\.[0-9_]*)?)([eE][-+]?[0-9]+)?"
        r"|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
        "-+.0123456789",
    ),
    ("merge", r"<<", "<"),
)
for _kind, _pattern, _first in _SCALARS:
    PlainLoader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_kind}", re.compile(rf"^(?:{_pattern})$"), list(_first)
    )


class YamlError(UsageError):
    """Raised for a YAML text that cannot be read. Has the line and the column, from 1, if known."""

    def __init__(
        self,
        message: str,
        line: int | None = None,
        column: int | None = None,
        *,
        code: str = "yaml-invalid",
    ) -> None:
        super().__init__(message, code=code)
        self.line, self.column = line, column


def _refused(why: str, line: int) -> YamlError:
    return YamlError(why, line, code="value-refused")


def parse_yaml(text: str) -> Any:
    """Return the value of a text with one YAML document. Raises YamlError."""
    return construct(compose(text))


def compose(text: str) -> Any:
    """Return the root node of a YAML document, after a check of its tags, numbers, keys and
    aliases. Return None for an empty document. Raises YamlError."""
    if _may_be_deep(text):
        _check_depth(text)
    with _loading(text) as loader:
        node = loader.get_single_node()
    nodes, size = ([], 0) if node is None else _all_nodes(node)
    for part in nodes:
        _check_tag(part)
        _check_digits(part)
        _check_keys(part)
    _check_repeated(nodes, size)
    return node


@contextmanager
def _loading(text: str) -> Iterator[PlainLoader]:
    """Provide a loader for a YAML text, and replace its exceptions by YamlError."""
    loader = PlainLoader(text)
    try:
        yield loader
    except yaml.YAMLError as error:
        if _TOO_DEEP in str(error):
            mark = getattr(error, "problem_mark", None)
            raise _too_deep(None if mark is None else mark.line + 1) from None
        raise _invalid(error, text) from None
    except (ValueError, OverflowError) as error:  # such as a date in month 13
        raise YamlError(f"not valid YAML: {error}", code="yaml-invalid") from None
    finally:
        loader.dispose()


def _invalid(error: Any, text: str) -> YamlError:
    """Return the error for an exception of PyYAML, with the line quoted."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    if isinstance(error, yaml.reader.ReaderError):
        line = text.partition(chr(error.character))[0].count("\n")
        why = f"the character U+{error.character:04X} is not allowed"
        return YamlError(f"not valid YAML: {why}", line + 1)
    if mark is None:
        return YamlError(f"not valid YAML: {error}")
    quoted = [shown(line.strip(), 160) for line in text.split("\n")[mark.line : mark.line + 1]]
    why = ": ".join([error.problem or error.context, *filter(None, quoted)])
    return YamlError(f"not valid YAML: {why}", mark.line + 1, mark.column + 1)


def _may_be_deep(text: str) -> bool:
    """Return whether a text may be so deeply nested that its levels must be counted."""
    # Counting takes time, and most texts have few brackets and little indentation.
    return text.count("[") + text.count("{") > MAX_DEPTH or _INDENTED.search(text) is not None


def _check_depth(text: str) -> None:
    """Raise YamlError if a text has more than 200 nested levels."""
    # PyYAML's loader in C would overflow the stack.
    depth = 0
    with _loading(text) as loader:
        while loader.check_event():
            event = loader.get_event()
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_DEPTH:
                raise _too_deep(event.start_mark.line + 1)


def _too_deep(line: int | None) -> YamlError:
    return YamlError(
        f"nested more than {MAX_DEPTH} deep; make it flatter", line, code="nested-too-deeply"
    )


def construct(node: Any) -> Any:
    """Return the value of a YAML document from its root node, the result of `compose`. Raises
    YamlError."""
    if node is None:
        return None
    with _loading("") as loader:
        return loader.construct_document(node)


def line_of(node: Any) -> int:
    """Return the number of the line on which a node starts, from 1."""
    return int(node.start_mark.line) + 1


def _all_nodes(root: Any) -> tuple[list[Any], int]:
    """Return all nodes, parents first, and the size in values and characters without aliases."""
    nodes: list[Any] = []
    sizes: dict[int, int] = {}
    open_nodes: set[int] = set()
    stack = [root]
    while stack:
        node = stack[-1]
        children = _children(node)
        if id(node) in open_nodes or id(node) in sizes:
            stack.pop()
            if id(node) in open_nodes:
                open_nodes.discard(id(node))
                sizes[id(node)] = _own_size(node) + sum(sizes[id(child)] for child in children)
            continue
        nodes.append(node)
        open_nodes.add(id(node))
        if any(id(child) in open_nodes for child in children):
            raise _refused("an alias (*name) refers to a value that contains it", line_of(node))
        stack.extend(reversed(children))
    return nodes, sizes[id(root)]


def plain_texts(node: Any, *, keys: bool = False) -> Iterator[str]:
    """Yield the values of a document that are strings without quotes; with `keys`, the keys that
    are."""
    nodes = [] if node is None else _all_nodes(node)[0]
    pairs = [pair for part in nodes if isinstance(part, yaml.MappingNode) for pair in part.value]
    names = {id(key) for key, _ in pairs}
    for part in nodes:
        is_text = isinstance(part, yaml.ScalarNode) and part.tag == "tag:yaml.org,2002:str"
        if is_text and not part.style and (id(part) in names) is keys:
            yield part.value


def empty_keys(node: Any) -> Iterator[str]:
    """Yield the keys in braces that have no value, such as `a` in `{a}`. In `{a:1}`, YAML reads
    `a:1` as such a key, since the space after the colon is missing."""
    for part in [] if node is None else _all_nodes(node)[0]:
        if isinstance(part, yaml.MappingNode) and part.flow_style:
            for key, value in part.value:
                is_scalar = isinstance(value, yaml.ScalarNode)
                if is_scalar and not value.style and value.value == "":
                    yield key.value


def _children(node: Any) -> list[Any]:
    if isinstance(node, yaml.MappingNode):
        return [part for pair in node.value for part in pair]
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []


def _check_repeated(nodes: list[Any], size: int) -> None:
    """Raise YamlError if a document becomes too large when its aliases are replaced."""
    repeated = size - sum(map(_own_size, nodes))
    if repeated > _MAX_REPEATED:
        raise _refused(
            f"aliases (*name) repeat {repeated:,} values and characters, at most "
            f"{_MAX_REPEATED:,} are allowed; use a function that makes the dataset "
            "(import:package.module:name)",
            line_of(nodes[0]),
        )


def _own_size(node: Any) -> int:
    return 1 + len(node.value) if isinstance(node, yaml.ScalarNode) else 1


def _check_tag(node: Any) -> None:
    if node.tag in _PLAIN_TAGS:
        return
    tag = node.tag.replace("tag:yaml.org,2002:", "!!")
    raise _refused(
        f"the tag {tag} is refused: files hold plain values and never build Python objects; "
        "for a dataset that is an object write import:package.module:name",
        line_of(node),
    )


def _check_digits(node: Any) -> None:
    limit, digits = sys.get_int_max_str_digits(), len(node.value)
    if node.tag == "tag:yaml.org,2002:int" and 0 < limit < digits:
        raise _refused(
            f"a number of {digits:,} digits is too long, at most {limit:,} are allowed; write it "
            "as 1e…, or use a function that makes the dataset (import:package.module:name)",
            line_of(node),
        )


def _check_keys(node: Any) -> None:
    if not isinstance(node, yaml.MappingNode):
        return
    lines: dict[tuple[str, str], int] = {}
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise _refused("a key must be a single word, not a list or a mapping", line_of(key))
        first = lines.get((key.tag, key.value))
        if first is not None:
            raise YamlError(
                f"the key {key.value!r} is given twice (first on line {first})",
                line_of(key),
                code="key-twice",
            )
        lines[key.tag, key.value] = line_of(key)
