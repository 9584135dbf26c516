from pathlib import Path

import pytest

from cli import demo as module
from cli.demo import Screen
from judging.errors import CustosError


@pytest.fixture
def screen(tmp_path: Path) -> Screen:
    return Screen(tmp_path / "run" / "log", num_steps=2)


def test_steps_are_numbered(screen: Screen, capsys: pytest.CaptureFixture[str]) -> None:
    screen.step("First")
    screen.show(["a line", "", "another"])
    screen.step("Second")
    assert capsys.readouterr().out == (
        "\n1/2  First  [0:00]\n     a line\n\n     another\n\n2/2  Second  [0:00]\n"
    )


@pytest.mark.usefixtures("forking_python")
def test_what_a_command_prints_goes_to_the_log(
    screen: Screen, capfd: pytest.CaptureFixture[str]
) -> None:
    screen.run("custos", "recipe", "list")
    assert capfd.readouterr() == ("     $ custos recipe list\n", "")
    log = screen.log.read_text(encoding="utf-8")
    assert log.startswith("$ custos recipe list\nrecipe ")
    assert "embedded/demo" in log


def test_its_output_but_no_warning_may_go_to_the_screen(
    screen: Screen,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    (tmp_path / "loud.py").write_text("import sys; print('seen'); print('noise', file=sys.stderr)")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setitem(module.PROGRAMS, "loud", "loud")
    screen.run("loud", on_screen=True)
    assert capfd.readouterr() == ("     $ loud\nseen\n", "")
    assert screen.log.read_text(encoding="utf-8") == "$ loud\nnoise\n"


@pytest.mark.usefixtures("forking_python")
def test_a_failed_command_is_named_with_its_last_line(screen: Screen) -> None:
    with pytest.raises(CustosError) as raised:
        screen.run("custos", "recipe", "show", "none/such")
    assert str(raised.value) == (
        "'custos recipe' failed: none/such: no such recipe; 'custos recipe list' names all; "
        f"all of it: {screen.log}"
    )


def test_a_running_command_ends_with_the_block(
    screen: Screen, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "waiting.py").write_text("import time; time.sleep(60)")
    (tmp_path / "ending.py").write_text("raise SystemExit('error: it ends')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    for program in ("waiting", "ending"):
        monkeypatch.setitem(module.PROGRAMS, program, program)
    with screen.running("waiting") as process:
        screen.check_running(process, "waiting")
    assert process.returncode is not None
    with screen.running("ending") as process:
        process.wait()
        with pytest.raises(CustosError, match="'ending' failed: it ends; all of it"):
            screen.check_running(process, "ending")


def test_commands_use_every_core_and_no_gpu(
    screen: Screen, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "ask.py").write_text(
        "import os; print(os.environ['OMP_NUM_THREADS'], repr(os.environ['CUDA_VISIBLE_DEVICES']))"
    )
    monkeypatch.setitem(module.PROGRAMS, "ask", "ask")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    for name in ("OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES"):
        monkeypatch.delenv(name, raising=False)
    screen.run("ask")
    assert screen.log.read_text(encoding="utf-8").splitlines()[-1].endswith(" ''")
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    screen.run("ask")
    assert screen.log.read_text(encoding="utf-8").splitlines()[-1] == "7 '3'"
