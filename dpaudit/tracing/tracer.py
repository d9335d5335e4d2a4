"""Trace a mechanism in another process, whose Python may be older (3.8 or later), and needs only
NumPy.

The parent process runs this file as a script and sends requests to it: prepare, begin and couple
(methods of `Tracing`), and the requests of child_script.py that make no draws. This Python need
not have dpaudit installed, so the package `runs` is imported from its files, under a private
module name.
"""

from __future__ import annotations

import importlib
import os
import sys

TYPE_CHECKING = False  # avoids the import of typing, which takes time
if TYPE_CHECKING:
    from typing import Any

_HERE = __file__.rpartition(os.sep)[0]
_RUNS = "_dpaudit_runs"


if __name__ != "__main__":
    from dpaudit.processes import child_script
else:  # modules in the folders of dpaudit must not hide modules of the user with equal names
    sys.path[:] = [folder for folder in sys.path if folder != _HERE]
    sys.path.insert(0, os.path.join(_HERE.rpartition(os.sep)[0], "processes"))  # noqa: PTH118
    import child_script  # type: ignore[import-not-found, no-redef]

    del sys.path[0], sys.modules["child_script"]


_MODULES = ("coupling", "patching", "places", "primitives.user_primitives", "running")


class Tracing(child_script.Service):
    """Answers the requests of the parent process. A request calls the method of the same name."""

    def prepare(self, how: Any, primitives: bytes, follow: list[str], claim: Any) -> Any:
        """Import the modules that a trace needs, store its settings, and return an empty reply.

        how: The names of the parameters for the dataset and the random generator, whether the
            latter gets a seed instead, and the name of that for the number of outputs; None for a
            parameter that the mechanism does not have.
        primitives: The functions of the user that add noise, pickled.
        claim: The points (ε, δ) of the privacy claim; empty if nothing is claimed.
        """
        try:
            if _RUNS not in sys.modules:
                child_script.load(_RUNS, os.path.join(_HERE, "runs", "__init__.py"))  # noqa: PTH118
            self._modules = {name: importlib.import_module(_RUNS + "." + name) for name in _MODULES}
        except ImportError as error:
            raise child_script.Refused(
                f"a trace needs NumPy, which {sys.executable} cannot import ({error})"
            ) from None
        running, module = self._modules["running"], self._modules["places"]
        data, rng, by_seed, batch = how
        self._subject = running.Subject(
            function=self._function,
            params=self._params,
            data=data,
            rng=rng,
            by_seed=by_seed,
            batch=batch,
            post_process=self._process,
            followed=running.followed_for(self._function, [], self._maker, self._name),
            primitives=self._modules["patching"].Primitives(
                [self._run_begins, *map(self._primitive, _functions(primitives))]
            ),
            claim=claim,
        )
        try:
            module.check_followed(follow)
        except ValueError:
            running.run(self._subject, self._datasets[0], 0, has_lines=False)
            try:
                module.check_followed(follow)  # the run may have extended sys.path
            except ValueError as error:
                raise child_script.Refused(str(error)) from None
        followed = running.followed_for(self._function, follow, self._maker, self._name)
        self._subject = self._subject._replace(followed=followed)
        return {}

    def _run_begins(self, recorder: Any) -> Any:
        """Count a run that begins, in memory shared with the parent. Yields no replacement."""
        # The functions that yield replacements are called when a run begins; this one is among them
        # only to be called at that time.
        done = self._layout.counters[0]
        self._layout.counters[0] = 0 if done == child_script.NOT_BEGUN else done + 1
        return iter(())

    def _primitive(self, function: Any) -> Any:
        module = self._modules["primitives.user_primitives"]
        return lambda recorder: module.named(function, recorder)

    def begin(self, seconds: float) -> Any:
        """Make the first run, which may import modules, within `seconds`. The reply is empty, or
        {"over": the reason} if the run took too long."""
        coupling = self._modules["coupling"]
        try:
            self._begun = coupling.beginning(self._for(seconds), self._datasets[0])
        except coupling.TooLong as error:
            return {"over": str(error)}
        return {}

    def couple(self, seeds: int, seconds: float) -> Any:
        """Run the mechanism on both datasets with the same noise, and return ({}, the runs as
        JSON): an empty reply, since every request gets one, and the data. `seconds` limits all runs
        together."""
        datasets = map(self._datasets.get, (0, 1))
        runs = self._modules["coupling"].couple(self._for(seconds), *datasets, seeds, self._begun)
        return {}, self._modules["coupling"].written(runs)

    def _for(self, seconds: float) -> Any:
        deadline = importlib.import_module("time").monotonic() + seconds
        return self._subject._replace(deadline=deadline)


def _functions(primitives: bytes) -> Any:
    for primitive in child_script.loaded(primitives, "a primitive"):
        function = child_script.resolved(primitive) if isinstance(primitive, str) else primitive
        if not callable(function):
            raise child_script.Refused(f"--primitive {primitive}: must name a function")
        yield function


if __name__ == "__main__":
    child_script.main(Tracing)
