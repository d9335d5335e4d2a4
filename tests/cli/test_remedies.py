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


REFUSED: dict[str, tuple[tuple[str, ...], str]] = {
    "a generator": (("m.py:generator", *ASKED), "return list(mechanism(dataset))"),
    "a method": (
        ("m.py:GaussCount.release", *ASKED),
        "use m.py:GaussCount --call release (YAML: mechanism: m.py:GaussCount, call: release)",
    ),
    "a method, isolated": (
        ("m.py:GaussCount.release", *ASKED, "--isolate"),
        "use m.py:GaussCount --call release",
    ),
    "a batch parameter": (
        ("m.py:counted", *ASKED),
        "--param n=VALUE (YAML: params: {n: VALUE}), or --batch-arg n (batch_arg: n) if it sets",
    ),
    "a factory's parameter": (
        ("m.py:make", *ASKED, "--factory", "--param", "scale=2"),
        "missing 1 required positional argument: 'scale'; params are for calls of what it makes, "
        "so give it --init '{scale: 2}' (YAML: init: {scale: 2})",
    ),
    "a factory's parameter, isolated": (
        ("m.py:make", *ASKED, "--factory", "--param", "scale=2", "--isolate"),
        "so give it --init '{scale: 2}'",
    ),
    "a factory's optional parameter": (
        ("m.py:make_default", *ASKED, "--factory", "--param", "scale=2"),
        "has no parameter 'scale'. Besides the dataset it takes: rng. For what makes it, give "
        "--init '{scale: 2}'",
    ),
    "a constructor's parameter": (
        ("m.py:GaussCount", *ASKED, "--call", "release", "--param", "scale=2"),
        "For what makes it, give --init '{scale: 2}'",
    ),
    "a factory without arguments": (
        ("m.py:make", *ASKED, "--factory"),
        "give its arguments with --init '[…]' (YAML: init: […])",
    ),
    "two colons": (("m.py::laplace", *ASKED), "write one colon, m.py:laplace"),
    "a test's name": (
        ("m.py::GaussCount::release", *ASKED),
        "write one colon, m.py:GaussCount.release",
    ),
    "JSON": (("batch.json",), "configuration files are YAML, so name a file of audits batch.yaml"),
    "TOML": (("batch.toml",), "configuration files are YAML"),
    "a file": (
        ("m.py:laplace", "--d1", "people.csv", "--d2", "1", "--epsilon", "1"),
        "--d1: 'people.csv' is the name of a file; did you mean @people.csv?",
    ),
    "two words": (("m.py", "laplace", *ASKED), "Did you mean 'm.py:laplace'?"),
    "a call": (("m.py:laplace()", *ASKED), "name the function alone, without a call, m.py:laplace"),
    "a slash": (("m/laplace", *ASKED), "write m.py:laplace"),
    "no ending": (("./m", *ASKED), "write ./m.py:NAME"),
    "another case": (("AUDITS.yaml",), "'AUDITS.yaml'. Did you mean 'audits.yaml'?"),
    "no quotes": (
        ("m.py:laplace", "--d1", "[1,", "2]", "--d2", "1", "--epsilon", "1"),
        "put quotes around a value with spaces",
    ),
    "an open bracket": (
        ("m.py:laplace", "--d1", "[1", "--d2", "1", "--epsilon", "1"),
        "--d1: '[1' begins with '[' and lacks ']' at its end: add it",
    ),
    "a percentage": (
        ("m.py:laplace", *ASKED, "--confidence", "99%"),
        "'--confidence': '99%' is no number; give 0.99, which is 99 %",
    ),
    "a word for a number": (
        ("m.py:laplace", *ASKED[:4], "--epsilon", "abc"),
        "'--epsilon': 'abc' is no number; give one such as 0.5",
    ),
    "a word and %": (
        ("m.py:laplace", *ASKED, "--confidence", "x%"),
        "'x%' is no number; give one such as 0.99",
    ),
    "two definitions": (
        ("m.py:laplace", *ASKED, "--mu", "1"),
        "it takes mu or sigma. Leave out 'epsilon', or 'mu'.",
    ),
    "two definitions, one by another name": (
        ("m.py:laplace", *ASKED, "--sigma", "1"),
        "it takes mu or sigma. Leave out 'epsilon', or 'sigma'.",
    ),
    "a class that needs more": (
        ("m.py:Scaled", *ASKED),
        "with --call METHOD (YAML: call); give its arguments with --init '[…]' (YAML: init: […]). "
        "There is: release.",
    ),
    "a class that needs a method": (
        ("m.py:GaussCount", *ASKED),
        "with --call METHOD (YAML: call). There is: release.",
    ),
    "a file without its ending": (
        ("m.py:laplace", "--d1", "@people", "--d2", "1", "--epsilon", "1"),
        "Did you mean 'people.csv'?",
    ),
    "a file of text": (
        ("notes.md",),
        "'notes.md' is neither a Python nor a YAML file; a mech",
    ),
    "a method of a function": (
        ("m.py:laplace", *ASKED, "--call", "foo"),
        "m.py:laplace is a function, which has no methods; leave out call",
    ),
    "a method of a class without any": (
        ("m.py:Empty", *ASKED, "--call", "foo"),
        "m.py:Empty has no method 'foo'.\n",
    ),
    "a seed for the generator": (
        ("m.py:laplace", *ASKED, "--param", "rng=3"),
        "leave it out, or give --rng-arg none (YAML: rng_arg: none) if rng means something else",
    ),
    "samples and time": (
        ("m.py:laplace", *ASKED, "--time", "1s"),
        "give either --samples or --time, not both",
    ),
    "many runs": (
        ("m.py:laplace", *ASKED, "--repeat", "200000"),
        "repeat=200,000 is too many: each run is one entry of an output, and an output has at most",
    ),
    "less and more": (("m.py:laplace", *ASKED, "-q", "-v"), "-q (--quiet) asks for less, -v"),
    "a folder for the results": (
        ("m.py:laplace", *ASKED, "--json", "out/"),
        "cannot write out/: this path is a folder; name a file, e.g. out/results.json",
    ),
    "an unknown option": (("m.py:laplace", "--foo"), "there is no option '--foo'. (see"),
    "a slip in an option": (
        ("m.py:laplace", "--epsilom", "1"),
        "there is no option '--epsilom'. Did you mean '--epsilon'? (see",
    ),
    "the start of an option": (("m.py:laplace", "--eps", "1"), "Did you mean '--epsilon'? (see"),
    "a dash short of an option": (
        ("m.py:laplace", "-d1", "0", "--d2", "1"),
        "there is no option '-d'. Names of several letters take two dashes, as --d1.",
    ),
    "Python for data": (
        ("m.py:laplace", "--d1", "@m.py", *ASKED[2:]),
        "known: .json, .yaml, .yml, .csv, .npy.\n",
    ),
    "data by a name that nothing is near": (
        ("m.py:laplace", "--d1", "@nosuch.csv", *ASKED[2:]),
        "there is no such file in {folder}.\n",
    ),
    "nothing": (("", *ASKED), "target '' is not an import path; write package.module:function"),
    "nothing to import": (
        ("m.py:laplace", "--d1", "import:", *ASKED[2:]),
        "target '' is not an import path",
    ),
    "standard input": (("-", *ASKED), "target '-' is not an import path"),
    "a device": (("/dev/zero", *ASKED), "target '/dev/zero' is a device, not a Python file"),
    "a report without a file": (
        ("m.py:laplace", *ASKED, "--report", "junit:"),
        "--report 'junit:' must be FORMAT or FORMAT:FILE, as junit:FILE; known formats:",
    ),
    "a report in an unknown format": (
        ("m.py:laplace", *ASKED, "--report", "pdf:x"),
        "--report 'pdf:x': 'pdf' is no format; known formats:",
    ),
    "no mechanism": (
        ("unnamed.yaml",),
        "unnamed.yaml:3: the audit has no mechanism; give its import",
    ),
    "a factory of nothing": (
        ("m.py:nothing", *ASKED, "--factory"),
        "the factory m.py:nothing returned None, which cannot be called; let it return the mech",
    ),
    "a factory of nothing, isolated": (
        ("m.py:nothing", *ASKED, "--factory", "--isolate"),
        "the factory m.py:nothing returned None, which cannot be called",
    ),
    "no such function, isolated": (
        ("m.py:nosuch", *ASKED, "--isolate"),
        "target 'm.py:nosuch': {folder}/m.py has no 'nosuch'\n",
    ),
    "a generator, isolated": (
        ("m.py:generator", *ASKED, "--isolate"),
        "error: generator is an async or a generator function",
    ),
    "a table that is none": (
        ("m.py:laplace", "--d1", "0", "--d2", "1", "--tradeoff", "[[0,1],"),
        "--tradeoff='[[0,1],' must be a list of pairs, such as [[0, 1], [1, 0]]",
    ),
    "a definition without its parameter": (
        ("m.py:laplace", *ASKED, "--definition", "gaussian"),
        "looks like dpaudit run m.py:laplace --d1 … --d2 … --definition gaussian --mu MU\n",
    ),
    "a definition without one of two": (
        ("m.py:laplace", *ASKED, "--definition", "approximate"),
        "--definition approximate --epsilon 1 --delta 1e-5\n",
    ),
    "an open quote": (
        ("m.py:laplace", "--d1", "@open.csv", *ASKED[2:]),
        "the quotation mark in line 3 is never closed",
    ),
    "a folder for a program": (
        ("m.py:laplace", *ASKED, "--python", "/tmp"),
        "there is no program '/tmp'. That is a folder; name a file.",
    ),
}


