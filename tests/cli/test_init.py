"""`dpaudit init`: files that work, and audits added to those that exist."""

from __future__ import annotations

import datetime
import json
import linecache
import os
import runpy
import shlex
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest
import yaml
from click.testing import CliRunner

from dpaudit.cli.commands import cli
from dpaudit.cli.init import in_python, in_yaml, requirement
from dpaudit.cli.saving import write_together
from dpaudit.config.settings import FILL_IN
from dpaudit.config.yaml_files import load_config
from dpaudit.errors import UsageError
from dpaudit.inputs.values import with_tuples
from dpaudit.inputs.yaml_values import parse_yaml
from dpaudit.testing import session
from tests.house.test_action import valid
from tests.raising import refusal

MINE = """
from collections.abc import Callable
import numpy as np


def noisy_count(rows, rng):
    return len(rows) + rng.laplace(scale=0.5)


def private_count(rows, size, rng):
    return len(rows) + rng.laplace(scale=2, size=size)


def noisy_mean(values: np.ndarray, size, rng):
    return np.clip(values, 0, 1).sum() + rng.laplace(size=size)


def scaled(x: float, sensitivity, epsilon, size, rng):
    return x + rng.laplace(scale=sensitivity / epsilon, size=size)


def frame_count(frame: "pd.DataFrame", size, rng):
    return len(frame) + rng.laplace(size=size)


def elsewhere(prng, queries: list[float], size):
    return sum(queries) + prng.laplace(size=size)


class Laplace:
    def __init__(self, epsilon):
        self.epsilon = epsilon

    def add_noise(self, x: float, size, rng):
        return x + rng.laplace(scale=1 / self.epsilon, size=size)


class Several(Laplace):
    def quantile(self, x):
        return x


def make(epsilon) -> Callable:
    return Laplace(epsilon).add_noise


def defaulted(visits, size, rng, epsilon=1.0):
    return len(visits) + rng.laplace(scale=1 / epsilon, size=size)


def noargs():
    return 1


async def later(rows):
    return 0
"""
FILES = ("audits.yaml", "test_privacy.py", ".github/workflows/privacy.yml")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "mine.py").write_text(MINE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(session, "_current", [])  # as outside of this run of pytest
    monkeypatch.setattr(sys, "path", sys.path[:])
    modules = sys.modules.copy()
    yield tmp_path
    for name in sys.modules.keys() - modules.keys():
        if str(tmp_path) in repr(sys.modules[name]):  # no test after this one finds it
            del sys.modules[name]


@dataclass(frozen=True, slots=True)
class Done:
    returncode: int
    stdout: str
    stderr: str


def ran(*words: str) -> Done:
    linecache.clearcache()  # an earlier test may have shown lines of another mine.py
    result = CliRunner().invoke(cli, words, prog_name="dpaudit")
    return Done(result.exit_code, result.stdout, result.stderr)


def started(*words: str) -> Done:
    return ran("init", *words)


def audit() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(Path("audits.yaml").read_text())["audits"][0]
    return found


def fails() -> str:
    """Return what the test that was written fails with; nothing where it passes."""
    path, modules = sys.path[:], sys.modules.copy()
    sys.path.insert(0, str(Path.cwd()))
    sys.modules.pop("mine", None)
    try:
        with warnings.catch_warnings(action="ignore"):
            for name, value in runpy.run_path("test_privacy.py").items():
                if name.startswith("test_"):
                    value()
    except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001  # it is returned
        return str(error)
    finally:
        sys.path[:] = path
        sys.modules.update(modules)
    return ""


COMPLETE = ("--epsilon", "1", "--d1", "[0, 1]", "--d2", "[0]")


def test_a_leak_is_shown_at_once_and_its_test_is_red(folder: Path) -> None:
    done = started("mine.py:noisy_count", *COMPLETE)
    assert done.returncode == 1, done.stderr
    assert [line for line in done.stdout.splitlines() if line.startswith("wrote")] == [
        f"wrote {file}" for file in FILES
    ]
    assert "VIOLATION  noisy_count" in done.stdout
    assert audit() == {
        "name": "noisy_count", "mechanism": "mine.py:noisy_count", "claim": {"epsilon": 1},
        "d1": [0, 1], "d2": [0],
    }  # fmt: skip
    assert ran("run", "audits.yaml", "-q").returncode == 1
    assert fails().startswith("VIOLATION: ")


def test_a_second_audit_is_added_and_nothing_else_changes(folder: Path) -> None:
    (folder / "other.py").write_text(MINE)
    assert started("mine.py:private_count", *COMPLETE, "--no-run").returncode == 0
    before = [Path(file).read_text() for file in FILES]
    done = started("other.py:private_count", *COMPLETE, "--no-run")
    assert done.returncode == 0
    assert [line for line in done.stdout.splitlines() if line.startswith("added")] == [
        f"added to {file}" for file in FILES[:2]
    ]
    after = [Path(file).read_text() for file in FILES]
    assert [now.startswith(then) for then, now in zip(before, after, strict=True)] == [True] * 3
    assert after[2] == before[2]
    names = [spec.name for spec in load_config(folder / "audits.yaml")]
    assert names == ["private_count", "other.py:private_count"]
    assert after[1].count("def test_") == 2
    assert ran("check", "audits.yaml").returncode == 0
    done = started("other.py:private_count", *COMPLETE, "--no-run", "--debug")
    assert (done.returncode, "error[name-not-unique]: " in done.stderr) == (2, True)
    assert [Path(file).read_text() for file in FILES] == after


@pytest.mark.parametrize(
    "text",
    [
        "version: 1\naudits:\n- {name: a, mechanism: 'mine.py:noisy_count', d1: 0, d2: 1, "
        "claim: {epsilon: 1}}",
        "version: 1\naudits:\n    - name: a\n      mechanism: mine.py:noisy_count\n\n"
        "# after\ndefaults: {d1: [0], d2: [0, 1], claim: {epsilon: 2}}\n",
    ],
)
def test_an_audit_is_added_to_a_file_of_the_user(folder: Path, text: str) -> None:
    Path("audits.yaml").write_text(text)
    assert started("mine.py:private_count", *COMPLETE, "--no-run").returncode == 0
    assert [spec.name for spec in load_config(folder / "audits.yaml")] == ["a", "private_count"]
    written = Path("audits.yaml").read_text().splitlines()
    assert [line for line in text.splitlines() if line not in written] == []


@pytest.mark.parametrize(
    "text", ["version: 1\naudits: []\n", "version: 1\naudits: [{name: a}]\n", "{", "- 1\n"]
)
def test_no_audit_is_added_to_a_file_without_a_list_of_them(folder: Path, text: str) -> None:
    Path("audits.yaml").write_text(text)
    done = started("mine.py:private_count", *COMPLETE, "--no-run")
    assert done.returncode == 2
    assert Path("audits.yaml").read_text() == text
    assert not Path("test_privacy.py").exists()


def test_all_that_nobody_knows_is_to_be_filled_in(folder: Path) -> None:
    done = started("mine.py:scaled", "--d1", "0.", "--d2", "1.")
    assert done.returncode == 0
    holes = "params.sensitivity, params.epsilon, claim.epsilon"
    assert f"say FILL_IN: {holes}" in " ".join(done.stdout.split())
    refused = ran("run", "audits.yaml")
    assert refused.returncode == 2
    assert "audits.yaml:8: params.sensitivity, params.epsilon and claim.epsilon" in refused.stderr
    filled = "--param sensitivity=1 --param epsilon=1 --epsilon 1 -q --samples 1000"
    assert ran("run", "audits.yaml", *filled.split()).returncode == 0
    assert "FILL_IN" in fails()


@pytest.mark.parametrize(
    ("words", "holes"),
    [
        ("frame_count", ["d1", "d2"]),
        ("Several", ["call", "init.epsilon", "d1", "d2"]),
        ("defaulted --definition approximate", ["claim.epsilon", "claim.delta"]),
    ],
)
def test_holes(folder: Path, words: str, holes: list[str]) -> None:
    name, *more = words.split()
    claim = () if "--definition" in more else ("--mu", "1")
    done = started(f"mine.py:{name}", *more, *claim)
    assert done.returncode == 0, done.stderr
    error = refusal(load_config, folder / "audits.yaml")
    assert error.code == "fill-in-left"
    assert all(one in str(error) for one in holes)
    compile((folder / "test_privacy.py").read_text(), "test_privacy.py", "exec")


@pytest.mark.parametrize("hole", ["name", "init", "params", "pairs", "adjacency"])
def test_a_hole_anywhere_is_refused(folder: Path, hole: str) -> None:
    value = {"params": "{a: FILL_IN}", "pairs": "[{d1: 0, d2: FILL_IN}]"}.get(hole, "FILL_IN")
    inputs = "" if hole == "pairs" else "d1: 0, d2: 1, "
    text = f"{{mechanism: 'mine.py:make', {inputs}claim: {{epsilon: 1}}, {hole}: {value}}}"
    (folder / "a.yaml").write_text(f"version: 1\naudits:\n  - {text}\n")
    error = refusal(load_config, folder / "a.yaml")
    assert error.code == "fill-in-left"
    assert f"a.yaml:3: {hole}" in str(error)


def test_mistakes_write_nothing(folder: Path) -> None:
    complete = "--d1 [0] --d2 [] --epsilon 1"
    group = "--definition probabilistic --epsilon 1 --delta 0.1 --group 2 --d1 [0] --d2 []"
    mistakes = {
        "mine.py:nosy_count": "Did you mean 'noisy_count'?",
        "mine.py": "There is: noisy_count, private_count",
        "audits.yaml": "'audits.yaml'",
        f"mine.py:noargs {complete}": "mine.py:noargs",
        f"mine.py:later {complete}": "async function",
        "mine.py:noisy_count --epsilon -1 --d1 [0] --d2 []": "epsilon",
        f"mine.py:noisy_count {group}": "simple",
        f"mine.py:noisy_count {complete} --param scal=1": "'scal'",
        f"mine.py:Laplace --call add_nose {complete}": "Did you mean 'add_noise'?",
    }
    for words, named in mistakes.items():
        done = started(*words.split())
        assert done.returncode == 2, words
        assert named in done.stderr
        assert len(done.stderr.splitlines()) == 1
        names = [path.name for path in folder.iterdir() if path.name != "__pycache__"]
        assert names == ["mine.py"]


@pytest.mark.parametrize(("call", "number"), [("fsync", 2), ("rename", 1), ("rename", 3)])
def test_all_files_or_none(
    folder: Path, monkeypatch: pytest.MonkeyPatch, call: str, number: int
) -> None:
    """On a full disk, too, what was there stays."""
    Path(FILES[0]).write_text("mine, too")
    Path(FILES[1]).write_text("mine")
    before = sorted(folder.rglob("*"))
    left = [number]
    owner: Any = os if call == "fsync" else Path
    whole = getattr(owner, call)

    def failing(*given: Any) -> Any:
        left[0] -= 1
        if left[0] == 0:
            raise OSError(28, "No space left on device", "x")
        return whole(*given)

    with monkeypatch.context() as patched:
        patched.setattr(owner, call, failing)
        with pytest.raises(UsageError, match=r"^cannot write .*: No space left on device"):
            write_together(dict.fromkeys(map(Path, FILES), b"new"))
    assert Path(FILES[0]).read_text() == "mine, too"
    assert Path(FILES[1]).read_text() == "mine"
    assert sorted(folder.rglob("*")) == before
    write_together(dict.fromkeys(map(Path, FILES), b"new"))
    assert [Path(one).read_text() for one in FILES] == ["new"] * 3
    assert len(list(folder.rglob("*"))) == len(before) + 3


def test_the_workflow_has_only_commands_that_exist(folder: Path) -> None:
    (folder / "requirements.txt").write_text("")
    assert started("mine.py:private_count", *COMPLETE, "--no-run").returncode == 0
    workflow = yaml.safe_load((folder / FILES[2]).read_text())
    assert workflow["name"] == "privacy"
    commands = [
        shlex.split(step["run"]) for step in workflow["jobs"]["audit"]["steps"] if "run" in step
    ]
    installs = [words for words in commands if words[0] == "pip"]
    assert installs == [
        ["pip", "install", requirement(), "pytest"],
        ["pip", "install", "-r", "requirements.txt"],
    ]
    assert valid("github-workflows", folder / FILES[2])
    words, tests = [words for words in commands if words not in installs]
    assert words[0] == "dpaudit"
    assert tests == ["pytest", "test_privacy.py"]
    assert ran(*words[1:]).returncode == 0
    one = cli.get_command(click.Context(cli), words[1])
    assert one is not None
    assert "--report" in {name for param in one.params for name in param.opts}


def test_the_workflow_of_every_night_keeps_a_record(folder: Path) -> None:
    attributes = folder / ".gitattributes"
    attributes.write_text("*.csv text")
    for _ in range(2):
        started("mine.py:private_count", *COMPLETE, "--no-run", "--nightly")
        assert attributes.read_text() == "*.csv text\nevidence.json merge=union\n"
    file = folder / ".github" / "workflows" / "privacy-nightly.yml"
    assert valid("github-workflows", file)
    workflow = yaml.safe_load(file.read_text())
    assert workflow["permissions"] == {"contents": "write"}
    assert workflow["jobs"]["audit"]["steps"][0]["with"] == {"ref": "${{ github.ref_name }}"}
    (words,) = (
        shlex.split(step["run"])
        for step in workflow["jobs"]["audit"]["steps"]
        if step.get("run", "").startswith("dpaudit")
    )
    assert ran(*words[1:], "--samples", "2000").returncode == 0
    assert (folder / "evidence.json").read_text().count("\n") == 2


COMMIT = "0123456789abcdef0123456789abcdef01234567"
GIT = {"vcs_info": {"vcs": "git", "commit_id": COMMIT, "requested_revision": "main"}}


@pytest.mark.parametrize(
    ("recorded", "wanted"),
    [
        (None, "dpaudit==1.0.0"),
        (
            {"url": "https://host.example/them/dpaudit", **GIT},
            f"'dpaudit @ git+https://host.example/them/dpaudit@{COMMIT}'",
        ),
        ({"url": "https://me:secret@host.example/dpaudit.git", **GIT}, "dpaudit==1.0.0"),
        ({"url": "file:///nowhere/dpaudit", "dir_info": {"editable": True}}, "dpaudit==1.0.0"),
    ],
)
def test_the_workflow_installs_what_was_installed_here(
    monkeypatch: pytest.MonkeyPatch, recorded: dict[str, Any] | None, wanted: str
) -> None:
    distribution = SimpleNamespace(
        version="1.0.0", read_text=lambda _: None if recorded is None else json.dumps(recorded)
    )
    monkeypatch.setattr("importlib.metadata.distribution", lambda _: distribution)
    assert requirement() == wanted


VALUES = [
    *(0, -7, 10**30, 0.1, -1e300, 1e-7, True, False, None),
    *("", "yes", "1e3", "a: b # c", 'it\'s "so"', "two\nlines\t", "\x00\x1b", "ε\u2028", "{}"),
    *([], {}, [1, [2.5, "x"]], {"a": {"b": [None]}, 1: "one", "on": True}),
    *({"tuple": [0, 1]}, {"tuple": [[0], {"tuple": []}]}, {"a": {"tuple": [7]}}),
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_values_are_read_back_as_they_were(value: Any) -> None:
    text = in_yaml(value)
    assert len(text.splitlines()) == 1
    assert parse_yaml(f"key: {text}") == {"key": value}
    assert eval(in_python(value)) == with_tuples(value)


@pytest.mark.parametrize(
    "value",
    [
        *(float("inf"), -float("inf"), [float("inf")], "@rows.csv", "import:math:pi"),
        *({"array": [1, 2]}, {"pandas": {"a": [1, 2]}}, datetime.date(2024, 1, 31)),
        datetime.datetime(2024, 1, 31, 12, 30),
    ],
    ids=repr,
)
def test_what_has_no_literal_is_to_be_filled_in_in_python(value: Any) -> None:
    assert parse_yaml(f"key: {in_yaml(value)}") == {"key": value}
    assert in_python(value) == FILL_IN
    assert in_python({"a": value}) == f"{{'a': {FILL_IN}}}"
