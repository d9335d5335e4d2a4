"""Guard a refactoring: keep the results of a fixed set of audits, and compare them later.

python -m benchmarks.frozen keep DIR [--quick] [--jobs 2]
python -m benchmarks.frozen compare DIR [--quick] [--numbers] [--jobs 2] [--show 5]

DIR/runs has one file per program run: exit code, JSON, standard output and standard error.
DIR/material, DIR/recorded and DIR/journals are inputs of these runs: mechanisms, recordings, result
files of the kept code, and its journals, cut short. `compare` exits with 1 if anything differs, and
with 2 if DIR holds nothing to compare with. Times are the only results that are never compared.

A commit that moves code must compare equal in everything; a commit that changes words must compare
equal with --numbers, which leaves out texts. --quick runs a part of the set, for use after each
commit. Results of libraries that no seed controls (configs/real) are compared in the fields that
are known before the draws, and in their verdicts.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.frozen_set import CUTS, FOLDER, JSON, MATERIAL, RECORDED, ROOT, Run, every_run

# Relative difference of two numbers that counts as none: one unit in the last place of a float.
LAST_PLACE = 4e-16
# Places in the record of a run that are not compared, keys joined by dots, each with the reason.
IGNORED = {
    "result.digest": "covers the times below",
    "result.audits.seconds": "a time",
    "result.audits.versions": "compared once for all runs",
    "result.audits.fresh": "younger than the kept results",
    "result.audits.nights": "younger than the kept results",
    "result.audits.ending.certificates.redrawn.draws": "as many as its time limit allows",
    "result.audits.ending.certificates.redrawn.processes": "as many as its time limit allows",
}
# Parts of texts that are not compared, as regular expressions of whole lines, each with the reason.
IGNORED_TEXTS = {
    r"^  time        .*\n": "a time",
    r"^  versions    .*\n(?: {14}.*\n)*": "compared once for all runs",
    r"^.*: [\d,]+ of [\d,]+ draws, .*\n": "progress, shown every few seconds",
    r"^.*a call of .* has not returned for .*\n": "shown after some seconds",
    r'^ *"(?:seconds|digest)": .*\n': "JSON on standard output: times, and the digest over them",
}
# Fields that a commit renames on purpose: kept path, its new name, the reason; else empty.
RENAMED: dict[str, tuple[str, str]] = {}
# Words that a commit changes on purpose: as kept, as they are now, the reason; else empty.
REWORDED: dict[str, tuple[str, str]] = {}

# A continued audit says so, and is else what an undisturbed one is.
_CONTINUED = ("result.audits.resumed", "result.audits.warnings", "command", "printed", "said")
# Of audits that no seed reaches: what does not depend on the draws, and the verdict.
_BEFOREHAND = (
    "name",
    "verdict",
    "claim",
    "target",
    "confidence",
    "seed",
    "expect",
    "request",
    "error",
)
# Texts that --numbers compares: they identify an audit or are its result.
_COMPARED_TEXTS = ("name", "verdict", "definition", "stage", "expect")
_MANIFEST = "manifest.json"
_OURS = ("runs", "material", "recorded", "journals", _MANIFEST)
_LONGEST, _PATIENCE = 70, 900
Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Difference:
    """path: where in the JSON.  kept, present: the values, in words."""

    path: str
    kept: str
    present: str

    def __str__(self) -> str:
        return f"{self.path}: kept {self.kept}, is {self.present}"


def differences(kept: Any, present: Any, ignored: tuple[str, ...] = ()) -> list[Difference]:
    """Return where two JSON values differ, types included, but not in places that are ignored."""
    return list(_differences(_renamed(kept, ""), present, "", "", {*IGNORED, *ignored}))


def numbers_of(record: Any) -> Any:
    """Return a record with every text replaced by "text", except names of audits and verdicts, and
    without printed lines: the part of a record that a change of words must leave equal."""
    return _without_words(
        {key: value for key, value in record.items() if key not in ("printed", "said")}
        if isinstance(record, dict)
        else record
    )


def _without_words(value: Any, key: str = "") -> Any:
    if isinstance(value, dict):
        return {name: _without_words(part, name) for name, part in value.items()}
    if isinstance(value, list):
        return [_without_words(part, key) for part in value]
    return "text" if isinstance(value, str) and key not in _COMPARED_TEXTS else value


def _differences(
    kept: Any, present: Any, path: str, place: str, ignored: set[str]
) -> Iterator[Difference]:
    """Yield differences. path: with list indices, for readers.  place: without, for `ignored`."""
    if place in ignored:
        return
    kept, present = _by_name(kept), _by_name(present)
    if isinstance(kept, dict) and isinstance(present, dict):
        for key in {**kept, **present}:
            inner = (f"{path}.{key}" if path else str(key), _inside(place, key))
            if inner[1] in ignored:
                continue
            if key not in present:
                yield Difference(inner[0], _short(kept[key]), "missing")
            elif key not in kept:
                yield Difference(inner[0], "missing", _short(present[key]))
            else:
                yield from _differences(kept[key], present[key], *inner, ignored)
        if [key for key in kept if key in present] != [key for key in present if key in kept]:
            yield Difference(path, f"in the order {_short([*kept])}", _short([*present]))
    elif isinstance(kept, list) and isinstance(present, list):
        if len(kept) != len(present):
            yield Difference(path, f"{len(kept)} entries", f"{len(present)} entries")
        for index, (one, other) in enumerate(zip(kept, present, strict=False)):
            yield from _differences(one, other, f"{path}[{index}]", place, ignored)
    elif not _is_same(kept, present):
        yield Difference(path, _short(kept), _short(present))


def _is_same(kept: Any, present: Any) -> bool:
    if type(kept) is not type(present):
        return False
    if isinstance(kept, float):
        return math.isclose(kept, present, rel_tol=LAST_PLACE, abs_tol=0.0)
    return bool(kept == present)


class _Named(str):
    """The name of an entry of a list, which is no key of its own."""

    __slots__ = ()

    def __str__(self) -> str:
        return json.dumps(str.__str__(self), ensure_ascii=False)


def _inside(place: str, key: str) -> str:
    if isinstance(key, _Named):
        return place
    return f"{place}.{key}" if place else key


def _by_name(value: Any) -> Any:
    """Return a list of entries that all have a name of their own as a mapping, so that one that is
    missing is not taken for a change of all that follow."""
    if not isinstance(value, list) or not value:
        return value
    names = [one.get("name") if isinstance(one, dict) else None for one in value]
    if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        return value
    return {_Named(name): one for name, one in zip(names, value, strict=True)}


def _renamed(value: Any, place: str) -> Any:
    """Return a kept value under the names and in the words of today."""
    if isinstance(value, dict):
        return {
            RENAMED.get(_inside(place, key), (key,))[0]: _renamed(part, _inside(place, key))
            for key, part in value.items()
        }
    if isinstance(value, list):
        return [_renamed(part, place) for part in value]
    if isinstance(value, str):
        for old, (new, _) in REWORDED.items():
            value = value.replace(old, new)
    return value


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


@dataclass(frozen=True, slots=True)
class Place:
    """The folder that is kept, and how its runs are made."""

    folder: Path

    @property
    def material(self) -> Path:
        return self.folder / "material"

    def file(self, run: Run) -> Path:
        return self.folder / "runs" / f"{run.name}.json"

    def run(self, run: Run) -> Record:
        """Run a program; return all that came out, without what differs from run to run."""
        with tempfile.TemporaryDirectory() as name:
            temporary = Path(name).resolve()
            if run.journals is not None:
                shutil.copytree(self.folder / "journals" / run.journals, temporary / "folder")
            ended = _ended(run, ROOT if run.at_home else self.material, temporary)
            return self._record(run, ended, temporary)

    def _record(self, run: Run, ended: subprocess.CompletedProcess[str], temporary: Path) -> Record:
        file = temporary / "result.json"
        text = file.read_text(encoding="utf-8") if file.exists() else "null"
        result = json.loads(self._anywhere(text, temporary))
        printed, said = (
            _timeless(self._anywhere(one, temporary)).splitlines()
            for one in (ended.stdout, ended.stderr)
        )
        if not run.seeded:
            result, printed, said = _known_beforehand(result), [], []
        record = {"command": list(run.words), "exit_code": ended.returncode, "result": result}
        return {**record, "printed": printed, "said": said}

    def _anywhere(self, text: str, temporary: Path) -> str:
        """Return a text without the folders of this machine."""
        folders = {temporary: "<temporary>", self.folder: "<kept>", ROOT: "<root>"}
        for folder, token in {**folders, Path(sys.prefix): "<python>"}.items():
            text = text.replace(str(folder), token)
        return text


def _ended(run: Run, folder: Path, temporary: Path) -> subprocess.CompletedProcess[str]:
    given = {JSON: str(temporary / "result.json"), FOLDER: str(temporary / "folder")}
    words = [given.get(word, word) for word in run.words]
    program = [sys.executable] if run.is_script else [sys.executable, "-m", "dpaudit"]
    return subprocess.run(
        [*program, *words],
        cwd=folder,
        env=_environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="backslashreplace",
        timeout=_PATIENCE,
        check=False,
    )


def _environment() -> dict[str, str]:
    """Return the environment of a run: the width of a terminal decides where lines end, and this
    Python is the one that `python` names, whatever its folder is called."""
    mine = {key: value for key, value in os.environ.items() if not key.endswith("_COLOR")}
    folders = [str(Path(sys.executable).parent), mine.get("PATH", os.defpath)]
    return {
        **mine,
        "COLUMNS": "80",
        "PATH": os.pathsep.join(folders),
        "PYTHONPATH": str(ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def _timeless(text: str) -> str:
    for pattern in IGNORED_TEXTS:
        text = re.sub(pattern, "", text, flags=re.MULTILINE)
    return text


def _known_beforehand(document: Any) -> Any:
    if document is None:
        return None
    audits = [{key: one.get(key) for key in _BEFOREHAND} for one in document["audits"]]
    return {"count": document["count"], "audits": audits}


def keep(place: Place, *, quick: bool, jobs: int) -> int:
    """Run the set and write what comes out."""
    _empty(place.folder)
    shutil.copytree(MATERIAL, place.material, ignore=shutil.ignore_patterns("__pycache__"))
    _checked([sys.executable, "recorded.py"], place.material)
    _record_results(place)
    _cut_journals(place)
    (place.folder / "runs").mkdir()
    chosen, left_out = _chosen(quick=quick)
    for run, record, seconds in _performed(place, chosen, jobs):
        place.file(run).write_text(_json(record), encoding="utf-8")
        print(f"{seconds:6.1f} s  exit {record['exit_code']}  {run.name}", flush=True)
    manifest = {**_surroundings(), "quick": quick, "left_out": left_out}
    (place.folder / _MANIFEST).write_text(_json(manifest), encoding="utf-8")
    _tell_left_out(left_out)
    broken = _unlike_undisturbed(place, {run.name: _kept(place, run) for run in chosen})
    _tell(broken)
    return 1 if broken else 0


def compare(place: Place, *, quick: bool, jobs: int, show: int, numbers: bool = False) -> int:
    """Run the set again, say what differs from what was kept, and return the exit code."""
    file = place.folder / _MANIFEST
    if not file.exists():
        print(f"{place.folder} holds nothing that was kept to its end; run keep", file=sys.stderr)
        return 2
    manifest = json.loads(file.read_text(encoding="utf-8"))
    if manifest["quick"] and not quick:
        print(f"{place.folder} holds the quick set only; give --quick", file=sys.stderr)
        return 2
    _tell_surroundings(manifest)
    chosen, left_out = _chosen(quick=quick)
    _tell_left_out(left_out)
    found: dict[str, list[Difference]] = {}
    present: dict[str, Record] = {}
    for run, record, seconds in _performed(place, chosen, jobs):
        present[run.name] = record
        both = (_kept(place, run), record)
        differing = differences(*(map(numbers_of, both) if numbers else both))
        print(f"{seconds:6.1f} s  {'DIFFERS' if differing else 'same'}  {run.name}", flush=True)
        if differing:
            found[run.name] = differing
            _tell(differing[:show], len(differing))
    gone = _gone(place, chosen, quick=quick)
    broken = _unlike_undisturbed(place, present)
    _tell([*gone, *broken])
    print(f"{len(chosen)} runs compared with those of {manifest['commit']}: {_sum(found)}.")
    return 1 if found or gone or broken else 0


def _empty(folder: Path) -> None:
    """Take away what was kept here before, and nothing else."""
    folder.mkdir(parents=True, exist_ok=True)
    strange = {one.name for one in folder.iterdir()} - set(_OURS)
    if strange:
        raise SystemExit(f"{folder} holds {min(strange)}, which is not from here; name another")
    for one in folder.iterdir():
        shutil.rmtree(one) if one.is_dir() else one.unlink()


def _record_results(place: Place) -> None:
    """Write results as this code writes them, for the code to come to recheck."""
    (place.folder / "recorded").mkdir()
    for name in RECORDED:
        file = place.folder / "recorded" / f"{name}.json"
        words = ["run", f"{name}.yaml", "-q", "--json", str(file)]
        _checked([sys.executable, "-m", "dpaudit", *words], place.material, codes=(0, 1))


def _cut_journals(place: Place) -> None:
    """Write journals, and of each what a run that was killed leaves: some records, and a part of
    the one that was being written."""
    whole = place.folder / "journals" / "whole"
    words = ["run", "journals.yaml", "-q", "--journal", str(whole)]
    _checked([sys.executable, "-m", "dpaudit", *words], place.material, codes=(0, 1))
    for cut, share in CUTS.items():
        (place.folder / "journals" / cut).mkdir()
        for file in whole.iterdir():
            content = file.read_bytes()
            (whole.parent / cut / file.name).write_bytes(content[: _cut(content, share)])
    shutil.rmtree(whole)


def _cut(content: bytes, share: float) -> int:
    """Return where to cut a journal: in the middle of a record, after this share of them."""
    ends = [0]
    while ends[-1] < len(content):
        ends.append(content.index(b"\n", ends[-1]) + 1)
    place = int(share * (len(ends) - 1))
    return (ends[place] + ends[place + 1]) // 2


def _checked(words: list[str], folder: Path, codes: tuple[int, ...] = (0,)) -> None:
    done = subprocess.run(
        words, cwd=folder, env=_environment(), capture_output=True, timeout=_PATIENCE, check=False
    )
    if done.returncode not in codes:
        said = done.stderr.decode(errors="replace")
        raise SystemExit(f"{' '.join(words)} ended with exit code {done.returncode}:\n{said}")


def _chosen(*, quick: bool) -> tuple[list[Run], dict[str, str]]:
    """Return what is run, and why each of the others is left out: what they need is not here."""
    every = [run for run in every_run() if run.quick or not quick]
    missing = {run.name: [one for one in run.needs if find_spec(one) is None] for run in every}
    left_out = {name: f"without {', '.join(needs)}" for name, needs in missing.items() if needs}
    return [run for run in every if run.name not in left_out], left_out


def _performed(place: Place, runs: list[Run], jobs: int) -> Iterator[tuple[Run, Record, float]]:
    def timed(run: Run) -> tuple[Run, Record, float]:
        start = time.perf_counter()
        record = place.run(run)
        return run, record, time.perf_counter() - start

    with ThreadPoolExecutor(jobs) as pool:
        yield from pool.map(timed, runs)


def _kept(place: Place, run: Run) -> Any:
    """Return what was kept of a run; None when nothing was."""
    file = place.file(run)
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else None


def _gone(place: Place, chosen: list[Run], *, quick: bool) -> list[Difference]:
    """Return what was kept and is not run any more."""
    if quick:
        return []
    kept = {file.stem for file in (place.folder / "runs").glob("*.json")}
    gone = sorted(kept - {run.name for run in chosen})
    return [Difference(name, "a result", "not run") for name in gone]


def _unlike_undisturbed(place: Place, records: dict[str, Any]) -> list[Difference]:
    """Return where audits that continued a truncated journal differ from undisturbed audits."""
    found = []
    for run in every_run():
        if run.journals is None or run.name not in records:
            continue
        undisturbed = _of_the_same(records["journals"], records[run.name])
        for one in differences(undisturbed, records[run.name], _CONTINUED):
            found.append(Difference(f"{run.name}, undisturbed: {one.path}", one.kept, one.present))
    return found


def _of_the_same(every: Record, some: Record) -> Record:
    """Return a record with those audits only that are in another one, too."""
    names = {one["name"] for one in some["result"]["audits"]}
    audits = [one for one in every["result"]["audits"] if one["name"] in names]
    result = {**every["result"], "audits": audits, "count": len(audits)}
    return {**every, "result": result, "exit_code": some["exit_code"]}


def _surroundings() -> Record:
    names = ("numpy", "scipy", "scikit-learn", "pandas", "opendp", "python-dp", "cryptography")
    versions = {"python": platform.python_version(), "machine": platform.machine()}
    for name in names:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = "none"
    return {"commit": _commit(), "versions": versions}


def _commit() -> str:
    """Return what git calls the code; the empty text where there is no git."""
    git = shutil.which("git")
    if git is None:
        return ""
    words = [git, "-C", str(ROOT), "describe", "--always", "--dirty"]
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()


def _tell_surroundings(manifest: Record) -> None:
    now = _surroundings()["versions"]
    for name, version in manifest["versions"].items():
        if now.get(name) != version:
            print(f"note: kept with {name} {version}, now {now.get(name)}: numbers may differ")


def _tell_left_out(left_out: dict[str, str]) -> None:
    for name, reason in left_out.items():
        print(f"not run: {name}, {reason}")


def _tell(found: list[Difference], count: int = 0) -> None:
    for one in found:
        print(f"          {one}")
    if count > len(found):
        print(f"          and {count - len(found)} more")


def _sum(found: dict[str, list[Difference]]) -> str:
    return f"{len(found)} differ, {', '.join(found)}" if found else "no difference"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("command", choices=["keep", "compare"])
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("--quick", action="store_true", help="only a part of the set")
    parser.add_argument("--jobs", type=int, choices=[1, 2], default=1)
    parser.add_argument("--show", type=int, default=5, help="differences to print per run")
    parser.add_argument("--numbers", action="store_true", help="leave out texts")
    given = parser.parse_args()
    place = Place(given.folder.resolve())
    if given.command == "keep":
        return keep(place, quick=given.quick, jobs=given.jobs)
    return compare(
        place, quick=given.quick, jobs=given.jobs, show=given.show, numbers=given.numbers
    )


if __name__ == "__main__":
    sys.exit(main())
