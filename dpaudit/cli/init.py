"""`dpaudit init`: write an audit, a test and a workflow for a mechanism, and run the audit. The
files are templates. Values come from the flags and from the signature of the mechanism; FILL_IN
stands for every other value."""

from __future__ import annotations

import ast
import datetime
import inspect
import json
import math
import os
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any, TextIO
from urllib.parse import urlsplit

import click

from dpaudit.auditing.options import owned
from dpaudit.auditing.spec import AuditSpec
from dpaudit.claims import implied_definition, missing_parameters
from dpaudit.cli import exit_codes
from dpaudit.cli.batch import Printer, auditing, run_batch
from dpaudit.cli.click_classes import USUAL, AuditCommand, command_line, option
from dpaudit.cli.completing import targets as complete_targets
from dpaudit.cli.flags import check_target, given_settings, some_flags
from dpaudit.cli.group import DEBUG
from dpaudit.cli.saving import write_together
from dpaudit.cli.streams import set_apart
from dpaudit.config.building import build_spec
from dpaudit.config.project import here
from dpaudit.config.settings import FILL_IN, escaped, holes
from dpaudit.errors import ConfigurationError, UsageError
from dpaudit.import_path import is_file, public_callables, resolve, split
from dpaudit.inputs.values import written
from dpaudit.inputs.yaml_values import compose
from dpaudit.reports.layout import wrap
from dpaudit.targets.parameters import BATCH, GENERATORS, RNG, SEED

CONFIG = Path("audits.yaml")
TEST = Path("test_privacy.py")
WORKFLOW = Path(".github/workflows/privacy.yml")
FILES = (CONFIG, TEST, WORKFLOW)

_TARGET = ("init", "call", "factory", "params")
_ROLES = ("batch_arg", "data_arg", "rng_arg", "post_process")
_CLAIM = tuple(option.name for option in owned("claim") if option.name != "from")
# Keys of an audit in the order in which they are written.
_KEYS = (
    *("name", "mechanism", *_TARGET, *_ROLES, "claim"),
    *("d1", "d2", "as", "adjacency", "samples"),
)
_CONFIG = """\
# Audits for: dpaudit run audits.yaml
# docs/configuration.md and docs/options.md describe all keys; for editors,
# `dpaudit schema config` prints their JSON schema.
version: 1
audits:
"""
_TEST = '''\
"""Privacy claims, tested by dpaudit."""

from dpaudit.testing import assert_private
'''
_FUNCTION = """

def test_{name}_is_private():
{imports}    assert_private(
        {arguments},
    )
"""
_WORKFLOW = """\
# Tests the privacy claims at every change.
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
      # dpaudit, and the packages that the mechanism imports. If the package index has no such
      # dpaudit yet: a clone of its repository, and pip install ./dpaudit.
      - run: pip install {requirement} pytest
{installs}      - run: dpaudit run audits.yaml --report github
      # The test also runs if the audits fail, so that one run shows both results.
      - run: pytest test_privacy.py
        if: success() || failure()
"""
NIGHTLY = Path(".github/workflows/privacy-nightly.yml")
ATTRIBUTES = Path(".gitattributes")
# Two branches that both add nights to the record are merged without a conflict.
_UNION = "evidence.json merge=union\n"
_NIGHTLY = """\
# Adds up the evidence of all nights, and fails at an alarm.
name: privacy, every night
on:
  schedule:
    - cron: "17 3 * * *"
  workflow_dispatch:
permissions:
  contents: write
concurrency: privacy-nightly
jobs:
  audit:
    runs-on: ubuntu-latest
    steps:
      # A rerun begins with the newest record, not with that of the commit that it repeats.
      - uses: actions/checkout@v5
        with:
          ref: ${{{{ github.ref_name }}}}
      - uses: actions/setup-python@v6
        with:
          python-version: "{python}"
      - run: pip install {requirement}
{installs}      - run: dpaudit run audits.yaml --evidence evidence.json --report github
      # Nights that end with an error or an alarm count too: to leave some out would be a selection.
      - if: always()
        run: |
          git config user.name "github-actions[bot]"
          git config user.email "41898282+github-actions[bot]@users.noreply.github.com"
          git add evidence.json
          git diff --cached --quiet || git commit --message "Add a night to evidence.json"
          git pull --rebase
          git push
"""
_VARIABLE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


