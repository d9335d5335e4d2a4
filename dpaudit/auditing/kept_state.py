"""State that calls of a mechanism change, for the warnings and errors of engine.py.

Draws of a mechanism that keeps state may depend on each other (docs/method.md §11, *State*).
`KeptState` names the variables that calls have changed, and finds out whether calls use the
mechanism up.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from dpaudit.adapters.calls import ONE_BY_ONE, names_after_dataset
from dpaudit.auditing.ledger import PROBING
from dpaudit.auditing.schedule import FIRST_CALLS
from dpaudit.auditing.time_left import Journal
from dpaudit.certificates.certificate import Redrawn
from dpaudit.errors import MechanismError
from dpaudit.inputs.pairs import NeighbouringPair
from dpaudit.outcomes import Raised
from dpaudit.sampling.chunks import FirstCalls
from dpaudit.sampling.executors import LOCAL
from dpaudit.sampling.independence import DependentDrawsError
from dpaudit.sampling.sampler import Sampler
from dpaudit.sampling.state import changed, kept_state
from dpaudit.targets.construction import is_made
from dpaudit.targets.parameters import Calling
from dpaudit.targets.target import (
    AnyTarget,
    ImportedTarget,
    IsolatedTarget,
    runs_in_another_process,
    starts_a_program,
)
from dpaudit.wording import counted, shown

# A mechanism counts as exhausted if, after the first call that raises, at least this number of
# calls raise, too. Also the largest number of calls between two checks of the time limit.
_FURTHER_CALLS = 100
# Time limit, in seconds, of the check whether a mechanism is exhausted: whether all calls raise
# after a certain number of calls, as when a privacy budget is used up.
_EXHAUSTION_SECONDS = 2.0


class KeptState:
    """Finds the variables of an audit's mechanism that have changed since before the first call,
    and finds out whether calls use the mechanism up, as when they spend a privacy budget.

    sampler: the sampler that draws in this process; it has made no draw yet.
    make: function that returns a sampler with a new mechanism.
    journal: the journal of the audit.
    """

    def __init__(self, sampler: Sampler, make: Callable[[], Sampler], journal: Journal) -> None:
        self._sampler, self._make, self._journal, self._spec = sampler, make, journal, journal.spec
        self._before = kept_state(*sampler.mechanism.parts)

    def changed(self, number: int) -> list[str]:
        """Return the names of the mechanism's variables that calls have changed, such as
        `mechanism.budget`.

        number: index of the pair of inputs that is audited.
        """
        if self._spec.journaling.resume and not runs_in_another_process(self._spec.target):
            self._make_few_calls(number)  # earlier, interrupted runs may have made all calls so far
        names = list(changed(self._before, kept_state(*self._sampler.mechanism.parts)))
        return names + (["os.environ"] if self._sampler.changes_environment else [])

    def begin_after_imports(self) -> None:
        """Compare variables of modules that the calls so far have imported with their present
        values, since they had no value before."""
        self._before = self._before.with_imports(kept_state(*self._sampler.mechanism.parts))

    def exhausted(self, number: int) -> str | None:
        """Return an error message if every call after a certain number of calls raises an
        exception, as when a privacy budget is used up; else None.

        number: index of the pair of inputs that is audited.
        """
        pair, most = self._spec.pairs[number], self._spec.sampling.samples
        look = partial(exhausted, self._make, self._spec.target, pair, most)
        return self._journal.once(f"used up {number}", look)

    def explained(
        self, error: MechanismError, number: int, *, has_failures: bool
    ) -> MechanismError | None:
        """Return an error that gives the likely cause of `error`, or a remedy; None if neither is
        known. Known causes: calls change variables of the mechanism, or all calls raise after a
        certain number of calls, as when a privacy budget is used up.

        number: index of the pair of inputs that is audited.
        has_failures: whether any draw was an exception.
        """
        if has_failures and (words := self.exhausted(number)):
            return MechanismError(words, code="mechanism-exhausted")
        spec, is_dependent = self._spec, isinstance(error, DependentDrawsError)
        names = self.changed(number) if has_failures or is_dependent else []
        is_here = spec.sampling.executor in LOCAL and not runs_in_another_process(spec.target)
        # Draws depend on each other, but no variable of the mechanism has changed in this process.
        # Perhaps workers drew with copies of the mechanism, and only the copies have changed. So
        # make a few calls in this process, to see which variables they change.
        if is_dependent and not names and is_here:
            self._make_few_calls(number)
            names = self.changed(number)
        parts: list[str] = []
        if names:
            question = "" if is_dependent else ": do they use anything up?"
            parts.append(f"; calls change {_listed(names)}{question}")
        is_batch = not (self._sampler.mechanism.interleaved or starts_a_program(spec.target))
        if is_dependent and is_batch:
            parts += ["; with ", ONE_BY_ONE, ", dpaudit calls it once for each output"]
        return MechanismError(*error.parts, *parts, code=error.code) if parts else None

    def _make_few_calls(self, number: int) -> None:
        """Make a few calls of the mechanism in this process, to see whether they change its
        variables.

        number: index of the pair of inputs.
        """
        for _ in range(2):  # the first calls may import modules
            self._sampler.draw(FirstCalls((number, PROBING, 2), FIRST_CALLS))
            self.begin_after_imports()


def state_words(names: Sequence[str], redrawn: Redrawn | None, is_reproducible: bool = True) -> str:
    """Return the warning that calls change variables of the mechanism.

    names: the variables.
    redrawn: comparison with new processes, which start with the original values of the variables;
        None without a comparison.
    is_reproducible: whether equal seeds give equal outputs.
    """
    unlike = "" if is_reproducible else "equal seeds do not give equal outcomes, and "
    words = f"{unlike}the mechanism keeps state between calls (calls changed {_listed(names)}); "
    if redrawn is not None and redrawn.processes:
        processes = counted(redrawn.processes, "new process")
        return f"{words}{processes}, which begin without it, drew as this one did"
    return (
        f"{words}no new process was compared with this one, and if the outputs depend on that "
        "state, they are not independent and may refute a claim that holds"
    )


def _listed(names: Sequence[str]) -> str:
    """Return the first three names, separated by commas. If there are more, an ellipsis follows."""
    return ", ".join([*names[:3], *(["…"] if len(names) > 3 else [])])


def exhausted(
    make: Callable[[], Sampler], target: AnyTarget, pair: NeighbouringPair, most: int
) -> str | None:
    """Return an error message, with a remedy, if the mechanism is exhausted; else None.

    A mechanism is exhausted if every call after a certain number of calls raises an exception, such
    as an object whose privacy budget is used up. These exceptions depend on the number of calls,
    not on d1 and d2.

    make: returns a sampler with a new mechanism.
    target: how the mechanism is made.
    pair: the inputs to call the mechanism with.
    most: approximate number of calls after which the check ends if no call has raised an exception.
    """
    deadline = time.monotonic() + _EXHAUSTION_SECONDS
    # The mechanism counts as exhausted (for example, because its privacy budget is used up) only if
    # two trials with different seeds raise their first exception after the same number of calls.
    # Exceptions that occur at random would rarely do so.
    first, second = (_exhaustion(make, target, pair, most, deadline, seed) for seed in range(2))
    return None if first is None or second is None or first[0] != second[0] else first[1]


def _exhaustion(
    make: Callable[[], Sampler],
    target: AnyTarget,
    pair: NeighbouringPair,
    most: int,
    deadline: float,
    seed: int,
) -> tuple[int, str] | None:
    """Call a new mechanism many times. If it is exhausted, so that every call after a certain
    number of calls raises an exception, return (this number, an error message). Return None if it
    does not seem exhausted, or if time runs out before this is known.

    make: returns a sampler with a new mechanism.
    target: how the mechanism is made.
    pair: the inputs to call the mechanism with, in turn.
    most: largest number of calls before the first exception.
    deadline: time at which the check ends, in seconds of `time.monotonic`.
    seed: seed of the calls.
    """
    sampler, rng = make(), np.random.default_rng(seed)
    mechanism, raised = sampler.mechanism, list[Raised | None]()
    try:
        before = kept_state(*mechanism.parts)
        while time.monotonic() < deadline and len(raised) < most + _FURTHER_CALLS:
            # Each step makes as many calls as all earlier steps together, but at most 100. So with
            # slow calls, the last step ends not long after the deadline.
            inputs = [pair.d1, pair.d2] * min(max(1, len(raised) // 2), _FURTHER_CALLS // 2)
            outputs = mechanism.sample_each(inputs, rng)
            raised += [output if isinstance(output, Raised) else None for output in outputs]
            calls = next((place for place, error in enumerate(raised) if error is not None), most)
            if calls + _FURTHER_CALLS <= len(raised):
                break
        else:
            return None
        first = raised[calls]
        if first is None or calls == 0 or not all(raised[calls : calls + _FURTHER_CALLS]):
            return None
        names = changed(before, kept_state(*mechanism.parts))
        how, function = (getattr(mechanism, name, None) for name in ("how", "function"))
        kept = f"calls change {_listed(names)}, so" if names else "it keeps state, so"
        return calls, (
            f"the mechanism is used up: after {counted(calls, 'call')} of a new one, every "
            f"further call raises {first.words}; {kept} that draws are not independent; audit a "
            f"function that makes a new object for each draw{_example(target, how, function)}"
        )
    finally:
        sampler.close()


def _example(target: AnyTarget, how: Calling | None, function: Any) -> str:
    """Return Python source of a function that makes a new object for each draw, to be shown in a
    message; "" if no such source can be written.

    target: how the mechanism is made.
    how: parameters with which the mechanism is called.
    function: the function that is called; None if it runs in another process.
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
