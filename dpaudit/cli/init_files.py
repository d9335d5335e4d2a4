"""Write the files of a first audit: configuration, pytest test, and GitHub workflow. The same
values are written as YAML in the configuration and as Python in the test."""

from __future__ import annotations

import datetime
import json
import math
import os
import re
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit
from urllib.request import url2pathname

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
# Words that YAML reads as a boolean or null, so they need quotes to remain texts.
_VALUES = ("true", "false", "null", "yes", "no", "on", "off")
# Maps a key whose value is FILL_IN to the comment that says how to fill it in.
_REMARKS = {
    "claim": "the claim: its ε, or delta, rho, mu … (docs/configuration.md#claims)",
    "d1": "one input, as JSON or YAML",
    "d2": "its neighbour, such as the same without one record",
    "params": "arguments of every call",
    "init": "arguments of the constructor",
    "call": "the method that draws",
}
_CONFIG = """\
# Audits of {target}, for: dpaudit run {config}
# docs/configuration.md and docs/options.md describe all keys; for editors,
# `dpaudit schema config` prints their JSON schema.
version: 1
audits:
  - {audit}
"""
_TEST = '''\
"""Privacy claims of {target}, tested by dpaudit."""

{imports}


def test_{name}_is_private():
    {hole}# {remark}
    d1 = {d1}
    d2 = {d2}
    {call}
'''
_HOLE = """pytest.fail("{fill_in}: {gaps}; then remove this line")
    """
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
      # The test also runs if the audits fail, so that one run shows both results.
      - run: pytest {test}
        if: success() || failure()
