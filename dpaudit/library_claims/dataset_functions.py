"""Turn objects of libraries into functions of a dataset, so that users need not write them."""

from __future__ import annotations

TYPE_CHECKING = False  # avoids the import of typing
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# Constructors of OpenDP that, according to their documentation, add separate noise to each entry of
# a vector.
_NOISE = ("make_laplace", "make_gaussian", "make_geometric", "make_canonical_noise", "make_noise")
# Combinators of OpenDP that change only how the privacy loss is stated.
_RESTATES = (
    *("make_zCDP_to_approxDP", "make_fix_delta", "make_approximate"),
    *("make_pureDP_to_zCDP", "make_pureDP_to_fixed_approxDP"),
)
# Attribute in which an OpenDP object records its constructor and arguments. The constructor shows
# whether the object adds separate noise to each entry of a vector, so that one call can make many
# draws. An object without this attribute is called once for each draw.
_RECORD = "__opendp_dict__"


def as_function(made: Any) -> Any:
    """Return a function of a dataset that uses `made`, an object of a library. Return any other
    object unchanged.

    An OpenDP measurement that adds independent noise to each entry of a vector of any length
    becomes a function of a dataset and a number of outputs (`ManyDraws`). An estimator of
    diffprivlib becomes a function that fits it and returns the fitted attributes. The attribute
    `claim_source` of the function is `made`.
    """
    library = _library(made)
    if library == "opendp" and is_entrywise(made):
        return ManyDraws(made)
    if library == "diffprivlib" and not isinstance(made, type):
        if hasattr(made, "randomise"):
            return made.randomise
        if hasattr(made, "fit"):
            return _named(lambda dataset: fitted(made, dataset), made)
    if library == "pydp":
        for method in ("add_noise", "quick_result"):
            if hasattr(made, method):
                return getattr(made, method)
    if library == "tmlt" and hasattr(made, "privacy_function"):
        from .tmlt import as_input  # not needed by other objects

        return _named(lambda dataset: made(as_input(made, dataset)), made)
    return made


def is_drawn_from(kind: type) -> bool:
    """Return whether `as_function` makes functions of instances of this class."""
    methods = {"diffprivlib": ("randomise", "fit"), "pydp": ("add_noise", "quick_result")}
    return any(hasattr(kind, name) for name in methods.get(_library(kind), ()))


def _library(thing: Any) -> str:
    """Return the first known library that defines the object's type or a base class, else ""."""
    known = ("opendp", "diffprivlib", "pydp", "tmlt")
    kinds = thing.__mro__ if isinstance(thing, type) else type(thing).__mro__
    names = (str(kind.__module__).partition(".")[0] for kind in kinds)
    return next((name for name in names if name in known), "")


def _named(function: Any, thing: Any) -> Callable[..., Any]:
    function.claim_source = thing
    function.__name__ = function.__qualname__ = type(thing).__name__
    return function  # type: ignore[no-any-return]  # a lambda of this module


def is_entrywise(measurement: Any) -> bool:
    """Return whether an OpenDP measurement adds independent noise to each entry of a vector of any
    length. The answer follows from its input domain and the recorded name of its constructor."""
    domain = getattr(measurement, "input_domain", None)
    is_vector = str(getattr(domain, "type", "")).startswith("VectorDomain")
    if not is_vector or getattr(domain, "size", None) is not None:
        return False
    inner = measurement
    while True:
        record = getattr(inner, _RECORD, None) or {}
        if record.get("__function__") in _NOISE:
            return record.get("__module__") == "measurements"
        if record.get("__function__") not in _RESTATES:
            return False
        inner = (record.get("__kwargs__") or {}).get("measurement")


class ManyDraws:
    """A function that makes many draws with one call of an OpenDP measurement. The measurement adds
    independent noise to each entry of a vector; the vector contains the dataset `size` times."""

    def __init__(self, measurement: Any) -> None:
        self.claim_source = measurement

    def __call__(self, dataset: Any, size: int) -> Any:
        """Return `size` outputs. Each is a vector as long as the dataset, or a number for a
        number."""
        plain = dataset.tolist() if hasattr(dataset, "tolist") else dataset
        is_vector = isinstance(plain, (list, tuple))
        entries = list(plain) if is_vector else [plain]
        if not entries:
            return [[]] * size
        noisy = self.claim_source(entries * size)
        if not is_vector:
            return noisy
        length = len(entries)
        return [noisy[start : start + length] for start in range(0, length * size, length)]


def fitted(estimator: Any, dataset: Any) -> dict[str, Any]:
    """Return the attributes, whose names end in "_", that an estimator learns from X or (X, y)."""
    from copy import deepcopy  # not needed by other objects

    model = deepcopy(estimator)
    model.fit(*dataset) if isinstance(dataset, tuple) else model.fit(dataset)
    names = (name for name in vars(model) if name.endswith("_") and not name.startswith("_"))
    return {name: vars(model)[name] for name in sorted(names)}
