"""Show the progress of an audit in a notebook. Outside of a notebook, there is no progress bar."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import contextmanager
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dpaudit.certificates.result import Progress


@contextmanager
def notebook_bar() -> Iterator[Callable[[Progress], None] | None]:
    """Yield a function that takes a `Progress` and shows it as a bar below the notebook's cell. The
    bar is removed at the end of the `with` block. Outside of a notebook, yield None."""
    if "ipykernel" not in sys.modules:
        yield None
        return
    display: Any = import_module("IPython.display")
    handle: Any = None

    def show(progress: Progress) -> None:
        nonlocal handle
        page = display.HTML(_bar(progress))
        if handle is None:
            handle = display.display(page, display_id=True)
        else:
            handle.update(page)

    try:
        yield show
    finally:
        if handle is not None:
            handle.update(display.HTML(""))


def _bar(progress: Progress) -> str:
    share = f' value="{progress.draws / progress.budget:.3f}"' if progress.budget else ""
    words = f"{progress.draws:,} draws, ε ≥ {progress.epsilon_lower:.3g}"
    if progress.waiting:
        words = progress.waiting
    return f"{escape(progress.name)} <progress{share}></progress> {escape(words)}"
