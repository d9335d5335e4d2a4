"""Run a function of dpaudit in a new interpreter in which one file has a planted bug.

The file itself is never written. The new interpreter, and all that it starts, find a folder with
`sitecustomize.py` on their path, which compiles another text in place of the file's.
"""

from __future__ import annotations

import math
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dpaudit.hash_seed import USUAL, VARIABLE

# Follows `texts`: {path of a file: text to compile in its place}. Also run by other interpreters,
# from Python 3.8 on. linecache gets the text for traces.
_SITE = """
import importlib.machinery, linecache, os, sys

loader = importlib.machinery.SourceFileLoader
usual = loader.get_code

def get_code(self, name):
    text = texts.get(os.path.realpath(self.path))
    if text is None:
        return usual(self, name)
    linecache.cache[self.path] = (len(text), None, text.splitlines(True), self.path)
    return compile(text, self.path, "exec", dont_inherit=True)

loader.get_code = get_code
# This file hides a sitecustomize.py of the user, which is run now.
sys.path[:] = [path for path in sys.path if path != os.path.dirname(__file__)]
own = sys.modules.pop("sitecustomize")
try:
    import sitecustomize
except ImportError:
    sys.modules["sitecustomize"] = own
"""


class ChildEnded(Exception):
    """Raised if the new interpreter ended without a result, or ran too long."""


def run_planted(
    function: Callable[..., Any], arguments: tuple[Any, ...], texts: dict[str, str], seconds: float
) -> Any:
    """Call a function in a new interpreter, and return its result.

    function: function of a module of dpaudit, sent by its name.
    arguments: its arguments, which must be picklable.
    texts: text to compile in place of each file, by its path.
    seconds: time limit.

    Raises ChildEnded if there is no result.
    """
    with tempfile.TemporaryDirectory(prefix="dpaudit-") as name:
        folder = Path(name).resolve()
        (folder / "job").write_bytes(pickle.dumps((function, arguments)))
        environment = {VARIABLE: USUAL, **os.environ}
        if texts:
            site = f"texts = {texts!r}\n{_SITE}"
            (folder / "sitecustomize.py").write_text(site, encoding="utf-8")
            paths = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
            environment["PYTHONPATH"] = os.pathsep.join(paths)
        program = f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import serve; serve()"
        try:
            ended = subprocess.run(  # noqa: S603  # this interpreter
                [sys.executable, "-c", program, str(folder)],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                timeout=None if math.isinf(seconds) else max(0.0, seconds),
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise ChildEnded(f"no result after {seconds:.0f} s") from None
        if not (folder / "result").is_file():
            last = ended.stderr.decode(errors="replace").strip().rpartition("\n")[2]
            raise ChildEnded(f"the process ended: {last[:200] or ended.returncode}")
        return pickle.loads((folder / "result").read_bytes())


def serve() -> None:
    """Call the function that the parent has sent, and write its result."""
    folder = Path(sys.argv.pop())
    function, arguments = pickle.loads((folder / "job").read_bytes())
    (folder / "result").write_bytes(pickle.dumps(function(*arguments)))