@click.command(
    cls=AuditCommand,
    epilog="""\b
Examples:
  dpaudit init mine.py:noisy_count
  dpaudit init mine.py:noisy_count --epsilon 1 --d1 '[1, 2, 3]' --d2 '[1, 2]'""",
)
@click.argument("target", metavar="TARGET", shell_complete=complete_targets)
@some_flags(*_CLAIM, *_TARGET, *_ROLES, "d1", "d2", "as", "adjacency", "samples")
@option("--no-run", is_flag=True, section=USUAL, help="Write the files without running the audit.")
@option(
    "--nightly",
    is_flag=True,
    section=USUAL,
    help="Also write a workflow that adds up all nights.",
)
@some_flags("debug")
@click.pass_context
def init(ctx: click.Context, /, target: str, no_run: bool, nightly: bool, **flags: Any) -> int:
    """Write audits.yaml, test_privacy.py and a GitHub workflow for TARGET, and run the audit.

    TARGET is package.module:function or path/to/file.py:function. If audits.yaml and
    test_privacy.py exist, init adds an audit and a test to them, and changes nothing else. FILL_IN
    stands for a value that neither a flag nor the signature of TARGET states.
    """
    check_target(target, ", which init writes; name a mechanism, such as mine.py:function")
    stdout = ctx.with_resource(set_apart())
    target = _from_here(target)
    settings = _settings(target, given_settings(ctx, flags))
    unfilled = [".".join(map(str, path)) for path in holes(settings)]
    spec = None if unfilled else _checked(settings)
    texts = {CONFIG: _with_audit(settings), TEST: _with_test(settings)}
    if not WORKFLOW.exists():
        texts[WORKFLOW] = _workflow(_WORKFLOW)
    if nightly:
        texts |= _nightly()
    added = [path for path in texts if path.exists()]
    write_together({path: text.encode() for path, text in texts.items()})
    for path in texts:
        click.echo(f"{'added to' if path in added else 'wrote'} {path}", file=stdout)
    if unfilled:
        message = f"To be filled in, where the files say FILL_IN: {', '.join(unfilled)}."
        click.echo("\n" + "\n".join(wrap(message)), file=stdout)
    code = exit_codes.NOTHING_FOUND
    if spec is not None and not no_run:
        code = _run(ctx, spec, stdout)
    click.echo(f"\nNext: dpaudit run {CONFIG}; pip install pytest; pytest {TEST}", file=stdout)
    return code


def _from_here(target: str) -> str:
    """Return a target such as `file.py:name` with its file relative to the working directory."""
    module, attribute = split(target)
    if not is_file(module):
        return target
    folder = Path(os.getcwd())
    file = Path(os.path.normpath(folder / module))
    return f"{file.relative_to(folder)}:{attribute}" if file.is_relative_to(folder) else target


