"""Show a bisection of the releases of a package as text, JSON, Markdown and HTML, with one row for
each release."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from dpaudit.releases.bisecting import Bisection, ReleaseResult
from dpaudit.reports.layout import Row, laid_out, table, wrap
from dpaudit.reports.markdown import escaped, table_head, table_row
from dpaudit.reports.numbers import at_least, level, p_at_most
from dpaudit.wording import visible

_HEAD = ("release", "answer", "ε at least", "p-value", "draws", "why")
_NO_PROOF = (
    "“not refuted”: this event would have shown a leak as large as the one that was found, in 9 of "
    "10 runs. Other events or inputs may still leak."
)
_STYLE = (
    "body{font-family:system-ui,sans-serif;margin:2em;max-width:60em}"
    "table{border-collapse:collapse}td,th{padding:.3em .8em;text-align:left;"
    "border-bottom:1px solid #ccc}.refuted{background:#f8d0d0}.not-refuted{background:#d4efd4}"
    ".cannot-tell{background:#eee}"
)


def as_text(result: Bisection) -> str:
    """Return the report for a terminal."""
    items = [
        Row("claim", f"{result.claim}, at {level(result.confidence)} for all releases"),
        Row("mechanism", result.target),
        Row("inputs", result.pair),
        Row("event", f"{result.event}  (found in {result.found_in})"),
        Row("seed", str(result.seed)),
    ]
    cells = [list(_HEAD[:-1]), *(list(_cells(release)[:-1]) for release in result.tested)]
    lines = [
        *wrap(f"{result.package}: {result.summary}"),
        "",
        *laid_out(items),
        "",
        *laid_out(table(cells, left=(0, 1))),
        *(
            line
            for release in result.tested
            if release.why
            for line in wrap(f"{release.release}: {release.why}")
        ),
        *(line for text in _legend(result) for line in ["", *wrap(text)]),
    ]
    return visible("\n".join(lines)) + "\n"


def as_json(result: Bisection) -> str:
    """Return the fields of the result as strict JSON, with null for infinite numbers."""
    fields = {"version": 1, "summary": result.summary, **asdict(result)}
    return json.dumps(_strict(fields), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def as_markdown(result: Bisection) -> str:
    """Return a Markdown table of the releases."""
    head = f"**{escaped(result.package)}: {escaped(result.summary)}**"
    rows = (table_row([escaped(cell) for cell in _cells(release)]) for release in result.tested)
    legend = [line for text in _legend(result) for line in (text, "")]
    return "\n".join([head, "", *_sentences(result), "", *table_head(_HEAD), *rows, "", *legend])


def as_html(result: Bisection) -> str:
    """Return an HTML page with a table of the releases. The page loads no other file."""
    head = "".join(f"<th>{html.escape(column)}</th>" for column in _HEAD)
    rows = "\n".join(
        f'<tr class="{release.answer.replace(" ", "-")}">'
        + "".join(f"<td>{html.escape(visible(cell))}</td>" for cell in _cells(release))
        + "</tr>"
        for release in result.tested
    )
    title = html.escape(visible(f"{result.package}: {result.summary}"))
    paragraphs = "".join(
        f"<p>{html.escape(visible(sentence))}</p>\n" for sentence in _sentences(result) if sentence
    )
    legend = "".join(f"<p>{html.escape(text)}</p>\n" for text in _legend(result))
    return (
        f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>{title}</title>\n'
        f"<style>{_STYLE}</style>\n<h1>{title}</h1>\n{paragraphs}<table><tr>{head}</tr>\n{rows}\n"
        f"</table>\n{legend}</html>\n"
    )


FORMATS = {"text": as_text, "json": as_json, "markdown": as_markdown, "html": as_html}


def _sentences(result: Bisection) -> Iterator[str]:
    yield f"Claim: {result.claim}, at {level(result.confidence)} for all releases."
    yield ""
    yield f"Event: {result.event}; found in {result.found_in}, frozen, and counted in each release."
    yield ""
    yield f"Mechanism: {result.target}; {result.pair}."


def _legend(result: Bisection) -> list[str]:
    """Return the explanation of “not refuted”, if a release has this answer."""
    is_needed = any(release.answer == "not refuted" for release in result.tested)
    return [_NO_PROOF] if is_needed else []


def _cells(release: ReleaseResult) -> tuple[str, ...]:
    known = release.p_value is not None and release.epsilon_lower is not None
    p = p_at_most(release.p_value or 0.0).removeprefix("= ")
    numbers = (
        (at_least(release.epsilon_lower or 0.0), p, f"{release.draws:,}") if known else ("", "", "")
    )
    return (release.release, release.answer, *numbers, release.why)


def _strict(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _strict(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_strict(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
