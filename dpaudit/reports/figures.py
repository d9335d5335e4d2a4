"""Draw curves as a PNG, SVG or PDF file, returned as bytes. Needs matplotlib."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from dpaudit.errors import UsageError
from dpaudit.wording import did_you_mean, install_command

FORMATS = ("png", "svg", "pdf")


@dataclass(frozen=True, slots=True)
class Line:
    """A curve of a figure.

    label: text in the legend; "" for a curve without an entry.
    faint: whether it is drawn pale, as a reference for other curves.
    """

    x: Sequence[float]
    y: Sequence[float]
    label: str = ""
    faint: bool = False


def check_format(suffix: str) -> str:
    """Return the format that a file's suffix names, such as svg. Raises UsageError for an unknown
    suffix."""
    name = suffix.removeprefix(".").lower()
    if name not in FORMATS:
        raise UsageError(
            f"a figure cannot be written as {suffix!r}; name a file that ends in "
            f".png, .svg or .pdf.{did_you_mean(name, FORMATS)}",
            code="file-type-unknown",
        )
    return name


def drawn(
    lines: Sequence[Line],
    kind: str,
    title: str,
    x_label: str,
    y_label: str,
    *,
    log_y: bool = False,
    groups: int = 1,
) -> bytes:
    """Return a figure of curves as bytes, in one of `FORMATS`. Raises UsageError if matplotlib is
    missing.

    log_y: whether the vertical axis is logarithmic; all curves must then be above 0.
    groups: number of consecutive lines that get the same colour.
    """
    figure = _matplotlib().Figure(figsize=(6.4, 4.4), layout="constrained")
    axes = figure.add_subplot(title=title, xlabel=x_label, ylabel=y_label)
    axes.grid(visible=True, color="0.9", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    bold = [one for one in lines if not one.faint]
    for one in lines:
        colour, dashes = ("0.6", "--") if one.faint else (f"C{bold.index(one) // groups}", "-")
        width = 1.0 if one.faint else 1.8
        axes.plot(one.x, one.y, dashes, color=colour, linewidth=width, label=one.label or None)
    if log_y:
        axes.set_yscale("log")
    if any(one.label for one in lines):
        axes.legend(frameon=False)
    target = io.BytesIO()
    # The file gets no date, so that the same curves always give the same bytes.
    metadata = {"Date": None} if kind == "svg" else {"CreationDate": None} if kind == "pdf" else {}
    figure.savefig(target, format=kind, dpi=150, metadata=metadata)
    return target.getvalue()


def _matplotlib() -> Any:
    try:
        return import_module("matplotlib.figure")
    except ImportError:
        raise UsageError(
            f"a figure needs matplotlib, which is not installed: {install_command('figures')}",
            code="package-missing",
        ) from None
