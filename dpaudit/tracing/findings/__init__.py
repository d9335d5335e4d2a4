"""Find the errors of a mechanism in pairs of runs on two neighbouring inputs with the same noise.

A *detector* is a generator function that takes a `Case` (the runs and the claim) and yields
findings. `KINDS` lists the kinds of findings, the most severe first, with the detectors that yield
them. To add a kind, write a detector, add a line to `KINDS`, and add the name to `FindingKind`,
from which the schema of reports takes it. The folder `mechanisms/causes` has an example mechanism
for each kind.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain

from dpaudit.certificates.traced import Finding, FindingKind
from dpaudit.claims import PrivacyClaim
from dpaudit.tracing.findings.noise import (
    constant_seeds,
    drawn_for_one_input,
    noise_used_twice,
    of_noise,
    of_parameters,
    sum_of_lines,
    unused_noise,
)
from dpaudit.tracing.findings.outputs import (
    of_choices,
    of_lengths,
    of_outputs,
    of_rare_branches,
    of_selected,
    of_thresholds,
    of_unexplained,
)
from dpaudit.tracing.findings.sites import Case, case_of, choice_site
from dpaudit.tracing.findings.words import FOR_LINE, FOR_PAIR, Changes, number
from dpaudit.tracing.runs.coins import Laws
from dpaudit.tracing.runs.coupling import Runs

Detector = Callable[[Case], Iterator[Finding]]

KINDS: dict[FindingKind, tuple[Detector, ...]] = {
    "constant-seed": (constant_seeds,),
    "no-noise": (of_outputs, of_selected, of_rare_branches, of_noise),
    "control-flow": (of_outputs,),
    "exception": (of_outputs, of_selected, of_rare_branches),
    "noise-used-twice": (noise_used_twice,),
    "data-dependent-scale": (of_noise,),
    "data-dependent-parameter": (of_parameters,),
    "too-little-noise": (of_outputs, of_noise, of_thresholds),
    "data-dependent-choice": (of_choices,),
    "drawn-for-one-input": (drawn_for_one_input,),
    "unused-noise": (unused_noise,),
    "sum": (sum_of_lines,),
}
# Kinds of findings that are kept once for each call, even if several calls are on the same line of
# code. Findings of other kinds are kept once for each line.
_OF_CALLS = ("too-little-noise", "data-dependent-scale")


def judge(runs: Runs, claim: PrivacyClaim | None, changed: Changes | None = None) -> Case:
    """Judge pairs of runs on two inputs with the same noise. Return a `Case` with the findings, and
    with the lines that draw noise and their costs. Findings that cause a leak come first.

    claim: The privacy claim for one run. Without a claim (None), a finding counts as the cause of a
        leak only if its cost is infinite.
    changed: For inputs that differ by one record: how much the sum of each column differs between
        the inputs. Otherwise None.
    """
    case = case_of(runs, claim, changed)
    if runs.keeps_state:
        case = replace(case, sites=[], total=None, exceeds=False)
        return replace(case, found=list(of_lengths(case)))
    if runs.laws is not None:
        return _by_laws(case, runs.laws)
    for detector in dict.fromkeys(chain.from_iterable(KINDS.values())):
        case.found.extend(detector(case))
    if all(one.kind == "unused-noise" for one in case.found):
        case.found.extend(of_unexplained(case))
    return replace(case, found=_ordered(case.found))


def _by_laws(case: Case, laws: Laws) -> Case:
    """Return the case with the findings that follow from `laws`, the exact probability of each
    output on both inputs. If these probabilities satisfy the claim, differences between the runs
    are no leak, and the only findings are generators that get the same seed in every run."""
    found = list(of_outputs(case))
    exceeds = any(one.kind == "too-little-noise" for one in found)
    found = [*(found if exceeds else ()), *constant_seeds(case)]
    total = f"ε = {number(laws.epsilon)}"
    sites = [choice_site(laws.place, laws.primitive, laws.callers, laws.epsilon, varies=False)]
    return replace(case, found=_ordered(found), sites=sites, total=total, exceeds=exceeds)


def _ordered(found: Iterable[Finding]) -> list[Finding]:
    """Return the findings, causes first, without duplicates. A line of code keeps one finding of
    each kind, or one for each of its calls if the kind is in `_OF_CALLS`."""
    unique: dict[tuple[str, str, int, str], Finding] = {}
    for finding in sorted(found, key=lambda one: not one.is_cause):
        code = finding.line.code if finding.kind in _OF_CALLS else ""
        unique.setdefault((finding.kind, finding.line.file, finding.line.line, code), finding)
    ordered = sorted(unique.values(), key=_rank)
    if sum(one.is_cause for one in ordered) < 2:
        return ordered
    # If a leak has several causes, more noise on one line repairs this line only. So each remedy
    # then says that the noise "would do for this line", in place of "would do for this pair" (of
    # inputs).
    return [replace(one, remedy=one.remedy.replace(FOR_PAIR, FOR_LINE)) for one in ordered]


def _rank(one: Finding) -> tuple[bool, bool, int, float]:
    """Return the sort key of a finding. Causes come first, then findings with infinite cost, then
    kinds that are earlier in `KINDS`, then higher costs."""
    cost = 0.0 if one.cost is None else one.cost
    return not one.is_cause, cost != math.inf, [*KINDS].index(one.kind), -cost