ELSEWHERE: dict[str, tuple[tuple[str, ...], str]] = {
    "audits for results": (
        ("report", "audits.yaml"),
        "dpaudit run audits.yaml --json FILE writes their results",
    ),
    "a list of another file": (
        ("list", "mechanisms", "n.py"),
        "there is no file 'n.py'. There is: m.py.",
    ),
    "a list of a function": (
        ("list", "mechanisms", "m.py:laplace"),
        "'m.py:laplace' names a function; give its package, module or file: m.py",
    ),
    "a list of a folder": (
        ("list", "mechanisms", "data/"),
        "'data/' is a folder, but not a package that can be imported from here; give a Pyth",
    ),
}
COMMANDS = {
    **{name: (("run", *words), said) for name, (words, said) in REFUSED.items()},
    **ELSEWHERE,
}


FAILED: dict[str, tuple[tuple[str, ...], str]] = {
    "a factory": (("m.py:make_default",), "give --factory (YAML: factory: true)"),
    "objects of a file": (("m.py:objects",), "the mechanism returns a value of type Empty"),
    "objects of a file, isolated": (
        ("m.py:objects", "--isolate"),
        "the mechanism returns a value of type Empty",
    ),
    "no outputs": (("m.py:forgets",), "returned None for size=1 and was asked for 1 output; did"),
    "no outputs, isolated": (("m.py:forgets", "--isolate"), "did the function forget to return?"),
}


