"""The files of a first audit: configuration, test for pytest, and workflow for GitHub. Values are
written as YAML and as Python."""

from __future__ import annotations

import datetime
import json
import math
import re
import shlex
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from dpaudit.config.project import TEST_DEFAULTS
from dpaudit.config.settings import FILL_IN, escaped, holes
from dpaudit.import_path import is_file, resolve, split
from dpaudit.inputs.datasets import FILE
from dpaudit.inputs.values import FORMS, IMPORT, Inline, Reference

CONFIG = Path("audits.yaml")
TEST = Path("test_privacy.py")
WORKFLOW = Path(".github/workflows/privacy.yml")
FILES = (CONFIG, TEST, WORKFLOW)

_WIDTH = 92
_BARE = re.compile(r"[A-Za-z_][\w/.-]*(:[A-Za-z_][\w.]*)?", re.ASCII)
# Words that YAML does not read as texts.
_VALUES = ("true", "false", "null", "yes", "no", "on", "off")
# Comments on keys to fill in.
_REMARKS = {
    "claim": "the claim: its ε, or delta, rho, mu … (docs/configuration.md#claims)",
    "d1": "one input, as JSON or YAML",
    "d2": "its neighbour, such as the same without one record",
    "params": "arguments of every call",
    "init": "arguments of the constructor",
    "call": "the method that draws",
}
_WORKFLOW = """\
# Tests the privacy claims of {target} at every change.
name: privacy
on:
  push:
  pull_request:
permissions:
  contents: read
jobs:
  audit:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v5
      - uses: actions/setup-python@v6
        with:
          python-version: "{python}"
{remark}
{installs}
      - run: dpaudit run {config} --report github
      # Also where the audits fail, so that both are seen at once.
      - run: pytest {test}
        if: success() || failure()
"""


@dataclass(frozen=True, slots=True)
class Start:
    """A first audit.

    settings: keys of the configuration file, with FILL_IN for unknown values.  remarks: comments
    on keys.  methods: possible values of `call`.  confidence_of_tests: confidence of the test.
    """

    settings: Mapping[str, Any]
    remarks: Mapping[str, str] = field(default_factory=dict)
    methods: Sequence[str] = ()
    confidence_of_tests: float = TEST_DEFAULTS["confidence"]

    @property
    def holes(self) -> list[str]:
        """Keys that have FILL_IN, such as `claim.epsilon`."""
        return [".".join(map(str, path)) for path in holes(self.settings)]

    @property
    def target(self) -> str:
        return str(self.settings["mechanism"])


def contents(start: Start, requirement: str) -> dict[Path, str]:
    """Return the text of every file. requirement: requirement of dpaudit for pip."""
    return {CONFIG: config(start), TEST: test(start), WORKFLOW: workflow(start, requirement)}


def config(start: Start) -> str:
    """Return a configuration file with one audit."""
    lines = [
        f"# Audits of {_plain(start.target)}, for: dpaudit run {CONFIG}",
        "# docs/configuration.md and docs/options.md describe all keys; for editors,",
        "# `dpaudit schema config` prints their JSON schema.",
        "version: 1",
        "audits:",
    ]
    prefix = "  - "
    for key, value in start.settings.items():
        if key in start.remarks:
            lines += [f"    # {line}" for line in textwrap.wrap(start.remarks[key], _WIDTH - 6)]
        written = _written(key, escaped(value))
        lines.append(f"{prefix}{key}: {written}{_to_do(key, value, start)}")
        prefix = "    "
    return "\n".join([*lines, ""])


def _written(key: str, value: Any) -> str:
    if value == FILL_IN:
        return FILL_IN
    if key == "samples":
        return f"{value:_}"
    if isinstance(value, Mapping) and key in ("claim", "params", "init"):
        parts = (f"{_word(name)}: {_written(name, part)}" for name, part in value.items())
        return f"{{{', '.join(parts)}}}"
    return _word(value) if isinstance(value, str) and key not in ("d1", "d2") else in_yaml(value)


def _word(text: Any) -> str:
    """Return a text without quotes where YAML needs none."""
    is_bare = _BARE.fullmatch(str(text)) and str(text).lower() not in _VALUES
    return str(text) if is_bare else in_yaml(text)


def _to_do(key: str, value: Any, start: Start) -> str:
    if not list(holes(value)):
        return ""
    several = f": {', '.join(start.methods)}" if key == "call" else ""
    return f"  # {_REMARKS[key]}{several}"


def workflow(start: Start, requirement: str) -> str:
    """Return a workflow for GitHub Actions. requirement: requirement of dpaudit for pip."""
    module = _plain(split(start.target)[0])
    remark = f"dpaudit as it was installed here, and the packages that {module} imports."
    if FILL_IN in requirement:
        remark = (
            "FILL_IN: where GitHub gets dpaudit from, such as "
            "git+https://HOST/OWNER/dpaudit@COMMIT. Here it was installed from a folder that "
            f"GitHub does not have. Then the packages that {module} imports."
        )
    found = [f"{shlex.quote(requirement)} pytest"]
    if Path("requirements.txt").is_file():
        found.append("-r requirements.txt")
    if any(Path(one).is_file() for one in ("pyproject.toml", "setup.py")):
        found.append(".")
    version = ".".join(map(str, sys.version_info[:2]))
    return _WORKFLOW.format(
        target=_plain(start.target),
        remark="\n".join(f"      # {line}" for line in textwrap.wrap(remark, _WIDTH - 8)),
        python=version,
        installs="\n".join(f"      - run: {_scalar(f'pip install {one}')}" for one in found),
        config=CONFIG,
        test=TEST,
    )


