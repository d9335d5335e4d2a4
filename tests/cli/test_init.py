"""`dpaudit init`: files that work, whatever the mechanism is, and none that replaces another."""

from __future__ import annotations

import datetime
import json
import linecache
import os
import pty
import runpy
import shlex
import subprocess
import sys
import time
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

from dpaudit.cli import init as command
from dpaudit.cli.commands import cli
from dpaudit.cli.init_files import UNKNOWN, in_python, in_yaml, requirement
from dpaudit.cli.saving import write_together
from dpaudit.config.loading import load_config
from dpaudit.errors import UsageError
from dpaudit.inputs.values import with_tuples
from dpaudit.inputs.values import written as written_value
from dpaudit.inputs.yaml_values import parse_yaml
from dpaudit.testing import session
from tests.house.test_action import valid
from tests.programs import DPAUDIT
from tests.raising import refusal

MINE = '''
from collections.abc import Callable
import numpy as np


def noisy_count(rows, rng):
    return len(rows) + rng.laplace(scale=0.5)


def private_count(rows, size, rng):
    return len(rows) + rng.laplace(scale=2, size=size)


def noisy_mean(values: np.ndarray, size, rng):
    return np.clip(values, 0, 1).sum() + rng.laplace(size=size)


def documented(x, size, rng):
    """Add noise.

    Parameters
    ----------
    x : float
        What is protected.
    """
    return float(x) + rng.laplace(size=size)


def scaled(x: float, sensitivity, epsilon, size, rng):
    return x + rng.laplace(scale=sensitivity / epsilon, size=size)


def frame_count(frame: "pd.DataFrame", size, rng):
    return len(frame) + rng.laplace(size=size)


def elsewhere(prng, queries: list[float], size):
    return sum(queries) + prng.laplace(size=size)


def late(epsilon, rows, size, rng):
    return len(rows) + rng.laplace(scale=1 / epsilon, size=size)


def by_name(*, rows, size, rng):
    return len(rows) + rng.laplace(size=size)


def couple(x: tuple[float, float], size, rng):
    return x[0] + rng.laplace(size=size)


def clipped(rows, bounds, shape, size, rng):
    low, high = bounds
    assert isinstance(bounds, tuple)
    return sum(min(max(row, low), high) for row in rows) + rng.laplace(scale=high, size=size)


class Laplace:
    def __init__(self, epsilon):
        self.epsilon = epsilon

    def add_noise(self, x: float, size, rng):
        return x + rng.laplace(scale=1 / self.epsilon, size=size)


class Several(Laplace):
    def quantile(self, x):
        return x


class Called:
    def __call__(self, bit, size, rng):
        return bit + rng.laplace(size=size)


def make(epsilon) -> Callable:
    return Laplace(epsilon).add_noise


def ready():
    return Laplace(1).add_noise


def defaulted(visits, size, rng, epsilon=1.0):
    return len(visits) + rng.laplace(scale=1 / epsilon, size=size)


class Defaulted:
    def __init__(self, epsilon=1.0):
        self.epsilon = epsilon

    def draw(self, x: float, size, rng):
        return x + rng.laplace(scale=1 / self.epsilon, size=size)


def gaussian(x: float, size, rng, epsilon=1.0, delta=0.001, flavour=3):
    return x + rng.normal(scale=5 / epsilon, size=size)


def noargs():
    return 1


def said_to_be(x=0) -> Callable:
    return 1


def broken(rows, rng):
    raise ValueError("no")


async def later(rows):
    return 0
'''
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


def test_a_leak_is_shown_at_once_and_its_test_is_red(folder: Path) -> None:
    done = started("mine.py:noisy_count", "--epsilon", "1")
    assert done.returncode == 1, done.stderr
    assert "pip install pytest" in " ".join(done.stdout.split())
    assert [line for line in done.stdout.splitlines() if line.startswith("wrote")] == [
        f"wrote {file}" for file in FILES
    ]
    assert "VIOLATION  noisy_count" in done.stdout
    assert "correct the mechanism" in done.stdout
    assert audit()["claim"] == {"epsilon": 1}
    assert (audit()["d1"], audit()["d2"]) == ([0, 1, 1], [0, 1])
    assert ran("run", "audits.yaml", "-q").returncode == 1
    assert fails().startswith("VIOLATION: ε ≥ ")


