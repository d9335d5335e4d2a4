"""What is published: it builds, its metadata are right, and alone it does what the README shows.

`make package` runs these; they build, and install from the index, so `make test` does not.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.documents import ROOT, follow


def run(*words: str | Path) -> str:
    # Within make, which would otherwise tell the programs below which of its jobs they are.
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    ran = subprocess.run(
        list(map(str, words)), cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert ran.returncode == 0, f"{words}\n{ran.stdout}\n{ran.stderr}"
    return ran.stdout


def tracked(*folders: str) -> set[str]:
    """Return the files of the repository in these folders."""
    return set(
        run("git", "ls-files", "--cached", "--others", "--exclude-standard", *folders).split()
    )


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the source distribution, and the wheel that is built from it."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--outdir", folder, ROOT)
    return folder


def wheel(built: Path) -> Path:
    (found,) = built.glob("*.whl")
    return found


def test_the_index_would_take_them(built: Path) -> None:
    said = run(sys.executable, "-m", "twine", "check", "--strict", *sorted(built.iterdir()))
    assert said.count("PASSED") == 2


def test_the_wheel_has_the_package_and_nothing_else(built: Path) -> None:
    with zipfile.ZipFile(wheel(built)) as opened:
        names = {name for name in opened.namelist() if "dist-info" not in name}
    assert names == tracked("dpaudit")
    assert "dpaudit/py.typed" in names


def test_the_sources_have_all_that_the_tests_need(built: Path) -> None:
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        names = {name.partition("/")[2] for name in opened.getnames()}
    assert names >= tracked("dpaudit", "mechanisms", "configs", "tests", "benchmarks", "docs")
    assert {"README.md", "LICENSE", "Makefile", "CITATION.cff", "pyproject.toml"} <= names


@pytest.mark.parametrize("which", ["highest", "lowest-direct"])
def test_alone_it_does_what_the_readme_shows(built: Path, tmp_path: Path, which: str) -> None:
    """which: the newest versions of what it needs, or the oldest that it allows."""
    environment = tmp_path / "environment"
    uv = Path(sys.executable).parent / "uv"
    run(uv, "venv", "--quiet", "--python", sys.executable, environment)
    python = environment / "bin/python"
    install = (uv, "pip", "install", "--quiet", "--python", python, "--resolution", which)
    run(*install, wheel(built))
    folder = tmp_path / "folder"
    folder.mkdir()
    follow(ROOT / "README.md", folder, environment / "bin")
    listed = run(uv, "pip", "list", "--quiet", "--python", python)
    assert "pytest" not in listed
    assert "scikit-learn" not in listed
