"""Results in notebooks and scripts: as HTML below a cell, as axes, as a data frame, as files."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpaudit.auditing.option_parsing import refused
from dpaudit.certificates.certificate import Certificate, ExactCertificate
from dpaudit.certificates.result import AuditResult
from dpaudit.errors import UsageError
from dpaudit.float_errors import auditor_errstate
from dpaudit.reports import bounds_report, events
from dpaudit.reports.audit_report import reason, verdict_of, warnings_of
from dpaudit.reports.formats import FORMATS
from dpaudit.reports.layout import Row
from dpaudit.reports.parity_report import named, named_html
from dpaudit.wording import install_command, visible

if TYPE_CHECKING:
    import os

    import pandas as pd
    from matplotlib.axes import Axes

# Colours in the middle between light and dark, since a notebook may be either: those of Okabe and
# Ito for d1 and d2. Text has the colour of the notebook.
_COLOURS = {"d1": "#d55e00", "d2": "#009e73"}
_STYLE = """<style>
.dpaudit-result td, .dpaudit-result th { text-align: left; padding: .1rem 1rem .1rem 0; }
.dpaudit-result svg { max-width: 32rem; width: 100%; color: inherit; }
.dpaudit-result path { fill: none; stroke: currentColor; stroke-width: .7; }
.dpaudit-result .frame path { stroke-opacity: .25; }
.dpaudit-result text { fill: currentColor; font: 10px system-ui, sans-serif; }
.dpaudit-result .middle text { text-anchor: middle; }
.dpaudit-result .end text { text-anchor: end; }
""" + "".join(
    f".dpaudit-result .{arm} path {{ stroke: {colour}; stroke-width: 1.8; }}\n"
    f".dpaudit-result .event.{arm} path {{ stroke: none; fill: {colour}; fill-opacity: .2; }}\n"
    for arm, colour in _COLOURS.items()
) + "</style>"  # fmt: skip
_FRAME = (
    "name", "verdict", "claim", "epsilon_lower", "delta_lower", "p_value", "confidence", "event",
    "draws", "seed", "seconds", "warnings",
)  # fmt: skip


def html(result: AuditResult) -> str:
    """Return a fragment of HTML with verdict, bounds and event and, with matplotlib, a figure."""
    with auditor_errstate():
        rows = [("claim", result.claim.describe()), ("mechanism", result.target)]
        items = bounds_report.rows(result, every=False) if result.decisive is not None else []
        rows += [(item.label or "", item.text) for item in items if isinstance(item, Row)]
        rows += [("warning", text) for text in warnings_of(result)]
        cells = "".join(
            f"<tr><th>{_safe(label)}</th><td>{_safe(text)}</td></tr>" for label, text in rows
        )
        title = f"<b>{_safe(verdict_of(result))}</b> {_safe(result.name)}: {_safe(reason(result))}"
        parts = [f"<p>{title}</p><table>{cells}</table>", _event(result), _figure(result)]
    body = named_html(result, "".join(parts))
    return f'<div class="dpaudit-result">{_STYLE}{body}</div>'


def _safe(text: str) -> str:
    return escape(visible(text))


def _event(result: AuditResult) -> str:
    certificate = result.decisive
    if not isinstance(certificate, Certificate):
        return ""
    event = events.leading_event(certificate)
    if event is None:
        return ""
    head = "".join(f"<th>{cell}</th>" for cell in ("", "", "seen in", "share", "Clopper–Pearson"))
    rows = "".join(
        f"<tr>{''.join(f'<td>{_safe(cell)}</td>' for cell in row)}</tr>"
        for row in events.counted_rows("E", event, certificate.point)
    )
    words = f"<p>event E: {_safe(events.brief(event.words))} (points to {event.guess})</p>"
    return f"{words}<table><tr>{head}</tr>{rows}</table>"


def _figure(result: AuditResult) -> str:
    certificate = result.decisive
    if find_spec("matplotlib") is None or not isinstance(
        certificate, Certificate | ExactCertificate
    ):
        return ""
    from dpaudit.reports.html.canvas import HEIGHT, WIDTH
    from dpaudit.reports.html.pictures import outputs

    picture = outputs(certificate)
    if picture is None:
        return ""
    box = f'viewBox="0 0 {WIDTH:.0f} {HEIGHT:.0f}" role="img" aria-label="{_safe(picture.alt)}"'
    keys = ", ".join(
        f'<b style="color: {_COLOURS[key.kind.split()[-1]]}">{_safe(key.words)}</b>'
        for key in picture.keys
    )
    return f"<svg {box}>{picture.drawing}</svg><p>{_safe(picture.title)}: {keys}</p>"


def plot(result: AuditResult, ax: Axes | None = None) -> Axes:
    """Draw each input's share of the draws in every level on axes, and shade the event."""
    if find_spec("matplotlib") is None:
        why = f"a plot needs matplotlib: {install_command('figures')}"
        raise UsageError(why, code="package-missing")
    from matplotlib import pyplot

    from dpaudit.reports.html.pictures import bars_of, likeliest

    certificate = result.decisive
    if not isinstance(certificate, Certificate | ExactCertificate):
        why = "there is nothing to plot: no draws of a pair of inputs were tested"
        raise UsageError(why)
    axes = pyplot.subplots()[1] if ax is None else ax
    every, noun = bars_of(certificate)
    shown = likeliest([bar for bar in every if bar.d1 or bar.d2])
    edges = range(len(shown) + 1)
    for arm, colour in _COLOURS.items():
        heights, label = [getattr(bar, arm) for bar in shown], named(result, arm)
        axes.stairs(heights, edges, color=colour, label=label)
    labelled: set[str] = set()
    for index, bar in enumerate(shown):
        if bar.guess is not None:
            event = None if bar.guess in labelled else named(result, f"event for {bar.guess}")
            axes.axvspan(index, index + 1, color=_COLOURS[bar.guess], alpha=0.2, lw=0, label=event)
            labelled.add(bar.guess)
    axes.set(xlabel=noun, ylabel="share of each input")
    axes.set_title(f"{visible(result.name)}: {verdict_of(result)}", parse_math=False)
    axes.legend()
    return axes


