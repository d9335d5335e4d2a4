"""Mechanisms that go wrong, for processes of their own; for any Python from 3.8 on."""

from __future__ import annotations

import collections
import os
import random
import sys
import time

TYPE_CHECKING = False  # the import of typing takes a sixth of the start of a process
if TYPE_CHECKING:
    from typing import Any

CARRIED = random.Random(0)
Point = collections.namedtuple("Point", ["x", "y"])


def plain(dataset: float) -> float:
    return dataset + random.random()


def echo(dataset: Any) -> Any:
    return dataset


def reads(frame: Any) -> int:
    column = frame if frame.ndim == 1 else frame.iloc[:, 0]
    return len(column.tolist())


def overwrites(frame: Any) -> int:
    place: Any = 0 if frame.ndim == 1 else (0, 0)
    last = frame.iloc[-1] if frame.ndim == 1 else frame.iloc[-1, 0]
    frame.iloc[place] = last if len(frame) > 1 else 7
    return 0


def batch(dataset: float, size: int, rng: Any) -> Any:
    return dataset + rng.random(size=size)


def listed(dataset: Any, size: int) -> list[Any]:
    return [dataset] * size


def too_few(dataset: Any, size: int) -> list[Any]:
    return [dataset]


def dies_in_a_batch(dataset: Any, size: int) -> list[Any]:
    os.abort()


def with_rng(dataset: float, rng: Any) -> float:
    return dataset + float(rng.random())


def carried(dataset: float) -> float:
    """A generator of its own with a fixed seed, in a process that ends now and then."""
    if random.random() < 0.02:
        os.abort()
    return CARRIED.random()


def logged(dataset: int, log: str, share: float = 0.02, how: str = "abort") -> int:
    """Note every draw that is begun, in a way that nothing can undo."""
    with open(log, "a") as file:  # noqa: PTH123  # as quick as can be
        file.write(f"{dataset}\n")
    if random.random() < share:
        fail(how)
    return dataset


def fail(how: str) -> Any:
    if how == "abort":
        os.abort()
    if how == "hang":
        time.sleep(600)
    if how == "sys.exit":
        sys.exit(4)
    if how == "interrupt":
        raise KeyboardInterrupt
    if how == "memory":
        return len(bytearray(1 << 33))
    raise ValueError(how)


def always(dataset: Any, how: str) -> Any:
    return fail(how)


def complaining(dataset: Any) -> None:
    sys.stderr.write("no license")
    sys.stderr.flush()
    os._exit(7)


def complaining_of_1(dataset: Any, log: str) -> Any:
    return complaining(dataset) if dataset else 0.0


def counting_its_deaths(dataset: Any, log: str) -> None:
    with open(log, "a+") as file:  # noqa: PTH123
        file.write("!")
        file.seek(0)
        os._exit(1 + len(file.read()))


def talks(dataset: Any) -> Any:
    print("x" * 50_000)  # noqa: T201  # what is tested
    os.write(1, b"y" * 50_000)
    os.write(2, b"z" * 50_000)
    return dataset if sys.stdin.read() == "" else None


def grows(dataset: list[int]) -> int:
    dataset.append(0)
    return len(dataset)


def long_text(dataset: int) -> str:
    return "x" * dataset


def point(dataset: float) -> Any:
    return Point(dataset, [1, None])


def waits_for(dataset: Any, file: str) -> Any:
    while not os.path.exists(file):  # noqa: PTH110
        time.sleep(0.01)
    return dataset


class Counted:
    """Appends a line to a file whenever one is made."""

    def __init__(self, log: str) -> None:
        with open(log, "a") as file:  # noqa: PTH123
            file.write("made\n")

    def draw(self, dataset: float) -> float:
        return dataset


def strange(dataset: Any) -> Any:
    return object()


def is_there(output: Any) -> bool:
    return output is not None


def cyclic(dataset: Any) -> Any:
    inside: list[Any] = []
    inside.append(inside)
    return inside


def deep(dataset: Any) -> Any:
    output: Any = dataset
    for _ in range(3000):
        output = [output]
    return output


class NoSeed(random.Random):
    """Draws from the operating system, as libraries have it, and says so when it is seeded;
    `random.SystemRandom` is silent."""

    def __init__(self) -> None:
        """Do not seed, as `random.Random` would."""

    def random(self) -> float:
        return random.SystemRandom().random()

    def seed(self, *_: Any) -> None:
        raise NotImplementedError("a secure source has no seed")
