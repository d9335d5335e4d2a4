"""Define the result of a trace, which finds the lines where two runs with the same noise differ.

A trace is a diagnosis, valid for the noise values that were tried; it certifies nothing. Costs are
ε in nats, or μ of Gaussian DP (docs/method.md §14).
"""

from __future__ import annotations

import re
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


# Every note about a trace that stopped early begins with these words, by which `Trace.cut` finds
# it.
CUT = "not all runs were made"
# A note about noise that a library draws in compiled code ends with these words.
INSIDE = "is inside the library and cannot be seen"
# Remedy for the finding that the mechanism raises an exception that depends on the data.
GIVE_AN_OUTPUT = "give an output for every input, with noise, or treat the case without the data"


# The folder of installed packages in a path.
_INSTALLED = re.compile(r".*[/\\](?:site|dist)-packages(?=[/\\])", re.DOTALL)


def short_path(file: str) -> str:
    """Return the path of a file with `…` in place of the folder of installed packages.

    >>> short_path("/venv/lib/python3.11/site-packages/opacus/optimizers/optimizer.py")
    '…/opacus/optimizers/optimizer.py'
    """
    return _INSTALLED.sub("…", file)


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line of code.

    Attributes
    ----------
    file : str
        Path of the file: relative for a file in the working directory or below, else absolute; "?"
        if unknown.
    line : int
        Number of the line, from 1; 0 if unknown.
    code : str
        The expression that the report is about, or the whole line without indentation.
    """

    file: str
    line: int
    code: str

    def __str__(self) -> str:
        return "unknown line" if self.file == "?" else f"{short_path(self.file)}:{self.line}"


@dataclass(frozen=True, slots=True)
class Site:
    """A line that draws noise or flips coins, and the values that this noise hides.

    Attributes
    ----------
    line, added : SourceLine
        The line that draws the noise, and the line that adds it to a value or compares the two.
        Often both are the same line.
    primitive : str
        The function that draws, such as `rng.laplace`. `coin` stands for a uniform random number
        that is compared with a probability.
    law : str
        Distribution of the noise, such as `laplace`; `unknown` if the trace cannot determine it.
    scales : tuple of (float, float), or None
        Scale of the noise for d1 and for d2; None if unknown. They differ if the scale depends on
        the data, and are then the scales in the output. If the line draws several noise values, the
        scales are those of the value with the largest cost.
    operands : tuple of (str, str)
        The values that the noise hides, for d1 and for d2, as shortened text. For an array, all its
        values; if the line makes several sums of noise, the sum with the largest cost.
    shift : float
        Distance between the two values that the noise hides; if there are several noise values, for
        the one with the largest cost.
    entries : int
        Number of noise values that the line draws in one run.
    cost, total : float or None
        Largest cost of a single noise value, and cost of all noise values together, in `unit`. A
        cost may be infinite, and is None if unknown. The total is an upper estimate if not all
        values with noise are released.
    unit : {'ε', 'μ'}
        Unit of the costs: ε in nats, or the μ of Gaussian DP.
    released : bool
        Whether the output contains all values to which this noise was added.
    varies : bool
        Whether `shift` differs between runs with different noise.
    callers : tuple of SourceLine
        The lines of the call stack that led to the draw, the innermost first.
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
    """A difference between the two runs, or another problem, that a trace has found.

    Attributes
    ----------
    kind : str
        One of `FindingKind`.
    is_cause : bool
        Whether the problem by itself makes the mechanism leak more than the claim allows. If not,
        the finding is only a hint.
    line : SourceLine
        The line with the problem.
    words : str
        The problem, as a sentence without a full stop.
    remedy : str
        The change to make; "" if there is no general advice.
    others : tuple of SourceLine
        Further lines that contribute to the problem.
    cost : float or None
        The ε or μ that `words` states, at least 0. inf for a value that no noise hides; None if
        unknown.
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
        """The kind of the finding as a heading."""
        return self.kind.replace("-", " ").replace("data dependent", "data-dependent")


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A piece of source code.

    Attributes
    ----------
    file : str
        Path of the file, relative to the working directory if inside.
    start : int
        Number of the first line.
    lines : tuple of str
        The lines, without line ends.
    marked : tuple of (int, str)
        Pairs of the number of a line, and a few words about the noise or the finding there.
    """

    file: str
    start: int
    lines: tuple[str, ...]
    marked: tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True)
