"""Import paths: `package.module:attr` and `path/to/file.py:attr`."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import pkgutil
import stat
import sys
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import Any

from dpaudit.errors import TargetError
from dpaudit.float_errors import user_errstate
from dpaudit.watching import step
from dpaudit.wording import FILE_PREFIX, did_you_mean, did_you_mean_file

LISTED = 10
_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)
_NO_PATH = (
    "target {!r} is not an import path; write package.module:function, or path/to/file.py:function"
)


def resolve(path: str) -> Any:
    """Return what an import path names; runs the code of the module.

    path: `package.module:attr`, with the working directory importable as under `python -m`, or
    `path/to/file.py:attr`; `attr` may be dotted. Raises TargetError, which lists what is there.
    """
    module_name, attribute = split(path)
    make_importable(os.getcwd())
    module = file_module(module_name) if is_file(module_name) else _named_module(module_name)
    found: Any = module
    for name in attribute.split("."):
        found = _attribute(found, name, path)
    return found


def loaded(path: str) -> Any:
    """Return what an import path names if its module is loaded and has it, else None."""
    module_name, _, attribute = path.rpartition(":")
    name = _unique(Path(module_name).resolve()) if is_file(module_name) else module_name
    found: Any = sys.modules.get(name)
    for part in attribute.split("."):
        found = getattr(found, part, None)
    return found


def split(path: str) -> tuple[str, str]:
    """Return the module (or file) and the attribute. Raises TargetError when one is missing."""
    module_name, colon, attribute = path.rpartition(":")
    if not colon:
        raise TargetError(_without_colon(path))
    if "::" in path:
        raise TargetError(f"target {path!r}: write one colon, {_with_one_colon(path)}")
    if module_name and "(" in attribute:
        named = f"{module_name}:{attribute.partition('(')[0]}"
        raise TargetError(f"target {path!r}: name the function alone, without a call, {named}")
    if not module_name or not all(part.isidentifier() for part in attribute.split(".")):
        raise TargetError(_NO_PATH.format(path))
    return module_name, attribute


def is_file(module_name: str) -> bool:
    """Return whether the part before the colon names a file rather than a module."""
    return module_name.endswith(".py") or "/" in module_name or os.sep in module_name


def located(path: str, base: Path | None) -> str:
    """Return the import path of a file that is found in `base`, not in the working directory."""
    module_name, colon, attribute = path.rpartition(":")
    if base is None or not colon or not is_file(module_name) or Path(module_name).is_file():
        return path
    return f"{base / module_name}:{attribute}" if (base / module_name).is_file() else path


def public_callables(owner: Any) -> list[str]:
    """Return the names a user may call in a module or object, those defined there first."""
    names = [name for name in vars_of(owner) if not name.startswith("_")]
    callables = [name for name in names if callable(getattr(owner, name, None))]
    if not isinstance(owner, ModuleType):
        return callables
    home = owner.__name__
    own = [one for one in callables if getattr(getattr(owner, one), "__module__", None) == home]
    return own or callables


def vars_of(owner: Any) -> list[str]:
    """Return the attribute names of a module in the order of its source, else of `dir`."""
    return list(vars(owner)) if isinstance(owner, ModuleType) else dir(owner)


def list_names(names: Iterable[str]) -> str:
    """Return `" There is: x, y."`, with ten names at most, or `""` for no names."""
    names = list(names)
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return f" There is: {', '.join(names[:LISTED])}{more}." if names else ""


def _with_one_colon(path: str) -> str:
    """Return what `file.py::Class::method`, as pytest has it, is to dpaudit."""
    module_name, _, attribute = path.partition("::")
    return f"{module_name}:{attribute.replace('::', '.').replace(':', '.')}"


def _without_colon(path: str) -> str:
    if path.endswith(".py"):
        if not Path(path).is_file():
            return f"{_no_such_file(path, Path(path).resolve())} A target is named {path}:NAME."
        there = ""
        with suppress(TargetError):  # of its code, which is said once the function is named
            make_importable(os.getcwd())
            there = list_names(public_callables(file_module(path)))
        ending = f".{there}" if there else ""
        return f"target {path!r} names a file only; add the function: {path}:NAME{ending}"
    if Path(path).is_file():
        return (
            f"target {path!r} is neither a Python nor a YAML file; a mechanism is named "
            "package.module:function or path/to/file.py:function, and a file of audits ends in "
            ".yaml"
        )
    if _is_module(path):
        return f"target {path!r} is a {_inside(_named_module(path))}"
    there = describe_non_file(Path(path)) if path else ""
    if there:
        return f"target {path!r} is {there}, not a Python file; write path/to/file.py:function"
    head, _, tail = path.rpartition(".")
    if head and _is_package(head) and not hasattr(_named_module(head), tail):
        return _no_such_module(path, path)
    example = _in_file(path)
    if not example and not all(part.isidentifier() for part in path.split(".")):
        return _NO_PATH.format(path)
    example = example or (f"{head}:{tail}" if head else f"{path}:NAME")
    return f"target {path!r} has no ':' between module and function; write {example}"


def _in_file(path: str) -> str:
    """Return what `folder/file/function` is meant to be, or `folder/file`, if there is the file."""
    head, _, tail = path.rpartition("/")
    if Path(f"{path}.py").is_file():
        return f"{path}.py:NAME"
    return f"{head}.py:{tail}" if head and Path(f"{head}.py").is_file() else ""


def _is_module(name: str) -> bool:
    make_importable(os.getcwd())
    with suppress(Exception, SystemExit):  # of the code of the packages that it is in
        return importlib.util.find_spec(name) is not None
    return False


def _is_package(name: str) -> bool:
    return _is_module(name) and hasattr(_named_module(name), "__path__")


def _inside(module: ModuleType) -> str:
    """Return what a module is, and how what is in it is named."""
    name, callables = module.__name__, public_callables(module)
    modules = _siblings(name)
    if modules and not callables:
        there = f"{name}.MODULE:NAME.{list_names(modules)}"
        return f"package; name what is in one of its modules: {there}"
    return f"module; name what is in it: {name}:NAME.{list_names(callables)}"


def _attribute(owner: Any, name: str, path: str) -> Any:
    with suppress(AttributeError):
        return getattr(owner, name)
    known = public_callables(owner)
    there = list_names(known) or " Nothing public is callable there."
    label = owner.__name__ if isinstance(owner, ModuleType) else repr(owner)
    if isinstance(owner, ModuleType) and label.startswith(FILE_PREFIX):
        label = str(owner.__file__)
    # A module that it imports is nothing to audit.
    named = [one for one in vars_of(owner) if not isinstance(getattr(owner, one, None), ModuleType)]
    raise TargetError(
        f"target {path!r}: {label} has no {name!r}.{did_you_mean(name, named)}{there}"
    )


def _named_module(name: str) -> ModuleType:
    try:
        with step(f"importing {name}"), user_errstate():
            return importlib.import_module(name)
    except ModuleNotFoundError as error:
        # Only a missing part of the very path asked for is a wrong name; anything else is a
        # dependency that the module itself failed to find.
        if error.name and f"{name}.".startswith(f"{error.name}."):
            raise TargetError(_no_such_module(name, error.name)) from None
        raise _broken(name, error) from error
    except (Exception, SystemExit) as error:
        raise _broken(name, error) from error


def make_importable(folder: str) -> None:
    """Let modules in a folder be imported, as those in the working directory under `python -m`."""
    if folder not in sys.path and "" not in sys.path:
        sys.path.insert(0, folder)


def _no_such_module(name: str, missing: str) -> str:
    parent, _, child = missing.rpartition(".")
    siblings = _siblings(parent)
    suggestion = did_you_mean(child, siblings)
    if not parent:
        return f"there is no module {missing!r} in {os.getcwd()} or on sys.path.{suggestion}"
    where = f"in the package {parent!r}"
    return f"there is no module {child!r} {where}.{suggestion}{list_names(siblings)}"


def _siblings(parent: str) -> list[str]:
    """Return the public modules in a package; of the whole path for the empty name."""
    if not parent:
        return modules_on_path()
    modules = pkgutil.iter_modules(getattr(sys.modules.get(parent), "__path__", []))
    return [one.name for one in modules if not one.name.startswith("_")]


def modules_on_path() -> list[str]:
    """Return the public modules that a user may have meant: those of Python itself never are."""
    names = (module.name for module in pkgutil.iter_modules())
    return [one for one in names if one[0] != "_" and one not in sys.stdlib_module_names]


def file_module(name: str) -> ModuleType:
    """Return the module of a Python file, which is run the first time. Raises TargetError."""
    file = Path(name).resolve()
    if not file.is_file():
        raise TargetError(_no_such_file(name, file))
    unique = _unique(file)
    return sys.modules[unique] if unique in sys.modules else _executed(unique, file, name)


def _unique(file: Path) -> str:
    """Return the name of a file's module. It depends on the path alone, so that a worker process
    that loads the same file can unpickle what another one has sent."""
    digest = hashlib.blake2b(str(file).encode(), digest_size=4).hexdigest()
    return f"{FILE_PREFIX}{file.stem}_{digest}"


def _no_such_file(name: str, file: Path) -> str:
    kind = describe_non_file(file)
    if kind:
        return f"{name!r} is {kind}, not a Python file"
    near = [other.name for other in sorted(file.parent.glob("*.py"))]
    return f"there is no file {name!r}.{did_you_mean_file(file.name, near)}{list_names(near)}"


def _executed(unique: str, file: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(unique, file)
    if spec is None or spec.loader is None:
        raise TargetError(f"{name!r} is not a Python file; its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[unique] = module
    try:
        with _folder_first(str(file.parent)), step(f"importing {name}"), user_errstate():
            spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[unique]
        if isinstance(error, Exception | SystemExit):
            raise _broken(name, error) from error
        raise
    return module


@contextmanager
def _folder_first(folder: str) -> Iterator[None]:
    """Let a file import its neighbours: before everything while it loads, last afterwards."""
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)
        if folder not in sys.path:
            sys.path.append(folder)


def _broken(name: str, error: BaseException) -> TargetError:
    message = f"{name!r} was found, but importing it failed: {type(error).__name__}: {error}"
    if isinstance(error, ImportError) and "relative import" in str(error):
        message += " (name it as package.module:function to use relative imports)"
    missing = isinstance(error, ModuleNotFoundError)
    remedy = f"; install it where {sys.executable} finds it" if missing else ""
    return TargetError(" ".join(message.split()) + _place(error) + remedy)


def _place(error: BaseException) -> str:
    """Return the innermost line of code that is not the import machinery's."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if "importlib" not in frame.filename and frame.filename != __file__
    ]
    return f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""


def describe_non_file(path: Path) -> str:
    """Return what a path leads to that is no regular file, such as `"a folder"`; else `""`."""
    try:
        return describe_mode(path.stat().st_mode)
    except (OSError, ValueError):  # not there, or a link to what is not; or no path at all
        is_link = path.is_symlink()
    return f"a symbolic link to {str(path.readlink())!r}, which is not there" if is_link else ""


def describe_mode(mode: int) -> str:
    """Return what is no regular file, by the mode that the system says; else `""`."""
    return next((name for is_one, name in _KINDS if is_one(mode)), "")
