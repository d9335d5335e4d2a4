from __future__ import annotations

import pickle
import sys
from pathlib import Path

import pytest

from dpaudit.claims import PureDP
from dpaudit.errors import DpauditError, TargetError
from dpaudit.import_path import located, resolve
from dpaudit.wording import nearest


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def message(path: str) -> str:
    with pytest.raises(TargetError) as caught:
        resolve(path)
    assert caught.value.exit_code == 2
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.fixture(autouse=True)
def _restored_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))


def test_module_in_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "own_noise_module.py", "def draw(x): return x")
    monkeypatch.chdir(tmp_path)
    assert resolve("own_noise_module:draw")(3) == 3


def test_file_is_loaded_once_and_its_functions_can_be_pickled(tmp_path: Path) -> None:
    file = write(tmp_path / "noise.py", "def draw(x): return x")
    draw = resolve(f"{file}:draw")
    assert resolve(f"{file}:draw") is draw
    assert pickle.loads(pickle.dumps(draw)) is draw


def test_file_name_is_relative_to_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "sub" / "noise.py", "def draw(x): return -x")
    monkeypatch.chdir(tmp_path)
    assert resolve("sub/noise.py:draw")(3) == -3


def test_file_may_import_its_neighbours_while_loading_and_later(tmp_path: Path) -> None:
    write(tmp_path / "neighbour_one.py", "ONE = 1")
    write(tmp_path / "neighbour_two.py", "TWO = 2")
    text = (
        "from neighbour_one import ONE\n"
        "def draw(x):\n    from neighbour_two import TWO\n    return x + ONE + TWO"
    )
    file = write(tmp_path / "noise.py", text)
    assert resolve(f"{file}:draw")(0) == 3


def test_two_files_of_one_name_are_two_modules(tmp_path: Path) -> None:
    first = write(tmp_path / "a" / "noise.py", "WHICH = 'a'")
    two = write(tmp_path / "b" / "noise.py", "WHICH = 'b'")
    assert (resolve(f"{first}:WHICH"), resolve(f"{two}:WHICH")) == ("a", "b")


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("mechanisms.laplase", "import-path-invalid"),
        ("mechanisms.laplace", "import-path-invalid"),
        (":f", "import-path-invalid"),
        ("mechanisms.laplace:laplace:x", "import-path-invalid"),
        ("mechanism.laplace:laplace", "module-not-found"),
        ("noise.py", "module-not-found"),
        ("no/noise.py:draw", "module-not-found"),
        ("mechanisms.laplace:laplacce", "name-not-found"),
    ],
)
def test_each_kind_of_mistake_has_its_code(path: str, code: str) -> None:
    with pytest.raises(TargetError) as error:
        resolve(path)
    assert error.value.code == code


def test_an_import_error_inside_the_module_names_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "own_broken_module.py", "import a_dependency_nobody_has")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TargetError) as error:
        resolve("own_broken_module:draw")
    text = str(error.value)
    assert error.value.code == "import-failed"
    assert "No module named 'a_dependency_nobody_has'" in text
    assert "own_broken_module.py, line 1" in text


@pytest.mark.parametrize(
    ("code", "words"),
    [("1/0", "ZeroDivisionError"), ("raise SystemExit(3)", "SystemExit"), ("def", "SyntaxError")],
)
def test_code_that_fails_while_loading(tmp_path: Path, code: str, words: str) -> None:
    file = write(tmp_path / "noise.py", code)
    assert words in message(f"{file}:draw")
    # A failed module must not be found half made the next time.
    assert words in message(f"{file}:draw")


def test_an_error_of_dpaudit_in_a_module_keeps_its_code_and_names_the_line_of_the_caller(
    tmp_path: Path,
) -> None:
    file = write(tmp_path / "calls.py", "import dpaudit\n\ndpaudit.PureDP(-1.0)\n")
    with pytest.raises(TargetError) as error:
        resolve(f"{file}:mechanism")
    with pytest.raises(DpauditError) as own:
        PureDP(-1.0)
    assert error.value.code == own.value.code
    assert str(error.value) == f"'{file}': {own.value} ({file}, line 3)"


def test_file_beside_a_configuration_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "configs" / "noise.py", "")
    monkeypatch.chdir(tmp_path)
    base = Path("configs")
    assert located("noise.py:draw", base) == f"{base / 'noise.py'}:draw"
    write(tmp_path / "noise.py", "")
    assert located("noise.py:draw", base) == "noise.py:draw"
    assert located("package.module:draw", base) == "package.module:draw"


SLIPS: dict[tuple[str, str], str | None] = {
    ("epsilom", "epsilon"): "epsilon",
    ("eps", "epsilon"): "epsilon",
    ("d", "d2"): None,
    (".py", ".npy"): None,
}


@pytest.mark.parametrize(("wrong", "known"), SLIPS)
def test_misspelled_names_get_suggestions(wrong: str, known: str) -> None:
    assert nearest(wrong, [known]) == SLIPS[wrong, known]


@pytest.mark.parametrize("wrong", ["no-violation", "no violation", "noviolation", "not-violation"])
def test_the_opposite_of_a_name_is_not_suggested(wrong: str) -> None:
    assert nearest(wrong, ["violation", "pass"]) is None
    assert nearest("no-trac", ["trace", "no-trace"]) == "no-trace"
