"""Guards a refactoring that must change no result: keeps what a fixed set of audits gives, and
compares it with what they give on the code as it stands.

python -m benchmarks.frozen keep DIR [--quick] [--jobs 2]
python -m benchmarks.frozen compare DIR [--quick] [--jobs 2] [--show 5]

DIR/runs has a file for each program that was run: its exit code, its JSON, what it printed and what
it said on standard error. DIR/material, DIR/recorded and DIR/journals are what the runs start from:
mechanisms, recordings, results of the code that was kept, and journals of it that were cut short.
`compare` exits with 1 when anything differs, with 2 when there is nothing to compare with.

--quick: a part of the set, for after each commit; both commands take it, and the part may be
compared with all that was kept. Results of libraries that no seed reaches (configs/real) are
compared in what is known before the draws, and in their verdicts.
"""

from __future__ import annotations

import argparse
import copy
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

# What two formulas that are equal may differ in: one took the place of two for p-values.
LAST_PLACE = 4e-16
# Places in what was kept, keys joined by dots, that are not compared, each with the reason.
IGNORED = {
    "result.version": "the number of the format, which a renamed field may raise",
    "result.digest": "covers the times below",
    "result.audits.seconds": "how long it took",
    "result.audits.versions": "compared once for all runs, and told of",
    "printed": "the text report is shorter now; its numbers are those of the JSON",
    "result.audits.source": "new: file and line of the mechanism",
    "result.audits.command": "new: the command line that repeats the audit",
    "result.audits.grouped": "new: the claim for one record",
    "result.audits.certificates.schedule.confirming": "new: draws of a confirmation, at least",
    "result.audits.certificates.schedule.counted": "new: draws that were counted to learn from",
    "result.audits.certificates.divergence": "new: the bound of a Rényi divergence",
    "result.audits.workers": "new: how many processes drew, which depends on the machine",
    "result.audits.notes": "new: why no others drew",
}
# What is not compared of audits of some definitions, by definition, and the reason. Draws, counts,
# rule, events and bets are.
RESPENT = "half of what the exact test may spend of α is now spent on a divergence"
IGNORED_OF: dict[str, dict[str, str]] = {
    definition: {
        f"result.audits.{name}": RESPENT
        for name in (
            "epsilon_lower",
            "delta_lower",
            "p_value",
            "certificates.epsilon_lower",
            "certificates.delta_lower",
            "certificates.p_value",
            "certificates.fixed.alpha",
            "certificates.fixed.epsilon_lower",
            "certificates.fixed.delta_lower",
            "certificates.fixed.p_value",
            "certificates.fixed.detectable_epsilon",
        )
    }
    for definition in ("renyi", "zcdp")
}
IGNORED_OF["renyi"] |= {
    f"result.audits.{name}": "renyi-low-order has a false claim, which a divergence refutes now"
    for name in ("verdict", "certificates.refuted")
}
# What follows from a confirmation, of its certificate and of its audit; not compared where a run
# ended in one, in what was kept or now: it has as many draws as came before, and its rule is chosen
# for so many, where it had at least 1,000. What came before it is compared.
CONFIRMED = {
    *("draws", "epsilon_lower", "delta_lower", "p_value", "fixed", "guesses"),
    *("attack", "attacks", "scores", "failures", "first_failures"),
}
CONFIRMED_AUDIT = {"draws", "epsilon_lower", "delta_lower", "p_value", "event"}
# Parts of texts that are not compared, as regular expressions of whole lines; each with the reason.
IGNORED_TEXTS = {
    r"^  time        .*\n": "how long it took",
    r"^  versions    .*\n(?: {14}.*\n)*": "compared once for all runs, and told of",
    r"^.*: [\d,]+ of [\d,]+ draws, .*\n": "progress, told every few seconds",
    r"^.*a call of .* has not returned for .*\n": "told of after some seconds",
    r'^ *"(?:seconds|digest)": .*\n': "JSON on standard output: times, and what covers them",
}
# Fields that were renamed since: where each stood in what was kept, its name now, and the reason.
RENAMED: dict[str, tuple[str, str]] = {}
# Words that were changed since, in texts and values: as kept, as they are now, and the reason.
REWORDED: dict[str, tuple[str, str]] = {
    ", scored by ": (", then ", "distinguisher is post_process now"),
    "μ at least  0.0706,": ("μ at least  0,", "a δ of 0 shows nothing of μ; 0.0706 was wrong"),
    "the numbers of draws of d1 and of d2 were fixed, not tossed for": (
        "the sample sizes were fixed, not random",
        "plain words",
    ),
    "as many of each as fair coins asked for": (
        "with as many of each input as fair coins chose",
        "plain words",
    ),
    "a Clopper–Pearson bound for each input by itself": (
        "a separate Clopper–Pearson bound for each input",
        "plain words",
    ),
    "--floating-point looks at them": ("--floating-point searches them", "plain words"),
    "outcome an exception is an outcome like any other": (
        "outcome, an exception counts as an outcome",
        "plain words",
    ),
    "the mechanism raised an exception on every draw of both inputs, 576 in all,": (
        "all 576 draws of both inputs raised an exception,",
        "plain words",
    ),
    "interval for ε, since": ("interval for ε, because", "plain words"),
    "full: true goes on to it": ("full: true continues to the end", "plain words"),
    "came up, which is not in it": ("came up and is not in it", "plain words"),
    "without a word (": ("without any message (", "plain words"),
    "If it was the mechanism, its ends are missing among the outcomes, and": (
        "If the mechanism caused this, these outcomes are missing;",
        "plain words",
    ),
    "a number, the larger the more it speaks for d1, a word or None": (
        "a number (larger means more evidence for d1), a text or None",
        "plain words",
    ),
}

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
    """Return where two JSON values differ, types included, but for what is IGNORED or `ignored`."""
    return list(_differences(_renamed(kept, ""), present, "", "", {*IGNORED, *ignored}))


