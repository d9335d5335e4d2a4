"""Import objects that are named by an import path: `package.module:attr` or `path/to/file.py:attr`.
Most of this module makes error messages for wrong paths."""

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

from dpaudit.errors import DpauditError, TargetError
from dpaudit.float_errors import user_errstate
from dpaudit.watching import step
from dpaudit.wording import FILE_PREFIX, did_you_mean, did_you_mean_file, on_one_line

# Largest number of names that a message lists.
LISTED = 10
# Pairs (function that recognises a kind of file by its `st_mode`, words for this kind). Regular
# files are the only kind without a pair.
_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)
# Maps the module of a library for differential privacy to the name of its package on PyPI.
PACKAGES = {
    **{name: name for name in ("autodp", "diffprivlib", "opacus", "opendp")},
    "dp_accounting": "dp-accounting",
    "jax_privacy": "jax-privacy",
    "multi_freq_ldpy": "multi-freq-ldpy",
    "pipeline_dp": "pipeline-dp",
    "pure_ldp": "pure-ldp",
    "pydp": "python-dp",
    "tmlt": "tmlt.core",
}
_FORMS = "package.module:function or path/to/file.py:function"
_NO_PATH = f"target {{!r}} is not an import path; write {_FORMS}"


def resolve(path: str) -> Any:
    """Return the object that an import path names, after importing its module. `attr` may contain
    dots. Modules in the working directory can be imported, as with `python -m`. Raises TargetError
    if the path is wrong or the import fails; the message lists existing names."""
    module_name, attribute = split(path)
    make_importable(os.getcwd())
    module = file_module(module_name) if is_file(module_name) else _named_module(module_name)
    value: Any = module
    for name in attribute.split("."):
        value = _attribute(value, name, path)
    return value


def loaded(path: str) -> Any:
    """Return the object that an import path names, or None if its module is not imported yet."""
    module_name, _, attribute = path.rpartition(":")
    name = _unique(Path(module_name).resolve()) if is_file(module_name) else module_name
    value: Any = sys.modules.get(name)
    for part in attribute.split("."):
        value = getattr(value, part, None)
    return value


def split(path: str) -> tuple[str, str]:
    """Return the module or file of an import path, and its attribute. Raises TargetError."""
    module_name, colon, attribute = path.rpartition(":")
    if not colon:
        is_missing = path.endswith(".py") and not Path(path).is_file()
        code = "module-not-found" if is_missing else "import-path-invalid"
        raise TargetError(_why_without_colon(path), code=code)
    is_divided = ":" in module_name and not is_file(module_name)
    if not module_name or is_divided or not all(map(str.isidentifier, attribute.split("."))):
        raise TargetError(_NO_PATH.format(path), code="import-path-invalid")
    return module_name, attribute


def is_file(module_name: str) -> bool:
    """Return whether `module_name`, the part of an import path before the colon, names a file."""
    return module_name.endswith(".py") or "/" in module_name or os.sep in module_name


def located(path: str, base: Path | None) -> str:
    """Return an import path of a file, such as `mine.py:f`, relative to the working directory. If
    the file is not in the working directory but in the folder `base`, such as that of a
    configuration file, `base` is put in front. Any other path is returned unchanged."""
    module_name, colon, attribute = path.rpartition(":")
    if base is None or not colon or not is_file(module_name) or Path(module_name).is_file():
        return path
    file = base / module_name
    return f"{file}:{attribute}" if file.is_file() else path


def public_callables(owner: Any) -> list[str]:
    """Return the names of the public callables of an object. For a module, these are the callables
    that the module defines or, if it defines none, those that it imports."""
    names = [name for name in vars_of(owner) if not name.startswith("_")]
    callables = [name for name in names if callable(getattr(owner, name, None))]
    if not isinstance(owner, ModuleType):
        return callables
    home = owner.__name__
    definitions = [
        name for name in callables if getattr(getattr(owner, name), "__module__", None) == home
    ]
    return definitions or callables


