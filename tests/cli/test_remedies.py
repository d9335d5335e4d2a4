"""Requests that are nearly right: the message says what was meant, in words that work."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import click
import pytest

from dpaudit.cli.commands import cli

MECHANISMS = """
import numpy as np

def laplace(x, rng):
    return x + rng.laplace()

def generator(x):
    yield x

def iterator(x):
    return map(float, [x, x])

def counted(x, n):
    return [x] * n

def scaled(x, epsilon):
    return x

def make(scale):
    return lambda x, rng: x + rng.laplace(scale=scale)

def make_default(scale=1):
    return lambda x, rng: x + rng.laplace(scale=scale)

def nothing():
    return None

def forgets(x, size, rng):
    rng.laplace(size=size)

class Empty:
    pass

def objects(x):
    return Empty()

class GaussCount:
    def __init__(self, scale=1.0):
        self.scale = scale

    def release(self, rows, rng):
        return rows + rng.normal(scale=self.scale)

class Scaled(GaussCount):
    def __init__(self, scale):
        self.scale = scale
"""
ASKED = ("--d1", "0", "--d2", "1", "--epsilon", "1", "--samples", "2000")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory that holds mechanisms and data."""
    (tmp_path / "m.py").write_text(MECHANISMS)
    (tmp_path / "people.csv").write_text("1\n2\n")
    (tmp_path / "open.csv").write_text('x\n1\n"2\n3\n')
    (tmp_path / "unnamed.yaml").write_text(
        "version: 1\naudits:\n  - {d1: 0, d2: 1, claim: {epsilon: 1}}\n"
    )
    (tmp_path / "data").mkdir()
    for name in ("audits.yaml", "AUDIT.yml", "notes.md"):
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


