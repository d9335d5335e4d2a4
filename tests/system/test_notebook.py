"""The blocks of docs/guides/notebooks.md as the cells of a notebook, which a kernel executes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbclient
import nbformat

from tests.documents import ROOT, blocks

PAGE = ROOT / "docs/guides/notebooks.md"
MAX_BYTES = 40_000


def outputs(cell: Any) -> dict[str, str]:
    """Return what a cell shows, by media type."""
    return {kind: text for out in cell.outputs for kind, text in out.get("data", {}).items()}


def test_a_notebook_shows_an_audit_with_figure_and_frame(tmp_path: Path) -> None:
    sources = [block.text for block in blocks(PAGE) if block.kind == "python"]
    v4: Any = nbformat.v4
    notebook = v4.new_notebook(cells=[*map(v4.new_code_cell, sources)])
    context = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=120, resources=context).execute()
    audit, _, plot, frame, _ = notebook.cells
    assert audit.outputs[0].data == {"text/html": "", "text/plain": ""}  # the bar, at the end
    page = outputs(audit)["text/html"]
    assert "VIOLATION" in page
    assert "<svg" in page
    assert len(page.encode()) < MAX_BYTES
    assert outputs(plot)["image/png"]
    assert outputs(frame)["text/html"].count("<tr") == 4
    assert (tmp_path / "audit.html").stat().st_size > MAX_BYTES
    assert (tmp_path / "event.png").is_file()
