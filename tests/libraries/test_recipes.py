"""The recipes of docs/recipes.md whose libraries have environments of their own."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from tests.documents import blocks
from tests.libraries.conftest import ROOT, environment, run

PAGE = list(blocks(ROOT / "docs/recipes.md"))
COMMANDS = [block.text for block in PAGE if block.kind == "sh"]


@pytest.mark.parametrize(
    ("place", "target", "verdict"),
    [
        ("diffprivlib-0.6.6", "diffprivlib.tools:mean", "NO VIOLATION FOUND"),
        ("tmlt-core-0.20.0", "AddGeometricNoise", "NO VIOLATION FOUND"),
        ("opacus-1.6.0", "opacus_step.py:one_step", "VIOLATION"),
        ("jax-privacy-2.0.0", "jax_step.py:one_step", "NO VIOLATION FOUND"),
    ],
)
def test_a_recipe_ends_with_its_verdict(
    tmp_path: Path, place: str, target: str, verdict: str
) -> None:
    for block in PAGE:
        if block.file is not None:
            (tmp_path / block.file).write_text(block.text)
    (command,) = [text for text in COMMANDS if target in text]
    words = shlex.split(command.replace("\\\n", " "))[1:]
    ended = run(tmp_path, environment(place) / "dpaudit", *words, "--no-trace", "--json", "-")
    (audit,) = json.loads(ended.stdout)["audits"]
    assert audit["verdict"] == verdict, ended.stderr
    assert ended.returncode == (verdict == "VIOLATION")


def test_every_command_of_the_page_has_its_environment_here() -> None:
    assert len(COMMANDS) == 4


def test_a_public_batch_size_repairs_the_step_of_opacus(tmp_path: Path) -> None:
    (text,) = [block.text for block in PAGE if block.file == "opacus_step.py"]
    repaired = text.replace("max_grad_norm=1.0,", "max_grad_norm=1.0, expected_batch_size=3,")
    assert repaired != text
    (tmp_path / "opacus_step.py").write_text(repaired)
    (command,) = [text for text in COMMANDS if "opacus_step" in text]
    words = shlex.split(command.replace("\\\n", " ").replace("2_000", "1_000"))[1:]
    ended = run(tmp_path, environment("opacus-1.6.0") / "dpaudit", *words, "--quiet")
    assert ended.returncode == 0, ended.stdout + ended.stderr