LAPLACE = ("m.py:laplace", *ASKED)
# A request, and the remedy that its message names, in words that work.
MEANT: list[tuple[tuple[str, ...], str]] = [
    (("m.py:generator", *ASKED), "list(mechanism(dataset))"),
    (
        ("m.py:GaussCount.release", *ASKED),
        "m.py:GaussCount --call release (YAML: mechanism: m.py:GaussCount, call: release)",
    ),
    (("m.py:GaussCount.release", *ASKED, "--isolate"), "m.py:GaussCount --call release"),
    (
        ("m.py:counted", *ASKED),
        "'n', which has no default; give it with --param, or name it in --rng-arg, --batch-arg",
    ),
    (("m.py:make", *ASKED, "--factory", "--param", "scale=2"), "--init '[…]'"),
    (("m.py:make", *ASKED, "--factory"), "--init '[…]' (YAML: init: […])"),
    (("m.py:Scaled", *ASKED), "There is: release."),
    (("m.py:GaussCount", *ASKED), "call). There is: release."),
    (("m.py:laplace", *ASKED, "--call", "foo"), "leave out --call"),
    (("m.py:Empty", *ASKED, "--call", "foo"), "no method 'foo'.\n"),
    ((*LAPLACE, "--param", "rng=3"), "rng=3 replaces"),
    ((*LAPLACE, "--repeat", "200000"), "repeat=200,000"),
    ((*LAPLACE, "--mu", "1"), "--mu or --sigma."),
    ((*LAPLACE, "--sigma", "1"), "--mu or --sigma."),
    (("notes.md",), "'notes.md'"),
    (("", *ASKED), "target ''"),
    (("m.py:laplace", "--d1", "import:", *ASKED[2:]), "target ''"),
    (("-", *ASKED), "target '-'"),
    (("/dev/zero", *ASKED), "target '/dev/zero' is a device"),
    (("m.py:nothing", *ASKED, "--factory"), "returned None"),
    (("m.py:nothing", *ASKED, "--factory", "--isolate"), "gives None"),
    (("m.py:nosuch", *ASKED, "--isolate"), "{folder}/m.py has no 'nosuch'\n"),
    (
        ("m.py:laplace", "--d1", "0", "--d2", "1", "--tradeoff", "[[0,1],"),
        "--tradeoff='[[0,1],'",
    ),
    # Mistakes that click finds.
    ((*LAPLACE, "--confidence", "99%"), "'99%' must be "),
    (("m.py:laplace", *ASKED[:4], "--epsilon", "abc"), "'abc'"),
    ((*LAPLACE, "--confidence", "x%"), "'x%'"),
    (("m.py:laplace", "--foo"), "'--foo'. (see"),
    (("m.py:laplace", "--epsilom", "1"), "'--epsilom'. Did you mean '--epsilon'? (see"),
    (("m.py:laplace", "--eps", "1"), "Did you mean '--epsilon'? (see"),
    (("m.py:laplace", "-d1", "0", "--d2", "1"), "'-d'. "),
]
# The same, with the code of the error.
CODED: list[tuple[tuple[str, ...], str, str]] = [
    (("run", "batch.json"), "wrong-kind-of-file", "batch.yaml"),
    (("run", "batch.toml"), "wrong-kind-of-file", "'batch.toml'"),
    (("report", "audits.yaml"), "wrong-kind-of-file", "dpaudit run audits.yaml --json FILE"),
    (("run", "AUDITS.yaml"), "file-not-found", "Did you mean 'audits.yaml'?"),
    (("run", "m.py:laplace", "--d1", "@people", *ASKED[2:]), "file-type-unknown", "'people.csv'?"),
    (("run", "m.py:laplace", "--d1", "@nosuch.csv", *ASKED[2:]), "file-not-found", "{folder}.\n"),
    (("run", "m.py:laplace", "--d1", "@m.py", *ASKED[2:]), "file-type-unknown", ".csv, .npy.\n"),
    (("run", "m.py:laplace", "--d1", "@open.csv", *ASKED[2:]), "file-malformed", "line 3"),
    (("run", "m.py:laplace", "--d1", "people.csv", *ASKED[2:]), "value-misread", "@people.csv"),
    (("run", "m.py:laplace", "--d1", "[1,", "2]", *ASKED[2:]), "yaml-invalid", "'[1,'"),
    (("run", *LAPLACE, "--time", "1s"), "options-conflict", "either --samples or --time"),
    (("run", *LAPLACE, "-q", "-v"), "options-conflict", "-q (--quiet)"),
    (("run", *LAPLACE, "--json", "out/"), "cannot-write", "out/results.json"),
    (("run", *LAPLACE, "--report", "junit:"), "report-format-unknown", "'junit:'"),
    (("run", *LAPLACE, "--report", "pdf:x"), "report-format-unknown", "'pdf:x'"),
    (("run", "unnamed.yaml"), "option-missing", "unnamed.yaml:3: "),
    (
        ("run", *LAPLACE, "--definition", "gaussian"),
        "option-missing",
        "--mu is missing; ",
    ),
    (
        ("run", *LAPLACE, "--definition", "approximate"),
        "option-missing",
        "--delta is missing; ",
    ),
    (("run", *LAPLACE, "--python", "/tmp"), "program-not-found", "'/tmp'"),
]


def test_the_remedy_is_named(refused: Any) -> None:
    for words, named in MEANT:
        _, line = refused("run", *words)
        assert named.replace("{folder}", str(Path.cwd())) in line, words
    for words, code, named in CODED:
        found, line = refused(*words)
        assert found == code, words
        assert named.replace("{folder}", str(Path.cwd())) in line, words


def test_a_long_value_is_shortened_in_its_message(refused: Any) -> None:
    long = "[1, 2" * 400
    code, line = refused("run", "m.py:laplace", "--d1", long, *ASKED[2:])
    assert code == "yaml-invalid"
    assert long[:20] in line
    assert len(line) < 400


def test_the_remedy_of_an_audit_without_a_verdict_is_named(dpaudit: Any) -> None:
    failed = {
        ("m.py:make_default",): "factory: true",
        ("m.py:objects",): "type Empty",
        ("m.py:objects", "--isolate"): "type Empty",
        ("m.py:forgets",): "returned NoneType for size=1",
        ("m.py:forgets", "--isolate"): "returned NoneType for size=1",
        ("m.py:iterator",): "builtins:list",
    }
    for words, named in failed.items():
        result = dpaudit("run", *words, *ASKED)
        assert result.exit_code == 3, result.output
        assert named in " ".join(result.stdout.split())


