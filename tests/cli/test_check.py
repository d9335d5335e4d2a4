"""`dpaudit check`: the first error of each audit, and no draw."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]

SOUND = """def drawn(x, rng):
    raise SystemExit("it was called")


class Noisy:
    def __init__(self, scale):
        self.scale = scale

    def draw(self, x, rng):
        raise SystemExit("it was called")


def silent(x):
    return x


"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "sound.py").write_text(SOUND)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def lines(text: str) -> list[str]:
    """Return the problems, each as `LINE message`."""
    found = [line for line in text.splitlines() if line.startswith("error: ")]
    return [re.sub(r"^error: [^:]*:(\d+): ", r"\1 ", line) for line in found]


def test_what_is_shipped_is_sound_and_nothing_is_drawn(
    dpaudit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dpaudit.sampling.sampler import Sampler

    def draw(*_: Any) -> Any:
        raise AssertionError("it draws")

    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(Sampler, "draw", draw)
    files = [
        *sorted(Path("configs").glob("*.yaml")),
        *sorted(Path("configs/seeds").glob("*.yaml")),
    ]
    ran = dpaudit("check", *files)
    assert ran.exit_code == 0, ran.output
    assert len(ran.stdout.splitlines()) == len(files) >= 5
    assert "configs/quickstart.yaml: 2 audits\n" in ran.stdout


def test_a_sound_file_is_loaded_and_not_run(dpaudit: Any, folder: Path) -> None:
    (folder / "a.yaml").write_text(
        "version: 1\n"
        "familywise: true\n"
        "defaults: {d1: 0, d2: 1, claim: {epsilon: 1}}\n"
        "audits:\n"
        "  - {name: a, mechanism: 'sound.py:drawn'}\n"
        "  - {name: 'b${s}', mechanism: 'sound.py:Noisy', init: ['${s}'], call: draw, "
        "matrix: {s: [1, 2]}}\n"
        "  - {name: c, mechanism: 'sound.py:drawn', isolate: true}\n"
        "  - {name: d, mechanism: 'sound.py:drawn', claim: {epsilon: 1, curve: {zcdp: {rho: 1}}}}\n"
        "  - {name: e, mechanism: 'mechanisms.pdp:counterexample', exact: true}\n"
    )
    ran = dpaudit("check", "a.yaml", "a.yaml")
    assert (ran.exit_code, ran.stdout) == (0, "a.yaml: 7 audits\n"), ran.output


MANY = """version: 1
familywise: 1
colour: red
defaults: {mechanism: "sound.py:drawn", d1: 0, d2: 1}
audits:
  - name: first
    claim: {epsilon: -1}
    samples: 7
    confidence: 2
    epsilon: 1
    workers: many
  - name: second
    mechanism: sound.py:drwn
    claim: {epsilon: 1}
  - just a text
  - name: first
    claim: {epsilon: 1}
    pairs: [{d1: 0, d2: "@none.npy"}, {d1: 1}, {d1: 0, d2: 1, adjacency: crooked}]
  - name: fourth
    compose: ["sound.py:drawn", {mechanism: 'sound.py:drawn', timeout: 1s, tmieout: 2s}]
    claim: {epsilon: 1}
  - name: fifth
    mechanism: sound.py:Noisy
    call: darw
    init: [1]
    claim: {epsilon: 1}
    exact: true
  - name: seventh
    attacks: ["sound.py:atack"]
    claim: {epsilon: 1}
  - name: ninth
    claim: {curve: {gaussian: {sigma: 1}, zcdp: {rho: 1}}, epsilon: 1}
  - {name: tenth, claim: {epsilon: 1}}
  - {name: tenth, claim: {epsilon: 1}}
"""

# The line and the code of each first error, and what its message names.
WANTED = [
    (2, "option-invalid", "familywise=1"),
    (3, "key-unknown", "'colour'"),
    (10, "key-misplaced", "claim: {epsilon: 1}"),
    (13, "", "'sound.py:drwn'"),
    (15, "configuration-shape", "'just a text'"),
    (18, "option-invalid", "{'d1': 1}"),
    (20, "key-unknown", "Did you mean 'timeout'?"),
    (23, "", "'darw'"),
    (29, "", "'sound.py:atack'"),
    (32, "option-invalid", "curve={'gaussian'"),
    (34, "name-not-unique", "(first on line 33)"),
]


def test_the_first_error_of_each_audit_is_named(dpaudit: Any, folder: Path) -> None:
    (folder / "a.yaml").write_text(MANY)
    ran = dpaudit("check", "a.yaml", "--debug")
    assert (ran.exit_code, ran.stdout) == (2, "")
    lines = re.findall(r"^error\[(.*?)\]: a.yaml:(\d+): (.*)$", ran.stderr, re.MULTILINE)
    found = [(int(line), code, text) for code, line, text in lines]
    assert [line for line, _, _ in found] == [line for line, _, _ in WANTED]
    for line, code, named in WANTED:
        problems = [one for one in found if one[0] == line and named in one[2]]
        assert problems, named
        assert problems[0][1] == code or not code
    assert ran.stderr.endswith(f"\n{len(WANTED)} problems\n")


def test_every_file_is_looked_at(dpaudit: Any, folder: Path) -> None:
    sound = (
        "version: 1\naudits: [{mechanism: 'sound.py:drawn', d1: 0, d2: 1, claim: {epsilon: 1}}]\n"
    )
    (folder / "sound.yaml").write_text(sound)
    (folder / "broken.yaml").write_text("version: 1\naudits: [\n")
    (folder / "empty.yaml").write_text("")
    (folder / "list.yaml").write_text("[]")
    (folder / "no-audits.yaml").write_text("version: 1\naudits: []\ndefaults: 7\n")
    (folder / "defaults.yaml").write_text(f"defaults: 7\n{sound}")
    names = ("broken", "empty", "missing", "list", "no-audits", "defaults", "sound")
    ran = dpaudit("check", *(f"{name}.yaml" for name in names))
    assert ran.exit_code == 2
    assert ran.stdout == "sound.yaml: 1 audit\n"
    for name in names[:-1]:
        assert f"{name}.yaml" in ran.stderr, name
    assert ran.stderr.splitlines()[-1] == "6 problems"
    assert "Traceback" not in ran.stderr


def test_what_a_module_does_is_no_end_of_the_check(dpaudit: Any, folder: Path) -> None:
    (folder / "leaves.py").write_text("import sys\nsys.exit(0)\n")
    (folder / "fails.py").write_text("print('hello')\n1 / 0\n")
    (folder / "a.yaml").write_text(
        "version: 1\ndefaults: {d1: 0, d2: 1, claim: {epsilon: 1}}\naudits:\n"
        "  - {mechanism: 'leaves.py:f', name: a}\n"
        "  - {mechanism: 'fails.py:f', name: 'b${s}', matrix: {s: [1, 2]}}\n"
        "  - {mechanism: 'sound.py:silent', name: c, exact: true}\n"
    )
    ran = dpaudit("check", "a.yaml")
    assert ran.exit_code == 2
    assert [line[:2] for line in lines(ran.stderr)] == ["4 ", "5 ", "6 "]
    assert "hello" not in ran.stdout
    assert "silent has no pmf" in ran.stderr


def test_an_audit_that_cannot_fail_is_a_warning(dpaudit: Any, folder: Path) -> None:
    (folder / "a.yaml").write_text(
        "version: 1\naudits: [{mechanism: 'sound.py:drawn', d1: 0, d2: 1, claim: {epsilon: 12}, "
        "samples: 100}]\n"
    )
    ran = dpaudit("check", "a.yaml")
    assert ran.exit_code == 0
    assert "warning: a.yaml:2: drawn: under-powered: 100 draws cannot refute" in ran.stderr


def test_the_hook_does_what_pre_commit_would(folder: Path) -> None:
    import yaml

    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert hook["id"] == "dpaudit-check"
    manifest = str(ROOT / ".pre-commit-hooks.yaml")
    checked = subprocess.run(
        [sys.executable, "-m", "pre_commit", "validate-manifest", manifest],
        capture_output=True,
        text=True,
    )
    assert checked.returncode == 0, checked.stdout
    assert not re.search(hook["files"], "setup.yaml")
    for name in ("audits.yaml", "privacy/audits.yml", "dpaudit.yaml", "x/dpaudit/count.yaml"):
        assert re.search(hook["files"], name), name
    (folder / "audits.yaml").write_text("version: 1\naudits: []\n")
    program, *words = hook["entry"].split()
    command = [str(Path(sys.executable).parent / program), *words, *hook.get("args", ())]
    ran = subprocess.run([*command, "audits.yaml"], capture_output=True, text=True)
    assert ran.returncode == 2
    assert "audits.yaml:2: " in ran.stderr


# A program, and modules, that leave a trace where they are started or imported.
_TRACES = {
    "traced.py": "open('imported', 'w').close()\n\ndef f(x):\n    return x\n\n"
    "def trade(alpha):\n    return 1 - alpha\n",
    "run.sh": "#!/bin/sh\ntouch started\necho '{\"dpaudit\": 1}'\ncat > /dev/null\n",
}


@pytest.fixture
def traced(folder: Path) -> Path:
    for name, text in _TRACES.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    return folder


def traces(folder: Path) -> set[str]:
    return {one.name for one in folder.iterdir()} & {"started", "imported"}


_ALL = (
    "  - {name: a, command: ./run.sh, d1: 0, d2: 1, claim: {epsilon: 1}}\n"
    "  - {name: b, mechanism: 'traced.py:f', d1: 0, d2: 1, claim: {epsilon: 1}}\n"
    "  - {name: c, mechanism: 'builtins:abs', d1: 0, d2: 1,"
    " claim: {tradeoff: 'traced.py:trade'}}\n"
)


@pytest.mark.parametrize(
    ("head", "last", "left"),
    [
        ("version: 2\n", "", set()),
        # An error in the defaults is the first error of every audit.
        ("version: 1\ndefaults: {sampels: 7}\n", "", set()),
        ("version: 1\nbogus: 1\n", "", {"imported"}),
        ("version: 1\n", "mechanism: 'traced.py:g'", {"imported"}),
        ("version: 1\n", "compose: [{command: ./run.sh}, 'traced.py:g']", {"imported"}),
    ],
)
def test_of_a_file_with_a_problem_no_program_is_started(
    dpaudit: Any, traced: Path, head: str, last: str, left: set[str]
) -> None:
    more = f"  - {{name: d, {last}, d1: 0, d2: 1, claim: {{epsilon: 1}}}}\n" if last else ""
    (traced / "a.yaml").write_text(f"{head}audits:\n{_ALL}{more}")
    assert dpaudit("check", "a.yaml").exit_code == 2
    assert traces(traced) == left


def test_the_programs_of_a_sound_file_are_started(dpaudit: Any, traced: Path) -> None:
    (traced / "a.yaml").write_text(f"version: 1\naudits:\n{_ALL}")
    ran = dpaudit("check", "a.yaml")
    assert (ran.exit_code, ran.stdout) == (0, "a.yaml: 3 audits\n"), ran.stderr
    assert traces(traced) == {"started", "imported"}
