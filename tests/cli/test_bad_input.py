"""Whatever is wrong: one clear line with the remedy, exit code 2 or 3, no traceback."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

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


def run(*words: str) -> Result:
    return CliRunner().invoke(cli, ["run", *words])


def one_line(result: Result) -> str:
    """Return the only line on stderr, which is the message."""
    assert "Traceback" not in result.output
    lines = result.stderr.splitlines()
    assert len(lines) == 1, result.stderr
    return lines[0]


USAGE: dict[str, tuple[tuple[str, ...], str]] = {
    "missing module": (("nothing_here:f", *INPUTS, *CLAIM), "no module 'nothing_here'"),
    "missing file": (("no.py:f", *INPUTS, *CLAIM), "no.py"),
    "missing attribute": (("m.py:laplaze", *INPUTS, *CLAIM), "Did you mean 'laplace'?"),
    "not callable": (("m.py:number", *INPUTS, *CLAIM), "is of type int, which cannot be called"),
    "async": (("m.py:waits", *INPUTS, *CLAIM), "asyncio.run"),
    "no path": (("laplace", *INPUTS, *CLAIM), "laplace"),
    "a module": (("m", *INPUTS, *CLAIM), "is a module; name what is in it: m:NAME. There is: lap"),
    "a module, no inputs": (("mechanisms.laplace",), "mechanisms.laplace:NAME. There is: laplace,"),
    "a package": (("mechanisms",), "mechanisms.MODULE:NAME. There is: causes, dependence, "),
    "no such module": (("mechanisms.laplase",), "package 'mechanisms'. Did you mean 'laplace'?"),
    "missing Python": (
        ("m.py:laplace", *INPUTS, *CLAIM, "--python", "./m.pi"),
        "there is no program './m.pi'. Did you mean 'm.py'?",
    ),
    "limits without a process": (
        ("m.py:laplace", *INPUTS, *CLAIM, "--memory-limit", "1GB"),
        "give isolate: true (--isolate) as well",
    ),
    "many samples": (
        ("m.py:laplace", *INPUTS, *CLAIM, "--samples", "1e30"),
        "samples=1.00e+30 is more than can be counted exactly; give at most 1,000,000,000,000,000",
    ),
    "endless samples": (
        ("m.py:laplace", *INPUTS, *CLAIM, "--samples", "1e999999999"),
        "--samples '1e999999999' is too large",
    ),
    "two claims": (("m.py:laplace", *INPUTS, *CLAIM, "--mu", "1"), "it takes mu or sigma"),
    "two spellings": (("m.py:laplace", *INPUTS, "--mu", "1", "--sigma", "1"), "give one of them"),
    "unparsable dataset": (("m.py:laplace", "--d1", "[1", "--d2", "1", *CLAIM), "--d1"),
    "no such dataset": (("m.py:laplace", "--d1", "@x.csv", "--d2", "1", *CLAIM), "no such file"),
    "no d2": (("m.py:laplace", "--d1", "0", *CLAIM), "--d2 is missing"),
    "negative ε": (("m.py:laplace", *INPUTS, "--epsilon", "-1"), "at least 0"),
    "NaN ε": (("m.py:laplace", *INPUTS, "--epsilon", "nan"), "finite number"),
    "infinite ε": (("m.py:laplace", *INPUTS, "--epsilon", "inf"), "finite number"),
    "δ = 1": (("m.py:laplace", *INPUTS, *CLAIM, "--delta", "1"), "must lie in [0, 1)"),
    "δ < 0": (("m.py:laplace", *INPUTS, *CLAIM, "--delta", "-0.1"), "must lie in [0, 1)"),
    "confidence 0": (("m.py:laplace", *INPUTS, *CLAIM, "--confidence", "0"), "from 0.5 to below 1"),
    "confidence 1": (("m.py:laplace", *INPUTS, *CLAIM, "--confidence", "1"), "from 0.5 to below 1"),
    "few samples": (("m.py:laplace", *INPUTS, *CLAIM, "--samples", "99"), "at least 100"),
    "no workers": (("m.py:laplace", *INPUTS, *CLAIM, "--workers", "0"), "at least 1"),
    "bad time": (("m.py:laplace", *INPUTS, *CLAIM, "--time", "soon"), "30s"),
    "unknown parameter": (("m.py:laplace", *INPUTS, *CLAIM, "--param", "scale=1"), "'scale'"),
    "unpicklable": (
        ("m.py:laplace", "--d1", "import:m:unpicklable", "--d2", "1", *CLAIM, "--workers", "2"),
        "workers=1",
    ),
    "contradicted adjacency": (
        ("m.py:laplace", "--d1", "[1, 2]", "--d2", "[3, 4]", *CLAIM, "--adjacency", "replace"),
        "differ in 2 rows",
    ),
}


@pytest.mark.parametrize("name", USAGE)
def test_requests_that_cannot_be_carried_out(name: str) -> None:
    words, said = USAGE[name]
    result = run(*words)
    assert result.exit_code == 2, result.output
    line = one_line(result)
    assert line.startswith("error: ")
    assert said in line


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("run", "u.yaml"), "u.yaml: cannot be read: it is not text in UTF-8; save it as UTF-8"),
        (("bound", "u.csv", "a.csv", *CLAIM), "u.csv cannot be read: it is not text in UTF-8"),
        (("report", "u.csv"), "it is not text; name a file that dpaudit run --json"),
        *(
            (("run", "m.py:laplace", "--d1", f"@u.{kind}", "--d2", "1", *CLAIM),
             f"dataset @u.{kind} cannot be read: it is not text in UTF-8; save it as UTF-8")
            for kind in ("json", "csv", "yaml")
        ),
    ],
)  # fmt: skip
def test_what_is_not_utf_8(words: tuple[str, ...], said: str) -> None:
    Path("a.csv").write_text("x\n1\n")
    for kind in ("json", "csv", "yaml"):
        Path(f"u.{kind}").write_bytes(b"\xff\xfe")
    result = CliRunner().invoke(cli, list(words))
    assert result.exit_code == 2
    assert said in result.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("run", "shut/m.py:laplace", *INPUTS, *CLAIM),
        ("run", "m.py:laplace", *INPUTS, *CLAIM, "--post-process", "shut/m.py:laplace"),
        ("run", "m.py:laplace", "--d1", "@shut/a.csv", "--d2", "1", *CLAIM),
        ("run", "shut/a.yaml"),
        ("bound", "shut/a.csv", "a.csv", *CLAIM),
        ("report", "shut/a.json"),
        ("list", "mechanisms", "shut/m.py"),
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
    assert "cannot be read: Permission denied" in result.stderr
    assert "shut" in result.stderr
    assert "Errno" not in result.stderr


def test_a_folder_is_no_request(folder: Path) -> None:
    (folder / "batches").mkdir()
    remedy = "give a .yaml file, or the import path of a mechanism, package.module:function"
    assert f"'batches' is a folder without configuration files; {remedy}" in refused("batches")
    (folder / "batches" / "b.yaml").touch()
    assert "'batches' is a folder; name a file in it, e.g. batches/b.yaml" in refused("batches")
    assert "'.' is a folder; name a file in it, e.g. batches/b.yaml" in refused(".", "a.yaml")


def test_a_missing_file_and_the_nearest_one(folder: Path) -> None:
    (folder / "batches").mkdir()
    (folder / "batches" / "audits.yaml").touch()
    assert "'batches/audit.yaml'. Did you mean 'audits.yaml'?" in refused("batches/audit.yaml")
    assert "'batch/audits.yaml'. Did you mean 'batches'?" in refused("batch/audits.yaml")


def refused(*words: str) -> str:
    result = run(*words)
    assert result.exit_code == 2, result.output
    return one_line(result)


FILES: dict[str, tuple[str, str]] = {
    "many samples": (f"version: 1\naudits:\n  - {GOOD}, samples: 1e30}}\n", "give at most 1,000"),
    "more samples": (
        f"version: 1\naudits:\n  - {GOOD}, samples: 1{'0' * 400}}}\n",
        "samples=1.00e+400 is more than can be counted",
    ),
    "unknown key": (f"version: 1\naudits:\n  - {GOOD}, sampels: 9}}\n", "Did you mean 'samples'?"),
    "duplicate name": (f"version: 1\naudits:\n  - {GOOD}}}\n  - {GOOD}}}\n", "used twice"),
    "Python tag": ("version: 1\naudits: !!python/object/apply:os.getcwd []\n", "refused"),
    "not YAML": ("version: [1\n", "not valid YAML"),
    "other version": (f"version: 9\naudits:\n  - {GOOD}}}\n", "version"),
    "no audits": ("version: 1\n", "audits"),
    "no name": (
        f"version: 1\naudits:\n  - {GOOD.replace('one', BLANK)}}}\n",
        "audits.yaml:3: name=' ' says nothing; give the audit a name, or leave it out",
    ),
    "empty name": (
        f"version: 1\naudits:\n  - {GOOD.replace('one', EMPTY)}}}\n",
        "name='' says nothing",
    ),
    "bad claim": (f"version: 1\naudits:\n  - {GOOD[:-2]}-1}}}}\n", "at least 0"),
}


@pytest.mark.parametrize("name", FILES)
def test_files_that_are_not_valid(name: str, folder: Path) -> None:
    text, said = FILES[name]
    (folder / "audits.yaml").write_text(text)
    result = run("audits.yaml")
    assert result.exit_code == 2, result.output
    line = one_line(result)
    assert "audits.yaml" in line
    assert said in line


ERRORS = {
    "cyclic": "outputs that contain themselves",
    "raises": "the first one ValueError: needs a list",
    "objects": "a value of type object",
    "dies": "a worker process died",
}


@pytest.mark.parametrize("name", ERRORS)
def test_mechanisms_that_cannot_be_audited(name: str) -> None:
    if name == "dies":
        # In this process it would end the tests; in a worker it is the mechanism's failure.
        (Path.cwd() / "careful.py").write_text(
            "import multiprocessing, os\n"
            "def dies(x):\n"
            "    if multiprocessing.parent_process() is not None: os._exit(7)\n"
            "    return x\n"
        )
        result = run("careful.py:dies", *INPUTS, *CLAIM, "--workers", "2")
    else:
        result = run(f"m.py:{name}", *INPUTS, *CLAIM)
    assert result.exit_code == 3, result.output
    assert "Traceback" not in result.output
    said = " ".join(result.stdout.split())
    assert said.startswith("ERROR ")
    assert ERRORS[name] in said


ALWAYS = {  # the call, the type of the inputs, and the values that the error names
    "param of zero": ("scaled", ("--param", "epsilon=0"), INPUTS,
                      ["ZeroDivisionError", "(always.py:2)", "epsilon=0", "d1"]),
    "param of text": ("scaled", ("--param", "epsilon='1'"), INPUTS,
                      ["TypeError", "(always.py:2)", "epsilon='1'", "d1"]),
    "inputs of two types": ("scaled", ("--param", "epsilon='1'"), ("--d1", "1", "--d2", "null"),
                            ["TypeError", "(always.py:2)", "epsilon='1'"]),
    "init": ("Scaled", ("--init", "[0]"), INPUTS,
             ["ZeroDivisionError", "(always.py:9)", "init (0)", "d1"]),
    "code": ("broken", (), INPUTS, ["NameError", "(always.py:4)", "code of the mechanism"]),
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


def test_a_changed_input_is_reported() -> None:
    result = run("m.py:changes", "--d1", "[1]", "--d2", "[1, 2]", *CLAIM)
    assert result.exit_code == 3
    assert "changes its input d1" in " ".join(result.stdout.split())


def test_what_is_only_warned_about() -> None:
    words = ("--d1", "0", "--d2", "1", "--adjacency", "add-remove")
    result = run("m.py:laplace", *words, *CLAIM, "--samples", "2000")
    assert result.exit_code == 0
    assert "adjacency add-remove unchecked" in " ".join(result.stdout.split())


def test_inputs_of_two_forms_are_no_neighbours() -> None:
    words = ("--d1", "[1, 2]", "--d2", '{"a": 1}', "--adjacency", "add-remove")
    result = run("m.py:laplace", *words, *CLAIM, "--samples", "2000")
    assert result.exit_code == 2
    said = " ".join(result.stderr.split())
    assert "d1 has rows, and d2 = {'a': 1} has none: they are no neighbours by add-remove" in said


def test_one_audit_that_cannot_be_run_does_not_lose_the_others(folder: Path) -> None:
    audits = ["m.py:laplace", "m.py:nothing", "m.py:raises", "m.py:laplace"]
    lines = [
        f"  - {{name: a{place}, mechanism: '{one}', d1: 0, d2: 1, claim: {{epsilon: {place}}}}}"
        for place, one in enumerate(audits)
    ]
    (folder / "all.yaml").write_text("\n".join(["version: 1", "audits:", *lines]))
    result = run("all.yaml", "--samples", "5000", "--quiet")
    assert result.exit_code == 2
    rows, _, summary = result.stdout.partition("\n\n")
    verdicts = [line.split("  ")[0] for line in rows.splitlines() if line[0] != " "]
    assert verdicts == ["VIOLATION", "ERROR", "ERROR", "NO VIOLATION FOUND"]
    assert summary.startswith("4 audits")
