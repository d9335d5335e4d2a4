"""`dpaudit search` from beginning to end: what is printed, kept and read back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.cli.test_search import SPACE, UNIT
from tests.cli.test_search import folder as folder


def test_inputs_outside_the_space_count_only_if_asked(folder: Path, dpaudit: Any) -> None:
    words = ("search", "m.py:passes_nan", *UNIT, "--samples", "5000")
    noted, counted = dpaudit(*words), dpaudit(*words, "--outside")
    assert (noted.exit_code, counted.exit_code) == (0, 1)
    assert "  outside  " in noted.stdout
    silent = dpaudit(*words[:-1], "2000", "--inside")
    assert silent.exit_code == 0
    assert "  outside  " not in silent.stdout
    (folder / "o.yaml").write_text(
        "version: 1\n"
        "defaults: {samples: 5_000, adjacency: add-remove, claim: {epsilon: 1},\n"
        "  mechanism: m.py:passes_nan}\n"
        "audits:\n"
        "  - {name: b, expect: violation,\n"
        f"     search: {{space: '{SPACE}', outside: true}}}}\n"
    )
    assert dpaudit("run", "o.yaml").exit_code == 0


def test_a_result_is_rechecked_and_repeated(folder: Path, dpaudit: Any) -> None:
    words = ("search", "m.py:bad", *UNIT, "--samples", "2000", "--json", "r.json")
    assert dpaudit(*words).exit_code == 1
    assert dpaudit("report", "r.json").exit_code == 0
    again = dpaudit("report", "r.json", "--rerun")
    assert "gave the same" in again.stdout
    assert again.exit_code == 0


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
