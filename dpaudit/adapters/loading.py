"""From a target to the mechanism that it names."""

from __future__ import annotations

import os

from dpaudit.adapters.calls import Batches, SingleDraws
from dpaudit.adapters.composition import Composition, Repetition
from dpaudit.adapters.mechanism import Mechanism
from dpaudit.errors import TargetError
from dpaudit.inputs.values import resolved
from dpaudit.targets.construction import functions, is_made, post_processing
from dpaudit.targets.parameters import calling
from dpaudit.targets.target import (
    AnyTarget,
    CommandTarget,
    ComposedTarget,
    IsolatedTarget,
    RepeatedTarget,
)


def load_mechanism(target: AnyTarget) -> Mechanism:
    """Return the mechanism that a target names, ready to draw. Raises TargetError when it cannot be
    found, built or called as asked."""
    if isinstance(target, RepeatedTarget):
        return Repetition(load_mechanism(target.target), target.times)
    if isinstance(target, ComposedTarget):
        components = tuple(map(load_mechanism, target.parts))
        return Composition(target.name, components, post_processing(target.post_process))
    if isinstance(target, IsolatedTarget | CommandTarget):
        if not hasattr(os, "fork"):
            raise TargetError(f"{target.name}: a separate process (isolate) needs Linux or macOS")
        # Most audits do without.
        from dpaudit.adapters.command import Command
        from dpaudit.adapters.isolation import Isolated

        return Isolated(target) if isinstance(target, IsolatedTarget) else Command(target)
    function, post_process = functions(target)
    how = calling(function, target, is_made=is_made(target), unpacks=True)
    kind = SingleDraws if how.batch is None else Batches
    return kind(target.name, function, how, resolved(target.params), post_process)
