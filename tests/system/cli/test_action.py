"""The scripts of the GitHub Action and of docs/guides/ci.md, run by bash."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from tests.house.test_action import ACTION, ROOT, STEPS, examples
from tests.result_files import from_json

HERE = Path(sys.executable).parent
# What stands in for a reference to something that GitHub knows.
REFERENCE = re.compile(r"\$\{\{\s*([\w.-]+)\s*\}\}")
AUDITS = """version: 1
audits:
  - {name: tight, mechanism: "mechanisms.laplace:laplace", d1: 0, d2: 1, claim: {epsilon: 1},
     samples: 5_000}
"""
WRONG = AUDITS.replace("tight", "wrong").replace("epsilon: 1", "epsilon: 0.2")
# Installs nothing, and says what was asked for; anything else is done by this Python.
PYTHON = """#!/bin/sh
if [ "$1 $2 $3" = "-m pip install" ]; then
  printf '%s\\n' "$@" >> pip.txt
  cat "$6" > asked.txt
elif [ "$1 $2 $3 $4" = "-m pip cache dir" ]; then
  echo "a folder"
else
  exec {python} "$@"
fi
"""


@dataclass(frozen=True, slots=True)
class Ran:
    """What came out of the steps of the action. code: of the step that failed, else 0."""

    code: int
    outputs: Mapping[str, str]
    log: str
    installed: list[str]
    summary: str


def run_action(folder: Path, there: Path = HERE, /, **inputs: str) -> Ran:
    """Run the shell steps as GitHub does, up to one that fails.

    there: where `dpaudit` is; by default, in the environment of the tests.
    """
    programs, temporary = folder / "programs", folder / "temporary files"
    programs.mkdir(exist_ok=True)
    temporary.mkdir(exist_ok=True)
    python = programs / "python"
    python.write_text(PYTHON.replace("{python}", f"'{sys.executable}'"))
    python.chmod(0o755)
    output, summary = folder / "output.txt", folder / "summary.md"
    for file in (output, summary, folder / "pip.txt"):
        file.write_text("")
    given = {name: one["default"] for name, one in ACTION["inputs"].items()}
    given |= {name.replace("_", "-"): value for name, value in inputs.items()}
    known = {f"inputs.{name}": value for name, value in given.items()}
    known |= {"github.action_path": str(ROOT), "runner.os": "Linux"}
    log, code = "", 0
    for step in (one for one in STEPS if "run" in one):
        script = folder / "step.sh"
        script.write_text(step["run"])
        own = {
            key: REFERENCE.sub(lambda found: known[found[1]], value)
            for key, value in step.get("env", {}).items()
        }
        paths = (programs, there, HERE, os.environ["PATH"])
        environment = {
            **os.environ,
            "PATH": os.pathsep.join(map(str, paths)),
            "PYTHONPATH": str(ROOT),
            "GITHUB_OUTPUT": str(output),
            "GITHUB_STEP_SUMMARY": str(summary),
            "GITHUB_ACTIONS": "true",
            "RUNNER_TEMP": str(temporary),
            **own,
        }
        ran = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
        )
        log, code = log + ran.stdout + ran.stderr, ran.returncode
        if code:
            break
    pairs = [line.partition("=") for line in output.read_text().splitlines()]
    return Ran(
        code,
        {name: value for name, _, value in pairs},
        log,
        (folder / "pip.txt").read_text().splitlines(),
        summary.read_text("utf-8"),
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "audits.yaml").write_text(AUDITS)
    (tmp_path / "wrong audits.yaml").write_text(WRONG)
    return tmp_path


def test_what_is_as_expected_passes(folder: Path) -> None:
    ran = run_action(folder, Path(sys.executable).parent)
    assert ran.code == 0, ran.log
    assert ran.outputs["exit-code"] == "0"
    assert ran.outputs["folder"] == "a folder"
    assert re.fullmatch(r"dpaudit-[0-9a-f]{64}", ran.outputs["key"])
    assert ran.installed[-1] == str(ROOT)
    assert "### dpaudit: 1 privacy audit, as expected" in ran.summary
    (result,) = from_json(Path(ran.outputs["results"]).read_text("utf-8"))
    assert result.name == "tight"


def test_a_violation_fails_the_step_and_is_there_to_be_uploaded(folder: Path) -> None:
    ran = run_action(
        folder,
        config="audits.yaml\n\nwrong audits.yaml\n",
        args="--seed 3 -k 'not missing'",
        version="1.0.0",
        packages="diffprivlib==0.6.6\nscikit-learn",
    )
    assert ran.code == 1, ran.log
    assert ran.outputs["exit-code"] == "1"
    assert "::error " in ran.log
    assert Path(ran.outputs["sarif"]).stat().st_size > 0
    results = from_json(Path(ran.outputs["results"]).read_text("utf-8"))
    assert [one.seed for one in results] == [3, 3]
    assert ran.installed[-1] == "dpaudit==1.0.0"
    assert (folder / "asked.txt").read_text() == "diffprivlib==0.6.6\nscikit-learn\n"
    # pip looks for the file of a line such as -r requirements.txt beside the one that has the line.
    asked = folder / ran.installed[-2]
    assert asked.parent == folder
    assert not asked.exists()


def test_strict_fails_for_a_warning(folder: Path) -> None:
    (folder / "seven.py").write_text("def seven(x):\n    return 7\n")
    (folder / "audits.yaml").write_text(
        AUDITS.replace("mechanisms.laplace:laplace", "seven.py:seven")
    )
    assert run_action(folder).code == 0
    ran = run_action(folder, strict="true")
    assert ran.code == 1, ran.log
    assert "::error " in ran.log


def test_only_annotations_are_commands(folder: Path) -> None:
    (folder / "loud.py").write_text(
        "import os, random\n"
        "os.write(1, b'::error::by the system\\n')\n"
        "def loud(given):\n    print('::error::printed')\n    return random.random() + given\n"
    )
    (folder / "audits.yaml").write_text(WRONG.replace("mechanisms.laplace:laplace", "loud.py:loud"))
    ran = run_action(folder)
    assert ran.code == 1, ran.log
    assert "error::printed" in ran.log
    lines = ran.log.splitlines()
    ((begin, token),) = (
        (place, line.removeprefix("::stop-commands::"))
        for place, line in enumerate(lines)
        if line.startswith("::stop-commands::")
    )
    end = lines.index(f"::{token}::")
    others = [line for line in lines[:begin] + lines[end + 1 :] if line.lstrip().startswith("::")]
    assert [line[: len("::error file=")] for line in others] == ["::error file="]
    assert not any("printed" in line or "system" in line for line in others)
    assert token not in run_action(folder).log


@pytest.mark.parametrize(
    ("inputs", "code"),
    [
        ({"config": "audits.yaml; touch pwned"}, 2),
        ({"config": "$(touch pwned).yaml"}, 2),
        ({"args": "--seed 1; touch pwned"}, 2),
        ({"args": "-k '$(touch pwned)'"}, 5),
        ({"version": "1; touch pwned"}, 2),
        ({"config": ""}, 0),  # audits.yaml
        ({"strict": "true; touch pwned"}, 2),
        ({"packages": "$(touch pwned)"}, 0),
    ],
)
def test_nothing_that_an_input_says_is_run(folder: Path, inputs: dict[str, str], code: int) -> None:
    ran = run_action(folder, **inputs)
    assert ran.code == code, ran.log
    assert ran.outputs.get("exit-code", "2") == str(code)
    assert not list(folder.rglob("pwned"))


def test_the_planted_injection_is_noticed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A script that has an input in its text does what the input says."""
    step = STEPS[-2]
    careless = step["run"].replace("dpaudit run", 'eval "$DPAUDIT_ARGS"; dpaudit run')
    monkeypatch.setitem(step, "run", careless)
    run_action(folder, args="touch pwned")
    assert list(folder.rglob("pwned"))


def test_the_script_for_gitlab_runs(folder: Path) -> None:
    job = yaml.safe_load(examples()[".gitlab-ci.yml"])["privacy"]
    (folder / "privacy.yaml").write_text(AUDITS)
    lines = [line for line in job["script"] if not line.startswith("pip ")]
    assert len(lines) < len(job["script"])
    paths = (Path(sys.executable).parent, os.environ["PATH"])
    path = os.pathsep.join(map(str, paths))
    ran = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", "\n".join(lines)],
        cwd=folder,
        env={**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    artifacts = [*job["artifacts"]["paths"], job["artifacts"]["reports"]["junit"]]
    assert all((folder / name).is_file() for name in artifacts)
