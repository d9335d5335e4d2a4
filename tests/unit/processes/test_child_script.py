"""The script of isolated mechanisms."""

from __future__ import annotations

import subprocess
import sys

# Generators of the whole process are seeded, so that another process has to call it.
_IN_EITHER_ORDER = """
import gc, random, sys, types
from dpaudit.processes import child_script

module = types.ModuleType("two")
module.first, module.second = random.Random(1), random.Random(2)
inner = [random.Random(number) for number in range(5)]
module.holder = types.SimpleNamespace(one=inner[4], more={"of": [inner[0], inner[3]]})
sys.modules["two"] = module
held = lambda rng=inner[2]: (rng, inner[1])
listed = gc.get_objects
by_age = child_script.generators(held)
gc.get_objects = lambda: listed()[::-1]
reversed_ = child_script.generators(held)
places = [[every.index(one) for one in (random._inst, module.first, module.second, *inner)]
          for every in (by_age, reversed_)]
assert len(by_age) == len(reversed_) == len(set(map(id, by_age)))
print(places)
"""


def test_the_seeds_of_generators_do_not_depend_on_garbage_collection() -> None:
    words = [sys.executable, "-c", _IN_EITHER_ORDER]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout == f"{[[0, 1, 2, 6, 7, 3, 5, 4]] * 2}\n"