class Trace:
    """The result of a trace: runs of a mechanism on two inputs with the same noise (coupled runs).

    Printing it shows the report.

    Attributes
    ----------
    target, pair : str
        Descriptions of the mechanism and of the two inputs.
    claim : str or None
        Description of the claim with which the costs were compared; None without a claim.
    findings : tuple of Finding
        The findings, causes first.
    sites : tuple of Site
        The lines that draw noise, those with the largest cost first.
    total : str or None
        Upper estimate of the cost of all sites together, as text; None if a cost is unknown.
    exceeds : bool
        Whether the total is more than the claim allows.
    not_understood : tuple of (SourceLine, str)
        Lines that draw or use noise in a manner that the trace cannot analyse, each with the
        reason.
    excerpts : tuple of Excerpt
        Source code around the lines of findings, of sites and of `not_understood`.
    runs : int
        Number of coupled runs. Each consists of a run for d1 and a run for d2.
    notes : tuple of str
        Remarks, such as the reason why there are no findings.
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
        """The note that says why the trace stopped before all runs were made; None if all were
        made."""
        return next((note for note in self.notes if note.startswith(CUT)), None)

    @property
    def causes(self) -> tuple[Finding, ...]:
        """The findings that by themselves make the mechanism leak more than the claim allows."""
        return tuple(finding for finding in self.findings if finding.is_cause)

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
        # Imported inside the method, since reports are a higher layer than certificates. The import
        # contract lists this exception.
        from dpaudit.reports.trace_report import render

        return render(self, verbose=int(verbose))

    def __str__(self) -> str:
        return self.report()

    @property
    def likely(self) -> Finding | None:
        """The most likely cause of a proved leak; None if the trace found no cause. It is the first
        of these that exists: a finding that by itself makes the mechanism leak more than the claim
        allows; a value that seems to have no noise; noise that is drawn for one input only; the
        line with the largest cost."""
        first = (*self.causes, *self.seemingly_bare, *self._drawn_for_one)
        if first:
            return first[0]
        costly = [site for site in self.sites if site.total]
        if not costly:
            return None
        site = max(costly, key=lambda s: s.total or 0.0)
        cost = "∞" if site.total == float("inf") else f"{site.total:.4g}"
        words = f"`{site.line.code}` costs most: {site.unit} = {cost}"
        if self.total is not None and self.claim is not None and not self.exceeds:
            words += "; all lines together cost what is claimed or less, so look elsewhere, too"
        lines = tuple(line for line in (site.added, *site.callers) if str(line) != str(site.line))
        return Finding("sum", False, site.line, words, "", lines)

    @property
    def seemingly_bare(self) -> tuple[Finding, ...]:
        """The findings about values that seem to have no noise, except those that are certain to
        cause a leak."""
        kinds = ("no-noise", "exception")
        return tuple(
            finding for finding in self.findings if finding.kind in kinds and not finding.is_cause
        )

    @property
    def understood(self) -> bool:
        """Whether the trace knows the cost of at least one noise value, or a reason for the leak. A
        trace that does not, or that stopped early without finding a cause, does not count as
        passed."""
        if (self.seemingly_bare or self.cut) and not self.causes:
            return False
        explained = len(self.findings) > len(self._drawn_for_one)
        return explained or any(site.cost is not None for site in self.sites)

    @property
    def _drawn_for_one(self) -> tuple[Finding, ...]:
        """The findings about noise that is drawn for one input only and has an unknown cost."""
        return tuple(finding for finding in self.findings if finding.kind == "drawn-for-one-input")