def test_a_table_of_pairs_is_a_claim(dpaudit: Any) -> None:
    words = ("--d1", "0", "--d2", "1", "--samples", "2000", "--tradeoff", "[[0, 1], [1, 0]]")
    result = dpaudit("run", "m.py:laplace", *words)
    assert result.exit_code == 1, result.output
    assert "the given table" in result.stdout


def test_what_the_messages_say_works(dpaudit: Any) -> None:
    for words in (
        ("m.py:GaussCount", "--call", "release"),
        ("m.py:GaussCount", "--call", "release", "--init", "{scale: 2}"),
        ("m.py:counted", "--batch-arg", "n"),
        ("m.py:make", "--factory", "--init", "{scale: 2}"),
        ("m.py:iterator", "--post-process", "builtins:list"),
    ):
        assert dpaudit("run", *words, *ASKED).exit_code in (0, 1)


def test_the_number_of_draws_may_be_said_in_another_way_than_in_the_file(
    dpaudit: Any, folder: Path, asked: Any
) -> None:
    audit = "{mechanism: 'm.py:laplace', d1: 0, d2: 1, claim: {epsilon: 1}"
    for more, flags, samples, time in (
        ("samples: 5000", ("--time", "2s"), 1_000_000, 2.0),
        ("time: 1s", ("--samples", "5000"), 5000, None),
    ):
        (folder / "b.yaml").write_text(f"version: 1\naudits:\n  - {audit}, {more}}}\n")
        assert dpaudit("run", "b.yaml", *flags).exit_code == 0
        assert (asked[-1].sampling.samples, asked[-1].sampling.time) == (samples, time)
    (folder / "b.yaml").write_text(
        f"version: 1\ndefaults: {{samples: 5000}}\naudits:\n  - {audit}, time: 1s}}\n"
    )
    assert dpaudit("run", "b.yaml").exit_code == 0
    (folder / "b.yaml").write_text(f"version: 1\naudits:\n  - {audit}, time: 1s, samples: 5000}}\n")
    result = dpaudit("run", "b.yaml")
    assert result.exit_code == 2
    assert result.code == "options-conflict"
    assert result.stderr.startswith("error: b.yaml:3: ")


def test_a_parameter_named_rng_that_takes_something_else(dpaudit: Any, asked: Any) -> None:
    words = ("m.py:laplace", *ASKED, "--param", "rng=3", "--rng-arg", "none")
    assert dpaudit("run", *words).exit_code == 0
    assert asked[0].target.params == {"rng": 3}


def test_a_text_that_is_also_a_file_can_still_be_meant(dpaudit: Any, asked: Any) -> None:
    words = ("m.py:laplace", "--d1", '"people.csv"', "--d2", "1", "--epsilon", "1")
    assert dpaudit("run", *words).exit_code == 0
    assert asked[0].pairs[0].d1 == "people.csv"
    more = ("--param", "where=people.csv")  # no dataset, and @ has no meaning there
    assert dpaudit("run", *words, *more).exit_code == 0
    assert asked[1].target.params == {"where": "people.csv"}


def test_a_module_of_python_is_never_proposed(dpaudit: Any) -> None:
    assert "Did you mean" not in dpaudit("run", "difflab.laplace:f", *ASKED).stderr


def test_keys_in_another_place(refused: Any, folder: Path) -> None:
    misplaced = {
        "epsilon: 1": "claim: {epsilon: 1}",
        "mu: 0.5": "claim: {mu: 0.5}",
        "group: 2": "claim: {group: 2}",
        "tradeoff: m.py:f": "claim: {tradeoff: 'm.py:f'}",
        "json: r.json": "--json",
        "claim: {epsilon: 1, confidence: 0.9}": "'confidence'",
    }
    for key, named in misplaced.items():
        for own, shared, place in ((f", {key}", "", 4), ("", f", {key}", 2)):
            (folder / "a.yaml").write_text(
                f"version: 1\ndefaults: {{d1: 0, d2: 1{shared}}}\n"
                f"audits:\n  - {{mechanism: 'm.py:laplace'{own}}}\n"
            )
            code, line = refused("run", "a.yaml")
            assert code == "key-misplaced"
            assert line.startswith(f"error: a.yaml:{place}: ")
            assert named in line


