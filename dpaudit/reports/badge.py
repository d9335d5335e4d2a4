"""Make a badge and a sentence with which others can cite the result of an audit.

Neither of the two says that a mechanism is private.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import ROUND_FLOOR, Context, Decimal
from typing import Literal, NamedTuple
from urllib.parse import quote
from xml.sax.saxutils import escape, quoteattr

from dpaudit.certificates.certificate import ExactCertificate
from dpaudit.certificates.one_run import OneRunCertificate
from dpaudit.certificates.result import AuditResult, Verdict
from dpaudit.reports import numbers
from dpaudit.reports.bounds import bounds, decided_at, detectable_epsilon
from dpaudit.reports.markdown import escaped
from dpaudit.wording import counted, shortened, visible

_LABEL = "dpaudit"
_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
# A result without a violation is blue: green would suggest that the mechanism is private.
_COLOURS = {"blue": "#007ec6", "red": "#e05d44", "yellow": "#dfb317", "lightgrey": "#9f9f9f"}
_HEIGHT, _PADDING, _CHARACTER = 20, 6, 6.6
_MAX_CHARACTERS = 60
_SHOWN = "would have shown "

Colour = Literal["blue", "red", "yellow", "lightgrey"]


class Badge(NamedTuple):
    """The right half of a badge: its text and its colour. The left half has the word `dpaudit`."""

    words: str
    colour: Colour


def badge(results: Sequence[AuditResult]) -> Badge:
    """Return the badge for a file of results. For a single audit, it shows the finding; for several
    audits, the number of refuted claims."""
    if len(results) == 1:
        return _of_one(results[0])
    verdicts = [one.verdict for one in results]
    said = counted(len(results), "claim")
    refuted, failed = (verdicts.count(one) for one in (Verdict.VIOLATION, Verdict.ERROR))
    powerless = sum(_is_powerless(one) for one in results)
    parts = [f"{said}, {refuted} refuted" if refuted else f"{said}, none refuted"]
    parts += [counted(failed, "error")] if failed else []
    parts += [f"{powerless} under-powered"] if powerless else []
    colour: Colour = "red" if refuted else "lightgrey" if failed else "blue"
    return Badge(", ".join(parts), "yellow" if powerless and colour == "blue" else colour)


def statement(result: AuditResult, digest: str, date: str) -> str:
    """Return the finding of an audit in one line, with the data that others need to check it.

    digest: SHA-256 of the file of results.
    date: date on which its numbers were checked, such as `2026-05-17`.
    """
    claim = f"{result.claim.describe()} of {result.name} ({result.target})"
    by = f"dpaudit {result.versions.get('dpaudit', '(version unknown)')}"
    parts = [f"{by}: {claim}: {_outcome(result)}", *_evidence(result)]
    parts += [f"numbers rechecked on {date}", f"result file sha256:{digest}"]
    return " ".join(numbers.unglued("; ".join(parts)).split())


def markdown(shown: Badge, image: str | None = None) -> str:
    """Return a badge as an image in Markdown.

    image: path of an image file. If None, the Markdown refers to an image by the web service
    shields.io.
    """
    if image is None:
        parts = (_LABEL, numbers.unglued(shown.words), shown.colour)
        said = "-".join(quote(_for_shields(one), safe="") for one in parts)
        image = f"https://img.shields.io/badge/{said}"
    else:
        image = quote(image)
    return f"![{escaped(f'{_LABEL}: {numbers.unglued(shown.words)}')}]({image})"


def svg(shown: Badge, title: str) -> str:
    """Return a badge as an SVG image.

    title: the whole text, for screen readers and tooltips.
    """
    words = numbers.unglued(shown.words)
    left, right = (2 * _PADDING + round(len(text) * _CHARACTER) for text in (_LABEL, words))
    width, name = left + right, f"{_LABEL}: {words}"
    texts = "".join(
        f'<text x="{start + size / 2:g}" y="14" textLength="{size - 2 * _PADDING}">'
        f"{escape(text)}</text>"
        for start, size, text in ((0, left, _LABEL), (left, right, words))
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{_HEIGHT}" role="img" '
        f"aria-label={quoteattr(name)}><title>{escape(visible(title))}</title>"
        f'<rect width="{left}" height="{_HEIGHT}" fill="#555"/>'
        f'<rect x="{left}" width="{right}" height="{_HEIGHT}" fill="{_COLOURS[shown.colour]}"/>'
        '<g fill="#fff" text-anchor="middle" font-family="Verdana,DejaVu Sans,sans-serif" '
        f'font-size="11">{texts}</g></svg>\n'
    )


def _of_one(result: AuditResult) -> Badge:
    if result.verdict is Verdict.ERROR:
        return Badge("error, no verdict", "lightgrey")
    if result.verdict is Verdict.VIOLATION:
        return Badge(f"refuted, {bounds(result)[0].brief(result)}", "red")
    one = result.decisive
    if isinstance(one, ExactCertificate):
        return Badge(f"not refuted, computed, {bounds(result)[0].brief(result)}", "blue")
    parts = ["not refuted", _amount(result)]
    reach = _reach(result)
    parts += [reach] if reach else ["under-powered"]
    return Badge(", ".join(parts), "blue" if reach else "yellow")


def _amount(result: AuditResult) -> str:
    one = result.decisive
    if isinstance(one, OneRunCertificate):
        return f"{short(one.leading.guesses)} guesses"
    return f"{short(result.draws)} draws"


def _reach(result: AuditResult) -> str:
    """Return words for the smallest detectable ε: if the true ε of the pair of inputs that decides
    the verdict were at least this number, the audit would have refuted the claim with probability
    0.9. Return "" if no ε is large enough."""
    found = detectable_epsilon(result)
    if found is None or _is_powerless(result):
        return ""
    at = f" at δ = {numbers.plain(result.point.delta)}" if result.point.delta else ""
    return f"{_SHOWN}ε ≥ {numbers.at_most(found)}{at}"


def _is_powerless(result: AuditResult) -> bool:
    """Return whether an audit found no violation and lacked the power to find one."""
    if result.verdict is not Verdict.NO_VIOLATION_FOUND:
        return False
    return result.underpowered is not None or detectable_epsilon(result) == math.inf


def _outcome(result: AuditResult) -> str:
    if result.verdict is Verdict.ERROR:
        return f"ERROR, no verdict: {shortened(result.error or '', _MAX_CHARACTERS)}"
    how = f" at {decided_at(result)}" if result.ending.by_chance else ", exactly"
    if result.verdict is Verdict.VIOLATION:
        return f"refuted{how}, {bounds(result)[0].brief(result)}"
    if not result.ending.by_chance:
        return f"not refuted{how}, {bounds(result)[0].brief(result)}"
    found = _reach(result).removeprefix(_SHOWN)
    if not found:
        return f"not refuted{how}, under-powered"
    where = "these guesses" if isinstance(result.decisive, OneRunCertificate) else "its event"
    leak = f"a leak of {found} visible to {where}"
    return f"not refuted{how}; {leak} would have been caught about 9 times in 10"


def _evidence(result: AuditResult) -> list[str]:
    """Return two texts. The first is the number of pairs of inputs. The second is the number of
    draws or guesses, and the seed."""
    pairs = [one.pair for one in result.by_pair]
    parts = [shortened("; ".join(pairs), 2 * _MAX_CHARACTERS)] if pairs else []
    one = result.decisive
    if isinstance(one, OneRunCertificate):
        parts.append(f"{counted(one.leading.guesses, 'guess')} about {one.canaries:,} canaries")
    elif result.certificates:
        recorded = any(each.evidence.recording is not None for each in result.certificates)
        seed = "recorded" if recorded else f"seed {result.seed}"
        parts.append(f"{counted(result.draws, 'draw')}, {seed}")
    return parts


def short(count: int) -> str:
    """Return a count as short text, rounded down if it is large.

    >>> short(4_000_000), short(1_265), short(1_299_999), short(1_000_000)
    ('4·10⁶', '1,265', '1.2·10⁶', '10⁶')
    """
    if count < 100_000:
        return f"{count:,}"
    rounded = Context(prec=2, rounding=ROUND_FLOOR).create_decimal(count)
    power = rounded.adjusted()
    first = f"{rounded / Decimal(10) ** power:f}".rstrip("0").rstrip(".")
    ten = f"10{str(power).translate(_SUPERSCRIPTS)}"
    return ten if first == "1" else f"{first}·{ten}"


def _for_shields(text: str) -> str:
    """Return `text` escaped for use in a path of shields.io, whose separators are - and _."""
    return text.replace("-", "--").replace("_", "__").replace(" ", "_")
