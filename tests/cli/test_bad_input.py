"""Whatever is wrong: one clear line with the remedy, exit code 2 or 3, no traceback."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from dpaudit.cli.commands import cli

MECHANISMS = """
import os

number = 3

def laplace(x, rng):
    return x + rng.laplace()

def cyclic(x):
    output = [x]
    output.append(output)
    return output

def raises(x):
    raise ValueError("needs a list")

async def waits(x):
    return x

def objects(x):
    return object()

def changes(rows):
    rows.append(1)
    return len(rows)

def make():
    class Local:
        def __call__(self, x):
            return x
    return Local()

class Unpicklable:
    def __reduce__(self):
        raise TypeError("no way out")

def unpicklable():
    return Unpicklable()

def dies(x):
    os._exit(7)
"""
GOOD = "{name: one, mechanism: 'm.py:laplace', d1: 0, d2: 1, claim: {epsilon: 1}"
BLANK, EMPTY = "' '", "''"
INPUTS = ("--d1", "0", "--d2", "1")
CLAIM = ("--epsilon", "1")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory that holds the mechanisms."""
    (tmp_path / "m.py").write_text(MECHANISMS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def one_line(result: Any) -> str:
    """Return the only line on stderr, which is the message."""
    assert "Traceback" not in result.output
    lines = result.stderr.splitlines()
    assert len(lines) == 1, result.stderr
    return str(lines[0])


LAPLACE = ("m.py:laplace", *INPUTS, *CLAIM)
# A request, the code that it is refused with, and what the message names.
USAGE: list[tuple[tuple[str, ...], str, str]] = [
    ((*LAPLACE, "--python", "./m.pi"), "program-not-found", "Did you mean 'm.py'?"),
    ((*LAPLACE, "--samples", "1e30"), "option-invalid", "samples=1.00e+30"),
    ((*LAPLACE, "--samples", "1e999999999"), "option-invalid", "'1e999999999'"),
    ((*LAPLACE, "--samples", "99"), "option-invalid", "samples=99"),
    ((*LAPLACE, "--confidence", "0"), "option-invalid", "confidence=0"),
    ((*LAPLACE, "--workers", "0"), "option-invalid", "workers=0"),
    ((*LAPLACE, "--time", "soon"), "option-invalid", "30s"),
    (("m.py:laplace", "--d1", "[1", "--d2", "1", *CLAIM), "yaml-invalid", "--d1"),
    (("m.py:laplace", "--d1", "@x.csv", "--d2", "1", *CLAIM), "file-not-found", "x.csv"),
    (("m.py:laplace", "--d1", "0", *CLAIM), "option-missing", "--d2"),
    (("n.py:laplace", *INPUTS, *CLAIM, "--isolate"), "module-not-found", "There is: m.py."),
    (
        ("m.py:laplace", "--d1", "[1, 2]", "--d2", "[3, 4]", *CLAIM, "--adjacency", "replace"),
        "pair-not-neighbours",
        "2 rows",
    ),
]
# The same of mechanisms and claims.
NAMED: list[tuple[tuple[str, ...], str]] = [
    (("nothing_here:f", *INPUTS, *CLAIM), "'nothing_here'"),
    (("no.py:f", *INPUTS, *CLAIM), "no.py"),
    (("m.py:laplaze", *INPUTS, *CLAIM), "Did you mean 'laplace'?"),
    (("m.py:number", *INPUTS, *CLAIM), "type int"),
    (("m.py:waits", *INPUTS, *CLAIM), "asyncio.run"),
    (("laplace", *INPUTS, *CLAIM), "laplace"),
    (("m", *INPUTS, *CLAIM), "target 'm' is not an import path"),
    (("mechanisms.laplace",), "'mechanisms.laplace' is not an import path"),
    (("mechanisms",), "'mechanisms' is not an import path"),
    (("mechanisms.laplase:laplace", *INPUTS, *CLAIM), "Did you mean 'laplace'?"),
    ((*LAPLACE, "--mu", "1"), "--mu or --sigma"),
    (("m.py:laplace", *INPUTS, "--mu", "1", "--sigma", "1"), "sigma"),
    ((*LAPLACE, "--param", "scale=1"), "'scale'"),
    (
        ("m.py:laplace", "--d1", "import:m:unpicklable", "--d2", "1", *CLAIM, "--workers", "2"),
        "workers=1",
    ),
]


def test_requests_that_cannot_be_carried_out(refused: Any) -> None:
    for words, code, named in USAGE:
        found, line = refused("run", *words)
        assert found == code, words
        assert named in line
    for words, named in NAMED:
        _, line = refused("run", *words)
        assert named in line


def test_what_is_not_utf_8(refused: Any) -> None:
    Path("a.csv").write_text("x\n1\n")
    for kind in ("json", "csv", "yaml"):
        Path(f"u.{kind}").write_bytes(b"\xff\xfe")
        words = ("run", "m.py:laplace", "--d1", f"@u.{kind}", "--d2", "1", *CLAIM)
        assert refused(*words)[0] == "file-unreadable"
    assert refused("run", "u.yaml")[0] == "file-unreadable"
    assert refused("bound", "u.csv", "a.csv", *CLAIM)[0] == "file-unreadable"
    assert refused("report", "u.csv")[0] == "file-malformed"


@pytest.mark.parametrize(
    "words",
    [
        ("run", "shut/m.py:laplace", *INPUTS, *CLAIM),
        ("run", "m.py:laplace", *INPUTS, *CLAIM, "--post-process", "shut/m.py:laplace"),
        ("run", "m.py:laplace", "--d1", "@shut/a.csv", "--d2", "1", *CLAIM),
        ("run", "shut/a.yaml"),
        ("bound", "shut/a.csv", "a.csv", *CLAIM),
        ("report", "shut/a.json"),
    ],
)
def test_what_may_not_be_read(monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]) -> None:
    Path("shut").mkdir()
    look, allows = os.stat, os.access

    def refuse(path: Any, *more: Any, **named: Any) -> os.stat_result:
        if "shut/" in os.fsdecode(path if not isinstance(path, int) else ""):
            raise PermissionError(13, "Permission denied", os.fsdecode(path))
        return look(path, *more, **named)

    monkeypatch.setattr(os, "stat", refuse)
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "shut")
    result = CliRunner().invoke(cli, list(words))
    monkeypatch.setattr(os, "access", allows)
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert ": Permission denied" in result.stderr
    assert "shut" in result.stderr
    assert "Errno" not in result.stderr