def test_a_flag_with_two_values(refused: Any, asked: Any) -> None:
    words = ("run", "m.py:laplace", *ASKED)
    for flags, named in (
        (("--epsilon", "2"), "as 1 and 2"),
        (("--d1", "3"), "as 0 and 3"),
        (("-k", "a", "-k", "b"), "as a and b"),
    ):
        assert (named in refused(*words, *flags)[1], asked) == (True, [])
    assert refused(*words, "--param", "a=1", "--param", "a=2")[0] == "options-conflict"


def test_a_flag_that_says_the_same_twice_and_one_that_repeats(dpaudit: Any, asked: Any) -> None:
    same = (
        "--epsilon",
        "1",
        "--stop",
        "never",
        "--stop",
        "never",
        "--param",
        "a=1",
        "--param",
        "a=1",
    )
    more = ("--param", "b=2", "--attack", "x:a", "--attack", "x:b")
    assert dpaudit("run", "m.py:laplace", *ASKED, *same, *more).exit_code == 0
    assert asked[0].claim.epsilon == 1
    assert asked[0].target.params == {"a": 1, "b": 2}
    assert asked[0].statistics.attacks == ("x:a", "x:b")


def test_every_option_of_every_command_says_one_thing() -> None:
    from dpaudit.cli.options import SingleOption

    for command in _commands(cli):
        for one in command.params:
            takes_one = one.param_type_name == "option" and not one.multiple
            if takes_one and not one.is_flag and not one.count:
                assert isinstance(one, SingleOption), (command.name, one.opts)


def _commands(group: Any) -> list[Any]:
    context = group.make_context("dpaudit", ["--help"], resilient_parsing=True)
    found = []
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        found += _commands(command) if hasattr(command, "list_commands") else [command]
    return found


DUPLICATE = '{"rows": [1], "rows": [2]}'


def test_a_key_that_is_given_twice(refused: Any, folder: Path) -> None:
    (folder / "rows.json").write_text(DUPLICATE)
    (folder / "rows.yaml").write_text(DUPLICATE)
    (folder / "draws.jsonl").write_text('{"a": 1, "a": 2}\n')
    (folder / "result.json").write_text('{"version": 8, "version": 8, "audits": []}')
    start = ("run", "m.py:laplace", "--d2", "1", "--epsilon", "1", "--d1")
    for words, named in (
        ((*start, "@rows.json"), "'rows'"),
        ((*start, "@rows.yaml"), "'rows'"),
        ((*start, DUPLICATE), "'rows'"),
        ((*start, "{rows: 1, rows: 2}"), "'rows'"),
        (("bound", "draws.jsonl", "m.jsonl", "--epsilon", "1"), "the key 'a'"),
    ):
        code, line = refused(*words)
        assert code == "key-twice"
        assert named in line
    assert refused("report", "result.json")[0] == "results-damaged"


def test_a_long_label_is_set_off() -> None:
    from dpaudit.reports.layout import Row

    assert Row("D_2 at least", "0.605").lines() == ["  D_2 at least 0.605"]
    assert Row("ε at least", "0.605").lines() == ["  ε at least  0.605"]


def test_the_command_that_was_meant_is_named(refused: Any, folder: Path) -> None:
    (folder / "empty.json").write_text("\n")
    (folder / "x.html").write_text("<!doctype html>")
    (folder / "null.yaml").write_text("version: 1\naudits:\n  -\n")
    commands: dict[str, tuple[str | None, str]] = {
        "report": (None, "(see 'dpaudit report --help')"),
        "report empty.json": ("file-empty", "empty.json"),
        "report x.html": ("not-results", "x.html"),
        "search m:f --nowhere 0": (None, "'--nowhere'. (see 'dpaudit search --help')"),
        "run m:f --report pdf": ("report-format-unknown", "sarif, github, html"),
        "run m:f --expect violatio": (None, "Did you mean 'violation'?"),
        "run a.yaml --familywise=1": (None, "'--familywise'"),
        "list .": (None, "name a file of audits"),
        "list /dev/null": (None, "name a file of audits"),
        "run null.yaml": ("configuration-shape", "null.yaml:3: "),
    }
    for words, (code, named) in commands.items():
        found, line = refused(*words.split(), *(ASKED if "m:f" in words else []))
        assert found == code, words
        assert named in line