def _settings(target: str, flags: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of the audit by key, with FILL_IN for unknown values."""
    claim = dict(flags.get("claim", {}))
    definition = claim.get("definition") or implied_definition(claim)
    claim |= dict.fromkeys(missing_parameters(claim, definition), FILL_IN)
    settings = {
        "name": _unused_name(target),
        "mechanism": target,
        "d1": FILL_IN,
        "d2": FILL_IN,
        **_arguments(resolve(target), flags, claim),
        "claim": claim,
    }
    return {key: settings[key] for key in _KEYS if key in settings}


def _unused_name(target: str) -> str:
    """Return the attribute of the target or, if an audit has this name, the whole target."""
    from dpaudit.config.yaml_files import audit_names

    names = audit_names(CONFIG) if CONFIG.exists() else []
    for name in (split(target)[1], target):
        if name not in names:
            return name
    raise UsageError(
        f"{CONFIG} already has an audit named {target!r}; change it there", code="name-not-unique"
    )


def _arguments(
    mechanism: Any, flags: Mapping[str, Any], claim: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the flags, and the arguments and method that the mechanism's signatures require."""
    settings = dict(flags)
    function = mechanism
    if inspect.isclass(mechanism) or settings.get("factory"):
        if not isinstance(settings.get("init"), list):
            settings["init"] = _filled(mechanism, settings.get("init") or {}, (), claim)
        function = None
    if inspect.isclass(mechanism) and not settings.get("factory"):
        methods = ["__call__"] if "__call__" in dir(mechanism) else public_callables(mechanism)
        if "call" not in settings and methods != ["__call__"]:
            settings["call"] = methods[0] if len(methods) == 1 else FILL_IN
        function = getattr(mechanism, settings.get("call", "__call__"), None)
    if function is not None:
        names = [name for name in _parameters(function) if name != "self"]
        taken = {settings.get("data_arg", next(iter(names), None)), "self"}
        rngs = {settings["rng_arg"]} if "rng_arg" in settings else {RNG, *GENERATORS, SEED}
        taken |= {settings.get("batch_arg", BATCH), *rngs}
        settings["params"] = _filled(function, settings.get("params", {}), taken, claim)
    return {key: value for key, value in settings.items() if value not in ({}, None)}


def _filled(
    function: Any, arguments: Mapping[str, Any], taken: Iterable[Any], claim: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the arguments of a call. Values come from the claim; unknown ones are FILL_IN."""
    filled = dict(arguments)
    for name, parameter in _parameters(function).items():
        is_claimed = claim.get(name, FILL_IN) != FILL_IN
        is_needed = is_claimed or parameter.default is inspect.Parameter.empty
        if is_needed and name not in filled and name not in taken:
            filled[name] = claim[name] if is_claimed else FILL_IN
    return filled


def _parameters(function: Any) -> dict[str, inspect.Parameter]:
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):  # a function without a signature, such as one in C
        return {}
    return {name: part for name, part in parameters.items() if part.kind not in _VARIABLE}


def _checked(settings: Mapping[str, Any]) -> AuditSpec:
    """Return the audit with these settings. Raises the errors that `dpaudit run` would raise."""
    from dpaudit.auditing.engine import check_mechanism

    spec = build_spec(settings, here())
    check_mechanism(spec)
    command = command_line(["run", str(CONFIG), "-k", f"={spec.name}"])
    return replace(spec, origin=replace(spec.origin, command=command))


def _run(ctx: click.Context, spec: AuditSpec, stdout: TextIO) -> int:
    click.echo(file=stdout)
    with auditing() as requests:
        debug = ctx.meta.get(DEBUG, False)
        result, code = next(
            iter(run_batch([spec], requests, quiet=False, debug=debug, is_lone=True))
        )
    Printer([result.name], quiet=False, verbose=0, to=stdout).show(result)
    return code


def _with_audit(settings: Mapping[str, Any]) -> str:
    """Return the text of the configuration file with the audit added at its end."""
    text = CONFIG.read_text("utf-8") if CONFIG.exists() else _CONFIG
    text += "" if text.endswith("\n") else "\n"
    lines = text.splitlines(keepends=True)
    line, margin = _end_of_audits(text) if CONFIG.exists() else (len(lines), 2)
    items = [f"{key}: {in_yaml(escaped(value))}" for key, value in settings.items()]
    entry = "".join(
        f"{' ' * margin}{'  ' if index else '- '}{item}\n" for index, item in enumerate(items)
    )
    return "".join([*lines[:line], entry, *lines[line:]])


def _end_of_audits(text: str) -> tuple[int, int]:
    """Return the index of the line after the list `audits`, and the column of its dashes."""
    root = compose(text)
    keys = root.value if root is not None and root.id == "mapping" else []
    audits = next((value for key, value in keys if key.value == "audits"), None)
    if audits is not None and audits.id == "sequence" and not audits.flow_style:
        return audits.end_mark.line, audits.start_mark.column
    raise ConfigurationError(
        f"{CONFIG} has no list of audits, one below the other, to which init can add one; add it "
        "by hand, or move the file",
        code="configuration-shape",
    )


def _with_test(settings: Mapping[str, Any]) -> str:
    """Return the text of the test file with the test of the audit added at its end."""
    text = TEST.read_text("utf-8") if TEST.exists() else _TEST
    mechanism, imports = _expression(settings)
    if "import assert_private" not in text:
        imports = f"    from dpaudit.testing import assert_private\n{imports or chr(10)}"
    inputs = [FILL_IN if "as" in settings else in_python(settings[key]) for key in ("d1", "d2")]
    keywords = _keywords(settings)
    arguments = [mechanism, *inputs, *(f"{name}={value}" for name, value in keywords.items())]
    name = re.sub(r"\W+", "_", settings["name"]).strip("_").lower()
    return text + _FUNCTION.format(
        name=name, imports=imports, arguments=",\n        ".join(arguments)
    )


def _expression(settings: Mapping[str, Any]) -> tuple[str, str]:
    """Return the Python expression of the mechanism, and the line that imports its class."""
    target = settings["mechanism"]
    if not settings.keys() & {"init", "call", "factory"}:
        return json.dumps(target), ""
    module, attribute = split(target)
    if is_file(module):
        module = Path(module).stem if module == Path(module).name else FILL_IN
    arguments = settings.get("init", {})
    if isinstance(arguments, Mapping):
        words = [f"{name}={in_python(value)}" for name, value in arguments.items()]
    else:
        words = list(map(in_python, arguments))
    call = f".{settings['call']}" if "call" in settings else ""
    imports = f"    from {module} import {attribute.partition('.')[0]}\n\n"
    return f"{attribute}({', '.join(words)}){call}", imports


def _keywords(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return the keyword arguments of assert_private, as Python source."""
    claim = dict(settings["claim"])
    if claim.keys() & {"group", "definition"}:
        claim = {"claim": FILL_IN}
    names = ("params", "batch_arg", "data_arg", "rng_arg", "adjacency", "samples")
    keywords = claim | {name: settings[name] for name in names if name in settings}
    keywords |= {"post_process": FILL_IN} if "post_process" in settings else {}
    return {name: in_python(value) for name, value in keywords.items()}


def in_python(value: Any) -> str:
    """Return a value of YAML or JSON as Python source. FILL_IN stands for a value, such as a file,
    that has no Python source.

    >>> in_python({"tuple": [0, 1.5]}), in_python("@rows.csv")
    ('(0, 1.5)', 'FILL_IN')
    """
    if isinstance(value, dict) and isinstance(written(value), dict):
        return f"{{{', '.join(f'{key!r}: {in_python(part)}' for key, part in value.items())}}}"
    source = repr(written(value))
    try:
        is_plain = ast.literal_eval(source) == written(value) and not str(value).startswith("@")
    except (ValueError, SyntaxError):
        is_plain = False
    return source if is_plain and value != FILL_IN else FILL_IN


def in_yaml(value: Any) -> str:
    """Return a value as one line of YAML that is read as the same value.

    >>> in_yaml({"bounds": {"tuple": [0, 1.5]}, "word": "yes: # no"})
    '{bounds: {tuple: [0, 1.5]}, word: "yes: # no"}'
    """
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{in_yaml(key)}: {in_yaml(part)}' for key, part in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(in_yaml, value))}]"
    if isinstance(value, float) and not math.isfinite(value):
        return ".nan" if math.isnan(value) else ".inf" if value > 0 else "-.inf"
    if isinstance(value, datetime.date):
        return f"!!timestamp '{value}'"
    if isinstance(value, str) and _BARE.fullmatch(value) and value.lower() not in _CONSTANTS:
        return value
    return json.dumps(value, ensure_ascii=not str(value).isprintable())


_BARE = re.compile(r"[A-Za-z_][\w/.-]*(:[A-Za-z_][\w.]*)?", re.ASCII)
# Words that YAML 1.1 reads as a Boolean or as null.
_CONSTANTS = ("true", "false", "null", "yes", "no", "on", "off", "y", "n")


def _nightly() -> dict[Path, str]:
    """Return the workflow of every night, and the attribute of its record, unless they exist."""
    texts = {} if NIGHTLY.exists() else {NIGHTLY: _workflow(_NIGHTLY)}
    attributes = ATTRIBUTES.read_text("utf-8") if ATTRIBUTES.exists() else ""
    if _UNION not in attributes:
        attributes += "" if attributes.endswith("\n") or not attributes else "\n"
        texts[ATTRIBUTES] = attributes + _UNION
    return texts


def _workflow(template: str) -> str:
    installs = [
        f"      - run: pip install {words}\n"
        for name, words in (("requirements.txt", "-r requirements.txt"), ("pyproject.toml", "."))
        if Path(name).is_file()
    ]
    python = ".".join(map(str, sys.version_info[:2]))
    return template.format(python=python, requirement=requirement(), installs="".join(installs))


def requirement() -> str:
    """Return the text with which pip installs this dpaudit. It names a commit if pip installed
    dpaudit from a public repository, else a version on the package index."""
    distribution = metadata.distribution("dpaudit")
    origin = json.loads(distribution.read_text("direct_url.json") or "{}")
    url = urlsplit(origin.get("url", ""))
    if "vcs_info" in origin and url.scheme == "https" and "@" not in url.netloc:
        version = origin["vcs_info"]
        return f"'dpaudit @ {version['vcs']}+{origin['url']}@{version['commit_id']}'"
    return f"dpaudit=={distribution.version}"
