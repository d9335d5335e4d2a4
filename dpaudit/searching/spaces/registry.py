"""All kinds of spaces by the word that a line begins with, each with an example."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dpaudit.searching.space import Space
from dpaudit.searching.spaces.numbers import Booleans
from dpaudit.searching.spaces.records import Users
from dpaudit.searching.spaces.texts import Texts

EXAMPLES: Mapping[str, str] = {
    "number": "number in [0, 1]",
    "integer": "integer in [0, 120]",
    "boolean": "boolean",
    "category": "category [a, b]",
    "text": "text",
    "list": "list of number in [0, 1]",
    "vector": "vector of 5 number",
    "table": "table {age: integer in [0, 120], city: category [a, b]}",
    "record": "record {age: integer in [0, 120]}",
    "user": "user",
}
# Those that take nothing.
PLAIN: Mapping[str, Callable[[], Space]] = {"boolean": Booleans, "text": Texts, "user": Users}