def test_what_looks_like_a_reference_to_a_matrix_is_read_back_as_it_was(folder: Path) -> None:
    given = ("--d1", '["a", "${b}", "$${c}"]', "--d2", '["a", "${b}"]', "--no-run")
    done = started("mine.py:private_count", "--epsilon", "1", *given)
    assert done.returncode == 0, done.stderr
    ((pair,),) = (one.pairs for one in load_config(folder / "audits.yaml"))
    assert (pair.d1, pair.d2) == (["a", "${b}", "$${c}"], ["a", "${b}"])


def test_all_that_nobody_knows_is_to_be_filled_in(folder: Path) -> None:
    done = started("mine.py:scaled")
    assert done.returncode == 0
    holes = "params.sensitivity, params.epsilon, claim.epsilon"
    assert f"say FILL_IN: {holes}." in " ".join(done.stdout.split())
    refused = ran("run", "audits.yaml")
    assert refused.returncode == 2
    assert "audits.yaml:8: params.sensitivity, params.epsilon and claim.epsilon" in refused.stderr
    filled = "--param sensitivity=1 --param epsilon=1 --epsilon 1 -q --samples 1000"
    assert ran("run", "audits.yaml", *filled.split()).returncode == 0
    assert f"FILL_IN: {holes};" in fails()


@pytest.mark.parametrize(
    ("name", "holes"),
    [
        ("frame_count", ["d1", "d2"]),
        ("Several", ["call", "init.epsilon", "d1", "d2"]),
        ("make", ["init.epsilon", "d1", "d2"]),
        ("broken", ["d1", "d2"]),
        ("couple", ["d1", "d2"]),
    ],
)
def test_holes(folder: Path, name: str, holes: list[str]) -> None:
    done = started(f"mine.py:{name}", "--mu", "1")
    assert done.returncode == 0, done.stderr
    error = refusal(load_config, folder / "audits.yaml")
    assert error.code == "fill-in-left"
    assert all(one in str(error) for one in holes)
    compile((folder / "test_privacy.py").read_text(), "test_privacy.py", "exec")


def test_what_only_a_file_can_refer_to_is_left_open_in_python(folder: Path) -> None:
    more = ("--param", "bounds={tuple: [0, 1]}", "--param", "shape=import:math:pi", "--d2", "[0]")
    done = started("mine.py:clipped", "--epsilon", "1", *more, "--d1", "@rows.json", "--no-run")
    assert done.returncode == 2
    assert "rows.json" in done.stderr
    (folder / "rows.json").write_text("[0, 1]")
    done = started("mine.py:clipped", "--epsilon", "1", *more, "--d1", "@rows.json")
    assert done.returncode == 0, done.stderr
    assert audit()["params"]["shape"] == "import:math:pi"
    assert audit()["d1"] == "@rows.json"
    assert "FILL_IN: params.shape, d1;" in fails()


def test_a_relation_that_is_guessed_is_called_a_guess(dpaudit: Any, folder: Path) -> None:
    asked = ("init", "mine.py:private_count", "--epsilon", "1", "--no-run", "--force")
    said = [
        "# Guessed from these inputs: ",
        "# Inputs and their relation, guessed:",
    ]
    for more, is_guess in (((), True), (("--adjacency", "add-remove"), False)):
        assert dpaudit(*asked, *more).exit_code == 0
        for name, words in zip(("audits.yaml", "test_privacy.py"), said, strict=True):
            assert (words in (folder / name).read_text("utf-8")) is is_guess
    given = ("--d1", "[1]", "--d2", "[]")
    assert dpaudit(*asked, *given).exit_code == 0
    assert "adjacency" not in (folder / "audits.yaml").read_text("utf-8")


