"""The registered privacy definitions, and functions that make a claim from named parameters.

The command line and the reader of configuration files call `make_claim` with the parameters that a
user gave, such as {"epsilon": 1.0}. `parameters` describes all parameters, for flags, schemas and
documentation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, fields, replace
from typing import Any, TypedDict, cast

from dpaudit.claims import base, definitions
from dpaudit.claims.base import Form, Parameter, PrivacyClaim
from dpaudit.errors import ClaimError, Name, UsageError
from dpaudit.wording import did_you_mean

DEFINITIONS: Mapping[str, type[PrivacyClaim]] = {
    kind.key: kind
    for kind in vars(definitions).values()
    if isinstance(kind, type) and issubclass(kind, PrivacyClaim)  # skips `__name__` and the like
}


@dataclass(frozen=True, slots=True)
class ClaimParameter:
    """A parameter of one or more privacy definitions, or a substitute.

    definitions: keys of the privacy definitions that have it.
    help, forms, has_flag, has_curve: as in `claims.base.Parameter`.
    """

    name: str
    help: str
    forms: tuple[Form, ...]
    has_flag: bool
    has_curve: bool
    definitions: tuple[str, ...]

    @property
    def type(self) -> type[float] | type[str]:
        """The type of the value on a command line."""
        return float if self.forms[0] == "number" else str


class ClaimNumbers(TypedDict, total=False):
    """Types of the parameters of claims, which functions of Python take as keyword arguments."""

    epsilon: float | None
    delta: float | None
    adversary: Any
    guarantees: Any
    tradeoff: Any
    mu: float | None
    sigma: float | None
    order: float | None
    rho: float | None


def described(definition: str) -> dict[str, Parameter]:
    """Return the `Parameter` of each parameter of a definition, given by its key, in the order of
    the constructor."""
    return base.described(DEFINITIONS[definition])


_DESCRIBED = {key: described(key) for key in DEFINITIONS}


def parameters() -> tuple[ClaimParameter, ...]:
    """Return the parameters of all definitions, each once, in the order of the definitions. A
    substitute follows the parameter that it replaces.

    >>> [parameter.name for parameter in parameters()][:3]
    ['epsilon', 'delta', 'adversary']
    """
    every: list[ClaimParameter] = []
    for name in dict.fromkeys(name for about in _DESCRIBED.values() for name in about):
        takers = tuple(key for key, about in _DESCRIBED.items() if name in about)
        about = _DESCRIBED[takers[0]][name]
        flags = about.has_flag, about.has_curve
        parameter = ClaimParameter(name, about.help, about.forms, *flags, takers)
        every.append(parameter)
        if about.instead is not None:
            every.append(replace(parameter, name=about.instead.name, help=about.instead.help))
    return tuple(every)


def make_claim(parameters: Mapping[str, Any], definition: str | None = None) -> PrivacyClaim:
    """Build a claim from named parameters.

    Parameters
    ----------
    parameters : mapping of str to Any
        Values by name; None counts as not given. The μ of a Gaussian claim may be replaced by
        `sigma`, the standard deviation of the noise at sensitivity 1.
    definition : str, optional
        A key of `DEFINITIONS`, such as "pure". Default: the one that the parameters imply
        (`implied_definition`).

    Returns
    -------
    PrivacyClaim
        The claim.

    Raises
    ------
    ClaimError
        If the definition is unknown, if parameters imply two different definitions, and if a
        parameter is missing, unknown or has an impossible value.

    Notes
    -----
    docs/method.md §6 and §7 describe the definitions.

    Examples
    --------
    >>> make_claim({"epsilon": 1.0, "delta": 1e-5}).describe()
    '(1, 1e-05)-DP'
    >>> make_claim({"sigma": 2.0}).describe()
    '0.5-Gaussian DP'
    """
    values = {name: value for name, value in parameters.items() if value is not None}
    if definition is None:
        definition = implied_definition(values)
        if clash := conflict_message(values):
            raise ClaimError(*clash, code="options-conflict")
    if definition not in DEFINITIONS:
        raise ClaimError(
            f"unknown definition {definition!r}; known: {', '.join(DEFINITIONS)}."
            + did_you_mean(definition, DEFINITIONS),
            code="definition-unknown",
        )
    if definition == "pure" and values.get("delta") == 0:
        del values["delta"]
    _check_names(values, definition)
    return DEFINITIONS[definition](**_converted(values, definition))


def stated_claim(claim: Any, numbers: Mapping[str, Any]) -> Any:
    """Return `claim`; if it is None, return the claim that the parameters `numbers` make.

    Raises
    ------
    UsageError
        If there is neither a claim nor a number, or both.
    """
    stated = {name: value for name, value in numbers.items() if value is not None}
    if claim is None and not stated:
        raise UsageError(
            "nothing is claimed; give epsilon=…, or a claim such as PureDP(1.0)",
            code="option-missing",
        )
    if claim is not None and stated:
        raise UsageError(
            f"give the claim or its numbers, not both: {', '.join(stated)}",
            code="options-conflict",
        )
    return make_claim(stated) if claim is None else claim


def implied_definition(values: Mapping[str, Any]) -> str:
    """Return the key of the definition that the given parameters imply. If some of them imply a
    definition by themselves (`Parameter.is_telling`), it is the one of these definitions that has
    most of the given parameters. Otherwise it is "approximate" for delta > 0, else "pure"."""
    telling = [key for key in DEFINITIONS if _names(key, telling=True) & values.keys()]
    if not telling:
        return "approximate" if values.get("delta") else "pure"
    return max(telling, key=lambda key: len(_names(key) & values.keys()))


def conflict_message(values: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the parts of an error message if two of the given parameters belong to different
    definitions, such as `rho` (zCDP) and `mu` (Gaussian DP). Otherwise return ()."""
    definition = implied_definition(values)
    telling = [name for name in values if name in _names(definition, telling=True)]
    strays = [name for name in values if name not in _names(definition)]
    for stray in strays if telling else ():
        if any(stray in _names(key, telling=True) for key in DEFINITIONS):
            first, second = sorted((telling[0], stray), key=list(values).index)
            ending = " do not go together; give one of them"
            return Name(first), " and ", Name(second), ending
    return ()


