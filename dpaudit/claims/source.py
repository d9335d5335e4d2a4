"""The origin of a claim that the audited library itself makes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ClaimSource:
    """The library that made a claim, and how it was asked.

    Attributes
    ----------
    library, version : str
        Name and installed version of the library.
    asked : str
        The call or attribute that gave the claim, such as "m.map(d_in=1)".
    answer : str
        The claim in the parameters of the library, such as "ε = 0.5".
    """

    library: str
    version: str
    asked: str
    answer: str

    def describe(self) -> str:
        """Return the source in one line, such as "OpenDP 0.14.2, m.map(d_in=1): ε = 0.5"."""
        return f"{self.library} {self.version}, {self.asked}: {self.answer}"