@pytest.mark.parametrize(
    ("relation", "d1", "d2"),
    [
        ("replace", "[0, 1, 1]", "[0, 1, 0]"),
        ("hamming:1", "[0, 1, 1]", "[0, 1, 0]"),
        ("l1:1", "[0, 1, 1]", "[0, 1, 0]"),
        ("add-remove", "[0, 1, 1]", "[0, 1]"),
        ("linf:0.5", "FILL_IN", "FILL_IN"),
    ],
)
def test_guessed_inputs_fit_the_relation_that_is_given(
    dpaudit: Any, folder: Path, relation: str, d1: str, d2: str
) -> None:
    asked = ("mine.py:private_count", "--epsilon", "1", "--adjacency", relation, "--no-run")
    assert dpaudit("init", *asked).exit_code == 0
    lines = (folder / "audits.yaml").read_text("utf-8").splitlines()
    found = [one.split("#")[0].strip() for one in lines]
    assert f"d1: {d1}" in found
    assert f"d2: {d2}" in found


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
    group = "--definition probabilistic --epsilon 1 --delta 0.1 --group 2"
    mistakes = {
        "mine.py:nosy_count": "Did you mean 'noisy_count'?",
        "mein.py:noisy_count": "Did you mean 'mine.py'?",
        "mine:noisy_cnt": "Did you mean 'noisy_count'?",
        "mine.py": "There is: noisy_count, private_count",
        "nofile.py": "'nofile.py'",
        "audits.yaml": "'audits.yaml'",
        "mine.py:noargs": "mine.py:noargs",
        "mine.py:said_to_be": "mine.py:said_to_be",
        "mine.py:later": "async function",
        "mine.py:noisy_count --epsilon -1": "epsilon",
        f"mine.py:noisy_count {group}": "simple",
        "mine.py:noisy_count --d1 3 --d2 4 --epsilon 1 --adjacency replase": "Did you mean",
        "mine.py:noisy_count --param rows=1": "'rows'",
        "mine.py:noisy_count --param scal=1": "'scal'",
        "mine.py:Laplace --call add_nose --epsilon 1": "Did you mean 'add_noise'?",
        "mine.py:Laplace --call add_nose": "Did you mean 'add_noise'?",
        "mine.py:noisy_count --call x": "call",
        "mine.py:noisy_count --sampels 3": "Did you mean '--samples'?",
    }
    for words, named in mistakes.items():
        done = started(*words.split())
        assert done.returncode == 2
        assert named in done.stderr
        assert len(done.stderr.splitlines()) == 1
        names = [path.name for path in folder.iterdir() if path.name != "__pycache__"]
        assert names == ["mine.py"]


@pytest.mark.parametrize("there", FILES)
def test_nothing_is_replaced_unless_asked(folder: Path, there: str) -> None:
    path = folder / there
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("mine")
    done = started("mine.py:private_count", "--epsilon", "1", "--no-run", "--debug")
    assert done.returncode == 2
    assert f"error[file-exists]: {there} " in done.stderr
    assert "--force" in done.stderr
    assert path.read_text() == "mine"
    assert sum((folder / one).exists() for one in FILES) == 1
    done = started("mine.py:private_count", "--epsilon", "1", "--no-run", "--force")
    assert done.returncode == 0
    assert path.read_text() != "mine"


def test_a_target_that_is_wrong_is_not_hidden_by_files_that_are_there(folder: Path) -> None:
    (folder / "audits.yaml").write_text("mine")
    done = started("nope:x", "--debug")
    assert done.returncode == 2
    assert "error[module-not-found]: " in done.stderr
    assert "'nope'" in done.stderr
    assert (folder / "audits.yaml").read_text() == "mine"


