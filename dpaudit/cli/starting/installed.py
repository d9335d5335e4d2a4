"""The source of this dpaudit as a requirement that pip can install on another machine (PEP 610)."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit
from urllib.request import url2pathname

from dpaudit.config.settings import FILL_IN

_NAME = "dpaudit"
# pip refuses this requirement, so it installs no other package.
UNKNOWN = f"{_NAME} @ {FILL_IN}"
# Time limit for a git command, in seconds.
_PATIENCE = 10
# `git@host:path`, the form of ssh.
_SCP = re.compile(r"(?:[\w.-]+@)?([\w.-]+):(?!//)(.+)")


def requirement() -> str:
    """Return the requirement that installs this dpaudit on another machine: a version from an
    index, a commit of a repository, or a folder below this one; UNKNOWN if there is none."""
    try:
        found = metadata.distribution(_NAME)
    except metadata.PackageNotFoundError:
        return UNKNOWN
    text = found.read_text("direct_url.json")
    return f"{_NAME}=={found.version}" if text is None else _of(json.loads(text))


def _of(direct: Mapping[str, Any]) -> str:
    """Return the requirement for a record of pip (direct_url.json, PEP 610)."""
    url, inside = str(direct.get("url", "")), direct.get("subdirectory")
    if "vcs_info" in direct:
        info = direct["vcs_info"]
        return _in_repository(info["vcs"], url, info["commit_id"], inside)
    if urlsplit(url).scheme == "file":
        return _local(Path(url2pathname(urlsplit(url).path)))
    info = direct.get("archive_info", {})
    hashes = dict(info.get("hashes") or [str(info.get("hash", "=")).split("=", 1)])
    parts = [f"sha256={hashes['sha256']}"] if "sha256" in hashes else []
    parts += [f"subdirectory={inside}"] if inside else []
    where = f"{_public(url)}{'#' * bool(parts)}{'&'.join(parts)}"
    return f"{_NAME} @ {where}" if _public(url) else UNKNOWN


def _in_repository(vcs: str, url: str, commit: str, inside: str | None) -> str:
    where = _public(url)
    if not where:
        return UNKNOWN
    return f"{_NAME} @ {vcs}+{where}@{commit}{f'#subdirectory={inside}' if inside else ''}"


def _local(path: Path) -> str:
    """Return the relative path of a folder or file below this folder; for a clone elsewhere, the
    commit in its origin."""
    here = Path(os.path.realpath(os.getcwd()))
    place = Path(os.path.realpath(path))
    if place.is_relative_to(here) and place.exists():
        return f"./{place.relative_to(here).as_posix()}"
    root, commit, origin = (
        _git(place, *words)
        for words in (
            ("rev-parse", "--show-toplevel"),
            ("rev-parse", "HEAD"),
            ("remote", "get-url", "origin"),
        )
    )
    if not (root and commit and origin):
        return UNKNOWN
    inside = place.relative_to(Path(os.path.realpath(root))).as_posix()
    return _in_repository("git", origin, commit, None if inside == "." else inside)


def _git(folder: Path, *words: str) -> str:
    """Return the output of git in a folder; "" if git fails."""
    # In a hook of git, these variables name another repository.
    environment = {name: value for name, value in os.environ.items() if name[:4] != "GIT_"}
    with suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(  # noqa: S603  # words of this module alone, and no shell
            ["git", "-C", str(folder), *words],  # noqa: S607  # the one on PATH
            capture_output=True, text=True, timeout=_PATIENCE, check=True, env=environment,
        )  # fmt: skip
        return done.stdout.strip()
    return ""


def _public(url: str) -> str:
    """Return a URL without user name, password and query; "" for a URL that other machines cannot
    reach."""
    short = _SCP.fullmatch(url)
    if short is not None and "://" not in url:
        url = f"https://{short[1]}/{short[2]}"
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    if parts.scheme not in ("https", "http", "ssh") or not host:
        return ""
    if parts.scheme == "ssh":  # the port of ssh is not that of https
        return urlunsplit(("https", re.sub(r":\d*$", "", host), parts.path, "", ""))
    return urlunsplit((parts.scheme, host, parts.path, "", ""))
