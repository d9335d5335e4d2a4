"""Messages name each option as the user gave it: as a flag, or as a key of the file."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.result_files import from_json

MECHANISMS = """
def noisy(x, rng): return x + rng.laplace()
def total(rows): return sum(rows)
class Noise:
    def __init__(self, scale): self.scale = scale
    def draw(self, x, rng): return x + self.scale * rng.laplace()
"""
NOISY = "mechanism: m.py:noisy, d1: 0, d2: 1, claim: {epsilon: 1}, samples: 300"
NAMED = "m.py:noisy --d1 0 --d2 1 --epsilon 1"
SPACE = "--space 'list of integer in [0, 9]' --adjacency add-remove"
SEARCH = f"search m.py:noisy {SPACE} --epsilon 1"
RELEASES = f"bisect {NAMED} --package mine --versions 1.0 --found-in 1.0"
CLAIMED = f"{SPACE} --claimed 1"
# Command lines, each with the code of its error, and the flag that its message names.
MISTAKES = f"""
program-not-found | --command: | plan --command nothere --d1 0 --d2 1 --epsilon 1
options-conflict | --command excludes --call | plan --command cat --call f --d1 0 --d2 1 --epsilon 1
attack-not-found | --attack: | plan {NAMED} --attack nothere
parameter-unknown | (--batch-arg) | plan {NAMED} --batch-arg n
options-conflict | --param: | run {NAMED} --param x=1
exact-impossible | --exact | run {NAMED} --exact
name-not-found | --call | sensitivity m.py:total {CLAIMED} --call f
form-impossible | (--as) | run m.py:noisy --d1 '{{a: 1}}' --d2 [1] --epsilon 1 --as numpy
adjacency-invalid | --adjacency user | run {NAMED} --adjacency user
import-path-invalid | --post-process: | run {NAMED} --post-process nothere
mechanism-not-made | --factory | run {NAMED} --isolate --init [1]
option-invalid | --journal='m.py' | run {NAMED} --journal m.py
options-conflict | --inside | {SEARCH} --inside --outside
option-missing | --guesses 1000 100 75 | bound --guesses 100 10 5
options-conflict | --data-arg and as --rng-arg | run {NAMED} --data-arg x --rng-arg x
option-invalid | --init=3 | init m.py:Noise --init 3 --call draw --d1 0 --d2 1 --epsilon 1
option-invalid | --cache m.py | {RELEASES} --cache m.py
wrong-kind-of-file | -k one | run a.yaml:one
option-invalid | -k 'a or b' | run a.yaml -k 'a or b'
"""
TRIED = [tuple(line.split(" | ")) for line in MISTAKES.strip().split("\n")]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "m.py").write_text(MECHANISMS)
    (tmp_path / "a.yaml").write_text(f"version: 1\naudits:\n- {{name: one, {NOISY}}}\n")
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(("code", "named", "line"), TRIED, ids=[one[2] for one in TRIED])
def test_a_mistake_is_named_by_its_flag(refused: Any, code: str, named: str, line: str) -> None:
    found, message = refused(*shlex.split(line))
    assert (found, named in message) == (code, True), message


@pytest.mark.parametrize(
    ("more", "words", "code", "named"),
    [
        (", call: f", "", "name-not-found", "leave out call"),
        ("", "--call f", "name-not-found", "leave out --call"),
        (", d1: a, on_error: fail", "", "mechanism-raised", "and on_error"),
        (", d1: a", "--on-error fail", "mechanism-raised", "and --on-error"),
    ],
)
def test_an_audit_of_a_file_names_its_keys_and_the_flags_that_were_given(
    dpaudit: Any, more: str, words: str, code: str, named: str
) -> None:
    given = NOISY.replace("d1: 0, ", "") if "d1" in more else NOISY
    Path("b.yaml").write_text(f"version: 1\naudits:\n- {{{given}{more}}}\n")
    dpaudit("run", "b.yaml", *words.split(), "--json", "r.json")
    (result,) = from_json(Path("r.json").read_text("utf-8"))
    assert result.error_code == code
    assert named in str(result.error)
