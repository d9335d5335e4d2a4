"""Programs that speak the protocol of docs/guides/protocol.md, and those that do not."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaudit.adapters import command
from dpaudit.adapters.calls import Mechanism
from dpaudit.adapters.loading import load_mechanism
from dpaudit.errors import DatasetError, MechanismError, TargetError
from dpaudit.outcomes import Raised
from dpaudit.processes import child
from dpaudit.targets.target import CommandTarget, Limits

C_SOURCE = Path(__file__).parents[3] / "docs" / "examples" / "laplace.c"

LOOP = """
import json, os, random, sys, time
log = open({log!r}, "a")
print('{hello}', flush=True)
for line in sys.stdin:
    request = json.loads(line)
    random.seed(request["seed"])
    x = request["dataset"]
    for _ in range(request["size"]):
        log.write(str(x) + chr(10)); log.flush()
{body}
"""
HELLO = '{"dpaudit": 1}'
ECHO = "print(json.dumps(x), flush=True)"
NOISE = "print(x + random.random(), flush=True)"

Write = Callable[..., CommandTarget]


@pytest.fixture
def program(tmp_path: Path) -> Write:
    """Write a program that answers a request with the lines of `body` for each outcome."""

    def write(body: str, hello: str = HELLO, limits: Limits | None = None, **extra: Any) -> Any:
        file = tmp_path / f"program{len(list(tmp_path.iterdir()))}.py"
        indented = "\n".join(" " * 8 + line for line in body.split("\n"))
        file.write_text(
            LOOP.format(log=str(tmp_path / "log"), hello=hello, body=indented), encoding="utf-8"
        )
        words = (sys.executable, str(file))
        return CommandTarget(words=words, limits=limits or Limits(), **extra)

    return write


@pytest.fixture
def compiled(tmp_path: Path) -> str:
    binary = str(tmp_path / "laplace")
    flags = ("-O2", "-std=c99", "-Wall", "-Wextra", "-Werror")
    subprocess.run(["cc", *flags, "-o", binary, str(C_SOURCE), "-lm"], check=True)
    return binary


@contextmanager
def running(target: CommandTarget) -> Iterator[Mechanism]:
    mechanism = load_mechanism(target)
    try:
        yield mechanism
    finally:
        mechanism.close()


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def lines(path: Path) -> list[str]:
    return path.read_text().split()


def test_a_program_that_ends_before_it_reads_is_an_error(tmp_path: Path) -> None:
    log = tmp_path / "log"
    body = f"echo started >> {log}; echo '{HELLO}'; echo broken >&2; exit 3"
    mechanism = load_mechanism(CommandTarget(words=("sh", "-c", body)))
    with pytest.raises(MechanismError, match=r" 40 draws .*: broken") as error:
        mechanism.sample_each([0, 1] * 100, rng())
    assert error.value.code == "mechanism-ends-process"
    # The first one of all may end before anything is sent to it.
    assert 40 <= len(log.read_text().split()) <= 41


def test_requests_for_one_outcome_take_turns(program: Write) -> None:
    with running(program(NOISE)) as mechanism:
        assert mechanism.interleaved
        drawn = mechanism.sample_each([0, 10] * 500, rng())
        assert [int(one) for one in drawn] == [0, 10] * 500
        assert len(set(drawn)) == 1_000
        assert drawn == mechanism.sample_each([0, 10] * 500, rng())
        assert drawn != mechanism.sample_each([0, 10] * 500, rng(1))


def test_the_program_in_c_draws_laplace_noise(compiled: str) -> None:
    with running(CommandTarget(words=(compiled, "0.5"))) as mechanism:
        assert not mechanism.interleaved
        drawn = np.asarray(mechanism.sample(10, 100_000, rng()))
        assert np.array_equal(drawn, mechanism.sample(10, 100_000, rng()))
    # The mean, the standard deviation √2/ε and a quantile, within five standard errors.
    assert abs(drawn.mean() - 10) < 5 * np.sqrt(8 / 100_000)
    assert abs(drawn.std() / np.sqrt(8) - 1) < 0.02
    assert abs((drawn > 10 + 2 * np.log(5)).mean() - 0.1) < 5 * np.sqrt(0.09 / 100_000)


def test_frames_of_vectors_of_integers(program: Write) -> None:
    hello = '{"dpaudit": 1, "frames": "int64", "columns": 3}'
    body = 'sys.stdout.buffer.write(b"".join(i.to_bytes(8, "little") for i in (x, 2, 3)))'
    body += "; sys.stdout.flush()"
    with running(program(body, hello)) as mechanism:
        assert np.array_equal(mechanism.sample(1, 4, rng()), [[1, 2, 3]] * 4)
        assert mechanism.sample_each([5], rng())[0].tolist() == [5, 2, 3]


def test_many_lines_for_one_request(program: Write) -> None:
    with running(program(ECHO, '{"dpaudit": 1, "batch": true}')) as mechanism:
        assert not mechanism.interleaved
        assert mechanism.sample([1, "a"], 3_000, rng()) == [[1, "a"]] * 3_000
    with running(program(ECHO, is_batch=True)) as mechanism:
        assert not mechanism.interleaved


def test_outcomes_of_any_shape(program: Write) -> None:
    values: list[Any] = [1, None, True, "ä\n", [1, [2.5]], {"a": {"b": []}}, float("inf"), 2**70]
    with running(program(ECHO)) as mechanism:
        assert list(mechanism.sample_each(values, rng())) == values
        array: Any = [np.arange(3), (1, {3, 2}), np.float64(0.5)]
        assert mechanism.sample_each(array, rng()) == [[0, 1, 2], [1, [2, 3]], 0.5]
        with pytest.raises(DatasetError, match=r" JSON .* complex"):
            mechanism.sample_each([1j], rng())


def test_a_failure_is_an_outcome(program: Write) -> None:
    body = """print('{"$raised": "Overflow", "message": "too much"}', flush=True)"""
    with running(program(body)) as mechanism:
        assert mechanism.sample(0, 2, rng()) == [Raised("Overflow", "too much")] * 2


def test_post_processing_leaves_failures_alone(program: Write) -> None:
    body = "print(x if x else json.dumps({'$raised': 'E'}), flush=True)"
    with running(program(body, post_process="builtins:str")) as mechanism:
        assert mechanism.sample_each([1, 0], rng()) == ["1", Raised("E", "")]


@pytest.mark.parametrize("death", ["os.abort()", "1/0"])
def test_the_draw_under_way_is_the_outcome_crash_and_no_other_is_lost(
    death: str, program: Write, tmp_path: Path
) -> None:
    inputs = list(range(8)) * 12
    with running(program(f"if random.random() < 0.03: {death}\n{ECHO}")) as mechanism:
        drawn = mechanism.sample_each(inputs, rng())
        assert drawn == mechanism.sample_each(inputs, rng())
    crashes = [one for one in drawn if isinstance(one, Raised)]
    assert {one.kind for one in crashes} == {"crash"}
    assert len(crashes) >= 2
    assert lines(tmp_path / "log") == list(map(str, inputs * 2))
    assert all(
        one == dataset or isinstance(one, Raised)
        for one, dataset in zip(drawn, inputs, strict=True)
    )
    if death == "1/0":
        assert crashes[0].message == "exit code 1: ZeroDivisionError: division by zero"


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ("print('nonsense', flush=True)", "'nonsense'"),
        ("print(1, flush=True); print(2, flush=True)", "more"),
        ("print('x' * (1 << 24) + 'yyy', flush=True)", "16,777,216 bytes"),
        ("while True: sys.stdout.write('x' * 100_000)", "16,777,216 bytes"),
        ("for _ in range(300): print(1, flush=True); time.sleep(1e-3)", "more"),
    ],
)
def test_invalid_answers_are_errors(
    body: str, named: str, program: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child, "_GRACE_SECONDS", 0.1)  # some write until they are killed
    with running(program(body)) as mechanism, pytest.raises(MechanismError, match=named) as error:
        mechanism.sample(0, 300, rng())
    assert error.value.code == "program-misbehaved"


BYTEWISE = """
import json, os, sys, time
print('{"dpaudit": 1}', flush=True)
while True:
    text = b""
    while not text.strip().endswith(b"}"):
        text += os.read(0, 1) or sys.exit()
    print(json.loads(text)["dataset"], flush=True)
    time.sleep(0.02)
