"""Hooks and ghost clipping of Opacus, as the guide of comparisons shows them."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.documents import blocks
from tests.libraries.conftest import ROOT, environment, run

OPACUS = environment("opacus-1.6.0")
GUIDE = ROOT / "docs" / "guides" / "parity.md"


@pytest.fixture(scope="module")
def audits(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Return the results of the commands of the guide that compare clipping.py."""
    folder: Path = tmp_path_factory.mktemp("clipping")
    audits = []
    for block in blocks(GUIDE):
        if block.file == "clipping.py":
            (folder / block.file).write_text(block.text)
        elif block.kind == "sh" and "clipping.py" in block.text:
            words = shlex.split(block.text.replace("\\\n", " "))[1:]
            ran = run(folder, OPACUS / "dpaudit", *words, "--json", "r.json", "--workers", "1")
            assert ran.returncode in (0, 1), ran.stderr
            audits += json.loads((folder / "r.json").read_text())["audits"]
    return audits


def test_hooks_and_ghost_clipping_have_one_law(audits: list[dict[str, Any]]) -> None:
    assert audits[0]["verdict"] == "NO VIOLATION FOUND"
    assert audits[0]["underpowered"] is None
    assert audits[0]["draws"] == 10_000


def test_a_loss_of_two_dimensions_is_not_clipped(audits: list[dict[str, Any]]) -> None:
    assert len(audits) == 2
    assert audits[1]["verdict"] == "VIOLATION"
    assert audits[1]["delta_lower"] > 0.99
