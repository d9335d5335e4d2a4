"""List the releases of a package on the package index, and make an environment for each of them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from dpaudit.errors import UsageError

# Time limit of an installation, or of a request to the package index, in seconds.
_SECONDS = 600
# Number of characters at the end of an installer's output that the report shows. The end contains
# the error.
_LAST = 300
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_RELEASE = re.compile(r"\d+(\.\d+)*([a-z]+\d+|\.(post|dev)\d+)?")
_LATEST = "latest"


class NotInstallable(Exception):
    """Raised if a release cannot be installed. The message is the end of the installer's output."""


def releases(package: str, versions: str) -> list[str]:
    """Return the releases that a user asked for, oldest first. `versions` is a list with commas, or
    a range `FIRST..LAST` of the releases on the package index without pre-releases; LAST may be
    `latest`. Raises UsageError if the text names no release, or if the package index cannot be
    reached."""
    if not _NAME.fullmatch(package):
        raise UsageError(f"--package {package!r} is no name of a package", code="option-invalid")
    first, dots, last = (part.strip() for part in versions.partition(".."))
    named = [first, last] if dots else [release.strip() for release in versions.split(",")]
    wrong = [
        release
        for release in named
        if not _RELEASE.fullmatch(release) and not (dots and release == _LATEST)
    ]
    if wrong or (dots and first == _LATEST):
        why = f"--versions {versions!r} must be like 0.13.0,0.14.1 or 0.13..latest"
        raise UsageError(why, code="option-invalid")
    if not dots:
        return sorted(dict.fromkeys(named), key=_order)
    known = [
        release
        for release in _published(package)
        if _order(first) <= _order(release) and (last == _LATEST or _order(release) <= _order(last))
    ]
    if not known:
        why = f"--versions {versions!r}: {package} has no release between these"
        raise UsageError(why, code="option-invalid")
    return sorted(known, key=_order)


def _order(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", release))


def _published(package: str) -> list[str]:
    """Return all releases of a package that pip can install for this Python."""
    pip = [sys.executable, "-m", "pip"] if find_spec("pip") else ["uv", "tool", "run", "pip"]
    process = _run([*pip, "index", "versions", package])
    match = re.search(r"^Available versions: (.*)$", process.stdout, re.MULTILINE)
    if match is None:
        raise UsageError(
            f"the package index lists no release of {package!r} ({_last(process)}); correct "
            "--package, or list the releases: --versions 0.13.0,0.14.1",
            code="releases-unknown",
        )
    return [release.strip() for release in match[1].split(",")]


@dataclass(frozen=True, slots=True)
class Environments:
    """Virtual environments, one for each release of a package, for one Python interpreter.

    folder: folder of the environments. The environment for a release is in its subfolder
        `PACKAGE-RELEASE`. An existing environment is used again.
    beside: further requirements that are installed into each environment.
    """

    folder: Path
    package: str
    beside: tuple[str, ...] = ()
    python: str = sys.executable

    def interpreter(self, release: str) -> str:
        """Return the path of the interpreter in the environment of a release. If there is no
        environment, make one. Raises NotInstallable if the release cannot be installed."""
        path = self._path(release)
        program, marker = path / "bin" / "python", path / ".installed"
        requirements = "\n".join((self.python, f"{self.package}=={release}", *self.beside))
        if not (marker.is_file() and marker.read_text() == requirements):
            shutil.rmtree(path, ignore_errors=True)
            self.folder.mkdir(parents=True, exist_ok=True)
            for words in self._commands(path, program, release):
                process = _run(words)
                if process.returncode:
                    shutil.rmtree(path, ignore_errors=True)
                    raise NotInstallable(_last(process))
            marker.write_text(requirements)
        return str(program)

    def remove(self, release: str) -> None:
        """Delete the environment of a release from the disk."""
        shutil.rmtree(self._path(release), ignore_errors=True)

    def _path(self, release: str) -> Path:
        return self.folder.absolute() / f"{self.package}-{release}"

    def _commands(self, path: Path, program: Path, release: str) -> list[list[str]]:
        """Return the commands that make an environment, with uv if possible, else with pip."""
        requirements = [f"{self.package}=={release}", *self.beside]
        if shutil.which("uv"):
            install = ["uv", "pip", "install", "--quiet", "--python", str(program), *requirements]
            return [["uv", "venv", "--quiet", "--python", self.python, str(path)], install]
        pip = [str(program), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        return [[self.python, "-m", "venv", str(path)], [*pip, *requirements]]


def _run(words: Sequence[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(  # noqa: S603  # installers, with names that were checked
            list(words),
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
            timeout=_SECONDS,
            env={**os.environ, "PYTHONNOUSERSITE": "1"},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return subprocess.CompletedProcess(list(words), 1, "", str(error))


def _last(process: subprocess.CompletedProcess[str]) -> str:
    lines = (process.stderr or process.stdout).splitlines()
    # Lines before the first error are warnings, which may be long.
    first = next((number for number, line in enumerate(lines) if line.startswith("ERROR")), 0)
    text = " ".join(" ".join(lines[first:]).split())
    return text[-_LAST:] or f"exit code {process.returncode}"
