"""What `benchmarks.frozen` runs: every audit of configs/ and what they do not reach."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
MATERIAL = Path(__file__).parent / "frozen_material"
# In words of a command: the file that --json writes, and a folder of this run alone.
JSON, FOLDER = "{json}", "{folder}"
# Records that were cut, and go on: of each, the share of their journal that is left.
CUTS = {"early": 0.3, "late": 0.8}
# Kept once and for all, to be rechecked, and run again.
RECORDED = ("curves", "ranges")


@dataclass(frozen=True, slots=True)
class Run:
    """A program that is run.

    name: how its file is called.  words: what follows `dpaudit`, or `python` for a script.
    at_home: it runs in the checkout; else among the material that was kept.
    quick: one of those that --quick runs.  needs: modules without which it is left out.
    seeded: the seed decides all draws; else only what is known before them is compared.
    journals: which cut journals it finds in its folder.
    """

    name: str
    words: tuple[str, ...]
    at_home: bool = False
    quick: bool = False
    needs: tuple[str, ...] = ()
    seeded: bool = True
    journals: str | None = None

    @property
    def is_script(self) -> bool:
        return self.words[0].endswith(".py")


def every_run() -> list[Run]:
    """Return all that is run, in order."""
    return [*_configs(), *_materials(), *_bounds(), *_reports(), *_journals(), *_commands()]


# Of the configurations, those that run after every commit: each looks for something else.
_QUICK_CONFIGS = (
    "quickstart",
    "000-pdp",
    "001-gaussian",
    "002-laplace",
)
_NEEDS = {
    "000-encryption": ("cryptography",),
    "opendp": ("opendp",),
    "pydp": ("pydp",),
}


def _configs() -> list[Run]:
    files = [
        ROOT / "configs" / "quickstart.yaml",
        ROOT / "configs" / "floating-point.yaml",
        *sorted((ROOT / "configs" / "seeds").glob("*.yaml")),
        *sorted((ROOT / "configs" / "real").glob("*.yaml")),
    ]
    return [_config(file) for file in files]


def _config(file: Path) -> Run:
    place = file.relative_to(ROOT)
    # Both libraries draw from sources of their own, which no seed reaches.
    is_real = file.parent.name == "real"
    return Run(
        "--".join(place.with_suffix("").parts),
        ("run", str(place), "-v", "--json", JSON),
        at_home=True,
        quick=file.stem in _QUICK_CONFIGS,
        needs=_NEEDS.get(file.stem, ()),
        seeded=not is_real,
    )


_QUICK_MATERIALS = ("claims", "settings", "ranges", "faults", "journals")
_MATERIAL_NEEDS = {"frames": ("pandas",), "outputs": ("sklearn",)}


def _materials() -> list[Run]:
    return [
        Run(
            file.stem,
            ("run", file.name, "-v", "--json", JSON),
            quick=file.stem in _QUICK_MATERIALS,
            needs=_MATERIAL_NEEDS.get(file.stem, ()),
        )
        for file in sorted(MATERIAL.glob("*.yaml"))
    ]


_TWO, _VECTORS = ("d1.npy", "d2.npy"), ("d1-vectors.npy", "d2-vectors.npy")
_BOUNDS: dict[str, tuple[str, ...]] = {
    "numbers": (*_TWO, "--epsilon", "0.5"),
    "numbers-delta": (*_TWO, "--epsilon", "0.5", "--delta", "0.01"),
    "numbers-clopper-pearson": (*_TWO, "--epsilon", "1", "--bound", "clopper-pearson"),
    "numbers-sure": (*_TWO, "--epsilon", "0.9", "--confidence", "0.9999", "--seed", "7"),
    "scores": (*_TWO, "--scores", "--epsilon", "1"),
    "scores-delta": (*_TWO, "--scores", "--epsilon", "0.7", "--delta", "1e-3"),
    "uneven": ("few.npy", "d2.npy", "--epsilon", "0.8"),
    "vectors-delta": (*_VECTORS, "--epsilon", "1", "--delta", "1e-3"),
    "vectors-mu": (*_VECTORS, "--mu", "1.2"),
    "mappings": ("d1.jsonl", "d2.jsonl", "--epsilon", "0.8"),
    "arms": ("runs.csv", "--arm", "input", "--mu", "0.5"),
    "arms-delta": ("runs.csv", "--arm", "input", "--epsilon", "1", "--delta", "0.05"),
    "arms-sorted": ("sorted.csv", "--arm", "input", "--epsilon", "1"),
    "guesses": ("--guesses", "1000", "100", "75", "--epsilon", "0.5"),
    "guesses-delta": ("--guesses", "1000", "100", "75", "--epsilon", "0.5", "--delta", "1e-4"),
    "guesses-of-a-file": ("canaries.csv", "--guesses", "--epsilon", "1", "--delta", "1e-5"),
    "missing-file": ("no.npy", "d2.npy", "--epsilon", "1"),
}
_QUICK_BOUNDS = ("numbers-delta", "scores", "arms", "guesses-of-a-file")


def _bounds() -> list[Run]:
    return [
        Run(f"bound--{name}", ("bound", *words, "-v", "--json", JSON), quick=name in _QUICK_BOUNDS)
        for name, words in _BOUNDS.items()
    ]


def _reports() -> list[Run]:
    """Recheck what releases of before wrote, and what was kept."""
    gallery = "configs/gallery/results.json"
    return [
        Run("report--gallery", ("report", gallery), at_home=True, quick=True),
        Run("report--gallery-verbose", ("report", gallery, "-v"), at_home=True),
        *(
            Run(f"report--{name}", ("report", f"../recorded/{name}.json"), quick=name == "ranges")
            for name in RECORDED
        ),
        Run("report--rerun", ("report", "../recorded/ranges.json", "--rerun")),
    ]


def _journals() -> list[Run]:
    """Go on with journals that were cut: the results must be those of the run called journals."""
    resumed = ("run", "journals.yaml", "--journal", FOLDER, "--resume", "-v", "--json", JSON)
    return [
        *(Run(f"journals--{cut}", resumed, quick=cut == "late", journals=cut) for cut in CUTS),
        Run(
            "journals--two-workers",
            (*resumed, "--workers", "2", "-k", "two-pairs"),
            journals="early",
        ),
    ]


_LAPLACE = ("run", "mechanisms.laplace:laplace", "--d1", "0", "--d2", "1", "--samples", "5000")
_COMMANDS: dict[str, tuple[str, ...]] = {
    "from-python": ("from_python.py",),
    "flags": (*_LAPLACE, "--epsilon", "0.5", "--stop", "never", "--seed", "3", "--json", JSON),
    "flags--expectation-not-met": (*_LAPLACE, "--epsilon", "1", "--expect", "violation"),
    "flags--under-powered": (*_LAPLACE, "--epsilon", "14", "--json", JSON),
    "flags--nothing-matches": ("run", "claims.yaml", "-k", "no such audit"),
    "flags--missing-claim": _LAPLACE,
    "flags--no-such-mechanism": ("run", "specimens.py:gausian", "--d1", "0", "--d2", "1"),
    "flags--quiet-json-to-stdout": (*_LAPLACE, "--epsilon", "0.5", "-q", "--json", "-"),
    "schema": ("schema",),
    "list--definitions": ("list", "definitions"),
    "list--attacks": ("list", "attacks"),
    "explain--profiles": ("explain", "profile", "--epsilon", "1", "--delta", "1e-5", "--mu", "1"),
    "explain--tradeoff": ("explain", "tradeoff", "--rho", "0.5"),
    "explain--posterior": ("explain", "posterior", "--epsilon", "1.1", "--prior", "0.5"),
}


def _commands() -> list[Run]:
    return [
        Run(name, words, quick=name in ("flags", "from-python"))
        for name, words in _COMMANDS.items()
    ]