def _joined(names: Iterable[str], by: str) -> list[str]:
    """Return parts of a message that list the names of options, with `by` between two names."""
    return [part for name in names for part in (by, Name(name))][1:]


def required_parameters(definition: str) -> list[str]:
    """Return the names of the parameters of a definition that have no default."""
    return [
        parameter.name
        for parameter in fields(cast(Any, DEFINITIONS[definition]))
        if parameter.default is MISSING
    ]


def missing_parameters(values: Mapping[str, Any], definition: str) -> list[str]:
    """Return the required parameters of a definition for which neither a value nor a substitute was
    given."""
    about = _DESCRIBED[definition]
    needed = required_parameters(definition)
    return [name for name in needed if values.keys().isdisjoint(_spellings(name, about[name]))]


def _names(definition: str, *, telling: bool = False) -> set[str]:
    """Return the names of a definition's parameters (only telling ones) and substitutes."""
    about = _DESCRIBED[definition].items()
    wanted = (
        _spellings(name, parameter)
        for name, parameter in about
        if parameter.is_telling or not telling
    )
    return set().union(*wanted)


def _spellings(name: str, about: Parameter) -> tuple[str, ...]:
    """Return the name of a parameter and, if it has a substitute, the name of the substitute."""
    return (name,) if about.instead is None else (name, about.instead.name)


def _converted(values: dict[str, Any], definition: str) -> dict[str, Any]:
    """Return the values with substitutes converted to parameters. Raises ClaimError."""
    converted = dict(values)
    for name, about in _DESCRIBED[definition].items():
        substitute = about.instead
        if substitute is None or substitute.name not in values:
            continue
        if name in values:
            raise ClaimError(
                *(Name(name), " and ", Name(substitute.name)),
                f" say the same, {substitute.same}; give one of them",
                code="options-conflict",
            )
        converted[name] = substitute.convert(converted.pop(substitute.name))
    return converted


def _check_names(values: dict[str, Any], definition: str) -> None:
    about = _DESCRIBED[definition].items()
    words = {name: _joined(_spellings(name, parameter), " or ") for name, parameter in about}
    takes = [part for spellings in words.values() for part in (", ", *spellings)][1:]
    every = {key: _names(key) for key in DEFINITIONS}
    for name in values:
        if name not in every[definition]:
            is_known = any(name in names for names in every.values())
            beside = values.keys() - {name}
            fitting = set().union(*(names for names in every.values() if beside <= names))
            raise ClaimError(
                *(Name(name) if is_known else repr(name), " is not a parameter of the "),
                *(f"{definition} definition; it takes ", *takes, "."),
                "" if is_known else did_you_mean(name, fitting),
                code="parameter-unknown",
            )
    absent = [words[name] for name in missing_parameters(values, definition)]
    if absent:
        needed = [part for spellings in absent for part in (" and ", *spellings)][1:]
        why = f"the {definition} definition needs "
        raise ClaimError(why, *needed, code="parameter-missing")
