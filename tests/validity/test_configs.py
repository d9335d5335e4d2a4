"""Every configuration file that is shipped meets the expectations written in it."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from dpaudit.cli.commands import cli
from dpaudit.config.yaml_files import load_config

ROOT = Path(__file__).parents[2]
# These need libraries that `make gallery`, `make watch` and `make all-libraries` install. What can
# be tested of the gallery without them is in test_gallery.py.
OF_LIBRARIES = {"gallery", "watch", "opacus", "jax"}
CONFIGS = sorted(
    path.relative_to(ROOT)
    for path in (ROOT / "configs").rglob("*.y*ml")
    if OF_LIBRARIES.isdisjoint((path.parent.name, path.stem))
)


@pytest.mark.parametrize("config", CONFIGS, ids=str)
def test_expectations_are_met(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    # Workers and traces change no verdict, and cost a fifth.
    words = ["run", str(config), "--quiet", "--workers", "1", "--no-trace"]
    result = CliRunner().invoke(cli, words)
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize("config", CONFIGS, ids=str)
def test_every_audit_says_what_it_expects(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert all(spec.requirements.expect is not None for spec in load_config(config))


def test_both_libraries_of_others_are_audited() -> None:
    assert {Path("configs/real/opendp.yaml"), Path("configs/real/pydp.yaml")} <= set(CONFIGS)
