"""Draws of a search: of single inputs, so that one set serves every pair that the input is in.

They choose pairs and certify nothing: what an audit draws later comes from other streams.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, suppress
from copy import deepcopy
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

import numpy as np

from dpaudit.adapters.loading import add_adversary, load_mechanism
from dpaudit.auditing.request import digest
from dpaudit.auditing.spec import AuditSpec
from dpaudit.draws import SelectionDraws
from dpaudit.errors import DatasetError, MechanismError, TargetError
from dpaudit.outcomes import Outcomes, Raised, concatenate, failures, from_raw
from dpaudit.sampling.generators import carried_generators, chunk_streams, preserved
from dpaudit.sampling.state import changed, kept_state
from dpaudit.targets.parameters import NONE
from dpaudit.targets.target import CallableTarget, ImportedTarget

# What names the streams of a search, where those of an audit have the number of a stage.
SEARCHING, ALONE = 100, 101


# Exceptions that a value of a type which the code was not written for raises.
_OF_TYPES = frozenset({"TypeError", "AttributeError"})


class Input:
    """One input, and what was drawn for it. is_alone: by a call for each draw."""

    def __init__(self, number: int, dataset: Any, *, is_alone: bool = False) -> None:
        self.number, self.dataset, self.is_alone = number, dataset, is_alone
        self.parts: list[Outcomes] = []
        self.raised = 0
        self.kinds: set[str] = set()
        self.words = ""

    @property
    def draws(self) -> int:
        return sum(part.size for part in self.parts)

    @property
    def only_raises(self) -> bool:
        return self.raised == self.draws > 0

    @property
    def has_wrong_type(self) -> bool:
        """Whether every draw has raised the exception of code that was written for other types."""
        return self.only_raises and len(self.kinds) == 1 and self.kinds <= _OF_TYPES


class Inputs:
    """All inputs of a search, each once. unformed: why the first of them that cannot have the form
    of the others has not."""

    def __init__(self, formed: Callable[[Any], Any]) -> None:
        self._formed = formed
        self._inputs: dict[str, Input | None] = {}
        self._alone: dict[int, Input] = {}
        self.unformed = ""

    def of(self, dataset: Any) -> Input | None:
        """Return the input of a dataset; None where it cannot have the form of the others."""
        key = repr(dataset)
        if "..." in key or "array(" in key:  # what NumPy and pandas write may leave values out
            key = digest(dataset)
        if key not in self._inputs:
            try:
                given = self._formed(dataset)
            except DatasetError as error:
                self._inputs[key] = None
                self.unformed = self.unformed or str(error)
            else:
                self._inputs[key] = Input(len(self._inputs), given)
        return self._inputs[key]

    def again(self, one: Input) -> Input:
        """Return the same input without its draws."""
        key = f"again {one.number}"
        if key not in self._inputs:
            self._inputs[key] = Input(len(self._inputs), one.dataset, is_alone=one.is_alone)
        fresh = self._inputs[key]
        assert fresh is not None
        return fresh

    def alone(self, one: Input) -> Input:
        """Return an input for which the mechanism is called once for each draw."""
        if one.number not in self._alone:
            self._alone[one.number] = Input(one.number, one.dataset, is_alone=True)
        return self._alone[one.number]


class Drawing:
    """Draws for single inputs; a context manager, which restores the generators it has seeded."""

    def __init__(self, spec: AuditSpec) -> None:
        """Raises what loading the mechanism does."""
        self.draws = 0
        self._seed = spec.seed
        self._mechanism = add_adversary(load_mechanism(spec.target), spec.claim.adversary)
        alone = one_by_one(spec)
        self._alone = None
        if alone is not None and not self._mechanism.interleaved:
            with suppress(TargetError):
                self._alone = add_adversary(load_mechanism(alone.target), spec.claim.adversary)
        self._carried = carried_generators(*self._mechanism.parts)
        self._state = kept_state(*self._mechanism.parts)
        self._stack = ExitStack()

    @property
    def single_draws(self) -> bool:
        """Whether the mechanism is called once for each draw."""
        return self._mechanism.interleaved

    @property
    def has_alone(self) -> bool:
        """Whether a mechanism of batches can be called for single draws, too."""
        return self._alone is not None

    @property
    def kept(self) -> tuple[str, ...]:
        """Variables of the mechanism that calls have changed."""
        return tuple(changed(self._state, kept_state(*self._mechanism.parts)))

    def __enter__(self) -> Self:
        self._stack.enter_context(preserved(self._carried))
        self._stack.callback(self._mechanism.close)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def fill(self, one: Input, draws: int) -> None:
        """Draw for an input until it has so many draws. Raises MechanismError."""
        missing = draws - one.draws
        if missing <= 0:
            return
        key = (0, ALONE if one.is_alone else SEARCHING, one.number, len(one.parts))
        streams = chunk_streams(self._seed, key, self._carried)
        # A copy, since a mechanism that changes its input must not change what is audited later.
        mechanism = self._alone if one.is_alone and self._alone is not None else self._mechanism
        raw = mechanism.sample(deepcopy(one.dataset), missing, streams.mechanism)
        drawn = from_raw(raw, types=mechanism.types_by_draw, text_orders=mechanism.text_orders)
        if drawn.size != missing:
            raise MechanismError(
                f"{drawn.size:,} outputs came back where {missing:,} were asked",
                code="wrong-number-of-outputs",
            )
        one.parts.append(drawn)
        by_kind = failures(drawn)
        failed = sum(by_kind.values())
        one.kinds |= by_kind.keys()
        if failed and not one.words:
            one.words = next(entry.words for entry in raw if isinstance(entry, Raised))
        one.raised += failed
        self.draws += missing


def one_by_one(spec: AuditSpec) -> AuditSpec | None:
    """Return an audit that calls its mechanism once for each draw; None where there is none: of
    compositions, and in processes of their own."""
    target = spec.target
    if spec.on_error == "fail" or not isinstance(target, CallableTarget | ImportedTarget):
        return None
    return replace(spec, target=replace(target, batch_arg=NONE))


def paired(d1: Input, d2: Input, draws: int) -> SelectionDraws:
    """Return the first draws of two inputs, so many of each, in an order of no meaning: folds are
    taken by position, and either input must be in all of them."""
    drawn = [concatenate(one.parts).take(slice(draws)) for one in (d1, d2)]
    is_d1 = np.arange(2 * draws) < draws
    order = np.random.default_rng(draws).permutation(2 * draws)
    return SelectionDraws(concatenate(drawn).take(order), is_d1[order])
