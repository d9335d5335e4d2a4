"""How the pairs of an audit were found, where nobody gave them: plain data for reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Leader:
    """A pair that a search has tried, with what its draws suggest.

    Attributes
    ----------
    d1, d2 : str
        The two inputs, as Python writes them, shortened where they are long.
    why : str
        What sets the pair apart, in a few words.
    inside : bool
        Whether both inputs lie in the space.
    estimate : float
        The bound for ε, at the claim's δ, that an audit may be expected to show; at least 0. It
        certifies nothing: the same draws have chosen the pair.
    draws : int
        That the estimate was made from, of both inputs.
    apart : str
        How two long lists differ, by one record; empty of others.
    """

    d1: str
    d2: str
    why: str
    inside: bool
    estimate: float
    draws: int
    apart: str = ""


@dataclass(frozen=True, slots=True)
class Searched:
    """A search for the pair of neighbouring inputs on which a mechanism leaks most.

    Attributes
    ----------
    space : str
        What an input may be.
    adjacency : str
        The relation between the two.
    pairs : int
        How many were tried, at least 1; without those outside the space where these do not count.
    refused : int
        How many of them gave nothing to judge: exceptions alone for both inputs, or an error.
    refusal : str
        Why the first of these gave nothing; empty where there is none.
    draws : int
        Made by the search. They certify nothing.
    leaders : tuple of Leader
        The most promising pairs, best first.
    found : tuple of (Any, Any)
        The pairs that were then audited, `(d1, d2)`, each with an equal share of the error
        probability; as plain values, before they became arrays or data frames.
    outside : tuple of bool
        Of which of these an input lies outside the space.
    shrunk : bool
        Whether the last of them is a simpler one that was made of the first.
    one_by_one : bool
        Whether the audit calls the mechanism once for each draw, since an exception is the outcome
        of a draw, and cannot be that of a batch.
    kept : tuple of str
        Variables of the mechanism that calls of the search have changed: what it keeps between
        calls, draws that certify may depend on.
    beyond : Leader or None
        A pair outside the space that seems to leak, where such pairs do not count. It was not
        audited.
    note : str
        What the search did without, and the remedy; empty where it had all.
    """

    space: str
    adjacency: str
    pairs: int
    refused: int
    refusal: str
    draws: int
    leaders: tuple[Leader, ...]
    found: tuple[tuple[Any, Any], ...]
    outside: tuple[bool, ...]
    shrunk: bool = False
    one_by_one: bool = False
    kept: tuple[str, ...] = ()
    note: str = ""
    beyond: Leader | None = None