def test_a_folder_that_cannot_be_written_to(folder: Path) -> None:
    (folder / ".github").write_text("a file")
    done = started("mine.py:private_count", "--epsilon", "1", "--debug")
    assert done.returncode == 2
    assert "error[cannot-write]: " in done.stderr
    assert FILES[2] in done.stderr
    assert sorted(one.name for one in folder.glob("*.y*ml")) == []


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("call", ["fsync", "rename"])
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


@pytest.mark.parametrize("target", ["./mine.py", "inside/../mine.py", "{here}/mine.py"])
def test_files_are_named_as_seen_from_here(folder: Path, target: str) -> None:
    (folder / "inside").mkdir()
    path = target.format(here=folder)
    assert started(f"{path}:private_count", "--epsilon", "1", "--no-run").returncode == 0
    assert audit()["mechanism"] == "mine.py:private_count"
    assert str(folder) not in (folder / "test_privacy.py").read_text()


def test_the_workflow_has_only_commands_that_exist(folder: Path) -> None:
    (folder / "requirements.txt").write_text("")
    assert started("mine.py:private_count", "--epsilon", "1", "--no-run").returncode == 0
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


COMMIT = "0123456789abcdef0123456789abcdef01234567"
GIT = {"vcs_info": {"vcs": "git", "commit_id": COMMIT, "requested_revision": "main"}}


@pytest.mark.parametrize(
    ("recorded", "wanted"),
    [
        (None, "dpaudit==0.1.0"),
        (
            {"url": "https://host.example/them/dpaudit", **GIT},
            f"dpaudit @ git+https://host.example/them/dpaudit@{COMMIT}",
        ),
        (  # without the password
            {"url": "https://me:secret@host.example:8443/dpaudit.git", **GIT},
            f"dpaudit @ git+https://host.example:8443/dpaudit.git@{COMMIT}",
        ),
        (
            {"url": "ssh://git@host.example:22/them/dpaudit.git", **GIT, "subdirectory": "tools"},
            f"dpaudit @ git+https://host.example/them/dpaudit.git@{COMMIT}#subdirectory=tools",
        ),
        ({"url": "file:///srv/dpaudit.git", **GIT}, UNKNOWN),
        (
            {
                "url": "https://me@host.example/dpaudit-0.1.0.tar.gz",
                "archive_info": {"hash": "sha256=abc"},
            },
            "dpaudit @ https://host.example/dpaudit-0.1.0.tar.gz#sha256=abc",
        ),
        (
            {
                "url": "https://host.example/dpaudit-0.1.0.tar.gz",
                "archive_info": {"hashes": {"sha256": "def"}},
                "subdirectory": "a",
            },
            "dpaudit @ https://host.example/dpaudit-0.1.0.tar.gz#sha256=def&subdirectory=a",
        ),
        (
            {"url": "https://host.example/d.whl", "archive_info": {}},
            "dpaudit @ https://host.example/d.whl",
        ),
        ({"url": "file:///nowhere/dpaudit", "dir_info": {"editable": True}}, UNKNOWN),
    ],
)
def test_the_workflow_installs_what_was_installed_here(
    dpaudit: Any,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    recorded: dict[str, Any] | None,
    wanted: str,
) -> None:
    installed_as(recorded, monkeypatch)
    assert requirement() == wanted
    done = dpaudit("init", "mine.py:private_count", "--epsilon", "1", "--no-run")
    assert done.exit_code == 0
    assert ("FILL_IN" in done.stdout) is (wanted == UNKNOWN)
    text = (folder / FILES[2]).read_text()
    assert "secret" not in text
    steps = yaml.safe_load(text)["jobs"]["audit"]["steps"]
    (words,) = (
        shlex.split(one["run"]) for one in steps if one.get("run", "").startswith("pip install")
    )
    assert words == ["pip", "install", wanted, "pytest"]
    assert valid("github-workflows", folder / FILES[2])


