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
    if not _in_notebook():
        yield None
        return
    display: Any = import_module("IPython.display")
    handle: Any = None

    def show(progress: Progress) -> None:
        nonlocal handle
        if handle is None:
            handle = display.display(_bar(progress), raw=True, display_id=True)
        else:
            handle.update(_bar(progress), raw=True)

    try:
        yield show
    finally:
        if handle is not None:
            handle.update({"text/html": "", "text/plain": ""}, raw=True)


def _in_notebook() -> bool:
    # A program may import ipykernel, too, such as through ipywidgets: its shell has no kernel.
    shell: Any = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


def _bar(progress: Progress) -> dict[str, str]:
    share = f' value="{progress.draws / progress.budget:.3f}"' if progress.budget else ""
    words = f"{progress.draws:,} draws, ε ≥ {progress.epsilon_lower:.3g}"
    if progress.waiting:
        words = progress.waiting
    page = f"{escape(progress.name)} <progress{share}></progress> {escape(words)}"
    return {"text/html": page, "text/plain": f"{progress.name}: {words}"}
