"""A new interpreter compiles another text in place of a file, which stays as it is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dpaudit.import_path import resolve
from dpaudit.mutating.planting import ChildEnded, run_planted

TEXT = "def f():\n    return 1\n"


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "planted_here.py").write_text(TEXT)
    return tmp_path / "planted_here.py"


def test_a_module_is_compiled_from_the_other_text_however_it_is_imported(file: Path) -> None:
    texts = {str(file): TEXT.replace("1", "2")}
    for path in (f"{file}:f", "planted_here:f"):
        assert run_planted(_called, (path,), {}, 60.0) == 1
        assert run_planted(_called, (path,), texts, 60.0) == 2
    assert file.read_text() == TEXT


def test_programs_that_the_interpreter_starts_have_the_bug_too(file: Path) -> None:
    texts = {str(file): TEXT.replace("1", "2")}
    printed = run_planted(_printed, (str(file.parent),), texts, 60.0)
    assert printed == "2"


def test_the_sitecustomize_of_the_user_is_run_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.mine = 2\n")
    file = tmp_path / "needs_mine.py"
    text = "import sys\ndef f():\n    return sys.mine\n"
    file.write_text(text)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    texts = {str(file): text.replace("sys.mine", "10 * sys.mine")}
    assert run_planted(_called, (f"{file}:f",), texts, 60.0) == 20
    words = [sys.executable, "-c", "import sys; print(sys.mine)"]
    assert run_planted(_output, (words,), texts, 60.0) == "2"


def test_an_interpreter_that_ends_or_takes_too_long_gives_no_result() -> None:
    with pytest.raises(ChildEnded):
        run_planted(os._exit, (3,), {}, 60.0)
    with pytest.raises(ChildEnded):
        run_planted(_printed, ("",), {}, 0.0)


def _called(path: str) -> Any:
    return resolve(path)()


def _printed(folder: str) -> str:
    program = f"import sys; sys.path.insert(0, {folder!r}); import planted_here as p; print(p.f())"
    return _output([sys.executable, "-c", program])


def _output(words: list[str]) -> str:
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
