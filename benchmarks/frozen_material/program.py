"""A program as dpaudit --command talks to it: noise drawn from the seed of each request."""

from __future__ import annotations

import json
import random
import sys


def main() -> None:
    say({"dpaudit": 1, "batch": True})
    for line in sys.stdin:
        request = json.loads(line)
        rng = random.Random(request["seed"])
        for _ in range(request["size"]):
            if rng.random() < 0.01:
                say({"$raised": "ValueError", "message": "no luck"})
            else:
                say(request["dataset"] + rng.expovariate(1.0) - rng.expovariate(1.0))


def say(value: object) -> None:
    print(json.dumps(value), flush=True)


if __name__ == "__main__":
    main()