def test_a_folder_is_no_request(refused: Any, folder: Path) -> None:
    (folder / "batches").mkdir()
    assert refused("run", "batches")[0] == "wrong-kind-of-file"
    (folder / "batches" / "b.yaml").touch()
    for words in (("batches",), (".", "a.yaml")):
        code, line = refused("run", *words)
        assert code == "wrong-kind-of-file"
        assert "batches/b.yaml" in line


def test_a_missing_file_and_the_nearest_one(refused: Any, folder: Path) -> None:
    (folder / "batches").mkdir()
    (folder / "batches" / "audits.yaml").touch()
    code, line = refused("run", "batches/audit.yaml")
    assert code == "file-not-found"
    assert "Did you mean 'audits.yaml'?" in line


# The text of a file, the code that it is refused with, and what the message names.
FILES = [
    (f"version: 1\naudits:\n  - {GOOD}, samples: 1e30}}\n", "option-invalid", "samples=1.00e+30"),
    (
        f"version: 1\naudits:\n  - {GOOD}, samples: 1{'0' * 400}}}\n",
        "option-invalid",
        "samples=1.00e+400",
    ),
    (f"version: 1\naudits:\n  - {GOOD}, sampels: 9}}\n", "key-unknown", "'samples'"),
    (f"version: 1\naudits:\n  - {GOOD}}}\n  - {GOOD}}}\n", "name-not-unique", "'one'"),
    ("version: 1\naudits: !!python/object/apply:os.getcwd []\n", "value-refused", "!!python"),
    ("version: [1\n", "yaml-invalid", ""),
    (f"version: 9\naudits:\n  - {GOOD}}}\n", "version-unknown", "version=9"),
    ("version: 1\n", "configuration-shape", "audits"),
    (f"version: 1\naudits:\n  - {GOOD.replace('one', BLANK)}}}\n", "option-invalid", "name=' '"),
    (f"version: 1\naudits:\n  - {GOOD.replace('one', EMPTY)}}}\n", "option-invalid", "name=''"),
]


def test_files_that_are_not_valid(refused: Any, folder: Path) -> None:
    for text, code, named in FILES:
        (folder / "audits.yaml").write_text(text)
        found, line = refused("run", "audits.yaml")
        assert found == code, text
        assert line.startswith("error: audits.yaml")
        assert named in line