def test_a_clone_is_installed_from_its_origin_and_a_folder_here_from_here(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    clone = tmp_path_factory.mktemp("elsewhere") / "tools" / "dpaudit"
    clone.mkdir(parents=True)
    root = clone.parents[1]

    def git(*words: str) -> str:
        settings = ("-c", "user.name=me", "-c", "user.email=me@host.example")
        done = subprocess.run(
            ["git", "-C", str(root), *settings, *words], check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    installed_as({"url": clone.as_uri(), "dir_info": {"editable": True}}, monkeypatch)
    assert requirement() == UNKNOWN
    git("init", "-q")
    git("commit", "-q", "--allow-empty", "-m", "first")
    assert requirement() == UNKNOWN
    git("remote", "add", "origin", "git@host.example:them/tools.git")
    commit = git("rev-parse", "HEAD")
    wanted = f"dpaudit @ git+https://host.example/them/tools.git@{commit}"
    assert requirement() == f"{wanted}#subdirectory=tools/dpaudit"
    (folder / "vendored" / "dpaudit").mkdir(parents=True)
    own = {"url": (folder / "vendored" / "dpaudit").as_uri(), "dir_info": {}}
    installed_as(own, monkeypatch)
    assert requirement() == "./vendored/dpaudit"


def installed_as(recorded: dict[str, Any] | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let pip have recorded this; None for an index."""
    found = SimpleNamespace(
        version="0.1.0", read_text=lambda _: None if recorded is None else json.dumps(recorded)
    )
    monkeypatch.setattr("importlib.metadata.distribution", lambda _: found)


def test_the_numbers_are_written_out(dpaudit: Any, folder: Path) -> None:
    words = ("init", "mine.py:private_count", "--epsilon", "1", "--no-run")
    assert dpaudit(*words).exit_code == 0
    (audit,) = yaml.safe_load((folder / FILES[0]).read_text())["audits"]
    assert (audit["samples"], audit["confidence"], audit["seed"]) == (100_000, 0.99, 0)
    test = " ".join((folder / FILES[1]).read_text().split())
    assert "samples=100_000, confidence=0.9999, seed=0" in test
    (folder / "pyproject.toml").write_text(
        "[tool.dpaudit]\nsamples = 3_000\nconfidence = 0.95\nseed = 4\n"
    )
    assert dpaudit(*words, "--force").exit_code == 0
    (audit,) = yaml.safe_load((folder / FILES[0]).read_text())["audits"]
    assert (audit["samples"], audit["confidence"], audit["seed"]) == (3_000, 0.95, 4)
    test = " ".join((folder / FILES[1]).read_text().split())
    assert "samples=3_000, confidence=0.95, seed=4" in test


@pytest.mark.parametrize(
    ("call", "draw", "samples"), [(0.02, 0.0, 100_000), (0.0, 0.0005, 10_000), (0.0, 0.1, 1_000)]
)
def test_draws_that_share_a_call_share_its_time(
    call: float, draw: float, samples: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock goes on only in calls: by `call`, and by `draw` for each draw of the call."""
    clock = [0.0]

    def sample(data: object, number: int, rng: object) -> None:
        clock[0] += call + number * draw

    monkeypatch.setattr("dpaudit.cli.init.time.perf_counter", lambda: clock[0])
    mechanism = SimpleNamespace(sample=sample)
    assert command._samples(mechanism, {"d1": 0, "d2": 1}) == samples


def test_a_default_is_no_claim(folder: Path) -> None:
    """The default need not be the claimed number."""
    done = started("mine.py:defaulted")
    assert done.returncode == 0
    assert "FILL_IN: params.epsilon, claim.epsilon." in " ".join(done.stdout.split())
    assert "# epsilon has the default 1: " in Path("audits.yaml").read_text()
    started("mine.py:defaulted", "--epsilon", "1", "--param", "epsilon=2", "--force", "--no-run")
    assert audit()["params"] == {"epsilon": 2}
    assert "is the claim's" not in Path("audits.yaml").read_text()
    started("mine.py:gaussian", "--mu", "1", "--force", "--no-run")
    assert audit()["params"] == {"epsilon": 1.0, "delta": 0.001}
    assert "# epsilon=1 is the default: " in Path("audits.yaml").read_text()


def test_help_says_how_many_draws_are_written_down(folder: Path) -> None:
    assert "Default: 100,000." in started("--help").stdout
    assert "1,000,000" not in started("--help-all").stdout


def test_what_is_there_is_said_before_anything_is_asked(folder: Path) -> None:
    Path("audits.yaml").write_text("")
    code, said = at_terminal("mine.py:scaled", {})
    assert code == 2
    assert "audits.yaml is there already" in said
    assert "claims" not in said


def test_what_no_claim_can_have_is_refused_where_it_is_asked_for(folder: Path) -> None:
    answers = {
        "'defaulted' claims (the default ": "abc",
        "'abc'": "-1",
        "epsilon=-1": "0.5",
        "its δ": "2",
        "delta=2": "0",
    }
    code, said = at_terminal("mine.py:defaulted", answers)
    assert (code, answers) == (0, {}), said
    assert audit()["claim"] == {"epsilon": 0.5}
    assert audit()["params"] == {"epsilon": 0.5}


def at_terminal(target: str, answers: dict[str, str]) -> tuple[int, str]:
    """Return the exit code of init on a terminal and what it shows; takes out every answer that was
    asked for."""
    main, side = pty.openpty()
    words = [DPAUDIT, "init", target, "--samples", "500"]
    running = subprocess.Popen(words, stdin=side, stdout=side, stderr=side, close_fds=True)
    os.close(side)
    said = ""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            said += os.read(main, 65_536).decode(errors="replace")
        except OSError:  # the other end is closed
            break
        for question, answer in list(answers.items()):
            if question in said and said.rstrip(" ").endswith(":"):
                os.write(main, f"{answer}\n".encode())
                del answers[question]
                said = ""
                break
    running.wait(timeout=60)
    os.close(main)
    return running.returncode, said


VALUES = [
    *(0, -7, 10**30, 0.1, -1e300, 1e-7, float("inf"), -float("inf"), True, False, None),
    *(
        "",
        "yes",
        "null",
        "1e3",
        "a: b # c",
        'it\'s "so"',
        "two\nlines\t",
        "\x00\x1b",
        "ε\u2028",
        "{}",
    ),
    *([], {}, [1, [2.5, "x"]], {"a": {"b": [None]}, 1: "one", "on": True}),
    *({"tuple": [0, 1]}, {"tuple": [[0], {"tuple": []}]}, {"a": {"tuple": [7]}}),
    *(datetime.date(2024, 1, 31), datetime.datetime(2024, 1, 31, 12, 30)),
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_values_are_read_back_as_they_were(value: Any) -> None:
    text = in_yaml(value)
    assert len(text.splitlines()) == 1
    assert parse_yaml(f"key: {text}") == {"key": value}
    written = in_python(value)
    assert written is not None
    assert eval(written, {"datetime": datetime, "float": float}) == with_tuples(value)
    assert parse_yaml(in_yaml(with_tuples(value))) == value


@pytest.mark.parametrize("form", ["array", "pandas", "polars"])
def test_arrays_and_frames_are_written_to_files_alone(form: str) -> None:
    value = {"w": {form: {"a": [1, 2]} if form != "array" else [1, 2]}}
    for one in (value, written_value(value)):
        assert parse_yaml(in_yaml(one)) == value
        assert in_python(one) is None


def test_a_folder_that_nobody_may_write_to(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As root may everywhere."""

    def denied(path: Path, *_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    paths = [Path(file) for file in FILES]
    with monkeypatch.context() as patched:
        patched.setattr(Path, "touch", denied)
        error = refusal(command._check_free, paths, force=False)
        assert (error.code, "audits.yaml: " in str(error)) == ("cannot-write", True)
    monkeypatch.setattr(os, "access", lambda *_: False)
    error = refusal(command._check_free, paths, force=True)
    assert (error.code, "privacy.yml: " in str(error)) == ("cannot-write", True)
    assert [one.name for one in folder.iterdir()] == ["mine.py"]