@pytest.mark.parametrize("name", FAILED)
def test_what_went_wrong(dpaudit: Any, name: str) -> None:
    words, said = FAILED[name]
    result = dpaudit("run", *words, *ASKED)
    assert result.exit_code == 3, result.output
    assert said in " ".join(result.stdout.split())


def test_a_table_of_pairs_is_a_claim(dpaudit: Any) -> None:
    words = ("--d1", "0", "--d2", "1", "--samples", "2000", "--tradeoff", "[[0, 1], [1, 0]]")
    result = dpaudit("run", "m.py:laplace", *words)
    assert result.exit_code == 1, result.output
    assert "the given table" in result.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_what_was_meant(dpaudit: Any, name: str) -> None:
    words, said = COMMANDS[name]
    result = dpaudit(*words)
    assert (result.exit_code, result.stdout) == (2, ""), result.output
    assert result.stderr.count("\n") == 1
    assert said.replace("{folder}", str(Path.cwd())) in result.stderr


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
        assert (asked[-1].samples, asked[-1].time) == (samples, time)
    (folder / "b.yaml").write_text(
        f"version: 1\ndefaults: {{samples: 5000}}\naudits:\n  - {audit}, time: 1s}}\n"
    )
    assert dpaudit("run", "b.yaml").exit_code == 0
    (folder / "b.yaml").write_text(f"version: 1\naudits:\n  - {audit}, time: 1s, samples: 5000}}\n")
    result = dpaudit("run", "b.yaml")
    assert result.exit_code == 2
    assert result.stderr.startswith("error: b.yaml:3: give either samples or time, not both")


