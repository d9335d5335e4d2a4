"""`dpaudit explain`: show the meaning of privacy parameters, such as ε and δ, in tables and
figures."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import click

from dpaudit.claims import PrivacyClaim, make_claim, parameters, posterior_bounds
from dpaudit.claims.registry import ClaimParameter
from dpaudit.claims.tradeoff import tradeoff
from dpaudit.cli.click_classes import NUMBER, option
from dpaudit.cli.group import SuggestingGroup, debug_option
from dpaudit.cli.saving import check_writable, write_whole
from dpaudit.errors import UsageError
from dpaudit.reports import numbers
from dpaudit.reports.layout import table, wrap
from dpaudit.wording import install_command

_PRIORS = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
_ALPHAS = (0.001, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.75)
_EPSILONS = (0.0, 0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0)
_STEPS = 200
# Smallest δ shown in a figure of δ(ε), whose vertical axis is logarithmic.
_MIN_DELTA = 1e-12

# Formats of figures, by the suffix of the file.
_FORMATS = {".png": "png", ".svg": "svg", ".pdf": "pdf"}

Command = Callable[..., Any]


class PlotCurve(NamedTuple):
    """A curve of a figure.

    label: text in the legend; "" for a curve without an entry in the legend.
    faint: whether the curve is drawn pale, as a reference for other curves.
    """

    x: Sequence[float]
    y: Sequence[float]
    label: str = ""
    faint: bool = False


def curves_with(other: ClaimParameter, every: Iterable[ClaimParameter]) -> list[ClaimParameter]:
    """Return the parameters in `every` that have curves and belong to the same definition as
    `other`."""
    return [
        parameter
        for parameter in every
        if parameter.has_curve and not set(parameter.definitions).isdisjoint(other.definitions)
    ]


def explained(every: Iterable[ClaimParameter]) -> tuple[ClaimParameter, ...]:
    """Return the parameters that the command accepts: numbers that have curves, and numbers that
    belong to the same definition as one of these, such as δ, which belongs with ε."""
    numbers_only = [parameter for parameter in every if parameter.type is float]
    return tuple(parameter for parameter in numbers_only if curves_with(parameter, numbers_only))


_NUMBERS = explained(parameters())


class _ExplainGroup(SuggestingGroup):
    """A group of commands, of which options without a command mean the first, `posterior`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0].startswith("-") and args[0] not in ctx.help_option_names:
            args = ["posterior", *args]
        return super().parse_args(ctx, args)


@click.group("explain", cls=_ExplainGroup)
def explain() -> None:
    """Show what a privacy claim means for an attacker. Nothing is audited.

    Without a command, options are those of posterior:

    \b
    dpaudit explain --epsilon 1
    """


def _checked(_: click.Context, __: click.Parameter, figure: Path | None) -> Path | None:
    """Return the path for a figure. Raise UsageError if no figure can be written there."""
    if figure is not None:
        if figure.suffix.lower() not in _FORMATS:
            raise UsageError(
                f"--figure {str(figure)!r} must end in {_listed(list(_FORMATS))}",
                code="file-type-unknown",
            )
        check_writable(figure)
    return figure


_figure_option = option(
    "--figure",
    type=click.Path(path_type=Path),
    callback=_checked,
    metavar="FILE",
    help="Also save a figure: .png, .svg or .pdf (needs matplotlib).",
)


def _claim_options(command: Command) -> Command:
    """Add the parameters of claims to a command as options, such as --epsilon."""
    for parameter in reversed(_NUMBERS):
        words = (
            f"{parameter.help} Repeatable: a curve for each."
            if parameter.has_curve
            else parameter.help
        )
        command = option(
            f"--{parameter.name}", type=NUMBER, multiple=parameter.has_curve, help=words
        )(command)
    return command