def to_frame(results: AuditResult | Iterable[AuditResult]) -> pd.DataFrame:
    """Return a data frame with a row for each audit, for example of a loop over mechanisms.

    Parameters
    ----------
    results : AuditResult or iterable of AuditResult
        The audits, in the order of the rows.

    Returns
    -------
    pandas.DataFrame
        The columns `name`, `verdict`, `claim`, `epsilon_lower`, `delta_lower`, `p_value`,
        `confidence`, `event` (as text; missing without one), `draws`, `seed`, `seconds`, `warnings`
        (their number).

    Raises
    ------
    UsageError
        If pandas is not installed, or for another value than results.

    Notes
    -----
    The frame has what `AuditResult` has, with the same guarantees: each bound holds with the
    probability in the column `confidence`, and no row says that a mechanism is private.

    Examples
    --------
    >>> import dpaudit
    >>> audits = [
    ...     dpaudit.audit(
    ...         lambda x, size, rng: x + rng.laplace(scale=scale, size=size), 0, 1, epsilon=1.0,
    ...         samples=2_000, name=f"scale {scale}",
    ...     )
    ...     for scale in (0.2, 1.0)
    ... ]
    >>> list(dpaudit.to_frame(audits)["verdict"])
    ['VIOLATION', 'NO VIOLATION FOUND']
    """
    if find_spec("pandas") is None:
        why = f"a data frame needs pandas: {install_command('notebook')}"
        raise UsageError(why, code="package-missing")
    import pandas as pd

    every = [results] if isinstance(results, AuditResult) else list(results)
    for result in every:
        if not isinstance(result, AuditResult):
            raise refused("results", result, "must be results of audits")
    return pd.DataFrame([_row(result) for result in every], columns=list(_FRAME))


def _row(result: AuditResult) -> dict[str, Any]:
    certificate = result.decisive
    event = events.leading_event(certificate) if isinstance(certificate, Certificate) else None
    row = {name: getattr(result, name) for name in _FRAME if name not in ("event", "warnings")}
    return row | {
        "verdict": result.verdict.value,
        "claim": result.claim.describe(),
        "event": None if event is None else event.words,
        "warnings": len(result.all_warnings),
    }


def save(result: AuditResult, path: str | os.PathLike[str]) -> Path:
    """Write the report of an audit to a file, in the format of its suffix, and return the file."""
    file = Path(path)
    # Reversed, since the first of two formats with a suffix counts: .txt is a text report.
    formats = {chosen.suffix: chosen for chosen in reversed([*FORMATS.values()])}
    if file.suffix not in formats:
        why = f"{str(path)!r} must end with {', '.join(sorted(formats))}"
        raise UsageError(why, code="report-format-unknown")
    chosen = formats[file.suffix]
    chosen.check()
    text = chosen.document([chosen.entry(result)], 1)
    file.write_bytes(text.encode(errors="backslashreplace"))
    return file