def _scalar(command: str) -> str:
    """Return a command for YAML, in quotes if needed."""
    return in_yaml(command) if re.search(r":\s|\s#", command) else command


def test(start: Start) -> str:
    """Return a test for pytest."""
    call = _Call(start)
    body = list(call.body())
    imports = [*(["import datetime"] if "datetime." in "".join(body) else []), *call.standard]
    others = ["from dpaudit.testing import assert_private", *call.imports]
    if "np.array(" in "".join(body):
        others.insert(0, "import numpy as np")
    if FILL_IN in "".join(body):
        others.insert(0, "import pytest")
    head = f'"""Privacy claims of {_plain(start.target)}, tested by dpaudit."""'
    parts = [head, "", *imports, *([""] if imports else []), *_sorted(others), *call.path]
    return "\n".join([*parts, "", "", *body, ""])


def _sorted(imports: Sequence[str]) -> list[str]:
    plain = sorted(one for one in imports if one.startswith("import "))
    return [*plain, *sorted(one for one in imports if not one.startswith("import "))]


class _Call:
    """The lines of a test that constructs the mechanism and audits it."""

    def __init__(self, start: Start) -> None:
        self._start = start
        self.standard: list[str] = []
        self.imports: list[str] = []
        self.path: list[str] = []
        self._mechanism = self._imported(start.target)
        after = start.settings.get("post_process")
        self._after = None if after is None else self._imported(after)

    def _imported(self, path: str) -> str:
        """Return the expression for the object at an import path, and note its import."""
        module, attribute = split(path)
        first = attribute.partition(".")[0]
        if not is_file(module):
            self.imports.append(f"from {module} import {first}")
            return attribute
        file = Path(module)
        folder, stem = file.parent, file.stem
        place = f"Path(__file__).parent / {str(folder)!r}" if folder != Path() else ""
        self._say("from pathlib import Path")
        if not _can_be_imported(file):
            self._say("from runpy import run_path")
            name = f"{(place or 'Path(__file__).parent')} / {file.name!r}"
            self.path += ["", f"{first} = run_path(str({name}))[{first!r}]"]
            return attribute
        self._say("import sys")
        line = f"sys.path.insert(0, str({place or 'Path(__file__).parent'}))"
        if line not in self.path:
            self.path += ["", line]
        self.path.append(f"from {stem} import {first}  # noqa: E402")
        return attribute

    def _say(self, line: str) -> None:
        self.standard = sorted({*self.standard, line}, key=lambda one: (one[:4] == "from", one))

    def body(self) -> Iterator[str]:
        """Yield the lines of the test."""
        settings, gaps = self._start.settings, list(self._start.holes)
        # References of a configuration file have no short form in Python.
        gaps += [
            f"{key}.{name}"
            for key in ("params", "init")
            for name, value in _named(settings.get(key, {}))
            if value != FILL_IN and in_python(value) is None
        ]
        inputs = {name: self._input(settings[name]) for name in ("d1", "d2")}
        for name, value in inputs.items():
            if value is None:
                inputs[name] = "..."
                gaps += [name] if name not in gaps else []
        name = str(settings["mechanism"]).rpartition(":")[2].replace(".", "_").lower()
        yield f"def test_{name}_is_private():"
        if gaps:
            yield f'    pytest.fail("{FILL_IN}: {", ".join(gaps)}; then remove this line")'
        yield f"    # {self._remark()}"
        yield from (f"    {name} = {value}" for name, value in inputs.items())
        made = self._made()
        arguments = [made, "d1", "d2", *self._options()]
        line = f"    assert_private({', '.join(arguments)})"
        if len(line) <= _WIDTH:
            yield line
            return
        yield "    assert_private("
        yield from (f"        {one}," for one in arguments)
        yield "    )"

    def _remark(self) -> str:
        remarks = self._start.remarks
        if "d1" not in remarks:
            return "Two neighbouring inputs."
        relation = " and their relation" if "adjacency" in remarks else ""
        return f"Inputs{relation}, guessed: choose the pair that you think leaks most."

    def _input(self, value: Any) -> str | None:
        if value == FILL_IN:
            return None
        written = in_python(value)
        form = self._start.settings.get("as")
        if written is None or form in ("pandas", "polars"):
            return None
        return f"np.array({written})" if form in ("array", "numpy") else written

    def _made(self) -> str:
        settings = self._start.settings
        made = self._mechanism
        if "init" in settings or settings.get("factory") or _is_class(self._start.target):
            made = f"{made}({_arguments(settings.get('init', {}))})"
        return f"{made}.{settings['call']}" if settings.get("call", FILL_IN) != FILL_IN else made

    def _options(self) -> Iterator[str]:
        settings = self._start.settings
        claim = dict(settings["claim"])
        group, definition = claim.pop("group", 1), claim.pop("definition", None)
        numbers = {name: _python(value) for name, value in claim.items()}
        if definition is None and group == 1:
            yield from (f"{name}={value}" for name, value in numbers.items())
        else:
            self.imports.append("from dpaudit.claims import group, make_claim")
            inside = ", ".join(f'"{name}": {value}' for name, value in numbers.items())
            made = f"make_claim({{{inside}}}{f', {definition!r}' if definition else ''})"
            yield f"group({made}, {group})" if group != 1 else made
        if settings.get("params"):
            yield f"params={_python(settings['params'])}"
        for key in ("batch_arg", "data_arg", "rng_arg", "adjacency"):
            if key in settings:
                yield f'{key}="{settings[key]}"'
        if self._after is not None:
            yield f"post_process={self._after}"
        yield f"samples={settings['samples']:_}"
        yield f"confidence={self._start.confidence_of_tests!r}"
        yield f"seed={settings['seed']}"