def test_every_choice_of_a_command_says_what_was_meant(dpaudit: Any) -> None:
    with click.Context(cli) as context:
        named = [(name, cli.get_command(context, name)) for name in cli.list_commands(context)]
    choices = 0
    for name, command in named:
        for param in [] if command is None else command.params:
            if not isinstance(param.type, click.Choice):
                continue
            word = str(param.type.choices[-1])
            flag = [param.opts[0]] if isinstance(param, click.Option) else []
            said = dpaudit(name, *flag, word.upper()).stderr
            assert f"Did you mean {word!r}?" in said, said
            choices += 1
    assert choices > 20


@pytest.mark.parametrize("name", ["a\x1b[31mred", "two\nlines", "r\u202eight", "no\u00a0break"])
def test_a_name_is_selected_as_the_command_that_repeats_it_is_printed(
    dpaudit: Any, folder: Path, name: str
) -> None:
    (folder / "a.yaml").write_text(
        "version: 1\ndefaults: {mechanism: 'builtins:abs', d1: 0, d2: 1, claim: {epsilon: 1}, "
        "samples: 1000}\n"
        f"audits: [{{name: {json.dumps(name)}}}, {{name: other}}]\n"
    )
    ran = dpaudit("run", "a.yaml", "-v", "-k", "not other")
    (line,) = (one for one in ran.stdout.splitlines() if one.startswith("  repeat "))
    program, *command = shlex.split(line.removeprefix("  repeat"))
    again = dpaudit(*command)
    assert (program, again.exit_code) == ("dpaudit", ran.exit_code), command
    assert again.stdout.splitlines()[0] == ran.stdout.splitlines()[0]
    assert dpaudit("run", "a.yaml", "-k", f"={command[-1]}").exit_code == ran.exit_code


def test_every_place_to_fill_in_is_called_one(dpaudit: Any, folder: Path) -> None:
    (folder / "a.yaml").write_text(
        "version: 1\ndefaults: {d1: 0, d2: 1, mechanism: 'builtins:abs', claim: {epsilon: 1}}\n"
        "audits:\n"
        "  - {name: a, compose: [FILL_IN, 'builtins:abs']}\n"
        "  - {name: b, compose: [{mechanism: FILL_IN}, 'builtins:abs']}\n"
        "  - {name: c, claim: {epsilon: 1, curve: FILL_IN}}\n"
        "  - {name: d, claim: {epsilon: 1, curve: {gaussian: FILL_IN}}}\n"
        "  - {name: e, claim: {epsilon: 1, curve: {gaussian: {sigma: FILL_IN}}}}\n"
        "  - {name: f, claim: {epsilon: 1, curve: {FILL_IN: {sigma: 1}}}}\n"
    )
    ran = dpaudit("check", "a.yaml", "--debug")
    places = ["compose.0", "compose.0.mechanism", *["claim.curve"] * 4]
    ends = ["", "", "", ".gaussian", ".gaussian.sigma", ""]
    for line, wanted in zip(range(4, 10), map(str.__add__, places, ends), strict=True):
        said = f"error[fill-in-left]: a.yaml:{line}: {wanted} "
        assert said in ran.stderr
        assert ran.stderr.count(f"a.yaml:{line}: ") == 1
    assert ran.stderr.endswith("\n6 problems\n")
    assert dpaudit("run", "a.yaml").code == "fill-in-left"


def test_help_names_the_options_that_limits_need(dpaudit: Any) -> None:
    complete = " ".join(dpaudit("run", "--help-all").stdout.split())
    assert complete.count("Implies --isolate.") == 2
    assert "10 seconds" in " ".join(dpaudit("check", "--help").stdout.split())
    assert "crow" not in dpaudit("list", "adjacencies").stdout
