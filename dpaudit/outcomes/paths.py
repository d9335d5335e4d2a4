"""Where in an outcome an entry stands: `output["Escargots"]`, `output[2].age`."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Literal

# item: of a list; key: of a dict; element: of a set, which says only that it is there;
# attribute: of an object; about: what is said of a whole (its length), and no part of it; form: how
# the value is represented, which Python does not compare (its type).
Step = Literal["root", "item", "key", "element", "attribute", "about", "form"]


# How the step of the order of keys is called.
ORDER = "order of keys"


@dataclass(frozen=True, slots=True)
class Path:
    """A place in an outcome; two paths are the same when their names are.

    word: the last step as it is written: an index, a key, an element, the name of an attribute, or
    what is said (`length`).
    """

    parent: Path | None
    step: Step
    word: str
    name: str = field(init=False)
    depth: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self._name())
        object.__setattr__(self, "depth", 0 if self.parent is None else self.parent.depth + 1)

    @property
    def is_in_keys(self) -> bool:
        """Whether the entry here is part of what an outcome is: not the order of keys, of which it
        depends on the process whether a set has them in the same order."""
        return self.step != "form" or self.word != ORDER

    @property
    def tells_by_absence(self) -> bool:
        """Whether it is a fact of its own that there is no such entry, as of a key; that an entry
        of a list is absent follows from the length."""
        return self.step in ("key", "element")

    def then(self, step: Step, word: str) -> Path:
        """Return the path of a part."""
        return Path(self, step, word)

    def item(self, place: int) -> Path:
        """Return the path of an entry of a list."""
        return Path(self, "item", str(place))

    def key(self, key: str) -> Path:
        """Return the path of what a dict has at a string."""
        return Path(self, "key", quoted(key))

    def about(self, what: str) -> Path:
        """Return the path of what is said of the value here."""
        return Path(self, "about", what)

    def form(self, what: str) -> Path:
        """Return the path of how the value here is represented."""
        return Path(self, "form", what)

    def _name(self) -> str:
        whole = "" if self.parent is None else self.parent.name
        if self.step in ("item", "key"):
            return f"{whole}[{self.word}]"
        if self.step == "attribute":
            return f"{whole}.{self.word}"
        if self.step == "element":
            return f"element {self.word} of {whole}"
        return f"{self.word} of {whole}" if self.step in ("about", "form") else self.word


ROOT = Path(None, "root", "output")


def quoted(text: str) -> str:
    """Return a string in double quotes, as one line that no other string is written as."""
    return json.dumps(text, ensure_ascii=not text.isprintable())