def before_confirmations(kept: Any, present: Any) -> tuple[Any, Any]:
    """Return two records without what is CONFIRMED where a run ended in a confirmation."""
    both = copy.deepcopy((kept, present))
    results = [(one or {}).get("result") or {} for one in both]
    by_name = [{one["name"]: one for one in result.get("audits", ())} for result in results]
    for name in by_name[0].keys() & by_name[1].keys():
        audits = [audits[name] for audits in by_name]
        certified = [audit.get("certificates") or [] for audit in audits]
        for place, certificates in enumerate(zip(*certified, strict=False)):
            stages = {(one["fixed"] or {}).get("stage") for one in certificates}
            if "confirmation" in stages:
                # Where it went on for want of room to confirm, it went on betting.
                more = {"wealth", "epsilon_betting"} if len(stages) > 1 else set()
                for audit, one in zip(audits, certificates, strict=True):
                    _cut_confirmation(audit, one, place, CONFIRMED | more)
    return both


def _cut_confirmation(audit: Record, certificate: Record, place: int, fields: set[str]) -> None:
    """Leave the blocks up to the refutation, and no such fields."""
    blocks, drawn = [], 0
    for one in audit["blocks"]:
        drawn += one["draws"] if one["certificate"] == place else 0
        if one["certificate"] != place or drawn <= certificate["refuted_after"]:
            blocks.append(one)
    audit["blocks"] = blocks
    for record, names in ((certificate, fields), (audit, CONFIRMED_AUDIT)):
        for name in names & record.keys():
            del record[name]


def _differences(
    kept: Any, present: Any, path: str, place: str, ignored: set[str]
) -> Iterator[Difference]:
    """path: with the place in every list, for whoever reads it.  place: without."""
    if place in ignored:
        return
    kept, present = _by_name(kept), _by_name(present)
    if isinstance(kept, dict) and isinstance(present, dict):
        ignored = {*ignored, *_ignored_of(kept, place)}
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


def _ignored_of(kept: dict[str, Any], place: str) -> dict[str, str]:
    claim = kept.get("claim") if place == "result.audits" else None
    return IGNORED_OF.get(claim["definition"], {}) if isinstance(claim, dict) else {}


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


def compare(place: Place, *, quick: bool, jobs: int, show: int) -> int:
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
        differing = differences(*before_confirmations(_kept(place, run), record))
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
        line = content.index(b"\n", ends[-1]) + 1
        ends.append(line + int(content[ends[-1] : line].split(b" ", 2)[1]))
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
    """Return where audits that went on with a cut journal came to another result than those that
    nobody disturbed."""
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
    parser.add_argument("--show", type=int, default=5, help="so many differences of each run")
    given = parser.parse_args()
    place = Place(given.folder.resolve())
    if given.command == "keep":
        return keep(place, quick=given.quick, jobs=given.jobs)
    return compare(place, quick=given.quick, jobs=given.jobs, show=given.show)


if __name__ == "__main__":
    sys.exit(main())
