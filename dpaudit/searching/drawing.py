"""Random inputs by Hypothesis: independent draws, and draws that Hypothesis guides and shrinks. The
same seed gives the same inputs, whatever other modules the process has imported."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from dpaudit.errors import DatasetError, DpauditError
from dpaudit.searching.space import strategies
from dpaudit.searching.timeouts import SearchEnded, within
from dpaudit.wording import install_command, on_one_line

# Number of inputs that are drawn in one run of Hypothesis. Each run starts with small inputs and
# goes on to larger ones.
INPUTS_PER_RUN = 50


def drawn(strategy: Any, seed: int, words: str, *, is_own: bool = False) -> Iterator[Any]:
    """Yield random values of a strategy of Hypothesis without end; values may repeat. If user code
    makes the values (`is_own`), a time limit holds, since it may never return. Raises DatasetError,
    with a description of the space, if the strategy fails or gives no values."""
    strategies()
    number = 0
    while True:
        values = _round(strategy, _mixed(seed, number), words, is_own)
        if not values:
            raise DatasetError(
                f"{words} gives no inputs; loosen what its filters ask for", code="space-invalid"
            )
        yield from values
        number += 1


def _round(strategy: Any, seed: int, words: str, is_own: bool) -> list[Any]:
    from hypothesis import Phase
    from hypothesis.errors import HypothesisException

    values: list[Any] = []
    label = f"{words} (seed {seed})"

    def keep(value: Any) -> None:
        values.append(value)

    def run() -> None:
        try:
            _run(
                keep,
                strategy,
                seed,
                examples=INPUTS_PER_RUN,
                phases=[Phase.generate],
                derandomize=True,
            )
        except HypothesisException as error:
            if not values:
                raise DatasetError(
                    f"{label} gives no inputs: {error}", code="space-invalid"
                ) from error

    if is_own:
        within(run, label, lambda: len(values))
    else:
        run()
    return values


def _mixed(seed: int, number: int) -> int:
    """Return the seed of a run of Hypothesis. Different runs have unrelated seeds."""
    digest = hashlib.blake2b(f"{seed} {number}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big")


class _Exceeds(Exception):
    """Raised when the score of a value exceeds the limit. Hypothesis treats this as a failed test,
    and shrinks the value."""


def look_at_random(
    strategy: Callable[[], Any],
    look: Callable[[Any], float],
    exceeds: Callable[[float], bool],
    *,
    seed: int,
    examples: int,
) -> str:
    """Call `look` with random values, which Hypothesis guides towards large scores. Once a score
    exceeds a limit, Hypothesis shrinks the value. Return a note for the report if no values could
    be made, for example without Hypothesis, else "".

    strategy: returns the strategy of the values. Values that are None are skipped.
    look: returns the score of a value, which is finite. It may raise SearchEnded or DpauditError to
        end the search.
    exceeds: whether a score exceeds the limit.
    examples: number of values, not counting those that are tried while shrinking.
    """
    try:
        import hypothesis
        import hypothesis.errors
    except ImportError:
        command = install_command("search")
        return f"random pairs were left out, since Hypothesis is not installed: {command}"
    stopped: list[Exception] = []

    def search(value: Any) -> None:
        if stopped or value is None:
            return
        try:
            score = look(value)
        except (SearchEnded, DpauditError) as error:  # Hypothesis would shrink a value that raises
            stopped.append(error)
            return
        hypothesis.target(score)
        if exceeds(score):
            raise _Exceeds

    phase = hypothesis.Phase
    try:
        _run(
            search,
            strategy(),
            seed,
            examples=examples,
            phases=[phase.generate, phase.target, phase.shrink],
            verbosity=hypothesis.Verbosity.quiet,
            report_multiple_bugs=False,
        )
    except _Exceeds:
        pass
    # Raised for a mistake in the user's strategy, such as a filter that no value passes.
    except hypothesis.errors.HypothesisException as error:
        return f"random pairs were left out: {on_one_line(str(error))}"
    if stopped:
        raise stopped[0]
    return ""


def _run(
    call: Callable[[Any], None], strategy: Any, seed: int, *, examples: int, **settings: Any
) -> None:
    """Call a function with random values of a strategy, as Hypothesis calls a test."""
    import hypothesis

    decorator: Any = hypothesis.given(strategy)
    test = decorator(call)
    test = hypothesis.settings(
        database=None,
        deadline=None,
        max_examples=examples,
        suppress_health_check=list(hypothesis.HealthCheck),
        **settings,
    )(test)
    with _without_constants_of_modules():
        seeded: Any = hypothesis.seed(seed)
        seeded(test)()


@contextmanager
def _without_constants_of_modules() -> Iterator[None]:
    """Stop Hypothesis from drawing constants of the source code of loaded modules."""
    # With them, the same seed would give other values in a test session than in a terminal, since
    # other modules are loaded there.
    try:
        from hypothesis.internal.conjecture import providers
        from hypothesis.internal.constants_ast import Constants

        constants, cache = providers._get_local_constants, providers.CONSTANTS_CACHE.cache
        providers._get_local_constants = Constants
    # Older versions of Hypothesis lack the private names used above, and newer versions may change
    # them. Then Hypothesis still draws constants of loaded modules.
    except (ImportError, AttributeError):
        yield
        return
    cache.clear()
    try:
        yield
    finally:
        providers._get_local_constants = constants
        cache.clear()