"""


def test_the_end_of_a_request_need_not_be_read() -> None:
    """A parser may be content with the closing bracket, and read the end of the line later."""
    with running(CommandTarget(words=(sys.executable, "-c", BYTEWISE))) as mechanism:
        assert mechanism.sample(7, 20, rng()) == [7] * 20
        assert mechanism.sample(8, 20, rng()) == [8] * 20


def test_unlimited_standard_error_does_not_block(program: Write) -> None:
    body = f"sys.stderr.write('z' * 300_000)\n{ECHO}"
    with running(program(body)) as mechanism:
        assert mechanism.sample(7, 20, rng()) == [7] * 20


def test_a_batch_whose_program_dies_is_an_error(program: Write) -> None:
    with (
        running(program("os._exit(3)", is_batch=True)) as mechanism,
        pytest.raises(MechanismError, match=r"exit code 3.*size=5.*batch_arg='none'") as error,
    ):
        mechanism.sample(0, 5, rng())
    assert error.value.code == "batch-failed"


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("no-such-program",), "'no-such-program'"),
        (("echo", "hello"), "'hello': .*JSON"),
        (("echo", '{"dpaudit": 2}'), """'{"dpaudit": 2}': .* {"dpaudit": 1}"""),
        (("echo", '{"dpaudit": 1, "frame": 8}'), "`frame`"),
        (("echo", '{"dpaudit": 1, "columns": 2}'), "columns without frames"),
        (("sh", "-c", "echo broken >&2; exit 7"), "exit code 7: broken"),
    ],
)
def test_a_program_must_write_a_first_line(words: tuple[str, ...], named: str) -> None:
    with pytest.raises(TargetError, match=named) as error:
        load_mechanism(CommandTarget(words=words))
    assert error.value.code == "program-not-started"


def test_a_program_without_a_first_line_may_buffer_its_output(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert command._GREETING_SECONDS == 10
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    monkeypatch.setattr(command, "_GREETING_SECONDS", 0.5)
    code = f"import sys; print({HELLO!r}); sys.stdin.read()"
    with pytest.raises(TargetError, match=r"awk.*python -u"):
        load_mechanism(CommandTarget(words=(sys.executable, "-c", code)))
