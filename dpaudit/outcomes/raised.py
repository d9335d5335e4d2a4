"""An exception as an outcome: what a crash of the mechanism, or an error of it, is from now on."""

from __future__ import annotations

from dataclasses import dataclass, field

# The label of an exception starts so; that of a string is quoted, so that none else does.
RAISED = "raised "


@dataclass(frozen=True, slots=True)
class Raised:
    """An exception of the mechanism, which is an outcome like any other; `kind` is its type.

    where: the line that raised it, as `mine.py:12`, or nothing; it has no part in the outcome.
    """

    kind: str
    message: str
    where: str = field(default="", compare=False)

    @property
    def words(self) -> str:
        """The exception in one line."""
        message = " ".join(self.message.split())
        text = f"{self.kind}: {message}" if message else self.kind
        return f"{text} ({self.where})" if self.where else text
