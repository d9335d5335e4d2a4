"""Events in few words: for sentences, and for reports without details, which end at a whole part.

The full words, with every digit, are those of `-v` and of JSON.
"""

from __future__ import annotations

import re

from dpaudit.wording import shortened

LONGEST = 72
_SCORE = (", where the score is ", ", where the score ")
# Ends of parts: what follows may be left out.
_ENDS = re.compile(r", most of (?:all|it from) |, | or | and ")
# Said of what is rare, where there is room.
_SEEN = re.compile(r" \(seen fewer than [\d,]+ times in [\d,]+ draws\)$")
# A threshold with more digits than tell anything.
_LONG = re.compile(r"(?<=[<>≤≥] )-?\d+\.\d{6,}(?![\d.e])|-?\d+\.\d{6,}(?= [<≤] )")
_DIGITS, _MANY = 6, 12


def brief(words: str) -> str:
    """Return an event in one line: thresholds to six digits, and of many parts as many as fit."""
    line = _rounded(" ".join(words.split()))
    for old, new in zip(_SCORE, (", ", ", which "), strict=True):
        line = line.replace(old, new, 1)
    if len(line) > LONGEST:
        line = _SEEN.sub("", line)
    if len(line) <= LONGEST:
        return line
    of_score = any(one in words for one in _SCORE)
    for found in reversed(list(_ENDS.finditer(line))):
        kept = line[: found.start()]
        shown = kept if of_score else f"{kept} and more" if _joins(line) else f"{kept} or others"
        if len(shown) <= LONGEST and _is_whole(kept):
            return shown
    return shortened(line, LONGEST)


def _rounded(line: str) -> str:
    """Return thresholds to six digits, where the others do not tell them apart or matter."""
    if "'" in line or '"' in line:  # a text of an output may look like one
        return line
    found = _LONG.findall(line)
    short = {one: f"{float(one):.{_DIGITS}g}" for one in found}
    if len(set(short.values())) < len(short):
        return line
    # Of 0.30000000000000004 the last digits are what matters.
    plain = [one for one in short if float(short[one]) != float(f"{float(one):.{_MANY}g}")]
    return _LONG.sub(lambda one: short[one[0]] if one[0] in plain else one[0], line)


def _joins(line: str) -> bool:
    """Return whether all parts have to hold."""
    return " and " in line and " or " not in line


def _is_whole(part: str) -> bool:
    """Return whether a part ends outside of brackets and quotes."""
    part = re.sub(r"\\.", "", part)  # an escaped quote ends nothing
    pairs = all(part.count(one) == part.count(other) for one, other in ("()", "[]", "{}"))
    return pairs and part.count("'") % 2 == 0 and part.count('"') % 2 == 0
