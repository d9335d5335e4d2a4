"""What is checked of an audit's draws: that they are independent, and that they say something
(docs/method.md §11)."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpaudit.adapters.calls import names_after_dataset
from dpaudit.auditing.spec import AuditSpec
from dpaudit.certificates.certificate import Block, Certificate
from dpaudit.certificates.replay import tally as replay_tally
from dpaudit.claims import ProfilePoint
from dpaudit.draws import SelectionDraws, Tally, by_arm, pool
from dpaudit.errors import MechanismError
from dpaudit.inputs.pairs import NeighbouringPair, describe_pair, differ_in_type, with_type
from dpaudit.levels.portfolio import Portfolio
from dpaudit.outcomes import Raised
from dpaudit.sampling.chunks import Failures, Head, Measure, ToLearn
from dpaudit.sampling.executors import Drawer
from dpaudit.sampling.independence import (
    CHECKS,
    WARNED,
    all_equal,
    check_blocks,
    check_calls,
    check_computed,
    check_further,
    check_heads,
    check_independence,
    constant,
    doubt,
)
from dpaudit.sampling.sampler import Sampler
from dpaudit.sampling.state import changed, kept_state
from dpaudit.targets.construction import is_made
from dpaudit.targets.parameters import Calling
from dpaudit.targets.target import AnyTarget, ImportedTarget, IsolatedTarget
from dpaudit.wording import counted, shown

# Calls after the first exception that must raise, too; seconds that all calls may take.
_MORE, _SECONDS = 100, 2.0
# Calls of each input that are made at a time, at most.
_AT_ONCE = 2_048
# Variables that are named.
_NAMED = 3


def exhausted(
    make: Callable[[], Sampler], target: AnyTarget, pair: NeighbouringPair, most: int
) -> str | None:
    """Return how a new mechanism is used up, and what to do about it; None if it is not.

    most: calls after which an exception is not looked for any more.
    """
    deadline = time.monotonic() + _SECONDS
    # Twice, by two seeds: exceptions of chance do not begin after the same call.
    found = [_used_up(make, pair, most, deadline, seed) for seed in range(2)]
    one, other = found
    if one is None or other is None or one.calls != other.calls:
        return None
    listed = ", ".join(one.names[:_NAMED]) + (", …" if len(one.names) > _NAMED else "")
    kept = f"calls change {listed}, so" if listed else "it keeps state, so"
    return (
        f"the mechanism is used up: after {counted(one.calls, 'call')} of a new one, every further "
        f"call raises {one.words}; {kept} that draws are not independent; audit a function that "
        f"makes a new object for each draw{_example(target, one.how, one.function)}"
    )


class _UsedUp(NamedTuple):
    """calls: that raised nothing, before all others do.  words: the first exception.  names: of
    variables that calls change.  how, function: of the mechanism, where it has them."""

    calls: int
    words: str
    names: tuple[str, ...]
    how: Calling | None
    function: Any


def _used_up(
    make: Callable[[], Sampler], pair: NeighbouringPair, most: int, deadline: float, seed: int
) -> _UsedUp | None:
    sampler, rng = make(), np.random.default_rng(seed)
    raised: list[Raised | None] = []
    try:
        before = kept_state(*sampler.mechanism.parts)
        while time.monotonic() < deadline and len(raised) < most + _MORE:
            # Twice as many each time, so that slow calls do not go on far beyond the deadline.
            inputs = [pair.d1, pair.d2] * min(max(1, len(raised) // 2), _AT_ONCE)
            outputs = sampler.mechanism.sample_each(inputs, rng)
            raised += [one if isinstance(one, Raised) else None for one in outputs]
            calls = next((place for place, one in enumerate(raised) if one is not None), most)
            if calls + _MORE <= len(raised):
                break
        else:
            return None
        first = raised[calls]
        if first is None or calls == 0 or not all(raised[calls : calls + _MORE]):
            return None
        names = changed(before, kept_state(*sampler.mechanism.parts))
        how, function = (getattr(sampler.mechanism, name, None) for name in ("how", "function"))
        return _UsedUp(calls, first.words, names, how, function)
    finally:
        sampler.close()


def _example(target: AnyTarget, how: Calling | None, function: Any) -> str:
    """Return such a function for an object that is made from arguments.

    how: to call the method; None if unknown.  function: the method, if it is in this process.
    """
    is_here = isinstance(target, ImportedTarget)
    if isinstance(target, IsolatedTarget):
        target = target.target
    if not isinstance(target, ImportedTarget) or how is None:
        return ""
    if not (target.init is not None or target.factory or (is_here and is_made(target))):
        return ""
    init = target.init or ()
    if isinstance(init, dict):
        made_from = ", ".join(f"{key}={shown(value, 40)}" for key, value in init.items())
    else:
        made_from = ", ".join(shown(value, 40) for value in init)
    called = f"{target.path.rpartition(':')[2]}({made_from}){f'.{target.call}' * bool(target.call)}"
    data = how.data or "data"
    names = [*target.params, *filter(None, [how.rng])]
    after = [] if function is None else names_after_dataset(function)[: len(names)]
    is_by_position = how.data is None and set(after) == set(names)
    given = after if is_by_position else [f"{name}={name}" for name in names]
    given = [data if how.data is None else f"{data}={data}", *given]
    if how.alone is not None:
        given.append(f"{how.alone}=1")
    returned = f"{called}({', '.join(given)}){'' if how.alone is None else '[0]'}"
    parameters = ", ".join([data, *(after if is_by_position else names)])
    return f": def {target.call or 'draw'}({parameters}): return {returned}"


# Fewer draws than these may not show that calls share noise: one call of each input in a few blocks
# is all that there is to compare.
_FEW = 100_000
# Draw more where the e-value is at least this (of independent draws, in about one run of a hundred)
# or a call makes many draws: 32 blocks with 1,000 draws; if a call makes many, the number that
# refuted, within limits.
_SUSPECT = 2.0
_BLOCKS, _TO_SEE, _LEAST, _MOST = 32, 1_000, 8_000, 20_000
# Rules that count to learn from, more than there may be: each may warn so much less often.
_PHASES = 64


class DrawChecks:
    """The checks of one pair. Each returns warnings, and raises MechanismError for what
    independent draws cannot do."""

    def __init__(self, spec: AuditSpec, draws: Drawer) -> None:
        self._spec, self._draws = spec, draws
        # How likely a warning of one check may be.
        self._level = 1 / len(spec.pairs) * WARNED / CHECKS

    def learned(
        self, draws: SelectionDraws, blocks: Sequence[Block], point: ProfilePoint
    ) -> list[str]:
        """Check learning draws, which were made in these blocks."""
        sizes = [block.draws for block in blocks]
        warnings = check_independence(draws, sizes, point, self._level)
        return warnings + ([] if self._is_timed else check_calls(draws, sizes, self._level))

    def counted(
        self,
        selection: SelectionDraws,
        blocks: Sequence[Block],
        heads: Sequence[Head],
        rule: Portfolio,
    ) -> list[str]:
        """Check draws that one rule has counted, beside those that it was learned from."""
        counted = _counted(blocks)
        check_heads(selection, heads)
        return [] if self._is_timed else check_blocks(counted, rule.guesses, self._level)

    def varied(
        self,
        known: SelectionDraws,
        blocks: Sequence[Block],
        rule: Portfolio,
        unseen: tuple[int, int] | None,
    ) -> list[str]:
        """Return a warning when all draws of both inputs gave one output.

        known: draws that the rule was learned from, with the rare outputs among them.  unseen: how
        many later draws of d1 and of d2 gave an output that is not among the known ones; None where
        they were not compared, as after a refutation.
        """
        later = sum(_counted(blocks), Tally.empty(rule.levels))
        is_spread = int((later.counts.sum(axis=1) > 0).sum()) > 1
        if is_spread or any(unseen or ()) or not all_equal(known.outcomes):
            return []
        if self._spec.claim.adversary is None:  # who may answer None to everything
            check_computed(known.outcomes)
        of_d1, of_d2 = sum(replay_tally(block).counts.sum(axis=0) for block in blocks)
        return [constant(known.outcomes.word(0), (int(of_d1), int(of_d2)), self._spec.alpha)]

    def learned_again(self, counted: Sequence[Tally], rule: Portfolio) -> list[str]:
        """Check draws that a rule has counted to learn from, which it had not learned from."""
        level = self._level / _PHASES
        return [] if self._is_timed else check_blocks(counted, rule.guesses, level)

    def doubted(
        self,
        stream: tuple[int, int],
        blocks: Sequence[Block],
        measure: Measure,
        guesses: NDArray[np.int64],
        *,
        is_cheap: bool,
        most: int,
    ) -> list[str]:
        """Check more draws after a refutation by few, if those look as though they differed from
        call to call, or if draws are cheap.

        stream: pair and stage that name the random streams.  guesses: of the rule that refutes.
        most: draws to hold the outcomes of.
        """
        counted = _counted(blocks)
        draws = sum(one.draws for one in counted)
        if self._is_timed or draws >= _FEW:
            return []
        before = doubt(counted, guesses)
        if before < math.log(_SUSPECT) and not is_cheap:
            return []
        size = min(max(draws, _LEAST), _MOST) if is_cheap else _TO_SEE
        sizes = [min(size, most) // _BLOCKS] * _BLOCKS
        chunks = (ToLearn((*stream, number), each) for number, each in enumerate(sizes))
        more = [drawn.fresh.release() for drawn in self._draws(chunks)]
        rule = measure.portfolio
        tallies = [Tally(by_arm(rule(one.outcomes), rule.levels, one.is_d1)) for one in more]
        return check_further(pool(more), tallies, guesses, self._level, before)

    @property
    def _is_timed(self) -> bool:
        return is_timed(self._spec)


def is_timed(spec: AuditSpec) -> bool:
    """Return whether outcomes depend on how busy the machine is, which changes from block to
    block."""
    limits = getattr(spec.target, "limits", None)
    return spec.timing or getattr(limits, "timeout", None) is not None


def check_inputs(pair: NeighbouringPair, failures: Failures, draws: tuple[int, int]) -> None:
    """Raise MechanismError where one input alone always raises the same TypeError or
    AttributeError, and the inputs differ in type: that one is more likely a mistake than data of a
    user. What both raise may come from params or from the code.

    draws: all draws of d1 and of d2.
    """
    for arm, (name, dataset) in enumerate((("d1", pair.d1), ("d2", pair.d2))):
        counts = failures.counts.items()
        always = (kind for kind, count in counts if 0 < draws[arm] == count[arm] and count != draws)
        kind = next(filter(_is_of_types, always), None)
        if kind is not None and differ_in_type(pair.d1, pair.d2):
            other, another = ("d2", pair.d2) if arm == 0 else ("d1", pair.d1)
            raise MechanismError(
                f"{name} always raises {failures.first[kind].words}; {name} is "
                f"{with_type(dataset)}, and {other} is {with_type(another)}. Fix {name}; if users "
                "can send such data, the exception itself is the leak: give --on-error outcome "
                "(on_error: outcome)"
            )


def _is_of_types(kind: str) -> bool:
    # NumPy's subclasses of TypeError are UFuncTypeError and others.
    return kind in ("TypeError", "AttributeError") or kind.lstrip("_").startswith("UFunc")


def doubtful_inputs(pair: NeighbouringPair, certificate: Certificate) -> list[str]:
    """Return a warning of an input for which every draw was an exception.

    It may be meant, and then is the worst of leaks; more often the input is of a wrong type.
    """
    counts = certificate.failures.values()
    drawn = sum(replay_tally(block).counts.sum(axis=0) for block in certificate.blocks)
    return [
        f"{name} always raises ({drawn[arm]:,} draws): {describe_pair(pair.d1, pair.d2)}. Fix "
        f"{name}; if users can send such data, the exception itself is the leak"
        for arm, name in enumerate(("d1", "d2"))
        if 0 < drawn[arm] == sum(count[arm] for count in counts)
    ]


def _counted(blocks: Sequence[Block]) -> list[Tally]:
    """Return the tallies of the blocks that one rule has counted."""
    return [replay_tally(one) for one in blocks if one.stage != "learning"]
