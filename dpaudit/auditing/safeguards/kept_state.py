"""Find state that calls of a mechanism change, so that draws may depend on each other
(docs/method.md §11, *State*)."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from dpaudit import torch_use
from dpaudit.adapters.calls import ONE_BY_ONE, names_after_dataset
from dpaudit.auditing.ledger import PROBING
from dpaudit.auditing.safeguards.protocol import CountedBlocks, PairSafeguard, remarked
from dpaudit.auditing.schedule import FIRST_CALLS
from dpaudit.certificates.certificate import Certificate, Redrawn
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
from dpaudit.wording import KERNELS, UNSEEDED, counted, shown

# A mechanism is exhausted if, after the first call that raises, at least this number of calls
# raise, too. Also the largest number of calls between two checks of the time limit.
_FURTHER_CALLS = 100
# Time limit, in seconds, of the check whether a mechanism is exhausted.
_EXHAUSTION_SECONDS = 2.0


class KeptState(PairSafeguard):
    """Finds state that the mechanism keeps: variables that have changed since before its first
    call, and objects that calls use up, as when they spend a privacy budget."""

    def judge(self, certificate: Certificate, counts: CountedBlocks) -> Certificate:
        if certificate.failures and (words := self._exhausted()):
            raise MechanismError(words, code="mechanism-exhausted")
        is_reproducible = certificate.reproducible
        is_doubted = self._is_in_doubt(certificate) or not is_reproducible
        names = self._changed() if is_doubted else []
        words = state_words(names, certificate.redrawn, is_reproducible) if names else ""
        unseeded = [] if is_reproducible or names else [UNSEEDED]
        unseeded += [KERNELS] if not is_reproducible and torch_use.is_loaded() else []
        return remarked(certificate, first=[words] if words else [], first_notes=unseeded)

    def explain(self, error: MechanismError) -> MechanismError:
        if error.code == "mechanism-exhausted":
            return error
        has_failures = self._ledger.failures.total > 0
        if has_failures and (words := self._exhausted()):
            return MechanismError(words, code="mechanism-exhausted")
        spec, is_dependent = self._spec, isinstance(error, DependentDrawsError)
        names = self._changed() if has_failures or is_dependent else []
        is_here = spec.sampling.executor in LOCAL and not runs_in_another_process(spec.target)
        # Draws depend on each other, but no variable of the mechanism has changed in this process.
        # Perhaps workers drew with copies of the mechanism, and only the copies have changed. So
        # make a few calls in this process, to see which variables they change.
        if is_dependent and not names and is_here:
            self._make_few_calls()
            names = self._changed()
        parts: list[str] = []
        if names:
            question = "" if is_dependent else ": do they use anything up?"
            parts.append(f"; calls change {_listed(names)}{question}")
        is_batch = not (self._source.sampler.mechanism.interleaved or starts_a_program(spec.target))
        if is_dependent and is_batch:
            parts += ["; with ", ONE_BY_ONE, ", dpaudit calls it once for each output"]
        return MechanismError(*error.parts, *parts, code=error.code) if parts else error

    def _changed(self) -> list[str]:
        """Return the variables that calls have changed, such as `mechanism.budget`."""
        source = self._source
        if self._spec.journaling.resume and not runs_in_another_process(self._spec.target):
            self._make_few_calls()  # earlier, interrupted runs may have made all calls so far
        names = list(changed(source.before, kept_state(*source.sampler.mechanism.parts)))
        return names + (["os.environ"] if source.sampler.changes_environment else [])

    def _exhausted(self) -> str | None:
        """Return an error message if calls have used the mechanism up; else None."""
        make, samples = self._source.make, self._spec.sampling.samples
        look = partial(exhausted, make, self._spec.target, self._pair, samples)
        return self._source.journal.once(f"used up {self._ledger.number}", look)

    def _make_few_calls(self) -> None:
        for _ in range(2):  # the first calls may import modules
            key = (self._ledger.number, PROBING, 2)
            self._source.sampler.draw(FirstCalls(key, FIRST_CALLS))
            self._source.begin_after_imports()


def state_words(names: Sequence[str], redrawn: Redrawn | None, is_reproducible: bool = True) -> str:
    """Return the warning that calls change the variables `names` of the mechanism.

    redrawn: comparison with new processes, which start with the original values; None: not made.
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
    return ", ".join([*names[:3], *(["…"] if len(names) > 3 else [])])


def exhausted(
    make: Callable[[], Sampler], target: AnyTarget, pair: NeighbouringPair, most: int
) -> str | None:
    """Return an error message if the mechanism is used up: if from some call on every call raises,
    as when a privacy budget is spent. Otherwise return None.

    make: returns a sampler with a new mechanism.
    most: approximate number of calls after which the check ends if none has raised.
    """
    deadline = time.monotonic() + _EXHAUSTION_SECONDS
    # Two trials with different seeds have to raise their first exception after the same number of
    # calls, which exceptions that occur at random rarely do.
    first, second = (_exhaustion(make, target, pair, most, deadline, seed) for seed in range(2))
    return None if first is None or second is None or first[0] != second[0] else first[1]


def _exhaustion(
    make: Callable[[], Sampler],
    target: AnyTarget,
    pair: NeighbouringPair,
    limit: int,
    deadline: float,
    seed: int,
) -> tuple[int, str] | None:
    """Return (calls after which a new mechanism always raises, message of the error) or None."""
    sampler, rng = make(), np.random.default_rng(seed)
    mechanism, raised = sampler.mechanism, list[Raised | None]()
    try:
        state = kept_state(*mechanism.parts)
        while time.monotonic() < deadline and len(raised) < limit + _FURTHER_CALLS:
            # Each step makes as many calls as all earlier steps together, but at most 100. So with
            # slow calls, the last step ends not long after the deadline.
            inputs = [pair.d1, pair.d2] * min(max(1, len(raised) // 2), _FURTHER_CALLS // 2)
            outputs = mechanism.sample_each(inputs, rng)
            raised += [output if isinstance(output, Raised) else None for output in outputs]
            calls = next((index for index, error in enumerate(raised) if error is not None), limit)
            if calls + _FURTHER_CALLS <= len(raised):
                break
        else:
            return None
        first = raised[calls]
        if first is None or calls == 0 or not all(raised[calls : calls + _FURTHER_CALLS]):
            return None
        names = changed(state, kept_state(*mechanism.parts))
        how, function = (getattr(mechanism, name, None) for name in ("how", "function"))
        reason = f"calls change {_listed(names)}, so" if names else "it keeps state, so"
        return calls, (
            f"the mechanism is used up: after {counted(calls, 'call')} of a new one, every "
            f"further call raises {first.words}; {reason} that draws are not independent; audit a "
            f"function that makes a new object for each draw{_example(target, how, function)}"
        )
    finally:
        sampler.close()


def _example(target: AnyTarget, how: Calling | None, function: Any) -> str:
    """Return the source of a function that makes a new object for each draw; "" if unknown."""
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
    positional = [] if function is None else names_after_dataset(function)[: len(names)]
    is_by_position = how.data is None and set(positional) == set(names)
    arguments = positional if is_by_position else [f"{name}={name}" for name in names]
    arguments = [data if how.data is None else f"{data}={data}", *arguments]
    if how.alone is not None:
        arguments.append(f"{how.alone}=1")
    returned = f"{called}({', '.join(arguments)}){'' if how.alone is None else '[0]'}"
    parameters = ", ".join([data, *(positional if is_by_position else names)])
    return f": def {target.call or 'draw'}({parameters}): return {returned}"