def test_a_parameter_named_rng_that_takes_something_else(dpaudit: Any, asked: Any) -> None:
    words = ("m.py:laplace", *ASKED, "--param", "rng=3", "--rng-arg", "none")
    assert dpaudit("run", *words).exit_code == 0
    assert asked[0].target.params == {"rng": 3}


def test_no_batch_is_offered_for_what_is_no_number_of_outputs(dpaudit: Any) -> None:
    assert "--batch-arg" not in dpaudit("run", "m.py:scaled", *ASKED).stderr


def test_an_iterator_is_to_be_made_a_list(dpaudit: Any) -> None:
    result = dpaudit("run", "m.py:iterator", *ASKED)
    assert result.exit_code == 3
    assert "give --post-process builtins:list" in " ".join(result.stdout.split())


def test_a_text_that_is_also_a_file_can_still_be_meant(dpaudit: Any, asked: Any) -> None:
    words = ("m.py:laplace", "--d1", '"people.csv"', "--d2", "1", "--epsilon", "1")
    assert dpaudit("run", *words).exit_code == 0
    assert asked[0].pairs[0].d1 == "people.csv"
    more = ("--param", "where=people.csv")  # no dataset, and @ has no meaning there
    assert dpaudit("run", *words, *more).exit_code == 0
    assert asked[1].target.params == {"where": "people.csv"}


def test_a_module_of_python_is_never_proposed(dpaudit: Any) -> None:
    for words in (("run", "difflab.laplace:f", *ASKED), ("list", "mechanisms", "difflab")):
        assert "Did you mean" not in dpaudit(*words).stderr
    assert "Did you mean 'mechanisms'?" in dpaudit("list", "mechanisms", "mechanism").stderr


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("epsilon", "1", "'epsilon' belongs in claim: {epsilon: 1}"),
        ("mu", "0.5", "'mu' belongs in claim: {mu: 0.5}"),
        ("group", "2", "'group' belongs in claim: {group: 2}"),
        ("tradeoff", "m.py:f", "'tradeoff' belongs in claim: {tradeoff: 'm.py:f'}"),
        ("json", "r.json", "'json' belongs to a run, not to an audit: give --json"),
        (
            "claim",
            "{epsilon: 1, confidence: 0.9}",
            "'confidence' belongs beside claim, not in it",
        ),
    ],
)
@pytest.mark.parametrize("section", ["defaults", "audits"])
def test_keys_in_another_place(
    dpaudit: Any, folder: Path, section: str, key: str, value: str, said: str
) -> None:
    own, shared = (f", {key}: {value}", "") if section == "audits" else ("", f", {key}: {value}")
    (folder / "a.yaml").write_text(
        f"version: 1\ndefaults: {{d1: 0, d2: 1{shared}}}\n"
        f"audits:\n  - {{mechanism: 'm.py:laplace'{own}}}\n"
    )
    result = dpaudit("run", "a.yaml")
    assert result.exit_code == 2
    assert result.stderr == f"error: a.yaml:{2 if section == 'defaults' else 4}: {said}\n"