def test_mechanisms_that_cannot_be_audited(dpaudit: Any) -> None:
    # In this process os._exit would end the tests; in a worker it is the mechanism's failure.
    Path("careful.py").write_text(
        "import multiprocessing, os\n"
        "def dies(x):\n"
        "    if multiprocessing.parent_process() is not None: os._exit(7)\n"
        "    return x\n"
    )
    requests: dict[tuple[str, ...], str] = {
        ("m.py:cyclic",): "output-too-large",
        ("m.py:objects",): "output-unsupported",
        ("m.py:raises", "--d1", "[0]", "--d2", "[1]"): "",
        ("m.py:changes", "--d1", "[1]", "--d2", "[1, 2]"): "",
        ("careful.py:dies", "--workers", "2"): "",
    }
    for words, code in requests.items():
        inputs = () if "--d1" in words else INPUTS
        result = dpaudit("run", *words, *inputs, *CLAIM, "--json", "result.json")
        assert result.exit_code == 3, result.output
        assert "Traceback" not in result.output
        assert result.stdout.startswith("ERROR ")
        (audit,) = json.loads(Path("result.json").read_text("utf-8"))["audits"]
        assert audit["ending"]["code"] == code or (not code and audit["ending"]["code"])


ALWAYS = {  # the call, the type of the inputs, and the values that the error names
    "param of zero": ("scaled", ("--param", "epsilon=0"), INPUTS,
                      ["ZeroDivisionError", "(always.py:2)", "epsilon=0", "d1"]),
    "param of text": ("scaled", ("--param", "epsilon='1'"), INPUTS,
                      ["TypeError", "(always.py:2)", "epsilon='1'", "d1"]),
    "inputs of two types": ("scaled", ("--param", "epsilon='1'"), ("--d1", "1", "--d2", "null"),
                            ["TypeError", "(always.py:2)", "epsilon='1'"]),
    "init": ("Scaled", ("--init", "[0]"), INPUTS,
             ["ZeroDivisionError", "(always.py:9)", "init (0)", "d1"]),
    "code": ("broken", (), INPUTS, ["NameError", "(always.py:4)", "the mechanism"]),
}  # fmt: skip


@pytest.mark.parametrize("name", ALWAYS)
@pytest.mark.parametrize("command", ["run", "trace"])
def test_an_exception_of_every_draw_is_named_with_what_may_cause_it(
    name: str, command: str
) -> None:
    (Path.cwd() / "always.py").write_text(
        "def scaled(x, rng, epsilon=1.0):\n"
        "    return 1 / epsilon + rng.laplace()\n"
        "def broken(x):\n"
        "    return undefined(x)\n"
        "class Scaled:\n"
        "    def __init__(self, epsilon):\n"
        "        self.epsilon = epsilon\n"
        "    def __call__(self, x, rng):\n"
        "        return 1 / self.epsilon + rng.laplace()\n"
    )
    called, options, inputs, named = ALWAYS[name]
    result = CliRunner().invoke(cli, [command, f"always.py:{called}", *options, *inputs, *CLAIM])
    said = " ".join(result.stdout.split()).partition(" claim ")[0]
    assert [one for one in named if one not in said] == []
    assert ("d1" in said) is (name != "code")


def test_what_is_only_warned_about(dpaudit: Any) -> None:
    words = ("--d1", "0", "--d2", "1", "--adjacency", "add-remove")
    result = dpaudit("run", "m.py:laplace", *words, *CLAIM, "--samples", "2000")
    assert result.exit_code == 0
    assert "adjacency add-remove unchecked" in " ".join(result.stdout.split())


def test_inputs_of_two_forms_are_no_neighbours(refused: Any) -> None:
    words = ("--d1", "[1, 2]", "--d2", '{"a": 1}', "--adjacency", "add-remove")
    code, line = refused("run", "m.py:laplace", *words, *CLAIM, "--samples", "2000")
    assert code == "pair-not-neighbours"
    assert "d1 has rows, and d2 = {'a': 1} has none" in line


def test_one_audit_that_cannot_be_run_does_not_lose_the_others(dpaudit: Any, folder: Path) -> None:
    audits = ["m.py:laplace", "m.py:nothing", "m.py:raises", "m.py:laplace"]
    lines = [
        f"  - {{name: a{place}, mechanism: '{one}', d1: 0, d2: 1, claim: {{epsilon: {place}}}}}"
        for place, one in enumerate(audits)
    ]
    (folder / "all.yaml").write_text("\n".join(["version: 1", "audits:", *lines]))
    result = dpaudit("run", "all.yaml", "--samples", "5000", "--quiet")
    assert result.exit_code == 2
    rows, _, summary = result.stdout.partition("\n\n")
    verdicts = [line.split("  ")[0] for line in rows.splitlines() if line[0] != " "]
    assert verdicts == ["VIOLATION", "ERROR", "ERROR", "NO VIOLATION FOUND"]
    assert summary.startswith("4 audits")