@explain.command(short_help="What an attacker may believe after an output.")
@option("--epsilon", type=NUMBER, multiple=True, required=True, help="An ε. Repeatable.")
@option("--prior", type=NUMBER, help="The prior probability of d1, in [0, 1].")
@_figure_option
@debug_option
def posterior(epsilon: tuple[float, ...], prior: float | None, figure: Path | None) -> None:
    """Show what an attacker may believe at most after seeing an output.

    \b
    dpaudit explain posterior --epsilon 1.1 --prior 0.5
    """
    for value in epsilon:
        click.echo(_posterior_words(value, prior) if prior is not None else _priors(value))
    _save(figure, lambda kind: _posterior_picture(epsilon, kind))


@explain.command("tradeoff", short_help="The least miss rate of a test, for each false-alarm rate.")
@_claim_options
@_figure_option
@debug_option
def tradeoff_(figure: Path | None, **values: Any) -> None:
    """Show trade-off functions f(α): the least miss rate of a test between the two inputs, for
    each false-alarm rate.

    \b
    dpaudit explain tradeoff --epsilon 1 --mu 1
    """
    claims = _claims(**values)
    rows = [["false alarms α", *(claim.describe() for claim in claims)]]
    for alpha in _ALPHAS:
        misses = [numbers.at_least(tradeoff(claim, alpha), digits=4) for claim in claims]
        rows.append([numbers.about(alpha), *misses])
    click.echo("\n".join(["Miss rate, at least:", *table(rows)]))
    _save(figure, lambda kind: _tradeoff_picture(claims, kind))


@explain.command(short_help="The δ that a claim allows at every ε.")
@_claim_options
@_figure_option
@debug_option
def profile(figure: Path | None, **values: Any) -> None:
    """Show the δ that a claim allows at every ε: its privacy profile δ(ε).

    \b
    dpaudit explain profile --epsilon 1 --delta 1e-5 --mu 1
    """
    claims = _claims(**values)
    rows = [["ε", *(claim.describe() for claim in claims)]]
    for epsilon in sorted({*_EPSILONS, *values["epsilon"]}):
        deltas = [numbers.at_most(claim.profile(epsilon)) for claim in claims]
        rows.append([numbers.plain(epsilon), *deltas])
    click.echo("\n".join(["δ, at most:", *table(rows)]))
    _save(figure, lambda kind: _profile_picture(claims, kind))


def _save(figure: Path | None, picture: Callable[[str], bytes]) -> None:
    if figure is not None:
        write_whole(figure, picture(_FORMATS[figure.suffix.lower()]))


def _claims(**values: Any) -> list[PrivacyClaim]:
    """Return one claim for each value of a parameter that the user may repeat, such as ε."""
    # A parameter that may not, such as δ, goes with the first with which it forms a definition:
    # --epsilon 1 --epsilon 2 --delta 1e-5 gives two (ε, δ) claims.
    curves = [parameter for parameter in _NUMBERS if parameter.has_curve and values[parameter.name]]
    singles = [
        parameter
        for parameter in _NUMBERS
        if not parameter.has_curve and values[parameter.name] is not None
    ]
    if not curves and not singles:
        known = [f"--{parameter.name}" for parameter in _NUMBERS if parameter.has_curve]
        raise UsageError(
            f"there is nothing to explain; give {_listed(known)}, e.g. --epsilon 1",
            code="option-missing",
        )
    beside: dict[str, dict[str, float]] = {parameter.name: {} for parameter in curves}
    for single in singles:
        goes_with = curves_with(single, _NUMBERS)
        first = next((parameter for parameter in goes_with if parameter in curves), None)
        if first is None:
            known = [f"--{parameter.name}" for parameter in goes_with]
            value = f"--{single.name} {values[single.name]:g}"
            raise UsageError(
                f"{value} goes with {_listed(known)}, e.g. {known[0]} 1 {value}",
                code="option-missing",
            )
        beside[first.name][single.name] = values[single.name]
    return [
        make_claim({**beside[parameter.name], parameter.name: value})
        for parameter in curves
        for value in values[parameter.name]
    ]


def _listed(names: Sequence[str]) -> str:
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _posterior_words(epsilon: float, prior: float) -> str:
    low, high = posterior_bounds(epsilon, prior)
    belief = numbers.share(prior)
    words = (
        f"ε = {numbers.plain(epsilon)}: an attacker who thinks d1 {belief} likely can come to "
        f"think it at most {numbers.share(high)} likely, and at least {numbers.share(low)}, "
        "whatever the output."
    )
    return numbers.unglued("\n".join(wrap(words)))