def test_a_flag_with_two_values(dpaudit: Any, asked: Any) -> None:
    words = ("run", "m.py:laplace", *ASKED)
    for flags, said in (
        (("--epsilon", "2"), "--epsilon is given twice, as 1 and 2; give one of them"),
        (("--d1", "3"), "--d1 is given twice, as 0 and 3"),
        (("-k", "a", "-k", "b"), "-k is given twice, as a and b"),
        (("--param", "a=1", "--param", "a=2"), "--param a is given more than once, as 1 and 2"),
    ):
        result = dpaudit(*words, *flags)
        assert (result.exit_code, asked) == (2, [])
        assert said in result.stderr
        assert result.stderr.count("\n") == 1


def test_a_flag_that_says_the_same_twice_and_one_that_repeats(dpaudit: Any, asked: Any) -> None:
    same = ("--epsilon", "1", "--full", "--full", "--param", "a=1", "--param", "a=1")
    more = ("--param", "b=2", "--attack", "x:a", "--attack", "x:b")
    assert dpaudit("run", "m.py:laplace", *ASKED, *same, *more).exit_code == 0
    assert asked[0].claim.epsilon == 1
    assert asked[0].target.params == {"a": 1, "b": 2}
    assert asked[0].attacks == ("x:a", "x:b")


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


def test_a_key_that_is_given_twice(dpaudit: Any, folder: Path) -> None:
    (folder / "rows.json").write_text(DUPLICATE)
    (folder / "rows.yaml").write_text(DUPLICATE)
    (folder / "draws.jsonl").write_text('{"a": 1, "a": 2}\n')
    (folder / "result.json").write_text('{"version": 1, "version": 1, "audits": []}')
    start = ("run", "m.py:laplace", "--d2", "1", "--epsilon", "1", "--d1")
    for words, said in (
        ((*start, "@rows.json"), "@rows.json: the key 'rows' is given twice"),
        ((*start, "@rows.yaml"), "the key 'rows' is given twice"),
        ((*start, DUPLICATE), "the key 'rows' is given twice"),
        ((*start, "{rows: 1, rows: 2}"), "the key 'rows' is given twice"),
        (("report", "result.json"), "result.json: the results are damaged: the key 'version' is"),
        (("bound", "draws.jsonl", "m.jsonl", "--epsilon", "1"), "line 1: the key 'a' is given twi"),
    ):
        result = dpaudit(*words)
        assert result.exit_code == 2, result.output
        assert said in result.stderr
        assert result.stderr.count("\n") == 1


def test_what_a_path_holds_is_listed_as_targets(dpaudit: Any, folder: Path) -> None:
    result = dpaudit("list", "mechanisms", "m.py")
    assert "m.py:laplace\n" in result.stdout
    package = folder / "specimens_by_path"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "noise.py").write_text("def add(x): return x\n")
    for name in ("specimens_by_path", "specimens_by_path/", "./specimens_by_path"):
        assert dpaudit("list", "mechanisms", name).stdout == "specimens_by_path.noise:add\n"
    name = "specimens_by_path/noise.py"
    assert dpaudit("list", "mechanisms", name).stdout == f"{name}:add\n"