def vars_of(owner: Any) -> list[str]:
    """Return the names of an object's attributes. Those of a module are in the order of its source;
    all others are sorted."""
    return list(vars(owner)) if isinstance(owner, ModuleType) else dir(owner)


def list_names(names: Iterable[str]) -> str:
    """Return a sentence such as `" There is: x, y."` with at most ten names; `""` without names."""
    names = list(names)
    ending = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return f" There is: {', '.join(names[:LISTED])}{ending}." if names else ""


def _why_without_colon(path: str) -> str:
    file = Path(path)
    if path.endswith(".py"):
        if not file.is_file():
            return f"{_no_such_file(path, file.resolve())} A target is named {path}:NAME."
        there = ""
        with suppress(TargetError):  # failing code is reported when the path has a function
            make_importable(os.getcwd())
            there = list_names(public_callables(file_module(path)))
        ending = f".{there}" if there else ""
        return f"target {path!r} names a file only; add the function: {path}:NAME{ending}"
    if file.is_file():
        return f"target {path!r} is neither a Python nor a YAML file; write {_FORMS}"
    kind = describe_non_file(file) if path else ""
    if kind:
        return f"target {path!r} is {kind}, not a Python file; write {_FORMS}"
    if file.suffix.startswith(".y"):
        known = (sibling.name for sibling in sorted(file.parent.glob("*.y*ml")))
        if near := did_you_mean_file(file.name, known, str(file.parent)):
            return f"there is no file {path!r}.{near}"
    return _NO_PATH.format(path)


def _attribute(owner: Any, name: str, path: str) -> Any:
    with suppress(AttributeError):
        return getattr(owner, name)
    known = public_callables(owner)
    there = list_names(known) or " Nothing public is callable there."
    label = owner.__name__ if isinstance(owner, ModuleType) else repr(owner)
    if isinstance(owner, ModuleType) and label.startswith(FILE_PREFIX):
        label = str(owner.__file__)
    # Do not suggest names of imported modules, since a module cannot be audited.
    names = vars_of(owner)
    named = [
        attribute
        for attribute in names
        if not isinstance(getattr(owner, attribute, None), ModuleType)
    ]
    raise TargetError(
        f"target {path!r}: {label} has no {name!r}.{did_you_mean(name, named)}{there}",
        code="name-not-found",
    )


def _named_module(name: str) -> ModuleType:
    try:
        with step(f"importing {name}"), user_errstate():
            return importlib.import_module(name)
    except ModuleNotFoundError as error:
        # If the module that Python did not find is `name` or a package that contains it, the user's
        # path is wrong. Otherwise the user's module exists, and an import inside it fails.
        if error.name and f"{name}.".startswith(f"{error.name}."):
            why = _no_such_module(error.name)
            raise TargetError(why, code="module-not-found") from None
        raise _broken(name, error) from error
    except (Exception, SystemExit) as error:
        raise _broken(name, error) from error


def make_importable(folder: str) -> None:
    """Put a folder first on sys.path. Do nothing if sys.path already contains it or the working
    directory."""
    if folder not in sys.path and "" not in sys.path:
        sys.path.insert(0, folder)


def _no_such_module(missing: str) -> str:
    parent, _, child = missing.rpartition(".")
    siblings = _siblings(parent)
    suggestion = did_you_mean(child, siblings)
    if not parent:
        there = f"there is no module {missing!r} in {os.getcwd()} or on sys.path"
        return f"{there}{_install(missing)}" if missing in PACKAGES else f"{there}.{suggestion}"
    where = f"in the package {parent!r}"
    return f"there is no module {child!r} {where}.{suggestion}{list_names(siblings)}"


def _siblings(parent: str) -> list[str]:
    """Return the public modules of the package `parent`; for "", those on sys.path."""
    if not parent:
        return modules_on_path()
    modules = pkgutil.iter_modules(getattr(sys.modules.get(parent), "__path__", []))
    return [module.name for module in modules if not module.name.startswith("_")]


def modules_on_path() -> list[str]:
    """Return the names of the public modules on sys.path, without the standard library."""
    names = (module.name for module in pkgutil.iter_modules())
    return [name for name in names if name[0] != "_" and name not in sys.stdlib_module_names]


