"""What a trace shows: where two runs with the same noise differ, as plain data for reports.

A trace is a diagnosis and no certificate: it holds for the noise that was tried.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

FindingKind = Literal[
    "too-little-noise",
    "data-dependent-choice",
    "data-dependent-scale",
    "data-dependent-parameter",
    "no-noise",
    "control-flow",
    "exception",
    "noise-used-twice",
    "constant-seed",
    "unused-noise",
    "drawn-for-one-input",
    "sum",
    "state",
]


# How the note of a trace begins that was ended before its end.
CUT = "not all runs were made"


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line of code.

    Attributes
    ----------
    file : str
        As seen from the working directory.
    line : int
        From 1.
    code : str
        The expression in question, or the whole line, without its indentation.
    """

    file: str
    line: int
    code: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class Site:
    """A line that draws noise, or flips coins, and what this hides.

    Attributes
    ----------
    line : SourceLine
        Where it is drawn.
    added : SourceLine
        Where it is added to what it hides, or compared; often the same line.
    primitive : str
        What draws, such as `rng.laplace`; `coin` for a uniform number that is compared with a
        probability.
    law : str
        Of the noise, such as `laplace`; `unknown` where it is not understood.
    scales : tuple of (float, float), or None
        Of the noise, for d1 and for d2: equal, but where they depend on the data; of several, those
        of the entry that costs most. None where unknown.
    operands : tuple of (str, str)
        What the noise hides, for d1 and for d2, shortened.
    shift : float
        How far these are apart; of several, the largest.
    entries : int
        How many pieces of noise, over all turns of a loop.
    cost : float or None
        What the costliest piece costs, in `unit`; may be infinite. None where unknown.
    total : float or None
        What all pieces cost together, in `unit`: an upper estimate where not all are released.
    unit : {'ε', 'μ'}
        What costs are measured in: ε in nats, or the μ of Gaussian DP.
    released : bool
        Whether the output shows all the noised values.
    varies : bool
        Whether the shift is another one with other noise.
    callers : tuple of SourceLine
        The lines that the line was called from, the next one first.
    """

    line: SourceLine
    added: SourceLine
    primitive: str
    law: str
    scales: tuple[float, float] | None
    operands: tuple[str, str]
    shift: float
    entries: int
    cost: float | None
    total: float | None
    unit: Literal["ε", "μ"]
    released: bool
    varies: bool
    callers: tuple[SourceLine, ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that a trace has found.

    Attributes
    ----------
    kind : str
        Which of the known kinds.
    is_cause : bool
        Whether it alone makes the mechanism leak more than the claim allows; else it is a note.
    line : SourceLine
        The line to look at.
    words : str
        What is wrong, a sentence without its full stop.
    remedy : str
        What to change; empty where nothing general can be said.
    others : tuple of SourceLine
        Further lines that have a part in it.
    cost : float or None
        What it costs, the ε, or the μ, that the words name, at least 0; infinite for what no noise
        hides; None where it is not known.
    """

    kind: FindingKind
    is_cause: bool
    line: SourceLine
    words: str
    remedy: str
    others: tuple[SourceLine, ...] = ()
    cost: float | None = None

    @property
    def title(self) -> str:
        """The kind, in words."""
        return self.kind.replace("-", " ").replace("data dependent", "data-dependent")


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A piece of source code.

    Attributes
    ----------
    file : str
        As seen from the working directory.
    start : int
        The number of the first line.
    lines : tuple of str
        The lines, without their ends.
    marked : tuple of (int, str)
        Numbers of lines, each with a few words: what is drawn there, or what was found.
    """

    file: str
    start: int
    lines: tuple[str, ...]
    marked: tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True)
class Trace:
    """What coupled runs of a mechanism on two inputs show.

    Attributes
    ----------
    target : str
        What was run, in words.
    pair : str
        The two inputs, in words.
    claim : str or None
        What the sites are held against, in words; None where nothing was claimed.
    findings : tuple of Finding
        Causes first.
    sites : tuple of Site
        The lines that draw noise, the costliest first.
    total : str or None
        What all sites cost together, in words: an upper estimate. None where a cost is unknown.
    exceeds : bool
        Whether that is more than the claim allows.
    not_understood : tuple of (SourceLine, str)
        Where noise is drawn, or used, in a way that the trace does not understand, with the reason.
    excerpts : tuple of Excerpt
        The source code of all lines above.
    runs : int
        How many coupled pairs of runs were made.
    notes : tuple of str
        What else is to be known, such as why there is nothing to show.
    """

    target: str
    pair: str
    claim: str | None
    findings: tuple[Finding, ...]
    sites: tuple[Site, ...]
    total: str | None
    exceeds: bool
    not_understood: tuple[tuple[SourceLine, str], ...]
    excerpts: tuple[Excerpt, ...]
    runs: int
    notes: tuple[str, ...]

    @property
    def cut(self) -> str | None:
        """Why the trace was ended before its end, as a sentence; None where it was not."""
        return next((one for one in self.notes if one.startswith(CUT)), None)

    @property
    def causes(self) -> tuple[Finding, ...]:
        """The findings that alone make the mechanism leak more than the claim allows."""
        return tuple(one for one in self.findings if one.is_cause)

    def report(self, *, verbose: bool = False) -> str:
        """Return the trace in words, as the command line shows it.

        Parameters
        ----------
        verbose : bool, default False
            Whether to show all lines that draw noise.

        Returns
        -------
        str
            Lines of at most 80 columns, with a final newline.
        """
        # Imported when it is called: the exception that the contract of the layers names.
        from dpaudit.reports.trace import render

        return render(self, verbose=int(verbose))

    def __str__(self) -> str:
        return self.report()

    @property
    def likely(self) -> Finding | None:
        """The likely cause of a leak that a certificate proves, which is the first cause, else what
        seems to have no noise, else what one input alone draws, else the line that costs most; None
        where the trace shows none."""
        first = (*self.causes, *self.seemingly_bare, *self._drawn_for_one)
        if first:
            return first[0]
        costly = [one for one in self.sites if one.total]
        if not costly:
            return None
        site = max(costly, key=lambda one: one.total or 0.0)
        cost = "∞" if site.total == float("inf") else f"{site.total:.4g}"
        words = f"`{site.line.code}` costs most: {site.unit} = {cost}"
        if self.total is not None and self.claim is not None and not self.exceeds:
            words += "; all lines together cost what is claimed or less, so look elsewhere, too"
        others = tuple(one for one in (site.added, *site.callers) if str(one) != str(site.line))
        return Finding("sum", False, site.line, words, "", others)

    @property
    def seemingly_bare(self) -> tuple[Finding, ...]:
        """The findings of what no noise seems to hide, and that are no certain causes."""
        kinds = ("no-noise", "exception")
        return tuple(one for one in self.findings if one.kind in kinds and not one.is_cause)

    @property
    def understood(self) -> bool:
        """Whether the trace saw what any noise costs, or why that is too much. One that did not
        shows nothing, and is no pass."""
        if self.seemingly_bare and not self.causes:
            return False
        explained = len(self.findings) > len(self._drawn_for_one)
        return explained or any(one.cost is not None for one in self.sites)

    @property
    def _drawn_for_one(self) -> tuple[Finding, ...]:
        """The findings of what one input alone draws, whose cost is not known."""
        return tuple(one for one in self.findings if one.kind == "drawn-for-one-input")