def _priors(epsilon: float) -> str:
    rows = [["before", "after, at least", "at most"]]
    for prior in _PRIORS:
        rows.append(
            [
                numbers.share(probability)
                for probability in (prior, *posterior_bounds(epsilon, prior))
            ]
        )
    head = f"ε = {numbers.plain(epsilon)}: how likely d1 is to an attacker"
    return "\n".join([head, *table(rows)])


def _posterior_picture(epsilons: Sequence[float], kind: str) -> bytes:
    priors = _grid(1.0)
    lines = [PlotCurve((0.0, 1.0), (0.0, 1.0), faint=True)]
    for epsilon in epsilons:
        bounds = [posterior_bounds(epsilon, prior) for prior in priors]
        lines.append(
            PlotCurve(priors, [high for _, high in bounds], f"ε = {numbers.plain(epsilon)}")
        )
        lines.append(PlotCurve(priors, [low for low, _ in bounds]))
    title, y_label = "What an output may do to a belief", "Pr[d1] after: least and most"
    return _drawn(lines, kind, title, "Pr[d1] before", y_label, groups=2)


def _tradeoff_picture(claims: Sequence[PrivacyClaim], kind: str) -> bytes:
    alphas = _grid(1.0)
    lines = [PlotCurve((0.0, 1.0), (1.0, 0.0), faint=True)]
    for claim in claims:
        lines.append(
            PlotCurve(alphas, [tradeoff(claim, alpha) for alpha in alphas], claim.describe())
        )
    return _drawn(lines, kind, "Trade-off functions", "false alarms α", "misses, at least f(α)")


def _profile_picture(claims: Sequence[PrivacyClaim], kind: str) -> bytes:
    last = max(6.0, *(1.5 * claim.point().epsilon for claim in claims))
    epsilons = _grid(last)
    lines = []
    for claim in claims:
        # Points with δ = 0 have no place on the logarithmic axis.
        visible_epsilons = [epsilon for epsilon in epsilons if claim.profile(epsilon) > _MIN_DELTA]
        lines.append(
            PlotCurve(
                visible_epsilons,
                [claim.profile(epsilon) for epsilon in visible_epsilons],
                claim.describe(),
            )
        )
    return _drawn(lines, kind, "Privacy profiles", "ε", "δ(ε), at most", log_y=True)


def _grid(last: float) -> list[float]:
    return [last * step / _STEPS for step in range(_STEPS + 1)]


def _drawn(
    lines: Sequence[PlotCurve],
    kind: str,
    title: str,
    x_label: str,
    y_label: str,
    *,
    log_y: bool = False,
    groups: int = 1,
) -> bytes:
    """Return a figure of curves, in which each `groups` consecutive curves have the same colour."""
    figure = _matplotlib().Figure(figsize=(6.4, 4.4), layout="constrained")
    axes = figure.add_subplot(title=title, xlabel=x_label, ylabel=y_label)
    axes.grid(visible=True, color="0.9", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    bold = [line for line in lines if not line.faint]
    for line in lines:
        colour, dashes = ("0.6", "--") if line.faint else (f"C{bold.index(line) // groups}", "-")
        width = 1.0 if line.faint else 1.8
        axes.plot(line.x, line.y, dashes, color=colour, linewidth=width, label=line.label or None)
    if log_y:
        axes.set_yscale("log")
    if any(line.label for line in lines):
        axes.legend(frameon=False)
    target = io.BytesIO()
    # The file gets no date, so that the same curves always give the same bytes.
    metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind, {})
    figure.savefig(target, format=kind, dpi=150, metadata=metadata)
    return target.getvalue()


def _matplotlib() -> Any:
    try:
        return import_module("matplotlib.figure")
    except ImportError:
        raise UsageError(
            f"a figure needs matplotlib, which is not installed: {install_command('figures')}",
            code="package-missing",
        ) from None