"""


@dataclass(frozen=True, slots=True)
class Start:
    """A first audit, from which `dpaudit init` writes a configuration file, a pytest test and a CI
    workflow.

    settings: values by key of the configuration file, with FILL_IN for unknown values.
    remarks: comments by key of the configuration file.
    methods: names of methods that the key `call` may have.
    confidence_of_tests: confidence level of the audit in the pytest test.
    """

    settings: Mapping[str, Any]
    remarks: Mapping[str, str] = field(default_factory=dict)
    methods: Sequence[str] = ()
    confidence_of_tests: float = TEST_DEFAULTS["confidence"]

    @property
    def holes(self) -> list[str]:
        """Return the keys of the configuration file, such as `claim.epsilon`, whose value is still
        the placeholder FILL_IN. The user must give these values."""
        return [".".join(map(str, path)) for path in holes(self.settings)]

    @property
    def target(self) -> str:
        return str(self.settings["mechanism"])


def contents(start: Start, requirement: str) -> dict[Path, str]:
    """Return {path: text} for every file.

    requirement: line with which pip installs dpaudit, such as `dpaudit==1.0`.
    """
    return {CONFIG: config(start), TEST: test(start), WORKFLOW: workflow(start, requirement)}


def config(start: Start) -> str:
    """Return the text of a YAML configuration file with one audit."""
    lines: list[str] = []
    for key, value in start.settings.items():
        remark = textwrap.wrap(start.remarks.get(key, ""), _WIDTH - 6)
        written = f"{key}: {_written(key, escaped(value))}{_to_do(key, value, start)}"
        lines += [*(f"# {line}" for line in remark), written]
    return _CONFIG.format(target=_plain(start.target), config=CONFIG, audit="\n    ".join(lines))


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
    """Return `text` as a YAML scalar: without quotes if YAML reads it as the same text, else with
    quotes."""
    is_bare = _BARE.fullmatch(str(text)) and str(text).lower() not in _VALUES
    return str(text) if is_bare else in_yaml(text)


def _to_do(key: str, value: Any, start: Start) -> str:
    if not list(holes(value)):
        return ""
    several = f": {', '.join(start.methods)}" if key == "call" else ""
    return f"  # {_REMARKS[key]}{several}"


def workflow(start: Start, requirement: str) -> str:
    """Return the text of a GitHub Actions workflow. At every push and pull request, it runs the
    audits of the configuration file and the pytest test that `dpaudit init` wrote.

    requirement: requirement by which pip installs dpaudit, such as `dpaudit==1.0`.
    """
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
    """Return a shell command as a YAML scalar, in quotes if YAML needs them."""
    return in_yaml(command) if re.search(r":\s|\s#", command) else command


def test(start: Start) -> str:
    """Return the text of a Python file with one pytest test."""
    settings, imports = start.settings, _Imports()
    made, inputs = _made(start, imports.add(start.target)), dict[str, str]()
    gaps = list(start.holes)
    # These values of the configuration file are references, such as @rows.csv, which have no short
    # Python expression. The user must write them.
    gaps += [
        f"{key}.{name}"
        for key in ("params", "init")
        for name, value in _named(settings.get(key, {}))
        if value != FILL_IN and in_python(value) is None
    ]
    for key in ("d1", "d2"):
        written = _input(settings[key], settings.get("as"))
        inputs[key] = "..." if written is None else written
        gaps += [key] if written is None and key not in gaps else []
    arguments = [made, "d1", "d2", *_arguments_of(start, imports)]
    call = f"assert_private({', '.join(arguments)})"
    if len(call) > _WIDTH - 4:
        lines = "".join(f"        {one},\n" for one in arguments)
        call = f"assert_private(\n{lines}    )"
    return _TEST.format(
        target=_plain(start.target),
        imports=imports.text(f"{inputs} {call}", has_gaps=bool(gaps)),
        name=start.target.rpartition(":")[2].replace(".", "_").lower(),
        hole=_HOLE.format(fill_in=FILL_IN, gaps=", ".join(gaps)) if gaps else "",
        remark=_remark_on_inputs(start),
        call=call,
        **inputs,
    )


class _Imports:
    """Collects the import statements of the test file, while the expressions that need them are
    written."""

    def __init__(self) -> None:
        self._standard = set[str]()
        self._others = ["from dpaudit.testing import assert_private"]
        # Lines that import objects from single files, by their paths, and not from packages.
        self._files: list[str] = []

    def add(self, path: str) -> str:
        """Add an import statement and return the expression that names the imported object.

        path: import path of the object, `module:name` or `file.py:name`.
        """
        module, attribute = split(path)
        first = attribute.partition(".")[0]
        if not is_file(module):
            self._others.append(f"from {module} import {first}")
            return attribute
        file = Path(module)
        folder = f" / {str(file.parent)!r}" if file.parent != Path() else ""
        place = f"Path(__file__).parent{folder}"
        self._standard.add("from pathlib import Path")
        if not _can_be_imported(file):
            self._standard.add("from runpy import run_path")
            run = f"run_path(str({place} / {file.name!r}))"
            self._files += ["", f"{first} = {run}[{first!r}]"]
            return attribute
        self._standard.add("import sys")
        line = f"sys.path.insert(0, str({place}))"
        self._files += [] if line in self._files else ["", line]
        self._files.append(f"from {file.stem} import {first}  # noqa: E402")
        return attribute

    def of_claims(self) -> None:
        """Add the import of dpaudit's functions that make claims, for a claim that assert_private
        cannot take as keyword arguments."""
        self._others.append("from dpaudit.claims import group, make_claim")

    def text(self, body: str, *, has_gaps: bool) -> str:
        """Return the import statements of the test file.

        body: source text of the test, which uses the imported names.
        has_gaps: whether the test still contains FILL_IN, so that pytest must skip it.
        """
        others = [*self._others, *(["import pytest"] if has_gaps else [])]
        others += ["import numpy as np"] if "np.array(" in body else []
        standard = self._standard | ({"import datetime"} if "datetime." in body else set())
        above = sorted(standard, key=_plain_first)
        below = [*sorted(others, key=_plain_first), *self._files]
        return "\n".join([*above, *([""] if above else []), *below])


def _plain_first(line: str) -> tuple[bool, str]:
    return line.startswith("from"), line


def _remark_on_inputs(start: Start) -> str:
    if "d1" not in start.remarks:
        return "Two neighbouring inputs."
    relation = " and their relation" if "adjacency" in start.remarks else ""
    return f"Inputs{relation}, guessed: choose the pair that you expect to leak most."


def _input(value: Any, form: str | None) -> str | None:
    """Return a dataset as a Python expression, or None if it has no short expression.

    form: value of the key `as`, the type in which the mechanism gets the dataset, such as "array"
        for a NumPy array, or "pandas" for a data frame, which has no short expression. None: the
        audit has no such key.
    """
    written = None if value == FILL_IN else in_python(value)
    if written is None or form in ("pandas", "polars"):
        return None
    return f"np.array({written})" if form in ("array", "numpy") else written


def _made(start: Start, mechanism: str) -> str:
    """Return the Python expression for the mechanism's function: a call of the constructor or
    factory if there is one, then the method.

    mechanism: Python expression for the target itself, such as its name.
    """
    settings, made = start.settings, mechanism
    if "init" in settings or settings.get("factory") or _is_class(start.target):
        made = f"{made}({_arguments(settings.get('init', {}))})"
    return f"{made}.{settings['call']}" if settings.get("call", FILL_IN) != FILL_IN else made


def _arguments_of(start: Start, imports: _Imports) -> Iterator[str]:
    """Yield the arguments of `assert_private` that follow the two inputs, as Python source text."""
    settings = start.settings
    claim = dict(settings["claim"])
    group, definition = claim.pop("group", 1), claim.pop("definition", None)
    numbers = {name: _python(value) for name, value in claim.items()}
    if definition is None and group == 1:
        yield from (f"{name}={value}" for name, value in numbers.items())
    else:
        imports.of_claims()
        inside = ", ".join(f'"{name}": {value}' for name, value in numbers.items())
        made = f"make_claim({{{inside}}}{f', {definition!r}' if definition else ''})"
        yield f"group({made}, {group})" if group != 1 else made
    if settings.get("params"):
        yield f"params={_python(settings['params'])}"
    for key in ("batch_arg", "data_arg", "rng_arg", "adjacency"):
        if key in settings:
            yield f'{key}="{settings[key]}"'
    if settings.get("post_process") is not None:
        yield f"post_process={imports.add(settings['post_process'])}"
    yield f"samples={settings['samples']:_}"
    yield f"confidence={start.confidence_of_tests!r}"
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
    """Return whether `import NAME`, where NAME is the name of `file` without `.py`, imports this
    file and no other module."""
    name = file.stem
    if not name.isidentifier() or name in sys.stdlib_module_names:
        return False
    try:
        found = find_spec(name)
    except (ImportError, ValueError):
        return True
    return found is None or found.origin is None or Path(found.origin).resolve() == file.resolve()


def _plain(text: str) -> str:
    """Return `text` changed so that it cannot end a comment or a docstring."""
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


_NAME = "dpaudit"
# A requirement that pip refuses, so that a workflow which the user has not completed cannot install
# a wrong package.
UNKNOWN = f"{_NAME} @ {FILL_IN}"
# Time limit of one git command, in seconds.
_GIT_SECONDS = 10
# Matches ssh's short form of a URL, such as `git@github.com:owner/name`. Groups: host and path.
_SCP = re.compile(r"(?:[\w.-]+@)?([\w.-]+):(?!//)(.+)")


def requirement() -> str:
    """Return the pip requirement that installs this dpaudit on another machine.

    The requirement names a version on the package index, a commit of a repository, or a folder
    below the working directory. Return UNKNOWN if another machine cannot get dpaudit in any of
    these forms.
    """
    try:
        found = metadata.distribution(_NAME)
    except metadata.PackageNotFoundError:
        return UNKNOWN
    text = found.read_text("direct_url.json")
    return f"{_NAME}=={found.version}" if text is None else _of(json.loads(text))


def _of(direct: Mapping[str, Any]) -> str:
    """Return the pip requirement that installs dpaudit from its present source.

    direct: content of direct_url.json, the file in which pip records the source (PEP 610).
    """
    url, inside = str(direct.get("url", "")), direct.get("subdirectory")
    if "vcs_info" in direct:
        info = direct["vcs_info"]
        return _in_repository(info["vcs"], url, info["commit_id"], inside)
    if urlsplit(url).scheme == "file":
        return _local(Path(url2pathname(urlsplit(url).path)))
    info = direct.get("archive_info", {})
    hashes = dict(info.get("hashes") or [str(info.get("hash", "=")).split("=", 1)])
    parts = [f"sha256={hashes['sha256']}"] if "sha256" in hashes else []
    parts += [f"subdirectory={inside}"] if inside else []
    where = f"{_public(url)}{'#' * bool(parts)}{'&'.join(parts)}"
    return f"{_NAME} @ {where}" if _public(url) else UNKNOWN


def _in_repository(vcs: str, url: str, commit: str, inside: str | None) -> str:
    where = _public(url)
    if not where:
        return UNKNOWN
    return f"{_NAME} @ {vcs}+{where}@{commit}{f'#subdirectory={inside}' if inside else ''}"


def _local(path: Path) -> str:
    """Return the pip requirement for a local source of dpaudit: the relative path for a source
    below the working directory; for a git clone elsewhere, its present commit in the remote
    repository `origin`; for any other source UNKNOWN, which the user has to complete."""
    here = Path(os.path.realpath(os.getcwd()))
    place = Path(os.path.realpath(path))
    if place.is_relative_to(here) and place.exists():
        return f"./{place.relative_to(here).as_posix()}"
    root, commit, origin = (
        _git(place, *words)
        for words in (
            ("rev-parse", "--show-toplevel"),
            ("rev-parse", "HEAD"),
            ("remote", "get-url", "origin"),
        )
    )
    if not (root and commit and origin):
        return UNKNOWN
    inside = place.relative_to(Path(os.path.realpath(root))).as_posix()
    return _in_repository("git", origin, commit, None if inside == "." else inside)


def _git(folder: Path, *words: str) -> str:
    """Return the output of `git WORDS`, run in `folder`, or "" if git fails."""
    # If dpaudit runs in a git hook, GIT_DIR and similar variables name the repository of the hook,
    # not the one in `folder`.
    environment = {name: value for name, value in os.environ.items() if name[:4] != "GIT_"}
    with suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(  # noqa: S603  # words of this module alone, and no shell
            ["git", "-C", str(folder), *words],  # noqa: S607  # the one on PATH
            capture_output=True, text=True, timeout=_GIT_SECONDS, check=True, env=environment,
        )  # fmt: skip
        return done.stdout.strip()
    return ""


def _public(url: str) -> str:
    """Return a URL without user name, password and query, or "" for a URL that other machines
    cannot reach."""
    short = _SCP.fullmatch(url)
    if short is not None and "://" not in url:
        url = f"https://{short[1]}/{short[2]}"
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    if parts.scheme not in ("https", "http", "ssh") or not host:
        return ""
    if parts.scheme == "ssh":  # the port of ssh is not that of https
        return urlunsplit(("https", re.sub(r":\d*$", "", host), parts.path, "", ""))
    return urlunsplit((parts.scheme, host, parts.path, "", ""))
