"""`--json`: refused before the work when it cannot be written, whole when it is."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaudit.auditing.spec import AuditSpec
from dpaudit.cli import saving
from dpaudit.errors import DpauditError
from tests.cli.made_results import answer
from tests.result_files import from_json

TARGET = ("run", "m:laplace", "--d1", "0", "--d2", "1", "--epsilon", "1")


def test_results_are_written(dpaudit: Any, asked: Any, config: Any, tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    result = dpaudit("run", config("a", "wrong"), "--json", file)
    assert result.exit_code == 1
    assert [one.name for one in from_json(file.read_text("utf-8"))] == ["a", "wrong"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["audits.yaml", "results.json"]


def test_a_dash_is_standard_output_alone(dpaudit: Any, asked: Any) -> None:
    result = dpaudit(*TARGET, "--json", "-")
    assert json.loads(result.stdout)["audits"][0]["name"] == "laplace"
    assert "NO VIOLATION FOUND" in result.stderr


def test_unwritable_places_are_refused_before_the_audit(
    refused: Any, asked: Any, config: Any, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "pipe")
    for place in ("missing/results.json", ".", "pipe", "audits.yaml/results.json"):
        code, line = refused("run", config("a"), "--json", tmp_path / place)
        assert (code, asked) == ("cannot-write", [])
        assert str(tmp_path / place) in line


def test_an_input_is_not_replaced(dpaudit: Any, asked: Any, config: Any, tmp_path: Path) -> None:
    file = Path(config("a"))
    before = file.read_text()
    result = dpaudit("run", str(file), "--json", tmp_path / "." / file.name)
    assert (result.exit_code, asked) == (2, [])
    assert result.code == "cannot-write"
    assert file.read_text() == before


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("m.py:f",), "m.py"),
        (("m.py:f", "--post-process", "post.py:g"), "post.py"),
        (("m.py:f", "--adversary", "adversary.py:A"), "adversary.py"),
        (("m.py:f", "--param", "rows=import:param.py:rows()"), "param.py"),
        (("m.py:f", "--python", "./fakepy"), "fakepy"),
        (("--command", "python3 prog.py --data=rows.csv"), "rows.csv"),
        (("all.yaml",), "sub/n.py"),
        (("all.yaml", "-k", "one"), "sub/rows.csv"),
    ],
)
def test_what_settings_name_is_not_replaced(
    dpaudit: Any,
    asked: Any,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    words: tuple[str, ...],
    named: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    Path("sub").mkdir()
    code = ("m", "post", "adversary", "param", "sub/n")
    for name in (*(f"{one}.py" for one in code), "fakepy", "rows.csv", "sub/rows.csv"):
        Path(name).write_text("1\n")
    Path("fakepy").chmod(0o755)
    Path("sub/all.yaml").write_text(
        "version: 1\ndefaults: {d1: 0, d2: 1, claim: {epsilon: 1}}\naudits:\n"
        "  - {name: one, mechanism: 'n.py:f'}\n  - {name: two, mechanism: 'm:f', d1: '@rows.csv'}\n"
    )
    is_batch = words[0] == "all.yaml"
    asked_for = ("sub/all.yaml", *words[1:]) if is_batch else (*words, *TARGET[2:])
    for to in (("--json", f"./{named}"), ("--report", f"text:{named}")):
        result = dpaudit("run", *asked_for, *to)
        assert (result.exit_code, result.code, asked) == (2, "cannot-write", [])
    assert Path(named).read_text() == "1\n"


@pytest.mark.parametrize("file", ["rows.csv", "f.py", "d.npy"])
def test_files_of_datasets_curves_and_recordings_are_not_replaced(
    dpaudit: Any, asked: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, file: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rows.csv").write_text("age\n1\n2\n")
    Path("f.py").write_text("def curve(a):\n    return max(0.0, 1 - 2 * a)\n")
    for name in ("d.npy", "e.npy"):
        np.save(name, np.arange(1_000.0))
    before = Path(file).read_bytes()
    run = ("run", "m:f", "--d2", "1", "--d1", "@rows.csv", "--tradeoff", "f.py:curve")
    for words in (run, ("bound", "d.npy", "e.npy", "--tradeoff", "f.py:curve")):
        if file in " ".join(words):
            assert dpaudit(*words, "--json", file).code == "cannot-write"
            assert (Path(file).read_bytes(), asked) == (before, [])


def test_an_interruption_keeps_what_was_finished(
    dpaudit: Any, install_engine: Any, config: Any, tmp_path: Path
) -> None:
    def run_audit(spec: AuditSpec, on_progress: Any = None) -> Any:
        if spec.name == "second":
            signal.raise_signal(signal.SIGINT)
        return answer(spec)

    install_engine(run_audit)
    file = tmp_path / "results.json"
    result = dpaudit("run", config("first", "second"), "--json", file)
    assert result.exit_code == 130
    assert "1 of 2 audits finished" in result.stderr
    assert [audit.name for audit in from_json(file.read_text("utf-8"))] == ["first"]


def test_a_mechanism_that_goes_elsewhere_takes_no_result_along(
    dpaudit: Any, install_engine: Any, config: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def run_audit(spec: AuditSpec, on_progress: Any = None) -> Any:
        os.chdir("elsewhere" if spec.name == "a" else ".")
        return answer(spec)

    install_engine(run_audit)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    to = ("--json", "r.json", "--report", "text:r.txt")
    result = dpaudit("run", config("a", "b"), *to)
    assert result.exit_code == 0
    assert {one.name for one in tmp_path.iterdir()} == {
        "audits.yaml", "elsewhere", "r.json", "r.txt",
    }  # fmt: skip
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_what_there_is_meanwhile_says_how_much_is_to_come(
    dpaudit: Any, install_engine: Any, config: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen: dict[str, str] = {}

    def run_audit(spec: AuditSpec, on_progress: Any = None) -> Any:
        for file in tmp_path.glob("r.*"):
            seen[file.suffix] = file.read_text("utf-8")
        return answer(spec)

    install_engine(run_audit)
    monkeypatch.chdir(tmp_path)
    to = ("--json", "r.json", "--report", "text:r.txt", "--report", "junit:r.xml")
    assert dpaudit("run", config("a", "b"), *to).exit_code == 0
    head = json.loads(seen[".json"])
    assert (head["count"], head["planned"]) == (1, 2)
    assert "1 of 2 audits: " in seen[".txt"]
    assert 'errors="1"' in seen[".xml"]
    assert "1 of 2 audits: " in seen[".xml"]
    ended = json.loads((tmp_path / "r.json").read_text("utf-8"))
    assert (ended["count"], "planned" in ended) == (2, False)
    for name in ("r.txt", "r.xml"):
        assert "1 of 2 audits: " not in (tmp_path / name).read_text("utf-8")


def test_a_failed_write_leaves_the_old_file_as_it_was(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "results.json"
    file.write_text("old")

    def fail(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(DpauditError, match="No space left on device"):
        saving.write_whole(file, b"new")
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]


def test_a_link_is_written_through(tmp_path: Path) -> None:
    (tmp_path / "link.json").symlink_to("target.json")
    saving.write_whole(tmp_path / "link.json", b"text")
    assert (tmp_path / "link.json").is_symlink()
    assert (tmp_path / "target.json").read_text() == "text"