def file_module(name: str) -> ModuleType:
    """Return the module of a Python file. The file is run at the first call only. Raises
    TargetError if there is no such file or its code fails."""
    check_file(name)
    file = Path(name).resolve()
    unique = _unique(file)
    return sys.modules[unique] if unique in sys.modules else _executed(unique, file, name)


def check_file(module_name: str) -> None:
    """Raise TargetError if an import path names a file that does not exist. Nothing is imported."""
    file = Path(module_name).resolve()
    if is_file(module_name) and not file.is_file():
        raise TargetError(_no_such_file(module_name, file), code="module-not-found")


def _unique(file: Path) -> str:
    """Return the name that a file's module gets in sys.modules."""
    # The name depends only on the path of the file, so that all worker processes use the same name,
    # and can unpickle each other's objects.
    digest = hashlib.blake2b(str(file).encode(), digest_size=4).hexdigest()
    return f"{FILE_PREFIX}{file.stem}_{digest}"


def _no_such_file(name: str, file: Path) -> str:
    kind = describe_non_file(file)
    if kind:
        return f"{name!r} is {kind}, not a Python file"
    near = _python_files(file.parent)
    suggestion = did_you_mean_file(file.name, near, str(Path(name).parent))
    return f"there is no file {name!r}.{suggestion}{list_names(near)}"


def _python_files(folder: Path) -> list[str]:
    return [file.name for file in sorted(folder.glob("*.py"))]


def _executed(unique: str, file: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(unique, file)
    if spec is None or spec.loader is None:
        why = f"{name!r} is not a Python file; its name must end in .py"
        raise TargetError(why, code="import-path-invalid")
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
    """Put a folder first on sys.path within the `with` block, and last afterwards."""
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)
        if folder not in sys.path:
            sys.path.append(folder)


def _broken(name: str, error: BaseException) -> TargetError:
    if isinstance(error, DpauditError):  # the code calls dpaudit, which says what to change
        return TargetError(
            f"{name!r}: {on_one_line(str(error))}{_location(error)}", code=error.code
        )
    message = f"{name!r} was found, but importing it failed: {type(error).__name__}: {error}"
    if isinstance(error, ImportError) and "relative import" in str(error):
        message += " (name it as package.module:function to use relative imports)"
    remedy = ""
    if isinstance(error, ModuleNotFoundError):
        remedy = _install((error.name or "").partition(".")[0])
    text = on_one_line(message) + _location(error) + remedy
    return TargetError(text, code="import-failed")


def _install(module: str) -> str:
    """Return the end of a message: the command that installs a missing package, for this Python."""
    package = PACKAGES.get(module, "it")
    return f"; install {package} where {sys.executable} finds it"


def package_of(module: str) -> str:
    """Return the name on PyPI of the package that contains a module; if unknown, the module's
    name."""
    return PACKAGES.get(module.partition(".")[0], module)


def _location(error: BaseException) -> str:
    """Return the file and line that raised an error during an import, such as ` (a.py, line 3)`."""
    # Files to leave out. If dpaudit raised the error: all files of dpaudit, and generated code,
    # such as the initialiser of a dataclass, whose file name begins with "<". Otherwise: this file.
    prefixes = (str(Path(__file__).parent), "<") if isinstance(error, DpauditError) else __file__
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if "importlib" not in frame.filename and not frame.filename.startswith(prefixes)
    ]
    return f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""


def describe_non_file(path: Path) -> str:
    """Return what a path is if it is not a regular file, such as `"a folder"`. Return `""` for a
    regular file and for a path that does not exist."""
    try:
        return describe_mode(path.stat().st_mode)
    except (OSError, ValueError):  # missing, a broken link, or not a valid path
        is_link = path.is_symlink()
    return f"a symbolic link to {str(path.readlink())!r}, which is not there" if is_link else ""


def describe_mode(mode: int) -> str:
    """Return what a file is by its `st_mode`, such as `"a folder"`; `""` for a regular file."""
    return next((name for is_kind, name in _KINDS if is_kind(mode)), "")
