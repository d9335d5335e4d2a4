"""Files of `dpaudit init`, audited and run by pytest."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.cli.test_init import MINE, at_terminal, audit, fails, ran, started
from tests.cli.test_init import folder as folder


def pytest_says() -> tuple[int, str]:
    """Return what pytest says of the test that was written."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_privacy.py"],
        # Of all plugins that are installed here, a user of dpaudit is sure to have its own.
        env={
            **os.environ,
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTEST_PLUGINS": "dpaudit.testing.plugin",
        },
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout


def test_a_private_mechanism_is_green(folder: Path) -> None:
    done = started("mine.py:private_count", "--epsilon", "1", "--samples", "5000")
    assert done.returncode == 0, done.stderr
    assert "NO VIOLATION FOUND  private_count" in done.stdout
    assert ran("run", "audits.yaml", "-q").returncode == 0
    code, said = pytest_says()
    assert code == 0
    assert "dpaudit: 1 privacy audit of 5,000 draws" in said


def test_modules_and_files_of_other_folders(folder: Path) -> None:
    package = folder / "inside" / "package"
    package.mkdir(parents=True)
    (folder / "inside" / "__init__.py").write_text("")
    (package / "__init__.py").write_text("")
    (package / "noise.py").write_text(MINE)
    (folder / "my-noise.py").write_text(MINE)
    (folder / "inside" / "random.py").write_text(MINE)
    files = ("inside/package/noise.py", "my-noise.py", "inside/random.py")
    for target in ("inside.package.noise", *files):
        words = (f"{target}:private_count", "--epsilon", "1", "--force", "--samples", "500")
        done = started(*words)
        assert done.returncode == 0, done.stderr
        assert fails() == ""


def test_a_parameter_with_a_default_gets_the_number_of_the_claim(folder: Path) -> None:
    """At its default of 1 the mechanism, which is right, would be accused."""
    claim = ("--epsilon", "0.5", "--samples", "2000", "--force")
    for name, more, key, value in (
        ("defaulted", (), "params", {"epsilon": 0.5}),
        ("Defaulted", (), "init", {"epsilon": 0.5}),
        ("Defaulted", ("--init", "{epsilon: 0.25}"), "init", {"epsilon": 0.25}),
    ):
        done = started(f"mine.py:{name}", *claim, *more)
        assert done.returncode == 0, done.stdout
        assert "NO VIOLATION FOUND" in done.stdout
        assert audit()[key] == value
        assert fails() == ""


def test_a_terminal_is_asked(folder: Path) -> None:
    answers = {"claims": "1", "its δ": "", "sensitivity": "one: [", "value is missing": "1"}
    code, said = at_terminal("mine.py:scaled", answers)
    assert code == 0
    assert "NO VIOLATION FOUND" in said
    assert audit()["params"] == {"sensitivity": 1, "epsilon": 1.0}
