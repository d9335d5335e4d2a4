"""Traces a mechanism in a process of its own: a script for Python 3.8 and later, with NumPy.

It answers requests as worker.py does, without draws, and imports the package `runs` under a
private name: dpaudit need not be installed there.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys

TYPE_CHECKING = False  # spares the import of typing
if TYPE_CHECKING:
    from typing import Any

_HERE = __file__.rpartition(os.sep)[0]
_RUNS = "_dpaudit_runs"


def _load(name: str, file: str, folder: str | None = None) -> Any:
    """Import a file of dpaudit under another name. folder: of a package."""
    folders = None if folder is None else [folder]
    spec: Any = importlib.util.spec_from_file_location(
        name, file, submodule_search_locations=folders
    )
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ != "__main__":
    from dpaudit.processes import worker
else:  # modules beside this one must not hide those of the user's
    sys.path[:] = [one for one in sys.path if one != _HERE]
    _processes = os.path.join(_HERE.rpartition(os.sep)[0], "processes")  # noqa: PTH118  # in short
    sys.path.insert(0, _processes)
    worker = _load("_dpaudit_worker", os.path.join(_processes, "worker.py"))  # noqa: PTH118
    sys.path.remove(_processes)


_MODULES = ("coupling", "patching", "places", "primitives.own", "running")


class Tracing(worker.Service):
    """The requests that this process answers, by name."""

    def prepare(
        self, how: Any, primitives: bytes, follow: list[str], last: str, patience: float
    ) -> Any:
        """Get ready to trace.

        how: names of the parameters for the dataset, a generator and a number of outputs.
        primitives: the user's, pickled.  last: a file for the stack at a crash.  patience: seconds
        of a run after which it writes its stack, too; 0: never.
        """
        try:
            if _RUNS not in sys.modules:
                runs = os.path.join(_HERE, "runs")  # noqa: PTH118  # in short
                _load(_RUNS, os.path.join(runs, "__init__.py"), runs)  # noqa: PTH118
            self._modules = {name: importlib.import_module(_RUNS + "." + name) for name in _MODULES}
        except ImportError as error:
            raise worker.Refused(
                f"a trace needs NumPy, which {sys.executable} cannot import ({error})"
            ) from None
        self._faults: Any = importlib.import_module("faulthandler")
        # Open as long as this process lives: what crashes writes into it.
        self._last = open(last, "w")  # noqa: PTH123, SIM115
        self._faults.enable(self._last)
        self._patience = patience
        running, places = self._modules["running"], self._modules["places"]
        try:
            places.check_followed(follow)
        except ValueError as error:
            raise worker.Refused(str(error)) from None
        data, rng, batch = how
        self._subject = running.Subject(
            function=self._function,
            params=self._params,
            data=data,
            rng=rng,
            batch=batch,
            post_process=self._process,
            followed=running.followed_for(self._function, follow, self._maker, self._name),
            primitives=self._modules["patching"].Primitives(
                [self._run_begins, *map(self._primitive, _found(primitives))]
            ),
        )
        return {}

    def _run_begins(self, recorder: Any) -> Any:
        """Count a run. This is a primitive that replaces nothing."""
        done = self._layout.counters[0]
        self._layout.counters[0] = 0 if done == worker.NOT_BEGUN else done + 1
        if self._patience:
            self._faults.dump_traceback_later(self._patience, file=self._last)
        return iter(())

    def _primitive(self, function: Any) -> Any:
        own = self._modules["primitives.own"]
        return lambda recorder: own.named(function, recorder)

    def begin(self, seconds: float) -> Any:
        """Make the first run, which may import modules; reply whether it was too long."""
        coupling = self._modules["coupling"]
        try:
            self._begun = coupling.beginning(self._for(seconds), self._datasets[0], 0)
        except coupling.TooLong as error:
            return {"over": str(error)}
        return {}

    def couple(self, seeds: int, seconds: float) -> Any:
        """Run on both datasets; reply with the coupled runs."""
        both = map(self._datasets.get, (0, 1))
        found = self._modules["coupling"].couple(self._for(seconds), *both, seeds, self._begun)
        return {}, self._modules["coupling"].written(found)

    def _for(self, seconds: float) -> Any:
        deadline = importlib.import_module("time").monotonic() + seconds
        return self._subject._replace(deadline=deadline)

    def once(self, number: int, seeds: list[int]) -> Any:
        """Run on one dataset; reply with the number of draws of the last run."""
        run, draws = self._modules["running"].run, 0
        for seed in seeds:
            made = run(self._subject, self._datasets[number], seed, has_lines=False)
            draws = len(made.recorder.draws)
        return {"draws": draws}


def _found(primitives: bytes) -> Any:
    for one in worker.loaded(primitives, "a primitive"):
        found = worker.resolved(one) if isinstance(one, str) else one
        if not callable(found):
            raise worker.Refused(f"--primitive {one}: must name a function")
        yield found


if __name__ == "__main__":
    worker.main(Tracing)
