"""Audits as one self-contained HTML file: a table of all, and each with its figures.

Whatever a mechanism, a name or a message says is text: Jinja2 escapes it, what no browser shows is
written as Python writes it, and a content security policy lets nothing run but the page's own
script and style.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.util import find_spec
from typing import Any

from dpaudit.certificates.result import AuditResult, Verdict
from dpaudit.errors import UsageError
from dpaudit.reports import numbers
from dpaudit.reports.batch import chances, stopped, title, unended
from dpaudit.reports.findings import UNPROVEN, is_expected, leaves_open
from dpaudit.reports.html import canvas
from dpaudit.reports.html.pictures import left_out, pictures
from dpaudit.reports.html.view import Row, row_of, view_of
from dpaudit.version import __version__
from dpaudit.wording import install_command, visible

# A figure takes 3 ms and 3 kB: of more audits than these a browser would have to load 10 MB.
MOST_WITH_FIGURES = 200
# Largest number of unexpected results that are open at first.
MOST_OPEN = 3
# A parameter with its number, and code as messages quote it.
_EXPRESSION = re.compile(
    r"(?<!\w)(?:[εδμρσαβp]|D_[\d.]+) [=≥≤<>≈] (?:-?\d[\d.,]*(?:e[+-]?\d+)?|∞)(?<![.,])"
)
# Modules that the page is made with, and the packages that have them.
_NEEDED = {"jinja2": "Jinja2", "matplotlib": "matplotlib"}
_CODE = re.compile(r"`([^`]+)`")


def check() -> None:
    """Raise UsageError unless there is what the page is made with."""
    missing = [name for module, name in _NEEDED.items() if find_spec(module) is None]
    if missing:
        are = "which is" if len(missing) == 1 else "which are"
        raise UsageError(
            f"--report html needs {' and '.join(missing)}, {are} not installed: "
            f"{install_command('html')}",
            code="package-missing",
        )


class Part:
    """What is kept of one audit. Its section is made when it is asked for, and once."""

    def __init__(self, result: AuditResult) -> None:
        self.result = result
        self.is_met = is_expected(result)
        self._made: dict[tuple[int, bool, bool], str] = {}
        self._row: Row | None = None

    @property
    def row(self) -> Row:
        """The audit in the table of all."""
        if self._row is None:
            self._row = row_of(self.result)
        return self._row

    def section(self, number: int, *, with_figures: bool, is_open: bool) -> str:
        """Return the markup of the audit, the one of this number on its page."""
        made = (number, with_figures, is_open)
        if made not in self._made:
            self._made[made] = _rendered(
                "audit.html",
                number=number,
                row=self.row,
                view=view_of(self.result),
                with_figures=with_figures,
                is_open=is_open,
                pictures=pictures(self.result) if with_figures else [],
                left_out=left_out(self.result),
                size=(canvas.WIDTH, canvas.HEIGHT),
            )
        return self._made[made]


def entry(result: AuditResult) -> Part:
    """Return what is kept of one audit."""
    return Part(result)


def document(parts: Sequence[Part], planned: int, not_run: Sequence[str] = ()) -> str:
    """Return the page. planned: how many audits there are to be. not_run: names of those that the
    run stopped before."""
    safe = _environment().filters["ours"]
    order = sorted(range(len(parts)), key=lambda place: parts[place].is_met)
    drawn = set(order[:MOST_WITH_FIGURES])
    opened = {place for place in order[:MOST_OPEN] if not parts[place].is_met}
    sections = [
        parts[place].section(place + 1, with_figures=place in drawn, is_open=place in opened)
        for place in order
    ]
    now = clock()
    style, script = _source("style.css"), _source("script.js")
    return _rendered(
        "page.html",
        policy=safe(_policy(style, script)),
        style=safe(style),
        script=safe(script),
        title=title([one.is_met for one in parts], planned, not_run),
        counts=_counts(parts),
        chances=chances([one.result for one in parts]),
        missing=unended(len(parts), planned, not_run),
        stopped=stopped(not_run) if not_run else "",
        not_run=not_run,
        undrawn=len(parts) - len(drawn),
        drawn=len(drawn),
        rows=[(place + 1, parts[place].row) for place in order],
        sections=safe("".join(sections)),
        unproven=UNPROVEN if any(leaves_open(one.result) for one in parts) else "",
        version=__version__,
        moment=now.isoformat(timespec="seconds"),
        written=f"{now.day} {now:%B %Y, %H:%M} UTC",
    )


def clock() -> datetime:
    """Return when the page is written; reproducible builds set it by SOURCE_DATE_EPOCH."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    return datetime.fromtimestamp(int(epoch), UTC) if epoch.isdecimal() else datetime.now(UTC)


def _counts(parts: Sequence[Part]) -> list[tuple[str, str, int, int]]:
    """Return by verdict how many audits came out as expected, and how many did not."""
    tally = Counter((one.result.verdict, one.is_met) for one in parts)
    kinds = {one.result.verdict: one.row.kind for one in parts}
    return [
        (verdict.value, kinds[verdict], tally[verdict, True], tally[verdict, False])
        for verdict in Verdict
        if verdict in kinds
    ]


def _policy(style: str, script: str) -> str:
    """Return what the page may load and run: nothing but its own style and script."""
    hashes = [
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for text in (style, script)
    ]
    allowed = f"style-src 'sha256-{hashes[0]}'; script-src 'sha256-{hashes[1]}'"
    return f"default-src 'none'; {allowed}; img-src data:; base-uri 'none'; form-action 'none'"


def _source(name: str) -> str:
    """Return a file of the page as it stands in it."""
    environment = _environment()
    text: str = environment.loader.get_source(environment, name)[0]
    return f"\n{text.strip()}\n"


def _rendered(template: str, **values: Any) -> str:
    return str(_environment().get_template(template).render(**values))


@cache
def _environment() -> Any:
    import jinja2
    from markupsafe import Markup

    def shown(value: Any) -> Any:
        is_text = isinstance(value, str) and not isinstance(value, Markup)
        return visible(value) if is_text else value

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("dpaudit.reports.html"),
        autoescape=True,
        finalize=shown,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["ours"] = Markup
    environment.filters["whole"] = _whole
    environment.filters["prose"] = _prose
    return environment


def _whole(text: str) -> str:
    """Return a text in which no line breaks inside `ε = 1.69`."""
    return _EXPRESSION.sub(lambda found: found[0].replace(" ", numbers.GLUE), text)


def _prose(text: str) -> Any:
    """Return the markup of a text, as `_whole` has it, with code elements in place of backticks."""
    from markupsafe import Markup

    code = Markup("<code>{}</code>")
    parts = _CODE.split(visible(text))
    return Markup("").join(
        code.format(one) if place % 2 else _whole(one) for place, one in enumerate(parts)
    )
