"""Attacks that an audit is given: by import path, by the name of an installed one, or at hand."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from dpaudit.attacks.user_attack import UsersAttack
from dpaudit.errors import TargetError, UsageError
from dpaudit.import_path import resolve
from dpaudit.wording import did_you_mean

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "dpaudit.attacks"


def load_attacks(given: Sequence[Any], *, travels: bool) -> tuple[UsersAttack, ...]:
    """Return the attacks that are given: classes with `fit`, instances of them, or functions that
    fit; the import paths of such; or the names of installed ones.

    travels: whether what they learn is sent to other processes.

    Raises UsageError for one that cannot be loaded, or is given twice.
    """
    found = tuple(replace(_loaded(one), travels=travels) for one in given)
    names = [one.name for one in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"attacks: {twice} is given twice")
    return found


def installed_attacks() -> dict[str, EntryPoint]:
    """Return the attacks that installed packages offer, by name; imports none of them."""
    from importlib.metadata import entry_points

    return {one.name: one for one in sorted(entry_points(group=GROUP), key=lambda one: one.name)}


def _loaded(given: Any) -> UsersAttack:
    if not isinstance(given, str):
        return _fitting(given, getattr(given, "__qualname__", type(given).__qualname__))
    if ":" not in given and not given.endswith(".py"):
        return _installed(given)
    source = partial(resolve, given)
    try:
        attack = source()
    except TargetError as error:
        # The path is named by what it is for, not as what is audited.
        raise UsageError(f"attacks: {str(error).replace('target ', 'attack ', 1)}") from error
    return _fitting(attack, given, source)


def _installed(name: str) -> UsersAttack:
    installed = installed_attacks()
    if name not in installed:
        known = f"; installed: {', '.join(installed)}" if installed else "; none is installed"
        raise UsageError(
            f"attacks: {name!r} is neither an import path, package.module:Attack, nor an installed "
            f"attack{known}.{did_you_mean(name, installed)}"
        )
    source = partial(_load, name)
    try:
        attack = source()
    except Exception as error:
        raise UsageError(
            f"attacks: the installed attack {name!r} cannot be loaded: {_words(error)}"
        ) from error
    return _fitting(attack, name, source)


def _load(name: str) -> Any:
    return installed_attacks()[name].load()


def _fitting(attack: Any, name: str, source: Any = None) -> UsersAttack:
    """Return the attack, checked."""
    if inspect.isclass(attack):
        attack = _made(attack, name)
    fit = getattr(attack, "fit", attack)
    if not callable(fit):
        raise UsageError(
            f"attacks: {name} is of type {type(attack).__name__}; it must have a method "
            "fit(selection), or be a function of that kind"
        )
    try:
        inspect.signature(fit).bind(None)
    except TypeError as error:
        raise UsageError(f"attacks: {name}: fit must take one argument, but: {error}") from None
    except ValueError:
        pass  # a built-in that has no signature to look at
    return UsersAttack(name, attack, source)


def _made(attack: type[Any], name: str) -> Any:
    if not hasattr(attack, "fit"):
        raise UsageError(f"attacks: the class {name} has no method fit(selection)")
    try:
        return attack()
    except Exception as error:
        raise UsageError(
            f"attacks: the class {name} cannot be made without arguments: {_words(error)}; "
            "name an instance or a function instead"
        ) from error


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"
