"""The name or the number that was meant, for the end of a message."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal

# How alike two names must be, from 0 to 1, for one to be a slip of the other; what only shares its
# length or its ending with another is not.
_NEAR = 0.66
# Of a name with fewer letters nobody can tell what it is a slip of.
_LETTERS = 3
# So many names are listed beside the one that was meant.
_FEW = 12


def did_you_mean(wrong: str, known: Iterable[str]) -> str:
    """Return `" Did you mean 'x'?"` for the nearest known name, or `""`."""
    return _guess(nearest(wrong, known))


def did_you_mean_or_known(wrong: str, known: Sequence[str]) -> str:
    """Return the nearest known name, and all of them where there is none or they are few."""
    meant = did_you_mean(wrong, known)
    return meant if meant and len(known) > _FEW else f"{meant} Known: {', '.join(known)}"


def did_you_mean_file(wrong: str, names: Iterable[str]) -> str:
    """Return the same for the name of a file; names: of what is there of that kind. One may also be
    near without its ending, which all of a kind share."""
    known = list(names)
    near = _alike(wrong, known)
    if near:
        return _guess(near[0])
    # Imported here, since most runs have no slip in them.
    import difflib

    stem, ending = _parts(wrong)
    of_kind = {
        one: one + other
        for one, other in map(_parts, known)
        if difflib.SequenceMatcher(None, other.lower(), ending.lower()).ratio() >= _NEAR
    }
    close = [stem] if stem in of_kind else []
    if not close and len(stem) >= _LETTERS - 1:
        close = difflib.get_close_matches(stem, of_kind, n=1, cutoff=_NEAR)
    return _guess(of_kind[close[0]] if close else None)


def why_no_confidence(value: float, example: str) -> str | None:
    """Return why a number is no confidence; None where it is one. Below 0.5 lies what most people
    mean as the probability of a false alarm."""
    if 0.5 <= value < 1:
        return None
    other = float(1 - Decimal(str(float(value)))) if 0 < value < 0.5 else 1.0
    meant = f"; did you mean {other}?" if other < 1 else ""
    return f"must be a number from 0.5 to below 1, such as {example}{meant}"


def nearest(wrong: str, known: Iterable[str]) -> str | None:
    """Return the known name that a wrong one is in another case, begins, or nearly is."""
    names = list(known)
    near = _alike(wrong, names)
    letters = len(wrong.lstrip("-."))
    if not near and letters >= _LETTERS:
        import difflib

        near = difflib.get_close_matches(wrong, names, n=1, cutoff=_NEAR)
    if not near and letters == _LETTERS - 1 and wrong.isalpha():
        near = [one for one in names if _lacks_a_letter(wrong, one)]
        near = near if len(near) == 1 else []
    return near[0] if near else None


def _lacks_a_letter(wrong: str, name: str) -> bool:
    """Return whether a word is a name without one of its letters, but not the first."""
    return any(wrong == name[:place] + name[place + 1 :] for place in range(1, len(name)))


def _parts(name: str) -> tuple[str, str]:
    stem, dot, ending = name.rpartition(".")
    return (stem, dot + ending) if stem else (name, "")


def _alike(wrong: str, names: list[str]) -> list[str]:
    """Return the names that are a wrong one in another case, else those that begin with it."""
    near = [one for one in names if one.lower() == wrong.lower()]
    if not near and len(wrong) >= _LETTERS:
        near = sorted((one for one in names if one.startswith(wrong)), key=len)
    return near


def _guess(near: str | None) -> str:
    return f" Did you mean {near!r}?" if near is not None else ""
