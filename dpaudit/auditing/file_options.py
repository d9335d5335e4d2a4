"""The options of a configuration file about mechanism, inputs, claim and batch, and those of a run.

The classes only declare these options; they have no instances. options.py has those of an audit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta

from dpaudit.auditing.option_parsing import (
    Option,
    Words,
    about_audit,
    about_budget,
    about_claim,
    about_output,
    about_processes,
    anything,
    duration,
    path,
    refused,
    size,
)
from dpaudit.claims import DEFINITIONS, PrivacyClaim, parameters
from dpaudit.claims.base import why_misnamed


def _claim(value: Any) -> PrivacyClaim:
    if not isinstance(value, PrivacyClaim):
        raise refused("claim", value, "is not a claim; give epsilon=…, or one such as PureDP(1.0)")
    why = why_misnamed(value)
    if why:
        raise refused("claim", value, why)
    return value


def _arguments(value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise ValueError
    return dict(value)


class InputOptions:
    """Declares the options of a file about inputs and claim; it has no instances."""

    d1: Annotated[
        Any,
        about_audit(
            "One input: a JSON or YAML value, or @file. Files are .json, .yaml, .csv or "
            ".npy; {tuple: [0, 1]} is a tuple; import:module:name is a Python object.",
            unless="required",
            metavar="VALUE",
            usual=True,
            more="configuration.md#values",
            read=anything,
        ),
    ]
    d2: Annotated[
        Any,
        about_audit(
            "The neighbouring input, in the same form.",
            unless="required",
            metavar="VALUE",
            usual=True,
            read=anything,
        ),
    ]
    pairs: Annotated[
        list[Any],
        about_audit(
            "A list of {d1, d2}; they share the audit's error probability.",
            flag=None,
        ),
    ]
    search: Annotated[
        Words | dict[str, Any],
        about_audit(
            "In place of d1 and d2: the space to search for the pair that leaks most, such "
            "as list of number in [0, 1], or a mapping {space, inside, outside, keep}. "
            "Needs adjacency.",
            must=(
                "a space, such as list of number in [0, 1], or a mapping {space, inside, "
                "outside, keep}"
            ),
            flag=None,
            more="guides/find-the-pair.md",
        ),
    ]
    as_: Annotated[
        Literal["array", "numpy", "pandas", "polars"],
        about_audit(
            "Pass the datasets as NumPy arrays, or as data frames of a library.",
            more="configuration.md#values",
        ),
    ]
    adjacency: Annotated[
        str | dict[str, Any],
        about_audit(
            "The neighbouring relation, such as add-remove. dpaudit list adjacencies names "
            "all: replace, distances such as l1:1, and others. dpaudit checks d1 and d2 "
            "where it can.",
            must="add-remove, replace, or a distance such as l1:1",
            unless="not stated",
            metavar="RELATION",
            file=str | dict[str, Any],
            read=anything,
        ),
    ]
    compose: Annotated[
        list[Any],
        about_audit(
            "A list of at least two mechanisms (import paths or mappings), in place of "
            "mechanism; they run on the same input, and their outputs together are one "
            "output.",
            flag=None,
            more="guides/compositions.md",
        ),
    ]
    repeat: Annotated[
        int,
        about_audit(
            "Independent runs that together give one output. The claim is per run.",
            must="a whole number of runs",
            more="guides/compositions.md",
        ),
    ] = 1
    matrix: Annotated[
        dict[str, Annotated[list[Any], Meta(min_length=1)]],
        about_audit(
            "A mapping from names to lists of values, which ${name} refers to; one audit "
            "for each combination, at most 5,000.",
            flag=None,
        ),
    ]
    claim: Annotated[
        Any,
        about_claim(
            "A mapping such as {epsilon: 1, delta: 1e-5}: the claim to test.",
            unless="required",
            flag=None,
            more="configuration.md#claims",
            file=dict[str, Any],
            read=_claim,
        ),
    ]
    name: Annotated[
        Words,
        about_output(
            "The name of the audit in reports.",
            unless="the mechanism's",
            flag=None,
        ),
    ]


class MechanismOptions:
    """Declares the options of one mechanism; it has no instances."""

    mechanism: Annotated[
        Words | None,
        about_audit(
            "An import path: package.module:attr or path/to/file.py:attr.",
            unless="required",
            flag=None,
            metavar="TARGET",
        ),
    ]
    params: Annotated[
        dict[str, Any],
        about_audit(
            "A keyword argument of every call (repeatable).",
            must="a mapping of keyword arguments for every call",
            flag="--param",
            metavar="NAME=VALUE",
            usual=True,
            more="configuration.md#values",
            read=_arguments,
        ),
    ]
    init: Annotated[
        list[Any] | dict[str, Any],
        about_audit(
            "Constructor arguments, as a list or a mapping: '[1.0, 1.0]'.",
            metavar="VALUE",
            more="configuration.md#values",
        ),
    ]
    call: Annotated[
        Words,
        about_audit(
            "The method that returns outputs.",
            unless="the object itself",
            metavar="METHOD",
        ),
    ]
    factory: Annotated[bool, about_audit("Call the target to get the mechanism.")] = False
    batch_arg: Annotated[
        Words,
        about_audit(
            "The parameter for the number of outputs per call. With none, dpaudit calls "
            "the mechanism once for each output.",
            unless="size, if it has one",
            metavar="NAME",
            more="guides/mechanism.md#parameters-under-other-names",
        ),
    ]
    data_arg: Annotated[
        Words,
        about_audit(
            "The parameter for the dataset.",
            unless="the first",
            metavar="NAME",
            more="guides/mechanism.md#parameters-under-other-names",
        ),
    ]
    rng_arg: Annotated[
        Words,
        about_audit(
            "The parameter for a numpy.random.Generator. With none, dpaudit passes no generator.",
            unless="rng, random_state, generator or seed, if it has one",
            metavar="NAME",
            more="guides/mechanism.md#parameters-under-other-names",
        ),
    ]
    post_process: Annotated[
        Words,
        about_audit(
            "The import path of a function to apply to every output.",
            metavar="PATH",
            more="guides/attacks.md#a-score-of-your-own",
            file=Words,
            read=anything,
        ),
    ]
    command: Annotated[
        Annotated[list[Words], Meta(min_length=1)] | Words,
        about_audit(
            "The command line of a program to audit in place of a target. "
            "docs/guides/protocol.md defines what it reads and writes.",
            metavar="COMMAND",
            more="guides/protocol.md",
        ),
    ]
    python: Annotated[
        Words,
        about_processes(
            "Run the target with this Python. dpaudit need not be installed there.",
            must="the path of the Python interpreter that runs the mechanism",
            metavar="PATH",
            more="guides/versions.md",
            read=path,
        ),
    ]
    isolate: Annotated[
        bool,
        about_processes(
            "Run the mechanism in a separate process. A crash then counts as an outcome, "
            "and time and memory can be limited.",
            more="guides/protocol.md#faults",
        ),
    ] = False
    timeout: Annotated[
        float,
        about_processes(
            "Time limit for one draw, such as 500ms or 5s. A draw that takes longer counts "
            "as an outcome. Implies --isolate.",
            must="a duration such as 500ms or 5s, the limit for one draw; implies isolate",
            metavar="DURATION",
            file=int | float | str,
            read=duration,
        ),
    ]
    memory_limit: Annotated[
        int,
        about_processes(
            "Memory limit for the mechanism's process, such as 512MB or 2GiB. Implies --isolate.",
            must="a size such as 512MB, the limit for the mechanism's process; implies isolate",
            metavar="SIZE",
            file=int | str,
            read=size,
        ),
    ]


class BatchOptions:
    """Declares the option of a whole configuration file; it has no instances."""

    familywise: Annotated[
        bool,
        about_budget(
            "Share one false-alarm probability across all audits of a file. --confidence "
            "is then the confidence of the whole file (Holm). In YAML, familywise is a "
            "top-level key.",
            more="configuration.md#one-error-probability-for-a-batch",
        ),
    ] = False


class RunOptions:
    """Declares the options of a run, which are not in files; it has no instances."""

    json: Annotated[
        Words,
        about_output(
            "Save the results in this file. dpaudit report can recheck them. With '-', "
            "they go to standard output, and the report to stderr.",
            metavar="FILE",
            usual=True,
        ),
    ]
    report: Annotated[
        list[Words],
        about_output(
            "Also write a report (repeatable). Formats: text, html, json, junit, markdown, "
            "sarif, github (annotations). Without a file, it goes to standard output, and "
            "the text to stderr.",
            metavar="FORMAT[:FILE]",
            more="guides/reports.md",
        ),
    ]
    evidence: Annotated[
        Words,
        about_output(
            "Add the counts of this night to the record in this file, and refute a claim by all "
            "nights together.",
            metavar="FILE",
            more="guides/nightly.md",
        ),
    ]
    alarm: Annotated[
        Annotated[float, Meta(gt=0, lt=1)],
        about_output(
            "Alarm level of --evidence: the mean number of nights to a false alarm is at least 1 "
            "divided by it.",
            must="a number between 0 and 1, such as 1e-4",
            metavar="LEVEL",
            more="guides/nightly.md",
        ),
    ] = 1e-4
    pattern: Annotated[
        Words,
        about_output(
            "Run only audits whose name contains PATTERN. 'not PATTERN' runs all others; "
            "=NAME runs the audit of this name.",
            flag="-k",
            metavar="PATTERN",
        ),
    ]
    exitfirst: Annotated[
        bool, about_output("Stop after the first audit that fails, like --maxfail 1.", short="-x")
    ] = False
    maxfail: Annotated[
        int,
        Meta(ge=1),
        about_output(
            "Stop after this many failed audits. Reports list the audits that were not run.",
            metavar="N",
            more="guides/batch.md#stop-at-a-failure",
        ),
    ]
    quiet: Annotated[
        bool,
        about_output(
            "Print one line for each audit. Warnings and the summary follow; progress is "
            "not shown.",
            short="-q",
        ),
    ] = False
    verbose: Annotated[
        int, about_output("Show how each result was reached. All pairs are printed.", short="-v")
    ] = 0
    debug: Annotated[bool, about_output("Show the code and the traceback of every error.")] = False


class TracingOption:
    """Declares the option of an audit about its trace; it has no instances."""

    no_trace: Annotated[
        bool,
        about_output(
            "Do not look for the line that leaks after a violation.",
            more="guides/trace.md",
        ),
    ] = False


def claim_options() -> list[Option]:
    """Return the options below the key `claim`: the parameters of all definitions that have a flag,
    and then `from`, `group` and `definition`."""
    options = [
        Option(
            parameter.name,
            float if parameter.type is float else Words,
            None,
            about_claim(
                parameter.help,
                metavar="" if parameter.type is float else "PATH",
                usual=parameter.name in ("epsilon", "delta"),
            ),
            "claim",
        )
        for parameter in parameters()
        if parameter.has_flag
    ]
    literal: Any = Literal
    source = about_claim(
        "Ask the library of the mechanism for its claim, in place of ε. --delta then chooses the "
        "point of a curve.",
        unless="you",
        flag="--claim-from",
        more="guides/library-claims.md",
    )
    group = about_claim("Number of records that d1 and d2 differ in. The claim is for one record.")
    name = about_claim(
        "The privacy definition of the claim. dpaudit list definitions shows the names.",
        unless="the one that the parameters belong to, such as gaussian for --mu; approximate if "
        "--delta is above 0, else pure",
    )
    return [
        *options,
        Option("from", Literal["library"], None, source, "claim"),
        Option("group", int, 1, group, "claim"),
        Option("definition", literal[tuple(DEFINITIONS)], None, name, "claim"),
    ]
