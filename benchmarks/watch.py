"""The results of `make watch` as docs/watch.md: `python -m benchmarks.watch`.

Reads every file of results in .watch, and writes the whole page.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from dpaudit.certificates.result import AuditResult, Verdict
from dpaudit.reports import numbers
from dpaudit.reports.json import read_document

ROOT = Path(__file__).parents[1]
FOUND = ROOT / ".watch"
DOCUMENT = ROOT / "docs" / "watch.md"

_HEAD = """\
| audit | claim of the library | verdict | ε at least | would have shown | draws |
|---|---|---|---|---|---|"""
# Where finds are explained, by library and pattern of the names of audits.
_EXPLAINED = {
    ("opacus", "step"): "opacus-160-a-batch-size-that-is-private",
    ("pure-ldp", "RAPPORClient.*"): "pure-ldp-120-a-bloom-filter-whose-bits-stay",
    ("multi-freq-ldpy", "(SPL-|SMP-)?SS"): "multi-freq-ldpy-025-the-order-of-a-set",
    ("multi-freq-ldpy", "RSpFD-.*"): "multi-freq-ldpy-025-one-attribute-in-place-of-all",
}
_INTRODUCTION = """\
# Libraries, audited with their own claims

`make watch` builds an environment for each file in `configs/watch/`, and audits mechanisms of its
library on a pair of neighbouring inputs, or on the pair that a search found. [The library makes the
claim](guides/library-claims.md); a claim such as “1-DP” is the ε of the arguments. Each of the
{planned} audits has an error probability of {alpha:.2g}, so at most {expected:.2g} false finds are
expected in all of them. This page shows one run of `make watch`: {audits} audits, dpaudit
{version}. Such a run draws for some 15 minutes with one worker.

“Would have shown” is the ε at the tested δ that this event would have refuted in 9 of 10 runs. A
pass says nothing about other inputs, rarer events or smaller leaks. A violation whose bound equals
the claim is a refutation by bets on the claimed ε itself; the page rounds this bound down as well.
"""


def page(by_library: Mapping[str, Sequence[AuditResult]], planned: Mapping[str, int]) -> str:
    """Return the page: an introduction, what was found, and a table for each library.

    by_library: results by the name of their file. planned: number of audits in each file.
    """
    every = [one for results in by_library.values() for one in results]
    alpha = max(1 - one.confidence for one in every)
    parts = [
        _INTRODUCTION.format(
            planned=sum(planned.values()),
            alpha=alpha,
            expected=alpha * sum(planned.values()),
            audits=len(every),
            version=every[0].versions["dpaudit"],
        ),
        *_found(by_library),
    ]
    for name, results in by_library.items():
        parts.append(f"## {_title(name, results)}\n")
        if len(results) < planned[name]:
            parts.append(f"The run ended after {len(results)} of {planned[name]} audits.\n")
        parts += ["\n".join([_HEAD, *map(_row, results)]) + "\n"]
    return "\n".join(parts)


def _title(name: str, results: Sequence[AuditResult]) -> str:
    """Return the library with its version; that of the file if an accountant made the claims."""
    sources = [one.claimed_by for one in results if one.claimed_by is not None]
    titles = {f"{one.library} {one.version}" for one in sources if "accountant" not in one.asked}
    return titles.pop() if len(titles) == 1 else " ".join(name.rsplit("-", 1))


def _found(by_library: Mapping[str, Sequence[AuditResult]]) -> Iterator[str]:
    refuted, failed = [], []
    for file, results in by_library.items():
        for one in results:
            if one.verdict is Verdict.VIOLATION:
                refuted.append(f"- {_title(file, results)}: {_linked(file, one.name)}")
            elif one.verdict is Verdict.ERROR:
                failed.append(f"- {_title(file, results)}: {one.name} ({one.error})")
    yield "\n".join(["Refuted:\n", *refuted, ""]) if refuted else "No claim was refuted.\n"
    if failed:
        yield "\n".join(["Not audited:\n", *failed, ""])


def _linked(file: str, audit: str) -> str:
    """Return the name of a find with a link to its section of the gallery."""
    for (library, pattern), section in _EXPLAINED.items():
        if file.startswith(library) and re.fullmatch(pattern, audit):
            return f"[{audit}](gallery.md#{section})"
    return f"{audit}, which has no explanation yet"


def _row(result: AuditResult) -> str:
    source = result.claimed_by
    # Without a source, the audit tests the ε of the constructor.
    claim = result.claim.describe() if source is None else f"{source.asked}: {source.answer}"
    verdict = {
        Verdict.VIOLATION: "**violation**",
        Verdict.NO_VIOLATION_FOUND: "none found",
        Verdict.ERROR: "error",
    }[result.verdict]
    if result.underpowered is not None:
        verdict = "under-powered"
    cells = [result.name, claim.replace("|", "\\|"), verdict, "", "", f"{result.draws:,}"]
    if result.certificates:
        certificate = min(result.certificates, key=lambda one: one.p_value)
        at = f" at δ = {certificate.point.delta:g}" if certificate.point.delta else ""
        cells[3] = numbers.at_least(result.epsilon_lower, above=certificate.point.epsilon) + at
        cells[4] = numbers.at_most(certificate.fixed.detectable_epsilon)
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    files = sorted(FOUND.glob("*.json"))
    read = {file.stem: read_document(file.read_text(encoding="utf-8")) for file in files}
    audits = {name: saved.results for name, saved in read.items()}
    text = page(audits, {name: saved.planned for name, saved in read.items()})
    DOCUMENT.write_text(text, encoding="utf-8")