def _named(arguments: Any) -> Iterable[tuple[Any, Any]]:
    return arguments.items() if isinstance(arguments, Mapping) else enumerate(arguments)


def _python(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f'"{name}": {_python(one)}' for name, one in value.items()) + "}"
    return "..." if value == FILL_IN else in_python(value) or "..."


def _arguments(init: Any) -> str:
    if isinstance(init, Mapping):
        return ", ".join(f"{name}={_python(value)}" for name, value in init.items())
    return ", ".join(map(_python, init or ()))


def _is_class(path: str) -> bool:
    return isinstance(resolve(path), type)


def _can_be_imported(file: Path) -> bool:
    """Return whether an import of the file's name finds this file."""
    name = file.stem
    if not name.isidentifier() or name in sys.stdlib_module_names:
        return False
    try:
        found = find_spec(name)
    except (ImportError, ValueError):
        return True
    return found is None or found.origin is None or Path(found.origin).resolve() == file.resolve()


def _plain(text: str) -> str:
    """Return text that can stand in a comment or a docstring."""
    return text.encode("unicode_escape").decode("ascii").replace('"', "'")


def in_yaml(value: Any) -> str:
    """Return a value in one line of YAML, which is read back as the same value.

    >>> in_yaml({"bounds": {"tuple": [0, 1.5]}, "word": "yes: # no"})
    '{"bounds": {"tuple": [0, 1.5]}, "word": "yes: # no"}'
    """
    if isinstance(value, Mapping):
        items = (f"{in_yaml(key)}: {in_yaml(part)}" for key, part in value.items())
        return f"{{{', '.join(items)}}}"
    if isinstance(value, tuple):
        return f"{{tuple: {in_yaml(list(value))}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(in_yaml, value))}]"
    if isinstance(value, Reference):
        return in_yaml(repr(value))
    if isinstance(value, Inline):
        return f"{{{value.form}: {in_yaml(value.data)}}}"
    if isinstance(value, float) and not math.isfinite(value):
        return ".nan" if math.isnan(value) else ".inf" if value > 0 else "-.inf"
    if isinstance(value, datetime.date):
        return f"!!timestamp '{value.isoformat(*_SPACE[: isinstance(value, datetime.datetime)])}'"
    return json.dumps(value, ensure_ascii=not str(value).isprintable())


_SPACE = (" ",)


def in_python(value: Any) -> str | None:
    """Return a value as an expression of Python; None for a reference to a file or an import, and
    for arrays and data frames.

    >>> in_python({"tuple": [0, 1.5]}), in_python("@rows.csv")
    ('(0, 1.5)', None)
    """
    if isinstance(value, Mapping):
        return _mapping(value)
    if isinstance(value, tuple):
        return in_python({"tuple": list(value)})
    if isinstance(value, list):
        parts = [in_python(part) for part in value]
        return None if None in parts else f"[{', '.join(map(str, parts))}]"
    if isinstance(value, Reference | Inline):
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    if isinstance(value, datetime.date):
        return f"datetime.{value!r}" if not repr(value).startswith("datetime.") else repr(value)
    if isinstance(value, str) and value.startswith((FILE, IMPORT)):
        return None
    return json.dumps(value) if isinstance(value, str) and value.isprintable() else repr(value)


def _mapping(value: Mapping[Any, Any]) -> str | None:
    if set(value) == {"tuple"} and isinstance(value["tuple"], list):
        inside = in_python(value["tuple"])
        comma = "," if len(value["tuple"]) == 1 else ""
        return None if inside is None else f"({inside[1:-1]}{comma})"
    items = [(in_python(key), in_python(part)) for key, part in value.items()]
    if len(value) == 1 and set(value) <= set(FORMS):
        return None
    if any(None in item for item in items):
        return None
    return "{" + ", ".join(f"{key}: {part}" for key, part in items) + "}"
