"""Paths of files as code hosts want them: from the root of the repository."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

import pytest
from jsonschema import Draft4Validator

from dpaudit.reports.github import Location, located, root
from tests.cli.made_results import VIOLATION
from tests.result_files import reported
from tests.specs import replace
from tests.unit.reports.test_sarif import SCHEMA


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a repository, in a folder below whose root this process works."""
    top = tmp_path / "my repository"
    (top / "inner").mkdir(parents=True)
    (top / ".git").write_text("gitdir: elsewhere\n")
    (top / "inner" / "mine.py").write_text("def f(): ...\n")
    (top / "above.py").write_text("def f(): ...\n")
    (tmp_path / "outside.py").write_text("def f(): ...\n")
    monkeypatch.delenv("GITHUB_WORKSPACE", raising=False)
    monkeypatch.chdir(top / "inner")
    return top


def sarif(source: str) -> tuple[dict[str, Any], str]:
    """Return the place of a finding, and the file that it stands for."""
    document = json.loads(reported("sarif", [replace(VIOLATION, source=source)]))
    Draft4Validator(SCHEMA).validate(document)
    run = document["runs"][0]
    place = run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
    base = run["originalUriBaseIds"][place["uriBaseId"]]["uri"] if "uriBaseId" in place else ""
    assert base == "" or base.endswith("/")
    return place, unquote(urlsplit(urljoin(base, place["uri"])).path)


def test_the_root_is_that_of_github_or_of_git_or_the_folder(
    repository: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert root() == repository
    monkeypatch.setenv("GITHUB_WORKSPACE", str(repository / "inner"))
    assert root() == repository / "inner"
    for none in ("", str(repository / "nowhere")):
        monkeypatch.setenv("GITHUB_WORKSPACE", none)
        assert root() == repository
    (repository / ".git").unlink()
    assert root() == repository / "inner"


def test_files_are_named_from_the_root(repository: Path, tmp_path: Path) -> None:
    assert located("mine.py") == Location("inner/mine.py", is_inside=True)
    assert located(str(repository / "above.py")) == Location("above.py", is_inside=True)
    assert located("../above.py") == Location("above.py", is_inside=True)
    outside = tmp_path / "outside.py"
    assert located(str(outside)) == Location(outside.as_posix(), is_inside=False)
    (tmp_path / "link").symlink_to(repository)
    linked = tmp_path / "link" / "inner" / "mine.py"
    assert located(str(linked)) == Location("inner/mine.py", is_inside=True)
    assert located("\x00\ud800").is_inside


def test_sarif_names_files_from_the_root(repository: Path, tmp_path: Path) -> None:
    place, file = sarif("mine.py:1")
    assert place == {"uri": "inner/mine.py", "uriBaseId": "%SRCROOT%"}
    assert Path(file) == repository / "inner" / "mine.py"
    place, file = sarif(f"{tmp_path / 'outside.py'}:1")
    assert place == {"uri": (tmp_path / "outside.py").as_uri()}
    assert Path(file) == tmp_path / "outside.py"
