"""All options of an audit, one declaration each (option_parsing.py).

From these declarations follow the flags of the commands, the keys of configuration files and their
JSON schema, the defaults and checks of an `AuditSpec`, and the page docs/options.md. The keywords
of Python are written out in api.py, and a test compares them. A new option is a field here and, for
Python, a keyword there.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal, NamedTuple, get_type_hints

from msgspec import Meta

from dpaudit.auditing.file_options import (
    BatchOptions,
    InputOptions,
    MechanismOptions,
    RunOptions,
    TracingOption,
    claim_options,
)
from dpaudit.auditing.option_parsing import (
    REFERENCE,
    Option,
    Owner,
    Words,
    about_attacks,
    about_audit,
    about_budget,
    about_output,
    about_processes,
    anything,
    declared,
    duration,
    listed,
    path,
)
from dpaudit.certificates.result import Family
from dpaudit.errors import Name, UsageError
from dpaudit.sampling.executors import check_executor, is_serial

BoundMethod = Literal["game", "clopper-pearson"]
Stop = Literal["auto", "bets", "confirmed", "never"]
OnError = Literal["auto", "outcome", "fail"]
Expectation = Literal["violation", "pass"]

# Smallest budget of an audit, in draws of one pair. Fewer draws cannot certify anything useful.
MIN_SAMPLES = 100
# Largest budget, in draws of one pair: bounds are computed in floats, which represent integers up
# to 10¹⁵ exactly.
MAX_SAMPLES = 10**15
TWO_BUDGETS = (
    *("give either ", Name("samples"), " or ", Name("time"), ", not both: "),
    "one sets the number of draws, the other their duration",
)
_PROCESSES = int | float | Annotated[str, Meta(pattern=f"^(auto|{REFERENCE})$")]


class DefaultSamples(int):
    """The largest number of draws of an audit for which the user gives neither `samples` nor
    `time`. Within it, pace.py chooses the number.

    seconds: how long the chosen number of draws may take, for all pairs together.
    """

    seconds: float

    def __new__(cls, most: int, seconds: float) -> DefaultSamples:
        samples = super().__new__(cls, most)
        samples.seconds = seconds
        return samples

    def __reduce__(self) -> tuple[type[DefaultSamples], tuple[int, float]]:
        return type(self), (int(self), self.seconds)


class DrawnSeed(int):
    """A seed drawn at random for `seed: random`. When a journal is continued, its seed takes the
    place."""


def _outputs(value: Any) -> tuple[Any, ...]:
    outputs = listed(value)
    if len(outputs) < 2:
        raise ValueError
    return outputs


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """Options that decide how an audit draws."""

    samples: Annotated[
        int,
        Meta(ge=MIN_SAMPLES, le=MAX_SAMPLES),
        about_budget(
            "Draws for each pair of inputs. d1 and d2 together get at least 100.",
            must="a whole number of draws for each pair, from 100 to 10¹⁵",
            unless="as many as about 30 s of drawing allow, at most 1,000,000",
            usual=True,
            more="budget.md#without---samples-and---time",
        ),
    ] = DefaultSamples(1_000_000, seconds=30.0)
    time: Annotated[
        float | None,
        about_budget(
            "How long to draw, such as 30s, 2m or 1h. Give --time or --samples, not both.",
            must="a duration such as 30s, 2m, 1h, or a number of seconds",
            metavar="DURATION",
            usual=True,
            file=int | float | str,
            read=duration,
        ),
    ] = None
    stop: Annotated[
        Stop,
        about_budget(
            "What ends a run before its last draw. bets: bets alone, for which few draws "
            "suffice; confirmed: bets that fresh draws have confirmed, which tighten the "
            "bound; never: nothing; auto: bets if each call makes one draw and takes more "
            "than 5 ms, else confirmed.",
            more="guides/slow.md",
        ),
    ] = "auto"
    seed: Annotated[
        int,
        Meta(ge=0),
        about_budget(
            "Seed of all random numbers. With random, dpaudit picks a seed and shows it.",
            must="a whole number, at least 0, or random",
            metavar="NUMBER|random",
            usual=True,
            more="configuration.md#seeds-of-a-batch",
            file=int | str,
        ),
    ] = 0
    certification_seed: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        about_budget(
            "A seed for the draws that certify, in place of --seed. --evidence draws a new one for "
            "each night.",
            must="a whole number, at least 0",
            metavar="NUMBER",
            more="guides/nightly.md",
        ),
    ] = None
    workers: Annotated[
        Annotated[int, Meta(ge=1)] | Literal["auto"],
        about_processes(
            "Number of processes that draw. With auto, dpaudit starts with one and uses "
            "all cores when more than about 5 seconds are left.",
            must="a whole number of processes, at least 1, or auto",
            unless="auto; in Python 1",
            metavar="NUMBER|auto",
            more="guides/scale.md",
            file=_PROCESSES,
        ),
    ] = 1
    executor: Annotated[
        Executor | str | None,
        about_processes(
            "Where workers run: serial, processes or dask. dask://host:8786 connects to a "
            "scheduler (docs/guides/scale.md).",
            unless="serial with one worker, else processes",
            metavar="NAME",
            more="guides/scale.md",
            file=Words,
            read=anything,
        ),
    ] = None
    on_error: Annotated[
        OnError,
        about_audit(
            "Whether an exception of the mechanism is an outcome. outcome: always; fail: "
            "the audit ends with an error; auto: as outcome, but if d1 and d2 differ in "
            "type and one of them always raises TypeError or AttributeError, as fail.",
            more="configuration.md#how-a-run-ends",
        ),
    ] = "auto"

    def __post_init__(self) -> None:
        _read(self)
        check_executor(self.executor, self.workers)

    @property
    def full(self) -> bool:
        """Whether the audit makes all draws of its budget, even after a refutation."""
        return self.stop == "never"

    @property
    def draws_ahead(self) -> bool:
        """Whether worker processes draw from the start, while this process is still learning."""
        return not is_serial(self.executor, self.workers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """Options that decide how evidence is computed from draws.

    family: the audits with which this audit shares one false-alarm probability (docs/method.md §9).
        `confidence` is then 1 minus this audit's share of it.
    """

    confidence: Annotated[
        float,
        Meta(ge=0.5, lt=1),
        about_budget(
            "1 minus the false-alarm probability. At least 0.5.",
            must="a number from 0.5 to below 1, such as 0.99",
            usual=True,
        ),
    ] = 0.99
    bound: Annotated[
        BoundMethod, about_budget("The method that turns counts into a bound.", more="method.md")
    ] = "game"
    range: Annotated[
        tuple[Any, ...] | None,
        about_audit(
            "All possible outputs, such as '[0, 1, TypeError]'. Exceptions are given by "
            "name. dpaudit then also computes an upper bound of ε.",
            must="a list of all possible outputs, exceptions by name, at least two",
            metavar="VALUES",
            more="guides/known-outputs.md",
            file=Annotated[list[Any], Meta(min_length=2)],
            read=_outputs,
        ),
    ] = None
    exact: Annotated[
        bool,
        about_audit(
            "Compute the result from the mechanism's own pmf, without draws. pmf(dataset, "
            "**params) returns a mapping from outcomes to probabilities.",
            more="guides/known-outputs.md",
        ),
    ] = False
    floating_point: Annotated[
        bool,
        about_attacks(
            "Also search the low-order bits and decimals of floats.",
            more="guides/floating-point.md",
        ),
    ] = False
    timing: Annotated[
        bool,
        about_attacks("Also search the duration of each call.", more="guides/floating-point.md"),
    ] = False
    attacks: Annotated[
        tuple[Any, ...],
        about_attacks(
            "An attack to add (repeatable). Give an import path, or the name of an "
            "installed attack. docs/guides/attacks.md defines the interface.",
            must=(
                "a list of attacks to add: import paths, package.module:Attack, or names of "
                "installed ones"
            ),
            flag="--attack",
            metavar="PATH",
            more="guides/attacks.md",
            file=list[Words],
            read=listed,
        ),
    ] = ()
    family: Family | None = None

    def __post_init__(self) -> None:
        _read(self)
        of_draws = [*sorted(self.switches - {"exact"}), *(["attacks"] if self.attacks else [])]
        if self.exact and of_draws:
            why = " makes no draws; give one of them"
            raise _conflict(Name(of_draws[0]), " needs draws, and ", Name("exact"), why)

    @property
    def switches(self) -> frozenset[str]:
        """Names of the options of this record that are switched on."""
        return frozenset(field.name for field in fields(self) if getattr(self, field.name) is True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirements:
    """The options that decide whether the result of an audit counts as passed."""

    require_power: Annotated[
        Annotated[float, Meta(gt=1, lt=1e300)] | None,
        about_output(
            "Exit 4 if a leak of this many times the claimed ε could go unnoticed. The "
            "audit then found no violation, and its event would refute such a leak in "
            "fewer than 9 of 10 runs. Example: 1.2.",
            must="a number above 1, such as 1.2",
            metavar="FACTOR",
            more="configuration.md#how-a-run-ends",
        ),
    ] = None
    require_rare: Annotated[
        Annotated[float, Meta(gt=0, lt=1)] | None,
        about_output(
            "Exit 4 if a rare output of only one input could go unnoticed. The audit then "
            "found no violation, and would catch an output of this probability in fewer "
            "than 9 of 10 runs. Example: 1e-3.",
            must="a probability between 0 and 1, such as 1e-3",
            metavar="PROBABILITY",
            more="configuration.md#how-a-run-ends",
        ),
    ] = None
    allow_underpowered: Annotated[
        bool,
        about_output(
            "Exit 0, not 4, for an audit that cannot refute its claim. Such an audit has "
            "too few draws for its ε, equal inputs, or outputs that are nearly all new and "
            "of which it can use nothing.",
        ),
    ] = False
    strict: Annotated[
        bool,
        about_output(
            "Exit 1 for an audit that has a warning. Notes do not count.",
            more="configuration.md#how-a-run-ends",
        ),
    ] = False
    expect: Annotated[
        Expectation | None,
        about_output("The expected verdict. Exit 0 if the audit has it."),
    ] = None

    def __post_init__(self) -> None:
        _read(self)
        for name in ("require_power", "require_rare"):
            if getattr(self, name) is not None and self.allow_underpowered:
                allowed, why = Name("allow_underpowered"), ", not both: they ask for opposites"
                raise _conflict("give ", Name(name), " or ", allowed, why)


@dataclass(frozen=True, slots=True, kw_only=True)
class Journaling:
    """The options that decide where draws are recorded, and whether to continue an earlier run."""

    journal: Annotated[
        str | os.PathLike[str] | None,
        about_output(
            "Record all draws in this folder. An interrupted run can then continue.",
            must="the path of a folder",
            metavar="DIR",
            more="guides/journal.md",
            file=Words,
            read=path,
        ),
    ] = None
    resume: Annotated[
        bool,
        about_output(
            "Continue from the journals in --journal.",
            more="guides/journal.md",
        ),
    ] = False

    def __post_init__(self) -> None:
        _read(self)
        if self.resume and self.journal is None:
            why = " needs the journal to continue from; give "
            raise UsageError(
                Name("resume"), why, Name("journal"), " DIR as well", code="option-missing"
            )


class OptionRecords(NamedTuple):
    """The options of an audit, in the records of `AuditSpec` that hold them."""

    sampling: Sampling
    statistics: Statistics
    requirements: Requirements
    journaling: Journaling


def records_of(options: Mapping[str, Any]) -> OptionRecords:
    """Return the records that hold the given options. `options` has values by name; an option that
    is missing has its default."""
    return OptionRecords(
        Sampling(**_of(Sampling, options)),
        Statistics(**_of(Statistics, options)),
        Requirements(**_of(Requirements, options)),
        Journaling(**_of(Journaling, options)),
    )


def _of(kind: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    return {field.name: options[field.name] for field in fields(kind) if field.name in options}


def _read(record: Any) -> None:
    """Decode the fields of a record of options. Raises UsageError."""
    for field in fields(record):
        if field.name in OPTIONS:
            value = OPTIONS[field.name].read(getattr(record, field.name))
            object.__setattr__(record, field.name, value)


def _conflict(*parts: str) -> UsageError:
    return UsageError(*parts, code="options-conflict")


def _options() -> dict[str, Option]:
    records: tuple[tuple[Any, Owner], ...] = (
        *(
            (InputOptions, "inputs"),
            (MechanismOptions, "mechanism"),
            (None, "claim"),
            (Sampling, "audit"),
        ),
        *(
            (Statistics, "audit"),
            (BatchOptions, "file"),
            (Requirements, "audit"),
            (TracingOption, "audit"),
        ),
        *((RunOptions, "run"), (Journaling, "run")),
    )
    options: list[Option] = []
    for record, owner in records:
        if record is None:
            options += claim_options()
        else:
            options += declared(record, owner, get_type_hints(record, include_extras=True))
    return {option.name: option for option in options}


OPTIONS: Mapping[str, Option] = _options()
DEFAULTS: Mapping[str, Any] = {name: option.default for name, option in OPTIONS.items()}


def verify(**values: Any) -> None:
    """Check values of options, given by name. Raise UsageError for the first that is out of
    range."""
    for name, value in values.items():
        OPTIONS[name].read(value)


def owned(*owners: Owner) -> tuple[Option, ...]:
    """Return the options that belong to one of `owners`, in order."""
    return tuple(option for option in OPTIONS.values() if option.of in owners)


def flag_of(name: str) -> str:
    """Return the flag of an option, such as `--samples`. For an option without a flag, return what
    the help calls its value, such as TARGET, or else its name."""
    option = OPTIONS.get(name)
    if option is None:
        return f"--{name}" if len(name) > 1 else f"-{name}"
    return option.flag or option.help.metavar or name
