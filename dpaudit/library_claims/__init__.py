"""Ask libraries for the privacy claims of their own objects: one file for each library.

`ask` recognises the library by the module of an object's type, and imports no library. This package
needs only Python 3.8 and the standard library, so that it can run in the environment of the
mechanism, where dpaudit need not be installed.

question
    The pair of inputs for which a library is asked for its claim, and the δ that the user wants.
asked
    The call or attribute that gave the claim, as text.
answer
    A dict with `claim`, the parameters of the claim by name, `asked`, and `answer`, the result of
    the call as text; `ask` adds `library` and `version`.
relation
    The kind and distance of a neighbouring relation, such as ("l1", 1.0).
"""

from __future__ import annotations

from . import (
    autodp,
    diffprivlib,
    dp_accounting,
    jax_privacy,
    opacus,
    opendp,
    pipeline_dp,
    pydp,
    tmlt,
)
from .answers import NoClaim as NoClaim
from .answers import Question as Question
from .answers import version_of
from .dataset_functions import as_function as as_function

TYPE_CHECKING = False  # avoids the import of typing
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

# Maps the name of a library's top-level module to the module of this package that reads the privacy
# claims of the library's objects.
LIBRARIES: dict[str, Any] = {
    "opendp": opendp,
    "diffprivlib": diffprivlib,
    "pydp": pydp,
    "dp_accounting": dp_accounting,
    "autodp": autodp,
    "pipeline_dp": pipeline_dp,
    "tmlt": tmlt,
    "opacus": opacus,
    "jax_privacy": jax_privacy,
}
# Name of an attribute that a mechanism may have. It holds the library's object that states the
# claim of the mechanism, such as an OpenDP measurement, or a function that returns this object.
SOURCE = "claim_source"


def ask(function: Any, question: Question) -> dict[str, Any]:
    """Return the answer of a library about `function`: an object of the library, a method or
    function of the library, or a function whose attribute `claim_source` names such an object.
    Raises NoClaim if it comes from no known library, if the library refuses or fails, or if the
    claim allows every leak."""
    for thing in _objects(function, question):
        name = _library_of(thing)
        if name is None:
            continue
        library = LIBRARIES[name]
        try:
            answer: dict[str, Any] = library.ask(thing, question)
        except NoClaim:
            raise
        except Exception as error:  # the library's own code may raise any exception
            words = f"{type(error).__name__}: {_last_line(str(error))}"
            raise NoClaim(
                f"{library.NAME} cannot state a claim for {type(thing).__name__} ({words}); give "
                "the claim itself",
                code="claim-failed",
            ) from error
        return {"library": library.NAME, "version": version_of(library.PACKAGE), **answer}
    raise NoClaim(
        f"no library is known that makes a claim for {_words(function)}; give the claim itself "
        f"(known: {', '.join(library.NAME for library in LIBRARIES.values())})",
        code="claim-source-unknown",
    )


def _objects(function: Any, question: Question) -> Iterator[Any]:
    """Yield the objects that may state the claim, the most specific first."""
    while True:
        owner = getattr(function, "__self__", None)
        for holder in (function, owner):
            source = getattr(holder, SOURCE, None)
            if source is not None:
                is_function = callable(source) and _library_of(source) is None
                yield _called(source, question) if is_function else source
        if owner is not None:
            yield owner
        yield function
        inner = getattr(function, "func", None)  # the function of a functools.partial
        if inner is None:
            return
        function = inner


def _called(source: Callable[..., Any], question: Question) -> Any:
    """Return the result of a mechanism's `claim_source`. It gets d1 if it takes an argument."""
    import inspect  # not needed for other mechanisms

    if not inspect.signature(source).parameters:
        return source()
    if question.pair is None:
        raise NoClaim(
            "the claim depends on an input, which a search chooses; give the claim itself",
            code="claim-not-for-pair",
        )
    return source(question.pair[0])


def _library_of(thing: Any) -> str | None:
    """Return the library in `LIBRARIES` that defines an object, or None."""
    kinds = [thing] if isinstance(thing, type) or hasattr(thing, "__code__") else []
    for kind in (*kinds, *type(thing).__mro__):
        name = str(getattr(kind, "__module__", "")).partition(".")[0]
        if name in LIBRARIES:
            return name
    return None


def _last_line(text: str) -> str:
    """Return the last line of an error message with a letter or digit, cut to 300 characters."""
    # If a function of the user raises in OpenDP, the message has a traceback before this line.
    lines = [line.strip() for line in text.splitlines() if any(map(str.isalnum, line))]
    return lines[-1][:300] if lines else ""


def _words(function: Any) -> str:
    name = str(getattr(function, "__qualname__", type(function).__name__))
    source = getattr(function, SOURCE, None)
    return name if source is None else f"{name}, whose {SOURCE} is of type {type(source).__name__}"
