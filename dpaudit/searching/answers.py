"""What a function without noise returns for datasets: each asked once, and some again to see that
it says the same."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from dpaudit.adapters.calls import as_outcome
from dpaudit.errors import UsageError
from dpaudit.outcomes import Raised
from dpaudit.processes.origin import FAILURES, end_if_forked
from dpaudit.searching.parts import key
from dpaudit.wording import shown

# So many datasets are asked twice from the start; of the others, those that become witnesses.
_TWICE = 30
# As many answers are kept: more than most searches ask for, and little memory.
_MOST_KEPT = 50_000


class Answers:
    """The answers of one function, as plain Python that nobody changes.

    function: of the dataset alone.  read: what makes an output plain, which may raise UsageError.
    formed: makes of a dataset what the function takes, a copy, which it may change.
    """

    def __init__(
        self,
        function: Callable[[Any], Any],
        read: Callable[[Any, str], Any],
        name: str,
        formed: Callable[[Any], Any],
    ) -> None:
        self._function, self._read, self._name, self._formed = function, read, name, formed
        self._kept: dict[str, Any] = {}
        self._calls = 0

    def __len__(self) -> int:
        """Return how often the function was called, by which a watch sees that it goes on."""
        return self._calls

    def of(self, dataset: Any) -> Any:
        """Return the plain output, or `Raised`. Raises DatasetError for a dataset that cannot be
        made into the form, and UsageError for outputs that cannot be read, or that differ."""
        named = key(dataset)
        if named in self._kept:
            return self._kept[named]
        answer = self._asked(dataset)
        if len(self._kept) < _TWICE:
            self._check_same(dataset, answer)
        if len(self._kept) < _MOST_KEPT:
            self._kept[named] = answer
        return answer

    def check(self, dataset: Any) -> None:
        """Raise UsageError if the function says something else now."""
        self._check_same(dataset, self.of(dataset))

    def _check_same(self, dataset: Any, answer: Any) -> None:
        again = self._asked(dataset)
        if _named(again) == _named(answer):
            return
        said = (
            f"{self._name} gave {shown(answer, 30)} and then {shown(again, 30)} for the same "
            f"input {shown(dataset, 40)}"
        )
        if _in_any_order(again) == _in_any_order(answer):
            raise UsageError(
                f"{said}: the same values in a random order, so that no distance can be computed; "
                "sort the output, or give --norm records, for which the order does not count",
                code="function-not-repeatable",
            )
        raise UsageError(
            f"{said}; a sensitivity is of a function without noise or state: name the part that "
            "computes the answer before noise is added",
            code="function-not-repeatable",
        )

    def _asked(self, dataset: Any) -> Any:
        given = self._formed(dataset)
        self._calls += 1
        owner = os.getpid()
        try:
            output = self._function(given)
        except FAILURES as error:
            end_if_forked(owner, error)
            return as_outcome(error)
        end_if_forked(owner)
        if isinstance(output, Raised):  # in another process
            return output
        return self._read(output, self._name)


def _named(answer: Any) -> str:
    # A message may name an address, which is another one each time.
    if isinstance(answer, Raised):
        return answer.kind
    # Records are compared in any order.
    return _in_any_order(answer) if isinstance(answer, tuple) else key(answer)


def _in_any_order(answer: Any) -> str:
    """Return a text that is the same for answers whose parts come in another order."""
    if isinstance(answer, list | tuple):
        return f"[{', '.join(sorted(map(_in_any_order, answer)))}]"
    if isinstance(answer, Mapping):
        items = (f"{name!r}: {_in_any_order(part)}" for name, part in answer.items())
        return f"{{{', '.join(sorted(items))}}}"
    return key(answer)
