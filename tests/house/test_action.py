"""The GitHub Action and the examples in docs/guides/ci.md: valid by their schemas, and run."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import yaml
from click.testing import CliRunner

ROOT = Path(__file__).parents[2]
FILE = ROOT / "action.yml"
ACTION: dict[str, Any] = yaml.safe_load(FILE.read_text("utf-8"))
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]


def valid(kind: str, path: Path) -> bool:
    """Return whether a file follows a schema of SchemaStore, as check-jsonschema has it."""
    words = ["--builtin-schema", f"vendor.{kind}", str(path)]
    # Without types of its own, as it is only a program for most.
    main: click.Command = import_module("check_jsonschema").main
    checked = CliRunner().invoke(main, words)
    assert checked.exit_code == 0 or "Schema validation errors were encountered" in checked.output
    return checked.exit_code == 0


def test_the_action_follows_its_schema(tmp_path: Path) -> None:
    assert valid("github-actions", FILE)
    broken = tmp_path / "action.yml"
    broken.write_text(FILE.read_text("utf-8").replace("using: composite", "using: magic"))
    assert not valid("github-actions", broken)
    broken.write_text(FILE.read_text("utf-8").replace("      shell: bash\n", "", 1))
    assert not valid("github-actions", broken)


def test_no_script_has_text_that_somebody_else_writes() -> None:
    scripts = [one["run"] for one in STEPS if "run" in one]
    assert len(scripts) == 3
    assert not any("${{" in one for one in scripts)
    assert not any(re.search(r"\beval\b|\bsh -c\b|\bbash -c\b", one) for one in scripts)


def test_every_input_and_output_is_used() -> None:
    used = set(re.findall(r"inputs\.([\w-]+)", FILE.read_text("utf-8")))
    assert used == set(ACTION["inputs"])
    assert set(ACTION["outputs"]) == {"exit-code", "results", "sarif"}
    for one in ACTION["inputs"].values():
        assert isinstance(one["default"], str)


def examples() -> dict[str, str]:
    text = (ROOT / "docs/guides/ci.md").read_text("utf-8")
    return dict(
        re.findall(r"<!-- file: (\S+) -->\n+```\w+\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    )


def test_the_examples_follow_their_schemas(tmp_path: Path) -> None:
    kinds = {"privacy.yml": "github-workflows", ".gitlab-ci.yml": "gitlab-ci"}
    for name, kind in kinds.items():
        path = tmp_path / name
        path.write_text(examples()[name])
        assert valid(kind, path), name
        key = "jobs:" if kind == "github-workflows" else "script:"
        path.write_text(examples()[name].replace(key, "stuff:"))
        assert not valid(kind, path), name


def test_the_workflow_gives_inputs_that_the_action_has() -> None:
    workflow = yaml.safe_load(examples()["privacy.yml"])
    used = [
        step
        for job in workflow["jobs"].values()
        for step in job["steps"]
        if "/dpaudit@" in step.get("uses", "")
    ]
    assert used
    for step in used:
        assert set(step["with"]) <= set(ACTION["inputs"])
    assert not any("${{" in step.get("run", "") for job in workflow["jobs"].values()
                   for step in job["steps"])  # fmt: skip
