"""The kinds of planted bugs: each is a function that finds its places in a file.

A function takes a `Module` and yields, for each bug that it can plant, the edits that plant it. A
new kind is one function and one line in `KINDS`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from dpaudit.errors import UsageError
from dpaudit.mutating.syntax import Edit, Module
from dpaudit.wording import did_you_mean

Edits = tuple[Edit, ...]

# Functions that draw noise, by the last part of their names: the index of the argument that is the
# scale (numpy, random, torch; rvs of scipy; Laplace and Normal of torch.distributions).
_SCALED = {
    **dict.fromkeys(("laplace", "normal", "gumbel", "logistic", "gauss", "normalvariate"), 1),
    **dict.fromkeys(("rvs", "Laplace", "Normal", "Gumbel", "normal_"), 1),
    "exponential": 0,
}
# Functions whose first argument, with this name, is 1 divided by a scale.
_RATES = {"expovariate": "lambd", "exponential_": "lambd", "dlaplace.rvs": "a"}
# Times this, a rate gives noise that is 0, but for a probability below any that matters.
_HUGE = "1e6"
# Functions that draw noise of scale 1. Those of jax.random have no other scale.
_UNIT = (
    *("standard_normal", "standard_exponential", "standard_cauchy", "randn", "randn_like"),
    "geometric",
)
_OF_JAX = ("laplace", "normal", "gumbel", "logistic", "exponential", "cauchy", "truncated_normal")
# Beginnings of the names of OpenDP's constructors that take a scale.
_OF_OPENDP = (
    *("make_laplace", "make_gaussian", "make_geometric", "make_base_"),
    *("then_laplace", "then_gaussian", "then_geometric"),
)
# Keyword arguments that are the scale of noise, in any call, and those that are a privacy budget.
_SCALES = ("scale", "sigma", "b", "std", "stddev", "noise_multiplier")
_BUDGETS = ("epsilon", "eps")
# Methods of mechanisms of libraries that take a value and return it with noise.
_RELEASING = ("randomise", "randomize", "add_noise", "quick_result")
_SEEDED = ("default_rng", "Random", "RandomState", "PRNGKey", "random.key")


class Noise(NamedTuple):
    """A call that draws noise, or that makes what draws it.

    scale: the argument that is the scale of the noise; None for a call without one.
    is_rate: whether `scale` is 1 divided by the scale.
    is_centred: whether the call adds the noise to no value.
    is_maker: whether the call returns no noise, but what draws it.
    """

    call: ast.Call
    scale: ast.expr | None
    is_rate: bool = False
    is_centred: bool = True
    is_maker: bool = False


def _noise(module: Module) -> list[Noise]:
    return [noise for call in module.nodes(ast.Call) if (noise := _noise_of(module, call))]


def _noise_of(module: Module, call: ast.Call) -> Noise | None:
    name = module.full_name(call.func)
    last = name.rpartition(".")[2]
    by_name = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
    stated = next((by_name[key] for key in _SCALES if key in by_name), None)
    if name.startswith("jax.random."):
        return Noise(call, None) if last in _OF_JAX else None
    if last in _UNIT:
        return Noise(call, None)
    for ending, argument in _RATES.items():
        if f".{name}".endswith(f".{ending}"):
            rate = by_name.get(argument, _argument(call, 0))
            is_centred = "loc" not in by_name and _argument(call, 1) is None
            return Noise(call, rate, is_rate=True, is_centred=is_centred)
    if last.startswith(_OF_OPENDP):
        return Noise(call, stated or _scale_of_opendp(call, last), is_maker=True)
    if last in _SCALED and "." in name:
        location = by_name.get("loc", _argument(call, 0) if _SCALED[last] else None)
        is_centred = location is None or getattr(location, "value", None) == 0
        scale = stated or _argument(call, _SCALED[last])
        if scale is None and any(key in by_name for key in _BUDGETS):
            return None  # Laplace(epsilon=…) of diffprivlib
        return Noise(call, scale, is_centred=is_centred, is_maker=last[0].isupper())
    if stated is not None and name not in module.defined:
        return Noise(call, stated, is_maker=True)
    return None


def _argument(call: ast.Call, index: int) -> ast.expr | None:
    arguments = call.args[: index + 1]
    is_known = len(arguments) > index and not any(isinstance(a, ast.Starred) for a in arguments)
    return arguments[index] if is_known else None


def _scale_of_opendp(call: ast.Call, name: str) -> ast.expr | None:
    """Return the scale: the only argument, or the one after the domain and the metric, which are
    often given as `*space`."""
    if call.args and isinstance(call.args[0], ast.Starred):
        return call.args[-1] if len(call.args) > 1 else None
    takes_space = name.startswith("make_") and not name.startswith("make_base_")
    return _argument(call, 2 if takes_space else 0)


def _scale_halved(module: Module) -> Iterator[Edits]:
    noises = _noise(module)
    for noise in noises:
        if noise.scale is not None:
            yield (_times(module, "2" if noise.is_rate else "0.5", noise.scale),)
        elif noise.is_centred and not noise.is_maker:
            yield (Edit(noise.call, f"(0.5 * {module.text_of(noise.call)})"),)
    with_scale = [noise.call for noise in noises]
    for call in module.nodes(ast.Call):
        budget = None if call in with_scale else _budget(module, call)
        if budget is not None:
            yield (_times(module, "2", budget),)


def _budget(module: Module, call: ast.Call) -> ast.expr | None:
    """Return the argument of a call of a library that is its ε."""
    name = module.full_name(call.func)
    if name in module.defined:
        return None
    for keyword in call.keywords:
        if keyword.arg in _BUDGETS:
            return keyword.value
    return _argument(call, 0) if name.startswith("pydp.") else None


def _no_noise(module: Module) -> Iterator[Edits]:
    for noise in _noise(module):
        if not noise.is_maker and (edit := _without(module, noise)) is not None:
            yield (edit,)
    makers = {noise.call for noise in _noise(module) if noise.is_maker}
    # Variables and attributes that hold a measurement of OpenDP.
    made = {
        module.text_of(target)
        for statement in module.nodes(ast.Assign)
        if not makers.isdisjoint(ast.walk(statement.value))
        for target in statement.targets
    }
    for call in module.nodes(ast.Call):
        is_method = isinstance(call.func, ast.Attribute) and call.func.attr in _RELEASING
        is_library = module.full_name(call.func).startswith("diffprivlib.tools.")
        if call.args and (is_method or is_library or module.text_of(call.func) in made):
            yield (Edit(call, module.operand(call.args[0])),)


def _without(module: Module, noise: Noise) -> Edit | None:
    """Return the edit that removes noise: its values become 0, and keep their shape."""
    if noise.is_centred:
        return Edit(noise.call, f"(0 * {module.text_of(noise.call)})")
    factor = _HUGE if noise.is_rate else "0"
    return None if noise.scale is None else _times(module, factor, noise.scale)


def _times(module: Module, factor: str, node: ast.expr) -> Edit:
    """Return the edit that multiplies an argument by a factor."""
    return Edit(node, f"{factor} * {module.operand(node)}")


def _fixed_seed(module: Module) -> Iterator[Edits]:
    for call in module.nodes(ast.Call):
        name = module.full_name(call.func)
        if f".{name}".endswith(tuple(f".{ending}" for ending in _SEEDED)):
            yield (Edit(call, f"{module.text_of(call.func)}(0)"),)
    for function in module.nodes(ast.FunctionDef):
        arguments = function.args
        names = [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
        parts = [part for part in ast.walk(function) if isinstance(part, ast.Attribute)]
        if "rng" in names and any(module.text_of(part.value) == "rng" for part in parts):
            numpy = module.name_in_file("numpy") or '__import__("numpy")'
            body = function.body[1:] if ast.get_docstring(function) else function.body
            # A line between a function and its decorators would be a mistake in syntax.
            if body and not getattr(body[0], "decorator_list", ()):
                line = f"rng = {numpy}.random.default_rng(0)"
                yield (Edit(body[0], module.text_after(line, body[0])),)


def _noise_reused(module: Module) -> Iterator[Edits]:
    earlier: dict[tuple[str, ast.AST | None], ast.Call] = {}
    for call in [noise.call for noise in _noise(module) if not noise.is_maker]:
        text, block = module.text_of(call), _block(module, call)
        first = earlier.get((text, block))
        if first is not None and block is not None and module.function_of(call) is not None:
            yield (Edit(first, f"(reused_noise := {text})"), Edit(call, "reused_noise"))
        earlier[text, block] = call


def _block(module: Module, node: ast.AST) -> ast.AST | None:
    """Return the first statement of the block around a node; None if the node's statement runs it
    often or not always, as in a comprehension or a lambda."""
    rare = ast.Lambda | ast.IfExp | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
    simple = ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Return | ast.Expr
    for part, outer in pairwise([*module.around(node), module.tree]):
        if isinstance(part, ast.stmt):
            blocks = [value for _, value in ast.iter_fields(outer) if isinstance(value, list)]
            firsts = (block[0] for block in blocks if part in block)
            return next(firsts, None) if isinstance(part, simple) else None
        if isinstance(part, rare):
            return None
    return None


class _Clip(NamedTuple):
    """A clipped value. limit: the upper bound; None if it is no single argument."""

    node: ast.expr
    value: str
    limit: ast.expr | None


def _clips(module: Module) -> Iterator[_Clip]:
    for call in module.nodes(ast.Call):
        if isinstance(call.func, ast.Attribute) and call.func.attr in ("clip", "clamp"):
            yield from _clip_call(module, call, call.func)
        elif (clip := _nested_clip(module, call)) is not None:
            yield clip
    for product in module.nodes(ast.BinOp):
        left, right = product.left, product.right
        if isinstance(product.op, ast.Div) and _is_norm_bound(module, right, "max"):
            yield _Clip(product, module.operand(left), None)
        elif isinstance(product.op, ast.Mult):
            for value, bound in ((left, right), (right, left)):
                if _is_norm_bound(module, bound, "min"):
                    yield _Clip(product, module.operand(value), None)


def _clip_call(module: Module, call: ast.Call, function: ast.Attribute) -> Iterator[_Clip]:
    package = module.full_name(function.value)
    is_function = package.partition(".")[0] in ("numpy", "jax", "torch")
    arguments = call.args if is_function else [function.value, *call.args]
    by_name = {keyword.arg: keyword.value for keyword in call.keywords}
    upper = [*(by_name[key] for key in ("a_max", "max") if key in by_name), *arguments[2:3]]
    if arguments:
        value = module.operand(arguments[0])
        if is_function and package != "torch":  # these functions take lists, too
            value = f"{module.text_of(function.value)}.asarray({module.text_of(arguments[0])})"
        yield _Clip(call, value, next(iter(upper), None))


def _nested_clip(module: Module, call: ast.Call) -> _Clip | None:
    """Return a call as a clip if it is `min(max(a, low), high)`, or the like with the two functions
    or the arguments in another order."""
    inner_names = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum"}
    name = module.last_name(call.func)
    if name not in inner_names or len(call.args) != 2:
        return None
    for inner, outer in (call.args, reversed(call.args)):
        if not isinstance(inner, ast.Call) or len(inner.args) != 2:
            continue
        if module.last_name(inner.func) == inner_names[name]:
            value, bound = _value_first(module, inner.args, outer)
            return _Clip(call, module.operand(value), outer if name.startswith("min") else bound)
    return None


def _value_first(module: Module, pair: list[ast.expr], other_bound: ast.expr) -> list[ast.expr]:
    """Return the clipped value and its bound: the value is the data or the variable of a loop, has
    no name of the other bound, or is no constant."""
    around = list(module.around(other_bound))
    loops = [*around, *(loop for part in around for loop in getattr(part, "generators", ()))]
    targets = [loop.target for loop in loops if isinstance(loop, ast.For | ast.comprehension)]
    varying = {_data(module, other_bound)}.union(*map(_names, targets))

    def rank(node: ast.expr) -> tuple[bool, bool, bool]:
        names = _names(node)
        return not names.isdisjoint(varying), names.isdisjoint(_names(other_bound)), bool(names)

    return sorted(pair, key=rank, reverse=True)


def _names(node: ast.expr) -> set[str | None]:
    """Return the names of variables and of attributes in an expression."""
    names = {getattr(part, "attr", getattr(part, "id", None)) for part in ast.walk(node)}
    return names - {None, "self"}


def _is_norm_bound(module: Module, node: ast.expr, name: str) -> bool:
    """Return whether a node is `max(1, norm / C)` or `min(1, C / norm)`. A count is bounded, not a
    norm, in `total / max(count, 1)`."""
    if not isinstance(node, ast.Call) or len(node.args) != 2:
        return False
    norms = [a for a in node.args if not (isinstance(a, ast.Constant) and a.value == 1)]
    texts = [module.text_of(a).replace("normal", "") for a in norms]
    is_norm = any(isinstance(a, ast.BinOp) for a in norms) or "norm" in "".join(texts)
    return len(norms) == 1 and is_norm and module.last_name(node.func) in (name, f"{name}imum")


def _no_clipping(module: Module) -> Iterator[Edits]:
    for clip in _clips(module):
        yield (Edit(clip.node, clip.value),)


def _scale_from_data(module: Module) -> Iterator[Edits]:
    constants: list[ast.expr] = []
    for noise in _noise(module):
        scale = noise.scale
        if isinstance(scale, ast.BinOp) and isinstance(scale.op, ast.Div):
            scale = scale.left  # the sensitivity
        constants += [] if scale is None or noise.is_rate else [scale]
    constants += [clip.limit for clip in _clips(module) if clip.limit is not None]
    numpy = module.name_in_file("numpy")
    values = "{}" if numpy is None else f"{numpy}.ravel({{}}).tolist()"
    for constant in constants:
        is_named = isinstance(constant, ast.Name) and constant.id.isupper()
        data = _data(module, constant)
        if data is not None and (is_named or isinstance(constant, ast.Constant)):
            largest = f"max({values.format(data)}, default={module.text_of(constant)})"
            yield (Edit(constant, largest),)


def _data(module: Module, node: ast.AST) -> str | None:
    """Return the name of the first parameter of the function around a node, which is the data."""
    function = module.function_of(node)
    if function is None or function.name == "__init__":
        return None
    names = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
    return next((name for name in names if name not in ("self", "cls", "rng")), None)


def _count_is_exact(module: Module) -> Iterator[Edits]:
    noises = [noise for noise in _noise(module) if not noise.is_maker]
    for quotient in module.nodes(ast.BinOp):
        if not isinstance(quotient.op, ast.Div):
            continue
        for noise in _within(module, quotient.right, noises):
            if (edit := _without(module, noise)) is not None:
                yield (edit,)


def _within(module: Module, node: ast.expr, noises: Sequence[Noise]) -> list[Noise]:
    """Return the noise in an expression, also by variables of its function."""
    names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    function = module.function_of(node)
    values = [
        statement.value
        for statement in module.nodes(ast.Assign)
        if function is not None and module.function_of(statement) is function
        if any(getattr(target, "id", None) in names for target in statement.targets)
    ]
    inside = {part for value in (node, *values) for part in ast.walk(value)}
    return [noise for noise in noises if noise.call in inside]


def _off_by_one(module: Module) -> Iterator[Edits]:
    for comparison in module.nodes(ast.Compare):
        sign = {ast.Gt: ">=", ast.GtE: ">"}.get(type(comparison.ops[0]))
        if sign is not None and len(comparison.ops) == 1:
            left, right = map(module.operand, (comparison.left, comparison.comparators[0]))
            yield (Edit(comparison, f"{left} {sign} {right}"),)
    for call in module.nodes(ast.Call):
        if module.full_name(call.func) == "range" and len(call.args) == 1:
            number = call.args[0]
            if not isinstance(number, ast.Constant) and module.text_of(number) != "size":
                yield (Edit(number, f"{module.operand(number)} - 1"),)


# Maps the name of each kind to the function that finds its places. If two kinds plant the same bug,
# it has the name of the first.
KINDS: Mapping[str, Callable[[Module], Iterator[Edits]]] = {
    "scale-halved": _scale_halved,
    "count-is-exact": _count_is_exact,
    "no-noise": _no_noise,
    "fixed-seed": _fixed_seed,
    "noise-reused": _noise_reused,
    "no-clipping": _no_clipping,
    "scale-from-data": _scale_from_data,
    "off-by-one": _off_by_one,
}


def checked(kinds: Iterable[str]) -> tuple[str, ...]:
    """Return names of kinds. Raises UsageError for an unknown one."""
    kinds = [kinds] if isinstance(kinds, str) else kinds
    for name in kinds:
        if name not in KINDS:
            why = f"unknown kind {name!r}; known: {', '.join(KINDS)}.{did_you_mean(name, KINDS)}"
            raise UsageError(why, code="option-invalid")
    return tuple(kinds)
