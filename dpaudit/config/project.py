"""The table `[tool.dpaudit]` in pyproject.toml. pytest imports this module at every start; to save
time, it imports only the standard library and `dpaudit.errors`."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dpaudit.errors import ConfigurationError, UsageError

# Configuration file that `dpaudit run` reads if neither the command line nor pyproject.toml names a
# file.
DEFAULT_FILE = "audits.yaml"
# Defaults of audits in pytest: at most this number of draws, and as many as TEST_SECONDS seconds of
# drawing allow. The false-alarm probability is 1/10,000.
TEST_SECONDS = 10.0
TEST_DEFAULTS: Mapping[str, Any] = {
    "samples": 100_000,
    "confidence": 0.9999,
    "seed": 0,
    "workers": 1,
}
# Keys of the project's table that an audit with `allow_underpowered` ignores: they demand a certain
# power, which such an audit need not have.
REQUIRED = ("require_power", "require_rare")


# Keys of the table `[tool.dpaudit]` in pyproject.toml.
SETTINGS = (
    *("samples", "confidence", "seed", "workers", "require_power", "require_rare", "strict"),
    *("journal", "audits"),
)


@dataclass(frozen=True, slots=True)
class Project:
    """The table `[tool.dpaudit]` of a project. `file` is its pyproject.toml, if any.

    journal: folder for journals; None if the table names none.
    audits: configuration files that `dpaudit run` runs if the command line names none.
    """

    file: Path | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    journal: str | None = None
    audits: tuple[Path, ...] = ()

    def inherited(self, settings: Mapping[str, Any], keys: Collection[str] = SETTINGS) -> set[str]:
        """Return the keys in `keys` whose values an audit with these settings takes from the
        project."""
        names = {key for key in self.settings if key in keys and settings.get(key) is None}
        if settings.get("time") is not None:
            names.discard("samples")
        return names - set(REQUIRED) if settings.get("allow_underpowered") else names

    def beneath(
        self, settings: Mapping[str, Any], keys: Collection[str] = SETTINGS
    ) -> dict[str, Any]:
        """Return the settings of an audit together with those that it takes from the project."""
        return {**settings, **{key: self.settings[key] for key in self.inherited(settings, keys)}}

    def locating(
        self, settings: Mapping[str, Any], locate: Callable[[Any], str]
    ) -> Callable[[Any], str]:
        """Return a function that maps a path to its place. The place is in pyproject.toml for a
        setting that an audit with these settings takes from the project; else it is
        `locate(path)`."""
        inherited = self.inherited(settings)
        return lambda path: f"{self.file}: " if {*path[:1]} & inherited else locate(path)

    def files(self) -> list[str]:
        """Return the configuration files that `dpaudit run` runs if the command line names none.
        Raises UsageError if there are none."""
        for file in self.audits:
            if not file.is_file():
                from dpaudit.inputs.files import near_file

                raise UsageError(
                    f"{self.file}: audits names {str(file)!r}, and there is no such file; correct "
                    f"the name, or leave it out.{near_file(file)}",
                    code="file-not-found",
                )
        if self.audits:
            return [os.path.relpath(file) for file in self.audits]
        if Path(DEFAULT_FILE).is_file():
            return [DEFAULT_FILE]
        raise UsageError(
            f"there is no {DEFAULT_FILE} here, and nothing else was named; name a mechanism or a "
            f"file (dpaudit run FILE.yaml), write {DEFAULT_FILE} with dpaudit init "
            "mine.py:FUNCTION, or name files in pyproject.toml: [tool.dpaudit] audits = "
            '["FILE.yaml"]',
            code="option-missing",
        )


NO_PROJECT = Project()


def project_of(folder: Path) -> Project:
    """Return the project of the nearest pyproject.toml with the table, in `folder` or a folder
    above it. Return `NO_PROJECT` if there is none. Raises ConfigurationError if the file is not
    valid TOML, or if the table has an unknown key or a wrong value."""
    for parent in (folder, *folder.parents):
        file = parent / "pyproject.toml"
        table = _table(file)
        if table is not None:
            return _checked(file, table)
    return NO_PROJECT


def here() -> Project:
    """Return the table `[tool.dpaudit]` that applies in the working directory."""
    return project_of(Path.cwd())


def _table(file: Path) -> Any:
    """Return the table `[tool.dpaudit]` of a file; None if there is no file or no table."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    if "dpaudit" not in text:
        return None
    import tomllib

    try:
        tool = tomllib.loads(text).get("tool", {})
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{file}: {error}", code="file-malformed") from None
    return tool.get("dpaudit") if isinstance(tool, dict) else None


def _checked(file: Path, table: Any) -> Project:
    if not isinstance(table, dict):
        raise ConfigurationError(
            f"{file}: [tool.dpaudit] must be a table", code="configuration-shape"
        )
    # Imported here, since pytest reads this module at every start, and few projects have the table.
    from dpaudit.auditing.options import OPTIONS
    from dpaudit.wording import did_you_mean

    settings: dict[str, Any] = {}
    for key, value in table.items():
        if key not in SETTINGS:
            raise ConfigurationError(
                f"{file}: unknown key {key!r} in [tool.dpaudit]; known: {', '.join(SETTINGS)}."
                + did_you_mean(key, SETTINGS),
                code="key-unknown",
            )
        names = [value] if isinstance(value, str) else value
        if key == "audits":
            if not (isinstance(names, list) and names and all(map(_is_text, names))):
                why = "must be a configuration file, or a list of them"
                error = UsageError(f"audits={value!r} {why}", code="option-invalid")
                raise _in_table(file, error)
            settings[key] = names
            continue
        try:
            settings[key] = OPTIONS[key].read(value)
        except UsageError as error:
            raise _in_table(file, error) from None
    audits, journal = settings.pop("audits", []), settings.pop("journal", None)
    return Project(
        file,
        settings,
        None if journal is None else str(file.parent / journal),
        tuple(file.parent / name for name in audits),
    )


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _in_table(file: Path, error: UsageError) -> ConfigurationError:
    return ConfigurationError(f"{file}: [tool.dpaudit] {error}", code=error.code)
