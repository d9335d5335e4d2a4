"""Files of `dpaudit init`, audited and run by pytest."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_init import COMPLETE, MINE, audit, fails, ran, started
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


def test_private_mechanisms_are_green(folder: Path) -> None:
    done = started("mine.py:private_count", *COMPLETE, "--samples", "5000")
    assert done.returncode == 0, done.stderr
    assert "NO VIOLATION FOUND  private_count" in done.stdout
    values = ("--d1", "0", "--d2", "1", "--epsilon", "1", "--samples", "5000")
    assert started("mine.py:Laplace", *values).returncode == 0
    assert ran("run", "audits.yaml", "-q").returncode == 0
    code, said = pytest_says()
    assert code == 0
    assert "dpaudit: 2 privacy audits of 5,000 draws" in said


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
        done = started(f"{target}:private_count", *COMPLETE, "--samples", "500")
        assert done.returncode == 0, done.stderr
    assert fails() == ""


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("scaled --param sensitivity=1", {"params": {"sensitivity": 1, "epsilon": 1.0}}),
        ("Laplace", {"init": {"epsilon": 1.0}, "call": "add_noise"}),
        ("Several --call add_noise", {"init": {"epsilon": 1.0}, "call": "add_noise"}),
        ("make --factory", {"factory": True, "init": {"epsilon": 1.0}}),
        ("elsewhere --rng-arg prng --data-arg queries --d1 [0] --d2 []", {"rng_arg": "prng"}),
        ("noisy_mean --as array --d1 [0.5,1] --d2 [0.5]", {"as": "array"}),
        # At its default of 1 the mechanism, which is right, would be accused.
        ("defaulted --d1 [0] --d2 [] --epsilon 0.5", {"params": {"epsilon": 0.5}}),
        ("private_count --d1 [2,3] --d2 [2] --delta 0.1", {"d1": [2, 3], "d2": [2]}),
    ],
)
def test_what_signatures_say(folder: Path, words: str, expected: dict[str, Any]) -> None:
    name, *more = [word.replace("\u00a0", " ") for word in words.split(" ")]
    inputs = () if "--d1" in more else ("--d1", "0", "--d2", "1")
    claim = () if "--epsilon" in more else ("--epsilon", "1")
    done = started(f"mine.py:{name}", *claim, "--samples", "500", *inputs, *more)
    assert done.returncode == 0, done.stderr
    assert expected.items() <= audit().items()
    is_writable = "FILL_IN" not in Path("test_privacy.py").read_text()
    assert is_writable is not bool({"--as", "--definition"} & {*more})
    assert not is_writable or fails() == ""
