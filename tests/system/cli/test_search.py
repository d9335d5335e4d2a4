"""`dpaudit search` from beginning to end: what is printed, kept and read back."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_search import NUMBER, SPACE, UNIT
from tests.cli.test_search import folder as folder


def test_inputs_outside_the_space_count_only_if_asked(folder: Path, dpaudit: Any) -> None:
    words = ("search", "m.py:passes_nan", *UNIT, "--samples", "5000")
    noted = dpaudit(*words)
    assert noted.exit_code == 0
    assert "  outside     d1 = [], d2 = [" in noted.stdout
    counted = dpaudit(*words, "--outside")
    assert counted.exit_code == 1
    assert "outside the space" in counted.stdout
    silent = dpaudit(*words[:-1], "2000", "--inside")
    assert silent.exit_code == 0
    assert "  outside  " not in silent.stdout
    both = dpaudit(*words, "--inside", "--outside")
    assert both.exit_code == 2
    assert "either --inside" in both.stderr
    (folder / "o.yaml").write_text(
        "version: 1\n"
        "defaults: {samples: 5_000, adjacency: add-remove, claim: {epsilon: 1},\n"
        "  mechanism: m.py:passes_nan}\n"
        "audits:\n"
        "  - {name: b, expect: violation,\n"
        f"     search: {{space: '{SPACE}', outside: true}}}}\n"
    )
    assert dpaudit("run", "o.yaml").exit_code == 0


@pytest.mark.parametrize(
    ("mechanism", "form", "columns", "adjacency"),
    [
        ("of_array", "array", "{x: number in [0, 9], z: number in [0, 1]}", "add-remove"),
        ("of_array", "array", "{x: number in [0, 9], z: number in [0, 1]}", "replace"),
        ("of_frame", "pandas", "{z: number in [0, 1], x: number in [0, 9]}", "add-remove"),
    ],
)
def test_what_is_printed_reproduces_a_pair_of_tables(
    folder: Path, dpaudit: Any, mechanism: str, form: str, columns: str, adjacency: str
) -> None:
    """By the command line or, where that has no form for a table without rows, by Python."""
    words = ("--space", f"table of 0 to 4 {columns}", "--adjacency", adjacency, "--as", form)
    ended = dpaudit("search", f"m.py:{mechanism}", *words, "--epsilon", "1", "--samples", "1000")
    assert ended.exit_code == 1, ended.stdout
    lines = ended.stdout.splitlines()
    commands = [one for one in lines if one.startswith("  reproduce ")]
    if form == "array" and adjacency == "add-remove":
        assert commands == []
        start = next(n for n, one in enumerate(lines) if one.startswith("    import "))
        program = [one[4:] for one in lines[start:] if one.startswith("    ")]
        assert any("np.empty((0, 2))" in one for one in program)
        scope: dict[str, Any] = {}
        exec("\n".join(program), scope)
        assert scope["result"].verdict.name == "VIOLATION"
    else:
        (command,) = commands
        again = dpaudit(*shlex.split(command)[2:])
        assert again.exit_code == 1, again.stderr


def test_a_result_is_rechecked_and_repeated(folder: Path, dpaudit: Any) -> None:
    words = ("search", "m.py:bad", *UNIT, "--samples", "2000", "--json", "r.json")
    assert dpaudit(*words).exit_code == 1
    assert dpaudit("report", "r.json").exit_code == 0
    again = dpaudit("report", "r.json", "--rerun")
    assert "gave the same" in again.stdout
    assert again.exit_code == 0


def test_a_journal_that_is_there_is_refused_before_anything_is_drawn(
    folder: Path, dpaudit: Any
) -> None:
    words = ("search", "m.py:of_number", *NUMBER, "--samples", "2000", "--journal", "j")
    assert dpaudit(*words).exit_code == 0
    again = dpaudit(*words)
    assert again.exit_code == 2
    assert "--resume" in again.stderr
    assert dpaudit(*words, "--resume").exit_code == 0


def test_a_file_of_searches(folder: Path, dpaudit: Any) -> None:
    (folder / "a.yaml").write_text(
        "version: 1\n"
        "defaults: {samples: 2_000, adjacency: add-remove, claim: {epsilon: 1}}\n"
        "audits:\n"
        f"  - {{mechanism: 'm.py:${{name}}', search: '{SPACE}',\n"
        "     matrix: {name: [good]}, expect: pass}\n"
        "  - {mechanism: m.py:bad, expect: violation,\n"
        "     search: {space: 'list of 0 to 3 number in [0, 1]', keep: 2, inside: true}}\n"
    )
    assert dpaudit("check", "a.yaml").exit_code == 0
    assert dpaudit("run", "a.yaml").exit_code == 0
    (folder / "b.yaml").write_text((folder / "a.yaml").read_text().replace("keep", "kepe"))
    ended = dpaudit("run", "b.yaml")
    assert ended.exit_code == 2
    assert "b.yaml:7: unknown key 'kepe'. Did you mean 'keep'?" in ended.stderr
