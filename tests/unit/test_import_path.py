from __future__ import annotations

import pickle
import re
import sys
from pathlib import Path

import pytest

from dpaudit.claims import PureDP
from dpaudit.errors import DpauditError, TargetError
from dpaudit.import_path import located, resolve
from dpaudit.wording import did_you_mean_file, nearest
from tests.raising import refusal


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


def test_module_in_an_installed_package() -> None:
    import math

    assert resolve("math:sqrt") is math.sqrt


def test_module_in_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "own_noise_module.py", "def draw(x): return x")
    monkeypatch.chdir(tmp_path)
    assert resolve("own_noise_module:draw")(3) == 3


def test_dotted_attribute() -> None:
    assert resolve("pathlib:Path.cwd")() == Path.cwd()


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


def test_file_may_import_from_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "package_beside" / "one.py", "ONE = 1")
    write(tmp_path / "sub" / "noise.py", "from package_beside.one import ONE")
    monkeypatch.chdir(tmp_path)
    assert resolve("sub/noise.py:ONE") == 1


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


def test_a_file_without_a_name_lists_its_functions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("noise_here.py").write_text("def add(x): pass\nless = lambda x: x\n")
    Path("noise_broken.py").write_text("1 / 0\n")
    added = "add the function: noise_here.py:NAME. There is: add, less."
    assert message("noise_here.py").endswith(added)
    assert message("noise_broken.py").endswith("add the function: noise_broken.py:NAME")


def test_a_library_that_is_missing_is_named_by_its_package() -> None:
    error = refusal(resolve, "tmlt.core.measurements:Measurement")
    assert error.code == "module-not-found"
    assert "install tmlt.core" in str(error)
    assert sys.executable in str(error)


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


@pytest.mark.parametrize("path", [":f", "math:", "math:1f", "math:a..b"])
def test_malformed_path(path: str) -> None:
    with pytest.raises(TargetError, match=re.escape(repr(path))) as error:
        resolve(path)
    assert error.value.code == "import-path-invalid"


def test_wrong_attribute_lists_what_is_there() -> None:
    text = message("mechanisms.laplace:laplacce")
    assert "Did you mean 'laplace'?" in text
    assert "wrong_density" in text
    # Imported helpers are not offered as mechanisms.
    assert "satisfies" not in text


def test_wrong_attribute_in_a_file_names_the_file(tmp_path: Path) -> None:
    file = write(tmp_path / "noise.py", "def draw(x): return x")
    text = message(f"{file}:drew")
    assert f"{file} has no 'drew'. Did you mean 'draw'?" in text
    assert "dpaudit_file" not in text


def test_long_lists_are_cut_at_ten(tmp_path: Path) -> None:
    lines = "\n".join(f"def f{i}(x): return x" for i in range(13))
    file = write(tmp_path / "noise.py", lines)
    assert "f9 and 3 more" in message(f"{file}:missing")


def test_missing_module_and_missing_package_part() -> None:
    assert "'mechanism'" in message("mechanism.laplace:laplace")
    text = message("mechanisms.laplac:laplace")
    assert "'laplac' in the package 'mechanisms'" in text
    assert "'laplace'?" in text


def test_missing_file_suggests_a_neighbour(tmp_path: Path) -> None:
    write(tmp_path / "noise.py", "")
    assert f"Did you mean '{tmp_path}/noise.py'?" in message(f"{tmp_path}/noize.py:draw")


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


def test_relative_import_in_a_file_names_the_remedy(tmp_path: Path) -> None:
    file = write(tmp_path / "noise.py", "from . import other")
    assert "package.module:function" in message(f"{file}:draw")


def test_file_beside_a_configuration_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "configs" / "noise.py", "")
    monkeypatch.chdir(tmp_path)
    base = Path("configs")
    assert located("noise.py:draw", base) == f"{base / 'noise.py'}:draw"
    write(tmp_path / "noise.py", "")
    assert located("noise.py:draw", base) == "noise.py:draw"
    assert located("package.module:draw", base) == "package.module:draw"


def test_a_wrong_path_gets_a_suggestion_that_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "noise.py", "")
    (tmp_path / "configs").mkdir()
    monkeypatch.chdir(tmp_path / "configs")
    assert "Did you mean '../noise.py'?" in message("../noyse.py:draw")


@pytest.mark.parametrize("path", ["", "-", "no/such", "5", "a b"])
def test_an_impossible_name_gets_no_suggestion(path: str) -> None:
    text = message(path)
    assert f"target {path!r}" in text
    assert ":NAME" not in text


def test_a_path_that_is_no_file_is_described() -> None:
    assert "'/dev/zero' is a device" in message("/dev/zero")


def test_names_that_are_not_similar_are_not_suggested(tmp_path: Path) -> None:
    for name in ("c.py", "nul.py"):
        write(tmp_path / name, "")
    text = message(f"{tmp_path}/nosuch.py:draw")
    assert "Did you mean" not in text
    assert "There is: c.py, nul.py." in text


SLIPS: dict[tuple[str, str], str | None] = {
    ("epsilom", "epsilon"): "epsilon",
    ("eps", "epsilon"): "epsilon",
    ("MU", "mu"): "mu",
    (".jso", ".json"): ".json",
    ("d", "d2"): None,
    ("py", "npy"): None,
    (".py", ".npy"): None,
}


@pytest.mark.parametrize(("wrong", "known"), SLIPS)
def test_misspelled_names_get_suggestions(wrong: str, known: str) -> None:
    assert nearest(wrong, [known]) == SLIPS[wrong, known]


@pytest.mark.parametrize("wrong", ["no-violation", "no violation", "noviolation", "not-violation"])
def test_the_opposite_of_a_name_is_not_suggested(wrong: str) -> None:
    assert nearest(wrong, ["violation", "pass"]) is None
    assert nearest("no-trac", ["trace", "no-trace"]) == "no-trace"


FILES: dict[tuple[str, str], str | None] = {
    ("rows.csv", "row.csv"): "row.csv",
    ("d1.csv", "xd1.csv"): None,
    ("AUDITS.yaml", "audits.yaml"): "audits.yaml",
    ("people", "people.csv"): "people.csv",
    ("m.pi", "m.py"): "m.py",
    ("n.py", "m.py"): None,
    ("nosuch.csv", "nul.csv"): None,
    ("nosuch.csv", "c.csv"): None,
    ("nosuch.json", "s.json"): None,
    ("d1.csv", "d2.csv"): None,
    ("people.csv", "people.py"): None,
}


@pytest.mark.parametrize(("wrong", "there"), FILES)
def test_misspelled_files_get_suggestions(wrong: str, there: str) -> None:
    near = FILES[wrong, there]
    expected = "" if near is None else f" Did you mean {near!r}?"
    assert did_you_mean_file(wrong, [there]) == expected
