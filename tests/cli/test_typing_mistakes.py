"""Mistakes that people type: each has its exit code, and a message that names the value.

No mistake is a verdict, a traceback or a pass in silence.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest

MECHANISMS = """
number = 3
def total(rows, rng): return sum(rows) + rng.laplace()
def numeric(x, rng): return float(x) + rng.laplace()
def noisy(x, rng, scale=1.0): return x + rng.laplace(scale=scale)
class Noise:
    def __init__(self, scale): self.scale = scale
    def draw(self, x, rng): return x + self.scale * rng.laplace()
"""
NOISY = "mechanism: m.py:noisy, d1: 0, d2: 1, claim: {epsilon: 1}, samples: 300"
FILES: dict[str, str | bytes] = {
    "m.py": MECHANISMS,
    "broken.py": "import syntax error(",
    "ok.yaml": f"version: 1\naudits:\n- {{{NOISY}}}\n",
    "empty.yaml": "",
    "mapping.yaml": "version: 1\naudits: {}\n",
    "latin.yaml": b"\xff\xfe: 1",
    "latin.json": b"\xff{}",
    "rows.csv": "a,b\n1,2\n",
    "empty.csv": "",
    "cut.json": "[1, 2",
    "deep.json": 5_000 * "[",
    "text.npy": "no array",
    "recorded.csv": "input,output\n" + "".join(f"{1 + i % 2},{i % 7}\n" for i in range(300)),
}
# Command lines, each with its exit code and a value that its message names.
RUN = "run m.py:noisy --d1 0 --d2 1 --epsilon 1 --samples 300"
TOTAL = "run m.py:total --d2 [1] --epsilon 1 --samples 300 --d1"
SEARCH = "search m.py:total --adjacency add-remove --epsilon 1 --samples 2000 --space"
NUMERIC = "search m.py:numeric --adjacency replace --epsilon 1 --samples 2000 --space"
BOUND = "bound --epsilon 1"
MISTAKES = f"""
# Mechanisms
2 noisy | run m.py
2 'noisy' | run m.py:nosy --d1 0 --d2 1 --epsilon 1
2 int | run m.py:number --d1 0 --d2 1 --epsilon 1
2 nothere.py | run nothere.py:noisy --d1 0 --d2 1 --epsilon 1
2 SyntaxError | run broken.py:noisy --d1 0 --d2 1 --epsilon 1
2 'draw' | run m.py:Noise --init [1] --call drow --d1 0 --d2 1 --epsilon 1
# Inputs
2 --d2 | run m.py:noisy --d1 0
2 null | {TOTAL} None
2 tuple | {TOTAL} '(1, 2)'
2 1,000 is text | {TOTAL} 1,000
2 1e999 | {TOTAL} 1e999
2 age:36 is a key | {TOTAL} [{{age:36}}]
2 [1, 2] | {TOTAL} "'[1, 2]'"
2 [0]*3 | {TOTAL} [0]*3
2 range(3) | {TOTAL} 'range(3)'
2 'a' | {TOTAL} '{{a: 1, a: 2}}'
2 python | {TOTAL} '!!python/object:os.system ls'
2 empty | {TOTAL} ''
2 @rows.csv | {TOTAL} rows.csv
2 folder | {TOTAL} @folder
2 UTF-8 | {TOTAL} @latin.json
2 empty.csv | {TOTAL} @empty.csv
2 deep.json | {TOTAL} @deep.json
2 text.npy | {TOTAL} @text.npy
2 .py | {TOTAL} @m.py
2 nope | {TOTAL} import:m.py:nope
2 rows | {TOTAL} import:m.py:total
3 on_error | {TOTAL} null
3 on_error | {TOTAL} @rows.csv
4 equal | run m.py:noisy --d1 0 --d2 0 --epsilon 1 --samples 300
# Options
2 '--epsilon' | run m.py:total --d1 [] --d2 [1] --eps 1
2 '-d' | run m.py:total -d1 [] -d2 [1] --epsilon 1
2 -1.0 | run m.py:noisy --d1 0 --d2 1 --epsilon -1
2 2.0 | {RUN} --delta 2
2 --order and --rho | run m.py:noisy --d1 0 --d2 1 --rho 1 --order 2
2 '99%' | {RUN} --confidence 99%
2 0.5 to below 1 | {RUN} --confidence 0.05
2 'add-remove' | {RUN} --adjacency add
2 --param scale | {RUN} --param scale=
3 'big' | {RUN} --param scale=big
2 null | {RUN} --range '[None, 1]'
2 --json FILE | run m.py:noisy --d1 0 --d2 1 --epsilon 1 --json --samples 300
5 'other' | {RUN} -k other
# Configuration files
2 UTF-8 | run latin.yaml
2 empty | check empty.yaml
2 audits | run mapping.yaml
2 nothere.yaml | run nothere.yaml
2 null | run ok.yaml --d1 None
2 m.py | check m.py
# Other commands
2 --space | search m.py:total
2 0.5 to below 1 | {BOUND} recorded.csv --arm input --confidence 0.05
1 the space may not be | {NUMERIC} text
1 output is a number | {SEARCH} 'list of text'
2 'folder' | {BOUND} folder
2 --arm | {BOUND} recorded.csv
2 60 | {BOUND} 100 50 60 --guesses
2 ok.yaml | trace ok.yaml
2 rng | sensitivity m.py:total --adjacency replace --space number --claimed 1
2 ok.yaml | init ok.yaml
2 'ok.yaml' | run ok.yam
2 1_000_000 or 1e6 | plan m.py:noisy --d1 0 --d2 1 --epsilon 1 --trial ten
2 --seed 'x' | canaries make new.csv -n 10 --seed x
2 'nothere.json' | compare nothere.json cut.json
2 ok.yaml | report ok.yaml
"""
# Audits in a file, each with a value that the message names.
AUDITS = {
    "pairs: 3, mechanism: m.py:noisy, claim: {epsilon: 1}": "pairs=3",
    f"{NOISY}, smaples: 5": "'samples'",
    f"{NOISY}, params: [1]": "params=[1]",
    f"{NOISY}, params: {{scale: 1/2}}": "1/2",
    f"{NOISY}, matrix: {{x: 3}}": "x=3",
    f"{NOISY}, matrix: {{x: [1]}}": 'claim: {epsilon: "${x}"}',
    f"{NOISY}, params: {{scale: '${{s}}'}}": "matrix: {s: [0.1, 1]}",
    f"{NOISY}, params: {{scale: ${{s}}}}, matrix: {{s: [1, 2]}}": "params: {scale: ${s}}",
    f"{NOISY}, isolate: yes": "'yes'",
    f"{NOISY}, expect: maybe": "'maybe'",
    f"{NOISY}, on_error: ignore": "'ignore'",
    f"{NOISY}, range: [1]": "range=[1]",
    NOISY.replace("d1: 0", "d1: (1, 2)"): "tuple",
    NOISY.replace("d1: 0", "d1: @rows.csv"): "d1: @rows.csv",
    NOISY.replace("{epsilon: 1}", "1"): "claim=1",
    NOISY.replace("epsilon: 1", "epsilom: 1"): "'epsilon'",
    NOISY.replace("epsilon: 1", "rho: 1, order: 2"): "rho and order",
    NOISY.replace("m.py:noisy", "m.py:nosy"): "'noisy'",
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, content in FILES.items():
        data = content if isinstance(content, bytes) else content.encode()
        (tmp_path / name).write_bytes(data)
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)


def test_each_mistake_is_named_on_the_command_line(dpaudit: Any) -> None:
    lines = [line for line in MISTAKES.split("\n") if line and line[0] != "#"]
    wrong = []
    for line in lines:
        expected, _, words = line.partition(" | ")
        code, _, named = expected.partition(" ")
        result = dpaudit(*shlex.split(words))
        said = " ".join((result.stderr if code in "25" else result.output).split())
        if result.exit_code != int(code) or named not in said or "Traceback" in said:
            wrong.append(f"{line}\n    {result.exit_code}: {said[:200]}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("command", ["run", "check"])
def test_each_mistake_is_named_in_a_file(dpaudit: Any, command: str) -> None:
    wrong = []
    for audit, named in AUDITS.items():
        Path("a.yaml").write_text(f"version: 1\naudits:\n- {{{audit}}}\n")
        result = dpaudit(command, "a.yaml")
        said = " ".join(result.output.split())
        if result.exit_code != 2 or named not in said or "Traceback" in said:
            wrong.append(f"{audit}\n    {result.exit_code}: {said[:200]}")
    assert not wrong, "\n".join(wrong)