def test_a_long_label_is_set_off() -> None:
    from dpaudit.reports.layout import row

    assert row("D_2 at least", "0.605") == ["  D_2 at least 0.605"]
    assert row("ε at least", "0.605") == ["  ε at least  0.605"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            "report --badge new.json",
            "--badge took 'new.json'; put FILE first: dpaudit report new.json --badge",
        ),
        ("report --badge", "missing argument 'FILE'. (see 'dpaudit report --help')"),
        ("report empty.json", "empty.json: it is empty; name a file that dpaudit run --json wrote"),
        ("report x.html", "x.html: it is no result; name a file that dpaudit run --json wrote"),
        (
            "compare a.json b.json --report foo",
            "--report 'foo' is no format; known formats: text, markdown; to write text to a file "
            "of this name, give text:foo",
        ),
        (
            "search m:f --d1 0",
            "there is no option '--d1'. dpaudit run has --d1. (see 'dpaudit search --help')",
        ),
        (
            "--epsilon 1",
            "there is no option '--epsilon'. dpaudit run has --epsilon. (see 'dpaudit --help')",
        ),
        (
            "explain --epsilon 1",
            "there is no option '--epsilon'. dpaudit explain posterior has --epsilon, for one. "
            "(see 'dpaudit explain --help')",
        ),
        (
            "trace m:f --resume",
            "there is no option '--resume'. dpaudit run has --resume. (see 'dpaudit trace --help')",
        ),
        (
            "search m:f --nowhere 0",
            "there is no option '--nowhere'. (see 'dpaudit search --help')",
        ),
        (
            "run m:f --report pdf",
            "--report 'pdf' is no format; known formats: text, json, junit, markdown, sarif, "
            "github, html; to write text to a file of this name, give text:pdf",
        ),
        (
            "run m:f --expect violatio",
            "invalid value for '--expect': 'violatio' is not one of 'violation', 'pass'. Did you "
            "mean 'violation'? (see 'dpaudit run --help')",
        ),
        (
            "run m:f --report html:x.html,junit:x",
            "--report 'html:x.html,junit:x' names two reports; give --report twice: "
            "--report html:x.html --report junit:x",
        ),
        (
            "run a.yaml --familywise=1",
            "option '--familywise' does not take a value. (see 'dpaudit run --help')",
        ),
        (
            "list .",
            "'.' is a folder; name a file of audits, or the package of mechanisms: dpaudit list "
            "mechanisms PACKAGE (see 'dpaudit list --help')",
        ),
        (
            "list /dev/null",
            "'/dev/null' is a device; name a file of audits, or the package of mechanisms: dpaudit "
            "list mechanisms PACKAGE (see 'dpaudit list --help')",
        ),
        (
            "run null.yaml",
            "null.yaml:3: an empty value must be a mapping with keys such as mechanism and claim",
        ),
    ],
)
def test_what_was_meant_is_said(dpaudit: Any, folder: Path, words: str, said: str) -> None:
    (folder / "empty.json").write_text("\n")
    (folder / "x.html").write_text("<!doctype html>")
    (folder / "null.yaml").write_text("version: 1\naudits:\n  -\n")
    command = [*words.split(), *(ASKED if "m:f" in words else [])]
    ran = dpaudit(*command)
    assert (ran.exit_code, ran.stderr) == (2, f"error: {said}\n")


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
    ran = dpaudit("check", "a.yaml")
    places = ["compose.0", "compose.0.mechanism", *["claim.curve"] * 4]
    ends = ["", "", "", ".gaussian", ".gaussian.sigma", ""]
    for line, wanted in zip(range(4, 10), map(str.__add__, places, ends), strict=True):
        said = f"error: a.yaml:{line}: {wanted} must be filled in: put a value in the place of"
        assert said in ran.stderr
        assert ran.stderr.count(f"a.yaml:{line}: ") == 1
    assert ran.stderr.endswith("\n6 problems\n")
    assert "a.yaml:4: compose.0 must be filled in: " in dpaudit("run", "a.yaml").stderr


def test_help_names_what_an_option_needs_and_what_a_check_starts(dpaudit: Any) -> None:
    of_run = " ".join(dpaudit("run", "--help").stdout.split())
    assert of_run.count("Needs --isolate, --python or --command.") == 2
    of_check = " ".join(dpaudit("check", "--help").stdout.split())
    assert "nothing of a file whose version or shape is wrong" in of_check
    assert "a command has 10 seconds for its first line" in of_check
    assert "crow" not in dpaudit("list", "adjacencies").stdout
